"""Neighbouring data sets behind real sessions, and what the engine tells of them before any noise.

`Exact` is what a question's one statement returned; `strain` is how far two of them are apart, as a part of what the
noise was made for: at most 1 is what the guarantee needs.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import discreet as dc
from discreet.adversary.session_audit.sensitivity import tallied
from discreet.noise import Entropy
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.quantiles import Histograms
from discreet.sql.measuring.run import Noisy, Run
from discreet.sql.statement.results import Groups

BUDGET = dc.ApproxDP(50, "1e-6")
Cuts = tuple[int, int, int]
"""Which of the candidates to clip at: for sums over rows, for counts of units, for averages."""


def opened(data: Any, unit: Any = "who", **facts: Any) -> Session:
    """A session on a table called t; `unit` is a column unless it is a unit."""
    given = {"budget": BUDGET, "table": "t"} | facts
    return dc.connect(data, unit=dc.User(unit) if isinstance(unit, str) else unit, **given)


@dataclass(frozen=True)
class Exact:
    """The totals of one question, for every clipping norm."""

    measurement: Measurement
    groups: Groups
    listed: Sequence[tuple[Any, ...]] | None
    statement: str
    question: str

    def release(self, seed: int) -> Noisy:
        """What would be stored, with seeded noise."""
        return Run(self.measurement, self.groups, self.listed, Entropy.for_tests(seed)).release()

    def totals(self, keys: Sequence[tuple[Any, ...]], cuts: Cuts = (0, 0, 0)) -> list[list[int]]:
        """The clipped sums of each statistic in each of the groups."""
        return self.measurement.totals(self.groups, keys, cuts)


def exact(session: Session, text: str, epsilon: Any = 1) -> Exact:
    """What the engine returns for a question, never shown to anybody."""
    question = SQL(text, epsilon).bind(session._context).parsed
    asked = question.planned().prepared()
    measurement, keys = asked.measurement, len(asked.query.aggregate.keys)
    rows = session._engine.run(asked.statement)
    owned = measurement.weights is not None
    groups = Groups.read(rows, keys, measurement.statistics, owned, len(asked.ranked))
    return Exact(measurement, groups, asked.listed, asked.statement, question.identity)


def both(text: str, data: Any, neighbour: Any, *others: Any, **facts: Any) -> tuple[Exact, Exact]:
    """One question put to two data sets; all that is decided beforehand is the same for both."""
    found = []
    for each in (data, neighbour):
        with opened(each, *others, **facts) as session:
            found.append(exact(session, text))
    first, second = found
    assert (first.statement, first.question, first.listed) == (second.statement, second.question, second.listed)
    assert first.measurement == second.measurement
    return first, second


def strain(first: Exact, second: Exact) -> float:
    """The farthest that any statistic, histogram or column of cells moved, over what is declared."""
    measurement = first.measurement
    keys = sorted(first.groups.keys | second.groups.keys, key=str)
    worst = _histograms(first, second) / measurement.changes
    for cuts in _cuts(measurement):
        pairs = zip(first.totals(keys, cuts), second.totals(keys, cuts), strict=True)
        parts = []
        for place, (before, after) in enumerate(pairs):
            moved = [one - other for one, other in zip(before, after, strict=True)]
            parts.append(_length(moved, measurement) / _noise(measurement, place, cuts))
        parts.append(tallied(measurement, first.groups, second.groups, cuts[0]) * float(measurement.ratio))
        # All statistics together: their shares of the accuracy add up to what the events state.
        worst = max(worst, _length(parts, measurement))
        worst = max(worst, _cells(first, second, cuts[0]))
    return worst


def largest_cuts(measurement: Measurement) -> Cuts:
    """The last candidates, which clip least."""
    if measurement.weights is None:
        return 0, 0, 0
    rows, units = len(measurement.weights.rows.norms) - 1, len(measurement.weights.units.norms) - 1
    return rows, units, rows


def _cuts(measurement: Measurement) -> Iterable[Cuts]:
    rows, units, _ = largest_cuts(measurement)
    return [(min(cut, rows), min(cut, units), min(cut, rows)) for cut in range(max(rows, units) + 1)]


def _noise(measurement: Measurement, place: int, cuts: Cuts) -> float:
    """The noise of one statistic, in units of what the noise of one alone would be for a movement of 1."""
    weighing = measurement.statistics[place].weighing if measurement.weights is not None else 0
    return float(measurement.deviation(place, cuts[weighing]) / measurement.ratio)


def _length(moved: Iterable[float], measurement: Measurement) -> float:
    return float(sum(map(abs, moved))) if measurement.norm == "l1" else math.sqrt(sum(m * m for m in moved))


def _histograms(first: Exact, second: Exact) -> int:
    """In how many units the searches for norms differ: a unit that comes or goes is one."""
    ways = [
        (Counter(first.groups.by_rows), Counter(second.groups.by_rows)),
        (Counter(first.groups.by_groups), Counter(second.groups.by_groups)),
    ]
    return max(sum(abs(one[key] - other[key]) for key in one | other) for one, other in ways)


def _cells(first: Exact, second: Exact, cut: int) -> float:
    """How far the weights that quantiles are drawn from moved."""
    measurement = first.measurement
    caps = None if measurement.weights is None else measurement.weights.rows
    limit = measurement.changes * (1 if caps is None else caps.movement(1, cut))
    worst = 0.0
    for one, other in zip(first.groups.cells, second.groups.cells, strict=True):
        found = [Histograms.read(each, caps, cut) for each in (one, other)]
        keys = found[0].cells.keys() | found[1].cells.keys()
        moved = [_apart(_weights(found[0], key), _weights(found[1], key)) for key in keys]
        worst = max(worst, _length(moved, measurement) / limit)
    return worst


def _weights(found: Histograms, key: tuple[Any, ...]) -> Counter[int]:
    if key not in found.cells:
        return Counter()
    return Counter(dict(zip(found.cells[key].tolist(), map(int, found.weights[key]), strict=True)))


def _apart(one: Counter[int], other: Counter[int]) -> int:
    return sum(abs(one[cell] - other[cell]) for cell in one.keys() | other.keys())

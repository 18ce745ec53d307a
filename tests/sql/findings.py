"""What is checked of a question: how far one unit moves its sums, what stands in the books, whether neighbours look
alike, and whether numbers are those of the reference. Each check raises a `Finding` where it fails."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from tests.attacks.sql_neighbours import tallied
from tests.sql.exact import Exact, Key, plain, plain_key
from tests.sql.generator import Question
from tests.sql.worlds import Dice, World

from discreet.core.errors import AnswerFailed, DiscreetError
from discreet.core.events import Event, Gaussian, Laplace, Pure
from discreet.ledger.notation import events_to_plain
from discreet.mechanisms import SparseVector
from discreet.noise import Entropy
from discreet.session import Session
from discreet.sql.answer import Answer
from discreet.sql.caps import G, H
from discreet.sql.groups import Groups
from discreet.sql.measurement import WEIGHINGS, Measurement
from discreet.sql.plan import Measure
from discreet.sql.statistics import RANKED

Cuts = tuple[int, ...]
CUTS = 3
"""How many choices of norms a movement is measured at."""
NO_CUTS = (0,) * WEIGHINGS
NAMED = {"integer": {"int"}, "real": {"float", "int"}, "boolean": {"bool"}, "text": {"str"}, "date": {"date"}}
NAMED |= {"timestamp": {"datetime"}}
"""How values of each type come to Python."""


class Finding(AssertionError):
    """A check that failed: which one, and why."""

    def __init__(self, check: str, reason: str) -> None:
        super().__init__(f"({check}) {reason}")
        self.check = check


def cuts_of(measurement: Measurement, dice: Dice) -> Cuts:
    """Candidates for the norms that can be chosen, one for each weighing, mostly small ones."""
    if measurement.weights is None:
        return NO_CUTS
    tops = [min(measurement.top(weighing), dice.pick(2, 6, 12, 40)) for weighing in range(WEIGHINGS)]
    return tuple(dice.between(0, top) for top in tops)


def cap_of(measurement: Measurement, weighing: int, cuts: Cuts) -> float | None:
    """The norm that units are weighed down to."""
    return None if measurement.weights is None else float(measurement.weights.caps(weighing).norms[cuts[weighing]])


def moved(world: World, planned: Any, before: Groups, after: Groups, dice: Dice) -> None:
    """One unit moves the totals by no more than the noise is made for, and every histogram by one unit."""
    measurement: Measurement = planned.measurement
    changes = 2 if world.replaces else 1
    for name in ("by_rows", "by_groups"):
        one, other = getattr(before, name), getattr(after, name)
        difference = sum(abs(one.get(place, 0) - other.get(place, 0)) for place in {*one, *other})
        if difference > changes:
            raise Finding("movement", f"{name} moves by {difference}")
    keys = [*before.keys | after.keys]
    _moved_search(measurement, before, after, len(planned.listed or ()) or 100)
    for cuts in {NO_CUTS, *(cuts_of(measurement, dice) for _ in range(CUTS - 1))}:
        _moved_totals(measurement, before, after, keys, cuts)
        _moved_cells(measurement, before, after, cuts, changes)
        if measurement.threshold_delta is not None:
            _alone(measurement, before, before.keys - after.keys, cuts)
            _alone(measurement, after, after.keys - before.keys, cuts)


def _moved_totals(measurement: Measurement, before: Groups, after: Groups, keys: list[Key], cuts: Cuts) -> None:
    """Each statistic moves no farther than is declared, and all together no farther than the events say."""
    shares = Fraction(0)
    pairs = zip(measurement.totals(before, keys, cuts), measurement.totals(after, keys, cuts), strict=True)
    for j, (one, other) in enumerate(pairs):
        statistic = measurement.statistics[j]
        apart = [abs(a - b) for a, b in zip(one, other, strict=True)]
        length = sum(a * a for a in apart) if measurement.norm == "l2" else sum(apart)
        power = 2 if measurement.norm == "l2" else 1
        declared = statistic.bound * G * H
        if measurement.weights is not None:
            declared = measurement.weights.caps(statistic.weighing).movement(statistic.bound, cuts[statistic.weighing])
        if length > (declared * measurement.changes) ** power:
            raise Finding("movement", f"{statistic.kind} moves by {apart} at cuts {cuts}, declared {declared}")
        shares += length / measurement.deviation(j, cuts[statistic.weighing]) ** power
    shares += Fraction(tallied(measurement, before, after, cuts[0])) ** 2
    if shares > _charged(measurement.events, measurement.norm):
        raise Finding("movement", f"all statistics together move farther than the events say, at cuts {cuts}")


class _Searching(BaseException):
    """Carries the questions of a search for a norm."""

    def __init__(self, search: SparseVector, questions: Sequence[int]) -> None:
        super().__init__()
        self.search, self.questions = search, questions


def _searching(measurement: Measurement, groups: Groups, weighing: int, keys: int) -> _Searching:
    def stop(self: SparseVector, questions: Sequence[int], **_: Any) -> Any:
        raise _Searching(self, questions)

    counts = {(bucket, 0): number for bucket, number in groups.by_groups.items()} if weighing == 1 else groups.by_rows
    with patch.object(SparseVector, "release", stop):
        try:
            measurement.choose_cut(counts, weighing, keys, Entropy.for_tests(0))
        except _Searching as found:
            return found
    raise Finding("movement", "a norm is chosen without a search")


def _moved_search(measurement: Measurement, before: Groups, after: Groups, keys: int) -> None:
    """The search for a norm moves by no more than sparse vector is told, one way if it relies on it, at its price."""
    spent = Fraction(0)
    for weighing in measurement.searched:
        if not measurement.top(weighing):
            continue
        one, other = (_searching(measurement, groups, weighing, keys) for groups in (before, after))
        apart = [a - b for a, b in zip(one.questions, other.questions, strict=True)]
        if max(map(abs, apart)) > one.search.sensitivity:
            raise Finding("movement", f"the search for a norm moves by {apart}")
        if one.search.monotonic and min(apart) < 0 < max(apart):
            raise Finding("movement", f"the search for a norm moves both ways: {apart}")
        spent += one.search.loss.epsilon
    paid = sum((event.epsilon for event in measurement.events if isinstance(event, Pure)), Fraction(0))
    if spent > paid:
        raise Finding("movement", f"searches for norms cost {spent}, paid {paid}")


def _charged(events: Sequence[Event], norm: str) -> Fraction:
    """Sensitivity over noise of the events that pay for sums: squared for Gaussian noise, summed for Laplace noise."""
    if norm == "l2":
        paid = [Fraction(e.squared_sensitivity) / e.variance for e in events if isinstance(e, Gaussian)]
    else:
        paid = [Fraction(e.sensitivity) / e.scale for e in events if isinstance(e, Laplace)]
    return sum(paid, Fraction(0))


def _moved_cells(measurement: Measurement, before: Groups, after: Groups, cuts: Cuts, changes: int) -> None:
    """A unit moves no more weight between the cells of quantiles than their draws are made for."""
    most = changes * G * H
    if measurement.weights is not None:
        most = changes * measurement.weights.rows.movement(1, cuts[0])
    for place in range(len(before.cells)):
        one, other = (weighed_cells(measurement, groups, place, cuts) for groups in (before, after))
        by_group: dict[Key, int] = defaultdict(int)
        for key, cell in {*one, *other}:
            by_group[key] += abs(one.get((key, cell), 0) - other.get((key, cell), 0))
        lengths = by_group.values()
        length = sum(lengths) if measurement.norm == "l1" else math.isqrt(sum(n * n for n in lengths))
        if length > most:
            raise Finding("movement", f"cells move by {length} at cuts {cuts}, declared {most}")


def weighed_cells(measurement: Measurement, groups: Groups, place: int, cuts: Cuts) -> dict[tuple[Key, int], int]:
    """The weight of one quantile's rows in each group and cell, in units of 1/(G·H)."""
    found: dict[tuple[Key, int], int] = defaultdict(int)
    for bucket, cell, count, divided, *key in groups.cells[place]:
        if measurement.weights is None or bucket <= cuts[0]:
            found[tuple(key), cell] += count * G * H
        else:
            found[tuple(key), cell] += divided * measurement.weights.rows.weight(cuts[0])
    return found


def _alone(measurement: Measurement, groups: Groups, keys: set[Key], cuts: Cuts) -> None:
    """Groups that only one unit is in show up, any of them, with no more than the chance that is paid for."""
    if not keys:
        return
    j = next(place for place, statistic in enumerate(measurement.statistics) if statistic.kind == "units")
    most = max(measurement.totals(groups, [*keys], cuts)[j])
    cut = cuts[measurement.statistics[j].weighing]
    away = (math.ceil(measurement.threshold(cut)) - most) / float(measurement.deviation(j, cut))
    tail = math.erfc(away / math.sqrt(2)) / 2 if measurement.norm == "l2" else math.exp(-away) / 2
    assert measurement.threshold_delta is not None
    if len(keys) * tail * measurement.changes > float(measurement.threshold_delta) * (1 + 1e-6):
        raise Finding("movement", f"{len(keys)} groups of one unit would show too often at cuts {cuts}")


def answered(
    session: Session, asked: Question, entropy: Entropy, events: Sequence[Event] | None, known: bool
) -> Answer | DiscreetError:
    """The answer or refusal, once it is sure that the books had the charge before the engine ran, and nothing else.

    `events` are those of the quote, None where there is none; `known` questions are asked again.
    """
    ledger, engine = session._ledger, session._engine
    head = ledger.head().sequence
    stood: list[list[dict[str, Any]]] = []
    original = engine.run

    def run(statement: str) -> Any:
        stood.append([entry.content for entry in ledger.entries(head)])
        return original(statement)

    engine.run = run
    outcome: Answer | DiscreetError
    try:
        outcome = session.sql(asked.text, epsilon=asked.epsilon, test_entropy=entropy)
    except AnswerFailed:
        raise Finding("shape", "the engine failed") from None
    except DiscreetError as error:
        outcome = error
    finally:
        engine.run = original
    written = [entry.content for entry in ledger.entries(head)]
    if isinstance(outcome, DiscreetError) or known:
        if written or stood:
            raise Finding("charge", f"nothing is due, but {len(written)} entries and {len(stood)} runs were made")
        return outcome
    if [entry["kind"] for entry in written] != ["charge", "release"]:
        raise Finding("charge", f"the books got {[entry['kind'] for entry in written]}")
    if stood != [written[:1]]:
        raise Finding("charge", f"when the engine ran, the books had {stood}")
    if events is None or written[0]["events"] != events_to_plain(tuple(events)):
        raise Finding("charge", f"charged {written[0]['events']}, quoted {events}")
    return outcome


def alike(asked: Question, planned: Any, mine: Answer, theirs: Answer) -> None:
    """Answers on neighbours have the same columns, and where all listed keys are shown the same keys."""
    if mine.names != theirs.names or mine.types != theirs.types:
        raise Finding("shape", f"{mine.names} {mine.types} here, {theirs.names} {theirs.types} on a neighbour")
    for answer in (mine, theirs):
        for place, kind in enumerate(answer.types):
            kinds = {type(row[place]).__name__ for row in answer.rows} - {"NoneType"}
            if not kinds <= NAMED[kind]:
                raise Finding("shape", f"column {answer.names[place]} of type {kind} holds {kinds}")
    if planned.listed is None or asked.limit is not None or {"having", "outer"} & asked.tags:
        return
    keys = [sorted([row[: asked.keys] for row in answer.rows], key=repr) for answer in (mine, theirs)]
    if keys[0] != keys[1] or (asked.order is None and mine.places != theirs.places):
        raise Finding("shape", f"groups {keys[0]} here, {keys[1]} on a neighbour")


def compare(here: Mapping[Key, float], there: Mapping[Key, float], slack: Mapping[Key, float], what: str) -> None:
    """Numbers by group, zero where a group is absent."""
    for key in here.keys() | there.keys():
        apart = abs(here.get(key, 0.0) - there.get(key, 0.0))
        if not apart <= slack.get(key, 0.0) + 1e-9:
            raise Finding("result", f"{what}: {here.get(key)} instead of {there.get(key)} for {key}")


def as_duckdb(asked: Question, planned: Any, answer: Answer, exact: Exact, own: list[tuple[Any, ...]]) -> None:
    """Rows that are shown are those of DuckDB's answer to the same words, but for groups without rows."""
    keys = asked.keys
    expected = {plain_key(row[:keys]): row for row in own}
    shown = {plain_key(row[:keys]): row for row in answer.rows}
    for key, row in shown.items():
        if key not in expected:
            if asked.sharp and asked.limit is None and key in exact.keys:
                raise Finding("result", f"{key} is shown, but not by DuckDB")
            continue
        for output, index in enumerate(asked.plain):
            value, true = row[keys + output], expected[key][keys + output]
            if index is None or true is None:
                continue
            measure = planned.query.aggregate.measures[index]
            if measure.function in RANKED:
                continue
            if abs(spread(measure, value) - spread(measure, true)) > slack_of(measure, len(exact.rows)):
                raise Finding("result", f"{asked.aggregates[index].text} is {value}, to DuckDB {true}, for {key}")
    missing = expected.keys() - shown.keys()
    if asked.sharp and asked.limit is None and planned.listed is not None:
        listed = {plain_key(key) for key in planned.listed}
        if missing & listed:
            raise Finding("result", f"DuckDB shows {missing & listed} too")
    if asked.limit is not None and len(answer.rows) > asked.limit:
        raise Finding("result", f"{len(answer.rows)} rows with LIMIT {asked.limit}")
    ordered(asked, answer)


def ordered(asked: Question, answer: Answer) -> None:
    """ORDER BY holds for the values that are shown."""
    if asked.order is None:
        return
    place, descending = asked.order
    values = [plain(row[place]) for row in answer.rows if row[place] is not None]
    if values != sorted(values, reverse=descending):
        raise Finding("result", f"not in the order that was asked for: {values}")


def spread(measure: Measure, value: Any) -> float:
    """A value as it is compared: deviations by their squares."""
    return float(value) ** 2 if measure.function == "stddev" else float(value)


def slack_of(measure: Measure, rows: int) -> float:
    """How far the grid's rounding can move a measure: half a step for each row, a step being at most 2^-12 of what a
    value can be; in a variance of two values, one and a half times as much of the squared width."""
    if measure.bounds is None:
        return 0.0
    width, size = float(measure.bounds.width), float(measure.bounds.magnitude)
    if measure.function == "sum":
        return rows * max(size, width) / 4096 + 1e-9 * rows * size
    return (width if measure.function == "avg" else width**2) / 4000 + 1e-9 * size

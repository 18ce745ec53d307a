"""How far the measures of a question will be off, from its plan alone."""

from __future__ import annotations

from fractions import Fraction
from math import inf

from discreet.core.expected_error import ExpectedError
from discreet.sql.bounding.sums import RANKED, Statistic, Sums
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.modes import Mode
from discreet.sql.plan import Query

__all__ = ["expected_errors"]


def expected_errors(query: Query, sums: Sums, measurement: Measurement) -> tuple[ExpectedError, ...]:
    """What to expect of each measure that is released."""
    said = []
    ranked = 0
    for index, measure in enumerate(query.aggregate.measures):
        if measure.function in RANKED:
            said.append(_in_ranks(query, measurement, measure.name, ranked))
            ranked += 1
            continue
        needed = [(j, measurement.statistics[j]) for j in sums.places(index)]
        ends = []
        for last in (False, True):
            noises = [measurement.error(j, _cut(measurement, s, last)) for j, s in needed]
            if measure.function == "sum" and len(noises) > 1 and measure.bounds is not None:
                middle = abs(float(measure.bounds.lower + measure.bounds.upper)) / 2
                counted, summed = (noises[0], noises[1]) if len(noises) == 3 else (noises[1], noises[0])
                ends.append(summed + middle * counted)
            else:
                ends.append(noises[-1] if measure.function in ("variance", "stddev") else noises[0])
        weights = measurement.weights
        fixed = weights is None or all(not weights.caps(s.weighing).searched for _, s in needed)
        limited = fixed or query.aggregate.max_rows is not None
        over_count = measure.function in ("avg", "variance", "stddev")
        said.append(ExpectedError(measure.name, ends[0], ends[1] if limited else inf, over_count))
    return tuple(said)


def _in_ranks(query: Query, measurement: Measurement, name: str, index: int) -> ExpectedError:
    assert measurement.quantiles is not None
    off = measurement.quantiles.accuracy(index, Fraction(1, 2), 1)
    rank, meaning = measurement.quantiles.ranks[index], ""
    if isinstance(rank, Mode):
        meaning = "within {} rows of the most frequent" if rank.values is not None else "⊥ unless {} rows share a value"
    elif rank.kind == "trimmed":
        kept = 1 - 2 * rank.q
        off = (0.8 if measurement.norm == "l2" else 1.0) * float(measurement.quantiles.noise(index).summed / 2 / kept)
        meaning = "± {} times the distance of its cuts over the number of rows"
    if measurement.weights is None:
        return ExpectedError(name, off, off, False, not meaning, meaning)
    norms = measurement.weights.rows.norms
    limited = len(norms) == 1 or query.aggregate.max_rows is not None
    most = off * float(norms[-1]) if limited else inf
    return ExpectedError(name, off * float(norms[0]), most, False, not meaning, meaning)


def _cut(measurement: Measurement, statistic: Statistic, last: bool) -> int:
    return measurement.top(statistic.weighing) if last and measurement.weights is not None else 0

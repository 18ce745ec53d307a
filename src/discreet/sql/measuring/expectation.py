"""How far the measures of a question will be off, from its plan alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import count
from math import inf

from discreet.core.expected_error import ExpectedError
from discreet.sql.aggregates import RankKind
from discreet.sql.bounding.sums import Statistic, Sums, ends_of
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.modes import Mode
from discreet.sql.plan import Measure, Query

__all__ = ["expected_errors"]


def expected_errors(query: Query, sums: Sums, measurement: Measurement) -> tuple[ExpectedError, ...]:
    """What to expect of each measure that is released."""
    ranked = count()
    return tuple(
        _in_ranks(query, measurement, measure.name, next(ranked))
        if measure.aggregation.is_ranked
        else _of_sums(query, measurement, measure, sums.places(index))
        for index, measure in enumerate(query.aggregate.measures)
    )


def _of_sums(query: Query, measurement: Measurement, measure: Measure, places: Sequence[int]) -> ExpectedError:
    """By the errors of its sums: at the least norm, and at the largest if rows are limited."""
    aggregation, ends = measure.aggregation, ends_of(measure.bounds)
    needed = [(place, measurement.statistics[place]) for place in places]
    noise, at_limit = (
        aggregation.error([measurement.error(place, _cut(measurement, s, last)) for place, s in needed], ends)
        for last in (False, True)
    )
    weights = measurement.weights
    fixed = weights is None or all(not weights.caps(s.weighing).searched for _, s in needed)
    limited = fixed or query.aggregate.max_rows is not None
    return ExpectedError(measure.name, noise, at_limit if limited else inf, aggregation.is_mean)


def _in_ranks(query: Query, measurement: Measurement, name: str, index: int) -> ExpectedError:
    assert measurement.quantiles is not None
    off = measurement.quantiles.accuracy(index, Fraction(1, 2), 1)
    rank, meaning = measurement.quantiles.ranks[index], ""
    if isinstance(rank, Mode):
        meaning = "within {} rows of the most frequent" if rank.values is not None else "⊥ unless {} rows share a value"
    elif rank.kind is RankKind.TRIMMED:
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

"""What each aggregate is, in one table: its type, the noisy sums or draws it comes from, how its value and its interval
follow from them, how far off to expect it, its words.

A sum over rows is one of few kinds (`Sum`). An aggregate either has its value from sums that get noise, or is drawn
from the rows of a group by rank (`measuring/quantiles.py`), or chosen among its values (`measuring/modes.py`). To add
one, add its record here, and how it is written to `parsing/aggregates.py`. If it needs a sum of a new kind, `Sum` gets
a member, `bounding/sums.py` how far a row moves it, and `statement/layout.py` the expression that is added up; a new
kind of draw has a file in `measuring/`. CONTRIBUTING.md walks through it.

>>> AVG = AGGREGATES["avg"]
>>> [(part.sum.value, part.of_mean) for part in AVG.needs(Use(of_column=True, averaged=True, apart=True))]
[('centred', True), ('present', True)]
>>> AVG.value((300.0, 20.0), Ends(0.0, 100.0, 50.0, 100.0)), AVG.limits(Ends(0.0, 100.0, 50.0, 100.0))
(65.0, (0.0, 100.0))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Literal, Protocol, TypeVar

import numpy as np

from discreet.core.domains import Bounds
from discreet.noise.grid import Doubles
from discreet.sql.catalog import Type
from discreet.sql.decimals import DIGITS, Decimals
from discreet.sql.functions.ranges import Interval

__all__ = ["AGGREGATES", "AggregateName", "Aggregation", "Ends", "Part", "RankKind", "Sum", "Use"]

AggregateName = Literal[
    "count",
    "count_units",
    "count_distinct",
    "sum",
    "avg",
    "variance",
    "stddev",
    "min",
    "max",
    "quantile",
    "iqr",
    "mad",
    "trimmed_mean",
    "mode",
]
"""What is measured: `count` rows, or non-NULL arguments; `count_units` distinct owners; `count_distinct`, of one unit's
own rows only, different values. Questions are known by these names."""
Numbers = TypeVar("Numbers", float, Doubles)
"""A number, or one for each group."""


class Sum(StrEnum):
    """What is added up over rows. Stored answers have these texts."""

    ROWS = "rows"
    PRESENT = "present"
    """Rows whose argument is not NULL."""
    UNITS = "units"
    RAW = "raw"
    """The argument."""
    CENTRED = "centred"
    """The argument less the middle of its bounds, so that half their width is the most that a row adds."""
    SQUARES = "squares"
    """The squares of that."""

    @property
    def words(self) -> str:
        """In plans."""
        return _SUMS[self]

    @property
    def adds_values(self) -> bool:
        """Whether rows add what their argument is, which then needs bounds."""
        return self in (Sum.RAW, Sum.CENTRED, Sum.SQUARES)

    @property
    def is_centred(self) -> bool:
        """Whether it is measured from the middle of the bounds."""
        return self in (Sum.CENTRED, Sum.SQUARES)


_SUMS = {
    Sum.ROWS: "the number of rows",
    Sum.PRESENT: "the number of values",
    Sum.UNITS: "the number of units",
    Sum.RAW: "sums",
    Sum.CENTRED: "sums",
    Sum.SQUARES: "sums of squares",
}


class RankKind(StrEnum):
    """What is drawn by rank: a quantile with both ends, an end of the values, or what is made of two quantiles."""

    QUANTILE = "quantile"
    MIN = "min"
    MAX = "max"
    IQR = "iqr"
    MAD = "mad"
    TRIMMED = "trimmed"

    @property
    def is_one_draw(self) -> bool:
        """Whether it is drawn as it is, not made of two."""
        return self in (RankKind.QUANTILE, RankKind.MIN, RankKind.MAX)


@dataclass(frozen=True)
class Part:
    """A sum that an aggregate needs; `of_mean` if only averages use it, in which clipping mostly cancels."""

    sum: Sum
    of_mean: bool = False


@dataclass(frozen=True)
class Use:
    """What an aggregate stands beside: whether it has an argument, whether that is averaged too, and whether averages
    have sums of their own, so that units can be weighed otherwise there."""

    of_column: bool
    averaged: bool
    apart: bool


@dataclass(frozen=True)
class Ends:
    """What is known of an argument: its bounds, their middle and width, and the most that its variance can be."""

    lower: float
    upper: float
    middle: float
    width: float
    variance: float = math.inf


class Value(Protocol):
    """An aggregate from its sums, in the order in which they are needed."""

    def __call__(self, sums: Sequence[Numbers], ends: Ends, /) -> Numbers:
        """Of noisy sums, one or more for each group; or of a corner of their intervals."""


def _at_least(values: Numbers, least: float) -> Numbers:
    return np.maximum(values, least) if isinstance(values, np.ndarray) else max(values, least)


def _at_most(values: Numbers, most: float) -> Numbers:
    return np.minimum(values, most) if isinstance(values, np.ndarray) else min(values, most)


def _first(sums: Sequence[Numbers], ends: Ends, /) -> Numbers:
    return sums[0]


def _total(sums: Sequence[Numbers], ends: Ends, /) -> Numbers:
    """The sum itself; from one of the middle, that for each value back; or the average times the number of values."""
    if len(sums) == 1:
        return sums[0]
    if len(sums) == 2:
        return sums[0] + ends.middle * sums[1]
    return _mean(sums[1:], ends) * sums[0]


def _mean(sums: Sequence[Numbers], ends: Ends, /) -> Numbers:
    mean = ends.middle + sums[0] / _at_least(sums[1], 1.0)
    return _at_most(_at_least(mean, ends.lower), ends.upper)


def _variance(sums: Sequence[Numbers], ends: Ends, /) -> Numbers:
    total, number, squares = sums
    number = _at_least(number, 1.0)
    spread = _at_least(squares - total**2 / number, 0.0) / _at_least(number - 1, 1.0)
    return _at_most(spread, ends.variance)


def _deviation(sums: Sequence[Numbers], ends: Ends, /) -> Numbers:
    variance = _variance(sums, ends)
    return np.sqrt(variance) if isinstance(variance, np.ndarray) else math.sqrt(variance)


def _rows(use: Use) -> tuple[Part, ...]:
    return (Part(Sum.PRESENT if use.of_column else Sum.ROWS),)


def _units(use: Use) -> tuple[Part, ...]:
    return (Part(Sum.UNITS),)


def _of_total(use: Use) -> tuple[Part, ...]:
    """Beside an average of the same, the average times the number of values: that is off by less than the sum."""
    if not use.averaged:
        return (Part(Sum.RAW),)
    return (Part(Sum.PRESENT), *_of_mean(use)) if use.apart else _of_mean(use)


def _of_mean(use: Use) -> tuple[Part, ...]:
    return Part(Sum.CENTRED, use.apart), Part(Sum.PRESENT, use.apart)


def _of_variance(use: Use) -> tuple[Part, ...]:
    return (*_of_mean(use), Part(Sum.SQUARES, use.apart))


def _not_negative(ends: Ends) -> tuple[float, float]:
    return 0.0, math.inf


def _of_one_sign(ends: Ends) -> tuple[float, float]:
    return (0.0 if ends.lower >= 0 else -math.inf), (0.0 if ends.upper <= 0 else math.inf)


def _within(ends: Ends) -> tuple[float, float]:
    return ends.lower, ends.upper


def _width(ends: Ends) -> tuple[float, float]:
    return 0.0, ends.width


def _error_of_first(errors: Sequence[float], ends: Ends) -> float:
    return errors[0]


def _error_of_last(errors: Sequence[float], ends: Ends) -> float:
    return errors[-1]


def _error_of_total(errors: Sequence[float], ends: Ends) -> float:
    """That of the sum from the middle, and of the number of values as often as the middle says."""
    if len(errors) == 1:
        return errors[0]
    counted, summed = (errors[0], errors[1]) if len(errors) == 3 else (errors[1], errors[0])
    return summed + abs(ends.middle) * counted


def _integer(argument: Type | None) -> Type:
    return "integer"


def _real(argument: Type | None) -> Type:
    return "real"


def _same(argument: Type | None) -> Type:
    return "real" if argument is None else argument


def _widened(argument: Type | None) -> Type:
    return Decimals.of(DIGITS, argument.scale) if isinstance(argument, Decimals) else _same(argument)


def _as_values(bounds: Bounds | None, most: int | None, kind: Type) -> Bounds | None:
    return bounds


def _as_total(bounds: Bounds | None, most: int | None, kind: Type) -> Bounds | None:
    factor = Interval(Fraction(1), Fraction(most)) if most else Interval(Fraction(1))
    return (Interval.of(bounds) * factor).rounded(kind).bounds()


def _as_variance(bounds: Bounds | None, most: int | None, kind: Type) -> Bounds | None:
    widest = _widest_variance(bounds)
    return None if widest is None else widest.rounded("real").bounds()


def _as_deviation(bounds: Bounds | None, most: int | None, kind: Type) -> Bounds | None:
    widest = _widest_variance(bounds)
    return None if widest is None else widest.root().rounded("real").bounds()


def _widest_variance(bounds: Bounds | None) -> Interval | None:
    """Two values at the two ends vary most."""
    return None if bounds is None else Interval(Fraction(0), bounds.width**2 / 2)


@dataclass(frozen=True)
class Aggregation:
    """One aggregate. Its value follows from sums that it `needs`; or it is drawn by `rank`, or chosen (`is_chosen`); or
    it exists in subqueries of one unit's own rows alone, and has none of the three."""

    words: str
    """In charts."""
    result: Callable[[Type | None], Type]
    """The type of its values, by that of its argument."""
    needs: Callable[[Use], tuple[Part, ...]] | None = None
    value: Value = _first
    limits: Callable[[Ends], tuple[float, float]] = _not_negative
    """Where a value that follows from sums can lie, whatever the rows."""
    error: Callable[[Sequence[float], Ends], float] = _error_of_first
    """The mean absolute error, from those of its sums; for means, times the number of rows."""
    rank: Callable[[Fraction | None], tuple[RankKind, Fraction]] | None = None
    """What is drawn for it, by the rank that it was given: a kind, and the rank of a quantile."""
    counts: bool = False
    """Whether it counts something, of whatever type; then no bounds are needed."""
    is_additive: bool = False
    """Whether two groups together have the sum of their values: a chart shows it in bars."""
    is_mean: bool = False
    """Whether sums are divided by the number of rows."""
    peaks_at_zero: bool = False
    """Whether it is largest where its first sum is 0, other things being equal: there an interval may have its end."""
    is_chosen: bool = False
    """Whether it is one of the values, without an interval, and perhaps ⊥."""
    at_half: str = ""
    """What it is called at the rank ½."""
    of_one_unit: bool = True
    """Whether it can be computed of one unit's own rows, in a subquery."""
    of_truth: bool = False
    """Whether truth values count as 0 and 1."""
    of_order: bool = False
    """Whether of one unit's own rows it needs an order only."""
    quartiles: bool = False
    """Whether of one unit's own rows it is the third quartile less the first."""
    range_of_one: Callable[[Bounds | None, int | None, Type], Bounds | None] = _as_values
    """The bounds of it for one unit's own rows, by those of the argument, the most rows and its type."""

    @property
    def is_ranked(self) -> bool:
        """Whether it is not computed from sums: drawn by rank, chosen among values, or of one unit's own rows alone."""
        return self.needs is None

    @property
    def adds_values(self) -> bool:
        """Whether its sums are of what the argument is; declared values can then make their noise smaller."""
        return self.needs is not None and not self.counts

    @property
    def is_bounded(self) -> bool:
        """Whether its value lies within bounds that follow from those of the argument."""
        return self.is_ranked or self.limits is _within


def _quantile(rank: Fraction | None) -> tuple[RankKind, Fraction]:
    """At the very ends, the least and the largest."""
    q = rank or Fraction(0)
    return (RankKind.MIN if q == 0 else RankKind.MAX if q == 1 else RankKind.QUANTILE), q


def _trimmed(rank: Fraction | None) -> tuple[RankKind, Fraction]:
    return RankKind.TRIMMED, rank or Fraction(0)


def _fixed(kind: RankKind, q: Fraction) -> Callable[[Fraction | None], tuple[RankKind, Fraction]]:
    return lambda rank: (kind, q)


AGGREGATES: Mapping[AggregateName, Aggregation] = {
    "count": Aggregation("number of rows", _integer, _rows, counts=True, is_additive=True),
    "count_units": Aggregation("number of units", _integer, _units, counts=True, is_additive=True),
    "count_distinct": Aggregation("number of values", _integer, counts=True),
    "sum": Aggregation(
        words="sum",
        result=_widened,
        needs=_of_total,
        value=_total,
        limits=_of_one_sign,
        error=_error_of_total,
        is_additive=True,
        of_truth=True,
        range_of_one=_as_total,
    ),
    "avg": Aggregation("mean", _real, _of_mean, _mean, _within, is_mean=True, of_truth=True),
    "variance": Aggregation(
        words="variance",
        result=_real,
        needs=_of_variance,
        value=_variance,
        error=_error_of_last,
        is_mean=True,
        peaks_at_zero=True,
        range_of_one=_as_variance,
    ),
    "stddev": Aggregation(
        words="standard deviation",
        result=_real,
        needs=_of_variance,
        value=_deviation,
        error=_error_of_last,
        is_mean=True,
        peaks_at_zero=True,
        range_of_one=_as_deviation,
    ),
    "min": Aggregation("least", _same, limits=_within, rank=_fixed(RankKind.MIN, Fraction(0)), of_order=True),
    "max": Aggregation("largest", _same, limits=_within, rank=_fixed(RankKind.MAX, Fraction(1)), of_order=True),
    "quantile": Aggregation("quantile", _real, limits=_within, rank=_quantile, at_half="median"),
    "iqr": Aggregation(
        words="interquartile range",
        result=_real,
        limits=_width,
        rank=_fixed(RankKind.IQR, Fraction(1, 4)),
        quartiles=True,
    ),
    "mad": Aggregation(
        words="median deviation",
        result=_real,
        limits=_width,
        rank=_fixed(RankKind.MAD, Fraction(1, 2)),
        of_one_unit=False,
    ),
    "trimmed_mean": Aggregation("trimmed mean", _real, limits=_within, rank=_trimmed, of_one_unit=False),
    "mode": Aggregation("most frequent value", _same, is_chosen=True, of_one_unit=False),
}

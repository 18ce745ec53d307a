"""Statistics of numbers on a line, and how far one record can move them near given data.

Values go to places 0 … top of a `Line` first, each on its own; from there on everything is whole numbers, of which
`Sample` holds the sorted ones, x₍₁₎ ≤ … ≤ x₍ₙ₎, with 0 before them and top after them. Each statistic f has a ladder
of spreads W₀ ≤ W₁ ≤ … such that for all neighbours x and x′

    |f(x) − f(x′)| ≤ W₀(x)      and      Wₖ(x′) ≤ Wₖ₊₁(x)

so Wₖ(x) bounds the local sensitivity of all data within k records of x. Both what is at most b far from data whose
local sensitivity exceeds b (`distance`) and smooth upper bounds (`smooth.py`) follow from these two lines.

Neighbours. Ranks are ⌈q·n⌉, which rises by 0 or 1 with each record. Adding a record moves windows of consecutive ranks
by at most one rank; removing one that lies inside makes it one rank longer; replacing one does either. Hence:

- `OrderStatistic`: Wₖ is the widest window of k + 1 steps that holds rank r: x₍ⱼ₎ − x₍ᵢ₎, i ≤ r ≤ j = i + k + 1.
  For add/remove and replace neighbours alike.
- `InterquartileRange`: rank ⌈n/4⌉ never moves without ⌈3n/4⌉, so no record moves the quartiles in opposite ways, and
  the larger of their spreads counts. For both relations.
- `TrimmedMean`: the sum of ranks t + 1 … n − t, with windows of n − 2t + k steps that hold all of them; its divisor is
  n − 2t. For replace neighbours only: n is public.
- `MedianDeviation`: with the median anywhere in [x₍r−k₎, x₍r+k₎], the deviation of rank r ± k from it is between lowₖ
  and highₖ. Wₖ is the larger of highₖ₊₁ − lowₖ and highₖ − lowₖ₊₁. For both relations.

>>> sample = Sample.of(np.array([3, 1, 4, 1, 5]), top=9)
>>> median = OrderStatistic("0.5")
>>> median.value(sample), [median.spread(sample, k, "replace") for k in range(4)]
(3, [2, 3, 6, 8])
>>> median.distance(sample, 3, 10, "replace")
2
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import ClassVar, get_args

import numpy as np

from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, count, probability
from discreet.core.rounding import float_up
from discreet.core.units import Neighbours
from discreet.mechanisms.quantiles.line import Line
from discreet.noise.batches import Integers

__all__ = [
    "InterquartileRange",
    "MedianDeviation",
    "OrderStatistic",
    "Sample",
    "Statistic",
    "TrimmedMean",
    "local_sensitivity",
    "relation",
]

BOTH: tuple[Neighbours, ...] = ("add_remove", "replace")


@dataclass(frozen=True, eq=False)
class Sample:
    """Sorted places from 0 to `top`."""

    places: Integers
    top: int

    @classmethod
    def of(cls, places: Integers, top: int) -> Sample:
        """Any places, sorted."""
        return cls(np.sort(np.clip(places, 0, top)), top)

    @property
    def size(self) -> int:
        """How many."""
        return int(self.places.size)

    def rank(self, q: Fraction) -> int:
        """⌈q·n⌉: from 1 to n, and 0 of nothing."""
        return ceil(q * self.size)

    def at(self, first: int, last: int) -> Integers:
        """x₍first₎ … x₍last₎: 0 for ranks below 1 and `top` past n."""
        low, high = max(first, 1), min(last, self.size)
        inside = self.places[low - 1 : high] if low <= high else self.places[:0]
        below = np.zeros(max(0, min(last, 0) - first + 1), dtype=np.int64)
        above = np.full(max(0, last - max(first, self.size + 1) + 1), self.top, dtype=np.int64)
        return np.concatenate([below, inside, above])

    def window(self, first: int, last: int, steps: int) -> int:
        """The widest x₍i+steps₎ − x₍i₎, i from `first` to `last`."""
        return int((self.at(first + steps, last + steps) - self.at(first, last)).max())


@dataclass(frozen=True)
class Statistic(ABC):
    """A whole number between 0 and top·divisor, with its ladder of spreads."""

    relations: ClassVar[tuple[Neighbours, ...]] = BOTH
    located: ClassVar[bool] = True
    """Whether it moves with the data, as a median does, or is a length, as a deviation is."""

    @abstractmethod
    def value(self, sample: Sample) -> int:
        """f(x)."""

    @abstractmethod
    def spread(self, sample: Sample, k: int, neighbours: Neighbours) -> int:
        """Wₖ(x)."""

    def divisor(self, size: int) -> int:
        """By what the value of so many records is divided in the end."""
        return 1

    def distance(self, sample: Sample, bound: int, limit: int, neighbours: Neighbours) -> int:
        """The least k with Wₖ > bound, or `limit`: how many records away, at least, local sensitivity exceeds it."""
        # Doubling first: spreads of far k are costly.
        reach = 1
        while reach < limit and self.spread(sample, reach - 1, neighbours) <= bound:
            reach *= 2
        low, high = reach // 2, min(reach, limit)
        return low + bisect_left(range(low, high), True, key=lambda k: self.spread(sample, k, neighbours) > bound)

    def read(self, value: Fraction, line: Line, size: int) -> float:
        """The number that a value, perhaps with noise, stands for, held within what is possible."""
        length = value / self.divisor(size) * line.step
        low, high = (line.bounds.lower, line.bounds.upper) if self.located else (Fraction(0), line.bounds.width)
        return float(min(max(length + low, low), high))


@dataclass(frozen=True)
class OrderStatistic(Statistic):
    """The value of rank ⌈q·n⌉; the median by default."""

    q: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", probability("q", self.q))

    def value(self, sample: Sample) -> int:
        """x₍r₎."""
        rank = sample.rank(self.q)
        return int(sample.at(rank, rank)[0])

    def spread(self, sample: Sample, k: int, neighbours: Neighbours) -> int:
        """The widest window of k + 1 steps that holds rank r."""
        rank = sample.rank(self.q)
        return sample.window(rank - k - 1, rank, k + 1)


@dataclass(frozen=True)
class InterquartileRange(Statistic):
    """The value of rank ⌈3n/4⌉ less that of rank ⌈n/4⌉."""

    located: ClassVar[bool] = False

    def value(self, sample: Sample) -> int:
        """x₍r₂₎ − x₍r₁₎."""
        low, high = (OrderStatistic(Fraction(q, 4)).value(sample) for q in (1, 3))
        return high - low

    def spread(self, sample: Sample, k: int, neighbours: Neighbours) -> int:
        """The larger of the quartiles' spreads."""
        return max(OrderStatistic(Fraction(q, 4)).spread(sample, k, neighbours) for q in (1, 3))


@dataclass(frozen=True)
class TrimmedMean(Statistic):
    """The mean of what is left when ⌊trim·n⌋ values are cut off at either end; for replace neighbours."""

    relations: ClassVar[tuple[Neighbours, ...]] = ("replace",)

    trim: Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        cut = probability("trim", self.trim, zero=True)
        if cut >= Fraction(1, 2):
            raise InvalidArgument("trim", self.trim, "below 1/2", "leave something in the middle")
        object.__setattr__(self, "trim", cut)

    def value(self, sample: Sample) -> int:
        """The sum of what is left."""
        cut = self._cut(sample.size)
        left = sample.places[cut : sample.size - cut]
        # In two halves, neither of which can pass 2⁶³ for fewer than 2⁴² values.
        return (int((left >> 20).sum()) << 20) + int((left & ((1 << 20) - 1)).sum())

    def spread(self, sample: Sample, k: int, neighbours: Neighbours) -> int:
        """The widest window of n − 2t + k steps that holds ranks t + 1 to n − t."""
        cut = self._cut(sample.size)
        return sample.window(cut - k, cut + 1, sample.size - 2 * cut + k)

    def divisor(self, size: int) -> int:
        """How many values are left."""
        return max(1, size - 2 * self._cut(size))

    def _cut(self, size: int) -> int:
        return floor(self.trim * size)


@dataclass(frozen=True)
class MedianDeviation(Statistic):
    """The median of how far values are from their median; a spread costs time in proportion to n."""

    located: ClassVar[bool] = False

    def value(self, sample: Sample) -> int:
        """The deviation of rank r from x₍r₎."""
        return self._high(sample, 0)

    def spread(self, sample: Sample, k: int, neighbours: Neighbours) -> int:
        """max(highₖ₊₁ − lowₖ, highₖ − lowₖ₊₁)."""
        near, far = k, k + 1
        low = [self._low(sample, j) for j in (near, far)]
        high = [self._high(sample, j) for j in (near, far)]
        return max(high[1] - low[0], high[0] - low[1])

    def _low(self, sample: Sample, k: int) -> int:
        """The least half-width, from any centre in reach, that holds r − k values; whole, so rounded up."""
        held = sample.rank(Fraction(1, 2)) - k
        if held <= 0:
            return 0
        first, last = self._centres(sample, k)
        starts, ends = sample.places[: sample.size - held + 1], sample.places[held - 1 :]
        # Twice the centre, in the middle of each window or as near to it as may be.
        centres = np.clip(starts + ends, 2 * first, 2 * last)
        return -(-int(np.maximum(centres - 2 * starts, 2 * ends - centres).min()) // 2)

    def _high(self, sample: Sample, k: int) -> int:
        """The largest half-width that may be needed, from any centre in reach, to hold r + k values; rounded down."""
        held = sample.rank(Fraction(1, 2)) + k
        if held > sample.size:
            return sample.top
        if held == 0:
            return 0
        first, last = self._centres(sample, k)
        starts, ends = sample.places[: sample.size - held + 1], sample.places[held - 1 :]
        needed = [int(np.maximum(centre - starts, ends - centre).min()) for centre in (first, last)]
        # Between the ends it is largest half-way between x₍ᵢ₎ and x₍ᵢ₊held₎, where two windows are as good.
        halfway = starts[:-1] + ends[1:]
        within = (halfway >= 2 * first) & (halfway <= 2 * last)
        return max([*needed, int((ends[1:] - starts[:-1])[within].max(initial=0)) // 2])

    def _centres(self, sample: Sample, k: int) -> tuple[int, int]:
        rank = sample.rank(Fraction(1, 2))
        return int(sample.at(rank - k, rank - k)[0]), int(sample.at(rank + k, rank + k)[0])


def relation(statistic: object, neighbours: object) -> None:
    """Refuse what is no statistic, and neighbours for which it has no bound."""
    if not isinstance(statistic, Statistic):
        raise InvalidArgument("statistic", statistic, "a Statistic", "give one of discreet.robust, as OrderStatistic()")
    if neighbours not in get_args(Neighbours):
        raise InvalidArgument("neighbours", neighbours, "'add_remove' or 'replace'", "name one of the two")
    if neighbours not in statistic.relations:
        known = " or ".join(map(repr, statistic.relations))
        raise InvalidArgument("neighbours", neighbours, f"{known} for this statistic", "treat how many rows as public")


def local_sensitivity(
    statistic: Statistic,
    data: object,
    bounds: Bounds,
    step: Exactable | None = None,
    *,
    distance: int = 0,
    neighbours: Neighbours = "add_remove",
) -> float:
    """At most this far one record moves the statistic of any data within `distance` records of these.

    For study only: local sensitivity says much about single records, and must not leave without noise.
    """
    relation(statistic, neighbours)
    line = Line.between(bounds, step)
    sample = Sample.of(line.places(data), line.size - 1)
    spread = statistic.spread(sample, count("distance", distance), neighbours)
    return float_up(spread * line.step / statistic.divisor(sample.size))

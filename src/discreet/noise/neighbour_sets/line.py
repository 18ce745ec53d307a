"""Shells round 0 on the line: how many steps it takes to get from a ball to each whole number.

One record moves a sum by some ±v with v in a set V. R_0 holds the whole numbers within `delta` of 0, and the shell R_i
what one more step ±v reaches from R_{i−1} and no shell before. Noise with P(x) ∝ e^(−iε) on R_i is ε-DP for any V at
all: where x lies in R_i, x ± v was reached by step i + 1 at the latest, and x from x ± v likewise, so i moves by one at
most. What no number of steps reaches is out of reach for x and x ± v alike. A record of 0 changes nothing and costs
nothing.

>>> line = Line.of([(1, 1), (10, 10)], levels=3)
>>> line.shells(delta=0, closing=3).level(np.arange(12)).tolist()
[0, 1, 2, 3, 4, 4, 4, 4, 3, 2, 1, 2]

Closing. Shells are followed for as many steps as wanted, and then closed: what is missing inside, and a band as wide as
the largest step M on either side, is shell n + 1; each band of M beyond is one shell more. That keeps the argument: a
step leads from R_n to shells n − 1 to n + 1 and no step is longer than a band. So nothing has to converge. Closing at
0 is staircase noise, and closing is exact once nothing is missing.

Steps with a common divisor are followed in units of it, and noise is a multiple of it: no neighbour lies in between.

The construction is that of Wu, Xia and He (2018), which takes V = [0, a] ∪ [b, c] and waits until shells are whole
intervals. They need not ever be: with V = {2, 5} and delta 0 all but finitely many shells are
{5i, 5i − 3, 5i − 6, 5i − 7, 5i − 9} and its mirror image. What is true, on whole numbers, is that
R_{i+1} = R_i ± M in the end. For a shortest way to x has fewer than M steps other than ±M: among M of them some would
add up to a multiple of M, and fewer steps of ±M would do. So beyond delta + M² every x is one step after x − M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import count
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import uniform

__all__ = ["Line", "LineShells", "Profile", "magnitudes"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Interval = tuple[int, int]

_LARGEST = (1 << 63) - 1
_FARTHEST = 1 << 62
PARTS = 4096
"""Parts of V, once those that touch are joined."""
WORK = 1 << 24
"""Intervals made on the way, about two seconds; shells that would take more are closed."""
_EACH = 512
"""What a step takes before it makes any intervals, in intervals."""
_CHUNK = 1 << 20


def magnitudes(parts: Sequence[Interval]) -> tuple[Interval, ...]:
    """The sizes of the steps, as intervals of positive whole numbers: sorted, joined where they touch, without 0."""
    sizes = [(0, max(-low, high)) if low < 0 < high else tuple(sorted((abs(low), abs(high)))) for low, high in parts]
    joined: list[Interval] = []
    for low, high in sorted((max(low, 1), high) for low, high in sizes if high > 0):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    if not joined:
        raise InvalidArgument("values", "nothing but 0", "a value other than 0", "what cannot change needs no noise")
    if len(joined) > PARTS:
        raise InvalidArgument("values", f"{len(joined)} parts", f"at most {PARTS}", "join values that lie close")
    if joined[-1][1] > 1 << 60:
        raise InvalidArgument("values", joined[-1][1], "at most 2^60 grid steps", "use a coarser grid")
    return tuple(joined)


@dataclass(frozen=True)
class Profile:
    """How much lies within i steps, for i = 0 … n: `sizes` counts it, `moments` adds up its error.

    `hull_sizes` and `hull_moments` are the same of everything as far as i longest steps can lead, as whole numbers and
    for a few more i than n: they are polynomials in i, known by their differences.
    """

    sizes: Doubles
    moments: Doubles
    hull_sizes: list[int]
    hull_moments: list[int]


@dataclass(frozen=True)
class Line:
    """What is within i steps of 0, for i = 0 … `levels`, in `unit`s, as the holes that are left on the right of 0.

    The holes of all levels stand in a row, level i's from offsets[i]: from `lows` to `highs`, both missing.
    """

    parts: tuple[Interval, ...]
    unit: int
    lows: Integers
    highs: Integers
    offsets: Integers

    @classmethod
    def of(cls, parts: Sequence[Interval], levels: int, *, work: int = WORK, strict: bool = False) -> Line:
        """Follow steps of ±v, v in one of the parts, for `levels` steps, or fewer if that would take too long.

        Too long is more than `work` intervals made on the way; with `strict` that is refused.
        """
        sizes = magnitudes(parts)
        unit = gcd(*(low for low, _ in sizes)) if all(low == high for low, high in sizes) else 1
        steps = tuple((low // unit, high // unit) for low, high in sizes)
        wanted = count("levels", levels, limit=1 << 30)
        starts, ends = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        lows, highs = [starts[:0]], [starts[:0]]
        done = 0
        while len(lows) <= wanted:
            done += _EACH + 3 * len(steps) * starts.size
            if done > work or (len(lows) + 2) * steps[-1][1] > _FARTHEST:
                if strict:
                    raise _too_long(wanted, len(lows) - 1, done)
                break
            starts, ends = _spread(starts, ends, steps)
            lows.append(ends[:-1] + 1)
            highs.append(starts[1:] - 1)
            if starts.size == 1:
                break
        offsets = np.cumsum([0, *(part.size for part in lows)], dtype=np.int64)
        return cls(steps, unit, np.concatenate(lows), np.concatenate(highs), offsets)

    @property
    def levels(self) -> int:
        """How many steps were followed."""
        return self.offsets.size - 2

    @property
    def longest(self) -> int:
        """M: the longest step, in units."""
        return self.parts[-1][1]

    @cached_property
    def radii(self) -> Sequence[int]:
        """Radii of R_0 to try first: 0, and some fifty up to M."""
        return sorted({0, *np.geomspace(1, self.longest, 48).astype(np.int64).tolist()})

    @property
    def zoom(self) -> int:
        """How many radii to try at once near the best."""
        return 8

    @property
    def filled(self) -> bool:
        """Whether nothing is missing after the last step, so that closing there changes nothing."""
        return bool(self.offsets[-1] == self.offsets[-2])

    def profile(self, delta: int, p: int) -> Profile:
        """Sizes, and sums of |x|^p in data steps, when R_0 holds what is within `delta` units of 0."""
        lows, highs = (self.lows + delta).astype(np.float64), (self.highs - delta).astype(np.float64)
        left = np.maximum(highs - lows + 1, 0.0)
        middle = (highs + lows) / 2
        sums = left * middle if p == 1 else left * (middle * middle + (left * left - 1) / 12)
        hulls = [level * self.longest + delta for level in range(self.levels + p + 4)]
        hull_sizes = [2 * hull + 1 for hull in hulls]
        scale = self.unit**p
        if p == 1:
            hull_moments = [scale * hull * (hull + 1) for hull in hulls]
        else:
            hull_moments = [scale * (hull * (hull + 1) * (2 * hull + 1) // 3) for hull in hulls]
        kept = slice(0, self.levels + 1)
        sizes = np.array(hull_sizes[kept], dtype=np.float64) - 2 * self._by_level(left)
        moments = np.array(hull_moments[kept], dtype=np.float64) - 2 * scale * self._by_level(sums)
        return Profile(sizes, moments, hull_sizes, hull_moments)

    def shells(self, delta: int, closing: int) -> LineShells:
        """The shells themselves, closed after `closing` steps."""
        radius = count("delta", delta, limit=_FARTHEST)
        last = count("closing", closing, limit=self.levels)
        starts, lengths, sizes = [np.zeros(1, dtype=np.int64)], [np.full(1, radius + 1)], [1]
        before = self._edges(0, radius)
        for level in range(1, last + 1):
            edges = self._edges(level, radius)
            ends = [(level - 1) * self.longest + radius + 1, level * self.longest + radius + 1]
            # An edge of both sets is crossed twice; what lies between odd and even crossings is in one of them only.
            crossings = np.sort(np.concatenate([before, edges, ends]))
            spans = crossings[1::2] - crossings[::2]
            starts.append(crossings[::2][spans > 0])
            lengths.append(spans[spans > 0])
            sizes.append(starts[-1].size)
            before = edges
        starts.append(before[::2])
        lengths.append(before[1::2] - before[::2])
        sizes.append(starts[-1].size)
        offsets = np.cumsum([0, *sizes], dtype=np.int64)
        return LineShells(self.parts, self.unit, radius, last, np.concatenate(starts), np.concatenate(lengths), offsets)

    def _edges(self, level: int, delta: int) -> Integers:
        """Where holes begin and end after `level` steps, ends not included."""
        part = slice(int(self.offsets[level]), int(self.offsets[level + 1]))
        lows, stops = self.lows[part] + delta, self.highs[part] - delta + 1
        left = lows < stops
        return np.stack([lows[left], stops[left]], axis=1).reshape(-1)

    def _by_level(self, values: Doubles) -> Doubles:
        padded = np.concatenate([values, [0.0]])
        sums: Doubles = np.add.reduceat(padded, self.offsets[:-1])
        sums[self.offsets[:-1] == self.offsets[1:]] = 0.0
        return sums


@dataclass(frozen=True, eq=False)
class LineShells:
    """Shells 0 … n + 1 as far as n steps lead, by the intervals of each on the right of 0: what draws are placed by.

    All is in units. Intervals stand in a row, shell i's from offsets[i]; the last are the holes that closing fills.
    Bands lie beyond: band j, which belongs to shell n + 1 + j, holds the M numbers after n·M + delta + j·M.
    """

    parts: tuple[Interval, ...]
    unit: int
    delta: int
    closing: int
    starts: Integers
    lengths: Integers
    offsets: Integers

    dimension = 1

    @property
    def longest(self) -> int:
        """M: the longest step."""
        return self.parts[-1][1]

    @property
    def hull(self) -> int:
        """The farthest number that `closing` steps lead to."""
        return self.closing * self.longest + self.delta

    @cached_property
    def sizes(self) -> list[int]:
        """How many numbers the shells hold, bands not included."""
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        halves = np.diff(ends[self.offsets]).tolist()
        return [2 * self.delta + 1, *(2 * half for half in halves[1:])]

    @property
    def bands(self) -> tuple[int, ...]:
        """The size of band j by its differences at j = 0: all bands are alike."""
        return (2 * self.longest,)

    def place(self, levels: Integers, ranks: Integers) -> Integers:
        """The number with that rank in that shell, in data steps."""
        ends = np.cumsum(self.lengths)
        before = np.concatenate([[0], ends])[self.offsets[levels]]
        inner = levels == 0
        targets = before + np.where(inner, 0, ranks >> 1)
        pieces = np.searchsorted(ends, targets, side="right")
        sizes = self.starts[pieces] + targets - (ends[pieces] - self.lengths[pieces])
        places = np.where(inner, ranks - self.delta, np.where(ranks & 1, -sizes, sizes))
        return self._scaled(places)

    def place_in_bands(self, turns: Integers, source: Entropy) -> Integers:
        """Uniform numbers of the bands with these indices, in data steps; held within int64."""
        offsets = uniform(2 * self.longest, turns.size, entropy=source)
        signs = np.where(offsets & 1, -1, 1)
        rest = self.hull + 1 + (offsets >> 1)
        beyond = turns > (_LARGEST - rest) // self.longest
        sizes = np.where(beyond, _LARGEST, np.where(beyond, 0, turns) * self.longest + rest)
        return self._scaled(signs * sizes)

    def _scaled(self, places: Integers) -> Integers:
        limit = _LARGEST // self.unit
        scaled: Integers = np.clip(places, -limit, limit) * self.unit
        return np.where(np.abs(places) > limit, np.sign(places) * _LARGEST, scaled)

    def reach(self, turns: int) -> int:
        """The farthest number before band `turns`, in data steps."""
        return (self.hull + turns * self.longest) * self.unit

    def level(self, places: object) -> Integers:
        """The shell of numbers, in units."""
        distances = np.abs(np.asarray(places, dtype=np.int64))
        starts, levels = self._sorted
        inside = levels[np.minimum(np.searchsorted(starts, distances, side="right"), starts.size) - 1]
        turns = (distances - self.hull - 1) // self.longest
        return np.where(distances > self.hull, self.closing + 1 + turns, inside)

    def steepest(self) -> int:
        """The most by which one step of V raises the shell, measured on the intervals that draws are placed by: 1.

        Bands beyond the second are as far from each other as the first two.
        """
        starts, levels = self._sorted
        bands = self.hull + 1 + self.longest * np.arange(4)
        starts, levels = np.append(starts, bands), np.append(levels, self.closing + 1 + np.arange(4))
        stops = np.append(starts[1:], bands[-1] + self.longest)
        highest = _Highest(levels)
        from_here = starts <= self.hull + self.longest
        first, last, here = starts[from_here], stops[from_here] - 1, levels[from_here]
        most = 0
        for low, high in self.parts:
            for nearest, farthest in ((first + low, last + high), (first - high, last - low)):
                straddles = (nearest <= 0) & (farthest >= 0)
                ends = np.sort(np.abs(np.stack([nearest, farthest])), axis=0)
                left = np.searchsorted(starts, np.where(straddles, 0, ends[0]), side="right") - 1
                right = np.searchsorted(starts, ends[1], side="right") - 1
                most = max(most, int((highest.between(left, right) - here).max()))
        return most

    def radius(self, tail: float, weights: Doubles) -> int | None:
        """A number that |noise| exceeds with probability at most `tail`, in data steps, if it is within the hull.

        `weights` are the probabilities of one number of each shell; the last is that of everything beyond the hull.
        """
        order = np.argsort(self.starts)
        starts, lengths = self.starts[order], self.lengths[order].astype(np.float64)
        each = 2 * weights[np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))[order]]
        beyond = weights[-1] + np.cumsum((each * lengths)[::-1])[::-1]
        after = np.append(beyond[1:], weights[-1])
        if after[-1] > tail:
            return None
        piece = int(np.argmax(after <= tail))
        spared = min(int((tail - after[piece]) / each[piece]), int(lengths[piece]) - 1)
        return (int(starts[piece]) + int(lengths[piece]) - 1 - spared) * self.unit

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.starts)
        levels = np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))
        return self.starts[order], levels[order]


class _Highest:
    """The largest of any stretch of a row of numbers, from the largest of each stretch whose length is a power of 2."""

    def __init__(self, numbers: Integers) -> None:
        self._rows = [numbers.astype(np.int32)]
        width = 1
        while 2 * width <= numbers.size:
            row = self._rows[-1]
            self._rows.append(np.maximum(row[:-width], row[width:]))
            width *= 2

    def between(self, first: Integers, last: Integers) -> Integers:
        """The largest from each first to each last place, both included."""
        powers = np.frexp((last - first + 1).astype(np.float64))[1] - 1
        found = np.zeros(first.size, dtype=np.int64)
        for power in np.unique(powers).tolist():
            here = powers == power
            row = self._rows[power]
            found[here] = np.maximum(row[first[here]], row[last[here] + 1 - (1 << power)])
        return found


def _spread(starts: Integers, ends: Integers, parts: tuple[Interval, ...]) -> tuple[Integers, Integers]:
    """One step on: the right half of what any ±v of the parts reaches from intervals and their mirror images."""
    room = max(1, _CHUNK // starts.size)
    made = [(starts, ends)]
    for place in range(0, len(parts), room):
        lows, highs = (np.array(side, dtype=np.int64) for side in zip(*parts[place : place + room], strict=True))
        out = (starts + lows[:, None], ends + highs[:, None])
        back = (starts - highs[:, None], ends - lows[:, None])
        mirrored = (-back[1], -back[0])
        reached = [(low.reshape(-1), high.reshape(-1)) for low, high in (out, back, mirrored)]
        made.append(_union([*made[-1:], *reached] if place else [*made, *reached]))
    return made[-1]


def _union(sets: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Intervals joined where they touch, from 0 on."""
    starts, ends = (np.concatenate(side) for side in zip(*sets, strict=True))
    right = ends >= 0
    starts, ends = np.maximum(starts[right], 0), ends[right]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    first = np.append(True, starts[1:] > ends[:-1] + 1)
    return starts[first], ends[np.append(np.flatnonzero(first)[1:] - 1, starts.size - 1)]


def _too_long(wanted: int, followed: int, work: int) -> InvalidArgument:
    found = f"{wanted} (more than {work / max(followed, 1) * wanted:.1g} intervals)"
    return InvalidArgument("levels", found, f"at most {followed} ({work:.1g} intervals)", "close the shells earlier")

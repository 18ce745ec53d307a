"""Shells round (0, 0) in the plane, on bitmaps.

The same construction as `noise.shells` for two numbers at once: V is a union of boxes of whole numbers, and one record
moves both numbers by some ±v together. R_0 is the ball of radius `delta` in ℓ1 or ℓ2, R_i what one more step ±v
reaches. Shells are closed after n steps: what is missing of the box that n steps can lead to, and a frame as wide as
the longest step in either direction, is shell n + 1; each further frame is one shell more. One step changes neither
coordinate by more than a frame is wide, so it changes the shell by at most one.

>>> plane = Plane.of([((0, 0), (1, 1)), ((5, 5), (0, 0))], levels=6)      # either the one moves by 1 or the other by 5
>>> plane.units, plane.longest
((5, 1), (1, 1))
>>> plane.shells(delta=1, closing=6).level([(0, 0), (0, 3), (2, 1), (2, 2)]).tolist()
[0, 2, 2, 3]

Bitmaps have at most 2²⁰ points, so steps may be some hundred units long; each coordinate has a unit of its own, the
divisor that its steps have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, isqrt
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import count
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.neighbour_sets.line import Interval, Profile
from discreet.noise.reference import uniform as uniform_integer

__all__ = ["Plane", "PlaneShells"]

Box = tuple[Interval, Interval]
Pair = tuple[int, int]
Bitmap = np.ndarray[Any, np.dtype[np.bool_]]
Doubles = np.ndarray[Any, np.dtype[np.float64]]

_LARGEST = (1 << 63) - 1
CELLS = 1 << 20
WORK = 1 << 28
"""Points looked at on the way, a few tenths of a second; shells that would take more are closed."""
BOXES = 256
_MOST = 512
"""Each step adds at least two rows and two columns to a bitmap, which has at most 2²⁰ points."""


@dataclass(frozen=True)
class Plane:
    """Steps to be followed in the plane, in units; `norm` is 1 or 2, that of the ball R_0."""

    boxes: tuple[Box, ...]
    units: Pair
    levels: int
    norm: int = 1

    @classmethod
    def of(cls, boxes: Sequence[Box], levels: int, norm: int = 1, *, strict: bool = False) -> Plane:
        """Follow ±v, v in one of the boxes, for `levels` steps, or fewer if that would take too long.

        With `strict` too much work is refused.
        """
        wanted = count("levels", levels, limit=1 << 30)
        kept = sorted({box for box in boxes if any(side != (0, 0) for side in box)})
        if not all(any(box[axis] != (0, 0) for box in kept) for axis in (0, 1)):
            raise InvalidArgument("values", "a fixed number", "steps of both numbers", "what is fixed needs no noise")
        if len(kept) > BOXES:
            raise InvalidArgument("values", f"{len(kept)} parts", f"at most {BOXES} in the plane", "join some of them")
        units = _unit(kept, 0), _unit(kept, 1)
        steps = tuple(((x[0] // units[0], x[1] // units[0]), (y[0] // units[1], y[1] // units[1])) for x, y in kept)
        plane = cls(steps, units, 0, norm)
        if plane._cells(1, 0) > CELLS:
            raise InvalidArgument(
                "values", plane.longest, f"steps that lead to at most {CELLS:,} points", "use a coarser grid"
            )
        reachable = next(level for level in range(min(wanted, _MOST), -1, -1) if plane._affordable(level))
        if strict and reachable < wanted:
            found = f"{wanted} ({plane._cells(wanted, 0):,} points)"
            raise InvalidArgument(
                "levels", found, f"at most {reachable} ({CELLS:,} points)", "close the shells earlier"
            )
        return cls(steps, units, reachable, norm)

    @cached_property
    def longest(self) -> Pair:
        """The longest step in either direction."""
        x, y = (max(abs(end) for box in self.boxes for end in box[axis]) for axis in (0, 1))
        return x, y

    @cached_property
    def radii(self) -> Sequence[int]:
        """Radii of R_0 to try first, in data steps: multiples of the smaller unit."""
        unit, widest = min(self.units), self._widest
        return sorted({0, *(unit * step for step in np.geomspace(1, max(widest // unit, 1), 8).astype(int).tolist())})

    @property
    def zoom(self) -> int:
        """How many radii to try at once near the best."""
        return 2

    @property
    def _widest(self) -> int:
        """The largest radius to try, in data steps: half the longest step, if as many points are to be had."""
        return max(step * unit for step, unit in zip(self.longest, self.units, strict=True)) // 2

    def profile(self, delta: int, p: int) -> Profile:
        """Sizes, and sums of |x|^p + |y|^p in data steps."""
        levels = _levels(self, delta)
        weights = self._errors(levels.shape, p)
        kept = levels.reshape(-1) <= self.levels
        places = levels.reshape(-1)[kept]
        sizes = np.cumsum(np.bincount(places, minlength=self.levels + 1)).astype(np.float64)
        moments = np.cumsum(np.bincount(places, weights.reshape(-1)[kept], minlength=self.levels + 1), dtype=np.float64)
        hulls = [self._hull(level, delta) for level in range(self.levels + p + 6)]
        return Profile(sizes, moments, [(2 * a + 1) * (2 * b + 1) for a, b in hulls], [self._sum(h, p) for h in hulls])

    def shells(self, delta: int, closing: int) -> PlaneShells:
        """The shells themselves, closed after `closing` steps."""
        last = count("closing", closing, limit=self.levels)
        levels = _levels(self, count("delta", delta, limit=_LARGEST))
        hull = self._hull(last, delta)
        centre = levels.shape[0] // 2, levels.shape[1] // 2
        inner = levels[centre[0] - hull[0] : centre[0] + hull[0] + 1, centre[1] - hull[1] : centre[1] + hull[1] + 1]
        return PlaneShells(self.boxes, self.units, self.longest, delta, last, np.minimum(inner, last + 1))

    def _hull(self, level: int, delta: int) -> Pair:
        a, b = (level * step + delta // unit for step, unit in zip(self.longest, self.units, strict=True))
        return a, b

    def _cells(self, level: int, delta: int) -> int:
        a, b = self._hull(level, delta)
        return (2 * a + 1) * (2 * b + 1)

    def _affordable(self, level: int) -> bool:
        cells = self._cells(level, self._widest)
        return level == 0 or (cells <= CELLS and 8 * cells * level * len(self.boxes) <= WORK) or level == 1

    def _errors(self, shape: tuple[int, ...], p: int) -> Doubles:
        sides = (np.abs(np.arange(size) - size // 2) * unit for size, unit in zip(shape, self.units, strict=True))
        x, y = (side.astype(np.float64) ** p for side in sides)
        return x[:, None] + y[None, :]

    def _sum(self, hull: Pair, p: int) -> int:
        """Σ |x|^p + |y|^p over a box."""

        def line(end: int) -> int:
            return end * (end + 1) if p == 1 else end * (end + 1) * (2 * end + 1) // 3

        a, b = hull
        x, y = (unit if p == 1 else unit * unit for unit in self.units)
        return x * line(a) * (2 * b + 1) + y * line(b) * (2 * a + 1)


@dataclass(frozen=True, eq=False)
class PlaneShells:
    """Closed shells: the shell of every point of the box that `closing` steps lead to."""

    boxes: tuple[Box, ...]
    units: Pair
    longest: Pair
    delta: int
    closing: int
    levels: Integers

    dimension = 2

    @property
    def hull(self) -> Pair:
        """The ends of the box."""
        return self.levels.shape[0] // 2, self.levels.shape[1] // 2

    @cached_property
    def sizes(self) -> list[int]:
        """Points of shells 0 … n + 1, frames not included."""
        counts: list[int] = np.bincount(self.levels.reshape(-1), minlength=self.closing + 2).tolist()
        return counts

    @property
    def bands(self) -> tuple[int, ...]:
        """The size of frame j by its differences at j = 0."""
        first, second, third = (self._box(turns) for turns in range(3))
        return second - first, third - 2 * second + first

    def place(self, levels: Integers, ranks: Integers) -> Integers:
        """The point with that rank in that shell, in data steps."""
        order, starts = self._order
        places = np.stack(np.divmod(order[starts[levels] + ranks], self.levels.shape[1]), axis=1)
        points: Integers = (places - np.array(self.hull)) * np.array(self.units)
        return points

    def place_in_bands(self, turns: Integers, source: Entropy) -> Integers:
        """Uniform points of frames, one by one in whole numbers of any size; held within int64."""
        return np.array([self._in_frame(turn, source) for turn in turns.tolist()], dtype=np.int64).reshape(-1, 2)

    def reach(self, turns: int) -> int:
        """What neither coordinate exceeds before frame `turns`, in data steps."""
        return max(unit * end for unit, end in zip(self.units, self._ends(turns), strict=True))

    def level(self, places: object) -> Integers:
        """The shell of points, in units."""
        points = np.asarray(places, dtype=np.int64).reshape(-1, 2)
        hull, longest = np.array(self.hull), np.array(self.longest)
        turns = (-((hull - np.abs(points)) // longest)).max(axis=1)
        inside = np.clip(points, -hull, hull) + hull
        found: Integers = np.where(turns > 0, self.closing + turns, self.levels[inside[:, 0], inside[:, 1]])
        return found

    def steepest(self) -> int:
        """The most by which one step of V raises the shell, looked up point by point: 1."""
        margins = [2 * step for step in self.longest]
        a, b = (end + margin for end, margin in zip(self.hull, margins, strict=True))
        grid = np.stack(np.meshgrid(np.arange(-a, a + 1), np.arange(-b, b + 1), indexing="ij"), axis=-1)
        levels = self.level(grid).reshape(grid.shape[:2])
        # Up to one frame out; the rest is only led to.
        near = [slice(step, size - step) for step, size in zip(self.longest, (2 * a + 1, 2 * b + 1), strict=True)]
        here = levels[near[0], near[1]]
        most = 0
        for box in self.boxes:
            for x in range(box[0][0], box[0][1] + 1):
                for y in range(box[1][0], box[1][1] + 1):
                    moved = levels[near[0].start + x : near[0].stop + x, near[1].start + y : near[1].stop + y]
                    most = max(most, int(np.abs(moved - here).max()))
        return most

    def radius(self, tail: float, weights: Doubles) -> int | None:
        """What neither coordinate exceeds but with probability `tail`, in data steps, if it is within the hull."""
        x, y = (np.abs(np.arange(-end, end + 1)) * unit for end, unit in zip(self.hull, self.units, strict=True))
        distances = np.maximum(x[:, None], y[None, :]).reshape(-1)
        order = np.argsort(distances)
        beyond = weights[-1] + np.append(np.cumsum(weights[self.levels.reshape(-1)[order]][::-1])[::-1], 0.0)
        # After the last point of a distance only what is farther remains.
        farther = beyond[np.searchsorted(distances[order], distances[order], side="right")]
        if farther[-1] > tail:
            return None
        return int(distances[order][np.argmax(farther <= tail)])

    def _ends(self, turns: int) -> Pair:
        a, b = (end + turns * step for end, step in zip(self.hull, self.longest, strict=True))
        return a, b

    def _box(self, turns: int) -> int:
        a, b = self._ends(turns)
        return (2 * a + 1) * (2 * b + 1)

    def _in_frame(self, turns: int, source: Entropy) -> Pair:
        (a, b), (c, d) = self._ends(turns), self._ends(turns + 1)
        # Two strips left and right as high as the outer box, then two above and below as wide as the inner.
        rank = uniform_integer(self._box(turns + 1) - self._box(turns), source)
        strips = 2 * (c - a) * (2 * d + 1)
        if rank < strips:
            column, row = divmod(rank, 2 * d + 1)
            x, y = (a + 1 + column // 2) * (1 if column % 2 else -1), row - d
        else:
            row, column = divmod(rank - strips, 2 * a + 1)
            x, y = column - a, (b + 1 + row // 2) * (1 if row % 2 else -1)
        first, second = (
            max(-_LARGEST, min(end * unit, _LARGEST)) for end, unit in zip((x, y), self.units, strict=True)
        )
        return first, second

    @cached_property
    def _order(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.levels.reshape(-1), kind="stable")
        return order, np.cumsum([0, *self.sizes])


@lru_cache(maxsize=4)
def _levels(plane: Plane, delta: int) -> Integers:
    """The shell of every point that `plane.levels` steps can lead to; one more than that where they do not."""
    hull = plane._hull(plane.levels, delta)
    sides = [np.abs(np.arange(-end, end + 1)) * unit for end, unit in zip(hull, plane.units, strict=True)]
    if plane.norm == 1:
        reached = sides[0][:, None] + sides[1][None, :] <= delta
    else:
        reached = sides[1][None, :] <= np.array([isqrt(max(delta**2 - int(x) ** 2, 0)) for x in sides[0]])[:, None]
        reached &= sides[0][:, None] <= delta
    levels = np.where(reached, 0, plane.levels + 1)
    for level in range(1, plane.levels + 1):
        before, reached = reached, reached.copy()
        for x, y in plane.boxes:
            moved = _swept(_swept(before, x, 0), y, 1)
            reached |= moved
            reached |= moved[::-1, ::-1]
        levels[reached & ~before] = level
        if reached.all():
            break
    return levels


def _swept(reached: Bitmap, interval: Interval, axis: int) -> Bitmap:
    """What any shift of the interval along the axis reaches, in doubling strides."""
    low, high = interval
    swept, width = _shifted(reached, low, axis), 1
    while width < high - low + 1:
        stride = min(width, high - low + 1 - width)
        swept = swept | _shifted(swept, stride, axis)
        width += stride
    return swept


def _shifted(reached: Bitmap, by: int, axis: int) -> Bitmap:
    moved = np.zeros_like(reached)
    size = reached.shape[axis]
    if abs(by) < size:
        target, origin = [slice(None), slice(None)], [slice(None), slice(None)]
        target[axis] = slice(max(by, 0), size + min(by, 0))
        origin[axis] = slice(max(-by, 0), size + min(-by, 0))
        moved[tuple(target)] = reached[tuple(origin)]
    return moved


def _unit(boxes: Sequence[Box], axis: int) -> int:
    """The divisor that all steps along the axis have in common."""
    points = all(box[axis][0] == box[axis][1] for box in boxes)
    return gcd(*(box[axis][0] for box in boxes)) or 1 if points else 1

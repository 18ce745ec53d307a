"""The neighbour-set mechanism: noise by what one record can add, not only by the most it can add.

Where records hold some values and not others (salary bands, prices, two tariffs), sums of neighbouring data sets
differ by ±v with v in the set V of those values. Noise is then as likely on all numbers that take equally many steps ±v
to reach from near 0, and e^ε times less likely for every step more.

Guarantee: if sums of neighbours differ by ±v, v in `values` (for `neighbours="replace"` by the difference of two of
them), and are within ±`limit`, the release is ε-DP, since a step more or less is all that one record makes
(`noise.shells` has the argument). `total` sees to both: every record is moved to a value, and all are added up exactly,
however large the sum. Who brings a sum of their own moves the records with `nearest`; whole numbers then add up
exactly, and for doubles see below.

>>> bonus = NeighbourSet(epsilon=2, values=(0, 500, 10_000))        # nobody, most, a few
>>> bonus.loss, round(bonus.mean_error), round(bonus.staircase_error)
(PureDP(epsilon=2), 2862, 4255)
>>> bonus.nearest([480, 9000, -3, 10**9]).tolist()
[500, 10000, 0, 10000]
>>> release = bonus.release(bonus.total([480] * 500 + [9000] * 100))
>>> int(release.values) % 500, release.loss
(0, PureDP(epsilon=2))

Intervals as in (0, 100) are allowed beside single values. Steps with a common divisor get noise that is a multiple of
it, as here of 500. The radius round 0 and the number of shells are chosen for the least mean error; staircase noise,
on the same multiples, is among the choices.

Reals (`real=True`) are added up first and rounded to the grid after, half up. What is v apart before is ⌊v/step⌋ to
⌈v/step⌉ steps apart after, and that is all for `total`, whose sums are exact: of whole numbers on a grid 2⁴⁰ times
finer, whose ends of ranges lie between the same two steps. A sum of doubles is not exact. If it is e off, and the
neighbour's e′, they are v + e′ − e apart, so every range of V is wider by one step on both sides, which is right as
long as **no sum of doubles is off by more than half a step**. That goes for the value 0 too: a record of 0 may change
the order in which doubles are added. Half a step is a 2²²nd of the largest value at least, so `math.fsum` keeps to it
for 2³¹ records, and addition one by one for 46 000; `total` does for all.

With `exact_sums=True` only what `total` returned is released, and no range is wider. On the line that matters little
(at most 5 % of the mean error at ε = 8); for pairs of reals, whose grid is coarse, the error is up to several times
smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any, Literal, cast, get_args

import numpy as np

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.arrays import reals, whole
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, exact, natural, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import float_up
from discreet.core.units import Neighbours
from discreet.mechanisms.additive import END, flag, from_steps, saturating_sum, to_steps
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.grid import INTEGERS, Grid
from discreet.noise.neighbour_sets.line import PARTS, Interval, Line, LineShells
from discreet.noise.neighbour_sets.plane import Plane, PlaneShells
from discreet.noise.neighbour_sets.sampler import SLACK, Choice, ShellLaw, best, epsilon_argument, mean_errors

__all__ = ["NeighbourSet", "Total"]

Range = tuple[Fraction, Fraction]

_STEPS = {1: 1 << 20, 2: 64}
"""Grid steps in the largest value of a real number, and of a pair of them, which are kept on bitmaps."""
_FINER, _FINEST = 40, -1000
"""Reals are added up on a grid 2⁴⁰ times finer, where values are below 2⁶² steps, but no finer than 2⁻¹⁰⁰⁰."""
_HALF, _CHUNK = 32, 1 << 30
_WEIGHT, _SHELLS = 64, 4096
"""Shells are followed to where they weigh e^−64, as long as there are at most 4096. Below ε = 0.01 staircase noise is
about as good as any."""
WORK = 1 << 21
"""Intervals made while shells are followed, so that choosing among them takes some seconds at most."""


@dataclass(frozen=True)
class Total:
    """An exact sum of records that hold `values`, rounded to the grid: whole steps for each coordinate."""

    steps: tuple[int, ...] = field(repr=False)
    values: tuple[object, ...]
    grid: Grid


@dataclass(frozen=True)
class NeighbourSet:
    """Shell noise on a number, or with `dimension=2` on a pair of them, to which one record adds one of `values`.

    Each value is a number or a pair (low, high) of them, for all numbers between; with `dimension=2` a pair of such,
    one for each coordinate. With `p=1` E|noise| is least, with `p=2` E[noise²], summed over coordinates.
    """

    epsilon: Fraction
    values: tuple[object, ...]
    p: Literal[1, 2] = 1
    neighbours: Neighbours = "add_remove"
    dimension: Literal[1, 2] = 1
    real: bool = False
    exact_sums: bool = False
    work: int = WORK
    """How many intervals may be made while shells are followed, on the line: with fewer they are closed earlier."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_argument(positive("epsilon", self.epsilon)))
        for name, number in (("p", self.p), ("dimension", self.dimension)):
            if isinstance(number, bool) or number not in (1, 2):
                raise InvalidArgument(name, number, "1 or 2", "name one of the two")
        if self.neighbours not in get_args(Neighbours):
            raise InvalidArgument("neighbours", self.neighbours, "'add_remove' or 'replace'", "name one of the two")
        flag("real", self.real)
        flag("exact_sums", self.exact_sums)
        natural("work", self.work)
        object.__setattr__(self, "values", _values(self.values, self.dimension))
        if not self.real and any(end.denominator > 1 for part in self._parts for side in part for end in side):
            raise InvalidArgument("values", "a fraction", "whole numbers", "set real=True")
        for room in {0, self._room}:
            self._follow(0, room)

    @cached_property
    def grid(self) -> Grid:
        """The integers; for a real 2²⁰ steps to the largest value, for a pair of reals 64."""
        if not self.real:
            return INTEGERS
        largest = max(abs(end) for part in self._parts for side in part for end in side)
        return Grid.finer_than(largest or 1, _STEPS[self.dimension])

    @cached_property
    def space(self) -> Line | Plane:
        """The steps of one record, as far as they were followed."""
        return self._follow(min(ceil(_WEIGHT / self.epsilon), _SHELLS), self._room)

    @cached_property
    def choice(self) -> Choice:
        """The radius of the first shell and how many were followed, for the least mean error."""
        return best(self.space, self.epsilon, self.p)

    @cached_property
    def shells(self) -> LineShells | PlaneShells:
        """The shells that noise is drawn from."""
        return self.space.shells(self.choice.delta, self.choice.closing)

    @cached_property
    def law(self) -> ShellLaw:
        """The law of the noise, in steps of the grid."""
        return ShellLaw(self.shells, self.epsilon)

    @property
    def unit(self) -> Fraction | tuple[Fraction, ...]:
        """What noise is a multiple of: for a pair, each coordinate has its own."""
        found = self.space.unit if isinstance(self.space, Line) else self.space.units
        return found * self.grid.step if isinstance(found, int) else tuple(part * self.grid.step for part in found)

    @cached_property
    def events(self) -> tuple[events.Pure]:
        """What `release` will run."""
        return (events.Pure(self.epsilon),)

    @cached_property
    def loss(self) -> PureDP:
        """ε."""
        return pure(self.events[0])

    @cached_property
    def mean_error(self) -> float:
        """E|noise|, summed over coordinates."""
        return self._moment(1, self.choice, self.space)

    @cached_property
    def mean_square(self) -> float:
        """E[noise²], summed over coordinates."""
        return self._moment(2, self.choice, self.space)

    @cached_property
    def staircase_error(self) -> float:
        """E|noise| of the best noise that knows only the most a record can add: a staircase, in the plane of boxes."""
        longest = self.space.longest
        if isinstance(longest, int):
            plain: Line | Plane = Line.of([(0, longest * cast(Line, self.space).unit)], 1)
        else:
            x, y = (step * unit for step, unit in zip(longest, cast(Plane, self.space).units, strict=True))
            plain = Plane.of([((-x, x), (-y, y))], 1)
        return self._moment(1, best(plain, self.epsilon, 1), plain)

    @cached_property
    def limit(self) -> float:
        """Answers are held within plus and minus this, and sums are to be: those held are closer than by a value."""
        return float(END * self.grid.step)

    def accuracy(self, beta: Exactable, size: int = 1) -> float:
        """With probability 1 − β, all of `size` releases are within this of the truth, in every coordinate.

        For reals one step of that is for rounding: half of it to the grid, half for how far the sum may be off.
        """
        tail = probability("beta", beta) / natural("size", size)
        return float_up((self.law.radius(tail) + int(self.real)) * self.grid.step)

    def nearest(self, records: object) -> np.ndarray[Any, np.dtype[Any]]:
        """Each record moved to the nearest of the values (the smaller of two as near), from 0 where it is NaN.

        With `dimension=2` records are rows of two, and distances are added over coordinates.
        """
        given = np.nan_to_num(reals("records", records), nan=0.0) if self.real else whole("records", records)
        if self.dimension == 2 and given.size and (given.ndim != 2 or given.shape[1] != 2):
            raise InvalidArgument("records", f"an array of {given.ndim} axes", "rows of two", "give one row per record")
        rows = given.reshape(-1, self.dimension)
        kind = float if self.real else int
        lows, highs = (
            np.array([[kind(side[end]) for side in part] for part in self._parts])[:, None, :] for end in (0, 1)
        )
        held = np.clip(rows, lows.min(axis=0), highs.max(axis=0))
        near = np.clip(held, lows, highs)
        closest = np.argmin(np.abs(near - held).sum(axis=2), axis=0)
        found: np.ndarray[Any, np.dtype[Any]] = near[closest, np.arange(len(rows))]
        return found if self.dimension == 2 else found.reshape(given.shape)

    def total(self, records: object) -> Total:
        """The sum of the records, each moved to the nearest of the values: exact, and then rounded to the grid.

        A record is itself rounded to 2⁻⁴¹ of a step, which adds up to half a step for 2⁴⁰ records.
        """
        near = self.nearest(records).reshape(-1, self.dimension)
        fine = Grid(max(self.grid.exponent - _FINER, _FINEST)) if self.real else self.grid
        shift = self.grid.exponent - fine.exponent
        sums = [_exact_sum(column) for column in fine.steps(near).T]
        return Total(tuple((value + (1 << shift >> 1)) >> shift for value in sums), self.values, self.grid)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """What `total` returned, or a number, or a pair, with noise."""
        if isinstance(data, Total):
            if (data.values, data.grid) != (self.values, self.grid):
                raise InvalidArgument("data", "a total of other values", "one of these values", "use `total` of this")
            source = chosen(entropy)
            drawn = np.atleast_1d(self.law.draw(None if self.dimension == 2 else (), entropy=source)).tolist()
            # Held at the ends after the noise: sums held before it need not differ by what a record can add.
            noisy = [max(-END, min(a + b, END)) for a, b in zip(data.steps, drawn, strict=True)]
            held = np.array(noisy if self.dimension == 2 else noisy[0], dtype=np.int64)
            values = from_steps(held, self.grid, self.real)
            return Release(values, self.loss, self.events, self.accuracy, source.private, self.limit)
        if self.exact_sums:
            raise InvalidArgument("data", type(data).__name__, "what `total` returned", "use `total`, or no exact_sums")
        else:
            steps = to_steps(data, self.grid, self.real, self.dimension)
        if self.dimension == 2 and steps.shape != (2,):
            raise InvalidArgument("data", f"{steps.size} numbers", "2 numbers", "give a pair")
        source = chosen(entropy)
        noise = self.law.draw(None if self.dimension == 2 else steps.shape, entropy=source)
        values = from_steps(saturating_sum(steps, noise), self.grid, self.real)
        return Release(values, self.loss, self.events, self.accuracy, source.private, self.limit)

    @property
    def _parts(self) -> tuple[tuple[Range, ...], ...]:
        """The values as one range for each coordinate."""
        if self.dimension == 1:
            return tuple((part,) for part in cast(tuple[Range, ...], self.values))
        return cast(tuple[tuple[Range, ...], ...], self.values)

    def _moment(self, p: int, choice: Choice, space: Line | Plane) -> float:
        row = mean_errors(space.profile(choice.delta, p), [float(self.epsilon)])[0]
        return float_up(Fraction(float(row[choice.closing])) * Fraction(1 + SLACK) * self.grid.step**p)

    @property
    def _room(self) -> int:
        """By how many steps ranges are wider, for sums that are off by half a step."""
        return int(self.real and not self.exact_sums)

    def _follow(self, levels: int, room: int) -> Line | Plane:
        """How sums of neighbours differ, in steps of the grid, rounded outwards and by `room` steps more."""
        if self.neighbours == "replace":
            if len(self._parts) ** 2 > PARTS:
                raise InvalidArgument(
                    "values", f"{len(self._parts)} parts", "at most 64 to replace", "join some of them"
                )
            moves = [
                tuple((a[0] - b[1], a[1] - b[0]) for a, b in zip(new, old, strict=True))
                for new in self._parts
                for old in self._parts
            ]
        else:
            moves = list(self._parts)
        step = self.grid.step
        boxes = [tuple((floor(low / step) - room, ceil(high / step) + room) for low, high in move) for move in moves]
        if self.dimension == 1:
            return Line.of([box[0] for box in boxes], levels, work=self.work)
        return Plane.of(cast(list[tuple[Interval, Interval]], boxes), levels, self.p)


def _exact_sum(column: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """The upper and the lower halves of the numbers are added apart, up to 2³⁰ at a time: neither leaves int64."""
    chunks = [column[start : start + _CHUNK] for start in range(0, column.size, _CHUNK)]
    return sum((int((part >> _HALF).sum()) << _HALF) + int((part & (1 << _HALF) - 1).sum()) for part in chunks)


def _values(values: object, dimension: int) -> tuple[object, ...]:
    """Each value as (low, high), or in the plane as a pair of such."""
    if isinstance(values, str | bytes) or not isinstance(values, list | tuple | set | frozenset | np.ndarray | range):
        raise InvalidArgument("values", type(values).__name__, "a list of values", "list what a record can add")
    if len(values) == 0:
        raise InvalidArgument("values", "nothing", "at least one value", "list what a record can add")
    if len(values) > PARTS:
        raise InvalidArgument("values", f"{len(values)} values", f"at most {PARTS}", "join values that lie close")
    if dimension == 1:
        return tuple(sorted(_range(value) for value in values))
    pairs = []
    for value in values:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise InvalidArgument("values", value, "a pair for each value", "give one range or number per coordinate")
        pairs.append((_range(value[0]), _range(value[1])))
    return tuple(sorted(pairs))


def _range(value: object) -> Range:
    if not isinstance(value, list | tuple):
        number = exact("values", value)
        return number, number
    if len(value) != 2:
        raise InvalidArgument("values", value, "a number or a pair (low, high)", "give the two ends of the range")
    low, high = (exact("values", end) for end in value)
    if low > high:
        raise InvalidArgument("values", value, "a pair with low ≤ high", "exchange the ends")
    return low, high

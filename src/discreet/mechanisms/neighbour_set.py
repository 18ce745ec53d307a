"""The neighbour-set mechanism: noise by what one record can add, not only by the most it can add.

Where records hold some values and not others (salary bands, prices, two tariffs), sums of neighbouring data sets
differ by ±v with v in the set V of those values. Noise is then as likely on all numbers that take equally many steps ±v
to reach from near 0, and e^ε times less likely for every step more.

Guarantee: if sums of neighbours differ by ±v, v in `values` (for `neighbours="replace"` by the difference of two of
them), the release is ε-DP, since a step more or less is all that one record makes (`noise.shells` has the argument).
The caller sees to it that every record holds one of the values: `nearest` does that for numbers.

>>> bonus = NeighbourSet(epsilon=2, values=(0, 500, 10_000))        # nobody, most, a few
>>> bonus.loss, round(bonus.mean_error), round(bonus.staircase_error)
(PureDP(epsilon=2), 2862, 4255)
>>> bonus.nearest([480, 9000, -3, 10**9]).tolist()
[500, 10000, 0, 10000]
>>> release = bonus.release(1_250_000)
>>> int(release.values) % 500, release.loss
(0, PureDP(epsilon=2))

Intervals as in (0, 100) are allowed beside single values. Steps with a common divisor get noise that is a multiple of
it, as here of 500. The radius round 0 and the number of shells are chosen for the least mean error; staircase noise,
on the same multiples, is among the choices.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from discreet.noise.neighbour_set import SLACK, Choice, ShellLaw, best, epsilon_argument, mean_errors
from discreet.noise.plane import Plane, PlaneShells
from discreet.noise.shells import PARTS, Interval, Line, LineShells

__all__ = ["NeighbourSet"]

Range = tuple[Fraction, Fraction]

_STEPS = {1: 1 << 20, 2: 64}
"""Grid steps in the largest value of a real number, and of a pair of them, which are kept on bitmaps."""
_WEIGHT, _SHELLS, _WORK = 64, 4096, 1 << 21
"""Shells are followed to where they weigh e^−64, as long as there are at most 4096 and choosing among them takes some
seconds at most. Below ε = 0.01 staircase noise is about as good as any."""


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", epsilon_argument(positive("epsilon", self.epsilon)))
        for name, number in (("p", self.p), ("dimension", self.dimension)):
            if isinstance(number, bool) or number not in (1, 2):
                raise InvalidArgument(name, number, "1 or 2", "name one of the two")
        if self.neighbours not in get_args(Neighbours):
            raise InvalidArgument("neighbours", self.neighbours, "'add_remove' or 'replace'", "name one of the two")
        flag("real", self.real)
        object.__setattr__(self, "values", _values(self.values, self.dimension))
        if not self.real and any(end.denominator > 1 for part in self._parts for side in part for end in side):
            raise InvalidArgument("values", "a fraction", "whole numbers", "set real=True")
        self._follow(0)

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
        return self._follow(min(ceil(_WEIGHT / self.epsilon), _SHELLS))

    @cached_property
    def choice(self) -> Choice:
        """The radius of the first shell and how many were followed, for the least mean error."""
        return best(self.space, self.epsilon, self.p)

    @cached_property
    def shells(self) -> LineShells | PlaneShells:
        """The shells that noise is drawn from."""
        return self.space.shells(self.choice.delta, self.choice.closing)

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
        """Data and answers are held within plus and minus this."""
        return float(END * self.grid.step)

    def accuracy(self, beta: Exactable, size: int = 1) -> float:
        """With probability 1 − β, all of `size` releases are within this of the truth, in every coordinate."""
        tail = probability("beta", beta) / natural("size", size)
        return float_up((self._law.radius(tail) + Fraction(int(self.real), 2)) * self.grid.step)

    def nearest(self, records: object) -> np.ndarray[Any, np.dtype[Any]]:
        """Each number moved to the nearest of the values (the smaller of two as near), NaN to the nearest to 0."""
        if self.dimension != 1:
            raise InvalidArgument("dimension", self.dimension, "1", "see to it that records hold the values")
        kind = float if self.real else int
        ends = [(kind(low), kind(high)) for ((low, high),) in self._parts]
        given = np.nan_to_num(reals("records", records), nan=0.0) if self.real else whole("records", records)
        numbers = np.clip(given, min(low for low, _ in ends), max(high for _, high in ends))
        near = np.stack([np.clip(numbers, low, high) for low, high in ends])
        found: np.ndarray[Any, np.dtype[Any]]
        found = np.take_along_axis(near, np.argmin(np.abs(near - numbers), axis=0)[None, ...], axis=0)[0]
        return found

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """The number, or the pair, with noise."""
        steps = to_steps(data, self.grid, self.real, self.dimension)
        if self.dimension == 2 and steps.shape != (2,):
            raise InvalidArgument("data", f"{steps.size} numbers", "2 numbers", "give a pair")
        source = chosen(entropy)
        noise = self._law.draw(None if self.dimension == 2 else steps.shape, entropy=source)
        values = from_steps(saturating_sum(steps, noise), self.grid, self.real)
        return Release(values, self.loss, self.events, self.accuracy, source.private, self.limit)

    @property
    def _parts(self) -> tuple[tuple[Range, ...], ...]:
        """The values as one range for each coordinate."""
        if self.dimension == 1:
            return tuple((part,) for part in cast(tuple[Range, ...], self.values))
        return cast(tuple[tuple[Range, ...], ...], self.values)

    @cached_property
    def _law(self) -> ShellLaw:
        return ShellLaw(self.shells, self.epsilon)

    def _moment(self, p: int, choice: Choice, space: Line | Plane) -> float:
        row = mean_errors(space.profile(choice.delta, p), [float(self.epsilon)])[0]
        return float_up(Fraction(float(row[choice.closing])) * Fraction(1 + SLACK) * self.grid.step**p)

    def _follow(self, levels: int) -> Line | Plane:
        """How sums of neighbours differ, in steps of the grid, to which a difference is rounded up or down."""
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
        boxes = [tuple((floor(low / step), ceil(high / step)) for low, high in move) for move in moves]
        if self.dimension == 1:
            return Line.of([box[0] for box in boxes], levels, work=_WORK)
        return Plane.of(cast(list[tuple[Interval, Interval]], boxes), levels, self.p)


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

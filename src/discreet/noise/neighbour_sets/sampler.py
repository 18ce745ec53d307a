"""Exact noise on shells: P(x) ∝ e^(−iε) for x in the shell R_i of a neighbour set.

Shells come from `noise.shells` (the line) or `noise.plane`. Any shells that one step changes by at most one are
private, so which of them to use is free, and `best` looks for those with the least mean error.

>>> from discreet.noise.neighbour_sets.line import Line
>>> salaries = Line.of([(0, 100), (9900, 10000)], levels=20)      # most earn little, a few earn much
>>> choice = best(salaries, epsilon=3, p=1)
>>> choice.delta, choice.closing, round(choice.error), round(staircase_mean(3, 10000))
(322, 9, 1290, 2348)
>>> ShellLaw(salaries.shells(choice.delta, choice.closing), 3).draw(4, entropy=Entropy.for_tests(1)).tolist()
[151, 207, -23, -9810]

Mean errors. With S_i = |R_0 ∪ … ∪ R_i| the mass of all shells is (1 − b)·Σ b^i·S_i for b = e^(−ε), and likewise for
sums of |x|^p. The S_i do not depend on ε; past the last shell they are a polynomial in i, whose series has a closed
form by its differences. So a whole table over ε and over where to close costs one sum for each δ.

Draws. A shell is chosen by comparing a uniform with running sums in double precision, each known to n + 4 units in the
last place, and settled in ball arithmetic where that does not decide; then a place in it, each equally likely. Beyond
the last shell the number of bands is geometric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from flint import arb, ctx

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, positive
from discreet.core.rounding import ball
from discreet.noise.batches import Integers, Size, empty, parts
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.laplace import MAX_SCALE, MIN_SCALE, geometric
from discreet.noise.neighbour_sets.line import Profile
from discreet.noise.refinement import Uniform
from discreet.noise.staircase import optimal_inner, staircase_error

__all__ = ["Choice", "ShellLaw", "Shells", "Space", "best", "epsilon_argument", "mean_errors", "staircase_mean"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]

SLACK = 1e-9
"""How much worse than the best a shorter list of shells may be; also how far stated mean errors are rounded up."""


class Space(Protocol):
    """Steps that were followed: what `best` chooses from."""

    @property
    def radii(self) -> Sequence[int]:
        """Radii of R_0 to try first, ascending."""

    @property
    def zoom(self) -> int:
        """How many radii to try at once nearer to the best so far."""

    def profile(self, delta: int, p: int) -> Profile:
        """Sizes and sums of |x|^p for R_0 of radius `delta`."""


class Shells(Protocol):
    """Closed shells: what draws are placed by."""

    @property
    def dimension(self) -> int:
        """Numbers in one draw."""

    @property
    def closing(self) -> int:
        """n: the last shell that was followed; shell n + 1 fills what is missing and begins the bands."""

    @property
    def sizes(self) -> list[int]:
        """Points of shells 0 … n + 1, bands not included."""

    @property
    def bands(self) -> tuple[int, ...]:
        """The size of band j (shell n + 1 + j) as its differences at j = 0."""

    def place(self, levels: Integers, ranks: Integers) -> Integers:
        """The point with that rank in that shell, in data steps."""

    def place_in_bands(self, turns: Integers, source: Entropy) -> Integers:
        """Uniform points of bands, in data steps."""

    def radius(self, tail: float, weights: Doubles) -> int | None:
        """What no coordinate exceeds but with probability `tail`, if that is within the hull."""

    def reach(self, turns: int) -> int:
        """What no coordinate exceeds before band `turns`, in data steps."""


@dataclass(frozen=True)
class Choice:
    """Shells by their radius and where they are closed, with the mean error they have."""

    delta: int
    closing: int
    error: float


def mean_errors(profile: Profile, epsilons: Iterable[float]) -> Doubles:
    """E|x|^p for each ε (rows), closing after 0, 1, 2 … steps (columns)."""
    masses, totals = _Series(profile.sizes, profile.hull_sizes), _Series(profile.moments, profile.hull_moments)
    return np.array([totals.at(epsilon) / masses.at(epsilon) for epsilon in epsilons])


class _Series:
    """Σ b^i·s_i with s_i followed as far as i = n and the polynomial of the hull after, for each n."""

    def __init__(self, followed: Doubles, hull: list[int]) -> None:
        self._followed = followed
        self._differences: list[Doubles] = []
        row = hull[1:]
        while len(row) > followed.size:
            self._differences.append(np.array([float(value) for value in row[: followed.size]]))
            row = [after - before for before, after in pairwise(row)]
        # Differences past the degree are zero, and so is what is left out.

    @np.errstate(under="ignore")
    def at(self, epsilon: float) -> Doubles:
        powers = np.exp(-epsilon * np.arange(self._followed.size + 1))
        b, rest = float(np.exp(-epsilon)), -float(np.expm1(-epsilon))
        tails = np.zeros(self._followed.size)
        for order, row in enumerate(self._differences):
            tails += row * (b**order / rest ** (order + 1))
        sums: Doubles = np.cumsum(powers[:-1] * self._followed) + powers[1:] * tails
        return sums


def best(space: Space, epsilon: Exactable, p: int) -> Choice:
    """The radius of R_0 and the last shell for which E|x|^p is least.

    Radii are tried on a coarse scale and then ever nearer to the best of them, and to the best of those that are closed
    at once; the mean error need not have one valley only, so another radius may be better by a little. Of where to
    close, all are tried.
    """
    rate = float(epsilon_argument(epsilon))
    tried: dict[int, Choice] = {}
    stairs: dict[int, float] = {}
    todo = set(space.radii)
    while todo:
        for delta in todo:
            row = mean_errors(space.profile(delta, p), [rate])[0]
            tried[delta] = Choice(delta, int(np.argmax(row <= row.min() * (1 + SLACK))), float(row.min()))
            stairs[delta] = float(row[0])
        found = min(tried.values(), key=lambda choice: (choice.error, choice.delta))
        centres = found.delta, min(stairs, key=lambda delta: (stairs[delta], delta))
        todo = {delta for centre in centres for delta in _near(centre, sorted(tried), space.zoom)} - tried.keys()
    return found


def _near(centre: int, known: list[int], zoom: int) -> range:
    """Numbers on either side of the centre, as far as the next that are known."""
    place = known.index(centre)
    low, high = known[max(place - 1, 0)], known[min(place + 1, len(known) - 1)]
    width = max(1, -(-(high - low) // (zoom + 1)))
    return range(low + width, high, width)


def epsilon_argument(epsilon: Exactable) -> Fraction:
    """An ε the samplers can work with."""
    number = positive("epsilon", epsilon)
    if not MIN_SCALE <= number <= MAX_SCALE:
        raise InvalidArgument("epsilon", epsilon, "from 2^-60 to 2^60", "give an epsilon of a practical size")
    return number


def staircase_mean(epsilon: Exactable, sensitivity: int) -> float:
    """E|x| of the best staircase noise for whole numbers that move by `sensitivity`: what knowing no more costs."""
    number = epsilon_argument(epsilon)
    with ctx.workprec(256):
        return float(staircase_error(number, sensitivity, optimal_inner(number, sensitivity)).mid())


class ShellLaw:
    """The law of the noise: shells, and the ε by which each weighs less than the one before."""

    def __init__(self, shells: Shells, epsilon: Exactable) -> None:
        self.shells = shells
        self.epsilon = epsilon_argument(epsilon)

    def draw(self, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
        """Noise; in more than one dimension the coordinates stand on a new last axis. Held within ±(2⁶³ − 1)."""
        source = chosen(entropy)
        shape = empty(size).shape
        out = np.empty((int(np.prod(shape)), self.shells.dimension), dtype=np.int64)
        for rows in parts(np.arange(out.shape[0])):
            out[rows] = self._draw(rows.size, source).reshape(-1, self.shells.dimension)
        return out.reshape(shape if self.shells.dimension == 1 else (*shape, self.shells.dimension))

    def radius(self, tail: Fraction) -> int:
        """What no coordinate exceeds but with probability `tail`, in data steps: the least up to a part in 10⁹."""
        sizes, last = self.shells.sizes, len(self.shells.sizes)
        ends, _ = self._table
        with np.errstate(under="ignore"):
            powers = np.exp(-float(self.epsilon) * np.arange(last)) / ends[-1]
        beyond = (ends[-1] - ends[last - 1]) / ends[-1]
        inside = self.shells.radius(float(tail), np.append(powers, beyond) * (1 + SLACK) + 1e-300)
        if inside is not None and float(tail) > 1e-280 * sum(sizes):
            return inside
        low, high = 0, 1
        while not self._beyond(high) <= ball(tail):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._beyond(middle) <= ball(tail) else (middle, high)
        return self.shells.reach(high)

    def _draw(self, size: int, source: Entropy) -> Integers:
        ends, margin = self._table
        words = source.words(size)
        places = words.astype(np.float64) * (2.0**-64 * float(ends[-1]))
        choices = np.searchsorted(ends, places - margin, side="right")
        lasts = np.minimum(np.searchsorted(ends, places + margin, side="right"), ends.size - 1)
        for index in np.flatnonzero(choices != lasts).tolist():
            uniform_real = Uniform(int(words[index]), 64, source)
            choices[index] = uniform_real.find(int(choices[index]), int(lasts[index]), self._share)
        out = np.empty((size, self.shells.dimension), dtype=np.int64)
        sizes = np.array(self.shells.sizes, dtype=np.int64)
        inside = choices < sizes.size
        levels = choices[inside]
        out[inside] = self.shells.place(levels, _ranks(sizes[levels], source)).reshape(-1, self.shells.dimension)
        for order in range(len(self.shells.bands)):
            here = np.flatnonzero(choices == sizes.size + order)
            if here.size:
                # j with weight C(j, order)·b^j: as many more than `order` as order + 1 geometric numbers add up to.
                turns = np.full(here.size, order, dtype=np.int64)
                for _ in range(order + 1):
                    turns += np.minimum(geometric(1 / self.epsilon, here.size, entropy=source), 1 << 61)
                out[here] = self.shells.place_in_bands(turns, source).reshape(-1, self.shells.dimension)
        return out

    def _weights(self) -> list[arb]:
        """Of each shell within the hull, then of the bands by the order of their differences, at the precision set."""
        b = (-ball(self.epsilon)).exp()
        powers = [arb(1)]
        for _ in self.shells.sizes[1:]:
            powers.append(powers[-1] * b)
        inside = [power * points for power, points in zip(powers, self.shells.sizes, strict=True)]
        rest = 1 - b
        return inside + [
            powers[-1] * growth * b**order / rest ** (order + 1) for order, growth in enumerate(self.shells.bands)
        ]

    def _share(self, last: int) -> arb:
        """P(choice ≤ last)."""
        weights = self._weights()
        return sum(weights[: last + 1], arb(0)) / sum(weights, arb(0))

    def _beyond(self, turns: int) -> arb:
        """P(in a band from `turns` on), enclosed at 256 bits."""
        with ctx.workprec(256):
            b, total = (-ball(self.epsilon)).exp(), sum(self._weights(), arb(0))
            # The sizes of the bands from there on by their own differences: Newton's formula at `turns`.
            moved = list(self.shells.bands)
            if len(moved) > 1:
                moved[0] += turns * moved[1]
            power = (-ball(self.epsilon * (self.shells.closing + 1 + turns))).exp()
            return (
                power
                * sum((growth * b**order / (1 - b) ** (order + 1) for order, growth in enumerate(moved)), arb(0))
                / total
            )

    @cached_property
    def _table(self) -> tuple[Doubles, float]:
        """Running sums of the weights, and how far from a place they may be for it to be in doubt."""
        with ctx.workprec(256):
            ends = np.cumsum([float(weight.mid()) for weight in self._weights()])
        return ends, float(ends[-1]) * 2.0**-52 * (ends.size + 4) + 1e-300


def _ranks(sizes: Integers, source: Entropy) -> Integers:
    """For each size a whole number below it, each equally likely."""
    bits = np.frexp((sizes - 1).astype(np.float64))[1].astype(np.uint64)
    # Rounded to a double a number may seem to need one bit more, which costs a second try and no more.
    shifts = np.uint64(64) - np.maximum(bits, np.uint64(1))
    ranks: Integers = np.zeros(sizes.size, dtype=np.int64)
    todo = np.flatnonzero(sizes > 1)
    while todo.size:
        ranks[todo] = (source.words(todo.size) >> shifts[todo]).view(np.int64)
        todo = todo[ranks[todo] >= sizes[todo]]
    return ranks

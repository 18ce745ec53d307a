"""The slope of a least-squares line through records (x, y), with its distance to instability.

An oracle for `ProposeTestRelease`, for add/remove and for replace neighbours; a unit is one record. Values go to
places of two lines first, each on its own, so everything below is whole numbers. Write n, x̄, ȳ for size and means,
S = Σ(x − x̄)² for the variation of x, b = Σ(x − x̄)(y − ȳ)/S for the slope (0 where S is 0), M for the farthest that a
possible x can be from x̄, max(x̄, X − x̄) on a line from 0 to X, and V for the same of y.

One record more, at (u, v), makes b move by w·d·r/(S + w·d²) with d = u − x̄, r = v − ȳ − b·d and w = n/(n + 1), so by at
most M·(V + |b|·M)/S. One record less makes it move by d·r/((n − 1)/n·S′) with S′ what is left of S. Hence, with k
records more or less, there are for data within k of x

    Sₖ  the least variation: adding never lowers S, and of all ways to take k records away the worst leaves neighbours
        in order; so the least over the k + 1 runs of n − k consecutive values of x
    Mₖ  Mₖ₋₁ + Mₖ₋₁/(n − k), since a mean moves by at most M/(n − 1) when a record comes or goes; Vₖ alike
    Wₖ  Mₖ₊₁·(Vₖ₊₁ + Bₖ·Mₖ₊₁)/Sₖ₊₁, which is at least how far b moves
    Bₖ  Bₖ₋₁ + Wₖ₋₁ from B₀ = |b|

and each of them at k of a neighbour lies within what x has at k + 1, by induction, since each is monotone in those it
is made of. So the least k with Wₖ above the proposed bound moves by at most 1, and where it is 1 or more, b moves by
no more than the bound. A replacement is a removal and an addition: M and V grow twice, and Wₖ is the sum of both moves,
the second with |b| as large as the first makes it. S is rounded down and all others up, on fixed grids, which keeps
the order of any two.

The bound to propose is about X·(Y + |b|·X)/(4·n·var(x)) for declared widths X and Y with means near their middle, twice
that where records are replaced, and a little more. Time is that of a few passes and a partition.

>>> from discreet.noise.entropy import Entropy
>>> from discreet.robust.propose_test_release import ProposeTestRelease
>>> x = np.arange(3000) % 100
>>> data = np.stack([x, 2 * x + np.arange(3000) % 7], axis=1)
>>> line = Slope(Bounds(0, 100), Bounds(0, 250))
>>> mechanism = ProposeTestRelease(line, bound="0.015", epsilon=1, delta="1e-6")
>>> mechanism.release(data, entropy=Entropy.for_tests(1)).values
1.994...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any

import numpy as np

from discreet.core.arrays import reals
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.units import Neighbours
from discreet.mechanisms.additive import END
from discreet.mechanisms.quantiles.line import Line
from discreet.noise.batches import Integers
from discreet.noise.grid import Grid
from discreet.robust.propose_test_release import Proposal

__all__ = ["Slope"]

PLACES = 20
"""Binary digits of a place on either line: squares of 2²⁴ of them add up in 63 bits."""
FINE = 1 << 20
"""Steps of the grid of slopes within the bound; M and V are counted in as small parts of a place."""
MANY = 1 << 22
"""Products of two places that are added up at once."""


@dataclass(frozen=True)
class Slope:
    """The slope of the least-squares line of y on x; data has two columns, x and y, within these bounds."""

    x: Bounds
    y: Bounds

    def __post_init__(self) -> None:
        for argument in ("x", "y"):
            if not isinstance(getattr(self, argument), Bounds):
                given = getattr(self, argument)
                raise InvalidArgument(argument, given, "Bounds(lower, upper)", f"declare the bounds of {argument}")
        if not all(line.bounds.width for line in self.lines):
            raise InvalidArgument("x and y", (self.x, self.y), "wider than one value", "declare wider bounds")

    @cached_property
    def lines(self) -> tuple[Line, Line]:
        """Where values of x and y lie."""
        x, y = (Line.between(bounds, _step(bounds.width)) for bounds in (self.x, self.y))
        return x, y

    def check(self, bound: Fraction, neighbours: Neighbours) -> None:
        """Any bound does that grids can hold."""
        Grid.finer_than(bound, FINE)

    def resolution(self, bound: Fraction) -> Fraction:
        """One step of the grid of slopes."""
        return Grid.finer_than(bound, FINE).step

    def propose(self, data: Any, bound: Fraction, limit: int, neighbours: Neighbours) -> Proposal:
        """The slope on a grid of 2⁻²⁰ of the bound, and its distance."""
        grid = Grid.finer_than(bound, FINE)
        x, y = self._places(data)
        slope = _slope(x, y)
        unit = self.lines[1].step / self.lines[0].step / grid.step
        value = min(max(floor(slope * unit + Fraction(1, 2)), -END), END)

        def read(steps: int) -> float:
            return float(steps * grid.step)

        return Proposal(value, grid.spanning(bound), self._distance(x, y, slope, bound, limit, neighbours), read)

    def _distance(
        self, x: Integers, y: Integers, slope: Fraction, bound: Fraction, limit: int, neighbours: Neighbours
    ) -> int:
        """The least k with Wₖ above the bound, or `limit`; slopes in FINE parts of the bound, lengths of a place."""
        part = bound * self.lines[0].step / self.lines[1].step / FINE
        per, of = part.numerator, part.denominator
        times = 2 if neighbours == "replace" else 1
        reached = _up(abs(slope) / part)
        far_x, far_y = (_farthest(places, line.size - 1) for places, line in zip((x, y), self.lines, strict=True))
        for k, left in enumerate(_variations(x, limit)):
            if left == 0:
                return k
            rest = int(x.size) - k - 1
            for _ in range(times):
                far_x, far_y = far_x + _over(far_x, rest), far_y + _over(far_y, rest)
            moved = 0
            for _ in range(times):
                steep = (reached + moved) * far_x * per
                moved += _over(far_x * (far_y * of + steep), left * per * FINE**2)
            if moved > FINE:
                return k
            reached += moved
        return limit

    def _places(self, data: Any) -> tuple[Integers, Integers]:
        pairs = reals("data", data)
        if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
            raise InvalidArgument("data", f"of shape {pairs.shape}", "of shape (n, 2)", "give two columns, x and y")
        columns = pairs.reshape(-1, 2)
        x, y = (line.places(columns[:, i]) for i, line in enumerate(self.lines))
        return x, y


def _slope(x: Integers, y: Integers) -> Fraction:
    """In places of y to a place of x, exactly."""
    size, sum_x, sum_y = int(x.size), int(x.sum()), int(y.sum())
    variation = size * _products(x, x) - sum_x**2
    return Fraction(size * _products(x, y) - sum_x * sum_y, variation) if variation else Fraction(0)


def _products(a: Integers, b: Integers) -> int:
    return sum(int(np.dot(a[start : start + MANY], b[start : start + MANY])) for start in range(0, a.size, MANY))


def _farthest(places: Integers, top: int) -> int:
    """M of these places in FINE parts of a place, rounded up; of none the whole line."""
    total, size = int(places.sum()), max(1, int(places.size))
    return _over(max(total, top * size - total) * FINE, size)


def _variations(x: Integers, limit: int) -> Iterator[int]:
    """⌊S₁⌋, ⌊S₂⌋, … ⌊S_limit⌋; 0 once fewer than two records are left."""
    size, reach = int(x.size), min(limit, int(x.size))
    middle = int(x.sum()) // max(1, size)
    # Fewer than 2²⁴ squares of numbers near their mean, which are below 2³⁸ on average, fit int64.
    kind = np.int64 if size < 1 << 24 else object
    ends = np.partition(x, [reach - 1, size - reach]) if reach else x
    low = (np.sort(ends[:reach]) - middle).astype(kind)
    high = (np.sort(ends[size - reach :])[::-1] - middle).astype(kind)
    total = int(x.sum()) - middle * size
    squares = _products(x, x) - 2 * middle * int(x.sum()) + middle**2 * size
    lows, highs, low_squares, high_squares = (
        np.concatenate([np.zeros(1, dtype=kind), np.cumsum(part)]) for part in (low, high, low**2, high**2)
    )
    for k in range(1, limit + 1):
        left = size - k
        if left < 2:
            yield 0
            continue
        sums = total - lows[: k + 1] - highs[k::-1]
        mean, over = sums // left, sums % left
        # Σx² − (Σx)²/m, whose last term is cut so that nothing passes 63 bits.
        kept = squares - low_squares[: k + 1] - high_squares[k::-1]
        yield int((kept - mean * (mean * left + 2 * over) + -(over * over) // left).min())


def _step(width: Fraction) -> Fraction:
    return Fraction(2) ** (width.numerator.bit_length() - width.denominator.bit_length() - PLACES + 1)


def _over(number: int, by: int) -> int:
    """number/by, rounded up."""
    return -(-number // by)


def _up(number: Fraction) -> int:
    return _over(number.numerator, number.denominator)

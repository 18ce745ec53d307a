"""Real numbers on a power-of-two grid, chosen before looking at the data.

A real x becomes the integer ⌊x/step⌉ with step = 2^exponent; noise is added to integers; the answer is integer·step.
The step depends only on declared quantities (bounds, scale), so neighbouring data sets share one grid and reach the
same set of outputs.

>>> grid = Grid.finer_than(Fraction(1, 3), 2**10)
>>> grid
Grid(exponent=-12)
>>> grid.steps(np.array([0.5, 0.1])).tolist()
[2048, 410]
>>> grid.values(np.array([2048, 410])).tolist()
[0.5, 0.10009765625]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, exact, positive
from discreet.noise.shape import Integers

__all__ = ["INTEGERS", "Grid"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Grid:
    """The multiples of 2^exponent."""

    exponent: int

    def __post_init__(self) -> None:
        if isinstance(self.exponent, bool) or not isinstance(self.exponent, int) or not -1000 <= self.exponent <= 1000:
            raise InvalidArgument("exponent", self.exponent, "an int from -1000 to 1000", "choose a nearer step")

    @classmethod
    def finer_than(cls, length: Exactable, steps: int) -> Grid:
        """The coarsest grid with at least `steps` steps in `length`."""
        target = positive("length", length) / steps
        exponent = target.numerator.bit_length() - target.denominator.bit_length()
        return cls(exponent if Fraction(2) ** exponent <= target else exponent - 1)

    @property
    def step(self) -> Fraction:
        """2^exponent."""
        return Fraction(2) ** self.exponent

    def round(self, value: Exactable) -> int:
        """The number of steps nearest to a declared constant (half goes up)."""
        return floor(exact("value", value) / self.step + Fraction(1, 2))

    def spanning(self, length: Exactable) -> int:
        """The most steps two reals at most `length` apart can be after rounding each to the grid."""
        return ceil(exact("length", length) / self.step)

    def steps(self, values: object) -> Integers:
        """The nearest grid points (half goes up), as integers, of finite numbers already clipped to declared bounds.

        Each value is rounded once and exactly: scaling by a power of two and taking the fraction are exact, so values
        at most L apart end at most `spanning(L)` steps apart. Rounding half to even would not do that.
        """
        array = np.asarray(values)
        if array.dtype.kind in "iub":
            return self._steps_of_integers(array)
        if array.dtype.kind != "f":
            raise InvalidArgument("values", array.dtype.name, "numbers", "convert the column first")
        scaled = np.ldexp(array.astype(np.float64), -self.exponent)
        whole = np.floor(scaled)
        whole += scaled - whole >= 0.5
        if not (np.abs(whole) < 2.0**63).all():
            raise _outside()
        return whole.astype(np.int64)

    def _steps_of_integers(self, array: np.ndarray[Any, Any]) -> Integers:
        limit = _LARGEST >> max(0, -self.exponent)
        if self.exponent < -62 or (array.size and not -limit <= int(array.min()) <= int(array.max()) <= limit):
            raise _outside()
        integers = array.astype(np.int64)
        if self.exponent <= 0:
            return integers << -self.exponent
        shift = min(self.exponent, 63)
        return (integers >> shift) + ((integers >> (shift - 1)) & 1)

    def values(self, steps: object) -> Doubles:
        """The reals at these grid points, as the nearest doubles (post-processing)."""
        return np.ldexp(np.asarray(steps).astype(np.float64), self.exponent)


def _outside() -> InvalidArgument:
    return InvalidArgument("values", "an array", "finite and within int64 on this grid", "clip to declared bounds first")


INTEGERS = Grid(0)
"""The integers themselves."""

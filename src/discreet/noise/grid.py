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
from discreet.core.exact import Exactable, at_least, exact, natural, positive
from discreet.noise.batches import Integers

__all__ = ["INTEGERS", "Grid"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]

_LARGEST = (1 << 63) - 1
_LEAST, _MOST = -1000, 960
"""Exponents between which 1 to 2⁶³ steps are normal finite doubles."""


@dataclass(frozen=True)
class Grid:
    """The multiples of 2^exponent."""

    exponent: int

    def __post_init__(self) -> None:
        whole = isinstance(self.exponent, int) and not isinstance(self.exponent, bool)
        if not whole or not _LEAST <= self.exponent <= _MOST:
            raise InvalidArgument("exponent", self.exponent, f"an int from {_LEAST} to {_MOST}", "choose a nearer step")

    @classmethod
    def finer_than(cls, length: Exactable, steps: int) -> Grid:
        """The coarsest grid with at least `steps` steps in `length`."""
        target = positive("length", length) / natural("steps", steps)
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
        return ceil(at_least("length", length, 0) / self.step)

    def steps(self, values: object) -> Integers:
        """The nearest grid points (half goes up), as integers.

        Each value is rounded once and exactly: scaling by a power of two and taking the fraction are exact, so values
        at most L apart end at most `spanning(L)` steps apart. Rounding half to even would not do that. Nothing about
        the values raises: what lies outside int64 goes to its nearer end and NaN to 0, so that no error can tell
        neighbours apart. Columns are clipped to declared bounds long before.
        """
        array = np.asarray(values)
        if array.dtype.kind in "iub":
            return self._steps_of_integers(array)
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise InvalidArgument("values", array.dtype.name, "whole numbers or doubles", "convert the column first")
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            scaled = np.ldexp(array.astype(np.float64), -self.exponent)
            whole = np.floor(scaled)
            whole += scaled - whole >= 0.5
            whole = np.nan_to_num(whole, nan=0.0, posinf=2.0**63, neginf=-(2.0**63))
            outside = np.abs(whole) >= 2.0**63
            steps = np.where(outside, 0.0, whole).astype(np.int64)
        ends = np.where(whole > 0, _LARGEST, -_LARGEST)
        return np.where(outside, ends, steps).astype(np.int64)

    def _steps_of_integers(self, array: np.ndarray[Any, Any]) -> Integers:
        top = np.minimum(array, _LARGEST) if array.dtype == np.uint64 else array
        integers: Integers = np.maximum(top.astype(np.int64), -_LARGEST)
        if self.exponent > 63:
            return np.zeros_like(integers)
        if self.exponent > 0:
            return (integers >> self.exponent) + ((integers >> (self.exponent - 1)) & 1)
        shift = min(-self.exponent, 63)
        limit = _LARGEST >> shift
        ends = np.where(integers > 0, _LARGEST, -_LARGEST)
        return np.where(np.abs(integers) > limit, ends, np.clip(integers, -limit, limit) << shift).astype(np.int64)

    def values(self, steps: object) -> Doubles:
        """The reals at these grid points, as the nearest doubles (post-processing)."""
        array = np.asarray(steps)
        if array.dtype.kind not in "iu":
            raise InvalidArgument("steps", array.dtype.name, "whole numbers", "give what `steps` returned, plus noise")
        return np.ldexp(array.astype(np.float64), self.exponent)


INTEGERS = Grid(0)
"""The integers themselves."""

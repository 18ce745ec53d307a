"""Numbers between public bounds as places on a line, and back.

Place i stands for lower + i·step; a value goes to the place nearest to it. Each value is placed on its own, so how it
is rounded has no part in any guarantee.

>>> line = Line(Bounds(0, 10), Fraction(1, 2))
>>> line.size, line.places(np.array([0.2, 0.3, 99.0, np.nan])).tolist(), line.value(20)
(21, [0, 1, 20, 0], 10.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor

import numpy as np

from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, positive
from discreet.core.rounding import float_down, float_up
from discreet.noise.batches import Integers

__all__ = ["Line"]

FINE = 32
"""Binary digits of a place where no step is asked for, one more or less."""
FINEST = 1 << 40
SMALLEST = Fraction(1, 1 << 1000)


@dataclass(frozen=True)
class Line:
    """The places lower, lower + step, … up to the upper bound."""

    bounds: Bounds
    step: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.bounds, Bounds):
            raise InvalidArgument("bounds", self.bounds, "Bounds(lower, upper)", "declare the bounds of the values")
        if self.step < SMALLEST:
            raise InvalidArgument("step", float(self.step), "at least 2^-1000", "declare wider bounds")
        if self.bounds.width / self.step > FINEST:
            raise InvalidArgument("step", float(self.step), "at least width/2^40", "choose a coarser step")

    @classmethod
    def between(cls, bounds: Bounds, step: Exactable | None) -> Line:
        """The line of these bounds; without a step as fine as anybody needs."""
        if step is not None:
            return cls(bounds, positive("step", step))
        width = bounds.width if isinstance(bounds, Bounds) else Fraction(1)
        # A power of two, so that whole numbers are places where the lower bound is one.
        exponent = width.numerator.bit_length() - width.denominator.bit_length() - FINE
        return cls(bounds, Fraction(2) ** exponent if width else Fraction(1))

    @cached_property
    def size(self) -> int:
        """How many places there are."""
        return floor(self.bounds.width / self.step) + 1

    def places(self, values: object) -> Integers:
        """The place of each value: of the nearer bound if it is outside, of `bounds.missing` if there is none."""
        scaled = self.bounds.clip(values).reshape(-1).astype(np.float64)
        scaled -= float(self.bounds.lower)
        scaled *= float(1 / self.step)
        scaled += 0.5
        return np.clip(scaled.astype(np.int64), 0, self.size - 1)

    def value(self, place: int) -> float:
        """The number at a place; beyond either end, that bound."""
        number = self.bounds.lower + min(max(place, 0), self.size - 1) * self.step
        return min(max(float(number), float_up(self.bounds.lower)), float_down(self.bounds.upper))

"""How far a function really moves between neighbours, measured without rounding.

Give pairs of neighbouring data sets, the nastier the better: large values, halves of a rounding step, rows in another
order. Differences are taken in exact rationals, so that the measurement cannot hide what the function's own
rounding does. A pair on which only one side raises, or gives NaN, or another shape, moves infinitely far.

>>> measured_sensitivity(sum, [([1, 2, 3], [1, 2])]).l1
Fraction(3, 1)
>>> moved = measured_sensitivity(sum, [([2.0**60, 120.0], [2.0**60, 140.0])])
>>> moved.l1, moved.exceeds(20)
(Fraction(256, 1), True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, at_least, exact

__all__ = ["MeasuredSensitivity", "measured_sensitivity"]

Distance = Fraction | float
"""An exact distance, or infinity."""


@dataclass(frozen=True)
class MeasuredSensitivity:
    """The largest distances over all pairs, and which pair moved farthest in ℓ1."""

    l1: Distance
    squared_l2: Distance
    linf: Distance
    worst: int

    def exceeds(self, declared: Exactable, norm: Literal["l1", "l2", "linf"] = "l1") -> bool:
        """Whether some pair moved farther than declared."""
        bound = at_least("declared", declared, 0)
        if norm == "l2":
            return self.squared_l2 > bound**2
        if norm not in ("l1", "linf"):
            raise InvalidArgument("norm", norm, "'l1', 'l2' or 'linf'", "name the norm of the declared sensitivity")
        return (self.l1 if norm == "l1" else self.linf) > bound


def measured_sensitivity(function: Callable[[Any], Any], pairs: Iterable[tuple[Any, Any]]) -> MeasuredSensitivity:
    """The farthest that `function` moves over the given pairs of neighbours."""
    distances = [_distances(_numbers(function, d), _numbers(function, d_prime)) for d, d_prime in pairs]
    if not distances:
        raise InvalidArgument("pairs", [], "at least one pair", "give neighbouring data sets to compare")
    worst = max(range(len(distances)), key=lambda index: distances[index])
    l1, squared_l2, linf = (max(column) for column in zip(*distances, strict=True))
    return MeasuredSensitivity(l1, squared_l2, linf, worst)


def _numbers(function: Callable[[Any], Any], data: Any) -> tuple[object, list[Fraction | str]]:
    """The shape of the result and its numbers; what is not a finite number is kept as text."""
    try:
        result = np.asarray(function(data))
    except Exception as error:
        return type(error), []
    return result.shape, [_exact(value) for value in result.ravel().tolist()]


def _exact(value: object) -> Fraction | str:
    try:
        return Fraction(value) if isinstance(value, int | float) else exact("value", value)
    except (InvalidArgument, ValueError, OverflowError):
        return repr(value)


def _distances(
    ours: tuple[object, list[Fraction | str]], theirs: tuple[object, list[Fraction | str]]
) -> tuple[Distance, Distance, Distance]:
    if ours[0] != theirs[0]:
        return math.inf, math.inf, math.inf
    moves: list[Distance] = []
    for a, b in zip(ours[1], theirs[1], strict=True):
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            moves.append(abs(a - b))
        else:
            moves.append(Fraction(0) if a == b else math.inf)
    zero: Distance = Fraction(0)
    return sum(moves, zero), sum((move * move for move in moves), zero), max(moves, default=zero)

"""What a column may hold, declared beforehand and never read off the data.

Clipping to a domain looks at one value at a time and never fails: whatever a row holds, something in the domain comes
out, so neither an error nor a NaN can carry one person's record past the bound.

>>> Bounds(0, 100).clip(np.array([-5.0, 50.0, np.inf, np.nan])).tolist()
[0.0, 50.0, 100.0, 0.0]
>>> Categories(("yes", "no")).codes(np.array(["no", "yes", "maybe"]))
array([ 1,  0, -1])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from numbers import Number
from typing import Any

import numpy as np

from discreet.core.arrays import LARGEST, has_fractions, reals, whole
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, exact
from discreet.core.rounding import float_down, float_up

__all__ = ["Bounds", "Categories"]


@dataclass(frozen=True, init=False)
class Bounds:
    """Numbers from `lower` to `upper`; `missing` stands in for NaN (by default the number in bounds nearest to 0)."""

    lower: Fraction
    upper: Fraction
    missing: Fraction

    def __init__(self, lower: Exactable, upper: Exactable, missing: Exactable | None = None) -> None:
        low, high = exact("lower", lower), exact("upper", upper)
        if low > high:
            raise InvalidArgument("lower", lower, f"at most upper={upper}", "swap the two bounds")
        default = min(max(Fraction(0), low), high) if missing is None else exact("missing", missing)
        if not low <= default <= high:
            raise InvalidArgument("missing", missing, f"from {lower} to {upper}", "choose a value within the bounds")
        if any(abs(end) > Fraction(2) ** 1000 for end in (low, high)):
            raise InvalidArgument("bounds", (lower, upper), "within ±2^1000", "declare tighter bounds")
        if float_up(low) > float_down(high):
            raise InvalidArgument("bounds", (lower, upper), "wide enough to hold a double", "widen them a little")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "missing", default)

    @property
    def width(self) -> Fraction:
        """How far a replaced value can move."""
        return self.upper - self.lower

    @property
    def magnitude(self) -> Fraction:
        """How far an added or removed value can move a sum."""
        return max(abs(self.lower), abs(self.upper))

    def clip(self, values: object) -> np.ndarray[Any, np.dtype[Any]]:
        """Each value moved to the nearest number in bounds; integers stay integers when the bounds are whole."""
        least, most = max(-LARGEST, ceil(self.lower)), min(LARGEST, floor(self.upper))
        array = reals("values", values)
        if least <= most and self.missing.denominator == 1 and not has_fractions(values):
            clipped: np.ndarray[Any, np.dtype[Any]] = np.clip(whole("values", values, int(self.missing)), least, most)
            return clipped
        # The bounds as doubles inside the declared ones, so that nothing rounds out of them.
        low, high = float_up(self.lower), float_down(self.upper)
        return np.clip(np.where(np.isnan(array), float(self.missing), array), low, high)


@dataclass(frozen=True)
class Categories:
    """A fixed list of distinct values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values or len(set(self.values)) != len(self.values):
            raise InvalidArgument("values", self.values, "distinct and at least one", "list every category once")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> tuple[Fraction, ...] | None:
        """The values in rising order, without None, if all the others are finite numbers."""
        listed = [value for value in self.values if value is not None]
        if any(isinstance(value, bool | str) or not isinstance(value, Number) for value in listed):
            return None
        try:
            return tuple(sorted(exact("values", value) for value in listed))
        except InvalidArgument:
            return None

    def codes(self, values: Iterable[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The place of each value in the list, −1 for values that are not in it."""
        place = {value: index for index, value in enumerate(self.values)}
        # Value by value: an array made of a list would change all of them to fit its oddest one.
        listed: Any = values.tolist() if hasattr(values, "tolist") else values
        return np.array([place.get(v, -1) if isinstance(v, Hashable) else -1 for v in listed], dtype=np.int64)

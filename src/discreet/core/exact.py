"""Exact numbers: what a user writes becomes the Fraction it reads as.

A float is read by its shortest decimal: 0.1 is one tenth, as it was written, and so the same number as "0.1". That is
for parameters; what was computed or comes from data is what its bits say, which is `Fraction(value)`.

>>> exact("epsilon", 0.1), exact("epsilon", "0.1")
(Fraction(1, 10), Fraction(1, 10))
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument

__all__ = ["Exactable", "at_least", "count", "exact", "natural", "positive", "probability"]

Exactable = int | float | str | Fraction | Decimal
"""Anything that names one exact rational number."""


LONGEST = 10_000
LARGEST_EXPONENT = 4_000
"""Longer decimal texts, and decimals with larger exponents, are refused."""
LARGEST_BITS = 14_000
"""Numbers that are written with more bits, above or below the line, are refused: Python writes whole numbers of up to
4,300 digits as text, which is 14,284 bits. Fractions that were computed may be of any length."""


def exact(argument: str, value: object) -> Fraction:
    """The rational number that `value` reads as; refuses NaN, infinities, booleans and anything else."""
    if isinstance(value, Fraction):
        return value
    number = _rational(argument, value)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > LARGEST_BITS:
        digits = LARGEST_BITS * 3 // 10
        raise InvalidArgument(argument, value, f"a number of fewer than {digits} digits", "give a shorter one")
    return number


def _rational(argument: str, value: object) -> Fraction:
    if isinstance(value, bool | np.bool_):
        raise _not_a_number(argument, value)
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise InvalidArgument(argument, value, "finite", "give a finite int, float, Fraction or decimal string")
        return _shortest(value)
    if isinstance(value, Decimal) and value.is_finite():
        if abs(value.adjusted()) > LARGEST_EXPONENT:
            raise _not_a_number(argument, value)
        return Fraction(value)
    if isinstance(value, str) and len(value) <= LONGEST:
        return _read(argument, value)
    raise _not_a_number(argument, value)


def _shortest(value: float | np.floating[Any]) -> Fraction:
    """The number with the fewest decimals that a float of its kind stands for."""
    return Fraction(float.__repr__(value) if isinstance(value, float) else str(value))


def _read(argument: str, text: str) -> Fraction:
    _, _, exponent = text.lower().partition("e")
    try:
        # A short text can name a number too long to write down.
        if exponent and abs(int(exponent)) > LARGEST_EXPONENT:
            raise _not_a_number(argument, text)
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise _not_a_number(argument, text) from None


def positive(argument: str, value: object) -> Fraction:
    """An exact number above zero."""
    number = exact(argument, value)
    if number <= 0:
        raise InvalidArgument(argument, value, "above 0", f"give a positive {argument}")
    return number


def at_least(argument: str, value: object, bound: Fraction | int) -> Fraction:
    """An exact number no smaller than `bound`."""
    number = exact(argument, value)
    if number < bound:
        raise InvalidArgument(argument, value, f"at least {bound}", f"give {argument} ≥ {bound}")
    return number


def probability(argument: str, value: object, *, zero: bool = False, one: bool = False) -> Fraction:
    """An exact number between 0 and 1; the ends only where asked for."""
    number = exact(argument, value)
    low = number >= 0 if zero else number > 0
    high = number <= 1 if one else number < 1
    if not (low and high):
        bound = f"in {'[' if zero else '('}0, 1{']' if one else ')'}"
        raise InvalidArgument(argument, value, bound, f"give {argument} as a probability")
    return number


def natural(argument: str, value: object) -> int:
    """A positive whole number."""
    number = count(argument, value)
    if number < 1:
        raise InvalidArgument(argument, value, "at least 1", f"give {argument} as a positive whole number")
    return number


def count(argument: str, value: object, *, limit: int | None = None) -> int:
    """A whole number from 0 (to `limit`)."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise InvalidArgument(argument, value, "a whole number", f"give {argument} as an int")
    number = int(value)
    if number < 0:
        raise InvalidArgument(argument, value, "at least 0", f"give {argument} as a non-negative int")
    if limit is not None and number > limit:
        raise InvalidArgument(argument, value, f"at most {limit}", f"split the work so that {argument} ≤ {limit}")
    return number


def _not_a_number(argument: str, value: object) -> InvalidArgument:
    return InvalidArgument(argument, value, "a number", "give a finite int, float, Fraction or decimal string")

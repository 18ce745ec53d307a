"""Ranges of values, carried through expressions exactly.

An `Interval` holds every value an expression can take when it is not NULL; an infinite end means that nothing is
known. Each rule is a theorem about the arithmetic the engines do: whole numbers are exact in 64 bits (else NULL), reals
are doubles rounded to nearest after each operation. Rounding to nearest never turns an order round, so rounding the
exact ends gives the tightest range of the rounded results.

>>> shown = Interval(Fraction(0), Fraction(120))
>>> (shown * Interval.exactly(1000)).rounded("integer")
Interval(lower=Fraction(0, 1), upper=Fraction(120000, 1))
>>> (shown / Interval.exactly(0)).bounds() is None
True
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.rounding import exp_down, exp_up, log_down, log_up, sqrt_down, sqrt_up
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals

__all__ = ["DOUBLES", "EVERYTHING", "LARGEST_DOUBLE", "LONGS", "Interval", "double", "hull", "power"]

End = Fraction | float
"""An exact end, or one of ±∞."""

LARGEST_DOUBLE = Fraction(sys.float_info.max)
_SLACK = Fraction(1, 2**48)
"""Engines compute exp, ln, log and power within a few units in the last place; 16 of them are allowed for."""


@dataclass(frozen=True)
class Interval:
    """All numbers from `lower` to `upper`."""

    lower: End = -math.inf
    upper: End = math.inf

    @staticmethod
    def exactly(value: Fraction | int) -> Interval:
        """One number."""
        return Interval(Fraction(value), Fraction(value))

    @staticmethod
    def of(bounds: Bounds | None) -> Interval:
        """What declared bounds say."""
        return EVERYTHING if bounds is None else Interval(bounds.lower, bounds.upper)

    def bounds(self) -> Bounds | None:
        """Bounds that hold the interval, or None when an end is not known or is past what bounds can hold."""
        if isinstance(self.lower, float) or isinstance(self.upper, float):
            return None
        try:
            return Bounds(self.lower, self.upper)
        except InvalidArgument:
            return None

    def rounded(self, kind: Type) -> Interval:
        """The range after the engine has put the exact result into its type."""
        if kind == "integer":
            return self._whole()
        if isinstance(kind, Decimals):
            return self._within(-kind.most, kind.most)
        return Interval(_nearest(self.lower), _nearest(self.upper)) if kind == "real" else self

    def _whole(self) -> Interval:
        low = self.lower if isinstance(self.lower, float) else Fraction(math.ceil(self.lower))
        high = self.upper if isinstance(self.upper, float) else Fraction(math.floor(self.upper))
        return Interval(low, high)._within(*_LONGS)

    def _within(self, least: Fraction, most: Fraction) -> Interval:
        """A result past the ends is NULL; a range wholly past them holds nothing but NULLs."""
        low, high = self.lower, self.upper
        if low > high or high < least or low > most:
            return EVERYTHING
        ends = (end if isinstance(end, float) else min(max(end, least), most) for end in (low, high))
        return Interval(*ends)

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum(self.lower, other.lower), _sum(self.upper, other.upper))

    def __neg__(self) -> Interval:
        return Interval(-self.upper, -self.lower)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        corners = [_product(a, b) for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
        return Interval(min(corners), max(corners))

    def __truediv__(self, other: Interval) -> Interval:
        """Quotients by everything in `other` but 0, by which every quotient is NULL."""
        parts = [self * part for part in other.reciprocals()]
        return hull(*parts) if parts else EVERYTHING

    def reciprocals(self) -> list[Interval]:
        """1/x for x below 0 and for x above 0."""
        parts = []
        if self.lower < 0:
            parts.append(Interval(_inverse(min(self.upper, Fraction(0)), -math.inf), _inverse(self.lower, -math.inf)))
        if self.upper > 0:
            parts.append(Interval(_inverse(self.upper, math.inf), _inverse(max(self.lower, Fraction(0)), math.inf)))
        return parts

    def without_zero(self) -> Interval:
        """The same whole numbers, less a 0 at the end."""
        low = Fraction(1) if self.lower == 0 else self.lower
        high = Fraction(-1) if self.upper == 0 else self.upper
        return Interval(low, high) if low <= high else self

    def remainder(self, other: Interval, kind: Type) -> Interval:
        """What truncating division leaves: the dividend's sign, never more than the dividend, less than the divisor."""
        most = max(-other.lower, other.upper)
        most = max(most - 1, Fraction(0)) if kind == "integer" else most
        low, high = max(self.lower, -most), min(self.upper, most)
        return Interval(low if self.lower < 0 else Fraction(0), high if self.upper > 0 else Fraction(0))

    def absolute(self) -> Interval:
        """|x|."""
        if self.lower >= 0:
            return self
        return -self if self.upper <= 0 else Interval(Fraction(0), max(-self.lower, self.upper))

    def clamped(self, low: End, high: End) -> Interval:
        """min(max(x, low), high)."""
        return Interval(min(max(self.lower, low), high), min(max(self.upper, low), high))

    def through(self, function: Callable[[Fraction], Fraction | int]) -> Interval:
        """A growing function that is exact, such as floor."""
        ends = (end if isinstance(end, float) else Fraction(function(end)) for end in (self.lower, self.upper))
        return Interval(*ends)

    def root(self) -> Interval:
        """√x of what is not below 0."""
        low = sqrt_down(self.lower) if isinstance(self.lower, Fraction) and self.lower > 0 else Fraction(0)
        high = sqrt_up(max(self.upper, Fraction(0))) if isinstance(self.upper, Fraction) else self.upper
        return Interval(low, high)

    def exponential(self) -> Interval:
        """e**x, widened by the slack of engines."""
        # e**±800 is far outside the doubles.
        low = exp_down(min(self.lower, Fraction(800))) if isinstance(self.lower, Fraction) and self.lower > -800 else 0
        high = math.inf if self.upper >= 800 else exp_up(Fraction(max(self.upper, -800)))
        return Interval(Fraction(low), high)._slackened()

    def logarithm(self, base: int | None = None) -> Interval:
        """ln x of what is above 0, or the logarithm to a base, widened by the slack of engines."""
        natural = self._exact_logarithm()
        return (natural if base is None else natural / Interval(log_down(base), log_up(base)))._slackened()

    def _exact_logarithm(self) -> Interval:
        low = log_down(self.lower) if isinstance(self.lower, Fraction) and self.lower > 0 else -math.inf
        if isinstance(self.upper, float):
            return Interval(low, self.upper)
        return Interval(low, log_up(self.upper) if self.upper > 0 else -math.inf)

    def _slackened(self) -> Interval:
        low, high = self.lower, self.upper
        low = low - abs(low) * _SLACK if isinstance(low, Fraction) else low
        return Interval(low, high + abs(high) * _SLACK if isinstance(high, Fraction) else high)


_LONGS = (Fraction(-(2**63)), Fraction(2**63 - 1))
LONGS = Interval(*_LONGS)
"""Every whole number an engine holds."""
DOUBLES = Interval(-LARGEST_DOUBLE, LARGEST_DOUBLE)
"""Every finite double."""
EVERYTHING = Interval()
"""Nothing is known."""


def hull(*intervals: Interval) -> Interval:
    """The smallest interval that holds all of them."""
    return Interval(min(part.lower for part in intervals), max(part.upper for part in intervals))


def power(base: Interval, exponent: Interval) -> Interval:
    """base**exponent where it is defined: for a base that is not below 0, or for one whole exponent."""
    only = exponent.lower
    whole = int(only) if isinstance(only, Fraction) and only == exponent.upper and only.denominator == 1 else None
    if base.lower < 0 and whole is None:
        return power(Interval(Fraction(0), max(base.upper, Fraction(0))), exponent)
    if base.lower < 0:
        size = power(base.absolute(), exponent)
        return size if only % 2 == 0 else Interval(-size.upper, size.upper)
    if whole is not None and 0 <= whole <= 64:
        return base.through(lambda end: end**whole)._slackened() if whole else Interval.exactly(1)
    return (base._exact_logarithm() * exponent).exponential()


def double(value: Fraction | int) -> Fraction:
    """The finite double nearest to a number."""
    near = _nearest(Fraction(value))
    if isinstance(near, float):
        return LARGEST_DOUBLE if near > 0 else -LARGEST_DOUBLE
    return near


def _nearest(end: End) -> End:
    if isinstance(end, float):
        return end
    try:
        near = float(end)
    except OverflowError:
        return math.inf if end > 0 else -math.inf
    return near if math.isinf(near) else Fraction(near)


def _sum(a: End, b: End) -> End:
    if isinstance(a, float):
        return a
    return b if isinstance(b, float) else a + b


def _product(a: End, b: End) -> End:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    if a == 0 or b == 0:
        return Fraction(0)
    return math.inf if (a > 0) == (b > 0) else -math.inf


def _inverse(end: End, at_zero: float) -> End:
    if end == 0:
        return at_zero
    return Fraction(0) if isinstance(end, float) else 1 / end

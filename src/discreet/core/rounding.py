"""Arithmetic that says which way it rounds.

Rational in, rational out. Sums, differences, products and quotients of Fractions are exact and need nothing
from here. The transcendental functions are enclosed by ball arithmetic (arb) at `PRECISION` bits, and the named
direction picks the end of the ball, so `exp_up(x) >= e**x >= exp_down(x)` always holds.

>>> exp_down(Fraction(1)) < exp_up(Fraction(1)) < exp_down(Fraction(1)) * (1 + Fraction(1, 2**90))
True
>>> float_up(Fraction(1, 10)) == 0.1, float_down(Fraction(1, 10)) < 0.1
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx, fmpq

__all__ = [
    "ball",
    "exp_down",
    "exp_up",
    "expm1_down",
    "expm1_up",
    "float_down",
    "float_up",
    "log1p_down",
    "log1p_up",
    "log_down",
    "log_up",
    "lower",
    "shorten_down",
    "shorten_up",
    "sqrt_down",
    "sqrt_up",
    "upper",
]

PRECISION = 160
"""Bits of every enclosure; results are shortened to `KEPT` bits, still in the named direction."""
KEPT = 96
SMALLEST = Fraction(1, 1 << 8192)
"""What is nearer to 0 than this is rounded to 0 or to this, on the named side."""


def ball(value: Fraction | int) -> arb:
    """The tightest ball round a rational at the precision in force."""
    number = Fraction(value)
    return arb(fmpq(number.numerator, number.denominator))


def upper(enclosure: arb) -> Fraction:
    """A rational no smaller than anything in the ball."""
    with ctx.workprec(PRECISION):
        return -_down(-enclosure)


def lower(enclosure: arb) -> Fraction:
    """A rational no larger than anything in the ball."""
    with ctx.workprec(PRECISION):
        return _down(enclosure)


def _down(enclosure: arb) -> Fraction:
    end = enclosure.lower()
    if abs(end) < ball(SMALLEST):
        return Fraction(0) if end >= 0 else -SMALLEST
    return shorten_down(_dyadic(end), KEPT)


def _enclose(function: Callable[[arb], arb], value: Fraction | int) -> arb:
    # exp(x) loses about log2|x| bits to the size of x, so large arguments get more.
    with ctx.workprec(PRECISION + max(0, math.floor(abs(Fraction(value))).bit_length())):
        return function(ball(value))


def exp_up(value: Fraction | int) -> Fraction:
    """At least e**value."""
    return upper(_enclose(arb.exp, value))


def exp_down(value: Fraction | int) -> Fraction:
    """At most e**value."""
    return lower(_enclose(arb.exp, value))


def expm1_up(value: Fraction | int) -> Fraction:
    """At least e**value − 1."""
    return upper(_enclose(arb.expm1, value))


def expm1_down(value: Fraction | int) -> Fraction:
    """At most e**value − 1."""
    return lower(_enclose(arb.expm1, value))


def log_up(value: Fraction | int) -> Fraction:
    """At least ln(value)."""
    return upper(_enclose(arb.log, value))


def log_down(value: Fraction | int) -> Fraction:
    """At most ln(value)."""
    return lower(_enclose(arb.log, value))


def log1p_up(value: Fraction | int) -> Fraction:
    """At least ln(1 + value)."""
    return upper(_enclose(arb.log1p, value))


def log1p_down(value: Fraction | int) -> Fraction:
    """At most ln(1 + value)."""
    return lower(_enclose(arb.log1p, value))


def sqrt_up(value: Fraction | int) -> Fraction:
    """At least √value."""
    return upper(_enclose(arb.sqrt, value))


def sqrt_down(value: Fraction | int) -> Fraction:
    """At most √value."""
    return max(Fraction(0), lower(_enclose(arb.sqrt, value)))


def float_up(value: Fraction | int) -> float:
    """The smallest double that is at least `value`; ∞ past the largest."""
    exact = Fraction(value)
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.nextafter(math.inf, 0)
    if math.isinf(near):
        return near if near > 0 else -math.nextafter(math.inf, 0)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def float_down(value: Fraction | int) -> float:
    """The largest double that is at most `value`."""
    return -float_up(-Fraction(value))


def shorten_up(value: Fraction, bits: int) -> Fraction:
    """A rational with at most `bits` significant bits over a power of two, at least `value`."""
    return -shorten_down(-value, bits)


def shorten_down(value: Fraction, bits: int) -> Fraction:
    """A rational with at most `bits` significant bits over a power of two, at most `value`."""
    if value == 0 or max(abs(value.numerator).bit_length(), value.denominator.bit_length()) <= bits:
        return value
    shift = bits - (abs(value.numerator).bit_length() - value.denominator.bit_length())
    if shift >= 0:
        return Fraction((value.numerator << shift) // value.denominator, 1 << shift)
    return Fraction((value.numerator // (value.denominator << -shift)) << -shift)


def _dyadic(number: arb) -> Fraction:
    mantissa, exponent = number.man_exp()
    if exponent >= 0:
        return Fraction(int(mantissa) << int(exponent))
    return Fraction(int(mantissa), 1 << -int(exponent))

"""Bounds on real-valued formulas, as tight as asked for.

A formula written in arb balls is evaluated at growing precision until the ball is narrow; the named end of the ball
is returned. Cancellation therefore costs time, never soundness.

>>> from discreet.core.rounding import ball
>>> tiny = Fraction(1, 2**80)
>>> above(lambda: (ball(tiny).exp() - 1 - ball(tiny)) / ball(tiny) ** 2) < Fraction(1, 2) + Fraction(1, 2**60)
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from flint import arb, ctx

from discreet.core.rounding import PRECISION, lower, shorten_up, upper

__all__ = ["above", "below", "enclosed", "finitely_above", "total"]

NARROW = 64
"""Relative accuracy in bits at which a ball is narrow enough."""
LIMIT = 16 * PRECISION
"""The precision at which sharpening stops: what is left then is a value that is zero or overflows."""
FAINTEST = Fraction(1, 2**200_000)
"""Values closer to zero than this are bounded by it, which keeps their exact form short."""
_FAINTEST = arb(2) ** -200_000
EXACT_BITS = 256
"""Sums stay exact up to this size of numerator and denominator; longer ones are rounded up."""


def above(formula: Callable[[], arb]) -> Fraction:
    """At least the value of the formula, which must be finite."""
    enclosure = enclosed(formula)
    return FAINTEST if _faint(enclosure) else upper(enclosure)


def below(formula: Callable[[], arb]) -> Fraction:
    """At most the value of the formula, which must be finite."""
    enclosure = enclosed(formula)
    return -FAINTEST if _faint(enclosure) else lower(enclosure)


def finitely_above(formula: Callable[[], arb]) -> Fraction | None:
    """At least the value of the formula, or None when no finite bound was found."""
    enclosure = enclosed(formula)
    return above(lambda: enclosure) if enclosure.is_finite() else None


def total(values: Iterable[Fraction]) -> Fraction:
    """The sum, exact while it is short and rounded up once its numerator or denominator passes `EXACT_BITS`."""
    result = Fraction(0)
    for value in values:
        result = shorten_up(result + value, EXACT_BITS)
    return result


def enclosed(formula: Callable[[], arb]) -> arb:
    """A ball round the value of the formula, narrow unless the value is zero or overflows."""
    precision = PRECISION
    while True:
        with ctx.workprec(precision):
            enclosure = formula()
        if enclosure.rel_accuracy_bits() >= NARROW or precision >= LIMIT:
            return enclosure
        precision *= 2


def _faint(enclosure: arb) -> bool:
    return bool(enclosure.abs_upper() < _FAINTEST) and not enclosure.is_zero()

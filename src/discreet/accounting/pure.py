"""ε-differential privacy of events: sums of the worst losses.

>>> pure(Laplace(scale=Fraction(10), sensitivity=6))
PureDP(epsilon=0.6)
>>> pure(PoissonSampled(Fraction(1, 100), Pure(Fraction(1))))
PureDP(epsilon=0.0170369)
"""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.enclosures import above, total
from discreet.accounting.flattening import parts, rate_of
from discreet.core.errors import NotAccountable
from discreet.core.events import (
    BoundedRange,
    BoundedRanges,
    Event,
    FixedSizeSampled,
    Laplace,
    PoissonSampled,
    Pure,
)
from discreet.core.losses import PureDP
from discreet.core.rounding import ball, sqrt_up

__all__ = ["amplified", "pure"]

STEEP = 10**6
"""Above this ε sampling is not credited: e^ε is a number with a million bits, and ln(1 + γ(e^ε − 1)) > ε − ln(1/γ)."""


def pure(event: Event) -> PureDP:
    """The least ε proven for `event`. A Gaussian or an event with δ > 0 has none."""
    return PureDP(total(count * _epsilon(leaf) for leaf, count in parts(event)))


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + γ(e^ε − 1)): what an ε-private event costs on a secret sample that holds a unit with chance γ.

    Poisson sampling under add/remove neighbours and fixed-size sampling under replace neighbours both give exactly
    this (Balle, Barthe, Gaboardi 2018, Theorems 8 and 9); an inner δ becomes γδ.
    """
    if rate == 0 or epsilon == 0:
        return Fraction(0)
    if rate == 1 or epsilon > STEEP:
        return epsilon
    return min(epsilon, above(lambda: (ball(rate) * ball(epsilon).expm1()).log1p()))


def _epsilon(leaf: Event) -> Fraction:
    match leaf:
        case Laplace(scale, sensitivity):
            return sensitivity / scale
        case Pure(epsilon) | BoundedRange(epsilon):
            return epsilon
        case BoundedRanges(squared_epsilon, dimension):
            # Σ ε_i is largest when all are equal.
            return sqrt_up(squared_epsilon * dimension)
        case PoissonSampled() | FixedSizeSampled():
            return amplified(pure(leaf.event).epsilon, rate_of(leaf))
        case _:
            raise NotAccountable("pure", leaf, "use approximate, which allows a δ, or another mechanism")

"""Zero-concentrated differential privacy of events: one number ρ that adds up.

An event is ρ-zCDP when its Rényi divergence of every order α > 1 is at most ρα.

>>> zcdp(Gaussian(variance=Fraction(100), squared_sensitivity=Fraction(2), dimension=2))
ZCDP(rho=0.01)
>>> zcdp(Pure(Fraction(1))), zcdp(BoundedRange(Fraction(1)))
(ZCDP(rho=0.462118), ZCDP(rho=0.125))

Discrete Gaussian noise on ℤᵈ has exactly the Δ²/2σ² of the continuous (Canonne, Kamath, Steinke 2020, Theorem 14).

For randomized response and the discrete Laplace the best ρ is the limit at α → 1, the Kullback–Leibler divergence:
with λ = α − 1, y = λ + ½ and R ∝ √(PQ), symmetry gives (α − 1)·D_α = ln F(y) − ln F(½) with F(y) = E_R cosh(yℓ). If
all zeros of F are imaginary then F(√x) is a product of factors 1 + x/b², so ln F(√x) is concave in x and lies below
its tangent at x = ¼; since x − ¼ = λα this reads D_α ≤ α·KL. For two losses ±ε, F is a cosh. For discrete Laplace noise
moved by a steps, F is a polynomial in z = e^{2y/s} with coefficients (1, 1−p, …, 1−p, 1) up to a factor, p = e^{−1/s};
times z − 1 it vanishes where zᵃ·(z − p)/(1 − pz) = 1, and as (z − p)/(1 − pz) is inside the unit circle exactly when
z is, only on the circle. Noise on several coordinates costs no more than the whole move in one, since KL is convex in
the move.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from discreet.accounting.enclosures import above, total
from discreet.accounting.flattening import parts
from discreet.core.errors import NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    BoundedRanges,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
)
from discreet.core.losses import ZCDP
from discreet.core.rounding import ball, sqrt_up

__all__ = ["pure_rho", "zcdp"]


def zcdp(event: Event) -> ZCDP:
    """The least ρ proven for `event`."""
    return ZCDP(total(count * _rho(leaf) for leaf, count in parts(event)))


def pure_rho(epsilon: Fraction) -> Fraction:
    """ε·tanh(ε/2), the ρ of every ε-private computation; randomized response attains it."""
    return min(epsilon**2 / 2, epsilon, above(lambda: ball(epsilon) * (ball(epsilon) / 2).tanh()))


def _rho(leaf: Event) -> Fraction:
    match leaf:
        case Gaussian(variance, squared_sensitivity):
            return squared_sensitivity / (2 * variance)
        case Laplace(scale, sensitivity):
            return min(pure_rho(sensitivity / scale), above(lambda: _laplace_divergence(scale, sensitivity)))
        case Pure(epsilon):
            return pure_rho(epsilon)
        case BoundedRange(epsilon):
            return min(epsilon**2 / 8, pure_rho(epsilon))
        case BoundedRanges(squared_epsilon, dimension):
            return min(squared_epsilon / 8, pure_rho(sqrt_up(squared_epsilon * dimension)))
        case PoissonSampled() | FixedSizeSampled():
            raise NotAccountable("zCDP", leaf, "use renyi or pld: sampling helps only at small orders")
        case Approximate():
            raise NotAccountable("zCDP", leaf, "use approximate or pld, which allow a δ")
        case _:
            raise NotAccountable("zCDP", leaf, "use an event of discreet.core.events")


def _laplace_divergence(scale: Fraction, sensitivity: int) -> arb:
    """E|X − a| − E|X| in units of the scale, X discrete Laplace, a the sensitivity."""
    rate = ball(1 / scale)
    saved = 2 * (-rate).exp() * (-sensitivity * rate).expm1() / (-2 * rate).expm1()
    return rate * (sensitivity - saved)

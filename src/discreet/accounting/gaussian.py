"""The (ε, δ) curve of Gaussian noise: exact for continuous noise, proven for the noise on integers.

>>> float(continuous_delta(Fraction(1), mu_squared=Fraction(1)))
0.12693673750664394
>>> grid = [(Gaussian(variance=Fraction(2**20), squared_sensitivity=Fraction(2**20)), 1)]
>>> float(discrete_delta(grid, Fraction(1)))
0.12693693805432651

Continuous noise that moves by μ standard deviations has δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle, Wang 2018), for
every real ε, and adaptively composed Gaussians are together one with μ² = Σμᵢ² (Dong, Roth, Su 2022).

From continuous to integers: draw y from N(f(D), σ² − τ²) and then an integer from the discrete Gaussian of variance τ²
round y. By Poisson summation the normalising sum of the second draw is τ√2π·(1 ± η) wherever y lies, with
η ≤ 2e^{−2π²τ²}/(1 − e^{−6π²τ²}); so the integer has each probability within a factor (1 + η)/(1 − η) = e^κ of the
discrete Gaussian of variance σ² round f(D). The second draw is post-processing, hence over all coordinates together
δ_discrete(ε) ≤ e^κ·δ_continuous(ε − 2κ) with σ² − τ² for the variance. A τ² of about 1.5 makes κ about 10⁻¹³.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from discreet.accounting.enclosures import above, total
from discreet.accounting.search import least, logarithm
from discreet.core.events import Gaussian
from discreet.core.rounding import ball, shorten_up

__all__ = ["continuous_delta", "discrete_delta", "discrete_epsilon"]

Gaussians = Sequence[tuple[Gaussian, int]]
"""Gaussian events of positive sensitivity, with how often each is run."""

SMOOTHNESS = math.log(4 * 2.0**32)
"""The smoothing variance is chosen so that κ ≤ 2⁻³²·μ, which moves ε by less than anyone reports."""


FAR = 100
"""Beyond this many deviations erfc is computed without its factor e^{−x²}."""


def continuous_delta(epsilon: Fraction, mu_squared: Fraction) -> Fraction:
    """At least the δ at ε of continuous Gaussian noise that moves by μ > 0 standard deviations."""
    return min(Fraction(1), max(Fraction(0), above(lambda: _delta(ball(epsilon), ball(mu_squared)))))


def discrete_delta(events: Gaussians, epsilon: Fraction) -> Fraction:
    """At least the δ at ε of discrete Gaussian events composed adaptively; 1 when their noise is under a few steps."""
    smoothed = _smoothed(events)
    return Fraction(1) if smoothed is None else _smoothed_delta(*smoothed, epsilon)


def discrete_epsilon(events: Gaussians, delta: Fraction) -> Fraction | None:
    """At least the ε at δ of discrete Gaussian events composed adaptively; None when their noise is too small."""
    smoothed = _smoothed(events)
    if smoothed is None:
        return None

    def holds(epsilon: Fraction) -> bool:
        return _smoothed_delta(*smoothed, epsilon) <= delta

    if holds(Fraction(0)):
        return Fraction(0)
    high = Fraction(1)
    while not holds(high):
        high *= 2
    low = high
    while holds(low):
        low /= 2**16
    return least(holds, low, high)


def _delta(epsilon: arb, mu_squared: arb) -> arb:
    """½·(erfc(z) − e^ε·erfc(w)) with z, w = (ε/μ ∓ μ/2)/√2, so that ε = w² − z² and e^ε·erfc(w) = e^{−z²}·erfcx(w)."""
    mu = mu_squared.sqrt()
    root = arb(2).sqrt()
    z, w = (epsilon / mu - mu / 2) / root, (epsilon / mu + mu / 2) / root
    if z > FAR:
        return (-z * z).exp() * (_erfcx(z) - _erfcx(w)) / 2
    if w > FAR:
        here = 2 - (-z * z).exp() * _erfcx(-z) if z < -FAR else z.erfc()
        return (here - (-z * z).exp() * _erfcx(w)) / 2
    return (z.erfc() - epsilon.exp() * w.erfc()) / 2


def _erfcx(x: arb) -> arb:
    """e^{x²}·erfc(x), which keeps its accuracy at large x."""
    return (x * x).hypgeom_u(arb(1) / 2, arb(1) / 2) / arb.pi().sqrt()


def _smoothed_delta(mu_squared: Fraction, kappa: Fraction, epsilon: Fraction) -> Fraction:
    bound = above(lambda: ball(kappa).exp() * _delta(ball(epsilon - 2 * kappa), ball(mu_squared)))
    return min(Fraction(1), max(Fraction(0), bound))


def _smoothed(events: Gaussians) -> tuple[Fraction, Fraction] | None:
    """(μ², κ) of the continuous noise that dominates these events, or None when σ² leaves no room for τ²."""
    coordinates = sum(event.dimension * count for event, count in events)
    moved = total(count * event.squared_sensitivity / event.variance for event, count in events)
    tau_squared = _smoothing_variance(coordinates, moved)
    if any(event.variance <= tau_squared for event, _ in events):
        return None
    ratio = above(lambda: _deviation(ball(tau_squared)))
    kappa = coordinates * above(lambda: ball(ratio).log1p() - (-ball(ratio)).log1p())
    return total(count * e.squared_sensitivity / (e.variance - tau_squared) for e, count in events), kappa


def _smoothing_variance(coordinates: int, mu_squared: Fraction) -> Fraction:
    wanted = (SMOOTHNESS + math.log(coordinates) - logarithm(mu_squared) / 2) / (2 * math.pi**2)
    return shorten_up(Fraction(max(wanted, 0.5)), 16)


def _deviation(tau_squared: arb) -> arb:
    exponent = -2 * arb.pi() ** 2 * tau_squared
    return 2 * exponent.exp() / (1 - (3 * exponent).exp())

"""The loss laws of discrete noise and of computations known only by their guarantee.

Each function returns a law that dominates every neighbour pair its event allows; all of them are their own reverse.

>>> law = laplace(Fraction(2), 1)
>>> law.atoms(0.0).losses, law.atoms(0.0).masses.round(4)
(array([-0.5,  0.5]), array([0.3775, 0.6225]))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting.pld.grid import TINY, ULP, Array, Atoms
from discreet.accounting.pld.laws import Lattice, Law, Ramp
from discreet.core.rounding import expm1_up, float_up, log1p_down

__all__ = ["DiscreteNormal", "laplace", "randomised_response"]

MOST_ATOMS = 1024
"""A Laplace lattice longer than this is replaced by the continuous law that dominates it."""


def randomised_response(epsilon: Fraction, delta: float = 0.0) -> Lattice:
    """The worst (ε, δ)-private computation: δ at ∞, and otherwise one bit told truly with odds e^ε.

    Every (ε, δ)-private computation is a post-processing of it (Kairouz, Oh, Viswanath 2015).
    """
    size = float_up(epsilon)
    low = math.exp(-size)
    masses = np.array([low / (1 + low) * (1 + 8 * ULP * (2 + size)) + TINY, 1 / (1 + low) * (1 + 8 * ULP)])
    return Lattice(-epsilon, 2 * epsilon, masses * (1 - delta) * (1 + 4 * ULP), delta)


def laplace(scale: Fraction, sensitivity: int) -> Law:
    """Discrete Laplace noise on any number of integers that move by at most a in ℓ1 is dominated by one moved by a.

    With p = e^{−1/scale}, one integer moved by a has the losses (a − 2m)/scale, m = 0 … a, with the profile 1 − p^m
    there and linear in e^ε between. For a product of two pairs, min(uv, xy) ≥ min(u, x)·min(v, y) gives
    1 − δ(ε + ε′) ≥ (1 − δ₁(ε))·(1 − δ₂(ε′)). Moves a and b have 1 − δ = p^m and p^{m′} at their lattice points, and
    every lattice point of a + b is a sum of two such, with p^{m+m′} = 1 − δ_{a+b} there; both profiles are
    convex in e^ε, so moving a and b is dominated by moving a + b. A smaller move is part of such a product.

    The profile is the chord, over lattice steps w = 2/scale, of that of the continuous law, 1 − c·√u in u = e^ε. A
    chord is above it by at most c·√u·(e^w − 1)²/32, and at most by one step: a continuous law with a slightly larger
    top dominates.
    """
    top = sensitivity / scale
    if sensitivity <= MOST_ATOMS:
        rate = float(1 / scale)
        powers = np.arange(sensitivity, -1, -1, dtype=np.float64) * rate
        masses = np.exp(-powers) * (1 + 8 * ULP * (2 + powers)) + TINY
        masses[1:-1] *= -math.expm1(-rate)
        masses *= (1 + 8 * ULP * (2 + rate)) / (1 + math.exp(-rate))
        return Lattice(-top, 2 / scale, masses)
    step = 2 / scale
    bulge = expm1_up(step) ** 2 / 32 if step < 4 else Fraction(1)
    raised = top + (min(step, -2 * log1p_down(-bulge)) if bulge < 1 else step)
    return Ramp(float_up(raised), 0.5, True, top)


@dataclass(frozen=True, eq=False)
class DiscreteNormal(Law):
    """Discrete Gaussian noise on one integer moved by `shift`.

    The likelihood ratio is monotone, so δ(ε) is the largest P(Z ≥ t) − e^ε·P(Z ≥ t + shift) and grows with the shift.
    """

    variance: Fraction
    shift: int

    @property
    def ceiling(self) -> None:
        return None

    @property
    def lattice(self) -> tuple[Fraction, Fraction]:
        return self._loss(0), self.shift / self.variance

    def reach(self, tail: float) -> tuple[float, float]:
        last = self._last(tail)
        return float(self._loss(-last)), float(self._loss(last))

    def atoms(self, tail: float) -> Atoms:
        last = self._last(tail)
        ks = np.arange(-last, last + 1, dtype=np.float64)
        powers = ks * ks * float(1 / (2 * self.variance))
        masses: Array = np.exp(-powers) * (1 + 8 * ULP * (2 + powers))
        total = float(masses.sum()) * (1 - 16 * ULP * len(ks))
        # The ratio of neighbouring masses past the last is at most their ratio at the last.
        ratio = math.exp(-(2 * last + 1) * float(1 / (2 * self.variance)))
        beyond = float(masses[-1]) * ratio / (1 - ratio) / total * (1 + 1e-9) + TINY
        masses = masses / total * (1 + 64 * ULP * len(ks)) + TINY
        masses[0] += beyond
        step = self.shift / self.variance
        start = self._loss(-last)
        return Atoms(float(start) + float(step) * (ks + last), masses, beyond, (start, step))

    def _loss(self, k: int) -> Fraction:
        """At the output k above the moved value: (z² − (z − a)²)/2σ² with z = k + a."""
        return self.shift * (2 * k + self.shift) / (2 * self.variance)

    def _last(self, tail: float) -> int:
        return math.ceil(math.sqrt(float(self.variance) * 2 * (2 - math.log(max(tail, TINY))))) + 1

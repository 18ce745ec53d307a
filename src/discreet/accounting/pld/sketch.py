"""A quick sketch of a sum of losses: where its tail is, and which grid and tilt resolve it.

Only `drift` is a bound; the rest affects how close an answer is and how long it takes.

>>> from discreet.accounting.pld.laws import Normal
>>> sketch = Sketch.of_laws([Normal(1.0)], [4], tail=1e-12)
>>> mean, variance = sketch.moments(0.0)[1:]
>>> round(mean, 1), round(variance, 1)                      # N(2, 4) for μ = √4
(2.0, 4.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from discreet.accounting.pld.grid import ULP, Array, Pmf, dot
from discreet.accounting.pld.laws import Law

__all__ = ["LOG_LEAST", "Sketch", "fitted"]

CELLS = 160
ACCURACY = 1e-5
"""The relative error of ε aimed at, within these numbers of grid points."""
LOG_LEAST = -645.0
"""ln of the smallest δ that double precision resolves."""
LEAST_POINTS, MOST_POINTS = 2**15, 2**20


Grid = tuple[Array, Array, float]
"""Losses, their masses, and the mass at ∞."""


class Sketch:
    """Masses of every law. For their sum, `drift` bounds δ(0) by the sum of all δ(0); `lost` is about its mass at ∞."""

    def __init__(self, grids: Sequence[Grid], counts: Sequence[int]) -> None:
        # Fine grids of lattice laws hold mostly zeros.
        held = [(losses[mass > 0], mass[mass > 0]) for losses, mass, _ in grids]
        width = max(1, *(len(mass) for _, mass in held))
        self.losses: Array = np.zeros((len(grids), width))
        self.logs: Array = np.full((len(grids), width), -np.inf)
        for row, (losses, mass) in enumerate(held):
            self.losses[row, : len(mass)] = losses
            self.logs[row, : len(mass)] = np.log(mass)
        self.counts: Array = np.array([float(count) for count in counts])
        self.widest = max(float(losses[-1] - losses[0]) for losses, _, _ in grids)
        gains = [dot(-np.expm1(-losses.clip(0)), mass) + infinity for losses, mass, infinity in grids]
        excess = [max(0.0, float(mass.sum()) + infinity - 1) for _, mass, infinity in grids]
        kept = [math.log1p(-min(infinity, 1 - ULP)) for _, _, infinity in grids]
        self.lost = -math.expm1(float(self.counts @ np.array(kept)))
        inflation = math.exp(min(2 * float(self.counts @ np.array(excess)), 700.0))
        self.drift = float(self.counts @ np.array(gains)) * inflation * (1 + 1e-9)
        _, self.mean, variance = self.moments(0.0)
        self.spread = math.sqrt(max(variance, 1e-300))

    @classmethod
    def of_laws(cls, laws: Sequence[Law], counts: Sequence[int], tail: float) -> Sketch:
        """From coarse masses of every law, each on its own grid."""
        return cls([_coarse(law, tail) for law in laws], counts)

    @classmethod
    def of_pmfs(cls, pmfs: Sequence[Pmf], counts: Sequence[int], interval: float) -> Sketch:
        """From masses that are already there."""
        return cls([_grid(pmf, interval) for pmf in pmfs], counts)

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """K(θ) = Σ count·ln E[e^{θL}] and its first two derivatives, the mean and variance of the tilted sum."""
        logs = self.logs + tilt * self.losses
        peaks = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - peaks)
        totals = weights.sum(axis=1)
        means = (weights * self.losses).sum(axis=1) / totals
        variances = (weights * (self.losses - means[:, None]) ** 2).sum(axis=1) / totals
        cumulant = self.counts @ (peaks[:, 0] + np.log(totals))
        return float(cumulant), float(self.counts @ means), float(self.counts @ variances)

    def tilt_for_delta(self, log_delta: float) -> float:
        """The tilt whose mean is near the ε with ln δ(ε) = `log_delta`."""
        return self._root(lambda tilt: self._log_delta(tilt, *self.moments(tilt)[:2]) - log_delta)

    def tilt_for_epsilon(self, epsilon: float) -> float:
        """The tilt whose mean is ε; at least so much that the noise of the transform fades with the loss."""
        least = min(1 / self.spread, 20 / self.widest)
        for _ in range(40):
            if self.moments(least)[1] <= self.mean + self.spread:
                break
            least /= 2
        if epsilon <= self.moments(least)[1]:
            return least
        return min(self._root(lambda tilt: epsilon - self.moments(tilt)[1]), self.tilt_for_delta(LOG_LEAST))

    def log_delta(self, tilt: float, epsilon: float) -> float:
        """About ln δ(ε): mass e^{K − θ·ε} is above ε, by about 1/θ or the standard deviation."""
        return self._log_delta(tilt, self.moments(tilt)[0], epsilon)

    def _log_delta(self, tilt: float, cumulant: float, epsilon: float) -> float:
        return cumulant - tilt * epsilon - math.log1p(tilt + 1 / self.spread)

    def _root(self, falling: Callable[[float], float]) -> float:
        low, high = math.log(1e-4 / max(self.spread, self.widest)), math.log(1e9 / self.spread)
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if falling(math.exp(middle)) > 0 else (low, middle)
        return math.exp(high)

    def interval(self, tilt: float, epsilon: float) -> float:
        """The grid step that moves ε by about ACCURACY of itself, and δ by about a thousandth.

        Sharing mass between grid points adds about h²/6 to the variance of each loss and half that to its mean, which
        is θ(θ + 1)·h²/12 in K(θ), and 1/θ of that in ε; and each loss moves up by at most h. Next to an atom ε moves by
        up to a part of h, the less the more losses there are.
        """
        total = float(self.counts.sum())
        _, _, variance = self.moments(tilt)
        error = ACCURACY * max(epsilon, self.spread / 16)
        if tilt * self.spread < 1e3:
            error = min(error, 1e-3 / (tilt + 1))
        step = max(math.sqrt(12 * error / (total * (tilt + 1))), error / total)
        step = min(step, 10 * error * math.sqrt(total))
        extent = 16 * math.sqrt(variance)
        fine = max(extent, self.spread) * max(1, len(self.counts) // 4) / LEAST_POINTS
        return max(min(step, fine), extent / MOST_POINTS, self.widest / MOST_POINTS)


def fitted(interval: float, laws: Sequence[Law]) -> Fraction:
    """A grid step of at most about `interval` that puts the losses of lattice laws on the grid where it can.

    Where all laws are lattices with a common step, that step loses nothing, however wide it is.
    """
    shared = Fraction(0)
    lattices = [law.lattice for law in laws if law.lattice is not None]
    for part in (part for lattice in lattices for part in lattice):
        numerator = math.gcd(shared.numerator * part.denominator, part.numerator * shared.denominator)
        shared = Fraction(numerator, shared.denominator * part.denominator)
    if shared >= Fraction(interval):
        return shared if len(lattices) == len(laws) else shared / math.ceil(shared / Fraction(interval))
    mantissa, exponent = math.frexp(interval)
    return Fraction(math.floor(mantissa * 16), 16) * Fraction(2) ** exponent


def _coarse(law: Law, tail: float) -> Grid:
    low, high = law.span(tail)
    step = Fraction(max((high - low) / CELLS, 1e-9 * abs(high), 1e-290))
    return _grid(law.on_grid(step, tail), float(step))


def _grid(pmf: Pmf, interval: float) -> Grid:
    return interval * np.arange(pmf.first, pmf.first + len(pmf.mass), dtype=np.float64), pmf.mass, pmf.infinity

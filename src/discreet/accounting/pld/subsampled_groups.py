"""Several computations on one secret sample: their joint loss as one law.

>>> from discreet.accounting.pld.laws import Normal
>>> pair = Compound([(Normal(0.6), 1), (Normal(0.8), 1)])
>>> atoms = pair.atoms(1e-12)
>>> float(atoms.masses.sum()) - 1 < 1e-6, round(float(atoms.masses @ atoms.losses), 4)     # N(1/2, 1) for μ = 1
(True, 0.5)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.accounting.pld.convolution import Window, convolve
from discreet.accounting.pld.grid import ULP, Array, Atoms
from discreet.accounting.pld.laws import LOW_TAIL, Law
from discreet.accounting.pld.sketch import Sketch, fitted

__all__ = ["Compound"]

FINENESS = 3e-7
"""The share of the variance that the grid may add."""
MOST_POINTS = 2**17
STRIDE = 4.0
"""Standard deviations between the centres of neighbouring windows."""


class Compound(Law):
    """The sum of independent losses, as point masses that are each at least the true one.

    Each mass is the smallest that any of several differently tilted transforms gives, so that it is close to
    the truth even far out in the tails.
    """

    def __init__(self, parts: Sequence[tuple[Law, int]]) -> None:
        self.laws = [law for law, _ in parts]
        self.counts = [count for _, count in parts]
        self._known: dict[int, Atoms] = {}

    @property
    def ceiling(self) -> Fraction | None:
        tops = [law.ceiling for law in self.laws]
        known = [count * top for count, top in zip(self.counts, tops, strict=True) if top is not None]
        return sum(known, Fraction(0)) if len(known) == len(tops) else None

    def reach(self, tail: float) -> tuple[float, float]:
        losses = self.atoms(tail).losses
        return float(losses[0]), float(losses[-1])

    def atoms(self, tail: float) -> Atoms:
        key = math.floor(math.log2(max(tail, 1e-290)) / 8)
        if key not in self._known:
            self._known[key] = self._summed(2.0 ** (8 * key))
        return self._known[key]

    def _summed(self, tail: float) -> Atoms:
        total = sum(self.counts)
        share = tail / (8 * total)
        sketch = Sketch.of_laws(self.laws, self.counts, share)
        step = max(sketch.spread * math.sqrt(6 * FINENESS / total), sketch.widest / MOST_POINTS)
        interval = fitted(step, self.laws)
        pmfs = [law.on_grid(interval, share) for law in self.laws]
        if total == 1:
            only = pmfs[0]
            losses = float(interval) * np.arange(only.first, only.first + len(only.mass), dtype=np.float64)
            return Atoms(losses, only.mass, only.infinity, (only.first * interval, interval))
        windows = [convolve(pmfs, self.counts, interval, tilt) for tilt in _tilts(sketch, math.log(share))]
        # Above the window of the largest tilt all mass is counted at ∞; below that of the least only the total matters.
        first, last = windows[0].first, windows[-1].first + len(windows[-1].mass)
        masses = np.full(last - first, np.inf)
        for window in windows:
            start, end = max(window.first, first), min(window.first + len(window.mass), last)
            if start < end:
                found = _untilted(window)[start - window.first : end - window.first]
                masses[start - first : end - first] = np.minimum(masses[start - first : end - first], found)
        gaps = np.flatnonzero(np.diff(np.isfinite(masses).astype(np.int8))) + 1
        for start, end in gaps.reshape(-1, 2):
            masses[start:end] = 0.0
            masses[end] += min(_mass_from(window, first + int(start)) for window in windows if window.tilt >= 0)
        infinity = windows[-1].unseen
        masses[0] += max(0.0, 1 + 2 * len(masses) * ULP - float(masses.sum()) - infinity)
        losses = float(interval) * np.arange(first, first + len(masses), dtype=np.float64)
        return Atoms(losses, masses, infinity, (first * interval, interval))


def _tilts(sketch: Sketch, log_tail: float) -> list[float]:
    """Tilts whose windows overlap and reach from the low tail to the high one."""
    found = [0.0]
    for side, depth in ((1, log_tail), (-1, math.log(LOW_TAIL))):
        tilt = 0.0
        for _ in range(24):
            cumulant, mean, variance = sketch.moments(tilt)
            if cumulant - tilt * mean < depth or variance < 1e-4 * sketch.spread**2:
                break
            step = side * STRIDE / math.sqrt(variance)
            for _ in range(24):
                _, after, around = sketch.moments(tilt + step)
                if abs(after - mean) <= 2 * STRIDE * math.sqrt(max(variance, around)):
                    break
                step /= 2
            tilt += step
            found.append(tilt)
    return sorted(found)


def _mass_from(window: Window, index: int) -> float:
    """A bound on all the mass at this grid point and above: e^{K(θ) − θ·loss}."""
    rise = window.tilt * float((index - window.origin) * window.interval)
    return math.exp(min(window.log_scale - rise + 1e-6, 0.0))


def _untilted(window: Window) -> Array:
    step = float(window.interval)
    rises = step * np.arange(window.first - window.origin, window.first - window.origin + len(window.mass))
    doubt = 16 * ULP * (abs(window.log_scale) + abs(window.tilt) * float(np.abs(rises).max()) + 1)
    with np.errstate(over="ignore"):
        return np.asarray(window.mass * np.exp(window.log_scale + doubt - window.tilt * rises))

"""What counted successes prove about probabilities, and what probabilities prove about a guarantee.

If an event was seen `hits` times in `trials` independent runs, its probability is at least `proportion_low` with
error at most α, and at most `proportion_high` with error at most α (Clopper and Pearson 1934; exact, not
asymptotic). From P(E) ≥ p and Q(E) ≤ q follow lower bounds on ε, δ and on the Rényi divergence between P and Q.

>>> round(float(proportion_low(100, 100, 0.05)), 4), round(float(proportion_high(0, 100, 0.05)), 4)
(0.9705, 0.0295)
>>> epsilon_from(0.5, 0.25)
0.6931471805599453
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["delta_from", "epsilon_from", "proportion_high", "proportion_low", "renyi_from", "wilson"]

Floats = NDArray[np.float64]

_SLACK = 1e-9
"""Relative widening of each bound: far above the error of the inverse beta function (checked against exact
binomial sums), far below anything that matters to an audit. Where that function fails, for α far below 10⁻¹⁰⁰, a bound
says nothing."""


def proportion_low(hits: ArrayLike, trials: ArrayLike, alpha: ArrayLike) -> Floats:
    """A lower bound on a probability after `hits` out of `trials`, wrong with probability at most `alpha`."""
    from scipy.special import betaincinv

    seen, runs = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(trials, np.float64))
    some = np.maximum(seen, 1e-300)
    low: Floats = np.where(seen > 0, betaincinv(some, runs - seen + 1, alpha), 0.0)
    return np.nan_to_num(low * (1 - _SLACK), nan=0.0)


def proportion_high(hits: ArrayLike, trials: ArrayLike, alpha: ArrayLike) -> Floats:
    """An upper bound on a probability after `hits` out of `trials`, wrong with probability at most `alpha`."""
    from scipy.special import betainccinv

    seen, runs = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(trials, np.float64))
    missed = np.maximum(runs - seen, 1e-300)
    high: Floats = np.where(seen < runs, betainccinv(seen + 1, missed, alpha), 1.0)
    return np.nan_to_num(np.minimum(high * (1 + _SLACK), 1.0), nan=1.0)


def wilson(hits: Floats, trials: float, z: float) -> tuple[Floats, Floats]:
    """A quick (low, high) that ranks events nearly as the exact bounds do; it proves nothing."""
    centre = hits + z * z / 2
    spread = z * np.sqrt(hits * (1 - hits / trials) + z * z / 4)
    return np.maximum(centre - spread, 0) / (trials + z * z), (centre + spread) / (trials + z * z)


def epsilon_from(p_low: float, q_high: float, delta: float = 0.0) -> float:
    """The least ε ≥ 0 for which P(E) ≤ e^ε·Q(E) + δ is still possible."""
    gain = p_low - delta
    if gain <= q_high:
        return 0.0
    return math.inf if q_high <= 0 else math.log(gain / q_high)


def delta_from(p_low: float, q_high: float, epsilon: float) -> float:
    """The least δ ≥ 0 for which P(E) ≤ e^ε·Q(E) + δ is still possible."""
    return max(0.0, p_low - math.exp(epsilon) * q_high) if epsilon < 700 else 0.0


def renyi_from(p_low: float, q_high: float, order: float) -> float:
    """A lower bound on the Rényi divergence of `order` > 1 between P and Q.

    Telling only whether the event happened cannot increase a divergence, and for p > q the divergence between two
    coins grows with p and falls with q, so the coins (p_low, q_high) are the least favourable pair.
    """
    if p_low <= q_high:
        return 0.0
    if q_high <= 0:
        return math.inf
    more, gap = order - 1, p_low - q_high
    heads = math.log1p(gap / q_high)
    tails = math.log1p(-gap / (1 - q_high)) if p_low < 1 else -math.inf
    if more * heads > 1:
        left = math.log1p(-p_low) + more * tails if p_low < 1 else -math.inf
        return max(0.0, float(np.logaddexp(math.log(p_low) + more * heads, left)) / more)
    # The logarithm of a number near 1, from what it is above 1; at order 1 what is left is the relative entropy.
    if more <= 0:
        return max(0.0, p_low * heads + ((1 - p_low) * tails if p_low < 1 else 0.0))
    above = p_low * math.expm1(more * heads) + (1 - p_low) * math.expm1(more * tails)
    return max(0.0, math.log1p(above) / more)

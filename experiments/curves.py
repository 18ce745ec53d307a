"""Exact privacy curves δ(ε), written down from the densities and apart from the library that they are to check.

Double precision: relative errors stay below 1e-9.

>>> round(gaussian_delta(1.0, mu=1.0), 6), round(response_delta(0.5, 1.0, k=1), 6), laplace_delta(1.0, 10, shift=10)
(0.126937, 0.287649, 0.0)
>>> round(epsilon_at(0.126937, lambda e: gaussian_delta(e, mu=1.0)), 5)
1.0
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr

__all__ = ["epsilon_at", "gaussian_delta", "laplace_delta", "response_delta"]


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Continuous Gaussian noise that moves by μ standard deviations: Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)."""
    upper, lower = float(log_ndtr(mu / 2 - epsilon / mu)), float(log_ndtr(-mu / 2 - epsilon / mu))
    return -math.exp(upper) * math.expm1(epsilon + lower - upper)


def response_delta(epsilon: float, each: float, k: int) -> float:
    """k randomized responses, each of them `each`-private: l true answers have the loss (2l − k)·each."""
    truths = np.arange(k + 1)
    choices = gammaln(k + 1) - gammaln(truths + 1) - gammaln(k - truths + 1)
    chances = np.exp(choices + truths * each - k * math.log1p(math.exp(each)))
    excess = (2 * truths - k) * each - epsilon
    return float(chances[excess > 0] @ -np.expm1(-excess[excess > 0]))


def laplace_delta(epsilon: float, scale: float, shift: int) -> float:
    """Discrete Laplace noise moved by `shift` steps: Σ (P − e^ε·Q)₊ over the integers, the tails in closed form."""
    decay = math.exp(-1 / scale)
    norm = (1 - decay) / (1 + decay)
    between = np.arange(1, shift)
    # At k the loss is (shift − 2k)/scale for 0 < k < shift, and ±shift/scale outside; the sum over k ≤ 0 is P's half.
    losses = np.concatenate([[shift / scale], (shift - 2 * between) / scale])
    chances = np.concatenate([[1 / (1 + decay)], norm * np.exp(-between / scale)])
    excess = losses - epsilon
    return float(chances[excess > 0] @ -np.expm1(-excess[excess > 0]))


def epsilon_at(delta: float, curve: Callable[[float], float], most: float = 1e4) -> float:
    """The ε ≥ 0 at which a falling curve meets δ."""
    if curve(0.0) <= delta:
        return 0.0
    return float(brentq(lambda e: curve(e) / delta - 1, 0.0, most, xtol=1e-13, rtol=1e-13))

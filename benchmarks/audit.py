"""How close the auditor comes to the truth: its lower bound on ε against the exact ε, and the time it takes.

    python benchmarks/audit.py [runs]

Four mechanisms whose exact ε on the chosen pair is known, at ε = 0.1, 1 and 4; five million runs on each of two data
sets by default, ten million in all, confidence 1 − 10⁻⁹. The Gaussian is audited at δ = 0.01, where its curve δ(ε) is
exact. The aim is a bound of at least 85 % of ε within a minute. "caught" is the least ε of an event as likely as the
one tested that so many runs would have shown to be above the exact one, with probability 99 %.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from discreet.adversary import audit
from discreet.core.losses import ApproxDP, PureDP
from discreet.noise import bernoulli, discrete_gaussian, discrete_laplace, gibbs

DELTA = 0.01
STEPS = 1000
"""Grid steps in the sensitivity of the additive mechanisms."""


def laplace(epsilon: float) -> Callable[[int, int], Any]:
    """Scale Δ/ε."""
    scale = Fraction(STEPS / epsilon)
    return lambda shift, runs: shift * STEPS + discrete_laplace(scale, runs)


def gaussian(epsilon: float) -> Callable[[int, int], Any]:
    """The σ whose exact δ(ε) is DELTA; on a thousand steps the discrete law has the same curve to many digits."""

    def excess(mu: float) -> float:
        tails = norm.cdf(mu / 2 - epsilon / mu), math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(tails[0] - tails[1]) - DELTA

    sigma = Fraction(STEPS / brentq(excess, 1e-3, 50))
    return lambda shift, runs: shift * STEPS + discrete_gaussian(sigma, runs)


def randomized_response(epsilon: float) -> Callable[[int, int], Any]:
    """Truth with probability e^ε/(1 + e^ε)."""
    truth = Fraction(math.exp(epsilon) / (1 + math.exp(epsilon)))
    return lambda answer, runs: np.where(bernoulli(truth, runs), answer, 1 - answer)


def exponential(epsilon: float) -> Callable[[int, int], Any]:
    """Five candidates; on D′ one of them gains a point and the others lose one, so that all chances move."""
    rate = Fraction(epsilon / 2)
    scores = {0: np.array([-1, 1, 1, 1, 1]), 1: np.zeros(5, np.int64)}
    return lambda side, runs: gibbs(scores[side], rate, runs)


def exponential_truth(epsilon: float) -> float:
    """The exact ε of that pair: the chances of the first candidate, whichever way the ratio is larger."""
    p = 1 / (1 + 4 * math.exp(epsilon))
    chances = [(p, 0.2), (1 - p, 0.8)]
    return max(abs(math.log(a / b)) for a, b in chances)


def main() -> None:
    """Print one line for each mechanism and ε."""
    runs = int(float(sys.argv[1])) if len(sys.argv) > 1 else 5 * 10**6
    print(f"{'mechanism':<22}{'δ':>6}{'ε':>8}{'bound':>9}{'ratio':>8}{'seconds':>9}{'caught':>9}   event")
    for make in (laplace, gaussian, randomized_response, exponential):
        for epsilon in (0.1, 1.0, 4.0):
            truth = exponential_truth(epsilon) if make is exponential else epsilon
            delta = DELTA if make is gaussian else 0
            start = time.perf_counter()
            claim = ApproxDP(truth, delta) if delta else PureDP(truth)
            found = audit(None, 0, 1, samples=runs, claim=claim, batch=make(epsilon))
            taken = time.perf_counter() - start
            row = f"{make.__name__:<22}{delta:>6}{truth:>8.3f}{found.epsilon:>9.4f}{found.epsilon / truth:>8.3f}"
            assert found.terms is not None
            assert not found.refuted
            caught = found.terms.least_caught(claim, found.rates[0])
            print(f"{row}{taken:>9.1f}{caught:>9.4f}   {found.event}")


if __name__ == "__main__":
    main()

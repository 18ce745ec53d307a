"""The least noise for a budget, and the least budget for a wanted error.

Every result is safe to use as it is: noise rounds up, and budgets for an error round up.

>>> laplace_scale(epsilon="0.1", sensitivity=3)
Fraction(30, 1)
>>> sigma = gaussian_sigma(epsilon="0.9", delta="1e-6", squared_sensitivity=2**20)
>>> round(float(sigma / 2**10), 4), round(float(gaussian_sigma_classic("0.9", "1e-6", 1)), 4)
(4.6588, 5.8876)
>>> from discreet.core.events import Laplace
>>> round(float(calibrate(lambda scale: Laplace(scale, 1), PureDP("0.1"), low=1, high=1000)), 2)
10.0
>>> laplace_budget(error=100, beta="0.05", sensitivity=1), gaussian_budget(100, "0.05", squared_sensitivity=1)
(PureDP(epsilon=0.0298072), ZCDP(rho=0.000192073))

Noise is drawn on integers, so scales and sensitivities count steps of that grid. A sensitivity of about a thousand
steps makes the grid unnoticeable; at a few steps Gaussian noise needs a little more than the continuous formula says,
and gets it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.accounting.approximate import approximate, satisfies
from discreet.accounting.conversions import affordable
from discreet.accounting.enclosures import above
from discreet.accounting.gaussian import continuous_delta, discrete_delta
from discreet.accounting.pure import pure
from discreet.accounting.renyi import renyi
from discreet.accounting.search import crossing, least, logarithm
from discreet.accounting.zcdp import zcdp
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import Event, Gaussian
from discreet.core.exact import Exactable, at_least, natural, positive, probability
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.core.rounding import ball, log_down, log_up, sqrt_up

__all__ = [
    "calibrate",
    "gaussian_budget",
    "gaussian_sigma",
    "gaussian_sigma_classic",
    "gaussian_sigma_continuous",
    "laplace_budget",
    "laplace_scale",
    "within",
]

CALIBRATION_BITS = 16
"""A calibrated parameter is within one part in 2¹⁶ of the least that fits."""

MARGIN = Fraction(1, 2**30)
"""Gaussian noise is made for an ε smaller by this share, so that accountants that search for ε give no more than was
asked for."""


def laplace_scale(epsilon: Exactable, sensitivity: int) -> Fraction:
    """Δ/ε, exactly."""
    return natural("sensitivity", sensitivity) / positive("epsilon", epsilon)


def gaussian_sigma(
    epsilon: Exactable, delta: Exactable, squared_sensitivity: Exactable, dimension: int = 1
) -> Fraction:
    """The least standard deviation, in grid steps, for discrete Gaussian noise on `dimension` integers to be
    (ε, δ)-private: the lesser of the exact continuous answer corrected for the grid and the answer by zCDP."""
    asked, moved, _ = _gaussian_arguments(epsilon, delta, squared_sensitivity)
    coordinates = natural("dimension", dimension)
    budget = ApproxDP(asked.epsilon * (1 - MARGIN), asked.delta)
    high = _zcdp_sigma(budget, moved)

    def holds(sigma: Fraction) -> bool:
        event = Gaussian(sigma**2, moved, coordinates)
        return discrete_delta([(event, 1)], budget.epsilon) <= budget.delta

    return least(holds, high / 2**16, high) if holds(high) else high


def gaussian_sigma_continuous(epsilon: Exactable, delta: Exactable, squared_sensitivity: Exactable) -> Fraction:
    """The least standard deviation for continuous Gaussian noise to be (ε, δ)-private (Balle, Wang 2018).

    Noise on integers needs `gaussian_sigma`.
    """
    budget, moved, high = _gaussian_arguments(epsilon, delta, squared_sensitivity)
    return least(lambda s: continuous_delta(budget.epsilon, moved / s**2) <= budget.delta, high / 2**16, high)


def gaussian_sigma_classic(epsilon: Exactable, delta: Exactable, squared_sensitivity: Exactable) -> Fraction:
    """√(2·ln(1.25/δ))·Δ/ε, for continuous noise and ε < 1 (Dwork, Roth, Theorem A.1); kept to compare with."""
    budget, moved, _ = _gaussian_arguments(epsilon, delta, squared_sensitivity)
    if not 0 < budget.epsilon < 1:
        raise InvalidArgument("epsilon", epsilon, "in (0, 1) for this theorem", "use gaussian_sigma, for every ε")
    return above(lambda: (2 * (ball(Fraction(5, 4)) / ball(budget.delta)).log() * ball(moved)).sqrt()) / budget.epsilon


def calibrate(
    make_event: Callable[[Fraction], Event],
    budget: Loss,
    low: Exactable,
    high: Exactable,
    *,
    bits: int = CALIBRATION_BITS,
) -> Fraction:
    """The least parameter from `low` to `high` whose event is within the budget, to one part in 2^bits.

    A larger parameter (a scale, a standard deviation) must never make the event cost more.
    """
    bottom, top = positive("low", low), positive("high", high)
    if bottom > top:
        raise InvalidArgument("low", low, f"at most high = {float(top):g}", "give the range to search")
    if _excess(make_event(top), budget) > 0:
        raise InvalidArgument("high", high, f"enough noise for {budget}", "give a larger high, or a larger budget")

    def excess(parameter: Fraction) -> float:
        try:
            return _excess(make_event(parameter), budget)
        except NotAccountable:
            return math.inf

    return bottom if excess(bottom) <= 0 else crossing(excess, bottom, top, natural("bits", bits))


def _excess(event: Event, budget: Loss) -> float:
    """The logarithm of how many budgets the event costs, positive exactly when it costs more than one."""
    match budget:
        case PureDP(epsilon):
            pairs = [(pure(event).epsilon, epsilon)]
        case ZCDP(rho):
            pairs = [(zcdp(event).rho, rho)]
        case RenyiDP(orders, epsilons):
            pairs = list(zip(renyi(event, orders).epsilons, epsilons, strict=True))
        case ApproxDP(epsilon, delta):
            pairs = [(approximate(event, delta).epsilon, epsilon)]
        case _:
            raise InvalidArgument("budget", budget, "a loss", "give PureDP, ApproxDP, ZCDP or RenyiDP")
    if all(cost <= cap for cost, cap in pairs):
        return max((min(0.0, logarithm(cost / cap)) for cost, cap in pairs if cost), default=-math.inf)
    return max(max(math.ulp(0.0), logarithm(cost / cap)) if cap else math.inf for cost, cap in pairs if cost > cap)


def within(event: Event, budget: Loss) -> bool:
    """Whether the event's loss is proven to be at most the budget."""
    return satisfies(event, budget) if isinstance(budget, ApproxDP) else _excess(event, budget) <= 0


def laplace_budget(error: Exactable, beta: Exactable, sensitivity: int) -> PureDP:
    """The least ε at which discrete Laplace noise is at most `error` grid steps except with probability `beta`.

    With p = e^{−ε/Δ}, the noise is above t whole steps with probability 2p^{t+1}/(1 + p).
    """
    steps = 1 + int(at_least("error", error, 0))
    chance, moved = probability("beta", beta), natural("sensitivity", sensitivity)

    def holds(rate: Fraction) -> bool:
        return above(lambda: 2 * (-steps * ball(rate)).exp() / (1 + (-ball(rate)).exp())) <= chance

    return PureDP(moved * least(holds, log_down(1 / chance) / steps, log_up(2 / chance) / steps))


def gaussian_budget(error: Exactable, beta: Exactable, squared_sensitivity: Exactable) -> ZCDP:
    """The least ρ at which discrete Gaussian noise is at most `error` ≥ 1 grid steps except with probability `beta`.

    The noise is above t whole steps with at most the probability that continuous noise is above t: the sum over larger
    integers is less than the integral from t, and the sum over all integers is more than the integral over all.
    """
    steps = int(at_least("error", error, 1))
    chance, moved = probability("beta", beta), positive("squared_sensitivity", squared_sensitivity)
    return ZCDP(above(lambda: ball(moved) * (ball(chance).erfcinv() / steps) ** 2))


def _gaussian_arguments(
    epsilon: Exactable, delta: Exactable, squared_sensitivity: Exactable
) -> tuple[ApproxDP, Fraction, Fraction]:
    """The budget, Δ², and the σ that zCDP asks for."""
    budget = ApproxDP(at_least("epsilon", epsilon, 0), probability("delta", delta))
    moved = positive("squared_sensitivity", squared_sensitivity)
    return budget, moved, _zcdp_sigma(budget, moved)


def _zcdp_sigma(budget: ApproxDP, squared_sensitivity: Fraction) -> Fraction:
    return sqrt_up(squared_sensitivity / (2 * affordable(budget, ZCDP).rho))

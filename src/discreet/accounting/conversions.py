"""From one definition of privacy to another, always towards the safe side.

`convert` bounds a loss in another definition, rounding up. `affordable` goes the other way for budgets: the largest
loss of the other definition that still implies the budget, rounding down.

>>> convert(ZCDP("0.1"), ApproxDP, delta="1e-6")
ApproxDP(epsilon=2.14194, delta=1e-06)
>>> simple_zcdp_epsilon(ZCDP("0.1"), "1e-6") > convert(ZCDP("0.1"), ApproxDP, delta="1e-6").epsilon
True
>>> affordable(ApproxDP(1, "1e-6"), ZCDP)
ZCDP(rho=0.024356)

A divergence τ of order α gives (ε, δ) for every ε with δ = e^{(α−1)(τ−ε)}·(1 − 1/α)^α/(α − 1) (Canonne, Kamath,
Steinke 2020, Proposition 12). Every order gives a sound bound, so the best order is searched for in floating point and
the bound at it is computed rigorously.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeVar

from flint import arb

from discreet.accounting.enclosures import above, below
from discreet.accounting.renyi import DEFAULT_ORDERS, renyi
from discreet.accounting.search import largest, logarithm, lowest
from discreet.accounting.zcdp import pure_rho
from discreet.core.errors import InvalidArgument
from discreet.core.events import Pure
from discreet.core.exact import Exactable, at_least, exact, probability
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.core.rounding import ball, float_down, shorten_down, sqrt_down

__all__ = [
    "affordable",
    "best_order",
    "convert",
    "delta_at",
    "epsilon_at",
    "renyi_cap",
    "simple_zcdp_epsilon",
]

L = TypeVar("L", PureDP, ApproxDP, ZCDP, RenyiDP)


def convert(
    loss: Loss, to: type[L], *, delta: Exactable | None = None, orders: Iterable[Exactable] = DEFAULT_ORDERS
) -> L:
    """A loss of the type `to` that `loss` implies.

    `delta` is needed from ZCDP or RenyiDP to ApproxDP; `orders` are used towards RenyiDP.
    """
    result = _converted(loss, to, delta, orders)
    if isinstance(result, to):
        return result
    reachable = {PureDP: "any type", ZCDP: "RenyiDP, or ApproxDP", RenyiDP: "ApproxDP", ApproxDP: "nothing else"}
    raise InvalidArgument(
        "to", getattr(to, "__name__", to), f"implied by {type(loss).__name__}", f"it implies {reachable[type(loss)]}"
    )


def _converted(loss: Loss, to: type[Loss], delta: Exactable | None, orders: Iterable[Exactable]) -> Loss | None:
    match loss:
        case _ if type(loss) is to:
            return loss
        case PureDP(epsilon) | ApproxDP(epsilon, Fraction(numerator=0)):
            if to is ZCDP:
                return ZCDP(pure_rho(epsilon))
            if to is RenyiDP:
                return renyi(Pure(epsilon), orders)
            return PureDP(epsilon) if to is PureDP else ApproxDP(epsilon, 0)
        case ZCDP() | RenyiDP() if to is ApproxDP:
            if delta is None:
                raise InvalidArgument("delta", delta, "in (0, 1)", f"choose the δ at which {loss} is to have an ε")
            return ApproxDP(epsilon_at(loss, delta), delta)
        case ZCDP(rho) if to is RenyiDP:
            alphas = tuple(exact("orders", order) for order in orders)
            return RenyiDP(alphas, tuple(rho * alpha for alpha in alphas))
        case PureDP() | ApproxDP() | ZCDP() | RenyiDP():
            return None
        case _:
            raise InvalidArgument("loss", loss, "a loss", "give PureDP, ApproxDP, ZCDP or RenyiDP")


def epsilon_at(loss: ZCDP | RenyiDP, delta: Exactable) -> Fraction:
    """The least ε proven at δ."""
    target = probability("delta", delta)
    match loss:
        case ZCDP(rho):
            if rho == 0:
                return Fraction(0)
            order = _best_order_at_delta(rho, target)
            return min(_epsilon(order, order * rho, target), simple_zcdp_epsilon(loss, target))
        case RenyiDP(orders, epsilons):
            return min(_epsilon(order, bound, target) for order, bound in zip(orders, epsilons, strict=True))
        case _:
            raise InvalidArgument("loss", loss, "ZCDP or RenyiDP", "the other losses state their ε")


def delta_at(loss: ZCDP | RenyiDP, epsilon: Exactable) -> Fraction:
    """The least δ proven at ε."""
    target = at_least("epsilon", epsilon, 0)
    match loss:
        case ZCDP(rho):
            if rho == 0:
                return Fraction(0)
            order = _best_order_at_epsilon(rho, target)
            return _delta(order, order * rho, target)
        case RenyiDP(orders, epsilons):
            return min(_delta(order, bound, target) for order, bound in zip(orders, epsilons, strict=True))
        case _:
            raise InvalidArgument("loss", loss, "ZCDP or RenyiDP", "the other losses state their δ")


def simple_zcdp_epsilon(loss: ZCDP, delta: Exactable) -> Fraction:
    """ρ + 2√(ρ·ln(1/δ)): the ε of ρ-zCDP in the form that is easy to remember (Bun, Steinke 2016, Proposition 1.3)."""
    target = probability("delta", delta)
    return loss.rho + above(lambda: 2 * (-ball(loss.rho) * ball(target).log()).sqrt()) if loss.rho else Fraction(0)


def affordable(budget: Loss, to: type[L]) -> L:
    """The largest loss of the type `to` that implies `budget`, rounded down: what is within it is within the budget.

    From ApproxDP to PureDP or ZCDP, from ZCDP to PureDP, from RenyiDP to ZCDP.
    """
    result = _afforded(budget, to)
    if isinstance(result, to):
        return result
    name = getattr(to, "__name__", to)
    raise InvalidArgument("to", name, f"a type that implies {type(budget).__name__}", "ask for PureDP or ZCDP")


def _afforded(budget: Loss, to: type[Loss]) -> Loss | None:
    match budget:
        case _ if type(budget) is to:
            return budget
        case ApproxDP(epsilon, delta) if to is PureDP and delta < 1:
            # Randomized response with e^x ≤ (e^ε + δ)/(1 − δ) is (ε, δ)-private, and it is the worst x-private event.
            gain = below(lambda: (ball(delta) * (-ball(epsilon)).exp()).log1p() - (-ball(delta)).log1p())
            return PureDP(epsilon + max(Fraction(0), gain))
        case ApproxDP() if to is ZCDP:
            order = best_order(budget)
            return ZCDP(renyi_cap(budget, order) / order)
        case ZCDP(rho) if to is PureDP:
            return PureDP(largest(lambda e: pure_rho(e) <= rho, max(rho, sqrt_down(2 * rho)), rho + 2) if rho else 0)
        case RenyiDP(orders, epsilons) if to is ZCDP:
            return ZCDP(min(bound / order for order, bound in zip(orders, epsilons, strict=True)))
        case _:
            return None


def renyi_cap(budget: ApproxDP, order: Exactable) -> Fraction:
    """The largest divergence of order α that implies the budget, rounded down; 0 when none does."""
    alpha, delta = exact("order", order), probability("delta", budget.delta)
    if alpha <= 1:
        raise InvalidArgument("order", order, "above 1", "give one Rényi order")
    return max(Fraction(0), budget.epsilon + below(lambda: -_overhead(ball(alpha), ball(delta))))


def best_order(budget: ApproxDP) -> Fraction:
    """About the order at which the largest ρ-zCDP implies the budget."""
    log_delta = logarithm(probability("delta", budget.delta))
    epsilon = float_down(budget.epsilon)
    return _order_where_lowest(lambda x, a: (_float_overhead(x, a, log_delta) - epsilon) / a, log_delta)


def _best_order_at_delta(rho: Fraction, delta: Fraction) -> Fraction:
    log_rho, log_delta = logarithm(rho), logarithm(delta)
    return _order_where_lowest(lambda x, a: math.exp(log_rho + math.log(a)) + _float_overhead(x, a, log_delta), log_rho)


def _best_order_at_epsilon(rho: Fraction, epsilon: Fraction) -> Fraction:
    log_rho, target = logarithm(rho), float_down(epsilon)

    def exponent(x: float, a: float) -> float:
        return (a - 1) * (math.exp(log_rho + math.log(a)) - target) - x + a * (x - math.log(a))

    return _order_where_lowest(exponent, log_rho)


def _order_where_lowest(function: Callable[[float, float], float], *logarithms: float) -> Fraction:
    """The α = 1 + e^x that makes function(x, α) least, for x up to a little more than the given sizes."""
    highest = min(300.0, 12 + max(map(abs, logarithms)))
    place = lowest(lambda x: function(x, 1 + math.exp(x)), -12.0, highest)
    return 1 + shorten_down(Fraction(math.exp(place)), 32)


def _float_overhead(x: float, a: float, log_delta: float) -> float:
    return x - math.log(a) - (log_delta + math.log(a)) / math.exp(x)


def _overhead(alpha: arb, delta: arb) -> arb:
    """What ε exceeds the divergence by, at order α."""
    return (1 - 1 / alpha).log() - (delta * alpha).log() / (alpha - 1)


def _epsilon(order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    return max(Fraction(0), divergence + above(lambda: _overhead(ball(order), ball(delta))))


def _delta(order: Fraction, divergence: Fraction, epsilon: Fraction) -> Fraction:
    def chance() -> arb:
        alpha = ball(order)
        exponent = (alpha - 1) * ball(divergence - epsilon) + alpha * (1 - 1 / alpha).log() - (alpha - 1).log()
        return exponent.min(arb(0)).exp()

    return above(chance)

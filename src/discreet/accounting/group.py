"""What a guarantee for one unit says about a group of k units.

>>> group(PureDP("0.1"), 3), group(ZCDP("0.1"), 3)
(PureDP(epsilon=0.3), ZCDP(rho=0.9))
>>> group(ApproxDP(0, "1e-6"), 3)
ApproxDP(epsilon=0, delta=3e-06)
>>> group(Laplace(Fraction(10), 1), 3)
Laplace(scale=Fraction(10, 1), sensitivity=3)
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from flint import arb

from discreet.accounting.enclosures import above
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    BoundedRanges,
    Composed,
    Event,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeated,
)
from discreet.core.exact import natural
from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP
from discreet.core.rounding import ball

__all__ = ["group"]

Groupable = TypeVar("Groupable", bound=PureDP | ApproxDP | ZCDP | RenyiDP | Event)


def group(guarantee: Groupable, k: int) -> Groupable:
    """The guarantee for two data sets that differ in k units.

    Losses: kε; (kε, δ·(e^{kε} − 1)/(e^ε − 1)); k²ρ; and for Rényi divergence the weak triangle inequality along the
    chain of k data sets, at whichever of the orders do best (fewer, lower orders remain). Events: the sensitivity grows
    k-fold, which is at least as good as growing the loss.
    """
    size = natural("k", k)
    result = guarantee if size == 1 else _grouped(guarantee, size)
    if isinstance(result, type(guarantee)):
        return result
    raise InvalidArgument("guarantee", guarantee, "a loss or an event", "use discreet.core.losses or .events")


def _grouped(guarantee: object, k: int) -> object:
    match guarantee:
        case PureDP(epsilon):
            return PureDP(k * epsilon)
        case ApproxDP(epsilon, delta):
            return ApproxDP(k * epsilon, _grouped_delta(epsilon, delta, k))
        case ZCDP(rho):
            return ZCDP(k**2 * rho)
        case RenyiDP():
            return _grouped_divergence(guarantee, k)
        case Event():
            return _grouped_event(guarantee, k)
        case _:
            return None


def _grouped_event(event: Event, k: int) -> Event:
    match event:
        case Nothing():
            return event
        case Laplace(scale, sensitivity):
            return Laplace(scale, k * sensitivity)
        case Gaussian(variance, squared_sensitivity, dimension):
            return Gaussian(variance, k**2 * squared_sensitivity, dimension)
        case Pure(epsilon):
            return Pure(k * epsilon)
        case BoundedRange(epsilon):
            return BoundedRange(k * epsilon)
        case BoundedRanges(squared_epsilon, dimension):
            return BoundedRanges(k**2 * squared_epsilon, dimension)
        case Approximate(epsilon, delta):
            return Approximate(k * epsilon, _grouped_delta(epsilon, delta, k))
        case Repeated(inner, count):
            return Repeated(_grouped_event(inner, k), count)
        case Composed(events):
            return Composed(tuple(_grouped_event(inner, k) for inner in events))
        case _:
            raise NotAccountable("group", event, "take the loss of the sampled event and give that to group")


def _grouped_delta(epsilon: Fraction, delta: Fraction, k: int) -> Fraction:
    """δ·Σ_{i<k} e^{iε}."""
    if epsilon == 0 or delta in (0, 1):
        return min(Fraction(1), k * delta)
    return above(lambda: (ball(delta) * (k * ball(epsilon)).expm1() / ball(epsilon).expm1()).min(arb(1)))


def _grouped_divergence(loss: RenyiDP, k: int) -> RenyiDP:
    """Chains of length 1, 2, 4, … joined along the binary digits of k."""
    doubled: dict[Fraction, Fraction] = dict(zip(loss.orders, loss.epsilons, strict=True))
    result: dict[Fraction, Fraction] | None = None
    while True:
        if k % 2:
            result = doubled if result is None else _joined(result, doubled)
        k //= 2
        if not k:
            break
        doubled = _joined(doubled, doubled)
    if not result:
        raise NotAccountable("Rényi group", loss, "start from higher orders, or use zCDP")
    orders = tuple(sorted(result))
    return RenyiDP(orders, tuple(result[order] for order in orders))


def _joined(first: dict[Fraction, Fraction], second: dict[Fraction, Fraction]) -> dict[Fraction, Fraction]:
    """For every β > α, D_α(P‖R) ≤ α(β−1)/(β(α−1))·D_β(P‖Q) + D_γ(Q‖R) with γ = α(β−1)/(β−α) (Mironov 2017)."""
    joined: dict[Fraction, Fraction] = {}
    for alpha in first:
        bounds = [
            alpha * (beta - 1) / (beta * (alpha - 1)) * outer + inner
            for beta, outer in first.items()
            if beta > alpha
            for inner in [_at_least_order(second, alpha * (beta - 1) / (beta - alpha))]
            if inner is not None
        ]
        if bounds:
            joined[alpha] = min(bounds)
    return joined


def _at_least_order(curve: dict[Fraction, Fraction], order: Fraction) -> Fraction | None:
    """The divergence at `order` is at most that at any higher order."""
    return min((epsilon for alpha, epsilon in curve.items() if alpha >= order), default=None)

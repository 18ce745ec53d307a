"""Rényi differential privacy of events: one bound for each order α, and bounds at equal orders add up.

>>> renyi(Gaussian(Fraction(100), Fraction(2)), orders=(2, 10))
RenyiDP({2: 0.02, 10: 0.1})
>>> renyi(PoissonSampled(Fraction(1, 100), Gaussian(Fraction(10**6), Fraction(10**6))), orders=(4, 8))
RenyiDP({4: 0.000363155, 8: 0.000893644})

Every formula is for the noise as it is drawn, on integers. Discrete Gaussian noise has at most the divergences of the
continuous (Canonne, Kamath, Steinke 2020). For discrete Laplace noise of scale s moved by a steps, with λ = α − 1,
u = 1/s, p = e^{−u} and r = e^{−(2λ+1)u}, summing the geometric series of the loss over all integers gives

    E[e^{λ·loss}] = A·e^{λau} + B·e^{−αau},   A = (1 − pr)/((1 + p)(1 − r)),   B = (p − r)/((1 + p)(1 − r)) = 1 − A,

whose logarithm is convex in a and zero at a = 0: a move spread over several coordinates costs at most the whole move in
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import pairwise
from math import ceil

from flint import arb, ctx

from discreet.accounting.enclosures import enclosed, finitely_above, total
from discreet.accounting.flattening import parts, rate_of
from discreet.accounting.pure import amplified, pure
from discreet.accounting.subsampling import (
    backward_excess,
    fixed_size_excess,
    forward_excess,
    interpolated,
    response_divergence,
)
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import (
    BoundedRange,
    BoundedRanges,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
)
from discreet.core.exact import Exactable, exact
from discreet.core.losses import RenyiDP
from discreet.core.rounding import PRECISION, ball, sqrt_up, upper

__all__ = ["DEFAULT_ORDERS", "renyi"]

DEFAULT_ORDERS: tuple[Fraction, ...] = tuple(
    Fraction(n, 4)
    for n in (5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 28, *range(32, 65, 8), 80, 96, 112, 128, 160, 192, 224)
) + tuple(Fraction(n) for n in (64, 80, 96, 128, 192, 256, 512, 1024))

HIGHEST_SAMPLED = 4096
"""Sampling is not credited at orders above this one: the sum over the order would take seconds, and helps little."""


def renyi(event: Event, orders: Iterable[Exactable] = DEFAULT_ORDERS) -> RenyiDP:
    """The least divergence proven for `event` at each order."""
    alphas = tuple(exact("orders", order) for order in orders)
    if not alphas or alphas[0] <= 1 or any(a >= b for a, b in pairwise(alphas)):
        raise InvalidArgument("orders", alphas, "increasing numbers above 1", "list each order once, in order")
    curves = [(count, _divergences(leaf, alphas)) for leaf, count in parts(event)]
    return RenyiDP(alphas, tuple(total(count * curve[i] for count, curve in curves) for i in range(len(alphas))))


@lru_cache(maxsize=1024)
def _divergences(leaf: Event, orders: tuple[Fraction, ...]) -> Sequence[Fraction]:
    match leaf:
        case Gaussian(variance, squared_sensitivity):
            return [order * squared_sensitivity / (2 * variance) for order in orders]
        case Laplace(scale, sensitivity):
            return [_within(sensitivity / scale, lambda a: _laplace(scale, sensitivity, a), a) for a in orders]
        case Pure(epsilon):
            return [_within(epsilon, lambda a: response_divergence(Fraction(1), epsilon, a), a) for a in orders]
        case BoundedRange(epsilon):
            return [
                min(order * epsilon**2 / 8, _within(epsilon, lambda a: _bounded_range(epsilon, a), order))
                for order in orders
            ]
        case BoundedRanges(squared_epsilon, dimension):
            return [min(order * squared_epsilon / 8, sqrt_up(squared_epsilon * dimension)) for order in orders]
        case PoissonSampled() | FixedSizeSampled():
            return _sampled(leaf, orders)
        case _:
            raise NotAccountable("Rényi", leaf, "use approximate or pld, which allow a δ")


def _within(epsilon: Fraction, divergence: Callable[[Fraction], arb], order: Fraction) -> Fraction:
    """The divergence of an ε-private event, which is at most ε."""
    bound = finitely_above(lambda: divergence(order))
    return epsilon if bound is None else min(epsilon, bound)


def _laplace(scale: Fraction, sensitivity: int, order: Fraction) -> arb:
    return _laplace_excess(scale, sensitivity, order).log1p() / ball(order - 1)


def _laplace_excess(scale: Fraction, sensitivity: int, order: Fraction) -> arb:
    """E[e^{λ·loss}] − 1 in the notation of the module."""
    u, alpha, lam = ball(1 / scale), ball(order), ball(order - 1)
    p = (-u).exp()
    shared = (1 + p) * (-(alpha + lam) * u).expm1()
    up, down = (-2 * alpha * u).expm1() / shared, p * (-2 * lam * u).expm1() / shared
    return up * (lam * sensitivity * u).expm1() + down * (-alpha * sensitivity * u).expm1()


def _bounded_range(epsilon: Fraction, order: Fraction) -> arb:
    """The loss lies in [t − ε, t] and e^{−loss} has mean 1, so two losses at the ends are the worst; with x = e^t the
    moment is x^λ·(1 − c(x − 1)), c = (1 − e^{−λε})/(e^ε − 1), which is largest at x = λ(1 + c)/(αc)."""
    alpha, lam, e = ball(order), ball(order - 1), ball(epsilon)
    c = -(-lam * e).expm1() / e.expm1()
    return (lam * (1 + c) / (alpha * c)).log() + ((1 + c) / alpha).log() / lam


def _sampled(leaf: PoissonSampled | FixedSizeSampled, orders: tuple[Fraction, ...]) -> list[Fraction]:
    """The least of three bounds: the event without sampling, any event with its pure ε on a sample, its own moments."""
    bounds = list(renyi(leaf.event, orders).epsilons)
    epsilon = _pure_epsilon(leaf.event)
    if epsilon is not None:
        bounds = [min(b, _response(leaf, epsilon, order)) for b, order in zip(bounds, orders, strict=True)]
    credited = [order for order in orders if order <= HIGHEST_SAMPLED]
    whole = _whole_orders(leaf, epsilon, ceil(max(credited, default=Fraction(2))))
    improved = [min(b, interpolated(order, whole)) for b, order in zip(bounds, credited, strict=False)]
    return improved + bounds[len(improved) :]


def _response(leaf: PoissonSampled | FixedSizeSampled, epsilon: Fraction, order: Fraction) -> Fraction:
    cost = amplified(epsilon, rate_of(leaf))
    if isinstance(leaf, FixedSizeSampled):
        return _within(cost, lambda a: response_divergence(Fraction(1), cost, a), order)
    return _within(cost, lambda a: response_divergence(leaf.rate, epsilon, a), order)


def _whole_orders(
    leaf: PoissonSampled | FixedSizeSampled, epsilon: Fraction | None, highest: int
) -> Callable[[int], Fraction]:
    """The bound from the moments of the inner event, as a function of the whole orders up to `highest`."""
    rate = rate_of(leaf)
    with ctx.workprec(PRECISION):
        moments = _moments(leaf.event, highest)

    @cache
    def divergence(order: int) -> Fraction:
        with ctx.workprec(PRECISION):
            if isinstance(leaf, FixedSizeSampled):
                excess = fixed_size_excess(rate, order, moments, epsilon)
            elif isinstance(leaf.event, Gaussian | Laplace):
                excess = forward_excess(rate, order, moments)
            else:
                excess = forward_excess(rate, order, moments).max(backward_excess(rate, order, moments[0]))
            enclosure = excess.log1p() / (order - 1)
        return upper(enclosure) if enclosure.is_finite() else renyi(leaf.event, (order,)).epsilons[0]

    return divergence


def _moments(event: Event, highest: int) -> list[arb]:
    """E_Q[(P/Q)^k] − 1 for 2 ≤ k ≤ `highest`."""
    orders = range(2, highest + 1)
    match event:
        case Gaussian(variance, squared_sensitivity):
            return [ball(k * (k - 1) * squared_sensitivity / (2 * variance)).expm1() for k in orders]
        case Laplace(scale, sensitivity):
            return [enclosed(partial(_laplace_excess, scale, sensitivity, Fraction(k))) for k in orders]
        case _:
            curve = renyi(event, orders).epsilons
            return [ball((k - 1) * epsilon).expm1() for k, epsilon in zip(orders, curve, strict=True)]


def _pure_epsilon(event: Event) -> Fraction | None:
    try:
        return pure(event).epsilon
    except NotAccountable:
        return None

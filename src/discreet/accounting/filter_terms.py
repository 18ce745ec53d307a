"""The sums that a filter keeps, and their caps.

While every sum of a meter is at most its cap, the budget's guarantee holds for the adaptively chosen events that were
added up. Costs never shrink a sum, so a meter that has passed a cap stays past it.

>>> [renyi_meter, pure_meter, _] = meters_for(ApproxDP(1, "1e-6"), "renyi", delta_share=0, order=20)
>>> [float(cap) for cap in pure_meter.caps]
[1.0, 0.0]
>>> [round(float(cap), 4) for cap in renyi_meter.caps]
[0.4818, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from discreet.accounting.approximate import approximate, separated
from discreet.accounting.conversions import affordable, best_order, epsilon_at, renyi_cap
from discreet.accounting.enclosures import total
from discreet.accounting.pure import pure
from discreet.accounting.renyi import renyi
from discreet.accounting.zcdp import zcdp
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable, exact, probability
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP

__all__ = ["Composition", "Meter", "Sums", "composition_for", "meters_for"]

Composition = Literal["renyi", "zcdp", "basic"]
Sums = tuple[Fraction, ...]


@dataclass(frozen=True)
class Meter:
    """What each event adds to the sums, their caps, and how sums read as losses."""

    caps: Sums
    cost: Callable[[Event], Sums]
    names: tuple[Callable[[Fraction], Loss], ...]
    """Each single sum as a loss, to report it."""
    spent: Callable[[Sums], Loss]
    """All sums as a loss of the budget's type."""
    room: Callable[[Sums], Loss]
    """What is left of the caps, as the loss of one event that fits."""
    order: Fraction | None = None
    """The Rényi order at which divergences are added up, for a meter that has one."""
    first_only: bool = False
    """Whether it admits one event, the first."""

    @property
    def start(self) -> Sums:
        """The sums before any event."""
        return (Fraction(0),) * len(self.caps)

    def added(self, sums: Sums, event: Event) -> Sums:
        """The sums with the event; those that have grown long are rounded up."""
        return tuple(total((s, cost)) for s, cost in zip(sums, self.cost(event), strict=True))

    def under(self, sums: Sums) -> bool:
        """Whether every sum is within its cap."""
        return all(s <= cap for s, cap in zip(sums, self.caps, strict=True))

    def left(self, sums: Sums) -> Sums:
        """The caps less the sums."""
        return tuple(cap - s for s, cap in zip(sums, self.caps, strict=True))

    def share(self, sums: Sums) -> Fraction:
        """The part of the caps that is used up, by the sum that is nearest to its cap."""
        return max(s / cap if cap else Fraction(0) for s, cap in zip(sums, self.caps, strict=True))


def composition_for(budget: Loss, composition: Composition | None) -> Composition | None:
    """The composition asked for, or the default where there is a choice."""
    if not isinstance(budget, Loss):
        raise InvalidArgument("budget", budget, "a loss", "give PureDP, ApproxDP, ZCDP or RenyiDP")
    if composition is not None and composition not in get_args(Composition):
        raise InvalidArgument("composition", composition, f"one of {get_args(Composition)}", "name one of them")
    if isinstance(budget, ApproxDP):
        return composition or ("renyi" if 0 < budget.delta < 1 else "basic")
    if composition is not None:
        raise InvalidArgument("composition", composition, "for ApproxDP only", "leave it out: there is just one way")
    return None


def meters_for(
    budget: Loss, composition: Composition | None, delta_share: Exactable, order: Exactable | None
) -> tuple[Meter, ...]:
    """The meters of which one must be under its caps."""
    match budget:
        case PureDP(epsilon):
            return (_single((epsilon,), lambda event: (pure(event).epsilon,), PureDP),)
        case ZCDP(rho):
            return (_single((rho,), lambda event: (zcdp(event).rho,), ZCDP),)
        case RenyiDP(orders, epsilons):
            names = tuple(_divergence_at(alpha) for alpha in orders)

            def curve(sums: Sums) -> RenyiDP:
                return RenyiDP(orders, sums)

            return (Meter(epsilons, lambda event: renyi(event, orders).epsilons, names, curve, curve),)
        case ApproxDP(epsilon, delta):
            if composition == "basic":
                return (_stated(budget, _basic_cost),)
            share = probability("delta_share", delta_share, zero=True)
            own = share * probability("delta", delta)
            pure_meter = _stated(ApproxDP(epsilon, own), _pure_cost)
            rest = ApproxDP(epsilon, delta - own)
            concentrated = _zcdp_meter(rest, own) if composition == "zcdp" else _renyi_meter(rest, own, order)
            return (concentrated, pure_meter, _alone_meter(budget))


def _single(caps: Sums, cost: Callable[[Event], Sums], name: Callable[[Fraction], Loss]) -> Meter:
    return Meter(caps, cost, (name,), lambda sums: name(sums[0]), lambda sums: name(sums[0]))


def _stated(budget: ApproxDP, cost: Callable[[Event], Sums]) -> Meter:
    def loss(sums: Sums) -> ApproxDP:
        return ApproxDP(*sums)

    return Meter((budget.epsilon, budget.delta), cost, (PureDP, _only_delta), loss, loss)


def _renyi_meter(budget: ApproxDP, own: Fraction, order: Exactable | None) -> Meter:
    alpha = best_order(budget) if order is None else exact("order", order)
    cap = renyi_cap(budget, alpha)
    overhead = budget.epsilon - cap

    def cost(event: Event) -> Sums:
        rest, leak = separated(event)
        return renyi(rest, (alpha,)).epsilons[0], leak

    def spent(sums: Sums) -> ApproxDP:
        # Below 0 where δ is large beside ε: then it is δ alone that was spent.
        epsilon = max(Fraction(0), sums[0] + overhead) if sums[0] else Fraction(0)
        return ApproxDP(epsilon, min(Fraction(1), budget.delta + sums[1]))

    return Meter((cap, own), cost, (_divergence_at(alpha), _only_delta), spent, lambda sums: ApproxDP(*sums), alpha)


def _zcdp_meter(budget: ApproxDP, own: Fraction) -> Meter:
    def cost(event: Event) -> Sums:
        rest, leak = separated(event)
        return zcdp(rest).rho, leak

    def spent(sums: Sums) -> ApproxDP:
        return ApproxDP(epsilon_at(ZCDP(sums[0]), budget.delta), min(Fraction(1), budget.delta + sums[1]))

    def room(sums: Sums) -> ApproxDP:
        return ApproxDP(affordable(ZCDP(sums[0]), PureDP).epsilon, sums[1])

    return Meter((affordable(budget, ZCDP).rho, own), cost, (ZCDP, _only_delta), spent, room)


def _alone_meter(budget: ApproxDP) -> Meter:
    def cost(event: Event) -> Sums:
        return Fraction(1), approximate(event, budget.delta).epsilon

    def loss(sums: Sums) -> ApproxDP:
        return ApproxDP(sums[1], budget.delta if sums[1] else 0)

    def room(sums: Sums) -> ApproxDP:
        return budget if sums[0] else ApproxDP(0, 0)

    names = (lambda count: room((count,)), lambda epsilon: ApproxDP(epsilon, budget.delta))
    return Meter((Fraction(1), budget.epsilon), cost, names, loss, room, first_only=True)


def _basic_cost(event: Event) -> Sums:
    loss = approximate(event)
    return loss.epsilon, loss.delta


def _pure_cost(event: Event) -> Sums:
    rest, leak = separated(event)
    return pure(rest).epsilon, leak


def _divergence_at(order: Fraction) -> Callable[[Fraction], Loss]:
    return lambda divergence: RenyiDP((order,), (divergence,))


def _only_delta(delta: Fraction) -> Loss:
    return ApproxDP(0, delta)

"""One entry to all accountants: events in, a loss in the asked definition out.

>>> from fractions import Fraction
>>> from discreet.core.events import Gaussian, Laplace
>>> events = [Laplace(Fraction(100), 1)] * 20
>>> account(events, like=PureDP), account(events, like=ZCDP)
(PureDP(epsilon=0.2), ZCDP(rho=0.000999992))
>>> mixed = account([*events, Gaussian(Fraction(10**6), Fraction(10**4))], like=ApproxDP, delta="1e-6")
>>> round(float(mixed.epsilon), 3)
0.437
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from discreet.accounting.approximate import approximate
from discreet.accounting.flattening import as_event
from discreet.accounting.pure import pure
from discreet.accounting.renyi import DEFAULT_ORDERS, renyi
from discreet.accounting.zcdp import zcdp
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP

__all__ = ["account"]

L = TypeVar("L", PureDP, ApproxDP, ZCDP, RenyiDP)


def account(
    events: Event | Iterable[Event],
    like: type[L],
    *,
    delta: Exactable | None = None,
    orders: Iterable[Exactable] = DEFAULT_ORDERS,
) -> L:
    """The least loss of the type `like` that is proven for all the events together, each free to depend on the outputs
    before it.

    `delta` is for ApproxDP and `orders` for RenyiDP. The list of events is taken as fixed beforehand; a `Filter` or an
    `Odometer` is for events chosen along the way.
    """
    if delta is not None and like is not ApproxDP:
        raise InvalidArgument("delta", delta, "left out, except for ApproxDP", "ask for like=ApproxDP, or leave it out")
    loss = _loss(as_event(events), like, delta, orders)
    if isinstance(loss, like):
        return loss
    raise InvalidArgument("like", like, "PureDP, ApproxDP, ZCDP or RenyiDP", "give one of the loss types")


def _loss(event: Event, like: type[Loss], delta: Exactable | None, orders: Iterable[Exactable]) -> Loss | None:
    if like is PureDP:
        return pure(event)
    if like is ApproxDP:
        return approximate(event, delta)
    if like is ZCDP:
        return zcdp(event)
    return renyi(event, orders) if like is RenyiDP else None

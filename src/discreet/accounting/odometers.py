"""A running bound on the loss that holds at every moment at once, however the events are chosen.

There is no cap: the analyst asks what she likes and stops when she likes, and the reading is right at the moment she
stops, whatever made her stop.

>>> from discreet.core.events import Gaussian
>>> reading = Odometer(delta="1e-6")
>>> for _ in range(10):
...     reading.charge(Gaussian(Fraction(10**6), Fraction(10**4)))
>>> reading.loss
ApproxDP(epsilon=1.87842, delta=1e-06)

Let Z be the privacy loss of all answers so far. For a fixed order α = 1 + λ, e^{λ(Z − Σ D_α)} is a supermartingale
under any adaptive choice, so by Ville's inequality Z ≤ Σ D_α + ln(1/δ_α)/λ holds at all times except with probability
δ_α. The odometer does this at `orders` 1 + 2^k, shares δ equally among them, and reads the least of these lines; and of
Σε, which no loss exceeds, while every event is pure. Events with a δ of their own add it to the δ of the reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock

from discreet.accounting.approximate import separated
from discreet.accounting.enclosures import total
from discreet.accounting.flattening import neighbours
from discreet.accounting.pure import pure
from discreet.accounting.renyi import renyi
from discreet.core.errors import NotAccountable
from discreet.core.events import Event, Nothing
from discreet.core.exact import Exactable, probability
from discreet.core.losses import ApproxDP, RenyiDP
from discreet.core.rounding import log_up
from discreet.core.units import Neighbours

__all__ = ["ORDERS", "Odometer"]

ORDERS: tuple[Fraction, ...] = tuple(1 + Fraction(2) ** k for k in range(-1, 13))
"""The best order for Gaussian events is about 1 + √(ln(1/δ)/ρ): these serve ρ from 10⁻⁶ to 60, where the reading is at
most 6 % above that of the best order, not counting the share of δ."""


@dataclass(frozen=True)
class _State:
    """The sums at one moment; replaced as a whole."""

    divergences: RenyiDP
    epsilon: Fraction | None
    """Σε, until an event is not pure."""
    leak: Fraction
    relation: Neighbours | None


class Odometer:
    """Adds up what adaptively chosen events cost; `loss` holds at all times at once, except with probability δ."""

    def __init__(self, delta: Exactable, *, orders: Iterable[Exactable] = ORDERS) -> None:
        self.delta = probability("delta", delta)
        start = renyi(Nothing(), orders)
        logarithm = log_up(len(start.orders) / self.delta)
        self._offsets = [logarithm / (order - 1) for order in start.orders]
        self._state = _State(start, Fraction(0), Fraction(0), None)
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Odometer({self.loss})"

    def charge(self, event: Event) -> None:
        """Records the event, or raises NotAccountable and records nothing."""
        with self._lock:
            self._state = self._after(self._state, event)

    @property
    def loss(self) -> ApproxDP:
        """The reading: what has been lost up to now."""
        state = self._state
        lines = [d + offset for d, offset in zip(state.divergences.epsilons, self._offsets, strict=True)]
        epsilon = min(lines if state.epsilon is None else [state.epsilon, *lines])
        return ApproxDP(epsilon, min(Fraction(1), self.delta + state.leak))

    @staticmethod
    def _after(state: _State, event: Event) -> _State:
        relation = neighbours(event)
        if relation and state.relation and relation != state.relation:
            raise NotAccountable("odometer", event, f"it holds events sampled for {state.relation} neighbours already")
        rest, leak = separated(event)
        cost = renyi(rest, state.divergences.orders).epsilons
        sums = tuple(total(pair) for pair in zip(state.divergences.epsilons, cost, strict=True))
        return _State(
            RenyiDP(state.divergences.orders, sums),
            _grown(state.epsilon, rest),
            total((state.leak, leak)),
            relation or state.relation,
        )


def _grown(epsilon: Fraction | None, event: Event) -> Fraction | None:
    try:
        return None if epsilon is None else total((epsilon, pure(event).epsilon))
    except NotAccountable:
        return None

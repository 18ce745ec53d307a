"""A budget that stays within its guarantee however the events are chosen.

The analyst may choose each event, and whether to go on, after seeing all answers so far. A filter admits an event only
if the guarantee `budget` holds for the whole interaction including it.

>>> from discreet.core.events import Pure
>>> cap = Filter(PureDP(1))
>>> cap.charge(Pure(Fraction(3, 4)))
>>> cap.remaining, cap.fits(Pure(Fraction(1, 2)))
(PureDP(epsilon=0.25), False)

Sums of ε, of ρ, and of divergences at a fixed order stay valid under adaptive choice (Rogers, Roth, Ullman, Vadhan
2016; Feldman, Zrnic 2021; Lécuyer 2021). An (ε, δ) budget is kept by one of three compositions, named at the start:

* ``"renyi"`` (the default): the divergence at one order α stays under the largest that implies the budget, or the sum
  of the ε stays under ε. A pure event costs at most its ε at any order, so one filter serves a few large pure events
  as well as many small Gaussian ones.
* ``"zcdp"``: the same with ρ in place of the divergence at one order. It admits no more; its sum is easier to publish.
* ``"basic"``: Σε ≤ ε and Σδ ≤ δ.

Except for ``"basic"``, a share of δ is set aside for events that have a δ of their own; and the first event is admitted
also where only its exact loss is within the budget.

Why composition and order are fixed at the start: each sum alone has its own way of failing, with probability up to δ.
Switching, once answers are in, to whichever sum is still under its cap collects the failures of all of them, and the
total is bounded only by the sum of their δ. The sum of pure ε is the exception, since under its cap the loss is never
above ε: whichever of the two caps of ``"renyi"`` is reached last, the loss there exceeds ε with no more than the δ of
the other. Nor does the first event's exact loss add a failure: there were no answers yet to choose that event by, and
if only its exact loss admits it, nothing is admitted after it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import Any, get_args

from discreet.accounting.filter_terms import Composition, Meter, Sums, composition_for, meters_for
from discreet.accounting.flattening import neighbours
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotAccountable
from discreet.core.events import Event
from discreet.core.exact import Exactable, exact
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.core.units import Neighbours

__all__ = ["Composition", "Filter"]

DECIMAL_BITS = 8192
"""Longer numbers are written in hexadecimal, which takes linear time and has no limit of digits."""


class Filter:
    """Admits events while the guarantee `budget` holds for all of them, adaptively chosen.

    `composition`, `delta_share` and `order` are for an ApproxDP budget. `order` is the Rényi order of ``"renyi"``, by
    default the one that admits the most Gaussian events; a lower one favours sampled events.
    """

    def __init__(
        self,
        budget: Loss,
        *,
        composition: Composition | None = None,
        delta_share: Exactable = Fraction(1, 2),
        order: Exactable | None = None,
    ) -> None:
        self.budget = budget
        self.composition = composition_for(budget, composition)
        self.delta_share = exact("delta_share", delta_share)
        self._meters = _meters(
            budget, self.composition, self.delta_share, None if order is None else exact("order", order)
        )
        self._sums: tuple[Sums | None, ...] = tuple(meter.start for meter in self._meters)
        self._relation: Neighbours | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Filter({self.budget}, spent={self.spent}, remaining={self.remaining})"

    @classmethod
    def revive(cls, budget: Loss, state: dict[str, Any]) -> Filter:
        """The filter that wrote `state`, to go on from there; `budget` may be another one of the same definition.

        A budget that the events so far have passed already is refused.
        """
        remedy = "give what Filter.state wrote, unchanged"
        try:
            share, order, composition = _read(state["delta_share"]), state["order"], state["composition"]
            alpha = None if order is None else _read(order)
            sums = tuple(None if group is None else tuple(map(_read, group)) for group in state["sums"])
            relation = state["relation"]
        except (KeyError, TypeError, AttributeError, ValueError, ZeroDivisionError) as reason:
            raise InvalidArgument("state", state, "a filter's state", remedy) from reason
        revived = cls(budget, composition=composition, delta_share=share, order=alpha)
        shape = [len(meter.caps) for meter in revived._meters]
        if len(sums) != len(shape) or any(
            group is not None and (len(group) != length or min(group) < 0)
            for group, length in zip(sums, shape, strict=True)
        ):
            raise InvalidArgument("state", state, f"of a budget like {budget}", remedy)
        if relation not in (None, *get_args(Neighbours)):
            raise InvalidArgument("state", state, "of known neighbours", remedy)
        revived._sums, revived._relation = sums, relation
        if not revived._open(sums):
            raise InvalidArgument("budget", budget, "at least what is spent", "give a larger budget")
        return revived

    def state(self) -> dict[str, Any]:
        """All that `revive` needs besides the budget, as plain data; numbers are written as exact text."""
        order = next((meter.order for meter in self._meters if meter.order is not None), None)
        with self._lock:
            sums, relation = self._sums, self._relation
        return {
            "composition": self.composition,
            "delta_share": _written(self.delta_share),
            "order": None if order is None else _written(order),
            "relation": relation,
            "sums": [None if group is None else [_written(value) for value in group] for group in sums],
        }

    def covers(self, other: Filter) -> bool:
        """Whether this filter has counted at least what the other has, by the same rules."""
        mine, theirs = self.state() | {"sums": None}, other.state() | {"sums": None}
        return mine == theirs and all(
            here is None or (there is not None and all(a >= b for a, b in zip(here, there, strict=True)))
            for here, there in zip(self._sums, other._sums, strict=True)
        )

    def fits(self, event: Event) -> bool:
        """Whether `charge(event)` would be admitted now."""
        with self._lock:
            return bool(self._open(self._after(event)))

    def charge(self, event: Event) -> None:
        """Records the event, or raises BudgetExceeded and records nothing."""
        with self._lock:
            after = self._after(event)
            if not self._open(after):
                raise self._refusal(event)
            self._sums, self._relation = after, neighbours(event) or self._relation

    @property
    def spent(self) -> Loss:
        """What the events so far cost, in the budget's definition.

        For ``"renyi"`` and ``"zcdp"`` this is what they would cost as a list fixed beforehand; what holds under
        adaptive choice is `budget`, and at every moment an `Odometer`.
        """
        return min((meter.spent(sums) for meter, sums in self._open(self._sums)), key=_size)

    @property
    def remaining(self) -> Loss:
        """The loss of an event that still fits; events of a larger loss may fit too."""
        return max((meter.room(meter.left(sums)) for meter, sums in self._open(self._sums)), key=_size)

    @property
    def used(self) -> Fraction:
        """The part of the budget that is used up, from 0 to 1."""
        return min(meter.share(sums) for meter, sums in self._open(self._sums))

    def price(self, event: Event) -> Loss:
        """What the event alone costs, in the budget's definition; an event that fits nowhere has a price too."""
        prices: list[Loss] = []
        refusals: list[NotAccountable] = []
        for meter in self._meters:
            try:
                prices.append(meter.spent(meter.cost(event)))
            except NotAccountable as refusal:
                refusals.append(refusal)
        if not prices:
            raise refusals[0]
        return min(prices, key=_size)

    def _open(self, sums: tuple[Sums | None, ...]) -> list[tuple[Meter, Sums]]:
        """The meters that are within their caps; sums never shrink, so one that has passed its caps stays past them."""
        return [
            (meter, group)
            for meter, group in zip(self._meters, sums, strict=True)
            if group is not None and meter.under(group)
        ]

    def _after(self, event: Event) -> tuple[Sums | None, ...]:
        """The sums with `event`; None for a meter that cannot add up all events."""
        relation = neighbours(event)
        if relation and self._relation and relation != self._relation:
            raise NotAccountable("filter", event, f"it holds events sampled for {self._relation} neighbours already")
        after: list[Sums | None] = []
        refusals: list[NotAccountable] = []
        for meter, sums in zip(self._meters, self._sums, strict=True):
            grown = None
            # What is past the only event it may admit has nothing to add up any more: exact losses take time.
            if sums is not None and not (meter.first_only and any(sums)):
                try:
                    grown = meter.added(sums, event)
                except NotAccountable as refusal:
                    if meter.under(sums):
                        refusals.append(refusal)
            after.append(grown)
        # Where another meter could add it up but is past its caps, the event does not fit: no meter is open for it.
        if refusals and all(group is None for group in after):
            raise refusals[0]
        return tuple(after)

    def _refusal(self, event: Event) -> BudgetExceeded:
        remedy = "add more noise, ask for less, or set a larger budget before starting"
        for meter, sums in self._open(self._sums):
            try:
                costs = meter.cost(event)
            except NotAccountable:
                continue
            for name, cost, left in zip(meter.names, costs, meter.left(sums), strict=True):
                if cost > left:
                    return BudgetExceeded(name(cost), name(left), remedy)
        return BudgetExceeded(event, self.remaining, remedy)


def _size(loss: Loss) -> tuple[Fraction, Fraction]:
    match loss:
        case PureDP(epsilon):
            return epsilon, Fraction(0)
        case ApproxDP(epsilon, delta):
            return epsilon, delta
        case ZCDP(rho):
            return rho, Fraction(0)
        case RenyiDP(_, epsilons):
            return epsilons[0], Fraction(0)


@lru_cache(maxsize=1024)
def _meters(
    budget: Loss, composition: Composition | None, delta_share: Fraction, order: Fraction | None
) -> tuple[Meter, ...]:
    """The meters, which remember what the last events cost: many filters may ask for the same."""
    return tuple(
        replace(meter, cost=lru_cache(maxsize=256)(meter.cost))
        for meter in meters_for(budget, composition, delta_share, order)
    )


def _written(value: Fraction) -> str:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= DECIMAL_BITS:
        return str(value)
    return f"{value.numerator:#x}/{value.denominator:#x}"


def _read(text: str) -> Fraction:
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator, 0), int(denominator or "1", 0))

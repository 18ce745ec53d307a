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

Except for ``"basic"``, a share of δ is set aside for events that have a δ of their own.

Why composition and order are fixed at the start: each sum alone has its own way of failing, with probability up to δ.
Switching, once answers are in, to whichever sum is still under its cap collects the failures of all of them, and the
total is bounded only by the sum of their δ. The sum of pure ε is the exception, since under its cap the loss is never
above ε: whichever of the two caps of ``"renyi"`` is reached last, the loss there exceeds ε with no more than the δ of
the other.
"""

from __future__ import annotations

from fractions import Fraction
from threading import Lock

from discreet.accounting.meters import Composition, Meter, Sums, composition_for, meters_for
from discreet.accounting.parts import neighbours
from discreet.core.errors import BudgetExceeded, NotAccountable
from discreet.core.events import Event
from discreet.core.exact import Exactable
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.core.units import Neighbours

__all__ = ["Composition", "Filter"]


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
        self._meters = meters_for(budget, self.composition, delta_share, order)
        self._sums: tuple[Sums | None, ...] = tuple(meter.start for meter in self._meters)
        self._relation: Neighbours | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Filter({self.budget}, spent={self.spent}, remaining={self.remaining})"

    def fits(self, event: Event) -> bool:
        """Whether `charge(event)` would be admitted now."""
        with self._lock:
            return any(sums is not None for sums in self._after(event))

    def charge(self, event: Event) -> None:
        """Records the event, or raises BudgetExceeded and records nothing."""
        with self._lock:
            after = self._after(event)
            if all(sums is None for sums in after):
                raise self._refusal(event)
            self._sums, self._relation = after, neighbours(event) or self._relation

    @property
    def spent(self) -> Loss:
        """What the events so far cost, in the budget's definition.

        For ``"renyi"`` and ``"zcdp"`` this is what they would cost as a list fixed beforehand; what holds under
        adaptive choice is `budget`, and at every moment an `Odometer`.
        """
        return min((meter.spent(sums) for meter, sums in self._open()), key=_size)

    @property
    def remaining(self) -> Loss:
        """The loss of an event that still fits; events of a larger loss may fit too."""
        return max((meter.room(meter.left(sums)) for meter, sums in self._open()), key=_size)

    def _open(self) -> list[tuple[Meter, Sums]]:
        return [(meter, sums) for meter, sums in zip(self._meters, self._sums, strict=True) if sums is not None]

    def _after(self, event: Event) -> tuple[Sums | None, ...]:
        """The sums with `event`; None for a meter past a cap."""
        relation = neighbours(event)
        if relation and self._relation and relation != self._relation:
            raise NotAccountable("filter", event, f"it holds events sampled for {self._relation} neighbours already")
        after: list[Sums | None] = []
        refusals: list[NotAccountable] = []
        for meter, sums in zip(self._meters, self._sums, strict=True):
            grown = None
            if sums is not None:
                try:
                    grown = meter.added(sums, event)
                except NotAccountable as refusal:
                    refusals.append(refusal)
            after.append(grown if grown is not None and meter.under(grown) else None)
        if len(refusals) == len(self._open()):
            raise refusals[0]
        return tuple(after)

    def _refusal(self, event: Event) -> BudgetExceeded:
        remedy = "add more noise, ask for less, or set a larger budget before starting"
        for meter, sums in self._open():
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

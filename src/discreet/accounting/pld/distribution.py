"""Privacy loss distributions: the tightest account of what many computations cost together.

`epsilon(event, delta)` is an ε for which the event is (ε, δ)-differentially private; `delta(event, epsilon)` a δ. Both
are upper bounds with every rounding accounted for, in general within 1e-4 of the least value that the events allow. A
`PrivacyLoss` answers many such questions about the same event for less.

>>> from discreet.core.events import Gaussian, PoissonSampled, Pure, Repeated
>>> noise = Gaussian(variance=Fraction(2**40), squared_sensitivity=Fraction(2**40))
>>> step = PoissonSampled(rate=Fraction(1, 100), event=noise)
>>> round(float(epsilon(Repeated(step, 10_000), delta="1e-6")), 3)
6.907
>>> loss = privacy_loss(Repeated(Pure(Fraction(1, 10)), 100))
>>> round(float(loss.epsilon("1e-6")), 3), round(float(loss.delta(5)), 7)
(4.775, 3e-07)

Every event is replaced by a dominating pair (`pairs`), its privacy loss is put on an even grid so that its profile
only grows (`pld_grid`), and losses are summed by a tilted Fourier transform (`pld_window`).
"""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.pld.dominating_pairs import dominating
from discreet.accounting.pld.queries import LossSum
from discreet.core.errors import NotAccountable
from discreet.core.events import Composed, Event
from discreet.core.exact import Exactable, at_least, positive, probability
from discreet.core.rounding import exp_down, exp_up, float_down, float_up, shorten_up

__all__ = ["PrivacyLoss", "delta", "epsilon", "privacy_loss"]


def epsilon(event: Event, delta: Exactable, *, interval: Exactable | None = None) -> Fraction:
    """An ε ≥ 0 such that `event` is (ε, δ)-differentially private."""
    return PrivacyLoss(event, interval=interval).epsilon(delta)


def delta(event: Event, epsilon: Exactable, *, interval: Exactable | None = None) -> Fraction:
    """A δ such that `event` is (ε, δ)-differentially private."""
    return PrivacyLoss(event, interval=interval).delta(epsilon)


def privacy_loss(event: Event, *, interval: Exactable | None = None) -> PrivacyLoss:
    """The privacy loss of an event, for many questions."""
    return PrivacyLoss(event, interval=interval)


class PrivacyLoss:
    """The privacy loss of an event, in both directions between neighbours.

    `interval` fixes the step of the grid of losses; by default it suits the question.
    """

    def __init__(self, event: Event, *, interval: Exactable | None = None) -> None:
        self.event = event
        self.interval = None if interval is None else positive("interval", interval)
        self._pairs = dominating(event)
        directions = [self._pairs.remove, self._pairs.add]
        distinct = directions[:1] if self._pairs.add is self._pairs.remove else directions
        self._sums = [LossSum(parts, self.interval) for parts in distinct]

    def epsilon(self, delta: Exactable) -> Fraction:
        """An ε ≥ 0 such that the event is (ε, δ)-differentially private."""
        allowed = probability("delta", delta, zero=True, one=True)
        if allowed == 1:
            return Fraction(0)
        if allowed < self._pairs.catastrophe:
            raise self._unreachable(f"ask for a δ of at least {float_up(self._pairs.catastrophe):.6g}")
        room = (allowed - self._pairs.catastrophe) / (1 - self._pairs.catastrophe) * exp_down(-self._pairs.slack)
        worst = Fraction(0)
        for losses in self._sums:
            if losses.ceiling is not None and losses.ceiling <= worst:
                continue
            found = losses.epsilon(float_down(room))
            if found is None:
                raise self._unreachable("ask for a larger δ: at this one no finite ε can be shown")
            worst = max(worst, found)
        if worst == 0 and self._pairs.slack and self.delta(0) <= allowed:
            return Fraction(0)
        return shorten_up(worst + 2 * self._pairs.slack + self._pairs.certain, 64)

    def delta(self, epsilon: Exactable) -> Fraction:
        """A δ such that the event is (ε, δ)-differentially private."""
        level = at_least("epsilon", epsilon, 0) - 2 * self._pairs.slack - self._pairs.certain
        worst = max(Fraction(losses.delta(level)) for losses in self._sums) * exp_up(self._pairs.slack)
        caught = self._pairs.catastrophe
        return min(Fraction(1), shorten_up(caught + (1 - caught) * worst, 64))

    def compose(self, *others: PrivacyLoss) -> PrivacyLoss:
        """The privacy loss of this event and others together, each free to depend on the outputs before it."""
        return PrivacyLoss(Composed((self.event, *(other.event for other in others))), interval=self.interval)

    def __repr__(self) -> str:
        return f"PrivacyLoss({self.event!r})"

    def _unreachable(self, remedy: str) -> NotAccountable:
        return NotAccountable("PLD", self.event, remedy)

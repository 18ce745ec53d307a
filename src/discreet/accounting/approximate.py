"""(ε, δ)-differential privacy of events: the least ε over every accountant there is.

Each accountant bounds the same fixed list of events at the same δ, so the least of their answers holds. (For events
chosen one by one as answers come in, see `filters`.)

>>> approximate(Composed((Pure(Fraction(1)), Approximate(Fraction(1, 2), Fraction(1, 10**6)))))
ApproxDP(epsilon=1.5, delta=1e-06)
>>> step = PoissonSampled(Fraction(1, 100), Gaussian(Fraction(2**40), Fraction(2**40)))
>>> round(float(approximate(Repeated(step, 1000), delta="1e-6").epsilon), 2)
2.12
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

from discreet.accounting.composition import optimal
from discreet.accounting.conversions import epsilon_at
from discreet.accounting.enclosures import below, total
from discreet.accounting.flattening import Parts, parts, rate_of
from discreet.accounting.gaussian import discrete_epsilon
from discreet.accounting.pld import distribution as pld
from discreet.accounting.pure import amplified, pure
from discreet.accounting.renyi import renyi
from discreet.accounting.zcdp import zcdp
from discreet.core.errors import NotAccountable
from discreet.core.events import (
    Approximate,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    Pure,
    Repeated,
)
from discreet.core.exact import Exactable, probability
from discreet.core.losses import ApproxDP
from discreet.core.rounding import ball

__all__ = ["approximate", "satisfies", "separated"]

OPTIMAL_LIMIT = 10**5
"""Above this count the closed form, whose sums are that long, is left to the loss distributions."""


def approximate(event: Event, delta: Exactable | None = None) -> ApproxDP:
    """The least ε proven at `delta`; without `delta`, the ε and δ that the parts of the event state add up."""
    if delta is None:
        return _sum(parts(event))
    target = probability("delta", delta, zero=True)
    return ApproxDP(_least(event, target), target)


@lru_cache(maxsize=512)
def _least(event: Event, delta: Fraction) -> Fraction:
    return min(_proven(event, delta))


def satisfies(event: Event, budget: ApproxDP) -> bool:
    """Whether some accountant proves that the event is within the budget; the slow ones are asked last."""
    if budget.delta == 1:
        return True
    return any(epsilon <= budget.epsilon for epsilon in _proven(event, budget.delta))


def _proven(event: Event, delta: Fraction) -> Iterator[Fraction]:
    """What each accountant proves, at least one of them."""
    leaves = parts(event)
    refusal = NotAccountable("approximate", event, f"its parts have a larger δ than {float(delta):g}; allow more")
    bounded = False
    for accountant in _ACCOUNTANTS:
        try:
            epsilon = accountant(leaves, delta)
        except NotAccountable as reason:
            refusal = reason
            continue
        except (ArithmeticError, MemoryError):
            continue  # numbers past what doubles hold; sums of rationals still work
        if epsilon is not None:
            bounded = True
            yield epsilon
    if not bounded:
        raise refusal


def separated(event: Event) -> tuple[Event, Fraction]:
    """The event with each (ε, δ) part taken as ε-private, and the chance that this is not so: the sum of the δ.

    An (ε, δ)-private computation is an ε-private one except with probability δ (Kairouz, Oh, Viswanath 2015), so a
    guarantee at δ′ for what remains is one at δ′ plus that chance for the whole.
    """
    kept: list[Event] = []
    leaks: list[Fraction] = []
    for leaf, count in parts(event):
        if _leaky(leaf):
            stated = _stated(leaf)
            kept.append(Repeated(Pure(stated.epsilon), count))
            leaks.append(count * stated.delta)
        else:
            kept.append(Repeated(leaf, count))
    return Composed(tuple(kept)), min(Fraction(1), total(leaks))


def _basic(leaves: Parts, delta: Fraction) -> Fraction | None:
    loss = _sum(leaves)
    return loss.epsilon if loss.delta <= delta else None


def _optimal(leaves: Parts, delta: Fraction) -> Fraction | None:
    """Optimal composition, which is known in closed form for one event run many times."""
    if len(leaves) != 1 or leaves[0][1] > OPTIMAL_LIMIT:
        return None
    [(leaf, count)] = leaves
    loss = _stated(leaf)
    slack = delta
    if 0 < loss.delta < 1:
        slack = below(lambda: -((-ball(delta)).log1p() - count * (-ball(loss.delta)).log1p()).expm1())
    return optimal(loss.epsilon, 0, count, slack).epsilon if slack > 0 and loss.delta < 1 else None


def _gaussian(leaves: Parts, delta: Fraction) -> Fraction | None:
    """The exact curve for the Gaussian events; what the others state is added."""
    gaussians = [(leaf, count) for leaf, count in leaves if isinstance(leaf, Gaussian)]
    others = _sum(tuple((leaf, count) for leaf, count in leaves if not isinstance(leaf, Gaussian)))
    if not gaussians or others.delta >= delta:
        return None
    epsilon = discrete_epsilon(gaussians, delta - others.delta)
    return None if epsilon is None else epsilon + others.epsilon


def _concentrated(leaves: Parts, delta: Fraction) -> Fraction | None:
    rest, leak = separated(_rejoined(leaves))
    return epsilon_at(zcdp(rest), delta - leak) if leak < delta else None


def _renyi(leaves: Parts, delta: Fraction) -> Fraction | None:
    rest, leak = separated(_rejoined(leaves))
    return epsilon_at(renyi(rest), delta - leak) if leak < delta else None


def _loss_distribution(leaves: Parts, delta: Fraction) -> Fraction:
    return pld.epsilon(_rejoined(leaves), delta)


_ACCOUNTANTS: tuple[Callable[[Parts, Fraction], Fraction | None], ...] = (
    _basic,
    _optimal,
    _gaussian,
    _concentrated,
    _renyi,
    _loss_distribution,
)


def _sum(leaves: Parts) -> ApproxDP:
    """Basic composition of what the leaves state themselves."""
    losses = [(_stated(leaf), count) for leaf, count in leaves]
    delta = total(count * loss.delta for loss, count in losses)
    return ApproxDP(total(count * loss.epsilon for loss, count in losses), min(Fraction(1), delta))


def _stated(leaf: Event) -> ApproxDP:
    """The (ε, δ) that follows from the event without choosing a δ."""
    match leaf:
        case Approximate(epsilon, delta):
            return ApproxDP(epsilon, delta)
        case PoissonSampled() | FixedSizeSampled():
            inner, rate = _sum(parts(leaf.event)), rate_of(leaf)
            return ApproxDP(amplified(inner.epsilon, rate), rate * inner.delta)
        case Gaussian():
            raise NotAccountable("basic", leaf, "give delta: Gaussian noise has an ε only for a chosen δ")
        case _:
            return ApproxDP(pure(leaf).epsilon, 0)


def _leaky(leaf: Event) -> bool:
    if isinstance(leaf, PoissonSampled | FixedSizeSampled):
        return any(_leaky(inner) for inner, _ in parts(leaf.event))
    return isinstance(leaf, Approximate)


def _rejoined(leaves: Parts) -> Event:
    return Composed(tuple(Repeated(leaf, count) for leaf, count in leaves))

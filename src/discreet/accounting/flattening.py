"""An event as the list of what it runs: leaf events with their multiplicities.

Composition is flattened, equal leaves are merged, what costs nothing is left out, and sampling that always takes
everything is unwrapped. The order of the leaves carries no meaning to an accountant.

>>> step = Laplace(Fraction(10), 1)
>>> parts(Composed((step, Repeated(step, 3), Nothing(), PoissonSampled(Fraction(1), step))))
((Laplace(scale=Fraction(10, 1), sensitivity=1), 5),)
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    BoundedRanges,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Nothing,
    PoissonSampled,
    Pure,
    Repeated,
)
from discreet.core.units import Neighbours

__all__ = ["Parts", "as_event", "neighbours", "parts", "rate_of"]

Parts = tuple[tuple[Event, int], ...]


def as_event(events: Event | Iterable[Event]) -> Event:
    """One event, whether one or several were given."""
    if isinstance(events, Event):
        return events
    if isinstance(events, Iterable) and not isinstance(events, str | bytes | dict):
        return Composed(tuple(events))
    raise InvalidArgument("event", events, "an event", "build it with the classes of discreet.core.events")


def parts(event: Event) -> Parts:
    """The leaves of `event`: each differs from the others, costs something, and is run `count` ≥ 1 times."""
    if not isinstance(event, Event):
        raise InvalidArgument("event", event, "an event", "build it with the classes of discreet.core.events")
    counts: dict[Event, int] = {}
    waiting: list[tuple[Event, int]] = [(event, 1)]
    while waiting:
        current, times = waiting.pop()
        match current:
            case Composed(events):
                waiting.extend((inner, times) for inner in reversed(events))
            case Repeated(inner, count):
                waiting.append((inner, times * count))
            case PoissonSampled() | FixedSizeSampled() if rate_of(current) == 1:
                waiting.append((current.event, times))
            case PoissonSampled() | FixedSizeSampled():
                if (leaf := _sampled(current)) is not None:
                    counts[leaf] = counts.get(leaf, 0) + times
            case Approximate(epsilon, delta) if delta == 0:
                waiting.append((Pure(epsilon), times))
            case _ if not _costless(current):
                counts[current] = counts.get(current, 0) + times
    found = tuple((leaf, count) for leaf, count in counts.items() if count)
    if len({relation for leaf, _ in found if (relation := _relation(leaf))}) > 1:
        raise _mixed(event)
    return found


@lru_cache(maxsize=256)
def neighbours(event: Event) -> Neighbours | None:
    """The only neighbour relation that the guarantees of this event can be for; None when any will do."""
    return next((relation for leaf, _ in parts(event) if (relation := _relation(leaf))), None)


def rate_of(event: PoissonSampled | FixedSizeSampled) -> Fraction:
    """The chance that one unit is in the sample."""
    return event.rate if isinstance(event, PoissonSampled) else Fraction(event.sample, event.population)


def _sampled(event: PoissonSampled | FixedSizeSampled) -> Event | None:
    """The sampled event with its inner event flattened; None when it costs nothing."""
    inner = parts(event.event)
    if rate_of(event) == 0 or not inner:
        return None
    relation = _relation(event)
    if any(_relation(leaf) not in (None, relation) for leaf, _ in inner):
        raise _mixed(event)
    leaves = tuple(leaf if count == 1 else Repeated(leaf, count) for leaf, count in inner)
    body = leaves[0] if len(leaves) == 1 else Composed(leaves)
    if isinstance(event, FixedSizeSampled):
        return FixedSizeSampled(event.sample, event.population, body)
    if isinstance(body, PoissonSampled):
        return PoissonSampled(event.rate * body.rate, body.event)
    return PoissonSampled(event.rate, body)


def _relation(leaf: Event) -> Neighbours | None:
    match leaf:
        case PoissonSampled():
            return "add_remove"
        case FixedSizeSampled():
            return "replace"
        case _:
            return None


def _mixed(event: Event) -> NotAccountable:
    return NotAccountable(
        "composition",
        event,
        "Poisson sampling is for add/remove neighbours and fixed-size sampling for replace neighbours: use one kind",
    )


def _costless(event: Event) -> bool:
    match event:
        case Nothing() | Laplace(sensitivity=0):
            return True
        case Gaussian():
            return event.squared_sensitivity == 0
        case Pure() | BoundedRange():
            return event.epsilon == 0
        case BoundedRanges():
            return event.squared_epsilon == 0
        case _:
            return False

"""What was run, in exact numbers: the one vocabulary between mechanisms and accountants.

A mechanism describes itself by events; an accountant turns events into a loss; neither knows the other. Events are
stored in ledgers and certificates, so **the meaning of a stored event never changes**: a new meaning gets a new
name. Each event states a fact about one randomised computation on two neighbouring data sets D and D′.

Scales and sensitivities count steps of the integer grid the noise lives on; only their ratio and the
fineness of the grid matter. What moves by whole steps moves by none or by at least one, so a squared sensitivity is 0
or at least 1: one in between is that of a number in some other unit, which an accountant of whole numbers would take
for one that never moves. It is refused where an event is made, and read as 1 where one was stored.

>>> to_json(Gaussian(variance=Fraction(100), squared_sensitivity=Fraction(2), dimension=2))
{'kind': 'gaussian', 'variance': '100', 'squared_sensitivity': '2', 'dimension': 2}
>>> from_json(to_json(Repeated(Laplace(Fraction(10), 1), 3)))
Repeated(event=Laplace(scale=Fraction(10, 1), sensitivity=1), count=3)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.core.exact import at_least, count, exact, natural, positive, probability

__all__ = [
    "Approximate",
    "BoundedRange",
    "BoundedRanges",
    "Composed",
    "Event",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "Nothing",
    "PoissonSampled",
    "Pure",
    "Repeated",
    "from_json",
    "to_json",
]


@dataclass(frozen=True)
class Event:
    """The root of the vocabulary."""


@dataclass(frozen=True)
class Nothing(Event):
    """Nothing about the data was used."""


@dataclass(frozen=True)
class Laplace(Event):
    """Independent discrete Laplace noise, P(k) ∝ exp(−|k|/scale), on integers that move by at most `sensitivity`
    in ℓ1."""

    scale: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        _set(self, "scale", positive("scale", self.scale))
        _set(self, "sensitivity", count("sensitivity", self.sensitivity))


@dataclass(frozen=True)
class Gaussian(Event):
    """Independent discrete Gaussian noise, P(k) ∝ exp(−k²/2·variance), on `dimension` integers that move by at most
    √squared_sensitivity in ℓ2: by nothing, or by at least 1."""

    variance: Fraction
    squared_sensitivity: Fraction
    dimension: int = 1

    def __post_init__(self) -> None:
        _set(self, "variance", positive("variance", self.variance))
        _set(self, "squared_sensitivity", squared_steps("squared_sensitivity", self.squared_sensitivity))
        _set(self, "dimension", natural("dimension", self.dimension))


@dataclass(frozen=True)
class Pure(Event):
    """Any ε-differentially private computation."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _set(self, "epsilon", at_least("epsilon", self.epsilon, 0))


@dataclass(frozen=True)
class BoundedRange(Event):
    """A computation whose log-probabilities of any two outputs move apart by at most ε (an exponential mechanism):
    for each neighbour pair there is a t in [0, ε] with the privacy loss in [t − ε, t]."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _set(self, "epsilon", at_least("epsilon", self.epsilon, 0))


@dataclass(frozen=True)
class BoundedRanges(Event):
    """Up to `dimension` computations, each free to depend on the outputs before it: for each neighbour pair there are
    numbers ε_i with Σ ε_i² ≤ squared_epsilon such that the i-th, given the outputs before it, is a `BoundedRange(ε_i)`
    for that pair. A unit may move many of them a little or few of them much."""

    squared_epsilon: Fraction
    dimension: int

    def __post_init__(self) -> None:
        _set(self, "squared_epsilon", at_least("squared_epsilon", self.squared_epsilon, 0))
        _set(self, "dimension", natural("dimension", self.dimension))


@dataclass(frozen=True)
class Approximate(Event):
    """Any (ε, δ)-differentially private computation."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _set(self, "epsilon", at_least("epsilon", self.epsilon, 0))
        _set(self, "delta", probability("delta", self.delta, zero=True, one=True))


@dataclass(frozen=True)
class Composed(Event):
    """All of these, each free to depend on the outputs before it."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _set(self, "events", tuple(_event("events", e) for e in self.events))
        _limit_depth(self, *self.events)


@dataclass(frozen=True)
class Repeated(Event):
    """The same event `count` times with fresh randomness each time."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        _event("event", self.event)
        _set(self, "count", count("count", self.count))
        _limit_depth(self, self.event)


@dataclass(frozen=True)
class PoissonSampled(Event):
    """The event run on a secret sample that holds each unit independently with probability `rate`.

    The guarantee is for add/remove neighbours, and each such event draws its own sample.
    """

    rate: Fraction
    event: Event

    def __post_init__(self) -> None:
        _set(self, "rate", probability("rate", self.rate, zero=True, one=True))
        _event("event", self.event)
        _limit_depth(self, self.event)


@dataclass(frozen=True)
class FixedSizeSampled(Event):
    """The event run on a secret uniform sample of `sample` units out of `population`, without replacement.

    The inner event and the guarantee are both for replace neighbours; each such event draws its own sample.
    """

    sample: int
    population: int
    event: Event

    def __post_init__(self) -> None:
        _set(self, "population", natural("population", self.population))
        _set(self, "sample", count("sample", self.sample, limit=self.population))
        _event("event", self.event)
        _limit_depth(self, self.event)


DEEPEST = 64
"""Levels of events inside events."""
_KINDS: dict[str, type[Event]] = {
    "nothing": Nothing,
    "laplace": Laplace,
    "gaussian": Gaussian,
    "pure": Pure,
    "bounded_range": BoundedRange,
    "bounded_ranges": BoundedRanges,
    "approximate": Approximate,
    "composed": Composed,
    "repeated": Repeated,
    "poisson_sampled": PoissonSampled,
    "fixed_size_sampled": FixedSizeSampled,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json(event: Event) -> dict[str, Any]:
    """A plain dictionary; rationals are written 'p/q' so that nothing is rounded."""
    return {"kind": _NAMES[type(event)]} | {f.name: _plain(getattr(event, f.name)) for f in fields(event)}


def from_json(record: dict[str, Any]) -> Event:
    """The event a dictionary from `to_json` describes."""
    name = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(name, str) or name not in _KINDS:
        raise InvalidArgument("kind", name, f"one of {sorted(_KINDS)}", "use a record written by to_json")
    kind = _KINDS[name]
    if kind is Gaussian:
        record = _at_least_a_step(record)
    expected = {f.name for f in fields(kind)}
    given = record.keys() - {"kind"}
    if given != expected:
        raise InvalidArgument(f"fields of {name}", sorted(given), str(sorted(expected)), "use a record from to_json")
    try:
        return kind(**{key: _revived(record[key]) for key in expected})
    except TypeError:
        raise InvalidArgument(f"fields of {name}", "a record", "as written by to_json", "use it unchanged") from None


def squared_steps(argument: str, value: object) -> Fraction:
    """A squared distance of points of the integer grid: 0, or at least 1."""
    squared = at_least(argument, value, 0)
    if 0 < squared < 1:
        remedy = f"count in steps of the grid that the noise lives on: multiply both {argument} and the variance"
        raise InvalidArgument(argument, value, "0 or at least 1: whole numbers move by whole steps", remedy)
    return squared


def _at_least_a_step(record: dict[str, Any]) -> dict[str, Any]:
    """A stored Gaussian with a squared sensitivity between 0 and 1, which could once be made, is charged as 1."""
    written = record.get("squared_sensitivity")
    if isinstance(written, str) and 0 < exact("squared_sensitivity", written) < 1:
        return record | {"squared_sensitivity": "1"}
    return record


def _plain(value: object) -> object:
    if isinstance(value, Event):
        return to_json(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Fraction) else value


def _revived(value: object) -> Any:
    if isinstance(value, dict):
        return from_json(value)
    if isinstance(value, list):
        return tuple(_revived(part) for part in value)
    return exact("number", value) if isinstance(value, str) else value


def _event(argument: str, value: object) -> Event:
    if not isinstance(value, Event):
        raise InvalidArgument(argument, value, "an event", "build it with one of the classes of discreet.core.events")
    return value


def _limit_depth(event: Event, *inner: Event) -> None:
    """Events are read by recursion, so how deep they nest is bounded where they are made."""
    depth = 1 + max((getattr(part, "_depth", 0) for part in inner), default=0)
    if depth > DEEPEST:
        raise InvalidArgument("event", f"{depth} levels deep", f"at most {DEEPEST} levels", "compose it flat")
    _set(event, "_depth", depth)


def _set(target: object, name: str, value: object) -> None:
    object.__setattr__(target, name, value)

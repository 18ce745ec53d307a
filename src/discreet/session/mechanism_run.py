"""One run of a mechanism, as a kind of question: `session.release(Laplace.for_epsilon(1), 1974)`.

Unit and neighbours: those of the session. Loss: that of the mechanism's events, which it derives from the parameters
that set its noise. What is left to show is that its data moves between neighbours by no more than its `sensitivity`:

- A value is computed by whoever calls, who vouches for that, and for the shape of an array, which is public. The books
  and the certificate say so. Quantiles take one value of each unit, and must be built for the session's neighbours.
- A text is a question in SQL that counts rows, all of whose groups are listed, where every row is a unit. Then
  `changes` rows differ between neighbours, each in `copies` rows of what is counted. So counts move by changes·copies
  in ℓ1, by the root of changes·copies² in ℓ2 (what comes and what goes are both non-negative), and each count by
  copies. A mechanism with a smaller sensitivity is refused. Where people have many rows, ask in SQL: that bounds what
  they add.

Mechanisms are ours, known by their exact class: what else calls itself one could draw anything. Those that are run by
each person alone (randomized response) are charged to each person, not here.

Nothing tells two runs apart but when they were asked, so each is charged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from discreet.accounting.budgets import loss_of
from discreet.charging.question import Bound, Context, Plan, Question
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.losses import Budget, Loss
from discreet.core.mechanism import Release
from discreet.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    SparseVector,
    Staircase,
)
from discreet.mechanisms.sparse_vector import Answer as Comparison
from discreet.noise.entropy import Entropy, for_release, system
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.bounding.sums import Statistic
from discreet.sql.parsing.effort import check_effort
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Query, Ref
from discreet.sql.relations import copies_in, is_owned
from discreet.sql.statement.builder import statement
from discreet.sql.statement.results import Groups

__all__ = ["MechanismRelease", "RunMechanism"]

ROWS = Statistic(Sum.ROWS, None)
LONGEST_ABOUT = 200
TAKEN = (Laplace, Gaussian, Staircase, Exponential, PermuteAndFlip, NoisyMax, SparseVector, Quantile, Quantiles)


@dataclass(frozen=True)
class MechanismRelease:
    """What a mechanism released: numbers, choices or comparisons.

    `private` is False when the noise came from a test seed: such values carry no guarantee at all.
    """

    values: Any
    names: tuple[str, ...]
    loss: Loss
    release: Release = field(repr=False)
    certificate: dict[str, Any] = field(repr=False)
    private: bool = True

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The values as one row each, for certificates."""
        listed = self.values if isinstance(self.values, tuple) else np.ravel(np.asarray(self.values, dtype=object))
        return tuple((value if isinstance(value, bool | int | float) else str(value),) for value in listed)

    def intervals(self, level: float = 0.95) -> Any:
        """(low, high) of each number; choices have none."""
        return self.release.intervals(level)

    def _repr_html_(self) -> str:
        return self.release._repr_html_()


@dataclass(frozen=True)
class RunMechanism(Question[MechanismRelease]):
    """A mechanism and its data; `Session.release` says what each of these is."""

    mechanism: Any
    data: Any = field(repr=False)
    about: str = ""

    def bind(self, context: Context) -> BoundRun:
        """The run, under a number that is drawn for this asking."""
        if type(self.mechanism) not in TAKEN:
            names = ", ".join(kind.__name__ for kind in TAKEN)
            remedy = "give one such as Laplace.for_epsilon(1)"
            raise InvalidArgument("mechanism", type(self.mechanism).__name__, f"one of {names}", remedy)
        neighbours = getattr(self.mechanism, "neighbours", context.unit.neighbours)
        if neighbours != context.unit.neighbours:
            wanted = repr(context.unit.neighbours)
            remedy = f"build it with neighbours={wanted}"
            raise InvalidArgument("neighbours", neighbours, f"{wanted}, as in this session", remedy)
        if not isinstance(self.about, str) or len(self.about) > LONGEST_ABOUT:
            bound = f"a text of at most {LONGEST_ABOUT} characters"
            raise InvalidArgument("about", self.about, bound, "say in a few words what is released")
        counts = _Counts.of(self.data, context) if isinstance(self.data, str) else None
        if counts is None and np.asarray(self.data).dtype.kind not in "biuf":
            raise InvalidArgument("data", type(self.data).__name__, "numbers, or a question in SQL", "compute it first")
        if counts is not None:
            counts.assert_covered(self.mechanism)
        return BoundRun(self.mechanism, self.data, self.about, counts, context, f"{system().bits(128):032x}")


@dataclass(frozen=True)
class _Counts:
    """Rows of listed groups, where every row is a unit."""

    query: Query
    groups: tuple[tuple[Any, ...], ...]
    context: Context

    @classmethod
    def of(cls, text: str, context: Context) -> _Counts:
        """From a question in SQL that counts rows and nothing else."""
        query = parse(text, context.catalog)
        aggregate = query.aggregate
        lists = [key.values.values for key in aggregate.keys if key.values is not None]
        [*measures] = [(measure.function, measure.argument) for measure in aggregate.measures]
        named = [*(key.name for key in aggregate.keys), *(measure.name for measure in aggregate.measures)]
        shown = [out.expression.name for out in query.outputs if isinstance(out.expression, Ref)]
        plain = shown == named and len(query.outputs) == len(named)
        plain = plain and query.having is None and not query.order and query.limit is None
        if measures != [("count", None)] or not plain or len(lists) < len(aggregate.keys):
            remedy = "write SELECT city, COUNT(*) AS n FROM visits GROUP BY city, with the values of city declared"
            bound = "the groups' keys, all listed, and then COUNT(*) as it is"
            raise InvalidArgument("data", text, bound, remedy)
        check_effort(aggregate, (ROWS,), 0)
        if is_owned(aggregate.input):
            remedy = "ask in SQL, which bounds what a person adds"
            raise InvalidArgument("unit", context.unit, "Row(), for counts in a mechanism", remedy)
        return cls(query, tuple(product(*lists)), context)

    @property
    def statement(self) -> str:
        return statement(self.query.aggregate, (ROWS,), None, (), self.context.engine.dialect)

    @property
    def zeros(self) -> Any:
        """Counts of no rows."""
        return np.zeros(len(self.groups), dtype=np.int64) if self.query.aggregate.keys else 0

    def assert_covered(self, mechanism: Any) -> None:
        """That the sensitivity which the mechanism states is no less than how far the counts move."""
        changes, copies = self.context.unit.changes, copies_in(self.query.aggregate.input)
        match mechanism:
            case Laplace() | Staircase():
                name, stated, moved = "sensitivity", mechanism.sensitivity, changes * copies
            case Gaussian():
                name, stated, moved = "squared_sensitivity", mechanism.squared_sensitivity, changes * copies**2
            case Exponential() | PermuteAndFlip() | NoisyMax():
                name, stated, moved = "sensitivity", Fraction(mechanism.sensitivity), copies
                if mechanism.monotonic and changes > 1:
                    remedy = "leave it out: where a row is replaced, one count rises and another falls"
                    raise InvalidArgument("monotonic", True, "False for replaced rows", remedy)
            case _:
                remedy = "use a mechanism with noise or a choice, or compute the value and give that"
                raise InvalidArgument("mechanism", type(mechanism).__name__, "one that takes counts", remedy)
        if stated < moved:
            raise InvalidArgument(name, stated, f"at least {moved}, which is how far these counts move", "raise it")
        if isinstance(mechanism, Staircase) and len(self.groups) > 1:
            raise InvalidArgument("data", len(self.groups), "one count", "use Laplace, which takes several")

    def run(self) -> Any:
        """The exact counts. This is what touches data."""
        keys = len(self.query.aggregate.keys)
        groups = Groups.read(self.context.engine.run(self.statement), keys, (ROWS,), False)
        found = [*groups.rows.keys]
        totals = groups.rows.clipped(0, H, 0, found)
        counted = {key: int(total) // (G * H) for key, total in zip(found, totals, strict=True)}
        counts = np.array([counted.get(group, 0) for group in self.groups], dtype=np.int64)
        return counts if keys else int(counts[0])


@dataclass(frozen=True)
class BoundRun(Bound[MechanismRelease]):
    """A run within a session."""

    mechanism: Any
    data: Any = field(repr=False)
    about: str
    counts: _Counts | None
    context: Context = field(repr=False)
    number: str

    @property
    def identity(self) -> str:
        """The number alone: asked again it is another run."""
        return json.dumps({"format": 1, "kind": "mechanism", "number": self.number})

    def plan(self) -> RunPlan:
        """The mechanism as it is."""
        return RunPlan(self)


@dataclass(frozen=True)
class RunPlan(Plan[MechanismRelease]):
    """A mechanism that is to be run once."""

    bound: BoundRun

    @property
    def text(self) -> str:
        """Which mechanism, on what."""
        name, bound = type(self.bound.mechanism).__name__, self.bound
        if bound.counts is not None:
            return f"{name} on {bound.data}"
        return f"{name} on a value that whoever asked computed" + (f": {bound.about}" if bound.about else "")

    @property
    def words(self) -> str:
        """The plan in words."""
        moves = "as far as it states" if self.bound.counts is not None else "as far as whoever asked vouches for"
        name = type(self.bound.mechanism).__name__
        return f"one run of {name}; its data moves {moves}; asked again it is charged again"

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What the mechanism says that it runs."""
        return tuple(self.bound.mechanism.events)

    @property
    def loss(self) -> Budget:
        """What that costs alone."""
        return loss_of(self.events, self.bound.context.budget)

    @property
    def epsilon(self) -> Fraction:
        """The ε of its loss; 0 where that has none."""
        return getattr(self.loss, "epsilon", Fraction(0))

    @property
    def statement(self) -> str:
        """What the engine runs, if anything."""
        return "" if self.bound.counts is None else self.bound.counts.statement

    @property
    def columns(self) -> tuple[str, ...]:
        """The values have one column."""
        return ("value",)

    def check(self) -> None:
        """Run it once on zeros in the place of the data, and throw that away: what the mechanism refuses of the number
        or type of values is refused before the charge."""
        if self.statement:
            self.bound.context.engine.prepare(self.statement)
        counts = self.bound.counts
        trial = np.zeros_like(np.asarray(self.bound.data))[()] if counts is None else counts.zeros
        _packed(self.bound.mechanism.release(trial, entropy=for_release(None)))

    def run(self, entropy: Entropy, progress: Callable[[float], None], /) -> bytes:
        """The release."""
        data = self.bound.data if self.bound.counts is None else self.bound.counts.run()
        return _packed(self.bound.mechanism.release(data, entropy=entropy))

    def read(self, payload: bytes) -> MechanismRelease:
        """The release as it is stored."""
        stored, mechanism = json.loads(payload), self.bound.mechanism
        values = _value(stored["values"])
        error = mechanism.accuracy if stored["error"] else None
        limit = getattr(mechanism, "limit", None) if stored["error"] else None
        release = Release(values, mechanism.loss, self.events, error, stored["private"], limit)
        return MechanismRelease(values, self.columns, self.loss, release, {}, stored["private"])


def _packed(release: Release) -> bytes:
    stored = {"values": _plain(release.values), "error": release.error is not None, "private": release.private}
    return json.dumps(stored).encode()


def _plain(value: Any) -> Any:
    """A released value as JSON; doubles are written so that they are read again to the last bit."""
    match value:
        case np.ndarray() if value.dtype.kind in "iufb":
            listed = [_plain(item) for item in value.ravel().tolist()]
            return {"array": listed, "shape": value.shape, "type": value.dtype.str}
        case np.generic():
            return _plain(value.item())
        case float():
            return {"float": value.hex()}
        case bool() | int() | str() | None:
            return value
        case Comparison():
            return {"comparison": [value.above, value.value, value.private]}
        case tuple() | list():
            return [_plain(item) for item in value]
    raise InvalidArgument("mechanism", type(value).__name__, "one that gives numbers, choices or texts", "ask in SQL")


def _value(plain: Any) -> Any:
    """What `_plain` wrote."""
    match plain:
        case {"array": listed, "shape": shape, "type": kind}:
            return np.array([_value(item) for item in listed], dtype=kind).reshape(shape)
        case {"float": digits}:
            return float.fromhex(digits)
        case {"comparison": [above, noisy, private]}:
            return Comparison(above, noisy, private)
        case [*items]:
            return tuple(_value(item) for item in items)
    return plain

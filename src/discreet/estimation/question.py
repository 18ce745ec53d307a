"""What any function gives, as a kind of question: `session.ask(Estimate(mean, ["age"], epsilon=1, bounds=(0, 99)))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from discreet.charging.question import Bound, Context, Plan, Question, Run, checked_epsilon
from discreet.core.events import Event
from discreet.core.exact import Exactable
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.estimation.request import Ends, Request
from discreet.estimation.result import Estimation, assembled, released
from discreet.estimation.trial import tried
from discreet.noise.entropy import Entropy, system
from discreet.robust.sandbox.workers import Form, Limits

__all__ = ["BoundEstimate", "Estimate", "EstimatePlan"]


@dataclass(frozen=True)
class Estimate(Question[Estimation]):
    """A function of some rows; `Session.estimate` says what each of these is."""

    function: Callable[[Any], Any]
    what: str | Sequence[str]
    epsilon: Exactable
    bounds: Ends = None
    values: Sequence[Any] | None = None
    blocks: int | None = None
    rounds: int = 1
    method: str | None = None
    default: Any = None
    form: Form = "pandas"
    limits: Limits | None = None

    def bind(self, context: Context) -> BoundEstimate:
        """The request, with everything about blocks decided, under a number that is drawn for this asking."""
        asked: tuple[Any, ...] = (
            self.bounds,
            self.values,
            self.blocks,
            self.rounds,
            self.method,
            self.default,
            self.form,
            self.limits,
        )
        facts = (context.catalog, context.budget, context.engine.dialect)
        request = Request.of(*facts, self.function, self.what, checked_epsilon(self.epsilon), *asked)
        return BoundEstimate(request, context, f"{system().bits(128):032x}")


@dataclass(frozen=True)
class BoundEstimate(Bound[Estimation]):
    """A function of rows of a session."""

    request: Request
    context: Context = field(repr=False)
    number: str

    @property
    def identity(self) -> str:
        """What was asked and declared, and the number: asked again it is another question."""
        return self.request.identity(self.context.sources(self.request.rows.relation), self.number)

    def plan(self) -> EstimatePlan:
        """The blocks and the aggregator."""
        return EstimatePlan(self.request, self.context)


@dataclass(frozen=True)
class EstimatePlan(Plan[Estimation]):
    """How answers of blocks become one."""

    request: Request
    context: Context = field(repr=False)

    @property
    def text(self) -> str:
        """Which function of which rows."""
        return f"estimate of {self.request.name} on {self.request.text}"

    @property
    def words(self) -> str:
        """The plan in words."""
        return self.request.words

    @property
    def epsilon(self) -> Fraction:
        """What it may cost."""
        return self.request.epsilon

    @property
    def events(self) -> tuple[Event, ...]:
        """What will be run."""
        return self.request.events

    @property
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """What that costs alone."""
        return self.request.loss

    @property
    def errors(self) -> tuple[ExpectedError, ...]:
        """How far off, where it is known beforehand."""
        return self.request.errors

    @property
    def statement(self) -> str:
        """What the engine runs."""
        return self.request.statement

    @property
    def columns(self) -> tuple[str, ...]:
        """What the numbers of an answer are called."""
        return self.request.names

    def notes(self) -> tuple[str, ...]:
        """Warnings about the number of blocks, and what the function did on made-up rows."""
        return (*self.request.notes, *tried(self.request, self.context.private_files()))

    def check(self) -> None:
        """Have the engine prepare the statement."""
        self.context.engine.prepare(self.request.statement)

    @contextmanager
    def ready(self) -> Iterator[Run]:
        """With processes that wait for blocks: a function that cannot be loaded is refused before the charge."""
        with self.request.workers(self.context.private_files()) as workers:
            yield partial(released, self.request, self.context.engine, workers)

    def run(self, entropy: Entropy, progress: Callable[[float], None], /) -> bytes:
        """The aggregated answer, by processes of its own."""
        with self.ready() as run:
            return run(entropy, progress)

    def read(self, payload: bytes) -> Estimation:
        """The estimate that is stored."""
        return assembled(self.request, payload)

"""Synthetic rows, as a kind of question: `session.ask(SyntheticRows("visits", epsilon=1))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.charging.question import Bound, Context, Plan, Question, checked_epsilon, checked_rho
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.engines.engine import Engine
from discreet.noise.entropy import Entropy
from discreet.synthesis.columns import Bins
from discreet.synthesis.request import Facts, Request, Wanted
from discreet.synthesis.result import Synthesis, assembled, checked, plan_of, released

__all__ = ["BoundRows", "RowsPlan", "SyntheticRows"]


@dataclass(frozen=True)
class SyntheticRows(Question[Synthesis]):
    """Synthetic rows of some columns; `Session.synthesize` says what each of these is."""

    what: str | Sequence[str]
    epsilon: Exactable | None = None
    workload: Wanted = None
    method: str | None = None
    bins: Bins = None
    max_rows: int | None = None
    check: Exactable = "0.1"
    rows: int | None = None
    rho: Exactable | None = None
    """Instead of ε, under a `ZCDP` budget, the ρ that they may cost."""

    def bind(self, context: Context) -> BoundRows:
        """The request, with its columns and their values."""
        if (self.epsilon is None) == (self.rho is None):
            remedy = "give epsilon=1, what they may cost, or rho=0.1 under a budget in ρ"
            raise InvalidArgument("epsilon, rho", (self.epsilon, self.rho), "exactly one of the two", remedy)
        rho = None if self.rho is None else checked_rho(self.rho, context.budget)
        epsilon = None if self.epsilon is None else checked_epsilon(self.epsilon)
        facts = Facts(context.catalog, context.unit.changes, context.budget, context.engine.dialect)
        asked = (self.workload, self.method, self.bins, self.max_rows, self.check)
        request = Request.of(facts, self.what, epsilon, *asked, rho)
        return BoundRows(request, context.sources(request.rows.relation), checked(self.rows), context.engine)


@dataclass(frozen=True)
class BoundRows(Bound[Synthesis]):
    """Synthetic rows of the tables of a session."""

    request: Request
    sources: dict[str, str]
    rows: int | None
    engine: Engine

    @property
    def identity(self) -> str:
        """What was asked and declared. How many rows are drawn is not part of it."""
        return self.request.identity(self.sources)

    def plan(self) -> RowsPlan:
        """The mechanism that makes the rows."""
        return RowsPlan(self.request, self.rows, self.engine)

    def recalled(self, payload: bytes, events: tuple[Event, ...]) -> RowsPlan:
        """By what is stored beside the rows."""
        return RowsPlan(self.request.recalled(plan_of(payload), events), self.rows, self.engine)

    def formers(self, plan: Plan[Synthesis]) -> Iterator[tuple[str, Plan[Synthesis]]]:
        """As earlier versions named it."""
        yield self.request.former_identity(self.sources), plan


@dataclass(frozen=True)
class RowsPlan(Plan[Synthesis]):
    """How synthetic rows are made, and how many are drawn."""

    request: Request
    rows: int | None
    engine: Engine

    @property
    def text(self) -> str:
        """What they are of, and good for."""
        return self.request.shown_text

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
        """What will be run, or was."""
        return self.request.events

    @property
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """What that costs alone."""
        return self.request.loss

    @property
    def errors(self) -> tuple[ExpectedError, ...]:
        """How far counts are off as they are measured."""
        return self.request.errors

    @property
    def statement(self) -> str:
        """What the engine runs."""
        return self.request.statement

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the rows."""
        return self.request.domain.names

    def check(self) -> None:
        """Have the engine prepare the statement."""
        self.engine.prepare(self.request.statement)

    def run(self, entropy: Entropy, progress: Callable[[float], None], /) -> bytes:
        """The weights of all cells."""
        return released(self.request, self.engine, entropy, progress)

    def read(self, payload: bytes) -> Synthesis:
        """Rows drawn from the weights."""
        return assembled(self.request, payload, self.rows)

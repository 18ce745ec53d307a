"""Questions in SQL, as a kind of question: `session.ask(SQL("SELECT COUNT(*) FROM visits", epsilon=1))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from discreet.accounting.budgets import loss_of
from discreet.charging.question import Bound, Context, Plan, Question, checked_epsilon, checked_rho
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable, positive
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ZCDP, Budget
from discreet.engines.engine import Engine
from discreet.noise.entropy import Entropy
from discreet.session.sql_question import Asked, Parsed, Reading
from discreet.sql.answers.answer import Answer, pack, plan_of
from discreet.sql.measuring.run import Run
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Query
from discreet.sql.statement.results import Groups

__all__ = ["SQL", "BoundSQL", "SQLPlan", "exact_groups"]


@dataclass(frozen=True)
class SQL(Question[Answer]):
    """A question in SQL, for ε, for ρ under a budget in ρ, or for an error."""

    text: str
    epsilon: Exactable | None = None
    error: Exactable | None = None
    """Instead of ε, the mean absolute error that no count or sum shall exceed."""
    rho: Exactable | None = None
    """Instead of ε, under a `ZCDP` budget, the ρ that it may cost: Gaussian noise throughout."""

    def bind(self, context: Context) -> BoundSQL:
        """The question, parsed."""
        rho = None if self.rho is None else checked_rho(self.rho, context.budget)
        self._check_one(isinstance(context.budget, ZCDP))
        query = parse(self.text, context.catalog)
        given = None if self.epsilon is None else checked_epsilon(self.epsilon)
        wanted = None if self.error is None else positive("error", self.error)
        sources, terms = context.sources(query.aggregate.input), (context.unit.changes, context.budget)
        in_doubles = partial(parse, self.text, context.catalog, doubles=True)
        parsed = Parsed(query, sources, given, wanted, *terms, context.engine.dialect, rho, in_doubles)
        return BoundSQL(self.text, parsed, context.engine)

    def _check_one(self, in_rho: bool) -> None:
        """That it is asked for one thing; `in_rho`, where the budget is, there is one more to ask for."""
        asked = {"epsilon": self.epsilon, "error": self.error} | ({"rho": self.rho} if in_rho else {})
        if sum(value is not None for value in asked.values()) != 1:
            cost = "epsilon=0.5 or rho=0.01" if in_rho else "epsilon=0.5"
            remedy = f"give {cost}, what it may cost, or error=20, how far counts and sums may be off"
            bound = f"exactly one of the {'three' if in_rho else 'two'}"
            raise InvalidArgument(", ".join(asked), tuple(asked.values()), bound, remedy)


@dataclass(frozen=True)
class BoundSQL(Bound[Answer]):
    """A question in SQL about the tables of a session."""

    text: str
    parsed: Parsed
    engine: Engine

    @property
    def identity(self) -> str:
        """What is measured, declared and given."""
        return self.parsed.identity

    def plan(self) -> SQLPlan:
        """The statement and its noise."""
        asked = self.parsed.planned().prepared()
        return SQLPlan(self, asked.query, asked.reading, asked.measurement.events, asked)

    def recalled(self, payload: bytes, events: tuple[Event, ...]) -> SQLPlan:
        """By what is stored beside the sums."""
        return SQLPlan(self, self.parsed.query, Reading.of(self.parsed.query, plan_of(payload)), events)

    def formers(self, plan: Plan[Answer]) -> Iterator[tuple[str, SQLPlan]]:
        """As earlier versions planned it."""
        assert isinstance(plan, SQLPlan)
        for asked in self.parsed.formerly(plan.decided):
            yield asked.former_identity, SQLPlan(self, asked.query, asked.reading, asked.measurement.events, asked)


@dataclass(frozen=True)
class SQLPlan(Plan[Answer]):
    """What a statement measures, and how the noisy sums are read."""

    bound: BoundSQL
    query: Query
    reading: Reading
    charged: tuple[Event, ...]
    asked: Asked | None = None
    """Everything that is decided; None where only what is stored is read."""

    @property
    def decided(self) -> Asked:
        """Everything that is decided, where something is to be run."""
        assert self.asked is not None
        return self.asked

    @property
    def text(self) -> str:
        """As it was written."""
        return self.bound.text

    @property
    def words(self) -> str:
        """The plan in words."""
        return self.reading.words

    @property
    def epsilon(self) -> Fraction:
        """What it is asked for, or what its error takes."""
        return self.reading.epsilon

    @property
    def events(self) -> tuple[Event, ...]:
        """The noise."""
        return self.charged

    @property
    def loss(self) -> Budget:
        """What that costs alone."""
        return loss_of(self.charged, self.bound.parsed.budget)

    @property
    def errors(self) -> tuple[ExpectedError, ...]:
        """How far each column is likely off."""
        return () if self.asked is None else self.asked.errors

    @property
    def statement(self) -> str:
        """What the engine runs."""
        return "" if self.asked is None else self.asked.statement

    def check(self) -> None:
        """Have the engine prepare what it may be given to run."""
        self.decided.check(self.bound.engine.prepare)

    def run(self, entropy: Entropy, progress: Callable[[float], None], /) -> bytes:
        """The noisy sums, packed."""
        asked = self.decided
        noisy = Run(asked.measurement, exact_groups(asked, self.bound.engine), asked.listed, entropy).release()
        return pack(noisy, entropy.private, asked.record)

    def read(self, payload: bytes) -> Answer:
        """The answer that noisy sums give."""
        return self.reading.answer(self.query, payload, self.loss)


def exact_groups(asked: Asked, engine: Engine) -> Groups:
    """The exact totals, before any noise. This is what reads rows."""
    groups = _groups(asked, engine, asked.statement)
    # How many rows a group may have before all are read again does not depend on the question.
    return groups if groups.exact or asked.is_wide else _groups(asked, engine, asked.written(wide=True))


def _groups(asked: Asked, engine: Engine, statement: str) -> Groups:
    measurement = asked.measurement
    keys, owned = len(asked.query.aggregate.keys), measurement.weights is not None
    rows, ranked = engine.run(statement), len(asked.ranked)
    return Groups.read(rows, keys, measurement.statistics, owned, ranked, asked.valued)

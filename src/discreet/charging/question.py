"""What a question is, whatever its kind: something that a session can price, charge, run once, store and certify.

A kind of question is one file with three classes, a subclass of each of these:

- `Question` is what the analyst writes: plain arguments, with no session in sight. `bind` gives it one.
- `Bound` is the question within a session. Its `identity` is what was asked and declared, one text for one question;
  under it the outcome is stored and found again, before anything is planned. A kind whose every asking is to be
  charged, as that of a function which may draw by itself, puts a drawn number into its identity.
- `Plan` has everything decided before data is touched: the events, so the loss, and what will be run. `run` is called
  once, after the charge, and its bytes are stored; `read` makes of stored bytes what the analyst sees.

The guarantee rests on `run` alone: given its events, its bytes must be a release with no larger loss than theirs.
Everything else comes from declared facts. `Session.price` and `Session.ask` do the rest, for all kinds alike.

A question may live long, as a stream does: its plan is a `LongPlan`. It is charged once, when it is asked, for a number
of further releases. Each of these is asked as `Step(question, number)`, in order, costs nothing more, and is stored
under an entry that names the one that paid. The guarantee rests then on `run` and all calls of `run_step` together:
given the events, the sequence of all that is shown must be a release with no larger loss than theirs. What one step
must know of the ones before is in what they stored, beside what `read_step` shows; the books are the steward's, as the
data is (`charging/steps.py`). Whoever asks calls the steps, when they like. A step that failed is the last one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable, positive
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.units import Unit
from discreet.engines.engine import Engine
from discreet.noise.entropy import Entropy
from discreet.sql.catalog import Catalog
from discreet.sql.plan import Relation

__all__ = ["Bound", "Context", "LongPlan", "Plan", "Question", "Run", "Shown", "Step", "checked_epsilon", "checked_rho"]

FAINTEST = Fraction(1, 10**6)
"""The smallest ε of a question."""

Run = Callable[[Entropy, Callable[[float], None]], bytes]
"""What touches data: with the randomness to draw from, and a callback for the share that is done."""


class Shown(Protocol):
    """What the analyst sees: a dataclass with rows, which its certificate signs."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The values, row by row."""

    @property
    def certificate(self) -> dict[str, Any]:
        """The signed statement of the guarantee; empty until the session fills it in."""


Result = TypeVar("Result", bound=Shown)


@dataclass(frozen=True)
class Context:
    """What a session lends to its questions."""

    catalog: Catalog
    unit: Unit
    budget: PureDP | ApproxDP | ZCDP
    engine: Engine
    sources: Callable[[Relation], dict[str, str]]
    """Where the tables are that a relation reads, as identities name them."""
    private_files: Callable[[], list[Path]]
    """Where people's rows, the books and the key lie, as far as that is in files."""


class Plan(ABC, Generic[Result]):
    """A question with everything decided before data is touched."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The question as the books and the certificate show it."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The plan in words."""

    @property
    @abstractmethod
    def epsilon(self) -> Fraction:
        """The ε that whoever asks gives, or would give, to be charged this loss; 0 where no ε is given."""

    @property
    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """What will be run, as the accountants know it."""

    @property
    @abstractmethod
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """What the events cost alone."""

    @property
    def errors(self) -> tuple[ExpectedError, ...]:
        """What to expect of each column."""
        return ()

    @property
    def statement(self) -> str:
        """What the engine will be asked to run."""
        return ""

    @property
    def columns(self) -> tuple[str, ...]:
        """What the columns of its result are called, where that is known beforehand."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """What else a quote tells. Asked for by `price` alone: it may take a while."""
        return ()

    def check(self) -> None:
        """Refuse what the engine cannot run, before anything is charged."""

    def ready(self) -> AbstractContextManager[Run]:
        """What runs, with whatever it needs open. It is entered before the charge, so it reads no rows; it is left
        after the run."""
        return nullcontext(self.run)

    @abstractmethod
    def run(self, entropy: Entropy, progress: Callable[[float], None], /) -> bytes:
        """The release, as bytes to be stored. This is what touches data."""

    @abstractmethod
    def read(self, payload: bytes) -> Result:
        """What is shown of stored bytes; it has no certificate yet."""


class LongPlan(Plan[Result]):
    """A question that is charged once and released in steps. `run` and `read` make the first release, which may be
    empty; each later one has a number, from 1."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many steps the events pay for."""

    @abstractmethod
    def run_step(self, number: int, before: bytes, entropy: Entropy, progress: Callable[[float], None], /) -> bytes:
        """The release of a step, as bytes to be stored, and whatever the next one must know beside it. `before` is what
        the step before stored; for the first one, what `run` did."""

    @abstractmethod
    def read_step(self, number: int, payload: bytes) -> Result:
        """What is shown of the stored bytes of a step; it has no certificate yet."""


class Bound(ABC, Generic[Result]):
    """A question within a session; nothing is planned yet."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """One text for one question: what is asked, declared and given, and where the data is; never what a planner
        chose. The same again is free."""

    @property
    def key(self) -> Any:
        """Under what the books have its outcome."""
        return self.identity

    @abstractmethod
    def plan(self) -> Plan[Result]:
        """Everything decided, from declared facts alone."""

    def recalled(self, payload: bytes, events: tuple[Event, ...]) -> Plan[Result]:
        """The plan by which a stored outcome is read: as it was when these events were charged."""
        return self.plan()

    def formers(self, plan: Plan[Result]) -> Iterator[tuple[str, Plan[Result]]]:
        """Identities under which earlier versions stored the same question, each with the plan to read it by."""
        return iter(())


class Question(ABC, Generic[Result]):
    """A question of some kind, as the analyst writes it."""

    @abstractmethod
    def bind(self, context: Context) -> Bound[Result]:
        """The question within a session; refused if it makes no sense there."""


@dataclass(frozen=True)
class Step(Question[Result]):
    """One release of a question that lives long, and was asked before by the same account."""

    question: Question[Result]
    number: int
    """Steps are numbered from 1, and asked in order."""

    def bind(self, context: Context) -> Bound[Result]:
        """Which question it is a step of; the session finds what was stored of that."""
        return self.question.bind(context)


def checked_epsilon(epsilon: Exactable | None) -> Fraction:
    """The ε that a question may have."""
    given = positive("epsilon", epsilon)
    if given < FAINTEST:
        raise InvalidArgument("epsilon", epsilon, f"{float(FAINTEST):g} or more", "noise would be all there is")
    return given


def checked_rho(rho: Exactable, budget: PureDP | ApproxDP | ZCDP) -> Fraction:
    """The ρ that a question may have, which only budgets in ρ know."""
    if not isinstance(budget, ZCDP):
        raise InvalidArgument("rho", rho, "left out, for the budget is not in ρ", "give epsilon=…")
    return positive("rho", rho)

"""Asking from the command line: a session is opened from the settings, asked once, and closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from discreet.app.config.settings import Settings
from discreet.app.output.outcome import MOST_MORE, Outcome, Priced
from discreet.app.output.progress import waiting
from discreet.core.exact import probability
from discreet.core.losses import ZCDP
from discreet.ledger import Ledger, Standing
from discreet.ledger.encoding import events_from_plain
from discreet.session.connect import connect
from discreet.session.session import Session
from discreet.sql.answers.answer import Answer

__all__ = ["Asking", "Bill", "ask", "billed", "price"]


@dataclass(frozen=True)
class Asking:
    """A question, for an ε, a ρ or an error, and whose it is; numbers are texts."""

    text: str
    epsilon: str | None
    error: str | None
    study: str | None = None
    analyst: str | None = None
    rho: str | None = None

    @property
    def price(self) -> dict[str, Any]:
        """What it is asked for, as sessions take it."""
        return {"epsilon": self.epsilon, "error": self.error, "rho": self.rho}

    def arguments(self, settings: Settings) -> dict[str, Any]:
        """What `connect` is called with."""
        return settings.arguments(study=self.study, analyst=self.analyst)


class Certified(Protocol):
    """What was bought, with its certificate."""

    @property
    def certificate(self) -> dict[str, Any]: ...


What = TypeVar("What", bound=Certified)


@dataclass(frozen=True)
class Bill(Generic[What]):
    """What was bought, whether it was free, how the account stands that will end first, and how many more such
    questions there is room for, at most `MOST_MORE`."""

    what: What
    free: bool
    standing: Standing
    more: int


def ask(settings: Settings, asking: Asking, level: str) -> Outcome:
    """The answer; charged, unless the same question was answered before."""
    probability("level", level)

    def answered(session: Session) -> Answer:
        with waiting(None):
            return session.sql(asking.text, **asking.price)

    bill = billed(settings, asking.arguments(settings), answered)
    return Outcome(bill.what, level, bill.free, bill.standing, bill.more)


def billed(settings: Settings, arguments: dict[str, Any], ask: Callable[[Session], What]) -> Bill[What]:
    """What is asked of a session, and what that did to the books."""
    with connect(**arguments) as session, Ledger.at(settings.books, create=False) as books:
        last = books.head().sequence
        what = ask(session)
        entry = what.certificate["ledger"]["entry"]
        content = next(books.entries(since=entry - 1)).content
        more = books.room_for(session.account, events_from_plain(content["events"]), MOST_MORE)
        tight = _tightest(books.standing(session.account))
    return Bill(what, entry <= last, tight, more)


def price(settings: Settings, asking: Asking) -> Priced:
    """What the question would cost, from declared facts alone."""
    with connect(**asking.arguments(settings)) as session:
        nominal = isinstance(settings.budget, ZCDP) and asking.epsilon is None
        return Priced(session.price(asking.text, **asking.price), nominal)


def _tightest(standings: tuple[Standing, ...]) -> Standing:
    """The account whose budget will be the first to end."""
    return max((standing for standing in standings if standing.budget is not None), key=lambda one: one.used)

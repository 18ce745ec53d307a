"""Asking from the command line: a session is opened from the settings, asked once, and closed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.app.numerals import loss_record
from discreet.app.outcome import Outcome
from discreet.app.progress import waiting
from discreet.app.settings import Settings
from discreet.connection import connect
from discreet.core.exact import probability
from discreet.core.losses import Loss
from discreet.ledger import Ledger
from discreet.session import Quote

__all__ = ["Priced", "ask", "price"]


@dataclass(frozen=True)
class Priced:
    """A quote, and what the budget has left to pay it with."""

    quote: Quote
    remaining: Loss

    @property
    def words(self) -> list[str]:
        """How it would be answered, and how good the answer would be."""
        return [line.strip() for line in str(self.quote).splitlines()[1:]]

    def as_record(self) -> dict[str, Any]:
        """The price for JSON."""
        return {
            "loss": loss_record(self.quote.loss),
            "plan": self.words,
            "remaining": loss_record(self.remaining, down=True),
        }


def ask(
    settings: Settings, text: str, epsilon: str, level: str, study: str | None = None, analyst: str | None = None
) -> Outcome:
    """The answer; charged, unless the same question was answered before."""
    probability("level", level)
    arguments = settings.arguments(study=study, analyst=analyst)
    with (
        connect(**arguments) as session,
        Ledger.at(settings.books, create=False) as books,
    ):
        last, before = books.head().sequence, _used(books)
        with waiting(getattr(session._engine, "progress", None)):
            answer = session.sql(text, epsilon=epsilon)
        entry = answer.certificate["ledger"]["entry"]
        dataset = next(books.entries(since=entry - 1)).content["account"][0]
        account = (dataset, *(part for part in (arguments.get("study"), arguments.get("analyst")) if part))
        used = max((s for s in books.standing(account) if s.budget is not None), key=lambda s: s.used)
        parts = before.get(used.account, Fraction(0)), used.used
        return Outcome(answer, level, entry <= last, session.spent, session.remaining, *parts)


def price(settings: Settings, text: str, epsilon: str, study: str | None = None, analyst: str | None = None) -> Priced:
    """What the question would cost, from declared facts alone."""
    with connect(**settings.arguments(study=study, analyst=analyst)) as session:
        return Priced(session.price(text, epsilon=epsilon), session.remaining)


def _used(books: Ledger) -> dict[tuple[str, ...], Fraction]:
    """The part of each account's budget that is used up."""
    return {path: books.standing(path)[-1].used for path in books.accounts()}

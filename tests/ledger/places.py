"""Where books are kept in the tests, and what the tests keep in them."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from fractions import Fraction as F
from pathlib import Path
from typing import Protocol

from discreet.core.events import Pure
from discreet.core.losses import Loss, PureDP
from discreet.core.units import User
from discreet.ledger import Ledger
from discreet.ledger.sqlite import SQLiteStore

UNIT = User("patient")
HEALTH, STUDY, ANN, BOB = (
    ("health",),
    ("health", "flu study"),
    ("health", "flu study", "ann"),
    ("health", "flu study", "bob"),
)


class Clock:
    """One minute passes at each look."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


class Place(Protocol):
    """One set of books."""

    def open(self) -> Ledger:
        """A new handle on it, as another process would have."""


class SQLitePlace:
    """Books in a file."""

    def __init__(self, folder: Path, handles: ExitStack) -> None:
        self.path = folder / "books.db"
        self._handles = handles
        self._clock = Clock()

    def open(self) -> Ledger:
        return self._handles.enter_context(Ledger(SQLiteStore(self.path), clock=self._clock))


def opened(ledger: Ledger, budget: Loss | None = None) -> Ledger:
    """The ledger with a data set of ε = 1, a study of ε = 1/2, and two analysts, one of them with ε = 1/4."""
    ledger.open(HEALTH, budget=budget or PureDP(1), unit=UNIT, source="sha256:1f")
    ledger.open(STUDY, budget=PureDP("0.5"))
    ledger.open(ANN, budget=PureDP("0.25"))
    ledger.open(BOB)
    return ledger


def pure(numerator: int, denominator: int = 1) -> list[Pure]:
    return [Pure(F(numerator, denominator))]

"""Where books are kept in the tests, and what the tests keep in them."""

import sqlite3
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction as F
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import psycopg
from tests.ledger.servers import Server, running

from discreet.core.events import Pure
from discreet.core.losses import Loss, PureDP
from discreet.core.units import User
from discreet.ledger import Ledger
from discreet.ledger.stores.postgres.store import PostgresStore
from discreet.ledger.stores.sqlite.store import SQLiteStore
from discreet.ledger.stores.store import Store

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

    def store(self, patience: float = 30.0) -> Store:
        """A new store on it, which the caller closes."""

    def open(self) -> Ledger:
        """A new handle on it, as another process would have."""

    def execute(self, *statements: str) -> None:
        """Changes the tables behind the ledger's back, with all the rights that there are."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Reads the tables behind the ledger's back."""


class SQLitePlace:
    """Books in a file."""

    def __init__(self, folder: Path, handles: ExitStack, name: str = "books.db") -> None:
        self.path = folder / name
        self._handles = handles
        self._clock = Clock()

    def store(self, patience: float = 30.0) -> SQLiteStore:
        return SQLiteStore(self.path, patience=patience)

    def open(self) -> Ledger:
        return self._handles.enter_context(Ledger(self.store(), clock=self._clock))

    def execute(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            for statement in statements:
                connection.executescript(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(statement).fetchall()


_NUMBERS = count()


class PostgresPlace:
    """Books in a schema of their own on a server that runs as long as the tests."""

    def __init__(self, folder: Path, handles: ExitStack) -> None:
        self.server: Server = running()
        self.schema = f"books_{next(_NUMBERS)}"
        self._handles = handles
        self._clock = Clock()

    def store(self, patience: float = 30.0) -> PostgresStore:
        return PostgresStore(self.server.url(), schema=self.schema, patience=patience)

    def open(self) -> Ledger:
        return self._handles.enter_context(Ledger(self.store(), clock=self._clock))

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of somebody who may do anything."""
        connection = psycopg.connect(self.server.url(), autocommit=True)
        connection.execute(f"SET search_path = {self.schema}".encode())
        return connection

    def execute(self, *statements: str) -> None:
        with closing(self.connect()) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                connection.execute(statement.replace("BLOB", "BYTEA").encode())

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection:
            return connection.execute(statement.encode()).fetchall()


def opened(ledger: Ledger, budget: Loss | None = None) -> Ledger:
    """The ledger with a data set of ε = 1, a study of ε = 1/2, and two analysts, one of them with ε = 1/4."""
    ledger.open(HEALTH, budget=budget or PureDP(1), unit=UNIT, source="sha256:1f")
    ledger.open(STUDY, budget=PureDP("0.5"))
    ledger.open(ANN, budget=PureDP("0.25"))
    ledger.open(BOB, new=True)
    return ledger


def pure(numerator: int, denominator: int = 1) -> list[Pure]:
    return [Pure(F(numerator, denominator))]

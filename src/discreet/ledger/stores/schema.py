"""The tables of the books, version by version: new books are made, and old ones brought up to date, by the same steps.

Books of an older schema are brought up to date by whoever opens them: under the write lock, one step at a time, each a
transaction of its own that changes the tables, writes the number of the new schema, and adds an entry of kind `schema`
to the chain. Whoever dies in between leaves the old schema or the new one. The entries before are not touched: the
tables are an index of the chain, and no step changes what an entry means. Books of a newer schema are refused.

Two cases write no entry: books without entries, and books that were moved elsewhere, whose chain has ended.

A step is never changed once books were made by it, and renames or removes something that the version before it reads
or writes. So a process of the older version that has the books open fails from then on, and cannot go on writing by
rules that no longer hold; later versions look at the number in every transaction.

>>> structure(1)["charges"].columns["request"], "request" in structure(2)["charges"].columns
(('TEXT', False), False)
>>> structure(2)["charges"].keys
('PRIMARY KEY (sequence)', 'UNIQUE (dataset, question)', 'UNIQUE (dataset, run)')
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.records import Entry, Head

__all__ = ["STEPS", "VERSION", "Structure", "assert_current", "assert_known", "record", "structure", "tables_in"]

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), sequence INTEGER NOT NULL, hash TEXT NOT NULL)",
        "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL)",
        "CREATE TABLE accounts (path TEXT PRIMARY KEY, budget TEXT, promised TEXT, unit TEXT, state TEXT NOT NULL)",
        "CREATE TABLE sources (source TEXT PRIMARY KEY, dataset TEXT NOT NULL)",
        "CREATE TABLE charges (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, path TEXT NOT NULL,"
        " question TEXT NOT NULL, request TEXT, time TEXT NOT NULL,"
        " UNIQUE (dataset, question), UNIQUE (dataset, request))",
        "CREATE TABLE releases (charge INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, payload BLOB NOT NULL)",
        "INSERT INTO head VALUES (1, 0, '')",
    ),
    (
        # Who may see stored answers, for data sets; NULL as it was before: everybody who may ask about the data set.
        "ALTER TABLE accounts ADD COLUMN answers TEXT",
        "ALTER TABLE charges RENAME COLUMN request TO run",
    ),
)
"""What makes the tables of each schema out of those before it, in SQL that SQLite and PostgreSQL both read; types and
collations are written as SQLite has them."""
VERSION = len(STEPS)
"""The schema that this version of discreet reads and writes."""
_CHECKS = {"head": ("CHECK ((one = 1))",)}


@dataclass(frozen=True)
class Structure:
    """One table: its columns, each with its type and whether it must be filled, its keys, and how it is stored."""

    columns: dict[str, tuple[str, bool]]
    keys: tuple[str, ...]
    checks: tuple[str, ...]
    text: str
    """The statement that would make it, without quotes and with single spaces: versions of SQLite differ in these."""


@lru_cache(maxsize=8)
def structure(version: int = VERSION) -> dict[str, Structure]:
    """The tables of a schema, by name, as its steps make them."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for step in STEPS[:version]:
            for statement in step:
                connection.execute(statement)
        return {
            table: Structure(_columns(connection, table), _keys(connection, table), _CHECKS.get(table, ()), text)
            for table, text in tables_in(connection).items()
        }


def tables_in(connection: sqlite3.Connection) -> dict[str, str]:
    """Tables, and whatever else a file of SQLite holds, with the statements that would make them."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: " ".join(sql.replace('"', "").split()) for name, sql in rows}


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, tuple[str, bool]]:
    rows = connection.execute(f"PRAGMA table_info({table})")
    return {name: (kind, bool(filled or key)) for _, name, kind, filled, _, key in rows}


def _keys(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    [primary] = [name for _, name, *_, key in connection.execute(f"PRAGMA table_info({table})") if key]
    indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
    unique = [
        ", ".join(column for *_, column in connection.execute(f"PRAGMA index_info({index})"))
        for index in sorted(name for _, name, _, origin, _ in indexes if origin == "u")
    ]
    return f"PRIMARY KEY ({primary})", *(f"UNIQUE ({columns})" for columns in unique)


class _Chain(Protocol):
    """As much of the books as a step needs."""

    def last(self) -> Entry | None:
        """The entry that the head names."""

    def append(self, *entries: Entry) -> None:
        """Adds the entries and makes the last one the head."""


def record(books: _Chain, version: int, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Head | None:
    """Adds the entry that the tables are of schema `version` from here on; None for a chain that has not begun, or has
    ended with a move."""
    last = books.last()
    if last is None or last.content.get("kind") in ("move", "settle"):
        return None
    time = clock().astimezone(UTC).isoformat(timespec="microseconds")
    entry = Entry.after(last.head, {"kind": "schema", "from": version - 1, "to": version, "time": time})
    books.append(entry)
    return entry.head


def assert_known(version: int) -> None:
    """That books of this schema can be brought up to date by this version of discreet."""
    if version > VERSION:
        raise LedgerDamaged(
            f"it has schema {version}, and this version of discreet knows schemas up to {VERSION}",
            "use the version of discreet that it is from, or a later one",
        )
    if version < 1:
        raise LedgerDamaged(f"it says that it has schema {version}, which never was", "restore the last good copy")


def assert_current(version: int) -> None:
    """That nobody brought the books to another schema since they were opened."""
    if version != VERSION:
        raise LedgerUnavailable(
            f"its tables were brought to schema {version} by another version of discreet",
            "start this process again with that version",
        )

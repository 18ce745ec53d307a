"""The tables of the books and the statements on them.

The statements are plain SQL with `?` for parameters, and run on anything with SQLite's `execute`.

>>> import sqlite3
>>> connection = sqlite3.connect(":memory:")
>>> for statement in SCHEMA.values():
...     _ = connection.execute(statement)
>>> books = SQLBooks(connection)
>>> books.put_source("sha256:1f", "health")
>>> books.owner("sha256:1f"), books.complaints()
('health', [])
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from discreet.ledger.errors import LedgerDamaged
from discreet.ledger.notation import (
    Path,
    canonical,
    loss_from_plain,
    loss_to_plain,
    unit_from_plain,
    unit_to_plain,
)
from discreet.ledger.records import Account, ChargeRow, Entry, Head, ReleaseRow, Tally

__all__ = ["SCHEMA", "SQLBooks"]

SCHEMA = {
    "head": "CREATE TABLE head"
    " (one INTEGER PRIMARY KEY CHECK (one = 1), sequence INTEGER NOT NULL, hash TEXT NOT NULL)",
    "entries": "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL)",
    "accounts": "CREATE TABLE accounts"
    " (path TEXT PRIMARY KEY, budget TEXT, promised TEXT, unit TEXT, state TEXT NOT NULL)",
    "sources": "CREATE TABLE sources (source TEXT PRIMARY KEY, dataset TEXT NOT NULL)",
    "charges": "CREATE TABLE charges (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, path TEXT NOT NULL,"
    " question TEXT NOT NULL, request TEXT, time TEXT NOT NULL, UNIQUE (dataset, question), UNIQUE (dataset, request))",
    "releases": "CREATE TABLE releases (charge INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, payload BLOB NOT NULL)",
}
_ACCOUNT = "SELECT path, budget, promised, unit, state FROM accounts"
_CHARGE = "SELECT sequence, dataset, path, question, request, time FROM charges"


class SQLBooks:
    """The rows, within one transaction of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.appended: int | None = None
        """The last entry that this transaction added."""

    def head(self) -> Head:
        """The last entry; sequence 0 for empty books."""
        row = self._one("SELECT sequence, hash FROM head")
        if row is None:
            raise LedgerDamaged("its head is missing", "restore the last good copy")
        return Head(*_typed(row, int, str))

    def append(self, entry: Entry) -> None:
        """Adds the entry and makes it the head."""
        self._do("INSERT INTO entries VALUES (?, ?, ?)", entry.sequence, entry.text, entry.hash)
        self._do("UPDATE head SET sequence = ?, hash = ?", entry.sequence, entry.hash)
        self.appended = entry.sequence

    def entry(self, sequence: int) -> Entry | None:
        """One entry."""
        row = self._one("SELECT sequence, text, hash FROM entries WHERE sequence = ?", sequence)
        return None if row is None else Entry(*_typed(row, int, str, str))

    def entries(self, after: int, most: int) -> list[Entry]:
        """Up to `most` entries that follow `after`, in order."""
        rows = self._do(
            "SELECT sequence, text, hash FROM entries WHERE sequence > ? ORDER BY sequence LIMIT ?", after, most
        )
        return [Entry(*_typed(row, int, str, str)) for row in rows]

    def account(self, path: Path) -> Account | None:
        """One account."""
        row = self._one(f"{_ACCOUNT} WHERE path = ?", canonical(path))
        return None if row is None else _account(row)

    def accounts(self) -> list[Account]:
        """All accounts, parents before children."""
        rows = self._do(_ACCOUNT).fetchall()
        return sorted(map(_account, rows), key=lambda account: account.path)

    def put_account(self, account: Account) -> None:
        """Adds or replaces the account."""
        self._do(
            "INSERT INTO accounts (path, budget, promised, unit, state) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE"
            " SET budget = excluded.budget, promised = excluded.promised, state = excluded.state",
            *_terms(account),
            account.state,
        )

    def put_state(self, path: Path, state: str) -> None:
        """Replaces the sums of an account."""
        self._do("UPDATE accounts SET state = ? WHERE path = ?", state, canonical(path))

    def owner(self, source: str) -> str | None:
        """The data set that a source belongs to."""
        row = self._one("SELECT dataset FROM sources WHERE source = ?", source)
        return None if row is None else str(*_typed(row, str))

    def sources(self) -> dict[str, str]:
        """All sources with their data sets."""
        return dict(_typed(row, str, str) for row in self._do("SELECT source, dataset FROM sources"))

    def put_source(self, source: str, dataset: str) -> None:
        """Adds a source."""
        self._do("INSERT INTO sources VALUES (?, ?)", source, dataset)

    def charge_for(self, dataset: str, question: str) -> ChargeRow | None:
        """The charge for this question."""
        row = self._one(f"{_CHARGE} WHERE dataset = ? AND question = ?", dataset, question)
        return None if row is None else _charge(row)

    def charge_with(self, dataset: str, request: str) -> ChargeRow | None:
        """The charge that this request made."""
        row = self._one(f"{_CHARGE} WHERE dataset = ? AND request = ?", dataset, request)
        return None if row is None else _charge(row)

    def charges(self) -> Iterator[ChargeRow]:
        """All charges, in order."""
        return map(_charge, self._do(f"{_CHARGE} ORDER BY sequence"))

    def put_charge(self, row: ChargeRow) -> None:
        """Adds a charge."""
        self._do(
            "INSERT INTO charges (sequence, dataset, path, question, request, time) VALUES (?, ?, ?, ?, ?, ?)",
            row.sequence,
            row.path[0],
            canonical(row.path),
            row.question,
            row.request,
            row.time,
        )

    def release(self, charge: int) -> ReleaseRow | None:
        """The release for a charge."""
        row = self._one("SELECT charge, sequence, payload FROM releases WHERE charge = ?", charge)
        return None if row is None else ReleaseRow(*_typed(row, int, int, bytes))

    def releases(self) -> Iterator[ReleaseRow]:
        """All releases, in the order of their charges."""
        rows = self._do("SELECT charge, sequence, payload FROM releases ORDER BY charge")
        return (ReleaseRow(*_typed(row, int, int, bytes)) for row in rows)

    def put_release(self, row: ReleaseRow) -> None:
        """Adds a release."""
        self._do("INSERT INTO releases VALUES (?, ?, ?)", row.charge, row.sequence, row.payload)

    def tallies(self) -> list[Tally]:
        """The charges and releases of each account that has any."""
        rows = self._do(
            "SELECT path, COUNT(*), COUNT(charge), MIN(time), MAX(time) FROM charges"
            " LEFT JOIN releases ON charge = charges.sequence GROUP BY path"
        )
        return [Tally(tuple(json.loads(path)), *rest) for path, *rest in rows]

    def complaints(self) -> list[str]:
        """What is wrong with the structure: damaged pages or indexes, tables or triggers that do not belong."""
        stored = dict(self._do("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
        found = [f"the table {name} is not as it was made" for name, sql in SCHEMA.items() if stored.get(name) != sql]
        found += [f"{name} does not belong here" for name in stored.keys() - SCHEMA.keys()]
        if self._one("SELECT COUNT(*) FROM entries WHERE sequence < 1") != (0,):
            found.append("there are entries before the first")
        integrity = [message for (message,) in self._do("PRAGMA integrity_check(10)")]
        return found + [message for message in integrity if message != "ok"]

    def _do(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def _one(self, statement: str, *values: object) -> Any:
        return self._do(statement, *values).fetchone()


def _account(row: tuple[Any, ...]) -> Account:
    *terms, state = _typed(row, str, str | None, str | None, str | None, str)
    return replace(_opened(*terms), state=state)


@lru_cache(maxsize=1024)
def _opened(path: str, budget: str | None, promised: str | None, unit: str | None) -> Account:
    """The account without its state, which alone changes from charge to charge."""
    try:
        account = Account(
            tuple(json.loads(path)),
            None if budget is None else loss_from_plain(json.loads(budget)),
            None if promised is None else loss_from_plain(json.loads(promised)),
            None if unit is None else unit_from_plain(json.loads(unit)),
            "",
        )
    except (KeyError, TypeError, ValueError) as reason:
        raise LedgerDamaged(f"the account {path!r} cannot be read", "check the ledger") from reason
    if _terms(account) != (path, budget, promised, unit):
        raise LedgerDamaged(f"the account {path!r} is not written as the ledger writes", "check the ledger")
    return account


def _terms(account: Account) -> tuple[str | None, ...]:
    return (
        canonical(account.path),
        None if account.budget is None else canonical(loss_to_plain(account.budget)),
        None if account.promised is None else canonical(loss_to_plain(account.promised)),
        None if account.unit is None else canonical(unit_to_plain(account.unit)),
    )


def _charge(row: tuple[Any, ...]) -> ChargeRow:
    sequence, dataset, path, question, request, time = _typed(row, int, str, str, str, str | None, str)
    try:
        names = tuple(json.loads(path))
    except (TypeError, ValueError):
        names = ()
    if names[:1] != (dataset,) or canonical(names) != path:
        raise LedgerDamaged(f"the charge {sequence} has no account", "check the ledger")
    return ChargeRow(sequence, names, question, request, time)


def _typed(row: tuple[Any, ...], *kinds: Any) -> tuple[Any, ...]:
    """The row, if its values are of these types: SQLite itself lets any column hold anything."""
    if not all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
        raise LedgerDamaged("a row holds values of a wrong type", "check the ledger")
    return row

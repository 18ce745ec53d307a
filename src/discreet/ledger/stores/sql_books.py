"""The statements on the tables of the books, which `stores/schema.py` makes.

The statements are plain SQL with `?` for parameters. A store says how they are run: `_rows` reads, `_put` writes.

>>> import sqlite3
>>> from discreet.ledger.stores.schema import STEPS
>>> from discreet.ledger.stores.sqlite.store import SQLiteBooks
>>> connection = sqlite3.connect(":memory:")
>>> for statement in (statement for step in STEPS for statement in step):
...     _ = connection.execute(statement)
>>> books = SQLiteBooks(connection)
>>> books.put_source("sha256:1f", "health")
>>> books.owner("sha256:1f"), books.complaints()
('health', [])
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from discreet.ledger.encoding import (
    Path,
    canonical,
    loss_from_plain,
    loss_to_plain,
    path_text,
    unit_from_plain,
    unit_to_plain,
)
from discreet.ledger.errors import LedgerDamaged
from discreet.ledger.records import Account, ChargeRow, Entry, Head, ReleaseRow, Tally

__all__ = ["ACCOUNT", "ACCOUNTS", "ASKED", "ENTRY", "HEAD", "LAST", "RELEASE", "REQUESTED", "SQLBooks"]

PAGE_OF_RELEASES = 50

HEAD = "SELECT sequence, hash FROM head"
LAST = (
    "SELECT entries.sequence, text, entries.hash FROM head JOIN entries ON head.sequence = entries.sequence"
    " WHERE one = 1"
)
ENTRY = "SELECT sequence, text, hash FROM entries WHERE sequence = ?"
ACCOUNTS = "SELECT path, budget, promised, unit, answers, state FROM accounts"
ACCOUNT = f"{ACCOUNTS} WHERE path = ?"
CHARGES = "SELECT sequence, dataset, path, question, run, time FROM charges"
ASKED = f"{CHARGES} WHERE dataset = ? AND question = ?"
REQUESTED = f"{CHARGES} WHERE dataset = ? AND run = ?"
RELEASE = "SELECT charge, sequence, payload FROM releases WHERE charge = ?"


class SQLBooks(ABC):
    """The rows, within one transaction of a database."""

    def __init__(self) -> None:
        self.appended: Head | None = None
        """The last entry that this transaction added."""
        self.added: list[int] = []
        """The numbers of all entries that it added."""

    @abstractmethod
    def _rows(self, statement: str, *values: object) -> list[Any]:
        """What the statement reads."""

    @abstractmethod
    def _put(self, statement: str, *values: object) -> None:
        """Runs a statement that writes."""

    @abstractmethod
    def complaints(self) -> list[str]:
        """What the store finds wrong with its own structure."""

    def head(self) -> Head:
        """The last entry; sequence 0 for empty books."""
        row = self._one(HEAD)
        if row is None:
            raise LedgerDamaged("its head is missing", "restore the last good copy")
        return Head(*_typed(row, int, str))

    def append(self, *entries: Entry) -> None:
        """Adds the entries and makes the last one the head."""
        for entry in entries:
            self.added.append(entry.sequence)
            self._put("INSERT INTO entries VALUES (?, ?, ?)", entry.sequence, entry.text, entry.hash)
        head = entries[-1].head
        self._put("UPDATE head SET sequence = ?, hash = ? WHERE one = 1", head.sequence, head.hash)
        self.appended = head

    def last(self) -> Entry | None:
        """The entry that the head names."""
        return _entry(self._one(LAST))

    def entry(self, sequence: int) -> Entry | None:
        """One entry."""
        return _entry(self._one(ENTRY, sequence))

    def entries(self, after: int, most: int) -> list[Entry]:
        """Up to `most` entries that follow `after`, in order."""
        rows = self._rows(
            "SELECT sequence, text, hash FROM entries WHERE sequence > ? ORDER BY sequence LIMIT ?", after, most
        )
        return [Entry(*_typed(row, int, str, str)) for row in rows]

    def account(self, path: Path) -> Account | None:
        """One account."""
        row = self._one(ACCOUNT, path_text(path))
        return None if row is None else _account(row)

    def accounts(self) -> list[Account]:
        """All accounts, parents before children."""
        return sorted(map(_account, self._rows(ACCOUNTS)), key=lambda account: account.path)

    def put_account(self, account: Account) -> None:
        """Adds or replaces the account."""
        self._put(
            "INSERT INTO accounts (path, budget, promised, unit, answers, state) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE SET budget = excluded.budget, promised = excluded.promised,"
            " answers = excluded.answers, state = excluded.state",
            *_terms(account),
            account.state,
        )

    def put_states(self, states: Mapping[Path, str]) -> None:
        """Replaces the sums of accounts."""
        pairs = [(path_text(path), state) for path, state in states.items()]
        cases, marks = " ".join(["WHEN ? THEN ?"] * len(pairs)), ", ".join("?" * len(pairs))
        values = [value for pair in pairs for value in pair] + [path for path, _ in pairs]
        self._put(f"UPDATE accounts SET state = CASE path {cases} END WHERE path IN ({marks})", *values)

    def owner(self, source: str) -> str | None:
        """The data set that a source belongs to."""
        row = self._one("SELECT dataset FROM sources WHERE source = ?", source)
        return None if row is None else str(*_typed(row, str))

    def sources(self) -> dict[str, str]:
        """All sources with their data sets."""
        return dict(_typed(row, str, str) for row in self._rows("SELECT source, dataset FROM sources"))

    def put_source(self, source: str, dataset: str) -> None:
        """Adds a source."""
        self._put("INSERT INTO sources VALUES (?, ?)", source, dataset)

    def charge_for(self, dataset: str, question: str) -> ChargeRow | None:
        """The charge for this question."""
        row = self._one(ASKED, dataset, question)
        return None if row is None else _charge(row)

    def charge_with(self, dataset: str, request: str) -> ChargeRow | None:
        """The charge that this request made."""
        row = self._one(REQUESTED, dataset, request)
        return None if row is None else _charge(row)

    def charges(self) -> Iterator[ChargeRow]:
        """All charges, in order."""
        return map(_charge, self._rows(f"{CHARGES} ORDER BY sequence"))

    def put_charge(self, row: ChargeRow) -> None:
        """Adds a charge."""
        self._put(
            "INSERT INTO charges (sequence, dataset, path, question, run, time) VALUES (?, ?, ?, ?, ?, ?)",
            row.sequence,
            row.path[0],
            path_text(row.path),
            row.question,
            row.request,
            row.time,
        )

    def release(self, charge: int) -> ReleaseRow | None:
        """The release for a charge."""
        row = self._one(RELEASE, charge)
        return None if row is None else ReleaseRow(*_typed(row, int, int, bytes))

    def releases(self) -> Iterator[ReleaseRow]:
        """All releases, in the order of their charges."""
        after, page = 0, "SELECT charge, sequence, payload FROM releases WHERE charge > ? ORDER BY charge LIMIT ?"
        while rows := self._rows(page, after, PAGE_OF_RELEASES):
            for row in rows:
                release = ReleaseRow(*_typed(row, int, int, bytes))
                yield release
            after = release.charge

    def put_release(self, row: ReleaseRow) -> None:
        """Adds a release."""
        self._put("INSERT INTO releases VALUES (?, ?, ?)", row.charge, row.sequence, row.payload)

    def tallies(self) -> list[Tally]:
        """The charges and releases of each account that has any."""
        rows = self._rows(
            "SELECT path, COUNT(*), COUNT(charge), MIN(time), MAX(time) FROM charges"
            " LEFT JOIN releases ON charge = charges.sequence GROUP BY path"
        )
        return [Tally(tuple(json.loads(path)), *rest) for path, *rest in rows]

    def _misplaced(self) -> list[str]:
        """Rows where nothing reads them."""
        places = {"entries": "sequence", "releases": "charge"}
        return [
            f"there are {table} before the first"
            for table, number in places.items()
            if self._one(f"SELECT COUNT(*) FROM {table} WHERE {number} < 1") != (0,)
        ]

    def _one(self, statement: str, *values: object) -> Any:
        rows = self._rows(statement, *values)
        return rows[0] if rows else None


def _entry(row: Any) -> Entry | None:
    return None if row is None else Entry(*_typed(row, int, str, str))


def _account(row: tuple[Any, ...]) -> Account:
    *terms, state = _typed(row, str, str | None, str | None, str | None, str | None, str)
    return replace(_opened(*terms), state=state)


@lru_cache(maxsize=1024)
def _opened(path: str, budget: str | None, promised: str | None, unit: str | None, answers: str | None) -> Account:
    """The account without its state, which alone changes from charge to charge."""
    try:
        account = Account(
            tuple(json.loads(path)),
            None if budget is None else loss_from_plain(json.loads(budget)),
            None if promised is None else loss_from_plain(json.loads(promised)),
            None if unit is None else unit_from_plain(json.loads(unit)),
            "",
            answers,
        )
    except (KeyError, TypeError, ValueError) as reason:
        raise LedgerDamaged(f"the account {path!r} cannot be read", "check the ledger") from reason
    if _terms(account) != (path, budget, promised, unit, answers):
        raise LedgerDamaged(f"the account {path!r} is not written as the ledger writes", "check the ledger")
    return account


def _terms(account: Account) -> tuple[str | None, ...]:
    return (
        path_text(account.path),
        None if account.budget is None else canonical(loss_to_plain(account.budget)),
        None if account.promised is None else canonical(loss_to_plain(account.promised)),
        None if account.unit is None else canonical(unit_to_plain(account.unit)),
        account.answers,
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

"""Books in one SQLite file, shared by any number of threads and processes of one machine.

The file is in write-ahead mode with `synchronous=FULL`: a commit returns when the disk has it. Beside the file lie
SQLite's own `-wal` and `-shm`, and an empty `-lock` and `-runs`; all of them belong together.

Writers take turns at `-lock`, an empty database whose exclusive lock is held from before a transaction until after
the checkpoint that may follow. So a checkpoint never runs beside a commit. SQLite before 3.51.3 could, in a
narrow race between the two, forget a committed transaction (its "WAL-reset bug"), and a ledger must not. The lock goes
when its holder dies, however it dies.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     store = SQLiteStore(f"{folder}/books.db")
...     with store.reading() as books:
...         print(books.head())
...     store.close()
Head(sequence=0, hash='')
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from discreet.ledger.errors import LedgerDamaged, LedgerMissing, LedgerUnavailable
from discreet.ledger.stores.connection_pool import Connections, busy
from discreet.ledger.stores.runs import FileRuns
from discreet.ledger.stores.schema import (
    STEPS,
    VERSION,
    assert_current,
    assert_known,
    record,
    structure,
    tables_in,
)
from discreet.ledger.stores.sql_books import SQLBooks
from discreet.ledger.stores.sqlite.write_lock import Turnstile
from discreet.ledger.stores.store import NOTHING, Look

__all__ = ["BESIDE", "SQLiteBooks", "SQLiteStore"]

APPLICATION = 0x64695363
"""Marks a file as a ledger, in SQLite's header."""
BESIDE = ("-wal", "-shm", "-journal", "-lock", "-runs")
"""How the names of files end that lie beside the books and belong to them."""
ENTRIES_BETWEEN_CHECKPOINTS = 200
"""Whoever writes an entry with such a number moves the log into the file, which keeps the log at a few megabytes."""


class SQLiteBooks(SQLBooks):
    """The rows, within one transaction of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection

    def complaints(self) -> list[str]:
        """What is wrong with the structure: damaged pages or indexes, tables or triggers that do not belong."""
        stored, made = tables_in(self._connection), structure()
        found = [f"the table {name} is not as it was made" for name in made if stored.get(name) != made[name].text]
        found += [f"{name} does not belong here" for name in stored.keys() - made.keys()]
        found += self._misplaced()
        integrity = [message for (message,) in self._rows("PRAGMA integrity_check(10)")]
        return found + [message for message in integrity if message != "ok"]

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _put(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)


class SQLiteStore:
    """The books in the file at `path`, made if there is none and `create` is set.

    `patience` is how many seconds a writer waits for its turn before it gives up with LedgerUnavailable.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True, patience: float = 30.0) -> None:
        self.path = os.path.realpath(path)
        self.patience = patience
        self.runs = FileRuns(f"{self.path}-runs")
        self._turnstile = Turnstile(self._lock, patience)
        self._connections = Connections(self._connect, sqlite3.Error, patience, self._turnstile.close)
        _make_file(self.path, create)
        self._identity = self._on_disk()
        with self._translated():
            self._prepare()

    @contextmanager
    def writing(self, look: Look = NOTHING) -> Iterator[SQLiteBooks]:
        """An exclusive transaction; on return it is on the disk."""
        pool = self._connections
        with self._translated(), pool.use(), self._turnstile.turn(), pool.borrowed() as connection:
            connection.execute("BEGIN IMMEDIATE")
            assert_current(_version(connection))
            books = SQLiteBooks(connection)
            yield books
            self._assert_in_place()
            connection.execute("COMMIT")
            if any(number % ENTRIES_BETWEEN_CHECKPOINTS == 0 for number in books.added):
                # What was committed is safe in the log already; a checkpoint that fails is made up for by a later one.
                with suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def reading(self, look: Look = NOTHING) -> Iterator[SQLiteBooks]:
        """A view of one moment."""
        pool = self._connections
        with self._translated(), pool.use(), pool.borrowed() as connection:
            connection.execute("BEGIN")
            assert_current(_version(connection))
            yield SQLiteBooks(connection)
            connection.execute("COMMIT")

    @property
    def address(self) -> str:
        """Where the books are, as people are told."""
        return self.path

    def close(self) -> None:
        """Lets go of the file."""
        self.runs.close()
        self._connections.close()

    def _lock(self) -> sqlite3.Connection:
        lock = f"{self.path}-lock"
        with suppress(OSError):
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return _open(lock, timeout=0)

    def _connect(self) -> sqlite3.Connection:
        connection = _open(self.path, timeout=self.patience)
        try:
            for setting in (
                "synchronous=FULL",
                "fullfsync=ON",
                "checkpoint_fullfsync=ON",
                "wal_autocheckpoint=0",
                "trusted_schema=OFF",
                "cell_size_check=ON",
            ):
                connection.execute(f"PRAGMA {setting}")
            self._assert_in_place()
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        pool = self._connections
        with pool.use(), pool.borrowed() as connection:
            if _is_blank(connection):
                with self._turnstile.turn():
                    if _is_blank(connection):
                        _set_log(connection)
                        _make_tables(connection)
            _assert_ours(connection)
            if _version(connection) < VERSION:
                with self._turnstile.turn():
                    while (version := _version(connection)) < VERSION:
                        _step_up(connection, version + 1)
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                with self._turnstile.turn():
                    _set_log(connection)

    def _on_disk(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)
        except OSError as reason:
            raise LedgerUnavailable(f"{self.path} cannot be reached ({reason.strerror})", "put it back") from None
        if not stat.S_ISREG(status.st_mode):
            raise LedgerUnavailable(f"{self.path} is not a file", "give the path of a file")
        if status.st_nlink > 1:
            raise LedgerDamaged(
                f"{self.path} has a second name (a hard link), and each name would keep a log of its own",
                "remove the other name",
            )
        return status.st_dev, status.st_ino

    def _assert_in_place(self) -> None:
        """That the open file is still the one at the path: what is written elsewhere nobody else would see."""
        if self._on_disk() != self._identity:
            raise LedgerDamaged(f"{self.path} was replaced while it was open", "open it again and check it")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._translation(error) from error

    def _translation(self, error: sqlite3.Error) -> LedgerUnavailable | LedgerDamaged:
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
                return busy(self.patience)
            case sqlite3.SQLITE_FULL:
                return LedgerUnavailable("no space is left for it", "make room and ask again")
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return LedgerUnavailable(f"{self.path} cannot be written to", "ask for the right to write it")
            case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_NOMEM:
                return LedgerUnavailable(f"{self.path} could not be read or written ({error})", "see to the disk")
            case _:
                return LedgerDamaged(f"SQLite reports '{error}' in {self.path}", "restore the last good copy")


def _open(path: str, *, timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(path)}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )


def _make_file(path: str, create: bool) -> None:
    """An empty file that only its owner may read, unless there is one."""
    if os.path.exists(path) and os.path.getsize(path):
        return
    if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
        raise LedgerDamaged(f"{path} is gone or empty, but its log is there", "restore the last good copy")
    if not create:
        raise LedgerMissing(f"there is no ledger at {path}", "give the path of one, or make one")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as reason:
        raise LedgerUnavailable(f"{path} cannot be made ({reason.strerror})", "choose another place") from None
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_blank(connection: sqlite3.Connection) -> bool:
    questions = ("PRAGMA application_id", "PRAGMA user_version", "SELECT COUNT(*) FROM sqlite_master")
    return all(connection.execute(question).fetchone() == (0,) for question in questions)


def _assert_ours(connection: sqlite3.Connection) -> None:
    [application] = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION:
        raise LedgerDamaged("the file is a database of something else", "give the path of a ledger, or of no file")
    assert_known(_version(connection))


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in (statement for step in STEPS for statement in step):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION}")
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def _step_up(connection: sqlite3.Connection, version: int) -> None:
    """Brings the tables to the next schema, all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in STEPS[version - 1]:
        connection.execute(statement)
    record(SQLiteBooks(connection), version)
    connection.execute(f"PRAGMA user_version={version}")
    connection.execute("COMMIT")


def _set_log(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
        raise LedgerUnavailable("its file system cannot share a write-ahead log", "keep it on a local disk")

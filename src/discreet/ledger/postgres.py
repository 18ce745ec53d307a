"""Books in a PostgreSQL database, shared by any number of servers.

A writer locks the one row of `head`, so that writers take turns over all machines, and a commit returns when the server
has it on its disk: a server or a session where `fsync` or `synchronous_commit` is off is refused. Threads of a process
that wait at the same time commit together (`groups.py`). What a transaction reads first is fetched at once, and what it
writes is sent with the commit, so that a charge takes two journeys to the server.

If the connection is lost during a commit, nobody knows whether it happened. The store then connects again, takes the
lock, which the lost transaction holds until it is over, and looks for the last entry it wrote: if it is on the chain
all is well, and otherwise nothing was written and the caller may ask again.

The tables are in a schema of the database. Nothing but the driver is needed: `pip install 'discreet[postgres]'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

import psycopg

from discreet.core.errors import InvalidArgument
from discreet.ledger.connections import Connections
from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.groups import Groups
from discreet.ledger.notation import canonical
from discreet.ledger.postgres_tables import CREATION, MARK, complaints
from discreet.ledger.records import Entry, Head
from discreet.ledger.rows import ACCOUNT, ACCOUNTS, ASKED, ENTRY, HEAD, LAST, RELEASE, REQUESTED, SQLBooks
from discreet.ledger.server import Address, Connection, assert_durable, connect, translation
from discreet.ledger.store import NOTHING, Look

__all__ = ["SCHEMA", "PostgresBooks", "PostgresStore"]

SCHEMA = "discreet_ledger"
"""Where the tables are, unless another schema is named."""
APPLICATION = 0x64695363
"""Who makes a ledger holds this advisory lock."""
MOST_QUEUED = 200
"""Statements that are kept back before they are sent."""

Statement = tuple[str, tuple[object, ...]]
"""With what its parameters stand for."""
_WRITE: Statement = ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", ())
_READ: Statement = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
_LOCK: Statement = (
    "SELECT current_setting('fsync'), current_setting('synchronous_commit') FROM head FOR UPDATE",
    (),
)
_COMMIT: Statement = ("COMMIT", ())


class PostgresBooks(SQLBooks):
    """The rows, within one transaction; what is written is kept back until something else is read, or the end."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._head: Head | None = None
        self._known: dict[Statement, list[Any]] = {}
        self.queue: list[Statement] = []
        self.sent = False
        """Whether something was written that is no longer in the queue."""

    def head(self) -> Head:
        """The last entry; sequence 0 for empty books."""
        self._head = self._head or super().head()
        return self._head

    def append(self, *entries: Entry) -> None:
        """Adds the entries and makes the last one the head."""
        super().append(*entries)
        self._head = self.appended

    def complaints(self) -> list[str]:
        """What is wrong with the structure: tables, columns, constraints or triggers that do not belong."""
        return complaints(self._rows) + self._misplaced()

    def fetch(self, before: Sequence[Statement], look: Look) -> list[list[Any]]:
        """Runs the statements and reads what will be looked at, in one journey; what the statements read."""
        paths = [canonical(look.path[: depth + 1]) for depth in range(len(look.path))]
        foreseen = list(_foreseen(look))
        lineage = [(f"{ACCOUNTS} WHERE path IN ({', '.join('?' * len(paths))})", tuple(paths))] if paths else []
        results = _exchange(self._connection, [*before, *lineage, *foreseen])
        done = len(before) + len(lineage)
        self._known = dict(zip(foreseen, results[done:], strict=True))
        if paths:
            found = {row[0]: [row] for row in results[len(before)]}
            self._known |= {(ACCOUNT, (path,)): found.get(path, []) for path in paths}
        return results[: len(before)]

    def _rows(self, statement: str, *values: object) -> list[Any]:
        known = self._known.get((statement, values))
        return self._flushed((statement, values))[-1] if known is None else known

    def _put(self, statement: str, *values: object) -> None:
        self._known.clear()
        self.queue.append((statement, values))
        if len(self.queue) > MOST_QUEUED:
            self._flushed()

    def _flushed(self, *further: Statement) -> list[list[Any]]:
        self.sent = self.sent or bool(self.queue)
        results = _exchange(self._connection, [*self.queue, *further])
        self.queue.clear()
        return results


def _foreseen(look: Look) -> Iterator[Statement]:
    """The statements that read single rows of what will be looked at."""
    yield HEAD, ()
    yield LAST, ()
    for number in {look.entry, look.charge} - {0}:
        yield ENTRY, (number,)
    if look.question is not None:
        yield ASKED, (look.path[0], look.question)
    if look.request is not None:
        yield REQUESTED, (look.path[0], look.request)
    if look.charge:
        yield RELEASE, (look.charge,)


def _exchange(connection: Connection, statements: Sequence[Statement]) -> list[list[Any]]:
    """Sends the statements together; what each reads, nothing for those that do not.

    The talk goes on from one exchange to the next: ending it sends a word that keeps the server from noticing that
    nothing happens in a transaction any more.
    """
    cursors = [_sent(connection, statement) for statement in statements]
    connection.talk.sync()
    if statements[-1] is _COMMIT and cursors[-1].statusmessage != "COMMIT":
        raise LedgerUnavailable("the server took the transaction back", "ask again")
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _sent(connection: Connection, statement: Statement) -> psycopg.Cursor[tuple[Any, ...]]:
    return connection.cursor(binary=True).execute(_dialect(statement[0]), statement[1])


@lru_cache(maxsize=256)
def _dialect(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


class _Transaction:
    """One transaction for any number of writers in turn, each with books of its own."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        """What ends with the transaction."""
        self.connection: Connection | None = None
        self.queue: list[Statement] = []
        self.appended: Head | None = None
        self.failure: Exception | None = None

    def join(self, look: Look) -> PostgresBooks:
        """The books for a further writer, after all that was written before."""
        if self.failure is not None or self.connection is None:
            raise self.failure or LedgerUnavailable("nothing could be begun", "ask again")
        books = PostgresBooks(self.connection)
        try:
            books.fetch(self.queue, look)
        except Exception as error:
            self.failure = error
            raise
        self.queue.clear()
        return books

    @contextmanager
    def accepting(self, books: PostgresBooks) -> Iterator[None]:
        """Takes over what is written in this block, unless it raises."""
        try:
            yield
        except BaseException:
            if books.sent:
                self.failure = LedgerUnavailable("another writer failed in the same transaction", "ask again")
            raise
        self.queue += books.queue
        self.appended = books.appended or self.appended


class PostgresStore:
    """The books in a database, made if there are none and `create` is set.

    `patience` is how many seconds a writer waits for its turn before it gives up with LedgerUnavailable. One database
    can keep several ledgers in schemas of their own.
    """

    def __init__(self, address: str, *, create: bool = True, patience: float = 30.0, schema: str = SCHEMA) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise InvalidArgument("schema", schema, "of small letters, digits and _", "choose another name")
        self.schema = schema
        self.patience = patience
        self._address = Address.of(address)
        self._groups: Groups[_Transaction] = Groups(self._transaction, patience)
        self._connections: Connections[Connection] = Connections(self._connect, psycopg.Error, patience)
        with self._translated():
            self._prepare(create)

    def __repr__(self) -> str:
        return f"PostgresStore({self._address!r}, schema={self.schema!r})"

    @property
    def address(self) -> str:
        """Where the books are, as people are told: without user and password."""
        return self._told

    @contextmanager
    def writing(self, look: Look = NOTHING) -> Iterator[PostgresBooks]:
        """An exclusive transaction; on return it is on the server's disk."""
        with self._translated(), self._connections.use(), self._groups.turn() as transaction:
            books = self._begun(transaction, look) if transaction.connection is None else transaction.join(look)
            with transaction.accepting(books):
                yield books

    @contextmanager
    def reading(self, look: Look = NOTHING) -> Iterator[PostgresBooks]:
        """A view of one moment."""
        with self._translated(), self._connections.use(), ExitStack() as stack:
            connection, books, _ = self._started(stack, [_READ], look)
            yield books
            _sent(connection, _COMMIT)

    def close(self) -> None:
        """Lets go of the server."""
        self._connections.close()

    def _connect(self) -> Connection:
        return connect(self._address, self.schema, self.patience)

    def _started(
        self, stack: ExitStack, before: Sequence[Statement], look: Look
    ) -> tuple[Connection, PostgresBooks, list[list[Any]]]:
        """Begins a transaction; a connection that was lost while nobody used it is made anew."""
        while True:
            with ExitStack() as attempt:
                connection = attempt.enter_context(self._connections.borrowed())
                attempt.enter_context(connection.talking())
                books = PostgresBooks(connection)
                try:
                    results = books.fetch(before, look)
                except psycopg.Error:
                    if connection.used and connection.closed:
                        self._connections.drop_idle()
                        continue
                    raise
                connection.used = True
                stack.push(attempt.pop_all())
                return connection, books, results

    def _begun(self, transaction: _Transaction, look: Look) -> PostgresBooks:
        """The books for the first writer of a transaction, once it has the lock."""
        transaction.connection, books, [_, locked] = self._started(transaction.stack, [_WRITE, _LOCK], look)
        if not locked:
            raise LedgerDamaged("its head is missing", "restore the last good copy")
        assert_durable(*locked[0])
        return books

    @contextmanager
    def _transaction(self) -> Iterator[_Transaction]:
        with ExitStack() as stack:
            transaction = _Transaction(stack)
            yield transaction
            if transaction.failure is not None:
                raise transaction.failure
            if transaction.connection is not None and transaction.appended is not None:
                self._commit(transaction.connection, transaction.queue, transaction.appended)

    def _commit(self, connection: Connection, queue: Sequence[Statement], appended: Head) -> None:
        try:
            _exchange(connection, [*queue, _COMMIT])
        except psycopg.Error:
            if not connection.closed:
                raise
            self._assert_written(appended)

    def _assert_written(self, appended: Head) -> None:
        """That the transaction which ended with this entry was committed, after the connection was lost in it."""
        try:
            with ExitStack() as stack:
                connection = self._connect()
                stack.callback(connection.close)
                stack.enter_context(connection.talking())
                books = PostgresBooks(connection)
                books.fetch([_WRITE, _LOCK], Look(entry=appended.sequence))
                entry = books.entry(appended.sequence)
        except (psycopg.Error, LedgerUnavailable):
            raise LedgerUnavailable(
                "the connection was lost in the middle of a commit, and whether it is written is not known yet",
                "ask the same again: it is paid for once, whichever it was",
            ) from None
        if entry is None or entry.head != appended:
            raise LedgerUnavailable("the connection was lost before a commit, and nothing was written", "ask again")

    def _prepare(self, create: bool) -> None:
        with self._connections.use(), self._connections.borrowed() as connection:
            info = connection.info
            self._told = f"postgresql://{info.host}:{info.port}/{info.dbname}"
            if self.schema != SCHEMA:
                self._told += f", schema {self.schema}"
            if self._is_ours(connection):
                return
            if not create:
                raise LedgerUnavailable(f"there is no ledger at {self._told}", "give the address of one, or make one")
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (APPLICATION,))
                if not self._is_ours(connection):
                    connection.execute(f'CREATE SCHEMA "{self.schema}"'.encode())
                    connection.execute(f"COMMENT ON SCHEMA \"{self.schema}\" IS '{MARK}'".encode())
                    for statement in CREATION:
                        connection.execute(statement.encode())

    def _is_ours(self, connection: Connection) -> bool:
        """Whether the schema is a ledger of this version, which this role may use; False if there is none."""
        row = connection.execute(
            "SELECT obj_description(oid, 'pg_namespace'), has_schema_privilege(oid, 'USAGE')"
            " FROM pg_namespace WHERE nspname = %s",
            (self.schema,),
        ).fetchone()
        if row is None:
            return False
        mark, usable = row
        if mark != MARK:
            there = f"{mark!r}" if str(mark).startswith("discreet ledger") else "of something else"
            raise LedgerDamaged(
                f"the schema {self.schema} is {there}, and this version of discreet knows {MARK!r}",
                "use another database, or the version of discreet that it is from",
            )
        if not usable:
            raise LedgerUnavailable(
                f"permission was denied for the schema {self.schema}",
                "GRANT the role what docs/ledger.md lists",
            )
        return True

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The driver's errors as ours."""
        try:
            yield
        except psycopg.Error as error:
            raise translation(error, self._address, self.patience) from None

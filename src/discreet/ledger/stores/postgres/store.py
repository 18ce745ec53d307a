"""Books in a PostgreSQL database, shared by any number of servers.

A writer takes an advisory lock, whose waiters the server serves in order, so that writers take turns over all machines;
it goes when its holder dies, however it dies. Threads of a process that wait at the same time commit at once
(`stores/postgres/group_commit.py`). What a transaction reads first is fetched together, and what it writes is sent
with the commit, so that a charge takes two journeys to the server. Servers and sessions where `fsync` or
`synchronous_commit` is off are refused.

**Nobody waits for the disk with the lock in hand.** A writer commits without waiting, which lets the next one in, and
then waits until the server's log is on the disk up to a later point than its own commit: it commits a message of no
content, `_FLUSH`, and commits that are waited for at the same time share one write to the disk. Why that is safe:

* Nothing leaves that could be lost. `writing` and `reading` return only when all that they saw is on the disk, what
  others wrote included: `_durable` is an entry up to which that is known, and who saw a later head flushes first.
* What a crash takes is the end of the chain. The log is one sequence, and a recovery keeps a part of it from its
  beginning. Who writes entry n + 1 has the lock, which was given back after the commit of entry n was in the log; so
  the commits stand in the log in the order of the chain, and what is left of it is a chain, without a hole.
* What is lost, nobody was told: the lost commits are later in the log than every one that somebody waited for.
* A wait that was cut short was no wait. With `synchronous_standby_names` the server waits for its standby, too; a
  cancelled wait ends in success with a warning, and is an error here (`stores/postgres/pipeline.py`): nothing is told,
  and whoever sees these entries later waits anew.

If the connection is lost during a commit, nobody knows whether it happened. The store then connects again, takes the
lock, which the lost transaction holds until it is over, and looks for the last entry it wrote: if it is on the chain
all is well, and otherwise nothing was written and the caller may ask again.

The tables are in a schema of the database. Nothing but the driver is needed: `pip install 'discreet[postgres]'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from discreet.core.errors import InvalidArgument
from discreet.ledger.encoding import above, path_text
from discreet.ledger.errors import CommitUnknown, LedgerDamaged, LedgerMissing, LedgerUnavailable
from discreet.ledger.records import Entry, Head
from discreet.ledger.stores.connection_pool import Connections
from discreet.ledger.stores.postgres.connection import (
    Address,
    Connection,
    assert_durable,
    connect,
    translation,
)
from discreet.ledger.stores.postgres.group_commit import Groups
from discreet.ledger.stores.postgres.pipeline import COMMIT, Statement, exchange
from discreet.ledger.stores.postgres.runs import ServerRuns
from discreet.ledger.stores.postgres.schema import VERSION_THERE, complaints, creation, step, version_of
from discreet.ledger.stores.schema import VERSION, assert_current, record
from discreet.ledger.stores.sql_books import (
    ACCOUNT,
    ACCOUNTS,
    ASKED,
    ENTRY,
    HEAD,
    LAST,
    RELEASE,
    REQUESTED,
    SQLBooks,
)
from discreet.ledger.stores.store import NOTHING, Look

__all__ = ["SCHEMA", "PostgresBooks", "PostgresStore"]

SCHEMA = "discreet_ledger"
"""Where the tables are, unless another schema is named."""
APPLICATION = 0x64695363
"""The first half of the advisory locks; the other half is a schema for its writers, and nothing for its maker."""
MOST_QUEUED = 200
"""Statements that are kept back before they are sent."""

_WRITE: Statement = ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", ())
_READ: Statement = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
_LOCK: Statement = (
    "SELECT current_setting('fsync'), current_setting('synchronous_commit'),"
    " pg_advisory_xact_lock(?, hashtext(current_schema()))",
    (APPLICATION,),
)
_END: Statement = (
    f"SELECT {VERSION_THERE}, head.sequence, head.hash, entries.sequence, text, entries.hash"
    " FROM head LEFT JOIN entries ON head.sequence = entries.sequence WHERE one = 1",
    (),
)
"""The schema, and the head with its entry; `one = 1` tells the planner that it is one row, or it would read all entries
for it."""
_AT_ONCE: Statement = ("SET LOCAL synchronous_commit = off", ())
_FLUSH: Statement = (
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'discreet ledger', '')::text END",
    (),
)
"""Waits for the disk, and for standby servers that the settings name. A standby shows only what is safe already."""


class PostgresBooks(SQLBooks):
    """The rows, within one transaction; what is written is kept back until something else is read, or the end."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._head: Head | None = None
        self._known: dict[Statement, list[Any]] = {}
        self.queue: list[Statement] = []
        self.begun = 0
        """The last entry that was there at the beginning."""
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
        return self.foreign() + self._misplaced()

    def foreign(self) -> list[str]:
        """What the catalogs say of the tables and should not, or should and do not."""
        return complaints(self._rows)

    def fetch(self, before: Sequence[Statement], look: Look) -> list[list[Any]]:
        """Runs the statements and reads what will be looked at, in one journey; what the statements read."""
        paths = [path_text(path) for path in above(look.path)] if look.path else []
        lineage: Statement = (f"{ACCOUNTS} WHERE path IN ({', '.join('?' * len(paths)) or 'NULL'})", tuple(paths))
        foreseen = list(_foreseen(look))
        results = exchange(self._connection, [*before, _END, lineage, *foreseen])
        ends, accounts, *others = results[len(before) :]
        for mark, *_ in ends:
            assert_current(version_of(mark))
        ends = [row[1:] for row in ends]
        self.begun = ends[0][0] if ends else 0
        found = {row[0]: [row] for row in accounts}
        self._known = dict(zip(foreseen, others, strict=True))
        self._known |= {(ACCOUNT, (path,)): found.get(path, []) for path in paths}
        self._known |= {
            (HEAD, ()): [row[:2] for row in ends],
            (LAST, ()): [row[2:] for row in ends if row[2] is not None],
        }
        return results[: len(before)]

    def _rows(self, statement: str, *values: object) -> list[Any]:
        known = self._known.get((statement, values))
        return self._flushed((statement, values))[-1] if known is None else known

    def _put(self, statement: str, *values: object) -> None:
        self._known.clear()
        self.queue.append((statement, values))
        if len(self.queue) > MOST_QUEUED:
            self._flushed()

    def flush(self) -> None:
        """Sends what is kept back."""
        if self.queue:
            self._flushed()

    def _flushed(self, *further: Statement) -> list[list[Any]]:
        self.sent = self.sent or bool(self.queue)
        results = exchange(self._connection, [*self.queue, *further])
        self.queue.clear()
        return results


def _foreseen(look: Look) -> Iterator[Statement]:
    """The statements that read single rows of what will be looked at."""
    for number in {look.entry, look.charge} - {0}:
        yield ENTRY, (number,)
    if look.question is not None:
        yield ASKED, (look.path[0], look.question)
    if look.request is not None:
        yield REQUESTED, (look.path[0], look.request)
    if look.charge:
        yield RELEASE, (look.charge,)


class _Transaction:
    """One transaction for any number of writers in turn, each with books of its own."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        """What ends with the transaction."""
        self.connection: Connection | None = None
        self.queue: list[Statement] = []
        self.begun = 0
        """The last entry that was there at the beginning."""
        self.appended: Head | None = None
        self.failure: Exception | None = None

    def join(self, look: Look) -> PostgresBooks:
        """The books for a further writer, after all that was written before."""
        if self.failure is not None or self.connection is None:
            raise self.failure or LedgerUnavailable("nothing could be begun", "ask again")
        books = PostgresBooks(self.connection)
        try:
            books.fetch(self.queue, look)
        except BaseException as error:
            # After an interrupt nobody knows whether it was sent: nothing more is written in this transaction.
            again = LedgerUnavailable("another writer was interrupted in the same transaction", "ask again")
            self.failure = error if isinstance(error, Exception) else again
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
        self.runs = ServerRuns(self._connect, schema)
        self._groups: Groups[_Transaction] = Groups(self._transaction, patience)
        self._connections: Connections[Connection] = Connections(self._connect, psycopg.Error, patience)
        self._untouched = False
        self._durable = 0
        """All entries up to this one are on the disk."""
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
        self.runs.renew()
        with self._translated(), self._connections.use():
            self._assert_untouched()
        with self._translated(), self._connections.use(), self._groups.turn() as transaction:
            books = self._begun(transaction, look) if transaction.connection is None else transaction.join(look)
            with transaction.accepting(books):
                yield books

    @contextmanager
    def reading(self, look: Look = NOTHING) -> Iterator[PostgresBooks]:
        """A view of one moment."""
        self.runs.renew()
        with self._translated(), self._connections.use(), ExitStack() as stack:
            connection, books, _ = self._started(stack, [_READ], look)
            yield books
            self._assure(connection, books.begun)

    def close(self) -> None:
        """Lets go of the server."""
        self.runs.close()
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
        transaction.connection, books, [_, [locked]] = self._started(transaction.stack, [_WRITE, _LOCK], look)
        assert_durable(*locked[:2])
        transaction.begun = books.begun
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
            elif transaction.connection is not None:
                self._assure(transaction.connection, transaction.begun)

    def _commit(self, connection: Connection, queue: Sequence[Statement], appended: Head) -> None:
        try:
            exchange(connection, [*queue, _AT_ONCE, COMMIT, _FLUSH])
        except psycopg.Error:
            if not connection.closed:
                raise
            self._assert_written(appended)
        self._durable = max(self._durable, appended.sequence)

    def _assure(self, connection: Connection, seen: int) -> None:
        """Ends a transaction that wrote nothing; on return the entries that it saw are on the disk."""
        if seen > self._durable:
            exchange(connection, [("ROLLBACK", ()), _FLUSH])
            self._durable = max(self._durable, seen)

    def _assert_written(self, appended: Head) -> None:
        """That the transaction which ended with this entry was committed, after the connection was lost in it."""
        try:
            with ExitStack() as stack:
                connection = self._connect()
                stack.callback(connection.close)
                books = PostgresBooks(connection)
                books.fetch([_WRITE, _LOCK], Look(entry=appended.sequence))
                entry = books.entry(appended.sequence)
                self._assure(connection, books.begun)
        except (psycopg.Error, LedgerUnavailable):
            raise CommitUnknown from None
        if entry is None or entry.head != appended:
            raise LedgerUnavailable("the connection was lost before a commit, and nothing was written", "ask again")

    def _prepare(self, create: bool) -> None:
        with self._connections.use(), self._connections.borrowed() as connection:
            info = connection.info
            self._told = f"postgresql://{info.host}:{info.port}/{info.dbname}"
            if self.schema != SCHEMA:
                self._told += f", schema {self.schema}"
            version = self._version(connection)
            if version is None and not create:
                raise LedgerMissing(f"there is no ledger at {self._told}", "give the address of one, or make one")
            if version is None:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (APPLICATION,))
                    if self._version(connection) is None:
                        connection.execute("; ".join(creation(self.schema)).encode())
            elif version < VERSION:
                self._bring_up(connection)

    def _bring_up(self, connection: Connection) -> None:
        """Brings the tables up to date, one schema at a time, each in a transaction that has the write lock."""
        while True:
            with connection.transaction():
                exchange(connection, [_LOCK])
                version = (self._version(connection) or VERSION) + 1
                if version > VERSION:
                    return
                try:
                    connection.execute("; ".join(step(self.schema, version)).encode())
                except psycopg.errors.InsufficientPrivilege:
                    reason = f"its tables are of schema {version - 1}, and this role may not bring them to {version}"
                    raise LedgerUnavailable(reason, "open it once as the role that owns them") from None
                books = PostgresBooks(connection)
                record(books, version)
                books.flush()

    def _assert_untouched(self) -> None:
        """That nobody added a trigger, a rule or a policy that makes charges vanish, before the first write."""
        if self._untouched:
            return
        with ExitStack() as stack:
            _, books, _ = self._started(stack, [_READ], NOTHING)
            found = [line for line in books.foreign() if not line.startswith("'index")]
        if found:
            raise LedgerDamaged(f"its tables are not as they were made: {found[0]}", "check it, and take that back")
        self._untouched = True

    def _version(self, connection: Connection) -> int | None:
        """The schema of the tables of the ledger, which this role may use; None if there is no ledger."""
        row = connection.execute(
            "SELECT obj_description(oid, 'pg_namespace'), has_schema_privilege(oid, 'USAGE')"
            " FROM pg_namespace WHERE nspname = %s",
            (self.schema,),
        ).fetchone()
        if row is None:
            return None
        mark, usable = row
        version = version_of(mark)
        if not usable:
            raise LedgerUnavailable(
                f"permission was denied for the schema {self.schema}",
                "GRANT the role what docs/ledger.md lists",
            )
        return version

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The driver's errors as ours."""
        try:
            yield
        except psycopg.Error as error:
            raise translation(error, self._address, self.patience) from None

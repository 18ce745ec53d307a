"""Which runs are alive, for books on a server: an advisory lock for each, of a connection that does nothing else.

The server takes the locks back when the connection ends. If it ends while the process lives, whatever the handle does
next with the books notices it (`renew`), and claims all that was claimed again on a new connection. Until then others
may take a run for dead, pay for it again and so make it void, which `Ledger.complete` notices: it costs, and is safe.

To ask whether a run is alive takes no lock, so nobody who asks is in the way of a process that claims again.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

import psycopg

from discreet.ledger.errors import LedgerUnavailable
from discreet.ledger.stores.postgres.connection import Connection
from discreet.ledger.stores.runs import lock_number

TAKEN = b"SELECT pg_try_advisory_lock(%s)"
GIVEN_BACK = b"SELECT pg_advisory_unlock(%s)"
HELD = (
    b"SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    b" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    b" AND classid::bigint << 32 | objid::bigint = %s)"
)
NOTHING = b"SELECT"


class ServerRuns:
    """Runs of the books in one schema; `connect` opens a connection to their server."""

    def __init__(self, connect: Callable[[], Connection], schema: str) -> None:
        self._connect = connect
        self._schema = schema
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._guard = Lock()
        self._connection: Connection | None = None
        self._claimed: set[str] = set()
        self._held: set[str] = set()
        """Those whose locks this connection has."""

    def claim(self, run: str) -> None:
        """Says that this process runs it, until `release` or the end of the process."""
        with self._shared():
            if not self._asked(TAKEN, run):
                raise LedgerUnavailable("the lock of a new run is taken", "ask again")
            self._claimed.add(run)
            self._held.add(run)

    def release(self, run: str) -> None:
        """Says that it is over; nothing if it was not claimed."""
        with self._shared():
            if run in self._claimed:
                # A connection that is gone has no lock any more. Crossed out last: an interrupt leaves none locked.
                with suppress(psycopg.Error):
                    if self._connection is not None:
                        self._connection.execute(GIVEN_BACK, (self._number(run),))
                self._claimed.discard(run)
                self._held.discard(run)

    def is_alive(self, run: str) -> bool:
        """Whether some process, this one too, has claimed it and lives."""
        with self._shared():
            return run in self._claimed or self._asked(HELD, run)

    def renew(self) -> None:
        """Claims again what was claimed, if the connection was lost meanwhile. As long as nothing is heard from the
        server, it is not asked."""
        with self._shared():
            if self._claimed - self._held or (self._claimed and self._is_disturbed()):
                # Whoever cannot reach the server now is told so by what they wanted of it, or renews later.
                with suppress(psycopg.Error, LedgerUnavailable):
                    self._answered(NOTHING)

    def close(self) -> None:
        """Gives up whatever this handle claimed."""
        with self._shared():
            self._claimed.clear()
            self._drop()

    def _shared(self) -> Lock:
        """The lock of the threads; a child of a fork begins anew, and never uses its parent's connection."""
        if self._process != os.getpid():
            self._begin()
        return self._guard

    def _is_disturbed(self) -> bool:
        """Whether the connection is gone, or the server said something unasked, such as that it ends it."""
        connection = self._connection
        if connection is None or connection.closed:
            return True
        watch = select.poll()
        watch.register(connection.fileno(), select.POLLIN)
        return bool(watch.poll(0))

    def _asked(self, question: bytes, run: str) -> bool:
        return self._answered(question, self._number(run)) == (True,)

    def _answered(self, question: bytes, *values: int) -> tuple[Any, ...] | None:
        """The row that the server gives, on a new connection if the last one is gone; what was claimed is claimed again
        there before anything else is asked."""
        for _ in range(2):
            try:
                cursor = self._opened().execute(question, values)
                return cursor.fetchone()
            except psycopg.Error:
                self._drop()
        raise LedgerUnavailable("the server did not answer which runs are alive", "ask again")

    def _opened(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._drop()
            self._connection = self._connect()
        for run in self._claimed - self._held:
            # Where the server has not noticed yet that the last connection is gone, that one still has the lock.
            if self._connection.execute(TAKEN, (self._number(run),)).fetchone() == (True,):
                self._held.add(run)
        return self._connection

    def _drop(self) -> None:
        """Closes the connection: one that nobody uses any more would hold its locks until it is collected."""
        connection, self._connection = self._connection, None
        self._held.clear()
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _number(self, run: str) -> int:
        return lock_number(f"{self._schema} {run}")

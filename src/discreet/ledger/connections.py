"""The SQLite connections of a process: a pool for its threads, turns for its writers, none across a fork.

SQLite keeps track of its locks in the memory of the process, and a fork copies that memory but not the locks. A child
of a process with an open connection therefore believes in locks that it does not have, also for connections that it
opens itself, and can destroy the file. So every connection is closed before a fork, and opened again when it is needed,
on both sides. If a thread is in the middle of a transaction and does not end it in time, the child may use no ledger.

>>> pool = Connections(lambda: sqlite3.connect(":memory:"), lambda: sqlite3.connect(":memory:"), patience=1)
>>> with pool.use(), pool.turn(), pool.borrowed() as connection:
...     connection.execute("SELECT 1").fetchone()
(1,)
>>> pool.close()
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from weakref import WeakSet

from discreet.ledger.errors import LedgerUnavailable

__all__ = ["Connections"]

_POOLS: WeakSet[Connections] = WeakSet()
_spoilt = False
"""Whether this process was forked while a connection was in use."""


class Connections:
    """The connections to one file, made by `connect`, and to its turnstile, made by `turnstile`."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], turnstile: Callable[[], sqlite3.Connection], patience: float
    ) -> None:
        self._connect = connect
        self._make_turnstile = turnstile
        self._patience = patience
        self._closed = False
        self._begin()
        _POOLS.add(self)

    def _begin(self) -> None:
        self._process = os.getpid()
        self._writer = Lock()
        self._change = Condition()
        self._busy = 0
        self._forking = False
        self._idle: list[sqlite3.Connection] = []
        self._turnstile: sqlite3.Connection | None = None

    @contextmanager
    def use(self) -> Iterator[None]:
        """Within this, and nowhere else, connections may be open in a transaction; a fork waits until it is over."""
        if _spoilt or self._process != os.getpid():
            raise LedgerUnavailable(
                "this process was forked while the ledger was in use",
                "fork at a quiet moment, or spawn a fresh process",
            )
        with self._change:
            self._change.wait_for(lambda: not self._forking)
            if self._closed:
                raise LedgerUnavailable("it was closed", "open it again")
            self._busy += 1
        try:
            yield
        finally:
            with self._change:
                self._busy -= 1
                self._change.notify_all()

    @contextmanager
    def borrowed(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for the caller; one that met an error is not used again."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        sound = False
        try:
            yield connection
            sound = True
        except BaseException as error:
            sound = not isinstance(error, sqlite3.Error)
            raise
        finally:
            if sound and not self._closed:
                connection.rollback()
                self._idle.append(connection)
            else:
                connection.close()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The exclusive right to write, among all threads and processes."""
        deadline = time.monotonic() + self._patience
        if not self._writer.acquire(timeout=self._patience):
            raise busy(self._patience)
        try:
            if self._turnstile is None:
                self._turnstile = self._make_turnstile()
            pause = 0.000_25
            while not self._turnstile.in_transaction:
                try:
                    self._turnstile.execute("BEGIN EXCLUSIVE")
                except sqlite3.OperationalError as refusal:
                    if refusal.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(pause)
                    pause = min(2 * pause, 0.004)
            yield
        finally:
            if self._turnstile is not None:
                self._turnstile.rollback()
            self._writer.release()

    def close(self) -> None:
        """Closes the connections that are not in use now, and the others when they are handed back."""
        with self._change:
            self._closed = True
            self._change.wait_for(lambda: not self._busy, self._patience)
            self._let_go()

    def _let_go(self) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._turnstile is not None and not self._busy:
            self._turnstile.close()
            self._turnstile = None

    def _hush(self) -> bool:
        """Holds off all threads until `_resume`; whether no connection is left open."""
        self._change.acquire()
        self._forking = True
        quiet = self._change.wait_for(lambda: not self._busy, self._patience)
        self._let_go()
        return quiet

    def _resume(self) -> None:
        self._forking = False
        self._change.notify_all()
        self._change.release()


def busy(patience: float) -> LedgerUnavailable:
    """That others do not stop writing."""
    return LedgerUnavailable(f"others have been writing for {patience:g} s", "ask again")


_forking = Lock()
_hushed: list[tuple[Connections, bool]] = []


def _before_fork() -> None:
    _forking.acquire()
    _hushed.extend((pool, pool._hush()) for pool in list(_POOLS))


def _after_fork_in_parent() -> None:
    while _hushed:
        _hushed.pop()[0]._resume()
    _forking.release()


def _after_fork_in_child() -> None:
    global _spoilt
    while _hushed:
        pool, quiet = _hushed.pop()
        _spoilt = _spoilt or not quiet
        pool._begin()
    _forking.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)

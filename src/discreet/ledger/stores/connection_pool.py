"""The connections of a process to its books: a pool for its threads, none across a fork.

A fork copies what a process remembers of a connection, but not what the other side does. SQLite keeps track of its
locks in the memory of the process: a child of a process with an open connection believes in locks that it does not
have, also for connections that it opens itself, and can destroy the file. Two processes that talk to one server through
one socket take each other's answers. So every connection is closed before a fork, and opened again when it is needed,
on both sides. If a thread is in the middle of a transaction and does not end it in time, the child may use no ledger.

>>> import sqlite3
>>> pool = Connections(lambda: sqlite3.connect(":memory:"), sqlite3.Error, patience=1)
>>> with pool.use(), pool.borrowed() as connection:
...     connection.execute("SELECT 1").fetchone()
(1,)
>>> pool.close()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Lock, RLock
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from discreet.ledger.errors import LedgerUnavailable

__all__ = ["Connections", "busy"]

MOST = 16
"""Connections of one process to one set of books; who needs another one waits."""
_POOLS: WeakSet[Connections[Any]] = WeakSet()
_spoilt = False
"""Whether this process was forked while a connection was in use."""


class Connection(Protocol):
    """What a pool does with a connection."""

    def rollback(self) -> None:
        """Ends the transaction, if one is open."""

    def close(self) -> None:
        """Ends the connection."""


C = TypeVar("C", bound=Connection)


class Connections(Generic[C]):
    """The connections to one set of books, made by `connect`, which raise `failure` when they are of no more use.

    `let_go` closes what else must not live across a fork.
    """

    def __init__(
        self,
        connect: Callable[[], C],
        failure: type[Exception],
        patience: float,
        let_go: Callable[[], None] = lambda: None,
    ) -> None:
        self._connect = connect
        self._failure = failure
        self._patience = patience
        self._let_go_more = let_go
        self._closed = False
        self._begin()
        _POOLS.add(self)

    def _begin(self) -> None:
        self._process = os.getpid()
        # Held by `with self._lock`, which no signal can come into; one that comes into `with self._change`, which is
        # written in Python, would leave it locked.
        self._lock = RLock()
        self._change = Condition(self._lock)
        self._busy = 0
        self._lent = 0
        self._forking = False
        self._idle: list[C] = []

    @contextmanager
    def use(self) -> Iterator[None]:
        """Within this, and nowhere else, connections may be open in a transaction; a fork waits until it is over."""
        if _spoilt or self._process != os.getpid():
            raise LedgerUnavailable(
                "this process was forked while the ledger was in use",
                "fork at a quiet moment, or spawn a fresh process",
            )
        counted = False
        try:
            with self._lock:
                self._change.wait_for(lambda: not self._forking)
                if self._closed:
                    raise LedgerUnavailable("it was closed", "open it again")
                self._busy += 1
                counted = True
            yield
        finally:
            if counted:
                with self._lock:
                    self._busy -= 1
                    self._change.notify_all()

    @contextmanager
    def borrowed(self) -> Iterator[C]:
        """A connection of its own for the caller; one that met an error is not used again."""
        counted = False
        try:
            with self._lock:
                if not self._change.wait_for(lambda: self._lent < MOST, self._patience):
                    raise busy(self._patience)
                self._lent += 1
                counted = True
            connection = self._taken()
            sound = False
            try:
                yield connection
                sound = True
            except BaseException as error:
                sound = not isinstance(error, self._failure)
                raise
            finally:
                self._give_back(connection, sound and not self._closed)
        finally:
            if counted:
                with self._lock:
                    self._lent -= 1
                    self._change.notify_all()

    def _taken(self) -> C:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _give_back(self, connection: C, sound: bool) -> None:
        if sound:
            with suppress(self._failure):
                connection.rollback()
                self._idle.append(connection)
                return
        connection.close()

    def drop_idle(self) -> bool:
        """Closes the connections that nobody uses; whether there were any."""
        dropped = False
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()
                dropped = True
        return dropped

    def close(self) -> None:
        """Closes the connections that are not in use now, and the others when they are handed back."""
        with self._lock:
            self._closed = True
            self._change.wait_for(lambda: not self._busy, self._patience)
            self._let_go()

    def _let_go(self) -> None:
        self.drop_idle()
        if not self._busy:
            self._let_go_more()

    def _hush(self) -> bool:
        """Holds off all threads until `_resume`; whether no connection is left open."""
        self._lock.acquire()
        self._forking = True
        quiet = self._change.wait_for(lambda: not self._busy, self._patience)
        self._let_go()
        return quiet

    def _resume(self) -> None:
        self._forking = False
        # Not held, where a signal came before it was.
        with suppress(RuntimeError):
            self._change.notify_all()
            self._lock.release()


def busy(patience: float) -> LedgerUnavailable:
    """That others do not stop writing."""
    return LedgerUnavailable(f"others have been writing for {patience:g} s", "ask again")


_forking = Lock()
_hushed: list[tuple[Connections[Any], bool]] = []


def _before_fork() -> None:
    _forking.acquire()
    for pool in list(_POOLS):
        # Python forks all the same if a signal comes here: whoever was not seen to be quiet is taken for busy.
        _hushed.append((pool, False))
        with suppress(BaseException):
            _hushed[-1] = pool, pool._hush()


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

"""Writers of one process that wait at the same time share one transaction, and so one wait for the disk.

The first writer leads: it begins the transaction, runs its own part, then lets those who wait run theirs one after
another, and commits once for all. Nobody returns before that commit. A part that fails takes back what it did and
nothing else; a commit that fails, fails for all.

>>> class Shared:
...     def __enter__(self): print("begin"); return self
...     def __exit__(self, *_): print("commit")
>>> groups = Groups(Shared, patience=1)
>>> with groups.turn() as shared:
...     print("write")
begin
write
commit
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Lock
from typing import Generic, TypeVar

from discreet.ledger.connections import busy
from discreet.ledger.errors import LedgerUnavailable

__all__ = ["Groups"]

MOST = 64
"""Parts of one transaction."""
LONGEST = 0.05
"""Seconds after which a transaction takes in no more parts: writers of other processes wait for it too."""

T = TypeVar("T")


class _Ticket(Generic[T]):
    """A writer that waits."""

    def __init__(self) -> None:
        self.called = Event()
        self.shared: T | None = None
        """The transaction to write in; None for who is to lead the next one."""
        self.done = Event()
        self.over = Event()
        self.failure: Exception | None = None


class Groups(Generic[T]):
    """The writers of a process; `begin` makes the transactions."""

    def __init__(self, begin: Callable[[], AbstractContextManager[T]], patience: float) -> None:
        self._begin = begin
        self._patience = patience
        self._mutex = Lock()
        self._led = False
        self._waiting: deque[_Ticket[T]] = deque()

    @contextmanager
    def turn(self) -> Iterator[T]:
        """The exclusive right to write, among the threads of this process; when it returns all is committed."""
        ticket = self._admitted()
        if ticket.shared is None:
            yield from self._lead()
            return
        try:
            yield ticket.shared
        finally:
            ticket.done.set()
            ticket.over.wait()
        if ticket.failure is not None:
            raise ticket.failure

    def _admitted(self) -> _Ticket[T]:
        ticket = _Ticket[T]()
        with self._mutex:
            if not self._led:
                self._led = True
                return ticket
            self._waiting.append(ticket)
        if not ticket.called.wait(self._patience):
            with self._mutex:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                    raise busy(self._patience)
            ticket.called.wait()
        return ticket

    def _lead(self) -> Iterator[T]:
        followers: list[_Ticket[T]] = []
        failure: Exception | None = LedgerUnavailable("a writer was interrupted", "ask again")
        try:
            with self._begin() as shared:
                start = time.monotonic()
                yield shared
                while len(followers) < MOST and time.monotonic() - start < LONGEST:
                    ticket = self._next()
                    if ticket is None:
                        break
                    followers.append(ticket)
                    ticket.shared = shared
                    ticket.called.set()
                    ticket.done.wait()
            failure = None
        except Exception as error:
            failure = error
            raise
        finally:
            for ticket in followers:
                ticket.failure = failure
                ticket.over.set()
            with self._mutex:
                self._led = bool(self._waiting)
                if self._waiting:
                    self._waiting.popleft().called.set()

    def _next(self) -> _Ticket[T] | None:
        with self._mutex:
            return self._waiting.popleft() if self._waiting else None

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

from discreet.ledger.errors import LedgerUnavailable
from discreet.ledger.stores.connection_pool import busy

__all__ = ["Groups"]

MOST = 64
"""Parts of one transaction."""
PAUSE = 1.0
"""Seconds between two looks whether a leader is through that did not say so."""
LONGEST = 0.05
"""Seconds after which a transaction takes in no more parts: writers of other processes wait for it too."""

T = TypeVar("T")


class _Ticket(Generic[T]):
    """A writer that waits."""

    def __init__(self) -> None:
        self.called = Event()
        self.shared: T | None = None
        """The transaction to write in; None for who is to lead the next one."""
        self.leader: _Ticket[T] | None = None
        self.done = Event()
        self.over = Event()
        self.failure: Exception | None = None
        self.finished = False
        """Whether its writer is through. Set without a call, so that no signal comes before it."""


class Groups(Generic[T]):
    """The writers of a process; `begin` makes the transactions."""

    def __init__(self, begin: Callable[[], AbstractContextManager[T]], patience: float) -> None:
        self._begin = begin
        self._patience = patience
        self._mutex = Lock()
        self._leader: _Ticket[T] | None = None
        self._waiting: deque[_Ticket[T]] = deque()

    @contextmanager
    def turn(self) -> Iterator[T]:
        """The exclusive right to write, among the threads of this process; when it returns all is committed."""
        ticket = _Ticket[T]()
        interrupted = LedgerUnavailable("a writer was interrupted", "ask again")
        try:
            self._admit(ticket)
            if ticket.shared is None:
                yield from self._lead(ticket, interrupted)
                return
            yield ticket.shared
        finally:
            # Whenever a signal came: who leads waits for this one no longer, and the lead is passed on.
            ticket.finished = True
            ticket.done.set()
            if ticket.shared is not None:
                self._wait_for_commit(ticket, interrupted)
            else:
                self._leave(ticket)
        if ticket.failure is not None:
            raise ticket.failure

    def _admit(self, ticket: _Ticket[T]) -> None:
        """Returns when the ticket is called: to write in the transaction of another one, or to lead."""
        with self._mutex:
            if self._leader is None or self._leader.finished:
                self._leader = ticket
                return
            self._waiting.append(ticket)
        if ticket.called.wait(self._patience):
            return
        with self._mutex:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                raise busy(self._patience)
        # It was taken from those who wait, and is called, unless a signal came in between.
        while not ticket.called.wait(PAUSE):
            with self._mutex:
                if self._leader is ticket:
                    return
                if self._leader is None or self._leader.finished:
                    raise busy(self._patience)

    def _wait_for_commit(self, ticket: _Ticket[T], interrupted: LedgerUnavailable) -> None:
        """Returns when the transaction is over that the ticket wrote in; it counts as `interrupted` if its leader is
        through and did not say how it ended."""
        while not ticket.over.wait(PAUSE):
            if ticket.leader is not None and ticket.leader.finished and not ticket.over.is_set():
                ticket.failure = interrupted
                return

    def _leave(self, ticket: _Ticket[T]) -> None:
        """The ticket waits no longer; if it has the lead, the next one has it."""
        with self._mutex:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if self._leader is ticket:
                self._leader = self._waiting.popleft() if self._waiting else None
                if self._leader is not None:
                    self._leader.called.set()

    def _lead(self, leader: _Ticket[T], interrupted: LedgerUnavailable) -> Iterator[T]:
        followers: list[_Ticket[T]] = []
        failure: Exception | None = interrupted
        try:
            with self._begin() as shared:
                start = time.monotonic()
                yield shared
                while len(followers) < MOST and time.monotonic() - start < LONGEST:
                    ticket = self._next()
                    if ticket is None:
                        break
                    followers.append(ticket)
                    ticket.leader, ticket.shared = leader, shared
                    ticket.called.set()
                    _wait_through_signals(ticket.done)
            failure = None
        except Exception as error:
            failure = error
            raise
        finally:
            for ticket in followers:
                ticket.failure = failure
                ticket.over.set()

    def _next(self) -> _Ticket[T] | None:
        with self._mutex:
            return self._waiting.popleft() if self._waiting else None


def _wait_through_signals(done: Event) -> None:
    """Waits for a writer in this transaction, and raises what came meanwhile only then: it works on the connection of
    this thread, which must not be closed under it."""
    came: BaseException | None = None
    while not done.is_set():
        try:
            done.wait()
        except BaseException as signal:
            came = came or signal
    if came is not None:
        raise came

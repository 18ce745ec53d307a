"""Turns for the writers of a SQLite file, over all threads and processes.

Who has the turn holds the exclusive lock of a database of its own, which goes when its holder dies, however it dies.

>>> turnstile = Turnstile(lambda: sqlite3.connect(":memory:", isolation_level=None), patience=1)
>>> with turnstile.turn():
...     print("alone")
alone
>>> turnstile.close()
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident

from discreet.ledger.stores.connection_pool import busy

__all__ = ["Turnstile"]


class Turnstile:
    """The lock in the database that `connect` opens."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], patience: float) -> None:
        self._connect = connect
        self._patience = patience
        self._writer = RLock()
        self._holder: int | None = None
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The exclusive right to write."""
        deadline, here = time.monotonic() + self._patience, get_ident()
        if self._holder == here:
            raise busy(self._patience)  # asked for inside a turn, as by a handler of signals
        try:
            if not self._writer.acquire(timeout=self._patience):
                raise busy(self._patience)
            self._holder = here
            if self._connection is None:
                self._connection = self._connect()
            pause = 0.000_25
            while not self._connection.in_transaction:
                try:
                    self._connection.execute("BEGIN EXCLUSIVE")
                except sqlite3.OperationalError as refusal:
                    if refusal.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                        raise
                    time.sleep(pause)
                    pause = min(2 * pause, 0.004)
            yield
        finally:
            # A signal may end the rollback; the lock is given back all the same. It may also come between the lock and
            # the line after it: only the lock itself knows whose it is. Nothing is called before it is given back, for
            # signals come after calls.
            try:
                if self._connection is not None and self._holder == here:
                    self._connection.rollback()
            finally:
                if self._holder == here:
                    self._holder = None
                try:  # noqa: SIM105
                    self._writer.release()
                except RuntimeError:
                    pass

    def close(self) -> None:
        """Lets go of the database; the next turn opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

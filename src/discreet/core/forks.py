"""What must not be shared by a process and its forked children.

>>> here = Home()
>>> here.left
False
"""

from __future__ import annotations

import os
from collections.abc import Callable
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import NoReturn

from discreet.core.errors import BudgetExceeded, InvalidArgument

__all__ = ["Home", "HomeLock", "Run", "folder", "forever"]


class Home:
    """The process in which something was made."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def left(self) -> bool:
        """Whether this is another process: a child of a fork."""
        return self._process != os.getpid()


class HomeLock:
    """A lock for the threads of one process. A forked child has a copy of it as it stood, held for ever where a thread
    of the parent held it, for that thread is not there: so the child is refused before it waits."""

    def __init__(self) -> None:
        self._home = Home()
        self._lock = Lock()

    @property
    def left(self) -> bool:
        """Whether this is another process than the lock's own."""
        return self._home.left

    def check(self) -> None:
        """Refuses another process."""
        if self.left:
            raise InvalidArgument("session", "opened before a fork", "opened in the process that asks", "connect again")

    def locked(self) -> bool:
        """Whether a thread of this process holds it."""
        return not self.left and self._lock.locked()

    def __enter__(self) -> None:
        self.check()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Run:
    """The state of something paid for once, which answers question by question. Threads may share it under its lock; a
    copy, in a forked process or by pickling, would answer again what was paid for once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._home = Home()
        self._lock = Lock()

    def __reduce__(self) -> NoReturn:
        """Refuses to be copied."""
        raise TypeError(f"a run of {self._name} cannot be copied; start another and pay for it")

    def _stay(self) -> None:
        """Refuses to go on in another process."""
        if self._home.left:
            raise BudgetExceeded("in a forked process", "of the process that paid", "start another run and pay for it")


def folder() -> tuple[str, Callable[[], None]]:
    """A temporary folder for this user alone, and what removes it: nothing in another process."""
    path, home = mkdtemp(prefix="discreet-"), Home()

    def remove() -> None:
        if not home.left:
            rmtree(path, ignore_errors=True)

    return path, remove


def forever(thing: object) -> None:
    """Keep something for as long as the process lives, and beyond what it tidies up when it ends.

    A connection to an engine that a fork copied has lost its threads; to destroy it ends the child with a crash.
    """
    from ctypes import py_object, pythonapi

    pythonapi.Py_IncRef(py_object(thing))

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

__all__ = ["Home", "folder", "forever"]


class Home:
    """The process in which something was made."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def left(self) -> bool:
        """Whether this is another process: a child of a fork."""
        return self._process != os.getpid()


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

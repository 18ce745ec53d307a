"""Which runs are alive: whoever charges a question holds a lock until its outcome is stored, or until it dies.

The lock decides nothing about privacy. It only tells a question that is being run somewhere, for which others wait,
from one whose run ended without an outcome, which must be paid for again (`ledger.py`). So it is enough that

* nobody but its holder can be taken for the holder, and
* it goes when its holder dies, however it dies: the operating system or the server takes it back.

In books in a file it is a lock on one byte of `-runs`, a file without content; which byte, the key of the run says. On
a server it is an advisory lock of a connection that does nothing else.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     runs = FileRuns(f"{folder}/books.db-runs")
...     runs.claim("first")
...     runs.is_alive("first"), runs.is_alive("second")
(True, False)
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from hashlib import sha256
from threading import Lock
from typing import Protocol

from discreet.ledger.errors import LedgerUnavailable

OFFSET_BITS = 62
"""Places for a lock: offsets in a file and keys of advisory locks are signed numbers of 64 bits."""
TAKEN = (errno.EACCES, errno.EAGAIN)
"""What the operating system says of a lock that another process has."""


class Runs(Protocol):
    """The runs of one set of books, by their keys."""

    def claim(self, run: str) -> None:
        """Says that this process runs it, until `release` or the end of the process."""

    def release(self, run: str) -> None:
        """Says that it is over; nothing if it was not claimed."""

    def is_alive(self, run: str) -> bool:
        """Whether some process, this one too, has claimed it and lives."""

    def close(self) -> None:
        """Gives up whatever this handle claimed."""


def lock_number(run: str) -> int:
    """Where the lock of a run is. Two runs that share a number by chance, 2⁻⁶², wait for each other."""
    return int.from_bytes(sha256(run.encode()).digest()[:8], "big") >> (64 - OFFSET_BITS)


class _LockFile:
    """One file of locks, opened once in a process: POSIX takes all locks of a process on a file back as soon as the
    process closes any of its handles on it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.users = 0
        self.claimed: set[str] = set()
        try:
            self.descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as reason:
            remedy = "ask for the right to write it"
            raise LedgerUnavailable(f"{path} cannot be opened ({reason.strerror})", remedy) from None

    def lock(self, run: str) -> bool:
        """Takes the lock; False if another process has it. That no lock can be had at all says nothing of the run."""
        try:
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, lock_number(run))
        except OSError as reason:
            if reason.errno in TAKEN:
                return False
            remedy = "keep the books on a local disk that has locks"
            raise LedgerUnavailable(f"{self.path} cannot be locked ({reason.strerror})", remedy) from None
        return True

    def unlock(self, run: str) -> None:
        """Gives the lock back."""
        with suppress(OSError):
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, lock_number(run))


_files: dict[str, _LockFile] = {}
_guard = Lock()


def _forget_parent() -> None:
    """A child of a fork has none of its parent's locks; to close its copies of the handles takes none back."""
    global _guard
    _guard = Lock()
    for file in _files.values():
        with suppress(OSError):
            os.close(file.descriptor)
    _files.clear()


os.register_at_fork(after_in_child=_forget_parent)


class FileRuns:
    """Runs of books in a file; `path` is that of the file of locks, which is made when the first run is claimed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: _LockFile | None = None
        self._claimed: set[str] = set()
        self._closed = False

    def claim(self, run: str) -> None:
        """Says that this process runs it, until `release` or the end of the process."""
        with _guard:
            file = self._open()
            # Put down before it is locked, and crossed out after: an interrupt in between leaves nothing locked.
            file.claimed.add(run)
            self._claimed.add(run)
            if not file.lock(run):
                self._claimed.discard(run)
                file.claimed.discard(run)
                raise LedgerUnavailable("the lock of a new run is taken", "ask again")

    def release(self, run: str) -> None:
        """Says that it is over; nothing if it was not claimed."""
        with _guard:
            file = self._open() if run in self._claimed else None
            if file is not None and run in self._claimed:
                file.unlock(run)
                file.claimed.discard(run)
                self._claimed.discard(run)

    def is_alive(self, run: str) -> bool:
        """Whether some process, this one too, has claimed it and lives."""
        with _guard:
            file = self._open()
            if run in file.claimed:
                return True
            free = file.lock(run)
            if free:
                file.unlock(run)
            return not free

    def close(self) -> None:
        """Gives up whatever this handle claimed."""
        for run in [*self._claimed]:
            self.release(run)
        with _guard:
            self._closed = True
            file, self._file = self._file, None
            if file is not None and _files.get(self.path) is file:
                file.users -= 1
                if not file.users:
                    del _files[self.path]
                    os.close(file.descriptor)

    def _open(self) -> _LockFile:
        """The file, as this process has it open."""
        if self._closed:
            raise LedgerUnavailable(f"the ledger {self.path.removesuffix('-runs')} is closed", "open it again")
        file = _files.get(self.path)
        if file is None or file is not self._file:
            self._claimed.clear()
            file = file or _LockFile(self.path)
            file.users += 1
            _files[self.path] = self._file = file
        return file

"""How many threads a block may begin.

The system counts threads of a user, of a container and of the whole machine, and forks nothing once there are too many.
A block that begins thousands would so make others fail, or the estimate: what becomes of them would follow from its
rows. A limit of one process there is not: RLIMIT_NPROC is about all of a user's, and nothing for root. So a filter of
calls hands every clone to the process that forks blocks (a `Gate`), which lets `MOST` of them pass, whether the threads
have ended or not. Where the kernel cannot do that (before 5.5), a block begins no threads.

What the flags of a clone may be is for the filter in `sandbox/seccomp.py`, whose refusals go first.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import struct
from contextlib import suppress

from discreet.robust.sandbox import linux as k
from discreet.robust.sandbox.seccomp import clone_filter

__all__ = ["MOST", "Gate", "hand_over"]

MOST = 64
"""Threads of one block."""
_NOTICE = 80
"""Bytes of struct seccomp_notif, which begins with its number."""


def hand_over(link: socket.socket) -> None:
    """In a block, before its other walls: from here on it begins threads as the gate at the other end allows, or none
    if there cannot be one."""
    machine = os.uname().machine
    if not k.supported():
        return
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(k.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for handed, flags in ((True, k.SECCOMP_FILTER_FLAG_NEW_LISTENER), (False, 0)):
        program = clone_filter(machine, handed)
        lines = ctypes.create_string_buffer(b"".join(program))
        head = struct.pack("@HP", len(program), ctypes.addressof(lines))
        listener = system.syscall(k.number("seccomp"), k.SECCOMP_SET_MODE_FILTER, flags, head)
        if listener >= 0:
            if handed:
                socket.send_fds(link, [b"t"], [listener])
                os.close(listener)
            return


class Gate:
    """In the process that forks blocks: lets some clones of one of them pass."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._listener: int | None = None
        self._left = MOST

    def fileno(self) -> int:
        """To wait for: there is something to `attend` to when it can be read."""
        return self._link.fileno() if self._listener is None else self._listener

    def attend(self) -> bool:
        """Take the listener, or answer one clone; whether there may be more."""
        if self._listener is None:
            _, descriptors, _, _ = socket.recv_fds(self._link, 1, 1)
            self._listener = descriptors[0] if descriptors else None
            return bool(descriptors)
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        ready = poll.poll(0)
        if not ready or not ready[0][1] & select.POLLIN:
            # Asking a listener that nobody is left behind would wait for ever.
            return not ready
        self._answer(self._listener)
        return True

    def _answer(self, listener: int) -> None:
        import fcntl

        notice = bytearray(_NOTICE)
        with suppress(OSError):  # whoever asked may be gone
            fcntl.ioctl(listener, k.SECCOMP_IOCTL_NOTIF_RECV, notice)
            (number,) = struct.unpack_from("<Q", notice)
            verdict = (0, 0, k.SECCOMP_USER_NOTIF_FLAG_CONTINUE) if self._left > 0 else (0, -errno.EAGAIN, 0)
            self._left -= 1
            fcntl.ioctl(listener, k.SECCOMP_IOCTL_NOTIF_SEND, struct.pack("<QqiI", number, *verdict))

    def close(self) -> None:
        """Nobody answers any more; the block is over."""
        self._link.close()
        if self._listener is not None:
            os.close(self._listener)

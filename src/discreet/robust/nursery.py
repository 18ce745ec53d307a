"""The program of a worker: it loads a function, sees no data, and forks one child for each block.

A child is a copy of a process that never ran the function: whatever a run changes dies with it. A child gets the rows
of one block through a socket of its own and sends back one short answer; the program ends it when its time is over,
and whatever it has started. `workers.py` runs this file with nothing else of the library, so it imports none of it.

What a child may do is cut down as far as the system helps. Everywhere: limits on memory, processor time and file size,
nothing on its terminal, few environment variables, no descriptors but its own. On Linux with Landlock: no file is
written, created or removed, no signal to and no look into other processes. With seccomp: no sockets but pairs, and none
of the calls that leave something behind for children to come (`_LASTING`), be it the date of a file or the priority of
the process that forks them; the powers of root are given up. Where namespaces are allowed, a child is the first process
of its own, and all that it starts ends with it; and the files of the data are not there, under the names they have.
What is not prevented: reading other files, copies of the data among them, and what shows that something was read or
run, as dates of access, caches, clocks and the load of the machine. Against a function written to find such ways it
takes a sandbox of the system.

Answers are bytes: doubles in a row, or the JSON of a label.

>>> written(("a", 1.5, None, b"x")), read(written(("a", 1.5, None, b"x")))
(b'{"t": ["a", 1.5, null, {"b": "78"}]}', ('a', 1.5, None, b'x'))
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
import pickle
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType
from typing import Any

__all__ = ["DONE", "MOST", "READY", "read", "received", "sent", "written"]

READY, DONE = b"r", b"d"
MOST = 1 << 16
"""Bytes of an answer; what is longer is no answer."""
_DESCRIPTORS = 256
_OLD_SECONDS = 2
"""Processor time may pass what the clock allows by this much."""
_SUBREAPER, _DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 36, 1, 38
_NEW_USER, _NEW_NETWORK, _NEW_TALKS, _NEW_PROCESSES = 0x10000000, 0x40000000, 0x08000000, 0x20000000
_NEW_MOUNTS, _ALL_PRIVATE, _BOUND, _READ_ONLY = 0x00020000, 0x44000, 0x1000, 1
_RULESET, _ADD_RULE, _RESTRICT = 444, 445, 446
_WRITES = 0b1_1111_1111_0010
"""Landlock's rights to write, remove and make files, of its first version; moving and cutting came later."""
_SECCOMP, _FILTERED = 22, 2
_PASS, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_FIRST, _SECOND = 16, 24
"""Where a filter finds the arguments of a call."""
_CAPABILITIES, _READ_ANYTHING = 0x20080522, 1 << 2
_ANYWHERE = (425, 426, 427, 452, 463, 466, 469)
"""Rings of calls that no filter sees; and modes, attributes and flags of files, as newer kernels set them."""
_LASTING = {
    # Shared memory, semaphores and messages; modes, owners, dates and attributes of files; keys; priorities; sockets.
    "x86_64": (
        *(29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240, 241),
        *(90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280),
        *(248, 249, 250, 141, 251, 41),
        *_ANYWHERE,
    ),
    "aarch64": (
        *(180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196),
        *(5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88),
        *(217, 218, 219, 140, 30, 198),
        *_ANYWHERE,
    ),
}
_OF_OTHERS = {"x86_64": (142, 144, 203, 302, 314), "aarch64": (118, 119, 122, 261, 274)}
"""Scheduling and limits: of the process itself only, which is process 0."""
_CONTROL = {"x86_64": 16, "aarch64": 29}
_FLAGGING = (0x40086602, 0x401C5820, 0x40046602)
"""Requests that set the flags of a file."""
_SYSTEM = {"x86_64": (0xC000003E, 126), "aarch64": (0xC00000B7, 91)}
"""The number of the architecture, and of the call that gives powers up."""
_PLAIN = (str, bool, int, float, type(None))


def sent(channel: socket.socket, message: bytes) -> None:
    """A message with its length in front."""
    channel.sendall(struct.pack("<Q", len(message)) + message)


def received(channel: socket.socket) -> bytes:
    """A message that was `sent`."""
    (length,) = struct.unpack("<Q", _exactly(channel, 8))
    return _exactly(channel, length)


def written(value: object) -> bytes:
    """An answer that is no number: text, bytes, a number, None, or a tuple of these; raises for whatever else."""

    def plain(part: Any) -> Any:
        if type(part).__module__ == "numpy" and hasattr(part, "item"):
            part = part.item()
        if type(part) is bytes:
            return {"b": part.hex()}
        if type(part) is tuple:
            return {"t": [plain(each) for each in part]}
        if type(part) not in _PLAIN:
            raise TypeError
        return part

    return json.dumps(plain(value)).encode()


def read(message: bytes) -> Any:
    """What was `written`; raises for whatever else."""

    def back(part: Any) -> Any:
        if isinstance(part, dict):
            ((kind, inside),) = part.items()
            return bytes.fromhex(inside) if kind == "b" else tuple(back(each) for each in inside)
        if type(part) not in _PLAIN:
            raise TypeError
        return part

    return back(json.loads(message))


def numbers(value: object, size: int) -> bytes:
    """So many doubles, all finite; raises for whatever else."""
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.size != size or array.ndim > 1:
        raise TypeError
    doubles = array.astype("<f8")
    if not np.isfinite(doubles).all():
        raise ValueError
    return bytes(doubles.tobytes())


def framed(columns: Any, form: str) -> Any:
    """Rows as the function wants them."""
    if form == "pandas":
        import pandas

        held = {name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()}
        return pandas.DataFrame(held, copy=False)
    if form == "arrow":
        import pyarrow

        kinds = {name: pyarrow.string() if values.dtype == object else None for name, values in columns.items()}
        held = {name: pyarrow.array(values, kinds[name], from_pandas=True) for name, values in columns.items()}
        return pyarrow.table(held)
    return columns


def main(descriptor: int) -> None:
    """Load the function, say so, then fork for each block until nobody asks any more."""
    control = socket.socket(fileno=descriptor)
    order = json.loads(received(control))
    _apart()
    _hide(order["hidden"])
    _settle(_SUBREAPER, 1)
    sys.path[:] = order["path"]
    try:
        for name in order["modules"]:
            importlib.import_module(name)
        function = pickle.loads(received(control))
        for code in _codes(function):
            _preload(code)
    except Exception as error:
        sent(control, f"{type(error).__name__}: {error}".encode()[:MOST])
        return
    sent(control, READY)
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not request:
            return
        child = os.fork()
        if child == 0:
            control.close()
            _answer(descriptors[0], function, order)
        os.close(descriptors[0])
        _watch(child, control, order["seconds"])
        sent(control, DONE)


def _watch(child: int, control: socket.socket, seconds: float) -> None:
    """Wait for a child until its time is over, or nobody waits for it; then end it and all it started."""
    begun, ended = time.monotonic(), False
    while not ended and (spent := time.monotonic() - begun) < seconds:
        pause = min(0.02, 0.001 + spent / 20, seconds - spent)
        readable, _, _ = select.select([control], [], [], pause)
        ended = os.waitpid(child, os.WNOHANG)[0] != 0
        if readable and not ended:
            break
    if not ended:
        _kill(child)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while orphans := _children():
        for orphan in orphans:
            _kill(orphan)


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


def _children() -> list[int]:
    """What a child left behind comes to this process, where the system says so."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listed:
            return [int(process) for process in listed.read().split()]
    except OSError:
        return []


def _answer(descriptor: int, function: Callable[[Any], Any], order: dict[str, Any]) -> None:
    """In the child: read the rows, run the function, send what it gives, and end whatever happens."""
    try:
        os.setpgid(0, 0)
        _settle(_DEATH_SIGNAL, signal.SIGKILL)
        _first_of_its_own()
        channel = socket.socket(fileno=descriptor)
        _close_others(descriptor)
        _limit(order)
        _confine()
        _leave_nothing(os.uname().machine)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()  # a copy would draw what every other copy draws
        size = order["size"]
        # Asked for before the function runs: what it does to names here is its own affair.
        rows = framed(pickle.loads(received(channel)), order["form"])
        value = function(rows)
        answer = written(value) if size is None else numbers(value, size)
        if len(answer) <= MOST:
            sent(channel, answer)
    finally:
        os._exit(0)


def _close_others(kept: int) -> None:
    os.closerange(3, kept)
    os.closerange(kept + 1, _DESCRIPTORS * 4)


def _limit(order: dict[str, Any]) -> None:
    """Memory beyond what the program has, processor time, no files, no cores."""
    with suppress(OSError), open("/proc/self/statm") as held:
        order = order | {"memory": order["memory"] + int(held.read().split()[0]) * resource.getpagesize()}
    wanted = {
        resource.RLIMIT_AS: order["memory"],
        resource.RLIMIT_CPU: int(order["seconds"]) + _OLD_SECONDS,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _DESCRIPTORS,
    }
    for kind, most in wanted.items():
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (least, least))


def _apart() -> None:
    """No network and no shared memory of others, where that is allowed."""
    with suppress(OSError, AttributeError):
        system = ctypes.CDLL(None, use_errno=True)
        if system.unshare(_NEW_NETWORK | _NEW_TALKS) == 0:
            return
        user, group = os.getuid(), os.getgid()
        if system.unshare(_NEW_USER | _NEW_NETWORK | _NEW_TALKS) == 0:
            lines = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
            for name, line in lines.items():
                with suppress(OSError), open(f"/proc/self/{name}", "w") as mapped:
                    mapped.write(line)


def _hide(paths: list[str]) -> None:
    """Nothing in the place of these files and folders, for this process and its children, where that is allowed."""
    with suppress(OSError, AttributeError):
        system = ctypes.CDLL(None, use_errno=True)
        if not paths or system.unshare(_NEW_MOUNTS) != 0:
            return
        if system.mount(b"none", b"/", None, _ALL_PRIVATE, None) != 0:
            return
        for path in paths:
            if os.path.isdir(path):
                system.mount(b"none", os.fsencode(path), b"tmpfs", _READ_ONLY, None)
            else:
                system.mount(os.fsencode(os.devnull), os.fsencode(path), None, _BOUND, None)


def _confine() -> None:
    """Landlock, as far as the system has it: nothing but /dev/null is written, no TCP, no signals to others."""
    with suppress(OSError, AttributeError):
        system = ctypes.CDLL(None, use_errno=True)
        version = system.syscall(_RULESET, None, 0, 1)
        if version < 1:
            return
        writes = _WRITES | (1 << 13 if version >= 2 else 0) | (1 << 14 if version >= 3 else 0)
        handled = struct.pack("<QQQ", writes, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
        held = handled[: 24 if version >= 6 else 16 if version >= 4 else 8]
        rules = system.syscall(_RULESET, held, len(held), 0)
        nowhere = os.open(os.devnull, os.O_PATH)
        system.syscall(_ADD_RULE, rules, 1, struct.pack("<Qi", 1 << 1, nowhere), 0)
        os.close(nowhere)
        _settle(_NO_NEW_PRIVILEGES, 1)
        system.syscall(_RESTRICT, rules, 0)
        os.close(rules)


def _first_of_its_own() -> None:
    """Go on in the first process of a new namespace of processes, if there may be one: the system ends all others of it
    with the first, however fast they fork, and none of them can name a process outside."""
    with suppress(OSError, AttributeError):
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_PROCESSES) != 0:
            return
        if first := os.fork():
            try:
                os.waitpid(first, 0)
            finally:
                os._exit(0)
        _settle(_DEATH_SIGNAL, signal.SIGKILL)


def _leave_nothing(machine: str) -> None:
    """Give up the powers of root but that of reading, and all calls that leave something for children to come."""
    if sys.platform != "linux" or machine not in _SYSTEM or sys.byteorder != "little":
        return
    with suppress(OSError, AttributeError):
        system = ctypes.CDLL(None, use_errno=True)
        architecture, give_up = _SYSTEM[machine]
        held = (ctypes.c_uint32 * 6)()
        head = struct.pack("<Ii", _CAPABILITIES, 0)
        if system.syscall(give_up - 1, head, held) == 0:
            kept = held[1] & _READ_ANYTHING
            system.syscall(give_up, head, struct.pack("<6I", kept, kept, 0, 0, 0, 0))
        _settle(_NO_NEW_PRIVILEGES, 1)
        steps = _filter(machine, architecture)
        lines = ctypes.create_string_buffer(b"".join(steps))
        system.prctl(_SECCOMP, _FILTERED, struct.pack("@HP", len(steps), ctypes.addressof(lines)), 0, 0)


def _filter(machine: str, architecture: int) -> list[bytes]:
    """What the system is to ask itself at each call."""

    def step(code: int, value: int, there: int = 0, elsewhere: int = 0) -> bytes:
        return struct.pack("<HBBI", code, there, elsewhere, value)

    refuse, accept = step(_RETURN, _REFUSE), step(_RETURN, _PASS)
    steps = [step(_LOAD, 4), step(_EQUAL, architecture, 1), refuse]
    # Numbers from 2^30 are those of another form of the calls, which nobody here uses.
    steps += [step(_LOAD, 0), step(_AT_LEAST, 1 << 30, 0, 1), refuse]
    for number in _LASTING[machine]:
        steps += [step(_EQUAL, number, 0, 1), refuse]
    for number in _OF_OTHERS[machine]:
        steps += [step(_EQUAL, number, 0, 4), step(_LOAD, _FIRST), step(_EQUAL, 0, 1), refuse, accept]
    steps += [step(_EQUAL, _CONTROL[machine], 0, 2 * len(_FLAGGING) + 1), step(_LOAD, _SECOND)]
    for request in _FLAGGING:
        steps += [step(_EQUAL, request, 0, 1), refuse]
    return [*steps, accept]


def _settle(option: int, value: int) -> None:
    """Something about this process, where the system knows it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _codes(function: Any) -> Iterator[CodeType]:
    """The code of a function, and of the functions inside it."""
    waiting = [getattr(function, "__code__", None)]
    while waiting:
        code = waiting.pop()
        if isinstance(code, CodeType):
            yield code
            waiting += code.co_consts


def _preload(code: CodeType) -> None:
    """Import what the function will import, once instead of in each child; what fails, fails there."""
    import dis

    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            with suppress(Exception):
                importlib.import_module(step.argval)


def _exactly(channel: socket.socket, length: int) -> bytes:
    parts = []
    while length > 0:
        part = channel.recv(min(length, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""The program of a worker: it gets a function as bytes, sees no data, and forks one child for each block.

A child gets the rows of one block through a socket of its own and sends back one short answer; the program ends it when
its time is over. Code of the function runs in children alone, and only after the walls of `sandbox/confinement.py`
stand around them: that is where the bytes are loaded, for loading them may run anything. So the program that forks
never runs a part of the function, nor imports what it chooses (`sandbox/ahead.py`), and a child is a copy of a process
that did not, nor watched one that did: what a run changes dies with it, and no run sees more than the rows of its
block. Before the first block a child is forked that loads the function and has no rows, so that what cannot be loaded
is known in time.

Nor does a child find in its memory what the machine counts, and blocks before it could have moved: numbers of processes
and threads, of sockets and other files. The program begins as the first process of a namespace
(`sandbox/launcher.py`), does not ask for the numbers of what is open, and gives those it forks the same one each time.

What leaves a child is bytes that the function may choose, up to `MOST` of them, and is read as such: doubles in a row,
the JSON of a label, or one of the `OUTCOMES`. No text of a function, its exceptions included, is passed on.

Everywhere there are limits on memory, processor time and file size, nothing on the terminal, hardly any environment
variables, no descriptors but the child's own. Where walls are missing, an order says which are needed, and without
them no child loads anything. `sandbox/workers.py` runs this file and those it imports with nothing else of the library.

>>> written(("a", 1.5, None, b"x")), read(written(("a", 1.5, None, b"x")))
(b'{"t": ["a", 1.5, null, {"b": "78"}]}', ('a', 1.5, None, b'x'))
"""

from __future__ import annotations

import builtins
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
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from typing import Any

from discreet.robust.sandbox.confinement import (
    WALLS,
    begin_namespace,
    build_inner,
    build_outer,
    fork_as,
    keep_from_children,
    set_process_option,
)
from discreet.robust.sandbox.linux import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
from discreet.robust.sandbox.seccomp import CHANNEL
from discreet.robust.sandbox.threads import Gate, hand_over

__all__ = ["DONE", "ENDED", "LOADED", "MOST", "OUTCOMES", "RAISED", "read", "received", "sent", "written"]

DONE = b"d"
OUTCOMES = ("answer", "raised", "no answer", "not finite")
"""What a trial may come to: the first byte of what it sends. After `raised` follows the place of a kind in `RAISED`."""
RAISED = tuple(
    sorted(name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException))
)
"""Kinds of exceptions that may be named: those of Python itself."""
LOADED, ENDED = 254, 255
"""What a load may come to, beside a kind of exception."""
MOST = 1 << 16
"""Bytes of an answer; what is longer is no answer."""
CARER = 250
"""The number of a process that cares for a child, whichever that is. None else takes it: others are numbered from 1,
and from 300 once the end is reached."""
_PATIENCE = 1_000_000
"""How often to ask for that number while the system still has it for the carer before."""
_DESCRIPTORS = 256
_OLD_SECONDS = 2
"""Processor time may pass what the clock allows by this much."""
_PLAIN = (str, bool, int, float, type(None))


def sent(channel: socket.socket, message: bytes) -> None:
    """A message with its length in front."""
    channel.sendall(struct.pack("<Q", len(message)) + message)


def received(channel: socket.socket) -> bytes:
    """A message that was `sent`."""
    (length,) = struct.unpack("<Q", _exactly(channel, 8))
    return _exactly(channel, length)


DEEPEST_LABEL = 16
"""Tuples in tuples of an answer."""


def written(value: object) -> bytes:
    """An answer that is a label: text, bytes, a finite number, None, or a tuple of these; raises for whatever else."""

    def plain(part: Any) -> Any:
        if type(part).__module__ == "numpy" and hasattr(part, "item"):
            part = part.item()
        if type(part) is bytes:
            return {"b": part.hex()}
        if type(part) is tuple:
            return {"t": [plain(each) for each in part]}
        if type(part) not in _PLAIN or (type(part) is float and not isfinite(part)):
            raise TypeError
        return part

    return json.dumps(plain(value)).encode()


def read(message: bytes) -> Any:
    """What was `written`; raises for whatever else, and for tuples deeper than anybody needs: what compares and writes
    them later must not come to the end of the stack."""

    def back(part: Any, depth: int = 0) -> Any:
        if depth > DEEPEST_LABEL:
            raise ValueError("too deep")
        if isinstance(part, dict):
            ((kind, inside),) = part.items()
            return bytes.fromhex(inside) if kind == "b" else tuple(back(each, depth + 1) for each in inside)
        if type(part) not in _PLAIN or (type(part) is float and not isfinite(part)):
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
    """Build the outer walls, import what the order says, and fork the process that serves."""
    alone = os.getpid() == 1
    control = socket.socket(fileno=descriptor)
    order = json.loads(received(control))
    packed = received(control)
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    mapped = _told_of_maps()
    # A child inherits the order, and need not know what is hidden from it.
    outer = build_outer(order["visible"], order.pop("hidden"))
    sys.path[:] = order["path"]
    for name in order["modules"]:
        # What is missing here is missing for the function too, which will say so itself.
        with suppress(Exception):
            importlib.import_module(name)
    maps = _ranges(mapped())
    order["memory"] += sum(end - first for first, end, _ in maps)
    if (server := os.fork()) != 0:
        os.waitpid(server, 0)
        return
    # Libraries begin threads when they are imported, and here are none of them.
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    _keep_memory(maps)
    _serve(control, order, packed, outer, alone)


def _serve(control: socket.socket, order: dict[str, Any], packed: bytes, outer: set[str], numbered: bool) -> None:
    """Have a child load the function, say how that went, then fork for each block until nobody asks any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    outcome = b""
    ours, theirs = socket.socketpair()
    with ours:
        _kept(theirs.detach(), control, order, packed, outer, numbered, loads_only=True)
        ours.setblocking(False)
        with suppress(OSError):
            outcome = ours.recv(2)
    standing = outcome[0] if outcome else 0
    walls = sorted(outer | {wall for place, wall in enumerate(WALLS) if standing >> place & 1})
    loaded = outcome[1] if len(outcome) == 2 else ENDED
    sent(control, json.dumps({"walls": walls, "loaded": loaded}).encode())
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not request:
            return
        _kept(descriptors[0], control, order, packed, outer, numbered)
        sent(control, DONE)


def _told_of_maps() -> Callable[[], bytes]:
    """What /proc says of the memory of this process, whenever asked: read through a file that is opened now, while
    there is a /proc; nothing where there is none. Python's own `open` asks for the number of the file, which the
    machine counts."""
    try:
        place = os.open("/proc/self/maps", os.O_RDONLY)
    except OSError:
        return lambda: b""
    return lambda: b"".join(iter(lambda: os.read(place, 1 << 16), b""))


def _ranges(maps: bytes) -> list[tuple[int, int, str]]:
    """Where memory begins and ends, and the rights on it, of a file as in /proc."""
    found = []
    for line in maps.decode(errors="replace").splitlines():
        place, rights = line.split()[:2]
        first, end = (int(part, 16) for part in place.split("-"))
        found.append((first, end, rights))
    return found


def _keep_memory(maps: list[tuple[int, int, str]]) -> None:
    """No child has memory that others can see it write to: what a library mapped to be shared stays here, and a child
    that reaches for it ends."""
    for first, end, rights in maps:
        if rights[1] == "w" and rights[3] == "s":
            keep_from_children(first, end - first)


def _kept(
    descriptor: int,
    control: socket.socket,
    order: dict[str, Any],
    packed: bytes,
    outer: set[str],
    numbered: bool,
    loads_only: bool = False,
) -> None:
    """One child, from its beginning to its end, in the care of a process of its own. A child is a copy of whatever
    forks it: in the memory of one that had watched others it would find how long those took, and their numbers."""
    child, numbered = _caring(numbered)
    if child == 0:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
            set_process_option(PR_SET_CHILD_SUBREAPER, 1)
            _forked(descriptor, control, order, packed, outer, numbered, loads_only)
        finally:
            os._exit(0)
    os.close(descriptor)
    # Where SIGCHLD is ignored, this ends with the last child, and tells of none but those that ended before.
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _caring(numbered: bool) -> tuple[int, bool]:
    """A fork, and whether it has a number of ours, where there is a namespace for that."""
    for _ in range(_PATIENCE if numbered else 0):
        try:
            return fork_as(CARER), True
        except OSError as error:
            if error.errno != errno.EEXIST:
                break
            os.sched_yield()  # to sleep is to read the clock: the time would stay in memory
    return os.fork(), False


def _forked(
    descriptor: int,
    control: socket.socket,
    order: dict[str, Any],
    packed: bytes,
    outer: set[str],
    numbered: bool,
    loads_only: bool,
) -> None:
    """In the process that cares for one child."""
    ours, theirs = socket.socketpair()
    alone = begin_namespace() and numbered
    child = os.fork()
    if child == 0:
        control.close()
        _answer(descriptor, theirs, order, packed, outer | ({"processes"} if alone else set()), loads_only)
    os.close(descriptor)
    theirs.close()
    gate = Gate(ours)
    try:
        _watch(child, control, gate, order["seconds"])
    finally:
        gate.close()


def _watch(child: int, control: socket.socket, gate: Gate, seconds: float) -> None:
    """Wait for a child until its time is over, or nobody waits for it; then end it and all it started."""
    begun, ended = time.monotonic(), False
    watched: list[socket.socket | Gate] = [control, gate]
    while not ended and (spent := time.monotonic() - begun) < seconds:
        pause = min(0.02, 0.001 + spent / 20, seconds - spent)
        readable, _, _ = select.select(watched, [], [], pause)
        if gate in readable and not gate.attend():
            watched.remove(gate)
        ended = os.waitpid(child, os.WNOHANG)[0] != 0
        if control in readable and not ended:
            break
    if not ended:
        _kill(child)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while orphans := _children():
        for orphan in orphans:
            _kill(orphan)
    _bury(time.monotonic() + _OLD_SECONDS)


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


def _bury(latest: float) -> None:
    """Wait for whatever else was killed and came here, where a child had no namespace that ends with it. So the next
    block begins on its own, and the dead do not add up to more than the machine has numbers for."""
    with suppress(ChildProcessError):
        while time.monotonic() < latest:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)


def _children() -> list[int]:
    """What a child left behind comes to this process, where the system says so."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listed:
            return [int(process) for process in listed.read().split()]
    except OSError:
        return []


def _answer(
    descriptor: int, link: socket.socket, order: dict[str, Any], packed: bytes, outer: set[str], loads_only: bool
) -> None:
    """In the child: build the inner walls, load the function, read the rows, run it, send what it gives, and end
    whatever happens."""
    try:
        os.setpgid(0, 0)
        set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        hand_over(link)
        # Otherwise Python keeps the number that the process had outside its namespace.
        getattr(threading.main_thread(), "_set_native_id", lambda: None)()
        channel = _own_descriptors(descriptor)
        _limit(order)
        walls = outer | build_inner(order["visible"])
        if loads_only:
            channel.send(bytes([sum(1 << WALLS.index(wall) for wall in walls)]))
        if not {*order["required"]} <= walls:
            return
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()  # a copy would draw what every other copy draws
        if loads_only:
            channel.send(bytes([_loading(packed)]))
            return
        answer = _run(packed, received(channel), order)
        if answer is not None and len(answer) <= MOST:
            sent(channel, answer)
    finally:
        os._exit(0)


def _loading(packed: bytes) -> int:
    try:
        return LOADED if callable(pickle.loads(packed)) else RAISED.index("TypeError")
    except BaseException as error:
        return _kind(error)


def _run(packed: bytes, rows: bytes, order: dict[str, Any]) -> bytes | None:
    """What the function gives; for a trial with what became of it in front, and nothing for anything but an answer
    otherwise."""
    trial, size = order["trial"], order["size"]
    try:
        # Rows first: what the function does to names here is its own affair.
        given = framed(pickle.loads(rows), order["form"])
        value = pickle.loads(packed)(given)
    except BaseException as error:
        return bytes([OUTCOMES.index("raised"), _kind(error)]) if trial else None
    try:
        answer = written(value) if size is None else numbers(value, size)
        return bytes([OUTCOMES.index("answer")]) + answer if trial else answer
    except ValueError:
        return bytes([OUTCOMES.index("not finite")]) if trial else None
    except Exception:
        return bytes([OUTCOMES.index("no answer")]) if trial else None


def _kind(error: BaseException) -> int:
    """The nearest kind of exception that may be named."""
    return next(RAISED.index(kind.__name__) for kind in type(error).__mro__ if kind.__module__ == "builtins")


def _own_descriptors(descriptor: int) -> socket.socket:
    """Nothing that is open is shared with another block: left are the channel, under a number that the filter of calls
    knows, and /dev/null, opened here. What this process inherits has its flags in common with all it was forked for."""
    if descriptor != CHANNEL:
        os.dup2(descriptor, CHANNEL)
    os.closerange(CHANNEL + 1, _DESCRIPTORS * 4)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(CHANNEL):
        os.dup2(nothing, standard)
    os.close(nothing)
    return socket.socket(fileno=CHANNEL)


def _limit(order: dict[str, Any]) -> None:
    """Memory beyond what the program has, processor time, no files, no cores."""
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


def _exactly(channel: socket.socket, length: int) -> bytes:
    parts = []
    while length > 0:
        part = channel.recv(min(length, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)

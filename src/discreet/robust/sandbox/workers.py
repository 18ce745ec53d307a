"""A function run on many blocks of rows, each in a process of its own that ends with it.

What the guarantees of `aggregation/sample_and_aggregate.py` need of a run: the answer of a block depends on the rows
of that block, the function, and fresh randomness, and on nothing else. So each block has a new process, forked from
one that never loaded the function (`sandbox/forkserver.py`); it is walled in first (`sandbox/confinement.py`), then
loads the function, is given its own rows only, and has a limit of time and memory. A block whose run raises, hangs,
dies, asks for too much or gives what is no answer has None here, whatever the reason, and nobody is told which blocks
those were. A worker that is lost with its block is replaced before the next block begins.

Where the function is not trusted (`confined`), it is run behind all walls that keep it from whatever is the steward's,
or not at all. It is sent as bytes (`sandbox/shipping.py`) before anything is charged: what cannot be sent, or not be
loaded there, is refused.

>>> import pickle
>>> with Workers(lambda rows: sum(rows) / len(rows), size=1, form="rows", limits=Limits(workers=1)) as workers:
...     found = workers.answers([pickle.dumps([1, 2, 6]), pickle.dumps([]), None].__getitem__, 3)
>>> [None if answer is None else np.frombuffer(answer).tolist() for answer in found]
[[3.0], None, None]

Time. A block takes what its run takes, up to `seconds`, so how long all of them take says something about them. With
`padded`, all rows are packed before the first block begins, each block takes `seconds` and the time to end it, whatever
happens in it, the next one begins when the schedule of all of them says, and which worker has which block is fixed.
Use it where those who ask are not trusted and can measure time, or where a function is not: a clock tells it how long
those before it took. Blocks that run side by side share a machine: choose `seconds` well above what a block takes, so
that none of them is late because of another.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal, get_args

import numpy as np

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.exact import exact, natural
from discreet.mechanisms.additive import flag
from discreet.robust.sandbox import forkserver as nursery
from discreet.robust.sandbox.ahead import loaded_ahead
from discreet.robust.sandbox.confinement import COMPLETE, WALLS, to_mask
from discreet.robust.sandbox.launcher import CONTROL
from discreet.robust.sandbox.shipping import import_path, installed, name_of, shipped

__all__ = ["Form", "Limits", "Workers"]

Form = Literal["pandas", "arrow", "numpy", "rows"]
"""What the function is given: a DataFrame, an Arrow table, a dict of arrays, or the records as they came."""
LEAST_MEMORY, MOST_MEMORY = 1 << 24, 1 << 40
MOST_WORKERS = 1024
LONGEST = 86_400
_START = 120.0
"""Seconds in which a worker must have loaded the function."""
_GRACE = 30.0
"""Seconds beyond its own limit after which a worker counts as lost."""
_TAIL = 0.25
_TAIL_RATE = 1 << 33
"""Seconds that a padded block has for being ended, and bytes of its memory that are given back in a second more: 5 GB
took the kernel 0.5 seconds."""
_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""Environment variables that a worker has."""
_PACKAGES = """
import os, sys, types
for name, folder in zip(("discreet", "discreet.robust", "discreet.robust.sandbox"), sys.argv[1:]):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [folder]
"""
"""The packages that these files are in, without what they load: that is much more."""
_LAUNCHER = f"""{_PACKAGES}
from discreet.robust.sandbox.launcher import launch
launch([sys.executable, "-P", "-c", *sys.argv[4:], *sys.argv[1:4]])
"""
_PROGRAM = f"""{_PACKAGES}
from discreet.robust.sandbox.forkserver import main
for name in [name for name in sys.modules if name.split(".")[0] == "discreet"]:
    del sys.modules[name]
main({CONTROL})
"""
"""What `sandbox/launcher.py` and then, in a new process, `sandbox/forkserver.py` is run by."""
_SINGLE = tuple(f"{name}_THREADS" for name in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM"))


@dataclass(frozen=True)
class Limits:
    """What a block may take: seconds of time, bytes of memory beside the libraries; how many run side by side (by
    default as many as there are processors); whether every block takes all its time (`padded`).

    A function is run behind walls that it cannot pass. `trusted` is for one that you wrote, or read, on a machine that
    cannot build all of them: it is run behind those there are.
    """

    seconds: Fraction = Fraction(10)
    memory: int = 1 << 30
    workers: int | None = None
    padded: bool = False
    trusted: bool = False

    def __post_init__(self) -> None:
        time_limit = exact("seconds", self.seconds)
        if not Fraction(1, 100) <= time_limit <= LONGEST:
            raise InvalidArgument("seconds", self.seconds, f"from 0.01 to {LONGEST}", "give the time of one block")
        object.__setattr__(self, "seconds", time_limit)
        if not LEAST_MEMORY <= natural("memory", self.memory) <= MOST_MEMORY:
            bound = f"from {LEAST_MEMORY:,} to {MOST_MEMORY:,} bytes"
            raise InvalidArgument("memory", self.memory, bound, "give bytes of one block")
        if self.workers is not None and natural("workers", self.workers) > MOST_WORKERS:
            raise InvalidArgument("workers", self.workers, f"at most {MOST_WORKERS}", "run fewer blocks side by side")
        flag("padded", self.padded)
        flag("trusted", self.trusted)

    @property
    def side_by_side(self) -> int:
        """How many blocks run at the same time."""
        ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return self.workers or ours or 1


def _check_apart(masked: Sequence[str]) -> None:
    """That no file of the steward lies in what functions can read: a mask hides a name, and goes when its file is
    replaced or gets another name."""
    if masked:
        reason = "files of the data or of the books lie among the packages of Python, which functions can read"
        raise Unsupported("a function that is not trusted", reason, "have the steward move them elsewhere")


class Workers:
    """Processes that wait with the function for blocks; used in a `with`, and ended by it.

    `size` is how many numbers an answer has, None for a label; `form` what rows come as. `packed` is the function as
    bytes, where it is at hand. `hidden` files and folders are not there; with `confined` none lies among packages. With
    `confined`, no code of the function runs unless all walls stand that keep it from whatever is not its own; without,
    it runs behind those that the system can build. A `trial` answers with what became of the function, too.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        size: int | None,
        form: Form,
        limits: Limits,
        packed: bytes | None = None,
        hidden: Sequence[Path] = (),
        *,
        confined: bool = False,
        trial: bool = False,
    ) -> None:
        if form not in get_args(Form):
            raise InvalidArgument("form", form, f"one of {get_args(Form)}", "name what the function takes")
        self._limits = limits
        self._size = size
        self._function = function
        self._packed = shipped(function) if packed is None else packed
        visible = installed()
        masked = to_mask(visible, map(str, hidden))
        if confined:
            _check_apart(masked)
        self._order = {
            "path": import_path(),
            "modules": loaded_ahead(form, self._packed),
            "form": form,
            "size": size,
            "seconds": float(limits.seconds),
            "memory": limits.memory,
            "visible": visible,
            "hidden": masked,
            "required": sorted(COMPLETE) if confined else [],
            "trial": trial,
        }
        self._stopped = Event()
        self._lock = Lock()
        self._slots: list[_Slot] = []
        try:
            # All begin before one is waited for.
            for _ in range(limits.side_by_side):
                self._slots.append(_Slot(self._order, self._packed))
            for slot in self._slots:
                slot.begin(function)
        except BaseException:
            self.close()
            raise

    @property
    def missing(self) -> list[str]:
        """The walls that the system could not build."""
        return [wall for wall in WALLS if not all(wall in slot.walls for slot in self._slots)]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of them, and those that are about to take the place of one."""
        with self._lock:
            self._stopped.set()
            slots = [*self._slots]
        with ExitStack() as ends:
            for slot in slots:
                ends.callback(slot.end)

    def answers(
        self,
        block: Callable[[int], bytes | None],
        count: int,
        progress: Callable[[float], None] | None = None,
    ) -> list[bytes | None]:
        """What the function gives on each block, None where it gives nothing; `block` pickles the rows of one, or says
        None where there are none to run on."""
        found: list[bytes | None] = [None] * count
        broken: list[BaseException] = []
        slots = len(self._slots)
        # Which worker has a block follows from its number. Were it whoever is free, it would depend on how long blocks
        # before it took, and a block can tell workers apart, by addresses in memory say.
        waiting = [iter(range(place, count, slots)) for place in range(slots)]
        done = [0]
        if self._limits.padded:
            block = [block(number) for number in range(count)].__getitem__
        begun = time.monotonic()

        def serve(place: int) -> None:
            try:
                while not self._stopped.is_set():
                    number = next(waiting[place], None)
                    if number is None:
                        return
                    found[number] = self._answer(place, block(number))
                    if self._limits.padded:
                        # As all were planned, so that one that ends late does not make those after it late.
                        end = begun + (number // slots + 1) * self._period
                        self._stopped.wait(max(0.0, end - time.monotonic()))
                    with self._lock:
                        done[0] += 1
            except BaseException as error:
                broken.append(error)

        threads = [Thread(target=serve, args=(place,), daemon=True) for place in range(slots)]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(0.1)
                if progress is not None:
                    progress(done[0] / max(count, 1))
        except BaseException:
            self.close()
            raise
        if broken:
            raise broken[0]
        return found

    @property
    def _period(self) -> float:
        """Seconds from one padded block to the next."""
        return float(self._limits.seconds) + _TAIL + self._limits.memory / _TAIL_RATE

    def _answer(self, place: int, rows: bytes | None) -> bytes | None:
        answer = None
        if rows is not None:
            slot = self._slots[place]
            answer, lost = slot.answer(rows, float(self._limits.seconds))
            if lost:
                self._replace(place)
        return answer

    def _replace(self, place: int) -> None:
        """Another worker where one was lost, unless all are to end: whoever ends them ends what is in `_slots` when he
        says so, and what would come there later is ended here."""
        self._slots[place].end()
        if self._stopped.is_set():
            return
        # Where none can begin, the blocks that would go there have no answer: a failure would tell of the block that
        # lost the one before.
        with suppress(Exception):
            slot = _Slot(self._order, self._packed)
            with self._lock:
                late = self._stopped.is_set()
                if not late:
                    self._slots[place] = slot
            if late:
                slot.end()
                return
            slot.begin(self._function)


class _Slot:
    """One worker, and the socket to it."""

    def __init__(self, order: dict[str, Any], packed: bytes) -> None:
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | dict.fromkeys(_SINGLE, "1")
        # Sets have one order everywhere, whichever worker runs a block.
        environment["PYTHONHASHSEED"] = "0"
        # Arrow's own allocator, which pandas uses for texts, reserves 1 GiB at its first use: as much as a block may
        # have, so that it would depend on the layout of the process whether anything is left.
        environment["ARROW_DEFAULT_MEMORY_POOL"] = "system"
        here = Path(nursery.__file__).parent
        # The socket is its standard input: the number of a descriptor would tell workers apart.
        folders = map(str, (here.parents[1], here.parent, here))
        program = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *folders, _PROGRAM]
        self.walls: frozenset[str] = frozenset()
        self._required = frozenset(order["required"])
        self._control = ours
        with ExitStack() as undo, theirs:
            undo.callback(ours.close)
            self._process = subprocess.Popen(
                program,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
            undo.callback(self.end)
            theirs.close()
            ours.settimeout(_START)
            with suppress(OSError):
                nursery.sent(ours, json.dumps(order).encode())
                nursery.sent(ours, packed)
            undo.pop_all()

    def begin(self, function: object) -> None:
        """Wait until it is ready; raises if it cannot be."""
        try:
            said = json.loads(nursery.received(self._control))
        except (OSError, EOFError):
            raise _unloadable(function, "the process ended before that") from None
        self.walls = frozenset(said["walls"])
        if absent := sorted(self._required - self.walls):
            reason = f"this machine cannot build all walls around it, there is none of: {', '.join(absent)}"
            remedy = "allow namespaces (of users, where you are not root) and seccomp, or write Limits(trusted=True) "
            raise Unsupported("an estimate", reason, remedy + "if you wrote or read the function")
        if said["loaded"] != nursery.LOADED:
            named = said["loaded"] < len(nursery.RAISED)
            kind = f"it raises {nursery.RAISED[said['loaded']]}" if named else "the process ends or takes too long"
            raise _unloadable(function, kind)

    def answer(self, rows: bytes, seconds: float) -> tuple[bytes | None, bool]:
        """What came back, and whether the worker was lost."""
        ours, theirs = socket.socketpair()
        with ours:
            try:
                with theirs:
                    socket.send_fds(self._control, [b"b"], [theirs.fileno()])
                ours.settimeout(seconds + _GRACE)
                with suppress(OSError):
                    nursery.sent(ours, rows)
                self._control.settimeout(seconds + _GRACE)
                if nursery.received(self._control) != nursery.DONE:
                    return None, True
            except (OSError, EOFError):
                return None, True
            return _whole(ours), False

    def end(self) -> None:
        """Nothing of it is left; whoever waits for it is told so by the socket before that is closed."""
        self._process.terminate()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()


def _unloadable(function: object, reason: str) -> InvalidArgument:
    remedy = f"it refers to what is not there, or does something on the way that it may not ({reason})"
    return InvalidArgument("function", name_of(function), "such that another process can load it", remedy)


def _whole(channel: socket.socket) -> bytes | None:
    """The message that lies there, if it is whole and no longer than an answer."""
    channel.setblocking(False)
    held = bytearray()
    with suppress(OSError):
        while len(held) <= nursery.MOST + 8 and (part := channel.recv(nursery.MOST)):
            held += part
    length = int(np.frombuffer(bytes(held[:8]), dtype="<u8")[0]) if len(held) >= 8 else -1
    return bytes(held[8:]) if length == len(held) - 8 else None

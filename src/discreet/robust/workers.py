"""A function run on many blocks of rows, each in a process of its own that ends with it.

What the guarantees of `sampled.py` need of a run: the answer of a block depends on the rows of that block, the
function, and fresh randomness, and on nothing else. So each block has a new process, forked from one that loaded the
function and never ran it (`nursery.py`); it is given its own rows only, and has a limit of time and memory. A block
whose run raises, hangs, dies, asks for too much or gives what is no answer has None here, whatever the reason, and
nobody is told which blocks those were. A worker that is lost with its block is replaced before the next block begins.

The function is sent as bytes, with what it refers to (cloudpickle), before anything is charged: what cannot be sent, or
not be loaded there, is refused with the reason.

>>> import pickle
>>> with Workers(lambda rows: sum(rows) / len(rows), size=1, form="rows", limits=Limits(workers=1)) as workers:
...     found = workers.answers([pickle.dumps([1, 2, 6]), pickle.dumps([]), None].__getitem__, 3)
>>> [None if answer is None else np.frombuffer(answer).tolist() for answer in found]
[[3.0], None, None]

Time. A block takes what its run takes, up to `seconds`, so how long all of them take says something about them. With
`padded`, each takes `seconds`, whatever happens in it, the next one begins on the hour, and which worker has which
block is fixed; use it where those who ask are not trusted and can measure time, or where a function is not: a clock
tells it how long those before it took. Blocks that run side by side share a machine: choose `seconds` well above what a
block takes, so that none of them is late because of another.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib.machinery import PathFinder
from pathlib import Path
from threading import Event, Lock, Thread
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import exact, natural
from discreet.mechanisms.additive import flag
from discreet.robust import nursery

__all__ = ["Form", "Limits", "Workers", "shipped"]

Form = Literal["pandas", "arrow", "numpy", "rows"]
"""What the function is given: a DataFrame, an Arrow table, a dict of arrays, or the records as they came."""
LARGEST = 1 << 26
"""Bytes of a function with all it carries."""
LEAST_MEMORY = 1 << 24
LONGEST = 86_400
_START = 120.0
"""Seconds in which a worker must have loaded the function."""
_GRACE = 30.0
"""Seconds beyond its own limit after which a worker counts as lost."""
_TAIL = 0.25
"""Seconds that a padded block has for being ended."""
_KEPT = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
_SINGLE = tuple(f"{name}_THREADS" for name in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM"))
_MODULES = {"pandas": ["pandas"], "arrow": ["pyarrow"]}
"""What a worker loads before it forks, beside numpy: what a child loads is loaded for each block."""


@dataclass(frozen=True)
class Limits:
    """What a block may take: seconds of time, bytes of memory beside the libraries; how many run side by side (by
    default as many as there are processors); whether every block takes all its time (`padded`)."""

    seconds: Fraction = Fraction(10)
    memory: int = 1 << 30
    workers: int | None = None
    padded: bool = False

    def __post_init__(self) -> None:
        time_limit = exact("seconds", self.seconds)
        if not Fraction(1, 100) <= time_limit <= LONGEST:
            raise InvalidArgument("seconds", self.seconds, f"from 0.01 to {LONGEST}", "give the time of one block")
        object.__setattr__(self, "seconds", time_limit)
        if natural("memory", self.memory) < LEAST_MEMORY:
            raise InvalidArgument("memory", self.memory, f"at least {LEAST_MEMORY:,} bytes", "give bytes of one block")
        if self.workers is not None:
            natural("workers", self.workers)
        flag("padded", self.padded)

    @property
    def side_by_side(self) -> int:
        """How many blocks run at the same time."""
        ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return self.workers or ours or 1


class Workers:
    """Processes that wait with the function for blocks; used in a `with`, and ended by it. They do not see the files
    that are `hidden`, where the system helps with that."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        size: int | None,
        form: Form,
        limits: Limits,
        packed: bytes | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        if form not in get_args(Form):
            raise InvalidArgument("form", form, f"one of {get_args(Form)}", "name what the function takes")
        self._limits = limits
        self._size = size
        self._order = {
            "path": sys.path,
            "modules": ["numpy.random", *_MODULES.get(form, [])],
            "form": form,
            "size": size,
            "seconds": float(limits.seconds),
            "memory": limits.memory,
            "hidden": [str(path) for path in hidden],
        }
        self._function = function
        self._packed = shipped(function) if packed is None else packed
        self._stopped = Event()
        self._lock = Lock()
        self._slots: list[_Slot] = []
        try:
            # All begin before one is waited for.
            self._slots = [_Slot(self._order, self._packed) for _ in range(limits.side_by_side)]
            for slot in self._slots:
                if reason := slot.trouble():
                    raise _unloadable(function, reason)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of them."""
        self._stopped.set()
        for slot in self._slots:
            slot.end()

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
        # Whoever is free takes the next one, which depends on all before it; so not where blocks are padded.
        waiting = [iter(range(place, count, slots)) for place in range(slots)] if self._limits.padded else []
        anyone = iter(range(count))
        done = [0]

        def serve(place: int) -> None:
            try:
                while not self._stopped.is_set():
                    with self._lock:
                        number = next(waiting[place] if waiting else anyone, None)
                    if number is None:
                        return
                    found[number] = self._answer(place, block(number))
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

    def _answer(self, place: int, rows: bytes | None) -> bytes | None:
        begun = time.monotonic()
        answer = None
        if rows is not None:
            slot = self._slots[place]
            answer, lost = slot.answer(rows, float(self._limits.seconds))
            if lost and not self._stopped.is_set():
                slot.end()
                self._slots[place] = slot = _Slot(self._order, self._packed)
                if reason := slot.trouble():
                    raise _unloadable(self._function, reason)
        if self._limits.padded:
            self._stopped.wait(max(0.0, begun + float(self._limits.seconds) + _TAIL - time.monotonic()))
        return answer


class _Slot:
    """One worker, and the socket to it."""

    def __init__(self, order: dict[str, Any], packed: bytes) -> None:
        ours, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | dict.fromkeys(_SINGLE, "1")
        # Sets have one order everywhere: which worker runs a block depends on how long others took.
        environment["PYTHONHASHSEED"] = "0"
        program = [sys.executable, "-P", str(Path(nursery.__file__)), str(theirs.fileno())]
        self._control = ours
        self._process = subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        ours.settimeout(_START)
        with suppress(OSError):
            nursery.sent(ours, json.dumps(order).encode())
            nursery.sent(ours, packed)

    def trouble(self) -> str | None:
        """Why it cannot begin, if it cannot."""
        try:
            said = nursery.received(self._control)
        except (OSError, EOFError):
            return "the process ended while loading it"
        return None if said == nursery.READY else said.decode(errors="replace")

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
        """Nothing of it is left."""
        self._control.close()
        self._process.kill()
        self._process.wait()


def shipped(function: object) -> bytes:
    """A function as bytes that another process can load; with the code of its module where that is not to be found."""
    import cloudpickle

    if not callable(function):
        raise InvalidArgument("function", function, "callable", "give a function of rows")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    by_value = module is not None and not _findable(module)
    reason = ""
    try:
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        packed: bytes = cloudpickle.dumps(function)
        if len(packed) <= LARGEST:
            return packed
        reason = f"it carries {len(packed) >> 20} MB along"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    finally:
        if by_value:
            with suppress(ValueError):
                cloudpickle.unregister_pickle_by_value(module)
    remedy = f"leave out what it refers to that stays in this process ({reason})"
    raise InvalidArgument("function", _named(function), "such that another process can be given it", remedy)


def _findable(module: ModuleType) -> bool:
    """Whether another process that is told its name finds this very module; what is no file needs not be found."""
    if getattr(module, "__file__", None) is None or module.__name__ == "__main__":
        return True
    places: Sequence[str] | None = sys.path
    spec, name = None, ""
    for part in module.__name__.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = PathFinder.find_spec(name, places)
        if spec is None:
            return False
        places = spec.submodule_search_locations
    return spec is not None and spec.origin == module.__file__


def _unloadable(function: object, reason: str) -> InvalidArgument:
    remedy = f"make what it refers to importable there ({reason})"
    return InvalidArgument("function", _named(function), "such that another process can load it", remedy)


def _named(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _whole(channel: socket.socket) -> bytes | None:
    """The message that lies there, if it is whole and no longer than an answer."""
    channel.setblocking(False)
    held = bytearray()
    with suppress(OSError):
        while len(held) <= nursery.MOST + 8 and (part := channel.recv(nursery.MOST)):
            held += part
    length = int(np.frombuffer(bytes(held[:8]), dtype="<u8")[0]) if len(held) >= 8 else -1
    return bytes(held[8:]) if length == len(held) - 8 else None

"""A function on its way to another process: as bytes, with what that process cannot find by itself.

The other process sees the installation of Python, its packages and its libraries (`installed`), and nothing else of the
machine. So what the function refers to there goes by name, and what it refers to in other modules, a script beside the
notebook say, goes along as code (cloudpickle).

Pickling runs in this process, which is that of whoever wrote the function. Unpickling may run anything that the bytes
say: they are loaded nowhere but in a child that is walled in (`sandbox/forkserver.py`).
"""

from __future__ import annotations

import io
import os
import sys
import sysconfig
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType, ModuleType
from typing import Any

from discreet.core.errors import InvalidArgument

__all__ = ["import_path", "installed", "name_of", "shipped"]

LARGEST = 1 << 26
"""Bytes of a function with all it carries."""
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_CLOCKS = ("/usr/share/zoneinfo", "/etc/localtime")
MOST_CODE, DEEPEST_CODE = 1 << 22, 200
"""Constants, names and bytes of a function's code, each counted wherever it occurs, and how deep constants may lie in
each other: Python takes the hash of code by all of that, and code that has the same constant twice on each of n levels
has 2ⁿ of them."""
_LONGEST_NAME = 1000
_SENDING = Lock()
"""What is sent by value is known to cloudpickle by a list that all threads share."""
_BY_VALUE: list[ModuleType] = []
"""What is on that list because of a function that is being sent."""


def shipped(function: object) -> bytes:
    """A function as bytes that another process can load."""
    import cloudpickle

    if not callable(function):
        raise InvalidArgument("function", function, "callable", "give a function of rows")
    reason = ""
    with _SENDING:
        try:
            already = cloudpickle.list_registry_pickle_by_value()
            for module in _own_modules():
                if module.__name__ not in already:
                    _BY_VALUE.append(module)
                    cloudpickle.register_pickle_by_value(module)
            packed = _pickled(function)
            if len(packed) <= LARGEST:
                return packed
            reason = f"it carries {len(packed) >> 20} MB along"
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        finally:
            _forget()
    remedy = f"leave out what it refers to that stays in this process ({reason})"
    raise InvalidArgument("function", name_of(function), "such that another process can be given it", remedy)


def _pickled(function: object) -> bytes:
    """By cloudpickle, once it is known that the code of each function on the way ends somewhere."""
    import cloudpickle

    def checked(pickler: Any, thing: object) -> Any:
        if isinstance(thing, FunctionType):
            _check_code(thing.__code__)
        return cloudpickle.Pickler.reducer_override(pickler, thing)

    written = io.BytesIO()
    checking: Any = type("CheckingPickler", (cloudpickle.Pickler,), {"reducer_override": checked})
    checking(written).dump(function)
    return written.getvalue()


def _check_code(code: CodeType) -> None:
    """That it is not too much, with the code and the tuples inside it."""
    left = MOST_CODE
    waiting: list[tuple[object, int]] = [(code, 0)]
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, CodeType):
            left -= len(part.co_code) + len(part.co_names) + len(part.co_varnames)
            part = part.co_consts
        if isinstance(part, tuple | frozenset):
            left -= len(part)
            if left < 0 or depth > DEEPEST_CODE:
                raise ValueError(f"more than {MOST_CODE:,} parts of code, or {DEEPEST_CODE} in each other")
            waiting += [(each, depth + 1) for each in part]


def _forget() -> None:
    """Nothing is being sent any more."""
    import cloudpickle

    while _BY_VALUE:
        with suppress(ValueError):
            cloudpickle.unregister_pickle_by_value(_BY_VALUE.pop())


def _begin_anew() -> None:
    """In a process that was forked while a thread, which is not there any more, was sending something."""
    global _SENDING
    _SENDING = Lock()
    if _BY_VALUE:
        _forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@cache
def installed() -> list[str]:
    """Files and folders of Python, its packages, its libraries, and this one: what a function may read."""
    import site

    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), sysconfig.get_config_var("LIBDIR") or ""]
    paths += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    paths += [str(Path(__file__).parents[1]), *_LIBRARIES, *_CLOCKS]
    return [path for path in dict.fromkeys(paths) if path and os.path.exists(path)]


def _own_modules() -> list[ModuleType]:
    """Modules of this process that lie outside the installation: a worker cannot import them."""
    folders = tuple(path + os.sep for path in installed())
    real = tuple(os.path.realpath(path) + os.sep for path in installed())
    own = []
    for name, module in sys.modules.copy().items():
        file = getattr(module, "__file__", None)
        if not isinstance(module, ModuleType) or not isinstance(file, str) or file.startswith(folders):
            continue
        if name not in ("__main__", "__mp_main__") and module.__name__ == name:
            own += [] if os.path.realpath(file).startswith(real) else [module]
    return own


def import_path() -> list[str]:
    """Where a worker looks for modules: folders of the installation, and those that hold a part of it."""
    visible = installed()
    return [path for path in sys.path if path and any(_inside(path, v) or _inside(v, path) for v in visible)]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def name_of(function: object) -> str:
    """What a function is called, or how that begins."""
    return str(getattr(function, "__qualname__", type(function).__name__))[:_LONGEST_NAME]

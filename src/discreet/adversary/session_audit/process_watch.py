"""Whether anything that all sessions of a process share was replaced while one of them was asked, or looked at.

Shared are the classes and functions of this library, and whatever else can be called. A snapshot holds what each name
stood for, by module, class and name; whoever replaces a method for a while changes what every other thread runs in that
while, so it is compared in the middle of things: before a statement is run, and when a search for a norm reads its
counts (`Watched`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from discreet.adversary.session_audit.sensitivity import CheckFailed

__all__ = ["ProcessWatch", "Watched"]


class ProcessWatch:
    """What names of this library stood for when it was made; functions that tests replaced before are as they were."""

    def __init__(self) -> None:
        self._known = _snapshot()

    def check(self) -> None:
        """A `CheckFailed` where a name stands for something else by now."""
        now = _snapshot()
        for name, value in self._known.items():
            if now.get(name, value) is not value:
                raise CheckFailed("process", f"{name} was replaced for the whole process")


class Watched(dict[Any, Any]):
    """Counts that look at the process when they are read."""

    def __init__(self, counts: Mapping[Any, Any], watch: ProcessWatch) -> None:
        super().__init__(counts)
        self._watch, self._looked = watch, False

    def items(self) -> Any:
        """As of a dict, after a look."""
        if not self._looked:
            self._looked = True
            self._watch.check()
        return super().items()


def _snapshot() -> dict[str, Any]:
    """All that names of modules stand for and can be called, theirs or imported, and all code of their classes."""
    found: dict[str, Any] = {}
    for module_name, module in sys.modules.copy().items():
        if not module_name.startswith("discreet."):
            continue
        for name, value in vars(module).copy().items():
            if callable(value):
                found[f"{module_name}.{name}"] = value
            if isinstance(value, type) and value.__module__ == module_name:
                parts = vars(value).copy().items()
                found |= {f"{module_name}.{name}.{part}": held for part, held in parts if _is_code(held)}
    return found


def _is_code(value: object) -> bool:
    """Whether something that a class holds is called, or asked when it is looked up: a method, plain or cached, a
    property."""
    return callable(value) or hasattr(type(value), "__get__")

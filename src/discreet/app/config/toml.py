"""Writing TOML: the standard library reads it only.

Numbers given as text are written as they were given, so that no digit is lost on the way.

>>> print(written({"ledger": "books.ledger", "budget": {"epsilon": Number("3"), "delta": Number("1e-6")}}), end="")
ledger = "books.ledger"
<BLANKLINE>
[budget]
epsilon = 3
delta = 1e-6

What people wrote stays, however they wrote it.

>>> print(rewritten("# ours\\n[budget]\\nepsilon = 1 # so far\\n", {"budget": {"epsilon": Number("2")}}), end="")
# ours
[budget]
epsilon = 2 # so far
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import tomlkit

__all__ = ["Number", "rewritten", "written"]

_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Number(str):
    """The text of an exact number."""


def written(document: Mapping[str, Any]) -> str:
    """The document as text: plain values first, then its tables."""
    return tomlkit.dumps(_value(document))


def rewritten(text: str, changes: Mapping[str, Mapping[str, Any]]) -> str:
    """The text with other values for some keys of tables that it has, and all else as it was."""
    document = tomlkit.parse(text)
    for table, values in changes.items():
        held: MutableMapping[str, Any] = document[table]
        held.update(_value(values))
    return tomlkit.dumps(document)


def _value(value: Any) -> Any:
    """What tomlkit writes as the value; it has no way to write a number but as it was read."""
    if isinstance(value, Number):
        return tomlkit.value(value) if _NUMBER.fullmatch(value) else str(value)
    if isinstance(value, Mapping):
        return {key: _value(inner) for key, inner in value.items()}
    return [_value(inner) for inner in value] if isinstance(value, list | tuple) else value

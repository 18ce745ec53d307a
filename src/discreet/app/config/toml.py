"""Writing TOML: the standard library reads it only.

Numbers given as text are written as they were given, so that no digit is lost on the way.

>>> print(written({"ledger": "books.ledger", "budget": {"epsilon": Number("3"), "delta": Number("1e-6")}}), end="")
ledger = "books.ledger"
<BLANKLINE>
[budget]
epsilon = 3
delta = 1e-6
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

__all__ = ["Number", "written"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Number(str):
    """The text of an exact number."""


def written(document: Mapping[str, Any], under: tuple[str, ...] = ()) -> str:
    """The document as text: plain values first, then its tables."""
    plain = [f"{_key(key)} = {_value(value)}\n" for key, value in document.items() if not isinstance(value, Mapping)]
    parts = ["".join(plain)] if plain or not under else []
    for key, value in document.items():
        if isinstance(value, Mapping):
            path = (*under, key)
            own = not value or any(not isinstance(inner, Mapping) for inner in value.values())
            head = f"[{'.'.join(map(_key, path))}]\n" if own else ""
            parts.append(head + written(value, path))
    return "\n".join(part for part in parts if part)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, Number):
        return str(value) if _NUMBER.fullmatch(value) else _text(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

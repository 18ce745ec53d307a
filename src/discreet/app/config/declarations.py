"""What a steward says of columns on the command line, read as exact numbers and typed values.

>>> bounds(["age=0:120", "cost=-5:99.5"])
{'age': ('0', '120'), 'cost': ('-5', '99.5')}
>>> listed(['city=A,"B, north",C'])
{'city': ['A', 'B, north', 'C']}
>>> pairs("public", ["cities=data/cities.csv"])
{'cities': 'data/cities.csv'}
>>> linked("order_id=orders.id")
('order_id', 'orders', 'id')
>>> typed("site", "integer", ["1", "2"]), typed("rate", "decimal(4,2)", ["0.10"])
([1, 2], ['0.10'])
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from discreet.app.config.toml import Number
from discreet.core.errors import InvalidArgument
from discreet.sql.decimals import Decimals

__all__ = ["bounds", "linked", "listed", "pairs", "typed"]


def pairs(argument: str, texts: Iterable[str]) -> dict[str, str]:
    """Texts of the form name=…, each name once."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, rest = text.partition("=")
        if not separator or not name.strip() or not rest.strip():
            raise InvalidArgument(argument, text, "of the form name=…", f"write --{argument} {_EXAMPLES[argument]}")
        if name.strip() in found:
            raise InvalidArgument(argument, name.strip(), "named once", "put everything about it into one option")
        found[name.strip()] = rest.strip()
    return found


def bounds(texts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Ends of columns, kept as texts: they are read as exact fractions, never as floats."""
    found = {}
    for name, text in pairs("bounds", texts).items():
        low, separator, high = text.partition(":")
        if not separator or not low.strip() or not high.strip():
            raise InvalidArgument("bounds", text, "low:high", f"write --bounds {_EXAMPLES['bounds']}")
        found[name] = (low.strip(), high.strip())
    return found


def listed(texts: Iterable[str]) -> dict[str, list[str]]:
    """Values of columns, separated by commas; a value with a comma is put in double quotes."""
    found = {}
    for name, text in pairs("values", texts).items():
        [items] = csv.reader([text], skipinitialspace=True)
        found[name] = [item.strip() for item in items]
    return found


def linked(text: str) -> tuple[str, str, str]:
    """A column, and the column of another table that it points to."""
    [(column, target)] = pairs("link", [text]).items()
    table, separator, key = target.rpartition(".")
    if not separator or not table or not key:
        raise InvalidArgument("link", text, "column=table.column", f"write --link {_EXAMPLES['link']}")
    return column, table, key


def typed(column: str, kind: str, texts: Iterable[str]) -> list[Any]:
    """The values that the texts stand for in a column of this type."""
    given = list(texts)
    try:
        return [(_decimal if Decimals.named(kind) else _READERS[kind])(text) for text in given]
    except (KeyError, ArithmeticError, ValueError):
        raise InvalidArgument(f"values of {column}", given, f"of type {kind}", "list values it can hold") from None


def _decimal(text: str) -> Number:
    """A number with the digits that it is written with."""
    return Number(f"{Decimal(text):f}")


def _boolean(text: str) -> bool:
    return {"true": True, "false": False, "1": True, "0": False}[text.lower()]


_READERS: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "real": float,
    "boolean": _boolean,
    "text": str,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}
_EXAMPLES = {
    "bins": "age=0:18:65",
    "bounds": "age=0:120",
    "csv": "encoding=latin-1",
    "link": "order_id=orders.id",
    "public": "cities=cities.csv",
    "types": "age=integer",
    "values": "city=A,B,C",
}

"""Expressions computed on listed values, in a DuckDB of our own that never sees a table.

What a key can be follows from declared values by the very functions the engine will run, so the values listed here are
those that will come back, to the last bit.

>>> from discreet.sql.functions import call
>>> city = Ref("city", "text")
>>> computed([call("upper", city)], {city: ["Oslo", None]})
[('OSLO',), (None,)]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from threading import Lock
from typing import Any

from discreet.sql.catalog import Type
from discreet.sql.dialect import quoted
from discreet.sql.plan import Expression, Ref
from discreet.sql.selection import text_of

__all__ = ["computed"]

TYPES: dict[Type, str] = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_lock = Lock()
_connections: dict[int, Any] = {}
"""One connection to an empty database for this process; a forked one opens its own."""


def computed(expressions: Sequence[Expression], columns: Mapping[Ref, Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The expressions on each row of the columns, which are equally long, in their order."""
    listed = ", ".join(f"UNNEST(CAST(? AS {TYPES[ref.type]}[])) AS {quoted(ref.name)}" for ref in columns)
    wanted = ", ".join(text_of(expression) for expression in expressions)
    values = [[float(v) if isinstance(v, Fraction) else v for v in column] for column in columns.values()]
    with _lock:
        rows: list[tuple[Any, ...]] = (
            _connection().execute(f"SELECT {wanted} FROM (SELECT {listed})", values).fetchall()
        )
    return rows


def _connection() -> Any:
    process = os.getpid()
    if process not in _connections:
        import duckdb

        _connections.clear()
        _connections[process] = duckdb.connect(":memory:", config={"threads": 1})
    return _connections[process]

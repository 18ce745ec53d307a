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

from discreet.core.processes import forever
from discreet.sql.catalog import Type
from discreet.sql.dialect import quoted
from discreet.sql.plan import Expression, Ref
from discreet.sql.selection import text_of

__all__ = ["computed", "desk"]

TYPES: dict[Type, str] = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_lock = Lock()
_connections: list[Any] = []
"""One connection to an empty database, for the whole process."""


def desk() -> Any:
    """A cursor of an empty database in memory, where values that may be seen are worked on."""
    with _lock:
        if not _connections:
            import duckdb

            _connections.append(duckdb.connect(":memory:", config={"threads": 1}))
        return _connections[0].cursor()


def computed(expressions: Sequence[Expression], columns: Mapping[Ref, Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The expressions on each row of the columns, which are equally long, in their order."""
    listed = ", ".join(f"UNNEST(CAST(? AS {TYPES[ref.type]}[])) AS {quoted(ref.name)}" for ref in columns)
    wanted = ", ".join(text_of(expression) for expression in expressions)
    values = [[float(v) if isinstance(v, Fraction) else v for v in column] for column in columns.values()]
    rows: list[tuple[Any, ...]] = desk().execute(f"SELECT {wanted} FROM (SELECT {listed})", values).fetchall()
    return rows


def _after_fork_in_child() -> None:
    global _lock
    _lock = Lock()
    while _connections:
        forever(_connections.pop())


os.register_at_fork(after_in_child=_after_fork_in_child)

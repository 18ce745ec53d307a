"""Expressions computed on listed values, in a DuckDB of our own that never sees a table.

What a key can be follows from declared values by the very functions the engine will run, so the values listed here are
those that will come back, to the last bit.

>>> from discreet.sql.functions.registry import call
>>> city = Ref("city", "text")
>>> computed([call("upper", city)], {city: ["Oslo", None]})
[('OSLO',), (None,)]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from threading import Lock
from typing import Any

from discreet.core.forks import forever
from discreet.sql.catalog import PlainType, Type
from discreet.sql.decimals import LONG_DIGITS, Decimals
from discreet.sql.plan import Expression, Ref
from discreet.sql.statement.dialect import quoted
from discreet.sql.statement.naming import Names, substituted
from discreet.sql.statement.selection import text_of

__all__ = ["computed", "desk"]

TYPES: dict[PlainType, str] = {
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
    names = Names()
    called = {ref.name: names.new() for ref in columns}
    kinds = {ref: f"{_engine_type(ref.type)}[]" for ref in columns}
    listed = ", ".join(f"UNNEST(CAST(? AS {kind})) AS {quoted(called[ref.name])}" for ref, kind in kinds.items())
    wanted = ", ".join(text_of(substituted(expression, called)) for expression in expressions)
    values = [[_given(value, ref.type) for value in column] for ref, column in columns.items()]
    rows: list[tuple[Any, ...]] = desk().execute(f"SELECT {wanted} FROM (SELECT {listed})", values).fetchall()
    return rows


def _engine_type(kind: Type) -> str:
    if isinstance(kind, Decimals):
        return TYPES["integer"] if kind.precision <= LONG_DIGITS else "HUGEINT"
    return TYPES[kind]


def _given(value: Any, kind: Type) -> Any:
    """A value as statements hold it: a decimal as its units, NULL where it is no whole number of them."""
    if isinstance(kind, Decimals) and value is not None:
        # The decimal that is meant by a double is its shortest.
        exact = Fraction(repr(value)) if isinstance(value, float) and isfinite(value) else value
        number = Fraction(exact) if isinstance(exact, int | Fraction | Decimal) else None
        return kind.units(number) if number is not None and kind.holds(number) else None
    return float(value) if isinstance(value, Fraction) else value


def _after_fork_in_child() -> None:
    global _lock
    _lock = Lock()
    while _connections:
        forever(_connections.pop())


os.register_at_fork(after_in_child=_after_fork_in_child)

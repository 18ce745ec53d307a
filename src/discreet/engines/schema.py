"""What DuckDB's types mean to queries, and how a column is read as a declared type.

Types come from the schema or from the steward. Reading a value never fails: what does not fit its type is NULL.

>>> reading("age", "VARCHAR", "integer")
Reading(name='age', type='integer', sql='TRY_CAST("age" AS BIGINT)', family='integer')
>>> reading("id", "UUID", None)
Reading(name='id', type='text', sql='CAST("id" AS VARCHAR)', family='text')
>>> reading("tags", "VARCHAR[]", None) is None
True
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import get_args

from discreet.core.errors import InvalidArgument
from discreet.sql.catalog import Type

__all__ = ["Reading", "quoted", "reading", "text", "type_of"]

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_TYPES: dict[str, Type] = {
    **dict.fromkeys([*_INTEGERS, *(f"U{name}" for name in _INTEGERS)], "integer"),
    **dict.fromkeys(["FLOAT", "DOUBLE", "DECIMAL"], "real"),
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID", "JSON"], "text"),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"], "timestamp"),
    **dict.fromkeys(["TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"], "timestamp"),
    "BOOLEAN": "boolean",
    "DATE": "date",
}
_ENGINE: dict[Type, str] = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_AS_TEXT = {
    "ENUM": "CAST({} AS VARCHAR)",
    "UUID": "CAST({} AS VARCHAR)",
    "JSON": "CAST({} AS VARCHAR)",
}
# A zone only says how to show a moment; the moments themselves are kept, in UTC.
_IN_UTC = {
    "TIMESTAMP WITH TIME ZONE": "CASE WHEN ISFINITE({0}) THEN MAKE_TIMESTAMP(EPOCH_US({0})) END",
    "TIMESTAMPTZ_NS": "MAKE_TIMESTAMP_NS(EPOCH_NS({0}))",
}
# What queries cannot use as it is, but a declared type can make something of, through text.
_DECLARABLE = {"BLOB": "DECODE({}, 'replace')", "TIME": "CAST({} AS VARCHAR)", '"NULL"': "CAST({} AS VARCHAR)"}
_NUMBERS, _MOMENTS = {"integer", "real", "boolean"}, {"date", "timestamp"}


@dataclass(frozen=True)
class Reading:
    """A column that queries can use: its name, its type, and the expression that reads it."""

    name: str
    type: Type
    sql: str
    family: str
    """What it shares with all columns whose values compare with its own without rounding."""

    def of_units(self) -> Reading:
        """The same for a column of units: NaN and infinities name nobody."""
        if self.type != "real" or self.family == "DECIMAL":
            return self
        return replace(self, sql=f"CASE WHEN ISFINITE({self.sql}) THEN {self.sql} END")


def reading(name: str, kind: str, declared: Type | None) -> Reading | None:
    """How a column of the engine's type `kind` is read; None if queries cannot use it."""
    if declared is not None and declared not in get_args(Type):
        raise InvalidArgument("types", declared, f"one of {', '.join(get_args(Type))}", f"correct it for {name}")
    family = kind.upper() if kind.endswith("]") else kind.upper().split("(")[0]
    column = quoted(name)
    if family not in _TYPES:
        if declared is None:
            return None
        if family not in _DECLARABLE:
            raise InvalidArgument("types", kind, "convertible", f"leave {name} out, or take it apart beforehand")
        known: Type = "text"
        plain = _DECLARABLE[family].format(column)
    else:
        known = _TYPES[family]
        plain = {**_AS_TEXT, **_IN_UTC}.get(family, "{0}").format(column)
    if declared is None or declared == known:
        return Reading(name, known, plain, _family(family, known))
    if "text" not in (known, declared) and not {known, declared} <= _NUMBERS and not {known, declared} <= _MOMENTS:
        raise InvalidArgument("types", declared, f"convertible from {known}", f"declare {name} otherwise")
    if known in _MOMENTS:
        # Moments far outside the calendar cannot always be written down.
        engine = _ENGINE[known]
        plain = f"TRY_CAST({plain} AS {engine})"
        plain = f"CASE WHEN {plain} >= {engine} '0001-01-01' AND {plain} < {engine} '9999-12-31' THEN {plain} END"
    return Reading(name, declared, f"TRY_CAST({plain} AS {_ENGINE[declared]})", declared)


def type_of(values: Iterable[object]) -> Type | None:
    """The type that declared values have in common; None if there is none."""
    kinds = {_type(value) for value in values if value is not None}
    if kinds == {"integer", "real"}:
        return "real"
    return kinds.pop() if len(kinds) == 1 else None


def _type(value: object) -> Type | None:
    # True is a whole number to Python and a moment is a day: the narrower comes first.
    known: tuple[tuple[type | tuple[type, ...], Type], ...] = (
        (bool, "boolean"),
        (int, "integer"),
        ((float, Fraction, Decimal), "real"),
        (str, "text"),
        (datetime.datetime, "timestamp"),
        (datetime.date, "date"),
    )
    return next((kind for form, kind in known if isinstance(value, form)), None)


def _family(engine: str, known: Type) -> str:
    return engine if engine == "DECIMAL" or known == "timestamp" else known


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"

"""What DuckDB's types mean to queries, and how a column is read as a declared type.

Types come from the schema or from the steward. Reading a value never fails: what does not fit its type is NULL. A value
that names a person is read only if no other value is read alike.

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
from dataclasses import dataclass, field, replace
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
_WITHOUT_ZONE = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "TIMESTAMPTZ_NS": "TIMESTAMP_NS"}
# Compared with others of their kind, these are brought to a type that cannot hold all of both.
_APART = {"HUGEINT", "UHUGEINT", "DECIMAL"}
# When a text {0} says just what it is read as, {1}. Decimals of 15 digits are distinct as floating-point numbers.
_SPELLED: dict[str, str] = {
    "integer": r"REGEXP_FULL_MATCH({0}, '\s*[+-]?[0-9]+(\.0*)?\s*')",
    "real": r"REGEXP_FULL_MATCH({0}, '\s*[+-]?0*[0-9.]{{1,15}}\s*')",
    **dict.fromkeys(["boolean", "date", "timestamp"], "CAST({1} AS VARCHAR) = {0}"),
}
_NUMBERS, _MOMENTS = {"integer", "real", "boolean"}, {"date", "timestamp"}


@dataclass(frozen=True)
class Reading:
    """A column that queries can use: its name, its type, and the expression that reads it."""

    name: str
    type: Type
    sql: str
    family: str
    """What it shares with all columns whose values compare with its own without rounding."""
    exact: tuple[str, ...] = field(default=(), repr=False)
    """Conditions under which no other value is read alike, but for other spellings of one number."""
    stored: str = field(default="", repr=False)
    """The engine's type of the expression."""

    def of_units(self, replaced: bool = False) -> Reading:
        """The same for a column of units: what is not read exactly names nobody, nor do NaN and infinities.

        If bad bytes of texts were `replaced` by "?", no text with a "?" names anybody.
        """
        marked = (f"NOT CONTAINS({self.sql}, '?')",) if replaced and self.type == "text" else ()
        return self._where(*self.exact, *marked)

    def of_links(self, replaced: bool = False) -> Reading:
        """The same for a column that links rows to owners, which queries compare in their own type."""
        read = self.of_units(replaced)
        if self.stored == _ENGINE[self.type]:
            return read
        return read._where(f"TRY_CAST(TRY_CAST({self.sql} AS {_ENGINE[self.type]}) AS {self.stored}) = {self.sql}")

    def _where(self, *conditions: str) -> Reading:
        said = f"CASE WHEN {' AND '.join(conditions)} THEN {self.sql} END"
        return replace(self, sql=said) if conditions else self


def reading(name: str, kind: str, declared: Type | None) -> Reading | None:
    """How a column of the engine's type `kind` is read; None if queries cannot use it."""
    if declared is not None and declared not in get_args(Type):
        raise InvalidArgument("types", declared, f"one of {', '.join(get_args(Type))}", f"correct it for {name}")
    engine = kind.upper() if kind.endswith("]") else kind.upper().split("(")[0]
    column = quoted(name)
    if engine not in _TYPES:
        if declared is None:
            return None
        if engine not in _DECLARABLE:
            raise InvalidArgument("types", kind, "convertible", f"leave {name} out, or take it apart beforehand")
        known: Type = "text"
        plain = _DECLARABLE[engine].format(column)
    else:
        known = _TYPES[engine]
        plain = {**_AS_TEXT, **_IN_UTC}.get(engine, "{0}").format(column)
    stored = _ENGINE["text"] if known == "text" else _WITHOUT_ZONE.get(engine, kind)
    exact: tuple[str, ...] = (f"ISFINITE({plain})",) if engine in ("FLOAT", "DOUBLE") else ()
    if engine == "BLOB":
        exact = (f"ENCODE({plain}) = {column}",)
    family = _family(engine, kind, known)
    if declared is None or declared == known == family:
        return Reading(name, known, plain, family, exact, stored)
    if "text" not in (known, declared) and not {known, declared} <= _NUMBERS and not {known, declared} <= _MOMENTS:
        raise InvalidArgument("types", declared, f"convertible from {known}", f"declare {name} otherwise")
    value = plain
    if known in _MOMENTS:
        # Moments far outside the calendar cannot always be written down.
        moment = _ENGINE[known]
        within = f"TRY_CAST({plain} AS {moment})"
        value = f"CASE WHEN {within} >= {moment} '0001-01-01' AND {within} < {moment} '9999-12-31' THEN {within} END"
    read = f"TRY_CAST({value} AS {_ENGINE[declared]})"
    exact += (_SPELLED[declared].format(plain, read) if known == "text" else f"TRY_CAST({read} AS {stored}) = {plain}",)
    return Reading(name, declared, read, declared, exact, _ENGINE[declared])


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


def _family(engine: str, kind: str, known: Type) -> str:
    apart = engine in _APART or (known == "timestamp" and engine != _ENGINE[known])
    return kind.upper() if apart else known


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"

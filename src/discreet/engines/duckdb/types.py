"""What DuckDB's types mean to queries, and how a column is read as a declared type.

Types come from the schema or from the steward. Reading a value never fails: what does not fit its type is NULL. That is
established here: files and frames can hold decimals with more digits than their type says. Times of day are not read:
DuckDB fails on one that no day has. A value that names a person is read only if no other value is read alike.

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

from discreet.core.errors import InvalidArgument
from discreet.sql.catalog import PLAIN_TYPES, PlainType, Type, is_number, type_named
from discreet.sql.decimals import LONG_DIGITS, Decimals
from discreet.sql.statement.dialect import quoted

__all__ = ["Reading", "reading", "text", "type_of"]

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_TYPES: dict[str, Type] = {
    **dict.fromkeys([*_INTEGERS, *(f"U{name}" for name in _INTEGERS)], "integer"),
    **dict.fromkeys(["FLOAT", "DOUBLE"], "real"),
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID", "JSON"], "text"),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"], "timestamp"),
    **dict.fromkeys(["TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"], "timestamp"),
    "BOOLEAN": "boolean",
    "DATE": "date",
}
_ENGINE: dict[PlainType, str] = {
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
_DECLARABLE = {"BLOB": "DECODE({}, 'replace')", '"NULL"': "TRY_CAST({} AS VARCHAR)"}
_WITHOUT_ZONE = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "TIMESTAMPTZ_NS": "TIMESTAMP_NS"}
# Compared with others of their kind, these are brought to a type that cannot hold all of both.
_APART = {"HUGEINT", "UHUGEINT", "DECIMAL"}
# When a text {0} says just what it is read as, {1}. Decimals of 15 digits are distinct as floating-point numbers.
_SPELLED: dict[str, str] = {
    "integer": r"REGEXP_FULL_MATCH({0}, '\s*[+-]?[0-9]+(\.0*)?\s*')",
    "real": r"REGEXP_FULL_MATCH({0}, '\s*[+-]?0*[0-9.]{{1,15}}\s*')",
    **dict.fromkeys(["boolean", "date", "timestamp"], "CAST({1} AS VARCHAR) = {0}"),
}
_MOMENTS = {"date", "timestamp"}
_DOUBLE_DIGITS = 15
"""A decimal of so many digits, as the double nearest to it, times a power of ten is less than half a unit off."""


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
        engine = _engine_type(self.type)
        if self.stored == engine:
            return read
        return read._where(f"TRY_CAST(TRY_CAST({self.sql} AS {engine}) AS {self.stored}) = {self.sql}")

    def _where(self, *conditions: str) -> Reading:
        said = f"CASE WHEN {' AND '.join(conditions)} THEN {self.sql} END"
        return replace(self, sql=said) if conditions else self


def reading(name: str, kind: str, declared: Type | None) -> Reading | None:
    """How a column of the engine's type `kind` is read; None if queries cannot use it. Decimals are read as whole
    numbers of their units."""
    wanted = None if declared is None else type_named(declared)
    if declared is not None and wanted is None:
        known_types = ", ".join((*PLAIN_TYPES, "decimal(precision, scale)"))
        raise InvalidArgument("types", declared, f"one of {known_types}", f"correct it for {name}")
    declared = wanted
    engine = kind.upper() if kind.endswith("]") else kind.upper().split("(")[0]
    column = quoted(name)
    decimals = Decimals.named(kind)
    if engine not in _TYPES and decimals is None:
        if declared is None:
            return None
        if engine not in _DECLARABLE:
            raise InvalidArgument("types", kind, "convertible", f"leave {name} out, or take it apart beforehand")
        known: Type = "text"
        plain = _DECLARABLE[engine].format(column)
    else:
        known = decimals or _TYPES[engine]
        plain = {**_AS_TEXT, **_IN_UTC}.get(engine, "{0}").format(column)
        plain = plain if decimals is None else _held(column, *_ends(decimals))
        plain = _held(plain, *_CALENDAR) if engine == "TIMESTAMP" else plain
    stored = _ENGINE["text"] if known == "text" else _WITHOUT_ZONE.get(engine, kind)
    exact: tuple[str, ...] = (f"ISFINITE({plain})",) if engine in ("FLOAT", "DOUBLE") else ()
    if engine == "BLOB":
        exact = (f"ENCODE({plain}) = {column}",)
    family = _family(engine, kind, known)
    if decimals is not None and declared in (None, decimals):
        return Reading(name, decimals, _units(plain, decimals), family, exact, _engine_type(decimals))
    if declared is None or declared == known == family:
        return Reading(name, known, plain, family, exact, stored)
    if not _is_convertible(known, declared):
        raise InvalidArgument("types", declared, f"convertible from {known}", f"declare {name} otherwise")
    value = plain
    if known in _MOMENTS:
        # Moments far outside the calendar cannot always be written down.
        moment = _engine_type(known)
        within = f"TRY_CAST({plain} AS {moment})"
        value = f"CASE WHEN {within} >= {moment} '0001-01-01' AND {within} < {moment} '9999-12-31' THEN {within} END"
    read = f"TRY_CAST({value} AS {declared.upper() if isinstance(declared, Decimals) else _ENGINE[declared]})"
    if declared == "text" and engine in ("FLOAT", "DOUBLE"):
        # Written like whole numbers, for in frames one missing value turns whole numbers into floats.
        whole = f"ABS({plain}) < {1 << 53} AND {plain} = TRUNC({plain})"
        read = f"CASE WHEN {whole} THEN TRY_CAST(TRY_CAST({plain} AS BIGINT) AS VARCHAR) ELSE {read} END"
    exact += (_spelled(declared, plain, read) if known == "text" else f"TRY_CAST({read} AS {stored}) = {plain}",)
    if isinstance(declared, Decimals):
        return Reading(name, declared, _units(read, declared), declared.upper(), exact, _engine_type(declared))
    return Reading(name, declared, read, declared, exact, _ENGINE[declared])


def _is_convertible(known: Type, declared: Type) -> bool:
    numbers = all(is_number(kind) or kind == "boolean" for kind in (known, declared))
    return numbers or "text" in (known, declared) or {known, declared} <= _MOMENTS


def _spelled(declared: Type, plain: str, read: str) -> str:
    """When a text says just what it is read as."""
    if isinstance(declared, Decimals):
        return rf"REGEXP_FULL_MATCH({plain}, '\s*[+-]?[0-9]*(\.[0-9]{{0,{declared.scale}}}0*)?\s*')"
    return _SPELLED[declared].format(plain, read)


def _engine_type(kind: Type) -> str:
    """The engine's type for values of ours; of decimals, for their units."""
    if isinstance(kind, Decimals):
        return _ENGINE["integer"] if kind.precision <= LONG_DIGITS else "HUGEINT"
    return _ENGINE[kind]


def _units(decimal: str, kind: Decimals) -> str:
    """The whole number of units that a DECIMAL is, exactly, if it has no more digits than its type says."""
    precision, scale = kind.precision, kind.scale
    if not scale:
        return f"TRY_CAST({decimal} AS {_engine_type(kind)})"
    if precision <= _DOUBLE_DIGITS:
        return f"TRY_CAST(ROUND(TRY_CAST({decimal} AS DOUBLE) * 1e{scale}) AS BIGINT)"
    # DuckDB multiplies decimals of many digits more slowly than it writes them.
    return f"TRY_CAST(REPLACE(TRY_CAST({decimal} AS VARCHAR), '.', '') AS {_engine_type(kind)})"


def _ends(kind: Decimals) -> tuple[str, str]:
    """The least and the greatest decimal of a type."""
    most = f"{'9' * kind.whole_digits or '0'}.{'9' * kind.scale}".rstrip(".")
    return f"CAST('-{most}' AS {kind.upper()})", f"CAST('{most}' AS {kind.upper()})"


_CALENDAR = ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'")
"""The moments that queries know."""


def _held(value: str, low: str, high: str) -> str:
    """A value of the engine, NULL where it lies outside its own type.

    It is held to the range besides: DuckDB computes casts for every value of a dictionary, whichever of them rows have
    and arms of a CASE take, and some casts of values outside their type bring it down.
    """
    return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN LEAST(GREATEST({value}, {low}), {high}) END"


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
    apart = engine in _APART or (known == "timestamp" and engine != _ENGINE["timestamp"])
    return kind.upper() if apart else known


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"

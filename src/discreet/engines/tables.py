"""The tables that an engine was told of, and what is asked of every table alike, wherever it lives.

>>> from dataclasses import dataclass
>>> from discreet.engines.duckdb.types import Reading
>>> @dataclass(frozen=True)
... class Held:
...     columns: tuple = (Column("who", "text"),)
...     omitted: tuple = ()
...     unique: tuple = ()
...     units: str | None = "text"
>>> tables = Tables()
>>> tables._held["visits"] = Held()
>>> tables.columns("visits")[0].name
'who'
>>> tables._owning("labs", "who", {"who": Reading("who", "integer", "who", "number")}, [("tags", "text[]")])
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: unit='number' must be of one type in all tables; it is text in visits; ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

from discreet.core.errors import InvalidArgument
from discreet.sql.catalog import Column, Type, nearest

__all__ = ["Tables", "check_types", "whole_rows"]


class _Read(Protocol):
    """How a column is read."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> Type: ...
    @property
    def family(self) -> str: ...


class _Known(Protocol):
    """What an engine keeps of a table."""

    @property
    def columns(self) -> tuple[Column, ...]: ...
    @property
    def omitted(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def unique(self) -> tuple[str, ...]: ...
    @property
    def units(self) -> str | None: ...


H = TypeVar("H", bound=_Known)
R = TypeVar("R", bound=_Read)


class Tables(Generic[H]):
    """What an engine holds, by the names that questions use."""

    def __init__(self) -> None:
        self._held: dict[str, H] = {}

    def seal(self) -> None:
        """Nothing more is added."""

    def columns(self, table: str) -> tuple[Column, ...]:
        """Names and types from the schema and what was declared, never from private rows; what public ones hold."""
        return self._of(table).columns

    def is_view(self, table: str) -> bool:
        """Whether its rows are computed whenever it is read."""
        return False

    def omitted(self, table: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns that queries cannot use."""
        return self._of(table).omitted

    def unique(self, table: str) -> tuple[str, ...]:
        """Columns of a public table that are known to hold no value twice and no NULL."""
        return self._of(table).unique

    def _of(self, table: str) -> H:
        if table not in self._held:
            raise InvalidArgument("table", table, "a registered table", nearest(table, self._held))
        return self._held[table]

    def _check_new(self, table: str) -> None:
        if table.lower() in {name.lower() for name in self._held}:
            raise InvalidArgument("table", table, "distinct whatever the case", "rename one of them")

    def _changed(self, table: str) -> InvalidArgument:
        remedy = "see whether it is there, may be read, and is what you want, and connect again"
        return InvalidArgument("table", table, "what it was when the session began, with the same columns", remedy)

    def _check_units(self, family: str, remedy: str = "CAST one of them in a view") -> None:
        """Units of different families would be compared after a cast, which may make two of them one."""
        for other, held in self._held.items():
            if held.units not in (None, family):
                bound = f"of one type in all tables; it is {held.units} in {other}"
                raise InvalidArgument("unit", family, bound, remedy)

    def _owning(self, table: str, unit: str, readings: Mapping[str, R], omitted: Iterable[tuple[str, str]]) -> R:
        """The column that says whose the rows are; those `omitted` have a reason beside them."""
        read = readings.get(unit.lower())
        if read is None:
            for name, reason in omitted:
                if name.lower() == unit.lower():
                    remedy = f"make it a number or text in a view, or grant the right to read it ({reason})"
                    raise InvalidArgument("unit", unit, f"a column of {table} that can be read", remedy)
            near = nearest(unit, [r.name for r in readings.values()])
            raise InvalidArgument("unit", unit, f"a column of {table}", near)
        self._check_units(read.family)
        return read


def check_types(table: str, types: Mapping[str, Type] | None, readings: Mapping[str, _Read], there: str) -> None:
    """That types that are declared are those that columns have where they are, which cannot be changed from here."""
    for column, kind in (types or {}).items():
        known = readings.get(column.lower())
        if known is None or known.type != kind:
            bound = f"a column of {table}" if known is None else f"{known.type}, as it is {there}"
            remedy = nearest(column, [r.name for r in readings.values()]) if known is None else "CAST it in a view"
            raise InvalidArgument("types", {column: kind}, bound, remedy)


def whole_rows(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """What a driver returned, with sums as whole numbers; two decimals never become one of them."""
    return [tuple(_whole(value) if isinstance(value, Decimal) else value for value in row) for row in rows]


def _whole(value: Decimal) -> int:
    if value != (whole := int(value)):
        raise ValueError("a decimal that is no whole number")
    return whole

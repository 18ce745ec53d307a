"""The tables that an engine was told of, and what is asked of every table alike, wherever it lives.

>>> from dataclasses import dataclass
>>> from discreet.engines.duckdb.types import Reading
>>> @dataclass(frozen=True)
... class Held:
...     columns: tuple = (Column("who", "text"),)
...     omitted: tuple = ()
...     unique: tuple = ()
...     units: str | None = "text"
>>> from discreet.engines.duckdb.engine import DuckDB
>>> tables = DuckDB()
>>> tables._held["visits"] = Held()
>>> tables.columns("visits")[0].name
'who'
>>> tables._owning("labs", "who", {"who": Reading("who", "integer", "who", "number")}, [("tags", "text[]")])
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: unit='number' must be of one type in all tables; it is text in visits; ...
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.files import marks
from discreet.engines.engine import LISTED, LOOKED_AT, Engine, known
from discreet.sql.catalog import Column, Type, alone, check_alone, is_number, nearest
from discreet.sql.functions.registry import admit
from discreet.sql.statement.naming import OWNER

if TYPE_CHECKING:
    from discreet.engines.duckdb.csv_records import Csv

__all__ = ["FLEETING", "TWICE", "ServerTables", "Tables", "check_types", "readable", "whole_rows"]

FLEETING = "memory:"
"""How the names of sources begin that mean nothing in another session."""
TWICE = "a name twice"
"""Why columns are left out whose names differ in case alone."""


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


class Tables(Engine, Generic[H]):
    """What an engine holds, by the names that questions use."""

    def __init__(self) -> None:
        self._held: dict[str, H] = {}

    def seal(self) -> None:
        """Nothing more is added."""

    def sources(self, table: str) -> tuple[str, ...]:
        """What the books know it by: itself."""
        return (self.identity(table),)

    def claims(self, table: str, known: Iterable[str], public: Iterable[str]) -> list[str]:
        """The sources that it is; first those of some books, by name or by the files that they stand for."""
        own, books = self.sources(table), [*known]
        mine = frozenset[tuple[int, int]]().union(*map(marks, self.paths(table)))
        found = [text for text in books if text in own and not text.startswith(FLEETING)]
        files = [text for text in books if text.startswith("file:")] if mine else []
        found += [text for text in files if marks(Path(text.removeprefix("file:"))) & mine]
        return list(dict.fromkeys([*found, *own]))

    def paths(self, table: str) -> tuple[Path, ...]:
        """No files."""
        self._of(table)
        return ()

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
            check_alone("unit", unit, [name for name, _ in omitted])
            for name, reason in omitted:
                if name.lower() == unit.lower():
                    remedy = f"make it a number or text in a view, or grant the right to read it ({reason})"
                    raise InvalidArgument("unit", unit, f"a column of {table} that can be read", remedy)
            near = nearest(unit, [r.name for r in readings.values()])
            raise InvalidArgument("unit", unit, f"a column of {table}", near)
        self._check_units(read.family)
        return read


class _ReadForUnits(_Read, Protocol):
    """How a column of a server is read, and how it is where its values name people; None where they cannot."""

    @property
    def sql(self) -> str: ...
    @property
    def owner(self) -> str | None: ...
    @property
    def rounds(self) -> bool: ...


class _There(_Known, Protocol):
    """What an engine keeps of a table that has a name on a server."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_There)


class ServerTables(Tables[T]):
    """Tables that are read where they are, through a SELECT that gives their columns our types."""

    dialect: Any
    where: ClassVar[str] = "on the server"
    exact_types: ClassVar[str] = "BIGINT or text"
    """Types of which no two values are read alike."""

    def add(
        self,
        table: str,
        source: object,
        *,
        types: Mapping[str, Type] | None = None,
        hints: Mapping[str, Type] | None = None,
        unit: str | None = None,
        links: Iterable[str] = (),
        private: bool = True,
        csv: Csv | None = None,
    ) -> None:
        """Register a table or a view as `table`; `source` is its name on the server. Types are those of the server.

        Values of the `unit` column that name nobody (NaN, infinities, bytes that are no text) become NULL.
        """
        if csv is not None:
            raise InvalidArgument("csv", table, "of a CSV file", "leave it out for tables on a server")
        self._check_new(table)
        held, readings = self._described(table, source, private)
        check_types(table, types, readings, self.where, held.omitted)
        owner = None if unit is None else self._owner(table, unit, readings, held.omitted)
        for link in links:
            read = readings.get(link.lower())
            if read is not None and (read.rounds or read.owner is None):
                remedy = f"make it {self.exact_types}, in a view if need be"
                raise InvalidArgument("link", link, "of a type that is read without rounding", remedy)
        name = self.dialect.identifier
        shown = [f"{read.sql} AS {name(read.name)}" for read in readings.values()]
        shown += [f"{sql} AS {called}" for called, sql in self._beside(readings).items()]
        shown += [] if owner is None else [f"{owner.owner} AS {name(OWNER)}"]
        self.dialect.tables[table] = f"SELECT {', '.join(shown)} FROM {held.name}"
        columns = tuple(Column(read.name, read.type) for read in readings.values())
        described: Any = held
        held = replace(described, columns=columns, units=None if owner is None else owner.family)
        try:
            self._check_readable(table, held)
        except BaseException:
            del self.dialect.tables[table]
            raise
        self._held[table] = held
        if not private:
            self._held[table] = self._looked_at(table, held)

    @abstractmethod
    def _described(self, table: str, source: object, private: bool) -> tuple[T, Mapping[str, Any]]:
        """A table with where it is and what it reads, and how its columns are read, by their names in small letters."""

    def _looked_at(self, table: str, held: T) -> T:
        """With what the columns of a public table hold: bounds, values, and which of them hold no value twice."""
        source = self.dialect.table(table)
        some = f"SELECT 1 AS one FROM {source} LIMIT {LOOKED_AT + 1}"
        if self.run(f"SELECT COUNT(*) FROM ({some}) AS i")[0][0] > LOOKED_AT:
            return held
        columns, unique = [], []
        for column in held.columns:
            sql = self.dialect.text(admit(column.name, column.type))
            ends = f"MIN({sql}), MAX({sql})" if is_number(column.type) else "NULL, NULL"
            [(rows, distinct, least, most)] = self.run(f"SELECT COUNT(*), COUNT(DISTINCT {sql}), {ends} FROM {source}")
            listed = self._listed(sql, source) if 0 < distinct <= LISTED else []
            columns.append(known(column, least, most, listed))
            unique += [column.name] if distinct == rows else []
        described: Any = held
        found: T = replace(described, columns=tuple(columns), unique=tuple(unique))
        return found

    def _listed(self, column: str, source: str) -> list[tuple[Any, ...]]:
        """The values of a column in their order, NULL last."""
        listed = self.run(f"SELECT DISTINCT {column} FROM {source}")
        return sorted(listed, key=lambda row: (row[0] is None, row[0] if row[0] is not None else 0))

    def _owner(
        self, table: str, unit: str, readings: Mapping[str, Any], omitted: Iterable[tuple[str, str]]
    ) -> _ReadForUnits:
        """The column that says whose the rows are."""
        read: _ReadForUnits = self._owning(table, unit, readings, omitted)
        return read

    def _beside(self, readings: Mapping[str, Any]) -> dict[str, str]:
        """Further columns that statements may use, by their names in quotes."""
        return {}

    def _check_readable(self, table: str, held: T) -> None:
        """That a statement can read the table, and that it is still what was described."""


def readable(columns: Iterable[tuple[str, R | None, str]]) -> tuple[dict[str, R], tuple[tuple[str, str], ...]]:
    """How columns are read, by their names in small letters, and which are left out, with the reason: those that cannot
    be read, and all whose names differ in case alone. Of each column this takes the name, how it is read if it can be,
    and why not."""
    given = [*columns]
    own = alone(name for name, _, _ in given)
    readings = {name.lower(): read for name, read, _ in given if read is not None and name.lower() in own}
    omitted = [(name, TWICE if read is not None else reason) for name, read, reason in given]
    return readings, tuple((name, reason) for name, reason in omitted if name.lower() not in readings)


def check_types(
    table: str,
    types: Mapping[str, Type] | None,
    readings: Mapping[str, _Read],
    there: str,
    omitted: Iterable[tuple[str, str]] = (),
) -> None:
    """That types that are declared are those that columns have where they are, which cannot be changed from here."""
    left_out = [name for name, _ in omitted]
    for column, kind in (types or {}).items():
        check_alone("types", column, left_out)
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

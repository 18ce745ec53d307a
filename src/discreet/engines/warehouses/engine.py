"""What ibis connects to as an engine: BigQuery, Snowflake and Trino, and PostgreSQL beside them.

A connection of ibis knows the tables and their types; statements are ours, one SELECT each, and run as they are. On
PostgreSQL the engine of its own is used (`address_of`), over a connection of its own. Others can only be refused: what
their SQL does with overflows, NaN and casts would have to be known first. So is DuckDB, which has an engine of its own:
in somebody else's connection, macros and functions may stand in for those that bound what a row adds, and settings
change what is equal.

Warehouses say little about views and nothing about who else may write: that a view changed goes unnoticed, and that
nothing is written is left to the rights of the role. Needs `pip install 'discreet[ibis]'` and the backend's own driver.

>>> is_ibis("visits.csv"), is_ibis({"who": [1]})
(False, False)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.core.forks import HomeLock
from discreet.engines.engine import LISTED, LOOKED_AT, unrunnable
from discreet.engines.engine import known as known_of
from discreet.engines.postgres.addresses import made_from
from discreet.engines.tables import Tables, check_types, whole_rows
from discreet.engines.warehouses.dialect import WAREHOUSES, WarehouseDialect
from discreet.sql.catalog import Column, Type, is_number, nearest
from discreet.sql.functions.registry import admit
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.naming import OWNER
from discreet.sql.statement.selection import LARGEST

__all__ = ["Ibis", "address_of", "is_ibis", "named"]

MICROS = 6
"""Digits of a second that Python's moments have."""
LOST = "the connection to the backend was lost"
IN_DUCKDB = 'disconnect, and give the path of the file; or a table of it: backend.table("visits").to_pyarrow()'
DIGITS, MOST_DIGITS = 18, 38
"""So many digits fit in 64 bits, and so many a decimal may have before its point to be a double for certain."""
PUBLIC = ("host", "port")
"""What a connection was made with that may be written down, where the server does not say which it is: no secret."""


@dataclass(frozen=True)
class _Reading:
    """A column that queries can use: how its values are read, and how those of units are."""

    name: str
    type: Type
    sql: str
    owner: str
    family: str
    rounds: bool = False


@dataclass(frozen=True)
class _Held:
    identity: str
    columns: tuple[Column, ...]
    omitted: tuple[tuple[str, str], ...]
    units: str | None = None
    unique: tuple[str, ...] = ()


def is_ibis(source: object) -> bool:
    """Whether a source is a connection of ibis."""
    return any(f"{kind.__module__}.{kind.__name__}" == "ibis.backends.BaseBackend" for kind in type(source).__mro__)


def address_of(source: object) -> object:
    """The address of a PostgreSQL server that ibis is connected to, options and schema included; anything else as it
    is."""
    backend: Any = source
    if not is_ibis(source) or backend.name != "postgres":
        return source
    return made_from(backend.con)


def named(table: object) -> tuple[str, ...]:
    """The parts of a table's name: catalog and schema, if they are given, and the name itself."""
    parts = tuple(table.split(".")) if isinstance(table, str) else ()
    if not 1 <= len(parts) <= 3 or not all(parts):
        remedy = 'write "visits", "schema.visits" or "catalog.schema.visits"'
        raise InvalidArgument("table", table, "the name of a table of the backend", remedy)
    return parts


class Ibis(Tables[_Held]):
    """Tables of one connection of ibis."""

    def __init__(self, backend: Any) -> None:
        super().__init__()
        words = WAREHOUSES.get(backend.name)
        if words is None:
            remedy = "copy the table to one of these, or to Parquet files"
            remedy = IN_DUCKDB if backend.name == "duckdb" else remedy
            raise InvalidArgument("source", backend.name, f"one of postgres, {', '.join(WAREHOUSES)}", remedy)
        self._backend = backend
        self._words = words
        self._dialect = WarehouseDialect(words)
        self.dialect: Dialect = self._dialect
        self._lock = HomeLock()
        self._closed = False

    def __repr__(self) -> str:
        return f"Ibis({self._backend.name!r})"

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
    ) -> None:
        """Register a table or view as `table`; `source` is its name. Types are those of the backend."""
        self._check_new(table)
        parts = self._place(named(source))
        readings, omitted = self._columns(parts)
        check_types(table, types, readings, "there")
        shown = [f"{read.sql} AS {self.dialect.identifier(read.name)}" for read in readings.values()]
        units = None
        if unit is not None:
            owner = self._owner(table, unit, readings, omitted)
            units = owner.family
            shown.append(f"{owner.owner} AS {self.dialect.identifier(OWNER)}")
        for link in links:
            if link.lower() in readings and readings[link.lower()].rounds:
                remedy = "make it a whole number or text, in a view if need be"
                raise InvalidArgument("link", link, "of a type that is read without rounding", remedy)
        place = ".".join(map(self.dialect.identifier, parts))
        self._dialect.tables[table] = f"SELECT {', '.join(shown)} FROM {place}"
        columns = tuple(Column(read.name, read.type) for read in readings.values())
        held = _Held(self._identity(parts), columns, omitted, units)
        self._held[table] = held if private else self._looked_at(table, held)

    def identity(self, table: str) -> str:
        """The backend, which server of its kind it is, and the full name."""
        return self._of(table).identity

    @property
    def nameless(self) -> bool:
        """Whether the server does not say which it is, so that one table may have several identities."""
        return self._words.server is None

    def definition(self, table: str) -> str:
        """Nothing is known of it."""
        return ""

    def paths(self, table: str) -> tuple[Path, ...]:
        """None."""
        self._of(table)
        return ()

    def prepare(self, statement: str) -> None:
        """Refuse what the warehouse cannot plan, as it says without running it."""
        failure = ""
        with self._lock:
            self._check_open()
            try:
                if self._words.validated is not None:
                    _rows(self._backend.raw_sql(self._words.validated.format(statement)))
                else:
                    _plan_on_bigquery(self._backend.client, statement)
            except (ConnectionError, TimeoutError):
                failure = LOST
            except Exception as error:
                failure = type(error).__name__
        if failure == LOST:
            raise EngineUnavailable(LOST)
        if failure:
            raise unrunnable(self._words.title, failure)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT."""
        if not re.match(r"\s*(SELECT|WITH)\b", statement):
            raise InvalidArgument("statement", statement, "one SELECT", "the engine only reads")
        with self._lock:
            self._check_open()
            # Want of time is no lost connection: it may be due to the data.
            with suppress(ConnectionError):
                return _rows(self._backend.raw_sql(statement))
        raise EngineUnavailable(LOST)

    def running(self) -> bool:
        """Whether a statement is being run, for other threads to ask."""
        return self._lock.locked()

    def cancel(self) -> None:
        """Nothing: no driver of a warehouse has a way to stop a statement from another thread."""

    def close(self) -> None:
        """Let go of the connection, which belongs to whoever made it and stays open."""
        if self._lock.left:
            self._closed = True
            return
        with self._lock:
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument("session", "closed", "open", "connect again")

    def _identity(self, parts: tuple[str, ...]) -> str:
        backend, words = self._backend, self._words
        if words.server is None:
            given = {key: backend._con_kwargs.get(key) for key in PUBLIC}
            server = "&".join(f"{key}={value}" for key, value in given.items() if value is not None)
        else:
            server = _joined(self.run(words.server)[0]) if words.server else ""
        return f"ibis:{backend.name}:{server}/{_joined(parts)}"

    def _place(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The full name, as it is now: what a short one means may change with the connection, and where a backend looks
        up types may not be where its statements look."""
        above = (self._backend.current_catalog, self._backend.current_database)[: 3 - len(parts)]
        if not all(above):
            bound = f"a full name; {self._backend.name} is connected to no schema"
            raise InvalidArgument("table", ".".join(parts), bound, 'write "catalog.schema.visits"')
        return (*map(str, above), *parts)

    def _columns(self, parts: tuple[str, ...]) -> tuple[dict[str, _Reading], tuple[tuple[str, str], ...]]:
        try:
            schema = self._backend.table(parts[-1], database=parts[:-1]).schema()
        except Exception:
            schema = None
        if schema is None:
            raise InvalidArgument(
                "table", ".".join(parts), f"a table that {self._backend.name} can read", self._near(parts)
            )
        readings, omitted = {}, []
        for name, kind in schema.items():
            read = self._reading(name, kind)
            if read is None or name.lower() in readings:
                omitted.append((name, str(kind) if read is None else "a name twice"))
            else:
                readings[name.lower()] = read
        if not readings:
            raise InvalidArgument("source", omitted, "with columns that queries can use", "CAST them in a view")
        return readings, tuple(omitted)

    def _near(self, parts: tuple[str, ...]) -> str:
        """Names of tables like this one, as far as they can be asked for."""
        try:
            names = [*self._backend.list_tables(database=parts[:-1])]
        except Exception:
            names = []
        return nearest(parts[-1], names) if names else "see whether it is there and whether the role may read it"

    def _reading(self, name: str, kind: Any) -> _Reading | None:
        """How a column of a type of ibis is read; None if queries cannot use it."""
        column, words = self.dialect.identifier(name), self._words
        whole = words.held.format(column)
        real = f"CAST({column} AS {self.dialect.double})"
        if kind.is_integer() and str(kind).strip("!") != "uint64":
            return _Reading(name, "integer", whole, column, "number")
        if kind.is_decimal() and kind.precision is not None and kind.scale is not None:
            before = kind.precision - kind.scale
            if kind.scale == 0 and before <= DIGITS:
                return _Reading(name, "integer", whole, column, "number")
            most = MOST_DIGITS if words.reals else DIGITS
            return _Reading(name, "real", real, column, "number", rounds=True) if before <= most else None
        if kind.is_floating() and words.reals:
            # Nobody is apart from himself by the sign of a zero.
            finite = f"CASE WHEN {real} BETWEEN {-LARGEST!r} AND {LARGEST!r} THEN {real} + 0e0 END"
            return _Reading(name, "real", real, finite, "real")
        if kind.is_string():
            text = words.text.format(column)
            return _Reading(name, "text", text, text, "text")
        if kind.is_timestamp():
            zoned, fine = kind.timezone is not None, kind.scale is not None and kind.scale > MICROS
            if fine and words.rounding:
                return None
            micros = (words.utc if zoned else words.micros).format(column)
            return _Reading(name, "timestamp", micros, micros, "timestamptz" if zoned else "timestamp", rounds=fine)
        plain: Type | None = "boolean" if kind.is_boolean() else "date" if kind.is_date() else None
        return None if plain is None else _Reading(name, plain, column, column, plain)

    def _owner(
        self, table: str, unit: str, readings: Mapping[str, _Reading], omitted: Iterable[tuple[str, str]]
    ) -> _Reading:
        read = self._owning(table, unit, readings, omitted)
        if read.rounds and read.type == "timestamp":
            remedy = "make it text or a whole number in a view, or CAST it to microseconds there"
            raise InvalidArgument("unit", unit, "of a type that is read without rounding", remedy)
        return read

    def _looked_at(self, table: str, held: _Held) -> _Held:
        """With what the columns of a public table hold: bounds, values, and which of them hold no value twice."""
        source = self.dialect.table(table)
        if (
            self.run(f"SELECT COUNT(*) FROM (SELECT 1 AS one FROM {source} LIMIT {LOOKED_AT + 1}) AS i")[0][0]
            > LOOKED_AT
        ):
            return held
        columns, unique = [], []
        for column in held.columns:
            sql = self.dialect.text(admit(column.name, column.type))
            ends = f"MIN({sql}), MAX({sql})" if is_number(column.type) else "NULL, NULL"
            [(rows, distinct, least, most)] = self.run(f"SELECT COUNT(*), COUNT(DISTINCT {sql}), {ends} FROM {source}")
            listed = self.run(f"SELECT DISTINCT {sql} FROM {source}") if 0 < distinct <= LISTED else []
            listed.sort(key=lambda row: (row[0] is None, row[0] if row[0] is not None else 0))
            columns.append(known_of(column, least, most, listed))
            unique += [column.name] if distinct == rows else []
        return replace(held, columns=tuple(columns), unique=tuple(unique))


def _plan_on_bigquery(client: Any, statement: str) -> None:
    """A dry run: BigQuery checks the statement and says how much it would read."""
    made = import_module(type(client).__module__).QueryJobConfig
    client.query(statement, job_config=made(dry_run=True, use_query_cache=False))


def _joined(parts: Iterable[object]) -> str:
    """Names in one, from which they can be told: dots in them are written otherwise."""
    return ".".join(quote(str(part), safe="").replace(".", "%2E") for part in parts)


def _rows(found: Any) -> list[tuple[Any, ...]]:
    """What a driver returned, as rows; decimals are whole numbers here."""
    rows = found.fetchall() if hasattr(found, "fetchall") else [row.values() for row in found]
    if hasattr(found, "close"):
        found.close()
    return whole_rows(rows)

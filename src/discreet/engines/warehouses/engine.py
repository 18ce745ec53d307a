"""What ibis connects to as an engine: BigQuery, Snowflake and Trino, and PostgreSQL beside them.

A connection of ibis knows the tables and their types; statements are ours, one SELECT each, and run as they are. For
PostgreSQL there is an engine of its own, over a connection of its own. Others can only be refused: what their SQL does
with overflows, NaN and casts would have to be known first. So is DuckDB, which has an engine of its own: in somebody
else's connection, macros and functions may stand in for those that bound what a row adds, and settings change what is
equal.

Warehouses say little about views and nothing about who else may write: that a view changed goes unnoticed, and that
nothing is written is left to the rights of the role. Needs `pip install 'discreet[ibis]'` and the backend's own driver.

>>> Ibis.accepts("trino://ann@data.example/lake"), Ibis.accepts("visits.csv"), Ibis.accepts({"who": [1]})
(True, False, False)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from discreet.core.display.secrets import address_kind, known_scheme
from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.core.forks import HomeLock
from discreet.engines.engine import unrunnable
from discreet.engines.postgres.addresses import is_ibis, is_server
from discreet.engines.tables import ServerTables, readable, whole_rows
from discreet.engines.warehouses.dialect import WAREHOUSES, WarehouseDialect
from discreet.sql.catalog import Column, Type, nearest
from discreet.sql.statement.selection import LARGEST

__all__ = ["Ibis"]

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
    name: str
    identity: str
    columns: tuple[Column, ...]
    omitted: tuple[tuple[str, str], ...]
    units: str | None = None
    unique: tuple[str, ...] = ()


def _is_address(source: object) -> bool:
    return isinstance(source, str) and address_kind(source) in WAREHOUSES


def _connected(address: str) -> Any:
    """A connection of ibis to the warehouse at an address; where it fails, nothing of the address is repeated."""
    if find_spec("ibis") is None:
        bound = "reached through ibis, which is not installed"
        raise InvalidArgument("source", f"{address_kind(address)}://…", bound, "pip install 'discreet[ibis]'")
    with suppress(Exception):
        return import_module("ibis").connect(known_scheme(address))
    remedy = "see whether the driver is installed and lets us in, or connect with ibis and give that connection"
    raise InvalidArgument("source", f"{address_kind(address)}://…", "a warehouse that ibis can connect to", remedy)


def named(table: object) -> tuple[str, ...]:
    """The parts of a table's name: catalog and schema, if they are given, and the name itself."""
    parts = tuple(table.split(".")) if isinstance(table, str) else ()
    if not 1 <= len(parts) <= 3 or not all(parts):
        remedy = 'write "visits", "schema.visits" or "catalog.schema.visits"'
        raise InvalidArgument("table", table, "the name of a table of the backend", remedy)
    return parts


class Ibis(ServerTables[_Held]):
    """Tables of one connection of ibis."""

    title = "ibis"
    schemes = tuple(WAREHOUSES)
    where = "there"
    exact_types = "a whole number or text"

    def __init__(self, backend: Any, own: bool = False) -> None:
        super().__init__()
        self._own = own
        words = WAREHOUSES.get(backend.name)
        if words is None:
            remedy = "copy the table to one of these, or to Parquet files"
            remedy = IN_DUCKDB if backend.name == "duckdb" else remedy
            raise InvalidArgument("source", backend.name, f"one of postgres, {', '.join(WAREHOUSES)}", remedy)
        self._backend = backend
        self._words = words
        self.dialect = WarehouseDialect(words)
        self._lock = HomeLock()
        self._closed = False

    def __repr__(self) -> str:
        return f"Ibis({self._backend.name!r})"

    @classmethod
    def accepts(cls, source: object) -> bool:
        """A connection of ibis, but to PostgreSQL, which has an engine of its own; or the address of a warehouse."""
        return (is_ibis(source) and not is_server(source)) or _is_address(source)

    @classmethod
    def opened(cls, source: object) -> Ibis:
        """The connection that is given; one is made for an address, and closed with the engine."""
        return cls(source) if is_ibis(source) else cls(_connected(str(source)), own=True)

    @classmethod
    def table_name(cls, table: str) -> str:
        """The last part of a name."""
        return named(table)[-1]

    def _described(self, table: str, source: object, private: bool) -> tuple[_Held, dict[str, _Reading]]:
        parts = self._place(named(source))
        readings, omitted = self._columns(parts)
        name = ".".join(map(self.dialect.identifier, parts))
        return _Held(name, self._identity(parts), (), omitted), readings

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
        """Let go of the connection, which stays open where whoever gave it made it."""
        if self._lock.left:
            self._closed = True
            return
        with self._lock:
            if self._own and not self._closed:
                self._backend.disconnect()
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
        readings, omitted = readable((name, self._reading(name, kind), str(kind)) for name, kind in schema.items())
        if not readings:
            raise InvalidArgument("source", omitted, "with columns that queries can use", "CAST them in a view")
        return readings, omitted

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

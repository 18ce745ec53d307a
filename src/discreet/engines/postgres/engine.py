"""PostgreSQL as an engine: the tables of one server, read where they are.

The statement of a question runs inside the server, in a transaction that can only read, and only its totals come back.
A question is one SELECT made from the plan; names of functions mean those of the system, whatever the role's path says.
What it reads is what the table or view was when the session began, its parts and all that a view runs included: that is
looked at before the charge, and in the transaction of the statement before and after it (`postgres/dependencies.py`).

The password stays with the driver, which also takes it from PGPASSWORD, a .pgpass file or a service file: no message
and no representation shows it. Needs the driver: `pip install 'discreet[postgres]'`.

>>> Postgres("postgresql://ann:secret@data:port/hospital")     # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: source='postgresql://data:port/hospital' must be a server that lets us in...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.core.forks import HomeLock
from discreet.engines.engine import unrunnable
from discreet.engines.postgres import catalog
from discreet.engines.postgres import dependencies as reach
from discreet.engines.postgres.addresses import address_of, driver, is_address, is_server, remedy_for, stripped
from discreet.engines.postgres.catalog import Form, Reading, named, reading
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.engines.postgres.identity import Place
from discreet.engines.tables import ServerTables, readable, whole_rows
from discreet.sql.catalog import Column, nearest
from discreet.sql.statement.dialect import quoted

if TYPE_CHECKING:
    import psycopg

__all__ = ["Postgres"]

OLDEST = 13
"""The first version of the server that will do."""
SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "TimeZone": "'UTC'",
    "DateStyle": "'ISO, YMD'",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "row_security": "off",
    "jit": "off",
}
"""What statements rely on, those about the catalogs too: in any other path, types, functions and operators of others
can stand in for the system's. A policy that would hide rows from the role is an error, not another answer."""
LOST = "the connection to the server was lost"
CHANGED = "a table changed, or can no longer be read: connect again"
BEGIN = "; ".join(
    [
        # Each look at the catalogs has a snapshot of its own, and so has the one statement of a question.
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
        *(f"SET LOCAL {name} = {value}" for name, value in SETTINGS.items()),
    ]
)


@dataclass(frozen=True)
class _Held:
    oid: int
    name: str
    form: Form
    sources: tuple[str, ...]
    columns: tuple[Column, ...]
    omitted: tuple[tuple[str, str], ...]
    definition: str
    record: str
    unseen: tuple[str, ...]
    unique: tuple[str, ...] = ()
    units: str | None = None


class Postgres(ServerTables[_Held]):
    """Tables of one database."""

    title = "PostgreSQL"
    schemes = ("postgresql", "postgres")

    def __init__(self, source: object) -> None:
        super().__init__()
        self.dialect = PostgresDialect()
        self._address = address_of(source)
        self._path: list[str] = []
        self._lock = HomeLock()
        self._cancelled = False
        self._closed = False
        self._driver = driver()
        self._connection: psycopg.Connection[Any] | None = self._connected()
        self._place = self._placed()

    def __repr__(self) -> str:
        return f"Postgres({str(self._place)!r})"

    @classmethod
    def accepts(cls, source: object) -> bool:
        """An address, or a connection of ibis to a server."""
        return is_server(source)

    @classmethod
    def opened(cls, source: object) -> Postgres:
        """A connection of its own."""
        return cls(source)

    @classmethod
    def table_name(cls, table: str) -> str:
        """The name without its schema and without quotes."""
        return named(table)[1]

    def _described(self, table: str, source: object, private: bool) -> tuple[_Held, dict[str, Reading]]:
        if not isinstance(source, str) or is_address(source):
            given = "an address" if isinstance(source, str) else type(source).__name__
            remedy = 'write private={"orders": dc.Private("schema.orders")}, or load the data into the database'
            raise InvalidArgument("source", given, "the name of a table on the same server", remedy)
        oid, schema, name = self._found(source)
        [record] = self._asked(reach.RECORD, oid=oid)
        readings, omitted, form = self._columns(oid)
        there = f"{quoted(schema)}.{quoted(name)}"
        sources = self._place.sources(self._asked(reach.ORIGINS, oid=oid))
        definition, unseen = self._definition(oid), self._unseen(oid)
        return _Held(oid, there, form, sources, (), omitted, definition, record[0], unseen), readings

    def _beside(self, readings: Mapping[str, Any]) -> dict[str, str]:
        integers = [read for read in readings.values() if read.type == "integer"]
        return {self.dialect.stored(read.name): read.stored for read in integers}

    def identity(self, table: str) -> str:
        """The server, database, schema and name, whoever asks; with a digest of what a view says."""
        held = self._of(table)
        return held.sources[0] + held.definition

    def sources(self, table: str) -> tuple[str, ...]:
        """What the books know it by: itself, then the tables that a view reads, their parts, and what has it as a
        part."""
        return self._of(table).sources

    def claims(self, table: str, known: Iterable[str], public: Iterable[str]) -> list[str]:
        """The sources that it is, and those of some books that are it by another name of its server or database; first
        those that are in these books. What a view reads of `public` tables is nobody's."""
        sources, books = self._of(table).sources, frozenset(known)
        self._place.check_named(table, sources, books)
        found = sorted([*sources, *self._place.aliases(sources, books)], key=lambda text: text not in books)
        nobodys = {text for other in public for text in self.sources(other)}
        return [text for text in found if text not in nobodys]

    def unseen(self, table: str) -> tuple[str, ...]:
        """Functions that a view uses and that may read tables of which the catalogs know nothing."""
        return self._of(table).unseen

    def is_view(self, table: str) -> bool:
        """Whether it is a view, or reads some."""
        return bool(self._of(table).definition)

    def definition(self, table: str) -> str:
        """The schema and name, since the books of a table are those of its parts and views too, and a digest of what a
        view says; refused if that, or a column, is something else by now."""
        held = self._of(table)
        with self._lock:
            connection = self._begun()
            same = None
            with suppress(self._driver.OperationalError):
                same = self._is_same(connection, held) and self._record(connection, held)[0] == held.record
            self._rolled_back(connection)
        if same is None:
            raise EngineUnavailable("the server did not say what the table is")
        if not same:
            raise self._changed(table)
        return held.name + held.definition

    def prepare(self, statement: str) -> None:
        """Refuse what the server cannot parse; it is not planned, for which statistics of rows are looked at."""
        state = None
        with self._lock:
            connection = self._begun()
            try:
                self._records(connection, statement)
                # By the protocol that takes no more than one statement, as it will be run.
                parsed = connection.pgconn.prepare(b"", statement.encode())
                if parsed.status != self._driver.pq.ExecStatus.COMMAND_OK:
                    state = (parsed.error_field(self._driver.pq.DiagnosticField.SQLSTATE) or b"").decode()
            except self._driver.OperationalError:
                state = ""
            finally:
                self._rolled_back(connection)
        # A server that is gone gives no state, and what the driver says then is no refusal of the statement.
        if state is not None and (not state or state.startswith(("57P", "08")) or connection.closed):
            raise EngineUnavailable(LOST)
        if state is not None:
            raise unrunnable("PostgreSQL", f"SQLSTATE {state}")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Stopped by `cancel` or a signal, it raises KeyboardInterrupt: nothing has failed.

        A server that is lost, and a table whose columns changed, raise EngineUnavailable; what fails for want of time
        or room may be due to the data.
        """
        if not re.match(r"\s*(SELECT|WITH)\b", statement):
            raise InvalidArgument("statement", statement, "one SELECT", "the engine only reads")
        with self._lock:
            self._cancelled = False
            connection = self._begun()
            lost = False
            try:
                before = self._records(connection, statement)
                # Binary results come by the protocol that takes no more than one statement.
                found = connection.cursor(binary=True).execute(statement.encode()).fetchall()
                if self._records(connection, statement) != before:
                    raise EngineUnavailable(CHANGED)
                connection.execute("COMMIT")
                return whole_rows(found)
            except self._driver.errors.QueryCanceled:
                if not self._cancelled:
                    raise
            except self._driver.OperationalError as error:
                lost = connection.closed or (error.sqlstate or "").startswith("57P")
                if not lost:
                    raise
            finally:
                self._rolled_back(connection)
        if lost:
            raise EngineUnavailable(LOST)
        raise KeyboardInterrupt

    def running(self) -> bool:
        """Whether a statement is being run, for other threads to ask."""
        return self._lock.locked()

    def cancel(self) -> None:
        """Stop the running statement, if there is one; its `run` raises KeyboardInterrupt."""
        connection = self._connection
        if connection is not None and not connection.closed and not self._lock.left:
            self._cancelled = True
            connection.cancel_safe(timeout=10)

    def close(self) -> None:
        """Let go of the server, after the running statement; in a forked child, leave it to the parent."""
        self._closed = True
        if self._lock.left:
            self._connection = None
            return
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _connected(self) -> psycopg.Connection[Any]:
        """A connection with the settings that statements rely on; where it fails, no more is said than is known."""
        failure: str | None = None
        try:
            connection = self._driver.connect(
                self._address, autocommit=True, client_encoding="UTF8", application_name="discreet"
            )
            connection.execute("SET default_transaction_read_only = on")
            self._path = connection.execute("SELECT pg_catalog.current_schemas(true)").fetchall()[0][0]
            connection.execute(f"SET search_path = {SETTINGS['search_path']}".encode())
        except self._driver.Error as error:
            failure = str(error)
        except ValueError:
            failure = "invalid"
        if failure is not None:
            raise InvalidArgument("source", stripped(self._address), "a server that lets us in", remedy_for(failure))
        version = connection.info.server_version // 10_000
        if version < OLDEST:
            connection.close()
            raise InvalidArgument("source", f"PostgreSQL {version}", f"version {OLDEST} or later", "use a newer server")
        opened: psycopg.Connection[Any] = connection
        return opened

    def _placed(self) -> Place:
        """The server and database, the same by whatever address and role they are reached."""
        info = self._opened().info
        rows = self._asked(catalog.DATABASES)
        [(encoding, database, number)] = [(shown, name, oid) for shown, name, oid, current in rows if current]
        if encoding != "UTF8":
            raise InvalidArgument("source", encoding, "a database in UTF8", "make one with ENCODING 'UTF8'")
        databases = frozenset(name for _, name, _, _ in rows)
        try:
            [(server,)] = self._asked("SELECT system_identifier::text FROM pg_control_system()")
        except self._driver.errors.InsufficientPrivilege:
            return Place(f"{info.host}:{info.port}", database, number, databases, nameless=True)
        return Place(server, database, number, databases)

    def _opened(self) -> psycopg.Connection[Any]:
        self._lock.check()
        if self._connection is None or self._closed:
            raise InvalidArgument("session", "closed", "open", "connect again")
        return self._connection

    def _begun(self) -> psycopg.Connection[Any]:
        """A connection in a transaction; one that was lost meanwhile is made anew."""
        connection = self._opened()
        for again in (True, False):
            try:
                connection.execute(BEGIN.encode())
                return connection
            except self._driver.OperationalError:
                again = again and connection.closed
            if not again:
                break
            try:
                self._connection = connection = self._connected()
            except InvalidArgument:
                break
        raise EngineUnavailable("the server cannot be reached")

    def _is_same(self, connection: psycopg.Connection[Any], held: _Held) -> bool:
        """Whether a table has the columns it had, which it then keeps until the end of the transaction.

        Otherwise what a statement makes of it may fail by what a row holds.
        """
        columns = ", ".join(quoted(name) for name in held.form)
        try:
            # A plan that the server kept would fail in another way when a column has changed.
            found = connection.execute(f"SELECT {columns} FROM {held.name} LIMIT 0".encode(), prepare=False).pgresult
        except self._driver.ProgrammingError:
            return False
        return found is not None and [*held.form.values()] == [
            (found.ftable(i), found.ftablecol(i), found.ftype(i), found.fmod(i)) for i in range(found.nfields)
        ]

    def _record(self, connection: psycopg.Connection[Any], held: _Held) -> tuple[str, str]:
        """What reading a table reaches, and which transactions wrote that."""
        [(said, written)] = connection.execute(reach.RECORD.encode(), {"oid": held.oid}).fetchall()
        return said, written

    def _records(self, connection: psycopg.Connection[Any], statement: str) -> list[tuple[str, str]]:
        """Those of the tables of a statement, which are what they were; their parts and views then stay so."""
        used = [held for held in self._held.values() if held.name in statement]
        same = all(self._is_same(connection, held) for held in used)
        records = [self._record(connection, held) for held in used] if same else []
        if not same or [said for said, _ in records] != [held.record for held in used]:
            raise EngineUnavailable(CHANGED)
        return records

    def _rolled_back(self, connection: psycopg.Connection[Any]) -> None:
        try:
            if connection.info.transaction_status != self._driver.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except self._driver.Error:
            connection.close()

    def _asked(self, statement: str, **values: object) -> list[Any]:
        """Rows of a statement about the catalogs, which only reads and means the system's functions like any other."""
        with self._lock:
            connection = self._begun()
            try:
                return connection.execute(statement.encode(), values or None).fetchall()
            finally:
                self._rolled_back(connection)

    def _definition(self, oid: int) -> str:
        """A digest of what a view says, empty for a table."""
        texts = [text for (text,) in self._asked(catalog.DEFINITIONS, oid=oid)]
        return f"#{sha256(chr(0).join(texts).encode()).hexdigest()[:16]}" if texts else ""

    def _unseen(self, oid: int) -> tuple[str, ...]:
        """Functions that reading a view runs and that may read anything."""
        rows = self._asked(reach.UNSEEN, oid=oid)
        readers = [name for _, text in rows if text is not None for name in catalog.READERS.findall(text)]
        return (*readers, *(function for function, _ in rows if function is not None))

    def _found(self, source: str) -> tuple[int, str, str]:
        schema, name = named(source)
        rows = self._asked(catalog.TABLE, table=name, schema=schema, path=self._path)
        rows = rows if schema else [*{row[2]: row for row in reversed(rows)}.values()]
        same = [row for row in rows if row[2] == name and row[1] == (schema or row[1])] or rows
        if len(same) != 1:
            remedy = nearest(source, [near for (near,) in self._asked(catalog.NEAR, path=self._path)])
            raise InvalidArgument("table", source, f"the name of one table or view in {self._place.database}", remedy)
        oid, there, called, readable = same[0]
        if not readable:
            remedy = f"GRANT SELECT on {there}.{called}, and USAGE on its schema, to the role"
            raise InvalidArgument("table", source, "one that the role may read", remedy)
        return oid, there, called

    def _columns(self, oid: int) -> tuple[dict[str, Reading], tuple[tuple[str, str], ...], Form]:
        for source, target in self._asked(catalog.CASTS):
            bound = "made by the system, since statements use casts between its types"
            raise InvalidArgument("cast", f"{source} AS {target}", bound, f"DROP CAST ({source} AS {target})")
        found, places = [], {}
        for number, name, kind, typmod, barred, shown, known in self._asked(catalog.COLUMNS, oid=oid):
            found.append((name, None if barred else reading(name, known, typmod), barred or shown))
            places[name] = (oid, number, kind, typmod)
        readings, omitted = readable(found)
        if not readings:
            raise InvalidArgument("source", omitted, "with columns that queries can use", "CAST them in a view")
        return readings, omitted, {read.name: places[read.name] for read in readings.values()}

    def _check_readable(self, table: str, held: _Held) -> None:
        """That a statement can read the table at all: rows may be hidden from the role, or a server behind it gone."""
        if [said for (said, *_) in self._asked(reach.RECORD, oid=held.oid)] != [held.record]:
            raise self._changed(table)
        state = None
        try:
            self.run(f"SELECT * FROM {self.dialect.table(table)} LIMIT 0")
        except self._driver.Error as error:
            state = error.sqlstate
        if state is not None:
            remedy = "see to grants, policies for rows (ROW LEVEL SECURITY), and what a view reads"
            raise InvalidArgument("table", table, f"one that the role can read (SQLSTATE {state})", remedy)

    def _listed(self, column: str, source: str) -> list[tuple[Any, ...]]:
        """In the order of the server."""
        return self.run(f"SELECT DISTINCT {column} FROM {source} ORDER BY 1 NULLS LAST")

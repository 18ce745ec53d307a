"""The default engine: DuckDB inside this process, over files, frames or a DuckDB database.

Tables are added, then the engine is sealed: from then on it reads what was added and nothing else, and writes nothing.
Short tables are copied into the engine when they are added, long ones are read by each statement.

>>> import numpy as np
>>> engine = DuckDB()
>>> engine.add("survey", {"person": np.array([1, 1, 2]), "age": np.array([30, 31, 50]), "note": ["a", 1, None]})
>>> [(column.name, column.type) for column in engine.columns("survey")]
[('person', 'integer'), ('age', 'integer'), ('note', 'text')]
>>> engine.seal()
>>> engine.run('SELECT SUM("age") FROM "survey"')
[(111,)]
>>> engine.close()
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from discreet.core.errors import InvalidArgument
from discreet.core.processes import folder as temporary_folder
from discreet.core.processes import forever
from discreet.engines.engine import LISTED, LOOKED_AT, known
from discreet.engines.files import found
from discreet.engines.frames import Frame, dataset, is_dataset, paths_of, tabled
from discreet.engines.schema import Reading, quoted, reading, text
from discreet.engines.tables import Tables
from discreet.sql.catalog import Column, Type, nearest
from discreet.sql.dialect import DUCKDB, Dialect
from discreet.sql.functions import admit

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["DuckDB"]

COPIED = 1 << 28
"""Frames and CSV files of up to this many bytes are copied into the engine."""
FEW = 122_880
"""Rows that one thread reads in any case: Parquet files of so few are copied too, and where all tables are so short, no
time goes into waking other threads."""
_ENGINES: WeakSet[DuckDB] = WeakSet()


@dataclass(frozen=True)
class _Held:
    identity: str
    columns: tuple[Column, ...]
    omitted: tuple[tuple[str, str], ...]
    paths: tuple[Path, ...] = ()
    unique: tuple[str, ...] = ()
    units: str | None = None
    copied: bool = False


@dataclass(frozen=True)
class _Rows:
    """A query for the rows of a source. `untyped` columns (None: all) have no type of their own; `small` sources are
    copied; the rows of `counted` ones are counted without reading them; `replaced` ones have "?" for bad bytes."""

    sql: str
    omitted: tuple[tuple[str, str], ...] = ()
    paths: tuple[Path, ...] = ()
    untyped: frozenset[str] | None = frozenset()
    small: bool = False
    counted: bool = False
    frame: bool = False
    replaced: bool = False


class _Owning:
    """The columns of a table that say whose its rows are: its unit column, and those that link it to others."""

    def __init__(self, unit: str | None, links: Iterable[str]) -> None:
        self.unit = None if unit is None else unit.lower()
        self.names = {name.lower() for name in links} | ({self.unit} if self.unit is not None else set())

    def read(self, column: Reading, replaced: bool) -> Reading:
        """How the column is read; `replaced` says that bad bytes of texts are "?" already."""
        name = column.name.lower()
        if name not in self.names:
            return column
        return column.of_units(replaced) if name == self.unit else column.of_links(replaced)


class DuckDB(Tables[_Held]):
    """Tables of one DuckDB connection."""

    dialect: Dialect = DUCKDB

    def __init__(self, threads: int | None = None) -> None:
        super().__init__()
        import duckdb

        # What does not fit into memory is written here, readable by this user only.
        self._folder, remove = temporary_folder()
        self._clear = finalize(self, remove)
        settings: dict[str, Any] = {
            "temp_directory": self._folder,
            "python_enable_replacements": False,
            "default_collation": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._connection: DuckDBPyConnection | None = duckdb.connect(
            ":memory:", config=settings | ({"threads": threads} if threads else {})
        )
        self._select = duckdb.StatementType.SELECT
        self._alone = threads is None
        self._paths: list[Path] = []
        self._databases: dict[Path, str] = {}
        self._lock = Lock()
        self._cancelled = False
        self._forked = False
        _ENGINES.add(self)
        # A notebook without the widgets that would draw a bar has none, and `progress` does not know.
        with suppress(duckdb.InvalidInputException):
            self._execute("SET enable_progress_bar = true")
            self._execute("SET enable_progress_bar_print = false")

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
        """Register a file or folder, a DuckDB file, an Arrow table or dataset, a frame or a dict of arrays.

        `types` declares types of columns, `hints` those of columns that have none of their own and else would be text.
        Values of the `unit` column that name nobody (NaN, infinities) become NULL. So do values that are not read
        exactly, there and in `links`, the columns by which rows find their owners. Types of public data may be read off
        its values.
        """
        self._check_new(table)
        if isinstance(source, str) and (scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", source)):
            # Not shown whole: an address may hold a password.
            remedy = "give a path, postgresql://…, a session of Spark or a connection of ibis; see docs/engines.md"
            raise InvalidArgument("source", f"{scheme[1]}://…", "of a kind that is known", remedy)
        owning = _Owning(unit, links)
        try:
            self._held[table] = self._added(table, source, types or {}, hints or {}, owning, private)
            return
        except InvalidArgument:
            raise
        except Exception:
            shown = str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
        # Raised out here, the error does not carry the engine's own along, which may quote values.
        raise InvalidArgument("source", shown, "a table that can be read", "check it, or convert it")

    def _added(
        self,
        table: str,
        source: object,
        types: Mapping[str, Type],
        hints: Mapping[str, Type],
        owning: _Owning,
        private: bool,
    ) -> _Held:
        if isinstance(source, str | os.PathLike):
            path = Path(source).expanduser().resolve()
            identity, rows = f"file:{path}", self._files(table, path, private, owning)
        else:
            identity, rows = f"memory:{table}", self._frame(table, source, private, owning)
        described = [(name, str(kind)) for name, kind, *_ in self._execute(f"DESCRIBE {rows.sql}")]
        declared = _declared(table, described, rows, types, hints)
        readings = {name: reading(name, kind, declared.get(name.lower())) for name, kind in described}
        omitted = (*rows.omitted, *((name, kind) for name, kind in described if readings[name] is None))
        usable = [read for read in readings.values() if read is not None]
        if not usable:
            raise InvalidArgument("source", omitted, "with columns that queries can use", "declare their types")
        held = _Held(identity, tuple(Column(read.name, read.type) for read in usable), omitted, rows.paths)
        for read in usable:
            if read.name.lower() == owning.unit:
                self._check_units(read.family, "declare one type for both in `types`")
                held = replace(held, units=read.family)
        shown = [f"{owning.read(r, rows.replaced).sql} AS {quoted(r.name)}" for r in usable]
        looked_at = not private and (rows.small or rows.counted) and self._count(f"({rows.sql})") <= LOOKED_AT
        form = "TABLE" if rows.small or looked_at else "TEMP VIEW"
        self._execute(f"CREATE {form} {quoted(table)} AS SELECT {', '.join(shown)} FROM ({rows.sql})")
        if form == "TABLE" and rows.frame:
            with self._lock:
                self._opened().unregister(_frame_of(table))
        held = replace(held, copied=form == "TABLE")
        return self._looked_at(table, held) if looked_at else held

    def seal(self) -> None:
        """Nothing more is added; no other file can be read, no file written, and no setting changed."""
        allowed = ", ".join(text(str(path)) for path in self._paths)
        self._execute(f"SET allowed_paths = [{allowed}]")
        self._execute("SET enable_external_access = false")
        # Units and groups numbered within a million are looked up by their number instead of hashed.
        self._execute("SET perfect_ht_threshold = 20")
        if self._alone and all(held.copied and self._count(quoted(name)) <= FEW for name, held in self._held.items()):
            self._execute("SET threads = 1")
        self._execute("SET lock_configuration = true")
        for table in self._held:
            if not self._opens(table):
                remedy = "make it a table, or give the files that it reads"
                raise InvalidArgument("source", table, "a view of its own database", remedy)

    def identity(self, table: str) -> str:
        """The file's full path, or for a frame its name."""
        return self._of(table).identity

    def definition(self, table: str) -> str:
        """Nothing: what a file holds is the data set, whatever it is."""
        return ""

    def paths(self, table: str) -> tuple[Path, ...]:
        """The files its rows are in; none for a frame."""
        return self._of(table).paths

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Stopped by `cancel` or a signal, it raises KeyboardInterrupt: nothing has failed."""
        with self._lock:
            self._cancelled = False
            connection = self._opened()
            parsed = connection.extract_statements(statement)
            if len(parsed) != 1 or parsed[0].type != self._select:
                raise InvalidArgument("statement", statement, "one SELECT", "the engine only reads")
            try:
                rows: list[tuple[Any, ...]] = connection.execute(parsed[0]).fetchall()
                return rows
            except Exception as error:
                # On a signal, DuckDB raises a plain error with this text.
                if not self._cancelled and str(error) != "Query interrupted":
                    raise
        raise KeyboardInterrupt

    def progress(self) -> float | None:
        """How much of the running statement is done, from 0 to 1, for other threads to ask; None if nobody knows."""
        connection = self._connection
        if connection is None:
            return None
        done = connection.query_progress()
        return None if done < 0 else min(done / 100, 1.0)

    def cancel(self) -> None:
        """Stop the running statement, if there is one; its `run` raises KeyboardInterrupt."""
        if self._connection is not None:
            self._cancelled = True
            self._connection.interrupt()

    def close(self) -> None:
        """Let go of the tables, after the running statement."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
                self._clear()

    def _leave_to_parent(self) -> None:
        """In the child of a fork: the connection is the parent's alone."""
        if self._connection is not None:
            forever(self._connection)
        self._connection, self._forked, self._lock = None, True, Lock()

    def _opened(self) -> DuckDBPyConnection:
        if self._forked:
            raise InvalidArgument("session", "opened before a fork", "opened in the process that asks", "connect again")
        if self._connection is None:
            raise InvalidArgument("session", "closed", "open", "connect again")
        return self._connection

    def _execute(self, statement: str) -> list[tuple[Any, ...]]:
        with self._lock:
            rows: list[tuple[Any, ...]] = self._opened().execute(statement).fetchall()
        return rows

    def _opens(self, table: str) -> bool:
        try:
            self._execute(f"SELECT * FROM {quoted(table)} LIMIT 0")
        except Exception:
            return False
        return True

    def _count(self, selection: str) -> int:
        return int(self._execute(f"SELECT COUNT(*) FROM {selection}")[0][0])

    def _looked_at(self, table: str, held: _Held) -> _Held:
        """With what the columns of a public table hold: bounds, values, and which of them hold no value twice."""
        admitted = {column.name: DUCKDB.text(admit(column.name, column.type)) for column in held.columns}
        asked = ", ".join(f"COUNT(DISTINCT {sql}), MIN({sql}), MAX({sql})" for sql in admitted.values())
        rows, *found = self._execute(f"SELECT COUNT(*), {asked} FROM {quoted(table)}")[0]
        columns, unique = [], []
        for place, column in enumerate(held.columns):
            distinct, least, most = found[3 * place : 3 * place + 3]
            sql = f"SELECT DISTINCT {admitted[column.name]} FROM {quoted(table)} ORDER BY 1 NULLS LAST"
            columns.append(known(column, least, most, self._execute(sql) if 0 < distinct <= LISTED else []))
            unique += [column.name] if distinct == rows else []
        return replace(held, columns=tuple(columns), unique=tuple(unique))

    def _frame(self, table: str, source: Any, private: bool, owning: _Owning) -> _Rows:
        if is_dataset(source):
            return self._lazily(table, dataset(source, owning.names), owning, paths_of(source))
        frame = tabled(source, not private, owning.names)
        sql = self._registered(table, frame)
        untyped = frame.untyped if private else frozenset()
        return _Rows(sql, frame.omitted, untyped=untyped, small=frame.table.nbytes <= COPIED, frame=True)

    def _registered(self, table: str, frame: Frame) -> str:
        with self._lock:
            self._opened().register(_frame_of(table), frame.table)
        return f"SELECT * FROM {quoted(_frame_of(table))}"

    def _lazily(
        self, table: str, frame: Frame, owning: _Owning, paths: tuple[Path, ...], untyped: Iterable[str] = ()
    ) -> _Rows:
        # Arrow does not look whether text is UTF-8, and text that is not brings the engine down.
        below = self._registered(table, frame)
        shown = []
        for name, kind, *_ in self._execute(f"DESCRIBE {below}"):
            column = quoted(name)
            text_of = f"DECODE(ENCODE({column}), 'replace')" if kind == "VARCHAR" else column
            if kind == "VARCHAR" and name.lower() in owning.names:
                text_of = f"CASE WHEN ENCODE({text_of}) = ENCODE({column}) THEN {text_of} END"
            shown.append(f"{text_of} AS {column}")
        return _Rows(f"SELECT {', '.join(shown)} FROM ({below})", frame.omitted, paths, frozenset(untyped))

    def _files(self, table: str, path: Path, private: bool, owning: _Owning) -> _Rows:
        files = found(path)
        if files.kind == "database":
            return _Rows(self._database(table, path), paths=files.paths, counted=True)
        self._paths += files.paths
        if files.kind == "csv":
            sql = files.lines() if private else files.guessed()
            untyped = None if private else frozenset[str]()
            return _Rows(sql, paths=files.paths, untyped=untyped, small=files.size <= COPIED)
        footers = self._execute(files.footers())
        if len(footers) != 1:
            raise InvalidArgument("source", len(footers), "files with the same columns and types", "write them anew")
        for (name,) in self._execute(files.rounded()) if owning.names else []:
            if name.lower() in owning.names:
                bound = "of a type that is read without rounding, to tell people apart"
                raise InvalidArgument("column", name, bound, "write it as text, or with at most 38 digits")
        if footers[0][1]:
            # DuckDB fails on milliseconds that are out of its range; Arrow reads them as they are.
            return self._lazily(table, dataset(files.dataset(), owning.names), owning, files.paths, files.keys)
        small = files.size <= COPIED and self._count(f"({files.rows()})") <= FEW
        untyped = frozenset(files.keys)
        return _Rows(files.rows(), paths=files.paths, untyped=untyped, small=small, counted=True, replaced=True)

    def _database(self, table: str, path: Path) -> str:
        alias = self._databases.get(path)
        if alias is None:
            alias = f"database {len(self._databases)}"
            self._execute(f"ATTACH {text(str(path))} AS {quoted(alias)} (READ_ONLY)")
            self._databases[path] = alias
        listed = self._execute(
            f"SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = {text(alias)} UNION ALL "
            f"SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = {text(alias)} AND NOT internal"
        )
        named = [pair for pair in listed if pair[1].lower() == table.lower()]
        if len(named) != 1:
            remedy = nearest(table, sorted(name for _, name in listed))
            raise InvalidArgument("table", table, f"the name of one table or view in {path.name}", remedy)
        rows = f"FROM {quoted(alias)}.{quoted(named[0][0])}.{quoted(named[0][1])}"
        # A collation of theirs would make two people one, or two groups: texts are equal if their bytes are.
        texts = [quoted(name) for name, kind, *_ in self._execute(f"DESCRIBE {rows}") if kind == "VARCHAR"]
        replaced = ", ".join(f'{name} COLLATE "C" AS {name}' for name in texts)
        return f"SELECT * REPLACE ({replaced}) {rows}" if texts else f"SELECT * {rows}"


def _after_fork_in_child() -> None:
    for engine in list(_ENGINES):
        engine._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _frame_of(table: str) -> str:
    return f"frame of {table}"


def _declared(
    table: str, described: Sequence[tuple[str, str]], rows: _Rows, types: Mapping[str, Type], hints: Mapping[str, Type]
) -> dict[str, Type]:
    """The types that count, by names in lower case."""
    names = [name for name, _ in described]
    known = {name.lower() for name in names}
    lost = {name.lower(): kind for name, kind in rows.omitted}
    for name in types:
        if name.lower() in lost:
            raise InvalidArgument("types", lost[name.lower()], "convertible", f"leave {name} out, or convert it")
        if name.lower() not in known:
            raise InvalidArgument("types", name, f"a column of {table}", nearest(name, names))
    untyped = known if rows.untyped is None else {name.lower() for name in rows.untyped}
    wanted = {name.lower(): kind for name, kind in hints.items() if name.lower() in untyped}
    return {**wanted, **{name.lower(): kind for name, kind in types.items()}}

"""The default engine: DuckDB inside this process, over files, frames or a DuckDB database.

Tables are added, then the engine is sealed: from then on it reads what was added and nothing else, and writes nothing.
Short tables are copied into the engine when they are added, long ones are read by each statement: the files that were
there then, not those that come into a folder later. A file may be written anew; another file under its name is refused.
A database is open all the time, so nobody else can write to it. CSV files are parsed when they are added, and with
`lasting` once for all sessions (`duckdb/snapshots.py`): statements read their records.

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
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.core.forks import folder as temporary_folder
from discreet.core.forks import forever
from discreet.engines.duckdb.columns import Owning, by_bytes, declared_types, own_names, told_apart
from discreet.engines.duckdb.csv_records import Csv
from discreet.engines.duckdb.csv_spellings import kind_of_values, spelled
from discreet.engines.duckdb.files import CSV, Files, found, is_database, marks, outermost
from discreet.engines.duckdb.frames import Frame, dataset, is_dataset, paths_of, tabled
from discreet.engines.duckdb.rows import Held, Rows
from discreet.engines.duckdb.snapshots import Snapshot, registered, taken
from discreet.engines.duckdb.types import reading, text
from discreet.engines.engine import LISTED, LOOKED_AT, known, unrunnable
from discreet.engines.tables import FLEETING, Tables
from discreet.sql.catalog import Column, Type, nearest
from discreet.sql.functions.registry import admit
from discreet.sql.statement.dialect import DUCKDB, Dialect, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement

__all__ = ["DuckDB"]

COPIED = 1 << 28
"""Frames and CSV files of up to this many bytes are copied into the engine."""
WITHOUT_STATISTICS = "SET disabled_optimizers = 'statistics_propagation'"
FEW = 122_880
"""Rows that one thread reads in any case: Parquet files of so few are copied too, and where all tables are so short, no
time goes into waking other threads."""
UNREADABLE = ("IOException", "HTTPException", "PermissionException")
"""Errors that say nothing of a statement, but that a file is gone."""
_ENGINES: WeakSet[DuckDB] = WeakSet()
_frame_of = "frame of {}".format


class DuckDB(Tables[Held]):
    """Tables of one DuckDB connection."""

    title = "DuckDB"
    on_server = False
    dialect: Dialect = DUCKDB

    def __init__(self, threads: int | None = None, lasting: bool = False) -> None:
        super().__init__()
        import duckdb

        self._lasting = lasting
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
        self._last: tuple[str, Statement] | None = None
        self._errors = duckdb.Error
        self._alone = threads is None
        self._paths: list[Path] = []
        self._databases: dict[Path, str] = {}
        self._views: set[str] = set()
        self._lock = Lock()
        self._cancelled = False
        self._forked = False
        _ENGINES.add(self)
        # The engine folds conditions by the least and largest value of a column. In files these leave NaN out and keep
        # bytes that are read as others; in its own tables they overflow: a guard would go, and one value would decide
        # how those of others are read.
        self._execute(WITHOUT_STATISTICS)
        # A notebook without the widgets that would draw a bar has none, and `running` does not know.
        with suppress(duckdb.InvalidInputException):
            self._execute("SET enable_progress_bar = true")
            self._execute("SET enable_progress_bar_print = false")

    @classmethod
    def accepts(cls, source: object) -> bool:
        """Anything: what cannot be read is refused when it is added."""
        return True

    @classmethod
    def opened(cls, source: object) -> DuckDB:
        """An engine that keeps the records of CSV files for later sessions."""
        return cls(lasting=True)

    @classmethod
    def first_table(cls, source: object, table: str | None) -> tuple[object, str]:
        """The source itself, called as it is said or like its file."""
        return source, table or (Path(source).name.split(".")[0] if isinstance(source, str | os.PathLike) else "data")

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
        """Register a file or folder, a DuckDB file, an Arrow table or dataset, a frame or a dict of arrays.

        Values that are not read exactly become NULL in `unit` and `links`. Types of public data may be read off it.
        """
        self._check_new(table)
        if isinstance(source, str) and (scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", source)):
            # Not shown whole: an address may hold a password.
            remedy = "give a path, postgresql://…, a session of Spark or a connection of ibis; see docs/engines.md"
            raise InvalidArgument("source", f"{scheme[1]}://…", "of a kind that is known", remedy)
        owning = Owning(unit, links)
        try:
            self._held[table] = self._added(table, source, types or {}, hints or {}, owning, private, csv)
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
        owning: Owning,
        private: bool,
        csv: Csv | None,
    ) -> Held:
        if isinstance(source, str | os.PathLike):
            path = Path(source).expanduser().resolve()
            wanted = {name.lower(): kind for name, kind in {**hints, **types}.items()}
            identity, rows = f"file:{path}", self._files(table, path, private, owning, csv, wanted)
        else:
            identity, rows = f"{FLEETING}{table}", self._frame(table, source, private, owning)
        rows, described = told_apart(rows, self._described(rows.sql))
        reread = [path for path in rows.paths if not is_database(path) and not path.name.lower().endswith(CSV)]
        marked = {path: marks(path) for path in reread}
        declared = declared_types(table, described, rows.untyped, rows.omitted, types, hints)
        readings = {name: reading(name, kind, declared.get(name.lower())) for name, kind in described}
        omitted = (*rows.omitted, *((name, kind) for name, kind in described if readings[name] is None))
        usable = [read for read in readings.values() if read is not None]
        if not usable:
            raise InvalidArgument("source", omitted, "with columns that queries can use", "declare their types")
        columns = tuple(Column(read.name, read.type) for read in usable)
        held = Held(identity, columns, omitted, rows.paths, written=rows.written)
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
        held = replace(held, copied=form == "TABLE", marks={} if form == "TABLE" else marked)
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
            with suppress(self._errors):
                self._execute(f"SELECT * FROM {quoted(table)} LIMIT 0")
                continue
            remedy = "make it a table, or give the files that it reads"
            raise InvalidArgument("source", table, "a view of its own database", remedy)

    def identity(self, table: str) -> str:
        """The file's full path, or for a frame its name; with how a CSV file is read, if it does not say so itself."""
        held = self._of(table)
        return held.place + held.written

    def sources(self, table: str) -> tuple[str, ...]:
        """What the books know it by, however it is read: the file or folder; for a frame its name, then its files."""
        held = self._of(table)
        found = () if held.place.startswith("file:") else (f"file:{path}" for path in held.paths)
        return (held.place, *found)

    def shared_sources(self, table: str) -> tuple[str, ...]:
        """Its sources: the books of a folder are those of a file in it too, and nothing else tells them apart."""
        return self.sources(table)

    def definition(self, table: str) -> str:
        """How a CSV file is read, where that is declared and the file would be read otherwise: another decimal mark
        makes other values of the same file, and so other questions. Nothing else, for what a file holds is the data
        set, whatever it is; refused if there is another file by now."""
        held = self._of(table)
        if not self._is_same(held):
            raise self._changed(table)
        return held.written

    def is_view(self, table: str) -> bool:
        """Whether it is a view of a DuckDB file."""
        return table in self._views

    def paths(self, table: str) -> tuple[Path, ...]:
        """The files its rows are in; none for a frame."""
        return self._of(table).paths

    def prepare(self, statement: str) -> None:
        """Refuse what DuckDB cannot parse and bind; it is not optimized, for which statistics of rows are looked at."""
        failure = ""
        with self._lock:
            connection = self._opened()
            try:
                connection.sql(self._parsed(connection, statement))
            except self._errors as error:
                failure = type(error).__name__
        if failure in UNREADABLE:
            raise EngineUnavailable("a file of the tables cannot be opened")
        if failure:
            raise unrunnable("DuckDB", failure)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Stopped by `cancel` or a signal, it raises KeyboardInterrupt: nothing has failed."""
        with self._lock:
            self._cancelled = False
            connection = self._opened()
            parsed = self._parsed(connection, statement)
            used = [held for table, held in self._held.items() if quoted(table) in statement]
            try:
                rows: list[tuple[Any, ...]] = connection.execute(parsed).fetchall()
                if not all(map(self._is_same, used)):
                    raise EngineUnavailable("a file is another one by now: connect again")
                return rows
            except Exception as error:
                # On a signal, DuckDB raises a plain error with this text.
                if not self._cancelled and str(error) != "Query interrupted":
                    raise
        raise KeyboardInterrupt

    def running(self) -> bool:
        """Whether a statement is being run, for other threads to ask."""
        connection = self._connection
        return connection is not None and connection.query_progress() >= 0

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

    def _is_same(self, held: Held) -> bool:
        """Whether the files that are read are those that were there when the session began."""
        return all(marks(path) == before for path, before in held.marks.items())

    def _parsed(self, connection: DuckDBPyConnection, statement: str) -> Statement:
        """The statement as DuckDB reads it; the last one is kept, for it is prepared before it is run."""
        if self._last is None or self._last[0] != statement:
            parsed = connection.extract_statements(statement)
            if len(parsed) != 1 or parsed[0].type != self._select:
                raise InvalidArgument("statement", statement, "one SELECT", "the engine only reads")
            self._last = statement, parsed[0]
        return self._last[1]

    def _described(self, rows: str) -> list[tuple[str, str]]:
        """Names and types of the columns of a query."""
        return [(name, str(kind)) for name, kind, *_ in self._execute(f"DESCRIBE {rows}")]

    def _execute(self, statement: str) -> list[tuple[Any, ...]]:
        with self._lock:
            rows: list[tuple[Any, ...]] = self._opened().execute(statement).fetchall()
        return rows

    def _count(self, selection: str) -> int:
        return int(self._execute(f"SELECT COUNT(*) FROM {selection}")[0][0])

    def _looked_at(self, table: str, held: Held) -> Held:
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

    def _frame(self, table: str, source: Any, private: bool, owning: Owning) -> Rows:
        if is_dataset(source):
            return self._lazily(table, dataset(source, owning.names), owning, paths_of(source))
        frame = tabled(source, not private, owning.names)
        sql = self._registered(table, frame)
        untyped = frame.untyped if private else frozenset()
        return Rows(sql, frame.omitted, untyped=untyped, small=frame.table.nbytes <= COPIED, frame=True)

    def _registered(self, table: str, frame: Frame) -> str:
        with self._lock:
            self._opened().register(_frame_of(table), frame.table)
        return f"SELECT * FROM {quoted(_frame_of(table))}"

    def _lazily(
        self, table: str, frame: Frame, owning: Owning, paths: tuple[Path, ...], untyped: Iterable[str] = ()
    ) -> Rows:
        below = self._registered(table, frame)
        shown = [owning.in_utf8(name, kind) for name, kind in self._described(below)]
        return Rows(f"SELECT {', '.join(shown)} FROM ({below})", frame.omitted, paths, frozenset(untyped))

    def _files(
        self, table: str, path: Path, private: bool, owning: Owning, csv: Csv | None, wanted: Mapping[str, Type]
    ) -> Rows:
        files = found(path)
        if csv is not None and files.kind != "csv":
            raise InvalidArgument("csv", str(path), "of a CSV file", "leave it out for this table")
        if files.kind == "database":
            sql = self._database(table, path)
            return Rows(sql, paths=files.paths, counted=True, names=own_names(self._described(sql)))
        if files.kind == "csv":
            return self._records(path, files, csv or Csv(), private, owning, wanted)
        self._paths += files.paths
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
        names = (*outermost(self._execute(files.elements())), *files.keys)
        return Rows(files.rows(), (), files.paths, untyped, small, counted=True, replaced=True, names=names)

    def _records(
        self, path: Path, files: Files, csv: Csv, private: bool, owning: Owning, wanted: Mapping[str, Type]
    ) -> Rows:
        """The records of CSV files; `wanted` are the types that columns are to have."""
        if private and self._lasting:
            known = registered(path, files, csv)
        else:
            folder = Path(mkdtemp(prefix="records-", dir=self._folder))
            taken(path, files, csv, folder, tell=True)
            known = Snapshot.read(folder)
        rows, written = known.rows, known.written(files.paths[0], csv)
        self._paths.append(rows)
        below = f"FROM read_parquet([{text(str(rows))}], hive_partitioning=false)"
        names = [name for name, _ in self._described(below)]
        # Of what tells people apart no two texts become one.
        kinds = {name: kind for name, kind in wanted.items() if name not in owning.names}
        shown = [spelled(name, kinds.get(name.lower()), csv) for name in names]
        if not private:
            guessed = self._execute(f"SELECT {', '.join(map(kind_of_values, names))} {below}")[0]
            for place, (name, kind) in enumerate(zip(names, guessed, strict=True)):
                if name.lower() not in wanted and kind != "VARCHAR":
                    shown[place] = f"TRY_CAST({quoted(name)} AS {kind}) AS {quoted(name)}"
        untyped = None if private else frozenset[str]()
        paths = (*files.paths, rows)
        selected = f"SELECT {', '.join(shown)} {below}"
        return Rows(selected, (), paths, untyped, small=files.size <= COPIED, written=written)

    def _database(self, table: str, path: Path) -> str:
        alias = self._databases.get(path)
        if alias is None:
            alias = f"database {len(self._databases)}"
            self._execute(f"ATTACH {text(str(path))} AS {quoted(alias)} (READ_ONLY)")
            self._databases[path] = alias
        listed = self._execute(
            f"SELECT schema_name, table_name, false FROM duckdb_tables() WHERE database_name = {text(alias)} UNION ALL "
            f"SELECT schema_name, view_name, true FROM duckdb_views() WHERE database_name = {text(alias)} "
            "AND NOT internal"
        )
        named = [one for one in listed if one[1].lower() == table.lower()]
        if len(named) != 1:
            remedy = nearest(table, sorted(name for _, name, _ in listed))
            raise InvalidArgument("table", table, f"the name of one table or view in {path.name}", remedy)
        self._views |= {table} if named[0][2] else set()
        rows = f"FROM {'.'.join(map(quoted, (alias, *named[0][:2])))}"
        return by_bytes(rows, self._described(rows))


def _after_fork_in_child() -> None:
    for engine in list(_ENGINES):
        engine._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork_in_child)

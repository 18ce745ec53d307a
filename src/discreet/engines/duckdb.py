"""The default engine: DuckDB inside this process, over files, frames or a DuckDB database.

A source becomes a view; statements run on it one at a time in a connection of their own.

>>> engine = DuckDB()
>>> engine.add("survey", {"person": np.array([1, 1, 2]), "age": np.array([30, 31, 50])})
>>> [(column.name, column.type) for column in engine.columns("survey")]
[('person', 'integer'), ('age', 'integer')]
>>> engine.run('SELECT SUM("age") FROM "survey"')
[(111,)]
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.sql.catalog import Column, Type, nearest

__all__ = ["DuckDB"]

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_TYPES: dict[str, Type] = {
    **dict.fromkeys(_INTEGERS, "integer"),
    "FLOAT": "real",
    "DOUBLE": "real",
    "DECIMAL": "real",
    "BOOLEAN": "boolean",
    "VARCHAR": "text",
    "ENUM": "text",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
}
_READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".gz": "read_csv"}
_DATABASES = {".duckdb", ".db", ".ddb"}


class DuckDB:
    """Tables of one DuckDB connection."""

    dialect = "duckdb"

    def __init__(self, threads: int | None = None) -> None:
        import duckdb

        self._connection = duckdb.connect(":memory:", config={"threads": threads} if threads else {})
        self._identities: dict[str, str] = {}
        self._frames: list[object] = []
        self._lock = Lock()

    def add(self, table: str, source: object) -> None:
        """Register a Parquet or CSV file or folder, a DuckDB file, an Arrow table, a frame or a dict of arrays."""
        if isinstance(source, str | os.PathLike):
            path = Path(source).expanduser().resolve()
            self._execute(f"CREATE VIEW {_quoted(table)} AS {self._selection(table, path)}")
            self._identities[table] = f"file:{path}"
            return
        frame = _arrow(source) if isinstance(source, dict) else source
        try:
            self._connection.register(table, frame)
        except Exception as error:
            kind = type(source).__name__
            remedy = "give a path, a pyarrow table, a pandas or Polars frame, or a dict of arrays"
            raise InvalidArgument("source", kind, "a table", remedy) from error
        self._frames.append(frame)
        self._identities[table] = f"memory:{table}"

    def identity(self, table: str) -> str:
        """The file's full path, or for a frame its name."""
        self._check(table)
        return self._identities[table]

    def columns(self, table: str) -> tuple[Column, ...]:
        """Names and types from the schema alone."""
        self._check(table)
        described = self._execute(f"DESCRIBE SELECT * FROM {_quoted(table)}")
        kinds = ((name, str(kind).upper().split("(")[0]) for name, kind, *_ in described)
        return tuple(Column(name, _TYPES[kind]) for name, kind in kinds if kind in _TYPES)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one statement."""
        return self._execute(statement)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _execute(self, statement: str) -> list[tuple[Any, ...]]:
        with self._lock:
            rows: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
        return rows

    def _check(self, table: str) -> None:
        if table not in self._identities:
            raise InvalidArgument("table", table, "a registered table", nearest(table, self._identities))

    def _selection(self, table: str, path: Path) -> str:
        if not path.exists():
            here = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
            raise InvalidArgument("source", str(path), "an existing file or folder", nearest(path.name, here))
        if path.is_dir():
            found = {suffix for suffix in (".parquet", ".csv") if next(path.rglob(f"*{suffix}"), None)}
            if len(found) != 1:
                raise InvalidArgument("source", str(path), "a folder of Parquet or CSV files", "name one kind")
            suffix = found.pop()
            return f"SELECT * FROM {_reader(suffix, f'{path}/**/*{suffix}')}"
        if path.suffix in _DATABASES:
            self._execute(f"ATTACH {_text(str(path))} AS {_quoted('source of ' + table)} (READ_ONLY)")
            return f"SELECT * FROM {_quoted('source of ' + table)}.{_quoted(table)}"
        if path.suffix not in _READERS:
            raise InvalidArgument("source", str(path), f"one of {sorted({*_READERS, *_DATABASES})}", "convert the file")
        return f"SELECT * FROM {_reader(path.suffix, str(path))}"


def _arrow(columns: dict[str, np.ndarray[Any, np.dtype[Any]]]) -> object:
    import pyarrow

    return pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})


def _reader(suffix: str, pattern: str) -> str:
    # A line that does not parse is left out: it must not stop the others from being read.
    lenient = ", ignore_errors=true" if _READERS[suffix] == "read_csv" else ""
    return f"{_READERS[suffix]}({_text(pattern)}{lenient})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

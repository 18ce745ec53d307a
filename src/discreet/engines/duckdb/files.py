"""Files and folders as tables: what is in them is said by their names, header lines and footers alone.

Parquet files are read where they are; of CSV files the records are, once they are registered (`duckdb/snapshots.py`).

>>> Files((Path("visits.parquet"),), "parquet").rows()
"SELECT * FROM read_parquet(['visits.parquet'], utf8_validation='replace', hive_partitioning=false)"
>>> found(Path("no such file.csv"))
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: source='no such file.csv' must be an existing file or folder; ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.types import text
from discreet.sql.catalog import nearest

__all__ = ["Files", "found", "is_database", "marks", "outermost"]

PARQUET = (".parquet", ".pq", ".parq")
CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
DATABASES = (".duckdb", ".ddb", ".db")


@dataclass(frozen=True)
class Files:
    """Files of one kind with the same columns; `keys` are the names in `key=value` folders between them and the top."""

    paths: tuple[Path, ...]
    kind: str
    keys: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(path.stat().st_size for path in self.paths)

    def rows(self) -> str:
        """Parquet files as a query."""
        return f"SELECT * FROM {self._call('read_parquet', utf8_validation=text('replace'))}"

    def dataset(self) -> Any:
        """Parquet files as an Arrow dataset."""
        import pyarrow
        import pyarrow.dataset as datasets

        keys = pyarrow.schema([(key, pyarrow.string()) for key in self.keys])
        names = [str(path) for path in self.paths]
        return datasets.dataset(names, format="parquet", partitioning=datasets.partitioning(keys, flavor="hive"))

    def footers(self) -> str:
        """A query with a row for each set of columns that some Parquet file has, and whether it counts milliseconds."""
        said = "LIST(ROW(name, type, converted_type, logical_type, precision, scale))"
        unit = "BOOL_OR(converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=M%')"
        each = f"SELECT {said} AS columns, {unit} AS coarse FROM parquet_schema({self._list}) GROUP BY file_name"
        return f"SELECT columns, BOOL_OR(coarse) FROM ({each}) GROUP BY columns"

    def elements(self) -> str:
        """A query for what the first Parquet file is made of: names, and how many parts each has."""
        return f"SELECT name, num_children FROM parquet_schema([{text(str(self.paths[0]))}])"

    def rounded(self) -> str:
        """A query for the names of columns of Parquet files that DuckDB reads in a smaller type."""
        return f"SELECT DISTINCT name FROM parquet_schema({self._list}) WHERE type = 'INT96' OR precision > 38"

    @property
    def _list(self) -> str:
        return f"[{', '.join(text(str(path)) for path in self.paths)}]"

    def _call(self, function: str, **options: str) -> str:
        if self.keys:
            options |= {"hive_partitioning": "true", "hive_types_autocast": "false"}
        else:
            options |= {"hive_partitioning": "false"}
        said = "".join(f", {name}={value}" for name, value in options.items())
        return f"{function}({self._list}{said})"


def outermost(elements: Iterable[tuple[str, int | None]]) -> tuple[str, ...]:
    """The names of the columns themselves; each part of a Parquet file comes before its own parts.

    >>> outermost([("schema", 2), ("who", None), ("tags", 1), ("list", 1), ("element", None)])
    ('who', 'tags')
    """
    names, open_parts = [], [0]
    for name, parts in elements:
        names += [name] if len(open_parts) == 2 else []
        open_parts[-1] -= 1
        open_parts += [parts] if parts else []
        while len(open_parts) > 1 and not open_parts[-1]:
            open_parts.pop()
    return tuple(names)


def found(path: Path) -> Files:
    """The data files at a path: itself, or all below it."""
    if not path.exists():
        raise InvalidArgument("source", str(path), "an existing file or folder", nearest(path.name, _near(path.parent)))
    if path.is_file():
        kind = _kind(path)
        if kind is None:
            known = ", ".join((*PARQUET, *CSV, *DATABASES))
            raise InvalidArgument("source", str(path), f"one of {known}", "convert the file, or rename it")
        return Files((path,), kind)
    inside = sorted(p for p in path.rglob("*") if p.is_file() and not _is_hidden(p.relative_to(path).parts))
    kinds = {kind for p in inside if (kind := _kind(p)) in ("parquet", "csv")}
    if len(kinds) != 1:
        raise InvalidArgument("source", str(path), "a folder of Parquet or of CSV files", "name a folder of one kind")
    kind = kinds.pop()
    paths = [p for p in inside if _kind(p) == kind]
    keys = {tuple(part.split("=")[0] for part in p.relative_to(path).parts[:-1] if "=" in part) for p in paths}
    if len(keys) != 1:
        raise InvalidArgument("source", str(path), "files below the same key=value folders", "move the others away")
    return Files(tuple(paths), kind, keys.pop())


def marks(path: Path) -> frozenset[tuple[int, int]]:
    """What tells apart the data files at a path, whatever they are called: file system and number of each."""
    inside = [path]
    if path.is_dir():
        inside = [p for p in path.rglob("*") if _kind(p) is not None and not _is_hidden(p.relative_to(path).parts)]
    seen = [p.stat() for p in inside if p.is_file()]
    return frozenset((one.st_dev, one.st_ino) for one in seen)


def is_database(path: Path) -> bool:
    """Whether a file holds tables of its own, and not the rows of one."""
    return _kind(path) == "database"


def _kind(path: Path) -> str | None:
    name = path.name.lower()
    for kind, suffixes in (("parquet", PARQUET), ("csv", CSV), ("database", DATABASES)):
        if name.endswith(suffixes):
            return kind
    return None


def _is_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_")) for part in parts)


def _near(folder: Path) -> Iterable[str]:
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if _kind(entry) is not None and not entry.is_dir())

"""What Spark says of a table: what its columns are and how each is read, where its files are, what a view says.

Types come from the schema, never from rows. Reading a value never fails: what does not fit its type is NULL.

>>> reading("age", "int")
Reading(name='age', type='integer', sql='CAST(`age` AS BIGINT)', family='integer', owner='CAST(`age` AS BIGINT)')
>>> reading("tags", "array<string>") is None
True
>>> sources(["s3a://data/visits/day=2020-01-01/part-0.parquet"]), sources(["file:///srv/visits.parquet"])
(('spark:s3a://data/visits/day=2020-01-01/part-0.parquet', 'spark:s3a://data/visits'), ('file:/srv/visits.parquet',))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from discreet.core.errors import InvalidArgument
from discreet.engines.spark_dialect import double, identifier
from discreet.engines.spark_moments import in_utc
from discreet.sql.catalog import Type, nearest

__all__ = [
    "Reading",
    "definition",
    "digest",
    "folders",
    "found",
    "local",
    "named",
    "place",
    "plan",
    "quoted",
    "reading",
    "sources",
]

DIGITS = 18
"""So many digits fit in 64 bits."""
LARGEST = double(1.7976931348623157e308)
INTEGERS = ("tinyint", "smallint", "int", "bigint")
MANY = 100
"""Files that are named one by one."""
WHOLE = {"spark.sql.maxPlanStringLength": "2000000000", "spark.sql.debug.maxToStringFields": "1000000"}
"""Settings under which all of a plan is shown."""
VIEW = re.compile(r"View \((`[^,]*`), \[")
"""How a plan names the views it reads."""


@dataclass(frozen=True)
class Reading:
    """A column that queries can use: its name, our type, the expression that reads it, and the one for units, whose
    `family` says with which others it can be compared. A column whose values cannot name people has no `owner`."""

    name: str
    type: Type
    sql: str
    family: str
    owner: str | None

    @property
    def rounds(self) -> bool:
        """Whether two values may be read alike."""
        return self.type == "real" and self.family != "real"


def reading(name: str, kind: str) -> Reading | None:
    """How a column of a type of Spark is read; None if queries cannot use it."""
    column = identifier(name)
    form = kind.split("(")[0]
    if kind in INTEGERS:
        whole = column if kind == "bigint" else f"CAST({column} AS BIGINT)"
        return Reading(name, "integer", whole, "integer", whole)
    if form == "decimal":
        precision, scale = map(int, kind[len("decimal(") : -1].split(","))
        if scale == 0 and precision <= DIGITS:
            return Reading(name, "integer", f"CAST({column} AS BIGINT)", "integer", f"CAST({column} AS BIGINT)")
        return Reading(name, "real", f"CAST({column} AS DOUBLE)", kind, column)
    if kind in ("float", "double"):
        plain = column if kind == "double" else f"CAST({column} AS DOUBLE)"
        owner = f"CASE WHEN {plain} BETWEEN -{LARGEST} AND {LARGEST} THEN {plain} END"
        return Reading(name, "real", plain, "real", owner)
    if form.split(" ")[0] in ("string", "char", "varchar"):
        # Bytes that are no text become marks, but name nobody: two of them could be read alike.
        binary = f"CAST({column} AS STRING) COLLATE UTF8_BINARY" if " " in kind else f"CAST({column} AS STRING)"
        owner = f"CASE WHEN IS_VALID_UTF8({binary}) THEN {binary} END"
        collated = " collate " in kind and not kind.lower().endswith(" utf8_binary")
        return Reading(name, "text", f"MAKE_VALID_UTF8({binary})", "text", None if collated else owner)
    if kind == "timestamp":
        return Reading(name, "timestamp", in_utc(column), kind, column)
    plain_types: dict[str, Type] = {"boolean": "boolean", "date": "date", "timestamp_ntz": "timestamp"}
    known = plain_types.get(kind)
    return None if known is None else Reading(name, known, column, known, column)


def named(table: object) -> tuple[str, ...]:
    """The parts of a table's name, the last of which is its own; each may stand in backticks."""
    part = r"(`(?:[^`]|``)+`|[^`.]+)"
    if not isinstance(table, str) or not re.fullmatch(rf"{part}(?:\.{part}){{0,7}}", table):
        remedy = 'write "visits", "schema.visits" or "catalog.schema.visits"'
        raise InvalidArgument("table", table, "the name of a table that Spark knows", remedy)
    return tuple(
        found[1:-1].replace("``", "`") if found.startswith("`") else found for found in re.findall(part, table)
    )


def quoted(parts: Iterable[str]) -> str:
    """A name in SQL."""
    return ".".join(map(identifier, parts))


def found(session: Any, table: str) -> tuple[str, Any]:
    """A table or view by its name, and its rows."""
    from pyspark.errors import AnalysisException

    name = quoted(named(table))
    try:
        frame = session.table(name)
        if frame.columns:
            return name, frame
        remedy = "give it columns"
    except AnalysisException as error:
        denied = "PERMISSION" in (error.getCondition() or "") or "denied" in str(error).lower()
        remedy = "ask for the right to read it" if denied else nearest(table, _near(session, named(table)))
    raise InvalidArgument("table", table, "the name of one table or view that can be read", remedy)


def _near(session: Any, parts: tuple[str, ...]) -> list[str]:
    """Names of tables beside the one that is wanted, or else of the same name in other schemas."""
    inside, before = (f" IN {quoted(parts[:-1])}", ".".join(parts[:-1]) + ".") if parts[1:] else ("", "")
    try:
        rows = session.sql(f"SHOW TABLES{inside}").collect()
        return sorted(row[1] if row[2] else before + row[1] for row in rows if not row[1].startswith("discreet_"))
    except Exception:
        others = [f"{row[0]}.{parts[-1]}" for row in session.sql("SHOW DATABASES").collect()]
        return sorted(name for name in others if session.catalog.tableExists(quoted(named(name))))


def place(session: Any, name: str) -> str:
    """A name of a table that is the same in every session: where it lies, or else what it is called."""
    said: dict[str, str] = {}
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    titles = [row[0] for row in rows]
    start = titles.index("# Detailed Table Information") if "# Detailed Table Information" in titles else len(rows)
    for row in rows[start:]:
        said.setdefault(row[0], row[1])
    if said.get("Type") != "VIEW" and said.get("Location"):
        return _source(said["Location"])
    called = [said[part] for part in ("Catalog", "Database", "Table") if said.get(part)] or [name]
    return "spark:" + ".".join(called)


def definition(session: Any, name: str) -> str:
    """A digest of what a view, and the views it reads, say; empty for a table."""
    analyzed = _analyzed(session, name)
    views = list(dict.fromkeys(VIEW.findall(analyzed)))
    if not views:
        return ""
    said = [f"{row[0]} {row[1]}" for view in views for row in _texts(session, view)]
    # A view of the session alone says nothing but its plan.
    return digest(*(said or [analyzed]))


def plan(session: Any, view: str) -> str:
    """What a frame reads and does, whatever the view that stands for it is called."""
    return _analyzed(session, view).replace(view.strip("`"), "")


def digest(*said: str) -> str:
    """A few letters that stand for texts."""
    return f"#{sha256(chr(0).join(said).encode()).hexdigest()[:16]}"


def _analyzed(session: Any, name: str) -> str:
    """The plan that reads all of a table or view; its columns are numbered anew each time, so without their numbers."""
    before = {setting: session.conf.get(setting, None) for setting in WHOLE}
    try:
        for setting, value in WHOLE.items():
            session.conf.set(setting, value)
        (shown,) = session.sql(f"EXPLAIN EXTENDED SELECT * FROM {name}").collect()[0]
    finally:
        for setting, old in before.items():
            session.conf.unset(setting) if old is None else session.conf.set(setting, old)
    analyzed = shown.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    return re.sub(r"#\d+L?", "", analyzed)


def _texts(session: Any, view: str) -> list[tuple[str, str]]:
    try:
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {view}").collect()
    except Exception:
        return []
    return [(view, row[1]) for row in rows if row[0] == "View Text"]


def local(files: Iterable[str]) -> tuple[Path, ...]:
    """Those files that are on this machine."""
    parts = [urlsplit(file) for file in files]
    return tuple(Path(unquote(part.path)) for part in parts if part.scheme in ("", "file"))


def sources(files: Sequence[str]) -> tuple[str, ...]:
    """What the books know files by: themselves if they are few, and the folders of the tables that they belong to.

    Whether two sources share files of this machine is seen by the files: their folders are not named, if they are few.
    """
    few = files if len(files) <= MANY else []
    parted = [file for file in files if len(files) > 1 or "=" in file.split("/")[-2]]
    folders = [_folder(file) for file in parted if not few or urlsplit(file).scheme not in ("", "file")]
    return tuple(dict.fromkeys([_source(address) for address in (*few, *folders)]))


def folders(files: Iterable[str]) -> frozenset[str]:
    """Those of the tables that files belong to."""
    return frozenset(map(_folder, files))


def _folder(file: str) -> str:
    """Above those of partitions."""
    folders = file.split("/")[:-1]
    while folders and "=" in folders[-1]:
        folders.pop()
    return "/".join(folders)


def _source(address: str) -> str:
    """Where data lies; credentials in an address are left out."""
    parts = urlsplit(address)
    if parts.scheme in ("", "file"):
        return f"file:{unquote(parts.path).rstrip('/')}"
    return f"spark:{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"

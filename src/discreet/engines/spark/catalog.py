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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from discreet.core.errors import InvalidArgument
from discreet.engines.spark.dates import in_utc
from discreet.engines.spark.dialect import double, identifier
from discreet.engines.spark.files import place_of
from discreet.engines.tables import readable
from discreet.sql.catalog import Type, nearest
from discreet.sql.decimals import DIGITS, LONG_DIGITS, Decimals

__all__ = [
    "Reading",
    "columns",
    "definition",
    "digest",
    "explained",
    "found",
    "local",
    "named",
    "place",
    "places",
    "plan",
    "quoted",
    "reading",
    "same_columns",
    "same_plan",
    "sources",
]

LARGEST = double(1.7976931348623157e308)
INTEGERS = ("tinyint", "smallint", "int", "bigint")
DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps that a text is a CHAR(n) to whoever declared it."""
MANY = 100
"""Files that are named one by one."""
WHOLE = {
    "spark.sql.maxPlanStringLength": "2000000000",
    "spark.sql.maxMetadataStringLength": "2000000000",
    "spark.sql.debug.maxToStringFields": "1000000",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
}
"""Settings under which all of a plan is shown, and structs with all that they are made of."""
PLAIN = {"spark.sql.redaction.string.regex": "(?!)"}
"""Under which nothing in it is replaced by stars."""
VIEW = re.compile(r"View \((`[^,]*`), \[")
"""How a plan names the views it reads."""
NUMBER = re.compile(r"#\d+L?")
"""How a plan tells columns of one name apart."""


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
        if scale == 0 and precision <= LONG_DIGITS:
            return Reading(name, "integer", f"CAST({column} AS BIGINT)", "integer", f"CAST({column} AS BIGINT)")
        # A file may hold more digits than its type says, on which arithmetic fails.
        most = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
        ends = [f"CAST('{sign}{most}' AS {kind.upper()})" for sign in ("-", "")]
        guarded = f"CASE WHEN {column} BETWEEN {ends[0]} AND {ends[1]} THEN {{}} END"
        units, owner = guarded.format(_units(column, precision, scale)), guarded.format(column)
        return Reading(name, Decimals.of(precision, scale), units, kind, owner)
    if kind in ("float", "double"):
        plain = column if kind == "double" else f"CAST({column} AS DOUBLE)"
        owner = f"CASE WHEN {plain} BETWEEN -{LARGEST} AND {LARGEST} THEN {plain} END"
        return Reading(name, "real", plain, "real", owner)
    if form.split(" ")[0] in ("string", "char", "varchar"):
        # Bytes that are no text become marks, but name nobody: two of them could be read alike.
        binary = f"CAST({column} AS STRING) COLLATE UTF8_BINARY" if " " in kind else f"CAST({column} AS STRING)"
        # CHAR(n) is filled up with spaces to n characters, which mean nothing: 'ann' is one person in any of them.
        binary = f"RTRIM(' ', {binary})" if form.split(" ")[0] == "char" else binary
        owner = f"CASE WHEN IS_VALID_UTF8({binary}) THEN {binary} END"
        collated = " collate " in kind and not kind.lower().endswith(" utf8_binary")
        return Reading(name, "text", f"MAKE_VALID_UTF8({binary})", "text", None if collated else owner)
    if kind == "timestamp":
        return Reading(name, "timestamp", in_utc(column), kind, column)
    plain_types: dict[str, Type] = {"boolean": "boolean", "date": "date", "timestamp_ntz": "timestamp"}
    known = plain_types.get(kind)
    return None if known is None else Reading(name, known, column, known, column)


def columns(frame: Any, barred: Mapping[str, str]) -> tuple[dict[str, Reading], tuple[tuple[str, str], ...]]:
    """How the columns of a frame are read, and why some cannot be; those `barred` have a reason already."""
    found = []
    for column in frame.schema.fields:
        kind = column.dataType.simpleString()
        if str(column.metadata.get(DECLARED, "")).startswith("char("):
            kind = re.sub("^string", "char", kind)
        reason = barred.get(column.name.lower())
        read = None if "${" in column.name or reason else reading(column.name, kind)
        found.append((column.name, read, reason or kind))
    readings, omitted = readable(found)
    if not readings:
        raise InvalidArgument("source", omitted, "with columns that queries can use", "CAST them in a view")
    return readings, omitted


def same_columns(now: Any, before: Any, barred: Mapping[str, str]) -> bool:
    """Whether two schemas have the same columns, but for those `barred`, which are not read."""
    found = [[c for c in schema.fields if c.name.lower() not in barred] for schema in (now, before)]
    return found[0] == found[1]


def _units(column: str, precision: int, scale: int) -> str:
    """The whole number of units that a decimal is. Spark keeps all digits of a product of up to 38 of them; of others
    the digits are written down."""
    form = "BIGINT" if precision <= LONG_DIGITS else f"DECIMAL({DIGITS},0)"
    if precision + scale + 2 <= DIGITS:
        return f"CAST({column} * CAST('{10**scale}' AS DECIMAL({scale + 1},0)) AS {form})"
    return f"CAST(REPLACE(REPLACE(FORMAT_NUMBER({column}, {scale}), ',', ''), '.', '') AS {form})"


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
        return place_of(said["Location"])
    called = [said[part] for part in ("Catalog", "Database", "Table") if said.get(part)] or [name]
    return "spark:" + ".".join(called)


def places(session: Any, tables: Iterable[str]) -> tuple[str, ...]:
    """Where tables lie that a plan names, without quotes; of one that is not found by that, its name."""
    found = []
    for table in dict.fromkeys(tables):
        try:
            found.append(place(session, quoted(table.split("."))))
        except Exception:
            found.append(f"spark:{table}")
    return tuple(found)


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


def same_plan(analyzed: str, views: bool = False) -> str:
    """A plan without what is new each time; with `views`, nothing unless there is a view in it."""
    shown = NUMBER.sub("", analyzed)
    # The name under which it stands in the statement, and numbers of what is in memory, are new each time.
    same = re.sub(r"_pyspark_\w+", "", shown)
    return "" if views and not VIEW.search(same.replace("View (``", "")) else same


def explained(session: Any, frame: Any) -> tuple[str, str]:
    """The plan of a frame, with the numbers by which its columns are told apart, and the physical one."""
    return _explained(session, "EXPLAIN EXTENDED SELECT * FROM {frame}", WHOLE | PLAIN, frame=frame)


def digest(*said: str) -> str:
    """A few letters that stand for texts."""
    return f"#{sha256(chr(0).join(said).encode()).hexdigest()[:16]}"


def _analyzed(session: Any, name: str) -> str:
    """The plan that reads all of a table or view; its columns are numbered anew each time, so without their numbers."""
    return NUMBER.sub("", _explained(session, f"EXPLAIN EXTENDED SELECT * FROM {name}", WHOLE)[0])


def _explained(session: Any, statement: str, settings: Mapping[str, str], **frames: Any) -> tuple[str, str]:
    before = {setting: session.conf.get(setting, None) for setting in settings}
    try:
        for setting, value in settings.items():
            session.conf.set(setting, value)
        (shown,) = session.sql(statement, **frames).collect()[0]
    finally:
        for setting, old in before.items():
            session.conf.unset(setting) if old is None else session.conf.set(setting, old)
    analyzed, _, after = shown.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")
    return analyzed, after.partition("== Physical Plan ==")[2]


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
    return tuple(dict.fromkeys([place_of(address) for address in (*few, *folders)]))


def _folder(file: str) -> str:
    """Above those of partitions."""
    folders = file.split("/")[:-1]
    while folders and "=" in folders[-1]:
        folders.pop()
    return "/".join(folders)

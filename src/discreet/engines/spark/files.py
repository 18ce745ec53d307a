"""Files that Spark reads: in which folders they may come to lie, and which of their columns its own reader can fail on.

A reader that fails on one stored value does so before any expression of ours is asked, and the failure would tell of a
row. So it is decided by what is known without rows: plans, schemas and footers. Lines of text (CSV, JSON, XML), Avro
and tables of Hive that Spark does not read as Parquet or ORC are refused. Of Parquet, moments in milliseconds and
decimals of more than 18 digits can lie beyond what Spark holds, of ORC moments: such columns are not read.

>>> check_kinds("Project [who]\\n+- Relation [who#1L] csv\\n")
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: source='csv' must be Parquet or ORC where it is files, ...; write it to ...
>>> unread("+- Relation lake.stays[who#1L,seen#2] parquet", {"seen": "moments in milliseconds"})
{'2': ('seen', 'moments in milliseconds')}
>>> folder("file:///lake/a=1/b=2/0", ["file:/lake/a=1"], ""), folder("file:///lake/a=2/0", [], "[a#1]")
('file:/lake/a=1', 'file:/lake')
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from discreet.core.errors import InvalidArgument
from discreet.engines.spark.jobs import unsaid
from discreet.sql.decimals import LONG_DIGITS

__all__ = [
    "Footers",
    "check_kinds",
    "folder",
    "kinds",
    "listed",
    "outputs",
    "place_of",
    "relations",
    "tables",
    "unread",
]

REFUSED = re.compile(r"\] (avro|csv|json|text|xml)(?: .*)?$|^[\s:|+-]*(HiveTableRelation)\b", re.M)
"""How a plan ends the line of a source that fails on what a line or a record holds."""
FILES = re.compile(r"^.*\] (?:parquet|orc)(?: .*)?$", re.M)
"""Lines of a plan that stand for files, with their columns."""
OURS = re.compile(r"^[\s:|+-]*View \(`_pyspark_\w+`, .*$", re.M)
TABLE = re.compile(r"^[\s:|+-]*Relation ([^\[]+)\[")
MILLIS, LONG, MOMENT = "moments in milliseconds", f"decimals of more than {LONG_DIGITS} digits", "moments in ORC"
SHORT = "decimals"
"""Decimals that are read whatever they hold, unless as a type of more digits."""
FIELD = re.compile(r" +\w+ \w+(?:\(\d+\))? (.*?) \((.*)\)(?: = \d+)?;")
"""A column in what Parquet's own library says of a schema."""
GROUP = re.compile(r"  \w+ group (.*?)(?: \(.*\))?(?: = \d+)? \{")
"""A column of structs or lists there: what is in it stands further to the right."""


def check_kinds(plan: str) -> None:
    """Refuse files whose reader can fail on what they hold."""
    found = REFUSED.search(plan)
    if found is not None:
        kind = found[1] or "a table of Hive"
        bound = "Parquet or ORC where it is files, since Spark fails on single values of others"
        raise InvalidArgument("source", kind, bound, "write it to Parquet first")


def relations(plan: str) -> str:
    """The lines of a plan that stand for files."""
    return "\n".join(FILES.findall(plan))


def unread(plan: str, failing: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The columns of files in a plan that cannot be read without fail, by their numbers in it."""
    lines = relations(plan)
    found = {}
    for name, reason in failing.items():
        for number in re.findall(rf"[\[, ]{re.escape(name)}#(\d+)", lines, re.I):
            found[number] = (name, reason)
    return found


def outputs(plan: str, numbers: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Which of the numbered columns a frame passes on as they are, by name; refused if it does anything else with one:
    whether that is read is not known then."""
    lines = [line for line in OURS.sub("", plan).splitlines() if FILES.match(line) is None]
    top = next((place for place, line in enumerate(lines) if line.startswith("Project [")), 0)
    first, rest = lines[top] if lines else "", "\n".join([*lines[:top], *lines[top + 1 :]])
    passed = {}
    for number, (name, reason) in numbers.items():
        if re.search(rf"#{number}\b|#{number}L", rest):
            bound = f"without {name}, which has {reason}: Spark fails on some of them"
            raise InvalidArgument("source", name, bound, "leave it out of the view or frame, or write it anew")
        shown = re.search(rf"[\[ ](.{{1,{len(name)}}})#{number}L?[,\]]", first)
        if shown is not None:
            passed[shown[1].lower()] = reason
    return passed


class Footers:
    """What files say of their columns; each is looked into once, as long as it stays the same."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._known: dict[tuple[Any, ...], dict[str, str] | None] = {}

    def failing(self, files: Iterable[str], kinds: Mapping[str, str]) -> dict[str, str]:
        """Columns on which the reader can fail, with the reasons; `kinds` are the types that Spark says.

        Where a file cannot be looked into, as over Spark Connect, types must do.
        """
        found: dict[str, str] = {}
        long = {name for name, kind in kinds.items() if is_long(kind)}
        for file in files:
            state = self._state(file)
            if state is None or state not in self._known:
                said = self._looked_into(file)
                if state is not None:
                    self._known[state] = said
            else:
                said = self._known[state]
            said = dict.fromkeys(long, SHORT) if said is None else said
            found |= {
                name: LONG if reason == SHORT else reason
                for name, reason in said.items()
                if reason != SHORT or name.lower() in long
            }
        return found

    def _state(self, file: str) -> tuple[Any, ...] | None:
        """What tells a file from one that was written in its place; None where that is not known."""
        parts = urlsplit(file)
        java = getattr(self._session, "_jvm", None)
        try:
            if parts.scheme in ("", "file"):
                seen = Path(unquote(parts.path)).stat()
                return file, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino
            if java is None:
                return None
            path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
            status = path.getFileSystem(self._session._jsparkSession.sessionState().newHadoopConf()).getFileStatus(path)
            return file, status.getLen(), status.getModificationTime()
        except Exception:
            return None

    def _looked_into(self, file: str) -> dict[str, str] | None:
        """What can fail in one file; None where it cannot be looked into."""
        parts = urlsplit(file)
        path = Path(unquote(parts.path))
        java = getattr(self._session, "_jvm", None)
        try:
            if parts.scheme in ("", "file") and path.is_file():
                return _local(path)
            return None if java is None else _remote(java, self._session, file)
        except Exception:
            return None


def kinds(frame: Any) -> dict[str, str]:
    """The types of a frame's columns."""
    return {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}


def listed(frame: Any) -> list[str] | None:
    """The files that a frame reads, as far as Spark knows; None if it does not say.

    It optimizes the plan for that, which may compute rows that are in it, and fail.
    """
    try:
        with unsaid():
            return sorted(frame.inputFiles())
    except Exception:
        return None


def is_long(kind: str) -> bool:
    """Whether a type of Spark is that of decimals of more digits than fit in 64 bits."""
    found = re.fullmatch(r"decimal\((\d+),\d+\)", kind)
    return found is not None and int(found[1]) > LONG_DIGITS


def _local(path: Path) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.orc
    import pyarrow.parquet

    try:
        schema = pyarrow.parquet.ParquetFile(path).schema
    except pa.ArrowInvalid:
        fields = pyarrow.orc.ORCFile(path).schema
        return {field.name: MOMENT for field in fields if "timestamp" in str(field.type)}
    columns = [schema.column(place) for place in range(len(schema.names))]
    tops = [column.name if column.path == column.name else column.path.split(".")[0] for column in columns]
    said = [(top, str(column.logical_type).lower()) for top, column in zip(tops, columns, strict=True)]
    return _reasons((name, kind.replace("precision=", "").replace("milliseconds", "millis")) for name, kind in said)


def _remote(java: Any, session: Any, file: str) -> dict[str, str]:
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
    try:
        opened = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, hadoop)
        reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(opened)
    except Exception:
        orc = java.org.apache.orc.OrcFile
        schema = orc.createReader(path, orc.readerOptions(hadoop)).getSchema()
        pairs = zip(schema.getFieldNames(), schema.getChildren(), strict=True)
        return {str(name): MOMENT for name, kind in pairs if "timestamp" in str(kind)}
    try:
        said = str(reader.getFooter().getFileMetaData().getSchema().toString())
    finally:
        reader.close()
    return _reasons(_columns(said))


def _columns(said: str) -> list[tuple[str, str]]:
    """The columns of a schema as Parquet's own library writes it, each under the name of the one it is in."""
    top, found = "", []
    for line in said.splitlines():
        group, field = GROUP.fullmatch(line), FIELD.fullmatch(line)
        top = group[1] if group is not None else "" if line == "  }" else top
        if field is not None:
            found.append((top or field[1], field[2].lower()))
    return found


def _reasons(said: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Why columns can fail; what a column of structs or lists holds counts for all of it."""
    found: dict[str, str] = {}
    for name, kind in said:
        digits = re.match(r"decimal\((\d+)", kind)
        if digits is not None:
            found[name] = LONG if int(digits[1]) > LONG_DIGITS else found.get(name, SHORT)
        elif kind.startswith("timestamp") and "millis" in kind:
            found[name] = MILLIS
    return found


def place_of(address: str) -> str:
    """Where data lies; credentials in an address are left out."""
    parts = urlsplit(address)
    if parts.scheme in ("", "file"):
        return f"file:{unquote(parts.path).rstrip('/')}"
    return f"spark:{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def tables(plan: str) -> list[str]:
    """The tables of a catalog in a plan, as it names them."""
    return [found[1] for line in FILES.findall(plan) if (found := TABLE.match(line)) is not None]


def folder(file: str, roots: Collection[str], columns: str) -> str:
    """The folder that a file belongs to: that of a table, if it lies there or below in folders of partitions, or its
    own, since a partition may lie anywhere. Where there is no table, only what is below a given path is found: it is
    the one above folders that are called by `columns` of the files."""
    parts = place_of(file).split("/")[:-1]
    for root in roots:
        base = root.split("/")
        if parts[: len(base)] == base and all("=" in part for part in parts[len(base) :]):
            return root
    while not roots and "=" in parts[-1] and _is_column(parts[-1].partition("=")[0], columns):
        parts.pop()
    return "/".join(parts)


def _is_column(name: str, lines: str) -> bool:
    return re.search(rf"[\[, ]{re.escape(name)}#\d", lines, re.I) is not None

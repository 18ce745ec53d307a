"""Which columns of Parquet and ORC files Spark's reader can fail on, by their footers and the types that plans declare.

A column is read only where reading it is total: no stored value makes it fail. That is so where the file's own type is
the declared one or one of `TOTAL`, except for moments in milliseconds and decimals of more than 18 digits in Parquet
and moments in ORC, which can lie beyond what Spark holds. Everything else is left out: a date declared as a timestamp
overflows by one value, a short decimal declared as a long one fails on digits that its own type does not have.

>>> is_total("int", "bigint"), is_total("date", "timestamp_ntz"), is_total("decimal(5,2)", "decimal(9,2)")
(True, False, True)
>>> [scan] = scans("+- FileScan parquet [a#1] Location: X[file:/lake/t], ReadSchema: struct<a:int,s:struct<b:date>>")
>>> scan.columns, scan.claims("file:///lake/t/part-0"), scan.claims("file:///lake/other/part-0")
({'a': 'int', 's': 'struct<b:date>'}, True, False)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from discreet.sql.decimals import LONG_DIGITS

__all__ = ["Footers", "Scan", "is_total", "scans"]

MILLIS, LONG = "moments in milliseconds", f"decimals of more than {LONG_DIGITS} digits"
IN_ORC = {"timestamp": "moments in ORC", "decimal": "decimals in ORC"}
"""Types of ORC on whose values the reader can fail: moments out of range, decimals of more digits than their type."""
TOTAL = {
    "tinyint": ("smallint", "int", "bigint", "double"),
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double"),
    "float": ("double",),
    "binary": ("string",),
    "string": ("binary",),
    "timestamp_ntz": ("timestamp",),
}
"""Types in files, with the other declared types under which each of their values is read."""
SIGNED = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
UNSIGNED = {8: "smallint", 16: "int", 32: "bigint", 64: "decimal(20,0)"}
"""Types that hold the integers of so many bits."""
PHYSICAL = {
    **{name: name for name in ("boolean", "float", "double", "binary")},
    **dict.fromkeys(("byte_array", "fixed_len_byte_array"), "binary"),
    "int32": "int",
    "int64": "bigint",
    "int96": "timestamp",
}
LOGICAL = {"string": "string", "utf8": "string", "enum": "string", "json": "string", "date": "date", "bson": "binary"}
LOGICAL |= {"uuid": "binary"}
"""What Spark takes types of Parquet for."""
ARROW = {"bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}
ARROW |= {"large_string": "string", "large_binary": "binary", "date32[day]": "date"}
"""What Spark takes the types of ORC for that Arrow calls otherwise."""
FIELD = re.compile(r" +\w+ (\w+)(?:\(\d+\))? (.*?)(?: \(([A-Z0-9_]+(?:\([^()]*\))?)\))?(?: = \d+)?;")
"""A column in what Parquet's own library says of a schema: its type, its name, and what the type stands for."""
GROUP = re.compile(r"  \w+ group (.*?)(?: \(.*\))?(?: = \d+)? \{")
"""A column of structs or lists there: what is in it stands further to the right."""
LEAF = re.compile(r"(?:^|[:<,])(decimal\(\d+,\d+\)|[a-z_ ]+(?:\(\d+\))?)(?=[,>]|$)")
"""A type that is not made of others, in one that may be."""
ODD = re.compile(r"[:,<>()\s]")
"""Marks in a name after which a schema in a plan can be read in two ways."""


@dataclass(frozen=True)
class Scan:
    """How a physical plan reads files: the columns that it reads with their declared types, and where the files are."""

    columns: Mapping[str, str]
    location: str

    def claims(self, file: str) -> bool:
        """Whether a file lies where this one reads."""
        path = Path(unquote(urlsplit(file).path))
        return any(re.search(rf"{re.escape(str(above))}/?[,\]]", self.location) for above in (path, *path.parents))


@dataclass(frozen=True)
class _Stored:
    """A column in a file: the types of what it is made of, as Spark calls them, and why it cannot be read at all."""

    kinds: tuple[str, ...]
    reason: str = ""

    def failing(self, declared: str) -> str:
        """Why it may fail when it is read as a declared type; empty if it cannot."""
        wanted = LEAF.findall(declared) if "<" in declared else [declared]
        if self.reason or len(wanted) != len(self.kinds):
            return self.reason or f"values stored otherwise than as {declared}"
        # What a struct is made of has an order of its own in each file.
        pairs = zip(sorted(self.kinds), sorted(wanted), strict=True)
        odd = next((kind for kind, other in pairs if not is_total(kind, other)), None)
        return "" if odd is None else f"values stored as {odd} and declared as {declared}"


class Footers:
    """What files say of their columns; each is looked into once, as long as it stays the same."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._known: dict[tuple[Any, ...], dict[str, _Stored] | None] = {}

    def failing(self, files: Iterable[str], plan: Sequence[Scan], shown: Mapping[str, str]) -> dict[str, str]:
        """Columns on which the reader can fail, with the reasons. The plan says how each is declared; `shown` are the
        columns of the frame itself, which say it where a plan does not.

        A file that cannot be looked into is on other machines, which nobody from here writes to; Spark itself made
        its types known, and of those it tells, decimals of more than 18 digits are not read.
        """
        found: dict[str, str] = {}
        long = {name: LONG for name, kind in shown.items() if _is_long(kind)}
        for file in files:
            stored = self._columns(file)
            if stored is None:
                found |= long
                continue
            claiming = [scan for scan in plan if scan.claims(file)] or plan
            for name, column in stored.items():
                kinds = [scan.columns[name.lower()] for scan in claiming if name.lower() in scan.columns]
                if not plan or ODD.search(name):
                    kinds = [shown[name.lower()]] if name.lower() in shown else []
                reasons = [column.reason, *(column.failing(kind) for kind in kinds)]
                reason = next(filter(None, reasons), "")
                if reason:
                    found[name] = reason
        return found

    def are_there(self, files: Iterable[str]) -> bool:
        """Whether no file of this machine has gone."""
        parts = [urlsplit(file) for file in files]
        if getattr(self._session, "_jvm", None) is None:
            return True
        return all(Path(unquote(part.path)).exists() for part in parts if part.scheme in ("", "file"))

    def _columns(self, file: str) -> dict[str, _Stored] | None:
        """The columns of a file; None where it cannot be looked into."""
        state = self._state(file)
        if state is None or state not in self._known:
            stored = self._looked_into(file)
            if state is None:
                return stored
            self._known[state] = stored
        return self._known[state]

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

    def _looked_into(self, file: str) -> dict[str, _Stored] | None:
        parts = urlsplit(file)
        path = Path(unquote(parts.path))
        java = getattr(self._session, "_jvm", None)
        try:
            if parts.scheme in ("", "file") and path.is_file():
                return _local(path)
            return None if java is None else _remote(java, self._session, file)
        except Exception:
            return None


def is_total(stored: str, declared: str) -> bool:
    """Whether every value of a type in a file is read as a declared type."""
    short = [re.fullmatch(r"decimal\((\d+),(\d+)\)", kind) for kind in (stored, declared)]
    if short[0] is not None and short[1] is not None and stored != declared:
        digits, scales = ([int(kind[place]) for kind in short if kind is not None] for place in (1, 2))
        return digits[0] <= digits[1] <= LONG_DIGITS and scales[0] == scales[1]
    return stored == declared or declared in TOTAL.get(stored, ())


def scans(physical: str) -> list[Scan]:
    """How a physical plan reads files. It must be shown in full."""
    found = []
    for line in physical.splitlines():
        before, mark, after = line.rpartition("ReadSchema: struct<")
        if mark:
            location = before.rpartition("Location: ")[2]
            fields = [field.partition(":") for field in _fields(after)]
            found.append(Scan({name.lower(): kind for name, _, kind in fields}, location))
    return found


def _fields(text: str) -> list[str]:
    """The parts of what stands between brackets, of which the first was opened before."""
    parts, depth = [""], 0
    for mark in text:
        depth += (mark in "<(") - (mark in ">)")
        if depth < 0:
            break
        if mark == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    return [part for part in parts if part]


def _is_long(kind: str) -> bool:
    """Whether a type of Spark is that of decimals of more digits than fit in 64 bits."""
    found = re.fullmatch(r"decimal\((\d+),\d+\)", kind)
    return found is not None and int(found[1]) > LONG_DIGITS


def _local(path: Path) -> dict[str, _Stored]:
    import pyarrow as pa
    import pyarrow.orc
    import pyarrow.parquet

    try:
        schema = pyarrow.parquet.ParquetFile(path).schema
    except pa.ArrowInvalid:
        return _of_orc((field.name, _leaves(field.type)) for field in pyarrow.orc.ORCFile(path).schema)
    columns = [schema.column(place) for place in range(len(schema.names))]
    tops = [column.name if column.path == column.name else column.path.split(".")[0] for column in columns]
    return _of_parquet(
        (top, column.physical_type.lower(), _logical(str(column.logical_type)))
        for top, column in zip(tops, columns, strict=True)
    )


def _logical(said: str) -> str:
    """What a type stands for as Parquet's own library writes it, by how Arrow does."""
    said = re.sub(r"^Timestamp\(isAdjustedToUTC=(\w+), timeUnit=(\w+)seconds.*", r"timestamp(\2s,\1)", said)
    said = re.sub(r"^Time\(isAdjustedToUTC=(\w+), timeUnit=(\w+)seconds.*", r"time(\2s,\1)", said)
    said = re.sub(r"^Int\(bitWidth=(\d+), isSigned=(\w+)\)", r"integer(\1,\2)", said)
    said = re.sub(r"^Decimal\(precision=(\d+), scale=(\d+)\)", r"decimal(\1,\2)", said)
    return "" if said == "None" else said.lower()


def _leaves(kind: Any) -> list[str]:
    """The types that a type of Arrow is made of, as Spark calls those that it knows."""
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return [leaf for place in range(kind.num_fields) for leaf in _leaves(kind.field(place).type)]
    if pa.types.is_decimal(kind):
        return [f"decimal({kind.precision},{kind.scale})"]
    return ["timestamp" if pa.types.is_timestamp(kind) else ARROW.get(str(kind), str(kind))]


def _remote(java: Any, session: Any, file: str) -> dict[str, _Stored]:
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
    try:
        opened = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, hadoop)
        reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(opened)
    except Exception:
        orc = java.org.apache.orc.OrcFile
        schema = orc.createReader(path, orc.readerOptions(hadoop)).getSchema()
        pairs = zip(schema.getFieldNames(), schema.getChildren(), strict=True)
        return _of_orc((str(name), LEAF.findall(str(kind))) for name, kind in pairs)
    try:
        said = str(reader.getFooter().getFileMetaData().getSchema().toString())
    finally:
        reader.close()
    return _of_parquet(_columns(said))


def _columns(said: str) -> list[tuple[str, str, str]]:
    """The columns of a schema as Parquet's own library writes it, each under the name of the one it is in."""
    top, found = "", []
    for line in said.splitlines():
        group, field = GROUP.fullmatch(line), FIELD.fullmatch(line)
        top = group[1] if group is not None else "" if line == "  }" else top
        if field is not None:
            found.append((top or field[2], field[1], (field[3] or "").lower()))
    return found


def _of_parquet(columns: Iterable[tuple[str, str, str]]) -> dict[str, _Stored]:
    """Columns by their names; each is given with its physical and its logical type, one of lists or structs once for
    each that it is made of."""
    found: dict[str, _Stored] = {}
    for name, physical, logical in columns:
        before = found.get(name, _Stored(()))
        kind, reason = _of_column(physical, logical)
        found[name] = _Stored((*before.kinds, kind), before.reason or reason)
    return found


def _of_column(physical: str, logical: str) -> tuple[str, str]:
    """What Spark takes a type of Parquet for, and why it may fail on it whatever is declared."""
    form, _, rest = logical.rstrip(")").partition("(")
    given = rest.split(",")
    if form == "decimal":
        return f"decimal({int(given[0])},{int(given[1])})", LONG if int(given[0]) > LONG_DIGITS else ""
    if form in ("integer", "int", "uint"):
        signed = given[1] == "true" if len(given) > 1 else form == "int"
        return (SIGNED if signed else UNSIGNED)[int(given[0])], ""
    if form == "timestamp":
        kind = "timestamp" if given[1] == "true" else "timestamp_ntz"
        return (logical, "") if given[0] == "nanos" else (kind, MILLIS if given[0] == "millis" else "")
    return (LOGICAL.get(form, logical) if form else PHYSICAL.get(physical, physical)), ""


def _of_orc(columns: Iterable[tuple[str, Sequence[str]]]) -> dict[str, _Stored]:
    found = {}
    for name, kinds in columns:
        known = tuple(_plain(kind) for kind in kinds)
        reasons = [IN_ORC[form] for kind in known if (form := kind.partition("(")[0]) in IN_ORC]
        found[name] = _Stored(known, reasons[0] if reasons else "")
    return found


def _plain(kind: str) -> str:
    """A type of ORC without what changes nothing about how it is read."""
    form = re.split(r"[( ]", kind)[0]
    return "string" if form in ("char", "varchar") else form if form == "timestamp" else kind

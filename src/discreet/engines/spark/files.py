"""Files that Spark reads: in which folders they may come to lie, and which columns of a plan come from them.

A reader that fails on one stored value does so before any expression of ours is asked, and the failure would tell of a
row. So it is decided by what is known without rows: plans, schemas and footers. Lines of text (CSV, JSON, XML), Avro
and tables of Hive that Spark does not read as Parquet or ORC are refused; of those two, columns that can fail are not
read (`spark/footers.py`).

>>> check_kinds("Project [who]\\n+- Relation [who#1L] csv\\n")
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: source='csv' must be Parquet or ORC where it is files, ...; write it to ...
>>> unread("+- Relation lake.stays[who#1L,seen#2] parquet", {"seen": "moments in milliseconds"})
{'2': ('seen', 'moments in milliseconds')}
>>> typed_by_folders("+- Relation [who#1L,ward#2] parquet", ["file:///lake/ward=1/0.parquet"])
{'2': ('ward', 'a type that follows from the names of folders')}
>>> folder("file:///lake/a=1/b=2/0", ["file:/lake/a=1"], ""), folder("file:///lake/a=2/0", [], "[a#1]")
('file:/lake/a=1', 'file:/lake')
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from discreet.core.errors import InvalidArgument
from discreet.engines.spark.jobs import unsaid

__all__ = [
    "check_kinds",
    "folder",
    "listed",
    "outputs",
    "place_of",
    "relations",
    "tables",
    "typed_by_folders",
    "unread",
]

REFUSED = re.compile(r"\] (avro|csv|json|text|xml)(?: .*)?$|^[\s:|+-]*(HiveTableRelation)\b", re.M)
"""How a plan ends the line of a source that fails on what a line or a record holds."""
FILES = re.compile(r"^.*\] (?:parquet|orc)(?: .*)?$", re.M)
"""Lines of a plan that stand for files, with their columns."""
OURS = re.compile(r"^[\s:|+-]*View \(`_pyspark_\w+`, .*$", re.M)
BY_FOLDERS = "a type that follows from the names of folders"
TABLE = re.compile(r"^[\s:|+-]*Relation ([^\[]+)\[")


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
    return _numbered(relations(plan), failing)


def _numbered(lines: str, reasons: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    found = {}
    for name, reason in reasons.items():
        for number in re.findall(rf"[\[, ]{re.escape(name)}#(\d+)", lines, re.I):
            found[number] = (name, reason)
    return found


def typed_by_folders(plan: str, files: Collection[str]) -> dict[str, tuple[str, str]]:
    """Columns that the names of folders give (key=value), where no catalog declares them, by their numbers in a plan:
    Spark takes their type from all names together, so that one folder more would change what the others are."""
    lines = "\n".join(line for line in FILES.findall(plan) if TABLE.match(line) is None)
    parts = {part for file in files for part in unquote(urlsplit(file).path).split("/")[:-1]}
    keys = {part.partition("=")[0] for part in parts if "=" in part}
    return _numbered(lines, dict.fromkeys(keys, BY_FOLDERS))


def outputs(plan: str, numbers: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Which of the numbered columns a frame passes on as they are, by name; refused if it does anything else with one:
    whether that is read is not known then."""
    lines = [line for line in OURS.sub("", plan).splitlines() if FILES.match(line) is None]
    top = next((place for place, line in enumerate(lines) if line.startswith("Project [")), 0)
    first, rest = lines[top] if lines else "", "\n".join([*lines[:top], *lines[top + 1 :]])
    passed = {}
    for number, (name, reason) in numbers.items():
        if re.search(rf"#{number}\b|#{number}L", rest):
            bound, remedy = f"without {name}, which has {reason}", "leave it out of the view or frame, or write it anew"
            if reason == BY_FOLDERS:
                remedy = "leave it out, declare the table in a catalog, or turn the inference of such types off"
            raise InvalidArgument("source", name, bound, remedy)
        shown = re.search(rf"[\[ ](.{{1,{len(name)}}})#{number}L?[,\]]", first)
        if shown is not None:
            passed[shown[1].lower()] = reason
    return passed


def listed(frame: Any) -> list[str] | None:
    """The files that a frame reads, as far as Spark knows; None if it does not say.

    It optimizes the plan for that, which may compute rows that are in it, and fail.
    """
    try:
        with unsaid():
            return sorted(frame.inputFiles())
    except Exception:
        return None


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

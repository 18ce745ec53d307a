"""What DuckDB reads: the rows of a source as a query, and a table as it is held once it was added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from discreet.sql.catalog import Column

__all__ = ["Held", "Rows"]


@dataclass(frozen=True)
class Held:
    """A table. `place` is the file's full path, or a frame's name; `written` how a CSV file is read
    (`Snapshot.written`)."""

    place: str
    columns: tuple[Column, ...]
    omitted: tuple[tuple[str, str], ...]
    paths: tuple[Path, ...] = ()
    unique: tuple[str, ...] = ()
    units: str | None = None
    copied: bool = False
    marks: Mapping[Path, frozenset[tuple[int, int]]] = field(default_factory=dict)
    """What tells the files apart that each statement reads; none where the rows were copied."""
    written: str = ""


@dataclass(frozen=True)
class Rows:
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
    written: str = ""
    names: tuple[str, ...] | None = None
    """What the source itself calls its columns, in their order; None where DuckDB renames none of them."""

"""What the steward declares about tables: columns, bounds, values, who is protected.

Nothing here is read off private rows: names and types come from the schema, everything else from the steward.

>>> table = Table("visits", (Column("patient", "integer"), Column("age", "integer", bounds=Bounds(0, 120))), "patient")
>>> table.column("age").bounds
Bounds(lower=Fraction(0, 1), upper=Fraction(120, 1), missing=Fraction(0, 1))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument

__all__ = ["Catalog", "Column", "Table", "Type", "nearest"]

Type = Literal["integer", "real", "boolean", "text", "date", "timestamp"]


@dataclass(frozen=True)
class Column:
    """A name, a type, and what the steward says it holds."""

    name: str
    type: Type
    bounds: Bounds | None = None
    values: Categories | None = None

    def __post_init__(self) -> None:
        if self.type not in get_args(Type):
            raise InvalidArgument("type", self.type, f"one of {get_args(Type)}", "map the engine's type to these")
        if self.bounds is not None and self.type not in ("integer", "real"):
            raise InvalidArgument("bounds", self.name, "for numbers only", "declare values instead")


@dataclass(frozen=True)
class Table:
    """A table: public, or private with a unit column (None: every row is a unit of its own)."""

    name: str
    columns: tuple[Column, ...]
    unit: str | None = None
    private: bool = True
    max_rows: int | None = None
    """The most rows one unit has, if the steward knows; intervals then cover what bounding leaves out."""

    def __post_init__(self) -> None:
        names = [column.name.lower() for column in self.columns]
        if len(set(names)) != len(names):
            raise InvalidArgument("columns", names, "distinct whatever the case", "rename one of them")
        if self.unit is not None:
            self.column(self.unit)

    def column(self, name: str) -> Column:
        """The column of that name, whatever the case."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        raise InvalidArgument("column", name, f"one of the columns of {self.name}", nearest(name, self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Catalog:
    """The tables a session knows."""

    tables: tuple[Table, ...]

    def __post_init__(self) -> None:
        names = [table.name.lower() for table in self.tables]
        if len(set(names)) != len(names):
            raise InvalidArgument("tables", names, "distinct whatever the case", "rename one of them")

    def table(self, name: str) -> Table:
        """The table of that name, whatever the case."""
        for table in self.tables:
            if table.name.lower() == name.lower():
                return table
        raise InvalidArgument("table", name, "a registered table", nearest(name, [t.name for t in self.tables]))


def nearest(name: str, choices: Iterable[str]) -> str:
    """A remedy that lists the choices, the likeliest first."""
    known = list(choices)
    close = get_close_matches(name.lower(), [choice.lower() for choice in known], n=3)
    first = [choice for choice in known if choice.lower() in close]
    others = [choice for choice in known if choice not in first]
    return f"existing: {', '.join((first + others)[:20]) or 'none'}"

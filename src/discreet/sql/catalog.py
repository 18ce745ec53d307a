"""What the steward declares about tables: columns, bounds, values, who is protected.

Nothing here is read off private rows: names and types come from the schema, everything else from the steward.

>>> table = Table("visits", (Column("patient", "integer"), Column("age", "integer", bounds=Bounds(0, 120))), "patient")
>>> table.column("age").bounds
Bounds(lower=Fraction(0, 1), upper=Fraction(120, 1), missing=Fraction(0, 1))
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument
from discreet.sql.decimals import Decimals

__all__ = [
    "PLAIN_TYPES",
    "RESERVED",
    "Catalog",
    "Column",
    "Link",
    "PlainType",
    "Table",
    "Type",
    "alone",
    "check_alone",
    "folded",
    "is_number",
    "nearest",
    "type_named",
]

PlainType = Literal["integer", "real", "boolean", "text", "date", "timestamp"]
Type = PlainType | Decimals
PLAIN_TYPES: tuple[PlainType, ...] = get_args(PlainType)
RESERVED = "discreet "
"""How the names of columns begin that statements add, such as that of owners."""


def folded(name: str) -> str:
    """The name as the most forgiving engine compares it: without regard to case, accents and forms of a letter."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return plain.lower().upper().lower()


def alone(names: Iterable[str]) -> frozenset[str]:
    """The names, in small letters, that one column alone has. Columns are asked for whatever the case: no other is
    read, for it would be one of two, and rows would be those of other people or have other values."""
    return frozenset(name for name, count in Counter(map(str.lower, names)).items() if count == 1)


def check_alone(argument: str, name: str, names: Iterable[str]) -> None:
    """Refuse what is said about a column whose name another one has too, but for the case."""
    same = [other for other in names if other.lower() == name.lower()]
    if len(same) > 1:
        bound = f"a name that no other column has, whatever the case; there are {' and '.join(map(repr, same))}"
        raise InvalidArgument(argument, name, bound, "rename one of them in the source, or in a view")


def type_named(name: str) -> Type | None:
    """The type of that name; None if there is none."""
    plain = next((known for known in PLAIN_TYPES if known == name), None)
    return plain or Decimals.named(name)


def is_number(kind: Type) -> bool:
    """Whether values of the type are numbers."""
    return kind in ("integer", "real") or isinstance(kind, Decimals)


@dataclass(frozen=True)
class Column:
    """A name, a type, and what the steward says it holds."""

    name: str
    type: Type
    bounds: Bounds | None = None
    values: Categories | None = None
    found: bool = False
    """Whether the values were found in a public table, and not declared."""

    def __post_init__(self) -> None:
        kind = type_named(self.type)
        if kind is None:
            known = (*PLAIN_TYPES, "decimal(precision, scale)")
            raise InvalidArgument("type", self.type, f"one of {known}", "map the engine's type to these")
        object.__setattr__(self, "type", kind)
        if self.bounds is not None and not is_number(kind):
            raise InvalidArgument("bounds", self.name, "for numbers only", "declare values instead")


@dataclass(frozen=True)
class Link:
    """How rows without a unit column have owners: each belongs to whoever owns a row of the private table `table` whose
    `key` equals its `column`. They are seen only through such rows: joined to `table` on exactly these two columns."""

    column: str
    table: str
    key: str


@dataclass(frozen=True)
class Table:
    """A table: public, or private with a unit column or a link (neither: every row is a unit of its own)."""

    name: str
    columns: tuple[Column, ...]
    unit: str | None = None
    private: bool = True
    max_rows: int | None = None
    """The most rows one unit has, if the steward knows; intervals then cover what bounding leaves out."""
    link: Link | None = None
    unique: tuple[str, ...] = ()
    """Columns of a public table that hold no value twice and no NULL: a join on one of them repeats no row."""
    omitted: tuple[tuple[str, str], ...] = ()
    """Names and types of columns that queries cannot use."""
    max_matches: int | None = None
    """The most rows of a public or linked table that a join lets one row meet; joins leave out the others."""
    disjoint: bool = False
    """Whether the steward knows that no row of it is a row of another private table too."""
    is_view: bool = False
    """Whether its rows are computed whenever it is read, and may be others each time."""

    def __post_init__(self) -> None:
        names = [column.name.lower() for column in self.columns]
        if len(set(names)) != len(names):
            raise InvalidArgument("columns", names, "distinct whatever the case", "rename one of them")
        for name in self.names:
            if folded(name).startswith(RESERVED):
                bound = f"a name that does not begin with {RESERVED!r}, which statements use for themselves"
                raise InvalidArgument("column", name, bound, "rename it in the source")
        left_out = [name for name, _ in self.omitted]
        for name in self.names:
            check_alone("column", name, [name, *left_out])
        if self.unit is not None:
            self.column(self.unit)
        if self.link is not None:
            self.column(self.link.column)
            if self.unit is not None or not self.private:
                remedy = "leave out the link, or the unit column"
                raise InvalidArgument("link", self.link, "of a private table without a unit column", remedy)
        for name in self.unique:
            self.column(name)
        if self.max_matches is not None and (self.max_matches < 1 or (self.private and self.link is None)):
            remedy = "leave it out; tables with a unit column join on it"
            raise InvalidArgument("max_matches", self.max_matches, "from 1, of a public or linked table", remedy)

    def column(self, name: str) -> Column:
        """The column of that name, whatever the case."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        self.check_usable(name)
        raise InvalidArgument("column", name, f"one of the columns of {self.name}", nearest(name, self.names))

    def check_usable(self, name: str) -> None:
        """Refuse a column that was left out, saying why."""
        check_alone("column", name, [omitted for omitted, _ in self.omitted])
        for omitted, kind in self.omitted:
            if omitted.lower() == name.lower():
                bound = f"of a type that queries can use; it is {kind}"
                remedy = "have the steward declare its type in `types`, or on a server CAST it in a view"
                raise InvalidArgument("column", name, bound, remedy)

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
        for table in self.tables:
            if table.link is not None:
                self._check_link(table, table.link)

    def _check_link(self, table: Table, link: Link) -> None:
        parent = self.table(link.table)
        if not parent.private or (parent.unit is None and parent.link is None):
            bound = "to a private table with a unit column or a link"
            raise InvalidArgument("link", link, bound, "link it to the table whose rows have owners")
        seen = {table.name}
        above = parent
        while above.link is not None and above.name not in seen:
            seen.add(above.name)
            above = self.table(above.link.table)
        if above.unit is None:
            raise InvalidArgument("link", link, "a way to a table with a unit column", "links may not go in a circle")
        kinds = table.column(link.column).type, parent.column(link.key).type
        if kinds[0] != kinds[1]:
            raise InvalidArgument("link", kinds, "columns of one type", "declare the type of one of them in `types`")

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

"""Columns of files and frames: which of them tell people apart, and which types count.

>>> owning = Owning("Who", ["visit"])
>>> sorted(owning.names), owning.unit
(['visit', 'who'], 'who')
>>> declared_types("t", [("who", "VARCHAR"), ("x", "VARCHAR")], None, [], {"who": "integer"}, {"x": "real"})
{'x': 'real', 'who': 'integer'}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.types import Reading
from discreet.sql.catalog import Type, nearest
from discreet.sql.statement.dialect import quoted

__all__ = ["Owning", "declared_types"]


class Owning:
    """The columns of a table that say whose its rows are: its unit column, and those that link it to others."""

    def __init__(self, unit: str | None, links: Iterable[str]) -> None:
        self.unit = None if unit is None else unit.lower()
        self.names = {name.lower() for name in links} | ({self.unit} if self.unit is not None else set())

    def read(self, column: Reading, replaced: bool) -> Reading:
        """How the column is read; `replaced` says that bad bytes of texts are "?" already."""
        name = column.name.lower()
        if name not in self.names:
            return column
        return column.of_units(replaced) if name == self.unit else column.of_links(replaced)

    def in_utf8(self, name: str, kind: str) -> str:
        """A column of Arrow in a SELECT. Arrow does not look whether text is UTF-8, and text that is not brings the
        engine down; where it says whose a row is, it names nobody."""
        column = quoted(name)
        if kind != "VARCHAR":
            return column
        decoded = f"DECODE(ENCODE({column}), 'replace')"
        whole = f"CASE WHEN ENCODE({decoded}) = ENCODE({column}) THEN {decoded} END"
        return f"{whole if name.lower() in self.names else decoded} AS {column}"


def declared_types(
    table: str,
    described: Sequence[tuple[str, str]],
    untyped: Iterable[str] | None,
    omitted: Iterable[tuple[str, str]],
    types: Mapping[str, Type],
    hints: Mapping[str, Type],
) -> dict[str, Type]:
    """The types that count, by names in lower case; `untyped` columns (None: all) have none of their own."""
    names = [name for name, _ in described]
    known = {name.lower() for name in names}
    lost = {name.lower(): kind for name, kind in omitted}
    for name in types:
        if name.lower() in lost:
            raise InvalidArgument("types", lost[name.lower()], "convertible", f"leave {name} out, or convert it")
        if name.lower() not in known:
            raise InvalidArgument("types", name, f"a column of {table}", nearest(name, names))
    open_ones = known if untyped is None else {name.lower() for name in untyped}
    wanted = {name.lower(): kind for name, kind in hints.items() if name.lower() in open_ones}
    return {**wanted, **{name.lower(): kind for name, kind in types.items()}}

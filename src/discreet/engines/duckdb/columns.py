"""Columns of files and frames: which of them tell people apart, and which types count.

>>> owning = Owning("Who", ["visit"])
>>> sorted(owning.names), owning.unit
(['visit', 'who'], 'who')
>>> declared_types("t", [("who", "VARCHAR"), ("x", "VARCHAR")], None, [], {"who": "integer"}, {"x": "real"})
{'x': 'real', 'who': 'integer'}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.rows import Rows
from discreet.engines.duckdb.types import Reading
from discreet.engines.tables import TWICE
from discreet.sql.catalog import Type, alone, check_alone, nearest
from discreet.sql.statement.dialect import quoted

__all__ = ["Owning", "by_bytes", "declared_types", "own_names", "told_apart"]


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


def by_bytes(rows: str, described: Iterable[tuple[str, str]]) -> str:
    """A query for all columns of a DuckDB file. A collation of theirs would make two people one, or two groups: texts
    are equal if their bytes are."""
    texts = [quoted(name) for name, kind in described if kind == "VARCHAR"]
    replaced = ", ".join(f'{name} COLLATE "C" AS {name}' for name in texts)
    return f"SELECT * REPLACE ({replaced}) {rows}" if texts else f"SELECT * {rows}"


def own_names(described: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """What the columns of a DuckDB file were called before DuckDB told them apart: of two that differ in case alone it
    calls the second WHO_1.

    >>> own_names([("who", "BIGINT"), ("WHO_1", "BIGINT"), ("item", "BIGINT"), ("item_1", "BIGINT")])
    ('who', 'WHO', 'item', 'item_1')
    """
    spelled = {name.lower(): name for name, _ in described}
    stems = {name: re.sub(r"(_\d+)+$", "", name) for name, _ in described}
    renamed = {name for name, stem in stems.items() if spelled.get(stem.lower(), stem) != stem}
    return tuple(stems[name] if name in renamed else name for name, _ in described)


def told_apart(rows: Rows, described: list[tuple[str, str]]) -> tuple[Rows, list[tuple[str, str]]]:
    """The rows, and their columns, without those whose names differ in case alone. DuckDB calls the second of two
    otherwise, and finds the first under either name; of a folder's key and a column it reads one."""
    names = rows.names or ()
    own = alone(names)
    left_out = tuple((name, TWICE) for name in names if name.lower() not in own)
    if not left_out:
        return rows, described
    if len(names) != len(described):
        kept = [(quoted(name), name, kind) for name, kind in described if name.lower() in own]
        below = f"({rows.sql})"
    else:
        # By their places: the name that DuckDB gives may be that of a third one.
        places = [f'"c{place}"' for place in range(len(names))]
        kept = [
            (place, name, kind)
            for place, name, (_, kind) in zip(places, names, described, strict=True)
            if name.lower() in own
        ]
        below = f"({rows.sql}) AS t({', '.join(places)})"
    if not kept:
        raise InvalidArgument("source", left_out, "with columns that queries can use", "rename them")
    sql = f"SELECT {', '.join(f'{place} AS {quoted(name)}' for place, name, _ in kept)} FROM {below}"
    return replace(rows, sql=sql, omitted=(*rows.omitted, *left_out)), [(name, kind) for _, name, kind in kept]


def declared_types(
    table: str,
    described: Sequence[tuple[str, str]],
    untyped: Iterable[str] | None,
    omitted: Sequence[tuple[str, str]],
    types: Mapping[str, Type],
    hints: Mapping[str, Type],
) -> dict[str, Type]:
    """The types that count, by names in lower case; `untyped` columns (None: all) have none of their own."""
    names = [name for name, _ in described]
    known = {name.lower() for name in names}
    lost = {name.lower(): kind for name, kind in omitted}
    for name in types:
        check_alone("types", name, [other for other, _ in omitted])
        if name.lower() in lost:
            raise InvalidArgument("types", lost[name.lower()], "convertible", f"leave {name} out, or convert it")
        if name.lower() not in known:
            raise InvalidArgument("types", name, f"a column of {table}", nearest(name, names))
    open_ones = known if untyped is None else {name.lower() for name in untyped}
    wanted = {name.lower(): kind for name, kind in hints.items() if name.lower() in open_ones}
    return {**wanted, **{name.lower(): kind for name, kind in types.items()}}

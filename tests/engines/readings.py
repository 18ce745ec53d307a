"""What an engine reads of sources that hold odd values: types, and rows as queries see them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.catalog import Column
from discreet.sql.functions.registry import admit

Seen = tuple[tuple[Column, ...], list[tuple[Any, ...]]]


KEPT: list[DuckDB] = []
MOST_KEPT = 200


def shared() -> DuckDB:
    """An engine for many tables: opening one takes longer than reading them. Renewed before it holds too many."""
    if KEPT and len(KEPT[0]._held) >= MOST_KEPT:
        KEPT.pop().close()
    if not KEPT:
        KEPT.append(DuckDB(threads=2))
    return KEPT[0]


def read(source: Any, **facts: Any) -> Seen:
    """The columns, and the rows as queries see them."""
    return read_all([source], **facts)[0]


def read_all(
    sources: Iterable[Any],
    types: Iterable[Mapping[str, Any]] | Mapping[str, Any] = MappingProxyType({}),
    sealed: bool = False,
) -> list[Seen]:
    """The same for each of several sources, in one engine, each with its own types if several are given.

    Rows that are not copied when they are added are read in an engine of their own, once it is sealed.
    """
    engine = DuckDB(threads=2) if sealed else shared()
    given = [*sources]
    declared = [types] * len(given) if isinstance(types, Mapping) else [*types]
    names = [f"t{place}" for place in range(len(engine._held), len(engine._held) + len(given))]
    for name, source, kinds in zip(names, given, declared, strict=True):
        engine.add(name, source, unit="who", types=kinds)
    if sealed:
        engine.seal()
    seen = []
    for name in names:
        columns = engine.columns(name)
        shown = [admit(c.name, c.type).sql(dialect="duckdb") for c in columns]
        rows = engine.run(f'SELECT {", ".join(shown)} FROM "{name}"')
        seen.append((columns, sorted(rows, key=repr)))
    if sealed:
        engine.close()
    return seen

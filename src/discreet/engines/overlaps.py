"""Whether two tables read the same data, as far as their files tell: by name or by links, and never by what they hold.

A plain copy cannot be seen. So nothing that protects people rests on this: it refuses what is declared wrongly.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Protocol

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.files import is_database, marks

__all__ = ["check_apart", "check_disjoint"]


class _Placed(Protocol):
    def identity(self, table: str) -> str: ...
    def paths(self, table: str) -> tuple[Path, ...]: ...


def check_apart(engine: _Placed, owned: Iterable[str], public: Iterable[str]) -> None:
    """Nothing is private and public at once: what a public table holds is told."""
    for one, other in product(owned, public):
        same = not engine.paths(one) and engine.identity(one) == engine.identity(other)
        if _files_of(engine, one) & _files_of(engine, other) or same:
            remedy = "leave it out of public, or write what may be told elsewhere"
            raise InvalidArgument("public", other, f"no rows of {one}, which is private", remedy)


def check_disjoint(engine: _Placed, sources: Mapping[str, object], disjoint: Collection[str]) -> None:
    """No table that is declared disjoint is seen to have rows of another; `sources` are what tables were given as."""
    for one, other in combinations(sources, 2):
        declared = [name for name in (other, one) if name in disjoint]
        if declared and (_files_of(engine, one) & _files_of(engine, other) or _is_same(engine, sources, one, other)):
            rest = one if declared[0] == other else other
            remedy = "leave out disjoint: questions that unite them then cost as much as a row that is in both"
            raise InvalidArgument("disjoint", declared[0], f"without rows of {rest}, which reads the same data", remedy)


def _is_same(engine: _Placed, sources: Mapping[str, object], one: str, other: str) -> bool:
    """Whether two tables are seen to be one: the same frame, or the same place."""
    if isinstance(sources[one], str | os.PathLike) or isinstance(sources[other], str | os.PathLike):
        return engine.identity(one) == engine.identity(other)
    return sources[one] is sources[other]


def _files_of(engine: _Placed, table: str) -> frozenset[tuple[int, int]]:
    """What tells apart the files of a table, but for databases, which hold several tables."""
    paths = [path for path in engine.paths(table) if not is_database(path)]
    return frozenset[tuple[int, int]]().union(*map(marks, paths))

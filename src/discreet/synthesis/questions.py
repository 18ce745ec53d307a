"""Workloads from SQL: counts of groups, read by the library's own parser as linear queries over a domain.

`SELECT a, b, COUNT(*) FROM t WHERE … GROUP BY a, b` is one query for each group: every row is counted by one of them or
by none. Keys and conditions may be anything that is decided by an attribute's value; what is decided inside a bin is
refused, with the ends of the bins. Keys and conditions that look at one attribute each make a product of factors,
which is never written down; others are written cell by cell.

>>> from discreet.core.domains import Bounds
>>> from discreet.sql.catalog import Column as Declared
>>> from discreet.sql.parsing.scope import scan
>>> from discreet.synthesis.columns import columns_of
>>> people = Table("people", (Declared("age", "integer", Bounds(0, 120)), Declared("smokes", "boolean")))
>>> columns = columns_of(scan(people))
>>> block = block_of("SELECT age < 20 AS minor, COUNT(*) FROM people WHERE smokes GROUP BY 1", "people", columns)
>>> domain = Domain(tuple(column.attribute for column in columns))
>>> [block.describe(domain, place) for place in range(block.count(domain))]
['age in {[0, 10), [10, 20)} and smokes in {True}', 'age in set 1 and smokes in {True}']
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np

from discreet.core.errors import Unsupported
from discreet.sql.catalog import Catalog, Table
from discreet.sql.catalog import Column as Declared
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Expression, Filter, Literal, Query, Ref, Relation, Scan
from discreet.sql.relations import names_in
from discreet.sql.statement.constants import computed
from discreet.synopses.domain import Domain
from discreet.synopses.queries.blocks import Explicit, Product, sparse_rows
from discreet.synopses.queries.factors import Factor, Sets, every
from discreet.synthesis.columns import Column

__all__ = ["block_of"]

MOST_POINTS = 1_000_000
"""Combinations of values on which a condition on several attributes is tried."""
TRIED = 200
"""Whole numbers in a bin that are all tried; of wider bins the ends and what the query names."""
WITHIN_BINS = {"<", "<=", "<>", "=", ">", ">=", "between", "in", "and", "or", "not", "is null", "case", "cast"}
"""What may be done to a number that is kept in bins: its bin decides these, if they speak of ends of bins."""


def block_of(text: str, table: str, columns: Sequence[Column]) -> Product | Explicit:
    """The queries of one text over the table that has just these columns."""
    declared = Table(table, tuple(Declared(column.name, column.type) for column in columns))
    query = parse(text, Catalog((declared,)))
    return _Reading(text, query, {column.name: column for column in columns}).block()


@dataclass(frozen=True)
class _Reading:
    """One text, its plan, and the columns by name."""

    text: str
    query: Query
    columns: dict[str, Column]

    def block(self) -> Product | Explicit:
        self._check_shape()
        keys = [key.expression for key in self.query.aggregate.keys]
        conditions = [*_conditions(self.query.aggregate.input, self._refused)]
        read = [names_in(part) for part in (*keys, *conditions)]
        if any(not names for names in read):
            raise self._refused("a key or a condition reads no column", "leave it out")
        for part in (*keys, *conditions):
            self._check_bins(part, bare=part in keys)
        alone = [name for names in read[: len(keys)] for name in names]
        if all(len(names) == 1 for names in read) and len({*alone}) == len(alone):
            return self._product(keys, conditions)
        return self._written(keys, conditions)

    def _check_shape(self) -> None:
        query = self.query
        for measure in query.aggregate.measures:
            if measure.function != "count" or measure.argument is not None:
                raise self._refused("only rows are counted", "write COUNT(*)")
        if not query.aggregate.measures:
            raise self._refused("it counts nothing", "add COUNT(*)")
        if query.having is not None or query.limit is not None:
            raise self._refused("which groups it shows depends on their counts", "leave HAVING and LIMIT out")
        if not all(isinstance(output.expression, Ref) for output in query.outputs):
            raise self._refused("it computes with its counts", "list keys and COUNT(*)")

    def _refused(self, reason: str, remedy: str) -> Unsupported:
        return Unsupported(f"in a workload, {' '.join(self.text.split())}", reason, remedy)

    def _check_bins(self, part: Expression, bare: bool) -> None:
        """Of a number in bins only comparisons are known; as a key it stands for its bin."""
        if isinstance(part, Ref) and self.columns[part.name].binned and not bare:
            return
        if isinstance(part, Ref | Literal):
            return
        if part.function not in WITHIN_BINS:
            binned = sorted(name for name in names_in(part) if self.columns[name].binned)
            if binned:
                ends = _ends(self.columns[binned[0]])
                reason = f"{binned[0]} is known up to its bin, and {part.function} needs more"
                raise self._refused(reason, f"compare it with ends of bins ({ends}), or ask for other bins")
        for argument in part.arguments:
            self._check_bins(argument, bare=False)

    def _product(self, keys: Sequence[Expression], conditions: Sequence[Expression]) -> Product:
        factors: dict[str, Factor] = {}
        for name in sorted(frozenset[str]().union(*map(names_in, (*keys, *conditions)))):
            own = [key for key in keys if name in names_in(key)]
            held = [condition for condition in conditions if name in names_in(condition)]
            if not held and own and isinstance(own[0], Ref):
                factors[name] = every
                continue
            found = self._decided([name], own, held)
            rows = dict.fromkeys(group for group in found if group is not None)
            if not rows:
                raise self._refused("no row can meet its conditions", "correct them")
            factors[name] = Sets([[group == row for group in found] for row in rows])
        return Product(factors)

    def _written(self, keys: Sequence[Expression], conditions: Sequence[Expression]) -> Explicit:
        used = frozenset[str]().union(*map(names_in, (*keys, *conditions)))
        names = [name for name in self.columns if name in used]
        found = self._decided(names, keys, conditions)
        groups = list(dict.fromkeys(group for group in found if group is not None))
        if not groups:
            raise self._refused("no row can meet its conditions", "correct them")
        numbers = {group: place for place, group in enumerate(groups)}
        domain = Domain(tuple(column.attribute for column in self.columns.values()))
        size = domain.dense()
        shape = [column.attribute.size if name in used else 1 for name, column in self.columns.items()]
        places = np.array([-1 if group is None else numbers[group] for group in found]).reshape(shape)
        each = np.broadcast_to(places, domain.shape).reshape(-1)
        order = np.argsort(each, kind="stable")
        starts = np.searchsorted(each[order], np.arange(len(groups) + 1))
        cells = [order[a:b].astype(np.int64) for a, b in pairwise(starts)]
        labels = [
            " and ".join(f"{key.name} = {part}" for key, part in zip(self._keys, group, strict=True))
            for group in groups
        ]
        return Explicit(sparse_rows([(part, np.ones(part.size)) for part in cells], size), tuple(labels))

    @property
    def _keys(self) -> Any:
        return self.query.aggregate.keys

    def _decided(
        self, names: Sequence[str], keys: Sequence[Expression], conditions: Sequence[Expression]
    ) -> list[tuple[Any, ...] | None]:
        """For each cell of these attributes the group that its rows are in, None if they are in none."""
        literals = [value for part in (*keys, *conditions) for value in _numbers(part)]
        points = [[*_points(self.columns[name], literals)] for name in names]
        if math.prod(map(len, points)) > MOST_POINTS:
            raise self._refused("it is about too many combinations of values", "use fewer columns in one condition")
        rows = [*product(*points)]
        refs = [Ref(name, self.columns[name].type) for name in names]
        values = {ref: [row[place][1] for row in rows] for place, ref in enumerate(refs)}
        results = computed([*conditions, *keys], values)
        sizes = [self.columns[name].attribute.size for name in names]
        found: list[tuple[Any, ...] | None] = [None] * math.prod(sizes)
        seen = [False] * len(found)
        bare = [refs.index(key) if isinstance(key, Ref) and self.columns[key.name].binned else None for key in keys]
        for row, result in zip(rows, results, strict=True):
            cell = 0
            for (code, _), size in zip(row, sizes, strict=True):
                cell = cell * size + code
            group: tuple[Any, ...] | None = None
            if all(held is True for held in result[: len(conditions)]):
                given = zip(bare, result[len(conditions) :], strict=True)
                group = tuple(value if place is None else row[place][0] for place, value in given)
            if seen[cell] and found[cell] != group:
                split = next(name for name in names if self.columns[name].binned)
                reason = f"it would split a bin of {split}"
                raise self._refused(reason, f"use ends of bins ({_ends(self.columns[split])}), or ask for other bins")
            found[cell], seen[cell] = group, True
        return found


def _conditions(relation: Relation, refused: Any) -> Iterator[Expression]:
    if isinstance(relation, Scan):
        return
    if not isinstance(relation, Filter):
        raise refused("it is not one SELECT from the table", "write SELECT …, COUNT(*) FROM … WHERE … GROUP BY …")
    yield from _conditions(relation.input, refused)
    yield from _parts(relation.predicate)


def _parts(condition: Expression) -> Iterator[Expression]:
    if not isinstance(condition, Ref | Literal) and condition.function == "and":
        for argument in condition.arguments:
            yield from _parts(argument)
    else:
        yield condition


def _numbers(part: Expression) -> Iterator[Fraction]:
    if isinstance(part, Literal):
        if isinstance(part.value, int | Fraction) and not isinstance(part.value, bool):
            yield Fraction(part.value)
    elif not isinstance(part, Ref):
        for argument in part.arguments:
            yield from _numbers(argument)


def _points(column: Column, literals: Sequence[Fraction]) -> Iterator[tuple[int, Any]]:
    """Places with values that stand for them: all there are, or of a bin those at which comparisons could change."""
    edges = column.attribute.edges
    if edges is None:
        yield from enumerate(column.keys)
        return
    for code, (low, high) in enumerate(pairwise(edges)):
        last = code == column.attribute.size - 1
        named = [float(value) for value in literals if low <= value <= high]
        if not column.attribute.whole:
            around = [
                point for value in named for point in (math.nextafter(value, low), value, math.nextafter(value, high))
            ]
            tried = [low, math.nextafter(low, high), (low + high) / 2, math.nextafter(high, low), *around]
            kept = {point for point in (*tried, *([high] if last else [])) if low <= point and (point < high or last)}
        else:
            top = int(high) if last else int(high) - 1
            everything = range(int(low), top + 1)
            around = [int(value) + step for value in named for step in (-1, 0, 1)]
            wide = {int(low), int(low) + 1, top - 1, top, *around}
            kept = {point for point in (everything if len(everything) <= TRIED else wide) if low <= point <= top}
        for point in sorted(kept):
            yield code, point


def _ends(column: Column) -> str:
    edges = [f"{edge:g}" for edge in column.attribute.edges or ()]
    return ", ".join(edges if len(edges) <= 8 else [*edges[:4], "…", *edges[-2:]])

"""The rows that a statement sums: each with its keys, its unit, and what it adds to every sum.

Two SELECTs, one in the other. The inner one reads the relation and computes keys and arguments; the outer one bounds
what they add, and leaves out rows whose keys are not listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.sql.bounding.sums import Statistic
from discreet.sql.plan import Aggregate, Call, Expression, Filter, Literal, Ref, Relation, Scan
from discreet.sql.relations import names_in
from discreet.sql.statement.clauses import Select, aliased, subquery
from discreet.sql.statement.histograms import Cells
from discreet.sql.statement.naming import OWNER, Name, StatementNames, raw
from discreet.sql.statement.selection import Selection

__all__ = ["Ranked", "Rows", "only_listed"]

WRITTEN = 200
"""Listed values of a key that are written into a statement."""
Ranked = Sequence[tuple[Expression, Cells | None]]
"""The arguments of ranks and modes, with cells for those of ranks."""


@dataclass(frozen=True)
class Column:
    """A column that is read, by its name; if it is not made of another one, with what is computed for it."""

    name: Name
    read: Expression | None = None


@dataclass(frozen=True)
class Rows:
    """What is read of a relation, and how rows are bounded. All columns have names of ours."""

    aggregate: Aggregate
    statistics: Sequence[Statistic]
    ranked: Ranked
    names: StatementNames
    owned: bool
    wide: bool
    """Whether sums are of integers in any case."""

    @property
    def keys(self) -> list[Name]:
        """The columns of the keys."""
        return [self.names.group_key.at(place) for place in range(len(self.aggregate.keys))]

    @property
    def read(self) -> list[Expression]:
        """All that is computed of a row."""
        measured = [s.argument for s in self.statistics if s.argument is not None]
        keys = [key.expression for key in self.aggregate.keys]
        return [*keys, *measured, *(argument for argument, _ in self.ranked)]

    @cached_property
    def counted(self) -> list[Column | None]:
        """What each statistic reads; None where it counts rows."""
        return [None if s.argument is None else self._column(s, s.argument) for s in self.statistics]

    def select(self, selection: Selection) -> Select:
        """The rows, bounded."""
        owner = [self.names.unit] if self.owned else []
        bounded = [*self._values(selection), *self._cells(selection)]
        pairs = zip(self.statistics, self.counted, strict=True)
        present = {column.name for s, column in pairs if s.kind == "present" and column and column.read is not None}
        ranges, conditions = self._listed(selection) if self.owned else ({}, [])
        inner = self._inner(ranges, selection)
        if not bounded and not conditions:
            return inner
        shown = [*self.keys, *owner, *bounded, *sorted(present)]
        return Select(shown, subquery(inner), " AND ".join(conditions), last=selection.dialect.fence)

    def _inner(self, ranges: dict[str, tuple[int, int]], selection: Selection) -> Select:
        """Keys, arguments and units as they are read."""
        read = {name: key.expression for name, key in zip(self.keys, self.aggregate.keys, strict=True)}
        columns = [*filter(None, self.counted), *self._placed]
        read |= {column.name: column.read for column in columns if column.read is not None}
        shown = [aliased(selection.text_of(expression), name) for name, expression in read.items()]
        if self.owned:
            shown.append(aliased(selection.dialect.identifier(OWNER), self.names.unit))
        used = frozenset[str]().union(*map(names_in, read.values()))
        source = selection.source(self.aggregate.input, used, ranges)
        return Select(shown or [aliased("1", self.names.any_row)], source)

    def _values(self, selection: Selection) -> Iterator[str]:
        """What a row adds to each of the sums."""
        dialect = selection.dialect
        kind = "INTEGER" if self.owned or self.wide else dialect.double
        for place, (statistic, column) in enumerate(zip(self.statistics, self.counted, strict=True)):
            if statistic.bounds and column is not None:
                steps = statistic.steps(column.name, dialect.strict, kind, dialect.eager)
                yield aliased(steps, self.names.row_parts.at(place))

    def _cells(self, selection: Selection) -> Iterator[str]:
        """Where a row is counted for each of the ranks."""
        dialect = selection.dialect
        for place, ((_, cells), column) in enumerate(zip(self.ranked, self._placed, strict=True)):
            cell = column.name if cells is None else cells.sql(column.name, dialect.strict, dialect.eager)
            yield aliased(cell, self.names.cell.at(place))

    @cached_property
    def _bounded(self) -> dict[Expression | None, int]:
        """Where there is a bounded statistic of an argument, the first."""
        return {s.argument: place for place, s in reversed([*enumerate(self.statistics)]) if s.bounds is not None}

    @cached_property
    def _places(self) -> dict[Expression, int]:
        """The arguments, numbered."""
        statistics = [s.argument for s in self.statistics if s.argument is not None]
        used = dict.fromkeys([*statistics, *(argument for argument, _ in self.ranked)])
        return {argument: place for place, argument in enumerate(used)}

    def _column(self, statistic: Statistic, argument: Expression) -> Column:
        """What statistics with bounds read needs no guard against NaN and infinities, for they pass over those; counts
        of the same argument count what they kept."""
        place, bounded = self._places[argument], argument in self._bounded
        if statistic.counts_units:
            # Of a decimal, some statistics read the units and others the double.
            return Column(self.names.decimal_units.at(place), argument)
        if statistic.kind == "present" and bounded:
            return Column(self.names.row_parts.at(self._bounded[argument]))
        return Column(self.names.argument.at(place), self._double(argument) if bounded else argument)

    @cached_property
    def _placed(self) -> list[Column]:
        """What each rank reads; under a name of its own where a count of the same argument keeps its guarded text."""
        known = {column.name for column in self.counted if column is not None and column.read is not None}
        columns = []
        for place, (argument, cells) in enumerate(self.ranked):
            shared = self.names.argument.at(self._places[argument])
            is_shared = cells is not None and argument in self._bounded and shared in known
            name = shared if is_shared else self.names.ranked.at(place)
            columns.append(Column(name, argument if cells is None else self._double(argument)))
        return columns

    def _double(self, argument: Expression) -> Expression:
        value = _unguarded(argument, self.aggregate.input)
        return value if value.type == "real" else Call("cast", (value,), "real")

    def _listed(self, selection: Selection) -> tuple[dict[str, tuple[int, int]], list[str]]:
        """Ranges of the table's own columns, and conditions on the keys."""
        conditions: list[str] = []
        ranges: dict[str, tuple[int, int]] = {}
        for place, values in only_listed(self.aggregate).items():
            expression = self.aggregate.keys[place].expression
            of_table = isinstance(self.aggregate.input, Scan) and expression.type == "integer" and _is_range(values)
            if of_table and isinstance(expression, Ref):
                ranges[expression.name] = min(values), max(values)
            else:
                conditions.append(_condition(self.keys[place], expression, values, selection))
        return ranges, conditions


def only_listed(aggregate: Aggregate) -> dict[int, tuple[Any, ...]]:
    """The keys, by place, whose rows are read only where they have a listed value: others are in no group, and would
    only make their units heavier. Long lists are not written into statements."""
    lists = {place: key.values.values for place, key in enumerate(aggregate.keys) if key.values is not None}
    if len(lists) < len(aggregate.keys):
        return {}
    return {place: values for place, values in lists.items() if len(values) <= WRITTEN or _is_range(values)}


def _is_range(values: Sequence[Any]) -> bool:
    whole = all(type(value) is int for value in values)
    return whole and len({*values}) == max(values) - min(values) + 1


def _condition(key: Name, expression: Expression, values: Sequence[Any], selection: Selection) -> str:
    """That a key has one of its listed values."""
    kind = expression.type
    exact = [Fraction(value) if isinstance(value, float) else value for value in values if value is not None]
    known = [selection.text_of(Literal(value, kind)) for value in exact]
    if _is_range(values):
        ends = (selection.text_of(Literal(end, kind)) for end in (min(values), max(values)))
        said = [f"{key} BETWEEN {' AND '.join(ends)}"]
    else:
        said = [f"{key} IN ({', '.join(known)})"] if known else []
    said += [f"{key} IS NULL"] if None in values else []
    return f"({' OR '.join(said)})"


def _unguarded(expression: Expression, relation: Relation) -> Expression:
    """An expression for a reader that passes over NaN and infinities: a table's column needs no guard there."""
    below = relation
    while isinstance(below, Filter):
        below = below.input
    if isinstance(expression, Ref) and isinstance(below, Scan) and expression.type == "real":
        return Ref(raw(expression.name), "real")
    return expression

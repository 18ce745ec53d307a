"""Where the columns of a relation come from: expressions over the columns of tables, and what holds for them.

`Origins` looks through subqueries, filters, joins and per-unit features. It gives for each column an expression over
`Source`s, columns about which something is declared, and all conditions that the sources of every row fulfil. Both
follow from the plan alone.

>>> from discreet.sql.catalog import Column, Table
>>> age = Ref("age", "integer")
>>> young = Call("<", (age, Literal(9, "integer")), "boolean")
>>> rows = Filter(Scan(Table("people", (Column("age", "integer"),))), young)
>>> origins = Origins(rows, lambda relation, expression: None)
>>> lowered = origins.lowered(Call("negate", (age,), "integer"))
>>> lowered.function, origins.conditions == [Call("<", (lowered.arguments[0], young.arguments[1]), "boolean")]
('negate', True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from discreet.core.domains import Bounds
from discreet.core.errors import Unsupported
from discreet.sql.catalog import Type
from discreet.sql.plan import (
    Call,
    Expression,
    Features,
    Filter,
    Join,
    Literal,
    Project,
    Ref,
    Relation,
    Scan,
    Union,
)
from discreet.sql.relations import columns_of

__all__ = ["Listing", "Origins", "Source"]

Path = tuple[str, ...]
"""The way to a relation: into the rows that features are of, or to a side of a join. A column of any name is another at
the end of another way."""
Listing = Callable[[Relation, Expression], "tuple[Any, ...] | None"]
"""The values an expression over a relation can have, if they can be listed."""
LARGEST = 2_000


@dataclass(frozen=True)
class Source:
    """A column that nothing more is known of than its type and what is declared."""

    type: Type
    values: tuple[Any, ...] | None = None
    bounds: Bounds | None = None
    table: Path | None = None
    """The way to the public table in which the values were found, if they were, and its name."""


class Origins:
    """The sources of one relation's columns."""

    def __init__(self, relation: Relation, listing: Listing) -> None:
        self.sources: dict[str, Source] = {}
        self._relation = relation
        self._listing = listing
        self._names: dict[tuple[Path, str | None], str] = {}
        self._known: dict[tuple[Path, str, int], tuple[Expression, int]] = {}
        self._size = 0

    def lowered(self, expression: Expression) -> Expression:
        """An expression over the relation as one over its sources."""
        return self._lowered(expression, self._relation, ())

    @property
    def conditions(self) -> list[Expression]:
        """What is true of the sources of every row."""
        return self._conditions(self._relation, ())

    def _lowered(self, expression: Expression, relation: Relation, path: Path) -> Expression:
        self._size += 1
        if self._size > LARGEST:
            raise Unsupported("this key", "its expression is too large to list its values", "shorten it")
        if isinstance(expression, Ref):
            return self._column(expression, relation, path)
        if isinstance(expression, Literal):
            return expression
        arguments = tuple(self._lowered(argument, relation, path) for argument in expression.arguments)
        return replace(expression, arguments=arguments)

    def _column(self, column: Ref, relation: Relation, path: Path) -> Expression:
        place = (path, column.name, id(relation))
        if place not in self._known:
            before = self._size
            found = self._found(column, relation, path)
            self._known[place] = found, self._size - before
        else:
            # An expression that is used again and again grows, although it is made only once.
            self._size += self._known[place][1]
        return self._known[place][0]

    def _found(self, column: Ref, relation: Relation, path: Path) -> Expression:
        match relation:
            case Scan(table):
                declared = table.column(column.name)
                values = None if declared.values is None else declared.values.values
                found = (*path, table.name) if declared.found else None
                return self._source(column.name, path, Source(declared.type, values, declared.bounds, found))
            case Filter(below):
                return self._column(column, below, path)
            case Project(below, columns):
                named = next(part for part in columns if part.name == column.name)
                origin = self._lowered(named.expression, below, path)
                if isinstance(origin, Ref) and self.sources[origin.name] == Source(origin.type):
                    self.sources[origin.name] = Source(origin.type, None, named.bounds)
                return origin
            case Features(below, keys, _):
                key = next((key for key in keys if key.name == column.name), None)
                if key is not None:
                    return self._lowered(key.expression, below, (*path, "below"))
                return self._source(column.name, path, Source(column.type))
            case Join():
                return self._joined(column, relation, path)
            case Union(inputs):
                return self._source(column.name, path, Source(column.type, self._united(column, inputs)))

    def _source(self, column: str | None, path: Path, source: Source) -> Ref:
        """A column at the end of a way; None is whether a row has a partner there."""
        name = self._names.setdefault((path, column), f"s{len(self._names)}")
        self.sources.setdefault(name, source)
        return Ref(name, source.type)

    def _joined(self, column: Ref, join: Join, path: Path) -> Expression:
        if column.name in columns_of(join.left):
            return self._column(column, join.left, (*path, "left"))
        origin = self._column(column, join.right, (*path, "right"))
        if join.kind != "left":
            return origin
        # A row without a partner has NULL, whatever the expression makes of NULLs.
        partner = self._source(None, path, Source("boolean", (True, False)))
        return Call("case", (partner, origin, Literal(None, origin.type)), origin.type)

    def _united(self, column: Ref, inputs: tuple[Relation, ...]) -> tuple[Any, ...] | None:
        place = columns_of(inputs[0]).index(column.name)
        lists = [self._listing(part, Ref(columns_of(part)[place], column.type)) for part in inputs]
        known = [values for values in lists if values is not None]
        return tuple(dict.fromkeys(v for values in known for v in values)) if len(known) == len(lists) else None

    def _conditions(self, relation: Relation, path: Path) -> list[Expression]:
        match relation:
            case Filter(below, predicate):
                parts = predicate.arguments if isinstance(predicate, Call) and predicate.function == "and" else None
                own = [self._lowered(part, below, path) for part in parts or (predicate,)]
                return own + self._conditions(below, path)
            case Project(below):
                return self._conditions(below, path)
            case Features(below):
                return self._conditions(below, (*path, "below"))
            case Join(left, right, _, kind):
                inside = self._conditions(right, (*path, "right")) if kind == "inner" else []
                return self._conditions(left, (*path, "left")) + inside
            case _:
                return []

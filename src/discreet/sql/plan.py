"""What a query means: small frozen nodes. Behaviour lives in the passes that read them.

Rows carry their owner. Every relation over a private table keeps, out of the analyst's sight, the unit each row belongs
to, and every node maps the rows of one unit to rows of that unit, looking at no other unit's rows. So neighbouring data
sets give relations that differ in the rows of one unit only, whatever the query; how much those rows may weigh is
bounded once, at the `Aggregate`.

Expressions look at one row at a time and are total: they give a value or NULL, never an error.

>>> Call("+", (Ref("age", "integer"), Literal(1, "integer")), "integer")
Call(function='+', arguments=(Ref(name='age', type='integer'), Literal(value=1, type='integer')), type='integer')
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal as OneOf

from discreet.core.domains import Bounds, Categories
from discreet.sql.aggregates import AGGREGATES, AggregateName, Aggregation
from discreet.sql.catalog import Table, Type

__all__ = [
    "Aggregate",
    "Call",
    "Expression",
    "Features",
    "Filter",
    "Join",
    "Literal",
    "Measure",
    "Named",
    "Order",
    "Project",
    "Query",
    "Ref",
    "Relation",
    "Scan",
    "Union",
]

Value = bool | int | Fraction | str | datetime.date | datetime.datetime | None


@dataclass(frozen=True)
class Ref:
    """A column of the relation below."""

    name: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant; None is NULL."""

    value: Value
    type: Type


@dataclass(frozen=True)
class Call:
    """A function of `sql/functions/registry.py` applied to arguments; `type` is what it gives when not NULL."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type


Expression = Ref | Literal | Call


@dataclass(frozen=True)
class Named:
    """An expression with the name its column gets, and what is known of its values."""

    name: str
    expression: Expression
    bounds: Bounds | None = None
    values: Categories | None = None


@dataclass(frozen=True)
class Scan:
    """All rows of a table. `names` are what statements call its columns, once that is decided
    (`statement/naming.py`)."""

    table: Table
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Filter:
    """The rows on which the predicate is true."""

    input: Relation
    predicate: Expression


@dataclass(frozen=True)
class Project:
    """One row for each row, with these columns."""

    input: Relation
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Features:
    """One row for each unit and combination of keys, with exact aggregates of that unit's own rows."""

    input: Relation
    keys: tuple[Named, ...]
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Join:
    """Pairs of rows of the same owner (two private relations, joined on the unit too), or of a private row with public
    ones or with rows linked to it. `on` pairs columns of left and right. `most` limits how many rows of the right one
    row of the left meets, to the first in the order of all their columns."""

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    kind: OneOf["inner", "left", "semi", "anti"] = "inner"
    most: int | None = None


@dataclass(frozen=True)
class Union:
    """The rows of both, columns matched by position."""

    inputs: tuple[Relation, ...]


Relation = Scan | Filter | Project | Features | Join | Union


@dataclass(frozen=True)
class Measure:
    """One aggregate of `sql/aggregates.py`. `quantile` has a rank, and `trimmed_mean` as its rank what is cut off at
    either end. `bounds` are those of the argument, `values` all numbers that it can be, where that is declared; of a
    `mode` all values."""

    name: str
    function: AggregateName
    argument: Expression | None = None
    bounds: Bounds | None = None
    rank: Fraction | None = None
    values: Categories | None = None

    @property
    def aggregation(self) -> Aggregation:
        """What is known of its function."""
        return AGGREGATES[self.function]

    @property
    def type(self) -> Type:
        """The type of its values."""
        return self.aggregation.result(None if self.argument is None else self.argument.type)

    @property
    def word(self) -> str:
        """What SQL calls it."""
        return (self.aggregation.at_half if self.rank == Fraction(1, 2) else "").upper() or self.function.upper()


@dataclass(frozen=True)
class Aggregate:
    """Statistics of each group; the only way from private rows to the outside. `max_rows` is the most rows of one unit
    in the input, where that is declared."""

    input: Relation
    keys: tuple[Named, ...]
    measures: tuple[Measure, ...]
    max_rows: int | None = None


@dataclass(frozen=True)
class Order:
    """An output column to sort by."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Query:
    """An aggregate and what is done to its released values: outputs, HAVING, ORDER BY, LIMIT. All post-processing, with
    `Ref`s to the names of the aggregate's keys and measures."""

    aggregate: Aggregate
    outputs: tuple[Named, ...]
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None

    @property
    def chosen(self) -> dict[str, str]:
        """The outputs that are modes as they are, and which measures."""
        modes = {measure.name for measure in self.aggregate.measures if measure.aggregation.is_chosen}
        refs = {out.name: out.expression.name for out in self.outputs if isinstance(out.expression, Ref)}
        return {name: measure for name, measure in refs.items() if measure in modes}

"""One text for each plan, whatever its author called things.

Two questions that parse to the same plan up to the names of tables' aliases, of inner columns and of measures have the
same canonical text, so a stored release answers both. Columns are named by where they come from; subqueries that only
choose or rename columns leave no trace, except where their order decides: a join that keeps the first rows of each
value sorts them by all columns of its right side. The text is JSON and says everything the plan does.

>>> from discreet.sql.catalog import Catalog, Column, Table
>>> from discreet.sql.parsing.select import parse
>>> known = Catalog((Table("visits", (Column("who", "integer"), Column("city", "text")), "who"),))
>>> one = parse("select City, count(*) n from visits v where v.city <> 'x' group by 1", known)
>>> two = parse("SELECT c AS city, COUNT(1) AS N FROM (SELECT city AS c FROM visits) WHERE c <> 'x' GROUP BY c", known)
>>> canonical(one) == canonical(two)
True
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from discreet.core.domains import Bounds, Categories
from discreet.sql.catalog import Table
from discreet.sql.plan import (
    Aggregate,
    Expression,
    Features,
    Filter,
    Join,
    Literal,
    Measure,
    Named,
    Project,
    Query,
    Ref,
    Relation,
    Scan,
    Union,
)
from discreet.sql.relations import columns_of

__all__ = ["bounds_text", "canonical"]

Tokens = Mapping[str, Any]
"""What stands for each column of a relation."""


def canonical(plan: Query | Aggregate) -> str:
    """The text of a plan; of an aggregate alone, that of what is measured, without what is done to the answer."""
    aggregate = plan.aggregate if isinstance(plan, Query) else plan
    below, tokens = _relation(aggregate.input)
    keys = [[*_named(key, tokens), _values(key.values)] for key in aggregate.keys]
    said: dict[str, Any] = {
        "input": below,
        "keys": keys,
        "measures": [_measure(measure, tokens) for measure in aggregate.measures],
        "max_rows": aggregate.max_rows,
    }
    if isinstance(plan, Query):
        released = _numbered("released", aggregate.keys, aggregate.measures)
        said["outputs"] = [[out.name.lower(), _expression(out.expression, released)] for out in plan.outputs]
        said["having"] = None if plan.having is None else _expression(plan.having, released)
        said["order"] = [[_expression(order.expression, released), order.descending] for order in plan.order]
        said["limit"] = plan.limit
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _relation(relation: Relation) -> tuple[Any, Tokens]:
    match relation:
        case Scan(table):
            return _scan(table), {c.name: ["column", c.name.lower(), c.type] for c in table.columns}
        case Filter(below, predicate):
            inner, tokens = _relation(below)
            return ["filter", inner, _expression(predicate, tokens)], tokens
        case Project(below, columns):
            return _project(*_relation(below), columns)
        case Features(below, keys, measures):
            inner, tokens = _relation(below)
            said = ["features", inner, [_named(k, tokens) for k in keys], [_measure(m, tokens) for m in measures]]
            return said, _numbered("feature", keys, measures)
        case Join():
            return _join(relation)
        case Union(inputs):
            return _union([_relation(part) for part in inputs])


def _scan(table: Table) -> list[Any]:
    """A table by its name, and whose rows it has."""
    unit = None if table.unit is None else table.unit.lower()
    link = None if table.link is None else [table.link.column.lower(), table.link.table.lower(), table.link.key.lower()]
    return ["scan", table.name.lower(), table.private, unit, link]


def _project(inner: Any, tokens: Tokens, columns: tuple[Named, ...]) -> tuple[Any, Tokens]:
    made = [column for column in columns if not isinstance(column.expression, Ref)]
    if not made:
        return inner, {column.name: tokens[_name(column.expression)] for column in columns}
    said = ["project", inner, [_expression(column.expression, tokens) for column in made]]
    places = {column.name: place for place, column in enumerate(made)}
    return said, {
        column.name: ["made", places[column.name]]
        if column.name in places
        else ["kept", tokens[_name(column.expression)]]
        for column in columns
    }


def _join(join: Join) -> tuple[Any, Tokens]:
    left, lefts = _relation(join.left)
    right, rights = _relation(join.right)
    pairs = [[lefts[one], rights[other]] for one, other in join.on]
    said = ["join", join.kind, join.most, left, right, pairs]
    if join.kind in ("semi", "anti"):
        return said, lefts
    sorted_by = [rights[name] for name in columns_of(join.right)]
    if join.most is not None and sorted_by != _implied(join.right):
        said.append(sorted_by)
    tokens = {name: ["left", token] for name, token in lefts.items()}
    return said, tokens | {name: ["right", token] for name, token in rights.items()}


def _implied(relation: Relation) -> list[Any]:
    """What stands for the columns of a relation, in the order that its text alone tells: as if subqueries that choose,
    reorder or rename columns were not there."""
    match relation:
        case Filter(below, _):
            return _implied(below)
        case Project(below, columns):
            made = [["made", place] for place in range(sum(not isinstance(c.expression, Ref) for c in columns))]
            return [["kept", token] for token in _implied(below)] + made if made else _implied(below)
        case Join(kind="semi" | "anti"):
            return _implied(relation.left)
        case Join():
            sides = ("left", _implied(relation.left)), ("right", _implied(relation.right))
            return [[side, token] for side, tokens in sides for token in tokens]
    return [*_relation(relation)[1].values()]


def _union(parts: list[tuple[Any, Tokens]]) -> tuple[Any, Tokens]:
    said = ["union", [[inner, [*tokens.values()]] for inner, tokens in parts]]
    return said, {name: ["column", place] for place, name in enumerate(parts[0][1])}


def _numbered(word: str, keys: Iterable[Named], measures: Iterable[Measure]) -> Tokens:
    names = [*(key.name for key in keys), *(measure.name for measure in measures)]
    return {name: [word, place] for place, name in enumerate(names)}


def _name(expression: Expression) -> str:
    return expression.name if isinstance(expression, Ref) else ""


def _named(named: Named, tokens: Tokens) -> list[Any]:
    return [_expression(named.expression, tokens), bounds_text(named.bounds)]


def _measure(measure: Measure, tokens: Tokens) -> list[Any]:
    argument = None if measure.argument is None else _expression(measure.argument, tokens)
    rank = None if measure.rank is None else str(measure.rank)
    values = [] if measure.values is None else [_values(measure.values)]
    return [measure.function, argument, bounds_text(measure.bounds), rank, *values]


def bounds_text(bounds: Bounds | None) -> list[str] | None:
    """Bounds in exact numbers: the least, the largest, and what stands for a missing one."""
    return None if bounds is None else [str(bounds.lower), str(bounds.upper), str(bounds.missing)]


def _values(values: Categories | None) -> list[list[str]] | None:
    return None if values is None else [[type(value).__name__, str(value)] for value in values.values]


def _expression(expression: Expression, tokens: Tokens) -> Any:
    if isinstance(expression, Ref):
        return tokens[expression.name]
    if isinstance(expression, Literal):
        value = expression.value
        return ["literal", expression.type, None if value is None else str(value)]
    arguments = [_expression(argument, tokens) for argument in expression.arguments]
    return [expression.function, expression.type, *arguments]

"""How much planning does for a question, which nobody has paid for.

A price costs nothing, so anybody may ask for any number of them; what one takes is bounded here, by counts that follow
from the question and the declarations alone. Beyond them a question is refused before anything is calibrated. Within
them planning takes seconds: it grows with the number of nodes and of sums, not with its square.

Three things are counted. **Nodes** of the plan, with subqueries as often as they are read: each is typed, bounded and
written. **Sums and ranks** that are measured, each of which gets noise. **Laws**: noise by declared values is made for
each different list of values (`bounding/declared_values.py`), which takes a calibration of its own; all other noise of
a question comes
from a handful.

**Expressions** are weighed as if the columns of subqueries were written out (`functions.weight`): engines do just that
where they push a condition down through projections, or pull subqueries up. So a column that is used twice in each of
many subqueries is refused as it would be in one expression; what is aggregated is computed once.

**Searches** that may take as many comparisons as `textual.TRIES` for one row are counted in the same way, over the
whole question: together they are what one person's text can make an engine do.

>>> from discreet.sql.catalog import Column, Table
>>> from discreet.sql.plan import Call, Measure
>>> rows = Filter(Scan(Table("t", (Column("x", "real"),))), Call("is null", (Ref("x", "real"),), "boolean"))
>>> nodes(Aggregate(rows, (), (Measure("n", "count"),)))
5
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.core.errors import Unsupported
from discreet.sql.bounding.sums import Statistic
from discreet.sql.functions.registry import weight
from discreet.sql.functions.text import is_slow
from discreet.sql.parsing.expressions import HEAVIEST
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
    Ref,
    Relation,
    Scan,
    Union,
)
from discreet.sql.relations import columns_of

__all__ = ["MOST_LAWS", "MOST_MEASURES", "MOST_NODES", "MOST_RANKS", "MOST_SEARCHES", "MOST_SUMS"]
__all__ += ["check_effort", "nodes", "searches", "written_out"]

MOST_NODES = 10_000
"""Of a plan. The longest question of TPC-H has 200; 10,000 take about four seconds."""
MOST_MEASURES = 1_000
"""Different aggregates that are read at all, as many as entries of a SELECT: for modes, values are listed meanwhile."""
MOST_SUMS = 500
"""Sums and ranks of a question. As many take about two seconds; averages need two sums each, deviations three."""
MOST_RANKS = 50
"""Quantiles and modes of a question. Each reads the rows once more, with the expressions of all of them, so that plans
grow with the square of their number: 50 took PostgreSQL 0.3 GB, and 100 a whole one."""
MOST_LAWS = 50
"""Different lists of declared values with noise of their own: a hundredth of a second each, for long lists a tenth."""


MOST_SEARCHES = 20
"""Searches of a question that may each take `textual.TRIES` comparisons for one row: about two seconds together."""


def check_effort(aggregate: Aggregate, statistics: tuple[Statistic, ...], ranks: int) -> None:
    """Refuse a question whose plan would take long, or whose expressions would be large if they were written out."""
    many = nodes(aggregate)
    if many > MOST_NODES:
        raise Unsupported("this question", f"its plan has {many:,} parts, more than {MOST_NODES:,}", "ask several")
    if written_out(aggregate) > HEAVIEST:
        reason = "an expression would be too large with the columns of its subqueries written out"
        raise Unsupported("this question", reason, "use what a subquery computes fewer times")
    many = searches(aggregate)
    if many > MOST_SEARCHES:
        reason = f"it looks for long, open or unwritten texts in others {many:,} times, more than {MOST_SEARCHES}"
        remedy = "look for shorter ones, without both % and _, or ask several questions"
        raise Unsupported("this question", reason, remedy)
    many = len(statistics) + ranks
    if many > MOST_SUMS:
        reason = f"it needs {many:,} sums and quantiles, more than {MOST_SUMS}"
        raise Unsupported("this question", reason, "ask several questions with fewer aggregates each")
    if ranks > MOST_RANKS:
        reason = f"it needs {ranks:,} quantiles and modes, more than {MOST_RANKS}"
        raise Unsupported("this question", reason, "ask several questions with fewer of them each")
    many = len({statistic.additions for statistic in statistics if statistic.values})
    if many > MOST_LAWS:
        reason = f"its sums are over {many:,} different lists of declared values, more than {MOST_LAWS}"
        raise Unsupported("this question", reason, "ask several questions with fewer sums each")


def nodes(aggregate: Aggregate) -> int:
    """How many relations, columns and parts of expressions a plan has."""
    return _relation(aggregate.input) + sum(map(_column, aggregate.keys)) + sum(map(_column, aggregate.measures))


def written_out(aggregate: Aggregate) -> int:
    """The weight of the heaviest expression of a plan, with columns written out as far as engines do that."""
    columns, heaviest = _weighed(aggregate.input)
    keys, measures = ([_heavy(c, columns) for c in found] for found in (aggregate.keys, aggregate.measures))
    return max([heaviest, *keys, *measures])


def _weighed(relation: Relation) -> tuple[dict[str, int], int]:
    """What each column of a relation weighs, written out, and the heaviest expression in it."""
    match relation:
        case Scan():
            return dict.fromkeys(columns_of(relation), 1), 1
        case Filter(below, predicate):
            columns, heaviest = _weighed(below)
            return columns, max(heaviest, weight(predicate, columns))
        case Project(below, shown):
            columns, heaviest = _weighed(below)
            made = {column.name: _heavy(column, columns) for column in shown}
            return made, max([heaviest, *made.values()])
        case Features(below, keys, measures):
            columns, heaviest = _weighed(below)
            made = {key.name: _heavy(key, columns) for key in keys}
            heaviest = max([heaviest, *made.values(), *(_heavy(measure, columns) for measure in measures)])
            return made | {measure.name: 1 for measure in measures}, heaviest
        case Join(left, right, kind=kind):
            (ours, one), (theirs, other) = _weighed(left), _weighed(right)
            return (ours if kind in ("semi", "anti") else {**theirs, **ours}), max(one, other)
        case Union(inputs):
            names, parts = columns_of(relation), [(columns_of(part), *_weighed(part)) for part in inputs]
            heavy = {name: max(columns[of[place]] for of, columns, _ in parts) for place, name in enumerate(names)}
            return heavy, max(heaviest for _, _, heaviest in parts)


def searches(aggregate: Aggregate) -> int:
    """How many slow searches a question makes of one row, with columns written out."""
    columns, total = _searched(aggregate.input)
    return total + _in_all(aggregate.keys, columns) + _in_all(aggregate.measures, columns)


def _searched(relation: Relation) -> tuple[dict[str, int], int]:
    """The slow searches in each column of a relation, written out, and those of its conditions."""
    match relation:
        case Scan():
            return {}, 0
        case Filter(below, predicate):
            columns, total = _searched(below)
            return columns, total + _slow(predicate, columns)
        case Project(below, shown):
            columns, total = _searched(below)
            return {column.name: _searches(column, columns) for column in shown}, total
        case Features(below, keys, measures):
            columns, total = _searched(below)
            return {}, total + _in_all(keys, columns) + _in_all(measures, columns)
        case Join(left, right):
            (ours, one), (theirs, other) = _searched(left), _searched(right)
            return {**theirs, **ours}, one + other
        case Union(inputs):
            names, parts = columns_of(relation), [(columns_of(part), *_searched(part)) for part in inputs]
            made = {name: max(c.get(of[place], 0) for of, c, _ in parts) for place, name in enumerate(names)}
            return made, sum(total for _, _, total in parts)


def _in_all(made: Iterable[Named | Measure], columns: Mapping[str, int]) -> int:
    return sum(_searches(column, columns) for column in made)


def _searches(column: Named | Measure, columns: Mapping[str, int]) -> int:
    expression = column.expression if isinstance(column, Named) else column.argument
    return 0 if expression is None else _slow(expression, columns)


def _slow(expression: Expression, columns: Mapping[str, int]) -> int:
    if isinstance(expression, Ref):
        return columns.get(expression.name, 0)
    if isinstance(expression, Literal):
        return 0
    return int(is_slow(expression)) + sum(_slow(argument, columns) for argument in expression.arguments)


def _heavy(column: Named | Measure, columns: Mapping[str, int]) -> int:
    expression = column.expression if isinstance(column, Named) else column.argument
    return 1 if expression is None else weight(expression, columns)


def _relation(relation: Relation) -> int:
    match relation:
        case Scan():
            return 1
        case Filter(below, predicate):
            return 1 + _relation(below) + _expression(predicate)
        case Project(below, columns):
            return 1 + _relation(below) + sum(map(_column, columns))
        case Features(below, keys, measures):
            return 1 + _relation(below) + sum(map(_column, keys)) + sum(map(_column, measures))
        case Join(left, right, on):
            return 1 + _relation(left) + _relation(right) + len(on)
        case Union(inputs):
            return 1 + sum(map(_relation, inputs))


def _column(column: Named | Measure) -> int:
    expression = column.expression if isinstance(column, Named) else column.argument
    return 1 if expression is None else 1 + _expression(expression)


def _expression(expression: Expression) -> int:
    if isinstance(expression, Ref | Literal):
        return 1
    return 1 + sum(map(_expression, expression.arguments))

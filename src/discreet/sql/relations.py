"""What can be said of a relation: its columns, its tables, whether its rows have owners.

>>> from discreet.sql.catalog import Column, Table
>>> table = Table("visits", (Column("who", "integer"), Column("cost", "real")), unit="who")
>>> columns_of(Scan(table)), is_owned(Scan(table)), is_plain(Filter(Scan(table), Literal(True, "boolean")))
(('who', 'cost'), True, True)
"""

from __future__ import annotations

from collections import Counter

from discreet.sql.catalog import Table
from discreet.sql.plan import Expression, Features, Filter, Join, Literal, Project, Ref, Relation, Scan, Union

__all__ = ["columns_of", "copies_in", "is_owned", "is_plain", "limits_in", "names_in", "tables_in", "units_in"]


def is_owned(relation: Relation) -> bool:
    """Whether rows carry an owner: they come from a private table whose unit is a column."""
    match relation:
        case Scan(table):
            return table.private and table.unit is not None
        case Join(left, right):
            return is_owned(left) or is_owned(right)
        case Union(inputs):
            return any(is_owned(part) for part in inputs)
        case _:
            return is_owned(relation.input)


def tables_in(relation: Relation) -> frozenset[str]:
    """The tables that the relation reads."""
    match relation:
        case Scan(table):
            return frozenset((table.name,))
        case Join(left, right):
            return tables_in(left) | tables_in(right)
        case Union(inputs):
            return frozenset[str]().union(*map(tables_in, inputs))
        case _:
            return tables_in(relation.input)


def copies_in(relation: Relation) -> int:
    """In how many rows of the relation one protected row can be, where each row is a unit of its own.

    Tables are told apart by name alone: the same file twice, a view and its table, or a plain copy are several tables
    with the same rows. So every scan of a private table may read that row, and all of them are added up, but for tables
    that the steward declares disjoint, of which only one can have it. Where a column names units, it is that which
    bounds what one of them adds, and this is 1.
    """
    if is_owned(relation):
        return 1
    scans = [table for table in _scans(relation) if table.private]
    apart = Counter(table.name for table in scans if table.disjoint)
    return max(1, sum(not table.disjoint for table in scans), *apart.values())


def _scans(relation: Relation) -> list[Table]:
    match relation:
        case Scan(table):
            return [table]
        case Join(left, right):
            return [*_scans(left), *_scans(right)]
        case Union(inputs):
            return [table for part in inputs for table in _scans(part)]
        case _:
            return _scans(relation.input)


def units_in(relation: Relation) -> frozenset[str]:
    """The unit columns of the tables that the relation reads."""
    match relation:
        case Scan(table):
            return frozenset((table.unit,)) if table.private and table.unit is not None else frozenset()
        case Join(left, right):
            return units_in(left) | units_in(right)
        case Union(inputs):
            return frozenset[str]().union(*map(units_in, inputs))
        case _:
            return units_in(relation.input)


def limits_in(relation: Relation) -> frozenset[tuple[str, int]]:
    """The tables of whose rows joins let each row meet only so many."""
    match relation:
        case Scan():
            return frozenset()
        case Join(left, right, _, _, most):
            own = frozenset[tuple[str, int]]() if most is None else frozenset((name, most) for name in tables_in(right))
            return own | limits_in(left) | limits_in(right)
        case Union(inputs):
            return frozenset[tuple[str, int]]().union(*map(limits_in, inputs))
        case _:
            return limits_in(relation.input)


def own_joins_in(relation: Relation) -> int:
    """How many joins let each row of a unit meet all others of the same unit."""
    match relation:
        case Scan():
            return 0
        case Join(left, right, _, _, most):
            both = most is None and any(units_in(left)) and any(units_in(right))
            return int(both) + own_joins_in(left) + own_joins_in(right)
        case Union(inputs):
            return max(map(own_joins_in, inputs))
        case _:
            return own_joins_in(relation.input)


def is_plain(relation: Relation) -> bool:
    """Whether the relation is a table, filtered and projected: cheap to read, and the same each time. A view is not:
    one that samples would have other rows when they are added up than when their units were weighed."""
    while isinstance(relation, Filter | Project):
        relation = relation.input
    return isinstance(relation, Scan) and not relation.table.is_view


def columns_of(relation: Relation) -> tuple[str, ...]:
    """The names an expression above may refer to."""
    match relation:
        case Scan(table, names):
            return names or table.names
        case Filter(below):
            return columns_of(below)
        case Project(_, columns):
            return tuple(column.name for column in columns)
        case Features(_, keys, measures):
            return tuple(key.name for key in keys) + tuple(measure.name for measure in measures)
        case Join(left, right, _, kind):
            return columns_of(left) if kind in ("semi", "anti") else columns_of(left) + columns_of(right)
        case Union(inputs):
            return columns_of(inputs[0])


def names_in(expression: Expression) -> frozenset[str]:
    """The columns that an expression reads."""
    if isinstance(expression, Ref):
        return frozenset((expression.name,))
    if isinstance(expression, Literal):
        return frozenset()
    return frozenset[str]().union(*map(names_in, expression.arguments))

"""Relations as SQL text in DuckDB's dialect, with the owner of each row carried along.

>>> from discreet.sql.catalog import Column, Table
>>> from discreet.sql.plan import Ref
>>> table = Table("visits", (Column("who", "integer"), Column("cost", "real")), unit="who")
>>> print(select(Project(Scan(table), (Named("c", Ref("cost", "real")),))))
SELECT "cost" AS "c", "discreet unit" FROM (SELECT ... "who" AS "discreet unit" FROM "visits" WHERE "who" IS NOT NULL)
"""

from __future__ import annotations

from functools import lru_cache

from discreet.sql.catalog import Table, Type
from discreet.sql.functions import admit, render
from discreet.sql.plan import (
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
from discreet.sql.signature import Node

__all__ = [
    "OWNER",
    "columns_of",
    "is_owned",
    "is_plain",
    "limits_in",
    "names_in",
    "quoted",
    "select",
    "source",
    "tables_in",
    "text_of",
    "unguarded",
]

OWNER = "discreet unit"
"""The column that names the unit a row belongs to; no analyst can name a column like that."""
RAW = "discreet raw "
"""What stands before the name of a table's column of reals as it is, with NaN and infinities."""


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=4096)
def text_of(expression: Expression) -> str:
    """An expression in SQL."""
    return _sql(render(expression))


def _sql(node: Node) -> str:
    return str(node.sql(dialect="duckdb"))


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


def is_plain(relation: Relation) -> bool:
    """Whether the relation is a table, filtered and projected: cheap to read, and the same each time."""
    while isinstance(relation, Filter | Project):
        relation = relation.input
    return isinstance(relation, Scan)


def columns_of(relation: Relation) -> tuple[str, ...]:
    """The names an expression above may refer to."""
    match relation:
        case Scan(table):
            return table.names
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


def select(relation: Relation, used: frozenset[str] | None = None) -> str:
    """The relation as a SELECT; the owner, where there is one, is its last column.

    Only the columns in `used` are needed, if that is given: a table may have hundreds.
    """
    owner = [quoted(OWNER)] if is_owned(relation) else []
    match relation:
        case Scan(table):
            return _scan(table, used)
        case Filter():
            return f"SELECT * FROM {source(relation, used)}"
        case Project(below, columns):
            kept = [column for column in columns if used is None or column.name in used]
            needed = frozenset[str]().union(*(names_in(column.expression) for column in kept))
            shown = [_named(column) for column in kept] + owner
            return f"SELECT {', '.join(shown or ['1'])} FROM ({select(below, needed)})"
        case Features(below, keys, measures):
            shown = [_named(key) for key in keys] + [_exact(measure) for measure in measures] + owner
            groups = [text_of(key.expression) for key in keys] + owner
            return f"SELECT {', '.join(shown)} FROM ({select(below)}) GROUP BY {', '.join(groups)}"
        case Join():
            return _join(relation)
        case Union(inputs):
            names = columns_of(relation)
            parts = []
            for part in inputs:
                pairs = zip(columns_of(part), names, strict=True)
                shown = [f"{quoted(have)} AS {quoted(want)}" for have, want in pairs] + owner
                parts.append(f"SELECT {', '.join(shown)} FROM ({select(part)})")
            return " UNION ALL ".join(parts)


def source(relation: Relation, used: frozenset[str] | None = None) -> str:
    """What stands after FROM to read the relation; a filter is its WHERE, which nothing but GROUP BY may follow."""
    if isinstance(relation, Filter):
        needed = None if used is None else used | names_in(relation.predicate)
        return f"({select(relation.input, needed)}) WHERE {text_of(relation.predicate)}"
    return f"({select(relation, used)})"


def _scan(table: Table, used: frozenset[str] | None) -> str:
    shown = [
        f"{_admitted(c.name, c.type)} AS {quoted(c.name)}" for c in table.columns if used is None or c.name in used
    ]
    for column in table.columns:
        if column.type == "real" and (used is None or RAW + column.name in used):
            shown.append(f"TRY_CAST({quoted(column.name)} AS DOUBLE) AS {quoted(RAW + column.name)}")
    if not table.private or table.unit is None:
        return f"SELECT {', '.join(shown or ['1'])} FROM {quoted(table.name)}"
    unit = quoted(table.unit)
    shown.append(f"{unit} AS {quoted(OWNER)}")
    return f"SELECT {', '.join(shown)} FROM {quoted(table.name)} WHERE {unit} IS NOT NULL"


def names_in(expression: Expression) -> frozenset[str]:
    """The columns that an expression reads."""
    if isinstance(expression, Ref):
        return frozenset((expression.name,))
    if isinstance(expression, Literal):
        return frozenset()
    return frozenset[str]().union(*map(names_in, expression.arguments))


@lru_cache(maxsize=4096)
def _admitted(name: str, kind: Type) -> str:
    return _sql(admit(name, kind))


def _named(column: Named) -> str:
    return f"{text_of(column.expression)} AS {quoted(column.name)}"


def _exact(measure: Measure) -> str:
    """An exact aggregate of one unit's own rows."""
    argument = "*" if measure.argument is None else text_of(measure.argument)
    # Floating-point sums depend on their order, which depends on everybody's rows: sort one unit's own first.
    ordered = f"{argument} ORDER BY {argument}"
    if measure.function == "count_distinct":
        call = f"COUNT(DISTINCT {argument})"
    elif measure.function == "quantile":
        call = f"QUANTILE_CONT({argument}, {float(measure.rank or 0)})"
    elif measure.function in ("sum", "avg", "variance", "stddev"):
        name = {"variance": "VAR_SAMP", "stddev": "STDDEV_SAMP"}.get(measure.function, measure.function.upper())
        call = f"{name}({ordered})"
    else:
        call = f"{measure.function.upper()}({argument})"
    if measure.function == "sum" and measure.argument is not None and measure.argument.type == "integer":
        call = f"TRY_CAST({call} AS BIGINT)"
    elif measure.function in ("sum", "avg", "variance", "stddev", "quantile"):
        value = f"CAST({call} AS DOUBLE)"
        call = f"CASE WHEN ISFINITE({value}) THEN {value} END"
    return f"{call} AS {quoted(measure.name)}"


def _join(join: Join) -> str:
    left, right = f"({select(join.left)}) AS l", f"({_first(join)}) AS r"
    pairs = [f"l.{quoted(a)} = r.{quoted(b)}" for a, b in join.on]
    owned = [is_owned(join.left), is_owned(join.right)]
    if all(owned):
        pairs.append(f"l.{quoted(OWNER)} = r.{quoted(OWNER)}")
    condition = " AND ".join(pairs)
    if join.kind in ("semi", "anti"):
        negation = "NOT " if join.kind == "anti" else ""
        return f"SELECT * FROM {left} WHERE {negation}EXISTS (SELECT 1 FROM {right} WHERE {condition})"
    shown = [f"l.{quoted(name)}" for name in columns_of(join.left)]
    shown += [f"r.{quoted(name)}" for name in columns_of(join.right)]
    if any(owned):
        shown.append(f"{'l' if owned[0] else 'r'}.{quoted(OWNER)}")
    return f"SELECT {', '.join(shown)} FROM {left} {join.kind.upper()} JOIN {right} ON {condition}"


def _first(join: Join) -> str:
    """The right side, with no more rows for each value of the joined columns than the join lets through.

    Only rows of values that have more are sorted: those are few, while the right side may be large.
    """
    if join.most is None:
        return select(join.right)
    names = [quoted(name) for name in dict.fromkeys(name for _, name in join.on)]
    keys = ", ".join(names)
    same = " AND ".join(f"s.{name} = h.{name}" for name in names)
    order = ", ".join(quoted(name) for name in columns_of(join.right))
    place = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order})"
    return (
        f"WITH s AS {'NOT ' if is_plain(join.right) else ''}MATERIALIZED ({select(join.right)}), "
        f"h AS MATERIALIZED (SELECT {keys} FROM s GROUP BY {keys} HAVING COUNT(*) > {join.most}) "
        f"SELECT * FROM s WHERE NOT EXISTS (SELECT 1 FROM h WHERE {same}) UNION ALL "
        f"SELECT * FROM s WHERE EXISTS (SELECT 1 FROM h WHERE {same}) QUALIFY {place} <= {join.most}"
    )


def unguarded(expression: Expression, relation: Relation) -> Expression:
    """An expression for a reader that passes over NaN and infinities: a table's column needs no guard there."""
    below = relation
    while isinstance(below, Filter):
        below = below.input
    if isinstance(expression, Ref) and isinstance(below, Scan) and expression.type == "real":
        return Ref(RAW + expression.name, "real")
    return expression

"""FROM, JOIN and WHERE: from the parser's tree to relations over rows.

Private rows meet other private rows only where both sides' unit columns are equated, so that a row never learns of
another unit's rows; public tables join on any equality.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from discreet.core.domains import Categories
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.sql.catalog import Catalog
from discreet.sql.functions.ranges import Interval, hull
from discreet.sql.functions.registry import call, cast
from discreet.sql.functions.signature import unified
from discreet.sql.parsing.aggregates import row_leaf
from discreet.sql.parsing.expressions import read
from discreet.sql.parsing.join_limits import Multiplicity
from discreet.sql.parsing.joins import Kind, Pair, ownerless, paired
from discreet.sql.parsing.names import only, refuse
from discreet.sql.parsing.scope import Field, Rows, project, scan
from discreet.sql.plan import Expression, Features, Query, Ref, Union

__all__ = ["Context", "conditions", "filtered", "sources", "union"]

MOST_SELECTS = 100


@dataclass
class Context:
    """What names of tables mean, and how a subquery is read."""

    catalog: Catalog
    select: Callable[[exp.Expr, Context], Rows | Query]
    named: Mapping[str, tuple[exp.CTE, Context]]
    count: list[int]

    def entered(self) -> None:
        """One more SELECT; a query that repeats itself through WITH can be far larger than its text."""
        self.count[0] += 1
        if self.count[0] > MOST_SELECTS:
            raise Unsupported("this query", f"it has more than {MOST_SELECTS} SELECTs", "split it")


def sources(select: exp.Select, context: Context) -> Rows | Query:
    """FROM with its JOINs; a query if FROM holds nothing but one that is already aggregated."""
    origin = select.args.get("from_")
    if origin is None:
        raise refuse(select, "it names no table", "add FROM")
    joins = select.args.get("joins") or []
    only(origin, "this")
    first = _source(origin.this, context)
    if not joins:
        return first
    rows = _rows(first, select)
    where = select.args.get("where")
    for join in joins:
        # Tables listed with commas are joined by the equalities in WHERE.
        rows = _joined(rows, join, context, [] if where is None else conditions(where.this))
    return rows


def _rows(source: Rows | Query, node: exp.Expr) -> Rows:
    if isinstance(source, Query):
        reason = "a subquery that aggregates without the unit column is a release"
        remedy = "GROUP BY the unit column in it, or ask it alone and use its answer"
        raise refuse(node, reason, remedy)
    return source


def _source(node: exp.Expr, context: Context) -> Rows | Query:
    alias = node.args.get("alias")
    labels = [] if alias is None else [column.name for column in alias.args.get("columns") or []]
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias")
        inside = context.select(node.this, context) if isinstance(node.this, exp.Query) else _source(node.this, context)
        return _called(inside, "" if alias is None else alias.name, labels, node)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refuse(node, "it is not a table that was registered", "name a table, or a subquery in parentheses")
    if node.args.get("db") is not None:
        raise refuse(node, "tables have their names of this session here, without a schema", f"write {node.name}")
    only(node, "this", "alias")
    name = node.name
    known = context.named.get(name.lower())
    if known is None:
        rows: Rows | Query = scan(context.catalog.table(name))
    else:
        rows = _named(*known)
    return _called(rows, name if alias is None or not alias.name else alias.name, labels, node)


def _named(cte: exp.CTE, context: Context) -> Rows | Query:
    only(cte, "this", "alias", "materialized")
    labels = [column.name for column in cte.args["alias"].args.get("columns") or []]
    return _called(context.select(cte.this, context), "", labels, cte)


def _called(source: Rows | Query, name: str, labels: Sequence[str], node: exp.Expr) -> Rows | Query:
    if isinstance(source, Rows):
        return source.called(name, labels)
    if not labels:
        return source
    if len(labels) > len(source.outputs):
        raise refuse(node, "it names more columns than there are", f"name at most {len(source.outputs)}")
    names = [*labels, *(output.name for output in source.outputs[len(labels) :])]
    renamed = [replace(output, name=new) for output, new in zip(source.outputs, names, strict=True)]
    return replace(source, outputs=tuple(renamed))


def _joined(left: Rows, join: exp.Expr, context: Context, where: Sequence[exp.Expr]) -> Rows:
    only(join, "this", "on", "using", "side", "kind", "method")
    side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if isinstance(join.this, exp.Lateral | exp.Unnest):
        raise refuse(join, "it looks at rows one by one", "JOIN a table on equal columns")
    if method == "NATURAL":
        raise refuse(join, "columns are equated by name, not by chance", "write JOIN … USING (the columns)")
    if side == "FULL":
        raise refuse(join, "rows without a partner would have no owner on one side", "write LEFT JOIN … ON")
    if method or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
        raise refuse(join, "only inner, left, right, semi and anti joins are understood", "write JOIN … ON")
    right = _rows(_source(join.this, context), join)
    twice = {field.source for field in left.fields} & {field.source for field in right.fields} - {""}
    if twice:
        raise refuse(join, f"the name {min(twice)} stands for two tables", "give one of them an alias")
    if side == "RIGHT":
        return _turned(left, right, join, context)
    how: Kind = "left" if side else "semi" if kind == "SEMI" else "anti" if kind == "ANTI" else "inner"
    if join.args.get("using"):
        return _using(left, right, join, how)
    if not join.args.get("on"):
        equal = [pair for part in where if (pair := _equality(part, left, right)) is not None]
        if not equal:
            raise refuse(join, "every row would meet every other", "write JOIN … ON with equal columns")
        return paired(left, right, equal, "inner", join)
    return _on(left, right, join, how, context)


def _turned(left: Rows, right: Rows, join: exp.Expr, context: Context) -> Rows:
    """A right join is a left join from the other side; the columns keep their order."""
    turned = _using(right, left, join, "left") if join.args.get("using") else _on(right, left, join, "left", context)
    shown, count = turned.visible, len(right.visible)
    hidden = [field for field in turned.fields if field.hidden]
    return replace(turned, fields=(*shown[count:], *shown[:count], *hidden))


def _on(left: Rows, right: Rows, join: exp.Expr, how: Kind, context: Context) -> Rows:
    if not join.args.get("on"):
        raise refuse(join, "every row would meet every other", "write JOIN … ON with equal columns")
    pairs, after = [], []
    for condition in conditions(join.args["on"]):
        _check_known(condition, left, right)
        pair = _equality(condition, left, right)
        if pair is not None:
            pairs.append(pair)
        elif _resolves(condition, right) and not _resolves(condition, left):
            right = filtered(right, [condition], context)
        elif how != "inner":
            raise refuse(condition, f"a {how} join compares columns of both sides", "move the condition to WHERE")
        else:
            after.append(condition)
    return filtered(paired(left, right, pairs, how, join), after, context)


def _using(left: Rows, right: Rows, join: exp.Expr, kind: Kind) -> Rows:
    names = [identifier.name for identifier in join.args["using"]]
    pairs = [(left.find(name).expression, right.find(name).expression) for name in names]
    merged = {right.find(name).name for name in names}
    hidden = tuple(replace(f, hidden=f.hidden or f.name in merged) for f in right.fields)
    return paired(left, replace(right, fields=hidden), pairs, kind, join)


def _equality(node: exp.Expr, left: Rows, right: Rows) -> Pair | None:
    """The two sides of an equality, if each speaks of one side of the join only."""
    if not isinstance(node, exp.EQ):
        return None
    one, other = node.this, node.expression
    if not (_columns(one) and _columns(other)):
        return None
    if _resolves(one, left) and _resolves(other, right):
        return _row(one, left), _row(other, right)
    if _resolves(other, left) and _resolves(one, right):
        return _row(other, left), _row(one, right)
    return None


def _check_known(condition: exp.Expr, left: Rows, right: Rows) -> None:
    """Refuse a column that neither side has, by its name."""
    for column in [] if condition.find(exp.Query) else _columns(condition):
        if not _resolves(column, left) and not _resolves(column, right):
            both = replace(left, fields=(*left.fields, *right.fields))
            both.find(column.name, column.table or None)


def _columns(node: exp.Expr) -> list[exp.Column]:
    return list(node.find_all(exp.Column))


def _resolves(node: exp.Expr, rows: Rows) -> bool:
    return all(rows.matches(column.name, column.table or None) for column in _columns(node))


def _row(node: exp.Expr, rows: Rows) -> Expression:
    return rows.checked(read(node, lambda part: row_leaf(rows, part)))


def conditions(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that are joined by AND."""
    inside = node.unnest()
    if not isinstance(inside, exp.And):
        return [inside]
    only(inside, "this", "expression")
    return [part for side in inside.flatten(unnest=False) for part in conditions(side)]


def filtered(rows: Rows, parts: Sequence[exp.Expr], context: Context) -> Rows:
    """The rows on which all conditions hold, subqueries among them."""
    plain = [part for part in parts if not _is_membership(part)]
    predicates = [_row(part, rows) for part in plain]
    for part, predicate in zip(plain, predicates, strict=True):
        if predicate.type != "boolean":
            raise refuse(part, f"it is {predicate.type}, not a condition", "compare it to something")
    if predicates:
        rows = rows.filtered(predicates[0] if len(predicates) == 1 else call("and", *predicates))
    for part in parts:
        if _is_membership(part):
            rows = _member(rows, part, context)
    return rows


def _is_membership(node: exp.Expr) -> bool:
    inside = node.this.unnest() if isinstance(node, exp.Not) else node
    return isinstance(inside, exp.Exists) or (isinstance(inside, exp.In) and bool(inside.args.get("query")))


def _member(rows: Rows, node: exp.Expr, context: Context) -> Rows:
    negated = isinstance(node, exp.Not)
    inside = node.this.unnest() if negated else node
    if isinstance(inside, exp.Exists):
        return _exists(rows, inside, "anti" if negated else "semi", context)
    only(inside, "this", "query")
    try:
        listed = _rows(context.select(inside.args["query"], context), inside)
    except InvalidArgument as error:
        if rows.matches(str(error.value)) or str(error.value).lower() in {field.source for field in rows.fields}:
            raise refuse(inside, "the subquery reaches outside itself", "write EXISTS with an equality") from None
        raise
    if len(listed.visible) != 1:
        raise refuse(inside, "the subquery has more than one column", "SELECT one column in it, or write EXISTS")
    value, (column, *_) = _row(inside.this, rows), listed.visible
    if not negated:
        return paired(rows, listed, [(value, column.expression)], "semi", node)
    if not column.unit and not column.unique:
        reason = "NOT IN keeps no row at all when the subquery holds a NULL"
        raise refuse(node, reason, "write NOT EXISTS (SELECT 1 FROM … WHERE …)")
    field = rows.field_of(value)
    present = rows if field is not None and field.unit else rows.filtered(call("not", call("is null", value)))
    return paired(present, listed, [(value, column.expression)], "anti", node)


def _exists(rows: Rows, node: exp.Exists, kind: Kind, context: Context) -> Rows:
    select = node.this.unnest() if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(select, exp.Select):
        raise refuse(node, "EXISTS asks for rows of one SELECT", "write EXISTS (SELECT 1 FROM … WHERE …)")
    only(node, "this")
    only(select, "expressions", "from_", "joins", "where")
    context.entered()
    if not all(isinstance(part, exp.Literal | exp.Star | exp.Column) for part in select.expressions):
        raise refuse(node, "what EXISTS selects does not matter", "write SELECT 1")
    inner = _rows(sources(select, context), node)
    where = select.args.get("where")
    pairs, local = [], []
    for condition in conditions(where.this) if where is not None else []:
        if all(_resolves(column, inner) for column in _columns(condition)):
            local.append(condition)
            continue
        pair = _equality(condition, rows, inner)
        if pair is None:
            raise refuse(condition, "only equalities reach outside the subquery", "compare equal columns")
        pairs.append(pair)
    if not pairs:
        raise refuse(node, "it does not depend on the row", "compare a column of the subquery to one outside")
    return paired(rows, filtered(inner, local, context), pairs, kind, node)


def union(node: exp.Expr, context: Context) -> Rows:
    """UNION ALL: columns by place, in the widest type of each. UNION is that with each unit's rows made distinct."""
    united = _united(node, context)
    if not node.args.get("distinct"):
        return united
    if not any(field.unit for field in united.visible):
        reason = "removing duplicates would compare rows of different people"
        raise refuse(node, reason, "SELECT the unit column in every part, or write UNION ALL")
    keys = tuple(united.named(field.name, field.expression) for field in united.fields)
    most = 1 if all(field.unit for field in united.fields) else united.max_rows
    return replace(united, relation=Features(united.relation, keys, ()), max_rows=most)


def _united(node: exp.Expr, context: Context) -> Rows:
    parts = [_part(side, context) for side in _sides(node)]
    first = parts[0]
    widths = {len(part.visible) for part in parts}
    if len(widths) != 1:
        raise refuse(node, "its parts have different numbers of columns", "SELECT the same columns in each")
    if len({(part.private, part.owned) for part in parts}) != 1:
        raise refuse(node, "its rows are not all owned by units alike", "unite private tables only with private ones")
    tables = [table for part in parts for table in part.tables]
    if first.private and not first.owned and len(set(tables)) != len(tables):
        raise refuse(node, "each row is a unit of its own, and this repeats it", "declare a unit column")
    columns = [_common(node, place) for place in zip(*(part.visible for part in parts), strict=True)]
    sides = zip(*(expressions for expressions, _ in columns), strict=True)
    brought = [_brought(part, side) for part, side in zip(parts, sides, strict=True)]
    known = [part.max_rows for part in parts if part.max_rows is not None]
    names = [field.name for field in brought[0].fields]
    fields = tuple(replace(field, expression=Ref(n, field.type)) for n, (_, field) in zip(names, columns, strict=True))
    return Rows(
        Union(tuple(part.relation for part in brought)),
        fields,
        first.private,
        first.owned,
        tuple(tables),
        sum(known) if len(known) == len(parts) else None,
        multiplicity=reduce(Multiplicity.beside, (part.multiplicity for part in parts)),
    )


def _part(side: exp.Expr, context: Context) -> Rows:
    rows = context.select(side, context)
    if isinstance(rows, Query):
        raise refuse(side, "each aggregate is a question of its own", "unite rows and aggregate them, or ask twice")
    if rows.linked is not None:
        raise ownerless(rows.linked, side)
    return rows


def _brought(part: Rows, expressions: Sequence[Expression]) -> Rows:
    if [*expressions] == [field.expression for field in part.fields]:
        return part
    return project(part, [(own.label, e) for own, e in zip(part.visible, expressions, strict=True)])


def _sides(node: exp.Expr) -> list[exp.Expr]:
    only(node, "this", "expression", "distinct")
    ends = (node.this, node.expression)
    # Inside a UNION it does not matter whether duplicates were removed before.
    merged = [
        isinstance(end, exp.Union) and (node.args.get("distinct") or not end.args.get("distinct")) for end in ends
    ]
    nested = zip(ends, merged, strict=True)
    return [part for end, inner in nested for part in (_sides(end) if inner else [end])]


def _common(node: exp.Expr, place: Sequence[Field]) -> tuple[tuple[Expression, ...], Field]:
    """The columns at one place in their widest type, and how the united column looks."""
    kinds = [Ref(field.label, field.type) for field in place]
    accepted = unified(kinds, (*{field.type for field in place}, "real", "timestamp"))
    if accepted is None:
        listed = " and ".join(sorted({field.type for field in place}))
        raise refuse(node, f"the column {place[0].label} is {listed}", "CAST it to one type in each part")
    wanted = accepted[1]
    brought = tuple(cast(field.expression, wanted) for field in place)
    bounds = [field.bounds for field in place if field.bounds is not None]
    values = [field.values for field in place if field.values is not None]
    return brought, Field(
        place[0].label,
        Ref(place[0].label, wanted),
        hull(*map(Interval.of, bounds)).bounds() if len(bounds) == len(place) else None,
        _listed(values) if len(values) == len(place) and len({f.type for f in place}) == 1 else None,
        unit=all(field.unit for field in place),
        origin=place[0].origin if len({field.origin for field in place}) == 1 else None,
        growth=max(field.growth for field in place),
    )


def _listed(values: Sequence[Categories]) -> Categories:
    return Categories(tuple(dict.fromkeys(value for part in values for value in part.values)))

"""Joins of rows, allowed only where no unit's rows can meet another's.

**Two private relations** are joined on their unit columns, whatever else is equated.

**A private relation and a public one** are joined on any columns. Rows that are units themselves must meet one public
row at most, or one unit would become several: the columns must include a unique one of the public table, or the table
must have `max_matches=1`. Either way the join itself keeps no more than one, so the guarantee does not rest on the
declaration.

**A linked table** has no unit column: its rows belong to whoever owns a row of the parent table with the same key.
Let P(u) be the parent rows of unit u and L(k) the linked rows with key k. Adding or removing u changes P(u), and L(k)
only for keys that nobody else's parent rows have: a row that two people's parent rows lead to is a copy in the record
of each. Linked rows are seen only through a join with rows whose equated column holds parent keys of the row's own
unit (`Field.origin`: the parent's key column passed on as it is), so what u's rows meet lies in the L(k) with k a key
in P(u), and joins with other units' rows see the same L(k) with u as without. Before that join linked rows may be
filtered, projected and joined with public tables, each of which looks at one linked row; nothing else may be done
with them. A link's parent may be linked itself: the joined rows then wait for the parent's owner.

**`max_matches`** is enforced: of all rows on the public or linked side that agree in the equated columns, a join
keeps the first `max_matches` in the order of all their columns, or the first `DEFAULT_MATCHES` where none is declared.
These rows are public, or all in the same L(k), so which of them are kept depends on nobody else's rows; rows that tie
agree in everything, so it does not matter which is kept. A unit with at most r rows then has at most
r · `max_matches` rows in the join. On a unique column of a public table nothing is left out.

**How long a statement takes** must not tell whether one unit is there: `parsing/join_limits.py` limits what all joins
of a question make of one row.

The columns of a join all have different names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Literal as OneOf

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.sql.catalog import Table
from discreet.sql.functions.registry import Mismatch, call
from discreet.sql.parsing.join_limits import DEFAULT_MATCHES, MOST_JOINS, MOST_ROWS, Multiplicity
from discreet.sql.parsing.names import refuse
from discreet.sql.parsing.scope import Field, Rows, distinct_names
from discreet.sql.plan import Expression, Join, Named, Project, Ref

__all__ = ["Kind", "Pair", "ownerless", "paired"]

Pair = tuple[Expression, Expression]
"""An expression over the left side and one over the right, to be equal."""
Kind = OneOf["inner", "left", "semi", "anti"]


def paired(left: Rows, right: Rows, pairs: Sequence[Pair], kind: Kind, node: exp.Expr) -> Rows:
    """The join, once it is sure that no unit's rows meet another's."""
    if not pairs:
        raise refuse(node, "no column of one table equals one of the other", "write JOIN … ON with equal columns")
    equal = [_comparable(pair, node) for pair in pairs]
    swapped = _permitted(left, right, equal, kind, node)
    other, fixed = (left, [one for one, _ in equal]) if swapped else (right, [one for _, one in equal])
    single = any((field := other.field_of(expression)) is not None and field.unique for expression in fixed)
    most = _most(right if swapped else left, other, single, kind, node)
    multiplicity = _multiplicity(left, right, most, kind, node)
    left, lefts = _with_columns(left, [one for one, _ in equal])
    right, rights = _with_columns(right, [other for _, other in equal])
    if kind in ("semi", "anti"):
        relation = Join(left.relation, right.relation, _on(lefts, rights), kind)
        return replace(left, relation=relation, multiplicity=multiplicity)
    shown = (left, right)
    right, renamed = _renamed(right, [field.name for field in left.fields])
    on = _on(lefts, [renamed[name] for name in rights])
    fields = (*left.fields, *(_behind(field, kind) for field in right.fields))
    if swapped:
        left, right, on = right, left, tuple((other, one) for one, other in on)
    return Rows(
        Join(left.relation, right.relation, on, kind, most),
        tuple(replace(field, unique=False) for field in fields),
        left.private or right.private,
        left.owned or right.owned,
        tuple(table for side in shown for table in side.tables),
        _max_rows(left, right, 1 if single or most == 1 else other.max_matches),
        left.linked,
        multiplicity=multiplicity,
    )


def ownerless(table: Table, node: exp.Expr) -> Unsupported:
    """The error for linked rows that were not joined to their owners."""
    link = table.link
    assert link is not None
    reason = f"rows of {table.name} have owners only through {link.table}"
    remedy = f"write FROM {link.table} JOIN {table.name} ON {table.name}.{link.column} = {link.table}.{link.key}"
    return refuse(node, reason, remedy)


def _on(lefts: Sequence[str], rights: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(lefts, rights, strict=True))


def _behind(field: Field, kind: Kind) -> Field:
    """A column of the right side; after a left join it may be NULL where the row still has an owner."""
    return replace(field, unit=field.unit and kind == "inner")


def _permitted(left: Rows, right: Rows, pairs: Sequence[Pair], kind: Kind, node: exp.Expr) -> bool:
    """Whether the right side takes the place of the left, as the one whose owners the rows have; refuses joins in which
    units could meet."""
    back = [(other, one) for one, other in pairs]
    if left.private and right.private:
        if right.linked is not None and _leads(right, left, back):
            return False
        if left.linked is not None and _leads(left, right, pairs) and kind == "inner":
            return True
        for side in (right, left):
            if side.linked is not None:
                raise ownerless(side.linked, node)
        units = [pair for pair in pairs if _is_unit(pair[0], left) and _is_unit(pair[1], right)]
        # Units of different types would be compared after a cast, which may make two of them one.
        if not units:
            reason = "rows of one person would meet rows of another"
            raise refuse(node, reason, "equate the unit columns of both tables, besides any other columns")
    elif right.private and kind != "inner":
        raise refuse(node, "a public row without a partner has no owner", "start FROM the private table")
    return right.private and not left.private


def _leads(child: Rows, parent: Rows, pairs: Sequence[Pair]) -> bool:
    """Whether the linked column of the child is equated with the key of its parent; pairs are of child and parent."""
    table = child.linked
    if table is None or table.link is None:
        return False
    link = table.link
    wanted = ((table.name.lower(), link.column.lower()), (link.table.lower(), link.key.lower()))
    return any((_origin(one, child), _origin(other, parent)) == wanted for one, other in pairs)


def _origin(expression: Expression, rows: Rows) -> tuple[str, str] | None:
    field = rows.field_of(expression)
    return None if field is None else field.origin


def _most(rows: Rows, other: Rows, single: bool, kind: Kind, node: exp.Expr) -> int | None:
    """How many rows of the other side the join lets one row meet; None if it need not look."""
    alone = rows.private and not rows.owned and rows.linked is None
    if not alone or kind not in ("inner", "left"):
        return None if single or other.owned else other.max_matches or DEFAULT_MATCHES
    if not single and other.max_matches != 1:
        reason = "each row is a unit of its own, and a join could repeat it"
        remedy = "join on a column of the public table that is unique, or use WHERE … IN (SELECT …)"
        raise refuse(node, reason, remedy)
    return 1


def _multiplicity(left: Rows, right: Rows, most: int | None, kind: Kind, node: exp.Expr) -> Multiplicity:
    """What the joins so far may make of one row; refuses more than statements can bear."""
    own = left.owned and right.owned
    before = left.multiplicity
    if kind in ("semi", "anti"):
        after = before.tested(right.multiplicity)
    else:
        known = [rows.max_rows for rows in (left, right) if rows.max_rows is not None]
        limit = min(known, default=inf) if own else most or 1
        after = before.joined(right.multiplicity, limit, own)
    if after.joins > MOST_JOINS:
        raise refuse(node, f"a question has at most {MOST_JOINS} joins", "ask several questions")
    if after.rows == inf:
        reason = "every row of a person would meet all their rows in several tables, which may be very many"
        raise refuse(node, reason, "GROUP BY the unit column in a subquery first, or have max_rows declared")
    if after.rows > MOST_ROWS:
        reason = f"joins could make {after.rows:,.0f} rows of one, more than {MOST_ROWS:,}"
        raise refuse(
            node, reason, "join on unique columns, or have max_matches (for people's tables max_rows) declared"
        )
    return after


def _max_rows(left: Rows, right: Rows, most: int | None) -> int | None:
    factor = right.max_rows if right.owned else most
    return None if left.max_rows is None or factor is None else left.max_rows * factor


def _is_unit(expression: Expression, rows: Rows) -> bool:
    field = rows.field_of(expression)
    return field is not None and field.unit


def _comparable(pair: Pair, node: exp.Expr) -> Pair:
    try:
        one, other = call("=", *pair).arguments
    except Mismatch as error:
        raise refuse(node, error.reason, error.remedy) from None
    return one, other


def _with_columns(rows: Rows, expressions: Sequence[Expression]) -> tuple[Rows, list[str]]:
    """The rows with the expressions as columns, and the names of those."""
    new = [expression for expression in dict.fromkeys(expressions) if rows.field_of(expression) is None]
    if not new:
        return rows, [field.name for e in expressions if (field := rows.field_of(e)) is not None]
    taken = [field.name for field in rows.fields]
    names = dict(zip(new, distinct_names(["key"] * len(new), taken), strict=True))
    kept = tuple(Named(field.name, field.expression, field.bounds, field.values) for field in rows.fields)
    made = tuple(rows.named(name, expression) for expression, name in names.items())
    hidden = tuple(replace(rows.field("", e, name), hidden=True, unit=False) for e, name in names.items())
    added = replace(rows, relation=Project(rows.relation, kept + made), fields=rows.fields + hidden)
    found = [field.name if (field := rows.field_of(e)) is not None else names[e] for e in expressions]
    return added, found


def _renamed(rows: Rows, taken: Sequence[str]) -> tuple[Rows, dict[str, str]]:
    """The rows with column names that are not taken, and what became of each name."""
    names = dict(zip((f.name for f in rows.fields), distinct_names([f.name for f in rows.fields], taken), strict=True))
    if all(old == new for old, new in names.items()):
        return rows, names
    columns = tuple(Named(names[f.name], f.expression, f.bounds, f.values) for f in rows.fields)
    fields = tuple(replace(f, expression=Ref(names[f.name], f.type)) for f in rows.fields)
    return replace(rows, relation=Project(rows.relation, columns), fields=fields), names

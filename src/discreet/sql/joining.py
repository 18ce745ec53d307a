"""Joins of rows, allowed only where no unit's rows can meet another's.

Two private relations are joined on their unit columns, whatever else is equated; a private one with a public one on any
columns. The columns of a join all have different names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal as OneOf

from sqlglot import exp

from discreet.sql.functions import Mismatch, call
from discreet.sql.plan import Expression, Join, Named, Project, Ref
from discreet.sql.scope import Field, Rows, distinct_names
from discreet.sql.vocabulary import refuse

__all__ = ["Kind", "Pair", "paired"]

Pair = tuple[Expression, Expression]
"""An expression over the left side and one over the right, to be equal."""
Kind = OneOf["inner", "left", "semi", "anti"]


def paired(left: Rows, right: Rows, pairs: Sequence[Pair], kind: Kind, node: exp.Expr) -> Rows:
    """The join, once it is sure that no unit's rows meet another's."""
    if not pairs:
        raise refuse(node, "no column of one table equals one of the other", "write JOIN … ON with equal columns")
    _permit(left, right, pairs, kind, node)
    equal = [_comparable(pair, node) for pair in pairs]
    left, lefts = _with_columns(left, [one for one, _ in equal])
    right, rights = _with_columns(right, [other for _, other in equal])
    if kind in ("semi", "anti"):
        return replace(left, relation=Join(left.relation, right.relation, _on(lefts, rights), kind))
    swapped = right.private and not left.private
    shown = (left, right)
    right, renamed = _renamed(right, [field.name for field in left.fields])
    on = _on(lefts, [renamed[name] for name in rights])
    fields = (*left.fields, *(_behind(field, kind) for field in right.fields))
    if swapped:
        left, right, on = right, left, tuple((other, one) for one, other in on)
    return Rows(
        Join(left.relation, right.relation, on, kind),
        fields,
        left.private or right.private,
        left.owned or right.owned,
        tuple(table for side in shown for table in side.tables),
    )


def _on(lefts: Sequence[str], rights: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(lefts, rights, strict=True))


def _behind(field: Field, kind: Kind) -> Field:
    """A column of the right side; after a left join it may be NULL where the row still has an owner."""
    return replace(field, unit=field.unit and kind == "inner")


def _permit(left: Rows, right: Rows, pairs: Sequence[Pair], kind: Kind, node: exp.Expr) -> None:
    if left.private and right.private:
        units = [pair for pair in pairs if _is_unit(pair[0], left) and _is_unit(pair[1], right)]
        # Units of different types would be compared after a cast, which may make two of them one.
        if not any(one.type == other.type for one, other in units):
            reason = "rows of one person would meet rows of another"
            raise refuse(node, reason, "equate the unit columns of both tables, besides any other columns")
    elif right.private and kind != "inner":
        raise refuse(node, "a public row without a partner has no owner", "start FROM the private table")
    elif (left.private or right.private) and not (left.owned or right.owned) and kind in ("inner", "left"):
        reason = "each row is a unit of its own, and a join could repeat it"
        raise refuse(node, reason, "use WHERE … IN (SELECT …), or declare a unit column")


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

"""The statement of a question about units in two passes: rows are read for the norms of units, and once more for the
sums of rows that have those norms.

Without keys a unit has one group, and one pass finds its sums along with its norm. In ℓ1 a unit's norm is the number of
its rows, so that its groups are counted only where they are weighed themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.sql.statement.clauses import Select, WithQuery, aliased, joined, statement_of, subquery
from discreet.sql.statement.layout import Layout, Part, RowSum, Weights, bucketed, long, of_units
from discreet.sql.statement.naming import Name
from discreet.sql.statement.results import twins

__all__ = ["two_passes"]


def two_passes(rows: Select, layout: Layout, weights: Weights, once: bool) -> str:
    """The SQL; `once`, if rows take work to read."""
    names, dialect = layout.names, layout.dialect
    queries = [
        WithQuery(names.bounded_rows, dialect.gathered(str(rows), names.unit), dialect.kept(once)),
        *_unit_groups(layout, weights),
        WithQuery(names.units, _units(layout, weights), dialect.kept(True)),
    ]
    parts = []
    if layout.weighs_rows:
        parts += [*_sums(layout), *_cells(layout), _units_by_rows(layout, weights)]
    if layout.of_units:
        parts += [_unit_counts(layout), _units_by_groups(layout)]
    return statement_of(queries, parts)


def _has_groups(layout: Layout, weights: Weights) -> bool:
    """Whether norms are found by way of groups."""
    return bool(layout.keys) and (weights.norm == "l2" or layout.of_units)


def _unit_groups(layout: Layout, weights: Weights) -> list[WithQuery]:
    """The groups of each unit, and how many rows it has there."""
    if not _has_groups(layout, weights):
        return []
    names = layout.names
    owners = [names.unit, *layout.keys]
    counted = [aliased("COUNT(*)", names.group_rows)] if layout.weighs_rows else []
    select = Select([*owners, *counted], names.bounded_rows, groups=owners)
    return [WithQuery(names.unit_groups, select, layout.dialect.kept(layout.of_units))]


def _units(layout: Layout, weights: Weights) -> Select:
    """Each unit with its buckets and weights."""
    names, dialect = layout.names, layout.dialect
    shown: list[str] = [names.unit, *(name for name, _ in _own_sums(layout))]
    if layout.weighs_rows:
        shown += [names.row_norm, names.row_total] if weights.norm == "l2" else []
        shown += bucketed(names.row_norm, weights.rows, names.row_bucket, names.row_weight, dialect)
    if layout.of_units:
        shown += bucketed(names.group_norm, weights.units, names.group_bucket, names.group_weight, dialect)
    return Select(shown, subquery(_unit_norms(layout, weights)))


def _unit_norms(layout: Layout, weights: Weights) -> Select:
    """Each unit with its norms, and what its rows add up to where it has but one group."""
    names = layout.names
    source = names.unit_groups if _has_groups(layout, weights) else names.bounded_rows
    norms = _row_norm(layout, weights) if layout.weighs_rows else []
    norms += [_group_norm(layout, weights)] if layout.of_units else []
    own = [aliased(text, name) for name, text in _own_sums(layout)]
    return Select([names.unit, *own, *norms], source, groups=[names.unit])


def _row_norm(layout: Layout, weights: Weights) -> list[str]:
    """The norm of a unit's rows by group; in ℓ2 also their number."""
    names, double = layout.names, layout.dialect.double
    grouped = _has_groups(layout, weights)
    number = f"CAST({names.group_rows if grouped else 'COUNT(*)'} AS {double})"
    total = f"SUM({number})" if grouped else number
    if weights.norm == "l1":
        return [aliased(total, names.row_norm)]
    norm = f"SQRT(SUM({number} * {names.group_rows}))" if grouped else number
    return [aliased(norm, names.row_norm), aliased(total, names.row_total)]


def _group_norm(layout: Layout, weights: Weights) -> str:
    """The norm of a unit's groups, in each of which it counts once."""
    groups = "COUNT(*)" if layout.keys else "1"
    norm = f"SQRT({groups})" if weights.norm == "l2" else f"CAST({groups} AS {layout.dialect.double})"
    return aliased(norm, layout.names.group_norm)


def _own_sums(layout: Layout) -> list[tuple[Name, str]]:
    """Where a unit has one group, what its rows add up to: for each sum, in parts of a step and in whole steps."""
    return [] if layout.keys else [pair for place in _firsts(layout) for pair in _own_sum(layout, place)]


def _own_sum(layout: Layout, place: int) -> list[tuple[Name, str]]:
    named = (layout.names.unit_parts.at(place), layout.names.unit_steps.at(place))
    return [*zip(named, layout.of_rows[place].own(layout.dialect), strict=False)]


def _firsts(layout: Layout) -> list[int]:
    """The sums of rows, by place, that are not the same as one before."""
    same = twins([one.statistic for one in layout.of_rows])
    return [place for place, first in enumerate(same) if place == first]


def _sums(layout: Layout) -> list[Select]:
    """Sums of rows by bucket and group: plain ones, then divided ones."""
    if not layout.of_rows:
        return []
    names, firsts = layout.names, {*_firsts(layout)}
    pairs = [_pair(layout, place, one) if place in firsts else ("0", "0") for place, one in enumerate(layout.of_rows)]
    sums = [pair[half] for half in (0, 1) for pair in pairs]
    shown = layout.row(Part.ROW_SUMS, sums, bucket=names.row_bucket)
    source = _rows_and_units(layout) if layout.keys else names.units
    return [Select(shown, source, groups=[names.row_bucket, *layout.keys])]


def _pair(layout: Layout, place: int, one: RowSum) -> tuple[str, str]:
    """One sum, plain and divided."""
    names, dialect = layout.names, layout.dialect
    if layout.keys:
        return one.plain, one.divided(names.row_weight, dialect)
    own = [name for name, _ in _own_sum(layout, place)]
    return long(f"SUM({own[0]})"), dialect.total(f"{own[-1]} * {names.row_weight}")


def _rows_and_units(layout: Layout) -> str:
    return joined(layout.names.bounded_rows, layout.names.units, layout.names.unit)


def _cells(layout: Layout) -> list[Select]:
    """Rows by bucket, cell and group, for each rank."""
    names, found = layout.names, []
    for i in range(layout.cells):
        cell, weight = names.cell.at(i), long(f"SUM({names.row_weight})")
        placed = {"bucket": names.row_bucket, "place": layout.cell(i), "count": "COUNT(*)"}
        shown = layout.row(Part.CELLS + i, [weight], **placed, cell=i)
        groups = [names.row_bucket, cell, *layout.keys]
        found.append(Select(shown, _rows_and_units(layout), f"{cell} IS NOT NULL", groups))
    return found


def _unit_counts(layout: Layout) -> Select:
    """Counts of units by bucket and group."""
    names = layout.names
    shown = layout.row(Part.UNIT_COUNTS, ["COUNT(*)", long(f"SUM({names.group_weight})")], bucket=names.group_bucket)
    source = joined(names.unit_groups, names.units, names.unit) if layout.keys else names.units
    return Select(shown, source, groups=[names.group_bucket, *layout.keys])


def _units_by_rows(layout: Layout, weights: Weights) -> Select:
    """How many units are in each bucket by their rows; in ℓ2, by octaves of the number of rows and of that over the
    norm, with what is wanted of units. In ℓ1 a unit's norm is the number of its rows."""
    names, dialect = layout.names, layout.dialect
    if weights.norm == "l1":
        return _histogram(layout, Part.UNITS_BY_ROWS, names.row_bucket)
    sums = [dialect.octave(names.row_total), *(long(f"SUM({of})") for of in of_units(names))]
    spread = dialect.octave(f"{names.row_total} / {names.row_norm}")
    return _histogram(layout, Part.UNITS_BY_ROWS, names.row_bucket, spread, sums)


def _units_by_groups(layout: Layout) -> Select:
    """How many units are in each bucket by their groups."""
    return _histogram(layout, Part.UNITS_BY_GROUPS, layout.names.group_bucket)


def _histogram(layout: Layout, part: Part, bucket: Name, spread: str = "0", sums: Sequence[str] = ()) -> Select:
    """Units by bucket, spread and the first of the sums, which is no sum but an octave: by number of column, since what
    they are computed by is long."""
    shown = layout.row(part, sums, bucket=bucket, place=spread, count="COUNT(*)", keys=["NULL"] * len(layout.keys))
    octave = 4 + len(layout.keys) + 1
    return Select(shown, layout.names.units, groups=["2", "3", str(octave)] if sums else ["2"])

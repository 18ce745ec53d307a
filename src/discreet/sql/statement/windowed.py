"""The statement of a question about units in one pass, for engines that read a WITH query anew wherever it is named, or
run what reads it on one core.

`statement/two_pass.py` reads the rows twice: for the norms of units, and for the sums of rows that have those norms.
Here rows are first summed by unit and group; a window over each unit's groups finds its norm; then everything is
summed by bucket, group and octaves at once, and that, which is short, once more for each part of what comes back. A
unit is counted with the first of its groups, and only there its octaves are looked up.

The whole numbers are the same: what a unit's rows add up to in a group, times its weight, is what they add up to after
each was multiplied by the weight. Each is below 2^31 then, so 64 bits hold them for the 2^32 rows of one unit in one
group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from discreet.sql.statement.clauses import Select, WithQuery, aliased, statement_of
from discreet.sql.statement.layout import Layout, Part, Weights, bucketed, long, of_units
from discreet.sql.statement.results import twins

__all__ = ["windowed"]


@dataclass(frozen=True)
class _Returned:
    """One part of what comes back: by what the sums of buckets are summed once more, and its values."""

    groups: Sequence[str]
    values: Sequence[str] = ()


@dataclass(frozen=True)
class _Columns:
    """What each level of the statement computes."""

    groups: list[str] = field(default_factory=list)
    """Of a unit's rows in a group."""
    norms: list[str] = field(default_factory=list)
    """Of a unit, in each of its groups."""
    weighed: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    """By what groups of units are summed, besides the keys."""
    totals: list[str] = field(default_factory=list)
    parts: Mapping[Part, _Returned] = field(default_factory=dict)

    def __add__(self, other: _Columns) -> _Columns:
        return _Columns(
            self.groups + other.groups,
            self.norms + other.norms,
            self.weighed + other.weighed,
            self.levels + other.levels,
            self.totals + other.totals,
            {**self.parts, **other.parts},
        )


def windowed(rows: Select, layout: Layout, weights: Weights) -> str:
    """The SQL, where there are groups and no quantiles."""
    names, dialect = layout.names, layout.dialect
    mark, is_first = dialect.first(layout.keys, names.per_unit, names.first_group)
    columns = _Columns()
    if layout.of_rows:
        columns += _of_rows(layout) + _row_norm(layout, weights)
        columns += _octaves(layout, is_first) if weights.norm == "l2" else _Columns()
    if layout.of_units:
        columns += _of_units(layout, weights)
    return statement_of(_queries(rows, layout, columns, mark, is_first), [_returned(layout, columns)])


def _queries(rows: Select, layout: Layout, columns: _Columns, mark: str, is_first: str) -> list[WithQuery]:
    """Each reads the one before."""
    names, keys, dialect = layout.names, layout.keys, layout.dialect
    owners = [names.unit, *keys]
    window = f"{names.unit_groups} WINDOW {names.per_unit} AS (PARTITION BY {names.unit})"
    counted = aliased(f"SUM(CASE WHEN {is_first} THEN 1 ELSE 0 END)", names.unit_count)
    groups = [*columns.levels, *keys]
    return [
        WithQuery(names.bounded_rows, dialect.gathered(str(rows), names.unit, once=False)),
        WithQuery(names.unit_groups, Select([*owners, *columns.groups], names.bounded_rows, groups=owners)),
        WithQuery(names.unit_norms, Select([*keys, *columns.norms, aliased(mark, names.first_group)], window)),
        WithQuery(
            names.weighted_groups,
            Select([*keys, *columns.weighed, names.first_group], names.unit_norms, last=dialect.fence),
        ),
        WithQuery(names.bucket_sums, Select([*groups, *columns.totals, counted], names.weighted_groups, groups=groups)),
    ]


def _returned(layout: Layout, columns: _Columns) -> Select:
    """Everything that comes back."""
    names, parts = layout.names, {part: columns.parts[part] for part in sorted(columns.parts)}
    of_all = [part for part in parts if part in (Part.UNITS_BY_ROWS, Part.UNITS_BY_GROUPS)]
    buckets = [name for name in (names.row_bucket, names.group_bucket) if name in columns.levels]
    spread: dict[Part, str] = {part: names.spread if names.spread in parts[part].groups else "0" for part in of_all}
    values = [
        _case({part: one.values[i] for part, one in parts.items() if i < len(one.values)}, layout) or blank
        for i, blank in enumerate(layout.blanks)
    ]
    shown = [
        _case({part: str(int(part)) for part in parts}, layout),
        f"COALESCE({', '.join(buckets)}, 0)",
        _case(spread, layout),
        _case(dict.fromkeys(of_all, f"SUM({names.unit_count})"), layout),
        *layout.keys,
        *values,
    ]
    sets = ", ".join(f"({', '.join(one.groups)})" for one in parts.values())
    having = f"GROUPING({layout.keys[0]}) = 0 OR SUM({names.unit_count}) > 0"
    return Select(shown, names.bucket_sums, groups=[f"GROUPING SETS ({sets})"], having=having)


def _of_rows(layout: Layout) -> _Columns:
    """Sums of rows by group: of one unit, and of all, plain and divided."""
    names, dialect = layout.names, layout.dialect
    own, totals = {names.group_rows: "COUNT(*)"}, list[str]()
    plain, divided = (["0"] * len(layout.of_rows) for _ in range(2))
    places = twins([one.statistic for one in layout.of_rows])
    for i, one in enumerate(layout.of_rows):
        if places[i] < i:
            continue
        sums = [] if one.statistic.kind == "rows" else one.own(dialect)
        named = dict(zip((names.unit_parts.at(i), names.unit_steps.at(i)), sums, strict=False))
        own |= named
        summed = [*named] or [names.group_rows]
        totals.append(aliased(f"SUM({summed[0]})", names.plain_sum.at(i)))
        totals.append(aliased(dialect.total(f"{summed[-1]} * {names.row_weight}"), names.divided_sum.at(i)))
        plain[i], divided[i] = f"SUM({names.plain_sum.at(i)})", f"SUM({names.divided_sum.at(i)})"
    groups = [aliased(text, name) for name, text in own.items()]
    parts = {Part.ROW_SUMS: _Returned([names.row_bucket, *layout.keys], [*plain, *divided])}
    return _Columns(groups, [*own], [*own], totals=totals, parts=parts)


def _row_norm(layout: Layout, weights: Weights) -> _Columns:
    """Units weighed by the norm of their rows, and counted by its bucket."""
    names, dialect = layout.names, layout.dialect
    number = f"CAST({names.group_rows} AS {dialect.double})"
    norm = f"SUM({number}) OVER {names.per_unit}"
    if weights.norm == "l2":
        norm = f"SQRT(SUM({number} * {names.group_rows}) OVER {names.per_unit})"
    weighed = bucketed(names.row_norm, weights.rows, names.row_bucket, names.row_weight, dialect)
    parts = {Part.UNITS_BY_ROWS: _Returned([names.row_bucket])}
    return _Columns(norms=[aliased(norm, names.row_norm)], weighed=weighed, levels=[names.row_bucket], parts=parts)


def _octaves(layout: Layout, is_first: str) -> _Columns:
    """Units by octaves of their rows, and of those over their norm, with what is wanted of units."""
    names, dialect = layout.names, layout.dialect
    total = f"SUM(CAST({names.group_rows} AS {dialect.double})) OVER {names.per_unit}"
    octaves = {
        names.row_octave: dialect.octave(names.row_total),
        names.spread: dialect.octave(f"{names.row_total} / {names.row_norm}"),
    }
    sums = {names.unit_sum.at(i): of for i, of in enumerate(of_units(names))}
    marked = {name: f"CASE WHEN {is_first} THEN {of} END" for name, of in (octaves | sums).items()}
    returned = _Returned([names.row_bucket, *octaves], [names.row_octave, *(f"SUM({name})" for name in sums)])
    return _Columns(
        norms=[aliased(total, names.row_total)],
        weighed=[names.row_total, *(aliased(marked[name], name) for name in octaves)],
        levels=[*octaves],
        totals=[aliased(f"SUM({marked[name]})", name) for name in sums],
        parts={Part.UNITS_BY_ROWS: returned},
    )


def _of_units(layout: Layout, weights: Weights) -> _Columns:
    """Counts of units by group, and units by the bucket of their groups."""
    names, dialect = layout.names, layout.dialect
    groups = f"CAST(COUNT(*) OVER {names.per_unit} AS {dialect.double})"
    norm = f"SQRT({groups})" if weights.norm == "l2" else groups
    counted = {names.group_units: "COUNT(*)", names.group_share: long(f"SUM({names.group_weight})")}
    return _Columns(
        norms=[aliased(norm, names.group_norm)],
        weighed=bucketed(names.group_norm, weights.units, names.group_bucket, names.group_weight, dialect),
        levels=[names.group_bucket],
        totals=[aliased(text, name) for name, text in counted.items()],
        parts={
            Part.UNIT_COUNTS: _Returned([names.group_bucket, *layout.keys], [f"SUM({name})" for name in counted]),
            Part.UNITS_BY_GROUPS: _Returned([names.group_bucket]),
        },
    )


def _case(values: Mapping[Part, str], layout: Layout) -> str:
    """One value for each part: of groups or of all of them, of rows or of units; empty where none has one."""
    if not values:
        return ""
    grouped, of_units = f"GROUPING({layout.keys[0]}) = 0", f"GROUPING({layout.names.group_bucket}) = 0"
    said = []
    for part, value in values.items():
        conditions = [grouped if part in (Part.ROW_SUMS, Part.UNIT_COUNTS) else f"NOT {grouped}"]
        if layout.of_units and layout.of_rows:
            conditions.append(of_units if part in (Part.UNIT_COUNTS, Part.UNITS_BY_GROUPS) else f"NOT {of_units}")
        said.append(f"WHEN {' AND '.join(conditions)} THEN {value}")
    return f"CASE {' '.join(said)} END"

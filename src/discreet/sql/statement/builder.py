"""One statement per query: bounded sums for every group, for every clipping norm at once.

Row level: each row adds to one group, and the statement sums whole numbers by group: first as doubles, which engines
add fastest, and which is exact while no sum can reach 2^53. Should a group have rows enough for that, the statement is
run again with sums of integers (`Groups.exact`), so that noise is added to the whole sum in any case.

User level: a unit with n_k rows in group k has the weight min(1, C/‖n‖), in ℓ2 for Gaussian noise and ℓ1 for Laplace.
The best C is found privately from a histogram of the norms, after the statement ran; so the statement returns, for
each group and each bucket of the norm (`bounding/clipping_norms.py`), the plain sums and the sums divided by the norm.
For a cap C the clipped sum is then: plain sums of the buckets up to it, and C times the divided sums of those above.
Counts of units have weights of their own: there a unit adds 1 to each of its g groups, whatever its rows, and its norm
is √g or g.

All in whole numbers: a row that adds x steps adds x·g to the divided sum, where g = ⌊G/‖n‖⌋ belongs to its unit; a
group's total is Σ_{b ≤ c} plain·G·H + C·H·Σ_{b > c} divided. Plain sums count parts of a step that divide G·H, so
that rounding does not add up to anything that matters; divided ones, whose rows lose more, count whole steps. One unit
adds a vector of whole numbers whose norm is at most bound·C·G·H, up to `caps.MARGIN`, whatever the order in which
doubles were added up to ‖n‖.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.sql.bounding.sums import Statistic
from discreet.sql.plan import Aggregate, Expression, Literal
from discreet.sql.relations import is_plain
from discreet.sql.statement.clauses import Select, WithQuery, statement_of
from discreet.sql.statement.dialect import DUCKDB, Dialect
from discreet.sql.statement.layout import NOTHING, OF_UNITS, Layout, Part, RowSum, Weights
from discreet.sql.statement.naming import StatementNames, apart_from, declared, renamed, substituted
from discreet.sql.statement.rows import Ranked, Rows
from discreet.sql.statement.selection import Selection
from discreet.sql.statement.two_pass import two_passes
from discreet.sql.statement.widths import longest_text, narrowed
from discreet.sql.statement.windowed import windowed

__all__ = ["statement"]


def statement(
    aggregate: Aggregate,
    statistics: Sequence[Statistic],
    weights: Weights | None,
    ranked: Ranked = (),
    dialect: Dialect = DUCKDB,
    wide: bool = False,
) -> str:
    """The SQL that computes everything a release needs; without weights, at row level, with `wide` sums of integers.

    `ranked` are the arguments of ranks, whose values are counted by cell, or as they are where there are none. Each
    row that comes back is the number of its part (`layout.Part`), its bucket, an octave or a cell, a count, the keys,
    sums, and values that were counted as they are.
    """
    rows = _rows(aggregate, statistics, ranked, weights is not None, wide)
    selection = Selection(dialect, longest_text(rows.aggregate.input, rows.read, dialect))
    bounded, layout = rows.select(selection), _layout(rows, weights, selection)
    if weights is None:
        return _row_level(bounded, layout)
    if dialect.windows and layout.keys and not ranked:
        return windowed(bounded, layout, weights)
    # A table is cheaper to read twice than to keep; anything that takes work is done once.
    return two_passes(bounded, layout, weights, once=not is_plain(rows.aggregate.input))


def _rows(aggregate: Aggregate, statistics: Sequence[Statistic], ranked: Ranked, owned: bool, wide: bool) -> Rows:
    """What is asked, about columns that have names of ours."""
    relation, names = renamed(narrowed(aggregate.input))

    def ours(expression: Expression) -> Expression:
        return substituted(expression, names)

    keys = tuple(replace(key, expression=ours(key.expression)) for key in aggregate.keys)
    return Rows(
        replace(aggregate, input=relation, keys=keys),
        [s if s.argument is None else replace(s, argument=ours(s.argument)) for s in statistics],
        [(ours(argument), cells) for argument, cells in ranked],
        apart_from(StatementNames, declared(relation)),
        owned,
        wide,
    )


def _layout(rows: Rows, weights: Weights | None, selection: Selection) -> Layout:
    """The columns that come back."""
    of_rows = [
        RowSum(statistic, "" if column is None else column.name, rows.names.row_parts.at(place))
        for place, (statistic, column) in enumerate(zip(rows.statistics, rows.counted, strict=True))
        if statistic.kind != "units" or weights is None
    ]
    valued = {place: argument.type for place, (argument, cells) in enumerate(rows.ranked) if cells is None}
    return Layout(
        rows.names,
        rows.keys,
        of_rows,
        len(of_rows) < len(rows.statistics),
        len(rows.ranked),
        _blanks(of_rows, len(rows.statistics), weights, selection.dialect),
        selection.dialect,
        {place: selection.text_of(Literal(None, kind)) for place, kind in valued.items()},
    )


def _blanks(of_rows: Sequence[RowSum], statistics: int, weights: Weights | None, dialect: Dialect) -> list[str]:
    """What stands in the columns of sums where a part has fewer; it also says of what type they are."""
    if weights is None:
        return [NOTHING] * max(len(of_rows), 1)
    # An octave and what is wanted of units in ℓ2, and at least a count of units, plain and divided.
    least = 1 + OF_UNITS if weights.norm == "l2" else 2
    blanks = [NOTHING] * max(2 * statistics, least)
    for place, one in enumerate(of_rows):
        if one.statistic.bounds:
            blanks[len(of_rows) + place] = f"CAST(NULL AS {dialect.wide})"
    return blanks


def _row_level(rows: Select, layout: Layout) -> str:
    """Each row is a unit: one pass for the sums, one for each column of cells."""
    source = layout.names.bounded_rows
    shown = layout.row(Part.ROW_SUMS, [one.plain for one in layout.of_rows], count="COUNT(*)")
    parts = [Select(shown, source, groups=layout.keys)] if layout.of_rows else []
    for i in range(layout.cells):
        cell = layout.names.cell.at(i)
        shown = layout.row(Part.CELLS + i, ["0"], place=layout.cell(i), count="COUNT(*)", cell=i)
        parts.append(Select(shown, source, f"{cell} IS NOT NULL", [cell, *layout.keys]))
    return statement_of([WithQuery(source, rows, layout.dialect.kept(False))], parts)

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
from fractions import Fraction
from typing import Any

from discreet.sql.bounding.sums import Statistic
from discreet.sql.plan import Aggregate, Call, Expression, Filter, Literal, Ref, Relation, Scan
from discreet.sql.relations import is_plain, names_in
from discreet.sql.statement.dialect import DUCKDB, Dialect
from discreet.sql.statement.histograms import Cells
from discreet.sql.statement.layout import NOTHING, Shape, Weights, bucketed, divided, long, own, summed
from discreet.sql.statement.naming import OWNER, raw, renamed, substituted
from discreet.sql.statement.results import CELLS, OF_UNITS, twins
from discreet.sql.statement.selection import Selection
from discreet.sql.statement.widths import longest_text, narrowed
from discreet.sql.statement.windowed import windowed

__all__ = ["only_listed", "statement"]

WRITTEN = 200
"""Listed values of a key that are written into a statement."""


def statement(
    aggregate: Aggregate,
    statistics: Sequence[Statistic],
    weights: Weights | None,
    ranked: Sequence[tuple[Expression, Cells | None]] = (),
    dialect: Dialect = DUCKDB,
    wide: bool = False,
) -> str:
    """The SQL that computes everything a release needs; without weights, at row level, with `wide` sums of integers.

    `ranked` are the arguments of ranks, whose values are counted by cell, or as they are where there are none. Each
    row that comes back is the number of its part (0 sums of rows, 1 counts of units, 2 and 3 histograms of their norms,
    then cells), its bucket, an octave or a cell, a count, the keys, sums, and values that were counted as they are.
    """
    aggregate, statistics, ranked = _in_names_of_ours(aggregate, statistics, ranked)
    measured = [s.argument for s in statistics if s.argument is not None] + [argument for argument, _ in ranked]
    longest = longest_text(aggregate.input, [*(key.expression for key in aggregate.keys), *measured], dialect)
    selection = Selection(dialect, longest)
    keys = [f"k{i}" for i in range(len(aggregate.keys))]
    named = [f"{selection.text_of(key.expression)} AS {name}" for name, key in zip(keys, aggregate.keys, strict=True)]
    owner = [] if weights is None else ["u"]
    arguments, columns = _columns(aggregate, statistics, ranked)
    named += [f"{selection.text_of(argument)} AS {name}" for name, argument in arguments.items()]
    named += [f"{dialect.identifier(OWNER)} AS {u}" for u in owner]
    read = [*(key.expression for key in aggregate.keys), *arguments.values()]
    used = frozenset[str]().union(*map(names_in, read))
    bounded = [(j, s, c) for j, (s, c) in enumerate(zip(statistics, columns, strict=False)) if s.bounds]
    kind = "INTEGER" if owner or wide else dialect.double
    values = [f"{s.steps(c, dialect.strict, kind, dialect.eager)} AS x{j}" for j, s, c in bounded]
    placed = zip(ranked, columns[len(statistics) :], strict=True)
    values += [
        f"{c if cells is None else cells.sql(c, dialect.strict, dialect.eager)} AS c{i}"
        for i, ((_, cells), c) in enumerate(placed)
    ]
    counted = sorted({c for s, c in zip(statistics, columns, strict=False) if s.kind == "present" and c in arguments})
    ranges, listed = _listed(aggregate, selection) if owner else ({}, [])
    rows = f"SELECT {', '.join(named or ['1 AS one'])} FROM {selection.source(aggregate.input, used, ranges)}"
    if values or listed:
        only = f" WHERE {' AND '.join(listed)}" if listed else ""
        rows = f"SELECT {', '.join([*keys, *owner, *values, *counted])} FROM ({rows}) AS i{only}{dialect.fence}"
    each = [(s, c, j) for j, (s, c) in enumerate(zip(statistics, columns, strict=False))]
    of_rows = [(s, c, j) for s, c, j in each if s.kind != "units" or not owner]
    least = 1 if weights is None else 1 + len(OF_UNITS) if weights.norm == "l2" else 2
    blanks = [NOTHING] * max(2 * len(statistics) if owner else len(of_rows), least)
    for place, (statistic, _, _) in enumerate(of_rows if owner else []):
        if statistic.bounds:
            blanks[len(of_rows) + place] = f"CAST(NULL AS {dialect.wide})"
    valued = {i: argument.type for i, (argument, cells) in enumerate(ranked) if cells is None}
    absent = {i: selection.text_of(Literal(None, kind)) for i, kind in valued.items()}
    shape = Shape(keys, of_rows, len(of_rows) < len(statistics), len(ranked), blanks, dialect, absent)
    if weights is None:
        return _plain(rows, shape)
    if dialect.windows and keys and not ranked:
        return windowed(rows, shape, weights)
    return _weighed(aggregate, rows, shape, weights)


def _in_names_of_ours(
    aggregate: Aggregate, statistics: Sequence[Statistic], ranked: Sequence[tuple[Expression, Cells | None]]
) -> tuple[Aggregate, list[Statistic], list[tuple[Expression, Cells | None]]]:
    """The same question about columns that have names of ours."""
    relation, names = renamed(narrowed(aggregate.input))
    keys = tuple(replace(key, expression=substituted(key.expression, names)) for key in aggregate.keys)
    arguments = [None if s.argument is None else substituted(s.argument, names) for s in statistics]
    return (
        replace(aggregate, input=relation, keys=keys),
        [replace(s, argument=argument) for s, argument in zip(statistics, arguments, strict=True)],
        [(substituted(argument, names), cells) for argument, cells in ranked],
    )


def only_listed(aggregate: Aggregate) -> dict[int, tuple[Any, ...]]:
    """The keys, by place, whose rows are read only where they have a listed value: others are in no group, and would
    only make their units heavier. Long lists are not written into statements."""
    lists = {place: key.values.values for place, key in enumerate(aggregate.keys) if key.values is not None}
    if len(lists) < len(aggregate.keys):
        return {}
    return {place: values for place, values in lists.items() if len(values) <= WRITTEN or _is_range(values)}


def _is_range(values: Sequence[Any]) -> bool:
    whole = all(type(value) is int for value in values)
    return whole and len({*values}) == max(values) - min(values) + 1


def _listed(aggregate: Aggregate, selection: Selection) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Ranges of the table's own columns, and conditions on the keys."""
    conditions: list[str] = []
    ranges: dict[str, tuple[int, int]] = {}
    for place, values in only_listed(aggregate).items():
        expression = aggregate.keys[place].expression
        kind = expression.type
        plain = isinstance(aggregate.input, Scan) and kind == "integer" and _is_range(values)
        if plain and isinstance(expression, Ref):
            ranges[expression.name] = min(values), max(values)
            continue
        exact = [Fraction(value) if isinstance(value, float) else value for value in values if value is not None]
        known = [selection.text_of(Literal(value, kind)) for value in exact]
        if _is_range(values):
            ends = (selection.text_of(Literal(end, kind)) for end in (min(values), max(values)))
            said = [f"k{place} BETWEEN {' AND '.join(ends)}"]
        else:
            said = [f"k{place} IN ({', '.join(known)})"] if known else []
        said += [f"k{place} IS NULL"] if None in values else []
        conditions.append(f"({' OR '.join(said)})")
    return ranges, conditions


def _plain(rows: str, shape: Shape) -> str:
    """Each row is a unit: one pass for the sums, one for each column of cells."""
    sums = [summed(*each) for each in shape.of_rows]
    parts = [f"SELECT {shape.row(f'0, 0, {NOTHING}, COUNT(*)', sums)} FROM r{shape.grouped()}"] if sums else []
    for i in range(shape.cells):
        shown = shape.row(f"{CELLS + i}, 0, {shape.cell(i)}, COUNT(*)", ["0"], i)
        parts.append(f"SELECT {shown} FROM r WHERE c{i} IS NOT NULL{shape.grouped(f'c{i}')}")
    return f"WITH r AS {shape.dialect.kept(False)} ({rows}) {' UNION ALL '.join(parts)}"


def _columns(
    aggregate: Aggregate, statistics: Sequence[Statistic], ranked: Sequence[tuple[Expression, Cells | None]]
) -> tuple[dict[str, Expression], list[str]]:
    """The arguments by name, and for each statistic and rank the column it reads.

    What statistics with bounds read needs no guard against NaN and infinities, for they pass over those; counts of the
    same argument count what they kept.
    """
    bounded = {s.argument: j for j, s in reversed(list(enumerate(statistics))) if s.bounds is not None}
    arguments: dict[str, Expression] = {}
    columns: list[str] = []
    used = [*(s.argument for s in statistics if s.argument is not None), *(argument for argument, _ in ranked)]
    names = {argument: f"a{i}" for i, argument in enumerate(dict.fromkeys(used))}
    for statistic in statistics:
        argument = statistic.argument
        if argument is None:
            columns.append("")
            continue
        if statistic.kind == "present" and argument in bounded:
            columns.append(f"x{bounded[argument]}")
            continue
        # Of a decimal, some statistics read the units and others the double.
        name = f"e{names[argument][1:]}" if statistic.counts_units else names[argument]
        as_it_is = statistic.counts_units or argument not in bounded
        arguments[name] = argument if as_it_is else _double(argument, aggregate.input)
        columns.append(name)
    for place, (argument, cells) in enumerate(ranked):
        # A count of the same argument keeps its guarded text, so this one has a name of its own.
        shared = argument in bounded and names[argument] in arguments and cells is not None
        name = names[argument] if shared else f"b{place}"
        arguments[name] = argument if cells is None else _double(argument, aggregate.input)
        columns.append(name)
    return arguments, columns


def _double(argument: Expression, relation: Relation) -> Expression:
    value = _unguarded(argument, relation)
    return value if value.type == "real" else Call("cast", (value,), "real")


def _unguarded(expression: Expression, relation: Relation) -> Expression:
    """An expression for a reader that passes over NaN and infinities: a table's column needs no guard there."""
    below = relation
    while isinstance(below, Filter):
        below = below.input
    if isinstance(expression, Ref) and isinstance(below, Scan) and expression.type == "real":
        return Ref(raw(expression.name), "real")
    return expression


def _weighed(aggregate: Aggregate, rows: str, shape: Shape, weights: Weights) -> str:
    """Units are weighed by their norms, which take a pass over their rows before the passes that sum.

    Without keys a unit has one group: one pass finds its sums along with its norm.
    """
    squared, dialect, alone = weights.norm == "l2", shape.dialect, not shape.keys
    number = f"CAST({'COUNT(*)' if alone else 'n'} AS {dialect.double})"
    parts, norms, weighed = [], ["u"], ["u"]
    if shape.of_rows or shape.cells:
        places = twins([statistic for statistic, _, _ in shape.of_rows])
        first = [place == twin for place, twin in enumerate(places)]
        each = [(summed(*one), divided(*one, dialect)) for one in shape.of_rows]
        if alone:
            for i, one in enumerate(shape.of_rows):
                named = {f"y{i}{half}": text for half, text in zip("ab", own(*one, dialect), strict=False) if first[i]}
                norms, weighed = [*norms, *(f"{text} AS {name}" for name, text in named.items())], [*weighed, *named]
                each[i] = long(f"SUM(y{i}a)"), dialect.total(f"{max(named, default='')} * g")
        sums = [pair[half] if new else "0" for half in (0, 1) for pair, new in zip(each, first, strict=True)]
        if sums:
            shown, source = shape.row(f"0, b, {NOTHING}, {NOTHING}", sums), "q" if alone else "r JOIN q USING (u)"
            parts.append(f"SELECT {shown} FROM {source}{shape.grouped('b')}")
        for i in range(shape.cells):
            shown = shape.row(f"{CELLS + i}, b, {shape.cell(i)}, COUNT(*)", [long("SUM(g)")], i)
            joined = f"FROM r JOIN q USING (u) WHERE c{i} IS NOT NULL"
            parts.append(f"SELECT {shown} {joined}{shape.grouped('b', f'c{i}')}")
        # In ℓ1 a unit's norm is the number of its rows.
        of_units = dialect.octave("t"), *(long(f"SUM({of})") for of in OF_UNITS)
        found = (dialect.octave("t / s"), shape, of_units) if squared else ("0", shape)
        parts.append(_histogram(2, "b", *found))
        total = number if alone else f"SUM({number})"
        norms.append(f"{total if alone or not squared else f'SQRT(SUM({number} * n))'} AS s")
        norms += [f"{total} AS t"] if squared else []
        weighed += [*(["s", "t"] if squared else []), *bucketed("s", weights.rows, "b", "g", dialect)]
    if shape.of_units:
        shown = shape.row(f"1, e, {NOTHING}, {NOTHING}", ["COUNT(*)", long("SUM(h)")])
        parts.append(f"SELECT {shown} FROM {'q' if alone else 'p JOIN q USING (u)'}{shape.grouped('e')}")
        parts.append(_histogram(3, "e", "0", shape))
        groups = "1" if alone else "COUNT(*)"
        norms.append(f"SQRT({groups}) AS w" if squared else f"CAST({groups} AS {dialect.double}) AS w")
        weighed += bucketed("w", weights.units, "e", "h", dialect)
    # A table is cheaper to read twice than to keep; anything that takes work is done once.
    kept = dialect.kept(not is_plain(aggregate.input))
    owners = ", ".join(["u", *shape.keys])
    shown = f"{owners}, COUNT(*) AS n" if shape.of_rows or shape.cells else owners
    counted = f"p AS {dialect.kept(shape.of_units)} (SELECT {shown} FROM r GROUP BY {owners}), "
    units = f"SELECT {', '.join(norms)} FROM p GROUP BY u"
    if alone:
        counted, units = "", f"SELECT {', '.join(norms)} FROM r GROUP BY u"
    elif not squared and not shape.of_units:
        counted, units = "", f"SELECT u, CAST(COUNT(*) AS {dialect.double}) AS s FROM r GROUP BY u"
    return (
        f"WITH r AS {kept} ({dialect.gathered(rows, 'u')}), {counted}"
        f"q AS {dialect.kept(True)} (SELECT {', '.join(weighed)} FROM ({units}) AS i) {' UNION ALL '.join(parts)}"
    )


def _histogram(part: int, bucket: str, spread: str, shape: Shape, sums: Sequence[str] = ()) -> str:
    head = [f"{part}, {bucket}, {spread}, COUNT(*)", *["NULL"] * len(shape.keys)]
    grouped = ", ".join(["2", *(["3", str(4 + len(shape.keys) + 1)] if sums else [])])
    columns = [*head, *sums, *shape.blanks[len(sums) :], *shape.absent.values()]
    return f"SELECT {', '.join(columns)} FROM q GROUP BY {grouped}"

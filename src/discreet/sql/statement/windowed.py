"""The statement of a question about units in one pass, for engines that read a WITH query anew wherever it is named, or
run what reads it on one core.

`statement/builder.py` reads the rows twice: for the norms of units, and for the sums of rows that have those norms.
Here rows are first summed by unit and group; a window over each unit's groups finds its norm; then everything is
summed by bucket, group and octaves at once, and that, which is short, once more for each part of what comes back. A
unit is counted with the first of its groups, and only there its octaves are looked up.

The whole numbers are the same: what a unit's rows add up to in a group, times g, is what they add up to after each was
multiplied by g. Each is below 2^31 then, so 64 bits hold them for the 2^32 rows of one unit in one group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.sql.statement.layout import Shape, Weights, bucketed, long, own
from discreet.sql.statement.results import OF_UNITS, twins

__all__ = ["windowed"]


@dataclass(frozen=True)
class _Columns:
    """What each level of the statement computes, and for each part of what comes back how rows are grouped, which
    column is its bucket, and its values."""

    pairs: list[str] = field(default_factory=list)
    norms: list[str] = field(default_factory=list)
    weighed: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    totals: list[str] = field(default_factory=list)
    parts: dict[int, tuple[list[str], list[str]]] = field(default_factory=dict)


def windowed(rows: str, shape: Shape, weights: Weights) -> str:
    """The SQL, where there are groups and no quantiles."""
    dialect, keys = shape.dialect, shape.keys
    mark, first = dialect.first(keys)
    columns = _Columns()
    if shape.of_rows:
        _add_rows(columns, shape, weights, first)
    if shape.of_units:
        _add_units(columns, shape, weights)
    numbers = sorted(columns.parts)
    part = _case({number: str(number) for number in numbers}, shape)
    values = [
        _case({number: said[i] for number in numbers if i < len(said := columns.parts[number][1])}, shape) or blank
        for i, blank in enumerate(shape.blanks)
    ]
    bucket = f"COALESCE({', '.join(name for name in 'be' if name in columns.levels)}, 0)"
    of_all = [number for number in numbers if number > 1]
    spread = _case({number: "v" if number == 2 and "v" in columns.levels else "0" for number in of_all}, shape)
    count = _case(dict.fromkeys(of_all, "SUM(m)"), shape)
    owners = ", ".join(["u", *keys])
    sets = ", ".join(f"({', '.join(columns.parts[number][0])})" for number in numbers)
    return (
        f"WITH r AS ({dialect.gathered(rows, 'u', once=False)}), "
        f"p AS (SELECT {', '.join([owners, *columns.pairs])} FROM r GROUP BY {owners}), "
        f"w AS (SELECT {', '.join([*keys, *columns.norms])}, {mark} AS f FROM p WINDOW w AS (PARTITION BY u)), "
        f"x AS (SELECT {', '.join([*keys, *columns.weighed])}, f FROM w{dialect.fence}), "
        f"z AS (SELECT {', '.join([*columns.levels, *keys, *columns.totals])}, SUM(CASE WHEN {first} THEN 1 ELSE 0 END)"
        f" AS m FROM x GROUP BY {', '.join([*columns.levels, *keys])}) "
        f"SELECT {', '.join([part, bucket, spread, count, *keys, *values])} FROM z GROUP BY GROUPING SETS ({sets}) "
        f"HAVING GROUPING({keys[0]}) = 0 OR SUM(m) > 0"
    )


def _add_rows(columns: _Columns, shape: Shape, weights: Weights, first: str) -> None:
    """Sums of rows by group (part 0), and units by bucket and octaves (part 2)."""
    dialect, squared = shape.dialect, weights.norm == "l2"
    number = f"CAST(n AS {dialect.double})"
    columns.pairs.append("COUNT(*) AS n")
    columns.norms.append("n")
    columns.weighed.append("n")
    plain, divided = list[str](), list[str]()
    places = twins([statistic for statistic, _, _ in shape.of_rows])
    for i, (statistic, column, place) in enumerate(shape.of_rows):
        if places[i] < i:
            plain.append("0")
            divided.append("0")
            continue
        sums = [] if statistic.kind == "rows" else own(statistic, column, place, dialect)
        named = {f"y{i}{half}": text for half, text in zip("ab", sums, strict=False)}
        columns.pairs.extend(f"{text} AS {name}" for name, text in named.items())
        columns.norms.extend(named)
        columns.weighed.extend(named)
        plainly, wholly = min(named, default="n"), max(named, default="n")
        columns.totals.extend([f"SUM({plainly}) AS p{i}", f"{dialect.total(f'{wholly} * g')} AS d{i}"])
        plain.append(f"SUM(p{i})")
        divided.append(f"SUM(d{i})")
    columns.norms.append(f"{f'SQRT(SUM({number} * n) OVER w)' if squared else f'SUM({number}) OVER w'} AS s")
    columns.weighed.extend(bucketed("s", weights.rows, "b", "g", dialect))
    columns.levels.append("b")
    columns.parts[0] = (["b", *shape.keys], [*plain, *divided])
    columns.parts[2] = (["b"], [])
    if squared:
        columns.norms.append(f"SUM({number}) OVER w AS t")
        octaves = {"o": dialect.octave("t"), "v": dialect.octave("t / s")}
        columns.weighed.append("t")
        columns.weighed.extend(f"CASE WHEN {first} THEN {octave} END AS {name}" for name, octave in octaves.items())
        columns.levels.extend(["o", "v"])
        columns.totals.extend(f"SUM(CASE WHEN {first} THEN {of} END) AS q{i}" for i, of in enumerate(OF_UNITS))
        columns.parts[2] = (["b", "o", "v"], ["o", *(f"SUM(q{i})" for i in range(len(OF_UNITS)))])


def _add_units(columns: _Columns, shape: Shape, weights: Weights) -> None:
    """Counts of units by group (part 1), and units by bucket (part 3)."""
    groups = f"CAST(COUNT(*) OVER w AS {shape.dialect.double})"
    columns.norms.append(f"{f'SQRT({groups})' if weights.norm == 'l2' else groups} AS z")
    columns.weighed.extend(bucketed("z", weights.units, "e", "h", shape.dialect))
    columns.levels.append("e")
    columns.totals.extend(["COUNT(*) AS c", f"{long('SUM(h)')} AS j"])
    columns.parts[1] = (["e", *shape.keys], ["SUM(c)", "SUM(j)"])
    columns.parts[3] = (["e"], [])


def _case(values: dict[int, str], shape: Shape) -> str:
    """One value for each part: those with groups are 0 and 1, and those of units 1 and 3; empty where none has one."""
    if not values:
        return ""
    grouped, of_units = f"GROUPING({shape.keys[0]}) = 0", "GROUPING(e) = 0"
    said = []
    for number, value in values.items():
        conditions = [grouped if number < 2 else f"NOT {grouped}"]
        if shape.of_units and shape.of_rows:
            conditions.append(of_units if number % 2 else f"NOT {of_units}")
        said.append(f"WHEN {' AND '.join(conditions)} THEN {value}")
    return f"CASE {' '.join(said)} END"

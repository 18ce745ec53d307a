"""One statement per query: bounded sums for every group, for every clipping norm at once.

Row level: each row adds to one group, and the statement sums whole numbers by group.

User level: a unit with n_k rows in group k has the weight min(1, C/‖n‖), in ℓ2 for Gaussian noise and ℓ1 for Laplace.
The best C is found privately from a histogram of the norms, after the statement ran; so the statement returns, for
each group and each bucket of the norm (`caps.py`), the plain sums and the sums divided by the norm. For a cap C the
clipped sum is then: plain sums of the buckets up to it, and C times the divided sums of those above. Counts of units
have weights of their own: there a unit adds 1 to each of its g groups, whatever its rows, and its norm is √g or g.

All in whole numbers: a row that adds x steps adds x·g to the divided sum, where g = ⌊G/‖n‖⌋ belongs to its unit; a
group's total is Σ_{b ≤ c} plain·G·H + C·H·Σ_{b > c} divided. One unit adds a vector of whole numbers whose norm is at
most bound·C·G·H, up to `caps.MARGIN`, whatever the order in which doubles were added up to ‖n‖.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from discreet.sql.caps import Caps, G, H
from discreet.sql.plan import Aggregate
from discreet.sql.relations import OWNER, is_plain, quoted, select, text_of, unguarded_text
from discreet.sql.statistics import Statistic

__all__ = ["Groups", "Norm", "Weights", "clipped", "statement"]

Norm = Literal["l1", "l2"]
Key = tuple[Any, ...]
Sums = tuple[tuple[int, ...], tuple[int, ...]]
"""Plain and divided sums, one for each statistic."""


@dataclass(frozen=True)
class Weights:
    """How units are weighed: by their rows, and for counts of units by their groups."""

    norm: Norm
    rows: Caps
    units: Caps

    def caps(self, statistic: Statistic) -> Caps:
        """The candidates for one statistic."""
        return self.units if statistic.kind == "units" else self.rows


def statement(aggregate: Aggregate, statistics: Sequence[Statistic], weights: Weights | None) -> str:
    """The SQL that computes everything a release needs, in DuckDB's dialect; without weights, at row level."""
    keys = [f"k{i}" for i in range(len(aggregate.keys))]
    named = [f"{text_of(key.expression)} AS {name}" for name, key in zip(keys, aggregate.keys, strict=True)]
    owner = [] if weights is None else ["u"]
    arguments, columns = _columns(aggregate, statistics)
    named += [f"{text} AS {name}" for name, text in arguments.items()] + [f"{quoted(OWNER)} AS {u}" for u in owner]
    values = [f"{s.steps(c)} AS x{j}" for j, (s, c) in enumerate(zip(statistics, columns, strict=True)) if s.bounds]
    counted = sorted({c for s, c in zip(statistics, columns, strict=True) if s.kind == "present" and c in arguments})
    rows = f"SELECT {', '.join(named or ['1 AS one'])} FROM ({select(aggregate.input)})"
    rows = f"SELECT {', '.join([*keys, *owner, *values, *counted] or ['one'])} FROM ({rows})"
    if weights is not None:
        return _weighed(aggregate, keys, rows, statistics, columns, weights)
    sums = [_summed(s, c, j) for j, (s, c) in enumerate(zip(statistics, columns, strict=True))]
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *sums])} FROM ({rows}){grouped}"


def _columns(aggregate: Aggregate, statistics: Sequence[Statistic]) -> tuple[dict[str, str], list[str]]:
    """The arguments as named texts, and for each statistic the column it reads.

    What statistics with bounds read needs no guard against NaN and infinities, for they pass over those; counts of the
    same argument count what they kept.
    """
    bounded = {s.argument: j for j, s in reversed(list(enumerate(statistics))) if s.bounds is not None}
    arguments: dict[str, str] = {}
    columns: list[str] = []
    names = {a: f"a{i}" for i, a in enumerate(dict.fromkeys(s.argument for s in statistics if s.argument is not None))}
    for statistic in statistics:
        argument = statistic.argument
        if argument is None:
            columns.append("")
            continue
        if argument in bounded:
            arguments[names[argument]] = f"CAST({unguarded_text(argument, aggregate.input)} AS DOUBLE)"
        else:
            arguments[names[argument]] = text_of(argument)
        shared = statistic.kind == "present" and argument in bounded
        columns.append(f"x{bounded[argument]}" if shared else names[argument])
    return arguments, columns


def _weighed(
    aggregate: Aggregate,
    keys: list[str],
    rows: str,
    statistics: Sequence[Statistic],
    columns: list[str],
    weights: Weights,
) -> str:
    of_rows = [(s, c, j) for j, (s, c) in enumerate(zip(statistics, columns, strict=True)) if s.kind != "units"]
    of_units = len(of_rows) < len(statistics)
    owners = ", ".join(["u", *keys])
    squared = weights.norm == "l2"
    root, power = ("SQRT", "CAST(n AS DOUBLE) * n") if squared else ("", "CAST(n AS DOUBLE)")
    empty = ["NULL"] * (2 * len(statistics))
    parts = []
    if of_rows:
        sums = [_summed(*each) for each in of_rows] + [_divided(*each) for each in of_rows]
        shown = ", ".join(["0, b, NULL, NULL", *keys, *sums, *empty[len(sums) :]])
        parts.append(f"SELECT {shown} FROM r JOIN {_within('b, g', weights.rows)} GROUP BY {', '.join(['b', *keys])}")
        parts.append(_histogram(2, "b", f"CAST(FLOOR(LOG2(t / {root}(y))) AS INTEGER)", len(keys) + len(empty)))
    if of_units:
        shown = ", ".join(["1, e, NULL, NULL", *keys, "COUNT(*)", "SUM(h)", *empty[2:]])
        parts.append(f"SELECT {shown} FROM p JOIN {_within('e, h', weights.units)} GROUP BY {', '.join(['e', *keys])}")
        parts.append(_histogram(3, "e", "0", len(keys) + len(empty)))
    # A table is cheaper to read twice than to keep; anything that takes work is done once.
    kept = "NOT MATERIALIZED" if is_plain(aggregate.input) else "MATERIALIZED"
    return (
        f"WITH r AS {kept} ({rows}), "
        f"p AS {'' if of_units else 'NOT '}MATERIALIZED "
        f"(SELECT {owners}, COUNT(*) AS n FROM r GROUP BY {owners}), "
        f"q AS MATERIALIZED (SELECT u, t, y, {weights.rows.bucket('y', squared=squared)} AS b, "
        f"{weights.units.bucket('w', squared=squared)} AS e, "
        f"CAST(FLOOR({G}::DOUBLE / {root}(y)) AS INTEGER) AS g, "
        f"CAST(FLOOR({G}::DOUBLE / {root}(CAST(w AS DOUBLE))) AS INTEGER) AS h FROM "
        f"(SELECT u, SUM(CAST(n AS DOUBLE)) AS t, SUM({power}) AS y, COUNT(*) AS w FROM p GROUP BY u)) "
        f"{' UNION ALL '.join(parts)}"
    )


def _within(columns: str, caps: Caps) -> str:
    # The range of buckets, which is always so, lets the engine number groups instead of hashing them.
    bucket = columns[0]
    return f"(SELECT u, {columns} FROM q WHERE {bucket} BETWEEN 0 AND {len(caps.norms)}) USING (u)"


def _histogram(part: int, bucket: str, spread: str, blanks: int) -> str:
    shown = ", ".join([f"{part}, {bucket}, {spread}, COUNT(*)", *["NULL"] * blanks])
    return f"SELECT {shown} FROM q GROUP BY 2, 3"


def _summed(statistic: Statistic, column: str, place: int) -> str:
    if statistic.kind in ("rows", "units"):
        return "COUNT(*)"
    return f"COUNT({column})" if statistic.kind == "present" else f"SUM(x{place})"


def _divided(statistic: Statistic, column: str, place: int) -> str:
    if statistic.kind == "rows":
        return "SUM(g)"
    if statistic.kind == "present":
        return f"SUM(g) - COALESCE(SUM(CASE WHEN {column} IS NULL THEN g END), 0)"
    return f"SUM(x{place} * g)"


@dataclass(frozen=True)
class Groups:
    """What the statement returned: for each key and bucket the plain and divided sums; how many units there are in each
    bucket of rows, by octaves of rows over norm, and in each bucket of groups."""

    rows: dict[Key, dict[int, Sums]]
    units: dict[Key, dict[int, Sums]]
    by_rows: dict[tuple[int, int], int]
    by_groups: dict[int, int]

    @classmethod
    def read(cls, found: Sequence[tuple[Any, ...]], keys: int, statistics: Sequence[Statistic], owned: bool) -> Groups:
        """Rows of `statement`, in whatever order they came."""
        if not owned:
            blank = (0,) * len(statistics)
            return cls({row[:keys]: {0: (tuple(int(v or 0) for v in row[keys:]), blank)} for row in found}, {}, {}, {})
        many = sum(s.kind != "units" for s in statistics)
        groups = cls(defaultdict(dict), defaultdict(dict), {}, {})
        for part, bucket, spread, count, *rest in found:
            key, values = tuple(rest[:keys]), [int(value or 0) for value in rest[keys:]]
            if part == 0:
                groups.rows[key][bucket] = (tuple(values[:many]), tuple(values[many : 2 * many]))
            elif part == 1:
                groups.units[key][bucket] = (tuple(values[:1]), tuple(values[1:2]))
            elif part == 2:
                groups.by_rows[bucket, spread] = int(count)
            else:
                groups.by_groups[bucket] = int(count)
        return groups

    @property
    def keys(self) -> set[Key]:
        """All groups."""
        return {*self.rows, *self.units}


def clipped(found: dict[int, Sums], index: int, weight: int, cut: int) -> int:
    """The clipped sum of one group, in units of 1/(G·H) steps; `weight` is C·H."""
    plain = divided = 0
    for bucket, (sums, shares) in found.items():
        if bucket <= cut:
            plain += sums[index]
        else:
            divided += shares[index]
    return plain * G * H + weight * divided

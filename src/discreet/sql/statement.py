"""One statement per query: bounded sums for every group, for every clipping norm at once.

Row level: each row adds to one group, and the statement sums whole numbers by group.

User level: a unit with n_k rows in group k has the weight min(1, C/‖n‖), in ℓ2 for Gaussian noise and ℓ1 for Laplace.
The best C is found privately from a histogram of the norms, after the statement ran; so the statement returns, for
each group and each half-octave b of the norm (2^((b−1)/2) < ‖n‖ ≤ 2^(b/2)), the plain sums and the sums divided by the
norm. For C = 2^(c/2) the clipped sum is then: plain sums up to b = c, and C times the divided sums above.

All in whole numbers: a group's total is Σ_{b ≤ c} plain·G·H + ⌊C·H⌋·Σ_{b > c} divided, with divided = Σ trunc(s·G/‖n‖).
One unit adds a vector of whole numbers whose norm is at most bound·C·G·H, up to the relative rounding error of one
square root, one division and one logarithm, covered by `MARGIN`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Literal

from discreet.core.rounding import sqrt_down, sqrt_up
from discreet.sql.plan import Aggregate
from discreet.sql.relations import OWNER, is_owned, quoted, select, text_of
from discreet.sql.statistics import Statistic

__all__ = ["BUCKETS", "G", "Groups", "H", "Norm", "movement", "statement", "weight"]

Norm = Literal["l1", "l2"]
Key = tuple[Any, ...]

BUCKETS = 64
"""Half-octaves of the norm: up to 2³² rows for one unit; larger norms count as that."""
G, H = 1 << 16, 1 << 12
MARGIN = 1 + Fraction(1, 1 << 30)


def statement(aggregate: Aggregate, statistics: Sequence[Statistic], norm: Norm) -> str:
    """The SQL that computes everything a release needs, in DuckDB's dialect."""
    keys = [f"k{i}" for i in range(len(aggregate.keys))]
    named = [f"{text_of(key.expression)} AS {name}" for name, key in zip(keys, aggregate.keys, strict=True)]
    values = [f"{statistic.sql} AS x{j}" for j, statistic in enumerate(statistics)]
    below = f"({select(aggregate.input)})"
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    if not is_owned(aggregate.input):
        sums = [f"SUM(x{j})" for j in range(len(statistics))]
        return f"SELECT {', '.join([*keys, *sums])} FROM (SELECT {', '.join([*named, *values])} FROM {below}){grouped}"
    rows = f"SELECT {', '.join([*named, *values, f'{quoted(OWNER)} AS u'])} FROM {below}"
    only_units = all(statistic.kind == "units" for statistic in statistics)
    per = [f"{'1' if only_units else 'COUNT(*)'} AS n"]
    per += [f"{'1' if s.kind == 'units' else f'SUM(x{j})'} AS s{j}" for j, s in enumerate(statistics)]
    size = "CAST(SUM(n) AS DOUBLE)"
    length = size if norm == "l1" else "SQRT(SUM(CAST(n AS DOUBLE) * n))"
    plain = [f"SUM(s{j})" for j in range(len(statistics))]
    divided = [f"SUM(CAST(TRUNC(s{j} * {float(G)!r} / z) AS BIGINT))" for j in range(len(statistics))]
    empty = ["NULL"] * (len(keys) + 2 * len(statistics))
    owners = ", ".join(["u", *keys])
    return (
        f"WITH p AS MATERIALIZED (SELECT {', '.join([owners, *per])} FROM ({rows}) GROUP BY {owners}), "
        f"q AS MATERIALIZED (SELECT u, z, {_bucket('z')} AS b, {_bucket('t')} AS e "
        f"FROM (SELECT u, {length} AS z, {size} AS t FROM p GROUP BY u)) "
        f"SELECT b, NULL AS e, COUNT(*) AS c, {', '.join([*keys, *plain, *divided])} "
        f"FROM p JOIN q USING (u) GROUP BY {', '.join(['b', *keys])} "
        f"UNION ALL SELECT b, e, COUNT(*), {', '.join(empty)} FROM q GROUP BY b, e"
    )


def _bucket(column: str) -> str:
    # A norm of exactly 2^(b/2) belongs to b, whichever way its logarithm is rounded; `MARGIN` is wider than this.
    return f"CAST(LEAST(CEIL(2 * LOG2({column}) - 1e-9), {BUCKETS}) AS INTEGER)"


@dataclass(frozen=True)
class Groups:
    """What the statement returned: for each key and bucket the plain and divided sums, and the histogram of norms."""

    sums: dict[Key, dict[int, tuple[tuple[int, ...], tuple[int, ...]]]]
    histogram: dict[tuple[int, int], int]

    @classmethod
    def read(cls, rows: Sequence[tuple[Any, ...]], keys: int, statistics: int, owned: bool) -> Groups:
        """Rows of `statement`, in whatever order they came."""
        sums: dict[Key, dict[int, tuple[tuple[int, ...], tuple[int, ...]]]] = defaultdict(dict)
        histogram: dict[tuple[int, int], int] = {}
        for row in rows:
            if not owned:
                sums[row[:keys]][0] = (tuple(int(v or 0) for v in row[keys:]), (0,) * statistics)
            elif row[1] is not None:
                histogram[row[0], row[1]] = int(row[2])
            else:
                values = tuple(int(value or 0) for value in row[3 + keys :])
                sums[row[3 : 3 + keys]][row[0]] = (values[:statistics], values[statistics:])
        return cls(dict(sums), histogram)

    def total(self, key: Key, index: int, cut: int) -> int:
        """The clipped sum of one group for C = 2^(cut/2), in units of 1/(G·H) steps."""
        factor = weight(cut)
        plain = divided = 0
        for bucket, (sums, shares) in self.sums.get(key, {}).items():
            if bucket <= cut:
                plain += sums[index]
            else:
                divided += shares[index]
        return plain * G * H + factor * divided


def weight(cut: int) -> int:
    """⌊C·H⌋ for C = 2^(cut/2)."""
    return int(sqrt_down(Fraction(2) ** cut) * H)


def movement(bound: int, cut: int) -> int:
    """How far one unit can move the totals of a statistic, in units of 1/(G·H) steps."""
    return ceil(bound * sqrt_up(Fraction(2) ** cut) * G * H * MARGIN)

"""Tracing from synthetic rows: members leave copies, or pull the counts towards themselves.

| score | a member is recognised by |
|---|---|
| `nearest` | how near the nearest synthetic row is |
| `density` | how many synthetic rows are near: Σ e^(−distance/width) |
| `marginals` | the inner product test on all marginals of one or two columns that the rows show |

Distances count columns that differ; numbers differ by their distance over the range, up to 1. Every score is ranked
among those of reference people who are not in the data, so that p-values hold for any synthesizer and any population.

>>> import numpy as np
>>> draw = np.random.default_rng(1).integers(0, 6, (300, 8))
>>> tables = [{f"c{j}": rows[:, j] for j in range(8)} for rows in (draw[:50], draw[:100], draw[100:])]
>>> found = trace_rows(*tables, members=np.arange(100) < 50, alpha=0.01)
>>> found.verdict
'BROKEN: 50 of 50 members were told apart, and 0 of 50 others.'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adversary.linkage.records import Records, numbers
from discreet.adversary.membership.from_means import ALPHA, Tracing, ranked, trace_means
from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural

__all__ = ["SCORES", "Marginals", "trace_rows"]

Score = Literal["nearest", "density", "marginals"]
SCORES: tuple[Score, ...] = ("nearest", "density", "marginals")
WIDTH = 0.5
"""Of the kernel of `density`, in columns."""
CELLS = 1 << 22
"""Distances that are computed at once."""
MOST_TRAITS = 1 << 14
FEW = 12
"""Columns of numbers with more values are cut into so many bins for marginals."""

Doubles = NDArray[np.float64]


class Marginals:
    """Indicators of all values, and pairs of values, of some columns: their means are marginals.

    >>> pairs = Marginals({"a": [1, 1, 2], "b": ["x", "y", "y"]}, order=2)
    >>> pairs.features({"a": [1], "b": ["y"]}).astype(int).tolist()
    [[1, 0, 0, 1, 0, 1, 0, 0]]
    """

    def __init__(self, source: Any, columns: Sequence[str] | None = None, order: int = 2) -> None:
        records = Records.read(source)
        self.columns = tuple(records.having(records.names if columns is None else columns))
        self.edges: dict[str, Doubles] = {}
        self.values: dict[str, dict[str, int]] = {}
        for name in self.columns:
            column = numbers(records.columns[name])
            if np.isfinite(column).all() and np.unique(column).size > FEW:
                self.edges[name] = np.unique(np.quantile(column, np.linspace(0, 1, FEW + 1)[1:-1]))
            else:
                self.values[name] = {value: place for place, value in enumerate(dict.fromkeys(records.column(name)))}
        most = min(natural("order", order), 2, len(self.columns))
        self.sets = [chosen for size in range(1, most + 1) for chosen in combinations(self.columns, size)]
        if len(self) > MOST_TRAITS:
            raise InvalidArgument("columns", f"{len(self):,} counts", f"at most {MOST_TRAITS:,}", "name fewer columns")

    def _size(self, name: str) -> int:
        return self.edges[name].size + 1 if name in self.edges else len(self.values[name])

    def __len__(self) -> int:
        return sum(int(np.prod([self._size(name) for name in chosen])) for chosen in self.sets)

    def features(self, source: Any) -> Doubles:
        """One row a record, one column a count: 1 where the record is counted."""
        records = Records.read(source)
        records.having(self.columns)
        codes = {name: self._codes(records, name) for name in self.columns}
        out, start, rows = np.zeros((len(records), len(self))), 0, np.arange(len(records))
        for chosen in self.sets:
            place, known, size = np.zeros(len(records), np.int64), np.ones(len(records), bool), 1
            for name in chosen:
                place, known = place * self._size(name) + codes[name], known & (codes[name] >= 0)
                size *= self._size(name)
            out[rows[known], start + place[known]] = 1.0
            start += size
        return out

    def _codes(self, records: Records, name: str) -> NDArray[np.int64]:
        if name in self.edges:
            column = numbers(records.columns[name])
            return np.where(np.isfinite(column), np.searchsorted(self.edges[name], column, side="right"), -1)
        return np.array([self.values[name].get(value, -1) for value in records.column(name)], np.int64)


def trace_rows(
    synthetic: Any,
    targets: Any,
    reference: Any,
    *,
    by: Score = "nearest",
    columns: Sequence[str] | None = None,
    members: ArrayLike | None = None,
    alpha: float = ALPHA,
    progress: Callable[[float], None] | None = None,
) -> Tracing:
    """Score targets against synthetic rows; `reference` are rows of other people of the same population."""
    if by not in SCORES:
        raise InvalidArgument("by", by, f"one of {', '.join(SCORES)}", "leave it out for nearest")
    rows = Records.read(synthetic, "synthetic")
    people, others = Records.read(targets, "targets"), Records.read(reference, "reference")
    used = list(columns or [name for name in rows.names if name in people.columns and name in others.columns])
    for table in (rows, people, others):
        table.having(used)
    if by == "marginals":
        traits = Marginals(others, used)
        means = traits.features(rows).mean(axis=0)
        found = trace_means(
            means, traits.features(people), reference=traits.features(others), members=members, alpha=alpha
        )
        return Tracing(
            found.scores, found.chances, "inner product with the marginals", found.null, alpha, found.members
        )
    coded = _coded([rows, people, others], used)
    total = len(people) + len(others)
    scores = _scores(coded[1], coded[0], by, _told(progress, 0, len(people) / total))
    usual = _scores(coded[2], coded[0], by, _told(progress, len(people) / total, len(others) / total))
    words = "nearness of the nearest row" if by == "nearest" else "rows nearby"
    return ranked(scores, usual, words, alpha, members)


def _told(progress: Callable[[float], None] | None, done: float, share: float) -> Callable[[float], None]:
    return lambda part: None if progress is None else progress(done + part * share)


def _coded(tables: Sequence[Records], columns: Sequence[str]) -> list[list[tuple[bool, Doubles]]]:
    """For each table its columns as numbers: scaled to a range of 1, or codes that are the same or not."""
    coded: list[list[tuple[bool, Doubles]]] = [[] for _ in tables]
    for name in columns:
        read = [numbers(table.columns[name]) for table in tables]
        if all(np.isfinite(column).all() for column in read):
            spread = max(float(column.max()) for column in read) - min(float(column.min()) for column in read)
            for out, column in zip(coded, read, strict=True):
                out.append((True, column / (spread or 1.0)))
            continue
        known: dict[str, int] = {}
        for out, table in zip(coded, tables, strict=True):
            out.append((False, np.array([known.setdefault(v, len(known)) for v in table.column(name)], np.float64)))
    return coded


def _scores(
    people: list[tuple[bool, Doubles]], rows: list[tuple[bool, Doubles]], by: str, told: Callable[[float], None]
) -> Doubles:
    size, many = people[0][1].size, rows[0][1].size
    step, found = max(1, CELLS // many), np.zeros(size)
    for start in range(0, size, step):
        apart = np.zeros((min(step, size - start), many))
        for (number, ours), (_, theirs) in zip(people, rows, strict=True):
            part = ours[start : start + step, None]
            apart += np.abs(part - theirs) if number else part != theirs
        near = -apart.min(axis=1) if by == "nearest" else np.log(np.exp(-apart / WIDTH).sum(axis=1) + 1e-300)
        found[start : start + step] = near
        told(min(1.0, (start + step) / size))
    return found

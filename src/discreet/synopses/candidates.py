"""Small databases over the kinds of cells that a workload can tell apart, and what they answer.

Two cells with the same column in the workload are of one kind: no query tells them apart, so a database matters only
through how many of its rows are of each kind. Databases of m rows over T kinds are C(T + m − 1, m) in number, however
many cells there are; `multisets` writes down those of given numbers, so that they are never all in memory.

>>> multisets(3, 2, np.arange(6)).tolist()
[[2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]]

All arithmetic that touches data is on whole numbers. Entries of queries are in steps of 1/`scale`, the denominator of
the workload. A database y of m rows stands for n people, and answers n/m·⟨q, y⟩; times m·scale this is whole, and so is
the true count, so that nothing is rounded when the two are compared.

How far one unit moves a count: its cells weigh at most `unit_weight` w in all, so whether it is added, removed or
replaced by another such unit, ⟨q, x⟩ moves by at most w·max q. Counts are held at an end, which moves none farther.

Reference: the numbering of multisets is the combinatorial number system (Lehmer).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.noise.batches import Integers
from discreet.synopses.queries.workload import Workload

__all__ = ["END", "Kinds", "held", "misses", "multisets", "number_of_multisets", "stretches"]

END = 1 << 61
"""Counts times rows times scale are held within this."""
MOST_READ = 1 << 26
"""Entries of the workload read to find the kinds: some five seconds, and half a gigabyte at most."""
AT_ONCE = 1 << 21
"""Answers worked on at once."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kind of each cell, and the entries of each query (rows) on each kind (columns) in steps of 1/scale."""

    of: Integers
    queries: Integers
    scale: int

    @classmethod
    def told_apart_by(cls, workload: Workload, most: int, instead: str) -> Kinds:
        """The kinds of a workload; refused when there are more than `most`, with the method to use `instead`."""
        size, k, scale = workload.domain.size, len(workload), workload.denominator
        if size * k > MOST_READ:
            cost = f"{size:,} cells × {k:,} queries"
            raise InvalidArgument("workload", cost, f"at most {MOST_READ:,} entries for this method", instead)
        of: Integers = np.zeros(size, dtype=np.int64)
        first: Integers = np.zeros(1, dtype=np.int64)
        for index in range(k):
            entries = (workload.row(index) * scale).astype(np.int64)
            _, first, of = np.unique(of * (scale + 1) + entries, return_index=True, return_inverse=True)
            if first.size > most:
                found = f"more than {most:,} kinds of cells told apart by {k:,} queries"
                raise InvalidArgument("workload", found, f"at most {most:,} kinds for this method", instead)
        entries = np.stack([workload.row(index)[first] for index in range(k)])
        return cls(of.reshape(-1), (entries * scale).astype(np.int64), scale)

    @property
    def number(self) -> int:
        """How many kinds there are."""
        return int(self.queries.shape[1])

    @cached_property
    def cells(self) -> Integers:
        """How many cells are of each kind."""
        return np.bincount(self.of, minlength=self.number)

    @cached_property
    def largest(self) -> int:
        """The largest entry of any query, in steps: how far one row moves a count."""
        return max(1, int(self.queries.max()))

    @cached_property
    def span(self) -> int:
        """How far a query's entries lie apart at most, in steps."""
        return int((self.queries.max(axis=1) - self.queries.min(axis=1)).max())

    def nearest(self, rows: int) -> float:
        """As a share of n, how far off on its worst query the nearest database of that many rows is at most.

        Rows drawn from the data are all within √(ln 2k/2m) with positive probability (Hoeffding). Rounding the shares
        of T kinds to multiples of 1/m, the j largest remainders up, moves at most j(T − j)/Tm up and as much down.
        """
        half = self.number // 2
        rounded = half * (self.number - half) / self.number / rows
        drawn = math.sqrt(math.log(2 * len(self.queries)) / (2 * rows))
        return min(rounded, drawn) * (self.span / self.scale) * (1 + 2.0**-40)

    def answers(self, databases: Integers, queries: slice | int = slice(None)) -> Integers:
        """What each database (a row of multiplicities) answers to these queries, in steps of 1/scale."""
        # Doubles hold these exactly: rows·scale is below 2⁵³.
        return (databases.astype(np.float64) @ self.queries[queries].T.astype(np.float64)).astype(np.int64)

    def spread(self, database: Integers, weight: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Weights on cells: that of each row is `weight`, shared equally by the cells of its kind."""
        return (database * (weight / self.cells))[self.of]


def number_of_multisets(kinds: int, rows: int) -> int:
    """C(kinds + rows − 1, rows)."""
    return math.comb(kinds + rows - 1, rows)


def multisets(kinds: int, rows: int, numbers: Integers) -> Integers:
    """The databases of these numbers: how many of the `rows` are of each kind, one line each."""
    ranks = numbers.astype(np.int64)
    left = np.full(ranks.size, rows, dtype=np.int64)
    databases: Integers = np.zeros((ranks.size, kinds), dtype=np.int64)
    for kind in range(kinds - 1):
        # Databases that leave s rows to later kinds come after all that leave fewer, and those are multisets of at most
        # s − 1 rows over the later kinds: as many as there are of exactly s − 1 rows with one kind more.
        begins = [0] + [number_of_multisets(kinds - kind, s) for s in range(rows)]
        later = np.searchsorted(np.array(begins, dtype=np.int64), ranks, side="right") - 1
        ranks -= np.array(begins, dtype=np.int64)[later]
        databases[:, kind] = left - later
        left = later
    databases[:, kinds - 1] = left
    return databases


def stretches(total: int, width: int) -> Iterator[slice]:
    """Consecutive slices that cover `total` databases, of up to `AT_ONCE` numbers when each database has `width`."""
    length = max(1, AT_ONCE // width)
    for start in range(0, total, length):
        yield slice(start, min(start + length, total))


def held(workload: Workload, histogram: Integers, rows: int) -> Integers:
    """The true answers in steps of 1/scale, held so that times `rows` they are within `END`."""
    return np.minimum(workload.counts(histogram), END // rows)


def misses(answers: Integers, counts: Integers, rows: int, size: int) -> Integers:
    """How far off each database is on its worst query, in steps of 1/(rows·scale) of a count."""
    return np.asarray(np.abs(answers * size - counts * rows).max(axis=1), dtype=np.int64)

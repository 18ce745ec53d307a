"""Partitions of the output space: every output falls in one cell, and events are unions of cells.

The cells are fixed on runs set aside for learning, before the runs that choose and test events are drawn. Four ways to
cut: by the values of a reading (`Cuts`: each frequent value is a cell of its own, the gaps between are the others),
by exact values of any type (`Values`), by whether a value was ever met on D or D′ (`Met`), and by two partitions at
once (`Grid`).

>>> table = table_of(np.array([1, 2, 2, 3]))
>>> cuts = Cuts.learn(column(table, 0), np.array([1, 2]), np.array([2, 3]))
>>> cuts.codes(table).tolist(), cuts.cells
([1, 3, 3, 5], 8)
>>> cuts.describe(np.arange(8) <= 3)
'output ≤ 2'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.auditing.features import Reading, column, fingerprint
from discreet.adversary.auditing.outcomes import Column, Outcomes, Table, table_of

__all__ = ["Cells", "Cuts", "Grid", "Met", "Partition", "Values", "column", "table_of"]

Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

_EXACT = 400
"""A reading with at most this many distinct values gets one cell for each."""
_SHOWN = 3
"""How many cells a description spells out."""


class Cells(Protocol):
    """A partition of the outputs of one kind."""

    @property
    def cells(self) -> int:
        """How many cells there are."""

    def codes(self, table: Table) -> Codes:
        """The cell of each output."""

    def describe(self, chosen: Mask) -> str:
        """The union of the chosen cells in plain words."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """Cells along a number line: code 2i+1 is the value cuts[i], code 2i the gap below it, the last code NaN."""

    reading: Reading
    cuts: Column

    @staticmethod
    def learn(reading: Reading, left: Column, right: Column, fineness: int = 128) -> Cuts:
        """Cuts at the distinct values if they are few, else at atoms and at quantiles with fine tails of both sides."""
        pooled, counts = np.unique(np.concatenate([left, right]), return_counts=True)
        if pooled.dtype.kind == "f":
            known = ~np.isnan(pooled)
            pooled, counts = pooled[known], counts[known]
        if len(pooled) <= min(_EXACT, 4 * fineness):
            return Cuts(reading, pooled)
        atoms = pooled[counts >= max(8, counts.sum() // 2000)]
        if len(atoms) > fineness:
            atoms = pooled[np.sort(np.argsort(-counts, kind="stable")[:fineness])]
        steps = np.unique(np.concatenate([_quantiles(pooled, side, fineness) for side in (left, right)]))
        return Cuts(reading, np.unique(np.concatenate([atoms, steps])))

    @property
    def cells(self) -> int:
        return 2 * len(self.cuts) + 2

    @property
    def nan(self) -> int:
        """The cell of NaN, after all cells of the number line."""
        return self.cells - 1

    def codes(self, table: Table) -> Codes:
        values = self.reading.read(table)
        if not len(self.cuts):
            return np.isnan(values).astype(np.intp)
        below = np.searchsorted(self.cuts, values)
        codes: Codes = 2 * below + (self.cuts[np.minimum(below, len(self.cuts) - 1)] == values)
        if values.dtype.kind == "f":
            codes[np.isnan(values)] = self.nan
        return codes

    def describe(self, chosen: Mask) -> str:
        spans = [self._span(start, stop) for start, stop in _runs(chosen[:-1])]
        if chosen[-1]:
            spans.append("is NaN")
        return f"{self.reading.words} {_listed(spans)}"

    def _span(self, first: int, last: int) -> str:
        """Codes first..last as an interval."""
        low = None if first == 0 else self.cuts[(first - 1) // 2]
        high = None if last == 2 * len(self.cuts) else self.cuts[last // 2]
        if low is None and high is None:
            return "is a number"
        if first == last and first % 2:
            return f"= {high:.6g}"
        if low is None:
            return f"{'≤' if last % 2 else '<'} {high:.6g}"
        if high is None:
            return f"{'≥' if first % 2 else '>'} {low:.6g}"
        return f"in {'[' if first % 2 else '('}{low:.6g}, {high:.6g}{']' if last % 2 else ')'}"


@dataclass(frozen=True, eq=False)
class Values:
    """One cell for each of the most frequent values of some columns, one for all others."""

    words: str
    columns: tuple[int, ...]
    keys: NDArray[np.int64]
    labels: Sequence[str]

    @staticmethod
    def learn(left: Table, right: Table, columns: tuple[int, ...], most: int = 4096) -> Values:
        """Cells for the values met most often on both sides together."""
        both = np.concatenate([fingerprint(table, columns) for table in (left, right)])
        keys, first, counts = np.unique(both, return_index=True, return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[:most])
        labels = [_row(left, right, columns, int(index)) for index in first[kept]]
        return Values(_named(left, columns), columns, keys[kept], labels)

    @property
    def cells(self) -> int:
        return len(self.keys) + 1

    def codes(self, table: Table) -> Codes:
        return _places(self.keys, fingerprint(table, self.columns))

    def describe(self, chosen: Mask) -> str:
        labels = [f"= {label}" for label, taken in zip(self.labels, chosen, strict=False) if taken]
        if chosen[-1]:
            labels.append("is one seldom met")
        return f"{self.words} {_listed(labels)}"


@dataclass(frozen=True, eq=False)
class Met:
    """Four cells: values of some columns met while learning on neither side, only on D, only on D′, on both."""

    words: str
    columns: tuple[int, ...]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    cells: int = 4

    @staticmethod
    def learn(left: Table, right: Table, columns: tuple[int, ...]) -> Met:
        """Remember every value met."""
        ours, theirs = (np.unique(fingerprint(table, columns)) for table in (left, right))
        return Met(_named(left, columns), columns, ours, theirs)

    def codes(self, table: Table) -> Codes:
        keys = fingerprint(table, self.columns)
        left, right = (_places(side, keys) < len(side) for side in (self.left, self.right))
        return left.astype(np.intp) + 2 * right.astype(np.intp)

    def describe(self, chosen: Mask) -> str:
        words = ("on neither data set", "only on D", "only on D′", "on both")
        return f"{self.words} is among those met before {_listed([w for w, c in zip(words, chosen, strict=True) if c])}"


@dataclass(frozen=True, eq=False)
class Grid:
    """Every pair of cells of two partitions."""

    first: Cells
    second: Cells

    @property
    def cells(self) -> int:
        return self.first.cells * self.second.cells

    def codes(self, table: Table) -> Codes:
        return self.first.codes(table) * self.second.cells + self.second.codes(table)

    def describe(self, chosen: Mask) -> str:
        pairs = chosen.reshape(self.first.cells, self.second.cells)
        groups: dict[bytes, Mask] = {}
        for row, taken in enumerate(pairs):
            if taken.any():
                groups.setdefault(taken.tobytes(), np.zeros(self.first.cells, bool))[row] = True
        words = []
        for key, rows in groups.items():
            taken = np.frombuffer(key, bool)
            inner = "" if taken.all() else f" and {self.second.describe(taken)}"
            words.append(f"({self.first.describe(rows)}{inner})")
        return _listed(words)


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of all outputs: the cells of one kind, one cell for each other kind, one for kinds never met.

    With `kind` None the cells are read from the user's own features, or, with no cells either, from kinds alone.
    """

    kinds: Sequence[str]
    kind: str | None
    inner: Cells | None
    feature: str | None = None

    @property
    def cells(self) -> int:
        own = 0 if self.inner is None else self.inner.cells
        return own if self.feature is not None else own + len(self.kinds) + 1

    def codes(self, outcomes: Outcomes) -> Codes:
        if self.inner is None:
            return outcomes.kinds(self.kinds)
        if self.feature is not None:
            return self.inner.codes(outcomes.extra[self.feature])
        table = outcomes.tables.get(self.kind or "")
        if table is not None and table.rows == outcomes.size:
            return self.inner.codes(table)
        codes = self.inner.cells + outcomes.kinds(self.kinds)
        if table is not None:
            codes[outcomes.positions[self.kind or ""]] = self.inner.codes(table)
        return codes

    def counts(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """How many outputs fall in each cell."""
        counts: NDArray[np.int64] = np.bincount(self.codes(outcomes), minlength=self.cells)
        return counts

    def describe(self, chosen: Mask) -> str:
        own = 0 if self.inner is None else self.inner.cells
        words = []
        if self.inner is not None and chosen[:own].any():
            inside = self.inner.describe(chosen[:own]) if not chosen[:own].all() else f"output is of kind {self.kind}"
            words.append(inside)
        others = [kind for kind, taken in zip(self.kinds, chosen[own:], strict=False) if taken and kind != self.kind]
        if others:
            words.append(f"output is of kind {_listed(others)}")
        if not words:
            words.append("output is of a kind not met before")
        return " or ".join(words)


def _quantiles(pooled: Column, values: Column, fineness: int) -> Column:
    """Cuts halfway between neighbouring values, at evenly spaced ranks and at ranks that shrink towards both ends."""
    ordered = np.sort(values[~np.isnan(values)] if values.dtype.kind == "f" else values)
    if not len(ordered):
        return ordered
    even = np.arange(1, fineness) * len(ordered) // fineness
    tail = np.unique((len(ordered) / fineness * 0.7 ** np.arange(40)).astype(np.intp))
    at = ordered[np.clip(np.concatenate([tail, even, len(ordered) - 1 - tail]), 0, len(ordered) - 1)]
    place = np.minimum(np.searchsorted(pooled, at), len(pooled) - 2)
    below, above = pooled[place], pooled[place + 1]
    cuts: Column = np.where(np.isfinite(below) & np.isfinite(above), below / 2 + above / 2, below)
    return cuts


def _places(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> Codes:
    """The index of each wanted key, or len(keys)."""
    if not len(keys):
        return np.zeros(len(wanted), np.intp)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, len(keys))


def _named(table: Table, columns: tuple[int, ...]) -> str:
    return table.names[columns[0]] if len(columns) == 1 else "output"


def _row(left: Table, right: Table, columns: tuple[int, ...], index: int) -> str:
    table, row = (left, index) if index < left.rows else (right, index - left.rows)
    parts = [repr(table.columns[column][row].item()) for column in columns[:12]]
    ending = ", …" if len(columns) > 12 else ""
    return parts[0] if len(columns) == 1 else f"({', '.join(parts)}{ending})"


def _runs(chosen: Mask) -> list[tuple[int, int]]:
    """The maximal runs of chosen codes, as (first, last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _listed(words: Sequence[str]) -> str:
    rest = len(words) - _SHOWN
    return " or ".join(words[:_SHOWN]) + (f" or one of {rest} more" if rest > 0 else "")

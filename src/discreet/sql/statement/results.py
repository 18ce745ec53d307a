"""What a statement returns: whole-number sums by group and by bucket of the units' norms, and how many units there are.

A group's total, for a cap C, is Σ_{b ≤ c} plain·G·H + C·H·Σ_{b > c} divided over its buckets b
(`statement/builder.py`), where plain sums count parts of which there may be several to a step. Sums are kept in
columns; those that 64 bits could not hold are Python's own integers.

Values that an engine takes for equal are the same bytes in what is released: of a group it shows whichever value it met
first, so that two spellings of one key would tell whose rows came first. Relations see to that
(`statement/selection.py`); keys and values are brought to one spelling here once more (`released`).

>>> sums = Bucketed([("a",), ("a",), ("b",)], [0, 1, 1], [[5, 7, 9]], [[0, 2, 3]])
>>> [total // (G * H) for total in sums.clipped(0, weight=H, cut=1, keys=[("b",), ("a",), ("c",)])]
[9, 12, 0]
>>> sums.clipped(0, weight=H, cut=0, keys=[("a",)]) == [5 * G * H + 2 * H]
True
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.bounding.sums import Statistic
from discreet.sql.statement.layout import OF_UNITS, Part

__all__ = ["EXACT", "Bucketed", "Groups", "Key", "released", "twins"]

ROOM = 1 << 62
"""The largest sum that columns of 64 bits are trusted with."""
EXACT = 1 << 53
"""The largest sum up to which doubles hold every whole number."""
Key = tuple[Any, ...]
Whole = np.ndarray[Any, np.dtype[Any]]
"""Whole numbers, of 64 bits or Python's own."""


def released(value: Any) -> Any:
    """A key or a value as it is shown: of two that are equal, the same bytes: there is no −0.0."""
    if isinstance(value, float):
        return value + 0.0
    return value


class Bucketed:
    """Plain and divided sums, in columns for each statistic; every row is of one group and bucket."""

    def __init__(
        self,
        keys: Sequence[Key] = (),
        buckets: Sequence[int] = (),
        plain: Sequence[Sequence[Any]] = (),
        divided: Sequence[Sequence[Any]] = (),
    ) -> None:
        numbers: dict[Key, int] = {}
        self._groups = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
        self._buckets = np.array(buckets, dtype=np.int64)
        places = self._buckets * len(numbers) + self._groups
        if len(np.unique(places)) < len(places):
            # Groups that the engine tells apart and Python does not: their norms were not taken together.
            raise ValueError("two rows of one group and bucket")
        # Columns that are one and the same are read once.
        columns = {id(column): column for column in (*plain, *divided)}
        read = {name: _whole(column) for name, column in columns.items()}
        self._plain, self._divided = ([read[id(column)] for column in each] for each in (plain, divided))
        self._numbers = numbers

    @property
    def keys(self) -> set[Key]:
        """All groups."""
        return {*self._numbers}

    def clipped(self, index: int, weight: int, cut: int, keys: Sequence[Key], fineness: int = 1) -> list[int]:
        """The clipped sums of one statistic, in units of 1/(G·H) steps, for each of the keys; `weight` is C·H."""
        if not self._numbers:
            return [0] * len(keys)
        below = self._buckets <= cut
        plain = self._summed(self._plain[index], below)
        divided = [0] * len(plain) if below.all() else self._summed(self._divided[index], ~below)
        places, part = map(self._numbers.get, keys), G * H // fineness
        return [0 if place is None else plain[place] * part + weight * divided[place] for place in places]

    def _summed(self, column: Whole, wanted: Whole) -> list[int]:
        totals = np.zeros(len(self._numbers), dtype=column.dtype)
        np.add.at(totals, self._groups[wanted], column[wanted])
        sums: list[int] = totals.tolist()
        return sums


def _whole(values: Sequence[Any]) -> Whole:
    """A column of whole numbers, whatever an engine calls them; a sum of nothing is 0."""
    try:
        column = np.array(values, dtype=np.int64)
    except (TypeError, OverflowError):
        column = np.array([int(value) if value else 0 for value in values], dtype=object)
    largest = max(int(column.max(initial=0)), -int(column.min(initial=0)))
    return column.astype(np.int64 if largest * len(column) < ROOM else object)


def twins(statistics: Sequence[Statistic]) -> list[int]:
    """For each statistic the place of the first that sums the same, be it for averages or not."""
    first: dict[object, int] = {}
    return [first.setdefault((s.kind, s.argument, s.bounds, s.values), place) for place, s in enumerate(statistics)]


@dataclass(frozen=True)
class Groups:
    """The sums of rows, and of counts of units; how many units there are in each bucket of rows, by octaves of rows
    over norm, and in each bucket of groups; rows by cell, for quantiles; and what `measuring/clipping_loss.py` wants
    to know."""

    rows: Bucketed
    units: Bucketed
    by_rows: dict[tuple[int, int], int]
    by_groups: dict[int, int]
    cells: tuple[list[tuple[Any, ...]], ...] = ()
    octaves: dict[tuple[int, int], tuple[int, int, int, int]] = field(default_factory=dict)
    exact: bool = True
    """Whether no sum of doubles, nor a part of it, was too large to be whole."""

    @classmethod
    def read(
        cls,
        found: Sequence[tuple[Any, ...]],
        keys: int,
        statistics: Sequence[Statistic],
        owned: bool,
        ranked: int = 0,
        valued: Sequence[int] = (),
    ) -> Groups:
        """Rows of `statement`, in whatever order they came; of the ranked ones some are `valued`: in place of a cell
        they have a value, in the last columns."""
        parts: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for row in found:
            parts[row[0]].append((*row[:4], *map(released, row[4 : 4 + keys]), *row[4 + keys :]))
        summed = [s for s in statistics if s.kind != "units" or not owned]
        same = twins(summed) if owned else [*range(len(summed))]
        rows = _bucketed(parts[Part.ROW_SUMS], keys, len(summed), same, owned)
        units = _bucketed(parts[Part.UNIT_COUNTS], keys, 1, [0], owned)
        by_rows, octaves = _norms(parts[Part.UNITS_BY_ROWS], keys)
        by_groups = {row[1]: int(row[3]) for row in parts[Part.UNITS_BY_GROUPS]}
        places = {i: place - len(valued) for place, i in enumerate(valued)}
        cells = tuple(_cells(parts[Part.CELLS + i], keys, places.get(i, 2)) for i in range(ranked))
        longest = 0 if owned else max((row[3] for row in parts[Part.ROW_SUMS]), default=0)
        exact = longest * max((s.bound * s.fineness for s in statistics), default=0) <= EXACT
        return cls(rows, units, by_rows, by_groups, cells, octaves, exact)

    @property
    def keys(self) -> set[Key]:
        """All groups."""
        return self.rows.keys | self.units.keys


def _norms(
    rows: list[tuple[Any, ...]], keys: int
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], tuple[int, int, int, int]]]:
    """Units by bucket and spread; and, where they were summed too, by bucket and octave with their sums."""
    counts: dict[tuple[int, int], int] = defaultdict(int)
    octaves: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    for _, bucket, spread, count, *rest in rows:
        counts[bucket, spread] += int(count)
        if rest[keys] is not None:
            octave, *sums = map(int, rest[keys : keys + 1 + OF_UNITS])
            known = octaves.get((bucket, octave), (0, 0, 0, 0))
            total, divided, shares = (a + b for a, b in zip(known[1:], sums, strict=True))
            octaves[bucket, octave] = (known[0] + int(count), total, divided, shares)
    return dict(counts), octaves


def _cells(rows: list[tuple[Any, ...]], keys: int, place: int) -> list[tuple[Any, ...]]:
    """Bucket, cell, plain and divided counts and keys, where cells are in the column of that place."""
    return [(row[1], row[place], int(row[3]), int(row[4 + keys] or 0), *row[4 : 4 + keys]) for row in rows]


def _bucketed(rows: list[tuple[Any, ...]], keys: int, many: int, places: list[int], owned: bool) -> Bucketed:
    """`places` are the columns of the sums, of which there are `many`; rows that nobody owns have no divided ones."""
    if not rows:
        return Bucketed()
    _, buckets, _, _, *rest = zip(*rows, strict=True)
    names: Sequence[Key] = [*zip(*rest[:keys], strict=True)] if keys else [()] * len(rows)
    plain = [rest[keys + place] for place in places]
    divided = [rest[keys + many + place] for place in places] if owned else []
    return Bucketed(names, buckets, plain, divided)

"""Published tables of counts, read into one list of equations for each block.

A table says how many people of a block have each combination of some attributes. A column may be coarser than the
attribute it tells of (`groups`). Combinations that a table leaves out for a block it covers are 0; a count that is no
number is suppressed, and says nothing.

>>> by_sex = {"block": [1, 1], "sex": ["F", "M"], "count": [2, 1]}
>>> by_age = {"block": [1, 1], "age": ["young", "old"], "count": [1, 2]}
>>> tables = Tables.read({"sex": by_sex, "age": by_age})
>>> tables.attributes, tables.cells
({'sex': ('F', 'M'), 'age': ('young', 'old')}, 4)
>>> tables.disagreements(1)
[]
"""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument

__all__ = ["Equations", "Table", "Tables", "columns_of"]

Doubles = NDArray[np.float64]
Places = NDArray[np.int64]
Groups = Mapping[str, tuple[str, Mapping[Hashable, Hashable]]]
MOST_CELLS = 1 << 20
"""Combinations of all attributes, at most."""
MOST_NAMED = 3
"""Disagreements that are told of one block."""


@dataclass(frozen=True)
class Table:
    """One published table: for each cell of the domain the row that counts it, and the counts of every block."""

    name: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    labels: tuple[tuple[Hashable, ...], ...] = field(repr=False)
    row_of: Places = field(repr=False)
    counts: dict[Hashable, Doubles] = field(repr=False)

    def words(self, row: int) -> str:
        """A row by the values it counts."""
        places = np.unravel_index(row, self.shape) if self.shape else ()
        said = [f"{c} = {self.labels[i][int(p)]}" for i, (c, p) in enumerate(zip(self.columns, places, strict=True))]
        return ", ".join(said) or "all"


@dataclass(frozen=True)
class Equations:
    """What the tables say of one block: rows of cells, each with its count; suppressed ones are left out."""

    rows: list[Places]
    counts: Doubles
    names: list[str]
    cells: Places
    """Cells that no published zero rules out."""
    impossible: list[str]
    """Counts that no people can have: negative or not whole."""


@dataclass(frozen=True)
class Tables:
    """All tables over the same attributes."""

    attributes: dict[str, tuple[Hashable, ...]]
    tables: tuple[Table, ...]

    @classmethod
    def read(
        cls,
        tables: Mapping[str, Any],
        *,
        block: str = "block",
        count: str = "count",
        values: Mapping[str, Sequence[Hashable]] | None = None,
        groups: Groups | None = None,
    ) -> Tables:
        """Tables by name: frames of pandas, Polars or Arrow, dicts of columns, or CSV files.

        Every table has a column `count` and, unless all is one block, a column `block`. `values` lists the values of
        attributes where the tables do not show all of them; `groups` maps a column that is coarser, such as
        {"age_group": ("age", {0: "0-4", 1: "0-4", …})}.
        """
        if not isinstance(tables, Mapping) or not tables:
            raise InvalidArgument("tables", tables, "tables by name", 'write {"sex by age": frame, …}')
        read = {name: columns_of(name, frame) for name, frame in tables.items()}
        coarse = dict(groups or {})
        attributes: dict[str, list[Hashable]] = {name: list(known) for name, known in (values or {}).items()}
        for attribute, mapping in coarse.values():
            attributes.setdefault(attribute, list(mapping))
        for name, columns in read.items():
            if count not in columns:
                wanted = f"with a column {count!r}; it has {list(columns)}"
                raise InvalidArgument("tables", name, wanted, "name the column of counts")
            for column, shown in columns.items():
                if column in (block, count) or column in coarse:
                    continue
                known = attributes.setdefault(column, [])
                known += [value for value in dict.fromkeys(shown) if value not in set(known)]
        listed = {name: tuple(known) for name, known in attributes.items()}
        cells = prod(map(len, listed.values()))
        if not cells:
            raise InvalidArgument("tables", "no rows", "one row or more in each", "leave out empty tables")
        if cells > MOST_CELLS:
            raise InvalidArgument("tables", f"{cells:,} cells", f"at most {MOST_CELLS:,}", "use coarser values")
        return cls(listed, tuple(_table(name, c, listed, coarse, block, count) for name, c in read.items()))

    @property
    def cells(self) -> int:
        """Combinations of all attributes."""
        return prod(map(len, self.attributes.values()))

    @cached_property
    def blocks(self) -> list[Hashable]:
        """All blocks, in the order in which they come."""
        return list(dict.fromkeys(block for table in self.tables for block in table.counts))

    def decode(self, cell: int) -> tuple[Hashable, ...]:
        """The values of a cell."""
        places = np.unravel_index(cell, tuple(map(len, self.attributes.values())))
        pairs = zip(self.attributes.values(), places, strict=True)
        return tuple(known[int(place)] for known, place in pairs)

    def encode(self, columns: Mapping[str, Sequence[Hashable]]) -> Places:
        """The cells of records; values that no table has are cell −1."""
        missing = [name for name in self.attributes if name not in columns]
        if missing:
            wanted = f"with the columns {list(self.attributes)}"
            raise InvalidArgument("truth", list(columns), wanted, f"{missing} is missing")
        many = len(next(iter(columns.values())))
        cells, odd = np.zeros(many, np.int64), np.zeros(many, bool)
        for name, known in self.attributes.items():
            place = {value: index for index, value in enumerate(known)}
            codes = np.array([place.get(value, -1) for value in columns[name]], np.int64)
            cells, odd = cells * len(known) + codes, odd | (codes < 0)
        return np.where(odd, -1, cells).astype(np.int64)

    def equations(self, block: Hashable) -> Equations:
        """What is said of one block."""
        open_cells, impossible = np.ones(self.cells, bool), []
        known: list[tuple[Table, int, float]] = []
        for table in self.tables:
            counts = table.counts.get(block)
            if counts is None:
                continue
            open_cells &= ~(counts == 0)[table.row_of]
            known += [(table, row, float(counts[row])) for row in np.flatnonzero(np.isfinite(counts)).tolist()]
        cells = np.flatnonzero(open_cells)
        rows, numbers, names = [], [], []
        for table, row, number in known:
            if number < 0 or number != int(number):
                impossible.append(f"{table.name} counts {number:g} for {table.words(row)}")
            members = np.flatnonzero(table.row_of[cells] == row)
            if members.size or number:
                rows.append(members)
                numbers.append(number)
                names.append(f"{table.name}: {table.words(row)}")
        return Equations(rows, np.array(numbers), names, cells, impossible)

    def disagreements(self, block: Hashable) -> list[str]:
        """Pairs of tables that count the same people differently, and what each says."""
        return [words for pair in combinations(self.tables, 2) for words in _differences(*pair, block)][:MOST_NAMED]


def columns_of(name: str, frame: Any) -> dict[str, list[Any]]:
    """Columns by name, of whatever kind of table."""
    if isinstance(frame, str | Path):
        with Path(frame).open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.reader(lines)
            heads = [head.strip() for head in next(reader, [])]
            rows = [row for row in reader if any(row)]
        if any(len(row) != len(heads) for row in rows):
            raise InvalidArgument("tables", str(frame), f"rows of {len(heads)} fields like the header", "mend the file")
        return {head: [row[place].strip() for row in rows] for place, head in enumerate(heads)}
    if hasattr(frame, "to_pydict"):
        frame = frame.to_pydict()
    elif hasattr(frame, "to_dict") and not isinstance(frame, Mapping):
        columns = getattr(frame, "columns", ())
        frame = {str(column): frame[column].to_list() for column in columns}
    if not isinstance(frame, Mapping) or not frame:
        raise InvalidArgument("tables", name, "a frame, a dict of columns or a CSV file", "give one")
    listed = {str(key): list(column) for key, column in frame.items()}
    if len({len(column) for column in listed.values()}) != 1:
        raise InvalidArgument("tables", name, "with columns of one length", "mend the table")
    return listed


def _table(
    name: str,
    columns: Mapping[str, list[Any]],
    attributes: Mapping[str, tuple[Hashable, ...]],
    groups: Groups,
    block: str,
    count: str,
) -> Table:
    used = tuple(column for column in columns if column not in (block, count))
    labels, codes_of = [], np.zeros(prod(map(len, attributes.values())), np.int64)
    grid = np.indices(tuple(map(len, attributes.values()))).reshape(len(attributes), -1)
    axis = {attribute: place for place, attribute in enumerate(attributes)}
    for column in used:
        attribute, mapping = groups.get(column, (column, None))
        if mapping is None:
            shown: tuple[Hashable, ...] = attributes[attribute]
            codes = np.arange(len(shown))
        else:
            lost = [value for value in attributes[attribute] if value not in mapping]
            if lost:
                raise InvalidArgument("groups", column, f"a label for each {attribute}", f"{lost[:5]} has none")
            shown = tuple(dict.fromkeys(mapping[value] for value in attributes[attribute]))
            at = {label: place for place, label in enumerate(shown)}
            codes = np.array([at[mapping[value]] for value in attributes[attribute]])
        labels.append(shown)
        codes_of = codes_of * len(shown) + codes[grid[axis[attribute]]]
    shape = tuple(map(len, labels))
    counts = _counts(name, columns, used, labels, shape, block, count)
    return Table(name, used, shape, tuple(labels), codes_of, counts)


def _counts(
    name: str,
    columns: Mapping[str, list[Any]],
    used: Sequence[str],
    labels: Sequence[tuple[Hashable, ...]],
    shape: tuple[int, ...],
    block: str,
    count: str,
) -> dict[Hashable, Doubles]:
    places = [{label: place for place, label in enumerate(shown)} for shown in labels]
    blocks = columns.get(block) or ["all"] * len(columns[count])
    found: dict[Hashable, Doubles] = {}
    seen: set[tuple[Hashable, int]] = set()
    for line, (where, number) in enumerate(zip(blocks, columns[count], strict=True)):
        row = 0
        for column, at, size in zip(used, places, shape, strict=True):
            value = columns[column][line]
            if value not in at:
                raise InvalidArgument("tables", f"{name}: {column} = {value}", f"one of {list(at)[:8]}", "mend it")
            row = row * size + at[value]
        if (where, row) in seen:
            raise InvalidArgument("tables", f"{name}: line {line + 1}", "each combination once", "add its rows up")
        seen.add((where, row))
        found.setdefault(where, np.zeros(max(1, prod(shape))))[row] = _number(number)
    return found


def _differences(first: Table, second: Table, block: Hashable) -> Iterator[str]:
    ours, theirs = first.counts.get(block), second.counts.get(block)
    if ours is None or theirs is None or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return
    shared = tuple(column for column in first.columns if column in second.columns)
    left, right = _margin(first, ours, shared), _margin(second, theirs, shared)
    labels = [first.labels[first.columns.index(column)] for column in shared]
    for place in np.argwhere(np.abs(left - right) > 1e-9):
        at = tuple(int(p) for p in place)
        said = ", ".join(f"{c} = {labels[i][p]}" for i, (c, p) in enumerate(zip(shared, at, strict=True))) or "all"
        yield f"{first.name} counts {left[at]:g} and {second.name} {right[at]:g} for {said}"


def _margin(table: Table, counts: Doubles, shared: tuple[str, ...]) -> Doubles:
    tensor = counts.reshape(table.shape or (1,))
    if not table.shape:
        return np.asarray(tensor.sum())
    rest = tuple(axis for axis, column in enumerate(table.columns) if column not in shared)
    kept = [column for column in table.columns if column in shared]
    return np.asarray(tensor.sum(axis=rest).transpose([kept.index(column) for column in shared]))


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return float("nan")
    return number if np.isfinite(number) else float("nan")

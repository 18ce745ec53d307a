"""Suppressed cells: what the rest of published tables says about the counts that were left out.

Counts of few people are often replaced by a mark. Totals give them back: for each suppressed count the least and the
largest number of people that all published counts allow are computed (linear programs over the cells; whole people
where the program is small). A count is pinned if the two are equal.

>>> table = {"sex": ["F", "M", "total"], "count": ["*", 7, 9]}
>>> found = unsuppress(margins(table))
>>> print(found)
BROKEN: 1 of 1 suppressed counts follows from the others.
suppressed: 1 counts in 1 block
pinned: 1
narrowed: to 1.0 values on average, where the rule allows any
>>> [(cell.words, cell.low, cell.high) for cell in found.cells]
[('sex = F', 2, 2)]

`least` is the rule: suppressed counts are above 0 and below it. With `step`, published counts are rounded to multiples
of it, and each is off by half a step at most. Combinations that a table does not list are 0. Tables that no people can
have are reported in `contradictions`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.figures import bars
from discreet.adversary.findings import Finding, judged
from discreet.adversary.reconstruction.published_tables import Table, Tables, columns_of
from discreet.core.errors import InvalidArgument

__all__ = ["Hidden", "Suppression", "margins", "unsuppress"]

WHOLE_UP_TO = 400
"""Cells of a program that is solved in whole people."""
SECONDS = 5.0
"""For one program in whole people; after that its linear bounds are kept."""
SLACK = 1e-6
MOST_SHOWN = 10

Doubles = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Hidden:
    """A suppressed count and what is left of it."""

    block: Hashable
    table: str
    words: str
    low: int = field(repr=False)
    high: int | None = field(repr=False)

    @property
    def pinned(self) -> bool:
        """Whether one number is left."""
        return self.low == self.high


@dataclass(frozen=True)
class Suppression(Finding):
    """What is left of all suppressed counts."""

    cells: tuple[Hidden, ...] = field(repr=False)
    least: int | None
    contradictions: tuple[str, ...]

    @property
    def pinned(self) -> int:
        """Counts that follow from the others."""
        return sum(cell.pinned for cell in self.cells)

    @property
    def left(self) -> float:
        """Numbers that are left of a count, on average; infinite where one has no upper end."""
        sizes = [np.inf if cell.high is None else cell.high - cell.low + 1 for cell in self.cells]
        return float(np.mean(sizes)) if sizes else float("nan")

    @property
    def verdict(self) -> str:
        """In plain words."""
        if not self.cells:
            odd = " The tables contradict each other." if self.contradictions else ""
            return f"NOTHING: there are no suppressed counts that could be looked at.{odd}"
        of = f"of {len(self.cells):,} suppressed counts"
        if not self.pinned:
            return f"HELD: none {of} follows from the others."
        follow = "follows" if self.pinned == 1 else "follow"
        return f"{judged(self.pinned, len(self.cells))}: {self.pinned:,} {of} {follow} from the others."

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        left = self.left if np.isfinite(self.left) else None
        odd = list(self.contradictions)
        return {"suppressed": len(self.cells), "pinned": self.pinned, "left": left, "contradictions": odd}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        blocks = len({cell.block for cell in self.cells})
        rule = "any" if self.least is None else f"{self.least - 1:,}"
        said = [("suppressed", f"{len(self.cells):,} counts in {blocks:,} block{'' if blocks == 1 else 's'}")]
        if self.cells:
            said += [
                ("pinned", f"{self.pinned:,}"),
                ("narrowed", f"to {self.left:.1f} values on average, where the rule"),
            ]
            said[-1] = (said[-1][0], f"{said[-1][1]} allows {rule}")
        return said + [("contradiction", words) for words in self.contradictions]

    def plot(self) -> Any:
        """How many numbers are left of the counts."""
        sizes = [MOST_SHOWN if cell.high is None else cell.high - cell.low + 1 for cell in self.cells]
        held = {f"{size}": float(sizes.count(size)) for size in range(1, MOST_SHOWN)}
        held[f"{MOST_SHOWN} or more"] = float(sum(size >= MOST_SHOWN for size in sizes))
        return bars(held, self.verdict, "suppressed counts, by the numbers that are left of them")

    def secrets(self) -> dict[str, Any]:
        """The counts."""
        return {"found": [cell.__dict__ | {"block": str(cell.block)} for cell in self.cells if cell.pinned]}


def margins(source: Any, *, total: str = "total", count: str = "count", block: str = "block") -> dict[str, Any]:
    """A table whose totals stand among its rows, taken apart: one table for each set of columns that have a total."""
    columns = columns_of("table", source)
    if count not in columns:
        raise InvalidArgument("count", count, f"a column: {', '.join(columns)}", "name the column of counts")
    keys = [name for name in columns if name not in (count, block)]
    parts: dict[str, dict[str, list[Any]]] = {}
    for line in range(len(columns[count])):
        kept = [name for name in keys if str(columns[name][line]).strip().lower() != total.lower()]
        names = [*kept, *((block,) if block in columns else ()), count]
        part = parts.setdefault(" × ".join(kept) or "all", {name: [] for name in names})
        for name in names:
            part[name].append(columns[name][line])
    return dict(parts)


def unsuppress(
    tables: Tables | Mapping[str, Any],
    *,
    least: int | None = None,
    step: float = 0.0,
    progress: Callable[[float], None] | None = None,
    **reading: Any,
) -> Suppression:
    """What is left of each suppressed count; `reading` is for `Tables.read`."""
    if least is not None and (isinstance(least, bool) or not isinstance(least, int) or least < 2):
        raise InvalidArgument("least", least, "a whole number from 2", "suppressed counts are above 0 and below it")
    if not 0 <= step < np.inf:
        raise InvalidArgument("step", step, "at least 0", "5 is for counts rounded to multiples of 5")
    read = tables if isinstance(tables, Tables) else Tables.read(tables, **reading)
    found: list[Hidden] = []
    odd: list[str] = []
    for place, block in enumerate(read.blocks):
        share = 1 / len(read.blocks)
        told = None if progress is None else _part(progress, place * share, share)
        cells, contradiction = _solved(read, block, least, float(step), told)
        found += cells
        odd += contradiction
    return Suppression(tuple(found), least, tuple(odd))


def _part(progress: Callable[[float], None], done: float, share: float) -> Callable[[float], None]:
    return lambda part: progress(done + part * share)


def _solved(
    read: Tables, block: Hashable, least: int | None, step: float, progress: Callable[[float], None] | None
) -> tuple[list[Hidden], list[str]]:
    """The suppressed counts of one block, each by two programs over the cells it depends on."""
    tables = [table for table in read.tables if block in table.counts]
    hidden = [(table, row) for table in tables for row in np.flatnonzero(np.isnan(table.counts[block])).tolist()]
    if not hidden:
        return [], [f"block {block}: {words}" for words in read.disagreements(block)]
    program = _Program.of(tables, block, least, step)
    found = []
    for table, row in hidden:
        ends = None if program.impossible else program.ends(program.first[id(table)] + row)
        if ends is None:
            words = read.disagreements(block) or ["no people can have all these counts"]
            return [], [f"block {block}: {word}" for word in words]
        found.append(Hidden(block, table.name, table.words(row), *ends))
        if progress is not None:
            progress(len(found) / len(hidden))
    return found, []


@dataclass(frozen=True, eq=False)
class _Program:
    """Rows of cells with the least and the largest sum each may have; cells that one count fixes are taken out."""

    matrix: Any
    lows: Doubles
    highs: Doubles
    fixed: Doubles
    """What the fixed cells of a row add up to."""
    first: dict[int, int]
    part_of: Places
    """The number of the independent part that a cell belongs to."""
    part_of_row: Places

    @classmethod
    def of(cls, tables: list[Table], block: Hashable, least: int | None, step: float) -> _Program:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        # Cells that every table counts in the same rows are one.
        kinds = np.unique(np.stack([table.row_of for table in tables]), axis=1)
        lows, highs, first, start = [], [], {}, 0
        for place, table in enumerate(tables):
            counts = table.counts[block]
            first[id(table)], kinds[place] = start, kinds[place] + start
            start += counts.size
            missing = np.isnan(counts)
            lows.append(np.where(missing, 0.0 if least is None else 1.0, np.maximum(counts - step / 2, 0)))
            highs.append(np.where(missing, np.inf if least is None else least - 1.0, counts + step / 2))
        low, high = np.concatenate(lows), np.concatenate(highs)
        cells = kinds.shape[1]
        places = kinds.ravel(), np.tile(np.arange(cells), len(tables))
        matrix = csr_matrix((np.ones(kinds.size), places), (start, cells))
        single = np.flatnonzero((np.diff(matrix.indptr) == 1) & (low == high))
        value = np.zeros(cells)
        value[matrix[single].indices] = low[single]
        emptied = np.unique(matrix[high == 0].indices)
        value[emptied] = 0.0
        open_cells = ~np.isin(np.arange(cells), np.concatenate([matrix[single].indices, emptied]))
        known, free = matrix @ value, matrix[:, open_cells]
        part_of = connected_components(free.T @ free, directed=False)[1].astype(np.int64)
        part_of_row = np.full(start, -1, np.int64)
        held = np.diff(free.indptr) > 0
        part_of_row[held] = part_of[free.indices[free.indptr[:-1][held]]]
        return cls(free, low - known, high - known, known, first, part_of, part_of_row)

    @property
    def impossible(self) -> bool:
        """Whether cells that are fixed add up to something else than what was published of them."""
        alone = self.part_of_row < 0
        return bool((self.lows[alone] > SLACK).any() or (self.highs[alone] < -SLACK).any())

    def ends(self, row: int) -> tuple[int, int | None] | None:
        """The least and the largest sum of a row, in whole people, or none if nothing fits."""
        part, fixed = self.part_of_row[row], float(self.fixed[row])
        if part < 0:
            return round(fixed), round(fixed)
        cells, rows = np.flatnonzero(self.part_of == part), np.flatnonzero(self.part_of_row == part)
        matrix, limits = self.matrix[rows][:, cells], (self.lows[rows], self.highs[rows])
        sought = np.isin(cells, self.matrix[row].indices).astype(np.float64)
        least = _least(sought, matrix, *limits)
        most = None if least is None else _least(-sought, matrix, *limits)
        if least is None or most is None:
            return None
        high = None if np.isinf(most) else int(np.floor(fixed - most + SLACK))
        return int(np.ceil(fixed + least - SLACK)), high


def _least(costs: Doubles, matrix: Any, lows: Doubles, highs: Doubles) -> float | None:
    """The least cost; −∞ if there is none, no number if nothing fits."""
    from scipy.optimize import LinearConstraint, milp

    rows = LinearConstraint(matrix, lows, highs)
    for whole in (True, False) if costs.size <= WHOLE_UP_TO else (False,):
        kind = np.full(costs.size, int(whole))
        found = milp(costs, constraints=rows, integrality=kind, options={"time_limit": SECONDS} if whole else {})
        if found.status == 0:
            return float(found.fun)
        if found.status == 2:
            return None
    # Unbounded, or the program gave up: nothing more is known than that people are not fewer than none.
    return 0.0 if costs.min() >= 0 else -np.inf

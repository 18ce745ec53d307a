"""Rows counted by cell of a line, or by value: what ranks, spreads and modes of groups are drawn from.

A measure's values are placed in cells (`Cells`), chosen from declared facts alone; the engine counts rows by group and
cell, for each bucket of units both plainly and divided by their norms, exactly as it sums (`statement/builder.py`). A
group's rows then have weights in whole numbers: ‖w‖ ≤ C over the groups of a unit, whichever of a group's cells they
are in.

>>> cells = Cells.of(Bounds(0, 120), whole=True, keys=10)
>>> cells.line.size, cells.sql("x")[:48]
(121, 'CASE WHEN x BETWEEN 0.0 AND 120.0 THEN CAST(LEAS')
>>> colours = Histograms.of_values([(0, "red", 3, 0), (0, "blue", 2, 0), (0, "mauve", 1, 0)], ("blue", "red"), None)
>>> colours.names, colours.cells[()].tolist(), colours.weights[()].tolist()
(('blue', 'red'), [0, 1], [2, 3])
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from discreet.core.domains import Bounds
from discreet.core.rounding import float_down, float_up
from discreet.mechanisms.quantiles.line import Line
from discreet.mechanisms.quantiles.rank_law import Ranked
from discreet.noise.batches import Integers
from discreet.sql.bounding.clipping_norms import Caps, G, H
from discreet.sql.bounding.sums import held
from discreet.sql.statement.results import released

__all__ = ["Cells", "Histograms", "Key"]

Key = tuple[Any, ...]

MOST_CELLS, FEWEST_CELLS, ALL_CELLS = 1 << 16, 1 << 8, 1 << 20
"""Cells of one group, and of all groups together unless there are very many."""
LARGEST = sys.float_info.max
FITS = 1 << 62
DOUBLE = Fraction(1, 1 << 50)
"""More than the rounding of a cell number in doubles can move its edges, as a part of the width of the bounds."""
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Cells:
    """Where the values of a measure may lie: the places of a line, `sharp` if values lie on them exactly."""

    line: Line
    sharp: bool = False

    @classmethod
    def of(cls, bounds: Bounds, *, whole: bool, keys: int | None) -> Cells:
        """As many cells as a statement over `keys` groups (None: not declared) should return; whole numbers have one
        each where they fit."""
        number = min(max(ALL_CELLS // (keys or 1024), FEWEST_CELLS), MOST_CELLS)
        if not bounds.width:
            return cls(Line(bounds, Fraction(1)), True)
        step = bounds.width / (number - 1)
        whole = whole and bounds.lower.denominator == bounds.upper.denominator == 1
        if whole:
            step = Fraction(ceil(step))
        return cls(Line(bounds, step), whole and step == 1)

    def sql(self, value: str, strict: bool = False, eager: bool = False) -> str:
        """The cell of `value`, the SQL of a double: held to the bounds, NULL where it is NULL, NaN or infinite.

        `strict` engines fail on products too small for doubles: there, the first quarter of a step is not multiplied.
        For `eager` ones, see `Statistic.steps`.
        """
        lower, upper, last = float(self.line.bounds.lower), float(self.line.bounds.upper), self.line.size - 1
        inside = held(value, lower, upper) if eager else value
        place = f"FLOOR(({inside} - {lower!r}) * {float(1 / self.line.step)!r} + 0.5)"
        if strict:
            place = f"CASE WHEN {value} - {lower!r} <= {float(self.line.step) / 4!r} THEN 0 ELSE {place} END"
        return (
            f"CASE WHEN {value} BETWEEN {lower!r} AND {upper!r}"
            f" THEN CAST(LEAST(GREATEST({place}, 0), {last}) AS INTEGER)"
            f" WHEN {value} BETWEEN {upper!r} AND {LARGEST!r} THEN {last}"
            f" WHEN {value} BETWEEN {-LARGEST!r} AND {lower!r} THEN 0 END"
        )

    def value(self, place: int, side: int = 0) -> float:
        """The middle of a cell; its lower end for side −1, its upper end for 1."""
        bounds = self.line.bounds
        if not side or self.sharp:
            return self.line.value(place)
        edge = bounds.lower + (place + Fraction(side, 2)) * self.line.step + side * DOUBLE * bounds.width
        # The last cell also has what is left up to the bound.
        edge = bounds.upper if side > 0 and place >= self.line.size - 1 else min(max(edge, bounds.lower), bounds.upper)
        return (float_down(edge) if side < 0 else float_up(edge)) + 0.0  # no −0.0


@dataclass(frozen=True)
class Histograms:
    """For each group its occupied cells in ascending order, and their weights. Where values were counted as they are,
    `names` are what the cells stand for."""

    cells: Mapping[Key, Integers]
    weights: Mapping[Key, Any]
    names: tuple[Any, ...] = ()

    @classmethod
    def of_values(
        cls, found: Sequence[tuple[Any, ...]], listed: Sequence[Any] | None, caps: Caps | None, cut: int = 0
    ) -> Histograms:
        """Rows that have values in place of cells; those that are not listed are left out, if there is a list."""
        # In an order of their own: what comes first must not depend on how an engine works.
        found = [(row[0], released(row[1]), *row[2:]) for row in found]
        names = sorted({row[1] for row in found}, key=lambda v: (type(v).__name__, str(v)))
        names = names if listed is None else [*listed]
        places = {value: place for place, value in enumerate(names)}
        coded = [(row[0], places[row[1]], *row[2:]) for row in found if row[1] in places]
        return replace(cls.read(coded, caps, cut), names=tuple(names))

    @classmethod
    def read(cls, found: Sequence[tuple[Any, ...]], caps: Caps | None, cut: int = 0) -> Histograms:
        """Rows of one of `Groups.cells`, in whatever order they came, clipped to the cap that was chosen.

        A row has weight 1 at row level. At user level it is that of the sums, in units of 1/(G·H): G·H in the buckets
        up to the cap, C·H for each part above.
        """
        if not found:
            return cls({}, {})
        buckets, cells, plain, divided, *names = zip(*found, strict=True)
        factors = (1, 0) if caps is None else (G * H, caps.weight(cut))
        # Sums past int64 are kept as they are: slower, and exact.
        kind: type = np.int64 if sum(plain) * factors[0] + sum(divided) * factors[1] < FITS else object
        counts: Any = np.array(plain, dtype=kind)
        shares: Any = np.array(divided, dtype=kind)
        weights: Any = np.where(np.array(buckets) <= cut, counts * factors[0], shares * factors[1])
        index: dict[Key, int] = {}
        listed = zip(*names, strict=True) if names else ((),) * len(found)
        groups = np.array([index.setdefault(key, len(index)) for key in listed])
        places = np.array(cells, dtype=np.int64)
        order = np.lexsort((places, groups))
        order = order[weights[order] > 0]
        groups, places, weights = groups[order], places[order], weights[order]
        starts = np.flatnonzero((np.diff(groups, prepend=-1) != 0) | (np.diff(places, prepend=-1) != 0))
        sums = np.add.reduceat(weights, starts) if starts.size else weights
        groups, places = groups[starts], places[starts]
        cuts = np.searchsorted(groups, np.arange(len(index) + 1)).tolist()
        spans = {key: slice(cuts[i], cuts[i + 1]) for key, i in index.items()}
        return cls({key: places[s] for key, s in spans.items()}, {key: sums[s] for key, s in spans.items()})

    def of(self, key: Key) -> Ranked:
        """One group; one that is absent has no rows."""
        return Ranked.of_weights(*self.held(key))

    def held(self, key: Key) -> tuple[Integers, Any]:
        """The occupied cells of one group, and their weights."""
        return self.cells.get(key, NOTHING), self.weights.get(key, NOTHING)

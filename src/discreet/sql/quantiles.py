"""Quantiles of groups: MEDIAN, QUANTILE, PERCENTILE_CONT, MIN and MAX in SQL.

A measure's values are placed in cells (`Cells`), chosen from declared facts alone; the engine counts rows by group and
cell, for each bucket of units both plainly and divided by their norms, exactly as it sums (`statement.py`). A group's
rows then have weights in whole numbers, and the answer is drawn by the law of `mechanisms/ranks.py`.

Guarantee. A unit whose rows weigh w_k in group k moves the log-odds of a draw of range e for that group apart by at
most e·w_k/C, and ‖w‖ ≤ C. There are two ways to add that up over groups and draws (`Composition`):

- "sum": all draws together are one `BoundedRange(ε)`. In ℓ1 the ranges of a draw over all groups sum to e; in ℓ2 to
  √K·e over K groups.
- "squares" (ℓ2): the squares of the ranges sum to ε², which is what `BoundedRanges` says: less for many groups, where
  a δ is allowed.

Where neighbours exchange a unit, it is a removal and an addition: 2·C. Every declared group is drawn for, whether it
has rows or not.

An interval costs two more draws. A quantile at rank q·T has ends drawn τ below and above it, τ so large that an end is
on the wrong side with probability at most half of 1 − `LEVEL`, whatever the data: places on the wrong side are τ ranks
from the target. Groups too small for τ have the bounds as ends. MIN and MAX aim τ inside the data and so are themselves
ends, of an interval that reaches to the bound; nothing private is known beyond that.

>>> cells = Cells.of(Bounds(0, 120), whole=True, keys=10)
>>> cells.line.size, cells.sql("x")[:48]
(121, 'CASE WHEN x BETWEEN 0.0 AND 120.0 THEN CAST(LEAS')
>>> plan = QuantilePlan.best((Rank.quantile(Fraction(1, 2), cells),), "l1", PureDP(1), keys=1)
>>> plan.events
(BoundedRange(epsilon=Fraction(1, 1)),)
>>> ages = Histograms({(): np.arange(20, 60)}, {(): np.full(40, 1000)})
>>> [drawn] = plan.release([ages], [()], 1, Entropy.for_tests(0))[0]
>>> drawn
Drawn(value=39.0, low=39.0, high=40.0)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, Literal

import numpy as np

from discreet.accounting.conversions import affordable
from discreet.core import events
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.rounding import float_down, float_up, log_up, shorten_down, shorten_up, sqrt_down, sqrt_up
from discreet.mechanisms.line import Line
from discreet.mechanisms.ranks import Question, Ranked, Target, draw, slopes
from discreet.noise.entropy import Entropy
from discreet.noise.shape import Integers
from discreet.sql.caps import Caps, G, H
from discreet.sql.statistics import held

__all__ = ["CLIPPED", "LEVEL", "Cells", "Composition", "Drawn", "Histograms", "QuantilePlan", "Rank", "cells_sql"]

Key = tuple[Any, ...]
Norm = Literal["l1", "l2"]
Composition = Literal["sum", "squares"]

LEVEL = Fraction(19, 20)
"""The level of intervals, fixed when they are drawn: at lower levels they are the same, at higher ones the bounds."""
CLIPPED = Fraction(1, 500)
"""The part of 1 − LEVEL that is left to the bound on what clipping took away."""
MISSED = 1 - LEVEL - CLIPPED
MOST_CELLS, FEWEST_CELLS, ALL_CELLS = 1 << 16, 1 << 8, 1 << 20
"""Cells of one group, and of all groups together unless there are very many."""
MANY = 1 << 40
"""As many groups as a unit can be in."""
SHARES: dict[Composition, tuple[Fraction, Fraction]] = {
    "sum": (Fraction(1, 2), Fraction(1, 4)),
    "squares": (Fraction(4, 5), Fraction(21, 50)),
}
"""The share of a value's ε that goes to the value and to each end: they add up to 1, or their squares do."""
OUTWARD = Fraction(3, 4)
"""The steeper side's share of the slope for MIN and MAX."""
LARGEST = sys.float_info.max
FITS = 1 << 62
SHORT = 32
"""Bits of slopes and distances."""
DOUBLE = Fraction(1, 1 << 50)
"""More than the rounding of a cell number in doubles can move its edges, as a part of the width of the bounds."""


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


def cells_sql(cells: Sequence[str], keys: Sequence[str], *, rows: str = "r", units: str | None = "q") -> list[str]:
    """One SELECT for each column of cell numbers, which gives (bucket, cell, plain count, divided count, keys…).

    `rows` has the keys and cells, and u where there are units; `units` has u, b (the bucket of its norm) and g (its
    weight for C = 1, in parts), as the statement's CTEs do. At row level `units` is None.
    """
    found = []
    for cell in cells:
        grouped = ", ".join([*(["b"] if units else []), cell, *keys])
        shown = ", ".join(["b" if units else "0", cell, "COUNT(*)", "SUM(g)" if units else "0", *keys])
        source = f"{rows} JOIN {units} USING (u)" if units else rows
        found.append(f"SELECT {shown} FROM {source} WHERE {cell} IS NOT NULL GROUP BY {grouped}")
    return found


@dataclass(frozen=True)
class Histograms:
    """For each group its occupied cells in ascending order, and their weights."""

    cells: Mapping[Key, Integers]
    weights: Mapping[Key, Any]

    @classmethod
    def read(cls, found: Sequence[tuple[Any, ...]], caps: Caps | None, cut: int = 0) -> Histograms:
        """Rows of one of `cells_sql`, in whatever order they came, clipped to the cap that was chosen.

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
        if key not in self.cells:
            return Ranked.of_weights(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return Ranked.of_weights(self.cells[key], self.weights[key])


@dataclass(frozen=True)
class Rank:
    """What is asked of one measure: a quantile with both ends, or the least or the largest, which is an end itself."""

    kind: Literal["quantile", "min", "max"]
    q: Fraction
    cells: Cells

    @classmethod
    def quantile(cls, q: Fraction, cells: Cells) -> Rank:
        """The value at q times the number of rows; at the very ends, the least and the largest."""
        return cls("min" if q == 0 else "max" if q == 1 else "quantile", q, cells)

    @classmethod
    def least(cls, cells: Cells) -> Rank:
        """MIN."""
        return cls("min", Fraction(0), cells)

    @classmethod
    def largest(cls, cells: Cells) -> Rank:
        """MAX."""
        return cls("max", Fraction(1), cells)


@dataclass(frozen=True)
class Drawn:
    """A released value, and ends that hold the noiseless value of the weighed rows at `LEVEL`, each end alone at half
    of what that leaves."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class _Draw:
    """One draw for every group: where its target lies, in weight of one unit's whole movement, and its slopes."""

    rank: Rank
    past: Fraction
    short: Fraction
    offset: Fraction

    @property
    def ends(self) -> tuple[bool, bool]:
        """An end towards which the target is moved is open."""
        return self.offset < 0, self.offset > 0

    def question(self, data: Ranked, movement: int, lost: Fraction) -> Question:
        """The draw on one group, where one unit can move weights by `movement`; `lost` moves an end farther out."""
        away = self.offset * movement
        if self.rank.kind == "quantile" and self.offset:
            away += self.rank.q * lost if self.offset > 0 else (self.rank.q - 1) * lost
        target = Target(self.rank.q * data.total + away, self.past / movement, self.short / movement)
        return Question(data, target, 0, self.rank.cells.line.size - 1, *self.ends)


@dataclass(frozen=True)
class QuantilePlan:
    """All quantiles of one query: what they cost, and their release.

    `norm` is that of the cap on a unit's weights, `epsilon` what the composition adds up to over all draws and groups,
    and `keys` the number of groups where they are declared. At row level a unit is in one group, and keys=1 will do.
    """

    ranks: tuple[Rank, ...]
    norm: Norm
    composition: Composition
    epsilon: Fraction
    keys: int | None
    changes: int = 1
    with_intervals: bool = True

    def __post_init__(self) -> None:
        if self.norm == "l1" and self.composition == "squares":
            raise InvalidArgument("composition", "squares", "'sum' where the norm is ℓ1", "sum the ranges")
        if self.norm == "l2" and self.composition == "sum" and self.keys is None:
            raise InvalidArgument(
                "keys", None, "declared where ranges in ℓ2 are summed", "declare them, or use squares"
            )

    @classmethod
    def best(
        cls,
        ranks: Sequence[Rank],
        norm: Norm,
        budget: PureDP | ApproxDP,
        keys: int | None,
        changes: int = 1,
        *,
        with_intervals: bool = True,
    ) -> QuantilePlan:
        """The composition that leaves each value the larger slope within the budget."""
        plans = []
        if norm == "l1" or keys is not None:
            plans.append(cls(tuple(ranks), norm, "sum", budget.epsilon, keys, changes, with_intervals))
        if norm == "l2" and isinstance(budget, ApproxDP) and budget.delta > 0:
            # A little less, so that accountants that search for ε give no more than was asked for.
            ranges = sqrt_down(8 * affordable(budget, ZCDP).rho) * (1 - Fraction(1, 1 << 14))
            plans.append(cls(tuple(ranks), norm, "squares", ranges, keys, changes, with_intervals))
        if not plans:
            raise InvalidArgument("keys", None, "declared under a PureDP budget", "declare the values of the keys")
        return max(plans, key=lambda plan: max((draws[0].past for draws in plan._draws), default=Fraction(0)))

    @property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run, whatever the data."""
        many = sum(len(group) for group in self._draws)
        if not many:
            return ()
        if self.composition == "sum":
            return (events.BoundedRange(self.epsilon),)
        return (events.BoundedRanges(self.epsilon**2, MANY if self.keys is None else max(self.keys, 1) * many),)

    @cached_property
    def _draws(self) -> tuple[tuple[_Draw, ...], ...]:
        """For each rank its draws: the value, and where there is an interval its lower and upper end."""
        many = Fraction(max(len(self.ranks), 1))
        each = self.epsilon / self.changes / (many if self.composition == "sum" else sqrt_up(many))
        if self.norm == "l2" and self.composition == "sum":
            each /= sqrt_up(Fraction(max(self.keys or 1, 1)))
        return tuple(self._draws_of(rank, each) for rank in self.ranks)

    def _draws_of(self, rank: Rank, epsilon: Fraction) -> tuple[_Draw, ...]:
        if rank.kind != "quantile":
            outward = OUTWARD if rank.kind == "max" else 1 - OUTWARD
            past, short = _slopes(rank.q, epsilon, outward)
            inside = _reach(rank, MISSED, max(past, short))
            return (_Draw(rank, past, short, -inside if rank.kind == "max" else inside),)
        if not self.with_intervals:
            return (_Draw(rank, *_slopes(rank.q, epsilon), Fraction(0)),)
        for_value, for_end = SHARES[self.composition]
        value = _Draw(rank, *_slopes(rank.q, epsilon * for_value), Fraction(0))
        past, short = _slopes(rank.q, epsilon * for_end)
        ends = (-_reach(rank, MISSED / 2, past), _reach(rank, MISSED / 2, short))
        return value, _Draw(rank, past, short, ends[0]), _Draw(rank, past, short, ends[1])

    def accuracy(self, index: int, beta: Fraction, movement: int) -> float:
        """With probability 1 − β the value covers a rank at most this far, in weight, from the one its draw aims at."""
        aimed = self._draws[index][0]
        size = aimed.rank.cells.line.size + 1
        return float_up(log_up(size / beta) / min(aimed.past, aimed.short) * movement)

    def release(
        self,
        histograms: Sequence[Histograms],
        keys: Sequence[Key],
        movement: int,
        entropy: Entropy,
        lost: Fraction = Fraction(0),
    ) -> tuple[tuple[Drawn, ...], ...]:
        """For each rank and each of the keys, declared or shown by other means, a value with its ends.

        `movement` is how far a unit can move weights (`Caps.movement` of bound 1; 1 at row level), and `lost` a bound
        on the weight that clipping took from any group, so that ends hold for the rows as they were.
        """
        released = []
        for index, draws in enumerate(self._draws):
            groups = [histograms[index].of(key) for key in keys]
            questions = [each.question(group, movement, lost) for each in draws for group in groups]
            places = draw(questions, entropy).reshape(len(draws), len(keys)).T.tolist()
            released.append(tuple(_drawn(self.ranks[index], found) for found in places))
        return tuple(released)


def _slopes(q: Fraction, epsilon: Fraction, lean: Fraction = Fraction(1, 2)) -> tuple[Fraction, Fraction]:
    """Slopes in numbers short enough to be quick."""
    past, short = slopes(q, epsilon, lean)
    return shorten_down(past, SHORT), shorten_down(short, SHORT)


def _reach(rank: Rank, chance: Fraction, slope: Fraction) -> Fraction:
    """The distance at which all cells together are drawn with at most this chance."""
    return shorten_up(log_up(rank.cells.line.size / chance) / slope, SHORT)


def _drawn(rank: Rank, places: Sequence[int]) -> Drawn:
    cells, bounds = rank.cells, rank.cells.line.bounds
    low, high = float(bounds.lower), float(bounds.upper)
    value = cells.value(places[0])
    if rank.kind == "max":
        return Drawn(value, cells.value(places[0], -1), high)
    if rank.kind == "min":
        return Drawn(value, low, cells.value(places[0], 1))
    if len(places) == 1:
        return Drawn(value, low, high)
    # The three draws are independent, so an end can pass the value; the ends are what is promised.
    ends = sorted((cells.value(places[1], -1), cells.value(places[2], 1)))
    return Drawn(min(max(value, ends[0]), ends[1]), *ends)

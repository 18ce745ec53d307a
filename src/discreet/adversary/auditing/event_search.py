"""The search for the event that tells D from D′ best.

On the learning runs every partition fixes its cells and ranks them by likelihood ratio; the nested unions along
that ranking (and along the number line, where there is one) are the candidate events, in both directions and with
their complements. On the choosing runs each candidate is judged by the lower bound on ε that it can be expected to
reach in the final test: the rates seen are first moved against us by their own uncertainty, so that a rare event
is not picked for a lucky count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.auditing.confidence_bounds import proportion_high, proportion_low, wilson
from discreet.adversary.auditing.features import (
    Reading,
    column,
    combined,
    fingerprint,
    hidden,
    logistic,
    residues,
    score,
)
from discreet.adversary.auditing.outcomes import Outcomes, Table
from discreet.adversary.auditing.partitions import Cells, Cuts, Grid, Met, Partition, Values
from discreet.adversary.auditing.power import Terms

__all__ = ["Candidate", "best_events", "partitions"]

_LONG = 240
"""Characters that describe an event; the rest is cut."""
_KINDS = 6
"""Kinds of output whose columns are searched; all kinds count as events in themselves."""
_WIDE = 16
"""Coordinates searched one by one: those that differ most between the two sides."""
_JOINED = 6
"""Coordinates searched in pairs."""
_DOUBT = 0.02
"""One-sided doubt applied to the rates seen while choosing."""
_REPEATS = 16
"""Exact values are searched if at least this many of them come again."""
_SPARSE = 4
"""A cell with fewer counts than this says nothing about its own ratio."""
_PLAINNESS = 0.995
"""What a promise is worth when the event is not a plain threshold: near ties go to the event that reads better."""
_PER_ORDER = 6
"""Events of one ranking that are judged by the exact bounds after a quick one."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An event, the cells ever met, which data set the event favours, the ε it promises, the rates it was chosen for
    (first where it is likelier), and all cells, those first that speak for D most strongly."""

    partition: Partition
    chosen: NDArray[np.bool_]
    met: NDArray[np.bool_]
    favours_d: bool
    promise: float
    rates: tuple[float, float]
    ranking: NDArray[np.intp]

    @property
    def words(self) -> str:
        """The event in plain words, by its complement where that is shorter."""
        plain, negated = self.partition.describe(self.chosen), self.partition.describe(self.met & ~self.chosen)
        words = plain if len(plain) <= len(negated) + 6 else f"not ({negated})"
        return words if len(words) <= _LONG else f"{words[: _LONG - 1]}…"


def partitions(left: Outcomes, right: Outcomes) -> Iterator[Partition]:
    """Every partition worth trying, learned from runs on D (`left`) and D′ (`right`)."""
    sizes = dict.fromkeys([*left.tables, *right.tables], 0)
    for outcomes in (left, right):
        for kind, table in outcomes.tables.items():
            sizes[kind] += table.rows
    kinds = sorted(sizes, key=lambda kind: (-sizes[kind], kind))
    yield Partition(kinds, None, None)
    for kind in kinds[:_KINDS]:
        some = left.tables.get(kind) or right.tables[kind]
        empty = Table(some.names, tuple(c[:0] for c in some.columns), 0)
        for cells in _cells(left.tables.get(kind, empty), right.tables.get(kind, empty)):
            yield Partition(kinds, kind, cells)
    for name, table in left.extra.items():
        for cells in _cells(table, right.extra[name]):
            yield Partition(kinds, None, cells, feature=name)


def best_events(
    tried: Iterator[Partition],
    learned: tuple[Outcomes, Outcomes],
    chosen_on: tuple[Outcomes, Outcomes],
    terms: Terms,
    finalists: int,
) -> list[Candidate]:
    """The most promising event of each of the most promising partitions."""
    best = [_best_of(partition, learned, chosen_on, terms) for partition in tried]
    return sorted(best, key=lambda candidate: -candidate.promise)[:finalists]


def _cells(left: Table, right: Table) -> Iterator[Cells]:
    """Partitions of one kind of output."""
    single = {}
    for index in _most_different(left, right):
        numeric = left.columns[index].dtype.kind in "if"
        readings = [*hidden(left, index)]
        if numeric:
            single[index] = _cuts(column(left, index), left, right)
            yield single[index]
            if len(single[index].cuts) > 64:
                readings += residues(left, index, (left.columns[index], right.columns[index]))
        for reading in readings:
            fine = _cuts(reading, left, right)
            if len(fine.cuts) < 2:
                continue
            yield fine
            if numeric:
                yield Grid(_cuts(column(left, index), left, right, 24), fine)
        if not numeric or not _every_value_is_a_cell(single[index], left, right):
            yield from _exact_values(left, right, (index,))
    if len(left.columns) > 1:
        yield from _exact_values(left, right, tuple(range(len(left.columns))))
    yield from _joined(single, left, right)


def _joined(single: dict[int, Cuts], left: Table, right: Table) -> Iterator[Cells]:
    """Partitions by several numeric columns at once."""
    for reading in combined(left):
        yield _cuts(reading, left, right)
    for pair in combinations(sorted(list(single)[:_JOINED]), 2):
        yield Grid(*(_cuts(column(left, index), left, right, 12) for index in pair))
    if len(single) > 1:
        yield _cuts(_naive_bayes(list(single.values()), left, right), left, right)
        linear = logistic(left, right, list(single))
        if linear is not None:
            yield _cuts(linear, left, right)


def _cuts(reading: Reading, left: Table, right: Table, fineness: int = 128) -> Cuts:
    return Cuts.learn(reading, reading.read(left), reading.read(right), fineness)


def _exact_values(left: Table, right: Table, columns: tuple[int, ...]) -> Iterator[Cells]:
    keys = np.concatenate([fingerprint(table, columns) for table in (left, right)])
    if len(keys) - len(np.unique(keys)) >= _REPEATS:
        yield Values.learn(left, right, columns)
        yield Met.learn(left, right, columns)


def _every_value_is_a_cell(cuts: Cuts, left: Table, right: Table) -> bool:
    return all(bool((cuts.codes(table) % 2 == 1).all()) for table in (left, right))


def _most_different(left: Table, right: Table, rows: int = 4000) -> list[int]:
    """The columns to search, those whose distributions differ most first."""
    if len(left.columns) <= _JOINED or not left.rows or not right.rows:
        return list(range(len(left.columns)))[:_WIDE]
    gaps = []
    for ours, theirs in zip(left.columns, right.columns, strict=True):
        a, b = ours[:rows], theirs[:rows]
        values, place = np.unique(np.concatenate([a, b]), return_inverse=True)
        laws = [np.bincount(side, minlength=len(values)) / len(side) for side in np.split(place, [len(a)])]
        gaps.append(float(np.abs(np.cumsum(laws[0] - laws[1])).max()))
    return sorted(np.argsort(gaps, kind="stable")[::-1][:_WIDE].tolist(), key=lambda index: -gaps[index])


def _naive_bayes(cuts: list[Cuts], left: Table, right: Table) -> Reading:
    ratios = []
    for cut in cuts:
        ours, theirs = (np.bincount(cut.codes(table), minlength=cut.cells) + 1.0 for table in (left, right))
        ratios.append(np.log(ours / ours.sum()) - np.log(theirs / theirs.sum()))
    return score([cut.codes for cut in cuts], ratios)


def _best_of(
    partition: Partition, learned: tuple[Outcomes, Outcomes], chosen_on: tuple[Outcomes, Outcomes], terms: Terms
) -> Candidate:
    ours, theirs = (partition.counts(outcomes) for outcomes in learned)
    counts = [partition.counts(outcomes) for outcomes in chosen_on]
    ratio = np.log(ours + 0.5) - np.log(theirs + 0.5)
    inner = partition.inner
    weight = 1.0 if inner is None or (isinstance(inner, Cuts) and inner.reading.plain) else _PLAINNESS
    orders = []
    if isinstance(inner, Cuts):
        orders.append((np.arange(partition.cells), weight))
        ratio = ratio[_nearest(inner, ours + theirs >= _SPARSE)[0]]
    if inner is not None:
        weight *= _PLAINNESS
    ranking = np.argsort(-ratio, kind="stable")
    orders.append((ranking, weight))
    promise, favours_d, chosen = max(
        (_best_along(order, counts, chosen_on[0].size, weight, terms) for order, weight in orders),
        key=lambda found: found[0],
    )
    met = ours + theirs + counts[0] + counts[1] > 0
    if isinstance(inner, Cuts):
        chosen = np.logical_and.reduce([chosen[cells] for cells in _nearest(inner, met)])
        met[: inner.nan] = True
    event = chosen & met
    ours_seen, theirs_seen = (int(side[event].sum()) / chosen_on[0].size for side in counts)
    rates = (ours_seen, theirs_seen) if favours_d else (theirs_seen, ours_seen)
    return Candidate(partition, event, met, favours_d, promise, rates, ranking)


def _nearest(cuts: Cuts, known: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each cell of a number line the nearest known one below and above (itself if known); other cells stay."""
    cells, line = np.arange(len(known)), slice(0, cuts.nan)
    places = np.flatnonzero(known[line])
    below, above = cells.copy(), cells.copy()
    if len(places):
        below[line] = places[np.maximum(np.searchsorted(places, cells[line], side="right") - 1, 0)]
        above[line] = places[np.minimum(np.searchsorted(places, cells[line]), len(places) - 1)]
    return below, above


def _best_along(
    order: NDArray[np.intp], counts: list[NDArray[np.int64]], seen: int, weight: float, terms: Terms
) -> tuple[float, bool, NDArray[np.bool_]]:
    """The best event among the beginnings of `order` and their complements: promise, direction, cells."""
    ours, theirs = (np.cumsum(side[order]).astype(np.float64) for side in counts)
    p = np.concatenate([ours, theirs, seen - ours, seen - theirs])
    q = np.concatenate([theirs, ours, seen - theirs, seen - ours])
    quick = _quick(p, q, seen, terms)
    top = np.argsort(-quick, kind="stable")[:_PER_ORDER]
    low = terms.trials * proportion_low(p[top], seen, _DOUBT)
    high = terms.trials * proportion_high(q[top], seen, _DOUBT)
    promises = [terms.promise(pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]
    best = int(np.argmax(promises))
    way, cut = divmod(int(top[best]), len(order))
    chosen = np.full(len(order), way >= 2)
    chosen[order[: cut + 1]] = way < 2
    return weight * float(promises[best]), way in (0, 2), chosen


def _quick(p: NDArray[np.float64], q: NDArray[np.float64], seen: int, terms: Terms) -> NDArray[np.float64]:
    from scipy.special import ndtri

    doubt, strict = -float(ndtri(_DOUBT)), -float(ndtri(terms.alpha))
    low, _ = wilson(terms.trials * wilson(p, seen, doubt)[0], terms.trials, strict)
    _, high = wilson(terms.trials * wilson(q, seen, doubt)[1], terms.trials, strict)
    return np.log(np.maximum(low - terms.delta, 1e-300)) - np.log(high)

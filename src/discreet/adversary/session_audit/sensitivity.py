"""How far one unit moves what the engine gives, as a part of what the noise is made for.

`moved` compares a planned question's sums on two neighbouring data sets, exactly and before any noise, at several of
the norms that could be chosen. It raises a `CheckFailed` where anything moves farther than is declared or paid for, and
gives the largest part of the charge that the two used up: 1 is all of it, so what comes near has tested the noise.

Checked are each statistic, all of them together against the events, the searches for norms, the cells of quantiles, the
tally of what clipping takes, and how often a group with one unit in it would show.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.core.events import Event, Gaussian, Laplace, Pure
from discreet.session.sql_question import Asked
from discreet.sql.bounding.clipping_norms import G, H, Weighing
from discreet.sql.measuring import clipping_loss as tally
from discreet.sql.measuring.clipping_search import ClippingSearch
from discreet.sql.measuring.measurement import TYPICAL_KEYS, Measurement
from discreet.sql.statement.results import Groups

__all__ = ["NO_CUTS", "CheckFailed", "Cuts", "cuts_to_try", "moved", "tallied", "weighed_cells"]

Key = tuple[Any, ...]
Cuts = tuple[int, ...]
Counts = Callable[[Mapping[tuple[int, int], int]], Mapping[tuple[int, int], int]]
NO_CUTS: Cuts = (0,) * len(Weighing)
TRIED = (0, 2, 6, 12, 40)
"""Candidates for norms at which movements are measured; those there are."""


class CheckFailed(AssertionError):
    """A check that failed: which one, and why."""

    def __init__(self, check: str, reason: str) -> None:
        super().__init__(f"({check}) {reason}")
        self.check, self.reason = check, reason


def cuts_to_try(measurement: Measurement) -> set[Cuts]:
    """Choices of norms, one for each weighing."""
    if measurement.weights is None:
        return {NO_CUTS}
    tops = [measurement.top(weighing) for weighing in Weighing]
    return {tuple(min(cut, top) for top in tops) for cut in TRIED}


def moved(
    planned: Asked, before: Groups, after: Groups, cuts: Iterable[Cuts], counts: Counts = lambda counts: counts
) -> float:
    """The part of the charge that two neighbours use up; what is beyond it is a `CheckFailed`. The counts that searches
    for norms read go through `counts`, for whoever wants to know when they are read."""
    measurement = planned.measurement
    for name in ("by_rows", "by_groups"):
        one, other = getattr(before, name), getattr(after, name)
        difference = sum(abs(one.get(place, 0) - other.get(place, 0)) for place in {*one, *other})
        if difference > measurement.changes:
            raise CheckFailed("movement", f"{name} moves by {difference}")
    keys = [*before.keys | after.keys]
    _moved_search(measurement, before, after, len(planned.listed or ()) or TYPICAL_KEYS, counts)
    parts = [0.0]
    for each in cuts:
        parts.append(_moved_totals(measurement, before, after, keys, each))
        parts.append(_moved_cells(measurement, before, after, each))
        if measurement.threshold_delta is not None:
            parts.append(_alone(measurement, before, before.keys - after.keys, each))
            parts.append(_alone(measurement, after, after.keys - before.keys, each))
    return max(parts)


def _moved_totals(measurement: Measurement, before: Groups, after: Groups, keys: list[Key], cuts: Cuts) -> float:
    """Each statistic moves no farther than is declared, and all together no farther than the events say."""
    shares, part = Fraction(0), 0.0
    power = 2 if measurement.norm == "l2" else 1
    pairs = zip(measurement.totals(before, keys, cuts), measurement.totals(after, keys, cuts), strict=True)
    for j, (one, other) in enumerate(pairs):
        statistic = measurement.statistics[j]
        apart = [abs(a - b) for a, b in zip(one, other, strict=True)]
        length = sum(a**power for a in apart)
        declared = statistic.bound * G * H
        if measurement.weights is not None:
            declared = measurement.weights.caps(statistic.weighing).movement(statistic.bound, cuts[statistic.weighing])
        if length > (declared * measurement.changes) ** power:
            raise CheckFailed("movement", f"{statistic.kind} moves by {apart} at cuts {cuts}, declared {declared}")
        if statistic.values:
            part = max(part, _moved_by_values(measurement, statistic, apart))
        else:
            shares += length / measurement.deviation(j, cuts[statistic.weighing]) ** power
    shares += Fraction(tallied(measurement, before, after, cuts[0])) ** 2
    # Ranks pay for noise of their own.
    charged = _charged(replace(measurement, quantiles=None).events, measurement.norm)
    if shares > charged:
        raise CheckFailed("movement", f"all statistics together move farther than the events say, at cuts {cuts}")
    return max(part, float(shares / charged) ** (1 / power) if charged else 0.0)


def _moved_by_values(measurement: Measurement, statistic: Any, apart: Sequence[int]) -> float:
    """A sum with noise by values moves by one of them, for each unit that differs, or not at all."""
    steps = {abs(step) * G * H for step in statistic.additions}
    changed = [move for move in apart if move]
    if measurement.changes == 1 and (len(changed) > 1 or not {*changed} <= steps):
        raise CheckFailed("movement", f"{statistic.kind} moves by {changed}, which is no declared value")
    return 1.0 if changed else 0.0


def _charged(events: Sequence[Event], norm: str) -> Fraction:
    """Sensitivity over noise of the events that pay for sums: squared for Gaussian noise, summed for Laplace noise."""
    if norm == "l2":
        paid = [Fraction(e.squared_sensitivity) / e.variance for e in events if isinstance(e, Gaussian)]
    else:
        paid = [Fraction(e.sensitivity) / e.scale for e in events if isinstance(e, Laplace)]
    return sum(paid, Fraction(0))


def _search(
    measurement: Measurement, groups: Groups, weighing: Weighing, keys: int, counts: Counts = lambda counts: counts
) -> ClippingSearch:
    by_groups = {(bucket, 0): number for bucket, number in groups.by_groups.items()}
    units = by_groups if weighing == Weighing.GROUPS else groups.by_rows
    search = measurement.clipping_search(counts(units), weighing, keys)
    if search is None:
        raise CheckFailed("movement", "a norm is chosen without a search")
    return search


def _moved_search(measurement: Measurement, before: Groups, after: Groups, keys: int, counts: Counts) -> None:
    """The search for a norm moves by no more than sparse vector is told, one way if it relies on it, at its price."""
    spent = Fraction(0)
    for weighing in measurement.searched:
        if not measurement.top(weighing):
            continue
        one, other = (_search(measurement, groups, weighing, keys, counts) for groups in (before, after))
        apart = [a - b for a, b in zip(one.questions, other.questions, strict=True)]
        if max(map(abs, apart)) > one.mechanism.sensitivity:
            raise CheckFailed("movement", f"the search for a norm moves by {apart}")
        if one.mechanism.monotonic and min(apart) < 0 < max(apart):
            raise CheckFailed("movement", f"the search for a norm moves both ways: {apart}")
        spent += one.mechanism.loss.epsilon
    paid = sum((event.epsilon for event in measurement.events if isinstance(event, Pure)), Fraction(0))
    if spent > paid:
        raise CheckFailed("movement", f"searches for norms cost {spent}, paid {paid}")


def _moved_cells(measurement: Measurement, before: Groups, after: Groups, cuts: Cuts) -> float:
    """A unit moves no more weight between the cells of quantiles than their draws are made for."""
    most = measurement.changes * G * H
    if measurement.weights is not None:
        most = measurement.changes * measurement.weights.rows.movement(1, cuts[0])
    part = 0.0
    for place in range(len(before.cells)):
        one, other = (weighed_cells(measurement, groups, place, cuts) for groups in (before, after))
        by_group: dict[Key, int] = defaultdict(int)
        for key, cell in {*one, *other}:
            by_group[key] += abs(one.get((key, cell), 0) - other.get((key, cell), 0))
        lengths = by_group.values()
        length = sum(lengths) if measurement.norm == "l1" else math.isqrt(sum(n * n for n in lengths))
        if length > most:
            raise CheckFailed("movement", f"cells move by {length} at cuts {cuts}, declared {most}")
        part = max(part, length / most)
    return part


def weighed_cells(measurement: Measurement, groups: Groups, place: int, cuts: Cuts) -> Mapping[tuple[Key, Any], int]:
    """The weight of one quantile's rows in each group and cell, in units of 1/(G·H)."""
    found: dict[tuple[Key, Any], int] = defaultdict(int)
    for bucket, cell, count, divided, *key in groups.cells[place]:
        if measurement.weights is None or bucket <= cuts[0]:
            found[tuple(key), cell] += count * G * H
        else:
            found[tuple(key), cell] += divided * measurement.weights.rows.weight(cuts[0])
    return found


def _alone(measurement: Measurement, groups: Groups, keys: set[Key], cuts: Cuts) -> float:
    """Groups that only one unit is in show up, any of them, with no more than the chance that is paid for."""
    if not keys:
        return 0.0
    j = measurement.units_place
    most = max(measurement.totals(groups, [*keys], cuts)[j])
    cut = cuts[measurement.statistics[j].weighing]
    away = (math.ceil(measurement.threshold(cut)) - most) / float(measurement.deviation(j, cut))
    tail = math.erfc(away / math.sqrt(2)) / 2 if measurement.norm == "l2" else math.exp(-away) / 2
    assert measurement.threshold_delta is not None
    part = len(keys) * tail * measurement.changes / float(measurement.threshold_delta)
    if part > 1 + 1e-6:
        raise CheckFailed("movement", f"{len(keys)} groups of one unit would show too often at cuts {cuts}")
    return part


def tallied(measurement: Measurement, first: Groups, second: Groups, cut: int) -> float:
    """How far the tally of what clipping takes moved, in deviations of its noise, at the cap where that is farthest."""
    if not measurement.tallied or measurement.weights is None:
        return 0.0
    caps = measurement.weights.rows
    by_octave, of_pair = tally.noise(measurement.ratio, measurement.changes)
    units = zip(tally.counted(first.octaves), tally.counted(second.octaves), strict=True)
    counted = math.hypot(*(one - other for one, other in units)) / float(by_octave * G * H)
    pairs = []
    for octave in range(tally.OCTAVES):
        each = zip(*(tally.exact(groups.octaves, caps, cut, octave) for groups in (first, second)), strict=True)
        pairs.append(math.hypot(*(one - other for one, other in each)) / float(of_pair * tally.movement(octave)))
    return math.hypot(counted, max(pairs))

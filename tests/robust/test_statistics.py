"""The ladders of spreads keep their two promises on all small data sets, and planted wrong ones do not."""

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import Bounds, InvalidArgument
from discreet.robust import (
    InterquartileRange,
    MedianDeviation,
    OrderStatistic,
    TrimmedMean,
    local_sensitivity,
)
from discreet.robust.statistics import Sample

from .worlds import every, neighbours, sample

CASES: list[tuple[Any, str]] = [
    (statistic, relation)
    for statistic in (
        OrderStatistic(),
        OrderStatistic("0.25"),
        OrderStatistic("0.9"),
        InterquartileRange(),
        TrimmedMean(0),
        TrimmedMean("0.25"),
        TrimmedMean("0.4"),
        MedianDeviation(),
    )
    for relation in statistic.relations
]


def broken_promises(statistic: Any, relation: str, top: int, most: int, steps: int = 4) -> int:
    """How many pairs of neighbours have f or a spread farther apart than the ladder allows."""
    found = 0
    ladders = {}
    for rows in every(top, most + 1):
        held = sample(rows, top)
        ladders[rows] = [statistic.spread(held, k, relation) for k in range(steps + 1)], statistic.value(held)
    for rows in every(top, most):
        spreads, value = ladders[rows]
        for other in neighbours(rows, top, relation):
            theirs, moved = ladders[other]
            found += abs(moved - value) > spreads[0]
            found += any(theirs[k] > spreads[k + 1] or spreads[k] > theirs[k + 1] for k in range(steps))
        found += spreads != sorted(spreads)
    return found


@pytest.mark.parametrize(("statistic", "relation"), CASES, ids=str)
def test_ladders_hold_on_every_small_data_set(statistic: Any, relation: str) -> None:
    assert broken_promises(statistic, relation, top=4, most=5) == 0


@dataclass(frozen=True)
class Short(OrderStatistic):
    """A window one rank too short."""

    def spread(self, sample: Sample, k: int, neighbours: Any) -> int:
        return super().spread(sample, k - 1, neighbours) if k else 0


@dataclass(frozen=True)
class Lopsided(InterquartileRange):
    """The upper quartile's spread only."""

    def spread(self, sample: Sample, k: int, neighbours: Any) -> int:
        return OrderStatistic("0.75").spread(sample, k, neighbours)


@dataclass(frozen=True)
class Fixed(MedianDeviation):
    """Deviations from a median that stays."""

    def _centres(self, sample: Sample, k: int) -> tuple[int, int]:
        return super()._centres(sample, 0)


@pytest.mark.parametrize(
    ("wrong", "relation"),
    [(Short(), "replace"), (Lopsided(), "add_remove"), (Fixed(), "replace"), (TrimmedMean("0.4"), "add_remove")],
)
def test_wrong_ladders_are_caught(wrong: Any, relation: str) -> None:
    assert broken_promises(wrong, relation, top=4, most=5)


@pytest.mark.parametrize("statistic", [OrderStatistic(), TrimmedMean("0.25")], ids=str)
def test_distances_are_those_of_a_search(statistic: Any) -> None:
    """For replace neighbours the spreads of order statistics are the local sensitivity itself, k records away."""
    top, size, bound = 4, 4, 2
    worlds = [rows for rows in every(top, size) if len(rows) == size]
    values = {rows: statistic.value(sample(rows, top)) for rows in worlds}
    near = {rows: list(neighbours(rows, top, "replace")) for rows in worlds}
    far = {rows: 0 for rows in worlds if any(abs(values[rows] - values[other]) > bound for other in near[rows])}
    queue = deque(far)
    while queue:
        rows = queue.popleft()
        for other in near[rows]:
            if other not in far:
                far[other] = far[rows] + 1
                queue.append(other)
    for rows in worlds:
        assert statistic.distance(sample(rows, top), bound, 99, "replace") == far[rows]


def test_distances_stop_at_their_limit() -> None:
    held = sample((2,) * 500, 4)
    assert OrderStatistic().distance(held, 1, 7, "replace") == 7
    assert OrderStatistic().distance(held, 1, 1000, "replace") == 249
    assert OrderStatistic().distance(sample((), 4), 1, 1000, "add_remove") == 0
    assert OrderStatistic().distance(held, 4, 1000, "replace") == 1000


def test_statistics_are_the_usual_ones() -> None:
    rows = np.random.default_rng(0).integers(0, 1000, 401)
    held = Sample.of(rows, 999)
    assert OrderStatistic().value(held) == np.median(rows)
    assert MedianDeviation().value(held) == np.median(np.abs(rows - np.median(rows)))
    trimmed = TrimmedMean("0.1")
    assert trimmed.value(held) / trimmed.divisor(401) == pytest.approx(np.sort(rows)[40:-40].mean())
    huge = Sample(np.full(1 << 24, 1 << 40), 1 << 40)
    assert TrimmedMean(0).value(huge) == 1 << 64
    ordered = np.sort(rows)
    assert InterquartileRange().value(held) == ordered[300] - ordered[100]


def test_local_sensitivity_in_units_of_the_data() -> None:
    data, bounds = [0.0, 1.0, 1.5, 4.0, 10.0], Bounds(0, 20)
    assert local_sensitivity(OrderStatistic(), data, bounds, "0.5") == 2.5
    assert local_sensitivity(OrderStatistic(), data, bounds, "0.5", distance=1) == 8.5
    assert local_sensitivity(TrimmedMean(0), data, bounds, "0.5", neighbours="replace") == 4.0
    assert local_sensitivity(OrderStatistic(), [3] * 9, bounds, 1) == 0
    assert local_sensitivity(OrderStatistic(), [], bounds, 1) == 20


def test_relations_without_a_bound_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="'replace' for this statistic"):
        local_sensitivity(TrimmedMean(), [1], Bounds(0, 1))
    with pytest.raises(InvalidArgument, match="neighbours"):
        local_sensitivity(OrderStatistic(), [1], Bounds(0, 1), neighbours="both")
    with pytest.raises(InvalidArgument, match="statistic"):
        local_sensitivity(max, [1], Bounds(0, 1))
    for bad in (Fraction(1, 2), 1, -1, "much"):
        with pytest.raises(InvalidArgument, match="trim"):
            TrimmedMean(bad)

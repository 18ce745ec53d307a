"""Scale: its distance moves by at most 1 on all small data, its answers are within the factor, its ⊥ is honest."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import ApproxDP, Bounds, InvalidArgument
from discreet.noise import Entropy
from discreet.robust import Scale, Unstable
from discreet.robust.scale import Bin, distance_to_leave, quartiles
from discreet.robust.statistics import Sample

from .worlds import every, neighbours, sample

TOP = 5
RELATIONS = ("add_remove", "replace")


def spread_of(held: Sample) -> int:
    first, last = quartiles(held)
    return int((held.at(last, last) - held.at(first, first))[0])


def slow_distance(held: Sample, inside: Bin, limit: int) -> int:
    """The definition, window by window."""
    first, last = quartiles(held)

    def at(rank: int) -> int:
        return int(held.at(rank, rank)[0])

    for k in range(limit):
        for a in range(k + 1):
            if at(last + k - a) - at(first - a) > inside.high or max(0, at(last - k + a) - at(first + a)) < inside.low:
                return k
    return limit


@pytest.mark.parametrize(("relation", "bins", "shifted"), [*product(RELATIONS, (1, 2), (False, True))])
def test_distances_move_by_at_most_one_and_vouch_for_the_bin(relation: str, bins: int, shifted: bool) -> None:
    scale = Scale(1, "1e-6", Bounds(0, TOP), 1, bins)
    found = {}
    for rows in every(TOP, 7 if relation == "add_remove" else 6):
        held = sample(rows, TOP)
        inside = scale.bin_of(spread_of(held), shifted)
        assert inside.low <= spread_of(held) <= inside.high
        found[rows] = inside, distance_to_leave(held, inside, 9)
        assert found[rows][1] >= 1
    for rows in every(TOP, 6):
        inside, far = found[rows]
        for other in neighbours(rows, TOP, relation):
            theirs, moved = found[other]
            assert abs(far - moved) <= 1
            assert far == 1 or theirs == inside


def test_distances_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        top = int(rng.integers(1, 40))
        held = Sample.of(rng.integers(0, top + 1, int(rng.integers(0, 30))), top)
        scale = Scale(1, "1e-6", Bounds(0, top), 1)
        for shifted in (False, True):
            inside = scale.bin_of(spread_of(held), shifted)
            for limit in (1, 5, 40):
                assert distance_to_leave(held, inside, limit) == slow_distance(held, inside, limit)


def test_distances_are_the_true_ones_where_the_middle_is_thick() -> None:
    """Breadth-first search over all multisets of six: how many records must be replaced to leave the bin."""
    worlds = [rows for rows in every(TOP, 6) if len(rows) == 6]
    scale = Scale(1, "1e-6", Bounds(0, TOP), 1)
    bins = {rows: scale.bin_of(spread_of(sample(rows, TOP)), False) for rows in worlds}
    for rows in worlds[::7]:
        seen, level, steps = {rows}, {rows}, 0
        while all(bins[other] == bins[rows] for other in level):
            level = {other for held in level for other in neighbours(held, TOP, "replace")} - seen
            seen |= level
            steps += 1
        assert distance_to_leave(sample(rows, TOP), bins[rows], 9) == steps


@pytest.mark.parametrize("bins", [1, 3, 8])
def test_bins_cover_every_range_once(bins: int) -> None:
    scale = Scale(1, "1e-6", Bounds(0, 3000), 1, bins)
    for shifted in (False, True):
        for spread in range(3001):
            held = scale.bin_of(spread, shifted)
            assert held.low <= spread <= held.high
            if spread:
                ratio = held.middle / spread
                assert 1 / scale.factor <= ratio * (1 + 1e-12)
                assert ratio <= scale.factor * (1 + 1e-12)


@pytest.mark.parametrize("bins", [1, 2])
@pytest.mark.parametrize("law", ["normal", "lognormal", "ties", "bimodal"])
def test_answers_are_within_the_factor(law: str, bins: int) -> None:
    rng = np.random.default_rng(7)
    data: Any = {
        "normal": rng.normal(0, 3, 10_000),
        "lognormal": rng.lognormal(0, 2, 10_000),
        "ties": rng.integers(0, 5, 10_000),
        "bimodal": np.concatenate([rng.normal(-50, 1, 6_000), rng.normal(50, 1, 4_000)]),
    }[law]
    scale = Scale(1, "1e-6", Bounds(-10_000, 10_000), bins=bins)
    ordered = np.sort(data)
    truth = ordered[7499] - ordered[2499]
    for seed in range(20):
        value = scale.release(data, entropy=Entropy.for_tests(seed)).values
        assert 1 / scale.factor <= value / truth * (1 + 1e-6)
        assert value / truth <= scale.factor * (1 + 1e-6)


def test_data_on_the_boundary_is_seldom_answered() -> None:
    """One record makes the range 0 instead of 4, or 20: the distance is 0 with both lists of bins."""
    scale = Scale(1, "0.01", Bounds(0, 64), 1)
    data = [0] * 25 + [4] * 50 + [20] * 25
    held = Sample.of(np.array(data), 64)
    far = [distance_to_leave(held, scale.bin_of(spread_of(held), shifted), 99) for shifted in (False, True)]
    assert far == [1, 1]
    source = Entropy.for_tests(3)
    answered = sum(not isinstance(scale.release(data, entropy=source).values, Unstable) for _ in range(2000))
    assert answered <= 2000 * 0.01 + 6 * (2000 * 0.01) ** 0.5


def test_the_book_costs_four_times_its_epsilon() -> None:
    book = Scale.book(Fraction(1, 4), "1e-6", Bounds(0, 10**6), 1)
    assert book.loss == ApproxDP(1, "1e-6")
    # 1 + ln(1/δ)/ε on A₀ is ln(1/δ)/ε on the distance; half a step for whole numbers.
    assert book.test.threshold == 55
    assert book.test.chance(0) <= Fraction(1, 2 * 10**6)
    values = [book.release(np.arange(10_000) * 3, entropy=Entropy.for_tests(seed)).values for seed in range(40)]
    assert all(isinstance(value, float) for value in values)
    assert 4000 < np.median(values) < 60_000
    assert book.release([7] * 1000, entropy=Entropy.for_tests(0)).values == 0.0


@pytest.mark.parametrize("data", [[], [1], [5, 5], [float("nan"), None], ["x"] * 2, [10**40] * 3], ids=str)
def test_tiny_and_odd_data_has_an_outcome(data: Any) -> None:
    scale = Scale(1, "1e-6", Bounds(0, 10))
    if "x" in data:
        with pytest.raises(InvalidArgument):
            scale.release(data)
    else:
        assert isinstance(scale.release(data).values, Unstable)


def test_constant_data_has_scale_zero() -> None:
    assert Scale(1, "1e-6", Bounds(0, 10)).release([3] * 1000).values == 0.0
    assert Scale(1, "1e-6", Bounds(3, 3)).release([3] * 1000).values == 0.0


@pytest.mark.parametrize(("argument", "bad"), [("epsilon", 0), ("delta", 1), ("bins", 0), ("bins", 65), ("rule", "x")])
def test_bad_parameters_are_refused(argument: str, bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=argument):
        Scale(**{"epsilon": 1, "delta": "1e-6", "bounds": Bounds(0, 1), argument: bad})

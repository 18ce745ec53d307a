"""Base generators: what they cost, that they agree with what was read, and what they refuse."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from discreet import InvalidArgument, PureDP
from discreet.noise import Entropy
from discreet.synopses import (
    ArbitraryGenerator,
    Attribute,
    Domain,
    LinearBase,
    LinearGenerator,
    Statistics,
    Workload,
    sample_needed,
)
from discreet.synopses.fitting import Cells

DOMAIN = Domain((Attribute("a", tuple(range(8))), Attribute("b", tuple(range(5))), Attribute("c", (0, 1))))
WORK = Workload.all_marginals(DOMAIN, 2) + Workload.ranges(DOMAIN, "a")
X = np.random.default_rng(0).multinomial(2000, np.random.default_rng(1).dirichlet(np.full(80, 0.3)))
TINY = Domain((Attribute("dose", (0, 1, 2)),))


@pytest.mark.parametrize("solver", ["least squares", "linear program"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_a_database_is_near_all_counts(solver: str, delta: str) -> None:
    generator = LinearGenerator(workload=WORK, epsilon=1, delta=delta, size=2000, solver=solver)
    assert generator.loss.epsilon <= 1
    for seed in range(3):
        synopsis = generator.release(X, entropy=Entropy.for_tests(seed)).values
        worst = np.abs(synopsis.answers(WORK) - WORK.answers(X)).max()
        assert worst <= synopsis.accuracy(1e-9)
        assert worst <= 2 * generator.base.measurement.error(1e-9)
        assert synopsis.total == pytest.approx(2000)
    assert LinearGenerator(workload=WORK, epsilon=1, delta=delta, solver=solver).accuracy(0.05) == math.inf
    known = generator.accuracy(0.05)
    assert known == (math.inf if solver == "least squares" else 2 * generator.base.measurement.error(0.05))


def test_the_two_ways_of_solving_agree_on_what_is_feasible() -> None:
    base = LinearBase(WORK, PureDP(1), len(WORK), size=2000)
    reading = base.measurement.release(X, entropy=Entropy.for_tests(5))
    level = LinearBase(WORK, PureDP(1), len(WORK), size=2000, solver="linear program").fitted(
        (reading,), Cells(80, 2000.0)
    )
    square = base.fitted((reading,), Cells(80, 2000.0))
    noise = np.abs(reading.values - WORK.answers(X)).max()
    assert level.deviation <= noise
    assert level.deviation <= square.deviation + 1e-6
    assert square.distance <= ((WORK.answers(level.weights) - reading.values) ** 2).sum()


def test_numbers_far_from_any_database_are_fitted_all_the_same() -> None:
    base = LinearBase(WORK, PureDP(1), len(WORK), size=2000, solver="linear program")
    reading = base.measurement.release(X, entropy=Entropy.for_tests(5))
    impossible = type(reading)(reading.queries, reading.values - 10_000, reading.deviation)
    fit = base.fitted((impossible,), Cells(80, 2000.0))
    assert fit.deviation > 10 * base.measurement.error(0.05)
    assert fit.weights.sum() == pytest.approx(2000)


def test_earlier_readings_are_pooled_by_their_precision() -> None:
    base = LinearBase(WORK, PureDP(1), 30, size=2000)
    rng = np.random.default_rng(3)
    readings = tuple(
        base.measurement.release(X, np.unique(rng.integers(0, len(WORK), 30)), entropy=Entropy.for_tests(seed))
        for seed in range(25)
    )
    errors = [
        np.abs(WORK.answers(base.fitted(readings[:many], Cells(80, 2000.0)).weights) - WORK.answers(X)).mean()
        for many in (1, 25)
    ]
    assert errors[1] < errors[0] / 2


def test_rows_drawn_from_a_database_are_as_near_as_hoeffding_says() -> None:
    base = LinearBase(WORK, PureDP(5), len(WORK), size=2000, rows=400, solver="linear program")
    weights, _ = base.generate(X, np.arange(len(WORK)), Cells(80, 2000.0), (), Entropy.for_tests(1))
    assert weights.total == pytest.approx(2000)
    assert np.abs(weights.weights / 5 - np.round(weights.weights / 5)).max() < 1e-9
    assert np.abs(weights.answers(WORK) - WORK.answers(X)).max() <= base.error(Fraction(1, 10**9))
    assert base.bits == pytest.approx(math.log2(math.comb(479, 400)))


def test_a_lemma_needs_fewer_queries_than_the_book_says() -> None:
    for bits in (1, 10, 1000):
        assert sample_needed(bits, "1/3", "0.05") < 6 * (bits + math.log(2 / 0.05))
    # The chance that a bad synopsis passes, times their number, is what was allowed.
    k = sample_needed(20, "1/3", "0.05")
    assert 2**20 * (5 / 6) ** k == pytest.approx(0.05)
    with pytest.raises(InvalidArgument):
        sample_needed(20, "1/2", "0.05")


def test_what_is_too_large_is_refused_with_its_cost_and_the_method_to_use() -> None:
    big = Domain(tuple(Attribute(name, tuple(range(100))) for name in "abc"))
    many = Workload.all_marginals(big, 1) + Workload.ranges(big, "a")
    with pytest.raises(InvalidArgument, match=r"entries.*least squares"):
        LinearGenerator(workload=many, epsilon=1, size=10, solver="linear program")
    with pytest.raises(InvalidArgument, match=r"10\^\d+ databases.*LinearGenerator"):
        ArbitraryGenerator(workload=WORK, epsilon=1, size=500)
    with pytest.raises(InvalidArgument, match="rows"):
        ArbitraryGenerator(workload=WORK, epsilon=1)
    with pytest.raises(InvalidArgument, match="solver"):
        LinearGenerator(workload=WORK, epsilon=1, solver="simplex")


def _extremes(x: np.ndarray) -> np.ndarray:
    return np.stack([x.max(axis=1), (x > 0).sum(axis=1), x[:, 0] - x[:, 2]], axis=1)


def test_the_first_database_in_order_that_agrees_is_found() -> None:
    statistics = Statistics(TINY, 3, _extremes)
    generator = ArbitraryGenerator(workload=statistics, epsilon=6, size=7)
    assert generator.number == 36
    data, seed = np.array([5, 0, 2]), 4
    found = generator.release(data, entropy=Entropy.for_tests(seed)).values.weights
    noisy = generator.mechanism.release(_extremes(data[np.newaxis])[0], entropy=Entropy.for_tests(seed)).values
    half = generator.accuracy("0.05") / 2
    for rows in combinations_with_replacement(range(3), 7):
        database = np.bincount(rows, minlength=3)
        if np.abs(_extremes(database[np.newaxis])[0] - noisy).max() <= half:
            assert database.tolist() == found.tolist()
            break
    assert np.abs(_extremes(found[np.newaxis]) - _extremes(data[np.newaxis])).max() <= generator.accuracy(1e-9)


def test_statistics_that_fail_on_the_data_are_zeros() -> None:
    def failing(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("seen: " + str(x))

    for rule in (failing, lambda x: x, lambda x: np.full((len(x), 1), np.nan)):
        statistics = Statistics(TINY, 1, rule)
        assert statistics.values(np.array([[1, 2, 3]])).tolist() == [[0]]
        ArbitraryGenerator(workload=statistics, epsilon=1, size=3).release([1, 1, 1])
    with pytest.raises(InvalidArgument):
        Statistics(TINY, 0, failing)


def test_statistics_are_rounded_so_that_none_moves_farther() -> None:
    halves = Statistics(TINY, 1, lambda x: x[:, :1] - 0.5)
    found = halves.values(np.array([[row, 0, 0] for row in range(-5, 6)]))[:, 0]
    assert np.diff(found).tolist() == [1] * 10


def test_units_and_replacement_are_charged() -> None:
    statistics = Statistics(TINY, 3, _extremes, sensitivity=2)
    one = ArbitraryGenerator(workload=statistics, epsilon=1, size=5).mechanism.scale
    assert one == 6
    assert ArbitraryGenerator(workload=statistics, epsilon=1, size=5, changes=2, unit_weight=3).mechanism.scale == 36
    squared = ArbitraryGenerator(workload=statistics, epsilon=1, delta="1e-6", size=5).mechanism.squared_sensitivity
    assert squared == 12

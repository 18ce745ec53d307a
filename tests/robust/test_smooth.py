"""Smooth sensitivity is ε-private exactly: its law is rational, and held against e^ε on every small pair."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from discreet import Bounds, InvalidArgument, PureDP
from discreet.core.rounding import exp_down
from discreet.noise import Entropy
from discreet.noise.pareto import beyond, pareto
from discreet.robust import (
    InterquartileRange,
    MedianDeviation,
    OrderStatistic,
    SmoothSensitivity,
    TrimmedMean,
)
from discreet.robust.statistics import Sample

from .worlds import every, neighbours, sample

TOP = 4


def law(mechanism: SmoothSensitivity, held: Sample) -> list[Fraction]:
    """Of each whole number from the lower end to the upper, with all that lies beyond at the ends."""
    value, scale = mechanism.statistic.value(held), mechanism.smooth(held) / mechanism.alpha
    last = held.top * mechanism.statistic.divisor(held.size)

    def upto(k: int) -> Fraction:
        """P(value + X ≤ k)."""
        if k >= value:
            return 1 - beyond(scale, mechanism.tail, k - value + 1) / 2
        return beyond(scale, mechanism.tail, value - k - 1) / 2

    ends = [Fraction(0), *(upto(k) for k in range(last)), Fraction(1)]
    return [b - a for a, b in pairwise(ends)]


def worst_pairs(mechanism: SmoothSensitivity, most: int) -> int:
    """How many pairs of neighbours have an output whose chances differ by more than e^ε."""
    grown = exp_down(mechanism.epsilon)
    laws = {rows: law(mechanism, sample(rows, TOP)) for rows in every(TOP, most + 1)}
    return sum(
        any(a > grown * b or b > grown * a for a, b in zip(laws[rows], laws[other], strict=True))
        for rows in every(TOP, most)
        for other in neighbours(rows, TOP, mechanism.neighbours)
    )


CASES = [
    (OrderStatistic(), "add_remove", 3),
    (OrderStatistic("0.9"), "replace", 1),
    (MedianDeviation(), "replace", 3),
    (MedianDeviation(), "add_remove", 2),
    (InterquartileRange(), "add_remove", 3),
    (TrimmedMean("0.25"), "replace", 3),
]


@pytest.mark.parametrize(("statistic", "relation", "tail"), CASES, ids=str)
@pytest.mark.parametrize("epsilon", ["0.5", 3])
def test_every_small_pair_is_within_epsilon(statistic: Any, relation: Any, tail: int, epsilon: Any) -> None:
    mechanism = SmoothSensitivity(statistic, epsilon, Bounds(0, TOP), 1, relation, tail)
    assert worst_pairs(mechanism, most=4) == 0


@dataclass(frozen=True)
class Local(SmoothSensitivity):
    """Noise for the local sensitivity, as if that were no secret."""

    def smooth(self, sample: Sample) -> Fraction:
        return Fraction(max(1, self.statistic.spread(sample, 0, self.neighbours)))


@dataclass(frozen=True)
class Quiet(SmoothSensitivity):
    """A third of the noise."""

    def smooth(self, sample: Sample) -> Fraction:
        return super().smooth(sample) / 3


@pytest.mark.parametrize(("wrong", "epsilon", "share"), [(Local, 1, "0.5"), (Quiet, 3, "0.8")])
def test_wrong_noise_is_caught(wrong: Any, epsilon: int, share: str) -> None:
    assert worst_pairs(wrong(OrderStatistic(), epsilon, Bounds(0, TOP), 1, share=share), most=4)


def test_the_budget_is_kept_and_used() -> None:
    for tail in (1, 3, 16):
        mechanism = SmoothSensitivity(OrderStatistic(), "0.7", Bounds(0, 1), tail=tail)
        spent = (1 + mechanism.alpha) ** (tail + 1) * mechanism.growth**tail
        assert exp_down(mechanism.epsilon * Fraction(999_999, 10**6)) < spent <= exp_down(mechanism.epsilon)
        assert mechanism.loss == PureDP("0.7")


def test_smooth_sensitivity_is_the_largest_term() -> None:
    rows = np.random.default_rng(3).integers(0, 5000, 300)
    mechanism = SmoothSensitivity(OrderStatistic(), 1, Bounds(0, 5000), 1)
    held = Sample.of(rows, 5000)
    terms = [OrderStatistic().spread(held, k, "replace") / mechanism.growth**k for k in range(302)]
    assert mechanism.smooth(held) == max(terms)
    assert mechanism.smooth(sample((7,) * 400, 5000)) == 1


def test_draws_follow_the_law_of_the_noise() -> None:
    """4000 draws: each part of the law within six standard errors; a scale a fifth off is not."""
    source, scale, tail = Entropy.for_tests(5), Fraction(7, 2), 3
    draws = np.array([pareto(scale, tail, entropy=source) for _ in range(4000)])
    for k in (1, 3, 10):
        for seen in ((draws >= k).mean(), (draws <= -1 - k).mean()):
            chance = float(beyond(scale, tail, k)) / 2
            assert abs(seen - chance) < 6 * (chance / 4000) ** 0.5
    wider = float(beyond(scale * Fraction(3, 2), tail, 3))
    assert abs((abs(draws + 0.5) > 3).mean() - wider) > 6 * (wider / 4000) ** 0.5


def test_answers_are_near_and_within_the_bounds() -> None:
    data = np.random.default_rng(1).normal(50, 10, 4000)
    for statistic, truth in ((OrderStatistic(), 50), (MedianDeviation(), 6.745)):
        mechanism = SmoothSensitivity(statistic, 1, Bounds(0, 1000), "0.001")
        found = mechanism.release(data, entropy=Entropy.for_tests(2))
        assert abs(found.values - truth) < 1
        assert not found.private
    for odd in ([], [3], [0] * 3, [float("nan"), None, float("inf")], [10**30, -(10**30)]):
        assert 0 <= SmoothSensitivity(OrderStatistic(), 1, Bounds(0, 9), 1).release(odd).values <= 9
    constant = SmoothSensitivity(OrderStatistic(), 1, Bounds(5, 5))
    assert constant.release([1, 2, 3]).values == 5


def test_accuracy_is_kept() -> None:
    mechanism = SmoothSensitivity(OrderStatistic(), 1, Bounds(0, 10_000), 1)
    data = np.arange(2001)
    bar = mechanism.accuracy("0.1", mechanism.sensitivity(data))
    source = Entropy.for_tests(8)
    missed = sum(abs(mechanism.release(data, entropy=source).values - 1000) > bar for _ in range(200))
    assert missed <= 20 + 6 * 18**0.5


@pytest.mark.parametrize("argument", ["epsilon", "tail", "share", "step"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), "much", 10**9 + Fraction(1, 3)], ids=str)
def test_bad_parameters_are_refused(argument: str, bad: Any) -> None:
    given = {"epsilon": 1, "bounds": Bounds(0, 1), argument: bad}
    if argument in ("epsilon", "step") and bad == 10**9 + Fraction(1, 3):
        return
    with pytest.raises(InvalidArgument, match=argument):
        SmoothSensitivity(OrderStatistic(), **given)

"""The confidence bounds against exact binomial sums, and what they imply."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from discreet.adversary.auditing.confidence_bounds import (
    delta_from,
    epsilon_from,
    proportion_high,
    proportion_low,
    renyi_from,
    wilson,
)


def upper_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(X ≥ k) for a binomial X, exactly."""
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("alpha", [0.05, 1e-4, 1e-10])
def test_bounds_are_exact_for_every_count_of_a_small_sample(alpha):
    n = 40
    for k in range(n + 1):
        low, high = (Fraction(float(bound(k, n, alpha))) for bound in (proportion_low, proportion_high))
        assert 0 <= low <= Fraction(k, n) <= high <= 1
        if k > 0:
            assert alpha * (1 - 1e-6) <= upper_tail(k, n, low) <= alpha
        if k < n:
            assert upper_tail(n - k, n, 1 - high) <= alpha
        if high < 0.9:
            assert alpha * (1 - 1e-6) <= upper_tail(n - k, n, 1 - high)


@pytest.mark.parametrize("k", [1, 3, 1000, 400_000])
def test_lower_bound_of_a_large_sample_against_ball_arithmetic(k):
    n, alpha = 10**6, 1e-10
    p = Fraction(float(proportion_low(k, n, alpha)))
    with ctx.workprec(160):
        chance = arb(p.numerator) / p.denominator
        logs = arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
        term = (logs + k * chance.log() + (n - k) * (1 - chance).log()).exp()
        total, i = arb(0), k
        while i <= n and term > alpha * 1e-12:
            total += term
            term *= chance / (1 - chance) * (n - i) / (i + 1)
            i += 1
    assert alpha * (1 - 1e-3) <= float(total) <= alpha * (1 + 1e-9)


def test_upper_bound_is_the_lower_bound_of_the_complement():
    for k in (0, 1, 17, 999, 1000):
        assert proportion_high(k, 1000, 1e-9) == pytest.approx(1 - proportion_low(1000 - k, 1000, 1e-9), abs=1e-8)


def test_bounds_take_arrays_and_fractional_counts():
    low = proportion_low(np.array([0.0, 0.5, 10.0]), 100, 0.01)
    assert low[0] == 0 < low[1] < low[2] < 0.1


def test_bounds_that_cannot_be_computed_say_nothing():
    low, high = proportion_low([2, 3], 100, 1e-200), proportion_high([97, 98], 100, 1e-200)
    assert np.all((low >= 0) & (low < 0.02))
    assert np.all((high > 0.98) & (high <= 1))


def test_quick_bounds_bracket_the_rate():
    hits = np.array([0.0, 5.0, 500.0, 1000.0])
    low, high = wilson(hits, 1000, 6.0)
    assert np.all(low <= hits / 1000)
    assert np.all(hits / 1000 <= high)


def test_epsilon_and_delta_follow_the_definition():
    assert epsilon_from(0.5, 0.5 / math.e) == pytest.approx(1)
    assert epsilon_from(0.5, 0.1, delta=0.4) == 0
    assert epsilon_from(0.5, 0.0) == math.inf
    assert delta_from(0.5, 0.1, 1.0) == pytest.approx(0.5 - 0.1 * math.e)
    assert delta_from(0.1, 0.1, 1.0) == 0
    assert delta_from(1.0, 1e-300, 800.0) == 0


@pytest.mark.parametrize("more", [5 * 2.0**-52, 1.001349381191119e-08, 2.0**-10, 1.0, 1024.0])
def test_renyi_bound_is_not_above_the_divergence(more):
    """A claim at orders near 1 is not refuted by what rounding adds."""
    with ctx.workprec(300):
        for p, q in ((0.39669531314546874, 0.27181249573271143), (0.2035, 0.2034), (1.0, 0.2), (0.9, 1e-12)):
            a, b, order = arb(p), arb(q), 1 + more
            coins = a**order * b ** (1 - arb(order))
            coins += (1 - a) ** order * (1 - b) ** (1 - arb(order)) if p < 1 else 0
            assert renyi_from(p, q, order) <= coins.log() / (arb(order) - 1) * (1 + 1e-10)


def test_renyi_bound_is_the_divergence_of_two_coins():
    p, q, order = 0.7, 0.2, 3.0
    direct = math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
    assert renyi_from(p, q, order) == pytest.approx(direct)
    assert renyi_from(q, p, order) == 0
    assert renyi_from(p, q, 1.0) == pytest.approx(0.7 * math.log(3.5) + 0.3 * math.log(0.375))
    assert renyi_from(1.0, 0.25, 2.0) == pytest.approx(math.log(4))
    assert renyi_from(0.5, 0.0, 2.0) == math.inf

"""The (ε, δ) curve of Gaussian noise: the known formula, and a bound on what summation over integers gives."""

from fractions import Fraction as F
from math import exp, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from tests.accounting.brute import delta, gaussian, product
from tests.soak import third

from discreet.accounting.gaussian import _smoothed_delta, continuous_delta, discrete_delta, discrete_epsilon
from discreet.core.events import Gaussian


@given(st.floats(-3, 8), st.floats(0.05, 3))
def test_continuous_noise_follows_the_formula(epsilon: float, mu: float) -> None:
    expected = norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert float(continuous_delta(F(epsilon), F(mu) ** 2)) == pytest.approx(expected, rel=1e-6, abs=1e-13)


@settings(max_examples=third(30), deadline=None)
@given(st.integers(1, 6), st.fractions(F(2), F(30)), st.fractions(F(0), F(3)))
def test_noise_on_one_integer_is_bounded(moved: int, variance: F, epsilon: F) -> None:
    exact = delta(gaussian(variance, moved, moved), gaussian(variance, 0, moved), epsilon)
    assert exact <= discrete_delta([(Gaussian(variance, F(moved**2)), 1)], epsilon)


def test_factors_between_the_two_laws_are_charged_twice_in_epsilon_and_once_in_delta() -> None:
    expected = exp(0.1) * float(continuous_delta(F(8, 10), F(1)))
    assert float(_smoothed_delta(F(1), F(1, 10), F(1))) == pytest.approx(expected, rel=1e-12)


def test_noise_on_two_integers_is_bounded() -> None:
    variance = F(5, 2)
    centre = product(gaussian(variance, 0, 2), gaussian(variance, 0, 2))
    for move in [(1, 0), (1, 1), (2, 0), (2, 1)]:
        squared = F(move[0] ** 2 + move[1] ** 2)
        p = product(gaussian(variance, move[0], 2), gaussian(variance, move[1], 2))
        for epsilon in (F(0), F(1, 2), F(3)):
            assert delta(p, centre, epsilon) <= discrete_delta([(Gaussian(variance, squared, 2), 1)], epsilon)


def test_the_continuous_formula_alone_would_be_wrong_on_integers() -> None:
    """At ε just under a jump of the integer curve the exact δ is above the continuous one: the correction is needed."""
    variance = F(2)
    p, q = gaussian(variance, 1, 1), gaussian(variance, 0, 1)
    grid = [F(i, 100) for i in range(1, 200)]
    assert any(delta(p, q, epsilon) > continuous_delta(epsilon, 1 / variance) for epsilon in grid)


def test_a_fine_grid_is_as_good_as_continuous() -> None:
    event = Gaussian(F(2**30), F(2**28))
    for epsilon in (F(0), F(1), F(4)):
        ratio = discrete_delta([(event, 1)], epsilon) / continuous_delta(epsilon, F(1, 4))
        assert 1 <= ratio <= 1 + F(1, 10**6)


@pytest.mark.parametrize("chance", [F(1, 10), F(1, 10**6), F(1, 10**100)])
def test_epsilon_is_the_inverse_of_delta(chance: F) -> None:
    events = [(Gaussian(F(2**20), F(2**16), 10), 3), (Gaussian(F(2**25), F(2**16)), 100)]
    epsilon = discrete_epsilon(events, chance)
    assert epsilon is not None
    assert discrete_delta(events, epsilon) <= chance < discrete_delta(events, epsilon * F(9999, 10000))


def test_composed_gaussians_are_one_gaussian() -> None:
    together = discrete_epsilon([(Gaussian(F(2**40), F(2**30)), 64)], F(1, 10**6))
    single = discrete_epsilon([(Gaussian(F(2**40), F(2**36)), 1)], F(1, 10**6))
    assert together is not None
    assert single is not None
    assert float(together) == pytest.approx(float(single), rel=1e-6)


def test_noise_below_a_step_has_no_curve_here() -> None:
    assert discrete_delta([(Gaussian(F(1, 4), F(1)), 1)], F(1)) == 1
    assert discrete_epsilon([(Gaussian(F(1, 4), F(1)), 1)], F(1, 10)) is None


def test_enormous_shifts_and_tiny_chances_stay_finite() -> None:
    far = discrete_epsilon([(Gaussian(F(10**9), F(10**21)), 1)], F(1, 10**6))
    assert far is not None
    assert float(far) == pytest.approx(10**12 / 2 + 4.7534 * sqrt(10**12), rel=1e-6)
    assert 0 < discrete_delta([(Gaussian(F(10**9), F(1)), 1)], F(10**6)) < F(1, 10**1000)

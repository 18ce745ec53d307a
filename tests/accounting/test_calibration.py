"""Calibrated noise is enough, a little less is not, and budgets for an error keep it."""

from fractions import Fraction as F
from math import erfc, log, sqrt

import pytest
from dp_accounting.pld.accountant import get_smallest_gaussian_noise
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.brute import SLACK, Table, delta, gaussian, laplace, number, worst
from tests.soak import third

from discreet.accounting import (
    approximate,
    calibrate,
    gaussian_budget,
    gaussian_sigma,
    gaussian_sigma_classic,
    gaussian_sigma_continuous,
    laplace_budget,
    laplace_scale,
    pure,
    within,
)
from discreet.accounting.gaussian import continuous_delta
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import Composed, Gaussian, Laplace, PoissonSampled, Pure, Repeated
from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP

EPSILONS = st.fractions(F(1, 1000), F(20))
CHANCES = st.sampled_from([F(1, 10), F(1, 10**5), F(1, 10**12)])


@given(st.fractions(F(1, 10**6), F(100)), st.integers(1, 10**6))
def test_laplace_scale_is_exact(epsilon: F, moved: int) -> None:
    assert pure(Laplace(laplace_scale(epsilon, moved), moved)) == PureDP(epsilon)


@settings(deadline=None)
@given(EPSILONS, CHANCES, st.integers(1, 2**20))
def test_continuous_noise_is_the_least_that_is_enough(epsilon: F, chance: F, squared: int) -> None:
    sigma = gaussian_sigma_continuous(epsilon, chance, squared)
    assert continuous_delta(epsilon, squared / sigma**2) <= chance
    assert continuous_delta(epsilon, squared / (sigma * F(9999, 10000)) ** 2) > chance


@pytest.mark.parametrize(("epsilon", "chance"), [(0.1, 1e-5), (1.0, 1e-6), (8.0, 1e-9)])
def test_continuous_noise_agrees_with_an_independent_calibration(epsilon: float, chance: float) -> None:
    theirs = get_smallest_gaussian_noise(DifferentialPrivacyParameters(epsilon, chance), 1)
    assert float(gaussian_sigma_continuous(epsilon, chance, 1)) == pytest.approx(theirs, rel=1e-4)


@settings(max_examples=third(25), deadline=None)
@given(st.fractions(F(1, 4), F(4)), st.sampled_from([F(1, 10), F(1, 1000), F(1, 10**6)]), st.integers(1, 6))
def test_noise_on_integers_is_enough_however_coarse_the_grid(epsilon: F, chance: F, moved: int) -> None:
    sigma = gaussian_sigma(epsilon, chance, moved**2)
    p, q = gaussian(sigma**2, moved, moved), gaussian(sigma**2, 0, moved)
    assert worst(delta, p, q, epsilon) <= chance + SLACK
    assert sigma >= gaussian_sigma_continuous(epsilon, chance, moved**2)


def test_on_a_fine_grid_the_integers_cost_nothing() -> None:
    for dimension in (1, 1000):
        ratio = gaussian_sigma(1, "1e-6", 2**24, dimension) / gaussian_sigma_continuous(1, "1e-6", 2**24)
        assert 1 <= ratio < 1 + F(1, 10**6)


@settings(max_examples=third(20), deadline=None)
@given(EPSILONS, CHANCES, st.sampled_from([1, 50, 2**20]), st.sampled_from([1, 30]))
def test_calibrated_noise_is_accounted_within_its_budget(epsilon: F, chance: F, squared: int, dimension: int) -> None:
    event = Gaussian(gaussian_sigma(epsilon, chance, squared, dimension) ** 2, F(squared), dimension)
    assert approximate(event, chance).epsilon <= epsilon


def test_less_noise_than_calibrated_is_not_within_the_budget() -> None:
    sigma = gaussian_sigma("0.5", "1e-6", 2**20, 3)
    assert not within(Gaussian((sigma * F(99, 100)) ** 2, F(2**20), 3), ApproxDP("0.5", "1e-6"))


@given(st.floats(0.01, 0.99), st.floats(1e-12, 0.1))
def test_the_classic_formula_is_theorem_a_1_and_needs_more_noise(epsilon: float, chance: float) -> None:
    classic = gaussian_sigma_classic(epsilon, chance, 4)
    assert float(classic) == pytest.approx(sqrt(2 * log(1.25 / chance)) * 2 / epsilon, rel=1e-12)
    assert classic > gaussian_sigma_continuous(epsilon, chance, 4)


@pytest.mark.parametrize("epsilon", [1, 2, 0])
def test_the_classic_formula_is_for_epsilon_below_one(epsilon: int) -> None:
    with pytest.raises(InvalidArgument, match="gaussian_sigma"):
        gaussian_sigma_classic(epsilon, "1e-6", 1)


def test_a_calibration_to_the_wrong_tail_is_caught() -> None:
    """Noise for P(N > ε·σ) = δ forgets what Q subtracts and where the loss is centred; the exact curve rejects it."""
    epsilon, chance = F(1), F(1, 10**6)
    wrong = F(475, 100) / epsilon * F(8, 10)
    assert continuous_delta(epsilon, 1 / wrong**2) > chance


def test_any_event_is_calibrated_to_any_budget() -> None:
    for budget in (PureDP("0.1"), ZCDP("0.01"), RenyiDP((2, 8), ("0.1", "0.2")), ApproxDP("0.5", "1e-6")):
        scale = calibrate(lambda s: Repeated(Laplace(s, 10), 3), budget, low=1, high=10**6)
        assert within(Repeated(Laplace(scale, 10), 3), budget)
        assert not within(Repeated(Laplace(scale * F(999, 1000), 10), 3), budget)


def test_sampled_and_composed_events_are_calibrated() -> None:
    def training(multiplier: F) -> Composed:
        step = PoissonSampled(F(1, 100), Gaussian(multiplier**2 * 2**20, F(2**20)))
        return Composed((Repeated(step, 20), Pure(F(1, 10))))

    budget = ApproxDP(1, "1e-5")
    multiplier = calibrate(training, budget, low="0.5", high=4, bits=8)
    assert approximate(training(multiplier), "1e-5").epsilon <= 1
    assert approximate(training(multiplier * F(98, 100)), "1e-5").epsilon > 1


def test_the_ends_of_the_range() -> None:
    assert calibrate(lambda s: Laplace(s, 1), PureDP(1), low=5, high=10) == 5
    with pytest.raises(InvalidArgument) as caught:
        calibrate(lambda s: Laplace(s, 1), PureDP("0.01"), low=5, high=10)
    assert caught.value.argument == "high"
    with pytest.raises(InvalidArgument) as caught:
        calibrate(lambda s: Laplace(s, 1), PureDP(1), low=10, high=5)
    assert caught.value.argument == "low"
    with pytest.raises(NotAccountable):
        calibrate(lambda s: Gaussian(s, F(1)), PureDP(1), low=1, high=5)


def beyond(table: Table, steps: int) -> F:
    return sum((number(chance) for k, chance in table.items() if isinstance(k, int) and abs(k) > steps), F(0))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 12), st.sampled_from([F(1, 2), F(1, 20), F(1, 10**4)]))
def test_the_least_budget_for_laplace_noise_keeps_the_error(error: int, beta: F) -> None:
    epsilon = laplace_budget(error, beta, 3).epsilon
    assert beyond(laplace(laplace_scale(epsilon, 3)), error) <= beta + SLACK
    assert beyond(laplace(laplace_scale(epsilon * F(999, 1000), 3)), error) > beta


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 40), st.sampled_from([F(1, 2), F(1, 20), F(1, 10**4)]))
def test_the_least_budget_for_gaussian_noise_keeps_the_error(error: int, beta: F) -> None:
    variance = 1 / (2 * gaussian_budget(error, beta, 1).rho)
    assert beyond(gaussian(variance), error) <= beta
    assert erfc(error / sqrt(2 * float(variance))) == pytest.approx(float(beta), rel=1e-9)


def test_a_fraction_of_a_step_is_no_error() -> None:
    assert laplace_budget("10.9", "0.05", 1) == laplace_budget(10, "0.05", 1)
    assert gaussian_budget("10.9", "0.05", 1) == gaussian_budget(10, "0.05", 1)


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), None, "x", True])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_bad_arguments_are_refused(bad: object, position: int) -> None:
    functions = [
        (gaussian_sigma, ("0.5", "1e-6", 1)),
        (gaussian_sigma_continuous, ("0.5", "1e-6", 1)),
        (gaussian_sigma_classic, ("0.5", "1e-6", 1)),
        (laplace_budget, (10, "0.05", 1)),
        (gaussian_budget, (10, "0.05", 1)),
        (laplace_scale, (1, 1)),
    ]
    for function, good in functions:
        if position < len(good):
            arguments = [*good[:position], bad, *good[position + 1 :]]
            with pytest.raises(InvalidArgument):
                function(*arguments)


def test_zero_sensitivity_and_zero_budget_are_refused() -> None:
    for call in (
        lambda: laplace_scale(1, 0),
        lambda: laplace_scale(0, 1),
        lambda: laplace_scale(1, 1.5),
        lambda: gaussian_sigma(1, "1e-6", 0),
        lambda: gaussian_sigma(1, 0, 1),
        lambda: gaussian_sigma(1, 1, 1),
        lambda: gaussian_sigma(1, "1e-6", 1, 0),
        lambda: gaussian_budget("0.5", "0.05", 1),
        lambda: within(Pure(F(1)), 1.0),
        lambda: calibrate(lambda s: Laplace(s, 1), PureDP(1), low=0, high=5),
    ):
        with pytest.raises(InvalidArgument):
            call()

"""Laplace, Gaussian and staircase: sensitivity on the grid, saturation, intervals, calibration."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

from discreet import Bounds
from discreet.mechanisms import Gaussian, Laplace, Staircase
from discreet.mechanisms.additive import END, saturating_sum, to_steps
from discreet.noise import Entropy

EPSILONS = [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(7)]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("dimension", [1, 1000])
def test_laplace_spends_exactly_what_was_asked(epsilon: Fraction, real: bool, dimension: int) -> None:
    mechanism = Laplace.for_epsilon(epsilon, 5, dimension=dimension, real=real)
    assert mechanism.loss.epsilon == epsilon
    assert 1 <= mechanism.scale * epsilon / 5 <= 1 + Fraction(dimension, 2**19)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_gaussian_spends_what_was_asked_and_no_less_than_it_must(epsilon: Fraction) -> None:
    mechanism = Gaussian.for_approx(epsilon, "1e-6", 4)
    spent = mechanism.loss_at("1e-6").epsilon
    assert epsilon * Fraction(999, 1000) <= spent <= epsilon


def test_classic_calibration_is_private_and_noisier() -> None:
    book, exact = Gaussian.for_approx("0.5", "1e-6", classic=True), Gaussian.for_approx("0.5", "1e-6")
    assert book.sigma > exact.sigma
    assert book.loss_at("1e-6").epsilon <= Fraction(1, 2)


def test_zcdp_calibration_is_exact() -> None:
    assert Gaussian.for_zcdp(Fraction(1, 8)).loss.rho == Fraction(1, 8)
    irrational = Gaussian.for_zcdp("0.1").loss.rho
    assert Fraction(1, 10) * (1 - Fraction(1, 2**60)) <= irrational <= Fraction(1, 10)


coordinates = st.floats(-1e6, 1e6, allow_subnormal=True)


@settings(max_examples=third(200))
@given(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=6), st.integers(-3, 3))
def test_measured_movement_on_the_grid_is_within_the_declared_sensitivity(
    pairs: list[tuple[float, float]], ties: int
) -> None:
    before = np.array([a for a, _ in pairs])
    after = np.array([b for _, b in pairs])
    moved = sum(abs(Fraction(a) - Fraction(b)) for a, b in pairs)
    if not Fraction(1, 10**6) < moved:
        return
    mechanism = Laplace.for_epsilon(1, moved, dimension=len(pairs), real=True)
    # Half-step offsets put many coordinates on ties, where rounding to even would move them two steps.
    shift = float(mechanism.grid.step) * ties / 2
    steps = [to_steps(v + shift, mechanism.grid, True, len(pairs)) for v in (before, after)]
    if all(Fraction(a) + Fraction(shift) == Fraction(a + shift) for p in pairs for a in p):
        assert int(np.abs(steps[0] - steps[1]).sum()) <= mechanism.events[0].sensitivity
    squared = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs)
    euclid = Gaussian.for_zcdp(1, squared, dimension=len(pairs), real=True)
    steps = [to_steps(v, euclid.grid, True, len(pairs)) for v in (before, after)]
    assert sum(int(s) ** 2 for s in steps[0] - steps[1]) <= euclid.events[0].squared_sensitivity


def test_rounding_without_the_extra_steps_would_be_caught() -> None:
    # Ten coordinates that each move by 0.6 of a step and round by a whole one.
    mechanism = Laplace.for_epsilon(1, 1, dimension=10, real=True)
    step = float(mechanism.grid.step)
    low, high = np.full(10, 0.4 * step), np.full(10, 1.0 * step)
    moved = np.abs(to_steps(high, mechanism.grid, True, 10) - to_steps(low, mechanism.grid, True, 10)).sum()
    without = Fraction(6) * mechanism.grid.step / mechanism.grid.step
    assert moved == 10 > without


@pytest.mark.parametrize(
    ("value", "noise", "expected"),
    [
        (END, 1, END),
        (-END, -1, -END),
        (END, 2**63 - 1, END),
        (-END, -(2**63 - 1), -END),
        (END, -(2**63 - 1), -END),
        (5, -7, -2),
    ],
)
def test_sums_saturate_instead_of_wrapping(value: int, noise: int, expected: int) -> None:
    assert int(saturating_sum(np.array(value), np.array(noise))) == expected


@pytest.mark.parametrize("value", [-END, -5, 0, 5, END])
def test_noise_at_its_end_hides_the_data(value: int) -> None:
    # The samplers hold noise within int64. If data shifted that end, its last bits would show the data.
    for end in (2**63 - 1, -(2**63 - 1)):
        assert abs(int(saturating_sum(np.array(value), np.array(end)))) == END


def test_the_widest_noise_reaches_the_same_ends_from_neighbours() -> None:
    mechanism = Laplace(Fraction(2**60), 10, dimension=60_000)
    for value in (-5, 5):
        released = mechanism.release(np.full(60_000, value)).values
        assert set(released[np.abs(released) > 2**62 - 2**20].tolist()) <= {END, -END}


@pytest.mark.parametrize("extreme", [np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0])
@pytest.mark.parametrize("mechanism", [Laplace.for_epsilon(1), Gaussian.for_zcdp(1), Staircase(1, 1)], ids=str)
def test_counts_at_the_ends_of_int64_neither_fail_nor_wrap(mechanism: Any, extreme: int) -> None:
    released = mechanism.release(extreme).values
    assert abs(int(released) - int(extreme)) < 2**52 or abs(int(extreme)) > 2**50
    assert (int(released) > 0) == (extreme > 0) or extreme == 0


@pytest.mark.parametrize("nasty", [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e300])
@pytest.mark.parametrize(
    "mechanism",
    [Laplace.for_epsilon(1, real=True), Gaussian.for_zcdp(1, real=True), Staircase(1, 1, real=True)],
    ids=str,
)
def test_special_reals_give_a_finite_noisy_answer(mechanism: Any, nasty: float) -> None:
    first, second = (mechanism.release(nasty).values for _ in range(2))
    assert np.isfinite(first)
    assert first != second or abs(first) > 1e9  # noised, or held at the end of the grid


@pytest.mark.parametrize(
    ("mechanism", "truth"),
    [
        (Laplace.for_epsilon(1, 7), 100),
        (Laplace.for_epsilon(1, "0.5", real=True), 0.123),
        (Gaussian.for_approx(1, "1e-5", 9), 100),
        (Gaussian.for_zcdp(1, 2, real=True), -3.7),
        (Staircase(1, 10), 5),
    ],
    ids=lambda v: type(v).__name__,
)
def test_intervals_hold_the_truth_as_often_as_they_say(mechanism: Any, truth: float) -> None:
    tries = 2000
    misses = 0
    for _ in range(tries):
        low, high = mechanism.release(truth).intervals(0.9)
        misses += not low <= truth <= high
    # Binomial(2000, 0.1) exceeds 290 with probability below 1e-10, Binomial(2000, 0.2) stays below with less than 1e-9.
    assert misses <= 290


def test_simultaneous_accuracy_covers_the_largest_error() -> None:
    mechanism = Laplace.for_epsilon(1, dimension=1000)
    bound = mechanism.accuracy(0.1, size=1000)
    entropy = Entropy.for_tests(3)
    worst = [np.abs(mechanism.release(np.zeros(1000, np.int64), entropy=entropy).values).max() for _ in range(600)]
    missed = sum(w > bound for w in worst)
    assert 20 <= missed <= 120  # mean 60·(0.95…1): loose enough never to flicker, tight enough to see a factor of two


def test_staircase_beats_laplace_at_large_epsilon_and_never_loses() -> None:
    for epsilon in ("0.1", "1", "3", "8"):
        mechanism = Staircase(epsilon, 100)
        assert mechanism.mean_error <= mechanism.laplace_error * (1 + 1e-9)
    assert Staircase(8, 100).mean_error < 0.2 * Staircase(8, 100).laplace_error


@pytest.mark.parametrize("epsilon", ["0.5", "2", "6"])
def test_staircase_error_approaches_the_theorem(epsilon: str) -> None:
    e = float(epsilon)
    theorem = np.exp(e / 2) / (np.exp(e) - 1)
    measured = Staircase(epsilon, 1, real=True).mean_error
    assert measured == pytest.approx(theorem, rel=1e-5)


def test_a_clipped_sum_moves_by_its_bounds() -> None:
    ages = np.array([30.0, np.nan, 200.0, -5.0])
    bounds = Bounds(0, 120)
    full, without = bounds.clip(ages).sum(), bounds.clip(ages[:2]).sum()
    assert abs(full - without) <= 2 * bounds.magnitude

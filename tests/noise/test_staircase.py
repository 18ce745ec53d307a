"""The discrete staircase is put together from its words as documented, and its best first step is the best."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpz
from tests.noise.spies import Watched

from discreet.core.rounding import ball
from discreet.noise import Entropy, discrete_staircase, optimal_inner
from discreet.noise.staircase import staircase_error

ONES = (1 << 64) - 1
LARGEST = (1 << 63) - 1
HALF = 1 << 62


def odds_of_outer(epsilon: Fraction, sensitivity: int, inner: int) -> arb:
    weight = (sensitivity - inner) * (-ball(epsilon)).exp()
    return weight / (inner + weight)


@pytest.mark.parametrize("outer", [True, False])
def test_inner_and_outer_are_settled_on_their_boundary(outer: bool, settled: list[Watched]) -> None:
    epsilon, sensitivity, inner = Fraction(1), 8, 4
    with ctx.workprec(400):
        on_it = int((odds_of_outer(epsilon, sensitivity, inner) * arb(fmpz(1) << 64)).mid().floor().fmpz())
    # The coin and the word that settles it; a uniform of a half, whose −ln is below 1: no whole step; inner place 3;
    # then outer place 2 if the coin was heads; sign −.
    outer_place = [2 << 62] if outer else []
    script = [on_it, 0 if outer else ONES, HALF, 3 << 62, *outer_place, 1]
    draw = int(discrete_staircase(epsilon, sensitivity, inner, entropy=Entropy.scripted_for_tests(script)))
    assert draw == (-(inner + 2) if outer else -3)
    assert settled[0].words_read == 1


def test_a_negative_zero_is_drawn_again() -> None:
    script = [ONES, HALF, 0, 1, ONES, HALF, 3 << 62, 0]
    assert int(discrete_staircase(1, 8, 4, entropy=Entropy.scripted_for_tests(script))) == 3
    assert int(discrete_staircase(1, 8, 4, entropy=Entropy.scripted_for_tests([ONES, HALF, 0, 0]))) == 0


def test_the_widest_steps_stop_at_the_ends_of_int64() -> None:
    draws = discrete_staircase(Fraction(1, 2**60), 2**60, 2**59, 50, entropy=Entropy.for_tests(0))
    assert set(np.abs(draws).tolist()) == {LARGEST}
    near = discrete_staircase(1, 2**60, 2**60, 2000, entropy=Entropy.for_tests(1))
    assert np.abs(near).max() == LARGEST
    assert np.abs(near).min() < 2**60


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 7, 24, 61])
@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "1", "2.5", "6", "30"])
def test_no_first_step_beats_the_best(sensitivity: int, epsilon: str) -> None:
    with ctx.workprec(512):
        errors = [staircase_error(Fraction(epsilon), sensitivity, r).mid() for r in range(1, sensitivity + 1)]
        assert errors[optimal_inner(epsilon, sensitivity) - 1] == min(errors)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**60), Fraction(1, 100), Fraction(1), Fraction(20), Fraction(2**60)])
@pytest.mark.parametrize("sensitivity", [2**60, 2**41 + 3])
def test_the_best_first_step_of_wide_steps_is_exact(epsilon: Fraction, sensitivity: int) -> None:
    best = optimal_inner(epsilon, sensitivity)
    near = [min(max(best + shift, 1), sensitivity) for shift in range(-6, 7)]
    with ctx.workprec(1000):
        errors = [staircase_error(epsilon, sensitivity, r).mid() for r in near]
        assert errors[6] == min(errors)


def test_the_mean_error_is_the_sum_over_the_law() -> None:
    epsilon, sensitivity, inner = Fraction(1, 2), 6, 2
    with ctx.workprec(200):
        b = (-ball(epsilon)).exp()
        weights = {k: b ** ((k + sensitivity - inner) // sensitivity) for k in range(3000)}
        mass = 2 * sum(weights.values(), arb(0)) - 1
        mean = 2 * sum((k * weight for k, weight in weights.items()), arb(0)) / mass
        assert abs(mean - staircase_error(epsilon, sensitivity, inner)) < arb(2) ** -60

"""Randomized response: the exact matrix of report probabilities, unbiased estimates, error bars."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.core.rounding import exp_down, log_down
from discreet.mechanisms import RandomizedResponse
from discreet.noise import Entropy


def test_the_books_coins() -> None:
    assert log_down(3) <= RandomizedResponse(Fraction(3, 4)).loss.epsilon <= log_down(3) + Fraction(1, 2**80)
    assert log_down(2) <= RandomizedResponse(Fraction(2, 3)).loss.epsilon <= log_down(2) + Fraction(1, 2**80)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "5", "30"])
@pytest.mark.parametrize("categories", [2, 3, 1000])
def test_calibration_never_exceeds_epsilon(epsilon: str, categories: int) -> None:
    mechanism = RandomizedResponse.for_epsilon(epsilon, categories)
    spent = mechanism.loss.epsilon
    assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) <= spent <= Fraction(epsilon)


def test_reports_follow_the_matrix() -> None:
    mechanism = RandomizedResponse.for_epsilon(1, 4)
    people = 40_000
    for answer in range(4):
        reports = mechanism.release(np.full(people, answer), entropy=Entropy.for_tests(answer)).values
        seen = np.bincount(reports, minlength=4)
        odds = np.full(4, float((1 - mechanism.truth) / 3))
        odds[answer] = float(mechanism.truth)
        assert ((seen - people * odds) ** 2 / (people * odds)).sum() < 45  # 3 degrees of freedom, below 1e-9
        planted = np.full(4, float((1 - mechanism.truth) / 4))
        planted[answer] += float(mechanism.truth)  # "lie" that may name the truth again
        assert ((seen - people * planted) ** 2 / (people * planted)).sum() > 100


def test_answers_outside_the_categories_look_like_any_other() -> None:
    mechanism = RandomizedResponse.for_epsilon(1, 3)
    reports = mechanism.release(np.array([-7, 3, 99, 0])).values
    assert set(reports.tolist()) <= {0, 1, 2}


def test_estimates_are_unbiased_within_their_error_bars() -> None:
    mechanism = RandomizedResponse.for_epsilon(1, 3)
    people = 50_000
    truth = np.repeat([0, 1, 2], [35_000, 10_000, 5_000])
    bound = mechanism.accuracy(1e-9, people)
    errors = []
    for seed in range(20):
        reports = mechanism.release(truth, entropy=Entropy.for_tests(seed)).values
        errors.append(mechanism.estimate(reports) - np.array([0.7, 0.2, 0.1]))
    assert np.abs(errors).max() <= bound
    assert np.abs(np.mean(errors, axis=0)).max() <= bound / 3
    assert np.abs(errors).max() > bound / 12  # the bars are not empty talk


def test_no_reports_no_estimate() -> None:
    assert RandomizedResponse(Fraction(3, 4)).estimate([]).shape == (2,)
    assert exp_down(0) == 1

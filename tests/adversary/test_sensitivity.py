"""Measured sensitivity is exact and misses nothing that tells neighbours apart."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.adversary import measured_sensitivity
from discreet.core.errors import InvalidArgument


def test_norms_are_exact():
    found = measured_sensitivity(lambda d: d, [([0, 0], [3, -4])])
    assert (found.l1, found.squared_l2, found.linf) == (7, 25, 4)
    assert not found.exceeds(5, "l2")
    assert found.exceeds("4.999", "l2")
    assert found.exceeds(3, "linf")
    assert not found.exceeds(7)


def test_the_worst_pair_is_named():
    found = measured_sensitivity(sum, [([1], []), ([9], []), ([2], [])])
    assert (found.l1, found.worst) == (9, 1)


def test_rounding_of_a_float_sum_is_caught():
    rows = [1.0, *[2.0**-53] * 1000]
    found = measured_sensitivity(sum, [(rows, rows[1:])])
    assert found.l1 < 1
    found = measured_sensitivity(sum, [([2.0**53, *[1.0] * 100], [*[1.0] * 100, 2.0**53])])
    assert found.l1 == 100


def test_half_to_even_rounding_moves_two_steps():
    found = measured_sensitivity(np.round, [(0.5, 1.5)])
    assert found.exceeds(1)


def test_a_difference_that_doubles_cannot_hold_is_kept():
    found = measured_sensitivity(lambda d: d, [(1e300, 1e-300)])
    assert found.l1 == Fraction(1e300) - Fraction(1e-300)


@pytest.mark.parametrize(
    ("one", "other"),
    [([1.0], [math.nan]), ([1.0], [math.inf]), ([1.0], [1.0, 2.0]), ([math.inf], [-math.inf])],
)
def test_what_cannot_be_measured_is_infinite(one, other):
    assert measured_sensitivity(np.asarray, [(one, other)]).l1 == math.inf


def test_an_error_on_one_side_is_infinite_and_on_both_is_nothing():
    assert measured_sensitivity(max, [([1], [])]).l1 == math.inf
    assert measured_sensitivity(max, [([], [])]).l1 == 0
    assert measured_sensitivity(np.asarray, [([math.nan], [math.nan])]).l1 == 0


def test_integers_beyond_64_bits_and_booleans_are_numbers():
    assert measured_sensitivity(lambda d: [d], [(1 << 80, 0)]).l1 == 1 << 80
    assert measured_sensitivity(lambda d: d, [(True, False)]).l1 == 1


def test_no_pairs_and_unknown_norms_are_refused():
    with pytest.raises(InvalidArgument, match="pairs"):
        measured_sensitivity(sum, [])
    with pytest.raises(InvalidArgument, match="norm"):
        measured_sensitivity(sum, [([1], [])]).exceeds(1, "l3")

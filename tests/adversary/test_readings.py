"""Readings that see what honest noise must hide."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.adversary.auditing.features import combined, fingerprint, hidden, logistic, lowest_bit, residues
from discreet.adversary.auditing.outcomes import table_of


def read(readings, table):
    return {reading.words: reading.read(table) for reading in readings}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_lowest_bit_is_the_power_of_two_in_the_number(value):
    power = int(lowest_bit(np.array([value]))[0])
    if value == 0:
        assert power == (-1201 if math.copysign(1, value) < 0 else -1200)
    else:
        odd = Fraction(value) / Fraction(2) ** power
        assert odd.denominator == 1
        assert odd.numerator % 2 == 1


def test_values_that_are_not_numbers_have_readings_of_their_own():
    assert len(set(lowest_bit(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])).tolist())) == 5


def test_residues_find_the_grid_of_the_noise():
    rng = np.random.default_rng(0)
    values = 3 + 7 * rng.integers(-1000, 1000, 500)
    table = table_of(values)
    found = read(residues(table, 0, (values, values + 1)), table)
    assert np.all(found["output modulo 7"] == 3)


def test_residues_find_a_dyadic_grid_of_doubles():
    values = 0.375 + 0.25 * np.arange(100.0)
    table = table_of(values)
    found = read(residues(table, 0, (values, values)), table)
    assert np.all(found["output modulo 0.25"] == 0.125)


def test_constant_and_wild_columns_have_no_grid():
    for values in (np.full(5, 3.5), np.array([1e-300, 1e300]), np.array([-(2**62), 2**62]), np.array([np.nan, np.inf])):
        table = table_of(values)
        words = read(residues(table, 0, (values, values)), table)
        assert all("modulo" in name for name in words)


def test_combined_readings_cover_order_and_differences():
    table = table_of(np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]]))
    found = read(combined(table), table)
    assert found["the sum of the coordinates"].tolist() == [6, 6]
    assert found["the place of the largest coordinate"].tolist() == [0, 2]
    assert found["the number of rises from one coordinate to the next"].tolist() == [1, 2]
    assert found["output[2] − output[0]"].tolist() == [-1, 2]
    assert len(set(found["the order of the coordinates"].tolist())) == 2


def test_text_is_read_by_its_length():
    table = table_of(np.array(["ann", "anne"]))
    assert read(hidden(table, 0), table)["the length of output"].tolist() == [3, 4]


def test_fingerprints_tell_bit_patterns_apart():
    table = table_of(np.array([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0)]))
    assert len(set(fingerprint(table, (0,)).tolist())) == 4
    surrogates = table_of(np.array(["\ud800", "\ud801"]))
    assert len(set(fingerprint(surrogates, (0,)).tolist())) == 2
    wide = table_of(np.array([[1, 2], [2, 1], [1, 2]]))
    first, second, third = fingerprint(wide, (0, 1)).tolist()
    assert first == third != second


def test_logistic_score_separates_what_a_line_separates():
    rng = np.random.default_rng(0)
    left, right = (table_of(rng.normal(0, 1, (2000, 2)) + shift) for shift in (1.0, -1.0))
    score = logistic(left, right, [0, 1])
    assert score is not None
    assert score.read(left).mean() > 1 > -1 > score.read(right).mean()
    assert logistic(table_of(np.ones((5, 2))), table_of(np.ones((5, 2))), [0, 1]) is None

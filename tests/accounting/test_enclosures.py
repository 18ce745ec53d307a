"""Bounds of formulas, sums and searches come out on the safe side."""

from fractions import Fraction as F
from math import factorial

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.enclosures import EXACT_BITS, FAINTEST, above, below, finitely_above, total
from discreet.accounting.search import crossing, largest, least, logarithm, lowest
from discreet.accounting.subsampling import interpolated
from discreet.core.rounding import ball


@given(st.fractions(F(1, 10**30), F(50)))
def test_both_ends_enclose_and_are_close_in_spite_of_cancellation(x: F) -> None:
    def formula() -> arb:
        return ball(x).exp() - 1 - ball(x)

    low, high = below(formula), above(formula)
    partial = sum(x**k / factorial(k) for k in range(2, 12))
    assert low <= high <= low * (1 + F(1, 2**60))
    assert high >= partial


def test_what_is_too_faint_to_write_down_is_bounded() -> None:
    assert above(lambda: arb(-(10**12)).exp()) == FAINTEST
    assert below(lambda: arb(-(10**12)).exp()) == -FAINTEST
    assert above(lambda: arb(0)) == below(lambda: arb(0)) == 0


def test_what_overflows_has_no_finite_bound() -> None:
    assert finitely_above(lambda: arb(1) / (ball(F(1, 3)) * 3 - 1)) is None
    assert finitely_above(lambda: arb(2).sqrt()) is not None


@given(st.lists(st.fractions(F(0), F(10)), max_size=20))
def test_sums_are_never_below_and_stay_short(values: list[F]) -> None:
    bound, exact = total(values), sum(values, F(0))
    assert exact <= bound <= exact + F(len(values), 2**200)
    assert bound.numerator.bit_length() <= EXACT_BITS + 8
    if exact.denominator.bit_length() <= 40 and all(v.denominator < 16 for v in values):
        assert bound == exact


@given(st.fractions(F(1, 10**6), F(10**6)))
def test_searches_end_where_the_condition_was_seen_to_hold(threshold: F) -> None:
    seen_least = least(lambda x: x >= threshold, F(1, 10**9), F(10**9))
    assert threshold <= seen_least <= threshold * (1 + F(1, 2**38))
    seen_largest = largest(lambda x: x <= threshold, F(1, 10**9), F(10**9))
    assert threshold * (1 - F(1, 2**38)) <= seen_largest <= threshold


@given(st.fractions(F(1, 10**6), F(10**6)), st.sampled_from([0.5, 1, 3]))
def test_secants_find_where_a_falling_cost_meets_its_budget(threshold: F, power: float) -> None:
    calls = 0

    def excess(x: F) -> float:
        nonlocal calls
        calls += 1
        size = power * logarithm(threshold / x)
        return max(size, 1e-300) if x < threshold else min(size, 0.0)

    found = crossing(excess, F(1, 10**9), F(10**9), bits=20)
    assert threshold <= found <= threshold * (1 + F(1, 2**19))
    assert calls < 20


def test_secants_survive_a_cost_that_is_a_cliff() -> None:
    found = crossing(lambda x: float("inf") if x < 7 else 0.0, F(1), F(10**6), bits=20)
    assert 7 <= found <= 7 + F(1, 10**5)


def test_the_lowest_point_is_found_in_floats() -> None:
    assert lowest(lambda x: abs(x - 3), -10, 300) == pytest.approx(3, abs=1e-6)
    assert logarithm(F(1, 10**400)) == pytest.approx(-921.034, abs=1e-3)


def test_orders_between_whole_ones_lie_on_the_chord() -> None:
    assert interpolated(F(3), lambda n: F(n)) == 3
    assert interpolated(F(3, 2), lambda n: F(n)) == 2
    assert interpolated(F(5, 2), lambda n: F(n)) == (F(1, 2) * 2 + F(1, 2) * 2 * 3) / F(3, 2)

"""Every named direction is kept, checked against enclosures of far higher precision."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from discreet.core import rounding
from discreet.core.rounding import ball, float_down, float_up, shorten_down, shorten_up

Rounded = Callable[[Fraction], Fraction]
rationals = st.fractions(min_value=Fraction(1, 10**30), max_value=10**6, max_denominator=10**40)
PAIRS = [
    (rounding.exp_down, rounding.exp_up, arb.exp),
    (rounding.expm1_down, rounding.expm1_up, arb.expm1),
    (rounding.log_down, rounding.log_up, arb.log),
    (rounding.log1p_down, rounding.log1p_up, arb.log1p),
    (rounding.sqrt_down, rounding.sqrt_up, arb.sqrt),
]


@pytest.mark.parametrize(("down", "up", "truth"), PAIRS, ids=lambda f: getattr(f, "__name__", ""))
@given(value=rationals)
def test_results_enclose_the_truth_tightly(
    down: Rounded, up: Rounded, truth: Callable[[arb], arb], value: Fraction
) -> None:
    low, high = down(value), up(value)
    with ctx.workprec(2000):
        real = truth(ball(value))
        assert ball(low) <= real
        assert real <= ball(high)
    assert high - low <= max(abs(high), Fraction(1, 2**300)) * Fraction(1, 2**80)


@given(value=st.fractions())
def test_floats_round_the_way_they_say(value: Fraction) -> None:
    assert Fraction(float_down(value)) <= value <= Fraction(float_up(value))
    assert float_up(value) <= math.nextafter(float_down(value), math.inf)


def test_floats_at_the_ends() -> None:
    largest = Fraction(math.nextafter(math.inf, 0))
    assert float_up(2 * largest**2) == math.inf
    assert float_down(2 * largest**2) == float(largest)
    assert float_up(-2 * largest**2) == -float(largest)
    assert float_up(Fraction(1, 10**400)) == math.ulp(0)


@given(value=st.fractions(), bits=st.integers(8, 100))
def test_shortened_numbers_stay_on_their_side(value: Fraction, bits: int) -> None:
    low, high = shorten_down(value, bits), shorten_up(value, bits)
    assert low <= value <= high
    assert high - low <= abs(value) * Fraction(1, 2 ** (bits - 2))


def test_a_result_rounded_to_nearest_would_be_caught() -> None:
    # The planted fault: exp through a double. It lands below the truth for one of these.
    values = [Fraction(k, 7) for k in range(1, 40)]
    assert any(Fraction(math.exp(v)) < rounding.exp_down(v) for v in values)


def test_results_too_small_to_write_down_keep_their_side() -> None:
    far = Fraction(2**60)
    assert rounding.exp_down(-far) == 0 < rounding.exp_up(-far) <= rounding.SMALLEST
    assert -1 - Fraction(1, 2**80) <= rounding.expm1_down(-far) <= rounding.expm1_up(-far) < 0

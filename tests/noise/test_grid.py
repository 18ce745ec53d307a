"""The grid rounds every number once, exactly, half up, so that neighbours never end farther apart than declared."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.noise import INTEGERS, Grid

LARGEST = (1 << 63) - 1
exponents = st.one_of(st.integers(-80, 80), st.integers(-1000, 960))
doubles = st.floats(allow_nan=False, allow_infinity=False, width=64)
halves = st.builds(lambda k, e: math.ldexp(k + 0.5, e), st.integers(-(2**52), 2**52), st.integers(-80, 80))
# Doubles on and beside the ties of a grid, and where doubles become coarser than it.
tricky = st.one_of(
    doubles,
    halves,
    halves.map(lambda half: math.nextafter(half, 0)),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**52 + 0.5, 2.0**53 + 1, 0.49999999999999994, -0.5, 2.0**63]),
    st.sampled_from([-(2.0**63), 2.0**63 - 1024, 2.0**62, 1e308, -1e308, 2.0**-1022]),
)
integers = st.one_of(
    st.integers(-LARGEST - 1, LARGEST),
    st.sampled_from([0, 1, -1, LARGEST, -LARGEST - 1, 1 << 62, -(1 << 62), 2**53 + 1]),
)


def nearest(value: float | int, exponent: int) -> int:
    """Half up, held at the ends of int64: the definition."""
    steps = math.floor(Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2))
    return max(-LARGEST, min(LARGEST, steps))


@given(values=st.lists(tricky, max_size=8), exponent=exponents)
@example(values=[0.49999999999999994, -0.49999999999999994, 4503599627370495.5, -4503599627370495.5], exponent=0)
@example(values=[5e-324, -5e-324], exponent=-1000)
@example(values=[1.7976931348623157e308], exponent=960)
def test_doubles_are_rounded_exactly(values: list[float], exponent: int) -> None:
    steps = Grid(exponent).steps(np.array(values, dtype=np.float64))
    assert steps.dtype == np.int64
    assert steps.tolist() == [nearest(value, exponent) for value in values]


@given(values=st.lists(integers, max_size=8), exponent=exponents)
@example(values=[1 << 62, -(1 << 62) - 1, LARGEST, -LARGEST], exponent=63)
@example(values=[1 << 62, -(1 << 62) - 1, LARGEST, -LARGEST], exponent=64)
@example(values=[1 << 62, -(1 << 62) - 1, LARGEST, -LARGEST], exponent=960)
@example(values=[0, 1, -1], exponent=-63)
@example(values=[-LARGEST - 1], exponent=0)
def test_integers_are_rounded_exactly(values: list[int], exponent: int) -> None:
    held = [max(value, -LARGEST) for value in values]
    steps = Grid(exponent).steps(np.array(values, dtype=np.int64))
    assert steps.dtype == np.int64
    assert steps.tolist() == [nearest(value, exponent) for value in held]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_every_integer_dtype_is_read_right(dtype: type) -> None:
    ends = np.array([np.iinfo(dtype).min, 0, 1, np.iinfo(dtype).max], dtype=dtype)
    for exponent in (-3, 0, 2, 70):
        wanted = [nearest(max(-LARGEST, min(LARGEST, int(value))), exponent) for value in ends]
        assert Grid(exponent).steps(ends).tolist() == wanted


def test_booleans_and_narrow_floats_are_numbers_too() -> None:
    assert Grid(-1).steps(np.array([True, False])).tolist() == [2, 0]
    assert Grid(-2).steps(np.array([0.375, -0.125], dtype=np.float16)).tolist() == [2, 0]
    assert Grid(0).steps(np.float32(2.5)).tolist() == 3


@given(left=tricky, right=tricky, exponent=exponents)
@example(left=0.5, right=1.5, exponent=0)
@example(left=2.0**52 + 0.5, right=2.0**52 - 0.5, exponent=0)
@example(left=0.5, right=-0.5, exponent=0)
@example(left=5e-324, right=-5e-324, exponent=-1000)
def test_rounding_keeps_order_and_stays_within_the_span(left: float, right: float, exponent: int) -> None:
    grid = Grid(exponent)
    low, high = grid.steps(np.array(sorted([left, right]))).tolist()
    assert 0 <= high - low <= grid.spanning(abs(Fraction(left) - Fraction(right)))


@given(left=integers, right=integers, exponent=exponents)
def test_integers_keep_order_and_stay_within_the_span(left: int, right: int, exponent: int) -> None:
    grid = Grid(exponent)
    low, high = grid.steps(np.array(sorted([left, right]), dtype=np.int64)).tolist()
    assert 0 <= high - low <= grid.spanning(abs(left - right))


def test_halves_to_even_would_break_the_span() -> None:
    # Why half goes up: 0.5 and 1.5 are one step apart, and to even they would become 0 and 2.
    pair = np.array([0.5, 1.5])
    assert np.diff(np.rint(pair)) == 2
    assert np.diff(INTEGERS.steps(pair)) == 1 == INTEGERS.spanning(1)


@given(steps=st.integers(-(2**53), 2**53), exponent=exponents)
def test_grid_points_come_back(steps: int, exponent: int) -> None:
    grid = Grid(exponent)
    value = grid.values(np.array([steps]))
    assert Fraction(float(value[0])) == steps * grid.step
    assert grid.steps(value).tolist() == [steps]
    assert grid.round(steps * grid.step) == steps


@given(steps=integers, exponent=exponents)
def test_values_are_the_nearest_finite_doubles(steps: int, exponent: int) -> None:
    value = float(Grid(exponent).values(np.array([steps], dtype=np.int64))[0])
    assert math.isfinite(value)
    off = abs(Fraction(value) - steps * Fraction(2) ** exponent)
    assert off <= Fraction(math.ulp(value)) / 2
    assert math.copysign(1, value) == (1 if steps >= 0 else -1)


@given(value=st.fractions(), exponent=st.integers(-60, 60))
def test_declared_constants_are_rounded_half_up(value: Fraction, exponent: int) -> None:
    grid = Grid(exponent)
    rounded = grid.round(value)
    assert rounded - Fraction(1, 2) <= value / grid.step < rounded + Fraction(1, 2)


@given(length=st.fractions(min_value=Fraction(1, 10**20), max_value=10**20), steps=st.integers(1, 2**70))
def test_finer_than_is_the_coarsest_fine_enough(length: Fraction, steps: int) -> None:
    grid = Grid.finer_than(length, steps)
    assert grid.step * steps <= length < 2 * grid.step * steps


@given(
    values=st.lists(
        st.one_of(tricky, st.sampled_from([math.nan, math.inf, -math.inf, -math.nan])), min_size=1, max_size=6
    ),
    exponent=exponents,
)
def test_no_value_raises_and_none_is_left_unsaid(values: list[float], exponent: int) -> None:
    steps = Grid(exponent).steps(np.array(values))
    for value, step in zip(values, steps.tolist(), strict=True):
        assert -LARGEST <= step <= LARGEST
        if math.isnan(value):
            assert step == 0
        elif math.isinf(value):
            assert step == (LARGEST if value > 0 else -LARGEST)


def test_zero_has_one_sign() -> None:
    released = Grid(-10).values(Grid(-10).steps(np.array([-0.0, 0.0, -5e-324])))
    assert not np.signbit(released).any()


@pytest.mark.parametrize("exponent", [-1000, -63, 0, 64, 960])
def test_empty_columns_stay_empty(exponent: int) -> None:
    for dtype in (np.int64, np.float64, np.uint8, np.bool_):
        steps = Grid(exponent).steps(np.array([], dtype=dtype))
        assert steps.shape == (0,)
        assert steps.dtype == np.int64
    assert Grid(exponent).values(np.array([], dtype=np.int64)).shape == (0,)

"""Numbers become the rationals they are written as; anything that is not a number is refused with its name."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import InvalidArgument
from discreet.core.exact import at_least, count, exact, natural, positive, probability


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_as_it_is_written(value: float) -> None:
    assert exact("x", value) == exact("x", repr(value)) == exact("x", np.float64(value))
    assert float(exact("x", value)) == value


def test_decimal_strings_and_integers_are_exact() -> None:
    assert exact("x", "0.1") == Fraction(1, 10) == exact("x", Decimal("0.1"))
    assert exact("x", "1e-6") == Fraction(1, 10**6)
    assert exact("x", np.int64(7)) == exact("x", np.uint8(7)) == 7
    assert exact("x", 0.1) == exact("x", np.float32(0.1)) == exact("x", np.longdouble("0.1")) == Fraction(1, 10)


@pytest.mark.parametrize(
    "junk",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        np.nan,
        True,
        np.True_,
        None,
        "one",
        "1/0",
        1j,
        [1],
        Decimal("NaN"),
        "1e999999999",
        "1e-999999999",
        Decimal("1e99999999"),
        "9" * 20_000,
        pytest.param(10**5000, id="long"),
        "9" * 4_000 + "e4000",
    ],
)
def test_what_is_not_a_number_is_refused_by_name(junk: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        exact("epsilon", junk)
    assert caught.value.argument == "epsilon"
    assert "epsilon=" in str(caught.value)
    assert caught.value.remedy in str(caught.value)


def test_bounds_are_checked() -> None:
    assert positive("x", 0.5) == Fraction(1, 2)
    assert at_least("x", 0, 0) == 0
    assert probability("p", 1, one=True) == 1
    assert natural("n", np.int32(3)) == 3
    assert count("n", 0) == 0
    for refused in (
        lambda: positive("x", 0),
        lambda: positive("x", -1),
        lambda: at_least("x", -1, 0),
        lambda: probability("p", 0),
        lambda: probability("p", 1),
        lambda: probability("p", 1.5, one=True),
        lambda: natural("n", 0),
        lambda: natural("n", 1.0),
        lambda: count("n", -1),
        lambda: count("n", True),
        lambda: count("n", 11, limit=10),
    ):
        with pytest.raises(InvalidArgument):
            refused()

"""Ranges hold: whatever values arguments take within theirs, results lie within the derived range."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sql.reference import evaluate

from discreet.core.domains import Bounds
from discreet.sql.functions.ranges import EVERYTHING, Interval, hull, power
from discreet.sql.functions.registry import call, interval
from discreet.sql.plan import Literal, Ref

reals = st.floats(-1e9, 1e9, allow_nan=False, width=64) | st.sampled_from([0.0, 1.0, -1.0, 0.5, 5e-324, 1e-300])
wholes = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
BINARY = ["+", "-", "*", "/", "%"]
UNARY = ["negate", "abs", "sign", "round", "floor", "ceil", "trunc", "sqrt", "ln", "log10", "log2", "exp"]


@st.composite
def ranged(draw: Any, values: st.SearchStrategy[Any]) -> tuple[Any, Interval]:
    """A value, and a range it lies in, with an end left open now and then."""
    value, one, other = draw(values), draw(values), draw(values)
    low, high = Fraction(min(value, one)), Fraction(max(value, other))
    return value, Interval(
        -math.inf if draw(st.integers(0, 9)) == 0 else low,
        math.inf if draw(st.integers(0, 9)) == 0 else high,
    )


def holds(name: str, kind: Any, *given_values: tuple[Any, Interval]) -> None:
    names = "abc"[: len(given_values)]
    expression = call(name, *(Ref(letter, kind) for letter in names))
    known = {letter: reach for letter, (_, reach) in zip(names, given_values, strict=True)}
    value = evaluate(expression, {letter: value for letter, (value, _) in zip(names, given_values, strict=True)})
    reach = interval(expression, known)
    assert value is None or reach.lower <= Fraction(value) <= reach.upper


@given(st.sampled_from(BINARY), ranged(reals), ranged(reals))
def test_arithmetic_on_reals(name: str, left: tuple[Any, Interval], right: tuple[Any, Interval]) -> None:
    holds(name, "real", left, right)


@given(st.sampled_from([*BINARY, "//"]), ranged(wholes), ranged(wholes))
def test_arithmetic_on_whole_numbers(name: str, left: tuple[Any, Interval], right: tuple[Any, Interval]) -> None:
    holds(name, "integer", left, right)


@given(st.sampled_from(UNARY), ranged(reals))
def test_functions_of_one_real(name: str, value: tuple[Any, Interval]) -> None:
    holds(name, "real", value)


@given(ranged(st.floats(-50, 50)), st.sampled_from([-3, -2, -1, 0, 1, 2, 3, 7, 65, Fraction(1, 2), Fraction(-3, 2)]))
def test_powers_with_a_literal(base: tuple[Any, Interval], exponent: Fraction | int) -> None:
    expression = call("power", Ref("a", "real"), Literal(Fraction(exponent), "real"))
    value = evaluate(expression, {"a": base[0]})
    reach = interval(expression, {"a": base[1]})
    assert value is None or reach.lower <= Fraction(value) <= reach.upper


@given(ranged(st.floats(0, 50)), ranged(st.floats(-9, 9)))
def test_powers(base: tuple[Any, Interval], exponent: tuple[Any, Interval]) -> None:
    holds("power", "real", base, exponent)


@given(ranged(reals), ranged(reals), st.booleans())
def test_extremes_and_choices(left: tuple[Any, Interval], right: tuple[Any, Interval], missing: bool) -> None:
    for name in ("least", "greatest", "coalesce", "nullif"):
        expression = call(name, Ref("a", "real"), Ref("b", "real"))
        value = evaluate(expression, {"a": None if missing else left[0], "b": right[0]})
        reach = interval(expression, {"a": left[1], "b": right[1]})
        assert value is None or reach.lower <= Fraction(value) <= reach.upper


@pytest.mark.parametrize(
    ("name", "arguments", "bounds"),
    [
        ("*", (Ref("age", "integer"), Literal(1000, "integer")), Bounds(0, 120_000)),
        ("*", (Ref("age", "integer"), Literal(Fraction(1, 10), "real")), Bounds(0, 12)),
        ("/", (Ref("age", "integer"), Literal(3, "integer")), Bounds(0, 40)),
        ("/", (Literal(1, "integer"), Ref("age", "integer")), Bounds(Fraction(1 / 120), 1)),
        ("/", (Literal(1, "integer"), Ref("share", "real")), None),
        ("-", (Ref("age", "integer"), Ref("age", "integer")), Bounds(-120, 120)),
        ("%", (Ref("age", "integer"), Literal(10, "integer")), Bounds(0, 9)),
        ("ln", (Ref("age", "integer"),), None),
        ("sqrt", (Ref("share", "real"),), Bounds(0, 1)),
        ("greatest", (Ref("unknown", "real"), Literal(0, "integer")), None),
        ("clamp", (Ref("unknown", "real"), Literal(-1, "integer"), Literal(1, "integer")), Bounds(-1, 1)),
        ("coalesce", (Ref("age", "integer"), Literal(200, "integer")), Bounds(0, 200)),
        ("power", (Ref("share", "real"), Literal(0, "integer")), Bounds(1, 1)),
        ("year", (Ref("day", "date"),), Bounds(1, 9999)),
        ("length", (Ref("s", "text"),), None),
        ("+", (Ref("unknown", "integer"), Literal(1, "integer")), None),
    ],
    ids=str,
)
def test_bounds_that_are_derived(name: str, arguments: Any, bounds: Bounds | None) -> None:
    known = {"age": Interval(Fraction(0), Fraction(120)), "share": Interval(Fraction(0), Fraction(1))}
    assert interval(call(name, *arguments), known).bounds() == bounds


def test_a_sum_past_64_bits_is_null_and_leaves_the_range() -> None:
    large = Interval(Fraction(2**62), Fraction(2**63 - 1))
    assert (large + large).rounded("integer") == EVERYTHING
    assert (Interval(Fraction(0), Fraction(2**40)) * Interval(Fraction(0), Fraction(2**40))).rounded(
        "integer"
    ) == Interval(Fraction(0), Fraction(2**63 - 1))


def test_bounds_too_large_to_hold_are_not_known() -> None:
    assert Interval(Fraction(0), Fraction(2) ** 1001).bounds() is None
    assert power(Interval(Fraction(0), Fraction(10**200)), Interval.exactly(64)).rounded("real").upper == math.inf


def test_the_hull_holds_both() -> None:
    assert hull(Interval.exactly(1), Interval.exactly(5)) == Interval(Fraction(1), Fraction(5))

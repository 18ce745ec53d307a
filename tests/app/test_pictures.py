"""Pictures and numerals: everything on one scale, and losses on the safe side."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from discreet.app.output.bars import bars, gauge
from discreet.core.display.numbers import loss, loss_record, number, places, rational, shown
from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP

VALUES = st.floats(-1e12, 1e12)
WIDTHS = st.floats(0, 1e12)
ROWS = st.lists(st.tuples(VALUES, WIDTHS, WIDTHS), min_size=1, max_size=8)


@given(ROWS, st.integers(3, 120))
def test_every_line_is_as_wide_as_asked_and_marks_its_value_within_its_whiskers(rows: list, width: int) -> None:
    values = [value for value, _, _ in rows]
    lines = bars(values, [(value - low, value + high) for value, low, high in rows], width)
    assert [len(line) for line in lines] == [width] * len(rows)
    for line in lines:
        assert line.count("●") == 1
        mark = line.index("●")
        assert all(left <= mark for left in [line.find("├")] if left >= 0)
        assert all(right >= mark for right in [line.find("┤")] if right >= 0)


@given(st.lists(VALUES, min_size=2, max_size=8), st.integers(10, 120))
def test_larger_values_are_never_drawn_shorter(values: list[float], width: int) -> None:
    marks = [line.index("●") for line in bars(sorted(values), [(value, value) for value in sorted(values)], width)]
    assert all(one <= next_one for one, next_one in pairwise(marks))


@given(st.floats(-1, 2), st.integers(1, 40))
def test_a_gauge_is_full_at_one_and_empty_at_zero(part: float, width: int) -> None:
    drawn = gauge(part, width)
    assert len(drawn) == width
    assert (drawn.count("█") == width) >= (part >= 1)
    assert (drawn.count("█") == 0) >= (part <= 0)


@given(st.fractions(min_value=0, max_value=10**9))
def test_what_is_spent_is_rounded_up_and_what_is_left_down(value: Fraction) -> None:
    up, down = Fraction(rational(value)), Fraction(rational(value, down=True))
    assert down <= value <= up
    assert up - down <= value / 10**5


def test_losses_of_every_definition_are_shown() -> None:
    assert loss(PureDP("0.5")) == "ε = 0.5"
    assert loss(ApproxDP(1, 0)) == "ε = 1"
    assert loss(ZCDP("1/3"), down=True) == "ρ = 0.333333"
    assert "RenyiDP" in loss(RenyiDP((2,), (1,)))
    assert loss_record(RenyiDP((2, 3), (1, "1/3"))) == {
        "definition": "RenyiDP",
        "orders": ["2", "3"],
        "epsilons": ["1", "0.333334"],
    }


def test_numbers_without_ends_or_meaning_are_shown_as_such() -> None:
    assert number(float("inf"), 2) == "∞"
    assert number(-1e308, 2) == "−∞"
    assert number(float("nan"), 2) == "–"
    assert places([]) == places([float("inf"), 0.0]) == 2
    assert places([1e-12]) == 6
    assert shown(float("inf")) == "inf"
    assert shown(12345.678) == "12,345.68"
    assert shown(True) == "True"

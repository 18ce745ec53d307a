"""Units, losses, events and domains say what they mean and refuse what they cannot mean."""

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import (
    ZCDP,
    ApproxDP,
    Bounds,
    Categories,
    InvalidArgument,
    PureDP,
    RenyiDP,
    Row,
    User,
)
from discreet.core import events
from discreet.core.events import from_json, to_json
from discreet.core.units import Edge, Event, Node

ONE_OF_EACH = [
    events.Nothing(),
    events.Laplace(Fraction(1, 3), 2),
    events.Gaussian(Fraction(7, 2), Fraction(2), 3),
    events.Pure(Fraction(1, 3)),
    events.BoundedRange(Fraction(1, 3)),
    events.BoundedRanges(Fraction(1, 9), 7),
    events.Approximate(Fraction(1), Fraction(1, 10**9)),
    events.Composed((events.Pure(Fraction(1)), events.Nothing())),
    events.Repeated(events.Pure(Fraction(1)), 5),
    events.PoissonSampled(Fraction(1, 7), events.Laplace(Fraction(1), 1)),
    events.FixedSizeSampled(3, 10, events.Gaussian(Fraction(4), Fraction(1))),
]


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda e: type(e).__name__)
def test_events_survive_json_to_the_last_digit(event: events.Event) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event
    assert hash(event) == hash(from_json(to_json(event)))


def test_every_event_has_a_stored_name_and_the_names_are_these() -> None:
    kinds = {to_json(event)["kind"] for event in ONE_OF_EACH}
    assert kinds == {
        "nothing", "laplace", "gaussian", "pure", "bounded_range", "bounded_ranges", "approximate", "composed",
        "repeated", "poisson_sampled", "fixed_size_sampled",
    }  # fmt: skip
    assert {type(event) for event in ONE_OF_EACH} == set(events.Event.__subclasses__())


def test_events_cannot_be_changed_or_made_from_junk() -> None:
    field = "epsilon"
    with pytest.raises(FrozenInstanceError):
        setattr(events.Pure(Fraction(1)), field, Fraction(2))
    for junk in (
        lambda: events.Laplace(0, 1),
        lambda: events.Laplace(1, -1),
        lambda: events.Laplace(1, 1.5),
        lambda: events.Gaussian(float("nan"), 1),
        lambda: events.Pure(-1),
        lambda: events.BoundedRanges(-1, 1),
        lambda: events.BoundedRanges(1, 0),
        lambda: events.Approximate(1, 2),
        lambda: events.Composed(("laplace",)),
        lambda: events.Repeated(events.Nothing(), -1),
        lambda: events.PoissonSampled(2, events.Nothing()),
        lambda: events.FixedSizeSampled(11, 10, events.Nothing()),
        lambda: from_json({"kind": "magic"}),
        lambda: from_json({"kind": "pure"}),
        lambda: from_json({"kind": "pure", "epsilon": "1", "more": "2"}),
    ):
        with pytest.raises(InvalidArgument):
            junk()


def test_losses_hold_exact_numbers_and_add_up() -> None:
    assert ApproxDP(3, 1e-6) == ApproxDP(3, "1e-6")
    assert ApproxDP(3, 1e-6).delta == Fraction(1, 10**6)
    assert (ApproxDP(1, "0.7") + ApproxDP(2, "0.7")) == ApproxDP(3, 1)
    assert PureDP("0.1") + PureDP("0.2") == PureDP("0.3")
    assert ZCDP(1) + ZCDP(2) == ZCDP(3)
    assert RenyiDP((2, 3), (1, 2)) + RenyiDP((2, 3), (1, 2)) == RenyiDP((2, 3), (2, 4))


@given(st.fractions(min_value=0, max_value=10**9))
def test_a_printed_loss_is_never_below_the_loss(epsilon: Fraction) -> None:
    printed = repr(PureDP(epsilon)).removeprefix("PureDP(epsilon=").removesuffix(")")
    assert epsilon <= Fraction(printed) <= epsilon * (1 + Fraction(1, 10**5))
    assert repr(PureDP(0.1)) == repr(PureDP("0.1")) == "PureDP(epsilon=0.1)"


@pytest.mark.parametrize(
    "junk",
    [
        lambda: PureDP(-1),
        lambda: PureDP(float("inf")),
        lambda: ApproxDP(1, -1e-9),
        lambda: ApproxDP(1, 1.1),
        lambda: ApproxDP(float("nan"), 0),
        lambda: ZCDP("a lot"),
        lambda: RenyiDP((1, 2), (1, 1)),
        lambda: RenyiDP((3, 2), (1, 1)),
        lambda: RenyiDP((2, 3), (1,)),
        lambda: RenyiDP((), ()),
        lambda: RenyiDP((2,), (1,)) + RenyiDP((3,), (1,)),
        lambda: Row(neighbours="swap"),
        lambda: User(""),
        lambda: User(3),
        lambda: Bounds(1, 0),
        lambda: Bounds(0, float("inf")),
        lambda: Bounds(0, 1, missing=2),
        lambda: Bounds(Fraction(1, 3), Fraction(1, 3)),
        lambda: Bounds(0, 1).clip(np.array(["a"])),
        lambda: Categories(()),
        lambda: Categories(("a", "a")),
    ],
)
def test_junk_is_refused(junk: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument):
        junk()


def test_units_name_their_neighbours() -> None:
    assert [u.changes for u in (Row(), User("id"), Event(), Edge(), Node())] == [1] * 5
    assert Row(neighbours="replace").changes == 2
    assert User("id") != User("id", neighbours="replace")


def test_clipping_never_fails_and_never_leaves_the_bounds() -> None:
    nasty = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, -1e308, 3.0])
    clipped = Bounds(-1, 2).clip(nasty)
    assert ((clipped >= -1) & (clipped <= 2)).all()
    assert clipped[0] == 0
    assert Bounds(5, 9).clip(np.array([np.nan])).tolist() == [5]
    assert Bounds(0, 9, missing=4).clip(np.array([np.nan])).tolist() == [4]
    extremes = np.array([np.iinfo(np.int64).min, -1, 0, np.iinfo(np.int64).max])
    assert Bounds(0, 10).clip(extremes).tolist() == [0, 0, 0, 10]
    assert Bounds(0, 10).clip(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [10]
    assert Bounds("0.25", "0.75").clip(np.array([0, 1])).tolist() == [0.25, 0.75]


def test_bounds_between_doubles_are_kept_on_the_inside() -> None:
    third = Fraction(1, 3)
    high = Bounds(-third, third).clip(np.array([1.0]))[0]
    low = Bounds(-third, third).clip(np.array([-1.0]))[0]
    assert -third <= Fraction(low) < Fraction(high) <= third


def test_sensitivity_of_bounds_uses_both_ends() -> None:
    # Bounds (0, 100) once gave a library sensitivity 0 by reading the wrong end.
    assert Bounds(0, 100).magnitude == Bounds(-100, 0).magnitude == 100
    assert Bounds(-3, 2).magnitude == 3
    assert Bounds(-3, 2).width == 5


def test_unknown_categories_get_no_code() -> None:
    assert Categories(("a", "b")).codes(np.array(["b", "z", "a"])).tolist() == [1, -1, 0]
    assert Categories((1, 2)).codes(np.array([], dtype=np.int64)).tolist() == []

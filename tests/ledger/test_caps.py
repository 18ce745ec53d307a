"""Caps hold where they seem to: over all studies, whatever is opened later, and none is above what holds anyway."""

from typing import Any

import pytest
from tests.ledger.places import ANN, HEALTH, STUDY, UNIT, Place, opened, pure

from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.losses import ZCDP, PureDP
from discreet.ledger import Ledger, readable
from discreet.ledger.encoding import everywhere

EVE = everywhere("health", "eve")


@pytest.fixture
def ledger(place: Place) -> Ledger:
    """A data set of ε = 1 in which nobody has a cap."""
    made = place.open()
    made.open(HEALTH, budget=PureDP(1), unit=UNIT, source="sha256:1f")
    return made


def test_an_analyst_is_capped_over_all_studies(ledger: Ledger, place: Place) -> None:
    for study in ("flu", "covid"):
        ledger.open(("health", study))
        ledger.open(("health", study, "eve"))
    ledger.open(("health", "eve"))
    ledger.charge(("health", "flu", "eve"), pure(1, 8), "before the cap")
    assert ledger.open(EVE, budget=PureDP("0.25")) == EVE
    assert ledger.spent(EVE) == PureDP("0.125")
    other = place.open()
    other.charge(("health", "covid", "eve"), pure(1, 16), "in another study")
    assert [str(s.remaining) for s in ledger.standing(("health", "flu", "eve")) if s.budget is not None] == [
        "PureDP(epsilon=0.8125)",
        "PureDP(epsilon=0.0625)",
    ]
    assert ledger.remaining(("health", "covid", "eve")) == PureDP("0.0625")
    for path in (("health", "flu", "eve"), ("health", "covid", "eve"), ("health", "eve")):
        assert not other.fits(path, pure(1, 8))
        with pytest.raises(BudgetExceeded, match=r"health/\*/eve"):
            other.charge(path, pure(1, 8), "too much")
    other.charge(("health", "eve"), pure(1, 16), "to the last bit")
    assert ledger.remaining(EVE) == PureDP(0)
    ledger.charge(("health", "flu"), pure(1, 8), "others go on")
    ledger.amend(EVE, PureDP("0.5"), note="more for eve")
    assert ledger.charge(("health", "flu", "eve"), pure(1, 8), "more").fresh
    assert len(list(ledger.events(EVE))) == 4
    assert "eve in all studies: spent PureDP(epsilon=0.375) of PureDP(epsilon=0.5)" in readable(ledger.registry())
    assert place.open().check().sound


def test_a_study_that_is_opened_later_is_under_the_cap_too(ledger: Ledger) -> None:
    ledger.open(EVE, budget=PureDP("0.25"))
    ledger.open(("health", "later"), new=True)
    ledger.open(("health", "later", "eve"))
    with pytest.raises(BudgetExceeded, match="eve"):
        ledger.charge(("health", "later", "eve"), pure(1, 2), "q")


@pytest.mark.parametrize(
    ("account", "arguments"),
    [
        (EVE, {}),
        (EVE, {"budget": PureDP("0.0625")}),
        (EVE, {"budget": PureDP(2)}),
        (EVE, {"budget": PureDP("0.5"), "delta_share": "0.5"}),
        (EVE, {"budget": PureDP("0.5"), "source": "s"}),
        (("health", "", ""), {"budget": PureDP("0.5")}),
        (("", "", "eve"), {"budget": PureDP("0.5")}),
        (("health", ""), {"budget": PureDP("0.5")}),
        (("health", "", "eve", "more"), {"budget": PureDP("0.5")}),
    ],
)
def test_senseless_caps_over_all_studies_are_refused(ledger: Ledger, account: Any, arguments: Any) -> None:
    ledger.open(("health", "eve"))
    ledger.charge(("health", "eve"), pure(1, 8), "q")
    before = ledger.head()
    with pytest.raises(InvalidArgument):
        ledger.open(account, **arguments)
    assert ledger.head() == before


def test_nobody_is_charged_at_a_name_itself(ledger: Ledger) -> None:
    ledger.open(EVE, budget=PureDP("0.25"))
    for call in (lambda: ledger.charge(EVE, pure(1, 8), "q"), lambda: ledger.replay(EVE, "q")):
        with pytest.raises(InvalidArgument, match="account"):
            call()


def test_without_caps_new_names_are_opened_without_a_word(ledger: Ledger) -> None:
    for path in (("health", "flu"), ("health", "flu", "ann"), ("health", "bob")):
        assert ledger.open(path) == path


@pytest.mark.parametrize(
    ("caps", "path", "expected"),
    [
        ([("health", "flu")], ("health", "flue"), False),
        ([("health", "flu")], ("health", "flu", "ann"), True),
        ([("health", "flu", "ann")], ("health", "flu", "anne"), False),
        ([("health", "flu", "ann")], ("health", "covid", "ann"), False),
        ([("health", "flu", "ann")], ("health", "covid", "bob"), True),
        ([EVE], ("health", "evee"), False),
        ([EVE], ("health", "eve"), True),
        ([EVE], ("health", "covid", "eve"), True),
        ([EVE], ("health", "covid", "flu"), False),
        ([EVE], ("health", "covid", "mallory"), False),
    ],
)
def test_where_others_have_caps_a_name_without_one_is_meant(
    ledger: Ledger, caps: list[Any], path: Any, expected: bool
) -> None:
    for study in ("flu", "covid"):
        if ("health", study) not in caps:
            ledger.open(("health", study))
    for cap in caps:
        ledger.open(cap, budget=PureDP("0.25"))
    if expected:
        assert ledger.open(path) == path
        return
    with pytest.raises(InvalidArgument, match="new=True") as refused:
        ledger.open(path)
    assert "known names" in str(refused.value)
    assert ledger.open(path, new=True) == path
    assert ledger.open(path) == path


def test_a_cap_above_what_holds_anyway_is_refused_and_named(ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="'health' has and so holds for 'health/flu' too"):
        ledger.open(("health", "flu"), budget=PureDP(2))
    ledger.open(("health", "flu"), budget=PureDP("0.5"))
    ledger.open(EVE, budget=PureDP("0.25"))
    with pytest.raises(InvalidArgument, match="health/flu"):
        ledger.open(("health", "flu", "ann"), budget=PureDP("0.75"))
    with pytest.raises(InvalidArgument, match=r"health/\*/eve"):
        ledger.open(("health", "flu", "eve"), budget=PureDP("0.375"))
    with pytest.raises(InvalidArgument, match="'health'"):
        ledger.amend(("health", "flu"), PureDP("1.5"))
    ledger.open(("health", "flu", "ann"), budget=ZCDP(9))
    assert ledger.outranked() == []


def test_a_budget_that_was_lowered_later_says_which_caps_it_outranks(place: Place) -> None:
    ledger = opened(place.open())
    ledger.amend(STUDY, PureDP("0.125"))
    assert ledger.outranked() == [(ANN, PureDP("0.25"), STUDY, PureDP("0.125"))]
    assert ledger.check().sound

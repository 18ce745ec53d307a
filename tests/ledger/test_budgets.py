"""Budgets of accounts: changed on record, compared, shown, and asked whether something fits."""

from fractions import Fraction as F

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, STUDY, UNIT, Place, opened, pure

from discreet.accounting import Filter
from discreet.accounting.approximate import approximate
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.events import Gaussian, Laplace
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP

NOISE = Gaussian(F(10**6), F(10**4))


def test_budgets_change_on_record_only_and_never_below_what_is_spent(place: Place) -> None:
    ledger = opened(place.open())
    ledger.charge(HEALTH, pure(3, 4), "a")
    with pytest.raises(InvalidArgument, match="has spent") as caught:
        ledger.amend(HEALTH, PureDP("0.5"))
    assert "0.75" in str(caught.value)
    ledger.amend(HEALTH, PureDP("0.75"), note="no more")
    with pytest.raises(BudgetExceeded):
        ledger.charge(HEALTH, pure(1, 8), "b")
    ledger.amend(HEALTH, PureDP(3), note="a new consent")
    ledger.charge(BOB, pure(1, 2), "b")
    assert ledger.spent(HEALTH) == PureDP("1.25")
    amendments = [e.content for e in ledger.entries() if e.content["kind"] == "amend"]
    assert [(a["former"]["epsilon"], a["budget"]["epsilon"], a["note"]) for a in amendments] == [
        ("1", "3/4", "no more"),
        ("3/4", "3", "a new consent"),
    ]
    assert place.open().open(HEALTH, budget=PureDP(3)) == HEALTH
    ledger.amend(HEALTH, PureDP(2))
    assert ledger.check().sound
    [register] = ledger.registry()["data_sets"]
    assert (register["accounts"][0]["budget"]["epsilon"], register["accounts"][0]["promised"]["epsilon"]) == (2, 3)


@pytest.mark.parametrize(
    ("budget", "other"),
    [
        (ApproxDP(1, "1e-6"), ApproxDP(2, "1e-7")),
        (ApproxDP(1, "1e-6"), PureDP(2)),
        (RenyiDP((2, 4), (1, 2)), RenyiDP((2, 4), (2, 1))),
        (RenyiDP((2, 4), (1, 2)), RenyiDP((2, 8), (1, 2))),
    ],
)
def test_budgets_that_cannot_be_compared_do_not_replace_each_other(place: Place, budget: Loss, other: Loss) -> None:
    ledger = place.open()
    ledger.open(HEALTH, budget=budget, unit=UNIT, source="s")
    with pytest.raises(InvalidArgument, match="comparable"):
        ledger.amend(HEALTH, other)


def test_a_raised_budget_keeps_its_rules_and_reopens_what_was_closed(place: Place) -> None:
    """The order of the Rényi sums is fixed at the start; a sum of pure ε past its cap is kept for a larger one."""
    ledger = place.open()
    ledger.open(HEALTH, budget=ApproxDP(1, "1e-6"), unit=UNIT, source="s")
    ledger.open(STUDY)
    kept = [entry.content["state"]["order"] for entry in ledger.entries(since=1)]
    for i in range(150):
        ledger.charge(STUDY, Laplace(F(100), 1), f"q{i}")
    with pytest.raises(BudgetExceeded):
        ledger.charge(STUDY, pure(1), "large")
    ledger.amend(HEALTH, ApproxDP(4, "1e-6"))
    ledger.charge(STUDY, pure(1), "large")
    last = list(ledger.entries())[-1].content
    assert [state["sums"][1] for state in last["states"]] == [["5/2", "0"]] * 2
    assert {s["order"] for e in ledger.entries() for s in e.content.get("states", [])} == set(kept)
    assert ledger.check().sound


def test_a_first_budget_counts_all_that_was_charged_before(place: Place) -> None:
    ledger = opened(place.open())
    ledger.charge(BOB, pure(1, 4), "a")
    ledger.charge(HEALTH, pure(1, 8), "b")
    with pytest.raises(BudgetExceeded):
        ledger.amend(BOB, PureDP("0.125"))
    ledger.amend(BOB, PureDP("0.375"))
    with pytest.raises(BudgetExceeded, match="bob"):
        ledger.charge(BOB, pure(1, 4), "c")
    ledger.charge(BOB, pure(1, 8), "d")
    assert ledger.check().sound


def test_standing_shows_every_budget_above_an_account(place: Place) -> None:
    ledger = opened(place.open(), ZCDP(1))
    ledger.charge(BOB, pure(1, 4), "a")
    health, study, bob = ledger.standing(BOB)
    assert (health.budget, study.budget, bob.budget) == (ZCDP(1), PureDP("0.5"), None)
    assert (study.spent, study.remaining, study.used) == (PureDP("0.25"), PureDP("0.25"), F(1, 2))
    assert isinstance(bob.spent, ZCDP)
    assert bob.remaining is None
    assert ledger.remaining(BOB) == PureDP("0.25")
    assert isinstance(ledger.remaining(HEALTH), ZCDP)
    with pytest.raises(InvalidArgument, match="'health/flu study'"):
        ledger.spent(("health", "flue study"))


@pytest.mark.parametrize("budget", [ApproxDP(2, "1e-6"), ApproxDP(1, 0), RenyiDP((2, 4), (1, 2))])
def test_the_least_remaining_of_one_definition_counts(place: Place, budget: Loss) -> None:
    ledger = place.open()
    ledger.open(HEALTH, budget=budget, unit=UNIT, source="s")
    ledger.open(STUDY, budget=budget)
    ledger.charge(HEALTH, pure(1, 2), "elsewhere")
    assert ledger.remaining(STUDY) == ledger.remaining(HEALTH) != Filter(budget).remaining


def test_what_fits_is_what_a_charge_would_admit_and_asking_charges_nothing(place: Place) -> None:
    ledger = opened(place.open())
    before = [entry.text for entry in ledger.entries()]
    assert ledger.fits(ANN, pure(1, 8))
    assert not ledger.fits(ANN, pure(1, 1))
    assert not ledger.fits(ANN, [*pure(1, 8), *pure(1, 1)])
    assert [entry.text for entry in ledger.entries()] == before
    ledger.charge(BOB, pure(1, 2), "b")
    assert not ledger.fits(ANN, pure(1, 8))
    with pytest.raises(BudgetExceeded):
        ledger.charge(ANN, pure(1, 8), "a")


def test_less_delta_makes_what_one_question_alone_cost_dearer(place: Place) -> None:
    """One question alone is measured at the budget's δ; a smaller one is refused where its ε then passes the budget."""
    ledger = place.open()
    ledger.open(HEALTH, budget=ApproxDP(1, "1e-5"), unit=UNIT, source="sha256:1")
    event = Gaussian(F(25), F(1))
    ledger.charge(HEALTH, event, "q")
    assert ledger.spent(HEALTH).epsilon <= 1
    for delta in ("1e-9", "1e-6", "9e-6"):
        exact = approximate(event, F(delta)).epsilon
        if exact > 1:
            with pytest.raises(InvalidArgument, match="at least what"):
                ledger.amend(HEALTH, ApproxDP(1, delta))
        else:
            ledger.amend(HEALTH, ApproxDP(1, delta))
            assert ledger.spent(HEALTH).epsilon >= exact or ledger.spent(HEALTH).delta > F(delta)
            break
    assert ledger.check().sound


@pytest.mark.parametrize("budget", [ApproxDP(*["0.001"] * 2), ApproxDP(*["0.01"] * 2), ApproxDP("0.5", "0.3")], ids=str)
def test_budgets_with_much_delta_can_be_stated(place: Place, budget: ApproxDP) -> None:
    ledger = place.open()
    ledger.open(HEALTH, budget=budget, unit=UNIT, source="sha256:1")
    for number in range(2):
        ledger.charge(HEALTH, pure(1, 10_000), f"q{number}")
    spent = ledger.spent(HEALTH)
    assert 0 <= spent.epsilon <= budget.epsilon
    assert ledger.registry()
    assert ledger.check().sound

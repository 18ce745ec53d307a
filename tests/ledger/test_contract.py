"""What every ledger does, wherever its books are kept."""

from collections.abc import Callable
from fractions import Fraction as F

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, STUDY, UNIT, Place, opened, pure

from discreet.core.errors import BudgetExceeded, InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    Repeated,
)
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.core.units import Row, User
from discreet.ledger import Charge, Head, Ledger, LedgerUnavailable

NOISE = Gaussian(F(10**6), F(10**4))


def content(ledger: Ledger) -> list[str]:
    return [entry.text for entry in ledger.entries()]


def test_a_charge_is_taken_from_the_account_and_all_above_it(place: Place) -> None:
    ledger = opened(place.open())
    ledger.charge(ANN, pure(1, 8), "a")
    ledger.charge(BOB, pure(1, 4), "b")
    assert [ledger.spent(path) for path in (ANN, BOB, STUDY, HEALTH)] == [
        PureDP("0.125"),
        PureDP("0.25"),
        PureDP("0.375"),
        PureDP("0.375"),
    ]
    assert ledger.remaining(ANN) == ledger.remaining(STUDY) == ledger.remaining(BOB) == PureDP("0.125")
    assert ledger.remaining(HEALTH) == PureDP("0.625")
    assert ledger.check().sound


@pytest.mark.parametrize(
    ("path", "cost", "whose", "remaining"),
    [(ANN, F(3, 8), "ann", F(1, 4)), (BOB, F(5, 8), "flu study", F(1, 2)), (HEALTH, F(9, 8), "health", F(1))],
)
def test_a_charge_that_does_not_fit_any_one_budget_changes_nothing(
    place: Place, path: tuple[str, ...], cost: F, whose: str, remaining: F
) -> None:
    ledger = opened(place.open())
    before = content(ledger)
    with pytest.raises(BudgetExceeded, match=whose) as caught:
        ledger.charge(path, [Pure(cost)], "too much")
    assert (caught.value.asked, caught.value.remaining) == (PureDP(cost), PureDP(remaining))
    assert content(ledger) == before
    assert ledger.spent(HEALTH) == PureDP(0)
    assert ledger.replay(HEALTH, "too much") is None
    ledger.charge(ANN, pure(1, 4), "enough")


@pytest.mark.parametrize(
    ("budget", "event"),
    [
        (ApproxDP(1, "1e-6"), Repeated(NOISE, 50)),
        (ApproxDP(1, "1e-6"), Pure(F(2))),
        (ApproxDP(1, "1e-6"), Approximate(F(1, 10), F(1, 100))),
        (ZCDP("0.1"), Repeated(NOISE, 50)),
        (RenyiDP((2, 8), ("0.1", "0.4")), Repeated(NOISE, 50)),
    ],
)
def test_a_refusal_speaks_in_the_definition_of_the_budget(place: Place, budget: Loss, event: Event) -> None:
    ledger = place.open()
    ledger.open(HEALTH, budget=budget, unit=UNIT, source="s")
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(HEALTH, event, "too much")
    assert type(caught.value.asked) is type(caught.value.remaining) is type(budget)
    asked, remaining = caught.value.asked, caught.value.remaining
    numbers = ("epsilon", "delta") if isinstance(budget, ApproxDP) else ("rho", "epsilons")
    assert any(getattr(asked, n) > getattr(remaining, n) for n in numbers if hasattr(asked, n))
    assert "amend" in str(caught.value)
    if not isinstance(budget, RenyiDP):
        assert "Renyi" not in str(caught.value)


def test_the_books_go_on_where_another_process_left_them(place: Place) -> None:
    opened(place.open()).charge(ANN, pure(1, 8), "a")
    other = place.open()
    assert other.open(HEALTH, budget=PureDP(1), unit=UNIT, source="sha256:1f") == HEALTH
    assert other.open(HEALTH) == HEALTH
    assert other.spent(HEALTH) == PureDP("0.125")
    before = content(other)
    opened(other)
    assert content(other) == before


def test_a_source_under_another_name_continues_its_budget(place: Place) -> None:
    ledger = opened(place.open())
    ledger.charge(HEALTH, pure(3, 4), "a")
    renamed = place.open().open(("view of health",), budget=PureDP(1), unit=UNIT, source="sha256:1f")
    assert renamed == HEALTH
    with pytest.raises(BudgetExceeded):
        ledger.charge(renamed, pure(1, 2), "b")
    with pytest.raises(InvalidArgument, match="amend"):
        ledger.open(("view of health",), budget=PureDP(2), unit=UNIT, source="sha256:1f")
    with pytest.raises(InvalidArgument, match="open accounts: 'health'"):
        ledger.charge(("view of health",), pure(1, 8), "b")


def test_a_name_stands_for_one_source_unless_another_is_attached_on_record(place: Place) -> None:
    ledger = opened(place.open())
    with pytest.raises(InvalidArgument, match="attach"):
        ledger.open(HEALTH, source="sha256:2e")
    ledger.attach(HEALTH, "sha256:2e", note="the table of February")
    assert ledger.open(("february",), source="sha256:2e") == HEALTH
    ledger.open(("other",), budget=PureDP(1), unit=UNIT, source="sha256:3d")
    ledger.attach(HEALTH, "sha256:2e")
    for path, source in ((("other",), "sha256:2e"), (STUDY, "sha256:4c"), (STUDY, "sha256:2e")):
        with pytest.raises(InvalidArgument):
            ledger.attach(path, source)
    with pytest.raises(InvalidArgument, match="health"):
        ledger.open(("other",), source="sha256:2e")
    assert [e.content["source"] for e in ledger.entries() if e.content["kind"] == "attach"] == ["sha256:2e"]
    assert ledger.check().sound


@pytest.mark.parametrize(
    ("path", "said", "both"),
    [
        (HEALTH, {"budget": PureDP(2)}, ("2", "1", "amend")),
        (HEALTH, {"budget": ApproxDP(1, "1e-6")}, ("ApproxDP", "PureDP", "amend")),
        (HEALTH, {"unit": Row()}, ("Row", "User", "promised")),
        (HEALTH, {"unit": User("patient", neighbours="replace")}, ("replace", "add_remove", "promised")),
        (STUDY, {"budget": PureDP(1)}, ("1", "0.5", "amend")),
        (BOB, {"budget": PureDP(1)}, ("1", "None", "amend")),
        (HEALTH, {"composition": "renyi"}, ("renyi", "None", "leave")),
        (HEALTH, {"delta_share": "0.25"}, ("0.25", "1/2", "leave")),
        (HEALTH, {"order": 4}, ("4", "None", "leave")),
    ],
)
def test_opening_with_other_terms_names_both_and_the_remedy(
    place: Place, path: tuple[str, ...], said: dict[str, object], both: tuple[str, ...]
) -> None:
    ledger = opened(place.open())
    before = content(ledger)
    with pytest.raises(InvalidArgument) as caught:
        ledger.open(path, **said)
    for word in both:
        assert word in str(caught.value)
    assert content(ledger) == before


def test_a_new_data_set_needs_a_budget_a_unit_and_a_source(place: Place) -> None:
    ledger = place.open()
    whole = {"budget": PureDP(1), "unit": UNIT, "source": "s"}
    for missing in whole:
        with pytest.raises(InvalidArgument, match="budget, unit and source"):
            ledger.open(HEALTH, **{name: value for name, value in whole.items() if name != missing})
    with pytest.raises(InvalidArgument, match="open it first"):
        ledger.open(STUDY, budget=PureDP(1))
    ledger.open(HEALTH, **whole)
    for extra in ({"unit": UNIT}, {"source": "t"}, {"composition": "basic"}):
        with pytest.raises(InvalidArgument):
            ledger.open(STUDY, **extra)
    assert ledger.accounts() == (HEALTH,)


@pytest.mark.parametrize(
    "account",
    [
        "health",
        (),
        ("",),
        (" health",),
        ("a/b",),
        ("a\n",),
        ("a\u200b",),
        ("e\u0301",),
        ("\ud800",),
        (1,),
        ("x" * 201,),
        None,
        ("a",) * 9,
    ],
)
def test_accounts_are_named_by_tuples_of_clean_names(place: Place, account: object) -> None:
    ledger = opened(place.open())
    for call in (
        lambda: ledger.open(account, budget=PureDP(1), unit=UNIT, source="t"),
        lambda: ledger.charge(account, pure(0), "q"),
        lambda: ledger.spent(account),
        lambda: ledger.replay(account, "q"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert caught.value.argument == "account"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"question": ""}, "question"),
        ({"question": b"q"}, "question"),
        ({"question": "x" * (2**20 + 1)}, "question"),
        ({"note": None}, "note"),
        ({"note": "\ud800"}, "note"),
        ({"events": "laplace"}, "event"),
        ({"events": ["laplace"]}, "events"),
        ({"events": [Event()]}, "events"),
        ({"events": 3}, "event"),
        ({"events": [Pure(F(1, 10**5000))]}, "events"),
        ({"events": [Pure(F(1, 10**6))] * 10**5}, "events"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_charged(place: Place, arguments: dict[str, object], name: str) -> None:
    ledger = opened(place.open())
    before = content(ledger)
    with pytest.raises(InvalidArgument) as caught:
        ledger.charge(**({"account": HEALTH, "events": pure(1, 8), "question": "q"} | arguments))
    assert caught.value.argument == name
    assert content(ledger) == before


def test_events_that_cannot_be_accounted_are_not_charged(place: Place) -> None:
    ledger = opened(place.open(), ApproxDP(1, "1e-6"))
    before = content(ledger)
    with pytest.raises(NotAccountable):
        ledger.charge(ANN, NOISE, "a Gaussian in a pure budget")
    with pytest.raises(NotAccountable, match="replace"):
        ledger.charge(HEALTH, FixedSizeSampled(1, 100, Pure(F(1, 100))), "sampled for other neighbours")
    assert content(ledger) == before
    ledger.charge(HEALTH, PoissonSampled(F(1, 100), Pure(F(1, 100))), "sampled for the right ones")


def test_an_entry_says_who_was_charged_for_what_and_what_is_spent(place: Place) -> None:
    ledger = opened(place.open())
    events = [Laplace(F(8), 1), Pure(F(1, 16))]
    charge = ledger.charge(ANN, events, "how many?", note="pilot")
    [entry] = ledger.entries(since=charge.sequence - 1)
    assert (entry.sequence, entry.hash) == (charge.sequence, charge.hash)
    said = entry.content
    assert said["account"] == list(ANN)
    assert [event["kind"] for event in said["events"]] == ["laplace", "pure"]
    assert said["spent"] == charge.spent == "PureDP(epsilon=0.1875)"
    assert said["time"].startswith("2030-01-01T00:")
    assert (said["request"], said["note"]) == (charge.run, "pilot")
    assert "how many?" not in entry.text
    assert [state["sums"] for state in said["states"]] == [[["3/16"]]] * 3
    assert tuple(ledger.events(STUDY)) == (Composed(tuple(events)),)
    assert tuple(ledger.events(BOB)) == ()


def test_a_question_is_paid_for_once_and_answered_once(place: Place) -> None:
    ledger, other = opened(place.open()), place.open()
    assert ledger.replay(ANN, "q") is None
    first, second = ledger.charge(ANN, pure(1, 8), "q"), other.charge(BOB, pure(1, 8), "q")
    assert (first.fresh, second.fresh) == (True, False)
    assert (first.payload, second.payload) == (None, None)
    assert (second.sequence, second.hash, second.account) == (first.sequence, first.hash, ANN)
    assert ledger.complete(first, b"42") == b"42"
    assert ledger.complete(first, b"57") == b"42"
    third = ledger.charge(HEALTH, pure(1, 8), "q")
    assert (third.fresh, third.payload) == (False, b"42")
    assert other.replay(BOB, "q") == other.replay(HEALTH, "q") == b"42"
    assert ledger.spent(HEALTH) == PureDP("0.125")
    assert ledger.check().sound


def test_an_empty_answer_is_an_answer(place: Place) -> None:
    ledger = opened(place.open())
    ledger.complete(ledger.charge(ANN, pure(0), "q"), b"")
    assert ledger.replay(ANN, "q") == b""
    assert ledger.charge(ANN, pure(0), "q").payload == b""


def test_questions_of_different_data_sets_are_different_questions(place: Place) -> None:
    ledger = opened(place.open())
    ledger.open(("other",), budget=PureDP(1), unit=UNIT, source="t")
    ledger.complete(ledger.charge(HEALTH, pure(1, 8), "q"), b"42")
    assert ledger.replay(("other",), "q") is None
    assert ledger.charge(("other",), pure(1, 8), "q").fresh


@pytest.mark.parametrize("other", [pure(1, 16), pure(1, 4), [*pure(1, 16), *pure(1, 16)]])
def test_a_question_that_was_charged_for_other_events_is_known_and_never_run_on_their_charge(
    place: Place, other: list[Pure]
) -> None:
    """Another version may plan it otherwise; whoever gives less, or more, waits for what was paid and is shown that."""
    ledger, asking = opened(place.open()), place.open()
    charge = ledger.charge(ANN, pure(1, 8), "q")
    for handle in (ledger, asking):
        waiting = handle.charge(ANN, other, "q")
        assert (waiting.sequence, waiting.own, waiting.events) == (charge.sequence, False, tuple(pure(1, 8)))
        with pytest.raises(InvalidArgument, match="wait for whoever runs it"):
            handle.complete(waiting, b"57")
    ledger.complete(charge, b"42")
    shown = asking.ask(ANN, other, "q", lambda: b"never run")
    assert (shown.payload, shown.own, shown.events) == (b"42", False, tuple(pure(1, 8)))
    assert ledger.spent(HEALTH) == PureDP("0.125")
    assert charge.events == tuple(pure(1, 8))


def test_a_question_that_was_paid_for_is_answered_when_the_budget_is_gone(place: Place) -> None:
    ledger = opened(place.open())
    ledger.complete(ledger.charge(HEALTH, pure(1), "everything"), b"42")
    with pytest.raises(BudgetExceeded):
        ledger.charge(HEALTH, pure(1, 1000), "a little more")
    assert ledger.replay(ANN, "everything") == ledger.charge(ANN, pure(1), "everything").payload == b"42"


@pytest.mark.parametrize(
    "forged",
    [
        lambda charge: Charge("0" * 32, *_fields(charge)[1:]),
        lambda charge: Charge(charge.ledger, charge.sequence + 9, *_fields(charge)[2:]),
        lambda charge: Charge(charge.ledger, charge.sequence, "0" * 64, *_fields(charge)[3:]),
    ],
)
def test_only_charges_of_this_ledger_are_completed(place: Place, forged: Callable[[Charge], Charge]) -> None:
    ledger = opened(place.open())
    charge = ledger.charge(ANN, pure(1, 8), "q")
    with pytest.raises(InvalidArgument, match="charge first"):
        ledger.complete(forged(charge), b"42")
    first = next(iter(ledger.entries()))
    with pytest.raises(InvalidArgument, match="charge first"):
        ledger.complete(Charge(ledger.id, 1, first.hash, ANN, "", "", "", True, None), b"42")
    with pytest.raises(InvalidArgument, match="serialise"):
        ledger.complete(charge, "42")
    assert ledger.replay(ANN, "q") is None


def _fields(charge: Charge) -> list[object]:
    return list(vars(charge).values())


def test_an_anchor_noted_elsewhere_is_found_on_the_chain(place: Place) -> None:
    ledger = opened(place.open())
    ledger.charge(ANN, pure(1, 8), "a")
    noted = ledger.head()
    ledger.charge(ANN, pure(1, 8), "b")
    assert ledger.check(noted).sound
    assert ledger.check(Head(0, "")).sound
    changed = ledger.check(Head(noted.sequence, "0" * 64))
    assert changed.fault is not None
    assert changed.fault.sequence == noted.sequence
    assert not ledger.check(Head(noted.sequence + 2, "0" * 64)).sound


def test_long_books_are_read_in_pages(place: Place) -> None:
    ledger = opened(place.open())
    for i in range(510):
        ledger.charge(BOB, pure(1, 10**6), f"q{i}")
    assert [entry.sequence for entry in ledger.entries(since=3)] == list(range(4, 516))
    assert sum(event.epsilon for composed in ledger.events(HEALTH) for event in composed.events) == F(510, 10**6)
    ledger.amend(BOB, PureDP(F(510, 10**6)))
    assert ledger.check().sound


def test_a_closed_ledger_says_so(place: Place) -> None:
    ledger = opened(place.open())
    ledger.close()
    ledger.close()
    for call in (lambda: ledger.spent(HEALTH), lambda: ledger.charge(HEALTH, pure(1, 8), "q")):
        with pytest.raises(LedgerUnavailable, match="closed"):
            call()

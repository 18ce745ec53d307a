"""A question that lives long is charged once; its steps name what was charged, come in order, and each is run once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, Place, opened, pure
from tests.ledger.test_tampering import checked, rewrite

from discreet.core.errors import InvalidArgument
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, Step, StreamEnded
from discreet.ledger.encoding import step_key


def begun(ledger: Ledger, steps: int = 3) -> int:
    """The entry of a question that was charged for so many steps."""
    return ledger.ask(ANN, pure(1, 8), "stream", lambda: b"0", steps=steps).sequence


def test_steps_cost_nothing_more_and_each_is_run_once(place: Place) -> None:
    ledger, other = opened(place.open()), place.open()
    parent = begun(ledger)
    for number in (1, 2, 3):
        step, outcome = Step(parent, number), b"%d" % number
        assert other.stored_step(ANN, step) is None
        assert ledger.ask_step(ANN, step, partial(bytes, outcome)).payload == outcome
        assert other.ask_step(ANN, step, lambda: b"again").payload == outcome
        stored = other.stored_step(BOB, step)
        assert stored is not None
        assert stored.payload == outcome
    assert ledger.spent(HEALTH) == ledger.spent(ANN) == PureDP("0.125")
    assert [entry.content.get("parent") for entry in ledger.entries() if entry.content["kind"] == "charge"] == [
        None,
        *[parent] * 3,
    ]
    assert ledger.check().sound


def test_steps_are_taken_when_the_budget_is_gone(place: Place) -> None:
    ledger = opened(place.open())
    parent = begun(ledger)
    ledger.charge(HEALTH, pure(7, 8), "the rest")
    assert ledger.ask_step(ANN, Step(parent, 1), lambda: b"1").payload == b"1"
    assert ledger.check().sound


@pytest.mark.parametrize(
    ("account", "number", "said"),
    [(ANN, 2, "in order"), (ANN, 4, "3 steps"), (BOB, 1, "as this account"), (HEALTH, 1, "as this account")],
)
def test_a_step_out_of_turn_is_refused_before_it_is_run(place: Place, account: Any, number: int, said: str) -> None:
    ledger = opened(place.open())
    parent, ran = begun(ledger), []
    with pytest.raises(InvalidArgument, match=said):
        ledger.ask_step(account, Step(parent, number), lambda: ran.append(1) or b"")  # type: ignore[func-returns-value]
    assert not ran
    assert ledger.check().sound


def test_only_what_was_charged_for_steps_has_any(place: Place) -> None:
    ledger = opened(place.open())
    plain = ledger.ask(ANN, pure(1, 8), "q", lambda: b"42").sequence
    unanswered = ledger.charge(ANN, pure(1, 8), "r", steps=3).sequence
    for parent in (plain, unanswered, 1, 999):
        with pytest.raises(InvalidArgument):
            ledger.ask_step(ANN, Step(parent, 1), lambda: b"never")
    for wrong in ({"parent": 0, "number": 1}, {"parent": 1, "number": 0}, {"parent": 1, "number": True}):
        with pytest.raises(InvalidArgument):
            Step(**wrong)
    with pytest.raises(InvalidArgument):
        ledger.charge(ANN, pure(1, 8), "s", steps=-1)


def test_a_step_whose_run_is_lost_is_the_last_one(place: Place) -> None:
    ledger, other = opened(place.open()), place.open()
    parent = begun(ledger)
    ledger.ask_step(ANN, Step(parent, 1), lambda: b"1")

    def interrupted() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.ask_step(ANN, Step(parent, 2), interrupted)
    for asking in (ledger, other):
        with pytest.raises(StreamEnded, match="step 2"):
            asking.ask_step(ANN, Step(parent, 2), lambda: b"drawn again")
        with pytest.raises(InvalidArgument, match="in order"):
            asking.ask_step(ANN, Step(parent, 3), lambda: b"3")
        assert asking.ask_step(ANN, Step(parent, 1), lambda: b"drawn again").payload == b"1"
    assert ledger.check().sound


def test_steps_stay_with_a_study_that_keeps_its_answers(place: Place) -> None:
    ledger = opened(place.open())
    parent = begun(ledger)
    ledger.ask_step(ANN, Step(parent, 1), lambda: b"1")
    ledger.keep_answers(HEALTH, per="study")
    assert ledger.ask_step(ANN, Step(parent, 2), lambda: b"2").payload == b"2"
    ledger.keep_answers(HEALTH, per="dataset")
    assert ledger.ask_step(ANN, Step(parent, 3), lambda: b"3").payload == b"3"
    assert [ledger.stored_step(ANN, Step(parent, n)) is not None for n in (1, 2, 3)] == [True] * 3
    assert ledger.check().sound


def test_a_lost_step_stays_lost_whoever_may_see_answers(place: Place) -> None:
    ledger = opened(place.open())
    ledger.keep_answers(HEALTH, per="study")
    parent = begun(ledger)

    def interrupted() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.ask_step(ANN, Step(parent, 1), interrupted)
    for per in ("dataset", "study"):
        ledger.keep_answers(HEALTH, per=per)  # type: ignore[arg-type]
        with pytest.raises(StreamEnded):
            ledger.ask_step(ANN, Step(parent, 1), lambda: b"drawn again")
    assert ledger.check().sound


def test_a_study_sees_no_steps_of_another_that_keeps_them(place: Place) -> None:
    ledger = opened(place.open())
    parent, other = begun(ledger), ("health", "another")
    ledger.open(other, new=True)
    ledger.ask_step(ANN, Step(parent, 1), lambda: b"1")
    assert ledger.stored_step(other, Step(parent, 1)) is not None
    ledger.keep_answers(HEALTH, per="study")
    assert ledger.stored_step(other, Step(parent, 1)) is None
    with pytest.raises(InvalidArgument, match="as this account"):
        ledger.ask_step(other, Step(parent, 1), lambda: b"never")
    assert ledger.stored_step(BOB, Step(parent, 1)) is not None


def _renamed(content: dict[str, Any], parent: int, number: int) -> dict[str, Any]:
    return content | {"parent": parent, "number": number, "question": step_key(parent, number)}


FORGED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "other events": lambda step: step | {"events": [{"kind": "pure", "epsilon": "1/8"}]},
    "its parent paid for no step": lambda step: _renamed(step, step["parent"] - 2, 1),
    "a step too many": lambda step: _renamed(step, step["parent"], 4),
    "a step left out": lambda step: _renamed(step, step["parent"], 3),
    "number 0": lambda step: _renamed(step, step["parent"], 0),
    "another key": lambda step: step | {"question": step_key(step["parent"], 3)},
    "another account": lambda step: step | {"account": [*BOB]},
    "steps of its own": lambda step: step | {"steps": 9},
    "an attempt": lambda step: step | {"attempt": 2, "first": step["question"]},
    "no parent at all": lambda step: (
        {name: step[name] for name in step if name not in ("parent", "number")}
        | {"events": [{"kind": "pure", "epsilon": "9"}]}
    ),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_check_sees_a_step_that_its_parent_does_not_cover(
    place: Place, forged: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    with Ledger(place.store()) as ledger:
        opened(ledger)
        ledger.ask(ANN, pure(1, 8), "q", lambda: b"42")
        parent = begun(ledger)
        ledger.ask_step(ANN, Step(parent, 1), lambda: b"1")
        ledger.ask_step(ANN, Step(parent, 2), lambda: b"2")
    rewrite(place, lambda entries: entries)
    assert checked(place).sound
    last = [number for number, (text,) in enumerate(place.rows("SELECT text FROM entries ORDER BY sequence"))][-2]
    rewrite(place, lambda entries: [forged(entry) if at == last else entry for at, entry in enumerate(entries)])
    report = checked(place)
    assert report.fault is not None
    assert report.fault.sequence == last + 1

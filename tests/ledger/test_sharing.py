"""Who may see stored answers: all who may ask about a data set, or each study its own, as is on record."""

from pathlib import Path

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, Place, opened, pure

from discreet.core.errors import InvalidArgument
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, migrate
from discreet.ledger.stores.sqlite.store import SQLiteStore

FLU, COVID = ("health", "flu study", "ann"), ("health", "covid", "bob")


@pytest.fixture
def ledger(place: Place) -> Ledger:
    made = opened(place.open())
    made.open(COVID[:2], new=True)
    made.open(COVID, new=True)
    return made


def answered(ledger: Ledger, account: tuple[str, ...], question: str, answer: bytes) -> bytes | None:
    return ledger.ask(account, pure(1, 16), question, lambda: answer).payload


def test_answers_are_shared_unless_the_steward_says_otherwise(ledger: Ledger) -> None:
    assert ledger.keeps_answers(HEALTH) == "dataset"
    assert answered(ledger, FLU, "q", b"1") == answered(ledger, COVID, "q", b"2") == b"1"
    assert ledger.spent(HEALTH) == PureDP("0.0625")


def test_per_study_each_pays_for_its_own_and_sees_no_other(ledger: Ledger, place: Place) -> None:
    ledger.keep_answers(HEALTH, per="study", note="two sponsors")
    other = place.open()
    assert other.keeps_answers(ANN) == "study"
    assert answered(ledger, FLU, "q", b"1") == b"1"
    assert other.replay(COVID, "q") is None
    assert other.replay(HEALTH, "q") is None
    assert answered(other, COVID, "q", b"2") == b"2"
    assert answered(other, HEALTH, "q", b"3") == b"3"
    # Within a study all share, and everybody's own is free for ever.
    assert answered(other, BOB, "q", b"4") == other.replay(ANN, "q") == b"1"
    assert ledger.replay(COVID[:2], "q") == b"2"
    assert ledger.spent(HEALTH) == PureDP("0.1875")
    assert place.open().check().sound


def test_what_was_paid_for_before_stays_with_who_paid(ledger: Ledger, place: Place) -> None:
    answered(ledger, FLU, "q", b"1")
    ledger.keep_answers(HEALTH, per="study")
    assert answered(ledger, BOB, "q", b"x") == b"1"
    assert answered(ledger, COVID, "q", b"2") == b"2"
    ledger.keep_answers(HEALTH, per="dataset")
    assert answered(ledger, COVID, "q", b"x") == b"1"
    assert [e.content["kind"] for e in ledger.entries()].count("answers") == 2
    assert ledger.check().sound


def test_what_a_study_was_answered_stays_free_for_it_where_all_share_again(ledger: Ledger, place: Place) -> None:
    ledger.keep_answers(HEALTH, per="study")
    assert answered(ledger, FLU, "q", b"1") == b"1"
    ledger.keep_answers(HEALTH, per="dataset")
    assert answered(place.open(), BOB, "q", b"x") == b"1"
    assert ledger.spent(HEALTH) == PureDP("0.0625")
    ledger.abandon(ledger.charge(COVID, pure(1, 16), "q"))
    assert answered(ledger, FLU, "q", b"x") == b"1"
    assert answered(ledger, COVID, "q", b"2") == b"2"
    assert answered(ledger, FLU, "q", b"x") == b"2"
    assert ledger.check().sound


def test_a_run_that_ended_without_an_outcome_is_paid_again_in_its_study(ledger: Ledger) -> None:
    ledger.keep_answers(HEALTH, per="study")
    ledger.abandon(ledger.charge(COVID, pure(1, 16), "q"))
    assert answered(ledger, COVID, "q", b"2") == b"2"
    assert answered(ledger, FLU, "q", b"1") == b"1"
    assert ledger.spent(COVID) == PureDP("0.125")
    assert ledger.check().sound


def test_the_setting_is_on_record_once_and_checked(ledger: Ledger, place: Place) -> None:
    ledger.keep_answers(HEALTH, per="study")
    head = ledger.head()
    ledger.keep_answers(HEALTH, per="study")
    assert ledger.head() == head
    for account, per in ((ANN, "study"), (HEALTH, "analyst")):
        with pytest.raises(InvalidArgument, match="per"):
            ledger.keep_answers(account, per=per)  # type: ignore[arg-type]
    place.execute("UPDATE accounts SET answers = NULL")
    fault = place.open().check().fault
    assert fault is not None
    assert "'health'" in fault.what


def test_answers_are_kept_per_study_after_a_move(ledger: Ledger, place: Place, tmp_path: Path) -> None:
    ledger.keep_answers(HEALTH, per="study")
    answered(ledger, FLU, "q", b"1")
    source, target = place.store(), SQLiteStore(tmp_path / "moved.db")
    assert migrate(source, target).sound
    source.close()
    with Ledger(target) as moved:
        assert moved.keeps_answers(HEALTH) == "study"
        assert moved.replay(COVID, "q") is None

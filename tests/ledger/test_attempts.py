"""A charge pays for one run: whatever ends it without a stored outcome, the next run is charged, on either store."""

import os
from pathlib import Path

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, Place, opened, pure

from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.losses import PureDP
from discreet.ledger import Charge, Ledger, LedgerUnavailable, charges
from discreet.ledger.encoding import canonical, digest


def content(ledger: Ledger) -> list[str]:
    return [entry.text for entry in ledger.entries()]


def test_while_a_question_is_run_nobody_else_runs_it(place: Place) -> None:
    ledger, other = opened(place.open()), place.open()
    charge = ledger.charge(ANN, pure(1, 8), "q")
    for asking in (ledger, other):
        waiting = asking.charge(ANN, pure(1, 8), "q")
        assert (waiting.sequence, waiting.own, waiting.fresh, waiting.payload) == (charge.sequence, False, False, None)
        with pytest.raises(InvalidArgument, match="wait for whoever runs it"):
            asking.complete(waiting, b"57")
    assert ledger.complete(charge, b"42") == other.charge(ANN, pure(1, 8), "q").payload == b"42"
    assert ledger.spent(HEALTH) == PureDP("0.125")


@pytest.mark.parametrize("end", ["abandoned", "closed"])
def test_a_run_that_ended_without_an_outcome_is_paid_for_again(place: Place, end: str) -> None:
    first, later = opened(place.open()), place.open()
    charge = first.charge(ANN, pure(1, 16), "q")
    first.abandon(charge) if end == "abandoned" else first.close()
    assert later.spent(ANN) == PureDP("0.0625")
    again = later.charge(BOB, pure(1, 16), "q")
    assert (again.fresh, again.own, again.payload) == (True, True, None)
    assert again.question != charge.question
    assert later.replay(ANN, "q") is None
    assert later.spent(HEALTH) == PureDP("0.125")
    assert later.complete(again, b"42") == later.replay(ANN, "q") == b"42"
    assert later.charge(ANN, pure(1, 16), "q").payload == b"42"
    assert later.spent(HEALTH) == PureDP("0.125")
    assert later.check().sound


@pytest.mark.parametrize("end", ["too large", "not stored"])
def test_a_run_whose_outcome_is_not_stored_is_over(place: Place, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it, and the next one is charged."""
    ledger = opened(place.open())
    charge = ledger.charge(ANN, pure(1, 16), "q")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_complete", _full)
        patch.setattr(charges, "LONGEST_PAYLOAD", 8)
        with pytest.raises((InvalidArgument, LedgerUnavailable)):
            ledger.complete(charge, b"42" if end == "not stored" else b"4" * 9)
    again = ledger.charge(ANN, pure(1, 16), "q")
    assert (again.own, again.fresh) == (True, True)
    assert ledger.spent(HEALTH) == PureDP("0.125")


def _full(*_: object) -> None:
    raise LedgerUnavailable("the disk is full", "make room")


def test_a_run_that_was_paid_for_again_stores_nothing_any_more(place: Place) -> None:
    ledger, other = opened(place.open()), place.open()
    slow = ledger.charge(ANN, pure(1, 16), "q")
    ledger.abandon(slow)
    again = other.charge(ANN, pure(1, 16), "q")
    with pytest.raises(LedgerUnavailable, match="charged again"):
        ledger.complete(slow, b"57")
    assert other.complete(again, b"42") == b"42"
    with pytest.raises(LedgerUnavailable, match="charged again"):
        ledger.complete(slow, b"57")
    assert ledger.check().sound


def test_a_third_attempt_costs_what_the_first_did_or_is_refused(place: Place) -> None:
    ledger = opened(place.open())
    for _ in range(4):
        ledger.abandon(ledger.charge(ANN, pure(1, 16), "q"))
    assert ledger.remaining(ANN) == PureDP(0)
    with pytest.raises(BudgetExceeded):
        ledger.charge(ANN, pure(1, 16), "q")
    attempts = [entry.content.get("attempt") for entry in ledger.entries() if entry.content["kind"] == "charge"]
    assert attempts == [None, 2, 3, 4]
    assert ledger.check().sound


def test_whatever_ends_a_run_ends_it_for_good(place: Place) -> None:
    ledger, drawn = opened(place.open()), list[int]()

    def run() -> bytes:
        drawn.append(len(drawn))
        if len(drawn) < 3:
            raise KeyboardInterrupt if len(drawn) == 1 else OSError("no space left")
        return b"42"

    for failure in (KeyboardInterrupt, OSError):
        with pytest.raises(failure):
            ledger.ask(ANN, pure(1, 16), "q", run)
    assert [ledger.ask(ANN, pure(1, 16), "q", run).payload for _ in range(2)] == [b"42", b"42"]
    assert (len(drawn), ledger.spent(ANN)) == (3, PureDP("0.1875"))


def _lost(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge that is written, and of which the caller is told that nobody knows."""
    honest = Ledger._charge

    def lost(self: Ledger, *given: object) -> Charge:
        honest(self, *given)
        raise LedgerUnavailable("whether it is written is not known yet", "ask again")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_charge", lost)
        with pytest.raises(LedgerUnavailable):
            ledger.charge(ANN, pure(1, 16), "q")


def test_a_charge_nobody_knows_of_is_void_once_others_paid(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, other = opened(place.open()), place.open()
    _lost(ledger, monkeypatch)
    other.abandon(other.charge(BOB, pure(1, 16), "q"))
    again = ledger.charge(ANN, pure(1, 16), "q")
    assert (again.fresh, again.own, ledger.spent(HEALTH)) == (True, True, PureDP("0.1875"))
    assert ledger.complete(again, b"42") == b"42"
    assert ledger.check().sound


def test_a_charge_nobody_knows_of_pays_for_no_other_events(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(place.open())
    _lost(ledger, monkeypatch)
    dearer = ledger.charge(ANN, pure(1, 8), "q")
    assert (dearer.fresh, dearer.own, dearer.events) == (True, True, tuple(pure(1, 8)))
    assert ledger.spent(HEALTH) == PureDP("0.1875")
    assert ledger.complete(dearer, b"42") == ledger.replay(ANN, "q") == b"42"
    assert ledger.check().sound


def test_a_charge_nobody_knows_of_is_not_for_a_child_to_run(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = opened(place.open())
    _lost(ledger, monkeypatch)
    child = os.fork()
    if child == 0:
        try:
            charge = ledger.charge(ANN, pure(1, 16), "q")
            (tmp_path / "child").write_text(f"{charge.fresh} {charge.own}")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "child").read_text() == "True True"
    assert ledger.spent(HEALTH) == PureDP("0.125")


def test_no_question_is_an_attempt_of_another(place: Place) -> None:
    ledger = opened(place.open())
    first = ledger.charge(ANN, pure(1, 16), "q")
    forged = canonical({"attempt": 2, "question": digest("q")})
    ledger.complete(ledger.charge(BOB, pure(1, 16), forged), b"57")
    assert ledger.replay(ANN, "q") is None
    assert ledger.complete(first, b"42") == ledger.replay(ANN, "q") == b"42"

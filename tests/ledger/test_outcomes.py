"""What is stored of a run, and what is certified of it: both or neither; and what a failure to store it costs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.books.make import KEY
from tests.ledger.places import ANN, HEALTH, UNIT, Place, PostgresPlace, SQLitePlace, opened, pure

from discreet.charging.purchase import FAILED, Counter, Purchase
from discreet.charging.signing_keys import Custody
from discreet.core.errors import InvalidArgument
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, LedgerUnavailable
from discreet.ledger.errors import CommitUnknown
from discreet.ledger.stores.postgres.store import PostgresStore
from discreet.ledger.stores.sql_books import SQLBooks
from discreet.ledger.stores.store import NOTHING, Books, Look

COUNT = Purchase("COUNT(*), ε = 1/8", "SELECT COUNT(*)", "Laplace noise", tuple(pure(1, 8)), PureDP("0.125"))


@dataclass(frozen=True)
class Rows:
    """What is shown of a payload."""

    payload: bytes
    names: tuple[str, ...] = ("n",)

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        return ((int(self.payload),),)


def counter_of(ledger: Ledger) -> Counter:
    return Counter(ledger, ANN, PureDP(1), UNIT, Custody(KEY, Path("key"), None, ledger.id))


def kinds(ledger: Ledger) -> list[str]:
    return [entry.content["kind"] for entry in ledger.entries()]


def never_after_a_release(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be written any more once an outcome is stored."""
    honest = ledger._store.writing

    @contextmanager
    def writing(look: Look = NOTHING) -> Iterator[Books]:
        if "release" in kinds(ledger):
            raise LedgerUnavailable("others have been writing for 30 s", "ask again")
        with honest(look) as books:
            yield books

    monkeypatch.setattr(ledger._store, "writing", writing)


def test_what_was_paid_for_is_shown_and_certified_by_the_write_that_stores_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(place.open())
    never_after_a_release(ledger, monkeypatch)
    counter = counter_of(ledger)
    bought = counter.charge_and_run(COUNT, lambda: b"1234", Rows)
    certificate = counter.certificate(COUNT, bought, Rows(bought.payload))
    assert kinds(ledger)[-3:] == ["charge", "release", "certify"]
    assert ledger.confirm(certificate, keys=[KEY.public]) == ()
    again = counter.recalled(COUNT.identity)
    assert again is not None
    assert counter.certificate(COUNT, again, Rows(again.payload)) == certificate
    assert ledger.check().sound


def test_an_outcome_is_never_stored_without_its_digest_nor_the_digest_without_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(place.open())
    honest = SQLBooks.append

    def append(self: SQLBooks, *entries: Any) -> None:
        if '"kind":"certify"' in entries[0].text:
            raise LedgerUnavailable("no space is left for it", "make room and ask again")
        honest(self, *entries)

    monkeypatch.setattr(SQLBooks, "append", append)
    with pytest.raises(LedgerUnavailable, match=r"make room .*charged again if not"):
        counter_of(ledger).charge_and_run(COUNT, lambda: b"1234", Rows)
    assert kinds(ledger)[-1] == "charge"
    assert ledger.check().sound


@pytest.mark.parametrize("end", [KeyboardInterrupt, MemoryError])
def test_an_outcome_outlives_whatever_ends_the_making_of_its_rows(place: Place, end: type[BaseException]) -> None:
    ledger = opened(place.open())

    def interrupted(payload: bytes) -> Rows:
        raise end

    with pytest.raises(end):
        counter_of(ledger).charge_and_run(COUNT, lambda: b"1234", interrupted)
    assert kinds(ledger)[-1] == "release"
    assert counter_of(ledger).charge_and_run(COUNT, lambda: b"never run", Rows).payload == b"1234"
    assert ledger.spent(HEALTH) == PureDP("0.125")


def test_a_failure_is_stored_and_nothing_is_certified(place: Place) -> None:
    ledger = opened(place.open())
    with suppress(Exception):
        counter_of(ledger).charge_and_run(COUNT, lambda: bytes(1 // 0), Rows)
    assert kinds(ledger)[-1] == "release"
    stored = counter_of(ledger).stored("not asked", COUNT.identity)
    assert stored is not None
    assert stored.payload == FAILED


def lost(written: bool) -> Callable[..., None]:
    """A commit of which nobody is told whether it happened."""
    honest = PostgresStore._commit

    def commit(self: PostgresStore, *given: Any) -> None:
        if written:
            honest(self, *given)
        raise CommitUnknown

    return commit


@pytest.mark.parametrize("written", [True, False])
def test_a_charge_that_nobody_knows_of_is_paid_for_once_and_says_so(
    shared: PostgresPlace, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    ledger = opened(shared.open())
    with monkeypatch.context() as patched:
        patched.setattr(PostgresStore, "_commit", lost(written))
        with pytest.raises(LedgerUnavailable, match=r"not known yet.*nothing was run.*on this handle is paid for once"):
            ledger.charge(ANN, pure(1, 8), "q")
    assert ledger.charge(ANN, pure(1, 8), "q").own
    assert ledger.spent(HEALTH) == PureDP("0.125")


@pytest.mark.parametrize("written", [True, False])
def test_an_outcome_that_nobody_knows_of_is_free_or_charged_again_and_says_so(
    shared: PostgresPlace, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    ledger = opened(shared.open())

    def run() -> bytes:
        monkeypatch.setattr(PostgresStore, "_commit", lost(written))
        return b"42"

    honest = PostgresStore._commit
    with pytest.raises(LedgerUnavailable, match=r"not known yet; .*free if its outcome is in the books") as failure:
        ledger.ask(ANN, pure(1, 8), "q", run)
    assert "paid for once" not in str(failure.value)
    monkeypatch.setattr(PostgresStore, "_commit", honest)
    assert ledger.ask(ANN, pure(1, 8), "q", lambda: b"57").payload == (b"42" if written else b"57")
    assert ledger.spent(HEALTH) == PureDP("0.125" if written else "0.25")
    assert ledger.check().sound


def test_the_log_is_moved_into_the_file_whichever_of_two_entries_has_the_number(
    file: SQLitePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.ledger.stores.sqlite.store.ENTRIES_BETWEEN_CHECKPOINTS", 7)
    ledger = opened(file.open())
    assert ledger.head().sequence == 5
    size = file.path.stat().st_size
    counter_of(ledger).charge_and_run(COUNT, lambda: b"1234", Rows)  # entries 6, and 7 with 8
    assert file.path.stat().st_size > size


def test_a_question_that_is_asked_by_its_own_run_is_refused(place: Place) -> None:
    """It would wait for itself."""
    ledger = opened(place.open())

    def run() -> bytes:
        with pytest.raises(InvalidArgument, match="by its own run"):
            ledger.ask(ANN, pure(1, 16), "q", lambda: b"never")
        return b"42"

    assert ledger.ask(ANN, pure(1, 16), "q", run).payload == b"42"
    assert ledger.spent(HEALTH) == PureDP("0.0625")

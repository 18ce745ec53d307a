"""What a ledger on a server has told survives the death of the server, and what is lost is the end of the chain.

The server's log is written by those who wait for it, and by nobody else for a while: what nobody waited for is lost.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, PostgresPlace, opened, pure

from discreet.ledger import Ledger
from discreet.ledger.stores.postgres import store as postgres
from discreet.ledger.stores.postgres.pipeline import Statement

LAZY = {"wal_writer_delay": "10000ms", "checkpoint_timeout": "1d"}
NOTHING: Statement = ("SELECT NULL", ())
"""Waits for no disk."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[PostgresPlace]:
    with ExitStack() as handles:
        place = PostgresPlace(tmp_path, handles)
        place.server.stop("fast")
        place.server.start(**LAZY)
        yield place


def die(place: PostgresPlace) -> None:
    place.server.stop()
    place.server.start(**LAZY)


def test_a_charge_that_returned_survives(place: PostgresPlace) -> None:
    ledger = opened(place.open())
    charge = ledger.charge(ANN, pure(1, 8), "q")
    die(place)
    assert not ledger.charge(ANN, pure(1, 8), "q").fresh
    ledger.complete(charge, b"42")
    die(place)
    assert place.open().replay(ANN, "q") == b"42"


def test_without_waiting_charges_are_lost(place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the other tests would notice."""
    ledger = opened(place.open())
    monkeypatch.setattr(postgres, "_FLUSH", NOTHING)
    for number in range(5):
        ledger.charge(BOB, pure(1, 100), f"{number}")
    die(place)
    monkeypatch.undo()
    left = place.open()
    assert left.check().sound
    assert left.head().sequence < 10


WAYS: dict[str, Callable[[Ledger], object]] = {
    "the same question": lambda ledger: ledger.charge(ANN, pure(1, 8), "q").payload,
    "another question": lambda ledger: ledger.charge(BOB, pure(1, 8), "p"),
    "its release": lambda ledger: ledger.replay(BOB, "q"),
    "the head": lambda ledger: ledger.head(),
    "a check": lambda ledger: ledger.check(),
    "an account": lambda ledger: ledger.spent(HEALTH),
}


@pytest.mark.parametrize("way", WAYS)
def test_whoever_saw_what_others_wrote_has_waited_for_it(
    place: PostgresPlace, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A writer commits and dies before it waits; another sees the entries and tells of them, and the server dies."""
    writer, reader = opened(place.open()), place.open()
    reader.head()
    monkeypatch.setattr(postgres, "_FLUSH", NOTHING)
    writer.complete(writer.charge(ANN, pure(1, 8), "q"), b"42")
    monkeypatch.undo()
    WAYS[way](reader)
    die(place)
    assert place.open().replay(ANN, "q") == b"42"
    assert reader.head().sequence >= 7


def test_the_lost_end_of_a_chain_is_no_alarm_to_those_who_were_told_nothing(
    place: PostgresPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(place.open())
    before = ledger.head()
    monkeypatch.setattr(postgres, "_FLUSH", NOTHING)
    with place.open() as hasty:
        hasty.charge(BOB, pure(1, 100), "lost")
    die(place)
    monkeypatch.undo()
    assert ledger.head() == before
    assert ledger.charge(BOB, pure(1, 100), "lost").fresh
    assert ledger.check(before).sound


def test_threads_share_a_wait_and_all_of_them_have_waited(place: PostgresPlace) -> None:
    ledger = opened(place.open())
    with ThreadPoolExecutor(8) as pool:
        charges = list(pool.map(lambda n: ledger.charge(BOB, pure(1, 100), f"{n}"), range(24)))
    die(place)
    hashes = {entry.sequence: entry.hash for entry in place.open().entries()}
    assert all(hashes[charge.sequence] == charge.hash for charge in charges)

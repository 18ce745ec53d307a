"""Books on a server when the server or the network fails: nothing is lost, paid twice or overspent."""

import multiprocessing
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from fractions import Fraction as F
from pathlib import Path

import pytest
from tests.faults.proxy import Proxy
from tests.ledger.places import ANN, BOB, HEALTH, PostgresPlace, opened, pure
from tests.soak import whole_or_share

from discreet.core.errors import BudgetExceeded
from discreet.core.events import Pure
from discreet.core.losses import PureDP
from discreet.ledger import Charge, Entry, Ledger, LedgerUnavailable
from discreet.ledger.stores.postgres import connection as server
from discreet.ledger.stores.postgres.store import PostgresStore

FORK = multiprocessing.get_context("fork")
PATIENCE = 300
"""Seconds that something may take on the busiest machine."""
COMMIT = b";COMMIT;"
"""How the end of a transaction is told to a server."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[PostgresPlace]:
    with ExitStack() as handles:
        yield PostgresPlace(tmp_path, handles)


@pytest.fixture
def network(place: PostgresPlace) -> Iterator[Proxy]:
    """What lies between the ledger and its server."""
    proxy = Proxy(place.server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long."""
    monkeypatch.setattr(server, "GRACE", 1.5)
    monkeypatch.setattr(server, "IDLE", 1.0)


def far(place: PostgresPlace, network: Proxy, patience: float = 0.5) -> Ledger:
    """The ledger through the network."""
    return Ledger(PostgresStore(place.server.url(port=network.port), schema=place.schema, patience=patience))


def charges(place: PostgresPlace) -> int:
    return len(place.rows("SELECT 1 FROM charges"))


@pytest.mark.parametrize("deed", ["deaf", "silent"])
def test_a_commit_whose_answer_is_lost_is_found_and_paid_once(
    place: PostgresPlace, network: Proxy, hasty: None, deed: str
) -> None:
    opened(place.open())
    with far(place, network) as ledger:
        ledger.spent(HEALTH)
        network.trap(COMMIT, deed)
        charge = ledger.charge(ANN, pure(1, 8), "q")
        assert network.sprung == 1
        assert charge.fresh
        assert charges(place) == 1
        assert ledger.charge(ANN, pure(1, 8), "q").hash == charge.hash
        network.trap(COMMIT, deed)
        assert ledger.complete(charge, b"42") == b"42"
        assert network.sprung == 2
        assert ledger.complete(charge, b"43") == b"42"
    ledger = place.open()
    assert ledger.spent(HEALTH) == PureDP("0.125")
    assert ledger.replay(ANN, "q") == b"42"
    assert ledger.check().sound


def test_a_commit_that_never_reached_the_server_is_not_paid(place: PostgresPlace, network: Proxy) -> None:
    opened(place.open())
    with far(place, network) as ledger:
        network.trap(COMMIT, "cut")
        with pytest.raises(LedgerUnavailable, match="nothing was written"):
            ledger.charge(ANN, pure(1, 8), "q")
        assert network.sprung == 1
        assert charges(place) == 0
        assert ledger.charge(ANN, pure(1, 8), "q").fresh
        assert ledger.spent(HEALTH) == PureDP("0.125")
        assert ledger.check().sound


def asked_again(question: Callable[[], Charge]) -> Charge:
    """What comes of a question that is asked until the server has noticed that who asked before is gone."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return question()
        except LedgerUnavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@pytest.mark.parametrize(("deed", "paid"), [("deaf", 1), ("cut", 0)])
def test_a_commit_nobody_knows_of_is_settled_by_asking_again(
    place: PostgresPlace, network: Proxy, deed: str, paid: int
) -> None:
    opened(place.open())
    with far(place, network) as ledger:
        network.trap(COMMIT, deed, then=network.cut)
        with pytest.raises(LedgerUnavailable, match="not known yet"):
            ledger.charge(ANN, pure(1, 8), "q")
        with pytest.raises(LedgerUnavailable, match="reached"):
            ledger.charge(ANN, pure(1, 8), "q")
        network.mend()
        charge = asked_again(lambda: ledger.charge(ANN, pure(1, 8), "q"))
        assert charge.fresh == (paid == 0)
        assert charges(place) == 1
        assert ledger.complete(charge, b"42") == b"42"
        assert ledger.spent(HEALTH) == PureDP("0.125")
        assert ledger.check().sound


def test_a_network_that_was_cut_between_calls_is_not_noticed(place: PostgresPlace, network: Proxy) -> None:
    opened(place.open())
    with far(place, network) as ledger:
        for number in range(3):
            assert ledger.charge(BOB, pure(1, 100), f"{number}").fresh
            network.cut()
            network.mend()
            assert ledger.spent(BOB) == PureDP(F(number + 1, 100))
            network.cut()
            network.mend()


def test_a_network_that_goes_silent_before_anything_is_written_is_replaced(
    place: PostgresPlace, network: Proxy, hasty: None
) -> None:
    opened(place.open())
    with far(place, network) as ledger:
        network.trap(b"pg_advisory_xact_lock", "silent")
        assert ledger.charge(ANN, pure(1, 8), "q").fresh
        assert network.sprung == 1
        assert charges(place) == 1
        assert ledger.check().sound


def test_a_network_that_stays_silent_ends_in_an_error_not_in_waiting(
    place: PostgresPlace, network: Proxy, hasty: None
) -> None:
    opened(place.open())
    with far(place, network) as ledger:
        network.mute = True
        with pytest.raises(LedgerUnavailable, match="ask again"):
            ledger.charge(ANN, pure(1, 8), "q")
        network.mute = False
        assert ledger.charge(ANN, pure(1, 8), "q").fresh
        assert ledger.spent(HEALTH) == PureDP("0.125")


def test_a_server_killed_between_charge_and_release_keeps_the_charge(place: PostgresPlace) -> None:
    ledger = opened(place.open())
    charge = ledger.charge(ANN, pure(1, 8), "q")
    place.server.stop()
    try:
        with pytest.raises(LedgerUnavailable):
            ledger.complete(charge, b"42")
        with pytest.raises(LedgerUnavailable):
            ledger.charge(ANN, pure(1, 8), "p")
        with pytest.raises(LedgerUnavailable):
            ledger.replay(ANN, "q")
    finally:
        place.server.start()
    assert ledger.complete(charge, b"42") == b"42"
    assert ledger.charge(ANN, pure(1, 8), "q").payload == b"42"
    assert ledger.spent(HEALTH) == PureDP("0.125")
    assert ledger.check().sound


def test_a_server_killed_within_a_transaction_leaves_no_part_of_it(place: PostgresPlace) -> None:
    ledger = opened(place.open())
    store, before = place.store(), ledger.head()

    def written_while_the_server_dies() -> None:
        with store.writing() as books:
            books.append(Entry.after(before, {"kind": "attach", "account": HEALTH, "source": "sha256:9a"}))
            books.put_source("sha256:9a", "health")
            assert books.sources()["sha256:9a"] == "health"
            place.server.stop()

    try:
        with pytest.raises(LedgerUnavailable):
            written_while_the_server_dies()
    finally:
        place.server.start()
    assert ledger.head() == before
    assert "sha256:9a" not in ledger.sources()
    assert ledger.check().sound
    store.close()


WRITERS = 4
DEATHS = whole_or_share(40, 3)
"""How often the server dies, and a writer with it."""
COST = F(1, 2000 * max(DEATHS, 3))
"""What a question costs: there is room for some thousands."""


def write_on(place: PostgresPlace, log: Path, who: int) -> None:
    """Charges without end, each question until it is acknowledged, and notes what was."""
    note = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    ledger: Ledger | None = None
    number = 0
    while True:
        try:
            ledger = ledger or place.open()
            charge = ledger.charge(BOB, [Pure(COST)], f"{who}: {number}")
            answer = ledger.complete(charge, f"{who}: {number}, {time.monotonic_ns()}".encode())
        except LedgerUnavailable:
            time.sleep(0.02)
            continue
        except BudgetExceeded:
            os.write(note, b"full\n")
            return
        os.write(note, f"{charge.sequence}|{charge.hash}|{who}: {number}|{answer.decode()}\n".encode())
        number += 1


def lines_of(logs: list[Path]) -> list[str]:
    return [line for log in logs if log.exists() for line in log.read_text().splitlines() if line.count("|") == 3]


def written(logs: list[Path], more: int) -> None:
    """Waits until so many further answers are acknowledged."""
    end, enough = time.monotonic() + PATIENCE, len(lines_of(logs)) + more
    while len(lines_of(logs)) < enough:
        assert time.monotonic() < end, "nobody writes"
        time.sleep(0.01)


def test_a_server_that_dies_again_and_again_loses_nothing_and_never_overspends(
    place: PostgresPlace, tmp_path: Path
) -> None:
    opened(place.open()).close()
    chance = random.Random(11)
    logs: list[Path] = []

    def writer() -> multiprocessing.Process:
        logs.append(tmp_path / f"log-{len(logs)}")
        process = FORK.Process(target=write_on, args=(place, logs[-1], len(logs)), daemon=True)
        process.start()
        return process

    running = [writer() for _ in range(WRITERS)]
    try:
        for _ in range(DEATHS):
            written(logs, chance.randrange(10, 40))
            place.server.stop()
            victim = running.pop(0)
            victim.kill()
            victim.join()
            running.append(writer())
            time.sleep(chance.uniform(0.0, 0.1))
            place.server.start()
        written(logs, 10)
    finally:
        for process in running:
            process.kill()
            process.join()
    ledger = place.open()
    assert ledger.check().sound
    lines = [line.split("|") for line in lines_of(logs)]
    assert len(lines) > 20
    hashes = {entry.sequence: entry.hash for entry in ledger.entries()}
    for sequence, hash, question, answer in lines:
        assert hashes[int(sequence)] == hash, "an acknowledged charge was lost"
        assert ledger.replay(BOB, question) == answer.encode(), "another answer than the one that was shown"
    paid = [entry.content["question"] for entry in ledger.entries() if entry.content["kind"] == "charge"]
    assert len(set(paid)) == len(paid) >= len(lines)
    assert ledger.spent(HEALTH) == PureDP(len(paid) * COST)
    assert ledger.spent(HEALTH).epsilon <= F(1, 2)


def test_a_writer_that_is_stopped_in_its_turn_does_not_stop_the_others_for_ever(
    place: PostgresPlace, hasty: None
) -> None:
    """The server ends a transaction in which nothing happens for longer than it should, and what was begun is gone."""
    ledger, entered, over = opened(place.open()), threading.Event(), threading.Event()
    held = place.store(patience=0.2)
    failures: list[Exception] = []

    def hold() -> None:
        try:
            with held.writing() as books:
                books.append(Entry.after(books.head(), {"kind": "attach", "account": HEALTH, "source": "sha256:9a"}))
                books.put_source("sha256:9a", "health")
                entered.set()
                assert over.wait(PATIENCE)
        except LedgerUnavailable as failure:
            failures.append(failure)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(PATIENCE)
    assert ledger.charge(ANN, pure(1, 8), "q").fresh
    over.set()
    holder.join(PATIENCE)
    assert len(failures) == 1
    assert "sha256:9a" not in ledger.sources()
    assert ledger.check().sound
    held.close()


def test_clocks_that_disagree_do_not_matter(place: PostgresPlace) -> None:
    early = Ledger(place.store(), clock=lambda: datetime(1999, 12, 31, tzinfo=UTC))
    late = Ledger(place.store(), clock=lambda: datetime(2099, 1, 1, tzinfo=UTC))
    opened(late)
    for number in range(4):
        ledger = (early, late)[number % 2]
        ledger.complete(ledger.charge(BOB, pure(1, 16), f"{number}"), b"42")
    assert early.spent(BOB) == late.spent(BOB) == PureDP("0.25")
    assert early.check(late.head()).sound
    assert early.registry()["data_sets"][0]["accounts"][0]["used_per_day"] > 0
    early.close()
    late.close()

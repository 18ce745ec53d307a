"""Many threads and processes at the same books: never overspent, nothing acknowledged is lost, one answer a charge."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fractions import Fraction as F
from pathlib import Path
from threading import Event

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, STUDY, UNIT, Place, opened, pure
from tests.soak import whole_or_share

from discreet.core.errors import BudgetExceeded
from discreet.core.events import Pure
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, LedgerUnavailable, Verifier
from discreet.ledger.stores.sqlite import store as sqlite

FORK = multiprocessing.get_context("fork")
RACERS = whole_or_share(64, 8)
PATIENCE = 300
"""Seconds after which a process hangs: a hundred times what any takes."""


@contextmanager
def processes(number: int, task: Callable[[int], None]) -> Iterator[list[multiprocessing.Process]]:
    """Forked processes that run the task; none outlives the block."""
    running = [FORK.Process(target=task, args=(i,), daemon=True) for i in range(number)]
    for process in running:
        process.start()
    try:
        yield running
        for process in running:
            process.join(PATIENCE)
            assert process.exitcode is not None, "a process hangs"
    finally:
        for process in running:
            process.kill()
            process.join(PATIENCE)


def charged(ledger: Ledger) -> F:
    """What all charges in the books add up to."""
    return sum((event.epsilon for composed in ledger.events(HEALTH) for event in composed.events), F(0))


def attempts(ledger: Ledger, who: int, number: int) -> int:
    """How many of the charges of ε = 1/50 are admitted."""
    admitted = 0
    for i in range(number):
        with suppress(BudgetExceeded):
            ledger.charge(HEALTH, pure(1, 50), f"{who}: {i}")
            admitted += 1
    return admitted


def test_threads_with_one_handle_never_overspend(place: Place) -> None:
    ledger = opened(place.open())
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda who: attempts(ledger, who, 20), range(8))) == 50
    assert ledger.spent(HEALTH) == PureDP(1)
    assert charged(ledger) == 1
    assert ledger.check().sound


def test_threads_with_a_handle_each_never_overspend(place: Place) -> None:
    opened(place.open())
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda who: attempts(place.open(), who, 12), range(8))) == 50
    assert place.open().spent(HEALTH) == PureDP(1)


def test_processes_racing_for_the_last_epsilon_never_overspend(place: Place, tmp_path: Path) -> None:
    inherited = opened(place.open())
    barrier = FORK.Barrier(RACERS, timeout=PATIENCE)

    def race(who: int) -> None:
        barrier.wait()
        (tmp_path / f"{who}").write_text(str(attempts(inherited if who % 2 else place.open(), who, 12)))

    with processes(RACERS, race):
        pass
    assert sum(int((tmp_path / f"{who}").read_text()) for who in range(RACERS)) == 50
    assert inherited.spent(HEALTH) == PureDP(1)
    assert charged(inherited) == 1
    assert inherited.check().sound


def test_processes_that_ask_the_same_question_pay_once_and_see_one_answer(place: Place, tmp_path: Path) -> None:
    opened(place.open())
    barrier = FORK.Barrier(8, timeout=PATIENCE)

    def ask(who: int) -> None:
        ledger = place.open()
        barrier.wait()
        answers = []
        for i in range(10):
            answer = f"{who}'s answer to {i}".encode()
            charge = ledger.ask(ANN if who % 2 else BOB, pure(1, 100), f"q{i}", lambda answer=answer: answer)
            assert charge.payload is not None
            answers.append(charge.payload.decode())
        (tmp_path / f"{who}").write_text("\n".join(answers))

    with processes(8, ask):
        pass
    assert len({(tmp_path / f"{who}").read_text() for who in range(8)}) == 1
    ledger = place.open()
    assert ledger.spent(HEALTH) == PureDP("0.1")
    assert sum(e.content["kind"] == "charge" for e in ledger.entries()) == 10
    assert ledger.check().sound


def test_processes_that_make_the_same_ledger_make_one(place: Place, tmp_path: Path) -> None:
    barrier = FORK.Barrier(8, timeout=PATIENCE)

    def make(who: int) -> None:
        barrier.wait()
        (tmp_path / f"{who}").write_text(opened(place.open()).id)

    with processes(8, make):
        pass
    assert len({(tmp_path / f"{who}").read_text() for who in range(8)}) == 1
    ledger = place.open()
    assert [e.content["kind"] for e in ledger.entries()] == ["ledger", "open", "open", "open", "open"]
    assert ledger.check().sound


def test_a_process_killed_while_it_makes_a_ledger_leaves_nothing_broken(tmp_path: Path) -> None:
    chance = random.Random(1)
    for attempt in range(25):
        path = tmp_path / f"{attempt}.db"
        with processes(2, lambda _, path=path: opened(Ledger.at(path)).close()) as running:
            time.sleep(chance.uniform(0, 0.03))
            running[0].kill()
        with Ledger.at(path) as ledger:
            opened(ledger)
            assert ledger.check().sound


def test_a_fork_inherits_books_but_no_connections(place: Place, tmp_path: Path) -> None:
    """SQLite's locks do not survive a fork, nor does a talk with a server that two take part in: children that went on
    with open connections would ruin the books here."""
    parent = opened(place.open())

    def write(who: int) -> None:
        ledger = parent if who % 2 else place.open()
        charges = [ledger.charge(BOB, pure(1, 10**6), f"{who}-{i}") for i in range(150)]
        (tmp_path / f"{who}").write_text("\n".join(f"{charge.sequence} {charge.hash}" for charge in charges))

    with processes(2, write):
        other = parent
        for i in range(40):
            other.close()
            time.sleep(0.01)
            other = place.open()
            other.charge(BOB, pure(1, 10**6), f"parent-{i}")
    hashes = {entry.sequence: entry.hash for entry in other.entries()}
    for who in range(2):
        lines = [line.split() for line in (tmp_path / f"{who}").read_text().splitlines()]
        assert len(lines) == 150
        assert all(hashes[int(sequence)] == hash for sequence, hash in lines)
    assert other.check().sound


def test_a_fork_waits_for_the_transactions_of_other_threads(place: Place) -> None:
    ledger, stop = opened(place.open()), Event()

    def charge_on(who: int) -> int:
        done = 0
        while not stop.is_set():
            ledger.charge(BOB, pure(1, 10**6), f"thread {who}: {done}")
            ledger.spent(BOB)
            done += 1
        return done

    with ThreadPoolExecutor(3) as pool:
        threads = [pool.submit(charge_on, who) for who in range(3)]
        for number in range(10):
            with processes(1, lambda _, n=number: ledger.charge(BOB, pure(1, 10**6), f"child {n}") and None) as [child]:
                pass
            assert child.exitcode == 0
        stop.set()
        done = sum(thread.result() for thread in threads)
    assert ledger.spent(BOB) == PureDP(F(10 + done, 10**6))
    assert ledger.check().sound


def test_a_child_forked_in_the_middle_of_a_transaction_may_use_no_ledger(place: Place, tmp_path: Path) -> None:
    store = place.store(patience=0.1)

    def use(who: int) -> None:
        for number, call in enumerate((lambda: Ledger(store), lambda: Ledger.at(tmp_path / "others.db"))):
            try:
                call()
            except LedgerUnavailable as refusal:
                (tmp_path / f"{number}").write_text(str(refusal))

    with store.reading() as books:
        books.head()
        with processes(1, use):
            pass
    assert all("forked" in (tmp_path / name).read_text() for name in "01")
    assert Ledger(store).check().sound
    store.close()


QUESTIONS = 20_000
WRITERS = 8
NARROW = F(1, 4000)
"""What one account has: some dozen charges, so that writers race for the last of it on slow machines too."""
KILLS = {"SQLitePlace": whole_or_share(1000, 30), "PostgresPlace": whole_or_share(1000, 10)}
"""A writer takes three times as long to get to work where it has to connect to a server."""


def write_on(place: Place, log: Path, seed: int) -> None:
    """Charges and completes without end; each thing that the ledger acknowledged is noted in the log.

    Checkpoints are frequent, so that many writers die in one.
    """
    chance = random.Random(seed)
    sqlite.ENTRIES_BETWEEN_CHECKPOINTS = 10
    note = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    ledger = place.open()
    while True:
        number = chance.randrange(QUESTIONS)
        account = (HEALTH, STUDY, ANN, BOB, ("narrow",))[number % 5]
        try:
            charge = ledger.charge(account, [Pure(cost(number))], f"q{number}")
        except BudgetExceeded:
            continue
        os.write(note, f"charge {charge.sequence} {charge.hash}\n".encode())
        if number % 3 and (charge.own or charge.payload is not None):
            answer = charge.payload
            if answer is None:
                answer = ledger.complete(charge, f"{os.getpid()}-{chance.random()}".encode())
            os.write(note, f"answer {number} {answer.decode()}\n".encode())


def cost(number: int) -> F:
    return F(1 + number % 7, 200_000)


class Watch:
    """Follows the books and the logs of the writers, and holds the one against the other."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._store = place.store()
        self._verifier = Verifier()
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.charges: dict[int, str] = {}
        self.answers: dict[str, str] = {}

    def look(self) -> None:
        """What was acknowledged since the last look is in the books, and these continue what was seen of them then."""
        fresh = []
        for log in sorted(self._folder.glob("log-*")):
            seen = self._read.get(log, 0)
            with log.open("rb") as written:
                written.seek(seen)
                text = written.read()
            whole = text[: text.rfind(b"\n") + 1]
            for line in whole.decode().splitlines():
                kind, key, value = line.split(" ", 2)
                if kind == "charge":
                    assert self.charges.setdefault(int(key), value) == value
                    fresh.append(int(key))
                else:
                    assert self.answers.setdefault(key, value) == value, "two answers were shown for one charge"
            self._read[log] = seen + len(whole)
        with self._store.reading() as books:
            self._verifier.follow(books)
            assert self._verifier.fault is None, self._verifier.fault
            for sequence in fresh:
                entry = books.entry(sequence)
                assert entry is not None, "an acknowledged charge was lost"
                assert entry.hash == self.charges[sequence]

    def close(self) -> None:
        self._store.close()


@pytest.mark.slow
def test_kills_under_eight_writers_lose_nothing_and_never_overspend(place: Place, tmp_path: Path) -> None:
    chance = random.Random(7)
    ledger = opened(place.open())
    ledger.open(("narrow",), budget=PureDP(NARROW), unit=UNIT, source="t")
    watch = Watch(place, tmp_path)
    started = 0

    def writer() -> multiprocessing.Process:
        nonlocal started
        started += 1
        process = FORK.Process(target=write_on, args=(place, tmp_path / f"log-{started:04}", started), daemon=True)
        process.start()
        return process

    running = [writer() for _ in range(WRITERS)]
    try:
        for _ in range(KILLS[type(place).__name__]):
            # Each of eight writers lives for hundreds of entries, more or less, and dies anywhere in one.
            enough, end = ledger.head().sequence + chance.randrange(1, 100), time.monotonic() + PATIENCE
            while ledger.head().sequence < enough:
                assert time.monotonic() < end, "nobody writes"
                time.sleep(chance.uniform(0.0, 0.01))
            victim = running.pop(chance.randrange(WRITERS))
            assert victim.is_alive()
            os.kill(victim.pid, signal.SIGKILL)
            victim.join(PATIENCE)
            watch.look()
            running.append(writer())
    finally:
        for process in running:
            process.kill()
            process.join(PATIENCE)
    watch.look()
    watch.close()
    assert ledger.check().sound
    paid = [e.content for e in ledger.entries() if e.content["kind"] == "charge"]
    assert len({entry["question"] for entry in paid}) == len(paid) >= len(watch.charges) > 0
    for account, budget in ((HEALTH, 1), (STUDY, F(1, 2)), (ANN, F(1, 4)), (("narrow",), NARROW)):
        events = [e["events"][0] for e in paid if tuple(e["account"][: len(account)]) == account]
        assert sum(F(event["epsilon"]) for event in events) == ledger.spent(account).epsilon <= budget
    assert ledger.spent(("narrow",)).epsilon > NARROW - cost(6)
    hashes = {entry.sequence: entry.hash for entry in ledger.entries()}
    assert all(hashes[sequence] == hash for sequence, hash in watch.charges.items())
    assert len(watch.answers) > 100
    for number, answer in watch.answers.items():
        account = ("narrow",) if int(number) % 5 == 4 else HEALTH
        assert ledger.replay(account, f"q{number}") == answer.encode()

"""Questions in a world that fails: engines die, books are cut off, disks fill up, clocks jump, processes are killed.

Each time: no answer without a charge, no charge lost or paid twice, a clear error, and asking the same again succeeds.
"""

import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from tests.faults.proxy import Proxy
from tests.ledger.servers import Server, running

import discreet as dc
from discreet.core.errors import BudgetExceeded, EngineUnavailable
from discreet.ledger import Ledger, LedgerUnavailable, ledger
from discreet.ledger.stores.postgres import connection as server
from discreet.session.session import Session

FORK = multiprocessing.get_context("fork")
PEOPLE = 300
QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
OTHER = "SELECT COUNT(*) AS n FROM visits"
FACTS: dict[str, Any] = {
    "unit": "patient",
    "budget": dc.PureDP(1),
    "table": "visits",
    "values": {"city": ["A", "B"]},
    "dataset": "visits",
}
_NUMBERS = count()


class Books:
    """A place for books, and how it fails."""

    def __init__(self, place: str | Path) -> None:
        self.place = place

    def charges(self) -> int:
        """How many questions were paid for; the books must be sound."""
        with Ledger.at(self.place) as books:
            assert books.check().sound
            return sum(entry.content["kind"] == "charge" for entry in books.entries())

    def spent(self) -> object:
        with Ledger.at(self.place) as books:
            return books.spent(("visits",))


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, str]]:
    """An empty database on a server."""
    place, name = running(), f"fault_{next(_NUMBERS)}"
    monkeypatch.setenv("DISCREET_KEY", str(tmp_path / "key"))
    monkeypatch.setattr(server, "GRACE", 0.3)
    place.execute(f"CREATE DATABASE {name}")
    yield place, name
    place.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["file", "server"])
def books(request: pytest.FixtureRequest, tmp_path: Path) -> Books:
    """Books in a file, and on a server."""
    if request.param == "file":
        return Books(tmp_path / "books.ledger")
    place, name = request.getfixturevalue("database")
    return Books(place.url(database=name))


def visits() -> dict[str, Any]:
    patients = np.arange(PEOPLE)
    return {"patient": patients, "city": np.where(patients % 3 == 0, "A", "B")}


def connected(books: Books, **others: Any) -> Session:
    return dc.connect(visits(), **{**FACTS, "ledger": books.place, **others})


def before_the_engine(session: Session, monkeypatch: pytest.MonkeyPatch, deed: Callable[[], None]) -> list[str]:
    """Does the deed once, when a question is charged and is to be run; the statements that were run."""
    run, ran = session._engine.run, []

    def instead(statement: str) -> list[tuple[Any, ...]]:
        ran.append(statement)
        if len(ran) == 1:
            deed()
        return run(statement)

    monkeypatch.setattr(session._engine, "run", instead)
    return ran


def settled(session: Session, books: Books, charges: int = 1) -> None:
    """The question is answered now, was charged so often, and gives the same again."""
    answer = session.sql(QUESTION, epsilon="0.5")
    assert [row[0] for row in answer.rows] == ["A", "B"]
    assert session.sql(QUESTION, epsilon="0.5").rows == answer.rows
    assert books.charges() == charges
    assert books.spent() == dc.PureDP(Fraction(charges, 2))
    with Ledger.at(books.place) as found:
        found.confirm(answer.certificate, keys=[answer.certificate["key"]])


def test_a_backend_that_is_ended_in_the_middle_of_a_statement(
    database: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, name = database
    url, books = place.url(database=name), Books(tmp_path / "books.ledger")
    with closing(psycopg.connect(url, autocommit=True)) as steward:
        steward.execute(
            "CREATE TABLE visits AS SELECT i AS patient, (ARRAY['A', 'B'])[1 + i % 2] AS city"
            " FROM generate_series(1, 300) i"
        )
        with dc.connect(url, **{**FACTS, "ledger": books.place}) as session, steward.transaction():
            run = session._engine.run

            def held_up(statement: str) -> list[Any]:
                steward.execute("LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
                return run(statement)

            monkeypatch.setattr(session._engine, "run", held_up)
            failures: list[Exception] = []

            def ask() -> None:
                try:
                    session.sql(QUESTION, epsilon="0.5")
                except EngineUnavailable as failure:
                    failures.append(failure)

            asking = threading.Thread(target=ask)
            asking.start()
            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'discreet'"
            while not steward.execute(f"{end} AND wait_event_type = 'Lock'".encode()).fetchall():
                assert asking.is_alive()
            asking.join(300)
        assert "asking again is charged again" in str(failures)
        assert books.charges() == 1
        with dc.connect(url, **{**FACTS, "ledger": books.place}) as session:
            settled(session, books, charges=2)


def test_an_engine_that_is_interrupted(books: Books) -> None:
    patients = np.arange(200_000)
    many = {"patient": patients, "city": np.where(patients % 3 == 0, "A", "B")}
    with dc.connect(many, **FACTS, ledger=books.place) as session:
        done = threading.Event()

        def disturb() -> None:
            while not done.is_set():
                session._engine.cancel()

        disturber = threading.Thread(target=disturb)
        disturber.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                session.sql(QUESTION, epsilon="0.5")
        finally:
            done.set()
            disturber.join(300)
        settled(session, books, charges=2)


def test_books_that_die_between_charge_and_release(
    database: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, name = database
    books = Books(place.url(database=name))
    with connected(books) as session:
        ran = before_the_engine(session, monkeypatch, place.stop)
        try:
            with pytest.raises(LedgerUnavailable):
                session.sql(QUESTION, epsilon="0.5")
            with pytest.raises(LedgerUnavailable):
                session.sql(QUESTION, epsilon="0.5")
        finally:
            place.start()
        assert len(ran) == 1
        settled(session, books, charges=2)


def test_a_process_that_is_killed_between_charge_and_release(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> None:
        session = connected(books)
        before_the_engine(session, monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
        session.sql(QUESTION, epsilon="0.5")

    child = FORK.Process(target=ask, daemon=True)
    child.start()
    child.join(300)
    assert child.exitcode == -signal.SIGKILL
    assert books.charges() == 1
    with connected(books) as session:
        settled(session, books, charges=2)


@pytest.mark.parametrize(("deed", "paid"), [("cut", 0), ("deaf", 1)])
def test_a_network_that_is_cut_while_a_question_is_charged(
    database: tuple[Server, str], monkeypatch: pytest.MonkeyPatch, deed: str, paid: int
) -> None:
    """Whether the commit got through is not known: nothing is run, and the same question settles it."""
    place, name = database
    books, network = Books(place.url(database=name)), Proxy(place.port)
    try:
        with connected(books, ledger=place.url(database=name, port=network.port)) as session:
            ran = before_the_engine(session, monkeypatch, lambda: None)
            network.trap(b";COMMIT;", deed, then=network.cut)
            with pytest.raises(LedgerUnavailable, match="not known yet"):
                session.sql(QUESTION, epsilon="0.5")
            assert ran == []
            network.mend()
            assert books.charges() == paid
            settled(session, books)
    finally:
        network.close()


@contextmanager
def full(books: Books) -> Iterator[Callable[[], None]]:
    """What fills the disk until the block is left: no file may grow, or a server says that its own may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if isinstance(books.place, Path):
        try:
            yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return
    with closing(psycopg.connect(books.place, autocommit=True)) as steward:

        def fill() -> None:
            steward.execute(
                "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS"
                " $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$"
            )
            steward.execute(
                "CREATE TRIGGER no_room BEFORE INSERT ON discreet_ledger.entries EXECUTE FUNCTION no_room()"
            )

        yield fill
        steward.execute("DROP FUNCTION no_room() CASCADE")


@pytest.mark.parametrize("kind", ["charge", "release"])
def test_a_disk_that_is_full(books: Books, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    with connected(books) as session:
        with full(books) as fill:
            ran = before_the_engine(session, monkeypatch, fill if kind == "release" else lambda: None)
            if kind == "charge":
                fill()
            with pytest.raises(LedgerUnavailable, match=r"room|disk"):
                session.sql(QUESTION, epsilon="0.5")
        assert len(ran) == (kind == "release")
        assert books.charges() == (kind == "release")
        settled(session, books, charges=2 if kind == "release" else 1)


def test_clocks_that_jump(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is read in one place and decides nothing: entries are in the order of the chain."""
    years = iter([2031, 1999, 2099, 1970, 2030, 2001, 2500] * 20)

    class Jumping(datetime):
        @classmethod
        def now(cls, zone: Any = None) -> datetime:
            return datetime(next(years), 1, 1, tzinfo=zone or UTC)

    monkeypatch.setattr(ledger, "datetime", Jumping)
    with connected(books) as session, connected(books) as another:
        answers = [one.sql(QUESTION, epsilon=epsilon) for one in (session, another) for epsilon in ("0.25", "0.5")]
        assert answers[0].rows == answers[2].rows
        assert answers[1].rows == answers[3].rows
        with pytest.raises(BudgetExceeded):
            another.sql(OTHER, epsilon="0.5")
        assert another.sql(OTHER, epsilon="0.25").rows == session.sql(OTHER, epsilon="0.25").rows
    with Ledger.at(books.place) as found:
        entries = list(found.entries())
        assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
        times = [entry.content["time"] for entry in entries]
        assert times != sorted(times)
        assert found.registry()["data_sets"][0]["accounts"][0]["used"] == 1.0
    assert books.charges() == 3
    assert books.spent() == dc.PureDP(1)


def test_two_writers_with_stale_state(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were told that their question fits; the second one is refused before its engine runs."""
    with connected(books) as session, connected(books) as another:
        assert session.price(QUESTION, epsilon="0.75").fits
        assert another.price(OTHER, epsilon="0.75").fits
        ran = before_the_engine(another, monkeypatch, lambda: None)
        answer = session.sql(QUESTION, epsilon="0.75")
        with pytest.raises(BudgetExceeded):
            another.sql(OTHER, epsilon="0.75")
        assert another.sql(QUESTION, epsilon="0.75").rows == answer.rows
        assert ran == []
    assert books.charges() == 1
    assert books.spent() == dc.PureDP("0.75")

"""Attacks on the books themselves: what they only seem to have written, and whom they only seem to limit."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from tests.attacks import ledger_faults
from tests.attacks.register import attack
from tests.ledger.places import ANN, BOB, HEALTH, PostgresPlace, opened, pure

from discreet import ApproxDP, BudgetExceeded, InvalidArgument, User, connect
from discreet.ledger import Ledger, LedgerUnavailable
from discreet.ledger.encoding import everywhere

FORK = multiprocessing.get_context("fork")
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
PATIENCE = 20.0
"""Seconds after which nobody waits for the standby: many times what it takes."""


@contextmanager
def absent_standby(place: PostgresPlace) -> Iterator[None]:
    """Commits wait for a standby that is not there."""
    setting = "ALTER SYSTEM {} synchronous_standby_names", "SELECT pg_reload_conf()"
    place.server.execute(f"{setting[0].format('SET')} = 'nobody'", setting[1])
    _until(lambda: _waits(place))
    try:
        yield
    finally:
        place.server.execute(setting[0].format("RESET"), setting[1])
        _until(lambda: place.rows("SHOW synchronous_standby_names") == [("",)])


def _waits(place: PostgresPlace) -> bool:
    """Whether a commit waits. Sessions know of a setting before the process does that decides about waiting."""
    heard: list[str | None] = []
    with closing(psycopg.connect(place.server.url(), autocommit=True)) as session:
        session.add_notice_handler(lambda notice: heard.append(notice.message_primary))
        cancelled(place, lambda: session.execute("SELECT pg_logical_emit_message(true, 'waits', '')"))
    return any("synchronous replication" in (message or "") for message in heard)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "the server does not come to it"
        time.sleep(0.01)


def cancelled(place: PostgresPlace, deed: Callable[[], Any], how: str = "pg_cancel_backend") -> Any:
    """What comes of a deed whose wait for the standby is cancelled, as often as it waits."""
    with ThreadPoolExecutor(1) as pool, closing(psycopg.connect(place.server.url(), autocommit=True)) as steward:
        doing = pool.submit(deed)
        while not doing.done():
            for (waiting,) in steward.execute(WAITING).fetchall():
                steward.execute(f"SELECT {how}(%s)".encode(), (waiting,))
            time.sleep(0.01)
        return doing.result()


@attack(50, finds=[ledger_faults.warnings_that_nobody_hears])
def test_a_cancelled_wait_for_a_standby_is_not_taken_for_durable(tmp_path: Path) -> None:
    with ExitStack() as handles:
        place = PostgresPlace(tmp_path, handles)
        ledger, reader = opened(place.open()), place.open()
        before = ledger.charge(BOB, pure(1, 16), "charged before")
        reader.head()
        with absent_standby(place):
            for deed in (
                lambda: ledger.charge(ANN, pure(1, 8), "q"),
                lambda: ledger.complete(before, b"42"),
                lambda: reader.replay(BOB, "charged before"),
                lambda: reader.spent(HEALTH),
            ):
                with pytest.raises(LedgerUnavailable, match="standby"):
                    cancelled(place, deed)
        # The server has them all the same, and whoever asks when the standby is back pays nothing twice.
        assert ledger.complete(ledger.charge(ANN, pure(1, 8), "q"), b"7") == b"7"
        assert reader.replay(BOB, "charged before") == b"42"
        assert len(place.rows("SELECT 1 FROM charges")) == 2
        assert ledger.check().sound


VISITS = {"who": np.arange(200), "k": np.array(["a", "b"] * 100)}
BUDGET = ApproxDP(3, "1e-6")


NUMBERS = count(1)


def spends(folder: Path, epsilon: str, **who: Any) -> bool:
    """Whether somebody gets an answer at this price to a question that was not asked before."""
    text = f"SELECT COUNT(*) FROM visits WHERE who < {next(NUMBERS)}"
    given = {"table": "visits", "ledger": folder / "books", "unit": User("who"), "budget": BUDGET}
    try:
        with connect(VISITS, **given, **who) as session:
            session.sql(text, epsilon=epsilon)
    except (BudgetExceeded, InvalidArgument):
        return False
    return True


@attack(46, finds=[ledger_faults.caps_of_one_place])
def test_an_analyst_with_a_cap_cannot_spend_more_by_changing_studies(tmp_path: Path) -> None:
    assert spends(tmp_path, "0.1", study="flu", analyst="eve")
    assert spends(tmp_path, "0.01", study="covid")
    with Ledger.at(tmp_path / "books") as books:
        books.open(everywhere("visits", "eve"), budget=ApproxDP("0.2", "1e-6"))
    for who in ({"study": "covid", "analyst": "eve"}, {"study": "flu", "analyst": "eve"}, {"analyst": "eve"}):
        assert not spends(tmp_path, "0.15", **who)
    assert spends(tmp_path, "0.05", study="covid", analyst="eve")


@attack(46, finds=[ledger_faults.names_that_nobody_checks])
def test_a_typo_does_not_open_an_account_without_a_cap(tmp_path: Path) -> None:
    assert spends(tmp_path, "0.1", study="flu", analyst="eve")
    with Ledger.at(tmp_path / "books") as books:
        books.open(everywhere("visits", "eve"), budget=ApproxDP("0.2", "1e-6"))
    assert not spends(tmp_path, "1", study="flu", analyst="Eve")
    assert not spends(tmp_path, "1", study="flue", analyst="eve")
    assert not spends(tmp_path, "1", study="flu", analyst="flu"), "the name of a study is no analyst's"
    assert spends(tmp_path, "1", study="flu", analyst="ann", new=True)


@attack(46, finds=[ledger_faults.caps_that_nobody_compares])
def test_a_cap_never_promises_more_than_holds(tmp_path: Path) -> None:
    assert spends(tmp_path, "0.1", study="flu")
    with Ledger.at(tmp_path / "books") as books, pytest.raises(InvalidArgument, match="holds for"):
        books.open(("visits", "flu", "eve"), budget=ApproxDP(30, "1e-6"))


@attack(33, finds=[ledger_faults.keys_that_a_fork_inherits])
def test_a_charge_in_doubt_is_run_once_for_a_parent_and_its_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever does not know whether it was charged may run it once for that; a parent and its child are two."""
    with Ledger.at(tmp_path / "books.db") as books:
        opened(books)
        with monkeypatch.context() as patched:
            written = books._charge

            def lost(*given: Any) -> Any:
                written(*given)
                raise LedgerUnavailable("the connection was lost", "ask again")

            patched.setattr(books, "_charge", lost)
            with pytest.raises(LedgerUnavailable):
                books.charge(HEALTH, pure(1, 8), "COUNT(*)")
        child = FORK.Process(target=_ran_and_died, args=(books,))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert books.charge(HEALTH, pure(1, 8), "COUNT(*)").own
        [spent] = vars(books.spent(HEALTH)).values()
        assert spent >= Fraction(2, 8)


def _ran_and_died(books: Ledger) -> None:
    assert books.charge(HEALTH, pure(1, 8), "COUNT(*)").own

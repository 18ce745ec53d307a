"""Which runs are alive: a lost connection makes no living run void, and a lock that cannot be had is no run."""

import errno
import fcntl
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.ledger.places import ANN, HEALTH, PostgresPlace, SQLitePlace, opened, pure

from discreet.core.losses import PureDP
from discreet.ledger import Ledger, LedgerUnavailable
from discreet.ledger.stores.postgres.runs import ServerRuns


def session(ledger: Ledger) -> int:
    """What the server calls the connection that holds the locks of this handle's runs."""
    runs = ledger._store.runs
    assert isinstance(runs, ServerRuns)
    assert runs._connection is not None
    return runs._connection.info.backend_pid


def dropped(place: PostgresPlace, ledger: Ledger) -> None:
    """The server ends that connection, and has taken its locks back."""
    assert place.rows(f"SELECT pg_terminate_backend({session(ledger)}, 10000)") == [(True,)]


@pytest.mark.parametrize("use", ["reads", "charges", "asks again"])
def test_whatever_a_handle_does_claims_again_what_the_server_dropped(shared: PostgresPlace, use: str) -> None:
    ledger, other = opened(shared.open()), shared.open()
    charge = ledger.charge(ANN, pure(1, 16), "q")
    dropped(shared, ledger)
    if use == "reads":
        ledger.spent(HEALTH)
    else:
        ledger.charge(ANN, pure(1, 16), "another" if use == "charges" else "q")
    waiting = other.charge(ANN, pure(1, 16), "q")
    assert (waiting.sequence, waiting.own, waiting.fresh) == (charge.sequence, False, False)
    assert ledger.complete(charge, b"42") == other.replay(ANN, "q") == b"42"
    assert ledger.check().sound


def test_a_run_that_is_over_is_not_claimed_again(shared: PostgresPlace) -> None:
    ledger, other = opened(shared.open()), shared.open()
    kept, over = (ledger.charge(ANN, pure(1, 16), text) for text in ("kept", "over"))
    dropped(shared, ledger)
    ledger.abandon(over)
    assert ledger.spent(ANN) == PureDP("0.125")
    assert [other.charge(ANN, pure(1, 16), text).own for text in ("kept", "over")] == [False, True]
    ledger.abandon(kept)


def test_a_connection_that_failed_is_closed_and_leaves_no_lock(shared: PostgresPlace) -> None:
    ledger, other = opened(shared.open()), shared.open()
    charge, runs = ledger.charge(ANN, pure(1, 16), "q"), ledger._store.runs
    assert isinstance(runs, ServerRuns)
    failed = runs._connection
    assert failed is not None
    with pytest.raises(LedgerUnavailable, match="which runs are alive"):
        runs._answered(b"SELECT no_such_column")
    assert failed.closed
    ledger.spent(ANN)
    assert not other.charge(ANN, pure(1, 16), "q").own
    ledger.abandon(charge)
    assert other.charge(ANN, pure(1, 16), "q").own


def test_who_asks_whether_a_run_is_alive_is_in_nobodys_way(shared: PostgresPlace) -> None:
    ledger, other = opened(shared.open()), shared.open()
    other._store.runs.claim("some run")
    for _ in range(3):
        assert ledger._store.runs.is_alive("some run")
        assert not ledger._store.runs.is_alive("no run")
    locks = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = {}"
    assert [shared.rows(locks.format(session(handle))) for handle in (ledger, other)] == [[(0,)], [(1,)]]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EINVAL, errno.EIO])
def test_a_file_without_locks_is_not_taken_for_a_run(
    file: SQLitePlace, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    ledger, other = opened(file.open()), file.open()
    ledger.abandon(ledger.charge(ANN, pure(1, 16), "q"))

    def fails(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "lockf", fails)
        with pytest.raises(LedgerUnavailable, match=os.strerror(code)):
            other.charge(ANN, pure(1, 16), "q")
        with pytest.raises(LedgerUnavailable, match=os.strerror(code)):
            other._store.runs.is_alive("some run")
    assert other.spent(ANN) == PureDP("0.0625")
    assert other.charge(ANN, pure(1, 16), "q").own


@pytest.mark.parametrize("code", [errno.EACCES, errno.EAGAIN])
def test_a_lock_of_somebody_else_is_a_run(file: SQLitePlace, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def taken(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    ledger = opened(file.open())
    monkeypatch.setattr(fcntl, "lockf", taken)
    assert ledger._store.runs.is_alive("some run")


def test_a_closed_ledger_opens_no_file_again(tmp_path: Path) -> None:
    ledger = opened(SQLitePlace(tmp_path, ExitStack()).open())
    ledger.charge(ANN, pure(1, 16), "q")
    ledger.close()
    before = os.listdir("/proc/self/fd")
    with pytest.raises(LedgerUnavailable, match="closed"):
        ledger.charge(ANN, pure(1, 16), "another")
    assert len(os.listdir("/proc/self/fd")) == len(before)

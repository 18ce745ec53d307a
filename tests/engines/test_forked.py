"""A forked child does not wait for a statement that a thread of its parent is running: that thread is not there."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.engines.ibis_tables import Warehouse
from tests.engines.postgres_tables import create
from tests.ledger.servers import running

import discreet as dc
from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.core.forks import HomeLock
from discreet.engines.postgres.engine import Postgres
from discreet.engines.spark.engine import Spark
from discreet.engines.warehouses.engine import Ibis

PATIENCE = 20
"""Seconds after which a child that hangs is ended."""


def spark() -> Spark:
    """An engine without a session behind it, which nothing here asks."""
    engine = object.__new__(Spark)
    engine._lock, engine._session, engine._jobs, engine._cancelled = HomeLock(), object(), None, False
    return engine


ENGINES: dict[str, Callable[[], Any]] = {
    "postgres": lambda: Postgres(running().url()),
    "ibis": lambda: Ibis(Warehouse("trino")),
    "spark": spark,
}


@contextmanager
def held(engine: Any) -> Iterator[None]:
    """A thread holds the lock of the engine, as while a statement runs."""
    begun, done = threading.Event(), threading.Event()

    def hold() -> None:
        with engine._lock:
            begun.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def outcome_in_a_child(work: Callable[[], None]) -> int:
    """How a forked child ends: 0 if it did the work, and by a signal if it waits for ever."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("name", ENGINES)
def test_a_child_is_refused_and_waits_for_nobody(name: str) -> None:
    engine = ENGINES[name]()

    def asked() -> None:
        for ask in (engine.run, engine.prepare):
            with pytest.raises(InvalidArgument, match="opened before a fork"):
                ask("SELECT 1")
        assert not engine.running()
        engine.cancel()

    with held(engine):
        assert outcome_in_a_child(asked) == 0
        assert outcome_in_a_child(engine.close) == 0
    engine.close()


def test_a_child_closes_a_session_and_leaves_the_connection_to_its_parent(tmp_path: Path) -> None:
    create("forked", {"who": "int4"}, [{"who": number} for number in range(5)])
    facts: dict[str, Any] = {"unit": "who", "budget": dc.PureDP(10), "ledger": tmp_path / "books"}
    with dc.connect(running().url(), table="forked", **facts) as session:
        with held(session._engine):
            assert outcome_in_a_child(session.close) == 0
        assert session.sql("SELECT COUNT(*) AS n FROM forked", epsilon=1).rows


def test_a_server_that_is_lost_while_a_statement_is_prepared_is_no_bad_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = running()
    create("prepared", {"who": "int4"}, [{"who": number} for number in range(5)])
    facts: dict[str, Any] = {"unit": "who", "budget": dc.PureDP(10), "ledger": tmp_path / "books"}
    with dc.connect(server.url(), table="prepared", **facts) as session:
        engine: Any = session._engine
        honest = engine._records

        def cut(connection: Any, statement: str) -> Any:
            found = honest(connection, statement)
            server.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")
            return found

        monkeypatch.setattr(engine, "_records", cut)
        with pytest.raises(EngineUnavailable, match="connection to the server was lost"):
            session.sql("SELECT COUNT(*) AS n FROM prepared", epsilon=1)
        assert session.spent.epsilon == 0
        monkeypatch.undo()
        assert session.sql("SELECT COUNT(*) AS n FROM prepared", epsilon=1).rows

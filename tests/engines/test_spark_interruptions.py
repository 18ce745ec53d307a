"""Questions on Spark that end early: stopped by a thread or a signal, or for want of time; sessions that are gone."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.engines.spark_tables import USUAL, frame, having, running

import discreet as dc
from discreet.core.errors import InvalidArgument
from discreet.engines.spark.engine import Spark
from discreet.session.session import Session

SLOW = "SELECT SUM(a.id * b.id % 7) FROM RANGE(1000000) AS a CROSS JOIN RANGE(1000000) AS b"
COUNT = "SELECT COUNT(*) AS n FROM visits"
PEOPLE = 300


@pytest.fixture(scope="module", autouse=True)
def usual() -> Iterator[None]:
    with having(**USUAL):
        yield


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    visits = frame({"patient": pa.int32()}, [{"patient": place % PEOPLE} for place in range(3 * PEOPLE)])
    budget = dc.ApproxDP(20, "1e-6")
    with dc.connect(visits, table="visits", unit="patient", budget=budget, ledger=tmp_path / "books") as opened:
        yield opened


@contextmanager
def slowly(session: Session) -> Iterator[None]:
    """Every statement takes for ever."""
    engine: Any = session._engine
    honest = engine.run
    engine.run = lambda statement: honest(SLOW)
    try:
        yield
    finally:
        engine.run = honest


def interrupted(session: Session, stop: Callable[[], object]) -> None:
    """A question ends when another thread stops it, and asked again it is charged again."""
    over = threading.Event()

    def once_it_runs() -> None:
        while not session.running() and not over.wait(0.02):
            continue
        stop()

    thread = threading.Thread(target=once_it_runs, daemon=True)
    with slowly(session):
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            session.sql(COUNT, epsilon=1)
    over.set()
    thread.join(300)
    before = session.spent
    assert before.epsilon > 0
    assert abs(session.sql(COUNT, epsilon=1).rows[0][0] - 3 * PEOPLE) < 200
    assert session.spent.epsilon > before.epsilon


def test_a_statement_can_be_cancelled_and_asked_again(session: Session) -> None:
    seen: list[Any] = []

    def stop() -> None:
        seen.append(session.running())
        session.cancel()

    interrupted(session, stop)
    assert seen == [True]
    assert running().sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_signal_is_no_failure_whatever_its_jobs_end_with(session: Session) -> None:
    def stopped(number: int, at: object) -> None:
        try:
            running().sparkContext.cancelAllJobs()
        finally:
            raise KeyboardInterrupt

    former = signal.signal(signal.SIGINT, stopped)
    try:
        interrupted(session, lambda: os.kill(os.getpid(), signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, former)


def test_a_signal_that_came_before_a_statement_does_not_excuse_its_failure() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            Spark(running()).run("SELECT 1 / id FROM RANGE(1)")


def test_a_time_limit_is_a_failure(session: Session) -> None:
    with having(spark__discreet__timeout="1"), slowly(session), pytest.raises(dc.AnswerFailed):
        session.sql(COUNT, epsilon=1)


def test_a_session_that_was_stopped_is_refused() -> None:
    class Stopped:
        version = "4.0.0"

        def sql(self, text: str) -> object:
            raise RuntimeError("a page of Java")

    with pytest.raises(InvalidArgument, match=r"not stopped; make a new one"):
        Spark(Stopped())


def test_a_child_of_a_fork_and_a_closed_engine_say_so() -> None:
    engine = Spark(running())
    child = os.fork()
    if child == 0:
        try:
            engine.run("SELECT 1")
        except InvalidArgument as error:
            os._exit(7 if "opened before a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert engine.run("SELECT 1") == [(1,)]
    engine.close()
    engine.close()
    engine.cancel()
    with pytest.raises(InvalidArgument, match="connect again"):
        engine.run("SELECT 1")

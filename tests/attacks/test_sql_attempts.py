"""Nothing is drawn twice for one payment, and nothing that a run does on its way shows."""

from contextlib import suppress
from typing import Any

import pytest
from tests.attacks import sql_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import opened
from tests.attacks.test_sql_books import COUNT, FACTS, ROWS, charges

import discreet as dc
import discreet.session.sql_question
from discreet.charging import purchase
from discreet.charging.purchase import Listener
from discreet.core.errors import EngineUnavailable
from discreet.ledger import Ledger, LedgerUnavailable
from discreet.ledger import charges as ledger_charges
from discreet.noise.entropy import system
from discreet.robust import Limits
from discreet.session.sql import SQL
from discreet.sql.measuring.run import Noisy, Run


@attack(33, finds=[sql_faults.runs_repeated_for_free])
def test_a_run_that_ends_before_its_outcome_is_stored_is_paid_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends it: a signal while the engine reads, an engine that is lost, a disk that is full."""
    with opened(ROWS, **FACTS) as session:
        honest, release, completed = session._engine.run, Run.release, Ledger._complete
        drawn: list[Noisy] = []

        def interrupted(statement: str) -> Any:
            honest(statement)
            raise KeyboardInterrupt

        def lost(statement: str) -> Any:
            honest(statement)
            raise EngineUnavailable("the connection was lost")

        def watched(self: Run) -> Noisy:
            drawn.append(release(self))
            return drawn[-1]

        def full(self: Ledger, *given: Any) -> bytes:
            raise LedgerUnavailable("no space is left for it", "make room")

        monkeypatch.setattr(Run, "release", watched)
        for engine, complete, failure in (
            (interrupted, completed, KeyboardInterrupt),
            (lost, completed, EngineUnavailable),
            (honest, full, LedgerUnavailable),
        ):
            session._engine.run = engine
            monkeypatch.setattr(Ledger, "_complete", complete)
            with pytest.raises(failure):
                session.sql(COUNT, epsilon=1)
        monkeypatch.setattr(Ledger, "_complete", completed)
        answers = [session.sql(COUNT, epsilon=1).rows for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        assert len(drawn) == 2
        assert charges(session) == 4


@attack(33, finds=[sql_faults.sizes_not_looked_at])
def test_a_payload_that_is_too_large_is_a_failure_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purchase, "LONGEST_PAYLOAD", 40)
    monkeypatch.setattr(ledger_charges, "LONGEST_PAYLOAD", 40)
    with opened(ROWS, **FACTS) as session:
        honest, ran = session._engine.run, list[str]()

        def watched(statement: str) -> Any:
            ran.append(statement)
            return honest(statement)

        session._engine.run = watched
        for _ in range(3):
            with pytest.raises((dc.AnswerFailed, dc.InvalidArgument)):
                session.sql(COUNT, epsilon=1)
        assert (len(ran), charges(session)) == (1, 1)


def test_what_the_books_could_not_store_is_refused_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(ROWS, **FACTS) as session:
        plan = (
            SQL("SELECT k, SUM(x) AS s, MEDIAN(x) AS m, MODE(k) AS o FROM t GROUP BY k", 1)
            .bind(session._context)
            .plan()
        )
        asked = plan.decided
        stored = plan.run(system(), lambda share: None)
        assert len(stored) <= asked.largest_payload
        monkeypatch.setattr(discreet.session.sql_question, "LONGEST_PAYLOAD", asked.largest_payload - 1)
        with pytest.raises(dc.Unsupported, match="more than"):
            session.sql("SELECT k, SUM(x) AS s, MEDIAN(x) AS m, MODE(k) AS o FROM t GROUP BY k", epsilon=1)
        assert charges(session) == 0


@attack(33, finds=[sql_faults.progress_of_what_there_was_to_run])
def test_progress_does_not_tell_whether_there_are_rows() -> None:
    asked: dict[str, Any] = {"epsilon": "0.1", "bounds": (0, 1), "blocks": 4, "method": "mean", "form": "numpy"}
    with opened(ROWS, **FACTS) as session:
        steps = []
        for nobody in (False, True):
            seen: list[float] = []
            question = "SELECT x FROM t" + " WHERE x < 0" * nobody
            session.estimate(lambda rows: 1.0, question, progress=seen.append, limits=Limits(workers=1), **asked)
            steps.append(seen)
    assert steps[0] == steps[1]
    assert len(steps[0]) == 20


@attack(33, finds=[sql_faults.progress_as_it_comes])
def test_progress_is_the_same_whatever_a_run_does() -> None:
    """How many rounds a method makes follows from a noisy size: its steps must not show."""
    steps = []
    for rounds in (0, 1, 3, 7, 1000):
        seen: list[float] = []
        listener = Listener(seen.append)

        def run(listener: Listener = listener, rounds: int = rounds) -> bytes:
            for number in range(rounds):
                listener((number + 1) / rounds * 0.97)
            if rounds == 3:
                raise ValueError
            return b""

        with suppress(ValueError):
            listener.during(run)
        steps.append(seen)
    assert all(each == steps[0] for each in steps)
    assert steps[0] == [(number + 1) / 20 for number in range(20)]

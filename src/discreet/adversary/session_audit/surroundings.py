"""What leaves a question besides its answer, compared on neighbours: errors, work, progress, and what a source is.

- errors: where the engine fails, in words that quote rows, none of them leaves, and the same is said on both;
- sources: each question asks the engine anew whether its tables are still what they were; where one is not, nothing is
  charged and nothing is run;
- work: rows that pass between the operators of a statement. One unit adds at most its own rows, times those that each
  of them may meet in joins (all of its own where both sides are private), to each operator, besides what is read of
  public tables;
- progress: what is said on the way is the same for all runs.

Each check raises a `CheckFailed` where it fails.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from discreet.adversary.session_audit.replay import WatchedDuckDB, put
from discreet.adversary.session_audit.sensitivity import CheckFailed
from discreet.charging.purchase import Listener
from discreet.core.errors import DiscreetError, EngineUnavailable
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.session.sql_question import Asked
from discreet.sql.relations import limits_in, own_joins_in

__all__ = ["check_errors", "check_progress", "check_sources", "check_work", "rows_of", "work_of"]

MARK = "row of somebody"
"""What a failing engine says, with what it read."""


def check_errors(sessions: Sequence[Session], question: SQL) -> None:
    """A failure says the same on neighbours, and nothing of what the engine said."""
    outcomes = []
    for session in sessions:
        engine = _engine(session)
        with engine.failing(MARK):
            try:
                put(session, question)
            except DiscreetError as error:
                outcomes.append((type(error).__name__, str(error)))
                if MARK in "".join(traceback.format_exception(error)) or error.__cause__ is not None:
                    raise CheckFailed("errors", "what the engine said of rows leaves with its failure") from None
            except Exception as error:
                raise CheckFailed("errors", f"the engine's own {type(error).__name__} leaves") from None
            else:
                raise CheckFailed("errors", "a question is answered although the engine failed")
    if len({*outcomes}) > 1:
        raise CheckFailed("errors", f"a failure is {outcomes[0][0]} here, and other words on a neighbour")


def check_sources(session: Session, question: SQL) -> None:
    """A table that is no longer what it was is noticed by the next question, before it is charged and run."""
    engine, ledger = _engine(session), session._ledger
    head, run = ledger.head().sequence, len(engine.statements)
    with engine.changed():
        try:
            put(session, question)
        except EngineUnavailable:
            pass
        except DiscreetError as error:
            raise CheckFailed("sources", f"a source that changed is a {type(error).__name__}") from None
        else:
            raise CheckFailed("sources", "a source changed under the session, and is answered from")
    if ledger.head().sequence != head or len(engine.statements) != run:
        raise CheckFailed("sources", "a source that changed is charged for, or read")


def check_work(sessions: Sequence[Session], planned: Asked, unit_rows: int, public_rows: int) -> None:
    """One unit makes the engine do no more than its rows and their matches, in each operator."""
    works = [work_of(session, planned.statement) for session in sessions]
    relation = planned.query.aggregate.input
    # Rows of two private tables meet as often as the unit has rows, unless a limit is declared.
    matches = prod(most for _, most in limits_in(relation)) * unit_rows ** own_joins_in(relation)
    operators = max(count for _, count in works)
    apart, allowed = abs(works[0][0] - works[1][0]), operators * (unit_rows * matches + public_rows)
    if apart > allowed:
        raise CheckFailed("work", f"one unit makes the engine handle {apart:,} rows more, {allowed:,} are allowed")


def work_of(session: Session, statement: str) -> tuple[int, int]:
    """Rows between all operators of a statement, and how many operators there are."""
    try:
        measured = _engine(session).profile(statement)
    except Exception:
        raise CheckFailed("shape", "the engine failed") from None
    rows, operators, waiting = 0, 0, [*measured["operator"]]
    while waiting:
        node = waiting.pop()
        rows += int(node["intermediate_rows"])
        operators += 1
        waiting += node.get("children", ())
    return rows, operators


def check_progress() -> None:
    """What a run tells on its way is the same however many rounds it makes, for those may follow from noisy sizes, and
    if it makes none, for want of rows. All that is told goes through one listener."""
    heard = []
    for rounds in (1, 3, 7, 0):
        values: list[float] = []
        listener = Listener(values.append)
        listener.during(partial(_rounds, listener, rounds))
        heard.append(values)
    if any(values != heard[0] for values in heard):
        other = next(values for values in heard if values != heard[0])
        raise CheckFailed("progress", f"progress tells apart runs of {heard[0][:3]} … and {other[:3]} …")


def _rounds(listener: Listener, rounds: int) -> bytes:
    for number in range(rounds):
        listener((number + 1) / rounds)
    return b""


def _engine(session: Session) -> WatchedDuckDB:
    engine = session._engine
    assert isinstance(engine, WatchedDuckDB)
    return engine


def rows_of(data: Mapping[str, Sequence[Any]]) -> int:
    """How many rows there are in all tables."""
    return sum(map(len, data.values()))

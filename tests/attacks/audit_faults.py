"""Faults around questions, that an audit of a session must find: one of them is in the audit itself."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from discreet.adversary.session_audit import sensitivity as movement
from discreet.charging import purchase
from discreet.core.errors import AnswerFailed
from discreet.mechanisms import SparseVector
from discreet.noise import Entropy
from discreet.session.session import Session
from discreet.session.sql import SQLPlan, exact_groups
from discreet.sql.answers.answer import pack
from discreet.sql.measuring.clipping_search import ClippingSearch
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.run import Run, choose_norm
from discreet.sql.plan import Join
from discreet.sql.statement.results import Groups
from discreet.sql.statement.selection import Selection


class Overheard(BaseException):
    """Carries the questions of a search past all that catches failures."""

    def __init__(self, mechanism: SparseVector, questions: Sequence[int]) -> None:
        super().__init__()
        self.mechanism, self.questions = mechanism, questions


def searches_overheard_on_the_class() -> Any:
    """The audit runs the search, with a method of the class replaced that raises what it was asked."""

    def search(measurement: Measurement, groups: Groups, weighing: int, keys: int, watched: Any) -> Any:
        by_groups = {(bucket, 0): number for bucket, number in groups.by_groups.items()}
        found: ClippingSearch | Overheard | None = None

        def stop(self: SparseVector, questions: Sequence[int], **_: Any) -> Any:
            raise Overheard(self, questions)

        with patch.object(SparseVector, "release", stop):
            try:
                counts = by_groups if weighing == 1 else groups.by_rows
                choose_norm(measurement, watched(counts), weighing, keys, Entropy.for_tests(0))
            except Overheard as overheard:
                found = overheard
        return found

    return patch.object(movement, "_search", search)


def sources_looked_at_once() -> Any:
    """What a table is, is asked when it is first used, and remembered."""
    original = Session._sources
    known: WeakKeyDictionary[Session, Any] = WeakKeyDictionary()

    def sources(self: Session, relation: Any) -> Any:
        if self not in known:
            known[self] = original(self, relation)
        return known[self]

    return patch.object(Session, "_sources", sources)


def matches_joined_before_they_are_limited() -> Any:
    """Each row meets all that agree with it."""
    original = Selection._first

    def first(self: Selection, join: Join, used: Any) -> str:
        return original(self, replace(join, most=None), used)

    return patch.object(Selection, "_first", first)


def failures_as_the_engine_tells_them() -> Any:
    return patch.object(purchase, "outcome", lambda run: run())


def failures_with_their_cause() -> Any:
    """Somebody adds what the engine said, to be of help."""

    def outcome(run: Any) -> bytes:
        try:
            return bytes(run())
        except Exception as error:
            raise AnswerFailed from error

    return patch.object(purchase, "outcome", outcome)


def groups_stored_beside_the_answer() -> Any:
    """The record of an answer also says what was read."""

    def run(self: SQLPlan, source: Entropy, progress: Any) -> bytes:
        asked = self.decided
        groups = exact_groups(asked, self.bound.engine)
        noisy = Run(asked.measurement, groups, asked.listed, source).release()
        return pack(noisy, source.private, asked.record | {"read": repr(groups)})

    return patch.object(SQLPlan, "run", run)

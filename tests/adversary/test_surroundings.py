"""An audit of a session finds what is wrong around a question: names, identities, errors, progress, work, sources."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.attacks import audit_faults, sql_faults, statement_faults
from tests.sql.faults import planted

import discreet as dc
from discreet.adversary.session_audit.audit import QuestionAudit, audit_session
from discreet.adversary.session_audit.hostile_names import check_names, with_columns
from discreet.adversary.session_audit.neighbouring_tables import OBJECTS
from discreet.adversary.session_audit.process_watch import ProcessWatch
from discreet.core import errors, events, units
from discreet.core.display import secrets
from discreet.session import sql_question as asked
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql import catalog
from discreet.sql.parsing import key_values as keys
from discreet.synthesis import columns

COUNT = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
JOINED = "SELECT COUNT(*) AS n FROM visits JOIN codes ON codes.code = visits.city"
UNITED = "SELECT COUNT(*) AS n FROM (SELECT x FROM visits UNION ALL SELECT x FROM copy) AS u"
ROWS = {"who": np.arange(4), "city": np.array(["Oslo", "Rome", "Oslo", "Lima"]), "x": np.arange(4.0)}
CODES = {"code": np.array(["Oslo"] * 300), "weight": np.arange(300)}


def opened(unit: Any = None, **facts: Any) -> Session:
    declared: dict[str, Any] = {"values": {"city": ["Oslo", "Rome"]}, "bounds": {"x": (0, 4)}} | facts
    budget = dc.ApproxDP(3, "1e-6")
    return dc.connect(ROWS, unit=unit or dc.User("who"), budget=budget, table="visits", **declared)


def people() -> Session:
    return opened()


def with_codes() -> Session:
    return opened(public={"codes": CODES}, max_matches={"codes": 1})


def twice() -> Session:
    return opened(dc.Row(), private={"copy": ROWS})


@cache
def honest(make: Callable[[], Session], question: str, profile: str) -> QuestionAudit:
    """What the audit says of ours, which is the same for all faults that are looked for in the same way."""
    return audited(make, question, profile)


def audited(make: Callable[[], Session], question: str, *profiles: str) -> QuestionAudit:
    with make() as session:
        [found] = audit_session(session, [question], runs=0, profiles=profiles).questions
    return found


FAULTS: list[tuple[Callable[[], Any], Callable[[], Session], str, str, str]] = [
    (statement_faults.names_as_analysts_give_them, with_codes, JOINED, "most", "(names)"),
    (sql_faults.objects_read_all_or_nothing, people, COUNT, OBJECTS, "(movement)"),
    (sql_faults.tables_taken_for_disjoint, twice, UNITED, "most", "(movement)"),
    (audit_faults.matches_joined_before_they_are_limited, with_codes, JOINED, "most", "(work)"),
    (audit_faults.searches_overheard_on_the_class, people, COUNT, "most", "(process)"),
    (audit_faults.sources_looked_at_once, people, COUNT, "most", "(sources)"),
    (audit_faults.failures_as_the_engine_tells_them, people, COUNT, "most", "(errors)"),
    (audit_faults.failures_with_their_cause, people, COUNT, "most", "(errors)"),
    (sql_faults.progress_as_it_comes, people, COUNT, "most", "(progress)"),
    (audit_faults.groups_stored_beside_the_answer, people, COUNT, "most", "(record)"),
    (sql_faults.progress_of_what_there_was_to_run, people, COUNT, "most", "(progress)"),
]


@pytest.mark.parametrize(
    ("fault", "make", "question", "profile", "check"), FAULTS, ids=[fault.__name__ for fault, *_ in FAULTS]
)
def test_the_audit_passes_ours_and_finds_the_fault(
    fault: Callable[[], Any], make: Callable[[], Session], question: str, profile: str, check: str
) -> None:
    ours = honest(make, question, profile)
    assert ours.passed, ours.faults
    assert ours.refused is None
    with planted(fault):
        found = audited(make, question, profile)
    assert any(check in each for each in found.faults), found.faults


def test_names_of_the_statement_itself_are_tried() -> None:
    with with_codes() as session:
        assert check_names(session, SQL(JOINED, 1)) == 2
        text = with_columns(JOINED, session._catalog, ['a"b'], 1)
        assert '1 AS "a""b" FROM "codes"' in text
        assert text.endswith('WHERE "codes"."a""b" = 1')
        assert check_names(session, SQL("SELECT nothing that is SQL (", 1)) == 0


@pytest.mark.parametrize(
    ("home", "name"),
    [
        (events.Event, "__repr__"),
        (units.Event, "__repr__"),
        (catalog.Column, "__post_init__"),
        (columns.Column, "__eq__"),
        (keys, "listed"),
        (secrets, "redacted"),
        (errors, "redacted"),
        (asked.Asked, "statement"),
        (dc.User, "__init__"),
    ],
)
def test_whatever_can_be_called_is_watched(home: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = ProcessWatch()
    watch.check()
    where = f"{home.__module__}.{home.__name__}" if isinstance(home, type) else home.__name__
    with monkeypatch.context() as replaced:
        replaced.setattr(home, name, lambda *given: None)
        with pytest.raises(AssertionError, match=rf"{where}\.{name} was replaced"):
            watch.check()
    watch.check()


def test_a_replaced_method_is_named() -> None:
    watch = ProcessWatch()
    watch.check()
    with (
        audit_faults.matches_joined_before_they_are_limited(),
        pytest.raises(AssertionError, match=r"Selection\._first was replaced"),
    ):
        watch.check()
    watch.check()

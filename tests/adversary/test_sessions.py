"""The audit of a session passes ours, reads no private row, and catches faults planted in it one at a time."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from tests.sql import faults
from tests.sql.faults import planted

import discreet as dc
from discreet.adversary.session_audit import neighbouring_tables as twins
from discreet.adversary.session_audit.audit import SessionAudit, audit_session, usual_questions
from discreet.adversary.session_audit.neighbouring_tables import PROFILES, Maker
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.decimals import Decimals
from discreet.sql.measuring import run
from discreet.sql.measuring.run import Run

COUNTS = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
SUMS = "SELECT city, SUM(cost) AS s FROM visits GROUP BY city"
SEVERAL = "SELECT city, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY city"
AGES = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
WIDE = {"values": {"city": [f"city {number}" for number in range(60)]}}
"""So many groups that noise is Gaussian."""
ROWS = {
    "who": np.array([1, 1, 2, 3]),
    "city": np.array(["Oslo", "Rome", "Oslo", "Lima"]),
    "cost": np.array([7.5, 3.25, 1.0, 2.0]),
    "age": np.array([31, 31, 42, 17]),
    "note": np.array(["", "7", "8", "x"]),
}


def opened(neighbours: str = "add_remove", **facts: Any) -> Session:
    given: dict[str, Any] = {"values": {"city": ["Oslo", "Rome"]}, "bounds": {"cost": (0, 10)}} | facts
    unit = dc.User("who", neighbours=neighbours)
    return dc.connect(ROWS, unit=unit, budget=dc.ApproxDP(3, "1e-6"), table="visits", **given)


def audited(question: str, *profiles: str, neighbours: str = "add_remove", runs: int = 0, **facts: Any) -> SessionAudit:
    with opened(neighbours, **facts) as session:
        return audit_session(session, [question], runs=runs, profiles=profiles or PROFILES)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_ours_passes_and_the_charge_is_used_up(neighbours):
    with opened(neighbours, max_rows=4) as session:
        found = audit_session(session, [SEVERAL, AGES], runs=0)
        assert session._ledger.head().sequence <= 2
    assert found.passed, str(found)
    assert all(one.strain > (0.9 if neighbours == "add_remove" else 0.4) for one in found.questions)


DECIMALS = [
    "SELECT SUM(price) AS s, AVG(price) AS a FROM visits",
    "SELECT SUM(price * price + 0.1) AS s FROM visits WHERE price > 0.05",
    "SELECT rate, COUNT(*) AS n FROM visits GROUP BY rate",
    "SELECT total, COUNT(*) AS n FROM visits GROUP BY total",
    "SELECT SUM(tax) AS s FROM visits JOIN taxes ON taxes.rate = visits.rate",
]


def test_tables_with_decimals_are_audited():
    kinds = {"price": (10, 2), "rate": (3, 2), "total": (38, 4)}
    made = {name: pa.array([Decimal(1)] * 4, pa.decimal128(*digits)) for name, digits in kinds.items()}
    taxes = pa.table({"rate": pa.array([Decimal("0.01"), Decimal("0.19")]), "tax": pa.array([Decimal("1.5"), None])})
    facts: dict[str, Any] = {"bounds": {"price": (0, 5)}, "values": {"rate": [0.01, 0.19]}, "table": "visits"}
    facts |= {"unit": dc.User("who"), "budget": dc.ApproxDP(3, "1e-6"), "public": {"taxes": taxes}}
    with dc.connect(pa.table({"who": [1, 1, 2, 3], **made}), **facts, max_matches={"taxes": 1}) as session:
        types = [column.type for column in session._catalog.table("visits").columns]
        assert types[1:] == ["decimal(10,2)", "decimal(3,2)", "decimal(38,4)"]
        found = audit_session(session, DECIMALS, runs=0, profiles=("most", "beyond", "nowhere else", "odd"))
    assert found.passed, str(found)
    assert all(one.refused is None and one.strain > 0.3 for one in found.questions), str(found)
    assert found.questions[0].strain > 0.9


def test_made_up_decimals_are_whole_units_between_the_ends_of_their_type():
    price = Column("price", Decimals.of(6, 2), Bounds(0, 5))
    maker = Maker(Catalog((Table("visits", (price,)),)), dc.Row(), {"price": [0.06, 7, math.nan, "x", 10**9]})
    assert [*map(str, maker._pool(price))] == ["0.06", "7.00", "9999.99", "5.00", "0.00", "2.50", "1.25"]
    odd = {str(value) for value in twins._odd(price)}
    assert odd == {"9999.99", "-9999.99", "0.01", "-0.01", "9999.98"}
    whole = Column("total", Decimals.of(38, 0))
    assert max(twins._odd(whole)) == 10**38 - 1
    assert 2**53 + 1 in twins._odd(whole)


def test_no_private_row_is_read():
    with opened() as session:
        session._engine.run = None
        assert audit_session(session, [COUNTS], runs=0, profiles=("most",)).passed


def test_a_refused_question_is_refused_alike():
    [one] = audited("SELECT who, cost FROM visits", "most").questions
    assert one.passed
    assert one.loss is None
    assert "Refused" in one.verdict


def test_a_question_that_the_budget_forbids_is_not_called_sound():
    with opened() as session:
        [one] = audit_session(session, [COUNTS], epsilon=4, runs=0, profiles=("most",)).questions
    assert one.passed
    assert one.refused is not None
    assert one.verdict.startswith("Refused")


@pytest.mark.parametrize(("kind", "ask"), [(Session, "sql"), (SQL, "bind")])
def test_refusals_that_follow_the_rows_are_caught(kind, ask):
    """In other words on a neighbour, or on one of the two only."""
    turns = count()

    def refusing(self, *arguments, **given):
        turn = next(turns)
        if ask == "bind" and turn % 2:
            return original(self, *arguments, **given)
        raise Unsupported("the question", f"it met {turn} rows", "ask another")

    original = getattr(kind, ask)
    with patch.object(kind, ask, refusing):
        [one] = audited(COUNTS, "most").questions
    assert not one.passed
    assert one.verdict.startswith("BROKEN")


def test_usual_questions_can_be_asked():
    with opened() as session:
        asked = usual_questions(session._catalog)
        assert len(asked) == 5
        for text in asked:
            session.price(text, epsilon=1)


def test_filters_let_made_up_rows_through():
    [one] = audited("SELECT COUNT(*) AS n FROM visits WHERE age = 35 AND city = 'Rome'", "most", "everywhere").questions
    assert one.strain > 0.1


def test_bad_arguments_are_named():
    with opened() as session:
        with pytest.raises(InvalidArgument, match="questions"):
            audit_session(session, [])
        with pytest.raises(InvalidArgument, match="profiles"):
            audit_session(session, [COUNTS], profiles=["heaviest"])


def failure_without_rows() -> Any:
    original = Run.release

    def release(self: Run) -> Any:
        if not self.groups.keys:
            raise ValueError("no rows")
        return original(self)

    return patch.object(Run, "release", release)


MUTANTS: list[tuple[Callable[[], Any], str, tuple[str, ...], dict[str, Any], str]] = [
    (faults.movement_halved, COUNTS, ("most",), {"max_rows": 4}, "movement"),
    (faults.weights_ignored, SUMS, ("most",), {}, "movement"),
    (faults.norm_forgets_groups, COUNTS, ("everywhere",), WIDE, "movement"),
    (faults.noise_of_one_share, SEVERAL, ("most",), WIDE, "movement"),
    (faults.values_not_clipped, SUMS, ("beyond",), {}, "movement"),
    (faults.search_told_half, COUNTS, ("most",), {}, "movement"),
    (faults.threshold_too_low, AGES, ("nowhere else",), {}, "movement"),
    (faults.exchange_counted_once, COUNTS, ("most",), {"max_rows": 4, "neighbours": "replace"}, "movement"),
    (faults.empty_groups_hidden, COUNTS, ("alone",), {}, "shape"),
    (faults.run_before_charge, COUNTS, ("most",), {}, "charge"),
    (faults.cheaper_than_quoted, COUNTS, ("most",), {}, "charge"),
    (failure_without_rows, COUNTS, ("alone",), {}, "shape"),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant[0].__name__)
def test_a_planted_fault_is_caught(mutant):
    fault, question, profiles, facts, check = mutant
    with planted(fault):
        found = audited(question, *profiles, **facts)
    assert not found.passed
    assert f"({check})" in found.questions[0].faults[0]


def test_an_error_on_a_value_is_caught():
    question = "SELECT COUNT(*) AS n FROM visits WHERE CAST(note AS INTEGER) > 3"
    assert audited(question, "odd").passed
    with planted(faults.error_on_a_value):
        assert "(shape)" in audited(question, "odd").questions[0].faults[0]


def test_noise_on_the_wrong_scale_is_caught_by_its_outputs():
    """Only the draws are wrong, a third of the noise that is stated and paid for: nothing before noise shows it."""
    draw = run.discrete_laplace
    runs = 3_000
    total = "SELECT COUNT(*) AS n FROM visits"
    assert audited(total, "most", runs=runs, max_rows=4).passed
    with patch.object(run, "discrete_laplace", lambda scale, *given, **more: draw(scale / 3, *given, **more)):
        found = audited(total, "most", runs=runs, max_rows=4)
    [one] = found.questions
    assert not one.faults
    assert one.audit is not None
    assert one.audit.refuted, str(one.audit)
    assert one.verdict.startswith("BROKEN")


def test_the_page_stands_alone_and_says_what_was_found():
    found = audited('SELECT COUNT(*) AS "<b>" FROM visits', "most", runs=200, max_rows=4)
    page = found.page()
    assert page.startswith("<!doctype html>")
    assert "http" not in page
    assert "<b>" not in page
    assert "Trade-off" in page
    assert found.as_record()["questions"][0]["passed"]


def test_a_session_in_rho_is_audited_with_gaussian_noise_and_its_faults_are_found():
    budget = dc.ZCDP(1)
    facts: dict[str, Any] = {"values": {"city": ["Oslo", "Rome"]}, "bounds": {"cost": (0, 10)}, "max_rows": 4}

    def found(runs: int = 0, **price: Any) -> Any:
        with dc.connect(ROWS, unit=dc.User("who"), budget=budget, table="visits", **facts) as session:
            [one] = audit_session(session, [SEVERAL], runs=runs, profiles=("most",), **price).questions
        return one

    honest = found(rho="0.5", runs=2000)
    assert honest.passed, honest.faults
    assert honest.strain > 0.9
    assert honest.loss == honest.audit.claim
    assert Fraction(49, 100) < honest.loss.rho <= Fraction(1, 2)
    assert found(epsilon="0.5").passed

    def faint(sigma: Fraction, size: int, *, entropy: Any) -> Any:
        return honest_noise(max(sigma / 20, Fraction(1)), size, entropy=entropy)

    honest_noise = run.discrete_gaussian
    with patch.object(run, "discrete_gaussian", faint):
        caught = found(rho="0.5", runs=2000)
    assert not caught.passed
    assert caught.audit.refuted
    for epsilon, rho in ((1, "0.5"), (None, 0)):
        with pytest.raises(InvalidArgument, match="rho"):
            found(epsilon=epsilon, rho=rho)


def test_rho_is_for_sessions_in_rho():
    with opened() as session, pytest.raises(InvalidArgument, match="not in ρ"):
        audit_session(session, [COUNTS], rho="0.5", runs=0)

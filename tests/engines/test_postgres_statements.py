"""Whole statements on PostgreSQL: neighbours with odd values look alike, and values next to the bounds give the same
totals as on DuckDB. What all engines have in common is in `test_contract.py`."""

import tempfile
from collections import Counter
from contextlib import closing
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg
import pytest
from tests.engines.contract import POSTGRESQL
from tests.engines.postgres_tables import create
from tests.ledger.servers import running
from tests.sql.generator import question
from tests.sql.worlds import World

import discreet as dc
from discreet.core.errors import DiscreetError
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.session.session import Session
from discreet.session.sql import SQL

QUESTIONS = 30


def asked(session: Session, text: str, epsilon: Any) -> Any:
    """The plan, or None where the question is refused."""
    try:
        return SQL(text, epsilon).bind(session._context).plan().decided
    except DiscreetError:
        return None


def totals(session: Session, planned: Any) -> Counter[tuple[Any, ...]]:
    rows = session._engine.run(planned.statement)
    return Counter(rows)


def test_neighbours_succeed_alike() -> None:
    """One unit's odd values never make a statement fail, and never change which statement it is."""
    world = next(World(seed) for seed in range(100) if not World(seed).tame and len(World(seed).data["visits"]) > 50)
    with (
        POSTGRESQL.session(world, world.data, "before") as before,
        POSTGRESQL.session(world, world.neighbour(0), "after") as after,
    ):
        for number in range(QUESTIONS):
            words = question(world, number)
            first, second = (asked(session, words.text, words.epsilon) for session in (before, after))
            assert (first is None) == (second is None)
            if first is not None:
                assert first.statement.replace('"before"', "") == second.statement.replace('"after"', "")
                totals(before, first)
                totals(after, second)


def test_odd_values_next_to_the_bounds_do_not_fail() -> None:
    """Products that are too small for doubles: values just beside the middle, squared, or divided into cells."""
    tiny = [5e-324, -5e-324, 1e-200, -1e-200, 1e-160, 0.0, -0.0, 50.0, 49.99999999999999, float("nan"), float("inf")]
    rows = [{"who": place, "x": value} for place, value in enumerate([*tiny, 1e308, -1e308, None])]
    create("tiny.visits", {"who": "int4", "x": "float8"}, rows)
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(100, "1e-6"), "max_rows": 3}
    data = {"who": np.arange(len(rows)), "x": np.array([np.nan if r["x"] is None else r["x"] for r in rows])}
    for bounds in ((0, 100), (-100, 100), (0, 10**12), (0, 10**300), (-(10**-9), 10**-9)):
        declared = facts | {"bounds": {"x": tuple(map(str, bounds))}, "table": "visits"}
        with (
            tempfile.TemporaryDirectory() as folder,
            dc.connect(data, **declared) as own,
            dc.connect(running().url(), **declared | {"table": "tiny.visits"}, ledger=f"{folder}/b") as there,
        ):
            for text in ("SUM(x)", "AVG(x)", "VARIANCE(x)", "MEDIAN(x)", "MAX(x * x)", "SUM(x / 3)", "MIN(EXP(x))"):
                question_text = f"SELECT {text} AS m FROM visits"
                planned, remote = (asked(session, question_text, 1) for session in (own, there))
                assert (planned is None) == (remote is None), text
                if planned is not None:
                    assert totals(own, planned) == totals(there, remote), (bounds, text)


def test_the_planner_sees_keys_as_they_are_stored() -> None:
    """A cast of a column has no statistics: ranges of keys are asked for without it."""
    create("stored.visits", {"who": "int4", "k": "int2"}, [{"who": i % 9, "k": i % 50} for i in range(1000)])
    running().execute("ANALYZE stored.visits")
    facts: dict[str, Any] = {"unit": "who", "budget": dc.ApproxDP(9, "1e-6"), "values": {"k": range(50)}}
    with tempfile.TemporaryDirectory() as folder:
        with dc.connect(running().url(), table="stored.visits", ledger=f"{folder}/b", **facts) as session:
            statement = session.price("SELECT k, COUNT(*) AS n FROM visits GROUP BY k", epsilon=1).statement
        with closing(psycopg.connect(running().url())) as connection:
            shown = "".join(line for (line,) in connection.execute(f"EXPLAIN {statement}".encode()))
    assert '"discreet stored k" BETWEEN 0 AND 49' in statement
    assert "rows=1000 " in shown


def test_the_planner_may_add_up_in_parallel() -> None:
    """Values are rounded once and added up by all processes: what keeps the two apart is not taken for a limit."""
    create("shared.visits", {"who": "int4", "k": "int4", "x": "float8"}, [{"who": 1, "k": 1, "x": 0.5}])
    running().execute("INSERT INTO shared.visits SELECT i % 90, i % 7, i % 13 FROM generate_series(1, 30000) AS i")
    running().execute("ANALYZE shared.visits")
    facts: dict[str, Any] = {"unit": "who", "budget": dc.ApproxDP(9, "1e-6"), "values": {"k": range(7)}}
    with (
        tempfile.TemporaryDirectory() as folder,
        dc.connect(
            running().url(), table="shared.visits", bounds={"x": (0, 20)}, ledger=f"{folder}/b", **facts
        ) as session,
        closing(psycopg.connect(running().url())) as connection,
    ):
        statement = session.price("SELECT k, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY k", epsilon=1).statement
        for setting in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            connection.execute(f"SET {setting} = 0".encode())
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {statement}".encode()))
    assert "OFFSET" in statement
    assert "Partial HashAggregate" in plan, plan


def planned_length(expression: str, levels: int) -> int:
    """How long the server's own plan is of a question on so many subqueries, each of which computes the expression."""
    rows = "visits"
    for _ in range(levels):
        rows = f"(SELECT who, {expression} AS y FROM {rows})"
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(100, "1e-6"), "bounds": {"y": (0, 50)}}
    with (
        tempfile.TemporaryDirectory() as folder,
        dc.connect(running().url(), table="nested.visits", **facts, ledger=f"{folder}/b") as session,
        closing(psycopg.connect(running().url(), autocommit=True)) as server,
    ):
        decided = SQL(f"SELECT SUM(CLAMP(y, 0, 10)) AS s FROM {rows}", 1).bind(session._context).plan().decided
        plan = server.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {decided.statement}").fetchall()
    return sum(len(line) for (line,) in plan)


@pytest.mark.parametrize(
    ("expression", "levels"), [("y + 1", 12), ("y / 3", 12), ("ROUND(y)", 12), ("y * y", 5), ("LN(y + 2)", 5)]
)
def test_plans_of_nested_subqueries_grow_with_their_number(expression: str, levels: int) -> None:
    """The server would write what a subquery computes wherever a query above it is written, nine times for y + 1."""
    create("nested.visits", {"who": "int4", "y": "float8"}, [{"who": 1, "y": 2.5}])
    one, two, many = (planned_length(expression, each) for each in (1, 2, levels))
    assert many - one < 1.3 * levels * (two - one) < 500_000
    if expression == "y + 1":
        with patch.object(PostgresDialect, "fence", ""):
            assert planned_length(expression, 3) > 1.3 * levels * (two - one)

"""Synthetic rows come from the same table of counts on every engine, whatever lies in the columns."""

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.engines import postgres_tables, spark_tables
from tests.ledger import servers

import discreet as dc
from discreet.session.session import Session
from discreet.synthesis.question import SyntheticRows

TYPES = {"who": pa.int64(), "town": pa.string(), "age": pa.int64(), "cost": pa.float64(), "day": pa.date32()}
ON_A_SERVER = {"who": "int8", "town": "text", "age": "int8", "cost": "float8", "day": "date"}
TOWNS = ["ä", "b", "'", None, "elsewhere", ""]
COSTS = [0.0, -0.0, 9.999, 10.0, 25.0, None, -1e300, 1e300, float("nan"), float("inf")]
ROWS: list[Mapping[str, Any]] = [
    {
        "who": None if place % 17 == 0 else place // 4,
        "town": TOWNS[place % 6],
        "age": None if place % 11 == 0 else place % 130 - 5,
        "cost": COSTS[place % 10],
        "day": datetime.date(1960 + place % 80, 1 + place % 12, 1),
    }
    for place in range(900)
]
FACTS: dict[str, Any] = {
    "table": "visits",
    "unit": dc.User("who"),
    "budget": dc.ApproxDP(6, "1e-6"),
    "bounds": {"age": (0, 120), "cost": (0, 30)},
    "values": {"town": ["ä", "b", "'", ""]},
}
REQUESTS: dict[str, tuple[Any, dict[str, int]]] = {
    "whole numbers": (["town", "age"], {"age": 6}),
    "reals": (["town", "cost"], {"cost": 4}),
    "a SELECT": ("SELECT town, age + 1 AS a, cost FROM visits WHERE day < DATE '2000-01-01'", {"a": 5, "cost": 4}),
}


@contextmanager
def opened(engine: str, ledger: Any) -> Iterator[Session]:
    facts = FACTS | {"ledger": ledger}
    if engine == "postgres":
        postgres_tables.create("ward.visits", ON_A_SERVER, ROWS)
        session = dc.connect(servers.running().url(), **(facts | {"table": "ward.visits"}))
    elif engine == "spark":
        session = dc.connect(spark_tables.frame(TYPES, ROWS), **facts)
    else:
        session = dc.connect(pa.table({name: [row[name] for row in ROWS] for name in TYPES}, pa.schema(TYPES)), **facts)
    with session:
        yield session


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The counts of DuckDB, for each request and limit."""
    with opened("duckdb", tmp_path_factory.mktemp("duckdb") / "books") as session:
        return counts(session)


def counts(session: Session) -> dict[str, Any]:
    found = {}
    for name, (what, bins) in REQUESTS.items():
        for limit in (None, 2):
            asked = SyntheticRows(what, 1, None, None, bins, limit, 0).bind(session._context).request
            found[f"{name} of at most {limit}"] = asked.histogram(session._engine)
    return found


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_counts_are_the_same_on_every_engine(engine: str, expected: dict[str, Any], tmp_path: Any) -> None:
    with opened(engine, tmp_path / "books") as session:
        found = counts(session)
        made = session.synthesize(["town", "age"], epsilon=3)
    assert found.keys() == expected.keys()
    for name, cells in expected.items():
        assert cells.sum() > 0
        assert np.array_equal(found[name], cells), name
    assert {*made.table.columns["town"]} <= {"ä", "b", "'", ""}
    assert all(0 <= age <= 120 for age in made.table.columns["age"])
    assert made.loss.epsilon <= 3

"""A table and a view of it on a server: at row level one row moves a question over both no further than its noise."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.attacks.sql_neighbours import Exact, exact, strain
from tests.engines.postgres_tables import create
from tests.engines.spark_tables import frame
from tests.engines.spark_tables import running as spark
from tests.ledger.servers import running as server

import discreet as dc

UNITED = "(SELECT x, s FROM visits UNION ALL SELECT x, s FROM grown) AS u"
QUESTIONS = [
    f"SELECT COUNT(*) AS n, SUM(x) AS a FROM {UNITED}",
    f"SELECT s, COUNT(*) AS n, AVG(x) AS a, MEDIAN(x) AS m FROM {UNITED} GROUP BY s",
]


def rows(last: bool) -> list[dict[str, Any]]:
    plain = [{"x": float(i % 4), "s": "pq"[i % 2]} for i in range(40)]
    return [*plain, {"x": 10.0, "s": "q"}] if last else plain


def on_postgres(last: bool) -> str:
    create("copies.visits", {"x": "float8", "s": "text"}, rows(last))
    server().execute("CREATE VIEW copies.grown AS SELECT * FROM copies.visits")
    return server().url()


def on_spark(last: bool) -> Any:
    spark().sql("CREATE DATABASE IF NOT EXISTS copies")
    frame({"x": pa.float64(), "s": pa.string()}, rows(last)).write.mode("overwrite").saveAsTable("copies.visits")
    spark().sql("CREATE OR REPLACE VIEW copies.grown AS SELECT * FROM copies.visits")
    return spark()


def asked(engine: Any, last: bool, folder: Path) -> list[Exact]:
    facts: dict[str, Any] = {"unit": dc.Row(), "budget": dc.ApproxDP(50, "1e-6"), "table": "copies.visits"}
    facts |= {"bounds": {"x": (0, 10), "grown.x": (0, 10)}, "values": {"s": ["p", "q"], "grown.s": ["p", "q"]}}
    books = folder / f"{last} books"
    with dc.connect(engine(last), private={"grown": "copies.grown"}, ledger=books, **facts) as session:
        return [exact(session, question) for question in QUESTIONS]


@pytest.mark.parametrize("engine", [on_postgres, on_spark])
def test_a_row_that_a_view_shows_again_moves_no_more_than_its_noise(engine: Any, tmp_path: Path) -> None:
    for before, after in zip(*(asked(engine, last, tmp_path) for last in (False, True)), strict=True):
        assert before.measurement == after.measurement
        assert before.measurement.copies == 2
        assert 0.3 < strain(before, after) <= 1 + 1e-9

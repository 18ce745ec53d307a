"""Spark on a cluster of its own, with an executor in another process, over Spark Connect."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession
from tests.app.commands import Commands
from tests.engines.spark_cluster import cluster

import discreet as dc
from discreet.core.errors import EngineUnavailable

SLOW = "SELECT SUM(a.id * b.id % 7) FROM RANGE(1000000) AS a CROSS JOIN RANGE(1000000) AS b"


def test_a_cluster_over_spark_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked, cancelled and lost."""
    # By default every client waits ten minutes for a server to come back: the last time when its process ends.
    monkeypatch.setattr("pyspark.sql.connect.client.core.DefaultPolicy", partial(DefaultPolicy, max_retries=2))
    with cluster(tmp_path) as (address, server):
        session = SparkSession.builder.remote(address).create()
        session.createDataFrame(
            pa.table({"patient": list(range(600)), "age": [i % 90 for i in range(600)]})
        ).write.parquet(str(tmp_path / "visits"))
        session.sql(f"CREATE TABLE visits USING parquet LOCATION '{tmp_path / 'visits'}'")
        declared: dict[str, Any] = {"table": "visits", "unit": "patient", "budget": dc.ApproxDP(20, "1e-6")}
        declared |= {"bounds": {"age": (0, 120)}, "ledger": tmp_path / "books"}
        told = Commands(tmp_path)
        told("init", address, "--table", "visits", "--unit", "patient", "--epsilon", "9", "--ledger", "of.commands")
        assert abs(told.json("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "5")["rows"][0][0] - 600) < 30
        with dc.connect(session, **declared) as asked:
            assert abs(asked.sql("SELECT COUNT(*) AS n FROM visits", epsilon=5).rows[0][0] - 600) < 30
            engine: Any = asked._engine
            honest = engine.run
            begun = threading.Event()

            def slowly(statement: str) -> Any:
                begun.set()
                return honest(SLOW)

            engine.run = slowly
            with again_and_again(engine.cancel, begun), pytest.raises(KeyboardInterrupt):
                asked.sql("SELECT AVG(age) AS a FROM visits", epsilon=1)
            with again_and_again(server.kill, begun), pytest.raises(EngineUnavailable, match="was lost"):
                asked.sql("SELECT AVG(age) AS a FROM visits", epsilon=1)
            with pytest.raises(EngineUnavailable, match="was lost"):
                asked.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 3", epsilon=1)


@contextmanager
def again_and_again(task: Callable[[], object], begun: threading.Event) -> Iterator[None]:
    """A task that another thread does three times a second once it has begun: the first times may be too early."""
    begun.clear()
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(0.3):
            if begun.is_set():
                task()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

"""SmartNoise SQL on DuckDB: so many rows of each user, sampled; Laplace noise, half of ε for counts, half for sums."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import duckdb
from protocol import DELTA, EPSILON, Rows, serve
from snsql import Privacy, from_connection

warnings.filterwarnings("ignore")

STATISTICS = 2


class Cursor:
    """A DuckDB connection as the reader expects one: without transactions, with rows to iterate over."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def cursor(self) -> Cursor:
        """Itself."""
        return self

    def commit(self) -> None:
        """Nothing to do: questions change nothing."""

    rollback = commit

    def execute(self, query: str) -> None:
        """Run a query."""
        self.connection.execute(query)

    @property
    def description(self) -> Any:
        """The columns."""
        return self.connection.description

    def __iter__(self) -> Any:
        return iter(self.connection.fetchall())


def reader(table: str, limit: int, epsilon: float) -> Any:
    """DuckDB speaks enough of Postgres' dialect to stand in for it."""
    connection = duckdb.connect()
    connection.execute(f"CREATE SCHEMA s; CREATE VIEW s.t AS SELECT * FROM read_parquet('{table}')")
    columns = {
        "u": {"type": "int", "private_id": True},
        "k": {"type": "int"},
        "v": {"type": "float", "lower": 0.0, "upper": 100.0},
    }
    facts = {"max_ids": limit, "censor_dims": False, "sample_max_ids": True, "clamp_counts": False, "rows": 10**7}
    metadata = {"": {"s": {"t": {**facts, **columns}}}}
    return from_connection(
        Cursor(connection), engine="postgres", metadata=metadata, privacy=Privacy(epsilon=epsilon, delta=DELTA)
    )


def prepare(table: str, limits: list[int]) -> Callable[[], Rows]:
    """The mean is their own ratio."""
    private = reader(table, limits[0], EPSILON / STATISTICS)
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM s.t GROUP BY k"
    return lambda: private.execute(query)[1:]


def latency(table: str) -> Callable[[int], object]:
    """A count by ten keys."""
    private = reader(table, 10, EPSILON)
    return lambda i: private.execute(f"SELECT k, COUNT(*) AS n FROM s.t WHERE v < {50 + i / 10} GROUP BY k")


if __name__ == "__main__":
    serve(prepare, latency)

"""DuckDB without privacy, on the same file: the floors.

The first limit chooses the query: 0 sums rows by key; 1 and 2 weigh users down to a norm, as a person would write it
(sums by user and key, norms by user, joined) and in the way that was found to be fastest (norms first, then rows).
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb
from protocol import Rows, serve

WEIGHT = "LEAST(1, 10.0 / SQRT(SUM(n * n))) AS w"
QUERIES = [
    "SELECT k, COUNT(*), SUM(v), AVG(v) FROM t GROUP BY k",
    "WITH p AS (SELECT u, k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY u, k), "
    f"q AS (SELECT u, {WEIGHT} FROM p GROUP BY u) "
    "SELECT k, SUM(n * w), SUM(s * w), SUM(s * w) / SUM(n * w) FROM p JOIN q USING (u) GROUP BY k",
    f"WITH q AS (SELECT u, {WEIGHT} FROM (SELECT u, k, COUNT(*) AS n FROM t GROUP BY u, k) GROUP BY u) "
    "SELECT k, SUM(w), SUM(v * w), SUM(v * w) / SUM(w) FROM t JOIN q USING (u) GROUP BY k",
]


def opened(table: str) -> duckdb.DuckDBPyConnection:
    """A connection that knows the table."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{table}')")
    return connection


def prepare(table: str, limits: list[int]) -> Callable[[], Rows]:
    """One of the floors."""
    connection = opened(table)
    return lambda: connection.execute(QUERIES[limits[0]]).fetchall()


def latency(table: str) -> Callable[[int], object]:
    """A count by ten keys."""
    connection = opened(table)
    return lambda i: connection.execute(f"SELECT k, COUNT(*) FROM t WHERE v < {50 + i / 10} GROUP BY k").fetchall()


if __name__ == "__main__":
    duckdb.sql("SELECT i % 10 AS k, COUNT(*) FROM range(100) AS r(i) GROUP BY k").fetchall()
    serve(prepare, latency)

"""Qrlew: the question rewritten to SQL that bounds and adds (floating-point) noise, run by DuckDB.

It takes about a hundred values of a key as public and no more: the thousand keys are selected, with half of the budget.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import duckdb
import pyqrlew
import sqlalchemy
from protocol import BOUNDS, DELTA, EPSILON, KEYS, SMALL_KEYS, Rows, serve

USERS = (0, 2_000_000)


def opened(table: str) -> tuple[duckdb.DuckDBPyConnection, int]:
    """A connection that knows the table, and its size, which is public here."""
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{table}')")
    found = connection.execute("SELECT COUNT(*) FROM t").fetchone()
    return connection, found[0] if found else 0


def dataset(rows: int, keys: list[int]) -> pyqrlew.Dataset:
    """The schema, read off an empty table, with size and ranges declared."""
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.begin() as empty:
        empty.execute(sqlalchemy.text("CREATE TABLE t (u INTEGER NOT NULL, k INTEGER NOT NULL, v DOUBLE NOT NULL)"))
    read = pyqrlew.dataset_from_database("bench", engine)
    size = json.loads(read.size)
    size["statistics"]["union"]["fields"][0]["statistics"]["struct"]["size"] = str(rows)
    described = str(read).split("Dataset: ", 1)[1].split("\nSchema: ", 1)[0]
    sized = pyqrlew.Dataset.from_str(described, read.schema, json.dumps(size))
    sized = sized.with_range(None, "t", "u", *USERS).with_range(None, "t", "k", min(keys), max(keys))
    return sized.with_range(None, "t", "v", *BOUNDS)


def rewritten(known: pyqrlew.Dataset, query: str, groups: int, rows: int) -> str:
    """SQL whose result is private for users who may be in so many groups with so many rows."""
    private = known.relation(query).rewrite_with_differential_privacy(
        known,
        ([("t", [], "u")], False),
        {"epsilon": EPSILON, "delta": DELTA},
        max_multiplicity=float(rows),
        max_multiplicity_share=1.0,
        max_privacy_unit_groups=groups,
    )
    return str(private.relation().to_query(pyqrlew.Dialect.PostgreSql))


def prepare(table: str, limits: list[int]) -> Callable[[], Rows]:
    """The mean is their own ratio."""
    connection, rows = opened(table)
    known = dataset(rows, KEYS)
    query = "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM t GROUP BY k"
    return lambda: connection.execute(rewritten(known, query, *limits)).fetchall()


def latency(table: str) -> Callable[[int], object]:
    """A count by ten keys, which are public when they are listed."""
    connection, rows = opened(table)
    known = dataset(rows, SMALL_KEYS)
    listed = ", ".join(map(str, SMALL_KEYS))

    def ask(i: int) -> object:
        query = f"SELECT k, COUNT(*) AS n FROM t WHERE k IN ({listed}) AND v < {50 + i / 10} GROUP BY k"
        return connection.execute(rewritten(known, query, 10, 10)).fetchall()

    return ask


if __name__ == "__main__":
    serve(prepare, latency)

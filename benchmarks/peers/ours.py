"""discreet: the first limit is 0 at row level and 1 at user level. The books are on disk; every charge is durable."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from protocol import BOUNDS, DELTA, EPSILON, KEYS, SMALL_KEYS, Rows, serve

import discreet

QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM t GROUP BY k"


def opened(table: str, keys: list[int], user: bool, epsilon: float) -> discreet.Session:
    """A session with books of its own."""
    return discreet.connect(
        table,
        table="t",
        unit=discreet.User("u") if user else discreet.Row(),
        budget=discreet.ApproxDP(str(epsilon), str(DELTA)),
        values={"k": keys},
        bounds={"v": BOUNDS},
        ledger=Path(tempfile.mkdtemp(prefix="discreet-bench-")) / "ledger.db",
    )


def prepare(table: str, limits: list[int]) -> Callable[[], Rows]:
    """The whole budget on the first question of a session."""
    session = opened(table, KEYS, bool(limits[0]), EPSILON)
    return lambda: session.sql(QUERY, epsilon=str(EPSILON)).rows


def latency(table: str) -> Callable[[int], object]:
    """A count by ten keys, each a question of its own, charged on disk."""
    session = opened(table, SMALL_KEYS, True, 100)
    return lambda i: session.sql(f"SELECT k, COUNT(*) AS n FROM t WHERE v < {50 + i / 10} GROUP BY k", epsilon="0.1")


def warm_up() -> None:
    """Load everything that is loaded on first use, by a question about another table."""
    rows = {"u": np.arange(100), "k": np.arange(100) % 10, "v": np.zeros(100)}
    for unit in (discreet.User("u"), discreet.Row()):
        facts = {"values": {"k": SMALL_KEYS}, "bounds": {"v": BOUNDS}, "budget": discreet.ApproxDP(1, str(DELTA))}
        with discreet.connect(rows, table="t", unit=unit, **facts) as session:
            session.sql(QUERY, epsilon=str(EPSILON))


if __name__ == "__main__":
    warm_up()
    serve(prepare, latency)

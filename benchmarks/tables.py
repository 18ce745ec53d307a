"""The tables that the SQL benchmarks ask about: Parquet files, the same on every run.

    python benchmarks/tables.py [rows]

Columns u (a user), k (a key from 1 to 1,000) and v (a value, 0 to 100; its mean falls from 67 to 40 along the keys).
`even`: users and keys are uniform. `heavy`: the user is ⌊10^(6h)⌋ for a uniform h, Zipf's law with exponent 1, so that
one user has a twentieth of the rows; keys are ⌊1000·h^1.5⌋ + 1, so that the first has one row in a hundred and the last
one in fifteen hundred. The uniform numbers are hashes of the row's number.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Literal

import duckdb

Shape = Literal["even", "heavy"]

USERS = 10**6
KEYS = 1000
VALUES = (0, 100)
CACHE = Path(os.environ.get("DISCREET_BENCH_CACHE") or Path(tempfile.gettempdir()) / "discreet-bench")
ROWS = int(float(os.environ.get("DISCREET_BENCH_ROWS") or 10**7))

_COLUMNS = {
    "even": (f"1 + FLOOR({USERS} * h1)", f"1 + FLOOR({KEYS} * h2)"),
    "heavy": (f"FLOOR(POW({USERS}, h1))", f"1 + FLOOR({KEYS} * POW(h2, 1.5))"),
}


def _uniform(salt: int) -> str:
    return f"(hash(i * 8 + {salt}) >> 11) / 9007199254740992.0"


def table(shape: Shape, rows: int = ROWS) -> Path:
    """The path of the table, written if it is not there yet."""
    path = CACHE / "tables" / f"{shape}_{rows}.parquet"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    user, key = _COLUMNS[shape]
    draws = ", ".join(f"{_uniform(salt)} AS h{salt}" for salt in (1, 2, 3))
    uniform = f"SELECT {draws} FROM range({rows}) AS r(i)"
    drawn = f"SELECT CAST({user} AS INTEGER) AS u, CAST({key} AS INTEGER) AS k, h3 FROM ({uniform})"
    unfinished = path.with_suffix(".unfinished")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT u, k, {VALUES[1]} * POW(h3, 0.5 + k / {KEYS}.0) AS v FROM ({drawn})) "
            f"TO '{unfinished}' (FORMAT parquet)"
        )
    unfinished.rename(path)
    return path


def small_table() -> Path:
    """A thousand rows, a hundred users, ten keys: for latency."""
    path = CACHE / "tables" / "small.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT CAST(1 + i % 100 AS INTEGER) AS u, CAST(1 + (i * 7 + i // 100) % 10 AS INTEGER) AS k, "
                f"100 * {_uniform(3)} AS v FROM range(1000) AS r(i)) TO '{path}' (FORMAT parquet)"
            )
    return path


def truth(path: Path) -> dict[int, tuple[float, float, float]]:
    """Count, sum and mean of every key."""
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT k, COUNT(*), SUM(v), AVG(v) FROM '{path}' GROUP BY k").fetchall()
    return {int(k): (float(n), float(s), float(m)) for k, n, s, m in rows}


def main() -> None:
    """Write both tables and say what they are like."""
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS
    for shape in ("even", "heavy"):
        path = table(shape, rows)
        with duckdb.connect() as connection:
            facts = connection.execute(
                f"SELECT COUNT(DISTINCT u), MAX(c), (SELECT COUNT(*) FROM (SELECT DISTINCT u, k FROM '{path}')) "
                f"FROM (SELECT u, COUNT(*) AS c FROM '{path}' GROUP BY u)"
            ).fetchone()
        users, most, pairs = facts or (0, 0, 0)
        print(f"{path}: {path.stat().st_size / 1e6:.0f} MB, {users:,} users, at most {most:,} rows, {pairs:,} (u, k)")


if __name__ == "__main__":
    main()

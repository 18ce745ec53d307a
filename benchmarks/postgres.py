"""Private SQL on a PostgreSQL server beside the same two-level aggregation without privacy: time, in one run.

    python benchmarks/postgres.py [--rows 1e7] [--rounds 3] [--questions all,units] [--shapes even,heavy]

The tables of `tables.py`, a million users and a thousand keys, in a server of its own that ends with the run. The floor
is what a person would write who bounds every user alike: rows by user and key, norms by user, joined, summed by key. It
runs with and without compiling, and the faster counts. Our time is that of the whole question: plan, charge on disk,
statement, noise, store. The processor's seconds are those of the server's processes; they are steadier on a busy
machine. Ratios are of the clock.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg

import discreet as dc
from tables import KEYS, ROWS, VALUES, Shape, table

sys.path.append(str(Path(__file__).parent.parent / "tests" / "ledger"))
from servers import Server

WANTED = 1.5
PARTS = 1 << 20
PATIENCE = 3.0
"""Seconds that a session may take to end."""
SHAPES: tuple[Shape, ...] = ("even", "heavy")
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "fsync": "off", "autovacuum": "off"}


@dataclass(frozen=True)
class Question:
    """A question, and the same aggregation without privacy."""

    private: str
    by_user: str
    norm: str
    weighed: str
    keyed: bool = True

    def floor(self, name: str) -> str:
        """The plain SQL."""
        keys, key = (["u", "k"], ["k"]) if self.keyed else (["u"], [])
        pairs = f"SELECT {', '.join([*keys, self.by_user])} FROM {name} GROUP BY {', '.join(keys)}"
        weights = f"SELECT u, LEAST(1, float8 '10' / {self.norm}) AS w FROM p GROUP BY u"
        if not self.keyed:
            return f"SELECT {self.weighed} FROM (SELECT *, LEAST(1, float8 '10' / n) AS w FROM ({pairs}) AS i) AS p"
        shown = ", ".join([*key, self.weighed])
        return f"WITH p AS ({pairs}), q AS ({weights}) SELECT {shown} FROM p JOIN q USING (u) GROUP BY k"


L2 = "SQRT(SUM(CAST(n AS FLOAT8) * n))"
BOTH = "COUNT(*) AS n, SUM(v) AS s"
QUESTIONS = {
    "counts": Question("SELECT k, COUNT(*) AS n FROM {} GROUP BY k", "COUNT(*) AS n", L2, "SUM(n * w)"),
    "sums": Question("SELECT k, SUM(v) AS s FROM {} GROUP BY k", BOTH, L2, "SUM(s * w)"),
    "averages": Question("SELECT k, AVG(v) AS m FROM {} GROUP BY k", BOTH, L2, "SUM(s * w) / SUM(n * w)"),
    "all": Question(
        "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM {} GROUP BY k",
        BOTH,
        L2,
        "SUM(n * w), SUM(s * w), SUM(s * w) / SUM(n * w)",
    ),
    "units": Question("SELECT k, COUNT(DISTINCT u) AS n FROM {} GROUP BY k", "1 AS n", "SQRT(COUNT(*))", "SUM(w) AS n"),
    "one count": Question("SELECT COUNT(*) AS n FROM {}", "COUNT(*) AS n", "n", "SUM(n * w)", keyed=False),
}


class Loaded(Server):
    """A server with tables to ask about."""

    def cpu(self) -> float:
        """Seconds of the processor that the server took so far, once all sessions have ended: then theirs count."""
        process = (self._data / "postmaster.pid").read_text().splitlines()[0]
        end = time.monotonic() + PATIENCE
        while _sessions(process) and time.monotonic() < end:
            time.sleep(0.01)
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def load(self, name: str, path: Path) -> None:
        """A table from a Parquet file."""
        with psycopg.connect(self.url(), autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE UNLOGGED TABLE {name} (u int4, k int4, v float8)".encode())
            with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
                rows = Path(folder) / "rows.csv"
                duckdb.connect().execute(f"COPY (SELECT u, k, v FROM '{path}') TO '{rows}' (HEADER false)")
                with rows.open("rb") as file, cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv)".encode()) as copy:
                    while block := file.read(PARTS):
                        copy.write(block)
            cursor.execute(f"VACUUM ANALYZE {name}".encode())


def _sessions(process: str) -> int:
    """How many clients a server has, with those that just ended and have no name any more."""
    found = 0
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        with suppress(OSError):
            name = Path(f"/proc/{child}/cmdline").read_bytes()
            found += not name or b"postgres: postgres" in name
    return found


@contextmanager
def serving() -> Iterator[Loaded]:
    """A server while the block runs."""
    server = Loaded(Path(tempfile.gettempdir()))
    try:
        server.stop()
        server.start(**SETTINGS)
        yield server
    finally:
        server.remove()


@dataclass
class Best:
    """The fastest of several runs, by the clock and by the server's processors."""

    clock: float = float("inf")
    cpu: float = float("inf")

    def run(self, server: Loaded, task: Callable[[], object]) -> None:
        """Once more; the task ends its connection, so that its time is counted."""
        before, start = server.cpu(), time.perf_counter()
        task()
        self.clock = min(self.clock, time.perf_counter() - start)
        self.cpu = min(self.cpu, server.cpu() - before)


def plain(server: Loaded, statement: str, settings: tuple[str, ...]) -> None:
    """Without privacy."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for setting in settings:
            connection.execute(setting.encode())
        connection.execute(statement.encode()).fetchall()


def private(server: Loaded, name: str, text: str, folder: Path) -> None:
    """The whole question, in a session with books of its own."""
    with dc.connect(
        server.url(),
        table=name,
        unit=dc.User("u"),
        budget=dc.ApproxDP(1, "1e-6"),
        values={"k": range(1, KEYS + 1)},
        bounds={"v": VALUES},
        ledger=folder / f"{time.monotonic_ns()}.ledger",
    ) as session:
        session.sql(text.format(name), epsilon=1)


def compared(server: Loaded, name: str, question: Question, rounds: int) -> tuple[Best, Best]:
    """The floor and ours, taken in turn."""
    floor, ours = Best(), Best()
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
        for _ in range(rounds):
            for settings in ((), ("SET jit = off",)):
                floor.run(server, lambda settings=settings: plain(server, question.floor(name), settings))
            ours.run(server, lambda: private(server, name, question.private, Path(folder)))
    return floor, ours


def main() -> None:
    """Everything, or what the arguments ask for."""
    parser = argparse.ArgumentParser(description="Private SQL on PostgreSQL beside plain SQL.")
    parser.add_argument("--rows", type=float, default=ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", default=",".join(QUESTIONS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    asked = parser.parse_args()
    rows = int(asked.rows)
    print(f"PostgreSQL, {rows:,} rows; seconds by the clock and of the server's processors; wanted ≤ {WANTED}×")
    with serving() as server:
        for shape in [one for one in SHAPES if one in asked.shapes.split(",")]:
            server.load(shape, table(shape, rows))
            for name in asked.questions.split(","):
                floor, ours = compared(server, shape, QUESTIONS[name], asked.rounds)
                print(
                    f"  {shape:6s}{name:10s} floor {floor.clock:7.2f} s {floor.cpu:7.2f} s"
                    f"   discreet {ours.clock:7.2f} s {ours.cpu:7.2f} s   {ours.clock / floor.clock:5.2f}×"
                    f"  ({ours.cpu / floor.cpu:.2f}× of the processor)",
                    flush=True,
                )


if __name__ == "__main__":
    main()

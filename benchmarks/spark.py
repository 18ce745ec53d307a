"""Private SQL on Spark beside the same two-level aggregation without privacy: time and memory, in one run.

    python benchmarks/spark.py [--rows 1e7] [--rounds 3] [--shapes even,heavy] [--memory 1g] [--large] [--peers]

The tables of `tables.py`, a million users and a thousand keys, as Parquet files, on Spark in this machine with two
threads. The floors are what a person would write who bounds every user alike: rows by user and key, norms by user,
joined, summed by key; and the same with a window over users, for whom Spark sends rows once only. Our time is that of
the whole question: plan, charge on disk, statement, noise, store. The processor's seconds are those of Java; they are
steadier on a busy machine. Ratios are of the clock. All runs share one heap of `--memory`, and the most memory that the
process had is shown at the end.

--large asks about ten times the rows too, and says how far the time is from ten times as long. --peers asks Tumult
Analytics, in an environment of its own (`peers/`), about a tenth of the rows, and us beside it: both with the number of
partitions that Spark has by itself, and both with one that suits so few rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import discreet as dc
from peers.installation import HERE, PEERS
from tables import KEYS, ROWS, VALUES, Shape, table

WANTED, FASTER, LINEAR = 1.5, 20, 0.15
SHAPES: tuple[Shape, ...] = ("even", "heavy")
QUESTION = "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM t GROUP BY k"
SHOWN = "k, SUM(n * w), SUM(s * w), SUM(s * w) / SUM(n * w)"
PAIRS = "SELECT u, k, COUNT(*) AS n, SUM(v) AS s FROM {} GROUP BY u, k"
FLOORS = {
    "joined": f"WITH p AS ({PAIRS.format('t')}), "
    "q AS (SELECT u, LEAST(1, 10 / SQRT(SUM(n * n))) AS w FROM p GROUP BY u) "
    f"SELECT {SHOWN} FROM p JOIN q USING (u) GROUP BY k",
    "window": f"SELECT {SHOWN} FROM (SELECT *, LEAST(1, 10 / SQRT(SUM(n * n) OVER (PARTITION BY u))) AS w FROM "
    f"({PAIRS.format('(SELECT * FROM t DISTRIBUTE BY u)')})) GROUP BY k",
}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "24",
}
PARTITIONS = (200, 4)
"""Those of Spark by itself, and few."""
PEER = next(peer for peer in PEERS if peer.name == "tumult")


def started(memory: str) -> SparkSession:
    """Spark with two threads and so much memory."""
    builder = SparkSession.builder.master("local[2]").appName("discreet").config("spark.driver.memory", memory)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Java:
    """The process that Spark runs in."""

    def __init__(self, session: SparkSession) -> None:
        gateway: Any = session.sparkContext._jvm
        self._folder = Path(f"/proc/{gateway.java.lang.ProcessHandle.current().pid()}")

    def cpu(self) -> float:
        """Seconds of the processor so far."""
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def peak(self) -> float:
        """The most megabytes so far."""
        said = dict(line.split(":", 1) for line in (self._folder / "status").read_text().splitlines())
        return int(said["VmHWM"].split()[0]) / 1024


@dataclass
class Best:
    """The fastest of several runs, by the clock and by Java's processors."""

    clock: float = float("inf")
    cpu: float = float("inf")

    def run(self, java: Java, task: Callable[[], object]) -> None:
        """Once more."""
        before, start = java.cpu(), time.perf_counter()
        task()
        self.clock = min(self.clock, time.perf_counter() - start)
        self.cpu = min(self.cpu, java.cpu() - before)


def private(frame: Any, folder: Path) -> None:
    """The whole question, in a session with books of its own."""
    with dc.connect(
        frame,
        table="t",
        unit=dc.User("u"),
        budget=dc.ApproxDP(1, "1e-6"),
        values={"k": range(1, KEYS + 1)},
        bounds={"v": VALUES},
        ledger=folder / f"{time.monotonic_ns()}.ledger",
    ) as session:
        session.sql(QUESTION, epsilon=1)


def compared(session: SparkSession, path: Path, rounds: int, floors: bool = True) -> dict[str, Best]:
    """The floors and ours, taken in turn."""
    java = Java(session)
    frame = session.read.parquet(f"file://{path}")
    frame.createOrReplaceTempView("t")
    best = {name: Best() for name in (*(FLOORS if floors else ()), "discreet")}
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
        for _ in range(rounds):
            for name, one in best.items():
                if name in FLOORS:
                    one.run(java, lambda name=name: session.sql(FLOORS[name]).toArrow())
                else:
                    one.run(java, lambda: private(frame, Path(folder)))
    return best


def peer_seconds(path: Path, partitions: int, rounds: int) -> float | None:
    """Tumult Analytics' fastest answer to the same question, with the limits that suit it; None if it cannot be had."""
    if PEER.install() is not None:
        return None
    seconds = []
    for limits in PEER.settings:
        task = {"kind": "by_key", "table": str(path), "limits": limits, "rounds": rounds}
        command = [str(PEER.python), str(HERE / PEER.script)]
        with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
            ran = subprocess.run(
                command,
                input=json.dumps(task),
                env=os.environ | {"PARTITIONS": str(partitions)},
                capture_output=True,
                text=True,
                check=False,
                cwd=folder,
            )
        if ran.returncode == 0:
            seconds.append(float(json.loads(ran.stdout.splitlines()[-1])["seconds"]))
    return min(seconds, default=None)


def main() -> None:
    """Everything, or what the arguments ask for."""
    parser = argparse.ArgumentParser(description="Private SQL on Spark beside plain SQL.")
    parser.add_argument("--rows", type=float, default=ROWS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--memory", default="1g")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--peers", action="store_true")
    asked = parser.parse_args()
    rows = int(asked.rows)
    session = started(asked.memory)
    print(f"Spark {session.version}, {rows:,} rows; seconds by the clock and of the processors; wanted ≤ {WANTED}×")
    times: dict[Shape, float] = {}
    shapes = [shape for shape in SHAPES if shape in asked.shapes.split(",")]
    for shape in shapes:
        best = compared(session, table(shape, rows), asked.rounds)
        times[shape] = best["discreet"].clock
        for name, one in best.items():
            ratios = [f"{best['discreet'].clock / best[floor].clock:.2f}× {floor}" for floor in FLOORS]
            ratios += [f"{best['discreet'].cpu / best['joined'].cpu:.2f}× of its processor seconds"]
            said = "  " + ", ".join(ratios) if name == "discreet" else ""
            print(f"  {shape:6s}{name:10s}{one.clock:8.2f} s{one.cpu:8.2f} s{said}", flush=True)
    if asked.large:
        for shape in shapes:
            one = compared(session, table(shape, 10 * rows), 1, floors=False)["discreet"]
            off = one.clock / (10 * times[shape]) - 1
            said = f"  {off:+.0%} of linear; wanted ≤ {LINEAR:.0%}"
            print(f"  {shape:6s}{10 * rows:,} rows {one.clock:8.2f} s{one.cpu:8.2f} s{said}", flush=True)
    print(f"  most memory of Java: {Java(session).peak():,.0f} MB with a heap of {asked.memory}")
    if asked.peers:
        for shape, partitions in product(shapes, PARTITIONS):
            session.conf.set("spark.sql.shuffle.partitions", str(partitions))
            path = table(shape, rows // 10)
            ours = compared(session, path, asked.rounds, floors=False)["discreet"].clock
            theirs = peer_seconds(path, partitions, asked.rounds)
            said = "gave no answer" if theirs is None else f"{theirs:.1f} s, {theirs / ours:.0f}× ours"
            at = f"{rows // 10:,} rows in {partitions} partitions"
            print(f"  {shape:6s}{at}: Tumult Analytics {said} ({ours:.2f} s); wanted ≥ {FASTER}×", flush=True)
    session.stop()


if __name__ == "__main__":
    main()

"""Private SQL beside the same questions without privacy, and beside the peers: time, memory and error in one run.

    python benchmarks/sql.py [--rows 1e7] [--peers none|some|all|opendp,qrlew,…] [--search] [--cap 300] [--large]

Count, sum and mean by a thousand public keys, of a million users at ε = 1, δ = 10⁻⁶, on an even table and on one with
heavy users (`tables.py`). Every program has a process of its own, and the peers environments of their own (`peers/`).
Errors are mean absolute errors over keys and runs, against the values that nobody clipped; means are held within their
bounds for everybody, and a key that is not shown counts as zero. Peers run with the limits that gave them the least
error; --search tries all limits again. Slow peers (`all`) are asked about a tenth of the rows, and so are we beside
them. On a busy machine the processor's seconds are steadier than the clock's; ratios are of the clock.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any

from peers.installation import HERE, OURS, PEERS, PLAIN, Peer
from tables import ROWS, VALUES, Shape, small_table, table, truth

ROUNDS = 3
"""Runs of ourselves and of the floors; the fastest counts. Peers run once for each limit."""
TURNS = 5
QUESTIONS = 50
SHAPES: tuple[Shape, ...] = ("even", "heavy")
ROW_LEVEL, USER_LEVEL, OTHER_FLOOR = (0,), (1,), (2,)


@dataclass(frozen=True)
class Measured:
    """One run: seconds, megabytes, and the mean absolute errors of counts, sums and means."""

    seconds: float
    cpu: float
    memory: float
    errors: tuple[float, float, float]

    def line(self, name: str, seconds: float | None = None, floor: str = "") -> str:
        """A row of the table."""
        ratio = f"{self.seconds / seconds:6.2f}× {floor}" if seconds else ""
        count, total, mean = self.errors
        said = f"  {name:26s}{self.seconds:8.2f} s {self.cpu:8.2f} s {self.memory:7.0f} MB"
        return f"{said}{count:10,.1f}{total:12,.0f}{mean:9.3f}  {ratio}"


HEADER = f"  {'':26s}{'clock':>10s} {'processor':>10s} {'memory':>10s}{'count':>10s}{'sum':>12s}{'mean':>9s}"


class Failed(Exception):
    """A program that gave no answer, with the last line it said."""


def asked(peer: Peer, task: dict[str, Any], cap: float) -> dict[str, Any]:
    """One task in one process."""
    command = [str(peer.python), str(HERE / peer.script)]
    try:
        ran = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, timeout=cap, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"took more than {cap:.0f} s") from None
    if ran.returncode:
        raise Failed((ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1][:200])
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    if "error" in said:
        raise Failed(said["error"])
    return said


def measured(peer: Peer, path: Path, limits: tuple[int, ...], cap: float, rounds: int = 1) -> Measured:
    """Time, memory and error of one program on one table."""
    said = asked(peer, {"kind": "by_key", "table": str(path), "limits": limits, "rounds": rounds}, cap)
    (low, high), true, nothing = VALUES, truth(path), [0.0, 0.0, 0.0]
    gaps = []
    for rows in said["answers"]:
        answers = {int(key): [count, total, min(max(mean, low), high)] for key, count, total, mean in rows}
        gaps += [[abs(a - b) for a, b in zip(answers.get(k, nothing), true[k], strict=True)] for k in true]
    count, total, mean = (sum(column) / len(gaps) for column in zip(*gaps, strict=True))
    return Measured(said["seconds"], said["cpu"], said["peak_mb"], (count, total, mean))


def row_level(path: Path, cap: float) -> None:
    """Ours beside the plain query."""
    print(f"Row level, {path.stem}")
    print(HEADER)
    # A tenth of a second is easily disturbed: both take turns, and the fastest of all runs counts.
    turns = [[measured(peer, path, ROW_LEVEL, cap, ROUNDS) for peer in (PLAIN, OURS)] for _ in range(TURNS)]
    floor, ours = (min(runs, key=lambda run: run.seconds) for runs in zip(*turns, strict=True))
    print(floor.line("DuckDB, not private"))
    print(ours.line("discreet", floor.seconds, "the plain query (wanted ≤ 1.5)"))


def user_level(shape: Shape, rows: int, peers: list[Peer], search: bool, cap: float) -> None:
    """Ours beside the queries that bound alike, and the peers."""
    path = table(shape, rows)
    print(f"User level, {path.stem}")
    print(HEADER)
    floor = measured(PLAIN, path, USER_LEVEL, cap, ROUNDS)
    other = measured(PLAIN, path, OTHER_FLOOR, cap, ROUNDS)
    ours = measured(OURS, path, USER_LEVEL, cap, ROUNDS)
    print(floor.line("DuckDB, bounded alike"))
    print(other.line("DuckDB, norms first"))
    note = f"bounded alike (wanted ≤ 1.5), memory {ours.memory / floor.memory:.2f}× (wanted ≤ 1.5)"
    print(ours.line("discreet", floor.seconds, note))
    runs: list[Measured] = []
    for peer in peers:
        runs += peer_level(peer, shape, path, search, cap, ours.seconds)
    if runs:
        wanted = f"(wanted ≤ {0.75 if shape == 'heavy' else 1})"
        each = tuple(min(run.errors[i] for run in runs) for i in range(3))
        print(f"  error beside the best of the peers for each, whatever its limits: {shares(ours, each)} {wanted}")
        best = min(runs, key=lambda run: run.errors[0])
        print(f"  error beside the run with the best counts: {shares(ours, best.errors)}")
        print(f"  {min(run.seconds for run in runs) / ours.seconds:.1f}× faster than the fastest of them (wanted ≥ 3)")


def shares(ours: Measured, theirs: tuple[float, ...]) -> str:
    """Our errors as parts of theirs."""
    names = ("count", "sum", "mean")
    return ", ".join(f"{name} {a / b:.2f}" for name, a, b in zip(names, ours.errors, theirs, strict=True))


def peer_level(peer: Peer, shape: Shape, path: Path, search: bool, cap: float, ours: float) -> list[Measured]:
    """All runs of one peer, printed."""
    problem = peer.install()
    if problem:
        print(f"  {peer.name:26s}does not install: {problem}")
        return []
    runs = []
    for limits in peer.settings if search or not peer.best else peer.best[shape]:
        name = f"{peer.name} {'×'.join(map(str, limits))}"
        try:
            runs.append(measured(peer, path, limits, cap))
            print(runs[-1].line(name, ours, "ours"), flush=True)
        except Failed as failure:
            print(f"  {name:26s}{failure}", flush=True)
    return runs


def latency(peers: list[Peer], cap: float) -> None:
    """A count by ten keys of a thousand rows, each question a new one."""
    print(f"Latency: a new question about ten keys of a thousand rows, median of {QUESTIONS}")
    for peer in (PLAIN, OURS, *peers):
        rounds = QUESTIONS if not peer.packages else QUESTIONS // 5
        try:
            problem = peer.install()
            if problem:
                raise Failed(f"does not install: {problem}")
            said = asked(peer, {"kind": "latency", "table": str(small_table()), "rounds": rounds}, cap)
            wanted = "  (wanted ≤ 15)" if peer is OURS else ""
            print(f"  {peer.name:26s}{said['seconds'] * 1e3:10.1f} ms{wanted}", flush=True)
        except Failed as failure:
            print(f"  {peer.name:26s}{failure}", flush=True)


def cold_shell() -> None:
    """`discreet query`, from the shell's prompt to the answer."""
    command = Path(sys.executable).with_name("discreet")
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
        facts = ["--unit", "u", "--epsilon", "100", "--delta", "1e-6", "--values", "k=1,2,3,4,5,6,7,8,9,10"]
        begun = [str(command), "init", str(small_table()), "--name", "t", *facts, "--ledger", f"{folder}/ledger.db"]
        subprocess.run(begun, cwd=folder, check=True, capture_output=True)
        taken = []
        for i in range(7):
            question = f"SELECT k, COUNT(*) AS n FROM t WHERE v < {50 + i} GROUP BY k"
            start = time.perf_counter()
            subprocess.run([str(command), "query", question, "-e", "1"], cwd=folder, check=True, capture_output=True)
            taken.append(time.perf_counter() - start)
    print(f"  {'discreet query, cold shell':26s}{sorted(taken)[3]:10.2f} s   (wanted ≤ 1)")


def scaling(rows: int, large: bool, cap: float) -> None:
    """Time and memory from a tenth of the rows upward."""
    sizes = [rows // 10, rows, *([rows * 10] if large else [])]
    runs = {size: measured(OURS, table("even", size), USER_LEVEL, cap, 1) for size in sizes}
    print("Scaling, user level, even table")
    for size, run in runs.items():
        print(f"  {size:>13,} rows {run.seconds:8.2f} s {run.memory:8.0f} MB")
    first, last = runs[sizes[0]], runs[sizes[-1]]
    decades = log10(sizes[-1] / sizes[0])
    print(
        f"  time grows like rows^{log10(last.seconds / first.seconds) / decades:.2f}, "
        f"memory like rows^{log10(last.memory / first.memory) / decades:.2f} (linear is 1)"
    )


def chosen(text: str) -> list[Peer]:
    """The peers named on the command line."""
    if text == "none":
        return []
    if text in ("some", "all"):
        return [peer for peer in PEERS if text == "all" or not peer.slow]
    known = {peer.name: peer for peer in PEERS}
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise SystemExit(f"no peer is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in text.split(",")]


def main() -> None:
    """Everything, or what the arguments ask for."""
    parser = argparse.ArgumentParser(description="Private SQL beside DuckDB and the peers.")
    parser.add_argument("--rows", type=float, default=ROWS)
    parser.add_argument("--peers", default="some", help="none, some (the fast ones), all, or names with commas")
    parser.add_argument("--search", action="store_true", help="try all limits of the peers, not the best known")
    parser.add_argument("--cap", type=float, default=300, help="seconds after which a run is given up")
    parser.add_argument("--large", action="store_true", help="also ten times the rows")
    asked_for = parser.parse_args()
    rows, peers = int(asked_for.rows), chosen(asked_for.peers)
    small_table()
    row_level(table("even", rows), asked_for.cap)
    for shape in SHAPES:
        user_level(shape, rows, [peer for peer in peers if not peer.slow], asked_for.search, asked_for.cap)
        slow = [peer for peer in peers if peer.slow]
        if slow:
            user_level(shape, rows // 10, slow, asked_for.search, asked_for.cap)
    latency(peers, asked_for.cap)
    cold_shell()
    scaling(rows, asked_for.large, asked_for.cap)


if __name__ == "__main__":
    main()

"""What the benchmark and a peer's process say to each other. Standard library only: it runs in every environment.

A runner reads one task as JSON from its standard input and writes one line of JSON, the last of its standard output:
seconds on the clock and of the processor, peak memory over what the imports took, and the answers.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

EPSILON = 1.0
DELTA = 1e-6
KEYS = list(range(1, 1001))
SMALL_KEYS = list(range(1, 11))
BOUNDS = (0.0, 100.0)
WARM_UPS = 5

Rows = Iterable[tuple[int, float, float, float]]
Latency = Callable[[str], Callable[[int], object]]


def peak_mb() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rho_for(epsilon: float = EPSILON, delta: float = DELTA) -> float:
    """The largest ρ of zCDP that the tight conversion (Canonne, Kamath, Steinke 2020) states as (ε, δ)."""

    def spent(rho: float) -> float:
        orders = [1 + 10 ** (i / 100) for i in range(-200, 300)]
        return min(a * rho + math.log(1 / delta) / (a - 1) + math.log1p(-1 / a) - math.log(a) / (a - 1) for a in orders)

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low


def serve(prepare: Callable[[str, list[int]], Callable[[], Rows]], latency: Latency | None = None) -> None:
    """Carry out the task on standard input.

    `prepare` opens a table, with limits on what a user may add, and gives a function that asks for (key, count, sum,
    mean), the only part that is timed. `latency` opens a small table and gives a function that asks the i-th question.
    """
    task = json.loads(sys.stdin.read())
    said: dict[str, Any] = {}
    if task["kind"] == "by_key":
        before = peak_mb()
        seconds, cpu = [], []
        for number in range(task["rounds"]):
            ask = prepare(task["table"], task["limits"])
            start, used = time.perf_counter(), time.process_time()
            rows = list(ask())
            seconds.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
            said.setdefault("answers", []).append([tuple(map(float, row)) for row in rows])
            if number == 0:
                said["peak_mb"] = peak_mb() - before
        said["seconds"], said["cpu"] = min(seconds), min(cpu)
    elif latency is None:
        said["error"] = "has no warm questions"
    else:
        question = latency(task["table"])
        taken = []
        for i in range(WARM_UPS + task["rounds"]):
            start = time.perf_counter()
            question(i)
            taken.append(time.perf_counter() - start)
        said["seconds"] = statistics.median(taken[WARM_UPS:])
    print(json.dumps(said))

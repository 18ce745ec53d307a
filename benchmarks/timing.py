"""Timing for the benchmarks: the best of several runs, taken in turn so that a slow moment hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_of(tasks: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Seconds of the fastest run of each task; the tasks take turns."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    return best

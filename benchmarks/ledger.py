"""Durable charges per second, beside plain commits of the same durability in the same store, on the same disk, in turn.

In a SQLite file, and on a PostgreSQL server that is started here: with clients in processes of their own, which each
wait for the disk, and with clients in the threads of one process, which share commits. Needs the extra `test`.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from itertools import count
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg

from discreet.core.events import Event, Gaussian, Laplace
from discreet.core.losses import ApproxDP, Loss, PureDP
from discreet.core.units import User
from discreet.ledger import Ledger

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "ledger"))
from servers import Server

SECONDS = 2.0
SLICE = 0.2
"""The tasks take turns this long, so that a slow moment of the disk hits all alike."""
WANTED = 300
WANTED_OF_A_SERVER = 500
WRITERS = 8
CLIENTS = 16
ACCOUNT = ("data", "study", "analyst")
KINDS: dict[str, tuple[Loss, Event]] = {
    "pure ε, Laplace": (PureDP(10**6), Laplace(Fraction(1000), 1)),
    "(ε, δ), Gaussian": (ApproxDP(10**3, "1e-6"), Gaussian(Fraction(10**6), Fraction(1))),
}


def rates(tasks: dict[str, Callable[[int], object]]) -> dict[str, float]:
    """How often each task runs in a second; it is given the numbers 0, 1, 2 …"""
    numbers = {name: count() for name in tasks}
    seconds, done = dict.fromkeys(tasks, 0.0), dict.fromkeys(tasks, 0)
    while min(seconds.values()) < SECONDS:
        for name, task in tasks.items():
            start = time.perf_counter()
            while time.perf_counter() - start < SLICE:
                task(next(numbers[name]))
                done[name] += 1
            seconds[name] += time.perf_counter() - start
    return {name: done[name] / seconds[name] for name in tasks}


def plain(path: str) -> Callable[[int], object]:
    """A commit of one row of a kilobyte."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")

    def commit(number: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 1000))
        connection.execute("COMMIT")

    return commit


def opened(path: str, budget: Loss) -> Ledger:
    """A ledger with three nested budgets."""
    ledger = Ledger.at(path)
    ledger.open(ACCOUNT[:1], budget=budget, unit=User("person"), source="benchmark")
    ledger.open(ACCOUNT[:2], budget=budget)
    ledger.open(ACCOUNT, budget=budget)
    return ledger


def contended(path: str, event: Event, writers: int = WRITERS) -> float:
    """Charges per second of several processes together, from when all of them are ready."""
    context = multiprocessing.get_context("spawn")
    results, ready = context.Queue(), context.Barrier(writers)
    running = [context.Process(target=_write, args=(path, event, results, ready)) for _ in range(writers)]
    for process in running:
        process.start()
    total = sum(results.get() for _ in running)
    for process in running:
        process.join()
    return total


def _write(path: str, event: Event, results: multiprocessing.Queue[float], ready: Barrier) -> None:
    with Ledger.at(path) as ledger:
        ledger.charge(ACCOUNT, event, f"{os.getpid()} is ready")
        ready.wait()
        task = {"charge": lambda i: ledger.charge(ACCOUNT, event, f"{os.getpid()} {i}")}
        results.put(rates(task)["charge"])


def measure(name: str, path: str, budget: Loss, event: Event) -> None:
    """Prints what one kind of charge costs."""
    ledger = opened(path, budget)
    speed = rates(
        {
            "plain": plain(f"{path}-plain"),
            "charges": lambda i: ledger.charge(ACCOUNT, event, f"charge {i}"),
            "answers": lambda i: ledger.complete(ledger.charge(ACCOUNT, event, f"answer {i}"), b"x" * 1000),
            "replays": lambda i: ledger.replay(ACCOUNT, f"answer {i % 10}"),
        }
    )
    start = time.perf_counter()
    report = ledger.check()
    checked = report.head.sequence / (time.perf_counter() - start)
    ledger.close()
    ratio = speed["charges"] / speed["plain"]
    print(f"{name}, three nested budgets")
    print(f"  plain SQLite commits     {speed['plain']:7.0f}/s")
    print(f"  charges                  {speed['charges']:7.0f}/s   {ratio:.2f} of plain commits (wanted ≥ {WANTED}/s)")
    print(f"  charge and complete      {speed['answers']:7.0f}/s   {1000 / speed['answers']:.1f} ms for an answer")
    print(f"  replays                  {speed['replays']:7.0f}/s")
    print(f"  entries checked          {checked:7.0f}/s   sound: {report.sound}")
    print(f"  charges of {WRITERS} processes   {contended(path, event):7.0f}/s   together")


def plain_on_a_server(url: str) -> Callable[[int], object]:
    """A commit of one row of a kilobyte."""
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("CREATE TABLE IF NOT EXISTS public.rows (number BIGINT PRIMARY KEY, text TEXT)")

    def commit(number: int) -> None:
        with connection.transaction():
            connection.execute("INSERT INTO public.rows VALUES (%s, %s)", (number, "x" * 1000))

    return commit


def in_threads(url: str, event: Event) -> float:
    """Charges per second of the threads of one process together."""
    with closing(Ledger.at(url)) as ledger, ThreadPoolExecutor(CLIENTS) as pool:
        deadline = time.perf_counter() + SECONDS

        def charge_on(who: int) -> int:
            for number in count():
                if time.perf_counter() > deadline:
                    return number
                ledger.charge(ACCOUNT, event, f"thread {who} {number}")
            return 0

        return sum(pool.map(charge_on, range(CLIENTS))) / SECONDS


def measure_server(url: str, budget: Loss, event: Event) -> None:
    """Prints what a charge costs on a server."""
    ledger = opened(url, budget)
    speed = rates(
        {
            "plain": plain_on_a_server(url),
            "charges": lambda i: ledger.charge(ACCOUNT, event, f"charge {i}"),
            "replays": lambda i: ledger.replay(ACCOUNT, f"charge {i % 10}"),
        }
    )
    processes, threads = contended(url, event, CLIENTS), in_threads(url, event)
    report = ledger.check()
    ledger.close()
    print("PostgreSQL, pure ε, Laplace, three nested budgets")
    print(f"  plain commits            {speed['plain']:7.0f}/s")
    print(f"  charges                  {speed['charges']:7.0f}/s   {speed['charges'] / speed['plain']:.2f} of plain")
    print(f"  replays                  {speed['replays']:7.0f}/s")
    for kind, rate in (("processes", processes), ("threads", threads)):
        wanted = f"(wanted ≥ {WANTED_OF_A_SERVER}/s)"
        print(f"  charges of {CLIENTS} {kind:<9} {rate:7.0f}/s   {rate / speed['plain']:.2f} of plain {wanted}")
    print(f"  {report.head.sequence} entries, sound: {report.sound}")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for number, (name, (budget, event)) in enumerate(KINDS.items()):
            measure(name, f"{folder}/{number}.db", budget, event)
    server = Server(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir()))
    try:
        measure_server(server.url(), *KINDS["pure ε, Laplace"])
    finally:
        server.remove()


if __name__ == "__main__":
    main()

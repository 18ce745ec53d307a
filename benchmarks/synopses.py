"""Synopses at size: seconds, memory and error of each method, one row after the other; names pick rows.

    python benchmarks/synopses.py [row …]

Each row runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from discreet.synopses import MWEM, Attribute, Domain, Workload

RECORDS = 100_000


def clustered(attributes: int, values: int, records: int = RECORDS) -> tuple[Domain, np.ndarray]:
    """Records of eight kinds, each kind with its own habits: attributes that depend on one another."""
    generator = np.random.default_rng(1)
    domain = Domain(tuple(Attribute(f"a{place}", range(values)) for place in range(attributes)))
    kinds = generator.integers(0, 8, records)
    habits = np.cumsum(generator.dirichlet(np.full(values, 0.5), (8, attributes)), axis=2)
    columns = {
        name: (generator.random(records)[:, None] > habits[kinds, place, :-1]).sum(axis=1)
        for place, name in enumerate(domain.names)
    }
    return domain, domain.histogram(columns)


def errors(answers: np.ndarray, truth: np.ndarray) -> str:
    misses = np.abs(answers - truth)
    return f"worst error {misses.max():,.0f}, mean {misses.mean():.1f}"


def mwem(**options: object) -> str:
    """4¹⁰ = 1,048,576 cells, 80 marginals of three attributes: 5,120 queries."""
    domain, histogram = clustered(10, 4)
    work = Workload.marginals(domain, list(combinations(domain.names, 3))[:80])
    start = time.perf_counter()
    mechanism = MWEM(workload=work, epsilon=1, **options)
    synopsis = mechanism.release(histogram).values
    seconds = time.perf_counter() - start
    what = f"{domain.size:,} cells × {len(work):,} queries, {mechanism.measurements} rounds"
    return f"{what}: {seconds:.1f} s (wanted ≤ 60); {errors(synopsis.answers(work), work.answers(histogram))}"


ROWS: dict[str, Callable[[], str]] = {
    "MWEM": mwem,
    "MWEM, δ = 1e-6": lambda: mwem(delta="1e-6"),
    "MWEM, n declared": lambda: mwem(size=RECORDS),
    "MWEM, the book's": lambda: mwem(method="book", size=RECORDS),
}


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "--alone":
        said = ROWS[sys.argv[2]]()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{sys.argv[2]}: {said}; peak {peak:.2f} GB (wanted ≤ 2)")
        return
    for row in sys.argv[1:] or ROWS:
        subprocess.run([sys.executable, __file__, "--alone", row], check=True)


if __name__ == "__main__":
    main()

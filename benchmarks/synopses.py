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
from typing import Any, Literal

import numpy as np

from discreet import samples
from discreet.synopses import (
    MWEM,
    Attribute,
    Boosting,
    Domain,
    LinearGenerator,
    Product,
    Projection,
    Workload,
    every,
    ranges,
)
from discreet.synopses.fitting import Cells

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
    told: list[float] = []
    synopsis = mechanism.release(histogram, progress=told.append).values
    seconds = time.perf_counter() - start
    rounds = len(told) - (mechanism.method == "best")
    what = f"{domain.size:,} cells × {len(work):,} queries, {rounds} rounds"
    return f"{what}: {seconds:.1f} s (wanted ≤ 60); {errors(synopsis.answers(work), work.answers(histogram))}"


def ranged(values: tuple[int, ...], marginals: list[tuple[str, str]]) -> tuple[Workload, np.ndarray]:
    """Marginals of two attributes and 900 ranges of the first, over skewed data: about 2,000 queries."""
    generator = np.random.default_rng(2)
    domain = Domain(tuple(Attribute(f"a{place}", range(size)) for place, size in enumerate(values)))
    runs = Workload.ranges(domain, "a0")
    work = Workload.marginals(domain, marginals) + runs.subset(generator.choice(len(runs), 900, replace=False))
    return work, generator.multinomial(RECORDS, generator.dirichlet(np.full(domain.size, 0.05)))


def linear(
    values: tuple[int, ...], marginals: list[tuple[str, str]], solver: Literal["least squares", "linear program"]
) -> str:
    """The linear base generator: what it reads, and the database for it."""
    work, histogram = ranged(values, marginals)
    start = time.perf_counter()
    base = LinearGenerator(workload=work, epsilon=1, delta="1e-6", size=RECORDS, solver=solver).base
    reading = base.measurement.release(histogram)
    fit = base.fitted((reading,), Cells(work.domain.size, float(RECORDS)))
    seconds = time.perf_counter() - start
    allowed = base.measurement.error(0.05)
    residual = f"within {fit.deviation:.0f} of what was read (α = {allowed:.0f})"
    if solver == "least squares":
        residual += f", answers within {(fit.gap / len(work)) ** 0.5:.1f} (root mean square) of the best ones"
    what = f"{work.domain.size:,} cells × {len(work):,} queries: {seconds:.1f} s (wanted ≤ 60), {residual}"
    return f"{what}; {errors(work.answers(fit.weights), work.answers(histogram))}"


def projected() -> str:
    """A million cells of which five thousand counts are asked."""
    domain, histogram = clustered(10, 4)
    work = Workload.marginals(domain, list(combinations(domain.names, 3))[:80])
    start = time.perf_counter()
    synopsis = Projection(workload=work, epsilon=1, size=RECORDS).release(histogram).values
    seconds = time.perf_counter() - start
    what = f"{domain.size:,} cells × {len(work):,} queries: {seconds:.1f} s"
    return f"{what}; {errors(synopsis.answers(work), work.answers(histogram))}"


def boosted() -> str:
    """The same data, queries and budget for all: people of the sample in their first year, ε = 1, δ = 1e-6."""
    survey = samples.rand_hie()
    domain = Domain(
        (
            Attribute.binned("age", range(0, 66, 5)),
            Attribute("site", range(1, 7)),
            Attribute("female", (0, 1)),
            Attribute("family_size", range(1, 9)),
            Attribute("coinsurance", (0, 25, 50, 95, 100)),
            Attribute("health", ("excellent", "good", "fair", "poor")),
            Attribute.binned("doctor_visits", (0, 1, 2, 3, 5, 8, 13, 21, 78)),
        )
    )
    by = tuple(Product({"age": ranges, other: every}) for other in ("site", "family_size"))
    work = Workload.all_marginals(domain, 3) + Workload(domain, by)
    histogram = domain.histogram({name: column[survey["year"] == 1] for name, column in survey.items()})
    pure: dict[str, Any] = {"workload": work, "epsilon": 1, "size": int(histogram.sum())}
    terms = {**pure, "delta": "1e-6"}
    laplace, gaussian = Projection(**pure), Projection(**terms)
    methods: dict[str, Callable[[], Any]] = {
        "Laplace, δ = 0": lambda: laplace.mechanism.release(work.counts(histogram)).values,
        "projected Laplace, δ = 0": lambda: laplace.release(histogram).values.answers(work),
        "Gaussian": lambda: gaussian.mechanism.release(work.counts(histogram)).values,
        "projected Gaussian": lambda: gaussian.release(histogram).values.answers(work),
        "MWEM": lambda: MWEM(**terms).release(histogram).values.answers(work),
        "boosting, 8 rounds": lambda: Boosting(**terms, rounds=8).release(histogram).values.answers(work),
        "boosting": lambda: Boosting(**terms).release(histogram).values.answers(work),
    }
    lines = [f"{histogram.sum():,} people, {domain.size:,} cells × {len(work):,} queries"]
    for name, release in methods.items():
        start = time.perf_counter()
        said = errors(release(), work.answers(histogram))
        lines.append(f"    {name}: {said}, {time.perf_counter() - start:.1f} s")
    return "\n".join(lines)


SMALL = (100, 10, 10), [("a0", "a1"), ("a1", "a2")]
LARGE = (100, 100, 10), [("a0", "a2"), ("a2", "a1")]
ROWS: dict[str, Callable[[], str]] = {
    "MWEM": mwem,
    "MWEM, δ = 1e-6": lambda: mwem(delta="1e-6"),
    "MWEM, n declared": lambda: mwem(size=RECORDS),
    "MWEM, the book's": lambda: mwem(method="book", size=RECORDS),
    "projection": projected,
    "linear base, program": lambda: linear(*SMALL, "linear program"),
    "linear base, least squares": lambda: linear(*SMALL, "least squares"),
    "linear base, 10⁵ cells, least squares": lambda: linear(*LARGE, "least squares"),
    "boosting beside others": boosted,
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

"""Attacks at size: seconds and what they found, one row after the other; names pick rows.

python benchmarks/reconstruction.py [row …]
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.adversary import Hadamard, Listed, Tables, reconstruct, reconstruct_tables
from discreet.mechanisms import Laplace

AGES = ("0-4", "5-9", "10-14", "15-17", "18-19", "20", "21", "22-24", "25-29", "30-34", "35-39", "40-44", "45-49")
AGES += ("50-54", "55-59", "60-61", "62-64", "65-66", "67-69", "70-74", "75-79", "80-84", "85+")
BY_AGE = (6.5, 6.6, 6.7, 4.2, 2.9, 1.4, 1.4, 4.1, 6.8, 6.5, 6.5, 6.8, 7.3, 7.2, 6.4, 2.3, 3.1, 1.7, 2.3, 3.0, 2.4, 1.9)
BY_AGE += (1.8,)
"""Groups of age as censuses publish them by block, with rough shares of people in them."""
RACES = ("white", "black", "native", "Asian", "islander", "other", "several")
BY_RACE = (72.4, 12.6, 0.9, 4.8, 0.2, 6.2, 2.9)


def people(blocks: int, generator: np.random.Generator) -> dict[str, list[Any]]:
    """Blocks of 1 to 30 people of households with ages and races that keep together."""
    out: dict[str, list[Any]] = {"block": [], "sex": [], "age": [], "race": []}
    race, age = np.array(BY_RACE) / sum(BY_RACE), np.array(BY_AGE) / sum(BY_AGE)
    for block in range(blocks):
        size = int(generator.integers(1, 31))
        here = generator.dirichlet(race * 4 + 0.02)
        out["block"] += [block] * size
        out["sex"] += generator.choice(["F", "M"], size).tolist()
        out["age"] += generator.choice(AGES, size, p=age).tolist()
        out["race"] += generator.choice(RACES, size, p=here).tolist()
    return out


def published(records: dict[str, list[Any]], *columns: str) -> dict[str, list[Any]]:
    """The counts of these columns by block, as a table."""
    counted = Counter(zip(*(records[name] for name in ("block", *columns)), strict=True))
    out: dict[str, list[Any]] = {
        name: [key[place] for key in counted] for place, name in enumerate(("block", *columns))
    }
    return out | {"count": list(counted.values())}


def census(blocks: int = 1000) -> str:
    """Every pair of sex, age and race, in blocks of up to 30 people."""
    records = people(blocks, np.random.default_rng(4))
    tables = {f"{a} by {b}": published(records, a, b) for a, b in (("sex", "age"), ("age", "race"), ("sex", "race"))}
    start = time.perf_counter()
    found = reconstruct_tables(tables, truth=records)
    seconds = time.perf_counter() - start
    assert found.agreement is not None
    sure = found.agreement.certain_right
    return f"{seconds:.1f} s (wanted ≤ 300); {found.verdict} {sure:.1%} of the certain ones are there"


def private_census(blocks: int = 100) -> str:
    """The same tables with Laplace noise for ε = 0.1 in all."""
    records = people(blocks, np.random.default_rng(4))
    tables = {f"{a} by {b}": published(records, a, b) for a, b in (("sex", "age"), ("age", "race"), ("sex", "race"))}
    exact = Tables.read(tables, values={"sex": ["F", "M"], "age": AGES, "race": RACES})

    def noisy(counts: np.ndarray) -> np.ndarray:
        noise = Laplace.for_epsilon("0.1", 3, dimension=counts.size)
        return np.asarray(noise.release(counts.astype(np.int64)).values, float)

    released = tuple(
        replace(table, counts={block: noisy(counts) for block, counts in table.counts.items()})
        for table in exact.tables
    )
    start = time.perf_counter()
    found = reconstruct_tables(replace(exact, tables=released), truth=records)
    seconds = time.perf_counter() - start
    assert found.agreement is not None
    match = f"{found.agreement.right:.2%} match, another block's {found.agreement.elsewhere:.2%}"
    return f"{seconds:.1f} s; {found.verdict} {match}, by luck with probability {found.agreement.chance:.2g}"


def bits(n: int, queries: Callable[[], Any], noise: float, wanted: str, **options: Any) -> str:
    """n fair bits, with Gaussian noise of so many √n on every answer."""
    generator = np.random.default_rng(5)
    truth = generator.integers(0, 2, n)
    asked = queries()
    answers = asked.apply(truth) + generator.normal(0, noise * np.sqrt(n), len(asked))
    lied = generator.random(len(asked)) < options.pop("arbitrary", 0.0)
    answers[lied] = generator.uniform(0, n, int(lied.sum()))
    start, worked = time.perf_counter(), time.process_time()
    found = reconstruct(answers, asked, truth=truth, **options)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    time_taken = f"{seconds:.1f} s ({wanted}; {worked:.1f} s of work)"
    return f"{time_taken}, {found.method}, {found.right:.2%} of {n:,} bits (wanted ≥ 99 %)"


LIMIT = "wanted ≤ 30"
ROWS: dict[str, Callable[[], str]] = {
    "l1, n = 500, 8n": lambda: bits(500, lambda: Listed.drawn(500, 4000), 0.2, LIMIT),
    "l1, n = 500, 8n, a fifth arbitrary": lambda: bits(
        500, lambda: Listed.drawn(500, 4000, signs=True), 0.2, LIMIT, arbitrary=0.2
    ),
    "linear program, n = 200, 8n": lambda: bits(
        200, lambda: Listed.drawn(200, 1600, signs=True), 0.2, LIMIT, method="linear program"
    ),
    "Hadamard ±1, n = 65,536": lambda: bits(65_536, lambda: Hadamard(65_536, signs=True), 0.2, LIMIT),
    "Hadamard subsets, n = 65,536, 4n": lambda: bits(65_536, lambda: Hadamard(65_536, rounds=4), 0.2, LIMIT),
    "census, 1,000 blocks": census,
    "census, 100 blocks at ε = 0.1": private_census,
}


def main() -> None:
    for row in sys.argv[1:] or ROWS:
        print(f"{row}: {ROWS[row]()}", flush=True)


if __name__ == "__main__":
    main()

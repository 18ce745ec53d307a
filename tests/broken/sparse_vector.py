"""The published sparse-vector variants that do not keep their promise (Lyu, Su and Li 2017 list them).

Each gets queries that move by at most 1 between the data sets and a threshold of 0. An answer is a row: 1 for above,
0 for below, −1 once stopped (or the number released in its place).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core.losses import PureDP

from .specimen import Collection, Random

SPARSE_VECTOR = Collection()

STOPPED = -1.0


def sparse_vector(
    queries: list[int], n: int, rng: Random, threshold: float, query: float, cutoff: int | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """n runs with Laplace noise of these scales: the marks of each run and the noisy queries behind them."""
    shape = (n, len(queries))
    noisy = np.array(queries) + (rng.laplace(0, query, shape) if query else np.zeros(shape))
    above = noisy >= (rng.laplace(0, threshold, (n, 1)) if threshold else 0)
    marks = above.astype(float)
    if cutoff is not None:
        stopped = np.cumsum(above, axis=1) - above >= cutoff
        marks[stopped] = STOPPED
    return marks, noisy


_BELOW_THEN_ABOVE = ([0] * 8, [1] * 4 + [-1] * 4)


@SPARSE_VECTOR.add(PureDP(1), [0, 1], [1, 0], "Algorithm 5: no noise on the queries, no cutoff", vulnerability=26)
def no_query_noise(queries: list[int], n: int, rng: Random) -> Any:
    return sparse_vector(queries, n, rng, threshold=2.0, query=0.0)[0]


@SPARSE_VECTOR.add(PureDP(1), *_BELOW_THEN_ABOVE, "Algorithm 6: noise as for one answer, no cutoff", vulnerability=26)
def no_cutoff(queries: list[int], n: int, rng: Random) -> Any:
    return sparse_vector(queries, n, rng, threshold=2.0, query=2.0)[0]


@SPARSE_VECTOR.add(
    PureDP(1),
    [0] * 6 + [1],
    [1] * 6 + [0],
    "Algorithm 3: the noisy value that was compared is itself released",
    vulnerability=26,
    samples=400_000,
)
def compared_value_released(queries: list[int], n: int, rng: Random) -> Any:
    marks, noisy = sparse_vector(queries, n, rng, threshold=2.0, query=2.0, cutoff=1)
    return np.where(marks == 1, np.rint(16 * noisy) / 16 + 1000, marks)


@SPARSE_VECTOR.add(PureDP(1), *_BELOW_THEN_ABOVE, "Algorithm 4: the noise of one answer, four given", vulnerability=26)
def noise_without_the_cutoff(queries: list[int], n: int, rng: Random) -> Any:
    return sparse_vector(queries, n, rng, threshold=4.0, query=4 / 3, cutoff=4)[0]


@SPARSE_VECTOR.add(
    PureDP(1), [0] * 6, [1] * 6, "no noise on the threshold: each answer below is paid for", vulnerability=26
)
def no_threshold_noise(queries: list[int], n: int, rng: Random) -> Any:
    return sparse_vector(queries, n, rng, threshold=0.0, query=2.0, cutoff=1)[0]


@SPARSE_VECTOR.add(PureDP(1), [0, 2], [1, 1], "the true value of the query above is shown", vulnerability=26)
def true_value_released(queries: list[int], n: int, rng: Random) -> Any:
    marks, _ = sparse_vector(queries, n, rng, threshold=2.0, query=4.0, cutoff=1)
    return np.where(marks == 1, np.array(queries), marks)

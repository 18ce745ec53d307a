"""Too little noise: the wrong scale, the wrong sensitivity, the wrong formula."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.core.losses import ApproxDP, PureDP

from .specimen import Collection, Random, discrete_laplace

CALIBRATION = Collection()


@CALIBRATION.add(PureDP(1), 10, 11, "scale Δ/2ε instead of Δ/ε")
def half_the_noise(count: int, n: int, rng: Random) -> Any:
    return count + discrete_laplace(rng, 0.5, n)


@CALIBRATION.add(PureDP(1), [1, 0, 1], [-1, 0, 1], "values in [−1, 1] move a sum by 2 when replaced", vulnerability=15)
def replaced_not_added(values: list[int], n: int, rng: Random) -> Any:
    return int(np.clip(values, -1, 1).sum()) + discrete_laplace(rng, 1.0, n)


@CALIBRATION.add(
    PureDP(1), ["a", "b"], ["a", "c"], "a replaced row leaves one cell and enters another", vulnerability=15
)
def histogram_under_replacement(rows: list[str], n: int, rng: Random) -> Any:
    return np.array([rows.count(key) for key in "abc"]) + discrete_laplace(rng, 1.0, (n, 3))


@CALIBRATION.add(PureDP(1), [7, 7, 7, 8], [8], "one user has three rows, charged as one", vulnerability=18)
def rows_of_one_user(rows: list[int], n: int, rng: Random) -> Any:
    return len(rows) + discrete_laplace(rng, 1.0, n)


@CALIBRATION.add(
    PureDP(1), [3, 0], [0], "(U − L)//2 for values in [0, 3] centred at 1.5: the bound 1.5 became 1", vulnerability=7
)
def truncated_division(values: list[int], n: int, rng: Random) -> Any:
    halves = sum(2 * min(max(value, 0), 3) - 3 for value in values)
    return halves + discrete_laplace(rng, 2 * (3 // 2), n)


@CALIBRATION.add(
    PureDP(1), [0, 100], [0, 0], "bounds (0, 100) read at the wrong index: sensitivity 0", vulnerability=14
)
def wrong_bound_index(values: list[int], n: int, rng: Random) -> Any:
    bounds = (0, 100)
    sensitivity = bounds[0]
    noise = discrete_laplace(rng, sensitivity, n) if sensitivity else np.zeros(n, int)
    return sum(values) + noise


@CALIBRATION.add(PureDP(1), [1, 0], [1, 40], "clipped values computed, raw values summed", vulnerability=13)
def raw_instead_of_clipped(values: list[int], n: int, rng: Random) -> Any:
    clipped = [min(value, 1) for value in values]
    assert max(clipped) <= 1
    return sum(values) + discrete_laplace(rng, 1.0, n)


@CALIBRATION.add(
    PureDP(1), [1], [1, 0], "scale (U − L)/n with the private n: removing a row changes the scale", vulnerability=19
)
def mean_with_private_count(values: list[int], n: int, rng: Random) -> Any:
    grid = 1 << 20
    return np.round((np.mean(values) + rng.laplace(0, 1 / len(values), n)) * grid) / grid


@CALIBRATION.add(PureDP(1), True, False, "truth told with e^ε/(1 + e^ε), and a fair coin otherwise")
def randomized_response_with_spare_coin(truth: bool, n: int, rng: Random) -> Any:
    honest = rng.random(n) < math.e / (1 + math.e)
    return np.where(honest, truth, rng.random(n) < 0.5)


@CALIBRATION.add(PureDP(1), 0, 3, "the keeping probability of two answers used with eight")
def randomized_response_of_eight(truth: int, n: int, rng: Random) -> Any:
    honest = rng.random(n) < math.e / (1 + math.e)
    return np.where(honest, truth, (truth + rng.integers(1, 8, n)) % 8)


_LARGE, _DELTA = 8, 0.1


@CALIBRATION.add(
    ApproxDP(_LARGE, _DELTA), 0, 1, "√(2 ln(1.25/δ))/ε, proved for ε < 1, used at ε = 8", samples=3_000_000
)
def gaussian_outside_the_theorem(value: int, n: int, rng: Random) -> Any:
    sigma = math.sqrt(2 * math.log(1.25 / _DELTA)) / _LARGE
    grid = 1 << 10
    return np.rint((value + rng.normal(0, sigma, n)) * grid).astype(np.int64)


@CALIBRATION.add(PureDP(1), 3, 4, "the same noise protects two answers: their difference is exact")
def noise_used_twice(count: int, n: int, rng: Random) -> Any:
    noise = discrete_laplace(rng, 2000.0, n)
    return np.column_stack([count + noise, 2 * count + noise])

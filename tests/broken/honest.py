"""Mechanisms that keep their word: slow, plain references that no audit may fail."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.losses import ZCDP, ApproxDP, PureDP

from .selection import exponential, permute_and_flip
from .sparse_vector import sparse_vector
from .specimen import Collection, Random, discrete_laplace

HONEST = Collection()


@HONEST.add(PureDP(1), 10, 11, "discrete Laplace of scale Δ/ε")
def counted(count: int, n: int, rng: Random) -> Any:
    return count + discrete_laplace(rng, 1.0, n)


@HONEST.add(PureDP(1), ["a", "b"], ["a", "c"], "a replaced row moves two cells, scale 2/ε")
def histogram(rows: list[str], n: int, rng: Random) -> Any:
    return np.array([rows.count(key) for key in "abc"]) + discrete_laplace(rng, 2.0, (n, 3))


@HONEST.add(PureDP(1), [0.25, 1.0], [0.25, 0.0], "clipped, rounded to a grid, then noise on that grid")
def sum_on_a_grid(values: list[float], n: int, rng: Random) -> Any:
    steps = sum(round(min(max(value, 0.0), 1.0) * 1024) for value in values)
    return (steps + discrete_laplace(rng, 1024.0, n)) / 1024


@HONEST.add(PureDP(1), [1.0], [1.0, math.nan], "NaN counts as 0 and errors never happen", each=True, samples=20_000)
def sum_without_nan(values: list[float], rng: Random) -> int:
    total = sum(min(max(round(value), 0), 1) for value in values if not math.isnan(value))
    return total + int(discrete_laplace(rng, 1.0, 1)[0])


@HONEST.add(PureDP(1), True, False, "truth told with e^ε/(1 + e^ε), a lie otherwise")
def randomized_response(truth: bool, n: int, rng: Random) -> Any:
    return np.where(rng.random(n) < math.e / (1 + math.e), truth, not truth)


@HONEST.add(PureDP(1), 0, 3, "truth told with e^ε/(7 + e^ε) among eight answers")
def randomized_response_of_eight_told(truth: int, n: int, rng: Random) -> Any:
    honest = rng.random(n) < math.e / (7 + math.e)
    return np.where(honest, truth, (truth + rng.integers(1, 8, n)) % 8)


@HONEST.add(PureDP(1), [0, *[1] * 5], [1, *[0] * 5], "exponential mechanism with 2Δ")
def exponential_choice(scores: list[int], n: int, rng: Random) -> Any:
    return exponential(np.array(scores), 0.5, n, rng)


@HONEST.add(ZCDP(Fraction(1, 8)), [0, 0], [1, -1], "the exponential mechanism's ε²/8")
def exponential_concentrated(scores: list[int], n: int, rng: Random) -> Any:
    return exponential(np.array(scores), 0.5, n, rng)


@HONEST.add(PureDP(1), [0, 0], [1, -1], "permute and flip with 2Δ")
def permute_and_flip_choice(scores: list[int], n: int, rng: Random) -> Any:
    return permute_and_flip(np.array(scores), 0.5, n, rng)


@HONEST.add(PureDP(1), [0] * 5, [1] * 5, "noisy max of counts that move together tells only the winner")
def noisy_max(counts: list[int], n: int, rng: Random) -> Any:
    return np.argmax(np.array(counts) + rng.laplace(0, 1, (n, len(counts))), axis=1)


@HONEST.add(
    PureDP(1), [0] * 6 + [1], [1] * 6 + [0], "sparse vector: 2/ε on the threshold, 4c/ε on each query, stop after c"
)
def above_threshold(queries: list[int], n: int, rng: Random) -> Any:
    return sparse_vector(queries, n, rng, threshold=2.0, query=4.0, cutoff=1)[0]


@HONEST.add(PureDP(1), [0] * 8, [1] * 4 + [-1] * 4, "sparse vector with four answers")
def above_threshold_four_times(queries: list[int], n: int, rng: Random) -> Any:
    return sparse_vector(queries, n, rng, threshold=2.0, query=16.0, cutoff=4)[0]


@HONEST.add(ApproxDP(1, 0.01), {"rare": 1}, {}, "noisy count > threshold", samples=500_000)
def above_the_threshold(counts: dict[str, int], n: int, rng: Random) -> Any:
    noisy = counts.get("rare", 0) + discrete_laplace(rng, 1.0, n)
    return np.where((noisy > 5) & ("rare" in counts), noisy, -1)


@HONEST.add(ZCDP(Fraction(1, 2)), 0, 4, "Gaussian noise on the integer grid, σ = 4")
def gaussian_concentrated(value: int, n: int, rng: Random) -> Any:
    return value + _discrete_gaussian(4.0, n, rng)


@HONEST.add(
    ApproxDP("1.2", "0.1"), 0, 4, "the exact δ(ε) of Gaussian noise with σ = Δ: δ(1.2) = 0.0997", samples=400_000
)
def gaussian_approximate(value: int, n: int, rng: Random) -> Any:
    return value + _discrete_gaussian(4.0, n, rng)


@HONEST.add(PureDP(Fraction(math.log1p(0.1 * math.expm1(1)))), [1], [], "a fresh sample for the one answer")
def sampled_once(rows: list[int], n: int, rng: Random) -> Any:
    return rng.binomial(len(rows), 0.1, n) + discrete_laplace(rng, 1.0, n)


@HONEST.add(PureDP(1), ["a"], ["a", "b"], "all keys of a fixed list, in its order", each=True, samples=20_000)
def fixed_keys(rows: list[str], rng: Random) -> dict[str, int]:
    return {key: rows.count(key) + int(discrete_laplace(rng, 1.0, 1)[0]) for key in ("a", "b")}


def _discrete_gaussian(sigma: float, n: int, rng: Random) -> Any:
    support = np.arange(-60, 61)
    weights = np.exp(-(support**2) / (2 * sigma**2))
    return rng.choice(support, n, p=weights / weights.sum())

"""Good noise on the numbers, the secret somewhere else: errors, lengths, orders, types, keys, ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.core.losses import ApproxDP, PureDP

from .specimen import Collection, Random, discrete_laplace

LEAKS = Collection()


def _noise(rng: Random, scale: float = 1.0) -> int:
    return int(discrete_laplace(rng, scale, 1)[0])


@LEAKS.add(PureDP(1), [1, 1], [1], "the error message quotes the count", vulnerability=31, each=True, samples=10_000)
def count_in_the_error(rows: list[int], rng: Random) -> int:
    noisy = len(rows) + _noise(rng)
    if noisy < 0:
        raise ValueError(f"negative answer for {len(rows)} rows")
    return noisy


@LEAKS.add(
    PureDP(1),
    [1.0],
    [1.0, math.nan],
    "one NaN turns an answer into an error",
    vulnerability=11,
    each=True,
    samples=10_000,
)
def error_on_one_side(values: list[float], rng: Random) -> int:
    return round(sum(values)) + _noise(rng)


@LEAKS.add(
    PureDP(1),
    ["b", "a", "b"],
    ["a", "b"],
    "keys come in the order of their true counts",
    vulnerability=27,
    each=True,
    samples=10_000,
)
def order_of_the_keys(rows: list[str], rng: Random) -> dict[str, int]:
    ranked = sorted(("a", "b"), key=lambda key: (-rows.count(key), key))
    return {key: rows.count(key) + _noise(rng) for key in ranked}


@LEAKS.add(
    PureDP(1),
    [4, 5],
    [4, 5, 6],
    "one noisy value for each row: the length is the count",
    vulnerability=22,
    each=True,
    samples=10_000,
)
def length_of_the_answer(values: list[int], rng: Random) -> list[int]:
    return [_noise(rng, 100.0) for _ in values]


@LEAKS.add(
    PureDP(1), ["a"], ["a", "b"], "only keys that occur are answered", vulnerability=27, each=True, samples=10_000
)
def keys_that_occur(rows: list[str], rng: Random) -> dict[str, int]:
    return {key: rows.count(key) + _noise(rng) for key in sorted(set(rows))}


@LEAKS.add(
    PureDP(1),
    [1, 2],
    [1, 2.5],
    "a fraction in the data changes the type of the answer",
    vulnerability=28,
    each=True,
    samples=10_000,
)
def type_of_the_answer(values: list[float], rng: Random) -> float:
    noisy = len(values) + _noise(rng)
    return noisy if all(isinstance(value, int) for value in values) else float(noisy)


@LEAKS.add(PureDP(1), list(range(3)), list(range(4)), "the noisy count is cut at the number of rows", vulnerability=28)
def noise_cut_at_the_data(rows: list[int], n: int, rng: Random) -> Any:
    return np.clip(len(rows) // 2 + discrete_laplace(rng, 1.0, n), 0, len(rows))


@LEAKS.add(
    PureDP(1),
    [0, 3, 4],
    [0, 3, 9],
    "the answer is clamped to the smallest and largest value in the data",
    vulnerability=28,
)
def clamped_to_the_data(values: list[int], n: int, rng: Random) -> Any:
    median = sorted(values)[1]
    return np.clip(median + discrete_laplace(rng, 9.0, n), min(values), max(values))


@LEAKS.add(PureDP(1), 5, 6, "seeded from the data: the answer is a function of the count", vulnerability=29)
def seeded_from_the_data(count: int, n: int, rng: Random) -> Any:
    own = np.random.default_rng(count)
    return np.full(n, count + int(discrete_laplace(own, 1.0, 1)[0]))


_THRESHOLD = 5
_RATE = 0.01


@LEAKS.add(
    ApproxDP(1, _RATE),
    {"rare": 1},
    {},
    "noisy count ≥ threshold where the proof has >",
    vulnerability=21,
    samples=500_000,
)
def at_least_the_threshold(counts: dict[str, int], n: int, rng: Random) -> Any:
    noisy = counts.get("rare", 0) + discrete_laplace(rng, 1.0, n)
    shown = (noisy >= _THRESHOLD) & ("rare" in counts)
    return np.where(shown, noisy, -1)


@LEAKS.add(PureDP(1), [2, 2], [2, 5], "the spread of the noise follows the largest value present", vulnerability=28)
def scale_read_from_the_data(values: list[int], n: int, rng: Random) -> Any:
    return len(values) + discrete_laplace(rng, float(max(values)), n)


@LEAKS.add(
    PureDP(1),
    "ann",
    "anne",
    "a padded text whose padding stops at the true length",
    vulnerability=22,
    each=True,
    samples=10_000,
)
def length_of_the_text(name: str, rng: Random) -> str:
    return "".join(chr(97 + int(letter)) for letter in rng.integers(0, 26, len(name)))

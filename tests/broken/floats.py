"""Right distributions on paper, wrong ones in the machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.core.losses import PureDP

from .specimen import Collection, Random, discrete_laplace

FLOATS = Collection()


@FLOATS.add(PureDP(1), 0, 1, "a double added to 0 keeps low-order bits that it loses when added to 1", vulnerability=1)
def float_noise_on_a_count(count: int, n: int, rng: Random) -> Any:
    return count + rng.laplace(0, 1, n)


@FLOATS.add(
    PureDP(1),
    0.0,
    1.0,
    "inverse-CDF Laplace from a 24-bit uniform: most doubles are never reached",
    vulnerability=2,
    samples=400_000,
)
def textbook_laplace_with_holes(value: float, n: int, rng: Random) -> Any:
    uniform = (rng.integers(1, 1 << 24, n) - (1 << 23)) / (1 << 24)
    noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    return np.round((value / 3 + noise) * 2.0**40) / 2.0**40


@FLOATS.add(PureDP(1), [0.25], [0.75], "the noise is on the integer grid, the sum is not", vulnerability=1)
def noise_rounded_value_not(values: list[float], n: int, rng: Random) -> Any:
    return sum(values) + np.rint(rng.laplace(0, 1, n))


@FLOATS.add(
    PureDP(1),
    [2.0**60, 120.0],
    [2.0**60, 140.0],
    "near 2⁶⁰ doubles are 256 apart: the sum moves by 256, not by 20",
    vulnerability=3,
)
def sum_rounded_to_a_coarse_double(values: list[float], n: int, rng: Random) -> Any:
    return int(sum(values)) + discrete_laplace(rng, 20.0, n)


@FLOATS.add(PureDP(1), 2, 3, "even noise: the last bit of the count goes out untouched", vulnerability=22)
def last_bit_unprotected(count: int, n: int, rng: Random) -> Any:
    return count + 2 * discrete_laplace(rng, 500.0, n)


@FLOATS.add(PureDP(1), [1] * 127, [1] * 128, "an 8-bit count wraps from 127 to −128", vulnerability=5)
def count_that_wraps(rows: list[int], n: int, rng: Random) -> Any:
    count = int(np.array(rows, np.int8).sum(dtype=np.int8))
    return count + discrete_laplace(rng, 1.0, n)


@FLOATS.add(PureDP(1), [1.0], [1.0, math.nan], "NaN passes through the clamp and the sum", vulnerability=9)
def nan_through_the_clamp(values: list[float], n: int, rng: Random) -> Any:
    return np.round(np.sum(np.clip(values, 0, 1)) + rng.laplace(0, 1, n), 3)


@FLOATS.add(
    PureDP(1), [0.0, 1.0], [0.0, 0.4], "the exact zero of a multiplied-out bound keeps its sign", vulnerability=8
)
def negative_zero(values: list[float], n: int, rng: Random) -> Any:
    centre = min(values) * (0.5 - max(values))
    noisy = np.rint(rng.laplace(0, 3, n))
    return np.where(noisy == 0, centre, noisy)

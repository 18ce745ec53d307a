"""Amplification and normalisation gone wrong."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.losses import PureDP

from .specimen import Collection, Random, discrete_laplace

SAMPLING = Collection()

_RATE, _ROUNDS = 0.1, 10
_AMPLIFIED = math.log1p(_RATE * math.expm1(1))


@SAMPLING.add(
    PureDP(Fraction(_ROUNDS * _AMPLIFIED)),
    [1],
    [],
    "ten answers from one secret sample, each charged as a fresh one",
    vulnerability=23,
    samples=100_000,
)
def sample_used_again(rows: list[int], n: int, rng: Random) -> Any:
    sampled = rng.binomial(len(rows), _RATE, n)
    return sampled[:, None] + discrete_laplace(rng, 1.0, (n, _ROUNDS))


@SAMPLING.add(
    PureDP(1),
    [1] * 10,
    [1] * 11,
    "divided by the private number of rows: answers are multiples of 1/n",
    vulnerability=24,
)
def divided_by_the_private_count(values: list[int], n: int, rng: Random) -> Any:
    return (sum(values) + discrete_laplace(rng, 10.0, n)) / len(values)


@SAMPLING.add(PureDP(_AMPLIFIED), [1], [], "every row kept, the rate of a sample charged", vulnerability=23)
def sample_that_keeps_all(rows: list[int], n: int, rng: Random) -> Any:
    return len(rows) + discrete_laplace(rng, 1.0, n)


@SAMPLING.add(
    PureDP(1), [4, 0, 4, 0], [0, 4, 0], "every second row: removing the first row shifts all others", vulnerability=17
)
def every_second_row(values: list[int], n: int, rng: Random) -> Any:
    return sum(values[::2]) + discrete_laplace(rng, 4.0, n)


@SAMPLING.add(PureDP(1), [1], [], "noise added only when a row was sampled")
def noise_only_for_the_sampled(rows: list[int], n: int, rng: Random) -> Any:
    sampled = rng.binomial(len(rows), _RATE, n)
    return np.where(sampled > 0, sampled + discrete_laplace(rng, 1.0, n), 0)

"""Choosing the best candidate while telling too much about it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.losses import ZCDP, PureDP

from .specimen import Collection, Random

SELECTION = Collection()


def exponential(scores: np.ndarray, rate: float, n: int, rng: Random) -> Any:
    """Choices with P(i) ∝ exp(rate·scores[i])."""
    return np.argmax(rate * scores + rng.gumbel(size=(n, len(scores))), axis=1)


def permute_and_flip(scores: np.ndarray, rate: float, n: int, rng: Random) -> Any:
    """The place of the largest score after one-sided exponential noise (the same law as permuting and flipping)."""
    return np.argmax(scores + rng.exponential(1 / rate, (n, len(scores))), axis=1)


@SELECTION.add(
    PureDP(1), [0, *[1] * 5], [1, *[0] * 5], "exp(ε·u/Δ) where the scores may move both ways: the divisor is 2Δ"
)
def exponential_without_the_two(scores: list[int], n: int, rng: Random) -> Any:
    return exponential(np.array(scores), 1.0, n, rng)


@SELECTION.add(
    PureDP(1), [3, *[5] * 5], [5, *[3] * 5], "a replaced row moves the score by 2, charged as 1", vulnerability=15
)
def exponential_with_wrong_sensitivity(scores: list[int], n: int, rng: Random) -> Any:
    return exponential(np.array(scores), 0.5, n, rng)


@SELECTION.add(PureDP(1), [3, 1], [4, 1], "the winner's true count comes with the winner")
def noisy_max_with_true_value(counts: list[int], n: int, rng: Random) -> Any:
    winner = np.argmax(np.array(counts) + rng.laplace(0, 1, (n, len(counts))), axis=1)
    return np.column_stack([winner, np.array(counts)[winner]])


@SELECTION.add(PureDP(1), [0] * 5, [1] * 5, "the winner's noisy value comes for free: all five counts moved it")
def noisy_max_with_noisy_value(counts: list[int], n: int, rng: Random) -> Any:
    noisy = np.array(counts) + np.rint(rng.laplace(0, 64, (n, len(counts)))) / 64
    return np.column_stack([noisy.argmax(axis=1), noisy.max(axis=1)])


@SELECTION.add(PureDP(1), [0] * 8, [1] * 8, "normal noise of scale 1/ε and a free value in noisy max")
def noisy_max_of_normals(counts: list[int], n: int, rng: Random) -> Any:
    return np.rint(64 * (np.array(counts) + rng.normal(0, 1, (n, len(counts))))).max(axis=1)


@SELECTION.add(
    ZCDP(Fraction(1, 8)),
    [0, 0],
    [1, -1],
    "charged ε²/8 as if its range were bounded like the exponential's",
    vulnerability=20,
)
def permute_and_flip_as_exponential(scores: list[int], n: int, rng: Random) -> Any:
    return permute_and_flip(np.array(scores), 0.5, n, rng)


@SELECTION.add(
    PureDP(1),
    [0, 0],
    [1, -1],
    "the rate for scores that only grow, used for scores that move both ways",
    vulnerability=20,
)
def permute_and_flip_as_monotone(scores: list[int], n: int, rng: Random) -> Any:
    return permute_and_flip(np.array(scores), 1.0, n, rng)


@SELECTION.add(PureDP(1), [2, 2, 0], [2, 1, 0], "ties go to the first candidate without noise")
def ties_without_noise(counts: list[int], n: int, rng: Random) -> Any:
    best = max(counts)
    tied = [place for place, count in enumerate(counts) if count == best]
    if len(tied) == 1:
        return np.full(n, tied[0])
    return exponential(np.array(counts), 0.5, n, rng)

"""Exponential, permute-and-flip, noisy max: exact laws at small size, privacy of the whole law, accuracy."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from discreet.core import events
from discreet.core.rounding import ball
from discreet.mechanisms import Exponential, NoisyMax, PermuteAndFlip
from discreet.noise import Entropy

KINDS = [Exponential, PermuteAndFlip, NoisyMax]


def law(kind: type, scores: list[int], rate: Fraction) -> list[float]:
    """The probability of each index, computed from the definition."""
    with ctx.workprec(200):
        if kind is Exponential:
            weights = [(ball(rate) * s).exp() for s in scores]
            return [float((w / sum(weights, arb(0))).mid()) for w in weights]
        if kind is PermuteAndFlip:
            return _permute_and_flip(scores, rate)
        return _noisy_max(scores, rate)


def _permute_and_flip(scores: list[int], rate: Fraction) -> list[float]:
    odds = [float((-ball(rate * (max(scores) - s))).exp().mid()) for s in scores]
    chance = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for i in order:
            chance[i] += reached * odds[i] / len(orders)
            reached *= 1 - odds[i]
    return chance


def _noisy_max(scores: list[int], rate: Fraction) -> list[float]:
    span = int(60 / rate)
    values = np.arange(min(scores) - span, max(scores) + span)
    mass = [np.exp(-float(rate) * np.abs(values - s)) for s in scores]
    mass = [m / m.sum() for m in mass]
    below = [np.cumsum(m) for m in mass]
    chance = []
    for i in range(len(scores)):
        others = np.ones(values.size)
        for j in range(len(scores)):
            if j < i:
                others *= np.concatenate([[0], below[j][:-1]])
            elif j > i:
                others *= below[j]
        chance.append(float((mass[i] * others).sum()))
    return chance


@pytest.mark.parametrize("kind", KINDS)
def test_choices_follow_the_law(kind: Any) -> None:
    scores = [3, 0, 5, 5]
    mechanism = kind(1, 1)
    entropy = Entropy.for_tests(11)
    tries = 6_000
    seen = np.bincount([mechanism.release(scores, entropy=entropy).values for _ in range(tries)], minlength=4)
    expected = np.array(law(kind, scores, mechanism.rate)) * tries
    # Chi-square with 3 degrees of freedom passes 45 with probability below 1e-9.
    assert ((seen - expected) ** 2 / expected).sum() < 45
    # Power: the law at twice the rate (the divisor 2 forgotten) is far outside.
    wrong = np.array(law(kind, scores, 2 * mechanism.rate)) * tries
    assert ((seen - wrong) ** 2 / wrong).sum() > 450


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("monotonic", [False, True])
def test_the_whole_law_moves_by_at_most_the_loss(kind: Any, monotonic: bool) -> None:
    mechanism = kind(Fraction(3, 2), 1, monotonic)
    base = [2, 0, 3]
    moves = itertools.product((0, 1) if monotonic else (-1, 0, 1), repeat=3)
    worst = 0.0
    for move in moves:
        p = law(kind, base, mechanism.rate)
        q = law(kind, [b + m for b, m in zip(base, move, strict=True)], mechanism.rate)
        worst = max(worst, *(abs(np.log(a / b)) for a, b in zip(p, q, strict=True)))
    assert worst <= float(mechanism.loss.epsilon) + 1e-9
    assert worst > 0.5 * float(mechanism.loss.epsilon)


def test_only_the_exponential_mechanism_claims_a_bounded_range() -> None:
    assert isinstance(Exponential(1).events[0], events.BoundedRange)
    assert isinstance(PermuteAndFlip(1).events[0], events.Pure)
    assert isinstance(NoisyMax(1).events[0], events.Pure)
    # And permute-and-flip really has none: its log-odds move apart by more than ε.
    rate, spread = Fraction(1, 2), []
    for before, after in [([0, 4, 4], [1, 3, 3]), ([4, 4, 0], [3, 3, 1]), ([0, 0, 1], [1, 1, 0])]:
        p, q = (np.log(law(PermuteAndFlip, s, rate)) for s in (before, after))
        spread.append((p - q).max() - (p - q).min())
    assert max(spread) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_accuracy_holds(kind: Any) -> None:
    mechanism = kind(1, 1)
    scores = np.concatenate([[100], np.zeros(99, np.int64) + 90])
    bound = mechanism.accuracy(0.1, size=100)
    entropy = Entropy.for_tests(5)
    losses = [100 - scores[mechanism.release(scores, entropy=entropy).values] for _ in range(500)]
    # At most a tenth may miss: Binomial(500, 0.1) exceeds 100 with probability below 1e-10.
    assert sum(loss > bound for loss in losses) <= 100


def test_permute_and_flip_is_no_worse_than_exponential() -> None:
    scores = [10, 8, 8, 5, 0, 0, 0]
    means = [np.dot(law(kind, scores, Fraction(1, 2)), scores) for kind in (PermuteAndFlip, Exponential)]
    assert means[0] > means[1]


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_scores_neither_fail_nor_wrap(kind: Any) -> None:
    ends = np.array([np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max])
    assert kind(1).release(ends).values == 2
    assert kind(1).release([7]).values == 0
    assert kind(1).release(np.array([2**64 - 1, 0], dtype=np.uint64)).values == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_candidates_are_quick_enough_to_try(kind: Any) -> None:
    scores = np.zeros(1_000_000, np.int64)
    scores[123_456] = 100
    assert kind(1).release(scores).values == 123_456

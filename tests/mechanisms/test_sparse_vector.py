"""Sparse vector: exact privacy of whole transcripts at small size, cut-off, values, accuracy."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import BudgetExceeded, PureDP
from discreet.mechanisms import SparseVector
from discreet.noise import Entropy


def pmf(scale: Fraction, values: np.ndarray) -> np.ndarray:
    weights = np.exp(-np.abs(values) / float(scale))
    p = np.exp(-1 / float(scale))
    return weights * (1 - p) / (1 + p)


def transcript_chance(mechanism: SparseVector, counts: list[int], said: list[bool]) -> float:
    """P(the run says exactly this), summed over the threshold's noise."""
    noise = np.arange(-400, 401)
    total = pmf(mechanism.threshold_scale, noise)
    p = np.exp(-1 / float(mechanism.question_scale))
    for count, above in zip(counts, said, strict=True):
        gap = mechanism.threshold + noise - count
        # P(X ≥ gap) for the discrete Laplace law.
        tail = np.where(gap > 0, p ** np.maximum(gap, 0) / (1 + p), 1 - p ** (1 - np.minimum(gap, 0)) / (1 + p))
        total = total * (tail if above else 1 - tail)
    return float(total.sum())


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("positives", [1, 2])
def test_every_transcript_moves_by_at_most_the_loss(monotonic: bool, positives: int) -> None:
    mechanism = SparseVector.for_epsilon(1, 3, positives, monotonic=monotonic)
    before = [2, 3, 1, 4]
    moves = [(1, 1, 1, 1)] if monotonic else [(1, 1, 1, 1), (1, -1, 1, -1), (-1, -1, -1, 1), (-1, 1, 0, 1)]
    worst = 0.0
    for move in moves:
        after = [a + m for a, m in zip(before, move, strict=True)]
        for code in range(16):
            said = [bool(code >> i & 1) for i in range(4)]
            if sum(said) > positives or (sum(said) == positives and not said[-1]):
                continue
            p, q = (transcript_chance(mechanism, counts, said) for counts in (before, after))
            worst = max(worst, abs(np.log(p / q)))
    assert 0.3 < worst <= 1


@pytest.mark.parametrize("at_once", [True, False])
def test_runs_follow_the_law(at_once: bool) -> None:
    mechanism = SparseVector.for_epsilon(1, 12, 1)
    entropy = Entropy.for_tests(1)
    tries = 8_000
    if at_once:
        first = sum(mechanism.release([2, 2], entropy=entropy).values[0].above for _ in range(tries))
    else:
        first = sum(mechanism.start(entropy=entropy).ask(2).above for _ in range(tries))
    expected = transcript_chance(mechanism, [2], [True])
    spread = np.sqrt(tries * expected * (1 - expected))
    assert abs(first - tries * expected) < 6.5 * spread
    # Power: without noise on the threshold the chance is off by many deviations.
    bare = SparseVector(12, 1, Fraction(1000), mechanism.epsilon_questions)
    assert abs(first - tries * transcript_chance(bare, [2], [True])) > 6.5 * spread


def test_the_cut_off_holds_and_the_budget_splits_exactly() -> None:
    mechanism = SparseVector.for_epsilon(2, 0, 3, value_share="0.25")
    assert mechanism.loss == PureDP(2)
    release = mechanism.release(np.full(50, 10**6))
    assert [answer.above for answer in release.values] == [True] * 3
    assert all(abs(answer.value - 10**6) < 10**4 for answer in release.values)
    run = mechanism.start()
    for _ in range(3):
        run.ask(10**6)
    with pytest.raises(BudgetExceeded):
        run.ask(0)


def test_values_use_fresh_noise() -> None:
    # Noise that made a question pass is large; a value that reused it would be too high by about its scale, 6.
    mechanism = SparseVector.for_epsilon(1, 0, 1, value_share="0.5")
    entropy = Entropy.for_tests(2)
    answers = [mechanism.release([0] * 30, entropy=entropy).values[-1] for _ in range(2000)]
    values = [answer.value for answer in answers if answer.above]
    # Scale 2, so the mean of about 2000 values has a deviation of 0.063: eight of them.
    assert len(values) > 1900
    assert abs(np.mean(values)) < 0.5


def test_accuracy_holds() -> None:
    mechanism = SparseVector.for_epsilon(1, 1000, 1)
    margin = int(mechanism.accuracy(0.05, questions=20)) + 1
    entropy = Entropy.for_tests(8)
    counts = [1000 - margin] * 19 + [1000 + margin]
    right = [[a.above for a in mechanism.release(counts, entropy=entropy).values] for _ in range(400)]
    wrong = sum(answers != [False] * 19 + [True] for answers in right)
    # Binomial(400, 0.05) exceeds 55 with probability below 1e-10.
    assert wrong <= 55

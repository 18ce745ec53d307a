"""Exponential coins and Gibbs choices decide as exact arithmetic does on the same words, on and round boundaries."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb, ctx, fmpz
from hypothesis import given
from hypothesis import strategies as st
from tests.noise.spies import Counted, Readings, Watched

from discreet.core.rounding import ball
from discreet.noise import Entropy, bernoulli_exp, gibbs, heads
from discreet.noise.exponential import _errors, _products

PRECISION = 600
ONES = (1 << 64) - 1


def scripted(*words: int) -> Entropy:
    return Entropy.scripted_for_tests(words)


def digits(odds: arb, bits: int) -> int:
    """The first bits of a number in [0, 1)."""
    return int((odds * arb(fmpz(1) << bits)).mid().floor().fmpz())


def words_of(number: int, count: int) -> list[int]:
    return [number >> 64 * (count - 1 - i) & ONES for i in range(count)]


def below(odds: arb, prefix: int, bits: int) -> bool | None:
    """Whether all U that start with these bits are below the odds (True), none (False), or it is open."""
    scaled = odds * arb(fmpz(1) << bits)
    return True if scaled >= prefix + 1 else False if scaled <= prefix else None


def is_decided(odds: arb, prefix: int, bits: int) -> bool:
    return below(odds, prefix, bits) is not None


EXPONENTS = [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(7), Fraction(40), Fraction(2**50 + 1, 2**51)]


@pytest.mark.parametrize("x", EXPONENTS, ids=str)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_coin_on_its_odds_is_extended_until_it_leaves_them(x: Fraction, depth: int, settled: list[Watched]) -> None:
    with ctx.workprec(PRECISION):
        on_it = words_of(digits((-ball(x)).exp(), 64 * depth), depth)
    for last, expected in ((0, True), (ONES, False)):
        settled.clear()
        source = Counted([*on_it, last])
        assert bool(bernoulli_exp(x, entropy=source)) == expected
        assert [uniform.words_read for uniform in settled] == [depth]
        assert source.handed_out == depth + 1


@pytest.mark.parametrize("x", EXPONENTS, ids=str)
def test_coins_off_their_odds_by_one_are_decided_at_once(x: Fraction, settled: list[Watched]) -> None:
    with ctx.workprec(PRECISION):
        on_it = digits((-ball(x)).exp(), 64)
    assert bernoulli_exp(x, 2, entropy=scripted(on_it - 1 if on_it else 0, on_it + 1)).tolist() == [on_it > 0, False]
    assert len(settled) == (on_it == 0)


def test_certain_and_impossible_coins() -> None:
    assert bernoulli_exp(0, 3, entropy=scripted(0, ONES, 5)).all()
    assert not bernoulli_exp(10**9, 3, entropy=scripted(1, ONES, 0, 1)).any()
    assert not bernoulli_exp(Fraction(10) ** 300, 1, entropy=scripted(0, 0, 0, 1)).any()


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(3), Fraction(1, 2**40), Fraction(2**70)], ids=str)
def test_heads_equal_the_exact_comparison_on_the_same_words(rate: Fraction, settled: list[Watched]) -> None:
    generator = np.random.default_rng(10)
    spread = min(int(Fraction(30) / rate) + 2, 1 << 62)
    scores = np.concatenate([generator.integers(-spread, spread, size=300), [spread, spread - 1]])
    gaps = [int(scores.max()) - int(score) for score in scores]
    words = []
    with ctx.workprec(PRECISION):
        for place, gap in enumerate(gaps):
            on_it = min(digits((-ball(rate * gap)).exp(), 64), ONES)
            shift = [0, 1, -1, 2**9, -(2**9), 2**13, -(2**13)][place % 7]
            words.append(min(max(on_it + shift, 0), ONES))
        coins = heads(scores, rate, entropy=scripted(*words)).tolist()
        readings = Readings(settled)
        assert readings.unused > 0
        for gap, word, coin in zip(gaps, words, coins, strict=True):
            odds = (-ball(rate * gap)).exp()
            assert coin is below(odds, *readings.of(word, 64, partial(is_decided, odds)))
        assert not readings.unused


def test_the_best_score_is_always_heads_and_a_rate_of_zero_makes_all_best() -> None:
    assert heads(np.array([3, 3, 1]), 10**6, entropy=scripted(ONES, ONES, ONES)).tolist() == [True, True, False]
    assert heads(np.array([3, -5, 1]), 0, entropy=scripted(ONES, ONES, ONES)).all()


class Shares:
    """The cumulative law of `gibbs` from its definition."""

    def __init__(self, scores: list[int], rate: Fraction) -> None:
        best = max(scores)
        weights = [(-ball(rate * (best - score))).exp() for score in scores]
        self.ends = [sum(weights[: i + 1], arb(0)) / sum(weights, arb(0)) for i in range(len(weights))]

    def holds(self, index: int, prefix: int, bits: int) -> bool:
        unit = arb(fmpz(1) << bits)
        starts = index == 0 or self.ends[index - 1] <= arb(prefix) / unit
        return starts and (index == len(self.ends) - 1 or arb(prefix + 1) / unit <= self.ends[index])

    def decide(self, prefix: int, bits: int) -> bool:
        return any(self.holds(index, prefix, bits) for index in range(len(self.ends)))


SCORES = [
    ([0, 5, 9], Fraction(1)),
    ([7, -3, 7, 5, 0, 6], Fraction(1, 3)),
    ([0, 0, 0], Fraction(0)),
    ([0, -2000, 0, -2000], Fraction(1)),
    ([-(1 << 63), (1 << 63) - 1, (1 << 63) - 2], Fraction(1, 10)),
    (list(range(60)), Fraction(1, 20)),
    ([0, 1 << 40], Fraction(1, 1 << 40)),
]


@pytest.mark.parametrize(("scores", "rate"), SCORES, ids=range(len(SCORES)))
def test_gibbs_equals_the_exact_choice_on_the_same_words(
    scores: list[int], rate: Fraction, settled: list[Watched]
) -> None:
    generator = np.random.default_rng(11)
    with ctx.workprec(PRECISION):
        shares = Shares(scores, rate)
        words = [0, ONES, *generator.integers(0, ONES, size=100, dtype=np.uint64, endpoint=True).tolist()]
        for end in shares.ends[:-1]:
            edge = min(digits(end, 64), ONES)
            shifts = (0, 1, 2, 2**9, 2**12, 2**13, 2**16, 2**20)
            words += [min(max(edge + sign * shift, 0), ONES) for shift in shifts for sign in (-1, 1)]
        drawn = gibbs(np.array(scores), rate, len(words), entropy=scripted(*words)).tolist()
        readings = Readings(settled)
        for word, index in zip(words, drawn, strict=True):
            assert shares.holds(index, *readings.of(word, 64, shares.decide))
        assert not readings.unused
        assert settled


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_gibbs_word_on_a_share_is_extended(depth: int, settled: list[Watched]) -> None:
    scores, rate = [7, -3, 7, 5, 0, 6], Fraction(1, 3)
    with ctx.workprec(PRECISION):
        on_it = words_of(digits(Shares(scores, rate).ends[2], 64 * depth), depth)
    for last, expected in ((0, 2), (ONES, 3)):
        settled.clear()
        assert int(gibbs(np.array(scores), rate, entropy=scripted(*on_it, last))) == expected
        assert settled[0].words_read == depth


def test_shares_that_are_exact_are_decided_on_the_spot() -> None:
    # Four equal scores: a word at the start of a quarter belongs to it, the one before to the quarter before.
    quarters = [0, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, 3 << 62, ONES]
    drawn = gibbs(np.array([4, 4, 4, 4]), 1, 7, entropy=scripted(*quarters))
    assert drawn.tolist() == [0, 0, 1, 1, 2, 3, 3]


@given(
    gaps=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20),
    rate=st.fractions(0, 2**65, max_denominator=2**80),
)
def test_weights_are_within_their_stated_errors(gaps: list[int], rate: Fraction) -> None:
    array = np.array(gaps, dtype=np.uint64)
    exponents = _products(array, rate)
    odds = np.exp(-exponents)
    errors = _errors(exponents, odds)
    with ctx.workprec(200):
        for gap, computed, error in zip(gaps, odds.tolist(), errors.tolist(), strict=True):
            assert abs(ball(Fraction(computed)) - (-ball(rate * gap)).exp()) <= ball(Fraction(error))


def test_the_margin_of_gibbs_covers_its_running_sums() -> None:
    generator = np.random.default_rng(12)
    for rate in (Fraction(1, 100), Fraction(1, 3)):
        scores = generator.integers(0, 1000, size=3000)
        gaps = (scores.max() - scores).astype(np.uint64)
        exponents = _products(gaps, rate)
        weights = np.exp(-exponents)
        ends = np.cumsum(weights)
        margin = 2 * float(_errors(exponents, weights).sum()) + float(ends[-1]) * 2.0**-52 * (gaps.size + 2)
        with ctx.workprec(200):
            exact = [(-ball(rate * int(gap))).exp() for gap in gaps]
            whole, run = sum(exact, arb(0)), arb(0)
            for place, weight in enumerate(exact):
                run += weight
                # What is compared is U·Ŵ with Ê; at U = E/W the two ought to agree.
                off = abs(ball(Fraction(float(ends[place]))) - run / whole * ball(Fraction(float(ends[-1]))))
                assert off + ball(Fraction(float(ends[-1]))) * arb(2) ** -52 < ball(Fraction(margin))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_scores_of_every_integer_dtype_are_read_right(dtype: type) -> None:
    scores = np.array([0, np.iinfo(dtype).max, 3], dtype=dtype)
    assert int(gibbs(scores, 50)) == 1
    assert heads(scores, 50).tolist() == [False, True, False]

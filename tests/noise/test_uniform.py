"""Uniform integers, rational coins, weighted choices and permutations: exact, shown by going through the words."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.noise.spies import Counted

from discreet.noise import Entropy, bernoulli, categorical, permutation, uniform

ONES = (1 << 64) - 1
words_of_64_bits = st.integers(0, ONES)


def scripted(*words: int) -> Entropy:
    return Entropy.scripted_for_tests(words)


@pytest.mark.parametrize("below", range(1, 18))
def test_uniform_takes_each_value_from_equally_many_words(below: int) -> None:
    bits = (below - 1).bit_length()
    # The leading bits decide; what follows them must not matter; a word too large gives way to the next one.
    last = below - 1
    spare = last << (64 - bits) if bits else 0
    for tail in (0, (1 << (64 - bits)) - 1):
        drawn = [int(uniform(below, entropy=scripted(top << (64 - bits) | tail, spare))) for top in range(1 << bits)]
        assert drawn == [top if top < below else last for top in range(1 << bits)]


@given(below=st.integers(1, 1 << 63), words=st.lists(words_of_64_bits, min_size=30, max_size=30))
def test_uniform_is_the_first_word_small_enough(below: int, words: list[int]) -> None:
    bits = (below - 1).bit_length()
    fitting = [word >> (64 - bits) for word in words if word >> (64 - bits) < below]
    if fitting:
        assert int(uniform(below, entropy=scripted(*words))) == fitting[0]


@pytest.mark.parametrize("below", [1 << 63, (1 << 63) - 1, (1 << 62) + 1])
def test_uniform_reaches_both_ends_of_the_widest_ranges(below: int) -> None:
    bits = (below - 1).bit_length()
    assert int(uniform(below, entropy=scripted(0))) == 0
    assert int(uniform(below, entropy=scripted((below - 1) << (64 - bits)))) == below - 1
    if below < 1 << bits:
        assert int(uniform(below, entropy=scripted(*[below << (64 - bits)] * 3, 0))) == 0


@given(
    p=st.fractions(0, 1, max_denominator=10**30),
    words=st.lists(words_of_64_bits, min_size=6, max_size=6),
    shared=st.integers(0, 4),
)
def test_a_rational_coin_compares_the_uniform_with_p(p: Fraction, words: list[int], shared: int) -> None:
    # The first `shared` words are those of p itself, so that later ones have to decide.
    digits = int(p * 2 ** (64 * shared))
    own = [digits >> 64 * (shared - 1 - i) & ONES for i in range(shared)]
    script = (own + words)[:6] if p < 1 else words
    number = sum(Fraction(word, 1 << 64 * (i + 1)) for i, word in enumerate(script))
    if number <= p < number + Fraction(1, 1 << 384):
        return
    assert bool(bernoulli(p, entropy=scripted(*script))) == (number < p)


def test_a_coin_on_its_odds_reads_on_and_only_then() -> None:
    third = ((1 << 64) - 1) // 3
    for script, expected, read in (
        ([third - 1], True, 1),
        ([third + 1], False, 1),
        ([third, third - 1], True, 2),
        ([third, third + 1], False, 2),
        ([third, third, third, 0], True, 4),
        ([third, third, third, ONES], False, 4),
    ):
        source = Counted(script)
        assert bool(bernoulli("1/3", entropy=source)) == expected
        assert source.handed_out == read


@pytest.mark.parametrize(("p", "word", "expected"), [(0, 0, False), (1, ONES, True), ("1/2", 1 << 63, False)])
def test_the_ends_of_the_odds(p: object, word: int, expected: bool) -> None:
    assert bool(bernoulli(p, entropy=scripted(word, 0, 0))) == expected


@pytest.mark.parametrize("weights", [[1], [0, 1], [1, 0, 2], [3, 0, 0, 5], [2, 2, 2, 2, 0], [0, 7, 1, 0]])
def test_weights_are_counts_of_equally_likely_places(weights: list[int]) -> None:
    total = sum(weights)
    bits = (total - 1).bit_length()
    drawn = Counter(int(categorical(weights, entropy=scripted(place << (64 - bits)))) for place in range(total))
    assert drawn == Counter({index: weight for index, weight in enumerate(weights) if weight})


@pytest.mark.parametrize("scale", [1, 1 << 58, 1 << 60, 10**30])
def test_weights_of_any_size_give_the_same_choice(scale: int) -> None:
    weights = [scale, 0, 2 * scale, 5 * scale]
    total = 8 * scale
    bits = (total - 1).bit_length()
    for place, expected in ((0, 0), (scale - 1, 0), (scale, 2), (3 * scale - 1, 2), (3 * scale, 3), (total - 1, 3)):
        padded = place << (-bits % 64)
        words = [padded >> 64 * i & ONES for i in reversed(range(-(-bits // 64)))]
        assert int(categorical(weights, entropy=scripted(*words))) == expected


def test_a_single_weight_as_large_as_the_range_of_words_works() -> None:
    assert categorical([1 << 63], 3).tolist() == [0, 0, 0]
    assert categorical([0, (1 << 63) - 1, 1], 5, entropy=scripted(*[ONES] * 5)).tolist() == [2] * 5
    assert categorical(np.array([0, 3], dtype=np.uint8), 2).tolist() == [1, 1]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4])
def test_each_order_of_the_keys_gives_its_own_permutation(length: int) -> None:
    orders = list(permutations(range(length)))
    assert Counter(tuple(permutation(length, entropy=scripted(*keys)).tolist()) for keys in orders) == Counter(orders)


def test_keys_that_tie_are_drawn_again() -> None:
    for keys in product((5, 9), repeat=3):
        source = Counted([*keys, 30, 10, 20])
        assert permutation(3, entropy=source).tolist() == [1, 2, 0]
        assert source.handed_out == 6

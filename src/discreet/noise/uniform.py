"""Exact uniform integers, coins and weighted choices with rational odds.

    uniform(n):           P(k) = 1/n for 0 ≤ k < n
    bernoulli(p):         P(1) = p, any rational p
    categorical(weights): P(i) = weights[i] / sum, integer weights
    permutation(n):       each order equally likely

A word that is not enough to decide is extended by more words, never rounded.

>>> uniform(6, 4, entropy=Entropy.for_tests(1)).tolist()
[3, 0, 2, 2]
>>> bernoulli(Fraction(1, 3), 4, entropy=Entropy.for_tests(1)).tolist()
[False, True, True, False]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from numbers import Integral

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, count, probability
from discreet.noise.batches import Coins, Integers, Size, empty, empty_coins, parts
from discreet.noise.entropy import Entropy, Words, chosen

__all__ = ["bernoulli", "categorical", "permutation", "uniform"]

_WORD = 1 << 64
_LONGEST = 1 << 32
"""Past this length two equal keys are likely, and a permutation would have to be drawn again and again."""


def uniform(below: int, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Integers 0 ≤ k < below, each equally likely; `below` is at most 2⁶³."""
    bound = count("below", below, limit=1 << 63)
    if bound == 0:
        raise InvalidArgument("below", below, "at least 1", "there is no integer below 0 to draw")
    source = chosen(entropy)
    out = empty(size)
    for part in parts(out):
        _fill_uniform(part, bound, source)
    return out


def bernoulli(p: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Coins:
    """True with probability exactly p."""
    odds = probability("p", p, zero=True, one=True)
    source = chosen(entropy)
    out = empty_coins(size)
    threshold, rest = divmod(odds.numerator * _WORD, odds.denominator)
    if threshold == _WORD:
        out[...] = True
        return out
    for part in parts(out):
        words = source.words(part.size)
        np.less(words, np.uint64(threshold), out=part)
        for index in np.flatnonzero(words == np.uint64(threshold)).tolist():
            part[index] = _continue_coin(Fraction(rest, odds.denominator), source)
    return out


def categorical(weights: Sequence[int], size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Indices i with probability weights[i] / sum(weights); weights are non-negative integers of any size."""
    ends = list(accumulate(_masses(weights)))
    if not ends or ends[-1] == 0:
        raise InvalidArgument("weights", f"{len(ends)} weights", "of positive sum", "give at least one positive weight")
    source = chosen(entropy)
    out = empty(size)
    if ends[-1] > 1 << 63:
        _fill_categorical_large(out.reshape(-1), ends, source)
        return out
    bounds = np.array(ends, dtype=np.uint64)
    for part in parts(out):
        _fill_uniform(part, ends[-1], source)
        part[...] = np.searchsorted(bounds, part.view(np.uint64), side="right")
    return out


def permutation(length: int, *, entropy: Entropy | None = None) -> Integers:
    """The integers below `length` in uniformly random order."""
    size = count("length", length, limit=_LONGEST)
    source = chosen(entropy)
    # Sorting distinct uniform keys gives every order the same chance; on a tie all keys are drawn again.
    while True:
        keys = source.words(size)
        order = np.argsort(keys, kind="stable")
        if not (np.diff(keys[order]) == 0).any():
            return order.astype(np.int64)


def _fill_uniform(out: Integers, bound: int, source: Entropy) -> None:
    bits = (bound - 1).bit_length()
    if bits == 0:
        out[...] = 0
        return
    shift = np.uint64(64 - bits)
    words: Words = source.words(out.size)
    out[...] = (words >> shift).view(np.int64)
    todo = np.flatnonzero(out >= bound) if bound < 1 << bits else np.empty(0, dtype=np.int64)
    while todo.size:
        out[todo] = (source.words(todo.size) >> shift).view(np.int64)
        todo = todo[out[todo] >= bound]


def _continue_coin(odds: Fraction, source: Entropy) -> bool:
    """A coin of probability `odds` by comparing further words of the uniform with further words of the odds."""
    while odds:
        threshold, rest = divmod(odds.numerator * _WORD, odds.denominator)
        word = source.bits(64)
        if word != threshold:
            return word < threshold
        odds = Fraction(rest, odds.denominator)
    return False


def _masses(weights: Sequence[int]) -> list[int]:
    """The weights as Python integers; what is wrong with one is said without showing it."""
    try:
        masses = list(weights)
    except TypeError:
        raise _not_weights(type(weights).__name__) from None
    for mass in masses:
        if isinstance(mass, bool | np.bool_) or not isinstance(mass, Integral):
            raise _not_weights(f"a list with a {type(mass).__name__}")
        if mass < 0:
            raise _not_weights("a list with a negative number")
    return [int(mass) for mass in masses]


def _not_weights(found: str) -> InvalidArgument:
    return InvalidArgument("weights", found, "a list of whole numbers from 0", "scale the weights to integers")


def _fill_categorical_large(out: Integers, ends: list[int], source: Entropy) -> None:
    bits = (ends[-1] - 1).bit_length()
    for position in range(out.size):
        place = source.bits(bits)
        while place >= ends[-1]:
            place = source.bits(bits)
        out[position] = bisect_right(ends, place)

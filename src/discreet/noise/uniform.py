"""Exact uniform integers, coins and weighted choices with rational odds.

    uniform(n):           P(k) = 1/n for 0 ≤ k < n
    bernoulli(p):         P(1) = p, any rational p
    categorical(weights): P(i) = weights[i] / sum, integer weights
    permutation(n):       each order equally likely

A word that is not enough to decide is extended by more words, never rounded.

>>> uniform(6, 4, entropy=Entropy.for_tests(1)).tolist()
[3, 0, 2, 2]
>>> bernoulli(Fraction(1, 3), 4, entropy=Entropy.for_tests(1)).tolist()
[False, False, False, False]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, count, probability
from discreet.noise.entropy import Entropy, Words, system
from discreet.noise.shape import Integers, Size, empty, parts

__all__ = ["Coins", "bernoulli", "categorical", "permutation", "uniform"]

Coins = np.ndarray[Any, np.dtype[np.bool_]]

_WORD = 1 << 64


def uniform(below: int, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Integers 0 ≤ k < below, each equally likely; `below` is at most 2⁶³."""
    bound = count("below", below, limit=1 << 63)
    if bound == 0:
        raise InvalidArgument("below", below, "at least 1", "there is no integer below 0 to draw")
    source = system() if entropy is None else entropy
    out = empty(size)
    bits = (bound - 1).bit_length()
    for part in parts(out):
        _fill_uniform(part, bound, bits, source)
    return out


def bernoulli(p: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Coins:
    """True with probability exactly p."""
    odds = probability("p", p, zero=True, one=True)
    source = system() if entropy is None else entropy
    out = empty(size)
    threshold, rest = divmod(odds.numerator * _WORD, odds.denominator)
    for part in parts(out):
        if threshold == _WORD:
            part[...] = 1
            continue
        words = source.words(part.size)
        part[...] = words < np.uint64(threshold)
        for index in np.flatnonzero(words == np.uint64(threshold)).tolist():
            part[index] = _continue_coin(Fraction(rest, odds.denominator), source)
    return out.astype(np.bool_)


def categorical(weights: Sequence[int], size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Indices i with probability weights[i] / sum(weights); weights are non-negative integers of any size."""
    masses = [count("weights", weight) for weight in weights]
    total = sum(masses)
    if total == 0:
        raise InvalidArgument("weights", weights, "of positive sum", "give at least one positive weight")
    if total > 1 << 63:
        # Any size of integers: draw the index's position with Python integers, one by one.
        return _categorical_large(masses, total, size, entropy)
    ends = np.cumsum(np.array(masses, dtype=np.int64).astype(object)).astype(np.uint64)
    places = uniform(total, size, entropy=entropy)
    return np.searchsorted(ends, places.astype(np.uint64), side="right").astype(np.int64)


def permutation(length: int, *, entropy: Entropy | None = None) -> Integers:
    """The integers below `length` in uniformly random order."""
    source = system() if entropy is None else entropy
    size = count("length", length)
    # Sorting distinct uniform keys gives every order the same chance; on a tie all keys are drawn again.
    while True:
        keys = source.words(size)
        order = np.argsort(keys, kind="stable")
        if not (np.diff(keys[order]) == 0).any():
            return order.astype(np.int64)


def _fill_uniform(out: Integers, bound: int, bits: int, source: Entropy) -> None:
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


def _categorical_large(masses: list[int], total: int, size: Size, entropy: Entropy | None) -> Integers:
    source = system() if entropy is None else entropy
    out = empty(size)
    flat = out.reshape(-1)
    bits = (total - 1).bit_length()
    for position in range(flat.size):
        place = source.bits(bits)
        while place >= total:
            place = source.bits(bits)
        index = 0
        while place >= masses[index]:
            place -= masses[index]
            index += 1
        flat[position] = index
    return out

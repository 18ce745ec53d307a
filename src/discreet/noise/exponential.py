"""Exact coins and choices with exponential odds.

    bernoulli_exp(x):          P(1) = exp(−x)
    gibbs(scores, rate):       P(i) ∝ exp(rate·scores[i])            (the exponential mechanism's law)
    heads(scores, rate):       independent coins, P(i heads) = exp(−rate·(max − scores[i]))

Scores are integers, rates exact rationals. In double precision each probability is known to a relative error of
a few units; a uniform that falls within it of a decision boundary is extended and settled by ball arithmetic.

>>> gibbs(np.array([0, 5, 9]), rate=1, size=8, entropy=Entropy.for_tests(0)).tolist()
[2, 2, 2, 2, 2, 2, 2, 2]
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, at_least
from discreet.core.rounding import ball
from discreet.noise.entropy import Entropy, system
from discreet.noise.settling import ULPS, Uniform
from discreet.noise.shape import Integers, Size, empty
from discreet.noise.uniform import Coins

__all__ = ["bernoulli_exp", "gibbs", "heads", "scores_argument"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]


def bernoulli_exp(x: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Coins:
    """True with probability exactly exp(−x), x ≥ 0."""
    exponent = at_least("x", x, 0)
    gaps = np.ones(empty(size).shape, dtype=np.int64)
    return _coins(gaps.reshape(-1), exponent, system() if entropy is None else entropy).reshape(gaps.shape)


def heads(scores: Integers, rate: Exactable, *, entropy: Entropy | None = None) -> Coins:
    """One coin for each score, heads with probability exp(−rate·(max − score)); a best score is always heads."""
    gaps = _gaps(scores)
    return _coins(gaps, at_least("rate", rate, 0), system() if entropy is None else entropy)


def gibbs(scores: Integers, rate: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Indices with P(i) ∝ exp(rate·scores[i])."""
    gaps = _gaps(scores)
    exponent = at_least("rate", rate, 0)
    source = system() if entropy is None else entropy
    out = empty(size)
    exponents = _products(gaps, exponent)
    weights = np.exp(-exponents)
    ends = np.cumsum(weights)
    # The weights' own errors, one unit for each addition, and the uniform's 64 bits rounded to 53.
    margin = float(_errors(exponents, weights).sum()) + float(ends[-1]) * 2.0**-52 * (gaps.size + 2)
    words = source.words(out.size)
    places = words.astype(np.float64) * (2.0**-64 * float(ends[-1]))
    first = np.searchsorted(ends, places - margin, side="right")
    last = np.searchsorted(ends, places + margin, side="right")
    doubtful = np.flatnonzero(first != last)
    if doubtful.size:
        law = _Law(gaps, exponent)
        for index in doubtful.tolist():
            first[index] = Uniform(int(words[index]), 64, source).find(0, gaps.size - 1, law.share)
    out.reshape(-1)[...] = first
    return out


def scores_argument(argument: str, value: object) -> Integers:
    """A one-dimensional, non-empty array of int64 scores."""
    scores = np.asarray(value)
    if scores.ndim != 1 or scores.size == 0 or scores.dtype.kind not in "iu":
        raise InvalidArgument(argument, value, "a non-empty list of integers", "round the scores to a Grid first")
    if scores.dtype.kind == "u" and (scores > np.uint64((1 << 63) - 1)).any():
        raise InvalidArgument(argument, value, "within int64", "use a coarser grid")
    return scores.astype(np.int64)


def _gaps(value: object) -> Integers:
    """max − score, without overflow: uint64 arithmetic is exact modulo 2⁶⁴ and the gap is below that."""
    scores = scores_argument("scores", value)
    gaps = scores.max().astype(np.uint64) - scores.astype(np.uint64)
    if (gaps >> np.uint64(63)).any():
        raise InvalidArgument("scores", "an array", "spread over less than 2^63", "clip or coarsen the scores")
    spread: Integers = gaps.astype(np.int64)
    return spread


def _products(gaps: Integers, rate: Fraction) -> Doubles:
    """rate·gap with a relative error below 2⁻⁵¹; past 2⁶⁰ it no longer matters how large, exp of it is 0 in doubles."""
    steep = float(min(rate, Fraction(1 << 60)))
    products: Doubles = gaps.astype(np.float64) * steep
    return products


def _errors(exponents: Doubles, odds: Doubles) -> Doubles:
    """How far `odds` may be from exp(−exponent): the exponent is off by 2⁻⁵¹ of itself, numpy.exp by ULPS units."""
    return odds * (np.minimum(exponents, 1e6) + ULPS) * 2.0**-51 + 1e-300


def _coins(gaps: Integers, rate: Fraction, source: Entropy) -> Coins:
    exponents = _products(gaps, rate)
    odds = np.exp(-exponents)
    words = source.words(gaps.size)
    uniforms = words.astype(np.float64) * 2.0**-64
    coins = uniforms < odds
    certain = gaps == 0 if rate else np.ones(gaps.size, dtype=np.bool_)
    # 64 bits read and rounded to 53 leave the uniform off by less than 2⁻⁵².
    doubtful = np.abs(uniforms - odds) <= _errors(exponents, odds) + 2.0**-52
    for index in np.flatnonzero(doubtful & ~certain).tolist():
        coins[index] = Uniform(int(words[index]), 64, source).is_below_exp(rate * int(gaps[index]))
    return coins | certain


class _Law:
    """The cumulative law of `gibbs` in ball arithmetic: each distinct gap is enclosed once at each precision."""

    def __init__(self, gaps: Integers, rate: Fraction) -> None:
        self._distinct, self._inverse = np.unique(gaps, return_inverse=True)
        self._rate = rate

    def _mass(self, stop: int) -> arb:
        counts = np.bincount(self._inverse[:stop], minlength=self._distinct.size)
        weights = ((-ball(self._rate * int(gap))).exp() for gap in self._distinct)
        return sum((int(n) * weight for n, weight in zip(counts, weights, strict=True)), arb(0))

    def share(self, last: int) -> arb:
        """P(index ≤ last), enclosed at the precision in force."""
        return self._mass(last + 1) / self._mass(self._inverse.size)

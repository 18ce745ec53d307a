"""Exact coins and choices with exponential odds.

    bernoulli_exp(x):          P(1) = exp(−x)
    gibbs(scores, rate):       P(i) ∝ exp(rate·scores[i])            (the exponential mechanism's law)
    heads(scores, rate):       independent coins, P(i heads) = exp(−rate·(max − scores[i]))

Scores are integers, rates exact rationals. In double precision each probability is known to a relative error of
a few units; a uniform that falls within it of a decision boundary is extended and settled by ball arithmetic. Whatever
numpy is told to do about underflow, it is no error here: that would depend on the scores.

>>> gibbs(np.array([0, 5, 9]), rate=1, size=8, entropy=Entropy.for_tests(0)).tolist()
[2, 2, 2, 2, 2, 2, 2, 2]

Margin. An exponent x = rate·gap is off by less than x·2⁻⁵¹ (three roundings), so ŵ = exp(−x̂) is off by less than
ŵ·(x + ULPS)·2⁻⁵¹, or by 10⁻³⁰⁰ where it underflows. A word rounded to a double and its unread bits move a uniform
by less than 2⁻⁵². `heads` compares the two. `gibbs` compares U·Ŵ with the running sums Ê; both carry the errors of
the weights, S in all, and one rounding for each of n additions: 2S + (n + 2)·Ŵ·2⁻⁵² covers them and U's own.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpz

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, at_least
from discreet.core.rounding import ball
from discreet.noise.batches import Coins, Integers, Size, empty, empty_coins, parts
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.refinement import ULPS, Uniform

__all__ = ["bernoulli_exp", "gibbs", "heads", "scores_argument", "toss"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Gaps = np.ndarray[Any, np.dtype[np.uint64]]

_LARGEST = (1 << 63) - 1
_LAST_WORD = (1 << 64) - 1


def bernoulli_exp(x: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Coins:
    """True with probability exactly exp(−x), x ≥ 0."""
    exponent = at_least("x", x, 0)
    source = chosen(entropy)
    out = empty_coins(size)
    toss(lambda: (-ball(exponent)).exp(), out, source)
    return out


@np.errstate(under="ignore")
def heads(scores: Integers, rate: Exactable, *, entropy: Entropy | None = None) -> Coins:
    """One coin for each score, heads with probability exp(−rate·(max − score)); a best score is always heads."""
    gaps = _gaps(scores)
    slope = at_least("rate", rate, 0)
    source = chosen(entropy)
    exponents = _products(gaps, slope)
    odds = np.exp(-exponents)
    words = source.words(gaps.size)
    uniforms = words.astype(np.float64) * 2.0**-64
    coins = uniforms < odds
    certain = gaps == 0 if slope else np.ones(gaps.size, dtype=np.bool_)
    doubtful = np.abs(uniforms - odds) <= _errors(exponents, odds) + 2.0**-52
    for index in np.flatnonzero(doubtful & ~certain).tolist():
        coins[index] = Uniform(int(words[index]), 64, source).is_below_exp(slope * int(gaps[index]))
    return coins | certain


@np.errstate(under="ignore")
def gibbs(scores: Integers, rate: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Indices with P(i) ∝ exp(rate·scores[i])."""
    gaps = _gaps(scores)
    slope = at_least("rate", rate, 0)
    source = chosen(entropy)
    out = empty(size)
    exponents = _products(gaps, slope)
    weights = np.exp(-exponents)
    ends = np.cumsum(weights)
    margin = 2 * float(_errors(exponents, weights).sum()) + float(ends[-1]) * 2.0**-52 * (gaps.size + 2)
    for part in parts(out):
        words = source.words(part.size)
        places = words.astype(np.float64) * (2.0**-64 * float(ends[-1]))
        part[...] = np.searchsorted(ends, places - margin, side="right")
        last = np.searchsorted(ends, places + margin, side="right")
        for index in np.flatnonzero(part != last).tolist():
            end = min(int(last[index]), gaps.size - 1)
            part[index] = Uniform(int(words[index]), 64, source).find(int(part[index]), end, _Law(gaps, slope).share)
    return out


def toss(odds: Callable[[], arb], out: Coins, source: Entropy) -> None:
    """Fill `out` with coins of the one probability that `odds` encloses at the precision in force."""
    with ctx.workprec(256):
        scaled = odds() * arb(fmpz(1) << 64)
        # A word below `low` is heads and one above `high` tails, whatever bits follow; there are one or two between.
        low = min(max(int(scaled.lower().floor().fmpz()), 0), _LAST_WORD)
        high = min(int(scaled.upper().floor().fmpz()), _LAST_WORD)
    for part in parts(out):
        words = source.words(part.size)
        np.less(words, np.uint64(low), out=part)
        for index in np.flatnonzero((words >= np.uint64(low)) & (words <= np.uint64(high))).tolist():
            part[index] = Uniform(int(words[index]), 64, source).is_below(odds)


def scores_argument(argument: str, value: object) -> Integers:
    """A one-dimensional, non-empty array of int64 scores; unsigned ones past its end are held there."""
    try:
        scores = np.asarray(value)
    except (TypeError, ValueError):
        raise _not_scores(argument, type(value).__name__) from None
    if scores.ndim != 1 or scores.size == 0 or scores.dtype.kind not in "iu":
        raise _not_scores(argument, f"{scores.dtype} array of shape {scores.shape}")
    if scores.dtype == np.uint64:
        scores = np.minimum(scores, np.uint64(_LARGEST))
    integers: Integers = scores.astype(np.int64)
    return integers


def _not_scores(argument: str, found: str) -> InvalidArgument:
    return InvalidArgument(argument, found, "a non-empty list of integers", "round the scores to a Grid first")


def _gaps(value: object) -> Gaps:
    """max − score. Arithmetic modulo 2⁶⁴ is exact here, since a gap is below 2⁶⁴."""
    scores = scores_argument("scores", value).view(np.uint64)
    gaps: Gaps = scores[np.argmax(scores.view(np.int64))] - scores
    return gaps


def _products(gaps: Gaps, rate: Fraction) -> Doubles:
    """rate·gap with a relative error below 2⁻⁵¹; past 2⁶⁰ it no longer matters how large, exp of it is 0 in doubles."""
    steep = float(min(rate, Fraction(1 << 60)))
    products: Doubles = gaps.astype(np.float64) * steep
    return products


def _errors(exponents: Doubles, odds: Doubles) -> Doubles:
    """How far `odds` may be from exp(−exponent)."""
    errors: Doubles = odds * (exponents + ULPS) * 2.0**-51 + 1e-300
    return errors


class _Law:
    """The cumulative law of `gibbs` in ball arithmetic; equal gaps are enclosed once."""

    def __init__(self, gaps: Gaps, rate: Fraction) -> None:
        self._distinct, self._inverse = np.unique(gaps, return_inverse=True)
        self._rate = rate

    def share(self, last: int) -> arb:
        """P(index ≤ last), enclosed at the precision in force."""
        weights = [(-ball(self._rate * int(gap))).exp() for gap in self._distinct]
        return self._mass(last + 1, weights) / self._mass(self._inverse.size, weights)

    def _mass(self, stop: int, weights: list[arb]) -> arb:
        counts = np.bincount(self._inverse[:stop], minlength=len(weights))
        return sum((int(n) * weight for n, weight in zip(counts, weights, strict=True)), arb(0))

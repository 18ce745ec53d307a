"""Exact discrete Laplace and geometric noise.

    discrete_laplace: P(X = k) ∝ exp(−|k| / scale) for every integer k
    geometric:        P(X = k) ∝ exp(−k / scale)   for every integer k ≥ 0

Both are exact: no floating-point value decides an outcome unless it is farther from the decision boundary than its
error bound. A magnitude of 2⁶³ − 1 or more is returned as 2⁶³ − 1: if numbers and noisy numbers are both held within
±(2⁶² − 1), that never shows.

>>> discrete_laplace(scale=10, size=5, entropy=Entropy.for_tests(0)).tolist()
[-14, 11, 3, -12, -11]

Method. With p = e^(−1/scale) and U uniform, P(|X| ≥ k) = 2pᵏ/(1+p) for k ≥ 1, so |X| = ⌊scale·(c − ln U)⌋ with
c = ln(2/(1+p)); the geometric law is the same with c = 0. One 64-bit word gives the sign and the first 63 bits of U.

Margin. Let y be the real number inside the floor and ŷ its double. For U ≥ 2⁻¹⁷, reading 63 bits and rounding them to a
double moves ln U by at most 2⁻⁴⁶ + 2⁻⁵³; `numpy.log` of a number in [2⁻¹⁷, 1] is off by at most ULPS·2⁻⁴⁹ = 2⁻⁴⁵; the
rounded constants, product and sum add less than 2⁻⁴⁷. Hence |ŷ − y| < scale·2⁻⁴⁴. The paths below compute 2^F·ŷ with
scale·2⁻⁴⁴ ≤ 2^−F and settle by ball arithmetic every draw with ŷ within 2^−F of a whole number, and every U < 2⁻¹⁷.
Settling takes some 20 µs, so a clock that fine can tell the one draw in 2¹⁷ that lies more than 11.7 scales out.

Scales above 2³⁰ would leave too many draws to settle: there the magnitude is split into a high digit, geometric with
scale/2ᵏ ≤ 2²⁰, and k low bits accepted with probability exp(−low/scale) ≥ 1 − 2⁻¹⁹.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, positive
from discreet.core.rounding import ball
from discreet.noise.batches import PART, Integers, Size, empty, parts
from discreet.noise.entropy import Entropy, Words, chosen
from discreet.noise.refinement import Uniform, double

__all__ = ["MAX_SCALE", "MIN_SCALE", "discrete_laplace", "geometric", "scale_argument"]


MAX_SCALE = Fraction(1 << 60)
MIN_SCALE = Fraction(1, 1 << 60)

_DIRECT = 1 << 30
_LARGEST = (1 << 63) - 1
_LOW_BITS = np.uint64(_LARGEST)
_SHORT = 2.0**-17


def discrete_laplace(scale: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Integers with P(k) ∝ exp(−|k|/scale); `size` as in numpy, None for one."""
    return _sample(_plan(scale_argument("scale", scale), True), size, entropy)


def geometric(scale: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Integers k ≥ 0 with P(k) ∝ exp(−k/scale)."""
    return _sample(_plan(scale_argument("scale", scale), False), size, entropy)


def scale_argument(argument: str, value: object) -> Fraction:
    """A positive number the samplers can work with."""
    number = positive(argument, value)
    if not MIN_SCALE <= number <= MAX_SCALE:
        raise InvalidArgument(argument, value, "from 2^-60 to 2^60 grid steps", "choose a coarser or finer grid")
    return number


@dataclass(frozen=True)
class _Plan:
    """The constants of one law: its scale, and the double-precision form 2^F·(offset − ln U)·scale."""

    scale: Fraction
    signed: bool
    high: Fraction
    low_bits: int
    fraction_bits: int
    intercept: float
    slope: float

    def offset(self) -> arb:
        """c: ln(2/(1+p)) for the two-sided law of the high digit, 0 for the one-sided."""
        return (2 / (1 + (-1 / ball(self.high)).exp())).log() if self.signed and not self.low_bits else arb(0)


@lru_cache(maxsize=256)
def _plan(scale: Fraction, signed: bool) -> _Plan:
    low_bits = 0
    if scale > _DIRECT:
        while scale / (1 << low_bits) > 1 << 20:
            low_bits += 1
    high = scale / (1 << low_bits)
    fraction_bits = min(32, next(f for f in range(44, 0, -1) if high <= 1 << (44 - f)))
    draft = _Plan(scale, signed, high, low_bits, fraction_bits, 0.0, 0.0)
    slope = high * (1 << fraction_bits)
    intercept = double(lambda: ball(slope) * draft.offset())
    return _Plan(scale, signed, high, low_bits, fraction_bits, intercept, float(slope))


def _sample(plan: _Plan, size: Size, entropy: Entropy | None) -> Integers:
    source = chosen(entropy)
    out = empty(size)
    fill = _split if plan.low_bits else _direct
    words: Words = np.empty(min(out.size, PART), dtype=np.uint64)
    with np.errstate(divide="ignore", invalid="ignore"):
        for part in parts(out):
            fill(plan, part, words[: part.size], source)
    words.fill(0)
    return out


def _direct(plan: _Plan, out: Integers, words: Words, source: Entropy) -> None:
    source.fill(words)
    signs = words.view(np.int64) >> 63
    words &= _LOW_BITS
    uniforms = words.view(np.int64).astype(np.float64)
    uniforms *= 2.0**-63
    shortest = uniforms.min()
    values = np.log(uniforms, out=uniforms)
    values *= -plan.slope
    values += plan.intercept
    if plan.high < 1:
        # Nothing lies below zero, so zero is no boundary: move what is near it to the middle of its cell.
        np.maximum(values, float(1 << (plan.fraction_bits - 1)), out=values)
    np.copyto(out, values, casting="unsafe")
    mask = (1 << plan.fraction_bits) - 1
    doubtful = ((out + 1) & mask) < 2
    if shortest < _SHORT:
        doubtful |= words < np.uint64(1 << 46)
    out >>= plan.fraction_bits
    if doubtful.any():
        for index in np.flatnonzero(doubtful).tolist():
            out[index] = Uniform(int(words[index]), 63, source).floor_log(plan.high, plan.offset)
    if plan.signed:
        out ^= signs
        out -= signs


def _split(plan: _Plan, out: Integers, words: Words, source: Entropy) -> None:
    one_sided = _Plan(plan.high, False, plan.high, 0, plan.fraction_bits, plan.intercept, plan.slope)
    todo = np.arange(out.size)
    while todo.size:
        magnitudes: Integers = np.empty(todo.size, dtype=np.int64)
        _direct(one_sided, magnitudes, words[: todo.size], source)
        kept = _append_low_bits(plan, magnitudes, source)
        if plan.signed:
            signs = -(source.words(todo.size) & np.uint64(1)).view(np.int64)
            kept &= (magnitudes != 0) | (signs == 0)
            magnitudes = (magnitudes ^ signs) - signs
        out[todo[kept]] = magnitudes[kept]
        todo = todo[~kept]


def _append_low_bits(plan: _Plan, magnitudes: Integers, source: Entropy) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Turn high digits into whole magnitudes; False where the low bits were rejected."""
    spare = 64 - plan.low_bits
    words = source.words(magnitudes.size)
    lows = (words & np.uint64((1 << plan.low_bits) - 1)).view(np.int64)
    coins = words >> np.uint64(plan.low_bits)
    kept = coins < np.uint64((1 << spare) - (1 << (spare - 19)) - 1)
    for index in np.flatnonzero(~kept).tolist():
        kept[index] = Uniform(int(coins[index]), spare, source).is_below_exp(int(lows[index]) / plan.scale)
    beyond = magnitudes > _LARGEST >> plan.low_bits
    magnitudes <<= plan.low_bits
    magnitudes |= lows
    magnitudes[beyond] = _LARGEST
    return kept

"""Exact two-sided noise with polynomial tails and rational probabilities.

A magnitude G ≥ 0 with P(G ≥ k) = Π_{i<tail} (s + i)/(k + s + i) for every k ≥ 0, where s > 0 is the scale; then a fair
coin gives X = G or X = −1 − G. The law of X is symmetric about −1/2, falls away from it like |k|^−(tail + 1), and each
of its probabilities is a rational function of s: what is to be said about it can be proven, and tested, exactly. With
t_s(k) = P(G = k) = tail·s(s+1)…(s+tail−1) / ((k+s)…(k+s+tail)):

- Shift: moving X by Δ changes its probabilities by a factor (1 + Δ/s)^(tail+1) at most. Δ steps change the magnitude by
  Δ at most, and each of the tail + 1 factors of t_s's denominator by (k + s + i + Δ)/(k + s + i) ≤ 1 + Δ/s.
- Dilation: for s′ = λs, λ ≥ 1, t_s/t_s′ falls with k from (s′ + tail)/(s + tail) ≤ λ to Π (s + i)/(s′ + i) ≥ λ^−tail.

>>> [pareto(Fraction(10), 3, entropy=Entropy.for_tests(seed)) for seed in range(5)]
[-2, -7, 7, 0, 0]
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive
from discreet.core.rounding import ball
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.refinement import Uniform

__all__ = ["HEAVIEST", "beyond", "pareto", "tail_argument"]

HEAVIEST = 16
"""The largest exponent of the tail; past it Laplace noise is hardly lighter."""


def pareto(scale: Exactable, tail: int, *, entropy: Entropy | None = None) -> int:
    """One draw of X; an int of any size."""
    size, power = positive("scale", scale), tail_argument("tail", tail)
    source = chosen(entropy)
    negative = source.bits(1) == 1
    drawn = Uniform(source.bits(64), 64, source)

    def reaches(k: int) -> bool:
        return drawn.is_below(lambda: _beyond_ball(size, power, k))

    high = 1
    while reaches(high):
        high *= 2
    low = high // 2
    # The magnitude reaches `low`, or `low` is 0, and does not reach `high`.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return -1 - low if negative else low


def beyond(scale: Fraction, tail: int, k: int) -> Fraction:
    """P(G ≥ k), exactly."""
    chance = Fraction(1)
    for i in range(tail):
        chance *= (scale + i) / (k + scale + i)
    return chance


def tail_argument(argument: str, value: object) -> int:
    """An exponent that the noise can have."""
    power = natural(argument, value)
    if power > HEAVIEST:
        raise InvalidArgument(argument, value, f"at most {HEAVIEST}", "choose a smaller exponent")
    return power


def _beyond_ball(scale: Fraction, tail: int, k: int) -> arb:
    size, chance = ball(scale), arb(1)
    for i in range(tail):
        chance *= (size + i) / (size + (k + i))
    return chance

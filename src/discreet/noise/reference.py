"""The textbook samplers in whole numbers, one draw at a time: slow, short, and what the fast ones are tested against.

Only integers and Fractions, only `Entropy.bits`. The Bernoulli of an exponential, the discrete Laplace and the discrete
Gaussian follow algorithms 1 to 3 of Canonne, Kamath and Steinke (2020).

>>> [discrete_laplace(Fraction(10), Entropy.for_tests(seed)) for seed in range(4)]
[-1, -17, 3, 13]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from discreet.noise.entropy import Entropy

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_staircase",
    "geometric",
    "gibbs",
    "uniform",
]


def uniform(below: int, entropy: Entropy) -> int:
    """0 ≤ k < below, each equally likely."""
    bits = (below - 1).bit_length()
    while True:
        number = entropy.bits(bits) if bits else 0
        if number < below:
            return number


def bernoulli(p: Fraction, entropy: Entropy) -> bool:
    """True with probability p."""
    return uniform(p.denominator, entropy) < p.numerator


def bernoulli_exp(x: Fraction, entropy: Entropy) -> bool:
    """True with probability exp(−x), x ≥ 0."""
    while x > 1:
        if not bernoulli_exp(Fraction(1), entropy):
            return False
        x -= 1
    # exp(−x) = P(the first failure among coins of odds x/1, x/2, x/3 … comes at an odd place).
    tosses = 1
    while bernoulli(x / tosses, entropy):
        tosses += 1
    return tosses % 2 == 1


def geometric(scale: Fraction, entropy: Entropy) -> int:
    """k ≥ 0 with P(k) ∝ exp(−k/scale)."""
    # exp(−1/scale) = exp(−q/p) for scale = p/q: a unit step of exp(−1/p) is drawn as low digit and whole turns.
    turn = scale.numerator
    while True:
        low = uniform(turn, entropy)
        if bernoulli_exp(Fraction(low, turn), entropy):
            break
    turns = 0
    while bernoulli_exp(Fraction(1), entropy):
        turns += 1
    return (low + turn * turns) // scale.denominator


def discrete_laplace(scale: Fraction, entropy: Entropy) -> int:
    """P(k) ∝ exp(−|k|/scale)."""
    while True:
        negative = entropy.bits(1) == 1
        magnitude = geometric(scale, entropy)
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def discrete_gaussian(sigma: Fraction, entropy: Entropy) -> int:
    """P(k) ∝ exp(−k²/2σ²)."""
    scale = Fraction(floor(sigma) + 1)
    variance = sigma * sigma
    while True:
        draw = discrete_laplace(scale, entropy)
        if bernoulli_exp((abs(draw) - variance / scale) ** 2 / (2 * variance), entropy):
            return draw


def discrete_staircase(epsilon: Fraction, sensitivity: int, inner: int, entropy: Entropy) -> int:
    """P(k) ∝ exp(−ε·⌊(|k| + sensitivity − inner)/sensitivity⌋): steps `sensitivity` wide, the first `inner`."""
    while True:
        turns = 0
        while bernoulli_exp(epsilon, entropy):
            turns += 1
        place = uniform(sensitivity, entropy)
        if place >= inner and not bernoulli_exp(epsilon, entropy):
            continue
        magnitude = turns * sensitivity + place
        negative = entropy.bits(1) == 1
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def categorical(weights: Sequence[int], entropy: Entropy) -> int:
    """i with probability weights[i] / sum(weights)."""
    place = uniform(sum(weights), entropy)
    index = 0
    while place >= weights[index]:
        place -= weights[index]
        index += 1
    return index


def gibbs(exponents: Sequence[Fraction], entropy: Entropy) -> int:
    """i with P(i) ∝ exp(exponents[i])."""
    best = max(exponents)
    while True:
        index = uniform(len(exponents), entropy)
        if bernoulli_exp(best - exponents[index], entropy):
            return index

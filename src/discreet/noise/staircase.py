"""Exact discrete staircase noise: the least mean absolute error of any ε-DP noise on integers.

    P(X = k) ∝ exp(−ε·⌊(|k| + sensitivity − inner) / sensitivity⌋)

Steps are `sensitivity` wide but the first, which is `inner` wide on each side; moving k by the sensitivity changes the
exponent by at most one step, so the noise is ε-DP. `optimal_inner` finds the best first step.

>>> discrete_staircase(1, sensitivity=10, inner=4, size=5, entropy=Entropy.for_tests(0)).tolist()
[-1, 18, -1, -12, -3]

Reference: Geng and Viswanath (2014). Method: the number of whole steps is geometric; a coin says whether the place in
the step is inner or outer, which weigh r and (Δ − r)·e^(−ε); the place is uniform there; a negative zero is rejected.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb, ctx

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive
from discreet.core.rounding import ball
from discreet.noise.batches import Coins, Integers, Size, empty, parts
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.exponential import toss
from discreet.noise.laplace import MAX_SCALE, MIN_SCALE, geometric
from discreet.noise.uniform import uniform

__all__ = ["discrete_staircase", "optimal_inner", "staircase_error"]

_LARGEST = (1 << 63) - 1


def discrete_staircase(
    epsilon: Exactable, sensitivity: int, inner: int, size: Size = None, *, entropy: Entropy | None = None
) -> Integers:
    """Integers with the staircase law."""
    exponent, step = _arguments(epsilon, sensitivity)
    first = natural("inner", inner)
    if first > step:
        raise InvalidArgument("inner", inner, f"at most the sensitivity {step}", "use optimal_inner")
    source = chosen(entropy)
    out = empty(size)
    for part in parts(out):
        _fill(part, exponent, step, first, source)
    return out


def _fill(out: Integers, epsilon: Fraction, step: int, inner: int, source: Entropy) -> None:
    def odds_of_outer() -> arb:
        weight = (step - inner) * (-ball(epsilon)).exp()
        return weight / (inner + weight)

    todo = np.arange(out.size)
    while todo.size:
        outer: Coins = np.empty(todo.size, dtype=np.bool_)
        toss(odds_of_outer, outer, source)
        turns = geometric(1 / epsilon, todo.size, entropy=source)
        places = uniform(inner, todo.size, entropy=source)
        if outer.any():
            places[outer] = inner + uniform(step - inner, int(outer.sum()), entropy=source)
        signs = -(source.words(todo.size) & np.uint64(1)).astype(np.int64)
        beyond = turns > (_LARGEST - places) // step
        magnitudes = np.where(beyond, _LARGEST, np.where(beyond, 0, turns) * step + places)
        kept = (magnitudes != 0) | (signs == 0)
        out[todo[kept]] = ((magnitudes ^ signs) - signs)[kept]
        todo = todo[~kept]


def staircase_error(epsilon: Fraction, sensitivity: int, inner: int) -> arb:
    """E|X|, enclosed. Sums over the steps are geometric series."""
    # Level j ≥ 0 holds |k| from jΔ − (Δ − r) to jΔ + r − 1 (from 0 for j = 0) with weight e^(−jε), both signs.
    delta, r = sensitivity, inner
    b = (-ball(epsilon)).exp()
    tail = b / (1 - b)
    zeroth_mass, zeroth_sum = 2 * r - 1, r * (r - 1)
    # Level j: Δ values a side, summing to jΔ² + Δ(2r − Δ − 1)/2 a side.
    offset = Fraction(delta * (2 * r - delta - 1), 2)
    mass = zeroth_mass + 2 * delta * tail
    total = zeroth_sum + 2 * (delta * delta * b / (1 - b) ** 2 + ball(offset) * tail)
    return total / mass


def optimal_inner(epsilon: Exactable, sensitivity: int) -> int:
    """The first step that makes E|X| least (any is private; this one is best)."""
    exponent, step = _arguments(epsilon, sensitivity)
    with ctx.workprec(512):
        # The continuous optimum is γ = 1/(1 + e^(ε/2)) of the step; on integers the best is near it.
        near = int((step / (1 + (ball(exponent) / 2).exp())).lower().floor().fmpz())
        candidates = sorted({min(max(near + shift, 1), step) for shift in range(-2, 4)})
        return min(candidates, key=lambda inner: staircase_error(exponent, step, inner).mid())


def _arguments(epsilon: Exactable, sensitivity: int) -> tuple[Fraction, int]:
    exponent = positive("epsilon", epsilon)
    if not MIN_SCALE <= exponent <= MAX_SCALE:
        raise InvalidArgument("epsilon", epsilon, "from 2^-60 to 2^60", "give an epsilon of a practical size")
    step = natural("sensitivity", sensitivity)
    if step > MAX_SCALE:
        raise InvalidArgument("sensitivity", sensitivity, "at most 2^60 grid steps", "use a coarser grid")
    return exponent, step

"""The loss laws of computations with bounded range, the exponential mechanism above all, alone and repeated.

For each neighbour pair such a computation has all its losses in some [t − ε, t], 0 ≤ t ≤ ε. For one t the worst pair
has P-mass a_t = (e^ε − e^t)/(e^ε − 1) at t and the rest at t − ε. Which t is worst depends on what happened before, so
repetitions are a game: H_k(x) = max over t of a_t·H_{k−1}(x − t) + (1 − a_t)·H_{k−1}(x − t + ε) is the largest δ(x) of
k steps with t chosen at each (Dong, Durfee, Rogers 2020 study it for t fixed beforehand). Playing it out costs little
and saves up to a seventh of ε against k times the worst single profile.

The profile of k steps makes a law that may be summed with others in any order: for a step T, whose maximum is inside,
and a sum L with another law, T(L(H)) ≤ L(T(H)), so steps of one kind can be moved together and followed by the rest.

>>> twice, = bounded_range(Fraction(1, 10), 2)
>>> type(twice[0]).__name__, twice[1], round(float(twice[0].ceiling), 3)
('Lattice', 1, 0.2)
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.accounting.pld.grid import TINY, ULP, Array
from discreet.accounting.pld.laws import Lattice, Law, Ramp
from discreet.core.rounding import float_up

__all__ = ["bounded_range"]

LEAST_CELLS, MOST_CELLS, CELL = 48, 512, 0.04
"""ε is divided into at least this many cells, more for few steps, and of at most this width."""
LONGEST = 64
"""The most steps played out together; more are summed as several such games."""
LEAST = Fraction(1, 10**6)
"""Below this the rounding of the game would show."""
EFFORT = 4500
"""The most steps times cells, which sets memory and time (its square)."""


def bounded_range(epsilon: Fraction, count: int) -> list[tuple[Law, int]]:
    """Laws, with how often each counts, that dominate `count` computations of range ε."""
    cells = max(LEAST_CELLS, min(MOST_CELLS, 2000 // count), math.ceil(epsilon / Fraction(CELL)))
    steps = min(count, LONGEST, EFFORT // cells)
    if steps < 2 or epsilon < LEAST:
        return [(_single(epsilon), count)]
    whole, rest = divmod(count, steps)
    parts: list[tuple[Law, int]] = [(_game(epsilon, steps, cells), whole)]
    if rest:
        parts.append((_game(epsilon, rest, cells) if rest > 1 else _single(epsilon), 1))
    return parts


def _single(epsilon: Fraction) -> Ramp:
    """One computation: δ_t(x) = (e^ε − e^t)·(1 − e^{x−t})/(e^ε − 1) is largest at t = (ε + x)/2, where it is
    (e^{ε/2} − e^{x/2})²/(e^ε − 1); its slope in e^x gives Q(L > x), and P(L > x) = (e^ε − e^{(ε+x)/2})/(e^ε − 1)."""
    top = float_up(epsilon)
    return Ramp(top, -1 / math.expm1(-top) * (1 + 8 * ULP), False, epsilon)


@lru_cache(maxsize=64)
def _game(epsilon: Fraction, steps: int, cells: int) -> Lattice:
    """`steps` computations, played out on multiples of ε/cells."""
    width = float_up(epsilon) / cells
    reach = steps * cells
    profile = np.maximum(-np.expm1(width * np.arange(-reach, reach + 1)), 0.0)
    for _ in range(steps):
        profile = _step(profile, cells, width)
    profile *= 1 + ULP * (64 * steps + 16 * reach)
    drops = (profile[:-1] - profile[1:]) / math.expm1(width)
    above = profile[:-1] + drops  # the mass above each point but the last, of the law with this profile
    masses = np.concatenate(([1.0], above)) - np.concatenate((above, [0.0]))
    errors = 16 * ULP * (1 + 1 / width) * np.concatenate(([1.0], profile[:-1]))
    return Lattice(-steps * epsilon, epsilon / cells, np.maximum(masses, 0.0) + errors + TINY)


def _step(profile: Array, cells: int, width: float) -> Array:
    """One more computation before those of `profile`: the largest value over all t, bounded from values at the grid.

    For t inside a cell [s, s + h] both losses are shared between their neighbours on the grid, with the same share λ
    above. Then e^{−t} is linear in λ, and a_t concave and above its chord by at most (1 − e^{−h})²·e^{s+3h}/4(e^ε − 1);
    with the chord for a_t the value is quadratic in λ: at most a quarter of (a_s − a_{s+h})·(D′ − D) above the larger
    of the values at the ends, where D and D′ are the differences H(x − t) − H(x − t + ε) there.
    """
    size = len(profile)
    middle = size // 2
    below = -np.expm1(width * np.arange(-middle - cells, -middle, dtype=np.float64))
    wide = np.concatenate((below, profile, np.zeros(cells)))
    top = cells * width
    shares = np.expm1(top - width * np.arange(cells + 1)) / math.expm1(top) * np.exp(width * np.arange(cells + 1))
    best = np.zeros(size)
    lows = wide[2 * cells : 2 * cells + size]
    gaps = wide[cells : cells + size] - lows
    values = shares[0] * gaps + lows
    for i in range(cells):
        next_lows = wide[2 * cells - i - 1 : 2 * cells - i - 1 + size]
        next_gaps = wide[cells - i - 1 : cells - i - 1 + size] - next_lows
        next_values = shares[i + 1] * next_gaps + next_lows
        bend = math.expm1(-width) ** 2 * math.exp((i + 3) * width - top) / (-4 * math.expm1(-top)) * (1 + 1e-9)
        turn = float(shares[i] - shares[i + 1]) / 4 * (1 + 1e-9)
        extra = turn * np.maximum(next_gaps - gaps, 0.0) + bend * np.maximum(gaps, next_gaps)
        np.maximum(best, np.maximum(values, next_values) + extra, out=best)
        gaps, values = next_gaps, next_values
    return np.minimum(best, 1.0)

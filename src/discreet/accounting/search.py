"""Searching where a condition starts to hold, and where a function is smallest.

`least` and `largest` return a value at which the condition was seen to hold, so a condition that is proven makes a
proven result. `lowest` works in floating point: use it only to choose a parameter for which every choice is sound.

>>> least(lambda x: x * x >= 2, Fraction(1, 8), Fraction(2), bits=20) ** 2 - 2 < Fraction(1, 2**17)
True
>>> round(lowest(lambda x: (x - 1) ** 2, -100, 100), 6)
1.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.core.rounding import shorten_down, shorten_up

__all__ = ["crossing", "largest", "least", "logarithm", "lowest"]

BITS = 40
"""Results are within one part in 2^BITS of the best."""
GOLDEN = (math.sqrt(5) - 1) / 2


def least(holds: Callable[[Fraction], bool], low: Fraction, high: Fraction, bits: int = BITS) -> Fraction:
    """The least value in (low, high] for which `holds`, from above; `holds` is monotone and true at `high`; low > 0."""
    while high - low > high / 2**bits:
        middle = shorten_up(_between(low, high), bits + 4)
        if middle >= high:
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def largest(holds: Callable[[Fraction], bool], low: Fraction, high: Fraction, bits: int = BITS) -> Fraction:
    """The largest value in [low, high) for which `holds`, from below; `holds` is monotone and true at `low` > 0."""
    while high - low > high / 2**bits:
        middle = shorten_down(_between(low, high), bits + 4)
        if middle <= low:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _between(low: Fraction, high: Fraction) -> Fraction:
    """The middle, in powers of two while the ends are far apart."""
    doublings = int(high / low).bit_length()
    return low * 2 ** (doublings // 2) if doublings > 3 else (low + high) / 2


def crossing(excess: Callable[[Fraction], float], low: Fraction, high: Fraction, bits: int = BITS) -> Fraction:
    """As `least` for the condition excess ≤ 0, where excess is also a smooth falling function of the logarithm: secants
    need far fewer calls than halving. The sign must be proven; the size only guides."""
    above, below = excess(low), excess(high)
    aim = 1
    for attempt in range(4 * bits + 64):
        if high - low <= high / 2**bits:
            break
        ratio, width = high / low, logarithm(high / low)
        share = above / (above - below) if math.isfinite(above) and attempt % 4 < 3 and ratio < 2**900 else 0.5
        # The next point is put a little beyond the estimate, on the side that closes the gap if the estimate is good.
        place = min(max(share + aim * 2.0 ** (-bits - 2) / width, 1e-3), 1 - 1e-3)
        middle = shorten_up(low * Fraction(math.exp(place * width)), bits + 8)
        if not low < middle < high:
            middle = _between(low, high)
        value = excess(middle)
        if value <= 0:
            high, below, aim = middle, value, -1
        else:
            low, above, aim = middle, value, 1
    return high


def lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """About where `function` is smallest: the best of a coarse grid, refined by golden section."""
    steps = 200
    grid = [low + (high - low) * i / steps for i in range(steps + 1)]
    best = min(range(steps + 1), key=lambda i: function(grid[i]))
    left, right = grid[max(0, best - 1)], grid[min(steps, best + 1)]
    for _ in range(50):
        inner = right - GOLDEN * (right - left)
        outer = left + GOLDEN * (right - left)
        if function(inner) < function(outer):
            right = outer
        else:
            left = inner
    return (left + right) / 2


def logarithm(value: Fraction) -> float:
    """ln(value) as a float, also where the value itself is out of a float's range."""
    return math.log(value.numerator) - math.log(value.denominator)

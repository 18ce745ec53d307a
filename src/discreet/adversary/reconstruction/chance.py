"""What guessing gets right: the test that an attack on n bits did better than chance, and what that proves about ε.

Let the bits be fair coins, and the answers ε-DP where neighbours differ in one bit. Whatever the other bits and the
answers are, a guess of one bit is right with probability at most q = e^ε/(1 + e^ε), so the number of right guesses is
stochastically at most binomial with n and q. For ε = 0 that is guessing.

>>> most_by_chance(1000), most_by_chance(1000, epsilon=0.1)
(595, 619)
>>> round(power(1000, 0.65), 3)
1.0
>>> round(epsilon_proven(990, 1000), 2)
3.11

All three are at an error of 10⁻⁹ unless told otherwise.
"""

from __future__ import annotations

import math

from discreet.adversary.auditing.confidence_bounds import proportion_low
from discreet.core.exact import count, natural

__all__ = ["ALPHA", "epsilon_proven", "most_by_chance", "power"]

ALPHA = 1e-9
"""How often the test calls luck an attack, at most."""


def most_by_chance(people: int, epsilon: float = 0.0, alpha: float = ALPHA) -> int:
    """As many right guesses of `people` bits are exceeded with probability at most α by any attack on ε-DP answers."""
    from scipy.stats import binom

    n, q = natural("people", people), 1 / (1 + math.exp(-epsilon))
    most = int(binom.isf(alpha, n, q))
    while binom.sf(most, n, q) > alpha:
        most += 1
    return most


def power(people: int, share: float, epsilon: float = 0.0, alpha: float = ALPHA) -> float:
    """How likely the test notices an attack that has each bit right with probability `share`."""
    from scipy.stats import binom

    return float(binom.sf(most_by_chance(people, epsilon, alpha), people, share))


def epsilon_proven(right: int, people: int, alpha: float = ALPHA) -> float:
    """The ε below which answers cannot be private, if `right` of so many fair bits were guessed from them."""
    n = natural("people", people)
    low = float(proportion_low(count("right", right, limit=n + 1), n, alpha))
    return max(0.0, math.log(low / (1 - low))) if low > 0 else 0.0

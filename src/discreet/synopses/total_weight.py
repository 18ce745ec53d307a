"""How much weight all records have together: declared, or bought with a share of ε.

The unit is whatever the histogram was made for, and its cells weigh at most `unit_weight` in all; so when it is added,
removed, or replaced by another such unit, the total weight moves by at most `unit_weight`. If the total is declared
public nothing is spent on it. If not, discrete Laplace noise of scale unit_weight/(SHARE·ε) buys it, which is
(SHARE·ε)-DP; what follows is computed from the noisy total, with the rest of ε.

>>> bought = Population(Fraction(1), unit_weight=1, size=None)
>>> bought.events, bought.rest
((Laplace(scale=Fraction(10, 1), sensitivity=1),), Fraction(9, 10))
>>> Population(Fraction(1), unit_weight=1, size=500).events
()
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.core import events
from discreet.core.exact import probability
from discreet.mechanisms.laplace import Laplace
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy

__all__ = ["LARGEST_SIZE", "SHARE", "Population", "total_weight"]

SHARE = Fraction(1, 10)
"""Of ε, for a total that was not declared."""
LARGEST_SIZE = 1 << 52
"""Totals that were bought are held within this."""


@dataclass(frozen=True)
class Population:
    """ε for everything, what one unit weighs at most, and the total if it is public."""

    epsilon: Fraction
    unit_weight: int
    size: int | None

    @property
    def counter(self) -> Laplace | None:
        """What buys the total."""
        return None if self.size is not None else Laplace.for_epsilon(self.epsilon * SHARE, self.unit_weight)

    @property
    def events(self) -> tuple[events.Event, ...]:
        """What is run to find the total."""
        return () if self.counter is None else self.counter.events

    @property
    def rest(self) -> Fraction:
        """The ε that is left."""
        return self.epsilon if self.size is not None else self.epsilon * (1 - SHARE)

    def found(self, histogram: Integers, entropy: Entropy) -> int:
        """The declared total, or a noisy one from 0 to `LARGEST_SIZE`."""
        if self.size is not None:
            return self.size
        noisy = Laplace.for_epsilon(self.epsilon * SHARE, self.unit_weight).release(
            total_weight(histogram), entropy=entropy
        )
        return max(0, min(int(noisy.values), LARGEST_SIZE))

    def doubt(self, beta: Fraction) -> float:
        """With probability 1 − β the total found is within this of the true one."""
        return 0.0 if self.counter is None else self.counter.accuracy(probability("beta", beta))


def total_weight(histogram: Integers) -> int:
    """The sum of all cells, each and all held within `LARGEST_SIZE`."""
    held = np.clip(histogram, 0, LARGEST_SIZE)
    # 2¹⁰ cells of 2⁵² add up to 2⁶² at most.
    pieces = (held[start : start + (1 << 10)] for start in range(0, held.size, 1 << 10))
    return min(sum(int(piece.sum()) for piece in pieces), LARGEST_SIZE)

"""Where the two probabilities of an event can lie, after it was counted in runs on both data sets.

With p the event's probability on one data set and q on the other, both regions hold the true (p, q) with error at
most α, whatever p and q are:

- `Region.box`: P(at least `p_hits` hits) ≥ α/2 and P(at most `q_hits` hits) ≥ α/2, two bounds of Clopper and Pearson.
- `Region.joint`: the product of these two tails is at least c. Each tail, taken at the true probability, is at most u
  with probability at most u, and the runs are independent, so −ln of the product is at most a sum of two exponential
  variables: P(product < c) ≤ c·(1 − ln c) = α (Fisher's combination). Where both rates are uncertain it reaches
  28 % less far than the box at α = 10⁻⁹; where one is nearly known, the box is a little better.

A region is kept as corners: for each of its points (p, q) some corner (p′, q′) has p′ ≤ p and q′ ≥ q. What is proven
grows with p and falls with q, so what every corner proves, the region proves.

>>> region = Region.joint((600, 300), 1000, 1e-9)
>>> round(region.epsilon(), 3), round(Region.box((600, 300), 1000, 1e-9).epsilon(), 3)
(0.366, 0.247)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.adversary.auditing.confidence_bounds import (
    delta_from,
    epsilon_from,
    proportion_high,
    proportion_low,
    renyi_from,
)
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.core.rounding import float_up

__all__ = ["Region"]

_CELLS = 256
"""Corners of a joint region; finer ones change nothing that is shown."""
_ORDERS = tuple(1 + 2.0**power for power in range(-10, 11))
_SLACK = 1e-9


@dataclass(frozen=True)
class Region:
    """All (p, q) with p ≥ p′ and q ≤ q′ for some corner (p′, q′)."""

    corners: tuple[tuple[float, float], ...]

    @staticmethod
    def box(hits: tuple[float, float], trials: int, alpha: float) -> Region:
        """Separate bounds on p and q."""
        low, high = proportion_low(hits[0], trials, alpha / 2), proportion_high(hits[1], trials, alpha / 2)
        return Region(((float(low), float(high)),))

    @staticmethod
    def joint(hits: tuple[float, float], trials: int, alpha: float, cells: int = _CELLS) -> Region:
        """All pairs whose tails are not both too small; with fewer `cells` it reaches a little farther."""
        from scipy.special import gammainccinv

        reach = float(gammainccinv(2, alpha)) * (1 + _SLACK)
        levels = np.linspace(0.0, reach, cells + 1)
        low = proportion_low(hits[0], trials, np.exp(-levels[1:]))
        high = proportion_high(hits[1], trials, np.exp(levels[:-1] - reach))
        return Region(tuple(zip(low.tolist(), high.tolist(), strict=True)))

    def epsilon(self, delta: float = 0.0) -> float:
        """The least ε that is possible at this δ."""
        return min(epsilon_from(p, q, delta) for p, q in self.corners)

    def delta(self, epsilon: float) -> float:
        """The least δ that is possible at this ε."""
        return min(delta_from(p, q, epsilon) for p, q in self.corners)

    def refutes(self, loss: Loss) -> bool:
        """Whether no pair of the region keeps this guarantee."""
        if isinstance(loss, PureDP):
            return self.epsilon() > loss.epsilon
        if isinstance(loss, ApproxDP):
            return self.epsilon(float_up(loss.delta)) > loss.epsilon
        if isinstance(loss, ZCDP):
            bounds = [(order, float(loss.rho) * order) for order in _ORDERS]
        elif isinstance(loss, RenyiDP):
            bounds = [(float(a), float(e)) for a, e in zip(loss.orders, loss.epsilons, strict=True)]
        else:
            raise InvalidArgument("loss", loss, "a PureDP, ApproxDP, ZCDP or RenyiDP", "state the claim as a loss")
        return all(
            any(renyi_from(p, q, order) > bound * (1 + _SLACK) for order, bound in bounds) for p, q in self.corners
        )

    def strength(self, delta: float) -> float:
        """ln((p − δ)/q) at the weakest corner: ε where it is above 0, and how far from it where it is not."""
        return min(math.log(max(p - delta, 1e-300)) - math.log(max(q, 1e-300)) for p, q in self.corners)

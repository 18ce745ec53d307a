"""What a test with so many runs would catch, and with what probability: an audit that finds nothing says this instead.

`Terms` are those of the final test of one event. `least_caught` asks: had there been an event of this probability on
one data set, how much less likely must it be on the other for the claim to be refuted with probability ≥ `power`?
The answer is for the event once it is tested; that the search finds it is another matter.

>>> terms = Terms(trials=1_000_000, alpha=1e-9, delta=0.0)
>>> round(terms.least_caught(PureDP(1), rate=0.5), 3), round(terms.least_caught(PureDP(1), rate=0.001), 2)
(1.023, 1.72)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.adversary.auditing.regions import Region
from discreet.core.errors import InvalidArgument
from discreet.core.losses import Loss, PureDP

__all__ = ["NOTHING", "RATES", "Terms"]

RATES = (0.5, 0.1, 0.01, 0.001)
"""Probabilities of events for which a report says what would have been caught."""
_COARSE = 32
"""Corners of a region that only helps to choose an event: many are looked at."""
_MOST = 40.0
"""Beyond this ε nothing is told apart."""


@dataclass(frozen=True)
class Terms:
    """What the final test is: runs on each data set, error allowed to each event, and δ."""

    trials: int
    alpha: float
    delta: float

    def region(self, hits: tuple[int, int], rates: tuple[float, float]) -> Region:
        """What these counts prove, by the rule that promises more at the rates expected beforehand."""
        expected = rates[0] * self.trials, rates[1] * self.trials
        box, joint = (rule(expected, self.trials, self.alpha) for rule in (Region.box, Region.joint))
        rule = Region.box if box.strength(self.delta) >= joint.strength(self.delta) else Region.joint
        return rule(hits, self.trials, self.alpha)

    def promise(self, hits: tuple[float, float]) -> float:
        """About the ε that these counts would prove; below 0 where they fall short of proving any."""
        box, joint = Region.box(hits, self.trials, self.alpha), Region.joint(hits, self.trials, self.alpha, _COARSE)
        return max(box.strength(self.delta), joint.strength(self.delta))

    def least_caught(self, claim: Loss, rate: float, power: float = 0.99) -> float:
        """The smallest ε′ such that an event of probability `rate` on one data set and (rate − δ)·e^(−ε′) on the other
        refutes the claim with at least this probability; infinite if there is none."""
        from scipy.stats import binom

        if not 0 < rate <= 1:
            raise InvalidArgument("rate", rate, "a probability above 0", "say how likely the event is")
        spent = (1 - power) / 2

        def caught(epsilon: float) -> bool:
            other = (rate - self.delta) * math.exp(-epsilon)
            worst = binom.ppf(spent, self.trials, rate), binom.ppf(1 - spent, self.trials, other)
            return self.region((int(worst[0]), int(worst[1])), (rate, other)).refutes(claim)

        low, high = 0.0, _MOST
        if rate <= self.delta or not caught(high):
            return math.inf
        while high - low > 1e-3 * max(high, 1e-3):
            middle = (low + high) / 2
            low, high = (low, middle) if caught(middle) else (middle, high)
        return high


NOTHING = PureDP(0)
"""The claim that outputs say nothing at all: what refutes it is the least that an audit can find."""

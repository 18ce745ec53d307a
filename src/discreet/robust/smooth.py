"""Noise for how sensitive data is near itself: smooth sensitivity, ε-private without any δ.

Guarantee: ε-DP for neighbours of the named relation (`add_remove` or `replace`; a unit is one record), exactly.

Let Wₖ be the ladder of a statistic f (`statistics.py`): |f(x) − f(x′)| ≤ W₀(x), Wₖ(x′) ≤ Wₖ₊₁(x). For a rational λ > 1

    S(x) = max(1, max_k Wₖ(x)·λ^−k)

is at least W₀(x), and S(x′) ≤ λ·S(x), since what x′ has at k is at most what x has at k + 1. The noise is that of
`noise/pareto.py` with scale s(x) = S(x)/α on whole numbers: f(x) + X, with P(|X| ≥ k) falling like k^−tail. Between
neighbours its law changes in two moves:

- shift, with s(x) held: |f(x) − f(x′)|/s(x) ≤ α, hence a factor of (1 + α)^(tail+1) at most
- dilation, from s(x) to s(x′): λ^tail at most, either way

so the loss is (tail + 1)·ln(1 + α) + tail·ln λ ≤ ε; α and λ are rationals chosen below that. All of it is on the grid
of places: the values are rounded to it first, each on its own, the statistic and its spreads are whole numbers there, S
is an exact rational, and the sampler decides by as many random bits as it takes. Nothing is rounded after the noise
but for reading a place as a number and holding it within the bounds.

`tail` trades the middle against the ends: 3 gives a finite variance; 1 is like Cauchy's law.

>>> import numpy as np
>>> from discreet.noise.entropy import Entropy
>>> from discreet.robust.statistics import OrderStatistic
>>> median = SmoothSensitivity(OrderStatistic(), epsilon=1, bounds=Bounds(0, 1000), step=1)
>>> median.loss
PureDP(epsilon=1)
>>> data = np.arange(1000) // 3 + 100
>>> median.release(data, entropy=Entropy.for_tests(0)).values
264.5
>>> median.sensitivity(data), median.accuracy("0.05", 2)
(1.213..., 28.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.domains import Bounds
from discreet.core.exact import Exactable, at_least, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import exp_down, expm1_down, float_up, shorten_down
from discreet.core.units import Neighbours
from discreet.mechanisms.quantiles.line import Line
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.pareto import beyond, pareto, tail_argument
from discreet.robust.statistics import Sample, Statistic, relation

__all__ = ["SmoothSensitivity"]

LEAST_EPSILON = Fraction(1, 100)
_SHORT = 24
"""Binary digits of λ − 1 and α: their powers stay short, and less than a millionth of ε is given away."""
_CLOSE = 1e-6
"""Terms of S this near to the largest as doubles are compared exactly."""


@dataclass(frozen=True)
class SmoothSensitivity:
    """A statistic with noise in proportion to its smooth sensitivity; `share` of ε pays for the shift."""

    statistic: Statistic
    epsilon: Fraction
    bounds: Bounds
    step: Fraction | None = None
    neighbours: Neighbours = "add_remove"
    tail: int = 3
    share: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        relation(self.statistic, self.neighbours)
        object.__setattr__(self, "epsilon", at_least("epsilon", positive("epsilon", self.epsilon), LEAST_EPSILON))
        object.__setattr__(self, "step", Line.between(self.bounds, self.step).step)
        object.__setattr__(self, "tail", tail_argument("tail", self.tail))
        object.__setattr__(self, "share", probability("share", self.share))

    @cached_property
    def line(self) -> Line:
        """Where values lie."""
        return Line.between(self.bounds, self.step)

    @cached_property
    def alpha(self) -> Fraction:
        """How far f moves, in scales of the noise: (tail + 1)·ln(1 + α) ≤ share·ε."""
        return shorten_down(expm1_down(self.epsilon * self.share / (self.tail + 1)), _SHORT)

    @cached_property
    def growth(self) -> Fraction:
        """λ: by what factor the scale moves; tail·ln λ ≤ (1 − share)·ε."""
        return 1 + shorten_down(exp_down(self.epsilon * (1 - self.share) / self.tail) - 1, _SHORT)

    @cached_property
    def events(self) -> tuple[events.Pure]:
        """What `release` will run."""
        return (events.Pure(self.epsilon),)

    @cached_property
    def loss(self) -> PureDP:
        """ε."""
        return pure(self.events[0])

    def sensitivity(self, data: object) -> float:
        """The smooth sensitivity of the data; secret, for study only."""
        sample = self._sample(data)
        smooth = self.smooth(sample)
        return float_up(smooth * self.line.step / self.statistic.divisor(sample.size))

    def accuracy(self, beta: Exactable, sensitivity: Exactable) -> float:
        """With probability 1 − β the answer is within this of the truth, on data of such smooth sensitivity."""
        chance = probability("beta", beta)
        scale = at_least("sensitivity", sensitivity, 0) / self.line.step / self.alpha
        high = 1
        while beyond(scale, self.tail, high) > chance:
            high *= 2
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if beyond(scale, self.tail, middle) > chance else (low, middle)
        return float_up((high + Fraction(1, 2)) * self.line.step)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """The statistic with noise."""
        sample = self._sample(data)
        scale = self.smooth(sample) / self.alpha
        source = chosen(entropy)
        noisy = self.statistic.value(sample) + pareto(scale, self.tail, entropy=source)
        # The noise is symmetric about −1/2.
        value = self.statistic.read(noisy + Fraction(1, 2), self.line, sample.size)
        return Release(value, self.loss, self.events, None, source.private)

    def smooth(self, sample: Sample) -> Fraction:
        """S(x) in steps, exactly."""
        rate, found, best = log(self.growth), [(0.0, 0, 1)], 0.0
        k = 0
        # No spread exceeds `top`, so later terms are no larger than this.
        while sample.top and log(sample.top) - k * rate > best - _CLOSE:
            spread = self.statistic.spread(sample, k, self.neighbours)
            if spread:
                size = log(spread) - k * rate
                best = max(best, size)
                found.append((size, k, spread))
            k += 1
        return max(spread / self.growth**at for size, at, spread in found if size > best - _CLOSE)

    def _sample(self, data: object) -> Sample:
        return Sample.of(self.line.places(data), self.line.size - 1)

"""Projected noise: noisy counts of all queries, then the nearest counts that some database could have.

Guarantee. Unit: whoever weighs at most `unit_weight` in the cells. Neighbours: that unit is there or not
(`changes=1`), or another is in its place (`changes=2`). Loss: ε-DP with Laplace noise, (ε, δ)-DP with Gaussian noise, a
total that was not declared included (`total_weight.py`). Argument: all counts are released with noise for how far the
unit can move them (`noisy_counts.py`); the projection looks at nothing but the noisy counts.

Accuracy. Let a be the true counts, ν the noise, a′ the projection. The set of counts that databases x ≥ 0 with Σx = n
(or Σx ≤ N) have is convex and holds a, so ⟨a + ν − a′, a − a′⟩ ≤ gap, the gap being what `fitting.py` certifies. Hence

    ‖a′ − a‖² ≤ ⟨a′ − a, ν⟩ + gap ≤ 2n·max_i |⟨A_i, ν⟩| + gap    and    ‖a′ − a‖² ≤ ‖ν‖² − ‖a + ν − a′‖² + 2·gap.

The second says that projecting never makes the error larger once 2·gap ≤ ‖a + ν − a′‖². The first is Theorem 12.8, by
the moments of the noise: with c = ‖A_i‖² at most, ⟨A_i, ν⟩ has at most the moments of N(0, cσ²) for Gaussian noise, and
ln E exp(s⟨A_i, ν⟩) ≤ −c·ln(1 − s²b²) for Laplace noise of scale b (discrete noise has smaller moments than continuous).

>>> from discreet.synopses import Attribute, Domain, Workload
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", (0, 18, 65, 120))))
>>> projection = Projection(workload=Workload.all_marginals(domain, 2), epsilon=1, size=1000)
>>> projection.loss
PureDP(epsilon=1)
>>> round(projection.release([100, 300, 100, 150, 250, 100]).values.total)
1000

Where the source is wrong (Dwork, Roth, section 12.4): its B₁ is written as a sphere and must be the ball; Lemma 12.9
has a factor of 2 that the projection on a convex set does not need; the constants of Theorem 12.8 and of its proof
differ (√(192·ln(2|X|/β)) and 16·√ln(|X|/β)); both bound sums of k Laplace noises as if they were normal, which needs
k > ln(|X|/β); and its noise √(8k·ln(1/δ))/ε, here `noise="book"`, is for ε < 1. It also projects on ±n·K; counts are
not negative, so half of that set is never needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, log, sqrt
from typing import Literal

import numpy as np

from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, probability
from discreet.core.losses import ZCDP, PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import log_up, sqrt_up
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.noise.entropy import Entropy, chosen
from discreet.synopses.base import Terms
from discreet.synopses.fitting import Cells, nearest
from discreet.synopses.noisy_counts import Measurement, gaussian_rho
from discreet.synopses.synopsis import Weights
from discreet.synopses.total_weight import Population

__all__ = ["Projection"]

MOST_CELLS = 1 << 23
"""Some minutes, and a gigabyte: weights are moved as a whole, a thousand times."""
MISSED = Fraction(1, 1 << 30)
"""The chance that a total that was bought lies beyond the bound used for it."""


@dataclass(frozen=True, kw_only=True)
class Projection(Terms):
    """Noise on all counts, projected; `noise=None` takes the kind with the smaller variance."""

    noise: Literal["laplace", "gaussian", "book"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workload.domain.dense(MOST_CELLS, "use fewer attributes or coarser bins, or MWEM")
        if self.noise not in (None, "laplace", "gaussian", "book"):
            raise InvalidArgument("noise", self.noise, "laplace, gaussian or book", "leave it out for the better one")
        if self.noise in ("gaussian", "book") and not self.delta:
            raise InvalidArgument("delta", self.delta, f"above 0 for noise={self.noise!r}", "give a δ, or use laplace")
        if self.noise == "book" and (self.epsilon > 1 or self.loss.epsilon > self.epsilon):
            raise InvalidArgument("epsilon", self.epsilon, "at most 1 for this theorem", "leave noise out, for every ε")
        _ = self.mechanism

    @cached_property
    def population(self) -> Population:
        """How the total is known."""
        return Population(self.epsilon, self.unit_weight, self.size)

    @cached_property
    def mechanism(self) -> Laplace | Gaussian:
        """The noise on all counts, in steps of 1/denominator."""
        rest, step = self.population.rest, self.workload.denominator
        if self.noise == "book":
            return Laplace(self._book_scale, Fraction(len(self.workload) * self._moved), len(self.workload))
        laplace, gaussian = self._measured(PureDP(rest)), None
        if self.delta and self.noise != "laplace":
            gaussian = self._measured(gaussian_rho(rest, self.delta, len(self.workload)))
        if isinstance(gaussian, Gaussian) and isinstance(laplace, Laplace):
            better = self.noise == "gaussian" or gaussian.sigma**2 < 2 * laplace.scale**2 + Fraction(step**2, 12)
            return gaussian if better else laplace
        return laplace

    def _measured(self, budget: PureDP | ZCDP) -> Laplace | Gaussian:
        return Measurement(self.workload, budget, self.unit_weight, self.changes).noise(self.workload)

    @property
    def _book_scale(self) -> Fraction:
        return self._moved * sqrt_up(8 * len(self.workload) * log_up(1 / self.delta)) / self.population.rest

    @property
    def _moved(self) -> int:
        """How far one unit moves one count, in steps."""
        return max(1, int(self.unit_weight * self.workload.denominator * self.workload.largest()))

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What `release` will run."""
        if self.noise == "book":
            # k counts composed, as the theorem has it, and not one vector that moves by k in ℓ1.
            each = events.Laplace(self._book_scale, self._moved)
            return (*self.population.events, events.Repeated(each, len(self.workload)))
        return (*self.population.events, *self.mechanism.events)

    def squared_error(self, beta: Exactable, total: float | None = None) -> float:
        """With probability 1 − β, Σ(projected − true)² over all queries is within this, plus the gap of the solver.

        `total` bounds the sum of the cells, by default the declared size.
        """
        tail = float(probability("beta", beta))
        most = self.size if total is None else total
        whole = _squared_norm(self.mechanism, len(self.workload), tail) / self.workload.denominator**2
        return whole if most is None else min(whole, 2 * most * self._farthest(tail))

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β no projected count is off by more, the gap of the solver left aside."""
        return sqrt(self.squared_error(beta))

    def _farthest(self, tail: float) -> float:
        """With probability 1 − tail, max |⟨A_i, ν⟩| over all columns is at most this."""
        step = self.workload.denominator
        squares = float(self.workload.column_norm(2))
        exponent = log(2 * self.workload.domain.size / tail)
        if isinstance(self.mechanism, Gaussian):
            # Values come back rounded to whole steps.
            rounding = float(self.workload.column_norm(1)) / 2
            return (float(self.mechanism.sigma) * sqrt(2 * squares * exponent) + rounding) / step
        return float(self.mechanism.scale) * _laplace_sum(squares, exponent) / step

    def release(
        self,
        histogram: object,
        *,
        entropy: Entropy | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """Weights on cells, whose answers to the workload are the projected counts."""
        domain, source = self.workload.domain, chosen(entropy)
        held = domain.held(histogram)
        total = float(self.population.found(held, source))
        if self.size is None:
            total += self.population.doubt(MISSED)
        noisy = self.mechanism.release(self.workload.counts(held), entropy=source).values / self.workload.denominator
        goal = total * self._farthest(0.05) / 4
        allowed = Cells(domain.size, total, self.size is not None)
        fit = nearest(self.workload, noisy, allowed, goal=goal, progress=progress)

        def error(beta: float) -> float:
            left = beta if self.size is not None else beta - float(MISSED)
            return sqrt(self.squared_error(left, total) + 2 * fit.gap) if left > 0 else inf

        return Release(Weights(domain, fit.weights, error), self.loss, self.events, None, source.private)


def _laplace_sum(squares: float, exponent: float) -> float:
    """What Σ q_i·ν_i exceeds with probability e^(−exponent) at most, for Laplace noise of scale 1 and Σq² ≤ squares.

    P(sum ≥ t) ≤ exp(−s·t − squares·ln(1 − s²)) for each s in (0, 1), so any s gives such a t; these are the best to a
    thousandth.
    """
    slopes = np.linspace(0, 1, 2_002)[1:-1]
    return float(((exponent - squares * np.log1p(-(slopes**2))) / slopes).min())


def _squared_norm(noise: Laplace | Gaussian, k: int, tail: float) -> float:
    """With probability 1 − tail, the sum of k squared noises is at most this, in squared steps."""
    if isinstance(noise, Laplace):
        return k * noise.accuracy(tail, k) ** 2
    exponent = log(1 / tail)
    # Hsu, Kakade, Zhang 2012; the rounding to whole steps adds √k/2 to the norm.
    return (float(noise.sigma) * sqrt(k + 2 * sqrt(k * exponent) + 2 * exponent) + sqrt(k) / 2) ** 2

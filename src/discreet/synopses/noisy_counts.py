"""Noisy counts of some queries of a workload, for a price that does not depend on which.

Guarantee. Unit: whoever weighs at most `unit_weight` w in the cells of the histogram. Neighbours: that unit is there or
not (`changes=1`), or another is in its place (`changes=2`). Loss: the `budget`, ε-DP or ρ-zCDP, for each set of queries
that is measured. Argument: the unit moves the exact counts of the queries by w times a mean of columns of their matrix
(or of differences of two), so by at most w times the largest norm of those; that is computed for just the queries that
are measured, and noise for it is added by `mechanisms.Laplace` (ℓ1, for ε) or `mechanisms.Gaussian` (ℓ2, for ρ). The
choice of queries may depend on whatever was released before.

Queries that differ little in which records they count cost more together than queries that count different ones: 500
cells of marginals drawn at random may have a column norm of 10, not 500, and need a fiftieth of the Laplace noise.

>>> from discreet.synopses.domain import Attribute, Domain
>>> work = Workload.marginals(Domain((Attribute("sex", ("F", "M")),)), [("sex",)])
>>> Measurement(work, PureDP(1)).noise(work).scale
Fraction(1, 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from discreet.accounting.calibration import gaussian_sigma
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, probability
from discreet.core.losses import ZCDP, PureDP
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.synopses.queries.factors import Doubles
from discreet.synopses.queries.workload import Workload

__all__ = ["Measurement", "Reading", "gaussian_rho"]

FINENESS = 1 << 24
"""Squared steps of the grid in the squared sensitivity: what Gaussian noise here has at least."""


@dataclass(frozen=True)
class Reading:
    """Noisy counts: of which queries, what was read, and the standard deviation of the noise."""

    queries: Integers
    values: Doubles
    deviation: float


@dataclass(frozen=True)
class Measurement:
    """Laplace noise for ε or Gaussian noise for ρ on the counts of at most `sample` queries (None: of all)."""

    workload: Workload
    budget: PureDP | ZCDP
    unit_weight: int = 1
    changes: int = 1
    sample: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.budget, PureDP | ZCDP):
            raise InvalidArgument("budget", self.budget, "PureDP or ZCDP", "give an ε or a ρ")
        if self.sample is not None:
            natural("sample", self.sample)
        self.noise(self.workload)

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What one reading runs, whichever queries it is of."""
        if self.sample is None:
            return self.noise(self.workload).events
        if isinstance(self.budget, PureDP):
            return (events.Pure(self.budget.epsilon),)
        variance = FINENESS / (2 * self.budget.rho)
        return (events.Gaussian(variance, Fraction(FINENESS), min(self.sample, len(self.workload))),)

    def noise(self, queries: Workload) -> Laplace | Gaussian:
        """The noise for these queries, on counts in steps of 1/denominator."""
        return self._noise(queries.column_norm(self._p, self.changes), len(queries))

    @property
    def _p(self) -> int:
        return 1 if isinstance(self.budget, PureDP) else 2

    def _noise(self, norm: Fraction, dimension: int) -> Laplace | Gaussian:
        moved = max(Fraction(1), (self.unit_weight * self.workload.denominator) ** self._p * norm)
        if isinstance(self.budget, PureDP):
            return Laplace.for_epsilon(self.budget.epsilon, moved, dimension=dimension)
        return Gaussian.for_zcdp(self.budget.rho, moved, dimension=dimension)

    def release(self, histogram: object, queries: Integers | None = None, *, entropy: Entropy | None = None) -> Reading:
        """Noisy counts of these queries, each of them once; of all where no sample was declared."""
        if self.sample is None and queries is not None:
            # The event is about all of them: fewer move by fewer steps, and noise of the same ratio would be coarser.
            raise InvalidArgument("queries", "some", "left out where no sample was declared", "declare the sample")
        if self.sample is not None and (queries is None or queries.size > self.sample):
            raise InvalidArgument("queries", "more", f"at most {self.sample}", "declare a larger sample")
        part = self.workload if queries is None else self.workload.subset(queries)
        noise, step = self.noise(part), self.workload.denominator
        noisy = noise.release(part.counts(histogram), entropy=entropy).values
        read = np.arange(len(part)) if queries is None else queries
        return Reading(read, noisy.astype(np.float64) / step, self._deviation(noise))

    def error(self, beta: Exactable) -> float:
        """With probability 1 − β no value of a reading is off by more."""
        many = len(self.workload) if self.sample is None else min(self.sample, len(self.workload))
        # Some of the queries move by no more than all of them, and each by no more than its largest entry.
        norm = min(self.workload.column_norm(self._p, self.changes), many * self.workload.largest() ** self._p)
        return self._noise(norm, many).accuracy(probability("beta", beta), many) / self.workload.denominator

    def _deviation(self, noise: Laplace | Gaussian) -> float:
        deviation = float(noise.sigma) if isinstance(noise, Gaussian) else float(noise.scale) * sqrt(2)
        return deviation / self.workload.denominator


def gaussian_rho(epsilon: Fraction, delta: Fraction, dimension: int) -> ZCDP:
    """The ρ of the least Gaussian noise that is (ε, δ)-DP."""
    # A hair more, so that ε computed back from σ does not round past what was asked.
    sigma = gaussian_sigma(epsilon, delta, FINENESS, dimension) * (1 + Fraction(1, 1 << 24))
    return ZCDP(FINENESS / (2 * sigma**2))

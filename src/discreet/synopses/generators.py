"""Base generators for linear queries: noisy counts of some queries, and a database that agrees with them.

Guarantee. Unit: whoever weighs at most `unit_weight` in the cells. Neighbours: that unit is there or not
(`changes=1`), or another is in its place (`changes=2`). Loss of a run: its budget, whichever queries it is given.
Argument: counts of those queries are released with noise for how far the unit can move them (`noisy_counts.py`); all
that follows looks at nothing else. `LinearGenerator` is one run as a mechanism: ε-DP, or (ε, δ)-DP with Gaussian noise,
a total that was not declared included.

A run on k queries finds a fractional database (Theorem 6.7), and draws `rows` rows of it if told to (Theorem 6.8):

- "least squares" (the default): the database whose answers are nearest to the noisy counts in ℓ2; if that is not within
  α of each, it is moved until it is, or as near as the steps allow. By first-order steps that need no matrix, for
  millions of cells.
- "linear program": the least t such that a database is within t of all noisy counts, by HiGHS. This is the book's; it
  has vertices for solutions, whose errors on what was asked are twice and their squares ten times those of the other.

α is what no noise exceeds but with probability β. As the true database is within α of all noisy counts, the program has
t ≤ α except with probability β, and is never infeasible: a larger t is the sign that the noise was. Answers to the k
queries are then within α + t of the truth. Cells that no query tells apart share their weight equally.

>>> from discreet.synopses import Attribute, Domain, Workload
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", (0, 18, 65, 120))))
>>> generator = LinearGenerator(workload=Workload.all_marginals(domain, 1), epsilon=2, size=1000)
>>> generator.loss, round(generator.release([100, 300, 100, 150, 250, 100]).values.total)
(PureDP(epsilon=2), 1000)

Where the source is wrong (Dwork, Roth, section 6.2.2): rounding a cell down to a multiple of α/|X| changes the cell by
α/|X| and so a count by up to α (not α/|X|), and the total is then no longer 1; n′ = ln k·ln(1/β)/α² rows should be
ln(2k/β)/2α² (Hoeffding and a union); (1 − log(1/β)) in its words is 1 − β. Here rows are drawn from the weights
themselves, so that nothing is rounded first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, inf, log, log2, sqrt
from typing import Any, Literal, Protocol

import numpy as np

from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, probability
from discreet.core.losses import ZCDP, PureDP
from discreet.core.mechanism import Release
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.uniform import categorical, uniform
from discreet.synopses.base import Terms
from discreet.synopses.fitting import Cells, Fit, Linear, levelled, merged, nearest
from discreet.synopses.noisy_counts import Measurement, Reading, gaussian_rho
from discreet.synopses.queries.factors import Doubles
from discreet.synopses.queries.workload import Workload
from discreet.synopses.synopsis import Answers, Weights
from discreet.synopses.total_weight import Population

__all__ = ["BaseGenerator", "LinearBase", "LinearGenerator", "sample_needed"]

MOST_CELLS = 1 << 23
MOST_ENTRIES = 1 << 24
"""Entries other than 0 of a linear program: above it HiGHS takes minutes to hours."""
WRITTEN = 1 << 20
"""Up to so many entries the queries are written down, and cells that none tells apart are merged."""
TOLERANCE = 0.1
"""Of the squared distance: in the mean square, answers are within a third of the noise of the best ones."""
BETA = 0.05
"""α of the fit is for this chance of a larger noise."""
Solver = Literal["least squares", "linear program"]


class BaseGenerator(Protocol):
    """Builds a synopsis from the counts of a few queries: what `Boosting` runs in every round."""

    @property
    def sample(self) -> int:
        """How many queries a run is given at most."""

    @property
    def bits(self) -> float:
        """A synopsis is one of at most 2^bits; ∞ where there is no such bound."""

    @property
    def events(self) -> tuple[events.Event, ...]:
        """What one run costs, whichever queries it is given."""

    def error(self, beta: Exactable) -> float:
        """With probability 1 − β the synopsis is within this on all the queries it was given; ∞ where not known."""

    def generate(
        self, histogram: Integers, queries: Integers, cells: Cells, past: tuple[Reading, ...], entropy: Entropy
    ) -> tuple[Weights | Answers, Reading]:
        """A synopsis from these queries, which may use earlier readings as well, and what was read."""


def sample_needed(bits: float, eta: Exactable, beta: Exactable) -> float:
    """How many queries drawn from D make sure, but for a chance β, that every synopsis of so many bits that is accurate
    on all of them is accurate on a ½ + η part of D (Lemma 6.5).

    One that is not is accurate on all k with probability below (½ + η)^k, and there are 2^bits of them. The book bounds
    this by e^(−(½ − η)k), and 2^bits by e^bits.
    """
    share = float(probability("eta", eta, zero=True))
    if share >= 0.5:
        raise InvalidArgument("eta", eta, "below 1/2", "give how much more than half must be accurate")
    return (bits * log(2) + log(1 / float(probability("beta", beta)))) / -log(0.5 + share)


@dataclass(frozen=True)
class LinearBase:
    """Noisy counts, and a database near them; `rows=None` keeps its weights, else so many rows are drawn from it."""

    workload: Workload
    budget: PureDP | ZCDP
    sample: int
    unit_weight: int = 1
    changes: int = 1
    size: int | None = None
    rows: int | None = None
    solver: Solver = "least squares"

    def __post_init__(self) -> None:
        domain = self.workload.domain
        if self.solver not in ("least squares", "linear program"):
            raise InvalidArgument("solver", self.solver, "'least squares' or 'linear program'", "name one of the two")
        if self.rows is not None:
            natural("rows", self.rows)
        domain.dense(MOST_CELLS, "use fewer attributes or coarser bins, or MWEM")
        if self.solver == "linear program" and self.entries > MOST_ENTRIES:
            cost = f"about {self.entries:.3g} entries, {24 * self.entries / 2**30:.3g} GB and minutes to hours"
            remedy = "use solver='least squares', which writes no matrix"
            raise InvalidArgument("workload", cost, f"at most {MOST_ENTRIES:,} for the linear program", remedy)
        _ = self.measurement

    @cached_property
    def entries(self) -> float:
        """How many entries of `sample` queries are not 0, about."""
        domain, k = self.workload.domain, len(self.workload)
        return float(self.workload.answers(np.ones(domain.size)).sum()) * min(1.0, self.sample / k)

    @cached_property
    def measurement(self) -> Measurement:
        """The noise on the counts."""
        sample = None if self.sample >= len(self.workload) else self.sample
        return Measurement(self.workload, self.budget, self.unit_weight, self.changes, sample)

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What one run costs."""
        return self.measurement.events

    @property
    def bits(self) -> float:
        """Databases of so many rows are C(|X| + rows − 1, rows) in number."""
        return inf if self.rows is None else log2(comb(self.workload.domain.size + self.rows - 1, self.rows))

    def error(self, beta: Exactable) -> float:
        """With probability 1 − β the database is within this on all the queries it was given."""
        # Weights add up to the total that was found: if that is not the true one, the truth is not among them.
        if self.solver == "least squares" or self.size is None:
            return inf
        tail = probability("beta", beta)
        if self.rows is None:
            return 2 * self.measurement.error(tail)
        drawn = sqrt(log(4 * min(self.sample, len(self.workload)) / tail) / (2 * self.rows)) * float(self.size)
        return 2 * self.measurement.error(tail / 2) + drawn

    def generate(
        self, histogram: Integers, queries: Integers, cells: Cells, past: tuple[Reading, ...], entropy: Entropy
    ) -> tuple[Weights, Reading]:
        """A database from these queries and earlier readings, and what was read."""
        # Where all might have been asked all are read: that costs no more.
        asked = None if self.measurement.sample is None else np.unique(queries)
        reading = self.measurement.release(histogram, asked, entropy=entropy)
        fit = self.fitted((*past, reading), cells)
        weights = fit.weights
        if self.rows is not None and cells.total > 0:
            # Whole weights for an exact draw; what is lost is 2⁻⁴⁰ of the total.
            whole = np.rint(weights * (2.0**40 / max(float(weights.sum()), 1e-300))).astype(np.int64)
            drawn = categorical(whole.tolist(), self.rows, entropy=entropy)
            weights = np.bincount(drawn, minlength=weights.size).astype(np.float64) * (float(weights.sum()) / self.rows)
        return Weights(self.workload.domain, weights, self._error(fit)), reading

    def _error(self, fit: Fit) -> Callable[[float], float] | None:
        """What is known once the largest deviation is; it is about the queries that were read."""
        if self.rows is not None or self.measurement.sample is not None:
            return None
        return lambda beta: self.measurement.error(beta) + fit.deviation

    def fitted(self, readings: tuple[Reading, ...], cells: Cells) -> Fit:
        """The database for all these readings; what was read with less noise counts for more."""
        queries, values, precision = _pooled(readings, len(self.workload))
        slack = self.measurement.error(BETA)
        if self.solver == "linear program":
            matrix, kind, few = self._merged(queries, cells)
            fit = levelled(matrix, values, few)
            if fit is None:
                fit = self._first_order(_Rows(matrix, np.ones(len(values))), values, few, slack)
            return _spread(fit, kind)
        scale = np.sqrt(precision / precision.max())
        if self.entries <= WRITTEN:
            matrix, kind, few = self._merged(queries, cells)
            return _spread(self._first_order(_Rows(matrix, scale), values, few, slack), kind)
        part = self.workload if queries.size == len(self.workload) else self.workload.subset(queries)
        return self._first_order(_Scaled(part, scale), values, cells, slack)

    def _merged(self, queries: Integers, cells: Cells) -> tuple[Any, Integers, Cells]:
        matrix, kind = merged(self.workload.rows(queries.tolist()))
        return matrix, kind, Cells(matrix.shape[1], cells.total, cells.exactly)

    def _first_order(self, rows: _Scaled, values: Doubles, cells: Cells, slack: float) -> Fit:
        fit = nearest(rows, values * rows.scale, cells, tolerance=TOLERANCE)
        deviation = float(np.abs(fit.answers / rows.scale - values).max())
        if deviation > slack and np.ptp(rows.scale) == 0:
            nearer = nearest(rows, values, cells, slack=slack, start=fit.weights, most=300)
            fit = nearer if nearer.deviation < deviation else fit
            deviation = min(deviation, nearer.deviation)
        return replace(fit, deviation=deviation)


@dataclass(frozen=True, kw_only=True)
class LinearGenerator(Terms):
    """One run on all queries, or on `sample` of them drawn at random, each as likely as the others."""

    sample: int | None = None
    rows: int | None = None
    solver: Solver = "least squares"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample is not None:
            natural("sample", self.sample)
        _ = self.base

    @cached_property
    def population(self) -> Population:
        """How the total is known."""
        return Population(self.epsilon, self.unit_weight, self.size)

    @cached_property
    def base(self) -> LinearBase:
        """The run."""
        k = len(self.workload) if self.sample is None else self.sample
        rest = self.population.rest
        budget = gaussian_rho(rest, self.delta, min(k, len(self.workload))) if self.delta else PureDP(rest)
        return LinearBase(self.workload, budget, k, self.unit_weight, self.changes, self.size, self.rows, self.solver)

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What `release` will run."""
        return (*self.population.events, *self.base.events)

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β all the queries that were drawn are within this; ∞ where nothing is known before."""
        return self.base.error(beta)

    def release(
        self,
        histogram: object,
        *,
        entropy: Entropy | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """Weights on cells."""
        domain, source = self.workload.domain, chosen(entropy)
        held = domain.held(histogram)
        cells = Cells(domain.size, float(self.population.found(held, source)))
        k = len(self.workload)
        drawn = np.arange(k) if self.sample is None else uniform(k, self.sample, entropy=source)
        weights, _ = self.base.generate(held, drawn, cells, (), source)
        if progress is not None:
            progress(1.0)
        return Release(weights, self.loss, self.events, None, source.private)


class _Scaled:
    """Queries times a factor each."""

    def __init__(self, queries: Linear, scale: Doubles) -> None:
        self.queries, self.scale = queries, scale

    def answers(self, x: Doubles) -> Doubles:
        return self.queries.answers(x) * self.scale

    def weighed(self, y: Doubles) -> Doubles:
        return self.queries.weighed(y * self.scale)


class _Rows(_Scaled):
    """The same with a matrix."""

    def __init__(self, matrix: Any, scale: Doubles) -> None:
        self.matrix, self.turned, self.scale = matrix, matrix.T.tocsr(), scale

    def answers(self, x: Doubles) -> Doubles:
        return np.asarray(self.matrix @ x) * self.scale

    def weighed(self, y: Doubles) -> Doubles:
        return np.asarray(self.turned @ (y * self.scale))


def _pooled(readings: tuple[Reading, ...], k: int) -> tuple[Integers, Doubles, Doubles]:
    """Each query that was read once or more, the mean of what was read by precision, and the precision of that."""
    precision, sums = np.zeros(k), np.zeros(k)
    for reading in readings:
        precision[reading.queries] += reading.deviation**-2
        sums[reading.queries] += reading.values * reading.deviation**-2
    queries = np.flatnonzero(precision)
    return queries, sums[queries] / precision[queries], precision[queries]


def _spread(fit: Fit, kind: Integers) -> Fit:
    return replace(fit, weights=(fit.weights / np.bincount(kind, minlength=fit.weights.size))[kind])

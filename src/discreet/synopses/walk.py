"""SmallDB where databases are too many to list: a random walk, and what can be proven of it.

Guarantee. Unit, neighbours and scores as in `small_database.py`, with the total n declared. The walk starts from rows
drawn uniformly and sweeps over them: each row in turn is drawn anew, exactly, with odds exp(rate·score) given the
others, rate = ε/2 to the most one unit moves a score. Run for ever, it is the exponential mechanism, which is ε-DP.
After s sweeps it is within τ of that in total variation, so that what is released is (ε, (1 + e^ε)·τ)-DP.

A bound on τ. One row moves a score by at most n/m·span, span being how far the entries of a query lie apart. So a row
is drawn as any kind with at least e^(−rate·n·span/m) of the chance it has in a uniform draw, m rows with at least
e^(−B), B = ε·n·span/2w·max q; and τ ≤ (1 − e^(−B))^s whatever the data (Doeblin). B is about ε·n/2w: for small data and
small ε this proves something; else it takes e^B sweeps, and **nothing is proven**: δ is 1, the release is marked as not
private, and no budget can be charged for it. The walk mixes far faster than that on most data, so `SmallDatabaseWalk`
is for comparing, on public data, with what SmallDB would choose.

>>> from discreet.synopses.domain import Attribute, Domain
>>> from discreet.synopses.queries.workload import Workload
>>> work = Workload.prefixes(Domain([Attribute("city", tuple(range(50)))]), "city")
>>> walk = SmallDatabaseWalk(workload=work, epsilon="0.1", delta="1e-9", size=60, rows=20)
>>> walk.loss, walk.steps
(ApproxDP(epsilon=0.1, delta=1e-09), 421)
>>> SmallDatabaseWalk(workload=work, epsilon=1, size=1000, rows=20, sweeps=100).loss
ApproxDP(epsilon=1, delta=1)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.accounting.approximate import approximate
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural, probability
from discreet.core.losses import ApproxDP
from discreet.core.mechanism import Release
from discreet.core.rounding import exp_down, exp_up, log1p_up, log_down
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.exponential import gibbs
from discreet.noise.uniform import uniform
from discreet.synopses.base import Terms
from discreet.synopses.candidates import END, Kinds, held, misses
from discreet.synopses.synopsis import Weights

__all__ = ["SmallDatabaseWalk"]

MOST_KINDS = 1 << 16
"""Each draw of a row weighs all kinds of cells."""
MOST_SWEEPS = 100_000
INSTEAD = "use MWEM, which needs no list of databases"


@dataclass(frozen=True, kw_only=True)
class SmallDatabaseWalk(Terms):
    """A walk over databases of `rows` rows, as long as `delta` needs; or `sweeps`, for the δ that they prove."""

    rows: int = 100
    sweeps: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is None:
            raise InvalidArgument("size", None, "declared", "the walk needs a public total; or use SmallDatabase")
        natural("rows", self.rows)
        if (self.sweeps is None) != bool(self.delta):
            raise InvalidArgument("sweeps", self.sweeps, "given, or else delta", "one of the two says how long to walk")
        if self.sweeps is not None:
            natural("sweeps", self.sweeps)
        if self.rows * self.kinds.scale * max(1, self.size) > END:
            cost = f"{self.rows} rows for a total of {self.size}"
            raise InvalidArgument("rows", cost, "a product below 2^61, or 2^41 for fractions", "take fewer rows")
        if self.steps > MOST_SWEEPS:
            cost = f"{float(self.steps):.2g} sweeps"
            raise InvalidArgument("delta", cost, f"proven by at most {MOST_SWEEPS:,} sweeps", INSTEAD)

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of cells that the queries tell apart."""
        return Kinds.told_apart_by(self.workload, MOST_KINDS, INSTEAD)

    @property
    def rate(self) -> Fraction:
        """How much one step of score, 1/(rows·scale) of a count, is worth in log-odds."""
        return self.epsilon / (2 * self.rows * self.unit_weight * self.kinds.largest)

    @cached_property
    def _stays(self) -> Fraction:
        """ln(1 − e^(−B)), rounded up; negative infinity is cut at −10⁶."""
        reach = self.rate * self.rows * (self.size or 0) * self.kinds.span
        return log1p_up(-exp_down(-reach)) if reach else Fraction(-(10**6))

    @cached_property
    def steps(self) -> int:
        """How many sweeps are made."""
        if self.sweeps is not None:
            return self.sweeps
        wanted = log_down(self.delta / (1 + exp_up(self.epsilon)))
        return max(1, math.ceil(wanted / self._stays)) if self._stays else MOST_SWEEPS + 1

    @cached_property
    def total_variation(self) -> Fraction:
        """At most this far from the exponential mechanism, whatever the data."""
        return min(Fraction(1), exp_up(self.steps * self._stays))

    @cached_property
    def events(self) -> tuple[events.Approximate]:
        """What is proven of `release`."""
        proven = (1 + exp_up(self.epsilon)) * self.total_variation
        return (events.Approximate(self.epsilon, min(Fraction(1), max(proven, self.delta))),)

    @cached_property
    def loss(self) -> ApproxDP:
        """ε, and a δ of 1 where nothing is proven."""
        return approximate(self.events[0])

    def accuracy(self, beta: float) -> float:
        """No bound is known."""
        probability("beta", beta)
        return float("inf")

    def release(
        self,
        histogram: object,
        *,
        entropy: Entropy | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """Weights on the cells, from where the walk ended; not private where nothing is proven."""
        cells = self.workload.domain.held(histogram)
        source = chosen(entropy)
        kinds, counts, size = self.kinds, held(self.workload, cells, self.rows), self.size or 0
        rows = uniform(kinds.number, self.rows, entropy=source)
        answers: Integers = kinds.queries[:, rows].sum(axis=1)
        for sweep in range(self.steps):
            for place in range(self.rows):
                others = answers - kinds.queries[:, rows[place]]
                scores = -misses(others + kinds.queries.T, counts, self.rows, size)
                rows[place] = gibbs(scores, self.rate, entropy=source)
                answers = others + kinds.queries[:, rows[place]]
            if progress is not None:
                progress((sweep + 1) / self.steps)
        database = np.bincount(rows, minlength=kinds.number).astype(np.int64)
        weights = kinds.spread(database, size / self.rows)
        private = source.private and self.loss.delta < 1
        return Release(Weights(self.workload.domain, weights), self.loss, self.events, None, private)

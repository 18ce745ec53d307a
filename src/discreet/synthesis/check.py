"""How far synthetic rows are from the data, found out privately.

For each block of the workload (a marginal, or the groups of one text) the error is the sum of |true count − synthetic
count| over its queries; half of it is how many rows would have to change places. With it, for blocks of one attribute,
of two and so on, goes the mean error of all such blocks, which is known many times better.

Guarantee. Unit: whoever adds up to `unit_weight` W in the cells; neighbours by `changes`; loss ε, once. Argument: the
synthetic counts are made of what was released before, and rounded to whole steps. A unit moves the true counts of a
block by at most W·norm in ℓ1 (the norm of its largest column, 1 for marginals), twice that where it is replaced, and
the error of the block by no more; a mean of errors moves by no more than the largest, and a step more when it is
rounded. So Laplace noise, with half of ε for the errors and half for the means, is ε-DP together; or Gaussian noise,
for the squares of the same moves, with half of ρ for each, ρ-zCDP.

>>> from discreet.synopses.domain import Attribute, Domain
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute("smokes", (False, True))))
>>> check = Check(Workload.marginals(domain, [("sex",), ("sex", "smokes")]), PureDP("0.1"), unit_weight=1, changes=1)
>>> check.events, check.orders
((Laplace(scale=Fraction(40, 1), sensitivity=2), Laplace(scale=Fraction(80, 1), sensitivity=4)), (1, 2))
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil

import numpy as np

from discreet.core.events import Event
from discreet.core.losses import ZCDP, PureDP
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.synopses.queries.blocks import Block, Product
from discreet.synopses.queries.factors import Doubles
from discreet.synopses.queries.workload import Workload
from discreet.synopses.synopsis import Weights

__all__ = ["MOST_BLOCKS", "Check", "distances"]

MOST_BLOCKS = 60
"""Blocks whose errors are found one by one: the first ones."""


@dataclass(frozen=True)
class Check:
    """Errors of the first blocks of a workload, and means of them by how many attributes blocks look at."""

    workload: Workload
    budget: PureDP | ZCDP
    unit_weight: int
    changes: int

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """What is looked at."""
        return self.workload.blocks[:MOST_BLOCKS]

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """The numbers of attributes that blocks look at."""
        return tuple(sorted({order(block) for block in self.blocks}))

    @cached_property
    def _moves(self) -> list[int]:
        """How far a unit moves the error of each block, in steps of 1/denominator."""
        each, domain = self.unit_weight * self.changes * self.workload.denominator, self.workload.domain
        return [ceil(each * max(Fraction(1), Workload(domain, (block,)).column_norm(1))) for block in self.blocks]

    @cached_property
    def noises(self) -> tuple[Laplace | Gaussian, Laplace | Gaussian]:
        """For the errors, and for their means."""
        moves = self._moves
        largest = [max(m for m, b in zip(moves, self.blocks, strict=True) if order(b) == n) for n in self.orders]
        # Means are rounded to whole steps, which adds one to how far each may move.
        return self._noise(moves), self._noise([each + 1 for each in largest])

    def _noise(self, moves: list[int]) -> Laplace | Gaussian:
        if isinstance(self.budget, PureDP):
            return Laplace.for_epsilon(self.budget.epsilon / 2, sum(moves), dimension=len(moves))
        squared = sum(each**2 for each in moves)
        return Gaussian.for_zcdp(self.budget.rho / 2, squared, dimension=len(moves))

    @property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run."""
        return (*self.noises[0].events, *self.noises[1].events)

    @property
    def scales(self) -> tuple[float, float]:
        """How much noise is in the errors and in their means, in steps of the histogram: the scale of Laplace noise, or
        the deviation of Gaussian noise."""
        each, mean = (float(n.scale if isinstance(n, Laplace) else n.sigma) for n in self.noises)
        return each / self.workload.denominator, mean / self.workload.denominator

    def release(self, histogram: Integers, synthetic: Weights, entropy: Entropy) -> tuple[Doubles, Doubles]:
        """Noisy errors of the blocks and of their means, in steps of the histogram."""
        scale = self.workload.denominator
        exact = distances(Workload(self.workload.domain, self.blocks), histogram, synthetic)
        sizes = np.array([order(block) for block in self.blocks])
        # Whole numbers of at most 62 bits: sums of them are taken in Python's own.
        means = []
        for each in self.orders:
            own = [exact[place] for place in np.flatnonzero(sizes == each).tolist()]
            means.append(sum(own) // len(own))
        noisy = [
            noise.release(np.array(values, dtype=np.int64), entropy=entropy).values
            for noise, values in zip(self.noises, (exact, means), strict=True)
        ]
        return noisy[0] / scale, noisy[1] / scale


def distances(workload: Workload, histogram: Integers, synthetic: Weights) -> list[int]:
    """Σ |count − synthetic count| of each block, exactly, in steps of 1/denominator."""
    said = np.clip(np.rint(synthetic.answers(workload) * workload.denominator), 0, float(1 << 61)).astype(np.int64)
    apart = np.abs(workload.counts(histogram) - said)
    ends = np.cumsum([0, *(block.count(workload.domain) for block in workload.blocks)]).tolist()
    limit = (1 << 62) - 1
    return [min(sum(apart[start:stop].tolist()), limit) for start, stop in pairwise(ends)]


def order(block: Block) -> int:
    """How many attributes a block looks at; 0 for one that is written cell by cell."""
    return len(block.factors) if isinstance(block, Product) else 0

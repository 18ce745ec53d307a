"""SmallDB: choose a small database whose answers are like the true ones.

Guarantee. Unit: what the histogram was made for, whose cells weigh at most `unit_weight` w together. Neighbours: one
unit more or less (`changes=1`), or another in its place (`changes=2`). Loss: ε in all. Argument: the total n is
declared, or bought as in `total_weight.py`; given n and the public number of rows m, every database y of m rows has the
score −max_q |⟨q, x⟩ − n/m·⟨q, y⟩|, and one unit moves each ⟨q, x⟩, and so each score, by at most w·max q
(`candidates.py`). Permute-and-flip, or the exponential mechanism by name, chooses one by its score: ε-DP, with scores
in whole steps of 1/m of a count and exact sampling. All databases are weighed, one by one.

Databases that answer all queries alike are one candidate, not many: fewer to choose from is less noise. The chosen one
is released as weights on cells that add up to n, spread evenly over the cells that no query tells apart.

Accuracy. Some database of m rows is within n·min(√(ln 2k/2m), T/4m) of all k true answers (Hoeffding's inequality for m
rows drawn from the data; or rounding the T kinds of cells to multiples of 1/m), and the one chosen is within
2w·ln(N/β)/ε of the best of N. Without `rows`, m is the number that makes the sum of both least.

>>> from discreet.synopses.domain import Attribute, Domain
>>> domain = Domain([Attribute("smokes", ("no", "yes")), Attribute("sex", ("F", "M"))])
>>> small = SmallDatabase(workload=Workload.all_marginals(domain, 1), epsilon=1, size=1000)
>>> small.loss, small.accuracy(0.05) < 50
(PureDP(epsilon=1), True)
>>> round(small.release([400, 100, 300, 200]).values.total, 6)
1000.0

Where databases are too many to list, `walk.SmallDatabaseWalk` goes at random, and says what that is worth.

Reference: Blum, Ligett, Roth (2008); Dwork, Roth (2014), section 4.1; McKenna, Sheldon (2020) for permute-and-flip.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Literal

import numpy as np

from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.mechanism import Release
from discreet.core.rounding import log_up
from discreet.mechanisms.selection import Exponential, PermuteAndFlip
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.laplace import MAX_SCALE
from discreet.synopses.base import Terms
from discreet.synopses.candidates import END, Kinds, held, misses, multisets, number_of_multisets, stretches
from discreet.synopses.queries.workload import Workload
from discreet.synopses.synopsis import Weights
from discreet.synopses.total_weight import Population

__all__ = ["SmallDatabase"]

MOST = 1 << 22
"""Databases weighed one by one: some ten seconds for a hundred queries, and a third of a gigabyte."""
MOST_KINDS = 2_895
"""With more kinds of cells there are more than `MOST` databases of two rows."""
INSTEAD = "use MWEM, which needs no list of databases"

Progress = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class SmallDatabase(Terms):
    """A database of `rows` rows (None: as many as serve best) chosen by how far it is off on the worst query.

    Of δ nothing is spent: a single choice would gain less than a hundredth from it.
    """

    rows: int | None = None
    selection: Literal["permute-and-flip", "exponential"] = "permute-and-flip"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.selection not in ("permute-and-flip", "exponential"):
            choices = "'permute-and-flip' or 'exponential'"
            raise InvalidArgument("selection", self.selection, choices, "the first is never worse")
        kinds, rows, most = self.kinds.number, 1, self._most_rows(self.size or 0)
        if self.rows is not None:
            rows = natural("rows", self.rows)
        if most == 0:
            raise InvalidArgument("size", self.size, "below 2^41 for fractional queries", "count in coarser steps")
        if rows > most:
            digits = (math.lgamma(kinds + rows) - math.lgamma(rows + 1) - math.lgamma(kinds)) / math.log(10)
            cost = f"{rows} rows of {kinds} kinds of cells, about 10^{digits:.0f} databases"
            raise InvalidArgument("rows", cost, f"at most {most} rows, {MOST:,} databases", f"take fewer, or {INSTEAD}")

    @classmethod
    def for_alpha(
        cls,
        *,
        workload: Workload,
        epsilon: Exactable,
        alpha: Exactable,
        size: int,
        unit_weight: int = 1,
        changes: int = 1,
    ) -> SmallDatabase:
        """The book's: the exponential mechanism over databases of ⌈ln k/α²⌉ rows, for an error of a share α of n."""
        rows = max(1, math.ceil(log_up(len(workload)) / probability("alpha", alpha) ** 2))
        return cls(
            workload=workload,
            epsilon=positive("epsilon", epsilon),
            unit_weight=unit_weight,
            changes=changes,
            size=size,
            rows=rows,
            selection="exponential",
        )

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of cells that the queries tell apart."""
        return Kinds.told_apart_by(self.workload, MOST_KINDS, INSTEAD)

    @cached_property
    def _population(self) -> Population:
        return Population(self.epsilon, self.unit_weight, self.size)

    def _chooser(self, rows: int) -> Exponential | PermuteAndFlip:
        kind = Exponential if self.selection == "exponential" else PermuteAndFlip
        return kind(self._population.rest, rows * self.unit_weight * self.kinds.largest)

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What `release` will run: the total if it must be bought, and one choice."""
        return (*self._population.events, *self._chooser(1).events)

    def _most_rows(self, size: int) -> int:
        """How many rows can be listed, and computed with in 62 bits; a single kind of cell needs but one."""
        kinds, fit = self.kinds, END // (self.kinds.scale * max(size, 1))
        drawn = math.floor(MAX_SCALE * self._chooser(1).rate)
        listed = bisect_right(range(2, MOST + 1), MOST, key=lambda rows: number_of_multisets(kinds.number, rows)) + 1
        return min(listed if kinds.number > 1 else 1, fit, drawn)

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β every query of the workload is within this many counts; ∞ for an unknown total."""
        tail = probability("beta", beta)
        return math.inf if self.size is None else self._accuracy(self.size, self._best_rows(self.size), tail)

    def _accuracy(self, size: int, rows: int, beta: Exactable) -> float:
        tail = probability("beta", beta)
        kinds, share = self.kinds, tail if self.size is not None else tail / 2
        listed = number_of_multisets(kinds.number, rows)
        chosen_within = self._chooser(rows).accuracy(share, listed) / (rows * kinds.scale)
        return size * kinds.nearest(rows) + chosen_within + self._population.doubt(share)

    def _best_rows(self, size: int) -> int:
        """The least of the bound at β = 1/20; a public choice, made from the total found."""
        if self.rows is not None:
            return self.rows
        most = self._most_rows(size)
        # Powers of 2^¼ come within a few percent of the best.
        tried = sorted({min(most, math.ceil(2 ** (power / 4))) for power in range(4 * most.bit_length() + 1)})
        return min(tried, key=lambda rows: self._accuracy(size, rows, Fraction(1, 20)))

    def release(
        self, histogram: object, *, entropy: Entropy | None = None, progress: Progress | None = None
    ) -> Release:
        """Weights on the cells, from one database of `rows` rows."""
        cells = self.workload.domain.held(histogram)
        source = chosen(entropy)
        size = min(self._population.found(cells, source), END // self.kinds.scale)
        rows = self._best_rows(size)
        size = min(size, END // (rows * self.kinds.scale))
        counts = held(self.workload, cells, rows)
        scores = np.empty(number_of_multisets(self.kinds.number, rows), dtype=np.int64)
        for part in stretches(scores.size, max(self.kinds.queries.shape)):
            databases = multisets(self.kinds.number, rows, np.arange(part.start, part.stop))
            scores[part] = -misses(self.kinds.answers(databases), counts, rows, size)
            if progress is not None:
                progress(part.stop / scores.size)
        winner = int(self._chooser(rows).release(scores, entropy=source).values)
        database = multisets(self.kinds.number, rows, np.array([winner]))[0]
        weights = self.kinds.spread(database, size / rows)
        synopsis = Weights(self.workload.domain, weights, partial(self._accuracy, size, rows))
        return Release(synopsis, self.loss, self.events, None, source.private)

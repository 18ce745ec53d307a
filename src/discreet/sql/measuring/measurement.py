"""From bounded sums to released sums: which noise, how much, what it costs, which norm to clip at.

Guarantee. The unit is that of the table. The events are fixed before any data is touched:

1. (where a norm is to be found) a `Pure` run of sparse vector over how many units lie above each candidate. From it
   alone the clipping norm C is chosen; one run for the weights by rows, one for those by groups, one for averages.
2. one `Gaussian` on the totals of all statistics and groups, each divided by how far it can move and times its share,
   so that the vector moves by at most the root of the sum of squared shares in ℓ2; or one `Laplace` for each statistic
   (ℓ1), which has its share of ε. A sum of declared values may have noise by those values instead, which is a `Pure`
   (`bounding/declared_values.py`).
   Where `tallied`, what clipping takes is released with it, for a part of its accuracy (`measuring/clipping_loss.py`).
3. (quantiles) draws by rank, as `measuring/quantiles.py` says, on rows with the same weights.
4. (keys not listed) groups are shown only above a threshold on the noisy number of their units, set so that a unit
   alone in its groups shows up with probability at most `delta`: an `Approximate(0, delta)`.

Noise is drawn on the totals themselves, which are whole numbers (`statement/builder.py`); their grid is far finer than
the one the events speak of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, inf, log, sqrt
from typing import Any

import numpy as np

from discreet.accounting.budgets import COORDINATES, SENSITIVITY
from discreet.core import events
from discreet.core.events import Event
from discreet.core.rounding import sqrt_up
from discreet.mechanisms.additive import END
from discreet.mechanisms.neighbour_set import NeighbourSet
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.noise.laplace import MAX_SCALE, scale_argument
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.clipping_norms import Caps, G, H, Weighing
from discreet.sql.bounding.declared_values import noise
from discreet.sql.bounding.sums import Statistic
from discreet.sql.measuring import clipping_loss as tally
from discreet.sql.measuring.clipping_search import SCALE, ClippingSearch, Heavy
from discreet.sql.measuring.quantiles import QuantilePlan
from discreet.sql.statement.layout import Norm, Weights
from discreet.sql.statement.results import Groups

__all__ = ["TYPICAL_KEYS", "Measurement"]

MOST_GROUPS = 40
"""No unit is in more than 2^this many groups: it would have that many rows."""
TYPICAL_KEYS = 100
"""How many groups to expect where the keys are not listed."""
BALANCE, TALLIED = 0.45, 1.4
"""How much of the noise's deviation counts beside what clipping takes; more where most of that is put back."""
CLEAR = 5
"""How many times the search's noise what is looked for must be, where units are weighed in the search."""
CLIPPED_IN_MEANS = 10
"""One in so many units may lie above the norm for averages: there what is lost cancels, and noise does not."""


@dataclass(frozen=True)
class Measurement:
    """The noise of one query. `ratio` is noise over movement: a deviation for ℓ2, a scale for ℓ1, for one statistic.

    `changes` is how many units differ between neighbours, at row level how many rows: of each that differs there may be
    `copies`, in several tables. `weights` is None at row level. `search_epsilon` is spent on finding norms. `max_rows`
    is declared.
    """

    statistics: tuple[Statistic, ...]
    norm: Norm
    ratio: Fraction
    changes: int
    weights: Weights | None = None
    search_epsilon: Fraction | None = None
    threshold_delta: Fraction | None = None
    quantiles: QuantilePlan | None = None
    max_rows: int | None = None
    tallied: bool = False
    by_values: Fraction | None = None
    """The ε of each sum that has noise by the declared values."""
    copies: int = 1

    def __post_init__(self) -> None:
        for index, statistic in enumerate(self.statistics):
            if not statistic.values:
                scale_argument("noise", self.deviation(index, 0))

    @cached_property
    def searched(self) -> tuple[Weighing, ...]:
        """The weighings whose norms are to be found."""
        if self.weights is None:
            return ()
        used = {s.weighing for s in self.statistics} | ({Weighing.ROWS} if self.quantiles else set())
        return tuple(each for each in Weighing if each in used and self.weights.caps(each).searched)

    def _search(self, weighing: Weighing) -> Fraction:
        """The ε of one search: a share of all units is soon found."""
        assert self.search_epsilon is not None
        parts = {each: 1 if each == Weighing.ROWS_IN_MEANS else 3 for each in self.searched}
        return self.search_epsilon * parts[weighing] / sum(parts.values())

    @property
    def searches(self) -> tuple[Fraction, ...]:
        """The ε of each search."""
        return tuple(map(self._search, self.searched)) if self.search_epsilon is not None else ()

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What a run will do, whatever the data (`measuring/run.py`)."""
        steps = SENSITIVITY * self.changes
        said: list[Event] = []
        said += map(events.Pure, self.searches)
        # What noise by values costs, it costs for each unit that differs.
        said += [events.Pure(self.law(s).epsilon * self.changes) for s in self.statistics if s.values]
        if self.norm == "l1":
            said += [events.Laplace(self.ratio * steps * self._factor(s), steps) for s in self._others]
        elif self._others:
            said.append(events.Gaussian((self.ratio * steps) ** 2, Fraction(steps**2), COORDINATES))
        if self.quantiles is not None:
            said += self.quantiles.events
        if self.threshold_delta is not None:
            said.append(events.Approximate(Fraction(0), self.threshold_delta))
        return tuple(said)

    @property
    def _others(self) -> list[Statistic]:
        """The statistics that have no noise by values."""
        return [s for s in self.statistics if not s.values]

    def law(self, statistic: Statistic) -> NeighbourSet:
        """The noise by the values of one statistic, in its steps."""
        assert self.by_values is not None
        return noise(self.by_values / self.changes, statistic.additions)

    def error(self, index: int, cut: int) -> float:
        """The mean absolute error of one statistic, in the units of its values."""
        gaussian = self.norm == "l2" and not self.statistics[index].values
        return (0.8 if gaussian else 1.0) * self.scale(index, cut)

    def deviation(self, index: int, cut: int) -> Fraction:
        """The noise in one statistic's totals, in their own units; for noise by values its mean size."""
        statistic = self.statistics[index]
        if statistic.values:
            return Fraction(self.law(statistic).mean_error) * G * H
        moved = statistic.bound * G * H
        if self.weights is not None:
            moved = self.weights.caps(statistic.weighing).movement(statistic.bound, cut)
        return self.ratio * self._factor(statistic) * moved * self.changes

    def _factor(self, statistic: Statistic) -> Fraction:
        """How much larger the noise of one statistic is than if it were alone."""
        return self._shares / statistic.share

    @cached_property
    def _shares(self) -> Fraction:
        """What the shares of all statistics add up to in the norm; once, or planning would be quadratic in them."""
        shares = [s.share for s in self._others]
        if self.norm == "l1":
            return sum(shares, Fraction(0))
        squares = sum((share**2 for share in shares), Fraction(0))
        return sqrt_up(squares / tally.REST if self.tallied else squares)

    def scale(self, index: int, cut: int) -> float:
        """The same in the units of the statistic's values."""
        return float(self.deviation(index, cut) * self.statistics[index].step / (G * H))

    def top(self, weighing: Weighing) -> int:
        """The last candidate whose noise the samplers can draw: 2^60 is their end."""
        return self._tops[weighing]

    @cached_property
    def _tops(self) -> tuple[int, ...]:
        return tuple(self._top(weighing) for weighing in Weighing)

    def _top(self, weighing: Weighing) -> int:
        drawn = [j for j, s in enumerate(self.statistics) if s.weighing == weighing]
        last = len(self.caps(weighing).norms) - 1
        while last and any(self.deviation(j, last) > MAX_SCALE for j in drawn):
            last -= 1
        return last

    def caps(self, weighing: Weighing) -> Caps:
        """The candidates for one norm; at row level, where nothing is weighed, one."""
        return Caps.fixed(1) if self.weights is None else self.weights.caps(weighing)

    def clipping_search(
        self, counts: Mapping[tuple[int, int], int], weighing: Weighing, keys: int, seen: int | None = None
    ) -> ClippingSearch | None:
        """The search for the candidate to clip at, the first one past which so little lies that more room would cost
        more noise than it saves; None where there is but one. `counts` are of units, by bucket and octave of rows over
        norm. Nothing is run.

        Raising C by a little adds to the noise, in proportion to its deviation for C = 1 and the number of keys, and
        takes back from each unit still above its rows over its norm: 1 where it has one group, up to √keys where it has
        many alike (for ℓ1 always 1). Errors add like squares: at the best C slope · bias = noise · noise slope. With
        heavy tails the bias is some five times C · slope, which is `BALANCE`.
        The sum of these over the units above moves by at most the largest, so one run of sparse vector finds where it
        falls below; all candidates the same way if a unit comes or goes, but not if it is replaced. Where the search's
        own noise would be too much for that, each unit counts alike, for the middle of the two. In averages what is
        taken from a unit's sum is taken from its count as well; there a share of all units may lie above. Candidates
        that only units with rows past the last octave `seen` could need are not looked at.
        """
        epsilon = self._search(weighing)
        caps, last = self.caps(weighing), self.top(weighing)
        while last and seen is not None and caps.norms[last - 1] >= 2 << seen:
            last -= 1
        if not last:
            return None
        mean = weighing == Weighing.ROWS_IN_MEANS
        slope = keys * self._error(weighing)
        alike = self.norm == "l2" and weighing == Weighing.ROWS
        widest = min((keys.bit_length() - 1) // 2, SCALE.bit_length() - 1) if alike else 0
        doubt = 2 / float(epsilon)
        weighed = doubt * 2.0**widest * CLEAR <= slope and not mean
        search = SparseVector.for_epsilon(epsilon, 0, sensitivity=SCALE, monotonic=self.changes == 1 and not mean)
        allowed = sum(counts.values()) * (SCALE // CLIPPED_IN_MEANS) if mean else 0
        parts = {spread: SCALE >> max(widest - spread, 0) if weighed else SCALE for _, spread in counts}
        least, questions = [], []
        for cut in range(last):
            taken = sum(count * parts[spread] for (bucket, spread), count in counts.items() if bucket > cut)
            # An octave's middle is √2 above its start.
            shared = 2.0 ** (widest + 0.5) if weighed else sqrt(min(2.0**widest, float(caps.norms[cut])))
            # What the search's noise could hide counts as little, the more the larger the norm: it must not end at
            # norms that nobody has. At the last ones this is some ten times the noise.
            patience = (cut / 26) ** 8 if weighed else 2.5 + cut / 12 + (cut / 18) ** 4
            least.append((0.0 if mean else slope / shared) + doubt * patience)
            questions.append(min(max(ceil(SCALE * least[-1]) + allowed - taken, -END), END))
        heaviest, to_the_end = 2.0**widest if weighed else 1.0, last + 1 == len(caps.norms)
        return ClippingSearch(search, tuple(questions), tuple(least), heaviest, mean, to_the_end)

    def _error(self, weighing: Weighing) -> float:
        """The error that counts in one group, for C = 1: of a statistic, or of a quantile's rank."""
        index = next((j for j, s in enumerate(self.statistics) if s.weighing == weighing), None)
        if index is None:
            assert self.quantiles is not None
            return self.quantiles.accuracy(0, Fraction(1, 2), 1)
        noise = self.deviation(index, 0) / (self.statistics[index].bound * G * H * self.caps(weighing).norms[0])
        balance = TALLIED if self.tallied and weighing == Weighing.ROWS else BALANCE
        return float(noise) * balance * (1 if self.norm == "l2" else sqrt(2))

    @cached_property
    def units_place(self) -> int:
        """The place of the statistic by which groups that are not listed are selected."""
        return next(i for i, s in enumerate(self.statistics) if s.kind is Sum.UNITS)

    def lost(self, norms: Sequence[float], heavy: Sequence[Heavy], weighing: Weighing, chance: float) -> float:
        """The most rows (or units) that clipping took from one group, except with this chance; infinite if unknown."""
        base, slope = heavy[weighing]
        above = base + slope * log(1 / chance)
        if weighing == Weighing.GROUPS or not above:
            return above
        return inf if self.max_rows is None else above * max(self.max_rows - norms[weighing], 0.0)

    def threshold(self, cut: int) -> float:
        """The noisy number of units above which a key that is not listed may show, in totals' units."""
        assert self.threshold_delta is not None
        deviation = float(self.deviation(self.units_place, cut))
        most = 1.0 if self.weights is None else float(self.weights.units.norms[cut])
        tail = float(self.threshold_delta) / self.changes
        worst = 0.0
        # A unit alone in up to 2^j groups adds at most C/√g (ℓ2) or C/g (ℓ1) to each of g ≥ 2^(j−1); union over them.
        for power in range(MOST_GROUPS + 1):
            fewest = max(1.0, 2.0 ** (power - 1))
            share = most / (sqrt(fewest) if self.norm == "l2" else fewest)
            reach = self._quantile(tail / 2.0**power) * deviation
            # All copies of a row may be alone in one group.
            worst = max(worst, min(share, 1.0) * self.copies * G * H * (1 + 2e-9) + reach)
        return worst + 1

    def _quantile(self, tail: float) -> float:
        """z with P(noise > z·deviation) ≤ tail."""
        if self.norm == "l1":
            return float(np.log(1 / tail)) + exp(-1)
        from scipy.special import ndtri

        return float(-ndtri(tail)) + 1e-6

    def totals(self, groups: Groups, keys: Sequence[tuple[Any, ...]], cuts: Sequence[int]) -> list[list[int]]:
        """The clipped sums before noise: for each statistic one for each key, in units of 1/(G·H) steps.

        `cuts` are the caps' indices, one for each weighing.
        """
        return [self.total(j, groups, keys, cuts[s.weighing]) for j, s in enumerate(self.statistics)]

    def total(self, index: int, groups: Groups, keys: Sequence[tuple[Any, ...]], cut: int) -> list[int]:
        """The clipped sums of one statistic, for each of the keys."""
        weighing = self.statistics[index].weighing if self.weights is not None else Weighing.ROWS
        weight = self.caps(weighing).weight(cut)
        if weighing == Weighing.GROUPS:
            return groups.units.clipped(0, weight, cut, keys)
        apart = sum(s.weighing == Weighing.GROUPS for s in self.statistics[:index]) if self.weights is not None else 0
        # A unit above the norm would add something else than a declared value: there it adds nothing.
        weight = 0 if self.statistics[index].values else weight
        return groups.rows.clipped(index - apart, weight, cut, keys, self.statistics[index].fineness)

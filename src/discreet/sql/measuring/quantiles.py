"""Ranks of groups: MEDIAN, QUANTILE, PERCENTILE_CONT, MIN, MAX, IQR, MAD, TRIMMED_MEAN and MODE in SQL.

The engine counts rows by group and cell, or by group and value (`statement/histograms.py`). A group's rows have
weights in whole numbers, and the answer is drawn by the law of `mechanisms/quantiles/rank_law.py`, or of
`measuring/modes.py`.

Guarantee. A unit whose rows weigh w_k in group k moves the log-odds of a draw of range e for that group apart by at
most e·w_k/C, and ‖w‖ ≤ C. There are two ways to add that up over groups and draws (`Composition`):

- "sum": all draws together are one `BoundedRange(ε)`. In ℓ1 the ranges of a draw over all groups sum to e; in ℓ2 to
  √K·e over K groups.
- "squares" (ℓ2): the squares of the ranges sum to ε², which is what `BoundedRanges` says: less for many groups, where
  a δ is allowed.

Where neighbours exchange a unit, it is a removal and an addition: 2·C. Every declared group is drawn for, whether it
has rows or not.

IQR is two such quantiles, MAD a median and then one of the rows folded round it, TRIMMED_MEAN two quantiles as cuts and
then a sum and a number with noise (`measuring/dispersion.py`): `Laplace` of a share of ε for "sum", and for "squares"
a `Gaussian` whose ρ is that share of ε²/8. MODE is one draw; of values that nobody listed it has a δ besides. What
comes later may look at what was drawn before.

An interval costs two more draws. A quantile at rank q·T has ends drawn τ below and above it, τ so large that an end is
on the wrong side with probability at most half of 1 − `LEVEL`, whatever the data: places on the wrong side are τ ranks
from the target. Groups too small for τ have the bounds as ends. MIN and MAX aim τ inside the data and so are themselves
ends, of an interval that reaches to the bound; nothing private is known beyond that.

>>> cells = Cells.of(Bounds(0, 120), whole=True, keys=10)
>>> plan = QuantilePlan.best((Rank.quantile(Fraction(1, 2), cells),), "l1", PureDP(1), keys=1)
>>> plan.events
(BoundedRange(epsilon=Fraction(1, 1)),)
>>> import numpy as np
>>> ages = Histograms({(): np.arange(20, 60)}, {(): np.full(40, 1000)})
>>> [drawn] = plan.release([ages], [()], 1, Entropy.for_tests(0))[0]
>>> drawn
Drawn(value=39.0, low=39.0, high=40.0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

from discreet.accounting.conversions import affordable
from discreet.core import events
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.rounding import float_up, log_up, shorten_down, shorten_up, sqrt_down, sqrt_up
from discreet.mechanisms.quantiles.rank_law import Question, Ranked, Target, draw, slopes
from discreet.noise.entropy import Entropy
from discreet.sql.aggregates import AGGREGATES, AggregateName, RankKind
from discreet.sql.measuring.dispersion import Drawn, Noise, Trimmed, between, deviation, folded
from discreet.sql.measuring.modes import Chosen, Mode, chosen
from discreet.sql.statement.histograms import Cells, Histograms, Key

__all__ = [
    "CLIPPED",
    "LEVEL",
    "Cells",
    "Composition",
    "Drawn",
    "Histograms",
    "Mode",
    "QuantilePlan",
    "Rank",
    "Released",
    "weight_of",
]

Norm = Literal["l1", "l2"]
Composition = Literal["sum", "squares"]
Released = tuple[Drawn, ...] | tuple[Chosen, ...]
"""A value for each group."""

LEVEL = Fraction(19, 20)
"""The level of intervals, fixed when they are drawn: at lower levels they are the same, at higher ones the bounds."""
CLIPPED = Fraction(1, 500)
"""The part of 1 − LEVEL that is left to the bound on what clipping took away."""
MISSED = 1 - LEVEL - CLIPPED
MANY = 1 << 40
"""As many groups as a unit can be in."""
SHARES: dict[Composition, tuple[Fraction, Fraction]] = {
    "sum": (Fraction(1, 2), Fraction(1, 4)),
    "squares": (Fraction(4, 5), Fraction(21, 50)),
}
"""The share of a value's ε that goes to the value and to each end: they add up to 1, or their squares do."""
OUTWARD = Fraction(3, 4)
"""The steeper side's share of the slope for MIN and MAX."""
SHORT = 32
"""Bits of slopes and distances."""
STEPS = 1 << 12
"""Grid steps in a unit's movement, as the events of noise state it; the noise itself is on a finer grid."""
CUT = Fraction(1, 4)
SUMMED, COUNTED = Fraction(3, 8), Fraction(1, 8)
"""Parts of a trimmed mean: each cut, the sum, the number."""
EVEN, OF_ENDS = Fraction(1, 2), Fraction(7, 10)
CUT_OUTWARD = Fraction(7, 10)
"""The steeper side's share of the slope for cuts: one that is too far out makes the noise of the sum large."""
IN_SUMS = Fraction(1, 2)
MISSED_BY_CUT = MISSED * (1 - IN_SUMS) / 6
"""What its sum and its number may miss of what ends may miss in all; and each cut itself, and either end of it."""


@dataclass(frozen=True)
class Rank:
    """What is asked of one measure: a quantile with both ends; the least or the largest, which is an end itself; or
    what is made of two quantiles. `q` is the rank of a quantile, and what is trimmed at either end."""

    kind: RankKind
    q: Fraction
    cells: Cells

    @classmethod
    def of(cls, function: AggregateName, q: Fraction | None, cells: Cells) -> Rank:
        """What is drawn for a measure."""
        drawn = AGGREGATES[function].rank
        assert drawn is not None
        return cls(*drawn(q), cells)

    @classmethod
    def quantile(cls, q: Fraction, cells: Cells) -> Rank:
        """The value below which a share of q of the rows lies; at the very ends, the least and the largest."""
        return cls.of("quantile", q, cells)

    @classmethod
    def least(cls, cells: Cells) -> Rank:
        """MIN."""
        return cls.of("min", None, cells)

    @classmethod
    def largest(cls, cells: Cells) -> Rank:
        """MAX."""
        return cls.of("max", None, cells)

    @property
    def parts(self) -> tuple[Rank, ...]:
        """The quantiles that are drawn for it."""
        if self.kind.is_one_draw:
            return (self,)
        if self.kind is RankKind.MAD:
            line = replace(self.cells.line, bounds=Bounds(0, self.cells.line.bounds.width))
            return Rank.quantile(self.q, self.cells), Rank.quantile(self.q, replace(self.cells, line=line))
        return Rank.quantile(self.q, self.cells), Rank.quantile(1 - self.q, self.cells)


def weight_of(rank: Rank | Mode) -> int:
    """As how many quantiles it counts."""
    return 1 if isinstance(rank, Mode) else len(rank.parts)


@dataclass(frozen=True)
class _Draw:
    """One draw for every group: where its target lies, in weight of one unit's whole movement, and its slopes."""

    rank: Rank
    past: Fraction
    short: Fraction
    offset: Fraction

    @property
    def ends(self) -> tuple[bool, bool]:
        """An end towards which the target is moved is open."""
        return self.offset < 0, self.offset > 0

    def question(self, data: Ranked, movement: int, lost: Fraction) -> Question:
        """The draw on one group, where one unit can move weights by `movement`; `lost` moves an end farther out."""
        away = self.offset * movement
        if self.rank.kind is RankKind.QUANTILE and self.offset:
            away += self.rank.q * lost if self.offset > 0 else (self.rank.q - 1) * lost
        target = Target(self.rank.q * data.total + away, self.past / movement, self.short / movement)
        return Question(data, target, 0, self.rank.cells.line.size - 1, *self.ends)


@dataclass(frozen=True)
class QuantilePlan:
    """All ranks of one query: what they cost, and their release.

    `norm` is that of the cap on a unit's weights, `epsilon` what the composition adds up to over all draws and groups,
    and `keys` the number of groups where they are declared. At row level a row is in one group, `changes` counts the
    rows that differ, and keys=`copies` will do, the number of rows that one unit can be. `delta` is for the modes of
    values that are not listed, all together.
    """

    ranks: tuple[Rank | Mode, ...]
    norm: Norm
    composition: Composition
    epsilon: Fraction
    keys: int | None
    changes: int = 1
    copies: int = 1
    with_intervals: bool = True
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.norm == "l1" and self.composition == "squares":
            raise InvalidArgument("composition", "squares", "'sum' where the norm is ℓ1", "sum the ranges")
        if self.norm == "l2" and self.composition == "sum" and self.keys is None:
            raise InvalidArgument(
                "keys", None, "declared where ranges in ℓ2 are summed", "declare them, or use squares"
            )

    @classmethod
    def best(
        cls,
        ranks: Sequence[Rank | Mode],
        norm: Norm,
        budget: PureDP | ApproxDP,
        keys: int | None,
        changes: int = 1,
        copies: int = 1,
        *,
        with_intervals: bool = True,
        delta: Fraction = Fraction(0),
    ) -> QuantilePlan:
        """The composition that leaves each value the larger slope within the budget; `delta` comes on top of that."""
        plans = []
        if norm == "l1" or keys is not None:
            plans.append(cls(tuple(ranks), norm, "sum", budget.epsilon, keys, changes, copies, with_intervals, delta))
        if norm == "l2" and isinstance(budget, ApproxDP) and budget.delta > 0:
            # A little less, so that accountants that search for ε give no more than was asked for.
            ranges = sqrt_down(8 * affordable(budget, ZCDP).rho) * (1 - Fraction(1, 1 << 14))
            plans.append(cls(tuple(ranks), norm, "squares", ranges, keys, changes, copies, with_intervals, delta))
        if not plans:
            raise InvalidArgument("keys", None, "declared under a PureDP budget", "declare the values of the keys")
        return max(plans, key=lambda plan: max(plan._steepness, default=Fraction(0)))

    @property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run, whatever the data."""
        if not self.ranks:
            return ()
        many = sum(max(len(group), 1) for group in self._draws)
        ranks = zip(self._shares, self.ranks, strict=True)
        noisy = [share for share, rank in ranks if isinstance(rank, Rank) and rank.kind is RankKind.TRIMMED]
        drawn = 1 - sum(noisy, Fraction(0)) * (SUMMED + COUNTED)
        said: list[Event] = []
        if self.composition == "sum":
            said.append(events.BoundedRange(self.epsilon * drawn))
            spent = [self.epsilon * share * part for share in noisy for part in (SUMMED, COUNTED)]
            said += [events.Laplace(STEPS / each, STEPS) for each in spent]
        else:
            said.append(
                events.BoundedRanges(self.epsilon**2 * drawn, MANY if self.keys is None else max(self.keys, 1) * many)
            )
            if noisy:
                said.append(events.Gaussian(4 * STEPS**2 / (self.epsilon**2 * (1 - drawn)), Fraction(STEPS**2), MANY))
        return (*said, events.Approximate(Fraction(0), self.delta)) if self.delta else tuple(said)

    @property
    def _shares(self) -> list[Fraction]:
        """The part of ε, or of its square, that each rank gets: more where more is drawn."""
        weights = [*map(weight_of, self.ranks)]
        return [Fraction(weight, sum(weights)) for weight in weights]

    @cached_property
    def _ranges(self) -> list[Fraction]:
        """For each rank the range of all its draws together for one unit whose weight is in one group."""
        ranges = [
            self.epsilon / self.changes / (1 / share if self.composition == "sum" else sqrt_up(1 / share))
            for share in self._shares
        ]
        if self.norm == "l2" and self.composition == "sum":
            ranges = [each / sqrt_up(Fraction(max(self.keys or 1, 1))) for each in ranges]
        return ranges

    def _part(self, epsilon: Fraction, share: Fraction) -> Fraction:
        return epsilon * (share if self.composition == "sum" else sqrt_down(share))

    @cached_property
    def _draws(self) -> tuple[tuple[_Draw, ...], ...]:
        """For each rank its draws: the value, and where there is an interval its lower and upper end; for what is made
        of two quantiles those of both; none for modes."""
        return tuple(
            () if isinstance(rank, Mode) else self._drawn_for(rank, each)
            for rank, each in zip(self.ranks, self._ranges, strict=True)
        )

    def _drawn_for(self, rank: Rank, epsilon: Fraction) -> tuple[_Draw, ...]:
        if len(rank.parts) == 1:
            return self._draws_of(rank, epsilon, MISSED / 2)
        if rank.kind is not RankKind.TRIMMED:
            half = self._part(epsilon, Fraction(1, 2))
            ends = OF_ENDS if rank.kind is RankKind.IQR else EVEN
            return tuple(each for part in rank.parts for each in self._draws_of(part, half, MISSED / 4, EVEN, ends))
        cut = self._part(epsilon, CUT)
        leans = zip(rank.parts, (1 - CUT_OUTWARD, CUT_OUTWARD), strict=True)
        return tuple(each for part, lean in leans for each in self._draws_of(part, cut, MISSED_BY_CUT, lean, OF_ENDS))

    def _draws_of(
        self, rank: Rank, epsilon: Fraction, missed: Fraction, lean: Fraction = EVEN, of_ends: Fraction = EVEN
    ) -> tuple[_Draw, ...]:
        """The draws of one quantile, each end of which may miss with a chance of `missed`; the slope past the target
        has a share of `lean`, and for ends the slope of the wrong side a share of `of_ends`."""
        if rank.kind is not RankKind.QUANTILE:
            outward = OUTWARD if rank.kind is RankKind.MAX else 1 - OUTWARD
            past, short = _slopes(rank.q, epsilon, outward)
            inside = _reach(rank, 2 * missed, max(past, short))
            return (_Draw(rank, past, short, -inside if rank.kind is RankKind.MAX else inside),)
        if not self.with_intervals:
            return (_Draw(rank, *_slopes(rank.q, epsilon, lean), Fraction(0)),)
        for_value, for_end = SHARES[self.composition]
        value = _Draw(rank, *_slopes(rank.q, epsilon * for_value, lean), Fraction(0))
        low, high = _slopes(rank.q, epsilon * for_end, of_ends), _slopes(rank.q, epsilon * for_end, 1 - of_ends)
        ends = (-_reach(rank, missed, low[0]), _reach(rank, missed, high[1]))
        return value, _Draw(rank, *low, ends[0]), _Draw(rank, *high, ends[1])

    @property
    def _steepness(self) -> list[Fraction]:
        return [draws[0].past if draws else each for draws, each in zip(self._draws, self._ranges, strict=True)]

    def accuracy(self, index: int, beta: Fraction, movement: int) -> float:
        """With probability 1 − β the value covers a rank at most this far, in weight, from the one its draw aims at;
        of listed values, it has as much less weight than the most frequent one. Of others, the weight that a value
        needs to be named."""
        rank = self.ranks[index]
        if isinstance(rank, Mode):
            if rank.values is None:
                return float(self._least(index, movement))
            return float_up(log_up(len(rank.values) / beta) / self._ranges[index] * movement)
        return self._off(self._draws[index][0], beta) * movement

    def noise(self, index: int) -> Noise:
        """Of the sum and the number of a trimmed mean, over movement."""
        parts = [self._part(self._ranges[index], part) for part in (SUMMED, COUNTED)]
        gaussian = self.composition == "squares"
        summed, counted = (shorten_up((2 if gaussian else 1) / part, SHORT) for part in parts)
        return Noise(gaussian, summed, counted)

    def _least(self, index: int, movement: int) -> int:
        modes = sum(isinstance(rank, Mode) and rank.values is None for rank in self.ranks)
        reach, groups = self._ranges[index], 1 if self.norm == "l1" else MANY if self.keys is None else self.keys
        # What nobody else has are all copies of a row at once.
        return Mode(None).least(reach * self.copies, self.delta / modes, max(groups, 1), reach / movement)

    def release(
        self,
        histograms: Sequence[Histograms],
        keys: Sequence[Key],
        movement: int,
        entropy: Entropy,
        lost: Fraction = Fraction(0),
    ) -> tuple[Released, ...]:
        """For each rank and each of the keys, declared or shown by other means, a value with its ends.

        `movement` is how far a unit can move weights (`Caps.movement` of bound 1; 1 at row level), and `lost` a bound
        on the weight that clipping took from any group, so that ends hold for the rows as they were.
        """
        released: list[Released] = []
        for index, (rank, counts) in enumerate(zip(self.ranks, histograms, strict=False)):
            if isinstance(rank, Mode):
                least = self._least(index, movement) if rank.values is None else None
                rate = self._ranges[index] / movement
                released.append(tuple(chosen(counts, key, rate, least, entropy) for key in keys))
            else:
                released.append(tuple(self._released(index, rank, counts, keys, movement, entropy, lost)))
        return tuple(released)

    def _released(
        self,
        index: int,
        rank: Rank,
        counts: Histograms,
        keys: Sequence[Key],
        movement: int,
        entropy: Entropy,
        lost: Fraction,
    ) -> Iterator[Drawn]:
        def places(draws: Sequence[_Draw], groups: Sequence[Ranked]) -> list[list[int]]:
            questions = [each.question(group, movement, lost) for each in draws for group in groups]
            found: list[list[int]] = draw(questions, entropy).reshape(len(draws), len(keys)).T.tolist()
            return found

        parts, draws, groups = rank.parts, self._draws[index], [counts.of(key) for key in keys]
        if len(parts) == 1:
            yield from (_drawn(rank, found) for found in places(draws, groups))
            return
        first, second = draws[: len(draws) // 2], draws[len(draws) // 2 :]
        lower = places(first, groups)
        if rank.kind is RankKind.MAD:
            groups = [folded(*counts.held(key), found[0]) for key, found in zip(keys, lower, strict=True)]
        upper = places(second, groups)
        offs = self._off(first[0], MISSED_BY_CUT) * movement, self._off(second[0], MISSED_BY_CUT) * movement
        noise = replace(self.noise(index), groups=len(keys))
        mean = Trimmed(rank.q, rank.cells, noise, float(MISSED * IN_SUMS / 2))
        for key, low, high in zip(keys, lower, upper, strict=True):
            ends = _drawn(parts[0], low), _drawn(parts[1], high)
            if rank.kind is RankKind.IQR:
                yield between(*ends, float(rank.cells.line.bounds.width))
            elif rank.kind is RankKind.MAD:
                yield deviation(rank.cells.value(low[0]), *ends, rank.cells)
            else:
                yield mean.release(counts.held(key), (low[0], high[0]), ends, movement, offs, lost, entropy)

    @staticmethod
    def _off(aimed: _Draw, beta: Fraction) -> float:
        """How far from its target a draw is, but for a chance of β, where a unit moves 1."""
        size = aimed.rank.cells.line.size + 1
        return float_up(log_up(size / beta) / min(aimed.past, aimed.short))


def _slopes(q: Fraction, epsilon: Fraction, lean: Fraction = EVEN) -> tuple[Fraction, Fraction]:
    """Slopes in numbers short enough to be quick."""
    past, short = slopes(q, epsilon, lean)
    return shorten_down(past, SHORT), shorten_down(short, SHORT)


def _reach(rank: Rank, chance: Fraction, slope: Fraction) -> Fraction:
    """The distance at which all cells together are drawn with at most this chance."""
    return shorten_up(log_up(rank.cells.line.size / chance) / slope, SHORT)


def _drawn(rank: Rank, places: Sequence[int]) -> Drawn:
    cells, bounds = rank.cells, rank.cells.line.bounds
    low, high = float(bounds.lower), float(bounds.upper)
    value = cells.value(places[0])
    if rank.kind is RankKind.MAX:
        return Drawn(value, cells.value(places[0], -1), high)
    if rank.kind is RankKind.MIN:
        return Drawn(value, low, cells.value(places[0], 1))
    if len(places) == 1:
        return Drawn(value, low, high)
    # The three draws are independent, so an end can pass the value; the ends are what is promised.
    ends = sorted((cells.value(places[1], -1), cells.value(places[2], 1)))
    return Drawn(min(max(value, ends[0]), ends[1]), *ends)

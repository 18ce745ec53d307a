"""Multiplicative weights with the exponential mechanism: measure what the synopsis gets most wrong, and correct it.

Unit, neighbours and loss are those of `Terms`. With W = `unit_weight` and queries in [0, 1], a unit moves one answer
by at most W; the counts of a marginal, of which a record is in exactly one, move by at most W·`changes` in ℓ1 and by
W²·`changes` in squared ℓ2. All counts are exact integers, in steps of 1/`denominator` of the queries.

Guarantee. `rounds` times: choose a marginal or a query by how far the synopsis is off, and measure it.

- Scores are distances between counts and what the synopsis says, rounded to whole steps; for a marginal they are
  added up. The synopsis is made of earlier releases, so a score moves no more than the counts do. The choice is made by
  permute-and-flip (pure), or by the exponential mechanism (δ > 0), whose range is bounded.
- The measurement is discrete Laplace noise (pure) or discrete Gaussian noise (δ > 0), for the same moves.
- If `size` is not declared, the number of steps in the histogram, which moves by at most W, is measured first, with a
  twentieth of ε (or of ρ).

Pure losses add up to ε. With δ the whole list is composed by the tightest accountant and noise is calibrated to it.

- `method="book"` (Hardt, Ligett, McSherry 2012): single queries, half of each round for the choice, the update of
  `weighing.nudged`, the mean of all rounds. With n steps over |X| cells and T rounds every query is within
  √(4n²·ln|X|/T + a²) + b of the truth, where a bounds the noise of T measurements and b what T choices fall short.
- `method="best"`: whole marginals are measured at the price of one of their counts (queries by products of factors
  are answered from the marginal of their attributes; other queries are measured one by one), the choice takes off the
  noise that comes with it, and after every round all that was ever measured is met again. Usually many times
  nearer than the book's, with no bound to state beforehand. If there are no more marginals than rounds,
  all are measured and nothing is spent on choices.

Where neither `rounds` nor `size` is declared, the best takes as many rounds as suit the size that it measured, which is
public from then on (`follows`). Events are fixed beforehand and cover all that may follow. Given the size, and so T:

- Pure: what T choices and T measurements lose adds up to the rest of ε for every T, which is what `Pure` says.
- With δ: ρ is divided between choices and measurements beforehand. T choices have ranges ε_T with T·ε_T² at most eight
  times the one part: `BoundedRanges` of the most rounds. A unit moves each of T measurements by Δ, and their variance
  is T·σ², where σ² is that of one `Gaussian` with the other part for itself: they have its ρ, T·Δ²/2Tσ². Taken as
  continuous noise, of variance Tσ² − τ² each, they have no more shift than it has with σ² − τ², and are off by a factor
  for each number that is measured; so it is stated with as many dimensions as the most rounds measure. Where all
  marginals are measured the part of the choices is left unspent.

Few rounds on heavy units are mostly noise: then single attributes may be chosen too, and there is a round for each.
Where all marginals together have little noise for so many rows, all are measured.

>>> from discreet.synopses.domain import Attribute, Domain
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", (0, 18, 65, 120))))
>>> mwem = MWEM(workload=Workload.all_marginals(domain, 2), epsilon=1)
>>> release = mwem.release([500, 3000, 700, 600, 2900, 500])
>>> release.loss, len(release.values.table()) == round(release.values.total)
(PureDP(epsilon=1), True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np

from discreet.accounting.calibration import calibrate
from discreet.accounting.conversions import affordable
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.events import Composed, Event, Repeated
from discreet.core.exact import Exactable, natural, probability
from discreet.core.losses import ZCDP
from discreet.core.mechanism import Release
from discreet.core.rounding import sqrt_down
from discreet.mechanisms.additive import END
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.selection import Exponential, PermuteAndFlip
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.synopses.base import Terms
from discreet.synopses.domain import LARGEST_CELL
from discreet.synopses.multiplicative_updates import Measured, nudged, polished
from discreet.synopses.queries.blocks import Explicit, Product
from discreet.synopses.queries.factors import Doubles, every
from discreet.synopses.queries.workload import Workload
from discreet.synopses.synopsis import Weights
from discreet.synopses.total_weight import LARGEST_SIZE, total_weight

__all__ = ["MWEM", "Progress"]

Method = Literal["best", "book"]
Progress = Callable[[float], None]
"""Told the share of the work that is done."""

MOST_CELLS = 1 << 26
REMEDY = "use fewer attributes or coarser bins, or Laplace or Gaussian noise on the answers"
SIZE_SHARE = Fraction(1, 20)
_CHOICE = {"best": Fraction(1, 4), "book": Fraction(1, 2)}
"""The share of ε that choices take."""
_CHOICE_RHO = {"best": Fraction(1, 10), "book": Fraction(1, 5)}
_PASSES, _LAST_PASSES, _POLISH = 2, 4, 30
_FAINT = 1e-3
"""Counts are met down to this share of the noise."""
_MOST_ROUNDS = 10_000
_LEAST_USUAL, _MOST_USUAL = 4, 128
_FEW = 0.03
"""The share of rows in the wrong place, before anything is fitted, that is few."""


@dataclass(frozen=True, kw_only=True)
class MWEM(Terms):
    """A `Weights` synopsis from `rounds` measurements; without `rounds` as many as usually do best at that size."""

    rounds: int | None = None
    method: Method = "best"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in get_args(Method):
            raise InvalidArgument("method", self.method, f"one of {get_args(Method)}", "name one of them")
        if self.rounds is not None:
            natural("rounds", self.rounds)
        self.workload.domain.dense(MOST_CELLS, REMEDY)
        if self.noise.rounds > _MOST_ROUNDS:
            raise InvalidArgument("rounds", self.noise.rounds, f"at most {_MOST_ROUNDS:,}", "use fewer rounds")
        if self.follows:
            # What no noise can be drawn for is refused here, and not when the size is known.
            for rounds in (self._planned(0), self._planned(LARGEST_SIZE), min(self._groups - 1, _MOST_USUAL)):
                self._noise(rounds)

    @cached_property
    def strategy(self) -> Workload:
        """What may be measured: for `best`, marginals of the attributes that products look at, and other queries; where
        the number of rounds follows the data, each attribute of those alone too, which comes last."""
        if not self.follows:
            return self._asked
        held = [tuple(block.factors) for block in self._asked.blocks if isinstance(block, Product)]
        alone = tuple(Product({name: every}) for name in self._attributes if (name,) not in held)
        return Workload(self.workload.domain, self._asked.blocks + alone)

    @cached_property
    def _attributes(self) -> tuple[str, ...]:
        """Those that products look at."""
        products = [block for block in self._asked.blocks if isinstance(block, Product)]
        return tuple(dict.fromkeys(name for block in products for name in block.factors))

    @cached_property
    def _asked(self) -> Workload:
        if self.method == "book":
            return self.workload
        blocks = [self.workload.blocks[number] for number in self.workload.used]
        marginals = dict.fromkeys(tuple(block.factors) for block in blocks if isinstance(block, Product))
        products = tuple(Product(dict.fromkeys(names, every)) for names in marginals)
        others = tuple(block for block in blocks if isinstance(block, Explicit))
        return Workload(self.workload.domain, products + others)

    @cached_property
    def _starts(self) -> Integers:
        """Where each group of queries that are measured together begins, and the end of the last."""
        return np.cumsum([0, *self._lengths(self.strategy)])

    def _lengths(self, strategy: Workload) -> list[int]:
        if self.method == "book":
            return [1] * len(strategy)
        lengths: list[int] = []
        for block in strategy.blocks:
            count = block.count(strategy.domain)
            lengths += [count] if isinstance(block, Product) else [1] * count
        return lengths

    @cached_property
    def _groups(self) -> int:
        """How many groups the workload asks for."""
        return len(self._lengths(self._asked))

    @cached_property
    def follows(self) -> bool:
        """Whether the number of rounds follows the noisy size: neither is declared, and not all is measured anyway."""
        free = self.method == "best" and self.rounds is None and self.size is None
        return free and self._planned(0) < self._groups

    @cached_property
    def measurements(self) -> int:
        """How many groups are measured: all, or `rounds`, or as many as usually do best; if that `follows` the data, as
        many as for a size of middling signal."""
        if self.method == "best":
            return self._planned(self.size) if self.rounds is None else min(self.rounds, self._groups)
        if self.rounds is not None:
            return self.rounds
        return self._usual(None) if self.size is None else self._least_bound()

    def _planned(self, size: int | None) -> int:
        """The usual number of rounds, or all groups where that is nearly as many; with a size that is not declared one
        for each attribute at least, and all groups where their noise is faint."""
        usual = self._usual(size) if self.size is not None else max(self._usual(size), len(self._attributes))
        enough = self._groups * (1 - _CHOICE["best"])
        faint = self.size is None and size is not None and enough <= _MOST_USUAL and self._faint(size)
        return self._groups if faint or usual >= enough else usual

    def _faint(self, size: int) -> bool:
        """Whether noise on all marginals puts few rows of so many in the wrong place."""
        if not all(isinstance(block, Product) for block in self._asked.blocks):
            return False
        moved = self._groups * self.changes
        noise = math.sqrt(moved / (math.pi * self._whole)) if self.delta else moved / self.epsilon
        return float(np.mean(self._lengths(self._asked))) * noise * self.unit_weight <= 2 * _FEW * size

    def _usual(self, size: int | None) -> int:
        """√(nε/W)/9 rounds, half as many more for noise that grows with their root; 20 where n is not known."""
        if size is None:
            return 20
        signal = math.isqrt(int(size * self.epsilon / self.unit_weight))
        return min(max(signal // (6 if self.delta else 9), _LEAST_USUAL), _MOST_USUAL)

    @cached_property
    def noise(self) -> Noise:
        """How much noise each step of `measurements` rounds gets."""
        return self._noise(self.measurements)

    @cached_property
    def _longest(self) -> int:
        return int(np.diff(self._starts).max())

    @cached_property
    def _moves(self) -> tuple[int, int]:
        """How far a unit moves what is measured together, in steps: in ℓ1, and in squared ℓ2."""
        steps = self.unit_weight * self.strategy.denominator
        largest = max(1, math.ceil(steps * self.strategy.largest()))
        several = any(isinstance(block, Product) for block in self.strategy.blocks) and self.method == "best"
        return (self.changes * steps, self.changes * steps**2) if several else (largest, largest**2)

    @property
    def _share(self) -> Fraction:
        return SIZE_SHARE if self.size is None else Fraction(0)

    def _noise(self, rounds: int, tight: bool = True) -> Noise:
        """How much noise each step gets if there are so many rounds."""
        if self.delta:
            return self._concentrated(rounds, self._factor(rounds) if tight else Fraction(1))
        each = self.epsilon * (1 - self._share) / rounds
        part = each * _CHOICE[self.method] if self._chooses(rounds) else Fraction(0)
        return Noise(
            PermuteAndFlip(part, self._moves[0]) if part else None,
            Laplace.for_epsilon(each - part, self._moves[0], dimension=self._longest),
            Laplace.for_epsilon(self.epsilon * self._share, self.unit_weight) if self._share else None,
            rounds,
        )

    def _chooses(self, rounds: int) -> bool:
        return self.method == "book" or rounds < self._groups

    @cached_property
    def _whole(self) -> Fraction:
        """The ρ that zCDP alone would have for the budget."""
        return affordable(self.budget, ZCDP).rho

    def _concentrated(self, rounds: int, factor: Fraction) -> Noise:
        """Noise for so many rounds with a δ, `factor` of what zCDP alone asks for."""
        rho = self._whole / factor**2
        each = rho * (1 - self._share) / rounds
        part = each * _CHOICE_RHO[self.method] if self.follows or self._chooses(rounds) else Fraction(0)
        return Noise(
            Exponential(sqrt_down(8 * part), self._moves[0]) if self._chooses(rounds) else None,
            Gaussian.for_zcdp(each - part, self._moves[1], dimension=self._longest),
            Gaussian.for_zcdp(rho * self._share, self.unit_weight**2) if self._share else None,
            rounds,
        )

    def _factor(self, rounds: int) -> Fraction:
        """zCDP alone asks for a factor of 1, the tightest accountant usually for less."""
        if self.follows:
            return self._common_factor
        return calibrate(lambda f: Composed(self._concentrated(rounds, f).events), self.budget, "1/2", 1, bits=8)

    @cached_property
    def _common_factor(self) -> Fraction:
        """About 1, and above it by the rounding of what is converted back."""
        return calibrate(lambda f: Composed(self._covering(f)), self.budget, "1/2", "33/32", bits=16)

    def _covering(self, factor: Fraction) -> tuple[Event, ...]:
        """What covers every number of rounds that may follow from the size, with a δ."""
        most = self._planned(LARGEST_SIZE)
        alone = self._concentrated(1, factor)
        assert alone.sizer is not None
        assert isinstance(alone.meter, Gaussian)
        rho = self._whole / factor**2 * (1 - self._share)
        choices = rho * _CHOICE_RHO["best"]
        moved = alone.meter.events[0].squared_sensitivity
        measured = events.Gaussian(moved / (2 * (rho - choices)), moved, self._longest * most)
        return (*alone.sizer.events, events.BoundedRanges(8 * choices, most), measured)

    @property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run; where the number of rounds follows the data, what covers any number."""
        if not self.follows:
            return self.noise.events
        if self.delta:
            return self._covering(self._common_factor)
        assert self.noise.sizer is not None
        return (*self.noise.sizer.events, events.Pure(self.epsilon * (1 - self._share)))

    def accuracy(self, beta: Exactable, total: float) -> float:
        """With probability 1 − β, on a histogram found to hold `total` steps, every query of the book's synopsis is
        within this; ∞ for `best`."""
        return self._bound(total, probability("beta", beta), self.noise)

    def _bound(self, total: float, beta: Exactable, noise: Noise | None = None) -> float:
        noise = noise or self.noise
        if noise.chooser is None or self.method != "book":
            return math.inf
        third, scale = probability("beta", beta) / 3, self.strategy.denominator
        # Both the size of the histogram and its counts are then off by `unsure`, after scaling it to `total`.
        unsure = 0.0 if noise.sizer is None else max(1.0, noise.sizer.accuracy(third))
        measured = noise.meter.accuracy(third, size=noise.rounds) / scale + unsure
        # Two scores, of the best and of the chosen, are each off by half a step.
        short = (noise.chooser.accuracy(third / noise.rounds, size=len(self.workload)) + 1) / scale
        distance = 4 * total**2 * math.log(self.workload.domain.size) / noise.rounds
        return math.sqrt(distance + measured**2) + short + 3 * unsure

    def _least_bound(self) -> int:
        """The number of rounds at which the bound for β = 5 % is about least."""
        tried = sorted({round(2 ** (power / 2)) for power in range(21)})
        return min(tried, key=lambda t: self._bound(float(self.size or 0), Fraction(1, 20), self._noise(t, False)))

    def release(
        self, histogram: object, *, entropy: Entropy | None = None, progress: Progress | None = None
    ) -> Release:
        """A `Weights` synopsis of the histogram; what it holds never raises."""
        source = chosen(entropy)
        cells = self.strategy.domain.held(histogram)
        total = self._total(cells, source)
        noise = self._noise(self._planned(min(int(total), LARGEST_SIZE))) if self.follows else self.noise
        run = _Run(self, noise, self.strategy.counts(cells), total, source, progress or (lambda share: None))
        weights = run.averaged() if self.method == "book" else run.corrected()
        error = partial(self._bound, total) if self.method == "book" else None
        return Release(Weights(self.workload.domain, weights, error), self.loss, self.events, None, source.private)

    def _total(self, cells: Integers, source: Entropy) -> float:
        if self.noise.sizer is None:
            return float(max(1, self.size or 0))
        return float(max(1, int(self.noise.sizer.release(total_weight(cells), entropy=source).values)))


@dataclass(frozen=True)
class Noise:
    """How groups are chosen, measured, and all records counted."""

    chooser: PermuteAndFlip | Exponential | None
    meter: Laplace | Gaussian
    sizer: Laplace | Gaussian | None
    rounds: int

    @property
    def events(self) -> tuple[Event, ...]:
        """All that is run."""
        first = () if self.sizer is None else self.sizer.events
        choices = () if self.chooser is None else (Repeated(self.chooser.events[0], self.rounds),)
        return (*first, *choices, Repeated(self.meter.events[0], self.rounds))

    @property
    def typical(self) -> float:
        """E|noise| of a measurement, in steps."""
        if isinstance(self.meter, Laplace):
            return float(self.meter.scale)
        return float(self.meter.sigma) * math.sqrt(2 / math.pi)


class _Run:
    """One run on exact counts, which nothing but the two mechanisms of a round looks at."""

    def __init__(
        self, terms: MWEM, noise: Noise, counts: Integers, total: float, source: Entropy, progress: Progress
    ) -> None:
        self._terms = terms
        self._noise = noise
        self._strategy = terms.strategy
        self._counts = counts
        self._total = total
        self._source = source
        self._progress = progress
        self._starts = terms._starts
        size = self._strategy.domain.size
        self._even: Doubles = np.full(size, total / size)

    def averaged(self) -> Doubles:
        """The mean of all rounds, each with the update of the theorem."""
        weights, mean = self._even, np.zeros(self._even.size)
        rounds = self._noise.rounds
        for number in range(rounds):
            mean += weights
            query = self._choose(weights)
            value = min(max(float(self._measure(query)[0]), 0.0), self._total)
            weights = nudged(weights, *self._strategy.support(query), value, self._total)
            self._progress((number + 1) / rounds)
        return mean / rounds

    def corrected(self) -> Doubles:
        """The last of all rounds, each of which meets all that was measured."""
        found: dict[int, list[Doubles]] = {}
        tensor = self._even.reshape(self._strategy.domain.shape)
        rounds = self._noise.rounds
        for number in range(rounds):
            group = number if self._noise.chooser is None else self._choose(tensor.reshape(-1))
            # The newest comes last.
            found[group] = [*found.pop(group, []), self._measure(group)]
            if self._noise.chooser is not None:
                tensor = self._met(tensor, found, _PASSES)
            self._progress(0.9 * (number + 1) / rounds)
        weights = self._met(tensor, found, _LAST_PASSES).reshape(-1)
        groups = sorted(found)
        places = np.concatenate([np.arange(self._starts[g], self._starts[g + 1]) for g in groups])
        values = np.concatenate([np.mean(found[g], axis=0) for g in groups])
        weights = polished(weights, self._strategy.subset(places), values, _POLISH)
        self._progress(1.0)
        return weights

    def _choose(self, weights: Doubles) -> int:
        """A group that is far off, less the noise that measuring it would bring."""
        scale = self._strategy.denominator
        said = np.clip(np.rint(self._strategy.answers(weights) * scale), 0, float(1 << 61)).astype(np.int64)
        scores = _sums(np.abs(self._counts - said), self._starts)
        if self._terms.method == "best":
            scores = scores - np.rint(np.diff(self._starts) * self._noise.typical).astype(np.int64)
        assert self._noise.chooser is not None
        return int(self._noise.chooser.release(scores, entropy=self._source).values)

    def _measure(self, group: int) -> Doubles:
        counts = self._counts[self._starts[group] : self._starts[group + 1]]
        noisy = np.asarray(self._noise.meter.release(counts, entropy=self._source).values, dtype=np.float64)
        return noisy / self._strategy.denominator

    def _met(self, tensor: Doubles, found: dict[int, list[Doubles]], passes: int) -> Doubles:
        least = min(_FAINT * self._noise.typical / self._strategy.denominator, self._total / tensor.size)
        for _ in range(passes):
            for group, values in found.items():
                tensor = self._measured(group).met(tensor, np.mean(values, axis=0), self._total, least)
        return tensor

    def _measured(self, group: int) -> Measured:
        index = int(self._starts[group])
        block = self._strategy.blocks[self._strategy.block_of(index)[0]]
        if isinstance(block, Product):
            return Measured.marginal(self._strategy.domain, block.axes(self._strategy.domain))
        return Measured.query(self._strategy, index)


def _sums(distances: Integers, starts: Integers) -> Integers:
    """Sums of groups, exactly, and held at the largest score."""
    if float(distances.sum(dtype=np.float64)) < LARGEST_CELL / 4:
        return np.add.reduceat(distances, starts[:-1])
    exact = np.add.reduceat(distances.astype(object), starts[:-1])
    return np.minimum(exact, END // 2).astype(np.int64)

"""Private multiplicative weights, online: queries are answered as they come, and paid for where the synopsis fails.

Unit, neighbours and loss are those of `Terms`. A unit moves one answer by at most Δ, `unit_weight` times the largest
entry of a query, whether it is added, removed or replaced. Counts are exact integers, in steps of 1/`denominator`.

Guarantee. Every query is first answered by the synopsis, made of what was released before. A sparse vector is asked
whether that answer, rounded to whole steps, is off by the threshold or more: a distance that moves by at most Δ. Where
it is not, the answer stands. Where it is, the count is measured with Laplace noise (Gaussian for δ > 0), said, and
learned from by the update of `weighing.nudged`; at most `updates` times. Given everything said, all questions to the
sparse vector and all counts measured are fixed and their noises independent, so the probability of a transcript is the
product of one for each, and the losses of the sparse vector and of `updates` measurements add up. If `size` is not
declared, the number of steps is measured first, as in `population`.

Accuracy (Hardt, Rothblum 2010, with constants worked out). Let comparisons be off by c and measured counts by v. An
update with the synopsis off by d lowers its relative entropy to the data by (d² − v²)/4n² at least, and d ≥ threshold
− c. The entropy is at most ln|X| at first, so a threshold of c + √(4n²·ln|X|/updates + v²) is not passed once the
updates are used up, and every answer is within threshold + c. The threshold is chosen for β = 1/1000 and nothing is
proven for less.

>>> from discreet.synopses import Attribute, Domain, Workload
>>> domain = Domain((Attribute.binned("age", range(0, 101, 10)),))
>>> online = OnlineMultiplicativeWeights(workload=Workload.ranges(domain, "age"), epsilon=1, size=100_000)
>>> run = online.start([30_000, 20_000] + [10_000] * 3 + [4_000] * 5)
>>> abs(run.ask(0).value - 30_000) < online.accuracy(0.01), online.loss
(True, PureDP(epsilon=1))
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, count, natural, probability
from discreet.core.forks import Run
from discreet.core.mechanism import Release
from discreet.mechanisms.additive import END
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.synopses.base import Terms
from discreet.synopses.multiplicative_updates import inner, nudged
from discreet.synopses.mwem import MOST_CELLS, REMEDY, Progress
from discreet.synopses.queries.factors import Doubles
from discreet.synopses.synopsis import Answers, Weights
from discreet.synopses.total_weight import Population

__all__ = ["OnlineAnswer", "OnlineMultiplicativeWeights", "OnlineRun"]

_MEASURED = Fraction(1, 4)
"""The share of ε for counts; comparisons need more noise and get the rest."""
_SUPPOSED = 10_000
"""Where the size is unknown, `updates` is chosen as for so many units."""
_USUAL = Fraction(1, 1000)
"""The β for which `updates` and the threshold are chosen."""
_MOST_UPDATES = 1 << 16


@dataclass(frozen=True)
class OnlineAnswer:
    """A count, and whether the data was asked for it: the synopsis answered if not."""

    value: float
    hard: bool
    private: bool = True
    """False when the noise came from a test seed."""


@dataclass(frozen=True, kw_only=True)
class OnlineMultiplicativeWeights(Terms):
    """At most `updates` of any number of queries are measured, where the synopsis is off by the `threshold`, in counts.

    None for what proves most. The queries of `workload` may be asked in any order, and more than once.
    """

    updates: int | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workload.domain.dense(MOST_CELLS, REMEDY)
        if self.updates is not None and natural("updates", self.updates) > _MOST_UPDATES:
            raise InvalidArgument("updates", self.updates, f"at most {_MOST_UPDATES:,}", "allow fewer")
        if self.threshold is not None:
            count("threshold", self.threshold, limit=END // (4 * self.workload.denominator))
        if self.size is not None and self.size * self.workload.denominator > END // 4:
            raise InvalidArgument("size", self.size, "below 2^60 in steps of the queries", "use 0/1 queries")
        natural("updates", self.design.updates)

    @cached_property
    def _population(self) -> Population:
        return Population(self.epsilon, self.unit_weight, self.size)

    @cached_property
    def design(self) -> Design:
        """The noise of comparisons and counts; with the updates asked for, or those whose bound is the least."""
        if self.updates is not None:
            return self._designed(self.updates)
        size = self.size if self.size is not None else _SUPPOSED * self.unit_weight
        tried = sorted({round(2 ** (power / 2)) for power in range(2 * 12 + 1)})
        return min((self._designed(updates) for updates in tried), key=lambda d: d.threshold(size, _USUAL))

    def _designed(self, updates: int) -> Design:
        moved = max(1, math.ceil(self.unit_weight * self.workload.denominator * self.workload.largest()))
        epsilon = self._population.rest
        share = epsilon * _MEASURED
        comparing = SparseVector.for_epsilon(epsilon - share, 0, updates, sensitivity=moved)
        measuring: Laplace | Gaussian = Laplace(updates * moved / share, Fraction(moved))
        if self.delta:
            measuring = Gaussian.for_approx(share, self.delta, updates * moved**2, dimension=updates)
        return Design(self, updates, comparing, measuring)

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What a whole run costs, however many queries are asked."""
        return (*self._population.events, *self.design.events)

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β each query of the workload, asked once, is answered within this many counts.

        ∞ where the size is unknown (what `release` returns knows it), or threshold and updates prove nothing.
        """
        tail = probability("beta", beta)
        return math.inf if self.size is None else self.design.accuracy(self.size, tail)

    def start(self, histogram: object, *, entropy: Entropy | None = None) -> OnlineRun:
        """A run that answers queries as they come; it costs `loss` once."""
        return OnlineRun(self, self.workload.domain.held(histogram), chosen(entropy))

    def release(
        self, histogram: object, *, entropy: Entropy | None = None, progress: Progress | None = None
    ) -> Release:
        """Answers to all queries of the workload, asked in their order."""
        source = chosen(entropy)
        run = self.start(histogram, entropy=source)
        values = np.empty(len(self.workload))
        for index in range(values.size):
            values[index] = run.ask(index).value
            if progress is not None:
                progress((index + 1) / values.size)
        synopsis = Answers(self.workload, values, partial(self.design.accuracy, run.size))
        return Release(synopsis, self.loss, self.events, None, source.private)


@dataclass(frozen=True)
class Design:
    """What a run with so many updates is made of, in steps of 1/`denominator`."""

    mechanism: OnlineMultiplicativeWeights
    updates: int
    comparing: SparseVector
    measuring: Laplace | Gaussian

    @property
    def events(self) -> tuple[events.Event, ...]:
        """Gaussian noise is made for all counts together, Laplace noise for each."""
        measured = self.measuring.events[0]
        alone = isinstance(measured, events.Laplace)
        return (*self.comparing.events, events.Repeated(measured, self.updates) if alone else measured)

    def errors(self, beta: Fraction) -> tuple[float, float, float]:
        """With probability 1 − β: how far off comparisons, counts and the size are, in counts."""
        scale, share = self.mechanism.workload.denominator, beta / 3
        # Half a step more, for rounding what the synopsis answers.
        compared = self.comparing.accuracy(share, len(self.mechanism.workload)) + 0.5
        unsure = self.mechanism._population.doubt(share)
        return compared / scale, self.measuring.accuracy(share, self.updates) / scale, unsure

    def threshold(self, size: int, beta: Fraction) -> float:
        """The least threshold, in counts, that more than `updates` queries cannot pass."""
        compared, measured, unsure = self.errors(beta)
        entropy = 4.0 * size**2 * math.log(self.mechanism.workload.domain.size) / self.updates
        # After scaling the data to the size that was found, its counts are off by `unsure` more.
        return compared + unsure + math.sqrt(entropy + (measured + unsure) ** 2)

    def steps(self, size: int) -> int:
        """The threshold that is used, in steps."""
        scale, given = self.mechanism.workload.denominator, self.mechanism.threshold
        wanted = self.threshold(size, _USUAL) if given is None else float(given)
        return math.ceil(min(wanted, END / (4 * scale)) * scale)

    def accuracy(self, size: int, beta: Exactable) -> float:
        """In counts; ∞ where more queries may pass the threshold than there are updates."""
        tail = probability("beta", beta)
        used = self.steps(size) / self.mechanism.workload.denominator
        compared, measured, unsure = self.errors(tail)
        return max(used + compared, measured + unsure) if used >= self.threshold(size, tail) else math.inf


class OnlineRun(Run):
    """The state of one run: the synopsis so far, and how many updates are left. Threads may share it."""

    def __init__(self, mechanism: OnlineMultiplicativeWeights, cells: Integers, entropy: Entropy) -> None:
        super().__init__("OnlineMultiplicativeWeights")
        self._mechanism, self._entropy = mechanism, entropy
        self.size = max(1, mechanism._population.found(cells, entropy))
        """How many steps there are, declared or found."""
        self._counts = mechanism.workload.counts(cells)
        self._weights: Doubles = np.full(cells.size, self.size / cells.size)
        threshold = mechanism.design.steps(self.size)
        self._comparisons = replace(mechanism.design.comparing, threshold=threshold).start(entropy=entropy)

    @property
    def exhausted(self) -> bool:
        """Whether all queries from now on are answered by the synopsis, right or wrong."""
        return self._comparisons.exhausted

    @property
    def synopsis(self) -> Weights:
        """The synopsis as it is now, for any query; how wrong it is nobody has proven."""
        return Weights(self._mechanism.workload.domain, self._weights)

    def ask(self, index: int) -> OnlineAnswer:
        """The answer to one query of the workload."""
        mechanism, private = self._mechanism, self._entropy.private
        place, scale = count("index", index, limit=len(mechanism.workload) - 1), mechanism.workload.denominator
        self._stay()
        cells, entries = mechanism.workload.support(place)
        with self._lock:
            said = inner(self._weights[cells], entries)
            truth = int(self._counts[place])
            far = abs(truth - round(min(said * scale, END / 2)))
            if self.exhausted or not self._comparisons.ask(far).above:
                return OnlineAnswer(said, False, private)
            noisy = int(mechanism.design.measuring.release(truth, entropy=self._entropy).values) / scale
            value = min(max(noisy, 0.0), float(self.size))
            self._weights = nudged(self._weights, cells, entries, value, float(self.size))
            return OnlineAnswer(value, True, private)

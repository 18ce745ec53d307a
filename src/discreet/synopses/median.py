"""The median mechanism: questions come one by one, and most are answered by databases that agree with past answers.

Guarantee. Unit: what the histogram was made for, whose cells weigh at most `unit_weight` w together. Neighbours: one
unit more or less (`changes=1`), or another in its place (`changes=2`); either moves a count ⟨q, x⟩ by at most Δ = w·max
q. Loss: ε in all, or (ε, δ), for any number of questions. Argument: the data is touched in three ways. The total n is
declared, or bought as in `total_weight.py`. Each question is the sparse vector technique's: whether |⟨q, x⟩ − p| is
above a threshold, p being the median of what the databases still alive would answer, rounded to whole steps; p depends
on past answers only, so the question moves by Δ. At most c questions are found above, and each of them gets a noisy
count: discrete Laplace noise of scale cΔ/ε₃, or with δ > 0 Gaussian noise for c of them. What is alive is computed
from what was said.

A question below the threshold is answered by p. One above is answered by its noisy count a, and only databases whose
answers are nearer to a than the median was live on: at most half. There are N databases of m rows, so log₂ N answers
above are enough (`updates`), unless noise kills the good ones; the default threshold makes that unlikely.

>>> from discreet.synopses.domain import Attribute, Domain
>>> from discreet.synopses.queries.workload import Workload
>>> domain = Domain([Attribute("age", ("young", "old")), Attribute("sick", ("no", "yes"))])
>>> median = MedianMechanism(workload=Workload.all_marginals(domain, 1), epsilon=1, size=10_000, rows=8)
>>> median.loss
PureDP(epsilon=1)
>>> run = median.start([9000, 0, 0, 1000])
>>> [run.ask(index).value > 5000 for index in range(4)]
[True, False, True, False]

Databases are listed as for SmallDB (`candidates.py`), so this is for small domains, and for comparing.

Reference: Roth, Roughgarden (2010); in the form of Gupta, Roth, Ullman (2012), which halves by the sparse vector
technique.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, count, natural, probability
from discreet.core.forks import Run
from discreet.core.mechanism import Release
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.synopses.base import Terms
from discreet.synopses.candidates import END, Kinds, held, multisets, number_of_multisets, stretches
from discreet.synopses.synopsis import Answers
from discreet.synopses.total_weight import Population

__all__ = ["MedianAnswer", "MedianMechanism", "MedianRun"]

MOST = 1 << 18
"""Databases kept alive at first: each question asks all of them, within a second."""
MOST_KINDS = 723
"""With more kinds of cells there are more than `MOST` databases of two rows."""
INSTEAD = "use OnlineMultiplicativeWeights, which needs no list of databases"
SUPPOSED = 1_000
"""Where the total is unknown, rows and shares are chosen as for so many units."""
USUAL = Fraction(1, 20)
"""The β at which the default threshold is proven."""


@dataclass(frozen=True)
class MedianAnswer:
    """A count, and whether the data was asked for it: the median served if not."""

    value: float
    hard: bool
    private: bool = True
    """False when the noise came from a test seed."""


@dataclass(frozen=True, kw_only=True)
class MedianMechanism(Terms):
    """Databases of `rows` rows, halved at most `updates` times, each time a median is off by the `threshold` counts.

    None for the choice that proves most.
    """

    rows: int | None = None
    updates: int | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds, size = self.kinds, self.size or 0
        if self.threshold is not None:
            count("threshold", self.threshold, limit=END // kinds.scale)
        most = self._most_rows
        if self.rows is not None and natural("rows", self.rows) > most:
            cost = f"{self.rows} rows of {kinds.number} kinds of cells"
            raise InvalidArgument("rows", cost, f"at most {most}, {MOST:,} databases", f"take fewer, or {INSTEAD}")
        if self.updates is not None:
            natural("updates", self.updates)
        largest = END // (self._design.rows * kinds.scale)
        if size > largest:
            raise InvalidArgument("size", size, f"at most {largest} for these rows", "take fewer rows")

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of cells that the queries tell apart."""
        return Kinds.told_apart_by(self.workload, MOST_KINDS, INSTEAD)

    @cached_property
    def _population(self) -> Population:
        return Population(self.epsilon, self.unit_weight, self.size)

    @cached_property
    def _most_rows(self) -> int:
        kinds = self.kinds.number
        listed = bisect_right(range(2, MOST + 1), MOST, key=lambda rows: number_of_multisets(kinds, rows)) + 1
        return listed if kinds > 1 else 1

    @cached_property
    def _design(self) -> _Design:
        """With the rows asked for, or those whose bound at β = 1/20 is the least: powers of √2 are tried."""
        if self.rows is not None:
            return self._designed(self.rows)
        most, size = self._most_rows, self.size if self.size is not None else SUPPOSED * self.unit_weight
        tried = sorted({min(most, math.ceil(2 ** (power / 2))) for power in range(2 * most.bit_length() + 1)})
        return min((self._designed(rows) for rows in tried), key=lambda design: design.threshold(size, USUAL)[1])

    def _designed(self, rows: int) -> _Design:
        kinds, rest = self.kinds, self._population.rest
        moved = self.unit_weight * kinds.largest
        halvings = max(1, number_of_multisets(kinds.number, rows).bit_length() - 1)
        updates = halvings if self.updates is None else self.updates

        def measuring(epsilon: Fraction) -> Laplace | Gaussian:
            if self.delta:
                return Gaussian.for_approx(epsilon, self.delta, updates * moved**2, dimension=updates)
            return Laplace(updates * moved / epsilon, Fraction(moved))

        def comparing(epsilon: Fraction) -> SparseVector:
            return SparseVector.for_epsilon(epsilon, 0, updates, sensitivity=moved)

        # Errors fall as one over ε; the sum of both is least when the shares are as their roots.
        half = rest / 2
        compared = math.sqrt(comparing(half).accuracy(USUAL / 2, len(self.workload)))
        measured = math.sqrt(measuring(half).accuracy(USUAL / 2, updates))
        share = Fraction(measured / (compared + measured)).limit_denominator(100)
        return _Design(self, rows, halvings, updates, comparing(rest * (1 - share)), measuring(rest * share))

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What a whole run costs, however many questions are asked."""
        return (*self._population.events, *self._design.events)

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β each query of the workload, asked once, is answered within this many counts.

        ∞ where the total is unknown, or threshold and updates are too few to prove anything.
        """
        tail = probability("beta", beta)
        return math.inf if self.size is None else self._design.accuracy(self.size, tail)

    def start(self, histogram: object, *, entropy: Entropy | None = None) -> MedianRun:
        """A run that answers questions as they come; it costs `loss` once."""
        return MedianRun(self, self.workload.domain.held(histogram), chosen(entropy))

    def release(
        self, histogram: object, *, entropy: Entropy | None = None, progress: Callable[[float], None] | None = None
    ) -> Release:
        """Answers to all queries of the workload, asked in their order."""
        run = self.start(histogram, entropy=entropy)
        values = np.empty(len(self.workload))
        for index in range(values.size):
            values[index] = run.ask(index).value
            if progress is not None:
                progress((index + 1) / values.size)
        synopsis = Answers(self.workload, values, partial(self._design.accuracy, run.size))
        return Release(synopsis, self.loss, self.events, None, chosen(entropy).private)


@dataclass(frozen=True)
class _Design:
    """What a mechanism with so many rows runs: comparisons, and counts of what is found above."""

    mechanism: MedianMechanism
    rows: int
    halvings: int
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
        """With probability 1 − β: how far off comparisons and counts are, in steps of 1/scale, and the total."""
        share = beta / (2 if self.mechanism.size is not None else 3)
        compared = self.comparing.accuracy(share, len(self.mechanism.workload))
        doubt = self.mechanism._population.doubt(share) if self.mechanism.size is None else 0.0
        return compared, self.measuring.accuracy(share, self.updates), doubt

    def threshold(self, size: int, beta: Fraction) -> tuple[int, float]:
        """In steps of 1/scale: the least threshold that spares the nearest database, and how far off answers then are.

        The nearest database is off by at most g, counts by v, comparisons by c. What is found above is off by the
        threshold less c, so that its median is farther from the noisy count than the nearest database when the
        threshold is more than g + c + 2v + ½, the half for rounding the median.
        """
        scale = self.mechanism.kinds.scale
        compared, measured, doubt = self.errors(beta)
        nearest = (size * self.mechanism.kinds.nearest(self.rows) + doubt) * scale
        least = math.floor(nearest + compared + 2 * measured + 1) + 1
        return least, least + compared

    def accuracy(self, size: int, beta: Exactable) -> float:
        """In counts; ∞ where the good databases may be lost."""
        tail = probability("beta", beta)
        scale, given = self.mechanism.kinds.scale, self.mechanism.threshold
        used = self.threshold(size, USUAL)[0] if given is None else given * scale
        if used < self.threshold(size, tail)[0] or self.updates < self.halvings:
            return math.inf
        compared, measured, _ = self.errors(tail)
        return max(used + compared, measured) / scale


class MedianRun(Run):
    """The state of one run: which databases are alive, and how many times they may still be halved.

    Threads may share it. `size` is the total declared or found.
    """

    def __init__(self, mechanism: MedianMechanism, cells: Integers, entropy: Entropy) -> None:
        super().__init__("MedianMechanism")
        design, scale = mechanism._design, mechanism.kinds.scale
        self._mechanism, self._design, self._entropy = mechanism, design, entropy
        self.size = min(mechanism._population.found(cells, entropy), END // (design.rows * scale))
        self._counts = held(mechanism.workload, cells, design.rows)
        self._alive = np.arange(number_of_multisets(mechanism.kinds.number, design.rows))
        given = mechanism.threshold
        threshold = design.threshold(self.size, USUAL)[0] if given is None else given * scale
        self._comparisons = replace(design.comparing, threshold=min(threshold, END - 1)).start(entropy=entropy)

    @property
    def exhausted(self) -> bool:
        """Whether all questions from now on are answered by medians, right or wrong."""
        return self._comparisons.exhausted

    @property
    def alive(self) -> int:
        """How many databases agree with all that was said."""
        return self._alive.size

    def ask(self, index: int) -> MedianAnswer:
        """The answer to one query of the workload."""
        mechanism, private = self._mechanism, self._entropy.private
        place = count("index", index, limit=len(mechanism.workload) - 1)
        self._stay()
        with self._lock:
            answers = self._predictions(place)
            median = float(np.partition(answers, (answers.size - 1) // 2)[(answers.size - 1) // 2])
            prediction = math.floor(median + 0.5)
            truth, scale = int(self._counts[place]), mechanism.kinds.scale
            if self.exhausted or not self._comparisons.ask(abs(truth - prediction)).above:
                return MedianAnswer(prediction / scale, False, private)
            noisy = int(self._design.measuring.release(truth, entropy=self._entropy).values)
            far = np.abs(answers - noisy)
            nearer = far < abs(median - noisy)
            self._alive = self._alive[nearer if nearer.any() else far == far.min()]
            return MedianAnswer(noisy / scale, True, private)

    def _predictions(self, place: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What each database alive answers, in steps of 1/scale."""
        kinds, rows = self._mechanism.kinds, self._design.rows
        answers = np.empty(self._alive.size)
        for part in stretches(answers.size, kinds.number):
            answers[part] = kinds.answers(multisets(kinds.number, rows, self._alive[part]), place)
        return answers * (self.size / rows)

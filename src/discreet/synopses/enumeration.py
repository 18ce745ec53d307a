"""The base generator for arbitrary queries: the first database in a list that agrees with noisy answers.

Guarantee. Unit: whoever weighs at most `unit_weight` w in the cells. Neighbours: that unit is there or not
(`changes=1`), or another is in its place (`changes=2`). Loss: ε-DP with Laplace noise, (ε, δ)-DP with Gaussian noise.
Argument: one record more or less moves each answer by at most `sensitivity` s, as is declared for arbitrary
statistics and computed for a workload; so a unit moves each by at most w·s·changes, and k of them by k times that in ℓ1
(√k in ℓ2). They are released with noise for it, and the search looks at nothing else.

Databases of `rows` rows are listed as multisets of cells, in lexicographic order of their sorted rows: the first one
that agrees is the one the book finds among all |X|^n sequences, up to n! times sooner. There are C(|X| + n − 1, n), so
this is for a handful of cells or rows, and refused beyond with the number. A database agrees if it is within λ/2 of
every noisy answer, λ/2 being what no noise exceeds but with probability β. If none is, the one whose worst answer is
the nearest is taken, where the book fails.

>>> from discreet.synopses import Attribute, Domain
>>> domain = Domain((Attribute("dose", (0, 1, 2, 3)),))
>>> spread = Statistics(domain, 2, lambda x: np.stack([(x > 0).sum(axis=1), x.max(axis=1)], axis=1), sensitivity=1)
>>> generator = ArbitraryGenerator(workload=spread, epsilon=2, size=12)
>>> generator.number, generator.loss
(455, PureDP(epsilon=2))
>>> generator.release([6, 0, 4, 2]).values.total
12.0

Where the source is wrong (Dwork, Roth, Theorem 6.6): the b of its statement and of its proof differ by 2√2; a noise
above λ/2 (not λ) is what must not happen. Its logarithms are natural in one place and binary in another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log2
from typing import Any

import numpy as np

from discreet.accounting.approximate import approximate
from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, count, natural, positive, probability
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.mechanism import Release
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.uniform import uniform
from discreet.synopses.candidates import multisets, number_of_multisets
from discreet.synopses.domain import Domain
from discreet.synopses.queries.factors import Doubles
from discreet.synopses.queries.workload import Workload
from discreet.synopses.synopsis import Weights
from discreet.synopses.total_weight import Population

__all__ = ["ArbitraryGenerator", "Statistics"]

MOST_DATABASES = 1 << 23
"""Databases that are looked at: a minute or so."""
AT_ONCE = 1 << 20
LARGEST = 1 << 50
"""Answers are held within this."""
FINEST = 1 << 40
"""Norms of queries that count nothing are taken to be one over this."""
BETA = Fraction(1, 20)
"""λ/2 is for this chance of a larger noise."""


@dataclass(frozen=True)
class Statistics:
    """Any functions of a histogram with whole values, each of which one record moves by at most `sensitivity`.

    `rule` is given histograms as the rows of a matrix and gives their values as rows, `number` to each. Where it
    raises, or gives another shape or no number, its values are zeros: `sensitivity` has to hold with these.
    """

    domain: Domain
    number: int
    rule: Callable[[Integers], Any]
    sensitivity: int = 1

    def __post_init__(self) -> None:
        natural("number", self.number)
        natural("sensitivity", self.sensitivity)
        if not callable(self.rule):
            raise InvalidArgument("rule", self.rule, "a function of histograms", "give a function")

    def __len__(self) -> int:
        return self.number

    def values(self, histograms: Integers) -> Integers:
        """Whole numbers, one row for each histogram."""
        shape = (len(histograms), self.number)
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.rule(histograms), dtype=np.float64)
        except Exception:  # what a rule does on private data may not show
            return np.zeros(shape, dtype=np.int64)
        if found.shape != shape:
            return np.zeros(shape, dtype=np.int64)
        held = np.clip(np.nan_to_num(found), -LARGEST, LARGEST)
        # Half up, so that numbers s apart stay so: half to even would take 0.5 and 1.5 two apart.
        return (np.floor(held) + (held - np.floor(held) >= 0.5)).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ArbitraryGenerator:
    """Noisy answers to `sample` statistics drawn at random (None: to all), then the first database that agrees."""

    workload: Statistics | Workload
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    unit_weight: int = 1
    changes: int = 1
    size: int | None = None
    rows: int | None = None
    sample: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Statistics | Workload):
            raise InvalidArgument("workload", self.workload, "Statistics or a Workload", "declare what is asked")
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta, zero=True))
        count("unit_weight", natural("unit_weight", self.unit_weight), limit=1 << 40)
        if self.sample is not None:
            natural("sample", self.sample)
        if isinstance(self.changes, bool) or self.changes not in (1, 2):
            raise InvalidArgument("changes", self.changes, "1 or 2", "1 for add/remove neighbours, 2 for replace")
        for name in ("size", "rows"):
            if getattr(self, name) is not None:
                count(name, getattr(self, name), limit=1 << 40)
        if self.size is None and self.rows is None:
            remedy = "declare size, or give rows: how many the database is to have"
            raise InvalidArgument("rows", None, "given where the size is not public", remedy)
        if self.number > MOST_DATABASES:
            rows = f"databases of {self.length:,} rows over {self.domain.size:,} cells"
            found = f"about 10^{log2(self.number) / log2(10):.0f} {rows}"
            remedy = "give fewer rows, or use LinearGenerator or MWEM for linear queries"
            raise InvalidArgument("rows", found, f"at most {MOST_DATABASES:,} databases", remedy)
        _ = self.mechanism

    @property
    def domain(self) -> Domain:
        """What the queries are about."""
        return self.workload.domain

    @property
    def budget(self) -> PureDP | ApproxDP:
        """What was asked for; `loss` is no more."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def length(self) -> int:
        """How many rows a database has; it stands for `size` records."""
        return int(self.rows or self.size or 0)

    @cached_property
    def number(self) -> int:
        """How many databases there are."""
        return number_of_multisets(self.domain.size, self.length)

    @property
    def bits(self) -> float:
        """What the database takes: m of Lemma 6.5."""
        return log2(self.number)

    @property
    def asked(self) -> int:
        """How many answers are released."""
        return len(self.workload) if self.sample is None else self.sample

    @cached_property
    def population(self) -> Population:
        """How the total is known."""
        return Population(self.epsilon, self.unit_weight, self.size)

    @property
    def _denominator(self) -> int:
        return self.workload.denominator if isinstance(self.workload, Workload) else 1

    @cached_property
    def mechanism(self) -> Laplace | Gaussian:
        """The noise on the answers, in steps of 1/denominator."""
        rest = self.population.rest
        p = 2 if self.delta else 1
        if isinstance(self.workload, Workload):
            moved = (self.unit_weight * self._denominator) ** p * max(self._norm(self.workload, p), Fraction(1, FINEST))
        else:
            moved = Fraction(self.asked * (self.unit_weight * self.workload.sensitivity * self.changes) ** p)
        if not self.delta:
            return Laplace.for_epsilon(rest, moved, dimension=self.asked)
        return Gaussian.for_approx(rest, self.delta, moved, dimension=self.asked)

    def _norm(self, queries: Workload, p: int) -> Fraction:
        """Of a column: of all queries, or of as many as are drawn, which may be one again and again."""
        largest = self.asked * queries.largest() ** p
        return largest if self.sample is not None else min(largest, queries.column_norm(p, self.changes))

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What `release` will run."""
        return (*self.population.events, *self.mechanism.events)

    @cached_property
    def loss(self) -> PureDP | ApproxDP:
        """What the events cost."""
        event = events.Composed(self.events)
        return approximate(event, self.delta) if self.delta else pure(event)

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β the database is within λ of the truth on all that was drawn: if it has as many rows
        as the data, which is then in the list."""
        tail = probability("beta", beta)
        if self.size is None or self.length != self.size:
            return float("inf")
        return 2 * self.mechanism.accuracy(min(tail, BETA), self.asked) / self._denominator

    def release(
        self,
        histogram: object,
        *,
        entropy: Entropy | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """Weights on cells: the database, each of its rows standing for size/rows records."""
        source = chosen(entropy)
        held = self.domain.held(histogram)
        total = float(self.population.found(held, source))
        drawn = np.arange(self.asked)
        if self.sample is not None:
            drawn = uniform(len(self.workload), self.asked, entropy=source)
        noisy = self.mechanism.release(self._truth(held)[drawn], entropy=source).values.astype(np.float64)
        chosen_rows = self._first(drawn, noisy, total)
        weights = chosen_rows.astype(np.float64) * (total / self.length if self.length else 0.0)
        if progress is not None:
            progress(1.0)
        error = self.accuracy if self.sample is None else None
        return Release(Weights(self.domain, weights, error), self.loss, self.events, None, source.private)

    def _truth(self, held: Integers) -> Integers:
        if isinstance(self.workload, Workload):
            return np.minimum(self.workload.counts(held), LARGEST)
        return np.asarray(self.workload.values(held[np.newaxis, :])[0], dtype=np.int64)

    def _first(self, drawn: Integers, noisy: Doubles, total: float) -> Integers:
        """The first database within λ/2 of all noisy answers, or else the one whose worst is the least."""
        slack = self.mechanism.accuracy(BETA, self.asked)
        best, found = np.inf, np.zeros(self.domain.size, dtype=np.int64)
        many = max(1, AT_ONCE // max(self.domain.size, self.asked))
        for start in range(0, self.number, many):
            databases = multisets(self.domain.size, self.length, np.arange(start, min(start + many, self.number)))
            misses = np.abs(self._answers(databases, total)[:, drawn] - noisy).max(axis=1)
            agree = np.flatnonzero(misses <= slack)
            if agree.size:
                return np.asarray(databases[agree[0]], dtype=np.int64)
            least = int(misses.argmin())
            if misses[least] < best:
                best, found = float(misses[least]), np.asarray(databases[least], dtype=np.int64)
        return found

    def _answers(self, databases: Integers, total: float) -> Doubles:
        if isinstance(self.workload, Workload):
            scale = self._denominator * (total / self.length if self.length else 0.0)
            return np.stack([self.workload.answers(database) for database in databases]) * scale
        return self.workload.values(databases).astype(np.float64)

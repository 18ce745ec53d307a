"""Boosting for queries: from synopses that are good for most queries to one that is good for all.

Guarantee. Unit: whoever weighs at most `unit_weight` w in the cells. Neighbours: that unit is there or not
(`changes=1`), or another is in its place (`changes=2`). Loss: ε-DP, or (ε, δ)-DP by zCDP, for T rounds of the base
generator, all draws of queries and a total that was not declared. Argument, round by round, given all drawn before:

- Draws. In round t each of k queries is drawn with P(q) ∝ exp(−α·Σ_{j<t} a_j(q)), where a_j(q) is 1 − 2(d − λ)/μ
  held within [−1, 1] and d = |⟨q, x⟩ − A_j(q)| is how far the j-th synopsis is off. The unit moves ⟨q, x⟩ by at most
  ρ = w·max q, each a_j by 2ρ/μ, and so the log-odds of any two queries by at most 4α(t − 1)ρ/μ: a `BoundedRange` of
  that ε. The first round draws uniformly and costs nothing. In whole numbers: d, λ and μ are in steps of
  1/denominator, μ·a_j is whole and moves by 2ρ steps, and the sampler is exact.
- Counts. The base generator measures the queries drawn, for its budget, whichever they are.

μ is the least for which the draws fit into their share: Σ_t k·4α(t−1)ρ/μ ≤ ε for pure DP, and
Σ_t k·(4α(t−1)ρ/μ)²/8 ≤ ρ-zCDP else.

Accuracy (Theorem 6.1). If in every round the synopsis is within λ of the truth on a ½ + η part of the distribution, the
median of T > ln|Q|/(−½·ln(1 − 4η²)) of them is within λ + μ for every query. That part is what Lemma 6.5 gives when
k ≥ `sample_needed(bits, η, β)`: then, and else nothing is known beforehand, `accuracy` is λ + μ.

>>> from discreet.synopses import Attribute, Domain, Workload
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", range(0, 101, 10))))
>>> boosting = Boosting(workload=Workload.ranges(domain, "age"), epsilon=1, delta="1e-6", size=10**4, sample=20)
>>> boosting.turns, boosting.loss.epsilon <= 1
(14, True)

Where the source is wrong (Dwork, Roth, chapter 6). It takes T = ln|Q|/η², though its own proof gives
Z_T ≤ (1 − 4η²)^(T/2)·|Q|, for which three eighths of the rounds are enough at η = 1/3. It charges every draw for T
rounds of change (4αTρ/μ) though round t has seen t − 1, and as pure DP though the range is bounded: together a factor
of √12 in μ. Theorem 6.9 has T(β + δ) where Theorem 6.1 has δ_sample + T·δ, and its α lacks a division.

`method="book"` has its T, its charge and rounds that know nothing of earlier ones. By default (`method="pooled"`) a
round is given all counts that were read so far, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, floor, inf, isqrt, log
from typing import Literal

import numpy as np

from discreet.accounting.conversions import affordable
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable, at_least, natural, probability
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import log_down
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.exponential import gibbs
from discreet.synopses.base import Terms
from discreet.synopses.fitting import Cells
from discreet.synopses.generators import BaseGenerator, LinearBase, sample_needed
from discreet.synopses.noisy_counts import Reading
from discreet.synopses.synopsis import Answers, MedianOf, Weights
from discreet.synopses.total_weight import Population

__all__ = ["Boosting"]

FINE = 1 << 20
"""α is a multiple of one over this."""
LARGEST = 1 << 61
"""Counts and scores are held within this."""
MOST_WEIGHTS = 1 << 28
"""Weights of all rounds together: 2 GB."""
PART, FEWEST = 4, 50
"""Without `sample` a run is given a quarter of the queries, and 50 at least."""
BETA = Fraction(1, 20)
"""λ by default is for this chance of failing."""


def linear(boosting: Boosting, budget: PureDP | ZCDP) -> BaseGenerator:
    """The base generator for linear queries, by least squares."""
    b = boosting
    return LinearBase(b.workload, budget, b.drawn, b.unit_weight, b.changes, b.size)


@dataclass(frozen=True, kw_only=True)
class Boosting(Terms):
    """Rounds of a base generator on `sample` queries each, drawn by how badly earlier rounds did on them.

    `base(boosting, budget)` makes the base generator. `threshold` is λ in counts: by default the proven error of the
    base generator, and where that is not known twice the standard deviation of its noise. `share` is the part of the
    budget that goes into the draws.
    """

    sample: int | None = None
    eta: Fraction = Fraction(1, 3)
    rounds: int | None = None
    share: Fraction = Fraction(1, 10)
    threshold: Fraction | None = None
    base: Callable[[Boosting, PureDP | ZCDP], BaseGenerator] = linear
    method: Literal["pooled", "book"] = "pooled"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eta", probability("eta", self.eta))
        object.__setattr__(self, "share", probability("share", self.share))
        if self.eta >= Fraction(1, 2):
            raise InvalidArgument("eta", self.eta, "below 1/2", "1/3 is usual")
        for name in ("sample", "rounds"):
            if getattr(self, name) is not None:
                natural(name, getattr(self, name))
        if self.threshold is not None:
            object.__setattr__(self, "threshold", at_least("threshold", self.threshold, 0))
        if self.method not in ("pooled", "book"):
            raise InvalidArgument("method", self.method, "'pooled' or 'book'", "leave it out for the better one")
        cost = self.turns * self.workload.domain.size
        if cost > MOST_WEIGHTS:
            found = f"{self.turns} rounds of {self.workload.domain.size:,} cells, {8 * cost / 2**30:.3g} GB"
            raise InvalidArgument("domain", found, f"at most {MOST_WEIGHTS:,} weights", "use MWEM")
        if self.turns * self.attenuation > LARGEST:
            raise InvalidArgument("epsilon", self.epsilon, "enough for draws that tell anything", "spend more")
        _ = self.generator

    @cached_property
    def population(self) -> Population:
        """How the total is known."""
        return Population(self.epsilon, self.unit_weight, self.size)

    @cached_property
    def alpha(self) -> Fraction:
        """½·ln((1 + 2η)/(1 − 2η)), rounded down."""
        return Fraction(max(1, floor(log_down((1 + 2 * self.eta) / (1 - 2 * self.eta)) / 2 * FINE)), FINE)

    @cached_property
    def turns(self) -> int:
        """T: by default the least for which the theorem holds."""
        if self.rounds is not None:
            return self.rounds
        if self.method == "book":
            return ceil(log(len(self.workload)) / float(self.eta) ** 2) or 1
        alpha, eta = float(self.alpha), float(self.eta)
        shrinking = (exp(alpha) + exp(-alpha)) / 2 + eta * (exp(-alpha) - exp(alpha))
        return floor(log(len(self.workload)) / -log(shrinking)) + 1

    @cached_property
    def drawn(self) -> int:
        """k."""
        return max(FEWEST, len(self.workload) // PART) if self.sample is None else self.sample

    @cached_property
    def _budgets(self) -> tuple[Fraction, PureDP | ZCDP]:
        """For all draws together (ε, or ρ where there is a δ), and for one run of the base generator."""
        rest = self.population.rest
        if not self.delta:
            return rest * self.share, PureDP(rest * (1 - self.share) / self.turns)
        rho = affordable(ApproxDP(rest, self.delta), ZCDP).rho
        return rho * self.share, ZCDP(rho * (1 - self.share) / self.turns)

    @property
    def _moved(self) -> int:
        """How far one unit moves one count, in steps."""
        return max(1, int(self.unit_weight * self.workload.denominator * self.workload.largest()))

    def _seen(self, turn: int) -> int:
        """For how many rounds of change a draw in this one (from 0) is charged."""
        return self.turns if self.method == "book" else turn

    @cached_property
    def attenuation(self) -> int:
        """μ in steps of 1/denominator: the least for which the draws fit into their share."""
        allowed, slope = self._budgets[0], 4 * self.alpha * self._moved
        if not self.delta:
            return max(1, ceil(self.drawn * slope * sum(map(self._seen, range(self.turns))) / allowed))
        # A bounded range of ε costs ε²/8 in zCDP, any ε-private draw ε²/2.
        squares = self.drawn * slope**2 * sum(self._seen(turn) ** 2 for turn in range(self.turns))
        needed = ceil(squares / (allowed * (2 if self.method == "book" else 8)))
        return max(1, isqrt(needed - 1) + 1 if needed else 1)

    @cached_property
    def generator(self) -> BaseGenerator:
        """What is run in every round."""
        return self.base(self, self._budgets[1])

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run."""
        runs = events.Repeated(events.Composed(self.generator.events), self.turns)
        return (*self.population.events, runs, *self._draws)

    @property
    def _draws(self) -> tuple[Event, ...]:
        each = [4 * self.alpha * self._seen(turn) * self._moved / self.attenuation for turn in range(self.turns)]
        if self.method == "book":
            return (events.Repeated(events.Pure(each[0]), self.turns * self.drawn),)
        if not self.delta:
            return tuple(events.Repeated(events.BoundedRange(epsilon), self.drawn) for epsilon in each if epsilon)
        squares = sum((self.drawn * epsilon**2 for epsilon in each), Fraction(0))
        return (events.BoundedRanges(squares, self.turns * self.drawn),) if squares else ()

    @property
    def mu(self) -> float:
        """μ in counts."""
        return self.attenuation / self.workload.denominator

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β every query is within this; ∞ where nothing is known beforehand."""
        each = probability("beta", beta) / (2 * self.turns)
        proven, level = self.generator.error(each), self._proven_level
        enough = self.drawn >= sample_needed(self.generator.bits, self.eta, each)
        # Answers are rounded to whole steps before they are compared.
        return level + self.mu + 2 / self.workload.denominator if enough and proven <= level < inf else inf

    @cached_property
    def _proven_level(self) -> float:
        """λ in counts, ∞ where it is left to the noise of each round."""
        return self.generator.error(BETA / (2 * self.turns)) if self.threshold is None else float(self.threshold)

    def release(
        self,
        histogram: object,
        *,
        entropy: Entropy | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Release:
        """The median of all rounds."""
        domain, source = self.workload.domain, chosen(entropy)
        held = domain.held(histogram)
        cells = Cells(domain.size, float(self.population.found(held, source)))
        truth = np.minimum(self.workload.counts(held), LARGEST)
        scores: Integers = np.zeros(len(self.workload), dtype=np.int64)
        rate = self.alpha / self.attenuation
        synopses: list[Weights | Answers] = []
        past: tuple[Reading, ...] = ()
        for turn in range(self.turns):
            queries = gibbs(scores, rate, self.drawn, entropy=source)
            synopsis, reading = self.generator.generate(held, queries, cells, past, source)
            synopses.append(synopsis)
            past = (*past, reading) if self.method == "pooled" else ()
            scores -= self._credit(truth, synopsis, reading)
            if progress is not None:
                progress((turn + 1) / self.turns)
        return Release(MedianOf(tuple(synopses), self.accuracy), self.loss, self.events, None, source.private)

    def _credit(self, truth: Integers, synopsis: Weights | Answers, reading: Reading) -> Integers:
        """μ·a for every query, in whole steps: μ where the synopsis is accurate, −μ where it is not."""
        step, mu = self.workload.denominator, self.attenuation
        answers = np.clip(np.rint(synopsis.answers(self.workload) * step), -LARGEST, LARGEST).astype(np.int64)
        level = 2 * reading.deviation if self._proven_level == inf else self._proven_level
        accurate = min(ceil(level * step) + 1, LARGEST)
        excess = np.clip(np.abs(truth - answers) - accurate, 0, mu)
        return np.asarray(mu - 2 * excess, dtype=np.int64)

"""Any function made stable: its most frequent answer on random subsamples, or ⊥ (A_samp).

Each of `blocks` subsamples holds each record independently with probability `rate`. If some record is in more than
`cap` of them, ⊥. Otherwise the function is run on each, and the most frequent answer is released if it leads by enough.

Guarantee (a unit is one record). Let c be the lead of the first answer over the second. A record in at most L = `cap`
blocks changes at most L answers, so c by at most 2L: γ = ⌊(c − 1)/(2L)⌋ moves by at most 1, and where γ ≥ 1 the first
stays first. The test of γ (`stability.py`) is (ε, δ) for two data sets with the same draw of who is in which block.

- Replace neighbours (n public): who is in which block does not depend on the data at all, and neither does ⊥ for a
  record in too many. (ε, δ).
- Add/remove neighbours: draw the blocks of the common records once, and those of the odd one, u, beside them. With
  η = P(Binomial(blocks, rate) > cap), u is in too many blocks with probability η; otherwise the pair is as above.
  So all of it is (ε, δ + η). Only u counts, not the n others: their ⊥ is common to both.

The book's constants (`book`: rate ε/(64·ln(1/δ)), blocks ln(n/δ)/rate², cap 2·blocks·rate) cost δ + η with η far below
δ/n, which its theorem leaves out. They ask for ten million blocks and more. `for_blocks` takes how many runs one can
afford and gives the largest rate for which answers that agree on a given part of the blocks come out: the cap follows
from the lead that the test needs, and the rate from the cap, so that η ≤ δ/10 by the binomial law, no Chernoff bound.

>>> from discreet.noise.entropy import Entropy
>>> above = SubsampledRelease.for_blocks(lambda rows: bool(rows.mean() > 5), 1, "1e-6", blocks=400)
>>> above.loss, above.cap, float(above.rate)
(ApproxDP(epsilon=1, delta=1e-06), 9, 0.0024...)
>>> above.release(np.arange(10_000) % 30, entropy=Entropy.for_tests(0)).values
True

Blocks are run one after the other in this process: a function that hangs, or takes longer on some records, shows. An
answer must follow from its own subsample: one that remembers other runs, in a global say, has no guarantee. Functions
that may do so are for `aggregation/sample_and_aggregate.py`, where each run has a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any, get_args

import numpy as np
from flint import arb, ctx

from discreet.accounting.approximate import approximate
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.losses import ApproxDP
from discreet.core.mechanism import Release
from discreet.core.rounding import ball, log_up, upper
from discreet.core.units import Neighbours
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.uniform import bernoulli
from discreet.robust.stability import Rule, StabilityTest, Unstable
from discreet.robust.stable import gap_of, guarded

__all__ = ["SubsampledRelease", "more_than"]

_RATES = 1 << 20
"""Rates tried by `for_blocks` are multiples of one over this."""
_PATIENCE = Fraction(1, 20)
"""Data on which answers agree as stated are answered but for this chance."""


@dataclass(frozen=True)
class SubsampledRelease:
    """The most frequent answer of `function` on `blocks` subsamples; `delta` is the test's alone."""

    function: Callable[[Any], Any]
    epsilon: Fraction
    delta: Fraction
    blocks: int
    rate: Fraction
    cap: int
    neighbours: Neighbours = "add_remove"
    rule: Rule = "optimal"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidArgument("function", self.function, "callable", "give a function of rows")
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        for name in ("delta", "rate"):
            object.__setattr__(self, name, probability(name, getattr(self, name)))
        for name in ("blocks", "cap"):
            object.__setattr__(self, name, natural(name, getattr(self, name)))
        if self.neighbours not in get_args(Neighbours):
            raise InvalidArgument("neighbours", self.neighbours, "'add_remove' or 'replace'", "name one of the two")
        object.__setattr__(self, "rule", self.test.rule)
        if self.delta + self.excess >= 1:
            raise InvalidArgument("cap", self.cap, "above blocks·rate", "raise the cap or lower the rate")

    @classmethod
    def for_blocks(
        cls,
        function: Callable[[Any], Any],
        epsilon: Exactable,
        delta: Exactable,
        blocks: int,
        *,
        agreement: Exactable = Fraction(9, 10),
        neighbours: Neighbours = "add_remove",
    ) -> SubsampledRelease:
        """The largest subsamples with which so many runs do, where this part of them gives one answer."""
        budget, total, runs = positive("epsilon", epsilon), probability("delta", delta), natural("blocks", blocks)
        agreed = probability("agreement", agreement, one=True)
        tested = total * Fraction(9, 10) if neighbours == "add_remove" else total
        needed = max(1, StabilityTest(budget, tested).needed(_PATIENCE))
        cap = floor(((2 * agreed - 1) * runs - 1) / (2 * needed))
        if cap < 1:
            least = ceil((2 * needed + 1) / (2 * agreed - 1)) if 2 * agreed > 1 else None
            remedy = f"give {least} or more" if least else "ask for agreement above 1/2"
            raise InvalidArgument("blocks", blocks, "enough for the lead that the test needs", remedy)
        low, high = 0, _RATES
        while high - low > 1:
            middle = (low + high) // 2
            fits = more_than(runs, Fraction(middle, _RATES), cap) <= total / 10
            low, high = (middle, high) if fits else (low, middle)
        if low == 0:
            raise InvalidArgument("blocks", blocks, "enough for a cap that η allows", "give more blocks, or a larger ε")
        rate = Fraction(low, _RATES)
        # The unused part of δ goes to the test.
        rest = total - more_than(runs, rate, cap) if neighbours == "add_remove" else total
        return cls(function, budget, rest, runs, rate, cap, neighbours)

    @classmethod
    def book(cls, function: Callable[[Any], Any], epsilon: Exactable, delta: Exactable, size: int) -> SubsampledRelease:
        """Algorithm 14 for `size` records, which it takes to be public; costs (ε, δ + η)."""
        budget, chance = positive("epsilon", epsilon), probability("delta", delta)
        rate = (budget / (64 * log_up(1 / chance))).limit_denominator(10**12)
        blocks = ceil(log_up(natural("size", size) / chance) / rate**2)
        return cls(function, budget, chance, blocks, rate, floor(2 * blocks * rate), "add_remove", "book")

    @cached_property
    def test(self) -> StabilityTest:
        """What decides between an answer and ⊥."""
        return StabilityTest(self.epsilon, self.delta, self.rule)

    @cached_property
    def excess(self) -> Fraction:
        """η: the chance that one record is in too many blocks; nothing where it is not charged."""
        return more_than(self.blocks, self.rate, self.cap) if self.neighbours == "add_remove" else Fraction(0)

    @cached_property
    def events(self) -> tuple[events.Approximate]:
        """What `release` will run."""
        return (events.Approximate(self.epsilon, self.delta + self.excess),)

    @cached_property
    def loss(self) -> ApproxDP:
        """(ε, δ + η)."""
        return approximate(self.events[0])

    def needed(self, beta: Exactable) -> int:
        """By how many blocks the first answer must lead the second to come out with probability 1 − β."""
        return 2 * self.cap * self.test.needed(beta) + 1

    def release(self, data: Any, *, entropy: Entropy | None = None) -> Release:
        """The answer, or `Unstable`. `data` is an array, whose first axis counts records, or a list of records."""
        rows = data if isinstance(data, np.ndarray) and data.ndim else list(data)
        source = chosen(entropy)
        members = list(self._members(len(rows), source))
        loads = np.bincount(np.concatenate(members), minlength=1)
        far = 0
        answer = None
        if loads.max() <= self.cap:
            answer, lead = gap_of([guarded(self.function, _taken(rows, chosen_rows)) for chosen_rows in members])
            far = max(0, lead - 1) // (2 * self.cap)
            passed = self.test.passes(far, source)
        else:
            passed = False
        value = answer if passed else Unstable(self.loss)
        return Release(value, self.loss, self.events, None, source.private)

    def _members(self, size: int, source: Entropy) -> Iterator[Integers]:
        for _ in range(self.blocks):
            yield np.flatnonzero(bernoulli(self.rate, size, entropy=source))


def more_than(blocks: int, rate: Fraction, cap: int) -> Fraction:
    """P(Binomial(blocks, rate) > cap), from above: its first term times a geometric series."""
    first = cap + 1
    if first > blocks or rate == 0:
        return Fraction(0)
    falls = (blocks - first) * rate / ((first + 1) * (1 - rate)) if rate < 1 else Fraction(1)
    if falls >= 1:
        return Fraction(1)
    with ctx.workprec(256):
        ways = arb(blocks + 1).lgamma() - arb(first + 1).lgamma() - arb(blocks - first + 1).lgamma()
        chance = (ways + first * ball(rate).log() + (blocks - first) * ball(1 - rate).log()).exp()
        return min(Fraction(1), upper(chance / ball(1 - falls)))


def _taken(rows: Any, places: Integers) -> Any:
    """A copy of these rows: what the function does to it is seen by nobody."""
    if isinstance(rows, np.ndarray):
        return rows[places]
    return [rows[place] for place in places.tolist()]

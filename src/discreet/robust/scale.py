"""The scale of data: its interquartile range to within a factor, with no bound on it but that of the line.

Values go to places of a line, so the range R = x₍r₂₎ − x₍r₁₎ with ranks r₁ = ⌈n/4⌉ and r₂ = ⌈3n/4⌉ is a whole number of
steps. Ranges are cut into bins by a fixed list of ends, `bins` to each doubling (0 has a bin of its own), and again by
ends half a bin further on. A₀(x) is how many records must change for R to leave its bin.

Guarantee, for add/remove and for replace neighbours; a unit is one record. A₀ − 1 moves by at most 1 between them,
and where it is 1 or more, all neighbours of x have their range in the bin of x. So the bin itself is stable there,
and needs no noise: a test (`stability.py`) with half of ε and δ, then the bin, or ⊥; and if that was ⊥, the same with
the other list. No range is near to an end in both. Together (ε, δ).

Argument. With k changes R grows to at most Vₖ = max x₍r₂+b₎ − x₍r₁−a₎ and falls to at least Uₖ = min x₍r₂−b₎ − x₍r₁+a₎,
both over a + b = k, with 0 before the data and top after it, and 0 where ranks have crossed. One change moves windows
of ranks by one place or makes them one rank longer or shorter, and r₁ never moves without r₂, whatever n: so
Vₖ(x′) ≤ Vₖ₊₁(x) and Uₖ(x′) ≥ Uₖ₊₁(x). A₀ is the least k whose Vₖ or Uₖ is outside the bin. If x′ has the same bin, A₀
moves by at most 1; if it has another, both are 1.

`book`: algorithm 12, with the threshold that its proof needs: ⊥ if A₀ + Lap(1/ε) ≤ 1 + ln(1/δ)/ε, else R·2^Lap(1/ε).
Each list of bins costs (2ε, δ/2), both (4ε, δ). log₂R is taken within its bin and put on a grid before the noise.

Time is that of sorting: ends are looked up in windows as long as the test can tell distances apart.

>>> from discreet.noise.entropy import Entropy
>>> data = np.concatenate([np.arange(3000), [1e9] * 100])
>>> scale = Scale(epsilon=1, delta="1e-6", bounds=Bounds(0, 10**9), step=1)
>>> scale.loss, scale.factor
(ApproxDP(epsilon=1, delta=1e-06), 1.4142135623730951)
>>> scale.release(data, entropy=Entropy.for_tests(0)).values
1448.1546878700494
>>> book = Scale.book(Fraction(1, 4), "1e-6", Bounds(0, 10**9), step=1)
>>> book.loss
ApproxDP(epsilon=1, delta=1e-06)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, inf, log2

import numpy as np

from discreet.accounting.approximate import approximate
from discreet.core import events
from discreet.core.domains import Bounds
from discreet.core.events import Event
from discreet.core.exact import Exactable, count, natural, positive, probability
from discreet.core.losses import ApproxDP
from discreet.core.mechanism import Release
from discreet.core.rounding import exp_down
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.quantiles.line import Line
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.robust.stability import Rule, StabilityTest, Unstable
from discreet.robust.statistics import Sample

__all__ = ["Bin", "Scale", "distance_to_leave"]

FINEST = 64


@dataclass(frozen=True)
class Bin:
    """Ranges from `low` to `high`, whole numbers of steps; in logarithms from `floor` to `ceiling`."""

    low: int
    high: int
    floor: float
    ceiling: float

    @property
    def middle(self) -> float:
        """In steps, the number that is off by the same factor at either end; 0 of the bin of 0."""
        return 0.0 if self.high == 0 else 2.0 ** ((self.floor + self.ceiling) / 2)


@dataclass(frozen=True)
class Scale:
    """The interquartile range, to within the factor `factor`; `bins` to each doubling."""

    epsilon: Fraction
    delta: Fraction
    bounds: Bounds
    step: Fraction | None = None
    bins: int = 1
    rule: Rule = "optimal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        object.__setattr__(self, "step", Line.between(self.bounds, self.step).step)
        object.__setattr__(self, "bins", max(1, count("bins", natural("bins", self.bins), limit=FINEST)))
        object.__setattr__(self, "rule", self.test.rule)

    @classmethod
    def book(cls, epsilon: Exactable, delta: Exactable, bounds: Bounds, step: Exactable | None = None) -> Scale:
        """Algorithm 12 with its ε, of which it spends four, and noise of scale 1/ε on log₂ of the range."""
        budget = 4 * positive("epsilon", epsilon)
        return cls(budget, probability("delta", delta), bounds, Line.between(bounds, step).step, 1, "book")

    @cached_property
    def line(self) -> Line:
        """Where values lie."""
        return Line.between(self.bounds, self.step)

    @cached_property
    def test(self) -> StabilityTest:
        """What is run for each of the two lists of bins."""
        if self.rule == "book":
            # P(X > t) is ½·e^(−εt) for Laplace noise and e^(−ε(t+1))/(1 + e^(−ε)) on whole numbers, δ/2 for this δ.
            each = self.epsilon / 4
            return StabilityTest(each, self.delta * (1 + exp_down(-each)) / 2, self.rule)
        return StabilityTest(self.epsilon / 2, self.delta / 2, self.rule)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """A test for each list, and for the book's rule the noise."""
        if self.rule == "book":
            each = events.Composed((events.Approximate(self.epsilon / 4, self.delta / 2), *self._noise.events))
            return (events.Repeated(each, 2),)
        return (events.Repeated(self.test.event, 2),)

    @cached_property
    def loss(self) -> ApproxDP:
        """(ε, δ)."""
        return approximate(events.Composed(self.events))

    @property
    def factor(self) -> float:
        """An answer, where there is one, is off by no more than this factor; ∞ for the book's, which is noisy."""
        return inf if self.rule == "book" else 2.0 ** (0.5 / self.bins)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """The middle of the bin of the range, or `Unstable`."""
        sample = Sample.of(self.line.places(data), self.line.size - 1)
        source = chosen(entropy)
        first, last = quartiles(sample)
        spread = int((sample.at(last, last) - sample.at(first, first))[0])
        for shifted in (False, True):
            found = self.bin_of(spread, shifted)
            if self.test.passes(distance_to_leave(sample, found, self.test.enough + 1) - 1, source):
                value = self._noisy(spread, found, source) if self.rule == "book" else found.middle
                return Release(self._read(value), self.loss, self.events, None, source.private)
        return Release(Unstable(self.loss), self.loss, self.events, None, source.private)

    def bin_of(self, spread: int, shifted: bool) -> Bin:
        """The bin of a range; public but for the range."""
        if spread == 0:
            return Bin(0, 0, -inf, -inf)
        ends = self._ends[int(shifted)]
        place = int(np.searchsorted(ends, spread, side="right")) - 1
        shift = 0.5 if shifted else 0.0
        bottom = (place - 1 + shift) / self.bins
        return Bin(int(ends[place]), int(ends[place + 1]) - 1, bottom, bottom + 1 / self.bins)

    @cached_property
    def _ends(self) -> tuple[Integers, Integers]:
        """The least whole range of each bin, from one that holds no range at all."""
        doublings = range(-1, self.line.size.bit_length() * self.bins + 2)
        unshifted, shifted = (
            np.array([max(1, ceil(2 ** ((k + shift) / self.bins))) for k in doublings], dtype=np.int64)
            for shift in (0.0, 0.5)
        )
        return unshifted, shifted

    @cached_property
    def _noise(self) -> Laplace:
        return Laplace.for_epsilon(self.epsilon / 4, 1, real=True)

    def _noisy(self, spread: int, found: Bin, source: Entropy) -> float:
        """R·2^Lap(1/ε), where log₂R moves by at most 1 within its bin."""
        if spread == 0:
            return 0.0
        held = min(max(log2(spread), found.floor), found.ceiling)
        return float(2.0 ** min(float(self._noise.release(held, entropy=source).values), 1000.0))

    def _read(self, steps: float) -> float:
        """In units of the data, held within what the line can hold."""
        return min(steps * float(self.line.step), float(self.bounds.width))


def quartiles(sample: Sample) -> tuple[int, int]:
    """The ranks ⌈n/4⌉ and ⌈3n/4⌉."""
    return sample.rank(Fraction(1, 4)), sample.rank(Fraction(3, 4))


def distance_to_leave(sample: Sample, held: Bin, limit: int) -> int:
    """A₀, or `limit` where that is less: how many records must change for the range to leave its bin."""
    first, last = quartiles(sample)
    nearest = limit
    lower, upper = sample.at(first - limit, first)[::-1], sample.at(last, last + limit)
    # For each a the least b with x₍r₂+b₎ − x₍r₁−a₎ > high; both lists rise or fall with their index.
    if held.high < sample.top:
        nearest = _least(np.searchsorted(upper, lower + held.high, side="right"), nearest)
    if held.low > 0:
        lower, upper = sample.at(first, first + limit), sample.at(last - limit, last)
        # The least b with x₍r₂−b₎ < low + x₍r₁+a₎, counted from the last of them.
        nearest = _least(limit + 1 - np.searchsorted(upper, lower + held.low, side="left"), nearest)
    return nearest


def _least(others: Integers, limit: int) -> int:
    """The least a + b, where b is given for each a, and limit + 1 or more stands for none."""
    return int(min(limit, (np.arange(others.size) + others).min()))

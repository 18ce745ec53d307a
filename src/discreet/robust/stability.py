"""The private test of stability, and what is said when it fails.

A distance γ(x) is a whole number from 0 that moves by at most 1 between neighbours; where γ(x) ≥ 1, something wanted
holds for x and all its neighbours. The test says `pass` with a chance that depends on γ only, at most δ where γ = 0.

Guarantee. Two data sets that are neighbours either both have γ = 0, and then pass with probability δ at most each; or
one of them has γ ≥ 1, and then what is wanted holds for the pair, and `pass` or not is (ε, δ)-indistinguishable. So
whatever is done after a pass may count on it: the test costs (ε, δ), and what follows costs what it does for pairs
for which it holds.

- `optimal`: the largest chances there are. Of γ and γ + 1 the laws on two outcomes are (ε, δ)-indistinguishable just if
  π(γ+1) ≤ e^ε·π(γ) + δ and 1 − π(γ) ≤ e^ε·(1 − π(γ+1)) + δ; from π(0) = δ both are met with equality in turn, as for
  choosing groups to publish (Desfontaines, Voss, Gipson, Mandayam 2022). Chances are fixed-point numbers rounded down,
  with a rational below e^ε, so both hold exactly, and a coin decides. From some distance on the test surely passes.
- `book`: γ + Lap(1/ε) > ln(1/δ)/ε, on integers. Of γ = 0 it passes with probability below δ, and it is ε-DP.

>>> StabilityTest(1, "1e-6").needed("0.05"), StabilityTest(1, "1e-6", "book").needed("0.05")
(15, 16)
>>> float(StabilityTest(1, "1e-6").chance(0)), StabilityTest(1, "1e-6").enough
(1e-06, 27)
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, floor
from typing import Literal, get_args

from discreet.accounting.approximate import approximate
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, at_least, count, probability
from discreet.core.losses import ApproxDP
from discreet.core.no_answer import Unstable
from discreet.core.rounding import exp_up, expm1_down, log_up, shorten_down
from discreet.noise.entropy import Entropy
from discreet.noise.laplace import discrete_laplace
from discreet.noise.uniform import bernoulli

__all__ = ["Rule", "StabilityTest", "Tested", "Unstable"]

Rule = Literal["optimal", "book"]

LEAST_EPSILON = Fraction(1, 1000)
_BITS = 256
_ONE = 1 << _BITS
LEAST_DELTA = Fraction(1, _ONE)
"""Chances to pass are whole numbers of this: a smaller δ would let nothing pass at any distance."""
_FAR = 64
"""How many scales of Laplace noise past its threshold a distance is followed: noise never makes up for that."""


@dataclass(frozen=True)
class StabilityTest:
    """Passes where data is far from unstable; (ε, δ) for a distance that moves by at most 1."""

    epsilon: Fraction
    delta: Fraction
    rule: Rule = "optimal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", at_least("epsilon", self.epsilon, LEAST_EPSILON))
        object.__setattr__(self, "delta", at_least("delta", probability("delta", self.delta), LEAST_DELTA))
        if self.rule not in get_args(Rule):
            raise InvalidArgument("rule", self.rule, "'optimal' or 'book'", "name one of the two")

    @cached_property
    def event(self) -> events.Approximate:
        """What one test costs."""
        return events.Approximate(self.epsilon, self.delta)

    @cached_property
    def enough(self) -> int:
        """Larger distances need not be told apart: they are as good as this one."""
        return len(self._chances) - 1 if self.rule == "optimal" else self.threshold + ceil(_FAR / self.epsilon)

    @cached_property
    def threshold(self) -> int:
        """For the book's rule: a noisy distance above this passes."""
        return floor(log_up(1 / self.delta) / self.epsilon)

    def chance(self, distance: int) -> Fraction:
        """The chance to pass; for the book's rule within 2⁻⁹⁰ of it, from below."""
        near = min(count("distance", distance), self.enough)
        if self.rule == "optimal":
            return Fraction(self._chances[near], _ONE)
        # P(X ≥ k) = pᵏ/(1 + p) for k ≥ 1, with p = e^(−ε), and 1 − P(X ≥ 1 − k) below.
        k, p = self.threshold + 1 - near, exp_up(-self.epsilon)
        return 1 / (exp_up(self.epsilon * k) * (1 + p)) if k >= 1 else 1 - exp_up(-self.epsilon * (1 - k)) / (1 + p)

    def needed(self, beta: Exactable) -> int:
        """The least distance that passes with probability 1 − β."""
        wanted = 1 - probability("beta", beta)
        return bisect_left(range(self.enough), True, key=lambda k: self.chance(k) >= wanted)

    def passes(self, distance: int, entropy: Entropy) -> bool:
        """One test, at the cost of `event`."""
        near = min(count("distance", distance), self.enough)
        if self.rule == "book":
            return near + int(discrete_laplace(1 / self.epsilon, entropy=entropy)) > self.threshold
        return bool(bernoulli(self.chance(near), entropy=entropy))

    @property
    def _chances(self) -> tuple[int, ...]:
        return _table(self.epsilon, self.delta)


class Tested:
    """What a release has that one test decides about: a dataclass with an ε, a δ and a rule."""

    epsilon: Fraction
    delta: Fraction
    rule: Rule = "optimal"

    @cached_property
    def test(self) -> StabilityTest:
        """What decides between an answer and ⊥."""
        return StabilityTest(self.epsilon, self.delta, self.rule)

    @cached_property
    def events(self) -> tuple[events.Event]:
        """The test; the answer is free."""
        return (self.test.event,)

    @cached_property
    def loss(self) -> ApproxDP:
        """(ε, δ)."""
        return approximate(self.events[0])


@lru_cache(maxsize=64)
def _table(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    """2²⁵⁶ times the chance to pass, for each distance up to the first that surely passes."""
    growth = 1 + shorten_down(expm1_down(epsilon), 64)
    up, down = growth.numerator, growth.denominator
    least = floor(delta * _ONE)
    chances = [least]
    while chances[-1] < _ONE:
        last = chances[-1]
        left = max(0, _ONE - last - least)
        chances.append(min(last * up // down + least, _ONE + -left * down // up))
    return tuple(chances)

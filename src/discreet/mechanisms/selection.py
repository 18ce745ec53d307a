"""Choosing the best of a list privately: exponential mechanism, permute-and-flip, report noisy max.

Scores are integers (round reals to a Grid first), each of which moves by at most `sensitivity` between neighbours. They
are `monotonic` when all of them move the same way, as counts do when a record is added: half the noise is then enough.
The choice is released, not its score: that would be a second release.

With rate = ε/(2·sensitivity), or ε/sensitivity when monotonic:

- `Exponential`: P(i) ∝ exp(rate·score). The log-odds of any two outputs move by at most ε: a bounded range, which
  composes better than ε-DP alone.
- `PermuteAndFlip` (McKenna, Sheldon 2020): flip a coin of odds exp(−rate·(best − score)) for each candidate, pick
  uniformly among heads. ε-DP, never worse than the exponential mechanism, up to twice as good. Its range is not bounded
  by ε, so it is charged as pure.
- `NoisyMax`: the index of the largest score after discrete Laplace noise of scale 1/rate, the first one on ties. ε-DP:
  with the other noises fixed, i wins from some integer on, and that integer moves by at most ε/rate.

>>> PermuteAndFlip(epsilon=1).accuracy(0.05, size=100)
16.0
>>> Exponential(epsilon=1, monotonic=True).events
(BoundedRange(epsilon=Fraction(1, 1)),)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import ClassVar

import numpy as np

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.arrays import whole
from discreet.core.events import Event
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import log_up
from discreet.mechanisms.additive import END, comparable, flag
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.exponential import gibbs, heads, scores_argument
from discreet.noise.laplace import discrete_laplace, scale_argument
from discreet.noise.uniform import uniform

__all__ = ["Exponential", "NoisyMax", "PermuteAndFlip"]

HELD = END // 2
"""NoisyMax holds scores within this; its noise stays within it but for a chance below e^(−500)."""


@dataclass(frozen=True)
class _Selection(ABC):
    """ε, how far a score moves, and whether all move the same way."""

    epsilon: Fraction
    sensitivity: int = 1
    monotonic: bool = False

    event: ClassVar[type[events.Pure] | type[events.BoundedRange]] = events.Pure

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "sensitivity", natural("sensitivity", self.sensitivity))
        flag("monotonic", self.monotonic)
        scale_argument("sensitivity/epsilon", 1 / self.rate)

    @property
    def rate(self) -> Fraction:
        """How much one step of score is worth in log-odds."""
        return self.epsilon / (self.sensitivity if self.monotonic else 2 * self.sensitivity)

    @cached_property
    def events(self) -> tuple[Event]:
        """What `release` will run."""
        return (self.event(self.epsilon),)

    @cached_property
    def loss(self) -> PureDP:
        """ε."""
        return pure(self.events[0])

    def accuracy(self, beta: Exactable, size: int) -> float:
        """With probability 1 − β the chosen score is within this of the best of `size`."""
        return float(ceil(log_up(natural("size", size) / probability("beta", beta)) / self.rate))

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """The index of the chosen score."""
        source = chosen(entropy)
        winner = self._choose(scores_argument("data", whole("data", data)), source)
        return Release(winner, self.loss, self.events, None, source.private)

    @abstractmethod
    def _choose(self, scores: Integers, source: Entropy) -> int: ...


@dataclass(frozen=True)
class Exponential(_Selection):
    """P(i) ∝ exp(rate·score)."""

    event: ClassVar[type[events.Pure] | type[events.BoundedRange]] = events.BoundedRange

    def _choose(self, scores: Integers, source: Entropy) -> int:
        return int(gibbs(scores, self.rate, entropy=source))


@dataclass(frozen=True)
class PermuteAndFlip(_Selection):
    """The first heads in random order, with coins of odds exp(−rate·(best − score))."""

    def _choose(self, scores: Integers, source: Entropy) -> int:
        candidates = np.flatnonzero(heads(scores, self.rate, entropy=source))
        return int(candidates[uniform(candidates.size, entropy=source)])


@dataclass(frozen=True)
class NoisyMax(_Selection):
    """The largest score after discrete Laplace noise of scale 1/rate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        comparable("sensitivity/epsilon", 1 / self.rate)

    def accuracy(self, beta: Exactable, size: int) -> float:
        """With probability 1 − β the chosen score is within this of the best of `size`."""
        # Both the best and the chosen may be off by the largest of `size` noises: 2·ln(size/β)/rate.
        return float(2 * ceil(log_up(natural("size", size) / probability("beta", beta)) / self.rate))

    def _choose(self, scores: Integers, source: Entropy) -> int:
        noise = discrete_laplace(1 / self.rate, scores.shape, entropy=source)
        # Held before the noise and not after: sums held at an end would tie there, and ties favour the first.
        return int(np.argmax(np.clip(scores, -HELD, HELD) + np.clip(noise, -HELD, HELD)))

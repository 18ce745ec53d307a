"""Randomized response: each person keeps their answer with probability `truth`, else names another at random.

Guarantee, for the person and against everybody including the collector: any two true answers give any report with
probabilities that differ by a factor truth·(k − 1)/(1 − truth) at most, so one report is ln(that)-DP.

>>> coin = RandomizedResponse(Fraction(3, 4))          # the two-coin form of the book
>>> coin.loss
PureDP(epsilon=1.09862)
>>> poll = RandomizedResponse.for_epsilon(1, categories=4)
>>> float(round(poll.truth, 4))
0.4754
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.arrays import whole
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import exp_down, float_up, log_up, sqrt_up
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.uniform import bernoulli, uniform

__all__ = ["RandomizedResponse"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class RandomizedResponse:
    """Answers are the integers below `categories`; the true one is reported with probability `truth`."""

    truth: Fraction
    categories: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", natural("categories", self.categories))
        object.__setattr__(self, "truth", probability("truth", self.truth))
        if self.categories < 2:
            raise InvalidArgument("categories", self.categories, "at least 2", "one possible answer says nothing")
        if self.truth * self.categories <= 1:
            bound = f"above 1/categories = 1/{self.categories}"
            raise InvalidArgument("truth", self.truth, bound, "below that reports say less than nothing")

    @classmethod
    def for_epsilon(cls, epsilon: Exactable, categories: int = 2) -> RandomizedResponse:
        """The most truthful reports that are ε-DP: truth = e^ε/(e^ε + k − 1), rounded down to a rational."""
        # Past 64 a lie is rarer than one in 10²⁷: asking for less than was allowed loses nothing.
        odds = exp_down(min(positive("epsilon", epsilon), Fraction(64)))
        return cls(odds / (odds + max(natural("categories", categories) - 1, 1)), categories)

    @cached_property
    def events(self) -> tuple[events.Pure]:
        """What one person's report runs."""
        return (events.Pure(log_up(self.truth * (self.categories - 1) / (1 - self.truth))),)

    @cached_property
    def loss(self) -> PureDP:
        """What one report costs the person who gives it."""
        return pure(self.events[0])

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """One report for each answer. Answers outside the categories are reported as 0 would be."""
        codes = whole("data", data, missing=-1)
        codes = np.where((codes < 0) | (codes >= self.categories), 0, codes)
        source = chosen(entropy)
        honest = bernoulli(self.truth, codes.shape, entropy=source)
        others = uniform(self.categories - 1, codes.shape, entropy=source)
        reports = np.where(honest, codes, others + (others >= codes))
        return Release(reports[()], self.loss, self.events, None, source.private)

    def estimate(self, reports: object) -> Doubles:
        """Unbiased fractions of the true answers, from the reports alone (they may stray outside [0, 1])."""
        counts = np.bincount(self._checked(reports), minlength=self.categories)
        lie = float((1 - self.truth) / (self.categories - 1))
        fractions: Doubles = (counts / max(counts.sum(), 1) - lie) / (float(self.truth) - lie)
        return fractions

    def accuracy(self, beta: Exactable, people: int) -> float:
        """With probability 1 − β, every estimated fraction is within this of the fraction among the `people` asked.

        Each report names a category with probability `truth` or `lie`, so its variance is at most that of the two.
        The lesser of Bernstein's and Hoeffding's bounds on each category's reports, and a union over the categories.
        """
        tail = probability("beta", beta)
        lie = (1 - self.truth) / (self.categories - 1)
        variance = max(self.truth * (1 - self.truth), lie * (1 - lie))
        rate = log_up(2 * self.categories / tail) / natural("people", people)
        bernstein = rate / 3 + sqrt_up((rate / 3) ** 2 + 2 * rate * variance)
        return float_up(min(bernstein, sqrt_up(rate / 2)) / (self.truth - lie))

    def _checked(self, reports: object) -> Integers:
        codes = np.asarray(reports)
        if codes.size and (codes.dtype.kind not in "iub" or codes.min() < 0 or codes.max() >= self.categories):
            raise InvalidArgument("reports", "an array", f"integers below {self.categories}", "pass what release gave")
        return codes.astype(np.int64).reshape(-1)

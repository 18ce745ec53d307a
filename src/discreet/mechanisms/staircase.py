"""The staircase mechanism: the least mean absolute error of any ε-DP noise for one number.

Guarantee: level(|k|) = ⌊(|k| + Δ − inner)/Δ⌋ moves by at most one when k moves by the sensitivity Δ (in steps), and
probabilities are e^(−ε·level) up to a constant, so the release is ε-DP.

>>> salary = Staircase(epsilon=2, sensitivity=100)
>>> salary.loss, round(salary.mean_error, 1), round(salary.laplace_error, 1)
(PureDP(epsilon=2), 42.5, 50.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from flint import ctx

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import ball, float_up, upper
from discreet.mechanisms.additive import END, flag, from_steps, saturating_sum, to_steps
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.grid import INTEGERS, Grid
from discreet.noise.staircase import discrete_staircase, optimal_inner, staircase_error

__all__ = ["Staircase"]

_STEPS = 1 << 20


@dataclass(frozen=True)
class Staircase:
    """Staircase noise on one number that moves by at most `sensitivity`."""

    epsilon: Fraction
    sensitivity: Fraction
    real: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "sensitivity", positive("sensitivity", self.sensitivity))
        flag("real", self.real)

    @cached_property
    def grid(self) -> Grid:
        """The integers, or for a real a million steps to the sensitivity."""
        return Grid.finer_than(self.sensitivity, _STEPS) if self.real else INTEGERS

    @cached_property
    def steps(self) -> int:
        """The sensitivity in grid steps."""
        return self.grid.spanning(self.sensitivity)

    @cached_property
    def inner(self) -> int:
        """The first step of the stairs, in grid steps."""
        return optimal_inner(self.epsilon, self.steps)

    @cached_property
    def events(self) -> tuple[events.Pure]:
        """What `release` will run."""
        return (events.Pure(self.epsilon),)

    @cached_property
    def loss(self) -> PureDP:
        """ε."""
        return pure(self.events[0])

    @cached_property
    def mean_error(self) -> float:
        """E|noise|."""
        with ctx.workprec(256):
            mean = staircase_error(self.epsilon, self.steps, self.inner)
            return float_up(upper(mean) * self.grid.step)

    @cached_property
    def laplace_error(self) -> float:
        """E|noise| of Laplace noise with the same guarantee: 2p/(1 − p²) steps with p = e^(−ε/steps)."""
        with ctx.workprec(256):
            return float_up(upper(1 / (ball(self.epsilon) / self.steps).sinh()) * self.grid.step)

    @cached_property
    def limit(self) -> float:
        """Data and answers are held within plus and minus this."""
        return float(END * self.grid.step)

    def accuracy(self, beta: Exactable, size: int = 1) -> float:
        """With probability 1 − β, all of `size` values released one by one are within this of the truth."""
        tail = probability("beta", beta) / natural("size", size)
        with ctx.workprec(128):
            # P(|X| ≥ jΔ) ≤ e^(−jε): whole steps beyond the truth are geometric.
            turns = ceil(upper((1 / ball(tail)).log() / ball(self.epsilon)))
        return float_up((turns * self.steps + Fraction(int(self.real), 2)) * self.grid.step)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """One number with noise."""
        steps = to_steps(data, self.grid, self.real, 1)
        source = chosen(entropy)
        noise = discrete_staircase(self.epsilon, self.steps, self.inner, steps.shape, entropy=source)
        values = from_steps(saturating_sum(steps, noise), self.grid, self.real)
        return Release(values, self.loss, self.events, self.accuracy, source.private, self.limit)

"""Propose, test, release: noise for the sensitivity that data has, not for the worst there is.

Propose a bound b on how far one record moves a function f near the data at hand; test privately that the data is far
from any where b fails; then release f(x) with Laplace noise for b, or ⊥ (`Unstable`).

Guarantee. For neighbours of the named relation (`add_remove` or `replace`; a unit is one record), with a distance γ
that moves by at most 1 between them and such that γ(x) ≥ 1 implies |f(x) − f(x′)| ≤ b for all neighbours x′ of x:
(ε, δ) in all. The test takes `share` of ε and all of δ (`stability.py`). Pairs with γ = 0 on both sides answer with
probability δ at most each, and are alike otherwise. For any other pair b holds, and the release costs the rest of ε:
f lies on a grid of declared steps and moves by b in whole steps, and the noise is discrete Laplace of that scale.
Whether ⊥ or a number comes out is paid for like the number itself.

An oracle gives f in whole steps with its distance. `OnLine` does so for the statistics of `statistics.py`, whose
ladders give a γ that can be computed; `Declared` for any function whose distance somebody can state.

>>> from discreet.noise.entropy import Entropy
>>> from discreet.robust.statistics import OrderStatistic
>>> data = np.arange(1000) % 500
>>> median = OnLine(OrderStatistic(), Bounds(0, 10_000), step=1)
>>> mechanism = ProposeTestRelease(median, bound=20, epsilon=1, delta="1e-6")
>>> mechanism.loss, mechanism.needed("0.05")
(ApproxDP(epsilon=1, delta=1e-06), 29)
>>> mechanism.release(data, entropy=Entropy.for_tests(0)).values
202.0
>>> print(mechanism.release([0, 10_000] * 10, entropy=Entropy.for_tests(0)).values)
not stable enough to answer; this cost ε = 1, δ = 1e-6
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, Protocol, get_args, runtime_checkable

import numpy as np

from discreet.accounting.approximate import approximate
from discreet.core import events
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable, positive, probability
from discreet.core.losses import ApproxDP
from discreet.core.mechanism import Release
from discreet.core.rounding import float_up, log_up
from discreet.core.units import Neighbours
from discreet.mechanisms.additive import END, comparable
from discreet.mechanisms.quantiles.line import Line
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.grid import Grid
from discreet.noise.laplace import discrete_laplace
from discreet.robust.stability import Rule, StabilityTest, Unstable
from discreet.robust.statistics import Sample, Statistic, relation

__all__ = ["Declared", "OnLine", "Oracle", "Proposal", "ProposeTestRelease", "measured"]


@dataclass(frozen=True)
class Proposal:
    """What an oracle says of one data set; secret. `steps` is how far f moves where the distance is 1 or more."""

    value: int
    steps: int
    distance: int
    read: Callable[[int], float]


@runtime_checkable
class Oracle(Protocol):
    """A function with its distance to instability, for given neighbours."""

    def check(self, bound: Fraction, neighbours: Neighbours) -> None:
        """Refuse a bound or a relation that this function cannot have."""

    def propose(self, data: Any, bound: Fraction, limit: int, neighbours: Neighbours) -> Proposal:
        """f of the data in whole steps, the bound in steps, and the distance or `limit` where it is larger."""

    def resolution(self, bound: Fraction) -> Fraction:
        """No answer is farther than this from what its steps stand for."""


@dataclass(frozen=True)
class OnLine:
    """A statistic of numbers within public bounds, at places `step` apart."""

    statistic: Statistic
    bounds: Bounds
    step: Fraction | None = None

    def __post_init__(self) -> None:
        relation(self.statistic, self.statistic.relations[0] if isinstance(self.statistic, Statistic) else "replace")
        object.__setattr__(self, "step", Line.between(self.bounds, self.step).step)

    @cached_property
    def line(self) -> Line:
        """Where values lie."""
        return Line.between(self.bounds, self.step)

    def check(self, bound: Fraction, neighbours: Neighbours) -> None:
        """The bound is at least one step, and the statistic has spreads for these neighbours."""
        relation(self.statistic, neighbours)
        if bound < self.line.step and self.statistic.divisor(1 << 40) == 1:
            raise InvalidArgument("bound", float(bound), "at least one step", "propose more, or choose a finer step")

    def propose(self, data: Any, bound: Fraction, limit: int, neighbours: Neighbours) -> Proposal:
        """Everything in steps of the line, divided by the statistic's divisor in the end."""
        sample = Sample.of(self.line.places(data), self.line.size - 1)
        # A divisor is there for replace neighbours only, to whom the number of records is public.
        steps = floor(bound * self.statistic.divisor(sample.size) / self.line.step)
        distance = self.statistic.distance(sample, steps, limit, neighbours)

        def read(value: int) -> float:
            return self.statistic.read(Fraction(value), self.line, sample.size)

        return Proposal(self.statistic.value(sample), max(steps, 1), distance, read)

    def resolution(self, bound: Fraction) -> Fraction:
        """One step."""
        return self.line.step


@dataclass(frozen=True)
class Declared:
    """Any function of the data, with a distance somebody vouches for.

    `function(data)` is a number, which is rounded to a grid of 2⁻²⁰ of the bound. `distance(data)` is a whole number
    that moves by at most 1 between neighbours; where it is 1 or more, the function as computed moves by at most the
    bound. What raises, or is not a number, counts as 0: give functions that do neither.
    """

    function: Callable[[Any], Any]
    distance: Callable[[Any], Any]

    def __post_init__(self) -> None:
        for argument in ("function", "distance"):
            if not callable(getattr(self, argument)):
                raise InvalidArgument(argument, getattr(self, argument), "callable", f"give {argument} as a function")

    def check(self, bound: Fraction, neighbours: Neighbours) -> None:
        """Any positive bound does."""

    def propose(self, data: Any, bound: Fraction, limit: int, neighbours: Neighbours) -> Proposal:
        """The function's value on the grid; rounding both ends of b adds less than a step to it."""
        grid = _grid(bound)
        value = _number(self.function, data)
        distance = measured(self.distance, data, limit)

        def read(steps: int) -> float:
            return float(steps * grid.step)

        held = int(np.clip(grid.steps(np.array(value)), -END, END))
        return Proposal(held, grid.spanning(bound), distance, read)

    def resolution(self, bound: Fraction) -> Fraction:
        """One step of the grid."""
        return _grid(bound).step


@dataclass(frozen=True)
class ProposeTestRelease:
    """f with Laplace noise for `bound`, or ⊥; `share` of ε goes to the test."""

    oracle: Oracle
    bound: Fraction
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours = "add_remove"
    share: Fraction = Fraction(1, 2)
    rule: Rule = "optimal"

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, Oracle):
            raise InvalidArgument("oracle", self.oracle, "an Oracle", "give OnLine(statistic, bounds) or Declared(…)")
        for name in ("bound", "epsilon"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name in ("delta", "share"):
            object.__setattr__(self, name, probability(name, getattr(self, name)))
        if self.neighbours not in get_args(Neighbours):
            raise InvalidArgument("neighbours", self.neighbours, "'add_remove' or 'replace'", "name one of the two")
        self.oracle.check(self.bound, self.neighbours)
        comparable("bound/epsilon", max(self.bound / self.oracle.resolution(self.bound), Fraction(1)) / self._rest)
        object.__setattr__(self, "rule", self.test.rule)

    @cached_property
    def test(self) -> StabilityTest:
        """What is run first."""
        return StabilityTest(self.epsilon * self.share, self.delta, self.rule)

    @cached_property
    def events(self) -> tuple[Event, Event]:
        """The test, then the release."""
        return self.test.event, events.Pure(self._rest)

    @cached_property
    def loss(self) -> ApproxDP:
        """(ε, δ)."""
        return approximate(events.Composed(self.events))

    def needed(self, beta: Exactable) -> int:
        """Data this far from instability is answered with probability 1 − β."""
        return self.test.needed(beta)

    def accuracy(self, beta: Exactable) -> float:
        """An answer, where there is one, is within this of the truth with probability 1 − β."""
        # P(|X| > t) ≤ e^(−t/scale) for discrete Laplace noise and whole t; a step for that, one for the grid.
        step = self.oracle.resolution(self.bound)
        return float_up(max(self.bound, step) / self._rest * log_up(1 / probability("beta", beta)) + 2 * step)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """A number, or `Unstable`."""
        found = self.oracle.propose(data, self.bound, self.test.enough, self.neighbours)
        source = chosen(entropy)
        if not self.test.passes(found.distance, source):
            return Release(Unstable(self.loss), self.loss, self.events, None, source.private)
        noise = int(discrete_laplace(found.steps / self._rest, entropy=source))
        return Release(found.read(found.value + noise), self.loss, self.events, self.accuracy, source.private)

    @property
    def _rest(self) -> Fraction:
        return self.epsilon * (1 - self.share)


def measured(distance: Callable[[Any], Any], data: Any, limit: int) -> int:
    """A distance as somebody's function gives it, from 0 to `limit`; 0 for what is none."""
    value = _number(distance, data)
    return min(max(floor(value), 0), limit) if np.isfinite(value) else limit if value > 0 else 0


def _number(function: Callable[[Any], Any], data: Any) -> float:
    try:
        value = float(function(data))
    except Exception:  # what it says could repeat data
        return 0.0
    return 0.0 if np.isnan(value) else value


def _grid(bound: Fraction) -> Grid:
    return Grid.finer_than(bound, 1 << 20)

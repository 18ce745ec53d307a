"""The Laplace mechanism on the grid.

Guarantee: if the vector moves by at most `sensitivity` in ℓ1 between neighbours, releasing it with discrete Laplace
noise of `scale` is (sensitivity/scale)-DP, exactly, whatever the values: for every output the two probabilities differ
by a factor exp(‖shift‖₁/scale) at most.

>>> count = Laplace.for_epsilon("0.5", sensitivity=1)
>>> count.loss, count.accuracy(0.05)
(PureDP(epsilon=0.5), 6.0)
>>> release = count.release(1000)
>>> release.loss
PureDP(epsilon=0.5)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from flint import ctx

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import ball, float_up, upper
from discreet.mechanisms.additive import END, flag, from_steps, saturating_sum, to_steps
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.grid import INTEGERS, Grid
from discreet.noise.laplace import discrete_laplace, scale_argument

__all__ = ["Laplace"]

_STEPS = 1 << 20
"""Grid steps in the sensitivity of a real number: rounding then costs a millionth of the budget, a thousandth for long
vectors."""


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise of `scale` on a vector of `dimension` numbers that moves by `sensitivity` in ℓ1."""

    scale: Fraction
    sensitivity: Fraction
    dimension: int = 1
    real: bool = False
    grid: Grid = INTEGERS

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))
        object.__setattr__(self, "sensitivity", positive("sensitivity", self.sensitivity))
        flag("real", self.real)
        object.__setattr__(self, "dimension", natural("dimension", self.dimension))
        if not self.real and self.grid != INTEGERS:
            raise InvalidArgument("grid", self.grid, "INTEGERS for whole numbers", "set real=True")
        scale_argument("scale", self.scale / self.grid.step)

    @classmethod
    def for_epsilon(
        cls, epsilon: Exactable, sensitivity: Exactable = 1, *, dimension: int = 1, real: bool = False
    ) -> Laplace:
        """The least noise that is ε-DP; for reals on a grid fine enough that rounding costs nothing worth naming."""
        budget = positive("epsilon", epsilon)
        moved = positive("sensitivity", sensitivity)
        coordinates = natural("dimension", dimension)
        grid = Grid.finer_than(moved, max(_STEPS, coordinates << 10)) if real else INTEGERS
        steps = _steps(moved, grid, coordinates if real else 0)
        return cls(steps * grid.step / budget, moved, coordinates, real, grid)

    @cached_property
    def events(self) -> tuple[events.Laplace]:
        """What `release` will run, in grid steps."""
        steps = _steps(self.sensitivity, self.grid, self.dimension if self.real else 0)
        return (events.Laplace(self.scale / self.grid.step, steps),)

    @cached_property
    def loss(self) -> PureDP:
        """sensitivity/scale, rounding to the grid included."""
        return pure(self.events[0])

    @cached_property
    def limit(self) -> float:
        """Data and answers are held within plus and minus this."""
        return float(END * self.grid.step)

    def accuracy(self, beta: Exactable, size: int = 1) -> float:
        """With probability 1 − β, all of `size` values are within this of the truth."""
        tail = probability("beta", beta) / natural("size", size)
        scale = self.scale / self.grid.step
        with ctx.workprec(128):
            # P(|X| > t) = 2p^(t+1)/(1+p) ≤ tail, and a union over the values.
            p = (-1 / ball(scale)).exp()
            steps = max(0, ceil(upper(ball(scale) * (2 / (ball(tail) * (1 + p))).log())) - 1)
        return float_up((steps + Fraction(int(self.real), 2)) * self.grid.step)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """The data with noise; int64 for whole numbers, doubles for reals."""
        steps = to_steps(data, self.grid, self.real, self.dimension)
        source = chosen(entropy)
        noise = discrete_laplace(self.scale / self.grid.step, steps.shape, entropy=source)
        values = from_steps(saturating_sum(steps, noise), self.grid, self.real)
        return Release(values, self.loss, self.events, self.accuracy, source.private, self.limit)


def _steps(sensitivity: Fraction, grid: Grid, rounded: int) -> int:
    """How far the grid vector moves: each rounded coordinate can add less than one step."""
    return grid.spanning(sensitivity) + max(rounded - 1, 0)

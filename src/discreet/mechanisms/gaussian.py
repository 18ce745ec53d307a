"""The Gaussian mechanism on the grid.

Guarantee: if the vector moves by at most √squared_sensitivity in ℓ2 between neighbours, releasing it with discrete
Gaussian noise of deviation `sigma` is (squared_sensitivity/2σ²)-zCDP, exactly (Canonne, Kamath, Steinke 2020), and
(ε, δ)-DP for every pair on the curve that `loss_at` computes for the discrete law.

>>> count = Gaussian.for_approx(1, "1e-6", squared_sensitivity=1)
>>> float(round(count.sigma, 3)), count.loss_at("1e-6").epsilon <= 1
(4.225, True)
>>> Gaussian.for_zcdp("0.5").sigma
Fraction(1, 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, isqrt

from flint import arb, ctx

from discreet.accounting.approximate import approximate
from discreet.accounting.calibration import gaussian_sigma, gaussian_sigma_classic
from discreet.accounting.zcdp import zcdp
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.losses import ZCDP, ApproxDP
from discreet.core.mechanism import Release
from discreet.core.rounding import ball, float_up, sqrt_down, sqrt_up, upper
from discreet.mechanisms.additive import END, flag, from_steps, saturating_sum, to_steps
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.gaussian import discrete_gaussian
from discreet.noise.grid import INTEGERS, Grid
from discreet.noise.laplace import scale_argument

__all__ = ["Gaussian"]

_STEPS = 1 << 12
"""Grid steps in the sensitivity: the discrete law is then as good as the continuous one to six digits."""


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise of `sigma` on a vector of `dimension` numbers that moves by √squared_sensitivity."""

    sigma: Fraction
    squared_sensitivity: Fraction
    dimension: int = 1
    real: bool = False
    grid: Grid = INTEGERS

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        object.__setattr__(self, "squared_sensitivity", positive("squared_sensitivity", self.squared_sensitivity))
        flag("real", self.real)
        object.__setattr__(self, "dimension", natural("dimension", self.dimension))
        if not self.real and self.grid.exponent > 0:
            raise InvalidArgument("grid", self.grid, "no coarser than the integers", "set real=True")
        scale_argument("sigma", self.sigma / self.grid.step)
        if not self.real and self.squared_sensitivity < self.grid.step**2:
            remedy = "give a finer grid, or set real=True for numbers that are rounded to it"
            raise InvalidArgument(
                "squared_sensitivity", self.squared_sensitivity, f"at least one step of {self.grid}, squared", remedy
            )

    @classmethod
    def for_approx(
        cls,
        epsilon: Exactable,
        delta: Exactable,
        squared_sensitivity: Exactable = 1,
        *,
        dimension: int = 1,
        real: bool = False,
        classic: bool = False,
    ) -> Gaussian:
        """The least noise that is (ε, δ)-DP; `classic` uses Theorem A.1's formula instead (ε < 1 only, more noise)."""
        budget = positive("epsilon", epsilon)

        def sigma(moved: Fraction) -> Fraction:
            if classic:
                return gaussian_sigma_classic(budget, delta, moved)
            # A hair above the least, so that ε computed back from σ does not round past what was asked.
            return gaussian_sigma(budget, delta, moved, dimension) * (1 + Fraction(1, 1 << 24))

        return cls._calibrated(sigma, squared_sensitivity, dimension, real)

    @classmethod
    def for_zcdp(
        cls, rho: Exactable, squared_sensitivity: Exactable = 1, *, dimension: int = 1, real: bool = False
    ) -> Gaussian:
        """The least noise that is ρ-zCDP."""
        budget = positive("rho", rho)
        return cls._calibrated(lambda moved: sqrt_up(moved / (2 * budget)), squared_sensitivity, dimension, real)

    @classmethod
    def _calibrated(
        cls, sigma: Callable[[Fraction], Fraction], squared_sensitivity: Exactable, dimension: int, real: bool
    ) -> Gaussian:
        moved = positive("squared_sensitivity", squared_sensitivity)
        coordinates = natural("dimension", dimension)
        grid = Grid.finer_than(sqrt_down(moved), _STEPS * (isqrt(coordinates) + 1) if real else _STEPS)
        if not real:
            grid = Grid(min(grid.exponent, 0))
        steps = _squared_steps(moved, grid, coordinates if real else 0)
        return cls(sigma(steps) * grid.step, moved, coordinates, real, grid)

    @cached_property
    def events(self) -> tuple[events.Gaussian]:
        """What `release` will run, in grid steps."""
        moved = _squared_steps(self.squared_sensitivity, self.grid, self.dimension if self.real else 0)
        return (events.Gaussian((self.sigma / self.grid.step) ** 2, moved, self.dimension),)

    @cached_property
    def loss(self) -> ZCDP:
        """squared_sensitivity/2σ², rounding to the grid included."""
        return zcdp(self.events[0])

    def loss_at(self, delta: Exactable) -> ApproxDP:
        """The least ε at this δ."""
        return approximate(self.events[0], probability("delta", delta))

    @cached_property
    def limit(self) -> float:
        """Data and answers are held within plus and minus this."""
        return float(END * self.grid.step)

    def accuracy(self, beta: Exactable, size: int = 1) -> float:
        """With probability 1 − β, all of `size` values are within this of the truth."""
        tail = probability("beta", beta) / natural("size", size)
        with ctx.workprec(128):
            # P(|X| > t) ≤ 2·P(N(0, σ²) ≥ t): the discrete tail is below the continuous one a step further in.
            steps = ceil(upper(ball(self.sigma / self.grid.step) * arb(2).sqrt() * ball(tail).erfcinv()))
        rounding = Fraction(1, 2) * (self.grid.step if self.real else int(self.grid.exponent < 0))
        return float_up(steps * self.grid.step + rounding)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """The data with noise; int64 for whole numbers, doubles for reals."""
        steps = to_steps(data, self.grid, self.real, self.dimension)
        source = chosen(entropy)
        noise = discrete_gaussian(self.sigma / self.grid.step, steps.shape, entropy=source)
        values = from_steps(saturating_sum(steps, noise), self.grid, self.real)
        return Release(values, self.loss, self.events, self.accuracy, source.private, self.limit)


def _squared_steps(squared_sensitivity: Fraction, grid: Grid, rounded: int) -> Fraction:
    """How far the grid vector moves, squared: rounding d coordinates can add less than √d steps."""
    exact = squared_sensitivity / grid.step**2
    return (sqrt_up(exact) + sqrt_up(Fraction(rounded))) ** 2 if rounded else exact

"""The loss laws that events have: continuous ones, lattices, and what sampling makes of them.

A law is one direction of a dominating pair (P, Q): point masses under P at given losses, and possibly a continuous
part known by its P- and Q-mass between any two losses. `on_grid` turns it into masses that bound its profile.

>>> coin = Lattice(Fraction(-1), Fraction(2), np.array([0.2689414213699952, 0.7310585786300049]))
>>> coin.on_grid(Fraction(1), 0.0).mass.round(3)            # at −2, −1, 0, 1, 2
array([0.   , 0.269, 0.   , 0.731, 0.   ])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting.pld.grid import TINY, ULP, Array, Atoms, Cells, Pmf, connect, scatter
from discreet.core.rounding import expm1_down, expm1_up, log1p_down, log1p_up

__all__ = ["Lattice", "Law", "Mirrored", "Normal", "PoissonAdd", "PoissonRemove", "Ramp"]

NO_ATOMS = Atoms(np.empty(0), np.empty(0))
LOWEST = -600.0
NEGLIGIBLE = 1e-11
LOW_TAIL = 1e-18
"""Mass this small may be rounded up to the lowest grid point: it then has the least weight of all."""


class Law(ABC):
    """One direction of a dominating pair."""

    @property
    @abstractmethod
    def ceiling(self) -> Fraction | None:
        """No finite loss is above this; None where losses have no bound."""

    @property
    def continuous(self) -> bool:
        """Whether `cells` holds any mass."""
        return False

    @property
    def lattice(self) -> tuple[Fraction, Fraction] | None:
        """(start, step) where all finite losses are start plus whole multiples of step."""
        return None

    @abstractmethod
    def reach(self, tail: float) -> tuple[float, float]:
        """Finite losses (low, high) that hold all the atoms and, of a continuous part, all of the mass under P but
        about `tail` above and under Q but `LOW_TAIL` below."""

    def atoms(self, tail: float) -> Atoms:
        """The point masses, all but about `tail` of them finite."""
        return NO_ATOMS

    def cells(self, edges: Array, wobble: Array) -> Cells | None:
        """The masses of the continuous part between increasing losses that are each known to within `wobble`."""
        return None

    def span(self, tail: float) -> tuple[float, float]:
        """The losses (low, high) to put on a grid; all but `LOW_TAIL` of the mass is above the low end."""
        low, high = self.reach(tail)
        atoms = self.atoms(tail)
        if self.continuous or not len(atoms.losses):
            return low, high
        order = np.argsort(atoms.losses, kind="stable")
        start = int(np.searchsorted(np.cumsum(atoms.masses[order]), LOW_TAIL))
        return float(atoms.losses[order[min(start, len(order) - 1)]]), float(atoms.losses[order[-1]])

    def on_grid(self, interval: Fraction, tail: float, lowest: float = -math.inf) -> Pmf:
        """Masses on the multiples of `interval` whose profile is at least this law's at every ε.

        Losses below `lowest` may be moved up to it.
        """
        low, high = self.span(tail)
        atoms = self.atoms(tail)
        step = float(interval)
        first, last = math.floor(max(low, lowest) / step) - 1, math.ceil(high / step) + 1
        edges = step * np.arange(first, last + 1, dtype=np.float64)
        mass = np.zeros(len(edges))
        infinity = 0.0
        ends = np.concatenate(([-np.inf], edges, [np.inf]))
        cells = self.cells(ends, np.zeros(len(ends)))
        if cells is not None:
            inner = Cells(*(part[1:-1] for part in (cells.p, cells.q, cells.p_error, cells.q_error)))
            below, above = connect(edges, step, inner)
            mass[:-1] += below
            mass[1:] += above
            mass[0] += cells.p[0] + cells.p_error[0]
            infinity += float(cells.p[-1] + cells.p_error[-1]) + TINY
        if len(atoms.losses):
            mass += scatter(np.maximum(atoms.positions(interval), first), atoms.masses, step, first, len(edges))
        return Pmf(first, mass * (1 + 8 * ULP), (infinity + atoms.infinity) * (1 + 8 * ULP))


@dataclass(frozen=True, eq=False)
class Normal(Law):
    """N(μ, 1) against N(0, 1): the loss is N(μ²/2, μ²) under P and N(−μ²/2, μ²) under Q.

    scipy's ndtr(x) for x ≤ 0 is taken to be right to 16 + 4·x² rounding units, three times what is seen.
    """

    mu: float

    @property
    def ceiling(self) -> None:
        return None

    @property
    def continuous(self) -> bool:
        return True

    def reach(self, tail: float) -> tuple[float, float]:
        from scipy.special import ndtri

        high = -float(ndtri(max(tail, TINY)))
        low = float(ndtri(LOW_TAIL))
        return self.mu * (low - self.mu / 2), self.mu * (high + self.mu / 2)

    def cells(self, edges: Array, wobble: Array) -> Cells:
        scaled = edges / self.mu
        doubt = wobble / self.mu
        p, p_error = self._between(scaled - self.mu / 2, np.abs(scaled), doubt)
        q, q_error = self._between(scaled + self.mu / 2, np.abs(scaled), doubt)
        return Cells(p, q, p_error, q_error)

    def _between(self, x: Array, size: Array, doubt: Array) -> tuple[Array, Array]:
        from scipy.special import ndtr

        tails = ndtr(-np.abs(x))
        positive = x >= 0
        mass = np.where(positive[:-1] == positive[1:], np.abs(np.diff(tails)), 1 - tails[:-1] - tails[1:])
        # A tail Φ(−|x|) changes by at most (|x| + 1)·Φ(−|x|) a unit of x nearby.
        with np.errstate(invalid="ignore"):
            shift = 4 * ULP * (size + self.mu) + doubt
            steep = (np.abs(x) + 1) * shift
            error = tails * (2 * steep + ULP * (16 + 4 * x * x))
            doubtful = ~(steep < 0.25)
            error[doubtful] = ndtr(shift[doubtful] - np.abs(x[doubtful])) * 2
        error = np.where(np.isfinite(x), error, 0.0)
        return mass, error[:-1] + error[1:] + 2 * ULP * mass + TINY


@dataclass(frozen=True, eq=False)
class Ramp(Law):
    """Losses in [−top, top] with P-density ∝ e^{loss/2}, and atoms where the density does not hold all the mass.

    P(L ≤ l) − P(L ≤ k) = weight·(e^{(l − top)/2} − e^{(k − top)/2}), mirrored under Q. With weight ½ and atoms of ½ at
    the top and ½·e^{−top} at the bottom it is continuous Laplace noise; with weight 1/(1 − e^{−top}) and no atom it
    is the envelope of all losses confined to [t − top, t].
    """

    top: float
    weight: float
    edged: bool
    limit: Fraction

    @property
    def ceiling(self) -> Fraction:
        return self.limit

    @property
    def continuous(self) -> bool:
        return True

    def reach(self, tail: float) -> tuple[float, float]:
        return -self.top, self.top

    def atoms(self, tail: float) -> Atoms:
        if not self.edged:
            return NO_ATOMS
        low = 0.5 * math.exp(-self.top) * (1 + 8 * ULP * (1 + self.top)) + TINY
        return Atoms(np.array([-self.top, self.top]), np.array([low, 0.5]))

    def cells(self, edges: Array, wobble: Array) -> Cells:
        p, p_error = self._between(edges, wobble)
        q, q_error = self._between(-edges[::-1], wobble[::-1])
        return Cells(p, q[::-1], p_error, q_error[::-1])

    def _between(self, edges: Array, wobble: Array) -> tuple[Array, Array]:
        inside = np.clip(edges, -self.top, self.top)
        rise = self.weight * np.exp((inside - self.top) / 2)
        mass = rise[1:] * -np.expm1(-np.diff(inside) / 2)
        doubt = 4 * ULP * np.abs(inside) + wobble
        ends = [np.clip(edges + side, -self.top, self.top) for side in (-doubt, doubt)]
        error = self.weight * np.exp((ends[1] - self.top) / 2) * -np.expm1((ends[0] - ends[1]) / 2)
        slack = 8 * ULP * (2 + 2 * self.top) * mass + TINY
        return mass, (error[:-1] + error[1:]) * (1 + 1e-6) + slack


@dataclass(frozen=True, eq=False)
class Lattice(Law):
    """Masses at the losses start + k·step, k = 0, 1, …, and at ∞."""

    start: Fraction
    step: Fraction
    masses: Array
    infinity: float = 0.0

    @property
    def ceiling(self) -> Fraction | None:
        return None if self.infinity else self.start + self.step * (len(self.masses) - 1)

    @property
    def lattice(self) -> tuple[Fraction, Fraction]:
        return self.start, self.step

    def reach(self, tail: float) -> tuple[float, float]:
        return float(self.start), float(self.start + self.step * (len(self.masses) - 1))

    def atoms(self, tail: float) -> Atoms:
        losses = float(self.start) + float(self.step) * np.arange(len(self.masses), dtype=np.float64)
        return Atoms(losses, self.masses, self.infinity, (self.start, self.step))


@dataclass(frozen=True, eq=False)
class PoissonRemove(Law):
    """(1 − γ)·Q + γ·P against Q: a loss l becomes ln(1 − γ + γ·e^l).

    The profile at e^ε is γ times the inner one at (e^ε − 1 + γ)/γ, so it grows with the inner profile and, as a
    mixture with more of P, with γ; γ is rounded up.
    """

    rate: float
    inner: Law

    @property
    def ceiling(self) -> Fraction | None:
        top = self.inner.ceiling
        if top is None or top > 700:
            return top
        return log1p_up(Fraction(self.rate) * expm1_up(top))

    @property
    def continuous(self) -> bool:
        return self.inner.continuous

    def reach(self, tail: float) -> tuple[float, float]:
        ends, _ = _mixed(self.rate, np.array(self.inner.reach(tail)))
        return float(self.atoms(tail).losses.min(initial=ends[0])), float(ends[1])

    def atoms(self, tail: float) -> Atoms:
        inner = self.inner.atoms(tail)
        if not len(inner.losses):
            return NO_ATOMS
        # Masses at very low losses are near underflow, where Q-masses cannot be told from them: they move up to LOWEST.
        before, given = inner.losses, inner.masses
        if before.min() < LOWEST:
            sunk = before < LOWEST
            before, given = np.append(before[~sunk], LOWEST), np.append(given[~sunk], given[sunk].sum())
        losses, doubt = _mixed(self.rate, before)
        with np.errstate(divide="ignore"):
            q = np.exp(np.log(given) - before)
        masses = (self.rate * given + (1 - self.rate) * q) * (1 + 16 * ULP * (50 + np.abs(before)))
        infinity = self.rate * inner.infinity
        if not self.continuous:
            # Outputs that P never gives have the loss ln(1 − γ); below it only the total of the masses matters.
            rest = 1 + 2 * len(masses) * ULP - float(masses.sum()) - infinity
            if 0 < rest < NEGLIGIBLE:
                masses[np.argmin(losses)] += rest
            elif rest > 0:
                losses, doubt = np.append(losses, math.log1p(-self.rate)), np.append(doubt, 0.0)
                masses = np.append(masses, rest)
        return Atoms(losses + doubt, masses, infinity)

    def cells(self, edges: Array, wobble: Array) -> Cells | None:
        inner = self.inner.cells(*_unmixed(self.rate, edges, wobble))
        return None if inner is None else Cells(*_blend(self.rate, inner.p, inner.p_error, inner.q, inner.q_error))


@dataclass(frozen=True, eq=False)
class PoissonAdd(Law):
    """Q against (1 − γ)·Q + γ·P, where `inner` is Q against P: a loss l becomes −ln(1 − γ + γ·e^{−l})."""

    rate: float
    inner: Law

    @property
    def ceiling(self) -> Fraction | None:
        free = -log1p_down(-Fraction(self.rate))
        top = self.inner.ceiling
        return free if top is None or top > 700 else -log1p_down(Fraction(self.rate) * expm1_down(-top))

    @property
    def continuous(self) -> bool:
        return self.inner.continuous

    def reach(self, tail: float) -> tuple[float, float]:
        low, high = self.inner.reach(tail)
        ends, _ = _mixed(self.rate, -np.array([low, high]))
        return -float(ends[0]), float(self.atoms(tail).losses.max(initial=-ends[1]))

    def atoms(self, tail: float) -> Atoms:
        inner = self.inner.atoms(tail)
        if not len(inner.losses):
            return NO_ATOMS
        losses, doubt = _mixed(self.rate, -inner.losses)
        if inner.infinity <= 2 * tail:
            return Atoms(doubt - losses, inner.masses, inner.infinity)
        free = -math.log1p(-self.rate)
        return Atoms(np.append(doubt - losses, free), np.append(inner.masses, inner.infinity))

    def cells(self, edges: Array, wobble: Array) -> Cells | None:
        bent, doubt = _unmixed(self.rate, -edges, wobble)
        inner = self.inner.cells(-bent, doubt)
        if inner is None:
            return None
        q, _, q_error, _ = _blend(self.rate, inner.q, inner.q_error, inner.p, inner.p_error)
        return Cells(inner.p, q, inner.p_error, q_error)


@dataclass(frozen=True, eq=False)
class Mirrored(Law):
    """A profile f(e^ε) for ε ≥ 0 and 1 − e^ε + e^ε·f(e^{−ε}) for ε < 0, f being the profile of `upper`.

    It is its own reverse: a mass p at a loss l > 0 comes with p·e^{−l} at −l, and what is missing to 1 is at 0.
    """

    upper: Law

    @property
    def ceiling(self) -> Fraction | None:
        return self.upper.ceiling

    def reach(self, tail: float) -> tuple[float, float]:
        _, high = self.upper.span(tail)
        return -high, high

    def span(self, tail: float) -> tuple[float, float]:
        return self.reach(tail)

    def on_grid(self, interval: Fraction, tail: float, lowest: float = -math.inf) -> Pmf:
        half = self.upper.on_grid(interval, tail, lowest=0.0)
        above = half.mass[max(0, 1 - half.first) :]
        start = max(1, half.first)
        gap = np.zeros(start - 1)
        losses = float(interval) * np.arange(start, start + len(above), dtype=np.float64)
        below = above * np.exp(-losses) * (1 + 16 * ULP * (1 + losses))
        rest = max(0.0, 1 + 2 * len(above) * ULP - float(above.sum() + below.sum()) - half.infinity)
        mass = np.concatenate((below[::-1], gap, [rest], gap, above))
        return Pmf(1 - start - len(above), mass, half.infinity)


def _mixed(rate: float, losses: Array) -> tuple[Array, Array]:
    """ln(1 − γ + γ·e^l) and a bound on its error."""
    with np.errstate(over="ignore"):
        small = rate * np.expm1(np.minimum(losses, 1.0))
    near = np.log1p(small)
    far = np.logaddexp(math.log1p(-rate), math.log(rate) + losses)
    # Where γ ≈ 1 meets a very low loss, 1 + small cancels; logaddexp does not.
    use_near = (np.abs(losses) < 1) & (small > -0.5)
    value = np.where(use_near, near, far)
    scale = np.where(use_near, np.abs(near) + np.abs(small), np.abs(far) + np.abs(losses) - 2 * math.log(rate) + 1)
    scale = np.where(use_near, scale, scale - 2 * math.log1p(-rate))
    return value, 8 * ULP * scale


def _unmixed(rate: float, losses: Array, wobble: Array) -> tuple[Array, Array]:
    """The inner loss l with ln(1 − γ + γ·e^l) = `losses` (−∞ below ln(1 − γ)) and a bound on its error."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = np.expm1(np.minimum(losses, 30.0)) / rate
        near = np.where(ratio > -1, np.log1p(np.maximum(ratio, -1.0)), -np.inf)
        far = losses - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(losses, 30.0)))
        inner = np.where(losses < 30, near, far)
        relative = np.where(losses < 30, (1 + np.abs(losses)) * np.abs(ratio) / (1 + ratio), np.abs(losses) + 1)
        slope = np.exp(losses - inner) / rate
        doubt = 8 * ULP * (relative + np.abs(inner) - math.log(rate)) + 2 * wobble * slope
    return inner, np.where(np.isfinite(inner), doubt, 0.0)


def _blend(rate: float, p: Array, p_error: Array, q: Array, q_error: Array) -> tuple[Array, Array, Array, Array]:
    mass = rate * p + (1 - rate) * q
    error = rate * p_error + (1 - rate) * q_error + 16 * ULP * mass
    return mass, q, error, q_error + 16 * ULP * q

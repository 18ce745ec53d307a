"""Loss masses on an even grid, each at least what soundness asks for.

A loss law is a pair (P, Q) seen through L = ln(P/Q): its profile is δ(ε) = ∫(P − e^ε·Q)₊. On the grid i·h it becomes
one mass for each i and a mass at ∞, with δ(ε) = p_∞ + Σ p_i·(1 − e^{ε − i·h})₊. Every true profile is convex in e^ε,
so a grid law bounds it for all ε as soon as it does at each grid point, sums to at least 1 and holds at ∞ the
profile past the last point. Every summand is non-negative, so a mass may always be enlarged, and moved up,
and never the reverse.

>>> cells = Cells(np.array([0.4]), np.array([0.4 * np.exp(-0.5)]), np.zeros(1), np.zeros(1))
>>> below, above = connect(np.array([0.0, 1.0]), 1.0, cells)   # all of the cell's mass has loss 0.5
>>> [round(float(m), 3) for m in (below[0], above[0])]
[0.151, 0.249]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["TINY", "ULP", "Array", "Atoms", "Cells", "Pmf", "connect", "dot", "scatter"]

Array = NDArray[np.float64]

ULP = 2.0**-53
"""The rounding unit. Chains of elementary operations are charged 16 of them where fewer than 8 happen."""
TINY = 1e-300
"""Added to a mass so that underflow never loses any."""


@dataclass(frozen=True)
class Pmf:
    """Mass `mass[k]` at the loss (first + k)·h, and `infinity` at ∞."""

    first: int
    mass: Array
    infinity: float


@dataclass(frozen=True)
class Cells:
    """The masses under P and under Q of the losses in each of some cells, each with a bound on its absolute error."""

    p: Array
    q: Array
    p_error: Array
    q_error: Array


@dataclass(frozen=True)
class Atoms:
    """Point masses under P at these losses and at ∞. On a `lattice` (start, step) the losses are known exactly."""

    losses: Array
    masses: Array
    infinity: float = 0.0
    lattice: tuple[Fraction, Fraction] | None = None

    def positions(self, interval: Fraction) -> Array:
        """The losses in units of `interval`, rounded up; exact where they are whole."""
        if self.lattice is not None:
            start, step = self.lattice[0] / interval, self.lattice[1] / interval
            if start.denominator == 1 and step.denominator == 1 and abs(start) + abs(step) * len(self.losses) < 2**52:
                return float(start) + float(step) * np.arange(len(self.losses), dtype=np.float64)
        rough = self.losses / float(interval)
        return np.asarray(rough + 8 * ULP * np.abs(rough))


def connect(edges: Array, interval: float, cells: Cells) -> tuple[Array, Array]:
    """The mass of each cell (e, e + h] shared between its ends so that its P-mass and its Q-mass are both kept.

    With y above and m − y below, q = (m − y)·e^{−e} + y·e^{−e−h} gives y = (m − q·e^e)/(1 − e^{−h}). More than
    that above is sound: the profile is exact at both ends and linear in e^ε between. So the errors of m and q only
    move a little mass up by one cell.
    """
    mass = cells.p + cells.p_error + 16 * ULP * cells.p + TINY
    with np.errstate(over="ignore", invalid="ignore"):
        kept = np.maximum(cells.q - cells.q_error, 0.0) * np.exp(edges[:-1])
        kept *= 1 - 16 * ULP * (2 + np.abs(edges[:-1]))
    kept = np.where(np.isfinite(kept), kept, 0.0)
    above = (mass - kept) / -np.expm1(-interval)
    above = np.clip(above + 16 * ULP * np.abs(above), 0.0, mass)
    return mass - above + 4 * ULP * mass, above


def scatter(positions: Array, masses: Array, interval: float, first: int, size: int) -> Array:
    """Point masses shared between the grid points next to each, by the same rule."""
    index = np.floor(positions)
    above = masses * (np.expm1((index - positions) * interval) / np.expm1(-interval))
    above = np.minimum(above * (1 + 16 * ULP), masses)
    slot = index.astype(np.int64) - first
    crowd = 2 * int(np.bincount(slot).max(initial=0)) + 4
    total = np.bincount(slot, masses - above, size + 1) + np.bincount(slot + 1, above, size + 1)
    return np.asarray(total[:size] * (1 + crowd * ULP), dtype=np.float64)


def dot(left: Array, right: Array) -> float:
    """Σ left·right, on this thread alone: sums this short lose more to waking other threads than they gain."""
    return float(np.einsum("i,i->", left, right))

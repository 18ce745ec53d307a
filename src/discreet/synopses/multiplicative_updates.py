"""Multiplicative updates of a fractional database; all of it is post-processing of what was measured.

    nudged     y(c) ← y(c)·exp(q(c)·(m − ⟨q, y⟩)/2n), normalised: the update of the theorems
    Measured   the update after which the database meets what was measured of it: a marginal, or one query
    polished   least squares of everything measured, by multiplicative steps of adapted length

A weight is multiplied and never added to, so databases stay positive, and what nobody measured stays as even as it can.

>>> from discreet.synopses.domain import Attribute, Domain
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute("smokes", (False, True))))
>>> Measured.marginal(domain, (0,)).met(np.full((2, 2), 25.0), np.array([30.0, 70.0]), 100.0, 1e-3).tolist()
[[15.0, 15.0], [35.0, 35.0]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.noise.batches import Integers
from discreet.synopses.domain import Domain
from discreet.synopses.queries.factors import Doubles
from discreet.synopses.queries.workload import Workload

__all__ = ["Measured", "inner", "nudged", "polished", "simplex"]

_TINY = 1e-300
_DEEPEST = -600.0
"""Logarithms of weights, relative to the largest, are kept above this, so that none is denormal."""
_STEEPEST = 2.0
"""The most that one update adds to the logarithm of a weight, for queries of fractions."""
_LONGER, _SHORTER = 1.4, 0.5
_HALVINGS = 40


def nudged(weights: Doubles, cells: Integers, entries: Doubles, measured: float, total: float) -> Doubles:
    """Weights after the update of the theorems for one query, given where it is not 0; they add up to `total`."""
    gap = measured - inner(weights[cells], entries)
    moved = weights.copy()
    moved[cells] *= np.exp(entries * (gap / (2 * total)))
    moved *= total / float(moved.sum())
    return moved


@dataclass(frozen=True, eq=False)
class Measured:
    """A marginal of the attributes `axes`, or with `row` one query that depends on them alone."""

    domain: Domain
    axes: tuple[int, ...]
    row: Doubles | None = None

    @classmethod
    def marginal(cls, domain: Domain, axes: tuple[int, ...]) -> Measured:
        """The counts of all combinations of some attributes."""
        return cls(domain, axes)

    @classmethod
    def query(cls, workload: Workload, index: int) -> Measured:
        """Any one query."""
        return cls(workload.domain, tuple(range(len(workload.domain.shape))), workload.row(index))

    def met(self, tensor: Doubles, values: Doubles, total: float, least: float) -> Doubles:
        """The tensor of all cells after the update; targets below `least` are raised to it."""
        out = tuple(axis for axis in range(len(self.domain.shape)) if axis not in self.axes)
        kept = tensor.sum(axis=out, keepdims=True) if out else tensor
        flat = kept.reshape(-1)
        if self.row is None:
            factor = np.maximum(simplex(values, total), least) / np.maximum(flat, _TINY)
        else:
            factor = np.exp(self.row * self._slope(flat, float(values[0]), total, least))
        moved: Doubles = tensor * factor.reshape(kept.shape)
        moved *= total / max(float(moved.sum()), _TINY)
        return moved

    def _slope(self, kept: Doubles, value: float, total: float, least: float) -> float:
        """How much to add to the logarithm of weights where the query is 1."""
        row = self.row
        assert row is not None
        share = inner(kept, row) / total
        wanted = min(max(value, least), total - least) / total
        if not (row % 1).any():
            wanted, held = (min(max(each, 1e-12), 1 - 1e-12) for each in (wanted, share))
            return float(np.log(wanted / (1 - wanted)) - np.log(held / (1 - held)))
        spread = inner(kept, row**2) / total - share**2
        return float(np.clip((wanted - share) / max(spread, 1e-12), -_STEEPEST, _STEEPEST))


def polished(weights: Doubles, workload: Workload, values: Doubles, steps: int) -> Doubles:
    """Weights nearer, in least squares, to the values measured of a workload, by so many multiplicative steps."""
    total = float(weights.sum())
    logs = np.log(np.maximum(weights, _TINY))
    residuals = workload.answers(weights) - values
    length = 1 / total
    for _ in range(steps):
        slopes = workload.weighed(residuals)
        for _ in range(_HALVINGS):
            tried = logs - length * slopes
            tried = np.maximum(tried - tried.max(), _DEEPEST)
            moved = np.exp(tried)
            scale = total / float(moved.sum())
            moved *= scale
            left = workload.answers(moved) - values
            # Half of the progress that the slope promises.
            if inner(residuals, residuals) - inner(left, left) >= inner(slopes, weights - moved):
                break
            length *= _SHORTER
        else:
            return weights
        weights, logs, residuals = moved, tried + np.log(scale), left
        length *= _LONGER
    return weights


def inner(a: Doubles, b: Doubles) -> float:
    """⟨a, b⟩ in this thread alone: threads of a matrix library wait for one another longer than it takes."""
    return float(np.einsum("i,i", a, b))


def simplex(values: Doubles, total: float) -> Doubles:
    """The nearest vector of numbers from 0 that add up to `total`."""
    # The nearest vector stays the same when all values move alike; so no large ones are subtracted from one another.
    values = values - values.max()
    ordered = np.sort(values)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, values.size + 1)
    kept = int(np.flatnonzero(ordered > shifts)[-1])
    nearest: Doubles = np.maximum(values - shifts[kept], 0.0)
    return nearest

"""Weights on cells whose answers are near given numbers: post-processing, which looks at nothing private.

    min ½·Σ max(0, |⟨q, x⟩ − v_q| − slack)²    over x ≥ 0 with Σx = total, or Σx ≤ total

Without slack that is the projection of v on the answers that some such x gives. It is found by accelerated projected
gradients that restart themselves (Beck, Teboulle 2009; O'Donoghue, Candès 2015), which need nothing of the queries but
`answers` (A·x) and `weighed` (Aᵀ·y), and never a matrix.

What was reached is certified, not believed: with h the gradient at the answers a′ = A·x, `gap` is the largest
⟨h, a′ − a⟩ over all a that are allowed. So for the projection ⟨v − a′, a − a′⟩ ≤ gap for each of them, and

    ‖a′ − a‖² ≤ ‖v − a‖² − ‖v − a′‖² + 2·gap,

that is, once 2·gap ≤ ‖v − a′‖² no allowed a is farther from a′ than from v. The exact projection is within √gap of a′.

>>> class Two:
...     def answers(self, x): return np.array([x[0] + x[1], x[1] + x[2]])
...     def weighed(self, y): return np.array([y[0], y[0] + y[1], y[1]])
>>> fit = nearest(Two(), np.array([9.0, -2.0]), Cells(3, total=10.0))
>>> fit.weights.round(3).tolist(), fit.answers.round(3).tolist()
([10.0, 0.0, 0.0], [10.0, 0.0])

`levelled` is the linear program of Theorem 6.7 by HiGHS: the least t such that some x is within t of every number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np

from discreet.synopses.queries.factors import Doubles

__all__ = ["Cells", "Fit", "Linear", "levelled", "merged", "nearest"]

POWER_STEPS = 12
"""Steps of the power method; what it underestimates is noticed and corrected on the way."""
LOOK = 10
"""The gap is computed every so many steps."""
TOLERANCE = 0.4
"""Of the squared distance; a half is where the projection is certain to be no worse than what was projected."""
MOST_STEPS = 3_000


class Linear(Protocol):
    """Linear queries with entries in [0, 1]."""

    def answers(self, x: Any, /) -> Doubles:
        """A·x."""

    def weighed(self, y: Any, /) -> Doubles:
        """Aᵀ·y."""


@dataclass(frozen=True)
class Cells:
    """Weights x ≥ 0 on so many cells that add up to `total`, or to at most that."""

    number: int
    total: float
    exactly: bool = True

    def even(self) -> Doubles:
        """The same weight everywhere."""
        return np.full(self.number, self.total / self.number)

    def project(self, y: Doubles) -> Doubles:
        """The nearest allowed weights: max(0, y − θ) for the θ that makes the sum right."""
        positive = np.maximum(y, 0.0)
        if not self.exactly and positive.sum() <= self.total:
            return positive
        if self.total <= 0:
            return np.zeros(self.number)
        # θ grows to its value from below as cells under it are left out (Michelot 1986).
        kept, theta = y, (float(y.sum()) - self.total) / y.size
        while True:
            kept = kept[kept > theta]
            if kept.size == 0:
                return np.where(y == y.max(), self.total / (y == y.max()).sum(), 0.0)
            higher = (float(kept.sum()) - self.total) / kept.size
            if higher <= theta:
                return np.maximum(y - theta, 0.0)
            theta = higher

    def lowest(self, slope: Doubles) -> float:
        """The least ⟨slope, x⟩."""
        least = self.total * float(slope.min())
        return least if self.exactly else min(0.0, least)


@dataclass(frozen=True)
class Fit:
    """Weights, their answers, and what is certain about them."""

    weights: Doubles
    answers: Doubles
    distance: float
    """Σ max(0, |answer − number| − slack)²."""
    gap: float
    """See above: how far the objective may be from its least, at most."""
    deviation: float
    """The largest |answer − number|."""


def nearest(
    queries: Linear,
    numbers: Doubles,
    cells: Cells,
    *,
    slack: float = 0.0,
    start: Doubles | None = None,
    tolerance: float = TOLERANCE,
    goal: float = inf,
    most: int = MOST_STEPS,
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """Weights whose answers are nearest to the numbers, as far as the slack does not excuse them.

    Ends when the gap is at most `tolerance` times the squared distance, and at most `goal`, or after `most` steps.
    """
    x = cells.even() if start is None else cells.project(start)
    ax = queries.answers(x)
    y, ay, pace = x, ax, 1.0
    bound = _largest_curvature(queries, cells)
    best = _certified(queries, numbers, cells, slack, x, ax)
    # What is nearer than this is rounding: it would be taken for curvature, without end.
    faint = 1e-24 * (float(numbers @ numbers) + float(ax @ ax)) + 1e-300
    for step in range(1, most + 1):
        slope = queries.weighed(_excess(ay - numbers, slack))
        while True:
            new = cells.project(y - slope / bound)
            anew = queries.answers(new)
            moved, risen = new - y, anew - ay
            if float(risen @ risen) <= bound * float(moved @ moved) * (1 + 1e-9) + faint:
                break
            bound *= 1.5
        if float((y - new) @ (new - x)) > 0:
            pace = 1.0
        later = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        push = (pace - 1) / later
        y, ay = new + push * (new - x), anew + push * (anew - ax)
        x, ax, pace = new, anew, later
        if step % LOOK == 0 or step == most:
            here = _certified(queries, numbers, cells, slack, x, ax)
            best = min(best, here, key=lambda fit: fit.gap + fit.distance / 2)
            if progress is not None:
                progress(step / most)
            if here.gap <= min(tolerance * here.distance, goal) or here.distance <= faint:
                return here
    return best


def levelled(matrix: Any, numbers: Doubles, cells: Cells) -> Fit | None:
    """Weights whose largest deviation is the least possible, by HiGHS; None if it gives up.

    The program always has a solution: the deviation is what is made small, not a bound that might be missed. Queries
    that weigh long runs of cells are written by sums of all cells up to the ends of runs, which are variables too: a
    range then has two entries however many cells are in it, and the program takes a fifteenth of the time.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, vstack

    short, sums = _by_runs(matrix)
    k, variables = short.shape
    one = csr_array(np.ones((k, 1)))
    above = vstack([hstack([short, -one]), hstack([-short, -one])], format="csr")
    whole = csr_array(
        (np.ones(cells.number), (np.zeros(cells.number, int), np.arange(cells.number))), (1, variables + 1)
    )
    limits = np.concatenate([numbers, -numbers])
    equal, right = hstack([sums, csr_array((sums.shape[0], 1))]), np.zeros(sums.shape[0])
    if cells.exactly:
        equal, right = vstack([equal, whole]), np.append(right, cells.total)
    else:
        above, limits = vstack([above, whole]), np.append(limits, cells.total)
    found = linprog(
        np.append(np.zeros(variables), 1.0),
        A_ub=above.tocsr(),
        b_ub=limits,
        A_eq=equal.tocsr() if right.size else None,
        b_eq=right if right.size else None,
        bounds=(0, None),
        method="highs",
    )
    if found.status != 0:
        return None
    weights = cells.project(np.maximum(found.x[: cells.number], 0.0))
    answers = np.asarray(matrix @ weights)
    deviation = float(np.abs(answers - numbers).max())
    return Fit(weights, answers, 0.0, max(0.0, deviation - float(found.fun)), deviation)


def _by_runs(matrix: Any) -> tuple[Any, Any]:
    """The queries over cells and sums of leading cells, and the equations that define those sums.

    With S_j = x_0 + … + x_j, Σ a_j·x_j = Σ (a_j − a_{j+1})·S_j, where only ends of runs count.
    """
    from scipy.sparse import csr_array, diags_array, hstack

    size = matrix.shape[1]
    ends = csr_array(matrix @ _with_one_below(1.0, -1.0, size))
    ends.eliminate_zeros()
    fewer = np.diff(ends.indptr) < np.diff(matrix.indptr)
    ends = csr_array(diags_array(fewer.astype(np.float64)) @ ends)
    ends.eliminate_zeros()
    plain = csr_array(diags_array((~fewer).astype(np.float64)) @ matrix)
    plain.eliminate_zeros()
    used = np.unique(ends.indices)
    # S at one end is S at the end before it and the cells between.
    between = np.searchsorted(used, np.arange(size))
    held = between < used.size
    cells = csr_array((np.ones(held.sum()), (between[held], np.flatnonzero(held))), (used.size, size))
    steps = _with_one_below(-1.0, 1.0, used.size)
    return hstack([plain, ends[:, used]], format="csr"), hstack([cells, steps], format="csr")


def _with_one_below(on: float, below: float, size: int) -> Any:
    """A square matrix with these numbers on the diagonal and below it."""
    from scipy.sparse import csr_array

    places = np.arange(size)
    rows, columns = np.concatenate([places, places[1:]]), np.concatenate([places, places[:-1]])
    return csr_array((np.repeat([on, below], [size, max(size - 1, 0)]), (rows, columns)), (size, size))


def merged(matrix: Any) -> tuple[Any, np.ndarray[Any, np.dtype[np.int64]]]:
    """The matrix with one column for cells that no row tells apart, and the column of each cell."""
    # Equal columns have equal sums of odd multipliers modulo 2⁶⁴; two pairs of those that differ do not in practice,
    # and if they did weights would be a little less apt.
    rows = np.arange(1, matrix.shape[0] + 1, dtype=np.uint64)
    # Entries are multiples of 2⁻⁴⁰ at the finest.
    entries = np.ldexp(matrix.data, 40).astype(np.int64).astype(np.uint64)
    lines = np.repeat(rows, np.diff(matrix.indptr))
    keys = np.zeros((matrix.shape[1], 2), dtype=np.uint64)
    for column, factor in enumerate((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)):
        mixed = lines * np.uint64(factor)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        np.add.at(keys[:, column], matrix.indices, (mixed | np.uint64(1)) * entries)
    _, first, kind = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    # In the order of the cells, in which runs stay runs.
    order = np.argsort(first)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return matrix[:, first[order]], place[kind.reshape(-1)]


def _excess(residual: Doubles, slack: float) -> Doubles:
    return residual if slack == 0 else np.sign(residual) * np.maximum(np.abs(residual) - slack, 0.0)


def _certified(queries: Linear, numbers: Doubles, cells: Cells, slack: float, x: Doubles, ax: Doubles) -> Fit:
    residual = ax - numbers
    excess = _excess(residual, slack)
    slope = queries.weighed(excess)
    gap = max(0.0, float(slope @ x) - cells.lowest(slope))
    return Fit(x, ax, float(excess @ excess), gap, float(np.abs(residual).max()))


def _largest_curvature(queries: Linear, cells: Cells) -> float:
    """About the largest ‖A·d‖²/‖d‖², over d that do not change the sum where it is fixed."""
    direction = np.cos(1.2345 * np.arange(cells.number)) + (0.0 if cells.exactly else 2.0)
    curvature = 0.0
    for _ in range(POWER_STEPS):
        if cells.exactly:
            direction = direction - direction.mean()
        length = float(np.sqrt(direction @ direction))
        if length == 0.0:
            break
        direction = direction / length
        direction = queries.weighed(queries.answers(direction))
        curvature = float(np.sqrt(direction @ direction))
    return max(curvature, 1e-12)

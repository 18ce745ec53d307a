"""One block of a census: all lists of people that fit its tables, by integer programming.

Unknown are the counts of the cells that no published zero rules out. Bounds are tightened row by row until nothing
moves; what is still open goes to HiGHS. A person is certain if every solution has them: starting from one solution, a
program looks for others that have less of as many cells as it can, until there is none.

>>> import numpy as np
>>> rows = [np.array([0, 1]), np.array([2, 3]), np.array([0, 2]), np.array([1, 3])]
>>> found = solve(rows, np.array([2.0, 0.0, 1.0, 1.0]), 4)
>>> found.status, found.least.tolist()
('unique', [1, 1, 0, 0])
>>> solve(rows, np.array([1.0, 1.0, 1.0, 1.0]), 4).solutions
2
>>> solve(rows, np.array([1.0, 1.0, 3.0, 1.0]), 4).status
'inconsistent'
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["SECONDS", "Solved", "solve"]

Doubles = NDArray[np.float64]
Places = NDArray[np.int64]
Status = Literal["unique", "ambiguous", "inconsistent", "unsolved"]
SECONDS = 10.0
"""For one block, at most; then what is known is told and the rest is left open."""
MOST_SOLUTIONS = 1000
MOST_STEPS = 4000
"""Of the search that counts solutions."""
DEEPEST = 400
"""Open cells with which solutions are counted, at most."""


@dataclass(frozen=True)
class Solved:
    """What is known of one block: people by cell in one solution, and in all of them."""

    status: Status
    found: Places = field(repr=False)
    """One solution; for inconsistent tables the nearest."""
    least: Places = field(repr=False)
    """People of each cell that every solution has."""
    solutions: int
    """How many there are, if `counted`, else at least so many."""
    counted: bool
    misfit: float = 0.0
    """How far the tables are from any list of people, added up over all their counts."""


def solve(rows: Sequence[Places], counts: Doubles, cells: int, seconds: float = SECONDS) -> Solved:
    """Σ of the cells of each row = its count, in whole people."""
    nothing = np.zeros(cells, np.int64)
    matrix = np.zeros((len(rows), cells))
    for place, members in enumerate(rows):
        matrix[place, members] = 1.0
    whole = bool((counts >= 0).all() and (counts == np.floor(counts)).all())
    bounds = _tightened(matrix, counts) if whole else None
    if bounds is None:
        return _nearest(matrix, counts)
    low, high = bounds
    told = bool(matrix.any(axis=0).all())
    if (low == high).all():
        return Solved("unique" if told else "ambiguous", low, low, 1, told)
    free = np.flatnonzero(low < high)
    rest = counts - matrix @ low
    active = matrix[:, free].any(axis=1)
    inner, target, room = matrix[np.ix_(active, free)], rest[active], (high - low)[free]
    program = _Program(inner, target, room, time.monotonic() + seconds)
    first = program.any_solution()
    if first is None:
        if program.late:
            return Solved("unsolved", low, low, 0, False)
        return _nearest(matrix, counts)
    least = program.least(first)
    solution, every = low.copy(), low.copy()
    solution[free] += first
    every[free] += least
    if program.late:
        return Solved("unsolved", solution, np.where(high == low, low, nothing), 1, False)
    if (least == first).all():
        return Solved("unique" if told else "ambiguous", solution, every, 1, told)
    many, counted = _count(inner, target, room)
    return Solved("ambiguous", solution, every, max(many, 2), counted and told)


def _tightened(matrix: Doubles, counts: Doubles) -> tuple[Places, Places] | None:
    """Least and largest counts of each cell that no single row rules out; None if a row cannot be met."""
    inside = matrix > 0
    if (~inside.any(axis=1) & (counts != 0)).any():
        return None
    covered = inside.any(axis=0)
    high = np.where(inside, counts[:, None], np.inf).min(axis=0)
    high[~covered] = 0.0
    low = np.zeros_like(high)
    while True:
        room = counts - matrix @ low
        slack = matrix @ high - counts
        if (room < 0).any() or (slack < 0).any():
            return None
        above = np.minimum(high, low + np.where(inside, room[:, None], np.inf).min(axis=0))
        below = np.maximum(low, high - np.where(inside, slack[:, None], np.inf).min(axis=0))
        above[~covered], below[~covered] = 0.0, 0.0
        if (above == high).all() and (below == low).all():
            return low.astype(np.int64), high.astype(np.int64)
        high, low = above, below


class _Program:
    """Whole numbers x with Ax = b and 0 ≤ x ≤ room."""

    def __init__(self, matrix: Doubles, target: Doubles, room: Places, until: float) -> None:
        self.matrix, self.target, self.room, self.until = matrix, target, room, until
        self.late = False

    def any_solution(self) -> Places | None:
        """One of them."""
        return self._run(np.zeros(self.room.size), self.matrix, self.target, None, self.room.astype(np.float64))

    def least(self, first: Places) -> Places:
        """For each x the least that any solution has."""
        least, size = first.copy(), first.size
        while not self.late:
            # z = 1 for an x that is below the least found so far; as many of them as there can be at once.
            sought = np.flatnonzero(least > 0)
            if sought.size == 0:
                break
            links = np.zeros((sought.size, size + sought.size))
            links[np.arange(sought.size), sought] = 1.0
            drop = (self.room - least + 1)[sought].astype(np.float64)
            links[np.arange(sought.size), size + np.arange(sought.size)] = drop
            cost = np.r_[np.zeros(size), -np.ones(sought.size)]
            padded = np.c_[self.matrix, np.zeros((self.matrix.shape[0], sought.size))]
            high = np.r_[self.room, np.ones(sought.size)].astype(np.float64)
            other = self._run(cost, padded, self.target, (links, self.room[sought].astype(np.float64)), high)
            if other is None or (other[:size] >= least).all():
                break
            least = np.minimum(least, other[:size])
        return least

    def _run(
        self, cost: Doubles, equal: Doubles, target: Doubles, under: tuple[Doubles, Doubles] | None, high: Doubles
    ) -> Places | None:
        from scipy.optimize import Bounds, LinearConstraint, milp

        left = self.until - time.monotonic()
        if left <= 0:
            self.late = True
            return None
        limits: list[Any] = [LinearConstraint(equal, target, target)]
        if under is not None:
            limits.append(LinearConstraint(under[0], -np.inf, under[1]))
        options = {"time_limit": left}
        result = milp(cost, constraints=limits, bounds=Bounds(0, high), integrality=np.ones(high.size), options=options)
        self.late = self.late or result.status == 1
        return None if result.x is None else np.rint(result.x).astype(np.int64)


def _count(matrix: Doubles, target: Doubles, room: Places) -> tuple[int, bool]:
    """Solutions, up to a limit, and whether these are all."""
    order = np.argsort(-matrix.sum(axis=0), kind="stable")
    if order.size > DEEPEST:
        return 0, False
    rows = [np.flatnonzero(matrix[:, place]).tolist() for place in order]
    rooms = room[order].tolist()
    # What this cell and those after it can still give to each row.
    later = np.cumsum((matrix[:, order] * room[order])[:, ::-1], axis=1)[:, ::-1]
    after = np.c_[later[:, 1:], np.zeros(len(target))].T.tolist()
    left, found, steps = target.tolist(), 0, 0

    def descend(place: int) -> None:
        nonlocal found, steps
        steps += 1
        if place == len(rooms):
            found += 1
            return
        mine = rows[place]
        highest = int(min(rooms[place], *(left[row] for row in mine)))
        lowest = int(max(0, *(left[row] - after[place][row] for row in mine)))
        for value in range(lowest, highest + 1):
            if found >= MOST_SOLUTIONS or steps >= MOST_STEPS:
                return
            for row in mine:
                left[row] -= value
            descend(place + 1)
            for row in mine:
                left[row] += value

    descend(0)
    return found, found < MOST_SOLUTIONS and steps < MOST_STEPS


def _nearest(matrix: Doubles, counts: Doubles) -> Solved:
    """Whole people near the x ≥ 0 whose counts are off by the least in all."""
    from scipy.optimize import linprog

    k, n = matrix.shape
    none = np.zeros(n, np.int64)
    if not n:
        return Solved("inconsistent", none, none, 0, True, float(np.abs(counts).sum()))
    cost = np.r_[np.zeros(n), np.ones(2 * k)]
    found = linprog(cost, A_eq=np.c_[matrix, np.eye(k), -np.eye(k)], b_eq=counts, bounds=(0, None), method="highs")
    weights = found.x[:n] if found.x is not None else np.zeros(n)
    whole = np.floor(weights + 1e-9).astype(np.int64)
    extra = round(float(weights.sum())) - int(whole.sum())
    whole[np.argsort(whole - weights, kind="stable")[: max(0, extra)]] += 1
    return Solved("inconsistent", whole, none, 0, True, float(found.fun) if found.x is not None else float("nan"))

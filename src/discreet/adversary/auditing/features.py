"""Scalars read off an output: what the event search looks at.

A reading is a fixed function of one output, so nothing it shows exceeds the guarantee of the mechanism: each is
post-processing. Some look at values (a coordinate, a sum, who is largest), some at what honest noise must
hide: the lowest set bit of a double, the residue on the grid the noise lives on, the sign of a zero. Two are
learned from runs set aside for learning: a naive Bayes and a logistic score of "came from D".

>>> lowest_bit(np.array([0.75, 8.0, 0.1, 0.0])).tolist()
[-2, 3, -55, -1200]
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.auditing.outcomes import Column, Table

__all__ = [
    "LOWEST",
    "Reading",
    "column",
    "combined",
    "fingerprint",
    "hidden",
    "logistic",
    "lowest_bit",
    "residues",
    "score",
]

LOWEST = "the exponent of the lowest set bit of"
_FEW = 6
"""Outputs of up to this many coordinates are also read as an order and by the differences of all pairs."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A named scalar of an output; `plain` if a reader sees at once what it means."""

    words: str
    read: Callable[[Table], Column]
    plain: bool = False


def column(table: Table, index: int) -> Reading:
    """One coordinate as it stands."""
    return Reading(table.names[index], lambda t: t.columns[index], plain=True)


def combined(table: Table) -> Iterator[Reading]:
    """Readings that join the numeric coordinates."""
    width = len(table.numeric)
    if width < 2:
        return
    yield Reading("the sum of the coordinates", _sum)
    yield Reading("the largest coordinate", lambda t: t.numbers.max(axis=1))
    yield Reading("the smallest coordinate", lambda t: t.numbers.min(axis=1))
    yield Reading("the place of the largest coordinate", lambda t: t.numbers.argmax(axis=1))
    yield Reading("the place of the smallest coordinate", lambda t: t.numbers.argmin(axis=1))
    yield Reading("the number of rises from one coordinate to the next", _rises)
    if width <= _FEW:
        yield Reading("the order of the coordinates", _order)
        for i, j in combinations(range(width), 2):
            words = f"{table.names[table.numeric[j]]} − {table.names[table.numeric[i]]}"
            yield Reading(words, partial(_difference, i, j))
    else:
        yield Reading("the last coordinate minus the first", partial(_difference, 0, -1))


def hidden(table: Table, index: int) -> Iterator[Reading]:
    """What a coordinate shows besides its size: the ends of its digits, or the length of its text."""
    name, kind = table.names[index], table.columns[index].dtype.kind
    if kind == "f":
        yield Reading(f"{LOWEST} {name}", lambda t: lowest_bit(t.columns[index]))
        yield Reading(f"the fractional part of {name}", partial(_residue, index, 1.0))
    elif kind == "U":
        yield Reading(f"the length of {name}", lambda t: np.char.str_len(t.columns[index]).astype(np.int64))


def residues(table: Table, index: int, sides: tuple[Column, Column]) -> Iterator[Reading]:
    """The coordinate modulo the grid that one side's values were seen to share, and modulo small numbers."""
    name, kind = table.names[index], table.columns[index].dtype.kind
    grids: set[float | int] = {grid for side in sides if (grid := _grid(side)) is not None}
    if kind == "i":
        grids = {grid for grid in grids if grid > 1} | {2, 3, 10, 16}
    for grid in sorted(grids - {1.0}) if kind == "f" else sorted(grids):
        yield Reading(f"{name} modulo {grid:.6g}", partial(_residue, index, grid))


def fingerprint(table: Table, columns: Sequence[int]) -> NDArray[np.int64]:
    """A 64-bit mixture of these columns, for telling values apart bit by bit."""
    mixed = np.full(table.rows, 0x9E3779B97F4A7C15, np.uint64)
    for values in (table.columns[index] for index in columns):
        if values.dtype.kind == "U":
            texts = (text.encode("utf-8", "surrogatepass") for text in values.tolist())
            bits = np.fromiter(map(zlib.crc32, texts), np.uint64)
        else:
            bits = np.ascontiguousarray(values).view(np.uint64)
        mixed = (mixed ^ bits) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
    return mixed.view(np.int64)


def lowest_bit(values: Column) -> NDArray[np.int64]:
    """k for a double that is an odd multiple of 2^k; below −1100 for zeros and values that are not finite."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    mantissa = (bits & ((1 << 52) - 1)) | np.where(exponent > 0, 1 << 52, 0)
    power = np.maximum(exponent, 1) - 1075 + np.frexp((mantissa & -mantissa).astype(np.float64))[1] - 1
    power = np.where(values == 0, np.where(bits < 0, -1201, -1200), power)
    special = np.where(np.isnan(values), -1300, np.where(bits < 0, -1302, -1301))
    return np.where(exponent == 0x7FF, special, power).astype(np.int64)


def logistic(left: Table, right: Table, columns: Sequence[int], rows: int = 50_000, rounds: int = 12) -> Reading | None:
    """The linear score of these columns that best tells the two tables apart, or None where there are too few rows."""

    def stacked(table: Table, rows: int | None = None) -> NDArray[np.float64]:
        return np.column_stack([table.columns[index][:rows].astype(np.float64) for index in columns])

    both = np.vstack([stacked(left, rows), stacked(right, rows)])
    came = np.repeat([1.0, 0.0], [min(left.rows, rows), min(right.rows, rows)])
    finite = np.isfinite(both).all(axis=1)
    both, came = both[finite], came[finite]
    if len(both) < 10 * len(columns):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        centre, spread = np.median(both, axis=0), np.maximum(both.std(axis=0), 1e-12)

    def standard(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            clipped = np.clip((numbers - centre) / spread, -10, 10)
        return np.column_stack([np.ones(len(numbers)), np.nan_to_num(clipped)])

    design = standard(both)
    weights = np.zeros(design.shape[1])
    for _ in range(rounds):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (came - chance) - weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + np.eye(len(weights))
        weights = weights + np.linalg.solve(curvature, gradient)
    return Reading("a logistic score of the coordinates", lambda t: standard(stacked(t)) @ weights)


def score(codes: list[Callable[[Table], NDArray[np.intp]]], ratios: list[NDArray[np.float64]]) -> Reading:
    """The naive Bayes score: for each coordinate the log-ratio of its cell, summed."""

    def read(table: Table) -> Column:
        total = np.zeros(table.rows)
        for code, ratio in zip(codes, ratios, strict=True):
            total += ratio[code(table)]
        return total

    return Reading("a naive Bayes score of the coordinates", read)


def _sum(table: Table) -> Column:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(table.numbers.sum(axis=1))


def _rises(table: Table) -> Column:
    rises: Column = (np.diff(table.numbers, axis=1) > 0).sum(axis=1)
    return rises


def _order(table: Table) -> Column:
    places = np.argsort(table.numbers, axis=1, kind="stable")
    width = places.shape[1]
    return np.asarray(places @ (width ** np.arange(width)))


def _difference(first: int, second: int, table: Table) -> Column:
    with np.errstate(invalid="ignore"):
        return table.numbers[:, second] - table.numbers[:, first]


def _residue(index: int, grid: float | int, table: Table) -> Column:
    values = table.columns[index]
    if values.dtype.kind == "i":
        return np.mod(values, int(grid))
    with np.errstate(invalid="ignore"):
        return np.mod(values, grid)


def _grid(values: Column) -> float | int | None:
    """The coarsest g such that all values differ by multiples of g, where 64 bits show one."""
    if values.dtype.kind == "i":
        distinct = np.unique(values)
        if len(distinct) < 2 or float(distinct[-1]) - float(distinct[0]) >= 2.0**62:
            return None
        return int(np.gcd.reduce(distinct - distinct[0]))
    distinct = np.unique(values[np.isfinite(values)])
    if len(distinct) < 2:
        return None
    unit = int(lowest_bit(distinct[distinct != 0]).min())
    if unit < -1000 or np.abs(distinct).max() >= math.ldexp(1.0, min(unit + 60, 1000)):
        return None
    steps = np.ldexp(distinct, -unit).astype(np.int64)
    return math.ldexp(float(np.gcd.reduce(steps - steps[0])), unit)

"""Ranges, deviations and trimmed means of groups: IQR, MAD and TRIMMED_MEAN in SQL, from ranks that are drawn.

What is drawn, and what that costs, is said in `measuring/quantiles.py`; here draws become values with ends.

`between`: the distance of two quantiles, with the ends of both.

`deviation`: the middle c of a group is drawn, its rows are folded round that, and the middle of those is drawn. The
middle distance D(c) moves by no more than c does, so ends reach as much farther as the middle may be off.

`trimmed`: the mean of the middle part, from rank p·N to (1 − p)·N. With cuts a ≤ b, m half-way between them, and S the
sum of all rows' distances from m, held to ±(b − a)/2,

    T(a, b) = m + S/((1 − 2p)·N)

is that mean where a and b are the quantiles of p and 1 − p, whatever ties there are. Elsewhere it is off by the
integrals of (F − p)/(1 − 2p) from the quantile to a, upwards, and of (1 − p − F)/(1 − 2p) from b to the quantile,
downwards: each at most how far a cut is off, times how many ranks it is off, over (1 − 2p)·N. Errors of cuts count
but in the second order, so noise may go where it matters: a unit that weighs w in the group moves S by w·(b − a)/2 and
N by w at most, whatever the cuts were, and both get noise for that.

>>> low, high = Drawn(20.0, 19.0, 21.0), Drawn(50.0, 48.0, 51.0)
>>> between(low, high, 100.0)
Drawn(value=30.0, low=27.0, high=32.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, log, nextafter
from typing import Any

import numpy as np

from discreet.mechanisms.quantiles.rank_law import Ranked
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.gaussian import discrete_gaussian
from discreet.noise.laplace import discrete_laplace
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.statement.histograms import Cells

__all__ = ["Drawn", "Noise", "Trimmed", "between", "deviation", "folded"]

FITS = 1 << 62
MOST_BITS = 58
"""Binary digits of the scale of noise that can be drawn."""
ROW = G * H
"""What a row weighs at user level."""


@dataclass(frozen=True)
class Drawn:
    """A released value, and ends that hold the noiseless value of the weighed rows at `quantiles.LEVEL`, each end alone
    at half of what that leaves."""

    value: float
    low: float
    high: float


def between(low: Drawn, high: Drawn, width: float) -> Drawn:
    """How far one quantile lies above another, where values are at most `width` apart."""
    least, most = max(high.low - low.high, 0.0), min(max(high.high - low.low, 0.0), width)
    least, most = max(nextafter(least, -inf), 0.0) if least % 1 else least, nextafter(most, inf) if most % 1 else most
    return Drawn(min(max(high.value - low.value, least), most), least, min(most, width))


def folded(places: Integers, weights: Any, middle: int) -> Ranked:
    """The rows of a group by their distance from a place."""
    distances, index = np.unique(np.abs(places - middle), return_inverse=True)
    sums = np.zeros(distances.size, dtype=weights.dtype)
    np.add.at(sums, index, weights)
    return Ranked.of_weights(distances, sums)


def deviation(centre: float, middle: Drawn, found: Drawn, cells: Cells) -> Drawn:
    """The middle distance from the middle: `found` is that from a centre near it."""
    width = float(cells.line.bounds.width)
    slack = 0.0 if cells.sharp else float(cells.line.step)
    off = max(abs(centre - middle.low), abs(middle.high - centre)) + slack
    return Drawn(found.value, max(found.low - off, 0.0), min(found.high + off, width))


@dataclass(frozen=True)
class Noise:
    """Noise over movement, for the sum of a trimmed mean and for its number of rows, in so many groups."""

    gaussian: bool
    summed: Fraction
    counted: Fraction
    groups: int = 1

    def reach(self, tail: float) -> float:
        """How many scales noise exceeds with this chance, to either side."""
        if not self.gaussian:
            return log(1 / tail) + 1e-6
        from scipy.special import ndtri

        return float(-ndtri(tail / 2)) + 1e-6

    def released(self, exact: int, moved: int, ratio: Fraction, entropy: Entropy) -> tuple[float, float]:
        """A number that one unit moves by `moved` in all groups together, with noise, and the scale of that; in coarser
        steps where noise so large could not be drawn."""
        coarse = max(0, int(ratio * moved).bit_length() - MOST_BITS)
        # Rounded down, two numbers are at most one step farther apart, in each of the groups.
        steps = -(-moved >> coarse) + self.groups if coarse else moved
        scale = max(ratio * steps, Fraction(1))
        draw = discrete_gaussian if self.gaussian else discrete_laplace
        noisy = (exact >> coarse) + int(draw(scale, entropy=entropy))
        return float(noisy << coarse), float(scale) * 2.0**coarse


@dataclass(frozen=True)
class Trimmed:
    """The mean of what is left when `trim` of the rows are cut off at either end. Its sum and its number are farther
    off than ends allow for with the chance `tail` each."""

    trim: Fraction
    cells: Cells
    noise: Noise
    tail: float

    def release(
        self,
        data: tuple[Integers, Any],
        cuts: tuple[int, int],
        ends: tuple[Drawn, Drawn],
        movement: int,
        ranks: tuple[float, float],
        lost: Fraction,
        entropy: Entropy,
    ) -> Drawn:
        """Of one group, whose cuts were drawn with `ends`, and are so many `ranks` off but for a chance that is counted
        there. A unit moves weights by `movement`; clipping took no more than `lost`."""
        places, weights = data
        low, high = min(cuts), max(cuts)
        # Rows alone have weight 1; noise needs a finer grid than that.
        lift = max(1, ROW // movement)
        number, scale = self.noise.released(int(weights.sum()) * lift, movement * lift, self.noise.counted, entropy)
        # Twice the distance from half-way, so that it is whole.
        held = np.clip(2 * places - (low + high), low - high, high - low)
        moved = movement * lift * (high - low)
        total, wide = self.noise.released(_dot(held, weights) * lift, moved, self.noise.summed, entropy)
        rows, off = number / ROW, self.noise.reach(self.tail) * scale / ROW
        away, far = total / (2 * ROW), self.noise.reach(self.tail) * wide / (2 * ROW)
        first, last = ends[0].low, ends[1].high
        value = min(max(self._mean(cuts, away, rows), self._at(low)), self._at(high))
        value = min(max(value, first), last)
        if rows - off <= 1 or cuts[0] > cuts[1]:
            return Drawn(value, first, last)
        gone = float(lost) * lift / ROW
        far += gone * (high - low) / 2
        box = product((away - far, away + far), (rows - off, rows + off + gone))
        corners = [self._mean(cuts, *corner) for corner in box]
        biases = [
            max(abs(self._at(cut) - end) for end in (each.low, each.high)) * (rank * lift / ROW + gone) / (rows - off)
            for cut, each, rank in zip(cuts, ends, ranks, strict=True)
        ]
        left, slack = float(1 - 2 * self.trim), 0.0 if self.cells.sharp else float(self.cells.line.step)
        least, most = min(corners) - biases[0] / left - slack, max(corners) + biases[1] / left + slack
        return Drawn(value, min(max(least, first), value), max(min(most, last), value))

    def _at(self, place: float) -> float:
        return float(self.cells.line.bounds.lower) + place * float(self.cells.line.step)

    def _mean(self, cuts: tuple[int, int], away: float, rows: float) -> float:
        return self._at(sum(cuts) / 2 + away / (float(1 - 2 * self.trim) * max(rows, 1.0)))


def _dot(distances: Integers, weights: Any) -> int:
    """Their exact sum of products."""
    if not distances.size:
        return 0
    if weights.dtype == object or int(weights.sum()) * int(np.abs(distances).max()) >= FITS:
        return sum(a * b for a, b in zip(distances.tolist(), weights.tolist(), strict=True))
    return int(np.dot(distances, weights))

"""The norm that a unit's rows are weighed down to: fixed beforehand, or one of several to choose from.

A unit with n_k rows in group k has the weight min(1, C/‖n‖). Where C is to be found privately, the candidates are 1,
1½, 2, 2½, 3, 3½, 4, 5, 6, 7, 8, 10, … up to a limit: four to the octave, past 32 two, past 1,024 one, and whole numbers
when doubled. A unit's bucket is the index of the first candidate that its norm is within.

>>> [str(norm) for norm in Caps.up_to(5).norms]
['1', '3/2', '2', '5/2', '3', '7/2', '4', '5']
>>> Caps.up_to(2).bucket("s")       # doctest: +ELLIPSIS
"...SUBSTRING('00123', CAST(CASE WHEN s <= 2.0e0 THEN 0e0 + CEIL(s / 0.5e0) ELSE 5e0 END AS INTEGER), 1)..."
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil

__all__ = ["MARGIN", "Caps", "G", "H", "Weighing"]

G = 1 << 17
"""Parts in a unit's weight for C = 1. Times the steps of a value they fit 32 bits, which engines sum fast."""
H = 2
"""Candidates are multiples of 1/H."""
MARGIN = 1 + Fraction(1, 1 << 30)
"""Covers the rounding of sums of squares, a square root and a division in doubles."""
OCTAVES, HALVES, QUARTERS = 20, 10, 5
"""Candidates go up to 2^20 rows of one unit, where noise is larger than almost any count; up to 2^10 in halves of an
octave, up to 2^5 in quarters."""
RANGES = (
    (0, 1 << QUARTERS, Fraction(1, H)),
    (1 << QUARTERS, 1 << HALVES, Fraction(16)),
    (1 << HALVES, 1 << 15, Fraction(1 << 10)),
    (1 << 15, 1 << OCTAVES, Fraction(1 << 15)),
)
"""Between two ends, candidates are multiples of a step, except for the limit."""


class Weighing(IntEnum):
    """By what units are weighed, each with a norm of its own. Stored answers have norms in this order."""

    ROWS = 0
    GROUPS = 1
    """In counts of units."""
    ROWS_IN_MEANS = 2
    """There clipping mostly cancels."""


@dataclass(frozen=True)
class Caps:
    """The candidate norms, in rising order."""

    norms: tuple[Fraction, ...]

    @classmethod
    def fixed(cls, norm: int) -> Caps:
        """One norm."""
        return cls((Fraction(norm),))

    @staticmethod
    @lru_cache(maxsize=256)
    def up_to(limit: int | None) -> Caps:
        """Candidates to choose from, up to a limit."""
        most = 1 << OCTAVES if limit is None else min(limit, 1 << OCTAVES)
        octaves = [Fraction(1 << octave) for octave in range(OCTAVES + 1)]
        between = {octave * part / 4 for octave in octaves[:QUARTERS] for part in (5, 7)}
        between |= {octave * 3 / 2 for octave in octaves[:HALVES]}
        every = sorted([*octaves, *(norm for norm in between if (norm * H).denominator == 1)])
        return Caps((*(norm for norm in every if norm < most), Fraction(most)))

    @property
    def searched(self) -> bool:
        """Whether there is anything to choose."""
        return len(self.norms) > 1

    def weight(self, cut: int) -> int:
        """C·H, a whole number."""
        return int(self.norms[cut] * H)

    def movement(self, bound: int, cut: int) -> int:
        """How far one unit can move the totals of a statistic whose rows add at most `bound` steps each."""
        return ceil(bound * self.norms[cut] * G * H * MARGIN)

    def bucket(self, norm: str) -> str:
        """The index of the first candidate that the norm, a double, is within, in SQL; their number if there is none.

        It is looked up in a text that has a character for each step. Steps are powers of two, so nothing is rounded. A
        CASE with an arm for each candidate takes longer, to plan and to run.
        """
        return _looked_up(self.norms, norm)


@lru_cache(maxsize=256)
def _looked_up(norms: tuple[Fraction, ...], norm: str) -> str:
    last = norms[-1]
    arms, found = [], list[int]()
    for start, end, step in RANGES:
        if start < last:
            most = min(last, Fraction(end))
            before = len(found) - start // step
            arms.append(f"WHEN {norm} <= {float(most)!r}e0 THEN {before}e0 + CEIL({norm} / {float(step)!r}e0)")
            steps = range(start // step + 1, ceil(most / step) + 1)
            found += [bisect_left(norms, min(number * step, last)) for number in steps]
    table = "".join(chr(ord("0") + bucket) for bucket in (*found, len(norms)))
    place = f"CASE {' '.join(arms)} ELSE {len(table)}e0 END"
    return f"ASCII(SUBSTRING('{table}', CAST({place} AS INTEGER), 1)) - {ord('0')}"

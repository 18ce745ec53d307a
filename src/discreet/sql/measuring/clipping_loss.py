"""How much clipping took, released in two numbers, so that it can be put back in proportion.

Where the norm of units is found privately, heavier units lose rows, and all counts and sums are too low. How many rows
are lost in all is one number, known far better than the losses of each group. Answers are raised by that proportion: on
heavy-tailed tables most of the error goes, as far as heavy units are spread over the groups like the others. Intervals
reach from what is left, as if nothing had been lost there, to all that may be lost.

Guarantee. Two releases in the query's Gaussian, which has parts of its accuracy for them. First, the number of units by
octaves of their rows t: a unit is in one octave, and moves the vector by 1. From these noisy numbers alone a cap T is
chosen. Then the pair (lost, kept): a unit with weight w adds (1 − w)·min(t, T) and w·min(t, T), which are at least 0
and add up to at most T; so it moves the pair by at most T. Gaussian releases whose sensitivities over deviations are
μ₁, μ₂, … cost together what one with √(μ₁² + μ₂² + …) costs, also where later ones are chosen by earlier ones.

>>> tally = Tally(lost=2000.0, kept=8000.0, deviation=20.0)
>>> round(tally.raised, 3), round(tally.at_most(2), 3)
(1.25, 1.256)
>>> Tally(lost=70.0, kept=8000.0, deviation=50.0).raised
1.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

from discreet.core.rounding import sqrt_up
from discreet.sql.bounding.clipping_norms import MARGIN, Caps, G, H

__all__ = ["OCTAVES", "REST", "Octaves", "Tally", "counted", "counted_to", "exact", "movement", "noise", "seen"]

OCTAVES = 24
"""Units of 2^24 rows and more are counted in the last octave."""
COUNTED, WEIGHED = Fraction(1, 32), Fraction(1, 8)
"""Parts of the accuracy (of squared sensitivity over variance) for the octaves and for the pair."""
REST = 1 - COUNTED - WEIGHED
"""What is left for the query's sums."""
SEEN, APART = 3.0, 4.5
"""Deviations by which an octave stands out of the noise: where the one below it does, and elsewhere. An octave far too
high would add noise that nobody needs; chance shows one in ten thousand releases."""
BEYOND = 3
"""Rows are counted up to so many octaves above the last that can be seen: units are there too, too few to be seen."""
SPARED = 10
"""Where half as many units have twice the rows, each octave holds as many rows as the next: one more is worth its
noise, which is twice as much, as long as that is below this part of all rows."""
SHRUNK = 1.5
"""Deviations below which the rows lost may be all noise, and count as none; above, the less the nearer (as James and
Stein shrink)."""
KNOWN = 6
"""Deviations that the rows kept must be, for a proportion to mean anything."""
MOST = 2.0
"""Nothing is raised further than this: where more than half of the rows are lost, nobody knows whose they were."""

Octaves = Mapping[tuple[int, int], tuple[int, int, int, int]]
"""By bucket of the norm and octave of rows t: the units, and Σt, Σt·g, Σg over them, for the g of
`statement/builder.py`."""


@dataclass(frozen=True)
class Tally:
    """Rows of units lost and kept by clipping, with noise of a deviation. Units with very many rows count for less."""

    lost: float
    kept: float
    deviation: float

    @property
    def raised(self) -> float:
        """By what to multiply what is left, to have the lost rows back in proportion."""
        if self.lost <= SHRUNK * self.deviation or self.kept < KNOWN * self.deviation:
            return 1.0
        shrunk = self.lost * (1 - (SHRUNK * self.deviation / self.lost) ** 2)
        return min(1.0 + shrunk / self.kept, MOST)

    def at_most(self, away: float) -> float:
        """The same for all that may be lost, were the pair `away` deviations worse; infinite if unknown."""
        lost, kept = max(self.lost + away * self.deviation, 0.0), self.kept - away * self.deviation
        return 1.0 + lost / kept if kept > 0 else inf


def noise(ratio: Fraction, changes: int) -> tuple[Fraction, Fraction]:
    """Deviations for a movement of 1 in the octaves and in the pair; `ratio` would be that of one release alone."""
    return ratio * sqrt_up(1 / COUNTED) * changes, ratio * sqrt_up(1 / WEIGHED) * changes


def movement(octave: int) -> int:
    """How far one unit moves the pair, in units of 1/(G·H), if the cap is 2^octave."""
    return ceil((G * H << octave) * MARGIN)


def counted(octaves: Octaves) -> list[int]:
    """The units in each octave, in units of 1/(G·H)."""
    units = [0] * OCTAVES
    for (_, octave), (number, *_) in octaves.items():
        units[min(octave, OCTAVES - 1)] += number * G * H
    return units


def seen(noisy: Sequence[float], deviation: float) -> int:
    """The last octave in which units can be seen, from noisy numbers of them."""
    last, below = 0, True
    for octave, number in enumerate(noisy):
        below = number > (SEEN if below else APART) * deviation
        last = octave if below else last
    return last


def counted_to(noisy: Sequence[float], last: int, deviation: float) -> int:
    """The octave up to which rows of units are counted, where `last` is the last one seen and a movement of one row has
    noise of this deviation."""
    rows = sum(number * 1.5 * 2**octave for octave, number in enumerate(noisy[: last + 1]))
    octave = last + BEYOND
    return octave + 1 if SPARED * deviation * (2 << octave) <= rows else octave


def exact(octaves: Octaves, caps: Caps, cut: int, octave: int) -> tuple[int, int]:
    """The rows lost and kept, in units of 1/(G·H), clipped at a candidate and counted up to 2^octave of each unit."""
    lost = kept = 0
    for (bucket, of_rows), (units, rows, divided, shares) in octaves.items():
        high = of_rows >= octave
        whole = ((units << octave) if high else rows) * G * H
        left = whole if bucket <= cut else caps.weight(cut) * ((shares << octave) if high else divided)
        lost, kept = lost + whole - left, kept + left
    return lost, kept

"""Columns of texts to show, each measure followed by its interval.

What is shown is honest: a value with its ±, or with the ends beside it, holds the whole interval after rounding too.
And it is shown: what a terminal or a page would obey is written as its code.

>>> for column in measured("n", [105.4, 98.7], [(85.4, 125.4), (78.7, 118.7)], "95 %"):
...     print(column.title, column.texts)
n ['105', '99']
± 95 % ['21', '21']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR

from discreet.core.display.numbers import number, places
from discreet.core.display.text import visible

__all__ = ["Cells", "measured"]


@dataclass(frozen=True)
class Cells:
    """One column as texts of one alignment."""

    title: str
    texts: list[str]
    right: bool = False
    firm: bool = False
    """Whether it is never broken into lines."""
    quiet: bool = False
    """Whether it only adds to the column before it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", visible(self.title))
        object.__setattr__(self, "texts", [visible(text) for text in self.texts])


def measured(name: str, values: Sequence[float], spans: Sequence[tuple[float, float]], level: str) -> list[Cells]:
    """A measure and its intervals: as ± where all are even, else as ends; no more digits than they support."""
    decimals = places([(high - low) / 2 for low, high in spans])
    measure = Cells(name, [number(value, decimals) for value in values], True, True)
    slack = 0.5 * 10**-decimals
    if all(abs((low + high) / 2 - value) <= slack for value, (low, high) in zip(values, spans, strict=True)):
        # From the value as shown, so that rounding it takes nothing off the interval.
        middles = [round(value, decimals) for value in values]
        reaches = [max(high - at, at - low) for at, (low, high) in zip(middles, spans, strict=True)]
        halves = [number(reach, decimals, ROUND_CEILING) for reach in reaches]
        return [measure, Cells(f"± {level}", halves, True, True, True)]
    lows = [number(low, decimals, ROUND_FLOOR) for low, _ in spans]
    highs = [number(high, decimals, ROUND_CEILING) for _, high in spans]
    wide = max(map(len, highs), default=0)
    # Figure spaces are as wide as digits, so that the dots stand in one line.
    ranges = [f"{low} … {high:\u2007>{wide}}" for low, high in zip(lows, highs, strict=True)]
    return [measure, Cells(f"{level} interval", ranges, True, True, True)]

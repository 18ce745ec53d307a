"""Pairs of neighbouring data sets from a declared domain, and the pair among them that gives a mechanism away most.

Nothing is known of a foreign mechanism but what data it takes: numbers of a range, alone or as rows. Extremes of the
range move most mechanisms farthest, so the pairs are made of its ends, of zero and of its middle; with `odd` also of
NaN and infinities, which no range excludes in practice.

>>> Numbers(0, 1).pairs()[:2]
[(0, 1), (1, 0)]
>>> Numbers(0, 9, rows=3).pairs()[0]
([0, 0, 0], [9, 0, 0])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from discreet.adversary.auditing.auditor import Audit, Batch, audit
from discreet.core.errors import InvalidArgument

__all__ = ["Numbers", "worst_pair"]

Pair = tuple[Any, Any]
ODD = (math.nan, math.inf, -math.inf, -0.0)
PILOT = 2_000
"""Runs on each data set of each pair that are spent on choosing among pairs."""


@dataclass(frozen=True)
class Numbers:
    """A number between two ends, or so many rows of them."""

    low: float
    high: float
    rows: int | None = None
    neighbours: Literal["replace", "add_remove"] = "replace"
    odd: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            bound = f"below the other end {self.high!r}"
            raise InvalidArgument("low", self.low, bound, "write the range as LOW:HIGH, such as 0:100")
        if self.rows is not None and self.rows < 1:
            raise InvalidArgument("rows", self.rows, "at least 1", "say how many rows a data set has")

    @property
    def extremes(self) -> tuple[float, ...]:
        """The values that pairs are made of."""
        middle = (self.low + self.high) / 2
        middle = int(middle) if isinstance(self.low, int) and isinstance(self.high, int) else middle
        inside = [self.low, self.high, middle, *([0] if self.low < 0 < self.high else [])]
        return (*dict.fromkeys(inside), *(ODD if self.odd else ()))

    def pairs(self) -> list[Pair]:
        """Neighbouring data sets."""
        if self.rows is None:
            ends = [(a, b) for a in self.extremes for b in self.extremes if a is not b and repr(a) != repr(b)]
            return sorted(ends, key=lambda pair: {*pair} != {self.low, self.high})
        found: list[Pair] = []
        for others in self.extremes:
            base = [others] * self.rows
            for one in self.extremes:
                if self.neighbours == "add_remove":
                    found.append((base, [one, *base]))
                elif repr(one) != repr(others):
                    found.append((base, [one, *base[1:]]))
        if self.neighbours == "add_remove":
            found += [([], [one]) for one in self.extremes]
        return found


def worst_pair(
    mechanism: Any,
    pairs: Sequence[Pair],
    *,
    samples: int = 100_000,
    batch: Batch | None = None,
    progress: Callable[[float], None] | None = None,
    **given: Any,
) -> tuple[Audit, Pair]:
    """The audit of the pair that a short audit of each found to be told apart best, and that pair.

    The audit is on fresh runs, so that its confidence is not spent on the choice. `given` goes to `audit`.
    """
    if not pairs:
        raise InvalidArgument("pairs", [], "at least one pair", "give neighbouring data sets")
    best, chosen = pairs[0], -math.inf
    for place, (d, d_prime) in enumerate(pairs if len(pairs) > 1 else ()):
        short = {**given, "confidence": "0.9"}
        tried = audit(mechanism, d, d_prime, samples=min(PILOT, samples), batch=batch, **short)
        if (strength := tried.region.strength(tried.delta)) > chosen:
            best, chosen = (d, d_prime), strength
        if progress is not None:
            progress(0.3 * (place + 1) / len(pairs))
    start = 0.0 if len(pairs) == 1 else 0.3

    def heard(part: float) -> None:
        if progress is not None:
            progress(start + (1 - start) * part)

    return audit(mechanism, *best, samples=samples, batch=batch, progress=heard, **given), best

"""Differencing and trackers: what one person has, from answers about many people.

Two answers about crowds that differ by one person give that person away: `difference` asks about a crowd (the cover)
with the person and without. Where questions about few people are refused, `track` pads them with a crowd T: for any T
such that T and not-T are both answered,

    q(C) = q(C or T) + q(C or not T) − q(T) − q(not T)

(Denning, Denning and Schwartz 1979). Rounding to a known step leaves an interval for each cover; several covers leave
their intersection. Noise shows in that estimates from several covers do not agree; fewer than three do not tell.

>>> pay = {"Ann": 70.0, "Bo": 50.0, "Cy": 60.0, "Di": 90.0}
>>> def curator(condition):
...     people = [p for p in pay if eval(condition.replace("AND", "and").replace("OR", "or").replace("NOT", "not"))]
...     if len(people) < 2:
...         raise PermissionError("too few people")
...     return sum(pay[p] for p in people)
>>> found = track(curator, "p == 'Ann'", ["p in ('Ann', 'Bo')", "p in ('Bo', 'Cy')", "p > 'Bo'"])
>>> found.verdict, found.values.tolist()
('BROKEN: the value sought was read off 12 answers.', [70.0])

What is found is in `.values`; nothing prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adversary.differencing.answerers import Aggregate, Questions
from discreet.adversary.figures import bars
from discreet.adversary.findings import Finding, judged
from discreet.adversary.reconstruction.chance import most_by_chance
from discreet.core.errors import InvalidArgument

__all__ = ["Differencing", "difference", "track"]

EVERYBODY = ("1 = 1",)
ENOUGH = 3
"""Estimates that must agree before answers of unknown rounding count as exact."""
SPREADS = 3.0
"""An interval from estimates that do not agree reaches so many standard errors on both sides."""

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Differencing(Finding):
    """What is known of each value sought."""

    method: str
    estimates: Doubles = field(repr=False)
    """One row for each value, one column for each cover; NaN where an answer is missing."""
    lows: Doubles = field(repr=False)
    highs: Doubles = field(repr=False)
    resolution: float
    step: float
    asked: int
    answered: int
    reasons: dict[str, int]
    truth: Doubles | None = field(default=None, repr=False)

    @property
    def sought(self) -> int:
        """How many values."""
        return int(self.lows.size)

    @property
    def values(self) -> Doubles:
        """The middle of what is left of each."""
        return (self.lows + self.highs) / 2

    @property
    def widths(self) -> Doubles:
        """How much is left of each; infinite where nothing is known."""
        return np.where(np.isfinite(self.lows), self.highs - self.lows, np.inf)

    @property
    def pinned(self) -> int:
        """Values that are known to the resolution, by the answers alone."""
        sure = self.step > 0 or np.isfinite(self.estimates).sum(axis=1) >= ENOUGH
        return int(((self.widths <= self.resolution) & sure).sum())

    @property
    def right(self) -> int | None:
        """Values that are right to half the resolution, where the truth is known."""
        if self.truth is None:
            return None
        return int((np.abs(np.nan_to_num(self.values, nan=np.inf) - self.truth) <= self.resolution / 2).sum())

    def bits_right(self) -> int:
        """If the values are bits: those on the right side of ½, and for half of those without an answer a coin."""
        if self.truth is None or not np.isin(self.truth, (0, 1)).all():
            raise InvalidArgument("truth", "no bits", "0 or 1 for each value", "give them to the attack")
        known = np.isfinite(self.values)
        return int(((self.values > 0.5) == (self.truth == 1))[known].sum()) + int((~known).sum()) // 2

    def beats_chance(self, epsilon: float = 0.0) -> bool:
        """Whether more bits are right than any attack on ε-DP answers about fair bits gets, but for one in 10⁹."""
        return self.bits_right() > most_by_chance(self.sought, epsilon)

    @property
    def verdict(self) -> str:
        """In plain words."""
        if not self.answered or not np.isfinite(self.lows).any():
            return f"NOTHING: {self.answered:,} of {self.asked:,} questions were answered, too few to compare."
        found = self.pinned if self.right is None else self.right
        of = "the value sought" if self.sought == 1 else f"{found:,} of {self.sought:,} values sought"
        if found:
            read = "was" if found == 1 else "were"
            return f"{judged(found, self.sought)}: {of} {read} read off {self.answered:,} answers."
        if self.right is None and (self.widths <= self.resolution).any():
            few = f"fewer than {ENOUGH} covers were answered"
            return f"UNSURE: {few}, so nobody can tell exact answers from noisy ones; name more covers."
        left = float(np.median(self.widths[np.isfinite(self.widths)])) / 2
        width = f"{left:,.0f}" if left >= 100 else f"{left:.3g}"
        who = f"{of} could not" if self.sought == 1 else f"none of {self.sought:,} values sought could"
        return f"HELD: {who} be read off {self.answered:,} answers, which leave ± {width}."

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        names = ("method", "sought", "asked", "answered", "reasons", "pinned", "right")
        return {name: getattr(self, name) for name in names}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        covers = self.estimates.shape[1]
        said = [
            ("attack", f"{self.method}, {covers} cover{'' if covers == 1 else 's'}"),
            ("questions", f"{self.asked:,} asked, {self.answered:,} answered"),
        ]
        return said + [("refused", f"{count:,} × {why}") for why, count in self.reasons.items()]

    def plot(self) -> Any:
        """How far apart the estimates of a value are, from their middle: the values themselves are not shown."""
        off = np.abs(self.estimates - np.nanmedian(self.estimates, axis=1, keepdims=True)) / self.resolution
        given = off[np.isfinite(off)]
        ends = [0.0, 0.5, 1, 2, 5, 10, 100, np.inf]
        shares = {
            f"{low:g} to {high:g}" if high < np.inf else f"above {low:g}": float(
                ((given >= low) & (given < high)).sum()
            )
            for low, high in pairwise(ends)
        }
        return bars(shares, self.verdict, "estimates, by how far they are from the middle one (in resolutions)")

    def secrets(self) -> dict[str, Any]:
        """The values."""
        ends = zip(self.lows.tolist(), self.highs.tolist(), strict=True)
        return {"found": [None if low != low else [low, high] for low, high in ends]}


def difference(
    aggregate: Aggregate,
    targets: str | Sequence[str],
    covers: Sequence[str] = EVERYBODY,
    *,
    step: float = 0.0,
    resolution: float = 1.0,
    truth: ArrayLike | None = None,
    progress: Callable[[float], None] | None = None,
) -> Differencing:
    """Crowds with and without each target: conditions that fit one person, or few.

    `step` is the rounding of answers where it is known; a value counts as read if it is known to `resolution`.
    """

    def estimate(ask: Questions, target: str, cover: str) -> float:
        return ask(f"({cover}) OR ({target})") - ask(f"({cover}) AND NOT ({target})")

    return _attack("difference", estimate, 2, aggregate, targets, covers, step, resolution, truth, progress)


def track(
    aggregate: Aggregate,
    targets: str | Sequence[str],
    trackers: Sequence[str],
    *,
    step: float = 0.0,
    resolution: float = 1.0,
    truth: ArrayLike | None = None,
    progress: Callable[[float], None] | None = None,
) -> Differencing:
    """The general tracker: `trackers` are conditions that about half of the people fit; those refused are left out."""

    def estimate(ask: Questions, target: str, cover: str) -> float:
        whole = ask(cover) + ask(f"NOT ({cover})")
        if not np.isfinite(whole):
            return float("nan")
        return ask(f"({target}) OR ({cover})") + ask(f"({target}) OR NOT ({cover})") - whole

    return _attack("general tracker", estimate, 4, aggregate, targets, trackers, step, resolution, truth, progress)


def _attack(
    method: str,
    estimate: Callable[[Questions, str, str], float],
    answers: int,
    aggregate: Aggregate,
    targets: str | Sequence[str],
    covers: Sequence[str],
    step: float,
    resolution: float,
    truth: ArrayLike | None,
    progress: Callable[[float], None] | None,
) -> Differencing:
    sought = [targets] if isinstance(targets, str) else list(targets)
    crowds = [covers] if isinstance(covers, str) else list(covers)
    if not sought or not crowds:
        raise InvalidArgument("targets", sought, "conditions, with one cover or more", "give some")
    if not resolution > 0 or not 0 <= step < np.inf:
        raise InvalidArgument("resolution", resolution, "above 0, and the step at least 0", "1 is for counts")
    known = None if truth is None else np.asarray(truth, np.float64).reshape(-1)
    if known is not None and known.size != len(sought):
        raise InvalidArgument("truth", f"{known.size} values", f"{len(sought)}, one for each target", "list them all")
    ask = Questions(aggregate)
    estimates = np.full((len(sought), len(crowds)), np.nan)
    for row, target in enumerate(sought):
        for column, cover in enumerate(crowds):
            estimates[row, column] = estimate(ask, target, cover)
            if progress is not None:
                progress((row * len(crowds) + column + 1) / estimates.size)
    lows, highs = zip(*(_left(row, answers * step / 2) for row in estimates), strict=True)
    ends = np.array(lows), np.array(highs)
    return Differencing(
        method, estimates, *ends, float(resolution), float(step), ask.asked, ask.answered, dict(ask.reasons), known
    )


def _left(estimates: Doubles, reach: float) -> tuple[float, float]:
    """What estimates that are off by at most `reach` leave; if they contradict each other, what noise leaves."""
    given = estimates[np.isfinite(estimates)]
    if not given.size:
        return float("nan"), float("nan")
    low, high = float(given.max()) - reach, float(given.min()) + reach
    # What is left of sums of doubles may differ in their last digits.
    if low <= high + 1e-9 * max(1.0, abs(high)):
        return min(low, high), max(low, high)
    error = SPREADS * float(given.std(ddof=1)) / given.size**0.5
    return float(given.mean()) - error, float(given.mean()) + error

"""The exact law of a private rank: which place of a line stands at a wanted rank of weighted data.

A place x of a line of whole numbers has weight below it (L) and on it (w), so it covers the ranks from L to L + w. Its
distance to the target rank t is that of t to this interval, and

    P(x) ∝ exp(−past·(L − t)₊ − short·(t − L − w)₊)        over all places from first to last,

`past` for places whose ranks lie past the target, `short` for those that fall short of it. An end may be `open`: one
more place beyond it then covers all ranks past that end, so that a target no data reaches has a place of its own.

What one unit of weight costs. With t = q·total + offset, one more row of weight 1 at v moves L − t and L + w − t by
1 − q at places past v and by −q at places before it. So log-odds fall by at most past·(1 − q) or short·q; and they rise
by at most past·q at places past the target, or by at most short·(1 − q) at places short of it, never both: the first
needs v past the target, the second v short of it. The log-odds of two places therefore move apart by at most

    spread = max(past·q + max(past·(1 − q), short·q),  short·(1 − q) + max(short·q, past·(1 − q))),

2·rate·max(q, 1 − q) when past = short = rate: a bounded range. Rows of a smaller weight move it in proportion, and a
row spread over several places no more than on one. A row exchanged for another moves all ranks between the two by 1,
one way, and the total not at all: past + short, whatever q.

Sampling is exact. Neighbouring places of equal weight form a run: a gap, whose odds are its width times those of one
place, or a block of occupied places on one side of the target, whose odds are a geometric sum. In double precision the
odds of a run are known to a relative error of about its exponent times 2⁻⁵⁰, and a uniform that falls within that of a
boundary is extended and settled by ball arithmetic. Runs whose log-odds are `REACH` below the best are left out at
first: all together they are less likely than the margin, and a settlement looks as far as its precision needs.

>>> data = Ranked.of_sorted(np.array([1, 4, 4, 4, 9]))
>>> median = Target(Fraction(5, 2), past=Fraction(20), short=Fraction(20))
>>> draw([Question(data, median, 0, 10)] * 4, Entropy.for_tests(0)).tolist()
[4, 4, 4, 4]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, Protocol

import numpy as np
from flint import arb, ctx

from discreet.core.errors import InvalidArgument
from discreet.core.rounding import ball
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.exponential import gibbs
from discreet.noise.refinement import ULPS, Uniform

__all__ = ["Question", "Ranked", "Ranks", "Target", "View", "draw", "slopes", "spread"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]

REACH = 64
"""Log-odds below the best at which runs are left out of the first look: below 2⁻⁴² of all, for up to 2⁵⁰ places."""
BATCH = 32
"""Questions worked on at once: the margin of their sums grows with their number."""


def spread(q: Fraction, past: Fraction, short: Fraction) -> Fraction:
    """How far the log-odds of two places move apart when a row of weight 1 is added or removed."""
    return max(past * q + max(past * (1 - q), short * q), short * (1 - q) + max(short * q, past * (1 - q)))


def slopes(q: Fraction, epsilon: Fraction, lean: Fraction, *, exchanged: bool = False) -> tuple[Fraction, Fraction]:
    """`past` and `short` in the proportion lean : 1 − lean, as steep as a range of ε allows."""
    size = Fraction(1) if exchanged else spread(q, lean, 1 - lean)
    return epsilon * lean / size, epsilon * (1 - lean) / size


@dataclass(frozen=True)
class View:
    """Occupied places in ascending order, in blocks of `widths` places that each have the weight given; the weight
    `below` them, and the places from `first` to `last` that they speak for."""

    places: Integers
    widths: Integers
    weights: Integers
    below: int
    first: int
    last: int

    def split_at(self, rank: Fraction) -> View:
        """The same with a block that the rank falls in cut round its place, so that no block has it inside."""
        if not (self.widths > 1).any():
            return self
        ends = self.below + np.cumsum(self.weights * self.widths)
        index = int(np.searchsorted(ends, ceil(rank), side="left"))
        if index == ends.size or self.widths[index] == 1:
            return self
        weight, width = int(self.weights[index]), int(self.widths[index])
        inside = max(floor((rank - int(ends[index]) + weight * width) / weight), 0)
        cuts = [cut for cut in (inside, inside + 1) if 0 < cut < width]
        places, widths, weights = (
            np.concatenate((column[:index], middle, column[index + 1 :]))
            for column, middle in (
                (self.places, int(self.places[index]) + np.array([0, *cuts])),
                (self.widths, np.diff([0, *cuts, width])),
                (self.weights, np.full(1 + len(cuts), weight)),
            )
        )
        return View(places, widths, weights, self.below, self.first, self.last)


class Ranks(Protocol):
    """Weighted places in ascending order: their total weight, and a look at those near a rank."""

    @property
    def total(self) -> int:
        """The weight of all places."""

    def near(self, low: int, high: int, first: int, last: int) -> View:
        """A part that holds every place from `first` to `last` whose ranks meet (low, high), and whole runs only;
        0 ≤ low < high ≤ total, unless there is no data."""


class Ranked:
    """Places with their weights; without weights each entry has weight 1, and entries repeat."""

    def __init__(self, places: Integers, weights: Integers | None) -> None:
        self._places = places
        self._weights = weights
        self._ends = None if weights is None else np.cumsum(weights)
        self.total = int(places.size if self._ends is None else self._ends[-1] if places.size else 0)

    @classmethod
    def of_sorted(cls, places: Integers) -> Ranked:
        """Places of weight 1 each, in ascending order, with repetitions."""
        return cls(places, None)

    @classmethod
    def of_weights(cls, places: Integers, weights: Integers) -> Ranked:
        """Distinct places in ascending order with positive weights."""
        return cls(places, weights)

    def near(self, low: int, high: int, first: int, last: int) -> View:
        """A part that holds every place from `first` to `last` whose ranks meet (low, high)."""
        places, ends, weights = self._places, self._ends, self._weights
        size = places.size
        if ends is None or weights is None:
            begin, end = low, high
            if begin < end:
                begin = int(np.searchsorted(places, places[begin], side="left"))
                end = int(np.searchsorted(places, places[end - 1], side="right"))
            starts = np.flatnonzero(np.diff(places[begin:end], prepend=first - 1))
            found, held, below = places[begin:end][starts], np.diff(starts, append=end - begin), begin
        else:
            begin = int(np.searchsorted(ends, low, side="right"))
            end = min(int(np.searchsorted(ends, high, side="left")) + 1, size)
            below = int(ends[begin - 1]) if begin else 0
            found, held = places[begin:end], weights[begin:end]
        lowest = first if begin == 0 else int(places[begin - 1]) + 1
        highest = last if end == size else int(places[end]) - 1
        return View(found, np.ones_like(found), held, below, lowest, highest)


@dataclass(frozen=True)
class Target:
    """The rank wanted, and how steeply log-odds fall with each unit of weight away from it."""

    rank: Fraction
    past: Fraction
    short: Fraction


@dataclass(frozen=True)
class Question:
    """One draw: data, target, the places to choose from, and whether an end is open."""

    data: Ranks
    target: Target
    first: int
    last: int
    open_below: bool = False
    open_above: bool = False

    def __post_init__(self) -> None:
        if self.first - self.open_below > self.last + self.open_above:
            raise InvalidArgument("last", self.last, f"at least {self.first}", "there must be a place to choose")

    def view(self, reach: int) -> View:
        """All places but those whose log-odds are at least `reach` below the best."""
        total = self.data.total
        held = min(max(self.target.rank, Fraction(0)), Fraction(total))
        low = max(floor(held - reach / self.target.short) - 1, 0)
        high = min(ceil(held + reach / self.target.past) + 1, total)
        return self.data.near(low, high, self.first, self.last).split_at(self.target.rank)


def draw(questions: Sequence[Question], source: Entropy) -> Integers:
    """A place for each question; an open end gives the number just outside."""
    batches = [_draw(questions[i : i + BATCH], source) for i in range(0, len(questions), BATCH)]
    return np.concatenate(batches) if batches else np.empty(0, dtype=np.int64)


@np.errstate(under="ignore", over="ignore")
def _draw(questions: Sequence[Question], source: Entropy) -> Integers:
    runs = _Runs(questions)
    odds, margins = runs.odds()
    ends = np.cumsum(odds)
    before = np.concatenate(([0.0], ends))[runs.begins]
    words = source.words(len(questions))
    points = before + words.astype(np.float64) * 2.0**-64 * (ends[runs.stops - 1] - before)
    margins += (ends.size + 8) * (len(questions) + 1) * 2.0**-52 + 2.0**-41
    low = np.clip(np.searchsorted(ends, points - margins, side="right"), runs.begins, runs.stops - 1)
    high = np.clip(np.searchsorted(ends, points + margins, side="right"), runs.begins, runs.stops - 1)
    found = [runs.run(index) for index in low.tolist()]
    for index in np.flatnonzero((low != high) | ~(margins < 0.25)).tolist():
        found[index] = _Law(questions[index]).settle(Uniform(int(words[index]), 64, source))
    places = np.array([run.start for run in found]) + _below([1 if run.fall else run.width for run in found], source)
    for index, run in enumerate(found):
        if run.fall:
            steps = int(gibbs(-np.arange(run.width), abs(run.fall), entropy=source))
            places[index] += steps if run.fall > 0 else run.width - 1 - steps
    return places


@dataclass(frozen=True)
class _Run:
    """Neighbouring places of equal weight. Log-odds fall by `fall` from each to the next, or rise if it is negative."""

    start: int
    width: int
    exponent: Fraction
    fall: Fraction

    def odds(self, count: int) -> arb:
        """Those of its first `count` places, next to exp(−exponent) for the likeliest."""
        if not self.fall:
            return arb(count)
        fall = ball(abs(self.fall))
        through, skipped = (count, 0) if self.fall > 0 else (self.width, self.width - count)
        return ((-fall * through).expm1() - (-fall * skipped).expm1()) / (-fall).expm1()


class _Runs:
    """The runs of all questions in one row of arrays. A question with r occupied places in view has 2r + 3 of them: the
    open end below, then by turns the gap before a place and the place, the last gap, and the open end above."""

    def __init__(self, questions: Sequence[Question], reach: int = REACH) -> None:
        self._targets = [question.target for question in questions]
        views = [question.view(reach) for question in questions]
        counts = np.array([view.places.size for view in views])
        groups = np.arange(len(views))
        self.stops = np.cumsum(2 * counts + 3)
        self.begins = self.stops - 2 * counts - 3
        places, widths, weights = (
            np.concatenate([getattr(v, name) for v in views]) for name in ("places", "widths", "weights")
        )
        owners = np.repeat(groups, counts)
        gaps = 2 * np.arange(places.size) + 3 * owners + 1
        size = int(self.stops[-1])
        firsts, lasts = (np.array([getattr(v, name) for v in views], dtype=np.int64) for name in ("first", "last"))
        self.floors = [floor(target.rank) for target in self._targets]

        # What stands before and at each gap: the place before it, or the one before the first.
        self.starts = np.empty(size, dtype=np.int64)
        self.widths = np.zeros(size, dtype=np.int64)
        finals = self.stops - 2
        self.starts[self.begins + 1] = firsts
        self.starts[gaps + 1] = places
        self.starts[gaps + 2] = places + widths
        self.starts[self.begins], self.starts[self.stops - 1] = firsts - 1, lasts + 1
        self.widths[gaps] = places - self.starts[gaps]
        self.widths[gaps + 1] = widths
        self.widths[finals] = lasts + 1 - self.starts[finals]
        whole_below = [q.open_below and v.first == q.first for q, v in zip(questions, views, strict=True)]
        whole_above = [q.open_above and v.last == q.last for q, v in zip(questions, views, strict=True)]
        self.widths[self.begins], self.widths[self.stops - 1] = whole_below, whole_above

        # Ranks relative to the floor of the target: exact whole numbers, small where they matter.
        shifts = [v.below - a for v, a in zip(views, self.floors, strict=True)]
        kind = np.int64 if weights.dtype != object and max(map(abs, shifts)) < 1 << 62 else object
        covered = np.zeros(size, dtype=kind)
        covered[gaps + 1] = weights * widths
        sums = np.cumsum(covered)
        base = sums[self.begins] - np.array(shifts, dtype=kind)
        self.low = sums - covered - np.repeat(base, 2 * counts + 3)
        self.high = self.low + covered
        self.per = 2 * counts + 3
        self.blocks = (gaps + 1)[widths > 1]

    def odds(self) -> tuple[Doubles, Doubles]:
        """The probability of each run, and for each question how far sums of them may be off."""
        rests = [float(t.rank - a) for t, a in zip(self._targets, self.floors, strict=True)]
        past, short, rest = (
            np.repeat(np.array(column, dtype=np.float64), self.per)
            for column in ([float(t.past) for t in self._targets], [float(t.short) for t in self._targets], rests)
        )
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        low[self.begins], high[self.stops - 1] = 0.0, 1.0
        # With whole L and w: L > t only if L > ⌊t⌋, and L + w < t only if L + w ≤ ⌊t⌋.
        exponents = past * np.where(low > 0, low - rest, 0.0) + short * np.where(high <= 0, rest - high, 0.0)
        best = np.minimum.reduceat(np.where(self.widths > 0, exponents, np.inf), self.begins)
        gaps = exponents - np.repeat(best, self.per)
        masses = self._sizes(past, short, low, high) * np.exp(-np.minimum(gaps, 800.0))
        errors = (exponents + np.repeat(best, self.per) + 4 * (past + short) + ULPS) * 2.0**-50
        totals = np.add.reduceat(masses, self.begins)
        odds = masses / np.repeat(totals, self.per)
        return odds, 4 * np.add.reduceat(odds * errors, self.begins) + 2.0**-50

    def _sizes(self, past: Doubles, short: Doubles, low: Doubles, high: Doubles) -> Doubles:
        """The odds of each run next to those of its likeliest place."""
        sizes = self.widths.astype(np.float64)
        blocks, widths = self.blocks, self.widths[self.blocks]
        falls = np.where(high[blocks] > 0, past[blocks], short[blocks]) * (high[blocks] - low[blocks]) / widths
        sizes[blocks] = np.expm1(-falls * widths) / np.expm1(-falls)
        return sizes

    def run(self, index: int) -> _Run:
        """One run in exact numbers."""
        group = int(np.searchsorted(self.stops, index, side="right"))
        target, shift = self._targets[group], self.floors[group]
        low, high, width = int(self.low[index]) + shift, int(self.high[index]) + shift, int(self.widths[index])
        after = max(low - target.rank, Fraction(0)) if index != self.begins[group] else Fraction(0)
        ahead = max(target.rank - high, Fraction(0)) if index != self.stops[group] - 1 else Fraction(0)
        fall = Fraction(high - low, max(width, 1)) * (-target.short if high <= target.rank else target.past)
        exponent = target.past * after + target.short * ahead
        return _Run(int(self.starts[index]), width, exponent, fall if width > 1 else Fraction(0))


class _Law:
    """The law of one question in ball arithmetic, looked at as far as the precision in force needs."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._ends = (question.first - question.open_below, question.last + question.open_above)
        self._known: dict[int, tuple[list[_Run], list[arb], list[arb], arb]] = {}

    def settle(self, uniform: Uniform) -> _Run:
        """The run that the uniform falls in."""
        place = uniform.find(*self._ends, self.share)
        reach = 1
        while True:
            # Any view that holds the place shows its whole run.
            view = _Runs([self._question], reach << 8)
            held = (view.starts <= place) & (place < view.starts + view.widths)
            if held.any():
                return view.run(int(np.flatnonzero(held)[0]))
            reach <<= 1

    def share(self, last: int) -> arb:
        """P(place ≤ last), enclosed at the precision in force."""
        runs, odds, sums, outside = self._at(int(ctx.prec))
        index = int(np.searchsorted([run.start for run in runs], last, side="right")) - 1
        inside = arb(0)
        if index >= 0:
            run = runs[index]
            inside = sums[index] + run.odds(min(run.width, last - run.start + 1)) * odds[index]
        return (inside + outside) / (sums[-1] + outside)

    def _at(self, bits: int) -> tuple[list[_Run], list[arb], list[arb], arb]:
        """Runs, the odds of the likeliest place of each, the sums before each and of all, and a ball round the rest."""
        if bits not in self._known:
            view = _Runs([self._question], bits + REACH)
            runs = [view.run(index) for index in np.flatnonzero(view.widths).tolist()]
            best = min(run.exponent for run in runs)
            odds = [(-ball(run.exponent - best)).exp() for run in runs]
            sums = [arb(0)]
            for run, likeliest in zip(runs, odds, strict=True):
                sums.append(sums[-1] + run.odds(run.width) * likeliest)
            whole = sum(run.width for run in runs) == self._ends[1] - self._ends[0] + 1
            # Each place left out has odds below e^−(bits + REACH), and there are fewer than e^REACH of them.
            outside = arb(0) if whole else arb(0, arb(-bits).exp())
            self._known[bits] = (runs, odds, sums, outside)
        return self._known[bits]


def _below(widths: Sequence[int], source: Entropy) -> Integers:
    """For each width an integer 0 ≤ k < width, each equally likely."""
    limits = np.array(widths, dtype=np.int64)
    bits = np.array([(width - 1).bit_length() for width in widths], dtype=np.uint64)
    out = np.zeros(limits.size, dtype=np.int64)
    todo = np.flatnonzero(bits)
    while todo.size:
        out[todo] = (source.words(todo.size) >> (np.uint64(64) - bits[todo])).view(np.int64)
        todo = todo[out[todo] >= limits[todo]]
    return out

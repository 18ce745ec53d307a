"""Private quantiles, one or many, and the least and the largest.

A value x within public bounds covers the ranks from #{values < x} to #{values ≤ x}. The answer is drawn by the
exponential mechanism from all places of a line (`Line`), scored by how far the wanted rank q·n is from the ranks they
cover; the law, how far a row moves it, and how it is sampled exactly are in `quantiles/rank_law.py`. Ties answer as
one value, an empty list gives some value within the bounds, and time is that of sorting.

- Add/remove neighbours: log-odds fall by ε/(2·max(q, 1 − q)) with each rank. Some scores rise while others fall, so
  there is no saving as for counts; but a row moves the rank of a median by only a half.
- Replace neighbours: ε/2, whatever q.

`maximum` and `minimum` ask for the rank τ inside the end, since nearly all places beyond the data have the rank of the
end itself: τ is so large that one of them is drawn with probability at most β. They are steeper outwards.

`Quantiles` draws the middle one first and then goes on within the two halves of the data on either side of it (Kaplan,
Schnapp, Stemmer 2022): a row is in one half, so each of ⌈log₂(m + 1)⌉ levels costs its share of ε once. A tied value is
spread evenly over `PARTS` parts of its place, of which some go left and some right, so that halves are halves on
any data; the parts of one row weigh 1 together.

>>> from discreet.noise.entropy import Entropy
>>> ages = np.repeat(np.arange(20, 70), 100)
>>> median = Quantile("0.5", epsilon=1, bounds=Bounds(0, 120), step=1)
>>> median.release(ages, entropy=Entropy.for_tests(0)).values
45.0
>>> median.events, median.accuracy(0.05)
((BoundedRange(epsilon=Fraction(1, 1)),), 7.799753318287248)
>>> quartiles = Quantiles(("0.25", "0.5", "0.75"), epsilon=1, bounds=Bounds(0, 120), step=1)
>>> quartiles.release(ages, entropy=Entropy.for_tests(0)).values.tolist()
[32.0, 45.0, 57.0]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable, exact, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import float_up, log_up
from discreet.core.units import Neighbours
from discreet.mechanisms.quantiles.line import Line
from discreet.mechanisms.quantiles.rank_law import Question, Ranked, Target, View, draw, slopes
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.laplace import scale_argument

__all__ = ["Quantile", "Quantiles"]

PARTS = 1 << 10
"""Into how many parts a tied value is split: later targets are off by no more than that part of a tie."""
OUTWARD = Fraction(3, 4)
"""The steeper side's share of the slope for the least and the largest: √(ln(places/β)) to about 1."""


@dataclass(frozen=True)
class Quantile:
    """The value at rank q·n + offset. `step` is how far apart possible answers are, by default about 2⁻³² of what the
    bounds span; `lean` is the share of the slope on the side past the target."""

    q: Fraction
    epsilon: Fraction
    bounds: Bounds
    step: Fraction | None = None
    neighbours: Neighbours = "add_remove"
    offset: Fraction = Fraction(0)
    lean: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        _check(self, "q", probability("q", self.q, zero=True, one=True))
        _check(self, "epsilon", positive("epsilon", self.epsilon))
        _check(self, "offset", exact("offset", self.offset))
        _check(self, "lean", probability("lean", self.lean))
        _check(self, "step", Line.between(self.bounds, self.step).step)
        _exchanged(self.neighbours)
        for slope in self._slopes:
            scale_argument("1/epsilon", 1 / slope)

    @classmethod
    def maximum(
        cls,
        epsilon: Exactable,
        bounds: Bounds,
        step: Exactable | None = None,
        neighbours: Neighbours = "add_remove",
        *,
        beta: Exactable = Fraction(1, 20),
    ) -> Quantile:
        """A value that few rows are above and, but for a chance β, at least one is."""
        inside, lean = _inside(epsilon, bounds, step, neighbours, beta)
        return cls(Fraction(1), positive("epsilon", epsilon), bounds, _step(step), neighbours, -inside, lean)

    @classmethod
    def minimum(
        cls,
        epsilon: Exactable,
        bounds: Bounds,
        step: Exactable | None = None,
        neighbours: Neighbours = "add_remove",
        *,
        beta: Exactable = Fraction(1, 20),
    ) -> Quantile:
        """A value that few rows are below and, but for a chance β, at least one is."""
        inside, lean = _inside(epsilon, bounds, step, neighbours, beta)
        return cls(Fraction(0), positive("epsilon", epsilon), bounds, _step(step), neighbours, inside, 1 - lean)

    @cached_property
    def line(self) -> Line:
        """Where answers lie."""
        return Line.between(self.bounds, self.step)

    @cached_property
    def events(self) -> tuple[Event]:
        """What `release` will run."""
        return (events.BoundedRange(self.epsilon),)

    @cached_property
    def loss(self) -> PureDP:
        """ε."""
        return pure(self.events[0])

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β the answer covers a rank at most this far from q·n + offset, held within 0 and n."""
        # A place t ranks off has odds below e^(−t·slope) beside one that covers the target; a union over all places.
        return float_up(log_up((self.line.size + 1) / probability("beta", beta)) / min(self._slopes))

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """A value of the line, drawn from the values in `data`."""
        places = np.sort(self.line.places(data))
        source = chosen(entropy)
        target = Target(self.q * places.size + self.offset, *self._slopes)
        # An end towards which the target is moved is open: with fewer rows than that there is no such rank.
        ends = (self.offset < 0, self.offset > 0)
        question = Question(Ranked.of_sorted(places), target, 0, self.line.size - 1, *ends)
        value = self.line.value(int(draw([question], source)[0]))
        return Release(value, self.loss, self.events, None, source.private)

    @cached_property
    def _slopes(self) -> tuple[Fraction, Fraction]:
        return slopes(self.q, self.epsilon, self.lean, exchanged=_exchanged(self.neighbours))


@dataclass(frozen=True)
class Quantiles:
    """The values at several ranks, in ascending order."""

    ranks: tuple[Fraction, ...]
    epsilon: Fraction
    bounds: Bounds
    step: Fraction | None = None
    neighbours: Neighbours = "add_remove"

    def __post_init__(self) -> None:
        given = self.ranks if isinstance(self.ranks, tuple | list) else (self.ranks,)
        ranks = tuple(probability("ranks", rank) for rank in given)
        if not ranks or any(a >= b for a, b in pairwise(ranks)):
            raise InvalidArgument("ranks", self.ranks, "distinct and in ascending order", "sort them, each once")
        _check(self, "ranks", ranks)
        _check(self, "epsilon", positive("epsilon", self.epsilon))
        _check(self, "step", Line.between(self.bounds, self.step).step)
        scale_argument("1/epsilon", 1 / self._slope)

    @cached_property
    def line(self) -> Line:
        """Where answers lie."""
        return Line.between(self.bounds, self.step)

    @cached_property
    def events(self) -> tuple[Event]:
        """What `release` will run: one bounded range for each level."""
        return (events.Repeated(events.BoundedRange(self._share), self._levels),)

    @cached_property
    def loss(self) -> PureDP:
        """ε."""
        return pure(self.events[0])

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β each answer covers a rank at most this far from its own, on data without ties.

        A tie of k rows that is split can add k/1024 for each level.
        """
        chance = probability("beta", beta) / (len(self.ranks) * self.line.size * PARTS)
        return float_up(self._levels * log_up(1 / chance) / self._slope)

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """Ascending values of the line, drawn from the values in `data`."""
        places = np.sort(self.line.places(data))
        source = chosen(entropy)
        found = [0] * len(self.ranks)
        halves = [_Half(places, 0, self.line.size * PARTS, Fraction(0), Fraction(1), 0, len(found))]
        while halves:
            questions = [half.question(self.ranks[half.middle], self._share, self._apart(half)) for half in halves]
            later = []
            for half, place in zip(halves, draw(questions, source).tolist(), strict=True):
                found[half.middle] = place
                later += half.split(place, self.ranks[half.middle])
            halves = [half for half in later if half.begin < half.end]
            for half in halves:
                if half.first >= half.stop:
                    found[half.begin : half.end] = [half.first - 1] * (half.end - half.begin)
            halves = [half for half in halves if half.first < half.stop]
        values = np.array([self.line.value(place // PARTS) for place in found])
        return Release(values, self.loss, self.events, None, source.private)

    @property
    def _levels(self) -> int:
        return len(self.ranks).bit_length()

    @property
    def _share(self) -> Fraction:
        return self.epsilon / self._levels

    @cached_property
    def _slope(self) -> Fraction:
        """The least slope of any draw, for each row: of an extreme rank within a half."""
        twice = 2 if _exchanged(self.neighbours) and self._levels > 1 else 1
        return self._share / (2 * twice)

    def _apart(self, half: _Half) -> Literal["together", "apart", "one"]:
        """Whether an exchange moves one half by both its rows, or two halves by one row each."""
        if not _exchanged(self.neighbours):
            return "one"
        return "together" if half.end - half.begin == len(self.ranks) else "apart"


@dataclass(frozen=True)
class _Half:
    """The data between two answers, every place split into parts: parts `first` to `stop` of the line, which hold the
    ranks from `low` to `high` and the answers from `begin` to `end`."""

    places: Integers
    first: int
    stop: int
    low: Fraction
    high: Fraction
    begin: int
    end: int

    @property
    def middle(self) -> int:
        """The answer to draw now."""
        return (self.begin + self.end) // 2

    @cached_property
    def before(self) -> int:
        """The weight before this half; a row weighs `PARTS`."""
        return self._sum(self.first)

    @cached_property
    def total(self) -> int:
        """The weight in this half."""
        return self._sum(self.stop) - self.before

    def question(self, rank: Fraction, epsilon: Fraction, exchange: Literal["together", "apart", "one"]) -> Question:
        """Where the rank stands within this half."""
        q = (rank - self.low) / (self.high - self.low)
        budget = epsilon / 2 if exchange == "apart" else epsilon
        past, short = slopes(q, budget / PARTS, Fraction(1, 2), exchanged=exchange == "together")
        return Question(self, Target(q * self.total, past, short), self.first, self.stop - 1)

    def split(self, place: int, rank: Fraction) -> list[_Half]:
        """The halves on either side of an answer, which itself goes left."""
        left = _Half(self.places, self.first, place + 1, self.low, rank, self.begin, self.middle)
        return [left, _Half(self.places, place + 1, self.stop, rank, self.high, self.middle + 1, self.end)]

    def near(self, low: int, high: int, first: int, last: int) -> View:
        """The parts of this half whose ranks meet (low, high), as `Ranks` asks."""
        rows = Ranked.of_sorted(self.places)
        begin, end = (low + self.before) // PARTS, -(-(high + self.before) // PARTS)
        view = rows.near(begin, end, 0, last // PARTS)
        starts, stops = view.places * PARTS, (view.places + 1) * PARTS
        held = (starts <= last) & (stops > first)
        places = np.maximum(starts[held], first)
        widths = np.minimum(stops[held], last + 1) - places
        below = self._sum(int(places[0])) - self.before if places.size else 0
        least, most = view.first * PARTS, (view.last + 1) * PARTS - 1
        return View(places, widths, view.weights[held], below, max(first, least), min(last, most))

    def _sum(self, part: int) -> int:
        """The weight of all parts before this one."""
        place, rest = divmod(part, PARTS)
        below, upto = (int(np.searchsorted(self.places, place, side=side)) for side in ("left", "right"))
        return PARTS * below + rest * (upto - below)


def _inside(
    epsilon: Exactable, bounds: Bounds, step: Exactable | None, neighbours: Neighbours, beta: Exactable
) -> tuple[Fraction, Fraction]:
    """How many ranks inside the end to aim, and the share of the outward slope."""
    outward, _ = slopes(Fraction(1), positive("epsilon", epsilon), OUTWARD, exchanged=_exchanged(neighbours))
    return log_up(Line.between(bounds, step).size / probability("beta", beta)) / outward, OUTWARD


def _exchanged(neighbours: object) -> bool:
    if neighbours not in get_args(Neighbours):
        raise InvalidArgument("neighbours", neighbours, "'add_remove' or 'replace'", "name one of the two")
    return neighbours == "replace"


def _step(step: Exactable | None) -> Fraction | None:
    return None if step is None else positive("step", step)


def _check(target: object, name: str, value: object) -> None:
    object.__setattr__(target, name, value)

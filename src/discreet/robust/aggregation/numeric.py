"""Numbers, or vectors of them, from many blocks to one: median, Winsorised mean, trimmed mean, mean.

Neighbours differ in the answers of at most r = `rounds` of the m = blocks·rounds blocks, each of which may become any
other within the declared bounds (`aggregation/blocks.py`); m is fixed. What holds for one answer replaced holds for r
of them along a path of r steps: log-odds that move by ε/r at each step move by ε in all. Each coordinate of a vector
gets the same ε₁, and all of them together cost ε: ε₁ = ε/d, or with a δ the largest for which their exact composition
is (ε, δ).

- `median`: the exponential mechanism on ranks at ε₁/r for replaced values (`Quantile`): a bounded range of ε₁. A place
  beyond all answers is m/2 ranks off, so its odds beside the median itself are e^(−ε₁·blocks/4), however close the
  answers are to each other; the line has so few places that all of them together have a chance of `MISSED` at most.
- `winsorized`: quartiles a, b at a sixth of ε₁ each, fences a − 1.5·(b − a) and b + 1.5·(b − a) held within the bounds,
  and the mean of answers held within the fences, which moves by r·(fence to fence)/m, with Laplace noise for two
  thirds. Answers are whole multiples of a 2²⁰th of the distance between the fences, so that the same event holds
  whatever the fences (Smith 2011). Quartiles are drawn on a coarse line: they only have to be near.
- `trimmed`: the mean without the lowest and highest answers, by its smooth sensitivity at ε₁/r; no δ.
- `mean`: moves by r·width/m; Laplace noise, or with a δ Gaussian noise on all coordinates, whichever is smaller (GUPT).

More rounds leave the noise as it is, for there are as many more blocks, and average out which unit was in which block.

The answers of blocks are unknown beforehand, and with them which of these is best; `best` supposes that they spread
over a `SPREAD`th of the bounds, and that ranks are lost as often as where all answers are one, and computes what each
would be off by. It finds the median, the mean where there are too few blocks for any rank, and the Winsorised mean
where they are thousands.

>>> from discreet.noise.entropy import Entropy
>>> slopes = np.random.default_rng(0).normal(0.3, 0.1, 200)
>>> median = Centre(Bounds(-10, 10), epsilon=1, blocks=200)
>>> median.events, round(median.release(slopes, entropy=Entropy.for_tests(0)).values, 2)
((BoundedRange(epsilon=Fraction(1, 1)),), 0.31)
>>> Centre.best(Bounds(-10, 10), 1, blocks=10).method, Centre.best(Bounds(-10, 10), 1, blocks=5000).method
('mean', 'winsorized')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np

from discreet.accounting.calibration import calibrate
from discreet.accounting.pure import pure
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.core.events import BoundedRange, Composed, Event, Pure, Repeated
from discreet.core.events import Laplace as LaplaceEvent
from discreet.core.exact import Exactable, exact, positive, probability
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import float_down, float_up
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.quantiles.line import Line
from discreet.mechanisms.quantiles.mechanism import Quantile
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.robust.aggregation.blocks import check_blocks
from discreet.robust.smooth import SmoothSensitivity
from discreet.robust.statistics import TrimmedMean

__all__ = ["Centre", "Method"]

Method = Literal["median", "winsorized", "trimmed", "mean"]
STEPS = 1 << 20
"""Places from bound to bound, or from fence to fence, on which means are taken."""
FENCED = Fraction(1, 3)
"""The part of ε₁ that finds the fences of a Winsorised mean."""
REACH = Fraction(3, 2)
"""How far beyond the quartiles the fences are, in distances between them; a step at least."""
COARSE = 1 << 12
"""Steps of the line on which quartiles are drawn: fewer of them can be missed by fewer blocks."""
SPREAD = 20
"""Where nothing is known of the answers of blocks, their deviation is taken to be so small a part of the bounds."""
RANKS = 60
"""Blocks for each 1/ε₁ where their number is to be found: the drawn rank is then off by some hundredths, and a median
has some ten thousand places."""
MISSED = Fraction(1, 200)
"""The largest chance of a median beyond all answers, where there are blocks enough."""
FEWEST = 64
"""Places of a median's line at least; with so few blocks that even these are too many, it is often lost."""
NARROWEST = Fraction(1, 1 << 900)


@dataclass(frozen=True)
class Centre:
    """One number within `bounds`, or a vector with bounds for each coordinate. `default` is what a block without an
    answer counts as, by default the number within the bounds that is nearest to 0."""

    bounds: Bounds | tuple[Bounds, ...]
    epsilon: Fraction
    blocks: int
    rounds: int = 1
    delta: Fraction = Fraction(0)
    method: Method = "median"
    trim: Fraction = Fraction(1, 10)
    default: Fraction | tuple[Fraction, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.bounds, Bounds):
            object.__setattr__(self, "bounds", tuple(self.bounds))
        if not self.each or not all(isinstance(one, Bounds) for one in self.each):
            raise InvalidArgument("bounds", self.bounds, "Bounds, or several of them", "declare what answers may be")
        if any(0 < one.width < NARROWEST for one in self.each):
            raise InvalidArgument("bounds", self.bounds, "at least 2^-900 apart", "declare wider ones, or equal ones")
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta, zero=True))
        check_blocks(self.blocks, self.rounds)
        if self.method not in get_args(Method):
            raise InvalidArgument("method", self.method, f"one of {get_args(Method)}", "leave it out for the best")
        object.__setattr__(self, "trim", TrimmedMean(self.trim).trim)
        given = [one.missing for one in self.each] if self.default is None else _listed(self.default)
        if len(given) != self.size:
            raise InvalidArgument("default", self.default, f"{self.size} numbers", "one for each coordinate")
        held = tuple(exact("default", value) for value in given)
        for value, one in zip(held, self.each, strict=True):
            if not one.lower <= value <= one.upper:
                raise InvalidArgument("default", float(value), f"from {one.lower} to {one.upper}", "choose one within")
        object.__setattr__(self, "default", held if isinstance(self.bounds, tuple) else held[0])
        str(self._parts)

    @classmethod
    def best(
        cls,
        bounds: Bounds | Sequence[Bounds],
        epsilon: Exactable,
        blocks: int,
        rounds: int = 1,
        delta: Exactable = 0,
        default: Any = None,
    ) -> Centre:
        """The method that is expected to be off by least."""
        ends = bounds if isinstance(bounds, Bounds) else tuple(bounds)
        tried: list[Centre] = []
        for method in ("median", "winsorized", "mean"):
            budget, chance = positive("epsilon", epsilon), probability("delta", delta, zero=True)
            tried.append(cls(ends, budget, blocks, rounds, chance, method, default=default))
        return min(tried, key=lambda one: one.expected)

    @staticmethod
    def enough(epsilon: Exactable, size: int = 1, delta: Exactable = 0) -> int:
        """Blocks with which noise is small beside how far apart the answers of blocks are."""
        share = _share("median", positive("epsilon", epsilon), probability("delta", delta, zero=True), size, 1)
        return math.ceil(RANKS / share)

    @property
    def least(self) -> int:
        """Blocks with which a median is lost with a chance of `MISSED` at most, on the coarsest line."""
        share = _share("median", self.epsilon, self.delta, self.size, self.rounds)
        return math.ceil(4 * math.log(FEWEST / MISSED) / share)

    @property
    def each(self) -> tuple[Bounds, ...]:
        """The bounds of each coordinate."""
        return self.bounds if isinstance(self.bounds, tuple) else (self.bounds,)

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return len(self.each)

    @property
    def count(self) -> int:
        """m: the number of answers."""
        return self.blocks * self.rounds

    @cached_property
    def share(self) -> Fraction:
        """ε₁: what one coordinate gets."""
        return _share(self.method, self.epsilon, self.delta, self.size, self.rounds)

    @cached_property
    def noise(self) -> Laplace | Gaussian | None:
        """Of means: the noise on the sum of answers, in steps."""
        moved = STEPS * self.rounds
        if self.method == "winsorized":
            return Laplace(moved / (self.share * (1 - FENCED)), Fraction(moved))
        if self.method != "mean":
            return None
        plain = Laplace(moved / self.share, Fraction(moved))
        if not self.delta or self.size == 1:
            return plain
        normal = Gaussian.for_approx(self.epsilon, self.delta, self.size * moved**2, dimension=self.size)
        return normal if normal.sigma**2 < 2 * plain.scale**2 else plain

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run."""
        if isinstance(self.noise, Gaussian):
            return self.noise.events
        return _events(self.method, self.share, self.size, self.rounds)

    @cached_property
    def loss(self) -> PureDP | ApproxDP:
        """ε, or of vectors with a δ (ε, δ)."""
        apart = self.delta and self.size > 1
        return ApproxDP(self.epsilon, self.delta) if apart else pure(Composed(self.events))

    @property
    def expected(self) -> float:
        """About how far off, as a part of the bounds, if blocks spread over a `SPREAD`th of them."""
        ranks = 2 * self.rounds / float(self.share) / self.count
        spread, sampled = 1 / SPREAD, 1 / SPREAD / math.sqrt(self.blocks)
        lost = self.missed / 2  # somewhere within the bounds: half of them away at most, from their middle
        if self.noise is not None:
            deviation = float(self.noise.sigma if isinstance(self.noise, Gaussian) else self.noise.scale * 2**0.5)
            wide = 1.0 if self.method == "mean" else min(1.0, 5.4 * spread)
            return math.hypot(sampled, min(wide * deviation / STEPS / self.count, 0.5)) + lost
        rounded = 1 / self.places / 4 if self.method == "median" else 0.0
        return math.hypot(1.25 * sampled, 2.5 * spread * ranks) + rounded + lost

    @property
    def places(self) -> int:
        """Of a median: on how many places at most it is drawn; as many as blocks allow."""
        held = min(float(self.share) * self.blocks / 4, 50.0)
        return min(max(math.floor(MISSED * Fraction(math.exp(held))), FEWEST), STEPS)

    @property
    def missed(self) -> float:
        """At most how likely what is drawn by rank lies beyond all answers, whatever these are."""
        distance = float(self.share) * self.blocks
        match self.method:
            case "median":
                chance = self.places * math.exp(-distance / 4)
            case "winsorized":  # two quartiles, each a quarter of the ranks from an end, at a sixth of ε₁
                chance = 2 * (COARSE + 1) * math.exp(-distance * float(FENCED) / 16)
            case _:
                chance = 0.0
        return min(1.0, chance)

    @property
    def steps(self) -> tuple[float, ...]:
        """Of a median: how far apart the numbers are among which each coordinate is drawn, 0 where there is one."""
        lines = [one.line for (one,) in self._parts if isinstance(one, Quantile)]
        return tuple(float(line.step) if line.size > 1 else 0.0 for line in lines)

    @property
    def ranks(self) -> float:
        """Of a median: about how many of the ordered answers it is off by, if these are spread evenly."""
        return 2 * math.log(2) * self.rounds / float(self.share)

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β: of the median, how many of the ordered answers the result is off by; of the mean, how
        far noise takes it, as a part of the bounds. Others depend on the answers."""
        if self.method == "median":
            return self.rounds * max(one.accuracy(beta) for (one,) in self._parts if isinstance(one, Quantile))
        if self.method == "mean" and self.noise is not None:
            return float_up(Fraction(self.noise.accuracy(beta)) / STEPS / self.count)
        return math.inf

    def read(self, raw: bytes | None) -> tuple[float, ...]:
        """The answer that a block sent, or the default."""
        sent = np.frombuffer(raw, dtype="<f8") if raw is not None and len(raw) == 8 * self.size else np.array([np.nan])
        if sent.size != self.size or not np.isfinite(sent).all():
            return tuple(float(value) for value in _listed(self.default))
        return tuple(sent.tolist())

    def release(self, answers: Any, *, entropy: Entropy | None = None) -> Release:
        """The centre of the answers of all blocks: m numbers, or m rows of them."""
        source = chosen(entropy)
        found, steps = self.measured(answers, source)
        return self.shown(found, steps, source.private)

    def measured(self, answers: Any, source: Entropy) -> tuple[list[float], list[float] | None]:
        """The values, and of means what a step of noise is worth in each."""
        columns = np.asarray(answers, dtype=np.float64).reshape(-1, self.size).T
        if columns.shape[1] != self.count:
            raise InvalidArgument("answers", columns.shape[1], f"{self.count}, one for each block", "give all of them")
        if self.noise is None:
            drawn = zip(self._parts, columns, strict=True)
            found = [float(one[0].release(column, entropy=source).values) for one, column in drawn]
            return [_within(value, one) for value, one in zip(found, self.each, strict=True)], None
        held = [self._fenced(place, column, source) for place, column in enumerate(columns)]
        sums = [int(places.sum()) for _, places in held]
        if isinstance(self.noise, Gaussian):
            noisy = self.noise.release(np.array(sums), entropy=source).values.tolist()
        else:
            noisy = [int(self.noise.release(total, entropy=source).values) for total in sums]
        values = []
        for (line, _), total, one in zip(held, noisy, self.each, strict=True):
            number = line.bounds.lower + line.step * Fraction(total, self.count)
            # Held before it is a double: noise may take it beyond all of them.
            values.append(_within(float(min(max(number, one.lower), one.upper)), one))
        return values, [float_up(line.step / self.count) for line, _ in held]

    def shown(self, values: Sequence[float], steps: Sequence[float] | None, private: bool) -> Release:
        """A release of what was `measured`. Its intervals are about noise: they hold the mean of the answers, as far as
        those are within the bounds or fences, and not what the function gives on all data."""
        whole: Any = np.array(values) if isinstance(self.bounds, tuple) else values[0]
        return Release(whole, self.loss, self.events, self._error(steps), private)

    def _error(self, steps: Sequence[float] | None) -> Callable[[float], Any] | None:
        noise = self.noise
        if noise is None or steps is None:
            return None
        worth: Any = np.array(steps) if isinstance(self.bounds, tuple) else steps[0]
        # Half a step for each answer, which is rounded to one.
        return lambda beta: (noise.accuracy(exact("beta", beta)) + self.count / 2) * worth

    def _fenced(self, place: int, answers: Any, source: Entropy) -> tuple[Line, Integers]:
        """The answers on a line of `STEPS` places: between the bounds, or between fences that are drawn here."""
        bounds = self.each[place]
        if self.method == "winsorized":
            ends = [Fraction(each.release(answers, entropy=source).values) for each in self._parts[place]]
            low, high = sorted(ends)
            wide = max(REACH * (high - low), bounds.width / COARSE)
            # As doubles within the bounds: whatever the quartiles are, there are numbers between the fences.
            lower = max(float_up(bounds.lower), float_down(low - wide))
            bounds = Bounds(Fraction(lower), Fraction(min(float_down(bounds.upper), float_up(high + wide))))
        line = Line(bounds, bounds.width / STEPS) if bounds.width else Line(bounds, Fraction(1))
        return line, line.places(answers)

    @cached_property
    def _parts(self) -> tuple[tuple[Quantile | SmoothSensitivity, ...], ...]:
        """For each coordinate, what is drawn from its answers before any noise is added to a sum."""
        if self.method == "mean":
            str(self.noise)
            return ()
        return tuple(self._drawn(place) for place in range(self.size))

    def _drawn(self, place: int) -> tuple[Quantile | SmoothSensitivity, ...]:
        bounds, budget = self.each[place], self.share / self.rounds
        if self.method == "winsorized":
            step = bounds.width / COARSE or None
            ranks = (Fraction(1, 4), Fraction(3, 4))
            return tuple(Quantile(rank, budget * FENCED / 2, bounds, step, "replace") for rank in ranks)
        if self.method == "trimmed":
            return (SmoothSensitivity(TrimmedMean(self.trim), budget, bounds, neighbours="replace"),)
        step = _decimal(bounds.width / (self.places - 1)) if bounds.width else None
        return (Quantile(Fraction(1, 2), budget, bounds, step, "replace"),)


@lru_cache(maxsize=256)
def _share(method: Method, epsilon: Fraction, delta: Fraction, size: int, rounds: int) -> Fraction:
    """The largest ε of a coordinate, all of which cost ε and δ together."""
    if size == 1 or not delta:
        return epsilon / size
    budget = ApproxDP(epsilon, delta)
    return epsilon / calibrate(lambda t: Composed(_events(method, epsilon / t, size, rounds)), budget, 1, size, bits=10)


def _events(method: Method, share: Fraction, size: int, rounds: int) -> tuple[Event, ...]:
    """What all coordinates run, each for ε₁."""
    moved = STEPS * rounds
    match method:
        case "median":
            each: tuple[Event, ...] = (BoundedRange(share),)
        case "trimmed":
            each = (Pure(share),)
        case "mean":
            each = (LaplaceEvent(moved / share, moved),)
        case "winsorized":
            fences = Repeated(BoundedRange(share * FENCED / 2), 2)
            each = (fences, LaplaceEvent(moved / (share * (1 - FENCED)), moved))
    return each if size == 1 else tuple(Repeated(event, size) for event in each)


def _decimal(least: Fraction) -> Fraction:
    """The smallest 1, 2 or 5 times a power of ten that is not less: answers are often round numbers."""
    power = Fraction(10) ** (math.floor(math.log10(least)) - 1)
    while 5 * power < least:
        power *= 10
    return next(digit * power for digit in (1, 2, 5) if digit * power >= least)


def _within(value: float, bounds: Bounds) -> float:
    return min(max(value, float_up(bounds.lower)), float_down(bounds.upper))


def _listed(values: Any) -> list[Any]:
    return [*values] if isinstance(values, list | tuple | np.ndarray) else [values]

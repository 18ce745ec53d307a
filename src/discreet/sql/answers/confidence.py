"""Intervals for released measures: what the noise may have added, and what clipping may have taken away.

Each sum lies, with the stated probability, between its released value less and plus the reach of its noise; clipping
takes at most a known amount from each, where it is known how many rows a unit has. Where it is not known, but what was
lost in all is, the interval reaches from what is left to that raised by all that may be lost. A measure's interval is
its range over the box of its sums' intervals.

Groups that are not listed show because their noisy number of units is above a threshold τ, and intervals of that number
hold among those that show: the reach t is that of half the tail, and where the value is not t above τ there is no lower
end. The truth m is then missed from above only by noise that exceeds max(t, τ − m + t). Noise of a log-concave law
does so, given that it exceeds τ − m, with at most the probability P(Z > t)/P(Z > 0), about twice that of half the tail.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from discreet.core.domains import Bounds
from discreet.sql.aggregates import Ends, Sum
from discreet.sql.bounding.clipping_norms import Weighing
from discreet.sql.bounding.sums import Statistic, Sums, ends_of
from discreet.sql.measuring.dispersion import Drawn
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.quantiles import LEVEL
from discreet.sql.measuring.run import Noisy
from discreet.sql.plan import Measure

__all__ = ["FAR", "Spans"]

FAR = 10.0
"""Ends of intervals are raised by no more than this, where hardly anything is known of what was lost."""
UNLIKELY = 0.05
"""The chance with which what is known of that may be wrong."""


@dataclass(frozen=True)
class Spans:
    """What intervals are computed from: all of it released, or declared."""

    sums: Sums
    measures: tuple[Measure, ...]
    measurement: Measurement
    noisy: Noisy

    def needs(self, index: int) -> tuple[Statistic, ...]:
        """The statistics that one measure is computed from."""
        return tuple(self.measurement.statistics[place] for place in self.sums.places(index))

    def covers_clipping(self, index: int) -> bool:
        """Whether the intervals of a measure hold its value without clipping."""
        weighings = {statistic.weighing for statistic in self.needs(index)} or {Weighing.ROWS}
        return all(math.isfinite(self._lost(weighing, 0.5)) for weighing in weighings)

    def of_noise_alone(self, index: int) -> bool:
        """Whether they hold the value after clipping, and nothing is known of what that took."""
        told = self.noisy.tally is not None and all(s.weighing == Weighing.ROWS for s in self.needs(index))
        return not told and not self.covers_clipping(index)

    def unknown(self, index: int) -> bool:
        """Whether clipping may have taken nearly everything, for all that is known."""
        return any(self.noisy.most_raised(s, self._reach(UNLIKELY)) > FAR for s in self.needs(index))

    def interval(self, index: int, row: int, level: float) -> tuple[float, float]:
        """Ends that hold the value of a measure in one row with probability at least `level`."""
        measure = self.measures[index]
        aggregation = measure.aggregation
        if aggregation.is_ranked:
            return self._drawn(index, row, level)
        needs, ends = self.needs(index), _ends(measure.bounds)
        tail = (1 - level) / len(needs)
        sides: list[tuple[float, ...]] = [self._side(statistic, row, tail) for statistic in needs]
        if aggregation.peaks_at_zero and sides[0][0] < 0 < sides[0][1]:
            sides[0] = (*sides[0], 0.0)
        values = [aggregation.value(corner, ends) for corner in itertools.product(*sides)]
        least, most = aggregation.limits(ends)
        return min(max(min(values), least), most), max(min(max(values), most), least)

    def _drawn(self, index: int, row: int, level: float) -> tuple[float, float]:
        """Ends that were drawn with the value, at one level; beyond it only the bounds are sure."""
        measure = self.measures[index]
        ranked = [each for each, other in enumerate(self.measures) if other.aggregation.is_ranked]
        drawn = self.noisy.drawn[ranked.index(index)][row]
        assert isinstance(drawn, Drawn)
        if level <= LEVEL or measure.bounds is None:
            return drawn.low, drawn.high
        return measure.aggregation.limits(ends_of(measure.bounds))

    def _side(self, statistic: Statistic, row: int, tail: float) -> tuple[float, float]:
        place = self.measurement.statistics.index(statistic)
        value, scale = float(self.noisy.sums[row][place]), self.noisy.scales[place]
        least = self.noisy.hidden_below if statistic.kind is Sum.UNITS else None
        tail = tail if least is None else tail / 2
        raised = self.noisy.raised(statistic)
        lost = self._lost(statistic.weighing, tail / 2)
        if math.isinf(lost) and self.noisy.tally is not None and statistic.weighing == Weighing.ROWS:
            reach = self._reach(tail / 2) * scale
            # Half of the tail is for the noise of the sum, a quarter for each of the two numbers of the tally.
            most = self.noisy.most_raised(statistic, self._reach(tail / 2))
            far = [end * factor for end in (value - reach, value + reach) for factor in (1.0, raised, min(most, FAR))]
            return min(far), max(far)
        if statistic.values:
            # Whoever keeps to what is declared loses nothing. Ends are likely values: where steps are no whole numbers,
            # a little more makes up for what doubles round.
            steps = self.measurement.law(statistic).accuracy(tail)
            reach, lost = (steps + (statistic.step.denominator > 1) / 64) * float(statistic.step), 0.0
        elif lost in (0.0, math.inf):
            reach, lost = self._reach(tail) * scale, 0.0
        else:
            reach = self._reach(tail / 2) * scale
        low, high = _one_row(statistic)
        ends = [value - reach + lost * min(low, 0.0), value + reach + lost * max(high, 0.0), value * raised]
        if least is not None and value - reach < least:
            ends.append(0.0)
        return min(ends), max(ends)

    def _reach(self, tail: float) -> float:
        if self.measurement.norm == "l1":
            return math.log(1 / tail)
        from scipy.special import ndtri

        return -float(ndtri(tail / 2))

    def _lost(self, weighing: Weighing, chance: float) -> float:
        norms = self.noisy.norms
        return 0.0 if norms is None else self.measurement.lost(norms, self.noisy.heavy, weighing, chance)


def _one_row(statistic: Statistic) -> tuple[float, float]:
    """The least and most that one row adds."""
    if statistic.bounds is None:
        return 0.0, 1.0
    low, high = float(statistic.bounds.lower - statistic.middle), float(statistic.bounds.upper - statistic.middle)
    return (0.0, max(low * low, high * high)) if statistic.kind is Sum.SQUARES else (low, high)


def _ends(bounds: Bounds | None) -> Ends:
    """What bounds say of the corners of intervals, which are not held to the most that a variance can be."""
    if bounds is None:
        return ends_of(None)
    lower, upper = float(bounds.lower), float(bounds.upper)
    return Ends(lower, upper, (lower + upper) / 2, upper - lower)

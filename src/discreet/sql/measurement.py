"""From bounded sums to released sums: which noise, how much, what it costs, which norm to clip at.

Guarantee. The unit is that of the table. The events are fixed before any data is touched:

1. (user level) a `Pure` run of sparse vector over how many units lie above each norm. From it alone the clipping norm C
   is chosen.
2. one `Gaussian` on the totals of all statistics and groups, each divided by how far it can move, so that the vector
   moves by at most √(number of statistics) in ℓ2; or one `Laplace` for each statistic (ℓ1).
3. (keys not declared) groups are shown only above a threshold on the noisy number of their units, set so that a unit
   alone in its groups shows up with probability at most `delta`: an `Approximate(0, delta)`.

Noise is drawn on the totals themselves, which are whole numbers (`statement.py`); their grid is far finer than the one
the events speak of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, log2, sqrt
from typing import Any

import numpy as np

from discreet.core import events
from discreet.core.events import Event
from discreet.core.rounding import sqrt_up
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.noise.entropy import Entropy
from discreet.noise.gaussian import discrete_gaussian
from discreet.noise.laplace import MAX_SCALE, discrete_laplace, scale_argument
from discreet.sql.statement import BUCKETS, G, Groups, H, Norm, movement
from discreet.sql.statistics import Statistic

__all__ = ["Measurement", "Noisy"]

CANONICAL = 1 << 12
"""Grid steps in a unit's movement, as the events state it."""
MOST_GROUPS = 40
"""No unit is in more than 2^this many groups: it would have that many rows."""
TYPICAL_KEYS = 100
"""How many groups to expect when choosing C where the keys are not declared."""


@dataclass(frozen=True)
class Noisy:
    """Released totals: for each key the sums, and the deviation (or scale) of the noise in each."""

    keys: tuple[tuple[Any, ...], ...]
    sums: np.ndarray[Any, np.dtype[np.float64]]
    scales: tuple[float, ...]
    clipped_at: float | None
    hidden_below: float | None = None
    """Where keys were not declared: the noisy number of units a group needs to show."""


@dataclass(frozen=True)
class Measurement:
    """The noise of one query. `ratio` is noise over movement: a deviation for ℓ2, a scale for ℓ1, for one statistic."""

    statistics: tuple[Statistic, ...]
    norm: Norm
    ratio: Fraction
    owned: bool
    changes: int
    histogram_epsilon: Fraction | None = None
    threshold_delta: Fraction | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        for index in range(len(self.statistics)):
            scale_argument("noise", self.deviation(index, 0))

    @cached_property
    def top(self) -> int:
        """The largest cut whose noise the samplers can draw: 2^60 is their end."""
        indices = range(len(self.statistics))
        fits = (c for c in range(BUCKETS, 0, -1) if all(self.deviation(j, c) <= MAX_SCALE for j in indices))
        most = BUCKETS if self.max_rows is None else min(BUCKETS, ceil(2 * log2(self.max_rows)))
        return min(next(fits, 0), most) if self.owned else 0

    @property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run, whatever the data."""
        many = len(self.statistics)
        steps = CANONICAL * self.changes
        said: list[Event] = []
        if self.histogram_epsilon is not None:
            said.append(events.Pure(self.histogram_epsilon))
        if self.norm == "l2":
            said.append(events.Gaussian((self.ratio * steps) ** 2 * many, Fraction(many * steps**2), 1 << 40))
        else:
            said += [events.Laplace(self.ratio * steps * many, steps)] * many
        if self.threshold_delta is not None:
            said.append(events.Approximate(Fraction(0), self.threshold_delta))
        return tuple(said)

    def deviation(self, index: int, cut: int) -> Fraction:
        """The noise in one statistic's totals, in their own units."""
        many = len(self.statistics)
        factor = sqrt_up(Fraction(many)) if self.norm == "l2" else Fraction(many)
        bound = self.statistics[index].bound
        moved = movement(bound, cut) if self.owned else bound * G * H
        return self.ratio * factor * moved * self.changes

    def scale(self, index: int, cut: int) -> float:
        """The same in the units of the statistic's values."""
        return float(self.deviation(index, cut) * self.statistics[index].grid.step / (G * H))

    def choose_cut(self, groups: Groups, keys: int, entropy: Entropy) -> int:
        """The half-octave to clip at: the first one past which so few units lie that more room would cost more noise
        than it saves.

        Raising C by a little adds (keys · mean noise per unit of C) of error and takes back, from each unit still
        above, its size over its norm: 1 where a unit has one group, up to C where it has many with one row each. The
        number of units above each cut moves by 1, all cuts the same way, so one run of sparse vector finds it.
        """
        assert self.histogram_epsilon is not None
        search = SparseVector.for_epsilon(self.histogram_epsilon, 0, monotonic=True)
        run = search.start(entropy=entropy)
        # What the search's own noise could hide counts as few, more so at each step: past all norms it must stop.
        doubt = float(search.threshold_scale)
        mean = (0.8 if self.norm == "l2" else 1.0) * float(self.deviation(0, 0) / (self.statistics[0].bound * G * H))
        for cut in range(self.top):
            above = sum(count for (bucket, _), count in groups.histogram.items() if bucket > cut)
            spread = sqrt(min(sqrt(keys), 2.0 ** (cut / 2)))
            if run.ask(ceil(keys * mean / spread + doubt * (1 + cut / 2)) - above).above:
                return cut
        return self.top

    def threshold(self, cut: int) -> float:
        """The noisy number of units above which an undeclared key may show, in totals' units."""
        assert self.threshold_delta is not None
        index = next(i for i, s in enumerate(self.statistics) if s.kind == "units")
        deviation = float(self.deviation(index, cut))
        most = 2.0 ** (cut / 2) if self.owned else 1.0
        tail = float(self.threshold_delta) / self.changes
        worst = 0.0
        # A unit alone in up to 2^j groups adds at most C/√g (ℓ2) or C/g (ℓ1) to each of g ≥ 2^(j−1); union over them.
        for power in range(MOST_GROUPS + 1):
            fewest = max(1.0, 2.0 ** (power - 1))
            share = most / (sqrt(fewest) if self.norm == "l2" else fewest)
            reach = self._quantile(tail / 2.0**power) * deviation
            worst = max(worst, min(share, 1.0) * G * H * (1 + 2e-9) + reach)
        return worst + 1

    def _quantile(self, tail: float) -> float:
        """z with P(noise > z·deviation) ≤ tail."""
        if self.norm == "l1":
            return float(np.log(1 / tail)) + exp(-1)
        from scipy.special import ndtri

        return float(-ndtri(tail)) + 1e-6

    def release(self, groups: Groups, declared: Sequence[tuple[Any, ...]] | None, entropy: Entropy) -> Noisy:
        """Noisy sums for the declared keys, or for those found above the threshold, in an order that says nothing."""
        cut = self.choose_cut(groups, len(declared) if declared else TYPICAL_KEYS, entropy) if self.owned else 0
        keys = tuple(declared) if declared is not None else tuple(sorted(groups.sums, key=_sortable))
        exact = [[groups.total(key, j, cut) for j in range(len(self.statistics))] for key in keys]
        columns = []
        for j in range(len(self.statistics)):
            deviation = max(self.deviation(j, cut), Fraction(1))
            draw = discrete_gaussian if self.norm == "l2" else discrete_laplace
            noise = draw(deviation, len(keys), entropy=entropy).tolist()
            columns.append([row[j] + n for row, n in zip(exact, noise, strict=True)])
        shown = list(range(len(keys)))
        hidden = None
        if declared is None:
            index = next(i for i, s in enumerate(self.statistics) if s.kind == "units")
            least = ceil(self.threshold(cut))
            hidden = least / (G * H)
            shown = [i for i in range(len(keys)) if columns[index][i] > least]
        steps = [s.grid.step / (G * H) for s in self.statistics]
        sums = [[float(columns[j][i] * steps[j]) for j in range(len(steps))] for i in shown]
        scales = tuple(self.scale(j, cut) for j in range(len(steps)))
        table = np.array(sums, dtype=np.float64).reshape(len(sums), len(steps))
        norm = 2.0 ** (cut / 2) if self.owned else None
        return Noisy(tuple(keys[i] for i in shown), table, scales, norm, hidden)


def _sortable(key: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((type(part).__name__, str(part)) for part in key)

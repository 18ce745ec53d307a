"""The best guess an adversary could make who knows both neighbours: which of the two the released sums speak for.

Noise is added to sums that are known exactly for both, so the logarithm of the likelihood ratio of an output is a sum
over its groups and statistics. As a reading of outputs it finds at once what a search would have to learn. A reading
may be anything: it is tested on fresh runs like every other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.sql.bounding.clipping_norms import G, H, Weighing
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.run import Noisy
from discreet.sql.statement.results import Groups

__all__ = ["Likelihood"]

Floats = NDArray[np.float64]
Means = tuple[dict[tuple[Any, ...], Floats], dict[tuple[Any, ...], Floats], Floats]


@dataclass
class Likelihood:
    """Reads how strongly an output speaks for the first of two data sets."""

    measurement: Measurement
    groups: tuple[Groups, Groups]
    keys: Sequence[tuple[Any, ...]]
    _known: dict[tuple[int, ...], Means] = field(default_factory=dict)

    def __call__(self, noisy: Noisy) -> float:
        """The logarithm of the likelihood ratio of the sums, rounded to few digits."""
        if not noisy.keys:
            return 0.0
        mine, theirs, scales = self._means(self._cuts(noisy))
        nothing = np.zeros(len(scales))
        found = 0.0
        for key, sums in zip(noisy.keys, noisy.sums, strict=True):
            away = [(sums - side.get(key, nothing)) / scales for side in (mine, theirs)]
            gaussian = self.measurement.norm == "l2"
            one, other = (part * part / 2 if gaussian else np.abs(part) for part in away)
            found += float((other - one).sum())
        return round(found, 6)

    def _cuts(self, noisy: Noisy) -> tuple[int, ...]:
        """Which norms were chosen."""
        weights = self.measurement.weights
        if weights is None or noisy.norms is None:
            return (0,) * len(Weighing)
        listed = [[float(norm) for norm in weights.caps(each).norms] for each in Weighing]
        return tuple(norms.index(chosen) for norms, chosen in zip(listed, noisy.norms, strict=True))

    def _means(self, cuts: tuple[int, ...]) -> Means:
        """The exact sums of each group on both data sets, and the noise of each statistic."""
        if cuts not in self._known:
            measurement = self.measurement
            steps = np.array([float(s.step / (G * H)) for s in measurement.statistics])
            sides = []
            for groups in self.groups:
                totals = np.array(measurement.totals(groups, self.keys, cuts), dtype=np.float64)
                sides.append({key: totals[:, place] * steps for place, key in enumerate(self.keys)})
            weighings = [s.weighing if measurement.weights is not None else 0 for s in measurement.statistics]
            scales = np.array([measurement.scale(j, cuts[each]) for j, each in enumerate(weighings)])
            self._known[cuts] = sides[0], sides[1], scales
        return self._known[cuts]

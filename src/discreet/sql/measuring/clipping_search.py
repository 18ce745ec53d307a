"""The search for a clipping norm: what sparse vector is asked about the data, and what is made of its answers.

`Measurement.clipping_search` makes one from exact counts and runs nothing. `choose` is its only way to a release. So an
audit that wants to know how far the questions move looks at them here, and no live object has to be changed for it.
The questions are exact counts: a search is never shown and never part of an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, log

from discreet.mechanisms.sparse_vector import SparseVector
from discreet.noise.entropy import Entropy

__all__ = ["SCALE", "ClippingSearch", "Heavy"]

Heavy = tuple[float, float]
"""How many units may lie above a norm: except with probability β at most a + b·ln(1/β)."""
SCALE = 1 << 10
"""Parts in a unit's weight in the search."""


@dataclass(frozen=True)
class ClippingSearch:
    """One question for each candidate norm but the last; the first that comes out above 0 is the norm to clip at."""

    mechanism: SparseVector
    questions: tuple[int, ...] = field(repr=False)
    least: tuple[float, ...]
    """For each candidate: so many units above it are worth no more room."""
    heaviest: float
    """How many units one question may stand for: more than 1 where units are weighed."""
    average: bool
    """Whether a share of all units may lie above, of which the search says nothing."""
    to_the_end: bool
    """Whether nobody can lie above the last candidate."""

    def choose(self, entropy: Entropy) -> tuple[int, Heavy]:
        """The candidate to clip at, and how many units may lie above it."""
        answers = self.mechanism.release(self.questions, entropy=entropy).values
        last = len(self.questions)
        if not answers[-1].above:
            return last, (0.0, 0.0) if self.to_the_end else (inf, 0.0)
        chosen = len(answers) - 1
        threshold_scale = float(self.mechanism.threshold_scale) / SCALE
        question_scale = float(self.mechanism.question_scale) / SCALE
        base = inf if self.average else self.least[chosen] + threshold_scale * log(2) + question_scale * log(2 * last)
        return chosen, (self.heaviest * base, self.heaviest * (threshold_scale + question_scale))

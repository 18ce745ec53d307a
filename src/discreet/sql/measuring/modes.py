"""The most frequent value of groups: MODE in SQL.

Rows are counted by group and value with the weights of `statement/histograms.py`, so a unit adds w_k ≥ 0 in all to the
counts s of group k, and ‖w‖ ≤ C over its groups. A rate r turns weight into log-odds; E is r·C.

Guarantee, listed values. P(v) ∝ exp(r·s_v) over all listed values: a unit moves the log-odds of two values apart by at
most r·w_k, one `BoundedRange` for each group that adds up like those of quantiles. Other values are nobody's choice.

Guarantee, values that nobody listed. P(v) ∝ exp(r·s_v) − 1 over all values there may be, of which those without rows
have no odds, and P(⊥) ∝ exp(r·T). With the rows of one more unit the odds of v become e^(r·w_v)·(e^(r·s_v) − 1), which
moves log-odds by at most r·w_k as above, and n_v = e^(r·w_v) − 1 besides. So the law with that unit is a mixture: with
probability θ_k = Σ_v n_v over all odds one of what nobody else has, and else a `BoundedRange(r·w_k)` of the law without
it. Now Σ_v n_v ≤ e^(r·w_k) − 1, and all odds are e^(r·T) at least; over groups the θ_k add up to (e^E − 1)·e^(−r·T) in
ℓ1, and to √K times that in ℓ2 over K groups, for e^x − 1 ≤ x·(e^E − 1)/E up to E. T makes that δ: an
`Approximate(0, δ)` beside the ranges, however many values there are. An exchanged unit is a removal and an addition:
both mixtures have that δ at most, and what is left of both is one range of twice the size.

⊥ says that too few rows share a value to name any. Where some do, one of the most frequent comes out: the more rows a
value is behind, the less likely.

>>> counts = Histograms.of_values([(0, "bread", 60, 0), (0, "rice", 20, 0)], None, None)
>>> rate, least = Fraction(1), Mode(None).least(Fraction(1), Fraction(1, 10**6), 1, Fraction(1))
>>> least, chosen(counts, (), rate, least, Entropy.for_tests(0))
(15, Chosen(value='bread', stable=True))
>>> chosen(counts, ("elsewhere",), rate, least, Entropy.for_tests(0))
Chosen(value=None, stable=False)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from discreet.core.rounding import exp_up, log_up, sqrt_up
from discreet.noise.entropy import Entropy
from discreet.noise.exponential import bernoulli_exp, gibbs
from discreet.sql.statement.histograms import Histograms, Key

__all__ = ["Chosen", "Mode", "chosen"]

HELD = 1 << 61
"""Weights are held to this: more than 2^43 rows of one value are as good as so many."""


@dataclass(frozen=True)
class Mode:
    """What is asked of one measure: the most frequent of listed values, or of whatever there is."""

    values: tuple[Any, ...] | None

    def least(self, reach: Fraction, delta: Fraction, groups: int, rate: Fraction) -> int:
        """T, in weight, for E = `reach`; `groups` is 1 where weights are in ℓ1."""
        odds = (exp_up(reach) - 1) * sqrt_up(Fraction(groups)) / delta
        return ceil(max(log_up(odds), Fraction(0)) / rate) if odds > 1 else 0


@dataclass(frozen=True)
class Chosen:
    """A released value; or none, where the data was not stable enough for one."""

    value: Any
    stable: bool = True


def chosen(counts: Histograms, key: Key, rate: Fraction, least: int | None, entropy: Entropy) -> Chosen:
    """One draw for one group; `least` is T, None where the values are listed."""
    places, weights = counts.held(key)
    held = np.minimum(weights, HELD).astype(np.int64)
    if least is None:
        scores = np.zeros(len(counts.names), dtype=np.int64)
        scores[places] = held
        return Chosen(counts.names[int(gibbs(scores, rate, entropy=entropy))])
    if least > HELD:  # so little ε names nothing, whatever the rows
        return Chosen(None, False)
    scores = np.concatenate(([least], held))
    while (place := int(gibbs(scores, rate, entropy=entropy)) - 1) >= 0:
        # Odds of e^x − 1: those of e^x, which count but with the chance e^(−x).
        if not bernoulli_exp(rate * int(held[place]), entropy=entropy):
            return Chosen(counts.names[int(places[place])])
    return Chosen(None, False)

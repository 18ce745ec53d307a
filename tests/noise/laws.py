"""Exact laws to hold samples against, and a test whose false alarms are bounded at every sample size.

The test. For counts of n draws in k bins of probability p, n·KL(counts/n ‖ p) has a moment generating function no
larger than that of a gamma variable of shape k − 1 (Agrawal 2020), so it exceeds x with probability at most
e^(−x)·(e·x/(k − 1))^(k−1). No bin needs a least expected count and nothing is asymptotic. `limit` is the x at which
the bound is `ALARM`. Against a wrong law q the statistic is n·KL(q ‖ p) give or take √(n·Var(ln q/p)): `power_margin`
is how many of those deviations lie between it and the limit.

>>> round(limit(2), 1), round(limit(40), 1)
(24.9, 94.1)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb, ctx

from discreet.core.rounding import ball

ALARM = 1e-9
"""The most any one of these tests may reject an honest sampler."""
LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Law:
    """A law on the integers as the probabilities of X ≤ cuts[0], cuts[0] < X ≤ cuts[1], …, X > cuts[-1]."""

    cuts: tuple[int, ...]
    odds: tuple[float, ...]

    def distance(self, draws: np.ndarray) -> float:
        """n·KL from the law, of the draws' counts."""
        places = np.searchsorted(np.array(self.cuts, dtype=np.int64), draws, side="left")
        return distance(np.bincount(places, minlength=len(self.odds)), self.odds)

    def accepts(self, draws: np.ndarray) -> bool:
        return self.distance(draws) <= limit(len(self.odds))


def law_of(cumulative: Callable[[int], arb], cuts: Sequence[int]) -> Law:
    """The law with P(X ≤ m) = cumulative(m), binned."""
    ordered = tuple(sorted({cut for cut in cuts if abs(cut) < LARGEST}))
    with ctx.workprec(256):
        ends = [arb(0), *(cumulative(cut) for cut in ordered), arb(1)]
        odds = tuple(max(0.0, float((high - low).mid())) for low, high in pairwise(ends))
    return Law(ordered, odds)


def table_law(odds: dict[int, float]) -> Law:
    """A law on a few integers, each a bin of its own; nothing else is possible."""
    least, most = min(odds), max(odds)
    return Law(tuple(range(least - 1, most + 1)), (0.0, *(odds.get(k, 0.0) for k in range(least, most + 1)), 0.0))


def distance(counts: np.ndarray, odds: Sequence[float]) -> float:
    """n·KL(counts/n ‖ odds); infinite if something impossible was seen."""
    total = int(counts.sum())
    seen = counts > 0
    expected = np.array(odds)[seen] * total
    if not expected.all():
        return math.inf
    return float(np.sum(counts[seen] * np.log(counts[seen] / expected)))


def limit(bins: int, alarm: float = ALARM) -> float:
    """The x that n·KL exceeds with probability at most `alarm` for any law with that many bins."""
    freedom = max(bins - 1, 1)

    def bound(x: float) -> float:
        return -x + freedom * (1 + math.log(x / freedom))

    low, high = float(freedom), 10.0 * freedom + 100
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > math.log(alarm) else (low, middle)
    return high


def power_margin(wrong: Law, law: Law, size: int) -> float:
    """How many standard deviations above the limit the statistic of `size` draws from a wrong law is expected."""
    pairs = [(q, p) for q, p in zip(wrong.odds, law.odds, strict=True) if q > 0]
    if any(p == 0 for _, p in pairs):
        return math.inf
    logs = [math.log(q / p) for q, p in pairs]
    mean = sum(q * x for (q, _), x in zip(pairs, logs, strict=True))
    spread = sum(q * x * x for (q, _), x in zip(pairs, logs, strict=True)) - mean**2
    return (size * mean - limit(len(law.odds))) / math.sqrt(size * spread)


def laplace(scale: Fraction, cuts: Sequence[int] | None = None) -> Law:
    """P(k) ∝ exp(−|k|/scale)."""

    def cumulative(m: int) -> arb:
        p = (-1 / ball(scale)).exp()
        if m < 0:
            return (m / ball(scale)).exp() / (1 + p)
        return 1 - (-(m + 1) / ball(scale)).exp() / (1 + p)

    return law_of(cumulative, laplace_cuts(scale) if cuts is None else cuts)


def two_zeros(scale: Fraction, cuts: Sequence[int]) -> Law:
    """A wrong law: a geometric magnitude with a random sign, which makes zero twice as likely as it should be."""

    def cumulative(m: int) -> arb:
        if m < 0:
            return (m / ball(scale)).exp() / 2
        return 1 - (-(m + 1) / ball(scale)).exp() / 2

    return law_of(cumulative, cuts)


def geometric(scale: Fraction) -> Law:
    """P(k) ∝ exp(−k/scale) for k ≥ 0."""
    cuts = [-1, *(cut for cut in laplace_cuts(scale) if cut >= 0)]
    return law_of(lambda m: 1 - (-(m + 1) / ball(scale)).exp(), cuts)


def gaussian(sigma: Fraction, cuts: Sequence[int] | None = None) -> Law:
    """P(k) ∝ exp(−k²/2σ²)."""
    chosen = sorted(set(gaussian_cuts(sigma) if cuts is None else cuts))
    if sigma > 2000:
        return law_of(lambda m: _smooth_gaussian(sigma, m), chosen)
    rate = 1 / (2 * sigma * sigma)
    reach = max(int(15 * sigma) + 2, max(map(abs, chosen)) + 1)
    with ctx.workprec(256):
        tail, upper = arb(0), [arb(0)] * (reach + 1)
        for k in range(reach, -1, -1):
            tail += (-ball(k * k * rate)).exp()
            upper[k] = tail
        whole = 2 * upper[0] - 1

    def cumulative(m: int) -> arb:
        return 1 - upper[m + 1] / whole if m >= 0 else upper[-m] / whole

    return law_of(cumulative, chosen)


def _smooth_gaussian(sigma: Fraction, m: int) -> arb:
    """P(X ≤ m) by the midpoint rule with its first correction; what is left is below σ⁻³ (and e^(−2π²σ²))."""
    z = (ball(2 * m + 1) / 2) / ball(sigma)
    area = (1 + (z / arb(2).sqrt()).erf()) / 2
    slope = -z * (-z * z / 2).exp() / ball(sigma) ** 2 / (2 * arb.pi()).sqrt()
    return area - slope / 24


def staircase(epsilon: Fraction, sensitivity: int, inner: int) -> Law:
    """P(k) ∝ exp(−ε·⌊(|k| + Δ − r)/Δ⌋), an integer a bin as far as level 6."""
    reach = 6 * sensitivity
    with ctx.workprec(256):
        b = (-ball(epsilon)).exp()
        whole = 2 * inner - 1 + 2 * sensitivity * b / (1 - b)
        weights = {
            k: float((b ** ((abs(k) + sensitivity - inner) // sensitivity) / whole).mid())
            for k in range(-reach, reach + 1)
        }
    rest = (1 - sum(weights.values())) / 2
    inside = [weights[k] for k in range(-reach, reach + 1)]
    return Law(tuple(range(-reach - 1, reach + 1)), (rest, *inside, rest))


def laplace_cuts(scale: Fraction) -> list[int]:
    """About forty cuts: at multiples of the scale and round zero."""
    steps = [0, 0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.7, 3.5, 4.5, 6, 7.5, 11]
    return _cuts(scale, steps)


def gaussian_cuts(sigma: Fraction) -> list[int]:
    """About forty cuts: at multiples of σ and round zero."""
    return _cuts(sigma, [0, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 3.5, 4.2])


def _cuts(scale: Fraction, steps: Sequence[float]) -> list[int]:
    far = [int(Fraction(step) * scale) for step in steps]
    return sorted({*far, *(-cut - 1 for cut in far), *range(-3, 3)})

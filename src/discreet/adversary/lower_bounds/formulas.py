"""The least error that any private answer can have: packing, reconstruction, and counters over time.

Each function gives an α such that no (ε, δ)-DP mechanism has, on every data set of at most `records` records and with
probability 1 − β, all its answers off by less than α. Neighbours differ in one record, there or not; where records are
replaced, some fixed record stands for none.

**Packing** (Lemma 8.4). Let a centre and M − 1 more data sets be such that each is at most Δ records from the centre
and their answers are pairwise η or more apart somewhere. Answers off by less than η/2 then fall into M disjoint
regions. From the centre each other region keeps a probability of e^(−εΔ)·(1 − β) − δ·(1 − e^(−εΔ))/(e^ε − 1) by group
privacy, so if M − 1 times that exceeds β, probabilities add up to more than 1. The book takes β = ½ and 2^s data sets
of which any two are Δ apart; here only the distance from the centre counts, for any β and δ.

**Reconstruction** (Theorems 8.1 and 8.2). Let N bits say which of N kinds of records are there, g of each. Answers of k
queries within α put any fitting candidate within 4α²k/(g·σ)² bits of the truth, σ being the least singular value of the
queries on these kinds. But fair bits cannot be guessed from (ε, δ)-DP answers with fewer mistakes than a
(1 − δ_g)/(1 + e^(gε)) part of them, so α cannot be small. Unlike packing this holds for δ as large as one likes.

>>> round(packing(log_many=20 * log(2), epsilon=1), 1)          # 20 yes/no attributes of people, ε = 1
8.0
>>> round(hadamard(people=65_536, epsilon=0.1), 1)              # as many subsets as people: below √n = 256
42.8
>>> round(counter(rounds=10**6, epsilon=1), 1), round(all_subsets(people=1000, epsilon=1), 1)
(7.0, 57.6)

References: Hardt, Talwar 2010; De 2012; Dinur, Nissim 2003; Dwork, Naor, Pitassi, Rothblum 2010.
"""

from __future__ import annotations

import math
from fractions import Fraction
from math import exp, expm1, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.rounding import float_up

__all__ = ["all_subsets", "arbitrary", "counter", "hadamard", "packing", "reconstruction", "spread"]

BETA = "0.05"
SLACK = 1 - 1e-9
"""What numbers are held below their computed values, so that rounding never makes a bound too large."""
SMALLEST = Fraction(1, 10**15)
"""The least ε, and one over the largest."""
LEAST = 1e-300
"""The least β; what holds for it holds for those below."""
LONGEST = 1 << 60
"""Codewords are no longer, however many kinds of records there are."""
Doubles = NDArray[np.float64]


def spread(log_many: float, epsilon: Exactable, delta: Exactable = 0, beta: Exactable = BETA) -> int:
    """The largest Δ at which the regions of M = e^log_many data sets are too many; 0 if there is none."""
    e, d, b = _terms(epsilon, delta, beta)
    if log_many <= 0:
        return 0
    # e^(−εΔ)·(1 − β + extra) > share + extra, with share = β/(M − 1) and extra = δ/(e^ε − 1)
    log_share = log(b) - log_many - math.log1p(-exp(-log_many))
    log_extra = log(d) - e - log(-expm1(-e)) if d else -inf
    if log_extra > 0:
        # Nearly equal logarithms would leave nothing but their rounding, for small ε.
        share, shrunk = exp(log_share), exp(-log_extra)
        room = math.log1p((1 - b - share) * shrunk / (1 + share * shrunk))
    else:
        room = float(np.logaddexp(log(1 - b), log_extra) - np.logaddexp(log_share, log_extra))
    return max(0, math.ceil(room * SLACK / e) - 1)


def packing(
    log_many: float,
    epsilon: Exactable,
    delta: Exactable = 0,
    beta: Exactable = BETA,
    *,
    records: int | None = None,
    separation: float = 1.0,
) -> float:
    """Corollary 8.5 for M = e^log_many kinds of records, nothing among them, that are `separation` apart for a query.

    The data sets are Δ copies of one kind each. Theorem 8.7 is the case of M = 2^k kinds with k yes/no attributes.
    """
    far = spread(log_many, epsilon, delta, beta)
    return min(far, inf if records is None else natural("records", records)) * separation / 2


def arbitrary(
    queries: int,
    universe: int,
    epsilon: Exactable,
    delta: Exactable = 0,
    beta: Exactable = BETA,
    *,
    records: int | None = None,
) -> float:
    """Theorem 8.8: there are k queries, not linear, each moved by 1 by a record, with at least this error.

    Codewords of length l ≤ universe that differ in D places or more (Gilbert and Varshamov: 2^(l·(1 − h(D/l))) of them)
    are data sets with g records at each 1. A query is r minus the distance to the nearest of them where that is below
    r = (g·D − 1)/2, with a sign for each codeword; k signs tell 2^k codewords apart by 2r. The centre is one of them,
    and all are within g·l of it. The least error is then r; the book's constants give ℓ/(38,400·ε) for ℓ = min(k,
    universe).
    """
    k, d = natural("queries", queries), min(natural("universe", universe), LONGEST)
    room = inf if records is None else natural("records", records)
    best = 0.0
    for length in sorted({min(d, max(2, round(d * 2.0**-step))) for step in range(40)}):
        for share in np.linspace(0.02, 0.5, 25):
            apart = math.ceil(share * length)
            words = length * log(2) * (1 - _entropy(min(0.5, (apart - 1) / length)))
            far = min(spread(min(words, k * log(2)), epsilon, delta, beta), room)
            copies = int(far // length)
            best = max(best, (copies * apart - 1) / 2)
    return best


def counter(
    rounds: int, epsilon: Exactable, delta: Exactable = 0, beta: Exactable = BETA, *, records: int | None = None
) -> float:
    """Theorem 12.6: a count after each of T rounds of at most one event each, at the level of events.

    The data sets have m events in a row, in one of ⌊T/m⌋ phases, and the centre has none.
    """
    total = natural("rounds", rounds)
    room = total if records is None else min(total, natural("records", records))
    low, high = 0, room
    while low < high:
        tried = (low + high + 1) // 2
        fits = spread(log(total // tried + 1), epsilon, delta, beta) >= tried
        low, high = (tried, high) if fits else (low, tried - 1)
    return low / 2


def all_subsets(people: int, epsilon: Exactable, delta: Exactable = 0, beta: Exactable = BETA) -> float:
    """Theorem 8.1: how many of each subset of n people have the bit. Neighbours differ in one bit."""
    n = natural("people", people)
    _, _, b = _terms(epsilon, delta, beta)
    return n * max(0.0, _mistakes(epsilon, delta, 1) - b) / (4 * (1 - b)) * SLACK


def hadamard(people: int, epsilon: Exactable, delta: Exactable = 0, beta: Exactable = BETA) -> float:
    """√n: as many subsets as the next power of two above n people have the error of a constant times √n."""
    n = natural("people", people)
    order = 1 << n.bit_length()
    # With the column of ones left out, AᵀA = order/4·(I + J).
    return _reconstructed(sqrt(order) / 2, n, order, 1, epsilon, delta, beta)


def reconstruction(
    matrix: Doubles,
    epsilon: Exactable,
    delta: Exactable = 0,
    beta: Exactable = BETA,
    *,
    records: int | None = None,
) -> tuple[float, int, int]:
    """The best bound of k queries over some kinds of records (k × d): α, how many kinds it uses, copies of each.

    Kinds are taken in the order of a pivoted QR factorization, the first 1, 2, 4, … of them. Every choice is valid.
    """
    from scipy.linalg import qr, svdvals

    k, d = matrix.shape
    e = float(positive("epsilon", epsilon))
    _, order = qr(matrix, mode="r", pivoting=True)
    best = (0.0, 0, 0)
    most = min(k, d)
    for kinds in sorted({*(1 << step for step in range(most.bit_length())), most, 3 * most // 4} - {0}):
        least = float(svdvals(matrix[:, order[:kinds]])[-1])
        if least < 1e-9:
            continue
        room = 1 << 40 if records is None else natural("records", records) // kinds
        for copies in sorted({max(1, round(times / e)) for times in np.linspace(0.1, 4, 40)} | {1}):
            if copies <= room:
                found = _reconstructed(least, kinds, k, copies, epsilon, delta, beta)
                best = max(best, (found, kinds, copies))
    return best


def _reconstructed(
    least: float, bits: int, queries: int, copies: int, epsilon: Exactable, delta: Exactable, beta: Exactable
) -> float:
    _, _, b = _terms(epsilon, delta, beta)
    over = _mistakes(epsilon, delta, copies) - b
    return copies * least / 2 * sqrt(bits * max(0.0, over) / ((1 - b) * queries)) * SLACK


def _mistakes(epsilon: Exactable, delta: Exactable, copies: int) -> float:
    """The part of fair bits that every guess from the answers gets wrong, if a bit is a group of so many records."""
    e, d, _ = _terms(epsilon, delta, BETA)
    if e * copies > 700:
        return 0.0
    grouped = d * expm1(e * copies) / expm1(e)
    return max(0.0, 1 - grouped) / (1 + exp(e * copies))


def _terms(epsilon: Exactable, delta: Exactable, beta: Exactable) -> tuple[float, float, float]:
    chance, e, b = probability("delta", delta, zero=True), positive("epsilon", epsilon), probability("beta", beta)
    if not SMALLEST <= e <= 1 / SMALLEST:
        bound = f"between {float(SMALLEST):g} and {float(1 / SMALLEST):g}"
        raise InvalidArgument("epsilon", epsilon, bound, "give an ε that doubles can compute with")
    return float(e), float_up(chance), max(float(b), LEAST)


def _entropy(share: float) -> float:
    return 0.0 if share <= 0 else -share * math.log2(share) - (1 - share) * math.log2(1 - share)

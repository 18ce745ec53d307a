"""From noisy answers of linear queries back to bits: least squares, robust ℓ1, a linear program, all candidates.

| method | it finds | it bears |
|---|---|---|
| `least_squares` | the x with the least Σ(Ax − y)² | noise below √n on every answer; n in the tens of thousands |
| `damped_squares` | the same, held near ½ | fewer answers than three for each person |
| `least_absolute` | the x with the least Σ\\|Ax − y\\| | the same, and a large part of answers that are arbitrary |
| `least_worst` | the x in [0, 1]ⁿ with the least max \\|Ax − y\\|, by HiGHS | errors known to be bounded |
| `best_candidate` | the bits with the least max \\|Ac − y\\| over all 2ⁿ | an error E: all but 4E bits (Thm 8.1) |

Numbers near 0 and 1 are rounded to bits afterwards; `certainties` says how sure each one is.

>>> import numpy as np
>>> from discreet.adversary.reconstruction.subset_queries import Hadamard
>>> queries, bits = Hadamard(people=6, signs=True), np.array([1, 0, 0, 1, 1, 0])
>>> least_squares(queries, queries.apply(bits)).round(6).tolist()
[1.0, 0.0, 0.0, 1.0, 1.0, 0.0]

Least squares and ℓ1 look for x around ½, so that bits which nothing was said about stay there. The ℓ1 fit is an
interior point method of predictor and corrector steps on min Σ|y − Ax| and its dual max ⟨y, u⟩, Aᵀu = 0, |u| ≤ 1: each
step solves for n unknowns twice, and it ends when the gap between the two is a ten-thousandth of the sum.

Where the source says that 0.239 of the answers may be arbitrary for an efficient attack, that is what is proven for ℓ1
decoding with Gaussian queries; a ½ − η part, as in Theorem 8.2, is for the search over all candidates.

References: Dinur, Nissim 2003; Dwork, McSherry, Talwar 2007; Portnoy, Koenker 1997 (interior points for ℓ1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.reconstruction.subset_queries import Queries
from discreet.core.errors import InvalidArgument
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import uniform

__all__ = ["best_candidate", "certainties", "damped_squares", "least_absolute", "least_squares", "least_worst"]

Doubles = NDArray[np.float64]
Bits = NDArray[np.int64]
GAP = 1e-4
"""The relative gap at which the ℓ1 fit ends."""
STEPS = 60
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""How strongly estimates are held near ½, in parts of what all bits together make of an answer."""
WARY = 1.2
"""What each number that is fitted counts for in cross-validation; at 1 it now and then believes what it should not."""
EXACT = 0.01
"""Answers that bits meet to within this were exact."""
CERTAIN = 1e-6
"""No variance of an estimate is taken to be smaller."""
SCREEN = 64
"""Answers by which candidates are put in order before all answers are looked at."""
AT_ONCE = 1 << 22


def least_squares(queries: Queries, values: Doubles, damp: float = 0.0) -> Doubles:
    """The x nearest to ½ among those that fit the answers best in squares; NaN answers are left out.

    With `damp` the x with the least Σ(Ax − y)² + damp²·Σ(x − ½)².
    """
    from scipy.sparse.linalg import LinearOperator, lsmr

    known = _known(queries, values)
    target = (values - queries.apply(np.full(queries.people, 0.5)))[known]

    def spread(y: Doubles) -> Doubles:
        whole = np.zeros(len(queries))
        whole[known] = y.reshape(-1)
        return queries.transpose(whole)

    operator = LinearOperator(
        (known.size, queries.people), lambda x: queries.apply(x.reshape(-1))[known], spread, dtype=np.float64
    )
    return np.asarray(lsmr(operator, target, damp=damp, atol=1e-9, btol=1e-9, maxiter=500)[0], np.float64) + 0.5


def damped_squares(queries: Queries, values: Doubles) -> tuple[Doubles, float]:
    """Least squares held near ½, for few answers, and the part of a bit's distance from ½ that comes through.

    Bits that answer everything as it was answered need no holding. Else how strongly is chosen by generalized
    cross-validation; that part, the mean of the diagonal of the map from bits to estimates, is found by sending signs
    through it.
    """
    plain = least_squares(queries, values)
    off = np.abs(values - queries.apply(plain > 0.5))
    if np.nanmax(off) < EXACT and np.abs(np.abs(plain - 0.5) - 0.5).max() < EXACT:
        return plain, 1.0
    probe = 2.0 * uniform(2, queries.people, entropy=Entropy.of_released(b"signs to send")) - 1
    sent = np.where(np.isfinite(values), queries.apply(probe), np.nan)
    level, answered = float(np.sqrt(np.nanmean(sent**2))), int(np.isfinite(values).sum())
    middle = queries.apply(np.full(queries.people, 0.5))
    best: tuple[float, Doubles, float] | None = None
    for strength in STRENGTHS:
        estimate = least_squares(queries, values, strength * level)
        share = float(probe @ (least_squares(queries, sent + middle, strength * level) - 0.5)) / queries.people
        left = answered - WARY * share * queries.people
        score = float(np.nansum((values - queries.apply(estimate)) ** 2)) / left**2 if left > 0 else np.inf
        if best is None or score <= best[0]:
            best = score, estimate, min(max(share, 0.0), 1.0)
    assert best is not None
    return best[1], best[2]


def least_absolute(
    queries: Queries, values: Doubles, progress: Callable[[float], None] | None = None, gap: float = GAP
) -> Doubles:
    """The x that fits the answers best in absolute errors."""
    known = _known(queries, values)
    a = queries.matrix() if known.size == len(queries) else queries.matrix(known.tolist())
    k, n = a.shape
    y = values[known] - np.asarray(a @ np.full(n, 0.5)).reshape(-1)
    scale = max(float(np.abs(y).mean()), 1e-9)
    y = y / scale
    ridge = 1e-10 * k * np.eye(n)

    def normal(weights: Doubles) -> Doubles:
        root = np.sqrt(weights)
        rows = a.multiply(root[:, None]).tocsr() if hasattr(a, "multiply") else a * root[:, None]
        squares = rows.T @ rows
        return np.asarray(np.asarray(squares.todense() if hasattr(squares, "todense") else squares) + ridge, np.float64)

    x = np.linalg.solve(normal(np.ones(k)), a.T @ y)
    over = y - a @ x
    # u in [0, 1] with Aᵀu fixed is the dual, v = 1 − u; above and below are what is left of each answer on its side.
    u = np.full(k, 0.5)
    v = 1 - u
    fixed = a.T @ u
    start = 0.1 * max(float(np.abs(over).mean()), 1e-9)
    above, below = np.maximum(over, 0) + start, np.maximum(-over, 0) + start
    first = None
    for _ in range(STEPS):
        missed, short = y - a @ x - above + below, fixed - a.T @ u
        between = float(u @ below + v @ above)
        allowed = gap * (1e-3 + float(np.abs(y - a @ x).sum()))
        if between < allowed:
            break
        if progress is not None:
            first = first or between
            progress(1 - np.log(between / allowed) / max(np.log(first / allowed), 1e-9))
        weights = 1 / (below / u + above / v)
        solve = partial(np.linalg.solve, normal(weights))
        step = _Newton(a, weights, u, v, above, below, missed, short, solve)
        affine = step.towards(0.0)
        lengths = step.lengths(affine)
        left = step.gap(affine, lengths)
        final = step.towards((left / between) ** 3 * between / (2 * k), affine)
        primal, dual = step.lengths(final)
        x, u = x + dual * final[0], u + primal * final[1]
        v, below, above = 1 - u, below + dual * final[2], above + dual * final[3]
    return np.asarray(x * scale + 0.5, np.float64)


class _Newton:
    """One linearization of the optimality conditions, solved for several right sides."""

    def __init__(
        self,
        a: Any,
        weights: Doubles,
        u: Doubles,
        v: Doubles,
        above: Doubles,
        below: Doubles,
        missed: Doubles,
        short: Doubles,
        solve: Callable[[Doubles], Doubles],
    ) -> None:
        self.a, self.weights, self.u, self.v, self.above, self.below = a, weights, u, v, above, below
        self.missed, self.short, self.solve = missed, short, solve

    def towards(self, centre: float, before: tuple[Doubles, ...] | None = None) -> tuple[Doubles, ...]:
        """Moves of x, u, below, above towards products of size `centre`, corrected for those of a move before."""
        low, high = centre - self.u * self.below, centre - self.v * self.above
        if before is not None:
            low, high = low - before[1] * before[2], high + before[1] * before[3]
        right = self.missed - high / self.v + low / self.u
        dx = self.solve(self.a.T @ (self.weights * right) - self.short)
        du = self.weights * (right - self.a @ dx)
        return dx, du, (low - self.below * du) / self.u, (high + self.above * du) / self.v

    def lengths(self, move: tuple[Doubles, ...]) -> tuple[float, float]:
        """How far to go, so that all stays positive."""
        _, du, dlow, dhigh = move
        primal = min(_room(self.u, du), _room(self.v, -du))
        return primal, min(_room(self.below, dlow), _room(self.above, dhigh))

    def gap(self, move: tuple[Doubles, ...], lengths: tuple[float, float]) -> float:
        """What is left of the gap there."""
        (_, du, dlow, dhigh), (primal, dual) = move, lengths
        low = (self.u + primal * du) @ (self.below + dual * dlow)
        return float(low + (self.v - primal * du) @ (self.above + dual * dhigh))


def least_worst(queries: Queries, values: Doubles) -> Doubles:
    """The x in [0, 1]ⁿ whose worst answer is least wrong: the linear program of Dinur and Nissim, by HiGHS."""
    from scipy.optimize import linprog
    from scipy.sparse import bmat, csr_matrix

    known = _known(queries, values)
    a, ones = csr_matrix(queries.matrix(known.tolist())), csr_matrix(np.ones((known.size, 1)))
    found = linprog(
        np.r_[np.zeros(queries.people), 1.0],
        A_ub=bmat([[a, -ones], [-a, -ones]], format="csr"),
        b_ub=np.r_[values[known], -values[known]],
        bounds=[(0, 1)] * queries.people + [(0, None)],
        method="highs-ipm",
    )
    if found.x is None:
        raise InvalidArgument("values", f"{known.size} answers", "what HiGHS can fit", f"it said: {found.message}")
    return np.asarray(found.x[:-1], np.float64)


def best_candidate(people: int, values: Doubles) -> tuple[Bits, float]:
    """The bits that fit the answers on all 2ⁿ subsets best, and the worst error they leave.

    If no answer was off by more than E, these bits leave no more than E either, and both facts together put them at
    most 4E places from the true ones. Candidates are put in order by their worst error on some subsets; the search ends
    where that alone is no better than the best one found, so it finds what trying all would.
    """
    size = 1 << people
    if values.shape != (size,):
        raise InvalidArgument("values", f"{values.size} answers", f"{size}, one for each subset", "ask all subsets")
    known = np.flatnonzero(np.isfinite(values))
    if known.size == 0:
        raise InvalidArgument("values", "no answers", "one at least", "nothing was answered")
    candidates = np.arange(size)
    picked = known[np.linspace(0, known.size - 1, min(SCREEN, known.size)).astype(int)]
    floor = np.zeros(size)
    for subset in picked.tolist():
        floor = np.maximum(floor, np.abs(np.bitwise_count(candidates & subset) - values[subset]))
    order, best, chosen = np.argsort(floor, kind="stable"), np.inf, 0
    many = max(1, AT_ONCE // known.size)
    for start in range(0, size, many):
        some = order[start : start + many]
        if floor[some[0]] >= best:
            break
        worst = np.abs(np.bitwise_count(some[:, None] & known) - values[known]).max(axis=1)
        if worst.min() < best:
            best, chosen = float(worst.min()), int(some[worst.argmin()])
    return (chosen >> np.arange(people)) & 1, best


def certainties(estimate: Doubles, share: float = 1.0) -> Doubles:
    """For each bit how likely it is 1, if before the attack it was as likely as not.

    An estimate x is taken as ½ + c·(b − ½) + v·noise, c being the `share` of a bit that comes through; the variance
    follows from mean (x − ½)² = c²/4 + v², whatever the bits are.
    """
    centred = estimate - 0.5
    variance = max(float((centred**2).mean()) - share**2 / 4, CERTAIN)
    chances: Doubles = 1 / (1 + np.exp(np.clip(-share * centred / variance, -700, 700)))
    return chances


def _known(queries: Queries, values: Doubles) -> NDArray[np.int64]:
    if values.shape != (len(queries),):
        raise InvalidArgument("values", f"{values.size} answers", f"{len(queries)}, one for each query", "mark NaN")
    known = np.flatnonzero(np.isfinite(values))
    if known.size == 0:
        raise InvalidArgument("values", "no answers", "one at least", "nothing was answered")
    return known


def _room(values: Doubles, moves: Doubles) -> float:
    """The longest step up to 1 that keeps positive values positive."""
    falling = moves < 0
    return min(1.0, 0.9995 * float(np.min(-values[falling] / moves[falling]))) if falling.any() else 1.0

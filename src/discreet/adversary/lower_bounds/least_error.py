"""The least error possible for a workload, beside what mechanisms get.

>>> from discreet.synopses import Attribute, Domain, Workload
>>> domain = Domain(tuple(Attribute(f"q{i}", ("no", "yes")) for i in range(8)))
>>> found = least_error(Workload.all_marginals(domain, 1), epsilon=1, records=1000)
>>> found.least, found.best.name
(4.0, 'packing (Theorem 8.7)')
>>> [line.name for line in found.achieved][:1], found.least <= found.achieved[0].error
(['Laplace'], True)

Every number is about the worst of all answers, with probability 1 − β. A mechanism near the bound cannot be improved
much on all data sets; one far from it may be, or the bound may be weak: bounds are proven, and not all are tight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.adversary.figures import dots
from discreet.adversary.lower_bounds import formulas as lower_bounds
from discreet.core.display.columns import Cells
from discreet.core.display.html import block, note, table
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, exact, natural, positive, probability
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import uniform
from discreet.synopses.domain import Attribute, Domain
from discreet.synopses.queries.workload import Workload

__all__ = [
    "LeastError",
    "Line",
    "counter_error",
    "least_error",
    "marginals_error",
    "queries_error",
    "runs_error",
]

WRITTEN = 1 << 21
"""Weights of a workload that are written down for the reconstruction bound, at most."""
KINDS = 512
"""Kinds of records that it looks at, at most."""
HASHED = 1 << 30
MANY = 10**12
"""From here on, kinds of records are told by a power of ten."""


@dataclass(frozen=True)
class Line:
    """One error, and why it is so."""

    name: str
    error: float
    why: str


@dataclass(frozen=True)
class LeastError:
    """Bounds from below, and errors of mechanisms, for the same queries and the same guarantee."""

    what: str
    epsilon: Fraction
    delta: Fraction
    beta: Fraction
    bounds: tuple[Line, ...] = field(repr=False)
    achieved: tuple[Line, ...] = field(repr=False)

    @property
    def best(self) -> Line:
        """The largest bound."""
        return max(self.bounds, key=lambda line: line.error)

    @property
    def least(self) -> float:
        """No mechanism has a smaller error."""
        return self.best.error

    @property
    def verdict(self) -> str:
        """In plain words."""
        sure = f"{float(1 - self.beta) * 100:.6g} %"
        said = f"No mechanism answers {self.what} with errors below {self.least:.4g} in {sure} of runs"
        said = f"{said} at {self._privacy}"
        if not self.achieved:
            return f"{said}."
        best = min(self.achieved, key=lambda line: line.error)
        ratio = f", {best.error / self.least:.3g} times as much" if self.least > 0 else ""
        return f"{said}; {best.name} is within {best.error:.4g}{ratio}."

    @property
    def _privacy(self) -> str:
        pure = f"ε = {float(self.epsilon):g}"
        return f"{pure}, δ = {float(self.delta):g}" if self.delta else pure

    def columns(self) -> list[Cells]:
        """Bounds and mechanisms, to show."""
        lines = [("no less", line) for line in self.bounds] + [("gets", line) for line in self.achieved]
        return [
            Cells("", [kind for kind, _ in lines], quiet=True, firm=True),
            Cells("error", [f"{line.error:.4g}" for _, line in lines], True, True),
            Cells("by", [line.name for _, line in lines], firm=True),
            Cells("why", [line.why for _, line in lines], quiet=True),
        ]

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "queries": self.what,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "beta": float(self.beta),
            "least": self.least,
            "verdict": self.verdict,
            "bounds": [vars(line) for line in self.bounds],
            "mechanisms": [vars(line) for line in self.achieved],
        }

    def __str__(self) -> str:
        lines = [f"  ≥ {line.error:<10.4g} {line.name}: {line.why}" for line in self.bounds]
        lines += [f"  ≤ {line.error:<10.4g} {line.name}: {line.why}" for line in self.achieved]
        return "\n".join([self.verdict, *lines])

    def _repr_html_(self) -> str:
        return block(note(self.verdict), table(self.columns()))

    def plot(self) -> Any:
        """All errors on one axis."""
        lines = [*self.bounds, *self.achieved]
        kinds = ["no mechanism has less"] * len(self.bounds) + ["a mechanism gets"] * len(self.achieved)
        title = f"Worst error of {self.what}, {self._privacy}"
        names, errors = [line.name for line in lines], [line.error for line in lines]
        return dots(names, errors, kinds, title, "error of the worst answer")


def least_error(
    workload: Workload,
    *,
    epsilon: Exactable,
    delta: Exactable = 0,
    beta: Exactable = lower_bounds.BETA,
    records: int | None = None,
    changes: int = 1,
) -> LeastError:
    """Bounds for a workload; with `records` those of data sets of at most so many, and what needs their number.

    `changes=1` is for records that are there or not, 2 for records replaced.
    """
    if not isinstance(workload, Workload):
        raise InvalidArgument("workload", workload, "a Workload", "build one over a Domain, or use queries_error")
    e, d, b = _terms(epsilon, delta, beta)
    if isinstance(changes, bool) or changes not in (1, 2):
        raise InvalidArgument("changes", changes, "1 or 2", "1 for add/remove neighbours, 2 for replace")
    bounds = list(_of_workload(workload, (e, d, b), records, changes))
    names = f"{len(workload):,} queries over {workload.domain.size:,} cells"
    return LeastError(names, e, d, b, tuple(bounds), tuple(_achieved(workload, (e, d, b), records, changes)))


def queries_error(
    queries: int,
    *,
    universe: int,
    records: int,
    epsilon: Exactable,
    delta: Exactable = 0,
    beta: Exactable = lower_bounds.BETA,
) -> LeastError:
    """Bounds for the hardest k queries that there are over so many kinds of records, on data sets of n records."""
    k, kinds, n = natural("queries", queries), natural("universe", universe), natural("records", records)
    e, d, b = _terms(epsilon, delta, beta)
    log_many = min(k * math.log(2), math.log(kinds))
    many = min(1 << min(k, kinds.bit_length()), kinds)
    told = f"{many:,}" if many < MANY else f"about 10^{log_many / math.log(10):.0f}"
    people = min(k // 2, n, kinds)
    bounds = [
        Line(
            "packing (Theorem 8.7)",
            lower_bounds.packing(log_many, e, d, b, records=n),
            f"yes/no attributes, {told} kinds of records told apart",
        ),
        Line(
            "packing (Theorem 8.8)",
            lower_bounds.arbitrary(k, kinds, e, d, b, records=n),
            "for queries that are not linear; each moves by 1 with a record",
        ),
    ]
    if people:
        why = f"subsets of {people:,} people would give their bits away"
        bounds.append(Line("reconstruction (Theorem 8.2)", lower_bounds.hadamard(people, e, d, b), why))
    achieved = [Line("Laplace", Laplace.for_epsilon(e, k, dimension=k).accuracy(b, k), f"noise of scale {k}/ε each")]
    if d:
        noise = Gaussian.for_approx(e, d, k, dimension=k)
        achieved.append(Line("Gaussian", noise.accuracy(b, k), f"standard deviation {float(noise.sigma):.4g} each"))
    what = f"the hardest {k:,} queries over {kinds:,} kinds of {n:,} records"
    return LeastError(what, e, d, b, tuple(bounds), tuple(achieved))


def counter_error(
    rounds: int, *, epsilon: Exactable, delta: Exactable = 0, beta: Exactable = lower_bounds.BETA
) -> LeastError:
    """Bounds for a running count after each of T rounds, at the level of events."""
    total = natural("rounds", rounds)
    e, d, b = _terms(epsilon, delta, beta)
    why = "a burst of events in one of many phases would be noticed"
    bound = Line("packing (Theorem 12.6)", lower_bounds.counter(total, e, d, b), why)
    levels = max(1, math.ceil(math.log2(total))) + 1
    tree = levels / float(e) * _sum_of_laplace(levels, math.log(2 * total / float(b)))
    each = Laplace.for_epsilon(e, total, dimension=1).accuracy(b / total)
    achieved = [
        Line("binary tree of Laplace noise", tree, f"{levels} levels of scale {levels}/ε"),
        Line("Laplace on every count", each, f"noise of scale {total:,}/ε each"),
    ]
    return LeastError(f"a count after each of {total:,} rounds", e, d, b, (bound,), tuple(achieved))


def marginals_error(sizes: Mapping[str, int], order: int, **terms: Any) -> LeastError:
    """Bounds for all counts of `order` attributes together, of attributes with so many values."""
    domain = Domain(tuple(Attribute(name, tuple(range(size))) for name, size in sizes.items()))
    return least_error(Workload.all_marginals(domain, order), **terms)


def runs_error(size: int, kind: str, **terms: Any) -> LeastError:
    """Bounds for all `prefixes`, or all `ranges`, of an ordered attribute with so many values."""
    domain = Domain((Attribute("value", tuple(range(natural("size", size)))),))
    makers = {"prefixes": Workload.prefixes, "ranges": Workload.ranges}
    if kind not in makers:
        raise InvalidArgument("kind", kind, "prefixes or ranges", "name one of the two")
    return least_error(makers[kind](domain, "value"), **terms)


def _of_workload(
    workload: Workload, terms: tuple[Fraction, Fraction, Fraction], records: int | None, changes: int
) -> Iterator[Line]:
    largest = float(workload.largest(changes))
    two = lower_bounds.packing(math.log(2), *terms, records=records, separation=largest)
    yield Line("two data sets", two, "one of them empty: they must not be told apart")
    if workload.denominator == 1 and workload.domain.size <= HASHED:
        kinds = _kinds(workload) if changes == 1 else max(1, _kinds(workload, with_nothing=False))
        packed = lower_bounds.packing(math.log(kinds), *terms, records=records)
        yield Line("packing (Theorem 8.7)", packed, f"{kinds:,} kinds of records that some query tells apart")
    if len(workload) * min(KINDS, workload.domain.size) <= WRITTEN:
        matrix = _columns(workload)
        if changes == 2:
            matrix = matrix[:, 1:] - matrix[:, :1]
        if matrix.size:
            error, many, copies = lower_bounds.reconstruction(matrix, *terms, records=records)
            why = f"which of {many:,} kinds of records are there, {copies:,} of each, would be read off"
            yield Line("reconstruction (Theorem 8.2)", error, why)


def _achieved(
    workload: Workload, terms: tuple[Fraction, Fraction, Fraction], records: int | None, changes: int
) -> Iterator[Line]:
    from discreet.synopses.mwem import MWEM
    from discreet.synopses.noisy_counts import Measurement, gaussian_rho
    from discreet.synopses.projection import Projection

    e, d, b = terms
    common: dict[str, Any] = {"workload": workload, "epsilon": e, "delta": d, "changes": changes, "size": records}

    def laplace() -> tuple[float, str]:
        from discreet.core.losses import PureDP

        return Measurement(workload, PureDP(e), 1, changes).error(b), "noise on every count"

    def gaussian() -> tuple[float, str]:
        rho = gaussian_rho(e, d, len(workload))
        return Measurement(workload, rho, 1, changes).error(b), "noise on every count"

    def projected() -> tuple[float, str]:
        return Projection(**common).accuracy(b), "noise, then the nearest counts that people can have; proven"

    def weights() -> tuple[float, str]:
        return MWEM(**common, method="book").accuracy(b, float(records or 0)), "the book's method; proven"

    tries: list[tuple[str, Callable[[], tuple[float, str]]]] = [("Laplace", laplace)]
    tries += [("Gaussian", gaussian)] if d else []
    tries += [("projection", projected), ("multiplicative weights", weights)] if records else []
    for name, attempt in tries:
        try:
            error, why = attempt()
        except InvalidArgument:
            continue
        if math.isfinite(error):
            yield Line(name, error, why)


def _kinds(workload: Workload, with_nothing: bool = True) -> int:
    """Kinds of records that some query tells apart, and nothing; two that are mistaken for one only weaken a bound."""
    weights = uniform(1 << 20, len(workload), entropy=Entropy.of_released(b"kinds of records")).astype(np.float64) + 1
    marks = np.unique(workload.weighed(weights))
    return int(marks.size) + int(with_nothing and bool((marks != 0).all()))


def _columns(workload: Workload) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Different columns of the queries, evenly picked where there are many."""
    size = workload.domain.size
    picked = np.unique(np.linspace(0, size - 1, min(size, KINDS)).astype(np.int64))
    whole = np.stack([_row(workload, index, picked) for index in range(len(workload))])
    return np.unique(whole, axis=1)


def _row(workload: Workload, index: int, picked: Any) -> Any:
    cells, weights = workload.support(index)
    row = np.zeros(picked.size)
    places = np.searchsorted(picked, cells)
    inside = (places < picked.size) & (picked[np.minimum(places, picked.size - 1)] == cells)
    row[places[inside]] = weights[inside]
    return row


def _sum_of_laplace(many: int, exponent: float) -> float:
    """What a sum of so many Laplace noises of scale 1 exceeds with probability e^(−exponent) at most (Chernoff)."""
    slopes = np.linspace(0, 1, 2_002)[1:-1]
    return float(((exponent - many * np.log1p(-(slopes**2))) / slopes).min())


def _terms(epsilon: Exactable, delta: Exactable, beta: Exactable) -> tuple[Fraction, Fraction, Fraction]:
    small = exact("delta", delta)
    chance = probability("delta", small, zero=True)
    return positive("epsilon", epsilon), chance, probability("beta", beta)

"""Which mechanism makes the rows: by the size of the domain, the workload and the budget, or by name.

| name | what it does | cells |
|---|---|---|
| `projection` | noise on all counts of the workload, then the nearest counts that rows can have | to 8 million |
| `mwem` | measures marginals that the rows so far get most wrong (all if few), and corrects the rows | to 8 million |
| `mwem-book` | the same count by count, as in the theorem: a proven bound, and a far larger error | to 8 million |
| `generator` | noise on all counts, then the rows nearest to them, none farther off than the noise | to 8 million |
| `boosting` | many rounds on some queries each, drawn by how badly the earlier ones did | to some 100,000 |
| `small-database` | one draw among all databases of a few rows | to some 1,000 |

Unless one is named: `projection` up to `SMALL` cells, where fitting all counts is best, and `mwem` above, which spends
nothing on marginals that are right already. Domains that are too large for a method are refused when it is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from inspect import signature
from math import sqrt
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.mechanisms.laplace import Laplace
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.synopses.base import Terms
from discreet.synopses.mwem import MWEM, Progress
from discreet.synopses.queries.workload import Workload
from discreet.synopses.synopsis import Weights

__all__ = ["METHODS", "MOST_CELLS", "Chosen", "choose"]

METHODS = ("mwem", "projection", "mwem-book", "generator", "boosting", "small-database")
SMALL = 4096
"""Cells up to which all counts are measured and fitted at once."""
MOST_BOOSTED = 1 << 17
MOST_CELLS = 1 << 23
"""What the books keep of rows is 4 bytes for each cell."""


@dataclass(frozen=True)
class Chosen:
    """A mechanism by its name."""

    name: str
    mechanism: Any
    """One of `Terms`, with a `release`."""

    @property
    def terms(self) -> Terms:
        """Its public parameters."""
        assert isinstance(self.mechanism, Terms)
        return self.mechanism

    def released(self, histogram: Integers, entropy: Entropy, progress: Progress | None) -> Weights:
        """Weights on all cells; where the median of several answers best, those whose answers are nearest to it."""
        told = {"progress": progress} if "progress" in signature(self.mechanism.release).parameters else {}
        synopsis = self.mechanism.release(histogram, entropy=entropy, **told).values
        if isinstance(synopsis, Weights):
            return synopsis
        from discreet.synopses.fitting import Cells, nearest

        each = [part.weights for part in synopsis.synopses]
        mean = np.mean(each, axis=0)
        cells = Cells(mean.size, float(mean.sum()))
        workload = self.terms.workload
        return Weights(workload.domain, nearest(workload, synopsis.answers(workload), cells, start=mean).weights)

    @property
    def noise(self) -> float | None:
        """The mean absolute error of a count as it is measured, in steps, before anything is fitted; None if it is not
        of that kind. Where the number of rounds follows the data, it is that of a usual one."""
        if isinstance(self.mechanism, MWEM):
            return self.mechanism.noise.typical / self.mechanism.strategy.denominator
        meter = getattr(self.mechanism, "mechanism", None)
        if meter is None:
            return None
        typical = float(meter.scale) if isinstance(meter, Laplace) else float(meter.sigma) * sqrt(2 / np.pi)
        return typical / self.terms.workload.denominator


def choose(
    name: str | None,
    workload: Workload,
    *,
    epsilon: Fraction,
    delta: Fraction,
    unit_weight: int,
    changes: int,
    gaussian: bool = False,
) -> Chosen:
    """The mechanism of that name, or the one that suits the domain; refused where the domain is too large for it. If
    `gaussian`, counts have Gaussian noise also where Laplace noise would be smaller for the same ε."""
    if name is not None and name not in METHODS:
        raise InvalidArgument("method", name, f"one of {METHODS}", "leave it out for the one that suits")
    domain = workload.domain
    sizes = " × ".join(f"{attribute.name} {attribute.size}" for attribute in domain.attributes)
    remedy = f"leave columns out, use coarser bins, or make rows of some columns at a time ({sizes})"
    domain.dense(MOST_CELLS, remedy)
    kind = name or ("projection" if domain.size <= SMALL else "mwem")
    if kind == "boosting":
        domain.dense(MOST_BOOSTED, "dozens of rounds would each take minutes: use mwem, or fewer cells")
    terms: dict[str, Any] = {
        "workload": workload,
        "epsilon": epsilon,
        "delta": delta,
        "unit_weight": unit_weight,
        "changes": changes,
    }
    return Chosen(kind, _built(kind, terms, gaussian))


def _built(kind: str, terms: dict[str, Any], gaussian: bool) -> Any:
    if kind == "mwem":
        usual = MWEM(**terms)
        return usual if gaussian else _better(usual, MWEM(**(terms | {"delta": Fraction(0)})))
    if kind == "mwem-book":
        return MWEM(**terms, method="book")
    if kind == "projection":
        from discreet.synopses.projection import Projection

        return Projection(**terms, noise="gaussian" if gaussian else None)
    if kind == "generator":
        from discreet.synopses.generators import LinearGenerator

        return LinearGenerator(**terms)
    if kind == "boosting":
        from discreet.synopses.boosting import Boosting

        return Boosting(**terms)
    from discreet.synopses.small_database import SmallDatabase

    return SmallDatabase(**terms)


def _better(gaussian: MWEM, laplace: MWEM) -> MWEM:
    """The kind of noise with the smaller deviation: Laplace noise where a unit touches few marginals, and all of them
    are measured (if not, it is charged as one event of all its ε, which leaves little for others)."""
    if not gaussian.delta or gaussian.follows:
        return gaussian
    meters = gaussian.noise.meter, laplace.noise.meter
    assert not isinstance(meters[0], Laplace)
    assert isinstance(meters[1], Laplace)
    return laplace if float(meters[1].scale) * sqrt(2) <= float(meters[0].sigma) else gaussian

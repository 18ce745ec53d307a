"""Synthetic rows: what the ledger stored of them, and what is made of that.

What is stored is a weight for every cell, in rows, and how far off the check found them to be. Everything else follows
from the stored bytes, so that asking again gives the same: rows are drawn with randomness that the bytes determine,
which protects nobody and need not, for the weights are released already.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, probability
from discreet.core.losses import ZCDP, Loss
from discreet.engines.engine import Engine
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.synopses.mwem import Progress
from discreet.synopses.queries.workload import Workload
from discreet.synopses.synopsis import SyntheticTable, Weights
from discreet.synthesis.check import distances, order
from discreet.synthesis.columns import Column
from discreet.synthesis.request import Request

__all__ = ["BlockError", "Synthesis", "assembled", "checked", "plan_of", "released"]

MOST_ROWS, USUAL_ROWS = 10_000_000, 1_000_000
"""The most rows that are drawn, and the most where none are asked for: every row is signed for."""
_UNKNOWN = object()
BETAS = (0.5, 0.1, 0.05, 0.01, 0.001)
"""Where a bound was proven, it is kept for these."""


@dataclass(frozen=True)
class BlockError:
    """How far synthetic counts of a block are from the true ones: Σ |difference| in rows, known up to noise."""

    label: str
    counts: int
    """How many counts the block has; 0 for a mean over blocks."""
    order: int
    """How many columns it looks at."""
    rows: float
    noise: float
    """The scale of Laplace noise, or the deviation of Gaussian noise; 0 where the error is exact."""
    gaussian: bool
    total: float
    """How many rows there are."""

    def misplaced(self, level: Exactable = 0.95) -> tuple[float, float, float]:
        """The share of rows in the wrong place, and ends that hold it with this probability."""
        tail = 1 - float(probability("level", level))
        reach = self.noise * (NormalDist().inv_cdf(1 - tail / 2) if self.gaussian else math.log(1 / tail))
        whole = 2 * max(self.total, 1.0)
        ends = ((self.rows + way * reach) / whole for way in (0, -1, 1))
        share, low, high = (min(max(end, 0.0), 1.0) for end in ends)
        return share, low, high


@dataclass(frozen=True)
class Synthesis:
    """Synthetic rows with their loss and certificate. `table` has them by columns, `synopsis` answers linear queries.

    `private` is False when the noise came from a test seed: such rows carry no guarantee at all.
    """

    table: SyntheticTable
    synopsis: Weights = field(repr=False)
    errors: tuple[BlockError, ...] = field(repr=False)
    """What the check found, first the means over blocks of one column, of two, …, then block by block."""
    loss: Loss
    certificate: dict[str, Any] = field(repr=False)
    private: bool
    request: Request = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.table.columns)

    @cached_property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The rows."""
        return tuple(zip(*self.table.columns.values(), strict=True))

    @property
    def workload(self) -> Workload:
        """What the rows were made for."""
        return self.request.workload

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β all counts of the workload are within this; ∞ where nothing was proven."""
        return self.synopsis.accuracy(beta)

    def compared(self, public: Mapping[str, Any]) -> tuple[BlockError, ...]:
        """The errors against rows that protect nobody, exactly: columns as the table has them, say public data."""
        histogram = self.histogram(public)
        # Blocks as wholes, also where the workload has some of their queries.
        exact = distances(Workload(self.workload.domain, self.workload.blocks), histogram, self.synopsis)
        total = float(histogram.sum())
        each = zip(self.request.labels, self.workload.blocks, exact, strict=True)
        scale, domain = self.workload.denominator, self.workload.domain
        return tuple(
            BlockError(label, block.count(domain), order(block), apart / scale, 0.0, False, total)
            for label, block, apart in each
        )

    def histogram(self, public: Mapping[str, Any]) -> Integers:
        """How many rows that protect nobody are in each cell."""
        missing = [name for name in self.names if name not in public]
        if missing:
            raise InvalidArgument("public", sorted(public), f"columns {self.names}", f"give {', '.join(missing)}")
        return self.workload.domain.histogram(_known(self.request.columns, public))

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table."""
        return self.table.to_arrow()

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.table.to_pandas()

    def write(self, path: str | Path) -> Path:
        """The rows as a Parquet or CSV file, by the ending of the name."""
        return self.table.write(path)

    def report(self, public: Mapping[str, Any] | None = None) -> str:
        """How good the rows are, as one HTML file: made of released numbers only, or with the true counts of `public`
        rows, which protect nobody."""
        from discreet.synthesis.report import page

        return page(self, public)

    def __len__(self) -> int:
        return len(self.table)

    def __str__(self) -> str:
        from discreet.synthesis.report import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from discreet.synthesis.report import brief

        return brief(self)


def checked(rows: int | None) -> int | None:
    """How many rows are asked for."""
    if rows is not None and natural("rows", rows) > MOST_ROWS:
        raise InvalidArgument("rows", rows, f"at most {MOST_ROWS:,}", "ask for fewer, and draw more from `synopsis`")
    return rows


def released(request: Request, engine: Engine, entropy: Entropy, progress: Progress | None) -> bytes:
    """The weights of all cells and the errors found, as the ledger stores them. This is what looks at the data."""
    histogram = request.histogram(engine)
    weights = request.chosen.released(histogram, entropy, progress)
    found = None if request.check is None else request.check.release(histogram, weights, entropy)
    kept: dict[str, Any] = {"weights": (weights.weights / request.scale).astype(np.float32)}
    if found is not None and request.check is not None:
        scales = np.array(request.check.scales) / request.scale
        kept |= {"errors": found[0] / request.scale, "means": found[1] / request.scale, "scales": scales}
    # What is proven is about rows as they weigh: it holds for all rows where each of them counts in full.
    bounds = [weights.accuracy(beta) / request.scale if request.whole else math.inf for beta in BETAS]
    header = {"private": entropy.private, "bounds": [None if math.isinf(bound) else bound for bound in bounds]}
    header["plan"] = request.record
    out = io.BytesIO()
    np.savez_compressed(out, header=np.array(json.dumps(header)), **kept)
    return out.getvalue()


def assembled(request: Request, payload: bytes, rows: int | None) -> Synthesis:
    """What is shown, from what is stored; it has no certificate yet."""
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays.pop("header")))
    weights = Weights(request.domain, arrays["weights"].astype(np.float64), _bound(header["bounds"]))
    many = max(1, min(round(weights.total), USUAL_ROWS)) if rows is None else rows
    drawn = weights.table(many, entropy=Entropy.of_released(payload))
    columns = {column.name: column.restored(drawn.columns[column.name]) for column in request.columns}
    errors = _errors(request, arrays, weights.total)
    return Synthesis(SyntheticTable(columns), weights, errors, request.loss, {}, header["private"], request)


def plan_of(payload: bytes) -> dict[str, Any]:
    """What was decided about stored rows beforehand."""
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        plan: dict[str, Any] = json.loads(str(file["header"]))["plan"]
    return plan


def _bound(bounds: Sequence[float | None]) -> Any:
    """The bound at the next smaller β that was kept."""
    if any(bound is None for bound in bounds):
        return None
    return lambda beta: next((float(b or 0) for at, b in zip(BETAS, bounds, strict=True) if at <= beta), math.inf)


def _errors(request: Request, arrays: Mapping[str, Any], total: float) -> tuple[BlockError, ...]:
    check = request.check
    if check is None:
        return ()
    each, mean = arrays["scales"].tolist()
    normal = isinstance(check.budget, ZCDP)
    means = [
        BlockError(_mean(number), 0, number, float(value), mean, normal, total)
        for number, value in zip(check.orders, arrays["means"].tolist(), strict=True)
    ]
    domain, values = request.domain, arrays["errors"].tolist()
    blocks = [
        BlockError(label, block.count(domain), order(block), value, each, normal, total)
        for label, block, value in zip(request.labels, check.blocks, values, strict=False)
    ]
    return (*means, *blocks)


def _mean(number: int) -> str:
    return "mean of other conditions" if not number else f"mean of {number} column{'s' * (number > 1)}"


def _known(columns: Sequence[Column], public: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Rows of a public table by column, as attributes have them, without those that private rows would be left out for:
    with values that are not listed, or without a number."""
    found = []
    for column in columns:
        given = public[column.name]
        values = given.tolist() if hasattr(given, "tolist") else list(given)
        held = dict(zip(column.keys, column.attribute.values, strict=True))
        if column.binned:
            found.append([value if isinstance(value, int | float) and value == value else _UNKNOWN for value in values])
        else:
            found.append([held.get(value, _UNKNOWN) for value in values])
    kept = [row for row in zip(*found, strict=True) if _UNKNOWN not in row]
    return {column.name: [row[place] for row in kept] for place, column in enumerate(columns)}

"""An estimate: what the ledger stored of it, and what is made of that.

`released` is the one thing that looks at rows. Nothing about them decides between success and failure: columns are made
by their types alone, value by value, and what a type cannot hold is missing. Numbers are doubles with NaN for NULL, and
so are conditions (1 and 0); texts are str or None; dates and times are datetime64 with NaT.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.core.arrays import reals
from discreet.core.display.columns import Cells, measured
from discreet.core.display.html import block as piece
from discreet.core.display.html import broken, facts, note, table
from discreet.core.display.numbers import loss as loss_text
from discreet.core.display.numbers import shown
from discreet.core.display.text import visible
from discreet.core.losses import Loss
from discreet.core.mechanism import Release
from discreet.engines.engine import Engine
from discreet.estimation.request import Request
from discreet.noise.entropy import Entropy
from discreet.robust.aggregation.blocks import blocks_of
from discreet.robust.aggregation.numeric import Centre
from discreet.robust.sandbox.forkserver import read, written
from discreet.robust.sandbox.workers import Workers
from discreet.robust.stability import Unstable
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals

__all__ = ["Estimation", "assembled", "released"]

MOMENTS: dict[Type, str] = {"date": "s", "timestamp": "us"}
"""To what dates and times are exact."""
LEVEL = 0.95


@dataclass(frozen=True)
class Estimation:
    """What a function gives on private rows, nearly: a number, an array of them, a label, or `Unstable`.

    `private` is False when the noise came from a test seed: such an estimate carries no guarantee at all.
    """

    values: Any
    names: tuple[str, ...]
    loss: Loss
    plan: str = field(repr=False)
    release: Release = field(repr=False)
    certificate: dict[str, Any] = field(repr=False)
    private: bool = True

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The values as one row, for certificates."""
        if isinstance(self.values, float | np.ndarray):
            return (tuple(float(value) for value in np.ravel(self.values)),)
        plain = self.values is None or isinstance(self.values, bool | int | str)
        return ((self.values if plain else str(self.values),),)

    def intervals(self, level: float = LEVEL) -> Any:
        """(low, high) of each number, for means of what blocks give: about noise alone, not about how far blocks are
        from all data. Medians and answers that are no numbers have none."""
        return self.release.intervals(level)

    def __str__(self) -> str:
        lines = [": ".join(pair) for pair in zip(*(column.texts for column in self._cells()[:2]), strict=True)]
        warning = [] if self.private else ["NOT PRIVATE: the randomness came from a test seed"]
        told = [*lines, *self._notes(), f"cost {loss_text(self.loss)}", *warning]
        return "\n".join(visible(line) for line in told)

    def _repr_html_(self) -> str:
        told = [("plan", broken(self.plan.split("; "))), ("cost", loss_text(self.loss))]
        warning = "" if self.private else note("NOT PRIVATE: the randomness came from a test seed.", alarm=True)
        return piece(table(self._cells()), *map(note, self._notes()), facts(told), warning)

    def _notes(self) -> list[str]:
        told = "most blocks had no answer: they were empty, failed, ran too long, or gave what is no answer"
        return [told] if self.values is None else []

    def _cells(self) -> list[Cells]:
        if self.release.error is None:
            listed = [shown(value) for value in self.rows[0]]
            return [Cells("", list(self.names)), Cells("estimate", listed, right=True)]
        ends = np.reshape(self.intervals(), (-1, 2)).tolist()
        spans = [(low, high) for low, high in ends]
        return [Cells("", list(self.names)), *measured("estimate", [*self.rows[0]], spans, "95 %, noise")]


def released(
    request: Request, engine: Engine, workers: Workers, source: Entropy, progress: Callable[[float], None]
) -> bytes:
    """The aggregated answers, as the ledger stores them. This is what looks at the data."""
    aggregator, fields = request.aggregator, request.rows.visible
    rows = engine.run(request.statement)
    listed = [*zip(*rows, strict=True)] if rows else [()] * (len(fields) + 1)
    columns = {one.label: column_of(listed[place], one.type) for place, one in enumerate(fields)}
    units = listed[len(fields)] if request.rows.owned else np.arange(len(rows))
    del rows, listed
    blocks = blocks_of(units, aggregator.blocks, aggregator.rounds, entropy=source)

    def block(number: int) -> bytes | None:
        places = blocks[number]
        held = {name: column[places] for name, column in columns.items()}
        return pickle.dumps(held, protocol=5) if places.size else None

    answers = [aggregator.read(raw) for raw in workers.answers(block, len(blocks), progress)]
    kept: dict[str, Any] = {"private": source.private}
    if isinstance(aggregator, Centre):
        kept["values"], kept["steps"] = aggregator.measured(answers, source)
    else:
        value = aggregator.release(answers, entropy=source).values
        kept["label"] = None if isinstance(value, Unstable) else written(value).decode()
    return json.dumps(kept).encode()


def assembled(request: Request, payload: bytes) -> Estimation:
    """What is shown, from what is stored; it has no certificate yet."""
    kept, aggregator = json.loads(payload), request.aggregator
    if isinstance(aggregator, Centre):
        release = aggregator.shown(kept["values"], kept["steps"], kept["private"])
    else:
        value = Unstable(request.loss) if kept["label"] is None else read(kept["label"].encode())
        release = Release(value, request.loss, request.events, None, kept["private"])
    return Estimation(release.values, request.names, request.loss, request.words, release, {}, kept["private"])


def column_of(values: Sequence[Any], kind: Type) -> np.ndarray[Any, np.dtype[Any]]:
    """A column by its type alone: whatever the values are, it has the same dtype, and nothing raises."""
    held = np.empty(len(values), dtype=object)
    held[:] = values
    if kind in ("integer", "real", "boolean"):
        return reals("values", held)
    if isinstance(kind, Decimals):
        return reals("values", held) / float(10**kind.scale)
    if kind == "text":
        return held
    moments = np.full(len(values), "NaT", dtype=f"datetime64[{MOMENTS[kind]}]")
    for place, value in enumerate(values):
        try:
            moments[place] = value if value is not None else "NaT"
        except (ValueError, TypeError, OverflowError):
            moments[place] = "NaT"
    return moments

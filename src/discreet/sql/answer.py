"""An answer: rows that may leave, how wrong they may be, and what they cost.

`assemble` turns released sums into measures and runs outputs, HAVING, ORDER BY and LIMIT on them: all post-processing
of released values. `Answer` is what the analyst holds; it is built from the bytes the ledger stored.
"""

from __future__ import annotations

import datetime
import html
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.exact import Exactable, probability
from discreet.core.losses import Loss
from discreet.sql.measurement import Noisy
from discreet.sql.plan import Literal, Measure, Query, Ref
from discreet.sql.relations import quoted, text_of
from discreet.sql.statement import Norm
from discreet.sql.statistics import Statistic, Sums

__all__ = ["Answer", "assemble", "pack", "unpack"]

_PLACE = "discreet place"


@dataclass(frozen=True)
class Answer:
    """Released rows with their loss and certificate.

    `private` is False when the noise came from a test seed: such an answer carries no guarantee at all.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    loss: Loss
    certificate: dict[str, Any]
    notes: tuple[str, ...]
    private: bool
    spans: dict[str, Any]

    def column(self, name: str) -> list[Any]:
        """One column."""
        if name not in self.names:
            raise InvalidArgument("name", name, f"one of {list(self.names)}", "name a column of the answer")
        return [row[self.names.index(name)] for row in self.rows]

    def intervals(self, level: Exactable = 0.95) -> dict[str, list[tuple[float, float]]]:
        """For each column that is a measure, ends that hold its noiseless value with probability at least `level`."""
        tail = float(1 - probability("level", level))
        return {name: [_span(parts, tail, self.spans["norm"]) for parts in rows] for name, rows in self._measured()}

    def _measured(self) -> list[tuple[str, list[dict[str, Any]]]]:
        return list(self.spans["columns"].items())

    def to_pandas(self) -> Any:
        """The rows as a pandas frame."""
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(self.names))

    def __str__(self) -> str:
        table = [self.names, *([_shown(value) for value in row] for row in self.rows)]
        widths = [max(len(str(row[i])) for row in table) for i in range(len(self.names))]
        lines = ["  ".join(str(cell).rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join([*lines, f"({self.loss})", *self.notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(value))}</td>" for value in row) + "</tr>" for row in self.rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in (str(self.loss), *self.notes))
        return f"<table><tr>{head}</tr>{body}</table>{notes}"


def pack(noisy: Noisy, private: bool) -> bytes:
    """Released sums as bytes: what the ledger stores, before anything else is done to them."""
    stored = {
        "keys": [[_plain(part) for part in key] for key in noisy.keys],
        "sums": noisy.sums.tolist(),
        "scales": list(noisy.scales),
        "clipped_at": noisy.clipped_at,
        "hidden_below": noisy.hidden_below,
        "private": private,
    }
    return json.dumps(stored).encode()


def unpack(payload: bytes) -> tuple[Noisy, bool]:
    """The released sums a ledger stored, and whether they are private."""
    stored = json.loads(payload)
    keys = tuple(tuple(_revived(part) for part in key) for key in stored["keys"])
    sums = np.array(stored["sums"], dtype=np.float64).reshape(len(keys), len(stored["scales"]))
    noisy = Noisy(keys, sums, tuple(stored["scales"]), stored["clipped_at"], stored["hidden_below"])
    return noisy, stored["private"]


def assemble(
    query: Query,
    sums: Sums,
    statistics: Sequence[Statistic],
    norm: Norm,
    payload: bytes,
    loss: Loss,
    certificate: dict[str, Any],
) -> Answer:
    """The answer: measures from the stored sums, then everything the query does to released values."""
    noisy, private = unpack(payload)
    measures = query.aggregate.measures
    table: list[tuple[Any, ...]] = []
    for place, (key, row) in enumerate(zip(noisy.keys, noisy.sums, strict=True)):
        values = dict(zip(statistics, row.tolist(), strict=True))
        answers = [_rounded(m.function, sums.answer(i, values)) for i, m in enumerate(measures)]
        table.append((place, *key, *answers))
    shown = _post_process(query, table)
    columns = {}
    for output in query.outputs:
        wanted = output.expression.name if isinstance(output.expression, Ref) else None
        index = next((i for i, measure in enumerate(measures) if measure.name == wanted), None)
        if index is not None:
            needs = sums.needs(index)
            places = [statistics.index(need) for need in needs]
            columns[output.name] = [
                {
                    "function": measures[index].function,
                    "middle": float(needs[0].middle),
                    "bounds": _ends(measures[index]),
                    "sums": [float(noisy.sums[row[0]][p]) for p in places],
                    "scales": [noisy.scales[p] for p in places],
                }
                for row in shown
            ]
    notes = [] if noisy.clipped_at is None else [_clipping_note(noisy.clipped_at, norm)]
    if noisy.hidden_below is not None:
        least = f"{noisy.hidden_below:,.0f}"
        notes.append(f"Groups of fewer than about {least} units are withheld; declare values to see all.")
    if not private:
        notes.append("NOT PRIVATE: the noise came from a test seed.")
    names = tuple(output.name for output in query.outputs)
    rows = tuple(row[1:] for row in shown)
    return Answer(names, rows, loss, certificate, tuple(notes), private, {"norm": norm, "columns": columns})


def _clipping_note(norm_cap: float, norm: Norm) -> str:
    kind = "root of the sum of squares" if norm == "l2" else "sum"
    return (
        f"Each unit's rows weigh at most {norm_cap:g} ({kind} over groups). Intervals cover the noise, not what heavier"
        " units lost by that: if many units have more rows, counts and sums are too low."
    )


def _post_process(query: Query, table: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Outputs, HAVING, ORDER BY and LIMIT, by the same functions as on rows; ties keep the order of the keys."""
    import duckdb

    if not table:
        return []
    aggregate = query.aggregate
    names = [_PLACE, *(key.name for key in aggregate.keys), *(measure.name for measure in aggregate.measures)]
    kinds = [key.expression.type for key in aggregate.keys]
    rows = ", ".join(
        "(" + ", ".join([str(row[0]), *_cells(row[1:], kinds, len(aggregate.measures))]) + ")" for row in table
    )
    listed = ", ".join(quoted(name) for name in names)
    outputs = ", ".join(f"{text_of(o.expression)} AS {quoted(o.name)}" for o in query.outputs)
    having = f" WHERE {text_of(query.having)}" if query.having is not None else ""
    order = "".join(f"{text_of(o.expression)} {'DESC' if o.descending else 'ASC'}, " for o in query.order)
    limit = f" LIMIT {query.limit}" if query.limit is not None else ""
    statement = (
        f"SELECT {quoted(_PLACE)}, {outputs} FROM (VALUES {rows}) AS released({listed}){having}"
        f" ORDER BY {order}{quoted(_PLACE)}{limit}"
    )
    try:
        with duckdb.connect(":memory:") as connection:
            return connection.execute(statement).fetchall()
    except duckdb.Error:
        reason = "its outputs, HAVING, ORDER BY or LIMIT failed on the released values"
        raise Unsupported("this question", reason, "simplify them; the stored answer stays yours") from None


def _cells(values: Sequence[Any], kinds: Sequence[Any], measures: int) -> list[str]:
    exact = [Fraction(v) if isinstance(v, float) and math.isfinite(v) else v for v in values]
    keys = [text_of(Literal(value, kind)) for value, kind in zip(exact, kinds, strict=False)]
    numbers = [f"CAST({value!r} AS {'BIGINT' if isinstance(value, int) else 'DOUBLE'})" for value in values[-measures:]]
    return keys + (numbers if measures else [])


def _rounded(function: str, value: float) -> int | float:
    return round(value) if function in ("count", "count_units") else value


def _span(parts: dict[str, Any], tail: float, norm: Norm) -> tuple[float, float]:
    """The range of a measure over the box of its sums' intervals, each at an equal share of the tail."""
    share = tail / len(parts["sums"])
    if norm == "l1":
        reach = float(np.log(1 / share))
    else:
        from scipy.special import ndtri

        reach = -float(ndtri(share / 2))
    ends = [(s - reach * scale, s + reach * scale) for s, scale in zip(parts["sums"], parts["scales"], strict=True)]
    function, middle = parts["function"], parts["middle"]
    values = [_measure(function, middle, corner) for corner in itertools.product(*ends)]
    least, most = parts["bounds"]
    return max(min(values), least), min(max(values), most)


def _ends(measure: Measure) -> tuple[float, float]:
    """What the measure can be at all: an average lies within its bounds."""
    if measure.function == "avg" and measure.bounds is not None:
        return float(measure.bounds.lower), float(measure.bounds.upper)
    return (0.0 if measure.function in ("variance", "stddev") else -1e308), 1e308


def _measure(function: str, middle: float, corner: Sequence[float]) -> float:
    if function in ("count", "count_units") or len(corner) == 1:
        return corner[0]
    number = max(corner[1], 1.0)
    if function == "sum":
        return corner[0] + middle * corner[1]
    if function == "avg":
        return middle + corner[0] / number
    variance = max(corner[2] - corner[0] ** 2 / number, 0.0) / max(number - 1, 1.0)
    return float(np.sqrt(variance)) if function == "stddev" else variance


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _revived(value: Any) -> Any:
    if isinstance(value, dict):
        kind, text = next(iter(value.items()))
        return (datetime.datetime if kind == "timestamp" else datetime.date).fromisoformat(text)
    return value


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

"""An answer: rows that may leave, how wrong they may be, and what they cost.

`assemble` turns released sums into measures and runs outputs, HAVING, ORDER BY and LIMIT on them: all post-processing
of released values. `Answer` is what the analyst holds; it is built from the bytes the ledger stored.
"""

from __future__ import annotations

import datetime
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.exact import Exactable, probability
from discreet.core.losses import Loss
from discreet.core.no_answer import Unstable
from discreet.sql.answers import exports
from discreet.sql.answers.confidence import Spans
from discreet.sql.answers.notes import by_luck, notes
from discreet.sql.bounding.sums import Sums
from discreet.sql.catalog import Type
from discreet.sql.measuring.clipping_loss import Tally
from discreet.sql.measuring.dispersion import Drawn
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.modes import Chosen
from discreet.sql.measuring.quantiles import Released
from discreet.sql.measuring.run import Noisy
from discreet.sql.plan import Literal, Measure, Query, Ref
from discreet.sql.relations import names_in
from discreet.sql.statement.constants import desk
from discreet.sql.statement.dialect import quoted
from discreet.sql.statement.naming import PLACE, Names, substituted
from discreet.sql.statement.selection import text_of

__all__ = ["Answer", "assemble", "pack", "plan_of", "unpack"]


@dataclass(frozen=True)
class Answer:
    """Released rows with their loss and certificate.

    It has the length of its rows, iterates over them, and `answer["n"]` is `answer.column("n")`.
    `private` is False when the noise came from a test seed: such an answer carries no guarantee at all.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    loss: Loss
    certificate: dict[str, Any]
    private: bool
    query: Query
    spans: Spans
    measured: dict[str, int]
    """The columns that are measures."""
    places: tuple[int, ...]
    """Which released row each row shows."""

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What to know about the rows and their intervals."""
        return tuple(notes(self.query, self.spans, self.measured, self.places, self.private))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell the groups apart."""
        return tuple(_keys(self.query))

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the columns."""
        return tuple(output.expression.type for output in self.query.outputs)

    def column(self, name: str) -> list[Any]:
        """One column."""
        if name not in self.names:
            raise InvalidArgument("name", name, f"one of {list(self.names)}", "name a column of the answer")
        return [row[self.names.index(name)] for row in self.rows]

    def intervals(self, level: Exactable = 0.95) -> dict[str, list[tuple[float, float]]]:
        """For each column that is a measure, ends that hold its true value with probability at least `level`; `notes`
        say where they hold the value after clipping. Of rows that were chosen for what was measured, the luckiest are
        shown: there the ends hold the values of all rows at once, those not chosen too."""
        held = float(probability("level", level))
        if by_luck(self.query):
            held = 1 - (1 - held) / max(len(self.spans.noisy.keys), 1)
        return {
            name: [self.spans.interval(index, place, held) for place in self.places]
            for name, index in self.measured.items()
        }

    def to_pandas(self, level: Exactable | None = None) -> Any:
        """The rows as a pandas frame; with a level, each measure is followed by the ends of its interval."""
        return exports.pandas(self, level)

    def to_polars(self, level: Exactable | None = None) -> Any:
        """The rows as a Polars frame, with ends of intervals as `to_pandas` has them."""
        return exports.polars(self, level)

    def to_arrow(self, level: Exactable | None = None) -> Any:
        """The rows as an Arrow table, with ends of intervals as `to_pandas` has them."""
        return exports.arrow(self, level)

    def plot(self, level: Exactable = 0.95) -> Any:
        """An Altair chart of the measures by the keys, with their intervals."""
        from discreet.sql.answers.charts import chart

        return chart(self, level)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> list[Any]:
        return self.column(name)

    def __str__(self) -> str:
        from discreet.sql.answers.html import answer_text

        return answer_text(self)

    def _repr_html_(self) -> str:
        from discreet.sql.answers.html import answer_html

        return answer_html(self)


def pack(noisy: Noisy, private: bool, plan: Mapping[str, Any] | None = None) -> bytes:
    """Released sums as bytes: what the ledger stores, before anything else is done to them; with what was decided
    about them beforehand (`Asked.record`)."""
    stored = {
        "plan": plan,
        "keys": [[_plain(part) for part in key] for key in noisy.keys],
        "sums": b64encode(noisy.sums.astype("<f8").tobytes()).decode("ascii"),
        "scales": noisy.scales,
        "norms": noisy.norms,
        "heavy": noisy.heavy,
        "hidden_below": noisy.hidden_below,
        "drawn": [[_stored(each) for each in column] for column in noisy.drawn],
        "tally": None if noisy.tally is None else [noisy.tally.lost, noisy.tally.kept, noisy.tally.deviation],
        "private": private,
    }
    return json.dumps(stored).encode()


def unpack(payload: bytes) -> tuple[Noisy, bool]:
    """The released sums a ledger stored, and whether they are private."""
    stored = json.loads(payload)
    keys = tuple(tuple(_revived(part) for part in key) for key in stored["keys"])
    written = stored["sums"]
    # Older books have digits.
    doubles = written if isinstance(written, list) else np.frombuffer(b64decode(written), dtype="<f8")
    sums = np.array(doubles, dtype=np.float64).reshape(len(keys), len(stored["scales"]))
    norms = None if stored["norms"] is None else tuple(stored["norms"])
    heavy = tuple((base, slope) for base, slope in stored["heavy"])
    drawn = tuple(_restored(column) for column in stored["drawn"])
    tally = None if stored.get("tally") is None else Tally(*stored["tally"])
    noisy = Noisy(keys, sums, tuple(stored["scales"]), norms, heavy, stored["hidden_below"], drawn, tally)
    return noisy, stored["private"]


def plan_of(payload: bytes) -> dict[str, Any]:
    """What was decided beforehand about stored sums. Only books of earlier versions have sums without it, under
    identities of their own."""
    plan: dict[str, Any] = json.loads(payload)["plan"]
    return plan


def assemble(
    query: Query,
    sums: Sums,
    measurement: Measurement,
    payload: bytes,
    loss: Loss,
    certificate: dict[str, Any],
) -> Answer:
    """The answer: measures from the stored sums, then everything the query does to released values."""
    noisy, private = unpack(payload)
    measures, statistics = query.aggregate.measures, measurement.statistics
    values = {s: noisy.sums[:, place] * noisy.raised(statistics[place]) for place, s in enumerate(sums.statistics)}
    drawn = iter(noisy.drawn)
    columns = [
        _told(m, [each.value for each in next(drawn)] if m.aggregation.is_ranked else sums.answer(i, values).tolist())
        for i, m in enumerate(measures)
    ]
    answers = zip(*columns, strict=True) if columns else [()] * len(noisy.keys)
    table = [(place, *key, *row) for place, (key, row) in enumerate(zip(noisy.keys, answers, strict=True))]
    shown = _refused(query, _post_process(query, table), noisy, loss)
    spans = Spans(sums, measures, measurement, noisy)
    indices = {measure.name: index for index, measure in enumerate(measures) if not measure.aggregation.is_chosen}
    measured = {
        output.name: indices[output.expression.name]
        for output in query.outputs
        if isinstance(output.expression, Ref) and output.expression.name in indices
    }
    return Answer(
        tuple(output.name for output in query.outputs),
        tuple(row[1:] for row in shown),
        loss,
        certificate,
        private,
        query,
        spans,
        measured,
        tuple(row[0] for row in shown),
    )


def _keys(query: Query) -> Iterator[str]:
    """Outputs made of keys, each of which says something about the groups that those before it do not."""
    keys, told = {key.name for key in query.aggregate.keys}, set[str]()
    for output in query.outputs:
        used = names_in(output.expression)
        if used <= keys and not used <= told:
            told |= used
            yield output.name


def _refused(query: Query, shown: list[tuple[Any, ...]], noisy: Noisy, loss: Loss) -> list[tuple[Any, ...]]:
    """The rows with ⊥ where a measure has no value; what is computed from it is NULL."""
    ranked = [measure.name for measure in query.aggregate.measures if measure.aggregation.is_ranked]
    columns = dict(zip(ranked, noisy.drawn, strict=True))
    without = {
        (place, output)
        for output, named in enumerate(query.outputs, 1)
        if isinstance(named.expression, Ref)
        for place, each in enumerate(columns.get(named.expression.name, ()))
        if isinstance(each, Chosen) and not each.stable
    }
    if not without:
        return shown
    refusal = Unstable(loss)
    return [tuple(refusal if (row[0], i) in without else value for i, value in enumerate(row)) for row in shown]


def _post_process(query: Query, table: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Outputs, HAVING, ORDER BY and LIMIT, by the same functions as on rows; ties keep the order of the keys."""
    aggregate = query.aggregate
    released = [*(key.name for key in aggregate.keys), *(measure.name for measure in aggregate.measures)]
    if not table or (_only_columns(query) and query.limit is None):
        columns = {name: column for column, name in enumerate(released, 1)}
        wanted = [0, *(columns[o.expression.name] for o in query.outputs if isinstance(o.expression, Ref))]
        return [*map(itemgetter(*wanted), table)]
    import duckdb

    kinds = [key.expression.type for key in aggregate.keys]
    listing = ", ".join(
        "(" + ", ".join([str(row[0]), *_cells(row[1:], kinds, aggregate.measures)]) + ")" for row in table
    )
    # What the analyst calls keys, measures and outputs is in no statement, here as on rows.
    names = Names()
    called = {name: names.new() for name in released}
    listed = ", ".join(quoted(name) for name in (PLACE, *called.values()))
    outputs = ", ".join(f"{text_of(substituted(o.expression, called))} AS {quoted(names.new())}" for o in query.outputs)
    having = "" if query.having is None else f" WHERE {text_of(substituted(query.having, called))}"
    # A constant sorts nothing, and DuckDB refuses some of them.
    sorted_by = [o for o in query.order if names_in(o.expression)]
    sorting = [(text_of(substituted(o.expression, called)), "DESC" if o.descending else "ASC") for o in sorted_by]
    order = "".join(f"{expression} {way}, " for expression, way in sorting)
    limit = f" LIMIT {query.limit}" if query.limit is not None else ""
    statement = (
        f"SELECT {quoted(PLACE)}, {outputs} FROM (VALUES {listing}) AS released({listed}){having}"
        f" ORDER BY {order}{quoted(PLACE)}{limit}"
    )
    try:
        rows: list[tuple[Any, ...]] = desk().execute(statement).fetchall()
        return rows
    except duckdb.Error:
        reason = "its outputs, HAVING, ORDER BY or LIMIT failed on the released values"
        raise Unsupported("this question", reason, "simplify them; the stored answer stays yours") from None


def _only_columns(query: Query) -> bool:
    """Whether the released values are shown as they are."""
    return not query.order and query.having is None and all(isinstance(o.expression, Ref) for o in query.outputs)


def _cells(values: Sequence[Any], kinds: Sequence[Type], measures: Sequence[Measure]) -> list[str]:
    keys = [_literal(value, kind) for value, kind in zip(values, kinds, strict=False)]
    numbers = [
        _literal(value, measure.argument.type)
        if measure.aggregation.is_chosen and measure.argument is not None
        else f"CAST({value!r} AS {_engine_type(value)})"
        for value, measure in zip(values[len(kinds) :], measures, strict=True)
    ]
    return keys + numbers


def _literal(value: Any, kind: Type) -> str:
    exact = Fraction(value) if isinstance(value, float) and math.isfinite(value) else value
    return text_of(Literal(exact, kind))


def _engine_type(value: float) -> str:
    return "BIGINT" if isinstance(value, int) and abs(value) < 1 << 63 else "DOUBLE"


def _told(measure: Measure, values: list[Any]) -> list[Any]:
    """Counts, and sums, least and largest of whole numbers, are whole numbers."""
    whole = measure.type == "integer" and not measure.aggregation.is_chosen
    return [round(value) for value in values] if whole else values


def _stored(drawn: Drawn | Chosen) -> list[Any]:
    """A value with its ends; what was chosen alone, and nothing for ⊥."""
    if isinstance(drawn, Drawn):
        return [drawn.value, drawn.low, drawn.high]
    return [_plain(drawn.value)] if drawn.stable else []


def _restored(column: Sequence[Sequence[Any]]) -> Released:
    if column and len(column[0]) == 3:
        return tuple(Drawn(*each) for each in column)
    return tuple(Chosen(_revived(each[0])) if each else Chosen(None, False) for each in column)


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

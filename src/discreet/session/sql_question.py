"""A question in SQL: as it was asked, and with everything decided before the data is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from discreet.accounting.budgets import loss_of
from discreet.charging.epsilon_search import epsilon_for, epsilon_within
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import to_json
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ZCDP, Budget
from discreet.ledger.charges import LONGEST_PAYLOAD
from discreet.sql.aggregates import Sum
from discreet.sql.analysis.canonical import bounds_text, canonical
from discreet.sql.answers.answer import Answer, assemble
from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.bounding.sums import Statistic, Sums
from discreet.sql.measuring.expectation import expected_errors
from discreet.sql.measuring.explanation import plan_in_words
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.modes import Mode
from discreet.sql.measuring.planner import plan
from discreet.sql.measuring.quantiles import Cells, Rank
from discreet.sql.parsing.effort import check_effort
from discreet.sql.plan import Expression, Query
from discreet.sql.relations import copies_in, is_owned
from discreet.sql.statement.builder import statement
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.layout import Weights
from discreet.sql.statement.results import EXACT

__all__ = ["Asked", "Parsed", "Reading"]

BYTES_OF_A_SUM, BYTES_OF_A_RANK = 11, 90
"""A double in base 64; a value with its two ends, in up to 25 characters each."""
EMBEDDED, BYTES_BESIDE = 30, 100_000
"""Characters beside a key, {"timestamp": …} say; and all that is stored once."""
FORMAT = 2
"""Of identities. What a number means never changes."""


@dataclass(frozen=True)
class Parsed:
    """A question in SQL, as it was asked: nothing is planned yet.

    Its identity is what it is stored under. It says what is measured, from which tables, under which declarations and
    for which ε, or which error; never what a planner makes of that. So a better planner gives new questions better
    answers, and leaves those that were paid for free.
    """

    query: Query
    sources: dict[str, str]
    """Where the tables are, by name (`Session._sources`)."""
    epsilon: Fraction | None
    error: Fraction | None
    """Instead of ε, the mean absolute error that no count or sum shall exceed."""
    changes: int
    budget: Budget
    dialect: Dialect
    rho: Fraction | None = None
    """Instead of ε, the ρ that it may cost, under a budget in ρ."""
    in_doubles: Callable[[], Query] | None = None
    """The query as versions before exact decimals read it."""

    @property
    def identity(self) -> str:
        """One text for one question, whatever it is called and whatever is done with it afterwards."""
        given = {"epsilon": self.epsilon, "error": self.error, "rho": self.rho}
        price = {name: str(value) for name, value in given.items() if value is not None}
        said = {
            "format": FORMAT,
            "kind": "sql",
            "aggregate": canonical(self.query.aggregate),
            "changes": self.changes,
            "copies": copies_in(self.query.aggregate.input),
            "sources": self.sources,
            **price,
        }
        return json.dumps(said, sort_keys=True)

    def planned(self) -> Asked:
        """The question with everything decided."""
        if self.epsilon is not None:
            return self._asked(self.epsilon)
        if self.rho is not None:
            return self._asked(epsilon_within(self.rho, lambda trial: self._asked(trial).measurement.events))
        assert self.error is not None
        # What is promised holds only if nothing is clipped: no limit below the declared one is looked for.
        found = epsilon_for(float(self.error), lambda trial: self._asked(trial, whole=True).errors)
        return self._asked(found, whole=True)

    def formerly(self, asked: Asked) -> Iterator[Asked]:
        """As earlier versions planned it: as it is now, and where decimals are in it, with doubles in their place."""
        yield asked
        if self.in_doubles is not None and "decimal(" in asked.former_identity:
            # What could not be asked in doubles was not asked.
            with suppress(InvalidArgument, Unsupported):
                yield replace(self, query=self.in_doubles(), in_doubles=None).planned()

    def _asked(self, epsilon: Fraction, whole: bool = False) -> Asked:
        terms = (epsilon, self.changes, self.budget, self.dialect, whole)
        # Gaussian noise costs the least ρ; what is asked for ε keeps a pure loss.
        return Asked.of(self.query, self.sources, *terms, isinstance(self.budget, ZCDP) and self.epsilon is None)


@dataclass(frozen=True)
class Reading:
    """How stored sums are read: what was decided when they were released."""

    sums: Sums
    measurement: Measurement
    epsilon: Fraction
    words: str

    @classmethod
    def of(cls, query: Query, record: Mapping[str, Any]) -> Reading:
        """From what was stored beside the sums (`Asked.record`)."""
        measures = query.aggregate.measures
        statistics = tuple(
            Statistic(
                Sum(stored["kind"]),
                None if stored["measure"] is None else measures[stored["measure"]].argument,
                None if stored["bounds"] is None else Bounds(*map(Fraction, stored["bounds"])),
                stored["of_mean"],
                tuple(map(Fraction, stored["values"])),
            )
            for stored in record["statistics"]
        )
        by_values = None if record["by_values"] is None else Fraction(record["by_values"])
        measurement = Measurement(
            statistics,
            record["norm"],
            Fraction(1),  # noise that is drawn already
            record["changes"],
            max_rows=record["max_rows"],
            by_values=by_values,
        )
        return cls(Sums(measures, record["apart"]), measurement, Fraction(record["epsilon"]), record["words"])

    def answer(self, query: Query, payload: bytes, loss: Budget) -> Answer:
        """What is shown of stored sums; it has no certificate yet."""
        return assemble(query, self.sums, self.measurement, payload, loss, {})


@dataclass(frozen=True)
class Asked:
    """A question with everything decided before the data is touched."""

    query: Query
    sums: Sums
    ranked: list[tuple[Expression, Rank | Mode]]
    listed: list[tuple[Any, ...]] | None
    measurement: Measurement
    epsilon: Fraction
    budget: Budget
    sources: dict[str, str]
    dialect: Dialect

    @classmethod
    def of(
        cls,
        query: Query,
        sources: dict[str, str],
        epsilon: Fraction,
        changes: int,
        budget: Budget,
        dialect: Dialect,
        whole: bool = False,
        gaussian: bool = False,
    ) -> Asked:
        """The plan of a query for ε; if `whole`, declared limits are not searched below, so that nothing is clipped; if
        `gaussian`, all noise is, under a budget in ρ."""
        listed = _listed_keys(query)
        owned, max_rows = is_owned(query.aggregate.input), query.aggregate.max_rows
        # Where the most rows of a unit are declared, intervals can cover clipping, and averages keep to the same limit.
        sums = Sums(query.aggregate.measures, apart=owned and max_rows is None)
        ranked = _ranked(query, None if listed is None else len(listed))
        statistics = sums.statistics
        if listed is None and not any(s.kind is Sum.UNITS for s in statistics):
            statistics = (*statistics, Statistic(Sum.UNITS, None))
        check_effort(query.aggregate, statistics, len(ranked))
        measurement = plan(
            statistics,
            keys=None if listed is None else len(listed),
            owned=owned,
            max_rows=max_rows,
            changes=changes,
            copies=copies_in(query.aggregate.input),
            budget=budget,
            epsilon=epsilon,
            ranks=tuple(rank for _, rank in ranked),
            whole=whole,
            gaussian=gaussian,
        )
        return cls(query, sums, ranked, listed, measurement, epsilon, budget, sources, dialect)

    @property
    def former_identity(self) -> str:
        """What earlier versions knew the question by, which books of theirs have it under. It names what their planner
        chose, in the words of their classes; both are spelled here, and nothing about them may change."""
        measurement = self.measurement
        said = {
            "aggregate": canonical(self.query.aggregate),
            "statistics": [[s.kind, s.of_mean, _former_bounds(s.bounds)] for s in measurement.statistics],
            "events": [to_json(event) for event in measurement.events],
            "limits": [_former_weights(measurement.weights), measurement.max_rows],
            "sources": self.sources,
        }
        return json.dumps(said)

    @property
    def reading(self) -> Reading:
        """How the sums that will be stored are read."""
        return Reading(self.sums, self.measurement, self.epsilon, self.words)

    @property
    def record(self) -> dict[str, Any]:
        """What is stored beside released sums, so that they can be read whatever a later planner would choose."""
        measurement, measures = self.measurement, self.query.aggregate.measures
        return {
            "epsilon": str(self.epsilon),
            "words": self.words,
            "apart": self.sums.apart,
            "norm": measurement.norm,
            "changes": measurement.changes,
            "max_rows": measurement.max_rows,
            "by_values": None if measurement.by_values is None else str(measurement.by_values),
            "statistics": [
                {
                    "kind": statistic.kind,
                    "measure": next((i for i, m in enumerate(measures) if m.argument == statistic.argument), None),
                    "bounds": bounds_text(statistic.bounds),
                    "of_mean": statistic.of_mean,
                    "values": [str(value) for value in statistic.values],
                }
                for statistic in measurement.statistics
            ],
        }

    @property
    def valued(self) -> list[int]:
        """Which of the ranked count values as they are."""
        return [place for place, (_, rank) in enumerate(self.ranked) if isinstance(rank, Mode)]

    @property
    def errors(self) -> tuple[ExpectedError, ...]:
        """How far each column is likely off."""
        return expected_errors(self.query, self.sums, self.measurement)

    @cached_property
    def statement(self) -> str:
        return self.written()

    @property
    def is_wide(self) -> bool:
        """Whether sums are wide at once, at row level: where others could not hold those of 2²⁷ rows."""
        largest = max((s.bound * s.fineness for s in self.measurement.statistics), default=0)
        return self.measurement.weights is None and largest > EXACT >> 27

    def written(self, wide: bool = False) -> str:
        """What the engine runs; at row level, with `wide` sums only if others could not hold them."""
        wide = wide or self.is_wide
        cells = [(argument, None if isinstance(rank, Mode) else rank.cells) for argument, rank in self.ranked]
        measurement = self.measurement
        return statement(self.query.aggregate, measurement.statistics, measurement.weights, cells, self.dialect, wide)

    def check(self, prepare: Callable[[str], None]) -> None:
        """That the engine can run all that it may be given to run, by its `prepare`, before anything is charged."""
        if self.measurement.weights is None:
            prepare(self.written(wide=True))
        prepare(self.statement)

    def prepared(self) -> Asked:
        """Itself, once its statement is written: what the engine cannot do is refused before anything is charged, and
        so is what the books could not store."""
        try:
            str(self.statement)
        except RecursionError:
            # Raised out here, the error does not carry the other one's many frames along.
            deep = True
        else:
            deep = False
        if deep:
            raise Unsupported("this question", "an expression is nested too deeply", "compute parts in a subquery")
        if self.largest_payload > LONGEST_PAYLOAD:
            reason = f"its answer could take {self.largest_payload:,} bytes, more than {LONGEST_PAYLOAD:,}"
            raise Unsupported("this question", reason, "ask for fewer groups or fewer aggregates at a time")
        return self

    @property
    def largest_payload(self) -> int:
        """The most bytes that its outcome takes in the books, where all groups and values are listed; 0 where they are
        not: then an outcome that is too large is stored as a failure (`purchase.outcome`)."""
        if self.listed is None or any(isinstance(rank, Mode) and rank.values is None for _, rank in self.ranked):
            return 0
        keys = self.query.aggregate.keys
        lists = [key.values.values for key in keys if key.values is not None]
        lists += [rank.values for _, rank in self.ranked if isinstance(rank, Mode) and rank.values is not None]
        texts = sum(max(len(json.dumps(str(value))) + EMBEDDED for value in values) for values in lists)
        sums = len(self.measurement.statistics) * BYTES_OF_A_SUM
        drawn = sum(not isinstance(rank, Mode) for _, rank in self.ranked) * BYTES_OF_A_RANK
        return len(json.dumps(self.record)) + BYTES_BESIDE + len(self.listed) * (texts + sums + drawn)

    @property
    def loss(self) -> Budget:
        """What this question costs alone."""
        return loss_of(self.measurement.events, self.budget)

    @property
    def words(self) -> str:
        """The plan in words."""
        return plan_in_words(self.query, self.measurement, None if self.listed is None else len(self.listed))


def _former_bounds(bounds: Bounds | None) -> str:
    if bounds is None:
        return "None"
    ends = (f"{name}={_former_fraction(getattr(bounds, name))}" for name in ("lower", "upper", "missing"))
    return f"Bounds({', '.join(ends)})"


def _former_weights(weights: Weights | None) -> str:
    if weights is None:
        return "None"
    rows, units = (_former_caps(caps) for caps in (weights.rows, weights.units))
    return f"Weights(norm={weights.norm!r}, rows={rows}, units={units})"


def _former_caps(caps: Caps) -> str:
    norms = ", ".join(map(_former_fraction, caps.norms))
    return f"Caps(norms=({norms}{',' * (len(caps.norms) == 1)}))"


def _former_fraction(value: Fraction) -> str:
    return f"Fraction({value.numerator}, {value.denominator})"


def _listed_keys(query: Query) -> list[tuple[Any, ...]] | None:
    """All combinations of the listed values of the keys; None if any key has none."""
    lists = [key.values.values for key in query.aggregate.keys if key.values is not None]
    return list(product(*lists)) if len(lists) == len(query.aggregate.keys) else None


def _ranked(query: Query, keys: int | None) -> list[tuple[Expression, Rank | Mode]]:
    """The arguments of ranks and modes, with cells and values chosen by what is declared."""
    found: list[tuple[Expression, Rank | Mode]] = []
    for measure in query.aggregate.measures:
        if not measure.aggregation.is_ranked or measure.argument is None:
            continue
        if measure.aggregation.is_chosen:
            found.append((measure.argument, Mode(None if measure.values is None else measure.values.values)))
        elif measure.bounds is not None:
            cells = Cells.of(measure.bounds, whole=measure.argument.type == "integer", keys=keys)
            found.append((measure.argument, Rank.of(measure.function, measure.rank, cells)))
    return found

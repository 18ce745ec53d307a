"""A question in SQL with everything decided before the data is touched: what is measured, the noise, the statement."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from discreet.core.events import to_json
from discreet.sql.canonical import canonical
from discreet.sql.dialect import Dialect
from discreet.sql.measurement import Measurement
from discreet.sql.modes import Mode
from discreet.sql.plan import Expression, Query
from discreet.sql.planner import Budget, Expected, expected, loss_of, plan, words
from discreet.sql.quantiles import Cells, Rank
from discreet.sql.relations import is_owned
from discreet.sql.statement import statement
from discreet.sql.statistics import RANKED, Statistic, Sums

__all__ = ["Asked"]


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
    ) -> Asked:
        """The plan of a query for ε; if `whole`, declared limits are not searched below, so that nothing is clipped."""
        listed = _listed_keys(query)
        owned, max_rows = is_owned(query.aggregate.input), query.aggregate.max_rows
        # Where the most rows of a unit are declared, intervals can cover clipping, and averages keep to the same limit.
        sums = Sums(query.aggregate.measures, apart=owned and max_rows is None)
        ranked = _ranked(query, None if listed is None else len(listed))
        statistics = sums.statistics
        if listed is None and not any(s.kind == "units" for s in statistics):
            statistics = (*statistics, Statistic("units", None))
        measurement = plan(
            statistics,
            keys=None if listed is None else len(listed),
            owned=owned,
            max_rows=max_rows,
            changes=changes,
            budget=budget,
            epsilon=epsilon,
            ranks=tuple(rank for _, rank in ranked),
            whole=whole,
        )
        return cls(query, sums, ranked, listed, measurement, epsilon, budget, sources, dialect)

    @property
    def question(self) -> str:
        """What is measured and where, whatever it is called and whatever is done with it afterwards."""
        measurement = self.measurement
        said = {
            "aggregate": canonical(self.query.aggregate),
            "statistics": [[s.kind, s.of_mean, str(s.bounds)] for s in measurement.statistics],
            "events": [to_json(event) for event in measurement.events],
            "limits": [str(measurement.weights), measurement.max_rows],
            "sources": self.sources,
        }
        return json.dumps(said)

    @property
    def valued(self) -> list[int]:
        """Which of the ranked count values as they are."""
        return [place for place, (_, rank) in enumerate(self.ranked) if isinstance(rank, Mode)]

    @property
    def errors(self) -> tuple[Expected, ...]:
        """How far each column is likely off."""
        return expected(self.query, self.sums, self.measurement)

    @cached_property
    def statement(self) -> str:
        return self.written()

    def written(self, wide: bool = False) -> str:
        """What the engine runs; at row level, with `wide` sums only if others could not hold them."""
        cells = [(argument, None if isinstance(rank, Mode) else rank.cells) for argument, rank in self.ranked]
        measurement = self.measurement
        return statement(self.query.aggregate, measurement.statistics, measurement.weights, cells, self.dialect, wide)

    def prepared(self) -> Asked:
        """Itself, once its statement is written: what the engine cannot do is refused before anything is charged."""
        str(self.statement)
        return self

    @property
    def loss(self) -> Budget:
        """What this question costs alone."""
        return loss_of(self.measurement.events, self.budget)

    @property
    def words(self) -> str:
        """The plan in words."""
        return words(self.query, self.measurement, None if self.listed is None else len(self.listed))


def _listed_keys(query: Query) -> list[tuple[Any, ...]] | None:
    """All combinations of the listed values of the keys; None if any key has none."""
    lists = [key.values.values for key in query.aggregate.keys if key.values is not None]
    return list(product(*lists)) if len(lists) == len(query.aggregate.keys) else None


def _ranked(query: Query, keys: int | None) -> list[tuple[Expression, Rank | Mode]]:
    """The arguments of ranks and modes, with cells and values chosen by what is declared."""
    found: list[tuple[Expression, Rank | Mode]] = []
    for measure in query.aggregate.measures:
        if measure.function not in RANKED or measure.argument is None:
            continue
        if measure.function == "mode":
            found.append((measure.argument, Mode(None if measure.values is None else measure.values.values)))
        elif measure.bounds is not None:
            cells = Cells.of(measure.bounds, whole=measure.argument.type == "integer", keys=keys)
            found.append((measure.argument, Rank.of(measure.function, measure.rank, cells)))
    return found

"""What a question's bounded sums are, in plain Python from the rows that DuckDB finds for it.

DuckDB runs the relational part in the analyst's own words and gives owner, keys and arguments of each row. Here units
are weighed by min(1, C/‖n‖), values are held to their bounds, and both are summed as floats: no code is shared with the
statement that the session runs.
"""

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.sql.generator import Question
from tests.sql.worlds import World

from discreet.core.domains import Bounds
from discreet.sql.bounding.clipping_norms import G
from discreet.sql.bounding.sums import Statistic

Key = tuple[Any, ...]


def plain(value: Any) -> Any:
    """A key's value so that equal ones compare equal: dates may come as midnights."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date()
    return value


def plain_key(key: Key) -> Key:
    return tuple(plain(part) for part in key)


@dataclass(frozen=True)
class Exact:
    """The rows that take part in a question: owner, key, arguments."""

    rows: list[tuple[Any, Key, tuple[Any, ...]]]
    by_row: bool

    @classmethod
    def of(cls, world: World, asked: Question) -> "Exact":
        found = world.reference.execute(asked.rows).fetchall()
        keys = asked.keys
        return cls([(row[0], plain_key(row[1 : 1 + keys]), row[1 + keys :]) for row in found], world.by_row)

    def within(self, lists: Mapping[int, Sequence[Any]]) -> "Exact":
        """Only the rows whose keys, by place, are among listed values."""
        known = {place: {plain(value) for value in values} for place, values in lists.items()}
        kept = [row for row in self.rows if all(row[1][place] in values for place, values in known.items())]
        return Exact(kept, self.by_row)

    @cached_property
    def counts(self) -> dict[Any, Counter[Key]]:
        """For each unit how many rows it has in each group."""
        found: dict[Any, Counter[Key]] = defaultdict(Counter)
        for owner, key, _ in self.rows:
            found[owner][key] += 1
        return found

    @property
    def keys(self) -> set[Key]:
        return {key for _, key, _ in self.rows}

    def norms(self, norm: str, units: bool) -> dict[Any, float]:
        """Each unit's norm: of its rows by group, or of its groups."""
        lengths = {}
        for owner, counts in self.counts.items():
            numbers = [1] * len(counts) if units else list(counts.values())
            lengths[owner] = math.sqrt(sum(n * n for n in numbers)) if norm == "l2" else float(sum(numbers))
        return lengths

    def weights(self, norm: str, units: bool, cap: float) -> dict[Any, float]:
        return {owner: min(1.0, cap / length) for owner, length in self.norms(norm, units).items()}

    def heaviest(self, norm: str, units: bool) -> float:
        return max(self.norms(norm, units).values(), default=0.0)

    def sums(
        self, statistic: Statistic, column: int, norm: str, cap: float | None
    ) -> tuple[dict[Key, float], dict[Key, float]]:
        """The clipped sum of a statistic in each group, and how far rounding may move it."""
        units = statistic.kind == "units" and not self.by_row
        weights = None if cap is None else self.weights(norm, units, cap)
        step = float(statistic.grid.step)
        # A weight is rounded down to a G-th of 1 over the norm.
        coarse = 1.1 * self.heaviest(norm, units) / G if weights else 0.0
        totals: dict[Key, float] = defaultdict(float)
        slack: dict[Key, float] = defaultdict(float)
        if units:
            entries = [(owner, key, 1.0) for owner, counts in self.counts.items() for key in counts]
        else:
            entries = [(owner, key, self.amount(statistic, row, column)) for owner, key, row in self.rows]
        for owner, key, amount in entries:
            weight = 1.0 if weights is None else weights[owner]
            totals[key] += weight * amount
            slack[key] += abs(weight * amount) * (coarse + 1e-9)
            # Clipped rows are rounded to whole steps, all others to parts of them.
            finest = step / statistic.fineness if weight == 1.0 else step
            slack[key] += 0.51 * finest * weight if statistic.bounds is not None else 0.0
        return totals, slack

    def ranked(
        self, bounds: Bounds, column: int, step: float, norm: str, cap: float | None
    ) -> tuple[dict[Key, float], dict[Key, float]]:
        """The weighed sum of the values behind a quantile, and how far cells of that step may move it."""
        weights = None if cap is None else self.weights(norm, False, cap)
        coarse = 1.1 * self.heaviest(norm, False) / G if weights else 0.0
        totals: dict[Key, float] = defaultdict(float)
        slack: dict[Key, float] = defaultdict(float)
        for owner, key, row in self.rows:
            if row[column] is not None:
                weight = 1.0 if weights is None else weights[owner]
                held = min(max(float(row[column]), float(bounds.lower)), float(bounds.upper))
                totals[key] += weight * held
                slack[key] += weight * (1.01 * step + abs(held) * (coarse + 1e-9))
        return totals, slack

    def counted(self, column: int, norm: str, cap: float | None) -> tuple[dict[Key, float], dict[Key, float]]:
        """The weight of each value in each group, and how far rounding may move it."""
        weights = None if cap is None else self.weights(norm, False, cap)
        coarse = 1.1 * self.heaviest(norm, False) / G if weights else 0.0
        totals: dict[Key, float] = defaultdict(float)
        for owner, key, row in self.rows:
            if row[column] is not None:
                totals[*key, plain(row[column])] += 1.0 if weights is None else weights[owner]
        return totals, {key: total * (coarse + 1e-9) for key, total in totals.items()}

    def amount(self, statistic: Statistic, row: tuple[Any, ...], column: int) -> float:
        """What one row adds."""
        if statistic.kind in ("rows", "units"):
            return 1.0
        value = row[column]
        if value is None:
            return 0.0
        if statistic.kind == "present" or statistic.bounds is None:
            return 1.0
        held = min(max(float(value), float(statistic.bounds.lower)), float(statistic.bounds.upper))
        shifted = held - float(statistic.middle)
        return shifted * shifted if statistic.kind == "squares" else shifted

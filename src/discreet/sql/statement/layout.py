"""The columns of a statement: what is summed for each group, how whole numbers are added up, and what comes back.

>>> long("SUM(n)")
'CAST(SUM(n) AS BIGINT)'
>>> Part.UNIT_COUNTS == 1, Part.CELLS + 2
(True, 6)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from discreet.sql.bounding.clipping_norms import Caps, G, Weighing
from discreet.sql.bounding.sums import Statistic
from discreet.sql.statement.clauses import aliased
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.naming import Name, StatementNames

__all__ = [
    "NOTHING",
    "OF_UNITS",
    "Layout",
    "Norm",
    "Part",
    "RowSum",
    "Weights",
    "bucketed",
    "long",
    "of_units",
]

Norm = Literal["l1", "l2"]

NOTHING = "CAST(NULL AS BIGINT)"
OF_UNITS = 3
"""How many sums `of_units` has."""


class Part(IntEnum):
    """What a row that comes back is of; its first column."""

    ROW_SUMS = 0
    """Sums of rows, of a group and a bucket of units."""
    UNIT_COUNTS = 1
    """Counts of units, of a group and a bucket of units."""
    UNITS_BY_ROWS = 2
    """Units of one bucket by the norm of their rows."""
    UNITS_BY_GROUPS = 3
    """Units of one bucket by the norm of their groups."""
    CELLS = 4
    """Rows of one cell of the first rank. Those of the others have the numbers after it."""


@dataclass(frozen=True)
class Weights:
    """How units are weighed: by their rows, and for counts of units by their groups."""

    norm: Norm
    rows: Caps
    units: Caps

    def caps(self, weighing: Weighing) -> Caps:
        """The candidates for the statistics of one `Statistic.weighing`."""
        return self.units if weighing == Weighing.GROUPS else self.rows


@dataclass(frozen=True)
class RowSum:
    """A statistic that rows are summed for, the column that it counts, and that of what each row adds."""

    statistic: Statistic
    column: str
    parts: Name

    @property
    def plain(self) -> str:
        """The sum over rows, in parts of a step."""
        if self.statistic.kind in ("rows", "units"):
            return "COUNT(*)"
        return f"COUNT({self.column})" if self.statistic.kind == "present" else long(f"SUM({self.parts})")

    def own(self, dialect: Dialect) -> list[str]:
        """Sums of the rows of one unit, to be multiplied by its weight: in parts of a step, and in whole steps if those
        differ."""
        whole = [] if self.statistic.fineness == 1 else [long(f"SUM({self._steps(dialect)})")]
        return [self.plain, *whole]

    def divided(self, weight: Name, dialect: Dialect) -> str:
        """The sum of rows that are each multiplied by the weight of their unit, in whole steps."""
        if self.statistic.kind == "rows":
            return long(f"SUM({weight})")
        if self.statistic.kind == "present":
            return long(f"SUM({weight}) - COALESCE(SUM(CASE WHEN {self.column} IS NULL THEN {weight} END), 0)")
        return dialect.total(f"{self._steps(dialect)} * {weight}")

    def _steps(self, dialect: Dialect) -> str:
        """What a row adds in whole steps, of which products with a weight fit 32 bits."""
        fineness = self.statistic.fineness
        return self.parts if fineness == 1 else dialect.divided(self.parts, fineness)


@dataclass(frozen=True)
class Layout:
    """What is summed, under which names, and the columns that come back."""

    names: StatementNames
    keys: list[Name]
    of_rows: list[RowSum]
    of_units: bool
    cells: int
    blanks: list[str]
    dialect: Dialect
    absent: Mapping[int, str] = field(default_factory=dict)
    """By place, the cells that are values as they are, with a NULL of their type."""

    @property
    def weighs_rows(self) -> bool:
        """Whether units are weighed by their rows."""
        return bool(self.of_rows) or self.cells > 0

    def row(
        self,
        part: int,
        values: Sequence[str],
        *,
        bucket: str = "0",
        place: str = NOTHING,
        count: str = NOTHING,
        keys: Sequence[str] | None = None,
        cell: int | None = None,
    ) -> list[str]:
        """The columns of a row that comes back: its part, a bucket, an octave or a cell, a count, the keys, sums, and
        values that were counted as they are."""
        last = [self.names.cell.at(i) if i == cell else nothing for i, nothing in self.absent.items()]
        shown = self.keys if keys is None else keys
        return [str(int(part)), bucket, place, count, *shown, *values, *self.blanks[len(values) :], *last]

    def cell(self, place: int) -> str:
        """What stands for a cell in the column of cells."""
        return NOTHING if place in self.absent else self.names.cell.at(place)


def bucketed(norm: Name, caps: Caps, bucket: Name, weight: Name, dialect: Dialect) -> list[str]:
    """The bucket that a norm is in, and the weight that follows from it."""
    place = f"CAST({dialect.bucket(caps, norm)} AS {dialect.narrow})"
    return [aliased(place, bucket), aliased(f"CAST(FLOOR({G}e0 / {norm}) AS INTEGER)", weight)]


def long(text: str) -> str:
    """A sum over rows of numbers up to 2^17, which 64 bits hold whatever the table: it would take 2^46 rows."""
    return f"CAST({text} AS BIGINT)"


def of_units(names: StatementNames) -> list[str]:
    """What `measuring/clipping_loss.py` wants summed over units, besides the octave of their rows."""
    rows = long(names.row_total)
    return [rows, f"{rows} * {names.row_weight}", names.row_weight]

"""The columns of a statement: what is summed for each group, and how whole numbers are added up.

>>> long("SUM(n)")
'CAST(SUM(n) AS BIGINT)'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from discreet.sql.bounding.clipping_norms import Caps, G, Weighing
from discreet.sql.bounding.sums import Statistic
from discreet.sql.statement.dialect import Dialect

__all__ = ["NOTHING", "Norm", "Shape", "Weights", "bucketed", "coarse", "divided", "long", "own", "summed"]

Norm = Literal["l1", "l2"]

NOTHING = "CAST(NULL AS BIGINT)"


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
class Shape:
    """What is summed, and the columns that come back."""

    keys: list[str]
    of_rows: list[tuple[Statistic, str, int]]
    of_units: bool
    cells: int
    blanks: list[str]
    dialect: Dialect
    absent: Mapping[int, str] = field(default_factory=dict)
    """By place, the cells that are values as they are, with a NULL of their type."""

    def row(self, head: str, values: Sequence[str], cell: int | None = None) -> str:
        last = [f"c{i}" if i == cell else nothing for i, nothing in self.absent.items()]
        return ", ".join([head, *self.keys, *values, *self.blanks[len(values) :], *last])

    def cell(self, place: int) -> str:
        """What stands for a cell in the column of cells."""
        return NOTHING if place in self.absent else f"c{place}"

    def grouped(self, *columns: str) -> str:
        listed = ", ".join([*columns, *self.keys])
        return f" GROUP BY {listed}" if listed else ""


def bucketed(norm: str, caps: Caps, bucket: str, weight: str, dialect: Dialect) -> list[str]:
    place = f"CAST({dialect.bucket(caps, norm)} AS {dialect.narrow}) AS {bucket}"
    return [place, f"CAST(FLOOR({G}e0 / {norm}) AS INTEGER) AS {weight}"]


def long(text: str) -> str:
    """A sum over rows of numbers up to 2^17, which 64 bits hold whatever the table: it would take 2^46 rows."""
    return f"CAST({text} AS BIGINT)"


def summed(statistic: Statistic, column: str, place: int) -> str:
    if statistic.kind in ("rows", "units"):
        return "COUNT(*)"
    return f"COUNT({column})" if statistic.kind == "present" else long(f"SUM(x{place})")


def coarse(statistic: Statistic, place: int, dialect: Dialect) -> str:
    """What a row adds in whole steps, of which products with a weight fit 32 bits."""
    return f"x{place}" if statistic.fineness == 1 else dialect.divided(f"x{place}", statistic.fineness)


def own(statistic: Statistic, column: str, place: int, dialect: Dialect) -> list[str]:
    """Sums of the rows of one unit, to be multiplied by its weight: plain, and of whole steps if those differ."""
    sums = [summed(statistic, column, place)]
    return sums if statistic.fineness == 1 else [*sums, long(f"SUM({coarse(statistic, place, dialect)})")]


def divided(statistic: Statistic, column: str, place: int, dialect: Dialect) -> str:
    if statistic.kind == "rows":
        return long("SUM(g)")
    if statistic.kind == "present":
        return long(f"SUM(g) - COALESCE(SUM(CASE WHEN {column} IS NULL THEN g END), 0)")
    return dialect.total(f"{coarse(statistic, place, dialect)} * g")

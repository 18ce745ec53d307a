"""What every engine offers: a schema, and one read-only statement at a time.

Statements are rendered by `sql/` from plan nodes; no text of an analyst ever reaches an engine. Rows come back as
Python tuples, so that 128-bit sums stay whole numbers.

Two rules hold for each statement, whatever the rows are.

- What cannot run is refused before the charge. `prepare` has the engine read the statement and look up its names and
  types, and reads no rows and no statistics of rows: whether it raises, and what it says, is the same on all data.
- What is read is what was connected to. `definition` is asked before the charge whether a table is still the same, its
  parts and what a view reads included, and `run` looks again where it reads: in the same transaction, or through the
  very plan that was compared. What is something else by then raises EngineUnavailable and answers nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import Unsupported
from discreet.sql.catalog import Column, is_number
from discreet.sql.decimals import Decimals
from discreet.sql.statement.dialect import Dialect

__all__ = ["LISTED", "LOOKED_AT", "Engine", "known", "unrunnable"]

LOOKED_AT = 200_000
"""Public tables of up to this many rows are looked through for what their columns hold."""
LISTED = 1_000
"""So many different values of a public column are listed."""


def known(column: Column, least: Any, most: Any, values: Sequence[tuple[Any, ...]]) -> Column:
    """A column of a public table with what it holds: its least and largest value, and all of them if they are few."""
    unit = column.type.unit if isinstance(column.type, Decimals) else Fraction(1)
    number = least is not None and is_number(column.type)
    bounds = Bounds(Fraction(least) * unit, Fraction(most) * unit) if number else None
    counted = values and column.type != "real" and not isinstance(column.type, Decimals)
    listed = Categories(tuple(value for (value,) in values)) if counted else None
    return replace(column, bounds=bounds, values=listed, found=listed is not None)


def unrunnable(engine: str, code: str) -> Unsupported:
    """What is said of a statement that an engine does not take: never its own words, which may quote what is stored."""
    reason = f"{engine} does not take the statement made of it ({code})"
    return Unsupported("this question", reason, "ask it in other words; nothing was charged")


@runtime_checkable
class Engine(Protocol):
    """A place where tables live."""

    dialect: Dialect
    """The SQL it speaks."""

    def identity(self, table: str) -> str:
        """A name of the table's source that is the same in every process that opens it."""

    def definition(self, table: str) -> str:
        """What tells apart tables of the same name with the same books, and different contents of a view; empty where
        there is no such thing."""

    def columns(self, table: str) -> tuple[Column, ...]:
        """Names and types; columns of types that queries cannot use are left out."""

    def is_view(self, table: str) -> bool:
        """Whether its rows are computed whenever it is read, and may be others each time."""

    def omitted(self, table: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns that are left out."""

    def unique(self, table: str) -> tuple[str, ...]:
        """Columns of a public table that are known to hold no value twice and no NULL."""

    def paths(self, table: str) -> tuple[Path, ...]:
        """The files of this machine that its rows are in, if they are in files."""

    def prepare(self, statement: str) -> None:
        """Refuse a statement that cannot run, by its text and the schema alone: no rows are read."""

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one statement."""

    def running(self) -> bool:
        """Whether a statement is being run, for other threads to ask; how far it is depends on the rows."""

    def cancel(self) -> None:
        """Stop the running statement: its `run` raises KeyboardInterrupt. For other threads."""

    def close(self) -> None:
        """Let go of everything."""

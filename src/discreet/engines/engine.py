"""What every engine offers: a schema, and one read-only statement at a time.

Statements are rendered by `sql/` from plan nodes; no text of an analyst ever reaches an engine. Rows come back as
Python tuples, so that 128-bit sums stay whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from discreet.core.domains import Bounds, Categories
from discreet.sql.catalog import Column
from discreet.sql.dialect import Dialect

__all__ = ["LISTED", "LOOKED_AT", "Engine", "known"]

LOOKED_AT = 200_000
"""Public tables of up to this many rows are looked through for what their columns hold."""
LISTED = 1_000
"""So many different values of a public column are listed."""


def known(column: Column, least: Any, most: Any, values: Sequence[tuple[Any, ...]]) -> Column:
    """A column of a public table with what it holds: its least and largest value, and all of them if they are few."""
    number = least is not None and column.type in ("integer", "real")
    bounds = Bounds(Fraction(least), Fraction(most)) if number else None
    listed = Categories(tuple(value for (value,) in values)) if values and column.type != "real" else None
    return replace(column, bounds=bounds, values=listed, found=listed is not None)


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

    def omitted(self, table: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns that are left out."""

    def unique(self, table: str) -> tuple[str, ...]:
        """Columns of a public table that are known to hold no value twice and no NULL."""

    def paths(self, table: str) -> tuple[Path, ...]:
        """The files of this machine that its rows are in, if they are in files."""

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one statement."""

    def progress(self) -> float | None:
        """How much of the running statement is done, from 0 to 1; None if that is not known. For other threads."""

    def cancel(self) -> None:
        """Stop the running statement: its `run` raises KeyboardInterrupt. For other threads."""

    def close(self) -> None:
        """Let go of everything."""

"""What every engine offers: sources that it accepts, tables that are added, and one read-only statement at a time.

`connect` knows no engine by name. It asks each in turn whether it accepts a source (`engines/registry.py`), opens the
first that does, adds the tables and seals it; an engine of another package is found by an entry point.

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

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.sql.catalog import Column, Type, is_number
from discreet.sql.decimals import Decimals
from discreet.sql.statement.dialect import Dialect

if TYPE_CHECKING:
    from discreet.engines.duckdb.csv_records import Csv

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


class Engine(ABC):
    """A place where tables live."""

    title: ClassVar[str]
    """What messages call it."""
    schemes: ClassVar[tuple[str, ...]] = ()
    """How the addresses begin by which it can be reached: ("postgresql", "postgres")."""
    on_server: ClassVar[bool] = True
    """Whether tables are elsewhere, and have names there: then it must be said which one, and where the books are."""
    dialect: Dialect
    """The SQL it speaks."""

    @classmethod
    @abstractmethod
    def accepts(cls, source: object) -> bool:
        """Whether what is given to `connect` is for this engine; nothing is opened."""

    @classmethod
    @abstractmethod
    def opened(cls, source: object) -> Engine:
        """The engine of a source that it accepts."""

    @classmethod
    def first_table(cls, source: object, table: str | None) -> tuple[object, str]:
        """What the first table of a source is to `add`, and what it is called in questions."""
        if not table:
            remedy = 'write table="visits" or table="schema.visits"'
            raise InvalidArgument("table", None, "the name of a table on the server", remedy)
        return table, cls.table_name(table)

    @classmethod
    def table_name(cls, table: str) -> str:
        """What a table is called in questions, by its name on the server."""
        return str(table).rpartition(".")[2]

    @property
    def nameless(self) -> bool:
        """Whether the server does not say which it is, so that one table may have several identities."""
        return False

    @abstractmethod
    def add(
        self,
        table: str,
        source: object,
        *,
        types: Mapping[str, Type] | None = None,
        hints: Mapping[str, Type] | None = None,
        unit: str | None = None,
        links: Iterable[str] = (),
        private: bool = True,
        csv: Csv | None = None,
    ) -> None:
        """Register a source as `table`.

        `types` declares types of columns, `hints` those of columns that have none of their own and else would be text.
        Values of the `unit` column that name nobody (NaN, infinities) become NULL. So do values that are not read
        exactly, there and in `links`, the columns by which rows find their owners; or such columns are refused. What a
        public table holds is looked at. `csv` says how CSV files are written, where their header line does not.
        """

    @abstractmethod
    def seal(self) -> None:
        """Nothing more is added."""

    @abstractmethod
    def identity(self, table: str) -> str:
        """A name of the table's source that is the same in every process that opens it; `memory:` and more if there is
        no such name."""

    @abstractmethod
    def sources(self, table: str) -> tuple[str, ...]:
        """What the books know the table by: its own address first, then those of the tables that it reads, if it is a
        view. Each is a text such as `postgresql:…/schema.table`; the first of them in the order of texts is its
        `identity`."""

    @abstractmethod
    def claims(self, table: str, known: Iterable[str], public: Iterable[str]) -> list[str]:
        """The sources whose budget a question about the table spends, at least one.

        Those that the books know already, given as `known`, come first: a view of `visits`, whose budget is open, is
        charged to that. What a view reads of `public` tables belongs to nobody and is left out.
        """

    def shared_sources(self, table: str) -> tuple[str, ...]:
        """Its sources, where tables beside it may have the same books and the same `definition`, as files of one folder
        do; then a stored answer must name the source. Empty otherwise."""
        return ()

    def unseen(self, table: str) -> tuple[str, ...]:
        """Functions by which a view may read tables that nothing is known of."""
        return ()

    @abstractmethod
    def definition(self, table: str) -> str:
        """What tells apart tables of the same name with the same books, and different contents of a view; empty where
        there is no such thing."""

    @abstractmethod
    def columns(self, table: str) -> tuple[Column, ...]:
        """Names and types; columns of types that queries cannot use are left out."""

    @abstractmethod
    def is_view(self, table: str) -> bool:
        """Whether its rows are computed whenever it is read, and may be others each time."""

    @abstractmethod
    def omitted(self, table: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns that are left out."""

    @abstractmethod
    def unique(self, table: str) -> tuple[str, ...]:
        """Columns of a public table that are known to hold no value twice and no NULL."""

    @abstractmethod
    def paths(self, table: str) -> tuple[Path, ...]:
        """The files of this machine that its rows are in, if they are in files."""

    @abstractmethod
    def prepare(self, statement: str) -> None:
        """Refuse a statement that cannot run, by its text and the schema alone: no rows are read."""

    @abstractmethod
    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one statement."""

    @abstractmethod
    def running(self) -> bool:
        """Whether a statement is being run, for other threads to ask; how far it is depends on the rows."""

    @abstractmethod
    def cancel(self) -> None:
        """Stop the running statement: its `run` raises KeyboardInterrupt. For other threads."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

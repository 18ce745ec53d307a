"""What differs between the SQL of engines.

Statements are written once, in words that all engines share; wherever they differ, the words come from here. `Dialect`
is that of DuckDB; another engine's is a subclass, which may also know under which words a table is read. Expressions
are trees (`functions.render`) in which arithmetic on reals is marked with `real`, and `lowered` rewrites what an engine
cannot do, or would do otherwise: every expression has to give the same on all engines, and never fail.

>>> DUCKDB.real(2.5), DUCKDB.log2("t"), DUCKDB.table("visits")
('2.5e0', 'LOG2(t)', '"visits"')
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.catalog import Type
from discreet.sql.decimals import DIGITS
from discreet.sql.functions.signature import Node

__all__ = ["DUCKDB", "Dialect", "quoted"]


HALF = 10**19
"""Numbers of 38 digits are summed in two halves."""


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


class Dialect:
    """DuckDB's SQL."""

    name = "duckdb"
    """What sqlglot calls it."""
    wide = "HUGEINT"
    """A type for whole numbers of more than 64 bits."""
    narrow = "TINYINT"
    """A type for small numbers: engines may then number groups instead of hashing them."""
    double = "DOUBLE"
    strict = False
    """Whether arithmetic of doubles fails where a result is too large or too small for one."""
    eager = False
    """Whether arms of a CASE may be computed that are not taken: then none may fail, whatever the row."""

    free_texts = 8
    """How many texts a question may make of one row without a limit on their length (`statement/widths.py`)."""
    windows = False
    """Whether units are weighed by windows over their groups."""
    fence = ""
    """What stands at the end of a subquery whose expressions are to be computed once, however often they are used."""

    def lowered(self, node: Node) -> Node:
        """The expression in words that the engine has, total as it was."""
        return node

    def text(self, node: Node) -> str:
        """The expression in SQL."""
        return str(self.lowered(node).sql(dialect=self.name))

    def identifier(self, name: str) -> str:
        """A name in quotes."""
        return quoted(name)

    def table(self, name: str) -> str:
        """What stands in FROM for a registered table, whose columns then have our types or are castable to them."""
        return self.identifier(name)

    def owner(self, unit: str) -> str:
        """The unit of a row of such a table, whose unit column is given: equal for the same unit, and for no others."""
        return self.identifier(unit)

    def stored(self, column: str) -> str:
        """An integer column of such a table as it is stored, which indices and statistics of engines may know."""
        return self.identifier(column)

    def real(self, value: float) -> str:
        """A literal double."""
        written = repr(float(value))
        return written if "e" in written else written + "e0"

    def byte_length(self, text: str) -> str:
        """How many bytes a text has, which the engine knows without reading it."""
        return f"STRLEN({text})"

    def log2(self, value: str) -> str:
        """The logarithm to base 2 of a double above 0; wrong by a little at most."""
        return f"LOG2({value})"

    def octave(self, value: str) -> str:
        """The whole number below the logarithm to base 2 of a double that is 1 or more."""
        return f"CAST(FLOOR({self.log2(value)}) AS INTEGER)"

    def bucket(self, caps: Caps, norm: str) -> str:
        """`Caps.bucket`."""
        return caps.bucket(norm)

    def kept(self, once: bool) -> str:
        """How a WITH query is computed: once, or wherever it is read."""
        return "MATERIALIZED" if once else "NOT MATERIALIZED"

    def gathered(self, rows: str, unit: str, once: bool = True) -> str:
        """Rows that are then counted by unit: an engine may send those of one unit to one place; `once`, if they are
        read several times."""
        return rows

    def first(self, keys: Sequence[str], window: str, mark: str) -> tuple[str, str]:
        """What marks one of a unit's groups, over a window of them; and, where that is called `mark`, whether it is
        it."""
        return f"ROW_NUMBER() OVER {window}", f"{mark} = 1"

    def divided(self, value: str, parts: int) -> str:
        """A whole number of less than 2^30 in size by a power of two, rounded half up."""
        return f"(({value} + {parts // 2}) >> {parts.bit_length() - 1})"

    def total(self, product: str) -> str:
        """The sum of whole numbers of less than 2^31 in size, exact however many there are."""
        return f"SUM({product})"

    def held(self, value: str) -> str:
        """An aggregate of whole numbers as 64 bits, NULL where it does not fit."""
        return f"TRY_CAST({value} AS BIGINT)"

    def ordered(self, function: str, value: str, kind: Type) -> str:
        """An aggregate of numbers in their own order, so that it does not depend on where rows lie."""
        return f"{function}({value} ORDER BY {value})"

    def units_total(self, value: str, wide: bool) -> str:
        """The sum of units of decimals, NULL where it has more than 38 digits; `wide` ones may have 38 themselves.

        Those are summed in two parts, neither of which any number of rows makes too large. Where both together are
        far from 2^127, as doubles tell, they are added.
        """
        if not wide:
            return f"SUM({value})"
        high, low = f"SUM({value} // {HALF})", f"SUM({value} % {HALF})"
        near = f"ABS(CAST({high} AS DOUBLE) * {HALF}e0 + CAST({low} AS DOUBLE)) < 1.5e{DIGITS}"
        total = f"({high} * {HALF} + {low})"
        return f"CASE WHEN {near} THEN CASE WHEN ABS({total}) < {10**DIGITS} THEN {total} END END"

    def quantile(self, value: str, rank: float) -> str:
        """The quantile of numbers, between two of them where it falls there."""
        return f"QUANTILE_CONT({value}, {rank!r})"


DUCKDB = Dialect()

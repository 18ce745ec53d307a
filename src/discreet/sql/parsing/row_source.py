"""Which rows are meant: columns of the first table, a table's name, or a SELECT that lists columns.

>>> from discreet.sql.catalog import Catalog, Column, Table
>>> known = Catalog((Table("visits", (Column("who", "integer"), Column("cost", "real")), "who"),))
>>> wanted(known, ["Cost"]), wanted(known, "VISITS")
(('SELECT "cost" FROM "visits"', True), ('SELECT * FROM "visits"', False))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from discreet.core.errors import InvalidArgument
from discreet.sql.catalog import Catalog
from discreet.sql.statement.dialect import quoted

__all__ = ["STARTS", "wanted"]

STARTS = ("SELECT", "WITH", "FROM", "(")
"""How a text in SQL begins; a table's name does not."""


def wanted(catalog: Catalog, what: str | Sequence[str]) -> tuple[str, bool]:
    """What is asked for as a SELECT, and whether its columns were named one by one."""
    if isinstance(what, str):
        if what.strip().upper().startswith(STARTS):
            return what, True
        tables, columns = ([one.name.lower() for one in held] for held in (catalog.tables, catalog.tables[0].columns))
        if what.lower() in columns and what.lower() not in tables:
            raise InvalidArgument("columns", what, "a list of columns, a table, or a SELECT", f'write ["{what}"]')
        return f"SELECT * FROM {quoted(catalog.table(what).name)}", False
    names = [*what] if isinstance(what, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidArgument("columns", what, "names of columns, a table, or a SELECT", 'write ["age", "city"]')
    table = catalog.tables[0]
    listed = ", ".join(quoted(table.column(name).name) for name in names)
    return f"SELECT {listed} FROM {quoted(table.name)}", True

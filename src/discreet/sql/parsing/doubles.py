"""Questions as versions before exact decimals read them: numbers with a point and DECIMAL columns were doubles.

Books of those versions have their answers under what they read. Nothing is computed by this any more.

>>> from sqlglot import parse_one
>>> as_doubles(parse_one("SELECT SUM(x * 0.5) FROM t WHERE n IN (1, 2e3)")).sql()
'SELECT SUM(x * 0.5e0) FROM t WHERE n IN (1, 2e3)'
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from discreet.sql.catalog import Catalog
from discreet.sql.decimals import Decimals

__all__ = ["as_doubles", "catalog_of_doubles"]


def as_doubles(tree: exp.Expr) -> exp.Expr:
    """The question with exponents on all numbers that are exact only since decimals are."""
    for literal in tree.find_all(exp.Literal):
        text = str(literal.this)
        plain = not literal.is_string and "e" not in text.lower()
        if plain and ("." in text or (text.isdecimal() and int(text) > 2**63)):
            literal.set("this", f"{text}e0")
    return tree


def catalog_of_doubles(catalog: Catalog) -> Catalog:
    """The tables with doubles for decimals."""
    tables = []
    for table in catalog.tables:
        columns = (replace(c, type="real") if isinstance(c.type, Decimals) else c for c in table.columns)
        tables.append(replace(table, columns=tuple(columns)))
    return replace(catalog, tables=tuple(tables))

"""A question under names that were chosen to be taken for names of its statement.

A table of the question becomes a subquery with more columns, all of them 1, which the question then asks to be 1.
That changes nothing, whatever the columns are called; so what the engine gives for them is compared with what it gives
where they have plain names. The names are read off the statement itself: every identifier in it that is no name of a
table or a column. Names that are chosen anew for each statement give others the second time; those are tried as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from discreet.adversary.session_audit.sensitivity import NO_CUTS, CheckFailed
from discreet.core.errors import DiscreetError
from discreet.session.session import Session
from discreet.session.sql import SQL, exact_groups
from discreet.session.sql_question import Asked
from discreet.sql.catalog import Catalog
from discreet.sql.statement.dialect import quoted
from discreet.sql.statement.results import Groups

__all__ = ["check_names", "with_columns"]

MOST_NAMES = 40
ROUNDS = 2


def check_names(session: Session, question: SQL) -> int:
    """In how many tables of the question names were tried and changed nothing; what they change is a `CheckFailed`."""
    tables = _tables(question.text, session._catalog)[1]
    return sum(_check_table(session, question, place) for place in range(len(tables)))


def _check_table(session: Session, question: SQL, place: int) -> bool:
    """One table: two of them with the same columns would be given other names."""
    try:
        asked = _planned(session, question, ["plain"], place)
    except DiscreetError:
        return False  # not every question can be written with more columns
    expected = _measured(session, asked, "plain")
    names = _names_in(asked.statement, session._catalog)
    for _ in range(ROUNDS):
        try:
            other = _planned(session, question, names, place)
        except DiscreetError:
            return True  # names may be refused, which says nothing about rows
        given = _measured(session, other, ", ".join(names[:3]))
        if _totals(asked, given) != _totals(asked, expected):
            raise CheckFailed("names", f"totals are others where columns are called {', '.join(names[:9])} …")
        names = _names_in(other.statement, session._catalog)
    return True


def _planned(session: Session, question: SQL, names: Sequence[str], place: int) -> Asked:
    text = with_columns(question.text, session._catalog, [*names], place)
    return replace(question, text=text).bind(session._context).plan().decided


def with_columns(text: str, catalog: Catalog, names: list[str], place: int) -> str:
    """The question with these columns added to one of its tables, all 1 and asked to be 1."""
    import sqlglot
    from sqlglot import expressions as exp

    tree, tables = _tables(text, catalog)
    node = tables[place]
    table, select = catalog.table(node.name), node.find_ancestor(exp.Select)
    listed = [quoted(column.name) for column in table.columns] + [f"1 AS {quoted(name)}" for name in names]
    inside = sqlglot.parse_one(f"SELECT {', '.join(listed)} FROM {quoted(table.name)}", dialect="duckdb")
    alias = node.alias_or_name
    node.replace(exp.Subquery(this=inside, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
    for name in names:
        select.where(sqlglot.parse_one(f"{quoted(alias)}.{quoted(name)} = 1", dialect="duckdb"), copy=False)
    return str(tree.sql(dialect="duckdb"))


def _tables(text: str, catalog: Catalog) -> tuple[Any, list[Any]]:
    """The question as a tree, and where it names tables of the catalog."""
    import sqlglot
    from sqlglot import expressions as exp

    try:
        tree = sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return None, []
    known = {table.name.lower() for table in catalog.tables}
    found = [node for node in tree.find_all(exp.Table) if node.name.lower() in known]
    return tree, [node for node in found if node.find_ancestor(exp.Select) is not None]


def _names_in(statement: str, catalog: Catalog) -> list[str]:
    """Identifiers of a statement that are no names of the catalog, shortest first."""
    import sqlglot
    from sqlglot import expressions as exp

    own = {name.lower() for table in catalog.tables for name in (table.name, *table.names)}
    found = {node.name for node in sqlglot.parse_one(statement, dialect="duckdb").find_all(exp.Identifier)}
    return sorted((name for name in found if name and name.lower() not in own), key=lambda name: (len(name), name))[
        :MOST_NAMES
    ]


def _measured(session: Session, asked: Asked, named: str) -> Groups:
    try:
        return exact_groups(asked, session._engine)
    except Exception:
        raise CheckFailed("names", f"the engine fails where columns are called {named} …") from None


def _totals(asked: Asked, groups: Groups) -> Any:
    keys = sorted(groups.keys, key=repr)
    totals = asked.measurement.totals(groups, keys, NO_CUTS)
    return keys, totals, dict(groups.by_rows), dict(groups.by_groups)

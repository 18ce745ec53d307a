"""No name that somebody else chose is in a statement, but those of tables and their columns where these are scanned.

An analyst's names change nothing in a statement, on any engine; a steward's change nothing in what it returns
(`tests/engines/test_names.py`).
"""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from tests.soak import whole_or_share
from tests.sql.hostile import CODES, ODD, QUESTIONS, ROOM, VISITS, asked, catalog, distinct, identifiers

import discreet as dc
from discreet.core.domains import Bounds
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.engines.spark.dialect import SparkDialect
from discreet.engines.warehouses.dialect import WAREHOUSES, WarehouseDialect
from discreet.estimation.question import Estimate
from discreet.noise import Entropy
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.catalog import Catalog, Column, Table, folded
from discreet.sql.plan import Ref, Scan
from discreet.sql.statement.clauses import WithQuery, aliased
from discreet.sql.statement.dialect import DUCKDB
from discreet.sql.statement.naming import (
    ONCE,
    SUBQUERY,
    JoinNames,
    Name,
    Names,
    StatementNames,
    apart_from,
    check_names,
    renamed,
)
from discreet.sql.statement.selection import Selection, text_of
from discreet.synthesis.question import SyntheticRows

EXAMPLES = whole_or_share(100, 10)
STEWARDS = ("visits", *VISITS, "codes", *CODES)
KNOWN = catalog(STEWARDS)
PLAIN = [f"name{number}" for number in range(ROOM)]
DIALECTS: dict[str, Any] = {"duckdb": DUCKDB, "postgres": PostgresDialect(), "spark": SparkDialect()}
DIALECTS |= {name: WarehouseDialect(words) for name, words in WAREHOUSES.items()}
for dialect in DIALECTS.values():
    if dialect is not DUCKDB:
        dialect.tables |= {"visits": "SELECT * FROM elsewhere", "codes": "SELECT * FROM elsewhere"}
ROWS = {
    "visits": {"who": [1, 1, 2, 3, 4, 4] * 5, "city": list("abcabc") * 5, "cost": [1.0, 2.5, 4.0, 0.5, 9.0, 3.0] * 5},
    "codes": {"code": list("aabbc"), "weight": [1, 2, 3, 4, 5]},
}


@contextmanager
def session(known: Catalog = KNOWN) -> Iterator[Session]:
    engine = DuckDB(threads=1)
    for table in known.tables:
        columns = [*ROWS["visits" if table.private else "codes"].values()]
        columns += [[0.5 * number for number in range(30)], ["2020-01-02"] * 30] if table.private else []
        data = {column.name: values for column, values in zip(table.columns, columns, strict=True)}
        types = {table.columns[-1].name: "date"} if table.private else {}
        engine.add(table.name, data, unit=table.unit, private=table.private, types=types)
    engine.seal()
    unit = dc.User(str(known.tables[0].unit))
    made = Session(engine, known, unit, dc.ApproxDP(10**4, "1e-6"), None, "t", ["t"], None, None)
    with closing(made) as opened:
        yield opened


def written(opened: Session, question: str) -> dict[str, str]:
    """By dialect, the statement, or the refusal without the names in it."""
    plan = SQL(question, 1).bind(opened._context).plan().decided
    statements = {}
    for name, dialect in DIALECTS.items():
        try:
            statements[name] = replace(plan, dialect=dialect).statement
        except dc.Unsupported as refusal:
            statements[name] = refusal.reason
    return statements


@pytest.fixture(scope="module")
def opened() -> Iterator[Session]:
    with session() as made:
        yield made


@pytest.fixture(scope="module")
def ours(opened: Session) -> list[str]:
    """All names that statements have on all engines, but those of the tables: what they mean is for SQL to say."""
    asks = [asked(question, PLAIN) for question in QUESTIONS]
    plain = [statement for ask in asks for statement in written(opened, ask).values()]
    return [*(name for name in identifiers(plain) if name not in STEWARDS), *ODD]


def test_every_question_has_a_statement_on_every_server(opened: Session) -> None:
    for question in QUESTIONS:
        statements = written(opened, asked(question, PLAIN))
        for name in ("duckdb", "postgres", "spark"):
            assert statements[name].startswith(("WITH", "SELECT"))


@pytest.mark.parametrize("question", QUESTIONS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_an_analysts_names_change_nothing_in_a_statement(
    opened: Session, ours: list[str], question: str, data: st.DataObject
) -> None:
    names = data.draw(distinct(ours, ROOM))
    assert written(opened, asked(question, names)) == written(opened, asked(question, PLAIN))


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_an_analysts_names_change_nothing_in_an_answer(opened: Session, ours: list[str], data: st.DataObject) -> None:
    """HAVING, ORDER BY, LIMIT and outputs are computed by a statement too."""
    names = data.draw(distinct(ours, ROOM))
    question = (
        "SELECT -{1} AS {0}, {0} AS {3}, {1} AS {2} FROM (SELECT {city} AS {0}, COUNT(*) AS {1}, SUM({cost}) AS {4}"
        " FROM {visits} GROUP BY 1 HAVING SUM({cost}) > -1000000) WHERE {1} > -1000000 ORDER BY {4} DESC, {1} LIMIT 2"
    )
    plain = opened.sql(asked(question, PLAIN), epsilon=1, test_entropy=Entropy.for_tests(1))
    hostile = opened.sql(asked(question, names), epsilon=1, test_entropy=Entropy.for_tests(2))
    assert hostile.rows == plain.rows
    assert hostile.places == plain.places
    assert [*hostile.intervals(0.9).values()] == [*plain.intervals(0.9).values()]


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_an_analysts_names_change_nothing_for_synthetic_rows_and_estimates(
    opened: Session, ours: list[str], data: st.DataObject
) -> None:
    names = data.draw(distinct(ours, ROOM))
    question = (
        "SELECT {1} AS {0}, {2} AS {3} FROM (SELECT {city} AS {1}, {cost} AS {2}, {who} FROM {visits}) AS {4}"
        " JOIN (SELECT {code} AS {5} FROM {codes}) AS {6} ON {6}.{5} = {4}.{1}"
    )
    texts = [asked(question, chosen) for chosen in (PLAIN, names)]
    plain, hostile = (
        SyntheticRows(text, 1, bins={}, max_rows=3).bind(opened._context).request.statement for text in texts
    )
    assert plain == hostile
    how = (1, (0, 9), None, 10, 1, None, None, "numpy", None)
    plain, hostile = (Estimate(len, text, *how).bind(opened._context).request.statement for text in texts)
    assert plain == hostile


@settings(max_examples=2 * EXAMPLES)
@given(data=st.data())
def test_a_statement_has_a_stewards_names_only_where_a_table_is_scanned(ours: list[str], data: st.DataObject) -> None:
    allowed = [name for name in ours if not folded(name).startswith("discreet ")]
    stewards = data.draw(distinct(allowed, len(STEWARDS)))
    with session(catalog(stewards)) as made:
        question = data.draw(st.sampled_from(QUESTIONS))
        statement = SQL(asked(question, PLAIN, stewards), 1).bind(made._context).plan().decided.statement
    tree = sqlglot.parse_one(statement, dialect="duckdb")
    scanned = stewards if "{codes}" in question else stewards[: 1 + len(VISITS)]
    # Nothing is ever qualified by the name of a subquery.
    theirs = {folded(name) for name in scanned} - {SUBQUERY}
    assert not [column for column in tree.find_all(exp.Column) if column.table == SUBQUERY]
    for name in tree.find_all(exp.Identifier):
        source = name.parent_select.args.get("from_") if name.parent_select else None
        scans = source is not None and isinstance(source.this, exp.Table) and source.this.this.quoted
        assert folded(name.name) not in theirs or (scans and name.quoted), name
    aliases = [alias for alias in tree.find_all(exp.Alias, exp.TableAlias) if alias.name]
    assert aliases
    assert not theirs & {folded(alias.name) for alias in aliases}


def test_names_of_ours_are_none_of_a_tables_in_any_case_or_letters() -> None:
    for name in ("v1", "V12", "v", "𝐯1", "v₁", "v1"):
        assert Names([name]).new() == "vv1"
    assert Names(["vv7", "v1"]).new() == "vvv1"
    assert Names(["visits", "w1", "v1x"]).new() == "v1"


SNOWFLAKE = (
    "account all alter and any as between by case cast check column connect connection constraint create cross current"
    " current_date current_time current_timestamp current_user database delete distinct drop else exists false"
    " following for from full grant group gscluster having ilike in increment inner insert intersect into is issue join"
    " lateral left like localtime localtimestamp minus natural not null of on or order organization qualify regexp"
    " revoke right rlike row rows sample schema select set some start table tablesample then to trigger true try_cast"
    " union unique update using values view when whenever where with"
)
SPARK = (
    "anti authorization both collate collation cross current_date end escape except fetch filter foreign full inner"
    " intersect lateral leading left minus natural offset only outer overlaps primary references right rlike semi"
    " session_user some sql tablesample time trailing union unknown user using within"
)
"""Words that these reserve, as their documentation lists them; sqlglot has none for them."""
WORDS = [field.name for words in (StatementNames, JoinNames) for field in fields(words)] + [SUBQUERY, ONCE]


@settings(max_examples=10 * EXAMPLES)
@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(("", "2", "3", "_0", "2_7", "_", "_x"))), max_size=9))
def test_words_are_none_of_a_tables_whether_they_are_numbered_or_not(others: list[tuple[str, str]]) -> None:
    declared = {f"{word}{end}".upper() for word, end in others}
    for kind in (StatementNames, JoinNames):
        names = [Name(name) for name in vars(apart_from(kind, declared)).values()]
        said = [*names, *(name.at(place) for name in names for place in (0, 7))]
        assert len({*said}) == len(said)
        assert not {*said} & {folded(name) for name in declared}


def test_words_are_plain_where_nothing_else_is_called_so() -> None:
    assert [*vars(apart_from(StatementNames, ["visits", "city", "v1", "rows"])).values()] == [
        field.name for field in fields(StatementNames)
    ]
    assert apart_from(StatementNames, ["UNIT", "ſpread", "rows"]).unit == "unit2"
    assert apart_from(StatementNames, ["ſpread"]).spread == "spread2"
    assert apart_from(StatementNames, ["Cell_12"]).cell.at(3) == "cell2_3"


def test_words_need_no_quotes_and_are_cut_off_nowhere() -> None:
    """A word may stand for a column, a table or a query on every engine, with any number after it."""
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    reserved = {name for (name,) in rows}
    for dialect in DIALECTS.values():
        reserved |= set(Dialect.get_or_raise(dialect.name).generator_class.RESERVED_KEYWORDS)
    reserved |= {*SNOWFLAKE.split(), *SPARK.split()}
    assert len(reserved) > 500
    for word in WORDS:
        assert re.fullmatch("[a-z]+(_[a-z]+)*", word)
        assert word not in reserved
        assert f"{word}2" not in reserved
        assert len(Name(f"{word}99").at(10**6)) <= 30


def test_what_has_other_names_is_not_written() -> None:
    table = Table("t", (Column("v1", "integer"), Column("x", "real", Bounds(0, 1))), "v1")
    with pytest.raises(RuntimeError, match="no name of ours"):
        Selection().select(Scan(table))
    with pytest.raises(RuntimeError, match="no name of ours"):
        text_of(Ref("v1", "integer"))
    other: Any = "unit"
    for write in (lambda: aliased("1", other), lambda: str(WithQuery(other, "SELECT 1"))):
        with pytest.raises(RuntimeError, match="no name of ours"):
            write()
    assert isinstance(check_names(Ref(Name("v1"), "integer")), Ref)
    assert '"x"' in Selection().select(renamed(Scan(table))[0])

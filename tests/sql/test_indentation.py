"""A statement in lines is the same statement: on every engine by its tokens, on DuckDB by what it returns."""

from collections import Counter
from dataclasses import replace

import pytest
from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from tests.engines.contract import CORPORA, DUCKDB, Corpus
from tests.sql.hostile import QUESTIONS, ROOM, asked
from tests.sql.test_naming import DIALECTS, session

import discreet as dc
from discreet.session.sql import SQL
from discreet.sql.statement.indentation import WIDTH, indented

NAMES = [f"name{number}" for number in range(ROOM)]
TEXTS = ("a  b", "a\nb", "it's", "SELECT (1, 2) FROM", "CASE WHEN", "a' OR '1", "--x", "/* x */", "(", "a\\", "é ſ")


def tokens(statement: str, dialect: str) -> list[tuple[object, str]]:
    return [(token.token_type, token.text) for token in Dialect.get_or_raise(dialect).tokenize(statement)]


@pytest.mark.parametrize("name", DIALECTS)
def test_only_white_space_between_tokens_changes_on_any_engine(name: str) -> None:
    dialect = DIALECTS[name]
    with session() as opened:
        for question in QUESTIONS:
            plan = SQL(asked(question, NAMES), 1).bind(opened._context).plan().decided
            try:
                statement = replace(plan, dialect=dialect).statement
            except dc.Unsupported:
                continue
            lines = indented(statement, dialect.name)
            assert tokens(lines, dialect.name) == tokens(statement, dialect.name)
            assert "".join(lines.split()) == "".join(statement.split())
            assert len(lines.splitlines()) > 20
            starts = Counter(line.split()[0] for line in lines.splitlines())
            assert starts["FROM"] + starts["SELECT"] >= statement.count("SELECT ")


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.name)
def test_what_is_printed_returns_the_same_on_duckdb(corpus: Corpus) -> None:
    with DUCKDB.engine("", corpus.catalog, corpus.rows) as engine:
        for _, plan in corpus.planned()[::5]:
            lines = indented(plan.statement, "duckdb")
            assert "\nFROM " in lines
            assert Counter(engine.run(lines)) == Counter(engine.run(plan.statement))


@pytest.mark.parametrize("name", ["duckdb", "postgres", "spark"])
def test_texts_stay_as_they_are(name: str) -> None:
    dialect = DIALECTS[name]
    with session() as opened:
        for text in TEXTS:
            question = f"SELECT COUNT(*) AS n FROM visits WHERE city = '{text.replace(chr(39), 2 * chr(39))}'"
            plan = SQL(question, 1).bind(opened._context).plan().decided
            statement = replace(plan, dialect=dialect).statement
            lines = indented(statement, dialect.name)
            assert tokens(lines, name) == tokens(statement, name)
            assert (TokenType.STRING, text) in tokens(lines, name) or name == "spark"
            assert lines != statement
            if name == "duckdb":
                assert opened._engine.run(lines) == opened._engine.run(statement)


def test_long_lines_are_broken_and_short_ones_are_not() -> None:
    text = " AND ".join(f"a BETWEEN {place} AND {place + 1}" for place in range(9))
    lines = indented(
        f"SELECT a, CASE WHEN {text} THEN 1 ELSE 0 END AS b FROM (SELECT a FROM t) AS s", "duckdb"
    ).splitlines()
    assert lines[:4] == ["SELECT", "  a,", "  CASE", "    WHEN a BETWEEN 0 AND 1"]
    assert lines[4:6] == ["      AND a BETWEEN 1 AND 2", "      AND a BETWEEN 2 AND 3"]
    assert lines[-5:] == ["  END AS b", "FROM (", "  SELECT a", "  FROM t", ") AS s"]
    assert max(map(len, lines)) <= WIDTH
    assert indented("SELECT LEFT(a, 2) FROM t LEFT JOIN s ON 1 = 1", "duckdb").count("\n") == 2


@pytest.mark.parametrize(
    "text", ["", "SELECT 'a", "SELECT (1", "SELECT 1 /* ( */ FROM t", "SELECT " + "(" * 2000 + ")" * 2000]
)
def test_what_cannot_be_read_is_printed_as_it_is(text: str) -> None:
    assert indented(text, "duckdb") == text
    assert indented("SELECT 1 FROM t", "no such engine") == "SELECT 1 FROM t"

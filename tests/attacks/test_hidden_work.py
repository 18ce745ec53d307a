"""Work that does not stand in a question, but that an engine makes of it: for one row, or for a price, which is free.

Engines compute arms of a CASE that no row takes, begin again where something failed, write out columns of subqueries
where they push conditions down, and take conditions apart. None of that is seen in seconds here, but in statements.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sqlglot import exp, parse_one
from tests.attacks import statement_faults as faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import exact, opened

from discreet.core.errors import Unsupported
from discreet.engines.duckdb.engine import FEW
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.engines.spark.dialect import SparkDialect
from discreet.session.sql import SQL
from discreet.sql.catalog import Column, Table
from discreet.sql.functions.registry import call
from discreet.sql.plan import Literal, Ref, Scan
from discreet.sql.statement.dialect import DUCKDB, Dialect
from discreet.sql.statement.naming import renamed
from discreet.sql.statement.selection import Selection
from discreet.sql.statement.widths import LEAST, MOST_CARRIED, longest_text

LARGE = "9000000000000000000000000000000000000"
GROWING = [
    f"LENGTH(REPLACE(s, 'a', '{'b' * 31}')) > 3",
    f"LENGTH(REPLACE(REPLACE(s, 'a', '{'b' * 31}'), 'b', '{'c' * 31}')) > 3",
    "LENGTH(s || s || UPPER(s)) > 3",
    "LENGTH(CONCAT(s, '-', TRIM(s))) > 3",
    f"s LIKE '%{'a' * 500}_b%'",
    f"LOWER(s) LIKE '%{'a' * 500}_b%'",
]


def people(count: int = 6) -> dict[str, Any]:
    return {"who": np.arange(count), "x": np.arange(count), "s": ["a"] * count}


def is_cut(node: exp.Expr) -> bool:
    """Whether a text that a function is given was cut, or is written, wherever it comes from."""
    if isinstance(node, exp.Literal):
        return True
    if isinstance(node, exp.Paren | exp.Replace | exp.Upper | exp.Lower | exp.Trim):
        return is_cut(node.this)
    if isinstance(node, exp.Case):
        return all(is_cut(arm.args["true"]) for arm in node.args["ifs"]) and node.args.get("default") is None
    if isinstance(node, exp.DPipe):
        return is_cut(node.this) and is_cut(node.expression)
    return isinstance(node, exp.Left)


@attack(38, finds=[faults.results_guarded_and_not_arguments])
def test_functions_that_lengthen_texts_are_given_cut_ones() -> None:
    with opened(people()) as session:
        for condition in GROWING:
            asked = SQL(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", 1).bind(session._context).plan().decided
            tree = parse_one(asked.statement, dialect="duckdb")
            made = [*tree.find_all(exp.Replace, exp.DPipe, exp.Like)]
            assert made
            assert all(is_cut(node.this) for node in made), condition


SOUGHT = "a" * 4000 + "b"
SEARCHES = [
    f"CONTAINS(s, '{SOUGHT}')",
    f"s LIKE '%{SOUGHT}%'",
    f"s ILIKE '{SOUGHT}%{SOUGHT}%b'",
    f"REPLACE(s, '{SOUGHT}', '') = 'x'",
    f"SPLIT_PART(s, '{SOUGHT}', 2) = 'x'",
    "CONTAINS(s, t)",
    "CONTAINS(s, UPPER(s))",
]


@attack(30, 38, finds=[faults.searches_of_any_length])
def test_what_is_looked_for_in_a_text_is_not_compared_at_every_place_of_a_long_one() -> None:
    """Engines that look for one text in another naively compare as many characters as the product of both lengths."""
    many = {"who": np.arange(3), "s": ["a" * 1_000, "a" * 8_000, "b"], "t": ["a", "a" * 4_000, "b"]}
    with opened(many) as session:
        for condition in SEARCHES:
            for wanted, count in (("IS NULL", 1), ("IS NOT NULL", 2)):
                found = exact(session, f"SELECT COUNT(*) AS n FROM t WHERE ({condition}) {wanted}")
                assert sum(found.groups.by_rows.values()) == count, condition[:30]


@attack(38, 49, finds=[faults.rows_of_any_width])
def test_many_keys_of_one_text_do_not_make_a_row_larger_than_engines_hold() -> None:
    keys = [f"SUBSTRING(s, {place + 1}) AS k{place}" for place in range(40)]
    text = f"SELECT {', '.join(keys)}, COUNT(*) AS n FROM t GROUP BY {', '.join(f'k{i}' for i in range(40))}"
    for length, count in ((400_000, 40), (420_000, 0)):
        with opened({"who": np.arange(1), "s": ["a" * length]}) as session:
            [group] = exact(session, text).groups.keys
            carried = [len(key) for key in group if key is not None]
            assert len(carried) == count
            assert sum(carried) <= MOST_CARRIED


@pytest.mark.parametrize("dialect", [DUCKDB, PostgresDialect(), SparkDialect()])
def test_a_text_is_the_shorter_the_more_of_it_a_question_makes(dialect: Dialect) -> None:
    text, other = Ref("s", "text"), Ref("n", "integer")
    table = Scan(Table("t", (Column("s", "text"), Column("n", "integer"))))
    assert longest_text(table, [other, call("=", text, Literal("a", "text"))], dialect) is None
    limits = [longest_text(table, [call("trim", text)] * many, dialect) for many in (1, 8, 9, 100, 10**6)]
    slow = longest_text(table, [call("upper", text)] * 100, dialect)
    assert slow == (MOST_CARRIED // 100 if dialect is DUCKDB else MOST_CARRIED // 6_500)
    assert (limits[0], limits[1]) == ((None, None) if dialect is DUCKDB else (MOST_CARRIED, MOST_CARRIED // 8))
    assert limits[2:] == [MOST_CARRIED // 9, MOST_CARRIED // 100, LEAST]
    if isinstance(dialect, PostgresDialect | SparkDialect):
        dialect.tables["t"] = "t"
    column = Selection(dialect, 9).select(renamed(table)[0])
    assert f"{dialect.byte_length('')[:-2]}" in column
    assert "<= 9 THEN" in column


def test_limits_hold_for_every_word_of_a_dictionary(tmp_path: Path) -> None:
    """Rows that have short words are counted, and the one with a long word is NULL."""
    many, longest = FEW + 5_000, 300_000
    words = ["a", "b"] * (many // 2) + ["a" * longest]
    table = pa.table({"who": np.arange(len(words)), "s": words})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", use_dictionary=True)
    stretched = f"REPLACE(REPLACE(s, 'a', '{'a' * 31}'), 'a', '{'a' * 31}')"
    with opened(tmp_path / "t.parquet", max_rows=1, ledger=tmp_path / "books") as session:
        for wanted, count in (("IS NULL", 1), ("IS NOT NULL", many)):
            found = exact(session, f"SELECT COUNT(*) AS n FROM t WHERE {stretched} {wanted}")
            assert sum(found.groups.by_rows.values()) == count


@attack(30, 38, finds=[faults.products_tried])
def test_what_overflows_is_known_before_it_is_computed() -> None:
    text = f"x + {LARGE}"
    for _ in range(5):
        text = f"COALESCE(({text}) * {LARGE}, x + {LARGE})"
    with opened(people()) as session:
        asked = SQL(f"SELECT COUNT_IF({text} > 5) AS n FROM t", 1).bind(session._context).plan().decided
        assert "TRY(" not in asked.statement
        session._engine.run(asked.statement)


@pytest.mark.parametrize("part", ["CASE WHEN b > 0 THEN b ELSE 0 END", "b + b", "b * b - b"])
@attack(38, 42, finds=[faults.subqueries_weighed_alone], part="CASE WHEN b > 0 THEN b ELSE 0 END")
def test_columns_of_subqueries_are_weighed_as_engines_write_them_out(part: str) -> None:
    rows = "SELECT who, x AS b FROM t"
    for _ in range(30):
        rows = f"SELECT who, {part} AS b FROM ({rows})"
    with opened(people()) as session:
        for end in ("WHERE b = 2", "GROUP BY b"):
            text = f"SELECT COUNT(*) AS n FROM ({rows}) {end}"
            with pytest.raises(Unsupported, match="written out"):
                session.price(text, epsilon=1)


@pytest.mark.parametrize("test", ["{} BETWEEN 1 AND 2", "{} IN (1, x)", "{} IN (1, 2, 3)", "NOT {} BETWEEN x AND 2"])
@attack(42, finds=[faults.conditions_taken_for_one], test="{} BETWEEN 1 AND 2")
def test_conditions_weigh_what_engines_make_of_them(test: str) -> None:
    text = "x"
    for _ in range(13):
        text = f"CASE WHEN {test.format(text)} THEN 1 ELSE 2 END"
    with opened(people()) as session, pytest.raises(Unsupported, match="too large"):
        SQL(f"SELECT COUNT_IF({text} > 5) AS n FROM t", 1).bind(session._context)

"""Row expressions on the real engine: total, typed, within their ranges, and meaning what the reference says."""

import datetime
import random
import re
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from tests.soak import whole_or_share
from tests.sql.expressions import COLUMNS, ENGINE, KINDS, Maker, table
from tests.sql.reference import evaluate

from discreet.core.errors import Unsupported
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.sql.functions.ranges import Interval
from discreet.sql.functions.registry import FUNCTIONS, admit, call, cast, interval, render, weight
from discreet.sql.parsing.expressions import DEEPEST
from discreet.sql.plan import Call, Expression, Literal, Ref

EXPRESSIONS = whole_or_share(500, 200)
AT_ONCE = 100
MOST = {"integer": Literal(2**63 - 1, "integer"), "real": Literal(Fraction(10) ** 308, "real")}


def run(
    connection: duckdb.DuckDBPyConnection, expressions: list[Expression]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Types and columns of the expressions over the admitted rows."""
    shown = ", ".join(f"{render(e).sql('duckdb')} AS c{place}" for place, e in enumerate(expressions))
    relation = connection.sql(f"SELECT {shown} FROM t ORDER BY place")
    return [str(kind) for kind in relation.types], list(zip(*relation.fetchall(), strict=True))


def ranges(rows: list[dict[str, Any]]) -> dict[str, Interval]:
    held = {name: [Fraction(row[name]) for row in rows if row[name] is not None] for name in numbers()}
    return {name: Interval(min(values), max(values)) for name, values in held.items()}


def numbers() -> list[str]:
    return [name for name, kind in COLUMNS.items() if kind in ("integer", "real")]


@pytest.mark.parametrize("seed", range(whole_or_share(30, 4)))
def test_random_expressions_agree_with_the_reference_on_nasty_rows(seed: int) -> None:
    rng = random.Random(seed)
    connection, rows = table(rng, 50)
    maker, known = Maker(rng), ranges(rows)
    for _ in range(0, EXPRESSIONS, AT_ONCE):
        expressions = [maker.make(rng.choice(KINDS), rng.randrange(1, 5)) for _ in range(AT_ONCE)]
        types, columns = run(connection, expressions)
        for expression, kind, column in zip(expressions, types, columns, strict=True):
            assert kind == ENGINE[expression.type], expression
            wanted = [evaluate(expression, row) for row in rows]
            assert [repr(value) for value in column] == [repr(value) for value in wanted], expression
            reach = interval(expression, known)
            if expression.type in ("integer", "real"):
                assert all(value is None or reach.lower <= Fraction(value) <= reach.upper for value in column), (
                    expression
                )


@pytest.mark.parametrize("seed", range(3))
def test_random_texts_of_long_texts_agree_with_the_reference(seed: int) -> None:
    """Lengths around what joining and replacing make at most, so that some of the results are NULL."""
    rng = random.Random(seed)
    connection, rows = table(rng, 8)
    for place, row in enumerate(rows):
        row["s"] = "ab" * rng.choice([1, 12_500, 16_667, 25_000, 50_000, 70_000])
        row["Text"] = "😀é" * rng.choice([1, 3, 25_000, 50_000])
        connection.execute('UPDATE t SET s = ?, "Text" = ? WHERE place = ?', [row["s"], row["Text"], place])
    maker, lost = Maker(rng), 0
    for _ in range(whole_or_share(150, 50)):
        expression = maker.make("text", rng.randrange(1, 5))
        _, (column,) = run(connection, [expression])
        assert list(column) == [evaluate(expression, row) for row in rows], expression
        lost += any(value is None for value in column) and not any(value is None for value in plain(expression, rows))
    assert lost > whole_or_share(5, 1)


def plain(expression: Expression, rows: list[dict[str, Any]]) -> list[Any]:
    """What the expression gives where texts are short."""
    return [evaluate(expression, {**row, "s": "ab", "Text": "😀é"}) for row in rows]


TEXT = Ref("s", "text")
STRETCHED = call("replace", TEXT, Literal("a", "text"), Literal("c" * 999, "text"))


@pytest.mark.parametrize(
    ("expression", "longest"),
    [
        (STRETCHED, 100),
        (call("upper", STRETCHED), 100),
        (call("concat", TEXT, TEXT), 50_000),
        (call("concat", call("concat", TEXT, Literal("x" * 1_000, "text")), call("trim", TEXT)), 49_500),
        (call("replace", call("concat", TEXT, TEXT), Literal("aa", "text"), Literal("bbb", "text")), 25_000),
        (call("replace", TEXT, Literal("a", "text"), Literal("b", "text")), None),
        (call("concat", call("left", TEXT, Literal(9, "integer")), cast(call("length", TEXT), "text")), None),
        (call("like", TEXT, Literal("%_" + "a" * 998, "text")), 10_000),
        (call("like", TEXT, Literal("%" + "a" * 999, "text")), 10_000),
        (call("like", TEXT, Literal("%" + "a" * 63, "text")), None),
        (call("contains", TEXT, Literal("b" + "a" * 999, "text")), 10_000),
        (call("contains", TEXT, Literal("b" + "a" * 63, "text")), None),
        (call("contains", TEXT, TEXT), 3_162),
        (call("contains", TEXT, call("left", TEXT, Literal(1_000, "integer"))), 10_000),
        (call("replace", TEXT, Literal("b" + "a" * 999, "text"), Literal("", "text")), 10_000),
        (call("split_part", TEXT, Literal("b" + "a" * 999, "text"), Literal(2, "integer")), 10_000),
        (call("split_part", TEXT, Literal(",", "text"), Literal(2, "integer")), 1_000_000),
        (call("starts_with", TEXT, TEXT), None),
    ],
    ids=lambda value: value.function if isinstance(value, Call) else str(value),
)
def test_a_text_too_long_to_work_on_gives_null_whatever_it_holds(expression: Expression, longest: int | None) -> None:
    """Without the limits the first would need 5 GB for one value, and fail."""
    connection = duckdb.connect(config={"threads": 1})
    lengths = [0, 7, *([] if longest is None else [longest, longest + 1]), 5_000_000]
    connection.execute("CREATE TABLE t AS SELECT UNNEST(?) AS n", [lengths])
    shown = render(expression).sql("duckdb")
    found = connection.execute(f"SELECT n, {shown} IS NULL FROM (SELECT n, REPEAT('a', n) AS s FROM t)").fetchall()
    assert found == [(n, longest is not None and n > longest) for n in lengths]


def test_chains_of_texts_are_measured_once() -> None:
    chain: Expression = TEXT
    for place in range(DEEPEST):
        chain = call(
            "concat", call("replace", chain, Literal("ß", "text"), Literal("ss", "text")), Literal("-", "text")
        )
        assert render(chain).sql("duckdb").count("LENGTH(") == (place < 16), place
    assert weight(chain) < 500
    other = call("concat", call("coalesce", chain, TEXT), TEXT)
    assert render(other).sql("duckdb").count('"s"') <= weight(other)


def test_the_random_expressions_use_every_function() -> None:
    maker = Maker(random.Random(0))
    for _ in range(8 * EXPRESSIONS):
        maker.make(maker.rng.choice(KINDS), 3)
    assert maker.used == set(FUNCTIONS)


def test_a_wrong_renderer_is_noticed() -> None:
    """The comparison has power: FLOOR in place of TRUNC differs on some nasty row."""
    connection, rows = table(random.Random(0), 50)
    _, (column,) = run(connection, [call("floor", Ref('sm"all', "real"))])
    assert list(column) != [evaluate(call("trunc", Ref('sm"all', "real")), row) for row in rows]


def test_admission_makes_null_of_what_expressions_may_not_see() -> None:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(
        "CREATE TABLE odd (r FLOAT, h HUGEINT, u UBIGINT, d DATE, m TIMESTAMP_NS, e ENUM ('x', 'y'), c DECIMAL(9, 2))"
    )
    connection.execute(
        "INSERT INTO odd VALUES ('nan', 1e30, 18446744073709551615, 'infinity', '1999-01-01 00:00:01', 'x', 1.25)"
    )
    connection.execute("INSERT INTO odd VALUES ('-0.0', -5, 7, '2020-01-01', NULL, 'y', NULL)")
    kinds = {"r": "real", "h": "integer", "u": "integer", "d": "date", "m": "timestamp", "e": "text", "c": "real"}
    shown = ", ".join(f"{admit(name, kind).sql('duckdb')} AS {name}" for name, kind in kinds.items())
    relation = connection.sql(f"SELECT {shown} FROM odd")
    assert [str(kind) for kind in relation.types] == [ENGINE[kind] for kind in kinds.values()]
    first, second = relation.fetchall()
    assert first == (None, None, None, None, datetime.datetime(1999, 1, 1, 0, 0, 1), "x", 1.25)
    assert repr(second[0]) == "0.0"
    assert second[1:] == (-5, 7, datetime.date(2020, 1, 1), None, "y", None)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (call("/", Literal(1, "integer"), Literal(0, "integer")), None),
        (call("%", Literal(1, "integer"), Literal(0, "integer")), None),
        (call("//", Literal(-(2**63), "integer"), Literal(-1, "integer")), None),
        (call("+", MOST["integer"], Literal(1, "integer")), None),
        (call("*", MOST["integer"], MOST["integer"]), None),
        (call("abs", Literal(-(2**63), "integer")), None),
        (call("negate", Literal(-(2**63), "integer")), None),
        (call("*", MOST["real"], MOST["real"]), None),
        (call("-", call("*", MOST["real"], MOST["real"]), call("*", MOST["real"], MOST["real"])), None),
        (call("coalesce", call("/", Literal(1, "integer"), Literal(0, "integer")), Literal(9, "integer")), 9.0),
        (call("ln", Literal(0, "integer")), None),
        (call("sqrt", Literal(-1, "integer")), None),
        (call("exp", Literal(1000, "integer")), None),
        (call("power", Literal(-8, "integer"), Literal(Fraction(1, 3), "real")), None),
        (call("power", Literal(0, "integer"), Literal(-1, "integer")), None),
        (call("clamp", call("*", MOST["real"], MOST["real"]), Literal(0, "integer"), Literal(5, "integer")), 5.0),
        (call("clamp", Literal(None, "real"), Literal(0, "integer"), Literal(5, "integer")), None),
        (call("greatest", Literal(None, "integer"), Literal(0, "integer")), 0),
        (call("/", Literal(7, "integer"), Literal(2, "integer")), 3.5),
        (call("//", Literal(-7, "integer"), Literal(2, "integer")), -3),
        (call("%", Literal(-7, "integer"), Literal(2, "integer")), -1),
        (call("round", Literal(Fraction(-5, 2), "real")), -3.0),
        (cast(call("negate", call("+", Literal(Fraction(5, 2), "real"), Ref("zero", "real"))), "integer"), -2),
        (cast(Literal("12x", "text"), "integer"), None),
        (cast(Literal("nan", "text"), "real"), None),
        (cast(Literal("1e999", "text"), "real"), None),
        (call("width_bucket", Literal(5, "integer"), *(Literal(n, "integer") for n in (0, 10, 5))), 3),
        (call("width_bucket", Literal(10, "integer"), *(Literal(n, "integer") for n in (0, 10, 5))), 6),
        (call("dow", Literal(datetime.date(2024, 3, 3), "date")), 0),
        (call("days", Literal(datetime.date(2020, 3, 1), "date"), Literal(datetime.date(2020, 2, 28), "date")), -2),
        (call("=", Literal("é", "text"), Literal("e\u0301", "text")), False),
    ],
    ids=str,
)
def test_what_could_fail_gives_a_value_or_null(expression: Expression, value: Any) -> None:
    statement = f'SELECT {render(expression).sql("duckdb")} FROM (SELECT 0::DOUBLE AS "zero")'
    ((found,),) = duckdb.execute(statement).fetchall()
    assert repr(found) == repr(value)
    assert repr(evaluate(expression, {"zero": 0.0})) == repr(value)


def test_no_expression_gives_minus_zero() -> None:
    zero = call("*", Ref("x", "real"), Literal(0, "integer"))
    rounded = call("ceil", call("/", Ref("x", "real"), Literal(9, "integer")))
    for expression in (zero, rounded, call("negate", call("abs", zero)), cast(zero, "text")):
        ((found,),) = duckdb.execute(
            f"SELECT {render(expression).sql('duckdb')} FROM (SELECT -1::DOUBLE AS x)"
        ).fetchall()
        assert repr(found) in ("0.0", "'0.0'")


@pytest.mark.parametrize("name", ["+", "-", "least", "coalesce", "//"])
def test_the_deepest_expressions_run(name: str) -> None:
    n = Ref("n", "integer")
    right: Expression = n
    left: Expression = n
    for _ in range(DEEPEST):
        right, left = call(name, n, right) if name != "//" else right, call(name, left, n)
    for expression in (right, left):
        statement = f"SELECT {render(expression).sql('duckdb')} FROM (SELECT 2::BIGINT AS n)"
        assert duckdb.execute(statement).fetchall() == [(evaluate(expression, {"n": 2}),)]


def test_ranges_skip_the_wide_arithmetic() -> None:
    year = call("-", call("year", Ref("day", "date")), Literal(1900, "integer"))
    assert "INT128" not in render(year).sql("duckdb")
    assert "INT128" in render(call("-", Ref("n", "integer"), Literal(1900, "integer"))).sql("duckdb")


def test_weight_counts_repeated_sql() -> None:
    expression: Expression = Ref("x", "real")
    for _ in range(10):
        expression = call("ln", expression)
    assert weight(expression) > 2**10
    assert render(expression).sql("duckdb").count('"x"') <= 2 * weight(expression)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("+", [Ref("s", "text"), Literal(1, "integer")]),
        ("+", [Literal(1, "integer")]),
        ("<", [Ref("b", "boolean"), Ref("b", "boolean")]),
        ("and", [Ref("b", "boolean"), Literal(1, "integer")]),
        ("year", [Ref("s", "text")]),
        ("lower", [Ref("n", "integer")]),
        ("case", [Ref("b", "boolean"), Literal(1, "integer"), Literal("x", "text")]),
        ("substring", [Ref("s", "text"), Literal(0, "integer"), Literal(1, "integer")]),
        ("like", [Ref("s", "text"), Ref("s", "text")]),
        ("replace", [Ref("s", "text"), Literal("", "text"), Literal("x", "text")]),
        ("nonsense", []),
    ],
)
def test_arguments_of_other_types_are_refused(name: str, arguments: list[Expression]) -> None:
    with pytest.raises(Unsupported):
        call(name, *arguments)


def test_numbers_and_dates_are_brought_to_one_type_by_casts_in_the_plan() -> None:
    assert call("<", Ref("n", "integer"), Ref("x", "real")).arguments[0] == Call("cast", (Ref("n", "integer"),), "real")
    compared = call("=", Ref("d", "date"), Literal("2020-01-01", "text"))
    assert compared.arguments[1] == Literal(datetime.date(2020, 1, 1), "date")


def test_how_long_a_text_becomes_is_computed_in_64_bits() -> None:
    """Two texts of which one grows 900 times: with lengths of 32 bits the product itself would overflow."""
    grown = call("replace", TEXT, Literal("a", "text"), Literal("b" * 900, "text"))
    shown = PostgresDialect().text(render(call("concat", grown, Ref("t", "text"))))
    assert "* 900" in shown
    assert not re.search(r"(?<!CAST\()LENGTH\([^()]*\) \* 900", shown)

"""One unit's values change numbers only: never a type, a status, a shape, an order, a plan, a price or a text.

Lines of the list of known privacy bugs that are tested here: NaN, infinities, −0.0, subnormals, empty and all-NULL
columns; NaN that survives a clamp; the engine's types against ours; one bad row that turns success into failure;
expressions that are not row by row; group keys and the order of rows; bounds, domains and types read off the data;
errors that carry values. The same for the parts alone: tests/engines/test_neighbours.py, tests/sql/test_functions.py,
tests/test_connection.py.
"""

import datetime
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.attacks import sql_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import exact, opened
from tests.sql.expressions import KINDS, Maker
from tests.sql.expressions import table as nasty
from tests.sql.reference import evaluate
from tests.sql.test_functions import run

import discreet as dc
from discreet.noise import Entropy
from discreet.session.session import Session
from discreet.session.sql import SQL

FACTS: dict[str, Any] = {"bounds": {"x": (0, 10), "i": (0, 10)}, "values": {"s": ["a", "b", None]}}
ODD = {
    "x": [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, -1e308, None],
    "i": [2**63 - 1, -(2**63), 0, -1, None],
    "s": [
        "",
        " ",
        "a ",
        "A",
        "\0",
        "ß",
        "\u2028",
        "'",
        '"',
        "\\",
        "%_",
        "nan",
        "1e400",
        "2020-02-30",
        "x" * 10_000,
        None,
    ],
    "d": [-719_162, 2_932_896, 2**31 - 1, -(2**31), 0, None],
    "t": [2**63 - 1, -(2**63), -62_135_596_800_000_000, 253_402_300_799_999_999, 253_402_300_800_000_000, None],
    "b": [True, False, None],
}
QUESTIONS = [
    "SELECT s, COUNT(*) AS n, SUM(x) AS a, AVG(i) AS b, STDDEV(x) AS c FROM t GROUP BY s",
    "SELECT s, MEDIAN(x) AS q, MIN(i) AS lo, MAX(x) AS hi FROM t GROUP BY s",
    "SELECT SUM(CLAMP(x * x * x, 0, 9)) AS a, AVG(CLAMP(1 / x, 0, 9)) AS b, SUM(CLAMP(EXP(x), 0, 9)) AS c FROM t",
    "SELECT SUM(CLAMP(LN(x) + SQRT(x) + POWER(x, -0.5), 0, 9)) AS a, AVG(CLAMP(x % i, -5, 5)) AS b FROM t",
    "SELECT SUM(CLAMP(i * i * i - i, 0, 9)) AS a, SUM(CLAMP(i // (i - 5), 0, 9)) AS b, SUM(ABS(-i)) AS c FROM t",
    "SELECT SUM(CLAMP(CAST(s AS BIGINT), 0, 9)) AS a, SUM(CLAMP(CAST(s AS DOUBLE), 0, 9)) AS b FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(s AS DATE) > '2020-01-01' OR CAST(s AS TIMESTAMP) IS NULL",
    "SELECT COUNT(*) AS n FROM t WHERE s LIKE '%_a%' OR LOWER(s) = UPPER(s) OR REPLACE(s, 'x', 'yy') > LEFT(s, 3) || s",
    "SELECT MONTH(d) AS m, COUNT(*) AS n FROM t GROUP BY 1",
    "SELECT DAYOFWEEK(t) AS m, HOUR(t) AS h, COUNT(*) AS n FROM t GROUP BY 1, 2",
    "SELECT SUM(CLAMP(DATE_DIFF('day', d, CAST('2020-01-01' AS DATE)), 0, 9)) AS a FROM t WHERE YEAR(t) > 2000",
    "SELECT COUNT(*) AS n FROM t WHERE DATE_TRUNC('month', t) > d AND CAST(t AS VARCHAR) <> CAST(x AS VARCHAR)",
    "SELECT CASE WHEN x > 5 THEN 'high' WHEN b THEN 'yes' END AS k, COUNT(*) AS n FROM t GROUP BY 1",
    "SELECT FLOOR(x / 2) AS k, COUNT(DISTINCT who) AS n FROM t WHERE x BETWEEN 0 AND 10 GROUP BY 1",
    "SELECT COUNT(*) AS n FROM (SELECT who, SUM(x) AS a, AVG(x) AS b, STDDEV(x) AS c, MEDIAN(i) AS m, SUM(i) AS e"
    " FROM t GROUP BY who) WHERE a > 0 OR b < 1 OR c > 0 OR m > 1 OR e > 0",
]
UNLISTED = [
    f"SELECT {column} AS k, COUNT(*) AS n FROM t GROUP BY 1" for column in ("x", "i", "d", "t", "CAST(x AS VARCHAR)")
]


def table(odd_rows: int, seed: int = 0) -> pa.Table:
    """Plain rows of 40 units, and one unit with rows of odd values only."""
    rng = random.Random(seed)
    odd = [{name: rng.choice(values) for name, values in ODD.items()} for _ in range(odd_rows)]
    plain = [
        {"x": float(i % 9), "i": i % 9, "s": "ab"[i % 2], "d": 18_000 + i, "t": 10**15 + i, "b": i % 3 == 0}
        for i in range(80)
    ]
    rows = plain + odd
    kinds = {"x": pa.float64(), "i": pa.int64(), "s": pa.string(), "d": pa.int32(), "t": pa.int64(), "b": pa.bool_()}
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    columns["d"], columns["t"] = columns["d"].cast(pa.date32()), columns["t"].cast(pa.timestamp("us"))
    who = pa.array([i // 2 for i in range(80)] + [99] * odd_rows, pa.int64())
    return pa.table({"who": who, **columns})


def seen(session: Session, question: str) -> tuple[Any, ...]:
    """All of an answer but its numbers; or what was raised. The same noise is drawn, in whatever books."""
    session._counter = replace(session._counter, lasting=False)
    try:
        answer = session.sql(question, epsilon=1, test_entropy=Entropy.for_tests(5))
    except Exception as error:
        return type(error), str(error), error.__context__
    keys = [name for name in answer.names if name not in answer.measured]
    cells = [tuple(type(cell) for cell in row) for row in answer.rows]
    listed = [tuple(answer.column(name)) for name in keys]
    # That numbers are too noisy is said of the released numbers themselves.
    notes = [note for note in answer.notes if not note.startswith("Too noisy")]
    return answer.names, cells, listed, str(answer.loss), [*answer.intervals("0.9")], len(notes)


@pytest.mark.parametrize("unit", ["who", dc.Row()], ids=["user", "row"])
@pytest.mark.parametrize("seed", range(3))
@attack(8, finds=[sql_faults.columns_as_they_are], unit="who", seed=0)
def test_odd_values_of_one_unit_leave_everything_but_numbers_alone(unit: Any, seed: int) -> None:
    sides = [table(0), table(1 if isinstance(unit, dc.Row) else 30, seed)]
    sessions = [opened(side, unit, **FACTS) for side in sides]
    for question in QUESTIONS:
        if isinstance(unit, dc.Row) and "who" in question:
            continue
        first, second = (seen(session, question) for session in sessions)
        assert first == second, question
        assert isinstance(first[0], tuple), (question, first)
    for session in sessions:
        session.close()


@pytest.mark.parametrize("question", UNLISTED)
def test_odd_keys_never_show_and_never_fail(question: str) -> None:
    with opened(table(30), **FACTS) as odd, opened(table(0), **FACTS) as plain:
        assert seen(odd, question) == seen(plain, question)


@pytest.mark.parametrize("text", ["99999999999999999999", "1e", "four", ""])
@attack(11, finds=[sql_faults.text_cast_as_the_engine_does], text="99999999999999999999")
def test_one_text_that_is_no_number_does_not_fail(text: str) -> None:
    question = "SELECT SUM(CLAMP(CAST(s AS BIGINT), 0, 9)) AS a FROM t"
    numbers = {"who": np.arange(4), "s": np.array(["1", "2", "3", "4"])}
    odd = {"who": np.arange(4), "s": np.array(["1", "2", "3", text])}
    with opened(numbers) as plain, opened(odd) as session:
        assert seen(plain, question) == seen(session, question)


@pytest.mark.parametrize("clamped", ["x", "CLAMP(x, 0, 9)", "CLAMP(x + x, 0, 9)"])
@attack(9, finds=[sql_faults.no_number_is_the_largest], clamped="x")
def test_what_is_no_number_counts_as_nothing(clamped: str) -> None:
    """Not as 0, not as a bound: like NULL."""
    sides = [{"who": np.arange(3), "x": np.array([1.0, 2.0, last])} for last in (math.nan, 0.0)]
    sides[1] = {name: column[:2] for name, column in sides[1].items()}
    found = []
    for side in sides:
        with opened(side, bounds={"x": (0, 9)}, max_rows=1) as session:
            found.append(exact(session, f"SELECT SUM({clamped}) AS s, AVG({clamped}) AS m FROM t").totals([()]))
    assert found[0] == found[1]


@attack(10, finds=[sql_faults.cuts_off_towards_minus_infinity])
def test_expressions_mean_on_the_engine_what_they_mean_to_the_plan() -> None:
    rng = random.Random(3)
    connection, rows = nasty(rng, 20)
    maker = Maker(rng)
    expressions = [maker.make(rng.choice(KINDS), rng.randrange(1, 5)) for _ in range(300)]
    _, columns = run(connection, expressions)
    for expression, column in zip(expressions, columns, strict=True):
        assert list(map(repr, column)) == [repr(evaluate(expression, row)) for row in rows], expression


@pytest.mark.parametrize("unit", ["who", dc.Row()], ids=["user", "row"])
@pytest.mark.parametrize("column", ["x", "i", "s"])
def test_empty_tables_and_columns_without_a_value_answer_like_any_other(unit: Any, column: str) -> None:
    full = table(0)
    place = full.column_names.index(column)
    blank = full.set_column(place, column, pa.nulls(full.num_rows, full.schema.field(column).type))
    sides = [full, blank, full.slice(0, 0)]
    sessions = [opened(side, unit, **FACTS) for side in sides]
    for question in QUESTIONS[:3]:
        found = [seen(session, question) for session in sessions]
        assert found[0] == found[1] == found[2]
    for session in sessions:
        session.close()


@attack(8, 19, finds=[sql_faults.averages_of_any_size])
def test_the_average_of_nothing_is_within_its_bounds_and_drawn() -> None:
    with opened(table(0).slice(0, 0), budget=dc.PureDP(500), **FACTS) as session:
        draws = [
            session.sql("SELECT AVG(x) AS m FROM t", epsilon=f"5.{n}", test_entropy=Entropy.for_tests(n)).rows[0][0]
            for n in range(11, 31)
        ]
    assert all(0 <= draw <= 10 for draw in draws)
    assert len(set(draws)) > 5


NATIVE = {
    "TIMESTAMP": ["infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806"],
    "TIMESTAMP_S": ["infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54"],
    "TIMESTAMP_MS": ["-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54"],
    "TIMESTAMP_NS": ["infinity", "1677-09-22 00:00:00", "2262-04-11 23:47:16.854775806"],
    "TIMESTAMPTZ": ["infinity", "290309-12-22 (BC) 00:00:00+00", "294247-01-10 04:00:54.775806+00"],
    "DATE": ["infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10"],
    "DOUBLE": ["nan", "inf", "-inf", "1.7976931348623157e308", "5e-324", "-0.0"],
    "FLOAT": ["nan", "-inf", "3.4e38", "1e-45"],
    "DECIMAL(38,0)": ["9" * 38, "-" + "9" * 38],
    "DECIMAL(38,38)": ["0." + "9" * 38],
    "HUGEINT": [str(2**127 - 1), str(-(2**127))],
    "UHUGEINT": [str(2**128 - 1)],
    "UBIGINT": [str(2**64 - 1)],
    "VARCHAR": ["", "\0", "9" * 5000],
    "UUID": ["ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "JSON": ["null", '{"a": [1, {}]}'],
}
PLAIN = {"TIMESTAMP": "2020-01-01", "DATE": "2020-01-01", "UUID": "12345678-1234-1234-1234-123456789012"}
BY_TYPE = {
    "real": ["SELECT SUM(CLAMP(v * v + 1, 0, 5)) AS s, MEDIAN(CLAMP(v, 0, 5)) AS m FROM t"],
    "integer": ["SELECT SUM(CLAMP(v * v + 1, 0, 5)) AS s, AVG(CLAMP(v, 0, 5)) AS m FROM t"],
    "decimal": [
        "SELECT SUM(CLAMP(v + v, 0, 0.5)) AS s, MEDIAN(CLAMP(v, 0, 0.5)) AS m FROM t WHERE v * 3 <> 0.5",
        "SELECT AVG(CLAMP(total, 0, 0.5)) AS a FROM (SELECT who, SUM(v + v) AS total FROM t GROUP BY who)",
        "SELECT SUM(CLAMP(ROUND(v, 2) * -7, 0, 5)) AS s, COUNT(CAST(v AS VARCHAR)) AS c FROM t WHERE v % 0.25 < 0.2",
    ],
    "timestamp": ["SELECT MONTH(v) AS k, COUNT(*) AS n FROM t WHERE DATE_TRUNC('week', v) > '1999-01-01' GROUP BY 1"],
    "date": ["SELECT MONTH(v) AS k, COUNT(*) AS n FROM t WHERE DATE_TRUNC('week', v) > '1999-01-01' GROUP BY 1"],
    "text": ["SELECT COUNT(*) AS n FROM t WHERE CAST(v AS DOUBLE) > 0 OR LENGTH(v || v) > 3"],
}


@pytest.mark.parametrize("kind", NATIVE)
def test_every_type_of_a_database_holds_its_farthest_values(kind: str, tmp_path: Path) -> None:
    plain = next((value for name, value in PLAIN.items() if kind.startswith(name)), "0")
    found = []
    for place, values in enumerate(([], NATIVE[kind])):
        path = tmp_path / f"{place}.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t (who INTEGER, v {kind})")
            for who, value in [*((who, plain) for who in range(5)), *((99, value) for value in values)]:
                connection.execute(f"INSERT INTO t VALUES (?, CAST(? AS {kind}))", [who, value])
        with opened(path) as session:
            columns = session._engine.columns("t")
            own = BY_TYPE[columns[1].type.split("(")[0]]
            asked = ["SELECT v AS k, COUNT(*) AS n, COUNT(v) AS c FROM t GROUP BY 1", *own]
            found.append((columns, [seen(session, question) for question in asked]))
    assert found[0] == found[1]
    assert all(isinstance(each[0], tuple) for each in found[0][1])


@pytest.mark.parametrize(
    "expression",
    ["ROW_NUMBER() OVER ()", "RANDOM()", "UUID()", "NOW()", "CURRENT_DATE", "NEXTVAL('s')", "rowid", "TODAY()"],
)
@attack(12, finds=[sql_faults.a_counter_is_a_function_of_the_row], expression="NEXTVAL('s')")
def test_what_does_not_follow_from_the_row_is_refused_and_costs_nothing(expression: str) -> None:
    with opened(table(0), **FACTS) as session:
        for question in (
            f"SELECT COUNT(*) AS n FROM t WHERE {expression} IS NULL",
            f"SELECT {expression} AS k, COUNT(*) FROM t GROUP BY 1",
        ):
            with pytest.raises(dc.DiscreetError):
                session.sql(question, epsilon=1)
        assert session.spent == dc.ApproxDP(0, 0)


@attack(28, finds=[sql_faults.limits_read_off_the_rows])
def test_nothing_about_a_table_is_read_off_its_rows() -> None:
    """Catalogs, plans, prices and statements are the same, whatever the rows hold and however many there are."""
    sides = [table(0), table(30), table(30, 1), table(0).slice(0, 0)]
    told = []
    for side in sides:
        with opened(side, **FACTS) as session:
            quotes = [session.price(question, epsilon=1) for question in QUESTIONS]
            asked = [SQL(question, 1).bind(session._context).plan().decided for question in QUESTIONS]
            known = [SQL(question, 1).bind(session._context).parsed.identity for question in QUESTIONS]
            told.append((session._catalog, quotes, known, [(a.statement, a.listed) for a in asked]))
    assert all(one == told[0] for one in told)


@attack(27, finds=[sql_faults.largest_groups_first])
def test_listed_groups_come_in_their_order_whether_there_or_not() -> None:
    letters = ["z", "a", "m", "nobody", None]
    rows = {"who": np.arange(6), "s": np.array(["m", "a", "z", "z", "?", None], dtype=object)}
    turned = {name: column[::-1] for name, column in rows.items()}
    for data in (rows, turned, {name: column[:1] for name, column in rows.items()}):
        with opened(data, values={"s": letters}) as session:
            answer = session.sql("SELECT s, COUNT(*) AS n FROM t GROUP BY s", epsilon=1)
            assert answer.column("s") == letters
            assert len(set(answer.column("n"))) > 0


@pytest.mark.parametrize(
    ("declared", "values"),
    [([1, 2, 3], np.array([1, 2, 3])), ([1.0, 2.5], np.array([1.0, 2.5])), ([True, False], np.array([True, False]))],
    ids=["integers", "reals", "booleans"],
)
def test_values_that_compare_equal_are_one_group(declared: list[Any], values: Any) -> None:
    with opened({"who": np.arange(len(values)), "v": values}, values={"v": declared}) as session:
        answer = session.sql("SELECT v, COUNT(*) AS n FROM t GROUP BY v", epsilon=40)
        assert answer.column("v") == declared
        assert all(abs(n - 1) <= 3 for n in answer.column("n"))
    for twice in ([1, 1.0], [0.0, -0.0], [True, 1]):
        with pytest.raises(dc.InvalidArgument):
            opened({"who": np.arange(2), "v": np.array([0.0, 1.0])}, values={"v": twice})


@attack(31, finds=[sql_faults.failures_that_quote])
def test_an_engine_that_fails_tells_no_value() -> None:
    secret = "Jane Doe, 1970-01-01"
    with opened(table(0), **FACTS) as session:

        def failing(statement: str) -> Any:
            raise RuntimeError(f"row 17: {secret}")

        session._engine.run = failing
        for _ in range(2):
            with pytest.raises(dc.AnswerFailed) as caught:
                session.sql(QUESTIONS[0], epsilon=1)
            assert secret not in str(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
        assert session.spent != dc.ApproxDP(0, 0)
        assert not any(secret in str(entry.content) for entry in session._ledger.entries())


def test_dates_outside_the_calendar_are_in_no_month() -> None:
    days = pa.array([-(2**31), 2**31 - 1, 18_000], pa.int32()).cast(pa.date32())
    with opened(pa.table({"who": [1, 2, 3], "d": days})) as session:
        answer = session.sql("SELECT MONTH(d) AS m, COUNT(*) AS n FROM t GROUP BY 1", epsilon=40)
        expected = {datetime.date(2019, 4, 14).month: 1}
        assert all(abs(n - expected.get(m, 0)) <= 3 for m, n in answer.rows)

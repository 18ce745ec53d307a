"""Row expressions on Spark: the same values as on DuckDB, bit for bit, and no failure whatever the rows hold, in ANSI
mode or not and in any time zone.

Logarithms, exponentials and powers come from Java's library and not C's: they may differ in the last bits. That moves
no bound, since sums hold every value to its bounds after the expression, on either engine.
"""

import datetime
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.spark_tables import KINDS as TYPES
from tests.engines.spark_tables import USUAL, frame, framed, having, values
from tests.soak import whole_or_share
from tests.sql.expressions import COLUMNS, KINDS, TEXTS, Maker, table
from tests.sql.reference import evaluate
from tests.sql.test_functions import test_what_could_fail_gives_a_value_or_null as corpus

from discreet.core.errors import Unsupported
from discreet.engines.spark.dialect import SparkDialect, identifier
from discreet.engines.spark.text import like
from discreet.sql.functions.dates import shifted
from discreet.sql.functions.registry import admit, call, cast, render
from discreet.sql.plan import Call, Expression, Literal, Ref

DIALECT = SparkDialect()
EXPRESSIONS, AT_ONCE = whole_or_share(1000, 50), 50
INEXACT = ("ln", "log10", "log2", "exp", "power")
X, Y, N, S = Ref("x", "real"), Ref("y", "real"), Ref("n", "integer"), Ref("s", "text")
EXTREMES = [0.0, 5e-324, 1e-323, 2.2250738585072014e-308, 1e-300, 1e-154, 0.5, 1.5, 2.5, 3.0, 1e15 + 0.5, 2.0**52, 1e20]
EXTREMES += [1.3407807929942597e154, 8.98846567431158e307, 1.7976931348623157e308, 0.49999999999999994, 2.0**63]
EXTREMES += [-value for value in EXTREMES]


@pytest.fixture(params=[("true", "America/Los_Angeles"), ("false", "Europe/Berlin")], ids=["ansi", "lenient"])
def under(request: pytest.FixtureRequest) -> Iterator[None]:
    ansi, zone = request.param
    with having(spark__sql__ansi__enabled=ansi, spark__sql__session__timeZone=zone):
        yield


@pytest.fixture(scope="module", autouse=True)
def usual() -> Iterator[None]:
    with having(**USUAL):
        yield


def written(expression: Expression) -> str:
    return DIALECT.text(render(expression))


def is_refused(expression: Expression) -> bool:
    try:
        written(expression)
    except Unsupported as refusal:
        return "a real as text" in str(refusal)
    return False


def uses(expression: Expression, *names: str) -> bool:
    if not isinstance(expression, Call):
        return False
    return expression.function in names or any(uses(argument, *names) for argument in expression.arguments)


def same(found: Any, wanted: Any) -> bool:
    return repr(found) == repr(wanted)


@pytest.mark.usefixtures("under")
def test_random_expressions_give_what_they_give_on_duckdb(request: pytest.FixtureRequest) -> None:
    rng = random.Random(request.node.name)
    own, rows = table(rng, 40)
    raw = own.sql("SELECT * FROM raw ORDER BY place").to_arrow_table()
    framed(_within(raw)).createOrReplaceTempView("raw")
    shown = ", ".join(f"{DIALECT.text(admit(name, kind))} AS {identifier(name)}" for name, kind in COLUMNS.items())
    maker, compared = Maker(rng), 0
    for _ in range(0, EXPRESSIONS, AT_ONCE):
        made = [maker.make(rng.choice(KINDS), rng.randrange(1, 5)) for _ in range(AT_ONCE)]
        expressions = [e for e in made if not uses(e, *INEXACT) and not is_refused(e)]
        columns = values(
            [written(e) for e in expressions], f"FROM (SELECT place, {shown} FROM raw) AS t ORDER BY place"
        )
        for expression, column in zip(expressions, columns, strict=True):
            wanted = [evaluate(expression, row) for row in rows]
            assert [repr(value) for value in column] == [repr(value) for value in wanted], expression
            compared += 1
    assert compared > EXPRESSIONS * 0.6


def _within(raw: pa.Table) -> pa.Table:
    """Infinite moments, which Spark does not have, as ones that are out of our years too."""
    columns = {}
    for name in raw.column_names:
        column = raw[name]
        if pa.types.is_date(column.type):
            days = [None if d is None else max(min(d, 3_000_000), -1_000_000) for d in column.cast("int32").to_pylist()]
            column = pa.array(days, pa.int32()).cast(pa.date32())
        elif pa.types.is_timestamp(column.type):
            most = 86_400_000_000 * 3_000_000
            micros = [None if t is None else max(min(t, most), -most) for t in column.cast("int64").to_pylist()]
            column = pa.array(micros, pa.int64()).cast(pa.timestamp("us"))
        columns[name] = column
    return pa.table(columns)


@pytest.mark.usefixtures("under")
def test_arithmetic_at_the_ends_of_doubles_is_that_of_ieee() -> None:
    pairs = [(x, y) for x in EXTREMES for y in EXTREMES]
    _compared([call(name, X, Y) for name in ("+", "-", "*", "/", "%")], pairs)


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=whole_or_share(8, 4), deadline=None)
@given(pairs=st.lists(st.tuples(DOUBLES, DOUBLES), min_size=30, max_size=200))
def test_arithmetic_of_any_doubles_is_that_of_ieee(pairs: list[tuple[float, float]]) -> None:
    _compared([call(name, X, Y) for name in ("+", "-", "*", "/", "%")], pairs)


def _compared(expressions: list[Expression], pairs: list[tuple[float, float]]) -> None:
    rows = [{"x": x, "y": y, "place": place} for place, (x, y) in enumerate(pairs)]
    frame({"x": pa.float64(), "y": pa.float64(), "place": pa.int64()}, rows).createOrReplaceTempView("pairs")
    columns = values([written(e) for e in expressions], "FROM pairs ORDER BY place")
    for expression, column in zip(expressions, columns, strict=True):
        wanted = [evaluate(expression, {"x": x + 0.0, "y": y + 0.0}) for x, y in pairs]
        assert [repr(v) for v in column] == [repr(v) for v in wanted], expression


@pytest.mark.usefixtures("under")
def test_functions_of_extremes_and_literals_never_fail() -> None:
    """Constants are computed while a statement is planned, whatever arm of a CASE they stand in."""
    numbers = [Literal(Fraction(value), "real") for value in EXTREMES[::3] if value]
    exact: list[Expression] = [call(name, X) for name in ("sqrt", "round", "floor", "ceil", "trunc", "sign", "abs")]
    exact += [cast(X, "integer"), call("sign", call("-", call("*", X, X), call("*", X, X)))]
    exact += [call(name, X, n) for name in ("+", "-", "*", "/", "%") for n in numbers]
    exact += [call(name, n) for name in ("round", "floor", "ceil", "trunc", "sign") for n in numbers]
    exact += [cast(call("+", n, n), "integer") for n in numbers]
    near: list[Expression] = [call(name, X) for name in ("ln", "log10", "log2", "exp")]
    near += [call("power", X, n) for n in numbers] + [call("power", n, X) for n in numbers]
    near += [call("power", call("*", X, X), call("*", X, Y)), call("power", call("sign", X), call("*", X, X))]
    rows = [{"x": x, "y": -x, "place": place} for place, x in enumerate(EXTREMES)]
    frame({"x": pa.float64(), "y": pa.float64(), "place": pa.int64()}, rows).createOrReplaceTempView("extremes")
    columns = values([written(e) for e in (*exact, *near)], "FROM extremes ORDER BY place")
    for expression, column in zip((*exact, *near), columns, strict=True):
        for found, x in zip(column, EXTREMES, strict=True):
            wanted = evaluate(expression, {"x": x + 0.0, "y": -x + 0.0})
            close = expression in near and None not in (found, wanted) and math.isclose(found, wanted, rel_tol=1e-14)
            assert close or same(found, wanted), (expression, x)


def test_log2_is_exact_for_powers_of_two() -> None:
    numbers = [2.0**k for k in range(-1074, 1024)]
    rows = [{"x": x, "place": place} for place, x in enumerate(numbers)]
    frame({"x": pa.float64(), "place": pa.int64()}, rows).createOrReplaceTempView("powers")
    (column,) = values([written(call("log2", X))], "FROM powers ORDER BY place")
    assert list(column) == [math.log2(number) for number in numbers]


NUMERALS = ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "+5", "-0"]
NUMERALS += ["0" * 99_999 + "7", "9" * 99_999, "9" * 99_999 + "x", "1e308", "1e309", "-1e400", "1e-323", "2.5e-324"]
NUMERALS += ["2.4e-324", "1e-400", "." + "0" * 400 + "1e99", "17976931348623158" + "0" * 292, "1.", ".5", "1e", "0x1F"]
NUMERALS += ["1_000", " 12 ", "١٢", "12\n", "\t12", "1e5D", "1d", "5f", "Infinity", "NaN", "1e+05", "1.5e-3 ", "--1"]
MOMENTS = ["2023-02-28", "2023-02-29", "2024-02-29", "1900-02-29", "2000-02-29", "2023-04-31", "2023-13-01"]
MOMENTS += ["2023-00-10", "2023-01-00", "0000-01-01", "0001-01-01", "9999-12-31", "2023-1-1", "10000-01-01", "infinity"]
MOMENTS += ["2023-02-30 10:00:00", "2023-02-28 24:00:00", "2023-02-28 23:59:60", "2023-02-28T23:59:59.999999", "epoch"]
MOMENTS += ["2023-03-26 02:30:00", "2023-03-12T02:30:00", "2023-02-28\n", "2023-02-28 10:00:00Z", "now", "today"]


def strings(texts: list[str]) -> duckdb.DuckDBPyConnection:
    """A table of texts on both."""
    own = duckdb.connect(config={"threads": 1})
    own.execute("CREATE TABLE t AS SELECT UNNEST(?) AS s, UNNEST(?) AS place", [texts, list(range(len(texts)))])
    rows = [{"s": text, "place": place} for place, text in enumerate(texts)]
    frame({"s": pa.string(), "place": pa.int64()}, rows).createOrReplaceTempView("texts")
    return own


def alike(own: duckdb.DuckDBPyConnection, expressions: list[Expression]) -> None:
    shown = ", ".join(render(expression).sql("duckdb") for expression in expressions)
    wanted = zip(*own.execute(f"SELECT {shown} FROM t ORDER BY place").fetchall(), strict=True)
    found = values([written(e) for e in expressions], "FROM texts ORDER BY place")
    for expression, mine, theirs in zip(expressions, found, wanted, strict=True):
        assert [repr(v) for v in mine] == [repr(v) for v in theirs], expression


@pytest.mark.usefixtures("under")
def test_texts_that_are_almost_values_are_read_as_on_duckdb() -> None:
    own = strings([*NUMERALS, *MOMENTS, *TEXTS])
    alike(own, [cast(S, kind) for kind in ("integer", "real", "date", "timestamp")])


def test_texts_change_as_on_duckdb_in_all_of_unicode() -> None:
    letters = [chr(point) for point in range(1, 0x20000) if not 0xD800 <= point <= 0xDFFF]
    texts = ["".join(letters[start : start + 500]) for start in range(0, len(letters), 500)]
    texts += [blank + "x" + blank for blank in "\u00a0\u1680\u2003\u200b\u2028\u3000\t\n "]
    own = strings(texts)
    alike(own, [call(name, S) for name in ("lower", "upper", "trim", "ltrim", "rtrim", "length")])


PATTERNS = ["", "%", "%%", "_", "a%", "%b", "%a%", "a%b", "%a%b%", "a_%b", "_%_", "%.%", "%$", "^a%", "a%%b", "%😀_"]
PATTERNS += ["%a_c%b", "%ab%ab", "it's%", "${env:HOME}%", "%\n%", "(a|b)%", "a[b]%", "%é%", "%%a%%b%%"]


def test_patterns_match_as_on_duckdb() -> None:
    own = strings([*TEXTS, "ab", "aab", "abab", "abcb", "a\nb", "a.b", "${env:HOME}x", "😀x", "aa" * 40, "a[b]c", "ba"])
    alike(own, [call("like", S, Literal(pattern, "text")) for pattern in PATTERNS])
    alike(own, [call("like", call("lower", S), call("lower", Literal(p.upper(), "text"))) for p in PATTERNS])


def test_no_text_takes_long_to_match() -> None:
    """Patterns that go back over what they passed would take ages here."""
    strings(["a" * 100_000 + "x"])
    found = values([like("s", "%a" * 30 + "%y"), like("s", "%a" * 30 + "%x")], "FROM texts")
    assert found == [(False,), (True,)]


@pytest.mark.usefixtures("under")
def test_what_could_fail_gives_a_value_or_null() -> None:
    listed = [(expression, value) for expression, value in corpus.pytestmark[0].args[1] if not is_refused(expression)]
    columns = values([written(expression) for expression, _ in listed], "FROM (SELECT 0D AS zero) AS t")
    for (expression, value), column in zip(listed, columns, strict=True):
        assert same(column[0], value), expression
    assert len(listed) > 0.9 * len(corpus.pytestmark[0].args[1])


@pytest.mark.usefixtures("under")
def test_moments_are_moved_out_of_the_calendar_without_fail() -> None:
    days = [datetime.datetime(1, 1, 1), datetime.datetime(4714, 1, 31, 23, 59, 59), datetime.datetime.max]
    days += [datetime.datetime(2023, 3, 12, 2, 30), datetime.datetime(2023, 3, 26, 2, 30, 0, 1)]
    rows = [{"at": day, "place": place} for place, day in enumerate(days)]
    frame({"at": pa.timestamp("us"), "place": pa.int64()}, rows).createOrReplaceTempView("days")
    counts = {"month": (1, -1, 13, 120_000, -120_000), "day": (1, -1, -3_700_000, 3_700_000)}
    counts["second"] = (1, -1, -86_400 * 3_700_000, 86_400 * 3_700_000, 10**9, -(10**9))
    at = Ref("at", "timestamp")
    expressions = [shifted(at, count, unit) for unit, several in counts.items() for count in several]
    expressions += [call("date_trunc", Literal(unit, "text"), at) for unit in ("hour", "minute", "second", "week")]
    columns = values([written(e) for e in expressions], "FROM days ORDER BY place")
    for expression, column in zip(expressions, columns, strict=True):
        assert list(column) == [evaluate(expression, {"at": day}) for day in days], expression


def test_reals_as_texts_and_long_expressions_are_refused() -> None:
    with pytest.raises(Unsupported, match="Spark"):
        written(cast(X, "text"))
    deep: Expression = X
    for _ in range(12):
        deep = call("floor", deep)
    with pytest.raises(Unsupported, match="too long"):
        written(deep)


def test_types_of_the_tests_are_those_of_spark() -> None:
    kinds = {name: TYPES[kind] for name, kind in COLUMNS.items()}
    found = [field.dataType.simpleString() for field in frame(kinds, []).schema.fields]
    assert set(found) == {"bigint", "double", "boolean", "string", "date", "timestamp_ntz"}


def test_a_wrong_writer_is_noticed() -> None:
    """The comparison has power: plain operators fail or wrap, and plain functions know the time zone."""
    with having(spark__sql__ansi__enabled="false", spark__sql__session__timeZone="Europe/Berlin"):
        [(wrapped,), (cut,), (moved,)] = values(
            ["n + n", "CAST(x AS BIGINT)", "CAST(DATE_TRUNC('HOUR', at) AS TIMESTAMP_NTZ)"],
            "FROM (SELECT 9223372036854775807L AS n, 1e300D AS x, TIMESTAMP_NTZ'2023-03-26 02:30:00' AS at)",
        )
        assert (wrapped, cut) == (-2, 2**63 - 1)
        assert moved != datetime.datetime(2023, 3, 26, 2)

"""Row expressions on PostgreSQL: the same values as on DuckDB, bit for bit, and no failure whatever the rows hold.

Only LOG2, for which PostgreSQL has no function, may differ in the last bits: it is a quotient there. That moves no
bound, since sums hold every value to its bounds after the expression, on either engine.
"""

import datetime
import math
import random
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import duckdb
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.postgres_tables import KINDS as TYPES
from tests.engines.postgres_tables import create
from tests.ledger.servers import running
from tests.soak import third
from tests.sql.expressions import COLUMNS, KINDS, TEXTS, Maker, table
from tests.sql.reference import evaluate
from tests.sql.test_functions import test_what_could_fail_gives_a_value_or_null as corpus

from discreet.core.errors import Unsupported
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.sql.functions.dates import shifted
from discreet.sql.functions.registry import admit, call, cast, render
from discreet.sql.plan import Call, Expression, Literal, Ref

DIALECT = PostgresDialect()
EXPRESSIONS = 700
AT_ONCE = 25
X, Y, N, S = Ref("x", "real"), Ref("y", "real"), Ref("n", "integer"), Ref("s", "text")
EXTREMES = [0.0, 5e-324, 1e-323, 2.2250738585072014e-308, 1e-300, 1e-160, 1e-154, 1e-20, 0.5, 1.0, 1.5, 3.0, 1e20]
EXTREMES += [1.3407807929942596e154, 1.3407807929942597e154, 1e160, 8.98846567431158e307, 1e308, 1.7976931348623157e308]
EXTREMES += [-value for value in EXTREMES]


@pytest.fixture
def server() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    options = "-c default_transaction_read_only=on -c jit=off -c TimeZone=UTC"
    with closing(psycopg.connect(running().url(), autocommit=True, options=options)) as connection:
        yield connection


def values(
    server: psycopg.Connection[tuple[Any, ...]], expressions: list[Expression], source: str
) -> list[tuple[Any, ...]]:
    """Columns of the expressions."""
    shown = ", ".join(DIALECT.text(render(expression)) for expression in expressions)
    return list(zip(*server.cursor(binary=True).execute(f"SELECT {shown} {source}".encode()).fetchall(), strict=True))


def supported(expression: Expression) -> bool:
    try:
        DIALECT.text(render(expression))
    except Unsupported as refusal:
        return "% of reals" not in str(refusal)
    return True


def uses(expression: Expression, name: str) -> bool:
    if not isinstance(expression, Call):
        return False
    return expression.function == name or any(uses(argument, name) for argument in expression.arguments)


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_expressions_give_what_they_give_on_duckdb(
    seed: int, server: psycopg.Connection[tuple[Any, ...]]
) -> None:
    rng = random.Random(seed)
    own, rows = table(rng, 40)
    create("raw", {name: TYPES[kind] for name, kind in COLUMNS.items()} | {"place": "int"}, _raw(own))
    shown = ", ".join(
        f"{DIALECT.text(admit(name, kind))}{' COLLATE ' + chr(34) + 'C' + chr(34) if kind == 'text' else ''}"
        f' AS "{name.replace(chr(34), chr(34) * 2)}"'
        for name, kind in COLUMNS.items()
    )
    maker, compared = Maker(rng), 0
    for _ in range(0, EXPRESSIONS, AT_ONCE):
        made = [maker.make(rng.choice(KINDS), rng.randrange(1, 5)) for _ in range(AT_ONCE)]
        expressions = [expression for expression in made if supported(expression) and not uses(expression, "log2")]
        columns = values(server, expressions, f"FROM (SELECT place, {shown} FROM raw) AS t ORDER BY place")
        for expression, column in zip(expressions, columns, strict=True):
            wanted = [evaluate(expression, row) for row in rows]
            assert [repr(value) for value in column] == [repr(value) for value in wanted], expression
            compared += 1
    assert compared > EXPRESSIONS * 0.9


def _raw(own: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """The rows before they are admitted; moments that Python cannot hold as texts."""
    shown = ", ".join(
        f"REPLACE(CAST(\"{name}\" AS VARCHAR), ' (BC)', ' BC')"
        if kind in ("date", "timestamp")
        else '"' + name.replace('"', '""') + '"'
        for name, kind in COLUMNS.items()
    )
    found = own.execute(f"SELECT {shown}, place FROM raw").fetchall()
    return [dict(zip([*COLUMNS, "place"], row, strict=True)) for row in found]


OPERATIONS = [call(name, X, Y) for name in ("+", "-", "*", "/")]


def ieee(name: str, x: float, y: float) -> float | None:
    """What IEEE 754 says, and NULL where we do."""
    if name == "/":
        if y == 0:
            return None
        product = struct.unpack("d", struct.pack("d", _quotient(x, y)))[0]
    else:
        product = {"+": x + y, "-": x - y, "*": x * y}[name]
    return product + 0.0 if math.isfinite(product) else None


def _quotient(x: float, y: float) -> float:
    try:
        return x / y
    except OverflowError:
        return math.copysign(math.inf, x) * math.copysign(1, y)


def arithmetic(server: psycopg.Connection[tuple[Any, ...]], pairs: list[tuple[float, float]]) -> None:
    # Long arguments are named, short ones repeated: both ways are tried.
    long = [call(e.function, *(call("coalesce", part, part, part, part) for part in (X, Y))) for e in OPERATIONS]
    listed = ", ".join(f"({i}, float8 '{x!r}', float8 '{y!r}')" for i, (x, y) in enumerate(pairs))
    columns = values(server, [*OPERATIONS, *long], f"FROM (VALUES {listed}) AS t(place, x, y) ORDER BY place")
    for expression, column in zip([*OPERATIONS, *long], columns, strict=True):
        assert [repr(v) for v in column] == [repr(ieee(expression.function, x, y)) for x, y in pairs]


def test_arithmetic_at_the_ends_of_doubles_is_that_of_ieee(server: psycopg.Connection[tuple[Any, ...]]) -> None:
    arithmetic(server, [(x, y) for x in EXTREMES for y in EXTREMES])


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=third(25), deadline=None)
@given(pairs=st.lists(st.tuples(DOUBLES, DOUBLES), min_size=1, max_size=60))
def test_arithmetic_of_any_doubles_is_that_of_ieee(pairs: list[tuple[float, float]]) -> None:
    with closing(psycopg.connect(running().url(), autocommit=True)) as connection:
        arithmetic(connection, pairs)


def test_arithmetic_with_literals_and_functions_never_fails(server: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Constants are computed while a statement is planned, whatever arm of a CASE they stand in."""
    from fractions import Fraction

    numbers = [Literal(Fraction(value), "real") for value in EXTREMES if value]
    expressions: list[Expression] = [call(name, X, n) for name in ("+", "-", "*", "/", "power") for n in numbers]
    expressions += [call(name, n, X) for name in ("+", "-", "*", "/", "power") for n in numbers]
    expressions += [call(name, n, m) for name in ("+", "*", "/") for n in numbers[::3] for m in numbers[::4]]
    expressions += [call(name, X) for name in ("exp", "sqrt", "ln", "log10", "round", "floor", "ceil", "trunc", "sign")]
    expressions += [cast(X, "integer"), cast(X, "text")]
    listed = ", ".join(f"({i}, float8 '{x!r}')" for i, x in enumerate(EXTREMES))
    for start in range(0, len(expressions), 40):
        part = expressions[start : start + 40]
        columns = values(server, part, f"FROM (VALUES {listed}) AS t(place, x) ORDER BY place")
        for expression, column in zip(part, columns, strict=True):
            assert [repr(v) for v in column] == [repr(evaluate(expression, {"x": x + 0.0})) for x in EXTREMES], (
                expression
            )


def test_log2_is_exact_for_powers_of_two_and_near_elsewhere(server: psycopg.Connection[tuple[Any, ...]]) -> None:
    numbers = [2.0**k for k in range(-1074, 1024)] + [value for value in EXTREMES if value > 0]
    listed = ", ".join(f"({i}, float8 '{x!r}')" for i, x in enumerate(numbers))
    (column,) = values(server, [call("log2", X)], f"FROM (VALUES {listed}) AS t(place, x) ORDER BY place")
    for found, number in zip(column, numbers, strict=True):
        wanted = math.log2(number)
        assert found == wanted if math.frexp(number)[0] == 0.5 else math.isclose(found, wanted, rel_tol=1e-14)


NUMERALS = ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "+5", "-0"]
NUMERALS += ["0" * 200_000 + "7", "9" * 200_000, "1e308", "1e309", "-1e400", "1e-323", "2.5e-324", "2.4e-324", "1e-400"]
NUMERALS += ["." + "0" * 400 + "1e99", "17976931348623158" + "0" * 292, "1.", ".5", "1e", "0x1F", "1_000", " 12 ", "١٢"]
MOMENTS = ["2023-02-28", "2023-02-29", "2024-02-29", "1900-02-29", "2000-02-29", "2023-04-31", "2023-13-01"]
MOMENTS += ["2023-00-10", "2023-01-00", "0000-01-01", "0001-01-01", "9999-12-31", "2023-1-1", "10000-01-01", "infinity"]
MOMENTS += ["2023-02-30 10:00:00", "2023-02-28 24:00:00", "2023-02-28 23:59:60", "2023-02-28T23:59:59.999999", "epoch"]


def test_texts_that_are_almost_values_are_read_as_on_duckdb(server: psycopg.Connection[tuple[Any, ...]]) -> None:
    texts = [*NUMERALS, *MOMENTS, *TEXTS]
    expressions = [cast(S, kind) for kind in ("integer", "real", "date", "timestamp")]
    own = duckdb.connect(config={"threads": 1})
    own.execute("CREATE TABLE t AS SELECT UNNEST(?) AS s, UNNEST(?) AS place", [texts, list(range(len(texts)))])
    shown = ", ".join(render(expression).sql("duckdb") for expression in expressions)
    wanted = list(zip(*own.execute(f"SELECT {shown} FROM t ORDER BY place").fetchall(), strict=True))
    create("texts", {"s": "text", "place": "int"}, [{"s": text, "place": i} for i, text in enumerate(texts)])
    found = values(server, expressions, "FROM texts ORDER BY place")
    for text, *pairs in zip(texts, zip(*wanted, strict=True), zip(*found, strict=True), strict=True):
        whole, real, *moments = pairs[0]
        # A numeral of more than 10,000 characters is no real to PostgreSQL.
        assert repr(pairs[1]) == repr((whole, real if len(text) <= 10_000 else None, *moments)), text[:50]


def test_texts_change_as_on_duckdb_in_all_of_unicode(server: psycopg.Connection[tuple[Any, ...]]) -> None:
    letters = [chr(point) for point in range(1, 0x20000) if not 0xD800 <= point <= 0xDFFF]
    texts = ["".join(letters[start : start + 500]) for start in range(0, len(letters), 500)]
    texts += [blank + "x" + blank for blank in "\u00a0\u1680\u2003\u200b\u2028\u3000\t\n "]
    expressions: list[Expression] = [call(name, S) for name in ("lower", "upper", "trim", "ltrim", "rtrim")]
    own = duckdb.connect(config={"threads": 1})
    own.execute("CREATE TABLE t AS SELECT UNNEST(?) AS s, UNNEST(?) AS place", [texts, list(range(len(texts)))])
    shown = ", ".join(render(expression).sql("duckdb") for expression in expressions)
    create("texts", {"s": "text", "place": "int"}, [{"s": text, "place": i} for i, text in enumerate(texts)])
    wanted = own.execute(f"SELECT {shown} FROM t ORDER BY place").fetchall()
    assert list(zip(*values(server, expressions, "FROM texts ORDER BY place"), strict=True)) == wanted


@pytest.mark.parametrize("parameters", corpus.pytestmark[0].args[1], ids=str)
def test_what_could_fail_gives_a_value_or_null(
    parameters: tuple[Expression, Any], server: psycopg.Connection[tuple[Any, ...]]
) -> None:
    expression, value = parameters
    [(found,)] = values(server, [expression], "FROM (SELECT float8 '0' AS \"zero\") AS t")
    assert repr(found) == repr(value)


def test_moments_are_moved_out_of_the_calendar_without_fail(server: psycopg.Connection[tuple[Any, ...]]) -> None:
    days = [datetime.datetime(1, 1, 1), datetime.datetime(4714, 1, 31, 23, 59, 59), datetime.datetime.max]
    listed = ", ".join(f"({i}, timestamp '{day.isoformat(' ')}')" for i, day in enumerate(days))
    counts = {"month": (1, -1, 13, 120_000, -120_000), "day": (1, -1, -3_700_000, 3_700_000)}
    counts["second"] = (1, -1, -86_400 * 3_700_000, 86_400 * 3_700_000, 10**9, -(10**9))
    at = Ref("at", "timestamp")
    expressions = [shifted(at, count, unit) for unit, several in counts.items() for count in several]
    columns = values(server, expressions, f'FROM (VALUES {listed}) AS t(place, "at") ORDER BY place')
    for expression, column in zip(expressions, columns, strict=True):
        assert list(column) == [evaluate(expression, {"at": day}) for day in days]


def test_the_remainder_of_reals_is_refused() -> None:
    with pytest.raises(Unsupported, match="PostgreSQL"):
        DIALECT.text(render(call("%", X, Y)))


def test_texts_that_the_server_cannot_hold_are_refused() -> None:
    with pytest.raises(Unsupported, match="PostgreSQL"):
        DIALECT.text(render(call("=", S, Literal("a\0b", "text"))))


def test_a_wrong_writer_is_noticed(server: psycopg.Connection[tuple[Any, ...]]) -> None:
    """The comparison has power: plain operators fail on the extremes."""
    pairs = [(x, y) for x in EXTREMES for y in EXTREMES]
    listed = ", ".join(f"(float8 '{x!r}', float8 '{y!r}')" for x, y in pairs)
    for operator in "+*/":
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            server.execute(f"SELECT x {operator} NULLIF(y, 0) FROM (VALUES {listed}) AS t(x, y)".encode()).fetchall()

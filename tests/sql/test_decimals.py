"""Decimals are exact: expressions over them give what Fractions give, whatever the rows hold, and never fail."""

import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from tests.soak import whole_or_share
from tests.sql.decimals import COLUMNS, Maker, rows, shown
from tests.sql.reference import evaluate

from discreet.engines.duckdb.types import reading
from discreet.sql.decimals import Decimals
from discreet.sql.functions.ranges import Interval
from discreet.sql.functions.registry import interval, render
from discreet.sql.plan import Expression

EXPRESSIONS, AT_ONCE = whole_or_share(400, 150), 50
ENGINE = {"integer": "BIGINT", "real": "DOUBLE"}
NAMES = {"+", "-", "*", "%", "negate", "abs", "round", "floor", "ceil", "trunc", "case", "coalesce", "least"}
NAMES |= {"greatest", "nullif", "clamp", "cast", "=", "<>", "<", "<=", ">", ">=", "between", "in", "sign"}


def written(value: Any, kind: str) -> str:
    """A value as SQL of its type."""
    if value is None:
        return "NULL"
    if not isinstance(kind, Decimals):
        return f"CAST('{value!r}' AS {ENGINE[kind]})"
    with localcontext(prec=60):
        return f"CAST('{Decimal(value.numerator) / Decimal(value.denominator):f}' AS {kind})"


def loaded(held: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    """The rows as `t`, read as tables of DuckDB are."""
    connection = duckdb.connect(config={"threads": 1})
    kinds = {name: kind if isinstance(kind, Decimals) else ENGINE[kind] for name, kind in COLUMNS.items()}
    connection.execute(f"CREATE TABLE raw (place INTEGER, {', '.join(f'{n} {k}' for n, k in kinds.items())})")
    for place, row in enumerate(held):
        cells = [written(row[name], kind) for name, kind in COLUMNS.items()]
        connection.execute(f"INSERT INTO raw VALUES ({place}, {', '.join(cells)})")
    read = {name: reading(name, str(kind).upper(), None) for name, kind in kinds.items()}
    columns = ", ".join(f"{how.sql} AS {name}" for name, how in read.items() if how is not None)
    connection.execute(f"CREATE TABLE t AS SELECT place, {columns} FROM raw")
    assert {name: how.type for name, how in read.items() if how is not None} == COLUMNS
    return connection


def columns(connection: duckdb.DuckDBPyConnection, expressions: list[Expression]) -> list[tuple[Any, ...]]:
    listed = ", ".join(render(expression).sql("duckdb") for expression in expressions)
    return list(zip(*connection.execute(f"SELECT {listed} FROM t ORDER BY place").fetchall(), strict=True))


@pytest.mark.parametrize("seed", range(whole_or_share(20, 3)))
def test_random_expressions_of_decimals_are_exact_on_nasty_rows(seed: int) -> None:
    rng = random.Random(seed)
    held = rows(rng, 60)
    connection, maker = loaded(held), Maker(rng)
    known = {name: [Fraction(row[name]) for row in held if row[name] is not None] for name in COLUMNS}
    ranges = {name: Interval(min(values), max(values)) for name, values in known.items()}
    lost = 0
    for _ in range(0, EXPRESSIONS, AT_ONCE):
        expressions = [maker.any(rng.randrange(1, 5)) for _ in range(AT_ONCE)]
        for expression, column in zip(expressions, columns(connection, expressions), strict=True):
            wanted = [evaluate(expression, row) for row in held]
            assert list(column) == [shown(value, expression.type) for value in wanted], expression
            if isinstance(expression.type, Decimals):
                reach = interval(expression, ranges)
                assert all(v is None or reach.lower <= v <= reach.upper for v in wanted), expression
                assert all(v is None or abs(v) <= expression.type.most for v in wanted), expression
                lost += any(v is None for v in wanted)
    assert maker.used >= NAMES
    assert lost > EXPRESSIONS / 20

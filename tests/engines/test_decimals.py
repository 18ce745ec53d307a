"""Decimals on PostgreSQL and Spark: what Fractions give, on rows that hold the farthest values, and no failure."""

import random
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.engines.contract import CORPORA, DUCKDB, totals
from tests.engines.contract import SPARK as PLACE
from tests.engines.postgres_tables import create
from tests.engines.spark_tables import USUAL, framed, having, values
from tests.ledger.servers import running
from tests.soak import whole_or_share
from tests.sql.decimals import COLUMNS, Maker, rows, shown
from tests.sql.reference import evaluate

from discreet.engines.postgres import catalog as postgres_catalog
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.engines.spark import catalog as spark_catalog
from discreet.engines.spark.dialect import SparkDialect
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals
from discreet.sql.functions.registry import render
from discreet.sql.plan import Expression

EXPRESSIONS, AT_ONCE = whole_or_share(240, 40), 40
POSTGRES = {"integer": "int8", "real": "float8"}
SPARK: dict[str, Any] = {"integer": pa.int64(), "real": pa.float64()}


def decimal(value: Any) -> Any:
    """A Fraction as a Decimal."""
    with localcontext(prec=60):
        exact = isinstance(value, Fraction)
        return Decimal(value.numerator) / Decimal(value.denominator) if exact else value


def plain(value: Any) -> Any:
    """What a driver gives, with whole numbers as such."""
    return int(value) if isinstance(value, Decimal) else value


def compare(maker: Maker, rng: random.Random, held: list[dict[str, Any]], run: Any) -> None:
    for _ in range(0, EXPRESSIONS, AT_ONCE):
        expressions = [maker.any(rng.randrange(1, 4)) for _ in range(AT_ONCE)]
        for expression, column in zip(expressions, run(expressions), strict=True):
            wanted = [shown(evaluate(expression, row), expression.type) for row in held]
            assert [plain(value) for value in column] == wanted, expression


@pytest.fixture
def server() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    options = "-c default_transaction_read_only=on -c jit=off -c TimeZone=UTC"
    with closing(psycopg.connect(running().url(), autocommit=True, options=options)) as connection:
        yield connection


@pytest.mark.parametrize("seed", range(2))
def test_random_expressions_of_decimals_are_exact_on_postgresql(
    seed: int, server: psycopg.Connection[tuple[Any, ...]]
) -> None:
    rng = random.Random(seed)
    held = rows(rng, 40)
    kinds = {name: str(kind).replace("decimal", "numeric") for name, kind in COLUMNS.items()}
    kinds = {name: POSTGRES.get(kind, kind) for name, kind in kinds.items()}
    numbered = [{**{name: decimal(v) for name, v in row.items()}, "place": place} for place, row in enumerate(held)]
    create("nasty_decimals", kinds | {"place": "int"}, numbered)
    read = {name: _on_postgres(name, kind) for name, kind in COLUMNS.items()}
    assert {name: how.type for name, how in read.items()} == COLUMNS
    source = ", ".join(f'{how.sql} AS "{name}"' for name, how in read.items())
    dialect = PostgresDialect()

    def run(expressions: list[Expression]) -> list[tuple[Any, ...]]:
        listed = ", ".join(dialect.text(render(expression)) for expression in expressions)
        sql = f"SELECT {listed} FROM (SELECT place, {source} FROM nasty_decimals) AS t ORDER BY place"
        return list(zip(*server.cursor(binary=True).execute(sql.encode()).fetchall(), strict=True))

    compare(Maker(rng), rng, held, run)


def _on_postgres(name: str, kind: Type) -> postgres_catalog.Reading:
    typmod = (kind.precision << 16 | kind.scale) + 4 if isinstance(kind, Decimals) else -1
    engine = "numeric" if isinstance(kind, Decimals) else POSTGRES[kind]
    found = postgres_catalog.reading(name, engine, typmod)
    assert found is not None
    return found


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("loss", ["true", "false"])
def test_random_expressions_of_decimals_are_exact_on_spark(ansi: str, loss: str) -> None:
    rng = random.Random(f"{ansi} {loss}")
    held = rows(rng, 40)
    settings = {"spark__sql__ansi__enabled": ansi, "spark__sql__decimalOperations__allowPrecisionLoss": loss}
    with having(**USUAL, **settings):
        table = {name: pa.array([decimal(row[name]) for row in held], _arrow(kind)) for name, kind in COLUMNS.items()}
        framed(pa.table(table | {"place": pa.array(range(len(held)))})).createOrReplaceTempView("nasty_decimals")
        read = {name: _on_spark(name, kind) for name, kind in COLUMNS.items()}
        assert {name: how.type for name, how in read.items()} == COLUMNS
        source = ", ".join(f"{how.sql} AS `{name}`" for name, how in read.items())
        dialect = SparkDialect()

        def run(expressions: list[Expression]) -> list[tuple[Any, ...]]:
            listed = [dialect.text(render(expression)) for expression in expressions]
            return values(listed, f"FROM (SELECT place, {source} FROM nasty_decimals) AS t ORDER BY place")

        compare(Maker(rng), rng, held, run)


def test_totals_of_decimals_on_spark_are_those_of_duckdb() -> None:
    """All questions of the corpus, of which slow engines are asked few elsewhere."""
    corpus = next(corpus for corpus in CORPORA if corpus.name == "sales")
    with (
        DUCKDB.engine("", corpus.catalog, corpus.rows) as own,
        PLACE.engine("", corpus.catalog, corpus.rows) as there,
    ):
        planned = corpus.planned()
        assert len(planned) == len(corpus.questions)
        for text, asked in planned:
            assert totals(there, asked) == totals(own, asked), text


def _arrow(kind: Type) -> Any:
    return pa.decimal128(kind.precision, kind.scale) if isinstance(kind, Decimals) else SPARK[kind]


def _on_spark(name: str, kind: Type) -> spark_catalog.Reading:
    found = spark_catalog.reading(name, {"integer": "bigint", "real": "double"}.get(kind, str(kind)))
    assert found is not None
    return found

"""Questions as analysts of hospitals, shops, taxis and censuses write them: all are understood, and the engine can run
what they become."""

import duckdb
import pytest
from tests.sql.fixtures import HERE

from discreet.core.domains import Bounds, Categories
from discreet.sql.catalog import Catalog, Column, Link, Table
from discreet.sql.parsing.select import parse
from discreet.sql.statement.naming import renamed, substituted
from discreet.sql.statement.selection import Selection, text_of

CATALOG = Catalog(
    (
        Table(
            "patients",
            (
                Column("patient_id", "integer"),
                Column("sex", "text", values=Categories(("F", "M"))),
                Column("birth", "date"),
                Column("zip", "text"),
                Column("smoker", "boolean"),
            ),
            "patient_id",
            max_rows=1,
        ),
        Table(
            "visits",
            (
                Column("patient_id", "integer"),
                Column("admitted", "timestamp"),
                Column("discharged", "timestamp"),
                Column("dept", "text", values=Categories(("ER", "ICU", "GP"))),
                Column("cost", "real", Bounds(0, 50000)),
                Column("diagnosis", "text"),
                Column("age", "integer", Bounds(0, 110)),
            ),
            "patient_id",
        ),
        Table(
            "labs",
            (
                Column("patient_id", "integer"),
                Column("test", "text"),
                Column("value", "real", Bounds(0, 1000)),
                Column("taken", "timestamp"),
            ),
            "patient_id",
        ),
        Table(
            "icd",
            (
                Column("code", "text"),
                Column("chapter", "text"),
            ),
            private=False,
            unique=("code",),
        ),
        Table(
            "customers",
            (
                Column("customer_id", "integer"),
                Column("country", "text", values=Categories(("US", "DE"))),
                Column("joined", "date"),
            ),
            "customer_id",
            max_rows=1,
        ),
        Table(
            "orders",
            (
                Column("order_id", "integer"),
                Column("customer_id", "integer"),
                Column("ts", "timestamp"),
                Column("total", "real", Bounds(0, 10000)),
                Column("status", "text", values=Categories(("paid", "open"))),
            ),
            "customer_id",
        ),
        Table(
            "items",
            (
                Column("order_id", "integer"),
                Column("sku", "text"),
                Column("qty", "integer", Bounds(0, 100)),
                Column("price", "real", Bounds(0, 1000)),
            ),
            link=Link("order_id", "orders", "order_id"),
            max_matches=50,
        ),
        Table(
            "products",
            (
                Column("sku", "text"),
                Column("category", "text", values=Categories(("a", "b"))),
                Column("list_price", "real", Bounds(0, 1000)),
            ),
            private=False,
            unique=("sku",),
        ),
        Table(
            "trips",
            (
                Column("vendor", "integer", Bounds(1, 2)),
                Column("pickup", "timestamp"),
                Column("dropoff", "timestamp"),
                Column("passengers", "integer", Bounds(0, 8)),
                Column("distance", "real", Bounds(0, 100)),
                Column("fare", "real", Bounds(0, 500)),
                Column("tip", "real", Bounds(0, 200)),
                Column("payment", "text"),
                Column("zone", "integer", Bounds(1, 265)),
            ),
        ),
        Table(
            "zones",
            (
                Column("zone_id", "integer"),
                Column("borough", "text", values=Categories(("Bronx", "Queens"))),
            ),
            private=False,
            unique=("zone_id",),
        ),
        Table(
            "census",
            (
                Column("age", "integer", Bounds(0, 100)),
                Column("sex", "text", values=Categories(("Male", "Female"))),
                Column("workclass", "text"),
                Column("education", "text"),
                Column("hours", "integer", Bounds(0, 99)),
                Column("income", "text", values=Categories(("<=50K", ">50K"))),
                Column("capital_gain", "real", Bounds(0, 100000)),
                Column("marital", "text"),
                Column("native", "text"),
            ),
        ),
    )
)
KINDS = {"integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN", "text": "VARCHAR", "date": "DATE"}
KINDS |= {"timestamp": "TIMESTAMP"}
QUESTIONS = (HERE / "analysts.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for table in CATALOG.tables:
        columns = ", ".join(f"{column.name} {KINDS[column.type]}" for column in table.columns)
        connection.execute(f"CREATE TABLE {table.name} ({columns})")
    return connection


@pytest.mark.parametrize("sql", QUESTIONS)
def test_what_analysts_ask_is_understood(engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    query = parse(sql, CATALOG)
    aggregate = query.aggregate
    parts = [key.expression for key in aggregate.keys]
    parts += [measure.argument for measure in aggregate.measures if measure.argument is not None]
    relation, names = renamed(aggregate.input)
    shown = ", ".join(text_of(substituted(part, names)) for part in parts) or "1"
    assert engine.execute(f"SELECT {shown} FROM ({Selection().select(relation)})").fetchall() == []

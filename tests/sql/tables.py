"""The tables the SQL tests ask about, and small made-up rows for them."""

import datetime
import random
from typing import Any

import duckdb

from discreet.core.domains import Bounds, Categories
from discreet.sql.catalog import Catalog, Column, Table

CITIES = ("Oslo", "Rome", "Lima", "Cairo")
VISITS = Table(
    "visits",
    (
        Column("patient", "integer"),
        Column("age", "integer", Bounds(0, 120)),
        Column("city", "text", values=Categories(CITIES)),
        Column("cost", "real", Bounds(0, 500)),
        Column("day", "date"),
        Column("seen", "timestamp"),
        Column("urgent", "boolean"),
    ),
    unit="patient",
    max_rows=20,
)
DRUGS = Table(
    "drugs",
    (Column("patient", "integer"), Column("drug", "text"), Column("dose", "real", Bounds(0, 10))),
    unit="patient",
)
TOWNS = Table(
    "towns",
    (Column("city", "text"), Column("region", "text"), Column("people", "integer", Bounds(0, 10**7))),
    private=False,
)
LOG = Table("log", (Column("Level", "integer", Bounds(0, 9)), Column("note", "text")))
CATALOG = Catalog((VISITS, DRUGS, TOWNS, LOG))
ENGINE = {"integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN", "text": "VARCHAR"}
ENGINE |= {"date": "DATE", "timestamp": "TIMESTAMP"}

Data = dict[str, list[dict[str, Any]]]


def data(rng: random.Random) -> Data:
    """Rows of every table; some values are missing, some people have none or many."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.12 else value

    day = datetime.date(2020, 1, 1)
    visits = [
        {
            "patient": rng.randrange(8),
            "age": maybe(rng.randrange(0, 100)),
            "city": maybe(rng.choice(CITIES)),
            "cost": maybe(rng.randrange(0, 4000) / 8),
            "day": maybe(day + datetime.timedelta(days=rng.randrange(900))),
            "seen": maybe(datetime.datetime(2021, 3, 1) + datetime.timedelta(minutes=rng.randrange(900_000))),
            "urgent": maybe(rng.random() < 0.5),
        }
        for _ in range(40)
    ]
    drugs = [
        {"patient": rng.randrange(10), "drug": maybe(rng.choice("abc")), "dose": maybe(rng.randrange(80) / 8)}
        for _ in range(15)
    ]
    towns = [
        {"city": city, "region": maybe(rng.choice(["north", "south"])), "people": maybe(rng.randrange(10**6))}
        for city in (*CITIES, "Rome", None)
    ]
    log = [{"Level": maybe(rng.randrange(10)), "note": maybe(rng.choice(["x", "y z", ""]))} for _ in range(12)]
    return {"visits": visits, "drugs": drugs, "towns": towns, "log": log}


def load(rows: Data) -> duckdb.DuckDBPyConnection:
    """The rows in DuckDB, with statements run as they are written: that means the same, and they start sooner."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("PRAGMA disable_optimizer")
    for table in CATALOG.tables:
        kinds = ", ".join(f'"{column.name}" {ENGINE[column.type]}' for column in table.columns)
        connection.execute(f"CREATE TABLE {table.name} ({kinds})")
        place = f"({', '.join('?' for _ in table.columns)})"
        places = ", ".join(place for _ in rows[table.name])
        values = [row[name] for row in rows[table.name] for name in table.names]
        connection.execute(f"INSERT INTO {table.name} VALUES {places}", values)
    return connection

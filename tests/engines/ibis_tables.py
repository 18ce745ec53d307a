"""Connections of ibis for the tests: warehouses whose SQL is translated for DuckDB.

No warehouse runs here. What would be sent to one is read by sqlglot as that warehouse's SQL and written as DuckDB's;
that it means what it should is checked by its totals.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ibis
import pyarrow as pa
import sqlglot
from sqlglot import exp
from tests.sql.worlds import ARROW

FUNCTIONS = (
    "safe_add(a, b) AS CASE WHEN isfinite(a + b) THEN a + b END",
    "safe_subtract(a, b) AS CASE WHEN isfinite(a - b) THEN a - b END",
    "safe_multiply(a, b) AS CASE WHEN isfinite(a * b) THEN a * b END",
    "safe_divide(a, b) AS CASE WHEN isfinite(a / b) THEN a / b END",
    "is_nan(x) AS isnan(x)",
    "div(a, b) AS a // b",
    "current_organization_name() AS 'HOSPITAL'",
    "current_account_name() AS 'WARD.1'",
)
"""Functions of the warehouses that DuckDB does not have."""
DECIMALS = "DECIMAL(18, 3)"
LARGEST = 1e12
"""The largest value of those decimals that the tests use."""


@lru_cache(maxsize=1)
def running() -> Any:
    """The one database."""
    connection = ibis.duckdb.connect(threads=1)
    connection.raw_sql("SET threads = 1")
    for function in FUNCTIONS:
        connection.raw_sql(f"CREATE MACRO {function}")
    return connection


def create(schema: str, name: str, kinds: Mapping[str, str], rows: list[dict[str, Any]]) -> str:
    """A table in a schema of its own."""
    arrays = {column: pa.array([row[column] for row in rows], ARROW[kind]) for column, kind in kinds.items()}
    con = running().con
    con.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    con.register("given", pa.table(arrays))
    con.execute(f'CREATE OR REPLACE TABLE "{schema}"."{name}" AS SELECT * FROM given')
    con.unregister("given")
    return f"{schema}.{name}"


def create_decimals(schema: str, name: str, kinds: Mapping[str, str], rows: list[dict[str, Any]]) -> str:
    """The same with decimals for reals."""
    place = create(schema, name, kinds, rows)
    for column in (column for column, kind in kinds.items() if kind == "real"):
        running().con.execute(f'ALTER TABLE "{schema}"."{name}" ALTER "{column}" TYPE {DECIMALS}')
    return place


def decimal(value: Any) -> Any:
    """A value that decimals hold and DuckDB turns back into the same double, NULL for others."""
    return None if isinstance(value, float) and not (abs(value) <= LARGEST and (value * 8).is_integer()) else value


BaseBackend: Any = type("BaseBackend", (), {"__module__": "ibis.backends"})
"""What a connection of ibis is known by."""


class Warehouse(BaseBackend):
    """A warehouse as far as the engine knows one."""

    current_catalog = "memory"
    current_database = "main"

    def __init__(self, name: str, **given: Any) -> None:
        self.name = name
        self._con_kwargs = {"host": "warehouse.example", "password": "secret", **given}
        self.asked: list[str] = []

    def table(self, name: str, database: Any = None) -> Any:
        return running().table(name, database=database)

    def list_tables(self, database: Any = None) -> Any:
        listed = running().con.execute("SELECT table_name FROM information_schema.tables").fetchall()
        return [name for (name,) in listed]

    @property
    def client(self) -> Any:
        """As of BigQuery, which has no EXPLAIN."""
        return Client(self)

    def raw_sql(self, statement: str) -> Any:
        planned = re.match(r"EXPLAIN (\(TYPE VALIDATE\) )?", statement)
        self.asked += [] if planned else [statement]
        parsed = sqlglot.parse_one(statement[planned.end() if planned else 0 :], read=self.name)
        explain = "EXPLAIN " if planned else ""
        return running().con.cursor().execute(explain + parsed.transform(_whole_quotient).sql(dialect="duckdb"))


@dataclass(frozen=True)
class QueryJobConfig:
    """As the client of BigQuery has one."""

    dry_run: bool
    use_query_cache: bool


@dataclass(frozen=True)
class Client:
    """A client that plans statements and runs none."""

    warehouse: Warehouse

    def query(self, statement: str, job_config: QueryJobConfig) -> None:
        assert job_config == QueryJobConfig(dry_run=True, use_query_cache=False)
        self.warehouse.raw_sql(f"EXPLAIN {statement}").close()


def _whole_quotient(node: Any) -> Any:
    """Quotients of whole numbers are whole on Trino; sqlglot knows nobody's types and would divide doubles."""
    if isinstance(node, exp.Div) and all(isinstance(side, exp.Cast) for side in (node.this, node.expression)):
        return exp.IntDiv(this=node.this, expression=node.expression)
    return node

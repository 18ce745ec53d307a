"""Tables of the tests on a PostgreSQL server, the same rows as elsewhere."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

import psycopg
from tests.ledger.servers import running

KINDS = {"integer": "int8", "real": "float8", "boolean": "boolean", "text": "text", "date": "date"}
KINDS |= {"timestamp": "timestamp"}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def create(name: str, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A table with these rows, in the schema that stands before its name if there is one."""
    schema, dot, _ = name.rpartition(".")
    listed = list(rows)
    places = ", ".join(["%s"] * len(columns))
    with closing(psycopg.connect(running().url(), autocommit=True)) as connection, connection.cursor() as cursor:
        if dot:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
        cursor.execute(f"DROP TABLE IF EXISTS {name} CASCADE".encode())
        shown = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
        cursor.execute(f"CREATE TABLE {name} ({shown})".encode())
        cursor.executemany(
            f"INSERT INTO {name} VALUES ({places})".encode(), [[row[column] for column in columns] for row in listed]
        )

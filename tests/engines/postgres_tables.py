"""Tables of the tests on a PostgreSQL server, the same rows as elsewhere."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.ledger.servers import running
from tests.sql.worlds import Data, World

import discreet as dc
from discreet.session import Session

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


@contextmanager
def world_session(world: World, data: Data, schema: str) -> Iterator[Session]:
    """A session on the rows of a world, on the server."""
    for table in (*world.private, "towns"):
        create(f"{schema}.{table}", {n: KINDS[h.kind] for n, h in world.held(table).items()}, data[table])
    labs = dc.Private(f"{schema}.labs", None if world.by_row else world.pid, max_rows=world.labs_max)
    private: dict[str, Any] = {"labs": dc.Private(f"{schema}.labs") if world.by_row else labs}
    if world.linked:
        private["items"] = dc.Private(f"{schema}.items", link=("visit", "visits", "id"))
    facts = world.facts | {"table": f"{schema}.visits"}
    with (
        tempfile.TemporaryDirectory() as folder,
        dc.connect(
            running().url(),
            **facts,
            private=private,
            public={"towns": f"{schema}.towns"},
            ledger=Path(folder) / "books",
        ) as session,
    ):
        yield session

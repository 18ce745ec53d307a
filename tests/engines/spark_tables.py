"""One session of Spark for all tests, and tables in it, the same rows as elsewhere."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from tests.sql.worlds import Data, World

import discreet as dc
from discreet.session import Session

KINDS = {"integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(), "text": pa.string(), "date": pa.date32()}
KINDS |= {"timestamp": pa.timestamp("us")}


@lru_cache(maxsize=1)
def running() -> SparkSession:
    """The session: two threads, a small heap, and no warehouse but a temporary one."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folder = tempfile.mkdtemp(prefix="discreet-spark-")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("discreet")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@contextmanager
def having(**settings: str) -> Iterator[SparkSession]:
    """The session under other settings, given with _ for the dots in their names."""
    session = running()
    names = {name.replace("__", "."): value for name, value in settings.items()}
    before = {name: session.conf.get(name, None) for name in names}
    try:
        for name, value in names.items():
            session.conf.set(name, value)
        yield session
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def frame(columns: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Any:
    """A frame with these rows, whose columns have types of Arrow."""
    listed = list(rows)
    arrays = [pa.array([row[name] for row in listed], kind) for name, kind in columns.items()]
    return framed(pa.table(dict(zip(columns, arrays, strict=True))))


def framed(table: pa.Table) -> Any:
    """A frame with the rows of a table; its timestamps have no time zone."""
    schema: Any = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return running().createDataFrame(table, schema)


def values(expressions: Sequence[str], source: str) -> list[tuple[Any, ...]]:
    """Columns of expressions in SQL, in the order that the source has."""
    shown = ", ".join(f"{text} AS c{place}" for place, text in enumerate(expressions))
    table = running().sql(f"SELECT {shown} {source}").toArrow()
    return [tuple(column.to_pylist()) for column in table.columns]


@contextmanager
def world_session(world: World, data: Data) -> Iterator[Session]:
    """A session on the rows of a world, as frames of Spark."""
    frames = {
        table: frame({n: KINDS[h.kind] for n, h in world.held(table).items()}, data[table])
        for table in (*world.private, "towns")
    }
    labs = dc.Private(frames["labs"], None if world.by_row else world.pid, max_rows=world.labs_max)
    private: dict[str, Any] = {"labs": dc.Private(frames["labs"]) if world.by_row else labs}
    if world.linked:
        private["items"] = dc.Private(frames["items"], link=("visit", "visits", "id"))
    with (
        tempfile.TemporaryDirectory() as folder,
        dc.connect(
            frames["visits"],
            **world.facts | {"table": "visits"},
            private=private,
            public={"towns": frames["towns"]},
            ledger=Path(folder) / "books",
        ) as session,
    ):
        yield session

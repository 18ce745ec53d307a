"""One session of Spark for all tests, and tables in it, the same rows as elsewhere."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from tests.engines.spark_cluster import QUICK as JAVA

KINDS = {"integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(), "text": pa.string(), "date": pa.date32()}
KINDS |= {"timestamp": pa.timestamp("us")}


QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A statement over few rows is planned and interpreted in a third of the time that it takes as usual."""
USUAL = {
    "spark__sql__shuffle__partitions": "2",
    "spark__sql__adaptive__enabled": "true",
    "spark__sql__codegen__wholeStage": "true",
    "spark__sql__codegen__factoryMode": "FALLBACK",
}
"""As Spark is where nobody is in a hurry, for `having`."""


@lru_cache(maxsize=1)
def running() -> SparkSession:
    """The session: two threads, a small heap, no warehouse but a temporary one, and `QUICK`."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folder = tempfile.mkdtemp(prefix="discreet-spark-")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.default.parallelism": "2",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.extraJavaOptions": f"{JAVA} -XX:MetaspaceSize=256m",
        # What the pages about past statements would show takes most of the time and memory of small ones.
        "spark.sql.maxPlanStringLength": "1000",
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.buffer.pageSize": "256k",
        "spark.sql.autoBroadcastJoinThreshold": "1m",
    }
    builder = SparkSession.builder.master("local[2]").appName("discreet")
    for name, value in (settings | QUICK).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@contextmanager
def having(**settings: str) -> Iterator[SparkSession]:
    """The session under other settings, given with __ for the dots in their names."""
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

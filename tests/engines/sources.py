"""One small table in every form a source can have."""

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

TABLE = pa.table(
    {
        "who": pa.array([1, 1, 2, None, 3], pa.int64()),
        "city": pa.array(["Oslo", "Bern", None, "Łódź", 'a, "b"'], pa.string()),
        "cost": pa.array([1.5, float("nan"), float("inf"), None, -2.0], pa.float64()),
        "day": pa.array([0, -1, 19_000, None, -700_000], pa.int32()).cast(pa.date32()),
    }
)
TYPES = {"who": "integer", "city": "text", "cost": "real", "day": "date"}


def csv(folder: Path) -> Path:
    path = folder / "visits.csv"
    pyarrow.csv.write_csv(TABLE, path)
    return path


def tsv_gz(folder: Path) -> Path:
    path = folder / "visits.tsv.gz"
    options = pyarrow.csv.WriteOptions(delimiter="\t")
    plain = folder / "plain"
    pyarrow.csv.write_csv(TABLE, plain, options)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return path


def parquet(folder: Path) -> Path:
    path = folder / "visits.parquet"
    pyarrow.parquet.write_table(TABLE, path)
    return path


def folder_of(write: Callable[[Any, Path], None], suffix: str) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        (folder / "visits" / "deep").mkdir(parents=True)
        write(TABLE[:2], folder / "visits" / f"a{suffix}")
        write(TABLE[2:], folder / "visits" / "deep" / f"b{suffix}")
        (folder / "visits" / "_SUCCESS").touch()
        return folder / "visits"

    return written


def hive(folder: Path) -> Path:
    for place, city in enumerate(TABLE["city"].to_pylist()):
        name = "__HIVE_DEFAULT_PARTITION__" if city is None else city.replace(" ", "%20").replace('"', "%22")
        inside = folder / "visits" / f"city={name}"
        inside.mkdir(parents=True)
        pyarrow.parquet.write_table(TABLE[place : place + 1].drop_columns(["city"]), inside / "part.parquet")
    return folder / "visits"


def database(folder: Path) -> Path:
    path = folder / "hospital.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE SCHEMA ward; CREATE TABLE ward.rows AS SELECT * FROM given")
        connection.execute("CREATE VIEW visits AS SELECT * FROM ward.rows")
    return path


def arrays(_: Path) -> dict[str, Any]:
    return {
        "who": np.ma.MaskedArray([1, 1, 2, 0, 3], mask=[0, 0, 0, 1, 0]),
        "city": TABLE["city"],
        "cost": pd.Series([1.5, np.nan, np.inf, None, -2.0], dtype="Float64"),
        "day": np.array(TABLE["day"].to_pylist(), dtype="datetime64[D]"),
    }


SOURCES: Mapping[str, Callable[[Path], Any]] = {
    "csv": csv,
    "tsv.gz": tsv_gz,
    "csv folder": folder_of(pyarrow.csv.write_csv, ".csv"),
    "parquet": parquet,
    "parquet folder": folder_of(pyarrow.parquet.write_table, ".parquet"),
    "hive": hive,
    "duckdb": database,
    "arrow": lambda _: TABLE,
    "record batches": lambda _: TABLE.to_reader(),
    "record batch": lambda _: TABLE.to_batches()[0],
    "dataset": lambda folder: pyarrow.dataset.dataset(parquet(folder)),
    "pandas": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas nullable": lambda _: TABLE.to_pandas().astype({"who": "Int64", "city": "category", "day": "object"}),
    "polars": lambda _: pl.from_arrow(TABLE),
    "arrays": arrays,
    "lists": lambda _: TABLE.to_pydict(),
}
UNTYPED: Mapping[str, Sequence[str]] = {
    "csv": ["who", "cost", "day"],
    "tsv.gz": ["who", "cost", "day"],
    "csv folder": ["who", "cost", "day"],
    "pandas nullable": ["day"],
    "lists": ["who", "cost", "day"],
}
"""Columns that have no type of their own in these forms."""

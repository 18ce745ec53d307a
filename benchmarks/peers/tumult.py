"""Tumult Analytics on Spark in local mode: groups and rows of each user limited, ρ-zCDP with Gaussian noise."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from protocol import BOUNDS, KEYS, SMALL_KEYS, Rows, rho_for, serve
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

PARTS = 2
"""Count and sum are two queries; each has half of ρ."""


def opened(table: str, rho: float) -> Any:
    """A session whose unit is the user."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", os.environ.get("PARTITIONS", "4"))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(f"file://{table}")
    return Session.from_dataframe(RhoZCDPBudget(rho), "t", frame, protected_change=AddRowsWithID("u"))


def prepare(table: str, limits: list[int]) -> Callable[[], Rows]:
    """The mean is the ratio of sum and count, which costs nothing."""
    groups, rows = limits
    rho = rho_for()
    session = opened(table, rho)
    keys = KeySet.from_dict({"k": KEYS})
    limited = QueryBuilder("t").enforce(MaxGroupsPerID("k", groups)).enforce(MaxRowsPerGroupPerID("k", rows))
    summed = limited.groupby(keys).sum("v", low=BOUNDS[0], high=BOUNDS[1], name="s")
    part = RhoZCDPBudget(rho / PARTS)

    def ask() -> Rows:
        counts = session.evaluate(limited.groupby(keys).count(name="n"), part).collect()
        totals = {row["k"]: row["s"] for row in session.evaluate(summed, part).collect()}
        return [(row["k"], row["n"], totals[row["k"]], totals[row["k"]] / max(row["n"], 1)) for row in counts]

    return ask


def latency(table: str) -> Callable[[int], object]:
    """A count by ten keys."""
    session = opened(table, 1000.0)
    keys = KeySet.from_dict({"k": SMALL_KEYS})

    def ask(i: int) -> object:
        kept = QueryBuilder("t").filter(f"v < {50 + i / 10}")
        limited = kept.enforce(MaxGroupsPerID("k", 10)).enforce(MaxRowsPerGroupPerID("k", 1))
        return session.evaluate(limited.groupby(keys).count(name="n"), RhoZCDPBudget(1)).collect()

    return ask


if __name__ == "__main__":
    serve(prepare, latency)

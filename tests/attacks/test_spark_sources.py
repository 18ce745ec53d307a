"""On Spark: what a table is changes under an open session, and statements that cannot work."""

from pathlib import Path
from typing import Any

import pytest
from tests.attacks import source_faults as faults
from tests.attacks.register import attack
from tests.attacks.statements import BUDGET, check_broken_statements, run_after
from tests.engines import spark_tables
from tests.engines.spark_tables import having

import discreet as dc
from discreet.core.errors import EngineUnavailable, InvalidArgument


def on_spark(folder: Path, source: Any, table: str) -> Any:
    given = {"unit": "who", "budget": BUDGET, "ledger": folder / f"{table}.books"}
    return dc.connect(source, table=table, **given)


@attack(48, finds=[faults.names_read_as_they_are_by_then])
def test_a_view_of_spark_that_is_swapped_is_not_read(tmp_path: Path) -> None:
    spark = spark_tables.running()
    few, many = (spark.range(count).withColumnRenamed("id", "who") for count in (20, 4000))
    with on_spark(tmp_path, few, "frame") as session:
        statement = session.price("SELECT COUNT(*) AS n FROM frame", epsilon=20).statement
        swapped = {row[1] for row in spark.sql("SHOW TABLES").collect() if row[1].startswith("discreet_")}
        swapped |= {part for part in statement.split("`") if part.startswith("discreet_")}
        assert swapped
        try:
            for name in swapped:
                many.createOrReplaceTempView(name)
            assert session.sql("SELECT COUNT(*) AS n FROM frame", epsilon=20).rows[0][0] < 1000
        finally:
            for name in swapped:
                spark.catalog.dropTempView(name)
    few.createOrReplaceTempView("swapped")
    try:
        with (
            on_spark(tmp_path, spark, "swapped") as session,
            run_after(session._engine, lambda: many.createOrReplaceTempView("swapped")),
            pytest.raises(EngineUnavailable, match="connect again"),
        ):
            session.sql("SELECT COUNT(*) AS n FROM swapped", epsilon=20)
    finally:
        spark.catalog.dropTempView("swapped")


@attack(49, finds=[faults.not_prepared])
def test_a_statement_that_spark_cannot_run_is_not_charged(tmp_path: Path) -> None:
    frame = spark_tables.running().range(20).withColumnRenamed("id", "who")
    with on_spark(tmp_path, frame, "frame") as session:
        check_broken_statements(session)


@attack(49, finds=[faults.reserved_words_not_looked_at])
def test_words_that_spark_reserves_cost_nothing(tmp_path: Path) -> None:
    frame = spark_tables.running().range(20).withColumnRenamed("id", "who")
    with on_spark(tmp_path, frame, "frame") as session:
        reserved = having(spark__sql__ansi__enforceReservedKeywords="true")
        with reserved, pytest.raises(dc.DiscreetError) as refused:
            session.sql("SELECT COUNT(*) AS n FROM frame", epsilon=1)
        assert session.spent.epsilon == 0
        assert isinstance(refused.value, InvalidArgument)
        assert "enforceReservedKeywords" in str(refused.value)

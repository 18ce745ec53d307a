"""On Spark: files that come to a table from elsewhere, single values that readers fail on, and quotes in names."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
from pyspark.sql.functions import lit
from tests.attacks import source_faults as faults
from tests.attacks.register import attack
from tests.attacks.statements import BUDGET, run_after
from tests.engines.spark_tables import having, running

import discreet as dc
from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.engines.spark.engine import Spark


def opened(folder: Path, source: Any, table: str, **more: Any) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    given = {"unit": "who", "budget": BUDGET, "ledger": folder / "books"} | more
    return dc.connect(source, table=table, **given)


@contextmanager
def parted(folder: Path) -> Iterator[None]:
    """A table with one partition, a view of it, and the files of somebody else, whose budget may be spent."""
    spark = running()
    shutil.rmtree(folder, ignore_errors=True)
    spark.range(500).selectExpr("id AS who", "1L AS x").write.parquet(str(folder / "team=b"))
    spark.sql(
        "CREATE TABLE parted (who BIGINT, x BIGINT, d INT, team STRING) USING parquet PARTITIONED BY (d) "
        f"LOCATION '{folder / 'team=a'}'"
    )
    spark.sql("INSERT INTO parted (who, x, team, d) SELECT id, 1, 'a', 1 FROM range(20)")
    spark.sql("CREATE VIEW over_parted AS SELECT who, x FROM parted")
    try:
        yield
    finally:
        spark.sql("DROP VIEW over_parted")
        spark.sql("DROP TABLE parted")


MOVES = {
    "attached": "ALTER TABLE parted ADD PARTITION (d = 2) LOCATION '{}'",
    "moved": "ALTER TABLE parted PARTITION (d = 1) SET LOCATION '{}'",
}
SOURCES: dict[str, Callable[[Any], Any]] = {
    "parted": lambda spark: spark,
    "over_parted": lambda spark: spark,
    "frame": lambda spark: spark.table("parted"),
}


@attack(48, finds=[faults.partitions_wherever_they_lie])
def test_a_partition_that_lies_elsewhere_is_not_read(tmp_path: Path) -> None:
    """Attached or moved between two questions, or after the charge; what is new where the table lies is read."""
    spark = running()
    for table, source in SOURCES.items():
        for move, deed in MOVES.items():
            books, data = tmp_path / table / move, tmp_path / f"{table} {move}"
            moved = deed.format(data / "team=b")
            with parted(data), opened(books, source(spark), table) as session:
                count = f"SELECT COUNT(*) AS n FROM {table}"
                assert session.sql(count, epsilon=1).rows
                spark.sql("INSERT INTO parted (who, x, team, d) SELECT id, 1, 'a', 3 FROM range(20, 40)")
                assert session.sql(count, epsilon=2).rows
                spent = session.spent
                spark.sql(moved)
                with pytest.raises((InvalidArgument, EngineUnavailable), match="connect again"):
                    session.sql(count, epsilon=3)
                assert session.spent == spent
            with (
                parted(data),
                opened(books / "late", source(spark), table) as session,
                run_after(session._engine, lambda moved=moved: spark.sql(moved)),
                pytest.raises(EngineUnavailable, match="connect again"),
            ):
                session.sql(f"SELECT COUNT(*) AS n FROM {table}", epsilon=1)


@attack(48, finds=[faults.files_looked_at_before_the_statement_only])
def test_a_partition_that_comes_while_a_statement_runs_is_not_answered(tmp_path: Path) -> None:
    spark = running()
    with parted(tmp_path / "data"), opened(tmp_path / "b", spark, "parted") as session:
        engine: Any = session._engine
        statement = session.price("SELECT COUNT(*) AS n FROM parted", epsilon=1).statement
        honest, left = engine._frames, [MOVES["attached"].format(tmp_path / "data" / "team=b")]

        def frames(*given: Any) -> Any:
            found = honest(*given)
            while left:
                spark.sql(left.pop())
            return found

        engine._frames = frames
        with pytest.raises(EngineUnavailable, match="connect again"):
            engine.run(statement)


def column(kind: pa.DataType, values: list[int], width: int) -> pa.Array:
    """Values as they are stored, whether or not they are of the type."""
    raw = b"".join(value.to_bytes(width, "little", signed=True) for value in values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(raw)])


LARGE: dict[str, tuple[pa.DataType, int, int]] = {
    "ms": (pa.timestamp("ms"), 2**63 - 1, 8),
    "us": (pa.timestamp("us"), 2**63 - 1, 8),
    "utc": (pa.timestamp("us", "UTC"), -(2**63), 8),
    "short": (pa.decimal128(5, 2), 2**31 - 1, 16),
    "long": (pa.decimal128(18, 9), 2**63 - 1, 16),
    "wide": (pa.decimal128(30, 2), 10**33, 16),
    "whole": (pa.decimal128(17, 0), 2**63 - 1, 16),
    "day": (pa.date32(), 2**31 - 1, 4),
}
"""Types of columns with what one row holds, and its bytes."""


def outcomes(
    folder: Path, write: Callable[[pa.Table, Path], None], read: Callable[[str], Any], **units: Any
) -> list[Any]:
    """What comes of questions about files that differ in one row."""
    seen = []
    for name, (kind, value, width) in LARGE.items():
        if name in units.get("without", ()):
            continue
        for odd in (1, value):
            place = folder / f"{name} {odd == 1}"
            place.mkdir(parents=True)
            table = pa.table({"who": pa.array(range(3), pa.int64()), "v": column(kind, [1, 2, odd], width)})
            write(table, place / "part")
            try:
                with opened(place / "books", read(str(place / "part")), "t", unit=units.get("unit", "who")) as session:
                    rows = session.sql("SELECT COUNT(v) AS n FROM t", epsilon=1).rows
                    seen.append((name, len(rows)))
            except dc.DiscreetError as error:
                seen.append((name, type(error).__name__, str(error)))
    return seen


def parquet(table: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(table, path, store_decimal_as_integer=True)


@attack(11, finds=[faults.files_not_looked_into, faults.decimals_not_guarded])
def test_one_value_in_a_file_fails_no_statement(tmp_path: Path) -> None:
    """Neighbours have one outcome, and none is that a statement failed."""
    for ansi in ("true", "false"):
        with having(spark__sql__ansi__enabled=ansi):
            seen = outcomes(tmp_path / ansi, parquet, running().read.parquet)
            assert seen[::2] == seen[1::2]
            assert {name for name, *rest in seen if rest != [1]} == {"ms", "wide"}
            assert not any("AnswerFailed" in outcome for outcome in seen)
            owned = outcomes(tmp_path / ansi / "owned", parquet, running().read.parquet, unit="v")
            assert owned[::2] == owned[1::2]
            assert not any("AnswerFailed" in outcome for outcome in owned)


@attack(11, finds=[faults.files_not_looked_into])
def test_moments_in_orc_are_not_read(tmp_path: Path) -> None:
    for odd in (1, 10**14):
        (tmp_path / str(odd)).mkdir()
        table = pa.table({"who": pa.array([1, 2], pa.int64()), "v": column(pa.timestamp("s"), [1, odd], 8)})
        pyarrow.orc.write_table(table, tmp_path / str(odd) / "part.orc")
        frame = running().read.orc(str(tmp_path / str(odd) / "part.orc"))
        with opened(tmp_path / str(odd) / "b", frame, "t") as session:
            assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).rows
            with pytest.raises(dc.DiscreetError, match="moments in ORC"):
                session.sql("SELECT COUNT(v) AS n FROM t", epsilon=1)


@attack(11, finds=[faults.files_not_looked_into])
def test_columns_to_fail_on_are_followed_into_views(tmp_path: Path) -> None:
    """A view that leaves such a column out is read, and one that uses it is refused, under whatever name."""
    table = pa.table({"who": pa.array([1, 2], pa.int64()), "v": column(pa.timestamp("ms"), [1, 2], 8)})
    parquet(table, tmp_path / "t.parquet")
    frame = running().read.parquet(str(tmp_path / "t.parquet"))
    with opened(tmp_path / "b", frame.select("who"), "t") as session:
        assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).rows
    for derived in (frame.selectExpr("who", "v AS w"), frame.where("v IS NOT NULL").select("who")):
        with pytest.raises(InvalidArgument, match="without v, which has moments in milliseconds"):
            opened(tmp_path / "c", derived, "t")
    running().sql(f"CREATE TABLE later (who BIGINT, v TIMESTAMP_NTZ) USING parquet LOCATION '{tmp_path / 'later'}'")
    try:
        running().sql("INSERT INTO later SELECT id, TIMESTAMP_NTZ'2020-01-01 00:00:00' FROM range(9)")
        with opened(tmp_path / "d", running(), "later") as session:
            assert session.sql("SELECT COUNT(v) AS n FROM later", epsilon=1).rows
            parquet(table, tmp_path / "later" / "part-9.parquet")
            running().sql("REFRESH TABLE later")
            with pytest.raises((InvalidArgument, EngineUnavailable), match="connect again"):
                session.sql("SELECT COUNT(v) AS n FROM later", epsilon=2)
    finally:
        running().sql("DROP TABLE later")


@attack(11, finds=[faults.files_of_any_kind])
def test_files_of_lines_are_refused_on_spark(tmp_path: Path) -> None:
    spark = running()
    (tmp_path / "t.csv").write_text("1,1.5\n2,1e99999999\n")
    (tmp_path / "t.json").write_text('{"who": 1, "x": 1.5}\n')
    schema = "who BIGINT, x DECIMAL(10,2)"
    lines = {kind: getattr(spark.read.schema(schema), kind)(str(tmp_path / f"t.{kind}")) for kind in ("csv", "json")}
    for kind, frame in lines.items():
        for source in (frame, frame.where("x > 0").selectExpr("who", "x AS y")):
            with pytest.raises(InvalidArgument, match=rf"{kind}.*write it to Parquet first"):
                opened(tmp_path / kind, source, "t")
    spark.sql(f"CREATE TABLE lined ({schema}) USING csv LOCATION '{tmp_path / 't.csv'}'")
    try:
        with having(spark__sql__sources__useV1SourceList=""):
            for source in (spark, spark.read.schema(schema).csv(str(tmp_path / "t.csv"))):
                with pytest.raises(InvalidArgument, match="write it to Parquet first"):
                    opened(tmp_path / "lined", source, "lined")
    finally:
        spark.sql("DROP TABLE lined")


@attack(32, 48, finds=[faults.quotes_in_names_taken_for_texts])
def test_a_quote_in_a_name_hides_no_table(tmp_path: Path) -> None:
    """What was compared is read, although the name stands for something else right after."""
    spark = running()
    for name in ("plain", "it's", "a`b'c", "swapped", "x'{t0}'"):
        few, many = (spark.range(count).selectExpr("id AS who").withColumn(name, lit("a")) for count in (20, 4000))
        few.createOrReplaceTempView("swapped")
        try:
            engine: Any = Spark(spark)
            engine.add("t", "swapped", unit="who")
            honest = engine._frames

            def frames(*given: Any, honest: Any = honest, many: Any = many) -> Any:
                found = honest(*given)
                many.createOrReplaceTempView("swapped")
                return found

            engine._frames = frames
            shown = engine.dialect.identifier(name)
            # An odd number of quotes before the table, and an even one; and some after it.
            for counted in ("COUNT(*)", f"COUNT({shown})"):
                few.createOrReplaceTempView("swapped")
                rest = f"COUNT_IF({shown} <> 'FROM `swapped`') FROM {engine.dialect.table('t')}"
                assert engine.run(f"SELECT {counted}, {rest} WHERE {shown} <> 'b'") == [(20, 20)], name
            engine.close()
        finally:
            spark.catalog.dropTempView("swapped")

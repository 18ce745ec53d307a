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
from discreet.engines.spark import footers
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


def asked(session: Any, name: str) -> Any:
    """What comes of a question about a column."""
    try:
        return len(session.sql(f"SELECT COUNT({name}) AS n FROM t", epsilon=1).rows)
    except dc.DiscreetError as error:
        return type(error).__name__, str(error)


def stored(kinds: dict[str, tuple[pa.DataType, int, int]], odd: bool) -> pa.Table:
    """A table with a column of each kind, in whose last row is what is large, or not."""
    columns = {name: column(kind, [1, 2, value if odd else 1], width) for name, (kind, value, width) in kinds.items()}
    return pa.table({"who": pa.array(range(3), pa.int64())} | columns)


def parquet(table: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(table, path, store_decimal_as_integer=True)


@attack(11, finds=[faults.files_not_looked_into, faults.decimals_not_guarded])
def test_one_value_in_a_file_fails_no_statement(tmp_path: Path) -> None:
    """Neighbours have one outcome, and none is that a statement failed."""
    for odd in (False, True):
        parquet(stored(LARGE, odd), tmp_path / f"{odd}.parquet")
    for ansi in ("true", "false"):
        seen = []
        for odd in (False, True):
            frame = running().read.parquet(str(tmp_path / f"{odd}.parquet"))
            with having(spark__sql__ansi__enabled=ansi), opened(tmp_path / f"{ansi} {odd}", frame, "t") as session:
                seen.append({name: asked(session, name) for name in LARGE})
        assert seen[0] == seen[1]
        assert {name for name, outcome in seen[0].items() if outcome != 1} == {"ms", "wide"}
        assert not any("AnswerFailed" in str(outcome) for outcome in seen[0].values())


@attack(11, finds=[faults.files_not_looked_into])
def test_one_value_that_names_a_person_fails_no_statement(tmp_path: Path) -> None:
    for unit in LARGE:
        seen = []
        for odd in (False, True):
            path = tmp_path / f"{unit} {odd}"
            parquet(stored({unit: LARGE[unit]}, odd), path)
            try:
                with opened(tmp_path / f"b {unit} {odd}", running().read.parquet(str(path)), "t", unit=unit) as session:
                    seen.append(asked(session, "who"))
            except dc.DiscreetError as error:
                seen.append(str(error))
        assert seen[0] == seen[1]
        assert "AnswerFailed" not in str(seen)


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
def test_decimals_in_orc_are_not_read(tmp_path: Path) -> None:
    """The reader fails on one that has more digits than its type."""
    decimals = {name: facts for name, facts in LARGE.items() if pa.types.is_decimal(facts[0])}
    for odd in (False, True):
        (tmp_path / str(odd)).mkdir()
        orc(stored(decimals, odd), tmp_path / str(odd) / "part.orc")
        with opened(tmp_path / f"b{odd}", running().read.orc(str(tmp_path / str(odd))), "t") as session:
            assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).rows
            for name in decimals:
                assert "decimals in ORC" in str(asked(session, name))


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


STORED: dict[str, tuple[pa.DataType, int, int]] = LARGE | {
    "tiny": (pa.int8(), -(2**7), 1),
    "small": (pa.int16(), 2**15 - 1, 2),
    "int": (pa.int32(), -(2**31), 4),
    "big": (pa.int64(), 2**63 - 1, 8),
    "unsigned": (pa.uint64(), -1, 8),
    "float": (pa.float32(), 0x7F800000, 4),
    "double": (pa.float64(), 0x7FF8 << 48, 8),
}
DECLARED = ("INT", "BIGINT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL(18,2)", "DECIMAL(30,2)")


def orc(table: pa.Table, path: Path) -> None:
    pyarrow.orc.write_table(table, path)


@attack(11, finds=[faults.types_not_compared])
def test_a_value_fails_under_no_type_that_is_declared_for_its_file(tmp_path: Path) -> None:
    """Types in files and declared ones, each with each, are read or refused: nothing fails after it was paid for."""
    parquet(stored(STORED, odd=True), tmp_path / "t.parquet")
    read = set()
    for place, kind in enumerate(DECLARED):
        schema = ", ".join(f"{name} {kind}" for name in STORED)
        frame = running().read.schema(f"who BIGINT, {schema}").parquet(str(tmp_path / "t.parquet"))
        with opened(tmp_path / str(place), frame, "t") as session:
            seen = {name: asked(session, name) for name in STORED}
        assert not any("AnswerFailed" in str(outcome) for outcome in seen.values()), kind
        read |= {(name, kind) for name, outcome in seen.items() if outcome == 1}
    total = {("int", "BIGINT"), ("tiny", "INT"), ("float", "DOUBLE"), ("us", "TIMESTAMP_NTZ"), ("day", "DATE")}
    assert total | {("utc", "TIMESTAMP"), ("us", "TIMESTAMP"), ("short", "DECIMAL(18,2)")} <= read
    assert not read & {("day", "TIMESTAMP_NTZ"), ("short", "DECIMAL(30,2)"), ("big", "INT"), ("ms", "TIMESTAMP_NTZ")}


@attack(11, finds=[faults.types_not_compared])
def test_declared_types_are_followed_into_views_and_orc(tmp_path: Path) -> None:
    kinds = {"short": LARGE["short"], "day": LARGE["day"]}
    for odd in (False, True):
        parquet(stored(kinds, odd), tmp_path / f"{odd}.parquet")
        orc(stored({"day": LARGE["day"]}, odd), tmp_path / f"{odd}.orc")
        spark = running().read
        lake = spark.schema("who BIGINT, short DECIMAL(30,2), day TIMESTAMP_NTZ").parquet(
            str(tmp_path / f"{odd}.parquet")
        )
        rows = running().read.schema("who BIGINT, day TIMESTAMP").orc(str(tmp_path / f"{odd}.orc"))
        for frame, shown in ((lake, "short AS w"), (lake, "CAST(day AS STRING) AS w"), (rows, "day AS w")):
            with pytest.raises(InvalidArgument, match="declared as"):
                opened(tmp_path / "b", frame.selectExpr("who", shown), "t")
        kept = running().read.schema("who BIGINT, day DATE").orc(str(tmp_path / f"{odd}.orc"))
        with opened(tmp_path / f"kept {odd}", kept.selectExpr("who", "day AS w"), "t") as session:
            assert asked(session, "w") == 1


@attack(11, finds=[faults.footers_kept_by_their_path])
def test_a_file_written_in_the_place_of_another_is_looked_into(tmp_path: Path) -> None:
    who, path = pa.array(range(3), pa.int64()), tmp_path / "t.parquet"
    parquet(pa.table({"who": who, "v": column(pa.timestamp("us"), [1, 2, 3], 8)}), path)
    frame = running().read.parquet(str(path))
    with opened(tmp_path / "b", frame, "t") as session:
        assert session.sql("SELECT COUNT(v) AS n FROM t", epsilon=1).rows
        parquet(pa.table({"who": who, "v": column(pa.timestamp("ms"), [1, 2, 2**63 - 1], 8)}), path)
        spent = session.spent
        with pytest.raises(dc.DiscreetError, match="connect again"):
            session.sql("SELECT COUNT(v) AS n FROM t", epsilon=2)
        path.unlink()
        with pytest.raises(dc.DiscreetError, match="connect again"):
            session.sql("SELECT COUNT(v) AS n FROM t", epsilon=3)
        assert session.spent == spent


@attack(28, finds=[faults.folders_that_give_types])
def test_the_name_of_one_folder_changes_no_type(tmp_path: Path) -> None:
    """Spark takes the type of a column from the names of all folders; a price, which is free, would tell of one."""
    spark, prices = running(), []
    who, least = pa.array(range(3), pa.int64()), "SELECT SUM(CLAMP(ward, 0, 9)) AS n FROM t"
    for place, wards in enumerate((["0", "1"], ["0", "1", "x"])):
        for ward in wards:
            (tmp_path / f"{place}" / f"ward={ward}").mkdir(parents=True)
            parquet(pa.table({"who": who}), tmp_path / f"{place}" / f"ward={ward}" / "a.parquet")
        frame = spark.read.parquet(str(tmp_path / f"{place}"))
        with opened(tmp_path / f"books{place}", frame, "t") as session:
            assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).rows
            for question in (least, "SELECT COUNT(*) AS n FROM t WHERE UPPER(ward) = 'X'"):
                try:
                    prices.append(session.price(question, epsilon=1).loss)
                except dc.DiscreetError as error:
                    prices.append(str(error))
        with pytest.raises(InvalidArgument, match="without ward, which has a type that follows from the names"):
            opened(tmp_path / f"filtered{place}", frame.where("ward = '0'"), "t")
    assert prices[:2] == prices[2:]


@attack(18, finds=[faults.spaces_that_tell_people_apart])
def test_a_person_is_one_in_columns_of_any_width(tmp_path: Path) -> None:
    spark = running()
    try:
        for table, width in {"narrow": 5, "wide": 8}.items():
            spark.sql(f"CREATE TABLE {table} (who CHAR({width}), x BIGINT) USING parquet LOCATION '{tmp_path / table}'")
            spark.sql(f"INSERT INTO {table} VALUES ('ann', 1), ('bob', 1)")
        more = {"private": {"wide": dc.Private("wide", unit="who")}, "max_rows": 5}
        with opened(tmp_path / "b", spark, "narrow", **more) as session:
            both = "SELECT COUNT(DISTINCT who) AS n FROM (SELECT who FROM narrow UNION ALL SELECT who FROM wide)"
            for question, units in ((both, 2), ("SELECT COUNT(*) AS n FROM narrow WHERE who = 'ann'", 1)):
                found = session._engine.run(session.price(question, epsilon=1).statement)
                assert [total for part, _, _, _, total, _ in found if part in (0, 1)] == [units]
    finally:
        for table in ("narrow", "wide"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


@attack(11, finds=[faults.flat_columns_only])
def test_structs_and_lists_are_looked_into(tmp_path: Path) -> None:
    """A view that reads what cannot fail is read, and one of milliseconds is refused."""
    who, moments = pa.array(range(3), pa.int64()), column(pa.timestamp("ms"), [1, 2, 2**63 - 1], 8)
    inner = {"x": pa.array([1, 2, 3], pa.int64()), "w": moments}
    fields = pa.StructArray.from_arrays([*inner.values()], [*inner])
    parquet(pa.table({"who": who, "s": fields, "k": fields.field("x")}), tmp_path / "s.parquet")
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), moments)
    parquet(pa.table({"who": who, "s": lists, "k": inner["x"]}), tmp_path / "l.parquet")
    plain = pa.StructArray.from_arrays([inner["x"], lists.offsets[:3]], ["x", "y"])
    parquet(pa.table({"who": who, "p": plain}), tmp_path / "p.parquet")
    for name, shown in (("s", "s.w AS w"), ("l", "s[0] AS w")):
        frame = running().read.parquet(str(tmp_path / f"{name}.parquet"))
        with pytest.raises(InvalidArgument, match="without s, which has moments in milliseconds"):
            opened(tmp_path / f"b{name}", frame.selectExpr("who", shown), "t")
        with opened(tmp_path / f"k{name}", frame.select("who", "k"), "t") as session:
            assert session.sql("SELECT COUNT(k) AS n FROM t", epsilon=1).rows
    frame = running().read.parquet(str(tmp_path / "p.parquet")).selectExpr("who", "p.y AS y")
    with opened(tmp_path / "bp", frame, "t") as session:
        assert session.sql("SELECT COUNT(y) AS n FROM t", epsilon=1).rows


def test_files_say_the_same_to_both_libraries(tmp_path: Path) -> None:
    """Files on other machines are looked into by Java, those here by Arrow."""
    who = pa.array(range(3), pa.int64())
    fields = pa.StructArray.from_arrays([who, column(pa.decimal128(30, 2), [1, 2, 3], 16)], ["x", "d"])
    columns = {name: column(kind, [1, 1, 1], width) for name, (kind, _, width) in STORED.items()}
    columns |= {"who": who, "s": fields, "text": pa.array(["a"] * 3), "bytes": pa.array([b"a"] * 3)}
    parquet(pa.table(columns), tmp_path / "t.parquet")
    orc(pa.table({name: values for name, values in columns.items() if name != "unsigned"}), tmp_path / "t.orc")
    spark: Any = running()
    for name in ("t.parquet", "t.orc"):
        here = footers._local(tmp_path / name)
        assert here == footers._remote(spark._jvm, spark, f"file://{tmp_path / name}")
        assert {*here} >= {"who", "s", "text"}


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

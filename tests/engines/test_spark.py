"""Sessions on Spark: tables by name, views, partitioned tables and frames; one shuffle for each level; and what is
wrong is said before anything is charged. How questions end early is in `test_spark_interruptions.py`."""

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql.functions import lit
from tests.engines.spark_tables import USUAL, frame, having, running

import discreet as dc
from discreet.charging.certificate import verify
from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.engines.spark import engine as spark
from discreet.engines.spark import sessions as spark_sessions
from discreet.engines.spark.engine import Spark

CITIES = ["Oslo", "Rome", "Lima"]
VISITS = {"patient": pa.int32(), "age": pa.int16(), "cost": pa.decimal128(10, 2), "city": pa.string()}
VISITS |= {"day": pa.date32()}


def rows(people: int = 300) -> list[dict[str, Any]]:
    day = datetime.date(2020, 1, 1)
    return [
        {
            "patient": place % people if place % 50 else None,
            "age": place % 90,
            "cost": place % 100,
            "city": CITIES[place % 3],
            "day": day + datetime.timedelta(days=place % 4),
        }
        for place in range(3 * people)
    ]


@pytest.fixture(scope="module", autouse=True)
def usual() -> Iterator[None]:
    with having(**USUAL):
        yield


@pytest.fixture(scope="module", autouse=True)
def tables(usual: None) -> Iterator[None]:
    session = running()
    session.sql("CREATE DATABASE IF NOT EXISTS hospital")
    frame(VISITS, rows()).write.mode("overwrite").partitionBy("day").saveAsTable("hospital.visits")
    labs = [{"pid": i, "result": i / 100} for i in range(300)]
    frame({"pid": pa.int64(), "result": pa.float64()}, labs).write.mode("overwrite").saveAsTable("hospital.labs")
    towns = [{"city": city, "region": city[:1]} for city in CITIES]
    frame({"city": pa.string(), "region": pa.string()}, towns).write.mode("overwrite").saveAsTable("hospital.towns")
    session.sql("CREATE OR REPLACE VIEW hospital.adults AS SELECT * FROM hospital.visits WHERE age >= 18")
    session.sql("CREATE OR REPLACE VIEW hospital.grown AS SELECT * FROM hospital.adults")
    yield
    session.sql("DROP DATABASE hospital CASCADE")


def facts(folder: Path, **more: Any) -> dict[str, Any]:
    declared: dict[str, Any] = {"table": "hospital.visits", "unit": "patient", "budget": dc.ApproxDP(20, "1e-6")}
    declared |= {"bounds": {"cost": (0, 100), "age": (0, 120)}, "values": {"city": CITIES}, "ledger": folder / "books"}
    return declared | more


def test_a_session_from_price_to_certificate(tmp_path: Path) -> None:
    text = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city"
    with dc.connect(running(), **facts(tmp_path)) as session:
        quote = session.price(text, epsilon=8)
        assert "`hospital`.`visits`" in quote.statement
        assert session.spent.epsilon == 0
        answer = session.sql(text, epsilon=8)
        assert [row[0] for row in answer.rows] == CITIES
        assert all(abs(row[1] - 294) < 60 for row in answer.rows)
        assert session.sql(text, epsilon=8).rows == answer.rows
        assert session.spent == quote.loss
        assert verify(answer.certificate, answer=answer).rows == answer.certificate["rows"]
        assert not session.running()
    # The same data under other names has the same books: a view, a frame, and the folder without Spark.
    folder = Path(running().conf.get("spark.sql.warehouse.dir", "").removeprefix("file:")) / "hospital.db" / "visits"
    with dc.connect(running(), **facts(tmp_path, table="hospital.grown")) as again:
        assert again.spent == quote.loss
        assert again.account == ("visits",)
    some = running().table("hospital.visits").where("age > 44")
    with dc.connect(some, **facts(tmp_path, table="visits")) as again:
        assert again.spent == quote.loss
        # Other rows are another question, even if it is worded alike.
        assert all(row[1] < 220 for row in again.sql(text, epsilon=8).rows)
        spent = again.spent
    with dc.connect(running().table("hospital.visits").where("age > 44"), **facts(tmp_path, table="visits")) as again:
        again.sql(text, epsilon=8)
        assert again.spent == spent
    with dc.connect(folder, **facts(tmp_path, table="files")) as again:
        assert again.spent == spent
    with pytest.raises(InvalidArgument, match="another"):
        dc.connect(running(), **facts(tmp_path, dataset="another"))


def test_further_tables_of_the_same_session(tmp_path: Path) -> None:
    private = {"labs": dc.Private("hospital.labs", unit="pid", bounds={"result": (0, 3)}, max_rows=1)}
    public = {"towns": running().table("hospital.towns")}
    with dc.connect(running(), **facts(tmp_path, private=private, public=public)) as session:
        assert session._catalog.table("towns").unique == ("city", "region")
        by_region = session.sql(
            "SELECT region, COUNT(*) AS n FROM visits JOIN towns USING (city) GROUP BY region", epsilon=5
        )
        assert {row[0] for row in by_region.rows} == {"O", "R", "L"}
    assert not [table.name for table in running().catalog.listTables() if table.name.startswith("discreet")]


def exchanges(statement: str) -> int:
    """How often rows are sent to other places, those not counted that are read again."""
    with having(spark__sql__maxPlanStringLength="1000000000"):
        plan = running().sql(f"EXPLAIN FORMATTED {statement}").collect()[0][0]
    return len(re.findall(r"^\(\d+\) Exchange", plan, re.MULTILINE))


def test_rows_are_sent_once_for_each_level(tmp_path: Path) -> None:
    with (
        having(spark__sql__adaptive__enabled="false", spark__sql__autoBroadcastJoinThreshold="-1"),
        dc.connect(running(), **facts(tmp_path)) as session,
    ):
        by_city = "SELECT city, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY city"
        statement = session.price(by_city, epsilon=1).statement
        # By unit, by group and bucket, and the few sums of those once more.
        assert exchanges(statement) == 3
        assert "python" not in running().sql(f"EXPLAIN {statement}").collect()[0][0].lower()
        # The comparison has power: without gathering, rows are sent by unit and group, then by unit.
        spread = statement.replace(" DISTRIBUTE BY u", "")
        assert spread != statement
        assert exchanges(spread) > 3


def test_sums_do_not_leave_their_types() -> None:
    """Products as large as they come, summed in parts and whole, by groups and as one."""
    engine = Spark(running())
    large = 2**13 * 2**17
    for sign in (1, -1):
        summed = engine.dialect.total(f"CAST({sign * large} AS INT)")
        assert engine.run(f"SELECT {summed} FROM RANGE(1000)") == [(sign * large * 1000,)]
    for ansi in ("true", "false"):
        with having(spark__sql__ansi__enabled=ansi):
            most = f"SELECT {2**63 - 1}L AS n FROM RANGE(3) UNION ALL SELECT {-(2**63) + 1}L AS n FROM RANGE(2)"
            total = engine.dialect.held(engine.dialect.ordered("SUM", "n", "integer"))
            assert engine.run(f"SELECT {total} FROM ({most})") == [(2**63 - 1,)]
            assert engine.run(f"SELECT {total} FROM ({most}) WHERE n > 0") == [(None,)]
    engine.close()


def test_types_are_those_of_the_schema(tmp_path: Path) -> None:
    session = running()
    shown = {
        "a": "CAST(7 AS TINYINT)",
        "b": "CAST(1e17 AS DECIMAL(18,0))",
        "c": "CAST('1' AS DECIMAL(19,0))",
        "d": "CAST('NaN' AS FLOAT)",
        "e": "CAST('ab' AS STRING)",
        "f": "TIMESTAMP'2020-01-01 00:30:00+01:00'",
        "g": "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "h": "DATE'1582-10-10'",
        "i": "TRUE",
        "j": "ARRAY(1)",
        "k": "MAP('a', 1)",
        "l": "X'FF'",
        "m": "INTERVAL '1' DAY",
        "n": "CAST(X'61FF62' AS STRING)",
        "o": "'x' COLLATE UTF8_LCASE",
    }
    columns = ", ".join(f"{value} AS `{name}`" for name, value in shown.items())
    kinds = session.sql(f"SELECT {columns}").withColumn("${p}", lit(1))
    for zone in ("Asia/Tokyo", "America/New_York"):
        with having(spark__sql__session__timeZone=zone):
            engine = Spark(session)
            engine.add("kinds", kinds, unit="a")
            found = {column.name: column.type for column in engine.columns("kinds")}
            names = "integer integer decimal(19,0) real text timestamp timestamp date boolean text text"
            assert found == dict(zip("abcdefghino", names.split(), strict=True))
            assert {name for name, _ in engine.omitted("kinds")} == {"j", "k", "l", "m", "${p}"}
            [row] = engine.run(f"SELECT a, b, c, f, g, h, i, n, o FROM {engine.dialect.table('kinds')}")
            instant = datetime.datetime(2019, 12, 31, 23, 30)
            days = (datetime.datetime(1, 1, 1), datetime.date(1582, 10, 10))
            assert row == (7, 10**17, 1.0, instant, *days, True, "a\ufffdb", "x")
            engine.close()


def test_units_that_name_nobody_are_left_out_and_others_are_told_apart() -> None:
    session, engine = running(), Spark(running())
    people = "VALUES (CAST(X'61FF' AS STRING)), (CAST(X'61FE' AS STRING)), ('a'), ('a '), ('A'), (NULL) AS t(who)"
    engine.add("people", session.sql(f"SELECT * FROM {people}"), unit="who")
    counted = f"SELECT COUNT(DISTINCT `discreet unit`), COUNT(*) FROM {engine.dialect.table('people')}"
    assert engine.run(counted) == [(3, 6)]
    with pytest.raises(InvalidArgument, match="of one type in all tables"):
        engine.add("visits", session.sql("SELECT 1 AS who"), unit="who")
    with pytest.raises(InvalidArgument, match="UTF8_BINARY"):
        engine.add("other", session.sql("SELECT 'a' COLLATE UTF8_LCASE AS who"), unit="who")
    engine.close()
    engine = Spark(session)
    numbers = "VALUES (CAST('NaN' AS DOUBLE)), (CAST('Infinity' AS DOUBLE)), (1e0), (-0e0), (0e0) AS t(who)"
    engine.add("numbers", session.sql(f"SELECT * FROM {numbers}"), unit="who")
    assert engine.run(f"SELECT COUNT(DISTINCT `discreet unit`) FROM {engine.dialect.table('numbers')}") == [(2,)]
    engine.close()


def test_a_table_whose_columns_changed_is_noticed(tmp_path: Path) -> None:
    running().sql("CREATE TABLE hospital.changing USING parquet AS SELECT 1 AS patient, 2 AS age")
    with dc.connect(running(), **facts(tmp_path, table="hospital.changing", bounds={}, values={})) as session:
        assert session.price("SELECT COUNT(*) AS n FROM changing", epsilon=1)
        running().sql("ALTER TABLE hospital.changing ADD COLUMN city STRING")
        with pytest.raises(InvalidArgument, match="same columns"):
            session.sql("SELECT COUNT(*) AS n FROM changing", epsilon=1)
        assert session.spent.epsilon == 0


def test_a_table_that_lies_elsewhere_by_now_has_other_books(tmp_path: Path) -> None:
    made = "CREATE TABLE hospital.moving USING parquet LOCATION '{}' AS SELECT 1 AS patient, 2 AS age"
    running().sql(made.format(tmp_path / "here"))
    running().sql("CREATE VIEW hospital.over AS SELECT * FROM hospital.moving")
    declared = {
        name: facts(tmp_path / name, table=f"hospital.{name}", bounds={}, values={}) for name in ("moving", "over")
    }
    sessions = {}
    for name, given in declared.items():
        (tmp_path / name).mkdir()
        sessions[name] = dc.connect(running(), **given)
        running().sql("INSERT INTO hospital.moving VALUES (3, 4)")
        assert sessions[name].price(f"SELECT COUNT(*) AS n FROM {name}", epsilon=1)
    running().sql("DROP TABLE hospital.moving")
    with pytest.raises(InvalidArgument, match="see whether it is there"):
        sessions["moving"].price("SELECT COUNT(*) AS n FROM moving", epsilon=1)
    running().sql(made.format(tmp_path / "there"))
    for name, session in sessions.items():
        with session, pytest.raises(InvalidArgument, match="what it was when the session began"):
            session.sql(f"SELECT COUNT(*) AS n FROM {name}", epsilon=1)


def test_of_two_columns_with_one_name_neither_is_read(tmp_path: Path) -> None:
    source = running().sql("SELECT 1 AS patient, 2 AS age, 3 AS AGE")
    with (
        dc.connect(source, **facts(tmp_path, table="t", bounds={}, values={})) as session,
        pytest.raises(InvalidArgument, match="'age' and 'AGE'"),
    ):
        session.sql("SELECT SUM(CLAMP(age, 0, 9)) AS n FROM t", epsilon=1)
    with pytest.raises(InvalidArgument, match="unit"):
        dc.connect(source, **facts(tmp_path, table="t", unit="age", bounds={}, values={}))


def test_errors_do_not_tell_what_rows_hold(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    running().sql(
        "CREATE VIEW hospital.named AS SELECT 1 AS patient, CAST(s AS INT) AS age FROM VALUES ('Ada') AS t(s)"
    )
    with (
        having(spark__sql__ansi__enabled="true"),
        dc.connect(running(), **facts(tmp_path, table="hospital.named", bounds={"age": (0, 9)}, values={})) as session,
        pytest.raises(dc.AnswerFailed) as failed,
    ):
        session.sql("SELECT SUM(age) AS n FROM named", epsilon=1)
    said = capfd.readouterr()
    assert "Ada" not in said.err + said.out + str(failed.value)
    assert failed.value.__cause__ is None


def test_folders_of_parquet_files_are_read(tmp_path: Path) -> None:
    for city in CITIES:
        place = tmp_path / "visits" / f"city={city}"
        place.mkdir(parents=True)
        who = pa.array(range(200), pa.int64())
        pyarrow.parquet.write_table(pa.table({"patient": who, "age": who}), place / "part.parquet")
    declared = facts(tmp_path, table="visits", bounds={"age": (0, 200)})
    with having(spark__sql__sources__partitionColumnTypeInference__enabled="false"):
        visits = running().read.parquet(str(tmp_path / "visits"))
        session = dc.connect(visits, **declared)
    with session:
        spent = session.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=5).loss
    with dc.connect(tmp_path / "visits" / "city=Rome", **declared | {"values": {}, "table": "rome"}) as session:
        assert session.spent == spent


def test_nothing_but_a_select_is_run(tmp_path: Path) -> None:
    with dc.connect(running(), **facts(tmp_path)) as session:
        for statement in ("DROP TABLE hospital.visits", "INSERT INTO hospital.visits SELECT 1", "", "SHOW TABLES"):
            with pytest.raises(InvalidArgument, match="only reads"):
                session._engine.run(statement)


def test_tables_that_are_named_as_existing_exist(tmp_path: Path) -> None:
    held = running().sql("SELECT 1 AS patient")
    with dc.connect(held, **facts(tmp_path, table="held", values={}, bounds={})):
        for wanted, told in (("hospital.visit", "hospital.visits"), ("elsewhere.visits", "existing: .*hospital.v")):
            with pytest.raises(InvalidArgument, match=told) as caught:
                Spark(running()).add("visits", wanted)
            assert "discreet_" not in str(caught.value)


def test_a_view_that_changed_is_noticed(tmp_path: Path) -> None:
    text = "SELECT COUNT(*) AS n FROM grown"
    with dc.connect(running(), **facts(tmp_path, table="hospital.grown")) as session:
        answer = session.sql(text, epsilon=1)
        running().sql("CREATE OR REPLACE VIEW hospital.adults AS SELECT * FROM hospital.visits WHERE age >= 21")
        try:
            with pytest.raises(InvalidArgument, match="connect again"):
                session.sql(text, epsilon=1)
            with dc.connect(running(), **facts(tmp_path, table="hospital.grown")) as again:
                spent = again.spent
                assert again.sql(text, epsilon=1).certificate != answer.certificate
                assert again.spent.epsilon > spent.epsilon
        finally:
            running().sql("CREATE OR REPLACE VIEW hospital.adults AS SELECT * FROM hospital.visits WHERE age >= 18")
        assert session.sql(text, epsilon=1).rows == answer.rows


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"table": "hospital.visit"}, "hospital.visits"),
        ({"table": "nowhere.visits"}, "hospital.visits"),
        ({"table": "a..c"}, "schema.visits"),
        ({"table": None}, "schema.visits"),
        ({"ledger": None}, "named where the data is on a server"),
        ({"unit": "patint"}, "patient"),
        ({"bounds": {"csot": (0, 1)}}, "cost"),
        ({"types": {"age": "text"}}, "as it is on Spark"),
        ({"types": {"agee": "integer"}}, "age"),
        ({"table": "hospital.towns"}, "unit"),
        ({"private": {"labs": {"pid": [1]}}}, "same session"),
        ({"public": {"towns": "postgresql://elsewhere/db"}}, "where the first table is"),
        ({"public": {"towns": "sc://elsewhere"}}, "same session"),
        ({"private": {"labs": dc.Private("hospital.labs")}}, "pid"),
        ({"private": {"more": dc.Private("hospital.towns", unit="city")}}, "of one type in all tables"),
        ({"public": {"again": "hospital.visits"}}, "which is private"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as caught:
        dc.connect(running(), **facts(tmp_path) | changed)
    assert said in str(caught.value)


def test_frames_of_spark_are_not_brought_to_other_engines(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="as the source"):
        dc.connect({"patient": [1]}, **facts(tmp_path, table="t", private={"labs": running().table("hospital.labs")}))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.legacy.ctePrecedencePolicy", "LEGACY"),
        ("spark.sql.parser.quotedRegexColumnNames", "true"),
        ("spark.sql.path.enabled", "true"),
        ("spark.sql.ansi.enforceReservedKeywords", "true"),
        ("spark.sql.parser.escapedStringLiterals", "true"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.optimizer.windowGroupLimitThreshold", "0"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION"),
        ("spark.discreet.timeout", "10 minutes"),
    ],
)
def test_settings_that_statements_could_not_bear_are_refused(setting: str, value: str, tmp_path: Path) -> None:
    with having(**{setting.replace(".", "__"): value}), pytest.raises(InvalidArgument, match=re.escape(setting)):
        dc.connect(running(), **facts(tmp_path))


def test_settings_that_change_what_statements_mean_are_refused(tmp_path: Path) -> None:
    with dc.connect(running(), **facts(tmp_path)) as session:
        for name in ("groupByOrdinal", "orderByOrdinal"):
            with having(**{f"spark__sql__{name}": "false"}), pytest.raises(InvalidArgument, match=name):
                session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        assert session.spent.epsilon == 0
        with having(spark__sql__groupByOrdinal="false"), pytest.raises(EngineUnavailable, match="groupByOrdinal"):
            session._engine.run("SELECT 1")
        assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).rows


def test_functions_of_the_session_do_not_stand_in_for_those_of_spark(tmp_path: Path) -> None:
    with dc.connect(running(), **facts(tmp_path)) as session:
        running().udf.register("floor", lambda value: 0)
        try:
            with pytest.raises(InvalidArgument, match="function='floor' must be that of Spark; DROP"):
                session.sql("SELECT SUM(cost) AS s FROM visits", epsilon=1)
            assert session.spent.epsilon == 0
        finally:
            running().sql("DROP TEMPORARY FUNCTION floor")
        assert session.sql("SELECT SUM(cost) AS s FROM visits", epsilon=1).rows


def test_old_versions_missing_drivers_and_missing_java_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "OLDEST", 99)
    with pytest.raises(InvalidArgument, match="version 99 or later"):
        dc.connect(running(), **facts(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr(spark_sessions, "find_spec", lambda name: None)
    with pytest.raises(InvalidArgument, match=r"discreet\[spark\]"):
        dc.connect("spark://127.0.0.1:1", **facts(tmp_path))
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InvalidArgument, match="openjdk"):
        dc.connect("spark://127.0.0.1:1", **facts(tmp_path))
    with pytest.raises(InvalidArgument, match=r"source='127.0.0.1:1' must be .* a Spark that lets us in") as caught:
        dc.connect("sc://127.0.0.1:1/;token=hidden", **facts(tmp_path))
    assert "hidden" not in str(caught.value)


def test_what_the_engine_cannot_do_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    with dc.connect(running(), **facts(tmp_path)) as session:
        with pytest.raises(dc.Unsupported, match="Spark"):
            session.sql("SELECT CAST(cost / 2 AS VARCHAR) AS c, COUNT(*) AS n FROM visits GROUP BY c", epsilon=1)
        assert session.spent.epsilon == 0

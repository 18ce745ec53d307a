"""The engine reads what it was given and nothing else, writes nothing, and can be watched and stopped."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.engines.sources import SOURCES

import discreet as dc
from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.engine import DuckDB

SLOW = 'SELECT COUNT(*) FROM (SELECT a.x % 1000003 AS k, SUM(a.x + b.x) FROM "t" a, "t" b GROUP BY k)'


@pytest.fixture
def slow() -> DuckDB:
    engine = DuckDB(threads=1)
    engine.add("t", {"x": np.arange(30_000)})
    engine.seal()
    return engine


@pytest.mark.parametrize("kind", ["csv", "parquet", "parquet folder", "hive", "duckdb", "dataset"])
def test_nothing_is_written_and_nothing_else_is_read(kind: str, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    source = SOURCES[kind](inside)
    other = SOURCES["parquet"](outside)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    engine = DuckDB()
    engine.add("visits", source)
    engine.seal()
    assert engine.run('SELECT COUNT(*) FROM "visits"') == [(5,)]
    raw = engine._connection
    assert raw is not None
    file = next(path for path in inside.rglob("*") if path.is_file())
    for statement in [
        f"COPY (SELECT 1) TO '{outside / 'stolen.csv'}'",
        f"COPY (SELECT 1) TO '{file}'",
        f"ATTACH '{outside / 'new.duckdb'}'",
        f"FROM '{other}'",
        "FROM read_text('/etc/hostname')",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        f"SET allowed_directories = ['{outside}']",
        "INSTALL httpfs",
        'DELETE FROM "database 0".ward.rows',
        'INSERT INTO "database 0".ward.rows VALUES (1, NULL, NULL, NULL)',
    ]:
        with pytest.raises(duckdb.Error):
            raw.execute(statement)
    engine.close()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    "statement",
    ['DROP TABLE "t"', 'DELETE FROM "t"', "SELECT 1; SELECT 2", "CREATE TABLE u AS SELECT 1", "PRAGMA version", ""],
)
def test_only_a_select_runs(slow: DuckDB, statement: str) -> None:
    with pytest.raises(InvalidArgument, match="SELECT"):
        slow.run(statement)
    assert slow.run('SELECT COUNT(*) FROM "t"') == [(30_000,)]


def test_python_variables_are_no_tables(slow: DuckDB) -> None:
    secret = {"x": np.array([1])}
    with pytest.raises(duckdb.Error):
        slow.run("SELECT * FROM secret")
    assert secret


def test_frames_are_as_they_were_when_the_session_began() -> None:
    values = np.arange(10)
    engine = DuckDB()
    engine.add("t", {"x": values})
    values[:] = 0
    assert engine.run('SELECT SUM(x) FROM "t"') == [(45,)]


def test_large_frames_and_files_are_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.engines.duckdb.engine.COPIED", 0)
    engine = DuckDB()
    for kind in ("csv", "arrow", "pandas nullable", "tsv.gz"):
        engine.add(kind, SOURCES[kind](tmp_path), types={"who": "integer"}, unit="who")
    engine.add("public", SOURCES["csv"](tmp_path), private=False)
    engine.seal()
    views = engine.run("SELECT view_name FROM duckdb_views() WHERE NOT internal")
    assert {"csv", "arrow", "pandas nullable", "tsv.gz", "public"} <= {name for (name,) in views}
    for kind in ("csv", "arrow", "pandas nullable", "tsv.gz"):
        assert engine.run(f'SELECT SUM(who) FROM "{kind}"') == [(7,)]
    assert engine.unique("public") == ()


def test_what_spills_goes_to_a_folder_of_its_own_and_is_gone_afterwards() -> None:
    engine = DuckDB(threads=1)
    folder = engine._folder
    raw = engine._connection
    assert raw is not None
    raw.execute("SET memory_limit = '60MB'")
    engine.add("t", {"x": np.arange(3_000_000)})
    engine.seal()
    assert oct(os.stat(folder).st_mode)[-3:] == "700"
    rows = engine.run('SELECT COUNT(*) FROM (SELECT x, COUNT(*) AS n FROM "t" GROUP BY x) WHERE n = 1')
    assert rows == [(3_000_000,)]
    engine.close()
    assert not os.path.exists(folder)


def test_a_running_statement_can_be_seen_and_cancelled(slow: DuckDB) -> None:
    assert not slow.running()
    failures: list[BaseException] = []

    def running() -> None:
        try:
            slow.run(SLOW)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=running)
    thread.start()
    while thread.is_alive() and not slow.running():
        time.sleep(0.01)
    slow.cancel()
    thread.join()
    assert [(type(error), error.__context__) for error in failures] == [(KeyboardInterrupt, None)]
    assert slow.run("SELECT 1") == [(1,)]


def test_a_signal_stops_a_statement_too(slow: DuckDB) -> None:
    # Shells start what runs behind them with this signal ignored.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted() -> None:
        deadline = time.monotonic() + 60
        while not slow.running() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupted)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            slow.run(SLOW)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, former)
    assert caught.value.__context__ is None
    assert slow.run("SELECT 1") == [(1,)]


FORKED = """
import gc, os, sys
import numpy as np
from pathlib import Path
from discreet import InvalidArgument
from discreet.engines.duckdb.engine import DuckDB
gc.disable()
kept, garbage = DuckDB(threads=2), DuckDB(threads=2)
for engine in (kept, garbage):
    engine.add("t", {"v": np.arange(1_000_000)})
    engine.seal()
    engine.run('SELECT SUM("v") FROM "t"')
folder = Path(kept._folder)
garbage.itself = garbage
del engine, garbage
child = os.fork()
if child == 0:
    gc.collect()
    try:
        kept.run("SELECT 1")
    except InvalidArgument as error:
        print(error)
    kept.close()
    del kept
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert folder.is_dir()
print(kept.run('SELECT SUM("v") FROM "t"'))
kept.close()
assert not folder.exists()
"""


def test_a_child_of_a_fork_leaves_the_engine_to_its_parent() -> None:
    ran = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "opened before a fork" in ran.stdout
    assert "connect again" in ran.stdout
    assert ran.stdout.endswith("[(499999500000,)]\n")


def test_a_cancelled_question_can_be_asked_and_paid_for_again() -> None:
    people = np.arange(2000)
    with dc.connect({"who": people}, unit=dc.User("who"), budget=dc.PureDP(2), table="t") as session:
        engine = session._engine
        plain = engine.run

        def cancelled(statement: str) -> list[tuple[object, ...]]:
            threading.Timer(0.2, engine.cancel).start()
            return plain("SELECT COUNT(*) FROM t a, t b, t c WHERE a.who + b.who + c.who = 7")

        engine.run = cancelled
        with pytest.raises(KeyboardInterrupt):
            session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        engine.run = plain
        assert session.spent == dc.PureDP(1)
        assert abs(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).rows[0][0] - 2000) < 100
        assert session.spent == dc.PureDP(2)


def test_a_failure_that_nobody_asked_for_stays_one(slow: DuckDB) -> None:
    slow.cancel()
    with pytest.raises(duckdb.Error):
        slow.run("SELECT CAST('x' AS INTEGER)")


def test_refusals_do_not_carry_the_errors_of_the_engine_along(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 secret PAR1")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE VIEW t AS FROM '{SOURCES['parquet'](tmp_path)}'")
    failures = []
    engine = DuckDB()
    with pytest.raises(InvalidArgument) as caught:
        engine.add("t", tmp_path / "t.parquet")
    failures.append(caught.value)
    engine.add("t", tmp_path / "t.duckdb")
    with pytest.raises(InvalidArgument) as caught:
        engine.seal()
    failures.append(caught.value)
    assert [(error.__context__, error.__cause__) for error in failures] == [(None, None)] * 2


def test_a_closed_engine_says_so_and_closes_twice(slow: DuckDB) -> None:
    slow.close()
    slow.close()
    slow.cancel()
    assert not slow.running()
    with pytest.raises(InvalidArgument, match="connect again"):
        slow.run("SELECT 1")


def test_unknown_tables_are_named() -> None:
    engine = DuckDB()
    engine.add("visits", {"x": np.arange(3)})
    for ask in (engine.columns, engine.identity, engine.omitted, engine.unique):
        with pytest.raises(InvalidArgument, match="visits"):
            ask("visit")
    with pytest.raises(InvalidArgument, match="distinct"):
        engine.add("VISITS", {"x": np.arange(3)})


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A database with collations, macros, and a view that uses one."""
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE visits (who VARCHAR COLLATE NOCASE, city VARCHAR COLLATE NOACCENT, cost DOUBLE)"
        )
        connection.execute("INSERT INTO visits VALUES ('ann', 'Tromso', 1), ('Ann', 'Tromsó', 1), ('bob', 'Tromso', 1)")
        for macro in ("floor(x) AS x * 1000", "greatest(a, b) AS 5", "sqrt(x) AS 1e-3", "coalesce2(a, b) AS b"):
            connection.execute(f"CREATE MACRO {macro}")
        connection.execute("CREATE VIEW dear AS SELECT who, UPPER(who) AS town, floor(cost) AS cost FROM visits")
    return path


def test_collations_of_a_database_make_no_two_people_one(theirs: Path) -> None:
    with closing(DuckDB()) as engine:
        engine.add("visits", theirs, unit="who")
        engine.add("dear", theirs, unit="who")
        engine.seal()
        for table in ("visits", "dear"):
            assert engine.run(f'SELECT COUNT(DISTINCT who) FROM "{table}"') == [(3,)]
            assert engine.run(f'SELECT COUNT(*) FROM (SELECT 1 FROM "{table}" GROUP BY who)') == [(3,)]
            assert engine.run(f"SELECT COUNT(*) FROM \"{table}\" WHERE who IN ('ANN', 'ann')") == [(1,)]
        assert engine.run('SELECT COUNT(*) FROM "visits" AS a JOIN "dear" AS b ON a.who = b.who') == [(3,)]
        assert len(engine.run('SELECT city, COUNT(*) FROM "visits" GROUP BY city')) == 2
        assert engine.run("SELECT 'a' = 'A', CURRENT_SETTING('default_collation')") == [(False, "")]


def test_macros_of_a_database_say_what_its_views_hold_and_nothing_else(theirs: Path) -> None:
    with closing(DuckDB()) as engine:
        engine.add("visits", theirs, unit="who")
        engine.add("dear", theirs, unit="who")
        engine.seal()
        said = "SUM(FLOOR(cost)), MAX(GREATEST(cost, 0)), MAX(SQRT(cost * 0 + 4))"
        assert engine.run(f'SELECT {said} FROM "visits"') == [(3.0, 1.0, 2.0)]
        assert engine.run(f'SELECT {said} FROM "dear"') == [(3000.0, 1000.0, 2.0)]

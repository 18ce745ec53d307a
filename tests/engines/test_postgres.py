"""Sessions on a PostgreSQL server: they only read, know tables by the catalogs, keep one budget for one table by
whatever road it is reached, show no password, and say what is wrong before anything is charged."""

import datetime
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.engines.postgres_tables import create
from tests.ledger.servers import PASSWORD, Server, running

import discreet as dc
from discreet.charging.certificate import verify
from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.engines.postgres import addresses as postgres_addresses
from discreet.engines.postgres import engine as postgres
from discreet.engines.postgres.engine import Postgres
from discreet.ledger import Ledger
from discreet.session.sql import SQL

SLOW = "SELECT COUNT(*) FROM generate_series(1, 100000000) AS a"
VISITS = {"patient": "int4", "age": "int2", "cost": "numeric(10,2)", "city": "varchar(20)", "day": "date"}
CITIES = ["Oslo", "Rome", "Lima"]


def rows(people: int = 300) -> list[dict[str, Any]]:
    day = datetime.date(2020, 1, 1)
    return [
        {
            "patient": place % people if place % 50 else None,
            "age": place % 90,
            "cost": place % 100,
            "city": CITIES[place % 3],
            "day": day + datetime.timedelta(days=place % 700),
        }
        for place in range(3 * people)
    ]


@pytest.fixture(scope="module", autouse=True)
def tables() -> Iterator[Server]:
    server = running()
    create("hospital.visits", VISITS, rows())
    create("hospital.labs", {"pid": "int8", "result": "float8"}, [{"pid": i, "result": i / 100} for i in range(300)])
    create("hospital.towns", {"city": "text", "region": "text"}, [{"city": c, "region": c[:1]} for c in CITIES])
    server.execute(
        "CREATE OR REPLACE VIEW hospital.adults AS SELECT * FROM hospital.visits WHERE age >= 18",
        "DROP ROLE IF EXISTS guest",
        "CREATE ROLE guest LOGIN",
        "DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        f"ALTER ROLE clerk PASSWORD '{PASSWORD}'",
        "GRANT USAGE ON SCHEMA hospital TO guest, clerk",
        "GRANT SELECT ON hospital.visits TO clerk",
        "GRANT SELECT (city) ON hospital.towns TO clerk",
    )
    yield server
    server.execute("DROP SCHEMA hospital CASCADE", "DROP OWNED BY guest, clerk", "DROP ROLE guest")


def facts(folder: Path, **more: Any) -> dict[str, Any]:
    declared: dict[str, Any] = {"table": "hospital.visits", "unit": "patient", "budget": dc.ApproxDP(20, "1e-6")}
    declared |= {"bounds": {"cost": (0, 100), "age": (0, 120)}, "values": {"city": CITIES}, "ledger": folder / "books"}
    return declared | more


def test_a_session_from_price_to_certificate(tmp_path: Path) -> None:
    text = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city"
    with dc.connect(running().url(), **facts(tmp_path)) as session:
        quote = session.price(text, epsilon=8)
        assert '"hospital"."visits"' in quote.statement
        assert session.spent.epsilon == 0
        answer = session.sql(text, epsilon=8)
        assert [row[0] for row in answer.rows] == CITIES
        assert all(abs(row[1] - 294) < 60 for row in answer.rows)
        assert session.sql(text, epsilon=8).rows == answer.rows
        assert session.spent == quote.loss
        assert verify(answer.certificate, answer=answer).rows == answer.certificate["rows"]
        assert "127.0.0.1" not in str(answer.certificate)
    with dc.connect(running().url(), **facts(tmp_path)) as again:
        assert again.sql(text, epsilon=8).rows == answer.rows


def test_further_tables_of_the_same_server(tmp_path: Path) -> None:
    private = {"labs": dc.Private("hospital.labs", unit="pid", bounds={"result": (0, 3)}, max_rows=1)}
    with dc.connect(running().url(), **facts(tmp_path, private=private, public={"towns": "hospital.towns"})) as session:
        assert session._catalog.table("towns").unique == ("city", "region")
        by_region = session.sql(
            "SELECT region, COUNT(*) AS n FROM visits JOIN towns USING (city) GROUP BY region", epsilon=5
        )
        assert {row[0] for row in by_region.rows} == {"O", "R", "L"}
        mean = session.sql("SELECT AVG(result) AS r FROM visits JOIN labs ON patient = pid", epsilon=5).rows[0][0]
        assert 1 < mean < 2


def test_types_are_those_of_the_catalogs(tmp_path: Path) -> None:
    kinds = {"a": "int2", "b": "numeric(18,0)", "c": "numeric(19,0)", "d": "numeric", "e": "float4", "f": "char(5)"}
    kinds |= {"g": "uuid", "h": "timestamptz", "i": "boolean", "j": "json", "k": "int4[]", "l": "bytea", "m": "money"}
    running().execute(
        "DROP DOMAIN IF EXISTS years CASCADE", "CREATE DOMAIN years AS int4",
        "DROP TYPE IF EXISTS mood CASCADE", "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    )  # fmt: skip
    kinds |= {"n": "years", "o": "mood", "p": "timestamp", "q": "interval"}
    odd: list[Any] = [7, "NaN", "1e18", "1e400", "NaN", "ab", "00000000-0000-0000-0000-00000000000A"]
    odd += ["2020-01-01 00:30:00+01", True, "{}", "{1}", b"x", "1", 5, "sad", "infinity", "1 day"]
    plain: list[Any] = [1, 5, 6, "1.5", 2.5, "cd", None, "infinity", False, "{}", "{1}", b"x", "1"]
    plain += [6, "glad", "0044-03-15 BC", None]
    create("hospital.kinds", kinds, [dict(zip(kinds, row, strict=True)) for row in (odd, plain)])
    engine = Postgres(running().url())
    engine.add("kinds", "hospital.kinds", unit="a")
    found = {column.name: column.type for column in engine.columns("kinds")}
    names = "integer integer decimal(19,0) real real text text timestamp boolean integer text timestamp"
    assert found == dict(zip("abcdefghinop", names.split(), strict=True))
    assert dict(engine.omitted("kinds")) == {"j": "json", "k": "integer[]", "l": "bytea", "m": "money", "q": "interval"}
    [first] = engine.run(f"SELECT a, b, c, d, f, g, h, i FROM {engine.dialect.table('kinds')} ORDER BY a DESC LIMIT 1")
    moment = datetime.datetime(2019, 12, 31, 23, 30)
    assert first == (7, None, 1e18, None, "ab", "00000000-0000-0000-0000-00000000000a", moment, True)
    with pytest.raises(InvalidArgument, match=r"that can be read.*integer\[\]"):
        engine.add("again", "hospital.kinds", unit="k")
    engine.close()
    with dc.connect(
        running().url(), **facts(tmp_path, table="hospital.kinds", unit="a", bounds={"d": (0, 9)}, values={})
    ) as s:
        for text in ("SUM(d)", "COUNT(b)", "COUNT(h)", "COUNT(p)", "COUNT(CAST(d AS BIGINT))"):
            assert s._engine.run(SQL(f"SELECT {text} AS m FROM kinds", 1).bind(s._context).plan().decided.statement)


def test_units_are_told_apart_exactly() -> None:
    people = ["9007199254740993", "9007199254740992", "NaN", "1.0", "1.00", None]
    create("hospital.people", {"who": "numeric"}, [{"who": who} for who in people])
    engine = Postgres(running().url())
    engine.add("people", "hospital.people", unit="who")
    counted = f'SELECT COUNT(DISTINCT "discreet unit") FROM {engine.dialect.table("people")}'
    assert engine.run(counted) == [(3,)]
    with pytest.raises(InvalidArgument, match="of one type in all tables"):
        engine.add("visits", "hospital.towns", unit="city")
    engine.close()


def test_nothing_can_be_written(tmp_path: Path) -> None:
    with dc.connect(running().url(), **facts(tmp_path)) as session:
        engine: Any = session._engine
        for statement in ("DELETE FROM hospital.visits", "SELECT 1; SELECT 2", "TRUNCATE hospital.visits", ""):
            with pytest.raises((InvalidArgument, psycopg.Error)):
                engine.run(statement)
        for statement in (
            "WITH gone AS (DELETE FROM hospital.visits RETURNING 1) SELECT * FROM gone",
            "SELECT nextval('hospital.numbers')",
            "SELECT 1 INTO hospital.copied",
        ):
            with pytest.raises(psycopg.Error):
                engine.run(statement)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            engine._connection.execute("CREATE TABLE hospital.extra (x int)")
        assert engine.run("SELECT COUNT(*) FROM hospital.visits") == [(900,)]


def test_a_statement_can_be_cancelled_and_asked_again(tmp_path: Path) -> None:
    with dc.connect(running().url(), **facts(tmp_path)) as session:
        engine: Any = session._engine
        honest = engine.run

        def slow(statement: str) -> Any:
            threading.Timer(0.2, session.cancel).start()
            return honest(SLOW)

        engine.run = slow
        with pytest.raises(KeyboardInterrupt):
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        engine.run = honest
        assert not engine.running()
        before = session.spent
        assert abs(session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).rows[0][0] - 882) < 200
        assert session.spent.epsilon > before.epsilon


def test_a_time_limit_of_the_server_is_a_failure(tmp_path: Path) -> None:
    url = running().url() + "?options=-c%20statement_timeout%3D200"
    with dc.connect(url, **facts(tmp_path)) as session:
        engine: Any = session._engine
        honest = engine.run
        engine.run = lambda statement: honest(SLOW)
        with pytest.raises(dc.AnswerFailed):
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)


def test_a_server_that_is_lost_is_found_again(tmp_path: Path) -> None:
    server = running()
    with dc.connect(server.url(), **facts(tmp_path)) as session:
        engine: Any = session._engine
        pid = engine._connection.info.backend_pid
        honest = engine.run

        def cut(statement: str) -> Any:
            kill = f"SELECT pg_terminate_backend({pid})"
            threading.Timer(0.2, server.execute, [kill]).start()
            return honest(SLOW)

        engine.run = cut
        with pytest.raises(EngineUnavailable, match="charged again"):
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        engine.run = honest
        spent = session.spent
        assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).rows
        assert session.spent.epsilon > spent.epsilon
        # It waits until the connection is gone, for a minute at most.
        server.execute(f"SELECT pg_terminate_backend({engine._connection.info.backend_pid}, 60000)")
        assert session.sql("SELECT AVG(age) AS a FROM visits", epsilon=1).rows


def test_one_table_has_one_budget_by_whatever_road(tmp_path: Path) -> None:
    server = running()
    with dc.connect(server.url(), **facts(tmp_path)) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        spent, sources = session.spent, session._engine.sources("visits")  # type: Any
    other = f"postgresql://postgres@localhost:{server.port}/postgres?application_name=other"
    for url, table in (
        (other, "hospital.visits"),
        (server.url(), "hospital.adults"),
        (server.url(), "Hospital.VISITS"),
    ):
        with dc.connect(url, **facts(tmp_path, table=table)) as session:
            assert session.spent == spent
            assert session.account == ("visits",)
    server.execute("ALTER TABLE hospital.visits RENAME TO renamed")
    try:
        with dc.connect(server.url(), **facts(tmp_path, table="hospital.renamed")) as session:
            assert session.spent == spent
    finally:
        server.execute("ALTER TABLE hospital.renamed RENAME TO visits")
    with pytest.raises(InvalidArgument, match="another"):
        dc.connect(server.url(), **facts(tmp_path, dataset="another"))
    assert all("postgres@" not in source and "password" not in source for source in sources)


def test_a_view_that_changed_is_noticed(tmp_path: Path) -> None:
    server = running()
    text = "SELECT COUNT(*) AS n FROM adults"
    with dc.connect(server.url(), **facts(tmp_path, table="hospital.adults")) as session:
        answer = session.sql(text, epsilon=1)
        server.execute("CREATE OR REPLACE VIEW hospital.adults AS SELECT * FROM hospital.visits WHERE age >= 21")
        try:
            with pytest.raises(InvalidArgument, match="connect again"):
                session.sql(text, epsilon=1)
            with dc.connect(server.url(), **facts(tmp_path, table="hospital.adults")) as again:
                spent = again.spent
                assert again.sql(text, epsilon=1).certificate != answer.certificate
                assert again.spent.epsilon > spent.epsilon
        finally:
            server.execute("CREATE OR REPLACE VIEW hospital.adults AS SELECT * FROM hospital.visits WHERE age >= 18")
        assert session.sql(text, epsilon=1).rows == answer.rows


def test_partitioned_tables_and_their_parts_are_one_source(tmp_path: Path) -> None:
    running().execute(
        "DROP TABLE IF EXISTS hospital.parted",
        "CREATE TABLE hospital.parted (who int8, n int4) PARTITION BY RANGE (who)",
        "CREATE TABLE hospital.parted_a PARTITION OF hospital.parted FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE hospital.parted_b PARTITION OF hospital.parted FOR VALUES FROM (100) TO (1000)",
        "INSERT INTO hospital.parted SELECT i, i % 7 FROM generate_series(0, 299) AS i",
    )
    declared = facts(tmp_path, table="hospital.parted", unit="who", bounds={"n": (0, 6)}, values={}, max_rows=1)
    with dc.connect(running().url(), **declared) as session:
        assert abs(session.sql("SELECT COUNT(*) AS n FROM parted", epsilon=5).rows[0][0] - 300) < 30
        spent = session.spent
    with dc.connect(running().url(), **declared | {"table": "hospital.parted_a"}) as session:
        assert session.spent == spent


def secret_url(server: Server, password: str) -> str:
    from urllib.parse import quote

    return f"postgresql://clerk:{quote(password, safe='')}@127.0.0.1:{server.port}/postgres"


def test_passwords_are_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = running()
    with dc.connect(secret_url(server, PASSWORD), **facts(tmp_path)) as session:
        answer = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        shown = f"{session!r} {session._engine!r} {answer} {answer.certificate} {session._repr_html_()}"
    with Ledger.at(tmp_path / "books") as books:
        shown += " ".join(str(entry) for entry in books.entries())
    shown += "".join(path.read_bytes().decode("latin1") for path in tmp_path.iterdir() if path.is_file())
    for wrong in (secret_url(server, "wr0ng-one"), secret_url(server, "wr0ng-one") + "?connect_timeout=x"):
        with pytest.raises(InvalidArgument) as caught:
            dc.connect(wrong, **facts(tmp_path))
        assert caught.value.__context__ is None
        shown += str(caught.value)
    assert PASSWORD not in shown
    assert "wr0ng" not in shown
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with dc.connect(f"postgresql://clerk@127.0.0.1:{server.port}/postgres", **facts(tmp_path)) as session:
        assert session.spent.epsilon > 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"table": "hospital.visit"}, "hospital.visits"),
        ({"table": "nowhere.visits"}, "the name of one table"),
        ({"table": "a.b.c"}, "schema.visits"),
        ({"table": None}, "schema.visits"),
        ({"ledger": None}, "named where the data is on a server"),
        ({"unit": "patint"}, "patient"),
        ({"bounds": {"csot": (0, 1)}}, "cost"),
        ({"types": {"age": "text"}}, "as it is on the server"),
        ({"types": {"agee": "integer"}}, "age"),
        ({"table": "hospital.towns"}, "unit"),
        ({"private": {"labs": {"pid": [1]}}}, "same server"),
        ({"public": {"towns": "postgresql://elsewhere/db"}}, "same server"),
        ({"private": {"labs": dc.Private("hospital.labs")}}, "pid"),
        ({"private": {"more": dc.Private("hospital.towns", unit="city")}}, "of one type in all tables"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as caught:
        dc.connect(running().url(), **facts(tmp_path) | changed)
    assert said in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://postgres@127.0.0.1:1/postgres", "see whether the server runs"),
        ("postgresql://postgres@no-such-host.invalid/postgres", "host"),
        ("postgresql://postgres@127.0.0.1:{port}/nothing", "does not exist"),
        ("postgresql://nobody@127.0.0.1:{port}/postgres", "does not exist"),
        ("postgresql://127.0.0.1:{port}:x/postgres", "write postgresql://"),
        ("postgresql://clerk@127.0.0.1:{port}/postgres", "PGPASSWORD"),
    ],
)
def test_wrong_addresses_are_said(url: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as caught:
        dc.connect(url.format(port=running().port), **facts(tmp_path))
    assert said in str(caught.value)
    assert caught.value.__context__ is None


def test_permission_is_asked_for_before_anything_is_charged(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="GRANT SELECT"):
        dc.connect(running().url("guest"), **facts(tmp_path))
    engine = Postgres(secret_url(running(), PASSWORD))
    engine.add("towns", "hospital.towns")
    assert engine.omitted("towns") == (("region", "permission denied"),)
    engine.close()


def test_rows_that_a_policy_hides_are_not_left_out_in_silence(tmp_path: Path) -> None:
    server = running()
    server.execute("ALTER TABLE hospital.visits ENABLE ROW LEVEL SECURITY")
    try:
        with pytest.raises(InvalidArgument, match="ROW LEVEL SECURITY"):
            dc.connect(secret_url(server, PASSWORD), **facts(tmp_path))
    finally:
        server.execute("ALTER TABLE hospital.visits DISABLE ROW LEVEL SECURITY")


def test_old_servers_and_other_encodings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "OLDEST", 99)
    with pytest.raises(InvalidArgument, match="version 99 or later"):
        dc.connect(running().url(), **facts(tmp_path))
    monkeypatch.undo()
    running().execute(
        "DROP DATABASE IF EXISTS western",
        "CREATE DATABASE western ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    with pytest.raises(InvalidArgument, match="UTF8"):
        dc.connect(running().url(database="western"), **facts(tmp_path))


def test_a_missing_driver_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_addresses, "find_spec", lambda name: None)
    with pytest.raises(InvalidArgument, match=r"discreet\[postgres\]"):
        dc.connect(running().url(), **facts(tmp_path))


def test_what_the_engine_cannot_do_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    with dc.connect(running().url(), **facts(tmp_path)) as session:
        with pytest.raises(dc.Unsupported, match="PostgreSQL"):
            session.sql("SELECT SUM(CLAMP(CAST(cost AS DOUBLE) % 2.5e0, 0, 2)) AS m FROM visits", epsilon=1)
        assert session.spent.epsilon == 0


def test_a_child_of_a_fork_and_a_closed_engine_say_so() -> None:
    engine = Postgres(running().url())
    child = os.fork()
    if child == 0:
        try:
            engine.run("SELECT 1")
        except InvalidArgument as error:
            os._exit(7 if "opened before a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert engine.run("SELECT 1") == [(1,)]
    engine.close()
    engine.close()
    engine.cancel()
    with pytest.raises(InvalidArgument, match="connect again"):
        engine.run("SELECT 1")


def test_names_longer_than_the_server_keeps_stay_apart(tmp_path: Path) -> None:
    long = "n" * 70
    inner = f"SELECT patient, age AS {long}a, cost AS {long}b FROM visits"
    text = f"SELECT AVG({long}a) AS a, AVG({long}b) AS b FROM ({inner}) AS v"
    with dc.connect(running().url(), **facts(tmp_path)) as session:
        first, second = session.sql(text, epsilon=10).rows[0]
        assert abs(first - 44.5) < 5
        assert abs(second - 49.5) < 5


def test_nobody_else_changes_what_statements_mean(tmp_path: Path) -> None:
    """A function of the same name in the role's path does not stand in for that of the system."""
    server = running()
    server.execute(
        "CREATE OR REPLACE FUNCTION public.sqrt(int8) RETURNS float8 LANGUAGE sql AS 'SELECT float8 ''0'''",
        "ALTER ROLE clerk SET search_path = public, pg_catalog",
    )
    try:
        with dc.connect(secret_url(server, PASSWORD), **facts(tmp_path)) as session:
            assert session._engine.run("SELECT sqrt(16::int8)") == [(4.0,)]
    finally:
        server.execute("DROP FUNCTION public.sqrt(int8)", "ALTER ROLE clerk RESET search_path")


def test_tables_of_the_path_need_no_schema(tmp_path: Path) -> None:
    server = running()
    create("public.visits_here", VISITS, rows(20))
    with dc.connect(
        server.url(), **facts(tmp_path, table="visits_here", public={"towns": "hospital.towns"})
    ) as session:
        assert session.price("SELECT COUNT(*) FROM visits_here", epsilon=1).fits
    with closing(psycopg.connect(server.url(), autocommit=True)) as connection:
        connection.execute("DROP TABLE public.visits_here")

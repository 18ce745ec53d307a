"""What is read from the catalogs of a server: nobody else's functions take part, one budget follows the rows by
whatever road they are reached, and what changed under a session is refused whatever the rows hold."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ibis
import psycopg
import pytest
from tests.ledger.servers import PASSWORD, Server, running

import discreet as dc
from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.engines.postgres.addresses import address_of
from discreet.engines.postgres.engine import Postgres


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[Server]:
    server = running()
    server.execute(
        "CREATE SCHEMA ward",
        "CREATE TABLE ward.stays (who int8, x float8)",
        "INSERT INTO ward.stays SELECT i, 1 FROM generate_series(1, 100) AS i",
        "CREATE ROLE mallory LOGIN",
        "CREATE ROLE steward LOGIN",
        "GRANT USAGE ON SCHEMA ward TO steward",
        "GRANT SELECT ON ward.stays TO steward",
    )
    yield server
    server.execute("DROP SCHEMA ward CASCADE", "DROP OWNED BY mallory, steward", "DROP ROLE mallory, steward")


def value(statement: str) -> Any:
    with closing(psycopg.connect(running().url(), autocommit=True)) as connection:
        return connection.execute(statement.encode()).fetchall()[0][0]


def facts(folder: Path, table: str, **more: Any) -> dict[str, Any]:
    declared = {"table": table, "unit": "who", "budget": dc.ApproxDP(20, "1e-6"), "ledger": folder / "books"}
    return declared | more


WRITE = """
  PERFORM pg_catalog.set_config('default_transaction_read_only', 'off', false);
  BEGIN INSERT INTO trap.loot VALUES (current_user); EXCEPTION WHEN OTHERS THEN NULL; END;
"""
FUNCTIONS = {
    "lower(name)": ("text", "pg_catalog.lower($1::text)"),
    "lower(text)": ("text", "pg_catalog.lower($1)"),
    "pg_table_is_visible(oid)": ("bool", "pg_catalog.pg_table_is_visible($1)"),
    "has_schema_privilege(oid, text)": ("bool", "true"),
    "has_any_column_privilege(oid, text)": ("bool", "true"),
    "format_type(oid, int4)": ("text", "'text'"),
    "pg_get_viewdef(oid)": ("text", "'SELECT 1'"),
    "current_database()": ("name", "'other'"),
    "current_setting(text)": ("text", "'UTF8'"),
    "set_config(text, text, bool)": ("text", "''"),
    "same(name, name)": ("bool", "$1::text OPERATOR(pg_catalog.=) $2::text"),
    "same(name, text)": ("bool", "$1::text OPERATOR(pg_catalog.=) $2"),
    "same(text, text)": ("bool", "$1 OPERATOR(pg_catalog.=) $2"),
    "same(oid, oid)": ("bool", "$1 OPERATOR(pg_catalog.=) $2"),
    "joined(name, text)": ("text", "'x'"),
    "joined(text, text)": ("text", "'x'"),
}
OPERATORS = [("=", "same", pair) for pair in ("name name", "name text", "text text", "oid oid")]
OPERATORS += [("||", "joined", pair) for pair in ("name text", "text text")]


@pytest.fixture
def trap(server: Server) -> Iterator[None]:
    """A schema of somebody else's before that of the system, in the path of a role; what runs in it leaves a trace."""
    server.execute(
        "CREATE SCHEMA trap AUTHORIZATION mallory",
        "GRANT USAGE ON SCHEMA trap TO PUBLIC",
        "ALTER ROLE steward SET search_path = trap, ward, pg_catalog",
    )
    made = ["CREATE TABLE trap.loot (who text)", "GRANT INSERT ON trap.loot TO PUBLIC"]
    for head, (kind, result) in FUNCTIONS.items():
        body = f"BEGIN {WRITE} RETURN {result}; END"
        made.append(f"CREATE FUNCTION trap.{head} RETURNS {kind} LANGUAGE plpgsql AS $${body}$$")
    for sign, function, pair in OPERATORS:
        left, right = pair.split()
        made.append(f"CREATE OPERATOR trap.{sign} (FUNCTION = trap.{function}, LEFTARG = {left}, RIGHTARG = {right})")
    with closing(psycopg.connect(server.url("mallory"), autocommit=True)) as connection:
        for statement in made:
            connection.execute(statement.encode())
    yield
    server.execute("DROP SCHEMA trap CASCADE", "ALTER ROLE steward RESET search_path")


def test_functions_and_operators_of_others_never_run(trap: None, tmp_path: Path) -> None:
    url = running().url("steward")
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("SELECT lower('A'::text)")
        assert connection.execute("SELECT count(*) FROM pg_settings WHERE name = 'jit'").fetchall() == [(1,)]
    caught = value("SELECT count(*) FROM trap.loot")
    assert caught > 1
    with dc.connect(url, **facts(tmp_path, "Stays")) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM stays", epsilon=5).rows
        assert '"ward"."stays"' in session.price("SELECT COUNT(*) AS n FROM stays", epsilon=4).statement
    with pytest.raises(InvalidArgument, match="stays"):
        dc.connect(url, **facts(tmp_path, "stayz"))
    assert value("SELECT count(*) FROM trap.loot") == caught


def test_types_and_tables_in_pg_temp_stand_in_for_nothing(trap: None) -> None:
    url = running().url("steward") + "?options=-c%20search_path%3Dpg_temp,ward,public"
    engine: Any = Postgres(url)
    body = f"BEGIN {WRITE} RETURN true; END"
    engine._connection.execute("SET default_transaction_read_only = off")
    for statement in (
        f"CREATE FUNCTION pg_temp.leak(text) RETURNS bool LANGUAGE plpgsql AS $${body}$$",
        *(
            f"CREATE DOMAIN pg_temp.{kind} AS pg_catalog.{kind} CHECK (pg_temp.leak(VALUE::pg_catalog.text))"
            for kind in ("oid", "text", "float8", "int8")
        ),
        "CREATE TEMP TABLE stays (who pg_catalog.int8, x pg_catalog.float8)",
        "CREATE TEMP TABLE mine (who pg_catalog.int8)",
    ):
        engine._connection.execute(statement)
    engine.add("stays", "stays", unit="who")
    assert engine.run(f"SELECT COUNT(*), SUM(CAST(x AS float8)) FROM {engine.dialect.table('stays')}") == [(100, 100.0)]
    with pytest.raises(InvalidArgument, match="one table or view"):
        engine.add("mine", "mine")
    engine.close()
    assert value("SELECT count(*) FROM trap.loot") == 0


def test_the_first_of_a_name_in_the_path_is_meant(server: Server) -> None:
    server.execute("CREATE TABLE public.stays (who int8, far int8)")
    try:
        for path, column in (("ward,public", "x"), ("public,ward", "far")):
            engine = Postgres(f"{server.url()}?options=-c%20search_path%3D{path}")
            engine.add("stays", "stays")
            assert [c.name for c in engine.columns("stays")] == ["who", column]
            engine.close()
    finally:
        server.execute("DROP TABLE public.stays")


def spent_before(table: str, folder: Path, **more: Any) -> bool:
    """Whether a table goes on with books in which something was asked; if not it is asked something."""
    with dc.connect(running().url(), **facts(folder, table, **more)) as session:
        before = session.spent.epsilon > 0
        session.sql(f"SELECT COUNT(*) AS n FROM {session._catalog.tables[0].name}", epsilon=1)
        return before


@pytest.mark.parametrize(
    ("parent", "join"),
    [
        ("PARTITION BY RANGE (who)", "ALTER TABLE ward.whole ATTACH PARTITION ward.part FOR VALUES FROM (0) TO (50)"),
        ("", "ALTER TABLE ward.part INHERIT ward.whole"),
    ],
    ids=["partition", "inheritance"],
)
def test_a_part_asked_first_is_a_part_of_the_whole(parent: str, join: str, server: Server, tmp_path: Path) -> None:
    server.execute(
        f"CREATE TABLE ward.whole (who int8, x float8) {parent}",
        "CREATE TABLE ward.part (who int8, x float8)",
        "CREATE VIEW ward.over AS SELECT * FROM ward.whole",
    )
    try:
        assert not spent_before("ward.part", tmp_path)
        server.execute(join)
        assert spent_before("ward.over", tmp_path)
        assert spent_before("ward.whole", tmp_path)
    finally:
        server.execute("DROP TABLE ward.whole, ward.part CASCADE")


TABLE = "RETURNS TABLE (who int8, x float8) LANGUAGE sql STABLE"
ROADS = {
    "atomic": f"CREATE FUNCTION ward.f() {TABLE} BEGIN ATOMIC SELECT * FROM ward.stays; END",
    "text": f"CREATE FUNCTION ward.f() {TABLE} AS 'SELECT * FROM ward.stays'",
}
ABOVE = f"CREATE FUNCTION ward.g() {TABLE} BEGIN ATOMIC SELECT * FROM ward.f(); END"


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("function", ["f", "g"])
def test_views_of_functions_have_no_budget_of_their_own(
    road: str, function: str, server: Server, tmp_path: Path
) -> None:
    server.execute(ROADS[road], ABOVE, f"CREATE VIEW ward.called AS SELECT * FROM ward.{function}()")
    try:
        assert not spent_before("ward.stays", tmp_path, dataset="stays")
        if road == "atomic":
            assert spent_before("ward.called", tmp_path)
        else:
            with pytest.raises(InvalidArgument, match=r"f\(\) does not.*dataset="):
                dc.connect(server.url(), **facts(tmp_path, "ward.called"))
            assert spent_before("ward.called", tmp_path, dataset="stays")
    finally:
        server.execute("DROP FUNCTION ward.f() CASCADE")


def test_operators_and_texts_that_are_run_are_seen_or_refused(server: Server, tmp_path: Path) -> None:
    body = "AS 'SELECT $1 + (SELECT count(*) FROM ward.stays)'"
    server.execute(
        f"CREATE FUNCTION ward.more(int8, int8) RETURNS int8 LANGUAGE sql STABLE {body}",
        "CREATE OPERATOR ward.+ (FUNCTION = ward.more, LEFTARG = int8, RIGHTARG = int8)",
        "CREATE VIEW ward.signs AS SELECT 1::int8 OPERATOR(ward.+) 2::int8 AS who",
        "CREATE VIEW ward.texts AS SELECT r.who FROM query_to_xml('SELECT * FROM ward.stays', true, false, '') AS q, "
        "XMLTABLE('/table/row' PASSING q COLUMNS who int8) AS r",
        "CREATE VIEW ward.plain AS SELECT abs(who) AS who FROM ward.stays WHERE lower(x::text) <> 'nan'",
    )
    try:
        for table, function in (("signs", "more"), ("texts", "query_to_xml")):
            with pytest.raises(InvalidArgument, match=function):
                dc.connect(server.url(), **facts(tmp_path, f"ward.{table}"))
        assert not spent_before("ward.plain", tmp_path)
        assert spent_before("ward.stays", tmp_path)
    finally:
        server.execute("DROP FUNCTION ward.more CASCADE", "DROP VIEW ward.texts, ward.plain")


def test_a_function_that_changed_under_a_view_is_noticed(server: Server, tmp_path: Path) -> None:
    made = "CREATE OR REPLACE FUNCTION ward.least() RETURNS int LANGUAGE sql STABLE AS 'SELECT {}'"
    server.execute(made.format(10), "CREATE VIEW ward.few AS SELECT * FROM ward.stays WHERE who <= ward.least()")
    try:
        with dc.connect(server.url(), **facts(tmp_path, "ward.few", dataset="stays")) as session:
            session.sql("SELECT COUNT(*) AS n FROM few", epsilon=1)
            server.execute(made.format(90))
            with pytest.raises(InvalidArgument, match="connect again"):
                session.sql("SELECT COUNT(*) AS n FROM few", epsilon=2)
    finally:
        server.execute("DROP FUNCTION ward.least CASCADE")


def test_a_stored_answer_of_the_whole_is_not_that_of_a_part_with_its_name(server: Server, tmp_path: Path) -> None:
    server.execute(
        "CREATE SCHEMA attic",
        "CREATE TABLE ward.beds (who int8) PARTITION BY RANGE (who)",
        "CREATE TABLE attic.beds PARTITION OF ward.beds FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE attic.others PARTITION OF ward.beds FOR VALUES FROM (100) TO (10000)",
        "INSERT INTO ward.beds SELECT generate_series(0, 4999)",
        "CREATE VIEW attic.stays AS SELECT * FROM ward.stays WHERE who <= 3",
    )
    try:
        for tables, counts in (
            (("ward.beds", "attic.beds", "ward.beds"), (5000, 100, 5000)),
            (("ward.stays", "attic.stays", "ward.stays"), (100, 3, 100)),
        ):
            found = []
            for table in tables:
                with dc.connect(server.url(), **facts(tmp_path, table)) as session:
                    name = session.account[0]
                    found.append(session.sql(f"SELECT COUNT(*) AS n FROM {name}", epsilon=3).rows[0][0])
            assert all(abs(n - count) < 40 for n, count in zip(found, counts, strict=True))
            assert found[0] == found[2]
    finally:
        server.execute("DROP SCHEMA attic CASCADE", "DROP TABLE ward.beds")


def test_dots_in_names_make_no_two_tables_one(server: Server, tmp_path: Path) -> None:
    server.execute(
        'CREATE SCHEMA "ward.a"',
        'CREATE TABLE "ward.a".b (who int8)',
        'CREATE TABLE ward."a.b" (who int8)',
    )
    try:
        assert not spent_before('"ward.a".b', tmp_path)
        with dc.connect(server.url(), **facts(tmp_path, 'ward."a.b"')) as session:
            assert session.spent.epsilon == 0
            assert session.account == ("a.b",)
    finally:
        server.execute('DROP SCHEMA "ward.a" CASCADE', 'DROP TABLE ward."a.b"')


def test_columns_that_are_computed_when_they_are_read_are_left_out(server: Server, tmp_path: Path) -> None:
    version = value("SELECT current_setting('server_version_num')::int")
    kept = "STORED" if version < 180000 else "VIRTUAL"
    server.execute(
        f"CREATE TABLE ward.made (who int8, y int4, z int4 GENERATED ALWAYS AS (100 / y) {kept}, "
        "s int4 GENERATED ALWAYS AS (y + 1) STORED)",
        "INSERT INTO ward.made (who, y) SELECT i, 1 FROM generate_series(1, 50) AS i",
    )
    try:
        with dc.connect(server.url(), **facts(tmp_path, "ward.made")) as session:
            omitted = {} if kept == "STORED" else {"z": "computed when it is read"}
            assert dict(session._engine.omitted("made")) == omitted
            if omitted:
                server.execute("INSERT INTO ward.made (who, y) VALUES (99, 0)")
                with pytest.raises((InvalidArgument, dc.Unsupported), match="computed when it is read"):
                    session.sql("SELECT SUM(CLAMP(z, 0, 100)) AS n FROM made", epsilon=1)
            assert session.sql("SELECT SUM(CLAMP(s, 0, 9)) AS n FROM made", epsilon=1).rows
    finally:
        server.execute("DROP TABLE ward.made")


CHANGES = {
    "another type": "ALTER TABLE ward.moved ALTER y TYPE text",
    "more digits": "ALTER TABLE ward.moved ALTER d TYPE numeric",
    "another column": "ALTER TABLE ward.moved DROP y; ALTER TABLE ward.moved ADD y int4",
    "no column": "ALTER TABLE ward.moved DROP y",
    "another table": "ALTER TABLE ward.moved RENAME TO gone; CREATE TABLE ward.moved AS TABLE ward.gone",
    "no table": "ALTER TABLE ward.moved RENAME TO gone",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before", "between"])
def test_a_table_that_changed_is_refused_whatever_it_holds(
    change: str, when: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change between two questions is refused without a charge; one after the charge has nothing to do with rows."""
    server.execute(
        "DROP TABLE IF EXISTS ward.moved, ward.gone",
        "CREATE TABLE ward.moved (who int8, y int4, d numeric(9, 0))",
        "INSERT INTO ward.moved SELECT i, 1, 2 FROM generate_series(1, 50) AS i",
    )
    with dc.connect(server.url(), **facts(tmp_path, "ward.moved")) as session:
        session.sql("SELECT SUM(CLAMP(y, 0, 9)) AS n FROM moved", epsilon=1)
        spent, engine = session.spent, session._engine  # type: Any, Any
        if when == "before":
            server.execute(*CHANGES[change].split(";"))
            with pytest.raises(InvalidArgument, match="connect again"):
                session.sql("SELECT SUM(CLAMP(y, 0, 8)) AS n FROM moved", epsilon=1)
            assert session.spent == spent
            return
        honest = engine.run

        def late(statement: str) -> Any:
            server.execute(*CHANGES[change].split(";"))
            return honest(statement)

        monkeypatch.setattr(engine, "run", late)
        with pytest.raises(EngineUnavailable, match="connect again"):
            session.sql("SELECT SUM(CLAMP(y, 0, 8)) AS n FROM moved", epsilon=1)


def test_a_connection_of_ibis_keeps_its_options_and_its_schema(server: Server, tmp_path: Path) -> None:
    server.execute(
        'CREATE SCHEMA "odd, \\ one"',
        'CREATE TABLE "odd, \\ one".stays (who int8)',
        "CREATE TABLE public.stays (who int8, x float8)",
        f"ALTER ROLE steward PASSWORD '{PASSWORD}'",
    )
    place = {"host": "127.0.0.1", "port": server.port, "user": "steward", "password": PASSWORD, "database": "postgres"}
    options = {"sslmode": "disable", "options": "-c statement_timeout=54321", "connect_timeout": 7}
    backend = ibis.postgres.connect(**place, **options, schema="ward")
    try:
        for _ in range(2):
            address = str(address_of(backend))
            assert backend.con.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
            given = psycopg.conninfo.conninfo_to_dict(address)
            wanted = {"sslmode": "disable", "connect_timeout": "7", "password": PASSWORD, "user": "steward"}
            assert {name: str(given[name]) for name in wanted} == wanted
            with closing(psycopg.connect(address)) as connection:
                assert connection.execute("SHOW statement_timeout").fetchall() == [("54321ms",)]
                [(path,)] = connection.execute("SHOW search_path").fetchall()
            assert [(path,)] == backend.con.execute("SHOW search_path").fetchall()
            backend.con.rollback()
            if path == "ward":
                with dc.connect(backend, **facts(tmp_path, "stays")) as session:
                    assert '"ward"."stays"' in session.price("SELECT COUNT(*) AS n FROM stays", epsilon=1).statement
            backend.con.execute('SET search_path = "odd, \\ one", public')
            backend.con.commit()
        assert path == '"odd, \\ one", public'
        backend.con.close()
        with pytest.raises(InvalidArgument, match="connect to it again"):
            address_of(backend)
    finally:
        backend.disconnect()
        server.execute('DROP SCHEMA "odd, \\ one" CASCADE', "DROP TABLE public.stays")

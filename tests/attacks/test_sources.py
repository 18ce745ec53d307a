"""What a table is changes under an open session, and statements that cannot work: on every engine.

Somebody who may change tables, but has no budget left for some rows, brings those rows into a table that still has
one. Lines of the list of known privacy bugs that are tested here: a source that changes under an open session; a
statement that fails for a reason that does not depend on rows, after the charge.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.attacks import source_faults as faults
from tests.attacks.register import attack
from tests.attacks.statements import BROKEN, BUDGET, check_broken_statements, run_after
from tests.ledger.servers import Server, running

import discreet as dc
from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.engines.duckdb import engine as duckdb

SCHEMA = "shifting"
MADE = [
    f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE",
    f"CREATE SCHEMA {SCHEMA}",
    f"CREATE TABLE {SCHEMA}.spent (who int8, x int8)",
    f"INSERT INTO {SCHEMA}.spent SELECT i, 1 FROM generate_series(1, 400) AS i",
    f"CREATE TABLE {SCHEMA}.parted (who int8, x int8) PARTITION BY RANGE (who)",
    f"CREATE TABLE {SCHEMA}.plain (who int8, x int8)",
    f"INSERT INTO {SCHEMA}.plain SELECT i, 1 FROM generate_series(1, 20) AS i",
    f"CREATE VIEW {SCHEMA}.seen AS SELECT * FROM {SCHEMA}.plain",
    f"CREATE FUNCTION {SCHEMA}.least() RETURNS int8 LANGUAGE sql STABLE BEGIN ATOMIC SELECT 0::int8; END",
    f"CREATE VIEW {SCHEMA}.called AS SELECT who + {SCHEMA}.least() AS who, x FROM {SCHEMA}.plain",
    f"CREATE DOMAIN {SCHEMA}.size AS int8",
    f"CREATE TYPE {SCHEMA}.pair AS (a int4, b {SCHEMA}.size)",
    f"CREATE VIEW {SCHEMA}.sized AS SELECT who, (('(1,' || x || ')')::{SCHEMA}.pair).b::int8 AS x FROM {SCHEMA}.plain",
]
LEAST = f"CREATE OR REPLACE FUNCTION {SCHEMA}.least() RETURNS int8 LANGUAGE sql STABLE BEGIN ATOMIC SELECT {{}}; END"
OTHER = f"(SELECT COUNT(*) FROM {SCHEMA}.spent)"
DEEDS = {
    "partition": (
        "parted",
        f"ALTER TABLE {SCHEMA}.parted ATTACH PARTITION {SCHEMA}.spent FOR VALUES FROM (0) TO (999)",
    ),
    "inheritance": ("plain", f"ALTER TABLE {SCHEMA}.spent INHERIT {SCHEMA}.plain"),
    "function": ("called", LEAST.format(OTHER)),
    "domain": ("sized", f"ALTER DOMAIN {SCHEMA}.size ADD CHECK (VALUE >= {SCHEMA}.least())"),
    "view": ("seen", f"CREATE OR REPLACE VIEW {SCHEMA}.seen AS SELECT * FROM {SCHEMA}.spent"),
}
"""What somebody does, and the table of the session to whom it is done."""
LOCKED = ("view",)
"""Deeds that have to wait until the transaction of a statement is over."""


def on_server(folder: Path, table: str, **more: Any) -> Any:
    given = {"unit": "who", "budget": BUDGET, "ledger": folder / "books"} | more
    return dc.connect(running().url(), table=f"{SCHEMA}.{table}", **given)


def looked_at_then(engine: Any, deed: Callable[[], None]) -> Any:
    """The deed is done right after the first look of the next statement."""
    honest, left = engine._records, [deed]

    def records(*given: Any) -> Any:
        found = honest(*given)
        while left:
            left.pop()()
        return found

    return patch.object(engine, "_records", records)


@attack(48, finds=[faults.tables_known_by_their_columns])
def test_what_comes_into_a_table_between_two_questions_is_not_read(tmp_path: Path) -> None:
    for table, deed in DEEDS.values():
        running().execute(*MADE)
        (tmp_path / table).mkdir()
        with on_server(tmp_path / table, table) as session:
            session.sql(f"SELECT COUNT(*) AS n FROM {table}", epsilon=1)
            spent = session.spent
            running().execute(deed)
            with pytest.raises(InvalidArgument, match="connect again"):
                session.sql(f"SELECT SUM(CLAMP(x, 0, 9)) AS n FROM {table}", epsilon=1)
            assert session.spent == spent


@attack(48, finds=[faults.tables_known_by_their_columns])
def test_what_comes_into_a_table_after_the_charge_is_not_read(tmp_path: Path) -> None:
    for table, deed in DEEDS.values():
        running().execute(*MADE)
        (tmp_path / table).mkdir()
        with (
            on_server(tmp_path / table, table) as session,
            run_after(session._engine, lambda deed=deed: running().execute(deed)),
            pytest.raises(EngineUnavailable, match="connect again"),
        ):
            session.sql(f"SELECT COUNT(*) AS n FROM {table}", epsilon=1)


@attack(48, finds=[faults.looked_at_before_the_statement_only])
def test_what_comes_into_a_table_inside_its_transaction_is_not_answered(tmp_path: Path) -> None:
    for name, (table, deed) in DEEDS.items():
        running().execute(*MADE)
        (tmp_path / table).mkdir()
        with on_server(tmp_path / table, table) as session:
            engine = session._engine
            statement = session.price(f"SELECT COUNT(*) AS n FROM {table}", epsilon=1).statement
            hurried = "SET lock_timeout = 200" if name in LOCKED else "SELECT 1"

            def done(hurried: str = hurried, deed: str = deed) -> None:
                with closing(psycopg.connect(running().url(), autocommit=True)) as other:
                    other.execute(hurried.encode())
                    other.execute(deed.encode())

            expected = psycopg.errors.LockNotAvailable if name in LOCKED else EngineUnavailable
            with looked_at_then(engine, done), pytest.raises(expected):
                engine.run(statement)


@attack(48, finds=[faults.changes_told_by_what_is_said])
def test_a_change_that_is_taken_back_after_the_statement_is_noticed(tmp_path: Path) -> None:
    running().execute(*MADE)
    with on_server(tmp_path, "called") as session:
        engine: Any = session._engine
        statement = session.price("SELECT COUNT(*) AS n FROM called", epsilon=1).statement
        running().execute(LEAST.format("1::int8"), LEAST.format("0::int8"))
        assert engine.run(statement)
        swapped = [LEAST.format(OTHER), LEAST.format("0::int8")]
        with looked_at_then(engine, lambda: running().execute(*swapped)), pytest.raises(EngineUnavailable):
            engine.run(statement)


CHECKED = {
    "in a cast": "x::{0}.checked::int8",
    "inside a composite": "(('(' || x || ')')::{0}.wrapped).b::int8",
    "inside an array": "(('{{' || x || '}}')::{0}.checked[])[1]::int8",
    "below another domain": "x::{0}.above::int8",
}


@attack(48, finds=[faults.types_not_followed])
def test_a_check_of_a_domain_that_reads_a_table_has_the_budget_of_that_table(tmp_path: Path) -> None:
    for language, body in {"atomic": "BEGIN ATOMIC SELECT $1 <= {}; END", "text": "AS 'SELECT $1 <= {}'"}.items():
        for place, written in enumerate(CHECKED.values()):
            running().execute(
                *MADE,
                f"CREATE FUNCTION {SCHEMA}.fits(int8) RETURNS bool LANGUAGE sql STABLE {body.format(OTHER)}",
                f"CREATE DOMAIN {SCHEMA}.checked AS int8 CHECK ({SCHEMA}.fits(VALUE))",
                f"CREATE DOMAIN {SCHEMA}.above AS {SCHEMA}.checked",
                f"CREATE TYPE {SCHEMA}.wrapped AS (b {SCHEMA}.checked)",
                f"CREATE VIEW {SCHEMA}.tested AS SELECT who, {written.format(SCHEMA)} AS x FROM {SCHEMA}.plain",
            )
            books = tmp_path / f"{language}{place}"
            books.mkdir()
            with on_server(books, "spent") as session:
                session.sql("SELECT COUNT(*) AS n FROM spent", epsilon=1)
                spent = session.spent
            if language == "text":
                with pytest.raises(InvalidArgument, match=r"fits\(\) does not"):
                    on_server(books, "tested")
            else:
                with on_server(books, "tested") as session:
                    assert session.spent == spent


@contextmanager
def database(name: str, *others: str) -> Iterator[Server]:
    server = running()
    drop = [f"DROP DATABASE IF EXISTS {one}" for one in (name, *others)]
    server.execute(*drop, f"CREATE DATABASE {name}")
    with closing(psycopg.connect(server.url(database=name), autocommit=True)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT i AS who FROM generate_series(1, 50) AS i")
        connection.execute("GRANT SELECT ON visits TO PUBLIC")
    try:
        yield server
    finally:
        server.execute(*drop)


@attack(48, finds=[faults.databases_known_by_name])
def test_a_renamed_database_has_no_fresh_budget(tmp_path: Path) -> None:
    given: dict[str, Any] = {"table": "visits", "unit": "who", "budget": dc.PureDP(1)}
    # Books that were begun before numbers of databases were written down know only the name.
    for books, earlier in (("new", nullcontext), ("old", faults.databases_known_by_name)):
        with database("clinic", "hospital") as server:
            address = server.url(database="clinic")
            with earlier(), dc.connect(address, ledger=tmp_path / books, **given) as session:
                session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
            server.execute("ALTER DATABASE clinic RENAME TO hospital")
            address = server.url(database="hospital")
            with pytest.raises(InvalidArgument, match="belongs to 'visits'"):
                dc.connect(address, ledger=tmp_path / books, dataset="fresh", **given).close()
            with dc.connect(address, ledger=tmp_path / books, **given) as session:
                assert session.remaining == dc.PureDP(0)


@attack(48, finds=[faults.servers_known_by_address])
def test_a_role_that_may_not_ask_which_server_it_is_has_no_fresh_budget(tmp_path: Path) -> None:
    given: dict[str, Any] = {"table": "visits", "unit": "who", "budget": dc.PureDP(1), "ledger": tmp_path / "books"}
    function = "FUNCTION pg_catalog.pg_control_system()"
    with database("clinic") as server:
        server.execute("DROP ROLE IF EXISTS unknowing", "CREATE ROLE unknowing LOGIN")
        addresses = [server.url(user, "clinic") for user in ("postgres", "unknowing")]
        with dc.connect(addresses[0], **given) as session:
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        server.execute(f"REVOKE EXECUTE ON {function} FROM PUBLIC")
        revoked = closing(psycopg.connect(server.url(database="clinic"), autocommit=True))
        try:
            with revoked as connection:
                connection.execute(f"REVOKE EXECUTE ON {function} FROM PUBLIC".encode())
            with pytest.raises(InvalidArgument, match="GRANT EXECUTE"):
                dc.connect(addresses[1], **given)
            # Books that were begun by an address go on, by that role and by those who know better.
            with patch.dict(given, ledger=tmp_path / "earlier"):
                with faults.servers_known_by_address(), dc.connect(addresses[1], **given) as session:
                    session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
                for address in (addresses[1], addresses[0], addresses[1]):
                    with dc.connect(address, **given) as session:
                        assert session.remaining == dc.PureDP(0)
        finally:
            with closing(psycopg.connect(server.url(database="clinic"), autocommit=True)) as connection:
                connection.execute(f"GRANT EXECUTE ON {function} TO PUBLIC".encode())
            server.execute(f"GRANT EXECUTE ON {function} TO PUBLIC", "DROP ROLE unknowing")


@attack(48, finds=[faults.whatever_file_is_there])
def test_another_file_under_the_name_of_one_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "FEW", 10)
    for name, count in (("few", 20), ("many", 4000), ("some", 20)):
        (tmp_path / name).mkdir()
        pyarrow.parquet.write_table(pa.table({"who": np.arange(count)}), tmp_path / name / "a.parquet")
    given: dict[str, Any] = {"unit": "who", "budget": BUDGET, "table": "t"}
    with dc.connect(tmp_path / "few", ledger=tmp_path / "books", **given) as session:
        (tmp_path / "few" / "b.parquet").hardlink_to(tmp_path / "many" / "a.parquet")
        assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=20).rows[0][0] < 1000
        spent = session.spent
        (tmp_path / "few" / "b.parquet").replace(tmp_path / "few" / "a.parquet")
        with pytest.raises(InvalidArgument, match="connect again"):
            session.sql("SELECT COUNT(*) AS n FROM t WHERE who >= 0", epsilon=20)
        assert session.spent == spent
    with dc.connect(tmp_path / "some", ledger=tmp_path / "others", **given) as session:
        other, mine = (tmp_path / name / "a.parquet" for name in ("few", "some"))
        with (
            run_after(session._engine, lambda: other.replace(mine)),
            pytest.raises(EngineUnavailable, match="connect again"),
        ):
            session.sql("SELECT COUNT(*) AS n FROM t", epsilon=20)


@attack(49, finds=[faults.not_prepared])
def test_a_statement_that_cannot_run_is_not_charged(tmp_path: Path) -> None:
    running().execute(*MADE)
    rows = {"who": np.arange(20), "x": np.ones(20)}
    for session in (dc.connect(rows, table="t", unit="who", budget=BUDGET), on_server(tmp_path, "plain")):
        with session:
            check_broken_statements(session)


@attack(49, finds=[faults.not_prepared])
def test_rows_and_functions_that_cannot_be_fetched_are_not_charged() -> None:
    with dc.connect({"who": np.arange(20), "x": np.ones(20)}, table="t", unit="who", budget=BUDGET) as session:
        for module, ask in (
            ("discreet.synthesis.request.Request", lambda: session.synthesize(["x"], epsilon=1, bins={"x": [0, 1, 2]})),
            ("discreet.estimation.request.Request", lambda: session.estimate(len, ["x"], epsilon=1, bounds=(0, 9))),
        ):
            with patch(f"{module}.statement", BROKEN[0]), pytest.raises(dc.DiscreetError) as refused:
                ask()
            assert isinstance(refused.value, dc.Unsupported)
        assert session.spent.epsilon == 0

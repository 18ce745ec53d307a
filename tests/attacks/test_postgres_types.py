"""On PostgreSQL: whoever owns the type of a column makes casts from it, renames its labels, or gives a collation."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.attacks import source_faults as faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import exact, strain
from tests.attacks.statements import BUDGET, run_after
from tests.ledger.servers import running

import discreet as dc
from discreet.core.errors import EngineUnavailable, InvalidArgument

SCHEMA = "typed"
MADE = [
    f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE",
    "DO $$ BEGIN CREATE ROLE typist LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
    f"CREATE SCHEMA {SCHEMA}",
    f"GRANT USAGE, CREATE ON SCHEMA {SCHEMA} TO typist",
    f"CREATE TYPE {SCHEMA}.person AS ENUM ('ann', 'bob', 'cid')",
    f"ALTER TYPE {SCHEMA}.person OWNER TO typist",
    f"CREATE DOMAIN {SCHEMA}.guest AS {SCHEMA}.person",
    f"CREATE TABLE {SCHEMA}.secret (v int8)",
    f"GRANT SELECT ON {SCHEMA}.secret TO typist",
    f"CREATE TABLE {SCHEMA}.stays (who {SCHEMA}.person, guest {SCHEMA}.guest, x int8)",
    f"INSERT INTO {SCHEMA}.stays SELECT 'ann', 'ann', 1 FROM generate_series(1, 200)",
    f"INSERT INTO {SCHEMA}.stays VALUES ('bob', 'bob', 0), ('cid', 'cid', 0), (NULL, NULL, 0)",
]
BODIES = {
    "splits": "BEGIN RETURN random()::text; END",
    "reads": f"BEGIN RETURN (SELECT 'ann' FROM {SCHEMA}.secret LIMIT 1); END",
    "fails": "BEGIN RAISE 'ann is here'; END",
}
"""What functions of the type's owner do."""


def as_typist(*statements: str) -> None:
    with closing(psycopg.connect(running().url("typist"), autocommit=True)) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def made(name: str) -> list[str]:
    """A cast from the enum to text by a function that is not the system's, also where none is written."""
    function = f"{SCHEMA}.{name}({SCHEMA}.person)"
    return [
        f"CREATE FUNCTION {function} RETURNS text LANGUAGE plpgsql AS $${BODIES[name]}$$",
        f"CREATE CAST ({SCHEMA}.person AS text) WITH FUNCTION {function} AS IMPLICIT",
    ]


def opened(folder: Path, **more: Any) -> Any:
    given = {"table": f"{SCHEMA}.stays", "unit": "who", "budget": BUDGET, "ledger": folder / "books"} | more
    return dc.connect(running().url(), **given)


def without_ann(session: Any, question: str) -> float:
    """How far one person's rows move what the engine returns."""
    sides = [exact(session, question)]
    running().execute(f"DELETE FROM {SCHEMA}.stays WHERE x = 1")
    sides.append(exact(session, question))
    running().execute(MADE[-2])
    return strain(*sides)


@attack(10, 18, 48, finds=[faults.enums_cast_to_text])
def test_a_cast_by_the_owner_of_a_type_takes_no_part(tmp_path: Path) -> None:
    """As a key, as the owner of rows, and through a domain; made before the session, and under it."""
    people = ["ann", "bob", "cid"]
    question = "SELECT guest, COUNT(*) AS n FROM stays GROUP BY guest"
    for when in ("before", "under"):
        for name in BODIES:
            running().execute(*MADE)
            (tmp_path / when / name).mkdir(parents=True)
            if when == "before":
                as_typist(*made(name))
            with opened(tmp_path / when / name, values={"guest": people}, max_rows=2) as session:
                if when == "under":
                    as_typist(*made(name))
                try:
                    found = exact(session, question)
                except psycopg.Error:
                    pytest.fail(f"{name}: a function of somebody else ran")
                assert {key for (key, *_) in found.groups.keys} == {*people}
                assert without_ann(session, "SELECT COUNT(*) AS n FROM stays") <= 1
                assert session.sql(question, epsilon=1).rows


def renamed(*pairs: tuple[str, str]) -> Callable[[], None]:
    names = [f"ALTER TYPE {SCHEMA}.person RENAME VALUE '{old}' TO '{new}'" for old, new in pairs]
    return lambda: as_typist(*names)


@attack(18, 48, finds=[faults.labels_not_looked_at])
def test_labels_that_change_while_a_statement_runs_are_not_answered(tmp_path: Path) -> None:
    """Also if they are by then what they were: meanwhile one person was two."""
    running().execute(*MADE)
    with opened(tmp_path) as session:
        engine: Any = session._engine
        assert session.sql("SELECT COUNT(*) AS n FROM stays", epsilon=1).rows
        renamed(("cid", "cyd"))()
        assert session.sql("SELECT COUNT(*) AS n FROM stays", epsilon=2).rows
        honest, left = engine._records, [renamed(("ann", "eve"), ("eve", "ann"))]

        def records(*given: Any) -> Any:
            found = honest(*given)
            while left:
                left.pop()()
            return found

        statement = session.price("SELECT COUNT(*) AS n FROM stays", epsilon=3).statement
        engine._records = records
        with pytest.raises(EngineUnavailable, match="connect again"):
            engine.run(statement)


@attack(10, 48, finds=[faults.casts_not_looked_at])
def test_casts_between_types_of_the_system_are_the_systems(tmp_path: Path) -> None:
    """An administrator made one."""
    running().execute(
        *MADE,
        f"CREATE FUNCTION {SCHEMA}.shown(uuid) RETURNS text LANGUAGE sql AS 'SELECT random()::text'",
        f"CREATE TABLE {SCHEMA}.numbered (who uuid)",
        f"INSERT INTO {SCHEMA}.numbered SELECT gen_random_uuid() FROM generate_series(1, 50)",
    )
    cast = f"CREATE CAST (uuid AS text) WITH FUNCTION {SCHEMA}.shown(uuid)"
    given = {"table": f"{SCHEMA}.numbered"}
    try:
        with opened(tmp_path, **given) as session:
            assert session.sql("SELECT COUNT(*) AS n FROM numbered", epsilon=1).rows
            late = run_after(session._engine, lambda: running().execute(cast))
            with late, pytest.raises(EngineUnavailable, match="connect again"):
                session.sql("SELECT COUNT(*) AS n FROM numbered", epsilon=2)
            with pytest.raises(InvalidArgument, match="connect again"):
                session.sql("SELECT COUNT(*) AS n FROM numbered", epsilon=3)
        with pytest.raises(InvalidArgument, match=r"DROP CAST \(uuid AS text\)"):
            opened(tmp_path, **given)
    finally:
        running().execute("DROP CAST IF EXISTS (uuid AS text)")


@attack(10, 27, finds=[faults.collations_of_columns])
def test_texts_are_compared_by_their_bytes_whatever_the_collation(tmp_path: Path) -> None:
    """Otherwise a key is shown as the first of its rows has it. Servers without ICU have no collation that takes two
    texts for one; there, what the server says that it compares by must do."""
    with closing(psycopg.connect(running().url(), autocommit=True)) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
        loose = f"CREATE COLLATION {SCHEMA}.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        try:
            connection.execute(loose.encode())
        except psycopg.Error:
            connection.execute(f'CREATE COLLATION {SCHEMA}.loose FROM "POSIX"'.encode())
    loose = f"COLLATE {SCHEMA}.loose"
    running().execute(
        f"CREATE DOMAIN {SCHEMA}.name AS varchar(20) {loose}",
        f"CREATE TABLE {SCHEMA}.people (who {SCHEMA}.name, t text {loose}, c char(5) {loose})",
    )
    spellings = ["Ann", "ann", "ANN", "Bob", "bob "]
    found = []
    for order in (spellings, spellings[::-1]):
        running().execute(
            f"TRUNCATE {SCHEMA}.people",
            *(f"INSERT INTO {SCHEMA}.people VALUES ('{n}', '{n}', '{n}')" for n in order * 3),
        )
        (tmp_path / order[0]).mkdir()
        keys: dict[str, Any] = {"t": spellings, "c": ["Ann", "bob"]}
        with opened(tmp_path / order[0], table=f"{SCHEMA}.people", values=keys, max_rows=9) as session:
            engine: Any = session._engine
            read = engine.dialect.table("people")
            shown = ", ".join(f'pg_collation_for("{name}")' for name in ("who", "t", "c", "discreet unit"))
            assert engine.run(f"SELECT DISTINCT {shown} FROM {read}") == [('"C"',) * 4]
            asked = [f"SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key}" for key in keys]
            asked += ["SELECT COUNT(DISTINCT who) AS n FROM people"]
            rows = [engine.run(session.price(text, epsilon=1).statement) for text in asked]
            found.append([sorted(map(repr, each)) for each in rows])
    assert found[0] == found[1]
    assert len(found[0][0]) >= len(spellings)

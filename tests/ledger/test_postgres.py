"""Books on a server: who may open them, what is refused and why, and how threads share a commit."""

import logging
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction as F
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from tests.ledger.places import ANN, BOB, HEALTH, PostgresPlace, opened, pure
from tests.ledger.servers import PASSWORD, Server

from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, LedgerDamaged, LedgerUnavailable
from discreet.ledger.stores.postgres import connection as server
from discreet.ledger.stores.postgres.connection import Connection
from discreet.ledger.stores.postgres.store import PostgresStore

GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO bookkeeper",
    "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {schema} TO bookkeeper",
    "GRANT UPDATE ON {schema}.head, {schema}.accounts TO bookkeeper",
)
"""What a role needs to charge, as the docs list it."""


@pytest.fixture
def bookkeeper(shared: PostgresPlace) -> Iterator[str]:
    """The address of a role that needs a password and may do nothing yet."""
    shared.execute(f"CREATE ROLE bookkeeper LOGIN PASSWORD '{PASSWORD}'")
    yield shared.server.url(f"bookkeeper:{quote(PASSWORD, safe='')}")
    shared.execute("DROP OWNED BY bookkeeper", "DROP ROLE bookkeeper")


def granted(place: PostgresPlace, grants: tuple[str, ...] = GRANTS) -> None:
    place.execute(*(grant.format(schema=place.schema) for grant in grants))


def entries(place: PostgresPlace) -> int:
    return len(place.rows("SELECT 1 FROM entries"))


def test_an_address_opens_a_server_and_a_path_a_file(shared: PostgresPlace, tmp_path: Path) -> None:
    shared.execute("CREATE DATABASE ledgers")
    for address in (shared.server.url(database="ledgers"), f"host=127.0.0.1 port={shared.server.port} user=postgres"):
        with pytest.raises(LedgerUnavailable, match="no ledger"):
            Ledger.at(address, create=False)
    with Ledger.at(shared.server.url(database="ledgers")) as ledger:
        opened(ledger).charge(ANN, pure(1, 8), "q")
    with Ledger.at(shared.server.url(database="ledgers").replace("postgresql:", "postgres:"), create=False) as ledger:
        assert ledger.spent(ANN) == PureDP("0.125")
    with Ledger.at(tmp_path / "host=here") as ledger:
        assert ledger.accounts() == ()
    assert (tmp_path / "host=here").is_file()
    shared.execute("DROP DATABASE ledgers WITH (FORCE)")


def test_an_address_that_became_a_path_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidArgument, match="as text") as caught:
        Ledger.at(Path("postgresql://ann:s3cret@nowhere/books"))
    assert "s3cret" not in str(caught.value)


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name
        for name in sys.modules
        if name in ("discreet.ledger.stores.postgres.store", "discreet.ledger.stores.postgres.connection")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerUnavailable, match=r"pip install 'discreet\[postgres\]'"):
        Ledger.at("postgresql://nowhere/books")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (lambda s: f"postgresql://postgres@127.0.0.1:{_closed_port()}/postgres", "runs and the address is right"),
        (lambda s: s.url(database="nothing"), "CREATE DATABASE"),
        (lambda s: s.url("nobody"), "CREATE ROLE"),
        (lambda s: s.url(f"bookkeeper:{PASSWORD[:5]}"), "pgpass"),
        (lambda s: "service=nothing", "PGSERVICEFILE"),
    ],
)
def test_who_cannot_get_in_is_told_what_to_do(
    shared: PostgresPlace, bookkeeper: str, address: Callable[[Server], str], words: str
) -> None:
    with pytest.raises(LedgerUnavailable, match=words):
        Ledger.at(address(shared.server), patience=2)


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_password_is_shown_nowhere(
    shared: PostgresPlace, bookkeeper: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened(shared.open())
    granted(shared)
    caplog.set_level(logging.DEBUG)
    said = []
    wrong = bookkeeper.replace(quote(PASSWORD, safe=""), "s3cret-but-wrong")
    for address in (
        wrong,
        bookkeeper.replace("/postgres", "/nothing"),
        bookkeeper.replace("127.0.0.1", "127.0.0.1:x"),
        f"postgresql://bookkeeper:{PASSWORD}@127.0.0.1/postgres",
        f"host=127.0.0.1 user=bookkeeper password={PASSWORD} {PASSWORD}",
    ):
        with pytest.raises((LedgerUnavailable, InvalidArgument)) as caught:
            PostgresStore(address, schema=shared.schema, patience=2)
        said.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))
    with Ledger(PostgresStore(bookkeeper, schema=shared.schema)) as ledger:
        ledger.complete(ledger.charge(ANN, pure(1, 8), "q"), b"42")
        said += [repr(ledger), repr(ledger._store), ledger._store.address, *(entry.text for entry in ledger.entries())]
        said.append(repr(ledger.registry()))
        shared.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {shared.schema} FROM bookkeeper")
        with pytest.raises(LedgerUnavailable, match="GRANT") as denied:
            ledger.charge(ANN, pure(1, 8), "p")
        said.append("".join(traceback.format_exception(denied.value)))
    for text in [*said, caplog.text]:
        assert not any(secret in text for secret in (PASSWORD, quote(PASSWORD, safe=""), "s3cret", "horse")), text


def test_a_bookkeeper_charges_with_few_rights_and_changes_nothing_else(shared: PostgresPlace, bookkeeper: str) -> None:
    with pytest.raises(LedgerUnavailable, match="may create schemas"):
        PostgresStore(bookkeeper, schema=shared.schema)
    opened(shared.open())
    with pytest.raises(LedgerUnavailable, match=r"permission was denied.*GRANT"):
        PostgresStore(bookkeeper, schema=shared.schema)
    granted(shared, GRANTS[:2])
    with Ledger(PostgresStore(bookkeeper, schema=shared.schema)) as ledger:
        assert ledger.spent(ANN) == PureDP(0)
        assert ledger.check().sound
        with pytest.raises(LedgerUnavailable, match=r"permission was denied.*GRANT"):
            ledger.charge(ANN, pure(1, 8), "q")
        granted(shared, GRANTS[2:])
        assert ledger.complete(ledger.charge(ANN, pure(1, 8), "q"), b"42") == b"42"
        ledger.open(("health", "bookkeeper's study"), new=True)
        assert ledger.check().sound
    with closing(psycopg.connect(bookkeeper, autocommit=True)) as connection:
        for statement in ("UPDATE {}.entries SET text = ''", "DELETE FROM {}.charges", "DROP TABLE {}.releases"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.format(shared.schema))


def test_a_session_that_commits_before_the_disk_has_it_is_refused(shared: PostgresPlace) -> None:
    opened(shared.open())
    careless = f"{shared.server.url()}?options=-csynchronous_commit%3Doff"
    with pytest.raises(LedgerUnavailable, match=r"synchronous_commit is off.*ALTER ROLE"):
        PostgresStore(careless, schema=shared.schema)
    with shared.store().writing() as books:
        assert books._rows("SHOW synchronous_commit") == [("on",)]


def test_a_server_that_forgets_is_refused_also_while_the_ledger_is_open(shared: PostgresPlace) -> None:
    ledger = opened(shared.open())

    def charge_on() -> None:
        """A session learns of the change a moment after the server does."""
        for number in range(2000):
            ledger.charge(BOB, pure(1, 10**6), f"{number}")
            time.sleep(0.01)

    shared.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        with pytest.raises(LedgerUnavailable, match="fsync = on"):
            charge_on()
        with pytest.raises(LedgerUnavailable, match="fsync = on"):
            shared.store()
        assert ledger.replay(ANN, "q") is None
    finally:
        shared.execute("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
        deadline = time.monotonic() + 30
        while shared.rows("SHOW fsync") != [("on",)] and time.monotonic() < deadline:
            time.sleep(0.02)
    assert shared.open().check().sound


def test_an_old_server_and_another_encoding_are_refused(shared: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    with pytest.raises(LedgerUnavailable, match="ENCODING 'UTF8'"):
        Ledger.at(shared.server.url(database="latin"))
    shared.execute("DROP DATABASE latin WITH (FORCE)")
    monkeypatch.setattr(server, "OLDEST", 990000)
    with pytest.raises(LedgerUnavailable, match="version 99 or later"):
        Ledger.at(shared.server.url())


def test_a_schema_of_something_else_is_not_touched(shared: PostgresPlace) -> None:
    shared.execute(f"CREATE SCHEMA {shared.schema}", "CREATE TABLE people (age BIGINT)")
    with pytest.raises(LedgerDamaged, match="something else"):
        shared.store()
    shared.execute(f"COMMENT ON SCHEMA {shared.schema} IS 'discreet ledger, schema 99'")
    with pytest.raises(LedgerDamaged, match="schema 99, and this version of discreet knows schemas up to"):
        shared.store()
    assert shared.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()") == [("people",)]
    with pytest.raises(InvalidArgument, match="schema"):
        PostgresStore(shared.server.url(), schema='x"; DROP SCHEMA public; --')


def test_a_writer_that_waits_too_long_gives_up_and_charges_nothing(shared: PostgresPlace) -> None:
    opened(shared.open()).complete(shared.open().charge(ANN, pure(1, 8), "a"), b"42")
    hasty = f"{shared.server.url()}?options=-cstatement_timeout%3D100"
    waiting = Ledger(shared.store(patience=0.1))
    limited = Ledger(PostgresStore(hasty, schema=shared.schema))
    holder = shared.store()
    with holder.writing():
        with pytest.raises(LedgerUnavailable, match="others"):
            waiting.charge(BOB, pure(1, 16), "d")
        with pytest.raises(LedgerUnavailable, match="statement_timeout"):
            limited.charge(BOB, pure(1, 16), "d")
        assert waiting.replay(ANN, "a") == limited.replay(ANN, "a") == b"42"
    assert waiting.charge(BOB, pure(1, 16), "d").fresh
    assert not limited.charge(BOB, pure(1, 16), "d").fresh
    for each in (waiting, limited, holder):
        each.close()


def test_a_full_disk_of_the_server_charges_nothing(shared: PostgresPlace) -> None:
    """The server says so in the middle of the statements that were sent with the commit."""
    ledger = opened(shared.open())
    shared.execute(
        "CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE EXCEPTION ''no room'' USING ERRCODE = ''53100''; END'",
        "CREATE TRIGGER filled BEFORE INSERT ON charges FOR EACH ROW EXECUTE FUNCTION filled()",
    )
    before = entries(shared)
    with pytest.raises(LedgerUnavailable, match="make room"):
        ledger.charge(BOB, pure(1, 8), "q")
    assert entries(shared) == before
    shared.execute("DROP TRIGGER filled ON charges", "DROP FUNCTION filled")
    assert ledger.charge(BOB, pure(1, 8), "q").fresh
    assert ledger.check().sound


class Slow(PostgresStore):
    """A store whose commits take long, so that writers wait for each other."""

    commits = 0
    failure: Exception | None = None

    def _commit(self, connection: Connection, *rest: Any) -> None:
        time.sleep(0.05)
        self.commits += 1
        if self.failure is not None:
            raise self.failure
        super()._commit(connection, *rest)


def test_threads_that_wait_share_a_commit_and_a_refusal_is_ones_own(shared: PostgresPlace) -> None:
    store = Slow(shared.server.url(), schema=shared.schema)
    ledger = opened(Ledger(store))
    before = store.commits

    def ask(number: int) -> str:
        try:
            charge = ledger.charge(HEALTH, pure(int(number % 4 == 3)), f"{number}")
        except BudgetExceeded:
            return "refused"
        return ledger.complete(charge, f"answer {number}".encode()).decode()

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(32)))
    free = [f"answer {n}" for n in range(32) if n % 4 != 3]
    assert [a for n, a in enumerate(answers) if n % 4 != 3] == free
    assert sum(a != "refused" for n, a in enumerate(answers) if n % 4 == 3) == 1
    assert store.commits - before < 30
    assert ledger.spent(HEALTH) == PureDP(1)
    assert ledger.check().sound
    ledger.close()


def test_a_commit_that_fails_fails_for_all_who_share_it(shared: PostgresPlace) -> None:
    store = Slow(shared.server.url(), schema=shared.schema)
    ledger = opened(Ledger(store))
    before = entries(shared)
    store.failure = psycopg.errors.DiskFull("no room")

    def ask(number: int) -> None:
        with pytest.raises(LedgerUnavailable):
            ledger.charge(HEALTH, pure(1, 100), f"{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert entries(shared) == before
    store.failure = None
    with ThreadPoolExecutor(8) as pool:
        assert all(charge.fresh for charge in pool.map(lambda n: ledger.charge(HEALTH, pure(1, 100), f"{n}"), range(8)))
    assert ledger.spent(HEALTH) == PureDP(F(8, 100))
    assert ledger.check().sound
    ledger.close()


def test_readers_beyond_the_pool_wait_for_a_connection(shared: PostgresPlace) -> None:
    ledger = opened(shared.open())
    with ThreadPoolExecutor(40) as pool:
        assert set(pool.map(lambda _: ledger.spent(HEALTH), range(200))) == {PureDP(0)}
    [(connections,)] = shared.rows("SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'discreet ledger'")
    assert connections <= 40

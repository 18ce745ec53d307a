"""Ways to get an answer from books on a server without paying for it: each ends in an error, or is found."""

import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from tests.ledger.places import ANN, HEALTH, PostgresPlace, opened, pure
from tests.ledger.servers import Server, running

from discreet.charging.signing_keys import Custody
from discreet.core.errors import BudgetExceeded
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, LedgerDamaged, LedgerUnavailable
from discreet.ledger.stores.postgres.store import APPLICATION, PostgresStore

_NUMBERS = count()


@pytest.fixture
def books(shared: PostgresPlace) -> Ledger:
    return opened(shared.open())


@pytest.fixture
def database() -> Iterator[tuple[Server, str]]:
    """An empty database, which can be taken away and put back."""
    server, name = running(), f"intrusion_{next(_NUMBERS)}"
    server.execute(f"CREATE DATABASE {name}")
    yield server, name
    server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"DROP DATABASE IF EXISTS {name}_copy WITH (FORCE)")


VANISHING = "CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
FORGETTING = (
    "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.state := OLD.state; RETURN NEW; END'"
)


@pytest.mark.parametrize(
    "statements",
    [
        (VANISHING, "CREATE TRIGGER a BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION vanish()"),
        (VANISHING, "CREATE TRIGGER a BEFORE INSERT ON charges FOR EACH ROW EXECUTE FUNCTION vanish()"),
        (FORGETTING, "CREATE TRIGGER a BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION forget()"),
        ("CREATE RULE a AS ON INSERT TO charges DO INSTEAD NOTHING",),
        ("CREATE RULE a AS ON UPDATE TO accounts DO INSTEAD NOTHING",),
        ("ALTER TABLE entries ENABLE ROW LEVEL SECURITY",),
        ("ALTER TABLE entries SET UNLOGGED",),
    ],
)
def test_tables_that_swallow_what_is_written_are_not_written_to(
    shared: PostgresPlace, books: Ledger, statements: tuple[str, ...]
) -> None:
    shared.execute(*statements)
    with pytest.raises(LedgerDamaged, match="not as they were made"):
        shared.open().charge(ANN, pure(1, 8), "q")
    assert not books.check().sound


@pytest.mark.parametrize("table", ["entries", "charges"])
def test_rows_that_vanish_in_the_middle_of_a_session_are_missed_at_once(
    shared: PostgresPlace, books: Ledger, table: str
) -> None:
    books.charge(ANN, pure(1, 100), "before")
    shared.execute(VANISHING, f"CREATE TRIGGER a BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION vanish()")
    with pytest.raises(LedgerDamaged, match="did not write"):
        books.charge(ANN, pure(1, 8), "q")


def test_names_that_stand_before_ours_are_not_read(shared: PostgresPlace, books: Ledger, tmp_path: Path) -> None:
    """Tables of the same names in other schemas, also temporary ones, and a path given with the address."""
    shared.execute("CREATE SCHEMA IF NOT EXISTS decoy", "CREATE TABLE IF NOT EXISTS decoy.accounts (path TEXT)")
    url = f"{shared.server.url()}?options=-csearch_path%3Dpg_temp%2Cdecoy"
    store = PostgresStore(url, schema=shared.schema)
    with Ledger(store) as ledger:
        with store._connections.borrowed() as connection:
            connection.execute("CREATE TEMPORARY TABLE accounts (path TEXT)")
            connection.execute("CREATE TEMPORARY TABLE charges (path TEXT)")
        assert ledger.charge(ANN, pure(1, 8), "q").fresh
        assert ledger.spent(HEALTH) == books.spent(HEALTH) == PureDP("0.125")
    assert books.check().sound


def test_a_lock_or_a_transaction_that_is_left_open_stops_writers_and_lets_nobody_through(
    shared: PostgresPlace, books: Ledger
) -> None:
    with Ledger(shared.store(patience=0.2)) as ledger, closing(shared.connect()) as intruder:
        for held in (
            f"SELECT pg_advisory_lock({APPLICATION}, hashtext('{shared.schema}'))",
            "LOCK TABLE entries",
            "UPDATE head SET hash = hash",
        ):
            with intruder.transaction(force_rollback=True):
                intruder.execute(held.encode())
                with pytest.raises(LedgerUnavailable, match="others have been writing"):
                    ledger.charge(ANN, pure(1, 8), "q")
                intruder.execute("SELECT pg_advisory_unlock_all()")
    assert books.spent(HEALTH) == PureDP(0)
    assert books.charge(ANN, pure(1, 8), "q").fresh
    assert books.check().sound


def test_writers_that_know_of_no_lock_cannot_both_go_on_from_one_state(
    shared: PostgresPlace, books: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version might take another lock: the numbers of the entries alone let only one of them through."""
    monkeypatch.setattr(
        "discreet.ledger.stores.postgres.store._LOCK",
        ("SELECT current_setting('fsync'), current_setting('synchronous_commit')", ()),
    )
    barrier, admitted, refused = threading.Barrier(2, timeout=900), [], []

    def write(who: int) -> None:
        with Ledger(shared.store()) as ledger:
            for number in range(10):
                barrier.wait()
                try:
                    ledger.charge(HEALTH, pure(1, 10), f"{who}: {number}")
                    admitted.append(who)
                except (LedgerDamaged, LedgerUnavailable, BudgetExceeded) as refusal:
                    refused.append(refusal)

    writers = [threading.Thread(target=write, args=(who,)) for who in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)
    assert len(admitted) + len(refused) == 20
    assert books.spent(HEALTH) == PureDP(f"{len(admitted)}/10")
    assert len(admitted) <= 10
    assert books.check().sound


@pytest.mark.parametrize("lacking", ["INSERT ON entries", "INSERT ON charges", "UPDATE ON accounts", "UPDATE ON head"])
def test_a_role_that_lacks_a_right_charges_nothing_at_all(shared: PostgresPlace, books: Ledger, lacking: str) -> None:
    shared.execute("CREATE ROLE intern LOGIN", f"GRANT USAGE ON SCHEMA {shared.schema} TO intern")
    try:
        shared.execute(
            f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {shared.schema} TO intern",
            "GRANT UPDATE ON head, accounts TO intern",
            f"REVOKE {lacking} FROM intern",
        )
        with Ledger(PostgresStore(shared.server.url("intern"), schema=shared.schema)) as ledger:
            with pytest.raises(LedgerUnavailable, match="permission was denied"):
                ledger.charge(ANN, pure(1, 8), "q")
            assert ledger.spent(HEALTH) == PureDP(0)
        assert books.check().sound
    finally:
        shared.execute("DROP OWNED BY intern", "DROP ROLE intern")


def test_sums_that_somebody_lowers_are_found_by_a_check(shared: PostgresPlace, books: Ledger) -> None:
    """Whoever has the rights of a server that charges can do that; the chain of entries says otherwise."""
    [(before,)] = shared.rows("SELECT state FROM accounts WHERE path = '[\"health\"]'")
    books.charge(HEALTH, pure(1, 2), "q")
    with closing(shared.connect()) as clerk:
        clerk.execute("UPDATE accounts SET state = %s WHERE path = '[\"health\"]'", (before,))
    assert not books.check().sound


def test_another_database_in_the_place_of_the_books_is_noticed(database: tuple[Server, str], tmp_path: Path) -> None:
    """An empty one would have all of the budget again."""
    server, name = database
    url = server.url(database=name)
    with Ledger.at(url) as ledger:
        Custody.of(ledger, url, tmp_path / "key")
        opened(ledger)
    server.execute(f"DROP DATABASE {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    with Ledger.at(url) as ledger, pytest.raises(LedgerDamaged, match="another one"):
        Custody.of(ledger, url, tmp_path / "key")


def test_a_copy_that_is_put_back_is_noticed_by_an_open_ledger_and_by_a_later_one(
    database: tuple[Server, str], tmp_path: Path
) -> None:
    server, name = database
    url = server.url(database=name)
    with Ledger.at(url) as ledger:
        opened(ledger)
        ledger.close()
        server.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}")
    with Ledger.at(url) as ledger:
        custody = Custody.of(ledger, url, tmp_path / "key")
        ledger.charge(ANN, pure(1, 8), "q")
        custody.remember(ledger.seen)
        server.execute(f"DROP DATABASE {name} WITH (FORCE)", f"ALTER DATABASE {name}_copy RENAME TO {name}")
        with pytest.raises(LedgerDamaged, match="old copy"):
            ledger.charge(ANN, pure(1, 8), "p")
    with Ledger.at(url) as ledger, pytest.raises(LedgerDamaged, match="old copy"):
        Custody.of(ledger, url, tmp_path / "key")

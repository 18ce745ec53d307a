"""Books of an older schema are brought up to date by whoever opens them: whole or not at all, once, and on record."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.ledger.places import UNIT, Place, PostgresPlace, SQLitePlace, pure
from tests.ledger.servers import PASSWORD
from tests.ledger.test_stored_books import restored

from discreet.core.losses import PureDP
from discreet.ledger import Entry, Head, Ledger, LedgerUnavailable, migrate
from discreet.ledger.stores.postgres.store import PostgresStore
from discreet.ledger.stores.schema import VERSION

FORK = multiprocessing.get_context("fork")
OLD = "schema_1"
SCHOOLS = ("schools",)
STEPPING = {"_step_up", "_bring_up", "record"}
"""The functions that bring books up to date."""


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Books of the first schema."""
    with ExitStack() as handles:
        yield restored(request.param, OLD, tmp_path, handles)


def version_of(place: Place) -> int:
    """The schema of the tables, as the store has it."""
    if isinstance(place, SQLitePlace):
        return int(place.rows("PRAGMA user_version")[0][0])
    mark = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = current_schema()"
    return int(str(place.rows(mark)[0][0]).rpartition(" ")[2])


def steps_in(ledger: Ledger) -> list[tuple[int, int]]:
    return [(e.content["from"], e.content["to"]) for e in ledger.entries() if e.content["kind"] == "schema"]


ALL = [(version, version + 1) for version in range(1, VERSION)]


def test_every_step_is_on_record_once(old: Place) -> None:
    assert version_of(old) == 1
    ledger = old.open()
    assert version_of(old) == VERSION
    assert steps_in(ledger) == ALL
    assert steps_in(old.open()) == ALL
    assert ledger.charge(SCHOOLS, pure(1, 16), "afterwards").fresh
    assert ledger.check().sound


def test_new_books_have_no_steps(place: Place) -> None:
    ledger = place.open()
    assert version_of(place) == VERSION
    assert steps_in(ledger) == []
    assert ledger.check().sound


def killed_at(line: int, place: Place) -> bool:
    """Whether a process that opens the books dies, when it is killed at this line of all that it runs to bring them up
    to date; False if it does not run so many."""

    def opens() -> None:
        left = line

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal left
            if frame.f_code.co_name not in STEPPING:
                return None
            if event == "line":
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        place.store().close()
        sys.settrace(None)
        os._exit(0)

    child = FORK.Process(target=opens)
    child.start()
    child.join(300)
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode != 0


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_whoever_dies_on_the_way_leaves_the_old_schema_or_the_new_one(kind: str, tmp_path: Path) -> None:
    left: list[int] = []
    for line in range(60):
        folder = tmp_path / str(line)
        folder.mkdir()
        with ExitStack() as handles:
            place = restored(kind, OLD, folder, handles)
            if not killed_at(line, place):
                break
            left.append(version_of(place))
            charges = place.rows("SELECT COUNT(*) FROM charges")
            ledger = place.open()
            assert version_of(place) == VERSION
            assert steps_in(ledger) == ALL
            assert place.rows("SELECT COUNT(*) FROM charges") == charges
            assert ledger.check().sound
            assert ledger.charge(SCHOOLS, pure(1, 16), "afterwards").fresh
    assert len(left) > 8
    assert left[0] == 1
    assert left == sorted(left)


def test_many_that_open_at_once_step_up_once(old: Place) -> None:
    def opens(number: int) -> None:
        with Ledger(old.store()) as ledger:
            ledger.charge(SCHOOLS, pure(1, 100), f"{number}")

    children = [FORK.Process(target=opens, args=(number,)) for number in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0] * 6
    ledger = old.open()
    assert steps_in(ledger) == ALL
    assert len([e for e in ledger.entries() if e.content["kind"] == "charge"]) == 5 + 6
    assert ledger.check().sound


def test_a_process_that_has_the_books_open_stops_when_a_newer_version_changes_them(place: Place) -> None:
    ledger = place.open()
    ledger.open(SCHOOLS, budget=PureDP(1), unit=UNIT, source="s")
    if isinstance(place, SQLitePlace):
        place.execute(f"PRAGMA user_version={VERSION + 1}")
        refused: Any = LedgerUnavailable
    else:
        assert isinstance(place, PostgresPlace)
        place.execute(f"COMMENT ON SCHEMA {place.schema} IS 'discreet ledger, schema {VERSION + 1}'")
        refused = Exception
    for use in (lambda: ledger.charge(SCHOOLS, pure(1, 8), "q"), lambda: ledger.spent(SCHOOLS)):
        with pytest.raises(refused, match=f"schema {VERSION + 1}"):
            use()
    assert place.rows("SELECT COUNT(*) FROM charges") == [(0,)]


def test_statements_of_the_first_version_fail_on_later_books(old: Place) -> None:
    """So a process of that version that has the books open writes nothing more."""
    old.open()
    with pytest.raises(Exception, match="request"):
        old.rows("SELECT sequence, dataset, path, question, request, time FROM charges")


def test_books_that_were_moved_elsewhere_stay_closed(old: Place, tmp_path: Path) -> None:
    """Their chain has ended with the move; the tables are brought up to date without a further entry."""
    with ExitStack() as handles:
        target = SQLitePlace(tmp_path, handles, "new.db")
        with closing(old.store()) as source, closing(target.store()) as place:
            assert migrate(source, place).sound
        assert steps_in(target.open()) == ALL
        _step_back(old)
        former = old.open()
        assert version_of(old) == VERSION
        assert [e.content["kind"] for e in former.entries()][-2:] == ["move", "settle"]
        with pytest.raises(LedgerUnavailable, match="moved to"):
            former.charge(SCHOOLS, pure(1, 16), "q")
        assert former.check().sound


def _step_back(place: Place) -> None:
    """The tables as the first schema has them."""
    place.execute("ALTER TABLE charges RENAME COLUMN run TO request", "ALTER TABLE accounts DROP COLUMN answers")
    if isinstance(place, SQLitePlace):
        place.execute("PRAGMA user_version=1")
    else:
        assert isinstance(place, PostgresPlace)
        place.execute(f"COMMENT ON SCHEMA {place.schema} IS 'discreet ledger, schema 1'")


def test_a_role_that_may_only_charge_is_told_who_must_open_them(tmp_path: Path) -> None:
    with ExitStack() as handles:
        place = restored("postgres", OLD, tmp_path, handles)
        assert isinstance(place, PostgresPlace)
        role = f"clerk_{place.schema}"
        place.server.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        grants = (
            f"GRANT USAGE ON SCHEMA {place.schema} TO {role}",
            f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {place.schema} TO {role}",
            f"GRANT UPDATE ON {place.schema}.head, {place.schema}.accounts TO {role}",
        )
        place.server.execute(*grants)
        try:
            with pytest.raises(LedgerUnavailable, match="it once as the role that owns them"):
                PostgresStore(place.server.url(role), schema=place.schema)
            assert version_of(place) == 1
            place.open()
            with Ledger(PostgresStore(place.server.url(role), schema=place.schema)) as ledger:
                assert ledger.charge(SCHOOLS, pure(1, 16), "as before").fresh
        finally:
            place.server.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.parametrize(
    "change", [{"from": 2, "to": 3}, {"from": 1, "to": 3}, {"from": 0, "to": 1}, {"from": "1", "to": 2}]
)
def test_steps_that_cannot_have_been_are_found(old: Place, change: dict[str, Any]) -> None:
    last = list(old.open().entries())[-1]
    said = last.content | change
    forged = Entry.after(Head(last.sequence - 1, said["previous"]), said)
    old.execute(
        f"UPDATE entries SET text = '{forged.text}', hash = '{forged.hash}' WHERE sequence = {forged.sequence}",
        f"UPDATE head SET hash = '{forged.hash}'",
    )
    fault = old.open().check().fault
    assert fault is not None
    assert fault.sequence == forged.sequence

"""Books that are moved: every hash is kept, and nobody can spend from two copies."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, Place, PostgresPlace, SQLitePlace, opened, pure

from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, LedgerDamaged, LedgerUnavailable, migrate, migration
from discreet.ledger.stores.store import Books, Store

KINDS = {"file": SQLitePlace, "server": PostgresPlace}


@pytest.fixture(params=["file-server", "server-file", "file-file", "server-server"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    """A ledger with charges, releases and an amendment, and an empty place."""
    with ExitStack() as handles:
        old, new = (KINDS[kind](tmp_path / str(i), handles) for i, kind in enumerate(request.param.split("-")))
        for i in range(2):
            (tmp_path / str(i)).mkdir()
        ledger = opened(old.open())
        ledger.complete(ledger.charge(ANN, pure(1, 8), "a"), b"\x00forty-two\xff")
        ledger.amend(HEALTH, PureDP("0.75"), note="less, é")
        ledger.attach(HEALTH, "sha256:2e")
        ledger.charge(BOB, pure(1, 16), "open question")
        yield old, new


def moved(old: Place, new: Place) -> None:
    with closing(old.store()) as source, closing(new.store()) as target:
        assert migrate(source, target).sound


def test_everything_arrives_and_goes_on(places: tuple[Place, Place]) -> None:
    old, new = places
    before, former = [entry.text for entry in old.open().entries()], old.open()
    moved(old, new)
    ledger = new.open()
    assert ledger.id == former.id
    assert [entry.text for entry in ledger.entries()][: len(before)] == before
    assert [e.content["kind"] for e in ledger.entries(since=len(before))] == ["move", "arrive"]
    assert ledger.check(former.head()).sound
    assert former.check().sound
    assert (ledger.spent(HEALTH), ledger.remaining(HEALTH)) == (PureDP("0.1875"), PureDP("0.5625"))
    assert ledger.replay(ANN, "a") == b"\x00forty-two\xff"
    charge = ledger.charge(BOB, pure(1, 16), "open question")
    assert charge.fresh
    assert ledger.complete(charge, b"7") == b"7"
    with pytest.raises(BudgetExceeded):
        ledger.charge(HEALTH, pure(3, 4), "too much")
    assert ledger.check().sound


def test_old_books_answer_and_charge_nothing(places: tuple[Place, Place]) -> None:
    old, new = places
    inside = old.open()
    charge = inside.charge(BOB, pure(1, 32), "unfinished")
    moved(old, new)
    for ledger in (inside, old.open()):
        for write in (
            lambda ledger=ledger: ledger.charge(ANN, pure(1, 16), "new"),
            lambda ledger=ledger: ledger.complete(charge, b"8"),
            lambda ledger=ledger: ledger.amend(HEALTH, PureDP(3)),
            lambda ledger=ledger: ledger.attach(HEALTH, "sha256:9a"),
            lambda ledger=ledger: ledger.open(("health", "new")),
        ):
            with pytest.raises(LedgerUnavailable, match="moved to"):
                write()
        assert ledger.replay(ANN, "a") == b"\x00forty-two\xff"
        assert ledger.spent(HEALTH) == PureDP("0.21875")


def test_only_empty_places_are_moved_to(places: tuple[Place, Place]) -> None:
    old, new = places
    opened(new.open())
    before = old.open().head()
    with closing(old.store()) as source, closing(new.store()) as target:
        for place in (target, source):
            with pytest.raises(InvalidArgument, match="empty"):
                migrate(source, place)
    assert old.open().head() == before
    assert old.open().charge(ANN, pure(1, 16), "still here").fresh


def test_damaged_books_are_not_moved(places: tuple[Place, Place]) -> None:
    old, new = places
    old.execute("UPDATE entries SET text = replace(text, '1/8', '1/9') WHERE sequence = 6")
    with closing(old.store()) as source, closing(new.store()) as target:
        with pytest.raises(LedgerDamaged, match="entry 6"):
            migrate(source, target)
        with target.reading() as books:
            assert books.head().sequence == 0


def test_who_dies_between_leaves_closed_books_that_are_moved_again(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, new = places

    def dying(source: Store, books: Books) -> None:
        copy(source, books)
        raise KeyboardInterrupt

    copy = migration._copy
    with monkeypatch.context() as patch, closing(old.store()) as source, closing(new.store()) as target:
        patch.setattr(migration, "_copy", dying)
        with pytest.raises(KeyboardInterrupt):
            migrate(source, target)
        with target.reading() as books:
            assert books.head().sequence == 0
    with pytest.raises(LedgerUnavailable, match="moved to"):
        old.open().charge(ANN, pure(1, 16), "new")
    elsewhere = SQLitePlace(tmp_path, ExitStack())
    with pytest.raises(InvalidArgument, match="where these books were moved"):
        moved(old, elsewhere)
    moved(old, new)
    moved(old, new)
    assert new.open().charge(ANN, pure(1, 16), "new").fresh


def test_books_that_arrived_are_not_copied_again_when_they_went_elsewhere(tmp_path: Path) -> None:
    old, new = SQLitePlace(tmp_path, ExitStack()), SQLitePlace(tmp_path, ExitStack(), "new.db")
    with Ledger(old.store()) as ledger:
        opened(ledger)
    moved(old, new)
    for file in tmp_path.glob("new.db*"):
        file.rename(tmp_path / file.name.replace("new", "elsewhere"))
    with pytest.raises(InvalidArgument, match="wherever they are now"):
        moved(old, new)
    with Ledger(old.store()) as ledger:
        assert ledger.check().sound
        with pytest.raises(LedgerUnavailable, match="moved to"):
            ledger.charge(ANN, pure(1, 8), "a")


def test_who_dies_before_the_old_books_know_of_the_arrival_moves_again(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = places

    def dying(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(migration, "_settle", dying)
        with pytest.raises(KeyboardInterrupt):
            moved(old, new)
    assert new.open().charge(ANN, pure(1, 16), "new").fresh
    moved(old, new)
    kinds = [entry.content["kind"] for entry in old.open().entries()]
    assert kinds[-2:] == ["move", "settle"]


def test_a_copy_that_differs_is_not_taken_over(places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = places

    def careless(source: Store, books: Books) -> None:
        copy(source, books)
        books.put_states({HEALTH: '{"sums":[["0"]]}'})

    copy = migration._copy
    monkeypatch.setattr(migration, "_copy", careless)
    with closing(old.store()) as source, closing(new.store()) as target:
        with pytest.raises(LedgerDamaged, match="health"):
            migrate(source, target)
        with target.reading() as books:
            assert books.head().sequence == 0


def test_books_can_go_there_and_back(tmp_path: Path, shared: PostgresPlace) -> None:
    first, last = SQLitePlace(tmp_path, ExitStack()), SQLitePlace(tmp_path, ExitStack(), "last.db")
    with Ledger(first.store()) as ledger:
        opened(ledger).charge(ANN, pure(1, 8), "a")
    moved(first, shared)
    moved(shared, last)
    with Ledger(last.store()) as ledger:
        assert [e.content["kind"] for e in ledger.entries()][-5:] == ["charge", "move", "arrive", "move", "arrive"]
        assert ledger.charge(ANN, pure(1, 8), "b").fresh
        assert ledger.check().sound

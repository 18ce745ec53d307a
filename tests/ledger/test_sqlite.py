"""Books in a file: what happens to the file, to the disk under it, and to whoever opens the wrong one."""

import multiprocessing
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, opened, pure

from discreet.charging.signing_keys import Custody
from discreet.core.losses import PureDP
from discreet.ledger import Ledger, LedgerDamaged, LedgerUnavailable
from discreet.ledger.stores.sqlite.store import ENTRIES_BETWEEN_CHECKPOINTS, SQLiteStore

FORK = multiprocessing.get_context("fork")


def in_a_process(task: Callable[[], object]) -> int:
    """Runs the task in a fork; its exit code."""
    process = FORK.Process(target=task, daemon=True)
    process.start()
    process.join(300)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode


def made(path: Path) -> Path:
    """A closed ledger with three charges, one of them answered."""
    with Ledger.at(path) as ledger:
        opened(ledger)
        ledger.complete(ledger.charge(ANN, pure(1, 8), "a"), b"42")
        ledger.charge(BOB, pure(1, 16), "b")
        ledger.charge(HEALTH, pure(1, 32), "c")
    return path


def logged(path: Path, number: int) -> list[int]:
    """Charges from a process that then dies with all of them in the log; the sizes of the log after each."""
    sizes = path.with_suffix(".sizes")

    def write() -> None:
        ledger = Ledger.at(path)
        for i in range(number):
            charge = ledger.charge(BOB, pure(1, 1000), f"logged {i}")
            if i % 2:
                ledger.complete(charge, b"x" * 3000)
            with sizes.open("a") as file:
                file.write(f"{ledger.head().sequence} {os.path.getsize(f'{path}-wal')}\n")
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_process(write) == -signal.SIGKILL
    return [int(line.split()[1]) for line in sizes.read_text().splitlines()]


def test_only_the_owner_can_read_a_new_ledger(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    before = os.umask(0)
    try:
        with Ledger.at(path) as ledger:
            opened(ledger)
            files = sorted(tmp_path.iterdir())
            assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * len(files) == [0o600] * 4
    finally:
        os.umask(before)


def test_a_commit_is_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "books.db")
    with store.writing() as books:
        connection = books._connection
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    store.close()


def test_a_power_cut_at_any_byte_of_the_log_leaves_sound_books(tmp_path: Path) -> None:
    """Whatever part of the log reached the disk, what is read is the chain up to some entry; and with all that was
    acknowledged on the disk, up to the last one acknowledged."""
    path = made(tmp_path / "books.db")
    sizes = logged(path, 8)
    log = Path(f"{path}-wal").read_bytes()
    with Ledger.at(shutil.copy(path, tmp_path / "before.db")) as ledger:
        start = ledger.head().sequence
    chance = random.Random(3)
    frames = range(0, len(log) + 1, 4096 + 24)
    cuts = sorted({*sizes, *frames, *(chance.randrange(len(log)) for _ in range(40))})
    copy, heads = tmp_path / "copy.db", []
    for cut in cuts:
        shutil.copy(path, copy)
        Path(f"{copy}-wal").write_bytes(log[:cut])
        with Ledger.at(copy) as ledger:
            assert ledger.check().sound
            heads.append(ledger.head().sequence)
    assert heads == sorted(heads)
    assert heads[0] == start
    ends = dict(zip(cuts, heads, strict=True))
    assert [ends[size] for size in sizes] == [start + 1 + i + (i + 1) // 2 for i in range(8)]


def test_garbage_in_the_log_never_becomes_an_entry(tmp_path: Path) -> None:
    path = made(tmp_path / "books.db")
    sizes = logged(path, 8)
    log = bytearray(Path(f"{path}-wal").read_bytes()[: sizes[-1]])
    with Ledger.at(shutil.copytree(tmp_path, tmp_path / "whole") / "books.db") as ledger:
        entries = [entry.text for entry in ledger.entries()]
    chance, copy = random.Random(4), tmp_path / "copy.db"
    for _ in range(40):
        place = chance.randrange(32, len(log))
        broken = bytearray(log)
        broken[place] ^= 1 << chance.randrange(8)
        shutil.copy(path, copy)
        Path(f"{copy}-wal").write_bytes(broken)
        with Ledger.at(copy) as ledger:
            assert ledger.check().sound
            found = [entry.text for entry in ledger.entries()]
            assert found == entries[: len(found)]


def test_the_log_is_moved_into_the_file_from_time_to_time(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    with Ledger.at(path) as ledger:
        opened(ledger)
        for i in range(2 * ENTRIES_BETWEEN_CHECKPOINTS):
            ledger.charge(BOB, pure(1, 10**6), f"{i}")
        assert path.stat().st_size > 100_000
        assert os.path.getsize(f"{path}-wal") < 8_000_000
        assert ledger.check().sound


class Cramped(SQLiteStore):
    """A store on a disk that is nearly full."""

    pages = 40

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        connection.execute(f"PRAGMA max_page_count={self.pages}")
        return connection


def test_a_full_disk_charges_nothing_and_harms_nothing(tmp_path: Path) -> None:
    ledger = opened(Ledger(Cramped(tmp_path / "books.db")))
    done = 0

    def charge_on() -> None:
        nonlocal done
        while True:
            ledger.charge(BOB, pure(1, 10**6), f"{done}", note="x" * 2000)
            done += 1

    with pytest.raises(LedgerUnavailable, match="space"):
        charge_on()
    assert done > 3
    assert ledger.spent(HEALTH) == PureDP(done * pure(1, 10**6)[0].epsilon)
    assert ledger.check().sound
    ledger.close()
    with Ledger.at(tmp_path / "books.db") as roomy:
        assert roomy.charge(BOB, pure(1, 10**6), f"{done}").fresh
        assert roomy.check().sound


def test_a_release_that_does_not_fit_on_the_disk_is_not_released(tmp_path: Path) -> None:
    ledger = opened(Ledger(Cramped(tmp_path / "books.db")))
    charge = ledger.charge(BOB, pure(1, 8), "q")
    with pytest.raises(LedgerUnavailable, match="space"):
        ledger.complete(charge, b"x" * 10**6)
    assert ledger.replay(BOB, "q") is None
    assert ledger.complete(charge, b"short") == b"short"
    assert ledger.spent(BOB) == PureDP("0.125")
    assert ledger.check().sound
    ledger.close()


def test_writes_that_the_system_refuses_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """The limit on the size of files makes the very writes of SQLite fail, in the middle of a commit."""
    path = made(tmp_path / "books.db")
    acknowledged = tmp_path / "acknowledged"

    def write() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        ledger = Ledger.at(path)
        for i in range(1000):
            try:
                charge = ledger.charge(BOB, pure(1, 10**6), f"limited {i}")
            except LedgerUnavailable:
                os._exit(17)
            with acknowledged.open("a") as file:
                file.write(f"{charge.sequence} {charge.hash}\n")

    assert in_a_process(write) == 17
    with Ledger.at(path) as ledger:
        assert ledger.check().sound
        hashes = {entry.sequence: entry.hash for entry in ledger.entries()}
        lines = [line.split() for line in acknowledged.read_text().splitlines()]
        assert len(lines) > 3
        assert all(hashes[int(sequence)] == hash for sequence, hash in lines)


def test_a_file_that_may_only_be_read_answers_and_charges_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = made(Path(folder) / "books.db")
        os.chmod(path, 0o444)

        def ask() -> None:
            if os.geteuid() == 0:
                os.setuid(65534)
            with Ledger.at(path) as ledger:
                assert ledger.replay(ANN, "a") == b"42"
                assert ledger.open(HEALTH, budget=PureDP(1)) == HEALTH
                assert ledger.check().sound
                with pytest.raises(LedgerUnavailable):
                    ledger.charge(BOB, pure(1, 16), "new")
                with pytest.raises(LedgerUnavailable):
                    ledger.charge(BOB, pure(1, 16), "b")
            os._exit(23)

        assert in_a_process(ask) == 23
        with Ledger.at(path) as ledger:
            assert len(list(ledger.entries())) == 9


def test_a_writer_that_waits_too_long_gives_up_and_charges_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "books.db")
    holder, waiting = SQLiteStore(path), Ledger.at(path, patience=0.05)
    with holder.writing():
        with pytest.raises(LedgerUnavailable, match="others"):
            waiting.charge(BOB, pure(1, 16), "d")
        assert waiting.replay(ANN, "a") == b"42"
    assert waiting.charge(BOB, pure(1, 16), "d").fresh
    with sqlite3.connect(path) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="others"):
            waiting.charge(BOB, pure(1, 16), "e")
    foreign.close()
    holder.close()
    waiting.close()


def test_a_missing_ledger_is_made_only_where_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="no ledger"):
        Ledger.at(tmp_path / "books.db", create=False)
    assert not list(tmp_path.iterdir())
    for place in (tmp_path / "nowhere" / "books.db", tmp_path):
        with pytest.raises(LedgerUnavailable):
            Ledger.at(place)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_text("patient,age\n" * 500), "not a database"),
        (lambda path: path.write_bytes(os.urandom(50_000)), "not a database"),
        (
            lambda path: _execute(path, "PRAGMA user_version=99"),
            "schema 99, and this version",
        ),
        (lambda path: _execute(path, "PRAGMA user_version=0"), "schema 0"),
        (lambda path: _execute(path, "PRAGMA application_id=7"), "something else"),
        (lambda path: _execute(path, "PRAGMA application_id=0", "PRAGMA user_version=0"), "something else"),
        (lambda path: _execute(path, "DROP TABLE head"), "no such table"),
        (lambda path: _execute(path, "DELETE FROM head"), "head"),
        (
            lambda path: _execute(path, """UPDATE entries SET text='{"kind":"ledger","format":2}' WHERE sequence=1"""),
            "2",
        ),
    ],
)
def test_what_is_no_ledger_of_this_version_is_refused(
    tmp_path: Path, spoil: Callable[[Path], object], words: str
) -> None:
    path = made(tmp_path / "books.db")
    spoil(path)
    with pytest.raises(LedgerDamaged, match=words if words != "2" else "format"):
        Ledger.at(path)


def test_a_database_of_something_else_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "survey.db"
    _execute(path, "CREATE TABLE people (age INTEGER)")
    before = path.read_bytes()
    with pytest.raises(LedgerDamaged, match="something else"):
        Ledger.at(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["survey.db"]


def test_an_emptied_file_beside_its_log_is_not_a_new_ledger(tmp_path: Path) -> None:
    path = made(tmp_path / "books.db")
    logged(path, 2)
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match="log is there"):
            Ledger.at(path)
        path.unlink(missing_ok=True)


def test_two_names_for_one_file_are_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "books.db")
    (tmp_path / "link.db").symlink_to(path)
    with Ledger.at(tmp_path / "link.db") as ledger:
        assert ledger.charge(BOB, pure(1, 16), "d").fresh
        assert ledger.check().sound
    os.link(path, tmp_path / "hard.db")
    with pytest.raises(LedgerDamaged, match="second name"):
        Ledger.at(path)


def test_a_file_that_was_exchanged_while_open_is_noticed(tmp_path: Path) -> None:
    path = made(tmp_path / "books.db")
    old = shutil.copy(path, tmp_path / "old.db")
    ledger = Ledger.at(path)
    ledger.charge(BOB, pure(1, 16), "d")
    os.replace(old, path)
    with pytest.raises(LedgerDamaged, match="replaced"):
        ledger.charge(BOB, pure(1, 16), "e")
    path.unlink()
    with pytest.raises(LedgerUnavailable, match="put it back"):
        ledger.charge(BOB, pure(1, 16), "e")
    ledger.close()


def test_an_old_copy_written_over_the_file_is_noticed_by_whoever_saw_more(tmp_path: Path) -> None:
    path = made(tmp_path / "books.db")
    old = path.read_bytes()
    ledger = Ledger.at(path)
    ledger.charge(BOB, pure(1, 16), "d")
    reader = Ledger.at(path)
    noted = reader.head()
    in_a_process(lambda: _rewritten(path, old))
    for call in (lambda: ledger.charge(BOB, pure(1, 16), "e"), lambda: reader.spent(BOB)):
        with pytest.raises(LedgerDamaged):
            call()
    ledger.close()
    reader.close()
    with Ledger.at(path) as later:
        assert later.check().sound
        assert later.check(noted).fault.sequence == noted.sequence


def test_another_history_of_the_same_length_is_noticed(tmp_path: Path) -> None:
    path = made(tmp_path / "books.db")
    shutil.copy(path, tmp_path / "fork.db")
    ledger, other = Ledger.at(path), Ledger.at(tmp_path / "fork.db")
    assert ledger.charge(BOB, pure(1, 16), "d").sequence == other.charge(BOB, pure(1, 32), "e").sequence
    ledger.close()
    ledger._store = other._store
    with pytest.raises(LedgerDamaged, match="gone or changed"):
        ledger.spent(BOB)
    other.close()


def _rewritten(path: Path, content: bytes) -> None:
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    with path.open("r+b") as file:
        file.truncate()
        file.write(content)


def _execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_all_that_lies_beside_the_books_is_known_to_belong_to_them(tmp_path: Path) -> None:
    with Ledger.at(tmp_path / "books.db") as ledger:
        custody = Custody.of(ledger, tmp_path / "books.db")
        opened(ledger).charge(BOB, pure(1, 16), "q")
        found = {*tmp_path.iterdir()}
        assert len(found) == 6
        assert found <= {*custody.files(ledger)}

"""A check of the books finds whatever was changed in them behind the ledger's back."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.places import ANN, BOB, HEALTH, UNIT, opened, pure

from discreet.core.losses import PureDP
from discreet.ledger import Head, Ledger, LedgerDamaged, LedgerUnavailable, Report
from discreet.ledger.notation import canonical, digest
from discreet.ledger.rows import SCHEMA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger: entries 1 to 5 open accounts, 6 and 7 are a charge and its release, then a charge, an
    amendment, another source, a second data set and a charge to it."""
    with Ledger.at(tmp_path / "books.db") as ledger:
        opened(ledger)
        ledger.complete(ledger.charge(ANN, pure(1, 8), "a", request="r"), b"forty-two")
        ledger.charge(BOB, pure(1, 4), "b", note="hello")
        ledger.amend(HEALTH, PureDP(2), note="more")
        ledger.attach(HEALTH, "sha256:2e")
        ledger.open(("other",), budget=PureDP(1), unit=UNIT, source="sha256:3d")
        ledger.charge(("other",), pure(1, 2), "a")
        assert ledger.check().sound
    return tmp_path / "books.db"


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.executescript(statement)
    connection.commit()
    connection.close()


def checked(path: Path, anchor: Head | None = None) -> Report:
    with Ledger.at(path) as ledger:
        return ledger.check(anchor)


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Changes the entries and makes the chain right again, as an intruder who knows the format would."""
    connection = sqlite3.connect(path)
    contents = [json.loads(text) for (text,) in connection.execute("SELECT text FROM entries ORDER BY sequence")]
    connection.execute("DELETE FROM entries")
    previous = ""
    for number, content in enumerate(change(contents), 1):
        text = canonical(content | {"sequence": number, "previous": previous})
        previous = digest(text)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, text, previous))
    connection.execute("UPDATE head SET sequence = ?, hash = ?", (number, previous))
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("UPDATE entries SET text = replace(text, '\"1/8\"', '\"1/9\"') WHERE sequence = 6", 6),
        ("UPDATE entries SET text = replace(text, 'hello', 'Hello') WHERE sequence = 8", 8),
        ("UPDATE entries SET text = text || ' ' WHERE sequence = 3", 3),
        ("UPDATE entries SET text = '' WHERE sequence = 3", 3),
        ("UPDATE entries SET text = CAST(text AS BLOB) WHERE sequence = 3", None),
        ("UPDATE entries SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE sequence = 8", 8),
        ("UPDATE entries SET sequence = 99 WHERE sequence = 12", 12),
        ("DELETE FROM entries WHERE sequence = 6", 6),
        ("DELETE FROM entries WHERE sequence = 12", 12),
        ("INSERT INTO entries VALUES (0, '{}', '')", None),
        ("INSERT INTO entries SELECT 13, text, hash FROM entries WHERE sequence = 12", 13),
        ("UPDATE head SET sequence = 11, hash = (SELECT hash FROM entries WHERE sequence = 11)", 13),
        ("UPDATE head SET hash = ''", 13),
        ("UPDATE accounts SET state = replace(state, '1/8', '1/9') WHERE path LIKE '%ann%'", None),
        ("UPDATE accounts SET state = replace(state, '3/8', '0') WHERE path = '[\"health\"]'", None),
        ("UPDATE accounts SET budget = replace(budget, '\"2\"', '\"9\"') WHERE path = '[\"health\"]'", None),
        ("UPDATE accounts SET promised = budget || ' ' WHERE path = '[\"other\"]'", None),
        ("UPDATE accounts SET promised = replace(promised, '\"2\"', '\"1\"') WHERE path = '[\"health\"]'", None),
        ("UPDATE accounts SET unit = replace(unit, 'patient', 'visit')", None),
        ("UPDATE accounts SET budget = NULL WHERE path LIKE '%ann%'", None),
        ("UPDATE accounts SET state = 'nothing'", None),
        ("DELETE FROM accounts WHERE path LIKE '%ann%'", None),
        ("INSERT INTO accounts SELECT '[\"new\"]', budget, promised, unit, state FROM accounts LIMIT 1", None),
        ("UPDATE sources SET source = 'sha256:ff' WHERE source = 'sha256:1f'", None),
        ("DELETE FROM sources WHERE source = 'sha256:2e'", None),
        ("INSERT INTO sources VALUES ('sha256:4c', 'health')", None),
        ("UPDATE charges SET question = replace(question, substr(question, 1, 1), 'x') WHERE sequence = 6", 6),
        ("UPDATE charges SET request = 's' WHERE sequence = 6", 6),
        ("UPDATE charges SET time = '' WHERE sequence = 8", 8),
        ("UPDATE charges SET dataset = 'elsewhere' WHERE sequence = 6", None),
        ("DELETE FROM charges WHERE sequence = 8", 8),
        ("UPDATE releases SET payload = CAST('forty-three' AS BLOB)", 7),
        ("UPDATE releases SET payload = 'forty-two'", None),
        ("UPDATE releases SET sequence = 8", 7),
        ("UPDATE releases SET charge = 8", 7),
        ("DELETE FROM releases", 7),
        ("INSERT INTO releases VALUES (8, 7, x'00')", 7),
        (
            "CREATE TRIGGER refund AFTER UPDATE ON accounts BEGIN"
            " UPDATE accounts SET state = old.state WHERE path = new.path; END;",
            None,
        ),
        ("CREATE TABLE notes (text TEXT)", None),
        ("CREATE VIEW spent AS SELECT state FROM accounts", None),
    ],
)
def test_every_change_behind_the_back_of_the_ledger_is_found(path: Path, statement: str, where: int | None) -> None:
    execute(path, statement)
    report = checked(path)
    assert report.fault is not None, statement
    assert report.fault.what
    if where is not None:
        assert report.fault.sequence == where, report


@pytest.mark.parametrize("number", [6, 8])
def test_a_forged_chain_that_charges_less_than_its_events_cost_is_found(path: Path, number: int) -> None:
    def cheaper(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for state in contents[number - 1]["states"]:
            state["sums"] = [["1/100"]]
        return contents

    rewrite(path, cheaper)
    report = checked(path)
    assert report.fault is not None
    assert report.fault.sequence == number
    assert "less than its events cost" in report.fault.what


def test_a_chain_that_charges_more_than_its_events_cost_is_safe(path: Path) -> None:
    def dearer(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        contents[11]["states"][0]["sums"] = [["3/4"]]
        return contents

    rewrite(path, dearer)
    execute(path, "UPDATE accounts SET state = replace(state, '1/2\"]]', '3/4\"]]') WHERE path = '[\"other\"]'")
    assert checked(path).sound


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (3, {"budget": None}, ""),
        (2, {"unit": None}, "read"),
        (4, {"account": ["health", "flu study"]}, "open already"),
        (4, {"account": ["health", "no study", "ann"]}, "above"),
        (5, {"unit": {"kind": "Row", "neighbours": "add_remove"}}, "unit"),
        (6, {"account": ["health", "flu study", "eve"]}, "read"),
        (6, {"events": [{"kind": "pure", "epsilon": "3"}]}, "refused"),
        (6, {"events": [{"kind": "gaussian", "variance": "1", "squared_sensitivity": "1", "dimension": 1}]}, "refused"),
        (6, {"states": []}, "read"),
        (7, {"charge": 5}, "no charge"),
        (8, {"question": digest("a")}, "question"),
        (8, {"request": "r"}, "request"),
        (9, {"former": {"definition": "PureDP", "epsilon": "3"}}, "another budget"),
        (9, {"budget": {"definition": "PureDP", "epsilon": "1/8"}}, "read"),
        (10, {"source": "sha256:1f"}, "belongs"),
        (10, {"account": ["nowhere"]}, "not open"),
        (11, {"kind": "ledger"}, "begins"),
        (11, {"kind": "gift"}, "read"),
        (1, {"kind": "open"}, "begins"),
    ],
)
def test_entries_that_no_ledger_would_write_are_found(
    path: Path, number: int, change: dict[str, Any], words: str
) -> None:
    def forged(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        contents[number - 1] |= change
        return contents

    rewrite(path, forged)
    if number == 1:
        with pytest.raises(LedgerDamaged):
            checked(path)
        return
    report = checked(path)
    assert report.fault is not None
    assert words in report.fault.what
    assert report.fault.sequence == (number if words else None)


def test_a_second_release_for_one_charge_is_found(path: Path) -> None:
    rewrite(path, lambda contents: [*contents[:7], contents[6], *contents[7:]])
    report = checked(path)
    assert report.fault is not None
    assert (report.fault.sequence, "before" in report.fault.what) == (8, True)


def test_books_cut_back_as_a_whole_are_found_by_an_anchor_only(path: Path, tmp_path: Path) -> None:
    """This is the limit of what a file can prove of itself: an older copy of it is a sound ledger."""
    old = tmp_path / "old.db"
    shutil.copy(path, old)
    with Ledger.at(path) as ledger:
        ledger.charge(BOB, pure(1, 8), "d")
        noted = ledger.head()
    assert checked(old).sound
    report = checked(old, noted)
    assert report.fault is not None
    assert report.fault.sequence == noted.sequence
    rewrite(path, lambda contents: [content | {"note": ""} if "note" in content else content for content in contents])
    assert checked(path).sound
    assert not checked(path, noted).sound


def contents(path: Path) -> list[list[tuple[Any, ...]]]:
    connection = sqlite3.connect(path)
    try:
        return [connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in SCHEMA]
    finally:
        connection.close()


def test_any_bit_of_the_file_that_matters_is_missed_by_nobody(path: Path, tmp_path: Path) -> None:
    """One bit of the file is turned, half of the time within the text of an entry. Either this is found, or every
    table still reads as before: the bit was in unused space."""
    whole, right = path.read_bytes(), contents(path)
    chance, copy = random.Random(5), tmp_path / "copy.db"
    texts = [row[1].encode() for row in right[1]]
    spans = [(whole.index(text), len(text)) for text in texts if text in whole]
    assert len(spans) > 8
    found = 0
    for attempt in range(300):
        start, length = chance.choice(spans) if attempt % 2 else (0, len(whole))
        place = start + chance.randrange(length)
        broken = bytearray(whole)
        broken[place] ^= 1 << chance.randrange(8)
        copy.write_bytes(broken)
        try:
            sound = checked(copy).sound
        except (LedgerDamaged, LedgerUnavailable):
            sound = False
        assert not sound or contents(copy) == right, place
        assert not sound or attempt % 2 == 0, "a changed entry was not found"
        found += not sound
    assert found > 150

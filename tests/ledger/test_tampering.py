"""A check of the books finds whatever was changed in them behind the ledger's back."""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from tests.ledger.places import ANN, BOB, HEALTH, UNIT, Place, PostgresPlace, SQLitePlace, opened, pure

from discreet.core.losses import PureDP
from discreet.ledger import Head, Ledger, LedgerDamaged, LedgerUnavailable, Report
from discreet.ledger.encoding import attempt_key, canonical, digest
from discreet.ledger.stores.schema import structure

P = TypeVar("P", bound=Place)


@pytest.fixture
def books(place: Place) -> Place:
    """A ledger: entries 1 to 5 open accounts, 6 and 7 are a charge and its release, then a charge, an
    amendment, another source, a second data set and a charge to it."""
    return kept(place)


def kept(place: P) -> P:
    with Ledger(place.store()) as ledger:
        opened(ledger)
        ledger.complete(ledger.charge(ANN, pure(1, 8), "a"), b"forty-two")
        ledger.charge(BOB, pure(1, 4), "b", note="hello")
        ledger.amend(HEALTH, PureDP(2), note="more")
        ledger.attach(HEALTH, "sha256:2e")
        ledger.open(("other",), budget=PureDP(1), unit=UNIT, source="sha256:3d")
        ledger.charge(("other",), pure(1, 2), "a")
        assert ledger.check().sound
    return place


def checked(place: Place, anchor: Head | None = None) -> Report:
    with Ledger(place.store()) as ledger:
        return ledger.check(anchor)


def rewrite(place: Place, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Changes the entries and makes the chain right again, as an intruder who knows the format would."""
    contents = [json.loads(text) for (text,) in place.rows("SELECT text FROM entries ORDER BY sequence")]
    statements, previous = ["DELETE FROM entries"], ""
    for number, content in enumerate(change(contents), 1):
        text = canonical(content | {"sequence": number, "previous": previous})
        previous = digest(text)
        statements.append(
            f"INSERT INTO entries VALUES ({number}, '{text.replace(chr(39), chr(39) * 2)}', '{previous}')"
        )
    place.execute(*statements, f"UPDATE head SET sequence = {number}, hash = '{previous}'")


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("UPDATE entries SET text = replace(text, '\"1/8\"', '\"1/9\"') WHERE sequence = 6", 6),
        ("UPDATE entries SET text = replace(text, 'hello', 'Hello') WHERE sequence = 8", 8),
        ("UPDATE entries SET text = text || ' ' WHERE sequence = 3", 3),
        ("UPDATE entries SET text = '' WHERE sequence = 3", 3),
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
        ("INSERT INTO accounts SELECT '[\"new\"]', budget, promised, unit, state, NULL FROM accounts LIMIT 1", None),
        ("UPDATE sources SET source = 'sha256:ff' WHERE source = 'sha256:1f'", None),
        ("DELETE FROM sources WHERE source = 'sha256:2e'", None),
        ("INSERT INTO sources VALUES ('sha256:4c', 'health')", None),
        ("UPDATE charges SET question = replace(question, substr(question, 1, 1), 'x') WHERE sequence = 6", 6),
        ("UPDATE charges SET run = 's' WHERE sequence = 6", 6),
        ("UPDATE charges SET time = '' WHERE sequence = 8", 8),
        ("UPDATE charges SET dataset = 'elsewhere' WHERE sequence = 6", None),
        ("DELETE FROM charges WHERE sequence = 8", 8),
        ("UPDATE releases SET payload = CAST('forty-three' AS BLOB)", 7),
        ("UPDATE releases SET sequence = 8", 7),
        ("UPDATE releases SET charge = 8", 7),
        ("DELETE FROM releases", 7),
        ("INSERT INTO releases VALUES (8, 7, CAST('0' AS BLOB))", 7),
        ("CREATE TABLE notes (text TEXT)", None),
        ("CREATE VIEW spent AS SELECT state FROM accounts", None),
    ],
)
def test_every_change_behind_the_back_of_the_ledger_is_found(books: Place, statement: str, where: int | None) -> None:
    books.execute(statement)
    report = checked(books)
    assert report.fault is not None, statement
    assert report.fault.what
    if where is not None:
        assert report.fault.sequence == where, report


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET text = CAST(text AS BLOB) WHERE sequence = 3",
        "UPDATE releases SET payload = 'forty-two'",
        "CREATE TRIGGER refund AFTER UPDATE ON accounts BEGIN"
        " UPDATE accounts SET state = old.state WHERE path = new.path; END;",
    ],
)
def test_every_change_that_a_file_allows_is_found(file: SQLitePlace, statement: str) -> None:
    kept(file).execute(statement)
    assert checked(file).fault is not None


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER append_only ON entries",
        "ALTER TABLE charges DISABLE TRIGGER append_only",
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER refund BEFORE UPDATE ON accounts FOR EACH ROW"
        " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE RULE lost AS ON INSERT TO charges DO INSTEAD NOTHING",
        "CREATE POLICY few ON charges USING (false)",
        "ALTER TABLE charges DROP CONSTRAINT charges_dataset_question_key",
        "ALTER TABLE charges ALTER COLUMN question DROP NOT NULL",
        'ALTER TABLE entries ALTER COLUMN text TYPE text COLLATE "POSIX"',
        "ALTER TABLE accounts ALTER COLUMN state SET DEFAULT ''",
        "ALTER TABLE entries SET UNLOGGED",
        "CREATE TABLE more () INHERITS (entries)",
    ],
)
def test_every_change_that_a_server_allows_is_found(shared: PostgresPlace, statement: str) -> None:
    kept(shared).execute(statement)
    assert checked(shared).fault is not None


@pytest.mark.parametrize("table", ["entries", "charges", "releases", "sources", "accounts", "head"])
def test_not_even_the_owner_changes_what_is_written_on_a_server(shared: PostgresPlace, table: str) -> None:
    kept(shared)
    statements = [f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"]
    if table not in ("accounts", "head"):
        [column] = shared.rows(
            f"SELECT column_name FROM information_schema.columns WHERE table_schema ="
            f" '{shared.schema}' AND table_name = '{table}' AND ordinal_position = 1"
        )[0]
        statements.append(f"UPDATE {table} SET {column} = {column}")
    with closing(shared.connect()) as connection:
        for statement in statements:
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="append-only"):
                connection.execute(statement)
    assert checked(shared).sound


@pytest.mark.parametrize("number", [6, 8])
def test_a_forged_chain_that_charges_less_than_its_events_cost_is_found(books: Place, number: int) -> None:
    def cheaper(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for state in contents[number - 1]["states"]:
            state["sums"] = [["1/100"]]
        return contents

    rewrite(books, cheaper)
    report = checked(books)
    assert report.fault is not None
    assert report.fault.sequence == number
    assert "less than its events cost" in report.fault.what


def test_a_chain_that_charges_more_than_its_events_cost_is_safe(books: Place) -> None:
    def dearer(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        contents[11]["states"][0]["sums"] = [["3/4"]]
        return contents

    rewrite(books, dearer)
    books.execute("UPDATE accounts SET state = replace(state, '1/2\"]]', '3/4\"]]') WHERE path = '[\"other\"]'")
    assert checked(books).sound


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
        (8, {"attempt": 2, "first": digest("a")}, "key of its attempt"),
        (8, {"question": attempt_key(digest("c"), 2), "attempt": 2, "first": digest("c")}, "was not charged"),
        (8, {"question": attempt_key(digest("a"), 2), "attempt": 2, "first": digest("a")}, "has an outcome"),
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
    books: Place, number: int, change: dict[str, Any], words: str
) -> None:
    def forged(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        contents[number - 1] |= change
        return contents

    rewrite(books, forged)
    if number == 1:
        with pytest.raises(LedgerDamaged):
            checked(books)
        return
    report = checked(books)
    assert report.fault is not None
    assert words in report.fault.what
    assert report.fault.sequence == (number if words else None)


def test_two_charges_for_one_run_are_found(books: Place) -> None:
    def forged(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        contents[7]["request"] = contents[5]["request"]
        return contents

    rewrite(books, forged)
    report = checked(books)
    assert report.fault is not None
    assert "request" in report.fault.what
    assert report.fault.sequence == 8


def test_a_second_release_for_one_charge_is_found(books: Place) -> None:
    rewrite(books, lambda contents: [*contents[:7], contents[6], *contents[7:]])
    report = checked(books)
    assert report.fault is not None
    assert (report.fault.sequence, "before" in report.fault.what) == (8, True)


def test_books_cut_back_as_a_whole_are_found_by_an_anchor_only(file: SQLitePlace, tmp_path: Path) -> None:
    """This is the limit of what a file can prove of itself: an older copy of it is a sound ledger."""
    old = SQLitePlace(tmp_path, ExitStack(), "old.db")
    shutil.copy(kept(file).path, old.path)
    with Ledger.at(file.path) as ledger:
        ledger.charge(BOB, pure(1, 8), "d")
        noted = ledger.head()
    assert checked(old).sound
    report = checked(old, noted)
    assert report.fault is not None
    assert report.fault.sequence == noted.sequence
    rewrite(file, lambda contents: [content | {"note": ""} if "note" in content else content for content in contents])
    assert checked(file).sound
    assert not checked(file, noted).sound


def contents(place: Place) -> list[list[tuple[Any, ...]]]:
    return [place.rows(f"SELECT * FROM {table} ORDER BY 1") for table in structure()]


def test_any_bit_of_the_file_that_matters_is_missed_by_nobody(file: SQLitePlace, tmp_path: Path) -> None:
    """One bit of the file is turned, half of the time within the text of an entry. Either this is found, or every
    table still reads as before: the bit was in unused space."""
    whole, right = kept(file).path.read_bytes(), contents(file)
    chance, copy = random.Random(5), SQLitePlace(tmp_path, ExitStack(), "copy.db")
    texts = [row[1].encode() for row in right[1]]
    spans = [(whole.index(text), len(text)) for text in texts if text in whole]
    assert len(spans) > 8
    found = 0
    for attempt in range(300):
        start, length = chance.choice(spans) if attempt % 2 else (0, len(whole))
        place = start + chance.randrange(length)
        broken = bytearray(whole)
        broken[place] ^= 1 << chance.randrange(8)
        copy.path.write_bytes(broken)
        try:
            sound = checked(copy).sound
        except (LedgerDamaged, LedgerUnavailable):
            sound = False
        assert not sound or contents(copy) == right, place
        assert not sound or attempt % 2 == 0, "a changed entry was not found"
        found += not sound
    assert found > 150

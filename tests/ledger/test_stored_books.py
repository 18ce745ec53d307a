"""Books that earlier versions wrote: every one of them opens, checks, answers and goes on, in both stores."""

import json
import re
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.ledger.books.make import KEY
from tests.ledger.places import Place, PostgresPlace, SQLitePlace

from discreet.charging.certificate import verify
from discreet.core.errors import BudgetExceeded
from discreet.core.events import from_json
from discreet.core.losses import ApproxDP, PureDP
from discreet.ledger import Entry, Head, readable

BOOKS = Path(__file__).parent / "books"
STORED = sorted(path.stem for path in BOOKS.glob("*.json"))


def restored(kind: str, name: str, folder: Path, handles: ExitStack) -> Place:
    """The stored books of this name, put where they can be opened."""
    if kind == "sqlite":
        file = SQLitePlace(folder, handles)
        file.path.write_bytes((BOOKS / f"{name}.db").read_bytes())
        return file
    shared = PostgresPlace(folder, handles)
    dump = re.sub(r"\bbooks(?=[.;]| IS )", shared.schema, (BOOKS / f"{name}.sql").read_text())
    with closing(psycopg.connect(shared.server.url(), autocommit=True)) as connection:
        connection.execute(dump.encode())
    return shared


@pytest.fixture(params=[(kind, name) for kind in ("sqlite", "postgres") for name in STORED], ids="-".join)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The books of one version, and what is in them."""
    kind, name = request.param
    with ExitStack() as handles:
        yield restored(kind, name, tmp_path, handles), json.loads((BOOKS / f"{name}.json").read_text())


def test_what_was_written_stays_as_it_was(stored: tuple[Place, dict[str, Any]]) -> None:
    place, expected = stored
    ledger = place.open()
    entries = [[entry.text, entry.hash] for entry in ledger.entries()]
    assert entries[: len(expected["entries"])] == expected["entries"]
    assert ledger.id == expected["id"]
    assert ledger.sources() == expected["sources"]
    found = {"/".join(path): ledger.standing(path)[-1] for path in ledger.accounts()}
    told = {name: [str(s.budget), str(s.spent), str(s.remaining), str(s.used)] for name, s in found.items()}
    assert told == expected["accounts"]
    anchor = Head(len(expected["entries"]), expected["entries"][-1][1])
    assert ledger.check(anchor).sound
    assert ledger.check(anchor).fault is None
    assert "flu study" in readable(ledger.registry())


def test_answers_and_unanswered_charges_stay_paid(stored: tuple[Place, dict[str, Any]]) -> None:
    place, expected = stored
    ledger = place.open()
    for path, question, events, payload in expected["answered"]:
        assert ledger.replay(tuple(path), question) == bytes.fromhex(payload)
        charge = ledger.charge(tuple(path), [from_json(event) for event in events], question)
        assert (charge.fresh, charge.payload) == (False, bytes.fromhex(payload))
    verify(expected["certificate"], KEY.public)
    ledger.confirm(expected["certificate"])
    for path, question, _ in expected["unanswered"]:
        assert ledger.replay(tuple(path), question) is None


def test_they_go_on_within_their_budgets(stored: tuple[Place, dict[str, Any]]) -> None:
    place, expected = stored
    ledger = place.open()
    [_, _, events, _] = expected["answered"][0]
    event = [from_json(record) for record in events]
    ann = ("health", "flu study", "ann")
    with pytest.raises(BudgetExceeded, match="flu study"):
        ledger.charge(ann, event, "another count")
    ledger.amend(("health", "flu study"), ApproxDP(4, "1e-6"))
    assert ledger.complete(ledger.charge(ann, event, "another count"), b"7") == b"7"
    ledger.open(("schools", "meals"), budget=PureDP("0.5"))
    assert place.open().check().sound


@pytest.mark.parametrize("name", STORED)
def test_entries_are_written_as_they_were(name: str) -> None:
    entries = json.loads((BOOKS / f"{name}.json").read_text())["entries"]
    head = Head(0, "")
    for text, digest in entries:
        entry = Entry.after(head, json.loads(text))
        assert (entry.text, entry.hash) == (text, digest)
        head = entry.head

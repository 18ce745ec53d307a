"""`discreet ledger migrate` and `check` on books in files and on a server."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.app.commands import COUNT, Commands
from tests.ledger.servers import PASSWORD, Server, running

from discreet.ledger import Ledger


@pytest.fixture
def server() -> Server:
    """A server with a database for one ledger."""
    return running()


@pytest.fixture
def address(server: Server) -> Iterator[str]:
    """The address of an empty database, with a password in it."""
    server.execute("CREATE ROLE mover LOGIN PASSWORD '" + PASSWORD + "'", "CREATE DATABASE moving OWNER mover")
    yield server.url(f"mover:{quote(PASSWORD, safe='')}", "moving")
    server.execute("DROP DATABASE moving WITH (FORCE)", "DROP ROLE mover")


def test_books_move_to_a_server_and_back_and_are_checked_there(run: Commands, address: str) -> None:
    run("query", COUNT, "-e", "0.5")
    old, new = "visits.parquet.ledger", "back.ledger"
    said = run("ledger", "migrate", old, address).stdout
    assert "moved to postgresql://127.0.0.1" in said
    assert "is closed" in said
    head = next(line for line in said.splitlines() if line.startswith("head ")).split()[1]
    checked = run("ledger", "check", "--at", address, "--anchor", head).stdout
    assert f"head {head}" in checked
    assert "sound" in run("ledger", "check").stdout
    refused = run("query", "SELECT AVG(cost) AS mean FROM visits", "-e", "0.5", code=1).output
    assert "moved to" in refused
    again = run("ledger", "migrate", old, new, code=2).output
    assert "where these books were moved" in again
    back = run("ledger", "migrate", address, new).stdout
    for text in (said, checked, refused, again, back):
        assert PASSWORD not in text
        assert quote(PASSWORD, safe="") not in text
    with Ledger.at(run.folder / new) as ledger:
        assert all(PASSWORD not in entry.text for entry in ledger.entries())
        assert ledger.check().sound
    assert run.json("ledger", "check", "--at", new)["sound"]


def test_places_without_books_are_named(run: Commands, server: Server) -> None:
    for source in ("nothing.ledger", server.url()):
        said = run("ledger", "migrate", source, "new.ledger", code=1).output
        assert "no ledger" in said
        assert "no ledger" in run("ledger", "check", "--at", source, code=1).output
    assert not (run.folder / "new.ledger").exists()

"""Every command with the table and the books on a server, whose password is seen nowhere."""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from tests.app.commands import COUNT, Commands
from tests.ledger.servers import PASSWORD, Server, running

import discreet as dc
from discreet.charging.certificate import verify
from discreet.core.errors import InvalidArgument
from discreet.ledger import Ledger, LedgerDamaged

INIT = (
    *("--table", "public.visits", "--unit", "patient", "--max-rows", "2", "--epsilon", "3"),
    *("--bounds", "cost=0:500", "--values", "city=A,B,C"),
)
SECRETS = (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD))
TABLES = """
CREATE TABLE visits (patient BIGINT, city TEXT, cost FLOAT8, name TEXT);
INSERT INTO visits SELECT i % 300, (ARRAY['A', 'B', 'C'])[1 + i % 3], i % 400, 'somebody'
FROM generate_series(1, 600) i;
CREATE TABLE labs (pid BIGINT, result FLOAT8);
INSERT INTO labs SELECT i, i % 10 FROM generate_series(1, 300) i;
CREATE TABLE cities (city TEXT, region TEXT);
INSERT INTO cities VALUES ('A', 'north'), ('B', 'north'), ('C', 'south');
"""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with a database of visits and one for books, whose role needs a password."""
    server = running()
    server.execute(
        "CREATE ROLE keeper LOGIN PASSWORD '" + PASSWORD + "'",
        "CREATE DATABASE hospital OWNER keeper",
        "CREATE DATABASE books OWNER keeper",
    )
    with psycopg.connect(_with_password(server, "hospital")) as connection:
        connection.execute(TABLES)
    yield server
    server.execute("DROP DATABASE hospital WITH (FORCE)", "DROP DATABASE books WITH (FORCE)", "DROP ROLE keeper")


@pytest.fixture
def keeper(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Commands:
    """An empty folder, with the password where the driver looks for it."""
    passes = tmp_path / "secrets" / "pgpass"
    passes.parent.mkdir()
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    passes.write_text(f"127.0.0.1:{server.port}:*:keeper:{escaped}\n")
    passes.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passes))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    caplog.set_level(logging.DEBUG)
    folder = tmp_path / "work"
    folder.mkdir()
    return Commands(folder)


def _with_password(server: Server, database: str) -> str:
    return server.url(f"keeper:{quote(PASSWORD, safe='')}", database)


def _dumped(server: Server, database: str) -> str:
    """All rows of all tables of a database."""
    with psycopg.connect(_with_password(server, database)) as connection:
        tables = connection.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname !~ '^(pg_|information_schema)'"
        ).fetchall()
        return "\n".join(
            str(row) for (table,) in tables for row in connection.execute(f"SELECT t::text FROM {table} t".encode())
        )


def test_every_command_works_and_shows_no_password(
    keeper: Commands, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, books = server.url("keeper", "hospital"), server.url("keeper", "books")
    said = [keeper("init", source, *INIT, "--ledger", books, "--public", "cities=cities").output]
    said.append(keeper("add", "--table", "labs", "--unit", "pid", "--bounds", "result=0:10").output)
    assert [(standing["used"]) for standing in keeper.json("budget")] == [0.0]
    said.append(keeper("price", COUNT, "-e", "0.5").output)
    said.append(keeper("price", COUNT, "-e", "0.5", "--explain").output)
    answer = keeper.json("query", COUNT, "-e", "0.5", "--study", "flu", "--analyst", "ann")
    assert [row[0] for row in answer["rows"]] == ["A", "B", "C"]
    again = keeper.json("query", COUNT, "-e", "0.5", "--analyst", "bob")
    assert again["free"]
    assert again["rows"] == answer["rows"]
    said.append(keeper("query", COUNT, "-e", "0.5", "--certificate", "answer.json").output)
    joined = (
        "SELECT region, SUM(result) AS sum FROM visits JOIN cities USING (city) JOIN labs ON patient = pid GROUP BY 1"
    )
    said.append(keeper("query", joined, "-e", "1", "--html", "page.html").output)
    said.append(keeper("budget", "amend", "-e", "4").output)
    assert keeper.json("budget")[0]["account"] == ["visits"]
    said.append(keeper("ledger").output)
    said.append(keeper("ledger", "check").output)
    registry = keeper.json("registry")
    [key] = registry["keys"]
    certificate = json.loads((keeper.folder / "answer.json").read_text())
    assert certificate["key"] == key
    assert "valid" in keeper("verify", "answer.json", "--at", books).output
    said.append(keeper("registry").output)
    said.append(json.dumps([answer, again, registry, certificate]))
    said.append(keeper("query", COUNT.replace("visits", "vists"), "-e", "1", code=2).output)
    said.append(keeper("query", "SELECT COUNT(*) FROM visits", "-e", "9", code=3).output)
    written = [path.read_text(errors="replace") for path in keeper.folder.rglob("*") if path.is_file()]
    kept = [path.read_text(errors="replace") for path in (tmp_path / "share").rglob("*") if path.is_file()]
    assert len(kept) == 2
    everything = "\n".join([*said, *written, *kept, caplog.text, _dumped(server, "books")])
    assert all(secret not in everything for secret in SECRETS)


def test_a_password_in_an_address_works_but_is_not_written_down(keeper: Commands, server: Server) -> None:
    source, books = _with_password(server, "hospital"), _with_password(server, "books")
    for arguments in (
        (source, *INIT, "--ledger", "books.ledger"),
        (server.url("keeper", "hospital"), *INIT, "--ledger", books),
    ):
        refused = keeper("init", *arguments, code=2).output
        assert "without a password" in refused
        assert all(secret not in refused for secret in SECRETS)
        assert not (keeper.folder / "discreet.toml").exists()
    os.environ.pop("PGPASSFILE")
    facts = {"unit": "patient", "budget": dc.PureDP(2), "values": {"city": ["A", "B", "C"]}}
    with dc.connect(source, table="visits", **facts, ledger=books) as session:
        answer = session.sql(COUNT, epsilon=1)
        assert verify(answer.certificate).loss == dc.PureDP(1)
        shown = f"{session!r} {session._repr_html_()} {answer} {answer._repr_html_()} {answer.certificate}"
    toml = f'ledger = "{books}"\n[budget]\nepsilon = 2\n[tables.visits]\nsource = "{source}"\nunit = "patient"\n'
    (keeper.folder / "discreet.toml").write_text(f'{toml}table = "visits"\nvalues = {{ city = ["A", "B", "C"] }}\n')
    assert keeper.json("query", COUNT, "-e", "1")["free"]
    shown += keeper("ledger").output + keeper("budget").output + keeper("registry").output
    shown += keeper("query", COUNT, "-e", "2", code=3).output
    server.execute("ALTER DATABASE books RENAME TO elsewhere")
    try:
        for command in (("query", COUNT, "-e", "1"), ("budget",), ("ledger", "check"), ("price", COUNT, "-e", "1")):
            shown += keeper(*command, code=1).output
    finally:
        server.execute("ALTER DATABASE elsewhere RENAME TO books")
    text = (keeper.folder / "discreet.toml").read_text()
    for wrong in (
        text.replace("[tables.visits]", "[tables.other]"),
        text + '[tables.labs]\nsource = "labs.csv"\nunit = "pid"\n',
    ):
        (keeper.folder / "discreet.toml").write_text(wrong)
        shown += keeper("query", COUNT, "-e", "1", code=2).output
    mixed = '[budget]\nepsilon = 1\n[tables.a]\nsource = "visits.csv"\nunit = "patient"\n[tables.b]\npublic = true\n'
    (keeper.folder / "discreet.toml").write_text(f'{mixed}source = "{source}"\ntable = "b"\n')
    shown += keeper("query", COUNT, "-e", "1", code=2).output
    with pytest.raises(InvalidArgument) as refusal:
        dc.connect({"a": [1]}, unit=dc.Row(), budget=dc.PureDP(1), private={"b": source})
    shown += str(refusal.value) + repr(refusal.value)
    assert all(secret not in shown + _dumped(server, "books") for secret in SECRETS)


def test_certificates_of_every_machine_are_known_to_the_books(keeper: Commands, server: Server, tmp_path: Path) -> None:
    books = server.url("keeper", "books")
    facts = {"table": "visits", "unit": "patient", "budget": dc.PureDP(2), "values": {"city": ["A", "B", "C"]}}
    records = []
    for machine in ("one", "two", "one"):
        with dc.connect(server.url("keeper", "hospital"), **facts, ledger=books, key=tmp_path / machine) as session:
            records.append(session.sql(COUNT, epsilon=1).certificate)
    assert records[0]["key"] == records[2]["key"] != records[1]["key"]
    with Ledger.at(books) as ledger:
        assert ledger.keys() == (records[0]["key"], records[1]["key"])
        for record in records:
            ledger.confirm(record)
        assert (tmp_path / "one").read_bytes().hex() not in _dumped(server, "books")
        forged = [
            records[0] | {"data": "labs"},
            records[0] | {"events": []},
            records[0] | {"answer": "0" * 64},
            records[0] | {"key": "0" * 64},
            records[0] | {"ledger": records[0]["ledger"] | {"entry": 1}},
            records[0] | {"ledger": records[0]["ledger"] | {"hash": "0" * 64}},
            records[0] | {"ledger": records[0]["ledger"] | {"id": "0" * 32}},
            records[0] | {"ledger": {}},
        ]
        for record in forged:
            with pytest.raises(InvalidArgument, match="certificate"):
                ledger.confirm(record)
        assert ledger.check().sound


def test_a_machine_notices_that_an_old_copy_was_put_back(keeper: Commands, server: Server, tmp_path: Path) -> None:
    """A backup is what the books were: whoever asked since then remembers more, in whatever session."""
    books = server.url("keeper", "books")
    facts = {"table": "visits", "unit": "patient", "budget": dc.PureDP(2), "values": {"city": ["A", "B", "C"]}}
    source = server.url("keeper", "hospital")
    with dc.connect(source, **facts, ledger=books) as session:
        session.sql(COUNT, epsilon=1)
    server.execute("CREATE DATABASE backup TEMPLATE books")
    with dc.connect(source, **facts, ledger=books) as session:
        last = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    server.execute("DROP DATABASE books WITH (FORCE)", "ALTER DATABASE backup RENAME TO books")
    with pytest.raises(LedgerDamaged, match="old copy"):
        dc.connect(source, **facts, ledger=books)
    with Ledger.at(books) as ledger:
        assert ledger.check().sound
        with pytest.raises(InvalidArgument, match="old copy"):
            ledger.confirm(last.certificate)
    server.execute("ALTER DATABASE books OWNER TO keeper")


def test_a_key_that_moves_with_its_books_is_still_known(keeper: Commands, server: Server, tmp_path: Path) -> None:
    source, books = server.url("keeper", "hospital"), server.url("keeper", "books")
    keeper("init", source, *INIT, "--ledger", "local.ledger")
    keeper("query", COUNT, "-e", "1", "--certificate", "answer.json")
    assert "valid" in keeper("verify", "answer.json", "--at", "local.ledger").output
    keeper("ledger", "migrate", "local.ledger", books)
    assert "valid" in keeper("verify", "answer.json", "--at", books).output
    toml = keeper.folder / "discreet.toml"
    toml.write_text(toml.read_text().replace("local.ledger", books))
    assert keeper.json("query", COUNT, "-e", "1", "--certificate", "again.json")["free"]
    assert "valid" in keeper("verify", "again.json", "--at", books).output
    assert len(keeper.json("registry")["keys"]) == 2


def test_keys_that_cannot_be_kept_are_named(keeper: Commands, server: Server, tmp_path: Path) -> None:
    books = server.url("keeper", "books")
    facts = {"table": "visits", "unit": "patient", "budget": dc.PureDP(2)}
    (tmp_path / "text").write_text("not a key")
    for key in (tmp_path / "nowhere" / "key", tmp_path / "text"):
        with pytest.raises(InvalidArgument, match="DISCREET_KEY"):
            dc.connect(server.url("keeper", "hospital"), **facts, ledger=books, key=key)

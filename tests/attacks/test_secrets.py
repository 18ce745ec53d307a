"""A password in any spelling of an address is in no message, repr, entry, file or file name of ours."""

import random
import string
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from tests.app.commands import Commands, write_visits
from tests.attacks import trust_faults
from tests.attacks.register import attack
from tests.soak import whole_or_share

import discreet as dc
from discreet.app.failures import Failure
from discreet.core import errors
from discreet.core.display.secrets import holds_secret, redacted
from discreet.engines.postgres.addresses import stripped
from discreet.ledger import Ledger
from discreet.ledger.encoding import source_text
from discreet.ledger.stores.addresses import shown

SPELLINGS: list[Callable[[str], str]] = [
    lambda secret: f"postgresql://ann:{secret}@127.0.0.1:1/books",
    lambda secret: f"POSTGRESQL://ann:{secret}@127.0.0.1:1/books",
    lambda secret: f"  PostGres://ann:{secret}@127.0.0.1:1/books",
    lambda secret: f"postgresql://127.0.0.1:1/books?user=ann&password={secret}",
    lambda secret: f"postgresql://127.0.0.1:1/books?sslpassword={secret}&connect_timeout=1",
    lambda secret: f"jdbc:postgresql://127.0.0.1:1/books?user=ann&password={secret}",
    lambda secret: f"jdbc:postgresql://ann:{secret}@127.0.0.1:1/books",
    lambda secret: f"host=127.0.0.1 port=1 user=ann password={secret}",
    lambda secret: f"host=127.0.0.1 port=1 password = '{secret}' user=ann",
    lambda secret: f"password={secret} host=127.0.0.1 port=1",
    lambda secret: f"host=127.0.0.1 port=1 password\t=\t{secret}",
    lambda secret: f"host=127.0.0.1 port=1 password\n=\n'{secret}'",
    lambda secret: f"host=127.0.0.1 port=1 password\x0b={secret}",
    lambda secret: f"host=127.0.0.1 port=1 user=ann password='a\\' {secret}'",
    lambda secret: f"postgresql://ann:my {secret}@127.0.0.1:1/books",
    lambda secret: f"md:?motherduck_token={secret}",
    lambda secret: f"md:visits?MOTHERDUCK_TOKEN={secret}",
    lambda secret: f"SC://127.0.0.1:1/;token={secret};user_id=ann",
    lambda secret: f"s3://bucket/visits.parquet?aws_secret_access_key={secret}",
    lambda secret: f"s3a://AKIAABCDEFGHIJKLMNOP:{secret}@bucket/visits.parquet",
    lambda secret: f"abfss://box@lake.dfs.core.windows.net/visits?sig={secret}",
    lambda secret: f"azure://AccountName=ann;AccountKey={secret}",
    lambda secret: f"gs://bucket/visits?X-Goog-Signature={secret}",
    lambda secret: f"https://ann:{secret}@data.example/visits.csv",
    lambda secret: f"snowflake://ann:{secret}@account/db?api_key={secret}",
    lambda secret: f"mysql+pymysql://ann:{secret}@127.0.0.1/db",
    lambda secret: f"ann:{secret}@data.example:5432/hospital",
    lambda secret: f"postgresql:ann:{secret}@data.example",
    lambda secret: f"postgres ://ann:{secret}@data.example/hospital",
    lambda secret: f"host=127.0.0.1 port=1 user=ann password=a\\ {secret}",
    lambda secret: f"host=127.0.0.1 port=1 user=ann password='a {secret}",
    lambda secret: f"application_name=x host=127.0.0.1 port=1 user=u password=a;{secret} dbname=b",
    lambda secret: f"target_session_attrs=any host=127.0.0.1 port=1 password=a({secret}) dbname=b",
    lambda secret: f"postgresql://127.0.0.1:1/db?user=u&pass%77ord={secret}",
    lambda secret: f"spark.hadoop.fs.s3a.secret.key={secret}",
    lambda secret: f"fs.azure.account.key.lake.dfs.core.windows.net={secret}",
]


def secrets() -> Iterator[str]:
    """Texts of many letters that may stand in an address as they are, or encoded."""
    chosen = random.Random(7)
    for _ in range(12):
        yield "Q" + "".join(chosen.choices(string.ascii_letters + string.digits, k=chosen.randrange(11, 40))) + "Z"
    for _ in range(12):
        yield "Q" + "".join(chosen.choices(string.ascii_letters + "!$*_-.~:/+@^", k=24)) + "Z"
    yield quote("Qa secret with spaces & signs #1Z", safe="")


def assert_hidden(secret: str, text: str) -> None:
    """No part of the secret that is long enough to be of use is in the text."""
    for start in range(len(secret) - 7):
        assert secret[start : start + 8] not in text, text


def messages(spelling: str, folder: Path) -> Iterator[str]:
    """What is said of a place, however it is given."""
    rows = {"who": np.arange(5)}
    terms: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.PureDP(1), "table": "t"}
    tried: list[Callable[[], Any]] = [
        lambda: dc.connect(spelling, **terms, ledger=folder / "books.db"),
        lambda: dc.connect(Path(spelling), **terms, ledger=folder / "books.db"),
        lambda: dc.connect([spelling], **terms),
        lambda: dc.connect(spelling.split(), **terms),
        lambda: dc.connect({"who": spelling}, **terms),
        lambda: dc.connect(rows, **terms, public={"places": spelling}),
        lambda: dc.connect(rows, **terms, private={"more": dc.Private(spelling)}),
        lambda: Ledger.at(Path(spelling), create=False),
    ]
    if "127.0.0.1" not in spelling:
        tried += [lambda: Ledger.at(spelling), lambda: dc.connect(rows, **terms, ledger=spelling)]
    for attempt in tried:
        try:
            attempt()
        except Exception as error:
            yield str(error)
            yield repr(error)
            yield Failure.of(error).message
    yield shown(spelling)
    yield repr(dc.InvalidArgument("source", {"password": spelling, "token": spelling}, "known", f"not {spelling}"))


@attack(41, finds=[trust_faults.redaction_of_small_letters, trust_faults.redaction_of_urls, trust_faults.quoted])
def test_no_message_holds_the_password_of_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place, secret in enumerate(secrets()):
        for spelling in SPELLINGS[place % 3 :: 3]:
            text = spelling(secret)
            assert_hidden(secret, redacted(text))
            assert_hidden(secret, redacted(f"it did not work: {text}; try again"))
            assert_hidden(secret, redacted(repr([text, {"source": text}])))
            assert holds_secret(text), text
    [secret, *_] = secrets()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for spelling in SPELLINGS:
            if spelling("").startswith("SC"):
                continue  # it would start a client of Spark
            for text in messages(spelling(secret), tmp_path):
                assert_hidden(secret, text)
    # Nothing on the disk is named by it, and no books hold it.
    for path in tmp_path.rglob("*"):
        assert_hidden(secret, str(path))
        if path.is_file():
            assert secret.encode() not in path.read_bytes()


def test_a_place_with_a_login_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password with spaces cannot be told from a sentence, so nothing of such a place is shown."""
    monkeypatch.chdir(tmp_path)
    [secret, *_] = secrets()
    terms: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.PureDP(1), "table": "t"}
    login = f"ann:my {secret}@data.example/hospital"
    tried: list[Callable[[], Any]] = [
        lambda: Ledger.at(login),
        lambda: dc.connect(login, **terms),
        lambda: dc.connect({"who": [1]}, **terms, ledger=login),
        lambda: Ledger.at(Path(f"host=x password={secret}")),
        lambda: Ledger.at(Path(f"ann:{secret}@host")),
        lambda: dc.connect({"who": [1]}, **terms, dataset="d", key=f"host=x password={secret}"),
        lambda: dc.connect({"who": [1]}, **terms, dataset="d", key=f"postgresql://a:{secret}@h/d"),
    ]
    for attempt in tried:
        with pytest.raises(dc.InvalidArgument) as refused:
            attempt()
        assert_hidden(secret, str(refused.value))
    assert not [*tmp_path.iterdir()]
    assert_hidden(secret, redacted(f"postgresql://ann:{secret} was not reached"))
    assert redacted("postgresql://host:5432/db, sc://host:15002") == "postgresql://host:5432/db, sc://host:15002"


@attack(41, finds=[trust_faults.any_address_is_a_path])
def test_no_password_is_written_into_settings(tmp_path: Path) -> None:
    write_visits(tmp_path / "visits.parquet")
    run, [secret, *_] = Commands(tmp_path), secrets()
    given = ("init", "visits.parquet", "--unit", "patient", "--epsilon", "1")
    for spelling in SPELLINGS[:-2:2]:
        said = run(*given, "--ledger", spelling(secret), code=None)
        assert said.exit_code == 2, spelling("")
        assert_hidden(secret, said.output)
        said = run("init", spelling(secret), "--unit", "patient", "--epsilon", "1", code=None)
        assert said.exit_code == 2, spelling("")
        assert_hidden(secret, said.output)
        assert not (tmp_path / "discreet.toml").exists()


def test_what_holds_no_secret_stays_as_it_is() -> None:
    for text in (
        "visits.parquet",
        "postgresql://data.example/hospital",
        "C:\\visits.csv",
        "a column 'token' is",
        "x@y",
    ):
        assert redacted(text) == text
        assert not holds_secret(text)
    assert not holds_secret("postgresql://ann@data.example/hospital")


@attack(41, finds=[trust_faults.what_follows_the_last_at_is_a_host])
def test_an_at_in_a_password_makes_no_host_of_its_end() -> None:
    for secret in secrets():
        for address in (
            f"postgresql://127.0.0.1:1/books?password=a@{secret}",
            f"postgresql://127.0.0.1:1/books?user=ann&sslpassword=a@{secret}&connect_timeout=1",
            f"postgresql://ann:a?b@{secret}@127.0.0.1:1/books",
            f"postgresql://ann:{secret}?a@127.0.0.1:1/books",
            f"postgresql://ann:{secret}#a@127.0.0.1:1/books",
        ):
            assert_hidden(secret, shown(address))
            assert_hidden(secret, stripped(address))
    [secret, *_] = secrets()
    with pytest.raises(dc.InvalidArgument, match="%40") as refused:
        Ledger.at(f"postgresql://ann:a@{secret}@127.0.0.1:1/books")
    assert_hidden(secret, str(refused.value))
    assert shown("postgresql://ann:a@b@data.example/x?connect_timeout=1") == "postgresql://data.example/x"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_books_keep_no_source_with_a_secret_in_it(spelling: Callable[[str], str], tmp_path: Path) -> None:
    with Ledger.at(tmp_path / "books") as books:
        given: dict[str, Any] = {"budget": dc.PureDP(1), "unit": dc.User("who")}
        with pytest.raises(dc.InvalidArgument, match="password"):
            books.open(("t",), source=spelling("hunter2x9"), **given)
        books.open(("t",), source="sha256:1f", **given)
        with pytest.raises(dc.InvalidArgument, match="password"):
            books.attach(("t",), spelling("hunter2x9"))
    assert all(b"hunter2x9" not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    "filler",
    ["token", "token-", "password ", "'password", "a:b@", "a:", "a://", "=a:x@", "\\ ", "(", "'token'", "-----BEGIN "],
)
def test_secrets_at_the_end_of_long_texts_are_found(filler: str) -> None:
    # Why this takes a time that grows with the length alone is argued in `core/secrets.py`.
    long = filler * (whole_or_share(200_000, 50_000) // len(filler))
    for secret in ("password=hunter2x9", "https://ann:hunter2x9@data.example", "ann:hunter2x9@data.example"):
        assert "hunter2x9" not in redacted(f"{long} {secret}")
        assert holds_secret(f"{long} {secret}")


@pytest.mark.parametrize("name", ["pass=1", "ann:x@corp", "token=abc", "a b password=x"])
def test_a_file_may_lie_in_a_folder_that_is_called_like_a_secret(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    write_visits(tmp_path / name / "visits.parquet")
    facts: dict[str, Any] = {"unit": "patient", "budget": dc.PureDP(9), "ledger": tmp_path / "books"}
    for source in (tmp_path / name / "visits.parquet", tmp_path):
        with dc.connect(source, table="visits", **facts) as session:
            assert f"file:{source}" in session.sources
            assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1).rows


@pytest.mark.parametrize(
    "source", ["file://ann:hunter2x9@data.example/x", "file:ann:hunter2x9@data.example", "dataset:password=hunter2x9"]
)
def test_what_is_no_path_of_this_machine_is_looked_through(source: str) -> None:
    with pytest.raises(dc.InvalidArgument, match="password"):
        source_text(source)
    assert source_text("file:/data/pass=1/visits.parquet")


def test_long_messages_are_read_in_a_bounded_part(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(text: str) -> str:
        read.append(len(text))
        return redacted(text)

    monkeypatch.setattr(errors, "redacted", counted)
    shown = str(dc.InvalidArgument("text", "a" * 10**6, "short", "x" * 10**6 + " password=hunter2x9"))
    assert "hunter2x9" not in shown
    assert max(read) <= 2 * errors.LONGEST_MESSAGE

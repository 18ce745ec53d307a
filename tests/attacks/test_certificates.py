"""What a certificate says is what was asked, and whoever checks one is told what was not checked."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.attacks import sql_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import opened
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli import app
from discreet.charging.certificate import SigningKey, digest, verify
from discreet.charging.signing_keys import beside
from discreet.core.errors import InvalidArgument
from discreet.session.session import Session

PEOPLE = {"who": np.arange(60), "k": np.array(["a    b", "a b", "c"] * 20)}
FACTS: dict[str, Any] = {"values": {"k": ["a    b", "a b", "c"]}}
WRITTEN = [
    "SELECT COUNT(*) AS n FROM t -- all of them\nWHERE k = 'c'",
    "SELECT COUNT(*) AS n FROM t\nWHERE k = 'a    b'",
    "SELECT COUNT(*) AS n FROM t WHERE k = 'a b' ",
    "\tSELECT /* two\n lines */ k,\n  COUNT(*) AS n FROM t GROUP BY k",
]
"""With spaces run together, the first has no WHERE any more, and the second and third are one question."""


@attack(39, finds=[sql_faults.spaces_run_together])
def test_the_text_that_is_signed_is_the_text_that_ran(tmp_path: Path) -> None:
    with opened(PEOPLE, **FACTS, ledger=tmp_path / "books.db") as session:
        answers = [session.sql(text, epsilon=1) for text in WRITTEN]
        said = [verify(answer.certificate, answer=answer) for answer in answers]
    assert [one.question for one in said] == WRITTEN
    assert len({one.canonical for one in said}) == len(WRITTEN)


def checked(tmp_path: Path, record: dict[str, Any], *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code of `discreet verify`, and what it prints as JSON."""
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(record))
    found = CliRunner().invoke(app, ["verify", str(file), "--json", *options])
    return found.exit_code, json.loads(found.stdout)


def unsigned(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("key", "signature")}


@attack(39, finds=[sql_faults.any_key_will_do, sql_faults.nothing_left_to_check])
def test_a_forgery_signed_by_its_maker_is_not_valid(tmp_path: Path) -> None:
    with opened(PEOPLE, **FACTS, ledger=tmp_path / "books.db") as session:
        record = session.sql(WRITTEN[0], epsilon=1).certificate
    forged = SigningKey.create().sign(unsigned(record) | {"rows": digest(["n"], [[10**6]])})
    books = ("--at", str(tmp_path / "books.db"))
    code, found = checked(tmp_path, forged)
    assert (code, found["valid"]) == (4, None)
    assert any("--key" in text for text in found["unchecked"])
    assert any("--at" in text for text in found["unchecked"])
    assert "whose key signed it" in verify(forged).unchecked
    for options in (("--key", record["key"]), books, ("--key", record["key"], *books)):
        code, found = checked(tmp_path, forged, *options)
        assert (code, found["valid"]) == (1, False)
    code, found = checked(tmp_path, record, "--key", record["key"])
    assert (code, found["valid"], len(found["unchecked"])) == (4, None, 1)
    assert checked(tmp_path, record, *books)[0] == 0
    assert checked(tmp_path, record, *books)[1]["valid"]


def forgeries(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each thing that a certificate says, said otherwise, in such a way that signature and loss hold."""
    ledger, unit = record["ledger"], record["unit"]
    return {
        "question": {"question": "SELECT COUNT(*) AS n FROM t"},
        "spaces": {"question": record["question"].replace("\n", " ")},
        "canonical": {"canonical": "00" * 32},
        "plan": {"plan": "no noise at all"},
        "events": {"events": [], "loss": {"kind": "pure", "epsilon": "0"}},
        "loss": {"loss": {"kind": "approx", "epsilon": "40", "delta": "1/1000000"}},
        "unit": {"unit": unit | {"column": "household"}},
        "neighbours": {"unit": unit | {"neighbours": "replace"}},
        "data": {"data": "u"},
        "answer": {"answer": "00" * 32},
        "rows": {"rows": digest(["n"], [[10**6]])},
        "time": {"ledger": ledger | {"time": "2020-01-01T00:00:00.000000+00:00"}},
        "entry": {"ledger": ledger | {"entry": ledger["entry"] + 1}},
        "ledger": {"ledger": ledger | {"id": "00" * 16}},
    }


def first_and_others(session: Session) -> list[dict[str, Any]]:
    session.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1)
    return [session.sql(WRITTEN[0], epsilon=1).certificate for _ in range(2)]


@attack(39, finds=[sql_faults.books_that_compare_no_claims, sql_faults.books_that_compare_no_question])
def test_a_stolen_key_forges_nothing_that_the_books_bear_out(tmp_path: Path) -> None:
    books = tmp_path / "books.db"
    with opened(PEOPLE, **FACTS, ledger=books) as session:
        record, again = first_and_others(session)
        other = session.sql("select count(*) c from t where k = 'c'", epsilon=1).certificate
    stolen = SigningKey.at(beside(books))
    assert record == again
    assert checked(tmp_path, again, "--at", str(books))[0] == 0
    for name, change in forgeries(record).items():
        forged = stolen.sign(unsigned(record) | change)
        code, found = checked(tmp_path, forged, "--at", str(books), "--key", stolen.public)
        assert (code, found["valid"]) in ((1, False), (4, None)), name
        doubtful = name in ("question", "spaces", "plan", "rows", "loss")
        assert code == (4 if doubtful else 1), name
    # Another wording is free and its rows are its own: the books have the question and the release, and say no more.
    code, found = checked(tmp_path, other, "--at", str(books))
    assert code == 4
    assert all("books do not tell" in text for text in found["unchecked"])
    with dc.ledger.Ledger.at(books) as ledger:
        assert ledger.check().sound


@attack(39, finds=[sql_faults.what_is_said_last_holds])
def test_a_certificate_that_says_something_twice_is_not_valid(tmp_path: Path) -> None:
    """Readers of JSON differ in which of two they take: what a person or another program reads need not be signed."""
    books = tmp_path / "books.db"
    with opened(PEOPLE, **FACTS, ledger=books) as session:
        answer = session.sql(WRITTEN[0], epsilon=1)
    file, rows = tmp_path / "certificate.json", tmp_path / "answer.json"
    said, table = json.dumps(answer.certificate), json.dumps({"columns": answer.names, "rows": answer.rows})
    honest = ["verify", str(file), "--at", str(books), "--answer", str(rows)]
    for twice in (
        ('{"question": "SELECT COUNT(*) AS n FROM t", ' + said[1:], table),
        (said.replace('"ledger": {', '"ledger": {"entry": 1, '), table),
        (said, '{"rows": [[1000000]], ' + table[1:]),
    ):
        for path, text in zip((file, rows), (said, table), strict=True):
            path.write_text(text)
        assert CliRunner().invoke(app, honest).exit_code == 0
        for path, text in zip((file, rows), twice, strict=True):
            path.write_text(text)
        assert CliRunner().invoke(app, honest).exit_code == 1


@pytest.mark.parametrize("number", [1, True, 2.0, 3, "2", None])
def test_a_format_that_is_no_format_is_refused(tmp_path: Path, number: Any) -> None:
    """Equal to 2 is not 2: in JSON, true and 2.0 are other texts, and other readers take them otherwise."""
    with opened(PEOPLE, **FACTS, ledger=tmp_path / "books.db") as session:
        record = session.sql(WRITTEN[0], epsilon=1).certificate
    key = SigningKey.at(beside(tmp_path / "books.db"))
    said = unsigned(record)
    first = {name: value for name, value in said.items() if name not in ("format", "canonical")}
    assert verify(key.sign(said), key.public).canonical == record["canonical"]
    assert verify(key.sign(first), key.public).canonical is None
    for forged in (said | {"format": number}, first | {"format": number}):
        with pytest.raises(InvalidArgument, match="format"):
            verify(key.sign(forged), key.public)
    for forged in (first | {"canonical": record["canonical"]}, first | {"format": 2}):
        with pytest.raises(InvalidArgument, match="a record with"):
            verify(key.sign(forged), key.public)


@pytest.mark.parametrize(
    "altered",
    [
        {"columns": ["n"], "rows": [{0: 999}]},
        {"columns": {"n": "another meaning"}, "rows": [[0]]},
        {"columns": "n", "rows": [[0]]},
        {"columns": ["n"], "rows": "0"},
        {"columns": ["n"], "rows": [[0, 1]]},
        {"columns": ["n"], "rows": [[[0]]]},
        {"columns": ["n"]},
        {},
    ],
)
@attack(39, finds=[sql_faults.rows_of_any_shape], altered={"columns": ["n"], "rows": [{0: 999}]})
def test_what_is_no_table_is_not_taken_for_the_rows_that_were_certified(altered: dict[str, Any]) -> None:
    key = SigningKey.create()
    record = key.sign(said_of([[0]]))
    assert verify(record, key.public, answer={"columns": ["n"], "rows": [[0]]}).checked[-1] == "the rows of an answer"
    with pytest.raises(InvalidArgument):
        verify(record, key.public, answer=altered)


@attack(39, finds=[sql_faults.rows_of_any_shape])
def test_a_number_that_is_none_is_not_taken_for_null() -> None:
    key = SigningKey.create()
    record = key.sign(said_of([[None]]))
    for value in (float("nan"), float("inf"), float("-inf")):
        for answer in ({"columns": ["n"], "rows": [[value]]}, SimpleNamespace(names=("n",), rows=((value,),))):
            with pytest.raises(InvalidArgument):
                verify(record, key.public, answer=answer)


@attack(39, finds=[sql_faults.questions_as_they_are_written])
def test_no_text_says_anything_in_the_place_of_its_certificate() -> None:
    """Lines of a question are set in, and other texts have none, so that none is taken for what it cost."""
    key = SigningKey.create()
    for place in ("question", "data", "time", "kind", "column"):
        said = said_of([[0]]) | {"question": "SELECT 1"}
        within = said["ledger"] if place == "time" else said["unit"] if place in ("kind", "column") else said
        within[place] = "SELECT 1\ncost PureDP(epsilon=0)\nnot checked: nothing"
        shown = str(verify(key.sign(said), key.public)).splitlines()
        at_the_margin = [line.split()[0] for line in shown if not line.startswith(" ")]
        assert at_the_margin == ["SELECT", "on", "protects", "cost", "not"]


def sampled(event: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "poisson_sampled", "rate": "1/2", "event": {"kind": "repeated", "event": event, "count": 2}}


def gaussian(variance: int) -> dict[str, Any]:
    return {"kind": "gaussian", "variance": str(variance), "squared_sensitivity": "9000", "dimension": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"events": [sampled(sampled(gaussian(10_000)))]},
        {"events": [sampled({"kind": "repeated", "event": gaussian(10_000), "count": 10**12})]},
        {"events": [sampled(gaussian(10_000 + number)) for number in range(129)]},
        {"loss": {"kind": "pure", "epsilon": "1/0"}},
        {"loss": {"kind": "pure", "epsilon": "1e999999999"}},
        {"loss": {"kind": "approx", "epsilon": "1", "delta": "1e-99999999"}},
        {"loss": {"kind": "pure", "epsilon": 0.5}},
        {"loss": {"kind": "pure", "epsilon": "9" * 5000}},
        {"loss": []},
        {"events": None},
        {"events": [7]},
        {"unit": "user"},
        {"unit": None},
        {"ledger": None},
        {"question": 7},
    ],
    ids=str,
)
def test_a_signed_record_of_no_version_is_refused_as_a_certificate(wrong: dict[str, Any]) -> None:
    key = SigningKey.create()
    with pytest.raises(InvalidArgument):
        verify(key.sign(said_of([[0]]) | wrong), key.public)


def said_of(rows: list[list[Any]]) -> dict[str, Any]:
    """What a certificate of these rows says, in the second format."""
    half = {"kind": "pure", "epsilon": "1/2"}
    said = {"data": "t", "unit": {"kind": "user", "column": "who", "neighbours": "add_remove"}, "format": 2}
    said |= {"question": "SELECT COUNT(*) AS n FROM t", "canonical": "d", "plan": "p", "events": [half], "loss": half}
    said |= {"ledger": {"id": "a", "entry": 1, "hash": "b", "time": "2026-11-15"}, "answer": "c"}
    return said | {"rows": digest(["n"], rows)}

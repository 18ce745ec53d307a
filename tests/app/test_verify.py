"""`discreet verify`: a certificate holds or it does not, and the exit code says which."""

import json
from typing import Any

import pytest
from tests.app.commands import COUNT, Commands


@pytest.fixture
def certified(run: Commands) -> Commands:
    run("query", COUNT, "-e", "0.5", "--certificate", "answer.json")
    return run


def record(run: Commands) -> dict[str, Any]:
    return json.loads((run.folder / "answer.json").read_text())


def altered(value: Any) -> Any:
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return value[1:] if isinstance(value, list) else {**value, "more": 1}


def test_a_certificate_holds_without_data_and_books(certified: Commands) -> None:
    for file in certified.folder.iterdir():
        if file.name != "answer.json":
            file.unlink()
    said = certified("verify", "answer.json", code=4).stdout
    assert "the signature holds" in said
    assert "all rows of one 'patient'" in said
    assert "--key" in said
    assert "--at" in said
    found = certified.json("verify", "answer.json", code=4)
    assert found["valid"] is None
    assert len(found["unchecked"]) == 2
    assert float(found["loss"]["epsilon"]) <= 0.5


def test_the_key_is_the_one_the_register_publishes(certified: Commands) -> None:
    key = certified.json("registry")["keys"][0]
    assert "--key" not in certified("verify", "answer.json", "--key", key, code=4).stdout
    certified("verify", "answer.json", "--key", key.upper(), code=4)
    assert "somebody else" in certified("verify", "answer.json", "--key", "00" * 32, code=1).stderr


@pytest.mark.parametrize("field", ["unit", "question", "canonical", "events", "loss", "ledger", "key", "signature"])
def test_a_certificate_that_was_changed_does_not_hold(certified: Commands, field: str) -> None:
    changed = record(certified) | {field: altered(record(certified)[field])}
    (certified.folder / "answer.json").write_text(json.dumps(changed))
    assert certified("verify", "answer.json", code=1).stdout == ""
    found = certified.json("verify", "answer.json", code=1)
    assert not found["valid"]
    assert found["reason"]


@pytest.mark.parametrize("content", ["", "{", "[]", "17", '"x"', "{}", "null", "\udcff", "[" * 100_000])
def test_what_is_no_certificate_does_not_hold(certified: Commands, content: str) -> None:
    (certified.folder / "answer.json").write_text(content, errors="surrogateescape")
    assert "not valid" in certified("verify", "answer.json", code=1).stderr


def test_rows_are_those_that_were_certified(certified: Commands) -> None:
    answer = certified.json("query", COUNT, "-e", "0.5")
    rows = certified.folder / "rows.json"
    rows.write_text(json.dumps(answer))
    books = ("--at", str(next(certified.folder.glob("*.ledger"))))
    assert "these are the rows" in certified("verify", "answer.json", "--answer", "rows.json", code=4).stdout
    found = certified.json("verify", "answer.json", "--answer", "rows.json", *books)
    assert found["rows"]
    assert found["valid"]
    answer["rows"][0][-1] += 1
    rows.write_text(json.dumps(answer))
    assert "rows were changed" in certified("verify", "answer.json", "--answer", "rows.json", code=1).stderr
    for odd in ([], {**answer, "columns": dict.fromkeys(answer["columns"], "another")}, {**answer, "rows": ["ab"]}):
        rows.write_text(json.dumps(odd))
        assert "query --json" in certified("verify", "answer.json", "--answer", "rows.json", code=1).stderr


def test_a_missing_file_is_wrong_usage(certified: Commands) -> None:
    assert "does not exist" in certified("verify", "nothing.json", code=2).stderr

"""Certificates that were issued hold for ever, in every format that there was; what is written now is the last of them.

Those of format 1 are stored with the books of schema 1 (`tests/ledger/books`).
"""

import json
from pathlib import Path

from tests.ledger.books.make import KEY

from discreet.charging.certificate import verify

FORMAT_1 = Path("tests/ledger/books/schema_1.json")
FORMAT_2 = Path(__file__).parent / "certificate_2.json"


def test_a_certificate_of_format_2_holds() -> None:
    record = json.loads(FORMAT_2.read_text())
    said = verify(record, KEY.public, answer={"columns": ["n"], "rows": [[1234]]})
    assert said.question == "SELECT COUNT(*) AS n -- of 'a    b'\nFROM visits"
    assert said.canonical == "c7a12e6b8dd0a4f1e2" + "0" * 46
    assert said.unchecked == ("whether the books hold it",)
    assert KEY.sign({name: record[name] for name in record if name not in ("key", "signature")}) == record


def test_a_certificate_of_format_3_is_of_a_step() -> None:
    record = json.loads((FORMAT_2.parent / "certificate_3.json").read_text())
    said = verify(record, KEY.public, answer={"columns": ["n"], "rows": [[1234]]})
    assert said.parent == {"entry": 6, "hash": "5b0d" + "0" * 60, "step": 2}
    assert said.unchecked == ("whether the books hold it",)
    assert KEY.sign({name: record[name] for name in record if name not in ("key", "signature")}) == record


def test_a_certificate_of_format_1_holds_and_its_question_is_not_certain() -> None:
    record = json.loads(FORMAT_1.read_text())["certificate"]
    said = verify(record, KEY.public)
    assert said.question == "SELECT COUNT(*) FROM visits"
    assert said.canonical is None
    assert any("spaces were run together" in text for text in said.unchecked)

"""discreet.toml: read exactly, and refused with the place and the remedy where it makes no sense."""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.app.completion import completed
from discreet.app.config.settings import Settings, document
from discreet.app.config.toml import Number, written
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ApproxDP

PATH = Path("/data/discreet.toml")
VISITS = {"source": "visits.parquet", "unit": "patient"}
BUDGET = {"epsilon": 1}

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NUMBERS = st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = TEXT | NUMBERS | st.booleans() | st.dates()
VALUE = PLAIN | st.lists(PLAIN, max_size=3)
INNER = st.dictionaries(TEXT, VALUE | st.dictionaries(TEXT, VALUE, max_size=2))
DOCUMENT = st.dictionaries(TEXT, VALUE | INNER, max_size=4)


@given(DOCUMENT)
def test_what_is_written_reads_back(found: dict[str, Any]) -> None:
    assert tomllib.loads(written(found)) == found


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_numbers_are_exact_through_the_file(value: Decimal) -> None:
    text = written({"budget": {"epsilon": Number(str(value))}})
    assert Decimal(document(PATH, text)["budget"]["epsilon"]) == value


def test_decimals_are_never_floats() -> None:
    found = document(PATH, "[budget]\nepsilon = 0.1\ndelta = 1e-6\n")
    assert Settings.of(found, PATH).budget == ApproxDP("0.1", "1e-6")


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        ({}, "[budget]"),
        ({"budget": {"epsilon": True}}, "a number"),
        ({"budget": {"epsilon": 1, "dleta": 0}}, "existing: delta"),
        ({"budget": BUDGET, "tabels": {}}, "existing: tables"),
        ({"budget": BUDGET, "study": 3}, "in quotes"),
        ({"budget": BUDGET, "tables": []}, "[tables]"),
        ({"budget": BUDGET, "tables": {"visits": 1}}, "[tables.visits]"),
        ({"budget": BUDGET, "tables": {"visits": {"unit": "patient"}}}, "tables.visits.source"),
        ({"budget": BUDGET, "tables": {"visits": {"source": "v.csv"}}}, "row_level = true"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"row_level": True}}}, "row_level = true"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"public": "yes"}}}, "true or false"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"public": True}}}, "unit"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"bound": {}}}}, "existing: bounds"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"bounds": {"age": 3}}}}, "age = [0, 120]"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"bounds": {"age": [0, True]}}}}, "a number"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"bounds": 1}}}, "[tables.visits.bounds]"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"values": {"city": "A"}}}}, 'city = ["A", "B"]'),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"types": {"age": 1}}}}, "tables.visits.types.age"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"max_rows": "3"}}}, "without quotes"),
        ({"budget": BUDGET, "tables": {"visits": VISITS | {"neighbours": "all"}}}, "add_remove"),
        ({"budget": BUDGET, "tables": {"visits": {"source": "v.csv", "link": ["a", "b"]}}}, "link = ["),
    ],
)
def test_nonsense_is_refused_with_a_remedy(found: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Settings.of(found, PATH)
    assert hint in str(refusal.value)


def test_paths_are_relative_to_the_file_and_books_lie_beside_the_first_table() -> None:
    found = Settings.of({"budget": BUDGET, "tables": {"visits": VISITS}}, PATH)
    assert found.arguments()["source"] == Path("/data/visits.parquet")
    assert found.books == Path("/data/visits.parquet.ledger")
    moved = Settings.of({"budget": BUDGET, "ledger": "books/b.ledger", "tables": {"visits": VISITS}}, PATH)
    assert moved.books == Path("/data/books/b.ledger")


def test_what_is_said_at_the_command_goes_before_the_file() -> None:
    found = Settings.of({"budget": BUDGET, "study": "flu", "tables": {"visits": VISITS}}, PATH)
    assert found.arguments()["study"] == "flu"
    assert found.arguments(study="cold", analyst=None)["study"] == "cold"
    assert "analyst" not in found.arguments(analyst=None)


def test_tables_are_completed_at_the_end_of_a_question(tmp_path: Path) -> None:
    assert completed("SELECT COUNT(*) FROM v", tmp_path) == []
    (tmp_path / "discreet.toml").write_text("[tables.visits]\n[tables.Vets]\n[tables.cities]\n")
    below = tmp_path / "below"
    below.mkdir()
    asked = "SELECT COUNT(*) FROM v"
    assert completed(asked, below) == ["SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM Vets"]
    assert len(completed("SELECT COUNT(*) FROM ", below)) == 3
    (tmp_path / "discreet.toml").write_text("tables = [")
    assert completed(asked, below) == []
    (tmp_path / "discreet.toml").write_text("tables = 3")
    assert completed(asked, below) == []

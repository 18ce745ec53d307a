"""`discreet synth`: rows in a file, what they cost, how good they are, and what is refused before a charge."""

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.app.commands import CANARY, Commands

from discreet.app.commands.synth import _methods
from discreet.app.completion import completed
from discreet.charging.certificate import verify

MADE = ("synth", "visits", "-e", "1", "--columns", "city,age")


def test_rows_go_to_a_file_and_people_are_told_how_good_they_are(run: Commands) -> None:
    said = run(*MADE, "--out", "rows.parquet", "--report", "page.html", "--certificate", "c.json").stdout
    rows = pyarrow.parquet.read_table(run.folder / "rows.parquet")
    assert rows.column_names == ["city", "age"]
    assert abs(rows.num_rows - 6000) < 2000
    assert set(rows["city"].to_pylist()) <= {"A", "B", "C"}
    assert "rows in the wrong place" in said
    assert "% used" in said
    page = (run.folder / "page.html").read_text()
    assert "city × age" in page
    assert CANARY not in page
    assert verify(run.folder / "c.json").loss.epsilon <= 1


def test_the_same_again_is_free_in_any_number_and_kind_of_file(run: Commands) -> None:
    first = run.json(*MADE, "--out", "rows.csv")
    again = run.json("synth", 'SELECT "city", "age" FROM visits', "-e", "1.0", "--rows", "7", "--out", "few.csv")
    assert (first["free"], again["free"]) == (False, True)
    assert again["budget"] == first["budget"]
    assert again["rows"] == 7
    assert pyarrow.csv.read_csv(run.folder / "few.csv").num_rows == 7
    assert [error["counts"] for error in first["errors"]][-1] == "city × age"
    assert "asked before" in run(*MADE, "--out", "rows.csv").stdout


def test_a_price_writes_and_spends_nothing(run: Commands) -> None:
    priced = run.json(*MADE, "--price")
    assert priced["fits"]
    assert "cells" in priced["plan"]
    assert "within what is left" in run(*MADE, "--price").stdout
    assert run.json("budget")[0]["used"] == 0
    assert not (run.folder / "rows.csv").exists()


def test_workloads_come_as_sql_as_files_as_columns_and_as_a_number(run: Commands) -> None:
    (run.folder / "wanted.sql").write_text(
        "SELECT city, COUNT(*) FROM visits GROUP BY 1;\nSELECT COUNT(*) FROM visits WHERE age < 50;\n"
    )
    found = run.json(*MADE, "--workload", "wanted.sql", "--workload", "age,city", "--out", "rows.csv")
    assert [error["counts"] for error in found["errors"] if error["queries"]] == [
        "SELECT city, COUNT(*) FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE age < 50",
        "age × city",
    ]
    ends = ("--bins", "age=0:50:120", "--bins", "cost=4", "--max-rows", "1", "--check", "0", "--method", "mwem")
    plain = run.json("synth", "visits", "-e", "0.5", "--workload", "1", *ends, "--out", "rows.csv")
    assert (plain["columns"], plain["errors"], plain["method"]) == (["city", "age", "cost"], [], "mwem")
    assert plain["cells"] == 3 * 2 * 4


def test_true_counts_are_shown_of_public_tables_only(run: Commands) -> None:
    run("add", "cities.csv", "--public", "--types", "city=text")
    made = ("synth", "visits", "-e", "1", "--columns", "city", "--out", "rows.csv", "--report", "page.html")
    run(*made, "--compare", "cities")
    assert (run.folder / "page.html").read_text().count("<circle") == 3
    assert "public table" in run(*made, "--compare", "visits", code=2).stderr
    assert "--report" in run(*MADE, "--out", "rows.csv", "--compare", "cities", code=2).output


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("synth", "visits", "--out", "rows.csv"), "epsilon", 2),
        ((*MADE,), "--out", 2),
        ((*MADE, "--out", "rows.xlsx"), "--out", 2),
        ((*MADE, "--out", "nowhere/rows.csv"), "no folder", 2),
        ((*MADE, "--out", "visits.parquet"), "it would be lost", 2),
        ((*MADE, "--out", "rows.csv", "--report", "./rows.csv"), "another file than that of out", 2),
        ((*MADE, "--out", "rows.csv", "--report", "."), "a file, not a folder", 2),
        ((*MADE, "--out", "rows.csv", "--method", "magic"), "method", 2),
        ((*MADE, "--out", "rows.csv", "--bins", "age=120:0"), "bins of age=['120', '0']", 2),
        ((*MADE, "--out", "rows.csv", "--workload", "wishes.sql"), "a file that exists", 2),
        ((*MADE, "--out", "rows.csv", "--workload", "city", "--workload", "2"), "alone", 2),
        (("synth", "visits", "-e", "1", "--columns", ",", "--out", "rows.csv"), "names of columns", 2),
        ((*MADE, "--out", "rows.csv", "--bins", "age=many"), "0:18:65", 2),
        ((*MADE, "--out", "rows.csv", "--workload", "SELECT AVG(age) FROM visits"), "COUNT", 2),
        (("synth", "visits", "-e", "1", "--columns", "name", "--out", "rows.csv"), "declared", 2),
        (("synth", "vsits", "-e", "1", "--out", "rows.csv"), "visits", 2),
        (("synth", "visits", "-e", "40", "--columns", "city", "--out", "rows.csv"), "refused", 3),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_charged(
    run: Commands, arguments: tuple[str, ...], words: str, code: int
) -> None:
    assert words in run(*arguments, code=code).output
    assert run.json("budget")[0]["used"] == 0
    assert not (run.folder / "rows.csv").exists()


def test_errors_are_json_where_json_is_asked_for(run: Commands) -> None:
    result = run(*MADE, "--out", "rows.csv", "--workload", "SELECT city FROM visits", "--json", code=2)
    assert json.loads(result.stdout)["error"]["kind"] == "Unsupported"


def test_tables_and_methods_are_completed(tmp_path: Path) -> None:
    assert completed("vi", tmp_path, names=["visits"]) == ["visits"]
    assert _methods(None, "mwem") == ["mwem", "mwem-book"]

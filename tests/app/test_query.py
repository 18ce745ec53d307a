"""`discreet query` and `discreet price`: what is shown, what it costs, and what is said when it cannot be done."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.app.commands import CANARY, COUNT, INIT, Commands

from discreet.charging.certificate import verify
from discreet.engines.duckdb.engine import DuckDB


def test_an_answer_has_intervals_a_plot_its_cost_and_what_is_left(run: Commands) -> None:
    said = run("query", COUNT, "--epsilon", "0.5").stdout
    assert "± 95 %" in said
    assert "n by city" in said
    assert said.count("●") == 3
    assert "cost" in said
    assert "% used" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_question_that_was_stopped_says_that_it_is_charged_again(
    run: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(self: DuckDB, statement: str) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", stopped)
        said = run("query", COUNT, "--epsilon", "0.5", code=130)
    assert said.stderr == ("discreet: stopped; what was charged stays charged, and asking again is charged again\n")
    run("query", COUNT, "--epsilon", "0.5")
    assert "33.3 %" in run("budget").stdout


def test_numbers_are_aligned(run: Commands) -> None:
    lines = run("query", COUNT, "--epsilon", "0.5", "--no-plot").stdout.splitlines()
    rows = [line for line in lines if line.strip()[:2] in ("A ", "B ", "C ")]
    assert len(rows) == 3
    assert len({len(line.rstrip()) for line in rows}) == 1


def test_the_same_question_is_free(run: Commands) -> None:
    first = run.json("query", COUNT, "-e", "0.5")
    again = run.json("query", "select city, count(*) n from visits group by 1", "-e", "0.5")
    assert (first["free"], again["free"]) == (False, True)
    assert again["rows"] == first["rows"]
    assert again["budget"] == first["budget"]
    assert "asked before" in run("query", COUNT, "-e", "0.5").stdout


def test_epsilon_is_never_read_as_a_float(run: Commands) -> None:
    tenth = run.json("query", COUNT, "-e", "0.1")
    assert run.json("query", COUNT, "-e", "1/10")["rows"] == tenth["rows"]
    assert run.json("query", COUNT, "-e", "0.1000000000000000055511151231257827")["rows"] != tenth["rows"]


def test_json_holds_everything(run: Commands) -> None:
    found = run.json("query", "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city", "-e", "1")
    assert found["columns"] == ["city", "n", "mean"]
    assert [row[0] for row in found["rows"]] == ["A", "B", "C"]
    assert sorted(found["intervals"]) == ["mean", "n"]
    for (_, n, _), (low, high) in zip(found["rows"], found["intervals"]["n"], strict=True):
        assert low < n < high
    assert found["loss"]["definition"] == "ApproxDP"
    assert float(found["loss"]["epsilon"]) <= 1
    assert found["private"]
    assert 0 < found["budget"]["used"] < 1
    assert verify(found["certificate"]).loss.epsilon <= 1


def test_csv_has_the_ends_of_intervals_beside_each_measure(run: Commands) -> None:
    text = run("query", COUNT, "-e", "0.5", "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["city", "n", "n_low", "n_high"]
    assert all(float(row["n_low"]) < float(row["n"]) < float(row["n_high"]) for row in rows)
    assert len(text.splitlines()) == 4


def test_a_wider_level_gives_wider_intervals(run: Commands) -> None:
    [narrow, *_] = run.json("query", COUNT, "-e", "0.5", "--level", "0.5")["intervals"]["n"]
    [wide, *_] = run.json("query", COUNT, "-e", "0.5", "--level", "0.999")["intervals"]["n"]
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])
    assert "± 99.9 %" in run("query", COUNT, "-e", "0.5", "--level", "0.999").stdout


def test_a_wrong_level_is_refused_before_anything_is_charged(run: Commands) -> None:
    assert "level" in run("query", COUNT, "-e", "0.5", "--level", "95", code=2).stderr
    assert run.json("budget")[0]["used"] == 0


def test_a_page_stands_alone_and_escapes_what_it_shows(run: Commands) -> None:
    question = "SELECT city, COUNT(*) AS \"<b>n</b>\" FROM visits WHERE city <> '<script>' GROUP BY city"
    run("query", question, "-e", "0.5", "--html", "answer.html")
    page = (run.folder / "answer.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<circle") == 3
    assert "&lt;b&gt;n" in page
    assert "<script>" not in page
    assert "<b>n" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_certificate_is_written_and_verifies(run: Commands) -> None:
    run("query", COUNT, "-e", "0.5", "--certificate", "answer.json")
    assert verify(json.loads((run.folder / "answer.json").read_text())).ledger["entry"] == 3


def test_a_question_may_come_from_standard_input(run: Commands) -> None:
    assert "n by city" in run("query", "-", "-e", "0.5", input=COUNT).stdout


def test_a_single_number_needs_no_plot(run: Commands) -> None:
    said = run("query", "SELECT COUNT(*) AS n FROM visits", "-e", "0.5").stdout
    assert "●" not in said
    assert "± 95 %" in said


def test_averages_show_the_ends_of_their_intervals(run: Commands) -> None:
    said = run("query", "SELECT city, AVG(cost) AS mean FROM visits GROUP BY city", "-e", "0.1").stdout
    assert "95 % interval" in said
    assert "…" in said


def test_a_price_costs_nothing_and_touches_nothing(run: Commands) -> None:
    said = run("price", COUNT, "--epsilon", "0.5").stdout
    assert "cost" in said
    assert "plan" in said
    assert "within what is left" in said
    found = run.json("price", COUNT, "-e", "0.5")
    assert float(found["loss"]["epsilon"]) <= 0.5
    assert found["plan"]
    assert found["fits"]
    assert [error["column"] for error in found["errors"]] == ["n"]
    assert run.json("budget")[0]["used"] == 0
    assert run.json("query", COUNT, "-e", "0.5")["loss"] == found["loss"]


def test_explain_prints_the_statement_and_spends_nothing(run: Commands) -> None:
    said = run("query", COUNT, "-e", "0.5", "--explain").stdout
    assert said.startswith("WITH bounded_rows AS NOT MATERIALIZED (\n  SELECT")
    assert "\nFROM bounded_rows\nJOIN units USING (unit)\nGROUP BY row_bucket, group_key_0\n" in said
    assert run("price", COUNT, "-e", "0.5", "--explain").stdout == said
    plain = run.json("query", COUNT, "-e", "0.5", "--explain")["statement"]
    assert "\n" not in plain
    assert "".join(plain.split()) == "".join(said.split())
    assert run("price", COUNT, "-e", "0.5").stdout


def test_a_price_above_what_is_left_says_so(run: Commands) -> None:
    assert "more than what is left" in run("price", COUNT, "-e", "50").stdout
    assert not run.json("price", COUNT, "-e", "50")["fits"]


def test_an_error_can_be_asked_for_instead_of_a_price(run: Commands) -> None:
    priced = run.json("price", COUNT, "--error", "40")
    assert priced["errors"][0]["noise"] <= 40
    assert run.json("query", COUNT, "--error", "40")["loss"] == priced["loss"]
    assert "one of the two" in run("query", COUNT, code=2).stderr
    assert "one of the two" in run("price", COUNT, "-e", "1", "--error", "40", code=2).stderr


def test_wide_answers_are_not_cut_where_no_terminal_limits_them(run: Commands) -> None:
    columns = ", ".join(f"COUNT(*) AS a_rather_long_name_{n}" for n in range(9))
    said = run("query", f"SELECT city, {columns} FROM visits GROUP BY city", "-e", "0.5").stdout
    assert all(f"a_rather_long_name_{n}" in said for n in range(9))


def test_studies_and_analysts_have_accounts_of_their_own(run: Commands) -> None:
    run("query", COUNT, "-e", "0.5", "--study", "flu", "--analyst", "ann")
    accounts = [standing["account"] for standing in run.json("budget")]
    assert accounts == [["visits"], ["visits", "flu"], ["visits", "flu", "ann"]]


def test_a_mistyped_column_lists_near_names(run: Commands) -> None:
    said = run("query", "SELECT ctiy, COUNT(*) FROM visits GROUP BY 1", "-e", "0.5", code=2)
    assert "existing: city" in said.stderr
    assert said.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (["query", COUNT, "-e", "50"], 3, "BudgetExceeded"),
        (["query", COUNT, "-e", "-1"], 2, "InvalidArgument"),
        (["query", COUNT, "-e", "much"], 2, "InvalidArgument"),
        (["query", "SELECT * FROM visits", "-e", "1"], 2, "Unsupported"),
        (["query", "SELECT COUNT(*) FROM visit", "-e", "1"], 2, "InvalidArgument"),
        (["query", "SELEC", "-e", "1"], 2, "Unsupported"),
        (["price", "SELECT SUM(patient) FROM visits", "-e", "1"], 2, None),
        (["ledger"], 2, "InvalidArgument"),
        (["registry"], 2, "InvalidArgument"),
    ],
)
def test_errors_have_codes_a_message_and_json(run: Commands, arguments: list[str], code: int, kind: str | None) -> None:
    plain = run(*arguments, code=code)
    assert plain.stdout == ""
    assert plain.stderr.startswith("discreet: ")
    assert plain.stderr.count("\n") == 1
    error = run.json(*arguments, code=code)["error"]
    assert error["code"] == code
    assert kind in (None, error["kind"])
    assert error["message"] in plain.stderr


def test_a_refused_question_leaves_the_budget_as_it_was(run: Commands) -> None:
    run("query", COUNT, "-e", "0.5")
    before = run.json("budget")
    run("query", COUNT, "-e", "50", code=3)
    assert run.json("budget") == before


def test_wrong_usage_is_explained(run: Commands) -> None:
    assert "--json and --csv" in run("query", COUNT, "-e", "1", "--json", "--csv", code=2).stderr
    assert "No such command" in run("qurey", COUNT, code=2).stderr


def test_the_text_of_an_unexpected_error_is_withheld(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"row 17: {CANARY}")

    monkeypatch.setattr("discreet.app.commands.query.connect", fails)
    said = run("query", COUNT, "-e", "0.5", code=1)
    assert "unexpected RuntimeError at test_query.py:" in said.stderr
    assert run.json("query", COUNT, "-e", "0.5", code=1)["error"]["kind"] == "RuntimeError"


def test_a_source_that_went_bad_is_not_quoted(run: Commands) -> None:
    (run.folder / "visits.parquet").write_bytes(b"PAR1" + CANARY.encode())
    assert run("query", COUNT, "-e", "0.5", code=None).exit_code in (1, 2)
    (run.folder / "visits.parquet").unlink()
    assert "existing file" in run("query", COUNT, "-e", "0.5", code=2).stderr


def test_books_that_are_no_books_are_an_error_of_their_own(run: Commands) -> None:
    (run.folder / "visits.parquet.ledger").write_text("something else, and long enough to be looked at")
    assert "ledger" in run("query", COUNT, "-e", "0.5", code=1).stderr


def test_a_file_that_cannot_be_written_is_named(run: Commands) -> None:
    said = run("query", COUNT, "-e", "0.5", "--html", "no/such/folder.html", code=2)
    assert "html='no/such/folder.html' must be in a folder that exists" in said.stderr
    assert run.json("budget")[0]["used"] == 0


@pytest.mark.parametrize(
    "name",
    ["visits.parquet", "discreet.toml", "linked", "visits.parquet.ledger"]
    + [f"visits.parquet.ledger{end}" for end in (".key", "-lock", "-runs", "-wal", "-shm", "-journal")],
)
def test_nothing_is_written_over_tables_books_keys_and_the_configuration(run: Commands, name: str) -> None:
    run("query", COUNT, "-e", "0.25")
    before = run.json("budget")[0]["used"]
    (run.folder / "linked").hardlink_to(run.folder / "visits.parquet")
    there = (run.folder / name).exists()
    kept = (run.folder / name).read_bytes() if there else b""
    for option in ("--html", "--certificate"):
        assert "it would be lost" in run("query", COUNT, "-e", "0.5", option, name, code=2).stderr
    assert (run.folder / name).exists() == there
    assert not there or (run.folder / name).read_bytes() == kept
    assert run.json("budget")[0]["used"] == before


def test_nothing_is_written_over_the_records_of_a_csv(empty: Commands) -> None:
    (empty.folder / "stays.csv").write_text("who,x\n" + "".join(f"{i},1\n" for i in range(50)))
    empty("init", "stays.csv", "--unit", "who", "--epsilon", "3", "--max-rows", "1")
    records = empty.folder / "stays.csv.records"
    kept = {path: path.read_bytes() for path in records.iterdir()}
    assert kept
    for place, path in enumerate(kept):
        (empty.folder / f"linked{place}").hardlink_to(path)
        for name in (f"{path.parent.name}/{path.name}", f"linked{place}", f"{path.parent.name}/new"):
            said = empty("query", "SELECT COUNT(*) AS n FROM stays", "-e", "1", "--certificate", name, code=2)
            assert "it would be lost" in said.stderr
    assert {path: path.read_bytes() for path in records.iterdir()} == kept


def test_nothing_is_written_into_a_folder_of_data(empty: Commands) -> None:
    (empty.folder / "data").mkdir()
    (empty.folder / "visits.parquet").rename(empty.folder / "data" / "visits.parquet")
    empty("init", "data", "--unit", "patient", "--epsilon", "3", "--values", "city=A,B,C")
    said = empty("synth", "data", "-e", "1", "--columns", "city", "--out", "data/rows.parquet", code=2)
    assert "it would be lost" in said.stderr


def test_questions_need_a_table_and_a_configuration(empty: Commands, tmp_path: Path) -> None:
    assert "discreet init" in empty("query", COUNT, "-e", "1", code=2).stderr
    empty("init", "--epsilon", "1")
    assert "discreet add" in empty("query", COUNT, "-e", "1", code=2).stderr
    assert "discreet add" in empty("budget", code=2).stderr
    (tmp_path / "discreet.toml").write_text("budget = [")
    assert "TOML" in empty("query", COUNT, "-e", "1", code=2).stderr


def test_nothing_of_the_data_is_shown_even_when_it_is_asked_for(empty: Commands) -> None:
    # `Commands` looks for the canary in all that is printed.
    empty(*INIT)
    for question in (
        "SELECT name, COUNT(*) AS n FROM visits GROUP BY name",
        "SELECT name FROM visits",
        "SELECT MAX(name) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE CAST(name AS INTEGER) = 1",
        f"SELECT COUNT(*) AS n FROM visits WHERE name = '{CANARY[:4]}'",
    ):
        for form in ([], ["--json"], ["--csv"]):
            result = empty("query", question, "-e", "0.25", *form, code=None)
            assert result.exit_code in (0, 2)
    for command in (["budget"], ["ledger"], ["ledger", "check"], ["registry"]):
        empty(*command)
        empty(*command, "--json")


def test_json_has_no_numbers_that_json_cannot_hold(run: Commands) -> None:
    found = run.json("query", "SELECT city, COUNT(*) / 0 AS x, COUNT(*) AS n FROM visits GROUP BY city", "-e", "0.5")
    for row in found["rows"]:
        assert row[1] is None or math.isfinite(row[1])

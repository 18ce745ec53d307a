"""`discreet init` and `discreet add` write down what the steward says, exactly, once it is known to make sense."""

import json
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.app.commands import COUNT, INIT, Commands

from discreet.app.config.settings import Settings
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.units import Row, User


def settings(run: Commands) -> Settings:
    return Settings.read(run.folder / "discreet.toml")


def test_init_writes_everything_it_was_told(empty: Commands) -> None:
    said = empty(
        *INIT,
        *("--public", "cities=cities.csv", "--study", "flu", "--analyst", "ann"),
        *("--neighbours", "replace", "--max-rows", "7", "--ledger", "books.ledger"),
    )
    assert "Wrote discreet.toml" in said.stdout
    found = settings(empty)
    assert found.budget == ApproxDP(3, "1e-6")
    assert found.ledger == empty.folder / "books.ledger"
    arguments = found.arguments()
    assert arguments["unit"] == User("patient", neighbours="replace")
    assert arguments["max_rows"] == 7
    assert arguments["values"] == {"city": ["A", "B", "C"]}
    assert arguments["bounds"] == {"cost": (0, 500), "age": (0, 120)}
    assert arguments["public"] == {"cities": empty.folder / "cities.csv"}
    assert (arguments["study"], arguments["analyst"]) == ("flu", "ann")


def test_numbers_are_written_as_they_were_given(empty: Commands) -> None:
    empty("init", "visits.parquet", "--unit", "patient", "--epsilon", "1/3", "--bounds", "cost=-0.1:99.90")
    text = (empty.folder / "discreet.toml").read_text()
    assert 'epsilon = "1/3"' in text
    assert "cost = [-0.1, 99.90]" in text
    assert settings(empty).budget == PureDP("1/3")


def test_a_path_outside_the_folder_is_kept_whole_one_inside_is_relative(empty: Commands, tmp_path_factory: Any) -> None:
    elsewhere = Commands(tmp_path_factory.mktemp("elsewhere"))
    source = empty.folder / "visits.parquet"
    elsewhere("init", str(source), "--row-level", "--epsilon", "1")
    assert settings(elsewhere).arguments()["source"] == source
    assert settings(elsewhere).arguments()["unit"] == Row()
    empty("init", str(source), "--row-level", "--epsilon", "1")
    assert tomllib.loads((empty.folder / "discreet.toml").read_text())["tables"]["visits"]["source"] == "visits.parquet"


def test_a_configuration_is_never_overwritten(run: Commands) -> None:
    before = (run.folder / "discreet.toml").read_text()
    assert "discreet add" in run(*INIT, code=2).stderr
    assert (run.folder / "discreet.toml").read_text() == before


def test_init_asks_nothing_when_nobody_is_there(empty: Commands) -> None:
    assert "--epsilon" in empty("init", "visits.parquet", "--unit", "patient", code=2).stderr
    assert "--unit" in empty("init", "visits.parquet", "--epsilon", "1", code=2).stderr
    assert not (empty.folder / "discreet.toml").exists()


@pytest.mark.usefixtures("attended")
def test_init_asks_for_what_is_missing_when_somebody_is_there(empty: Commands) -> None:
    empty("init", input="visits.parquet\npatient\n2\n1e-7\n")
    assert settings(empty).budget == ApproxDP(2, "1e-7")
    assert settings(empty).arguments()["unit"] == User("patient")


@pytest.mark.usefixtures("attended")
def test_an_empty_unit_means_rows_and_a_delta_of_0_means_none(empty: Commands) -> None:
    empty("init", input="visits.parquet\n\n\n0\n")
    assert settings(empty).budget == PureDP(1)
    assert settings(empty).arguments()["unit"] == Row()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--bounds", "aeg=0:120"], "existing: age"),
        (["--bounds", "age=120"], "age=0:120"),
        (["--bounds", "age"], "name=…"),
        (["--bounds", "age=9:1"], "lower"),
        (["--bounds", "age=0:1", "--bounds", "age=0:2"], "named once"),
        (["--bounds", "city=0:1"], "declare values instead"),
        (["--values", "age=1,x"], "of type integer"),
        (["--values", "city=A,A"], "distinct"),
        (["--values", "town=A"], "existing:"),
        (["--public", "cities=town.csv"], "source"),
        (["--neighbours", "none"], "add_remove"),
        (["--name", "a b", "--bounds", "cost=zero:1"], "a number"),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_written(empty: Commands, arguments: list[str], hint: str) -> None:
    init = ("init", "visits.parquet", "--unit", "patient", "--epsilon", "1")
    assert hint in empty(*init, *arguments, code=2).stderr
    assert not (empty.folder / "discreet.toml").exists()


def test_a_mistyped_unit_or_file_lists_near_names(empty: Commands) -> None:
    assert "existing: patient" in empty("init", "visits.parquet", "--unit", "patinet", "--epsilon", "1", code=2).stderr
    assert "visits.parquet" in empty("init", "visit.parquet", "--unit", "patient", "--epsilon", "1", code=2).stderr


def test_a_file_that_cannot_be_read_is_not_quoted(empty: Commands) -> None:
    (empty.folder / "broken.parquet").write_bytes(b"PAR1 Zebedee Quux")
    said = empty("init", "broken.parquet", "--unit", "patient", "--epsilon", "1", code=2)
    assert "can be read" in said.stderr


def test_add_appends_and_keeps_what_people_wrote(empty: Commands) -> None:
    empty("init", "--epsilon", "1", "--delta", "1e-6")
    path = empty.folder / "discreet.toml"
    path.write_text(path.read_text() + "# a remark of ours\n")
    assert "Added visits" in empty("add", "visits.parquet", "--unit", "patient", "--values", "city=A,B").stdout
    empty("add", "cities.csv", "--public")
    assert "# a remark of ours" in path.read_text()
    assert settings(empty).tables == ("visits", "cities")
    joined = "SELECT region, COUNT(*) AS n FROM visits JOIN cities ON visits.city = cities.city GROUP BY region"
    assert empty.json("price", joined, "--epsilon", "0.5")["loss"]["definition"] == "ApproxDP"


def test_add_refuses_a_name_twice_and_claims_about_public_tables(run: Commands) -> None:
    assert "--name" in run("add", "visits.parquet", "--unit", "patient", code=2).stderr
    assert "protects nobody" in run("add", "cities.csv", "--public", "--max-rows", "3", code=2).stderr
    assert "--public" in run("add", "cities.csv", "--public", "--unit", "city", code=2).stderr
    assert "--public" in run("add", "cities.csv", code=2).stderr


def test_further_private_tables_share_people_and_budget(run: Commands) -> None:
    (run.folder / "labs.csv").write_text("pid,result\n" + "".join(f"{n},{n % 9}\n" for n in range(3000)))
    (run.folder / "parts.csv").write_text("lab,weight\n" + "".join(f"{n},1\n" for n in range(3000)))
    people = ("--types", "pid=integer", "--max-rows", "1")
    run("add", "labs.csv", "--unit", "pid", *people, "--bounds", "result=0:10")
    run("add", "parts.csv", "--link", "lab=labs.pid", "--types", "lab=integer", "--bounds", "weight=0:1")
    private = settings(run).arguments()["private"]
    assert private["labs"].unit == "pid"
    assert private["labs"].types == {"pid": "integer"}
    assert private["parts"].link == ("lab", "labs", "pid")
    joined = "SELECT SUM(result) AS total FROM visits JOIN labs ON patient = pid"
    assert run.json("query", joined, "-e", "0.5")["columns"] == ["total"]
    assert [standing["account"] for standing in run.json("budget")] == [["visits"]]


def test_tables_about_other_people_are_refused(run: Commands) -> None:
    before = (run.folder / "discreet.toml").read_text()
    run("add", "cities.csv", "--unit", "city", "--name", "homes", code=2)
    assert "like that of visits" in run("add", "cities.csv", "--row-level", code=2).stderr
    assert "order_id=orders.id" in run("add", "cities.csv", "--link", "city", code=2).stderr
    assert "column=table.column" in run("add", "cities.csv", "--link", "city=homes", code=2).stderr
    assert (run.folder / "discreet.toml").read_text() == before


def test_columns_of_a_csv_file_have_the_types_that_are_declared(empty: Commands) -> None:
    (empty.folder / "labs.csv").write_text("pid,site,result\n1,1,2.5\n2,2,x\n")
    init = ("init", "labs.csv", "--unit", "pid", "--epsilon", "1", "--delta", "1e-6", "--bounds", "result=0:10")
    assert "types" in empty(*init, "--types", "site=number", code=2).stderr
    empty(*init, "--types", "site=integer", "--values", "site=1,2")
    assert settings(empty).arguments()["values"] == {"site": [1, 2]}
    rows = empty.json("query", "SELECT site, SUM(result) AS total FROM labs GROUP BY site", "-e", "0.5")["rows"]
    assert [row[0] for row in rows] == [1, 2]


def test_public_tables_may_have_facts_about_columns(run: Commands) -> None:
    run("add", "cities.csv", "--public", "--values", "region=north,south")
    assert settings(run).arguments()["values"] == {"city": ["A", "B", "C"], "cities.region": ["north", "south"]}


def test_data_may_have_a_name_in_the_books(empty: Commands) -> None:
    empty(*INIT, "--dataset", "hospital")
    empty("query", COUNT, "-e", "0.5")
    assert [standing["account"] for standing in empty.json("budget")] == [["hospital"]]


def test_add_needs_a_configuration(empty: Commands) -> None:
    assert "discreet init" in empty("add", "visits.parquet", "--unit", "patient", code=2).stderr


def test_values_are_read_in_the_type_of_their_column(empty: Commands) -> None:
    types = "DATE '2024-01-02' AS day, TIMESTAMP '2024-01-02 03:04:05' AS at, TRUE AS ok, 1.5::DOUBLE AS x, 'a' AS t"
    duckdb.sql(f"COPY (SELECT 1 AS who, {types}) TO '{empty.folder}/kinds.parquet'")
    values = ["day=2024-01-02,2024-01-03", "at=2024-01-02T03:04:05", "ok=true,false", "x=1.5,2", 't="a, b",c']
    options = [word for value in values for word in ("--values", value)]
    empty("init", "kinds.parquet", "--unit", "who", "--epsilon", "1", "--delta", "1e-6", *options)
    found = settings(empty).arguments()["values"]
    assert [str(day) for day in found["day"]] == ["2024-01-02", "2024-01-03"]
    assert found["at"][0].isoformat() == "2024-01-02T03:04:05"
    assert (found["ok"], found["x"], found["t"]) == ([True, False], [1.5, 2.0], ["a, b", "c"])
    rows = empty.json("query", "SELECT day, COUNT(*) AS n FROM kinds GROUP BY day", "--epsilon", "0.5")["rows"]
    assert [row[0] for row in rows] == ["2024-01-02", "2024-01-03"]


def test_the_configuration_is_found_from_below_and_by_name(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    below = run.folder / "notes" / "today"
    below.mkdir(parents=True)
    assert Commands(below).json("query", COUNT, "-e", "0.5")["columns"] == ["city", "n"]
    away = Commands(Path("/"))
    assert away.json("--config", str(run.folder), "query", COUNT, "-e", "0.5")["free"]
    monkeypatch.setenv("DISCREET_CONFIG", str(run.folder / "discreet.toml"))
    assert away.json("query", COUNT, "-e", "0.5")["free"]
    monkeypatch.setenv("DISCREET_CONFIG", "/nowhere.toml")
    assert "discreet init" in away("query", COUNT, "-e", "0.5", code=2).stderr


def test_init_does_not_write_what_books_that_are_there_contradict(empty: Commands) -> None:
    begun = ("init", "visits.parquet", "--unit", "patient")
    empty(*begun, "--epsilon", "3", "--delta", "1e-6")
    empty("query", "SELECT COUNT(*) AS n FROM visits", "-e", "0.1")
    (empty.folder / "discreet.toml").unlink()
    assert "the budget of 'visits'" in empty(*begun, "--epsilon", "3", code=2).stderr
    assert not (empty.folder / "discreet.toml").exists()
    empty(*begun, "--epsilon", "3", "--delta", "1e-6")


def test_a_csv_is_registered_by_init_which_tells_what_it_left_out(empty: Commands) -> None:
    path = empty.folder / "besuche.csv"
    path.write_bytes('wer;ort;kosten\n1;Zürich;1,5\n2;Genève\n3;"Bern\nNord";2,5\n'.encode("latin-1"))
    facts = ("--unit", "wer", "--csv", "encoding=latin-1", "--csv", "decimal=,", "--bounds", "kosten=0:10")
    done = empty("init", "besuche.csv", *facts, "--epsilon", "1000")
    assert "besuche.csv: 1 record was left out: with another number of values than the header" in done.stderr
    assert "(line 3)" in done.stderr
    assert '[tables.besuche.csv]\nencoding = "latin-1"\ndecimal = ","\n' in (empty.folder / "discreet.toml").read_text()
    asked = empty("query", "SELECT SUM(kosten) AS s FROM besuche", "-e", "900", "--json")
    assert "left out" not in asked.stderr
    assert abs(json.loads(asked.stdout)["rows"][0][0] - 4) < 0.5
    wrong = empty("add", "besuche.csv", "--name", "b", "--unit", "wer", "--csv", "code=latin-1", code=2)
    assert "encoding" in wrong.stderr

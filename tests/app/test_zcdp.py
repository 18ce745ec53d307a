"""A budget in ρ on the command line, from its declaration to the registry; what mixes definitions is refused."""

import json
import tomllib
from typing import Any

import pytest
from tests.app.commands import COUNT, Commands

from discreet.app.config.settings import Settings
from discreet.core.losses import ZCDP

INIT = (
    *("init", "visits.parquet", "--unit", "patient", "--max-rows", "2", "--rho", "0.50"),
    *("--bounds", "cost=0:500", "--values", "city=A,B,C"),
)


@pytest.fixture
def run(empty: Commands) -> Commands:
    empty(*INIT)
    return empty


def declared(run: Commands) -> Any:
    return tomllib.loads((run.folder / "discreet.toml").read_text())["budget"]


def test_init_writes_rho_alone_and_its_hint_can_be_followed(empty: Commands) -> None:
    said = empty(*INIT).stdout
    assert 'Next: discreet query "SELECT COUNT(*) AS n FROM visits" --rho 0.01' in said
    assert "[budget]\nrho = 0.50\n\n" in (empty.folder / "discreet.toml").read_text()
    assert Settings.read(empty.folder / "discreet.toml").budget == ZCDP("0.5")
    empty("query", "SELECT COUNT(*) AS n FROM visits", "--rho", "0.01")


@pytest.mark.usefixtures("attended")
def test_init_with_rho_asks_for_no_epsilon(empty: Commands) -> None:
    empty("init", "--rho", "1/3", input="visits.parquet\npatient\n")
    assert declared(empty) == {"rho": "1/3"}


@pytest.mark.parametrize("others", [("--epsilon", "1"), ("--delta", "1e-6")])
def test_init_takes_one_definition(empty: Commands, others: tuple[str, ...]) -> None:
    assert "--rho" in empty(*INIT, *others, code=2).stderr
    assert not (empty.folder / "discreet.toml").exists()


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("rho = 1\nepsilon = 1", "in one definition"),
        ("rho = 1\ndelta = 1e-6", "in one definition"),
        ("delta = 1e-6", "with rho for zCDP"),
        ("rho = true", "a number"),
        ("rho = -1", "rho"),
        ("rho = 1\nroh = 2", "roh"),
    ],
)
def test_a_file_states_one_definition(run: Commands, budget: str, said: str) -> None:
    path = run.folder / "discreet.toml"
    path.write_text(path.read_text().replace("rho = 0.50", budget))
    assert said in run("budget", code=2).stderr


def test_prices_answers_and_books_are_in_rho(run: Commands) -> None:
    whole = {"definition": "ZCDP", "rho": "0.5"}
    assert run.json("budget")[0]["remaining"] == whole  # before there are books
    priced = run.json("price", COUNT, "--rho", "0.01")
    assert priced["epsilon"] is None
    assert priced["loss"] == priced["pays"]
    assert 0.0095 < float(priced["loss"]["rho"]) <= 0.01
    assert run.json("price", COUNT, "--error", "20")["epsilon"] is None
    assert run.json("price", COUNT, "--epsilon", "0.1")["epsilon"] == "0.1"
    assert "cost  ρ = 0.00" in run("price", COUNT, "--rho", "0.01").stdout
    answered = run.json("query", COUNT, "--rho", "0.01", "--study", "flu", "--analyst", "ann")
    assert answered["loss"] == priced["loss"]
    assert answered["budget"]["budget"] == whole
    assert answered["more"] == int(0.5 / float(priced["loss"]["rho"])) - 1
    assert run.json("query", COUNT, "--rho", "1/100")["rows"] == answered["rows"]
    assert [line["spent"] for line in run.json("budget")] == [priced["loss"]] * 3
    assert "ρ = 0.5" in run("budget").stdout
    assert "budget ρ = 0.5" in run("ledger").stdout
    assert "sound" in run("ledger", "check").stdout
    [line, *_] = run.json("registry")["data_sets"][0]["accounts"]
    assert line["budget"] == {"definition": "ZCDP", "text": "ZCDP(rho=0.5)", "rho": 0.5}
    assert line["spent"]["rho"] + line["remaining"]["rho"] == pytest.approx(0.5)
    assert "ρ = 0.5" in run("registry").stdout
    assert "SELECT" in run("query", COUNT, "--rho", "0.01", "--explain").stdout


def test_a_certificate_in_rho_is_verified_against_the_books(run: Commands) -> None:
    run("query", COUNT, "--rho", "0.01", "--certificate", "c.json")
    found = run("verify", "c.json", "--at", "visits.parquet.ledger").stdout
    assert "ρ = 0.00" in found
    path = run.folder / "c.json"
    forged = json.loads(path.read_text())
    forged["loss"]["rho"] = "1/1000"
    path.write_text(json.dumps(forged))
    run("verify", "c.json", code=1)


def test_what_does_not_fit_is_refused_and_leaves_no_trace(run: Commands) -> None:
    run("query", COUNT, "--rho", "0.01")
    before = run("ledger", "--json").stdout
    assert "more than what is left" in run("price", COUNT, "--rho", "0.6").stdout
    assert "ZCDP" in run("query", COUNT, "--rho", "0.6", code=3).stderr
    assert "exactly one of the three" in run("query", COUNT, "--rho", "0.1", "--epsilon", "1", code=2).stderr
    assert "exactly one of the three" in run("query", COUNT, code=2).stderr
    assert run("ledger", "--json").stdout == before


def test_rho_is_refused_where_the_budget_is_in_epsilon(empty: Commands) -> None:
    empty("init", "visits.parquet", "--unit", "patient", "--epsilon", "3", "--values", "city=A,B,C")
    for command in ("query", "price"):
        assert "not in ρ" in empty(command, COUNT, "--rho", "0.1", code=2).stderr
    assert "not in ρ" in empty("synth", "visits", "--rho", "0.1", "--price", code=2).stderr
    assert "not in ρ" in empty("audit", "session", COUNT, "--rho", "0.1", "--runs", "0", code=2).stderr
    assert "give --epsilon" in empty("budget", "amend", "--rho", "4", code=2).stderr
    assert declared(empty) == {"epsilon": 3}


def test_budgets_and_caps_are_amended_in_rho_on_record(run: Commands) -> None:
    run("query", COUNT, "--rho", "0.01", "--study", "flu", "--analyst", "ann")
    run("budget", "amend", "--rho", "0.7", "--note", "agreed")
    assert declared(run) == {"rho": 0.7}
    run("budget", "amend", "--rho", "0.3", "--study", "flu")
    run("budget", "amend", "--rho", "0.2", "--analyst", "ann")
    assert [line["budget"] and line["budget"]["rho"] for line in run.json("budget")] == ["0.7", "0.2", "0.3", None]
    assert "refused" in run("query", COUNT, "--rho", "0.25", "--study", "flu", "--analyst", "ann", code=3).stderr
    text = (run.folder / "discreet.toml").read_text()
    for numbers in (["--epsilon", "1"], ["--rho", "1", "--delta", "0.1"], ["--rho", "1", "--epsilon", "1"]):
        assert "give --rho alone" in run("budget", "amend", *numbers, code=2).stderr
    assert "--epsilon" in run("budget", "amend", code=2).stderr
    run("budget", "amend", "--rho", "0.9", "--study", "flu", code=2)  # above what the data set has
    run("budget", "amend", "--rho", "0.001", code=2)  # below what is spent
    assert (run.folder / "discreet.toml").read_text() == text


def test_rows_are_made_for_rho(run: Commands) -> None:
    rows = ("synth", "visits", "--columns", "city")
    assert "--epsilon" in run(*rows, "--out", "rows.csv", code=2).stderr
    assert run.json(*rows, "--rho", "0.05", "--price")["epsilon"] is None
    made = run.json(*rows, "--rho", "0.05", "--out", "rows.csv", "--report", "rows.html")
    assert 0.0475 < float(made["loss"]["rho"]) <= 0.05
    assert "ρ = 0.0" in (run.folder / "rows.html").read_text()
    assert "asked before" in run(*rows, "--rho", "0.05", "--out", "again.csv").stdout
    assert (run.folder / "again.csv").read_text() == (run.folder / "rows.csv").read_text()


def test_books_in_rho_are_moved(run: Commands) -> None:
    run("query", COUNT, "--rho", "0.01")
    spent = run.json("budget")[0]["spent"]
    run("ledger", "migrate", "visits.parquet.ledger", "moved.ledger")
    path = run.folder / "discreet.toml"
    path.write_text('ledger = "moved.ledger"\n' + path.read_text())
    assert run.json("budget")[0]["spent"] == spent
    assert run.json("query", COUNT, "--rho", "0.01")["free"]


def test_a_session_is_audited_for_rho(run: Commands) -> None:
    found = run.json("audit", "session", COUNT, "--rho", "0.1", "--runs", "200")
    [one] = found["questions"]
    assert found["passed"]
    assert one["loss"]["definition"] == "ZCDP"
    assert one["strain"] > 0.9
    assert one["audit"]["claim"]["definition"] == "ZCDP"
    assert not (run.folder / "visits.parquet.ledger").exists()
    assert "at most one" in run("audit", "session", COUNT, "--rho", "1", "--epsilon", "1", code=2).stderr

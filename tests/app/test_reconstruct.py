"""`discreet attack reconstruct` and `discreet audit bound`: verdicts in words, files, and no secrets unless asked."""

import csv
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.app.commands import Commands

N = 24
ASK = "SELECT COUNT(*) AS n FROM patients WHERE flu = 1 AND {subset}"


def write(path: Path, heads: list[str], rows: list[Any]) -> None:
    with path.open("w", newline="") as out:
        csv.writer(out).writerows([heads, *rows])


@pytest.fixture
def run(tmp_path: Path) -> Commands:
    generator = np.random.default_rng(0)
    bits, weights = generator.integers(0, 2, N), generator.integers(0, 2, (120, N))
    answers = [str(value) if place % 10 else "suppressed" for place, value in enumerate((weights @ bits).tolist())]
    write(tmp_path / "answers.csv", ["answer"], [[answer] for answer in answers])
    write(tmp_path / "queries.csv", [f"p{place}" for place in range(N)], weights.tolist())
    write(tmp_path / "bits.csv", ["bit"], [[bit] for bit in bits.tolist()])
    write(tmp_path / "keys.csv", ["id"], [[place] for place in range(N)])
    write(tmp_path / "sex.csv", ["block", "sex", "age", "count"], [[1, "Zenobia", 30, 1], [1, "Quentin", 40, 2]])
    write(tmp_path / "age.csv", ["block", "age", "race", "count"], [[1, 30, "A", 1], [1, 40, "B", 2]])
    patients = pyarrow.table({"id": np.arange(N), "flu": bits})
    pyarrow.parquet.write_table(patients, tmp_path / "patients.parquet")
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as clinic:
        clinic.execute(f"CREATE TABLE patients AS FROM '{tmp_path / 'patients.parquet'}'")
    return Commands(tmp_path)


def test_answers_in_files(run: Commands) -> None:
    files = ("attack", "reconstruct", "answers.csv", "--queries", "queries.csv")
    shown = run(*files, "--truth", "bits.csv", "--html", "page.html", "--plot", "figure.png").stdout
    assert shown.startswith("BROKEN: 100.0 % of 24 secret bits were read off")
    assert "12 × no number" in shown
    assert "BROKEN" in (run.folder / "page.html").read_text()
    assert (run.folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    told = run.json(*files)
    assert (told["answered"], told["right"]) == (108, None)
    assert "bits" not in told
    assert len(run.json(*files, "--reveal")["bits"]) == N
    assert "chance" in run(*files, "--reveal").stdout


def test_published_tables(run: Commands) -> None:
    files = ("attack", "reconstruct", "--table", "sex.csv", "--table", "ages=age.csv")
    shown = run(*files, "--plot", "figure.svg").stdout
    assert shown.startswith("BROKEN: 3 of 3 people")
    assert "Zenobia" not in shown + (run.folder / "figure.svg").read_text()
    assert "Zenobia" in run(*files, "--reveal").stdout
    assert run("attack", "reconstruct", "--table", "sex.csv").stdout.startswith("LEAKING: nobody follows")
    write(run.folder / "age.csv", ["block", "age", "race", "count"], [[1, 30, "A", 1], [1, 40, "B", 5]])
    assert "sex counts 2 and ages 5 for age = 40" in " ".join(run(*files).stdout.split())


def test_a_database_and_our_session(run: Commands) -> None:
    asking = ("attack", "reconstruct", "--ask", ASK, "--people", "keys.csv", "--truth", "bits.csv")
    assert run.json(*asking, "--database", "clinic.duckdb")["right"] == 1.0
    run("init", "patients.parquet", "--unit", "id", "--epsilon", "1", "--values", "flu=0,1", "--max-rows", "1")
    told = run.json(*asking, "--epsilon", "0.1", "--questions", "24")
    assert told["answered"] == 10
    assert sum(told["refused"].values()) == 14
    assert not told["verdict"].startswith("BROKEN")
    unheard = run(*asking, "--epsilon", "0.1", "--questions", "24").stdout
    assert unheard.startswith("NOTHING")
    assert "nan" not in unheard


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("attack", "reconstruct"), "give a file of answers"),
        (("attack", "reconstruct", "answers.csv"), "name the file of weights"),
        (("attack", "reconstruct", "--ask", ASK), "keys of the people"),
        (("attack", "reconstruct", "--ask", ASK, "--people", "keys.csv"), "--epsilon"),
        (("attack", "reconstruct", "--table", "none.csv"), "none.csv"),
        (("attack", "reconstruct", "answers.csv", "--plot", "figure.gif"), ".png or .svg"),
        (("attack", "reconstruct", "answers.csv", "--html", "answers.csv"), "a new file"),
        (("audit", "bound", "--epsilon", "1"), "--queries"),
        (("audit", "bound", "--epsilon", "1", "--queries", "5"), "--universe"),
        (("audit", "bound", "--epsilon", "1", "--marginals", "2", "--attribute", "sex=2"), "2 attributes"),
        (("audit", "bound", "--epsilon", "0", "--prefixes", "5"), "above 0"),
    ],
    ids=[
        "nothing",
        "weights",
        "people",
        "epsilon",
        "missing",
        "plot",
        "html",
        "bound",
        "universe",
        "attributes",
        "zero",
    ],
)
def test_wrong_arguments_are_told(run: Commands, arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments, code=None)
    assert result.exit_code in (1, 2)
    assert words in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    "asked",
    [
        ("--queries", "100", "--universe", "1000000", "--records", "100000", "--delta", "1e-6"),
        ("--marginals", "2", "--attribute", "sex=2", "--attribute", "age=20", "--records", "1000", "--replace"),
        ("--ranges", "64"),
        ("--counter", "100000"),
    ],
    ids=["queries", "marginals", "ranges", "counter"],
)
def test_bounds(run: Commands, asked: tuple[str, ...]) -> None:
    told = run.json("audit", "bound", "--epsilon", "0.1", *asked)
    assert 0 < told["least"] <= min(line["error"] for line in told["mechanisms"])
    shown = run("audit", "bound", "--epsilon", "0.1", *asked, "--html", "page.html").stdout
    assert shown.startswith("No mechanism answers")
    assert "e+" not in " ".join(line["why"] for line in told["bounds"])
    assert "<svg" in (run.folder / "page.html").read_text()

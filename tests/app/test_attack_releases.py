"""`discreet attack link | difference | trace | demo`: verdicts in plain words, secrets only with --reveal."""

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.app.commands import Commands

from discreet.adversary.linkage import example_hospitals as hospitals

SECRET = "AIDS"


def write(path: Path, columns: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture
def released(tmp_path: Path) -> Commands:
    write(tmp_path / "a.csv", hospitals.FIRST)
    write(tmp_path / "b.csv", hospitals.SECOND)
    write(tmp_path / "named.csv", hospitals.FIRST_NAMED)
    write(tmp_path / "known.csv", hospitals.KNOWN)
    return Commands(tmp_path)


def test_one_table_is_looked_at_by_groups_and_by_combinations(released: Commands) -> None:
    said = released("attack", "link", "a.csv", "--columns", "age,sex,postcode", "--sensitive", "diagnosis").stdout
    assert "HELD: nobody is alone" in said
    assert "combination" in said
    bare = released("attack", "link", "named.csv", "--plot", "p.svg", "--html", "p.html").stdout
    assert "BROKEN: 9 of 9 records" in bare
    assert (released.folder / "p.svg").read_text().startswith("<svg")
    assert "Zhao" not in (released.folder / "p.html").read_text()


def test_two_tables_are_intersected_and_the_secret_is_kept(released: Commands) -> None:
    link = ("attack", "link", "a.csv", "b.csv", "--columns", "age,sex,postcode", "--sensitive", "diagnosis")
    quiet = released(*link, "--known", "known.csv", "--html", "p.html")
    assert "BROKEN: of 1 person in both tables" in quiet.output
    assert SECRET not in quiet.output + (released.folder / "p.html").read_text()
    assert SECRET not in json.dumps(released.json(*link))
    assert SECRET in released(*link, "--known", "known.csv", "--reveal").stdout


def test_people_are_matched_by_what_is_known_of_them(released: Commands) -> None:
    generator = np.random.default_rng(0)
    table = {"id": range(300), "age": generator.integers(0, 90, 300), "pay": generator.integers(20_000, 90_000, 300)}
    write(released.folder / "staff.csv", table)
    known = {"id": range(40), "age": table["age"][:40] + 1, "pay": table["pay"][:40] + 15}
    write(released.folder / "known.csv", known)
    about = ("--known", "known.csv", "--key", "id", "--eccentricity", "0.2")
    found = released("attack", "link", "staff.csv", *about, "--tolerance", "age=2", "--tolerance", "pay=20").stdout
    assert found.startswith("BROKEN")
    assert "among 300 records" in found
    told = released.json("attack", "link", "staff.csv", *about, "--eccentricity", "50")
    assert told["verdict"] == "BROKEN overall, by the worst of 2 findings: 1 BROKEN, 1 HELD."
    assert told["findings"][0]["unique"] > 250


def test_suppressed_counts_are_solved_from_a_file(released: Commands) -> None:
    columns = {"sex": ["F", "M", "total"], "count": ["*", 7, 9]}
    write(released.folder / "t.csv", columns)
    said = released("attack", "difference", "t.csv", "--least", "5").stdout
    assert "BROKEN: 1 of 1 suppressed counts follows from the others." in said
    assert released.json("attack", "difference", "t.csv", "--reveal")["found"][0]["low"] == 2
    write(released.folder / "t.csv", columns | {"count": ["*", 7, 3]})
    odd = released("attack", "difference", "t.csv").stdout
    assert "contradict" in odd


ASK = "SELECT SUM(cost) FROM visits WHERE {condition}"
CROWDS = ("--cover", "age < 50", "--cover", "age < 60", "--cover", "age > 10")


def test_a_database_is_asked_and_our_session_is_charged(run: Commands) -> None:
    with duckdb.connect(str(run.folder / "raw.duckdb")) as base:
        base.execute(f"CREATE TABLE visits AS SELECT * FROM '{run.folder / 'visits.parquet'}'")
    about = ("attack", "difference", "--ask", ASK, "--target", "patient = 7", *CROWDS)
    raw = run(*about, "--database", "raw.duckdb").stdout
    assert "BROKEN: the value sought was read off 6 answers." in raw
    ours = run(*about, "--epsilon", "0.1").stdout
    assert "HELD" in ours
    assert "6 asked, 6 answered" in ours
    used = run.json("budget")[0]["used"]
    assert used > 0
    few = ("attack", "difference", "--ask", ASK, "--target", "patient = 7", *CROWDS[:4], "--epsilon", "0.1")
    assert "add 1 more" in " ".join(run(*few, code=2).output.replace("│", " ").split())
    assert run.json("budget")[0]["used"] == used
    assert "answered" in run(*few, "--step", "1").stdout


def test_a_member_is_traced_by_rows_and_by_means(released: Commands) -> None:
    generator = np.random.default_rng(1)
    traits = (generator.random((460, 400)) < 0.5).astype(int)
    inside = np.arange(60) < 30
    names = [f"t{place}" for place in range(400)]
    people = dict(zip(names, traits.T, strict=True))
    write(released.folder / "targets.csv", {name: column[:60] for name, column in people.items()} | {"in": inside})
    write(released.folder / "others.csv", {name: column[60:] for name, column in people.items()})
    write(released.folder / "means.csv", {"column": names, "mean": traits[:60][inside].mean(axis=0)})
    about = ("--targets", "targets.csv", "--reference", "others.csv", "--members", "in", "--alpha", "0.01")
    assert "BROKEN" in released("attack", "trace", "means.csv", "--means", *about).stdout
    few = {name: column[:30] for name, column in list(people.items())[:6]}
    write(released.folder / "rows.csv", {name: column[:30] for name, column in list(people.items())[:40]})
    copied = released("attack", "trace", "rows.csv", *about, "--by", "nearest", "--plot", "p.png").stdout
    assert copied.startswith("BROKEN")
    write(released.folder / "rows.csv", {name: generator.permutation(column) for name, column in few.items()})
    several = released("attack", "trace", "rows.csv", *about, "--html", "p.html", "--plot", "p.svg").stdout
    assert several.startswith("HELD overall, by the worst of 3 findings: 3 HELD.")
    assert several.count("HELD:") == 3
    assert (released.folder / "p.html").read_text().count("HELD:") >= 3
    assert (released.folder / "p.svg").read_text().count("no more than by chance") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("link", "a.csv", "--columns", "agee"), "name columns that it has"),
        (("link", "a.csv", "b.csv"), "add --sensitive and --columns"),
        (("link", "a.csv", "--known", "known.csv", "--tolerance", "age"), "COLUMN=NUMBER"),
        (("difference",), "give files of tables, or --ask SQL"),
        (("difference", "--ask", ASK, "--database", "x.duckdb"), "add --target"),
        (("difference", "--ask", "SELECT 1", "--target", "a", "--database", "x"), "{condition}"),
        (("trace", "a.csv", "--targets", "a.csv", "--reference", "b.csv", "--by", "magic"), "all, or one of"),
        (("trace", "a.csv", "--targets", "a.csv", "--reference", "b.csv", "--means"), "columns of a.csv"),
    ],
    ids=["column", "sensitive", "tolerance", "nothing", "target", "template", "score", "means"],
)
def test_what_is_wrong_is_said_in_one_line(released: Commands, words: tuple[str, ...], said: str) -> None:
    shown = released("attack", *words, code=2)
    assert said in " ".join(shown.output.replace("│", " ").split())


@pytest.mark.slow
def test_the_story_ends_well_for_us(tmp_path: Path) -> None:
    said = Commands(tmp_path)("attack", "demo").stdout
    for words in ("Zhao Lina: AIDS", "BROKEN: the value sought", "HELD: the value sought", "name 200 people"):
        assert words in " ".join(said.split())

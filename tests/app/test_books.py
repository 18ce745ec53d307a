"""`discreet budget`, `ledger` and `registry`: one set of books, and nothing of them that may not be shown."""

import sqlite3
from typing import Any

import pytest
from tests.app.commands import COUNT, Commands

from discreet.app.commands.books import entry_cells
from discreet.app.config.settings import Settings
from discreet.core.display.numbers import loss_record
from discreet.core.errors import BudgetExceeded
from discreet.session.connect import connect

AVERAGE = "SELECT AVG(cost) AS mean FROM visits"


@pytest.fixture
def asked(run: Commands) -> Commands:
    run("query", COUNT, "-e", "0.5", "--study", "flu", "--analyst", "ann")
    run("query", AVERAGE, "-e", "0.5", "--study", "flu", "--analyst", "bob")
    return run


def test_before_the_first_question_the_whole_budget_is_there(run: Commands) -> None:
    [standing] = run.json("budget")
    assert standing["account"] == ["visits"]
    assert standing["budget"] == {"definition": "ApproxDP", "epsilon": "3", "delta": "1e-6"}
    assert standing["remaining"] == standing["budget"]
    assert standing["used"] == 0
    assert "0.0 %" in run("budget").stdout


def test_spending_is_summed_over_studies_and_analysts(asked: Commands) -> None:
    standings = {"/".join(standing["account"]): standing for standing in asked.json("budget")}
    used = {name: standing["used"] for name, standing in standings.items()}
    assert used["visits"] == used["visits/flu"]
    assert used["visits/flu"] == pytest.approx(used["visits/flu/ann"] + used["visits/flu/bob"])
    said = asked("budget").stdout
    assert "    ann" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_entries_tell_who_was_charged_and_neither_answers_nor_their_times(asked: Commands) -> None:
    entries = asked.json("ledger")
    kinds = [entry["kind"] for entry in entries]
    assert kinds.count("charge") == kinds.count("release") == 2
    assert [entry["sequence"] for entry in entries] == list(range(1, len(entries) + 1))
    for entry in entries:
        assert ("time" in entry) == (entry["kind"] not in ("release", "certify"))
        assert not {"payload", "question", "states", "size"} & set(entry)
    said = asked("ledger").stdout
    assert "visits/flu/ann" in said
    assert "of charge" in said
    assert "SELECT AVG(cost)" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_an_attached_source_is_named() -> None:
    entry = {"sequence": 9, "time": "2026-01-01T00:00", "kind": "attach", "account": ("visits",), "hash": "0" * 64}
    details = {cells.title: cells.texts for cells in entry_cells([entry | {"source": "file:/ward/notes"}], 100)}
    assert details[""] == ["file:/ward/notes"]


def test_the_last_entries_can_be_asked_for(asked: Commands) -> None:
    everything = asked.json("ledger")
    assert asked.json("ledger", "--last", "3") == everything[-3:]
    assert asked.json("ledger", "--last", "1000") == everything


def test_a_check_walks_the_chain_and_prints_its_head(asked: Commands) -> None:
    said = asked("ledger", "check").stdout
    assert said.startswith("sound, ")
    head = asked.json("ledger", "check")["head"]
    asked("query", COUNT, "-e", "0.25")
    assert asked.json("ledger", "check", "--anchor", head)["sound"]
    number, _, _ = head.partition(":")
    assert not asked.json("ledger", "check", "--anchor", f"{number}:{'0' * 64}", code=1)["sound"]
    assert "number:hash" in asked("ledger", "check", "--anchor", "12", code=2).stderr


def test_a_check_finds_a_changed_entry(asked: Commands) -> None:
    with sqlite3.connect(asked.folder / "visits.parquet.ledger") as books:
        books.execute("UPDATE entries SET text = replace(text, 'ann', 'eve') WHERE sequence = 4")
    books.close()
    assert "entry 4" in asked("ledger", "check", code=1).stderr
    found = asked.json("ledger", "check", code=1)
    assert (found["sound"], found["fault"]["entry"]) == (False, 4)


def test_the_register_tells_what_was_spent_by_which_kinds_of_questions(asked: Commands) -> None:
    found = asked.json("registry")
    [dataset] = found["data_sets"]
    assert dataset["name"] == "visits"
    assert dataset["unit"]["column"] == "patient"
    assert sum(dataset["questions"].values()) == 2
    assert len(bytes.fromhex(found["keys"][0])) == 32
    said = asked("registry").stdout
    assert "all rows of one 'patient'" in said
    assert "(3, 1e-6)" in said
    assert found["keys"][0] in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_budget_is_changed_on_record_and_in_the_file(asked: Commands) -> None:
    path = asked.folder / "discreet.toml"
    path.write_text(path.read_text().replace("[tables.visits]", "# our remark\n[tables.visits]"))
    asked("budget", "amend", "--epsilon", "4", "--note", "a new consent")
    assert asked.json("budget")[0]["budget"]["epsilon"] == "4"
    assert "epsilon = 4\n" in path.read_text()
    assert "# our remark" in path.read_text()
    assert asked.json("query", COUNT, "-e", "0.5")["free"]
    assert asked.json("ledger", "--last", "1")[0]["note"] == "a new consent"
    assert asked("ledger", "check").stdout.startswith("sound")


def test_a_budget_changed_in_the_file_alone_is_refused(asked: Commands) -> None:
    path = asked.folder / "discreet.toml"
    path.write_text(path.read_text().replace("epsilon = 3", "epsilon = 300"))
    assert "on record" in asked("query", COUNT, "-e", "0.25", code=2).stderr


def test_a_study_gets_a_budget_of_its_own_before_it_asks(run: Commands) -> None:
    before = (run.folder / "discreet.toml").read_text()
    assert "visits/flu" in run("budget", "amend", "--study", "flu", "--epsilon", "0.4", "--new").stdout
    assert (run.folder / "discreet.toml").read_text() == before
    assert "'visits/flu'" in run("query", COUNT, "-e", "1", "--study", "flu", code=3).stderr
    small = run.json("query", COUNT, "-e", "0.2", "--study", "flu")["budget"]
    assert small in [{name: told[name] for name in small} for told in run.json("budget")]
    assert small["account"] == ["visits", "flu"]
    assert "used of visits/flu" in run("query", COUNT, "-e", "0.2", "--study", "flu").stdout
    assert run.json("query", COUNT, "-e", "0.3")["budget"]["used"] < small["used"]


def test_an_analyst_is_capped_in_all_studies_and_typos_are_noticed(run: Commands) -> None:
    run("query", COUNT, "-e", "0.2", "--study", "flu", "--analyst", "eve")
    assert "visits/*/eve" in run("budget", "amend", "--analyst", "eve", "--epsilon", "0.3").stdout
    assert "eve (all studies)" in run("budget").stdout
    average = "SELECT AVG(cost) AS mean FROM visits"
    assert "'eve'" in run("query", average, "-e", "0.2", "--study", "flu", "--analyst", "evee", code=2).stderr
    assert "'flu'" in run("query", average, "-e", "0.2", "--study", "flue", "--analyst", "eve", code=2).stderr
    run("budget", "amend", "--study", "covid", "--epsilon", "1", "--new")
    for study in ("flu", "covid"):
        said = run("query", average, "-e", "0.2", "--study", study, "--analyst", "eve", code=3).stderr
        assert "'visits/*/eve'" in said
    run("query", average, "-e", "0.05", "--study", "covid", "--analyst", "eve")
    assert "sound" in run("ledger", "check").stdout


@pytest.mark.parametrize("cap", [None, "1.1"])
@pytest.mark.parametrize("epsilon", ["0.4", "0.15"])
def test_enough_for_so_many_more_is_exact_for_the_tightest_account(
    run: Commands, cap: str | None, epsilon: str
) -> None:
    if cap is not None:
        run("budget", "amend", "--analyst", "eve", "--epsilon", cap, "--new")
    who = ("-e", epsilon, "--study", "flu", "--analyst", "eve")
    if cap is not None:
        run("budget", "amend", "--study", "flu", "--epsilon", "2", "--new")
    asked = (f"SELECT COUNT(*) AS n FROM visits WHERE age < {age}" for age in range(1, 99))
    first = run.json("query", next(asked), *who)
    again = run("query", "SELECT COUNT(*) FROM visits WHERE age < 1", *who).stdout
    assert f"enough for {first['more']} more like this" in " ".join(again.split())
    for left in range(first["more"] - 1, -1, -1):
        assert run.json("query", next(asked), *who)["more"] == left
    run("query", next(asked), *who, code=3)


def test_every_command_shows_the_same_figures(run: Commands) -> None:
    run("budget", "amend", "--study", "flu", "--epsilon", "1", "--new")
    for number, epsilon in enumerate(("0.3", "0.2", "0.1")):
        text = f"SELECT AVG(cost) AS m FROM visits WHERE age > {number}"
        run("query", text, "-e", epsilon, "--study", "flu", "--analyst", "ann")
    run("query", COUNT, "-e", "0.5")
    shown = {tuple(line["account"]): line for line in run.json("budget")}
    [dataset] = run.json("registry")["data_sets"]
    for line in dataset["accounts"]:
        told = shown[tuple(line["account"])]
        for figure in ("spent", "remaining"):
            assert float(told[figure]["epsilon"]) == pytest.approx(line[figure]["epsilon"], rel=1e-5)
        assert told["used"] == pytest.approx(line["used"])
    settings = Settings.read(run.folder / "discreet.toml")
    with connect(**settings.arguments(study="flu", analyst="ann")) as session:
        told = shown["visits", "flu", "ann"]
        assert loss_record(session.remaining, down=True) == told["remaining"]
        assert loss_record(session.spent) == told["spent"]
        with pytest.raises(BudgetExceeded) as refused:
            session.sql("SELECT SUM(cost) FROM visits", epsilon="2.9")
        assert str(session.remaining) in str(refused.value)


def test_answers_are_shared_or_kept_per_study(asked: Commands) -> None:
    assert "shared" in asked("budget", "answers").stdout
    assert asked.json("price", COUNT, "-e", "0.5", "--study", "covid")["stored"]
    assert "nothing: it was answered before" in asked("price", COUNT, "-e", "0.5").stdout
    assert "per study" in asked("budget", "answers", "--per", "study", "--note", "two sponsors").stdout
    priced = asked.json("price", COUNT, "-e", "0.5", "--study", "covid")
    assert not priced["stored"]
    assert priced["pays"] == priced["loss"]
    assert asked.json("query", COUNT, "-e", "0.5", "--study", "flu")["free"]
    assert not asked.json("query", COUNT, "-e", "0.5", "--study", "covid")["free"]
    assert [entry["per"] for entry in asked.json("ledger") if entry["kind"] == "answers"] == ["study"]
    assert "one of the two" in asked("budget", "answers", "--per", "analyst", code=2).stderr
    assert "sound" in asked("ledger", "check").stdout


def test_caps_above_a_lowered_budget_are_named(run: Commands) -> None:
    run("budget", "amend", "--study", "flu", "--epsilon", "2", "--new")
    said = run("budget", "amend", "--epsilon", "1").stdout
    assert "visits/flu may have (2, 1e-6), but visits has (1, 1e-6): that holds." in said
    assert "that holds" in run("budget").stdout


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--epsilon", "0.0001"], "spent"),
        (["--epsilon", "x"], "number"),
        (["--epsilon", "4", "--delta", "1e-9"], "direction"),
        (["--epsilon", "1", "--analyst", "a/b"], "/"),
        (["--epsilon", "1", "--analyst", "eve"], "--new"),
        (["--epsilon", "1", "--study", "covid"], "--new"),
        (["--epsilon", "4", "--study", "covid", "--new"], "at most ApproxDP(epsilon=3"),
    ],
)
def test_a_senseless_budget_is_refused_and_nothing_changes(asked: Commands, arguments: list[str], hint: str) -> None:
    before = (asked.folder / "discreet.toml").read_text(), asked.json("budget")
    assert hint in asked("budget", "amend", *arguments, code=2).stderr
    assert ((asked.folder / "discreet.toml").read_text(), asked.json("budget")) == before


def test_a_delta_cannot_be_given_to_a_pure_budget(empty: Commands) -> None:
    empty("init", "visits.parquet", "--unit", "patient", "--epsilon", "1")
    assert "delta" in empty("budget", "amend", "--epsilon", "2", "--delta", "1e-6", code=2).stderr
    empty("budget", "amend", "--epsilon", "2")
    assert empty.json("budget")[0]["budget"] == {"definition": "PureDP", "epsilon": "2"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "written",
    [
        "# of all\n[budget] # ours\nepsilon = 3 # so far\ndelta = 1e-6\n# to here\n\n",
        'budget = {epsilon = 3, delta = "1e-6"} # so far\n',
        'budget.epsilon = 3\n  "budget".delta = 1e-6\n',
    ],
)
def test_a_budget_is_changed_where_it_stands_however_it_is_written(run: Commands, written: str, end: str) -> None:
    path = run.folder / "discreet.toml"
    rest = path.read_text().replace("[budget]\nepsilon = 3\ndelta = 1e-6\n", "").split("\n\n", 1)[1]
    path.write_text(written + rest, newline=end)
    run("budget", "amend", "--epsilon", "4.50")
    expected = written.replace("epsilon = 3", "epsilon = 4.50") + rest
    assert path.read_bytes().decode() == expected.replace("\n", end)
    assert run.json("budget")[0]["budget"]["epsilon"] == "4.5"


def test_all_data_sets_of_shared_books_are_shown(empty: Commands, tmp_path_factory: Any) -> None:
    books = tmp_path_factory.mktemp("books") / "shared.ledger"
    common = ("--epsilon", "1", "--delta", "1e-6", "--ledger", str(books))
    empty("init", "visits.parquet", "--unit", "patient", *common)
    empty("query", "SELECT COUNT(*) AS n FROM visits", "-e", "0.5")
    (empty.folder / "discreet.toml").unlink()
    (empty.folder / "other.parquet").write_bytes((empty.folder / "visits.parquet").read_bytes())
    empty("init", "other.parquet", "--unit", "patient", *common)
    empty("query", "SELECT COUNT(*) AS n FROM other", "-e", "0.5")
    assert [standing["account"] for standing in empty.json("budget")] == [["other"], ["visits"]]
    assert [dataset["name"] for dataset in empty.json("registry")["data_sets"]] == ["other", "visits"]

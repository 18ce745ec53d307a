"""What a steward declares becomes a catalog; sources that are about the same people share one budget."""

import datetime
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.session.session import Session
from discreet.sql.catalog import Link

FACTS: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(20, "1e-6")}
COUNT = "SELECT COUNT(*) AS n FROM visits"


def visits(people: int = 1000) -> dict[str, Any]:
    who = np.arange(3 * people) % people
    return {"who": who, "visit": np.arange(3 * people), "cost": np.full(3 * people, 40.0)}


def items(people: int = 1000) -> dict[str, Any]:
    count = 6 * people
    return {"visit_id": np.arange(count) % (3 * people), "price": np.full(count, 2.0)}


def shape(session: Session) -> dict[str, dict[str, str]]:
    return {table.name: {c.name: c.type for c in table.columns} for table in session._catalog.tables}


def test_types_of_a_csv_come_from_what_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("who,age,cost,site,city,day,note\n1,30,2.5,1,Oslo,2020-01-01,x\n")
    session = dc.connect(
        path,
        **FACTS,
        types={"who": "integer", "age": "integer"},
        bounds={"age": (0, 120), "cost": (0, 10)},
        values={"site": [1, 2], "city": ["Oslo"], "day": [datetime.date(2020, 1, 1)]},
    )
    assert shape(session)["visits"] == {
        "who": "integer",
        "age": "integer",
        "cost": "real",
        "site": "integer",
        "city": "text",
        "day": "date",
        "note": "text",
    }
    for text in ("SELECT SUM(note) FROM visits", "SELECT AVG(note) FROM visits"):
        with pytest.raises(dc.Unsupported, match="`types`"):
            session.price(text, epsilon=1)
    session.close()


@pytest.mark.parametrize("odd", ["x", "9" * 400, "nan", "\x00", '""', "1,2,3", "é", "-"])
@pytest.mark.filterwarnings("ignore::discreet.engines.duckdb.snapshots.FaultyRecords")
def test_an_odd_value_changes_neither_columns_nor_success(odd: str, tmp_path: Path) -> None:
    lines = [f"{who},{who % 90},a" for who in range(2000)]
    seen = []
    for name, more in (("plain", []), ("odd", [f"5000,{odd},b"])):
        path = tmp_path / name / "visits.csv"
        path.parent.mkdir()
        path.write_text("\n".join(["who,age,k", *lines, *more]) + "\n")
        facts = FACTS | {"types": {"who": "integer"}, "bounds": {"age": (0, 100)}, "max_rows": 1}
        facts |= {"values": {"k": ["a", "b"]}}
        with dc.connect(path, **facts) as session:
            answer = session.sql("SELECT k, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY k", epsilon=10)
            seen.append((shape(session), answer.names, answer.column("k")))
            # Nobody is clipped at one row each: Laplace noise of scale 0.3 or so.
            assert abs(answer.column("n")[0] - 2000) < 50
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"types": {"costs": "real"}}, "cost"),
        ({"types": ["cost"]}, "a dict by column; write types="),
        ({"types": {"cost": ["float"]}}, "integer, real"),
        ({"values": {"city": "Oslo"}}, r'values=\{"city": \[\'Oslo\'\]\}'),
        ({"values": {"city": 3}}, "a list of values"),
        ({"values": {"cost": []}}, "one value or more"),
        ({"values": ["city"]}, "a dict by column; write values="),
        ({"bounds": {"cost": 1000}}, r'write bounds=\{"cost": \(low, high\)\}'),
        ({"bounds": {"cost": (0, 1, 2, 3)}}, "two ends"),
        ({"bounds": {"csot": (0, 1)}}, "one of the columns of visits; existing: cost"),
        ({"bounds": (0, 1)}, "a dict by column; write bounds="),
        ({"private": {"other": visits()}, "unit": "woh"}, "who"),
        ({"types": {"labs.resul": "real"}}, "result"),
        ({"types": {"cost": "number"}}, "integer, real"),
        ({"bounds": {"labs.results": (0, 1)}}, "result"),
        ({"values": {"cost": ["a"]}}, "real, as the column is"),
        ({"values": {"visit": [True]}}, "integer, as the column is"),
        ({"unit": dc.User("woh")}, "who"),
        ({"private": {"VISITS": visits()}}, "distinct"),
        ({"public": {"labs": visits()}}, "distinct"),
        ({"private": {"other": {"x": np.arange(3)}}}, "existing: x"),
        ({"private": {"other": dc.Private(visits(), unit="whom")}}, "who"),
        ({"private": {"other": dc.Private(items(), link=("visit", "visits", "visit"))}}, "visit_id"),
        ({"private": {"other": dc.Private(items(), link=("visit_id", "visit", "visit"))}}, "visits"),
        ({"private": {"other": dc.Private(items(), link=("visit_id", "visits", "visit_id"))}}, "visit"),
        ({"private": {"other": dc.Private(items(), link=("price", "visits", "visit"))}}, "one type"),
        ({"private": {"other": dc.Private(items(), link=("visit_id", "towns", "id"))}}, "registered"),
        ({"max_rows": 0.5}, "max_rows"),
        ({"dataset": "x" * 5000}, "account"),
    ],
)
def test_declarations_that_do_not_fit_say_what_is_there(facts: dict[str, Any], said: str) -> None:
    labs = {"who": np.arange(3), "result": np.zeros(3)}
    given = {**FACTS, "table": "visits", **facts, "private": {"labs": labs, **facts.get("private", {})}}
    with pytest.raises(dc.InvalidArgument, match=said):
        dc.connect(visits(), **given)


def test_a_column_name_is_a_unit_and_pythons_names_of_types_are_types(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("who,age,cost,city,there,at\n1,30,9.5,Oslo,true,2026-01-31 12:00:00\n")
    types = {"age": "int", "cost": "float", "city": "str", "there": "bool", "at": "datetime"}
    with dc.connect(tmp_path / "visits.csv", unit="who", budget=dc.PureDP(1), types=types) as session:
        assert session._unit == dc.User("who")
        found = {column.name: column.type for column in session._catalog.tables[0].columns}
    ours = {"age": "integer", "cost": "real", "city": "text", "there": "boolean", "at": "timestamp"}
    assert found == {"who": "text", **ours}


def test_private_says_what_is_wrong_with_itself() -> None:
    with pytest.raises(dc.InvalidArgument, match="a dict by column"):
        dc.Private({}, values=["city"])
    for facts in ({"link": ("a", "b")}, {"link": "abc"}, {"link": ("a", "b", "c"), "unit": "d"}):
        with pytest.raises(dc.InvalidArgument, match="link"):
            dc.Private({}, **facts)
    for other in (dc.Private(items(), link=("visit_id", "visits", "visit")), dc.Private(visits(), unit="who")):
        with pytest.raises(dc.InvalidArgument, match="Row"):
            dc.connect(visits(), unit=dc.Row(), budget=dc.PureDP(1), table="visits", private={"other": other})


def test_facts_reach_other_tables_by_their_names() -> None:
    labs = {"pid": np.arange(1000), "result": ["1.5"] * 1000, "kind": ["a"] * 1000}
    towns = {"id": np.arange(3), "size": np.array([1, 2, 3])}
    session = dc.connect(
        visits(),
        **FACTS,
        table="visits",
        private={"labs": dc.Private(labs, unit="pid", values={"kind": ["a"]}, max_rows=1)},
        public={"towns": towns},
        bounds={"cost": (0, 50), "Labs.result": (0, 9), "visits.visit": (0, 9), "towns.size": (0, 5)},
        types={"labs.kind": "text"},
    )
    catalog = session._catalog
    assert catalog.table("visits").column("visit").bounds == dc.Bounds(0, 9)
    assert catalog.table("labs").column("result").bounds == dc.Bounds(0, 9)
    assert catalog.table("labs").column("result").type == "real"
    assert catalog.table("labs").unit == "pid"
    assert catalog.table("labs").max_rows == 1
    assert catalog.table("towns").unique == ("id", "size")
    assert catalog.table("visits").unique == ()
    answer = session.sql("SELECT SUM(result) AS s FROM visits JOIN labs ON who = pid", epsilon=10)
    assert abs(answer.rows[0][0] - 4500) < 450
    session.close()


def test_linked_rows_are_seen_only_through_their_owners() -> None:
    private = {"items": dc.Private(items(), link=("visit_id", "visits", "visit"), bounds={"price": (0, 5)})}
    session = dc.connect(visits(), **FACTS, table="visits", private=private)
    assert session._catalog.table("items").link == Link("visit_id", "visits", "visit")
    for text in (
        "SELECT COUNT(*) FROM items",
        "SELECT COUNT(*) FROM items JOIN visits ON price = visit",
        "SELECT COUNT(*) FROM visits JOIN items ON visit = price",
        "SELECT COUNT(*) FROM items LEFT JOIN visits ON visit_id = visit",
        "SELECT COUNT(*) FROM items a JOIN items b ON a.visit_id = b.visit_id",
        "SELECT COUNT(*) FROM (SELECT visit_id FROM items UNION ALL SELECT visit FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE cost IN (SELECT price FROM items)",
    ):
        with pytest.raises(dc.Unsupported):
            session.price(text, epsilon=1)
    answer = session.sql("SELECT SUM(price) AS s FROM visits JOIN items ON visit = visit_id", epsilon=15)
    assert abs(answer.rows[0][0] - 12_000) < 2_400
    session.close()


def test_a_column_that_queries_cannot_use_is_named() -> None:
    data = pa.table({"who": [1, 2], "tags": [["a"], []], "raw": [b"a", b"b"]})
    with dc.connect(data, **FACTS, table="visits", types={"raw": "text"}) as session:
        assert shape(session) == {"visits": {"who": "integer", "raw": "text"}}
        for text in ("SELECT COUNT(tags) FROM visits", "SELECT COUNT(v.TAGS) FROM visits v JOIN visits w USING (who)"):
            with pytest.raises(dc.InvalidArgument, match="`types`"):
                session.price(text, epsilon=1)


def test_rows_without_a_unit_belong_to_nobody() -> None:
    who = pd.array([None if i % 2 else i for i in range(4000)], dtype="Int64")
    with dc.connect(pd.DataFrame({"who": who}), **FACTS, table="visits") as session:
        assert abs(session.sql(COUNT, epsilon=10).rows[0][0] - 2000) < 50


@pytest.fixture
def books(tmp_path: Path) -> Callable[..., Session]:
    pd.DataFrame(visits()).to_parquet(tmp_path / "visits.parquet")
    pd.DataFrame(visits()).to_parquet(tmp_path / "labs.parquet")

    def opened(source: Any = tmp_path / "visits.parquet", **facts: Any) -> Session:
        return dc.connect(source, **{**FACTS, "ledger": tmp_path / "books", **facts})

    return opened


def test_a_named_data_set_keeps_its_books_wherever_it_goes(books: Callable[..., Session], tmp_path: Path) -> None:
    with books(dataset="hospital-2026") as first:
        answer, spent = first.sql(COUNT, epsilon=1).rows, first.spent
    moved = tmp_path / "elsewhere" / "visits.parquet"
    moved.parent.mkdir()
    shutil.copy(tmp_path / "visits.parquet", moved)
    for source in (moved, pd.DataFrame(visits()), tmp_path / "visits.parquet"):
        with books(source, dataset="hospital-2026", table="visits") as again:
            assert again.spent == spent
            assert again.sql(COUNT, epsilon=1).rows == answer
    for source in (moved, tmp_path / "visits.parquet"):
        with books(source) as unnamed:
            assert unnamed.spent == spent


def test_data_changed_in_place_keeps_its_answers_and_its_budget(books: Callable[..., Session], tmp_path: Path) -> None:
    with books() as first:
        answer, spent = first.sql(COUNT, epsilon=1).rows, first.spent
    pd.DataFrame(visits(10)).to_parquet(tmp_path / "visits.parquet")
    with books() as again:
        assert again.sql(COUNT, epsilon=1).rows == answer
        assert again.spent == spent
        assert abs(again.sql(COUNT, epsilon=5).rows[0][0] - 30) < 100


def test_two_data_sets_may_have_tables_of_one_name(books: Callable[..., Session], tmp_path: Path) -> None:
    with books(dataset="a") as first:
        first.sql(COUNT, epsilon=1)
    with books(tmp_path / "labs.parquet", dataset="b", table="visits") as second:
        assert second.spent == dc.ApproxDP(0, 0)


def test_a_file_belongs_to_one_data_set(books: Callable[..., Session], tmp_path: Path) -> None:
    books(dataset="a").close()
    with pytest.raises(dc.InvalidArgument, match="belongs to 'a'"):
        books(dataset="b")
    books(private={"labs": tmp_path / "labs.parquet"}, dataset="a").close()
    with pytest.raises(dc.InvalidArgument, match="belongs to 'a'"):
        books(tmp_path / "labs.parquet", dataset="c")
    with books(tmp_path / "labs.parquet") as alone:
        assert alone._account == ("a",)


def test_what_was_opened_alone_is_not_drawn_into_another_budget(books: Callable[..., Session], tmp_path: Path) -> None:
    books(tmp_path / "labs.parquet").close()
    with pytest.raises(dc.InvalidArgument, match="belongs to 'labs'"):
        books(private={"labs": tmp_path / "labs.parquet"})


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder with two files, and another name of the first of them elsewhere."""
    folder = tmp_path / "parts"
    (folder / "deep").mkdir(parents=True)
    for name in ("a", "deep/b"):
        pd.DataFrame(visits()).to_parquet(folder / f"{name}.parquet")
    os.link(folder / "a.parquet", tmp_path / "link.parquet")
    return folder


def same_rows(parts: Path) -> list[Any]:
    first = parts / "a.parquet"
    return [parts, first, parts.parent / "link.parquet", pyarrow.dataset.dataset(str(first))]


@pytest.mark.parametrize("first", ["folder", "dataset", "arrow"])
def test_what_became_of_the_first_files_gives_no_other_table_their_answers(
    first: str, books: Callable[..., Session], parts: Path
) -> None:
    whole = {"folder": parts, "dataset": parts, "arrow": pyarrow.dataset.dataset(str(parts))}[first]
    with books(whole, table="visits", **({"dataset": "d"} if first == "dataset" else {})) as session:
        session.sql(COUNT, epsilon=1)
    for _ in range(2):
        with books(parts / "a.parquet", table="visits") as session:
            assert session.price(COUNT, epsilon=1).stored == (_ == 1)
            part = session.sql(COUNT, epsilon=1).rows
    (parts / "deep" / "b.parquet").unlink()
    with books(parts / "a.parquet", table="visits") as session:
        assert session.sql(COUNT, epsilon=1).rows == part
    with books(parts.parent / "link.parquet", table="visits") as session:
        assert not session.price(COUNT, epsilon=1).stored


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 0), (0, 3), (0, 0), (1, 1)])
def test_a_part_is_not_answered_with_what_the_whole_was_asked(
    one: int, other: int, books: Callable[..., Session], parts: Path
) -> None:
    for _ in range(2):
        with books(same_rows(parts)[one], table="visits") as first:
            answer = first.sql(COUNT, epsilon=1)
    with books(same_rows(parts)[other], table="visits") as second:
        assert second.price(COUNT, epsilon=1).stored == (one == other)
        spent = second.spent
        second.sql(COUNT, epsilon=1)
        assert (second.spent == spent) == (one == other)
    with books(same_rows(parts)[other], table="visits") as again:
        assert again.price(COUNT, epsilon=1).stored
    with books(same_rows(parts)[one], table="visits") as third:
        assert third.sql(COUNT, epsilon=1).rows == answer.rows


@pytest.mark.parametrize("one", range(4))
@pytest.mark.parametrize("other", range(4))
def test_rows_in_one_file_have_one_budget_whatever_leads_there(
    one: int, other: int, books: Callable[..., Session], parts: Path
) -> None:
    with books(same_rows(parts)[one], table="visits") as first:
        first.sql(COUNT, epsilon=1)
        account, spent = first.account, first.spent
    with books(same_rows(parts)[other], table="again") as second:
        assert (second.account, second.spent) == (account, spent)
    if one != other:
        with pytest.raises(dc.InvalidArgument, match="belongs to 'visits'"):
            books(same_rows(parts)[other], table="again", dataset="fresh")
        with pytest.raises(dc.InvalidArgument, match="belongs to 'visits'"):
            books(private={"more": same_rows(parts)[other]}, dataset="fresh")


def test_a_folder_of_two_data_sets_is_refused(books: Callable[..., Session], parts: Path) -> None:
    books(parts / "a.parquet", table="a").close()
    books(parts / "deep", table="b").close()
    with pytest.raises(dc.InvalidArgument, match="belongs to 'b'"):
        books(parts, table="all")


def test_unrelated_files_of_one_folder_have_budgets_of_their_own(books: Callable[..., Session], parts: Path) -> None:
    (parts / "_notes.parquet").write_bytes((parts / "a.parquet").read_bytes())
    books(parts, table="all").close()
    with books(parts / "_notes.parquet", table="notes") as notes:
        assert notes.account == ("notes",)


def test_a_file_opened_under_two_names_at_once_is_refused(
    books: Callable[..., Session], parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Session.__init__

    def beaten(self: Session, *arguments: Any) -> None:
        monkeypatch.setattr(Session, "__init__", opened)
        books(parts / "a.parquet", table="a").close()
        opened(self, *arguments)

    monkeypatch.setattr(Session, "__init__", beaten)
    with pytest.raises(dc.InvalidArgument, match="belongs to 'a'"):
        books(parts, table="all")


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 0)])
def test_books_beside_a_folder_and_beside_its_files_do_not_coexist(one: int, other: int, parts: Path) -> None:
    places = [parts, parts / "a.parquet"]
    with dc.connect(places[one], **FACTS, table="visits") as first:
        first.sql(COUNT, epsilon=1)
        spent = first.spent
    beside = parts.parent / "parts.ledger" if one == 0 else parts / "a.parquet.ledger"
    for given in ({}, {"ledger": places[other].with_name(places[other].name + ".ledger")}):
        with pytest.raises(dc.InvalidArgument, match=f"ledger='{beside}'"):
            dc.connect(places[other], **FACTS, table="visits", **given)
    with dc.connect(places[other], **FACTS, table="visits", ledger=beside) as second:
        assert second.spent == spent


def test_other_books_in_a_folder_are_no_hindrance(parts: Path) -> None:
    (parts / "old.ledger").touch()
    (parts / "c.duckdb.ledger").touch()
    dc.connect(parts, **FACTS, table="visits").close()
    dc.connect(parts, **FACTS, table="visits").close()


def test_a_source_whose_columns_would_hide_those_of_statements_is_refused() -> None:
    data = visits() | {"Discreet Unit": np.arange(3000)}
    with pytest.raises(dc.InvalidArgument, match=r"'Discreet Unit'.*rename it"):
        dc.connect(data, **FACTS, table="visits")
    for role in ({"private": {"more": data}}, {"public": {"more": data}}):
        with pytest.raises(dc.InvalidArgument, match="rename it"):
            dc.connect(visits(), **FACTS, table="visits", **role)


def test_rows_are_linked_by_keys_that_are_read_exactly() -> None:
    bought = {"visit_id": np.array(["1.2", "1.4", "1", "2.0"]), "price": np.full(4, 2.0)}
    private = {"items": dc.Private(bought, link=("visit_id", "Visits", "VISIT"), types={"visit_id": "integer"})}
    texts = visits() | {"visit": np.array([str(n) for n in range(2999)] + ["7.5"])}
    with dc.connect(texts, **FACTS, table="visits", types={"visit": "integer"}, private=private) as session:
        engine = session._engine
        assert sorted(engine.run("SELECT visit_id FROM items WHERE visit_id IS NOT NULL")) == [(1,), (2,)]
        assert engine.run("SELECT COUNT(*) FROM visits WHERE visit IS NULL") == [(1,)]


def test_a_closed_session_says_so(books: Callable[..., Session]) -> None:
    session = books()
    session.close()
    session.close()
    with pytest.raises(dc.DiscreetError, match="closed"):
        session.sql(COUNT, epsilon=1)
    with pytest.raises(dc.DiscreetError, match="closed"):
        _ = session.spent


def test_no_file_is_private_and_public_at_once(tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": [1, 2], "city": ["Oslo", "Bern"]}), tmp_path / "visits.parquet")
    os.link(tmp_path / "visits.parquet", tmp_path / "towns.parquet")
    budget = dc.PureDP(1)
    for other in ("visits.parquet", "towns.parquet"):
        with pytest.raises(dc.InvalidArgument, match="public='lookup' must be no rows of visits, which is private"):
            dc.connect(tmp_path / "visits.parquet", unit="who", budget=budget, public={"lookup": tmp_path / other})
    with duckdb.connect(str(tmp_path / "both.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS who; CREATE TABLE towns AS SELECT 'Oslo' AS city")
    both = tmp_path / "both.duckdb"
    dc.connect(both, table="visits", unit="who", budget=budget, public={"towns": both}).close()


@pytest.mark.parametrize(
    "address", ["mysql://ann:secret@data/hospital", "oracle://secret", "s3://secret/visits.parquet"]
)
def test_addresses_of_unknown_kinds_are_refused_unseen(address: str) -> None:
    with pytest.raises(dc.InvalidArgument, match="postgresql://") as refused:
        dc.connect(address, **FACTS, table="visits")
    assert "secret" not in str(refused.value)


PEOPLE = {"who": np.arange(50), "x": np.arange(50.0)}
TERMS: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(1, "1e-6"), "table": "people"}
PEOPLE_COUNT = "SELECT COUNT(*) FROM people"


def test_rows_without_a_place_for_their_books_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="begins with the whole budget again.*dataset=") as heard:
        dc.connect(PEOPLE, **TERMS).close()
    assert heard[0].filename == __file__


def test_rows_with_a_name_continue_their_books_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    with dc.connect(PEOPLE, dataset="people of 2026", **TERMS) as session:
        answer = session.sql(PEOPLE_COUNT, epsilon="0.5")
        assert session.account == ("people of 2026",)
    program = f"""
import numpy as np
from discreet import ApproxDP, BudgetExceeded, User, connect
rows = {{"who": np.arange(40), "x": np.zeros(40)}}
with connect(rows, unit=User("who"), budget=ApproxDP(1, "1e-6"), table="people", dataset="people of 2026") as session:
    print(session.sql({PEOPLE_COUNT!r}, epsilon="0.5").rows[0][0])
    try:
        session.sql("SELECT COUNT(*) FROM people WHERE who < 9", epsilon="0.75")
    except BudgetExceeded:
        print("refused")
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert found == [str(answer.rows[0][0]), "refused"]
    with dc.connect(PEOPLE, dataset="people of 2027", **TERMS) as other:
        assert other.spent == dc.ApproxDP(0, 0)
    kept = sorted(path.name for path in (tmp_path / "share" / "discreet").glob("*.ledger"))
    assert [name[:15] for name in kept] == ["people_of_2026-", "people_of_2027-"]
    assert not [warning for warning in recwarn if "books" in str(warning.message)]


@pytest.mark.parametrize("name", ["a/b", "", " x"])
def test_names_that_no_books_can_have_make_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    with pytest.raises(dc.InvalidArgument, match="account"):
        dc.connect(PEOPLE, dataset=name, **TERMS)
    assert not list(tmp_path.rglob("*.ledger"))

"""Every kind of source gives the same table, by its schema and by what is declared."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from tests.engines.sources import SOURCES, TABLE, TYPES, UNTYPED

import discreet as dc
from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine

EXACT = 'SELECT who, city, CASE WHEN isfinite(cost) THEN cost END, day FROM "visits" ORDER BY ALL'


def rows_of(engine: DuckDB) -> list[tuple[Any, ...]]:
    return engine.run(EXACT)


@pytest.fixture
def expected() -> list[tuple[Any, ...]]:
    engine = DuckDB()
    engine.add("visits", TABLE)
    return rows_of(engine)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_rows_and_types(kind: str, tmp_path: Path, expected: list[Any]) -> None:
    engine = DuckDB()
    types = {name: TYPES[name] for name in UNTYPED.get(kind, [])}
    engine.add("visits", SOURCES[kind](tmp_path), types=types, unit="who")
    engine.seal()
    assert isinstance(engine, Engine)
    assert {column.name: column.type for column in engine.columns("visits")} == TYPES
    assert engine.omitted("visits") == ()
    assert rows_of(engine) == expected
    engine.close()


@pytest.mark.parametrize("kind", UNTYPED)
def test_what_has_no_type_is_text_unless_bounds_or_values_hint_at_one(kind: str, tmp_path: Path) -> None:
    for hints in ({}, {"cost": "real", "who": "integer", "city": "text"}):
        engine = DuckDB()
        (tmp_path / str(len(hints))).mkdir()
        engine.add("visits", SOURCES[kind](tmp_path / str(len(hints))), hints=hints)
        kinds = {column.name: column.type for column in engine.columns("visits")}
        assert kinds == TYPES | {name: hints.get(name, "text") for name in UNTYPED[kind]}


def test_hints_leave_typed_columns_alone(tmp_path: Path) -> None:
    engine = DuckDB()
    engine.add("visits", SOURCES["parquet"](tmp_path), hints={"who": "real", "city": "date"})
    assert {column.name: column.type for column in engine.columns("visits")} == TYPES


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "arrow", "dataset", "csv", "hive"])
def test_declared_types_overrule_the_schema(kind: str, tmp_path: Path) -> None:
    engine = DuckDB()
    types = {"WHO": "text", "cost": "integer", "day": "timestamp", "city": "real"}
    engine.add("visits", SOURCES[kind](tmp_path), types=types)
    kinds = [column.type for column in sorted(engine.columns("visits"), key=lambda column: column.name)]
    assert kinds == ["real", "integer", "timestamp", "text"]
    rows = engine.run("SELECT who, cost, city, CAST(day AS DATE) FROM \"visits\" WHERE who = '3'")
    assert [(row[0], row[1], row[2]) for row in rows] == [("3", -2, None)]


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ({"whom": "integer"}, "who"),
        ({"who": "int"}, "integer"),
        ({"who": "date"}, "convertible from integer"),
        ({"day": "real"}, "convertible from date"),
        ({"tags": "text"}, "tags"),
    ],
)
def test_types_that_cannot_be_are_named(types: dict[str, Any], said: str) -> None:
    tagged = TABLE.append_column("tags", pa.array([["a"]] * 5))
    with pytest.raises(InvalidArgument, match=said):
        DuckDB().add("visits", tagged, types=types)


def test_columns_of_other_types_are_left_out_and_named(tmp_path: Path) -> None:
    odd = {
        "tags": pa.array([["a"]] * 5),
        "raw": pa.array([b"\xff"] * 5),
        "hour": pa.array([1] * 5, pa.time32("s")),
        "span": pa.array([1] * 5, pa.duration("s")),
        "nothing": pa.nulls(5),
        "id": pa.array([b"0123456789abcdef"] * 5, pa.uuid()),
        "half": pa.array([1.5] * 5, pa.float16()),
        "zoned": pa.array([0] * 5, pa.timestamp("s", "Asia/Tokyo")),
        "large": pa.array([1] * 5, pa.decimal256(60, 2)),
    }
    table = TABLE
    for name, values in odd.items():
        table = table.append_column(name, values)
    engine = DuckDB()
    engine.add("frame", table)
    assert [name for name, _ in engine.omitted("frame")] == ["tags", "span", "raw", "hour", "nothing"]
    kinds = {column.name: column.type for column in engine.columns("frame")}
    assert kinds == TYPES | {"id": "text", "half": "real", "zoned": "timestamp", "large": "real"}
    written = tmp_path / "odd.parquet"
    pyarrow.parquet.write_table(table.drop_columns(["span"]), written)
    engine.add("file", written, types={"raw": "text"})
    assert {name for name, _ in engine.omitted("file")} == {"tags", "hour", "nothing"}
    assert engine.run('SELECT DISTINCT raw, CAST(id AS VARCHAR), half FROM "file"')[0][0] == "?"
    for name in ("frame", "file"):
        shown = engine.run(f'SELECT DISTINCT CAST(zoned AS TIMESTAMP), id FROM "{name}"')
        assert [str(row[0]) for row in shown] == ["1970-01-01 00:00:00"]
        assert shown[0][1].startswith("30313233-")


def test_a_lazy_frame_is_told_to_collect() -> None:
    with pytest.raises(InvalidArgument, match="collect"):
        DuckDB().add("visits", pl.LazyFrame({"a": [1]}))


@pytest.mark.parametrize(
    "source",
    [
        3,
        [1, 2],
        {},
        {"a": [[1], [2]], "b": [1]},
        {"a": pa.array([[1]])},
        pd.DataFrame({"a": [1], "A": [2]}),
        {"a": pd.DataFrame({"x": [1]}).to_numpy()},
    ],
    ids=lambda source: type(source).__name__,
)
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(InvalidArgument):
        DuckDB().add("visits", source)


def test_a_missing_file_names_near_data_files_and_no_others(tmp_path: Path) -> None:
    for name in ("visits.parquet", "visits.parquet.ledger", "visits.parquet.ledger.key", "notes.txt", "labs.csv"):
        (tmp_path / name).touch()
    with pytest.raises(InvalidArgument) as caught:
        DuckDB().add("visits", tmp_path / "visit.parquet")
    assert "existing: visits.parquet, labs.csv" in str(caught.value)
    assert "ledger" not in str(caught.value)
    with pytest.raises(InvalidArgument, match="existing: none"):
        DuckDB().add("visits", tmp_path / "nowhere" / "visit.parquet")


@pytest.mark.parametrize(
    "content",
    [
        {"a.txt": b""},
        {"a.csv": b"x\n", "b.parquet": b""},
        {"a.csv": b"x,y\n1,2\n", "b.csv": b"x,z\n1,2\n"},
        {"k=1/a.csv": b"x\n", "b.csv": b"x\n"},
        {},
    ],
    ids=str,
)
def test_folders_hold_one_kind_with_the_same_columns(content: dict[str, bytes], tmp_path: Path) -> None:
    for name, data in content.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidArgument):
        DuckDB().add("visits", tmp_path)


def test_parquet_files_of_a_folder_have_the_same_types(tmp_path: Path) -> None:
    for name, values in (("a", [1]), ("b", ["x"])):
        pyarrow.parquet.write_table(pa.table({"who": values}), tmp_path / f"{name}.parquet")
    with pytest.raises(InvalidArgument, match="same columns"):
        DuckDB().add("visits", tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.duckdb", "a.csv.gz"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01secret"])
def test_broken_files_are_refused_without_their_content(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    if name == "a.csv" and content:
        path.write_bytes(b'a,"b\n')
    with pytest.raises(InvalidArgument) as caught:
        DuckDB().add("a", path)
    assert "secret" not in str(caught.value)


def test_a_table_of_a_database_is_chosen_by_name(tmp_path: Path) -> None:
    path = SOURCES["duckdb"](tmp_path)
    engine = DuckDB()
    engine.add("Rows", path)
    engine.add("visits", path)
    assert engine.identity("Rows") == engine.identity("visits") == f"file:{path}"
    with pytest.raises(InvalidArgument, match="visits, rows"):
        engine.add("visit", path)


def test_a_view_that_reads_other_files_is_refused(tmp_path: Path) -> None:
    import duckdb

    other = SOURCES["parquet"](tmp_path)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(f"CREATE VIEW visits AS FROM '{other}'")
    engine = DuckDB()
    engine.add("visits", tmp_path / "a.duckdb")
    with pytest.raises(InvalidArgument, match="view"):
        engine.seal()


def test_datasets_of_files_without_types_are_refused(tmp_path: Path) -> None:
    source = pyarrow.dataset.dataset(SOURCES["csv"](tmp_path), format="csv")
    with pytest.raises(InvalidArgument, match="path"):
        DuckDB().add("visits", source)


def test_paths_resolve_to_one_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = SOURCES["parquet"](tmp_path)
    (tmp_path / "link.parquet").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    engine = DuckDB()
    for place, same in enumerate([path, str(path), "link.parquet", "../" + tmp_path.name + "/visits.parquet"]):
        engine.add(f"t{place}", same)
    engine.add("home", "~/visits.parquet")
    assert {engine.identity(name) for name in ("t0", "t1", "t2", "t3", "home")} == {f"file:{os.path.realpath(path)}"}


def test_public_tables_may_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "towns.csv"
    path.write_text("id,name,size,code\n1,Oslo,5,\n2,Bern,5,x\n3,Rom,6,y\n")
    engine = DuckDB()
    engine.add("towns", path, private=False)
    assert [(c.name, c.type) for c in engine.columns("towns")][:3] == [
        ("id", "integer"),
        ("name", "text"),
        ("size", "integer"),
    ]
    assert engine.unique("towns") == ("id", "name")
    held = {column.name: (column.values, column.bounds) for column in engine.columns("towns")}
    assert held["id"] == (Categories((1, 2, 3)), Bounds(1, 3))
    assert held["name"] == (Categories(("Bern", "Oslo", "Rom")), None)
    assert held["code"] == (Categories(("x", "y", None)), None)
    # What was looked at is what is joined, whatever becomes of the file.
    path.write_text("id,name,size,code\n1,Oslo,5,\n1,Bern,5,x\n")
    assert engine.run('SELECT COUNT(*) FROM "towns"') == [(3,)]
    engine.add("codes", {"code": [1, 2, 2]}, private=False)
    assert engine.columns("codes")[0].type == "integer"
    assert engine.unique("codes") == ()
    odd = {"price": [1.5, float("nan"), float("inf")], "none": [None, None, None], "n": [1, 2, 3]}
    engine.add("odd", odd, private=False, types={"none": "text"})
    price, none, _ = engine.columns("odd")
    assert (price.values, price.bounds) == (None, Bounds("1.5", "1.5"))
    assert (none.values, none.bounds) == (None, None)
    engine.add("long", {"id": range(2000)}, private=False)
    assert (engine.columns("long")[0].values, engine.columns("long")[0].bounds) == (None, Bounds(0, 1999))
    engine.add("empty", {"id": np.array([], dtype=np.int64)}, private=False)
    assert (engine.columns("empty")[0].values, engine.columns("empty")[0].bounds) == (None, None)
    engine.add("private", {"code": [1, 2, 3]})
    assert engine.unique("private") == ()
    assert (engine.columns("private")[0].values, engine.columns("private")[0].bounds) == (None, None)


def test_groups_of_public_columns_are_listed_and_their_values_have_bounds() -> None:
    cities = {"c": np.arange(3), "region": ["n", None, "s"], "price": [1.5, 2.5, 4.0]}
    visits = {"who": np.arange(300) % 100, "c": np.zeros(300, dtype=np.int64)}
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.PureDP(100), "table": "t", "max_rows": 3}
    with dc.connect(visits, public={"cities": cities}, **facts) as session:
        asked = "SELECT region, COUNT(*) AS n, SUM(price) AS s FROM t JOIN cities USING (c) GROUP BY region"
        answer = session.sql(asked, epsilon=50)
        assert answer.column("region") == ["n", "s", None]
        assert [round(n / 10) for n in answer.column("n")] == [30, 0, 0]
        assert answer.column("s")[0] == pytest.approx(450, abs=10)


def test_columns_of_one_public_table_are_not_multiplied_out() -> None:
    cities = {"c": np.arange(90), "code": [f"c{i}" for i in range(90)], "region": [f"r{i % 9}" for i in range(90)]}
    visits = {"who": np.arange(300) % 100, "c": np.zeros(300, dtype=np.int64), "k": np.arange(300) % 5}
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(100, "1e-6"), "table": "t"}
    rows = "FROM t JOIN cities USING (c)"
    with dc.connect(visits, public={"cities": cities}, values={"k": range(5)}, **facts) as session:
        for keys, said in (
            ("code", "all 90 listed"),
            ("code, k", "all 450 listed"),
            ("code, region", "withheld"),
            ("UPPER(code), LEFT(region, 1)", "withheld"),
        ):
            assert said in session.price(f"SELECT {keys}, COUNT(*) AS n {rows} GROUP BY {keys}", epsilon=1).plan
    # What the steward declares is multiplied out, up to a limit.
    listed = {name: cities[name] for name in ("code", "region")}
    declared = {"cities.code": listed["code"], "cities.region": sorted({*listed["region"]}), "k": range(2000)}
    with dc.connect(visits, public={"cities": cities}, values=declared, **facts) as session:
        asked = f"SELECT code, region, COUNT(*) AS n {rows} GROUP BY code, region"
        assert "all 810 listed" in session.price(asked, epsilon=1).plan
        asked = f"SELECT code, region, k, COUNT(*) AS n {rows} GROUP BY code, region, k"
        with pytest.raises(Unsupported, match="1,620,000 groups"):
            session.price(asked, epsilon=1)


def test_the_plan_says_where_joins_leave_rows_out() -> None:
    visits = {"who": np.arange(300) % 100, "c": np.zeros(300, dtype=np.int64)}
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.PureDP(100), "table": "t", "max_rows": 3}
    many = {"c": [0, 0, 1], "x": [1, 2, 3]}
    with dc.connect(visits, public={"many": many, "once": {"c": [0, 1, 2]}}, **facts) as session:
        assert "1,000 rows of many" in session.price("SELECT COUNT(*) AS n FROM t JOIN many USING (c)", epsilon=1).plan
        assert "leave out" not in session.price("SELECT COUNT(*) AS n FROM t JOIN once USING (c)", epsilon=1).plan


@pytest.mark.parametrize("odd", ["oops", "99999999999999999999999", "2.6", "", None], ids=str)
@pytest.mark.parametrize("kind", ["csv", "text", "object"])
def test_a_range_of_keys_is_read_whatever_stands_in_their_place(kind: str, odd: Any, tmp_path: Path) -> None:
    """The range is looked at in the table itself, which holds whole numbers by declaration: nothing there can fail."""
    keys = ["1", "2", odd, "3"]
    source: Any = tmp_path / "t.csv"
    if kind == "csv":
        source.write_text("who,k\n" + "".join(f"{who},{'' if k is None else k}\n" for who, k in enumerate(keys)))
    elif kind == "text":
        source = pa.table({"who": [*range(4)], "k": pa.array(keys, pa.string())})
    else:
        source = pd.DataFrame({"who": [*range(4)], "k": [1, 2, odd, 3]}, dtype=object)
    facts: dict[str, Any] = {"unit": "who", "budget": dc.PureDP(10**4), "types": {"k": "integer"}, "max_rows": 1}
    books = tmp_path / "books"
    with dc.connect(source, table="t", values={"k": range(1, 4)}, ledger=books, **facts) as session:
        asked = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
        assert '"k" BETWEEN 1 AND 3' in session.price(asked, epsilon=1000).statement
        counts = dict(session.sql(asked, epsilon=1000).rows)
        # 2.6 is read as 3.
        assert counts == {1: 1, 2: 1, 3: 1 + (odd == "2.6")}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_moments_of_pandas_with_a_zone_are_read_as_utc(zone: str) -> None:
    moments = pd.Series(pd.to_datetime(["2026-01-31 12:00", None, "1900-01-01 00:00"], utc=True)).dt.tz_convert(zone)
    engine = DuckDB()
    engine.add("visits", pd.DataFrame({"who": [1, 2, 3], "at": moments}))
    assert [(c.name, c.type) for c in engine.columns("visits")] == [("who", "integer"), ("at", "timestamp")]
    shown = engine.run('SELECT CAST("at" AS VARCHAR) FROM "visits" ORDER BY who')
    assert [row[0] for row in shown] == ["2026-01-31 12:00:00", None, "1900-01-01 00:00:00"]

"""What the steward declares means one column, and what that column can hold.

A column is found whatever the case of its name, so one whose name another has too is read on no engine: it would be one
of two, and another column would say whose the rows are. A listed value is brought to the type of its column where it is
declared: a constant that the type cannot hold fails only where a row gets to it, and that tells of the row.
"""

import datetime
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from tests.attacks import declaration_faults as faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import exact, opened, strain
from tests.attacks.statements import BUDGET
from tests.ledger.servers import running

import discreet as dc
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.engines.tables import readable
from discreet.engines.warehouses import engine as warehouses
from discreet.sql.catalog import Column, Table, Type
from discreet.sql.decimals import Decimals
from discreet.sql.functions.registry import render
from discreet.sql.held_values import held
from discreet.sql.plan import Literal

UTC = datetime.UTC
Rows = Sequence[tuple[int, int]]
PEOPLE: Rows = [(row, row % 3) for row in range(60)]
"""Sixty rows: each of somebody else, or of one of three people."""


def two_names(rows: Rows, *more: str) -> Any:
    columns = [pa.array([one for one, _ in rows]), pa.array([other for _, other in rows])]
    return pa.table([*columns, *([columns[0]] * len(more))], names=["pid", "PID", *more])


def parquet(rows: Rows, folder: Path) -> Any:
    pyarrow.parquet.write_table(two_names(rows, "x"), folder / "visits.parquet")
    return folder / "visits.parquet"


def renamed_parquet(rows: Rows, folder: Path) -> Any:
    """With the very name that DuckDB would give."""
    pyarrow.parquet.write_table(two_names(rows, "pid_1", "x"), folder / "visits.parquet")
    return folder / "visits.parquet"


def arrow_dataset(rows: Rows, folder: Path) -> Any:
    return pyarrow.dataset.dataset(parquet(rows, folder))


def parted(rows: Rows, folder: Path) -> Any:
    """Folders named like a column of the files in them."""
    for key in {other for _, other in rows}:
        inside = folder / "visits" / f"PID={key}"
        inside.mkdir(parents=True)
        mine = [one for one, other in rows if other == key]
        pyarrow.parquet.write_table(pa.table({"pid": mine, "x": mine}), inside / "part.parquet")
    return folder / "visits"


def database(rows: Rows, folder: Path) -> Any:
    path = folder / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_parquet('{parquet(rows, folder)}')")
    return path


def view(rows: Rows, folder: Path) -> Any:
    path = folder / "views.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE kept (pid BIGINT, other BIGINT)")
        connection.executemany("INSERT INTO kept VALUES (?, ?)", [*rows])
        connection.execute('CREATE VIEW visits AS SELECT pid, other AS "PID", pid AS x FROM kept')
    return path


MADE = [parquet, renamed_parquet, arrow_dataset, parted, database, view]


def strain_of_one_unit(source: Callable[[Rows, Path], Any], folder: Path) -> float:
    """How far the rows of one PID move a count, over what noise is for; 0 where nothing is read."""
    found = []
    for place, rows in enumerate((PEOPLE, [row for row in PEOPLE if row[1]])):
        here = folder / str(place)
        here.mkdir()
        given: dict[str, Any] = {"table": "visits", "unit": dc.User("PID"), "budget": BUDGET, "max_rows": 20}
        with (
            suppress(InvalidArgument),
            dc.connect(source(rows, here), ledger=here / "books", dataset="visits", **given) as session,
        ):
            found.append(exact(session, "SELECT COUNT(*) AS n FROM visits"))
    return strain(*found) if found else 0


@pytest.mark.parametrize("source", MADE)
@attack(53, finds=[faults.names_as_duckdb_tells_them_apart], source=parquet)
@attack(53, finds=[faults.names_as_duckdb_tells_them_apart], source=arrow_dataset)
@attack(53, finds=[faults.names_as_duckdb_tells_them_apart], source=view)
def test_no_column_is_taken_for_one_that_is_named_alike(source: Callable[[Rows, Path], Any], tmp_path: Path) -> None:
    """The steward says whose the rows are; nobody else's are what is protected."""
    assert strain_of_one_unit(source, tmp_path) <= 1


@pytest.mark.parametrize("source", MADE)
def test_columns_beside_them_are_read_and_the_two_can_be_declared_by_no_name(
    source: Callable[[Rows, Path], Any], tmp_path: Path
) -> None:
    made = source(PEOPLE, tmp_path)
    given: dict[str, Any] = {"table": "visits", "unit": "x", "budget": BUDGET, "dataset": "visits"}
    with dc.connect(made, ledger=tmp_path / "books", **given) as session:
        table = session._catalog.table("visits")
        assert "x" in table.names
        assert not {"pid", "PID"} & {*table.names}
        assert {"pid", "PID"} <= {name for name, _ in table.omitted}
        assert session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=50).rows[0][0] == pytest.approx(60, abs=2)
        with pytest.raises(InvalidArgument, match="'pid' and 'PID'"):
            session.price("SELECT COUNT(pid) AS n FROM visits", epsilon=1)
    for facts in ({"bounds": {"pid": (0, 1)}}, {"values": {"PID": [1]}}, {"types": {"Pid": "integer"}}):
        with pytest.raises(InvalidArgument, match="'pid' and 'PID'"):
            dc.connect(made, ledger=tmp_path / "others", **given, **facts)


def test_a_name_that_differs_by_more_than_case_is_read(tmp_path: Path) -> None:
    """A column that is called item_1 beside one called item is its own."""
    path = tmp_path / "items.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE items (who BIGINT, item BIGINT, item_1 BIGINT)")
    with dc.connect(path, table="items", unit="who", budget=BUDGET) as session:
        assert session._catalog.table("items").names == ("who", "item", "item_1")


@attack(53, finds=[faults.the_first_of_two_names])
def test_postgres_takes_no_column_for_one_that_is_named_alike(tmp_path: Path) -> None:
    url = running().url()
    with closing(psycopg.connect(url, autocommit=True)) as connection:

        def made(rows: Rows, folder: Path) -> Any:
            connection.execute('DROP TABLE IF EXISTS visits; CREATE TABLE visits ("pid" int8, "PID" int8, x int8)')
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO visits VALUES (%s, %s, 1)", [*rows])
            return url

        try:
            assert strain_of_one_unit(made, tmp_path) <= 1
        finally:
            connection.execute("DROP TABLE IF EXISTS visits")


def test_every_engine_leaves_out_both() -> None:
    """All read columns through `readable`; no table is made of what another engine reads against it."""
    given = [("pid", 1, "int"), ("PID", 2, "int"), ("Tags", None, "list"), ("tags", 3, "int"), ("x", 4, "int")]
    readings, omitted = readable(given)
    assert readings == {"x": 4}
    assert omitted == (("pid", "a name twice"), ("PID", "a name twice"), ("Tags", "list"), ("tags", "a name twice"))
    assert warehouses.readable is readable
    with pytest.raises(InvalidArgument, match="'tags' and 'Tags'"):
        Table("t", (Column("tags", "text"),), omitted=(("Tags", "list"),))


def test_a_frame_is_refused_also_where_one_of_two_could_not_be_read() -> None:
    with pytest.raises(InvalidArgument, match="comes once, whatever the case"):
        opened(pa.table([pa.array([1]), pa.array([[1]])], names=["who", "WHO"]))


def outcome(run: Callable[[], Any]) -> str:
    """How a call ends, by name."""
    try:
        run()
    except Exception as error:
        return type(error).__name__
    return "answered"


def people(there: bool) -> dict[str, Any]:
    """A thousand people, one of whom is there or not."""
    who = np.array([one for one in range(1000) if there or one != 42])
    return {"who": who, "i": who % 7}


def endings(text: str, **facts: Any) -> list[str]:
    """How a question ends with one person there, and without."""

    def asked(there: bool) -> Callable[[], Any]:
        def run() -> None:
            with opened(people(there), **facts) as session:
                session.sql(text, epsilon="0.1")

        return run

    return [outcome(asked(there)) for there in (True, False)]


LONG = {"two values": [2**70, 1], "unsigned": [1, 2, 2**64 - 1], "the first too large": [2**63]}


@pytest.mark.parametrize("name", LONG)
@attack(11, 49, finds=[faults.listed_and_written_unseen], name="two values")
def test_a_listed_value_fails_for_nobody_alone(name: str) -> None:
    there, gone = endings("SELECT i, COUNT(*) AS n FROM t WHERE who = 42 GROUP BY i", values={"i": LONG[name]})
    assert there == gone == "InvalidArgument"


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "a condition": ({}, " AND i BETWEEN 9223372036854775800 AND 9223372036854775810"),
    "bounds": ({"bounds": {"i": (2**63 - 3, 2**63 + 3)}}, ""),
}


@pytest.mark.parametrize("name", ENDS)
@attack(11, 49, finds=[faults.ranges_beyond_the_type], name="a condition")
def test_ends_beyond_the_type_fail_for_nobody_alone(name: str) -> None:
    facts, condition = ENDS[name]
    text = f"SELECT i, COUNT(*) AS n FROM t WHERE who = 42{condition} GROUP BY i"
    assert endings(text, **facts) == ["answered", "answered"]


NOT_HELD: list[tuple[Type, Any]] = [
    ("integer", 2**63),
    ("integer", 2.5),
    ("integer", 1e300),
    ("integer", Fraction(1, 3)),
    ("real", float("nan")),
    ("real", float("inf")),
    ("real", Decimal("NaN")),
    ("real", 10**400),
    ("real", Decimal("1e400")),
    ("text", "\ud800"),
    ("timestamp", datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1)))),
    ("boolean", 1),
    ("date", datetime.datetime(2020, 1, 1)),
]
TYPES: dict[str, Any] = {
    "integer": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "decimal(5,2)": pa.decimal128(5, 2),
}


def column(kind: str, values: Sequence[Any] = ()) -> Any:
    return pa.table({"who": range(len(values)), "c": pa.array([*values], TYPES[kind])})


@pytest.mark.parametrize(("kind", "value"), [*NOT_HELD, ("decimal(5,2)", 0.123), ("decimal(5,2)", 1000)])
@attack(11, 28, finds=[faults.values_as_they_are_listed], kind="integer", value=2.5)
@attack(11, 28, finds=[faults.values_as_they_are_listed], kind="text", value="\ud800")
def test_what_a_column_cannot_hold_is_refused_where_it_is_declared(kind: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match="values"), opened(column(kind), values={"c": [value]}):
        pass


@pytest.mark.parametrize(("kind", "value"), NOT_HELD[:1])
@attack(11, 49, finds=[faults.constants_of_any_size], kind="integer", value=2**63)
@attack(11, 49, finds=[faults.constants_of_any_size], kind="real", value=2**64)
@attack(11, 49, finds=[faults.constants_of_any_size], kind="text", value="\ud800")
def test_no_constant_is_written_that_its_type_cannot_hold(kind: Type, value: Any) -> None:
    with pytest.raises(Unsupported, match="cannot hold it"):
        render(Literal(value, kind))


NOON = datetime.datetime(2020, 1, 1, 12)
LISTED: dict[str, tuple[str, list[Any], list[Any]]] = {
    "decimals of a real": ("real", [Decimal("0.1"), Decimal("0.2")], [0.1, 0.2]),
    "fractions of a real": ("real", [Fraction(1, 10), Fraction(1, 5)], [0.1, 0.2]),
    "a long whole number of a real": ("real", [10**20, 1], [1e20, 1.0]),
    "decimals of an integer": ("integer", [Decimal(1), Decimal(2)], [1, 2]),
    "doubles of an integer": ("integer", [1.0, 2.0], [1, 2]),
    "decimals": ("decimal(5,2)", [Decimal("0.10"), Decimal("0.25")], [Decimal("0.10"), Decimal("0.25")]),
    "doubles of a decimal": ("decimal(5,2)", [0.1, 0.25], [Decimal("0.10"), Decimal("0.25")]),
    "texts": ("text", ["a", "\U0010ffff"], ["a", "\U0010ffff"]),
    "truth": ("boolean", [True, False], [True, False]),
    "days": ("date", [datetime.date.min, datetime.date.max], [datetime.date.min, datetime.date.max]),
    "moments": ("timestamp", [datetime.datetime.min, NOON], [datetime.datetime.min, NOON]),
    "moments in UTC": ("timestamp", [NOON.replace(tzinfo=UTC)], [NOON]),
    "moments in other zones": (
        "timestamp",
        [NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=hours))) for hours in (2, -3)],
        [NOON - datetime.timedelta(hours=2), NOON + datetime.timedelta(hours=3)],
    ),
}


@pytest.mark.parametrize("name", LISTED)
@attack(49, finds=[faults.values_as_they_are_listed], name="decimals of a real")
@attack(49, finds=[faults.values_as_they_are_listed], name="fractions of a real")
@attack(49, finds=[faults.values_as_they_are_listed], name="decimals of an integer")
@attack(49, finds=[faults.values_as_they_are_listed], name="moments in UTC")
def test_listed_values_count_the_rows_that_have_them(name: str) -> None:
    """Grouped, as a mode, and in synthetic rows: nothing is charged that cannot be shown."""
    kind, listed, stored = LISTED[name]
    data = column(kind, stored * 30 + stored[:1] * 200)
    with opened(data, values={"c": listed}, max_rows=1, budget=dc.ApproxDP(10_000, "1e-6")) as session:
        kinds = [
            outcome(lambda: session.sql("SELECT c, COUNT(*) AS n FROM t GROUP BY c", epsilon=1000)),
            outcome(lambda: session.sql("SELECT MODE(c) AS m FROM t", epsilon=1000)),
            outcome(lambda: session.synthesize(["c"], epsilon=1000) if len(listed) > 1 else None),
        ]
        assert kinds == ["answered"] * 3
        rows = session.sql("SELECT c, COUNT(*) AS n FROM t GROUP BY c", epsilon=1000).rows
        # Of decimals, answers have the doubles nearest to them.
        wanted = [float(value) if isinstance(value, Decimal) else value for value in stored]
        assert {key for key, _ in rows} == {*wanted}
        assert {key: pytest.approx(n, abs=2) for key, n in rows} == {
            key: 230 if key == wanted[0] else 30 for key in wanted
        }
        assert session.sql("SELECT MODE(c) AS m FROM t", epsilon=1000).rows == ((wanted[0],),)


@attack(27, finds=[faults.values_as_they_are_listed])
def test_one_value_is_not_listed_twice_in_two_forms() -> None:
    twice: list[tuple[str, list[Any]]] = [
        ("timestamp", [NOON.replace(tzinfo=UTC), NOON]),
        ("real", [0.1, Decimal("0.1")]),
        ("real", [2**53, 2**53 + 1]),
    ]
    for kind, listed in twice:
        with pytest.raises(InvalidArgument, match="distinct"), opened(column(kind), values={"c": listed}):
            pass


STAYS: list[tuple[Type, Any]] = [
    ("integer", 1),
    ("integer", 1.0),
    ("real", 1),
    ("real", 0.1),
    ("boolean", True),
    ("text", "a"),
    ("timestamp", NOON),
    ("date", NOON.date()),
    ("date", None),
    ("real", -0.0),
    (Decimals.of(5, 2), Decimal("0.10")),
    (Decimals.of(5, 2), 0.1),
]


@pytest.mark.parametrize(("kind", "value"), STAYS)
def test_what_a_column_holds_stays_as_it_is_written(kind: Type, value: Any) -> None:
    """Identities of stored answers name it."""
    known = held(value, kind)
    assert (type(known), str(known)) == (type(value), str(value))


NAMES = ["child", "<c", "/c", "\\c", "?", "<?"]


@pytest.mark.parametrize("name", NAMES)
@attack(32, finds=[faults.ways_as_text], name="<c")
def test_a_name_is_not_taken_for_the_way_to_another_column(name: str) -> None:
    """Features that are called as the column below them would be: a condition on one says nothing of the other."""
    rows = {
        "who": np.arange(300) % 100,
        "c": np.array(["A", "B", "C"])[np.arange(300) % 3],
        "k": np.array(["A", "y", "z"])[(np.arange(300) // 3) % 3],
    }
    inner = f'SELECT who, c, MAX(k) AS "{name}" FROM t GROUP BY who, c'
    text = f"SELECT c, COUNT(*) AS n FROM ({inner}) WHERE \"{name}\" IN ('A', 'y') GROUP BY c"
    with opened(rows, max_rows=3, values={"c": ["A", "B", "C"]}, budget=dc.ApproxDP(10_000, "1e-6")) as session:
        assert [key for key, _ in session.sql(text, epsilon=1000).rows] == ["A", "B", "C"]


def test_values_that_have_next_to_nothing_in_common_are_refused_or_priced() -> None:
    """Not by an error of arithmetic: their unit is smaller than any double."""
    text = "SELECT SUM(CASE WHEN who = 42 THEN 1e-400 ELSE 0 END) AS n FROM t"
    with opened(people(True), max_rows=1) as session:
        assert outcome(lambda: session.price(text, epsilon=1)) in ("answered", "InvalidArgument")

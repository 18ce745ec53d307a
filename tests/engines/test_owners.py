"""No two people become one, and no value of the column that tells them apart stops a statement."""

from collections.abc import Callable
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.catalog import Column, Table, Type

WIDE = ["BIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(38,0)", "DECIMAL(38,38)", "DECIMAL(20,0)", "DOUBLE", "VARCHAR"]


def owners(source: Any, *, types: dict[str, Type] | None = None, link: bool = False) -> dict[Any, list[int]]:
    """The rows, by their column `row`, of each value of `who`."""
    engine = DuckDB(threads=1)
    engine.add("t", source, unit=None if link else "WHO", links=["Who"] if link else [], types=types)
    engine.seal()
    rows = engine.run("SELECT who, LIST(row ORDER BY row) FROM t GROUP BY who")
    engine.close()
    return dict(rows)


def bad_text(values: list[bytes]) -> Any:
    """A column of texts whose bytes need not be UTF-8, as Arrow allows."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def parquet(folder: Path, table: Any) -> Path:
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    path = tmp_path / "wide.duckdb"
    with duckdb.connect(str(path)) as connection:
        for place, kind in enumerate(WIDE):
            connection.execute(f"CREATE TABLE t{place} (who {kind})")
    return path


@pytest.mark.parametrize(("one", "other"), [*combinations(range(len(WIDE)), 2)])
def test_units_of_two_tables_have_a_type_that_holds_both(one: int, other: int, wide: Path) -> None:
    engine = DuckDB(threads=1)
    engine.add(f"t{one}", wide, unit="who")
    with pytest.raises(InvalidArgument, match="declare one type for both"):
        engine.add(f"t{other}", wide, unit="who")
    for kind in ("integer", "text"):
        declared = DuckDB(threads=1)
        declared.add(f"t{one}", wide, unit="who", types={"who": kind})
        declared.add(f"t{other}", wide, unit="who", types={"who": kind})
        both = f"SELECT who FROM t{one} UNION ALL SELECT who FROM t{other}"
        assert declared.run(f"SELECT COUNT(*) FROM ({both})") == [(0,)]


def test_a_wide_number_declared_to_be_narrow_names_nobody(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 1::UHUGEINT << 127 AS who, 0 AS row UNION ALL SELECT 7::UHUGEINT, 1"
        )
    assert owners(path) == {2**127: [0], 7: [1]}
    assert owners(path, types={"who": "integer"}) == {None: [0], 7: [1]}


LATIN = [b"M\xfcller", b"M\xf6ller", b"Ann", "Jürgen".encode(), b"M\xfcller"]
FORMS: dict[str, Callable[[Path, Any], Any]] = {
    "arrow": lambda _, table: table,
    "parquet": parquet,
    "milliseconds": lambda folder, table: parquet(
        folder, table.append_column("at", pa.array([0] * len(table), pa.timestamp("ms")))
    ),
    "dataset": lambda folder, table: pyarrow.dataset.dataset(parquet(folder, table)),
    "arrow words": lambda _, table: table.set_column(0, "who", table["who"].combine_chunks().dictionary_encode()),
}


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_name_that_is_not_unicode_names_nobody(form: str, link: bool, tmp_path: Path) -> None:
    table = pa.table({"who": bad_text(LATIN), "row": range(len(LATIN))})
    assert owners(FORMS[form](tmp_path, table), link=link) == {None: [0, 1, 4], "Ann": [2], "Jürgen": [3]}


@pytest.mark.parametrize("form", FORMS)
def test_a_question_mark_is_doubted_only_where_it_may_stand_for_something_else(form: str, tmp_path: Path) -> None:
    table = pa.table({"who": pa.array(["a?b", "c"]), "row": [0, 1]})
    doubted = form == "parquet"
    assert owners(FORMS[form](tmp_path, table)) == {None if doubted else "a?b": [0], "c": [1]}


@pytest.mark.parametrize("make", [list, lambda v: np.array(v, object), lambda v: pd.Series(v, dtype="category")])
def test_objects_that_are_not_unicode_name_nobody(make: Callable[[list[Any]], Any]) -> None:
    values = [*LATIN[:2], "\ud800", "\udfff", "?", 5, None, b"Ann"]
    seen = owners({"who": make(values), "row": np.arange(len(values))})
    assert seen == {None: [0, 1, 2, 3, 6], "?": [4], "5": [5], "Ann": [7]}


BIG = 2**53
CASES: dict[str, tuple[Any, Type, dict[Any, list[int]]]] = {
    "text as integer": (
        ["1.2", "1.4", "7", "07", "7.0", " +7", "1e1", "0x7", "x", str(2**63)],
        "integer",
        {7: [2, 3, 4, 5]},
    ),
    "text as real": (
        ["0.1", "0.10000000000000000001", "7", "07.0", str(BIG), str(BIG + 1), "nan", "inf", "1e2", "1.2.3"],
        "real",
        {0.1: [0], 7.0: [2, 3]},
    ),
    "text as boolean": (["true", "t", "1", "false", "yes"], "boolean", {True: [0], False: [3]}),
    "integer as real": (np.array([BIG, BIG + 1, 5, 2**63 - 1]), "real", {float(BIG): [0], 5.0: [2]}),
    "real as integer": (np.array([1.2, 1.4, -0.0, 0.0, np.nan, np.inf, 1e30]), "integer", {0: [2, 3]}),
    "real as text": (np.array([0.1, 0.1 + 2**-56, np.nan, np.inf]), "text", {"0.1": [0], str(0.1 + 2**-56): [1]}),
    "integer as boolean": (np.array([0, 1, 2, -1]), "boolean", {False: [0], True: [1]}),
    "decimal as real": (
        pa.array([Decimal(BIG), Decimal(BIG + 1), Decimal("0.5")], pa.decimal128(38, 2)),
        "real",
        {float(BIG): [0], 0.5: [2]},
    ),
    "bytes as text": (pa.array(LATIN[:3]), "text", {"Ann": [2]}),
}


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_what_is_rounded_when_it_is_read_names_nobody(case: str, link: bool) -> None:
    values, kind, people = CASES[case]
    count = len(values)
    seen = owners({"who": values, "row": np.arange(count)}, types={"who": kind}, link=link)
    named = [row for rows in people.values() for row in rows]
    assert seen == {**people, None: [row for row in range(count) if row not in named]}


def test_moments_are_not_shortened_to_days() -> None:
    moments = np.array(["2020-01-01T00:00", "2020-01-01T07:30", "2020-01-02T00:00"], "M8[us]")
    seen = owners({"who": moments, "row": np.arange(3)}, types={"who": "date"})
    assert [rows for day, rows in seen.items() if day is not None] == [[0], [2]]
    written = ["2020-01-01", "2020-01-01 10:00:00", "2020-1-1"]
    seen = owners({"who": written, "row": np.arange(3)}, types={"who": "date"})
    assert [rows for day, rows in seen.items() if day is not None] == [[0]]


def test_links_are_exact_in_the_types_of_queries() -> None:
    large = pa.array([Decimal(BIG), Decimal(BIG + 1)], pa.decimal128(38, 0))
    assert owners({"who": large, "row": np.arange(2)}) == {Decimal(BIG): [0], Decimal(BIG + 1): [1]}
    assert owners({"who": large, "row": np.arange(2)}, link=True) == {BIG: [0], BIG + 1: [1]}
    engine = DuckDB(threads=1)
    for table, facts in (("unit", {"unit": "moment"}), ("link", {"links": ["moment"]})):
        engine.add(table, {"moment": np.array([1000, 1001], "M8[ns]"), "row": np.arange(2)}, **facts)
    assert engine.run("SELECT COUNT(DISTINCT moment) FROM unit") == [(2,)]
    assert engine.run("SELECT row FROM link WHERE moment IS NULL") == [(1,)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal(10) ** 50, Decimal(10) ** 50 + 1], pa.decimal256(60, 0)),
        pa.array([86_400_000, 86_400_001], pa.int64()).cast(pa.date64(), safe=False),
        np.array([1, 2], np.longdouble),
        np.array([1, 2], "M8[ps]"),
        np.array([1, 2], "M8[h]"),
    ],
    ids=["decimal256", "date64", "longdouble", "picoseconds", "hours"],
)
def test_types_that_the_engine_would_round_tell_nobody_apart(values: Any) -> None:
    engine = DuckDB(threads=1)
    engine.add("t", {"who": values, "row": np.arange(2)}, unit="who")
    assert [name for name, _ in engine.omitted("t")] == ["who"]
    engine.add("plain", {"who": values, "row": np.arange(2)})
    assert engine.omitted("plain") == ()


@pytest.mark.parametrize("nanoseconds", [False, True])
def test_a_parquet_column_that_would_be_rounded_is_refused(nanoseconds: bool, tmp_path: Path) -> None:
    long = pa.array([Decimal(10) ** 50, Decimal(10) ** 50 + 1], pa.decimal256(60, 0))
    who = pa.array([1, 2], pa.timestamp("ns")) if nanoseconds else long
    path = tmp_path / "t.parquet"
    table = pa.table({"Who": who, "row": [0, 1]})
    pyarrow.parquet.write_table(table, path, use_deprecated_int96_timestamps=nanoseconds)
    for facts in ({"unit": "who"}, {"links": ["WHO"]}):
        with pytest.raises(InvalidArgument, match="without rounding"):
            DuckDB(threads=1).add("t", path, **facts)
    DuckDB(threads=1).add("t", path, unit="row")


@pytest.mark.parametrize("name", ["discreet unit", "Discreet Unit", "DISCREET RAW x", "discreet anything"])
def test_columns_are_not_called_like_those_of_statements(name: str) -> None:
    with pytest.raises(InvalidArgument, match="rename it") as caught:
        Table("t", (Column("who", "integer"), Column(name, "integer")), "who")
    assert name in str(caught.value)
    Table("t", (Column("discreet", "integer"), Column("discreetly", "integer")))

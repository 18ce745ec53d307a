"""One odd value changes no type, no other row, and stops nothing."""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.readings import read, read_all
from tests.soak import whole_or_share

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.frames import tabled
from discreet.sql.functions.registry import admit

QUIET = settings(max_examples=whole_or_share(20, 8), deadline=None, suppress_health_check=list(HealthCheck))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**63 - 2, max_value=2**70),
    st.integers(min_value=0, max_value=3).map(lambda n: 10 ** (5000 * n)),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.text(st.characters(codec=None)),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(datetime.UTC)),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([object(), pd.NA, pd.NaT, np.datetime64("NaT"), np.float32("nan"), np.int8(3), np.str_("é")]),
)


@given(value=SCALARS, others=st.lists(SCALARS, max_size=4))
@QUIET
def test_python_objects_never_change_the_schema(value: Any, others: list[Any]) -> None:
    for values in ([*others], [*others, value]):
        who = np.arange(len(values))
        held = np.empty(len(values), dtype=object)
        held[:] = values
        forms: list[Any] = [
            {"who": who, "x": values},
            {"who": who, "x": held},
            pd.DataFrame({"who": who, "x": pd.Series(held, dtype=object)}),
        ]
        kinds: list[Any] = [None, "text", "integer", "real", "boolean", "date", "timestamp"]
        types = [{} if kind is None else {"x": kind} for kind in kinds]
        seen = read_all([form for _ in kinds for form in forms], [kind for kind in types for _ in forms])
        for place, kind in enumerate(kinds):
            same = seen[3 * place : 3 * place + 3]
            assert all(len(rows) == len(values) for _, rows in same)
            assert len({repr(rows) for _, rows in same}) == 1
            assert all([column.type for column in columns] == ["integer", kind or "text"] for columns, _ in same)


def test_each_object_is_written_by_one_rule() -> None:
    written = {
        "a": "a",
        b"\xc3\xa9\xff": "é?",
        "\ud800": "?",
        True: "true",
        7: "7",
        2**300: None,
        2.5: "2.5",
        Decimal("1.20"): "1.20",
        datetime.date(1900, 1, 1): "1900-01-01",
        datetime.datetime(1, 1, 1, 2): "0001-01-01 02:00:00",
        UUID(int=5): "00000000-0000-0000-0000-000000000005",
        float("nan"): None,
        None: None,
        (1, 2): None,
        np.int64(9): "9",
    }
    who = list(range(len(written)))
    for fill in ([], [object()]):
        values = [*written, *fill]
        _, rows = read({"who": [*who, *([99] * len(fill))], "x": values}, types={"who": "integer"})
        assert [row[1] for row in sorted(rows)] == [*written.values(), *([None] * len(fill))]


DECIMALS = [(4, 2, 15), (5, 2, 31), (9, 9, 31), (10, 0, 63), (15, 2, 63), (18, 2, 63), (38, 0, 127), (38, 38, 127)]
"""Precision and scale, and the bits besides the sign that DuckDB has for them: more than their digits need."""
COLUMNS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "int64": (lambda v: np.array(v, dtype=np.int64), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (lambda v: np.array(v, dtype=np.uint64), st.integers(0, 2**64 - 1)),
    "float64": (lambda v: np.array(v, dtype=np.float64), st.floats()),
    "float16": (lambda v: np.array(v, dtype=np.float16), st.floats(width=16)),
    "longdouble": (lambda v: np.array(v, dtype=np.longdouble), st.floats()),
    "big-endian": (lambda v: np.array(v, dtype=">i4"), st.integers(-(2**31), 2**31 - 1)),
    "bool": (lambda v: np.array(v, dtype=bool), st.booleans()),
    "unicode": (lambda v: np.array([*v, "zz"], dtype="U8")[:-1], st.text(st.characters(codec=None), max_size=8)),
    "bytes": (lambda v: np.array([*v, b"zz"], dtype="S8")[:-1], st.binary(max_size=8)),
    **{
        f"datetime64[{unit}]": (
            lambda v, u=unit: np.array(v, np.int64).view(f"M8[{u}]"),
            st.integers(-(2**63), 2**63 - 1),
        )
        for unit in ("Y", "D", "h", "s", "ms", "us", "ns")
    },
    **{
        f"arrow timestamp[{unit}, {zone}]": (
            lambda v, u=unit, z=zone: pa.array(np.array(v, np.int64)).view(pa.timestamp(u, z)),
            st.integers(-(2**63), 2**63 - 1),
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "Europe/Paris")
    },
    "arrow date32": (lambda v: pa.array(np.array(v, np.int32)).view(pa.date32()), st.integers(-(2**31), 2**31 - 1)),
    "arrow date64": (lambda v: pa.array(np.array(v, np.int64)).view(pa.date64()), st.integers(-(2**63), 2**63 - 1)),
    **{
        f"arrow decimal128({precision}, {scale})": (
            lambda v, p=precision, s=scale: decimals(v, p, s),
            st.integers(-(2**bits), 2**bits - 1)
            | st.integers(-(2**127), 2**127 - 1)
            | st.sampled_from([-(2**bits), 2**bits - 1, 10**precision - 1, 1 - 10**precision, 10**precision]),
        )
        for precision, scale, bits in DECIMALS
    },
    "arrow text": (lambda v: invalid(v), st.binary(max_size=6)),
    "arrow words": (lambda v: invalid(v).dictionary_encode(), st.binary(max_size=6)),
    "pandas str": (lambda v: pd.Series(v, dtype="str"), st.text(max_size=6)),
    "pandas category": (lambda v: pd.Series(v, dtype=object).astype("category"), st.one_of(st.text(), st.integers())),
    "pandas zoned": (lambda v: pd.Series(np.array(v, "M8[s]")).dt.tz_localize("UTC"), st.integers(-(2**40), 2**40)),
    "polars text": (lambda v: pl.Series(v, dtype=pl.String), st.text(max_size=6)),
    "polars object": (lambda v: pl.Series(v, dtype=pl.Object), st.one_of(st.text(), st.integers())),
}


def invalid(values: list[bytes]) -> Any:
    """A column of texts whose bytes need not be UTF-8, as Arrow allows."""
    ends = np.cumsum([0, *(len(value) for value in values)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(values)))


def decimals(units: list[int], precision: int, scale: int) -> Any:
    """A column of decimals that may have more digits than their type says, as Arrow allows."""
    raw = b"".join(value.to_bytes(16, "little", signed=True) for value in units)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(units), [None, pa.py_buffer(raw)])


@pytest.mark.parametrize("precision", [1, 4, 5, 9, 10, 15, 18, 19, 37, 38])
def test_decimals_with_more_digits_than_their_type_are_missing(precision: int) -> None:
    """Arrow does not look at them; the engine would read other bits, or memory that is not the column's."""
    most = 10**precision - 1
    odd = [value for value in (most + 1, -most - 1, 2**63 - 1, 2**64 + 1, 2**127 - 1, -(2**127)) if abs(value) > most]
    column = tabled({"x": decimals([most, 0, -most, *odd], precision, 0)}).table.column("x")
    assert [None if value is None else int(value) for value in column.to_pylist()] == [
        *(most, 0, -most),
        *[None] * len(odd),
    ]
    chunks = pa.chunked_array([decimals([7], precision, 0), decimals(odd, precision, 0)])
    assert tabled({"x": chunks}).table.column("x").null_count == len(odd)


@pytest.mark.parametrize("kind", COLUMNS)
@given(data=st.data())
@settings(parent=QUIET, max_examples=whole_or_share(12, 6))
def test_typed_columns_keep_their_type_whatever_they_hold(kind: str, data: st.DataObject) -> None:
    make, values = COLUMNS[kind]
    first = data.draw(st.lists(values, min_size=0, max_size=5))
    odd = data.draw(values)
    results = read_all({"who": np.arange(len(v)), "x": make(v)} for v in (first, [*first, odd]))
    assert results[0][0] == results[1][0]
    assert {*map(repr, results[0][1])} <= {*map(repr, results[1][1])}
    assert len(results[1][1]) == len(first) + 1


def test_the_least_of_all_numbers_changes_no_other_moment() -> None:
    """The engine's own least and largest value of a column overflow where they are converted."""
    make, _ = COLUMNS["arrow timestamp[ns, None]"]
    sides = ([1 - 2**63], [1 - 2**63, -(2**63)])
    alone, beside = read_all({"who": np.arange(len(side)), "x": make(side)} for side in sides)
    assert {*map(repr, alone[1])} <= {*map(repr, beside[1])}


@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if kind.startswith("arrow")])
@given(data=st.data())
@settings(parent=QUIET, max_examples=whole_or_share(6, 3))
def test_parquet_files_and_datasets_hold_anything(kind: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    make, values = COLUMNS[kind]
    first = data.draw(st.lists(values, min_size=0, max_size=4))
    odd = data.draw(values)
    folder = tmp_path_factory.mktemp("parquet")
    written = []
    for name, v in (("a", first), ("b", [*first, odd])):
        try:
            pyarrow.parquet.write_table(pa.table({"who": np.arange(len(v)), "x": make(v)}), folder / f"{name}.parquet")
            written.append(folder / f"{name}.parquet")
        except pa.ArrowInvalid:
            continue
    # Decimals of datasets are refused: Arrow reads what is no value of their type, and does not tell.
    sources = [*written, *(map(pyarrow.dataset.dataset, written) if "decimal" not in kind else ())]
    seen = read_all([*sources, *sources], [{}] * len(sources) + [{"x": "text"}] * len(sources), sealed=True)
    for results in (seen[: len(sources)], seen[len(sources) :]):
        assert len({columns for columns, _ in results}) <= 1
        assert all({*map(repr, results[0][1])} <= {*map(repr, rows)} for _, rows in results)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("form", ["frame", "parquet", "csv"])
def test_units_that_are_no_numbers_name_nobody(odd: float, form: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": [1.0, -0.0, 0.0, odd], "x": [1, 2, 3, 4]})
    source: Any = frame
    if form == "parquet":
        source = tmp_path / "t.parquet"
        frame.to_parquet(source)
    elif form == "csv":
        source = tmp_path / "t.csv"
        frame.to_csv(source, index=False)
    engine = DuckDB()
    engine.add("t", source, unit="who", types={"who": "real", "x": "integer"})
    assert engine.run("SELECT SUM(x) FROM t WHERE who IS NULL") == [(4,)]
    assert engine.run("SELECT COUNT(DISTINCT who) FROM t") == [(2,)]


def test_units_of_different_tables_compare_exactly_or_not_at_all() -> None:
    engine = DuckDB()
    engine.add("a", pa.table({"who": pa.array([1], pa.int32())}), unit="who")
    engine.add("b", pa.table({"who": pa.array([1], pa.uint64())}), unit="who")
    for other in (pa.array(["1"]), pa.array([1.0]), pa.array([1], pa.decimal128(38, 0))):
        with pytest.raises(InvalidArgument, match="types"):
            engine.add("c", pa.table({"who": other}), unit="who")
        engine.add("public", pa.table({"who": other}), private=False)
        engine.add("c", pa.table({"who": other}), unit="who", types={"who": "integer"})
        engine = DuckDB()
        engine.add("a", pa.table({"who": pa.array([1], pa.int32())}), unit="who")


@pytest.mark.parametrize("declared", [None, "text", "integer", "real", "decimal(20,1)"])
@pytest.mark.parametrize("form", ["frame", "parquet", "dictionary"])
@pytest.mark.parametrize(("precision", "scale", "odd"), [(5, 2, 2**31 - 1), (18, 2, 2**63 - 1), (38, 2, -(2**127))])
def test_decimals_with_more_digits_than_their_type_are_null(
    precision: int, scale: int, odd: int, form: str, declared: Any, tmp_path: Path
) -> None:
    many = 130_000 if form == "dictionary" else 20
    table = pa.table({"who": np.arange(many + 1), "x": decimals([100] * many + [odd], precision, scale)})
    source: Any = table
    if form != "frame":
        source = tmp_path / "t.parquet"
        pyarrow.parquet.write_table(table, source, store_decimal_as_integer=precision <= 18)
    engine = DuckDB(threads=2)
    engine.add("t", source, unit="who", types={} if declared is None else {"x": declared})
    engine.seal()
    read = admit("x", engine.columns("t")[1].type).sql(dialect="duckdb")
    [(rows, known, odd_one)] = engine.run(f"SELECT COUNT(*), COUNT({read}), COUNT({read}) FILTER (who = {many}) FROM t")
    assert (rows, known, odd_one) == (many + 1, many, 0)
    engine.close()


@pytest.mark.parametrize("value", [5, -1, 2**63 - 1])
def test_times_of_day_are_left_out_by_their_type_alone(value: int, tmp_path: Path) -> None:
    column = pa.array(np.array([5, value], np.int64)).view(pa.time64("us"))
    table = pa.table({"who": np.arange(2), "x": column})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        columns, rows = read(source)
        assert ([column.name for column in columns], len(rows)) == (["who"], 2)
        with pytest.raises(InvalidArgument, match="convertible"):
            read(source, types={"x": "text"})

"""One odd value changes no type, no other row, and stops nothing."""

import datetime
import gzip
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
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

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb import DuckDB
from discreet.engines.frames import tabled
from discreet.sql.catalog import Column
from discreet.sql.functions import admit

PLAIN = [(1, 30, "2020-01-01", "a"), (2, 40, "2021-12-31", "b, c"), (3, 50, "", 'say "d"')]
TYPES = {"age": "integer", "day": "date", "who": "integer"}
QUIET = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


Seen = tuple[tuple[Column, ...], list[tuple[Any, ...]]]


KEPT: list[DuckDB] = []
MOST_KEPT = 200


def shared() -> DuckDB:
    """An engine for many tables: opening one takes longer than reading them. Renewed before it holds too many."""
    if KEPT and len(KEPT[0]._held) >= MOST_KEPT:
        KEPT.pop().close()
    if not KEPT:
        KEPT.append(DuckDB(threads=2))
    return KEPT[0]


def read(source: Any, **facts: Any) -> Seen:
    """The columns, and the rows as queries see them."""
    return read_all([source], **facts)[0]


def read_all(
    sources: Iterable[Any],
    types: Iterable[Mapping[str, Any]] | Mapping[str, Any] = MappingProxyType({}),
    sealed: bool = False,
) -> list[Seen]:
    """The same for each of several sources, in one engine, each with its own types if several are given.

    Rows that are not copied when they are added are read in an engine of their own, once it is sealed.
    """
    engine = DuckDB(threads=2) if sealed else shared()
    given = [*sources]
    declared = [types] * len(given) if isinstance(types, Mapping) else [*types]
    names = [f"t{place}" for place in range(len(engine._held), len(engine._held) + len(given))]
    for name, source, kinds in zip(names, given, declared, strict=True):
        engine.add(name, source, unit="who", types=kinds)
    if sealed:
        engine.seal()
    seen = []
    for name in names:
        columns = engine.columns(name)
        shown = [admit(c.name, c.type).sql(dialect="duckdb") for c in columns]
        rows = engine.run(f'SELECT {", ".join(shown)} FROM "{name}"')
        seen.append((columns, sorted(rows, key=repr)))
    if sealed:
        engine.close()
    return seen


def line(row: tuple[Any, ...]) -> bytes:
    return ",".join('"' + str(value).replace('"', '""') + '"' for value in row).encode()


HEADER = b"who,age,day,note\n"
OPEN = [
    b'4,1,2020-01-01,"open',
    b'4,"1,2020-01-01,x',
    b'"',
    b'"""',
    b',"',
    b'4,1,2020-01-01,"a"b',
    b"x" * 5_000_000,
]
MALFORMED = [
    b"4,1",
    b"4,1,2,3,4,5",
    b"4,1,2020-01-01,\xff\xfe",
    b"\xff" * 100,
    b"",
    b"\x00",
    b"4,1,2020-01-01,a\rb",
    b"\r\r",
]
ODD = [
    b"4,old,2020-01-01,x",
    b"4,9223372036854775808,2020-01-01,x",
    b"4,1e400,yesterday,x",
    b"4,nan,300000-01-01,x",
    b"x,1,0000-00-00,x",
    b"NULL,inf,infinity,\x00",
    b"4,-,2020-02-30,\xe2\x82\xac",
    b"4,1,2020-01-01,\x1f,".replace(b"\x1f,", b'"\x1f"'),
    b',,,""',
]


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("bad", MALFORMED, ids=lambda bad: repr(bad[:20]))
@pytest.mark.parametrize("place", [0, 2, 3])
@pytest.mark.filterwarnings("ignore::discreet.engines.snapshots.FaultyRecords")
def test_a_malformed_record_is_left_out_and_changes_no_other(bad: bytes, place: int, gz: bool, tmp_path: Path) -> None:
    lines = [line(row) for row in PLAIN]
    path = tmp_path / ("t.csv.gz" if gz else "t.csv")
    results = []
    for content in (lines, [*lines[:place], bad, *lines[place:]]):
        data = HEADER + b"\n".join(content) + b"\n"
        path.write_bytes(gzip.compress(data) if gz else data)
        results.append(read(path, types=TYPES))
    (columns, rows), (other_columns, other_rows) = results
    assert columns == other_columns
    kept = [row for row in other_rows if row[0] != 4]
    assert kept == rows
    assert len(rows) == 3
    assert rows[1] == (2, 40, datetime.date(2021, 12, 31), "b, c")
    assert rows[2] == (3, 50, None, 'say "d"')


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("bad", OPEN, ids=lambda bad: repr(bad[:20]))
@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_file_is_refused_where_nobody_can_say_where_records_end(
    bad: bytes, place: int, gz: bool, tmp_path: Path
) -> None:
    lines = [line(row) for row in PLAIN]
    data = HEADER + b"\n".join([*lines[:place], bad, *lines[place:]]) + b"\n"
    path = tmp_path / ("t.csv.gz" if gz else "t.csv")
    path.write_bytes(gzip.compress(data) if gz else data)
    with pytest.raises(InvalidArgument, match=r"from line [1-5] on") as caught:
        read(path, types=TYPES)
    assert caught.value.__context__ is None
    said = caught.value.bound + caught.value.remedy
    assert not any(str(value) in said for row in PLAIN for value in row if len(str(value)) > 1)


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_odd_values_in_a_csv_become_null_in_their_own_row(odd: bytes, end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    results = []
    for content in ([], [odd]):
        lines = [*content, *(line(row) for row in PLAIN)]
        path.write_bytes(HEADER.strip() + end + end.join(lines))
        results.append(read(path, types=TYPES))
    (columns, rows), (other_columns, other_rows) = results
    assert columns == other_columns
    assert len(other_rows) == len(rows) + 1
    assert set(rows) < set(other_rows)


def test_the_header_alone_says_how_a_csv_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for header, names in [
        (b"\xef\xbb\xbfwho;a,b;c\n1;2;3\n", ["who", "a,b", "c"]),
        (b'"who","a ""x""",\n1,2,3\n', ["who", 'a "x"', "column3"]),
        (b"who|x\r\n1|2\r\n", ["who", "x"]),
        (b"who\n1\n", ["who"]),
        (b"who,x", ["who", "x"]),
    ]:
        path.write_bytes(header)
        columns, rows = read(path, sealed=True)
        assert [column.name for column in columns] == names
        assert all(column.type == "text" for column in columns)
        assert len(rows) <= 1
    for header in (b"", b"\nwho\n", b"who,Who\n", b'who,"x\ny"\n'):
        path.write_bytes(header)
        with pytest.raises(InvalidArgument):
            read(path, sealed=True)


def test_a_large_csv_is_read_by_many_threads_alike(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    count = 400_000
    body = b"".join(b'%d,%d,2020-01-01,"x, %d"\n' % (i, i % 90, i) for i in range(count))
    path.write_bytes(HEADER + body + b'7,1,2020-01-01,"two\nlines"\n' + body)
    engine = DuckDB(threads=4)
    engine.add("t", path, types=TYPES)
    assert engine.run("SELECT COUNT(*), SUM(who), COUNT(DISTINCT note) FROM t") == [
        (2 * count + 1, count * (count - 1) + 7, count + 1)
    ]


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
@settings(parent=QUIET, max_examples=12)
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
@settings(parent=QUIET, max_examples=6)
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

"""How a source is read: one person's values never change how the values of others are read."""

import datetime
import math
import uuid
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from tests.attacks import sql_faults
from tests.attacks.register import attack

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.frames import tabled
from discreet.engines.duckdb.objects import text_of


class City(str, Enum):  # noqa: UP042, the way that differs from StrEnum in how it is written
    OSLO = "Oslo"
    BERN = "Bern"


class Floor(IntEnum):
    FIRST = 1


class Loud(str):
    """A text that says something else each time, and raises if it is compared."""

    said = 0

    def __str__(self) -> str:
        Loud.said += 1
        raise SystemExit(f"{self!r} was the {Loud.said}th")

    __repr__ = __eq__ = __ne__ = encode = __str__  # type: ignore[assignment]
    __hash__ = str.__hash__


class Touched(BaseException):
    """That something was asked of an object. No SystemExit: whoever looks at the object later, the runner of the tests
    say, would end."""


class Hostile:
    """What raises whatever is asked of it, and claims to be a text."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return str
        raise Touched(name)

    __eq__ = __ne__ = __str__ = __repr__ = __bool__ = __hash__ = __getattribute__  # type: ignore[assignment]


class Zone(datetime.tzinfo):
    """A time zone whose offset grows with every question."""

    asked = 0

    def utcoffset(self, moment: object) -> datetime.timedelta:
        Zone.asked += 1
        return datetime.timedelta(minutes=Zone.asked)


class Moment(datetime.datetime):
    def isoformat(self, *_: Any, **__: Any) -> str:
        raise KeyError("secret")


PLAIN: list[Any] = [
    City.OSLO,
    City.BERN,
    "Oslo",
    b"Bern",
    bytearray(b"Rome"),
    memoryview(b"Rome"),
    np.str_("Paris"),
    1,
    2,
    Floor.FIRST,
    np.int64(3),
    3.0,
    2.5,
    np.float32(0.5),
    True,
    np.bool_(False),
    Decimal("1.50"),
    datetime.date(2020, 1, 2),
    datetime.datetime(2020, 1, 2, 3, 4, 5),
    pd.Timestamp("2020-01-02 03:04:05.000000007"),
    np.datetime64("2020-01-02T03:04"),
    datetime.time(3, 4),
    uuid.UUID(int=7),
    pa.scalar("Oslo"),
    None,
    "2020-01-02",
    "7",
]
ODD: list[Any] = [
    City.OSLO,
    bytearray(b"\xff"),
    memoryview(b"\xff\x00"),
    b"\xff",
    "lone \ud800",
    "nul \0",
    Loud("Oslo"),
    Hostile(),
    object(),
    object,
    math.nan,
    math.inf,
    np.float64("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("1E+999999"),
    10**5000,
    -(2**63) - 1,
    1.5,
    np.longdouble(1) / 3,
    1j,
    np.timedelta64(5, "ns"),
    pd.NA,
    pd.NaT,
    pd.Timestamp.max,
    pd.Interval(0, 1),
    np.datetime64("NaT"),
    np.datetime64(2**62, "D"),
    np.array([1, 2]),
    np.void(b"abc"),
    Moment(2020, 1, 1),
    datetime.datetime(2020, 1, 1, tzinfo=Zone()),
    datetime.datetime.max,
    [1],
    {"a": 1},
    ("Oslo",),
    lambda: 1,
    pa.scalar([1]),
    pa.scalar(b"\xff"),
    "",
    "x" * 100_000,
]


def objects(values: list[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda values: values,
    "numpy": objects,
    "masked": lambda values: np.ma.MaskedArray(objects(values), mask=[False] * len(values)),
    "pandas": lambda values: pd.Series(objects(values), dtype=object),
    "category": lambda values: pd.Series(objects(values), dtype=object).astype("category"),
    "polars": lambda values: pl.Series("v", values, dtype=pl.Object),
}
COLUMNS: list[list[Any]] = [PLAIN, [City.OSLO, City.BERN] * 9, [bytearray(b"Oslo")] * 9, ["Oslo", "Bern"], [1, 2, 3]]
KINDS = ("text", "integer", "real", "boolean", "date", "timestamp")


def texts(values: Any) -> list[str | None]:
    """The texts that a column of objects becomes."""
    found: list[str | None] = tabled({"v": values}).table.column("v").to_pylist()
    return found


def read(values: Any, kind: Any) -> list[tuple[Any, ...]]:
    """Each value as the engine holds it, in the order of the rows."""
    engine = DuckDB(threads=1)
    try:
        engine.add("t", {"at": np.arange(len(values)), "v": values}, types={"v": kind})
        return engine.run('SELECT "v", TYPEOF("v") FROM "t" ORDER BY "at"')
    finally:
        engine.close()


@pytest.mark.parametrize("form", FORMS)
@attack(34, finds=[sql_faults.objects_read_all_or_nothing], form="list")
def test_each_value_is_read_by_a_rule_that_looks_at_it_alone(form: str) -> None:
    compared = 0
    # Values that Python calls equal, as 1 and True in the first column, are one category to pandas.
    for plain in COLUMNS[form == "category" :]:
        expected = [text_of(value) for value in plain]
        for odd in ODD:
            try:
                column = FORMS[form]([*plain, odd])
            except (Exception, SystemExit):
                # pandas compares and hashes what it makes categories of: such frames cannot be.
                assert form == "category", (form, type(odd))
                continue
            assert texts(column)[:-1] == expected, type(odd)
            compared += 1
    assert compared >= 60
    assert [text_of(value) for value in PLAIN[:12]] == [
        *("Oslo", "Bern", "Oslo", "Bern", "Rome", "Rome", "Paris"),
        *("1", "2", "1", "3", "3"),
    ]


@pytest.mark.parametrize("kind", KINDS)
@attack(34, finds=[sql_faults.objects_read_all_or_nothing], kind="text")
def test_declared_types_read_each_value_alone_too(kind: str) -> None:
    alone = [read([value, None], kind)[0] for value in PLAIN]
    for odd in (City.OSLO, b"\xff", "lone \ud800", Hostile(), 10**5000):
        assert read([*PLAIN, odd], kind)[:-1] == alone


@attack(34, finds=[sql_faults.objects_read_all_or_nothing])
def test_one_odd_value_leaves_a_thousand_counts_alone() -> None:
    cities = [City.OSLO] * 1000
    for odd in (1, b"\xff", "lone \ud800", Hostile()):
        assert Counter(read([*cities, odd], "text")[:-1]) == {("Oslo", "VARCHAR"): 1000}


@pytest.mark.parametrize("bad", [b"\xff", b"a\xc3", b"\xed\xa0\x80"])
def test_texts_of_arrow_are_read_alike_beside_bytes_that_are_no_text(bad: bytes) -> None:
    plain = ["Oslo", "Bern", None, "Łódź"]
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        sides = []
        for last in (b"Bern", bad):
            # A cast of bytes that does not look whether they are text.
            raw = pa.array([*(None if t is None else t.encode() for t in plain), last], pa.binary())
            texts = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
            if pa.types.is_dictionary(kind):
                made: Any = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int8()), texts, safe=False)
            elif kind == pa.string():
                made = texts
            elif kind == pa.large_string():
                wide = pa.array(raw, pa.large_binary())
                made = pa.Array.from_buffers(kind, len(wide), wide.buffers())
            else:
                view = pa.array(raw.to_pylist(), pa.binary_view())
                made = pa.Array.from_buffers(kind, len(view), view.buffers())
            other = pa.array(["Rome", "Oslo"], pa.string()).cast(kind)
            sides.append(read(pa.chunked_array([other, made]), "text"))
        assert sides[0][:-1] == sides[1][:-1]
        assert [value for value, _ in sides[0]] == ["Rome", "Oslo", *plain, "Bern"]


@attack(34, 11, finds=[sql_faults.files_of_any_types])
def test_files_of_a_dataset_that_differ_in_types_are_refused_before_a_value_decides(tmp_path: Path) -> None:
    seen = []
    for most in (5, 2**40):
        for name, kind, values in (("a", pa.int32(), [1, 2]), ("b", pa.int64(), [1, most])):
            table = pa.table({"who": pa.array(values, pa.int64()), "x": pa.array(values, kind)})
            pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
        both = pyarrow.dataset.dataset([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
        engine = DuckDB(threads=1)
        try:
            engine.add("t", both)
            engine.seal()
            engine.run('SELECT COUNT("x") FROM "t"')
            seen.append("answered")
        except InvalidArgument as error:
            seen.append(str(error))
        except duckdb.Error:
            seen.append("failed")
        finally:
            engine.close()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", ["text", "integer", "real"])
def test_whole_numbers_are_read_alike_whether_a_missing_one_makes_them_floats(kind: str) -> None:
    whole, missing = pd.Series([1, 2, 3]), pd.Series([1, 2, None])
    assert (whole.dtype, missing.dtype) == (np.int64, np.float64)
    assert read(whole, kind)[:-1] == read(missing, kind)[:-1]

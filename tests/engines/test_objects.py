"""No code of an object runs while a frame is read: neither its own, nor of its class, nor of what it holds."""

import datetime
import sys
import uuid
from decimal import Decimal
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.engines.duckdb.objects import text_of

BERLIN = ZoneInfo("Europe/Berlin")


class Ran(KeyboardInterrupt):
    """Raised by code of an object: nothing that reads a frame may catch it."""


def _code(*_: Any, **__: Any) -> Any:
    raise Ran


NAMES = "__str__ __repr__ __eq__ __hash__ __len__ __iter__ __getitem__ __index__ __int__ __float__ __bool__ __bytes__"
NAMES += " __buffer__ __getattribute__ __format__ isoformat utcoffset dst tzname toordinal as_py item tobytes decode"
NAMES += " hour minute year tzinfo is_nan bit_length __array__ dtype __reduce__ __class__ __dict__"


class Meta(type):
    """A class of classes whose code must not run either."""

    __hash__ = type.__hash__


def hostile(base: type, *names: str) -> Any:
    """A subclass of which all that could be called is code of ours."""
    chosen = names or [name for name in NAMES.split() if name not in ("dst", "tzname")]
    fields = ("hour", "minute", "year", "tzinfo", "dtype", "__dict__")
    return Meta("Odd", (base,), {name: property(_code) if name in fields else _code for name in chosen})


class Armed(datetime.tzinfo):
    """A zone whose code is ours once it is armed: pandas asks it when a moment is made."""

    armed = False

    def utcoffset(self, moment: object) -> datetime.timedelta:
        if Armed.armed:
            raise Ran
        return datetime.timedelta(0)

    def dst(self, moment: object) -> None:
        return None

    def tzname(self, moment: object) -> str:
        return "armed"


def faked(module: str) -> datetime.tzinfo:
    """A zone that says that its class is of another module."""
    made: datetime.tzinfo = type("tzutc", (datetime.tzinfo,), {"__module__": module, "utcoffset": _code})()
    return made


def with_slot() -> uuid.UUID:
    """A UUID with an object in place of its number."""
    made = uuid.UUID(int=7)
    object.__setattr__(made, "int", hostile(int)(7))
    return made


def moment_with(zone: datetime.tzinfo) -> datetime.datetime:
    return datetime.datetime(2020, 1, 1, tzinfo=zone)


def odd_values() -> dict[str, tuple[Any, str | None]]:
    """Values with what each is read as."""
    modules = ("datetime", "zoneinfo", "pytz.x", "dateutil")
    with_zone = {module: (moment_with(faked(module)), None) for module in modules}
    subclasses: dict[str, tuple[Any, str | None]] = {
        "str": (hostile(str)("Oslo"), "Oslo"),
        "int": (hostile(int)(7), "7"),
        "float": (hostile(float)(7.5), "7.5"),
        "decimal": (hostile(Decimal)("7.5"), "7.5"),
        "bytes": (hostile(bytes)(b"Oslo"), "Oslo"),
        "bytearray": (hostile(bytearray)(b"Oslo"), "Oslo"),
        "date": (hostile(datetime.date)(2020, 1, 2), "2020-01-02"),
        "datetime": (hostile(datetime.datetime)(2020, 1, 2), "2020-01-02 00:00:00"),
        "datetime in a zone": (hostile(datetime.datetime)(2020, 7, 2, tzinfo=BERLIN), "2020-07-02 00:00:00+02:00"),
        "time": (hostile(datetime.time)(3, 4), "03:04:00"),
        "time in UTC": (hostile(datetime.time)(3, 4, tzinfo=datetime.UTC), "03:04:00+00:00"),
        "numpy": (hostile(np.int64)(7), None),
        "numpy's float": (hostile(np.float64)(7.5), "7.5"),
        "uuid": (hostile(uuid.UUID, "__str__")(int=7), None),
        "slot": (with_slot(), None),
        "zoneinfo": (moment_with(type("Z", (ZoneInfo,), {"utcoffset": _code})("Europe/Berlin")), None),
        "time in a zone": (datetime.time(3, 4, tzinfo=faked("pytz")), None),
        "arrow": (hostile(pa.StringScalar, "as_py").__new__(hostile(pa.StringScalar, "as_py")), None),
    }
    stamp = pd.Timestamp("2020-01-01", tz=Armed())
    return {**with_zone, **subclasses, "pandas": (stamp, None)}


ODD = odd_values()


@pytest.mark.parametrize("name", ODD)
def test_no_code_of_an_object_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value, expected = ODD[name]
    monkeypatch.setattr(Armed, "armed", True)
    monkeypatch.setattr(Meta, "__hash__", _code)
    monkeypatch.setattr(Meta, "__eq__", _code, raising=False)
    try:
        found = text_of(value)
    except Ran:
        pytest.fail("code of an object ran", pytrace=False)
    assert found == expected


def test_one_row_does_not_stop_a_session() -> None:
    rows = {"who": [1, 2, 3], "note": ["a", moment_with(faked("pytz.x")), "b"]}
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows.items()})
    with dc.connect(frame, unit=dc.User("who"), budget=dc.PureDP(10**6), values={"note": ["a", "b"]}) as session:
        found = session.sql("SELECT note, COUNT(*) AS n FROM data GROUP BY note", epsilon=10**5).rows
    assert [(note, round(count)) for note, count in found] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp("2020-01-02 03:04:05.000000007"),
        pd.Timestamp("2020-01-02 03:04:05.000001007"),
        pd.Timestamp("2020-07-02 03:04:05.000000007", tz="Europe/Berlin"),
        pd.Timestamp("2020-07-02 03:04", tz=datetime.timezone(datetime.timedelta(minutes=-90))),
        pd.Timestamp("2020-10-25 00:30", tz="UTC").tz_convert("Europe/Berlin"),
        pd.Timestamp("2020-10-25 01:30", tz="UTC").tz_convert("Europe/Berlin"),
        pd.Timestamp(np.datetime64("20000-02-29T00:00:01", "s")),
        pd.Timestamp("2020-01-02", tz=datetime.UTC),
    ],
    ids=str,
)
def test_moments_of_pandas_are_written_as_pandas_writes_them(value: pd.Timestamp) -> None:
    assert text_of(value) == value.isoformat(" ")
    if value.year <= 9999:
        plain = value.to_pydatetime(warn=False)
        assert text_of(plain) == plain.isoformat(" ")


def test_zones_that_hold_their_offset_are_read_without_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    tz = pytest.importorskip("dateutil.tz")
    assert text_of(moment_with(tz.tzutc())) == "2020-01-01 00:00:00+00:00"
    assert text_of(moment_with(tz.tzoffset(None, 3600))) == "2020-01-01 00:00:00+01:00"
    assert text_of(moment_with(tz.gettz("Europe/Berlin"))) is None
    # As pytz has them: a class for each zone, and what is true of a moment in a localized copy.
    pytz: Any = ModuleType("pytz")
    base = type("DstTzInfo", (datetime.tzinfo,), {"utcoffset": _code})
    berlin = type("Europe/Berlin", (base,), {"_utcoffset": datetime.timedelta(minutes=53)})
    pytz._FixedOffset = type("_FixedOffset", (base,), {})
    pytz.utc = type("UTC", (base,), {"_utcoffset": datetime.timedelta(0)})()
    pytz._tzinfo_cache = {"Europe/Berlin": berlin()}
    monkeypatch.setitem(sys.modules, "pytz", pytz)
    localized: Any = berlin()
    localized._utcoffset = datetime.timedelta(hours=2)
    fixed: Any = pytz._FixedOffset()
    fixed._offset = datetime.timedelta(hours=-3)
    expected = {pytz._tzinfo_cache["Europe/Berlin"]: "+00:53", localized: "+02:00", fixed: "-03:00", pytz.utc: "+00:00"}
    for zone, offset in expected.items():
        assert text_of(moment_with(zone)) == f"2020-01-01 00:00:00{offset}"
    localized._utcoffset = hostile(datetime.timedelta, "__str__", "__bool__")(1)
    assert text_of(moment_with(localized)) is None
    assert text_of(moment_with(type("Mine", (berlin,), {})())) is None


@pytest.mark.parametrize(
    "value",
    [
        *(1, 1.5, True, "Oslo", b"Oslo", Decimal("1.50"), datetime.date(2020, 1, 2), datetime.time(3, 4)),
        *(datetime.datetime(2020, 1, 2, 3), pd.Timestamp("2020-01-02 03:04", tz="Europe/Berlin")),
    ],
    ids=repr,
)
def test_scalars_of_arrow_are_read_as_what_they_hold(value: Any) -> None:
    assert text_of(pa.scalar(value)) == text_of(value)
    assert text_of(pa.scalar(None, pa.scalar(value).type)) is None


@pytest.mark.parametrize("kind", sorted({*np.sctypeDict.values()}, key=str), ids=lambda kind: kind.__name__)
def test_numbers_of_numpy_are_read_as_those_of_python(kind: Any) -> None:
    if not issubclass(kind, np.number | np.bool_):
        return
    known = type(kind(1).item()) in (int, float, bool) and kind is not np.timedelta64
    assert kind is not np.timedelta64 or text_of(kind(1, "ns")) is None
    assert text_of(kind(1)) == (("true" if kind is np.bool_ else "1") if known else None)

"""Python objects as text: each value is read by a rule that looks at that value alone.

Protected is everybody whose value stands in the same column: whatever one person's value is, all others are read as if
it were not there. So there is one total function from any object to a text or NULL, and nothing chooses between two
ways to read by whether all values take the first. A whole number is written alike as int and as float, for pandas turns
the one into the other where a single value of a category has a fraction.

**No code of the object runs**, for it could raise, remember or look at others: neither its methods nor those of its
class, its class's class, or what it holds. A value is read by functions that are written in C and take what the object
stores from where its base stores it. Of texts, numbers, bytes, dates and times these read a subclass as the type that
it extends (`class City(str, Enum)` as its text). Wherever more than stored bits is asked for, as of time zones and of
scalars of numpy, pandas and Arrow, a class counts only if it *is* one that is known: whatever it says of itself, and
whatever it extends. Classes are compared by identity, since `==` and `hash` may be theirs. All else is NULL.

>>> from enum import Enum
>>> City = Enum("City", {"OSLO": "Oslo"}, type=str)
>>> [text_of(value) for value in (City.OSLO, bytearray(b"Bern"), 3, 3.0, 3.5, True, object(), float("nan"))]
['Oslo', 'Bern', '3', '3', '3.5', 'true', None, None]
>>> text_of("a\\ud800"), text_of("a\\ud800", exact=True)
('a?', None)
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

__all__ = ["text_of", "texts_of"]

MOST_BITS = 256
"""Longer whole numbers become NULL rather than text."""
EXACT_BITS = 53
"""Whole doubles below 2 to this power are written like whole numbers; above it not every whole number is one."""
_NUMBERS = frozenset(
    id(kind)
    for kind in {*np.sctypeDict.values()}
    if issubclass(kind, np.number | np.bool_) and not issubclass(kind, np.timedelta64)
)
"""Scalars of numpy that are numbers."""
_ARROW = "Boolean Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 HalfFloat Float Double Decimal32 Decimal64"
_ARROW += " Decimal128 Decimal256 String LargeString StringView Binary LargeBinary BinaryView FixedSizeBinary Date32"
_ARROW += " Date64 Time32 Time64 Timestamp"
"""Scalars of Arrow that hold one value, of no type that others can define."""
_DATE = (datetime.date.year, datetime.date.month, datetime.date.day)
_TIME = (datetime.time.hour, datetime.time.minute, datetime.time.second, datetime.time.microsecond)
_CLOCK = (datetime.datetime.hour, datetime.datetime.minute, datetime.datetime.second, datetime.datetime.microsecond)


def texts_of(values: Iterable[Any], exact: bool = False) -> Any:
    """The values as an Arrow array of texts.

    With `exact`, for columns that tell people apart, texts that UTF-8 cannot hold are NULL and not marked with "?".
    """
    import pyarrow

    plain = [value if type(value) is str else _plain(value) for value in values]
    try:
        # Gives what `_encoded` gives: both leave every text alone that UTF-8 can hold, and this raises on others.
        return pyarrow.array(plain, type=pyarrow.large_string())
    except (pyarrow.ArrowException, ValueError):
        return pyarrow.array([_encoded(text, exact) for text in plain], type=pyarrow.large_string())


def text_of(value: Any, exact: bool = False) -> str | None:
    """The one rule: plain values as they are written, all others NULL; with `exact`, so is what UTF-8 cannot hold."""
    return _encoded(_plain(value), exact)


def _encoded(text: str | None, exact: bool) -> str | None:
    try:
        return None if text is None else text.encode("utf-8", "strict" if exact else "replace").decode()
    except UnicodeEncodeError:
        return None


def _plain(value: Any) -> str | None:
    """Text that may hold lone surrogates, where a value or its bytes did."""
    try:
        return _written(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def _written(value: Any) -> str | None:
    # Asked of `type`, for an object may claim another class; methods of the base, for a subclass may replace them.
    kind = type(value)
    if id(kind) in _NUMBERS:
        value = np.generic.item(value)
        kind = type(value)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, bool):
        return "true" if value else "false"
    if issubclass(kind, int):
        return int.__repr__(value) if int.bit_length(value) <= MOST_BITS else None
    if issubclass(kind, float):
        return _real(float.__float__(value))
    if issubclass(kind, Decimal):
        return None if Decimal.is_nan(value) else Decimal.__str__(value)
    if issubclass(kind, bytes | bytearray | memoryview):
        return _stored(value, kind).decode("utf-8", "surrogateescape")
    if kind is UUID:
        number = vars(UUID)["int"].__get__(value)
        return str(UUID(int=number)) if type(number) is int else None
    if kind is np.datetime64:
        return None if np.isnat(value) else cast(str, np.datetime_as_string(value)).replace("T", " ")
    if issubclass(kind, datetime.datetime):
        return _moment(value, kind)
    if issubclass(kind, datetime.date):
        return datetime.date.isoformat(value)
    if issubclass(kind, datetime.time):
        clock = datetime.time(*(part.__get__(value) for part in _TIME))
        return clock.replace(tzinfo=_zone(datetime.time.tzinfo.__get__(value), None)).isoformat()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and issubclass(kind, arrow.Scalar):
        known = (getattr(arrow, f"{name}Scalar", None) for name in _ARROW.split())
        return _written(cast(Any, kind).as_py(value)) if any(kind is one for one in known) else None
    return None


def _stored(value: Any, kind: type) -> bytes:
    """The bytes of an object as its base holds them; from Python 3.12 a subclass may offer others as its buffer."""
    if issubclass(kind, memoryview):
        return memoryview.tobytes(value)
    base = bytes if issubclass(kind, bytes) else bytearray
    return bytes(base.__getitem__(value, slice(None)))


def _real(value: float) -> str | None:
    if value != value:
        return None
    whole = abs(value) < 1 << EXACT_BITS and value.is_integer()
    return repr(int(value)) if whole else repr(value)


def _moment(value: Any, kind: type) -> str | None:
    fold = cast(Any, datetime.datetime.fold).__get__(value)
    moment = datetime.datetime(*(part.__get__(value) for part in (*_DATE, *_CLOCK)), fold=fold)
    zone = _zone(datetime.datetime.tzinfo.__get__(value), moment)
    plain = moment.isoformat(" ")
    offset = moment.replace(tzinfo=zone).isoformat(" ").removeprefix(plain)
    pandas: Any = sys.modules.get("pandas")
    if pandas is None or not issubclass(kind, pandas.Timestamp | type(pandas.NaT)):
        return plain + offset
    if kind is not pandas.Timestamp:
        return None
    # These count nanoseconds, and years, which the base does not know of.
    stamps: Any = kind
    year, nanoseconds = stamps.year.__get__(value), stamps.nanosecond.__get__(value)
    if year != moment.year and offset:
        return None
    counted = "" if not nanoseconds else f"{nanoseconds:03d}" if moment.microsecond else f".{nanoseconds:09d}"
    return f"{year:04d}{plain[4:]}{counted}{offset}"


def _zone(zone: object, moment: datetime.datetime | None) -> datetime.tzinfo | None:
    """What a time zone says of a moment, as a zone of the standard library; an error for those that are not known."""
    kind, offset = type(zone), None
    if zone is None:
        return None
    if kind is datetime.timezone:
        offset = datetime.timezone.utcoffset(cast(Any, zone), moment)
    elif kind is ZoneInfo:
        offset = ZoneInfo.utcoffset(cast(Any, zone), moment)
    else:
        offset = _held_offset(zone, kind)
    return None if offset is None else datetime.timezone(offset)


def _held_offset(zone: object, kind: type) -> datetime.timedelta:
    """That of a zone of pytz or dateutil which holds it: they are written in Python, so nothing of theirs is called."""
    pytz, dateutil = sys.modules.get("pytz"), sys.modules.get("dateutil.tz")
    known = [] if dateutil is None else [dateutil.tzutc, dateutil.tzoffset]
    known += [] if pytz is None else [type(pytz.utc), pytz._FixedOffset, *map(type, pytz._tzinfo_cache.values())]
    if not any(kind is one for one in known):
        raise TypeError("a time zone that is not known")
    if dateutil is not None and kind is dateutil.tzutc:
        return datetime.timedelta(0)
    holders = (object.__getattribute__(zone, "__dict__"), *map(vars, kind.__mro__))
    # Not looked up: a key that is no text may have an `==` of its own.
    named = [pair for holder in holders for pair in holder.items() if type(pair[0]) is str]
    held = next(value for name, value in named if name in ("_utcoffset", "_offset"))
    if type(held) is not datetime.timedelta:
        raise TypeError("an offset that is no time")
    return held

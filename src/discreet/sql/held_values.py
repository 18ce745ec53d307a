"""The values that columns of a type can hold, as a steward may list them.

A constant that its type cannot hold makes an engine fail as soon as a row is compared with it, and not before: whether
somebody's row was there would show. So what is listed is brought to the type of its column, or refused, before anything
is asked. What a column holds as it is written stays as it is written, for the identities of questions name it.

>>> from decimal import Decimal
>>> held(Decimal("0.1"), "real"), held(Decimal(3), "integer"), held(3.0, "integer")
(0.1, 3, 3.0)
>>> noon = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
>>> held(noon, "timestamp")
datetime.datetime(2020, 1, 1, 10, 0)
>>> held(2**63, "integer")
Traceback (most recent call last):
    ...
ValueError: a value that no integer is
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from discreet.core.exact import exact
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals

__all__ = ["held", "is_long", "is_writable"]


def is_long(value: int | Fraction) -> bool:
    """Whether it is a whole number of 64 bits."""
    return value.denominator == 1 and -(2**63) <= value < 2**63


def is_writable(text: str) -> bool:
    """Whether it is text in Unicode: half a surrogate pair is none, and cannot be written into a statement."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def held(value: Any, kind: Type) -> Any:
    """The value as a column of this type holds it; ValueError where it does not. None is held by all."""
    if value is None:
        return None
    if isinstance(kind, Decimals):
        found = value if _is_number(value) and kind.holds(exact("values", value)) else None
    elif kind == "integer":
        found = _integer(value) if _is_number(value) else None
    elif kind == "real":
        found = _real(value) if _is_number(value) else None
    elif kind == "text":
        found = _text(value) if isinstance(value, str) else None
    elif kind == "timestamp":
        found = _moment(value) if isinstance(value, datetime.datetime) else None
    elif kind == "date":
        found = value if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None
    else:
        found = value if isinstance(value, bool) else None
    if found is None:
        raise ValueError(f"a value that no {kind} is")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool)


def _integer(value: Any) -> Any:
    number = Fraction(value) if isinstance(value, float) and isfinite(value) else exact("values", value)
    if not is_long(number):
        return None
    return value if isinstance(value, int | float) else int(number)


def _real(value: Any) -> Any:
    """A finite double; whole numbers that are one stay whole numbers."""
    try:
        double = float(value)
    except OverflowError:
        return None
    if not isfinite(double):
        return None
    whole = isinstance(value, int) and is_long(value) and int(double) == value
    return value if whole or isinstance(value, float) else double


def _text(value: str) -> str | None:
    # A member of an enumeration of texts may write itself otherwise.
    plain = value if str(value) == value else str.__str__(value)
    return plain if is_writable(plain) else None


def _moment(value: datetime.datetime) -> datetime.datetime | None:
    """Without its zone, in UTC, as engines read moments that have one."""
    # NaT is no moment, and equal to nothing; nanoseconds are lost in any column.
    finer: int = getattr(value, "nanosecond", 0)
    if value != value or finer:
        return None
    if value.tzinfo is None:
        return value
    try:
        offset = value.utcoffset()
        plain = datetime.datetime.combine(value.date(), value.time())
        return plain if offset is None else plain - offset
    except OverflowError:
        return None

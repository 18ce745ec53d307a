"""Dates and timestamps in SQL: parts, truncation, differences, intervals, and their names in text.

Names of days and months and STRFTIME are written with functions we have, so that their values can be listed.

>>> from discreet.sql.plan import Ref
>>> read = lambda node: Ref(node.name, "date")
>>> DATED[exp.DateDiff](exp.maybe_parse("DATE_DIFF('day', born, died)", dialect="duckdb"), read)
Call(function='days', arguments=(Ref(name='born', type='date'), Ref(name='died', type='date')), type='integer')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from discreet.sql.catalog import nearest
from discreet.sql.functions.dates import DIFFERENCES, PARTS, SHIFTS, shifted
from discreet.sql.functions.registry import call, cast
from discreet.sql.functions.signature import MOMENTS
from discreet.sql.parsing.names import only, refuse
from discreet.sql.plan import Expression, Literal

__all__ = ["DATED", "compared", "moved", "named_part"]

Read = Callable[[exp.Expr], Expression]

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
SPRING = ("January", "February", "March", "April", "May", "June")
MONTHS = (*SPRING, "July", "August", "September", "October", "November", "December")
FORMATS = {
    "%Y": ("year", 4),
    "%m": ("month", 2),
    "%d": ("day", 2),
    "%H": ("hour", 2),
    "%M": ("minute", 2),
    "%S": ("second", 2),
    "%j": ("doy", 3),
}
_COUNT = re.compile(r"-?\d{1,9}", re.ASCII)


def named_part(node: exp.Expr, name: str, moment: Expression) -> Expression:
    """The part of a moment that has a name."""
    part = {"dayofweek": "dow", "dayofyear": "doy", "weekday": "dow"}.get(name.lower(), name.lower())
    if part not in PARTS:
        raise refuse(node, f"{name} is not a part of dates we know", nearest(part, PARTS))
    return call(part, moment)


def moved(node: exp.Expr, deeper: Read, sign: int) -> Expression | None:
    """A moment plus or minus an interval or a number of days; None if it is neither."""
    first, second = only(node, "this", "expression")[:2]
    if isinstance(first.unnest(), exp.Interval) and sign > 0:
        first, second = second, first
    length = second.unnest()
    if isinstance(length, exp.Interval):
        return shifted(deeper(first), *_length(length, sign))
    if not isinstance(length, exp.Literal | exp.Neg) and not isinstance(first.unnest(), exp.Literal):
        return None
    start, days = deeper(first), deeper(second)
    if sign > 0 and days.type == "date":
        start, days = days, start
    count = days.value if isinstance(days, Literal) else None
    if start.type != "date" or isinstance(count, bool) or not isinstance(count, int):
        return None
    return cast(shifted(start, sign * count, "day"), "date")


def compared(node: exp.Expr, name: str, deeper: Read) -> Expression | None:
    """Two moments whose difference is compared to an interval, as in a - b > INTERVAL 3 DAY; None for all else."""
    left, right = (part.unnest() for part in only(node, "this", "expression"))
    flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    if isinstance(left, exp.Interval):
        left, right, name = right, left, flipped.get(name, name)
    if not isinstance(right, exp.Interval) or not isinstance(left, exp.Sub):
        return None
    count, unit = _length(right, 1)
    if unit == "month":
        raise refuse(node, "months differ in length", "write a number of days")
    later, earlier = (deeper(part) for part in only(left, "this", "expression"))
    if later.type not in MOMENTS or earlier.type not in MOMENTS:
        return None
    return call(name, later, shifted(earlier, count, unit))


def _length(node: exp.Expr, sign: int) -> tuple[int, str]:
    only(node, "this", "unit")
    unit = str(node.args.get("unit") or "").lower().removesuffix("s")
    number = node.this
    if isinstance(number, exp.Neg):
        number, sign = number.this, -sign
    text = number.name if isinstance(number, exp.Literal) else ""
    if unit not in SHIFTS or not _COUNT.fullmatch(text):
        remedy = f"write INTERVAL 3 DAY, or another of {', '.join(SHIFTS)}"
        raise refuse(node, "an interval is a whole number of one unit", remedy)
    factor, base = SHIFTS[unit]
    return sign * int(text) * factor, base


def _extract(node: exp.Expr, deeper: Read) -> Expression:
    part, moment = only(node, "this", "expression")
    return named_part(node, part.name, deeper(moment))


def _truncated(node: exp.Expr, deeper: Read) -> Expression:
    moment, unit = only(node, "this", "unit")
    return call("date_trunc", Literal(unit.name.lower(), "text"), deeper(moment))


def _difference(node: exp.Expr, deeper: Read) -> Expression:
    later, earlier, *unit = only(node, "this", "expression", "unit")
    name = unit[0].name.lower() if unit else "day"
    if name == "day":
        return call("days", deeper(earlier), deeper(later))
    if name not in DIFFERENCES:
        raise refuse(node, f"{name} is not a unit we know", f"write one of day, {', '.join(DIFFERENCES)}")
    return call("date_diff", Literal(name, "text"), deeper(earlier), deeper(later))


def _added(node: exp.Expr, deeper: Read) -> Expression | None:
    moment, length = only(node, "this", "expression")
    return shifted(deeper(moment), *_length(length, 1)) if isinstance(length, exp.Interval) else None


def _choice(part: str, first: int, names: tuple[str, ...]) -> Callable[[exp.Expr, Read], Expression]:
    def reader(node: exp.Expr, deeper: Read) -> Expression:
        number = call(part, deeper(only(node, "this")[0]))
        parts: list[Expression] = []
        for place, name in enumerate(names, first):
            parts += [call("=", number, Literal(place, "integer")), Literal(name, "text")]
        return call("case", *parts, Literal(None, "text"))

    return reader


def _formatted(node: exp.Expr, deeper: Read) -> Expression:
    moment, pattern = only(node, "this", "format")
    wanted = pattern.name if isinstance(pattern, exp.Literal) and pattern.is_string else ""
    parts = re.findall("%.|[^%]+", wanted)
    if not wanted or "".join(parts) != wanted or any(part[0] == "%" and part not in FORMATS for part in parts):
        raise refuse(node, "its format is not understood", f"use {', '.join(FORMATS)} and plain text in it")
    value = deeper(moment)
    return reduce(lambda one, other: call("concat", one, other), [_written(part, value) for part in parts])


def _written(part: str, moment: Expression) -> Expression:
    if part not in FORMATS:
        return Literal(part, "text")
    name, width = FORMATS[part]
    digits = cast(call(name, moment), "text")
    return call("right", call("concat", Literal("0" * (width - 1), "text"), digits), Literal(width, "integer"))


DATED: dict[type[exp.Expr], Callable[[exp.Expr, Read], Expression | None]] = {
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _difference,
    exp.DateAdd: _added,
    exp.Dayname: _choice("dow", 0, DAYS),
    exp.Monthname: _choice("month", 1, MONTHS),
    exp.TimeToStr: _formatted,
}
"""How each of the parser's nodes about dates is read."""

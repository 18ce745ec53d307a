"""Functions of dates and timestamps, in the years 1 to 9999, without time zones.

>>> from discreet.sql.functions.registry import call, render
>>> from discreet.sql.plan import Ref
>>> render(call("year", Ref("born", "date"))).sql("duckdb")
'CAST(EXTRACT(YEAR FROM "born") AS BIGINT)'
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.sql.functions.logical import in_years
from discreet.sql.functions.ranges import Interval
from discreet.sql.functions.signature import (
    MOMENTS,
    Accepted,
    Function,
    Node,
    Shaped,
    binary,
    converted,
    each,
    typed,
    unified,
    unknown,
)
from discreet.sql.plan import Call, Expression, Literal

__all__ = ["DIFFERENCES", "PARTS", "SHIFTS", "TEMPORAL", "TRUNCATIONS", "shifted"]

PARTS = {
    "year": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "doy": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
"""Parts of a moment, and the least and greatest value of each. Weeks are ISO weeks; dow counts from Sunday."""
TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
DAYS = 3_652_058
"""From the first day to the last."""
DIFFERENCES = {
    "year": 9998,
    "quarter": 39_995,
    "month": 119_987,
    "hour": 24 * (DAYS + 1),
    "minute": 1_440 * (DAYS + 1),
    "second": 86_400 * (DAYS + 1),
}
"""Units of DATE_DIFF besides days, and the most there are between two moments. Beginnings of units are counted."""
SHIFTS = {
    "year": (12, "month"),
    "quarter": (3, "month"),
    "month": (1, "month"),
    "week": (7, "day"),
    "day": (1, "day"),
    "hour": (3600, "second"),
    "minute": (60, "second"),
    "second": (1, "second"),
}
"""Units of INTERVAL in months, days or seconds."""
FARTHEST = {"month": 120_000, "day": 3_700_000, "second": 86_400 * 3_700_000}


def _part(name: str) -> Function:
    low, high = PARTS[name]

    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        return typed(exp.Extract(this=exp.Var(this=name.upper()), expression=arguments[0].node), "integer")

    def interval(call: Call, ranges: Sequence[Interval]) -> Interval:
        return Interval(Fraction(low), Fraction(high))

    return Function(name, "a date or timestamp", each(MOMENTS, gives="integer"), render, interval)


def _truncation(arguments: Sequence[Expression]) -> Accepted | None:
    if len(arguments) != 2 or not isinstance(arguments[0], Literal) or arguments[0].value not in TRUNCATIONS:
        return None
    moment = unified(arguments[1:], MOMENTS)
    return None if moment is None else ((arguments[0], *moment[0]), moment[1])


def _truncated(call: Call, arguments: Sequence[Shaped]) -> Node:
    unit = call.arguments[0].value if isinstance(call.arguments[0], Literal) else None
    return typed(exp.TimestampTrunc(this=arguments[1].node, unit=exp.Var(this=str(unit).upper())), call.type)


def shifted(moment: Expression, count: int, base: str) -> Expression:
    """A moment so many months, days or seconds later; a literal at once."""
    brought = unified([moment], MOMENTS)
    wanted = None if brought is None else converted(brought[0][0], "timestamp")
    if wanted is None:
        raise Unsupported("this interval", f"it is added to {moment.type}", "add it to a date or timestamp")
    if abs(count) > FARTHEST[base]:
        raise Unsupported("this interval", f"it is longer than {FARTHEST[base]:,} {base}s", "write a shorter one")
    if isinstance(wanted, Literal) and isinstance(wanted.value, datetime.datetime):
        return Literal(_later(wanted.value, count, base), "timestamp")
    return Call("shift", (wanted, Literal(count, "integer"), Literal(base, "text")), "timestamp")


def _later(moment: datetime.datetime, count: int, base: str) -> datetime.datetime | None:
    try:
        if base != "month":
            return moment + datetime.timedelta(**{base + "s": count})
        years, month = divmod(moment.year * 12 + moment.month - 1 + count, 12)
        last = calendar.monthrange(years, month + 1)[1]
        return moment.replace(year=years, month=month + 1, day=min(moment.day, last))
    except (OverflowError, ValueError, calendar.IllegalMonthError):
        return None


def _shift(call: Call, arguments: Sequence[Shaped]) -> Node:
    count, base = (argument.value for argument in call.arguments[1:] if isinstance(argument, Literal))
    interval = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.Var(this=str(base).upper()))
    return in_years(binary(exp.Add, arguments[0].node, interval), "timestamp")


def _apart(arguments: Sequence[Expression]) -> Accepted | None:
    if len(arguments) != 3 or not isinstance(arguments[0], Literal) or arguments[0].value not in DIFFERENCES:
        return None
    moments = [accepted[0][0] for part in arguments[1:] if (accepted := unified([part], MOMENTS)) is not None]
    brought = [converted(moment, "timestamp") for moment in moments]
    known = tuple(moment for moment in brought if moment is not None)
    return ((arguments[0], *known), "integer") if len(known) == 2 else None


def _difference(call: Call, arguments: Sequence[Shaped]) -> Node:
    unit = call.arguments[0].value if isinstance(call.arguments[0], Literal) else None
    earlier, later = arguments[1].node, arguments[2].node
    return typed(exp.DateDiff(this=later, expression=earlier, unit=exp.Var(this=str(unit).upper())), "integer")


def _most_apart(call: Call, ranges: Sequence[Interval]) -> Interval:
    unit = call.arguments[0].value if isinstance(call.arguments[0], Literal) else None
    most = Fraction(DIFFERENCES[str(unit)])
    return Interval(-most, most)


TEMPORAL = (
    *(_part(name) for name in PARTS),
    Function(
        "date_trunc",
        f"one of {', '.join(TRUNCATIONS)}, and a date or timestamp",
        _truncation,
        _truncated,
        unknown,
    ),
    Function(
        "days",
        "two dates or timestamps",
        each(MOMENTS, MOMENTS, gives="integer"),
        lambda call, arguments: typed(
            binary(exp.Sub, typed(arguments[1].node, "date"), typed(arguments[0].node, "date")), "integer"
        ),
        lambda call, ranges: Interval(Fraction(-DAYS), Fraction(DAYS)),
    ),
    Function(
        "date_diff",
        f"one of {', '.join(DIFFERENCES)}, and two dates or timestamps",
        _apart,
        _difference,
        _most_apart,
    ),
    Function("shift", "a moment, a number and a unit", lambda arguments: None, _shift, unknown, copies=(2,)),
)
"""Parts of moments, truncation, differences and shifts."""

"""Functions of dates and timestamps, in the years 1 to 9999, without time zones.

>>> from discreet.sql.functions import call, render
>>> from discreet.sql.plan import Ref
>>> render(call("year", Ref("born", "date"))).sql("duckdb")
'CAST(EXTRACT(YEAR FROM "born") AS BIGINT)'
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.sql.intervals import Interval
from discreet.sql.plan import Call, Expression, Literal
from discreet.sql.signature import MOMENTS, Accepted, Function, Node, Shaped, binary, each, typed, unified, unknown

__all__ = ["PARTS", "TEMPORAL", "TRUNCATIONS"]

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
)
"""Parts of moments, truncation, and days from one to the other."""

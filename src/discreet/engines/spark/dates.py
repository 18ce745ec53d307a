"""Dates and timestamps on Spark, without time zones: what the session's own zone is does not matter.

Moments are TIMESTAMP_NTZ. Functions of Spark that would bring them to the session's zone on the way, and lose an hour
there in spring, are not used.

>>> part("DOW", "`day`")
'(DAYOFWEEK(CAST(`day` AS TIMESTAMP_NTZ)) - 1)'
>>> truncated("MONTH", "`day`")
"CAST(TRUNC(CAST(`day` AS DATE), 'MONTH') AS TIMESTAMP_NTZ)"
"""

from __future__ import annotations

from sqlglot import exp

__all__ = ["MOMENT", "apart", "in_utc", "later", "part", "truncated"]

MOMENT = "TIMESTAMP_NTZ"
EPOCH = f"{MOMENT}'1970-01-01 00:00:00'"
PARTS = {
    "YEAR": "YEAR({})",
    "QUARTER": "QUARTER({})",
    "MONTH": "MONTH({})",
    "WEEK": "WEEKOFYEAR({})",
    "DAY": "DAY({})",
    "DOW": "(DAYOFWEEK({}) - 1)",
    "ISODOW": "(WEEKDAY({}) + 1)",
    "DOY": "DAYOFYEAR({})",
    "HOUR": "HOUR({})",
    "MINUTE": "MINUTE({})",
    "SECOND": "SECOND({})",
}
TIMES = {"HOUR": 1, "MINUTE": 2, "SECOND": 3}
"""How many of hours, minutes and seconds tell a time apart."""


def in_utc(value: str) -> str:
    """An instant as a moment in UTC."""
    return f"TIMESTAMPADD(MICROSECOND, UNIX_MICROS({value}), {EPOCH})"


def part(name: str, value: str) -> str:
    """One part of a moment or day; weeks are ISO weeks."""
    return PARTS[name].format(_moment(value))


def truncated(unit: str, value: str) -> str:
    """The beginning of the unit that a moment or day lies in."""
    if unit in TIMES:
        times = [f"{name}({_moment(value)})" for name in TIMES][: TIMES[unit]]
        return f"({_day(value)} + MAKE_DT_INTERVAL({', '.join(['0', *times])}))"
    return _day(value) if unit == "DAY" else f"CAST(TRUNC(CAST({value} AS DATE), '{unit}') AS {MOMENT})"


def later(moment: str, interval: exp.Interval) -> str:
    """A moment so much later."""
    return f"({moment} + INTERVAL '{interval.this.this}' {interval.args['unit'].this})"


def apart(earlier: str, later: str, unit: str) -> str:
    """How many units begin after one moment and up to another."""
    return f"({_number(later, unit)} - {_number(earlier, unit)})"


def _number(moment: str, unit: str) -> str:
    """The number of the unit that a moment lies in."""
    if unit in TIMES:
        number = f"CAST(UNIX_DATE(CAST({moment} AS DATE)) AS BIGINT)"
        for name, many in (("HOUR", 24), ("MINUTE", 60), ("SECOND", 60))[: TIMES[unit]]:
            number = f"({number} * {many} + {name}({moment}))"
        return number
    year = f"YEAR({moment})"
    within = {"YEAR": year, "QUARTER": f"({year} * 4 + QUARTER({moment}))", "MONTH": f"({year} * 12 + MONTH({moment}))"}
    return within[unit]


def _moment(value: str) -> str:
    return f"CAST({value} AS {MOMENT})"


def _day(value: str) -> str:
    return f"CAST(CAST({value} AS DATE) AS {MOMENT})"

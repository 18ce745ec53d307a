"""Casts and moments on PostgreSQL, which fails on what DuckDB makes NULL of.

Text that comes here has the form of a number or a moment already; what is left to find out is whether it fits.

>>> held("n")
'CASE WHEN n BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST(n AS BIGINT) END'
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction

from sqlglot import exp

from discreet.engines.postgres.arithmetic import Piece, bound

__all__ = ["FROM_TEXT", "apart", "from_real", "held", "later", "shown"]

LOWEST, HIGHEST = -(2**63), 2**63 - 1
WRITTEN = 10_000
"""Characters of the longest text that is read as a real; longer ones are NULL."""
FIRST = datetime.datetime(1, 1, 1)


def _decimal(value: Fraction) -> str:
    """Forty digits: no more are needed to tell how it is rounded."""
    context = Context(prec=40)
    return str(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


TOO_LARGE = _decimal(Fraction(2) ** 1024 - Fraction(2) ** 970)
"""From here on, numbers are infinite as doubles."""
TOO_SMALL = _decimal(Fraction(1, 2**1075))
"""Up to here they are 0."""


def held(value: str) -> str:
    """A whole number of any size as 64 bits, NULL where it does not fit."""
    return f"CASE WHEN {value} BETWEEN {LOWEST} AND {HIGHEST} THEN CAST({value} AS BIGINT) END"


def from_real(value: str) -> str:
    """A double as a whole number, halves to even; NULL where it does not fit, and for NaN."""
    low, high = f"float8 '{float(LOWEST)!r}'", f"float8 '{-float(LOWEST)!r}'"
    return f"CASE WHEN {value} >= {low} AND {value} < {high} THEN CAST({value} AS BIGINT) END"


def shown(value: Piece) -> str:
    """A double as DuckDB writes it: from 10^15 to 10^16 without an exponent, and whole numbers with a point."""

    def positional(x: str) -> str:
        large = f"{x} BETWEEN -1e16 AND -1e15 OR {x} BETWEEN 1e15 AND 1e16"
        plain = f"CAST(CAST(CAST({x} AS TEXT) AS NUMERIC) AS TEXT)"
        return f"CASE WHEN ({large}) AND ABS({x}) < 1e16 THEN {plain} ELSE CAST({x} AS TEXT) END"

    def pointed(x: str) -> str:
        return f"CASE WHEN {x} ~ '[.e]' THEN {x} ELSE {x} || '.0' END"

    return bound(pointed, Piece(bound(positional, value)))


def _integer(value: Piece) -> str:
    """Digits beyond the nineteenth do not fit, however many zeros there are before them."""

    def number(x: str) -> str:
        digits = f"LTRIM(RTRIM({x}, ' '), ' +-0')"
        sign = f"CASE WHEN STRPOS({x}, '-') > 0 THEN '-0' ELSE '0' END"
        return f"CASE WHEN LENGTH({digits}) <= 19 THEN CAST({sign} || {digits} AS NUMERIC) END"

    return bound(held, Piece(bound(number, value)))


def _real(value: Piece) -> str:
    def number(x: str) -> str:
        return f"CASE WHEN LENGTH({x}) <= {WRITTEN} THEN ABS(CAST({x} AS NUMERIC)) END"

    def made(x: str) -> str:
        size = Piece(number(x))
        fits = bound(lambda n: f"CASE WHEN {n} <= {TOO_SMALL} THEN 0 WHEN {n} < {TOO_LARGE} THEN 1 END", size)
        return f"CASE {fits} WHEN 0 THEN float8 '0' WHEN 1 THEN CAST({x} AS FLOAT8) END"

    return bound(made, value)


def _day(x: str) -> str:
    """Whether a text begins with a day of the calendar, the years 1 to 9999."""
    year, month, day = (f"CAST(SUBSTRING({x}, {at}, {size}) AS INTEGER)" for at, size in ((1, 4), (6, 2), (9, 2)))
    last = f"EXTRACT(DAY FROM MAKE_DATE({year}, {month}, 1) + INTERVAL '1 month -1 day')"
    return f"CASE WHEN {year} >= 1 AND {month} BETWEEN 1 AND 12 AND {day} >= 1 THEN {day} <= {last} ELSE FALSE END"


def _moment(kind: str) -> Callable[[Piece], str]:
    return lambda value: bound(lambda x: f"CASE WHEN {_day(x)} THEN CAST({x} AS {kind}) END", value)


FROM_TEXT: Mapping[str, Callable[[Piece], str]] = {
    "BIGINT": _integer,
    "FLOAT8": _real,
    "DATE": _moment("DATE"),
    "TIMESTAMP": _moment("TIMESTAMP"),
}
"""What a text of the right form is in each type, NULL where it does not fit."""


def later(moment: Piece, interval: exp.Interval) -> str:
    """A moment so much later, NULL where that would be before the year 1: soon after, the server fails."""
    count, unit = int(interval.this.this), str(interval.args["unit"].this)
    days, seconds = divmod(count, 86_400) if unit == "SECOND" else (count, 0)
    said = f"INTERVAL '{count} months'" if unit == "MONTH" else f"INTERVAL '{days} days {seconds} seconds'"
    if count >= 0:
        return f"({moment.sql} + {said})"
    try:
        years, months = divmod(-count, 12)
        length = datetime.timedelta(days=days, seconds=seconds)
        first = FIRST.replace(year=1 + years, month=1 + months) if unit == "MONTH" else FIRST - length
    except (OverflowError, ValueError):
        return "CAST(NULL AS TIMESTAMP)"
    return bound(lambda x: f"CASE WHEN {x} >= timestamp '{first.isoformat(' ')}' THEN {x} + {said} END", moment)


def apart(earlier: Piece, later: Piece, unit: str) -> str:
    """How many units begin after one moment and up to another."""
    return f"({_number(later, unit)} - {_number(earlier, unit)})"


def _number(moment: Piece, unit: str) -> str:
    """The number of the unit that a moment lies in."""
    seconds = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}.get(unit)
    if seconds is not None:
        return f"CAST(EXTRACT(EPOCH FROM DATE_TRUNC('{unit.lower()}', {moment.sql})) AS BIGINT) / {seconds}"
    year = "CAST(EXTRACT(YEAR FROM {0}) AS BIGINT)"
    within = {"YEAR": year, "QUARTER": year + " * 4 + CAST(EXTRACT(QUARTER FROM {0}) AS BIGINT)"}
    within["MONTH"] = year + " * 12 + CAST(EXTRACT(MONTH FROM {0}) AS BIGINT)"
    return "(" + bound(within[unit].format, moment) + ")"

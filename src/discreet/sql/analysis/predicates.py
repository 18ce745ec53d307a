"""What conditions that hold say about expressions: choices, ranges, and the moments between two dates.

>>> age = Ref("age", "integer")
>>> known = Conditions([Call(">=", (age, Literal(18, "integer")), "boolean")])
>>> known.range(age)
(Fraction(18, 1), inf)
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Container, Iterable
from fractions import Fraction
from typing import Any

from discreet.sql.catalog import Type, is_number
from discreet.sql.decimals import Decimals
from discreet.sql.plan import Call, Expression, Literal, Ref

__all__ = ["Conditions", "branches", "is_over", "rounds", "steps"]

Moment = datetime.datetime
End = Fraction | float

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
LENGTHS = {
    "day": datetime.timedelta(days=1),
    "hour": datetime.timedelta(hours=1),
    "minute": datetime.timedelta(minutes=1),
    "second": datetime.timedelta(seconds=1),
}
BY_DAY = {"year", "quarter", "month", "week", "dow", "isodow", "doy", "days"}
"""Functions of a moment that are the same all day."""


class Conditions:
    """Conditions that are all true of a row."""

    def __init__(self, given: Iterable[Expression]) -> None:
        self._equal: dict[Expression, list[list[Any]]] = defaultdict(list)
        self._least: dict[Expression, list[Any]] = defaultdict(list)
        self._most: dict[Expression, list[Any]] = defaultdict(list)
        for condition in given:
            if isinstance(condition, Call):
                self._read(condition)

    def _read(self, condition: Call) -> None:
        first, *others = condition.arguments
        if condition.function in FLIPPED:
            (other,) = others
            if isinstance(other, Literal):
                self._compared(first, condition.function, other.value)
            elif isinstance(first, Literal):
                self._compared(other, FLIPPED[condition.function], first.value)
        elif condition.function == "between":
            for function, end in zip((">=", "<="), others, strict=True):
                if isinstance(end, Literal):
                    self._compared(first, function, end.value)
        elif condition.function == "in" and all(isinstance(other, Literal) for other in others):
            self._equal[first].append([other.value for other in others if isinstance(other, Literal)])

    def _compared(self, expression: Expression, function: str, value: Any) -> None:
        if value is None:
            return
        if function == "=":
            self._equal[expression].append([value])
        if function in (">", ">=", "="):
            self._least[expression].append(value)
        if function in ("<", "<=", "="):
            self._most[expression].append(value)

    def choices(self, expression: Expression) -> tuple[Any, ...] | None:
        """The literals an expression is equal to one of."""
        if expression not in self._equal:
            return None
        first, *others = self._equal[expression]
        common = [value for value in first if value is not None and all(value in other for other in others)]
        doubles = expression.type == "real"
        return tuple(dict.fromkeys(float(v) if doubles and isinstance(v, Fraction) else v for v in common))

    def range(self, expression: Expression) -> tuple[End, End]:
        """The ends between which a number lies; of what is no number nothing is known."""
        if not is_number(expression.type):
            return -math.inf, math.inf
        same = [part for part in {**self._least, **self._most} if part == expression or _is_cast_of(expression, part)]
        low = [Fraction(value) for part in same for value in self._least.get(part, [])]
        high = [Fraction(value) for part in same for value in self._most.get(part, [])]
        return max(low, default=-math.inf), min(high, default=math.inf)

    def moments(self, column: Ref, step: str, most: int) -> tuple[Any, ...] | None:
        """Every day (or the beginning of every hour, …) between the ends of a date or timestamp, if both are known."""
        other: Type = "timestamp" if column.type == "date" else "date"
        same: list[Expression] = [column, Call("cast", (column,), other), Call("year", (column,), "integer")]
        low = [_moment(value, False) for part in same for value in self._least.get(part, [])]
        high = [_moment(value, True) for part in same for value in self._most.get(part, [])]
        if not low or not high:
            return None
        first, last = max(low), min(high)
        first -= (first - Moment.min) % LENGTHS[step]
        count = (last - first) // LENGTHS[step] + 1
        if count > most:
            return None
        found = (first + place * LENGTHS[step] for place in range(count))
        return tuple(moment.date() for moment in found) if column.type == "date" else tuple(found)


def _is_cast_of(expression: Expression, other: Expression) -> bool:
    """Whether the other is the same number in another type."""
    cast = isinstance(other, Call) and other.function == "cast" and other.arguments == (expression,)
    return cast and isinstance(other, Call) and is_number(other.type) and not rounds(other)


def rounds(cast: Call) -> bool:
    """Whether a cast between numbers can move one by more than the last bit of a double."""
    source, target = cast.arguments[0].type, cast.type
    if isinstance(target, Decimals):
        return source == "real" or (isinstance(source, Decimals) and target.scale < source.scale)
    return target == "integer" and source != "integer"


def _moment(value: Any, last: bool) -> Moment:
    """The first or the last moment of a year, a day or a moment, within the years that engines hold."""
    if isinstance(value, Moment):
        return value
    if not isinstance(value, datetime.date):
        year = min(max(int(value), 1), 9999)
        value = datetime.date(year, 12, 31) if last else datetime.date(year, 1, 1)
    return Moment.combine(value, datetime.time.max if last else datetime.time.min)


def steps(expression: Expression) -> dict[str, str]:
    """For each timestamp that is used only through its parts, the shortest time that makes a difference to them."""
    used: dict[str, set[str | None]] = defaultdict(set)
    _use(expression, None, used)
    order = list(LENGTHS)
    return {
        name: max((step for step in found if step), key=order.index)
        for name, found in used.items()
        if None not in found
    }


def _use(expression: Expression, step: str | None, used: dict[str, set[str | None]]) -> None:
    if isinstance(expression, Ref) and expression.type == "timestamp":
        used[expression.name].add(step)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            _use(argument, _step(expression), used)


def _step(call: Call) -> str | None:
    unit = call.function
    if unit in ("date_trunc", "date_diff") and isinstance(call.arguments[0], Literal):
        unit = str(call.arguments[0].value)
    if unit in LENGTHS:
        return unit
    return "day" if unit in BY_DAY or (unit == "cast" and call.type == "date") else None


def is_over(expression: Expression, names: Container[str]) -> bool:
    """Whether any of these columns stands in an expression."""
    if isinstance(expression, Call):
        return any(is_over(argument, names) for argument in expression.arguments)
    return isinstance(expression, Ref) and expression.name in names


def branches(choice: Call) -> tuple[Expression, ...]:
    """What a CASE or COALESCE chooses from."""
    given = choice.arguments
    return given if choice.function == "coalesce" else (*given[1::2], given[-1])

"""Comparisons, logic, choices and casts.

Logic has three values, as in SQL. Comparing, choosing and casting bring numbers to one type and dates to one type, and
nothing else: text never turns into a number unless a CAST says so.

>>> from discreet.sql.functions.registry import call, render
>>> from discreet.sql.plan import Ref
>>> render(call("<", Ref("age", "integer"), Literal(18, "integer"))).sql("duckdb")
'("age" < CAST(18 AS BIGINT))'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from discreet.sql.catalog import PlainType, Type
from discreet.sql.decimals import Decimals
from discreet.sql.functions import decimal_arithmetic as units
from discreet.sql.functions.ranges import DOUBLES, EVERYTHING, LONGS, Interval, hull
from discreet.sql.functions.signature import (
    MOMENTS,
    ORDERED,
    Accepted,
    Function,
    Node,
    Shaped,
    binary,
    each,
    guarded,
    is_null,
    number,
    try_cast,
    typed,
    unified,
    unknown,
    within,
)
from discreet.sql.plan import Call, Expression, Literal

__all__ = ["CASTS", "LOGICAL", "READABLE", "WITH_DECIMALS", "castable", "finite", "in_years"]

ANY: tuple[Type, ...] = ("boolean", *ORDERED)
BOOLEAN: tuple[Type, ...] = ("boolean",)
YEARS: dict[Type, tuple[str, str]] = {
    "date": ("0001-01-01", "9999-12-31"),
    "timestamp": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
}
"""The first and last moment that every engine and Python can hold."""


def _comparison(name: str, operator: type[exp.Binary], kinds: tuple[Type, ...]) -> Function:
    def accepts(arguments: Sequence[Expression]) -> Accepted | None:
        accepted = unified(arguments, kinds) if len(arguments) == 2 else None
        return None if accepted is None else (accepted[0], "boolean")

    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        return binary(operator, arguments[0].node, arguments[1].node)

    return Function(name, "two values of one type", accepts, render, unknown)


def _connective(name: str, operator: type[exp.Binary]) -> Function:
    def accepts(arguments: Sequence[Expression]) -> Accepted | None:
        return unified(arguments, BOOLEAN) if len(arguments) >= 2 else None

    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        nodes = [argument.node for argument in arguments]
        return exp.Paren(this=reduce(lambda left, right: operator(this=left, expression=right), nodes))

    return Function(name, "conditions", accepts, render, unknown)


def _same_then_boolean(least: int) -> Callable[[Sequence[Expression]], Accepted | None]:
    def accepts(arguments: Sequence[Expression]) -> Accepted | None:
        accepted = unified(arguments, ANY) if len(arguments) >= least else None
        return None if accepted is None else (accepted[0], "boolean")

    return accepts


def _listed(call: Call, arguments: Sequence[Shaped]) -> Node:
    value, *choices = arguments
    return exp.Paren(this=exp.In(this=value.node, expressions=[choice.node for choice in choices]))


def _between(call: Call, arguments: Sequence[Shaped]) -> Node:
    value, low, high = arguments
    return exp.Paren(this=exp.Between(this=value.node, low=low.node, high=high.node))


def _branches(arguments: Sequence[Expression]) -> Accepted | None:
    """Condition, value, condition, value, …, and the value of ELSE."""
    if len(arguments) < 3 or len(arguments) % 2 == 0:
        return None
    conditions = unified(arguments[:-1:2], BOOLEAN)
    values = unified([*arguments[1::2], arguments[-1]], ANY)
    if conditions is None or values is None:
        return None
    pairs = zip(conditions[0], values[0][:-1], strict=True)
    return (*(part for pair in pairs for part in pair), values[0][-1]), values[1]


def _case(call: Call, arguments: Sequence[Shaped]) -> Node:
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    return exp.Case(
        ifs=[exp.If(this=condition.node, true=value.node) for condition, value in pairs],
        default=arguments[-1].node,
    )


def _case_range(call: Call, ranges: Sequence[Interval]) -> Interval:
    values = [*zip(call.arguments, ranges, strict=True)]
    return _any_of([*values[1::2], values[-1]])


def _any_of(values: Sequence[tuple[Expression, Interval]]) -> Interval:
    known = [reach for value, reach in values if not is_null(value)]
    return hull(*known) if known else EVERYTHING


def _certain(expression: Expression) -> bool:
    """Whether the value can be seen never to be NULL."""
    if isinstance(expression, Literal):
        return expression.value is not None
    return (
        isinstance(expression, Call) and expression.function == "coalesce" and any(map(_certain, expression.arguments))
    )


def _first_range(call: Call, ranges: Sequence[Interval]) -> Interval:
    values = [*zip(call.arguments, ranges, strict=True)]
    last = next((place for place, (value, _) in enumerate(values) if _certain(value)), len(values))
    return _any_of(values[: last + 1])


def _several(arguments: Sequence[Expression]) -> Accepted | None:
    return unified(arguments, ORDERED) if arguments else None


def _extreme(name: str, shape: type[exp.Func], least: bool) -> Function:
    """LEAST and GREATEST leave NULLs out, so only values that are never NULL bound the result on their side."""

    def interval(call: Call, ranges: Sequence[Interval]) -> Interval:
        whole = _any_of([*zip(call.arguments, ranges, strict=True)])
        sure = [reach for value, reach in zip(call.arguments, ranges, strict=True) if _certain(value)]
        if least:
            return Interval(whole.lower, min([whole.upper, *(reach.upper for reach in sure)]))
        return Interval(max([whole.lower, *(reach.lower for reach in sure)]), whole.upper)

    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        first, *others = (argument.node for argument in arguments)
        extreme: Node = shape(this=first, expressions=others, ignore_nulls=True)
        return extreme if others else first

    return Function(name, "values of one type", _several, render, interval)


def finite(value: Shaped) -> Node:
    """A real with NULL for NaN and ±∞ (both lie outside the finite doubles in every engine's order) and 0 for −0."""
    tidy = binary(exp.Add, value.node, number(0))
    if within(value.reach, DOUBLES):
        return tidy
    largest = Fraction(DOUBLES.upper)
    condition = exp.Between(this=value.copy(), low=number(-largest), high=number(largest))
    return guarded(condition, tidy)


def in_years(value: Node, kind: Type) -> Node:
    """A moment with NULL for those outside the years 1 to 9999, and infinite ones."""
    low, high = (typed(exp.Literal.string(end), kind) for end in YEARS[kind])
    return guarded(exp.Between(this=value.copy(), low=low, high=high), value)


READABLE: dict[PlainType, str] = {
    "integer": "^ *[+-]?[0-9]+ *$",
    "real": "^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})? *$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": "^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?)?$",
}
"""Text that reads as a value of each type. Engines accept more, each in its own way; to us the rest is NULL."""


def _cast(call: Call, arguments: Sequence[Shaped]) -> Node:
    (value,) = arguments
    source, target = call.arguments[0].type, call.type
    if isinstance(source, Decimals) or isinstance(target, Decimals):
        return _decimal_cast(value, source, target)
    if source == "text":
        readable = exp.RegexpLike(this=value.copy(), expression=exp.Literal.string(READABLE[target]))
        plain = try_cast(guarded(readable, value.node), target, "text")
        if target == "real":
            return finite(Shaped(plain, EVERYTHING))
        return in_years(plain, target) if target in MOMENTS else plain
    if (source, target) == ("real", "text"):
        return typed(finite(value), "text", "real")
    if (source, target) == ("integer", "boolean"):
        return binary(exp.NEQ, value.node, exp.Literal.number(0))
    if source == "real":
        return try_cast(value.node, target, "real")
    return typed(value.node, target, "boolean" if source == "boolean" else None)


def _decimal_cast(value: Shaped, source: Type, target: Type) -> Node:
    """From or to decimals; fewer digits behind the point are the nearest, halves away from 0."""
    if isinstance(target, Decimals):
        if source == "real":
            return units.from_real(value.node, target)
        scale = source.scale if isinstance(source, Decimals) else 0
        return units.fitting(units.rescaled(units.in_units(value, source), scale, target.scale), target.precision)
    assert isinstance(source, Decimals)
    whole = units.in_units(value, source)
    if target == "real":
        return units.as_real(whole, source.scale)
    if target == "text":
        return units.as_text(whole, source.scale)
    near = units.rounded(whole, source.scale)
    if within(near.reach):
        return typed(near.node, "integer")
    ends = [units.literal(int(end)) for end in (LONGS.lower, LONGS.upper)]
    return typed(guarded(exp.Between(this=near.copy(), low=ends[0], high=ends[1]), near.node), "integer")


def _cast_range(call: Call, ranges: Sequence[Interval]) -> Interval:
    source, target = call.arguments[0].type, call.type
    if isinstance(target, Decimals):
        scale = target.scale
        # The units of a double are a product of doubles.
        reach = ranges[0] * _DOUBLED if source == "real" else ranges[0]
        return reach.through(lambda end: Fraction(_half_away(end * 10**scale), 10**scale))
    if isinstance(source, Decimals):
        return ranges[0].through(_half_away) if target == "integer" else ranges[0]
    if source == "boolean":
        return Interval(Fraction(0), Fraction(1))
    if source == "real" and call.type == "integer":
        return ranges[0].through(round)
    return ranges[0] if source == "integer" else EVERYTHING


_DOUBLED = Interval(1 - Fraction(1, 2**50), 1 + Fraction(1, 2**50))


def _half_away(value: Fraction) -> int:
    size = int(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


CASTS: dict[PlainType, tuple[PlainType, ...]] = {
    "integer": ("integer", "real", "text", "boolean"),
    "real": ("integer", "real", "text"),
    "boolean": ("boolean", "integer", "real", "text"),
    "text": ("text", "integer", "real", "date", "timestamp"),
    "date": ("date", "timestamp", "text"),
    "timestamp": ("timestamp", "date", "text"),
}
"""What each type can be cast to."""
WITH_DECIMALS: tuple[Type, ...] = ("integer", "real", "text")
"""What decimals can be cast to, and be made of."""


def castable(source: Type, target: Type) -> bool:
    """Whether values of one type have a meaning in another."""
    if isinstance(target, Decimals):
        return isinstance(source, Decimals) or source in WITH_DECIMALS
    return target in WITH_DECIMALS if isinstance(source, Decimals) else target in CASTS[source]


LOGICAL = (
    _comparison("=", exp.EQ, ANY),
    _comparison("<>", exp.NEQ, ANY),
    _comparison("<", exp.LT, ORDERED),
    _comparison("<=", exp.LTE, ORDERED),
    _comparison(">", exp.GT, ORDERED),
    _comparison(">=", exp.GTE, ORDERED),
    _connective("and", exp.And),
    _connective("or", exp.Or),
    Function(
        "not",
        "a condition",
        each(BOOLEAN),
        lambda call, arguments: exp.Paren(this=exp.Not(this=arguments[0].node)),
        unknown,
    ),
    Function(
        "is null",
        "one value",
        each(ANY, gives="boolean"),
        lambda call, arguments: binary(exp.Is, arguments[0].node, exp.Null()),
        unknown,
    ),
    Function("in", "values of one type", _same_then_boolean(2), _listed, unknown),
    # Engines compare the value twice.
    Function("between", "three values of one type", _same_then_boolean(3), _between, unknown, copies=(2, 1)),
    Function("case", "conditions, and values of one type", _branches, _case, _case_range),
    Function(
        "coalesce",
        "values of one type",
        lambda arguments: unified(arguments, ANY) if arguments else None,
        lambda call, arguments: exp.Coalesce(
            this=arguments[0].node, expressions=[argument.node for argument in arguments[1:]]
        ),
        _first_range,
    ),
    Function(
        "nullif",
        "two values of one type",
        lambda arguments: unified(arguments, ANY) if len(arguments) == 2 else None,
        lambda call, arguments: exp.Nullif(this=arguments[0].node, expression=arguments[1].node),
        lambda call, ranges: ranges[0],
        copies=(2,),
    ),
    _extreme("least", exp.Least, least=True),
    _extreme("greatest", exp.Greatest, least=False),
    Function("cast", "one value", lambda arguments: None, _cast, _cast_range, copies=(4,)),
)
"""Comparisons, connectives, choices and casts."""

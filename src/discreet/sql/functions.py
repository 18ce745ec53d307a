"""All functions of one row: building calls, their ranges, and their SQL.

`render` gives SQL that is total on any rows that `admit` let in: no value makes it fail, and what comes out is a value
of the expression's type or NULL. Reals that come out are finite and never −0; integers have 64 bits; dates lie in
the years 1 to 9999.

>>> from discreet.sql.plan import Ref
>>> total = call("*", Ref("price", "real"), Ref("pieces", "integer"))
>>> interval(total, {"price": Interval(Fraction(0), Fraction(5)), "pieces": Interval(Fraction(1), Fraction(3))})
Interval(lower=Fraction(0, 1), upper=Fraction(15, 1))
>>> render(call("+", Ref("n", "integer"), Literal(1, "integer"))).sql("duckdb")
'TRY_CAST(CAST("n" AS INT128) + CAST(CAST(1 AS BIGINT) AS INT128) AS BIGINT)'
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.sql.catalog import Type, nearest
from discreet.sql.intervals import DOUBLES, EVERYTHING, LONGS, Interval
from discreet.sql.logical import CASTS, LOGICAL, finite, in_years
from discreet.sql.numeric import NUMERIC
from discreet.sql.plan import Call, Expression, Literal, Ref
from discreet.sql.signature import (
    MOMENTS,
    Function,
    Node,
    Shaped,
    converted,
    guarded,
    is_null,
    number,
    try_cast,
    typed,
    within,
)
from discreet.sql.temporal import TEMPORAL
from discreet.sql.textual import PASSING, TEXTUAL, fitting, measured

__all__ = ["FUNCTIONS", "Mismatch", "admit", "call", "cast", "interval", "render", "weight"]

FUNCTIONS: dict[str, Function] = {function.name: function for function in (*NUMERIC, *LOGICAL, *TEXTUAL, *TEMPORAL)}
"""Every function by name."""


class Mismatch(Unsupported):
    """Arguments of types, or of a form, that a function does not take."""


def call(name: str, *arguments: Expression) -> Call:
    """The function applied to arguments, brought to the types it works on."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"the function {name}", "it is not one of ours", nearest(name, sorted(FUNCTIONS)))
    accepted = function.accepts(arguments)
    if accepted is None:
        given = ", ".join("NULL" if is_null(argument) else argument.type for argument in arguments)
        raise Mismatch(name.upper(), f"it takes {function.takes}, not ({given})", "CAST or correct the arguments")
    return Call(name, *accepted)


def cast(expression: Expression, kind: Type) -> Expression:
    """The expression in another type; NULL where a value has no counterpart there."""
    if expression.type == kind:
        return expression
    if is_null(expression):
        return Literal(None, kind)
    if isinstance(expression, Literal) and (expression.type == "integer" or kind in MOMENTS):
        literal = converted(expression, kind)
        if literal is not None:
            return literal
        if expression.type == "text":
            raise Mismatch(repr(expression.value), f"it does not read as a {kind}", "write 'YYYY-MM-DD'")
    if kind not in CASTS[expression.type]:
        possible = ", ".join(CASTS[expression.type])
        raise Mismatch("CAST", f"{expression.type} has no meaning as {kind}", f"possible: {possible}")
    return Call("cast", (expression,), kind)


def interval(expression: Expression, columns: Mapping[str, Interval]) -> Interval:
    """The range of the values, given ranges of columns; columns that are not listed may hold anything."""
    if isinstance(expression, Ref):
        return columns.get(expression.name, EVERYTHING)
    if isinstance(expression, Literal):
        return _literal_range(expression)
    ranges = [interval(argument, columns) for argument in expression.arguments]
    return FUNCTIONS[expression.function].interval(expression, ranges).rounded(expression.type)


def render(expression: Expression) -> Node:
    """The expression in SQL, columns as quoted identifiers."""
    shaped = _shaped(expression)
    return finite(shaped) if isinstance(expression, Call) and expression.type == "real" else shaped.node


def admit(name: str, kind: Type) -> Node:
    """A column of a table as expressions may rely on it: in the engine's type for ours, what does not fit as NULL."""
    column = exp.column(name, quoted=True)
    if kind == "text":
        return typed(column, kind)
    if kind == "real":
        return finite(Shaped(try_cast(column, kind, "column"), EVERYTHING))
    cast = try_cast(column, kind, "column")
    return in_years(cast, kind) if kind in MOMENTS else cast


def weight(expression: Expression, inside: bool = False) -> int:
    """How large the expression is as SQL; `inside` a text that is measured as a whole."""
    if not isinstance(expression, Call):
        return 1
    passing = expression.function in PASSING
    copies = FUNCTIONS[expression.function].copies
    if expression.function == "cast" and expression.arguments[0].type not in ("text", "real"):
        copies = (1,)
    times = [*copies, *copies[-1:] * len(expression.arguments)]
    sizes = [count * weight(argument, passing) for count, argument in zip(times, expression.arguments, strict=False)]
    return 1 + sum(sizes) + (sum(map(weight, measured(expression))) if passing and not inside else 0)


def _shaped(expression: Expression, inside: bool = False) -> Shaped:
    """`inside` a text that is measured as a whole, its parts are not measured again."""
    if isinstance(expression, Ref):
        reach = {"integer": LONGS, "real": DOUBLES}.get(expression.type, EVERYTHING)
        return Shaped(exp.column(expression.name, quoted=True), reach)
    if isinstance(expression, Literal):
        return Shaped(_literal(expression), _literal_range(expression))
    passing = expression.function in PASSING
    arguments = [_shaped(argument, passing) for argument in expression.arguments]
    node = FUNCTIONS[expression.function].render(expression, arguments)
    fits = fitting(expression, lambda part: _shaped(part).node) if passing and not inside else None
    return Shaped(node if fits is None else guarded(fits, node), _reach(expression, arguments))


def _reach(call: Call, arguments: Sequence[Shaped]) -> Interval:
    """What the shape guarantees; nothing for a real that an argument of ±∞ or NaN may have made NaN."""
    reach = FUNCTIONS[call.function].interval(call, [argument.reach for argument in arguments]).rounded(call.type)
    if call.type == "integer":
        return Interval(max(reach.lower, LONGS.lower), min(reach.upper, LONGS.upper))
    reals = [shaped for shaped, given in zip(arguments, call.arguments, strict=True) if given.type == "real"]
    sound = call.function == "clamp" or all(within(shaped.reach, DOUBLES) for shaped in reals)
    return reach if sound else EVERYTHING


def _literal_range(literal: Literal) -> Interval:
    if literal.type in ("integer", "real") and isinstance(literal.value, int | Fraction):
        return Interval.exactly(literal.value).rounded(literal.type)
    return EVERYTHING


def _literal(literal: Literal) -> Node:
    value = literal.value
    if value is None:
        return typed(exp.Null(), literal.type)
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, Fraction):
        return number(value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, datetime.datetime):
        return typed(exp.Literal.string(value.isoformat(" ")), "timestamp")
    if isinstance(value, datetime.date):
        return typed(exp.Literal.string(value.isoformat()), "date")
    return typed(exp.Literal.number(value), "integer")

"""All functions of one row: building calls, their ranges, and their SQL.

`render` gives SQL that is total on any rows that `admit` let in: no value makes it fail, and what comes out is a value
of the expression's type or NULL. Reals that come out are finite and never −0; integers have 64 bits; decimals are whole
numbers of their units; dates lie in the years 1 to 9999.

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
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.sql.catalog import Type, is_number, nearest
from discreet.sql.decimals import DIGITS, Decimals
from discreet.sql.functions import decimal_arithmetic as units
from discreet.sql.functions.dates import TEMPORAL
from discreet.sql.functions.logical import CASTS, LOGICAL, WITH_DECIMALS, castable, finite, in_years
from discreet.sql.functions.numeric import NUMERIC
from discreet.sql.functions.ranges import DOUBLES, EVERYTHING, LONGS, Interval
from discreet.sql.functions.signature import (
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
from discreet.sql.functions.text import (
    PASSING,
    TEXTUAL,
    fitting,
    is_lost,
    is_slow,
    limits,
    measured,
    no_longer,
)
from discreet.sql.held_values import is_long, is_writable
from discreet.sql.plan import Call, Expression, Literal, Ref

__all__ = ["FUNCTIONS", "Mismatch", "admit", "call", "cast", "interval", "render", "weight"]

FUNCTIONS: dict[str, Function] = {function.name: function for function in (*NUMERIC, *LOGICAL, *TEXTUAL, *TEMPORAL)}
"""Every function by name."""
SLOW = 50
"""What a function weighs that may take as many steps as a hundred thousand others for one row."""
NO_COLUMNS: Mapping[str, int] = {}
TAKEN_APART = 5
"""DuckDB compares a value with each of so few literals by itself, and looks it up among more."""


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
    exact = expression.type == "integer" or isinstance(expression.type, Decimals)
    if isinstance(expression, Literal) and (exact or kind in MOMENTS):
        literal = converted(expression, kind)
        if literal is not None:
            return literal
        if expression.type == "text":
            raise Mismatch(repr(expression.value), f"it does not read as a {kind}", "write 'YYYY-MM-DD'")
    if not castable(expression.type, kind):
        possible = ", ".join(WITH_DECIMALS if isinstance(expression.type, Decimals) else CASTS[expression.type])
        raise Mismatch("CAST", f"{expression.type} has no meaning as {kind}", f"possible: {possible}")
    if expression.type == "text" and isinstance(kind, Decimals):
        return Call("cast", (Call("cast", (expression,), "real"),), kind)
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


def weight(expression: Expression, columns: Mapping[str, int] = NO_COLUMNS) -> int:
    """How large the expression is as SQL and as engines copy it, where columns are as large as is said."""
    return _weight(expression, columns, None, {})


def _weight(
    expression: Expression,
    columns: Mapping[str, int],
    inside: frozenset[Expression] | None,
    known: dict[tuple[int, frozenset[Expression] | None], tuple[Expression, int]],
) -> int:
    """`inside` a text that is measured as a whole, the parts of it that are measured. `known` are the parts that were
    weighed already: a part may be in sight many times over."""
    if isinstance(expression, Ref):
        return columns.get(expression.name, 1)
    if isinstance(expression, Literal):
        return 1
    place = id(expression), inside
    if place in known:
        return known[place][1]
    passing = expression.function in PASSING
    total = SLOW if is_slow(expression) else 1
    if passing and inside is None:
        inside = frozenset(measured(expression))
        total += sum(_weight(part, columns, None, known) for part in inside) if len(inside) > 1 else 0
    for count, argument in zip(_copies(expression), expression.arguments, strict=False):
        chained = passing and isinstance(argument, Call) and argument.function in PASSING
        guards = 2 if passing and inside is not None and argument in inside else 1
        total += count * guards * _weight(argument, columns, inside if chained else None, known)
    # Kept with the expression, so that no other one can have its number meanwhile.
    known[place] = expression, total
    return total


def _copies(call: Call) -> list[int]:
    """How often each argument stands in the SQL, or is computed: engines take some conditions apart."""
    copies: tuple[int, ...] = FUNCTIONS[call.function].copies
    source = call.arguments[0].type
    if is_slow(call) or call.function == "split_part":
        copies = (2,)
    elif call.function == "in":
        written = all(isinstance(choice, Literal) for choice in call.arguments[1:])
        copies = (min(len(call.arguments) - 1, TAKEN_APART) if written else len(call.arguments) - 1, 1)
    elif call.function == "cast" and source not in ("text", "real"):
        copies = (units.cast_copies(source, call.type),)
    elif isinstance(source, Decimals) and call.function in ("round", "floor", "ceil"):
        copies = (3,)
    elif isinstance(call.type, Decimals) and call.function in ("+", "-", "*") and call.type.precision == DIGITS:
        copies = (2,)
    return [*copies, *copies[-1:] * len(call.arguments)]


def _shaped(expression: Expression, limited: Mapping[Expression, int] | None = None) -> Shaped:
    """Inside a text that is measured as a whole, its parts are not measured again, but `limited`."""
    if isinstance(expression, Ref):
        plain = {"integer": LONGS, "real": DOUBLES}.get(expression.type, EVERYTHING)
        reach = _all_of(expression.type) if isinstance(expression.type, Decimals) else plain
        return Shaped(exp.column(expression.name, quoted=True), reach)
    if isinstance(expression, Literal):
        return Shaped(_literal(expression), _literal_range(expression))
    if expression.function not in PASSING:
        arguments = [_shaped(argument) for argument in expression.arguments]
        return Shaped(FUNCTIONS[expression.function].render(expression, arguments), _reach(expression, arguments))
    whole = limited is None
    if whole and is_lost(expression):
        return Shaped(_literal(Literal(None, "text")), EVERYTHING)
    limited = limits(expression) if limited is None else limited
    arguments = [_part(argument, limited) for argument in expression.arguments]
    node = FUNCTIONS[expression.function].render(expression, arguments)
    fits = fitting(expression, lambda part: _shaped(part).node) if whole else None
    return Shaped(node if fits is None else guarded(fits, node), _reach(expression, arguments))


def _part(expression: Expression, limited: Mapping[Expression, int]) -> Shaped:
    """A text that a longer one is made of."""
    if isinstance(expression, Call) and expression.function in PASSING:
        return _shaped(expression, limited)
    shaped = _shaped(expression)
    return Shaped(no_longer(shaped.node, limited[expression]), shaped.reach) if expression in limited else shaped


def _reach(call: Call, arguments: Sequence[Shaped]) -> Interval:
    """What the shape guarantees; nothing for a real that an argument of ±∞ or NaN may have made NaN."""
    reach = FUNCTIONS[call.function].interval(call, [argument.reach for argument in arguments]).rounded(call.type)
    if call.type == "integer" or isinstance(call.type, Decimals):
        most = _all_of(call.type) if isinstance(call.type, Decimals) else LONGS
        return Interval(max(reach.lower, most.lower), min(reach.upper, most.upper))
    reals = [shaped for shaped, given in zip(arguments, call.arguments, strict=True) if given.type == "real"]
    sound = call.function == "clamp" or all(within(shaped.reach, DOUBLES) for shaped in reals)
    return reach if sound else EVERYTHING


def _all_of(kind: Decimals) -> Interval:
    return Interval(-kind.most, kind.most)


def _is_held(literal: Literal) -> bool:
    value, kind = literal.value, literal.type
    if isinstance(value, str):
        return is_writable(value)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return not isinstance(value, float | Decimal) and getattr(value, "tzinfo", None) is None
    if isinstance(kind, Decimals):
        return kind.holds(value)
    return is_long(value) if kind == "integer" or isinstance(value, int) else abs(value) <= DOUBLES.upper


def _literal_range(literal: Literal) -> Interval:
    if is_number(literal.type) and isinstance(literal.value, int | Fraction):
        return Interval.exactly(literal.value).rounded(literal.type)
    return EVERYTHING


def _literal(literal: Literal) -> Node:
    """A constant. One that its type cannot hold fails only where a row gets to it, so none is ever written."""
    value = literal.value
    if not _is_held(literal):
        raise Unsupported(f"the {literal.type} {value!r:.100}", "its type cannot hold it", "write another value")
    if value is None:
        return typed(exp.Null(), literal.type)
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(literal.type, Decimals) and isinstance(value, int | Fraction):
        return units.literal(literal.type.units(value))
    if isinstance(value, Fraction):
        return number(value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, datetime.datetime):
        return typed(exp.Literal.string(value.isoformat(" ")), "timestamp")
    if isinstance(value, datetime.date):
        return typed(exp.Literal.string(value.isoformat()), "date")
    return typed(exp.Literal.number(value), "integer")

"""Functions of numbers.

Whole numbers have 64 bits: what does not fit is computed in 128 bits and becomes NULL. Decimals are exact and have 38
digits (`functions/decimal_arithmetic.py`). Reals are doubles; dividing by 0, the logarithm of what is not above 0 and
the root of what is below 0 are NULL. A real that overflows stays ±∞ inside its expression and becomes NULL where the
expression ends (`functions.render`).

>>> from discreet.sql.functions.registry import call, render
>>> from discreet.sql.plan import Ref
>>> render(call("-", Literal(1, "integer"), call("sign", Ref("x", "real")))).sql("duckdb")
'(CAST(1 AS BIGINT) - CAST(SIGN("x") AS BIGINT))'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.sql.catalog import is_number
from discreet.sql.decimals import DIGITS, Decimals
from discreet.sql.functions import decimal_arithmetic as units
from discreet.sql.functions.ranges import DOUBLES, Interval, hull, power
from discreet.sql.functions.signature import (
    NUMBERS,
    WIDE,
    Accepted,
    Function,
    Node,
    Shaped,
    binary,
    converted,
    decimals_of,
    each,
    guarded,
    invoked,
    is_null,
    number,
    try_cast,
    typed,
    unified,
    within,
)
from discreet.sql.plan import Call, Expression, Literal

__all__ = ["NUMERIC"]

Rule = Callable[[Interval, Interval], Interval]


def _numbers(arguments: Sequence[Expression]) -> Accepted | None:
    return unified(arguments, NUMBERS) if len(arguments) == 2 else None


def _reals(arguments: Sequence[Expression]) -> Accepted | None:
    brought = [converted(argument, "real") for argument in arguments]
    return (tuple(b for b in brought if b is not None), "real") if None not in brought and len(brought) == 2 else None


def _real(arguments: Sequence[Expression]) -> Accepted | None:
    brought = converted(arguments[0], "real") if len(arguments) == 1 else None
    return None if brought is None else ((brought,), "real")


def _added(arguments: Sequence[Expression]) -> Accepted | None:
    """Two numbers of one type; the sum of two decimals may have a digit more."""
    accepted = _numbers(arguments)
    if accepted is None or not isinstance(accepted[1], Decimals):
        return accepted
    return accepted[0], Decimals.of(accepted[1].precision + 1, accepted[1].scale)


def _multiplied(arguments: Sequence[Expression]) -> Accepted | None:
    """Two numbers; a product has the digits behind the point of both factors."""
    kinds = [argument.type for argument in arguments]
    exact = any(isinstance(kind, Decimals) for kind in kinds) and "real" not in kinds
    if len(kinds) != 2 or not exact or not all(map(is_number, kinds)) or any(map(is_null, arguments)):
        return _numbers(arguments)
    kind = decimals_of(arguments[0]).times(decimals_of(arguments[1]))
    return None if kind is None else (tuple(arguments), kind)


def _arithmetic(name: str, operator: type[exp.Binary], rule: Rule) -> Function:
    """+, − and ×: whole numbers in 128 bits unless the result must fit in 64."""

    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        left, right = arguments
        if isinstance(call.type, Decimals):
            sides = [units.in_units(side, of.type) for side, of in zip(arguments, call.arguments, strict=True)]
            return units.fitting(units.arithmetic(operator, rule, *sides), call.type.precision)
        if call.type == "real" or within(rule(left.reach, right.reach)):
            return binary(operator, left.node, right.node, call.type == "real")
        return try_cast(operator(this=typed(left.node, WIDE), expression=typed(right.node, WIDE)), "integer", "wide")

    takes = f"two numbers, with at most {DIGITS} digits behind the point together" if name == "*" else "two numbers"
    accepts = _multiplied if name == "*" else _added
    return Function(name, takes, accepts, render, lambda call, ranges: rule(*ranges))


def _nonzero(divisor: Shaped, zero: Node) -> Node:
    if divisor.reach.lower > 0 or divisor.reach.upper < 0:
        return divisor.node
    return exp.Nullif(this=divisor.node, expression=zero)


def _divided(call: Call, arguments: Sequence[Shaped]) -> Node:
    left, right = arguments
    return exp.Paren(
        this=exp.Div(this=left.node, expression=_nonzero(right, number(0)), typed=False, safe=False, real=True),
    )


def _quotient(call: Call, ranges: Sequence[Interval]) -> Interval:
    """Whole numbers are not nearer to 0 than 1, and dividing by 0 is NULL."""
    return ranges[0] / (ranges[1].without_zero() if is_whole(call.arguments[1]) else ranges[1])


def _whole_division(operator: type[exp.Binary]) -> Callable[[Call, Sequence[Shaped]], Node]:
    """Truncating division and its remainder; −2⁶³ by −1 does not fit in 64 bits."""

    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        left, right = arguments
        if isinstance(call.type, Decimals):
            return units.remainder(*(units.in_units(side, call.type) for side in arguments))
        if call.type == "real":
            return binary(operator, left.node, _nonzero(right, number(0)), real=True)
        if left.reach.lower > -(2**63) or right.reach.lower > -1 or right.reach.upper < -1:
            return binary(operator, left.node, _nonzero(right, exp.Literal.number(0)))
        wide = Shaped(typed(right.node, WIDE), right.reach)
        return try_cast(
            operator(this=typed(left.node, WIDE), expression=_nonzero(wide, exp.Literal.number(0))),
            "integer",
            "wide",
        )

    return render


def _negated(call: Call, arguments: Sequence[Shaped]) -> Node:
    (value,) = arguments
    if isinstance(call.type, Decimals):
        return units.negated(units.in_units(value, call.type))
    if call.type == "real":
        return binary(exp.Sub, number(0), value.node, real=True)
    zero = exp.Literal.number(0)
    if within(-value.reach):
        return binary(exp.Sub, typed(zero, "integer"), value.node)
    return try_cast(exp.Sub(this=typed(zero, WIDE), expression=typed(value.node, WIDE)), "integer", "wide")


def _absolute(call: Call, arguments: Sequence[Shaped]) -> Node:
    (value,) = arguments
    if isinstance(call.type, Decimals):
        return units.absolute(units.in_units(value, call.type)).node
    if call.type == "real" or within(value.reach.absolute()):
        return exp.Abs(this=value.node)
    return try_cast(exp.Abs(this=typed(value.node, WIDE)), "integer", "wide")


def _sign(call: Call, ranges: Sequence[Interval]) -> Interval:
    # NaN, which an overflow may leave inside an expression, has the sign 0.
    signs = ranges[0].through(lambda end: (end > 0) - (end < 0)).clamped(Fraction(-1), Fraction(1))
    return hull(signs, Interval.exactly(0))


def _rounding(name: str, shape: type[exp.Func], rule: Callable[[Fraction], int]) -> Function:
    """Whole numbers stay as they are; reals stay reals, and decimals have no digits behind the point then."""

    def accepts(arguments: Sequence[Expression]) -> Accepted | None:
        accepted = each(NUMBERS)(arguments)
        if accepted is None or not isinstance(accepted[1], Decimals):
            return accepted
        return accepted[0], accepted[1].rounded(0)

    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        value = arguments[0].node
        kind = call.arguments[0].type
        if isinstance(kind, Decimals):
            return units.rounded(units.in_units(arguments[0], kind), kind.scale, name).node
        rounded: Node = shape(this=value)
        return value if call.type == "integer" else rounded

    return Function(name, "a number", accepts, render, lambda call, ranges: ranges[0].through(rule))


def _half_away(value: Fraction) -> int:
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


def _root(call: Call, arguments: Sequence[Shaped]) -> Node:
    (value,) = arguments
    if value.reach.lower >= 0:
        return exp.Sqrt(this=value.node)
    return exp.Sqrt(this=guarded(exp.GTE(this=value.node, expression=number(0)), value.copy()))


def _logarithm(name: str, base: int | None) -> Function:
    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        (value,) = arguments
        above = value.node
        if value.reach.lower <= 0:
            above = guarded(exp.GT(this=value.node, expression=number(0)), value.copy())
        return invoked(name.upper(), above)

    return Function(name, "a number", _real, render, lambda call, ranges: ranges[0].logarithm(base), copies=(2,))


def _power(call: Call, arguments: Sequence[Shaped]) -> Node:
    """A base below 0 has powers only for exponents that are whole by their type; 0 only for those not below 0."""
    base, exponent = arguments
    literal = _literal(call.arguments[1])
    if literal is not None and literal.denominator == 1 and literal >= 0:
        return exp.Pow(this=base.node, expression=exponent.node)
    if is_whole(call.arguments[1]) or (literal is not None and literal.denominator == 1):
        defined: Node = exp.NEQ(this=base.copy(), expression=number(0))
        zero: Node = exp.GTE(this=exponent.copy(), expression=number(0))
    else:
        defined = exp.GT(this=base.copy(), expression=number(0))
        zero = exp.And(
            this=exp.EQ(this=base.copy(), expression=number(0)),
            expression=exp.GT(this=exponent.copy(), expression=number(0)),
        )
    return exp.Pow(this=guarded(exp.Or(this=defined, expression=zero), base.node), expression=exponent.node)


def _power_range(call: Call, ranges: Sequence[Interval]) -> Interval:
    base, exponent = ranges
    if base.lower < 0 and is_whole(call.arguments[1]) and exponent.lower != exponent.upper:
        size = power(base.absolute(), exponent)
        return Interval(-size.upper, size.upper)
    return power(base, exponent)


def is_whole(expression: Expression) -> bool:
    """Whether a real is a whole number by its type."""
    if not isinstance(expression, Call) or expression.function != "cast":
        return False
    return expression.arguments[0].type == "integer"


def _limits(arguments: Sequence[Expression]) -> Accepted | None:
    """A number between two literals in order."""
    accepted = unified(arguments, NUMBERS) if len(arguments) == 3 else None
    if accepted is None:
        return None
    ends = [_literal(argument) for argument in accepted[0][1:]]
    return accepted if None not in ends and ends == sorted(end for end in ends if end is not None) else None


def _literal(expression: Expression) -> Fraction | None:
    value = expression.value if isinstance(expression, Literal) else None
    return Fraction(value) if isinstance(value, int | Fraction) else None


def _clamped(call: Call, arguments: Sequence[Shaped]) -> Node:
    value, low, high = arguments
    branches = [
        exp.If(this=exp.LT(this=value.copy(), expression=low.node), true=low.copy()),
        exp.If(this=exp.GT(this=value.copy(), expression=high.node), true=high.copy()),
    ]
    if call.type == "real" and not within(value.reach, DOUBLES):
        branches.insert(0, exp.If(this=exp.IsNan(this=value.copy()), true=exp.Null()))
    return exp.Case(ifs=branches, default=value.node)


def _buckets(arguments: Sequence[Expression]) -> Accepted | None:
    accepted = _limits(arguments[:3]) if len(arguments) == 4 else None
    count = arguments[3].value if accepted is not None and isinstance(arguments[3], Literal) else None
    ends = None if accepted is None else [converted(argument, "real") for argument in accepted[0]]
    if ends is None or None in ends or not isinstance(count, int) or not 1 <= count <= 100_000 or ends[1] == ends[2]:
        return None
    return (*(end for end in ends if end is not None), arguments[3]), "integer"


def _bucket(call: Call, arguments: Sequence[Shaped]) -> Node:
    """0 below, n + 1 above, else one of n parts of equal width."""
    value, low, high, count = arguments
    low_end, high_end, many = (_literal(argument) or Fraction(0) for argument in call.arguments[1:])
    from_low = binary(exp.Sub, value.copy(), low.node, real=True)
    place = exp.Floor(this=binary(exp.Mul, from_low, number(many / (high_end - low_end)), real=True))
    inside = binary(exp.Add, try_cast(place, "integer", "real"), typed(exp.Literal.number(1), "integer"))
    last = typed(exp.Literal.number(int(many) + 1), "integer")
    branches = [
        exp.If(this=exp.LT(this=value.node, expression=low.copy()), true=typed(exp.Literal.number(0), "integer")),
        exp.If(this=exp.GTE(this=value.copy(), expression=high.node), true=last),
        # The product may round up to n just below the upper end.
        exp.If(this=exp.GTE(this=value.copy(), expression=low.copy()), true=_least_of(inside, count.node)),
    ]
    return exp.Case(ifs=branches)


def _least_of(left: Node, right: Node) -> Node:
    return exp.Least(this=left, expressions=[right], ignore_nulls=True)


NUMERIC = (
    _arithmetic("+", exp.Add, Interval.__add__),
    _arithmetic("-", exp.Sub, Interval.__sub__),
    _arithmetic("*", exp.Mul, Interval.__mul__),
    Function("/", "two numbers", _reals, _divided, _quotient, copies=(1, 2)),
    Function(
        "//",
        "two whole numbers",
        each(("integer",), ("integer",)),
        _whole_division(exp.IntDiv),
        lambda call, ranges: (ranges[0] / ranges[1].without_zero()).through(math.trunc),
        copies=(1, 2),
    ),
    Function(
        "%",
        "two numbers",
        _numbers,
        _whole_division(exp.Mod),
        lambda call, ranges: ranges[0].remainder(ranges[1], call.type),
        copies=(1, 2),
    ),
    Function("negate", "a number", each(NUMBERS), _negated, lambda call, ranges: -ranges[0]),
    Function("abs", "a number", each(NUMBERS), _absolute, lambda call, ranges: ranges[0].absolute()),
    Function(
        "sign",
        "a number",
        each(NUMBERS, gives="integer"),
        lambda call, arguments: typed(exp.Sign(this=arguments[0].node), "integer"),
        _sign,
    ),
    _rounding("round", exp.Round, _half_away),
    _rounding("floor", exp.Floor, math.floor),
    _rounding("ceil", exp.Ceil, math.ceil),
    _rounding("trunc", exp.Trunc, math.trunc),
    Function("sqrt", "a number", _real, _root, lambda call, ranges: ranges[0].root(), copies=(2,)),
    _logarithm("ln", None),
    _logarithm("log10", 10),
    _logarithm("log2", 2),
    Function(
        "exp",
        "a number",
        _real,
        lambda call, arguments: exp.Exp(this=arguments[0].node),
        lambda call, ranges: ranges[0].exponential(),
    ),
    Function("power", "two numbers", _reals, _power, _power_range, copies=(3, 2)),
    Function(
        "clamp",
        "a number and two literals in order, as in CLAMP(x, 0, 100)",
        _limits,
        _clamped,
        lambda call, ranges: ranges[0].clamped(ranges[1].lower, ranges[2].upper),
        copies=(4, 2),
    ),
    Function(
        "width_bucket",
        "a number, two literals in order and a number of buckets, as in WIDTH_BUCKET(x, 0, 100, 20)",
        _buckets,
        _bucket,
        lambda call, ranges: Interval(Fraction(0), ranges[3].upper + 1),
        copies=(4, 2),
    ),
)
"""Arithmetic, rounding, logarithms, clamping and buckets."""

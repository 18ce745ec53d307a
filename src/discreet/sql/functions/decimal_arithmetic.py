"""Arithmetic on decimals as whole numbers of their units.

A decimal is rendered as the whole number of units it is: 0.07 as a `decimal(15,2)` is 7. Here are the nodes for what is
done to such numbers. Ranges tell how many bits a result needs: 64, 128, or more than 38 digits, where engines are asked
to give NULL. No other code decides that, so no sum or product of decimals can fail on a row.

>>> from discreet.sql.plan import Ref
>>> from discreet.sql.functions.registry import call, render
>>> price = Ref("price", Decimals.of(15, 2))
>>> render(call("*", price, Ref("discount", Decimals.of(2, 2)))).sql("duckdb")
'("price" * "discount")'
>>> render(call("*", price, price)).sql("duckdb")
'(CAST("price" AS INT128) * CAST("price" AS INT128))'
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from discreet.sql.catalog import Type
from discreet.sql.decimals import DIGITS, LONG_DIGITS, WHOLE_DIGITS, Decimals
from discreet.sql.functions.ranges import LONGS, Interval
from discreet.sql.functions.signature import (
    WIDE,
    Node,
    Shaped,
    binary,
    guarded,
    invoked,
    number,
    try_cast,
    typed,
    within,
)

__all__ = [
    "absolute",
    "arithmetic",
    "as_real",
    "as_text",
    "cast_copies",
    "fitting",
    "from_real",
    "in_units",
    "literal",
    "negated",
    "remainder",
    "rescaled",
    "rounded",
    "sides",
]

HELD = Interval(Fraction(1 - 10**DIGITS), Fraction(10**DIGITS - 1))
"""Every whole number of 38 digits."""
ROOM = exp.DataType.build(f"DECIMAL({DIGITS}, 0)")
NEAR = Fraction(3 * 10**DIGITS, 2)
"""What doubles say is less has 128 bits, and what they say is not has more than 38 digits: they are off by far less."""
Rule = Callable[[Interval, Interval], Interval]


def in_units(value: Shaped, kind: Type) -> Shaped:
    """A decimal or whole number as the whole number that its SQL gives."""
    scale = kind.scale if isinstance(kind, Decimals) else 0
    return Shaped(value.node, value.reach * Interval.exactly(10**scale))


def literal(units: int) -> Node:
    """A whole number in the narrowest type that holds it."""
    return typed(exp.Literal.number(units), "integer" if -(2**63) <= units < 2**63 else WIDE)


def _wide(value: Shaped) -> Node:
    return typed(value.node, WIDE, "units")


def _narrow(value: Shaped) -> Node:
    """In 64 bits, whatever type was needed to find out that it fits: the quotient of others would have a fraction."""
    return value.node if isinstance(value.node, exp.Column) else typed(value.node, "integer")


def arithmetic(operator: type[exp.Binary], rule: Rule, left: Shaped, right: Shaped) -> Shaped:
    """A sum, difference or product of whole numbers, NULL where it has more than 38 digits.

    Doubles tell beforehand whether it has 128 bits. An engine that tried would, where it fails, begin again row by row,
    and as often as there are such results inside each other, twice as often each.
    """
    reach = rule(left.reach, right.reach)
    if all(within(part) for part in (reach, left.reach, right.reach)):
        return Shaped(binary(operator, left.node, right.node), reach)
    if within(reach, HELD):
        return Shaped(binary(operator, _wide(left), _wide(right)), reach)
    both = (("this", left), ("expression", right))
    near = operator(**{side: typed(value.copy(), "real", "units") for side, value in both})
    kept = guarded(exp.LT(this=exp.Abs(this=near), expression=number(NEAR)), left.node)
    result = operator(this=typed(kept, WIDE, "units"), expression=_wide(right))
    held = exp.TryCast(this=result, to=ROOM.copy(), safe=True)
    return Shaped(typed(held, WIDE, "digits"), Interval(max(reach.lower, HELD.lower), min(reach.upper, HELD.upper)))


def sides(node: Node) -> tuple[type[Node], Node, Node]:
    """The operator of arithmetic whose result may have more than 38 digits, and what it is applied to."""
    result = node.this
    kept = result.this.this
    return type(result), kept.args["ifs"][0].args["true"], result.expression.this


def negated(value: Shaped) -> Node:
    """0 less the value."""
    return arithmetic(exp.Sub, Interval.__sub__, Shaped(literal(0), Interval.exactly(0)), value).node


def absolute(value: Shaped) -> Shaped:
    """The value without its sign."""
    reach = value.reach.absolute()
    return Shaped(exp.Abs(this=value.node if within(reach) else _wide(value)), reach)


def remainder(left: Shaped, right: Shaped) -> Node:
    """What truncating division leaves, NULL where the divisor is 0."""
    zero = exp.Literal.number(0)
    if left.reach.lower > LONGS.lower and within(left.reach) and within(right.reach):
        return binary(exp.Mod, _narrow(left), exp.Nullif(this=_narrow(right), expression=zero))
    divisor = exp.Nullif(this=_wide(right), expression=zero)
    return binary(exp.Mod, _wide(left), divisor)


def _apart(value: Shaped, by: int) -> tuple[Shaped, Node]:
    """The quotient without its fraction, and what is left, by a power of ten."""
    reach = value.reach.through(lambda end: int(end / by))
    if by > HELD.upper:
        # No number is as large as the divisor, which engines could not hold.
        return Shaped(binary(exp.Sub, value.node, value.copy()), Interval.exactly(0)), value.copy()
    if within(value.reach) and by < 2**63:
        left, right = _narrow(value), literal(by)
    else:
        left, right = _wide(value), typed(exp.Literal.number(by), WIDE, "units")
    return Shaped(binary(exp.IntDiv, left, right), reach), binary(exp.Mod, left.copy(), right.copy())


def rounded(value: Shaped, places: int, way: str = "round") -> Shaped:
    """The value without its last `places` digits: to the nearest, halves away from 0 (`round`), down (`floor`), up
    (`ceil`) or towards 0 (`trunc`)."""
    if not places:
        return value
    by = 10**places
    whole, rest = _apart(value, by)
    if way == "trunc":
        return whole
    # What is left over is at least so much where the quotient is one more, or at most so little where it is one less.
    ends = {"round": (by // 2, -by // 2), "ceil": (1, None), "floor": (None, -1)}[way]
    tests = zip((exp.GTE, exp.LTE), ends, (1, -1), strict=True)
    arms = [
        exp.If(this=test(this=rest.copy(), expression=literal(end)), true=exp.Literal.number(step))
        for test, end, step in tests
        if end is not None
    ]
    moved = exp.Case(ifs=arms, default=exp.Literal.number(0))
    one = Interval(Fraction(-1), Fraction(1))
    return arithmetic(exp.Add, Interval.__add__, whole, Shaped(typed(moved, "integer"), one))


def rescaled(value: Shaped, scale: int, wanted: int) -> Shaped:
    """The number of units of another scale, to the nearest."""
    if wanted < scale:
        return rounded(value, scale - wanted)
    for part in _factors(wanted - scale):
        value = arithmetic(exp.Mul, Interval.__mul__, value, Shaped(literal(part), Interval.exactly(part)))
    return value


def _factors(places: int) -> list[int]:
    """Powers of ten that make up one that engines may not hold."""
    halves = (places // 2, places - places // 2) if places >= DIGITS else (places,)
    return [10**half for half in halves if half]


def fitting(value: Shaped, precision: int) -> Node:
    """The value, NULL where it has more digits than the precision says."""
    most = 10**precision - 1
    if within(value.reach, Interval(Fraction(-most), Fraction(most))):
        return value.node
    return guarded(exp.Between(this=value.copy(), low=literal(-most), high=literal(most)), value.node)


def cast_copies(source: Type, target: Type) -> int:
    """How often a cast from decimals, or from whole numbers to them, has what is cast."""
    digits, scale = (source.precision, source.scale) if isinstance(source, Decimals) else (WHOLE_DIGITS, 0)
    if isinstance(target, Decimals):
        wider = target.scale - scale
        moved = 3 if wider < 0 else 1 if digits + wider <= DIGITS else 2 ** len(_factors(wider))
        return moved * (1 if digits - scale < target.whole_digits else 3)
    if not isinstance(source, Decimals) or target == "real" or (target == "text" and not scale):
        return 1
    rounding = 3 if scale else 1
    return rounding if target == "text" or digits - scale < LONG_DIGITS else 3 * rounding


def as_real(value: Shaped, scale: int) -> Node:
    """The double nearest to the decimal; with more than 2^53 units, one beside it."""
    whole = typed(value.node, "real", "units")
    if not scale:
        return whole
    return exp.Paren(this=exp.Div(this=whole, expression=number(10**scale), typed=False, safe=False, real=True))


def from_real(value: Node, kind: Decimals) -> Node:
    """The units nearest to a double, NULL where they do not fit in 64 bits or have too many digits."""
    many = binary(exp.Mul, value, number(10**kind.scale), real=True) if kind.scale else value
    return fitting(Shaped(try_cast(exp.Round(this=many), "integer", "real"), LONGS), kind.precision)


def as_text(value: Shaped, scale: int) -> Node:
    """The decimal with all its digits behind the point, as in 0.50."""
    if not scale:
        return typed(value.node, "text")
    whole, rest = _apart(absolute(Shaped(value.copy(), value.reach)), 10**scale)
    sign = exp.Case(
        ifs=[exp.If(this=exp.LT(this=value.node, expression=literal(0)), true=exp.Literal.string("-"))],
        default=exp.Literal.string(""),
    )
    padded = exp.DPipe(this=exp.Literal.string("0" * scale), expression=typed(rest, "text"))
    behind = invoked("RIGHT", padded, exp.Literal.number(scale))
    parts = [sign, typed(whole.node, "text"), exp.Literal.string("."), behind]
    joined = parts[0]
    for part in parts[1:]:
        joined = exp.DPipe(this=joined, expression=part)
    return exp.Paren(this=joined)

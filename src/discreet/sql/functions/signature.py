"""What a function of SQL is to us: the arguments it takes, the type and range it gives, and how engines compute it.

One small record for each function (`Function`); the tables of records are in `functions/numeric.py`,
`functions/logical.py`, `functions/text.py` and `functions/dates.py`. A function sees one row and is total: whatever
its arguments hold, it gives a value of its type or NULL. Arguments are brought to the types a function works on by
casts that stand in the plan, so that a record handles few cases.

>>> from discreet.sql.plan import Ref
>>> unified([Literal(1, "integer"), Ref("x", "real")], NUMBERS)
((Literal(value=Fraction(1, 1), type='real'), Ref(name='x', type='real')), 'real')
>>> unified([Literal(1, "integer"), Ref("s", "text")], NUMBERS) is None
True
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Literal as OneOf

from sqlglot import exp

from discreet.sql.catalog import PlainType, Type, is_number
from discreet.sql.decimals import LONG_DIGITS, WHOLE_DIGITS, Decimals
from discreet.sql.functions.ranges import EVERYTHING, LONGS, Interval
from discreet.sql.plan import Call, Expression, Literal

__all__ = [
    "MOMENTS",
    "NUMBERS",
    "ORDERED",
    "Accepted",
    "Function",
    "Node",
    "Shaped",
    "Source",
    "binary",
    "converted",
    "decimals_of",
    "each",
    "guarded",
    "invoked",
    "is_among",
    "is_null",
    "number",
    "try_cast",
    "typed",
    "unified",
    "unknown",
    "within",
]

Node = exp.Expr
"""A piece of SQL."""
Accepted = tuple[tuple[Expression, ...], Type]
"""Arguments brought to the types the function works on, and the type of its result."""

NUMBERS: tuple[Type, ...] = ("integer", "real")
"""Where reals are among the types that a function takes, so are decimals (`is_among`)."""
MOMENTS: tuple[Type, ...] = ("date", "timestamp")
ORDERED: tuple[Type, ...] = (*NUMBERS, "text", *MOMENTS)


@dataclass(frozen=True)
class Shaped:
    """An argument as SQL, and the range its type and shape alone guarantee, whatever the data hold."""

    node: Node
    reach: Interval

    def copy(self) -> Node:
        """The SQL once more, for functions that use an argument twice."""
        return self.node.copy()


@dataclass(frozen=True)
class Function:
    """One function. `accepts` gives None for arguments it does not take; `copies` is how often SQL repeats each
    argument, the last number standing for the rest."""

    name: str
    takes: str
    accepts: Callable[[Sequence[Expression]], Accepted | None]
    render: Callable[[Call, Sequence[Shaped]], Node]
    interval: Callable[[Call, Sequence[Interval]], Interval]
    copies: tuple[int, ...] = (1,)


ENGINE_TYPES: dict[PlainType, exp.DType] = {
    "integer": exp.DType.BIGINT,
    "real": exp.DType.DOUBLE,
    "boolean": exp.DType.BOOLEAN,
    "text": exp.DType.TEXT,
    "date": exp.DType.DATE,
    "timestamp": exp.DType.TIMESTAMPNTZ,
}
WIDE = exp.DType.INT128
Source = OneOf["column", "text", "real", "wide", "digits", "units", "boolean"]
"""What is cast: a column as the engine has it, or a value of ours; `wide` is a whole number of 128 bits, `digits`
arithmetic on two of those whose result may have more than 38 digits, and `units` what a decimal is made of."""
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)


def typed(node: Node, kind: Type | exp.DType, source: Source | None = None) -> Node:
    """A cast that cannot fail; where engines differ in it, with what is cast."""
    marked = {} if source is None else {"source": source}
    return exp.Cast(this=node, to=exp.DataType(this=_engine_type(kind)), **marked)


def try_cast(node: Node, kind: Type | exp.DType, source: Source) -> Node:
    """A cast that gives NULL where it fails. Text that is cast reads as a value, but may lie outside the type."""
    return exp.TryCast(this=node, to=exp.DataType(this=_engine_type(kind)), safe=True, source=source)


def _engine_type(kind: Type | exp.DType) -> exp.DType:
    if isinstance(kind, Decimals):
        return ENGINE_TYPES["integer"] if kind.precision <= LONG_DIGITS else WIDE
    return kind if isinstance(kind, exp.DType) else ENGINE_TYPES[kind]


def number(value: Fraction | int) -> Node:
    """A literal double, written so that engines read it as one."""
    written = repr(float(value))
    return typed(exp.Literal.number(written if "e" in written else written + "e0"), "real")


def binary(operator: type[exp.Binary], left: Node, right: Node, real: bool = False) -> Node:
    """An operator in parentheses; arithmetic on reals is marked, for engines that fail where it overflows."""
    return exp.Paren(this=operator(this=left, expression=right, **({"real": True} if real else {})))


def invoked(name: str, *arguments: Node) -> Node:
    """A function called by the name all engines share."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def guarded(condition: Node, value: Node) -> Node:
    """The value where the condition is true, else NULL."""
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def within(reach: Interval, outer: Interval = LONGS) -> bool:
    """Whether no value can lie outside."""
    return outer.lower <= reach.lower and reach.upper <= outer.upper


def unknown(call: Call, arguments: Sequence[Interval]) -> Interval:
    """No range: of results that are not numbers."""
    return EVERYTHING


def is_null(expression: Expression) -> bool:
    """Whether this is the literal NULL."""
    return isinstance(expression, Literal) and expression.value is None


def unified(arguments: Sequence[Expression], kinds: Sequence[Type]) -> Accepted | None:
    """All arguments in the widest type among them, if they have one and it is among `kinds`."""
    known = {argument.type for argument in arguments if not is_null(argument)}
    if not known:
        known = {arguments[0].type if is_among(arguments[0].type, kinds) else kinds[0]}
    wanted = _widest(known, arguments)
    if wanted is None and len(known) == 2 and "text" in known:
        # A text literal next to a date is a date.
        (wanted,) = known - {"text"}
    if wanted is None or not is_among(wanted, kinds):
        return None
    brought = [converted(argument, wanted) for argument in arguments]
    return (tuple(b for b in brought if b is not None), wanted) if None not in brought else None


def is_among(kind: Type, kinds: Sequence[Type]) -> bool:
    """Whether a type is one of those listed; decimals are wherever reals are."""
    return kind in kinds or (isinstance(kind, Decimals) and "real" in kinds)


def _widest(kinds: set[Type], arguments: Sequence[Expression]) -> Type | None:
    if len(kinds) == 1:
        return next(iter(kinds))
    if all(map(is_number, kinds)):
        if "real" in kinds:
            return "real"
        exact = [decimals_of(argument) for argument in arguments if not is_null(argument)]
        return reduce(lambda one, other: one.widest(other), exact)
    return "timestamp" if kinds == set(MOMENTS) else None


def decimals_of(expression: Expression) -> Decimals:
    """The type of a decimal, or that of a whole number beside decimals."""
    if isinstance(expression.type, Decimals):
        return expression.type
    value = expression.value if isinstance(expression, Literal) else None
    narrow = Decimals.holding(Fraction(value)) if isinstance(value, int) else None
    return narrow or Decimals.of(WHOLE_DIGITS, 0)


def converted(expression: Expression, wanted: Type) -> Expression | None:
    """The expression in a wider type; text only if it is a literal that reads as a date; else None."""
    if expression.type == wanted:
        return expression
    if is_null(expression):
        return Literal(None, wanted)
    if isinstance(expression, Literal):
        return _converted_literal(expression, wanted)
    widens = (expression.type, wanted) in (("integer", "real"), ("date", "timestamp"))
    exact = isinstance(expression.type, Decimals) or (isinstance(wanted, Decimals) and expression.type == "integer")
    if widens or (exact and (isinstance(wanted, Decimals) or wanted == "real")):
        return Call("cast", (expression,), wanted)
    return None


def _converted_literal(literal: Literal, wanted: Type) -> Expression | None:
    value = literal.value
    if is_number(wanted) and wanted != "integer" and is_number(literal.type) and literal.type != wanted:
        return _converted_number(literal, wanted)
    if wanted == "timestamp" and literal.type == "date" and isinstance(value, datetime.date):
        return Literal(datetime.datetime(value.year, value.month, value.day), "timestamp")
    if wanted in MOMENTS and isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            return None
        if wanted == "timestamp":
            return Literal(moment, wanted)
        return Literal(moment.date(), wanted) if len(value) == len("2020-01-01") else None
    return None


def _converted_number(literal: Literal, wanted: Type) -> Expression | None:
    """A literal as a real, or as a decimal that holds it."""
    value = literal.value
    if not isinstance(value, int | Fraction) or (isinstance(wanted, Decimals) and literal.type == "real"):
        return None
    if isinstance(wanted, Decimals) and not wanted.holds(value):
        return None
    return Literal(Fraction(value), wanted)


def each(*kinds: Sequence[Type], gives: Type | None = None) -> Callable[[Sequence[Expression]], Accepted | None]:
    """Exactly these arguments, each of one of its own types; the result has the given type or that of the first."""

    def accepts(arguments: Sequence[Expression]) -> Accepted | None:
        if len(arguments) != len(kinds):
            return None
        single = [unified([argument], choice) for argument, choice in zip(arguments, kinds, strict=True)]
        brought = tuple(accepted[0][0] for accepted in single if accepted is not None)
        return (brought, gives or brought[0].type) if len(brought) == len(kinds) else None

    return accepts

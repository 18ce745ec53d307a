"""Expressions: from the parser's tree to ours, node by node.

Every node and every part of it is either understood or refused; nothing is passed on. What a column name means is asked
of `leaf`, which may also take any other node for itself (an aggregate, say).

>>> from discreet.sql.plan import Ref
>>> node = exp.maybe_parse("CASE WHEN age BETWEEN 18 AND 64 THEN 'adult' END", dialect="duckdb")
>>> column = lambda node: Ref(node.name, "integer") if isinstance(node, exp.Column) else None
>>> read(node, column).type
'text'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.sql.decimals import DIGITS, Decimals
from discreet.sql.functions.registry import Mismatch, call, cast, weight
from discreet.sql.functions.signature import MOMENTS
from discreet.sql.parsing.dates import DATED, compared, moved, named_part
from discreet.sql.parsing.names import (
    BINARY,
    COMPARISONS,
    NAMED,
    SEVERAL,
    TYPES,
    UNARY,
    only,
    refuse,
    shown,
    unknown,
)
from discreet.sql.plan import Expression, Literal

__all__ = ["HEAVIEST", "Leaf", "is_aggregate", "read", "whole_literal"]

Leaf = Callable[[exp.Expr], Expression | None]
Read = Callable[[exp.Expr], Expression]

DEEPEST = 50
HEAVIEST = 5_000
"""The weight of an expression as SQL (`functions.weight`)."""
LONGEST_LITERAL = 10_000
NULL = Literal(None, "integer")
AGGREGATES = {"mean", "iqr", "mad", "trimmed_mean", "trim_mean"}
"""Aggregates that the parser does not know."""
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?", re.ASCII)


def read(node: exp.Expr, leaf: Leaf) -> Expression:
    """The expression that a node means. Each node is read once, however often its parents ask for it: otherwise the
    time to read a question would double with each level of nesting."""
    return _read_once(node, leaf, 0, {})


def _read_once(node: exp.Expr, leaf: Leaf, depth: int, known: dict[int, Expression]) -> Expression:
    if id(node) not in known:
        known[id(node)] = _checked(node, leaf, depth, known)
    return known[id(node)]


def _checked(node: exp.Expr, leaf: Leaf, depth: int, known: dict[int, Expression]) -> Expression:
    if depth > DEEPEST:
        raise Unsupported("this expression", f"it is nested more than {DEEPEST} deep", "compute parts in a subquery")
    try:
        expression = leaf(node) or _read(node, lambda child: _read_once(child, leaf, depth + 1, known))
    except Mismatch as error:
        raise refuse(node, error.reason, error.remedy) from None
    if weight(expression) > HEAVIEST:
        raise Unsupported("this expression", "it is too large", "use its parts fewer times")
    return expression


def _read(node: exp.Expr, deeper: Read) -> Expression:
    kind = type(node)
    if kind in COMPARISONS and any(type(part) in COMPARISONS for part in (node.this, node.expression)):
        raise refuse(node, "comparisons do not chain", "join them by AND, or write parentheses")
    if kind in COMPARISONS and kind in BINARY and node.find(exp.Interval) is not None:
        difference = compared(node, BINARY[kind], deeper)
        if difference is not None:
            return difference
    if kind in BINARY:
        made = _folded if BINARY[kind] in EXACT else call
        return made(BINARY[kind], *(deeper(part) for part in only(node, "this", "expression")))
    if kind in UNARY:
        return call(UNARY[kind], *(deeper(part) for part in only(node, "this")))
    if kind in SEVERAL:
        only(node, "this", "expressions")
        return call(SEVERAL[kind], deeper(node.this), *(deeper(part) for part in node.expressions))
    reader = READERS.get(kind)
    expression = None if reader is None else reader(node, deeper)
    if expression is None:
        raise unknown(node)
    return expression


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate function, with whatever modifies it."""
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        return True
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)


def whole_literal(node: exp.Expr | None) -> int | None:
    """A whole number written out, such as a position."""
    if not isinstance(node, exp.Literal) or node.is_string or not _DIGITS.fullmatch(node.this):
        return None
    return int(node.this)


def _number(text: str, node: exp.Expr, sign: int = 1) -> Literal:
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > 400 or not (match[1] or match[2]):
        raise refuse(node, "it does not read as a number of usual size", "write it with fewer digits")
    if match[1] == text and -(2**63) <= sign * int(text) < 2**63:
        return Literal(sign * int(text), "integer")
    exponent = int(match[3] or 0)
    if abs(exponent) > 400 or float(text) == float("inf"):
        raise refuse(node, "it is too large or too small for a double", "write a number between 1e-300 and 1e300")
    digits = Fraction(int((match[1] or "") + (match[2] or "")), 10 ** len(match[2] or ""))
    # As in standard SQL, a number without an exponent is exact.
    exact = Decimals.holding(digits) if match[3] is None else None
    return Literal(sign * digits * Fraction(10) ** exponent, exact or "real")


def _literal(node: exp.Expr, deeper: Read) -> Expression:
    text = str(node.this)
    if not node.args.get("is_string"):
        return _number(text, node)
    if len(text) > LONGEST_LITERAL or "\0" in text:
        raise refuse(node, f"it is longer than {LONGEST_LITERAL} characters or holds a NUL", "write a shorter text")
    return Literal(text, "text")


def _negated(node: exp.Expr, deeper: Read) -> Expression:
    (inside,) = only(node, "this")
    if isinstance(inside, exp.Literal) and not inside.is_string:
        return _number(str(inside.this), inside, sign=-1)
    return _folded("negate", deeper(inside))


def _plus(node: exp.Expr, deeper: Read) -> Expression:
    return moved(node, deeper, 1) or _folded("+", *(deeper(part) for part in only(node, "this", "expression")))


def _minus(node: exp.Expr, deeper: Read) -> Expression:
    later = moved(node, deeper, -1)
    if later is not None:
        return later
    left, right = (deeper(part) for part in only(node, "this", "expression"))
    if left.type in MOMENTS and right.type in MOMENTS:
        if left.type != right.type or left.type == "timestamp":
            raise refuse(node, "timestamps do not differ by a number", "write DATE_DIFF('day', from, to)")
        return call("days", right, left)
    return _folded("-", left, right)


def _folded(name: str, *arguments: Expression) -> Expression:
    """The function, computed at once where its arguments are literals one of which is a decimal."""
    exact = [argument for argument in arguments if isinstance(argument, Literal) and argument.type != "real"]
    values = [literal.value for literal in exact if isinstance(literal.value, int | Fraction)]
    if len(values) == len(arguments) and any(isinstance(literal.type, Decimals) for literal in exact):
        result = EXACT[name](*map(Fraction, values))
        kind = Decimals.holding(result)
        if kind is not None:
            return Literal(result, kind)
    return call(name, *arguments)


EXACT: dict[str, Callable[..., Fraction]] = {
    "+": Fraction.__add__,
    "-": Fraction.__sub__,
    "*": Fraction.__mul__,
    "negate": Fraction.__neg__,
}


def _connected(name: str) -> Callable[[exp.Expr, Read], Expression]:
    def reader(node: exp.Expr, deeper: Read) -> Expression:
        only(node, "this", "expression")
        return call(name, *(deeper(part) for part in node.flatten(unnest=False)))

    return reader


def _is(node: exp.Expr, deeper: Read) -> Expression | None:
    value, other = only(node, "this", "expression")
    if isinstance(other, exp.Null):
        return call("is null", deeper(value))
    if isinstance(other, exp.Boolean):
        condition = deeper(value) if other.this else call("not", deeper(value))
        return call("coalesce", condition, Literal(False, "boolean"))
    return None


def _in(node: exp.Expr, deeper: Read) -> Expression | None:
    if any(node.args.get(name) for name in ("query", "field", "unnest")):
        return None
    only(node, "this", "expressions")
    return call("in", deeper(node.this), *(deeper(part) for part in node.expressions))


def _between(node: exp.Expr, deeper: Read) -> Expression:
    return call("between", *(deeper(part) for part in only(node, "this", "low", "high")))


def _like(node: exp.Expr, deeper: Read) -> Expression:
    text, pattern = (deeper(part) for part in only(node, "this", "expression", "negate"))
    if isinstance(node, exp.ILike):
        text, pattern = call("lower", text), call("lower", pattern)
    matched = call("like", text, pattern)
    return call("not", matched) if node.args.get("negate") else matched


def _case(node: exp.Expr, deeper: Read) -> Expression:
    only(node, "this", "ifs", "default")
    subject = deeper(node.this) if node.this else None
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        condition = deeper(branch.this)
        parts.append(condition if subject is None else call("=", subject, condition))
        parts.append(deeper(branch.args["true"]))
    default = node.args.get("default")
    return call("case", *parts, NULL if default is None else deeper(default))


def _if(node: exp.Expr, deeper: Read) -> Expression:
    parts = [deeper(part) for part in only(node, "this", "true", "false")]
    return call("case", *parts, *([NULL] if len(parts) == 2 else []))


def _round(node: exp.Expr, deeper: Read) -> Expression:
    value, *digits = (deeper(part) for part in only(node, "this", "decimals"))
    if not digits:
        return call("round", value)
    return _rounded(node, value, digits[0].value if isinstance(digits[0], Literal) else None)


def _rounded(node: exp.Expr, value: Expression, places: object) -> Expression:
    if not isinstance(places, int) or abs(places) > 15 or (value.type == "integer" and places < 0):
        raise refuse(node, "digits are a literal up to 15, from 0 for whole numbers", "write ROUND(x / 100) * 100")
    if value.type == "integer" or places == 0:
        return call("round", value)
    if isinstance(value.type, Decimals):
        return _rounded_decimal(value, value.type, places)
    scale = Literal(Fraction(10 ** abs(places)), "real")
    there, back = ("*", "/") if places > 0 else ("/", "*")
    return call(back, call("round", call(there, value, scale)), scale)


def _rounded_decimal(value: Expression, kind: Decimals, places: int) -> Expression:
    """A decimal with fewer digits behind the point, or with zeros before it."""
    if places > 0:
        return value if places >= kind.scale else cast(value, kind.rounded(places))
    part, whole = (Literal(number, Decimals.holding(number) or kind) for number in _powers(-places))
    return call("*", call("round", call("*", value, part)), whole)


def _powers(places: int) -> tuple[Fraction, Fraction]:
    return Fraction(1, 10**places), Fraction(10**places)


def _log(node: exp.Expr, deeper: Read) -> Expression:
    parts = only(node, "this", "expression")
    if len(parts) == 1:
        return call("log10", deeper(parts[0]))
    base = whole_literal(parts[0])
    if base not in (2, 10):
        raise refuse(node, "the base is 2 or 10", "write LN(x) / LN(base)")
    return call(f"log{base}", deeper(parts[1]))


def _cast(node: exp.Expr, deeper: Read) -> Expression:
    value, target = only(node, "this", "to")
    kind = target.this if isinstance(target, exp.DataType) else None
    if kind == exp.DType.DECIMAL and 1 <= len(target.expressions) <= 2:
        digits = [whole_literal(part.this) for part in target.expressions]
        decimals = Decimals.named(f"decimal({digits[0]},{digits[1] if len(digits) == 2 else 0})")
        if decimals is None:
            remedy = "write DECIMAL(15, 2), or CAST to DOUBLE"
            raise refuse(node, f"a decimal has 1 to {DIGITS} digits, at most all of them behind the point", remedy)
        return cast(deeper(value), decimals)
    if kind == exp.DType.TIME:
        raise refuse(node, "times of day are not one of our types", "compare HOUR(x) and MINUTE(x)")
    if kind not in TYPES or target.expressions:
        remedy = "CAST to BIGINT, DOUBLE, BOOLEAN, VARCHAR, DATE or TIMESTAMP; round with ROUND(x, digits)"
        raise refuse(node, f"{shown(target)} is not one of our types", remedy)
    return cast(deeper(value), TYPES[kind])


def _trim(node: exp.Expr, deeper: Read) -> Expression:
    only(node, "this", "position")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "trim")
    return call(name, deeper(node.this))


def _substring(node: exp.Expr, deeper: Read) -> Expression:
    parts = [deeper(part) for part in only(node, "this", "start", "length")]
    return call("skip" if len(parts) == 2 else "substring", *parts)


def _concat(node: exp.Expr, deeper: Read) -> Expression | None:
    """CONCAT leaves NULLs out."""
    only(node, "expressions")
    parts = [call("coalesce", deeper(part), Literal("", "text")) for part in node.expressions]
    if not parts:
        return None
    joined: Expression = parts[0]
    for part in parts[1:]:
        joined = call("concat", joined, part)
    return joined


def _anonymous(node: exp.Expr, deeper: Read) -> Expression | None:
    name = node.name.lower()
    if name in ("date_part", "datepart") and len(node.expressions) == 2:
        return named_part(node, node.expressions[0].name, deeper(node.expressions[1]))
    return call(NAMED[name], *(deeper(part) for part in node.expressions)) if name in NAMED else None


READERS: dict[type[exp.Expr], Callable[[exp.Expr, Read], Expression | None]] = {
    exp.Paren: lambda node, deeper: deeper(only(node, "this")[0]),
    exp.Literal: _literal,
    exp.Boolean: lambda node, deeper: Literal(bool(node.this), "boolean"),
    exp.Null: lambda node, deeper: NULL,
    exp.Neg: _negated,
    exp.Add: _plus,
    exp.Sub: _minus,
    exp.And: _connected("and"),
    exp.Or: _connected("or"),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Case: _case,
    exp.If: _if,
    exp.Round: _round,
    exp.Log: _log,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **DATED,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Concat: _concat,
    exp.SplitPart: lambda node, deeper: call(
        "split_part", *(deeper(part) for part in only(node, "this", "delimiter", "part_index"))
    ),
    exp.Replace: lambda node, deeper: call(
        "replace", *(deeper(part) for part in only(node, "this", "expression", "replacement"))
    ),
    exp.WidthBucket: lambda node, deeper: call(
        "width_bucket", *(deeper(part) for part in only(node, "this", "min_value", "max_value", "num_buckets"))
    ),
    exp.Anonymous: _anonymous,
}

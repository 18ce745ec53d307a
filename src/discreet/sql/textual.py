"""Functions of text, by code points.

Positions and lengths are literals that are not negative, where engines agree. Only joining and replacing make text
longer; `growth` says by how much, so that no query can ask for far more memory than the data it reads.

>>> from discreet.sql.functions import call, render
>>> from discreet.sql.plan import Ref
>>> render(call("left", Ref("city", "text"), Literal(3, "integer"))).sql("duckdb")
'LEFT("city", 3)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.sql.catalog import Type
from discreet.sql.intervals import Interval
from discreet.sql.plan import Call, Expression, Literal, Ref
from discreet.sql.signature import Accepted, Function, Node, Shaped, binary, each, invoked, typed, unified, unknown

__all__ = ["TEXTUAL", "growth"]

TEXT: tuple[Type, ...] = ("text",)
LONGEST = 1_000_000
UNIT = 1_000
"""Characters of a literal that count like one column in `growth`."""


def _one(name: str) -> Function:
    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        return invoked(name.upper(), arguments[0].node)

    return Function(name, "text", each(TEXT), render, unknown)


def _places(count: int, least: int) -> Callable[[Sequence[Expression]], Accepted | None]:
    """Text and `count` literal whole numbers, the first at least `least`, the others at least 0."""

    def accepts(arguments: Sequence[Expression]) -> Accepted | None:
        text = unified(arguments[:1], TEXT)
        places = [_place(argument) for argument in arguments[1:]]
        if text is None or len(places) != count or any(place is None or place > LONGEST for place in places):
            return None
        floors = [least, *([0] * (count - 1))]
        fit = all(place is not None and place >= floor for place, floor in zip(places, floors, strict=True))
        return ((*text[0], *arguments[1:]), "text") if fit else None

    return accepts


def _place(expression: Expression) -> int | None:
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _cut(name: str) -> Callable[[Call, Sequence[Shaped]], Node]:
    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        places = [exp.Literal.number(_place(argument) or 0) for argument in call.arguments[1:]]
        return invoked(name, arguments[0].node, *places)

    return render


def _literals_after_text(arguments: Sequence[Expression]) -> Accepted | None:
    """Text, a literal that is not empty, and a literal."""
    accepted = unified(arguments, TEXT) if len(arguments) == 3 else None
    if accepted is None:
        return None
    found, put = (argument.value if isinstance(argument, Literal) else None for argument in accepted[0][1:])
    return accepted if isinstance(found, str) and found and isinstance(put, str) else None


def _separated(arguments: Sequence[Expression]) -> Accepted | None:
    """Text, a literal that is not empty, and a literal place from 1."""
    accepted = unified(arguments[:2], TEXT) if len(arguments) == 3 else None
    if accepted is None:
        return None
    separator = accepted[0][1].value if isinstance(accepted[0][1], Literal) else None
    place = _place(arguments[2])
    fit = isinstance(separator, str) and separator and place is not None and 1 <= place <= LONGEST
    return ((*accepted[0], arguments[2]), "text") if fit else None


def _pattern(arguments: Sequence[Expression]) -> Accepted | None:
    """Text and a literal pattern; a backslash escapes on some engines and not on others, so it is left out."""
    accepted = unified(arguments, TEXT) if len(arguments) == 2 else None
    pattern = accepted[0][1] if accepted is not None else None
    if isinstance(pattern, Call) and pattern.function == "lower":
        (pattern,) = pattern.arguments
    value = pattern.value if isinstance(pattern, Literal) else None
    return (accepted[0], "boolean") if accepted is not None and isinstance(value, str) and "\\" not in value else None


def _matched(name: str) -> Function:
    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        return invoked(name.upper(), arguments[0].node, arguments[1].node)

    return Function(name, "two texts", each(TEXT, TEXT, gives="boolean"), render, unknown)


TEXTUAL = (
    _one("lower"),
    _one("upper"),
    _one("trim"),
    _one("ltrim"),
    _one("rtrim"),
    Function(
        "length",
        "text",
        each(TEXT, gives="integer"),
        lambda call, arguments: typed(exp.Length(this=arguments[0].node), "integer"),
        lambda call, ranges: Interval(lower=Fraction(0)),
    ),
    Function(
        "concat",
        "texts",
        lambda arguments: unified(arguments, TEXT) if len(arguments) == 2 else None,
        lambda call, arguments: binary(exp.DPipe, arguments[0].node, arguments[1].node),
        unknown,
    ),
    Function("left", "text and a literal length from 0", _places(1, 0), _cut("LEFT"), unknown),
    Function("right", "text and a literal length from 0", _places(1, 0), _cut("RIGHT"), unknown),
    Function("skip", "text and a literal position from 1", _places(1, 1), _cut("SUBSTRING"), unknown),
    Function(
        "substring",
        "text, a literal position from 1 and a literal length from 0",
        _places(2, 1),
        _cut("SUBSTRING"),
        unknown,
    ),
    Function(
        "replace",
        "text and two literals, the first not empty",
        _literals_after_text,
        lambda call, arguments: invoked("REPLACE", *(argument.node for argument in arguments)),
        unknown,
    ),
    Function(
        "split_part",
        "text, a literal that is not empty and a literal place from 1",
        _separated,
        lambda call, arguments: invoked(
            "SPLIT_PART", arguments[0].node, arguments[1].node, exp.Literal.number(_place(call.arguments[2]) or 1)
        ),
        unknown,
    ),
    Function(
        "like",
        "text and a literal pattern without backslashes",
        _pattern,
        lambda call, arguments: binary(exp.Like, arguments[0].node, arguments[1].node),
        unknown,
    ),
    _matched("starts_with"),
    _matched("ends_with"),
    _matched("contains"),
)
"""Text in, text or conditions out."""


def growth(expression: Expression, columns: Mapping[str, int]) -> int:
    """How many times longer than the longest text below the longest text inside the expression can be."""
    if isinstance(expression, Ref):
        return columns.get(expression.name, 1)
    if isinstance(expression, Literal):
        return 1 + len(expression.value) // UNIT if isinstance(expression.value, str) else 1
    parts = [growth(argument, columns) for argument in expression.arguments]
    if expression.function == "concat":
        return sum(parts)
    if expression.function == "replace":
        found, put = (str(a.value) for a in expression.arguments[1:] if isinstance(a, Literal))
        return parts[0] * max(1, -(-len(put) // len(found)))
    return max(parts)

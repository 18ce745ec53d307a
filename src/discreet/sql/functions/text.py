"""Functions of text, by code points.

Positions and lengths are literals that are not negative, where engines agree. Only joining and replacing make text
longer; `growth` says by how much, so that no query can ask for far more memory than the data it reads.

No value may decide whether an engine has memory and time enough. So a text that is made longer is NULL where it could
have more than `MOST` characters, given the lengths of the texts it is made of; the engine then does not make it. And
where one text is looked for in another (LIKE, CONTAINS, REPLACE, SPLIT_PART), engines may compare it at every place: as
many characters as the product of both lengths. Where that could be more than `TRIES`, the result is NULL; and it is
where a text of more than `MOST_SPLIT` characters would be split.

>>> from discreet.sql.functions.registry import call, render
>>> from discreet.sql.plan import Ref
>>> render(call("left", Ref("city", "text"), Literal(3, "integer"))).sql("duckdb")
'LEFT("city", 3)'
>>> render(call("concat", Ref("city", "text"), Ref("city", "text"))).sql("duckdb")
'(CASE WHEN LENGTH("city") <= 50000 THEN LEFT("city", 50000) END || CASE WHEN LENGTH("city") <= 50000 THEN LEFT...'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import inf

from sqlglot import exp

from discreet.sql.catalog import Type
from discreet.sql.functions.ranges import Interval
from discreet.sql.functions.signature import (
    Accepted,
    Function,
    Node,
    Shaped,
    binary,
    each,
    guarded,
    invoked,
    typed,
    unified,
    unknown,
)
from discreet.sql.plan import Call, Expression, Literal, Ref

__all__ = ["PASSING", "SEARCHES", "TEXTUAL", "fitting", "growth", "is_lost", "is_slow", "limits", "measured"]
__all__ += ["no_longer"]

TEXT: tuple[Type, ...] = ("text",)
LONGEST = 1_000_000
UNIT = 1_000
"""Characters of a literal that count like one column in `growth`."""
MOST = 100_000
"""Characters of the longest text that joining and replacing make: a block of 2,048 such rows still fits in memory."""
PASSING = ("concat", "replace", "lower", "upper", "trim", "ltrim", "rtrim", "skip", "split_part")
"""Functions whose text has no more characters than their texts have, but for what joining and replacing add."""
SEARCHES = ("like", "contains", "replace", "split_part")
"""Functions that look for one text in another."""
WRITTEN = 40
"""No number, date or condition is longer as text."""
TRIES = 10_000_000
"""Comparisons of characters that looking for a text in another may take for one row."""
MOST_SPLIT = 1_000_000
"""Characters of a text that is split: engines make a list of all its parts, each of which takes some 45 bytes."""
SHORT = 64
"""Characters of what is looked for without a limit on the text: that takes so many times as long as reading it."""


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


def _like(call: Call, arguments: Sequence[Shaped]) -> Node:
    return binary(exp.Like, _searched(call, arguments), arguments[1].node)


def is_slow(call: Call) -> bool:
    """Whether a function may take as many comparisons as `TRIES` for one row."""
    if call.function not in SEARCHES:
        return False
    sought = _sought(call)
    if sought is None:
        return True
    # A pattern with both % and _ is tried at every place; engines look for other texts by faster ways, if not always.
    return len(sought) > SHORT or (call.function == "like" and {"%", "_"} <= {*sought})


def _sought(call: Call) -> str | None:
    """What a function looks for in a text, if it is written in the question."""
    sought = call.arguments[1]
    while isinstance(sought, Call) and sought.function == "lower":
        (sought,) = sought.arguments
    return str(sought.value) if isinstance(sought, Literal) else None


def _searched(call: Call, arguments: Sequence[Shaped]) -> Node:
    """The text in which something is looked for; NULL where that could take more than `TRIES` comparisons."""
    text, sought = arguments[0].node, _sought(call)
    limits = [MOST_SPLIT] if call.function == "split_part" else []
    if is_slow(call) and sought is not None:
        limits.append(TRIES // max(1, len(sought)))
    if limits or not is_slow(call):
        return no_longer(text, min(limits)) if limits else text
    lengths = [typed(exp.Length(this=argument.node.copy()), "integer") for argument in arguments]
    product = binary(exp.Mul, lengths[0], lengths[1])
    return guarded(exp.LTE(this=product, expression=exp.Literal.number(TRIES)), text)


def _matched(name: str) -> Function:
    def render(call: Call, arguments: Sequence[Shaped]) -> Node:
        return invoked(name.upper(), _searched(call, arguments), arguments[1].node)

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
        lambda call, arguments: invoked("REPLACE", _searched(call, arguments), *(a.node for a in arguments[1:])),
        unknown,
    ),
    Function(
        "split_part",
        "text, a literal that is not empty and a literal place from 1",
        _separated,
        lambda call, arguments: invoked(
            "SPLIT_PART",
            _searched(call, arguments),
            arguments[1].node,
            exp.Literal.number(_place(call.arguments[2]) or 1),
        ),
        unknown,
    ),
    Function(
        "like",
        "text and a literal pattern without backslashes",
        _pattern,
        _like,
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
    return parts[0] * _stretch(expression) if expression.function == "replace" else max(parts)


def fitting(expression: Expression, render: Callable[[Expression], Node]) -> Node | None:
    """The condition that a text cannot have more than `MOST` characters; None if the `limits` see to that."""
    counts = _parts(expression)
    parts = measured(expression)
    if len(parts) < 2:
        return None
    total: Node = exp.Literal.number(0)
    for part in parts:
        # Lengths of 32 bits, as some engines have them, would overflow.
        length = typed(exp.Length(this=render(part)), "integer")
        total = exp.Add(this=total, expression=_times(length, counts[part]))
    return exp.LTE(this=total, expression=exp.Literal.number(_room(expression)))


def limits(expression: Expression) -> dict[Expression, int]:
    """Of the texts that are `measured`, how many characters each may have at most, whatever the others have."""
    counts, parts = _parts(expression), measured(expression)
    room = _room(expression) if parts else 0
    return {part: room // counts[part] for part in parts}


def is_lost(expression: Expression) -> bool:
    """Whether what is written in an expression alone could have more than `MOST` characters: then it is NULL."""
    return _is_open(expression) and _room(expression) < 0


def _room(expression: Expression) -> int:
    """Characters that what is written in an open expression leaves to the texts that are `measured`."""
    written = {part: count for part, count in _parts(expression).items() if isinstance(part, Literal)}
    return MOST - sum(count * int(_most(part)) for part, count in written.items())


def no_longer(text: Node, most: int) -> Node:
    """The text, NULL where it has more characters.

    It is what a function is given that is guarded, not what the function makes, and it is cut as well: DuckDB computes
    functions that cannot fail for every word of a dictionary, whichever of them rows have and arms of a CASE take.
    """
    fits = exp.LTE(this=exp.Length(this=text.copy()), expression=exp.Literal.number(most))
    return guarded(fits, invoked("LEFT", text, exp.Literal.number(most)))


def measured(expression: Expression) -> tuple[Expression, ...]:
    """The texts whose lengths decide whether an expression, made of them by `PASSING` functions, is NULL."""
    return tuple(part for part in _parts(expression) if not isinstance(part, Literal)) if _is_open(expression) else ()


def _is_open(expression: Expression) -> bool:
    """Whether an expression makes texts longer, beyond what is known to be short."""
    return sum(_parts(expression).values()) > 1 and _most(expression) > MOST


def _parts(expression: Expression) -> dict[Expression, int]:
    """The texts an expression is made of, and how many characters each of theirs may become."""
    if not isinstance(expression, Call) or expression.function not in PASSING:
        return {expression: 1}
    if expression.function == "concat":
        both = [_parts(argument) for argument in expression.arguments]
        return {part: sum(counts.get(part, 0) for counts in both) for counts in both for part in counts}
    times = _stretch(expression)
    # Beyond the limit all counts are alike: no text but the empty one fits.
    return {part: min(count * times, MOST + 1) for part, count in _parts(expression.arguments[0]).items()}


def _stretch(call: Call) -> int:
    if call.function != "replace":
        return 1
    found, put = (str(argument.value) for argument in call.arguments[1:] if isinstance(argument, Literal))
    return max(1, -(-len(put) // len(found)))


def _most(expression: Expression) -> float:
    """The most characters that a text can have, whatever the data hold."""
    if isinstance(expression, Literal):
        return len(expression.value) if isinstance(expression.value, str) else 0
    if isinstance(expression, Ref):
        return inf
    if expression.function in PASSING:
        return sum(count * _most(part) for part, count in _parts(expression).items())
    if expression.function == "cast":
        return WRITTEN
    longest = max((_most(argument) for argument in expression.arguments if argument.type == "text"), default=inf)
    if expression.function in ("left", "right", "substring"):
        return min(longest, _place(expression.arguments[-1]) or 0)
    return longest


def _times(node: Node, count: int) -> Node:
    return node if count == 1 else exp.Mul(this=node, expression=exp.Literal.number(count))

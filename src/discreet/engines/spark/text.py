"""Texts on Spark: literals, letters, blanks and patterns, the same as on DuckDB.

What a literal in quotes means, and whether `${…}` in it is replaced, depends on settings of the session: all but the
plainest are written as bytes. Patterns become regular expressions of Java that never go back over what they passed, so
that no text takes long; `$` would also match before a line's end, so \\z stands there.

>>> literal("Oslo"), literal("it's")
("'Oslo'", "CAST(X'69742773' AS STRING)")
>>> like("`s`", "a%")
"STARTSWITH(`s`, 'a')"
>>> expression("a%b_%c")
'(?s)\\\\Aa(?>.*?b.).*c\\\\z'
"""

from __future__ import annotations

from discreet.core.errors import Unsupported
from discreet.engines.case_folding import BLANKS, pairs
from discreet.sql.functions.logical import READABLE

__all__ = ["expression", "like", "literal", "matching", "trimmed", "turned"]

SPECIAL = {"'", '"', "\\", "$"}
JAVA = {
    READABLE["integer"]: r"\A *+[+-]?[0-9]++ *+\z",
    READABLE["real"]: r"\A *+[+-]?(?>[0-9]++[.]?[0-9]*+|[.][0-9]++)(?>[eE][+-]?[0-9]{1,3}+)?+ *+\z",
    READABLE["date"]: r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z",
    READABLE["timestamp"]: (
        r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?)?\z"
    ),
}
"""Text that reads as a value, for Java."""


def literal(value: str) -> str:
    """A text, whatever the session makes of quotes and backslashes."""
    if value.isprintable() and not SPECIAL & {*value}:
        return f"'{value}'"
    try:
        written = value.encode()
    except UnicodeEncodeError:
        written = None
    if written is None:
        raise Unsupported("this text", "it has characters that Spark does not hold", "write it without them")
    return f"CAST(X'{written.hex().upper()}' AS STRING)"


def turned(function: str, value: str) -> str:
    """LOWER or UPPER."""
    before, after = map(literal, pairs(function))
    return f"TRANSLATE({value}, {before}, {after})"


def trimmed(side: str, value: str) -> str:
    """A text without blanks at its ends: BOTH, LEADING or TRAILING."""
    return f"TRIM({side} {literal(BLANKS)} FROM {value})"


def matching(value: str, pattern: str) -> str:
    """Whether a text reads as a value."""
    return f"({value} RLIKE {literal(JAVA[pattern])})"


def like(value: str, pattern: str) -> str:
    """Whether a text is like a pattern, in which % stands for any characters and _ for one."""
    parts = pattern.split("%")
    if "_" not in pattern and len(parts) <= 3:
        match parts:
            case [whole]:
                return f"({value} = {literal(whole)})"
            case [start, ""] | [start, "", ""]:
                return f"STARTSWITH({value}, {literal(start)})"
            case ["", end] | ["", "", end]:
                return f"ENDSWITH({value}, {literal(end)})"
            case ["", part, ""]:
                return f"CONTAINS({value}, {literal(part)})"
    return f"({value} RLIKE {literal(expression(pattern))})"


def expression(pattern: str) -> str:
    """A pattern as a regular expression: each part between two % is found where it first stands, and that is kept."""
    first, *others = ["".join("." if c == "_" else _quoted(c) for c in part) for part in pattern.split("%")]
    if not others:
        return rf"(?s)\A{first}\z"
    *middle, last = others
    found = "".join(f"(?>.*?{part})" for part in middle if part)
    return rf"(?s)\A{first}{found}" + (rf".*{last}\z" if last else "")


def _quoted(character: str) -> str:
    plain = character.isascii() and character.isalnum()
    return character if plain else rf"\x{{{ord(character):x}}}"

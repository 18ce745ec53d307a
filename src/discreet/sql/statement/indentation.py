"""A statement for people: one clause a line, indented, and the same statement still.

Only the white space between its tokens changes, on every engine. (To print the tree that sqlglot reads from it would
write functions and literals anew, which some engines read otherwise.) Lines are broken where a clause begins, after
commas and within parentheses and CASE, if what stands there is long.

>>> print(indented("WITH r AS (SELECT u, COUNT(*) AS n FROM t GROUP BY u) SELECT SUM(n) FROM r", "duckdb"))
WITH r AS (
  SELECT u, COUNT(*) AS n
  FROM t
  GROUP BY u
)
SELECT SUM(n)
FROM r
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

__all__ = ["indented"]

WIDTH = 100
"""Characters of a line that is not broken."""
STEP = 2
CLAUSES = frozenset(
    ("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "WINDOW", "ORDER BY", "OFFSET", "DISTRIBUTE BY", "UNION", "JOIN")
)
SIDES = ("INNER", "LEFT")
"""What may stand before JOIN."""
QUOTED = (TokenType.IDENTIFIER, TokenType.STRING)


@dataclass(frozen=True)
class _Piece:
    """A part of the statement: one token, or what stands between parentheses or in a CASE, with these."""

    word: str
    """The token in capitals; empty if it is quoted, or of several."""
    text: str
    spaced: bool
    """Whether there is white space before it."""
    inside: tuple[_Piece, ...] = ()

    @property
    def is_query(self) -> bool:
        """Whether it is a query in parentheses."""
        return len(self.inside) > 2 and self.inside[1].word in ("SELECT", "WITH")

    @property
    def has_query(self) -> bool:
        """Whether a query is in it."""
        return self.is_query or any(piece.has_query for piece in self.inside)


Pieces = Sequence[_Piece]


def indented(statement: str, dialect: str) -> str:
    """The statement in lines; as it is, if sqlglot does not know where its tokens end."""
    try:
        said = _query(_pieces(statement, _tokens(statement, dialect)), 0)
    except (SqlglotError, ValueError, RecursionError):
        return statement
    return said if _dense(said) == _dense(statement) else statement


def _dense(statement: str) -> str:
    return "".join(statement.split())


def _tokens(statement: str, dialect: str) -> list[Token]:
    """What sqlglot takes for tokens. Of a number with letters after it, as 1L, it makes several at one place."""
    found: list[Token] = []
    for token in Dialect.get_or_raise(dialect).tokenize(statement):
        if not found or token.start > found[-1].end:
            found.append(token)
    if any(statement[one.end + 1 : other.start].strip() for one, other in pairwise(found)):
        raise ValueError("something between tokens")
    return found


def _pieces(statement: str, tokens: Sequence[Token]) -> Pieces:
    """The tokens, those in parentheses and in CASEs together."""
    opened: list[list[_Piece]] = [[]]
    starts: list[int] = []
    for token in tokens:
        word = "" if token.token_type in QUOTED else token.text.upper()
        spaced = token.start > 0 and statement[token.start - 1].isspace()
        if word in ("(", "CASE"):
            opened.append([])
            starts.append(token.start)
        opened[-1].append(_Piece(word, statement[token.start : token.end + 1], spaced))
        if word in (")", "END") and starts:
            inside, start = opened.pop(), starts.pop()
            opened[-1].append(_Piece("", statement[start : token.end + 1], inside[0].spaced, tuple(inside)))
    if starts:
        raise ValueError("parentheses that are not closed")
    return opened[0]


def _query(pieces: Pieces, indent: int) -> str:
    """A query in lines, the first of which is not indented."""
    return _line(indent).join(_clause(clause, indent) for clause in _split(pieces, _begins))


def _begins(pieces: Pieces, place: int) -> bool:
    """Whether a clause begins here."""
    word = pieces[place].word
    if word == "JOIN":
        return pieces[place - 1].word not in SIDES
    return word in CLAUSES or (word in SIDES and place + 1 < len(pieces) and pieces[place + 1].word == "JOIN")


def _clause(pieces: Pieces, indent: int) -> str:
    """One clause; what is selected in a line each, if it is long."""
    first, *rest = pieces
    if first.word == "WITH":
        return f"WITH {_listed(rest, indent, indent)}"
    if first.word == "SELECT" and not _fits(pieces, indent):
        return f"SELECT{_line(indent + STEP)}{_listed(rest, indent + STEP, indent + STEP)}"
    return _expression(pieces, indent)


def _listed(pieces: Pieces, indent: int, start: int) -> str:
    """What commas divide, each in lines of its own."""
    parts = _split(pieces, lambda known, place: known[place - 1].word == ",")
    return _line(start).join(_expression(part, indent) for part in parts)


def _expression(pieces: Pieces, indent: int) -> str:
    """An expression; conditions that are too long for a line begin new ones with AND and OR."""
    if _fits(pieces, indent):
        return _flat(pieces)
    said, inner, between = "", indent, False
    for place, piece in enumerate(pieces):
        space = " " if piece.spaced else ""
        if piece.spaced and (piece.word == "OR" or (piece.word == "AND" and not between)):
            inner = indent + STEP
            space = _line(inner)
        between = piece.word == "BETWEEN" or (between and piece.word != "AND")
        said += f"{space if place else ''}{_piece(piece, inner)}"
    return said


def _piece(piece: _Piece, indent: int) -> str:
    """A token, parentheses, or a CASE."""
    if not piece.inside or _fits([piece], indent):
        return piece.text
    first, *inside, last = piece.inside
    if first.word == "CASE":
        return _case(piece.inside, indent)
    within = _query(inside, indent + STEP) if piece.is_query else _listed(inside, indent + STEP, indent + STEP)
    return f"{first.text}{_line(indent + STEP)}{within}{_line(indent)}{last.text}"


def _case(pieces: Pieces, indent: int) -> str:
    """A CASE with an arm in each line."""
    *arms, last = pieces
    parts = _split(arms, lambda known, place: known[place].word in ("WHEN", "ELSE"))
    said = _line(indent + STEP).join(_expression(part, indent + STEP) for part in parts)
    return f"{said}{_line(indent)}{last.text}"


def _fits(pieces: Pieces, indent: int) -> bool:
    """Whether pieces stand in one line."""
    length = sum(len(piece.text) + piece.spaced for piece in pieces)
    return indent + length <= WIDTH and not any(piece.has_query for piece in pieces)


def _flat(pieces: Pieces) -> str:
    first, *rest = pieces
    return first.text + "".join(f"{' ' if piece.spaced else ''}{piece.text}" for piece in rest)


def _line(indent: int) -> str:
    return "\n" + " " * indent


def _split(pieces: Pieces, is_new: Callable[[Pieces, int], bool]) -> Iterator[Pieces]:
    """Pieces in parts, of which each but the first begins at a place that `is_new`."""
    start = 0
    for place in range(1, len(pieces)):
        if is_new(pieces, place):
            yield pieces[start:place]
            start = place
    if pieces:
        yield pieces[start:]

"""Capital and small letters, and blanks, as DuckDB has them.

What PostgreSQL makes of letters beyond ASCII depends on how the server was built and on its locale. The pairs of
letters are DuckDB's own, asked for once, and written into the statement.

>>> small(Piece('"city"')).sql      # doctest: +ELLIPSIS
'CASE WHEN OCTET_LENGTH("city") = LENGTH("city") THEN LOWER("city" COLLATE "C") WHEN OCTET_LENGTH...
"""

from __future__ import annotations

from functools import lru_cache

from discreet.engines.postgres_reals import Piece, bound
from discreet.engines.schema import text

__all__ = ["capitals", "matching", "small", "trimmed"]

BLANKS = text(" \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000")
"""What TRIM takes away: the separators of Unicode that are spaces."""
LONGEST = 1 << 26
"""Bytes of the longest text that is worked on letter by letter, for which the server needs many times as much memory;
of longer ones the result is NULL."""
LAST = 0x1FFFF
"""No letters beyond this have two forms."""
SURROGATES = (0xD800, 0xDFFF)


def small(value: Piece) -> Piece:
    """LOWER."""
    return _changed("LOWER", value)


def capitals(value: Piece) -> Piece:
    """UPPER."""
    return _changed("UPPER", value)


def trimmed(function: str, value: Piece) -> Piece:
    """BTRIM, LTRIM or RTRIM."""
    return Piece(bound(lambda x: f"CASE WHEN {_fits(x)} THEN {function}({x}, {BLANKS}) END", value))


def matching(value: Piece, pattern: Piece) -> Piece:
    """Whether a text fits a regular expression."""
    return Piece(bound(lambda x: f"CASE WHEN {_fits(x)} THEN {x} ~ {pattern.sql} END", value))


def _fits(text: str) -> str:
    return f"OCTET_LENGTH({text}) <= {LONGEST}"


def _changed(function: str, value: Piece) -> Piece:
    before, after = _pairs(function)

    def made(x: str) -> str:
        plain = f'{function}({x} COLLATE "C")'
        beyond = f"TRANSLATE({plain}, {text(before)}, {text(after)})"
        return f"CASE WHEN OCTET_LENGTH({x}) = LENGTH({x}) THEN {plain} WHEN {_fits(x)} THEN {beyond} END"

    return Piece(bound(made, value))


@lru_cache(maxsize=2)
def _pairs(function: str) -> tuple[str, str]:
    """The letters beyond ASCII that the function changes, and what it makes of them."""
    import duckdb

    letters = [chr(point) for point in range(128, LAST + 1) if not SURROGATES[0] <= point <= SURROGATES[1]]
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT c, {function}(c) FROM (SELECT UNNEST(STRING_SPLIT(?, ' ')) AS c) WHERE {function}(c) <> c",
            [" ".join(letters)],
        ).fetchall()
    return "".join(c for c, _ in found), "".join(made for _, made in found)

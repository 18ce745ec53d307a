"""Capital and small letters, and blanks, as DuckDB has them.

What PostgreSQL makes of letters beyond ASCII depends on how the server was built and on its locale. The pairs of
letters are DuckDB's own (`case_folding.py`), written into the statement.

>>> small(Piece('"city"')).sql      # doctest: +ELLIPSIS
'CASE WHEN OCTET_LENGTH("city") = LENGTH("city") THEN LOWER("city" COLLATE "C") WHEN OCTET_LENGTH...
"""

from __future__ import annotations

from discreet.engines import case_folding as letters
from discreet.engines.duckdb.types import text
from discreet.engines.postgres.arithmetic import Piece, bound

__all__ = ["capitals", "matching", "small", "trimmed"]

BLANKS = text(letters.BLANKS)
LONGEST = 1 << 26
"""Bytes of the longest text that is worked on letter by letter, for which the server needs many times as much memory;
of longer ones the result is NULL."""
LONGEST_TRANSLATED = 1 << 14
"""Bytes of the longest text with letters beyond ASCII whose case is changed: for each of its characters the server
looks through all pairs of letters, which takes nearly a hundredth of a millisecond."""


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
    before, after = letters.pairs(function)

    def made(x: str) -> str:
        plain = f'{function}({x} COLLATE "C")'
        beyond = f"TRANSLATE({plain}, {text(before)}, {text(after)})"
        short = f"OCTET_LENGTH({x}) <= {LONGEST_TRANSLATED}"
        return f"CASE WHEN OCTET_LENGTH({x}) = LENGTH({x}) THEN {plain} WHEN {short} THEN {beyond} END"

    return Piece(bound(made, value))

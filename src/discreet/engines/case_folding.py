"""Letters and blanks as DuckDB has them, for engines that have others.

What an engine makes of letters beyond ASCII depends on how it was built, and on locales. The pairs of letters are
DuckDB's own, asked for once; they are then written into statements.

>>> before, after = pairs("LOWER")
>>> after[before.index("É")], changed("LOWER", "ÉCOLE 7")
('é', 'école 7')
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["BLANKS", "changed", "pairs"]

BLANKS = " \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
"""What TRIM takes away: the separators of Unicode that are spaces."""
LAST = 0x1FFFF
"""No letters beyond this have two forms."""
SURROGATES = (0xD800, 0xDFFF)


@lru_cache(maxsize=2)
def pairs(function: str) -> tuple[str, str]:
    """The letters that LOWER or UPPER changes, and what it makes of them; those of ASCII last."""
    import duckdb

    points = [*range(128, LAST + 1), *range(65, 123)]
    letters = [chr(point) for point in points if not SURROGATES[0] <= point <= SURROGATES[1]]
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT c, {function}(c) FROM (SELECT UNNEST(STRING_SPLIT(?, ' ')) AS c) WHERE {function}(c) <> c",
            [" ".join(letters)],
        ).fetchall()
    return "".join(c for c, _ in found), "".join(made for _, made in found)


def changed(function: str, text: str) -> str:
    """What LOWER or UPPER makes of a text."""
    return text.translate(str.maketrans(*pairs(function)))

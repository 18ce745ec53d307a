"""Cases kept in text files: a title, one line of SQL, and what is expected of it."""

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Case(NamedTuple):
    title: str
    sql: str
    expected: str


def cases(name: str) -> list[Case]:
    """The cases of a file: `# title`, the SQL, then `-> …` with the expectation behind it or on indented lines."""
    found = []
    for block in (HERE / name).read_text().strip().split("\n\n"):
        title, sql, first, *lines = block.split("\n")
        expected = "\n".join(line.removeprefix("  ") for line in lines) if lines else first.removeprefix("-> ")
        found.append(Case(title.removeprefix("# "), sql, expected))
    return found

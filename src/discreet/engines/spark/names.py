"""Names of tables in a statement for Spark, in whose place the plans are put that were compared.

A table stands after FROM, each part of its name in backticks. What is in quotes is passed over: texts of ours have no
quote in them (`spark_texts.literal`), but names of columns may have any.

>>> tables("SELECT `it's`, 'FROM `b`' FROM `a`.`b` AS i", ["`a`.`b`", "`b`"])
['`a`.`b`']
>>> marked("SELECT `it's {x}`, '`a`' FROM `a`", {"`a`": "t0"})
"SELECT `it's {{x}}`, '`a`' FROM {t0}"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from discreet.core.errors import EngineUnavailable

__all__ = ["marked", "tables"]

NAME = r"`(?:[^`]|``)*`"
TOKEN = re.compile(rf"'[^']*'|(\bFROM )?({NAME}(?:\.{NAME})*)")
"""A text, or a name with all its parts, and whether it stands for a table."""


def tables(statement: str, names: Iterable[str]) -> list[str]:
    """Those of the names that a statement reads."""
    found = {token[2] for token in TOKEN.finditer(statement) if token[1]}
    return [name for name in names if name in found]


def marked(statement: str, marks: Mapping[str, str]) -> str:
    """The statement with a mark in braces for each of the tables; braces that are not ours come twice."""
    parts, start, put = [], 0, set()
    for token in TOKEN.finditer(statement):
        if token[1] and token[2] in marks:
            put.add(token[2])
            parts += [_doubled(statement[start : token.start(2)]), f"{{{marks[token[2]]}}}"]
            start = token.end()
    if put != marks.keys():
        raise EngineUnavailable("a table is not where it should be in its statement")
    return "".join([*parts, _doubled(statement[start:])])


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")

"""How texts of CSV files are brought to the spelling that casts read, each by a rule that looks at it alone.

>>> spelled("cost", "real", Csv(decimal=","))[-62:]
'THEN REPLACE(REPLACE("cost", \\'.\\', \\'\\'), \\',\\', \\'.\\') END AS "cost"'
>>> spelled("day", "date", Csv(date="%d.%m.%y"))
'CAST(CAST(TRY_STRPTIME("day", \\'%d.%m.%y\\') AS DATE) AS VARCHAR) AS "day"'
>>> spelled("day", "text", Csv(date="%d.%m.%Y"))
'"day"'
"""

from __future__ import annotations

import re

from discreet.engines.duckdb.csv_records import Csv
from discreet.engines.duckdb.types import text
from discreet.sql.catalog import Type, is_number
from discreet.sql.statement.dialect import quoted

__all__ = ["kind_of_values", "spelled"]

_COMMA = r"\s*[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)?(,[0-9]+)?([eE][+-]?[0-9]+)?\s*"
"""Numbers with a decimal comma, and points between thousands."""
_WHOLE = r"\s*[+-]?[0-9]{1,18}\s*"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


def spelled(name: str, kind: Type | None, csv: Csv) -> str:
    """A column of texts that are to have a type, as casts read them; NULL where they are not written as declared."""
    column = quoted(name)
    if kind is not None and is_number(kind) and csv.decimal == ",":
        number = f"REPLACE(REPLACE({column}, '.', ''), ',', '.')"
        return f"CASE WHEN REGEXP_FULL_MATCH({column}, {text(_COMMA)}) THEN {number} END AS {column}"
    if kind in ("date", "timestamp") and csv.date is not None:
        moment = f"TRY_STRPTIME({column}, {text(csv.date)})"
        if "%Y" in csv.date:
            # DuckDB takes 26 for the year 26.
            moment = f"CASE WHEN REGEXP_FULL_MATCH({column}, {text(_shape(csv.date))}) THEN {moment} END"
        within = f"CAST({moment} AS DATE)" if kind == "date" else moment
        return f"CAST({within} AS VARCHAR) AS {column}"
    return column


def _shape(pattern: str) -> str:
    """What texts of a pattern of `strptime` look like, as far as years of four digits go."""
    directives = re.split(r"(%-?.)", pattern)
    return "".join("[0-9]{4}" if part == "%Y" else r"[\s\S]+" if part[:1] == "%" else r"[\s\S]*" for part in directives)


def kind_of_values(name: str) -> str:
    """An aggregate for the type that all texts of a public column have; text if they have none, or there are none."""
    column = quoted(name)
    tests = {
        "BIGINT": f"REGEXP_FULL_MATCH({column}, {text(_WHOLE)})",
        "DOUBLE": f"TRY_CAST({column} AS DOUBLE) IS NOT NULL",
        "BOOLEAN": f"LOWER({column}) IN ('true', 'false')",
        "DATE": f"REGEXP_FULL_MATCH({column}, {text(_DAY)}) AND TRY_CAST({column} AS DATE) IS NOT NULL",
        "TIMESTAMP": f"TRY_CAST({column} AS TIMESTAMP) IS NOT NULL",
    }
    cases = " ".join(
        f"WHEN BOOL_AND({test}) FILTER (WHERE {column} IS NOT NULL) THEN '{kind}'" for kind, test in tests.items()
    )
    return f"CASE {cases} ELSE 'VARCHAR' END"

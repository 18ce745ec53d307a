"""What the warehouses that are reached through ibis say differently: one record for each.

Everything here rests on what their documentation says. BigQuery has functions that give NULL instead of failing, and
ignores what fails in arms of a CASE that it does not take. Trino's doubles are those of IEEE 754, and TRY_CAST gives
NULL. Snowflake does not say that a CASE leaves alone the arms that it does not take: there, nothing is written that
could fail in any arm, which leaves out columns of doubles (decimals are read) and arithmetic of reals.

Snowflake and Trino have moments that are finer than a microsecond, and Python has not: all are read to the microsecond,
or groups that differ there would be one group by the time their rows are here, and their norms taken apart.

>>> BIGQUERY.quoted("age"), TRINO.held.format("n"), SNOWFLAKE.date.format(2020, 2, 29)
('`age`', 'TRY_CAST(n AS BIGINT)', 'DATE_FROM_PARTS(2020, 2, 29)')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from discreet.core.errors import Unsupported

__all__ = ["BIGQUERY", "SNOWFLAKE", "TRINO", "WAREHOUSES", "Words"]

LOWEST, HIGHEST = -(2**63), 2**63 - 1
LARGEST = 1.7976931348623157e308


@dataclass(frozen=True)
class Words:
    """How one warehouse says what they say differently. Templates have the value in place of {}."""

    name: str
    """What sqlglot calls it."""
    title: str
    quote: str
    types: Mapping[exp.DType, str]
    whole: str
    """The type of whole numbers, of 64 bits or more."""
    wide: str
    """A type in which the product of two numbers of 64 bits is exact."""
    held: str
    """A whole number of that type as 64 bits, NULL where it does not fit."""
    date: str
    moment: str
    """A literal moment: {} has year, month, day, hour, minute, second and microsecond."""
    truncated: str
    """The beginning of a unit: {0} is the unit and {1} the moment."""
    text: str
    """A column of texts, compared by their code points."""
    micros: str
    """A moment without a time zone, to the microsecond: groups are told apart as Python will."""
    utc: str
    """The same of a moment with a time zone, in UTC."""
    rounding: bool
    """Whether it is not said if that cuts off or rounds what is below: then no such columns are read."""
    position: str
    """The place of {1} in {0}, 0 if there is none."""
    quotient: str | None
    """Of whole numbers, without the rest; None where there is no such thing."""
    added: str | None
    """Arithmetic of reals, NULL where the result is no double: {0} and {2} with the sign {1}; None where the
    documentation does not say that it cannot fail."""
    floored: str | None
    """A double that is a whole number as 64 bits, NULL where it does not fit; None if that may fail."""
    server: str | None
    """A query for what tells the server from others, by whatever name it is reached; "" where full names of tables do,
    None where it does not say."""
    validated: str | None = "EXPLAIN {}"
    """A statement that has another one planned and not run; None where the driver does that."""
    reals: bool = True
    """Whether columns of doubles are read. Where a CASE may compute arms that it does not take, casts of them may
    fail."""
    eager: bool = False
    """Whether it may: numbers are then held to their bounds before anything is computed of them."""

    def quoted(self, name: str) -> str:
        """An identifier."""
        if self.quote in name or "\\" in name:
            raise Unsupported("this name", f"{self.title} does not take it", "rename it in a view")
        return f"{self.quote}{name}{self.quote}"


_WIDE = "CASE WHEN {0} BETWEEN %s AND %s THEN {0} END"
BIGQUERY = Words(
    name="bigquery",
    title="BigQuery",
    quote="`",
    types={exp.DType.DOUBLE: "FLOAT64", exp.DType.TEXT: "STRING", exp.DType.TIMESTAMPNTZ: "DATETIME"},
    whole="INT64",
    wide="BIGNUMERIC",
    held="SAFE_CAST({} AS INT64)",
    date="DATE({}, {}, {})",
    moment="DATETIME_ADD(DATETIME({}, {}, {}, {}, {}, {}), INTERVAL {} MICROSECOND)",
    truncated="DATETIME_TRUNC(CAST({1} AS DATETIME), {0})",
    text="COLLATE({}, '')",
    micros="CAST({} AS DATETIME)",
    utc="DATETIME({}, 'UTC')",
    rounding=False,
    position="STRPOS({0}, {1})",
    quotient="DIV({}, {})",
    added="{3}({0}, {2})",
    floored="SAFE_CAST({} AS INT64)",
    server="",
    validated=None,
)
TRINO = Words(
    name="trino",
    title="Trino",
    quote='"',
    types={exp.DType.DOUBLE: "DOUBLE", exp.DType.TEXT: "VARCHAR", exp.DType.TIMESTAMPNTZ: "TIMESTAMP(6)"},
    whole="BIGINT",
    wide="DECIMAL(19,0)",
    held="TRY_CAST({} AS BIGINT)",
    date="DATE '{:04d}-{:02d}-{:02d}'",
    moment="TIMESTAMP '{:04d}-{:02d}-{:02d} {:02d}:{:02d}:{:02d}.{:06d}'",
    truncated="DATE_TRUNC('{0}', CAST({1} AS TIMESTAMP(6)))",
    text="CAST({} AS VARCHAR)",
    micros="CAST({} AS TIMESTAMP(6))",
    utc="CAST({} AT TIME ZONE 'UTC' AS TIMESTAMP(6))",
    rounding=True,
    position="STRPOS({0}, {1})",
    quotient="(CAST({} AS BIGINT) / CAST({} AS BIGINT))",
    added=f"CASE WHEN ({{0}} {{1}} {{2}}) BETWEEN {-LARGEST!r} AND {LARGEST!r} THEN ({{0}} {{1}} {{2}}) END",
    floored="TRY_CAST({} AS BIGINT)",
    server=None,
    validated="EXPLAIN (TYPE VALIDATE) {}",
)
SNOWFLAKE = Words(
    name="snowflake",
    title="Snowflake",
    quote='"',
    types={exp.DType.DOUBLE: "DOUBLE", exp.DType.TEXT: "VARCHAR", exp.DType.TIMESTAMPNTZ: "TIMESTAMP_NTZ(6)"},
    whole="NUMBER(38,0)",
    wide="NUMBER(38,0)",
    held=_WIDE % (LOWEST, HIGHEST),
    date="DATE_FROM_PARTS({}, {}, {})",
    moment="TIMESTAMP_NTZ_FROM_PARTS({}, {}, {}, {}, {}, {}, {}000)",
    truncated="DATE_TRUNC('{0}', CAST({1} AS TIMESTAMP_NTZ(6)))",
    text="COLLATE({}, '')",
    micros="CAST(DATE_TRUNC('MICROSECOND', {}) AS TIMESTAMP_NTZ(6))",
    utc="CAST(DATE_TRUNC('MICROSECOND', CONVERT_TIMEZONE('UTC', {})) AS TIMESTAMP_NTZ(6))",
    rounding=False,
    position="POSITION({1}, {0})",
    quotient=None,
    added=None,
    floored=None,
    server="SELECT CURRENT_ORGANIZATION_NAME(), CURRENT_ACCOUNT_NAME()",
    reals=False,
    eager=True,
)
WAREHOUSES = {words.name: words for words in (BIGQUERY, SNOWFLAKE, TRINO)}

"""What PostgreSQL's catalogs say of a table: where it is, what its columns are, and how each is read.

Types come from the catalogs, never from rows. Reading a value never fails: what does not fit its type is NULL. What
reads it is the system's own: between types of the system casts are the system's (`CASTS`), and a type that a role made
is read by its output function alone, since whoever owns the type can make casts from it. Texts are read in the
collation "C", whatever that of their column: another may take two texts for one, and which is shown depends on rows.

>>> reading("age", "int4", -1)
Reading(name='age', type='integer', sql='CAST("age" AS BIGINT)', family='number', owner='"age"')
>>> reading("tags", "_text", -1) is None
True
>>> reading("mood", "enum", -1).sql
'CASE WHEN "mood" IS NOT NULL THEN CONCAT("mood") END COLLATE "C"'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from discreet.core.errors import InvalidArgument
from discreet.engines.postgres.arithmetic import LARGEST
from discreet.sql.catalog import Type
from discreet.sql.decimals import LONG_DIGITS, Decimals
from discreet.sql.statement.dialect import quoted

__all__ = ["CASTS", "COLUMNS", "DATABASES", "DEFINITIONS", "NEAR", "READERS", "TABLE"]
__all__ += ["Form", "Reading", "named", "reading", "spelled"]

Form = dict[str, tuple[int, int, int, int]]
"""For each column the table it is of, its number there, its type and what is said with the type."""

DIGITS = 18
"""So many digits fit in 64 bits."""

TABLE = """
SELECT c.oid, n.nspname::text, c.relname::text,
       has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
  AND lower(c.relname::text) = lower(%(table)s::text)
  AND CASE WHEN %(schema)s::text IS NULL THEN n.nspname::text = ANY (%(path)s::text[])
      ELSE lower(n.nspname::text) = lower(%(schema)s::text) END
ORDER BY array_position(%(path)s::text[], n.nspname::text), c.oid
"""
"""Tables and views of a name, whatever the case; without a schema those in the role's path, as they come in it."""
DATABASES = """
SELECT pg_encoding_to_char(encoding)::text, datname::text, oid, datname = current_database() FROM pg_catalog.pg_database
"""
"""The databases of the server, and which of them is this one."""
NEAR = """
SELECT CASE WHEN n.nspname::text = ANY (%(path)s::text[]) THEN c.relname::text
       ELSE n.nspname::text || '.' || c.relname::text END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname::text NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname::text NOT LIKE 'pg\\_%%' AND has_schema_privilege(n.oid, 'USAGE') LIMIT 10000
"""
"""The names of all tables and views."""
COLUMNS = """
WITH RECURSIVE base AS (
  SELECT a.attnum, a.attname, a.atttypid AS oid, a.atttypmod AS typmod,
         CASE WHEN NOT has_column_privilege(a.attrelid, a.attnum, 'SELECT') THEN 'permission denied'
              WHEN a.attgenerated = 'v' THEN 'computed when it is read' END AS barred,
         format_type(a.atttypid, a.atttypmod) AS shown
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT b.attnum, b.attname, t.typbasetype, t.typtypmod, b.barred, b.shown
  FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid AND t.typtype = 'd'
)
SELECT b.attnum, b.attname::text, t.oid, b.typmod, b.barred, b.shown,
       CASE WHEN t.typtype = 'e' THEN 'enum' WHEN t.oid < 16384 THEN t.typname::text END
FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid
WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
"""Names and types of a table's columns, and why some cannot be used: reading what is computed then may fail, by what a
row holds. A domain is what it is made of."""
CASTS = """
SELECT format_type(c.castsource, NULL), format_type(c.casttarget, NULL) FROM pg_catalog.pg_cast c
WHERE c.oid >= 16384 AND c.castsource < 16384 AND c.casttarget < 16384 AND c.castmethod = 'f' ORDER BY 1, 2
"""
"""Casts between types of the system by functions that are not the system's; only an administrator can make them."""
BELOW = """
WITH RECURSIVE below(class, oid) AS (
  SELECT 'pg_catalog.pg_class'::regclass::oid, %(oid)s::oid
  UNION
  SELECT found.class, found.oid FROM below CROSS JOIN LATERAL (
    SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
    WHERE below.class = 'pg_catalog.pg_class'::regclass AND r.ev_class = below.oid AND r.ev_type = '1'
    UNION ALL
    SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d
    WHERE below.class <> 'pg_catalog.pg_class'::regclass AND d.classid = below.class AND d.objid = below.oid
    UNION ALL
    SELECT below.class, i.inhrelid FROM pg_catalog.pg_inherits i
    WHERE below.class = 'pg_catalog.pg_class'::regclass AND i.inhparent = below.oid
  ) AS found(class, oid)
  LEFT JOIN pg_catalog.pg_class c ON found.class = 'pg_catalog.pg_class'::regclass AND c.oid = found.oid
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
     OR found.class IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass)
)
"""
"""A table or view with its parts and what it reads, through views, operators and functions."""
DEFINITIONS = (
    BELOW
    + """
SELECT pg_get_viewdef(c.oid) COLLATE "C" AS said
FROM below JOIN pg_catalog.pg_class c ON below.class = 'pg_catalog.pg_class'::regclass AND c.oid = below.oid
WHERE c.relkind IN ('v', 'm')
UNION ALL
SELECT CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid)
       ELSE (SELECT a::text FROM pg_catalog.pg_aggregate a WHERE a.aggfnoid::oid = p.oid) END
FROM below JOIN pg_catalog.pg_proc p ON below.class = 'pg_catalog.pg_proc'::regclass AND p.oid = below.oid
WHERE p.oid >= 16384
ORDER BY said
"""
)
"""What a view, and the views and functions it uses, say, nothing for a table: by a digest of it questions are known in
the books, so it stays as it is."""
READERS = re.compile(
    r"\b((?:query|table|schema|database|cursor)_to_xml\w*|ts_(?:stat|rewrite)|lo_\w+|loget|pg_read_\w+"
    r"|nextval|setval|currval|lastval)\("
)
"""Functions of the system that read what a text or a number names, or that write, which no statement of ours may."""


@dataclass(frozen=True)
class Reading:
    """A column that queries can use: its name, our type, the expression that reads it, and the one for units, whose
    `family` says with which others it can be compared."""

    name: str
    type: Type
    sql: str
    family: str
    owner: str

    @property
    def stored(self) -> str:
        """The column itself where the expression only widens it, and else the expression."""
        return quoted(self.name) if self.sql == f"CAST({quoted(self.name)} AS BIGINT)" else self.sql

    @property
    def rounds(self) -> bool:
        """Whether two values may be read alike."""
        return self.type == "real" and self.family == "number"


def named(table: str) -> tuple[str | None, str]:
    """The schema, if one is given, and the name of a table; either may stand in double quotes."""
    found = re.fullmatch(r'(?:("[^"]+"|[^".]+)\.)?("[^"]+"|[^".]+)', table) if isinstance(table, str) else None
    if found is None:
        raise InvalidArgument("table", table, "the name of a table on the server", 'write "visits" or "schema.visits"')
    schema, name = (part and part.strip('"') for part in found.groups())
    return schema, name or ""


def spelled(name: str) -> str:
    """A part of a name in the books, in double quotes unless it is plain: "a.b".c is not a."b.c"."""
    return name if re.fullmatch(r"[^\W\d][\w$-]*", name) else quoted(name)


def reading(name: str, kind: str | None, typmod: int) -> Reading | None:
    """How a column of a type of the server is read; None if queries cannot use it."""
    column = quoted(name)
    if kind in ("int2", "int4", "int8"):
        return Reading(name, "integer", column if kind == "int8" else f"CAST({column} AS BIGINT)", "number", column)
    if kind == "numeric":
        return _numeric(name, column, typmod)
    if kind in ("float4", "float8"):
        plain = column if kind == "float8" else f"CAST({column} AS FLOAT8)"
        return Reading(name, "real", plain, "real", f"CASE WHEN ABS({plain}) <= {LARGEST} THEN {plain} END")
    if kind in ("text", "varchar", "bpchar", "uuid", "enum"):
        # CONCAT takes any type by its output function and looks for no cast; of NULL it makes an empty text.
        shown = (
            f"CAST({column} AS TEXT)" if kind != "enum" else f"CASE WHEN {column} IS NOT NULL THEN CONCAT({column}) END"
        )
        text = f'{shown} COLLATE "C"'
        return Reading(name, "text", text, kind if kind in ("uuid", "enum") else "text", text)
    if kind == "timestamptz":
        return Reading(name, "timestamp", f"({column} AT TIME ZONE 'UTC')", kind, column)
    plain_types: dict[str, Type] = {"bool": "boolean", "date": "date", "timestamp": "timestamp"}
    known = plain_types.get(kind or "")
    return None if known is None else Reading(name, known, column, known, column)


def _numeric(name: str, column: str, typmod: int) -> Reading:
    """Decimals without places after the point are whole numbers if they all fit; others are whole numbers of their
    units if they have at most 38 digits, and else, or where the type does not say, doubles. All may be NaN."""
    # Infinite and NaN less itself is NaN.
    owner = f"CASE WHEN {column} - {column} = 0 THEN {column} END"
    precision, scale = ((typmod - 4) >> 16) & 0xFFFF, (((typmod - 4) & 0x7FF) ^ 1024) - 1024
    if typmod >= 4 and scale <= 0 and precision - scale <= DIGITS:
        most = 10**DIGITS
        whole = f"CASE WHEN {column} BETWEEN -{most} AND {most} THEN CAST({column} AS BIGINT) END"
        return Reading(name, "integer", whole, "number", owner)
    decimals = Decimals.named(f"decimal({precision},{scale})") if typmod >= 4 else None
    if decimals is not None:
        form = "BIGINT" if precision <= LONG_DIGITS else "NUMERIC(38, 0)"
        units = f"CAST({column} * {10**scale} AS {form})"
        most = f"{'9' * decimals.whole_digits}.{'9' * scale}"
        fits = f"{column} BETWEEN -{most} AND {most}"
        return Reading(name, decimals, f"CASE WHEN {fits} THEN {units} END", "number", owner)
    size = f"ABS({column})"
    fits = f"WHEN {size} <= 1e-323 THEN 0 WHEN {size} <= 1.7976931348623157e308 THEN CAST({column} AS FLOAT8)"
    return Reading(name, "real", f"CASE {fits} END", "number", owner)

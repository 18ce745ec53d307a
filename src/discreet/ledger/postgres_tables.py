"""The tables of the books on PostgreSQL: made once, append-only for everybody, and compared with what they should be.

Entries, charges, releases and sources are never changed or removed: triggers refuse it, also to the owner. Whoever may
remove triggers could do it all the same; `complaints` finds that, and the chain of hashes what was done behind it.

>>> CREATION[1]
'CREATE TABLE entries (sequence BIGINT PRIMARY KEY, text TEXT COLLATE "C" NOT NULL, hash TEXT COLLATE "C" NOT NULL)'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.ledger.rows import SCHEMA

__all__ = ["CREATION", "MARK", "complaints"]

VERSION = 1
"""The schema. A ledger of another version is refused, never guessed at."""
MARK = f"discreet ledger, schema {VERSION}"
"""The comment on the schema that makes it a ledger of this version."""
_TYPES = (("INTEGER", "BIGINT"), ("TEXT", 'TEXT COLLATE "C"'), ("BLOB", "BYTEA"))
_REFUSAL = "BEGIN RAISE EXCEPTION 'the books of discreet are append-only' USING ERRCODE = '55000'; END"
_FORBIDDEN = {
    "entries": "DELETE OR UPDATE",
    "charges": "DELETE OR UPDATE",
    "releases": "DELETE OR UPDATE",
    "sources": "DELETE OR UPDATE",
    "accounts": "DELETE",
    "head": "DELETE",
}


def _table(statement: str) -> str:
    for ours, theirs in _TYPES:
        statement = statement.replace(f" {ours}", f" {theirs}")
    return statement


def _triggers(table: str) -> list[str]:
    return [
        f"CREATE TRIGGER append_only BEFORE {_FORBIDDEN[table]} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()",
        f"CREATE TRIGGER never_empty BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    ]


CREATION = [
    *map(_table, SCHEMA.values()),
    "INSERT INTO head VALUES (1, 0, '')",
    f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '{_REFUSAL.replace(chr(39), chr(39) * 2)}'",
    *(statement for table in _FORBIDDEN for statement in _triggers(table)),
]
"""What makes an empty schema a ledger."""

_THERE = """
WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema()),
     tables AS (SELECT c.oid, relname::text AS name, relkind, relpersistence, relrowsecurity
                FROM pg_class c JOIN ours ON relnamespace = ours.oid)
SELECT 'relation ' || name || ' ' || relkind::text || relpersistence::text || relrowsecurity
    FROM tables WHERE relkind <> 'i'
UNION ALL SELECT 'column ' || name || '.' || attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull
    || ' ' || coalesce((SELECT collname FROM pg_collation l WHERE l.oid = attcollation), '')
    || atthasdef || attgenerated::text || attidentity::text
    FROM pg_attribute JOIN tables ON attrelid = tables.oid AND relkind <> 'i' WHERE attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'constraint ' || name || ' ' || pg_get_constraintdef(k.oid)
    FROM pg_constraint k JOIN tables ON conrelid = tables.oid WHERE contype <> 'n' AND convalidated
UNION ALL SELECT 'index ' || name || ' ' || count(*) || bool_and(indisvalid AND indisready)
    FROM pg_index JOIN tables ON indrelid = tables.oid GROUP BY name
UNION ALL SELECT 'trigger ' || name || ' ' || tgenabled::text || ' '
    || replace(pg_get_triggerdef(t.oid), quote_ident(current_schema()) || '.', '')
    FROM pg_trigger t JOIN tables ON tgrelid = tables.oid WHERE NOT tgisinternal
UNION ALL SELECT 'rule ' || name || ' ' || rulename FROM pg_rewrite r JOIN tables ON ev_class = tables.oid
UNION ALL SELECT 'policy ' || name || ' ' || polname FROM pg_policy p JOIN tables ON polrelid = tables.oid
UNION ALL SELECT 'child of ' || name FROM pg_inherits JOIN tables ON inhparent = tables.oid
UNION ALL SELECT 'function ' || proname || ' ' || prosrc FROM pg_proc JOIN ours ON pronamespace = ours.oid
"""
_COLUMNS = {
    "head": "one bigint, sequence bigint, hash text",
    "entries": "sequence bigint, text text, hash text",
    "accounts": "path text, budget text?, promised text?, unit text?, state text",
    "sources": "source text, dataset text",
    "charges": "sequence bigint, dataset text, path text, question text, request text?, time text",
    "releases": "charge bigint, sequence bigint, payload bytea",
}
_CONSTRAINTS = {
    "head": ["PRIMARY KEY (one)", "CHECK ((one = 1))"],
    "entries": ["PRIMARY KEY (sequence)"],
    "accounts": ["PRIMARY KEY (path)"],
    "sources": ["PRIMARY KEY (source)"],
    "charges": ["PRIMARY KEY (sequence)", "UNIQUE (dataset, question)", "UNIQUE (dataset, request)"],
    "releases": ["PRIMARY KEY (charge)"],
}


def _expected() -> set[str]:
    found = {f"function refuse {_REFUSAL}"}
    for table, columns in _COLUMNS.items():
        found.add(f"relation {table} rpfalse")
        for column in columns.split(", "):
            name, kind = column.removesuffix("?").split(" ")
            collation = "C" if kind == "text" else ""
            filled = str(not column.endswith("?")).lower()
            found.add(f"column {table}.{name} {kind} {filled} {collation}false")
        found |= {f"constraint {table} {constraint}" for constraint in _CONSTRAINTS[table]}
        found.add(f"index {table} {sum('CHECK' not in c for c in _CONSTRAINTS[table])}true")
        found |= {f"trigger {table} O {statement}" for statement in _triggers(table)}
    return found


def complaints(rows: Callable[[str], list[Any]]) -> list[str]:
    """What is in the schema and should not be, or should be and is not."""
    there, expected = {line for (line,) in rows(_THERE)}, _expected()
    found = [f"{line!r} does not belong here" for line in sorted(there - expected)]
    return found + [f"{line!r} is missing" for line in sorted(expected - there)]

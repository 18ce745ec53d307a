"""The tables of the books on PostgreSQL: made by the steps of `stores/schema.py`, append-only for everybody, and
compared with what they should be.

Entries, charges, releases and sources are never changed or removed: triggers refuse it, also to the owner. Whoever may
remove triggers could do it all the same; `complaints` finds that, and the chain of hashes what was done behind it.

>>> creation("books")[3]
'CREATE TABLE entries (sequence BIGINT PRIMARY KEY, text TEXT COLLATE "C" NOT NULL, hash TEXT COLLATE "C" NOT NULL)'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.ledger.errors import LedgerDamaged
from discreet.ledger.stores.schema import STEPS, VERSION, assert_known, structure

__all__ = ["VERSION_THERE", "complaints", "creation", "step", "version_of"]

MARK = "discreet ledger, schema "
"""The comment on the schema that makes it a ledger, before the number of the schema of its tables."""
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


def _written(statement: str) -> str:
    for ours, theirs in _TYPES:
        statement = statement.replace(f" {ours}", f" {theirs}")
    return statement


def _triggers(table: str) -> list[str]:
    return [
        f"TRIGGER append_only BEFORE {_FORBIDDEN[table]} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()",
        f"TRIGGER never_empty BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    ]


def creation(schema: str) -> list[str]:
    """What makes a ledger in a database, under the name `schema`; the function there is then found by its name."""
    refuse = f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '{_REFUSAL.replace(chr(39), chr(39) * 2)}'"
    steps = [statement for version in range(1, VERSION + 1) for statement in _tables_of(version)]
    return [f'CREATE SCHEMA "{schema}"', refuse, *steps, *_guards(), _marked(schema, VERSION)]


def step(schema: str, version: int) -> list[str]:
    """What brings the tables from the schema before to this one, guarded again where a table is new."""
    return [*_tables_of(version), *_guards(), _marked(schema, version)]


def _tables_of(version: int) -> list[str]:
    return [_written(statement) for statement in STEPS[version - 1]]


def _guards() -> list[str]:
    return [f"CREATE OR REPLACE {trigger}" for table in _FORBIDDEN for trigger in _triggers(table)]


def _marked(schema: str, version: int) -> str:
    return f"COMMENT ON SCHEMA \"{schema}\" IS '{MARK}{version}'"


VERSION_THERE = "(SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = current_schema())"
"""In a statement: the mark of the schema that the connection uses."""


def version_of(mark: str | None) -> int:
    """The schema of the tables by its mark; an error if it is not a ledger."""
    number = (mark or "").removeprefix(MARK)
    if number == mark or not number.isdecimal():
        raise LedgerDamaged("a schema of that name is of something else", "use another database")
    assert_known(int(number))
    return int(number)


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
_NAMES = {"INTEGER": "bigint", "TEXT": "text", "BLOB": "bytea"}
"""What the server calls the types of columns."""


def _expected() -> set[str]:
    found = {f"function refuse {_REFUSAL}"}
    for table, made in structure().items():
        found.add(f"relation {table} rpfalse")
        for name, (kind, filled) in made.columns.items():
            collation = "C" if kind == "TEXT" else ""
            found.add(f"column {table}.{name} {_NAMES[kind]} {str(filled).lower()} {collation}false")
        found |= {f"constraint {table} {constraint}" for constraint in (*made.keys, *made.checks)}
        found.add(f"index {table} {len(made.keys)}true")
        found |= {f"trigger {table} O CREATE {trigger}" for trigger in _triggers(table)}
    return found


def complaints(rows: Callable[[str], list[Any]]) -> list[str]:
    """What is in the schema and should not be, or should be and is not."""
    there, expected = {line for (line,) in rows(_THERE)}, _expected()
    found = [f"{line!r} does not belong here" for line in sorted(there - expected)]
    return found + [f"{line!r} is missing" for line in sorted(expected - there)]

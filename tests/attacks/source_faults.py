"""Faults planted where engines look at what they read, one at a time."""

import re
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.attacks.faults import together

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.postgres import catalog as postgres_catalog
from discreet.engines.postgres import dependencies as reach
from discreet.engines.postgres import engine as postgres
from discreet.engines.postgres.catalog import spelled
from discreet.engines.postgres.engine import Postgres
from discreet.engines.postgres.identity import Place
from discreet.engines.spark import (
    catalog as spark_catalog,
)
from discreet.engines.spark import (
    engine as spark,
)
from discreet.engines.spark import (
    files as spark_files,
)
from discreet.engines.spark import (
    footers,
)
from discreet.engines.spark import (
    names as spark_names,
)
from discreet.engines.spark import (
    settings as spark_settings,
)
from discreet.engines.spark.engine import Spark


def tables_known_by_their_columns() -> Any:
    """Parts, rules and functions are whatever they are."""
    return patch.object(reach, "RECORD", "SELECT '', '' FROM pg_catalog.pg_class WHERE oid = %(oid)s")


def looked_at_before_the_statement_only() -> Any:
    look, run = Postgres._records, Postgres.run
    seen: list[Any] = []

    def run_anew(self: Postgres, statement: str) -> Any:
        seen.clear()
        return run(self, statement)

    def look_once(self: Postgres, link: Any, statement: str) -> Any:
        if not seen:
            seen.append(look(self, link, statement))
        return seen[0]

    return together(patch.object(Postgres, "run", run_anew), patch.object(Postgres, "_records", look_once))


def changes_told_by_what_is_said() -> Any:
    """A change that was taken back is none."""
    original = Postgres._record
    return patch.object(Postgres, "_record", lambda self, *given: (original(self, *given)[0], ""))


def types_not_followed() -> Any:
    """As if reading never ran what a domain checks."""
    classes = "'pg_catalog.pg_type'::regclass, 'pg_catalog.pg_constraint'::regclass"
    queries = {name: getattr(reach, name).replace(classes, "0") for name in ("RECORD", "UNSEEN", "ORIGINS")}
    return together(*(patch.object(reach, name, query) for name, query in queries.items()))


def enums_cast_to_text() -> Any:
    """As the server casts them, by whatever cast their owner made."""
    original = postgres_catalog.reading

    def reading(name: str, kind: str | None, typmod: int) -> Any:
        read = original(name, kind, typmod)
        if read is None or kind != "enum":
            return read
        text = f'CAST("{name}" AS TEXT) COLLATE "C"'
        return replace(read, sql=text, owner=text)

    return patch.object(postgres, "reading", reading)


def collations_of_columns() -> Any:
    """Texts are compared as their columns say."""
    original = postgres_catalog.reading

    def reading(name: str, kind: str | None, typmod: int) -> Any:
        read = original(name, kind, typmod)
        plain = {part: getattr(read, part, "").replace(' COLLATE "C"', "") for part in ("sql", "owner")}
        return read and replace(read, **plain)

    return patch.object(postgres, "reading", reading)


def labels_not_looked_at() -> Any:
    return patch.object(reach, "RECORD", reach.RECORD.replace("e.xmin, ", ""))


def casts_not_looked_at() -> Any:
    between = "c.oid >= 16384 AND"
    return together(
        patch.object(reach, "RECORD", reach.RECORD.replace(between, "FALSE AND")),
        patch.object(postgres_catalog, "CASTS", postgres_catalog.CASTS.replace(between, "FALSE AND")),
    )


def databases_known_by_name() -> Any:
    def sources(self: Place, origins: Any) -> Any:
        named = [f"{self}/{spelled(schema)}.{spelled(name)}" for schema, name, _, _ in origins]
        return (*named, *(f"{self}/{number}" for _, _, number, stored in origins if stored))

    return together(
        patch.object(Place, "sources", sources),
        patch.object(Place, "aliases", lambda *_: []),
    )


def servers_known_by_address() -> Any:
    return patch.object(Place, "check_named", lambda *_: None)


def names_read_as_they_are_by_then() -> Any:
    """Frames have views that stay, and statements name them."""

    def digest(session: Any, frame: Any, name: str, sources: Any) -> str:
        frame.createOrReplaceTempView(name.strip("`"))
        return spark_catalog.digest(spark_catalog.plan(session, name), *sources)

    return together(
        patch.object(spark, "_digest", digest),
        patch.object(Spark, "_resolved", lambda self, session, statement: session.sql(statement)),
    )


def partitions_wherever_they_lie() -> Any:
    """Files of a table are taken for its own."""
    return patch.object(spark, "_folders", lambda held, files: frozenset())


def files_looked_at_before_the_statement_only() -> Any:
    return patch.object(Spark, "_check_still", lambda self, session, statement: None)


def types_not_compared() -> Any:
    """A file's own types are whatever they are."""
    return patch.object(footers, "is_total", lambda stored, declared: True)


def footers_kept_by_their_path() -> Any:
    """A file is looked into once, whatever is written in its place."""
    return patch.object(footers.Footers, "_state", lambda self, file: (file,))


def flat_columns_only() -> Any:
    """What structs and lists are made of is not looked at."""
    honest = footers._of_parquet

    def flat(columns: Any) -> Any:
        return {name: column for name, column in honest(columns).items() if len(column.kinds) == 1 and name != "s"}

    return patch.object(footers, "_of_parquet", flat)


def files_not_looked_into() -> Any:
    return patch.object(footers.Footers, "failing", lambda self, files, plan, shown: {})


def files_of_any_kind() -> Any:
    return patch.object(spark_files, "check_kinds", lambda plan: None)


def folders_that_give_types() -> Any:
    return patch.object(spark_files, "typed_by_folders", lambda plan, files: {})


def spaces_that_tell_people_apart() -> Any:
    return patch.object(spark_catalog, "DECLARED", "nothing")


def decimals_not_guarded() -> Any:
    original = spark_catalog.reading

    def reading(name: str, kind: str) -> Any:
        read = original(name, kind)
        if read is None or not read.sql.startswith("CASE WHEN") or not kind.startswith("decimal"):
            return read
        _, _, units = read.sql.partition(" THEN ")
        return replace(read, sql=units.removesuffix(" END"))

    return patch.object(spark_catalog, "reading", reading)


def quotes_in_names_taken_for_texts() -> Any:
    """Every quote begins or ends a text, and a table that is not found stays as it is."""
    names = re.compile(rf"'[^']*'|(\bFROM )({spark_names.NAME}(?:\.{spark_names.NAME})*)")
    honest = spark_names.marked

    def marked(statement: str, marks: Any) -> str:
        found = spark_names.tables(statement, marks)
        return honest(statement, {name: mark for name, mark in marks.items() if name in found})

    return together(
        patch.object(spark_names, "TOKEN", names),
        patch.object(spark, "tables", lambda statement, known: [name for name in known if name in statement]),
        patch.object(spark, "marked", marked),
        patch.object(Spark, "_check_still", lambda self, session, statement: None),
    )


def whatever_file_is_there() -> Any:
    return patch.object(DuckDB, "_is_same", lambda self, held: True)


def not_prepared() -> Any:
    return together(
        *(patch.object(kind, "prepare", lambda self, statement: None) for kind in (DuckDB, Postgres, Spark))
    )


def reserved_words_not_looked_at() -> Any:
    kept = {name: value for name, value in spark_settings.NEEDED.items() if "Keywords" not in name}
    return together(not_prepared(), patch.object(spark_settings, "NEEDED", kept))

"""Which engine a source is for: each is asked in turn, and DuckDB takes what no other does.

An engine of another package is found by an entry point of the group `discreet.engines`, in its pyproject.toml:

    [project.entry-points."discreet.engines"]
    vault = "vault_engine:Vault"

It is asked after those that are built in, so it cannot take a source from one of them.

>>> engine_for("visits.csv").title, engine_for("postgresql://data.example/hospital").title
('DuckDB', 'PostgreSQL')
>>> is_on_server("sc://data.example:15002"), is_on_server({"who": [1, 2]})
(True, False)
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TypeGuard

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine
from discreet.engines.postgres.engine import Postgres
from discreet.engines.spark.engine import Spark
from discreet.engines.warehouses.engine import Ibis

__all__ = ["engine_for", "is_on_server", "schemes"]

GROUP = "discreet.engines"
"""The group of entry points that name engines of other packages."""
BUILT_IN: tuple[type[Engine], ...] = (Ibis, Spark, Postgres)


def engine_for(source: object) -> type[Engine]:
    """The engine that a source is for."""
    return next((engine for engine in (*BUILT_IN, *_from_packages()) if engine.accepts(source)), DuckDB)


def is_on_server(source: object) -> TypeGuard[str]:
    """Whether a source is the address of a server with tables."""
    return isinstance(source, str) and engine_for(source).on_server


def schemes() -> tuple[str, ...]:
    """How the addresses of all engines begin."""
    return tuple(scheme for engine in (*BUILT_IN, *_from_packages()) for scheme in engine.schemes)


@cache
def _from_packages() -> tuple[type[Engine], ...]:
    """Engines of other packages that are installed."""
    found = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        engine = entry.load()
        if not isinstance(engine, type) or not issubclass(engine, Engine):
            bound = "a class of discreet.engines.engine.Engine"
            raise InvalidArgument(f"the entry point {GROUP}", entry.value, bound, "mend or uninstall that package")
        found.append(engine)
    return tuple(found)

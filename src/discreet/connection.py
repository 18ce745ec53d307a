"""How a session begins: sources become tables, and what the steward declares about them becomes a catalog."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.units import Row, Unit, User
from discreet.engines.duckdb import DuckDB
from discreet.session import Session
from discreet.sql.catalog import Catalog, Column, Table

__all__ = ["connect"]


def connect(
    source: object,
    *,
    unit: Unit,
    budget: PureDP | ApproxDP,
    table: str | None = None,
    bounds: Mapping[str, Bounds | tuple[Exactable, Exactable]] | None = None,
    values: Mapping[str, Sequence[Any]] | None = None,
    public: Mapping[str, object] | None = None,
    max_rows: int | None = None,
    ledger: str | os.PathLike[str] | None = None,
    study: str | None = None,
    analyst: str | None = None,
) -> Session:
    """A session on a file, a folder, a DuckDB database, a frame, an Arrow table or a dict of arrays.

    `bounds` and `values` declare what columns hold; `public` names tables that protect nobody. The books are kept in
    `ledger`, by default beside a file and for frames in a temporary file that ends with the session.
    """
    if not isinstance(budget, PureDP | ApproxDP) or (isinstance(budget, ApproxDP) and not 0 < budget.delta < 1):
        raise InvalidArgument("budget", budget, "PureDP(ε) or ApproxDP(ε, δ), 0 < δ < 1", "state it as one of these")
    engine = DuckDB()
    name = table or (Path(source).name.split(".")[0] if isinstance(source, str | os.PathLike) else "data")
    engine.add(name, source)
    for other, data in (public or {}).items():
        engine.add(other, data)
    if isinstance(unit, User):
        column: str | None = unit.column
    elif isinstance(unit, Row):
        column = None
    else:
        raise InvalidArgument("unit", unit, "User(column) or Row()", "tables have users or rows")
    described = _declared(engine.columns(name), bounds or {}, values or {})
    tables = [Table(name, described, column, True, max_rows)]
    tables += [Table(other, engine.columns(other), None, False) for other in public or {}]
    return Session(engine, Catalog(tuple(tables)), unit, budget, _books(source, ledger), name, study, analyst)


def _declared(
    columns: Iterable[Column],
    bounds: Mapping[str, Bounds | tuple[Exactable, Exactable]],
    values: Mapping[str, Sequence[Any]],
) -> tuple[Column, ...]:
    known = tuple(columns)
    table = Table("declared", known)
    facts: dict[str, Column] = {column.name: column for column in known}
    for name, given in bounds.items():
        column = facts[table.column(name).name]
        facts[column.name] = replace(column, bounds=given if isinstance(given, Bounds) else Bounds(*given))
    for name, listed in values.items():
        column = facts[table.column(name).name]
        facts[column.name] = replace(column, values=Categories(tuple(listed)))
    return tuple(facts.values())


def _books(source: object, ledger: str | os.PathLike[str] | None) -> Path | None:
    if ledger is not None:
        return Path(ledger)
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser().resolve()
        return path.with_name(path.name + ".ledger")
    return None

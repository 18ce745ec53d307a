"""Writing discreet.toml: a table is looked at (its schema only), what is said about it is checked, then it is recorded.

New tables are appended to the file, so that what people wrote into it stays: tomlkit would put them after the last
table that is there, which may be between a comment and what it is about. A password never gets into it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discreet.app.config.declarations import bounds, linked, listed, pairs, typed
from discreet.app.config.settings import FILE, Settings, csv_of, document, table_name
from discreet.app.config.toml import Number, written
from discreet.core.display.secrets import holds_secret
from discreet.core.domains import Categories
from discreet.core.errors import InvalidArgument, known_place
from discreet.engines.duckdb.csv_records import Csv
from discreet.engines.registry import engine_for, is_on_server, schemes
from discreet.ledger.stores.addresses import exists
from discreet.ledger.stores.addresses import is_address as keeps_books
from discreet.session.connect import connect
from discreet.sql.catalog import Table, Type

__all__ = ["NewTable", "add", "create", "put", "sound"]

REAL: Type = "real"
"""What a column with bounds is, unless it has a type of its own."""


@dataclass(frozen=True)
class NewTable:
    """What the command line says of a table."""

    source: str | None
    """The path of a file, or the address of a server; None for the server of the tables before it."""
    name: str | None = None
    unit: str | None = None
    row_level: bool = False
    link: str | None = None
    neighbours: str | None = None
    types: Sequence[str] = ()
    bounds: Sequence[str] = ()
    values: Sequence[str] = ()
    max_rows: int | None = None
    public: bool = False
    table: str | None = None
    """What it is called on a server."""
    csv: Sequence[str] = ()
    """How a CSV file is written, as encoding=latin-1."""
    disjoint: bool = False
    """Whether no row of it is in another private table, at row level."""

    def title(self, server: str | None = None) -> str:
        """What it is called; `server` has the tables before it."""
        if self.name is None and self.table is not None:
            return engine_for(self.source or server or "").table_name(self.table)
        return self.name or table_name(self.source or "")

    def record(self, folder: Path, server: str | None = None) -> dict[str, Any]:
        """The table as the file holds it, checked against the schema; `server` has the tables before it."""
        ways = [self.unit is not None, self.row_level, self.link is not None, self.public]
        if sum(ways) != 1:
            remedy = "give --unit COLUMN, the column that tells people apart, or --row-level, --link or --public"
            raise InvalidArgument("unit", self.unit, "one way to say whose the rows are", remedy)
        title = self.title(server)
        if self.public and (self.neighbours or self.max_rows):
            remedy = "leave out neighbours and max-rows"
            raise InvalidArgument("public", title, "a table that protects nobody", remedy)
        if self.disjoint and not self.row_level:
            remedy = "leave it out, or add --row-level"
            raise InvalidArgument("disjoint", title, "for tables at row level", remedy)
        ends, kinds, spelling = bounds(self.bounds), pairs("types", self.types), pairs("csv", self.csv)
        source = self.source or server
        if source is not None and not (folder / source).exists():
            source = known_place("source", source, *schemes())
        if source is None or (self.table is None) == is_on_server(source):
            remedy = "give a file, or the address of a server and --table"
            shown = title if self.source is None or is_on_server(self.source) else self.source
            raise InvalidArgument("source", shown, "a file, or a table on a server", remedy)
        table = self._columns(title, source, kinds, ends, csv_of(spelling))
        found: dict[str, Any] = {}
        if source != server:
            found["source"] = open_to_all("source", source) if is_on_server(source) else _relative(source, folder)
        found |= {"table": self.table} if self.table is not None else {}
        if self.public:
            found["public"] = True
        elif self.link is not None:
            found["link"] = list(linked(self.link))
        else:
            found |= {"row_level": True} if self.unit is None else {"unit": table.column(self.unit).name}
        found |= {"neighbours": self.neighbours} if self.neighbours else {}
        found |= {"max_rows": self.max_rows} if self.max_rows else {}
        found |= {"disjoint": True} if self.disjoint else {}
        facts = {
            "csv": spelling,
            "types": {table.column(name).name: kind for name, kind in kinds.items()},
            "bounds": {table.column(name).name: [Number(low), Number(high)] for name, (low, high) in ends.items()},
            "values": {table.column(name).name: _typed(table, name, t) for name, t in listed(self.values).items()},
        }
        return found | {key: fact for key, fact in facts.items() if fact}

    def _columns(
        self, title: str, source: str, kinds: Mapping[str, Any], ends: Mapping[str, Any], csv: Csv | None
    ) -> Table:
        """Names and types of its columns, that they have or are to have; a CSV file is registered."""
        kind = engine_for(source)
        there = source if self.table is None else self.table
        engine = kind.opened(source)
        try:
            hints = dict.fromkeys(ends, REAL)
            engine.add(title, there, types=kinds, hints=hints, private=not self.public, csv=csv)
            return Table(title, engine.columns(title), self.unit)
        finally:
            engine.close()


def _typed(table: Table, name: str, texts: Sequence[str]) -> list[Any]:
    return list(Categories(tuple(typed(name, table.column(name).type, texts))).values)


def create(
    folder: Path,
    budget: Mapping[str, str],
    table: NewTable | None,
    public: Sequence[str] = (),
    others: Mapping[str, str | None] | None = None,
) -> Path:
    """Writes the file anew; `budget` has its numbers by name, as text, and `others` the plain keys of the file, such as
    ledger, study and analyst."""
    path = folder / FILE
    if path.exists():
        raise InvalidArgument("config", str(path), "absent", "edit it, or add tables with discreet add")
    found: dict[str, Any] = {key: value for key, value in (others or {}).items() if value}
    if "ledger" in found:
        found["ledger"] = known_place("ledger", found["ledger"], "postgresql", "postgres", "words")
    if keeps_books(found.get("ledger")):
        open_to_all("ledger", found["ledger"])
    found["budget"] = {name: Number(text) for name, text in budget.items()}
    tables = {} if table is None else {table.title(): table.record(folder)}
    server = table.source if table is not None and is_on_server(table.source) else None
    for name, source in pairs("public", public).items():
        here, there = (source, None) if server is None else (None, source)
        tables[name] = NewTable(here, name, public=True, table=there).record(folder, server)
    found |= {"tables": tables} if tables else {}
    text = f"# What discreet may tell about these tables, and at what price.\n\n{written(found)}"
    settings = sound(path, text)
    if settings.first is not None and exists(settings.books):
        # Books that are there already must be those of this file.
        connect(**settings.arguments()).close()
    put(path, text)
    return path


def add(path: Path, table: NewTable) -> str:
    """Appends a table to the file; what it is called."""
    server = Settings.read(path).server
    title = table.title(server)
    if title in document(path).get("tables", {}):
        raise InvalidArgument("table", title, f"new in {path}", "name it otherwise with --name, or edit the file")
    record = table.record(path.parent, server)
    text = f"{path.read_text(encoding='utf-8').rstrip()}\n\n{written({'tables': {title: record}})}"
    sound(path, text)
    put(path, text)
    return title


def sound(path: Path, text: str) -> Settings:
    """What the text would mean at this path, if a session can be opened from it."""
    settings = Settings.of(document(path, text), path)
    if settings.first is not None:
        with TemporaryDirectory(prefix="discreet-") as folder:
            connect(**settings.arguments(ledger=Path(folder) / "trial.ledger")).close()
    return settings


def put(path: Path, text: str) -> None:
    """Writes the file, all of it or nothing."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8", newline="")
    draft.replace(path)


def open_to_all(argument: str, address: str) -> str:
    """The address, if no password is in it."""
    from discreet.ledger.stores.postgres.connection import Address

    if holds_secret(address) or (keeps_books(address) and Address.of(address).secret):
        remedy = "keep the password in .pgpass, in PGPASSWORD or in a file that ?passfile= names, and leave it out here"
        remedy = remedy if keeps_books(address) else "keep it where the driver finds it, and leave it out here"
        raise InvalidArgument(argument, "an address", "without a password where it is written down", remedy)
    return address


def _relative(source: str, folder: Path) -> str:
    """A path that holds also when the folder is moved, if the source is in it."""
    full = Path(os.path.abspath(Path(source).expanduser()))
    return full.relative_to(folder.resolve()).as_posix() if full.is_relative_to(folder.resolve()) else str(full)

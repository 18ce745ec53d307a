"""Writing discreet.toml: a table is looked at (its schema only), what is said about it is checked, then it is recorded.

New tables are appended to the file, so that what people wrote into it stays.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.app.declarations import bounds, listed, pairs, typed
from discreet.app.settings import FILE, Settings, document, table_name
from discreet.app.toml import Number, written
from discreet.core.domains import Bounds, Categories
from discreet.core.errors import DiscreetError, InvalidArgument
from discreet.engines.duckdb import DuckDB
from discreet.sql.catalog import Table

__all__ = ["NewTable", "add", "create", "replaced"]


@dataclass(frozen=True)
class NewTable:
    """What the command line says of a table."""

    source: Path
    name: str | None = None
    unit: str | None = None
    row_level: bool = False
    neighbours: str | None = None
    bounds: Sequence[str] = ()
    values: Sequence[str] = ()
    max_rows: int | None = None
    public: bool = False

    @property
    def title(self) -> str:
        """What it is called."""
        return self.name or table_name(self.source)

    def record(self, folder: Path) -> dict[str, Any]:
        """The table as the file holds it, checked against the schema."""
        said = bool(self.unit or self.row_level or self.neighbours or self.bounds or self.values or self.max_rows)
        if self.public and said:
            remedy = "leave out unit, neighbours, bounds, values and max-rows, or leave out --public"
            raise InvalidArgument("public", self.title, "a table that protects nobody", remedy)
        if not self.public and (self.unit is None) != self.row_level:
            remedy = "give --unit COLUMN, the column that tells people apart, or --row-level, or --public"
            raise InvalidArgument("unit", self.unit, "named, unless each row is a person", remedy)
        table = _looked_at(self.title, self.source, self.unit)
        found: dict[str, Any] = {"source": _relative(self.source, folder)}
        if self.public:
            return found | {"public": True}
        found |= {"row_level": True} if self.unit is None else {"unit": table.column(self.unit).name}
        found |= {"neighbours": self.neighbours} if self.neighbours else {}
        found |= {"max_rows": self.max_rows} if self.max_rows else {}
        ends, lists = self._bounds(table), self._values(table)
        return found | ({"bounds": ends} if ends else {}) | ({"values": lists} if lists else {})

    def _bounds(self, table: Table) -> dict[str, list[Number]]:
        found = {}
        for name, (low, high) in bounds(self.bounds).items():
            column = table.column(name)
            if column.type not in ("integer", "real"):
                raise InvalidArgument("bounds", name, "for numbers only", "declare values instead")
            Bounds(low, high)
            found[column.name] = [Number(low), Number(high)]
        return found

    def _values(self, table: Table) -> dict[str, list[Any]]:
        found = {}
        for name, texts in listed(self.values).items():
            column = table.column(name)
            found[column.name] = list(Categories(tuple(typed(name, column.type, texts))).values)
        return found


def create(
    folder: Path,
    epsilon: str,
    delta: str | None,
    table: NewTable | None,
    public: Sequence[str] = (),
    others: Mapping[str, str | None] | None = None,
) -> Path:
    """Writes the file anew; `others` are its plain keys, such as ledger, study and analyst."""
    path = folder / FILE
    if path.exists():
        raise InvalidArgument("config", str(path), "absent", "edit it, or add tables with discreet add")
    found: dict[str, Any] = {key: value for key, value in (others or {}).items() if value}
    found["budget"] = {"epsilon": Number(epsilon)} | ({} if delta is None else {"delta": Number(delta)})
    tables = {} if table is None else {table.title: table.record(folder)}
    for name, source in pairs("public", public).items():
        tables[name] = NewTable(Path(source), name, public=True).record(folder)
    found |= {"tables": tables} if tables else {}
    replaced(path, f"# What discreet may tell about these tables, and at what price.\n\n{written(found)}")
    return path


def add(path: Path, table: NewTable) -> None:
    """Appends a table to the file."""
    if table.title in document(path).get("tables", {}):
        raise InvalidArgument("table", table.title, f"new in {path}", "name it otherwise with --name, or edit the file")
    record = table.record(path.parent)
    text = path.read_text(encoding="utf-8")
    replaced(path, f"{text.rstrip()}\n\n{written({'tables': {table.title: record}})}")


def replaced(path: Path, text: str) -> None:
    """Writes the file, all of it or nothing, once it is known to be sound."""
    Settings.of(document(path, text), path)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _looked_at(name: str, source: Path, unit: str | None) -> Table:
    """The names and types of a table's columns."""
    engine = DuckDB()
    try:
        engine.add(name, source)
        return Table(name, engine.columns(name), unit)
    except DiscreetError:
        raise
    except Exception:
        # What an engine says of a file it cannot read may repeat a part of it.
        raise InvalidArgument("source", str(source), "a table that can be read", "check the file") from None
    finally:
        engine.close()


def _relative(source: Path, folder: Path) -> str:
    """A path that holds also when the folder is moved, if the source is in it."""
    full = Path(os.path.abspath(source.expanduser()))
    return full.relative_to(folder.resolve()).as_posix() if full.is_relative_to(folder.resolve()) else str(full)

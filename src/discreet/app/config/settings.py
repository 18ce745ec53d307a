"""The file discreet.toml: what the steward declares once, so that a question needs nothing but its SQL.

It is searched for from the current folder upwards; paths in it are relative to it. Numbers may be written as TOML
numbers or as text and are read exactly.

>>> settings = Settings.of({
...     "budget": {"epsilon": 3, "delta": "1e-6"},
...     "tables": {"visits": {"source": "visits.csv", "unit": "patient", "bounds": {"age": [0, 120]}}},
... }, Path("/data/discreet.toml"))
>>> settings.ledger.as_posix(), settings.arguments()["unit"], settings.arguments()["bounds"]
('/data/visits.csv.ledger', User(neighbours='add_remove', column='patient'), {'age': (0, 120)})

All tables of a file are one data set with one budget. The first private table says who is protected. A source may be
the address of a server, as postgresql://…, where `table` names the table; further tables there need no source. The
ledger may be an address too. Passwords belong into .pgpass, PGPASSWORD or a service file; one in an address is never
shown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

from discreet.core.display.secrets import address_kind, server_of
from discreet.core.errors import InvalidArgument, known_place
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.units import Row, Unit, User
from discreet.engines.duckdb.csv_records import Csv
from discreet.engines.registry import engine_for, is_on_server, schemes
from discreet.ledger.stores.addresses import is_address as keeps_books
from discreet.sql.catalog import nearest

__all__ = ["FILE", "Settings", "csv_of", "document", "find", "table_name"]

FILE = "discreet.toml"


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(key, value, "a text", "put it in quotes")
    return value


def _whole(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(key, value, "a whole number", "write it without quotes")
    return value


def _number(key: str, value: Any) -> int | str | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise InvalidArgument(key, value, "a number", 'write it as 0.5 or "1/3"')
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(key, value, "true or false", "write it without quotes")
    return value


def _ends(key: str, value: Any) -> dict[str, tuple[Any, Any]]:
    found = {}
    for column, ends in _mapping(key, value).items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise InvalidArgument(f"{key}.{column}", ends, "[low, high]", "write for example age = [0, 120]")
        found[column] = (_number(f"{key}.{column}", ends[0]), _number(f"{key}.{column}", ends[1]))
    return found


def _lists(key: str, value: Any) -> dict[str, list[Any]]:
    found = {}
    for column, items in _mapping(key, value).items():
        if not isinstance(items, list):
            raise InvalidArgument(f"{key}.{column}", items, "a list", 'write for example city = ["A", "B"]')
        found[column] = [_listed(item) if isinstance(item, Decimal) else item for item in items]
    return found


def _listed(number: Decimal) -> float | Decimal:
    """A listed number as a double, unless that is not written with the same digits."""
    double = float(number)
    return double if not isfinite(double) or Decimal(repr(double)) == number else number


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(key, value, "a table of TOML", f"write it under [{key}]")
    return value


def _texts(key: str, value: Any) -> dict[str, str]:
    return {column: _text(f"{key}.{column}", text) for column, text in _mapping(key, value).items()}


def _three(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) != 3:
        raise InvalidArgument(key, value, "three names", 'write link = ["order_id", "orders", "id"]')
    return tuple(_text(key, name) for name in value)


def _csv(key: str, value: Any) -> Csv:
    given = _texts(key, value)
    _known(key, given, [part.name for part in fields(Csv)])
    return Csv(**given)


def csv_of(given: Mapping[str, str]) -> Csv | None:
    """How a CSV file is written, if anything is said of it."""
    return _csv("csv", given) if given else None


_Readers = dict[str, Callable[[str, Any], Any]]
# Keys that are arguments of `connect` by the same name, and how they are read.
_OF_THE_FILE: _Readers = {"dataset": _text, "study": _text, "analyst": _text}
_OF_COLUMNS: _Readers = {"types": _texts, "bounds": _ends, "values": _lists}
_OF_PEOPLE: _Readers = {"max_rows": _whole}
_OF_FURTHER_TABLES: _Readers = {"link": _three, "disjoint": _flag}
# Keys with a meaning of their own.
_FILE = {"tables", "budget", "ledger", "key"}
_PUBLIC = {"source", "table", "public", "csv", *_OF_COLUMNS}
_PRIVATE = {*_PUBLIC, "unit", "row_level", "neighbours", *_OF_PEOPLE, *_OF_FURTHER_TABLES}


@dataclass(frozen=True)
class Described:
    """A table of the file: where it is, who it is about, and what its columns hold."""

    name: str
    source: str | Path
    """The path of a file, or the address of a server."""
    there: str
    """What the table is called on a server."""
    public: bool
    unit: Unit | None
    """None for public and for linked tables."""
    facts: dict[str, Any]
    csv: Csv | None = None
    """How CSV files are written, where it is declared."""

    @classmethod
    def of(cls, name: str, found: Any, folder: Path, server: str | None) -> Described:
        """A table that a document holds; `server` is where it is if it has no source."""
        at = f"tables.{name}"
        table = _mapping(at, found)
        public = table.get("public", False)
        _flag(f"{at}.public", public)
        _known(at, table, _PUBLIC if public else _PRIVATE)
        readers = {**_OF_COLUMNS, **_OF_PEOPLE, **_OF_FURTHER_TABLES}
        facts = {key: read(f"{at}.{key}", table[key]) for key, read in readers.items() if key in table}
        there = _text(f"{at}.table", table.get("table", name))
        given = _text(f"{at}.source", table.get("source", server if "table" in table else None))
        if not (folder / Path(given).expanduser()).exists():
            given = known_place(f"{at}.source", given, *schemes())
        source = given if is_on_server(given) else folder / Path(given).expanduser()
        if "table" in table and not is_on_server(source):
            raise InvalidArgument(f"{at}.table", there, "for a source on a server", "leave it out")
        unit = None if public or "link" in table else _unit(at, table)
        csv = _csv(f"{at}.csv", table["csv"]) if "csv" in table else None
        return cls(name, source, there, public, unit, facts, csv)

    def on(self, server: str) -> str:
        """What it is called on the server that has the first table."""
        if self.source != server:
            remedy = "load it into the database of the first table"
            raise InvalidArgument(
                f"tables.{self.name}.source", place_shown(self.source), f"on {place_shown(server)}", remedy
            )
        return self.there


@dataclass(frozen=True)
class Settings:
    """What the file says, checked: one data set with one budget."""

    path: Path
    budget: PureDP | ApproxDP | ZCDP
    first: Described | None
    """The private table that says who is protected; None before one is added."""
    others: tuple[Described, ...]
    """Further private tables about the same people, and public ones."""
    ledger: str | Path | None
    given: dict[str, Any]
    """Arguments of `connect` by name."""

    @classmethod
    def read(cls, path: Path) -> Settings:
        """The settings in a file."""
        return cls.of(document(path), path)

    @classmethod
    def of(cls, found: Mapping[str, Any], path: Path) -> Settings:
        """The settings a document holds."""
        _known(str(path), found, {*_FILE, *_OF_THE_FILE})
        listed = _mapping("tables", found.get("tables", {}))
        sources = [table.get("source") for table in listed.values() if isinstance(table, Mapping)]
        server = next((source for source in sources if is_on_server(source)), None)
        tables = [Described.of(name, table, path.parent, server) for name, table in listed.items()]
        first = next((table for table in tables if table.unit is not None), None)
        others = tuple(table for table in tables if table is not first)
        given = {key: read(key, found[key]) for key, read in _OF_THE_FILE.items() if key in found}
        if "key" in found:
            given["key"] = path.parent / Path(_text("key", found["key"])).expanduser()
        return cls(path, _budget(found.get("budget")), first, others, _ledger(found, path, first), given)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(table.name for table in ([self.first] if self.first else []) + list(self.others))

    @property
    def dataset(self) -> str:
        """What the data is called in the books."""
        return str(self.given.get("dataset", self._main.name))

    @property
    def server(self) -> str | None:
        """The address of the server that has the first table; None for files."""
        return self.first.source if self.first is not None and isinstance(self.first.source, str) else None

    @property
    def books(self) -> str | Path:
        """Where the ledger is."""
        if self.ledger is None and self.server is not None:
            remedy = 'write ledger = "books.ledger", or the address of a server that keeps the books'
            raise InvalidArgument("ledger", None, "named where the data is on a server", remedy)
        if self.ledger is None:
            raise self._without_a_table()
        return self.ledger

    def arguments(self, **others: Any) -> dict[str, Any]:
        """What `connect` is called with; `others` that are not None go before what the file says."""
        main, server = self._main, self.server
        if server is not None and (called := engine_for(server).table_name(main.there)) != main.name:
            remedy = f"write [tables.{called}]"
            raise InvalidArgument("tables", main.name, f"called like the table {main.there} on the server", remedy)
        stated = {
            "source": main.source,
            "table": main.name if server is None else main.there,
            "unit": main.unit,
            "budget": self.budget,
            "private": {table.name: _private(table, main) for table in self.others if not table.public},
            "public": {table.name: _source(table, main) for table in self.others if table.public},
            "ledger": self.books,
            **{key: fact for key, fact in main.facts.items() if key in _OF_PEOPLE},
            **{key: self._of_columns(key) for key in _OF_COLUMNS},
        }
        described = {table.name: table.csv for table in (main, *self.others) if table.csv is not None}
        stated |= {"csv": described} if described else {}
        return stated | self.given | {name: value for name, value in others.items() if value is not None}

    def _of_columns(self, key: str) -> dict[str, Any]:
        """Facts about columns: of the first table by their names, of public ones as table.column."""
        found = dict(self._main.facts.get(key, {}))
        for table in self.others:
            if table.public:
                found |= {f"{table.name}.{column}": fact for column, fact in table.facts.get(key, {}).items()}
        return found

    @property
    def _main(self) -> Described:
        if self.first is None:
            raise self._without_a_table()
        return self.first

    def _without_a_table(self) -> InvalidArgument:
        return InvalidArgument("tables", self.tables, "with a private one", "run discreet add FILE --unit COLUMN")


def _source(table: Described, main: Described) -> str | Path:
    """A further table as `connect` is told of it."""
    if isinstance(main.source, str):
        return table.on(main.source)
    if isinstance(table.source, str):
        remedy = "keep all tables on the server, or all in files"
        raise InvalidArgument(
            f"tables.{table.name}.source", place_shown(table.source), "a file, like the first table", remedy
        )
    return table.source


def _private(table: Described, main: Described) -> Any:
    """A further table about the same people."""
    from discreet.session.connect import Private

    unit = table.unit.column if isinstance(table.unit, User) else None
    if table.unit is not None and type(table.unit) is not type(main.unit):
        remedy = "name the column that tells people apart in all tables, or in none"
        raise InvalidArgument(f"tables.{table.name}.unit", unit, f"like that of {main.name}", remedy)
    return Private(_source(table, main), unit=unit, **table.facts)


def place_shown(source: str | Path) -> str:
    """A source as people are told: an address without user, password and options."""
    return f"{address_kind(source)}://{server_of(source)}" if isinstance(source, str) else str(source)


def find(start: Path, given: Path | None = None) -> Path:
    """The file that was named, or else the nearest one from `start` upwards."""
    if given is not None:
        path = given / FILE if given.is_dir() else given
        if not path.is_file():
            raise InvalidArgument("config", str(given), "an existing file", "run discreet init, or name another one")
        return path
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder / FILE
    raise InvalidArgument("config", str(start), f"in a folder with {FILE}, or below one", "run discreet init there")


def document(path: Path, text: str | None = None) -> dict[str, Any]:
    """The file, or the text it is to hold, as plain data with decimals kept exact."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8") if text is None else text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ArithmeticError) as reason:
        raise InvalidArgument("config", str(path), "TOML", f"correct it: {reason}") from None


def table_name(source: str | Path) -> str:
    """What a table is called unless it is named: its file's name up to the first dot."""
    return Path(source).name.split(".")[0]


def _known(where: str, found: Iterable[str], known: Iterable[str]) -> None:
    for key in found:
        if key not in known:
            raise InvalidArgument(f"a key of {where}", key, "a known one", nearest(key, sorted(known)))


def _ledger(found: Mapping[str, Any], path: Path, first: Described | None) -> str | Path | None:
    """Where the file says, or else where `connect` keeps the books of that source."""
    if keeps_books(found.get("ledger")):
        return str(found["ledger"])
    if "ledger" in found:
        return path.parent / Path(known_place("ledger", _text("ledger", found["ledger"]), "postgresql")).expanduser()
    if first is None or isinstance(first.source, str):
        return None
    resolved = first.source.resolve()
    return resolved.with_name(f"{resolved.name}.ledger")


def _budget(found: Any) -> PureDP | ApproxDP | ZCDP:
    if not isinstance(found, Mapping) or not {"epsilon", "rho"} & {*found}:
        remedy = "write [budget] with epsilon, and with delta for (ε, δ); or with rho for zCDP"
        raise InvalidArgument("budget", found, "stated", remedy)
    _known("budget", found, {"epsilon", "delta", "rho"})
    if "rho" in found:
        if len(found) > 1:
            raise InvalidArgument("budget", found, "in one definition", "write epsilon (and delta), or rho alone")
        return ZCDP(_number("budget.rho", found["rho"]))
    epsilon = _number("budget.epsilon", found["epsilon"])
    return PureDP(epsilon) if "delta" not in found else ApproxDP(epsilon, _number("budget.delta", found["delta"]))


def _unit(at: str, table: Mapping[str, Any]) -> Unit:
    neighbours = table.get("neighbours", "add_remove")
    rows = table.get("row_level", False)
    if not isinstance(rows, bool) or rows == ("unit" in table):
        remedy = 'write unit = "…", the column that tells people apart, or row_level = true'
        raise InvalidArgument(f"{at}.unit", table.get("unit"), "named, unless each row is a person", remedy)
    return Row(neighbours=neighbours) if rows else User(_text(f"{at}.unit", table["unit"]), neighbours=neighbours)

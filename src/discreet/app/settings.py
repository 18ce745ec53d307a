"""The file discreet.toml: what the steward declares once, so that a question needs nothing but its SQL.

It is searched for from the current folder upwards; paths in it are relative to it. Numbers may be written as TOML
numbers or as text and are read exactly.

>>> settings = Settings.of({
...     "budget": {"epsilon": 3, "delta": "1e-6"},
...     "tables": {"visits": {"source": "visits.csv", "unit": "patient", "bounds": {"age": [0, 120]}}},
... }, Path("/data/discreet.toml"))
>>> settings.ledger.as_posix(), settings.arguments()["unit"], settings.arguments()["bounds"]
('/data/visits.csv.ledger', User(neighbours='add_remove', column='patient'), {'age': (0, 120)})

One private table, with any number of public ones, is one data set with one budget.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.units import Row, Unit, User
from discreet.sql.catalog import nearest

__all__ = ["FILE", "Settings", "document", "find", "table_name"]

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
        found[column] = [float(item) if isinstance(item, Decimal) else item for item in items]
    return found


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(key, value, "a table of TOML", f"write it under [{key}]")
    return value


# Keys of the file that are arguments of `connect` by the same name, and how they are read.
_OF_A_TABLE: dict[str, Callable[[str, Any], Any]] = {"bounds": _ends, "values": _lists, "max_rows": _whole}
_OF_THE_FILE: dict[str, Callable[[str, Any], Any]] = {"study": _text, "analyst": _text}
# Keys with a meaning of their own.
_PRIVATE = {"source", "public", "unit", "row_level", "neighbours"}
_PUBLIC = {"source", "public"}
_FILE = {"tables", "budget", "ledger"}


@dataclass(frozen=True)
class Settings:
    """What the file says, checked."""

    path: Path
    budget: PureDP | ApproxDP
    table: str | None
    """The private table; None before one is added."""
    source: Path | None
    unit: Unit | None
    public: dict[str, Path]
    ledger: Path | None
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
        tables = {name: _mapping(f"tables.{name}", table) for name, table in listed.items()}
        private = [name for name, table in tables.items() if not _is_public(name, table)]
        if len(private) > 1:
            remedy = "keep the others in folders of their own, each with its own budget, or mark them public"
            raise InvalidArgument("tables", private, "one private table", remedy)
        given = {key: read(key, found[key]) for key, read in _OF_THE_FILE.items() if key in found}
        public = {name: _source(name, table, path) for name, table in tables.items() if name not in private}
        budget = _budget(found.get("budget"))
        if not private:
            return cls(path, budget, None, None, None, public, _ledger(found, path, None), given)
        [name] = private
        table, at = tables[name], f"tables.{name}"
        _known(at, table, {*_PRIVATE, *_OF_A_TABLE})
        given |= {key: read(f"{at}.{key}", table[key]) for key, read in _OF_A_TABLE.items() if key in table}
        source = _source(name, table, path)
        return cls(path, budget, name, source, _unit(at, table), public, _ledger(found, path, source), given)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return (*([self.table] if self.table else []), *self.public)

    @property
    def books(self) -> Path:
        """Where the ledger is."""
        if self.ledger is None:
            raise self._without_a_table()
        return self.ledger

    def arguments(self, **others: Any) -> dict[str, Any]:
        """What `connect` is called with; `others` that are not None go before what the file says."""
        if self.table is None:
            raise self._without_a_table()
        stated = {
            "source": self.source,
            "table": self.table,
            "unit": self.unit,
            "budget": self.budget,
            "public": self.public,
            "ledger": self.ledger,
        }
        return stated | self.given | {name: value for name, value in others.items() if value is not None}

    def _without_a_table(self) -> InvalidArgument:
        return InvalidArgument("tables", [], f"in {self.path}", "run discreet add FILE --unit COLUMN")


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


def table_name(source: Path) -> str:
    """What a table is called unless it is named: its file's name up to the first dot."""
    return source.name.split(".")[0]


def _known(where: str, found: Iterable[str], known: Iterable[str]) -> None:
    for key in found:
        if key not in known:
            raise InvalidArgument(f"a key of {where}", key, "a known one", nearest(key, sorted(known)))


def _is_public(name: str, table: Mapping[str, Any]) -> bool:
    public = table.get("public", False)
    if not isinstance(public, bool):
        raise InvalidArgument(f"tables.{name}.public", public, "true or false", "write it without quotes")
    if public:
        _known(f"tables.{name}", table, _PUBLIC)
    return public


def _source(name: str, table: Mapping[str, Any], path: Path) -> Path:
    return path.parent / Path(_text(f"tables.{name}.source", table.get("source"))).expanduser()


def _ledger(found: Mapping[str, Any], path: Path, source: Path | None) -> Path | None:
    """Where the file says, or else where `connect` keeps the books of that source."""
    if "ledger" in found:
        return path.parent / Path(_text("ledger", found["ledger"])).expanduser()
    if source is None:
        return None
    resolved = source.resolve()
    return resolved.with_name(f"{resolved.name}.ledger")


def _budget(found: Any) -> PureDP | ApproxDP:
    if not isinstance(found, Mapping) or "epsilon" not in found:
        raise InvalidArgument("budget", found, "stated", "write [budget] with epsilon, and with delta for (ε, δ)")
    _known("budget", found, {"epsilon", "delta"})
    epsilon = _number("budget.epsilon", found["epsilon"])
    return PureDP(epsilon) if "delta" not in found else ApproxDP(epsilon, _number("budget.delta", found["delta"]))


def _unit(at: str, table: Mapping[str, Any]) -> Unit:
    neighbours = table.get("neighbours", "add_remove")
    rows = table.get("row_level", False)
    if not isinstance(rows, bool) or rows == ("unit" in table):
        remedy = 'write unit = "…", the column that tells people apart, or row_level = true'
        raise InvalidArgument(f"{at}.unit", table.get("unit"), "named, unless each row is a person", remedy)
    return Row(neighbours=neighbours) if rows else User(_text(f"{at}.unit", table["unit"]), neighbours=neighbours)

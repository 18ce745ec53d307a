"""Neighbouring tables made up from what a steward declares: nothing is read off private rows.

`Maker` knows a catalog and the unit that is protected. Its tables keep to types and, in tame ones, to declared values,
bounds and numbers of rows; values that a question names are among them, so that its filters let rows through. Odd ones
hold NaN, infinities, the ends of 64 bits and of decimals, dates long ago, texts that look like numbers, and more rows
than declared: a guarantee holds for these too. Two neighbours differ in one unit, made to move an answer as far as it
can (`PROFILES`); the second has its rows in another order.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.core.units import Row as RowUnit
from discreet.core.units import Unit
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import permutation, uniform
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.decimals import Decimals

__all__ = ["OBJECTS", "PROFILES", "Data", "Maker"]

Data = dict[str, list[dict[str, Any]]]
PROFILES = ("most", "least", "beyond", "everywhere", "nowhere else", "absent", "odd", "alone", "of other types")
"""One unit's rows: all with the largest values, or the smallest, or far beyond what is declared, spread over all
groups, in groups of their own, of NULLs, of odd values, the only ones there are, or of Python objects that are no texts
in columns of texts, where those of all others are texts of a class of their own."""
OBJECTS = "of other types"
PEOPLE = 24
HEAVY = 40
"""Rows of the unit that differs, where no limit is declared."""
_DAY, _MOMENT = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12)
_TYPICAL: dict[str, tuple[Any, ...]] = {
    "integer": (1, 2, 3, 5, 8, 0),
    "real": (1.0, 0.5, 2.25, 8.0, 0.0),
    "boolean": (True, False),
    "text": ("a", "b", "c", ""),
    "date": tuple(_DAY + datetime.timedelta(days=40 * place) for place in range(6)),
    "timestamp": tuple(_MOMENT + datetime.timedelta(days=40 * place) for place in range(6)),
}
_ODD: dict[str, tuple[Any, ...]] = {
    "integer": (-(2**63), 2**63 - 1, -1, 2**53 + 1, 10**12),
    "real": (math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, 1e16),
    "boolean": (True, False),
    "text": (" ", "it's", "日本語", "nan", "1e3", "2020-02-30", "%", "9" * 25),
    "date": (datetime.date(1, 1, 1), datetime.date(1582, 10, 15), datetime.date(9999, 12, 31)),
    "timestamp": (datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)),
}


@dataclass
class Maker:
    """Tables for a catalog; `named` are values that questions name, by column."""

    catalog: Catalog
    unit: Unit
    named: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    public: Data = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        self._entropy = Entropy.for_tests(self.seed)
        self._drawn: list[int] = []

    def pair(self, profile: str) -> tuple[Data, Data]:
        """Two neighbours that differ in the unit of a profile."""
        others = self._others(odd=profile == "odd") if profile != "alone" else {t.name: [] for t in self._private}
        mine = self._added(others, profile if profile != "alone" else "most")
        if profile == OBJECTS:
            others, mine = self._as_objects(others, others), self._as_objects(mine, others)
        if self.unit.neighbours == "replace":
            other = "least" if profile != "least" else "most"
            return mine, self._shuffled(self._added(others, other))
        return mine, self._shuffled(others)

    def _as_objects(self, data: Data, others: Data) -> Data:
        """The same with texts as objects: strange ones in rows that others do not have."""
        made: Data = {}
        for table in self._private:
            texts = [c.name for c in table.columns if c.type == "text" and not _is_key(table, c.name, self.catalog)]
            known = {id(row) for row in others[table.name]}
            made[table.name] = [
                row | {name: _Text(row[name]) if row[name] is not None else None for name in texts}
                if id(row) in known
                else row | {name: (bytearray(b"x"), object(), 1.5)[place % 3] for name in texts}
                for place, row in enumerate(data[table.name])
            ]
        return made

    @property
    def _private(self) -> list[Table]:
        return [table for table in self.catalog.tables if table.private]

    def _others(self, odd: bool) -> Data:
        """People whose rows are the same on both sides."""
        data: Data = {table.name: [] for table in self._private}
        for person in range(PEOPLE):
            for table in self._owners:
                most = table.max_rows or 3
                for _ in range(1 + self._below(min(most, 3))):
                    data[table.name].append(self._row(table, person, odd=odd))
        self._link(data, odd)
        return data

    def _added(self, others: Data, profile: str) -> Data:
        """The same with one more unit: where rows are units, one more row, which is in the first table and in all that
        are not declared disjoint, for they may be the same table under other names."""
        data = {name: [*rows] for name, rows in others.items()}
        mine: Data = {name: [] for name in data}
        if isinstance(self.unit, RowUnit):
            first, *more = self._owners
            row = self._own_row(first, profile, 0)
            mine[first.name] = [row]
            for table in more if not first.disjoint else []:
                copy = {**self._own_row(table, profile, 0), **row}
                mine[table.name] = [] if table.disjoint else [{name: copy[name] for name in table.names}]
        for table in self._owners if not isinstance(self.unit, RowUnit) else []:
            number = table.max_rows or HEAVY
            extra = 3 if profile == "odd" and number > 1 else 0
            mine[table.name] = [self._own_row(table, profile, place) for place in range(number + extra)]
        self._link(mine, odd=profile == "odd", start=10_000)
        return {name: data[name] + mine[name] for name in data}

    def _shuffled(self, data: Data) -> Data:
        orders = {name: permutation(len(rows), entropy=self._entropy).tolist() for name, rows in data.items()}
        return {name: [data[name][place] for place in order] for name, order in orders.items()}

    @property
    def _owners(self) -> list[Table]:
        """Tables whose rows say themselves whose they are."""
        return [table for table in self._private if table.link is None]

    def _row(self, table: Table, person: int, odd: bool) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for column in table.columns:
            pool = self._pool(column)
            value = pool[self._below(len(pool))]
            if odd and self._below(3) == 0:
                odd_ones = _odd(column)
                value = odd_ones[self._below(len(odd_ones))]
            row[column.name] = None if self._below(12) == 0 else value
        if table.unit is not None:
            row[table.column(table.unit).name] = _person(table.column(table.unit), person)
        return row

    def _own_row(self, table: Table, profile: str, place: int) -> dict[str, Any]:
        row = {column.name: self._own(column, profile, place) for column in table.columns}
        if table.unit is not None:
            row[table.column(table.unit).name] = _person(table.column(table.unit), PEOPLE + 7)
        return row

    def _own(self, column: Column, profile: str, place: int) -> Any:
        """The value of a column in one of the rows of the unit that differs."""
        pool = self._pool(column)
        named = self._named(column)
        if profile == "odd" and (column.values is None or place % 4 == 3):
            choices = (*_odd(column), None)
            return choices[(place + self._below(2)) % len(choices)]
        if profile in ("everywhere", "odd"):
            return pool[place % len(pool)]
        if profile == "absent":
            return None if self._below(2) else pool[place % len(pool)]
        if profile == "nowhere else" and column.values is None and column.bounds is None:
            return _new(column, place)
        if column.bounds is not None and column.values is None:
            end = column.bounds.upper if profile != "least" else column.bounds.lower
            if profile == "beyond":
                end += 1000 * (column.bounds.upper - column.bounds.lower)
            return _fitted(column, end)
        return named[0] if named else (pool[0] if profile != "least" else pool[-1])

    def _pool(self, column: Column) -> tuple[Any, ...]:
        """Values that the column may hold."""
        if column.values is not None:
            listed = [value for value in column.values.values if value is not None]
            decimal = isinstance(column.type, Decimals)
            return tuple(_fitted(column, value) if decimal else value for value in listed) or (None,)
        pool = _typical(column)
        if column.bounds is not None:
            low, high = column.bounds.lower, column.bounds.upper
            pool = tuple(_fitted(column, end) for end in (high, low, (low + high) / 2, low + (high - low) / 4))
        found = (*self._named(column), *pool)
        whole = column.type == "integer" or isinstance(column.type, Decimals)
        return tuple(dict.fromkeys(_fitted(column, value) for value in found)) if whole else found

    def _named(self, column: Column) -> tuple[Any, ...]:
        named = self.named.get(column.name.lower(), ())
        if isinstance(column.type, Decimals):
            numbers = (v for v in named if isinstance(v, int | float | Decimal | Fraction) and math.isfinite(v))
            return tuple(dict.fromkeys(_fitted(column, number) for number in numbers))
        known = {"integer": int, "real": (int, float), "boolean": bool, "text": str}
        kind: Any = known.get(column.type, datetime.date if column.type == "date" else datetime.datetime)
        return tuple(value for value in named if isinstance(value, kind))

    def _link(self, data: Data, odd: bool, start: int = 0) -> None:
        """Rows of linked tables, one or two for each row that they belong to, which gets a key of its own."""
        for table in self._private:
            if table.link is None:
                continue
            parent = self.catalog.table(table.link.table)
            key, own = parent.column(table.link.key), table.column(table.link.column).name
            for place, row in enumerate(data[parent.name]):
                row[key.name] = _person(key, start + place)
                for _ in range(1 + self._below(2)):
                    data[table.name].append({**self._row(table, 0, odd), own: row[key.name]})

    def _below(self, end: int) -> int:
        """A choice among a few; that some are likelier by 2⁻⁵⁰ matters to nobody."""
        if not self._drawn:
            self._drawn = uniform(1 << 60, 4096, entropy=self._entropy).tolist()
        return self._drawn.pop() % end


class _Text(str):
    """A text that is written otherwise than it is."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self[:]}"


def _is_key(table: Table, name: str, catalog: Catalog) -> bool:
    """Whether the column tells units apart or links tables."""
    linked = {t.link.key.lower() for t in catalog.tables if t.link is not None}
    own = {part.lower() for part in (table.unit, table.link.column if table.link is not None else None) if part}
    return name.lower() in own | linked


def _typical(column: Column) -> tuple[Any, ...]:
    """Values that a column without declarations may hold."""
    kind = column.type
    if isinstance(kind, Decimals):
        return tuple(dict.fromkeys(_fitted(column, value) for value in (1, kind.unit, 7 * kind.unit, 8, 0, -kind.unit)))
    return _TYPICAL[kind]


def _odd(column: Column) -> tuple[Any, ...]:
    """Values at the ends of a type, and strange ones; for decimals one unit, and whole numbers of units at the ends of
    the precision, of 64 bits and of what doubles hold."""
    kind = column.type
    if isinstance(kind, Decimals):
        ends = (kind.most, -kind.most, kind.unit, -kind.unit, kind.most - kind.unit)
        counts = (2**53 + 1, 2**63 - 1, -(2**63))
        return tuple(dict.fromkeys(_fitted(column, end) for end in (*ends, *(count * kind.unit for count in counts))))
    return _ODD[kind]


def _fitted(column: Column, value: Any) -> Any:
    """A number in the type of a column: decimals in whole units, no larger than the type holds."""
    kind = column.type
    if not isinstance(kind, Decimals):
        return int(value) if kind == "integer" else float(value)
    units = round(max(-kind.most, min(kind.most, Fraction(value))) / kind.unit)
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -kind.scale))


def _person(column: Column, number: int) -> Any:
    """A value that stands for one person, or one row."""
    if isinstance(column.type, Decimals):
        return _fitted(column, (number + 1) * column.type.unit)
    if column.type == "text":
        return f"p{number}"
    if column.type == "date":
        return _DAY + datetime.timedelta(days=number)
    if column.type == "timestamp":
        return _MOMENT + datetime.timedelta(days=number)
    return number % 2 == 0 if column.type == "boolean" else number + 1


def _new(column: Column, place: int) -> Any:
    """A value that nobody else has."""
    return _person(column, 900_000 + place % 3) if column.type != "boolean" else True


def arrow(table: Table, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows as an Arrow table with the types of the catalog."""
    import pyarrow as pa

    kinds: dict[str, Any] = {"integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
    kinds |= {"date": pa.date32(), "timestamp": pa.timestamp("us")}
    decimals = {column.type for column in table.columns if isinstance(column.type, Decimals)}
    kinds |= {kind: pa.decimal128(kind.precision, kind.scale) for kind in decimals}
    listed = list(rows)
    if any(type(value) in (_Text, bytearray, object) for row in listed for value in row.values()):
        arrays = {c.name: [row[c.name] for row in listed] for c in table.columns if c.type == "text"}
        typed = [c for c in table.columns if c.name not in arrays]
        others = {c.name: pa.array(_values(c, listed), kinds[c.type]) for c in typed}
        return {name: (arrays | others)[name] for name in table.names}
    return pa.table({c.name: pa.array(_values(c, listed), kinds[c.type]) for c in table.columns})


def _values(column: Column, rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The values of a column; decimals of public tables come as doubles."""
    found = [row[column.name] for row in rows]
    if not isinstance(column.type, Decimals):
        return found
    return [None if value is None else _fitted(column, value) for value in found]

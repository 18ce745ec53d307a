"""Tables of people as attacks read them: columns of texts, coded by number, rows grouped by what they share.

Values are compared as texts, so that 35 in one file and "35" in another are the same.

>>> records = Records.read({"age": [35, 35, 61], "sex": ["F", "F", "M"]})
>>> len(records), records.names, records.column("age")
(3, ('age', 'sex'), ['35', '35', '61'])
>>> records.groups(["age", "sex"]).tolist()
[0, 0, 1]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.reconstruction.published_tables import columns_of
from discreet.core.errors import InvalidArgument

__all__ = ["Records", "numbers"]

Codes = NDArray[np.int64]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Records:
    """A table with one row for each record."""

    columns: Mapping[str, Sequence[Any]] = field(repr=False)
    name: str = "table"

    @classmethod
    def read(cls, source: Any, name: str = "table") -> Records:
        """From a CSV or Parquet file, a frame of pandas, Polars or Arrow, or a dict of columns."""
        if isinstance(source, Records):
            return source
        if isinstance(source, str | Path):
            path = Path(source)
            if not path.is_file():
                raise InvalidArgument(name, str(path), "a CSV or Parquet file", "name one that exists")
            name = path.name
            if path.suffix == ".parquet":
                import pyarrow.parquet

                source = pyarrow.parquet.read_table(path)
        columns = columns_of(name, source)
        if not next(iter(columns.values()), []):
            raise InvalidArgument(name, "no rows", "a table with rows", "give some")
        return cls(columns, name)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self.columns)

    def column(self, name: str) -> list[str]:
        """One column as texts."""
        return [_text(value) for value in self.columns[self.having([name])[0]]]

    def having(self, names: Sequence[str]) -> list[str]:
        """These names, if the table has them all."""
        listed = [names] if isinstance(names, str) else list(names)
        missing = [name for name in listed if name not in self.columns]
        if missing or not listed:
            wanted = f"columns of {self.name}: {', '.join(self.columns)}"
            raise InvalidArgument("columns", missing or listed, wanted, "name columns that it has")
        return listed

    def without(self, names: Sequence[str]) -> Records:
        """The other columns."""
        return Records({name: column for name, column in self.columns.items() if name not in names}, self.name)

    def codes(self, name: str) -> Codes:
        """A number for each value of a column, from 0."""
        if name not in self._codes:
            _, found = np.unique(np.array(self.column(name), dtype=str), return_inverse=True)
            self._codes[name] = found.astype(np.int64).reshape(-1)
        return self._codes[name]

    @cached_property
    def _codes(self) -> dict[str, Codes]:
        return {}

    def groups(self, names: Sequence[str]) -> Codes:
        """For each row the number of its group: rows with the same values in all these columns."""
        found = np.zeros(len(self), np.int64)
        for name in self.having(names):
            codes = self.codes(name)
            _, found = np.unique(found * (int(codes.max()) + 1) + codes, return_inverse=True)
        return found.astype(np.int64).reshape(-1)


def numbers(values: Sequence[Any]) -> Doubles:
    """Values as numbers, NaN where they are none."""

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return float("nan")

    return np.array([number(value) for value in values], np.float64)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return "" if value is None else str(value)

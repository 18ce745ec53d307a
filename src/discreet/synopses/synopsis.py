"""Synopses: what answers many queries once it was built privately; everything here is post-processing.

    Weights    a fractional database: answers every linear query over its domain, and can be drawn as a table
    Answers    answers just the queries it was built for
    MedianOf   the median of what several synopses answer, query by query

>>> from discreet.synopses.domain import Attribute
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute("smokes", (False, True))))
>>> synopsis = Weights(domain, [30.2, 9.8, 40.0, 20.0])
>>> synopsis.answers(Workload.marginals(domain, [("sex",)])).tolist()
[40.0, 60.0]
>>> len(synopsis.table()), synopsis.accuracy(0.05)
(100, inf)

`accuracy(beta)` is what was proven before anything was drawn: with probability 1 − β every query of the workload a
synopsis was built for is within so many counts of the truth; ∞ where nothing is known. Saved synopses are zip files of
numpy arrays with a JSON header; reading one runs nothing that it holds. They keep `accuracy` for β = 2^(−j/8), and
answer with the next smaller of these.
"""

from __future__ import annotations

import json
import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from zipfile import BadZipFile

import numpy as np

from discreet.core.display.text import csv_cell, visible
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, probability
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.uniform import permutation, uniform
from discreet.synopses.domain import Domain
from discreet.synopses.queries.factors import Doubles
from discreet.synopses.queries.workload import Workload

__all__ = ["Answers", "MedianOf", "Synopsis", "SyntheticTable", "Weights", "load"]

Error = Callable[[float], float]
"""From β to a distance in counts."""
_FORMAT, _VERSION = "discreet synopsis", 1
_BETAS = tuple(2.0 ** (-j / 8) for j in range(1, 321))


@runtime_checkable
class Synopsis(Protocol):
    """Answers linear queries over its domain."""

    @property
    def domain(self) -> Domain:
        """What the queries are about."""

    def answers(self, workload: Workload) -> Doubles:
        """Counts, one for each query; refused for queries that it was not built for and cannot answer."""

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β every query it was built for is within this; ∞ where nothing is known."""

    def save(self, path: str | Path) -> Path:
        """Write it down for `load`."""


class _Saved(ABC):
    """What all synopses share: how wrong they are, and how they are kept."""

    error: Error | None

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β every query it was built for is within this; ∞ where nothing is known."""
        tail = probability("beta", beta)
        return math.inf if self.error is None else float(self.error(float(tail)))

    def save(self, path: str | Path) -> Path:
        """Write it down for `load`; the name ends in .npz."""
        target = Path(path)
        if target.suffix != ".npz":
            raise InvalidArgument("path", str(path), "a name that ends in .npz", "add .npz")
        header, arrays = self._packed()
        text = json.dumps({"format": _FORMAT, "version": _VERSION, **header})
        with target.open("wb") as file:
            np.savez_compressed(file, header=np.array(text), **arrays)
        return target

    @abstractmethod
    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A header and arrays."""

    def _errors(self) -> dict[str, Any]:
        return {} if self.error is None else {"errors": np.array([self.error(beta) for beta in _BETAS])}


@dataclass(frozen=True, eq=False)
class Weights(_Saved):
    """A fractional database: a weight of at least 0 for every cell, in records."""

    domain: Domain
    weights: Doubles = field(repr=False)
    error: Error | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64).reshape(-1)
        if weights.size != self.domain.dense() or not np.isfinite(weights).all() or (weights < 0).any():
            found = f"{weights.size} weights"
            raise InvalidArgument("weights", found, f"{self.domain.size} numbers from 0", "give one for each cell")
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @cached_property
    def total(self) -> float:
        """How many records it stands for."""
        return float(self.weights.sum())

    def answers(self, workload: Workload) -> Doubles:
        """Counts, one for each query."""
        return _over(self.domain, workload).answers(self.weights)

    def table(self, rows: int | None = None, *, entropy: Entropy | None = None) -> SyntheticTable:
        """A table of so many rows (by default as many as it stands for), in random order.

        Cells get their share of the rows rounded up or down by one common draw, so that no sum of neighbouring cells
        is off by more than a row.
        """
        source = chosen(entropy)
        many = max(1, round(self.total)) if rows is None else natural("rows", rows)
        start = float(uniform(1 << 53, entropy=source)) * 2.0**-53
        ends = np.cumsum(self.weights)
        if ends[-1] <= 0:
            ends = np.arange(1.0, self.domain.size + 1)
        ticks = np.floor(ends * (many / ends[-1]) + start)
        ticks[-1] = many
        counts = np.diff(np.minimum(ticks, many), prepend=0.0).astype(np.int64)
        cells = np.repeat(np.arange(self.domain.size), counts)[permutation(many, entropy=source)]
        return SyntheticTable(self.domain.decode(cells, source))

    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"kind": "weights", "domain": self.domain.to_json()}, {"weights": self.weights, **self._errors()}

    @classmethod
    def _unpacked(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Weights:
        return cls(Domain.from_json(header["domain"]), arrays["weights"], _revived(arrays))


@dataclass(frozen=True, eq=False)
class Answers(_Saved):
    """One number for each query it was built for."""

    workload: Workload
    values: Doubles = field(repr=False)
    error: Error | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64).reshape(-1)
        if values.size != len(self.workload):
            found = f"{values.size} numbers"
            raise InvalidArgument("values", found, f"{len(self.workload)}", "give one for each query")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def domain(self) -> Domain:
        """What the queries are about."""
        return self.workload.domain

    def answers(self, workload: Workload | None = None) -> Doubles:
        """Counts, one for each query; the queries must be the ones it was built for, or some of them."""
        if workload is None or workload is self.workload:
            return self.values
        _over(self.domain, workload)
        return self.values[[self._place(key) for key in _keys(workload)]]

    def _place(self, key: bytes) -> int:
        if key not in self._places:
            raise InvalidArgument("workload", "another query", "one it was built for", "use a synopsis with weights")
        return self._places[key]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {key: place for place, key in enumerate(_keys(self.workload))}

    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        record, arrays = self.workload.packed()
        own = {f"workload/{name}": part for name, part in arrays.items()}
        return {"kind": "answers", "workload": record}, {"values": self.values, **own, **self._errors()}

    @classmethod
    def _unpacked(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Answers:
        workload = Workload.unpacked(header["workload"], _within("workload", arrays))
        return cls(workload, arrays["values"], _revived(arrays))


@dataclass(frozen=True, eq=False)
class MedianOf(_Saved):
    """The median of several synopses over one domain, query by query."""

    synopses: tuple[Weights | Answers, ...]
    error: Error | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "synopses", tuple(self.synopses))
        if not self.synopses or any(a.domain != b.domain for a, b in pairwise(self.synopses)):
            found = f"{len(self.synopses)} synopses"
            raise InvalidArgument("synopses", found, "one or more over one domain", "build them over one Domain")

    @property
    def domain(self) -> Domain:
        """What the queries are about."""
        return self.synopses[0].domain

    def answers(self, workload: Workload) -> Doubles:
        """Counts, one for each query."""
        return np.median(np.stack([synopsis.answers(workload) for synopsis in self.synopses]), axis=0)

    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        packed = [synopsis._packed() for synopsis in self.synopses]
        own = {f"{n}/{name}": part for n, (_, arrays) in enumerate(packed) for name, part in arrays.items()}
        return {"kind": "median", "synopses": [header for header, _ in packed]}, {**own, **self._errors()}

    @classmethod
    def _unpacked(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> MedianOf:
        entries = [(entry, _within(str(n), arrays)) for n, entry in enumerate(header["synopses"])]
        parts = [_KINDS[entry["kind"]]._unpacked(entry, own) for entry, own in entries]
        return cls(tuple(part for part in parts if isinstance(part, Weights | Answers)), _revived(arrays))


_KINDS: dict[str, type[Weights] | type[Answers] | type[MedianOf]] = {
    "weights": Weights,
    "answers": Answers,
    "median": MedianOf,
}


def load(path: str | Path) -> Weights | Answers | MedianOf:
    """The synopsis that `save` wrote; other files are refused."""
    refusal = InvalidArgument("path", str(path), "a saved synopsis", "give a file that Synopsis.save wrote")
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
        known = header["format"] == _FORMAT and isinstance(header["version"], int)
    except FileNotFoundError:
        raise InvalidArgument("path", str(path), "a file that exists", "check the name") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, BadZipFile, zlib.error, RuntimeError):
        raise refusal from None  # RuntimeError: parts that are encrypted or packed in ways nobody unpacks
    if not known:
        raise refusal
    if header["version"] > _VERSION:
        raise InvalidArgument("version", header["version"], f"at most {_VERSION}", "read it with a newer discreet")
    try:
        return _KINDS[header["kind"]]._unpacked(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise refusal from None


@dataclass(frozen=True)
class SyntheticTable:
    """Rows that nobody has, by columns."""

    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"SyntheticTable({len(self):,} rows of {visible(', '.join(self.columns))})"

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        import pyarrow as pa

        return pa.table({name: _arrow(pa, column) for name, column in self.columns.items()})

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def write(self, path: str | Path) -> Path:
        """A Parquet or a CSV file, by the ending of the name; in CSV a text that a spreadsheet would compute (it begins
        with `=`, `+`, `-` or `@`, and is no number) has an apostrophe before it."""
        target = Path(path)
        if target.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(self.to_arrow(), target)
        elif target.suffix == ".csv":
            from pyarrow import csv

            table = self.to_arrow()
            for place, field in enumerate(table.schema):
                if str(field.type).endswith("string"):
                    guarded = [csv_cell(value) for value in table.column(place).to_pylist()]
                    table = table.set_column(place, field.name, [guarded])
            csv.write_csv(table.rename_columns([*map(csv_cell, table.column_names)]), target)
        else:
            raise InvalidArgument("path", str(path), "a name that ends in .parquet or .csv", "add one of the two")
        return target


def _arrow(pa: Any, column: Sequence[Any]) -> Any:
    """One column; texts where its values are of several kinds."""
    kinds = {type(value) for value in column if value is not None}
    return pa.array(column if len(kinds) <= 1 else [None if value is None else str(value) for value in column])


def _over(domain: Domain, workload: Workload) -> Workload:
    if not isinstance(workload, Workload) or workload.domain != domain:
        raise InvalidArgument("workload", workload, "over the domain of the synopsis", "build it over synopsis.domain")
    return workload


def _keys(workload: Workload) -> list[bytes]:
    """What tells queries apart: the cells they weigh, and how."""
    supports = (workload.support(index) for index in range(len(workload)))
    return [cells.tobytes() + b"|" + weights.tobytes() for cells, weights in supports]


def _within(start: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(f"{start}/"): part for name, part in arrays.items() if name.startswith(f"{start}/")}


def _revived(arrays: Mapping[str, Any]) -> Error | None:
    """The bound at the next smaller β that was written down."""
    if "errors" not in arrays:
        return None
    errors = arrays["errors"].tolist()
    if len(errors) != len(_BETAS):
        raise InvalidArgument("errors", f"{len(errors)} numbers", f"{len(_BETAS)}", "give a file that save wrote")

    def error(beta: float) -> float:
        place = max(0, math.ceil(-8 * math.log2(beta)) - 1)
        return float(errors[place]) if place < len(errors) else math.inf

    return error

"""Whatever a mechanism gives back, as tables of plain columns.

An output may be a number, text, None, a tuple, a dictionary, an array, a Release (its values and its stated loss)
or an exception (its type and its text: what an error says is as public as an answer). Outputs of the same *kind*
(type, shape, keys) have the same columns, so each kind becomes one table of int64, float64 or text columns.

>>> outcomes = encode([1.5, 2.5, None, ValueError("no rows")])
>>> sorted(outcomes.tables)
['None', 'float', 'raises ValueError']
>>> outcomes.tables["float"].columns[0]
array([1.5, 2.5])
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument
from discreet.core.mechanism import Release

__all__ = ["Column", "Outcomes", "Table", "encode", "table_of"]

Column = NDArray[Any]
_LONG_TEXT = 64
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, eq=False)
class Table:
    """Outputs of one kind: one row each."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: int

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """Which columns hold numbers."""
        return tuple(i for i, column in enumerate(self.columns) if column.dtype.kind in "if")

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The numeric columns side by side, as doubles."""
        if not self.numeric:
            return np.empty((self.rows, 0))
        return np.column_stack([self.columns[i].astype(np.float64, copy=False) for i in self.numeric])


@dataclass(frozen=True, eq=False)
class Outcomes:
    """All outputs of some runs, sorted into tables; `positions[kind]` are the runs that gave that kind."""

    size: int
    tables: Mapping[str, Table]
    positions: Mapping[str, NDArray[np.intp]]
    extra: Mapping[str, Table] = field(default_factory=dict)

    def kinds(self, known: Sequence[str]) -> NDArray[np.intp]:
        """For each run the index of its kind in `known`, or len(known)."""
        codes = np.full(self.size, len(known), np.intp)
        for code, kind in enumerate(known):
            if kind in self.positions:
                codes[self.positions[kind]] = code
        return codes


Features = Mapping[str, Callable[[Any], Any]]


def encode(outputs: Any, features: Features | None = None) -> Outcomes:
    """The tables of a list of outputs, or of an array whose first axis counts the outputs."""
    extra = {name: table_of(np.asarray(read(outputs)), name) for name, read in (features or {}).items()}
    if isinstance(outputs, np.ndarray) and outputs.dtype != object:
        return _one_kind(_array_kind(outputs.dtype, outputs.shape[1:]), table_of(outputs), extra)
    outputs = list(outputs)
    if outputs and all(isinstance(output, Release) for output in outputs):
        terms = {_terms_of(output) for output in outputs}
        if len(terms) == 1:
            inner = encode([output.values for output in outputs])
            renamed = {kind: f"{kind} for {min(terms)}" for kind in inner.tables}
            tables = {renamed[kind]: table for kind, table in inner.tables.items()}
            return Outcomes(inner.size, tables, {renamed[k]: at for k, at in inner.positions.items()}, extra)
    alike = _alike(outputs)
    if alike is not None:
        return _one_kind(*alike, extra)
    leaves: dict[str, list[tuple[Any, ...]]] = {}
    positions: dict[str, list[int]] = {}
    for index, output in enumerate(outputs):
        kind, parts = _parts(output)
        leaves.setdefault(kind, []).append(parts)
        positions.setdefault(kind, []).append(index)
    tables = {kind: _table_of_leaves(rows) for kind, rows in leaves.items()}
    return Outcomes(len(outputs), tables, {k: np.array(v, np.intp) for k, v in positions.items()}, extra)


def table_of(array: NDArray[Any], name: str = "output") -> Table:
    """The table of an array whose first axis counts the outputs."""
    rows = len(array)
    if array.dtype.names:
        parts = [table_of(array[key], f"{name}.{key}") for key in array.dtype.names]
        names = tuple(n for part in parts for n in part.names)
        return Table(names, tuple(c for part in parts for c in part.columns), rows)
    if array.dtype.kind == "c":
        parts = [table_of(array.real, f"real part of {name}"), table_of(array.imag, f"imaginary part of {name}")]
        return Table(parts[0].names + parts[1].names, parts[0].columns + parts[1].columns, rows)
    flat = _plain(array).reshape(rows, -1) if array.ndim > 1 else _plain(array)[:, None]
    places = [list(place) for place in np.ndindex(array.shape[1:])]
    shift = " − 2^63" if array.dtype.kind == "u" and array.dtype.itemsize == 8 else ""
    names = tuple(f"{name}{place or ''}{shift}" for place in places)
    return Table(names, tuple(flat[:, i] for i in range(len(places))), rows)


def _plain(array: NDArray[Any]) -> Column:
    """The same values as int64, float64 or text; every map here is one to one but for long doubles."""
    kind = array.dtype.kind
    if kind == "f":
        return array.astype(np.float64, copy=False)
    if kind == "u" and array.dtype.itemsize == 8:
        return (array ^ np.uint64(1 << 63)).view(np.int64)
    if kind in "biu":
        return array.astype(np.int64, copy=False)
    if kind in "mM":
        return array.view(np.int64)
    if kind == "S":
        return np.char.decode(array, "latin-1")
    if kind == "U":
        return array.astype(str)
    texts = [_text(repr(item)) for item in array.ravel().tolist()]
    return np.array(texts, dtype=str).reshape(array.shape)


def _alike(outputs: list[Any]) -> tuple[str, Table] | None:
    """A quick way for outputs that are all one plain type, or all arrays of one shape."""
    types = set(map(type, outputs))
    if len(types) != 1:
        return None
    only = types.pop()
    if only in (int, float, bool):
        try:
            column = np.array(outputs, np.float64 if only is float else np.int64)
        except OverflowError:
            return None
        return only.__name__, table_of(column)
    if issubclass(only, np.generic):
        column = np.array(outputs)
        return _array_kind(column.dtype, ()), table_of(column)
    if only is np.ndarray and outputs[0].dtype != object:
        first = outputs[0]
        if all(o.shape == first.shape and o.dtype == first.dtype for o in outputs):
            return _array_kind(first.dtype, first.shape), table_of(np.stack(outputs))
    return None


def _one_kind(kind: str, table: Table, extra: Mapping[str, Table]) -> Outcomes:
    return Outcomes(table.rows, {kind: table}, {kind: np.arange(table.rows)}, extra)


def _array_kind(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    name = "str" if dtype.kind == "U" else str(dtype)
    return f"{name} array of shape {shape}" if shape else name


def _table_of_leaves(rows: list[tuple[Any, ...]]) -> Table:
    width = len(rows[0])
    names = ("output",) if width == 1 else tuple(f"output[{i}]" for i in range(width))
    columns: list[Column] = []
    for leaf in zip(*rows, strict=True):
        dtype = {int: np.int64, float: np.float64, str: str}[type(leaf[0])]
        columns.append(np.array(leaf, dtype=dtype))
    return Table(names, tuple(columns), len(rows))


def _parts(output: Any) -> tuple[str, tuple[Any, ...]]:
    """The kind of one output and its leaves, each an int64, a float or a text."""
    if output is None:
        return "None", ()
    if isinstance(output, np.generic):
        return str(output.dtype), _leaves_of_array(np.asarray(output)[None])
    if isinstance(output, np.ndarray):
        if output.dtype == object:
            kind, leaves = _parts(output.ravel().tolist())
            return f"array of shape {output.shape} holding {kind}", leaves
        return _array_kind(output.dtype, output.shape), _leaves_of_array(output[None])
    if isinstance(output, enum.Enum):
        return type(output).__name__, (output.name,)
    if isinstance(output, bool):
        return "bool", (int(output),)
    if isinstance(output, int):
        if -(1 << 63) <= output < 1 << 63:
            return "int", (output,)
        return "int beyond 64 bits", (float(max(min(output, 10**300), -(10**300))), _text(str(output)))
    if isinstance(output, float):
        return "float", (float(output),)
    if isinstance(output, complex):
        return "complex", (output.real, output.imag)
    if isinstance(output, str | bytes | memoryview):
        text = output if isinstance(output, str) else bytes(output).decode("latin-1")
        return type(output).__name__, (_text(text),)
    if isinstance(output, Fraction | Decimal):
        return type(output).__name__, (_near(output), _text(str(output)))
    if isinstance(output, BaseException):
        return f"raises {type(output).__name__}", (_text(str(output)),)
    if isinstance(output, Release):
        kind, leaves = _parts(output.values)
        return f"{kind} for {_terms_of(output)}", leaves
    return _parts_of_container(output)


def _parts_of_container(output: Any) -> tuple[str, tuple[Any, ...]]:
    made: Any = type(output)
    name = made.__name__
    if isinstance(output, tuple | list):
        parts = [_parts(item) for item in output]
        kinds = [kind for kind, _ in parts]
        held = f"{len(kinds)} × {kinds[0]}" if len(set(kinds)) == 1 and len(kinds) > 3 else ", ".join(kinds)
        return f"{name}({held})", tuple(leaf for _, leaves in parts for leaf in leaves)
    if isinstance(output, Mapping):
        ranked = sorted(output, key=repr)
        order = ", ".join(map(repr, output))
        kind, leaves = _parts([output[key] for key in ranked])
        return f"{name} with keys {', '.join(map(repr, ranked))} holding {kind}", (*leaves, _text(order))
    if isinstance(output, set | frozenset):
        return f"{name} of {len(output)}", (_text(", ".join(sorted(map(repr, output)))),)
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        kind, leaves = _parts({f.name: getattr(output, f.name) for f in dataclasses.fields(output)})
        return f"{name} as {kind}", leaves
    for method in ("to_pydict", "to_dict"):
        if callable(getattr(output, method, None)):
            kind, leaves = _parts(getattr(output, method)())
            return f"{name} as {kind}", leaves
    if isinstance(output, Iterator):
        remedy = "return a list of what the iterator gives"
        raise InvalidArgument("mechanism", f"an output of type {name}", "something that can be read twice", remedy)
    if hasattr(output, "__array__"):
        kind, leaves = _parts(np.asarray(output))
        return f"{name} as {kind}", leaves
    if made.__repr__ is object.__repr__ and hasattr(output, "__dict__"):
        kind, leaves = _parts(vars(output))
        return f"{name} as {kind}", leaves
    return name, (_text(_ADDRESS.sub("", repr(output))),)


def _leaves_of_array(row: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(column[0].item() for column in table_of(row).columns)


def _text(text: str) -> str:
    """The text, or its beginning and a digest of the whole: of long ones, and of those with NULs, which arrays drop."""
    if len(text) <= _LONG_TEXT and "\0" not in text:
        return text
    return f"{text[:40]}… {hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _near(number: Fraction | Decimal) -> float:
    """The number as a double, wherever it lies."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:
        return math.nan


def _terms_of(release: Release) -> str:
    terms = (release.loss, release.events, release.private)
    try:
        return _shown_terms(terms)
    except TypeError:
        return _text(repr(terms))


@lru_cache(maxsize=4096)
def _shown_terms(terms: Hashable) -> str:
    return _text(repr(terms))

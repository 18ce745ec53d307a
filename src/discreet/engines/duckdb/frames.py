"""Frames and arrays as Arrow tables whose types depend on declared types alone, never on the values.

Arrays with a type of their own keep it. Python objects and the categories of pandas have none: a column of them becomes
text by one rule for each value (`duckdb/objects.py`), and what the rule does not know becomes NULL. Text that is not
valid Unicode has "?" in its place; in columns that tell people apart it is NULL, and types that would be rounded are
left out.

>>> table = tabled({"age": np.array([30, 40]), "note": ["fine", 3.5], "odd": [object(), b"x"]}).table
>>> [(field.name, str(field.type)) for field in table.schema]
[('age', 'int64'), ('note', 'large_string'), ('odd', 'large_string')]
>>> table.column("note").to_pylist(), table.column("odd").to_pylist()
(['fine', '3.5'], [None, 'x'])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.objects import texts_of
from discreet.engines.tables import TWICE
from discreet.sql.catalog import alone

__all__ = ["Frame", "dataset", "is_dataset", "paths_of", "tabled"]

REMEDY = "give a path, an Arrow table or dataset, a pandas or Polars frame, or a dict of arrays"


@dataclass(frozen=True)
class Frame:
    """An Arrow table, the columns that have no place in it with their types, and those without a type of their own."""

    table: Any
    omitted: tuple[tuple[str, str], ...]
    untyped: frozenset[str] = frozenset()


def is_dataset(source: object) -> bool:
    """Whether it is an Arrow dataset over files."""
    return type(source).__name__ == "FileSystemDataset" and type(source).__module__.startswith("pyarrow.")


def dataset(source: Any, owners: Collection[str] = ()) -> Frame:
    """An Arrow dataset over files, read anew by each statement, with types that the engine reads without fail."""
    import pyarrow
    import pyarrow.dataset as datasets

    kind = source.format.default_extname
    if kind not in ("parquet", "feather", "ipc", "arrow"):
        raise InvalidArgument("source", kind, "a dataset of files that state their types", "give the folder's path")
    _check_alike(source)
    names = _names(source)
    own = alone(names)
    twice = tuple((name, TWICE) for name in names if name.lower() not in own)
    fields = [field for field in source.schema if field.name.lower() in own]
    exact = {field.name: field.name.lower() in owners for field in fields}
    settled = {field.name: _settled(pyarrow.array([], type=field.type), exact[field.name]) for field in fields}
    # What has more digits than its type cannot be found in files that others read; a folder's path is read otherwise.
    kinds = pyarrow.types
    decimals = [f.name for f in fields if kinds.is_decimal(f.type) and not kinds.is_decimal256(f.type)]
    settled |= {name: f"{source.schema.field(name).type} in an Arrow dataset" for name in decimals}
    kept = [pyarrow.field(name, array.type) for name, array in settled.items() if not isinstance(array, str)]
    omitted = tuple((name, array) for name, array in settled.items() if isinstance(array, str))
    made = datasets.dataset(
        source.files,
        schema=pyarrow.schema(kept),
        format=source.format,
        filesystem=source.filesystem,
        partitioning=source.partitioning,
    )
    return Frame(made, (*omitted, *twice))


def _check_alike(source: Any) -> None:
    """That all files have the types of the data set: Arrow would convert a column of one that has others, which fails
    if a single value does not fit."""
    types = {field.name: field.type for field in source.schema}
    for fragment in source.get_fragments():
        for field in fragment.physical_schema:
            if types.get(field.name, field.type) != field.type:
                bound = f"of one type in all files of a dataset; it is {types[field.name]} and {field.type}"
                raise InvalidArgument("column", field.name, bound, "write the files anew with the same types")


def _names(source: Any) -> list[str]:
    """What the columns are called, and once more those that files have besides folders named alike."""
    keys = [] if source.partitioning is None else source.partitioning.schema.names
    inside = {name for fragment in source.get_fragments() for name in fragment.physical_schema.names} if keys else set()
    return [*source.schema.names, *(key for key in keys if key in inside)]


def paths_of(source: Any) -> tuple[Path, ...]:
    """The files of an Arrow dataset, if they are on this machine."""
    local = type(source.filesystem).__name__ == "LocalFileSystem"
    return tuple(Path(name).resolve() for name in source.files) if local else ()


def tabled(source: object, guess: bool = False, owners: Collection[str] = ()) -> Frame:
    """The source as an Arrow table; with `guess`, for public data, Arrow finds the types of Python objects.

    In `owners`, names in lower case of columns that tell people apart, no two values become one.
    """
    import pyarrow

    kept: dict[str, Any] = {}
    omitted: list[tuple[str, str]] = []
    untyped: set[str] = set()
    columns = [*_columns(source)]
    own = alone(name for name, _ in columns)
    for name, values in columns:
        if name.lower() not in own:
            raise InvalidArgument("source", name, "a column name that comes once, whatever the case", "rename one")
        exact = name.lower() in owners
        array = _column(values, guess, exact)
        usable = array if isinstance(array, str) else _settled(array, exact)
        if isinstance(usable, str):
            omitted.append((name, usable))
        else:
            kept[name] = usable
            untyped |= {name} if _is_untyped(values) else set()
    if not kept:
        raise InvalidArgument("source", [name for name, _ in omitted], "with columns that queries can use", REMEDY)
    if len({len(array) for array in kept.values()}) != 1:
        raise InvalidArgument("source", list(kept), "columns of one length", "cut them to the same rows")
    return Frame(pyarrow.table(kept), tuple(omitted), frozenset(untyped))


def _columns(source: object) -> Iterable[tuple[str, Any]]:
    import pyarrow

    given: Any = source
    home, kind = type(source).__module__.split(".")[0], type(source).__name__
    if kind == "LazyFrame":
        raise InvalidArgument("source", kind, "a frame that holds its rows", "call .collect() on it first")
    if isinstance(source, Mapping):
        return [(str(name), values) for name, values in source.items()]
    if (home, kind) == ("polars", "DataFrame"):
        return [(column.name, column) for column in given.get_columns()]
    if home == "pandas" and kind == "DataFrame":
        return [(str(name), given.iloc[:, place]) for place, name in enumerate(given.columns)]
    if isinstance(source, pyarrow.RecordBatch):
        given = pyarrow.Table.from_batches([source])
    elif hasattr(source, "__arrow_c_stream__"):
        given = pyarrow.table(source)
    if not isinstance(given, pyarrow.Table):
        raise InvalidArgument("source", kind, "a table", REMEDY)
    return list(zip(given.column_names, given.columns, strict=True))


def _is_untyped(values: Any) -> bool:
    """Whether its type can only be found in its values."""
    kind = getattr(values, "dtype", None)
    named = str(getattr(kind, "name", kind)).lower()
    return named in ("object", "category") or (kind is None and not hasattr(values, "type"))


def _column(values: Any, guess: bool, exact: bool) -> Any:
    """An Arrow array, or the name of a type that has no place in a table."""
    import pyarrow

    home = type(values).__module__.split(".")[0]
    if isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        return values
    if home == "polars":
        return _objects(values.to_list(), guess, exact) if str(values.dtype) == "Object" else values.to_arrow()
    if isinstance(values, np.ndarray):
        return _numpy(values, guess, exact)
    if home == "pandas":
        return _pandas(values, guess, exact)
    return _objects(list(values), guess, exact)


def _pandas(values: Any, guess: bool, exact: bool) -> Any:
    import pyarrow

    kind = values.dtype
    if isinstance(kind, np.dtype):
        return _numpy(values.to_numpy(), guess, exact)
    array = values.array
    if kind.name == "category":
        # pandas finds the type of categories in the values.
        codes = np.asarray(array.codes)
        return _objects(array.categories.tolist(), guess, exact).take(pyarrow.array(codes, mask=codes < 0))
    if kind.name.startswith("str"):
        return _objects(list(array), False, exact) if kind.storage == "python" else pyarrow.array(array)
    if kind.kind == "M" and getattr(kind, "tz", None) is not None:
        # Moments as numpy has them: in UTC, with NaT for NULL.
        return _numpy(values.to_numpy(dtype=f"datetime64[{kind.unit}]"), guess, exact)
    return pyarrow.array(array) if hasattr(array, "__arrow_array__") else str(kind)


def _numpy(values: np.ndarray[Any, np.dtype[Any]], guess: bool, exact: bool) -> Any:
    import pyarrow

    if values.ndim != 1:
        raise InvalidArgument("source", values.shape, "columns with one dimension", "give one array for each column")
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.asarray(values)
    kind = plain.dtype.kind
    if kind in "OUST":
        listed = plain.tolist()
        kept = listed if mask is None else [None if m else v for v, m in zip(listed, mask, strict=True)]
        return _objects(kept, guess, exact)
    if exact and ((kind == "f" and plain.dtype.itemsize > 8) or (kind == "M" and plain.dtype.name not in _KEPT)):
        return str(plain.dtype)
    if kind == "f" and plain.dtype.itemsize not in (4, 8):
        with np.errstate(all="ignore"):
            # A warning would tell that some value is too large.
            plain = plain.astype(np.float32 if plain.dtype.itemsize == 2 else np.float64)
    if kind == "M":
        unit = np.datetime_data(plain.dtype)[0]
        plain = plain.astype("datetime64[D]" if unit in "YMWD" else f"datetime64[{unit}]" if unit in _UNITS else _NEAR)
    return pyarrow.array(_native(plain), mask=mask) if kind in "biufM" else str(plain.dtype)


_UNITS = {"s", "ms", "us", "ns"}
_NEAR = "datetime64[s]"
_KEPT = {f"datetime64[{unit}]" for unit in ("D", *_UNITS)}


def _native(values: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    return values.astype(values.dtype.newbyteorder("="))


def _objects(values: list[Any], guess: bool, exact: bool) -> Any:
    import pyarrow

    if guess:
        with suppress(pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            return pyarrow.array(values, from_pandas=True)
    return texts_of(values, exact)


def _settled(array: Any, exact: bool = False) -> Any:
    """The array in a form the engine reads without fail, or the name of a type that it does not read so."""
    import pyarrow
    import pyarrow.compute as compute

    kinds = pyarrow.types
    kind = array.type
    if kinds.is_dictionary(kind) and not _is_text(kind.value_type):
        return _settled(compute.cast(array, kind.value_type), exact)
    if kinds.is_run_end_encoded(kind):
        return _settled(compute.run_end_decode(array), exact)
    if _is_text(kind) or (kinds.is_dictionary(kind) and _is_text(kind.value_type)):
        return _valid(array, exact)
    if exact and (kinds.is_decimal256(kind) or kinds.is_date64(kind)):
        return str(kind)
    if kinds.is_timestamp(kind) and kind.tz is not None:
        return compute.cast(compute.cast(array, pyarrow.int64()), pyarrow.timestamp(kind.unit))
    if kinds.is_decimal(kind) and not kinds.is_decimal256(kind):
        return _within_precision(array)
    if kinds.is_float16(kind):
        return compute.cast(array, pyarrow.float32())
    if kinds.is_decimal256(kind):
        return compute.cast(array, pyarrow.float64(), safe=False)
    tests = (
        kinds.is_integer,
        kinds.is_floating,
        kinds.is_boolean,
        kinds.is_date,
        kinds.is_timestamp,
        kinds.is_binary,
        kinds.is_large_binary,
        kinds.is_time,
        kinds.is_null,
    )
    known = any(test(kind) for test in tests) or str(kind) == "extension<arrow.uuid>"
    return array if known else str(kind)


def _within_precision(array: Any) -> Any:
    """The decimals; NULL where one has more digits than its type, which Arrow does not look at: the engine would read
    such a value in the fewer bits that the type needs, or from memory that is not its own."""
    import pyarrow
    import pyarrow.compute as compute

    kind = array.type
    if isinstance(array, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([_within_precision(chunk) for chunk in array.chunks], kind)
    # The widest type of the same bits, in which all values that there can be are compared as they are.
    digits = {32: 9, 64: 18, 128: 38}[kind.bit_width]
    wide = {32: pyarrow.decimal32, 64: pyarrow.decimal64, 128: pyarrow.decimal128}[kind.bit_width](digits, kind.scale)
    values = array.view(wide)
    most = Decimal(f"{10**kind.precision - 1}E{-kind.scale}")
    lowest, highest = pyarrow.scalar(most.copy_negate(), wide), pyarrow.scalar(most, wide)
    fits = compute.and_(compute.greater_equal(values, lowest), compute.less_equal(values, highest))
    return compute.if_else(fits, values, pyarrow.scalar(None, wide)).view(kind)


def _is_text(kind: Any) -> bool:
    import pyarrow

    kinds = pyarrow.types
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _valid(array: Any, exact: bool) -> Any:
    """The texts; bytes that are not UTF-8 would bring the engine down: they become "?", or the text becomes NULL."""
    import pyarrow
    import pyarrow.compute as compute

    try:
        array.validate(full=True)
    except pyarrow.ArrowInvalid:
        kind = array.type
        plain = compute.cast(array, kind.value_type) if pyarrow.types.is_dictionary(kind) else array
        raw = compute.cast(plain, pyarrow.large_binary())
        return texts_of(raw.to_pylist(), exact)
    return array

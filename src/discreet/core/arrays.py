"""Data as arrays, such that no single value decides between success and failure.

What is public is the kind of data: an array's dtype, and for lists and scalars whether they hold fractions. Whatever
else a list or an object array holds becomes a number: integers of any size are held within int64, what is missing or
is no number at all becomes NaN or the stand-in.

>>> whole("data", [1, None, 2**70]).tolist()
[1, 0, 9223372036854775807]
>>> reals("data", [1.5, None, "x"]).tolist()
[1.5, nan, nan]
"""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument

__all__ = ["LARGEST", "has_fractions", "reals", "whole"]

LARGEST = (1 << 63) - 1
"""The ends of int64, both signs alike."""

Array = np.ndarray[Any, np.dtype[Any]]


def has_fractions(data: object) -> bool:
    """Whether the data is of a kind that can hold fractions: a float dtype, or a list with a float that is not NaN."""
    array = _array("data", data)
    if array.dtype.kind != "O":
        return array.dtype.kind == "f"
    return any(isinstance(value, float | np.floating) and value == value for value in array.flat)


def whole(argument: str, data: object, missing: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Whole numbers as int64; refused for what can hold fractions."""
    array = _array(argument, data)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if has_fractions(array) or array.dtype.kind not in "iubO":
        raise InvalidArgument(argument, _words(array), "whole numbers", "round to a grid, or use real=True")
    if array.dtype.kind == "O":
        values = [_held(value, missing) for value in array.flat]
        return np.array(values, dtype=np.int64).reshape(array.shape)
    top = np.minimum(array, LARGEST) if array.dtype.kind == "u" else array
    return np.maximum(top.astype(np.int64), -LARGEST)


def reals(argument: str, data: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers as doubles; what is missing, or no number, is NaN."""
    array = _array(argument, data)
    if array.dtype.kind not in "iubfO":
        raise InvalidArgument(argument, _words(array), "numbers", "convert the column first")
    if array.dtype.kind == "O":
        return np.array([_double(value) for value in array.flat], dtype=np.float64).reshape(array.shape)
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def _array(argument: str, data: object) -> Array:
    # Where nobody loaded masked arrays there are none, and loading them takes time.
    if "numpy.ma" in sys.modules and isinstance(data, np.ma.MaskedArray):
        raise InvalidArgument(argument, "a masked array", "without a mask", "fill the masked values first")
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, str | bytes) or data is None:
        raise InvalidArgument(argument, type(data).__name__, "numbers", "give numbers or an array of them")
    plain = data.tolist() if hasattr(data, "tolist") else data
    if not isinstance(plain, list | tuple):
        if not isinstance(plain, numbers.Real | np.bool_):
            raise InvalidArgument(argument, type(plain).__name__, "numbers", "give numbers or an array of them")
        return _scalars([plain], ())
    if any(isinstance(part, list | tuple | np.ndarray) for part in plain):
        try:
            return np.array(plain, dtype=object)
        except ValueError:
            raise InvalidArgument(argument, "a nested list", "rectangular", "give an array") from None
    if plain and all(isinstance(value, str | bytes) or type(value) is complex for value in plain):
        raise InvalidArgument(argument, "no numbers", "numbers", "convert them first")
    return _scalars(list(plain), (len(plain),))


def _scalars(values: list[Any], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def _held(value: Any, missing: int) -> int:
    return max(-LARGEST, min(int(value), LARGEST)) if isinstance(value, numbers.Integral | np.bool_) else missing


def _double(value: Any) -> float:
    if not isinstance(value, numbers.Real | np.bool_):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return math.inf if math.floor(value) > 0 else -math.inf


def _words(array: Array) -> str:
    return {"f": "fractions", "O": "objects", "U": "text", "S": "bytes", "M": "dates", "c": "complex numbers"}.get(
        array.dtype.kind, "an array of another kind"
    )

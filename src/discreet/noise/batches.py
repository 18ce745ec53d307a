"""Sizes: from what a caller asks for to arrays filled a part at a time, so that working memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import count

__all__ = ["LIMIT", "PART", "Coins", "Integers", "Size", "empty", "empty_coins", "parts"]

Size = int | tuple[int, ...] | None
Integers = np.ndarray[Any, np.dtype[np.int64]]
Coins = np.ndarray[Any, np.dtype[np.bool_]]
Element = TypeVar("Element", bound=np.generic)

LIMIT = 1 << 40
"""More draws than this in one call is a mistake."""
PART = 1 << 16
"""Draws worked on at once: small enough for the caches, large enough to hide numpy's call overhead."""


def empty(size: Size) -> Integers:
    """An uninitialised int64 array of that size."""
    return _empty(size, np.int64)


def empty_coins(size: Size) -> Coins:
    """An uninitialised array of booleans of that size."""
    return _empty(size, np.bool_)


def parts(out: np.ndarray[Any, np.dtype[Element]]) -> Iterator[np.ndarray[Any, np.dtype[Element]]]:
    """Consecutive flat views of at most `PART` elements that cover `out`."""
    flat = out.reshape(-1)
    for start in range(0, flat.size, PART):
        yield flat[start : start + PART]


def _empty(size: Size, dtype: type[np.generic]) -> np.ndarray[Any, Any]:
    shape = () if size is None else tuple(size) if isinstance(size, tuple | list) else (size,)
    lengths = tuple(count("size", length, limit=LIMIT) for length in shape)
    if math.prod(lengths) > LIMIT:
        raise InvalidArgument("size", size, f"at most {LIMIT} draws", "draw in several calls")
    try:
        return np.empty(lengths, dtype=dtype)
    except (ValueError, MemoryError):
        raise InvalidArgument("size", size, "an array that fits in memory", "draw in several calls") from None

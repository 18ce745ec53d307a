"""Sizes: from what a caller asks for to arrays filled a part at a time, so that working memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import count

__all__ = ["LIMIT", "PART", "Integers", "Size", "empty", "parts"]

Size = int | tuple[int, ...] | None
Integers = np.ndarray[Any, np.dtype[np.int64]]

LIMIT = 1 << 40
"""More draws than this in one call is a mistake."""
PART = 1 << 16
"""Draws worked on at once: small enough for the caches, large enough to hide numpy's call overhead."""


def empty(size: Size) -> Integers:
    """An uninitialised int64 array of that size."""
    shape = () if size is None else tuple(size) if isinstance(size, tuple | list) else (size,)
    lengths = tuple(count("size", length, limit=LIMIT) for length in shape)
    if math.prod(lengths) > LIMIT:
        raise InvalidArgument("size", size, f"at most {LIMIT} draws", "draw in several calls")
    return np.empty(lengths, dtype=np.int64)


def parts(out: Integers) -> Iterator[Integers]:
    """Consecutive flat views of at most `PART` elements that cover `out`."""
    flat = out.reshape(-1)
    for start in range(0, flat.size, PART):
        yield flat[start : start + PART]

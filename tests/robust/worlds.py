"""All small data sets on a short line, and their neighbours: what is claimed of every pair is checked on every pair."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np

from discreet.robust.statistics import Sample

Rows = tuple[int, ...]


def every(top: int, most: int) -> list[Rows]:
    """All multisets of up to `most` places from 0 to `top`."""
    return [rows for size in range(most + 1) for rows in combinations_with_replacement(range(top + 1), size)]


def neighbours(rows: Rows, top: int, relation: str) -> Iterator[Rows]:
    """With one record more or less, or with one exchanged."""
    without = {rows[:i] + rows[i + 1 :] for i in range(len(rows))}
    if relation == "replace":
        yield from {tuple(sorted((*rest, new))) for rest in without for new in range(top + 1)} - {rows}
    else:
        yield from without
        yield from {tuple(sorted((*rows, new))) for new in range(top + 1)}


def sample(rows: Rows, top: int) -> Sample:
    """The rows as a sample."""
    return Sample.of(np.array(rows, dtype=np.int64), top)

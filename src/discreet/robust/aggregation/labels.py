"""Answers that are no numbers: told apart by how they are written.

Python takes 1, 1.0 and True for equal, and 0.0 for −0.0; which of them came first would leave with a release. So two
answers are the same just if they are written the same. Strings, bytes, numbers, None and tuples of these may leave;
whatever else a function gives becomes None.

>>> label(np.float64(0.5)), label((1, "a")), label([1]), label(True)
(0.5, (1, 'a'), None, True)
>>> tally(["a", "b", "a", [7]])
[('a', 2), ('b', 1), (None, 1)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Label", "label", "tally"]

Label = str | bytes | bool | int | float | None | tuple[Any, ...]

LONGEST = 1024
"""Bits of a whole number that may leave; Python writes no number of many thousands."""
_PLAIN = (str, bytes, bool, int, float, type(None))


def label(value: object) -> Label:
    """The answer itself, or None where it is of no kind that may leave."""
    plain: Any = value.item() if isinstance(value, np.generic) else value
    if type(plain) is tuple:
        plain = tuple(part.item() if isinstance(part, np.generic) else part for part in plain)
        return plain if all(part is None or label(part) is not None for part in plain) else None
    if type(plain) is int and plain.bit_length() > LONGEST:
        return None
    # The very types, since a subclass may be written as it likes.
    return plain if type(plain) in _PLAIN else None


def tally(values: Iterable[object]) -> list[tuple[Label, int]]:
    """How often each answer occurs, most often first; ties in the order of how they are written."""
    held: dict[str, Label] = {}
    counts: Counter[str] = Counter()
    for value in values:
        answer = label(value)
        written = repr(answer)
        held[written] = answer
        counts[written] += 1
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(held[written], number) for written, number in ranked]

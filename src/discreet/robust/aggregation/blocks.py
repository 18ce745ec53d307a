"""Rows of people in random blocks: each person's rows go to one block, wholly.

Guarantee. Every unit draws its block by itself, uniformly, whoever else there is. So for data sets that differ in one
unit, present in one of them (add/remove) or exchanged for another (replace), the draws of the units they share can be
taken to be the same, and that of the odd unit to be the same on both sides: then one block differs, and all others
hold the same rows. The order of rows within a block is drawn afresh, since the order in which an engine gives them may
follow from everybody's: rows in a block are in no order that anybody chose. With `rounds`, there are so many
independent partitions, and one unit changes one block of each. The number of blocks is fixed beforehand; some may be
empty.

Blocks of equal sizes would be a mistake: to balance them, one person more would move others.

>>> from discreet.noise.entropy import Entropy
>>> who = np.array([7, 7, 7, 8, 9, 9])
>>> [block.tolist() for block in blocks_of(who, 2, entropy=Entropy.for_tests(1))]
[[3, 1, 0, 2], [4, 5]]
>>> [len(block) for block in blocks_of(np.arange(1000), 3, rounds=2, entropy=Entropy.for_tests(0))]
[306, 352, 342, 318, 329, 353]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import permutation, uniform

__all__ = ["blocks_of", "check_blocks", "codes_of"]

LARGEST = 1 << 20
"""Blocks times rounds: each has a process, and an answer that is held until all are there."""
_NAMELESS = object()


def check_blocks(blocks: int, rounds: int) -> None:
    """That so many can be run; whoever charges for answers of blocks asks this first."""
    if natural("blocks", blocks) * natural("rounds", rounds) > LARGEST:
        raise InvalidArgument("blocks", blocks, f"at most {LARGEST:,} in all rounds", "give fewer")


def blocks_of(units: Any, blocks: int, rounds: int = 1, *, entropy: Entropy) -> list[Integers]:
    """The places of the rows in each of blocks·rounds blocks; `units` says of each row whose it is."""
    codes, size = codes_of(units)
    found: list[Integers] = []
    for _ in range(rounds):
        drawn = uniform(blocks, size, entropy=entropy)[codes]
        order = permutation(codes.size, entropy=entropy)
        order = order[np.argsort(drawn[order], kind="stable")]
        found += np.split(order, np.cumsum(np.bincount(drawn, minlength=blocks))[:-1])
    return found


def codes_of(units: Any) -> tuple[Integers, int]:
    """Units numbered from 0, and how many there are; values that are equal are one unit, and so are all that do not
    even equal themselves, as NaN: one person may have many such rows."""
    if isinstance(units, np.ndarray) and units.dtype.kind in "iu":
        distinct, codes = np.unique(units, return_inverse=True)
        return codes.reshape(-1).astype(np.int64), distinct.size
    places: dict[Any, int] = {}
    try:
        numbered = [places.setdefault(unit if unit == unit else _NAMELESS, len(places)) for unit in units]
    except (TypeError, ValueError):
        numbered = []
    if len(numbered) != len(units):
        raise InvalidArgument("units", type(units).__name__, "hashable values, one for each row", "give a list of them")
    return np.array(numbered, dtype=np.int64), len(places)

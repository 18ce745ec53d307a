"""Whether runs were drawn afresh: noise that comes again when a mechanism is started again is known to everybody.

Such noise can look right, run by run, and hides nothing: whoever starts the program takes it off. And an audit that
chooses an event and tests it on the same noise proves nothing. If n independent runs gave certain outputs, others give
the same outputs in the same order with probability at most e^(−n·H), H being the entropy of the outputs seen: no law
makes them likelier than their own frequencies do.

>>> from discreet.adversary.auditing.outcomes import encode
>>> drawn, again = (np.random.default_rng(seed).laplace(size=50) for seed in (0, 0))
>>> repeated(encode(drawn), encode(again)), repeated(encode(drawn), encode(again[::-1]))
(True, False)
>>> repeated(encode([1] * 50), encode([1] * 50))
False
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.auditing.features import fingerprint
from discreet.adversary.auditing.outcomes import Outcomes

__all__ = ["repeated"]

CHANCE = 1e-12
"""How often fresh runs are called repeated, at most."""


def repeated(first: Outcomes, second: Outcomes) -> bool:
    """Whether the second runs gave what the first gave, one by one, where fresh ones would give something else."""
    if first.size != second.size or first.tables.keys() != second.tables.keys():
        return False
    surprise = 0.0
    for kind in first.tables:
        if not np.array_equal(first.positions[kind], second.positions[kind]):
            return False
        ours, theirs = _marks(first, kind), _marks(second, kind)
        if not np.array_equal(ours, theirs):
            return False
        counts = np.unique(ours, return_counts=True)[1]
        surprise -= float((counts * np.log(counts / first.size)).sum())
    return surprise > -math.log(CHANCE)


def _marks(outcomes: Outcomes, kind: str) -> NDArray[np.int64]:
    table = outcomes.tables[kind]
    return fingerprint(table, range(len(table.columns)))

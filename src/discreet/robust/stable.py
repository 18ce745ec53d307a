"""Answers that do not change near the data, released as they are, or ⊥.

`StableRelease` (A_dist). Let g be any function and γ a distance that moves by at most 1 between neighbours, such that
γ(x) ≥ 1 implies g(x′) = g(x) for all neighbours x′ of x. A test of γ (`stability.py`), then g(x), or ⊥, is (ε, δ) for
those neighbours (`add_remove` or `replace`, as the distance is for; a unit is one record): pairs with γ = 0 on both
sides answer with probability δ at most each; all others have one answer, and differ in whether it is given.
`rule="book"` is algorithm 13, d + Lap(1/ε) > ln(1/δ)/ε; the default gives an answer at least as often for all γ.

`mode` is the most frequent value with its γ: the two largest counts differ by c, which moves by 1 when a record comes
or goes and by 2 when one is replaced, so γ = c − 1 and ⌊(c − 1)/2⌋. It needs no list of values.

>>> from discreet.noise.entropy import Entropy
>>> votes = ["bread"] * 60 + ["rice"] * 20 + ["salt"] * 3
>>> favourite = mode(epsilon=1, delta="1e-6")
>>> favourite.release(votes, entropy=Entropy.for_tests(0)).values
'bread'
>>> print(favourite.release(votes[30:], entropy=Entropy.for_tests(0)).values)
not stable enough to answer; this cost ε = 1, δ = 1e-6
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, positive, probability
from discreet.core.mechanism import Release
from discreet.core.units import Neighbours
from discreet.noise.entropy import Entropy, chosen
from discreet.robust.aggregation.labels import Label, label, tally
from discreet.robust.propose_test_release import measured
from discreet.robust.stability import Rule, Tested, Unstable

__all__ = ["StableRelease", "gap_of", "mode"]


@dataclass(frozen=True)
class StableRelease(Tested):
    """`function(data)` where `distance(data)` says that it is stable.

    Neither may raise: a function that does has None for its answer, and a distance that does, or is no number, is 0.
    Answers are strings, numbers, None or tuples of these (`aggregation/labels.py`).
    """

    function: Callable[[Any], Any]
    distance: Callable[[Any], Any]
    epsilon: Fraction
    delta: Fraction
    rule: Rule = "optimal"

    def __post_init__(self) -> None:
        for argument in ("function", "distance"):
            if not callable(getattr(self, argument)):
                raise InvalidArgument(argument, getattr(self, argument), "callable", f"give {argument} as a function")
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        object.__setattr__(self, "rule", self.test.rule)

    def needed(self, beta: Exactable) -> int:
        """Data this far from instability is answered, and rightly, with probability 1 − β."""
        return self.test.needed(beta)

    def release(self, data: Any, *, entropy: Entropy | None = None) -> Release:
        """The answer, or `Unstable`."""
        far = measured(self.distance, data, self.test.enough)
        answer = guarded(self.function, data)
        source = chosen(entropy)
        value = answer if self.test.passes(far, source) else Unstable(self.loss)
        return Release(value, self.loss, self.events, None, source.private)


def mode(
    epsilon: Exactable, delta: Exactable, neighbours: Neighbours = "add_remove", rule: Rule = "optimal"
) -> StableRelease:
    """The most frequent value of a list or an array."""
    if neighbours not in get_args(Neighbours):
        raise InvalidArgument("neighbours", neighbours, "'add_remove' or 'replace'", "name one of the two")
    far = _far_of_replaced if neighbours == "replace" else _far_of_added
    return StableRelease(_most_frequent, far, positive("epsilon", epsilon), probability("delta", delta), rule)


def guarded(function: Callable[[Any], Any], data: Any) -> Label:
    """The function's answer, None where it raises or gives what may not leave."""
    try:
        return label(function(data))
    except Exception:  # what it says could repeat data
        return None


def gap_of(values: Any) -> tuple[Label, int]:
    """The most frequent value and by how much it leads; (None, 0) of nothing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        distinct, counts = np.unique(values, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:2]
        ranked = [(label(distinct[i]), int(counts[i])) for i in order.tolist()]
    else:
        ranked = tally(values.reshape(-1).tolist() if isinstance(values, np.ndarray) else values)
    first, second = ([*ranked, (None, 0), (None, 0)])[:2]
    return first[0], first[1] - second[1]


def _most_frequent(values: Any) -> Label:
    return gap_of(values)[0]


def _far_of_added(values: Any) -> int:
    return gap_of(values)[1] - 1


def _far_of_replaced(values: Any) -> int:
    return (gap_of(values)[1] - 1) // 2

"""Answers that are no numbers, from many blocks to one: by vote.

Neighbours differ in the answers of at most `rounds` blocks (`aggregation/blocks.py`), which may become any other, or
none.

- `Vote`: the answers are listed beforehand. A block changes two counts by one at most, so counts move by `rounds` at
  most, some up and some down: a choice of the largest with that sensitivity costs ε (`mechanisms/selection.py`).
  Permute-and-flip is never worse than the others; the book's is `noisy_max`. Blocks without an answer, or with one that
  is not listed, have the default: no vote, unless one is named.
- `Agreement`: the answers are not listed. The lead of the first over the second moves by 2·`rounds` at most; where
  ⌊(lead − 1)/(2·rounds)⌋ ≥ 1 the first is first for all neighbours, so the first may be told where a test of that
  distance passes, and ⊥ otherwise (`stability.py`): (ε, δ). Blocks that are disjoint need no more than that; random
  samples that overlap are `subsampled.py`.

>>> from discreet.noise.entropy import Entropy
>>> choice = Vote(("normal", "log-normal"), epsilon=1, blocks=40)
>>> choice.release(["normal"] * 30 + ["log-normal"] * 9 + [None], entropy=Entropy.for_tests(0)).values
'normal'
>>> print(Agreement(1, "1e-6", blocks=40).release(["a"] * 22 + ["b"] * 18, entropy=Entropy.for_tests(0)).values)
not stable enough to answer; this cost ε = 1, δ = 1e-6
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from discreet.core import events
from discreet.core.domains import Categories
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, positive, probability
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.mechanisms.selection import Exponential, NoisyMax, PermuteAndFlip
from discreet.noise.entropy import Entropy, chosen
from discreet.robust.aggregation.blocks import check_blocks
from discreet.robust.aggregation.labels import Label, label
from discreet.robust.sandbox.forkserver import read
from discreet.robust.stability import StabilityTest, Tested, Unstable
from discreet.robust.stable import gap_of

__all__ = ["Agreement", "Choosing", "Vote"]

Choosing = Literal["permute_and_flip", "exponential", "noisy_max"]
_CHOOSING: dict[str, type[PermuteAndFlip] | type[Exponential] | type[NoisyMax]] = {
    "permute_and_flip": PermuteAndFlip,
    "exponential": Exponential,
    "noisy_max": NoisyMax,
}
_PATIENCE = Fraction(1, 20)
"""Answers on which blocks agree as assumed come out but for this chance."""
_AGREED = Fraction(9, 10)
"""The part of blocks with one answer that is assumed where their number is to be found."""


@dataclass(frozen=True)
class Vote:
    """The most frequent of listed answers, nearly. A block without one votes for `default`, or not at all."""

    values: tuple[Any, ...]
    epsilon: Fraction
    blocks: int
    rounds: int = 1
    method: Choosing = "permute_and_flip"
    default: Any = None

    size: ClassVar[None] = None
    """Answers are labels, not numbers."""

    def __post_init__(self) -> None:
        listed = self.values.values if isinstance(self.values, Categories) else self.values
        object.__setattr__(self, "values", Categories(tuple(listed)).values)
        if None in self.values or any(label(value) is None for value in self.values):
            raise InvalidArgument("values", self.values, "texts, numbers or tuples of these", "list what may be told")
        if self.default is not None and self.default not in self.values:
            raise InvalidArgument("default", self.default, "one of the values, or None", "None is no vote")
        if self.method not in get_args(Choosing):
            raise InvalidArgument("method", self.method, f"one of {get_args(Choosing)}", "leave it out for the best")
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        check_blocks(self.blocks, self.rounds)
        str(self.choice)

    @staticmethod
    def enough(values: Sequence[Any], epsilon: Exactable) -> int:
        """Blocks with which an answer that has a third more of the votes than any other is nearly sure to be told."""
        rivals = PermuteAndFlip(positive("epsilon", epsilon))
        return 3 * ceil(rivals.accuracy(_PATIENCE, max(len(values), 1)))

    @cached_property
    def choice(self) -> PermuteAndFlip | Exponential | NoisyMax:
        """What chooses among the counts."""
        return _CHOOSING[self.method](self.epsilon, self.rounds)

    @cached_property
    def events(self) -> tuple[events.Event, ...]:
        """What `release` will run."""
        return self.choice.events

    @cached_property
    def loss(self) -> PureDP:
        """ε."""
        return self.choice.loss

    def accuracy(self, beta: Exactable) -> float:
        """With probability 1 − β the answer has at most so many votes less than the first."""
        return self.choice.accuracy(beta, len(self.values))

    def read(self, raw: bytes | None) -> Any:
        """The answer that a block sent, or the default."""
        answer = _read(raw)
        return answer if answer in self.values else self.default

    def release(self, answers: Sequence[Any], *, entropy: Entropy | None = None) -> Release:
        """The answer, from those of all blocks."""
        source = chosen(entropy)
        given = Categories(self.values).codes([*answers])
        counts = np.bincount(given[given >= 0], minlength=len(self.values))
        place = int(self.choice.release(counts, entropy=source).values)
        return Release(self.values[place], self.loss, self.events, None, source.private)


@dataclass(frozen=True)
class Agreement(Tested):
    """The most frequent answer where it leads by enough, or ⊥; `default` is what a block without one answers."""

    epsilon: Fraction
    delta: Fraction
    blocks: int
    rounds: int = 1
    default: Label = None

    size: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        check_blocks(self.blocks, self.rounds)
        if self.default is not None and label(self.default) is None:
            raise InvalidArgument("default", self.default, "text, a number or a tuple of these", "or leave it out")
        if self.needed(_PATIENCE) > self.blocks * self.rounds:
            least = self.needed(_PATIENCE) // self.rounds + 1
            raise InvalidArgument("blocks", self.blocks, f"{least} or more for any answer", "give more, or a larger ε")

    @staticmethod
    def enough(epsilon: Exactable, delta: Exactable) -> int:
        """Blocks with which an answer that nine in ten of them give is nearly sure to come out."""
        far = StabilityTest(positive("epsilon", epsilon), probability("delta", delta)).needed(_PATIENCE)
        return ceil((2 * far + 1) / (2 * _AGREED - 1))

    def needed(self, beta: Exactable) -> int:
        """By how many blocks the first answer must lead to come out with probability 1 − β."""
        return 2 * self.rounds * self.test.needed(beta) + 1

    def read(self, raw: bytes | None) -> Label:
        """The answer that a block sent, or the default."""
        answer = _read(raw)
        return self.default if answer is None else answer

    def release(self, answers: Sequence[Any], *, entropy: Entropy | None = None) -> Release:
        """The answer, or `Unstable`."""
        source = chosen(entropy)
        answer, lead = gap_of([*answers])
        far = max(0, lead - 1) // (2 * self.rounds)
        value = answer if self.test.passes(far, source) else Unstable(self.loss)
        return Release(value, self.loss, self.events, None, source.private)


def _read(raw: bytes | None) -> Label:
    """A label as a block sent it; None for anything else. A block may send what it likes."""
    try:
        return None if raw is None else label(read(raw))
    except Exception:
        return None

"""People look at raw data and name choices; what most of them name is released, or ⊥.

Rows are handed out in disjoint blocks, one to each analyst: each unit's rows go to a block drawn uniformly, whatever
they hold. Every analyst looks at one block and names a choice (`RawData`) or features (`SignificantFeatures`), and a
function does as well as people. One test (`stability.py`) decides whether the common answer may leave.

Guarantee: what `release` gives is (ε, δ) for add/remove and replace neighbours of units (rows, or all rows with one
value in `units`), provided that a choice depends on nothing of the data but its own block. Draw the blocks of common
units once for both data sets; the odd unit, or its replacement, is in one block. So one choice changes at most, of a
number that is public.

- `RawData`: the most frequent choice leads by c, which moves by at most 2, so γ = ⌊(c − 1)/2⌋.
- `SignificantFeatures`: with T = ⌊part·blocks⌋, a feature named by c blocks is in the answer just if c > T. As c moves
  by at most 1, so does its margin, c − T − 1 above T and T − c from T down; where that is 1 or more the feature stays
  where it is. γ is the least margin of all features, those nobody named among them (T). How many features a block
  names, and how many there are, plays no part.

The guarantee is for what `release` gives, and for nothing else. Analysts hold raw rows: what they say, write or
remember is theirs to keep, as are all choices and how often each was made; that they follow instructions and do not
compare blocks is trusted, not checked. After a release they may choose again, knowing it: that costs as much again.

>>> from discreet.noise.entropy import Entropy
>>> study = RawData(blocks=60, epsilon=1, delta="1e-6")
>>> hands = study.hand_out(np.arange(5000) % 11, entropy=Entropy.for_tests(0))
>>> choices = ["mean" if block.mean() < 6 else "median" for block in hands]
>>> study.release(choices, entropy=Entropy.for_tests(0)).values
'mean'
>>> features = SignificantFeatures(blocks=60, epsilon=1, delta="1e-6")
>>> features.release([{"age", "income"}] * 55 + [{"age"}] * 5, entropy=Entropy.for_tests(0)).values
('age', 'income')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, positive, probability
from discreet.core.mechanism import Release
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy, chosen
from discreet.robust.aggregation.blocks import blocks_of
from discreet.robust.aggregation.labels import Label, label
from discreet.robust.stability import Rule, Tested, Unstable
from discreet.robust.stable import gap_of

__all__ = ["RawData", "SignificantFeatures"]


@dataclass(frozen=True)
class RawData(Tested):
    """Blocks for people to look at, and the choice that most of them make."""

    blocks: int
    epsilon: Fraction
    delta: Fraction
    rule: Rule = "optimal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", natural("blocks", self.blocks))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        object.__setattr__(self, "rule", self.test.rule)

    def needed(self, beta: Exactable) -> int:
        """By how many blocks the first choice must lead the second to come out with probability 1 − β."""
        return 2 * self.test.needed(beta) + 1

    def hand_out(self, rows: Any, *, units: Any = None, entropy: Entropy | None = None) -> list[Any]:
        """A copy of each block's rows: an array's, a list's, or a dict's of columns. Secret, and for one analyst each.

        `units` says for each row whose it is, in whole numbers or text; without it every row is its own unit.
        """
        size = _length(rows)
        owners = np.arange(size) if units is None else _owners(units, size)
        return [_taken(rows, places) for places in blocks_of(owners, self.blocks, entropy=chosen(entropy))]

    def release(self, choices: Sequence[Any], *, entropy: Entropy | None = None) -> Release:
        """What most blocks chose, or `Unstable`; one choice for each block, None from those that made none."""
        if isinstance(choices, str | bytes | Mapping) or not hasattr(choices, "__len__"):
            raise InvalidArgument("choices", type(choices).__name__, "a list", "give one choice for each block")
        if len(choices) != self.blocks:
            remedy = "give one choice for each block, None where there is none"
            raise InvalidArgument("choices", f"{len(choices)} of them", f"{self.blocks} of them", remedy)
        answer, distance = self._judge(list(choices))
        source = chosen(entropy)
        value = answer if self.test.passes(distance, source) else Unstable(self.loss)
        return Release(value, self.loss, self.events, None, source.private)

    def _judge(self, choices: list[Any]) -> tuple[Label, int]:
        """The common answer and its distance; secret."""
        answer, lead = gap_of(choices)
        return answer, max(0, lead - 1) // 2


@dataclass(frozen=True)
class SignificantFeatures(RawData):
    """The features that more than `part` of the blocks name, all of them at once."""

    part: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "part", probability("part", self.part))

    def needed(self, beta: Exactable) -> int:
        """By how many blocks each feature must be clear of the line to come out with probability 1 − β."""
        return self.test.needed(beta)

    def _judge(self, choices: list[Any]) -> tuple[Label, int]:
        line = floor(self.part * self.blocks)
        held: dict[str, Label] = {}
        counts: Counter[str] = Counter()
        for listed in choices:
            named = {repr(feature): feature for feature in _features(listed)}
            held |= named
            counts.update(named.keys())
        above = sorted(written for written, number in counts.items() if number > line)
        margins = (number - line - 1 if number > line else line - number for number in counts.values())
        # The features that nobody named are `line` away from it.
        return tuple(held[written] for written in above), min([line, *margins])


def _features(listed: Any) -> list[Label]:
    """What one block names; a text is one feature, and what is no list names none."""
    if isinstance(listed, str | bytes):
        return [label(listed)]
    if isinstance(listed, np.ndarray):
        listed = listed.reshape(-1).tolist()
    if not isinstance(listed, list | tuple | set | frozenset):
        return []
    return [feature for feature in map(label, listed) if feature is not None]


def _length(rows: Any) -> int:
    if isinstance(rows, Mapping):
        lengths = {len(column) for column in rows.values()}
        if len(lengths) != 1:
            raise InvalidArgument("rows", f"columns of {len(lengths)} lengths", "of one length", "give whole columns")
        return int(lengths.pop())
    if isinstance(rows, str | bytes) or not hasattr(rows, "__len__") or getattr(rows, "shape", None) == ():
        raise InvalidArgument(
            "rows", type(rows).__name__, "rows", "give an array, a list, a table or a dict of columns"
        )
    return len(rows)


def _owners(units: Any, size: int) -> np.ndarray[Any, Any]:
    """The unit of each row; what is neither number nor text goes by how it is written."""
    listed = units if isinstance(units, np.ndarray) else np.array([repr(unit) for unit in units], dtype=str)
    if listed.shape != (size,):
        raise InvalidArgument("units", f"of shape {listed.shape}", f"{size}, one to a row", "name each row's unit")
    return listed if listed.dtype.kind in "iuUS" else np.array([repr(unit) for unit in listed.tolist()], dtype=str)


def _taken(rows: Any, places: Integers) -> Any:
    """A copy of these rows, of the same kind."""
    if isinstance(rows, Mapping):
        return {name: np.asarray(column)[places] for name, column in rows.items()}
    if isinstance(rows, np.ndarray):
        return rows[places]
    if hasattr(rows, "take"):
        return rows.take(places)
    return [rows[place] for place in places.tolist()]

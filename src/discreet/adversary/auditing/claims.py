"""What a mechanism says that it guarantees, for the very data sets that it is audited on.

The claim of our noise is for inputs no farther apart than its sensitivity, and that of a measurement of OpenDP is
a function of their distance in its own metric: one row replaced is a distance of 2 where rows are added and removed.
An audit of a pair that is farther apart than the claim is for would call an honest mechanism broken.

>>> from discreet.mechanisms import Laplace
>>> claimed_between(Laplace.for_epsilon(1, sensitivity=5), [(0, 5)])
PureDP(epsilon=1)
>>> claimed_between(Laplace.for_epsilon(1), [(0, 5)])
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: pair=(0, 5) must be at most 1 apart, as the mechanism's own claim is for; \
give nearer data sets, a larger sensitivity, or the claim
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.adversary.auditing.foreign import claimed
from discreet.adversary.auditing.sensitivity import MeasuredSensitivity, measured_sensitivity
from discreet.core.errors import InvalidArgument
from discreet.core.losses import Loss
from discreet.core.rounding import float_up
from discreet.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    SparseVector,
    Staircase,
)

__all__ = ["claimed_between"]

Pair = tuple[Any, Any]


def claimed_between(mechanism: Any, pairs: Sequence[Pair]) -> Loss | None:
    """What the mechanism says it guarantees for all these pairs; None if it says nothing that can be read.

    Pairs that hold NaN or infinities have no distance, and are held to the claim for the others.
    """
    tame = [pair for pair in pairs if _finite(pair)]
    if hasattr(mechanism, "input_metric"):
        apart = [_in_metric(str(mechanism.input_metric), pair) for pair in tame]
        known = [distance for distance in apart if distance is not None]
        return claimed(mechanism, max(known, default=1)) if len(known) == len(apart) else None
    for pair in tame:
        if (most := _beyond(mechanism, pair)) is not None:
            bound = f"at most {most:g} apart, as the mechanism's own claim is for"
            raise InvalidArgument("pair", pair, bound, "give nearer data sets, a larger sensitivity, or the claim")
    return claimed(mechanism)


def _finite(pair: Pair) -> bool:
    try:
        return all(bool(np.isfinite(np.asarray(side, np.float64)).all()) for side in pair)
    except (TypeError, ValueError, OverflowError):
        return True


def _moves(pair: Pair) -> MeasuredSensitivity:
    return measured_sensitivity(lambda data: data, [pair])


def _beyond(mechanism: Any, pair: Pair) -> float | None:
    """How far apart inputs may be, where this pair is farther."""
    if isinstance(mechanism, Gaussian):
        most = mechanism.squared_sensitivity
        return math.sqrt(most) if _moves(pair).squared_l2 > most else None
    theirs = callable(getattr(mechanism, "randomise", None)) and not callable(getattr(mechanism, "release", None))
    reach = getattr(mechanism, "sensitivity", None)
    if isinstance(mechanism, Laplace | Staircase) or (theirs and isinstance(reach, int | float)):
        return float(reach or 0) if _moves(pair).l1 > Fraction(reach or 0) else None
    if isinstance(mechanism, Exponential | NoisyMax | PermuteAndFlip | SparseVector):
        return mechanism.sensitivity if _moves(pair).linf > mechanism.sensitivity else None
    return None


def _in_metric(metric: str, pair: Pair) -> Any:
    """How far apart OpenDP holds the pair to be, at most, as its maps take it; None for metrics that are not known."""
    name, _, kind = metric.partition("(")
    if name in ("SymmetricDistance", "InsertDeleteDistance"):
        return _rows_apart(*map(list, pair))
    if name in ("ChangeOneDistance", "HammingDistance"):
        same_size = len(pair[0]) == len(pair[1])
        return sum(a != b for a, b in zip(*pair, strict=True)) if same_size else None
    if name == "DiscreteDistance":
        return 1
    if name not in ("AbsoluteDistance", "L1Distance", "L2Distance"):
        return None
    moves = _moves(pair)
    if not isinstance(moves.l1, Fraction) or not isinstance(moves.squared_l2, Fraction):
        return None
    if name == "L2Distance":
        return math.nextafter(math.sqrt(float_up(moves.squared_l2)), math.inf)
    return float_up(moves.l1) if kind.startswith("f") else math.ceil(moves.l1)


def _rows_apart(ours: list[Any], theirs: list[Any]) -> int:
    """Rows removed and added between what both begin with and what both end with."""
    shorter = min(len(ours), len(theirs))
    start = next((place for place in range(shorter) if ours[place] != theirs[place]), shorter)
    left = shorter - start
    end = next((place for place in range(left) if ours[-1 - place] != theirs[-1 - place]), left)
    return len(ours) + len(theirs) - 2 * (start + end)

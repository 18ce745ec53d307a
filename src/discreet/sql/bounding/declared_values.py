"""Sums of a column whose values are all declared: noise by what one record can add, not only by the most.

Guarantee. In such a sum every row adds one of the declared values, or nothing: the statement moves a value to the
nearest declared one by a rule that looks at that value alone (`nearest`), and leaves out NULL, NaN and infinities. The
row adds to one group. Values are whole multiples of their common unit, so that sums are exact. So

- one unit more or less moves the sum of one group by ±v, v a declared value, and no other: with noise of
  `NeighbourSet` on each group the release is ε-DP, all groups together;
- one unit replaced is one less and one more: twice that, be it in one group or in two. The noise is that of ε/2.

A unit is a row, or a person declared to have one row at most; whoever has more than that adds nothing. Whether a
declaration is right matters to the answer, and not to the guarantee.

>>> bonuses = fitting((Fraction(0), Fraction(500), Fraction(10_000)))
>>> unit_of(bonuses), steps_of(bonuses)
(Fraction(500, 1), (0, 1, 20))
>>> law = noise(Fraction(2), steps_of(bonuses))
>>> law.loss, round(law.mean_error * 500)
(PureDP(epsilon=2), 2862)

Which noise is taken follows from declared facts alone (`measuring/planner.py`). One choice takes some hundredths of a
second, and is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import pairwise
from math import gcd, lcm, sinh
from sys import float_info

from discreet.core.domains import Bounds, Categories
from discreet.mechanisms.neighbour_set import NeighbourSet

__all__ = ["MOST_VALUES", "fitting", "least_error", "nearest", "noise", "said", "steps_of", "unit_of", "within"]

MOST_VALUES = 64
"""Longer lists are not tried: among so many values there is little room for shells, and every row is compared to
each."""
MOST_STEPS = 1 << 20
"""Units in the largest value: whole numbers that engines sum fast, and exactly for 2^43 rows."""
WORK = 1 << 16
"""Intervals made while shells are followed: some hundredths of a second. Where more were tried, little was gained."""
LISTED = 6
"""Values that are told one by one."""


def within(values: Categories | None, bounds: Bounds | None) -> frozenset[Fraction] | None:
    """The numbers that a column can hold, held to its bounds; None if they are not all declared.

    Bounds that reach beyond the values say that there are others: then the values are those to be seen as groups.
    """
    numbers = None if values is None else values.numbers
    if not numbers or bounds is None or bounds.lower < numbers[0] or bounds.upper > numbers[-1]:
        return None
    return frozenset(min(max(number, bounds.lower), bounds.upper) for number in numbers)


def fitting(values: Iterable[Fraction], middle: Fraction = Fraction(0)) -> tuple[Fraction, ...]:
    """The values less the middle, if they have a unit to be counted in and noise can be made for them; else none."""
    moved = tuple(sorted({value - middle for value in values}))
    if not any(moved) or len(moved) > MOST_VALUES:
        return ()
    largest = max(map(abs, moved)) / unit_of(moved)
    return moved if largest <= MOST_STEPS else ()


def unit_of(values: Sequence[Fraction]) -> Fraction:
    """The largest number of which all values are whole multiples."""
    whole = lcm(*(value.denominator for value in values))
    return Fraction(reduce(gcd, (int(value * whole) for value in values)), whole)


def steps_of(values: Sequence[Fraction]) -> tuple[int, ...]:
    """The values in their unit."""
    unit = unit_of(values)
    return tuple(int(value / unit) for value in values)


@lru_cache(maxsize=256)
def noise(epsilon: Fraction, steps: tuple[int, ...]) -> NeighbourSet:
    """The noise of one sum to which a record adds one of these steps."""
    return NeighbourSet(epsilon, steps, work=WORK)


def least_error(epsilon: Fraction, steps: Sequence[int]) -> float:
    """E|noise| is at least this, whatever the other values: geometric noise on multiples of the largest has it."""
    return max(map(abs, steps)) / sinh(min(float(epsilon), 700.0))


def nearest(value: str, values: Sequence[Fraction], results: Sequence[int], kind: str) -> str:
    """The SQL, in a type, of the result that belongs to the value nearest to a double, the smaller of two as near; NULL
    where it is NULL, NaN or infinite.

    Every arm is a constant and doubles are compared with constants only, so it is the same everywhere and cannot fail.
    """
    between = [(low + high) / 2 for low, high in pairwise(values)]
    arms = [f"WHEN {value} <= {_double(end)} THEN {x}" for end, x in zip(between, results, strict=False)]
    found = f"CASE {' '.join(arms)} ELSE {results[-1]} END" if arms else str(results[-1])
    most = _double(Fraction(float_info.max))
    return f"CAST(CASE WHEN {value} BETWEEN -{most} AND {most} THEN {found} END AS {kind})"


def _double(value: Fraction) -> str:
    written = repr(float(value))
    return written if "e" in written else f"{written}e0"


def said(values: Sequence[Fraction]) -> str:
    """The values for people."""
    told = [f"{int(value):,}" if value.denominator == 1 else f"{float(value):,g}" for value in values]
    if len(told) > LISTED:
        return f"{', '.join(told[: LISTED - 1])}, … {told[-1]} ({len(told)} values)"
    return f"{', '.join(told[:-1])} or {told[-1]}" if len(told) > 1 else told[0]

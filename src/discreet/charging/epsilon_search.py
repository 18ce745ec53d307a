"""The ε of a question that was asked for an error, or for a ρ.

>>> from discreet.core.events import Pure
>>> epsilon_within(Fraction(1, 2), lambda epsilon: (Pure(epsilon),))
Fraction(33, 32)
>>> epsilon_for(20, lambda epsilon: (ExpectedError("n", 5 / float(epsilon), 5 / float(epsilon)),))
Fraction(1, 4)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf

from discreet.accounting.zcdp import zcdp
from discreet.core.errors import InvalidArgument
from discreet.core.events import Composed, Event
from discreet.core.expected_error import ExpectedError

__all__ = ["epsilon_for", "epsilon_within"]

DIGITS = 64
"""Values of ε in an octave."""


def epsilon_for(error: float, errors: Callable[[Fraction], tuple[ExpectedError, ...]]) -> Fraction:
    """The least ε, to two digits, at which every column is off by at most `error` in the mean."""
    for column in errors(Fraction(1)):
        if column.over_count or column.in_ranks or column.meaning or column.at_limit == inf:
            reason = "a count or sum of units whose rows are limited"
            remedy = "declare max_rows, take one row of each unit, or give epsilon; for averages ask for SUM and COUNT"
            raise InvalidArgument("error", column.column, reason, remedy)
    low, high = -20 * DIGITS, 20 * DIGITS
    while low < high:
        middle = (low + high) // 2
        good = max(column.at_limit for column in errors(_epsilon_at(middle))) <= error
        low, high = (low, middle) if good else (middle + 1, high)
    return _epsilon_at(high)


def epsilon_within(rho: Fraction, events: Callable[[Fraction], tuple[Event, ...]]) -> Fraction:
    """The largest ε, to a hundredth, at which what is planned costs no more than ρ."""
    low, high = -24 * DIGITS, 24 * DIGITS
    while low < high:
        middle = (low + high + 1) // 2
        fits = zcdp(Composed(events(_epsilon_at(middle)))).rho <= rho
        low, high = (middle, high) if fits else (low, middle - 1)
    found = _epsilon_at(low)
    if low == -24 * DIGITS and zcdp(Composed(events(found))).rho > rho:
        raise InvalidArgument("rho", rho, "more than that", "noise would be all there is")
    return found


def _epsilon_at(index: int) -> Fraction:
    """Values of ε that rise by a little each."""
    octave, rest = divmod(index, DIGITS)
    return Fraction(2) ** octave * (1 + Fraction(rest, DIGITS))

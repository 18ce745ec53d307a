"""How often joins may repeat a row, so that no unit's rows can grow without measure.

A row meets at most so many rows of a public or linked table as the join lets through, and in a join of private tables
the rows of its own unit there. Joins on top of each other multiply, those beside each other do not. A question has few
joins (`MOST_JOINS`), and all of them together make at most `MOST_ROWS` rows of one. One join of a unit's rows with each
other is free, be they many: a unit with n rows then has up to n² of them, as pairs of events need. Of the private
joins, that is the one whose limit is largest.

>>> from math import inf
>>> once = Multiplicity().joined(Multiplicity(), 1_000)
>>> once.joined(once, 1).rows, once.joined(once.beside(once), inf, own=True).rows
(1000000, 1000000)
>>> once.joined(once, 2).rows <= MOST_ROWS
False
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

__all__ = ["DEFAULT_MATCHES", "MOST_JOINS", "MOST_ROWS", "Multiplicity"]

DEFAULT_MATCHES = 1_000
"""Rows of a public or linked table that one row meets, where the steward declares no other limit."""
MOST_JOINS = 16
MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Multiplicity:
    """What the joins of a relation may make of one row."""

    joins: int = 0
    limits: tuple[float, ...] = ()
    """Of joins with public and linked tables, the largest first."""
    own: tuple[float, ...] = ()
    """Of joins of a unit's rows with each other, the largest first; ∞ where nothing is declared."""

    def joined(self, other: Multiplicity, limit: float, own: bool = False) -> Multiplicity:
        """After a join in which a row meets at most `limit` rows, its own unit's or not."""
        new = () if limit == 1 else (limit,)
        limits = (*self.limits, *other.limits, *(() if own else new))
        owns = (*self.own, *other.own, *(new if own else ()))
        return Multiplicity(self.joins + other.joins + 1, _ordered(limits), _ordered(owns))

    def tested(self, other: Multiplicity) -> Multiplicity:
        """After a join that repeats no row, as EXISTS."""
        return replace(self, joins=self.joins + other.joins + 1)

    def beside(self, other: Multiplicity) -> Multiplicity:
        """Of both, one below the other, where the worse of them counts at each place."""
        return Multiplicity(self.joins + other.joins, _larger(self.limits, other.limits), _larger(self.own, other.own))

    @property
    def rows(self) -> float:
        """The most rows that one can become, with the largest of the unit's own limits left out."""
        return prod(self.limits) * prod(self.own[1:])


def _ordered(limits: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sorted(limits, reverse=True))


def _larger(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    longest = max(len(one), len(other))
    filled = [limits + (1,) * (longest - len(limits)) for limits in (one, other)]
    return tuple(map(max, *filled)) if longest else ()

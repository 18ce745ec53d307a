"""Who is protected: the unit of privacy and when two tables are neighbours.

Every guarantee names its unit and its neighbour relation. `add_remove` neighbours differ by all the records of one
unit being there or not; `replace` neighbours by one unit's records being exchanged for another's. One replacement
is one removal and one addition, so a guarantee for `add_remove` holds for `replace` at group size two; a guarantee
for `replace` says nothing about `add_remove`, since it treats the number of units as public.

>>> User("patient_id")
User(neighbours='add_remove', column='patient_id')
>>> Row(neighbours="replace").changes
2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from discreet.core.errors import InvalidArgument

__all__ = ["Edge", "Event", "Neighbours", "Node", "Row", "Unit", "User"]

Neighbours = Literal["add_remove", "replace"]


@dataclass(frozen=True)
class Unit:
    """What one protected party contributes to the data."""

    neighbours: Neighbours = field(default="add_remove", kw_only=True)

    def __post_init__(self) -> None:
        if self.neighbours not in get_args(Neighbours):
            raise InvalidArgument("neighbours", self.neighbours, "'add_remove' or 'replace'", "name one of the two")

    @property
    def changes(self) -> int:
        """How many units' records differ between neighbours: one added or removed, two exchanged."""
        return 1 if self.neighbours == "add_remove" else 2


@dataclass(frozen=True)
class Row(Unit):
    """One row of the table."""


@dataclass(frozen=True)
class User(Unit):
    """All rows that share one value of `column`."""

    column: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.column, str) or not self.column:
            raise InvalidArgument("column", self.column, "a column name", "name the column that identifies a person")


@dataclass(frozen=True)
class Event(Unit):
    """One event of a stream; a person may have many."""


@dataclass(frozen=True)
class Edge(Unit):
    """One edge of a graph."""


@dataclass(frozen=True)
class Node(Unit):
    """One node of a graph with all its edges."""

"""The intersection attack: several anonymous tables with the same people, each harmless, together not.

In each table a person is one of the rows that fit what is known of them, and so has one of the sensitive values of
these rows. Who is in all tables has a value that is left in all of them. Values may be blurred: `50-60` fits 56,
`1901**` fits 190103, `*` fits anything.

>>> from discreet.adversary import hospitals
>>> found = intersect({"A": hospitals.FIRST, "B": hospitals.SECOND}, hospitals.QUASI, "diagnosis", hospitals.KNOWN)
>>> print(found)
BROKEN: of 1 person in both tables, diagnosis of 1 is left without a doubt.
people: 1 looked for, 1 with rows that fit in every table
pinned by A alone: 0, with 2 values left on average
pinned by B alone: 0, with 3 values left on average
pinned by all together: 1, with 1 value left on average
>>> found.left
(frozenset({'AIDS'}),)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.figures import bars
from discreet.adversary.findings import Finding, judged
from discreet.adversary.records import Records
from discreet.core.errors import InvalidArgument

__all__ = ["Intersection", "fits", "intersect"]

RANGE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(-?\d+(?:\.\d+)?)\s*")
CHUNK = 1 << 24
"""Pairs of people and groups that are compared at once."""


@dataclass(frozen=True)
class Intersection(Finding):
    """What is left for each person."""

    sensitive: str
    alone: dict[str, tuple[frozenset[str], ...]] = field(repr=False)
    """By table, the values that are left of each person."""
    left: tuple[frozenset[str], ...] = field(repr=False)
    """The values that are left in all tables."""
    people: tuple[tuple[str, ...], ...] = field(repr=False)
    """What is known of each."""

    @property
    def pinned(self) -> int:
        """People of whom one value is left."""
        return sum(len(values) == 1 for values in self.left)

    @property
    def present(self) -> int:
        """People who may be in every table."""
        return sum(bool(values) for values in self.left)

    @property
    def verdict(self) -> str:
        """In plain words."""
        every = "both tables" if len(self.alone) == 2 else f"all {len(self.alone)} tables"
        if not self.present:
            return f"NOTHING: nobody looked for fits rows of {every}; where these blur differently, say who is known."
        who = f"{self.present:,} {'person' if self.present == 1 else 'people'} in {every}"
        word = judged(self.pinned, self.present)
        if word == "HELD":
            return f"HELD: of {who}, two or more values of {self.sensitive} are left of each."
        return f"{word}: of {who}, {self.sensitive} of {self.pinned:,} is left without a doubt."

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        alone = {name: sum(len(values) == 1 for values in sets) for name, sets in self.alone.items()}
        return {"people": len(self.left), "present": self.present, "pinned": self.pinned, "pinned_alone": alone}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        said = [("people", f"{len(self.left):,} looked for, {self.present:,} with rows that fit in every table")]
        sides = [(f"pinned by {name} alone", sets) for name, sets in self.alone.items()]
        return said + [(name, _told(sets)) for name, sets in [*sides, ("pinned by all together", self.left)]]

    def plot(self) -> Any:
        """How many people are left with one value, by table."""
        sides = {f"{name} alone": sets for name, sets in self.alone.items()} | {"all together": self.left}
        shares = {name: sum(len(values) == 1 for values in sets) / len(sets) for name, sets in sides.items()}
        return bars(shares, self.verdict, f"people whose {self.sensitive} is left without a doubt", percent=True)

    def secrets(self) -> dict[str, Any]:
        """Whose value is which."""
        return {
            "found": [
                {"known": list(who), self.sensitive: sorted(values)}
                for who, values in zip(self.people, self.left, strict=True)
                if len(values) == 1
            ]
        }


def intersect(
    releases: Mapping[str, Any], columns: Sequence[str], sensitive: str, known: Any | None = None
) -> Intersection:
    """Intersect what tables say of people.

    `known` is a table of people with some of the columns; without it, everybody is tried of whom something could be
    known: every combination of values that occurs in the first table.
    """
    tables = {name: Records.read(source, name) for name, source in releases.items()}
    if len(tables) < 2:
        raise InvalidArgument("releases", list(tables), "two tables or more", "give the other one too")
    shared = [name for name in columns if all(name in table.columns for table in tables.values())]
    people = Records.read(known, "known") if known is not None else next(iter(tables.values()))
    shared = [name for name in shared if name in people.columns]
    if not shared:
        raise InvalidArgument("columns", list(columns), "columns that all tables have", "name one that is in each")
    looked_for = list(zip(*(people.column(name) for name in shared), strict=True))
    if known is None:
        looked_for = list(dict.fromkeys(looked_for))
    alone = {name: _left(table, looked_for, shared, sensitive) for name, table in tables.items()}
    left = tuple(frozenset.intersection(*sets) for sets in zip(*alone.values(), strict=True))
    return Intersection(sensitive, alone, left, tuple(looked_for))


@lru_cache(maxsize=1 << 16)
def fits(blurred: str, value: str) -> bool:
    """Whether a published value may stand for this one.

    >>> fits("50-60", "56"), fits("1901**", "190103"), fits("*", "anything"), fits("50-60", "61"), fits("F", "M")
    (True, True, True, False, False)
    """
    if blurred == value or blurred == "*":
        return True
    span = RANGE.fullmatch(blurred)
    if span is not None:
        try:
            return float(span[1]) <= float(value) <= float(span[2])
        except ValueError:
            return False
    if "*" not in blurred:
        return False
    pattern = ".".join(map(re.escape, blurred.split("*")))
    return re.fullmatch(pattern, value) is not None


def _left(
    table: Records, people: Sequence[tuple[str, ...]], columns: Sequence[str], sensitive: str
) -> tuple[frozenset[str], ...]:
    groups = table.groups(columns)
    _, first = np.unique(groups, return_index=True)
    values = table.column(table.having([sensitive])[0])
    held: list[set[str]] = [set() for _ in first]
    for group, value in zip(groups.tolist(), values, strict=True):
        held[group].add(value)
    shown = [np.array(table.column(name), dtype=object)[first] for name in columns]
    wanted = [[person[place] for person in people] for place in range(len(columns))]
    maps = [_fitting(known, seen) for known, seen in zip(wanted, shown, strict=True)]
    found: list[frozenset[str]] = []
    step = max(1, CHUNK // max(1, len(first)))
    for start in range(0, len(people), step):
        part = np.ones((min(step, len(people) - start), len(first)), bool)
        for matrix, rows, places in maps:
            part &= matrix[rows[start : start + step]][:, places]
        found += [frozenset().union(*(held[place] for place in np.flatnonzero(row))) for row in part]
    return tuple(found)


def _fitting(known: Sequence[str], seen: Any) -> tuple[NDArray[np.bool_], Any, Any]:
    """Different values against different values once, and where each is in that matrix."""
    ours, rows = np.unique(np.array(known, dtype=str), return_inverse=True)
    theirs, places = np.unique(np.array(seen, dtype=str), return_inverse=True)
    matrix = np.array([[fits(str(blurred), str(value)) for blurred in theirs] for value in ours], bool)
    return matrix, rows.reshape(-1), places.reshape(-1)


def _told(sets: Sequence[frozenset[str]]) -> str:
    sizes = [len(values) for values in sets if values]
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    return f"{sum(size == 1 for size in sizes):,}, with {mean:.3g} value{'' if mean == 1 else 's'} left on average"

"""The intersection attack: several anonymous tables with the same people, each harmless, together not.

In each table a person is one of the rows that fit what is known of them, and so has one of the sensitive values of
these rows. Who is in all tables has a value that is left in all of them. Values may be blurred, in each table in
another way: two fit each other if somebody can have both, as `50-60` and 56, `60-79` and `65+`, `1901**` and `19****`,
`*` and anything.

>>> from discreet.adversary.linkage import example_hospitals as hospitals
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.figures import bars
from discreet.adversary.findings import Finding, judged
from discreet.adversary.linkage.records import Records
from discreet.core.errors import InvalidArgument

__all__ = ["Intersection", "fits", "intersect"]

NUMBER = r"(-?\d+(?:\.\d+)?)"
RANGE = re.compile(rf"\s*{NUMBER}\s*(?:-|–|to)\s*{NUMBER}\s*")
ABOVE = re.compile(rf"\s*{NUMBER}\s*\+\s*")
DIGITS = re.compile(r"(\d+)(\*+)")
CHUNK = 1 << 24
"""Pairs of people and groups that are compared at once."""
MOST_KINDS = 200_000
"""Kinds of people that are tried where nobody is named."""


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
    kinds: bool = False
    """Whether these are all kinds of people who can be in every table, for want of people."""

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
            return f"NOTHING: nobody looked for can be in {every}: rows that fit share no {self.sensitive}."
        who = f"{self.present:,} {'person' if self.present == 1 else 'people'} in {every}"
        if self.kinds:
            who = f"{self.present:,} {'kind' if self.present == 1 else 'kinds'} of people who can be in {every}"
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
        who = "kinds of people" if self.kinds else "people"
        said = [(who, f"{len(self.left):,} looked for, {self.present:,} with rows that fit in every table")]
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
    known: every combination of values that occurs in the first table, as narrow as the other tables make it.
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
        for table in tables.values():
            looked_for = _narrowed(list(dict.fromkeys(looked_for)), table, shared)
    alone = {name: _left(table, looked_for, shared, sensitive) for name, table in tables.items()}
    left = tuple(frozenset.intersection(*sets) for sets in zip(*alone.values(), strict=True))
    return Intersection(sensitive, alone, left, tuple(looked_for), known is None)


def fits(blurred: str, value: str) -> bool:
    """Whether two values, blurred or not, may stand for the same one.

    >>> fits("50-60", "56"), fits("1901**", "190103"), fits("*", "anything"), fits("50-60", "61"), fits("F", "M")
    (True, True, True, False, False)
    >>> fits("60-79", "60-69"), fits("1901**", "19****"), fits("65+", "60-69"), fits("50-60", "60-70")
    (True, True, True, False)
    """
    return meet(blurred, value) is not None


@lru_cache(maxsize=1 << 16)
def meet(one: str, other: str) -> str | None:
    """What two values leave together, or None; ranges that only touch are taken for neighbours, which leave nothing.

    >>> meet("60-79", "65+"), meet("1901**", "19**46"), meet("6*", "65-74"), meet("<5", "3")
    ('65-79', '190146', '65-69', None)
    """
    if one == other or other == "*":
        return one
    if one == "*":
        return other
    if "*" in one + other and len(one) == len(other) and not (RANGE.fullmatch(one) or RANGE.fullmatch(other)):
        pairs = list(zip(one, other, strict=True))
        agree = all("*" in pair or pair[0] == pair[1] for pair in pairs)
        return "".join(b if a == "*" else a for a, b in pairs) if agree else None
    ours, theirs = _span(one), _span(other)
    if ours is None or theirs is None:
        return None
    low, high = max(ours[0], theirs[0]), min(ours[1], theirs[1])
    if low[0] > high[0] or (low[0] == high[0] and ours[0] != ours[1] and theirs[0] != theirs[1]):
        return None
    if low[0] == high[0]:
        return low[1]
    return f"{low[1]}-{high[1]}" if high[1] else f"{low[1]}+"


def _span(text: str) -> tuple[tuple[float, str], tuple[float, str]] | None:
    """The ends of a range, of all numbers with these first digits, of a number itself; each with how it is written."""
    ends = RANGE.fullmatch(text)
    if ends is not None and float(ends[1]) <= float(ends[2]):
        return (float(ends[1]), ends[1]), (float(ends[2]), ends[2])
    above, digits = ABOVE.fullmatch(text), DIGITS.fullmatch(text)
    if above is not None:
        return (float(above[1]), above[1]), (float("inf"), "")
    if digits is not None:
        low, high = (text.replace("*", digit) for digit in "09")
        return (float(low), low), (float(high), high)
    return ((float(text), text), (float(text), text)) if re.fullmatch(NUMBER, text) else None


def _narrowed(people: list[tuple[str, ...]], table: Records, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Each kind of people as each group of a table leaves it; those that fit no group are kept as they are."""
    _, first = np.unique(table.groups(columns), return_index=True)
    shown = list(zip(*(np.array(table.column(name), dtype=object)[first].tolist() for name in columns), strict=True))
    kinds: dict[tuple[str, ...], None] = {}
    for person, row in zip(people, _fitting_groups(people, list(zip(*shown, strict=True))), strict=True):
        met = [tuple(meet(*pair) or "" for pair in zip(person, shown[place], strict=True)) for place in row]
        kinds |= dict.fromkeys(met or [person])
        if len(kinds) > MOST_KINDS:
            bound = f"given where tables leave more than {MOST_KINDS:,} kinds of people"
            raise InvalidArgument("known", None, bound, "say who is looked for, or name fewer columns")
    return list(kinds)


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
    rows = _fitting_groups(people, shown)
    return tuple(frozenset().union(*(held[place] for place in row)) for row in rows)


def _fitting_groups(people: Sequence[tuple[str, ...]], shown: Sequence[Any]) -> Iterator[list[int]]:
    """For each person the groups that fit, whose values are given by column."""
    maps = [_fitting([person[place] for person in people], seen) for place, seen in enumerate(shown)]
    groups = len(shown[0])
    step = max(1, CHUNK // max(1, groups))
    for start in range(0, len(people), step):
        part = np.ones((min(step, len(people) - start), groups), bool)
        for matrix, rows, places in maps:
            part &= matrix[rows[start : start + step]][:, places]
        for row in part:
            yield np.flatnonzero(row).tolist()


def _fitting(known: Sequence[str], seen: Any) -> tuple[NDArray[np.bool_], Any, Any]:
    """Different values against different values once, and where each is in that matrix."""
    ours, rows = np.unique(np.array(known, dtype=str), return_inverse=True)
    theirs, places = np.unique(np.array(seen, dtype=str), return_inverse=True)
    numbered: dict[Any, int] = {}
    codes = [np.array([numbered.setdefault(_exact(v), len(numbered)) for v in side]) for side in (ours, theirs)]
    matrix = np.equal.outer(*codes)
    for place in [place for place, value in enumerate(ours) if _exact(value) is None]:
        matrix[place] = [fits(str(ours[place]), str(value)) for value in theirs]
    for place in [place for place, value in enumerate(theirs) if _exact(value) is None]:
        matrix[:, place] = [fits(str(theirs[place]), str(value)) for value in ours]
    return matrix, rows.reshape(-1), places.reshape(-1)


def _exact(text: str) -> float | str | None:
    """A value that only equal ones fit; None if it is blurred."""
    if re.fullmatch(NUMBER, text):
        return float(text)
    return None if "*" in text or _span(text) is not None else str(text)


def _told(sets: Sequence[frozenset[str]]) -> str:
    sizes = [len(values) for values in sets if values]
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    return f"{sum(size == 1 for size in sizes):,}, with {mean:.3g} value{'' if mean == 1 else 's'} left on average"

"""k-anonymity, l-diversity and uniqueness: how many records stand alone by what others may know of people.

A table is k-anonymous for some columns (the quasi-identifiers) if every combination of values that occurs in them
occurs k times; it is l-diverse if each such group has l different values of the sensitive column (Sweeney 2002;
Machanavajjhala and others 2007). Neither protects against a second table (`intersection`).

>>> table = {"age": ["50-60"] * 2 + ["60-70"] * 3, "illness": ["flu", "flu", "gout", "flu", "asthma"]}
>>> found = how_anonymous(table, ["age"], "illness")
>>> found.k, found.diversity, found.known
(2, 1, 2)
>>> found.verdict
'LEAKING: whoever knows age of a person in the table knows illness of 2 of 5 (40.0 %); k = 2.'
>>> uniqueness({"a": [1, 1, 2], "b": [1, 2, 2]}, share=0.9).smallest
('a', 'b')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np

from discreet.adversary.figures import bars
from discreet.adversary.findings import Finding, judged
from discreet.adversary.linkage.records import Codes, Records
from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural

__all__ = ["Anonymity", "Combination", "Uniqueness", "how_anonymous", "uniqueness"]

MOST_COMBINATIONS = 20_000
MOST_SHOWN = 8


@dataclass(frozen=True)
class Anonymity(Finding):
    """How well groups hide their records."""

    columns: tuple[str, ...]
    sensitive: str | None
    sizes: Codes = field(repr=False)
    """Records of each group."""
    values: Codes | None = field(default=None, repr=False)
    """Different sensitive values of each group."""

    @property
    def records(self) -> int:
        """How many there are."""
        return int(self.sizes.sum())

    @property
    def k(self) -> int:
        """The smallest group."""
        return int(self.sizes.min())

    @property
    def diversity(self) -> int | None:
        """The fewest sensitive values in one group."""
        return None if self.values is None else int(self.values.min())

    @property
    def unique(self) -> int:
        """Records that are alone in their group."""
        return int((self.sizes == 1).sum())

    @property
    def known(self) -> int:
        """Records whose group has one sensitive value, or one record."""
        return self.unique if self.values is None else int(self.sizes[self.values == 1].sum())

    def below(self, k: int) -> int:
        """Records in groups of fewer than k."""
        return int(self.sizes[self.sizes < k].sum())

    @property
    def verdict(self) -> str:
        """In plain words."""
        many = f"{self.known:,} of {self.records:,} ({self.known / self.records * 100:.1f} %)"
        by = " and ".join(self.columns)
        word = judged(self.known, self.records)
        if word == "HELD":
            diverse = "" if self.diversity is None else f", with {self.diversity} or more values of {self.sensitive}"
            return f"HELD: nobody is alone by {by}: k = {self.k}{diverse}. A second table can still give people away."
        if self.sensitive is None:
            return f"{word}: {many} records are alone by {by}."
        known = f"{word}: whoever knows {by} of a person in the table knows {self.sensitive}"
        return f"{known} of {many}; k = {self.k}."

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        names = ("records", "k", "diversity", "unique", "known")
        return {name: getattr(self, name) for name in names}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        said = [
            ("groups", f"{self.sizes.size:,} of {self.records:,} records by {', '.join(self.columns)}"),
            ("k", f"{self.k:,}"),
            ("alone", f"{self.unique:,} records"),
            ("in groups below 5", f"{self.below(5):,} records"),
        ]
        if self.diversity is None:
            return said
        return [*said, ("l", f"{self.diversity:,} value{'' if self.diversity == 1 else 's'} of {self.sensitive}")]

    def plot(self) -> Any:
        """In how large groups records are."""
        ends = [1, 2, 3, 5, 10, 20, 50, 100, int(self.sizes.max()) + 1]
        spans = [(low, high) for low, high in pairwise(ends) if low < high]
        counts = {
            f"{low}" if high == low + 1 else f"{low} to {high - 1}": float(
                self.sizes[(self.sizes >= low) & (self.sizes < high)].sum()
            )
            for low, high in spans
        }
        return bars(counts, self.verdict, "records, by the size of their group")


def how_anonymous(source: Any, columns: Sequence[str], sensitive: str | None = None) -> Anonymity:
    """Groups the records of a table by what may be known of people."""
    records = Records.read(source)
    groups = records.groups(columns)
    sizes = np.bincount(groups)
    if sensitive is None:
        return Anonymity(tuple(columns), None, sizes)
    if sensitive in columns:
        raise InvalidArgument("sensitive", sensitive, "no quasi-identifier", "leave it out of the columns")
    codes = records.codes(records.having([sensitive])[0])
    pairs = np.unique(groups * (int(codes.max()) + 1) + codes) // (int(codes.max()) + 1)
    return Anonymity(tuple(columns), sensitive, sizes, np.bincount(pairs, minlength=sizes.size))


@dataclass(frozen=True)
class Combination:
    """Columns, and how many records are alone by them."""

    columns: tuple[str, ...]
    unique: int
    groups: int


@dataclass(frozen=True)
class Uniqueness(Finding):
    """Which columns single out how many records."""

    records: int
    share: float
    found: tuple[Combination, ...] = field(repr=False)
    """All combinations, the fewest columns first, then by what they single out."""

    @property
    def smallest(self) -> tuple[str, ...] | None:
        """The fewest columns that single out the wanted share of the records, if any do."""
        enough = (each for each in self.found if each.unique >= self.share * self.records)
        return next((each.columns for each in enough), None)

    @property
    def worst(self) -> tuple[Combination, ...]:
        """The combination that singles out most, for each number of columns."""
        best: dict[int, Combination] = {}
        for each in self.found:
            best.setdefault(len(each.columns), each)
        return tuple(best.values())

    @property
    def verdict(self) -> str:
        """In plain words."""
        most = max(self.found, key=lambda each: each.unique)
        part = f"{most.unique:,} of {self.records:,} records ({most.unique / self.records * 100:.1f} %)"
        return f"{judged(most.unique, self.records)}: {part} are alone by {', '.join(most.columns)}."

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        worst = [{"columns": list(each.columns), "unique": each.unique} for each in self.worst]
        smallest = None if self.smallest is None else list(self.smallest)
        return {"records": self.records, "worst": worst, "share": self.share, "smallest": smallest}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        shares = [(each, f"{each.unique / self.records * 100:.1f} % alone") for each in self.worst]
        said = [(f"{len(each.columns)} known", f"{share} by {', '.join(each.columns)}") for each, share in shares]
        wanted = f"{self.share * 100:g} % alone"
        return [*said, (wanted, "no combination" if self.smallest is None else f"by {', '.join(self.smallest)}")]

    def plot(self) -> Any:
        """The combinations that single out most."""
        shown = sorted(self.found, key=lambda each: -each.unique)[:MOST_SHOWN]
        shares = {" + ".join(each.columns): each.unique / self.records for each in shown}
        return bars(shares, self.verdict, "records that are alone", percent=True)


def uniqueness(
    source: Any,
    columns: Sequence[str] | None = None,
    *,
    largest: int = 3,
    share: float = 0.5,
    progress: Callable[[float], None] | None = None,
) -> Uniqueness:
    """Counts the records that are alone by each combination of up to `largest` columns."""
    records = Records.read(source)
    names = records.having(records.names if columns is None else columns)
    most = min(natural("largest", largest), len(names))
    total = sum(comb(len(names), size) for size in range(1, most + 1))
    if total > MOST_COMBINATIONS:
        bound = f"so small that there are at most {MOST_COMBINATIONS:,} combinations"
        raise InvalidArgument("largest", largest, bound, f"{len(names)} columns have {total:,}; name fewer columns")
    if not 0 < share <= 1:
        raise InvalidArgument("share", share, "above 0 and at most 1", "0.5 is half of the records")
    found: list[Combination] = []
    for size in range(1, most + 1):
        of_size = []
        for chosen in combinations(names, size):
            sizes = np.bincount(records.groups(chosen))
            of_size.append(Combination(chosen, int((sizes == 1).sum()), sizes.size))
            if progress is not None:
                progress((len(found) + len(of_size)) / total)
        found += sorted(of_size, key=lambda each: -each.unique)
    return Uniqueness(len(records), float(share), tuple(found))

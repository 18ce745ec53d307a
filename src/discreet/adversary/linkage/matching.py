"""Matching by scores: whose record is this, if one knows a few things about somebody, some of them wrong.

What is known of a person are pairs of an item and a value: a film and its rating, a column and what is in it. Each pair
adds to the score of every record that has the item with a similar value, more so the rarer that is: log₂(n/m) bits if m
of n records fit, and less so for records that hold more than others, since they fit anybody. The record with the best
score is claimed only where it stands out: by `eccentricity` standard deviations of all scores from the second best
(Narayanan and Shmatikov 2008).

>>> import numpy as np
>>> films = Items.of_triples(np.array([0, 0, 1, 1, 2]), np.array([7, 9, 7, 8, 7]), np.array([5.0, 1, 5, 2, 1]))
>>> found = match(films, [{7: 5, 9: 1}], eccentricity=0.5, truth=[0])
>>> found.claims.tolist(), found.right
([0], 1)

Records are arranged by item once; a person costs as much as the records of their items. `controls` are people who are
known not to be in the release: what is claimed of them tells how often claims are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adversary.figures import COLOURS, altair, styled
from discreet.adversary.findings import Finding, judged
from discreet.adversary.linkage.records import Records, numbers
from discreet.core.errors import InvalidArgument

__all__ = ["Items", "Matching", "match"]

ECCENTRICITY = 1.5
LUCK = 1e-6
"""The test of claims against those about controls calls luck an attack with this chance, at most."""

Doubles = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Items:
    """Records by what they hold, arranged by item."""

    records: int
    item_of: dict[Hashable, int] = field(repr=False)
    starts: Places = field(repr=False)
    holders: Places = field(repr=False)
    values: Doubles = field(repr=False)
    """Texts are numbered."""
    texts: tuple[dict[str, int] | None, ...] | None = field(default=None, repr=False)

    @classmethod
    def of_triples(cls, record: ArrayLike, item: ArrayLike, value: ArrayLike | None = None) -> Items:
        """From three columns, such as user, film and rating; without values, items are had or not."""
        who, what = np.asarray(record, np.int64), np.asarray(item)
        worth = np.zeros(who.size) if value is None else np.asarray(value, np.float64)
        if not who.size == what.size == worth.size or not who.size or who.min() < 0:
            wanted = "records numbered from 0, as many as items and values"
            raise InvalidArgument("record", f"{who.size} numbers", wanted, "give three columns of one length")
        names, places = np.unique(what, return_inverse=True)
        order = np.argsort(places.reshape(-1), kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(places.reshape(-1), minlength=names.size))])
        item_of = {name: place for place, name in enumerate(names.tolist())}
        return cls(int(who.max()) + 1, item_of, starts, who[order], worth[order])

    @classmethod
    def of_table(cls, source: Any, columns: Sequence[str] | None = None) -> Items:
        """From a table: its columns are the items; what is not a number is the same or not."""
        records = Records.read(source)
        names = records.having(records.names if columns is None else columns)
        n, held = len(records), []
        texts: list[dict[str, int] | None] = []
        for name in names:
            column = numbers(records.columns[name])
            if np.isfinite(column).all():
                held.append(column)
                texts.append(None)
            else:
                words = records.column(name)
                known = {word: place for place, word in enumerate(dict.fromkeys(words))}
                held.append(np.array([known[word] for word in words], np.float64))
                texts.append(known)
        starts = np.arange(len(names) + 1) * n
        holders = np.tile(np.arange(n), len(names))
        item_of: dict[Hashable, int] = {name: place for place, name in enumerate(names)}
        return cls(n, item_of, starts, holders, np.concatenate(held), tuple(texts))

    def scores(self, known: Mapping[Any, Any], tolerance: Callable[[Hashable], float]) -> Doubles:
        """How well each record fits what is known of one person."""
        found = np.zeros(self.records)
        for item, value in known.items():
            place = self.item_of.get(item)
            if place is None:
                continue
            part = slice(int(self.starts[place]), int(self.starts[place + 1]))
            number, exactly = self._number(place, value)
            if not np.isfinite(number):
                continue
            off = np.abs(self.values[part] - number)
            scale = 0.0 if exactly else tolerance(item)
            near = np.exp(-((off / scale) ** 2)) if scale > 0 else (off == 0).astype(np.float64)
            fit = float(near.sum())
            if fit > 0:
                holders = self.holders[part]
                bits = np.log2(self.records / fit) - self._fullness[holders]
                np.add.at(found, holders, near * np.maximum(bits, 0.0))
        return found

    @cached_property
    def _fullness(self) -> Doubles:
        """log₂ of how much each record holds, over the mean."""
        held = np.maximum(np.bincount(self.holders, minlength=self.records), 1)
        return np.asarray(np.log2(held / held.mean()), np.float64)

    def _number(self, place: int, value: Any) -> tuple[float, bool]:
        texts = None if self.texts is None else self.texts[place]
        if texts is None:
            return float(numbers([value])[0]), False
        return float(texts.get(str(value), np.nan)), True


@dataclass(frozen=True)
class Matching(Finding):
    """Which records are claimed to be whose."""

    records: int
    claims: Places = field(repr=False)
    """For each person the record, or −1 where none stands out."""
    best: Places = field(repr=False)
    """For each person the record that fits best, whether it stands out or not."""
    eccentricities: Doubles = field(repr=False)
    threshold: float
    controls: Doubles | None = field(default=None, repr=False)
    """Eccentricities of people who are not in the release."""
    truth: Places | None = field(default=None, repr=False)

    @property
    def people(self) -> int:
        """How many were looked for."""
        return int(self.claims.size)

    @property
    def claimed(self) -> int:
        """How many records were claimed."""
        return int((self.claims >= 0).sum())

    @property
    def right(self) -> int | None:
        """How many claims are right, where that is known."""
        return None if self.truth is None else int(((self.claims == self.truth) & (self.claims >= 0)).sum())

    @property
    def control_rate(self) -> float | None:
        """The share of controls of whom a record is claimed."""
        return None if self.controls is None else float((self.controls >= self.threshold).mean())

    @property
    def chance(self) -> float | None:
        """How likely so many more claims than of controls are by luck: Fisher's exact test."""
        if self.controls is None:
            return None
        from scipy.stats import hypergeom

        wrong = int((self.controls >= self.threshold).sum())
        total = self.people + self.controls.size
        return float(hypergeom.sf(self.claimed - 1, total, self.claimed + wrong, self.people))

    @property
    def verdict(self) -> str:
        """In plain words."""
        if self.truth is not None:
            right = self.right or 0
            lucky = 0 < right <= self._by_luck
            word = "UNSURE" if lucky else judged(right, self.people)
            were = "person was" if self.people == 1 else "people were"
            who = f"{right:,} of {self.people:,} {were} found among {self.records:,} records"
            claims = f"{self.claimed:,} {'was' if self.claimed == 1 else 'were'} claimed"
            return f"{word}: {who}; {claims}{', too few to rule out luck' if lucky else ''}."
        who = f"a record stands out for {self.claimed:,} of {self.people:,} people among {self.records:,} records"
        if self.chance is None:
            return f"{judged(self.claimed, self.people)}: {who}."
        if self.chance > LUCK:
            return f"HELD: {who}, no more than for people who are not in the release ({self._controls})."
        return f"{judged(self.claimed, self.people)}: {who}, and for {self._controls} of others."

    @property
    def _controls(self) -> str:
        return f"{(self.control_rate or 0) * 100:.1f} %"

    @property
    def _by_luck(self) -> int:
        """Right ones among so many claims that guessing exceeds with a chance of one in a million."""
        from scipy.stats import binom

        return int(binom.isf(LUCK, max(1, self.claimed), 1 / self.records))

    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""
        names = ("records", "people", "claimed", "right", "threshold", "control_rate", "chance")
        return {name: getattr(self, name) for name in names}

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        said = [
            ("claimed", f"{self.claimed:,} of {self.people:,} at eccentricity {self.threshold:g}"),
            ("stands out by", f"{float(np.median(self.eccentricities)):.3g} standard deviations (median)"),
        ]
        if self.truth is not None and self.claimed:
            said.append(("right", f"{self.right:,} of the {self.claimed:,} claimed"))
        if self.controls is not None:
            said.append(("controls", f"{self._controls} of {self.controls.size:,} people who are not in the release"))
        return said

    def secrets(self) -> dict[str, Any]:
        """Whose record is which."""
        return {"claims": self.claims.tolist(), "eccentricities": self.eccentricities.tolist()}

    def plot(self) -> Any:
        """How far the best record stands out, of people looked for and of controls."""
        alt = altair()
        kinds = [("looked for", self.eccentricities)]
        if self.controls is not None:
            kinds.append(("controls", self.controls))
        top = max(float(np.quantile(values, 0.99)) for _, values in kinds) or 1.0
        edges = np.linspace(0, top, 41)
        rows = []
        for name, values in kinds:
            share = np.histogram(np.clip(values, 0, top), edges)[0] / values.size
            ends = zip(share.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            rows += [{"low": low, "high": high, "share": part, "kind": name} for part, low, high in ends]
        bars = (
            alt.Chart(alt.Data(values=rows))
            .mark_bar(opacity=0.65, binSpacing=0)
            .encode(
                x=alt.X("low:Q", bin="binned", title="standard deviations between the best record and the second"),
                x2="high:Q",
                y=alt.Y("share:Q", stack=None, title="people", axis=alt.Axis(format="%")),
                color=alt.Color("kind:N", title=None, scale=alt.Scale(range=COLOURS), legend=alt.Legend(orient="top")),
            )
        )
        cut = alt.Chart(alt.Data(values=[{"at": self.threshold}])).mark_rule(strokeDash=[4, 4]).encode(x="at:Q")
        return styled((bars + cut).properties(width=520, height=240), self.verdict)


def match(
    released: Items,
    known: Sequence[Mapping[Any, Any]],
    *,
    tolerance: float | Mapping[Any, float] = 0.0,
    eccentricity: float = ECCENTRICITY,
    controls: Sequence[Mapping[Any, Any]] | None = None,
    truth: ArrayLike | None = None,
    progress: Callable[[float], None] | None = None,
) -> Matching:
    """Score every record for every person, and claim those that stand out.

    `tolerance` says how far off values of an item usually are: one number, or one for each item; 0 compares exactly.
    """
    if not known:
        raise InvalidArgument("known", "nobody", "what is known of one person or more", "give some")
    if released.records < 3:
        raise InvalidArgument("released", f"{released.records} records", "3 or more", "with two nothing stands out")
    if not eccentricity > 0:
        raise InvalidArgument("eccentricity", eccentricity, "above 0", "1.5 claims few wrong records")
    said = None if truth is None else np.asarray(truth, np.int64)
    if said is not None and said.shape != (len(known),):
        raise InvalidArgument("truth", f"{said.size} records", f"{len(known)}, one for each person", "−1 is nobody's")
    total = len(known) + len(controls or ())

    def scale(item: Hashable) -> float:
        return float(tolerance.get(item, 0.0)) if isinstance(tolerance, Mapping) else float(tolerance)

    def looked(people: Sequence[Mapping[Any, Any]], done: int) -> tuple[Places, Doubles]:
        best, apart = np.zeros(len(people), np.int64), np.zeros(len(people))
        for place, person in enumerate(people):
            scores = released.scores(person, scale)
            second, first = np.argpartition(scores, -2)[-2:]
            spread = float(scores.std())
            best[place] = first
            apart[place] = (scores[first] - scores[second]) / spread if spread > 0 else 0.0
            if progress is not None:
                progress((done + place + 1) / total)
        return best, apart

    best, apart = looked(known, 0)
    others = looked(controls, len(known))[1] if controls else None
    claims = np.where(apart >= eccentricity, best, -1)
    return Matching(released.records, claims, best, apart, float(eccentricity), others, said)

"""One run of a measurement: the only place where a question's sums meet noise.

The events of the measurement say beforehand what is run here (`measuring/measurement.py`). Each step is a method that
draws its own noise and returns what it released; later steps may look at it. They come in this order:

`count_octaves`, where what clipping takes is told: how many rows units have; `select_groups`, where keys are not
listed: groups whose noisy number of units is above a threshold; `choose_norms`: the clipping norms that are to be
found, by sparse vector; `add_noise`: to the clipped sums of all groups; `draw_ranks`: quantiles and modes of the groups
that show; `report_clipping`: the rows lost and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf, isinf
from typing import Any

import numpy as np

from discreet.noise.entropy import Entropy
from discreet.noise.gaussian import discrete_gaussian
from discreet.noise.laplace import MAX_SCALE, discrete_laplace
from discreet.sql.bounding.clipping_norms import G, H, Weighing
from discreet.sql.bounding.sums import Statistic
from discreet.sql.measuring import clipping_loss as tally
from discreet.sql.measuring.clipping_loss import Tally
from discreet.sql.measuring.clipping_search import Heavy
from discreet.sql.measuring.measurement import TYPICAL_KEYS, Measurement
from discreet.sql.measuring.modes import Mode
from discreet.sql.measuring.quantiles import CLIPPED, Released
from discreet.sql.statement.histograms import Histograms
from discreet.sql.statement.results import Groups, Key

__all__ = ["Noisy", "Run", "choose_norm"]

Sums = np.ndarray[Any, np.dtype[np.float64]]
NO_HEAVY: Heavy = (0.0, 0.0)


@dataclass(frozen=True)
class Noisy:
    """Released totals: for each key the sums, and the deviation (or scale) of the noise in each statistic."""

    keys: tuple[Key, ...]
    sums: Sums
    scales: tuple[float, ...]
    norms: tuple[float, ...] | None = None
    """The norms that units were weighed down to: by rows, by groups, in averages."""
    heavy: tuple[Heavy, ...] = (NO_HEAVY,) * len(Weighing)
    """How many units lie above them: except with probability β at most a + b·ln(1/β)."""
    hidden_below: float | None = None
    """Where keys are not listed: the noisy number of units a group needs to show."""
    drawn: tuple[Released, ...] = ()
    """For each rank its value in each group."""
    tally: Tally | None = None
    """How much clipping by rows took of everything."""

    def raised(self, statistic: Statistic) -> float:
        """By what to multiply the sums of a statistic, to put back what clipping took."""
        return 1.0 if self.tally is None or statistic.weighing != Weighing.ROWS else self.tally.raised

    def most_raised(self, statistic: Statistic, away: float) -> float:
        """The most that this may have to be, with the tally `away` deviations off."""
        return 1.0 if self.tally is None or statistic.weighing != Weighing.ROWS else self.tally.at_most(away)


@dataclass(frozen=True)
class Octaves:
    """What noisy numbers of units by octaves of their rows show: the last octave in which units can be seen, and that
    up to which rows are counted."""

    seen: int
    counted_to: int


@dataclass(frozen=True)
class Norms:
    """The candidates to clip at, one for each weighing, and how many units may lie above each."""

    cuts: tuple[int, ...] = (0,) * len(Weighing)
    heavy: tuple[Heavy, ...] = (NO_HEAVY,) * len(Weighing)

    def with_norm(self, weighing: Weighing, cut: int, heavy: Heavy) -> Norms:
        """The same with one norm chosen."""
        cuts = (*self.cuts[:weighing], cut, *self.cuts[weighing + 1 :])
        return Norms(cuts, (*self.heavy[:weighing], heavy, *self.heavy[weighing + 1 :]))


@dataclass(frozen=True)
class SelectedGroups:
    """The groups that show, by their places among the candidates. Where a noisy number of units decided that, it is
    released with them: `unit_counts`, at the norm in `norms`."""

    candidates: tuple[Key, ...]
    shown: tuple[int, ...]
    unit_counts: Sequence[int] | None = field(default=None, repr=False)
    least: int | None = None
    norms: Norms = Norms()

    @property
    def keys(self) -> tuple[Key, ...]:
        """The groups that show."""
        return tuple(self.candidates[place] for place in self.shown)

    @property
    def expected(self) -> int:
        """How many groups a search for norms reckons with: lists that are empty say nothing."""
        return TYPICAL_KEYS if self.least is None and not self.candidates else len(self.shown) or 1


@dataclass(frozen=True)
class Run:
    """One run, on what the statement returned; `listed` are all groups where they are known beforehand."""

    measurement: Measurement
    groups: Groups = field(repr=False)
    listed: Sequence[Key] | None
    entropy: Entropy

    def release(self) -> Noisy:
        """Noisy sums for the listed keys, or for those found above the threshold, in an order that says nothing."""
        octaves = self.count_octaves()
        selected = self.select_groups(octaves)
        norms = self.choose_norms(selected, octaves)
        sums = self.add_noise(selected, norms)
        drawn = self.draw_ranks(selected.keys, norms)
        lost = self.report_clipping(norms, octaves)
        statistics = enumerate(self.measurement.statistics)
        scales = tuple(self.measurement.scale(j, norms.cuts[s.weighing]) for j, s in statistics)
        hidden_below = None if selected.least is None else selected.least / (G * H)
        return Noisy(selected.keys, sums, scales, self._values_of(norms), norms.heavy, hidden_below, drawn, lost)

    def count_octaves(self) -> Octaves | None:
        """How many rows units have, where that is released to say what clipping takes."""
        if not self.measurement.tallied:
            return None
        units, pair = tally.noise(self.measurement.ratio, self.measurement.changes)
        deviation = units * G * H
        noise = discrete_gaussian(deviation, tally.OCTAVES, entropy=self.entropy).tolist()
        noisy = [exact + added for exact, added in zip(tally.counted(self.groups.octaves), noise, strict=True)]
        last = tally.seen(noisy, float(deviation))
        return Octaves(last, tally.counted_to(noisy, last, float(pair * G * H)))

    def select_groups(self, octaves: Octaves | None) -> SelectedGroups:
        """The listed groups; or those with a noisy number of units above the threshold.

        These are found before all else: how many they are says how much room the sums should have.
        """
        if self.listed is not None:
            return SelectedGroups(tuple(self.listed), tuple(range(len(self.listed))))
        keys, norms = tuple(sorted(self.groups.keys, key=_sortable)), Norms()
        if Weighing.GROUPS in self.measurement.searched:
            norms = norms.with_norm(Weighing.GROUPS, *self._choose_norm(Weighing.GROUPS, TYPICAL_KEYS, octaves))
        counts = self._noisy_sums(self.measurement.units_place, keys, norms)
        least = ceil(self.measurement.threshold(norms.cuts[Weighing.GROUPS]))
        shown = tuple(place for place, count in enumerate(counts) if count > least)
        return SelectedGroups(keys, shown, counts, least, norms)

    def choose_norms(self, selected: SelectedGroups, octaves: Octaves | None) -> Norms:
        """The norms that are to be found, those by which groups were selected as they are."""
        norms = selected.norms
        for weighing in self.measurement.searched:
            if weighing != Weighing.GROUPS or selected.unit_counts is None:
                norms = norms.with_norm(weighing, *self._choose_norm(weighing, selected.expected, octaves))
        return norms

    def _choose_norm(self, weighing: Weighing, groups: int, octaves: Octaves | None) -> tuple[int, Heavy]:
        by_groups = {(bucket, 0): count for bucket, count in self.groups.by_groups.items()}
        counts = by_groups if weighing == Weighing.GROUPS else self.groups.by_rows
        # Where max_rows is declared, intervals tell how many units lie above: no candidate is left out.
        seen = None if octaves is None or self.measurement.max_rows is not None else octaves.seen
        return choose_norm(self.measurement, counts, weighing, groups, self.entropy, seen)

    def add_noise(self, selected: SelectedGroups, norms: Norms) -> Sums:
        """The sums of the groups that show, in the units of their values. All candidates get noise, shown or not."""
        columns = {} if selected.unit_counts is None else {self.measurement.units_place: selected.unit_counts}
        for index in range(len(self.measurement.statistics)):
            if index not in columns:
                columns[index] = self._noisy_sums(index, selected.candidates, norms)
        # Quotients of whole numbers are the nearest doubles.
        steps = [(s.step / (G * H)).as_integer_ratio() for s in self.measurement.statistics]
        sums = [[columns[j][i] * up / down for j, (up, down) in enumerate(steps)] for i in selected.shown]
        return np.array(sums, dtype=np.float64).reshape(len(sums), len(steps))

    def _noisy_sums(self, index: int, keys: Sequence[Key], norms: Norms) -> list[int]:
        """One statistic's clipped sums with noise, in units of 1/(G·H) steps."""
        statistic = self.measurement.statistics[index]
        cut = norms.cuts[statistic.weighing]
        if statistic.values:
            steps = self.measurement.law(statistic).law.draw(len(keys), entropy=self.entropy).tolist()
            noise = [step * (G * H) for step in steps]
        else:
            draw = discrete_gaussian if self.measurement.norm == "l2" else discrete_laplace
            deviation = max(self.measurement.deviation(index, cut), Fraction(1))
            noise = draw(deviation, len(keys), entropy=self.entropy).tolist()
        exact = self.measurement.total(index, self.groups, keys, cut)
        return [total + added for total, added in zip(exact, noise, strict=True)]

    def draw_ranks(self, keys: Sequence[Key], norms: Norms) -> tuple[Released, ...]:
        """Quantiles and modes of the groups that show."""
        plan, weights, cut = self.measurement.quantiles, self.measurement.weights, norms.cuts[Weighing.ROWS]
        if plan is None:
            return ()
        caps = None if weights is None else weights.rows
        histograms = [
            Histograms.of_values(cells, rank.values, caps, cut)
            if isinstance(rank, Mode)
            else Histograms.read(cells, caps, cut)
            for cells, rank in zip(self.groups.cells, plan.ranks, strict=True)
        ]
        movement = 1 if caps is None else caps.movement(1, cut)
        values = self._values_of(norms)
        lost = 0.0 if values is None else self.measurement.lost(values, norms.heavy, Weighing.ROWS, float(CLIPPED))
        taken = Fraction(0) if isinf(lost) else Fraction(lost) * G * H
        return plan.release(histograms, keys, movement, self.entropy, taken)

    def report_clipping(self, norms: Norms, octaves: Octaves | None) -> Tally | None:
        """The rows lost and kept by clipping, of each unit those up to the octave that was found to count; fewer where
        the samplers could not draw their noise."""
        if octaves is None:
            return None
        pair_noise, octave = tally.noise(self.measurement.ratio, self.measurement.changes)[1], octaves.counted_to
        while octave and pair_noise * tally.movement(octave) > MAX_SCALE:
            octave -= 1
        deviation = pair_noise * tally.movement(octave)
        pair = tally.exact(self.groups.octaves, self.measurement.caps(Weighing.ROWS), norms.cuts[Weighing.ROWS], octave)
        noise = discrete_gaussian(deviation, 2, entropy=self.entropy).tolist()
        lost, kept = ((exact + added) / (G * H) for exact, added in zip(pair, noise, strict=True))
        return Tally(lost, kept, float(deviation / (G * H)))

    def _values_of(self, norms: Norms) -> tuple[float, ...] | None:
        if self.measurement.weights is None:
            return None
        return tuple(float(self.measurement.caps(each).norms[norms.cuts[each]]) for each in Weighing)


def choose_norm(
    measurement: Measurement,
    counts: Mapping[tuple[int, int], int],
    weighing: Weighing,
    groups: int,
    entropy: Entropy,
    seen: int | None = None,
) -> tuple[int, Heavy]:
    """The candidate to clip at, found by sparse vector, and how many units may lie above it."""
    search = measurement.clipping_search(counts, weighing, groups, seen)
    return (0, (inf, 0.0)) if search is None else search.choose(entropy)


def _sortable(key: Key) -> tuple[tuple[str, str], ...]:
    return tuple((type(part).__name__, str(part)) for part in key)

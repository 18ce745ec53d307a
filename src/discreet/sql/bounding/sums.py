"""The whole-number sums behind the measures, and how released sums become answers.

Every measure of the form count, sum, average, variance is a function of a few sums over rows of whole numbers x with
|x| ≤ bound: counts, values on a grid, squares on a grid. Averages use values measured from the middle of their bounds,
so that half the width is the bound; measures share the sums they have in common.

Sums of decimals and of whole numbers are exact: the grid has every value between the bounds, unless those are more than
`FINEST` · `STEPS` units apart. The grid of decimals is a whole number of their units, so that of 10^-scale, and not a
power of two; the bound is that of the same grid, rounded up. Reals are rounded to a grid of a power of two.

>>> from discreet.sql.plan import Ref
>>> sums = Sums((Measure("mean", "avg", Ref("age", "integer"), Bounds(0, 100)),))
>>> [(s.kind.value, s.bound * s.step) for s in sums.statistics]
[('centred', Fraction(50, 1)), ('present', Fraction(1, 1))]
>>> sums.answer(0, {sums.statistics[0]: np.array([1000.0]), sums.statistics[1]: np.array([100.0])})
array([60.])
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, inf

import numpy as np

from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.noise.grid import INTEGERS, Doubles, Grid
from discreet.sql.aggregates import Ends, Part, Sum, Use
from discreet.sql.bounding.clipping_norms import G, H, Weighing
from discreet.sql.bounding.declared_values import fitting, nearest, steps_of, unit_of
from discreet.sql.decimals import Decimals
from discreet.sql.plan import Expression, Measure, Ref

__all__ = ["Statistic", "Sums", "ends_of", "held"]

STEPS = 1 << 12
"""Grid steps in a value's bound, of which clipped rows are whole multiples: rounding is below a hundredth of a per
cent."""
FINE = 1 << 13
"""Parts of a step that all other rows are whole multiples of: rounding adds up to two bounds at most in 2^27 rows,
which doubles add up exactly."""
FINEST = G * H
"""The most parts of a step: plain sums are brought to G·H-ths of a step (`statement/results.py`)."""
LEAST = -900
"""The exponent of the smallest step that is divided further."""
NARROW = 1 << 16
"""Bounds this much farther from zero than they are wide leave doubles too few digits to prove the rounding."""
LARGEST = sys.float_info.max
SQUARED = 2.0**511
"""What is below has a square that is a double."""


@dataclass(frozen=True)
class Statistic:
    """A sum over rows of whole numbers of parts, `fineness` to the step, each at most `bound` steps in size; a step is
    worth `step`."""

    kind: Sum
    argument: Expression | None
    bounds: Bounds | None = None
    of_mean: bool = False
    """Whether only averages use it, in which clipping mostly cancels."""
    values: tuple[Fraction, ...] = ()
    """What one row can add, less the middle, where that is declared and used (`bounding/declared_values.py`): nothing
    is then rounded, for a step is their unit."""
    grid: Grid = field(init=False)
    step: Fraction = field(init=False)
    bound: int = field(init=False)
    middle: Fraction = field(init=False)
    fineness: int = field(init=False)
    counts_units: bool = field(init=False, default=False)
    """Whether it reads the units of a decimal, and not a double."""

    def __post_init__(self) -> None:
        magnitude, middle = Fraction(1), Fraction(0)
        if self.bounds is not None:
            centred = self.kind.is_centred
            middle = (self.bounds.lower + self.bounds.upper) / 2 if centred else Fraction(0)
            magnitude = self.bounds.width / 2 if centred else self.bounds.magnitude
            magnitude = magnitude or Fraction(1)
        unit = self._unit(middle)
        if unit is not None and self._divide(magnitude / unit, unit, middle):
            return
        power = 2 if self.kind is Sum.SQUARES else 1
        grid = INTEGERS if self.bounds is None else Grid.finer_than(magnitude**power, STEPS)
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "step", unit_of(self.values) if self.values else grid.step)
        most = max(map(abs, self.additions)) if self.values else grid.spanning(magnitude**power)
        object.__setattr__(self, "bound", most)
        object.__setattr__(self, "middle", middle)
        divided = self.bounds is not None and not self.values and grid.exponent >= LEAST
        # Whole numbers of wide bounds take more parts, of which 32 bits hold as many as there are.
        parts = FINE if unit is None or grid.step <= unit * FINE else FINEST // 2
        object.__setattr__(self, "fineness", parts if divided else 1)

    def _unit(self, middle: Fraction) -> Fraction | None:
        """The number of which all that is added up is a whole multiple, if there is one."""
        if self.bounds is None or self.argument is None or self.values or self.kind is Sum.SQUARES:
            return None
        kind = self.argument.type
        if isinstance(kind, Decimals):
            return unit_of((kind.unit, self.bounds.lower, self.bounds.upper, middle))
        whole = kind == "integer" and {self.bounds.lower.denominator, self.bounds.upper.denominator} == {1}
        return unit_of((Fraction(1), middle)) if whole else None

    def _divide(self, most: Fraction, unit: Fraction, middle: Fraction) -> bool:
        """Make steps of units of decimals, so many that clipped rows, which are in whole steps, lose as little as those
        of reals; not where a step would be of more than half of `FINEST` units: engines add half of it to a row and
        divide in 32 bits."""
        assert self.argument is not None
        many = ceil(most)
        parts = 1 << max(many.bit_length() - (2 * STEPS).bit_length() + 1, 0)
        if not isinstance(self.argument.type, Decimals) or parts > FINEST // 2:
            return False
        object.__setattr__(self, "grid", INTEGERS)
        object.__setattr__(self, "step", unit * parts)
        object.__setattr__(self, "bound", -(-many // parts))
        object.__setattr__(self, "middle", middle)
        object.__setattr__(self, "fineness", parts)
        object.__setattr__(self, "counts_units", True)
        return True

    @property
    def additions(self) -> tuple[int, ...]:
        """The values in steps."""
        return steps_of(self.values)

    @property
    def plain(self) -> Statistic:
        """The same sum, whatever values there are between the bounds."""
        return replace(self, values=()) if self.values else self

    @property
    def weighing(self) -> Weighing:
        """By what units are weighed."""
        of_rows = Weighing.ROWS_IN_MEANS if self.of_mean else Weighing.ROWS
        return Weighing.GROUPS if self.kind is Sum.UNITS else of_rows

    @property
    def share(self) -> Fraction:
        """How much of the accuracy it gets beside the others: the noise in the count under an average is multiplied by
        the average's distance from the middle of its bounds, so it may be larger."""
        return Fraction(1, 2) if self.of_mean and self.kind is Sum.PRESENT else Fraction(1)

    def steps(self, value: str, strict: bool = False, kind: str = "INTEGER", eager: bool = False) -> str:
        """The parts that `value`, the SQL of a double (or of the units of a decimal, where `counts_units`), adds, in a
        type: held to the bounds; NULL where it is NULL, NaN or infinite.

        A value within the bounds is less than half a part from `bound` steps after rounding, unless the bounds are far
        narrower than their middle; that is held to separately. `strict` engines fail on products too small for doubles:
        there, what is a quarter of a part or less is not multiplied. `eager` ones may compute with values outside the
        bounds although they do not use them: there, all are held to the bounds first.
        """
        assert self.bounds is not None
        if self.counts_units:
            return self._units(value, kind, eager)
        if self.values:
            return nearest(value, [each + self.middle for each in self.values], self.additions, kind)
        lower, upper = float(self.bounds.lower), float(self.bounds.upper)
        inside = held(value, lower, upper) if eager else value
        shifted = f"({inside} - {float(self.middle)!r})" if self.middle else inside
        power = f"{shifted} * {shifted}" if self.kind is Sum.SQUARES else shifted
        part = self.grid.step / self.fineness
        steps = f"FLOOR({power} * {float(1 / part)!r} + 0.5)"
        if max(abs(self.bounds.lower), abs(self.bounds.upper)) > self.bounds.width * NARROW:
            most = self.bound * self.fineness
            steps = f"LEAST(GREATEST({steps}, {-most}), {most})"
        if strict and (self.kind is Sum.SQUARES or part > 1):
            step = float(part) ** (0.5 if self.kind is Sum.SQUARES else 1) / 4
            steps = f"CASE WHEN {shifted} BETWEEN {-step!r} AND {step!r} THEN 0 ELSE {steps} END"
        ends = [f"CAST({self._exact(end)} AS {kind})" for end in (self.bounds.lower, self.bounds.upper)]
        return (
            f"CASE WHEN {value} BETWEEN {lower!r} AND {upper!r} THEN CAST({steps} AS {kind})"
            f" WHEN {value} BETWEEN {upper!r} AND {LARGEST!r} THEN {ends[1]}"
            f" WHEN {value} BETWEEN {-LARGEST!r} AND {lower!r} THEN {ends[0]} END"
        )

    def _units(self, value: str, kind: str, eager: bool) -> str:
        """The same for the units of a decimal, all in whole numbers."""
        assert self.bounds is not None
        assert self.argument is not None
        assert isinstance(self.argument.type, Decimals)
        unit, part = self.argument.type.unit, self.step / self.fineness
        low, high = ceil(self.bounds.lower / unit), floor(self.bounds.upper / unit)
        below, above, middle = (int(v / part) for v in (self.bounds.lower, self.bounds.upper, self.middle))
        inside = f"LEAST(GREATEST({value}, {low}), {high})" if eager else value
        scaled = inside if unit == part else f"{inside} * {int(unit / part)}"
        moved = f"({scaled}) - ({middle})" if middle else scaled
        arms = [f"WHEN {value} BETWEEN {low} AND {high} THEN CAST({moved} AS {kind})"] if low <= high else []
        arms.append(f"WHEN {value} > {high} THEN CAST({above - middle} AS {kind})")
        arms.append(f"WHEN {value} < {low} THEN CAST({below - middle} AS {kind})")
        return f"CASE {' '.join(arms)} END"

    def _exact(self, value: Fraction) -> int:
        shifted = value - self.middle
        return self.grid.round((shifted**2 if self.kind is Sum.SQUARES else shifted) * self.fineness)


def held(value: str, lower: float, upper: float) -> str:
    """The SQL of a double held to its bounds; NULL where it is NULL, wherever LEAST and GREATEST say so."""
    ends = [said if "e" in said else f"{said}e0" for said in map(repr, (lower, upper))]
    return f"LEAST(GREATEST({value}, {ends[0]}), {ends[1]})"


class Sums:
    """The statistics that some measures need, and the answers they give.

    With `apart`, averages have statistics of their own, so that units can be weighed otherwise there than in sums; and
    a sum beside an average of the same is the average times the number of values, which is off by less than the sum.
    """

    def __init__(self, measures: Sequence[Measure], apart: bool = False) -> None:
        self._measures = tuple(measures)
        self.apart = apart
        averaged = {m.argument for m in measures if m.aggregation.is_mean}
        self._needs = tuple(_needs(measure, measure.argument in averaged, apart) for measure in measures)
        self.statistics: tuple[Statistic, ...] = tuple(dict.fromkeys(s for need in self._needs for s in need))
        self._places = {statistic: place for place, statistic in enumerate(self.statistics)}

    def places(self, index: int) -> tuple[int, ...]:
        """Which of the statistics one measure is computed from."""
        return tuple(self._places[statistic] for statistic in self._needs[index])

    def answer(self, index: int, values: Mapping[Statistic, Doubles]) -> Doubles:
        """The measure's values from released sums, one for each group."""
        measure = self._measures[index]
        sums = [np.asarray(values[statistic], dtype=np.float64) for statistic in self._needs[index]]
        return measure.aggregation.value(sums, ends_of(measure.bounds))


def ends_of(bounds: Bounds | None) -> Ends:
    """What bounds say in doubles; of what needs none, nothing."""
    if bounds is None:
        return Ends(0.0, 0.0, 0.0, 0.0)
    width, middle = float(bounds.width), float(bounds.lower + bounds.upper) / 2
    variance = width**2 / 2 if width < SQUARED else inf
    return Ends(float(bounds.lower), float(bounds.upper), middle, width, variance)


def _needs(measure: Measure, averaged: bool, apart: bool) -> tuple[Statistic, ...]:
    aggregation = measure.aggregation
    if measure.bounds is None and not aggregation.counts and not aggregation.is_chosen:
        raise _unbounded(measure)
    if aggregation.needs is None:
        return ()
    use = Use(measure.argument is not None, averaged, apart)
    return tuple(_statistic(measure, part) for part in aggregation.needs(use))


def _unbounded(measure: Measure) -> InvalidArgument:
    value = measure.argument.name if isinstance(measure.argument, Ref) else "…"
    remedy = (
        f"write CLAMP({value}, low, high) with limits from what you know, not from the data, or declare bounds of"
        " its columns, and max_rows if it counts rows"
    )
    return InvalidArgument(measure.word, measure.name, "of a value with known bounds", remedy)


def _statistic(measure: Measure, part: Part) -> Statistic:
    bounds = measure.bounds if part.sum.adds_values else None
    values = () if measure.values is None else measure.values.numbers or ()
    if bounds is None or part.sum is Sum.SQUARES:
        return Statistic(part.sum, measure.argument, bounds, part.of_mean)
    middle = (bounds.lower + bounds.upper) / 2 if part.sum.is_centred else Fraction(0)
    return Statistic(part.sum, measure.argument, bounds, part.of_mean, fitting(values, middle))

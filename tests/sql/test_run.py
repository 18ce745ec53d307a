"""The steps of a run, each by itself, with seeded noise."""

from fractions import Fraction

import pytest

from discreet.noise import Entropy
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.clipping_norms import Caps, G, H
from discreet.sql.bounding.sums import Statistic
from discreet.sql.measuring.measurement import TYPICAL_KEYS, Measurement
from discreet.sql.measuring.run import Norms, Octaves, Run, SelectedGroups
from discreet.sql.statement.layout import Weights
from discreet.sql.statement.results import Bucketed, Groups

ROWS, UNITS = Statistic(Sum.ROWS, None), Statistic(Sum.UNITS, None)
SEARCHED = Weights("l2", Caps.up_to(None), Caps.up_to(8))
FIXED = Weights("l2", Caps.fixed(1), Caps.fixed(1))
SIGMA = Fraction(1, 100)


def found(units: dict[str, int]) -> Groups:
    """So many units in each group, each with one row in it alone."""
    keys, counts = [(key,) for key in units], [*units.values()]
    sums = Bucketed(keys, [0] * len(keys), [counts], [[number * G for number in counts]])
    total = sum(counts)
    return Groups(sums, sums, {(0, 0): total}, {0: total}, octaves={(0, 0): (total, total, total * G, total * G)})


def run(measurement: Measurement, units: dict[str, int], listed: list[tuple[str]] | None) -> Run:
    return Run(measurement, found(units), listed, Entropy.for_tests(3))


def test_listed_groups_are_selected_whatever_is_in_them() -> None:
    one = run(Measurement((ROWS,), "l2", SIGMA, 1, FIXED), {"a": 5}, [("b",), ("a",)])
    selected = one.select_groups(None)
    assert selected == SelectedGroups((("b",), ("a",)), (0, 1))
    assert selected.expected == 2
    assert SelectedGroups((), ()).expected == TYPICAL_KEYS


def test_groups_of_many_units_are_selected_where_none_are_listed() -> None:
    measurement = Measurement((ROWS, UNITS), "l2", SIGMA, 1, SEARCHED, Fraction(1), Fraction(1, 10**6))
    selected = run(measurement, {"many": 1000, "few": 1}, None).select_groups(None)
    assert selected.candidates == (("few",), ("many",))
    assert selected.keys == (("many",),)
    assert selected.least is not None
    assert selected.least / (G * H) < 3


def test_the_norm_that_groups_were_selected_by_stays() -> None:
    measurement = Measurement((ROWS, UNITS), "l2", SIGMA, 1, SEARCHED, Fraction(1), Fraction(1, 10**6))
    one = run(measurement, {"a": 1000}, None)
    selected = SelectedGroups((("a",),), (0,), [1000 * G * H], 1, Norms().with_norm(1, 4, (7.0, 1.0)))
    norms = one.choose_norms(selected, None)
    assert (norms.cuts[1], norms.heavy[1]) == (4, (7.0, 1.0))
    assert norms.cuts[2] == 0


def test_noise_is_added_to_all_candidates_and_the_shown_come_back() -> None:
    one = run(Measurement((ROWS,), "l2", SIGMA, 1, FIXED), {"a": 5, "b": 70}, [("a",), ("b",)])
    sums = one.add_noise(SelectedGroups((("a",), ("b",)), (1,)), Norms())
    assert sums.shape == (1, 1)
    assert sums[0, 0] == pytest.approx(70, abs=0.1)
    assert one.draw_ranks([("b",)], Norms()) == ()


def test_clipping_is_reported_only_where_that_was_planned() -> None:
    silent = run(Measurement((ROWS,), "l2", SIGMA, 1, SEARCHED, Fraction(1)), {"a": 900}, [("a",)])
    assert silent.count_octaves() is None
    assert silent.report_clipping(Norms(), None) is None
    telling = run(Measurement((ROWS,), "l2", SIGMA, 1, SEARCHED, Fraction(1), tallied=True), {"a": 900}, [("a",)])
    octaves = telling.count_octaves()
    assert octaves is not None
    assert octaves.seen == 0
    lost = telling.report_clipping(Norms(), Octaves(0, 1))
    assert lost is not None
    assert (lost.lost, lost.kept) == pytest.approx((0, 900), abs=1)

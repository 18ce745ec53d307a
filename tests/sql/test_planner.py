"""The four steps of the planner, each by itself."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import pytest

import discreet as dc
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.sums import Statistic
from discreet.sql.measuring.modes import Mode
from discreet.sql.measuring.planner import Facts, calibrate, choose_limits, choose_noise, split_budget
from discreet.sql.measuring.quantiles import Cells, Rank

ROWS = Statistic(Sum.ROWS, None)
FACTS = Facts((ROWS,), (), 4, True, None, 1, 1, dc.ApproxDP(9, "1e-6"), Fraction(1))
MEDIAN = Rank.quantile(Fraction(1, 2), Cells.of(Bounds(0, 100), whole=True, keys=4))


def test_noise_is_laplace_without_delta_or_with_few_sums() -> None:
    many = replace(FACTS, keys=1000)
    assert choose_noise(FACTS).is_laplace
    assert not choose_noise(many).is_laplace
    assert choose_noise(replace(many, budget=dc.PureDP(9))).is_laplace
    assert choose_noise(replace(many, max_rows=2)).is_laplace
    assert not choose_noise(replace(FACTS, budget=dc.ZCDP(1), gaussian=True)).is_laplace


def test_groups_that_are_not_listed_take_a_hundredth_of_delta() -> None:
    noise = choose_noise(replace(FACTS, keys=None))
    assert noise.threshold_delta == Fraction(1, 10**8)
    assert noise.delta + noise.threshold_delta == Fraction(1, 10**6)
    with pytest.raises(InvalidArgument, match="declare the values of the key columns"):
        choose_noise(replace(FACTS, keys=None, budget=dc.PureDP(9)))


@pytest.mark.parametrize(
    ("max_rows", "whole", "searches"), [(None, False, 1), (5, False, 0), (99, False, 1), (99, True, 0)]
)
def test_only_high_or_unknown_limits_are_searched(max_rows: int | None, whole: bool, searches: int) -> None:
    facts = replace(FACTS, max_rows=max_rows, whole=whole)
    limits = choose_limits(facts, choose_noise(facts))
    assert len(limits.searches) == searches
    assert limits.weights is not None
    assert limits.weights.rows.searched == bool(searches)


def test_rows_that_nobody_owns_have_no_limits() -> None:
    facts = replace(FACTS, owned=False)
    limits = choose_limits(facts, choose_noise(facts))
    assert (limits.weights, limits.searches, limits.tallied) == (None, (), False)


@pytest.mark.parametrize("keys", [4, 1000])
def test_shares_add_up_to_the_budget(keys: int) -> None:
    facts = replace(FACTS, keys=keys, ranks=(MEDIAN, Mode(None)))
    noise = choose_noise(facts)
    limits = choose_limits(facts, noise)
    shares = split_budget(facts, noise, limits)
    assert sum(limits.searches) + shares.sums + shares.ranks == facts.epsilon
    assert shares.ranks == 2 * shares.sums
    assert shares.sums_delta + shares.ranks_delta + shares.mode_delta == noise.delta
    assert (shares.sums_delta == 0) == noise.is_laplace


def test_noise_is_what_the_shares_pay_for() -> None:
    facts = replace(FACTS, max_rows=1)
    noise = choose_noise(facts)
    limits = choose_limits(facts, noise)
    for part in (1, Fraction(1, 3)):
        found = calibrate(facts, noise, limits, replace(split_budget(facts, noise, limits), sums=Fraction(part)))
        assert found.ratio == 1 / Fraction(part)
    both = replace(facts, statistics=(ROWS, Statistic(Sum.UNITS, None)), keys=1000, max_rows=None)
    noise = choose_noise(both)
    limits = choose_limits(both, noise)
    one = calibrate(both, noise, limits, split_budget(both, noise, limits))
    assert one.scale(0, 0) == pytest.approx(float(one.ratio) * sqrt(2 / (1 - 5 / 32)), rel=1e-3)

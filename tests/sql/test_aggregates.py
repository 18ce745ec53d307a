"""The table of aggregates: complete, and the same for one number as for many groups."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from discreet.core.domains import Bounds
from discreet.sql.aggregates import AGGREGATES, AggregateName, RankKind, Sum, Use
from discreet.sql.bounding.clipping_norms import Weighing
from discreet.sql.bounding.sums import ends_of

ENDS = ends_of(Bounds(-10, 90))
SUMMED = [name for name, each in AGGREGATES.items() if each.needs is not None]
USES = [Use(True, averaged, apart) for averaged in (False, True) for apart in (False, True)]
VALUES = np.array([3.0, -4.0, 50.0, 88.0])
SUMS = {
    Sum.ROWS: 4.0,
    Sum.PRESENT: 4.0,
    Sum.UNITS: 4.0,
    Sum.RAW: VALUES.sum(),
    Sum.CENTRED: (VALUES - 40).sum(),
    Sum.SQUARES: ((VALUES - 40) ** 2).sum(),
}
TRUTH = {
    "count": 4,
    "count_units": 4,
    "sum": VALUES.sum(),
    "avg": VALUES.mean(),
    "variance": VALUES.var(ddof=1),
    "stddev": VALUES.std(ddof=1),
}


def test_every_aggregate_has_a_record_and_one_way_to_a_value() -> None:
    assert AGGREGATES.keys() == {*get_args(AggregateName)}
    for name, each in AGGREGATES.items():
        ways = [each.needs is not None, each.rank is not None, each.is_chosen]
        assert sum(ways) == (name != "count_distinct")


@pytest.mark.parametrize("name", SUMMED)
def test_values_follow_from_the_sums_that_are_needed(name: AggregateName) -> None:
    aggregation = AGGREGATES[name]
    assert aggregation.needs is not None
    for use in USES:
        sums = [SUMS[part.sum] for part in aggregation.needs(use)]
        assert aggregation.value(sums, ENDS) == pytest.approx(TRUTH[name])
        groups = aggregation.value([np.array([each, each]) for each in sums], ENDS)
        assert groups.tolist() == pytest.approx([TRUTH[name]] * 2)


@pytest.mark.parametrize("name", SUMMED)
def test_values_of_any_noise_are_within_their_limits(name: AggregateName) -> None:
    aggregation, noise = AGGREGATES[name], np.random.default_rng(1)
    assert aggregation.needs is not None
    parts = aggregation.needs(Use(True, True, True))
    least, most = aggregation.limits(ENDS)
    for _ in range(200):
        found = aggregation.value([float(each) for each in noise.normal(0, 1e4, len(parts))], ENDS)
        assert least <= found <= most or name in ("count", "count_units")
        if name in ("variance", "stddev"):
            assert found <= ENDS.variance
    loose = replace(ENDS, variance=math.inf)
    assert AGGREGATES["variance"].value((0.0, 2.0, 1e9), loose) > ENDS.variance


def test_errors_count_what_is_put_back_of_the_middle() -> None:
    error = AGGREGATES["sum"].error
    assert error([7.0], ENDS) == 7
    assert error([7.0, 2.0], ENDS) == 7 + 40 * 2
    assert error([2.0, 7.0, 1.0], ENDS) == 7 + 40 * 2
    assert [AGGREGATES[name].error([7.0, 2.0, 5.0], ENDS) for name in ("avg", "stddev")] == [7, 5]


def test_quantiles_at_the_ends_are_the_least_and_the_largest() -> None:
    rank = AGGREGATES["quantile"].rank
    assert rank is not None
    assert [rank(Fraction(q, 2))[0] for q in (0, 1, 2)] == [RankKind.MIN, RankKind.QUANTILE, RankKind.MAX]


def test_what_is_stored_keeps_its_texts_and_numbers() -> None:
    assert [str(kind) for kind in Sum] == ["rows", "present", "units", "raw", "centred", "squares"]
    assert [int(weighing) for weighing in Weighing] == [0, 1, 2]


def test_the_widest_bounds_have_ends() -> None:
    for bounds in (Bounds(-(2**1000), 2**1000), Bounds(0, 1e200)):
        found = ends_of(bounds)
        assert (found.lower, found.upper) == (float(bounds.lower), float(bounds.upper))
        assert found.variance == math.inf

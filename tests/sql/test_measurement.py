"""Noise on the totals: events say what was run, the threshold hides singletons, the clipping norm is near the best."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.accounting import account
from discreet.core.losses import ApproxDP, PureDP
from discreet.mechanisms import Gaussian
from discreet.noise import Entropy
from discreet.sql.measurement import Measurement
from discreet.sql.statement import G, Groups, H
from discreet.sql.statistics import Statistic

ROWS, UNITS = Statistic("rows", None), Statistic("units", None)
UNIT_SIGMA = Gaussian.for_approx("0.9", "1e-6").sigma


def one_group_each(count: int) -> Groups:
    """`count` units with one row in the same group."""
    return Groups({("a",): {0: ((count, count), (count * G, count * G))}}, {(0, 0): count})


def test_events_cost_what_was_asked() -> None:
    gaussian = Measurement((ROWS, UNITS), "l2", UNIT_SIGMA, True, 1, Fraction(1, 10), Fraction(1, 10**8))
    spent = account(gaussian.events, ApproxDP, delta=Fraction(1, 10**6) + Fraction(1, 10**8))
    assert Fraction(9, 10) < spent.epsilon <= 1
    laplace = Measurement((ROWS, UNITS), "l1", Fraction(1), True, 1, Fraction(1, 10))
    assert account(laplace.events, PureDP).epsilon == Fraction(11, 10)


def test_replacing_a_unit_costs_no_more_than_adding_one() -> None:
    once = Measurement((ROWS,), "l2", UNIT_SIGMA, True, 1, Fraction(1, 10))
    exchanged = Measurement((ROWS,), "l2", UNIT_SIGMA, True, 2, Fraction(1, 10))
    assert exchanged.deviation(0, 3) == 2 * once.deviation(0, 3)
    twice, single = (account(m.events, ApproxDP, delta="1e-6").epsilon for m in (exchanged, once))
    assert twice <= single


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("groups", [1, 16])
def test_a_unit_alone_in_its_groups_shows_up_no_more_than_delta(norm: str, groups: int) -> None:
    delta = Fraction(1, 20)
    ratio = UNIT_SIGMA if norm == "l2" else Fraction(1)
    measurement = Measurement((UNITS,), norm, ratio, True, 1, Fraction(1), delta)
    length = groups if norm == "l1" else groups**0.5
    bucket = int(np.ceil(2 * np.log2(length)))
    shares = int(G / length)
    alone = Groups({(i,): {bucket: ((1,), (shares,))} for i in range(groups)}, {(bucket, 8): 1})
    entropy = Entropy.for_tests(3)
    tries = 500
    shown = sum(len(measurement.release(alone, None, entropy).keys) > 0 for _ in range(tries))
    # Binomial(500, 1/20) exceeds 60 with probability below 1e-9; a threshold short by one deviation shows over 100.
    assert shown <= 60
    assert measurement.release(one_group_each(10_000), None, entropy).keys == (("a",),)


def test_declared_keys_all_appear_in_their_order_and_undeclared_ones_never() -> None:
    measurement = Measurement((ROWS, UNITS), "l2", UNIT_SIGMA, True, 1, Fraction(1, 10))
    declared = [("b",), ("a",), ("nobody",)]
    released = measurement.release(one_group_each(500), declared, Entropy.for_tests(1))
    assert list(released.keys) == declared
    assert released.sums.shape == (3, 2)
    assert abs(released.sums[1][0] - 500) < 200
    assert (released.sums[2] != 0).any()


def test_released_sums_have_the_stated_noise() -> None:
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, False, 1)
    groups = Groups({("a",): {0: ((1000,), (0,))}}, {})
    entropy = Entropy.for_tests(2)
    draws = [measurement.release(groups, [("a",)], entropy).sums[0][0] for _ in range(4000)]
    # The deviation of 4000 draws is within 8 % with probability above 1 − 1e-10.
    assert np.std(draws) == pytest.approx(measurement.scale(0, 0), rel=0.08)
    assert measurement.scale(0, 0) == pytest.approx(float(UNIT_SIGMA), rel=1e-6)


def test_the_clipping_norm_is_near_the_best() -> None:
    # 10,000 units of norm about 4 and 10 of norm about 1000: room for the many, not for the few.
    histogram = {(4, 4): 10_000, (20, 24): 10}
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, True, 1, Fraction(1, 2))
    chosen = [measurement.choose_cut(Groups({}, histogram), 1000, Entropy.for_tests(seed)) for seed in range(200)]
    assert set(chosen) <= {3, 4, 5}


def test_a_few_hundred_units_are_enough_to_find_the_norm() -> None:
    # 500 people with 1 to 11 rows in one group, at a tenth of ε = 1.
    sizes = np.random.default_rng(1).binomial(11, 0.36, 500).clip(1)
    buckets = np.ceil(2 * np.log2(sizes) - 1e-9).astype(int)
    histogram = {(int(b), int(b)): int((buckets == b).sum()) for b in set(buckets.tolist())}
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, True, 1, Fraction(1, 10))
    cuts = [measurement.choose_cut(Groups({}, histogram), 1, Entropy.for_tests(seed)) for seed in range(200)]
    lost = [sum(max(0.0, n - 2 ** (cut / 2)) for n in sizes) / sizes.sum() for cut in cuts]
    assert np.mean(lost) < 0.1
    assert np.mean(np.array(cuts) <= 9) > 0.9


def test_totals_stay_whole_beyond_64_bits() -> None:
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, False, 1)
    huge = Groups({("a",): {0: ((2**80,), (0,))}}, {})
    released = measurement.release(huge, [("a",)], Entropy.for_tests(2)).sums[0][0]
    assert released == pytest.approx(2.0**80)
    assert G * H > 1


def test_cuts_whose_noise_cannot_be_drawn_are_never_chosen() -> None:
    faint = Measurement((ROWS,), "l2", Fraction(2**20), True, 1, Fraction(1, 2))
    assert 0 < faint.top < 64
    crowd = Groups({}, {(60, 60): 10**9})
    assert faint.choose_cut(crowd, 1, Entropy.for_tests(1)) <= faint.top
    with pytest.raises(InvalidArgument):
        Measurement((ROWS,), "l2", Fraction(2**40), True, 1, Fraction(1, 2))

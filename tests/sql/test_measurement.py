"""Noise on the totals: events say what was run, the threshold hides singletons, the clipping norm is near the best."""

import json
from fractions import Fraction

import numpy as np
import pytest

from discreet import Bounds, InvalidArgument
from discreet.accounting import account
from discreet.core.losses import ApproxDP, PureDP
from discreet.mechanisms import Gaussian
from discreet.noise import Entropy
from discreet.sql.aggregates import Sum
from discreet.sql.answers.answer import pack, unpack
from discreet.sql.bounding.clipping_norms import Caps, G
from discreet.sql.bounding.sums import Statistic
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.run import Noisy, Run, choose_norm
from discreet.sql.plan import Ref
from discreet.sql.statement.layout import Norm, Weights
from discreet.sql.statement.results import Bucketed, Groups

ROWS, UNITS = Statistic(Sum.ROWS, None), Statistic(Sum.UNITS, None)
UNIT_SIGMA = Gaussian.for_approx("0.9", "1e-6").sigma
TENTH = Fraction(1, 10)
AT = {norm: place for place, norm in enumerate(Caps.up_to(None).norms)}


def weights(norm: Norm, limit: int | None = None) -> Weights:
    return Weights(norm, Caps.up_to(limit), Caps.up_to(limit))


def one_group_each(count: int) -> Groups:
    """`count` units with one row in the same group."""
    found = Bucketed([("a",)], [0], [[count]], [[count * G]])
    return Groups(found, found, {(0, 0): count}, {0: count})


def test_stored_sums_come_back_as_they_were_from_older_books_too() -> None:
    sums = np.array([[0.1, -(2.0**-1074)], [1e300, -0.0]])
    payload = pack(Noisy((("a",), ("b",)), sums, (1.0, 2.0)), True)
    older = json.dumps(json.loads(payload) | {"sums": sums.tolist()}).encode()
    assert unpack(payload)[0].sums.tobytes() == unpack(older)[0].sums.tobytes() == sums.tobytes()


def test_events_cost_what_was_asked() -> None:
    gaussian = Measurement((ROWS, UNITS), "l2", UNIT_SIGMA, 1, weights("l2"), TENTH, Fraction(1, 10**8))
    spent = account(gaussian.events, ApproxDP, delta=Fraction(1, 10**6) + Fraction(1, 10**8))
    assert Fraction(9, 10) < spent.epsilon <= 1
    laplace = Measurement((ROWS, UNITS), "l1", Fraction(1), 1, weights("l1"), TENTH)
    assert account(laplace.events, PureDP).epsilon == Fraction(11, 10)


def test_replacing_a_unit_costs_no_more_than_adding_one() -> None:
    once = Measurement((ROWS,), "l2", UNIT_SIGMA, 1, weights("l2"), TENTH)
    exchanged = Measurement((ROWS,), "l2", UNIT_SIGMA, 2, weights("l2"), TENTH)
    assert exchanged.deviation(0, 3) == 2 * once.deviation(0, 3)
    twice, single = (account(m.events, ApproxDP, delta="1e-6").epsilon for m in (exchanged, once))
    assert twice <= single


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("groups", [1, 16])
def test_a_unit_alone_in_its_groups_shows_up_no_more_than_delta(norm: str, groups: int) -> None:
    delta = Fraction(1, 20)
    ratio = UNIT_SIGMA if norm == "l2" else Fraction(1)
    measurement = Measurement((UNITS,), norm, ratio, 1, weights(norm), Fraction(1), delta)
    length = groups if norm == "l1" else int(groups**0.5)
    bucket = Caps.up_to(None).norms.index(Fraction(length))
    units = Bucketed([(i,) for i in range(groups)], [bucket] * groups, [[1] * groups], [[G // length] * groups])
    alone = Groups(Bucketed(), units, {}, {bucket: 1})
    entropy = Entropy.for_tests(3)
    tries = 500
    shown = sum(len(Run(measurement, alone, None, entropy).release().keys) > 0 for _ in range(tries))
    # Binomial(500, 1/20) exceeds 60 with probability below 1e-9; a threshold short by one deviation shows over 100.
    assert shown <= 60
    assert Run(measurement, one_group_each(10_000), None, entropy).release().keys == (("a",),)


def test_declared_keys_all_appear_in_their_order_and_undeclared_ones_never() -> None:
    measurement = Measurement((ROWS, UNITS), "l2", UNIT_SIGMA, 1, weights("l2"), TENTH)
    declared = [("b",), ("a",), ("nobody",)]
    released = Run(measurement, one_group_each(500), declared, Entropy.for_tests(1)).release()
    assert list(released.keys) == declared
    assert released.sums.shape == (3, 2)
    assert abs(released.sums[1][0] - 500) < 200
    assert (released.sums[2] != 0).any()


def test_released_sums_have_the_stated_noise() -> None:
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, 1)
    groups = Groups(Bucketed([("a",)], [0], [[1000]]), Bucketed(), {}, {})
    entropy = Entropy.for_tests(2)
    draws = [Run(measurement, groups, [("a",)], entropy).release().sums[0][0] for _ in range(4000)]
    # The deviation of 4000 draws is within 8 % with probability above 1 − 1e-10.
    assert np.std(draws) == pytest.approx(measurement.scale(0, 0), rel=0.08)
    assert measurement.scale(0, 0) == pytest.approx(float(UNIT_SIGMA), rel=1e-6)


def cuts(measurement: Measurement, counts: dict[tuple[int, int], int], keys: int) -> list[int]:
    return [choose_norm(measurement, counts, 0, keys, Entropy.for_tests(seed))[0] for seed in range(200)]


@pytest.mark.parametrize("changes", [1, 2])
def test_the_clipping_norm_is_near_the_best(changes: int) -> None:
    # 10,000 units of norm about 4 and 10 of norm about 1000: room for the many, not for the few.
    counts = {(AT[4], 1): 10_000, (AT[1024], 3): 10}
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, changes, weights("l2"), Fraction(1, 2))
    assert set(cuts(measurement, counts, 1000)) <= {AT[4] - 1, AT[4], AT[4] + 1}


def test_units_spread_over_many_groups_get_more_room() -> None:
    # 700 units of norm 16: worth the noise if each has hundreds of rows, not if all its rows are in one group.
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, 1, weights("l2"), Fraction(1, 2))
    spread, alone = ({(0, 0): 10**6, (AT[16], octaves): 700} for octaves in (4, 0))
    assert min(cuts(measurement, spread, 1000)) >= AT[16] - 2
    assert max(cuts(measurement, alone, 1000)) <= 1


@pytest.mark.parametrize("weighing", [0, 1, 2])
@pytest.mark.parametrize("keys", [1, 1000])
def test_norms_that_nobody_has_are_not_chosen(weighing: int, keys: int) -> None:
    mean = Statistic(Sum.CENTRED, Ref("v", "real"), Bounds(0, 10), True)
    measurement = Measurement((ROWS, UNITS, mean), "l2", UNIT_SIGMA, 1, weights("l2"), TENTH)
    counts = {(AT[1], 0): 50, (AT[4], 1): 50}
    chosen = [choose_norm(measurement, counts, weighing, keys, Entropy.for_tests(seed))[0] for seed in range(500)]
    assert max(chosen) < AT[16384]
    assert np.mean(np.array(chosen) > AT[64]) < 0.1


def test_averages_clip_a_tenth_of_the_units() -> None:
    mean = Statistic(Sum.CENTRED, Ref("v", "real"), Bounds(0, 10), True)
    counts = {(AT[1], 0): 50_000, (AT[4], 1): 45_000, (AT[64], 3): 5_000}
    measurement = Measurement((ROWS, mean), "l2", UNIT_SIGMA, 1, weights("l2"), TENTH)
    assert measurement.searched == (0, 2)
    chosen = [choose_norm(measurement, counts, 2, 1000, Entropy.for_tests(seed))[0] for seed in range(100)]
    assert set(chosen) == {AT[4]}
    released = Run(measurement, Groups(Bucketed(), Bucketed(), counts, {}), [("a",)], Entropy.for_tests(1)).release()
    assert released.norms is not None
    assert released.norms[2] == 4
    assert released.heavy[2][0] == float("inf")


def test_a_few_hundred_units_are_enough_to_find_the_norm() -> None:
    # 500 people with 1 to 11 rows in one group, at a tenth of ε = 1.
    sizes = np.random.default_rng(1).binomial(11, 0.36, 500).clip(1)
    caps = Caps.up_to(None)
    buckets = np.searchsorted([float(norm) for norm in caps.norms], sizes)
    counts = {(int(b), 0): int((buckets == b).sum()) for b in set(buckets.tolist())}
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, 1, weights("l2"), TENTH)
    found = cuts(measurement, counts, 1)
    lost = [sum(max(0.0, n - float(caps.norms[cut])) for n in sizes) / sizes.sum() for cut in found]
    assert np.mean(lost) < 0.1
    assert np.mean(np.array(found) <= AT[16] + 2) > 0.9


def test_the_number_of_units_above_the_norm_is_not_understated() -> None:
    counts = {(AT[2], 0): 1000, (AT[8], 0): 100, (AT[16], 0): 40, (AT[128], 0): 5}
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, 1, weights("l2"), TENTH)
    wrong = 0
    for seed in range(300):
        cut, (base, slope) = choose_norm(measurement, counts, 0, 10, Entropy.for_tests(seed))
        above = sum(count for (bucket, _), count in counts.items() if bucket > cut)
        wrong += above > base + slope * np.log(20)
    # At β = 1/20, more than 45 of 300 would have a probability below 1e-9.
    assert wrong <= 45


def test_totals_stay_whole_beyond_64_bits() -> None:
    measurement = Measurement((ROWS,), "l2", UNIT_SIGMA, 1)
    huge = Groups(Bucketed([("a",)], [0], [[2**80]]), Bucketed(), {}, {})
    released = Run(measurement, huge, [("a",)], Entropy.for_tests(2)).release().sums[0][0]
    assert released == pytest.approx(2.0**80)


def test_norms_whose_noise_cannot_be_drawn_are_never_chosen() -> None:
    faint = Measurement((ROWS,), "l2", Fraction(2**30), 1, weights("l2"), Fraction(1, 2))
    last = faint.top(0)
    assert 0 < last < len(Caps.up_to(None).norms) - 1
    assert choose_norm(faint, {(60, 0): 10**9}, 0, 1, Entropy.for_tests(1)) == (last, (float("inf"), 0.0))
    with pytest.raises(InvalidArgument):
        Measurement((ROWS,), "l2", Fraction(2**44), 1, weights("l2"), Fraction(1, 2))


def test_limits_that_are_declared_are_not_searched_for() -> None:
    fixed = Measurement((ROWS, UNITS), "l1", Fraction(1), 1, Weights("l1", Caps.fixed(3), Caps.fixed(1)))
    assert fixed.searched == ()
    assert account(fixed.events, PureDP).epsilon == 1
    assert fixed.scale(0, 0) == pytest.approx(6, rel=1e-5)
    assert fixed.scale(1, 0) == pytest.approx(2, rel=1e-5)
    released = Run(fixed, one_group_each(100), [("a",)], Entropy.for_tests(1)).release()
    assert released.norms == (3, 1, 3)
    assert released.heavy == ((0, 0),) * 3


def test_groups_that_only_the_engine_tells_apart_are_no_answer() -> None:
    """A unit with one row in each of many groups that look alike would weigh as many times its norm."""
    Bucketed([("a",), ("a",), ("b",)], [0, 1, 0], [[1, 1, 1]], [[G, G, G]])
    with pytest.raises(ValueError, match="one group"):
        Bucketed([("a",), ("b",), ("a",)], [1, 0, 1], [[1, 1, 1]], [[G, G, G]])

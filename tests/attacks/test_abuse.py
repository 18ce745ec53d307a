"""Ways to get more than was paid for, or to make one value change what happens to the others."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.attacks import faults
from tests.attacks.register import attack

from discreet import ApproxDP, Bounds, BudgetExceeded, Categories, InvalidArgument, PureDP
from discreet.accounting import Filter, account
from discreet.core import events
from discreet.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
)
from discreet.noise import Entropy


def test_threads_that_share_a_run_get_no_more_than_its_positives() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        run = SparseVector.for_epsilon(1, threshold=0, positives=3).start()

        def ask(_: int) -> bool:
            try:
                return run.ask(10**9).above
            except BudgetExceeded:
                return False

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(ask, range(400))) == 3
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_run_cannot_be_copied(duplicate: Any) -> None:
    with pytest.raises(TypeError):
        duplicate(SparseVector.for_epsilon(1, threshold=0).start())


def test_a_seed_is_seen_wherever_it_is_used() -> None:
    seeded = Entropy.for_tests(0)
    assert not SparseVector.for_epsilon(1, threshold=0).start(entropy=seeded).ask(5).private
    field = "private"
    with pytest.raises(AttributeError):
        setattr(seeded, field, True)


@pytest.mark.parametrize("top", [2**63 - 1, 2**62 - 1, 2**61, 2**61 - 1])
def test_ties_at_the_end_of_the_range_do_not_favour_the_first(top: int) -> None:
    mechanism = NoisyMax(1, 1, monotonic=True)
    entropy = Entropy.for_tests(4)
    last = sum(mechanism.release([top] * 6, entropy=entropy).values == 5 for _ in range(2000))
    # Each of six equals wins about 1/6 of the time, the last a little less: Binomial(2000, 0.1) stays above 60.
    assert last > 60


@attack(12, finds=[faults.codes_by_first_appearance])
def test_one_odd_value_leaves_the_codes_of_the_others_alone() -> None:
    assert Categories((1, 2)).codes([1, 2, "x", None, {}, [1]]).tolist() == [0, 1, -1, -1, -1, -1]
    wide = (2**53, 2**53 + 1)
    assert Categories(wide).codes([2**53 + 1, 0.5]).tolist() == [1, -1]


@pytest.mark.parametrize("odd", [2**63, 2**64, -(2**70), None, pd.NA, "x"])
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace.for_epsilon(1, dimension=2),
        Gaussian.for_zcdp(1, dimension=2),
        RandomizedResponse(Fraction(3, 4)),
        Exponential(1),
        SparseVector.for_epsilon(1, 10),
    ],
    ids=lambda m: type(m).__name__,
)
def test_no_single_value_decides_between_success_and_failure(mechanism: Any, odd: object) -> None:
    plain, strange = mechanism.release([1, 2]), mechanism.release([1, odd])
    assert type(plain.values) is type(strange.values)
    assert np.shape(plain.values) == np.shape(strange.values) or isinstance(plain.values, tuple)
    mechanism.release(pd.Series([1, None], dtype="Int64"))


@attack(9, finds=[faults.clip_of_numpy])
def test_clipping_takes_whatever_a_list_holds() -> None:
    assert Bounds(0, 10).clip([1, 2**70, None]).tolist() == [1, 10, 0]
    assert Bounds(0, 10).clip([0.5, float("nan"), 10**400, None]).tolist() == [0.5, 0.0, 10.0, 0.0]
    assert Bounds(2**64, 2**65).clip([1]).tolist() == [2.0**64]
    with np.errstate(all="raise"):
        Bounds(0, 1).clip(np.array([np.longdouble("1e4000")]))


def test_masked_values_stay_masked() -> None:
    masked = np.ma.masked_array([5, 999], mask=[0, 1])
    laplace, coin = Laplace.for_epsilon(1, dimension=2), RandomizedResponse(Fraction(3, 4))
    for use in (laplace.release, Bounds(0, 10).clip, coin.release):
        with pytest.raises(InvalidArgument, match="mask"):
            use(masked)


def test_errors_do_not_repeat_the_data() -> None:
    with pytest.raises(InvalidArgument) as caught:
        Laplace.for_epsilon(1, dimension=2).release(np.array(["a secret", "x" * 320]))
    assert "secret" not in str(caught.value)
    assert "320" not in str(caught.value)


def test_small_integers_as_threshold_do_not_wrap() -> None:
    mechanism = SparseVector(np.int8(100), 1, Fraction(1, 50), Fraction(1))
    assert type(mechanism.threshold) is int
    assert len(mechanism.release([0] * 10).values) <= 10


def test_flags_must_be_flags() -> None:
    for kind, flag in ((PermuteAndFlip, {"monotonic": "false"}), (Laplace, {"real": "no"}), (Gaussian, {"real": 1})):
        with pytest.raises(InvalidArgument):
            kind(1, 1, **flag)


@pytest.mark.parametrize("dimension", [1, 10**6])
def test_values_held_at_the_limit_have_an_open_interval(dimension: int) -> None:
    mechanism = Laplace.for_epsilon(1, 1, dimension=dimension, real=True)
    assert mechanism.limit > 10**9
    # At 95 % an interval may end short of the limit; at this level it does so once in 10^12 times.
    beyond = mechanism.release(np.array([2 * mechanism.limit])).intervals(1 - 1e-12)[0]
    assert beyond[1] == np.inf
    inside = mechanism.release(np.array([1e6])).intervals(1 - 1e-12)[0]
    assert np.isfinite(inside).all()


def test_intervals_of_large_integers_are_not_rounded_shut() -> None:
    low, high = Laplace.for_epsilon(100).release(2**60 + 1).intervals()
    assert low < 2**60 + 1 < high


def test_absurd_events_are_bounded_or_refused_in_time() -> None:
    huge = Fraction(10) ** 400
    assert account([events.Repeated(events.Pure(Fraction(1, 100)), 10**7)], ApproxDP, delta="1e-6").epsilon < 700
    assert account([events.Laplace(1 / huge, 1)], ApproxDP, delta="1e-6").epsilon >= huge
    sampled = events.PoissonSampled(Fraction(1, 2), events.Pure(huge))
    assert account([sampled], ApproxDP, delta="1e-6").epsilon > huge / 2
    with pytest.raises(BudgetExceeded):
        Filter(PureDP(1)).charge(events.Pure(huge))
    assert repr(PureDP(1 / huge)) == "PureDP(epsilon=1e-400)"
    for junk in ({"kind": ["x"]}, [1], {"kind": "composed", "events": 3}, {"kind": "composed", "events": {"a": 1}}):
        with pytest.raises(InvalidArgument):
            events.from_json(junk)
    with pytest.raises(InvalidArgument, match="deep"):
        reduce(lambda inner, _: events.Repeated(inner, 1), range(100), events.Pure(Fraction(1)))

"""What the margins rest on, measured; and that a uniform is read exactly as far as a question needs."""

import math
import os
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from tests.noise.formulas import boundary
from tests.noise.spies import Counted

from discreet.core.rounding import ball
from discreet.noise import laplace
from discreet.noise.refinement import ULPS, Uniform, double

MEASURED = 4
"""Units in the last place that numpy's functions are off by at most; the margins allow for `ULPS`."""


def units_off(computed: np.ndarray, exact: list[arb]) -> float:
    """The largest error in units of the last place of the computed value."""
    worst = 0.0
    for value, ball_of in zip(computed.tolist(), exact, strict=True):
        worst = max(worst, float((abs(ball(Fraction(value)) - ball_of) / ball(Fraction(math.ulp(value)))).mid()))
    return worst


def logarithms() -> np.ndarray:
    generator = np.random.default_rng(13)
    near_one = 1 - np.concatenate([generator.random(4000) * 2.0**-k for k in (4, 20, 40)])
    edges = [1 - 2.0**-53, 1 - 2.0**-52, 0.5, 0.7071067811865476, 2.0**-17, math.nextafter(1, 0)]
    return np.concatenate([generator.random(12000), 2.0 ** (-17 * generator.random(4000)), near_one, edges])


def test_numpy_log_is_within_its_units() -> None:
    points = logarithms()
    points = points[points > 0]
    assert points.size > 20_000
    with ctx.workprec(120):
        exact = [ball(Fraction(point)).log() for point in points.tolist()]
        assert units_off(np.log(points), exact) <= MEASURED < ULPS


def test_numpy_exp_is_within_its_units() -> None:
    generator = np.random.default_rng(14)
    points = -np.concatenate(
        [generator.random(10000), 20 * generator.random(8000), 700 * generator.random(2000), 2.0 ** -np.arange(1, 60)]
    )
    assert points.size > 20_000
    with ctx.workprec(120):
        exact = [ball(Fraction(point)).exp() for point in points.tolist()]
        assert units_off(np.exp(points), exact) <= MEASURED < ULPS


def test_numpy_agrees_with_itself_on_arrays_of_every_length() -> None:
    # Vectorised code paths treat the ends of an array apart: they must not be worse there.
    points = np.random.default_rng(15).random(300)
    for length in (1, 2, 3, 5, 7, 8, 9, 15, 17, 33, 300):
        for start in range(3):
            part = points[start : start + length]
            apart = np.array([np.log(point) for point in part])
            assert (np.abs(np.log(part) - apart) <= MEASURED * np.spacing(np.abs(apart))).all()


@pytest.mark.slow
def test_numpy_is_as_good_without_the_vector_units_of_this_machine() -> None:
    found = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    tests = "test_numpy_log_is_within_its_units or test_numpy_exp_is_within_its_units"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", tests, __file__]
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(found)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("denominator", [3, 7, 10**40 + 1])
def test_is_below_reads_only_while_the_threshold_is_within_what_is_known(denominator: int) -> None:
    threshold = Fraction(1, denominator)
    bits = 256
    own = int(threshold * 2**bits)
    words = [own >> (bits - 64 * (i + 1)) & (1 << 64) - 1 for i in range(4)]
    for agreed in range(1, 4):
        for step, below in ((-1, True), (1, False)):
            last = words[agreed] + step
            if 0 <= last < 1 << 64:
                source = Counted([*words[1:agreed], last])
                assert Uniform(words[0], 64, source).is_below(lambda: ball(threshold)) is below
                assert source.handed_out == agreed


def test_exact_thresholds_are_decided_without_reading() -> None:
    source = Counted()
    assert not Uniform(1 << 63, 64, source).is_below(lambda: arb(0.5))
    assert Uniform((1 << 63) - 1, 64, source).is_below(lambda: arb(0.5))
    assert Uniform((1 << 64) - 1, 64, source).is_below_exp(Fraction(0))
    assert not Uniform(0, 64, source).is_below(lambda: arb(0))
    assert source.handed_out == 0


def test_find_is_the_first_share_above_the_uniform() -> None:
    shares = [Fraction(1, 8), Fraction(1, 8), Fraction(5, 8), Fraction(1)]
    for prefix in range(8):
        expected = next(i for i, share in enumerate(shares) if Fraction(prefix, 8) < share)
        found = Uniform(prefix, 3, Counted()).find(0, 3, lambda i: ball(shares[i]))
        assert found == expected


@pytest.mark.parametrize("scale", [Fraction(1, 2**60), Fraction(1), Fraction(2**20)])
def test_the_floor_of_a_logarithm_never_falls_below_zero(scale: Fraction) -> None:
    source = Counted()
    assert Uniform((1 << 63) - 1, 63, source).floor_log(scale, lambda: arb(0)) == 0
    assert source.handed_out == 0


def test_a_constant_spoilt_by_another_thread_is_computed_again() -> None:
    calls = []

    def third() -> arb:
        calls.append(ctx.prec)
        if len(calls) == 1:
            ctx.prec = 20
        return arb(1) / 3

    assert double(third) == 1 / 3
    assert len(calls) == 2


def test_a_thread_that_changes_the_precision_changes_no_draw() -> None:
    scale, k = Fraction(1000), 1500
    on_it = boundary(scale, False, k, 63 + 64)
    words = [on_it >> 64, on_it & (1 << 64) - 1]
    done = threading.Event()

    def meddle() -> None:
        while not done.is_set():
            with ctx.workprec(20):
                arb(2).sqrt()

    precision, pause = ctx.prec, sys.getswitchinterval()
    meddler = threading.Thread(target=meddle)
    sys.setswitchinterval(1e-6)
    meddler.start()
    try:
        plans = [laplace._plan.__wrapped__(scale, True) for _ in range(200)]
        # Words that do not decide are followed by zeros, or by ones.
        below = [int(laplace.geometric(scale, entropy=Counted([*words, *[0] * 60]))) for _ in range(300)]
        above = [int(laplace.geometric(scale, entropy=Counted([*words, *[(1 << 64) - 1] * 60]))) for _ in range(300)]
    finally:
        done.set()
        meddler.join()
        sys.setswitchinterval(pause)
        ctx.prec = precision
    assert set(plans) == {laplace._plan(scale, True)}
    assert set(below) == {k}
    assert set(above) == {k - 1}

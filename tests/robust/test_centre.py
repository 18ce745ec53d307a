"""One number from those of many blocks, and one answer from many: what it costs, what may not matter, what is right."""

import math
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import ApproxDP, Bounds, InvalidArgument, PureDP
from discreet.accounting.approximate import approximate, satisfies
from discreet.accounting.pure import pure
from discreet.core.events import Composed
from discreet.mechanisms import Quantile
from discreet.noise import Entropy
from discreet.robust import Agreement, Centre, Limits, SampleAndAggregate, Unstable, Vote

METHODS = ["median", "winsorized", "trimmed", "mean"]
BOUNDS = Bounds(-100, 100)
SEEDED = Entropy.for_tests(3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("size", "delta"), [(1, 0), (1, "1e-6"), (3, 0), (20, "1e-6")], ids=str)
def test_the_loss_is_what_was_asked_and_that_of_the_events(method: Any, size: int, delta: Any) -> None:
    bounds = BOUNDS if size == 1 else (BOUNDS,) * size
    for rounds in (1, 4):
        centre = Centre(bounds, 2, 50, rounds, delta, method)
        together = Composed(centre.events)
        if delta and size > 1:
            assert centre.loss == ApproxDP(2, delta)
            assert satisfies(together, ApproxDP(2, delta))
            # Without a δ each would have a twentieth of ε.
            assert centre.share > Fraction(1, 10)
            assert approximate(together, delta).epsilon > Fraction(19, 10)
        else:
            assert centre.loss == PureDP(2) == pure(together)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rounds", [1, 3], ids=["once", "thrice"])
def test_answers_are_near_those_of_most_blocks_and_within_bounds(method: Any, rounds: int) -> None:
    draws = np.random.default_rng(0).normal(30, 2, 300 * rounds)
    draws[: 10 * rounds] = 1e300
    draws[10 * rounds : 20 * rounds] = math.nan
    centre = Centre(BOUNDS, 2, 300, rounds, method=method)
    value = centre.release(draws, entropy=SEEDED).values
    # A tenth of a part of the values are far off; the mean alone follows them.
    assert abs(value - 30) < (5 if method == "mean" else 1.5)
    for odd in ([math.inf] * 10, [-math.inf] * 10, [0.0] * 10, [1e-320] * 10, [math.nan] * 10):
        small = Centre(BOUNDS, 2, 10, method=method)
        assert -100 <= small.release(odd, entropy=SEEDED).values <= 100


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "bounds",
    [Bounds(5, 5), Bounds(0, 2**-890), Bounds(-(2**999), 2**999), Bounds("0.1", "0.3")],
    ids=["none", "narrow", "wide", "decimal"],
)
def test_any_bounds_will_do(method: Any, bounds: Bounds) -> None:
    centre = Centre(bounds, 1, 20, method=method)
    for answer in (float(bounds.lower), float(bounds.upper), 0.2):
        assert bounds.lower <= Fraction(centre.release([answer] * 20, entropy=SEEDED).values) <= bounds.upper


@pytest.mark.parametrize("blocks", [40, 48, 60, 100], ids=str)
@pytest.mark.parametrize("apart", [0.0, 0.1], ids=["equal", "close"])
def test_answers_that_agree_come_out_however_wide_the_bounds(blocks: int, apart: float) -> None:
    made = Centre.best(Bounds(0, 1000), 1, blocks)
    assert made.method == "median"
    answers = np.random.default_rng(blocks).normal(163, apart, blocks)
    near = [abs(made.release(answers, entropy=SEEDED).values - 163) < made.steps[0] + 5 * apart for _ in range(60)]
    # Each is lost with a chance of 1/200 at most: 10 of 60 are with less than 1e-12.
    assert sum(near) > 50
    # On the finest line, nearly all equal answers would be lost where blocks are so few.
    fine = Quantile("0.5", 1, Bounds(0, 1000), neighbours="replace")
    lost = [abs(fine.release(answers, entropy=SEEDED).values - 163) > made.steps[0] for _ in range(60)]
    assert apart or blocks > 60 or sum(lost) > 30


def test_a_median_is_lost_no_more_often_than_it_says() -> None:
    for blocks, runs in ((12, 300), (24, 600)):
        made = Centre(Bounds(0, 1000), 1, blocks)
        lost = sum(made.release([163.0] * blocks, entropy=SEEDED).values != 160 for _ in range(runs))
        allowed = runs * made.missed
        assert allowed / 8 < lost < allowed + 7 * math.sqrt(allowed), (blocks, lost, allowed)
    assert Centre.best(Bounds(0, 1000), 1, 24).method == "mean"
    assert Centre.best((BOUNDS,) * 8, 1, 10, delta="1e-6").method == "mean"
    assert Centre(Bounds(0, 1000), 1, made.least).missed <= 1 / 200 < Centre(Bounds(0, 1000), 1, made.least - 1).missed


def test_equal_answers_come_out_as_they_are() -> None:
    for method, near in (("median", 1e-6), ("winsorized", 0.01)):
        made = Centre(BOUNDS, 2, 400, method=method)
        assert abs(made.release([41.5] * 400, entropy=SEEDED).values - 41.5) < near


def test_intervals_hold_the_mean_of_the_answers() -> None:
    rng = np.random.default_rng(1)
    for method in ("mean", "winsorized"):
        # So much ε that fences never fall among the answers.
        made = Centre((BOUNDS, Bounds(0, 1)), 8, 200, delta="1e-6", method=method)
        answers = np.stack([rng.uniform(20, 40, 200), rng.uniform(0.2, 0.4, 200)], axis=1)
        held = [made.release(answers, entropy=SEEDED).intervals(1 - 1e-9) for _ in range(20)]
        assert all((ends[:, 0] <= answers.mean(axis=0)).all() for ends in held)
        assert all((answers.mean(axis=0) <= ends[:, 1]).all() for ends in held)
    with pytest.raises(TypeError, match="no intervals"):
        Centre(BOUNDS, 1, 50).release([1.0] * 50).intervals()


def test_the_choice_is_the_one_that_is_off_by_least() -> None:
    rng = np.random.default_rng(2)
    for blocks in (10, 100, 4000):
        off = {}
        for method in ("median", "winsorized", "mean"):
            made = Centre(Bounds(-10, 10), 1, blocks, method=method)
            runs = [made.release(rng.normal(0, 1, blocks), entropy=SEEDED).values for _ in range(60)]
            off[method] = float(np.mean(np.abs(runs)))
        chosen = Centre.best(Bounds(-10, 10), 1, blocks).method
        assert off[chosen] <= 1.3 * min(off.values()), (blocks, chosen, off)


def test_with_a_delta_long_vectors_get_gaussian_noise() -> None:
    made = Centre((BOUNDS,) * 100, 1, 50, delta="1e-6", method="mean")
    assert [type(event).__name__ for event in made.events] == ["Gaussian"]
    assert made.noise is not None
    assert made.noise.sigma < 100 * Centre((BOUNDS,) * 100, 1, 50, method="mean").noise.scale / 9


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"bounds": (0, 1)}, "bounds"),
        ({"bounds": ()}, "bounds"),
        ({"bounds": Bounds(0, Fraction(1, 2**950))}, "apart"),
        ({"epsilon": 0}, "epsilon"),
        ({"blocks": 0}, "blocks"),
        ({"blocks": 1 << 21}, "at most"),
        ({"rounds": 0}, "rounds"),
        ({"method": "mode"}, "method"),
        ({"method": "trimmed", "epsilon": "0.001"}, "epsilon"),
        ({"default": 101}, "default"),
        ({"default": [1, 2]}, "default"),
        ({"delta": 1}, "delta"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        Centre(**{"bounds": BOUNDS, "epsilon": 1, "blocks": 10, **asked})


def test_what_blocks_send_is_read_or_is_the_default() -> None:
    centre, vote, agreed = Centre((BOUNDS,) * 2, 1, 9, default=(3, 4)), Vote((0, 1), 1, 9), Agreement(1, "1e-3", 99)
    assert centre.read(np.array([1.0, 2.0]).tobytes()) == (1.0, 2.0)
    for junk in (None, b"", b"x" * 16 + b"y", np.array([1.0, math.nan]).tobytes(), np.array([1.0]).tobytes()):
        assert centre.read(junk) == (3.0, 4.0)
    assert [vote.read(raw) for raw in (b"1", b"true", b"1.0", b'"1"', b"7", b"[" * 9999, b"1" * 9999, None)] == [
        *[1, True, 1.0],
        *[None] * 5,
    ]
    for junk in (b'{"t": 3, "u": 4}', b"{}", b"[1]", b'{"b": "zz"}', b"\xff", None):
        assert agreed.read(junk) is None


@pytest.mark.parametrize("method", ["permute_and_flip", "exponential", "noisy_max"])
def test_a_clear_winner_is_chosen_and_no_vote_counts_for_nobody(method: Any) -> None:
    vote = Vote(("a", "b", "c"), 2, 60, method=method)
    assert vote.loss == PureDP(2)
    assert vote.release(["b"] * 40 + ["a"] * 5 + [None] * 15, entropy=SEEDED).values == "b"
    assert vote.release([None] * 60, entropy=SEEDED).values in "abc"
    assert Vote((True, 2), 2, 60, rounds=5).choice.sensitivity == 5
    for wrong in ({"values": ()}, {"values": (1, 1)}, {"values": (None, 1)}, {"values": ([1],)}, {"default": 9}):
        with pytest.raises((InvalidArgument, TypeError)):
            Vote(**{"values": (1, 2), "epsilon": 1, "blocks": 3, **wrong})


def test_agreement_takes_a_lead_of_two_for_each_step_and_says_what_is_too_few() -> None:
    agreed = Agreement(1, "1e-6", 200, rounds=2)
    lead = agreed.needed("1e-12")
    votes = ["x"] * (200 + lead // 2 + 1) + ["y"] * (200 - lead // 2 - 1)
    assert agreed.release(votes, entropy=SEEDED).values == "x"
    assert Agreement(1, "1e-6", 400).release(["x"] * 400, entropy=SEEDED).values == "x"
    assert isinstance(agreed.release(["x", "y"] * 200, entropy=SEEDED).values, Unstable)
    with pytest.raises(InvalidArgument, match="or more for any answer"):
        Agreement(1, "1e-6", 5)


def test_a_function_of_records_is_run_on_blocks_of_units() -> None:
    units = np.repeat(np.arange(200), 3)
    rows = np.stack([units, np.random.default_rng(0).normal(7, 1, 600)], axis=1)
    made = SampleAndAggregate(lambda rows: rows[:, 1].mean(), Centre(Bounds(0, 10), 4, 20), Limits(workers=2))
    told: list[float] = []
    value = made.release(rows, units=units, progress=told.append, entropy=SEEDED).values
    assert abs(value - 7) < 0.5
    assert told[-1] == 1.0
    few = SampleAndAggregate(lambda rows: "x", Vote(("x", "y"), 9, 30, default="y"), Limits(workers=1))
    assert few.release(["one"], entropy=SEEDED).values == "y"
    assert few.release([threading.Lock()], entropy=SEEDED).values == "y"
    with pytest.raises(InvalidArgument, match="units"):
        made.release(rows, units=[1])

"""The library's own mechanisms held to the loss they state, by the same auditor that catches the zoo.

Fresh randomness at every run; each audit accuses an honest mechanism with probability at most 1e-9. Where the pair of
data sets comes near the stated loss, the same audit must also refute a part of it: a mechanism with too little noise by
that factor would not get past. The parts are chosen six or more standard errors below what the audit finds.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.adversary import Comparison, audit
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NeighbourSet,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
    Staircase,
)

pytestmark = pytest.mark.slow

RUNS_AT_ONCE = 200_000


@dataclass(frozen=True)
class Case:
    """A mechanism run one release at a time on a pair of data sets, and the part of its loss to be refuted there."""

    name: str
    mechanism: Any
    d: Any
    d_prime: Any
    part: str | None = "0.5"
    runs: int = 4_000


BELOW_THEN_ABOVE, MOVED = [-1, -1, -1, 0], [0, 0, 0, -1]

ONE_BY_ONE = [
    Case("staircase", Staircase(2, 10), 0, 10, part="0.4", runs=2_000),
    Case("staircase of a real", Staircase(2, 1, real=True), 0.25, 1.25, part="0.4", runs=2_000),
    Case("neighbour set", NeighbourSet(2, (2, 15)), 0, 15, part="0.4", runs=2_000),
    Case("neighbour set, a gap", NeighbourSet(2, ((0, 1), (40, 41))), 0, 40, part="0.4", runs=2_000),
    Case("neighbour set of a real", NeighbourSet(2, ("0.25", 1), real=True), 0.5, 1.5, part="0.4", runs=2_000),
    Case("neighbour set, replaced", NeighbourSet(2, (3, 18), neighbours="replace"), 3, 18, part="0.4", runs=2_000),
    Case("neighbour set of a pair", NeighbourSet(2, ((1, 0), (0, 4)), dimension=2), [0, 0], [0, 4], "0.4", 2_000),
    Case("laplace", Laplace.for_epsilon(2), 3, 4),
    Case("laplace of a vector", Laplace.for_epsilon(2, 2, dimension=2), [3, 4], [4, 3]),
    Case("laplace of a real", Laplace.for_epsilon(2, real=True), 0.3, 1.3),
    Case("exponential", Exponential(2), [0, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0], part="0.35"),
    Case("exponential, monotonic", Exponential(2, monotonic=True), [1, 0, 0], [0, 0, 0], part=None),
    Case("permute and flip", PermuteAndFlip(2), [0, 0], [1, -1]),
    Case("permute and flip, monotonic", PermuteAndFlip(2, monotonic=True), [0, 0], [1, 0]),
    Case("noisy max", NoisyMax(2), [0, 1, 1], [1, 0, 0], part="0.35"),
    Case("noisy max, monotonic", NoisyMax(2, monotonic=True), [0, 0], [1, 0], part=None),
    Case("sparse vector", SparseVector.for_epsilon(4, 0), BELOW_THEN_ABOVE, MOVED, part="0.25"),
    Case("sparse vector, two", SparseVector.for_epsilon(4, 0, 2), [*BELOW_THEN_ABOVE, 0], [*MOVED, -1], "0.1", 6_000),
    Case(
        "sparse vector, values",
        SparseVector.for_epsilon(4, 0, value_share="0.5"),
        BELOW_THEN_ABOVE,
        MOVED,
        "0.25",
    ),
]


@pytest.mark.parametrize("case", ONE_BY_ONE, ids=lambda case: case.name)
def test_a_release_keeps_to_its_loss(case):
    found = audit(case.mechanism, case.d, case.d_prime, samples=case.runs)
    assert not found.violates(case.mechanism.loss), str(found)
    if case.part is not None:
        assert found.violates(PureDP(case.mechanism.loss.epsilon * Fraction(case.part))), str(found)


def test_a_neighbour_set_that_leaves_out_a_value_is_accused():
    """The guarantee is for the values that were declared: a record of another one breaks it."""
    declared = NeighbourSet(2, (2, 40))
    found = audit(declared, 0, 13, samples=4_000)
    assert found.violates(declared.loss), str(found)
    whole = NeighbourSet(2, (2, 13, 40))
    assert not audit(whole, 0, 13, samples=4_000).violates(whole.loss)


@pytest.mark.parametrize("real", [False, True])
def test_laplace_on_many_copies_keeps_to_its_loss(real):
    def batch(value, n):
        return Laplace.for_epsilon(1, dimension=n, real=real).release(np.full(n, value)).values

    found = audit(None, 3, 4, samples=RUNS_AT_ONCE, batch=batch)
    assert not found.violates(PureDP(1)), str(found)
    assert found.violates(PureDP("0.8")), str(found)


@pytest.mark.parametrize("real", [False, True])
def test_gaussian_on_many_copies_keeps_to_its_loss(real):
    def batch(value, n):
        return Gaussian.for_zcdp("0.5", dimension=n, real=real).release(np.full(n, value)).values

    found = audit(None, 3, 4, samples=RUNS_AT_ONCE, batch=batch)
    assert not found.violates(ZCDP("0.5")), str(found)
    assert found.violates(ZCDP("0.15")), str(found)


def test_gaussian_keeps_to_its_curve_at_a_delta():
    gaussian = Gaussian.for_approx(1, "0.05", squared_sensitivity=10_000, dimension=RUNS_AT_ONCE)

    def batch(value, n):
        return gaussian.release(np.full(n, value)).values

    found = audit(None, 300, 400, samples=RUNS_AT_ONCE, batch=batch, delta="0.05")
    assert not found.violates(gaussian.loss_at("0.05")), str(found)
    assert found.violates(ApproxDP("0.75", "0.05")), str(found)


@pytest.mark.parametrize("categories", [2, 5])
def test_randomized_response_keeps_to_its_loss(categories):
    poll = RandomizedResponse.for_epsilon(1, categories)
    found = audit(None, 0, 1, samples=RUNS_AT_ONCE, batch=lambda answer, n: poll.release(np.full(n, answer)).values)
    assert not found.violates(poll.loss), str(found)
    assert found.violates(PureDP("0.8")), str(found)


@pytest.mark.parametrize("categories", [2, 5])
def test_randomized_response_meets_its_loss_exactly(categories):
    poll = RandomizedResponse.for_epsilon(1, categories)

    def law(answer):
        lie = (1 - poll.truth) / (categories - 1)
        return {report: poll.truth if report == answer else lie for report in range(categories)}

    pair = Comparison(law(0), law(1))
    assert pair.holes == ()
    assert pair.satisfies(poll.loss)
    assert not pair.satisfies(PureDP(poll.loss.epsilon * Fraction(999_999, 1_000_000)))

"""Propose-test-release keeps its loss on small data and on the boundary, and a wrong oracle is accused."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import ApproxDP, Bounds, InvalidArgument
from discreet.adversary import audit
from discreet.noise import Entropy
from discreet.robust import (
    Declared,
    InterquartileRange,
    MedianDeviation,
    OnLine,
    OrderStatistic,
    ProposeTestRelease,
    TrimmedMean,
    Unstable,
)
from discreet.robust.statistics import Sample

from .worlds import every, neighbours

TOP = 6


def laws(mechanism: ProposeTestRelease, rows: Any) -> np.ndarray[Any, Any]:
    """The chance of ⊥ and of each answer on the line, the ends with all that lies beyond them, as doubles."""
    found = mechanism.oracle.propose(np.array(rows, dtype=np.int64), mechanism.bound, mechanism.test.enough, "replace")
    passed = float(mechanism.test.chance(found.distance))
    p = np.exp(-float(mechanism.epsilon * (1 - mechanism.share)) / found.steps)
    places = np.arange(TOP + 1) - found.value
    answers = p ** np.abs(places) * (1 - p) / (1 + p)
    answers[0], answers[-1] = p**found.value / (1 + p), p ** (TOP - found.value) / (1 + p)
    return np.concatenate([[1 - passed], passed * answers])


def excess(mechanism: ProposeTestRelease, most: int) -> float:
    """By how much, at most, Σ (P − e^ε·P′)⁺ is above δ for a pair of neighbours."""
    grown, worst = float(np.exp(float(mechanism.epsilon))), -1.0
    held = {rows: laws(mechanism, rows) for rows in every(TOP, most + 1)}
    for rows in every(TOP, most):
        for other in neighbours(rows, TOP, mechanism.neighbours):
            for a, b in ((held[rows], held[other]), (held[other], held[rows])):
                worst = max(worst, float(np.maximum(a - grown * b, 0).sum()) - float(mechanism.delta))
    return worst


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("statistic", [OrderStatistic(), OrderStatistic("0.75"), InterquartileRange()], ids=str)
@pytest.mark.parametrize(("bound", "epsilon", "delta"), [(1, 3, "0.1"), (2, 1, "0.3")])
def test_every_small_pair_is_within_the_loss(
    statistic: Any, relation: Any, bound: int, epsilon: int, delta: str
) -> None:
    oracle = OnLine(statistic, Bounds(0, TOP), 1)
    assert excess(ProposeTestRelease(oracle, bound, epsilon, delta, relation), most=4) < 1e-12


@dataclass(frozen=True)
class Careless(OrderStatistic):
    """The distance as if only the data itself had to be stable."""

    def distance(self, sample: Sample, bound: int, limit: int, neighbours: Any) -> int:
        return limit if self.spread(sample, 0, neighbours) <= bound else 0


def test_a_wrong_distance_is_caught() -> None:
    oracle = OnLine(Careless(), Bounds(0, TOP), 1)
    assert excess(ProposeTestRelease(oracle, 1, 3, "0.1"), most=4) > 0.1


BOUNDARY = [0] * 26 + [1] * 8 + [100] * 26
"""The median is 1, and five ranks on it would be 100: the proposed bound fails four records away."""


@pytest.mark.parametrize("moved", [BOUNDARY[1:], BOUNDARY[:-1]], ids=["without a low", "without a high"])
def test_the_auditor_finds_nothing_on_the_boundary(moved: list[int]) -> None:
    mechanism = ProposeTestRelease(OnLine(OrderStatistic(), Bounds(0, 200), 1), 1, 2, "0.02")
    held = [mechanism.oracle.propose(rows, Fraction(1), 99, "add_remove").distance for rows in (BOUNDARY, moved)]
    assert held[0] == 4
    assert abs(held[0] - held[1]) <= 1
    assert 0 < float(mechanism.test.chance(held[0])) < 1

    def run(rows: list[int]) -> object:
        value = mechanism.release(rows).values
        return -1000.0 if isinstance(value, Unstable) else value

    found = audit(run, BOUNDARY, moved, samples=1500, delta="0.02")
    assert not found.violates(mechanism.loss), str(found)


def test_the_auditor_accuses_a_wrong_oracle() -> None:
    """A mean that says it is stable whatever the data."""
    liar = ProposeTestRelease(Declared(np.mean, lambda rows: 99), "0.1", 1, "1e-3")
    found = audit(lambda rows: liar.release(rows).values, [0, 0, 0, 10], [0, 0, 0, 0], samples=1000, delta="1e-3")
    assert found.violates(liar.loss), str(found)


def test_answers_are_near_where_data_is_stable() -> None:
    rng = np.random.default_rng(2)
    data = rng.normal(100, 15, 20_000)
    for statistic, truth, bound in (
        (OrderStatistic(), 100, "0.5"),
        (OrderStatistic("0.9"), 119.2, "0.5"),
        (InterquartileRange(), 20.2, "0.5"),
        (TrimmedMean("0.1"), 100, "0.02"),
    ):
        mechanism = ProposeTestRelease(OnLine(statistic, Bounds(0, 500)), bound, 1, "1e-6", "replace")
        assert mechanism.loss == ApproxDP(1, "1e-6")
        found = mechanism.release(data, entropy=Entropy.for_tests(1))
        assert abs(found.values - truth) < mechanism.accuracy("1e-3") + 1
        low, high = found.intervals()
        assert high - low == pytest.approx(2 * mechanism.accuracy("0.05"))


def test_accuracy_is_kept() -> None:
    mechanism = ProposeTestRelease(OnLine(OrderStatistic(), Bounds(0, 1000), 1), 10, 1, "1e-6")
    source, bar = Entropy.for_tests(4), mechanism.accuracy("0.1")
    missed = sum(abs(mechanism.release([500] * 999, entropy=source).values - 500) > bar for _ in range(200))
    assert missed <= 20 + 6 * 18**0.5


@pytest.mark.parametrize("data", [[], [1], [float("nan")] * 3, [10**40, None]], ids=str)
@pytest.mark.parametrize("statistic", [OrderStatistic(), InterquartileRange(), TrimmedMean(), MedianDeviation()])
def test_tiny_and_odd_data_is_unstable(statistic: Any, data: Any) -> None:
    mechanism = ProposeTestRelease(OnLine(statistic, Bounds(0, 10)), "0.01", 1, "1e-9", "replace")
    found = mechanism.release(data)
    assert isinstance(found.values, Unstable)
    assert found.values.loss == found.loss == mechanism.loss


@pytest.mark.parametrize("statistic", [OrderStatistic(), InterquartileRange(), TrimmedMean(), MedianDeviation()])
@pytest.mark.parametrize(
    ("data", "truths"),
    [
        ([7] * 400, (7, 0, 7, 0)),
        ([2] * 100 + [7] * 600 + [9] * 100, (7, 0, 6.906, 0)),
        ([float("inf")] * 400, (10, 0, 10, 0)),
        ([float("nan")] * 400, (0, 0, 0, 0)),
    ],
    ids=["constant", "ties", "infinities", "missing"],
)
def test_constants_and_ties_are_as_stable_as_can_be(statistic: Any, data: Any, truths: tuple[float, ...]) -> None:
    """Values beyond the bounds are at them, and what is missing at 0."""
    kinds = (OrderStatistic, InterquartileRange, TrimmedMean, MedianDeviation)
    mechanism = ProposeTestRelease(OnLine(statistic, Bounds(0, 10)), "0.05", 1, "1e-6", "replace")
    value = mechanism.release(data, entropy=Entropy.for_tests(0)).values
    assert abs(value - truths[kinds.index(type(statistic))]) < mechanism.accuracy("1e-6")


def test_declared_functions_that_fail_are_unstable() -> None:
    def fails(rows: Any) -> Any:
        raise ValueError(rows)

    for distance in (fails, lambda rows: "far", lambda rows: float("nan"), lambda rows: -7, lambda rows: 0.99):
        mechanism = ProposeTestRelease(Declared(np.mean, distance), 1, 1, "1e-12")
        assert isinstance(mechanism.release([1, 2]).values, Unstable)
    failing = ProposeTestRelease(Declared(fails, lambda rows: float("inf")), 1, 1, "1e-12")
    assert abs(failing.release([1]).values) < 200


@pytest.mark.parametrize(
    ("argument", "bad"),
    [
        ("oracle", OrderStatistic()),
        ("bound", 0),
        ("bound", "1e-9"),
        ("epsilon", "-1"),
        ("delta", 0),
        ("share", 1),
        ("rule", "x"),
        ("neighbours", "x"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(argument: str, bad: Any) -> None:
    given = {"oracle": OnLine(OrderStatistic(), Bounds(0, 10), 1), "bound": 1, "epsilon": 1, "delta": "1e-6"}
    with pytest.raises(InvalidArgument, match=argument):
        ProposeTestRelease(**(given | {argument: bad}))


def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="'replace' for this statistic"):
        ProposeTestRelease(OnLine(TrimmedMean(), Bounds(0, 1)), 1, 1, "1e-6")
    with pytest.raises(InvalidArgument, match="statistic"):
        OnLine(max, Bounds(0, 1))
    with pytest.raises(InvalidArgument, match="distance"):
        Declared(np.mean, 3)

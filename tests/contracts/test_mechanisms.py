"""One suite over every mechanism: the promises of `core.mechanism.Mechanism`."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import Bounds, InvalidArgument, Mechanism, PureDP
from discreet.accounting.pure import pure
from discreet.core.events import from_json, to_json
from discreet.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NeighbourSet,
    NoisyMax,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    RandomizedResponse,
    SparseVector,
    Staircase,
)
from discreet.noise import Entropy
from discreet.robust import (
    Agreement,
    Centre,
    Declared,
    MedianDeviation,
    OnLine,
    OrderStatistic,
    ProposeTestRelease,
    Scale,
    SmoothSensitivity,
    SubsampledRelease,
    TrimmedMean,
    Vote,
    mode,
)

# Each mechanism with data it takes.
EACH: list[tuple[Any, object]] = [
    (Laplace.for_epsilon(1, 3), 10),
    (Laplace.for_epsilon("0.1", 2, dimension=4), np.arange(4)),
    (Laplace.for_epsilon(1, "2.5", dimension=3, real=True), np.array([0.1, 2.0, 3.0])),
    (Gaussian.for_approx(1, "1e-6"), 10),
    (Gaussian.for_zcdp("0.01", 2, dimension=5), np.arange(5)),
    (Gaussian.for_approx(2, "1e-9", "0.25", dimension=2, real=True), np.array([0.1, -7.5])),
    (Staircase(1, 10), 4),
    (Staircase(3, "0.5", real=True), 0.25),
    (NeighbourSet(1, (0, 500, 10_000)), 1000),
    (NeighbourSet(2, ((0, 1), ("9.5", 10)), p=2, neighbours="replace", real=True), 0.25),
    (NeighbourSet(2, ((0, 3), (7, (1, 2))), dimension=2), np.array([4, 5])),
    (RandomizedResponse(Fraction(3, 4)), np.array([0, 1, 1])),
    (RandomizedResponse.for_epsilon(2, 5), np.array([4, 2, 0])),
    (Exponential(1, 2), np.array([5, 1, 9])),
    (PermuteAndFlip(1, 2), np.array([5, 1, 9])),
    (NoisyMax(1, 2, monotonic=True), np.array([5, 1, 9])),
    (Quantile("0.5", 1, Bounds(0, 10)), np.array([0.5, 2.0, 3.0])),
    (Quantile.maximum(1, Bounds(0, 10), neighbours="replace"), [1, 2, 3]),
    (Quantiles(("0.25", "0.5", "0.75"), 1, Bounds(0, 10), 1), np.array([5, 1, 9])),
    (ProposeTestRelease(OnLine(OrderStatistic(), Bounds(0, 10), 1), 2, 1, "1e-6"), np.full(200, 5)),
    (ProposeTestRelease(Declared(len, len), 2, 1, "1e-6", "replace"), np.full(200, 5)),
    (Scale(1, "1e-6", Bounds(0, 100)), np.arange(400) % 90),
    (Scale.book(1, "1e-6", Bounds(0, 100)), np.arange(400) % 90),
    (SmoothSensitivity(MedianDeviation(), 1, Bounds(0, 10), "0.1"), np.array([0.5, 2.0, 3.0])),
    (SmoothSensitivity(TrimmedMean("0.2"), 1, Bounds(0, 10), neighbours="replace"), np.array([0.5, 2.0, 3.0])),
    (mode(1, "1e-6"), ["a"] * 60 + ["b"]),
    (SubsampledRelease(len, 1, "1e-6", 40, "0.01", 4), np.zeros(10)),
    (Centre(Bounds(0, 10), 1, 5, 2), np.arange(10)),
    (Centre((Bounds(0, 10), Bounds(0, 1)), 1, 30, delta="1e-6", method="mean"), np.ones((30, 2))),
    (Vote(("a", "b"), 1, 4), ["a", "b", None, "a"]),
    (Agreement(1, "1e-6", 100), ["a"] * 100),
    (SparseVector.for_epsilon(1, 5, 2), np.array([0, 10, 3, 20, 7])),
    (SparseVector.for_epsilon(1, 5, 1, value_share="0.3"), np.array([0, 10, 3, 20, 7])),
]
IDS = [f"{type(m).__name__}-{i}" for i, (m, _) in enumerate(EACH)]
each = pytest.mark.parametrize(("mechanism", "data"), EACH, ids=IDS)


@each
def test_it_keeps_the_protocol_and_cannot_be_changed(mechanism: Any, data: object) -> None:
    assert isinstance(mechanism, Mechanism)
    with pytest.raises(FrozenInstanceError):
        setattr(mechanism, fields(mechanism)[0].name, 1)


@each
def test_a_release_carries_the_loss_of_its_stored_events(mechanism: Any, data: object) -> None:
    release = mechanism.release(data)
    revived = tuple(from_json(to_json(event)) for event in release.events)
    assert revived == mechanism.events
    assert release.loss == mechanism.loss
    if isinstance(mechanism.loss, PureDP):
        assert pure(revived[0]) == mechanism.loss


@each
def test_only_the_system_generator_makes_private_releases(mechanism: Any, data: object) -> None:
    assert mechanism.release(data).private
    seeded = [mechanism.release(data, entropy=Entropy.for_tests(7)) for _ in range(2)]
    assert not seeded[0].private
    assert str(seeded[0].values) == str(seeded[1].values)


@each
def test_equal_parameters_make_equal_mechanisms(mechanism: Any, data: object) -> None:
    twin = type(mechanism)(**{f.name: getattr(mechanism, f.name) for f in fields(mechanism)})
    assert twin == mechanism
    assert hash(twin) == hash(mechanism)
    assert twin.events == mechanism.events


class Spy(Entropy):
    """Counts what is drawn."""

    drawn = 0

    def fill(self, out: Any) -> None:
        self.drawn += out.size
        super().fill(out)


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (Laplace.for_epsilon(1), 0.5),
        (Laplace.for_epsilon(1), [1, 2]),
        (Laplace.for_epsilon(1), "text"),
        (Laplace.for_epsilon(1), None),
        (Laplace.for_epsilon(1, dimension=2), np.array([1.0, 2.0])),
        (Laplace.for_epsilon(1, real=True), np.array([1 + 2j])),
        (Gaussian.for_zcdp(1), 0.5),
        (Gaussian.for_zcdp(1), [1, 2]),
        (Staircase(1, 1), [1, 2]),
        (NeighbourSet(1, (2, 5)), [1, 2]),
        (NeighbourSet(1, (2, 5)), 0.5),
        (NeighbourSet(1, ((1, 2),), dimension=2), 3),
        (RandomizedResponse(Fraction(2, 3)), ["yes"]),
        (Exponential(1), []),
        (Exponential(1), [0.5]),
        (NoisyMax(1), [[1, 2]]),
        (PermuteAndFlip(1), 3),
        (Quantile("0.5", 1, Bounds(0, 10)), "text"),
        (Quantiles(("0.5",), 1, Bounds(0, 10)), ["a"]),
        (SparseVector.for_epsilon(1, 0), ["a"]),
        (Scale(1, "1e-6", Bounds(0, 10)), ["a"]),
        (SmoothSensitivity(OrderStatistic(), 1, Bounds(0, 10)), "text"),
        (ProposeTestRelease(OnLine(OrderStatistic(), Bounds(0, 10)), 2, 1, "1e-6"), ["a"]),
    ],
    ids=lambda value: str(value)[:24],
)
def test_data_of_the_wrong_kind_is_refused_before_anything_is_drawn_for_it(mechanism: Any, data: object) -> None:
    spy = Spy()
    with pytest.raises(InvalidArgument) as caught:
        mechanism.release(data, entropy=spy)
    assert caught.value.bound in str(caught.value)
    assert spy.drawn == 0


BAD = [float("nan"), float("inf"), -1, 0, None, "much", True, 1j, [1]]


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize(
    ("argument", "build"),
    [
        ("epsilon", lambda bad: Laplace.for_epsilon(bad)),
        ("sensitivity", lambda bad: Laplace.for_epsilon(1, bad)),
        ("scale", lambda bad: Laplace(bad, 1)),
        ("dimension", lambda bad: Laplace.for_epsilon(1, dimension=bad)),
        ("epsilon", lambda bad: Gaussian.for_approx(bad, 1e-6)),
        ("delta", lambda bad: Gaussian.for_approx(1, bad)),
        ("squared_sensitivity", lambda bad: Gaussian.for_approx(1, 1e-6, bad)),
        ("rho", lambda bad: Gaussian.for_zcdp(bad)),
        ("sigma", lambda bad: Gaussian(bad, 1)),
        ("epsilon", lambda bad: Staircase(bad, 1)),
        ("sensitivity", lambda bad: Staircase(1, bad)),
        ("epsilon", lambda bad: NeighbourSet(bad, (1, 2))),
        ("truth", lambda bad: RandomizedResponse(bad)),
        ("epsilon", lambda bad: RandomizedResponse.for_epsilon(bad)),
        ("categories", lambda bad: RandomizedResponse.for_epsilon(1, bad)),
        ("epsilon", lambda bad: Exponential(bad)),
        ("sensitivity", lambda bad: NoisyMax(1, bad)),
        ("epsilon", lambda bad: PermuteAndFlip(bad)),
        ("epsilon", lambda bad: Quantile("0.5", bad, Bounds(0, 10))),
        ("epsilon", lambda bad: Quantiles(("0.5",), bad, Bounds(0, 10))),
        ("epsilon", lambda bad: SparseVector.for_epsilon(bad, 10)),
        ("positives", lambda bad: SparseVector.for_epsilon(1, 10, bad)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_parameters_are_refused_by_name(argument: str, build: Callable[[Any], Any], bad: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        build(bad)
    assert caught.value.argument == argument
    assert all(part in str(caught.value) for part in (argument, caught.value.bound, caught.value.remedy))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Laplace(Fraction(2) ** 61, 1),
        lambda: Laplace(Fraction(1, 2**61), 1),
        lambda: Laplace.for_epsilon(Fraction(1, 2**70)),
        lambda: Gaussian(Fraction(2) ** 61, 1),
        lambda: Gaussian.for_approx(1, 1),
        lambda: Gaussian.for_approx(1, 2),
        lambda: Gaussian.for_approx(2, "1e-6", classic=True),
        lambda: NeighbourSet(Fraction(1, 2**61), (1, 2)),
        lambda: NeighbourSet(1, (1, 2**61)),
        lambda: RandomizedResponse(Fraction(1, 2)),
        lambda: RandomizedResponse(Fraction(1, 4), 4),
        lambda: RandomizedResponse.for_epsilon(1, 1),
        lambda: Exponential(Fraction(1, 2**70)),
        lambda: SparseVector.for_epsilon(1, 0.5),
        lambda: SparseVector.for_epsilon(1, 5, value_share=1),
        lambda: Laplace.for_epsilon(1).accuracy(0),
        lambda: Laplace.for_epsilon(1).accuracy(0.05, size=0),
        lambda: Laplace.for_epsilon(1).release(1).intervals(1),
        lambda: Gaussian.for_zcdp(1).accuracy(1),
        lambda: RandomizedResponse(Fraction(3, 4)).estimate([2]),
    ],
)
def test_parameters_out_of_reach_are_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(InvalidArgument):
        build()


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace.for_epsilon(1),
        Laplace.for_epsilon(1, real=True),
        Gaussian.for_zcdp(1),
        RandomizedResponse(Fraction(3, 4)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_empty_in_empty_out(mechanism: Any) -> None:
    assert np.asarray(mechanism.release(np.array([])).values).size == 0
    assert np.asarray(mechanism.release([]).values).shape == (0,)

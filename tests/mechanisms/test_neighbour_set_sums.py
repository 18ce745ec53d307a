"""Sums of reals: however they are made, one record moves the noise by one shell at most."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

from discreet import InvalidArgument
from discreet.mechanisms import NeighbourSet
from discreet.mechanisms.additive import to_steps
from discreet.mechanisms.neighbour_set import Total
from discreet.noise import Entropy
from discreet.noise.neighbour_sets.line import Line, LineShells

Steps = tuple[int, ...]


def by_total(mechanism: NeighbourSet, records: Any) -> Steps:
    return mechanism.total(records).steps


def in_doubles(add: Callable[[Any], Any]) -> Callable[[NeighbourSet, Any], Steps]:
    """What the caller adds up, as `release` puts it on the grid."""

    def path(mechanism: NeighbourSet, records: Any) -> Steps:
        rows = mechanism.nearest(records).reshape(-1, mechanism.dimension)
        sums = np.array([float(add(column)) for column in rows.T])
        return tuple(to_steps(sums, mechanism.grid, True, mechanism.dimension).tolist())

    return path


DOUBLES = {"numpy": in_doubles(np.sum), "fsum": in_doubles(math.fsum), "one by one": in_doubles(sum)}
PATHS = {"total": by_total, **DOUBLES}


def allowed(mechanism: NeighbourSet, move: Steps) -> bool:
    """Whether the noise counts this move as one step, or as none."""
    space = mechanism.space
    if isinstance(space, Line):
        size, rest = divmod(abs(move[0]), space.unit)
        return rest == 0 and (size == 0 or any(low <= size <= high for low, high in space.parts))
    if any(step % unit for step, unit in zip(move, space.units, strict=True)):
        return False
    points = [[sign * step // unit for step, unit in zip(move, space.units, strict=True)] for sign in (1, -1)]
    inside = [
        all(low <= step <= high for step, (low, high) in zip(point, box, strict=True))
        for point in points
        for box in space.boxes
    ]
    return not any(move) or any(inside)


def change(shells: LineShells, move: int) -> int:
    """The most shells by which a move changes any number; shells are intervals, so looking at their ends is enough."""
    edges = np.concatenate([shells.starts, shells.starts + shells.lengths])
    edges = np.concatenate([edges, -edges])
    places = np.concatenate([edges + near for near in (-1, 0, 1)])
    places = np.concatenate([places, places - move])
    return int(np.abs(shells.level(places + move) - shells.level(places)).max())


def moved(path: Callable[[NeighbourSet, Any], Steps], mechanism: NeighbourSet, one: Any, other: Any) -> Steps:
    return tuple(b - a for a, b in zip(path(mechanism, one), path(mechanism, other), strict=True))


HALF = 5.722045898437499e-06
"""One unit in the last place below one and a half steps of the grid of 4: with 4 more it is rounded to the half."""


@pytest.mark.parametrize("path", PATHS)
def test_a_half_step_that_doubles_cannot_hold_moves_one_shell(path: str) -> None:
    mechanism = NeighbourSet(1, ((0, "0.25"), 4), real=True)
    (move,) = moved(PATHS[path], mechanism, [HALF], [HALF, 4.0])
    assert move == (1048576 if path == "total" else 1048577)
    assert mechanism.shells.unit == 1
    assert change(mechanism.shells, move) == 1
    # Without room the same sum of doubles costs twice as much, and a total does not.
    bare = NeighbourSet(1, ((0, "0.25"), 4), real=True, exact_sums=True)
    assert change(bare.shells, move) == (1 if path == "total" else 2)


def test_a_record_of_0_can_move_a_sum_of_doubles() -> None:
    mechanism, bare = (NeighbourSet(4, (0, "0.3", 4), real=True, exact_sums=exact) for exact in (False, True))
    step, source = float(mechanism.grid.step), np.random.default_rng(1)
    found = 0
    for _ in range(400):
        # Seven doubles are added one by one, eight in pairs.
        records = source.uniform(0, 4, 6)
        records = np.append(records, (np.floor(records.sum() / step) + 1.5) * step - records.sum())
        steps = [int(mechanism.grid.steps(np.sum(some))) for some in (records, np.append(records, 0.0))]
        move = steps[1] - steps[0]
        assert allowed(mechanism, (move,))
        found += not allowed(bare, (move,))
    assert found > 10


@st.composite
def numbers(draw: st.DrawFn) -> Any:
    number = draw(st.one_of(st.integers(0, 8).map(Fraction), st.fractions(-8, 8, max_denominator=1000)))
    return number if draw(st.booleans()) else (number, number + draw(st.fractions(0, 2, max_denominator=64)))


@st.composite
def worlds(draw: st.DrawFn, dimension: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Declared values, and neighbours whose records lie near half steps."""
    value = numbers() if dimension == 1 else st.tuples(numbers(), numbers())
    declared = draw(st.lists(value, min_size=1, max_size=3))
    settled = {
        "values": (8, *declared) if dimension == 1 else ((8, 8), *declared),
        "dimension": dimension,
        "neighbours": draw(st.sampled_from(["add_remove", "replace"])),
    }
    if settled["neighbours"] == "replace":
        settled["values"] += (3,) if dimension == 1 else ((3, 5),)
    step = NeighbourSet(4, **settled, real=True).grid.step

    def record() -> float:
        target = (
            Fraction(draw(st.integers(-(8 << 20), 8 << 20)) * 2 + 1, 2) * step / draw(st.sampled_from([1, 1 << 19]))
        )
        double = float(target)
        for _ in range(draw(st.integers(0, 2))):
            double = float(np.nextafter(double, draw(st.sampled_from([-np.inf, np.inf]))))
        return draw(st.sampled_from([double, 8.0, 3.0]))

    rows = draw(st.integers(1, 12))
    one = np.array([[record() for _ in range(dimension)] for _ in range(rows)])
    added = np.array([[record() for _ in range(dimension)]])
    kept = one[1:] if settled["neighbours"] == "replace" else one
    other = np.concatenate([kept, added])[draw(st.permutations(range(len(kept) + 1)))]
    return settled, *((one, other) if dimension == 2 else (one[:, 0], other[:, 0]))


@pytest.mark.parametrize("dimension", [1, 2])
@settings(max_examples=third(60), deadline=None)
@given(data=st.data())
def test_neighbours_differ_by_a_value_however_they_are_added_up(dimension: int, data: st.DataObject) -> None:
    settled, one, other = data.draw(worlds(dimension))
    mechanism, exact = (NeighbourSet(8, **settled, real=True, exact_sums=exact) for exact in (False, True))
    for path in PATHS.values():
        assert allowed(mechanism, moved(path, mechanism, one, other))
    assert allowed(exact, moved(by_total, exact, one, other))


SEARCHED: list[tuple[dict[str, Any], Any, Any]] = [
    ({"values": ((0, "0.25"), 4)}, [], [4.0]),
    ({"values": (("0.125", "0.25"), 4)}, [], [4.0]),
    ({"values": ((0, "0.25"), 4), "neighbours": "replace"}, [0.0], [4.0]),
    ({"values": (((0, "0.25"), 0), (4, 0), (0, 1)), "dimension": 2}, [], [[4.0, 0.0]]),
    (
        {"values": ((0, (0, "0.25")), (0, 4), (1, 1)), "dimension": 2, "neighbours": "replace"},
        [[0.0, 0.0]],
        [[0.0, 4.0]],
    ),
]
"""Declared values, and a record that is there in one of the neighbours and what is in its place in the other."""


@pytest.mark.parametrize(("settled", "gone", "come"), SEARCHED, ids=lambda value: str(value)[:70])
def test_without_room_the_search_finds_sums_of_doubles_that_break_it(settled: Any, gone: Any, come: Any) -> None:
    mechanism, bare = (NeighbourSet(8, **settled, real=True, exact_sums=exact) for exact in (False, True))
    step, source = float(mechanism.grid.step), np.random.default_rng(2)
    quarter = int(0.25 / step)
    caught = 0
    for _ in range(100):
        near = (int(source.integers(quarter // 2, quarter)) + 0.5) * step
        for _ in range(int(source.integers(0, 3))):
            near = float(np.nextafter(near, source.choice([0.0, 1.0])))
        axis = int(np.flatnonzero(np.ravel(come) == 4)[0])
        kept = [near] if mechanism.dimension == 1 else [[near * (axis == place) for place in (0, 1)]]
        one, other = np.array(kept + gone), np.array(kept + come)
        for path in DOUBLES.values():
            move = moved(path, mechanism, one, other)
            assert allowed(mechanism, move)
            caught += not allowed(bare, move)
        assert allowed(bare, moved(by_total, bare, one, other))
    assert caught > 10


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_no_step_of_a_pair_raises_the_shell_by_two(exact: bool, neighbours: Any) -> None:
    values = ((0, ("0.25", "0.5")), (4, 0))
    mechanism = NeighbourSet(6, values, neighbours=neighbours, dimension=2, real=True, exact_sums=exact)
    assert mechanism.shells.steepest() == 1


def test_totals_are_exact() -> None:
    whole = NeighbourSet(1, (-7, 2**59, 2**60))
    records = [2**60] * 40 + [2**59] * 3 + [-7] * 5
    assert whole.total(records).steps == (40 * 2**60 + 3 * 2**59 - 35,)
    assert abs(int(whole.release(whole.total(records)).values)) <= 2**62
    real = NeighbourSet(1, (("-0.3", "0.7"), 5), real=True)
    source = np.random.default_rng(3)
    doubles = np.append(source.uniform(-0.3, 0.7, 5000), [4.9, np.nan, np.inf])
    truth = sum(map(Fraction, real.nearest(doubles).tolist()))
    (steps,) = real.total(doubles).steps
    assert abs(steps - truth / real.grid.step) <= Fraction(1, 2) + Fraction(5003, 2**41)
    assert real.total([]).steps == (0,)
    pair = NeighbourSet(1, ((0, (1, 3)), (5, 0)), dimension=2, real=True)
    assert [step * pair.grid.step for step in pair.total([[0, 2.5], [5, 0], [0, 1]]).steps] == [5, Fraction(7, 2)]


@pytest.mark.parametrize(
    ("settled", "records"),
    [
        ({"values": (0, 3, 40)}, [3, 40, 40, 1]),
        ({"values": ((0, "0.25"), 4), "real": True, "exact_sums": True}, [0.1, 3.9, 4.0]),
        ({"values": ((0, "0.5"), (2, 0)), "real": True, "dimension": 2, "exact_sums": True}, [[0, 0.5], [2, 0]]),
    ],
    ids=["whole", "real", "pair"],
)
def test_totals_are_released_within_their_accuracy(settled: dict[str, Any], records: Any) -> None:
    mechanism = NeighbourSet(2, **settled)
    truth = np.asarray(mechanism.nearest(records)).sum(axis=0)
    release = mechanism.release(mechanism.total(records), entropy=Entropy.for_tests(4))
    assert np.shape(release.values) == np.shape(truth)
    assert np.all(np.abs(release.values - truth) <= mechanism.accuracy("1e-12"))
    assert release.loss == mechanism.loss


def test_what_is_no_total_of_these_values_is_refused() -> None:
    exact = NeighbourSet(1, ((0, "0.25"), 4), real=True, exact_sums=True)
    other = NeighbourSet(1, ((0, "0.5"), 4), real=True)
    for data in (4.0, 4, [4.0], other.total([4.0]), Total((1,), exact.values, NeighbourSet(1, (4,)).grid)):
        with pytest.raises(InvalidArgument) as caught:
            exact.release(data)
        assert caught.value.argument == "data"
    # The same values with another ε may share a total, whose steps are not shown.
    total = exact.total([4.0, 4.0])
    assert NeighbourSet(3, ((0, "0.25"), 4), real=True).release(total).private
    assert "2097152" not in repr(total)

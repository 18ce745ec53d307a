"""Shells on the line and in the plane are those of a plain search, and no step of V changes a shell by more than 1."""

from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

from discreet import InvalidArgument
from discreet.noise.neighbour_sets import line as module
from discreet.noise.neighbour_sets.line import Line, magnitudes
from discreet.noise.neighbour_sets.plane import Plane

parts_of_the_line = st.lists(
    st.tuples(st.integers(-30, 30), st.sampled_from([0, 0, 0, 1, 6])).map(lambda part: (part[0], part[0] + part[1])),
    min_size=1,
    max_size=4,
).filter(lambda parts: any(part != (0, 0) for part in parts))
sides = st.tuples(st.integers(-4, 4), st.sampled_from([0, 0, 1, 2])).map(lambda side: (side[0], side[0] + side[1]))
boxes_of_the_plane = st.lists(st.tuples(sides, sides), min_size=1, max_size=3).filter(
    lambda boxes: all(any(box[axis] != (0, 0) for box in boxes) for axis in (0, 1))
)


def steps_of(parts: Any) -> set[int]:
    return {sign * v for low, high in parts for v in range(low, high + 1) for sign in (1, -1)}


def searched(steps: Any, start: set[Any], add: Any, levels: int) -> dict[Any, int]:
    """Level by level, one point and one step at a time."""
    found = dict.fromkeys(start, 0)
    edge = set(start)
    for level in range(1, levels + 1):
        edge = {add(x, v) for x in edge for v in steps} - found.keys()
        found |= dict.fromkeys(edge, level)
    return found


def reference(line: Line, delta: int, closing: int) -> dict[int, int]:
    return searched(steps_of(line.parts), set(range(-delta, delta + 1)), lambda x, v: x + v, closing)


@settings(max_examples=third(150), deadline=None)
@given(parts_of_the_line, st.integers(0, 6), st.integers(0, 7))
def test_shells_on_the_line_are_those_of_a_plain_search(parts: Any, levels: int, delta: int) -> None:
    line = Line.of(parts, levels)
    closing, longest = line.levels, line.longest
    assert closing == levels or line.filled
    found = reference(line, delta, closing)
    shells = line.shells(delta, closing)
    hull = closing * longest + delta
    places = np.arange(-hull - 3 * longest, hull + 3 * longest + 1)
    closed = [
        found.get(x, closing + 1) if abs(x) <= hull else closing + 1 + (abs(x) - hull - 1) // longest
        for x in places.tolist()
    ]
    assert shells.level(places).tolist() == closed
    for level, size in enumerate(shells.sizes):
        placed = shells.place(np.full(size, level), np.arange(size))
        within = [x * line.unit for x, own in zip(places.tolist(), closed, strict=True) if own == level]
        assert sorted(placed.tolist()) == [x for x in within if abs(x) <= hull * line.unit]


@settings(max_examples=third(150), deadline=None)
@given(parts_of_the_line, st.integers(0, 9), st.integers(0, 12), st.data())
def test_no_step_changes_a_shell_by_more_than_one(parts: Any, levels: int, delta: int, data: Any) -> None:
    line = Line.of(parts, levels)
    shells = line.shells(delta, data.draw(st.integers(0, line.levels)))
    reach = shells.hull + 5 * line.longest
    here = np.arange(-reach, reach + 1)
    steepest = max(int(np.abs(shells.level(here + v // line.unit) - shells.level(here)).max()) for v in steps_of(parts))
    assert steepest == shells.steepest() == 1


def test_a_step_outside_of_the_set_is_seen_as_steep() -> None:
    honest = Line.of([(1, 1), (10, 10)], 6).shells(0, 6)
    tampered = Line.of([(1, 1), (10, 10), (24, 24)], 6).shells(0, 6)
    assert honest.steepest() == tampered.steepest() == 1
    object.__setattr__(honest, "parts", ((1, 1), (5, 5), (10, 10)))
    assert honest.steepest() > 1


@settings(max_examples=third(60), deadline=None)
@given(boxes_of_the_plane, st.integers(0, 4), st.integers(0, 5), st.sampled_from([1, 2]))
def test_shells_in_the_plane_are_those_of_a_plain_search(boxes: Any, levels: int, delta: int, norm: int) -> None:
    plane = Plane.of(boxes, levels, norm)
    assert plane.levels == levels
    steps = {
        (sign * x, sign * y)
        for across, up in plane.boxes
        for x in range(across[0], across[1] + 1)
        for y in range(up[0], up[1] + 1)
        for sign in (1, -1)
    }
    g, h = plane.units
    square = range(-delta, delta + 1)
    ball = {(x, y) for x in square for y in square if abs(g * x) ** norm + abs(h * y) ** norm <= delta**norm}
    found = searched(steps, ball, lambda x, v: (x[0] + v[0], x[1] + v[1]), levels)
    shells = plane.shells(delta, levels)
    inside = [point for point, level in found.items() if level <= levels]
    assert shells.level(inside).tolist() == [found[point] for point in inside]
    assert shells.steepest() == 1
    listed = []
    for level, size in enumerate(shells.sizes):
        points = shells.place(np.full(size, level), np.arange(size)) // np.array(plane.units)
        assert set(shells.level(points).tolist()) <= {level}
        listed += [tuple(point) for point in points.tolist()]
    assert len(set(listed)) == len(listed) >= len(found)
    for p in (1, 2):
        profile = plane.profile(delta, p)
        for level in range(levels + 1):
            near = [point for point, own in found.items() if own <= level]
            assert profile.sizes[level] == len(near)
            assert profile.moments[level] == pytest.approx(sum(abs(g * x) ** p + abs(h * y) ** p for x, y in near))


@settings(max_examples=third(100), deadline=None)
@given(parts_of_the_line, st.integers(0, 6), st.integers(0, 7), st.sampled_from([1, 2]))
def test_profiles_count_what_is_within_so_many_steps(parts: Any, levels: int, delta: int, p: int) -> None:
    line = Line.of(parts, levels)
    found = reference(line, delta, line.levels)
    profile = line.profile(delta, p)
    for level in range(line.levels + 1):
        near = [x * line.unit for x, own in found.items() if own <= level]
        assert profile.sizes[level] == len(near)
        assert profile.moments[level] == pytest.approx(sum(abs(x) ** p for x in near))


def test_shells_need_not_become_whole_intervals() -> None:
    found = searched({2, -2, 5, -5}, {0}, lambda x, v: x + v, 40)
    for level in range(10, 40):
        right = {x for x, own in found.items() if own == level and x > 0}
        assert right == {5 * level - gap for gap in (0, 3, 6, 7, 9)}


@settings(max_examples=third(40), deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(0, 3))
def test_far_out_every_number_is_one_longest_step_after_another(values: list[int], delta: int) -> None:
    divisor = gcd(*values)
    steps = {sign * v // divisor for v in values for sign in (1, -1)}
    longest = max(steps)
    far = delta + longest**2
    found = searched(steps, set(range(-delta, delta + 1)), lambda x, v: x + v, 3 * longest + 4)
    assert all(found[x] == found[x - longest] + 1 for x in range(far + 1, far + 2 * longest + 1))


def test_steps_are_counted_in_units_of_their_divisor() -> None:
    assert Line.of([(0, 0), (-500, -500), (10_000, 10_000)], 3).unit == 500
    assert Line.of([(500, 501), (10_000, 10_000)], 3).unit == 1
    assert Plane.of([((4, 4), (-9, -9)), ((6, 6), (0, 0))], 2).units == (2, 9)


def test_nothing_is_missing_once_gaps_are_filled() -> None:
    line = Line.of([(0, 1), (10, 11)], 1000)
    assert line.filled
    assert line.levels == 9
    assert Line.of([(0, 7)], 1000).levels == 1


@pytest.mark.parametrize("parts", [[(0, 0)], [], [(1, 2**60 + 1)], [(3 * i, 3 * i) for i in range(1, 5000)]])
def test_steps_out_of_reach_are_refused(parts: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        magnitudes(parts)
    assert caught.value.argument == "values"


def test_too_many_shells_are_closed_early_or_refused_with_an_estimate() -> None:
    wide = [(1, 1), (10**9, 10**9)]
    line = Line.of(wide, 10**6, work=10**5)
    assert 0 < line.levels < 10**4
    assert line.shells(5, line.levels).steepest() == 1
    with pytest.raises(InvalidArgument, match="intervals") as caught:
        Line.of(wide, 10**6, work=10**5, strict=True)
    assert caught.value.argument == "levels"
    with pytest.raises(InvalidArgument, match="points"):
        Plane.of([((1, 1), (0, 0)), ((90, 90), (90, 90))], 10**6, strict=True)
    with pytest.raises(InvalidArgument, match="coarser"):
        Plane.of([((10**6, 10**6), (10**6, 10**6)), ((1, 1), (1, 1))], 3)
    with pytest.raises(InvalidArgument, match="both numbers"):
        Plane.of([((1, 1), (0, 0))], 3)


def test_many_parts_are_spread_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 10_000)
    values = np.unique(np.random.default_rng(1).integers(1, 10**6, 300)).tolist()
    line = Line.of([(v, v) for v in values], 2)
    twice = {abs(a + sign * b) for a in values for b in values for sign in (1, -1)} | set(values) | {0}
    assert int(line.profile(0, 1).sizes[2]) == 2 * len(twice) - 1


def test_the_widest_steps_stay_within_int64() -> None:
    line = Line.of([(1, 1), (2**60, 2**60)], 10)
    assert line.levels == 2
    shells = line.shells(3, 2)
    assert shells.hull == 2**61 + 3
    assert shells.level([2**60 + 4, 2**61 + 3, 2**61 + 4, 3 * 2**60 + 4]).tolist() == [2, 2, 3, 4]
    assert Fraction(sum(shells.sizes)) == 2 * shells.hull + 1

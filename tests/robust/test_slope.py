"""The slope's distance vouches for its bound on all small data sets and moves by at most 1; wrong ones are caught."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from discreet import ApproxDP, Bounds, InvalidArgument
from discreet.adversary import audit
from discreet.noise import Entropy
from discreet.robust import ProposeTestRelease, Slope, Unstable
from discreet.robust import slope as module

Rows = tuple[tuple[int, int], ...]
POINTS = tuple(product((0, 2, 3), (0, 1)))
MOST = 5
ORACLE = Slope(Bounds(0, 3), Bounds(0, 1))
BOUNDS = (Fraction(1, 80), Fraction(1, 20), Fraction(1, 10), Fraction(1))
LEVEL: Rows = ((0, 0), (0, 1), (3, 0), (3, 1)) * 10
LARGER: list[Rows] = [((0, 0), (2, 1)) * 20, ((0, 1), (2, 0), (2, 1)) * 12, LEVEL]
"""More than can be listed, with the neighbours that are worst: at the corners."""


@cache
def every() -> list[Rows]:
    """All multisets of up to MOST points, and some larger ones."""
    small = [rows for size in range(MOST + 1) for rows in combinations_with_replacement(POINTS, size)]
    return small + [tuple(sorted(rows)) for rows in LARGER]


def neighbours(rows: Rows, relation: str) -> Iterator[Rows]:
    """With one point more or less, or with one exchanged."""
    without = {rows[:i] + rows[i + 1 :] for i in range(len(rows))}
    if relation == "add_remove":
        yield from without
        yield from (tuple(sorted((*rows, new))) for new in POINTS)
    else:
        yield from {tuple(sorted((*rest, new))) for rest in without for new in POINTS} - {rows}


def broken_promises(relation: Any, bound: Fraction, oracle: Slope = ORACLE) -> tuple[int, int]:
    """How many pairs have slopes too far apart, or distances more than 1 apart; and the largest distance."""

    @cache
    def found(rows: Rows) -> Any:
        return oracle.propose(np.array(rows), bound, 12, relation)

    wrong = 0
    for rows in every():
        for other in neighbours(rows, relation):
            a, b = found(rows), found(other)
            wrong += abs(a.distance - b.distance) > 1
            wrong += max(a.distance, b.distance) >= 1 and abs(a.value - b.value) > a.steps
    return wrong, max(found(rows).distance for rows in every())


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_distances_hold_on_every_small_data_set(relation: str, bound: Fraction) -> None:
    wrong, largest = broken_promises(relation, bound)
    assert wrong == 0
    assert largest >= 1 or (relation, bound) == ("replace", BOUNDS[0])


def flat(places: Any, top: int) -> int:
    """The farthest value as if data were in the middle."""
    return top * module.FINE // 2


def unchanged(x: Any, limit: int) -> Iterator[int]:
    """The variation as if no record could be taken away."""
    kept = [*module_variations(x, 1), 0, 0]
    return iter([int(((x - x.mean()) ** 2).sum()) if x.size else 0, *kept][:limit])


def generous(x: Any, limit: int) -> Iterator[int]:
    """The variation of the data itself, however far away."""
    return iter([int(((x - x.mean()) ** 2).sum()) if x.size else 0] * limit)


module_variations = module._variations


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("_farthest", flat), ("_variations", generous), ("_variations", unchanged), ("_up", lambda slope: 0)],
    ids=["means in the middle", "the variation stays", "the variation one record late", "as if the slope were 0"],
)
def test_wrong_distances_are_caught(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, wrong)
    assert any(broken_promises(relation, bound)[0] for relation in ("add_remove", "replace") for bound in BOUNDS)


def test_replacing_counts_twice() -> None:
    """What holds for a record more or less does not for one exchanged."""

    class Once(Slope):
        def propose(self, data: Any, bound: Any, limit: int, relation: Any) -> Any:
            return super().propose(data, bound, limit, "add_remove")

    wrong = Once(Bounds(0, 3), Bounds(0, 1))
    assert broken_promises("replace", BOUNDS[0], wrong)[0]


def test_the_least_variation_is_that_of_the_worst_records_to_lose() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 8):
        x = rng.integers(0, 50, size)
        for k, found in enumerate(module._variations(x, 9), start=1):
            kept = list(combinations(x.tolist(), max(0, size - k)))
            least = min(len(one) * sum(v * v for v in one) - sum(one) ** 2 for one in kept) // max(1, size - k)
            assert found == (least if size - k >= 2 else 0)


def test_many_records_are_added_up_exactly() -> None:
    """Places at the ends of the line: the sums that come nearest to 63 bits."""
    x = np.repeat([0, 1 << module.PLACES], 1 << 12)
    held = list(module._variations(x, 3))
    size = x.size
    half = size // 2
    for k, found in enumerate(held, start=1):
        assert found == ((half * (half - k)) << 2 * module.PLACES) // (size - k)
    assert module._slope(x, x) == 1


def lines(size: int, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(50, 10, size)
    return np.stack([x, 3 * x + rng.normal(0, 20, size)], axis=1)


@pytest.mark.parametrize(("relation", "bound"), [("add_remove", "0.006"), ("replace", "0.012")])
def test_slopes_of_calm_data_come_out_near_the_truth(relation: Any, bound: str) -> None:
    mechanism = ProposeTestRelease(Slope(Bounds(0, 100), Bounds(-50, 350)), bound, 1, "1e-6", relation)
    assert mechanism.loss == ApproxDP(1, "1e-6")
    data = lines(40_000)
    found = mechanism.release(data, entropy=Entropy.for_tests(3))
    truth = np.polyfit(*data.T, 1)[0]
    assert abs(found.values - truth) < mechanism.accuracy("1e-3") + 1e-4
    assert isinstance(mechanism.release(data[:4000]).values, Unstable)


@pytest.mark.parametrize(
    "data",
    [
        [],
        [[1, 2]],
        [[3, 1]] * 500,
        [[3, y] for y in range(60)],
        [[float("nan"), float("inf")]] * 50,
        [[None, "x"], [10**400, -(10**400)]],
        np.zeros((0, 2)),
    ],
    ids=["nothing", "one record", "constant", "constant x", "no numbers", "odd", "an empty array"],
)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_tiny_and_odd_data_is_unstable(data: Any, relation: Any) -> None:
    mechanism = ProposeTestRelease(Slope(Bounds(0, 100), Bounds(0, 100)), 1, 1, "1e-12", relation)
    assert isinstance(mechanism.release(data).values, Unstable)


def test_ties_and_values_at_the_ends_are_no_trouble() -> None:
    data = np.array([[0, 0], [100, 100]] * 2000)
    mechanism = ProposeTestRelease(Slope(Bounds(0, 100), Bounds(0, 100)), "0.01", 1, "1e-6")
    assert abs(mechanism.release(data, entropy=Entropy.for_tests(0)).values - 1) < mechanism.accuracy("1e-6")
    flat = np.array([[0, 7], [100, 7]] * 2000)
    assert abs(mechanism.release(flat, entropy=Entropy.for_tests(0)).values) < mechanism.accuracy("1e-6")


BOUNDARY = [[0, 0]] * 5 + [[4, 1]] * 5
"""The bound below fails two records away: the test passes by chance."""


@pytest.mark.parametrize("moved", [BOUNDARY[1:], [*BOUNDARY, [4, 0]]], ids=["one less", "one far off"])
def test_the_auditor_finds_nothing_on_the_boundary(moved: list[list[int]]) -> None:
    mechanism = ProposeTestRelease(Slope(Bounds(0, 4), Bounds(0, 1)), "0.15", 3, "0.05")
    far = [mechanism.oracle.propose(rows, mechanism.bound, 99, "add_remove").distance for rows in (BOUNDARY, moved)]
    assert far[0] == 2
    assert 0.1 < float(mechanism.test.chance(2)) < 0.9
    assert abs(far[0] - far[1]) <= 1

    def run(rows: Any) -> float:
        value = mechanism.release(rows).values
        return -1000.0 if isinstance(value, Unstable) else value

    found = audit(run, BOUNDARY, moved, samples=1500, delta="0.05")
    assert not found.violates(mechanism.loss), str(found)


def test_a_bound_without_a_test_is_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two records at one x, and a third far off that turns the line: noise for a small bound tells."""
    monkeypatch.setattr(Slope, "_distance", lambda *arguments: 99)
    mechanism = ProposeTestRelease(Slope(Bounds(0, 4), Bounds(0, 1)), "0.01", 1, "1e-3")
    calm, turned = [[0, 0], [1, 0]], [[0, 0], [1, 0], [4, 1]]
    found = audit(lambda rows: mechanism.release(rows).values, calm, turned, samples=1000, delta="1e-3")
    assert found.violates(mechanism.loss), str(found)


@pytest.mark.parametrize("data", [[1, 2, 3], [[1, 2, 3]], np.zeros((4, 1)), np.zeros((2, 2, 2))], ids=str)
def test_other_shapes_are_refused(data: Any) -> None:
    with pytest.raises(InvalidArgument, match="two columns"):
        ProposeTestRelease(Slope(Bounds(0, 1), Bounds(0, 1)), 1, 1, "1e-6").release(data)


@pytest.mark.parametrize(("x", "y"), [(3, Bounds(0, 1)), (Bounds(0, 1), (0, 1)), (Bounds(2, 2), Bounds(0, 1))], ids=str)
def test_bounds_must_be_declared(x: Any, y: Any) -> None:
    with pytest.raises(InvalidArgument, match="bounds"):
        Slope(x, y)

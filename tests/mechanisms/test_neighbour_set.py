"""The neighbour-set mechanism: which neighbours it protects, how numbers meet its grid, what it says of its error."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

from discreet import InvalidArgument, PureDP
from discreet.adversary import Comparison
from discreet.core.events import Pure
from discreet.mechanisms import NeighbourSet, Staircase
from discreet.mechanisms.additive import END
from discreet.noise import Entropy

WHOLE = st.lists(
    st.one_of(
        st.integers(-40, 40),
        st.tuples(st.integers(-40, 40), st.integers(0, 9)).map(lambda part: (part[0], part[0] + part[1])),
    ),
    min_size=1,
    max_size=4,
).filter(lambda values: any(value not in (0, (0, 0)) for value in values))


def listed(values: Any) -> set[int]:
    return {v for value in values for v in (range(value[0], value[1] + 1) if isinstance(value, tuple) else [value])}


@settings(max_examples=third(60), deadline=None)
@given(WHOLE, st.sampled_from(["0.2", "1", "5"]), st.sampled_from([1, 2]), st.booleans())
def test_probabilities_of_neighbours_are_within_e_to_the_epsilon(
    values: Any, epsilon: str, p: Any, replaced: bool
) -> None:
    records = listed(values)
    if replaced and len(records) == 1:
        return
    mechanism = NeighbourSet(epsilon, tuple(values), p, "replace" if replaced else "add_remove")
    changes = {a - b for a in records for b in records} if replaced else records
    shells = mechanism.shells
    assert {change % shells.unit for change in changes} == {0}
    here = np.arange(-3000, 3001)
    own = shells.level(here)
    # P(x) = e^(−ε·shell)/mass with one mass for all, so a ratio of at most e^ε is a difference of at most 1.
    assert all(np.abs(shells.level(here + change // shells.unit) - own).max() <= 1 for change in changes)
    assert mechanism.events == (Pure(Fraction(epsilon)),)
    assert mechanism.loss == PureDP(epsilon)


def test_the_whole_law_of_two_neighbours_is_compared_exactly() -> None:
    mechanism = NeighbourSet(5, (2, 9))
    places = np.arange(-150, 151)

    def law(shift: int) -> dict[int, Fraction]:
        # A rational just above e^−1 in its place; what lies beyond the window weighs less than e^−15.
        weights = [Fraction(36787, 100_000) ** int(level) for level in mechanism.shells.level(places - shift)]
        return {place: weight / sum(weights) for place, weight in zip(places.tolist(), weights, strict=True)}

    for value in (2, 9):
        assert Comparison(law(0), law(value)).satisfies(PureDP("1.001"))
    assert not Comparison(law(0), law(1)).satisfies(PureDP("1.9"))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "8"])
@pytest.mark.parametrize(
    "values", [(0, 500, 10_000), ((0, 100), (9_900, 10_000)), (1, 10_000), ((0, 10_000),), (7, 10_000)], ids=str
)
def test_it_is_no_worse_than_staircase_noise(values: Any, epsilon: str) -> None:
    mechanism = NeighbourSet(epsilon, values)
    assert mechanism.mean_error <= Staircase(epsilon, 10_000).mean_error * (1 + 1e-6)
    assert mechanism.staircase_error == pytest.approx(Staircase(epsilon, 10_000).mean_error, rel=1e-6)


def test_values_far_apart_gain_a_clear_margin() -> None:
    mechanism = NeighbourSet(8, ((0, 100), (9_900, 10_000)))
    assert mechanism.mean_error < 0.3 * mechanism.staircase_error
    assert NeighbourSet(8, ((0, 100), (9_900, 10_000)), p=2).mean_square < mechanism.mean_square


@pytest.mark.parametrize("p", [1, 2])
def test_stated_errors_are_those_of_draws(p: Any) -> None:
    mechanism = NeighbourSet(1, ((0, 5), (200, 205)), p)
    noise = mechanism.law.draw(400_000, entropy=Entropy.for_tests(1)).astype(float)
    # Means of 4·10⁵ draws stray by six standard errors with probability below 10⁻⁸.
    for drawn, stated in ((np.abs(noise), mechanism.mean_error), (noise**2, mechanism.mean_square)):
        doubt = 6 * drawn.std() / np.sqrt(noise.size)
        assert abs(drawn.mean() - stated) < doubt
        assert abs(drawn.mean() - stated * 1.05) > doubt


@pytest.mark.parametrize("beta", ["0.3", "0.05", "0.0001"])
@pytest.mark.parametrize(
    ("mechanism", "truth"),
    [
        (NeighbourSet(1, (0, 500, 10_000)), 100),
        (NeighbourSet(2, ((0, 1), (10, 11)), real=True), 0.3),
        (NeighbourSet(2, ((0, 3), (7, (1, 2))), dimension=2), np.array([3, 4])),
    ],
    ids=["whole", "real", "pair"],
)
def test_accuracy_is_kept(mechanism: NeighbourSet, truth: Any, beta: str) -> None:
    size = 20_000
    source = Entropy.for_tests(2)
    noise = mechanism.law.draw(size, entropy=source) * float(mechanism.grid.step)
    wrong = np.abs(noise) > mechanism.accuracy(beta)
    misses = np.count_nonzero(wrong if mechanism.dimension == 1 else wrong.any(axis=1))
    expected = float(beta) * size
    assert misses <= expected + 6 * np.sqrt(expected) + 20
    assert mechanism.accuracy(beta, size=100) >= mechanism.accuracy(beta)
    release = mechanism.release(truth)
    assert release.intervals(0.9).shape == (*np.shape(truth), 2)


def test_reals_are_rounded_to_either_side() -> None:
    mechanism = NeighbourSet(1, ("0.1", 1), real=True)
    step = mechanism.grid.step
    low = Fraction(1, 10) / step
    # One step more on both sides, for sums of doubles that are off by half a step.
    assert mechanism.space.parts[0] == (int(low) - 1, int(low) + 2)
    assert mechanism.space.parts[-1] == (int(1 / step) - 1, int(1 / step) + 1)
    exact = NeighbourSet(1, ("0.1", 1), real=True, exact_sums=True)
    assert exact.space.parts == ((int(low), int(low) + 1), (int(1 / step), int(1 / step)))
    for data in (0.0, 0.1, 0.30000000001, -7.7):
        moved = {int(mechanism.grid.steps(data + 0.1) - mechanism.grid.steps(data))}
        assert moved <= {int(low), int(low) + 1}
    assert abs(float(mechanism.release(2.5).values) - 2.5) <= mechanism.accuracy("1e-12")


def test_replaced_records_move_by_differences() -> None:
    kept = NeighbourSet(1, (50, 80), neighbours="replace")
    assert kept.space.unit == 30
    assert kept.space.parts == ((1, 1),)
    assert NeighbourSet(1, (50, 80)).space.parts == ((5, 5), (8, 8))
    ranged = NeighbourSet(1, ((0, 2), (10, 12)), neighbours="replace")
    assert ranged.space.parts == ((1, 2), (8, 12))


def test_a_record_of_nothing_costs_nothing() -> None:
    assert (
        NeighbourSet(1, (0, 3, 7)).shells.level(range(20)).tolist()
        == NeighbourSet(1, (3, 7)).shells.level(range(20)).tolist()
    )


@pytest.mark.parametrize("start", [END, -END, 2**63 - 1])
def test_sums_are_held_at_the_ends(start: int) -> None:
    release = NeighbourSet(1, (2**50, 2**59)).release(start, entropy=Entropy.for_tests(3))
    assert abs(int(release.values)) <= END
    assert np.isinf(release.intervals()).any()


def test_nearest_moves_every_number_to_a_value() -> None:
    whole = NeighbourSet(1, (-3, (10, 20), 100))
    assert whole.nearest([-(2**63), 3, 4, 15, 60, 61, 2**63 - 1]).tolist() == [-3, -3, 10, 15, 20, 100, 100]
    assert whole.nearest([None, 10]).tolist() == [-3, 10]
    real = NeighbourSet(1, ("0.5", (2, 3)), real=True)
    assert real.nearest([np.nan, np.inf, -np.inf, 2.2, 1.0]).tolist() == [0.5, 3.0, 0.5, 2.2, 0.5]
    pair = NeighbourSet(1, ((0, (1, 3)), (5, 0)), dimension=2)
    assert pair.nearest([[1, 9], [4, 0], [2, -7]]).tolist() == [[0, 3], [5, 0], [0, 1]]
    assert pair.nearest([]).shape == (0, 2)
    for records in ([1], [1, 2], [[1, 2, 3]], 5):
        with pytest.raises(InvalidArgument):
            pair.nearest(records)


BAD: list[tuple[str, dict[str, Any]]] = [
    ("values", {"values": ()}),
    ("values", {"values": (0,)}),
    ("values", {"values": "12"}),
    ("values", {"values": 5}),
    ("values", {"values": None}),
    ("values", {"values": ((3, 1),)}),
    ("values", {"values": ((1, 2, 3),)}),
    ("values", {"values": (float("nan"),)}),
    ("values", {"values": (float("inf"),)}),
    ("values", {"values": (True,)}),
    ("values", {"values": ("0.5",)}),
    ("values", {"values": (2**60 + 1,)}),
    ("values", {"values": tuple(range(0, 20_000, 2))}),
    ("values", {"values": tuple(range(0, 200, 2)), "neighbours": "replace"}),
    ("values", {"values": (5,), "neighbours": "replace"}),
    ("values", {"values": (1, 2), "dimension": 2}),
    ("values", {"values": ((1, 0),), "dimension": 2}),
    ("values", {"values": ((1, 1), (5000, 5001)), "dimension": 2}),
    ("p", {"values": (1,), "p": 3}),
    ("p", {"values": (1,), "p": True}),
    ("dimension", {"values": (1,), "dimension": 3}),
    ("neighbours", {"values": (1,), "neighbours": "all"}),
    ("values", {"values": (0,), "real": True}),
    ("values", {"values": ("0.5",), "real": True, "neighbours": "replace"}),
    ("values", {"values": ((1, 0),), "real": True, "dimension": 2}),
    ("real", {"values": (1,), "real": "no"}),
    ("exact_sums", {"values": (1,), "exact_sums": 1}),
]


@pytest.mark.parametrize(("argument", "given"), BAD, ids=lambda value: str(value)[:40])
def test_bad_parameters_are_refused_when_it_is_built(argument: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        NeighbourSet(1, **given)
    assert caught.value.argument == argument
    assert caught.value.remedy in str(caught.value)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**60), Fraction(2**60), "1e-9", 700])
def test_extreme_epsilons_are_drawn(epsilon: Any) -> None:
    mechanism = NeighbourSet(epsilon, (3, (40, 50)))
    assert mechanism.release(5).loss == PureDP(epsilon)
    assert mechanism.accuracy("0.01") >= 0

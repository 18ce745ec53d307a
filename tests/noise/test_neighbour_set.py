"""Noise on shells has exactly the law it states, and the shells chosen are the best there are."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpz
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.noise import laws
from tests.noise.laws import Law
from tests.noise.spies import Watched
from tests.soak import third

from discreet import InvalidArgument
from discreet.core.rounding import ball
from discreet.noise import Entropy, discrete_staircase
from discreet.noise.neighbour_sets import sampler as module
from discreet.noise.neighbour_sets.line import Line
from discreet.noise.neighbour_sets.plane import Plane
from discreet.noise.neighbour_sets.sampler import Choice, ShellLaw, best, mean_errors, staircase_mean

LARGEST = (1 << 63) - 1
SIZE = 1_000_000
CERTAIN = 6
"""Standard deviations between the limit and what a planted law is expected to show."""

LINES = {
    "two values": ([(2, 2), (5, 5)], 0, 12, Fraction(1)),
    "a gap": ([(0, 1), (20, 21)], 3, 6, Fraction(1)),
    "a divisor": ([(30, 30), (70, 70)], 1, 5, Fraction(1, 2)),
    "closed at once": ([(0, 10)], 3, 0, Fraction(1)),
    "nothing missing": ([(0, 10)], 3, 1, Fraction(2)),
    "steep": ([(1, 1), (9, 9)], 0, 4, Fraction(3)),
}


def line_law(parts: Any, delta: int, closing: int, epsilon: Fraction) -> Law:
    """P(x) ∝ e^(−ε·shell) a number a bin, as far as three bands beyond the hull, by the level of each number."""
    line = Line.of(parts, closing)
    shells = line.shells(delta, closing)
    reach = shells.hull + 3 * shells.longest
    places = np.arange(-reach, reach + 1)
    with ctx.workprec(200):
        b = (-ball(epsilon)).exp()
        weights = [b ** int(level) for level in shells.level(places)]
        rest = 2 * shells.longest * b ** (closing + 4) / (1 - b)
        whole = sum(weights, arb(0)) + rest
        odds = [float((weight / whole).mid()) for weight in weights]
        outside = float((rest / whole / 2).mid())
    cuts = tuple((places * line.unit).tolist())
    return Law((cuts[0] - 1, *cuts), (outside, *odds, outside))


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "delta", "closing", "epsilon"), LINES.values(), ids=LINES)
def test_draws_have_their_law_and_a_wrong_one_is_seen(parts: Any, delta: int, closing: int, epsilon: Fraction) -> None:
    law = line_law(parts, delta, closing, epsilon)
    shells = Line.of(parts, closing).shells(delta, closing)
    assert law.accepts(ShellLaw(shells, epsilon).draw(SIZE, entropy=Entropy.for_tests(1)))
    wrong = epsilon * Fraction(106, 100)
    planted = line_law(parts, delta, closing, wrong)
    assert laws.power_margin(planted, law, SIZE) > CERTAIN
    assert not law.accepts(ShellLaw(shells, wrong).draw(SIZE, entropy=Entropy.for_tests(2)))


@pytest.mark.slow
def test_a_place_missing_from_a_shell_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, delta, closing, epsilon = LINES["a gap"]
    law, shells = line_law(parts, delta, closing, epsilon), Line.of(parts, closing).shells(delta, closing)
    honest = module._ranks
    monkeypatch.setattr(module, "_ranks", lambda sizes, source: honest(np.maximum(sizes - 1, 1), source))
    assert not law.accepts(ShellLaw(shells, epsilon).draw(SIZE, entropy=Entropy.for_tests(3)))


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_draws_in_the_plane_have_their_law(norm: int) -> None:
    plane = Plane.of([((0, 1), (0, 0)), ((4, 4), (3, 3))], 3, norm)
    shells = plane.shells(2, 3)
    reach = np.array(shells.hull) + 6 * np.array(shells.longest)
    grid = np.stack(np.meshgrid(*(np.arange(-end, end + 1) for end in reach.tolist()), indexing="ij"), axis=-1)
    levels = shells.level(grid)

    def odds(epsilon: float) -> tuple[float, ...]:
        # By coordinates cut into fifths of the box, and by shells: where and how far.
        weights = np.exp(-epsilon * levels)
        b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
        sizes, bands = shells.sizes, shells.bands
        beyond = b**4 * sum(d * b**k / rest ** (k + 1) for k, d in enumerate(bands))
        whole = sum(size * b**level for level, size in enumerate(sizes)) + beyond
        bins = np.bincount(places(grid.reshape(-1, 2)), weights, minlength=26) / whole
        return (*bins[:-1].tolist(), 1 - float(bins[:-1].sum()))

    def places(points: np.ndarray) -> np.ndarray:
        cells = np.floor((points + reach) * 5 / (2 * reach + 1)).astype(int)
        outside = (np.abs(points) > reach).any(axis=1)
        return np.where(outside, 25, cells[:, 0] * 5 + cells[:, 1])

    law = odds(0.7)
    drawn = ShellLaw(shells, "0.7").draw(60_000, entropy=Entropy.for_tests(4)) // np.array(plane.units)
    counts = np.bincount(places(drawn), minlength=26)
    assert laws.distance(counts, law) <= laws.limit(26)
    wrong = ShellLaw(shells, "0.63").draw(60_000, entropy=Entropy.for_tests(5)) // np.array(plane.units)
    assert laws.distance(np.bincount(places(wrong), minlength=26), law) > laws.limit(26)
    for level in range(5):
        near = shells.level(drawn) == level
        size = shells.sizes[level] + (shells.bands[0] if level == 4 else 0)
        share = size * math.exp(-0.7 * level) / _mass(shells, 0.7)
        assert laws.distance(np.array([near.sum(), (~near).sum()]), [share, 1 - share]) <= laws.limit(2)


def _mass(shells: Any, epsilon: float) -> float:
    b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    inside = sum(size * b**level for level, size in enumerate(shells.sizes))
    return inside + b ** (shells.closing + 1) * sum(d * b**k / rest ** (k + 1) for k, d in enumerate(shells.bands))


def test_every_point_of_a_frame_can_be_drawn() -> None:
    shells = Plane.of([((0, 1), (0, 0)), ((2, 2), (1, 1))], 1).shells(1, 1)
    drawn = {
        tuple(point) for point in shells.place_in_bands(np.ones(20_000, dtype=np.int64), Entropy.for_tests(6)).tolist()
    }
    a, b = (end + 2 * step for end, step in zip(shells.hull, shells.longest, strict=True))
    frame = {
        (x, y)
        for x in range(-a, a + 1)
        for y in range(-b, b + 1)
        if abs(x) > a - shells.longest[0] or abs(y) > b - shells.longest[1]
    }
    assert drawn == frame
    assert len(frame) == sum(shells.bands)


@pytest.mark.parametrize("kept", [True, False])
def test_a_choice_on_the_boundary_is_settled(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Watched] = []
    monkeypatch.setattr(module, "Uniform", type("WatchedHere", (Watched,), {"made": made}))
    law = ShellLaw(Line.of([(0, 4)], 1).shells(3, 1), 1)
    with ctx.workprec(400):
        on_it = int((law._share(0) * arb(fmpz(1) << 64)).mid().floor().fmpz())
    script = [on_it, 0 if kept else (1 << 64) - 1, 0]
    draw = int(law.draw(entropy=Entropy.scripted_for_tests(script)))
    assert (abs(draw) <= 3) == kept
    assert made[0].words_read == 1


def test_closing_at_once_is_staircase_noise() -> None:
    shells = Line.of([(0, 10)], 0).shells(3, 0)
    draws = ShellLaw(shells, 1).draw(200_000, entropy=Entropy.for_tests(7))
    stairs = laws.staircase(Fraction(1), 10, 4)
    assert stairs.accepts(draws)
    assert stairs.accepts(discrete_staircase(1, 10, 4, 200_000, entropy=Entropy.for_tests(7)))


@settings(max_examples=third(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=3),
    st.integers(0, 5),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.sampled_from([1, 2]),
)
def test_mean_errors_are_sums_over_the_law(parts: Any, delta: int, epsilon: float, p: int) -> None:
    ranges = [(low, low + more) for low, more in parts]
    if all(high == 0 for _, high in ranges):
        return
    line = Line.of(ranges, 4)
    row = mean_errors(line.profile(delta, p), [epsilon])[0]
    for closing in range(line.levels + 1):
        shells = line.shells(delta, closing)
        reach = shells.hull + int(200 / epsilon) * shells.longest
        places = np.arange(-reach, reach + 1)
        weights = np.exp(-epsilon * shells.level(places))
        mean = float(weights @ np.abs(places * line.unit).astype(float) ** p / weights.sum())
        assert row[closing] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "2", "6"])
@pytest.mark.parametrize("parts", [[(0, 1), (40, 41)], [(0, 3), (20, 30)], [(7, 7), (41, 41)], [(0, 41)]], ids=str)
@pytest.mark.parametrize("p", [1, 2])
def test_no_other_shells_are_better(parts: Any, epsilon: str, p: int) -> None:
    line = Line.of(parts, 100)
    found = best(line, epsilon, p)
    every = np.array([mean_errors(line.profile(d, p), [float(epsilon)])[0] for d in range(line.longest + 1)])
    assert found.error <= every.min() * (1 + 1e-9)
    assert every[found.delta, found.closing] <= found.error * (1 + 2e-9)


@pytest.mark.parametrize("epsilon", ["0.05", "1", "8"])
def test_a_full_interval_gets_staircase_noise(epsilon: str) -> None:
    found = best(Line.of([(0, 1000)], 10), epsilon, 1)
    assert found.error == pytest.approx(staircase_mean(epsilon, 1000), rel=1e-9)


def test_a_single_value_gets_discrete_laplace_noise_in_multiples_of_it() -> None:
    line = Line.of([(1000, 1000)], 50)
    assert best(line, 1, 1) == Choice(0, 0, pytest.approx(1000 / math.sinh(1), rel=1e-9))


@pytest.mark.parametrize(("parts", "delta", "closing", "epsilon"), LINES.values(), ids=LINES)
def test_a_radius_is_exceeded_no_more_often_than_asked_and_almost_as_often(
    parts: Any, delta: int, closing: int, epsilon: Fraction
) -> None:
    law = line_law(parts, delta, closing, epsilon)
    sizes = np.abs(np.array(law.cuts[1:]))
    odds = np.array(law.odds[1:-1])
    drawn = ShellLaw(Line.of(parts, closing).shells(delta, closing), epsilon)
    unit = Line.of(parts, closing).unit
    for tail in ("0.5", "0.1", "0.01", "0.001"):
        radius = drawn.radius(Fraction(tail))
        inside = float(odds[sizes <= radius].sum())
        if radius <= sizes.max():
            assert 1 - inside <= float(tail) * (1 + 1e-6)
        if 0 < radius <= drawn.shells.reach(0):
            assert 1 - float(odds[sizes <= radius - unit].sum()) > float(tail) * (1 - 1e-6)


def test_a_radius_for_the_rarest_draws_is_found_beyond_the_hull() -> None:
    drawn = ShellLaw(Line.of([(2, 2), (5, 5)], 3).shells(0, 3), 1)
    rarest = drawn.radius(Fraction(1, 10**500))
    # Levels weigh e^−1 each: ln 10^500 = 1151.3 of them, five numbers wide.
    assert 5 * 1145 < rarest < 5 * 1160
    assert ShellLaw(Line.of([(5, 5)], 0).shells(0, 0), Fraction(1, 2**60)).radius(Fraction(1, 10)) > 2**60


def test_wide_noise_stops_at_the_ends_of_int64() -> None:
    slow = ShellLaw(Line.of([(1, 1), (2**59, 2**59)], 2).shells(5, 2), Fraction(1, 2**20))
    draws = slow.draw(50, entropy=Entropy.for_tests(8))
    assert np.abs(draws).max() == LARGEST
    scaled = ShellLaw(Line.of([(2**40, 2**40)], 2).shells(0, 1), Fraction(1, 2**40))
    assert set(np.abs(scaled.draw(50, entropy=Entropy.for_tests(9))).tolist()) == {LARGEST}
    flat = ShellLaw(Plane.of([((1, 1), (0, 0)), ((3, 3), (2, 2))], 2).shells(1, 2), Fraction(1, 2**60))
    assert np.abs(flat.draw(20, entropy=Entropy.for_tests(10))).max() == LARGEST


@pytest.mark.parametrize("size", [None, 0, 1, (2, 3), 70_000])
def test_any_shape_is_drawn(size: Any) -> None:
    shape = () if size is None else size if isinstance(size, tuple) else (size,)
    assert ShellLaw(Line.of([(2, 2), (5, 5)], 3).shells(0, 3), 1).draw(size).shape == shape
    assert ShellLaw(Plane.of([((1, 1), (2, 2))], 2).shells(0, 2), 1).draw(size).shape == (*shape, 2)


@pytest.mark.parametrize("bad", [0, -1, "much", None, math.nan, Fraction(1, 2**61), 2**61])
def test_epsilon_out_of_range_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        best(Line.of([(1, 1)], 1), bad, 1)
    assert caught.value.argument == "epsilon"

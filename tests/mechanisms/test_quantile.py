"""Quantiles: the exact law of a rank, how far a row moves it, and what comes out on awkward data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction as F
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

from discreet import Bounds, InvalidArgument, PureDP
from discreet.adversary import audit
from discreet.core.events import BoundedRange, Repeated
from discreet.mechanisms import Quantile, Quantiles
from discreet.mechanisms.quantiles import mechanism as quantile
from discreet.mechanisms.quantiles import rank_law as ranks
from discreet.mechanisms.quantiles.rank_law import Question, Ranked, Target, draw, slopes, spread
from discreet.noise.entropy import Entropy
from discreet.noise.refinement import Uniform

TENTHS = st.integers(0, 10).map(lambda k: F(k, 10))
SLOPES = st.integers(1, 12).map(lambda k: F(k, 4))
LEAN = st.integers(1, 7).map(lambda k: F(k, 8))
DATA = st.lists(st.integers(0, 7), max_size=7)


def exponents(
    weighted: dict[int, int], target: Target, size: int, *, below: bool = False, above: bool = False
) -> dict[int, F]:
    """The law by its definition: for each place minus the logarithm of its odds, as an exact number."""
    found = {}
    for place in range(-below, size + above):
        least = sum(w for v, w in weighted.items() if v < place)
        most = least + weighted.get(place, 0)
        past = max(least - target.rank, F(0)) if place >= 0 else F(0)
        short = max(target.rank - most, F(0)) if place < size else F(0)
        found[place] = target.past * past + target.short * short
    return found


def probabilities(law: dict[int, F]) -> dict[int, arb]:
    with ctx.workprec(256):
        odds = {place: (-arb(x.numerator) / x.denominator).exp() for place, x in law.items()}
        whole = sum(odds.values(), arb(0))
        return {place: one / whole for place, one in odds.items()}


def questions_of(data: list[int], target: Target, size: int, ends: tuple[bool, bool]) -> list[Question]:
    counted = Counter(data)
    places = np.array(sorted(counted), dtype=np.int64)
    weights = np.array([counted[place] for place in sorted(counted)], dtype=np.int64)
    one_by_one = Ranked.of_sorted(np.array(sorted(data), dtype=np.int64))
    return [Question(each, target, 0, size - 1, *ends) for each in (one_by_one, Ranked.of_weights(places, weights))]


@settings(max_examples=third(60), deadline=None)
@given(DATA, st.integers(-9, 36), SLOPES, SLOPES, st.tuples(st.booleans(), st.booleans()))
def test_the_law_in_balls_and_in_doubles_is_the_definition(
    data: list[int], rank: int, past: F, short: F, ends: tuple[bool, bool]
) -> None:
    target = Target(F(rank, 4), past, short)
    wanted = probabilities(exponents(Counter(data), target, 8, below=ends[0], above=ends[1]))
    for question in questions_of(data, target, 8, ends):
        law = ranks._Law(question)
        with ctx.workprec(256):
            below = arb(0)
            for place, chance in wanted.items():
                assert (law.share(place) - below).overlaps(chance)
                below = law.share(place)
        runs = ranks._Runs([question])
        odds, margins = runs.odds()
        for index in np.flatnonzero(runs.widths).tolist():
            run = runs.run(index)
            exact = sum(float(wanted[run.start + k]) for k in range(run.width))
            assert abs(odds[index] - exact) <= margins[0] + 1e-15


@pytest.mark.parametrize("data", [[], [3] * 6, [1, 2, 2, 5, 6]], ids=str)
def test_draws_follow_the_law(data: list[int]) -> None:
    """8,000 draws: each frequency is within 7 deviations, which a true law leaves with chance below 1e-10. Slopes half
    as steep, or of the wrong sign, are 14 away."""
    target = Target(F(len(data), 2), F(1), F(1, 2))
    wanted = {p: float(c) for p, c in probabilities(exponents(Counter(data), target, 8)).items()}
    for question in questions_of(data, target, 8, (False, False)):
        found = np.bincount(draw([question] * 8_000, Entropy.for_tests(1)), minlength=8) / 8_000
        for place, chance in wanted.items():
            assert abs(found[place] - chance) <= 7 * (chance * (1 - chance) / 8_000) ** 0.5 + 1e-4
    if len(data) >= 5:
        for past, short in ((F(1, 2), F(1, 4)), (F(-1), F(-1, 2))):
            wrong = probabilities(exponents(Counter(data), Target(target.rank, past, short), 8))
            assert max(abs(float(wrong[p]) - c) / (c * (1 - c) / 8_000) ** 0.5 for p, c in wanted.items()) > 14


def test_a_uniform_on_a_boundary_is_settled_exactly() -> None:
    """All doubles are doubtful when margins are wide; the draws are then those of the exact law."""
    target = Target(F(5, 2), F(1), F(1, 2))
    (question, _) = questions_of([1, 2, 2, 5, 6], target, 8, (False, False))
    wanted = probabilities(exponents(Counter([1, 2, 2, 5, 6]), target, 8))
    with ctx.workprec(256):
        below = wanted[0] + wanted[1]
        word = int((below * arb(2) ** 64).floor().unique_fmpz())
    for prefix, start in ((word - 1, 1), (word + 1, 2)):
        assert ranks._Law(question).settle(Uniform(prefix, 64, Entropy.for_tests(0))).start == start
    # The word that holds the boundary: what follows it decides.
    settled = {ranks._Law(question).settle(Uniform(word, 64, Entropy.for_tests(s))).start for s in range(60)}
    assert settled == {1, 2}


@settings(max_examples=third(150), deadline=None)
@given(DATA, st.integers(0, 7), TENTHS, LEAN, st.integers(-6, 6), st.tuples(st.booleans(), st.booleans()))
def test_a_row_more_moves_log_odds_apart_by_no_more_than_the_spread(
    data: list[int], row: int, q: F, lean: F, offset: int, ends: tuple[bool, bool]
) -> None:
    def law(values: list[int]) -> dict[int, F]:
        target = Target(q * len(values) + F(offset, 2), *slopes(q, F(1), lean))
        return exponents(Counter(values), target, 8, below=ends[0], above=ends[1])

    without, with_it = law(data), law([*data, row])
    moved = [with_it[place] - without[place] for place in without]
    assert max(moved) - min(moved) <= 1


@settings(max_examples=third(150), deadline=None)
@given(DATA, st.integers(0, 7), st.integers(0, 7), TENTHS, LEAN)
def test_an_exchanged_row_moves_log_odds_apart_by_no_more_than_declared(
    data: list[int], old: int, new: int, q: F, lean: F
) -> None:
    def law(values: list[int]) -> dict[int, F]:
        return exponents(Counter(values), Target(q * len(values), *slopes(q, F(1), lean, exchanged=True)), 8)

    before, after = law([*data, old]), law([*data, new])
    moved = [after[place] - before[place] for place in before]
    assert max(moved) - min(moved) <= 1


@settings(max_examples=third(100), deadline=None)
@given(DATA, st.lists(st.integers(0, 7), min_size=4, max_size=4), TENTHS)
def test_a_row_spread_over_places_moves_no_more_than_one_in_a_place(data: list[int], parts: list[int], q: F) -> None:
    def law(weighted: Counter[int]) -> dict[int, F]:
        past, short = slopes(q, F(1, 4), F(1, 2))
        return exponents(weighted, Target(q * weighted.total(), past, short), 8)

    whole = Counter({place: 4 * count for place, count in Counter(data).items()})
    moved = [a - b for a, b in zip(law(whole + Counter(parts)).values(), law(whole).values(), strict=True)]
    assert max(moved) - min(moved) <= 1


def largest_movement(past: F, short: F, q: F) -> F:
    """Over some data sets, targets and rows: how far the log-odds of two places move apart."""

    def law(values: list[int], offset: int) -> list[F]:
        return list(exponents(Counter(values), Target(q * len(values) + offset, past, short), 8).values())

    worst = F(0)
    for data in ([1, 1, 2, 3, 4, 5, 6, 6], [0, 0, 0, 1, 6, 7, 7, 7], [0] * 5 + [7] * 5):
        for offset in (-4, -2, 0, 2, 4):
            for row in range(8):
                moved = [a - b for a, b in zip(law([*data, row], offset), law(data, offset), strict=True)]
                worst = max(worst, max(moved) - min(moved))
    return worst


@pytest.mark.parametrize("q", [F(0), F(1, 4), F(1, 2), F(9, 10), F(1)])
def test_the_spread_is_reached_so_steeper_slopes_would_be_wrong(q: F) -> None:
    for lean in (F(1, 4), F(1, 2), F(3, 4)):
        past, short = slopes(q, F(1), lean)
        assert largest_movement(past, short, q) == spread(q, past, short) == 1
    # Planted: half the noise, as if all scores moved one way; and the slope of the median for another quantile.
    assert largest_movement(2 * past, 2 * short, q) > 1
    assert q == F(1, 2) or largest_movement(F(1), F(1), q) > 1


MEDIAN = Quantile(F(1, 2), F(1), Bounds(0, 100))


def test_events_loss_and_slopes() -> None:
    assert MEDIAN.events == (BoundedRange(F(1)),)
    assert MEDIAN.loss == PureDP(1)
    assert MEDIAN._slopes == (1, 1)
    assert Quantile("0.9", 1, Bounds(0, 1))._slopes == (F(5, 9), F(5, 9))
    assert Quantile("0.9", 1, Bounds(0, 1), neighbours="replace")._slopes == (F(1, 2), F(1, 2))
    nine = Quantiles(tuple(F(k, 10) for k in range(1, 10)), 1, Bounds(0, 1))
    assert nine.events == (Repeated(BoundedRange(F(1, 4)), 4),)
    assert nine.loss == PureDP(1)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("q", ["0", "0.1", "0.5", "0.95", "1"])
def test_rank_error_is_within_accuracy(q: str, neighbours: Any) -> None:
    """At β = 1e-12 none of 100 answers may be farther off; with the noise of ε/20 some are."""
    rng = np.random.default_rng(1)
    data = np.sort(rng.normal(50, 10, 2000))

    def worst(mechanism: Quantile) -> float:
        answers = [mechanism.release(data, entropy=Entropy.for_tests(s)).values for s in range(100)]
        least, most = np.searchsorted(data, answers, "left"), np.searchsorted(data, answers, "right")
        rank = float(mechanism.q) * data.size
        return float(np.maximum(np.maximum(least - rank, rank - most), 0).max())

    mechanism = Quantile(q, F(1), Bounds(0, 100), F(1, 100), neighbours)
    assert worst(mechanism) <= mechanism.accuracy(1e-12) + 1
    faint = Quantile(q, F(1, 20), Bounds(0, 100), F(1, 100), neighbours)
    assert worst(faint) > worst(mechanism)
    assert faint.accuracy(0.5) == pytest.approx(20 * mechanism.accuracy(0.5))


@pytest.mark.parametrize(
    "data",
    [[], [0.0] * 500, [100.0] * 500, [37.0] * 500, [np.nan] * 500, [np.inf, -np.inf] * 250, [-1e300, 1e300], [None, 5]],
    ids=lambda data: f"{data[:2]!s} × {len(data)}",
)
def test_awkward_data_give_a_value_within_bounds(data: list[Any]) -> None:
    for mechanism in (
        MEDIAN,
        Quantile.maximum(1, Bounds(0, 100)),
        Quantile.minimum(1, Bounds(0, 100)),
        Quantiles((F(1, 4), F(1, 2), F(3, 4)), 1, Bounds(0, 100)),
    ):
        values = np.atleast_1d(mechanism.release(data).values)
        assert ((values >= 0) & (values <= 100)).all()
        assert list(values) == sorted(values)


@pytest.mark.parametrize("value", [0.0, 37.0, 100.0])
def test_constant_data_answer_that_constant(value: float) -> None:
    """500 equal rows against 2³² places: anything else has odds below 2³²·e^(−125) for each quartile."""
    data = np.full(500, value)
    assert Quantile("0.5", 4, Bounds(0, 100)).release(data).values == value
    assert Quantiles(("0.25", "0.5", "0.75"), 4, Bounds(0, 100)).release(data).values.tolist() == [value] * 3


def test_missing_values_are_what_the_bounds_say() -> None:
    bounds = Bounds(0, 100, missing=80)
    assert Quantile("0.5", 4, bounds, step=1).release(np.full(500, np.nan)).values == 80


def test_bounds_of_one_value_and_far_away() -> None:
    assert Quantile("0.5", 1, Bounds(7, 7)).release([1.0, 2.0]).values == 7
    far = Quantile("0.5", 5, Bounds(-(2**900), 2**900)).release(np.full(100, 1e200)).values
    assert abs(far - 1e200) < 2.0**900


def test_ties_at_the_target_answer_as_one_value() -> None:
    """51 % of rows at 1, the others at 0: the median is 1, though the gap between is only 1 % of ranks away."""
    data = np.repeat([0.0, 1.0], [4900, 5100])
    answers = {Quantile("0.5", 1, Bounds(0, 1)).release(data, entropy=Entropy.for_tests(s)).values for s in range(50)}
    assert answers == {1.0}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_least_and_largest_stay_inside_the_data(neighbours: Any) -> None:
    """400 draws with a chance of 1e-12 each to leave the data; aimed at the end itself nearly all would."""
    data = np.random.default_rng(2).uniform(40, 60, 5000)
    bounds = Bounds(0, 1000)
    top = Quantile.maximum(1, bounds, neighbours=neighbours, beta=1e-12)
    bottom = Quantile.minimum(1, bounds, neighbours=neighbours, beta=1e-12)
    plain = Quantile(F(1), F(1), bounds, neighbours=neighbours)
    for seed in range(200):
        entropy = Entropy.for_tests(seed)
        assert 59 < top.release(data, entropy=entropy).values <= data.max()
        assert data.min() <= bottom.release(data, entropy=entropy).values < 41
    assert sum(plain.release(data, entropy=Entropy.for_tests(s)).values > 60 for s in range(50)) > 45


@settings(max_examples=third(25), deadline=None)
@given(DATA, st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True), st.integers(0, 31), st.integers(0, 31))
def test_parts_of_places_have_the_law_of_their_own(data: list[int], tenths: list[int], first: int, stop: int) -> None:
    """A half of the data with 4 parts for each place, against the law on parts by its definition."""
    first, stop = min(first, stop), max(first, stop) + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile, "PARTS", 4)
        places = np.array(sorted(data), dtype=np.int64)
        half = quantile._Half(places, first, stop, F(1, 10), F(19, 20), 0, 1)
        question = half.question(F(min(tenths), 10), F(4), "one")
        parts = Counter({4 * v + j: count for v, count in Counter(data).items() for j in range(4)})
        held = {part - first: count for part, count in parts.items() if first <= part < stop}
        assert half.total == sum(held.values())
        wanted = probabilities(exponents(held, question.target, stop - first))
        law = ranks._Law(question)
        with ctx.workprec(256):
            below = arb(0)
            for place, chance in wanted.items():
                assert (law.share(first + place) - below).overlaps(chance)
                below = law.share(first + place)
        runs = ranks._Runs([question])
        odds, margins = runs.odds()
        for index in np.flatnonzero(runs.widths).tolist():
            run = runs.run(index)
            exact = sum(float(wanted[run.start + k - first]) for k in range(run.width))
            assert abs(odds[index] - exact) <= margins[0] + 1e-15
        drawn = draw([question] * 50, Entropy.for_tests(0))
        assert ((drawn >= first) & (drawn < stop)).all()


def test_there_is_a_place_to_choose() -> None:
    target = Target(F(1), F(1, 2), F(1, 2))
    data = Ranked.of_sorted(np.array([1, 2], dtype=np.int64))
    assert Question(data, target, 1, 0, open_above=True).last == 0
    with pytest.raises(InvalidArgument, match="place to choose"):
        Question(data, target, 1, 0)


def test_many_quantiles_are_near_their_ranks_with_and_without_ties() -> None:
    rng = np.random.default_rng(3)
    tenths = tuple(F(k, 20) for k in range(1, 20))
    for data in (
        rng.normal(0, 1, 20_000),
        np.round(rng.normal(0, 1, 20_000)),
        np.concatenate((np.zeros(10_020), rng.uniform(0, 5, 9_980))),
    ):
        mechanism = Quantiles(tenths, 2, Bounds(-10, 10), F(1, 1000))
        answers = mechanism.release(data, entropy=Entropy.for_tests(0)).values
        assert (np.diff(answers) >= 0).all()
        ordered = np.sort(np.round(data, 3))
        least, most = np.searchsorted(ordered, answers - 1e-9), np.searchsorted(ordered, answers + 1e-9)
        targets = np.array([float(rank) * data.size for rank in tenths])
        error = np.maximum(np.maximum(least - targets, targets - most), 0)
        assert error.max() <= mechanism.accuracy(1e-12) + 5 * data.size / 2 / 1024


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_halves_together_move_no_more_than_a_level_allows(neighbours: Any) -> None:
    """The second level on all small neighbours: the ranges of both halves add up to at most one share."""
    mechanism = Quantiles((F(1, 4), F(1, 2), F(3, 4)), F(2), Bounds(0, 5), F(1), neighbours)
    base = [0, 1, 1, 2, 4]
    if neighbours == "replace":
        pairs = [(base, [*base[:i], new, *base[i + 1 :]]) for i in range(5) for new in range(6)]
    else:
        pairs = [(base, [*base, new]) for new in range(6)]

    def laws(values: list[int], place: int) -> list[dict[int, F]]:
        whole = quantile._Half(np.array(sorted(values)), 0, 6 * 2, F(0), F(1), 0, 3)
        parts = Counter({2 * v + j: count for v, count in Counter(values).items() for j in range(2)})
        found = []
        for half in whole.split(place, F(1, 2)):
            question = half.question(mechanism.ranks[half.middle], mechanism._share, mechanism._apart(half))
            held = {part - half.first: n for part, n in parts.items() if half.first <= part < half.stop}
            found.append(exponents(held, question.target, half.stop - half.first))
        return found

    worst = F(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile, "PARTS", 2)
        for one, other in pairs:
            for place in range(11):
                total = F(0)
                for before, after in zip(laws(one, place), laws(other, place), strict=True):
                    moved = [after[key] - before[key] for key in before]
                    total += max(moved) - min(moved)
                worst = max(worst, total)
    assert mechanism._share / 2 < worst <= mechanism._share


AUDITS = 1_000
"""Enough to refute an eighth of the loss, as the last of these tests shows; what the exact law does is proved above."""
AUDITED = [
    (Quantile(F(1, 2), F(2), Bounds(0, 2), F(1)), [0, 2], [0, 2, 2]),
    (Quantile(F(1, 2), F(2), Bounds(0, 2), F(1), "replace"), [0, 0, 2], [0, 2, 2]),
    (Quantile.maximum(2, Bounds(0, 2), 1), [1] * 4, [1] * 4 + [2]),
    (Quantiles((F(1, 4), F(1, 2), F(3, 4)), F(2), Bounds(0, 2), F(1)), [0, 2], [0, 2, 2]),
]


@pytest.mark.parametrize(("mechanism", "one", "other"), AUDITED, ids=["median", "exchanged", "maximum", "quartiles"])
def test_the_auditor_finds_nothing(mechanism: Any, one: list[int], other: list[int]) -> None:
    assert not audit(mechanism, np.array(one), np.array(other), samples=AUDITS).violates(mechanism.loss)


def test_the_auditor_finds_a_median_that_is_sold_for_too_little() -> None:
    sharp = Quantile(F(1, 2), F(8), Bounds(0, 2), F(1))
    assert audit(sharp, np.array([0, 2]), np.array([0, 2, 2]), samples=AUDITS).violates(PureDP(1))


@pytest.mark.parametrize("bad", [float("nan"), -1, 2, None, "much", True])
def test_bad_parameters_are_refused_by_name(bad: Any) -> None:
    builds: list[tuple[str, Callable[[], Any]]] = [
        ("q", lambda: Quantile(bad, 1, Bounds(0, 1))),
        ("ranks", lambda: Quantiles((bad,), 1, Bounds(0, 1))),
    ]
    for argument, build in builds:
        with pytest.raises(InvalidArgument) as caught:
            build()
        assert caught.value.argument == argument


@pytest.mark.parametrize(
    "build",
    [
        lambda: Quantile(F(1, 2), 0, Bounds(0, 1)),
        lambda: Quantile(F(1, 2), F(1, 2**70), Bounds(0, 1)),
        lambda: Quantile(F(1, 2), 1, (0, 1)),
        lambda: Quantile(F(1, 2), 1, Bounds(0, 1), 0),
        lambda: Quantile(F(1, 2), 1, Bounds(0, 1), F(1, 2**50)),
        lambda: Quantile(F(1, 2), 1, Bounds(0, F(1, 2**990))),
        lambda: Quantile(F(1, 2), 1, Bounds(0, 1), neighbours="remove"),
        lambda: Quantile(F(1, 2), 1, Bounds(0, 1), lean=1),
        lambda: Quantile.maximum(1, Bounds(0, 1), beta=0),
        lambda: Quantiles((), 1, Bounds(0, 1)),
        lambda: Quantiles((F(1, 2), F(1, 4)), 1, Bounds(0, 1)),
        lambda: Quantiles((F(1, 2), F(1, 2)), 1, Bounds(0, 1)),
        lambda: MEDIAN.accuracy(0),
        lambda: MEDIAN.release(["a"]),
        lambda: MEDIAN.release("text"),
        lambda: MEDIAN.release(np.array([1 + 2j])),
    ],
)
def test_what_cannot_be_meant_is_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(InvalidArgument):
        build()


def test_slopes_only_grow_with_epsilon() -> None:
    for one, more in pairwise([F(1, 10), F(1), F(10)]):
        assert slopes(F(1, 3), one, F(1, 2)) < slopes(F(1, 3), more, F(1, 2))

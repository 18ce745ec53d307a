"""What every answer of the PLD accountant obeys, its error bounds, its extremes and its refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.soak import third

from discreet.accounting.pld import distribution as pld
from discreet.accounting.pld import dominating_pairs as pairs
from discreet.accounting.pld.convolution import convolve
from discreet.accounting.pld.grid import ULP, Pmf
from discreet.accounting.pld.laws import Lattice, Mirrored, Normal, PoissonAdd, PoissonRemove, Ramp
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Nothing,
    PoissonSampled,
    Pure,
    Repeated,
)

F = Fraction
ROUGH = 1 + 2e-4
"""Answers are within 1e-4 of the least that can be shown, each on its own grid; comparisons allow for both."""

sizes = st.floats(0.01, 3).map(lambda x: Fraction(x).limit_denominator(1000))
leaves = st.one_of(
    st.builds(Pure, sizes),
    st.builds(BoundedRange, sizes),
    st.builds(lambda s, a: Laplace(a / s, a), sizes, st.sampled_from([1, 3, 2**30])),
    st.builds(lambda m: Gaussian(2**40 / m**2, Fraction(2**40)), sizes),
    st.builds(lambda m, d: Gaussian(20 / m**2, Fraction(3), d), sizes, st.integers(1, 4)),
)
events = st.one_of(
    leaves,
    st.builds(Repeated, leaves, st.integers(1, 20)),
    st.builds(PoissonSampled, st.sampled_from([F(1, 100), F(1, 2)]), leaves),
)
deltas = st.sampled_from(["0.3", "1e-3", "1e-6", "1e-15"])


@settings(max_examples=third(20), deadline=None, derandomize=True)
@given(events, events, deltas, deltas)
def test_more_costs_more(first: Event, second: Event, delta: str, other: str) -> None:
    one, both = pld.privacy_loss(first), pld.privacy_loss(Composed((first, second)))
    assert one.epsilon(delta) <= both.epsilon(delta) * Fraction(ROUGH)
    assert both.epsilon(delta) <= (one.epsilon("1e-16") + pld.epsilon(second, "1e-16")) * Fraction(ROUGH)
    low, high = sorted((Fraction(delta), Fraction(other)))
    assert both.epsilon(high) <= both.epsilon(low) * Fraction(ROUGH)


@settings(max_examples=third(20), deadline=None, derandomize=True)
@given(events, deltas)
def test_the_two_questions_agree(event: Event, delta: str) -> None:
    loss = pld.privacy_loss(event)
    epsilon = loss.epsilon(delta)
    assert loss.delta(epsilon) <= Fraction(delta) * Fraction(1.2)
    if epsilon > 0:
        # δ falls with ε, so a little below the answer it must be above what was asked.
        assert loss.delta(epsilon * Fraction(999, 1000)) >= Fraction(delta) * Fraction(0.999)


@settings(max_examples=third(12), deadline=None, derandomize=True)
@given(events, deltas)
def test_later_answers_are_as_good_as_first_ones(event: Event, delta: str) -> None:
    used = pld.privacy_loss(event)
    for text in ("1e-4", "0.01", "1e-9"):
        used.epsilon(text)
        used.delta("0.5")
    assert float(used.epsilon(delta)) == pytest.approx(float(pld.epsilon(event, delta)), rel=2e-4, abs=1e-12)


def test_a_finer_grid_never_gives_much_more() -> None:
    event = Repeated(PoissonSampled(F(1, 50), Gaussian(F(2**40), F(2**40))), 300)
    answers = [pld.epsilon(event, "1e-6", interval=F(1, 2**k)) for k in (8, 10, 12, 14)]
    assert answers == sorted(answers, reverse=True)
    assert answers[-1] <= pld.epsilon(event, "1e-6") <= answers[-1] * Fraction(ROUGH)
    assert pld.epsilon(event, "1e-6", interval="0.001") == pld.privacy_loss(event, interval=F(1, 1000)).epsilon("1e-6")


def test_composing_is_the_composed_event() -> None:
    parts = [Pure(F(1, 3)), Repeated(Laplace(F(20), 3), 4), Gaussian(F(50), F(1))]
    losses = [pld.privacy_loss(part) for part in parts]
    assert losses[0].compose(*losses[1:]).epsilon("1e-6") == pld.epsilon(Composed(tuple(parts)), "1e-6")


def test_nested_lists_are_counted_once() -> None:
    coin = Pure(F(1, 4))
    nested = Repeated(Composed((coin, Repeated(Composed((coin, Nothing())), 3))), 2)
    assert pairs.flatten(nested) == {coin: 8}
    assert pld.epsilon(nested, "1e-6") == pld.epsilon(Repeated(coin, 8), "1e-6")


NOTHING = [
    Nothing(),
    Composed(()),
    Repeated(Pure(F(5)), 0),
    Pure(F(0)),
    Laplace(F(1), 0),
    Gaussian(F(1), F(0)),
    BoundedRange(F(0)),
    Approximate(F(0), F(0)),
    PoissonSampled(F(0), Pure(F(5))),
    PoissonSampled(F(1, 2), Nothing()),
    FixedSizeSampled(0, 9, Pure(F(5))),
]


@pytest.mark.parametrize("event", NOTHING, ids=str)
def test_nothing_costs_nothing(event: Event) -> None:
    loss = pld.privacy_loss(event)
    assert [loss.epsilon(delta) for delta in (0, "1e-30", "0.5", 1)] == [0, 0, 0, 0]
    assert loss.delta(0) == loss.delta(50) == 0


@pytest.mark.parametrize("inner", [Pure(F(1)), Laplace(F(3), 2), Gaussian(F(2**40), F(2**40)), BoundedRange(F(1))])
def test_a_sample_of_everyone_is_everyone(inner: Event) -> None:
    direct = pld.epsilon(inner, "1e-6")
    assert pld.epsilon(PoissonSampled(F(1), inner), "1e-6") == direct
    assert pld.epsilon(FixedSizeSampled(4, 4, inner), "1e-6") == direct
    nearly = pld.epsilon(PoissonSampled(1 - F(1, 10**20), inner), "1e-6")
    assert direct <= nearly * Fraction(ROUGH)
    assert nearly <= direct * Fraction(ROUGH)


def test_rare_samples_cost_little() -> None:
    event = Repeated(PoissonSampled(F(1, 10**9), Pure(F(1))), 1000)
    assert pld.epsilon(event, "1e-6") == 0  # 1000 · 10⁻⁹ · (e − 1)/(e + 1) is below 10⁻⁶
    assert 0 < pld.epsilon(event, "1e-8") < F(1, 10**4)


def test_pure_events_need_no_delta() -> None:
    event = Composed((Pure(F(1, 3)), Laplace(F(7), 3), BoundedRange(F(1, 10))))
    assert pld.epsilon(event, 0) == F(1, 3) + F(3, 7) + F(1, 10)
    assert pld.epsilon(event, "1e-250") <= F(1, 3) + F(3, 7) + F(1, 10)


def test_catastrophes_are_added_exactly() -> None:
    event = Approximate(F(1), F(1, 1000))
    assert pld.epsilon(event, F(1, 1000)) == 1
    assert pld.delta(event, 1) == F(1, 1000)
    twice = Repeated(event, 2)
    assert pld.epsilon(twice, F(1999, 10**6)) == 2
    assert pld.epsilon(Approximate(F(3), F(1)), 1) == 0
    with pytest.raises(NotAccountable, match=r"at least 0\.001999"):
        pld.epsilon(twice, F(1998, 10**6))


@pytest.mark.parametrize("event", [Laplace(F(1, 10**6), 2**40), Pure(F(10**30)), Repeated(Pure(F(10**7)), 10**6)])
def test_hopeless_losses_are_stated_in_full(event: Event) -> None:
    top = pld.epsilon(event, 0)
    assert pld.epsilon(event, "1e-6") == top > 10**6
    assert pld.delta(event, 10**5) == 1
    assert pld.delta(event, top) == 0


FAINT = [
    Pure(F(1, 10**400)),
    Laplace(F(10**400), 3),
    Gaussian(F(10**500), F(10**90)),
    Repeated(BoundedRange(F(1, 10**200)), 7),
    PoissonSampled(F(1, 10**400), Pure(F(1))),
    FixedSizeSampled(1, 10**100, Gaussian(F(2**40), F(2**40))),
]


@pytest.mark.parametrize("event", FAINT, ids=lambda event: type(event).__name__)
def test_faint_losses_are_faint(event: Event) -> None:
    loss = pld.privacy_loss(event)
    assert loss.epsilon("1e-6") == 0
    assert 0 < loss.delta(0) < F(1, 10**11)
    assert loss.delta(1) < F(1, 10**200)


@pytest.mark.parametrize(
    ("event", "low", "high"),
    [
        (Repeated(PoissonSampled(F(1, 1000), Gaussian(F(2**40), F(2**40))), 10**6), 5, 8),
        (Repeated(Pure(F(1, 10**4)), 10**8), 4.886, 4.888),
        (Laplace(F(2**40, 20000), 2**40), 19999, 20000),
        (Gaussian(F(2**40, 10**6), F(2**40)), 504000, 505000),
        (Gaussian(F(1, 100), F(1)), 49, 51),
    ],
    ids=["million samples", "hundred million coins", "large laplace", "large gaussian", "little noise"],
)
def test_large_numbers(event: Event, low: float, high: float) -> None:
    assert low <= pld.epsilon(event, "1e-6") <= high


@pytest.mark.parametrize(
    ("event", "remedy"),
    [
        (Event(), "discreet.core.events"),
        (Composed((PoissonSampled(F(1, 2), Pure(F(1))), FixedSizeSampled(1, 2, Pure(F(1))))), "apart"),
        (PoissonSampled(F(1, 2), FixedSizeSampled(1, 2, Pure(F(1)))), "apart"),
        (Gaussian(F(1, 100), F(9), 2), "finer grid"),
        (Gaussian(F(1, 10**9), F(1)), "more noise"),
        (PoissonSampled(F(1, 2), Pure(F(10**400))), "more noise"),
    ],
)
def test_what_cannot_be_bounded_is_refused(event: Event, remedy: str) -> None:
    with pytest.raises(NotAccountable, match=remedy):
        pld.privacy_loss(event)


def test_a_delta_that_no_gaussian_reaches_is_refused() -> None:
    for delta in (0, "1e-300"):
        with pytest.raises(NotAccountable, match="larger δ"):
            pld.epsilon(Gaussian(F(100), F(1)), delta)


@pytest.mark.parametrize("bad", [-1, 2, math.nan, math.inf, "x", True, None])
def test_bad_arguments(bad: object) -> None:
    loss = pld.privacy_loss(Pure(F(1)))
    with pytest.raises(InvalidArgument, match="delta"):
        loss.epsilon(bad)
    if bad != 2:
        with pytest.raises(InvalidArgument, match="epsilon"):
            loss.delta(bad)
    with pytest.raises(InvalidArgument, match="interval"):
        pld.epsilon(Pure(F(1)), "1e-6", interval=0)


def test_normal_tails_are_as_accurate_as_assumed() -> None:
    """The bound that `Normal` adds for scipy's ndtr, against 200-bit values: at most a third of it is used."""
    points = np.concatenate((-np.linspace(0, 37.5, 1500), -np.random.default_rng(1).uniform(0, 37, 1500)))
    with ctx.workprec(200):
        for x, value in zip(points.tolist(), ndtr(points).tolist(), strict=True):
            exact = (arb(-x) / arb(2).sqrt()).erfc() / 2
            assert abs(float(arb(value) / exact - 1)) <= ULP * (16 + 4 * x * x) / 2


@pytest.mark.parametrize("tilt", [0.0, 0.3, 40.0])
@pytest.mark.parametrize("counts", [(1,), (7,), (1, 2, 3)])
def test_transformed_masses_bound_the_exact_sums(counts: tuple[int, ...], tilt: float) -> None:
    """Each mass against the exact one, by polynomial multiplication of the doubles as rationals."""
    generator = np.random.default_rng(5)
    pmfs = []
    for width in (9, 30, 17)[: len(counts)]:
        mass = generator.random(width) ** 4
        pmfs.append(Pmf(-4, mass / mass.sum(), 0.0))
    interval = F(1, 8)
    window = convolve(pmfs, counts, interval, tilt)
    exact, first = [F(1)], 0
    for pmf, count in zip(pmfs, counts, strict=True):
        for _ in range(count):
            product = [F(0)] * (len(exact) + len(pmf.mass) - 1)
            for i, left in enumerate(exact):
                for j, right in enumerate(pmf.mass.tolist()):
                    product[i + j] += left * F(right)
            exact, first = product, first + pmf.first
    with ctx.workprec(200):
        for k, mass in enumerate(window.mass.tolist()):
            index = window.first + k - first
            if 0 <= index < len(exact):
                loss = (window.first + k - window.origin) * interval
                scale = (arb(window.log_scale) - arb(tilt) * loss.numerator / loss.denominator).exp()
                truth = arb(exact[index].numerator) / exact[index].denominator
                assert arb(mass) * scale >= truth * (1 - arb(2) ** -44)
                # Mass that wrapped round from below the window is at most e^−28 of it all.
                assert (arb(mass) - 2 * window.noise - arb(-28).exp()) * scale <= truth * (1 + arb(2) ** -40)
        for level in (F(-1), F(0), F(1, 3), F(2)):
            if level >= window.bottom:
                factor = (arb(level.numerator) / level.denominator).exp()
                weights = ((-arb(first + i) / 8).exp() for i in range(len(exact)))
                gains = (
                    arb(p.numerator) / p.denominator * (1 - factor * weight)
                    for p, weight in zip(exact, weights, strict=True)
                )
                truth = sum((gain for gain in gains if gain > 0), arb(0))
                assert arb(window.delta(level).bound) >= truth
                assert arb(window.delta(level).bound) <= truth * (1 + arb(1) / 10**6) + arb(-26).exp()


LAWS = [
    Normal(0.8),
    Normal(5.0),
    Ramp(1.5, 0.5, True, F(3, 2)),
    Ramp(0.3, -1 / math.expm1(-0.3), False, F(3, 10)),
    Lattice(F(-1), F(2), np.array([1, math.e]) / (1 + math.e)),
    PoissonRemove(0.05, Normal(3.0)),
    PoissonAdd(0.05, Normal(3.0)),
    PoissonRemove(0.999, Ramp(4.0, 0.5, True, F(4))),
    PoissonAdd(0.5, PoissonAdd(0.5, Lattice(F(-3), F(6), np.array([1, math.exp(3)]) / (1 + math.exp(3))))),
    Mirrored(PoissonRemove(0.2, Normal(1.0))),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_grids_keep_both_masses(law: Normal) -> None:
    """P and Q still sum to 1: at least, so that nothing is lost, and hardly more, so that little is added."""
    for interval in (F(1, 10), F(1, 128), F(1, 3000)):
        pmf = law.on_grid(interval, 1e-20)
        losses = float(interval) * (pmf.first + np.arange(len(pmf.mass)))
        assert 1 - 1e-15 <= pmf.mass.sum() + pmf.infinity <= 1 + 1e-9
        assert (pmf.mass * np.exp(-losses)).sum() == pytest.approx(1, abs=1e-9)
        assert pmf.infinity <= 2e-20

"""Rényi divergences: exact for the noise as drawn, never below what direct summation finds on sampled mechanisms."""

from fractions import Fraction as F
from itertools import combinations

import dp_accounting
import pytest
from dp_accounting import rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.brute import (
    SLACK,
    Table,
    ball,
    bounded_range,
    divergence,
    gaussian,
    laplace,
    mixture,
    number,
    product,
    response,
    worst,
)
from tests.soak import third

from discreet.accounting import convert, pure, renyi
from discreet.accounting.renyi import DEFAULT_ORDERS, HIGHEST_SAMPLED
from discreet.accounting.subsampling import backward_excess
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    Repeated,
)
from discreet.core.losses import PureDP, RenyiDP

ORDERS = (F(5, 4), F(2), F(7, 2), F(6), F(20))


def never_below(event: Event, p: Table, q: Table, tight: float | None = None, orders: tuple[F, ...] = ORDERS) -> None:
    """The bound is at least the divergence both ways, and where `tight` is given at most that factor above it."""
    for order, bound in zip(orders, renyi(event, orders).epsilons, strict=True):
        seen = worst(divergence, p, q, order)
        assert seen <= bound + SLACK, order
        if tight is not None:
            assert bound <= seen * F(tight), order


@settings(max_examples=third(20), deadline=None)
@given(st.integers(1, 10), st.fractions(F(1, 4), F(4)))
def test_laplace_is_exact(moved: int, scale: F) -> None:
    never_below(Laplace(scale, moved), laplace(scale, moved, moved), laplace(scale, 0, moved), tight=1 + 1e-12)


def test_laplace_on_two_integers_costs_no_more_than_on_one() -> None:
    scale = F(1, 3)
    for left, right in [(1, 1), (1, 3), (2, 2)]:
        p = product(laplace(scale, left, left), laplace(scale, right, right))
        q = product(laplace(scale, 0, left), laplace(scale, 0, right))
        never_below(Laplace(scale, left + right), p, q)


@pytest.mark.parametrize("scale", [1, 10**3, 10**12, 10**18, 10**30])
def test_laplace_tends_to_the_continuous_formula_without_loss_of_accuracy(scale: int) -> None:
    fine = renyi(Laplace(F(scale), scale), (2, 8)).epsilons
    theirs = rdp.RdpAccountant([2, 8]).compose(dp_accounting.LaplaceDpEvent(1.0))
    ours, exact = [float(e) for e in fine], [float(e) for e in theirs._rdp]
    assert ours == pytest.approx(exact, rel=max(1e-9, 0.2 / scale))


def test_laplace_of_tiny_loss_keeps_its_digits() -> None:
    assert float(renyi(Laplace(F(10**15), 1), (2,)).epsilons[0]) == pytest.approx(1e-30, rel=1e-9)


@settings(max_examples=third(20), deadline=None)
@given(st.integers(1, 4), st.fractions(F(1, 5), F(10)))
def test_gaussian_holds_on_integers(moved: int, variance: F) -> None:
    never_below(Gaussian(variance, F(moved**2)), gaussian(variance, moved, moved), gaussian(variance, 0, moved))


@given(st.fractions(F(1, 10**9), F(30)))
def test_pure_is_randomized_response(epsilon: F) -> None:
    p, q = response(epsilon)
    never_below(Pure(epsilon), p, q, tight=1 + 1e-9)
    assert convert(PureDP(epsilon), RenyiDP, orders=ORDERS) == renyi(Pure(epsilon), ORDERS)


@settings(max_examples=third(30), deadline=None)
@given(st.fractions(F(1, 100), F(8)), st.fractions(F(1, 100), F(99, 100)))
def test_bounded_range_covers_every_pair_it_allows(epsilon: F, place: F) -> None:
    never_below(BoundedRange(epsilon), *bounded_range(epsilon, place * epsilon))


def test_bounded_range_is_attained_by_some_pair() -> None:
    bound = float(renyi(BoundedRange(F(2)), (3,)).epsilons[0])
    assert bound == pytest.approx(
        max(float(divergence(*bounded_range(F(2), F(i, 50)), 3)) for i in range(1, 100)), rel=1e-3
    )
    assert bound < 3 * 2**2 / 8


@pytest.mark.parametrize("variance", [F(1), F(9, 4), F(16)])
@pytest.mark.parametrize("rate", [F(1, 100), F(1, 3)])
def test_poisson_sampled_gaussian_is_exact_at_whole_orders(rate: F, variance: F) -> None:
    without = gaussian(variance, 0, 1)
    sampled = mixture([(1 - rate, without), (rate, gaussian(variance, 1, 1))])
    event = PoissonSampled(rate, Gaussian(variance, F(1)))
    never_below(event, sampled, without)
    never_below(event, sampled, without, tight=1 + 1e-9, orders=(F(2), F(5), F(8)))


def test_poisson_sampled_gaussian_agrees_with_an_independent_accountant() -> None:
    orders = [2, 3, 8, 32, 64]
    theirs = rdp.RdpAccountant(orders)
    theirs.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(0.8)), 1000)
    event = Repeated(PoissonSampled(F(1, 100), Gaussian(F(64, 100), F(1))), 1000)
    assert [float(e) for e in renyi(event, orders).epsilons] == pytest.approx([float(e) for e in theirs._rdp], rel=1e-9)


@pytest.mark.parametrize(("scale", "moved"), [(F(1), 1), (F(3), 2), (F(1, 2), 3)])
def test_poisson_sampled_laplace(scale: F, moved: int) -> None:
    rate = F(1, 10)
    without = laplace(scale, 0, moved)
    sampled = mixture([(1 - rate, without), (rate, laplace(scale, moved, moved))])
    event = PoissonSampled(rate, Laplace(scale, moved))
    never_below(event, sampled, without)
    never_below(event, sampled, without, tight=1 + 1e-9, orders=(F(2), F(5), F(8)))


@given(st.fractions(F(1, 1000), F(99, 100)), st.fractions(F(1, 1000), F(10)))
def test_poisson_sampled_pure_is_exact_at_every_order(rate: F, epsilon: F) -> None:
    p, q = response(epsilon)
    never_below(PoissonSampled(rate, Pure(epsilon)), mixture([(1 - rate, q), (rate, p)]), q, tight=1 + 1e-9)


def test_several_events_on_one_poisson_sample_hold_both_ways() -> None:
    """Noise on two numbers of one sample, which no reflection swaps when the second depends on the first."""
    rate, variance = F(1, 5), F(2)

    def adaptive(present: int) -> Table:
        first = gaussian(variance, present, 1)
        narrow = {k: chance for k, chance in first.items() if abs(k) <= 12}
        second = {flip: laplace(F(1), present if flip else 0, 1) for flip in (True, False)}
        return {
            (k, j): chance * other for k, chance in narrow.items() for j, other in second[k > 0].items() if abs(j) <= 25
        }

    p, q = adaptive(1), adaptive(0)
    event = PoissonSampled(rate, Composed((Gaussian(variance, F(1)), Laplace(F(1), 1))))
    never_below(event, mixture([(1 - rate, q), (rate, p)]), q)


WEIGHTS = st.lists(st.integers(1, 1000), min_size=3, max_size=3)


@given(WEIGHTS, WEIGHTS, st.fractions(F(1, 1000), F(9, 10)), st.integers(2, 12))
def test_the_bound_for_pairs_that_no_reflection_swaps(left: list[int], right: list[int], rate: F, order: int) -> None:
    """E_Q[(1 − γ + γf)^{1−n}] by exact sums, for three outcomes of any probabilities."""
    p, q = ([F(w, sum(weights)) for w in weights] for weights in (left, right))
    exact = sum(b * (1 - rate + rate * a / b) ** (1 - order) for a, b in zip(p, q, strict=True)) - 1
    second = sum(a * a / b for a, b in zip(p, q, strict=True)) - 1
    assert number(backward_excess(rate, order, ball(second))) >= exact * (1 - F(1, 2**40))


def test_without_that_bound_some_pair_would_be_underestimated() -> None:
    """Rare under P, common under Q: the divergence of Q from the mixture is the larger one."""
    rate, order, p, q = F(1, 2), 6, [F(1, 1000), F(999, 1000)], [F(1, 2), F(1, 2)]
    forward = sum(b * (1 - rate + rate * a / b) ** order for a, b in zip(p, q, strict=True))
    backward = sum(b * (1 - rate + rate * a / b) ** (1 - order) for a, b in zip(p, q, strict=True))
    assert backward > forward


def sums_of_samples(data: tuple[int, ...], size: int, noise: type[Event]) -> Table:
    samples = list(combinations(data, size))
    table = laplace if noise is Laplace else gaussian
    return mixture([(F(1, len(samples)), table(F(1), sum(sample), size)) for sample in samples])


@pytest.mark.parametrize("noise", [Laplace, Gaussian])
def test_fixed_size_samples_of_real_data(noise: type[Event]) -> None:
    inner = Laplace(F(1), 1) if noise is Laplace else Gaussian(F(1), F(1))
    for rest in [(0, 0, 0, 0, 0), (0, 1, 1, 0, 1), (1, 1, 1, 1, 1)]:
        p, q = (sums_of_samples((bit, *rest), 2, noise) for bit in (0, 1))
        never_below(FixedSizeSampled(2, 6, inner), p, q)


def test_sampling_never_costs_more_than_not_sampling() -> None:
    for inner in (Gaussian(F(1), F(1)), Laplace(F(1), 2), Pure(F(2)), Composed((Pure(F(1)), Gaussian(F(4), F(1))))):
        whole = renyi(inner).epsilons
        for event in (PoissonSampled(F(9, 10), inner), FixedSizeSampled(9, 10, inner)):
            assert all(a <= b for a, b in zip(renyi(event).epsilons, whole, strict=True))


def test_sampling_is_not_credited_at_orders_out_of_reach() -> None:
    order = HIGHEST_SAMPLED + 1
    inner = Gaussian(F(100), F(1))
    assert renyi(PoissonSampled(F(1, 100), inner), (2, order)).epsilons[1] == renyi(inner, (order,)).epsilons[0]


@pytest.mark.parametrize(
    "event",
    [
        Laplace(F(3), 2),
        Pure(F(1)),
        BoundedRange(F(1)),
        PoissonSampled(F(1, 50), Gaussian(F(1), F(1))),
        Gaussian(F(3), F(1)),
    ],
)
def test_divergence_grows_with_the_order_and_stays_below_the_pure_loss(event: Event) -> None:
    curve = renyi(event, DEFAULT_ORDERS).epsilons
    assert list(curve) == sorted(curve)
    if not isinstance(event, Gaussian | PoissonSampled):
        assert curve[-1] <= pure(event).epsilon


def test_divergences_add_up() -> None:
    parts = [Laplace(F(3), 2), Gaussian(F(100), F(3)), PoissonSampled(F(1, 9), Pure(F(1)))]
    apart = sum((renyi(part, ORDERS) for part in parts[1:]), renyi(parts[0], ORDERS))
    assert renyi(Composed(tuple(parts)), ORDERS) == apart
    assert renyi(Composed(()), ORDERS) == RenyiDP(ORDERS, (0,) * len(ORDERS))


def test_enormous_and_tiny_parameters_give_finite_bounds() -> None:
    for event in (
        Pure(F(10**40)),
        BoundedRange(F(10**40)),
        Laplace(F(1, 10**20), 10**20),
        PoissonSampled(F(1, 10**9), Gaussian(F(1), F(10**40))),
        FixedSizeSampled(1, 10**9, Gaussian(F(1), F(10**40))),
        PoissonSampled(F(1, 10**30), Gaussian(F(10**30), F(1))),
    ):
        assert all(bound > 0 for bound in renyi(event).epsilons)


def test_an_amplification_that_forgets_the_binomials_is_caught() -> None:
    """γ²·D_α is a plausible formula for a sampled Gaussian, and direct summation exceeds it."""
    rate, order = F(1, 10), 8
    without = gaussian(F(1), 0, 1)
    sampled = mixture([(1 - rate, without), (rate, gaussian(F(1), 1, 1))])
    assert divergence(sampled, without, order) > rate**2 * renyi(Gaussian(F(1), F(1)), (order,)).epsilons[0]


@pytest.mark.parametrize(
    "event", [Approximate(F(1), F(1, 10)), PoissonSampled(F(1, 2), Approximate(F(1), F(1, 10))), Event()]
)
def test_what_has_no_divergence_is_refused_with_a_remedy(event: Event) -> None:
    with pytest.raises(NotAccountable, match="use "):
        renyi(event)


@pytest.mark.parametrize(
    "orders", [(), (1,), (0.5,), (2, 2), (3, 2), (float("nan"),), (float("inf"),), ("two",), (True,)]
)
def test_bad_orders_are_refused(orders: tuple[object, ...]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        renyi(Pure(F(1)), orders)
    assert caught.value.argument == "orders"


@pytest.mark.parametrize("junk", [None, 1.0, PureDP(1), (Pure(F(1)),)])
def test_what_is_not_an_event_is_refused(junk: object) -> None:
    with pytest.raises(InvalidArgument):
        renyi(junk)

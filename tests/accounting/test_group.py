"""Group guarantees bound what k changes do, checked against mechanisms whose k-fold shift is known."""

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounting.brute import SLACK, delta, gaussian, worst

from discreet.accounting import group, pure, renyi, zcdp
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Nothing,
    PoissonSampled,
    Pure,
    Repeated,
)
from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP


def test_pure_and_concentrated_groups() -> None:
    assert group(PureDP("0.1"), 5) == PureDP("0.5")
    assert group(ZCDP("0.1"), 5) == ZCDP("2.5")
    assert group(PureDP(1), 1) == PureDP(1)


@given(st.fractions(F(0), F(2)), st.fractions(F(0), F(1, 10**3)), st.integers(1, 20))
def test_approximate_groups_are_the_geometric_sum(epsilon: F, chance: F, k: int) -> None:
    loss = group(ApproxDP(epsilon, chance), k)
    exact = sum(float(chance) * 2.718281828459045 ** (i * float(epsilon)) for i in range(k))
    assert loss.epsilon == k * epsilon
    assert float(loss.delta) == pytest.approx(min(1.0, exact), rel=1e-9)
    assert loss.delta >= min(1, k * chance)


def test_approximate_groups_hold_for_noise_that_is_shifted_k_times() -> None:
    variance, epsilon, k = F(4), F(1), 3
    single = worst(delta, gaussian(variance, 1, 9), gaussian(variance, 0, 9), epsilon)
    shifted = worst(delta, gaussian(variance, k, 9), gaussian(variance, 0, 9), k * epsilon)
    bound = group(ApproxDP(epsilon, single), k)
    assert shifted <= bound.delta
    assert single < shifted, "a group that kept δ would be caught"


def test_enormous_groups_are_worthless_but_finite() -> None:
    assert group(ApproxDP(10**6, "1e-9"), 10**6) == ApproxDP(10**12, 1)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_divergence_groups_hold_and_are_near_k_squared(k: int) -> None:
    single = renyi(Gaussian(F(100), F(1)))
    together = group(single, k)
    truth = renyi(Gaussian(F(100), F(k**2)), together.orders)
    for order, bound, exact in zip(together.orders, together.epsilons, truth.epsilons, strict=True):
        assert exact <= bound
        assert order > 40 or bound <= exact * F(13, 10)


def test_divergence_groups_hold_for_laplace() -> None:
    together = group(renyi(Laplace(F(10), 3)), 4)
    truth = renyi(Laplace(F(10), 12), together.orders)
    assert all(exact <= bound + SLACK for exact, bound in zip(truth.epsilons, together.epsilons, strict=True))


def test_too_few_orders_are_refused() -> None:
    with pytest.raises(NotAccountable, match="orders"):
        group(RenyiDP((2,), (1,)), 2)


def test_a_group_event_has_k_times_the_sensitivity() -> None:
    assert group(Laplace(F(10), 2), 3) == Laplace(F(10), 6)
    assert group(Gaussian(F(10), F(2), 4), 3) == Gaussian(F(10), F(18), 4)
    event = Composed((Repeated(Pure(F(1, 2)), 2), BoundedRange(F(1)), Approximate(F(0), F(1, 8)), Nothing()))
    assert group(event, 2) == Composed(
        (Repeated(Pure(F(1)), 2), BoundedRange(F(2)), Approximate(F(0), F(1, 4)), Nothing())
    )


@given(st.integers(1, 5), st.integers(1, 9))
def test_a_group_event_costs_no_more_than_the_group_of_its_loss(k: int, moved: int) -> None:
    event = Composed((Laplace(F(7), moved), BoundedRange(F(moved, 9))))
    assert pure(group(event, k)) == group(pure(event), k)
    assert zcdp(group(event, k)).rho <= group(zcdp(event), k).rho


@pytest.mark.parametrize("sampled", [PoissonSampled(F(1, 2), Pure(F(1))), FixedSizeSampled(1, 2, Pure(F(1)))])
def test_sampled_events_are_refused_with_a_remedy(sampled: PoissonSampled | FixedSizeSampled) -> None:
    with pytest.raises(NotAccountable, match="loss"):
        group(sampled, 2)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_bad_sizes_are_refused(k: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        group(PureDP(1), k)
    assert caught.value.argument == "k"


def test_what_is_no_guarantee_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        group(1.0, 2)

"""Conversions never promise less loss than the exact curve of a mechanism that meets the premise, and are tight."""

from fractions import Fraction as F
from math import log, sqrt

import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from tests.accounting.brute import ball, number, precisely, response
from tests.accounting.brute import delta as exact_delta

from discreet.accounting import affordable, convert, delta_at, epsilon_at, renyi, simple_zcdp_epsilon, zcdp
from discreet.accounting.conversions import best_order, renyi_cap
from discreet.accounting.gaussian import continuous_delta
from discreet.accounting.renyi import DEFAULT_ORDERS
from discreet.core.errors import InvalidArgument
from discreet.core.events import Pure
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP

RHOS = st.fractions(F(1, 10**6), F(20))
DELTAS = st.sampled_from([F(1, 10), F(1, 1000), F(1, 10**6), F(1, 10**12), F(1, 10**30)])


@given(RHOS, DELTAS)
def test_zcdp_to_approximate_is_never_below_the_gaussian(rho: F, delta: F) -> None:
    """Gaussian noise of ρ = μ²/2 is ρ-zCDP and has an exact curve."""
    epsilon = epsilon_at(ZCDP(rho), delta)
    assert continuous_delta(epsilon, 2 * rho) <= delta
    assert epsilon <= simple_zcdp_epsilon(ZCDP(rho), delta)
    assert continuous_delta(epsilon, 2 * rho) <= delta_at(ZCDP(rho), epsilon) <= delta * F(1001, 1000) or epsilon == 0


@given(st.fractions(F(1, 1000), F(10)), DELTAS)
def test_renyi_to_approximate_is_never_below_randomized_response(epsilon: F, delta: F) -> None:
    curve = renyi(Pure(epsilon))
    bound = epsilon_at(curve, delta)
    p, q = response(epsilon)
    assert exact_delta(p, q, bound) <= delta
    assert exact_delta(p, q, bound) <= delta_at(curve, bound)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_renyi_to_approximate_agrees_with_an_independent_accountant(delta: float) -> None:
    orders = [float(order) for order in DEFAULT_ORDERS]
    rdps = [0.01 * order + 0.0003 * order**2 for order in orders]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, rdps, delta)
    assert float(epsilon_at(RenyiDP(tuple(orders), tuple(rdps)), delta)) == pytest.approx(theirs, rel=1e-9)
    theirs_delta, _ = rdp_privacy_accountant.compute_delta(orders, rdps, 0.5)
    assert float(delta_at(RenyiDP(tuple(orders), tuple(rdps)), "0.5")) <= theirs_delta * (1 + 1e-9)


@given(RHOS, DELTAS)
def test_the_simple_formula(rho: F, delta: F) -> None:
    expected = float(rho) + 2 * sqrt(float(rho) * log(1 / float(delta)))
    assert float(simple_zcdp_epsilon(ZCDP(rho), delta)) == pytest.approx(expected, rel=1e-9)


@given(st.fractions(F(1, 10**6), F(20)), DELTAS)
def test_what_a_budget_affords_implies_the_budget(epsilon: F, delta: F) -> None:
    budget = ApproxDP(epsilon, delta)
    rho = affordable(budget, ZCDP)
    assert epsilon_at(rho, delta) <= epsilon * (1 + F(1, 10**8))
    assert continuous_delta(epsilon, 2 * rho.rho) <= delta
    assert epsilon_at(ZCDP(rho.rho * F(101, 100)), delta) > epsilon
    p, q = response(affordable(budget, PureDP).epsilon)
    assert exact_delta(p, q, epsilon) <= delta
    assert affordable(budget, PureDP).epsilon >= epsilon


@given(st.fractions(F(1, 10**9), F(30)))
def test_a_pure_loss_within_zcdp(rho: F) -> None:
    pure = affordable(ZCDP(rho), PureDP)
    assert convert(pure, ZCDP).rho <= rho
    assert convert(PureDP(pure.epsilon * F(100001, 100000)), ZCDP).rho > rho


def test_the_cap_at_one_order_is_tight() -> None:
    budget = ApproxDP(1, "1e-6")
    order = best_order(budget)
    cap = renyi_cap(budget, order)
    assert epsilon_at(RenyiDP((order,), (cap,)), "1e-6") <= 1 + F(1, 10**20)
    assert epsilon_at(RenyiDP((order,), (cap * F(1001, 1000),)), "1e-6") > 1
    assert renyi_cap(ApproxDP("0.001", "1e-9"), 2) == 0


@given(st.fractions(F(1), F(5)), st.fractions(F(2), F(60)))
def test_budgets_round_down_and_losses_round_up(epsilon: F, order: F) -> None:
    """The same number from both sides: what the cap costs is the budget, up to a last bit on the safe side."""
    chance = F(1, 10**6)
    cap = renyi_cap(ApproxDP(epsilon, chance), order)
    if cap:
        overhead = epsilon_at(RenyiDP((order,), (100,)), chance) - 100
        exact = precise_overhead(order, chance)
        assert epsilon - cap >= exact >= epsilon - cap - F(1, 2**60)
        assert overhead >= exact >= overhead - F(1, 2**60)


@precisely
def precise_overhead(order: F, chance: F) -> F:
    alpha = ball(order)
    return number((1 - 1 / alpha).log() - (ball(chance) * alpha).log() / (alpha - 1))


def test_every_pair_that_is_implied_converts() -> None:
    assert convert(PureDP(1), PureDP) == PureDP(1) == convert(ApproxDP(1, 0), PureDP)
    assert convert(PureDP(1), ApproxDP) == ApproxDP(1, 0)
    assert convert(PureDP(1), ZCDP) == zcdp(Pure(F(1)))
    assert convert(PureDP(1), RenyiDP, orders=(2, 3)) == renyi(Pure(F(1)), (2, 3))
    assert convert(ZCDP(1), RenyiDP, orders=(2, 3)) == RenyiDP((2, 3), (2, 3))
    assert convert(ZCDP(1), ApproxDP, delta="1e-6") == ApproxDP(epsilon_at(ZCDP(1), "1e-6"), "1e-6")
    assert affordable(RenyiDP((2, 4), (1, 1)), ZCDP) == ZCDP("0.25")
    assert affordable(ZCDP(0), PureDP) == PureDP(0)


def test_nothing_lost_is_nothing_lost() -> None:
    assert epsilon_at(ZCDP(0), "1e-6") == delta_at(ZCDP(0), 0) == 0
    assert convert(PureDP(0), ZCDP) == ZCDP(0)


@pytest.mark.parametrize("rho", ["1e-300", "1e-30", "1e6", "1e30"])
def test_extreme_losses_stay_finite(rho: str) -> None:
    loss = ZCDP(rho)
    for delta in (F(1, 2), F(1, 10**6), F(1, 10**500)):
        assert epsilon_at(loss, delta) <= simple_zcdp_epsilon(loss, delta)
    assert 0 < delta_at(loss, 10**9) <= 1


def test_a_conversion_without_its_logarithm_is_caught() -> None:
    """Forgetting ln(1/δ)/(α − 1) leaves too small an ε, which the exact Gaussian curve contradicts."""
    rho, order, delta = F(1, 2), 6, F(1, 10**6)
    assert continuous_delta(rho * order, 2 * rho) > delta
    assert continuous_delta(epsilon_at(RenyiDP((order,), (rho * order,)), delta), 2 * rho) <= delta


@pytest.mark.parametrize(
    ("loss", "to"),
    [
        (ApproxDP(1, "0.1"), PureDP),
        (ApproxDP(1, "0.1"), ZCDP),
        (ZCDP(1), PureDP),
        (RenyiDP((2,), (1,)), ZCDP),
        (ZCDP(1), int),
        (PureDP(1), "ZCDP"),
    ],
)
def test_what_is_not_implied_is_refused(loss: Loss, to: type[Loss]) -> None:
    with pytest.raises((InvalidArgument, TypeError)):
        convert(loss, to, delta="0.1")


def test_bad_arguments_are_refused_by_name() -> None:
    for delta in (0, 1, -1, 2, float("nan"), None, "x"):
        with pytest.raises(InvalidArgument) as caught:
            epsilon_at(ZCDP(1), delta)
        assert caught.value.argument == "delta"
    for epsilon in (-1, float("inf"), float("nan"), None):
        with pytest.raises(InvalidArgument) as caught:
            delta_at(ZCDP(1), epsilon)
        assert caught.value.argument == "epsilon"
    for call in (
        lambda: convert(ZCDP(1), ApproxDP),
        lambda: convert(1.0, ZCDP),
        lambda: epsilon_at(PureDP(1), "0.1"),
        lambda: delta_at(PureDP(1), 1),
        lambda: affordable(ZCDP(1), RenyiDP),
        lambda: affordable(PureDP(1), ZCDP),
        lambda: affordable(ApproxDP(1, 0), ZCDP),
        lambda: renyi_cap(ApproxDP(1, "0.1"), 1),
    ):
        with pytest.raises(InvalidArgument):
            call()

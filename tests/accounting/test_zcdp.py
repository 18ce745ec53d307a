"""ρ is never below D_α/α of the noise as drawn, and is attained."""

from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.brute import SLACK, Table, divergence, gaussian, laplace, product, response
from tests.soak import third

from discreet.accounting import convert, zcdp
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
from discreet.core.losses import ZCDP, PureDP

ORDERS = [1.001, 1.3, 2, 3.7, 10, 45]


def steepest(p: Table, q: Table) -> F:
    return max(divergence(p, q, order) / F(order) for order in ORDERS)


@settings(max_examples=third(25), deadline=None)
@given(st.integers(1, 12), st.fractions(F(1, 4), F(4)))
def test_laplace_is_its_kullback_leibler_divergence(moved: int, scale: F) -> None:
    rho = zcdp(Laplace(scale, moved)).rho
    p, q = laplace(scale, moved, moved), laplace(scale, 0, moved)
    assert steepest(p, q) <= rho + SLACK
    assert float(divergence(p, q, 1 + 1e-9)) == pytest.approx(float(rho), rel=1e-7)


@pytest.mark.parametrize("split", [(1, 4), (2, 3), (3, 3)])
def test_laplace_on_several_integers_costs_no_more_than_on_one(split: tuple[int, ...]) -> None:
    scale = F(1, 3)
    p = product(*(laplace(scale, part, part) for part in split))
    q = product(*(laplace(scale, 0, part) for part in split))
    assert steepest(p, q) <= zcdp(Laplace(scale, sum(split))).rho


def test_a_formula_for_the_wrong_noise_is_caught() -> None:
    """ε²/8 holds for the exponential mechanism; charged for Laplace noise it is seen to be too low."""
    p, q = laplace(F(2), 1, 1), laplace(F(2), 0, 1)
    assert steepest(p, q) > zcdp(BoundedRange(F(1, 2))).rho


@settings(max_examples=third(20), deadline=None)
@given(st.integers(0, 5), st.fractions(F(1, 5), F(10)))
def test_gaussian_on_integers_has_the_rho_of_the_continuous(moved: int, variance: F) -> None:
    exact = zcdp(Gaussian(variance, F(moved**2)))
    assert exact == ZCDP(F(moved**2) / (2 * variance))
    assert steepest(gaussian(variance, moved, moved), gaussian(variance, 0, moved)) <= exact.rho + SLACK


@given(st.fractions(F(1, 10**12), F(60)))
def test_a_pure_event_costs_what_randomized_response_costs(epsilon: F) -> None:
    rho = zcdp(Pure(epsilon)).rho
    assert rho <= min(epsilon**2 / 2, epsilon)
    p, q = response(epsilon)
    assert steepest(p, q) <= rho + SLACK
    assert divergence(p, q, 1 + 1e-9) >= rho * F(1 - 1e-7)
    assert convert(PureDP(epsilon), ZCDP).rho == rho


def test_costs_add_up_and_sensitivity_zero_is_free() -> None:
    event = Composed((Repeated(Gaussian(F(100), F(2)), 5), BoundedRange(F(1, 2)), Nothing(), Laplace(F(1), 0)))
    assert zcdp(event) == ZCDP(5 * F(2, 200) + F(1, 32))
    assert zcdp(Repeated(Pure(F(1)), 0)) == ZCDP(0)


@pytest.mark.parametrize(
    "event",
    [
        Approximate(F(1), F(1, 10)),
        PoissonSampled(F(1, 2), Gaussian(F(1), F(1))),
        FixedSizeSampled(1, 2, Pure(F(1))),
        Event(),
    ],
)
def test_what_has_no_rho_is_refused_with_a_remedy(event: Event) -> None:
    with pytest.raises(NotAccountable, match="use "):
        zcdp(event)


@pytest.mark.parametrize("junk", [None, 1.0, "laplace", PureDP(1), [Pure(F(1))]])
def test_what_is_not_an_event_is_refused(junk: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        zcdp(junk)
    assert caught.value.argument == "event"

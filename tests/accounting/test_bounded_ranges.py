"""Many computations of bounded range whose squared ranges have a bounded sum."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.brute import SLACK, bounded_range, divergence, largest_loss, product
from tests.soak import third

from discreet.accounting.accountants import account
from discreet.accounting.filters import Filter
from discreet.accounting.flattening import parts
from discreet.accounting.group import group
from discreet.accounting.pld import distribution as pld
from discreet.accounting.pure import pure
from discreet.accounting.renyi import renyi
from discreet.accounting.zcdp import zcdp
from discreet.core.errors import NotAccountable
from discreet.core.events import BoundedRange, BoundedRanges, Composed, Gaussian, PoissonSampled
from discreet.core.losses import ApproxDP, PureDP

ORDERS = (F(11, 10), F(2), F(8))


@settings(max_examples=third(40), deadline=None)
@given(st.lists(st.tuples(st.fractions(F(1, 50), F(3)), st.fractions(F(1, 50), F(49, 50))), min_size=1, max_size=5))
def test_no_spread_of_ranges_costs_more_than_is_charged(spread: list[tuple[F, F]]) -> None:
    pairs = [bounded_range(epsilon, place * epsilon) for epsilon, place in spread]
    p, q = product(*(pair[0] for pair in pairs)), product(*(pair[1] for pair in pairs))
    event = BoundedRanges(sum((epsilon**2 for epsilon, _ in spread), F(0)), len(spread))
    assert largest_loss(p, q) <= pure(event).epsilon + SLACK
    for order, bound in zip(ORDERS, renyi(event, ORDERS).epsilons, strict=True):
        assert max(divergence(p, q, order), divergence(q, p, order)) <= min(bound, order * zcdp(event).rho) + SLACK


def test_a_quarter_of_it_would_be_too_little() -> None:
    spread = [F(1, 2)] * 4
    halved = BoundedRanges(F(1, 4), 4)
    pairs = [bounded_range(epsilon, epsilon / 2) for epsilon in spread]
    p, q = product(*(pair[0] for pair in pairs)), product(*(pair[1] for pair in pairs))
    assert divergence(p, q, 2) > 2 * zcdp(halved).rho
    pairs = [bounded_range(epsilon, epsilon * F(9, 10)) for epsilon in spread]
    p, q = product(*(pair[0] for pair in pairs)), product(*(pair[1] for pair in pairs))
    assert largest_loss(p, q) > pure(halved).epsilon


def test_one_computation_is_one_range() -> None:
    one, many = BoundedRange(F(1, 2)), BoundedRanges(F(1, 4), 1)
    assert zcdp(one) == zcdp(many)
    assert F(1, 2) <= pure(many).epsilon < F(1, 2) + F(1, 2**80)


def test_a_thousand_ranges_are_cheap_together_where_delta_is_allowed() -> None:
    event = BoundedRanges(F(1, 4), 1000)
    assert pure(event).epsilon > 15
    assert account(event, like=ApproxDP, delta="1e-6").epsilon < F(5, 4)


def test_groups_costless_events_and_filters() -> None:
    assert group(BoundedRanges(F(1, 4), 3), 2) == BoundedRanges(F(1), 3)
    assert parts(BoundedRanges(F(0), 5)) == ()
    assert pld.epsilon(BoundedRanges(F(0), 5), "1e-6") == 0
    cap = Filter(ApproxDP(1, "1e-6"))
    cap.charge(Composed((BoundedRanges(F(1, 16), 1000), Gaussian(F(2**30), F(2**20)))))
    assert not cap.fits(BoundedRanges(F(1), 1000))
    assert Filter(PureDP(1)).fits(BoundedRanges(F(1, 4), 4))
    assert not Filter(PureDP(1)).fits(BoundedRanges(F(1, 4), 5))


def test_loss_distributions_refuse_and_sampling_is_credited() -> None:
    event = BoundedRanges(F(1, 4), 1000)
    with pytest.raises(NotAccountable, match="zcdp or renyi"):
        pld.epsilon(event, "1e-6")
    sampled = renyi(PoissonSampled(F(1, 100), event), (2,)).epsilons[0]
    assert 0 < sampled < renyi(event, (2,)).epsilons[0] / 100

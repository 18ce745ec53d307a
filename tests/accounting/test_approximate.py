"""The least ε over all accountants is never below direct summation, and never above any one of them."""

from fractions import Fraction as F

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.brute import SLACK, ball, delta, gaussian, laplace, mixture, product, response, worst
from tests.soak import third

from discreet.accounting import account, approximate, convert, pure, renyi, within, zcdp
from discreet.accounting.approximate import satisfies, separated
from discreet.accounting.pld import distribution as pld
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
from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP

TABLES = {
    "laplace": (Laplace(F(1, 2), 1), laplace(F(1, 2), 1, 1), laplace(F(1, 2), 0, 1)),
    "gaussian": (Gaussian(F(2), F(1)), gaussian(F(2), 1, 1), gaussian(F(2), 0, 1)),
    "response": (Pure(F(3, 4)), *response(F(3, 4))),
}


@settings(max_examples=third(12), deadline=None)
@given(
    st.lists(st.sampled_from(sorted(TABLES)), min_size=1, max_size=2),
    st.integers(1, 3),
    st.sampled_from([F(1, 10), F(1, 10**4), F(1, 10**9)]),
)
def test_composed_mechanisms_are_never_underestimated(names: list[str], extra: int, chance: F) -> None:
    chosen = [TABLES[name] for name in names] + [TABLES["response"]] * extra
    event = Composed(tuple(part for part, _, _ in chosen))
    p, q = product(*(table for _, table, _ in chosen)), product(*(table for _, _, table in chosen))
    bound = approximate(event, chance)
    assert bound.delta == chance
    assert worst(delta, p, q, bound.epsilon) <= chance + SLACK


def test_sampled_mechanisms_are_never_underestimated() -> None:
    rate, variance = F(1, 5), F(3)
    without = gaussian(variance, 0, 2)
    step = mixture([(1 - rate, without), (rate, gaussian(variance, 2, 2))])
    event = Repeated(PoissonSampled(rate, Gaussian(variance, F(4))), 2)
    for chance in (F(1, 100), F(1, 10**6)):
        bound = approximate(event, chance).epsilon
        assert worst(delta, product(step, step), product(without, without), bound) <= chance + SLACK


def test_the_answer_is_the_least_of_all_accountants() -> None:
    event = Composed((Repeated(Laplace(F(1000), 50), 30), Repeated(Gaussian(F(10**8), F(10**6)), 20), Pure(F(1, 10))))
    chance = F(1, 10**6)
    best = approximate(event, chance).epsilon
    assert best <= convert(zcdp(event), ApproxDP, delta=chance).epsilon
    assert best <= convert(renyi(event), ApproxDP, delta=chance).epsilon
    assert best <= pld.epsilon(event, chance)
    assert (
        approximate(Repeated(Laplace(F(10), 1), 3), F(1, 10**9)).epsilon <= pure(Repeated(Laplace(F(10), 1), 3)).epsilon
    )


def test_a_mixture_agrees_with_an_independent_accountant() -> None:
    ours = approximate(
        Composed(
            (
                Repeated(Laplace(F(2**20), 2**16), 40),
                Repeated(Gaussian(F(2**40), F(2**32)), 50),
                Repeated(PoissonSampled(F(1, 50), Gaussian(F(2**41), F(2**40))), 100),
            )
        ),
        "1e-6",
    )
    theirs = PLDAccountant(value_discretization_interval=1e-4)
    theirs.compose(dp_accounting.LaplaceDpEvent(16.0), 40)
    theirs.compose(dp_accounting.GaussianDpEvent(16.0), 50)
    theirs.compose(dp_accounting.PoissonSampledDpEvent(1 / 50, dp_accounting.GaussianDpEvent(2**0.5)), 100)
    assert float(ours.epsilon) == pytest.approx(theirs.get_epsilon(1e-6), rel=2e-3)


def test_stated_losses_add_up_without_a_delta() -> None:
    event = Composed((Pure(F(1)), Repeated(Approximate(F(1, 2), F(1, 100)), 3), Laplace(F(4), 1)))
    assert approximate(event) == ApproxDP(F(11, 4), F(3, 100))
    assert approximate(Nothing()) == ApproxDP(0, 0)
    assert approximate(Approximate(F(0), F(2, 3))) + approximate(Approximate(F(0), F(2, 3))) == ApproxDP(0, 1)
    sampled = approximate(PoissonSampled(F(1, 10), Approximate(F(1), F(1, 100))))
    assert sampled == ApproxDP(pure(PoissonSampled(F(1, 10), Pure(F(1)))).epsilon, F(1, 1000))


def test_events_with_their_own_delta_are_never_underestimated() -> None:
    leak = F(1, 1000)
    p, q = (
        mixture([(1 - leak, table), (leak, {"here": ball(here), "there": ball(1 - here)})])
        for here, table in enumerate(response(F(1, 2)))
    )
    event = Repeated(Approximate(F(1, 2), leak), 3)
    for chance in (F(1, 100), F(4, 1000)):
        bound = approximate(event, chance).epsilon
        assert worst(delta, product(p, p, p), product(q, q, q), bound) <= chance + SLACK


def test_what_is_separated_adds_its_delta() -> None:
    event = Composed((Repeated(Approximate(F(1), F(1, 100)), 2), Gaussian(F(4), F(1)), Pure(F(1))))
    rest, leak = separated(event)
    assert leak == F(1, 50)
    assert pure(separated(Approximate(F(1), F(1, 2)))[0]) == PureDP(1)
    assert zcdp(rest).rho == F(1, 8) + 3 * zcdp(Pure(F(1))).rho
    assert separated(PoissonSampled(F(1, 10), Approximate(F(1), F(1, 100))))[1] == F(1, 1000)
    assert separated(Repeated(Approximate(F(1), F(1, 2)), 5))[1] == 1


def test_a_delta_below_what_the_event_has_is_refused() -> None:
    with pytest.raises(NotAccountable):
        approximate(Approximate(F(1), F(1, 10)), "1e-6")


def test_at_delta_zero_only_pure_events_have_an_epsilon() -> None:
    assert approximate(Laplace(F(10), 1), 0) == ApproxDP(F(1, 10), 0)
    with pytest.raises(NotAccountable):
        approximate(Gaussian(F(10), F(1)), 0)


def test_a_gaussian_without_delta_is_refused_with_the_remedy() -> None:
    with pytest.raises(NotAccountable, match="give delta"):
        approximate(Gaussian(F(10), F(1)))


@pytest.mark.parametrize(
    "event",
    [
        Repeated(Gaussian(F(2**30), F(2**20)), 30),
        Repeated(Laplace(F(100), 3), 30),
        Repeated(FixedSizeSampled(1, 50, Gaussian(F(2**21), F(2**20))), 10),
        Repeated(BoundedRange(F(1, 10)), 10),
    ],
)
def test_more_loss_is_never_cheaper(event: Event) -> None:
    chances = [F(1, 10**9), F(1, 10**6), F(1, 10**3)]
    costs = [approximate(event, chance).epsilon for chance in chances]
    assert costs == sorted(costs, reverse=True)
    assert approximate(Composed((event, event)), chances[1]).epsilon >= costs[1]


def test_satisfies_asks_whether_a_proof_exists() -> None:
    event = Repeated(Gaussian(F(2**30), F(2**20)), 30)
    bound = approximate(event, "1e-6")
    assert satisfies(event, bound)
    assert within(event, bound)
    assert not satisfies(event, ApproxDP(bound.epsilon * F(99, 100), "1e-6"))
    assert satisfies(event, ApproxDP(0, 1))


def test_one_entry_to_every_accountant() -> None:
    events = [Laplace(F(10), 1), Pure(F(1, 2))]
    together = Composed(tuple(events))
    assert account(events, PureDP) == pure(together)
    assert account(iter(events), ZCDP) == zcdp(together)
    assert account(together, RenyiDP, orders=(2, 3)) == renyi(together, (2, 3))
    assert account(events, ApproxDP, delta="1e-6") == approximate(together, "1e-6")
    assert account(events, ApproxDP) == ApproxDP(F(3, 5), 0)


@pytest.mark.parametrize("chance", [-1, 1, 1.5, float("nan"), "x", True])
def test_bad_deltas_are_refused_by_name(chance: object) -> None:
    for call in (lambda: approximate(Pure(F(1)), chance), lambda: account([Pure(F(1))], ApproxDP, delta=chance)):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert caught.value.argument == "delta"


@pytest.mark.parametrize(
    ("events", "like"), [(None, PureDP), ("ab", PureDP), ([1], PureDP), ([Pure(F(1))], int), ([], None)]
)
def test_bad_accounts_are_refused(events: object, like: object) -> None:
    with pytest.raises((InvalidArgument, TypeError)):
        account(events, like)


def test_a_delta_for_a_definition_without_one_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        account([Pure(F(1))], ZCDP, delta="1e-6")

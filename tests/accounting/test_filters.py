"""A filter admits no interaction that breaks its budget, whatever the analyst does, and otherwise admits a lot."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction as F
from functools import cache
from math import exp

import pytest

from discreet.accounting import Filter, approximate, gaussian_sigma, zcdp
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
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
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP

NOISE = Gaussian(F(10**6), F(10**4))


def admitted(budget: Filter, event: Event, limit: int = 10**4) -> int:
    """How many such events fit, one after the other."""
    for number in range(limit):
        if not budget.fits(event):
            return number
        budget.charge(event)
    return limit


def best_attack(epsilon: F, step: F, allowed: Callable[[int, int], bool]) -> float:
    """The δ at ε that the cleverest analyst gets from randomized responses of ε = step and 2·step.

    `allowed(n, m)` says whether n small and m large ones may be run in all. After each answer she may choose either
    kind or stop; her best play is computed backwards over all states, so nothing adaptive is left out.
    """
    size = float(step)

    @cache
    def value(small: int, large: int, loss: int) -> float:
        best = max(0.0, 1 - exp(float(epsilon) - loss * size))
        for dn, dm in ((1, 0), (0, 1)):
            if allowed(small + dn, large + dm):
                jump = dn + 2 * dm
                right = 1 / (1 + exp(-jump * size))
                up, down = (value(small + dn, large + dm, loss + sign * jump) for sign in (1, -1))
                best = max(best, right * up + (1 - right) * down)
        return best

    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(10**5)
    try:
        return value(0, 0, 0)
    finally:
        sys.setrecursionlimit(usual)


def rule(budget: Loss, step: F, **options: object) -> Callable[[int, int], bool]:
    fresh, begun = Filter(budget, **options), Filter(budget, **options)
    begun.charge(Nothing())

    @cache
    def allowed(small: int, large: int) -> bool:
        standing = fresh if small + large == 1 else begun
        return standing.fits(Composed((Repeated(Pure(step), small), Repeated(Pure(2 * step), large))))

    return allowed


@pytest.mark.parametrize("composition", ["renyi", "zcdp", "basic"])
def test_no_adaptive_analyst_exceeds_the_budget(composition: str) -> None:
    epsilon, chance, step = F(1), F(1, 100), F(1, 8)
    allowed = rule(ApproxDP(epsilon, chance), step, composition=composition, delta_share=0)
    assert best_attack(epsilon, step, allowed) <= chance
    if composition == "basic":
        assert best_attack(epsilon, step, allowed) == 0


def test_the_attack_catches_a_filter_that_admits_too_much() -> None:
    epsilon, chance, step = F(1), F(1, 100), F(1, 8)
    honest = rule(ApproxDP(epsilon, chance), step, delta_share=0)

    def generous(small: int, large: int) -> bool:
        return honest((small + 1) // 2, (large + 1) // 2)

    assert best_attack(epsilon, step, generous) > chance


def test_pure_budgets_are_spent_exactly() -> None:
    budget = Filter(PureDP(1))
    assert admitted(budget, Pure(F(1, 3))) == 3
    assert (budget.spent, budget.remaining) == (PureDP(1), PureDP(0))
    assert budget.fits(Pure(F(0)))


def test_concentrated_budgets_are_spent_exactly() -> None:
    budget = Filter(ZCDP("0.1"))
    assert admitted(budget, NOISE) == 20
    assert (budget.spent, budget.remaining) == (ZCDP("0.1"), ZCDP(0))


def test_divergence_budgets_hold_at_every_order_given() -> None:
    assert admitted(Filter(RenyiDP((4,), ("0.2",))), NOISE) == 10
    assert admitted(Filter(RenyiDP((2, 4), ("0.05", 1))), NOISE) == 5


def test_a_refusal_changes_nothing_and_says_what_was_asked() -> None:
    budget = Filter(PureDP(1))
    budget.charge(Pure(F(3, 4)))
    with pytest.raises(BudgetExceeded, match="noise") as caught:
        budget.charge(Pure(F(1, 2)))
    assert (caught.value.asked, caught.value.remaining) == (PureDP("0.5"), PureDP("0.25"))
    assert budget.spent == PureDP("0.75")
    budget.charge(Pure(F(1, 4)))


def test_an_event_that_cannot_be_accounted_changes_nothing() -> None:
    budget = Filter(PureDP(1))
    with pytest.raises(NotAccountable):
        budget.charge(NOISE)
    with pytest.raises(NotAccountable):
        Filter(ApproxDP(1, "1e-6"), composition="basic").charge(NOISE)
    assert budget.spent == PureDP(0)


def test_what_only_a_used_up_way_of_counting_could_add_up_does_not_fit() -> None:
    budget = Filter(ApproxDP(3, "1e-6"))
    budget.charge(Pure(F(1)))
    budget.charge(Pure(F(19, 10)))
    assert not budget.fits(NOISE)
    with pytest.raises(BudgetExceeded):
        budget.charge(NOISE)
    assert budget.fits(Pure(F(1, 10)))


def test_one_approximate_filter_serves_large_pure_and_many_small_events() -> None:
    budget = ApproxDP(3, "1e-6")
    assert admitted(Filter(budget), Pure(F(1))) == 3
    assert admitted(Filter(budget), Laplace(F(100), 1)) > 3000
    assert admitted(Filter(budget), NOISE) == admitted(Filter(budget, composition="zcdp"), NOISE) > 30
    assert admitted(Filter(budget), PoissonSampled(F(1, 100), Gaussian(F(10**6), F(10**6)))) > 50


def test_the_filter_admits_nearly_what_a_list_fixed_beforehand_could_have() -> None:
    number = admitted(Filter(ApproxDP(1, "1e-6"), delta_share=0), NOISE)
    assert approximate(Repeated(NOISE, number), "1e-6").epsilon <= 1
    assert approximate(Repeated(NOISE, 2 * number), "1e-6").epsilon > 1


def test_pure_and_gaussian_events_share_one_budget() -> None:
    budget = Filter(ApproxDP(3, "1e-6"))
    budget.charge(Pure(F(1, 2)))
    before = admitted(budget, NOISE)
    assert 0 < before < admitted(Filter(ApproxDP(3, "1e-6")), NOISE)
    assert not budget.fits(Pure(F(1)))


def test_events_with_a_delta_use_the_share_set_aside() -> None:
    event = Approximate(F(1, 100), F(1, 10**7))
    assert admitted(Filter(ApproxDP(3, "1e-6")), event) == 5
    assert admitted(Filter(ApproxDP(3, "1e-6"), delta_share="0.25"), event) == 2
    begun = Filter(ApproxDP(3, "1e-6"), delta_share=0)
    begun.charge(Nothing())
    assert admitted(begun, event) == 0
    assert admitted(Filter(ApproxDP(3, "1e-6"), composition="basic"), event) == 10
    with pytest.raises(BudgetExceeded) as caught:
        begun.charge(event)
    assert caught.value.asked == ApproxDP(0, F(1, 10**7))


def test_the_first_event_may_take_the_whole_budget_by_its_exact_loss() -> None:
    whole = Gaussian(gaussian_sigma(1, "1e-6", 10**6) ** 2, F(10**6))
    budget = Filter(ApproxDP(1, "1e-6"))
    assert budget.remaining == ApproxDP(1, "1e-6")
    assert admitted(budget, whole) == 1
    assert F("0.999") < budget.spent.epsilon <= 1
    assert not budget.fits(Pure(F(1, 1000)))
    assert Filter.revive(ApproxDP(1, "1e-6"), budget.state()).spent == budget.spent
    late = Filter(ApproxDP(1, "1e-6"))
    late.charge(Pure(F(1, 10**6)))
    assert not late.fits(whole)


@pytest.mark.parametrize("composition", ["renyi", "zcdp", "basic"])
def test_what_remains_fits_and_what_is_spent_is_within_the_budget(composition: str) -> None:
    budget = Filter(ApproxDP(2, "1e-6"), composition=composition)
    events = [Pure(F(1, 10)), Approximate(F(1, 20), F(1, 10**8)), Pure(F(1, 7)), Laplace(F(100), 3)] * 2
    for event in events:
        room = budget.remaining
        assert isinstance(room, ApproxDP)
        assert budget.fits(Approximate(room.epsilon, room.delta))
        budget.charge(event)
        spent = budget.spent
        assert isinstance(spent, ApproxDP)
        assert spent.epsilon <= 2
        assert spent.delta <= F(1, 10**6)
    assert "spent" in repr(budget)


def test_nothing_spent_reads_as_nothing() -> None:
    for loss in (PureDP(1), ZCDP(1), RenyiDP((2,), (1,)), ApproxDP(1, "1e-6")):
        assert float(getattr(Filter(loss).spent, "epsilon", 0)) == 0
    assert Filter(ApproxDP(1, "1e-6")).spent == ApproxDP(0, 0)


def test_delta_zero_is_a_pure_budget() -> None:
    budget = Filter(ApproxDP(1, 0))
    assert budget.composition == "basic"
    assert admitted(budget, Pure(F(1, 4))) == 4


def test_samples_for_different_neighbours_do_not_share_a_budget() -> None:
    budget = Filter(ApproxDP(3, "1e-6"))
    budget.charge(PoissonSampled(F(1, 100), Pure(F(1))))
    budget.charge(Pure(F(1, 10)))
    for call in (budget.fits, budget.charge):
        with pytest.raises(NotAccountable, match="neighbours"):
            call(FixedSizeSampled(1, 100, Pure(F(1))))


def test_threads_never_overspend() -> None:
    budget = Filter(PureDP(1))

    def attempt(_: int) -> int:
        try:
            budget.charge(Pure(F(1, 50)))
        except BudgetExceeded:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(200))) == 50
    assert budget.spent == PureDP(1)


def test_sums_of_many_awkward_fractions_stay_short() -> None:
    budget = Filter(PureDP(10))
    for i in range(2000):
        budget.charge(Laplace(F(1009 + i * 3571, 7), 1))
    spent = budget.spent
    assert isinstance(spent, PureDP)
    assert spent.epsilon >= sum(F(7, 1009 + i * 3571) for i in range(2000))
    assert spent.epsilon.denominator.bit_length() < 300


def test_a_low_order_favours_sampled_events() -> None:
    event = Repeated(PoissonSampled(F(1, 1000), Gaussian(F(10**6), F(10**6))), 100)
    low = admitted(Filter(ApproxDP(2, "1e-6"), order=12), event, limit=400)
    assert low > admitted(Filter(ApproxDP(2, "1e-6"), order=40), event, limit=400)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"composition": "advanced"}, "composition"),
        ({"delta_share": 1}, "delta_share"),
        ({"delta_share": -1}, "delta_share"),
        ({"delta_share": float("nan")}, "delta_share"),
        ({"order": 1}, "order"),
        ({"order": "two"}, "order"),
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Filter(ApproxDP(1, "1e-6"), **options)
    assert caught.value.argument == name


@pytest.mark.parametrize("budget", [1.0, None, (1, "1e-6"), zcdp])
def test_what_is_no_budget_is_refused(budget: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Filter(budget)
    assert caught.value.argument == "budget"


def test_other_impossible_filters_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        Filter(PureDP(1), composition="zcdp")
    with pytest.raises(InvalidArgument):
        Filter(ApproxDP(1, 0), composition="renyi")
    with pytest.raises(InvalidArgument):
        Filter(PureDP(1)).charge("laplace")

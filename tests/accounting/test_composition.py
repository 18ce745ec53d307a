"""The composition theorems agree with their formulas and with composing randomized responses outcome by outcome."""

from fractions import Fraction as F
from math import comb, exp, expm1, log, sqrt

import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.brute import SLACK, Table, delta, precisely, product, response
from tests.soak import third

from discreet.accounting import advanced, basic, heterogeneous, optimal
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ZCDP, ApproxDP, PureDP


@precisely
def responses(epsilon: F, k: int) -> tuple[Table, Table]:
    """k randomized responses by the number of answers that differ from the first side's truth."""
    p, q = response(epsilon)
    return (
        {i: comb(k, i) * p[0] ** (k - i) * p[1] ** i for i in range(k + 1)},
        {i: comb(k, i) * q[0] ** (k - i) * q[1] ** i for i in range(k + 1)},
    )


def test_counting_differing_answers_loses_nothing() -> None:
    p, q = response(F(1, 2))
    assert abs(delta(product(p, p, p), product(q, q, q), 1) - delta(*responses(F(1, 2), 3), 1)) < SLACK


@settings(max_examples=third(60), deadline=None)
@given(st.fractions(F(1, 1000), F(5)), st.integers(1, 30), st.fractions(F(1, 10**9), F(9, 10)))
def test_optimal_composition_is_exact(epsilon: F, k: int, slack: F) -> None:
    composed = optimal(epsilon, 0, k, slack).epsilon
    p, q = responses(epsilon, k)
    assert delta(p, q, composed) <= slack + SLACK
    if composed > 0:
        assert delta(p, q, composed * F(999, 1000)) > slack
    assert composed <= k * epsilon


def test_optimal_composition_of_ten_thousand_matches_an_independent_accountant() -> None:
    theirs = privacy_loss_distribution.from_privacy_parameters(
        privacy_loss_distribution.common.DifferentialPrivacyParameters(0.01, 0), value_discretization_interval=1e-4
    ).self_compose(10_000)
    ours = optimal("0.01", 0, 10_000, "1e-6")
    assert float(ours.epsilon) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), abs=1e-4)


def test_optimal_composition_of_approximate_mechanisms_adds_their_chance_to_fail() -> None:
    composed = optimal("0.1", "1e-8", 100, "1e-6")
    assert composed.epsilon == optimal("0.1", 0, 100, "1e-6").epsilon
    assert float(composed.delta) == pytest.approx(1 - (1 - 1e-8) ** 100 * (1 - 1e-6), rel=1e-7)
    assert composed.delta <= 100 * F(1, 10**8) + F(1, 10**6)


@pytest.mark.parametrize("k", [1, 7, 200])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.9])
def test_each_theorem_is_at_least_the_optimum(epsilon: float, k: int) -> None:
    best = optimal(epsilon, "1e-9", k, "1e-6").epsilon
    losses = [ApproxDP(epsilon, "1e-9")] * k
    assert basic(losses).epsilon >= best
    assert advanced(epsilon, "1e-9", k, "1e-6").epsilon >= best
    assert heterogeneous(losses, "1e-6").epsilon >= best


@given(st.floats(0.001, 1), st.integers(1, 1000), st.floats(1e-12, 0.5))
def test_advanced_composition_is_theorem_3_20(epsilon: float, k: int, slack: float) -> None:
    composed = advanced(epsilon, 1e-9, k, slack)
    assert float(composed.epsilon) == pytest.approx(
        sqrt(2 * k * log(1 / slack)) * epsilon + k * epsilon * expm1(epsilon), rel=1e-12
    )
    assert composed.delta == min(1, k * F("1e-9") + F(str(slack)))


def test_heterogeneous_composition_is_the_least_of_three_formulas() -> None:
    losses = [PureDP(F(i, 100)) for i in range(1, 11)]
    epsilons = [i / 100 for i in range(1, 11)]
    drift = sum(e * expm1(e) / (exp(e) + 1) for e in epsilons)
    squares = sum(e * e for e in epsilons)
    for slack in (1e-9, 0.01, 0.9):
        expected = min(
            sum(epsilons),
            drift + sqrt(2 * squares * log(1 / slack)),
            drift + sqrt(2 * squares * log(exp(1) + sqrt(squares) / slack)),
        )
        assert float(heterogeneous(losses, slack).epsilon) == pytest.approx(expected, rel=1e-12)


def test_basic_composition_adds_exactly() -> None:
    assert basic([PureDP("0.1"), ApproxDP("0.2", "0.3"), ApproxDP(0, "0.4")]) == ApproxDP("0.3", "0.7")
    assert basic([ApproxDP(0, "0.6"), ApproxDP(0, "0.6")]) == ApproxDP(0, 1)
    assert basic([]) == ApproxDP(0, 0)


def test_the_ends_of_the_range() -> None:
    assert optimal(1, 0, 5, 0) == ApproxDP(5, 0)
    assert optimal(1, 0, 0, "0.1") == ApproxDP(0, "0.1")
    assert optimal(0, 0, 9, "0.1").epsilon == 0
    assert optimal(1, 0, 5, 1) == ApproxDP(0, 1)
    assert optimal(1, 1, 5, "0.1").delta == 1
    assert advanced(1, 0, 5, 0) == ApproxDP(5, 0)
    assert heterogeneous([], "0.1") == ApproxDP(0, "0.1")
    assert optimal(1000, 0, 3, "1e-9").epsilon <= 3000
    assert optimal("1e-30", 0, 3, "1e-40").epsilon <= F(3, 10**30) + SLACK


def test_composing_one_mechanism_too_few_is_caught() -> None:
    p, q = responses(F(1, 2), 10)
    assert delta(p, q, optimal(F(1, 2), 0, 9, "1e-3").epsilon) > F(1, 1000)
    assert delta(p, q, optimal(F(1, 2), 0, 10, "1e-3").epsilon) <= F(1, 1000) + SLACK


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1, 0, 3, "0.1"), "epsilon"),
        ((float("nan"), 0, 3, "0.1"), "epsilon"),
        ((float("inf"), 0, 3, "0.1"), "epsilon"),
        ((1, -0.1, 3, "0.1"), "delta"),
        ((1, 1.1, 3, "0.1"), "delta"),
        ((1, 0, -3, "0.1"), "k"),
        ((1, 0, 2.5, "0.1"), "k"),
        ((1, 0, True, "0.1"), "k"),
        ((1, 0, 3, -1), "slack"),
        ((1, 0, 3, 2), "slack"),
        ((1, 0, 3, None), "slack"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: tuple[object, ...], name: str) -> None:
    for theorem in (advanced, optimal):
        with pytest.raises(InvalidArgument) as caught:
            theorem(*arguments)
        assert caught.value.argument == name


def test_advanced_composition_refuses_what_it_cannot_say() -> None:
    with pytest.raises(InvalidArgument, match="optimal"):
        advanced(10**9, 0, 3, "0.1")


@pytest.mark.parametrize("junk", [ZCDP(1), 1.0, None])
def test_only_pure_and_approximate_losses_are_composed(junk: object) -> None:
    with pytest.raises(InvalidArgument):
        basic([junk])
    with pytest.raises(InvalidArgument):
        heterogeneous([PureDP(1), junk], "0.1")

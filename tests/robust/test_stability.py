"""The test of stability: exactly (ε, δ) for all distances, as good as can be, and ⊥ as an outcome."""

from fractions import Fraction
from itertools import pairwise

import pytest

from discreet import ApproxDP, InvalidArgument
from discreet.core.rounding import exp_down, exp_up
from discreet.noise import Entropy
from discreet.robust import StabilityTest, Unstable

BUDGETS = [("1", "1e-6"), ("0.1", "1e-9"), ("5", "0.01"), ("0.5", "0.3"), ("20", "1e-12")]


def law_is_private(chances: list[Fraction], epsilon: Fraction, delta: Fraction) -> bool:
    """Pass or not, of distances one apart; what passes at 0 may be anything, so it counts whole."""
    grown = exp_down(epsilon)
    return chances[0] <= delta and all(
        a <= grown * b + delta
        and b <= grown * a + delta
        and 1 - a <= grown * (1 - b) + delta
        and 1 - b <= grown * (1 - a) + delta
        for a, b in pairwise(chances)
    )


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_chances_are_private_exactly(epsilon: str, delta: str) -> None:
    test = StabilityTest(epsilon, delta)
    chances = [test.chance(k) for k in range(test.enough + 3)]
    assert law_is_private(chances, test.epsilon, test.delta)
    assert chances == sorted(chances)
    assert chances[-1] == 1


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_no_chance_could_be_larger(epsilon: str, delta: str) -> None:
    """One of the two inequalities holds with nothing to spare, up to the rounding of the fixed-point numbers."""
    test = StabilityTest(epsilon, delta)
    grown, given, slack = exp_up(test.epsilon), test.delta, Fraction(1, 2**50)
    for k in range(test.enough):
        a, b = test.chance(k), test.chance(k + 1)
        assert b >= min(grown * a + given, 1 - (1 - a - given) / grown, Fraction(1)) * (1 - slack)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS[:3])
def test_the_book_is_private_and_never_better(epsilon: str, delta: str) -> None:
    book, best = StabilityTest(epsilon, delta, "book"), StabilityTest(epsilon, delta)
    chances = [book.chance(k) for k in range(book.threshold + 30)]
    assert law_is_private(chances, book.epsilon, book.delta)
    assert all(best.chance(k) >= chance * (1 - Fraction(1, 2**50)) for k, chance in enumerate(chances))
    assert best.needed("0.05") <= book.needed("0.05")


def test_a_threshold_without_epsilon_is_caught() -> None:
    """As it is printed, ln(1/δ) instead of ln(1/δ)/ε: data with no distance at all passes far too often."""
    epsilon, delta = Fraction(1, 4), Fraction(1, 10**6)
    honest = StabilityTest(epsilon, delta, "book")
    printed = StabilityTest(epsilon, exp_down(-epsilon * 14), "book")
    assert printed.threshold == 14
    assert law_is_private([honest.chance(k) for k in range(90)], epsilon, delta)
    assert not law_is_private([printed.chance(k) for k in range(90)], epsilon, delta)


def test_a_step_too_generous_is_caught() -> None:
    test = StabilityTest(1, "1e-6")
    assert not law_is_private([test.chance(k) for k in range(1, 28)], test.epsilon, test.delta)


@pytest.mark.parametrize("rule", ["optimal", "book"])
def test_coins_follow_their_chances(rule: str) -> None:
    """2000 coins of chance p are off by six standard errors with probability below 1e-8, and the seed is fixed."""
    test, source = StabilityTest(1, "0.01", rule), Entropy.for_tests(1)
    for distance in (3, 4, 6):
        p = float(test.chance(distance))
        seen = sum(test.passes(distance, source) for _ in range(2000)) / 2000
        assert abs(seen - p) < 6 * (p * (1 - p) / 2000) ** 0.5 + 1e-9
    assert test.passes(10**9, source)


def test_needed_is_the_least_distance() -> None:
    for rule in ("optimal", "book"):
        test = StabilityTest(1, "1e-6", rule)
        least = test.needed("0.05")
        assert test.chance(least) >= Fraction(19, 20) > test.chance(least - 1)


def test_refusals_say_what_they_cost() -> None:
    refusal = Unstable(ApproxDP(1, "1e-6"))
    assert not refusal
    assert str(refusal) == "not stable enough to answer; this cost ε = 1, δ = 1e-6"


@pytest.mark.parametrize(
    ("argument", "values"),
    [("epsilon", (0, "1e-9", "1e-6")), ("delta", (1, 0, 0)), ("delta", (1, "1e-80", 0)), ("rule", (1, "1e-6", "best"))],
    ids=str,
)
def test_bad_parameters_are_refused(argument: str, values: tuple[object, ...]) -> None:
    epsilon, delta, rule = (1, *values[1:]) if argument != "epsilon" else (0, "1e-6", "optimal")
    with pytest.raises(InvalidArgument) as caught:
        StabilityTest(epsilon, delta, rule if argument == "rule" else "optimal")
    assert caught.value.argument == argument

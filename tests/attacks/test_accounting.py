"""What is charged is what the mechanism that runs costs: choices, thresholds, odometers and sparse vector."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm
from tests.attacks import faults
from tests.attacks.register import attack

from discreet import ZCDP, ApproxDP, InvalidArgument, mechanisms
from discreet.accounting import Odometer, account
from discreet.accounting.pld import distribution as pld
from discreet.core.events import (
    Approximate,
    BoundedRange,
    BoundedRanges,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    Repeated,
    from_json,
)
from discreet.mechanisms import Exponential, PermuteAndFlip, SparseVector, sparse_vector
from discreet.noise import Entropy, discrete_laplace
from discreet.robust import StabilityTest

ALARM = 1e-9
"""How often each test may accuse what is right."""


def odds_of_the_second(kind: Any, gap: int) -> float:
    """The exact law on two candidates of which the first is better by `gap`, at ε = 1."""
    behind = math.exp(-gap / 2)
    return behind / (1 + behind) if kind is Exponential else behind / 2


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip], ids=["exponential", "permute and flip"])
@attack(20, finds=[faults.charged_as_exponential], kind=PermuteAndFlip)
def test_a_choice_is_charged_what_it_costs_and_no_other(kind: Any) -> None:
    """Scores (0, 0) and (1, −1) are neighbours; the divergences of the two laws are computed from their formulas."""
    mechanism = kind(1)
    chosen = sum(mechanism.release([1, -1], entropy=Entropy.for_tests(seed)).values for seed in range(1000))
    expected = odds_of_the_second(kind, 2)
    assert binom.isf(1 - ALARM, 1000, expected) <= chosen <= binom.isf(ALARM, 1000, expected)
    far, near = np.array([1 - expected, expected]), np.array([0.5, 0.5])
    rho = float(account(mechanism.events, ZCDP).rho)
    for order in (1.001, 1.5, 2.0, 4.0, 16.0):
        for one, other in ((far, near), (near, far)):
            divergence = math.log(np.sum(one**order * other ** (1 - order))) / (order - 1)
            assert divergence <= rho * order


@attack(21, finds=[faults.threshold_reached])
def test_a_distance_of_zero_passes_no_more_often_than_delta() -> None:
    """At ε = 1 and δ = 1/20 the noise is above 2 in 3.6 % of draws, and at 2 or above in 9.9 %."""
    test, tries = StabilityTest(Fraction(1), Fraction(1, 20), "book"), 3000
    source = Entropy.for_tests(1)
    assert sum(test.passes(0, source) for _ in range(tries)) <= binom.isf(ALARM, tries, 1 / 20)


@attack(25, finds=[faults.reading_for_one_moment])
def test_an_analyst_who_stops_at_the_best_moment_does_not_beat_the_odometer() -> None:
    """Losses of Gaussian noise are Gaussian, N(ρ, 2ρ) for each event; here 64 events of ρ = 1/50.

    At the end the reading is above the exact ε of so many events, where Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2) = δ for
    μ² = 2·64ρ; and whoever stops when the loss has passed the reading, stops with chance δ at most.
    """
    steps, rho, delta, tries = 64, 1 / 50, 0.05, 20_000
    odometer, readings = Odometer("0.05"), []
    for _ in range(steps):
        odometer.charge(Gaussian(Fraction(25 * 10**6), Fraction(10**6)))
        readings.append(float(odometer.loss.epsilon))
    mu, epsilon = math.sqrt(2 * steps * rho), readings[-1]
    exceeding = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert exceeding <= delta
    steps_lost = np.random.default_rng(7).normal(rho, math.sqrt(2 * rho), (tries, steps))
    passed = (np.cumsum(steps_lost, axis=1) > readings).any(axis=1).sum()
    assert passed <= binom.isf(ALARM, tries, delta)


def laplace(scale: Fraction, reach: int) -> np.ndarray:
    """P(−reach), …, P(reach) of discrete Laplace noise, from its formula."""
    odds = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale))
    return odds / odds.sum()


def law(mechanism: SparseVector, counts: Sequence[int]) -> dict[tuple[bool, ...], float]:
    """How likely each outcome of a run is: a sum over the noise of the threshold, 40 scales far."""
    reach = int(40 * max(mechanism.threshold_scale, mechanism.question_scale)) + 1
    bars = laplace(mechanism.threshold_scale, reach)
    at_least = np.cumsum(laplace(mechanism.question_scale, 2 * reach)[::-1])[::-1]
    places = np.arange(-reach, reach + 1) + mechanism.threshold + 2 * reach
    above = [at_least[np.clip(places - count, 0, 4 * reach)] for count in counts]
    found: dict[tuple[bool, ...], float] = {}

    def go_on(said: tuple[bool, ...], odds: np.ndarray) -> None:
        if len(said) == len(counts) or sum(said) == mechanism.positives:
            found[said] = float(odds.sum())
            return
        go_on((*said, True), odds * above[len(said)])
        go_on((*said, False), odds * (1 - above[len(said)]))

    go_on((), bars)
    return found


NEIGHBOURS = [([0, 1], [1, 0]), ([0] * 7, [1] * 7), ([0] * 8, [1] * 4 + [-1] * 4)]


@pytest.mark.parametrize("positives", [1, 4], ids=["one", "four"])
@attack(26, finds=[faults.questions_without_noise, faults.threshold_without_noise], positives=1)
@attack(26, finds=[faults.questions_as_if_one_were_above], positives=4)
def test_no_outcome_of_sparse_vector_is_likelier_than_its_price_allows(positives: int) -> None:
    """Whether the auditor finds the published versions that break this: tests/statistical/test_audit_zoo.py."""
    mechanism = SparseVector.for_epsilon(1, 0, positives)
    for d, d_prime in NEIGHBOURS:
        one, other = law(mechanism, d), law(mechanism, d_prime)
        assert sum(one.values()) == pytest.approx(1, abs=1e-9)
        ratios = [abs(math.log(one[said] / other[said])) for said in one]
        assert max(ratios) <= float(mechanism.loss.epsilon) + 1e-6


@attack(26, finds=[faults.no_end_to_the_run, faults.value_as_it_was_compared])
def test_a_run_of_sparse_vector_is_the_one_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh noise of the scales above for the threshold, each question and each value; an end after so many above."""
    drawn = []

    def watched(scale: Fraction, *size: int, entropy: Entropy) -> Any:
        noise = discrete_laplace(scale, *size, entropy=entropy)
        drawn.append((scale, noise))
        return noise

    monkeypatch.setattr(sparse_vector, "discrete_laplace", watched)
    mechanism = SparseVector.for_epsilon(1, 10, 3, value_share="0.5")
    said = mechanism.release([-(10**6), 10**6] * 10).values
    assert [answer.above for answer in said] == [False, True] * 3
    (first, _), (second, noise), (third, fresh) = drawn
    assert (first, second, third) == (mechanism.threshold_scale, mechanism.question_scale, mechanism.value_scale)
    assert noise.size == 20
    assert [answer.value for answer in said if answer.above] == (10**6 + fresh).tolist()


LITTLE = Fraction(1, 1000)
LEAST = [
    Laplace(Fraction(1000), 1),
    Gaussian(Fraction(1000), Fraction(1)),
    Gaussian(Fraction(1000), Fraction(1), 50),
    Pure(LITTLE),
    BoundedRange(LITTLE),
    BoundedRanges(LITTLE, 1),
    BoundedRanges(LITTLE**2, 50),
    Approximate(LITTLE, Fraction(0)),
    PoissonSampled(LITTLE, Gaussian(Fraction(1), Fraction(1))),
    FixedSizeSampled(1, 1000, Laplace(Fraction(1), 1)),
    Repeated(PoissonSampled(LITTLE, Laplace(Fraction(1), 1)), 1),
]
"""Events with the least parameters that say that something is used."""


@attack(45, finds=[faults.fractions_of_a_step])
def test_whatever_is_used_is_charged_for() -> None:
    """100 times 1/√2 of a deviation is 7 deviations: at δ = 10⁻⁶ no ε below 20 holds for numbers that move so."""
    for squared in (Fraction(1, 2), "0.999999", 1e-300):
        with pytest.raises(InvalidArgument, match="whole steps"):
            account([Gaussian(Fraction(1), squared)] * 100, ApproxDP, delta="1e-6")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="squared_sensitivity"):
            mechanisms.Gaussian(Fraction(1), squared)  # type: ignore[arg-type]
    stored = {"kind": "gaussian", "variance": "1", "squared_sensitivity": "1/2", "dimension": 1}
    assert from_json(stored) == Gaussian(Fraction(1), Fraction(1))
    assert account([from_json(stored)] * 100, ApproxDP, delta="1e-6").epsilon > 20
    for event in LEAST:
        assert account([event] * 10**4, ApproxDP, delta="1e-9").epsilon > 0
        if not isinstance(event, BoundedRanges):
            assert pld.epsilon(Repeated(event, 10**4), Fraction(1, 10**9)) > 0

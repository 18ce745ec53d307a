"""The PLD accountant against privacy curves with a closed form, and against dp-accounting's brackets."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from flint import arb, ctx

from discreet.accounting.pld import distribution as pld
from discreet.core.events import (
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    Repeated,
)

STEPS = Fraction(2**40)
"""A grid so fine that the discrete laws agree with the continuous ones to 20 digits."""
DELTAS = ("0.5", "0.01", "1e-6", "1e-12", "1e-30", "1e-100")
EPSILONS = ("0", "1e-6", "1e-3", "0.1", "1", "5", "50")
CLOSE = 1e-4
FAINT = 1e-270
"""Below this a δ is beyond what double precision resolves, and only its bound is checked."""


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    with ctx.workprec(512):
        yield


def number(value: Fraction | str) -> arb:
    exact = Fraction(value)
    return arb(exact.numerator) / exact.denominator


def normal_tail(x: arb) -> arb:
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu: arb, factor: arb) -> arb:
    """δ at e^ε = factor for N(μ, 1) against N(0, 1)."""
    epsilon = factor.log()
    return normal_tail(epsilon / mu - mu / 2) - factor * normal_tail(epsilon / mu + mu / 2)


def gaussian(mu: str, dimension: int = 1) -> Gaussian:
    return Gaussian((STEPS / Fraction(mu)) ** 2, STEPS**2, dimension)


def bracketed(answer: Fraction, truth: arb, close: float) -> bool:
    exact = number(answer)
    return bool(exact >= truth) and bool(exact <= truth * (1 + close))


@pytest.mark.parametrize("mu", ["1e-6", "1e-2", "0.3", "1", "6", "40"])
def test_gaussian_curve(mu: str) -> None:
    loss = pld.privacy_loss(gaussian(mu))
    for text in EPSILONS:
        truth = gaussian_delta(number(mu), number(text).exp())
        if truth > FAINT:
            assert bracketed(loss.delta(text), truth, 10 * CLOSE), text
    for text in DELTAS:
        # ε(δ) is right when δ just below ε is above δ, and at ε not.
        found = number(loss.epsilon(text))
        assert gaussian_delta(number(mu), found.exp()) <= number(text)
        assert found == 0 or gaussian_delta(number(mu), (found * (1 - CLOSE)).exp()) > number(text), text


def test_gaussians_add_in_squares() -> None:
    event = Composed((gaussian("0.6"), Repeated(gaussian("0.2", 7), 16)))
    assert bracketed(pld.delta(event, 1), gaussian_delta(arb(1), arb(1).exp()), 10 * CLOSE)


@pytest.mark.parametrize("top", ["1e-6", "0.1", "1", "50"])
def test_laplace_curve_with_a_huge_sensitivity(top: str) -> None:
    moved = 2**40
    loss = pld.privacy_loss(Laplace(moved / Fraction(top), moved))
    for share in (0, Fraction(1, 2), Fraction(99, 100)):
        level = share * Fraction(top)
        truth = -((number(level) - number(top)) / 2).expm1()
        assert bracketed(loss.delta(level), truth, 10 * CLOSE)
    assert loss.delta(top) == 0
    assert loss.epsilon(0) == Fraction(top)


@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 1000), ("1", 40), ("1e-6", 500), ("10", 7)])
def test_coins_have_the_optimal_composition(epsilon: str, count: int) -> None:
    """Binomial sums (Kairouz, Oh, Viswanath 2015); on its own lattice this composition loses nothing to the grid."""
    loss = pld.privacy_loss(Repeated(Pure(Fraction(epsilon)), count))
    size = number(epsilon)
    truth_teller = 1 / (1 + (-size).exp())
    for level in (Fraction(0), count * Fraction(epsilon) / 10, count * Fraction(epsilon) / 2):
        lies = [i for i in range(count + 1) if (count - 2 * i) * Fraction(epsilon) > level]
        gains = (
            math.comb(count, i)
            * (truth_teller ** (count - i) * (1 - truth_teller) ** i)
            * -(number(level) - (count - 2 * i) * size).expm1()
            for i in lies
        )
        truth = sum(gains, arb(0))
        if truth > FAINT:
            assert bracketed(loss.delta(level), truth, 1e-6)


@pytest.mark.parametrize("rate", ["1e-4", "0.3", "0.999"])
def test_one_sampled_gaussian(rate: str) -> None:
    """δ(ε) is γ·δ_μ at (e^ε − 1 + γ)/γ for removal, which is the worse direction for ε ≥ 0."""
    share = number(rate)
    loss = pld.privacy_loss(PoissonSampled(Fraction(rate), gaussian("1.5")))
    for text in EPSILONS[:-1]:
        truth = share * gaussian_delta(number("1.5"), (number(text).exp() - 1 + share) / share)
        if truth > FAINT:
            assert bracketed(loss.delta(text), truth, 10 * CLOSE), text


def test_fixed_size_sampling_of_a_gaussian() -> None:
    """One fixed-size sample has, for ε ≥ 0, the curve of a Poisson sample."""
    fixed, poisson = FixedSizeSampled(3, 100, gaussian("2")), PoissonSampled(Fraction(3, 100), gaussian("2"))
    for text in ("0", "0.5", "2"):
        assert float(pld.delta(fixed, text)) == pytest.approx(float(pld.delta(poisson, text)), rel=1e-4)
    # Composed, it costs more than a Poisson sample: its losses are large in both directions at once.
    assert pld.epsilon(Repeated(fixed, 50), "1e-6") > pld.epsilon(Repeated(poisson, 50), "1e-6")


def peer_bracket(losses: list[tuple[str, float, float, int]], delta: float) -> tuple[float, float]:
    """dp-accounting's lower and upper estimates of ε for (kind, noise, sampling rate, count)."""
    ends = []
    for pessimistic in (False, True):
        whole = peer.identity(value_discretization_interval=2e-4, pessimistic_estimate=pessimistic)
        for kind, noise, rate, count in losses:
            make = peer.from_gaussian_mechanism if kind == "gaussian" else peer.from_laplace_mechanism
            part = make(noise, sampling_prob=rate, value_discretization_interval=2e-4, pessimistic_estimate=pessimistic)
            whole = whole.compose(part.self_compose(count))
        ends.append(whole.get_epsilon_for_delta(delta))
    return ends[0], ends[1]


@pytest.mark.parametrize(
    "losses",
    [
        [("gaussian", 1.0, 0.01, 1000)],
        [("gaussian", 4.0, 1.0, 8), ("laplace", 5.0, 1.0, 6)],
        [("laplace", 2.0, 0.1, 30)],
        [("gaussian", 2.0, 0.05, 50), ("laplace", 10.0, 1.0, 4), ("laplace", 3.0, 0.2, 5)],
    ],
)
def test_peer_agrees(losses: list[tuple[str, float, float, int]]) -> None:
    logging.disable(logging.WARNING)
    parts: list[Event] = []
    for kind, noise, rate, count in losses:
        scale = Fraction(noise) * STEPS
        inner: Event = Gaussian(scale**2, STEPS**2) if kind == "gaussian" else Laplace(scale, int(STEPS))
        parts.append(Repeated(PoissonSampled(Fraction(rate), inner), count))
    low, high = peer_bracket(losses, 1e-6)
    found = float(pld.epsilon(Composed(tuple(parts)), "1e-6"))
    assert low <= found <= high * 1.001
    # Their estimates are some way apart; ours is at the tight end, where their pessimistic one is as well.
    assert found >= high * 0.999

"""An odometer's reading holds at all times at once: independent accountants and a clever stopper agree."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction as F
from math import log, sqrt

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from discreet.accounting import Odometer, approximate, epsilon_at
from discreet.core.errors import InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    Repeated,
)
from discreet.core.losses import ZCDP, ApproxDP

STEP = Gaussian(F(10**6), F(10**4))
"""Gaussian noise of ten sensitivities: each costs ρ = 1/200."""


@pytest.mark.parametrize("number", [1, 10, 100, 400])
def test_the_reading_is_above_an_independent_accountant_but_not_by_much(number: int) -> None:
    odometer = Odometer("1e-6")
    odometer.charge(Repeated(STEP, number))
    theirs = PLDAccountant(value_discretization_interval=1e-3)
    theirs.compose(dp_accounting.GaussianDpEvent(10.0), number)
    exact = theirs.get_epsilon(1e-6)
    assert exact * 0.99 < float(odometer.loss.epsilon) < exact * 1.5


def test_the_reading_is_above_what_a_fixed_list_costs_for_every_kind_of_event() -> None:
    sampled = PoissonSampled(F(1, 100), Gaussian(F(2**20), F(2**20)))
    odometer = Odometer("1e-5")
    run: list[Event] = []
    for event in [STEP, Laplace(F(100), 3), sampled, Pure(F(1, 20))] * 3:
        odometer.charge(event)
        run.append(event)
        assert odometer.loss.epsilon >= approximate(Composed(tuple(run)), "1e-5").epsilon
        assert odometer.loss.delta == F(1, 10**5)


def readings(chance: str, steps: int) -> np.ndarray:
    odometer = Odometer(chance)
    result = []
    for _ in range(steps):
        odometer.charge(STEP)
        result.append(float(odometer.loss.epsilon))
    return np.array(result)


def test_stopping_at_the_worst_moment_does_not_beat_the_reading() -> None:
    """The loss of Gaussian noise is itself Gaussian, N(ρ, 2ρ) for each event. The analyst stops when it has passed the
    reading, which it ever does with chance at most δ = 0.05. By Hoeffding, more than δn + √(n·ln(1/β)/2) of n = 20 000
    interactions do so with probability at most β = 1e-9. A bound that is right only at a time fixed beforehand is
    passed far more often."""
    chance, n, steps, rho = 0.05, 20_000, 200, 1 / 200
    generator = np.random.default_rng(7)
    losses = np.cumsum(rho + sqrt(2 * rho) * generator.standard_normal((n, steps)), axis=1)
    allowed = chance * n + sqrt(n * log(1e9) / 2)
    passed = (losses > readings("0.05", steps)).any(axis=1).sum()
    assert passed <= allowed
    times = np.arange(1, steps + 1)
    fixed = rho * times + 1.6449 * np.sqrt(2 * rho * times)
    assert (losses > fixed).any(axis=1).sum() > allowed


def test_the_reading_is_not_idle() -> None:
    """A reading 40 % lower would be passed too often, at a stopping time near the best order's own."""
    chance, n, steps, rho = 0.05, 20_000, 200, 1 / 200
    generator = np.random.default_rng(8)
    losses = np.cumsum(rho + sqrt(2 * rho) * generator.standard_normal((n, steps)), axis=1)
    low = 0.6 * readings("0.05", steps)
    assert (losses > low).any(axis=1).mean() > chance


def test_pure_events_read_their_exact_sum_while_that_is_least() -> None:
    odometer = Odometer("1e-6")
    for _ in range(3):
        odometer.charge(Laplace(F(10), 1))
    assert odometer.loss == ApproxDP("0.3", "1e-6")
    odometer.charge(STEP)
    assert odometer.loss.epsilon > F(3, 10)
    many = Odometer("1e-6")
    many.charge(Repeated(Laplace(F(100), 1), 10_000))
    assert many.loss.epsilon < 10


def test_before_any_event_nothing_is_lost() -> None:
    assert Odometer("1e-6").loss == ApproxDP(0, "1e-6")


def test_events_with_a_delta_add_it_to_the_reading() -> None:
    odometer = Odometer("1e-6")
    odometer.charge(Repeated(Approximate(F(1, 10), F(1, 10**7)), 5))
    assert odometer.loss == ApproxDP("0.5", F(15, 10**7))


def test_charging_one_by_one_or_together_is_the_same() -> None:
    apart, together = Odometer("1e-6"), Odometer("1e-6")
    for _ in range(7):
        apart.charge(STEP)
    together.charge(Repeated(STEP, 7))
    assert apart.loss == together.loss


def test_one_order_is_its_line() -> None:
    odometer = Odometer("1e-6", orders=(11,))
    odometer.charge(STEP)
    assert float(odometer.loss.epsilon) == pytest.approx(11 / 200 + log(1e6) / 10, rel=1e-12)
    assert odometer.loss.epsilon > epsilon_at(ZCDP(F(1, 200)), "1e-6")


def test_threads_lose_no_charge() -> None:
    odometer = Odometer("1e-6", orders=(11,))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(odometer.charge, [STEP] * 64))
    expected = Odometer("1e-6", orders=(11,))
    expected.charge(Repeated(STEP, 64))
    assert odometer.loss == expected.loss


def test_a_refusal_changes_nothing() -> None:
    odometer = Odometer("1e-6")
    odometer.charge(PoissonSampled(F(1, 10), Pure(F(1))))
    before = odometer.loss
    for event in (FixedSizeSampled(1, 10, Pure(F(1))), Event()):
        with pytest.raises(NotAccountable):
            odometer.charge(event)
    with pytest.raises(InvalidArgument):
        odometer.charge(None)
    assert odometer.loss == before
    assert "ApproxDP" in repr(odometer)


@pytest.mark.parametrize("chance", [0, 1, -1, 2, float("nan"), None, True])
def test_bad_deltas_are_refused(chance: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Odometer(chance)
    assert caught.value.argument == "delta"


@pytest.mark.parametrize("orders", [(), (1,), (3, 2)])
def test_bad_orders_are_refused(orders: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Odometer("1e-6", orders=orders)
    assert caught.value.argument == "orders"

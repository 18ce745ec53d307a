"""Projected noise: never a larger error, half of it where queries outnumber records, and its bound."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

from discreet import InvalidArgument
from discreet.core.events import Laplace, Repeated
from discreet.noise import Entropy
from discreet.synopses import Attribute, Domain, Projection, Workload
from discreet.synopses.noisy_counts import Measurement, gaussian_rho

DOMAIN = Domain(tuple(Attribute(name, tuple(range(size))) for name, size in {"a": 6, "b": 5, "c": 4, "d": 3}.items()))
WORK = Workload.all_marginals(DOMAIN, 3) + Workload.ranges(DOMAIN, "a")


def records(size: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(size, rng.dirichlet(np.full(DOMAIN.size, 0.05)))


@settings(deadline=None, max_examples=third(20))
@given(
    st.integers(0, 10**9),
    st.integers(0, 3000),
    st.sampled_from(["0.05", "1", "10"]),
    st.sampled_from(["0", "1e-6"]),
    st.booleans(),
)
def test_projecting_never_makes_the_error_larger(seed: int, n: int, epsilon: str, delta: str, known: bool) -> None:
    x = records(n, seed)
    projection = Projection(workload=WORK, epsilon=epsilon, delta=delta, size=n if known else None)
    truth = WORK.answers(x)
    # The same words give the same noise to the mechanism alone, after the total was drawn.
    source = Entropy.for_tests(seed)
    projection.population.found(x, source)
    noisy = projection.mechanism.release(WORK.counts(x), entropy=source).values
    projected = projection.release(x, entropy=Entropy.for_tests(seed)).values.answers(WORK)
    assert ((projected - truth) ** 2).sum() <= ((noisy - truth) ** 2).sum() + 1e-6


def test_the_error_is_less_than_half_where_queries_outnumber_records() -> None:
    for n in (20, 100):
        for delta in ("0", "1e-6"):
            projection = Projection(workload=WORK, epsilon=1, delta=delta, size=n)
            x = records(n)
            truth = WORK.answers(x)
            noisy = projection.mechanism.release(WORK.counts(x), entropy=Entropy.for_tests(1)).values
            projected = projection.release(x, entropy=Entropy.for_tests(1)).values.answers(WORK)
            # In ℓ2: the root of the sum of squares.
            assert np.linalg.norm(projected - truth) <= np.linalg.norm(noisy - truth) / 2


def test_errors_stay_within_the_bound() -> None:
    # The bounds are far from tight: exceeding one in 20 runs has a chance far below 1e-9.
    for terms in ({"size": 200}, {}, {"size": 200, "delta": "1e-6"}, {"delta": "1e-6"}):
        projection = Projection(workload=WORK, epsilon=1, **terms)
        x = records(200, 3)
        for seed in range(5):
            synopsis = projection.release(x, entropy=Entropy.for_tests(seed)).values
            assert np.abs(synopsis.answers(WORK) - WORK.answers(x)).max() <= synopsis.accuracy(0.01)
    assert Projection(workload=WORK, epsilon=1, size=10).accuracy(0.05) < projection.accuracy(0.05)


def test_noise_is_for_how_far_one_unit_moves_the_counts() -> None:
    one = Projection(workload=WORK, epsilon=1, size=10)
    # A record is in one cell of each of the four marginals, and in up to 12 of the 21 ranges.
    assert one.mechanism.sensitivity == 16
    assert Projection(workload=WORK, epsilon=1, size=10, unit_weight=7).mechanism.sensitivity == 112
    assert Projection(workload=WORK, epsilon=1, size=10, changes=2).mechanism.sensitivity <= 32
    gaussian = Projection(workload=WORK, epsilon=1, delta="1e-6", size=10)
    assert gaussian.mechanism.squared_sensitivity == 16
    assert Fraction(99, 100) < gaussian.loss.epsilon <= 1
    halves = Workload.predicates(DOMAIN, [np.full(DOMAIN.size, 0.5)] * 3)
    assert Projection(workload=halves, epsilon=1, size=10).mechanism.scale == Fraction(3, 2) * 2**20


def test_the_noise_of_the_book_is_charged_as_composed_and_is_more_than_needed() -> None:
    book = Projection(workload=WORK, epsilon=1, delta="1e-6", size=10, noise="book")
    [event] = book.events
    assert isinstance(event, Repeated)
    assert isinstance(event.event, Laplace)
    assert event.count == len(WORK)
    assert float(event.event.scale) == pytest.approx(np.sqrt(8 * len(WORK) * np.log(1e6)))
    assert book.loss.epsilon < Fraction(1, 2)
    ours = Projection(workload=WORK, epsilon=1, delta="1e-6", size=10)
    assert ours.mechanism.sigma < book.mechanism.scale / 5


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        ({"noise": "staircase"}, "noise"),
        ({"noise": "gaussian"}, "delta"),
        ({"noise": "book"}, "delta"),
        ({"noise": "book", "delta": "1e-6", "epsilon": 3}, "epsilon"),
    ],
)
def test_bad_noise_is_refused(terms: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Projection(**{"workload": WORK, "epsilon": 1, **terms})
    assert caught.value.argument == name


def test_domains_too_large_are_refused_with_what_they_would_take() -> None:
    wide = Domain(tuple(Attribute(f"a{i}", tuple(range(10))) for i in range(8)))
    with pytest.raises(InvalidArgument, match=r"GB.*MWEM"):
        Projection(workload=Workload.all_marginals(wide, 1), epsilon=1)


def test_a_part_of_the_queries_is_measured_for_the_same_price_with_less_noise() -> None:
    rho = gaussian_rho(Fraction(1), Fraction(1, 10**6), 8)
    for budget in (rho, Projection(workload=WORK, epsilon=1, size=5).budget):
        measurement = Measurement(WORK, budget, sample=8)
        x, few = records(500), np.arange(8)
        reading = measurement.release(x, few, entropy=Entropy.for_tests(2))
        assert reading.deviation < measurement.release(x, np.arange(0, 300, 40), entropy=Entropy.for_tests(2)).deviation
        assert np.abs(reading.values - WORK.answers(x)[:8]).max() <= measurement.error(1e-9)
        with pytest.raises(InvalidArgument, match="larger sample"):
            measurement.release(x, np.arange(9))
        with pytest.raises(InvalidArgument, match="declare the sample"):
            Measurement(WORK, budget).release(x, few)

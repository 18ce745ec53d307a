"""Events are flattened without changing what they mean, and guarantees for different neighbours are never added up."""

from fractions import Fraction as F

import pytest

from discreet.accounting import account, approximate, pure, renyi
from discreet.accounting.flattening import neighbours, parts
from discreet.core.errors import NotAccountable
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
from discreet.core.losses import ApproxDP

NOISE = Laplace(F(3), 1)


def test_equal_leaves_are_counted_together() -> None:
    event = Repeated(Composed((NOISE, Repeated(Composed((NOISE, Pure(F(1)))), 2))), 10**9)
    assert dict(parts(event)) == {NOISE: 3 * 10**9, Pure(F(1)): 2 * 10**9}


def test_every_sample_drawn_counts() -> None:
    for sampled in (PoissonSampled(F(1, 2), NOISE), FixedSizeSampled(1, 2, NOISE)):
        assert parts(Composed((sampled, Repeated(sampled, 3), sampled))) == ((sampled, 5),)


@pytest.mark.parametrize(
    "free",
    [
        Nothing(),
        Composed(()),
        Repeated(NOISE, 0),
        Laplace(F(1), 0),
        Gaussian(F(1), F(0)),
        Pure(F(0)),
        Approximate(F(0), F(0)),
        PoissonSampled(F(0), NOISE),
        PoissonSampled(F(1, 2), Repeated(NOISE, 0)),
        FixedSizeSampled(0, 5, NOISE),
    ],
)
def test_what_loses_nothing_is_left_out(free: Event) -> None:
    assert parts(free) == ()


def test_a_sample_of_everything_is_no_sample() -> None:
    assert parts(PoissonSampled(F(1), NOISE)) == parts(FixedSizeSampled(4, 4, NOISE)) == ((NOISE, 1),)
    assert parts(Approximate(F(1), F(0))) == ((Pure(F(1)), 1),)


def test_the_inner_event_of_a_sample_is_flattened_too() -> None:
    event = PoissonSampled(F(1, 2), Composed((NOISE, NOISE, Nothing())))
    assert parts(event) == ((PoissonSampled(F(1, 2), Repeated(NOISE, 2)), 1),)


def test_nesting_as_deep_as_events_allow_is_no_problem() -> None:
    event: Event = NOISE
    for _ in range(64):
        event = Repeated(event, 1)
    assert parts(event) == ((NOISE, 1),)


@pytest.mark.parametrize(
    "mixed",
    [
        Composed((PoissonSampled(F(1, 2), NOISE), FixedSizeSampled(1, 2, NOISE))),
        PoissonSampled(F(1, 2), FixedSizeSampled(1, 2, NOISE)),
        FixedSizeSampled(1, 2, Composed((NOISE, PoissonSampled(F(1, 2), NOISE)))),
    ],
)
def test_samples_for_different_neighbours_are_not_composed(mixed: Event) -> None:
    for accountant in (pure, renyi, approximate):
        with pytest.raises(NotAccountable, match="neighbours"):
            accountant(mixed)
    with pytest.raises(NotAccountable, match="neighbours"):
        account(mixed, ApproxDP, delta="1e-6")


def test_the_neighbours_a_guarantee_is_for() -> None:
    assert neighbours(NOISE) is None
    assert neighbours(Composed((NOISE, PoissonSampled(F(1, 2), NOISE)))) == "add_remove"
    assert neighbours(FixedSizeSampled(1, 2, NOISE)) == "replace"

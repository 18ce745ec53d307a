"""Pure ε: sums of worst losses, and sampling by its exact formula."""

from fractions import Fraction as F
from itertools import combinations
from math import e, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounting.brute import SLACK, Table, laplace, largest_loss, mixture

from discreet.accounting import pure
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
from discreet.core.losses import PureDP


def test_losses_are_exact_rationals_and_add_up() -> None:
    event = Composed((Laplace(F(7), 3), Repeated(Pure(F(1, 3)), 6), BoundedRange(F(1, 10)), Approximate(F(1), F(0))))
    assert pure(event) == PureDP(F(3, 7) + 2 + F(1, 10) + 1)
    assert pure(Composed((Nothing(), Gaussian(F(1), F(0)), PoissonSampled(F(0), Gaussian(F(1), F(1)))))) == PureDP(0)


def test_laplace_loss_is_attained() -> None:
    assert abs(largest_loss(laplace(F(5, 2), 4, 4), laplace(F(5, 2), 0, 4)) - F(8, 5)) < SLACK


@given(st.fractions(F(1, 10**6), F(1), max_denominator=10**9), st.fractions(F(1, 10**9), F(50)))
def test_sampling_amplifies_by_the_formula_and_never_hurts(rate: F, epsilon: F) -> None:
    amplified = pure(PoissonSampled(rate, Pure(epsilon))).epsilon
    assert rate * epsilon <= amplified <= epsilon
    assert float(amplified) == pytest.approx(log(1 + float(rate) * (e ** float(epsilon) - 1)), rel=1e-6)
    if rate == F(1, 3):
        assert amplified == pure(FixedSizeSampled(1, 3, Pure(epsilon))).epsilon


def test_poisson_sampled_laplace_counts_match_the_formula_exactly() -> None:
    rate, scale = F(1, 4), F(3, 2)
    without, present = laplace(scale, 0, 2), laplace(scale, 2, 2)
    sampled = mixture([(1 - rate, without), (rate, present)])
    bound = pure(PoissonSampled(rate, Laplace(scale, 2))).epsilon
    assert abs(largest_loss(sampled, without) - bound) < SLACK


def test_fixed_size_samples_of_real_data_stay_within_the_formula() -> None:
    """The sum of 2 out of 5 bits plus noise, one bit replaced; all samples enumerated."""

    def release(data: tuple[int, ...]) -> Table:
        samples = list(combinations(data, 2))
        return mixture([(F(1, len(samples)), laplace(F(1), sum(sample), 2)) for sample in samples])

    bound = pure(FixedSizeSampled(2, 5, Laplace(F(1), 1))).epsilon
    seen = max(
        largest_loss(release((0, *rest)), release((1, *rest))) for rest in [(0, 0, 0, 0), (0, 1, 1, 1), (1, 1, 1, 1)]
    )
    assert bound * 8 / 10 < seen <= bound + SLACK


def test_nested_poisson_samples_are_one_sample() -> None:
    nested = PoissonSampled(F(1, 2), PoissonSampled(F(1, 3), Pure(F(1))))
    assert pure(nested) == pure(PoissonSampled(F(1, 6), Pure(F(1))))


def test_enormous_losses_are_handled() -> None:
    assert pure(PoissonSampled(F(1, 2), Pure(F(10**30)))) == PureDP(10**30)
    assert pure(Laplace(F(1, 10**6), 10**30)).epsilon == 10**36


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(F(1), F(1)),
        Approximate(F(1), F(1, 10)),
        PoissonSampled(F(1, 2), Gaussian(F(1), F(1))),
        Composed((Pure(F(1)), Gaussian(F(1), F(1)))),
        Event(),
    ],
)
def test_what_is_not_pure_is_refused_with_a_remedy(event: Event) -> None:
    with pytest.raises(NotAccountable, match="use approximate"):
        pure(event)


@pytest.mark.parametrize("junk", [None, 0.1, "laplace", PureDP(1)])
def test_what_is_not_an_event_is_refused(junk: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        pure(junk)
    assert caught.value.argument == "event"

"""Exact comparison of written-down distributions."""

import math
from fractions import Fraction

import pytest

from discreet.adversary import Comparison
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.rounding import exp_up


def geometric(centre: int, scale: int, reach: int) -> dict[int, Fraction]:
    """Discrete Laplace noise held at ±reach, from a rational e^(−1/scale)."""
    ratio = exp_up(Fraction(-1, scale))
    ends = ratio**reach / (1 + ratio)
    law = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-reach + 1, reach)}
    return {centre + k: chance for k, chance in law.items()} | {centre - reach: ends, centre + reach: ends}


def test_truncated_noise_has_holes_at_its_ends():
    pair = Comparison(geometric(0, 1, 5), geometric(1, 1, 5))
    assert set(pair.holes) == {-5, 6}
    assert pair.ratio is None
    assert pair.epsilon == math.inf
    assert not pair.satisfies(PureDP(100))
    assert pair.satisfies(ApproxDP(1, "0.006"))
    assert not pair.satisfies(ApproxDP(1, "0.004"))


def test_noise_clamped_to_public_ends_is_tight():
    def clamped(centre):
        law = geometric(centre, 2, 40)
        held = dict.fromkeys(range(-3, 4), Fraction(0))
        for k, chance in law.items():
            held[max(-3, min(3, k))] += chance
        return held

    pair = Comparison(clamped(0), clamped(1))
    assert pair.holes == ()
    assert pair.satisfies(PureDP("0.5"), tolerance="1e-6")
    assert not pair.satisfies(PureDP("0.499"), tolerance="1e-6")
    assert pair.epsilon == pytest.approx(0.5, rel=1e-6)


def test_delta_takes_the_worse_direction():
    pair = Comparison({0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)})
    assert pair.delta(0) == Fraction(1, 4)
    assert pair.delta(10) == Fraction(1, 4)
    assert Comparison(pair.q, pair.p).delta(10) == Fraction(1, 4)


def test_an_exact_pair_meets_its_exact_bound():
    pair = Comparison({"yes": "0.75", "no": "0.25"}, {"yes": "0.25", "no": "0.75"})
    assert pair.delta(0) == Fraction(1, 2)
    assert pair.satisfies(ApproxDP(0, "0.5"))
    assert not pair.satisfies(ApproxDP(0, "0.4999999"))


@pytest.mark.parametrize("law", [{0: Fraction(1, 2)}, {0: 2, 1: -1}, {}, {0: math.nan}])
def test_what_is_no_distribution_is_refused(law):
    with pytest.raises(InvalidArgument):
        Comparison(law, {0: 1})

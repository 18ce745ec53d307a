"""Regions hold the true pair, and tests state what they would catch."""

import numpy as np
import pytest

from discreet.adversary.auditing.claims import claimed_between
from discreet.adversary.auditing.foreign import Program, claimed, loaded
from discreet.adversary.auditing.neighbours import Numbers, worst_pair
from discreet.adversary.auditing.power import Terms
from discreet.adversary.auditing.regions import Region
from discreet.adversary.auditing.tradeoff import border
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.mechanisms import Gaussian, Laplace, NoisyMax


def holds(region: Region, p: float, q: float) -> bool:
    return any(low <= p and q <= high for low, high in region.corners)


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.2), (0.9, 0.001), (0.02, 0.01)], ids=str)
@pytest.mark.parametrize("rule", [Region.box, Region.joint], ids=["box", "joint"])
def test_the_true_pair_is_missed_no_more_often_than_stated(rule, p, q):
    """At α = 0.2 and 600 draws, 220 misses are ten deviations above the 120 allowed."""
    rng = np.random.default_rng(0)
    hits = zip(rng.binomial(300, p, 600).tolist(), rng.binomial(300, q, 600).tolist(), strict=True)
    missed = sum(not holds(rule(pair, 300, 0.2), p, q) for pair in hits)
    assert 3 < missed < 220


def test_a_joint_region_proves_more_where_both_rates_are_uncertain():
    hits = 60_000, 50_000
    assert Region.joint(hits, 100_000, 1e-9).epsilon() > Region.box(hits, 100_000, 1e-9).epsilon() > 0


@pytest.mark.parametrize("claim", [PureDP(1), ApproxDP(1, "0.01"), ZCDP("0.3")], ids=lambda claim: type(claim).__name__)
def test_what_would_be_caught_is_caught(claim):
    rng = np.random.default_rng(1)
    terms = Terms(50_000, 1e-9, float(getattr(claim, "delta", 0)))
    rate = 0.4
    least = terms.least_caught(claim, rate)
    for epsilon, expected in ((least, True), (0.6 * least, False)):
        other = (rate - terms.delta) * np.exp(-epsilon)
        draws = zip(rng.binomial(50_000, rate, 40).tolist(), rng.binomial(50_000, other, 40).tolist(), strict=True)
        caught = sum(terms.region(pair, (rate, other)).refutes(claim) for pair in draws)
        assert (caught >= 35) is expected


def test_a_border_is_what_the_guarantee_allows():
    allowed = dict(border(ApproxDP(1, "0.1"), points=11))
    assert allowed[0.1] == pytest.approx(0.1 * np.e + 0.1, abs=1e-6)
    assert allowed[1.0] == 1.0


def test_a_rate_must_be_a_probability():
    with pytest.raises(InvalidArgument, match="rate"):
        Terms(1000, 1e-9, 0.0).least_caught(PureDP(1), 0.0)


def test_the_pair_that_gives_most_away_is_found():
    rng = np.random.default_rng(0)

    def mean_of_positive(rows):
        return sum(row for row in rows if row > 0) / 2 + rng.laplace(0, 1)

    found, pair = worst_pair(mean_of_positive, Numbers(-8, 8, rows=2).pairs(), samples=4000, claim=PureDP(1))
    assert found.refuted
    assert {*pair[0], *pair[1]} >= {8}


def test_claims_are_read_off_mechanisms():
    class Measurement:
        output_measure = "ZeroConcentratedDivergence()"

        def map(self, distance):
            return distance / 2

        def __call__(self, data):
            return data

    class Approximate(Measurement):
        output_measure = "Approximate(MaxDivergence)"

        def map(self, distance):
            return (1.0, 1e-6)

    assert claimed(Measurement(), 1) == ZCDP("0.5")
    assert claimed(Approximate()) == ApproxDP(1, "1e-6")
    assert claimed(Laplace.for_epsilon(2)) == PureDP(2)
    assert claimed(len) is None


def test_claims_are_for_the_data_sets_at_hand():
    class Measurement:
        output_measure = "MaxDivergence"

        def __init__(self, input_metric):
            self.input_metric = input_metric

        def map(self, distance):
            return distance

    replaced, added = Numbers(0, 9, rows=3).pairs(), Numbers(0, 9, 3, "add_remove").pairs()
    rows = Measurement("SymmetricDistance()")
    assert (claimed_between(rows, replaced), claimed_between(rows, added)) == (PureDP(2), PureDP(1))
    assert claimed_between(Measurement("ChangeOneDistance()"), replaced) == PureDP(1)
    assert claimed_between(Measurement("AbsoluteDistance(f64)"), Numbers(0, 9, odd=True).pairs()) == PureDP(9)
    assert claimed_between(Measurement("L1Distance(i32)"), [([0, 1], [2, 5])]) == PureDP(6)
    assert 5 < claimed_between(Measurement("L2Distance(f64)"), [([0, 1], [3, 5])]).epsilon < 5.01
    assert claimed_between(Measurement("of another kind"), replaced) is None


@pytest.mark.parametrize("noise", [Laplace.for_epsilon(1), Gaussian.for_zcdp(1)], ids=["laplace", "gaussian"])
def test_a_pair_beyond_the_sensitivity_is_no_evidence(noise):
    assert claimed_between(noise, [(0, 1), (0, float("nan"))]) == noise.loss
    for pair in ((0, 100), ([1, 2], [1, 2, 3]), ([0, 0], [1, 1])):
        with pytest.raises(InvalidArgument, match="at most 1 apart"):
            claimed_between(noise, [(0, 1), pair])


def test_scores_beyond_the_sensitivity_are_no_evidence():
    assert claimed_between(NoisyMax(1, sensitivity=2), [([0, 0], [2, 2])]) == PureDP(1)
    with pytest.raises(InvalidArgument, match="at most 2 apart"):
        claimed_between(NoisyMax(1, sensitivity=2), [([0, 0], [0, 3])])


def test_an_option_that_a_mechanism_does_not_take_is_named():
    with pytest.raises(InvalidArgument, match="NoisyMax takes"):
        loaded("discreet.mechanisms:NoisyMax", {"epsilon": 1, "candidates": 3})


def test_a_program_that_hangs_is_stopped():
    with pytest.raises(InvalidArgument, match="seconds"):
        Program("sleep 60", seconds=0.2)(0, 3)

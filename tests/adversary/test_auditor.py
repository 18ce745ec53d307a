"""What `audit` takes, what it says, and that what it says is careful."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.adversary import Audit, audit
from discreet.adversary.auditing.regions import Region
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ZCDP, ApproxDP, PureDP, RenyiDP
from discreet.core.mechanism import Release


def coin(p_by_data):
    """A batch of 0/1 outputs that are 1 with the probability given for the data."""
    rng = np.random.default_rng(0)
    return lambda data, n: (rng.random(n) < p_by_data[data]).astype(int)


def test_identical_mechanisms_give_zero():
    found = audit(None, 0, 1, batch=coin({0: 0.3, 1: 0.3}))
    assert found.epsilon == 0
    assert not found.violates(PureDP(0))
    assert "no event was found" in str(found)


def test_noise_that_comes_again_is_refused():
    """Run by run its law is right, and whoever starts it again takes it off."""
    with pytest.raises(InvalidArgument, match="known to everybody"):
        audit(None, 0, 1, samples=400, batch=lambda data, n: data + np.random.default_rng(0).geometric(0.3, n))
    assert audit(None, 0, 1, samples=400, batch=lambda data, n: np.arange(n) < 1).epsilon == 0


def test_a_doubt_below_doubles_is_told():
    found = audit(lambda data: data, 0, 1, samples=2000, confidence=1 - Fraction(1, 10**30), claim=PureDP(1))
    assert "with confidence 1 − 1e-30" in str(found)
    assert found.verdict.endswith("except with probability 1e-30.")


def test_a_coin_is_judged_close_to_its_ratio():
    found = audit(None, 0, 1, samples=200_000, batch=coin({0: 0.75, 1: 0.25}))
    assert 0.95 * math.log(3) < found.epsilon < math.log(3)
    assert found.rates == pytest.approx((0.75, 0.25), abs=0.01)
    assert all(p < 0.75 or q > 0.25 for p, q in found.region.corners)


def test_the_likelier_side_is_named():
    found = audit(None, 0, 1, batch=coin({0: 0.1, 1: 0.001}))
    assert (found.likelier_on, found.event) == ("D", "output ≥ 1")
    found = audit(None, 1, 0, batch=coin({0: 0.1, 1: 0.001}))
    assert found.likelier_on == "D′"
    assert "of the runs on D′ and in" in str(found)


def test_delta_is_subtracted():
    chances = {0: 0.1, 1: 0.001}
    pure = audit(None, 0, 1, samples=400_000, batch=coin(chances))
    spared = audit(None, 0, 1, samples=400_000, batch=coin(chances), delta=0.05)
    assert pure.epsilon > spared.epsilon > 0.9 * math.log(0.05 / 0.001) - 0.5
    assert spared.epsilon <= math.log(0.05 / 0.001)
    assert audit(None, 0, 1, batch=coin(chances), delta=0.2).epsilon == 0


def test_more_confidence_claims_less():
    bounds = [
        audit(None, 0, 1, batch=coin({0: 0.75, 1: 0.25}), confidence=confidence).epsilon
        for confidence in (0.9, 0.999, "0.999999999999")
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert len(set(bounds)) == 3


def test_callables_releases_and_exceptions_are_outputs():
    rng = np.random.default_rng(0)

    class Mechanism:
        def release(self, data):
            return Release(int(rng.random() < data), PureDP(1), ())

    assert audit(Mechanism(), 0.9, 0.1, samples=4000).epsilon > 1

    def raising(data):
        if rng.random() < data:
            raise ValueError("a coin fell")
        return 0

    found = audit(raising, 0.9, 0.1, samples=4000)
    assert found.epsilon > 1
    assert "int" in found.event or "ValueError" in found.event


def test_text_of_an_exception_is_read():
    def mechanism(data):
        raise RuntimeError(f"value was {data}")

    assert audit(mechanism, 3, 4, samples=2000).epsilon > 3


def test_features_of_the_caller_are_searched():
    rng = np.random.default_rng(0)

    def parity_of_pair(data, n):
        first = rng.integers(0, 1000, n) * 2 + rng.integers(0, 2, n)
        flip = rng.random(n) < data
        second = rng.integers(0, 1000, n) * 2 + ((first + flip) % 2)
        return np.column_stack([first, second])

    plain = audit(None, 0.9, 0.1, samples=20_000, batch=parity_of_pair)
    read = {"the parity of the sum": lambda outputs: outputs.sum(axis=1) % 2}
    helped = audit(None, 0.9, 0.1, samples=20_000, batch=parity_of_pair, features=read)
    assert helped.epsilon > 1.8 > plain.epsilon
    assert helped.event.startswith("the parity of the sum")


def test_outputs_seen_only_in_the_final_test_are_harmless():
    calls = []

    def growing(data, n):
        calls.append(n)
        return np.full(n, len(calls))

    assert audit(None, 0, 1, samples=1000, batch=growing).epsilon == 0


def test_runs_are_all_used_and_drawn_in_bounded_pieces():
    drawn = {0: [], 1: []}

    def batch(data, n):
        drawn[data].append(n)
        return np.zeros(n)

    found = audit(None, 0, 1, samples=3_000_001, batch=batch)
    assert sum(drawn[0]) == sum(drawn[1]) == found.samples == 3_000_001
    assert max(drawn[0]) <= 1 << 19


def test_wide_outputs_are_searched_where_they_differ():
    rng = np.random.default_rng(0)

    def batch(data, n):
        noise = rng.normal(size=(n, 60))
        noise[:, 41] += data
        return noise

    assert audit(None, 0, 4, samples=8000, batch=batch).epsilon > 2


@pytest.mark.parametrize(
    ("loss", "refuted"),
    [
        (PureDP("0.9"), True),
        (PureDP("1.1"), False),
        (ApproxDP("0.9", "0.001"), True),
        (ApproxDP("0.9", "0.2"), False),
        (ZCDP("0.05"), True),
        (ZCDP("0.5"), False),
        (RenyiDP((2, 8), ("0.2", "0.5")), True),
        (RenyiDP((2, 8), (1, 1)), False),
    ],
)
def test_every_kind_of_claim_can_be_refuted(loss, refuted):
    found = Audit(1.0, 0.0, 0.999, "heads", "D", Region(((0.6, 0.6 / math.e),)), 1000)
    assert found.violates(loss) is refuted


def test_claims_of_another_type_are_refused():
    found = Audit(1.0, 0.0, 0.999, "heads", "D", Region(((0.6, 0.2),)), 1000)
    with pytest.raises(InvalidArgument, match="loss"):
        found.violates(1.0)


def test_one_event_proves_a_curve():
    found = Audit(1.0, 0.0, 0.999, "heads", "D", Region(((0.6, 0.2),)), 1000)
    assert found.epsilon_at(0.4) == pytest.approx(0, abs=1e-12)
    assert found.delta_at(found.epsilon_at(0.1)) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"samples": 99},
        {"samples": 1000.0},
        {"confidence": 1},
        {"confidence": 0},
        {"confidence": math.nan},
        {"delta": -0.1},
        {"delta": 1},
        {"batch": lambda data, n: np.zeros(n - 1)},
        {"features": {"broken": lambda outputs: np.zeros(3)}},
    ],
)
def test_bad_options_are_named(options):
    with pytest.raises(InvalidArgument):
        audit(lambda data: 0, 0, 1, **{"samples": 1000, **options})


def test_a_mechanism_must_be_callable():
    with pytest.raises(InvalidArgument, match="mechanism"):
        audit(3, 0, 1)


def test_exact_confidence_is_kept():
    found = audit(lambda data: 0, 0, 1, samples=100, confidence=Fraction(99, 100))
    assert found.confidence == 0.99


def test_interruptions_are_not_outputs():
    def interrupted(data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(interrupted, 0, 1)


@pytest.mark.parametrize(("epsilon", "shown"), [(7.705, "ε ≥ 7.7 "), (0.0999999, "ε ≥ 0.0999 "), (123.9, "ε ≥ 123 ")])
def test_the_printed_bound_is_never_above_the_proven_one(epsilon, shown):
    assert str(Audit(epsilon, 0.0, 0.999, "heads", "D", Region(((0.6, 0.2),)), 1000)).startswith(shown)

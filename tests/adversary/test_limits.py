"""Lower bounds hold for every mechanism we have, follow the book's theorems, and use all that privacy allows."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from discreet import InvalidArgument
from discreet.adversary import counter_error, least_error, queries_error
from discreet.adversary.lower_bounds import formulas as lower_bounds
from discreet.adversary.lower_bounds.least_error import marginals_error, runs_error
from discreet.mechanisms import Laplace
from discreet.synopses import Attribute, Domain, Workload

DOMAIN = Domain((Attribute("sex", ("F", "M")), Attribute("age", range(8)), Attribute("race", range(3))))
WORKLOADS = {
    "one way": Workload.all_marginals(DOMAIN, 1),
    "pairs": Workload.all_marginals(DOMAIN, 2),
    "cells": Workload.all_marginals(DOMAIN, 3),
    "prefixes": Workload.prefixes(DOMAIN, "age"),
    "ranges": Workload.ranges(DOMAIN, "age"),
    "halves": Workload.predicates(DOMAIN, [np.full(48, 0.5), np.arange(48) % 2]),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("changes", [1, 2])
def test_no_mechanism_is_below_its_bound(name: str, delta: str, changes: int) -> None:
    for epsilon in ("0.05", 1, 8):
        found = least_error(WORKLOADS[name], epsilon=epsilon, delta=delta, records=2000, changes=changes)
        assert found.achieved
        for line in found.achieved:
            assert found.least <= line.error + 1e-9, (epsilon, line, found.bounds)
        assert found.verdict.startswith("No mechanism answers")


def test_laplace_noise_on_one_count_meets_the_bound() -> None:
    """For β = 5 % one count has to be off by about ln(19)/(2ε); Laplace noise is off by ln(20)/ε: twice as much."""
    one = Workload.marginals(DOMAIN, [()])
    found = least_error(one, epsilon="0.01")
    noise = Laplace.for_epsilon("0.01").accuracy("0.05")
    assert noise / 2.1 < found.least <= noise / 2
    measured = np.abs(Laplace.for_epsilon("0.01", dimension=100_000).release(np.zeros(100_000, np.int64)).values)
    # The part beyond the bound is above 5 %, as the bound says of one of its two data sets.
    assert (measured >= found.least).mean() > 0.05


def test_packing_is_theorem_8_7() -> None:
    """k yes/no attributes: k·ln 2/ε records are not enough, at β = ½ without any further term."""
    for k, epsilon in ((10, 1), (30, "0.1"), (100, "0.5")):
        far = lower_bounds.spread(k * math.log(2), epsilon, beta="0.5")
        exact = math.log(2.0**k - 1) / float(epsilon)
        assert exact - 1.01 <= far < exact
        # Never weaker than the book's ln 2·(s − 1)/ε.
        assert far >= math.log(2) * (k - 1) / float(epsilon) - 1


def test_group_privacy_is_used_to_the_last_record() -> None:
    """At Δ the regions are too many; one record more and they fit."""
    for log_many, epsilon, delta, beta in ((5.0, 0.3, 0.0, 0.05), (20.0, 0.1, 1e-6, 0.5), (2.0, 1.0, 1e-3, 0.01)):
        far = lower_bounds.spread(log_many, epsilon, delta, beta)

        def total(gap: int, terms: Any = (log_many, epsilon, delta, beta)) -> float:
            log_all, e, d, b = terms
            kept = math.exp(-e * gap) * (1 - b) - d * (1 - math.exp(-e * gap)) / math.expm1(e)
            return 1 - b + math.expm1(log_all) * kept

        assert total(far) > 1 >= total(far + 1) - 1e-9


@pytest.mark.parametrize("epsilon", ["1e-15", "3e-12", "1e-8", "0.5", "76.5", "720"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-6", "0.1", "0.9"])
def test_packing_is_sound_at_the_ends_of_doubles(epsilon: str, delta: str) -> None:
    """What one region more would need, in balls: the sum of the regions at Δ is certainly above 1."""
    with ctx.workprec(4000):
        e, d = (arb(fmpq(*Fraction(number).as_integer_ratio())) for number in (epsilon, delta))
        for log_many in (math.log(2), 50.0, 7e5):
            for beta in ("0.05", "0.9"):
                b = arb(fmpq(*Fraction(beta).as_integer_ratio()))
                far = lower_bounds.spread(log_many, epsilon, delta, beta)
                kept = (-e * far).exp() * (1 - b) + d * (-e * far).expm1() / e.expm1()
                assert far == 0 or kept > b / arb(log_many).expm1()


def test_epsilon_beyond_doubles_is_refused_and_many_kinds_of_records_are_not() -> None:
    for epsilon in ("1e-400", 10**400):
        with pytest.raises(InvalidArgument, match="epsilon"):
            lower_bounds.packing(5.0, epsilon)
    assert queries_error(10, universe=2**2000, records=100, epsilon=1).least > 0
    assert lower_bounds.packing(5.0, 1, beta="1e-400") == lower_bounds.packing(5.0, 1, beta="1e-300") > 300


def test_reconstruction_is_the_root_of_n_whatever_delta() -> None:
    for delta in (0, "1e-6", "0.01"):
        ratios = [lower_bounds.hadamard(n, "0.1", delta) / math.sqrt(n) for n in (255, 4095, 65_535)]
        assert 0.15 < min(ratios) <= max(ratios) < 0.25
    matrix = np.array([[1.0]])
    assert lower_bounds.reconstruction(matrix, 1, records=1)[0] < lower_bounds.packing(math.log(2), 1, records=5)
    # Answers off by less would let the attack of Theorem 8.1 read more than privacy allows.
    bound = lower_bounds.all_subsets(1000, "0.1")
    assert (1 - 0.05) * 4 * bound + 0.05 * 1000 <= 1000 / (1 + math.exp(0.1))


def test_a_counter_needs_the_logarithm_of_its_rounds() -> None:
    errors = [lower_bounds.counter(10**power, 1) for power in (2, 4, 6, 8)]
    assert np.all(np.diff(errors) >= 1.5)
    assert errors[2] >= math.log2(10**6) / 4
    found = counter_error(10**6, epsilon=1)
    assert found.least < found.achieved[0].error < found.achieved[1].error


def test_arbitrary_queries_are_harder_than_counts() -> None:
    """Theorem 8.8: linear in the number of queries, where the book's constant is one in 38,400."""
    errors = [lower_bounds.arbitrary(k, k, "0.02") for k in (500, 1000, 2000)]
    assert errors[1] > 1.7 * errors[0]
    assert errors[2] > 1.7 * errors[1]
    assert errors[2] > 2000 / 38_400 / 0.02
    assert lower_bounds.arbitrary(1000, 1000, "0.02", records=10) <= 5
    found = queries_error(100, universe=10**6, records=10**5, epsilon="0.1")
    assert all(found.least <= line.error for line in found.achieved)


def test_fewer_records_weaken_a_bound() -> None:
    pairs = WORKLOADS["pairs"]
    assert least_error(pairs, epsilon="0.01", records=10).least == 5.0
    assert least_error(pairs, epsilon="0.01").least > 100


def test_shown_in_text_pages_and_figures() -> None:
    found = marginals_error({"a": 2, "b": 3}, 1, epsilon=1, records=100)
    assert "packing" in str(found)
    assert "packing" in found._repr_html_()
    assert found.as_record()["least"] == found.least
    assert "error of the worst answer" in str(found.plot().to_dict())
    assert runs_error(16, "ranges", epsilon=1).least >= runs_error(16, "prefixes", epsilon=1).least - 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: least_error(WORKLOADS["pairs"], epsilon=0), "above 0"),
        (lambda: least_error(WORKLOADS["pairs"], epsilon=1, delta=1), "delta"),
        (lambda: least_error(WORKLOADS["pairs"], epsilon=1, changes=3), "1 or 2"),
        (lambda: least_error("pairs", epsilon=1), "a Workload"),
        (lambda: counter_error(0, epsilon=1), "rounds"),
        (lambda: runs_error(8, "circles", epsilon=1), "prefixes or ranges"),
    ],
    ids=["epsilon", "delta", "changes", "workload", "rounds", "kind"],
)
def test_wrong_arguments_are_named(wrong: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        wrong()

"""Boosting: its charge, its draws, and what the theorem promises."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.accounting import account
from discreet.core.events import BoundedRange, Composed, Nothing, Repeated
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.noise import Entropy
from discreet.synopses import Attribute, Boosting, Domain, LinearBase, Weights, Workload, sample_needed
from discreet.synopses.noisy_counts import Reading

DOMAIN = Domain((Attribute("a", tuple(range(10))), Attribute("b", tuple(range(4)))))
WORK = Workload.all_marginals(DOMAIN, 2) + Workload.ranges(DOMAIN, "a")
X = np.random.default_rng(0).multinomial(5000, np.random.default_rng(1).dirichlet(np.full(40, 0.3)))


def boosting(**terms: Any) -> Boosting:
    return Boosting(**{"workload": WORK, "epsilon": 1, "size": 5000, "sample": 20, **terms})


@pytest.mark.parametrize("method", ["pooled", "book"])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_the_charge_is_what_was_asked_and_the_least_attenuation_is_used(method: str, delta: Any) -> None:
    asked = boosting(method=method, delta=delta)
    assert asked.loss.epsilon <= 1
    slope = 4 * asked.alpha
    draws = [asked.turns if method == "book" else t for t in range(asked.turns)]

    def cost(mu: int) -> Fraction:
        each = [slope * t / mu for t in draws]
        if not delta:
            return 20 * sum(each)
        kind = 2 if method == "book" else 8
        return 20 * sum(e * e for e in each) / kind

    budget = Fraction(1, 10)
    if delta:
        from discreet.accounting import affordable

        budget *= affordable(ApproxDP(1, delta), ZCDP).rho
    assert cost(asked.attenuation) <= budget < cost(asked.attenuation - 1)
    if delta and method == "pooled":
        # One event for all draws, no cheaper than each draw as an event of its own.
        own = tuple(Repeated(BoundedRange(slope * t / asked.attenuation), 20) for t in draws)
        whole = account(Composed((asked.events[-1], Nothing())), ZCDP)
        assert account(Composed(own), ZCDP).rho <= whole.rho


def test_one_unit_moves_log_odds_by_no_more_than_is_charged() -> None:
    rng = np.random.default_rng(2)
    for weight, changes in ((1, 1), (3, 1), (2, 2)):
        asked = boosting(unit_weight=weight, changes=changes, threshold=3, delta="1e-6", rounds=4)
        synopses = [Weights(DOMAIN, rng.random(40) * 250) for _ in range(3)]
        # Credits near the thresholds move the most; μ is made small so that they do.
        object.__setattr__(asked, "attenuation", 200)
        reading = Reading(np.arange(1), np.zeros(1), 1.0)
        for _ in range(30):
            before, after = X.copy(), X.copy()
            after[rng.integers(40)] += weight
            if changes == 2:
                before[rng.integers(40)] += weight
            scores = [
                sum(-asked._credit(WORK.counts(x), synopsis, reading) for synopsis in synopses) for x in (before, after)
            ]
            moved = scores[1] - scores[0]
            odds = asked.alpha / 200 * int(moved.max() - moved.min())
            assert odds <= 4 * asked.alpha * 3 * weight / 200
            assert np.abs(moved).max() <= 2 * 3 * weight


@dataclass(frozen=True)
class Told:
    """A base generator that is told the truth about the queries it is given, and nothing about others."""

    workload: Workload
    sample: int
    seen: list[np.ndarray] = field(default_factory=list)
    bits: float = 3.0
    events: tuple[Any, ...] = ()

    def error(self, beta: Any) -> float:
        return 0.0

    def generate(self, histogram: Any, queries: Any, cells: Any, past: Any, entropy: Any) -> tuple[Any, Reading]:
        self.seen.append(queries)
        from discreet.synopses import Answers

        values = np.full(len(self.workload), -1e6)
        values[queries] = self.workload.answers(histogram)[queries]
        return Answers(self.workload, values), Reading(queries, values[queries], 1.0)


def test_queries_answered_badly_are_drawn_more_often_until_all_are_answered() -> None:
    base = Told(WORK, 40)
    # With so much budget that μ is small, the draws follow the errors.
    asked = boosting(epsilon=10**5, sample=40, share="1/2", base=lambda b, budget: base, rounds=60)
    assert asked.mu < 10**5
    median = asked.release(X, entropy=Entropy.for_tests(1)).values
    counts = np.bincount(np.concatenate(base.seen), minlength=len(WORK))
    # Uniform draws would leave some of the 109 queries far behind: 22 ± 5 each.
    assert counts.std() < math.sqrt(counts.mean()) * 0.9
    assert len(median.synopses) == 60


def test_rounds_are_as_few_as_the_proof_allows() -> None:
    queries = len(WORK)
    ours, book = boosting().turns, boosting(method="book").turns
    assert (5 / 9) ** (ours / 2) * queries < 1 <= (5 / 9) ** ((ours - 1) / 2) * queries * (1 + 1e-5)
    assert book == math.ceil(math.log(queries) * 9)
    assert ours < book * 0.4


def test_accuracy_is_promised_only_where_the_lemma_holds() -> None:
    def program(rows: int | None) -> Any:
        return lambda b, budget: LinearBase(
            b.workload, budget, b.drawn, size=b.size, rows=rows, solver="linear program"
        )

    enough = math.ceil(sample_needed(math.log2(math.comb(69, 30)), "1/3", "0.0001"))
    asked = boosting(sample=enough, base=program(30), delta="1e-6")
    assert asked.mu < asked.accuracy(0.05) < math.inf
    for other in (boosting(sample=20, base=program(30)), boosting(sample=enough, base=program(None)), boosting()):
        assert other.accuracy(0.05) == math.inf
    worst = np.abs(asked.release(X, entropy=Entropy.for_tests(3)).values.answers(WORK) - WORK.answers(X)).max()
    assert worst <= asked.accuracy(0.05)


def test_later_rounds_know_what_earlier_ones_read() -> None:
    pooled, book = (boosting(method=method, rounds=20, delta="1e-6") for method in ("pooled", "book"))
    truth = WORK.answers(X)
    errors = [
        np.mean(
            [np.abs(m.release(X, entropy=Entropy.for_tests(s)).values.answers(WORK) - truth).mean() for s in range(3)]
        )
        for m in (pooled, book)
    ]
    assert errors[0] < errors[1]


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        ({"eta": "1/2"}, "eta"),
        ({"share": 1}, "share"),
        ({"rounds": 0}, "rounds"),
        ({"sample": 0}, "sample"),
        ({"threshold": -1}, "threshold"),
        ({"method": "adaboost"}, "method"),
        ({"epsilon": "1e-18"}, "epsilon"),
        ({"rounds": 10**8}, "domain"),
    ],
)
def test_bad_terms_are_refused(terms: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        boosting(**terms)
    assert caught.value.argument == name


def test_pure_budgets_are_shared_out_exactly() -> None:
    asked = boosting(rounds=5)
    assert asked.generator.events[0].epsilon == Fraction(9, 50)
    assert isinstance(asked.loss, PureDP)

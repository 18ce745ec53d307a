"""Mechanisms that build synopses, held to their loss at a small size by the auditor.

What is looked at is all that a synopsis answers. Fresh randomness at every run; each audit accuses an honest mechanism
with probability at most 1e-9. On the pair where one unit is replaced by another nothing may be found. The same audit
must accuse each mechanism when the unit weighs a hundred times what was declared, which is what noise for a sensitivity
too small by that factor looks like; 120 tests of an event that always happens on one side and never on the other prove
an ε of 1.5. Faults as they are made in code are planted below.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from discreet.adversary import audit
from discreet.mechanisms import Laplace
from discreet.synopses import (
    MWEM,
    ArbitraryGenerator,
    Attribute,
    Boosting,
    Domain,
    LinearGenerator,
    MedianMechanism,
    OnlineMultiplicativeWeights,
    Projection,
    SmallDatabase,
    SmallDatabaseWalk,
    Workload,
)

pytestmark = pytest.mark.slow

DOMAIN = Domain((Attribute("a", (0, 1, 2)),))
WORKLOAD = Workload.marginals(DOMAIN, [("a",)])
SINGLE = Workload.predicates(DOMAIN, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]])
DATA, NEIGHBOUR, FAR = (np.array(cells) for cells in ([100, 100, 0], [101, 99, 0], [200, 0, 0]))
RUNS = 240


@dataclass(frozen=True)
class Case:
    """How a mechanism is built at ε = 1, and how many runs it is given on each data set."""

    build: Callable[..., Any]
    runs: int = RUNS

    def built(self, **terms: Any) -> Any:
        return self.build(**{"workload": WORKLOAD, "epsilon": 1, "size": 200, "changes": 2} | terms)


CASES = {
    "SmallDB": Case(lambda **terms: SmallDatabase(rows=4, **terms)),
    "SmallDB, exponential": Case(lambda **terms: SmallDatabase(rows=4, selection="exponential", **terms)),
    "median": Case(lambda **terms: MedianMechanism(rows=4, threshold=30, updates=1, **terms)),
    "MWEM": Case(MWEM),
    "MWEM, rounds by size": Case(lambda **terms: MWEM(**terms | {"workload": SINGLE, "size": None})),
    "MWEM, the book's": Case(lambda **terms: MWEM(rounds=3, method="book", **terms)),
    "online weights": Case(lambda **terms: OnlineMultiplicativeWeights(threshold=30, updates=1, **terms)),
    "projection": Case(Projection),
    "linear base": Case(LinearGenerator),
    "arbitrary base": Case(lambda **terms: ArbitraryGenerator(rows=6, **terms)),
    "boosting": Case(lambda **terms: Boosting(sample=2, rounds=2, **terms), 300),
}
# Built on other terms, for neighbours that are there or not.
ADDED = {
    "SmallDB": {"size": None, "changes": 1},
    "median": {"size": None, "changes": 1, "delta": "0.001"},
    "MWEM, rounds by size": {"changes": 1, "delta": "0.001"},
    "projection": {"size": None, "changes": 1, "delta": "0.001"},
}


def answers_of(mechanism: Any) -> Callable[[Any], Any]:
    """All that anybody can read off what the mechanism releases."""
    return lambda data: mechanism.release(data).values.answers(WORKLOAD)


@pytest.mark.parametrize("name", CASES)
def test_one_unit_replaced_shows_no_more_than_the_loss(name: str) -> None:
    mechanism = CASES[name].built()
    found = audit(answers_of(mechanism), DATA, NEIGHBOUR, samples=CASES[name].runs)
    assert not found.violates(mechanism.loss), str(found)


@pytest.mark.parametrize("name", ADDED)
def test_one_unit_added_shows_no_more_than_the_loss(name: str) -> None:
    mechanism = CASES[name].built(**ADDED[name])
    more = DATA + np.array([1, 0, 0])
    found = audit(answers_of(mechanism), DATA, more, samples=CASES[name].runs, delta=mechanism.delta)
    assert not found.violates(mechanism.loss), str(found)


def test_a_walk_as_long_as_its_delta_needs_shows_no_more_than_the_loss() -> None:
    walk = SmallDatabaseWalk(workload=WORKLOAD, epsilon=1, delta="0.01", size=4, rows=2, changes=2)
    assert walk.loss.delta < 1
    found = audit(answers_of(walk), np.array([2, 2, 0]), np.array([3, 1, 0]), samples=RUNS, delta=walk.delta)
    assert not found.violates(walk.loss), str(found)


@pytest.mark.parametrize("name", CASES)
def test_a_unit_heavier_than_declared_is_noticed(name: str) -> None:
    mechanism = CASES[name].built()
    found = audit(answers_of(mechanism), DATA, FAR, samples=CASES[name].runs)
    assert found.violates(mechanism.loss), str(found)


class ForgetsTheRows(SmallDatabase):
    """Scores are in steps of one row of the small database, and noise is for steps of one person."""

    def _chooser(self, rows: int) -> Any:
        return replace(super()._chooser(rows), sensitivity=self.unit_weight)


class SaysTheCount(MedianMechanism):
    """What is found above is said with noise for a budget that nobody charged."""

    def _designed(self, rows: int) -> Any:
        return replace(super()._designed(rows), measuring=Laplace.for_epsilon(100))


class ChoosesForFree(MWEM):
    """All marginals are measured as if each of the rounds had the whole of ε."""

    def _noise(self, rounds: int) -> Any:
        return replace(super()._noise(rounds), meter=Laplace.for_epsilon(10, dimension=3))


@pytest.mark.parametrize(
    ("broken", "d", "d_prime"),
    [
        (ForgetsTheRows(workload=WORKLOAD, epsilon=1, size=2, rows=12, changes=2), [1, 1, 0], [2, 0, 0]),
        (
            SaysTheCount(workload=WORKLOAD, epsilon=1, size=200, rows=4, threshold=0, updates=1, changes=2),
            DATA,
            NEIGHBOUR,
        ),
        (ChoosesForFree(workload=WORKLOAD, epsilon=1, size=200, changes=2), DATA, NEIGHBOUR),
    ],
    ids=lambda value: type(value).__name__,
)
def test_planted_faults_are_caught(broken: Any, d: Any, d_prime: Any) -> None:
    claimed = type(broken).__mro__[1](**{name: getattr(broken, name) for name in broken.__dataclass_fields__}).loss
    assert audit(answers_of(broken), np.array(d), np.array(d_prime), samples=400).violates(claimed)

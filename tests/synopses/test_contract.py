"""One suite over every mechanism that builds a synopsis: the promises of `Terms`, `Mechanism` and `Synopsis`."""

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import InvalidArgument, Mechanism, PureDP
from discreet.accounting import account
from discreet.core.events import from_json, to_json
from discreet.noise import Entropy
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
    Synopsis,
    Weights,
    Workload,
    load,
)

DOMAIN = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", (0, 18, 65, 120), whole=True)))
MARGINALS = Workload.all_marginals(DOMAIN, 1) + Workload.prefixes(DOMAIN, "age").subset([1, 2])
FRACTIONAL = Workload.predicates(DOMAIN, [[0.5, 0.25, 0, 1, 0, 0], [0, 0, 1, 0.125, 1, 1]])
DATA = np.array([400, 0, 100, 300, 150, 50])
SIZE = int(DATA.sum())

# Each way of building a synopsis at a small size.
METHODS: dict[str, Callable[..., Any]] = {
    "SmallDB": lambda **terms: SmallDatabase(rows=4, **terms),
    "SmallDB, exponential": lambda **terms: SmallDatabase(rows=3, selection="exponential", **terms),
    "projection": Projection,
    "linear base": LinearGenerator,
    "linear base, program": lambda **terms: LinearGenerator(solver="linear program", sample=5, rows=50, **terms),
    "arbitrary base": lambda **terms: ArbitraryGenerator(rows=3, **terms),
    "boosting": lambda **terms: Boosting(rounds=2, sample=4, **terms),
    "median": lambda **terms: MedianMechanism(rows=4, **terms),
    "MWEM": lambda **terms: MWEM(rounds=1, **terms),
    "MWEM, all marginals": MWEM,
    "MWEM, the book's": lambda **terms: MWEM(rounds=3, method="book", **terms),
    "online weights": lambda **terms: OnlineMultiplicativeWeights(updates=2, threshold=50, **terms),
    "boosting, the book's": lambda **terms: Boosting(sample=3, rounds=2, method="book", **terms),
}
# The terms they are built on.
TERMS: dict[str, dict[str, Any]] = {
    "size known": {"workload": MARGINALS, "epsilon": 2, "size": SIZE},
    "size unknown": {"workload": MARGINALS, "epsilon": 2, "unit_weight": 3},
    "replaced, with δ": {"workload": MARGINALS, "epsilon": 1, "delta": "1e-6", "size": SIZE, "changes": 2},
    "fractions": {"workload": FRACTIONAL, "epsilon": 2, "delta": "1e-6", "changes": 2},
}
# Built when first asked for: some search long for the noise that fits.
BUILDS = {f"{name}, {on}": partial(m, **t) for name, m in METHODS.items() for on, t in TERMS.items()}
BUILDS["walk"] = partial(SmallDatabaseWalk, workload=MARGINALS, epsilon="0.01", delta="1e-6", size=100, rows=4)
built = cache(lambda name: BUILDS[name]())


@pytest.fixture(params=BUILDS)
def mechanism(request: pytest.FixtureRequest) -> Any:
    return built(request.param)


method = pytest.mark.parametrize("build", METHODS.values(), ids=METHODS)


class Spy(Entropy):
    """Counts what is drawn."""

    drawn = 0

    def fill(self, out: Any) -> None:
        self.drawn += out.size
        super().fill(out)


def test_it_keeps_the_protocol_and_cannot_be_changed(mechanism: Any) -> None:
    assert isinstance(mechanism, Mechanism)
    with pytest.raises(FrozenInstanceError):
        mechanism.epsilon = 1
    twin = type(mechanism)(**{f.name: getattr(mechanism, f.name) for f in fields(mechanism)})
    assert twin == mechanism
    assert hash(twin) == hash(mechanism)
    assert twin.events == mechanism.events


def test_a_release_carries_the_loss_of_its_stored_events_within_the_budget(mechanism: Any) -> None:
    release = mechanism.release(DATA)
    revived = [from_json(to_json(event)) for event in release.events]
    assert tuple(revived) == mechanism.events
    assert release.loss == mechanism.loss
    loss, budget = mechanism.loss, mechanism.budget
    delta = None if isinstance(loss, PureDP) else loss.delta
    assert account(revived, like=type(loss), delta=delta) == loss
    assert loss.epsilon <= budget.epsilon
    assert getattr(loss, "delta", 0) <= getattr(budget, "delta", 0)
    # Budgets are not left lying about.
    assert loss.epsilon >= budget.epsilon * Fraction(9, 10)


def test_the_system_generator_alone_makes_private_releases_and_a_seed_repeats_itself(mechanism: Any) -> None:
    assert mechanism.release(DATA).private
    one, same, other = (mechanism.release(DATA, entropy=Entropy.for_tests(seed)) for seed in (7, 7, 8))
    assert not one.private
    assert (one.values.answers(mechanism.workload) == same.values.answers(mechanism.workload)).all()
    assert one.values.answers(mechanism.workload).shape == other.values.answers(mechanism.workload).shape


def test_what_is_released_answers_states_its_accuracy_and_comes_back_from_a_file(
    mechanism: Any, tmp_path: Path
) -> None:
    synopsis = mechanism.release(DATA, entropy=Entropy.for_tests(1)).values
    assert isinstance(synopsis, Synopsis)
    assert synopsis.domain == DOMAIN
    answers = synopsis.answers(mechanism.workload)
    assert answers.shape == (len(mechanism.workload),)
    assert np.isfinite(answers).all()
    bounds = [synopsis.accuracy(beta) for beta in ("1e-6", 0.01, 0.05, 0.5)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] >= 0
    # An honest bound at one in a million.
    assert np.abs(answers - mechanism.workload.answers(DATA)).max() <= bounds[0]
    for beta in (0, 1, math.nan, None):
        with pytest.raises(InvalidArgument, match="beta"):
            synopsis.accuracy(beta)
    again = load(synopsis.save(tmp_path / "synopsis.npz"))
    assert type(again) is type(synopsis)
    assert (again.answers(mechanism.workload) == answers).all()
    assert again.accuracy(0.05) >= bounds[2]
    if isinstance(synopsis, Weights):
        table = synopsis.table(rows=10)
        assert len(table) == 10
        assert list(table.columns) == list(DOMAIN.names)


ODD = {
    "nobody": np.zeros(6, dtype=np.int64),
    "one cell": np.array([SIZE, 0, 0, 0, 0, 0]),
    "below zero": np.array([-5, 400, 100, 300, 150, 55]),
    "past the end": np.full(6, (1 << 63) - 1),
    "as unsigned": np.full(6, (1 << 64) - 1, dtype=np.uint64),
    "objects": [2**90, -(2**90), None, 1, 2, 3],
    "as a table": DATA.reshape(2, 3),
}


@cache
def usually(mechanism: Any) -> Any:
    """What is released of the usual data."""
    return mechanism.release(DATA, entropy=Entropy.for_tests(3))


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_no_value_in_the_data_raises_or_changes_what_kind_of_thing_comes_out(mechanism: Any, data: Any) -> None:
    usual, odd = usually(mechanism), mechanism.release(data, entropy=Entropy.for_tests(3))
    assert type(odd.values) is type(usual.values)
    assert (odd.loss, odd.events) == (usual.loss, usual.events)
    assert np.isfinite(odd.values.answers(mechanism.workload)).all()


@pytest.mark.parametrize(
    "data",
    [DATA[:-1], np.append(DATA, 1), DATA.astype(float), "text", None, ["a"] * 6, DATA.reshape(3, 2), 7],
    ids=lambda data: str(data)[:16],
)
@method
def test_data_of_the_wrong_kind_is_refused_before_anything_is_drawn(build: Callable[..., Any], data: Any) -> None:
    spy = Spy()
    with pytest.raises(InvalidArgument):
        build(**TERMS["size unknown"]).release(data, entropy=spy)
    assert spy.drawn == 0


BAD: list[tuple[str, object]] = [
    *(("epsilon", bad) for bad in (0, -1, math.nan, math.inf, None, "much", True)),
    *(("delta", bad) for bad in (-1, 1, 2, math.nan, None, "little", True)),
    *(("unit_weight", bad) for bad in (0, -1, 1.5, None, True, 1 << 60)),
    *(("changes", bad) for bad in (0, 3, "replace", None, True)),
    *(("size", bad) for bad in (-1, 1.5, "many", True, 1 << 60)),
    *(("workload", bad) for bad in (None, [], "marginals", DOMAIN)),
]


@pytest.mark.parametrize(("argument", "bad"), BAD, ids=lambda value: str(value)[:20])
@method
def test_bad_terms_are_refused_by_name(build: Callable[..., Any], argument: str, bad: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        build(**{"workload": MARGINALS, "epsilon": 1, argument: bad})
    assert caught.value.argument == argument
    assert all(part in str(caught.value) for part in (argument, caught.value.bound, caught.value.remedy))


@method
def test_domains_too_large_are_refused_when_the_mechanism_is_built(build: Callable[..., Any]) -> None:
    """Nothing can have been charged by then; the cost and what to do instead are said."""
    wide = Domain(tuple(Attribute(f"a{i}", tuple(range(100))) for i in range(5)))
    with pytest.raises(InvalidArgument, match="cells") as caught:
        build(workload=Workload.all_marginals(wide, 1), epsilon=1, size=1000)
    assert caught.value.remedy


def test_progress_is_told_in_order(mechanism: Any) -> None:
    told: list[float] = []
    mechanism.release(DATA, entropy=Entropy.for_tests(1), progress=told.append)
    assert told == sorted(told)
    assert all(0 <= share <= 1 for share in told)

"""Multiplicative weights: what is charged, what is refused, what is learned, and the bounds of the theorems."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.soak import SOAK

from discreet import InvalidArgument, samples
from discreet.accounting import approximate, pure, zcdp
from discreet.core.events import BoundedRanges, Composed, Gaussian, Laplace, Pure, Repeated
from discreet.noise import Entropy
from discreet.synopses import (
    MWEM,
    Attribute,
    Domain,
    Explicit,
    OnlineMultiplicativeWeights,
    Product,
    Sets,
    Weights,
    Workload,
    load,
    prefixes,
)
from discreet.synopses.multiplicative_updates import Measured, nudged, polished, simplex

DOMAIN = Domain((Attribute("a", range(4)), Attribute("b", range(5)), Attribute("c", range(3))))
PAIRS = Workload.all_marginals(DOMAIN, 2)
WEIGHED = Product({"c": Sets([[0.5, 1, 0.1]])})
MIXED = Workload(DOMAIN, (Product({"b": prefixes}), WEIGHED, Explicit(np.eye(60)[:5] / 2)))
WORKLOADS = {"marginals": PAIRS, "mixed": MIXED, "all": PAIRS + MIXED, "two": PAIRS.subset([3, 1])}
SIX = Workload.all_marginals(Domain(tuple(Attribute(f"a{i}", range(2 + i % 2)) for i in range(6))), 2)
GENERATOR = np.random.default_rng(5)
CELLS = GENERATOR.multinomial(20_000, GENERATOR.dirichlet(np.full(60, 0.3)))
TERMS = [
    {"epsilon": 1},
    {"epsilon": 1, "delta": "1e-6"},
    {"epsilon": "0.3", "size": 20_000, "changes": 2},
    {"epsilon": "0.3", "delta": "1e-5", "size": 20_000, "changes": 2, "unit_weight": 7},
]


@pytest.mark.parametrize("terms", TERMS, ids=str)
@pytest.mark.parametrize("method", ["best", "book"])
@pytest.mark.parametrize("work", WORKLOADS.values(), ids=WORKLOADS)
def test_no_more_is_charged_than_was_asked_for(work: Workload, method: str, terms: dict) -> None:
    mechanism = MWEM(workload=work, method=method, rounds=5, **terms)
    loss = mechanism.loss
    assert loss.epsilon <= mechanism.epsilon
    assert loss.epsilon >= mechanism.epsilon * Fraction(98, 100)
    event = Composed(mechanism.events)
    assert loss == (approximate(event, mechanism.delta) if mechanism.delta else pure(event))
    release = mechanism.release(CELLS, entropy=Entropy.for_tests(1))
    assert not release.private
    assert release.loss == loss
    assert release.values.total == pytest.approx(release.values.weights.sum())
    again = mechanism.release(CELLS, entropy=Entropy.for_tests(1))
    assert (again.values.weights == release.values.weights).all()


def test_noise_is_for_what_one_unit_moves() -> None:
    """A marginal for add/remove moves by W, for replace by 2W in ℓ1 and 2W² in squared ℓ2; single queries by W."""
    for changes in (1, 2):
        [measured] = MWEM(workload=PAIRS, epsilon=1, size=9, changes=changes, unit_weight=3).events
        assert measured == Repeated(Laplace(Fraction(9 * changes), 3 * changes), 3)
        [measured] = MWEM(workload=PAIRS, epsilon=1, delta="1e-6", size=9, changes=changes, unit_weight=3).events
        event = measured.event
        assert isinstance(event, Gaussian)
        assert event.dimension == 20
        step = math.isqrt(int(event.squared_sensitivity / (9 * changes)))
        assert event.squared_sensitivity == 9 * changes * step**2
        choice, single = MWEM(workload=PAIRS, epsilon=1, size=9, changes=changes, rounds=4, method="book").events
        assert choice.event.epsilon == Fraction(1, 8)
        assert single == Repeated(Laplace(Fraction(8), 1), 4)
    fine = MWEM(workload=MIXED, epsilon=1, size=9, rounds=2).events[-1].event
    assert fine.sensitivity == 2**20


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize(("method", "rounds"), [("best", 2), ("best", None), ("book", 2)])
def test_what_is_scored_and_measured_moves_no_more_than_is_charged_for(
    method: str, rounds: int | None, changes: int
) -> None:
    """Scores and counts of neighbouring histograms, for the worst pairs of cells."""
    from discreet.synopses.mwem import _sums

    mechanism = MWEM(workload=PAIRS + MIXED, epsilon=1, rounds=rounds, method=method, changes=changes, unit_weight=2)
    assert mechanism.follows == (rounds is None)
    moved = mechanism._noise(4).chooser.sensitivity
    assert mechanism._noise(4).meter.sensitivity == moved
    said = np.rint(mechanism.strategy.answers(np.full(60, 33.3)) * mechanism.strategy.denominator).astype(np.int64)
    counts = mechanism.strategy.counts(CELLS + 2)
    seen = 0
    for cell in range(60):
        for other in range(60) if changes == 2 else [None]:
            cells = CELLS + 2
            cells[cell] += 2
            if other is not None:
                cells[other] -= 2
            changed = mechanism.strategy.counts(cells)
            scores = [_sums(np.abs(values - said), mechanism._starts) for values in (counts, changed)]
            groups = _sums(np.abs(counts - changed), mechanism._starts)
            seen = max(seen, int(groups.max()))
            assert np.abs(scores[0] - scores[1]).max() <= moved
    assert seen == moved


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_rounds_follow_the_noisy_size_and_events_do_not(delta: object) -> None:
    """Sizes are in the middle of those with as many rounds, far from the ends for their noise."""
    large = Domain(tuple(Attribute(f"a{i}", range(4 + i % 2)) for i in range(6)))
    mechanism = MWEM(workload=Workload.all_marginals(large, 2), epsilon=1, delta=delta, unit_weight=10)
    assert mechanism.follows
    stated, loss = mechanism.events, mechanism.loss
    signal, some = (63, 10) if delta else (67, 7)
    for size, rounds in ((0, 6), (10 * signal**2, some), (10**6, 15)):
        cells = np.diff(np.arange(large.size + 1) * size // large.size)
        told: list[float] = []
        release = mechanism.release(cells, entropy=Entropy.for_tests(3), progress=told.append)
        assert (release.events, release.loss) == (stated, loss)
        assert len(told) - 1 == rounds
    for declared in ({"size": 5000}, {"rounds": 7}, {"method": "book"}):
        assert not MWEM(**{"workload": SIX, "epsilon": 1, "delta": delta, **declared}).follows


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("work", ["pairs of six", "many single ones"])
def test_events_cover_every_number_of_rounds_that_may_follow(work: str, changes: int) -> None:
    single = Workload.predicates(DOMAIN, list(np.random.default_rng(1).random((300, 60)) < 0.5))
    workload, most = (SIX, 15) if work == "pairs of six" else (single, 128)
    terms = {"workload": workload, "epsilon": 1, "unit_weight": 10, "changes": changes}
    mechanism, exact = MWEM(delta="1e-6", **terms), MWEM(**terms)
    size, choices, measured = mechanism.events
    assert isinstance(choices, BoundedRanges)
    assert isinstance(measured, Gaussian)
    assert exact.events[1:] == (Pure(Fraction(19, 20)),)
    plans = {mechanism._planned(signal**2 * 10) for signal in range(2000)}
    assert max(plans) == most == choices.dimension
    for rounds in plans:
        noise = mechanism._noise(rounds)
        assert noise.sizer.events == (size,)
        chosen = Fraction(0) if noise.chooser is None else noise.chooser.epsilon**2
        assert rounds * chosen <= choices.squared_epsilon
        event = noise.meter.events[0]
        assert event.squared_sensitivity == measured.squared_sensitivity
        assert event.variance >= rounds * measured.variance
        assert event.dimension * rounds <= measured.dimension
        assert zcdp(Composed(noise.events)).rho <= zcdp(Composed(mechanism.events)).rho
    for rounds in (min(plans), most):
        assert approximate(Composed(mechanism._noise(rounds).events), "1e-6").epsilon <= mechanism.loss.epsilon <= 1
    for rounds in {exact._planned(signal**2 * 10) for signal in range(2000)}:
        assert pure(Composed(exact._noise(rounds).events)) == exact.loss


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_where_rounds_follow_the_size_releases_never_raise(delta: object) -> None:
    """Noise that cannot be drawn for some number of rounds is refused before any charge."""
    refused, cells = 0, (-5, 10**7, 2**80)
    for power in range(-11, 5):
        for weight in (1, 1 << 40):
            try:
                mechanism = MWEM(workload=SIX, epsilon=Fraction(10) ** power, delta=delta, unit_weight=weight)
            except InvalidArgument:
                refused += 1
                continue
            assert mechanism.follows
            assert mechanism.loss.epsilon <= mechanism.epsilon
            for cell in cells if SOAK else cells[power % 3 :][:1]:
                assert np.isfinite(mechanism.release([cell] * 216).values.weights).all()
    assert 0 < refused < 20


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_rows_of_heavy_units_are_not_worse_than_those_of_single_columns(delta: object) -> None:
    """The share of rows of the sample in the wrong place for pairs of six columns, with up to 10 rows a unit."""
    visits = Attribute.binned("doctor_visits", (0, 1, 2, 3, 5, 10, 78))
    site, age = Attribute("site", range(1, 7)), Attribute.binned("age", (0, 6, 18, 25, 35, 45, 55, 65))
    plan, health = (
        Attribute("coinsurance", (0, 25, 50, 95, 100)),
        Attribute("health", ("excellent", "good", "fair", "poor")),
    )
    domain = Domain((site, age, Attribute("female", (0, 1)), plan, health, visits))
    cells, work = domain.histogram(samples.rand_hie()), Workload.all_marginals(domain, 2)
    truth, wrong = work.answers(cells), {}
    for name, asked in (("pairs", work), ("columns", Workload.all_marginals(domain, 1))):
        mechanism = MWEM(workload=asked, epsilon=1, delta=delta, unit_weight=10)
        said = [mechanism.release(cells, entropy=Entropy.for_tests(run)).values.answers(work) for run in range(3)]
        wrong[name] = np.mean([np.abs(each - truth).sum() / 15 / 2 / cells.sum() for each in said])
    assert wrong["pairs"] < wrong["columns"]


def test_the_best_learns_what_the_book_does_not() -> None:
    truth = PAIRS.answers(CELLS)
    errors = {}
    for method in ("best", "book"):
        release = MWEM(workload=PAIRS, epsilon=1, method=method).release(CELLS, entropy=Entropy.for_tests(2))
        errors[method] = np.abs(release.values.answers(PAIRS) - truth).max()
    assert errors["best"] < 60
    assert errors["best"] < errors["book"] / 5


def test_with_plenty_of_budget_everything_is_learned() -> None:
    work = PAIRS + Workload.prefixes(DOMAIN, "b") + Workload.predicates(DOMAIN, [lambda at: at["a"] + at["b"] > 4])
    for rounds in (None, 3, 30):
        release = MWEM(workload=work, epsilon=10**5, size=20_000, rounds=rounds).release(CELLS)
        wrong = np.abs(release.values.answers(work) - work.answers(CELLS)).max()
        assert wrong < (600 if rounds == 3 else 30)


@pytest.mark.slow
@pytest.mark.parametrize("terms", [{"size": 20_000}, {}, {"size": 20_000, "delta": "1e-6"}], ids=str)
def test_the_bound_of_the_theorem_holds(terms: dict) -> None:
    """Thirty runs in all, at β = 10⁻¹¹ each."""
    for epsilon in (1, 100):
        mechanism = MWEM(workload=PAIRS, epsilon=epsilon, method="book", rounds=40, **terms)
        for _ in range(5):
            synopsis = mechanism.release(CELLS).values
            wrong = np.abs(synopsis.answers(PAIRS) - PAIRS.answers(CELLS)).max()
            assert wrong <= synopsis.accuracy(1e-11) < math.inf
    assert math.isinf(MWEM(workload=PAIRS, epsilon=1).release(CELLS).values.accuracy(0.1))


@pytest.mark.parametrize("cell", [0, -5, 2**63 - 1, 2**80])
@pytest.mark.parametrize("method", ["best", "book"])
def test_values_never_raise(cell: int, method: str) -> None:
    cells = [cell] * 60
    for work in (PAIRS, MIXED):
        for size in (None, 0, 2**40):
            release = MWEM(workload=work, epsilon=1, rounds=2, method=method, size=size).release(cells)
            assert np.isfinite(release.values.weights).all()
    run = OnlineMultiplicativeWeights(workload=MIXED, epsilon=1).start(cells)
    assert math.isfinite(run.ask(0).value)
    alone = Workload.predicates(PAIRS.domain, [np.arange(60) == 0])
    release = MWEM(workload=alone, epsilon=1, rounds=2, method=method).release([cell, *[0] * 59])
    assert np.isfinite(release.values.weights).all()


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"epsilon": 0}, "positive epsilon"),
        ({"epsilon": float("nan")}, "finite"),
        ({"delta": 1}, "delta"),
        ({"changes": 3}, "1 or 2"),
        ({"unit_weight": 0}, "unit_weight"),
        ({"size": -1}, "size"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": 10**6}, "at most 10,000"),
        ({"method": "other"}, "best"),
        ({"workload": DOMAIN}, "a Workload"),
    ],
)
def test_bad_terms_are_refused(terms: dict, message: str) -> None:
    base = {"workload": PAIRS, "epsilon": 1}
    if "rounds" in terms:
        base["method"] = "book"
    with pytest.raises(InvalidArgument, match=message):
        MWEM(**(base | terms))


def test_domains_that_do_not_fit_are_refused_before_any_charge() -> None:
    wide = Domain(tuple(Attribute(f"a{i}", range(10)) for i in range(9)))
    for kind in (MWEM, OnlineMultiplicativeWeights):
        with pytest.raises(InvalidArgument, match=r"GB.*noise on the answers"):
            kind(workload=Workload.all_marginals(wide, 2), epsilon=1)
    with pytest.raises(InvalidArgument, match="60 counts"):
        MWEM(workload=PAIRS, epsilon=1).release([1, 2])


def test_progress_ends_with_one() -> None:
    for method in ("best", "book"):
        told: list[float] = []
        MWEM(workload=PAIRS, epsilon=1, rounds=2, method=method).release(CELLS, progress=told.append)
        assert told == sorted(told)
        assert told[-1] == 1.0


def test_updates_meet_what_was_measured() -> None:
    even = np.full((4, 5, 3), 20_000 / 60)
    work = Workload.marginals(DOMAIN, [("a", "c")])
    values = work.answers(CELLS)
    met = Measured.marginal(DOMAIN, (0, 2)).met(even, values, 20_000.0, 1e-9)
    assert np.allclose(work.answers(met), values)
    whole = Workload.predicates(DOMAIN, [lambda at: at["a"] > at["c"]])
    met = Measured.query(whole, 0).met(even, np.array([15_000.0]), 20_000.0, 1e-9)
    assert whole.answers(met)[0] == pytest.approx(15_000)
    parts = Workload.predicates(DOMAIN, [lambda at: at["a"] / 3 + 0 * at["b"] + 0 * at["c"]])
    met = even
    for _ in range(20):
        met = Measured.query(parts, 0).met(met, np.array([15_000.0]), 20_000.0, 1e-9)
    assert parts.answers(met)[0] == pytest.approx(15_000)
    fitted = polished(even.reshape(-1), PAIRS, PAIRS.answers(CELLS), 200)
    assert np.abs(PAIRS.answers(fitted) - PAIRS.answers(CELLS)).max() < 60
    assert simplex(np.array([5.0, -3.0, 2.0]), 6.0).tolist() == [4.5, 0.0, 1.5]


def test_the_update_of_the_theorem_lowers_the_entropy_as_it_says() -> None:
    weights, total = np.full(60, 20_000 / 60), 20_000.0
    data = CELLS[CELLS > 0] / total

    def entropy(y: np.ndarray) -> float:
        return float(data @ np.log(data * total / y[CELLS > 0]))

    for index in range(0, len(PAIRS), 7):
        cells, entries = PAIRS.support(index)
        truth, said = float(CELLS[cells] @ entries), float(weights[cells] @ entries)
        for noise in (0.0, 300.0, -300.0):
            moved = nudged(weights, cells, entries, truth + noise, total)
            drop = ((truth - said) ** 2 - noise**2) / (4 * total**2)
            assert entropy(weights) - entropy(moved) >= drop - 1e-12
        weights = moved


def test_saved_synopses_say_the_same(tmp_path: object) -> None:
    synopsis = MWEM(workload=PAIRS, epsilon=1, method="book", size=20_000).release(CELLS).values
    again = load(synopsis.save(tmp_path / "pairs.npz"))
    assert isinstance(again, Weights)
    assert (again.answers(MIXED) == synopsis.answers(MIXED)).all()
    for beta in (0.5, 0.05, 1e-9):
        assert synopsis.accuracy(beta) <= again.accuracy(beta) <= synopsis.accuracy(beta * 0.9)


@pytest.mark.parametrize("terms", TERMS, ids=str)
def test_online_no_more_is_charged_than_was_asked_for(terms: dict) -> None:
    for work in (PAIRS, MIXED):
        mechanism = OnlineMultiplicativeWeights(workload=work, updates=7, **terms)
        assert mechanism.loss.epsilon <= mechanism.epsilon
        release = mechanism.release(CELLS, entropy=Entropy.for_tests(1))
        assert not release.private
        assert release.loss == mechanism.loss
        assert release.values.answers(work).size == len(work)


def test_online_only_what_is_wrong_is_paid_for() -> None:
    mechanism = OnlineMultiplicativeWeights(workload=PAIRS, epsilon=50, size=20_000, updates=12, threshold=500)
    run = mechanism.start(CELLS)
    truth = PAIRS.answers(CELLS)
    even = np.full(60, 20_000 / 60)
    said = PAIRS.answers(even)
    far, near = int(np.argmax(np.abs(truth - said))), int(np.argmin(np.abs(truth - said)))
    assert not run.ask(near).hard
    first = run.ask(far)
    assert first.hard
    assert abs(first.value - truth[far]) < 100
    assert abs(PAIRS.answers(run.synopsis.weights)[far] - truth[far]) < abs(said[far] - truth[far])
    for _ in range(30):
        for index in range(len(PAIRS)):
            run.ask(index)
    assert run.exhausted
    assert not run.ask(far).hard
    with pytest.raises(TypeError, match="cannot be copied"):
        __import__("copy").copy(run)
    with pytest.raises(InvalidArgument, match="index"):
        run.ask(len(PAIRS))


@pytest.mark.slow
def test_online_the_bound_of_the_theorem_holds() -> None:
    """Of fixed seeds: less than β = 1/1000 is not proven."""
    for terms in ({"size": 20_000}, {}):
        for epsilon in (1, 50):
            mechanism = OnlineMultiplicativeWeights(workload=PAIRS, epsilon=epsilon, **terms)
            synopsis = mechanism.release(CELLS, entropy=Entropy.for_tests(epsilon)).values
            wrong = np.abs(synopsis.answers(PAIRS) - PAIRS.answers(CELLS)).max()
            assert wrong <= synopsis.accuracy(0.001) < math.inf
    assert math.isinf(mechanism.accuracy(0.001))
    assert math.isinf(OnlineMultiplicativeWeights(workload=PAIRS, epsilon=1, size=9, threshold=1).accuracy(0.1))

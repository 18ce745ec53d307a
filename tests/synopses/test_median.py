"""The median mechanism: databases are halved by hard questions only, and never more often than paid for."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

from discreet import BudgetExceeded, InvalidArgument
from discreet.accounting.pure import pure
from discreet.core.events import Composed
from discreet.noise import Entropy
from discreet.synopses.domain import Attribute, Domain
from discreet.synopses.median import MedianMechanism
from discreet.synopses.queries.workload import Workload

DOMAIN = Domain((Attribute("a", (0, 1, 2)), Attribute("b", (0, 1))))
MARGINALS = Workload.all_marginals(DOMAIN, 1) + Workload.all_marginals(DOMAIN, 2)
DATA = np.array([4000, 0, 1000, 3000, 1500, 500])
SIZE = int(DATA.sum())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threshold", [None, 2000, 0])
def test_hard_questions_halve_what_is_alive_and_easy_ones_leave_it(seed: int, threshold: int | None) -> None:
    median = MedianMechanism(workload=MARGINALS, epsilon=5, size=SIZE, rows=6, threshold=threshold)
    run = median.start(DATA, entropy=Entropy.for_tests(seed))
    hard = 0
    # A threshold below what the nearest database is off by finds no database nearer than the median.
    share = 1 if threshold == 0 else 1 / 2
    for index in [*range(len(MARGINALS))] * 2:
        before, over = run.alive, run.exhausted
        answer = run.ask(index)
        hard += answer.hard
        assert 1 <= run.alive <= before
        assert run.alive <= before * share if answer.hard else run.alive == before
        assert not (over and answer.hard)
        assert not answer.private
    assert hard <= median._design.updates
    assert (hard == median._design.updates) == run.exhausted
    assert hard or threshold is None


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("size", [SIZE, None])
def test_answers_are_within_the_bound(delta: object, size: int | None) -> None:
    """But for a chance of 1/20, in which a seed would show it every time."""
    median = MedianMechanism(workload=MARGINALS, epsilon=5, delta=delta, size=size, rows=6)
    synopsis = median.release(DATA, entropy=Entropy.for_tests(1)).values
    error = np.abs(synopsis.answers(MARGINALS) - MARGINALS.answers(DATA)).max()
    assert error <= synopsis.accuracy("0.05") < SIZE
    if size is not None:
        assert median.accuracy("0.05") == synopsis.accuracy("0.05")


def test_what_is_charged_is_what_is_run() -> None:
    median = MedianMechanism(workload=MARGINALS, epsilon=1, unit_weight=3, rows=4, updates=5)
    bought, compared, measured = median.events
    assert pure(Composed((bought, compared, measured))).epsilon == 1 == median.loss.epsilon
    assert measured.count == 5
    assert measured.event.sensitivity == 3 == median._design.comparing.sensitivity
    assert median._design.comparing.positives == 5
    assert bought.sensitivity == 3


def test_the_total_is_divided_exactly_as_declared() -> None:
    approximately = MedianMechanism(workload=MARGINALS, epsilon=1, delta="1e-6", size=SIZE, rows=4)
    assert approximately.loss.epsilon <= 1
    assert approximately.loss.delta == Fraction(1, 10**6)
    assert approximately._design.measuring.squared_sensitivity == approximately._design.updates


def test_nothing_is_proven_with_too_few_halvings_or_too_low_a_threshold() -> None:
    full = MedianMechanism(workload=MARGINALS, epsilon=5, size=SIZE, rows=6)
    assert full.accuracy("0.05") < np.inf
    assert full.accuracy("0.01") == np.inf
    least = full._design.threshold(SIZE, Fraction(1, 100))[0]
    for fewer in ({"updates": 3}, {"threshold": 10}):
        assert MedianMechanism(workload=MARGINALS, epsilon=5, size=SIZE, rows=6, **fewer).accuracy("0.05") == np.inf
    higher = MedianMechanism(workload=MARGINALS, epsilon=5, size=SIZE, rows=6, threshold=least)
    assert full.accuracy("0.05") < higher.accuracy("0.01") < np.inf


def test_a_run_is_not_copied_and_knows_its_questions() -> None:
    run = MedianMechanism(workload=MARGINALS, epsilon=1, size=SIZE, rows=3).start(DATA)
    with pytest.raises(TypeError):
        pickle.dumps(run)
    for index in (-1, len(MARGINALS), 1.5, None):
        with pytest.raises(InvalidArgument, match="index"):
            run.ask(index)


def test_a_forked_process_gets_no_answers_from_data(monkeypatch: pytest.MonkeyPatch) -> None:
    run = MedianMechanism(workload=MARGINALS, epsilon=1, size=SIZE, rows=3).start(DATA)
    monkeypatch.setattr("os.getpid", lambda: 0)
    with pytest.raises(BudgetExceeded):
        run.ask(0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rows": 200}, "rows of 6 kinds.*use Online"),
        ({"rows": 0}, "rows"),
        ({"updates": 0}, "updates"),
        ({"threshold": -1}, "threshold"),
        ({"threshold": 0.5}, "threshold"),
        ({"size": 1 << 52, "workload": Workload.predicates(DOMAIN, [np.full(6, 0.5)])}, "size"),
    ],
)
def test_bad_parameters_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        MedianMechanism(**{"workload": MARGINALS, "epsilon": 1, "size": SIZE} | fields)


def test_too_many_kinds_are_refused_before_anything() -> None:
    wide = Domain((Attribute("a", tuple(range(1000))),))
    with pytest.raises(InvalidArgument, match="723 kinds"):
        MedianMechanism(workload=Workload.marginals(wide, [("a",)]), epsilon=1)

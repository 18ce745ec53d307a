"""What leaves: noise on every bit, no holes, groups that hide whoever is alone in them, nothing seeded.

Lines of the list of known privacy bugs that are tested here: low-order bits; holes in the reachable outputs; the last
bit and the length of the output; the threshold for keys that are not listed; absent keys filled and noised alike; any
generator but ours, processes that share a state, a test seed in production; the proof of another mechanism; one
engine statement whatever the data. The laws of the samplers, sparse vector's broken variants, the odometer and
amplification by sampling: tests/attacks/test_noise.py, tests/noise, tests/adversary, tests/accounting.
"""

import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.attacks import sql_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import Exact, exact, opened
from tests.sql import faults as planted

import discreet as dc
from discreet.accounting import account
from discreet.core.events import Composed
from discreet.mechanisms import Laplace
from discreet.noise import Entropy
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.bounding.clipping_norms import G, H

COUNT = "SELECT COUNT(*) AS n FROM t"
BY_KEY = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


def people(rows_of_one: int) -> dict[str, Any]:
    return {"who": np.array([1, 2, 3] + [9] * rows_of_one), "k": np.array(["a"] * (3 + rows_of_one))}


def outcomes(data: Any, question: str, seeds: range, **facts: Any) -> list[int]:
    """Released sums in the steps that noise is drawn in."""
    with opened(data, **facts) as session:
        found = exact(session, question)
        step = found.measurement.statistics[0].grid.step / (G * H)
        return [int(Fraction(found.release(seed).sums[0][0]) / step) for seed in seeds]


def lattice(values: list[int]) -> int:
    """The step that all differences are multiples of."""
    return math.gcd(*(value - values[0] for value in values))


@pytest.mark.parametrize("budget", [dc.PureDP(50), dc.ApproxDP(50, "1e-6")], ids=["pure", "approx"])
@attack(1, 22, finds=[sql_faults.noise_in_whole_steps], budget=dc.PureDP(50))
def test_every_bit_of_a_sum_is_noise_whatever_is_counted(budget: Any) -> None:
    # A unit with 7 rows has a weight of ⌊G/7⌋ parts: its share has all kinds of low bits.
    facts: dict[str, Any] = {"budget": budget, "max_rows": 5}
    for rows in (0, 1, 7):
        values = outcomes(people(rows), COUNT, range(300), **facts)
        odd = sum(value % 2 for value in values)
        # Binomial(300, 1/2) lies outside with probability below 1e-9.
        assert 95 < odd < 205
        assert lattice(values) == 1


def test_noise_does_not_know_the_data() -> None:
    """With one seed, neighbours differ by what the unit adds and by nothing else."""
    facts: dict[str, Any] = {"max_rows": 5, "values": {"k": ["a", "b"]}}
    found = []
    for rows in (0, 3):
        with opened(people(rows), **facts) as session:
            found.append(exact(session, BY_KEY))
    for seed in range(20):
        moved = found[1].release(seed).sums - found[0].release(seed).sums
        assert moved.tolist() == [[3.0], [0.0]]


def test_groups_without_rows_get_the_same_noise() -> None:
    with opened(people(0), values={"k": ["a", "b"]}, max_rows=1, budget=dc.PureDP(50)) as session:
        found = exact(session, BY_KEY)
    draws = np.array([found.release(seed).sums[:, 0] for seed in range(4000)])
    spread = np.std(draws, axis=0)
    # The deviation of 4000 Laplace draws is within 15 % of the true one but for less than 1e-9.
    assert spread == pytest.approx(math.sqrt(2) * found.measurement.scale(0, 0), rel=0.15)


@pytest.mark.parametrize(("groups", "tries"), [(1, 600), (9, 600)], ids=["one group", "nine groups"])
@attack(21, finds=[sql_faults.threshold_forgets_the_noise], groups=1, tries=100)
def test_a_unit_alone_in_its_groups_shows_up_no_more_than_delta(groups: int, tries: int) -> None:
    rows = {"who": np.full(groups, 7), "k": np.array([f"secret {g}" for g in range(groups)])}
    with opened(rows) as session:
        found = exact(session, BY_KEY)
    # At a δ that can be measured; at the real one nothing shows.
    wide = replace(found, measurement=replace(found.measurement, threshold_delta=Fraction(1, 20)))
    assert shown(found, tries // 3) == 0
    # A threshold that forgets the noise shows half.
    assert shown(wide, tries) <= binom.isf(1e-9, tries, 1 / 20)


def shown(found: Exact, tries: int) -> int:
    return sum(len(found.release(seed).keys) > 0 for seed in range(tries))


@pytest.mark.parametrize("question", [COUNT, BY_KEY, "SELECT k, AVG(v) AS m, MEDIAN(v) AS q FROM t GROUP BY k"])
@attack(22, 27, finds=[planted.empty_groups_hidden], question=BY_KEY)
def test_the_number_of_rows_shown_is_known_beforehand(question: str) -> None:
    keys = {"k": ["a", "b", "c"]}
    for rows in (0, 1, 500):
        data = people(rows) | {"v": np.arange(3.0 + rows)}
        with opened(data, values=keys, bounds={"v": (0, 9)}) as session:
            answer = session.sql(question, epsilon=1)
            assert len(answer.rows) == (1 if question == COUNT else 3)


def test_no_other_generator_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("not from here")

    for name in ("random", "gauss", "getrandbits", "uniform", "randint"):
        monkeypatch.setattr(random, name, forbidden)
    for name in ("default_rng", "normal", "laplace", "random", "seed", "rand", "randn"):
        monkeypatch.setattr(np.random, name, forbidden)
    with opened(people(3) | {"v": np.arange(6.0)}, bounds={"v": (0, 9)}, values={"k": ["a"]}) as session:
        for question in (
            BY_KEY,
            "SELECT MEDIAN(v) AS q, SUM(v) AS s FROM t",
            "SELECT who % 2 AS k, COUNT(*) FROM t GROUP BY 1",
        ):
            answer = session.sql(question, epsilon=1)
            assert answer.private
            assert answer.certificate


def test_seeds_of_numpy_and_random_change_nothing() -> None:
    answers = set()
    for _ in range(8):
        random.seed(0)
        np.random.seed(0)
        with opened(people(3)) as session:
            answers.add(session.sql(COUNT, epsilon="0.001").rows)
    assert len(answers) > 1


def rows_in(rows: Any) -> float:
    return float(len(rows["who"]))


def asked_from_a_seed(session: Session) -> Iterator[Callable[[], Any]]:
    """Every way to ask with randomness for tests."""
    seed = Entropy.for_tests(0)
    yield lambda: session.sql(COUNT, epsilon=1, test_entropy=seed)
    yield lambda: session.sql(COUNT, error=5, test_entropy=Entropy.scripted_for_tests([1, 2]))
    yield lambda: session.sql(BY_KEY, epsilon=1, test_entropy=Entropy.of_released(b"known to all"))
    yield lambda: session.sql(COUNT, epsilon=2, test_entropy=Own())
    yield lambda: session.sql(COUNT, epsilon=3, test_entropy=Vouched())
    yield lambda: session.sql(COUNT, epsilon=4, test_entropy=turned())
    yield lambda: session.synthesize(["k"], epsilon=1, test_entropy=seed)
    bounds = {"bounds": (0, 9), "form": "numpy", "blocks": 4}
    yield lambda: session.estimate(rows_in, ["who"], epsilon=1, test_entropy=seed, **bounds)  # type: ignore[arg-type]


class Own(Entropy):
    """A generator of somebody's own."""

    def _generate(self, out: Any) -> None:
        out[...] = 1


class Vouched(Own):
    """One that says of itself that it is private."""

    private = True


def turned() -> Entropy:
    """The system's own kind, with another generator put into it."""
    source = Entropy()
    source._generate = lambda out: out.fill(1)  # type: ignore[method-assign]
    return source


@attack(
    36,
    finds=[sql_faults.seeds_in_earnest, sql_faults.seeds_unmarked, sql_faults.sources_that_vouch_for_themselves],
)
def test_randomness_for_tests_is_refused_by_books_that_last(tmp_path: Path) -> None:
    """Whoever asks an empty table with the same seed knows the noise: what a seed drew is the truth."""
    facts: dict[str, Any] = {"values": {"k": ["a", "b"]}, "max_rows": 3}
    with opened(people(3), **facts, ledger=tmp_path / "books.db") as session:
        before = session._ledger.head()
        for ask in asked_from_a_seed(session):
            with pytest.raises(dc.InvalidArgument, match="test_entropy"):
                ask()
        assert session._ledger.head() == before
    with opened(people(3), **facts) as session:
        for ask in asked_from_a_seed(session):
            released = ask()
            assert not released.private
            assert "NOT PRIVATE" in str(released)
            assert "NOT PRIVATE" in released._repr_html_()
            [*_, charge] = [e.content for e in session._ledger.entries() if e.content["kind"] == "charge"]
            assert "NOT PRIVATE" in charge["note"]


def test_a_seeded_answer_says_so_and_is_signed_by_nobody() -> None:
    with opened(people(3)) as session:
        seeded = session.sql(COUNT, epsilon=1, test_entropy=Entropy.for_tests(0))
        assert not seeded.private
        assert seeded.certificate == {}
        real = session.sql(COUNT, epsilon=1)
        assert real.private
        assert len([e for e in session._ledger.entries() if e.content["kind"] == "charge"]) == 2


ASK = """
import os, sys
import numpy as np
import discreet as dc
with dc.connect({"who": np.arange(9)}, unit=dc.User("who"), budget=dc.PureDP(1), table="t") as session:
    print(session.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.0001").rows[0][0])
"""
FORK = """
import os
import discreet as dc
from discreet.noise import discrete_laplace
discrete_laplace(10**6, 3)
read, write = os.pipe()
child = os.fork()
draws = discrete_laplace(10**6, 5).tolist()
os.write(write, (repr(draws) + "\\n").encode())
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print(os.read(read, 10_000).decode())
"""


def test_processes_draw_noise_of_their_own() -> None:
    asked = [subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True) for _ in range(3)]
    assert len({each.stdout for each in asked}) == 3
    forked = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert len(set(forked.stdout.split("\n")) - {""}) == 2


@pytest.mark.parametrize("budget", [dc.PureDP(20), dc.ApproxDP(20, "1e-6")], ids=["pure", "approx"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_what_is_charged_is_what_the_noise_that_was_drawn_costs(budget: Any, neighbours: Any) -> None:
    """The events are read again, and their noise is that of the samplers, over the declared movement."""
    unit = dc.User("who", neighbours=neighbours)
    facts: dict[str, Any] = {"values": {"k": [*"abcdefghij"]}, "bounds": {"v": (0, 9)}, "budget": budget}
    with opened(people(3) | {"v": np.arange(6.0)}, unit, **facts) as session:
        for question in (BY_KEY, "SELECT k, AVG(v) AS m, MEDIAN(v) AS q FROM t GROUP BY k", COUNT):
            asked = SQL(question, 2).bind(session._context).plan().decided
            spent = account(Composed(asked.measurement.events), type(budget), **_delta(budget))
            assert spent.epsilon <= 2
            measurement = asked.measurement
            assert measurement.weights is not None
            parts = []
            for place, statistic in enumerate(measurement.statistics):
                caps = measurement.weights.caps(statistic.weighing)
                moved = caps.movement(statistic.bound, 0) * measurement.changes
                parts.append(float(moved * measurement.ratio / measurement.deviation(place, 0)))
            together = sum(parts) if measurement.norm == "l1" else math.hypot(*parts)
            assert together <= 1 + 1e-12


def _delta(budget: Any) -> dict[str, Any]:
    return {"delta": budget.delta} if isinstance(budget, dc.ApproxDP) else {}


@attack(30, finds=[sql_faults.large_tables_read_twice])
def test_one_statement_runs_for_each_question_whatever_the_data() -> None:
    for rows in (0, 400):
        with opened(people(rows)) as session:
            ran: list[str] = []
            honest = session._engine.run
            session._engine.run = lambda text, honest=honest, ran=ran: (ran.append(text), honest(text))[1]
            session.sql(BY_KEY, epsilon=1)
            session.sql(BY_KEY, epsilon=1)
            assert len(ran) == 1


def test_certificates_and_books_hold_nothing_but_what_was_released(tmp_path: Path) -> None:
    secret = "Rumpelstiltskin"
    data = {"who": np.array([1, 2]), "k": np.array([secret, "a"])}
    with opened(data, ledger=tmp_path / "books") as session:
        answer = session.sql(BY_KEY, epsilon=1)
        session.sql("SELECT COUNT(*) AS n FROM t WHERE k = 'a'", epsilon=1)
        assert answer.rows == ()
        assert secret not in json.dumps(answer.certificate)
        assert secret not in str(answer) + repr(answer) + answer._repr_html_()
    for path in tmp_path.iterdir():
        assert secret.encode() not in path.read_bytes()


@attack(6, 15, 37, finds=[sql_faults.sensitivities_believed])
def test_a_mechanism_with_noise_for_less_than_counts_move_is_not_run_on_them() -> None:
    """Half a row in ℓ1, and one row where a row is replaced or is in two tables."""
    rows = {"city": ["Bern"] * 60 + ["Oslo"] * 40}
    both = "SELECT COUNT(*) AS n FROM (SELECT city FROM t UNION ALL SELECT city FROM again)"
    for mechanism, unit, text in (
        (Laplace.for_epsilon(1, "0.5", real=True), dc.Row(), "SELECT COUNT(*) AS n FROM t"),
        (Laplace.for_epsilon(1), dc.Row(neighbours="replace"), "SELECT COUNT(*) AS n FROM t"),
        (Laplace.for_epsilon(1), dc.Row(), both),
    ):
        terms: dict[str, Any] = {"unit": unit, "budget": dc.PureDP(9), "table": "t", "private": {"again": rows}}
        with dc.connect(rows, **terms) as session, pytest.raises(dc.InvalidArgument, match="which is how far"):
            session.release(mechanism, text)

"""Bits are read off answers whose noise is below √n, and not off private ones; refusals are told and borne."""

import csv
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from discreet import ApproxDP, InvalidArgument, PureDP, User, connect
from discreet.adversary import (
    FromConnection,
    FromFile,
    FromFunction,
    FromSession,
    Hadamard,
    Listed,
    epsilon_proven,
    most_by_chance,
    reconstruct,
)
from discreet.adversary.reconstruction.chance import power
from discreet.adversary.reconstruction.decoding import best_candidate, least_absolute, least_squares
from discreet.adversary.reconstruction.subset_queries import transform
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise.entropy import Entropy

N = 128
TEMPLATE = "SELECT COUNT(*) AS n FROM people WHERE flu = 1 AND {subset}"


def bits(n: int = N, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 2, n)


def noisy(queries: Any, truth: Any, noise: float, seed: int = 1) -> Any:
    spread = noise * np.sqrt(truth.size)
    return queries.apply(truth) + np.random.default_rng(seed).normal(0, spread, len(queries))


SETS = {
    "random subsets": lambda: Listed.drawn(N, 8 * N, test_entropy=Entropy.for_tests(1)),
    "random signs": lambda: Listed.drawn(N, 8 * N, signs=True, test_entropy=Entropy.for_tests(2)),
    "sparse": lambda: Listed.sparse(N, 12 * N, 32, signs=True, test_entropy=Entropy.for_tests(3)),
    "Hadamard": lambda: Hadamard(N, rounds=8, test_entropy=Entropy.for_tests(4)),
    "Hadamard signs": lambda: Hadamard(N, rounds=3, signs=True, test_entropy=Entropy.for_tests(5)),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("method", ["least squares", "robust"])
def test_noise_of_a_fifth_of_the_root_protects_nobody(name: str, method: Any) -> None:
    truth, queries = bits(), SETS[name]()
    found = reconstruct(noisy(queries, truth, 0.2), queries, method=method, truth=truth)
    assert found.right is not None
    assert found.right >= 0.99
    assert found.certainty >= 0.98
    assert found.verdict.startswith("BROKEN")
    assert found.beats_chance(epsilon=1.0)
    assert found.epsilon_proven > 1.5


@pytest.mark.parametrize("name", SETS)
def test_queries_agree_with_their_weights_written_down(name: str) -> None:
    queries = SETS[name]()
    matrix = np.stack([queries.row(index) for index in range(len(queries))])
    x, y = np.random.default_rng(0).normal(size=N), np.random.default_rng(1).normal(size=len(queries))
    assert np.allclose(queries.apply(x), matrix @ x)
    assert np.allclose(queries.transpose(y), matrix.T @ y)
    part = queries.matrix([0, 5])
    assert np.allclose(part.toarray() if hasattr(part, "toarray") else part, matrix[[0, 5]])


def test_many_people_by_the_fast_transform() -> None:
    truth = bits(65_536)
    queries = Hadamard(65_536, signs=True)
    found = reconstruct(noisy(queries, truth, 0.2), queries, truth=truth)
    assert found.method == "least squares"
    assert found.right is not None
    assert found.right >= 0.99
    # What the answers say of themselves is what is true: 10 standard deviations of the true part.
    assert abs(found.certainty - found.right) < 0.004


def test_the_transform_is_its_own_inverse() -> None:
    values = np.random.default_rng(0).normal(size=(3, 64))
    assert np.allclose(transform(transform(values)) / 64, values)


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian", "too little"])
def test_answers_that_are_private_together_are_not_read(noise: str) -> None:
    """ε = 0.1 for all questions: right guesses stay where chance allows them; with too little noise they do not."""
    n = 512
    truth, queries = bits(n), Hadamard(n)
    exact, k = queries.apply(truth).astype(np.int64), len(queries)
    release = {
        "Laplace": Laplace.for_epsilon("0.1", k, dimension=k),
        "Gaussian": Gaussian.for_approx("0.1", "1e-6", k, dimension=k),
        "too little": Laplace.for_epsilon(1000, k, dimension=k),
    }[noise]
    found = reconstruct(release.release(exact).values, queries, truth=truth)
    assert found.beats_chance(0.1) == (noise == "too little")
    assert found.verdict.startswith("BROKEN" if noise == "too little" else ("HELD", "LEAKING"))
    assert power(n, 0.8, 0.1) > 1 - 1e-9


def test_a_session_is_asked_through_its_front_door_and_holds() -> None:
    n = 48
    truth = bits(n)
    values: dict[str, Any] = {"flu": [0, 1]}
    people = {"person": np.arange(n), "flu": truth}
    queries = Hadamard(n)
    each = PureDP("0.1").epsilon / len(queries)
    with connect(people, unit=User("person"), budget=PureDP(1), table="people", values=values) as session:
        found = reconstruct(FromSession(session, TEMPLATE, "person", range(n), each), queries, truth=truth)
        assert found.answered == len(queries)
        assert 0.099 < float(session.spent.epsilon) <= 0.1001
    assert found.truth is not None
    assert not found.beats_chance(0.1)
    raw = duckdb.connect(config={"threads": 1})
    raw.execute("CREATE TABLE people (person INT, flu INT)")
    raw.executemany("INSERT INTO people VALUES (?, ?)", list(zip(range(n), truth.tolist(), strict=True)))
    open_door = reconstruct(FromConnection(raw, TEMPLATE, "person", range(n)), queries, truth=truth)
    assert open_door.right == 1.0
    assert open_door.beats_chance(0.1)


def test_a_budget_that_ends_is_a_refusal_and_not_a_crash() -> None:
    truth = bits(16)
    people = {"person": np.arange(16), "flu": truth}
    values: dict[str, Any] = {"flu": [0, 1]}
    with connect(people, unit=User("person"), budget=ApproxDP(1, "1e-9"), table="people", values=values) as session:
        answerer = FromSession(session, TEMPLATE, "person", range(16), "0.25", patience=5)
        found = reconstruct(answerer, Hadamard(16))
    assert 0 < found.answered < 16
    assert any(reason.startswith("BudgetExceeded") for reason in found.reasons)
    assert sum(found.reasons.values()) == 16 - found.answered


def test_bits_and_chances_are_never_printed() -> None:
    truth = bits()
    queries = SETS["random subsets"]()
    found = reconstruct(queries.apply(truth), queries, truth=truth)
    secret = "".join(map(str, truth.tolist()))[:8]
    for shown in (repr(found), str(found), found._repr_html_(), str(found.as_record())):
        assert secret not in shown.replace(",", "").replace(" ", "")
    assert found.as_record(reveal=True)["bits"] == truth.tolist()


def test_theorem_8_1_all_but_four_times_the_error() -> None:
    generator = np.random.default_rng(2)
    for error in (0.0, 0.5, 1.0, 1.4):
        truth = generator.integers(0, 2, 9)
        other = truth ^ (np.arange(9) < 4 * error)
        queries = Listed.all_subsets(9)
        answers = queries.apply(truth) + np.clip(queries.apply(other - truth) / 2, -error, error)
        found, worst = best_candidate(9, answers)
        assert worst <= error + 1e-12
        assert (found != truth).sum() <= 4 * error
    every = np.abs(queries.apply(np.array([(c >> np.arange(9)) & 1 for c in range(512)]).T) - answers[:, None])
    assert worst == pytest.approx(every.max(axis=0).min())


def test_arbitrary_answers_are_borne_by_absolute_errors_and_not_by_squares() -> None:
    truth, queries = bits(), SETS["random signs"]()
    answers = noisy(queries, truth, 0.05)
    lied = np.random.default_rng(3).permutation(len(queries))[: len(queries) // 4]
    answers[lied] = queries.apply(1 - truth)[lied] * 5
    rough = least_absolute(queries, answers)
    assert ((rough > 0.5) == truth).all()
    assert ((least_squares(queries, answers) > 0.5) == truth).mean() < 0.9
    # Nothing fits better: the sum of absolute errors is convex, and no small step makes it smaller.
    least = np.abs(answers - queries.apply(rough)).sum()
    for seed in range(20):
        step = np.random.default_rng(seed).normal(size=N) * 1e-2
        assert least <= np.abs(answers - queries.apply(rough + step)).sum() * (1 + 1e-4)


def test_the_linear_program_reads_bounded_errors() -> None:
    truth = bits(48)
    queries = Listed.drawn(48, 240, signs=True, test_entropy=Entropy.for_tests(6))
    answers = queries.apply(truth) + np.random.default_rng(0).uniform(-1.5, 1.5, 240)
    found = reconstruct(answers, queries, method="linear program", truth=truth)
    assert found.right == 1.0


def test_fewer_answers_than_people_say_less_and_say_so() -> None:
    truth = bits()
    queries = Listed.drawn(N, N // 2, signs=True, test_entropy=Entropy.for_tests(7))
    found = reconstruct(queries.apply(truth), queries, truth=truth)
    assert found.right is not None
    assert 0.6 < found.right < 0.95
    assert abs(found.certainty - found.right) < 0.15


def test_answerers_that_raise_refuse_or_say_nothing_sensible() -> None:
    truth = bits()
    queries = SETS["random subsets"]()

    def moody(weights: Any) -> Any:
        asked = int(weights.sum())
        if asked % 3 == 0:
            raise TimeoutError("later")
        return "n/a" if asked % 7 == 1 else np.inf if asked % 11 == 1 else weights @ truth

    found = reconstruct(moody, queries, truth=truth)
    assert found.right == 1.0
    assert any("TimeoutError" in reason for reason in found.reasons)
    assert found.answered + sum(found.reasons.values()) == found.asked

    def closed(weights: Any) -> Any:
        raise ConnectionError

    nothing = reconstruct(closed, queries, truth=truth)
    assert nothing.answered == 0
    assert nothing.verdict == "NOTHING: no question was answered."
    assert "NOTHING" in str(nothing) + nothing._repr_html_()
    # After fifty refusals in a row nobody asks on.
    assert nothing.reasons["not asked: too many refusals in a row"] == len(queries) - 50
    broken = FromFunction(lambda queries: 1 / 0, batch=True).ask(queries)
    assert broken.reasons == {"ZeroDivisionError: division by zero": len(queries)}


def test_files_of_answers(tmp_path: Path) -> None:
    truth = bits(20)
    queries = Listed.drawn(20, 100, test_entropy=Entropy.for_tests(8))
    answers = [str(value) if place % 9 else "suppressed" for place, value in enumerate(queries.apply(truth))]
    with (tmp_path / "both.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["answer", *(f"p{i}" for i in range(20))])
        writer.writerows([[a, *row] for a, row in zip(answers, queries.matrix().astype(int).tolist(), strict=True)])
    read = FromFile.queries(tmp_path / "both.csv")
    found = reconstruct(tmp_path / "both.csv", read, truth=truth)
    assert (found.right, found.answered) == (1.0, 88)
    with pytest.raises(InvalidArgument, match="with a column 'noisy'"):
        FromFile(tmp_path / "both.csv", "noisy").ask(read)
    with pytest.raises(InvalidArgument, match="one for each query"):
        FromFile(tmp_path / "both.csv").ask(Listed.drawn(20, 99))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Listed([[1, np.nan]]), "finite weights"),
        (lambda: Listed.all_subsets(40), "at most 20"),
        (lambda: reconstruct([1.0], Listed([[1.0], [0.0]])), "one for each query"),
        (lambda: reconstruct([1.0], Listed([[1.0]]), truth=[2]), "1 bits, 0 or 1"),
        (lambda: reconstruct([1.0], Listed([[1.0]]), method="magic"), "least squares, robust"),
        (lambda: reconstruct([1.0], Listed([[1.0]]), method="all candidates"), "all subsets"),
        (lambda: reconstruct([1.0], [[1.0]]), "Listed or Hadamard"),
        (lambda: FromConnection(":memory:", "SELECT 1", "id", [1]).ask(Listed([[1.0]])), "{subset}"),
        (lambda: FromConnection(7, TEMPLATE, "id", [1]).ask(Listed([[1.0]])), "connection with cursors"),
        (lambda: FromConnection(":memory:", TEMPLATE, "id", [1, 2]).ask(Listed([[1.0]])), "as the queries have"),
    ],
    ids=["nan", "all subsets", "count", "truth", "method", "candidates", "queries", "template", "connection", "people"],
)
def test_wrong_arguments_are_named(wrong: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        wrong()


def test_names_in_statements_cannot_break_out() -> None:
    raw = duckdb.connect(config={"threads": 1})
    raw.execute("CREATE TABLE people (person TEXT, flu INT)")
    names = ["O'Hara", "x'); DROP TABLE people; --", 'say "hi"']
    raw.executemany("INSERT INTO people VALUES (?, 1)", [[name] for name in names])
    answers = FromConnection(raw, TEMPLATE, "person", names).ask(Listed(np.eye(3)))
    assert answers.values.tolist() == [1.0, 1.0, 1.0]


def test_chance_is_the_binomial_bound() -> None:
    from scipy.stats import binom

    for n, epsilon in ((64, 0.0), (1000, 0.1), (1000, 2.0)):
        q, most = 1 / (1 + np.exp(-epsilon)), most_by_chance(n, epsilon)
        assert binom.sf(most, n, q) <= 1e-9 < binom.sf(most - 1, n, q)
    assert epsilon_proven(500, 1000) == 0.0
    # Randomized response at ε = 2 keeps 88 % of the bits: what is proven stays below 2.
    assert 1.3 < epsilon_proven(881, 1000) < 2


def test_the_figure_is_drawn() -> None:
    truth, queries = bits(), SETS["random signs"]()
    found = reconstruct(noisy(queries, truth, 1.0), queries, truth=truth)
    assert "estimate of a bit" in str(found.plot().to_dict())

"""A mechanism is charged through a session: on a value that the caller vouches for, or on counts."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import mechanisms, robust
from discreet.mechanisms import Exponential, Gaussian, Laplace, NoisyMax, PermuteAndFlip, Staircase
from discreet.mechanisms.sparse_vector import Answer
from discreet.noise import Entropy
from discreet.session.session import Session

ROWS = {"city": np.array(["a"] * 700 + ["b"] * 200 + ["c"] * 100), "x": np.arange(1000.0)}
COUNT = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
ALL = "SELECT COUNT(*) AS n FROM visits"


def connected(folder: Path, **more: Any) -> Session:
    facts: dict[str, Any] = {"unit": dc.Row(), "budget": dc.ApproxDP(9, "1e-6"), "table": "visits"} | more
    folder.mkdir(exist_ok=True)
    facts["values"] = {"city": ["a", "b", "c"]}
    return dc.connect(ROWS, ledger=folder / "books", dataset="visits", **facts)


def test_a_value_is_charged_before_it_is_released_and_each_time(tmp_path: Path) -> None:
    with connected(tmp_path) as session:
        run = dc.RunMechanism(Laplace.for_epsilon("0.5"), 1974, "patients in 2030")
        quote = session.price(run)
        assert (quote.loss.epsilon, quote.fits, session.spent.epsilon) == (Fraction(1, 2), True, 0)
        first, second = session.ask(run), session.release(Laplace.for_epsilon("0.5"), 1974, about="patients in 2030")
        assert session.spent.epsilon == 1
        assert abs(first.values - 1974) < 80
        assert isinstance(second.values, int)
        low, high = first.intervals(0.95)
        assert low < first.values < high
        said = dc.verify(first.certificate, answer=first)
        assert said.loss == quote.loss
        assert said.question == "Laplace on a value that whoever asked computed: patients in 2030"
        assert session._ledger.confirm(first.certificate, keys=[first.certificate["key"]]) == ()
        with pytest.raises(dc.BudgetExceeded):
            session.release(Laplace.for_epsilon(9), 1974)
        assert "1974" not in first._repr_html_() or first.values == 1974


GIVEN: list[tuple[Any, Any]] = [
    (Laplace.for_epsilon(1, dimension=3), np.array([1, 2, 3])),
    (Laplace.for_epsilon(1, 5, real=True), 2.5),
    (Gaussian.for_zcdp("0.1", dimension=2), np.array([[1], [2]])),
    (Staircase(Fraction(1), Fraction(1)), 7),
    (Exponential(Fraction(1)), [3, 9, 1]),
    (PermuteAndFlip(Fraction(1)), [3, 9, 1]),
    (NoisyMax(Fraction(1)), [3, 9, 1]),
    (mechanisms.Quantiles((Fraction(1, 4), Fraction(3, 4)), Fraction(1), dc.Bounds(0, 100)), np.arange(100)),
    (mechanisms.SparseVector.for_epsilon(1, threshold=5, positives=2), [1, 9, 2, 50]),
    (mechanisms.Quantile(Fraction(1, 2), Fraction(1), dc.Bounds(0, 100)), np.arange(100)),
]


@pytest.mark.parametrize(("mechanism", "data"), GIVEN, ids=lambda value: type(value).__name__)
def test_what_each_mechanism_releases_is_stored_to_the_last_bit(mechanism: Any, data: Any, tmp_path: Path) -> None:
    with dc.connect(ROWS, unit=dc.Row(), budget=dc.ApproxDP(9, "1e-6"), table="visits") as session:
        asked = session.release(mechanism, data, test_entropy=Entropy.for_tests(3))
        direct = mechanism.release(data, entropy=Entropy.for_tests(3))
        assert np.array_equal(asked.values, direct.values) or asked.values == direct.values
        assert not asked.private
    with connected(tmp_path) as session:
        release = session.release(mechanism, data)
        assert release.private
        assert dc.verify(release.certificate, answer=release).events == tuple(mechanism.events)
        assert all(len(row) == 1 for row in release.rows)


def test_comparisons_and_no_answer_are_read_again(tmp_path: Path) -> None:
    with connected(tmp_path) as session:
        compared = session.release(mechanisms.SparseVector.for_epsilon(4, threshold=5, positives=1), [0, 900])
        assert compared.values == (Answer(False), Answer(True))


def test_counts_are_read_from_the_table_for_a_mechanism_that_covers_how_far_they_move(tmp_path: Path) -> None:
    with connected(tmp_path) as session:
        counts = session.release(Laplace.for_epsilon(1, dimension=3), COUNT)
        assert np.abs(counts.values - [700, 200, 100]).max() < 60
        assert "COUNT(*)" in dc.verify(counts.certificate).question
        assert abs(session.release(Staircase(Fraction(1), Fraction(1)), ALL).values - 1000) < 60
        assert session.release(PermuteAndFlip(Fraction(1), monotonic=True), COUNT).values == 0
        spent = session.spent
        small = Laplace.for_epsilon(1, "0.5", real=True)
        assert small.scale < 1
        for mechanism, text, said in (
            (small, ALL, "at least 1"),
            (Gaussian.for_zcdp(1, "0.5", real=True), ALL, "at least 1"),
            (Laplace.for_epsilon(1), COUNT, "dimension"),
            (Staircase(Fraction(1), Fraction(1)), COUNT, "one count"),
            (mechanisms.SparseVector.for_epsilon(1, threshold=5, positives=1), COUNT, "takes counts"),
            (Laplace.for_epsilon(1), "SELECT SUM(x) AS s FROM visits", ""),
            (Laplace.for_epsilon(1), f"{COUNT} LIMIT 1", "COUNT"),
            (Laplace.for_epsilon(1), "SELECT 1000000 - COUNT(*) AS n FROM visits", "as it is"),
            (Laplace.for_epsilon(1), "SELECT COUNT(*) / 1000 AS n FROM visits", "as it is"),
            (Laplace.for_epsilon(1), "SELECT COUNT(*) AS n, COUNT(*) AS m FROM visits", "as it is"),
            (PermuteAndFlip(Fraction(1)), "SELECT city, -COUNT(*) AS n FROM visits GROUP BY city", "as it is"),
            (PermuteAndFlip(Fraction(1)), "SELECT COUNT(*) AS n, city FROM visits GROUP BY city", "as it is"),
            (Laplace.for_epsilon(1), "SELECT x, COUNT(*) AS n FROM visits GROUP BY x", "listed"),
            (Laplace.for_epsilon(1), "SELECT 1", ""),
        ):
            with pytest.raises((dc.InvalidArgument, dc.Unsupported), match=said):
                session.release(mechanism, text)
        assert session.spent == spent


def test_replaced_rows_and_rows_in_two_tables_move_counts_further(tmp_path: Path) -> None:
    with connected(tmp_path / "r", unit=dc.Row(neighbours="replace")) as session:
        for mechanism in (
            Laplace.for_epsilon(1, dimension=3),
            Gaussian.for_zcdp(1, dimension=3),
            PermuteAndFlip(Fraction(1), monotonic=True),
        ):
            with pytest.raises(dc.InvalidArgument):
                session.release(mechanism, COUNT)
        session.release(Laplace.for_epsilon(1, 2, dimension=3), COUNT)
        session.release(Gaussian.for_zcdp("0.1", 2, dimension=3), COUNT)
        session.release(PermuteAndFlip(Fraction(1)), COUNT)
    with connected(tmp_path / "u", private={"again": ROWS}) as session:
        both = "SELECT COUNT(*) AS n FROM (SELECT city FROM visits UNION ALL SELECT city FROM again)"
        with pytest.raises(dc.InvalidArgument, match="at least 2"):
            session.release(Laplace.for_epsilon(1), both)
        assert abs(session.release(Laplace.for_epsilon(1, 2), both).values - 2000) < 120


def test_people_with_many_rows_are_counted_in_sql(tmp_path: Path) -> None:
    with connected(tmp_path, unit=dc.User("x")) as session, pytest.raises(dc.InvalidArgument, match="ask in SQL"):
        session.release(Laplace.for_epsilon(1), ALL)


class Odd:
    """A mechanism of somebody else, which gives what books cannot store."""

    events = Laplace.for_epsilon(1).events
    loss = Laplace.for_epsilon(1).loss

    def release(self, data: Any, *, entropy: Entropy | None = None) -> dc.Release:
        return dc.Release({1, 2}, self.loss, self.events)


class Loud(Laplace):
    """One of ours that gives the data away."""

    def release(self, data: object, *, entropy: Entropy | None = None) -> dc.Release:
        return dc.Release(data, self.loss, self.events)


def test_a_price_draws_nothing_on_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    release = Laplace.release

    def watched(mechanism: Laplace, data: Any, *, entropy: Any = None) -> Any:
        seen.append(int(data))
        return release(mechanism, data, entropy=entropy)

    monkeypatch.setattr(Laplace, "release", watched)
    with connected(tmp_path) as session:
        session.price(dc.RunMechanism(Laplace.for_epsilon(1), 1974))
        assert seen == [0]
        session.release(Laplace.for_epsilon(1), 1974)
        assert seen == [0, 0, 1974]


def test_what_cannot_work_is_refused_before_the_charge(tmp_path: Path) -> None:
    with connected(tmp_path) as session:
        wrong: list[tuple[Any, Any]] = [
            (Laplace.for_epsilon(1), [1, 2]),
            (Laplace.for_epsilon(1), "no SQL"),
            (Laplace.for_epsilon(1), object()),
            (Odd(), 1),
            (Loud(Fraction(1), Fraction(1)), 1),
            (mechanisms.RandomizedResponse.for_epsilon(1), [0, 1, 1, 0]),
            (mechanisms.Quantile(Fraction(1, 2), Fraction(1), dc.Bounds(0, 9), neighbours="replace"), [1, 2]),
            (Laplace.for_epsilon(1), 10**30),
            (Laplace.for_epsilon(1), [[1], [2, 3]]),
            (dc.PureDP(1), 1),
            (None, 1),
            (robust.Scale, 1),
        ]
        for mechanism, data in wrong:
            with pytest.raises((dc.DiscreetError, ValueError)):
                session.release(mechanism, data)
        with pytest.raises(dc.InvalidArgument, match="about"):
            session.release(Laplace.for_epsilon(1), 1, about="x" * 201)
        assert session.spent.epsilon == 0

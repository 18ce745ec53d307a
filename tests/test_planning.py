"""Which noise and limits a question gets, whether its price and error are as told, whether intervals hold the truth."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.accounting import account
from discreet.accounting.budgets import noise_multiplier
from discreet.charging.certificate import verify
from discreet.core.losses import ApproxDP
from discreet.noise import Entropy
from discreet.session.session import Session

PEOPLE, CITIES = 300, ["A", "B", "C", "D"]
HEAVY = 40


def visits() -> dict[str, np.ndarray]:
    """Most people have 1 to 3 visits, a few have 40."""
    generator = np.random.default_rng(5)
    sizes = np.where(np.arange(PEOPLE) % 30 == 0, HEAVY, generator.integers(1, 4, PEOPLE))
    who = np.repeat(np.arange(PEOPLE), sizes)
    cost = generator.normal(60, 20, who.size).round(1)
    return {"who": who, "city": np.array(CITIES)[generator.integers(0, 4, who.size)], "cost": cost}


FACTS: dict[str, Any] = {
    "unit": dc.User("who"),
    "budget": dc.ApproxDP(1000, "1e-6"),
    "table": "visits",
    "bounds": {"cost": (0, 200)},
    "values": {"city": CITIES},
}
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(cost) AS total, AVG(cost) AS mean FROM visits GROUP BY city"

COUNT = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture(scope="module")
def table() -> dict[str, np.ndarray]:
    return visits()


@pytest.fixture
def session(table: dict[str, np.ndarray]) -> Iterator[Session]:
    with dc.connect(table, **FACTS) as opened:
        yield opened


def kinds(session: Session, text: str) -> list[str]:
    return [type(event).__name__ for event in session.price(text, epsilon=1).events]


def test_people_counted_once_get_laplace_noise_and_no_search(session: Session) -> None:
    text = "SELECT COUNT(DISTINCT who) AS n FROM visits"
    assert kinds(session, text) == ["Laplace"]
    (error,) = session.price(text, epsilon=1).errors
    assert error.noise == error.at_limit == pytest.approx(1, rel=1e-5)
    answer = session.sql(text, epsilon=1)
    assert answer.notes == ()
    assert abs(answer.rows[0][0] - PEOPLE) < 30


def test_features_of_each_unit_need_no_clipping(session: Session) -> None:
    text = "SELECT COUNT(*) AS n FROM (SELECT who, COUNT(*) AS visits FROM visits GROUP BY who) WHERE visits > 10"
    assert kinds(session, text) == ["Laplace"]
    assert session.sql(text, epsilon=1).notes == ()


def test_many_groups_get_gaussian_noise_and_a_search(session: Session) -> None:
    many = "SELECT FLOOR(cost) AS c, COUNT(*) AS n, COUNT(DISTINCT who) AS people FROM visits GROUP BY 1"
    assert kinds(session, many) == ["Pure", "Pure", "Gaussian"]
    # Sums and averages have norms of their own, so the average shares no statistic with the sum.
    assert kinds(session, BY_CITY) == ["Pure"] * 2 + ["Laplace"] * 4


QUANTILES = "SELECT city, MEDIAN(cost) AS m, QUANTILE(cost, 0.9) AS high, MAX(cost) AS most, COUNT(*) AS n FROM visits"


@pytest.mark.parametrize(
    ("budget", "unit"),
    [
        (dc.ApproxDP(5000, "1e-6"), dc.User("who")),
        (dc.PureDP(5000), dc.User("who")),
        (dc.ApproxDP(5000, "1e-6"), dc.User("who", neighbours="replace")),
        (dc.ApproxDP(5000, "1e-6"), dc.Row()),
    ],
    ids=str,
)
def test_quantiles_are_answered_beside_sums(table: dict[str, np.ndarray], budget: Any, unit: Any) -> None:
    with dc.connect(table, **FACTS | {"budget": budget, "unit": unit}) as session:
        quote = session.price(f"{QUANTILES} GROUP BY city", epsilon=1600)
        assert float(quote.loss.epsilon) <= 1600
        assert [error.in_ranks for error in quote.errors] == [True, True, True, False]
        answer = session.sql(f"{QUANTILES} GROUP BY city", epsilon=1600)
        assert answer.column("city") == CITIES
        for name, q in (("m", 0.5), ("high", 0.9), ("most", 1.0)):
            for city, value, (low, high) in zip(CITIES, answer.column(name), answer.intervals()[name], strict=True):
                true = np.quantile(table["cost"][table["city"] == city], q)
                # Nothing lies above the largest value to say that a draw there is too high.
                assert abs(value - true) < 60 or name == "most"
                assert low <= value <= high
        assert answer.intervals(0.999)["m"] == [(0, 200)] * 4
        whole = session.sql("SELECT MIN(cost) AS least FROM visits WHERE cost > 40", epsilon=100)
        assert whole.rows[0][0] < 60


def test_quantiles_of_groups_that_are_not_listed_show_with_them(table: dict[str, np.ndarray]) -> None:
    with dc.connect(table, **FACTS | {"values": {}}) as session:
        answer = session.sql(f"{QUANTILES} GROUP BY city", epsilon=10)
        assert answer.column("city") == CITIES
        assert all(30 < value < 100 for value in answer.column("m"))
        alone = session.sql("SELECT cost, MEDIAN(cost) AS m FROM visits GROUP BY cost", epsilon=1)
        assert len(alone.rows) < 5


def test_rows_that_are_units_get_laplace_noise(table: dict[str, np.ndarray]) -> None:
    with dc.connect(table, **FACTS | {"unit": dc.Row()}) as session:
        assert kinds(session, BY_CITY) == ["Laplace"] * 3


def test_few_rows_by_declaration_are_not_clipped(table: dict[str, np.ndarray]) -> None:
    few = {name: values[table["who"] % 30 != 0] for name, values in table.items()}
    with dc.connect(few, **FACTS, max_rows=3) as session:
        assert "Pure" not in kinds(session, BY_CITY)
        answer = session.sql(BY_CITY, epsilon=1)
        assert not any("weigh" in note for note in answer.notes)
        assert answer.spans.noisy.norms is not None
        assert answer.spans.noisy.norms[0] == 3


def truth(table: dict[str, np.ndarray]) -> dict[str, list[float]]:
    of = [table["cost"][table["city"] == city] for city in CITIES]
    return {"n": [len(c) for c in of], "total": [c.sum() for c in of], "mean": [c.mean() for c in of]}


@pytest.mark.parametrize("budget", [dc.ApproxDP(10_000, "1e-6"), dc.PureDP(10_000)], ids=str)
def test_intervals_hold_the_truth_where_the_most_rows_are_declared(table: dict[str, np.ndarray], budget: Any) -> None:
    true = truth(table)
    missed = forgetful = 0
    with dc.connect(table, **FACTS | {"budget": budget}, max_rows=HEAVY) as session:
        for number in range(30):
            text = BY_CITY.replace("GROUP", f"WHERE cost < {1000 + number} GROUP")
            answer = session.sql(text, epsilon="0.9")
            assert not any("cover" in note for note in answer.notes)
            without = replace(answer.spans, measurement=replace(answer.spans.measurement, max_rows=None))
            for name, index in answer.measured.items():
                for place, value in enumerate(true[name]):
                    low, high = answer.spans.interval(index, place, 0.9)
                    missed += not low <= value <= high
                    low, high = without.interval(index, place, 0.9)
                    forgetful += not low <= value <= high
    # 360 intervals at 90 % miss more than 80 with probability below 1e-9; those that forget clipping miss more.
    assert missed <= 80 < forgetful


def test_without_a_limit_the_notes_say_what_intervals_leave_out(session: Session) -> None:
    answer = session.sql(BY_CITY, epsilon=1)
    assert any("max_rows" in note for note in answer.notes)
    assert not any(answer.spans.covers_clipping(index) for index in answer.measured.values())


def test_a_wanted_error_finds_its_price(table: dict[str, np.ndarray]) -> None:
    with dc.connect(table, **FACTS, max_rows=HEAVY) as session:
        for wanted in (3, 50, 1000):
            quote = session.price(COUNT, error=wanted)
            assert quote.errors[0].at_limit <= wanted
            cheaper = session.price(COUNT, epsilon=quote.epsilon * 9 / 10)
            assert cheaper.errors[0].at_limit > wanted
        answer = session.sql("SELECT COUNT(DISTINCT who) AS n FROM visits", error=2)
        assert answer.loss.epsilon == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (BY_CITY, {"error": 5}),
        ("SELECT COUNT(*) AS n FROM visits", {"error": 5}),
        ("SELECT COUNT(*) AS n FROM visits", {}),
        ("SELECT COUNT(*) AS n FROM visits", {"error": 5, "epsilon": 1}),
        ("SELECT COUNT(DISTINCT who) AS n FROM visits", {"error": 0}),
        ("SELECT COUNT(DISTINCT who) AS n FROM visits", {"epsilon": -1}),
    ],
)
def test_prices_that_cannot_be_told_are_refused(session: Session, text: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(dc.InvalidArgument):
        session.price(text, **arguments)


def test_one_question_may_take_the_whole_budget(table: dict[str, np.ndarray]) -> None:
    budget = dc.ApproxDP(1, "1e-6")
    with dc.connect(table, **FACTS | {"budget": budget}) as session:
        assert session.remaining == budget
        assert session.price(BY_CITY, epsilon=1).fits
        assert not session.price(BY_CITY, epsilon="1.1").fits
        answer = session.sql(BY_CITY, epsilon=1)
        assert session.spent == answer.loss
        assert 0.95 < float(session.spent.epsilon) <= 1
        assert float(session.remaining.epsilon) < 0.1
        with pytest.raises(dc.BudgetExceeded):
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)


def test_what_is_left_can_be_spent(table: dict[str, np.ndarray]) -> None:
    with dc.connect(table, **FACTS | {"budget": dc.ApproxDP(2, "1e-6")}) as session:
        session.sql(BY_CITY, epsilon="0.3")
        left = session.remaining
        assert 0.5 < float(left.epsilon) < 2
        few = "SELECT city, COUNT(*) AS n, SUM(cost) AS t FROM visits GROUP BY city"
        assert session.price(few, epsilon=left.epsilon * 8 / 10).fits
        assert not session.price(few, epsilon=left.epsilon * 12 / 10).fits


def test_the_search_leaves_to_the_noise_what_it_does_not_need() -> None:
    search = ApproxDP(1, "1e-6").epsilon / 10
    alone = noise_multiplier(ApproxDP(1, 0).epsilon * 9 / 10, ApproxDP(0, "1e-6").delta, (), 1)
    together = noise_multiplier(ApproxDP(1, 0).epsilon, ApproxDP(0, "1e-6").delta, (search,), 1)
    assert together < alone


def test_the_question_is_what_is_measured_not_what_is_done_with_it(session: Session) -> None:
    first = session.sql(BY_CITY, epsilon=1)
    spent = session.spent
    best = session.sql(
        "SELECT city AS place, SUM(cost) / COUNT(*) AS each, AVG(cost) AS a FROM visits GROUP BY 1 "
        "HAVING COUNT(*) > 0 ORDER BY 2 DESC LIMIT 1",
        epsilon=1,
    )
    assert session.spent != spent  # its measures come in another order, which is another question
    again = session.sql(f"{BY_CITY} HAVING COUNT(*) > -1 ORDER BY n LIMIT 2", epsilon=1)
    assert set(again.rows) <= set(first.rows)
    assert len(best.rows) == 1


def test_certificates_tell_the_question_the_time_and_the_digest(session: Session) -> None:
    answer = session.sql(BY_CITY, epsilon=1)
    said = verify(answer.certificate)
    assert said.question == BY_CITY
    assert said.data == "visits"
    assert len(said.answer) == 64
    assert said.ledger["time"].startswith("20")
    assert "protects each user (column who), whether there or not" in str(said)
    assert account(said.events, ApproxDP, delta="1e-6").epsilon <= answer.loss.epsilon == 1


def test_other_limits_and_other_files_are_other_questions(table: dict[str, np.ndarray], tmp_path: Path) -> None:
    books = {"ledger": tmp_path / "books", "dataset": "visits"}
    answers = []
    for limit in (3, 4):
        with dc.connect(table, **FACTS, **books, max_rows=limit) as session:
            answers.append(session.sql(COUNT, epsilon=1).rows)
    assert answers[0] != answers[1]
    for factor in (1, 2):
        labs = {"who": np.arange(PEOPLE), "x": np.full(PEOPLE, factor)}
        with dc.connect(table, **FACTS, **books, private={"labs": labs}, max_rows=3) as session:
            answers.append(session.sql(COUNT, epsilon=1).rows)
    assert answers[2] == answers[3] == answers[0]


def test_the_faintest_question_has_an_answer(table: dict[str, np.ndarray]) -> None:
    with dc.connect(table, **FACTS | {"budget": dc.PureDP(1)}) as session:
        for text in ("SELECT COUNT(*) AS n FROM visits", "SELECT MEDIAN(cost) AS m, AVG(cost) AS a FROM visits"):
            for epsilon in ("1e-6", "1e-5"):
                assert len(session.sql(text, epsilon=epsilon).rows) == 1
            with pytest.raises(dc.InvalidArgument):
                session.sql(text, epsilon="9e-7")


def test_everything_else_can_be_a_group(table: dict[str, np.ndarray]) -> None:
    text = "SELECT CASE WHEN city IN ('A', 'B') THEN city ELSE 'other' END AS c, COUNT(*) AS n FROM visits GROUP BY 1"
    with dc.connect(table, **FACTS | {"values": {"city": ["A", "B"]}}, max_rows=HEAVY) as session:
        answer = session.sql(text, epsilon=500)
        assert "Approximate" not in kinds(session, text)
    counts = dict(answer.rows)
    assert set(counts) == {"A", "B", "other"}
    assert abs(counts["other"] - np.isin(table["city"], ["C", "D"]).sum()) < 60


def test_a_question_that_measures_nothing_is_refused(session: Session) -> None:
    with pytest.raises(dc.Unsupported):
        session.sql("SELECT DISTINCT city FROM visits", epsilon=1)
    assert session.spent.epsilon == 0


def test_frames_show_intervals_beside_their_measures(session: Session) -> None:
    frame = session.sql(BY_CITY, epsilon=1).to_pandas(level=0.95)
    assert list(frame.columns)[:4] == ["city", "n", "n low", "n high"]
    assert (frame["n low"] <= frame["n"]).all()
    assert (frame["n"] <= frame["n high"]).all()


def uneven(people: int = 800) -> dict[str, Any]:
    """Some six rows each, at most 42."""
    rows = np.random.default_rng(5).geometric(0.16, people).clip(max=42)
    return {"who": np.repeat(np.arange(people), rows)}


def test_a_wanted_error_is_kept_also_where_units_have_many_rows() -> None:
    data = uneven()
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(10**6, "1e-6"), "table": "t"}
    with dc.connect(data, max_rows=42, **facts) as session:
        off = []
        for seed in range(40):
            answer = session.sql("SELECT COUNT(*) AS n FROM t", error=100 + seed, test_entropy=Entropy.for_tests(seed))
            off.append(abs(answer.column("n")[0] - len(data["who"])) / (100 + seed))
            assert answer.spans.covers_clipping(0)
    # The mean of 40 absolute Laplace draws is below 2.2 of its expectation, except with probability 1e-9.
    assert np.mean(off) < 2.2


@pytest.mark.parametrize(("max_rows", "most"), [(42, 60), (None, 150)])
def test_one_count_of_uneven_people_is_near(max_rows: int | None, most: float) -> None:
    data = uneven()
    facts: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(10**6, "1e-6"), "table": "t"}
    with dc.connect(data, max_rows=max_rows, **facts) as session:
        off = []
        for seed in range(30):
            epsilon = 1 + Fraction(seed, 1000)
            answer = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=epsilon, test_entropy=Entropy.for_tests(seed))
            off.append(abs(answer.column("n")[0] - len(data["who"])))
    assert np.mean(off) < most


@pytest.mark.parametrize(("visited", "size"), [(1, 33), (36, 46)], ids=["laplace", "gaussian"])
def test_numbers_of_people_in_groups_that_luck_has_shown_are_held(visited: int, size: int) -> None:
    """Groups below the threshold show only where their noise is large."""
    groups = 1800
    people = np.arange(groups * size // visited)
    who = np.repeat(people, visited)
    place = (who + np.tile(np.arange(visited), people.size) * (groups // visited)) % groups
    facts: dict[str, Any] = {"unit": dc.User("who"), "table": "visits", "max_rows": visited}
    with dc.connect({"who": who, "place": place}, budget=dc.ApproxDP(100, "0.1"), **facts) as session:
        question = "SELECT place, COUNT(DISTINCT who) AS n FROM visits GROUP BY place"
        answer = session.sql(question, epsilon=1, test_entropy=Entropy.for_tests(8))
    shown, spans = len(answer.rows), answer.spans
    assert shown > 60
    held = sum(low <= size <= high for low, high in (spans.interval(0, row, 0.9) for row in range(shown)))
    plain = sum(abs(row[1] - size) <= spans._reach(0.1) * spans.noisy.scales[0] for row in answer.rows)
    # Six deviations of a binomial number; intervals that forget why the groups show hold far fewer.
    wanted = 0.9 * shown - 6 * (0.09 * shown) ** 0.5
    assert plain < wanted <= held


@pytest.mark.parametrize("unit", [dc.Row(), dc.User("who")], ids=["rows", "users"])
def test_rounding_of_many_equal_values_does_not_add_up(unit: dc.Row | dc.User) -> None:
    """On a grid of 4,096 steps this one would be 9.9 off in each row."""
    rows, pay = 200_000, 25_001
    table = {"who": np.arange(rows), "pay": np.full(rows, pay)}
    facts: dict[str, Any] = {"budget": dc.ApproxDP(20, "1e-6"), "table": "staff", "bounds": {"pay": (0, 180_000)}}
    with dc.connect(table, unit=unit, **facts) as session:
        answer = session.sql("SELECT SUM(pay) AS s FROM staff", epsilon=20)
    # The noise has a scale of 9,000 for rows and 13,500 for users: it is within 40 of them but for a chance of e^-40.
    assert abs(answer["s"][0] - rows * pay) < 540_000 < rows * 9.9

"""A budget in ρ: what questions cost there, what is refused, and that their noise is the Gaussian noise that ρ says.

The statistical test takes the largest distance of an empirical distribution from the law that ρ implies. By the
inequality of Dvoretzky, Kiefer and Wolfowitz (with Massart's constant) it exceeds √(ln(2/α)/2n) with probability α at
most; α is 10⁻⁹ here, so this file raises a false alarm less than once in 10⁸ runs.
"""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import norm
from tests.sql.faults import planted

import discreet as dc
from discreet.accounting.zcdp import pure_rho, zcdp
from discreet.charging.certificate import verify
from discreet.core.events import Composed, Event, Gaussian, Laplace, from_json
from discreet.ledger import Ledger
from discreet.session.session import Session
from discreet.sql.measuring import run
from discreet.sql.measuring.measurement import Measurement

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
BY_AGE = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
TYPICAL = "SELECT city, MEDIAN(cost) AS m, AVG(cost) AS a, COUNT(*) AS n FROM visits GROUP BY city"
VISITS = {
    "who": np.arange(3000) % 1000,
    "city": np.array(["A", "B", "C"] * 1000),
    "age": np.arange(3000) % 90,
    "cost": np.linspace(0, 400, 3000),
}
FACTS: dict[str, Any] = {
    "unit": dc.User("who"),
    "table": "visits",
    "dataset": "visits",
    "max_rows": 3,
    "values": {"city": ["A", "B", "C"]},
    "bounds": {"cost": (0, 500)},
}


def opened(folder: Path, budget: Any, **others: Any) -> Session:
    folder.mkdir(exist_ok=True)
    return dc.connect(VISITS, **FACTS | others, budget=budget, ledger=folder / "books.ledger")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, dc.ZCDP("0.5")) as found:
        yield found


def cost(events: tuple[Event, ...]) -> Fraction:
    """What the accountant says of events."""
    return zcdp(Composed(events)).rho


def charged(session: Session) -> list[tuple[Event, ...]]:
    """The events of each charge in the books."""
    entries = [entry.content for entry in session._ledger.entries()]
    return [tuple(map(from_json, entry["events"])) for entry in entries if entry["kind"] == "charge"]


@pytest.mark.parametrize("rho", ["1e-8", "0.0004", 0.01, Fraction(1, 30), "0.5", 40])
@pytest.mark.parametrize("question", [BY_CITY, TYPICAL])
def test_a_price_is_what_the_accountant_says_and_nearly_all_of_the_rho(
    session: Session, question: str, rho: Any
) -> None:
    quote = session.price(question, rho=rho)
    assert quote.loss == dc.ZCDP(cost(quote.events))
    given = Fraction(str(rho)) if not isinstance(rho, Fraction) else rho
    assert 0.95 * given <= quote.loss.rho <= given
    assert quote.fits == (given <= Fraction(1, 2))
    assert not any(isinstance(event, Laplace) for event in quote.events)


def test_what_is_charged_is_what_was_quoted_and_adds_up(session: Session) -> None:
    events: tuple[Event, ...] = ()
    for question, price in ((BY_CITY, {"rho": "0.02"}), (TYPICAL, {"rho": "0.03"}), (BY_CITY, {"epsilon": "0.2"})):
        quote = session.price(question, **price)
        answer = session.sql(question, **price)
        assert answer.loss == quote.loss
        assert charged(session)[-1] == quote.events
        events += quote.events
        kept = session._ledger.spent(session.account)
        assert isinstance(kept, dc.ZCDP)
        assert session.spent == dc.ZCDP(cost(events))
        # The books add up what each charge cost, and each sum is rounded up.
        assert cost(events) <= kept.rho <= cost(events) * (1 + Fraction(1, 10**9))
        assert session.remaining == dc.ZCDP(Fraction(1, 2) - kept.rho) == session._ledger.remaining(session.account)
    assert session._ledger.check().sound


def test_what_is_asked_for_epsilon_is_pure_and_charged_at_its_rho(session: Session) -> None:
    answer = session.sql(BY_CITY, epsilon="0.5")
    [event] = charged(session)[-1]
    assert isinstance(event, Laplace)
    assert event.sensitivity / event.scale == Fraction(1, 2)
    assert answer.loss.rho == cost((event,)) <= pure_rho(Fraction(1, 2))


def test_an_error_is_kept_with_gaussian_noise(session: Session) -> None:
    quote = session.price(BY_CITY, error=20)
    assert quote.errors[0].noise <= 20
    assert quote.loss.rho < session.price(BY_CITY, epsilon="0.15").loss.rho
    assert all(isinstance(event, Gaussian) for event in quote.events)


def test_the_same_question_for_rho_is_free_and_for_epsilon_another(session: Session) -> None:
    first = session.sql(BY_CITY, rho="0.02")
    again = session.sql("select city, count(*) as n from visits group by 1", rho=Fraction(1, 50))
    assert again.rows == first.rows
    assert session.price(BY_CITY, rho=0.02).stored
    assert session.price(BY_CITY, rho=0.02).pays == dc.ZCDP(0)
    assert len(charged(session)) == 1
    others: list[dict[str, Any]] = [{"epsilon": "0.02"}, {"error": "0.02"}, {"rho": "0.021"}]
    assert not any(session.price(BY_CITY, **other).stored for other in others)
    session.sql(BY_CITY, epsilon="0.02")
    assert len(charged(session)) == 2


def test_answers_are_stored_in_the_books_under_one_identity(tmp_path: Path) -> None:
    with opened(tmp_path, dc.ZCDP("0.5")) as session:
        first = session.sql(BY_CITY, rho="0.02")
    with opened(tmp_path, dc.ZCDP("0.5")) as later:
        assert later.sql(BY_CITY, rho="0.02").rows == first.rows
        assert later.spent == first.loss


@pytest.mark.parametrize("budget", [dc.PureDP(1), dc.ApproxDP(1, "1e-6")])
def test_rho_is_refused_under_other_budgets(tmp_path: Path, budget: Any) -> None:
    with opened(tmp_path, budget) as session:
        for ask in (session.sql, session.price):
            with pytest.raises(dc.InvalidArgument, match=r"budget is not in ρ.*epsilon"):
                ask(BY_CITY, rho="0.1")
        with pytest.raises(dc.InvalidArgument, match="budget is not in ρ"):
            session.price(dc.SyntheticRows(["city"], rho="0.1"))
        with pytest.raises(dc.InvalidArgument, match=r"^epsilon, error=\(None, None\) must be exactly one of the two"):
            session.sql(BY_CITY)
        assert charged(session) == []


@pytest.mark.parametrize(
    ("price", "said"),
    [
        ({}, "exactly one of the three"),
        ({"rho": "0.1", "epsilon": 1}, "exactly one of the three"),
        ({"rho": "0.1", "error": 20}, "exactly one of the three"),
        ({"rho": 0}, "above 0"),
        ({"rho": "-0.1"}, "above 0"),
        ({"rho": "much"}, "a number"),
        ({"rho": True}, "a number"),
        ({"rho": math.inf}, "finite"),
        ({"rho": "1e-13"}, "noise would be all there is"),
    ],
)
def test_bad_prices_are_refused_and_cost_nothing(session: Session, price: dict[str, Any], said: str) -> None:
    with pytest.raises(dc.InvalidArgument, match=said):
        session.sql(BY_CITY, **price)
    assert charged(session) == []


def test_what_needs_a_delta_is_refused_by_the_name_of_the_budget(session: Session) -> None:
    prices: list[dict[str, Any]] = [{"rho": "0.1"}, {"epsilon": "0.1"}]
    for price in prices:
        with pytest.raises(dc.InvalidArgument, match=r"declared under a ZCDP budget.*ApproxDP"):
            session.sql(BY_AGE, **price)
        with pytest.raises(dc.InvalidArgument, match="under a ZCDP budget"):
            session.sql("SELECT MODE(cost) AS m FROM visits", **price)
    with pytest.raises(dc.InvalidArgument, match="one of the two under a ZCDP budget"):
        session.estimate(len, ["cost"], epsilon="0.1")
    assert charged(session) == []


def test_estimates_are_pure_and_charged_at_their_rho(session: Session) -> None:
    found = session.estimate(len, ["cost"], epsilon="0.25", bounds=(0, 3000), blocks=5)
    assert found.loss.rho == cost(charged(session)[-1]) == session.spent.rho
    assert found.loss.rho <= pure_rho(Fraction(1, 4))


def test_the_budget_can_be_spent_to_the_last_and_not_overspent(tmp_path: Path) -> None:
    with opened(tmp_path, dc.ZCDP(1)) as session:
        exact = session.price(BY_CITY, rho="0.1").loss
    with opened(tmp_path / "whole", exact) as session:
        assert session.price(BY_CITY, rho="0.1").fits
        session.sql(BY_CITY, rho="0.1")
        assert session.remaining == dc.ZCDP(0)
        with pytest.raises(dc.BudgetExceeded, match="ZCDP"):
            session.sql(BY_CITY, rho="1e-8")
        assert session.sql(BY_CITY, rho="0.1").loss == exact  # what is stored stays free
    with opened(tmp_path / "short", dc.ZCDP(exact.rho - Fraction(1, 10**30))) as session:
        assert not session.price(BY_CITY, rho="0.1").fits
        with pytest.raises(dc.BudgetExceeded):
            session.sql(BY_CITY, rho="0.1")
        assert charged(session) == []


def test_questions_compose_to_what_the_budget_allows(session: Session) -> None:
    each = session.price(BY_CITY, rho="0.1").loss.rho
    room = int(Fraction(1, 2) / each)
    for number in range(room):
        session.sql(f"SELECT city, COUNT(*) AS n FROM visits WHERE cost > {number} GROUP BY city", rho="0.1")
    with pytest.raises(dc.BudgetExceeded):
        session.sql(BY_CITY, rho="0.1")
    assert session.remaining == dc.ZCDP(Fraction(1, 2) - room * each)


def test_caps_in_rho_hold_for_studies_and_analysts(tmp_path: Path) -> None:
    opened(tmp_path, dc.ZCDP("0.5")).close()
    with Ledger.at(tmp_path / "books.ledger") as books:
        books.open(("visits", "flu"), budget=dc.ZCDP("0.1"))
        with pytest.raises(dc.InvalidArgument):
            books.open(("visits", "covid"), budget=dc.ZCDP("0.6"))
    with opened(tmp_path, dc.ZCDP("0.5"), study="flu", analyst="ann") as session:
        assert session.remaining == dc.ZCDP("0.1")
        with pytest.raises(dc.BudgetExceeded, match="visits/flu"):
            session.sql(BY_CITY, rho="0.2")
        paid = session.sql(BY_CITY, rho="0.05").loss
        assert session.spent == paid
        assert session.remaining == dc.ZCDP(Fraction(1, 10) - paid.rho)
        assert [standing.spent for standing in session.standing] == [paid] * 3


def test_caps_in_other_definitions_leave_the_most_that_fits(tmp_path: Path) -> None:
    opened(tmp_path, dc.ZCDP("0.5")).close()
    with Ledger.at(tmp_path / "books.ledger") as books:
        books.open(("visits", "flu"), budget=dc.ApproxDP(1, "1e-6"))
    with opened(tmp_path, dc.ZCDP("0.5"), study="flu") as session:
        left = session.remaining
        assert isinstance(left, dc.ZCDP)
        assert 0 < left.rho < Fraction(1, 2)
        assert session.price(BY_CITY, rho=left.rho).fits
        assert not session.price(BY_CITY, rho=left.rho * Fraction(11, 10)).fits
    with Ledger.at(tmp_path / "books.ledger") as books:
        books.open(("visits", "covid"), budget=dc.PureDP("0.4"))
    with opened(tmp_path, dc.ZCDP("0.5"), study="covid") as session:
        left, pure = session.remaining, pure_rho(Fraction(2, 5))
        assert isinstance(left, dc.ZCDP)
        assert pure * (1 - Fraction(1, 10**9)) < left.rho <= pure
        assert session.price(BY_CITY, epsilon="0.4").fits
        with pytest.raises(dc.NotAccountable, match="allows a δ"):
            session.price(BY_CITY, rho="0.001")


def test_budgets_of_another_definition_are_not_those_of_the_books(tmp_path: Path) -> None:
    opened(tmp_path, dc.ZCDP("0.5")).close()
    for other in (dc.ZCDP("0.6"), dc.PureDP("0.5")):
        with pytest.raises(dc.InvalidArgument, match="the budget of 'visits'"):
            opened(tmp_path, other)


def test_certificates_state_the_rho_and_are_checked_offline(session: Session) -> None:
    answer = session.sql(BY_CITY, rho="0.02")
    found = verify(answer.certificate, answer=answer)
    assert found.loss == answer.loss
    session._ledger.confirm(answer.certificate, keys=[answer.certificate["key"]])
    cheaper = {**answer.certificate, "loss": {"kind": "zcdp", "rho": str(answer.loss.rho / 2)}}
    with pytest.raises(dc.DiscreetError):
        verify(cheaper)


def test_sessions_and_quotes_are_shown_in_rho(session: Session) -> None:
    assert "ρ = 0." in str(session.price(BY_CITY, rho="0.02"))
    session.sql(BY_CITY, rho="0.02")
    page = session._repr_html_()
    assert page is not None
    assert "ρ" in page
    assert "remaining=ZCDP" in repr(session)


# The noise itself. One row is in one group, so that in ℓ2 a count moves by 1 and a sum by its bound, and σ² = Δ²/2ρ.

GROUPS = 20_000
LEAST = math.sqrt(math.log(2 / 1e-9) / (2 * GROUPS))
NUMBERS = {"k": np.zeros(1, dtype=np.int64), "x": np.zeros(1)}
NOISY = {
    "COUNT(*)": ("SELECT k, COUNT(*) AS y FROM t WHERE x > 5 GROUP BY k", dc.Row(), 1.0),
    "SUM": ("SELECT k, SUM(x) AS y FROM t GROUP BY k", dc.Row(), 100.0),
    "replace": ("SELECT k, SUM(x) AS y FROM t GROUP BY k", dc.Row(neighbours="replace"), 200.0),
}


def distance(question: str, unit: Any, moved: float, rho: str) -> float:
    """How far the noise of all groups is from N(0, Δ²/2ρ), ρ being what the answer says it cost."""
    facts: dict[str, Any] = {"values": {"k": list(range(GROUPS))}, "bounds": {"x": (0, 100)}, "dataset": "t"}
    with ExitStack() as stack:
        folder = stack.enter_context(temporary())
        opened = dc.connect(NUMBERS, unit=unit, budget=dc.ZCDP(1), table="t", ledger=folder / "b", **facts)
        answer = stack.enter_context(opened).sql(question, rho=rho)
    sigma = moved / math.sqrt(2 * float(answer.loss.rho))
    found = np.sort(np.array(answer["y"], dtype=float))
    # Counts are shown rounded: what is shown is at most k where what was drawn is below k + 1/2.
    points = np.unique(np.rint(found)) + 0.5
    shares = np.searchsorted(found, points) / GROUPS
    return float(np.abs(shares - norm.cdf(points / sigma)).max())


@contextmanager
def temporary() -> Iterator[Path]:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def too_little() -> Iterator[None]:
    """Noise of four fifths of its deviation."""
    honest = Measurement.deviation
    with patch.object(Measurement, "deviation", lambda self, index, cut: honest(self, index, cut) * Fraction(4, 5)):
        yield


@contextmanager
def laplace() -> Iterator[None]:
    """Laplace noise of the same deviation."""

    def drawn(sigma: Fraction, size: int, *, entropy: Any) -> Any:
        return run.discrete_laplace(sigma * Fraction(70_711, 100_000), size, entropy=entropy)

    with patch.object(run, "discrete_gaussian", drawn):
        yield


@pytest.mark.parametrize("what", NOISY)
def test_noise_is_the_gaussian_noise_that_rho_says(what: str) -> None:
    assert distance(*NOISY[what], "0.001") <= LEAST


@pytest.mark.parametrize("fault", [too_little, laplace])
def test_other_noise_is_caught(fault: Callable[[], Any]) -> None:
    with planted(fault):
        assert distance(*NOISY["SUM"], "0.001") > LEAST


# Synthetic rows.


@pytest.mark.parametrize("method", [None, "mwem", "projection", "generator"])
def test_rows_for_rho_cost_what_the_accountant_says(session: Session, method: str | None) -> None:
    quote = session.price(dc.SyntheticRows(["city"], rho="0.02", method=method))
    assert quote.loss == dc.ZCDP(cost(quote.events))
    assert 0.95 * 0.02 <= quote.loss.rho <= Fraction(1, 50)
    assert sum(isinstance(event, Laplace) for event in quote.events) <= 1  # how many rows there are


def test_rows_for_rho_are_charged_stored_and_free_again(session: Session) -> None:
    made = session.synthesize(["city"], rho="0.02")
    assert made.loss.rho == cost(charged(session)[-1]) == session.spent.rho
    assert abs(len(made) - 3000) < 600
    again = session.synthesize(["city"], rho=0.02)
    assert again.rows == made.rows
    assert len(charged(session)) == 1
    assert verify(made.certificate).loss == made.loss
    session.synthesize(["city"], epsilon="0.02")
    assert len(charged(session)) == 2


def test_rows_without_a_check_have_all_of_the_rho(session: Session) -> None:
    part, whole = (session.price(dc.SyntheticRows(["city"], rho="0.02", check=share)) for share in ("0.5", 0))
    assert len(whole.events) == len(part.events) - 2
    assert whole.errors[0].noise < 0.8 * part.errors[0].noise


@pytest.mark.parametrize("price", [{}, {"rho": "0.1", "epsilon": 1}, {"rho": 0}, {"rho": "1e-13"}])
def test_bad_prices_of_rows_are_refused(session: Session, price: dict[str, Any]) -> None:
    with pytest.raises(dc.InvalidArgument, match="rho"):
        session.synthesize(["city"], **price)
    assert charged(session) == []


def test_what_rows_are_stored_under_names_rho_only_where_they_are_asked_for_it(session: Session) -> None:
    for_rho, for_epsilon = (
        dc.SyntheticRows(["city"], **price).bind(session._context).identity
        for price in ({"rho": "0.02"}, {"epsilon": "0.02"})
    )
    assert '"rho": "1/50"' in for_rho
    assert "epsilon" not in for_rho
    asked = json.loads(for_epsilon)
    assert asked.pop("epsilon") == "1/50"
    assert asked | {"rho": "1/50"} == json.loads(for_rho)

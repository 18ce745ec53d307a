"""Sums of columns whose values are declared: what a unit can move them by, which noise they get, how far they are off.

The guarantee is examined on real sessions before any noise: by how much neighbouring tables move the sum of each group,
and how much likelier that makes any outcome under the law that noise is drawn from, exactly.
"""

import json
import math
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pytest
from tests.attacks.sql_neighbours import opened

import discreet as dc
from discreet.accounting.budgets import loss_of
from discreet.charging.certificate import verify
from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument
from discreet.core.events import Gaussian, Pure
from discreet.core.losses import ApproxDP
from discreet.engines.duckdb.engine import DuckDB
from discreet.mechanisms import Staircase
from discreet.noise import Entropy
from discreet.session.sql import SQL, exact_groups
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.bounding.declared_values import (
    MOST_VALUES,
    fitting,
    least_error,
    nearest,
    noise,
    steps_of,
    unit_of,
    within,
)
from discreet.sql.bounding.sums import Statistic
from discreet.sql.measuring import planner
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.run import Run
from discreet.sql.plan import Ref
from discreet.sql.statement.results import Bucketed, Groups

BONUS = [0, 500, 10_000]
TEAMS = ["a", "b"]
ODD = [None, math.nan, math.inf, -math.inf, -3.0, 250.0, 249.9, 4_000.0, 1e300, 7.7]
UNITS: dict[str, dict[str, Any]] = {
    "row": {"unit": dc.Row()},
    "row replaced": {"unit": dc.Row(neighbours="replace")},
    "person": {"unit": dc.User("who"), "max_rows": 1},
    "person replaced": {"unit": dc.User("who", neighbours="replace"), "max_rows": 1},
}
TRIALS = 80
FACTS: dict[str, Any] = {"values": {"bonus": BONUS, "team": TEAMS, "trial": range(TRIALS)}}
BY_TEAM = "SELECT trial, team, SUM(bonus) AS paid FROM t GROUP BY trial, team"
FILTERED = "SUM(bonus) FILTER (WHERE team = 'a') AS a, SUM(CASE WHEN team = 'b' THEN bonus ELSE 0 END) AS b"
QUESTIONS = [
    BY_TEAM,
    f"SELECT trial, {FILTERED} FROM t GROUP BY trial",
    "SELECT trial, AVG(bonus) AS mean FROM t WHERE team IS NOT NULL GROUP BY trial",
]
EPSILON = 12
Line = tuple[int, int, Any, Any]


def table(rows: list[Line]) -> dict[str, Any]:
    trial, who, team, bonus = zip(*rows, strict=True)
    amounts = np.array([math.nan if amount is None else amount for amount in bonus])
    return {"trial": np.array(trial), "who": np.array(who), "team": list(team), "bonus": amounts}


TWO = table([(0, 1, "a", 0), (0, 2, "b", 500)])


def neighbours(replaced: bool, people: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tables that differ by one unit in each trial; some values are declared and some are odd, some people have several
    rows."""
    rng = np.random.default_rng(1)
    found: tuple[list[Line], list[Line]] = ([], [])
    for trial in range(TRIALS):

        def row(who: int, trial: int = trial) -> Line:
            team, bonus = (rng.choice(np.array(each, dtype=object)) for each in ([*TEAMS, "c", None], [*BONUS, *ODD]))
            return trial, 10 * trial + who, team, bonus

        others = [row(who) for who in range(3)]
        found[0].extend(others + [row(9) for _ in range(int(rng.integers(1, 4)) if people else 1)])
        found[1].extend(others + ([row(9)] if replaced else []))
    return table(found[0]), table(found[1])


def likelier(measurement: Measurement, one: Groups, other: Groups) -> float:
    """The logarithm of how much likelier an outcome can be, in the sums that have noise by values: that of the trial in
    which it is most."""
    keys = sorted(one.keys | other.keys, key=str)
    totals = [measurement.totals(each, keys, (0, 0, 0)) for each in (one, other)]
    worst = dict.fromkeys(range(TRIALS), 0.0)
    for statistic, before, after in zip(measurement.statistics, *totals, strict=True):
        if not statistic.values:
            continue
        law = measurement.law(statistic)
        places = np.arange(-law.shells.hull - 5 * law.shells.longest, law.shells.hull + 5 * law.shells.longest)
        here = law.shells.level(places)
        for key, moved in zip(keys, (a - b for a, b in zip(before, after, strict=True)), strict=True):
            if moved % (G * H * law.shells.unit):
                return math.inf
            there = law.shells.level(places + moved // (G * H * law.shells.unit))
            worst[key[0]] += float(law.epsilon) * int(np.abs(there - here).max())
    return max(worst.values())


def found_in(data: dict[str, Any], unit: str | None, asked: list[Any]) -> list[Groups]:
    """What the engine returns for planned questions."""
    with closing(DuckDB(threads=1)) as engine:
        engine.add("t", data, unit=unit)
        engine.seal()
        runs = [(engine.run(one.statement), len(one.query.aggregate.keys), one.measurement.statistics) for one in asked]
    return [Groups.read(*run, unit is not None) for run in runs]


def strains(name: str, questions: list[str]) -> list[float]:
    """For each question the most by which an outcome became likelier, over what its sums of values may cost."""
    unit = "who" if "person" in name else None
    with opened(TWO, **FACTS | UNITS[name]) as session:
        asked = [SQL(question, EPSILON).bind(session._context).plan().decided for question in questions]
    found = [found_in(data, unit, asked) for data in neighbours("replaced" in name, unit is not None)]
    pairs = zip(questions, asked, *found, strict=True)
    return [likelier(one.measurement, *groups) / allowed(question) for question, one, *groups in pairs]


def allowed(question: str) -> float:
    """Beside the sum, the count under an average has half."""
    return EPSILON / 2 if "AVG" in question else EPSILON


@pytest.mark.parametrize("name", UNITS)
def test_no_unit_makes_an_outcome_likelier_than_is_charged(name: str) -> None:
    found = strains(name, QUESTIONS)
    assert max(found) <= 1 + 1e-9
    assert found[0] > 0.9
    # Nobody is in both of two sums with a condition each, and both are charged.
    assert min(found) > 0.2
    with opened(TWO, **FACTS | UNITS[name]) as session:
        for question in QUESTIONS:
            quote = session.price(question, epsilon=EPSILON)
            assert sum(event.epsilon for event in quote.events if isinstance(event, Pure)) == allowed(question)
            assert quote.loss.epsilon <= EPSILON


def not_moved() -> Any:
    """Values are held to the bounds, and those between are kept."""

    def steps(self: Statistic, value: str, strict: bool, kind: str, eager: bool) -> str:
        assert self.bounds is not None
        held = f"LEAST(GREATEST({value}, {float(self.bounds.lower)!r}), {float(self.bounds.upper)!r})"
        return (
            f"CASE WHEN {value} BETWEEN -1e308 AND 1e308 THEN CAST(FLOOR({held} / {float(self.step)!r}) AS {kind}) END"
        )

    return patch.object(Statistic, "steps", steps)


def two_for_one() -> Any:
    """Who is replaced moves sums twice, and has noise for one move."""

    def law(self: Measurement, statistic: Statistic) -> Any:
        return noise(self.by_values or Fraction(0), statistic.additions)

    return patch.object(Measurement, "law", law)


def shares_kept() -> Any:
    """Whoever has more rows than declared is weighed down, and adds a part of a value."""
    original = Bucketed.clipped
    return patch.object(Bucketed, "clipped", lambda self, index, weight, cut, *how: original(self, index, H, cut, *how))


@pytest.mark.parametrize(
    ("fault", "name"),
    [(not_moved, "row"), (two_for_one, "row replaced"), (shares_kept, "person")],
    ids=["moved", "two", "kept"],
)
def test_planted_faults_are_found(fault: Callable[[], Any], name: str) -> None:
    with fault():
        assert max(strains(name, [BY_TEAM])) > 1.5


GROUPS = 3_000
MANY = {"k": np.repeat(np.arange(GROUPS), 3), "bonus": np.tile([0, 500, 10_000], GROUPS)}
BY_K = "SELECT k, SUM(bonus) AS paid FROM t GROUP BY k"
TRUTH = 10_500


def many(**facts: Any) -> Any:
    return opened(MANY, dc.Row(), values={"bonus": BONUS, "k": range(GROUPS)}, **facts)


def test_sums_are_off_by_what_was_told_and_by_clearly_less_than_with_other_noise() -> None:
    with many() as session:
        (told,) = session.price(BY_K, epsilon=2).errors
        answer = session.sql(BY_K, epsilon=2, test_entropy=Entropy.for_tests(1))
    off = np.abs(np.array(answer["paid"]) - TRUTH)
    law = noise(Fraction(2), (0, 1, 20))
    assert told.noise == told.at_limit == pytest.approx(500 * law.mean_error)
    # 6.2 deviations of a mean: of a Gaussian, with probability below 1e-9.
    spread = 6.2 * 500 * math.sqrt(law.mean_square / GROUPS)
    assert abs(off.mean() - told.noise) < spread
    assert told.noise < 0.7 * Staircase(2, 10_000).mean_error
    assert told.noise < 0.6 * (10_000 / 2)
    assert {value % 500 for value in answer["paid"]} == {0}


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_intervals_hold_the_truth_at_their_level(level: float) -> None:
    def held() -> int:
        answer = session.sql(BY_K, epsilon=2, test_entropy=Entropy.for_tests(2))
        return sum(low <= TRUTH <= high for low, high in answer.intervals(level)["paid"])

    least = GROUPS * level - 6.2 * math.sqrt(GROUPS * level * (1 - level))
    with many() as session:
        assert held() >= least
    original = Measurement.law
    with many() as session:
        asked = SQL(BY_K, 2).bind(session._context).plan().decided
        # Noise for half of ε under intervals for all of it.
        with patch.object(Measurement, "law", lambda self, s: noise(original(self, s).epsilon / 2, s.additions)):
            groups = exact_groups(asked, session._engine)
            wider = Run(asked.measurement, groups, asked.listed, Entropy.for_tests(2)).release()
    reach = noise(Fraction(2), (0, 1, 20)).accuracy(1 - level) * 500
    assert (np.abs(wider.sums[:, 0] - TRUTH) <= reach).sum() < least


def test_fractions_have_exact_sums_and_intervals_that_hold_their_ends() -> None:
    data = {"k": np.arange(GROUPS), "fee": np.full(GROUPS, 0.15)}
    values = {"fee": [0, 0.05, 0.15, 7.35], "k": range(GROUPS)}
    with opened(data, dc.Row(), values=values) as session:
        answer = session.sql("SELECT k, SUM(fee) AS f FROM t GROUP BY k", epsilon=6, test_entropy=Entropy.for_tests(1))
    held = sum(low <= 0.15 <= high for low, high in answer.intervals(0.9)["f"])
    assert held >= GROUPS * 0.9 - 6.2 * math.sqrt(GROUPS * 0.09)
    assert all(abs(value / 0.05 - round(value / 0.05)) < 1e-6 for value in answer["f"])


def kinds(facts: dict[str, Any], question: str, epsilon: Any = 2, unit: Any = None) -> list[str]:
    with opened(TWO, unit or dc.Row(), **{"budget": dc.PureDP(1000), **FACTS, **facts}) as session:
        return [type(event).__name__ for event in session.price(question, epsilon=epsilon).events]


def test_noise_by_values_is_taken_where_it_is_smaller_and_the_values_are_all() -> None:
    total = "SELECT SUM(bonus) AS paid FROM t"
    assert kinds({}, total) == ["Pure"]
    assert kinds({}, total, "0.5") == ["Laplace"]
    assert kinds({}, "SELECT SUM(COALESCE(bonus, 0)) AS paid FROM t WHERE team = 'a'") == ["Pure"]
    assert kinds({}, "SELECT SUM(2 * bonus) AS paid FROM t") == ["Laplace"]
    assert kinds({}, "SELECT SUM(bonus) AS paid, COUNT(*) AS n FROM t", 4) == ["Pure", "Laplace"]
    for bounds, kind in (((0, 10_000), "Pure"), ((0, 9_000), "Pure"), ((0, 20_000), "Laplace"), ((-1, 500), "Laplace")):
        assert kinds({"bounds": {"bonus": bounds}}, total) == [kind]
    # Of people with more than a row nobody knows what they add.
    assert kinds({"max_rows": 1}, total, unit=dc.User("who")) == ["Pure"]
    assert kinds({"max_rows": 2}, total, unit=dc.User("who")) == ["Laplace"]
    assert "Laplace" in kinds({}, total, unit=dc.User("who"))
    for values in ([*range(0, 20_000, 100)], [0], [0, 1, 10**7]):
        assert kinds({"values": {"bonus": values}}, total) == ["Laplace"]
    assert kinds({"values": {"bonus": [0, 1, 10_000]}, "max_rows": 1}, total, unit=dc.User("who")) == ["Laplace"]


def test_beside_gaussian_noise_values_are_charged_with_it() -> None:
    plain = tuple(Statistic(Sum.PRESENT, Ref(f"c{i}", "real")) for i in range(30))
    listed = Statistic(Sum.RAW, Ref("bonus", "real"), Bounds(0, 10_000), values=tuple(map(Fraction, (500, 10_000))))
    facts: dict[str, Any] = {"keys": 1, "owned": False, "max_rows": None, "changes": 1}
    budget = ApproxDP(60, "0.01")
    found = planner.plan((listed, *plain), **facts, budget=budget, epsilon=Fraction(60))
    usual = planner.plan((listed.plain, *plain), **facts, budget=budget, epsilon=Fraction(60))
    assert [type(event) for event in usual.events] == [Gaussian]
    assert [type(event) for event in found.events] == [Pure, Gaussian]
    assert found.error(0, 0) < 0.95 * usual.error(0, 0)
    assert loss_of(found.events, budget).epsilon <= 60


def test_an_answer_is_told_replayed_certified_and_chosen_from_as_any() -> None:
    text = "SELECT team, SUM(bonus) AS paid FROM t GROUP BY team"
    with opened(table([(0, i, "ab"[i % 2], 500) for i in range(400)]), dc.Row(), **FACTS) as session:
        quote = session.price(text, epsilon=3)
        assert "noise on sums by what one record can add: 0, 500 or 10,000" in quote.plan
        answer = session.sql(text, epsilon=3)
        spent = session.spent
        again = session.sql("select team, sum(bonus) s from t group by 1 having sum(bonus) > 1 order by s", epsilon=3)
        assert session.spent == spent
        assert sorted(row[1] for row in again) == sorted(row[1] for row in answer)
        assert "Values other than those declared count as the nearest of them in paid." in answer.notes
        assert "follows from the 1 event" in str(verify(answer.certificate, answer=answer))
        assert json.loads(json.dumps(answer.certificate))["events"][0]["epsilon"] == "3"
        assert "0, 500, 10000" in session._repr_html_()
        wanted = session.price(text, error=1_000)
        assert 500 < wanted.errors[0].noise <= 1_000
        assert session.sql(text, error=1_000).loss == wanted.loss


def test_a_value_is_moved_to_the_nearest_by_itself() -> None:
    values = [Fraction(-3), Fraction(0), Fraction(1, 2), Fraction(100)]
    known = [-3.0, -1.5, 0.0, 0.25, 0.5, 50.25, 100.0, -0.0, 5e-324, 1e308, -1e308]
    doubles = [*known, *(math.nextafter(x, y) for x in known for y in (-math.inf, math.inf) if abs(x) < 1e308)]
    steps = steps_of(values)
    assert (unit_of(values), steps) == (Fraction(1, 2), (-6, 0, 1, 200))
    snap = nearest("x", values, steps, "INTEGER")
    wanted = [steps[min(range(4), key=lambda i: (abs(values[i] - Fraction(x)), i))] for x in doubles]
    odd = [math.nan, math.inf, -math.inf, None]
    listed = f"SELECT {snap} FROM (SELECT UNNEST(?::DOUBLE[]) AS x)"
    found = [row[0] for row in duckdb.execute(listed, [[*doubles, *odd]]).fetchall()]
    assert found == [*wanted, None, None, None, None]


def test_no_noise_has_a_smaller_error_than_is_said() -> None:
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(7)):
        assert noise(epsilon, (1,)).mean_error == pytest.approx(least_error(epsilon, (1,)), rel=1e-6)
        assert noise(epsilon, (0, 3, -7)).mean_error > least_error(epsilon, (0, 3, -7))


def test_lists_that_are_no_help_are_left_alone() -> None:
    assert fitting(map(Fraction, range(MOST_VALUES))) != ()
    assert fitting(map(Fraction, range(MOST_VALUES + 1))) == ()
    assert fitting([Fraction(0)]) == fitting([Fraction(5)], Fraction(5)) == fitting([]) == ()
    assert fitting([Fraction(1), Fraction(10**7)]) == ()
    assert within(Categories(("a", 1)), Bounds(0, 1)) is None
    assert within(Categories((1, 2)), None) is None
    assert within(Categories((1, 2.5, None)), Bounds(2, "2.5")) == {Fraction(2), Fraction(5, 2)}
    assert Categories((True, False)).numbers is None
    assert Categories((1.0, math.inf)).numbers is None


def test_bounds_follow_from_values_that_are_numbers() -> None:
    # 0 counts as −2 and 500 as 5.
    with opened(TWO, dc.Row(), values={"bonus": [5, None, -2]}) as session:
        answer = session.sql("SELECT AVG(bonus) AS m FROM t", epsilon=40)
        assert answer["m"][0] == pytest.approx(1.5, abs=0.5)
    for values in ([1.0, math.nan], [0.1]):
        with pytest.raises(InvalidArgument, match="that the column can hold, which is integer"):
            opened(TWO, dc.Row(), values={"bonus": values})
    with pytest.raises(InvalidArgument, match="integer, as the column is"):
        opened(TWO, dc.Row(), values={"bonus": ["low", "high"]})

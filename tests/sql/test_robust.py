"""Ranges, deviations, trimmed means and modes of groups in SQL: right where noise is small, charged for what a unit
moves, with ends that hold, and ⊥ where too few rows share a value."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any, Literal, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

import discreet as dc
from discreet import ApproxDP, Bounds, InvalidArgument, PureDP
from discreet.accounting.accountants import account
from discreet.charging.certificate import verify
from discreet.core.display.numbers import plain
from discreet.core.events import Approximate, BoundedRange, BoundedRanges, Gaussian, Laplace
from discreet.core.no_answer import Unstable
from discreet.core.units import Neighbours
from discreet.noise.entropy import Entropy
from discreet.sql.answers.chart_data import panels_of
from discreet.sql.bounding.clipping_norms import Caps, G, H
from discreet.sql.measuring.dispersion import MOST_BITS, Drawn, Noise, Trimmed, folded
from discreet.sql.measuring.modes import Chosen, Mode, chosen
from discreet.sql.measuring.quantiles import QuantilePlan, Rank
from discreet.sql.statement.histograms import Cells, Histograms

SCORES = Cells.of(Bounds(0, 999), whole=True, keys=1000)
IQR, MAD = Rank.of("iqr", None, SCORES), Rank.of("mad", None, SCORES)
TRIMMED = Rank.of("trimmed_mean", F(1, 10), SCORES)
SIZES = [(0, "sum"), (30, "sum"), (3000, "squares"), (30_000, "sum")]
Norm = Literal["l1", "l2"]


def histogram_of(values: Sequence[int] | np.ndarray[Any, Any], weight: int = 1) -> Histograms:
    places, counts = np.unique(np.asarray(values, dtype=np.int64), return_counts=True)
    return Histograms({(): places}, {(): counts * weight})


def truths(data: np.ndarray[Any, Any]) -> list[float]:
    """The ranges, the deviation and the trimmed mean, ranks as `inverted_cdf` has them, rows at the cuts in parts."""
    low, middle, high = np.quantile(data, [0.25, 0.5, 0.75], method="inverted_cdf")
    deviation = np.quantile(np.abs(data - middle), 0.5, method="inverted_cdf")
    ordered, cut = np.sort(data), 0.1 * data.size
    ranks = np.arange(data.size + 1)
    parts = np.clip(np.minimum(ranks[1:], data.size - cut) - np.maximum(ranks[:-1], cut), 0, 1)
    return [float(high - low), float(deviation), float((ordered * parts).sum() / parts.sum())]


@pytest.mark.parametrize("kind", ["normal", "skewed", "ties", "constant"])
def test_with_little_noise_the_answers_are_those_of_the_data(kind: str) -> None:
    generator = np.random.default_rng(3)
    data = {
        "normal": generator.normal(500, 80, 5000),
        "skewed": np.minimum(generator.lognormal(4, 0.8, 5000), 999),
        "ties": generator.choice([100, 101, 400, 900], 5000, p=[0.05, 0.45, 0.4, 0.1]),
        "constant": np.full(5000, 7.0),
    }[kind].astype(np.int64)
    plan = QuantilePlan.best((IQR, MAD, TRIMMED), "l1", PureDP(10**5), 1)
    found = plan.release([histogram_of(data)] * 3, [()], 1, Entropy.for_tests(0))
    for [drawn], truth in zip(found, truths(data), strict=True):
        assert isinstance(drawn, Drawn)
        assert drawn.value == pytest.approx(truth, abs=0.01)
        assert drawn.low <= truth <= drawn.high


@pytest.mark.parametrize(("size", "composition"), SIZES, ids=str)
def test_ends_hold_the_truth_for_groups_of_any_size(size: int, composition: str) -> None:
    """300 draws at 95 %: a share below 0.85 has chance 1e-10. Values off by what noise does to a cut would be missed by
    ends that were drawn at the ranks themselves: those are on the wrong side half of the time."""
    data = np.random.default_rng(size).lognormal(5, 0.6, size).astype(np.int64).clip(0, 999)
    ranks = (IQR, MAD, TRIMMED)
    norm: Norm = "l1" if composition == "sum" else "l2"
    plan = QuantilePlan(ranks, norm, "sum" if composition == "sum" else "squares", F(3), 1)
    found = plan.release([histogram_of(data)] * 3, [()] * 300, 1, Entropy.for_tests(4))
    assert all(isinstance(d, Drawn) and 0 <= d.low <= d.value <= d.high <= 999 for column in found for d in column)
    if size:
        for column, truth in zip(found, truths(data), strict=True):
            assert sum(d.low <= truth <= d.high for d in column if isinstance(d, Drawn)) / 300 > 0.85


def test_ends_of_a_trimmed_mean_move_out_by_what_clipping_took() -> None:
    data = histogram_of(np.random.default_rng(0).normal(500, 50, 20_000).astype(np.int64))
    plan = QuantilePlan.best((TRIMMED,), "l1", PureDP(4), 1)
    near, far = (plan.release([data], [()] * 10, 1, Entropy.for_tests(0), lost=F(lost))[0] for lost in (0, 500))
    widths = [np.mean([d.high - d.low for d in column if isinstance(d, Drawn)]) for column in (near, far)]
    # 500 rows of 20,000 at 64 either side of the middle, over the 80 % that are left.
    assert widths[1] - widths[0] > 2 * 500 / 20_000 * 60 / 0.8


@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("keys", [1, 7, None], ids=str)
def test_all_that_is_run_is_charged_and_within_the_budget(keys: int | None, changes: int) -> None:
    ranks = (IQR, MAD, TRIMMED, Mode(("a", "b")), Mode(None), Rank.quantile(F(1, 2), SCORES))
    for norm in ("l1", "l2"):
        delta = F(1, 10**8)
        budget = ApproxDP(1, F(1, 10**6) - delta)
        plan = QuantilePlan.best(ranks, "l1" if norm == "l1" else "l2", budget, keys, changes, delta=delta)
        assert account(plan.events, like=ApproxDP, delta=F(1, 10**6)).epsilon <= 1
        assert plan.events[-1] == Approximate(F(0), delta)
        kinds = {type(event) for event in plan.events}
        summed = {BoundedRange, Laplace, Approximate}
        assert kinds == (summed if plan.composition == "sum" else {BoundedRanges, Gaussian, Approximate})
        # What draws and noise take of one unit, in one group, against what the events say of all groups.
        groups = F(1) if norm == "l1" or plan.composition == "squares" else F(math.isqrt(keys or 1)) + 1
        power = 1 if plan.composition == "sum" else 2
        spent = sum(_spent(plan, index, power) for index in range(len(ranks))) * changes**power
        assert (
            0.9 * float(plan.epsilon) ** power
            <= float(spent * groups)
            <= float(plan.epsilon) ** power * 1.001 * float(groups)
        )


def _spent(plan: QuantilePlan, index: int, power: int) -> F:
    from discreet.mechanisms.quantiles.rank_law import spread

    rank = plan.ranks[index]
    if isinstance(rank, Mode):
        return plan._ranges[index] ** power
    spent = sum((spread(d.rank.q, d.past, d.short) ** power for d in plan._draws[index]), F(0))
    if rank.kind == "trimmed":
        noise = plan.noise(index)
        spent += sum(((power / ratio) ** power for ratio in (noise.summed, noise.counted)), F(0))
    return spent


COUNTS = st.lists(st.integers(0, 12), min_size=1, max_size=5)


@settings(max_examples=third(200), deadline=None)
@given(COUNTS, st.data())
def test_one_unit_moves_the_law_of_a_mode_by_no_more_than_its_charge(counts: list[int], data: st.DataObject) -> None:
    """Both ways, with values that only the unit has; with half the threshold the same check fails, as the next test
    shows."""
    epsilon, delta, whole = data.draw(st.sampled_from([0.3, 1.0, 3.0])), 1e-3, data.draw(st.integers(1, 8))
    own = data.draw(st.lists(st.integers(0, whole), min_size=len(counts), max_size=len(counts) + 4))
    total = sum(own) or 1
    added = [weight * whole / max(total, whole) for weight in own]
    least = Mode(None).least(F(epsilon), F(delta), 1, F(epsilon) / whole)
    assert _beyond(counts, added, epsilon / whole, least, epsilon) <= delta * (1 + 1e-9)


def _beyond(counts: Sequence[float], added: Sequence[float], rate: float, least: float, epsilon: float) -> float:
    """The δ at ε between the laws without and with a unit."""
    held = [*counts, *[0] * (len(added) - len(counts))]
    laws = []
    for scores in (held, [a + b for a, b in zip(held, [*added, *[0] * len(held)], strict=False)]):
        odds = [*(math.expm1(rate * score) for score in scores), math.exp(rate * least)]
        laws.append([each / sum(odds) for each in odds])
    ways = (laws, laws[::-1])
    return max(sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in zip(*way, strict=True)) for way in ways)


def test_the_threshold_of_a_mode_is_needed() -> None:
    least = Mode(None).least(F(1), F(1, 1000), 1, F(1, 4))
    assert 0.9e-3 < _beyond([], [4], 0.25, least, 1.0) <= 1e-3
    assert _beyond([], [4], 0.25, least - 1, 1.0) > 1e-3
    many = [4 / 1000] * 1000
    assert _beyond([], many, 0.25, least, 1.0) <= 1e-3


def test_the_threshold_of_a_mode_holds_for_the_least_budget_and_the_largest_units() -> None:
    plan = QuantilePlan.best((Mode(None),), "l1", ApproxDP(F(1, 10**6), F(1, 10**12)), 1, delta=F(1, 10**14))
    movement = Caps.up_to(None).movement(1, len(Caps.up_to(None).norms) - 1)
    rate, least = plan._ranges[0] / movement, plan._least(0, movement)
    assert _beyond([], [movement], float(rate), least, 1e-6) <= 1e-14 * (1 + 1e-9)
    counts = Histograms.of_values([(0, "a", 1 << 62, 0)], None, None)
    assert chosen(counts, (), rate, least, Entropy.for_tests(0)) == Chosen(None, False)


def test_modes_are_drawn_by_their_law() -> None:
    """3,000 draws: shares are within 6.5 deviations but for a chance below 1e-9. Odds without the −1 are farther."""
    counts, rate, least = Histograms.of_values([(0, "a", 3, 0), (0, "b", 1, 0)], None, None), F(1, 2), 4
    drawn = Counter(chosen(counts, (), rate, least, Entropy.for_tests(seed)).value for seed in range(3000))
    odds = {"a": math.expm1(1.5), "b": math.expm1(0.5), None: math.exp(2.0)}
    for value, each in odds.items():
        share = each / sum(odds.values())
        assert abs(drawn[value] / 3000 - share) < 6.5 * math.sqrt(share * (1 - share) / 3000)
    careless = math.exp(0.5) / (math.exp(1.5) + math.exp(0.5) + math.exp(2.0))
    assert abs(drawn["b"] / 3000 - careless) > 6.5 * math.sqrt(careless / 3000)
    listed = Histograms.of_values([(0, "a", 900, 0), (0, "c", 2000, 0)], ("a", "b"), None)
    assert chosen(listed, (), F(1), None, Entropy.for_tests(0)) == Chosen("a")
    assert {chosen(listed, ("none",), F(1), None, Entropy.for_tests(seed)).value for seed in range(40)} == {"a", "b"}


OWN = st.lists(st.integers(0, 999), min_size=1, max_size=6)


@settings(max_examples=third(60), deadline=None)
@given(st.lists(st.integers(0, 999), max_size=12), OWN, st.integers(0, 999), st.integers(0, 999))
def test_a_unit_moves_sum_and_number_of_a_trimmed_mean_as_declared(
    data: list[int], own: list[int], one: int, other: int
) -> None:
    """Whatever the cuts: with noise of the scale that is asked for, measured through what is released without it."""
    cuts = min(one, other), max(one, other)
    moved: list[list[int]] = []
    for values in (data, [*data, *own]):
        seen: list[int] = []

        class Overheard(Noise):
            def released(self, exact: int, moved: int, ratio: F, entropy: Entropy, seen: list[int] = seen) -> Any:
                seen += [exact, moved]
                return float(exact), 1.0

        ends = Drawn(0.0, 0.0, 999.0), Drawn(999.0, 0.0, 999.0)
        mean = Trimmed(F(1, 10), SCORES, Overheard(False, F(1), F(1)), 0.01)
        held = histogram_of(values, G * H).held(()) if values else Histograms({}, {}).held(())
        mean.release(held, cuts, ends, len(own) * G * H, (0.0, 0.0), F(0), Entropy.for_tests(0))
        moved.append(seen)
    (number, most, total, farthest), (number2, _, total2, _) = moved
    assert abs(number2 - number) <= most
    assert abs(total2 - total) <= farthest


def test_large_noise_is_drawn_on_a_coarser_grid_and_small_groups_on_a_finer_one() -> None:
    noise = Noise(False, F(10**6), F(10**6))
    value, scale = noise.released(10**6, 1 << 50, F(10**6), Entropy.for_tests(0))
    assert scale >= 10**6 * 2**50
    assert math.isfinite(value)
    # On that grid a unit can move each of many groups by a step, however little it weighs in them.
    _, wider = dataclasses.replace(noise, groups=1 << 20).released(10**6, 1 << 50, F(10**6), Entropy.for_tests(0))
    step = 1 << (10**6 << 50).bit_length() - MOST_BITS
    assert wider / 10**6 >= (1 << 50) + (1 << 20) * step
    assert folded(np.array([1, 5, 9]), np.array([2, 3, 4]), 5).total == 9


@pytest.fixture(scope="module")
def visits() -> dict[str, Any]:
    generator = np.random.default_rng(1)
    rows = 6000
    return {
        "who": np.arange(rows) // 3,
        "city": generator.choice(["A", "B"], rows),
        "cost": generator.lognormal(4, 0.5, rows),
        "drug": generator.choice(["x", "y", "z"], rows, p=[0.7, 0.2, 0.1]),
        "code": [str(row) for row in range(rows)],
        "day": [datetime.date(2024, 1, 1 + int(day)) for day in generator.choice(3, rows, p=[0.1, 0.8, 0.1])],
    }


def connected(visits: dict[str, Any], **facts: Any) -> Any:
    declared: dict[str, Any] = {"unit": dc.User("who"), "budget": ApproxDP(10**6, "1e-6"), "max_rows": 3}
    declared |= {"bounds": {"cost": (0, 2000)}, "values": {"city": ["A", "B", "C"]}, "table": "visits"}
    declared["types"] = {"day": "date"}
    return dc.connect(visits, **declared | facts)


KINDS: tuple[tuple[Any, list[str]], ...] = (dc.User, ["who"]), (dc.Row, [])
UNITS = [kind(*given, neighbours=way) for kind, given in KINDS for way in get_args(Neighbours)]
BY_CITY = "SELECT city, MODE(drug) AS drug, MODE(code) AS code, MODE(day) AS day FROM visits GROUP BY city"


@pytest.mark.parametrize("unit", UNITS, ids=["user", "user, replaced", "row", "row, replaced"])
@pytest.mark.parametrize("groups", [True, False], ids=["grouped", "whole"])
def test_answers_are_near_the_truth_at_every_level(visits: dict[str, Any], unit: Any, groups: bool) -> None:
    by = "city" if groups else "'all'"
    text = (
        f"SELECT {by} AS g, IQR(cost) AS r, MAD(cost) AS d, TRIMMED_MEAN(cost, 0.1) AS t, MODE(city) AS m FROM visits"
    )
    limit = {"max_rows": 3} if isinstance(unit, dc.User) else {"max_rows": None}
    with connected(visits, unit=unit, **limit) as session:
        answer = session.sql(text + " GROUP BY city" * groups, epsilon=400)
        spans = answer.intervals(0.95)
    for place, (group, spread, deviation, mean, mode) in enumerate(answer):
        if group == "C":
            continue
        kept = visits["cost"][(visits["city"] == group) | (not groups)]
        low, high = np.quantile(kept, [0.25, 0.75])
        assert spread == pytest.approx(high - low, rel=0.05)
        assert deviation == pytest.approx(np.median(np.abs(kept - np.median(kept))), rel=0.05)
        inside = np.sort(kept)[kept.size // 10 : -(kept.size // 10)]
        assert mean == pytest.approx(inside.mean(), rel=0.01)
        assert spans["t"][place][0] <= inside.mean() <= spans["t"][place][1]
        assert mode == (group if groups else max("AB", key=visits["city"].tolist().count))


def test_too_few_rows_of_a_value_are_an_outcome_that_says_what_it_cost(visits: dict[str, Any]) -> None:
    with connected(visits) as session:
        answer = session.sql(BY_CITY, epsilon=3)
        again = session.sql(BY_CITY, epsilon=3)
    assert [row[1] for row in answer][:2] == ["x", "x"]
    assert [row[3] for row in answer][:2] == [datetime.date(2024, 1, 2)] * 2
    refused = answer["code"][0]
    assert refused == Unstable(answer.loss)
    assert str(refused).startswith("not stable enough to answer; this cost ε = ")
    assert not refused
    assert again.rows == answer.rows
    assert "⊥ in 3 of 3 rows of code: not stable enough to answer: too few rows share a value" in "\n".join(
        answer.notes
    )
    assert "⊥" in str(answer)
    assert "⊥" in answer._repr_html_()
    assert answer.to_arrow()["code"].to_pylist() == [None] * 3
    assert answer.intervals() == {}
    rows = [[plain(value) for value in row] for row in answer.rows]
    assert rows[0][2] == "⊥"
    written = json.loads(json.dumps({"columns": answer.names, "rows": rows}))
    for shown in (answer, written):
        assert verify(answer.certificate, answer=shown).loss == answer.loss


def test_no_answer_is_null_to_what_is_done_with_it(visits: dict[str, Any]) -> None:
    inner = "SELECT city, MODE(code) AS code, MODE(drug) AS drug, COUNT(*) AS n FROM visits GROUP BY city"
    with connected(visits) as session:
        shown = "city, UPPER(drug) AS big, code || '!' AS loud, code"
        answer = session.sql(f"SELECT {shown} FROM ({inner}) WHERE n > 1000 ORDER BY drug, city", epsilon=9)
        kept = session.sql(f"{inner} HAVING MODE(code) IS NULL ORDER BY code, n DESC LIMIT 2", epsilon=9)
    assert [row[:3] for row in answer] == [("A", "X", None), ("B", "X", None)]
    assert answer["code"] == [Unstable(answer.loss)] * 2
    assert len(kept) == 2
    assert any("Computed from other columns" in text and "big, loud" in text for text in answer.notes)


def test_modes_of_numbers_are_drawn_without_what_they_lack(visits: dict[str, Any]) -> None:
    with connected(visits | {"rank": np.where(visits["city"] == "A", 4, visits["who"])}) as session:
        answer = session.sql("SELECT city, MODE(rank) AS most, COUNT(*) AS n FROM visits GROUP BY city", epsilon=5)
    assert answer["most"][0] == 4
    assert [len(panel.records) for panel in panels_of(answer, {}, 0.95)] == [1, 3]
    assert any("⊥ in 2 of 3 rows of most" in line for line in answer.plot().to_dict()["title"]["subtitle"])


def test_a_pure_budget_names_declared_values_only(visits: dict[str, Any]) -> None:
    with connected(visits, budget=PureDP(100)) as session:
        assert session.sql("SELECT MODE(city) AS m FROM visits WHERE city = 'A'", epsilon=5)["m"] == ["A"]
        with pytest.raises(InvalidArgument, match=r"MODE.*declare the values of its column, or use an ApproxDP budget"):
            session.price("SELECT MODE(drug) FROM visits", epsilon=1)


def test_the_price_says_what_to_expect(visits: dict[str, Any]) -> None:
    text = "SELECT IQR(cost) AS r, TRIMMED_MEAN(cost, 0.1) AS t, MODE(city) AS c, MODE(drug) AS d FROM visits"
    with connected(visits) as session:
        quote = session.price(text, epsilon=2)
        told = [str(error) for error in quote.errors]
        with pytest.raises(InvalidArgument, match="a count or sum"):
            session.price("SELECT MODE(city) FROM visits", error=5)
    assert told[0].endswith("ranks")
    assert told[1].endswith("times the distance of its cuts over the number of rows")
    assert told[2].startswith("c within ")
    assert told[3].startswith("d ⊥ unless ")
    assert "else ⊥" in quote.plan


def test_weights_are_those_of_clipped_sums_for_values_too() -> None:
    caps = Caps.up_to(8)
    found = Histograms.of_values([(0, "a", 2, 9), (5, "a", 30, 7), (0, "b", 1, 1)], None, caps, 2)
    assert found.weights[()].tolist() == [2 * G * H + 7 * caps.weight(2), G * H]
    assert Histograms.of_values([], None, caps).held(())[0].size == 0

"""The one statement of a query on real DuckDB: its totals are the clipped sums, and one unit moves them by no more than
declared."""

from collections import Counter
from fractions import Fraction
from math import floor, inf, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import third

from discreet import Bounds, Categories
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.clipping_norms import Caps, G, H
from discreet.sql.bounding.sums import Statistic, Sums
from discreet.sql.catalog import Column, Table
from discreet.sql.functions.registry import call
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.plan import Aggregate, Filter, Literal, Measure, Named, Ref, Scan
from discreet.sql.statement.builder import statement
from discreet.sql.statement.layout import Norm, Weights
from discreet.sql.statement.results import Groups
from discreet.sql.statement.rows import WRITTEN

BOUNDS = Bounds(-10, 90)
CAPS = Caps.up_to(9)
MEASURES = (
    Measure("n", "count"),
    Measure("present", "count", Ref("v", "real")),
    Measure("units", "count_units"),
    Measure("total", "sum", Ref("w", "real"), BOUNDS),
    Measure("spread", "variance", Ref("v", "real"), BOUNDS),
)

Row = tuple[int, str | None, float | None, float | None]
numbers = st.none() | st.floats(-200, 200) | st.sampled_from([float("nan"), float("inf"), -0.0, 1e308, 5e-324])
rows_of_one = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), numbers, numbers), min_size=1, max_size=12)
people = st.lists(rows_of_one, min_size=1, max_size=6)


def run(
    rows: list[Row], norm: Norm, unit: str | None = "u", listed: tuple[Any, ...] | None = None
) -> tuple[Groups, Measurement]:
    engine = DuckDB(threads=1)
    columns = {
        "u": np.array([row[0] for row in rows], dtype=np.int64),
        "k": np.array([row[1] for row in rows], dtype=object),
        "v": np.array([np.nan if row[2] is None else row[2] for row in rows], dtype=np.float64),
        "w": np.array([np.nan if row[3] is None else row[3] for row in rows], dtype=np.float64),
    }
    engine.add("t", columns)
    table = Table("t", (Column("u", "integer"), Column("k", "text"), Column("v", "real"), Column("w", "real")), unit)
    measures = MEASURES if unit else MEASURES[:2] + MEASURES[3:]
    values = None if listed is None else Categories(listed)
    aggregate = Aggregate(Scan(table), (Named("k", Ref("k", "text"), values=values),), measures)
    statistics = Sums(aggregate.measures).statistics
    weights = Weights(norm, CAPS, CAPS) if unit else None
    found = engine.run(statement(aggregate, statistics, weights))
    engine.close()
    groups = Groups.read(found, 1, statistics, unit is not None)
    return groups, Measurement(statistics, norm, Fraction(1), 1, weights, Fraction(1))


def table_of(persons: list[list[tuple[Any, Any, Any]]]) -> list[Row]:
    return [(number, *row) for number, rows in enumerate(persons) for row in rows]


def vectors(groups: Groups, measurement: Measurement, cut: int) -> list[dict[Any, int]]:
    keys = sorted(groups.keys, key=str)
    return [dict(zip(keys, column, strict=True)) for column in measurement.totals(groups, keys, (cut,) * 3)]


def length(moved: list[int], norm: Norm) -> float:
    return sum(map(abs, moved)) if norm == "l1" else sqrt(sum(m * m for m in moved))


@settings(max_examples=third(25), deadline=None)
@given(people, st.integers(0, len(CAPS.norms) - 1), st.sampled_from(["l1", "l2"]))
def test_one_unit_moves_the_totals_by_at_most_what_is_declared(persons: Any, cut: int, norm: Norm) -> None:
    groups, measurement = run(table_of(persons), norm)
    fewer, _ = run(table_of(persons)[: -len(persons[-1])] or [(99, "z", 0.0, 0.0)], norm)
    lesser = vectors(fewer, measurement, cut)
    for statistic, before, after in zip(measurement.statistics, vectors(groups, measurement, cut), lesser, strict=True):
        known = {} if len(persons) == 1 else after
        moved = [before.get(key, 0) - known.get(key, 0) for key in before.keys() | known.keys()]
        assert length(moved, norm) <= CAPS.movement(statistic.bound, cut)


def test_a_bound_that_forgets_the_groups_would_be_exceeded() -> None:
    rows: list[Row] = [(1, key, 90.0, 90.0) for key in "abcdefghijklmnopqrstuvwxy"]
    groups, measurement = run(rows, "l2")
    index = next(i for i, s in enumerate(measurement.statistics) if s.kind == "rows")
    moved = length([*vectors(groups, measurement, 6)[index].values()], "l2")
    assert moved > CAPS.movement(1, 5)  # clipped at 4 it weighs more than a cap of 3 allows
    assert moved <= CAPS.movement(1, 6)


@settings(max_examples=third(20), deadline=None)
@given(people, st.integers(0, len(CAPS.norms) - 1))
def test_totals_are_the_clipped_sums(persons: Any, cut: int) -> None:
    groups, measurement = run(table_of(persons), "l2")
    kinds = [s.kind for s in measurement.statistics]
    by_rows: Counter[Any] = Counter()
    by_groups: Counter[Any] = Counter()
    cap = CAPS.norms[cut]
    for rows in persons:
        counts = Counter(row[0] for row in rows)
        for numbers, clipped in ((counts, by_rows), (Counter(counts.keys()), by_groups)):
            norm = sqrt(sum(n * n for n in numbers.values()))
            for key, n in numbers.items():
                inside = sum(n * n for n in numbers.values()) <= cap**2
                clipped[(key,)] += n * G * H if inside else n * int(cap * H) * int(G / norm)
    totals = vectors(groups, measurement, cut)
    assert totals[kinds.index("rows")] == by_rows
    assert totals[kinds.index("units")] == by_groups


@settings(max_examples=third(20), deadline=None)
@given(people)
def test_the_histograms_count_every_unit_once(persons: Any) -> None:
    groups, _ = run(table_of(persons), "l2")
    assert sum(groups.by_rows.values()) == sum(groups.by_groups.values()) == len(persons)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    "caps", [CAPS, Caps.up_to(None), Caps.up_to(7), Caps.up_to(1000), Caps.up_to(5000), Caps.fixed(5)]
)
def test_buckets_are_the_first_candidates_that_a_norm_is_within(caps: Caps, squared: bool) -> None:
    engine = DuckDB(threads=1)
    ends = [norm**2 if squared else norm for norm in Caps.up_to(None).norms + caps.norms]
    # Norms in ℓ1 and squares of norms in ℓ2 are whole numbers: those next to each candidate, and many more.
    whole = {floor(end) + aside for end in ends for aside in (-1, 0, 1)} | {*range(1, 3000), 10**9, 2**31, 2**40, 2**62}
    norms = sorted(number for number in whole if number > 0)
    root = "SQRT(z)" if squared else "z"
    listed = ", ".join(f"({number}::DOUBLE)" for number in norms)
    found = engine.run(
        f"SELECT CAST(z AS BIGINT), {caps.bucket('s')} FROM (SELECT z, {root} AS s FROM (VALUES {listed}) AS t(z))"
    )
    expected = {
        n: next((i for i, norm in enumerate(caps.norms) if n <= (norm**2 if squared else norm)), len(caps.norms))
        for n in norms
    }
    assert dict(found) == expected
    engine.close()


def test_norms_between_whole_numbers_have_buckets_too() -> None:
    engine = DuckDB(threads=1)
    caps = Caps.up_to(None)
    norms = [
        float(aside)
        for norm in caps.norms
        for aside in (norm, np.nextafter(float(norm), inf), np.nextafter(float(norm), 0))
    ]
    listed = ", ".join(f"({place}, {norm!r}::DOUBLE)" for place, norm in enumerate(norms))
    found = engine.run(f"SELECT {caps.bucket('z')} FROM (VALUES {listed}) AS t(i, z) ORDER BY i")
    assert [bucket for (bucket,) in found] == np.searchsorted([float(norm) for norm in caps.norms], norms).tolist()
    engine.close()


def test_columns_may_be_called_as_the_statement_calls_its_own() -> None:
    engine = DuckDB(threads=1)
    data = {"who": [1, 1, 2, 3], "unit": [5, 6, 7, 8], "group_key_0": [1, 2, 1, 2], "row_weight": [1, 2, 3, 4]}
    engine.add("bounded_rows", {name: np.array(values) for name, values in data.items()})
    table = Table("bounded_rows", tuple(Column(name, "integer") for name in data), "who")
    few = call("<", Ref("unit", "integer"), Literal(7, "integer"))
    aggregate = Aggregate(Filter(Scan(table), few), (Named("unit", Ref("unit", "integer")),), MEASURES[:1])
    statistics = Sums(aggregate.measures).statistics
    text = statement(aggregate, statistics, Weights("l1", CAPS, CAPS))
    assert text.startswith("WITH bounded_rows2 AS")
    found = engine.run(text)
    groups = Groups.read(found, 1, statistics, True)
    assert groups.keys == {(5,), (6,)}
    assert groups.by_rows == {(2, 0): 1}  # one unit, with two rows
    engine.close()


@settings(max_examples=third(20), deadline=None)
@given(st.lists(st.tuples(st.just(0), st.sampled_from(["a", "b"]), numbers, numbers), min_size=1, max_size=20))
def test_without_units_each_row_adds_at_most_its_bound(rows: list[Row]) -> None:
    groups, measurement = run(rows, "l2", unit=None)
    fewer, _ = run(rows[:-1] or rows, "l2", unit=None)
    lesser = vectors(fewer, measurement, 0)
    for statistic, before, after in zip(measurement.statistics, vectors(groups, measurement, 0), lesser, strict=True):
        moved = [before.get(key, 0) - after.get(key, 0) for key in before.keys() | after.keys()]
        assert length(moved, "l1") <= statistic.bound * G * H


def test_answers_from_exact_sums_are_the_plain_aggregates() -> None:
    values = [1.0, 4.0, 4.5, 80.0]
    groups, measurement = run([(i, "a", v, v) for i, v in enumerate(values)], "l2")
    totals = measurement.totals(groups, [("a",)], (0, 0, 0))
    pairs = zip(measurement.statistics, totals, strict=True)
    steps = {s: np.array(total) / (G * H) * float(s.grid.step) for s, total in pairs}
    sums = Sums(MEASURES)
    assert sums.answer(0, steps) == 4
    assert sums.answer(3, steps) == pytest.approx(sum(values), rel=1e-3)
    assert sums.answer(4, steps) == pytest.approx(np.var(values, ddof=1), rel=1e-2)
    assert sums.answer(2, steps) == 4


@pytest.mark.parametrize("bounds", [BOUNDS, Bounds(0, 1), Bounds(-1, 1), Bounds(10**15, 10**15 + 1), Bounds(3, 3)])
def test_values_are_held_to_their_bounds(bounds: Bounds) -> None:
    engine = DuckDB(threads=1)
    centre = float((bounds.lower + bounds.upper) / 2)
    values = [float(bounds.lower), centre, float(bounds.upper), -1e300, 1e300, 0.1]
    listed = ", ".join(f"({place}, {value!r}::DOUBLE)" for place, value in enumerate(values))
    odd = "(90, 'nan'::DOUBLE), (91, 'inf'::DOUBLE), (92, '-inf'::DOUBLE), (93, NULL)"
    for kind in ("raw", "centred", "squares"):
        statistic = Statistic(Sum(kind), Ref("v", "real"), bounds)
        text = f"SELECT {statistic.steps('v')} FROM (VALUES {listed}, {odd}) AS t(i, v) ORDER BY i"
        found = [row[0] for row in engine.run(text)]
        assert found[len(values) :] == [None] * 4
        for value, steps in zip(values, found, strict=False):
            held = min(max(Fraction(value), bounds.lower), bounds.upper) - statistic.middle
            exact = (held**2 if kind == "squares" else held) / statistic.grid.step * statistic.fineness
            assert abs(steps) <= statistic.bound * statistic.fineness
            assert abs(steps - exact) <= 1
    engine.close()


def test_rows_of_groups_that_are_not_listed_make_nobody_heavier() -> None:
    rows: list[Row] = [(1, "a", 1.0, 1.0)] + [(1, "z", 1.0, 1.0)] * 50 + [(2, None, 1.0, 1.0), (3, "b", 1.0, 1.0)]
    for listed, expected in (
        (("a", "b"), {("a",): 1, ("b",): 1}),
        (("a", None), {("a",): 1, (None,): 1}),
        ((None,), {(None,): 1}),
        (tuple(map(str, range(WRITTEN + 1))), None),
    ):
        groups, measurement = run(rows, "l2", listed=listed)
        totals = vectors(groups, measurement, 0)[0]
        if expected is None:
            assert totals[("z",)] > G * H * 0.9
            assert totals[("a",)] < G * H * 0.1
        else:
            assert totals == {key: number * G * H for key, number in expected.items()}
            assert sum(units for units, *_ in groups.octaves.values()) == len(expected)

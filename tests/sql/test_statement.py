"""The one statement of a query on real DuckDB: its totals are the clipped sums, and one unit moves them by no more than
declared."""

from fractions import Fraction
from math import ceil, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Bounds
from discreet.engines.duckdb import DuckDB
from discreet.sql.catalog import Column, Table
from discreet.sql.plan import Aggregate, Measure, Named, Ref, Scan
from discreet.sql.statement import G, Groups, H, Norm, movement, statement, weight
from discreet.sql.statistics import Sums

BOUNDS = Bounds(-10, 90)
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


def run(rows: list[Row], norm: Norm, unit: str | None = "u") -> tuple[Groups, Sums]:
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
    aggregate = Aggregate(Scan(table), (Named("k", Ref("k", "text")),), measures)
    sums = Sums(aggregate.measures)
    found = engine.run(statement(aggregate, sums.statistics, norm))
    engine.close()
    return Groups.read(found, 1, len(sums.statistics), unit is not None), sums


def table_of(persons: list[list[tuple[Any, Any, Any]]]) -> list[Row]:
    return [(number, *row) for number, rows in enumerate(persons) for row in rows]


def vector(groups: Groups, index: int, cut: int) -> dict[Any, int]:
    return {key: groups.total(key, index, cut) for key in groups.sums}


@settings(max_examples=40, deadline=None)
@given(people, st.integers(0, 12), st.sampled_from(["l1", "l2"]))
def test_one_unit_moves_the_totals_by_at_most_what_is_declared(persons: Any, cut: int, norm: Norm) -> None:
    groups, sums = run(table_of(persons), norm)
    fewer, _ = run(table_of(persons)[: -len(persons[-1])] or [(99, "z", 0.0, 0.0)], norm)
    for index, statistic in enumerate(sums.statistics):
        before, after = vector(groups, index, cut), vector(fewer, index, cut)
        if len(persons) == 1:
            after = {}
        moved = [before.get(key, 0) - after.get(key, 0) for key in before.keys() | after.keys()]
        length = sum(map(abs, moved)) if norm == "l1" else sqrt(sum(m * m for m in moved))
        assert length <= movement(statistic.bound, cut)


def test_a_bound_that_forgets_the_groups_would_be_exceeded() -> None:
    rows: list[Row] = [(1, key, 90.0, 90.0) for key in "abcdefghi"]
    groups, sums = run(rows, "l2")
    index = next(i for i, s in enumerate(sums.statistics) if s.kind == "rows")
    moved = sqrt(sum(total**2 for total in vector(groups, index, 4).values()))
    assert moved > movement(1, 2)  # clipped at 2² = 4 groups' worth it weighs more than a cap of 2 allows
    assert moved <= movement(1, 4)


@settings(max_examples=20, deadline=None)
@given(people, st.integers(0, 8))
def test_totals_are_the_clipped_sums(persons: Any, cut: int) -> None:
    groups, sums = run(table_of(persons), "l2")
    index = next(i for i, s in enumerate(sums.statistics) if s.kind == "rows")
    expected: dict[Any, int] = {}
    for rows in persons:
        counts = {key: sum(row[0] == key for row in rows) for key in {row[0] for row in rows}}
        norm = sqrt(sum(n * n for n in counts.values()))
        bucket = ceil(2 * np.log2(norm) - 1e-9)
        for key, n in counts.items():
            inside = bucket <= cut
            expected[(key,)] = expected.get((key,), 0) + (n * G * H if inside else weight(cut) * int(n * G / norm))
    assert vector(groups, index, cut) == pytest.approx(expected, abs=weight(cut) * len(persons))


@settings(max_examples=30, deadline=None)
@given(people)
def test_the_histogram_counts_every_unit_once(persons: Any) -> None:
    groups, _ = run(table_of(persons), "l2")
    assert sum(groups.histogram.values()) == len(persons)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.just(0), st.sampled_from(["a", "b"]), numbers, numbers), min_size=1, max_size=20))
def test_without_units_each_row_adds_at_most_its_bound(rows: list[Row]) -> None:
    groups, sums = run(rows, "l2", unit=None)
    fewer, _ = run(rows[:-1] or rows, "l2", unit=None)
    for index, statistic in enumerate(sums.statistics):
        before, after = vector(groups, index, 0), vector(fewer, index, 0)
        moved = sum(abs(before.get(key, 0) - after.get(key, 0)) for key in before.keys() | after.keys())
        assert moved <= statistic.bound * G * H


def test_answers_from_exact_sums_are_the_plain_aggregates() -> None:
    values = [1.0, 4.0, 4.5, 80.0]
    groups, sums = run([(i, "a", v, v) for i, v in enumerate(values)], "l2")
    steps = {s: groups.total(("a",), j, 40) / (G * H) * float(s.grid.step) for j, s in enumerate(sums.statistics)}
    assert sums.answer(0, steps) == 4
    assert sums.answer(3, steps) == pytest.approx(sum(values), rel=1e-3)
    assert sums.answer(4, steps) == pytest.approx(np.var(values, ddof=1), rel=1e-2)
    assert Fraction(sums.answer(2, steps)) == 4

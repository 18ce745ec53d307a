"""Aggregates: differences, trackers, rounded answers, suppressed counts; and none of it on ours."""

import duckdb
import numpy as np
import pytest

import discreet as dc
from discreet.adversary import OfConnection, OfSession, Restricted, difference, margins, track, unsuppress
from discreet.adversary.reconstruction.chance import power
from discreet.core.errors import InvalidArgument

PEOPLE = 400


@pytest.fixture(scope="module")
def people() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    ages = generator.integers(0, 90, PEOPLE)
    return {"id": np.arange(PEOPLE), "age": ages, "ill": generator.integers(0, 2, PEOPLE)}


@pytest.fixture
def base(people: dict[str, np.ndarray]) -> duckdb.DuckDBPyConnection:
    import pyarrow

    connection = duckdb.connect(":memory:")
    connection.register("given", pyarrow.table(people))
    connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return connection


ILL = "SELECT SUM(ill) FROM people WHERE {condition}"
COUNT = "SELECT COUNT(*) FROM people WHERE {condition}"
COVERS = ("age < 50", "age < 60", "age > 20")
TRACKERS = ("id % 2 = 0", "age < 45", "id < 200")
TARGETS = [f"id = {place}" for place in range(40)]


def test_differences_of_exact_sums_give_everybody_away(base: object, people: dict[str, np.ndarray]) -> None:
    found = difference(OfConnection(base, ILL), TARGETS, COVERS)
    assert found.values.tolist() == people["ill"][:40].tolist()
    assert (found.pinned, found.asked, found.answered) == (40, 240, 240)
    assert found.verdict == "BROKEN: 40 of 40 values sought were read off 240 answers."
    assert "found" not in found.as_record()


def test_a_tracker_reads_what_is_refused(base: object, people: dict[str, np.ndarray]) -> None:
    careful = Restricted(OfConnection(base, ILL), OfConnection(base, COUNT), least=20)
    refused = difference(careful, TARGETS[:3])
    assert refused.verdict.startswith("NOTHING")
    assert refused.reasons == {"PermissionError: about all but too few people": 3}
    found = track(careful, TARGETS[:10], TRACKERS, truth=people["ill"][:10])
    assert (found.right, found.pinned) == (10, 10)


def test_rounded_answers_are_narrowed_by_covers(base: object, people: dict[str, np.ndarray]) -> None:
    rounded = Restricted(
        OfConnection(base, "SELECT SUM(age) FROM people WHERE {condition}"), OfConnection(base, COUNT), step=10
    )
    covers = [f"age < {limit}" for limit in range(20, 88, 2)]
    found = difference(rounded, TARGETS[:4], covers, step=10, resolution=10)
    assert (found.lows <= people["age"][:4]).all()
    assert (people["age"][:4] <= found.highs).all()
    assert found.pinned >= 3
    assert (difference(rounded, TARGETS[:4], covers[:1], step=10, resolution=10).widths == 20).all()


def test_one_difference_cannot_tell_exact_from_noisy(base: object) -> None:
    assert difference(OfConnection(base, ILL), TARGETS[:2], COVERS[:1]).verdict.startswith("UNSURE")


def test_differences_of_our_answers_are_no_better_than_chance(people: dict[str, np.ndarray]) -> None:
    """The 80 statements are 0.1-DP together; an attack that has all 40 fair bits right would be noticed for sure."""
    assert power(40, 1.0, epsilon=0.1) == 1.0
    names = {"age": (0, 90), "ill": (0, 1), "id": (0, PEOPLE)}
    with dc.connect(people, unit=dc.Row(), budget=dc.PureDP(1), table="people", bounds=names) as session:
        found = difference(OfSession(session, ILL, "0.00125"), TARGETS, ["id < 200"], truth=people["ill"][:40])
        assert session.spent.epsilon <= 0.1
    assert found.answered == 80
    assert not found.beats_chance(epsilon=0.1)


def test_answerers_that_raise_or_refuse_are_reported(base: object) -> None:
    def moody(condition: str) -> float:
        if "OR" in condition:
            raise RuntimeError("down for maintenance")
        return float("nan")

    found = difference(moody, "id = 1", COVERS)
    assert found.verdict == "NOTHING: 0 of 6 questions were answered, too few to compare."
    assert found.reasons == {"RuntimeError: down for maintenance": 3, "no number": 3}
    wrong = difference(OfConnection(base, "SELECT SUM(nothing) FROM people WHERE {condition}"), "id = 1")
    assert sum(wrong.reasons.values()) == 2
    broke = difference(lambda condition: 1 / 0, [f"id = {i}" for i in range(60)])
    assert broke.asked == 50
    with pytest.raises(InvalidArgument, match=r"with \{condition\} in it"):
        OfConnection(base, "SELECT 1")
    with pytest.raises(InvalidArgument, match="one for each target"):
        difference(moody, "id = 1", truth=[1, 2])


def published(counts: np.ndarray, hidden: np.ndarray) -> dict[str, list[object]]:
    rows, columns = counts.shape
    table: dict[str, list[object]] = {"r": [], "c": [], "count": []}
    for r in (*range(rows), "total"):
        for c in (*range(columns), "total"):
            part = counts[slice(None) if r == "total" else r][..., slice(None) if c == "total" else c]
            marked = "total" not in (r, c) and hidden[r, c]
            for name, value in zip(table, (r, c, "<5" if marked else int(np.sum(part))), strict=True):
                table[name].append(value)
    return table


def test_suppressed_counts_follow_from_totals() -> None:
    counts = np.array([[12, 3, 30], [40, 22, 31], [9, 50, 17]])
    hidden = counts < 5
    found = unsuppress(margins(published(counts, hidden)))
    assert [(cell.words, cell.low, cell.high) for cell in found.cells] == [("r = 0, c = 1", 3, 3)]
    hidden[0, 0] = hidden[2, 0] = hidden[2, 1] = True
    square = unsuppress(margins(published(counts, hidden)))
    assert square.verdict == "HELD: none of 4 suppressed counts follows from the others."
    assert "narrowed" in dict(square.lines())
    assert unsuppress(margins(published(counts, hidden)), least=51).left <= square.left


def test_bounds_of_suppressed_counts_hold_and_are_reached() -> None:
    generator = np.random.default_rng(4)
    for _ in range(3):
        counts = generator.poisson(generator.gamma(0.7, 6, (4, 3)))
        hidden = (counts > 0) & (counts < 5)
        found = unsuppress(margins(published(counts, hidden)), least=5)
        for cell, (r, c) in zip(found.cells, np.argwhere(hidden), strict=True):
            assert cell.low <= counts[r, c] <= (cell.high or 0)
        free = np.argwhere(hidden)
        grids = np.stack(np.meshgrid(*[np.arange(1, 5)] * len(free), indexing="ij"), -1).reshape(-1, len(free))[
            :300_000
        ]
        if 4 ** len(free) <= 300_000:
            fits = np.ones(len(grids), bool)
            for axis in (0, 1):
                for line in range(counts.shape[axis]):
                    on = free[:, axis] == line
                    fits &= grids[:, on].sum(axis=1) == counts[tuple(free[on].T)].sum()
            ends = [(int(low), int(high)) for low, high in zip(grids[fits].min(0), grids[fits].max(0), strict=True)]
            assert [(cell.low, cell.high) for cell in found.cells] == ends


def test_rounded_totals_pin_less() -> None:
    counts = np.array([[12, 3, 30], [40, 22, 31]])
    exact = unsuppress(margins(published(counts, counts < 5)), step=0)
    rounded = unsuppress(margins(published(counts, counts < 5)), step=5)
    assert exact.pinned == 1
    assert not rounded.pinned
    assert rounded.cells[0].low <= 3 <= (rounded.cells[0].high or 0)


def test_tables_that_no_people_can_have_are_reported() -> None:
    table = published(np.array([[12, 3], [40, 22]]), np.array([[False, True], [False, False]]))
    table["count"][2] = 11  # Less than the 12 people of one of its cells.
    found = unsuppress(margins(table))
    assert found.verdict.startswith("NOTHING")
    assert "contradict" in found.verdict
    assert found.contradictions

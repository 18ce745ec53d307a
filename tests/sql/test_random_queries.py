"""Random questions about random tables, ten thousand in `make soak`: none is answered without its charge, one unit
moves nothing by more than is declared, neighbours look alike, without noise the answers are DuckDB's own; planted
faults are found."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from tests.soak import whole_or_share
from tests.sql.examination import Check, Examination
from tests.sql.faults import FAULTS, Fault, planted
from tests.sql.generator import QUANTILES, question
from tests.sql.worlds import World

from discreet.adversary.session_audit.sensitivity import CheckFailed
from discreet.core.errors import DiscreetError
from discreet.session.sql import SQL

WORLDS, QUESTIONS = 50, whole_or_share(200, 20)
ASKED_WORLDS = whole_or_share(WORLDS, 20)
"""Ten thousand questions in all, or four hundred."""
THROUGH_SESSION = 25
"""One question in so many goes through sessions, with books that are written to the disk; of the others one half is
checked for movement and one half for totals."""
WORDS = {"count", "count_units", "sum", "avg", "variance", "stddev", "filter", "arithmetic", "membership"}
WORDS |= {
    "keys",
    "bins",
    "key of dates",
    "having",
    "order by",
    "limit",
    "outer",
    "text function",
    "date part",
    "moment",
}
WORDS |= {"table", "subquery", "named", "united", "distinct", "features"}
WORDS |= {"with_town", "with_labs", "with_items", "three"}
WORDS |= {"quantile", "min", "max", "iqr", "mad", "trimmed_mean", "mode"} if QUANTILES else set()


def checks_of(number: int) -> tuple[Check, ...]:
    if number % THROUGH_SESSION == 0:
        return ("session",)
    return ("movement",) if number % 2 else ("totals",)


@pytest.mark.parametrize("seed", range(ASKED_WORLDS))
def test_random_questions_are_charged_bounded_alike_and_right(seed: int) -> None:
    examination = Examination(seed)
    try:
        for number in range(QUESTIONS):
            examination.question(number, *checks_of(number))
    finally:
        examination.close()
    seen = examination.seen
    assert seen["questions"] == QUESTIONS
    assert seen["answered questions"] > QUESTIONS / 2
    assert seen["compared"] > QUESTIONS / 8


FOUND_IN = {"threshold_too_low": 107, "noise_of_one_share": 105, "bounds_outlive_their_column": 102}
FOUND_IN |= {"sums_a_little_off": 103, "refusals_charged": 101}
"""Worlds that some faults were found in: the search begins there, and goes on elsewhere."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_planted_faults_are_found(fault: Fault) -> None:
    check, said = FAULTS[fault]
    with planted(fault):
        worlds = sorted(range(100, 130), key=lambda seed: seed != FOUND_IN.get(fault.__name__))
        found = next((finding for seed in worlds for finding in findings(seed, check)), None)
    assert found is not None
    assert found.check in said, str(found)


def findings(seed: int, check: Check) -> Iterator[CheckFailed]:
    """What one check finds in a few questions about a world."""
    examination = Examination(seed)
    try:
        for number in range({"plan": 200, "session": 12}.get(check, 30)):
            if check == "plan" and not question(examination.world, number).refused:
                continue
            try:
                examination.question(number, check)
            except CheckFailed as finding:
                yield finding
    finally:
        examination.close()


def test_questions_use_all_of_the_grammar_and_most_are_answered() -> None:
    used: Counter[str] = Counter()
    each = whole_or_share(100, 50)
    for seed in range(300, 306):
        world = World(seed)
        session = world.connect(world.data)
        for number in range(each):
            asked = question(world, number)
            try:
                SQL(asked.text, asked.epsilon).bind(session._context).plan()
            except DiscreetError:
                used["refused"] += 1
            else:
                used.update(["answered", *asked.tags])
        session.close()
    assert used.keys() >= WORDS
    assert used["answered"] > 4.5 * each
    assert used["refused"] > 0.12 * each


def test_worlds_are_of_every_kind() -> None:
    worlds = [World(seed) for seed in range(WORLDS)]
    assert {(w.by_row, w.replaces, w.pure) for w in worlds} == {*product((True, False), repeat=3)}
    assert {w.max_rows is None for w in worlds if not w.by_row} == {True, False}
    assert {w.source for w in worlds} == {"arrow", "lists", "pandas"}
    assert {w.unit_kind for w in worlds} == {"integer", "text", "real"}
    assert {len(w.data["visits"]) > 50 for w in worlds} == {True, False}
    assert any(not w.data["visits"] for w in worlds)
    assert any(w.poor for w in worlds)
    assert {w.optimized for w in worlds} == {True, False}

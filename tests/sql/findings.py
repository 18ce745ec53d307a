"""What is checked of a question: how far one unit moves its sums, what stands in the books, whether neighbours look
alike, and whether numbers are those of the reference. Each check raises a `CheckFailed` where it fails."""

from collections.abc import Mapping
from typing import Any

from tests.sql.exact import Exact, Key, plain, plain_key
from tests.sql.generator import Question
from tests.sql.worlds import Dice

from discreet.adversary.session_audit import replay
from discreet.adversary.session_audit.sensitivity import NO_CUTS, CheckFailed, Cuts
from discreet.core.no_answer import Unstable
from discreet.sql.answers.answer import Answer
from discreet.sql.bounding.clipping_norms import Weighing
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.plan import Measure

CUTS = 3
"""How many choices of norms a movement is measured at."""


def cuts_of(measurement: Measurement, dice: Dice) -> Cuts:
    """Candidates for the norms that can be chosen, one for each weighing, mostly small ones."""
    if measurement.weights is None:
        return NO_CUTS
    tops = [min(measurement.top(weighing), dice.pick(2, 6, 12, 40)) for weighing in Weighing]
    return tuple(dice.between(0, top) for top in tops)


def several_cuts(measurement: Measurement, dice: Dice) -> set[Cuts]:
    """The norms at which one movement is measured."""
    return {NO_CUTS, *(cuts_of(measurement, dice) for _ in range(CUTS - 1))}


def cap_of(measurement: Measurement, weighing: int, cuts: Cuts) -> float | None:
    """The norm that units are weighed down to."""
    return None if measurement.weights is None else float(measurement.weights.caps(weighing).norms[cuts[weighing]])


def alike(asked: Question, planned: Any, mine: Answer, theirs: Answer) -> None:
    """Answers on neighbours have the same columns, and where all listed keys are shown the same keys."""
    replay.alike(planned, mine, theirs)
    if planned.listed is None or asked.limit is not None or {"having", "outer"} & asked.tags:
        return
    keys = [sorted([row[: asked.keys] for row in answer.rows], key=repr) for answer in (mine, theirs)]
    if keys[0] != keys[1] or (asked.order is None and mine.places != theirs.places):
        raise CheckFailed("shape", f"groups {keys[0]} here, {keys[1]} on a neighbour")


def compare(here: Mapping[Key, float], there: Mapping[Key, float], slack: Mapping[Key, float], what: str) -> None:
    """Numbers by group, zero where a group is absent."""
    for key in here.keys() | there.keys():
        apart = abs(here.get(key, 0.0) - there.get(key, 0.0))
        if not apart <= slack.get(key, 0.0) + 1e-9:
            raise CheckFailed("result", f"{what}: {here.get(key)} instead of {there.get(key)} for {key}")


def as_duckdb(asked: Question, planned: Any, answer: Answer, exact: Exact, own: list[tuple[Any, ...]]) -> None:
    """Rows that are shown are those of DuckDB's answer to the same words, but for groups without rows."""
    keys = asked.keys
    expected = {plain_key(row[:keys]): row for row in own}
    shown = {plain_key(row[:keys]): row for row in answer.rows}
    for key, row in shown.items():
        if key not in expected:
            if asked.sharp and asked.limit is None and key in exact.keys:
                raise CheckFailed("result", f"{key} is shown, but not by DuckDB")
            continue
        for output, index in enumerate(asked.plain):
            value, true = row[keys + output], expected[key][keys + output]
            if index is None or true is None:
                continue
            measure = planned.query.aggregate.measures[index]
            if measure.aggregation.is_ranked:
                continue
            if abs(spread(measure, value) - spread(measure, true)) > slack_of(measure, len(exact.rows)):
                raise CheckFailed("result", f"{asked.aggregates[index].text} is {value}, to DuckDB {true}, for {key}")
    missing = expected.keys() - shown.keys()
    if asked.sharp and asked.limit is None and planned.listed is not None:
        listed = {plain_key(key) for key in planned.listed}
        if missing & listed:
            raise CheckFailed("result", f"DuckDB shows {missing & listed} too")
    if asked.limit is not None and len(answer.rows) > asked.limit:
        raise CheckFailed("result", f"{len(answer.rows)} rows with LIMIT {asked.limit}")
    ordered(asked, answer)


def ordered(asked: Question, answer: Answer) -> None:
    """ORDER BY holds for the values that are shown."""
    if asked.order is None:
        return
    place, descending = asked.order
    values = [plain(row[place]) for row in answer.rows if row[place] not in (None, Unstable(answer.loss))]
    if values != sorted(values, reverse=descending):
        raise CheckFailed("result", f"not in the order that was asked for: {values}")


def spread(measure: Measure, value: Any) -> float:
    """A value as it is compared: deviations by their squares."""
    return float(value) ** 2 if measure.function == "stddev" else float(value)


def slack_of(measure: Measure, rows: int) -> float:
    """How far the grid's rounding can move a measure: half a step for each row, a step being at most 2^-12 of what a
    value can be; in a variance of two values, one and a half times as much of the squared width."""
    if measure.bounds is None:
        return 0.0
    width, size = float(measure.bounds.width), float(measure.bounds.magnitude)
    if measure.function == "sum":
        return rows * max(size, width) / 4096 + 1e-9 * rows * size
    return (width if measure.function == "avg" else width**2) / 4000 + 1e-9 * size

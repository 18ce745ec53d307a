"""What an answer says about itself, and how it is printed and read."""

from collections.abc import Iterator

import numpy as np
import pytest

import discreet as dc
from discreet.noise import Entropy
from discreet.session.session import Session

OTHERS = "Rows with other values of city than those declared are in no group."


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    rows = {
        "who": np.arange(2000),
        "city": np.array(["Oslo", "Bern", "Rome", "Bonn"] * 500),
        "tens": np.array([10.0, 20.0] * 1000),
        "cost": np.full(2000, 40.0),
    }
    with dc.connect(
        rows,
        unit="who",
        budget=dc.PureDP(10_000),
        table="visits",
        max_rows=1,
        bounds={"cost": (0, 100)},
        values={"city": ["Oslo", "Bern"], "tens": [10.0, 20.0]},
        public={"towns": {"city": ["Oslo", "Bern", "Rome", "Bonn"], "land": ["N", "CH", "I", "D"]}},
    ) as opened:
        yield opened


def noted(session: Session, question: str) -> str:
    return "\n".join(session.sql(question, epsilon=100).notes)


def test_rows_in_no_group_are_noted_where_the_steward_listed_the_values(session: Session) -> None:
    assert noted(session, "SELECT city, COUNT(*) AS n FROM visits GROUP BY city") == OTHERS
    assert noted(session, "SELECT c, COUNT(*) AS n FROM (SELECT city AS c FROM visits) GROUP BY c") == OTHERS.replace(
        "city", "c"
    )
    both = noted(session, "SELECT city, tens, COUNT(*) AS n FROM visits GROUP BY city, tens")
    assert both == OTHERS.replace("city", "city, tens")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT land, COUNT(*) AS n FROM visits JOIN towns USING (city) GROUP BY land",
        "SELECT city, COUNT(*) AS n FROM visits WHERE city IN ('Oslo') GROUP BY city",
        "SELECT CASE WHEN city IN ('Oslo') THEN city ELSE 'other' END AS c, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT cost > 9 AS much, COUNT(*) AS n FROM visits GROUP BY 1",
    ],
)
def test_nothing_is_noted_where_every_row_that_is_meant_has_a_group(session: Session, question: str) -> None:
    assert noted(session, question) == ""


def test_computed_columns_are_said_to_have_no_interval(session: Session) -> None:
    question = "SELECT COUNT(*) AS n, SUM(cost) / COUNT(*) AS mean, 2 * COUNT(*) AS twice FROM visits"
    answer = session.sql(question, epsilon=100)
    assert sorted(answer.intervals()) == ["n"]
    assert answer.notes == ("Computed from other columns, and so without intervals: mean, twice.",)


def test_what_could_be_anything_is_said_to_be_so(session: Session) -> None:
    question = "SELECT AVG(cost) AS mean, MEDIAN(cost) AS middle, COUNT(*) AS n FROM visits"
    assert noted(session, question) == ""
    # One draw, since few draws are so far off that they say something wrong.
    faint = session.sql(question, epsilon=1e-5, test_entropy=Entropy.for_tests(1)).notes[0]
    assert faint.startswith("Too noisy to say anything")
    assert faint.endswith("other: mean in 1 of 1 rows, middle in 1 of 1 rows.")


def test_print_shows_what_the_command_line_shows(session: Session) -> None:
    answer = session.sql("SELECT tens, city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY 1, 2", epsilon=100)
    head, first, *rest = str(answer).splitlines()
    assert head.split() == ["tens", "city", "n", "±", "95", "%", "mean", "±", "95", "%"] or "95 % interval" in head
    assert first.split()[:2] == ["10", "Oslo"]
    assert rest[3:] == ["(ε = 100), who-level", *answer.notes]
    assert len({len(line) for line in (head, first, *rest[:3])}) == 1


def test_of_many_rows_the_first_are_printed(session: Session) -> None:
    numbers = {"who": np.arange(500), "x": np.arange(500)}
    with dc.connect(numbers, unit="who", budget=dc.PureDP(10), table="t", bounds={"x": (0, 499)}) as many:
        shown = str(many.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", epsilon=1)).splitlines()
    assert shown[201] == "… and 300 more rows"


def test_an_answer_is_read_like_a_table(session: Session) -> None:
    answer = session.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=100)
    assert len(answer) == 2
    assert [city for city, _ in answer] == answer["city"] == ["Oslo", "Bern"]
    with pytest.raises(dc.InvalidArgument, match="one of"):
        answer["m"]


def test_intervals_hold_for_rows_that_were_chosen_for_their_noise() -> None:
    """Of a hundred groups alike, the largest is the one with the most noise."""
    rows = {"k": np.repeat(np.arange(100), 50)}
    with dc.connect(rows, unit=dc.Row(), budget=dc.PureDP(1000), table="t", values={"k": list(range(100))}) as alike:
        ask = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
        seeds = [Entropy.for_tests(seed) for seed in range(60)]
        best = [alike.sql(f"{ask} ORDER BY n DESC LIMIT 1", epsilon=1, test_entropy=seed) for seed in seeds]
        first = [alike.sql(f"{ask} ORDER BY k LIMIT 1", epsilon=1, test_entropy=seed) for seed in seeds]
    assert "Rows were chosen from 100 by noisy values" in best[0].notes[0]
    assert not any("chosen" in note for note in first[0].notes)
    missed = [not low <= 50 <= high for answer in best for low, high in answer.intervals(0.9)["n"]]
    # Of 60 intervals at 0.9 more than 25 miss with a chance below 1e-9.
    assert sum(missed) <= 25
    alone = [answer.spans.interval(0, place, 0.9) for answer in best for place in answer.places]
    assert sum(not low <= 50 <= high for low, high in alone) > 50
    wide, narrow = (answer.intervals(0.9)["n"][0] for answer in (best[0], first[0]))
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])

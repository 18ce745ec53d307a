"""Every engine gives the same totals for the whole corpus of questions, whatever the rows hold; what one of them cannot
do is refused by name before anything is charged.

Totals are whole numbers, so they are equal or not. DuckDB's own are compared with plain Python elsewhere
(`tests/sql/test_random_queries.py`), and here too, for all engines, at several norms.
"""

import datetime
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.contract import CORPORA, DUCKDB, PLACES, Corpus, Place, statement_for, totals
from tests.sql.examination import Examination
from tests.sql.generator import question
from tests.sql.worlds import ODD_INTEGERS, ODD_REALS, ODD_TEXTS, World

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import DiscreetError, InvalidArgument, Unsupported
from discreet.engines.engine import Engine
from discreet.session.sql import SQL
from discreet.sql.catalog import Catalog, Column, Table

OTHERS = [place for place in PLACES if place is not DUCKDB]
WORLDS = [(place, seed) for place in OTHERS for seed in place.worlds]
EARLY, LATE = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)


def named(value: Any) -> str:
    return getattr(value, "name", str(value))


@pytest.mark.parametrize("corpus", CORPORA, ids=named)
@pytest.mark.parametrize("place", OTHERS, ids=named)
def test_the_corpus_has_the_same_totals_on_every_engine(place: Place, corpus: Corpus) -> None:
    planned = corpus.planned()
    assert len(planned) > 0.7 * len(corpus.questions)
    refused = 0
    with (
        DUCKDB.engine("", corpus.catalog, corpus.rows) as own,
        place.engine(f"corpus_{corpus.name}", corpus.catalog, corpus.rows) as there,
    ):
        for text, asked in planned[:: place.step]:
            refusal = refused_by(there, asked)
            if refusal is None:
                assert totals(there, asked) == totals(own, asked), text
            else:
                assert refusal.startswith(place.refusals), text
                refused += 1
    assert refused < 0.1 * len(planned)


def refused_by(engine: Engine, asked: Any) -> str | None:
    """How the engine's dialect refuses a question, if it does."""
    try:
        statement_for(engine, asked)
    except Unsupported as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize(("place", "seed"), WORLDS, ids=named)
def test_random_questions_have_the_same_totals_and_are_bounded_as_they_should(place: Place, seed: int) -> None:
    examination = Examination(seed, neighbours=0)
    world, own = examination.world, examination.session
    compared = 0
    with closing(own), place.session(world, world.data, f"world_{seed}") as there:
        examination.session = there
        for number in range(place.questions):
            words = question(world, number)
            planned, remote = (asked(session, words.text, words.epsilon) for session in (own, there))
            assert (planned is None) == (remote is None), words.text
            if planned is None:
                continue
            assert planned.words == remote.words
            assert planned.measurement == remote.measurement
            assert totals(own._engine, planned) == totals(there._engine, remote), words.text
            examination.question(number, "totals")
            compared += 1
    world.close()
    assert compared > place.questions / 2


def asked(session: Any, text: str, epsilon: Any) -> Any:
    """The plan, or None where the question is refused."""
    try:
        return SQL(text, epsilon).bind(session._context).plan().decided
    except DiscreetError:
        return None


def test_the_worlds_are_of_every_kind() -> None:
    worlds = [World(seed) for seed in {seed for _, seed in WORLDS}]
    assert {w.by_row for w in worlds} == {w.tame for w in worlds} == {w.pure for w in worlds} == {True, False}
    assert {w.unit_kind for w in worlds} == {"integer", "text", "real"}


ANY = Table(
    "anything",
    (
        Column("who", "text"),
        Column("n", "integer", Bounds(-5, 100)),
        Column("x", "real", Bounds(0, 50)),
        Column("s", "text", values=Categories(("", "a", "é", "日本語"))),
        Column("d", "date"),
        Column("t", "timestamp"),
        Column("b", "boolean"),
    ),
    unit="who",
)
ASKED = Corpus(
    "anything",
    Catalog((ANY,)),
    {},
    (
        "SELECT COUNT(*), COUNT(x), SUM(x), AVG(n), MAX(x), COUNT(DISTINCT who) FROM anything",
        "SELECT s, COUNT(*), SUM(n), AVG(x), STDDEV(x) FROM anything GROUP BY s",
        "SELECT UPPER(s), LENGTH(s), COUNT(*), MEDIAN(x) FROM anything WHERE NOT b GROUP BY 1, 2",
        "SELECT b, MODE(s), MODE(d), MODE(t), MODE(n), MODE(x), IQR(x), TRIMMED_MEAN(x, 0.1) FROM anything GROUP BY b",
        "SELECT YEAR(t), date_trunc('month', d), COUNT(*) FROM anything GROUP BY 1, 2",
        "SELECT DAYOFWEEK(t), QUARTER(d), HOUR(t), SUM(CLAMP(x * n, -9, 9)) FROM anything GROUP BY 1, 2, 3",
        "SELECT x < 1e10, COUNT(*), SUM(CLAMP(n + 1, 0, 9)), SUM(CLAMP(n / x, 0, 1)) FROM anything GROUP BY 1",
        "SELECT CAST(x AS BIGINT) % 7, COUNT(*) FROM anything WHERE TRY_CAST(s AS BIGINT) IS NULL GROUP BY 1",
        "SELECT COUNT(*), AVG(CLAMP(m, 0, 5)) FROM (SELECT who, SUM(n) AS m, AVG(x) AS a, MIN(t) AS f FROM anything "
        "GROUP BY who) WHERE a IS NULL OR a < 1e300 OR f > '1969-07-20'",
    ),
)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
VALUES = {
    "who": TEXTS | st.sampled_from(["", "a", "A", "é", "e\u0301"]),
    "n": st.integers(-(2**63), 2**63 - 1) | st.sampled_from(ODD_INTEGERS) | st.integers(-9, 110),
    "x": st.floats() | st.sampled_from(ODD_REALS) | st.integers(-1, 60).map(float),
    "s": TEXTS | st.sampled_from((*ODD_TEXTS, "", "a", "é", "日本語")),
    "d": st.dates(EARLY.date(), LATE.date()) | st.dates(datetime.date(1960, 1, 1), datetime.date(1970, 1, 2)),
    "t": st.datetimes(EARLY, LATE) | st.datetimes(datetime.datetime(1960, 1, 1), datetime.datetime(1970, 1, 2)),
    "b": st.booleans(),
}
ROW = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


@pytest.mark.parametrize("place", OTHERS, ids=named)
def test_whatever_the_rows_hold(place: Place) -> None:
    planned = ASKED.planned()
    assert len(planned) == len(ASKED.questions)
    few = place.examples == 1

    @settings(max_examples=place.examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(ROW, min_size=60 if few else 0, max_size=80 if few else 12))
    def check(rows: list[dict[str, Any]]) -> None:
        data = {"anything": rows}
        with DUCKDB.engine("", ASKED.catalog, data) as own, place.engine("anything", ASKED.catalog, data) as there:
            for text, one in planned:
                assert totals(there, one) == totals(own, one), text

    check()


@pytest.fixture(params=PLACES, ids=named)
def world_session(request: pytest.FixtureRequest) -> Iterator[Any]:
    world = next(World(seed) for seed in range(100) if not World(seed).by_row and not World(seed).poor)
    with request.param.session(world, world.data, "answered") as session:
        yield session


def test_a_question_is_charged_answered_and_free_the_second_time(world_session: Any) -> None:
    text = "SELECT city, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY city"
    quote = world_session.price(text, epsilon=2)
    answer = world_session.sql(text, epsilon=2)
    assert answer.loss == quote.loss
    assert world_session.sql(text, epsilon=2).rows == answer.rows
    assert world_session.spent == quote.loss


@pytest.mark.parametrize("place", PLACES, ids=named)
def test_rows_of_nobody_are_left_out_and_the_plan_says_so(place: Place) -> None:
    rows = [dict.fromkeys(VALUES) | {"who": who, "n": 1} for who in ("a", "a", None, None, None, "b")]
    (_, asked), *_ = Corpus("nobody", ASKED.catalog, {}, ("SELECT COUNT(*) FROM anything",)).planned()
    assert "rows whose who is NULL are nobody's and left out" in asked.words
    with place.engine("nobody", ASKED.catalog, {"anything": rows}) as engine:
        assert sum(row[4] for row in totals(engine, asked) if row[0] == 0) == 3


@pytest.mark.parametrize("place", PLACES, ids=named)
def test_a_table_without_the_unit_column_names_those_it_has(place: Place) -> None:
    table = Table("anything", (Column("whom", "text"), Column("n", "integer")))
    source = place.made("unitless", "anything", {c.name: c.type for c in table.columns}, [{"whom": "a", "n": 1}])
    with closing(place.opened()) as engine, pytest.raises(InvalidArgument, match="whom"):
        registered(engine, source, table)


def registered(engine: Any, source: Any, table: Table) -> Table:
    """A table with its unit, as `connect` makes it."""
    engine.add(table.name, source, unit="who")
    return replace(table, columns=engine.columns(table.name), unit="who")

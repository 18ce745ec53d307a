"""From SQL to plans: the fixtures, and what they cannot show."""

import random
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from tests.sql.execution import answer
from tests.sql.fixtures import Case, cases
from tests.sql.summary import summary
from tests.sql.tables import CATALOG, data, load

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import DiscreetError, InvalidArgument, Unsupported
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.functions.ranges import Interval
from discreet.sql.functions.registry import interval
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Filter, Join, Named, Project, Ref

PLANS = cases("plans.txt")
REFUSALS = cases("refusals.txt")


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case.title)
def test_a_question_becomes_this_plan(case: Case) -> None:
    assert summary(parse(case.sql, CATALOG)) == case.expected


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.title)
def test_a_question_is_refused_with_the_reason_and_a_remedy(case: Case) -> None:
    with pytest.raises(DiscreetError) as caught:
        parse(case.sql, CATALOG)
    assert str(caught.value) == case.expected
    assert isinstance(caught.value, Unsupported | InvalidArgument)


def test_refusals_say_what_why_and_what_instead() -> None:
    with pytest.raises(Unsupported) as caught:
        parse("SELECT RANDOM() FROM visits", CATALOG)
    assert caught.value.construct == "RANDOM()"
    assert caught.value.reason == "its value does not follow from the row"
    assert caught.value.remedy == "write a literal"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC, city LIMIT 3",
        "SELECT city, COUNT(*) FROM visits WHERE city IS NOT NULL GROUP BY 1 ORDER BY city DESC LIMIT 2",
        "SELECT FLOOR(age / 10) AS decade, AVG(cost) FROM visits GROUP BY decade ORDER BY 1",
        "SELECT city AS c, SUM(cost) FROM visits GROUP BY c ORDER BY -COUNT(*), UPPER(c)",
        "SELECT * FROM (SELECT city AS a, COUNT(*) AS b FROM visits GROUP BY city) ORDER BY b, a LIMIT 2",
        "WITH a AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 2, 1) SELECT city FROM a LIMIT 1",
        "SELECT t.region r, COUNT(*) FROM visits JOIN towns t USING (city) GROUP BY t.region ORDER BY r NULLS LAST",
    ],
)
def test_order_and_limit_are_those_of_the_engine(sql: str) -> None:
    rows = data(random.Random(3))
    found, wanted = answer(parse(sql, CATALOG), rows), load(rows).execute(sql).fetchall()
    assert [[pytest.approx(value) for value in row] for row in wanted] == [list(row) for row in found]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city, urgent, COUNT(*) AS n FROM visits GROUP BY ALL",
        "SELECT COUNT(*) FROM visits, drugs WHERE visits.patient = drugs.patient AND dose < age",
        "SELECT COUNT(*), SUM(age) FROM drugs d RIGHT JOIN visits v ON d.patient = v.patient AND d.dose > 3",
        "SELECT t.region, COUNT(*) FROM towns t RIGHT JOIN visits USING (city) GROUP BY 1",
        "SELECT COUNT(*) FROM visits SEMI JOIN drugs ON visits.patient = drugs.patient AND drug = 'a'",
        "SELECT COUNT(*) FROM visits ANTI JOIN drugs USING (patient)",
        "SELECT COUNT(*) FROM visits WHERE patient NOT IN (SELECT patient FROM drugs WHERE dose > 5)",
        "SELECT COUNT(*) FROM (SELECT patient, age % 3 AS x FROM visits UNION SELECT patient, 1 FROM drugs)",
        "SELECT COUNT(*) FROM (SELECT patient FROM visits UNION SELECT patient FROM drugs UNION ALL"
        " SELECT patient FROM drugs)",
        "SELECT AVG(k) FROM (SELECT patient, COUNT(DISTINCT city) AS k FROM visits GROUP BY patient)",
        "SELECT VAR_POP(age), STDDEV_POP(cost), SUM(cost) AS s, s / 2 AS half FROM visits",
        "SELECT DAYNAME(day) AS d, MONTHNAME(seen) AS m, COUNT(*) FROM visits GROUP BY 1, 2",
        "SELECT STRFTIME(seen, '%d.%m.%Y %H:%M:%S') AS t, COUNT(*) FROM visits GROUP BY t",
        "SELECT COUNT(*) FROM visits WHERE seen - CAST(day AS TIMESTAMP) > INTERVAL 300 DAY",
        "SELECT COUNT(*) FROM visits WHERE INTERVAL '400 days' >= seen - CAST(day AS TIMESTAMP)",
        "SELECT COUNT(*) FROM visits WHERE seen < day + INTERVAL 1 YEAR + INTERVAL '3 months' - INTERVAL 5 HOUR",
        "SELECT COUNT(*) FROM visits WHERE day >= DATE '2020-01-31' + INTERVAL 1 MONTH AND day < DATE '2021-03-01' - 7",
        "SELECT COUNT(*) FROM (SELECT * FROM (SELECT patient, dose FROM drugs) RIGHT JOIN (SELECT patient AS p, cost"
        " FROM visits) ON LOWER(CAST(patient AS VARCHAR)) = LOWER(CAST(p AS VARCHAR)) AND patient = p"
        " UNION ALL SELECT 1, 0.0, patient, cost FROM visits) AS u(a, b, c, d) WHERE d < 100",
        "SELECT day + 30 AS d, COUNT(*) FROM visits GROUP BY d",
        "SELECT SUM(DATE_DIFF('hour', day, seen)), SUM(DATE_DIFF('month', day, seen)) FROM visits",
        "SELECT SPLIT_PART(city, 'o', 2) AS p, AVG(cost)::DECIMAL(9, 1) AS a FROM visits GROUP BY p",
    ],
)
def test_questions_mean_what_the_engine_answers(sql: str) -> None:
    for seed in range(3):
        rows = data(random.Random(seed))
        found, wanted = answer(parse(sql, CATALOG), rows), load(rows).execute(sql).fetchall()
        near = [[float(v) if isinstance(v, Decimal) else v for v in row] for row in wanted]
        assert sorted(map(str, (rounded(row) for row in found))) == sorted(map(str, (rounded(row) for row in near)))


def rounded(row: Iterable[Any]) -> list[Any]:
    return [float(f"{value:.9g}") if isinstance(value, int | float) else value for value in row]


def test_comments_and_semicolons_change_nothing() -> None:
    plain = parse("SELECT COUNT(*) FROM visits", CATALOG)
    assert parse("/* how many? */ SELECT COUNT(*) -- all\nFROM visits;", CATALOG) == plain


def test_declared_knowledge_follows_references_and_expressions_get_their_own() -> None:
    query = parse("SELECT c, SUM(x) FROM (SELECT city AS c, age AS x FROM visits) GROUP BY c", CATALOG)
    assert query.aggregate.keys[0].values == CATALOG.table("visits").column("city").values
    assert query.aggregate.measures[0].bounds == Bounds(0, 120)
    query = parse("SELECT c, SUM(x) FROM (SELECT TRIM(city) AS c, age + 0.5 AS x FROM visits) GROUP BY c", CATALOG)
    assert query.aggregate.keys[0].values == CATALOG.table("visits").column("city").values
    assert query.aggregate.measures[0].bounds == Bounds(Fraction(1, 2), Fraction(241, 2))


def test_declared_bounds_keep_what_stands_for_missing_values() -> None:
    table = Table("t", (Column("x", "real", Bounds(0, 10, missing=5)),))
    query = parse("SELECT SUM(y) FROM (SELECT x AS y FROM t)", Catalog((table,)))
    assert query.aggregate.measures[0].bounds == Bounds(0, 10, missing=5)


def test_a_column_of_declared_values_united_with_another_has_both() -> None:
    first = Table("a", (Column("u", "integer"), Column("k", "text", values=Categories(("x", "y")))), unit="u")
    second = Table("b", (Column("u", "integer"), Column("k", "text", values=Categories(("y", "z")))), unit="u")
    sql = "SELECT k, COUNT(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) GROUP BY k"
    assert parse(sql, Catalog((first, second))).aggregate.keys[0].values == Categories(("x", "y", "z"))


def test_an_alias_that_looks_like_a_column_of_ours_is_one_like_any_other() -> None:
    query = parse('SELECT COUNT(*) FROM (SELECT age AS "Discreet Unit" FROM visits) WHERE "discreet unit" > 3', CATALOG)
    below = query.aggregate.input
    assert isinstance(below, Filter)
    assert isinstance(below.input, Project)
    assert [column.name for column in below.input.columns] == ["Discreet Unit"]


def test_units_of_different_types_are_not_the_same_people() -> None:
    first = Table("a", (Column("u", "integer"),), unit="u")
    second = Table("b", (Column("u", "real"),), unit="u")
    with pytest.raises(Unsupported, match="rows of another"):
        parse("SELECT COUNT(*) FROM a JOIN b USING (u)", Catalog((first, second)))


def test_a_unit_column_that_was_computed_is_no_unit() -> None:
    sql = "SELECT COUNT(*) FROM visits JOIN (SELECT patient + 1 AS patient FROM drugs) AS d USING (patient)"
    with pytest.raises(Unsupported, match="rows of another"):
        parse(sql, CATALOG)


def test_after_a_left_join_only_the_left_unit_counts() -> None:
    sql = "SELECT COUNT(DISTINCT {}.patient) FROM visits v LEFT JOIN drugs d ON v.patient = d.patient"
    assert parse(sql.format("v"), CATALOG).aggregate.measures[0].function == "count_units"
    with pytest.raises(Unsupported):
        parse(sql.format("d"), CATALOG)


def test_private_rows_come_first_in_a_join_with_public_ones() -> None:
    query = parse("SELECT COUNT(*) FROM towns JOIN visits USING (city)", CATALOG)
    assert isinstance(query.aggregate.input, Join)
    assert query.aggregate.input.left != query.aggregate.input.right
    assert query.aggregate.input.on == (("city_1", "city"),)


def test_features_of_features() -> None:
    inner = "SELECT patient, city, COUNT(*) AS n FROM visits GROUP BY patient, city"
    outer = f"SELECT patient, MAX(n) AS most FROM ({inner}) GROUP BY patient"
    query = parse(f"SELECT AVG(most) FROM ({outer})", CATALOG)
    assert query.aggregate.measures[0].bounds == Bounds(1, 20)


def test_bounds_of_exact_features() -> None:
    aggregates = "SUM(age) AS a, AVG(age) AS b, VARIANCE(age) AS c, STDDEV(age) AS d, COUNT(age) AS e, MIN(cost) AS f"
    inner = f"SELECT patient, {aggregates} FROM visits GROUP BY 1"
    sql = f"SELECT SUM(a), SUM(b), SUM(c), SUM(d), SUM(e), SUM(f) FROM ({inner})"
    bounds = [measure.bounds for measure in parse(sql, CATALOG).aggregate.measures]
    assert bounds[:3] == [Bounds(0, 2400), Bounds(0, 120), Bounds(0, 7200)]
    assert bounds[3] is not None
    assert 84.85 < bounds[3].upper < 84.86
    assert bounds[4:] == [Bounds(0, 20), Bounds(0, 500)]


def test_bounds_of_the_plan_are_those_of_its_expressions() -> None:
    query = parse("SELECT SUM(LN(age + 1) * POWER(cost, 2)) FROM visits", CATALOG)
    (measure,) = query.aggregate.measures
    known = {column.name: column.bounds for column in CATALOG.table("visits").columns}
    assert measure.argument is not None
    reach = interval(measure.argument, {name: Interval.of(bounds) for name, bounds in known.items()})
    assert measure.bounds == reach.bounds()
    assert reach.upper > 1_190_000


def test_outputs_with_one_label_are_numbered() -> None:
    query = parse("SELECT COUNT(*) AS n, COUNT(age) AS N, COUNT(*) FROM visits", CATALOG)
    assert [output.name for output in query.outputs] == ["n", "N_1", "count(*)"]
    assert len(query.aggregate.measures) == 2


def test_an_output_that_is_a_key_says_what_is_known_of_it() -> None:
    query = parse("SELECT city AS c FROM visits GROUP BY city", CATALOG)
    key = query.aggregate.keys[0]
    assert query.outputs == (Named("c", Ref("city", "text"), None, key.values),)


def test_only_text_is_parsed() -> None:
    with pytest.raises(InvalidArgument):
        parse(b"SELECT 1", CATALOG)

"""The canonical text: the same for the same question, another for another."""

import json

import pytest
from tests.sql.fixtures import cases
from tests.sql.tables import CATALOG

from discreet.core.domains import Bounds
from discreet.sql.canonical import canonical
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.parse import parse

SAME = [
    (
        "SELECT city, COUNT(*) AS n FROM visits WHERE age > 3 GROUP BY city",
        "select CITY , count( * ) N\n from Visits as v where ( v.AGE > 3 ) group by 1 -- the same",
        "SELECT c AS city, COUNT(1) AS n FROM (SELECT city AS c, age AS a FROM visits) WHERE a > 3 GROUP BY c",
        "WITH x(p, q) AS (SELECT age, city FROM visits) SELECT q AS City, COUNT(*) AS n FROM x WHERE p > 3 GROUP BY q",
    ),
    (
        "SELECT SUM(b.dose) AS s FROM visits a JOIN drugs b ON a.patient = b.patient",
        "SELECT SUM(dose) AS s FROM visits JOIN drugs USING (patient)",
        "SELECT SUM(x) AS s FROM visits AS t JOIN (SELECT patient AS w, dose AS x FROM drugs) AS u ON u.w = t.patient",
    ),
    (
        "SELECT AVG(n) AS a FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)",
        "WITH f AS (SELECT COUNT(*) AS k, patient AS who FROM visits GROUP BY who) SELECT AVG(k) AS a FROM f",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 1 AND 2 AND city = 'Rome'",
        "SELECT COUNT(*) AS n FROM visits WHERE ((age BETWEEN 1 AND 2) AND (city = 'Rome'))",
    ),
]
DIFFERENT = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(*) AS m FROM visits",
    "SELECT COUNT(age) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM drugs",
    "SELECT COUNT(*) AS n FROM visits WHERE city = 'Rome'",
    "SELECT COUNT(*) AS n FROM visits WHERE city = 'rome'",
    "SELECT COUNT(*) AS n FROM visits WHERE age = 1",
    "SELECT COUNT(*) AS n FROM visits WHERE cost = 1",
    "SELECT COUNT(*) AS n FROM visits LIMIT 1",
    "SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 1",
    "SELECT COUNT(*) AS n FROM visits ORDER BY 1",
    "SELECT COUNT(*) AS n FROM visits ORDER BY 1 DESC",
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b USING (patient) WHERE a.age > 1",
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b USING (patient) WHERE b.age > 1",
    "SELECT QUANTILE(cost, 0.5) AS n FROM visits",
    "SELECT QUANTILE(cost, 0.4) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(cost AS VARCHAR) = CAST(age AS VARCHAR)",
    "SELECT SUM(x) AS n FROM (SELECT age AS x, cost AS y FROM visits UNION ALL SELECT cost, age FROM visits)",
    "SELECT SUM(y) AS n FROM (SELECT age AS x, cost AS y FROM visits UNION ALL SELECT cost, age FROM visits)",
]


@pytest.mark.parametrize("questions", SAME, ids=lambda questions: questions[0][:50])
def test_one_question_in_other_words_has_one_text(questions: tuple[str, ...]) -> None:
    assert len({canonical(parse(question, CATALOG)) for question in questions}) == 1


def test_different_questions_have_different_texts() -> None:
    assert len({canonical(parse(question, CATALOG)) for question in DIFFERENT}) == len(DIFFERENT)


def test_what_is_measured_is_the_same_whatever_is_done_to_it() -> None:
    questions = [
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
        "SELECT UPPER(city), 2 * COUNT(*) FROM visits GROUP BY city HAVING COUNT(*) > 3 ORDER BY 1 LIMIT 9",
    ]
    queries = [parse(question, CATALOG) for question in questions]
    assert canonical(queries[0]) != canonical(queries[1])
    assert canonical(queries[0].aggregate) == canonical(queries[1].aggregate)


def test_other_bounds_are_another_question() -> None:
    tables = [Table("t", (Column("x", "real", Bounds(0, upper)),)) for upper in (1, 2)]
    texts = {canonical(parse("SELECT SUM(x) FROM t", Catalog((table,)))) for table in tables}
    assert len(texts) == 2


@pytest.mark.parametrize("case", cases("plans.txt"), ids=lambda case: case.title)
def test_the_text_is_json_and_steady(case: object) -> None:
    query = parse(case.sql, CATALOG)
    assert canonical(query) == canonical(parse(case.sql, CATALOG))
    assert set(json.loads(canonical(query))) == {"input", "keys", "measures", "outputs", "having", "order", "limit"}

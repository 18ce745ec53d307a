"""The canonical text: the same for the same question, another for another."""

import dataclasses
import datetime
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.sql.execution import aggregated
from tests.sql.fixtures import cases
from tests.sql.tables import CATALOG, VISITS, data

from discreet.core.domains import Bounds, Categories
from discreet.sql.analysis.canonical import canonical
from discreet.sql.catalog import Catalog, Column, Link, Table
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Aggregate, Call, Join, Literal, Measure, Named, Order, Query

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
    assert set(json.loads(canonical(query))) == {
        "input",
        "keys",
        "measures",
        "max_rows",
        "outputs",
        "having",
        "order",
        "limit",
    }


def another(name: str, value: Any) -> Any:
    """A value of the same kind that is not the same."""
    if value is None:
        return {"bounds": Bounds(0, 7), "values": Categories((7,)), "unit": "another"}.get(name, 7)
    if isinstance(value, bool):
        return not value
    if isinstance(value, datetime.date):
        return value + datetime.timedelta(days=1)
    if isinstance(value, Bounds):
        return Bounds(value.lower, value.upper + 1)
    if isinstance(value, Categories):
        return Categories((*value.values, "another"))
    return value + "x" if isinstance(value, str) else value + 1


MATTERS: dict[type, tuple[str, ...]] = {
    Literal: ("value", "type"),
    Call: ("function", "type"),
    Join: ("kind", "most"),
    Measure: ("function", "rank", "bounds", "values"),
    Aggregate: ("max_rows",),
    Table: ("name", "unit", "private"),
    Order: ("descending",),
    Query: ("limit",),
    Named: ("bounds", "values"),
}
"""What can be changed alone; of names that columns have on the way, none matters."""


def changed(node: Any, inside: type | None = None) -> Iterator[tuple[str, Any]]:
    """The plan with one thing in it changed, for every such thing."""
    if isinstance(node, tuple):
        for place, part in enumerate(node):
            for what, other in changed(part, inside):
                yield what, (*node[:place], other, *node[place + 1 :])
    elif dataclasses.is_dataclass(node):
        for field in dataclasses.fields(node):
            value = getattr(node, field.name)
            for what, other in changed(value, type(node)):
                yield what, altered(node, field.name, other)
            # What is known of a column on the way shows where it is used.
            if field.name in MATTERS.get(type(node), ()) and not (type(node) is Named and inside is not Aggregate):
                yield f"{type(node).__name__}.{field.name}", altered(node, field.name, another(field.name, value))


def altered(node: Any, name: str, other: Any) -> Any:
    """A copy that skips the checks of what fits together."""
    copy = object.__new__(type(node))
    for field in dataclasses.fields(node):
        object.__setattr__(copy, field.name, other if field.name == name else getattr(node, field.name))
    return copy


@pytest.mark.parametrize("case", cases("plans.txt"), ids=lambda case: case.title)
def test_a_plan_with_one_thing_changed_has_another_text(case: Any) -> None:
    query = parse(case.sql, CATALOG)
    texts = [(what, canonical(other)) for what, other in changed(query)]
    assert len(texts) > 3
    assert not [what for what, text in texts if text == canonical(query)]


SOURCES = (
    "visits",
    "visits AS v",
    "(SELECT * FROM visits)",
    "(SELECT age AS cost, cost AS age, city, patient FROM visits)",
    "(SELECT patient, city, age + 0 AS age, cost FROM visits)",
    "(SELECT patient, city, cost, age FROM visits WHERE age > 30)",
    "(SELECT * FROM visits) WHERE age > 30",
    "visits WHERE 30 < age",
    "visits JOIN drugs USING (patient)",
    "drugs JOIN visits USING (patient)",
    "(SELECT patient, city, MAX(age) AS age, MIN(cost) AS cost FROM visits GROUP BY 1, 2)",
    "(SELECT patient, city, MIN(age) AS age, MAX(cost) AS cost FROM visits GROUP BY 1, 2)",
)


def test_questions_with_one_text_have_one_answer() -> None:
    rng = random.Random(5)
    rows = data(rng)
    texts: dict[str, tuple[str, Any]] = {}
    shared = 0
    for _ in range(600):
        shown = rng.choice(("COUNT(*)", "SUM(age)", "SUM(cost)", "AVG(age) AS a", "AVG(cost)", "COUNT(age)"))
        key = rng.choice(("", "city", "UPPER(city)"))
        sql = f"SELECT {shown} FROM {rng.choice(SOURCES)}" + (f" GROUP BY {key}" if key else "")
        aggregate = parse(sql, CATALOG).aggregate
        found = [tuple(row.values()) for row in aggregated(aggregate, rows)]
        first, wanted = texts.setdefault(canonical(aggregate), (sql, found))
        shared += first != sql
        assert found == wanted, (first, sql)
    assert shared > 50
    assert len({repr(found) for _, found in texts.values()}) > len(texts) / 2


def test_what_a_table_is_belongs_to_the_text() -> None:
    columns = (Column("u", "integer"), Column("v", "integer"), Column("x", "real", Bounds(0, 1)))
    tables = [
        Table("t", columns, "u"),
        Table("t", columns, "v"),
        Table("t", columns),
        Table("t", columns, "u", max_rows=3),
        Table("t", (*columns[:2], Column("x", "integer", Bounds(0, 1))), "u"),
    ]
    texts = {canonical(parse("SELECT SUM(x) FROM t", Catalog((table,)))) for table in tables}
    assert len(texts) == len(tables)
    linked = [
        Table("l", columns, link=Link(column, "visits", key), max_matches=most)
        for column, key, most in (("u", "age", 2), ("v", "age", 2), ("u", "patient", 2), ("u", "age", 3))
    ]
    sql = "SELECT COUNT(*) FROM visits JOIN l ON l.{} = visits.{}"
    texts = {
        canonical(parse(sql.format(table.link.column, table.link.key), Catalog((VISITS, table)))) for table in linked
    }
    assert len(texts) == len(linked)

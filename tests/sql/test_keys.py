"""Keys whose values are listed without looking at data: none is missing, and the engine gives the very same values."""

import datetime
import random
from collections.abc import Iterable
from typing import Any

import pytest
from tests.soak import whole_or_share
from tests.sql.questions import Asker
from tests.sql.tables import CATALOG, data, load

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import DiscreetError
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.parsing.key_values import listed
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Named, Query, Relation
from discreet.sql.statement.naming import renamed, substituted
from discreet.sql.statement.selection import Selection, text_of

KEYS = [
    "city",
    "UPPER(LEFT(city, 2)) || '!'",
    "age",
    "age - age % 10",
    "FLOOR(age / 10) * 10",
    "ROUND(cost / 50) * 50",
    "ROUND(cost, 0)",
    "CAST(cost AS INTEGER)",
    "WIDTH_BUCKET(cost, 0, 500, 7)",
    "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END",
    "CASE WHEN cost < 18 THEN 0.1 WHEN urgent THEN 0.2 END",
    "CASE WHEN seen < '2021-06-01' THEN city ELSE COALESCE(UPPER(city), 'none') END",
    "urgent",
    "urgent AND cost > 100",
    "age IS NULL",
    "NULLIF(city, 'Rome')",
    "COALESCE(city, 'none')",
    "COALESCE(age, -1) // 25",
    "MONTH(day) * 10 + QUARTER(seen)",
    "DAYOFWEEK(day)",
    "HOUR(seen) // 6",
    "YEAR(day)",
    "YEAR(seen) * 100 + MONTH(seen)",
    "DATE_TRUNC('month', day)",
    "DATE_TRUNC('week', seen)",
    "CAST(seen AS DATE)",
    "DATE_TRUNC('hour', seen)",
    "CASE WHEN HOUR(seen) < 12 THEN CAST(seen AS DATE) END",
    "CAST(age AS VARCHAR) || city",
    "LENGTH(city) + SIGN(cost - 30)",
    "LEAST(age, 40)",
]
WHERES = [
    "",
    "WHERE age >= 65",
    "WHERE city IN ('Oslo', 'Lima') AND age BETWEEN 20 AND 60.5",
    "WHERE day BETWEEN '2020-03-10' AND '2020-06-20'",
    "WHERE day >= '2020-11-30' AND day < '2021-01-01' AND HOUR(seen) BETWEEN 8 AND 18",
    "WHERE YEAR(seen) = 2021 AND YEAR(day) IN (2020, 2021)",
    "WHERE seen > '2021-03-05 22:10:07.5' AND '2021-03-29 01:00' >= seen",
    "WHERE CAST(seen AS DATE) <= '2021-12-24' AND seen >= '2021-12-01' AND city = 'Rome'",
    "WHERE city <> 'Rome' AND cost / 2 < 100 AND urgent",
]
SOURCES = [
    "visits {where}",
    "(SELECT * FROM visits {where})",
    "(SELECT patient, city, age, cost, day, seen, urgent FROM visits {where} UNION ALL SELECT patient, drug, 3, dose,"
    " DATE '2020-03-01', TIMESTAMP '2021-03-01 10:00:00', dose > 3 FROM drugs WHERE drug = 'a')",
    "visits JOIN drugs USING (patient) {where}",
    "drugs d LEFT JOIN (SELECT * FROM visits {where}) v ON d.patient = v.patient",
    "(SELECT DISTINCT patient, city, age, cost, day, seen, urgent FROM visits {where})",
]


def values_of(sql: str, catalog: Catalog = CATALOG) -> tuple[Any, ...] | None:
    values = parse(sql, catalog).aggregate.keys[0].values
    return None if values is None else values.values


def missing(query: Query, connection: Any) -> set[Any]:
    """Keys that rows have and the lists have not; NULL need not be listed."""
    return unlisted(query.aggregate.input, query.aggregate.keys, connection)


def unlisted(relation: Relation, keys: Iterable[Named], connection: Any) -> set[Any]:
    below, names = renamed(relation)
    listed = [(key.expression, key.values.values) for key in keys if key.values is not None]
    lists = {text_of(substituted(expression, names)): set(values) for expression, values in listed}
    if not lists:
        return set()
    rows = connection.execute(f"SELECT {', '.join(lists)} FROM ({Selection().select(below)})").fetchall()
    columns = zip(lists.values(), zip(*rows, strict=True), strict=False)
    return {value for values, column in columns for value in column if value is not None and value not in values}


@pytest.mark.parametrize("source", SOURCES)
def test_every_key_of_rows_within_the_declared_is_listed(source: str) -> None:
    rng = random.Random(source)
    connection = load(data(rng))
    shown, places = ", ".join(KEYS), ", ".join(str(place + 1) for place in range(len(KEYS)))
    lists = 0
    for where in WHERES:
        query = parse(f"SELECT {shown}, COUNT(*) FROM {source.format(where=where)} GROUP BY {places}", CATALOG)
        # All at once they have too many combinations: each is listed as if it were asked for alone.
        relation = query.aggregate.input
        keys = [listed(relation, (key,))[0] for key in query.aggregate.keys]
        lists += sum(key.values is not None for key in keys)
        assert not unlisted(relation, keys, connection), where
    assert lists > len(KEYS) * len(WHERES) / 2


def test_the_keys_of_random_questions_are_listed_or_not_at_all() -> None:
    rng = random.Random(11)
    connection = load(data(rng))
    lists = 0
    for _ in range(whole_or_share(300, 100)):
        try:
            query = parse(Asker(rng).question(), CATALOG)
        except DiscreetError:
            continue
        lists += any(key.values is not None for key in query.aggregate.keys)
        assert not missing(query, connection)
    assert lists > 30


def test_declared_values_stay_as_they_are() -> None:
    assert values_of("SELECT city, COUNT(*) FROM visits GROUP BY city") == ("Oslo", "Rome", "Lima", "Cairo")


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("UPPER(city)", ("OSLO", "ROME", "LIMA", "CAIRO")),
        ("age // 50", (0, 1, 2)),
        ("CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' END", ("child", "adult", None)),
        ("CASE WHEN age < 18 THEN 'child' ELSE 'other' END", ("child", "other")),
        ("COALESCE(city, 'none')", ("Oslo", "Rome", "Lima", "Cairo", "none")),
        ("urgent", (True, False)),
        ("QUARTER(day)", (1, 2, 3, 4)),
        ("YEAR(day)", None),
        ("YEAR(day) - 2000", None),
        ("FLOOR(YEAR(day) / 10)", None),
        ("DATE_TRUNC('month', day)", None),
        ("DATE_DIFF('day', day, seen)", None),
        ("cost", None),
        ("SUBSTRING(CAST(cost AS VARCHAR), 1, 1)", None),
        ("LENGTH(CAST(patient AS VARCHAR))", None),
        ("patient % 3", (-2, -1, 0, 1, 2)),
    ],
)
def test_keys_that_follow_from_what_is_declared(key: str, wanted: tuple[Any, ...] | None) -> None:
    assert values_of(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY 1") == wanted


@pytest.mark.parametrize(
    ("key", "where", "wanted"),
    [
        ("city", "city IN ('Rome', 'Paris')", ("Rome", "Paris")),
        ("city", "city <> 'Rome' AND city <> 'Oslo'", ("Lima", "Cairo")),
        ("age", "age > 117", (118, 119, 120)),
        ("YEAR(day)", "YEAR(day) BETWEEN 2019 AND 2021", (2019, 2020, 2021)),
        ("MONTH(day)", "day >= '2020-11-15' AND day < '2021-02-01'", (1, 11, 12)),
        ("DATE_TRUNC('year', seen)", "YEAR(seen) = 2020", (datetime.datetime(2020, 1, 1),)),
        ("CAST(seen AS DATE)", "seen BETWEEN '2020-02-29 23:59' AND '2020-03-01'", (29, 1)),
        ("HOUR(seen)", "seen >= '2020-02-29 22:10' AND seen <= '2020-02-29 23:05'", (22, 23)),
        ("age", "age > 500", tuple(range(121))),
    ],
)
def test_conditions_narrow_the_list(key: str, where: str, wanted: tuple[Any, ...]) -> None:
    found = values_of(f"SELECT {key} AS k, COUNT(*) FROM visits WHERE {where} GROUP BY 1")
    days = key.startswith("CAST(seen")
    assert found is not None
    assert tuple(value.day for value in found) == wanted if days else found == wanted


def test_null_is_listed_only_where_the_steward_lists_it() -> None:
    table = Table("t", (Column("k", "text", values=Categories(("a", None))), Column("n", "integer", Bounds(0, 1))))
    known = Catalog((table,))
    assert values_of("SELECT k, COUNT(*) FROM t GROUP BY k", known) == ("a", None)
    assert values_of("SELECT UPPER(k) AS u, COUNT(*) FROM t GROUP BY u", known) == ("A", None)
    assert values_of("SELECT n + 1 AS m, COUNT(*) FROM t GROUP BY m", known) == (1, 2)


def test_how_many_rows_each_unit_has_is_a_key() -> None:
    inner = "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient"
    assert values_of(f"SELECT n, COUNT(*) FROM ({inner}) GROUP BY n") == tuple(range(1, 21))
    assert values_of(f"SELECT n, COUNT(*) FROM ({inner} HAVING COUNT(*) < 4) GROUP BY n") == (1, 2, 3)


def test_a_left_join_lists_null() -> None:
    sql = "SELECT v.city, COUNT(*) FROM drugs d LEFT JOIN visits v ON d.patient = v.patient GROUP BY 1"
    assert values_of(sql) == ("Oslo", "Rome", "Lima", "Cairo", None)


def test_long_lists_are_not_made() -> None:
    wide = Column("n", "integer", Bounds(0, 10_000))
    known = Catalog((Table("t", (wide, Column("m", "integer", Bounds(0, 200)))),))
    assert values_of("SELECT n, COUNT(*) FROM t GROUP BY n", known) is None
    assert len(values_of("SELECT n - n % 10 AS d, COUNT(*) FROM t GROUP BY d", known) or ()) == 1001
    query = parse("SELECT m, n // 100, COUNT(*) FROM t GROUP BY 1, 2", known)
    assert [key.values for key in query.aggregate.keys] == [None, None]


def test_expressions_that_grow_through_subqueries_are_not_followed() -> None:
    steps = ["s0 AS (SELECT age AS x FROM visits)"]
    steps += [f"s{i} AS (SELECT x * x + x AS x FROM s{i - 1})" for i in range(1, 30)]
    assert values_of(f"WITH {', '.join(steps)} SELECT x, COUNT(*) FROM s29 GROUP BY x") is None


def test_conditions_on_dates_and_texts_say_nothing_about_numbers_made_of_them() -> None:
    inner = "SELECT MONTH(day) AS x FROM visits WHERE day > DATE '1970-01-01' UNION ALL SELECT dose FROM drugs"
    assert values_of(f"SELECT x, COUNT(*) FROM ({inner}) AS u GROUP BY x") is None
    assert values_of("SELECT LENGTH(drug) AS n, COUNT(*) FROM drugs WHERE drug > 'a' GROUP BY n") is None
    months = values_of("SELECT MONTH(day) AS m, COUNT(*) FROM visits WHERE day > DATE '1970-01-01' GROUP BY m")
    assert months == tuple(range(1, 13))

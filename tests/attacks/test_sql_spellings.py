"""Values that an engine takes for equal are the same bytes in what is released, in whatever order rows come.

Of a group, engines show whichever key they met first: were two keys equal and yet spelled apart, as 0.0 and −0.0 are,
one person's row would decide which of them everybody sees, without noise.
"""

import datetime
import random
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from tests.attacks import statement_faults as faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import opened
from tests.engines.contract import DUCKDB, PLACES, POSTGRESQL, SPARK, Corpus, Place, statement_for

from discreet.engines.postgres.catalog import reading
from discreet.session.sql import SQL
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.decimals import Decimals
from discreet.sql.statement.histograms import Histograms
from discreet.sql.statement.results import Groups

REALS = (0.0, -0.0, 5e-324, -5e-324, 1e-320, -1e-320, float("nan"), float("inf"), 1.0)
OF_ONE = ("AVG(x)", "SUM(x)", "MEDIAN(x)", "QUANTILE(x, 0.3)", "VARIANCE(x)", "STDDEV(x)", "MIN(x)", "MAX(x)", "AVG(n)")
PER_PERSON = "SELECT who, {} AS a FROM t GROUP BY who"
AVERAGES = PER_PERSON.format("AVG(x)")
TABLE = Table(
    "t",
    (
        Column("who", "integer"),
        Column("x", "real"),
        Column("n", "integer"),
        Column("c", Decimals.of(10, 2)),
        Column("s", "text"),
        Column("d", "date"),
        Column("t", "timestamp"),
        Column("b", "boolean"),
    ),
    unit="who",
)
QUESTIONS = (
    *(f"SELECT a, COUNT(*) AS n FROM ({PER_PERSON.format(each)}) GROUP BY a" for each in OF_ONE),
    f"SELECT MODE(a) AS m FROM ({AVERAGES})",
    f"SELECT m, COUNT(*) AS n FROM (SELECT who, MAX(a) AS m FROM ({AVERAGES}) GROUP BY who) GROUP BY m",
    f"SELECT a * 1e-300 AS k, COUNT(*) AS n FROM ({PER_PERSON.format('SUM(x)')}) GROUP BY 1",
    "SELECT x AS k, COUNT(*) AS n, MODE(-x) AS m FROM t GROUP BY x",
    "SELECT v AS k, COUNT(*) AS n FROM (SELECT who, x AS v FROM t UNION ALL SELECT who, 0e0 AS v FROM t) GROUP BY v",
    "SELECT c AS k, c * 1.00 AS l, COUNT(*) AS n, MODE(c) AS m FROM t GROUP BY 1, 2",
    "SELECT s AS k, COUNT(*) AS n, MODE(LOWER(s)) AS m FROM t GROUP BY s",
    "SELECT d AS k, t AS l, b, COUNT(*) AS n, MODE(t) AS m FROM t GROUP BY d, t, b",
)
CORPUS = Corpus("spellings", Catalog((TABLE,)), {}, QUESTIONS)


def rows() -> list[dict[str, Any]]:
    """Two rows for each of 62 people, whose values have all spellings that can be told apart. Whoever comes first, or
    is the first or last by number, has an average of −0.0."""
    rng = random.Random(3)
    columns: dict[str, tuple[Any, ...]] = {
        "x": REALS,
        "n": (0, 1, -1),
        "c": (Decimal("0.00"), Decimal("-0.00"), Decimal("1.10"), Decimal("1.1")),
        "s": ("a", "A", "a ", " a", "", " ", "é", "e\u0301"),
        "d": (datetime.date(2020, 1, 1), datetime.date(1, 1, 1)),
        "t": (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 0, 1)),
        "b": (True, False),
    }
    odd = [
        {"who": who, "x": x} | {name: one[0] for name, one in columns.items() if name != "x"}
        for who in (-1, 60)
        for x in (-5e-324, 0.0)
    ]
    usual = [{"who": i // 2} | {name: rng.choice((*one, None)) for name, one in columns.items()} for i in range(120)]
    return [*odd[:2], *usual, *odd[2:]]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
@attack(8, 27, finds=[faults.aggregates_as_they_come], place=DUCKDB)
@attack(8, 27, finds=[faults.aggregates_as_they_come], place=POSTGRESQL)
def test_in_whatever_order_rows_come_every_byte_is_the_same(place: Place) -> None:
    planned = CORPUS.planned()
    assert len(planned) == len(QUESTIONS)
    given = rows()
    orders = [given, given[::-1], sorted(given, key=lambda row: repr(row["x"]), reverse=True)]
    seen: list[list[list[str]]] = []
    for number, order in enumerate(orders[:2] if place is SPARK else orders):
        with place.engine(f"spellings_{number}", CORPUS.catalog, {"t": order}) as engine:
            asked = planned[:: 3 if place is SPARK else 1]
            seen.append([sorted(map(repr, engine.run(statement_for(engine, one)))) for _, one in asked])
    for number, found in enumerate(seen[0]):
        assert all(found == other[number] for other in seen), planned[number]
        assert not any("-0.0" in row or "nan" in row for row in found)


@attack(8, finds=[faults.aggregates_as_they_come])
def test_the_sign_of_zero_says_nothing_of_anybody() -> None:
    who = [0, 0, *(i for i in range(1, 40) for _ in (0, 1))]
    shown = []
    for least in (-5e-324, 0.0):
        with opened({"who": who, "x": [least] + [0.0] * 79}, max_rows=2, types={"who": "integer", "x": "real"}) as one:
            text = "SELECT a, COUNT(*) AS n FROM (SELECT who, AVG(x) AS a FROM t GROUP BY who) GROUP BY a"
            statement = SQL(text, 1).bind(one._context).plan().decided.statement
            shown.append({repr(row[4]) for row in one._engine.run(statement) if row[4] is not None})
    assert shown[0] == shown[1] == {"0.0"}


@attack(8, finds=[faults.keys_as_they_are_shown])
def test_what_is_read_from_an_engine_has_one_spelling() -> None:
    found = [(0, 0, None, 3, -0.0, "a", 3), (4, 0, None, 3, -0.0, "a", 0, -0.0)]
    groups = Groups.read(found, 2, (), owned=False, ranked=1, valued=[0])
    assert {*map(repr, groups.keys)} == {"(0.0, 'a')"}
    values = Histograms.of_values(groups.cells[0], None, None)
    assert (repr(values.names), repr([*values.cells])) == ("(0.0,)", "[(0.0, 'a')]")
    assert Fraction(values.weights[(0.0, "a")].item()) == 3


@pytest.mark.parametrize("kind", ["text", "varchar", "bpchar", "enum", "uuid"])
def test_texts_of_a_server_are_compared_by_their_bytes_whatever_their_collation(kind: str) -> None:
    read = reading("s", kind, -1)
    assert read is not None
    assert read.sql.endswith('COLLATE "C"')


@pytest.mark.parametrize(("kind", "count"), [("text", 4), ("char(4)", 3), ("varchar(4)", 4)])
def test_texts_padded_with_spaces_have_one_spelling(kind: str, count: int) -> None:
    texts = ["a", "A", "a ", "á"]
    seen = []
    for number, order in enumerate((texts, texts[::-1])):
        source = POSTGRESQL.made("alike", f"t{number}", {"who": "int8", "s": kind}, people(order * 20))
        with closing(POSTGRESQL.opened()) as engine:
            engine.add("t", source, unit="who")
            engine.seal()
            [(_, asked)] = Corpus("alike", ALIKE, {}, ("SELECT s, COUNT(*) AS n FROM t GROUP BY s",)).planned()
            found = engine.run(statement_for(engine, asked))
            seen.append({repr(row[4]) for row in found if row[4] is not None})
    assert seen[0] == seen[1]
    assert len(seen[0]) == count


ALIKE = Catalog((Table("t", (Column("who", "integer"), Column("s", "text")), unit="who"),))


def people(texts: list[str]) -> list[dict[str, Any]]:
    return [{"who": i, "s": s} for i, s in enumerate(texts)]

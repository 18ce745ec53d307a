"""No two questions have one identity: what can be answered differently is paid for anew."""

from itertools import permutations
from typing import Any

import numpy as np
from tests.attacks.register import attack
from tests.attacks.sql_faults import joins_in_any_order

import discreet as dc
from discreet.session.session import Session

CITIES = {"city": ["X", "X"], "a": np.array([0, 100]), "b": np.array([5, 1])}


def public() -> Session:
    rows = {"who": np.arange(20), "city": np.array(["X"] * 20)}
    cities = CITIES | {"kind": ["p", "q"]}
    facts: dict[str, Any] = {"values": {"cities.kind": ["p", "q"]}, "bounds": {"cities.a": (0, 100)}}
    limits: dict[str, Any] = {"max_rows": 1, "max_matches": {"cities": 1}}
    return dc.connect(
        rows, unit=dc.User("who"), budget=dc.PureDP(99), table="visits", public={"cities": cities}, **facts, **limits
    )


def identities(session: Session, questions: list[str]) -> dict[str, set[Any]]:
    """Which exact totals each identity stands for."""
    found: dict[str, set[Any]] = {}
    for text in questions:
        bound = dc.SQL(text, 1).bind(session._context)
        statement = bound.plan().statement
        found.setdefault(bound.identity, set()).add(str(sorted(map(str, session._engine.run(statement)))))
    return found


SOURCES = [
    *(f"(SELECT {', '.join(order)} FROM cities)" for order in permutations(["city", "a", "b"])),
    *(f"(SELECT {', '.join(order)} FROM cities)" for order in permutations(["city", "a"])),
    "(SELECT city, b, a FROM (SELECT a, b, city FROM cities))",
    "(SELECT city, b AS a, a AS b FROM cities)",
    "(SELECT city, a + 1 AS c, a, b FROM cities)",
    "(SELECT city, b + 1 AS c, a, b FROM cities)",
    "(SELECT a, city, a + 1 AS c, b FROM cities)",
    "(SELECT b, a, city FROM cities WHERE a >= 0)",
    "(SELECT a, b, city FROM cities WHERE a >= 0)",
    "(SELECT u.city, u.b, u.a FROM cities u JOIN cities v ON u.city = v.city)",
    "(SELECT u.city, u.a, u.b FROM cities u JOIN cities v ON u.city = v.city)",
    "(SELECT city, b, a FROM cities UNION ALL SELECT city, b, a FROM cities)",
    "(SELECT city, a, b FROM cities UNION ALL SELECT city, a, b FROM cities)",
    "cities",
]


@attack(52, finds=[joins_in_any_order])
def test_the_order_of_columns_that_says_which_rows_are_kept_is_asked_for() -> None:
    """A join with a limit keeps the first rows of a value, sorted by all columns of its right side."""
    questions = [f"SELECT SUM(c.a) AS s FROM visits JOIN {source} c ON visits.city = c.city" for source in SOURCES]
    with public() as session:
        found = identities(session, questions)
        assert all(len(totals) == 1 for totals in found.values())
        assert len({*map(str, found.values())}) > 1
        session.sql(questions[0], epsilon=50)
        swapped = "SELECT SUM(c.a) AS s FROM visits JOIN (SELECT city, b, a FROM cities) c ON visits.city = c.city"
        assert not session.price(swapped, epsilon=50).stored
        assert session.sql(swapped, epsilon=40).rows[0][0] > 1000


def test_what_only_chooses_or_renames_columns_is_still_the_same_question() -> None:
    """Where the order is the one that the table has, or no limit cuts rows."""
    with public() as session:
        table, renamed = (
            f"SELECT SUM(c.{name}) AS s FROM visits JOIN {source} c ON visits.city = c.city"
            for name, source in (("a", "cities"), ("x", "(SELECT city, a AS x, b, kind FROM cities)"))
        )
        session.sql(table, epsilon=1)
        assert session.price(renamed, epsilon=1).stored

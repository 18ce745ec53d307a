"""What one person can make the engine do: counted in rows and characters, not in seconds.

DuckDB tells how many rows each of its operators made; a join that makes n rows with a key of k characters has compared
n · k of them.
"""

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.attacks import statement_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import exact, largest_cuts, opened

import discreet as dc
from discreet.core.errors import Unsupported
from discreet.session.sql import SQL
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.parsing.join_limits import MOST_ROWS
from discreet.sql.parsing.scope import MOST_GROWN
from discreet.sql.statement.widths import LEAST, MOST, widest

MATCHES = 400
FACTS: dict[str, Any] = {"max_matches": {"p": MATCHES}, "bounds": {"x": (0, 5)}}
WORDS = (("operator_type", "type"), ("operator_cardinality", "intermediate_rows"))
ONE = "SELECT COUNT(*) AS n FROM t JOIN p ON p.code = t.c WHERE t.who = 3"


def rows(key: str) -> dict[str, Any]:
    """Three people of whom the last has this key."""
    return {"who": np.array([1, 2, 3]), "c": ["a", "b", key], "x": np.ones(3)}


def public(key: str) -> dict[str, Any]:
    return {"code": [key] * MATCHES + ["a", "b"], "weight": np.arange(MATCHES + 2)}


def made(plan: Any) -> Iterator[tuple[str, int]]:
    """The operators of a plan, and how many rows each made; versions of DuckDB have different words for both."""
    if isinstance(plan, dict):
        operator, many = (plan.get(old, plan.get(new)) for old, new in WORDS)
        if operator is not None and many is not None:
            yield operator, many
    for part in plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ():
        yield from made(part)


def added(statement: str, key: str) -> int:
    """How many more characters of the key joins compare if the person is there."""
    people, codes = rows(key), public(key)
    others = {name: column[:-1] for name, column in people.items()}
    return (joined(statement, people, codes) - joined(statement, others, codes)) * len(key)


def joined(statement: str, people: dict[str, Any], codes: dict[str, Any]) -> int:
    """How many rows joins make."""
    connection = duckdb.connect(config={"threads": 1})
    for name, columns in (("people", people), ("codes", codes)):
        connection.register(name, pa.table(columns))
    connection.execute("CREATE TABLE t AS FROM people; CREATE TABLE p AS FROM codes")
    [(_, told)] = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}").fetchall()
    joins = [many for operator, many in made(json.loads(told)) if "JOIN" in operator]
    assert joins
    return sum(joins)


@attack(38, finds=[statement_faults.texts_of_any_length])
def test_one_person_does_not_make_the_engine_compare_without_measure() -> None:
    key = "k" * (widest(MATCHES) + 1)
    with opened(rows(key), public={"p": public(key)}, **FACTS) as session:
        statement = SQL(ONE, 1).bind(session._context).plan().decided.statement
    assert added(statement, key) <= MOST


@pytest.mark.parametrize("length", [1, 1_000])
def test_texts_that_are_not_too_long_are_joined_as_they_are(length: int) -> None:
    key = "k" * length
    with opened(rows(key), public={"p": public(key)}, **FACTS) as session:
        statement = SQL(ONE, 1).bind(session._context).plan().decided.statement
        assert sum(exact(session, ONE).groups.by_rows.values()) == 1
    assert MATCHES * length <= added(statement, key) <= MOST


def test_the_persons_own_texts_are_not_repeated_without_measure_either() -> None:
    long = {"who": np.array([1, 2]), "c": ["a", "a"], "note": ["n" * (widest(MATCHES) + 1), "short"]}
    text = "SELECT COUNT(note) AS n FROM t JOIN p ON p.code = t.c"
    with opened(long, public={"p": public("z")}, max_matches={"p": MATCHES}) as session:
        assert sum(exact(session, text).groups.by_rows.values()) == 2
        assert _counted(session, text) == 1
        assert _counted(session, text.replace("COUNT(note)", "COUNT(c)")) == 2
        assert _counted(session, "SELECT COUNT(note) AS n FROM t") == 2


def _counted(session: Any, text: str) -> int:
    """The rows in which the argument of COUNT is not NULL, as far as the largest limit lets them count."""
    found = exact(session, text)
    [index] = [i for i, s in enumerate(found.measurement.statistics) if s.kind == "present"]
    [total] = found.totals([()], largest_cuts(found.measurement))[index]
    return round(total / (G * H))


def test_a_join_that_repeats_nothing_changes_no_text() -> None:
    note = "n" * (MOST // 1_000)
    people = {"who": np.array([1, 2]), "c": ["a", "b"], "note": [note, note]}
    codes = {"code": ["a", "b"], "weight": np.array([1, 2])}
    with opened(people, public={"p": codes}) as session:
        assert _counted(session, "SELECT COUNT(note) AS n FROM t JOIN p ON p.code = t.c") == 2


def test_what_is_computed_of_texts_grows_the_less_the_more_rows_there_are() -> None:
    growing = "REPLACE(REPLACE(REPLACE(t.c, 'a', 'aaaa'), 'a', 'aaaa'), 'a', 'aaaa')"
    text = f"SELECT COUNT(*) AS n FROM t JOIN p ON p.code = t.c JOIN p AS q ON q.code = t.c WHERE {growing} = 'b'"
    for most, refused in ((10, False), (1_000, True)):
        with opened(rows("k"), dc.User("who"), public={"p": public("k")}, max_matches={"p": most}) as session:
            if not refused:
                SQL(text, 1).bind(session._context).plan()
                continue
            with pytest.raises(Unsupported, match="grow without measure"):
                SQL(text, 1).bind(session._context).plan()
    assert widest(MOST_ROWS) == LEAST
    assert MOST_GROWN == 10 * MOST_ROWS


@attack(38, finds=[statement_faults.joins_measured_one_at_a_time])
def test_what_is_joined_once_to_repeated_rows_is_repeated_too() -> None:
    """The analyst orders the joins: a text that comes after the join that repeats is limited like one before it."""
    people = {"who": np.array([1, 2]), "c": ["a", "a"]}
    bodies = ["b" * (widest(MATCHES) + 1), "b", "b", "b", "b"]
    tables = {"p": {"code": ["a"] * 5, "doc": np.arange(5)}, "docs": {"id": np.arange(5), "body": bodies}}
    text = "SELECT COUNT(body) AS n FROM t JOIN p ON p.code = t.c JOIN docs ON docs.id = p.doc"
    with opened(people, public=tables, max_matches={"p": MATCHES}) as session:
        assert _counted(session, text) == 8

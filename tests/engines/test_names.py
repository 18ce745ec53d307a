"""What a steward calls tables and columns changes nothing in what a statement returns, on any engine; and statements
that analysts wrote to be taken for ours run as any others."""

import random
from collections import Counter
from contextlib import closing
from dataclasses import fields, replace
from typing import Any

import pytest
from tests.engines.contract import BUDGET, DUCKDB, PLACES, POSTGRESQL, Place, totals
from tests.engines.test_contract import named
from tests.soak import SOAK, whole_or_share
from tests.sql.hostile import CODES, ODD, QUESTIONS, ROOM, VISITS, asked, catalog

import discreet as dc
from discreet.core.errors import InvalidArgument
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.catalog import Catalog, Column, Table, folded
from discreet.sql.statement.naming import ONCE, SUBQUERY, JoinNames, StatementNames

STEWARDS = ("visits", *VISITS, "codes", *CODES)
PLAIN = [f"name{number}" for number in range(ROOM)]
WORDS = [field.name for words in (StatementNames, JoinNames) for field in fields(words)]
OURS = (*WORDS, *(f"{word}_{place}" for word in WORDS for place in range(2)), SUBQUERY, ONCE)
WORLDS = {"duckdb": whole_or_share(40, 8), "postgres": whole_or_share(12, 1), "spark": whole_or_share(6, 1)}
ROWS = 60


def rows(stewards: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """The same rows under these names."""
    rng = random.Random(5)
    visits = [
        (rng.randrange(9), rng.choice("abcd"), rng.choice((0.5, 2.0, 1e300, None)), rng.random(), None)
        for _ in range(ROWS)
    ]
    codes = [(rng.choice("abc"), rng.randrange(9)) for _ in range(20)]
    table, *columns, other, code, weight = stewards
    return {
        table: [dict(zip(columns, row, strict=True)) for row in visits],
        other: [dict(zip((code, weight), row, strict=True)) for row in codes],
    }


def chosen(place: Place, seed: int) -> tuple[str, ...]:
    """Names of tables and columns that this engine has, different whatever the case."""
    rng = random.Random(seed)
    names: dict[str, str] = {}
    for name in rng.sample([*OURS, *map(str.upper, OURS), *ODD], len(OURS) * 2 + len(ODD)):
        fits = not folded(name).startswith("discreet ")
        fits = fits and (place is not POSTGRESQL or (len(name.encode()) < 64 and name != "ctid"))
        if fits and name.isprintable() and len(names) < len(STEWARDS):
            names.setdefault(folded(name), name)
    return tuple(names.values())


def answers(place: Place, schema: str, stewards: tuple[str, ...]) -> list[Counter[tuple[Any, ...]]]:
    known, found = catalog(stewards), []

    def made(schema: str, name: str, kinds: Any, held: Any) -> Any:
        return place.made(schema, "visits" if name == stewards[0] else "codes", kinds, held)

    with replace(place, made=made).engine(schema, known, rows(stewards)) as engine:
        unit = dc.User(stewards[1])
        with closing(Session(engine, known, unit, BUDGET, None, "names", ["names"], None, None)) as session:
            for question in QUESTIONS:
                found.append(
                    totals(engine, SQL(asked(question, PLAIN, stewards), 1).bind(session._context).plan().decided)
                )
    return found


@pytest.mark.parametrize("place", PLACES, ids=named)
def test_a_stewards_names_change_nothing_in_what_is_returned(place: Place) -> None:
    plain = answers(DUCKDB, "", STEWARDS)
    for seed in range(WORLDS[place.name]):
        hostile = chosen(place, seed)
        assert answers(place, f"names_{seed}", hostile) == plain, hostile
    if SOAK:  # other plain names are in all that is asked of engines elsewhere
        assert answers(place, "names_plain", STEWARDS) == plain


def test_products_of_columns_called_like_ours_do_not_overflow_for_one_person() -> None:
    """On PostgreSQL long parts of an expression are computed once, under a name."""
    question, known = QUESTIONS[5], catalog(STEWARDS)
    with (
        POSTGRESQL.engine("names_overflow", known, rows(STEWARDS)) as engine,
        closing(Session(engine, known, dc.User("who"), BUDGET, None, "names", ["names"], None, None)) as session,
    ):
        plain = totals(engine, SQL(asked(question, PLAIN), 1).bind(session._context).plan().decided)
        pairs = (("discreet a", "discreet b"), ("discreet b", "discreet a"), ("discreet v", "discreet rows"))
        for pair in pairs[: whole_or_share(3, 1)]:
            hostile = SQL(asked(question, [*pair, *PLAIN[2:]]), 1).bind(session._context).plan().decided
            assert totals(engine, hostile) == plain


@pytest.mark.parametrize("name", ["dıscreet unit", "diſcreet unit", "DİSCREET place", "discreet unit"])
def test_letters_that_an_engine_takes_for_ours_are_refused(name: str) -> None:
    columns = (Column("who", "integer"), Column(name, "integer"))
    with pytest.raises(InvalidArgument, match="rename it"):
        Catalog((Table("t", columns, "who"),))

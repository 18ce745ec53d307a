"""Operators bind as they do in the engine: random chains of them, without parentheses, mean the same to both."""

import math
import random
from typing import Any

import duckdb
import pytest
from tests.soak import whole_or_share
from tests.sql.reference import evaluate

from discreet.core.errors import DiscreetError
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.parsing.select import parse

ROW = {"a": 7, "b": -3, "c": 2, "x": 2.5, "y": -1.5, "p": True, "q": False, "n": None, "s": "ab", "t": "b"}
COLUMNS = (
    *(Column(name, "integer") for name in "abcn"),
    *(Column(name, "real") for name in "xy"),
    *(Column(name, "boolean") for name in "pq"),
    *(Column(name, "text") for name in "st"),
)
CATALOG = Catalog((Table("one", COLUMNS),))
OPERATORS = ["+", "-", "*", "/", "%", "^ 2 +", "**3 -", "||", "=", "<>", "<", ">", "<=", ">=", "AND", "OR", "!=", "=="]
SUFFIXES = ["IS NULL", "IS NOT NULL", "IN (1, 2)", "NOT IN (7)", "BETWEEN 1 AND 3", "LIKE 'a%'", "NOT LIKE 'b'"]


def chain(rng: random.Random) -> str:
    """Operands, some with a sign, a NOT, a cast or a test, with operators between them."""
    parts: list[str] = []
    for place in range(rng.randrange(2, 6)):
        parts += [rng.choice(OPERATORS)] if place else []
        parts += [rng.choice(["NOT", "-", "- -"])] if rng.random() < 0.3 else []
        cast = rng.choice(["::BIGINT", "::DOUBLE", "::VARCHAR"]) if rng.random() < 0.1 else ""
        parts.append(rng.choice([*ROW, "1", "2", "3e0"]) + cast)
        parts += [rng.choice(SUFFIXES)] if rng.random() < 0.25 else []
    return " ".join(parts)


@pytest.mark.parametrize("seed", range(3))
def test_chains_of_operators(seed: int) -> None:
    rng = random.Random(seed)
    connection = duckdb.connect(config={"threads": 1})
    numbers = "7::BIGINT AS a, -3::BIGINT AS b, 2::BIGINT AS c, 2.5::DOUBLE AS x, -1.5::DOUBLE AS y, NULL::BIGINT AS n"
    connection.execute(f"CREATE TABLE one AS SELECT {numbers}, TRUE AS p, FALSE AS q, 'ab' AS s, 'b' AS t")
    compared = 0
    for _ in range(whole_or_share(2_000, 400)):
        text = chain(rng)
        try:
            argument = parse(f"SELECT COUNT({text}) FROM one", CATALOG).aggregate.measures[0].argument
        except DiscreetError:
            continue
        if argument is not None:
            compared += agrees(connection, text, evaluate(argument, ROW))
    assert compared > whole_or_share(100, 20)


def agrees(connection: duckdb.DuckDBPyConnection, text: str, value: Any) -> bool:
    """Whether there was something to compare: where the engine fails on a value, ours is NULL on the way."""
    try:
        ((found,),) = connection.execute(f"SELECT {text} FROM one").fetchall()
    except (duckdb.ConversionException, duckdb.InvalidInputException):
        return False
    if isinstance(found, float) and isinstance(value, float):
        assert math.isclose(found, value, rel_tol=1e-12), text
    elif "q::" not in text:
        # FALSE cast to a number is 0, by which a quotient is NULL to us and ∞ to the engine.
        assert found == value, text
    return True

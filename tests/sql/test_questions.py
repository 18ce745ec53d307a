"""Random questions: what the plan means is what DuckDB answers, and every plan is well formed."""

import math
import random
from collections import Counter
from typing import Any

import duckdb
import pytest
from tests.soak import whole_or_share
from tests.sql.execution import answer, released_type, shape
from tests.sql.questions import Asker
from tests.sql.tables import CATALOG, data, load

from discreet.core.errors import DiscreetError
from discreet.sql.analysis.canonical import canonical
from discreet.sql.parsing.select import parse
from discreet.sql.plan import (
    Aggregate,
    Expression,
    Features,
    Filter,
    Join,
    Literal,
    Project,
    Query,
    Ref,
    Relation,
    Scan,
    Union,
)

QUESTIONS = 160
WRITTEN_ANEW = 4
"""One question in so many is read again with other spaces: what can go wrong there is in the words, which all share."""


@pytest.mark.parametrize("seed", range(whole_or_share(20, 2)))
def test_a_plan_means_what_the_engine_answers(seed: int) -> None:
    rng = random.Random(seed)
    rows = data(rng)
    connection, asker = load(rows), Asker(rng)
    answered = 0
    for _ in range(QUESTIONS):
        question = asker.question()
        try:
            query = parse(question, CATALOG)
        except DiscreetError:
            continue
        well_formed(query)
        if answered % WRITTEN_ANEW == 0:
            assert canonical(query) == canonical(parse(question.replace(" ", "\n "), CATALOG))
        assert comparable(answer(query, rows)) == comparable(raw(connection, question)), question
        answered += 1
    assert answered > QUESTIONS * 0.6


def raw(connection: duckdb.DuckDBPyConnection, question: str) -> list[tuple[Any, ...]]:
    return connection.execute(question).fetchall()


def comparable(answer: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows in any order, numbers to nine digits: sums are rounded in different orders."""
    return Counter(tuple(rounded(value) for value in row) for row in answer)


def rounded(value: Any) -> Any:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return float(f"{float(value):.9g}") if math.isfinite(value) else None
    return value


def well_formed(query: Query) -> None:
    """Every name is there with its type, joins have distinct columns, private rows meet only on units."""
    aggregate = query.aggregate
    check(aggregate.input)
    below = shape(aggregate.input)
    assert len({name.lower() for name in below}) == len(below)
    checked_groups(aggregate, below)
    released = {key.name: key.expression.type for key in aggregate.keys}
    released |= {measure.name: released_type(measure) for measure in aggregate.measures}
    assert len(released) == len(aggregate.keys) + len(aggregate.measures)
    for output in (*query.outputs, *query.order):
        check_expression(output.expression, released)
    if query.having is not None:
        check_expression(query.having, released)
        assert query.having.type == "boolean"


def check(node: Relation) -> None:
    match node:
        case Scan():
            pass
        case Filter(below, predicate):
            check(below)
            check_expression(predicate, shape(below))
            assert predicate.type == "boolean"
        case Project(below, columns):
            check(below)
            for column in columns:
                check_expression(column.expression, shape(below))
        case Features():
            check(node.input)
            checked_groups(node, shape(node.input))
        case Join(left, right, on):
            check(left)
            check(right)
            if node.kind in ("inner", "left"):
                assert not {name.lower() for name in shape(left)} & {name.lower() for name in shape(right)}
            assert on
            assert all(shape(left)[one] == shape(right)[other] for one, other in on)
            if is_private(left) and is_private(right):
                assert any(one.startswith(("patient", "who", "p")) for one, _ in on)
        case Union(inputs):
            for part in inputs:
                check(part)
                assert [*shape(part).values()] == [*shape(inputs[0]).values()]


def checked_groups(node: Aggregate | Features, below: dict[str, str]) -> None:
    for key in node.keys:
        check_expression(key.expression, below)
    for measure in node.measures:
        if measure.argument is not None:
            check_expression(measure.argument, below)


def is_private(node: Relation) -> bool:
    match node:
        case Scan(table):
            return table.private
        case Join(left, right, _, kind):
            return is_private(left) or (kind in ("inner", "left") and is_private(right))
        case Union(inputs):
            return any(is_private(part) for part in inputs)
        case _:
            return is_private(node.input)


def check_expression(expression: Expression, columns: dict[str, str]) -> None:
    if isinstance(expression, Ref):
        assert columns[expression.name] == expression.type
    elif not isinstance(expression, Literal):
        for argument in expression.arguments:
            check_expression(argument, columns)

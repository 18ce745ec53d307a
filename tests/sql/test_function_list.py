"""The functions that docs/sql.md lists: each is understood, and none that is understood is missing."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.core.domains import Bounds
from discreet.sql.aggregates import AGGREGATES
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.functions.registry import FUNCTIONS
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Call, Expression, Filter, Query

PAGE = (Path(__file__).parent.parent.parent / "docs" / "sql.md").read_text()
LISTED = PAGE.partition("What is understood, by example")[2].partition("\n## ")[0]
EXAMPLES = {
    kind: re.findall(r"`([^`]+)`", text)
    for kind, text in re.findall(r"^- (\w+): (.*?)(?=^- |\Z)", LISTED, re.DOTALL | re.MULTILINE)
}
COLUMNS = (
    Column("patient", "integer"),
    Column("i", "integer"),
    *(Column(name, "real", Bounds(0, 9)) for name in "xy"),
    *(Column(name, "text") for name in "st"),
    *(Column(name, "timestamp") for name in "de"),
)
CATALOG = Catalog((Table("visits", COLUMNS, "patient"),))


def parsed(kind: str, example: str) -> Query:
    if kind == "aggregates":
        return parse(f"SELECT {example} FROM visits", CATALOG)
    return parse(f"SELECT COUNT(*) FROM visits WHERE ({example}) IS NOT NULL", CATALOG)


def calls(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Call):
        yield expression.function
        for argument in expression.arguments:
            yield from calls(argument)


@pytest.mark.parametrize(("kind", "example"), [(kind, example) for kind, all in EXAMPLES.items() for example in all])
def test_every_example_is_understood(kind: str, example: str) -> None:
    assert parsed(kind, example)


def test_every_function_has_an_example() -> None:
    plans = [parsed(kind, example) for kind, all in EXAMPLES.items() for example in all if kind != "aggregates"]
    conditions = [plan.aggregate.input.predicate for plan in plans if isinstance(plan.aggregate.input, Filter)]
    used = {name for condition in conditions for name in calls(condition)}
    assert set(FUNCTIONS) - used == set()


def test_every_aggregate_has_an_example() -> None:
    plans = [parsed("aggregates", example) for example in EXAMPLES["aggregates"]]
    used = {measure.function for plan in plans for measure in plan.aggregate.measures}
    assert used == AGGREGATES.keys() - {"count_distinct"}

"""Plans run exactly, in plain Python, over lists of rows: what a query means before any noise.

Every row carries its owner, as the plan's contract says; the owner of a row-level table is the row itself.
"""

import math
import statistics
from collections.abc import Iterable
from typing import Any

from tests.sql.reference import evaluate, order
from tests.sql.tables import Data

from discreet.sql.plan import (
    Aggregate,
    Expression,
    Features,
    Filter,
    Join,
    Measure,
    Project,
    Query,
    Relation,
    Scan,
    Union,
)

Row = dict[str, Any]
Owned = tuple[Any, Row]
NOBODY = object()


def answer(query: Query, data: Data) -> list[tuple[Any, ...]]:
    """The exact answer, noise left out."""
    released = aggregated(query.aggregate, data)
    if query.having is not None:
        released = [row for row in released if evaluate(query.having, row) is True]
    for part in reversed(query.order):
        released.sort(key=lambda row, part=part: ordering(evaluate(part.expression, row), part.descending))
    released = released if query.limit is None else released[: query.limit]
    return [tuple(evaluate(output.expression, row) for output in query.outputs) for row in released]


def ordering(value: Any, descending: bool) -> Any:
    """NULLs last either way."""
    if value is None:
        return (1, 0)
    return (0, Reversed(order(value)) if descending else order(value))


class Reversed:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "Reversed") -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and self.value == other.value


def aggregated(node: Aggregate, data: Data) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Owned]] = {} if node.keys else {(): []}
    for owner, row in rows(node.input, data):
        groups.setdefault(tuple(evaluate(key.expression, row) for key in node.keys), []).append((owner, row))
    return [grouped(node, values, held) for values, held in groups.items()]


def grouped(node: Aggregate | Features, values: Iterable[Any], held: list[Owned]) -> Row:
    keys = dict(zip((key.name for key in node.keys), values, strict=True))
    return keys | {measure.name: statistic(measure, held) for measure in node.measures}


def statistic(measure: Measure, held: list[Owned]) -> Any:
    if measure.function == "count_units":
        return len({owner for owner, _ in held})
    if measure.argument is None:
        return len(held)
    found = [evaluate(measure.argument, row) for _, row in held]
    values = [value for value in found if value is not None]
    if measure.function == "count":
        return len(values)
    if measure.function == "count_distinct":
        return len({order(value) for value in values})
    if not values or (measure.function in ("variance", "stddev") and len(values) < 2):
        return None
    if measure.function == "quantile":
        return quantile(sorted(values), float(measure.rank or 0))
    if measure.function == "sum" and measure.argument.type == "real":
        return math.fsum(values)
    functions = {"sum": sum, "avg": statistics.fmean, "variance": statistics.variance, "stddev": statistics.stdev}
    return {**functions, "min": min, "max": max}[measure.function](values)


def quantile(values: list[float], rank: float) -> float:
    place = rank * (len(values) - 1)
    low, high = math.floor(place), math.ceil(place)
    return values[low] + (values[high] - values[low]) * (place - low)


def rows(node: Relation, data: Data) -> list[Owned]:
    match node:
        case Scan(table):
            owners = [
                row[table.unit] if table.unit else (table.name, place) for place, row in enumerate(data[table.name])
            ]
            held = owners if table.private else [NOBODY] * len(owners)
            return [(owner, row) for owner, row in zip(held, data[table.name], strict=True) if owner is not None]
        case Filter(below, predicate):
            return [(owner, row) for owner, row in rows(below, data) if evaluate(predicate, row) is True]
        case Project(below, columns):
            return [(owner, {c.name: evaluate(c.expression, row) for c in columns}) for owner, row in rows(below, data)]
        case Features():
            return features(node, data)
        case Join():
            return joined(node, data)
        case Union(inputs):
            names = list(shape(inputs[0]))
            return [
                (owner, dict(zip(names, row.values(), strict=True)))
                for part in inputs
                for owner, row in rows(part, data)
            ]


def features(node: Features, data: Data) -> list[Owned]:
    groups: dict[tuple[Any, ...], list[Owned]] = {}
    for owner, row in rows(node.input, data):
        groups.setdefault((owner, *(evaluate(key.expression, row) for key in node.keys)), []).append((owner, row))
    return [(owner, grouped(node, values, held)) for (owner, *values), held in groups.items()]


def joined(node: Join, data: Data) -> list[Owned]:
    left, right = rows(node.left, data), rows(node.right, data)
    found: list[Owned] = []
    for owner, row in left:
        partners = [pair for pair in right if meets(node, (owner, row), pair)]
        if node.kind in ("semi", "anti"):
            found += [(owner, row)] if bool(partners) == (node.kind == "semi") else []
            continue
        found += [(owner if owner is not NOBODY else other, row | partner) for other, partner in partners]
        if node.kind == "left" and not partners:
            found.append((owner, row | dict.fromkeys(shape(node.right))))
    return found


def meets(node: Join, left: Owned, right: Owned) -> bool:
    if NOBODY not in (left[0], right[0]) and left[0] != right[0]:
        return False
    pairs = [(left[1][one], right[1][other]) for one, other in node.on]
    return all(one is not None and other is not None and order(one) == order(other) for one, other in pairs)


def shape(node: Relation) -> dict[str, str]:
    """The names and types of a relation's columns."""
    match node:
        case Scan(table):
            return {column.name: column.type for column in table.columns}
        case Filter(below, _):
            return shape(below)
        case Project(_, columns):
            return {column.name: column.expression.type for column in columns}
        case Features(_, keys, measures):
            return {key.name: key.expression.type for key in keys} | {m.name: released_type(m) for m in measures}
        case Join(left, right, _, kind):
            return shape(left) if kind in ("semi", "anti") else shape(left) | shape(right)
        case Union(inputs):
            return shape(inputs[0])


def released_type(measure: Measure) -> str:
    if measure.function in ("count", "count_units", "count_distinct"):
        return "integer"
    argument: Expression | None = measure.argument
    return argument.type if measure.function in ("sum", "min", "max") and argument is not None else "real"

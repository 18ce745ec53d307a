"""The values a key can have, listed without looking at data.

A column with declared values can have those; a whole number with bounds those between them; a condition true and false;
a part of a date its own range (years aside); a CASE what its branches give. Conditions in WHERE narrow the list: a day
between two dates is one of finitely many. Whatever is computed from such pieces is computed here on every combination
of their values, by the engine's own functions.

Nobody has paid yet, so what listing takes is bounded: every part of a question is listed once, what is computed is no
larger than an expression that somebody may write, and all lists of a question are computed on at most `MOST_COMPUTED`
combinations (`Lists`).

Rows whose key is not listed are left out of the answer. NULL is listed if the steward lists it, if the expression gives
it for a listed value (a CASE without ELSE), or if a LEFT JOIN does.

>>> from discreet.core.domains import Bounds
>>> from discreet.sql.catalog import Catalog, Column, Table
>>> from discreet.sql.parsing.select import parse
>>> known = Catalog((Table("people", (Column("age", "integer", Bounds(0, 30)),)),))
>>> parse("SELECT FLOOR(age / 10) AS decade, COUNT(*) FROM people GROUP BY 1", known).aggregate.keys[0].values.values
(0.0, 1.0, 2.0, 3.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, product
from typing import Any

from discreet.core.domains import Categories
from discreet.core.errors import Unsupported
from discreet.sql.analysis.lineage import Origins
from discreet.sql.analysis.predicates import Conditions, branches, is_over, steps
from discreet.sql.functions.ranges import EVERYTHING, LONGS, Interval
from discreet.sql.functions.registry import FUNCTIONS, interval, weight
from discreet.sql.parsing.expressions import HEAVIEST
from discreet.sql.plan import Call, Expression, Literal, Named, Ref, Relation
from discreet.sql.relations import names_in
from discreet.sql.statement.constants import computed

__all__ = ["MOST", "MOST_COMPUTED", "Lists", "listed", "listing"]

MOST = 10_000
"""The longest list of one key, and of all keys' combinations where one was not declared as it is."""
MOST_COMBINATIONS = 100_000
MOST_COMPUTED = 500_000
"""Combinations on which something is computed for one question: about five seconds."""
ROUNDINGS = {"floor", "ceil", "round", "trunc"}
OPEN = {"year", "days", "date_diff"}
"""Parts of dates that nothing bounds in earnest."""

Values = tuple[Any, ...]
Atoms = dict[Expression, Values]
"""Parts of an expression, each with all values it can have."""


@lru_cache(maxsize=512)
def listed(relation: Relation, keys: tuple[Named, ...]) -> tuple[Named, ...]:
    """The keys with their values, if all of them can be listed; else those that are declared as they are."""
    found, lists = [], Lists()
    for key in keys:
        values = lists.listing(relation, key.expression)
        if values is None:
            return keys
        found.append(replace(key, values=Categories(values)))
    many = math.prod(len(key.values) for key in found if key.values is not None)
    if any(key.values is None for key in keys):
        # Columns of one public table hold few of all combinations of their values.
        tables = [table for key in keys for table in _tables(relation, key.expression, lists)]
        return keys if many > MOST or len({*tables}) < len(tables) else tuple(found)
    if many > MOST_COMBINATIONS:
        remedy = "group by fewer columns, or by coarser ones"
        raise Unsupported("this question", f"it has {many:,} groups, more than {MOST_COMBINATIONS:,}", remedy)
    return tuple(found)


def _tables(relation: Relation, expression: Expression, lists: Lists) -> set[tuple[str, ...]]:
    """The public tables in which the values of a key were found."""
    origins = Origins(relation, lists.listing)
    used = names_in(origins.lowered(expression))
    return {source.table for name, source in origins.sources.items() if name in used and source.table is not None}


def listing(relation: Relation, expression: Expression) -> Values | None:
    """The values of an expression over a relation: texts in the order of what they come from, others sorted."""
    return Lists().listing(relation, expression)


class Lists:
    """The lists of one question: each is made once, and what all of them take is counted."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Expression], tuple[Relation, Values | None]] = {}
        self._computed = 0

    def listing(self, relation: Relation, expression: Expression) -> Values | None:
        """The values of an expression, as the function says."""
        place = id(relation), expression
        if place not in self._known:
            # With the relation, so that no other one can have its number meanwhile.
            self._known[place] = relation, self._found(relation, expression)
        return self._known[place][1]

    def count(self, combinations: int) -> None:
        """Refuse more than a question may take."""
        self._computed += combinations
        if self._computed > MOST_COMPUTED:
            reason = f"the values of its keys and modes follow from more than {MOST_COMPUTED:,} combinations"
            raise Unsupported("this question", reason, "ask several questions, or for coarser keys")

    def _found(self, relation: Relation, expression: Expression) -> Values | None:
        origins = Origins(relation, self.listing)
        try:
            lowered = origins.lowered(expression)
            given = origins.conditions
        except Unsupported:
            return None
        values = _Domain(origins, given, lowered, self).values(lowered)
        return values if values is not None and 0 < len(values) <= MOST else None


class _Domain:
    """What the parts of one expression can be."""

    def __init__(self, origins: Origins, given: Sequence[Expression], whole: Expression, lists: Lists) -> None:
        self._lists = lists
        self._known_values: dict[Expression, Values | None] = {}
        self._sources = origins.sources
        self._given = given
        self._known = Conditions(given)
        self._steps = steps(whole)

    def values(self, expression: Expression) -> Values | None:
        """All values of an expression: on every combination of its parts' values, as exact as can be afforded."""
        if expression not in self._known_values:
            every = (self._atoms(expression, coarse) for coarse in (False, True))
            atoms = next((found for found in every if found is not None), None)
            self._known_values[expression] = None if atoms is None else self._image(expression, atoms)
        return self._known_values[expression]

    def _image(self, expression: Expression, atoms: Atoms) -> Values | None:
        narrowing = self._narrowing(atoms)
        if expression in atoms and not narrowing:
            return atoms[expression]
        refs = {atom: Ref(f"a{place}", atom.type) for place, atom in enumerate(atoms)}
        wanted = _light([_replaced(part, refs) for part in (expression, *narrowing)])
        if not wanted:
            return None
        self._lists.count(math.prod(len(values) + 1 for values in atoms.values()))
        # NULL can always occur; what it gives is listed, except NULL itself where it is not a listed value.
        rows = [*product(*(_with_null(values) for values in atoms.values()))]
        columns = {ref: [row[place][0] for row in rows] for place, ref in enumerate(refs.values())}
        results = computed(wanted, columns or {Ref("nothing", "integer"): [None]})
        sure = [all(certain for _, certain in row) for row in rows]
        found = [(value, holds, certain) for (value, *holds), certain in zip(results, sure, strict=True)]
        kept = [value for value, holds, certain in found if all(holds) and (certain or value is not None)]
        everything = (value for value, _, certain in found if certain or value is not None)
        image = dict.fromkeys(kept or everything)
        return tuple(image if expression.type == "text" else sorted(image, key=lambda v: (v is None, v or 0)))

    def _narrowing(self, atoms: Atoms) -> list[Expression]:
        """The conditions that speak of these parts alone; a moment that stands for a whole day cannot decide any."""
        exact = {atom: Ref("", atom.type) for atom in atoms if not (isinstance(atom, Ref) and atom.type == "timestamp")}
        return [part for part in self._given if not is_over(_replaced(part, exact), self._sources)]

    def _atoms(self, expression: Expression, coarse: bool) -> Atoms | None:
        if isinstance(expression, Literal):
            return {}
        equal = self._known.choices(expression)
        if equal is not None:
            return {expression: equal}
        if isinstance(expression, Ref):
            values = self._column(expression)
            return None if values is None else {expression: values}
        own = self._own(expression) if coarse else None
        if own is not None:
            return {expression: own}
        parts = [self._atoms(argument, coarse) for argument in expression.arguments]
        known = [part for part in parts if part is not None]
        merged = {atom: values for part in known for atom, values in part.items()}
        if len(known) == len(parts) and math.prod(len(v) + 1 for v in merged.values()) <= MOST_COMBINATIONS:
            return merged
        own = self._own(expression)
        return None if own is None else {expression: own}

    def _column(self, column: Ref) -> Values | None:
        source = self._sources[column.name]
        if source.values is not None:
            return source.values
        if column.type == "boolean":
            return (True, False)
        if column.type == "integer":
            return _whole(self._interval(column), column.type)
        step = "day" if column.type == "date" else self._steps.get(column.name)
        return None if step is None else self._known.moments(column, step, MOST_COMBINATIONS)

    def _own(self, call: Call) -> Values | None:
        """Values that follow from what a function is, whatever its arguments."""
        if call.type == "boolean":
            return (True, False)
        if call.function in ("case", "coalesce"):
            lists = [self.values(part) for part in branches(call)]
            known = [values for values in lists if values is not None]
            return tuple(dict.fromkeys(v for values in known for v in values)) if len(known) == len(lists) else None
        if call.type == "integer" or (call.type == "real" and call.function in ROUNDINGS):
            return _whole(self._interval(call), call.type)
        return None

    def _interval(self, expression: Expression) -> Interval:
        if isinstance(expression, Ref):
            reach = Interval.of(self._sources[expression.name].bounds)
        elif isinstance(expression, Literal):
            return interval(expression, {})
        elif expression.function in OPEN:
            reach = EVERYTHING
        else:
            ranges = [self._interval(argument) for argument in expression.arguments]
            reach = FUNCTIONS[expression.function].interval(expression, ranges).rounded(expression.type)
        low, high = self._known.range(expression)
        narrow = Interval(max(reach.lower, low), min(reach.upper, high))
        return narrow if narrow.lower <= narrow.upper else reach


def _whole(reach: Interval, kind: str) -> Values | None:
    if math.isinf(reach.lower) or math.isinf(reach.upper) or reach.upper - reach.lower > MOST:
        return None
    low, high = math.ceil(reach.lower), math.floor(reach.upper)
    if kind == "real":
        return tuple(map(float, range(low, high + 1)))
    # Bounds and conditions may reach beyond the type; no row has what lies there.
    return tuple(range(max(low, int(LONGS.lower)), min(high, int(LONGS.upper)) + 1))


def _replaced(expression: Expression, parts: dict[Expression, Ref]) -> Expression:
    if expression in parts:
        return parts[expression]
    if not isinstance(expression, Call):
        return expression
    return replace(expression, arguments=tuple(_replaced(argument, parts) for argument in expression.arguments))


def _light(parts: Sequence[Expression]) -> list[Expression]:
    """The first of some expressions, as many as are no larger together than one may be; subqueries make them grow."""
    totals = accumulate(map(weight, parts))
    return [part for part, total in zip(parts, totals, strict=True) if total <= HEAVIEST]


def _with_null(values: Values) -> list[tuple[Any, bool]]:
    """Values and whether they are listed."""
    return [*((value, True) for value in values), *([] if None in values else [(None, False)])]

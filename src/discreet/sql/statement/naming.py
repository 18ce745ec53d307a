"""What columns are called inside a statement: names of ours, which nothing that somebody else wrote can equal.

**The rule.** In the text that an engine runs, names of tables and columns that the steward declared stand only where a
table is scanned. Everything above that has names of ours: short, different from each other in one statement, and none
that a declared table or column has. What an analyst calls a column, a subquery or an output is in no statement at all.

**Why.** A limit that a statement enforces is a column that it compares, numbers rows by or groups by. Were another
column in sight under the same name, engines would take the one they like: bounds would no longer hold, or the statement
would fail, for one person's rows only. Engines also disagree on which names are the same: some fold case, by tables of
their own (`ſ` is an s on Spark, `ı` an i), some cut names off. Names of letters and numbers are the same on all.

**Where it is enforced.** `Name` is the type of our names and is made here alone; what writes relations and expressions
(`statement/selection.py`) takes no others. `renamed` gives them to a relation, before anything is written.

>>> from discreet.sql.catalog import Column, Table
>>> table = Table("visits", (Column("who", "integer"), Column("v1", "real")), unit="who")
>>> relation, names = renamed(Scan(table))
>>> names
{'who': 'vv1', 'v1': 'vv2'}
>>> check_name("v1")
Traceback (most recent call last):
    ...
RuntimeError: a statement would have a column named 'v1', which is no name of ours
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from discreet.sql.catalog import RESERVED, folded
from discreet.sql.plan import (
    Call,
    Expression,
    Features,
    Filter,
    Join,
    Literal,
    Measure,
    Named,
    Project,
    Ref,
    Relation,
    Scan,
    Union,
)
from discreet.sql.relations import names_in

__all__ = ["OWNER", "PLACE", "ROWS", "Name", "Names", "check_name", "check_names", "raw", "renamed", "substituted"]


class Name(str):
    """A name of ours."""

    __slots__ = ()


OWNER = Name(f"{RESERVED}unit")
"""The column that names the unit a row belongs to."""
PLACE = Name(f"{RESERVED}place")
"""The column that numbers the rows of one key, where a join lets only so many through."""

ROWS = Name(f"{RESERVED}rows")
"""A table of the steward's, where its rows are read through a SELECT."""


def raw(name: str) -> Name:
    """A table's column of reals as it is, with NaN and infinities."""
    return Name(f"{RESERVED}raw {check_name(name)}")


class Names:
    """New names, one after the other: letters that none of the `others` has before a number, and a number."""

    def __init__(self, others: Iterable[str] = ()) -> None:
        letters = {folded(name).rstrip("0123456789") for name in others}
        self._prefix = next(prefix for n in count(1) if (prefix := "v" * n) not in letters)
        self._numbers = count(1)

    def new(self) -> Name:
        """One more."""
        return Name(f"{self._prefix}{next(self._numbers)}")


def check_name(name: str) -> Name:
    """The name, if it is one of ours. Whatever else comes here would be a mistake of ours, before anything is read."""
    if not isinstance(name, Name):
        raise RuntimeError(f"a statement would have a column named {name!r}, which is no name of ours")
    return name


def check_names(expression: Expression) -> Expression:
    """The expression, if it reads only columns that have names of ours."""
    for name in names_in(expression):
        check_name(name)
    return expression


def substituted(expression: Expression, names: Mapping[str, Name]) -> Expression:
    """The expression over columns that are called otherwise."""
    if isinstance(expression, Ref):
        return Ref(names[expression.name], expression.type)
    if isinstance(expression, Literal):
        return expression
    arguments = tuple(substituted(argument, names) for argument in expression.arguments)
    return Call(expression.function, arguments, expression.type)


def renamed(relation: Relation) -> tuple[Relation, dict[str, Name]]:
    """The relation with names of ours, and what each of its columns is called now."""
    return _renamed(relation, Names(_declared(relation)))


def _declared(relation: Relation) -> Iterator[str]:
    """Names of tables and of their columns."""
    match relation:
        case Scan(table):
            yield from (table.name, *table.names)
        case Join(left, right):
            yield from (*_declared(left), *_declared(right))
        case Union(inputs):
            for part in inputs:
                yield from _declared(part)
        case _:
            yield from _declared(relation.input)


def _renamed(relation: Relation, names: Names) -> tuple[Relation, dict[str, Name]]:
    match relation:
        case Scan(table):
            new = {name: names.new() for name in table.names}
            return Scan(table, tuple(new.values())), new
        case Filter(below, predicate):
            inner, known = _renamed(below, names)
            return Filter(inner, substituted(predicate, known)), known
        case Project(below, columns):
            inner, known = _renamed(below, names)
            made = _named(columns, known, names)
            return Project(inner, made), _pairs(columns, made)
        case Features(below, keys, measures):
            inner, known = _renamed(below, names)
            grouped = _named(keys, known, names)
            measured = tuple(_measured(measure, known, names) for measure in measures)
            return Features(inner, grouped, measured), _pairs((*keys, *measures), (*grouped, *measured))
        case Join(left, right, on, kind, most):
            (one, lefts), (other, rights) = _renamed(left, names), _renamed(right, names)
            join = Join(one, other, tuple((lefts[a], rights[b]) for a, b in on), kind, most)
            return join, lefts if kind in ("semi", "anti") else {**rights, **lefts}
        case Union(inputs):
            parts = [_renamed(part, names) for part in inputs]
            return Union(tuple(part for part, _ in parts)), parts[0][1]


def _named(columns: Sequence[Named], known: Mapping[str, Name], names: Names) -> tuple[Named, ...]:
    return tuple(replace(c, name=names.new(), expression=substituted(c.expression, known)) for c in columns)


def _measured(measure: Measure, known: Mapping[str, Name], names: Names) -> Measure:
    argument = None if measure.argument is None else substituted(measure.argument, known)
    return replace(measure, name=names.new(), argument=argument)


def _pairs(before: Sequence[Named | Measure], after: Sequence[Named | Measure]) -> dict[str, Name]:
    return {old.name: check_name(new.name) for old, new in zip(before, after, strict=True)}

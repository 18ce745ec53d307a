"""What columns are called inside a statement: names of ours, which nothing that somebody else wrote can equal.

**The rule.** In the text that an engine runs, names of tables and columns that the steward declared stand only where a
table is scanned. Everything above that has names of ours: different from each other in one statement, and none that a
declared table or column has. What an analyst calls a column, a subquery or an output is in no statement at all.

Columns of a question have a letter and a number. The parts of a statement and their columns have words
(`StatementNames`), so that whoever reads one knows what they hold; where a table or a column has one of them, in any
case and letters that some engine takes for the same, a number makes ours another. Words stand without quotes: they are
of small ASCII letters, digits and underscores, reserved on no engine, and shorter than any of them cuts off.

**Why.** A limit that a statement enforces is a column that it compares, numbers rows by or groups by. Were another
column in sight under the same name, engines would take the one they like: bounds would no longer hold, or the statement
would fail, for one person's rows only. Engines also disagree on which names are the same: some fold case, by tables of
their own (`ſ` is an s on Spark, `ı` an i), some cut names off. Names of letters and numbers are the same on all.

**Where it is enforced.** `Name` is the type of our names and is made here alone; what writes relations, expressions
and parts of statements (`statement/selection.py`, `statement/clauses.py`) takes no others. `renamed` gives them to a
relation, before anything is written.

>>> from discreet.sql.catalog import Column, Table
>>> table = Table("visits", (Column("who", "integer"), Column("v1", "real")), unit="who")
>>> relation, names = renamed(Scan(table))
>>> names
{'who': 'vv1', 'v1': 'vv2'}
>>> check_name("v1")
Traceback (most recent call last):
    ...
RuntimeError: a statement would have a column named 'v1', which is no name of ours
>>> apart_from(JoinNames, ["Left_Rows", "left_rows2"])
JoinNames(left_rows='left_rows3', right_rows='right_rows', joined_rows='joined_rows', crowded_keys='crowded_keys')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import chain, count
from typing import TypeVar

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

__all__ = [
    "ONCE",
    "OWNER",
    "PLACE",
    "ROWS",
    "SUBQUERY",
    "JoinNames",
    "Name",
    "Names",
    "StatementNames",
    "apart_from",
    "check_name",
    "check_names",
    "declared",
    "raw",
    "renamed",
    "substituted",
]

DIGITS = "0123456789"


class Name(str):
    """A name of ours."""

    __slots__ = ()

    def at(self, place: int) -> Name:
        """One of several that are called so."""
        return _numbered(self, place)


@lru_cache(maxsize=4096)
def _numbered(name: Name, place: int) -> Name:
    return Name(f"{name}_{place}")


OWNER = Name(f"{RESERVED}unit")
"""The column that names the unit a row belongs to."""
PLACE = Name(f"{RESERVED}place")
"""The column that numbers the rows of one key, where a join lets only so many through."""

ROWS = Name(f"{RESERVED}rows")
"""A table of the steward's, where its rows are read through a SELECT."""

SUBQUERY = Name("subquery")
"""A query in the place of a table. It qualifies no column, so that nothing can be taken for it."""
ONCE = Name("read_once")
"""A column of random numbers, which nobody reads (`engines/spark/dialect.py`)."""


@dataclass(frozen=True)
class StatementNames:
    """What is called how in the statement of a question (`statement/builder.py`)."""

    bounded_rows: Name
    """The rows, with their keys, and what each of them adds."""
    unit_groups: Name
    """The groups that each unit has rows in."""
    units: Name
    """Each unit with its norms, buckets and weights."""
    unit_norms: Name
    """The groups of units with the norms of these (`statement/windowed.py`)."""
    weighted_groups: Name
    """The same with buckets and weights."""
    bucket_sums: Name
    """Sums by bucket and group."""
    per_unit: Name
    """The window over the groups of one unit."""

    unit: Name
    """Who a row belongs to."""
    any_row: Name
    """What rows have of which nothing is read."""
    group_key: Name
    argument: Name
    """What a measure is of, as a double wherever it is bounded."""
    decimal_units: Name
    """What a measure is of, in units of a decimal."""
    ranked: Name
    """What a rank or a mode is of."""
    row_parts: Name
    """What a row adds, in parts of a step."""
    cell: Name
    """Where a row is counted for a rank."""

    group_rows: Name
    """How many rows a unit has in a group."""
    row_norm: Name
    row_total: Name
    row_bucket: Name
    row_weight: Name
    """A unit's norm by its rows, their number, and what follows from its norm."""
    group_norm: Name
    group_bucket: Name
    group_weight: Name
    """The same by its groups."""
    unit_parts: Name
    unit_steps: Name
    """What the rows of one unit add up to, in parts of a step and in whole steps."""

    first_group: Name
    """What marks one of the groups of a unit."""
    row_octave: Name
    spread: Name
    """Octaves of how many rows a unit has, and of those over their norm."""
    unit_count: Name
    plain_sum: Name
    divided_sum: Name
    unit_sum: Name
    group_units: Name
    group_share: Name
    """What `bucket_sums` counts and adds up: units; rows, plainly and divided by norms; what is wanted of units; and
    units of a group, plainly and divided."""


@dataclass(frozen=True)
class JoinNames:
    """What is called how in a join (`statement/selection.py`)."""

    left_rows: Name
    right_rows: Name
    joined_rows: Name
    """All rows of a right side of which only some are let through for each key."""
    crowded_keys: Name
    """The keys that have more rows than these."""


Words = TypeVar("Words", StatementNames, JoinNames)


WORDS = {kind.__name__: {field.name: None for field in fields(kind)} for kind in (StatementNames, JoinNames)}
"""All names of a kind, in their order."""


def apart_from(words: type[Words], others: Iterable[str]) -> Words:
    """Names that none of the others is, whether they are numbered (`Name.at`) or not."""
    known = WORDS[words.__name__]
    return words(*_chosen(words.__name__, frozenset(name for name in map(folded, others) if _root(name) in known)))


def _root(name: str) -> str:
    """What is left of a name without the numbers that set it apart and number it."""
    return name.rstrip(DIGITS).rstrip("_").rstrip(DIGITS)


@lru_cache(maxsize=256)
def _chosen(kind: str, taken: frozenset[str]) -> tuple[Name, ...]:
    numbered = frozenset(name.rstrip(DIGITS) for name in taken)
    return tuple(_apart(word, taken, numbered) for word in WORDS[kind])


def _apart(word: str, taken: frozenset[str], numbered: frozenset[str]) -> Name:
    """The word, or the word with the first number from 2 on that sets it apart."""
    tried = chain([word], (f"{word}{number}" for number in count(2)))
    return Name(next(name for name in tried if name not in taken and f"{name}_" not in numbered))


def raw(name: str) -> Name:
    """A table's column of reals as it is, with NaN and infinities."""
    return Name(f"{RESERVED}raw {check_name(name)}")


class Names:
    """New names, one after the other: letters that none of the `others` has before a number, and a number."""

    def __init__(self, others: Iterable[str] = ()) -> None:
        letters = {folded(name).rstrip(DIGITS) for name in others}
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
    return _renamed(relation, Names(declared(relation)))


def declared(relation: Relation) -> Iterator[str]:
    """Names of tables and of their columns, as they were declared."""
    match relation:
        case Scan(table):
            yield from (table.name, *table.names)
        case Join(left, right):
            yield from (*declared(left), *declared(right))
        case Union(inputs):
            for part in inputs:
                yield from declared(part)
        case _:
            yield from declared(relation.input)


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

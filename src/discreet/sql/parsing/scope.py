"""What a query can see: the columns of the relation below, what is known of them, and whose rows they are.

Names are compared without regard to case, quoted or not. A column keeps its declared bounds and values, and its mark as
the unit, only where it is passed on as it is; any expression over it gets bounds of its own.

>>> from discreet.sql.catalog import Column
>>> from discreet.sql.functions.registry import call
>>> from discreet.sql.plan import Literal
>>> rows = scan(Table("visits", (Column("patient", "integer"), Column("age", "integer", Bounds(0, 120))), "patient"))
>>> rows.find("AGE").bounds == Bounds(0, 120), rows.find("patient").unit
(True, True)
>>> age = rows.find("age").expression
>>> rows.named("age", call("*", age, Literal(1000, "integer"))).bounds == Bounds(0, 120_000)
True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.sql.analysis.predicates import branches, rounds
from discreet.sql.bounding.declared_values import within
from discreet.sql.catalog import Table, Type, is_number, nearest
from discreet.sql.functions.ranges import Interval
from discreet.sql.functions.registry import interval
from discreet.sql.functions.text import growth
from discreet.sql.parsing.join_limits import MOST_ROWS, Multiplicity
from discreet.sql.plan import (
    Call,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    Project,
    Ref,
    Relation,
    Scan,
    Union,
)

__all__ = ["Field", "Rows", "distinct_names", "fresh", "project", "scan"]

LONGEST = 1_000
"""How many times longer than a column of a table a text may be."""
MOST_GROWN = 10 * MOST_ROWS
"""The same over all rows that joins make of one."""


@dataclass(frozen=True)
class Field:
    """A column in sight. `unit` marks the one that says whose row it is."""

    label: str
    expression: Expression
    bounds: Bounds | None = None
    values: Categories | None = None
    source: str = ""
    unit: bool = False
    growth: int = 1
    hidden: bool = False
    """Reached only by a qualified name, or (without a source) not at all."""
    origin: tuple[str, str] | None = None
    """The table and column it comes from as it is: in a row of a unit, a value of that unit's rows there, or NULL."""
    unique: bool = False
    """Whether no value of it stands in two rows."""

    @property
    def type(self) -> Type:
        """The type of its values."""
        return self.expression.type

    @property
    def name(self) -> str:
        """Its name in the relation below."""
        return self.expression.name if isinstance(self.expression, Ref) else self.label


@dataclass(frozen=True)
class Rows:
    """A relation, all its columns, and what is known of its rows."""

    relation: Relation
    fields: tuple[Field, ...]
    private: bool
    owned: bool
    """Whether rows belong to units that a column names; private rows that are not are each a unit of their own."""
    tables: tuple[str, ...] = ()
    max_rows: int | None = None
    """The most rows of one unit, where declared."""
    linked: Table | None = None
    """The table whose link is still to be joined, so that private rows belong to somebody."""
    max_matches: int | None = None
    """The most of these rows that a join lets one row meet, where declared."""
    multiplicity: Multiplicity = field(default_factory=Multiplicity)
    """What the joins inside may make of one row."""

    def find(self, name: str, source: str | None = None) -> Field:
        """The column that a name means."""
        matches = self.matches(name, source)
        if len(matches) > 1:
            choices = ", ".join(f"{field.source}.{field.label}" for field in matches)
            raise Unsupported(f"the column {name}", "several tables have it", f"write one of {choices}")
        if matches:
            return matches[0]
        if source is not None and source.lower() not in {field.source for field in self.fields}:
            known = sorted({field.source for field in self.fields if field.source})
            raise InvalidArgument("table", source, "one of the tables in FROM", nearest(source, known))
        for table in _scanned(self.relation):
            table.check_usable(name)
        seen = [field.label for field in self.visible if source is None or field.source == source.lower()]
        raise InvalidArgument("column", name, "a column in sight", nearest(name, seen))

    def matches(self, name: str, source: str | None = None) -> list[Field]:
        """All columns that a name may mean."""
        if source is None:
            return [field for field in self.visible if field.label.lower() == name.lower()]
        wanted = (name.lower(), source.lower())
        return [field for field in self.fields if field.source and (field.label.lower(), field.source) == wanted]

    @property
    def visible(self) -> tuple[Field, ...]:
        """The columns that * stands for."""
        return tuple(field for field in self.fields if not field.hidden)

    def field_of(self, expression: Expression) -> Field | None:
        """The column that an expression passes on as it is."""
        return next((field for field in self.fields if field.expression == expression), None)

    def named(self, name: str, expression: Expression) -> Named:
        """An expression as a column, with what is known of its values."""
        field = self.field_of(expression)
        if field is not None:
            return Named(name, expression, field.bounds, field.values)
        return Named(name, self.checked(expression), self.bounds(expression))

    def field(self, label: str, expression: Expression, name: str) -> Field:
        """How the column `name` made from an expression looks from above."""
        known = self.named(name, expression)
        passed = self.field_of(expression)
        return Field(
            label,
            Ref(name, expression.type),
            known.bounds,
            known.values,
            unit=passed is not None and passed.unit,
            growth=self.growth(expression),
            origin=None if passed is None else passed.origin,
            unique=passed is not None and passed.unique,
        )

    def bounds(self, expression: Expression) -> Bounds | None:
        """Bounds of a number, if they are known."""
        field = self.field_of(expression)
        if field is not None:
            return field.bounds
        if not is_number(expression.type):
            return None
        return interval(expression, {field.name: Interval.of(field.bounds) for field in self.fields}).bounds()

    def numbers(self, expression: Expression) -> frozenset[Fraction] | None:
        """All numbers that an expression can be, if they are declared: those of a column, or of what a CASE chooses
        from."""
        if not is_number(expression.type):
            return None
        field = self.field_of(expression)
        if field is not None:
            return within(field.values, field.bounds)
        if isinstance(expression, Literal):
            value = expression.value
            return frozenset((Fraction(value),) if isinstance(value, int | Fraction) else ())
        if not isinstance(expression, Call) or (expression.function == "cast" and rounds(expression)):
            return None
        if expression.function not in ("case", "coalesce", "cast"):
            return None
        chosen = expression.arguments if expression.function == "cast" else branches(expression)
        lists = [self.numbers(part) for part in chosen]
        known = [numbers for numbers in lists if numbers is not None]
        return frozenset[Fraction]().union(*known) if len(known) == len(lists) else None

    def growth(self, expression: Expression) -> int:
        """How many times longer than a column of a table its texts may be."""
        return growth(expression, {field.name: field.growth for field in self.fields})

    def checked(self, expression: Expression) -> Expression:
        """The expression, unless its texts could fill the memory, or take long for each of the rows that joins make."""
        if self.growth(expression) > min(LONGEST, MOST_GROWN // self.multiplicity.rows):
            raise Unsupported("this expression", "its texts could grow without measure", "join or replace less")
        return expression

    def filtered(self, predicate: Expression) -> Rows:
        """The rows on which the predicate is true."""
        return replace(self, relation=Filter(self.relation, self.checked(predicate)))

    def called(self, source: str, labels: Iterable[str] = ()) -> Rows:
        """The same rows under a table name, with other column names if any are given."""
        given = [*labels]
        if len(given) > len(self.visible):
            remedy = f"name at most {len(self.visible)} columns"
            raise InvalidArgument("columns", given, "no more than the table has", remedy)
        names = [*given, *(field.label for field in self.visible[len(given) :])]
        shown = [replace(f, label=n, source=source.lower()) for f, n in zip(self.visible, names, strict=True)]
        hidden = [replace(field, source="") for field in self.fields if field.hidden]
        return replace(self, fields=(*shown, *hidden))


def _scanned(relation: Relation) -> Iterable[Table]:
    match relation:
        case Scan(table):
            yield table
        case Join(left, right):
            yield from (*_scanned(left), *_scanned(right))
        case Union(inputs):
            yield from (table for part in inputs for table in _scanned(part))
        case _:
            yield from _scanned(relation.input)


def scan(table: Table) -> Rows:
    """All rows of a table."""
    fields = tuple(
        Field(
            column.name,
            Ref(column.name, column.type),
            column.bounds,
            None if column.found else column.values,
            table.name.lower(),
            unit=table.private and table.unit is not None and column.name.lower() == table.unit.lower(),
            origin=(table.name.lower(), column.name.lower()),
            unique=not table.private and column.name.lower() in {name.lower() for name in table.unique},
        )
        for column in table.columns
    )
    private = (table.name,) if table.private else ()
    owned = table.private and table.unit is not None
    linked = table if table.link is not None else None
    return Rows(Scan(table), fields, table.private, owned, private, table.max_rows, linked, table.max_matches)


def project(rows: Rows, columns: Iterable[tuple[str, Expression]]) -> Rows:
    """One row for each row, with these labels and expressions."""
    items = [*columns]
    names = distinct_names(label for label, _ in items)
    named = tuple(rows.named(name, expression) for name, (_, expression) in zip(names, items, strict=True))
    made = zip(items, names, strict=True)
    fields = tuple(rows.field(label, expression, name) for (label, expression), name in made)
    return replace(rows, relation=Project(rows.relation, named), fields=fields)


def distinct_names(labels: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The labels, numbered where they would repeat whatever the case."""
    used = {name.lower() for name in taken}
    names = []
    for label in labels:
        names.append(fresh(label, used))
        used.add(names[-1].lower())
    return names


def fresh(label: str, used: Iterable[str]) -> str:
    """The label, or the label with the first number that makes it new; `used` is in lower case."""
    taken = set(used)
    if label.lower() not in taken:
        return label
    number = 1
    while f"{label.lower()}_{number}" in taken:
        number += 1
    return f"{label}_{number}"

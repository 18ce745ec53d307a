"""What synthetic columns may hold: attributes from declared facts, and how the engine finds a row's place in them.

Nothing is read off the data. A column with declared values, a condition, or anything whose values follow from what is
declared has these; a number with bounds has bins of a round width, at most `BINS` of them, or those that are asked for;
whole numbers of a narrow range have a place each, and so have computed numbers of few values, as `FLOOR(age / 10)`.
Values beyond the bounds count as the ends, as in SQL. Rows with a value that is not listed, and rows without a number,
are left out.

>>> from discreet.core.domains import Bounds
>>> from discreet.sql.catalog import Column as Declared, Table
>>> from discreet.sql.parsing.scope import scan
>>> people = Table("people", (Declared("age", "integer", Bounds(0, 120)), Declared("smokes", "boolean")))
>>> [column.attribute.labels[:2] for column in columns_of(scan(people))]
[('[0, 10)', '[10, 20)'), ('True', 'False')]
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, exact, natural
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals
from discreet.sql.functions.registry import call, cast
from discreet.sql.parsing.key_values import listing
from discreet.sql.parsing.scope import Field, Rows
from discreet.sql.plan import Expression, Literal, Named
from discreet.synopses.domain import Attribute

__all__ = ["BINS", "Bins", "Column", "columns_of"]

BINS = 20
"""Numbers are cut into at most so many bins of a round width, unless others are asked for."""
MOST_BINS = 1_000
MOST_VALUES = 1_000
"""So many values that follow from what is declared make a column; longer lists must be declared as they are."""
Bins = Mapping[str, int | Sequence[Exactable]] | int | None
"""For each column, or for all, how many bins, or where they begin and end."""


@dataclass(frozen=True)
class Column:
    """An attribute, the key by which the engine groups rows, and the keys in the order of the attribute's values."""

    attribute: Attribute
    key: Named
    keys: tuple[Any, ...]
    type: Type

    @property
    def name(self) -> str:
        """What it is called."""
        return self.attribute.name

    @property
    def binned(self) -> bool:
        """Whether its values stand for bins."""
        return self.attribute.edges is not None

    def restored(self, values: Sequence[Any]) -> list[Any]:
        """Values of the attribute as the table has them, where the attribute has them as texts."""
        if self.binned or self.attribute.values == self.keys:
            return list(values)
        original = dict(zip(self.attribute.values, self.keys, strict=True))
        return [original[value] for value in values]


def columns_of(rows: Rows, bins: Bins = None, *, strict: bool = False) -> tuple[Column, ...]:
    """The columns of rows that are asked for; unless `strict`, those of which too little is declared are left out."""
    shown = [field for field in rows.visible if not field.unit]
    if strict and len(shown) < len(rows.visible):
        named = next(field.label for field in rows.visible if field.unit)
        raise InvalidArgument("columns", named, "columns that name nobody", "leave the unit column out")
    labels = [field.label for field in shown]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InvalidArgument("columns", twice, "named once", "leave it out, or give it another name with AS")
    asked = _asked(bins, shown)
    found = [_column(rows, field, asked.get(field.label.lower())) for field in shown]
    for field, column in zip(shown, found, strict=True):
        if column is None and (strict or field.label.lower() in asked):
            remedy = "have its values or bounds declared, or leave it out"
            raise InvalidArgument("column", field.label, "of values or bounds that are declared", remedy)
    known = tuple(column for column in found if column is not None)
    if not known:
        names = [field.label for field in shown]
        raise InvalidArgument("columns", names, "some whose values or bounds are declared", "declare them in `connect`")
    return known


def _asked(bins: Bins, fields: Sequence[Field]) -> dict[str, int | Sequence[Exactable]]:
    """Bins by column, in lower case; a number alone is for all columns that would have bins."""
    if bins is None:
        return {}
    if not isinstance(bins, Mapping):
        many = natural("bins", bins)
        return {field.label.lower(): many for field in fields if field.bounds is not None and field.values is None}
    known = [field.label for field in fields]
    for name in bins:
        if not isinstance(name, str) or name.lower() not in {label.lower() for label in known}:
            raise InvalidArgument("bins", name, "columns that are asked for", f"these are {', '.join(known)}")
    return {name.lower(): each for name, each in bins.items()}


def _column(rows: Rows, field: Field, bins: int | Sequence[Exactable] | None) -> Column | None:
    if isinstance(field.type, Decimals):
        # Synthetic rows have doubles for decimals.
        field = replace(field, expression=cast(field.expression, "real"), values=_in_doubles(field.values))
    number = field.type in ("integer", "real")
    if bins is not None and not number:
        raise InvalidArgument("bins", field.label, "for numbers only", "declare its values instead")
    if bins is None and field.values is not None:
        return _listed(field, field.values.values)
    bounds = field.bounds
    if number and bins is not None and not isinstance(bins, int):
        return _binned(field, _edges(field, bins))
    if number and bounds is not None:
        assert bins is None or isinstance(bins, int)
        whole = field.type == "integer"
        low, high = (math.ceil(bounds.lower), math.floor(bounds.upper)) if whole else (bounds.lower, bounds.upper)
        few = listing(rows.relation, field.expression) if bins is None else None
        if few is not None and None not in few and 1 < len(few) <= min(BINS, high - low if whole else BINS):
            return _nearest(field, few)
        if whole and high - low < (BINS if bins is None else bins):
            return _clamped(field, int(low), int(high)) if low <= high else None
        if low == high:
            return None
        return _binned(field, _even(field.label, Bounds(low, high), whole, bins))
    if bins is not None:
        raise InvalidArgument("bins", field.label, "of a column with bounds", "declare them, or list all ends of bins")
    values = listing(rows.relation, field.expression)
    return None if values is None or len(values) > MOST_VALUES else _listed(field, values)


def _in_doubles(values: Categories | None) -> Categories | None:
    """Listed decimals as synthetic rows have them."""
    listed = () if values is None else values.values
    doubles = [float(value) if isinstance(value, Fraction | Decimal) else value for value in listed]
    return Categories(tuple(dict.fromkeys(doubles))) if doubles else None


def _listed(field: Field, values: Sequence[Any]) -> Column:
    """Values as they are; what attributes cannot hold stands there as text."""
    keys = tuple(values)
    plain = all(value is None or isinstance(value, str | int) for value in keys)
    held = keys if plain else tuple(None if value is None else _text(value) for value in keys)
    named = Named(field.label, field.expression, field.bounds, Categories(keys))
    return Column(Attribute(field.label, held), named, keys, field.type)


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _clamped(field: Field, low: int, high: int) -> Column:
    """Whole numbers of a narrow range, one place for each."""
    held = call("clamp", field.expression, Literal(low, "integer"), Literal(high, "integer"))
    keys = tuple(range(low, high + 1))
    return Column(Attribute(field.label, keys), Named(field.label, held, None, Categories(keys)), keys, field.type)


def _nearest(field: Field, values: Sequence[Any]) -> Column:
    """Numbers that have few values, as they are computed or by a condition. Each row has the nearest: engines may
    differ in last bits."""

    def number(value: Any) -> Expression:
        if field.type == "integer":
            return Literal(int(value), "integer")
        return cast(Literal(Fraction(value), "real"), "real")

    arms: list[Expression] = [call("is null", field.expression), cast(Literal(None, "integer"), field.type)]
    for value, following in pairwise(values):
        between = following if field.type == "integer" else (Fraction(value) + Fraction(following)) / 2
        arms += [call("<", field.expression, number(between)), number(value)]
    nearest = call("case", *arms, number(values[-1]))
    return _listed(replace(field, expression=nearest, bounds=None), values)


def _binned(field: Field, edges: Sequence[Fraction]) -> Column:
    """The number of the bin, which is NULL only where the value is."""
    attribute = Attribute.binned(field.label, edges, whole=field.type == "integer")
    assert attribute.edges is not None
    arms: list[Expression] = [call("is null", field.expression), Literal(None, "integer")]
    for place, edge in enumerate(attribute.edges[1:-1]):
        end = Literal(int(edge), "integer") if attribute.whole else cast(Literal(Fraction(edge), "real"), "real")
        arms += [call("<", field.expression, end), Literal(place, "integer")]
    keys = tuple(range(attribute.size))
    expression = call("case", *arms, Literal(attribute.size - 1, "integer"))
    return Column(attribute, Named(field.label, expression, None, Categories(keys)), keys, field.type)


def _edges(field: Field, ends: Sequence[Exactable]) -> list[Fraction]:
    if isinstance(ends, str) or not isinstance(ends, Iterable):
        raise InvalidArgument("bins", ends, "a whole number, or a list of ends", f'write {{"{field.label}": 10}}')
    listed = [exact("bins", end) for end in ends]
    if any(low >= high for low, high in pairwise(listed)):
        raise InvalidArgument(f"bins of {field.label}", [*ends], "increasing numbers", "list them from low to high")
    if not 2 <= len(listed) <= MOST_BINS + 1:
        raise InvalidArgument("bins", f"{len(listed)} ends", f"2 to {MOST_BINS + 1}", "list where bins begin and end")
    return listed


def _even(name: str, bounds: Bounds, whole: bool, bins: int | None) -> list[Fraction]:
    """Ends of bins of equal width: so many, or as few as a round width gives."""
    low, high = bounds.lower, bounds.upper
    if bins is not None:
        many = natural(f"bins of {name}", bins)
        if many > MOST_BINS:
            raise InvalidArgument(f"bins of {name}", bins, f"at most {MOST_BINS}", "use coarser bins")
        ends = [low + bounds.width * place / many for place in range(many + 1)]
        return sorted({Fraction(round(end)) for end in ends}) if whole else ends
    width = _round_width(bounds.width / BINS, whole)
    first, last = math.floor(low / width) + 1, math.ceil(high / width) - 1
    return [low, *(width * place for place in range(first, last + 1)), high]


def _round_width(least: Fraction, whole: bool) -> Fraction:
    """The first of 1, 2, 5, 10, 20, 50, …, and for reals their tenths and so on, that is not below."""
    power = Fraction(10) ** (math.floor(math.log10(least)) - 1)
    while True:
        for digit in (1, 2, 5):
            if digit * power >= least and (not whole or (digit * power).denominator == 1):
                return digit * power
        power *= 10

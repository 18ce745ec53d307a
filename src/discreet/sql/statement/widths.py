"""How much text one row can make the engine handle, where a join repeats it.

A join with a public or linked table lets one row meet many (`parsing/joins.py`), and whatever stands in the row or in
those it meets is compared, passed on and computed with that many times. With long texts that is work that tells by the
time it takes whether one person is there: a filter on that person, and a thousand matches of a key as long as a book.

**The rule.** Where joins make up to m rows of one, texts that go into them have at most max(`LEAST`, `MOST` / m)
characters, keys among them; a longer one counts as NULL there and above. So what one row becomes is at most `MOST`
characters in each column, or `LEAST` · 10⁶ (`multiplicity.MOST_ROWS`). Each text is looked at alone, so what is left
out depends on nobody else's rows. A join that repeats nothing (on a unique column, `max_matches=1`, EXISTS) changes no
text; nor does a join of a person's rows with their own. What is computed of texts after joins may be longer than they
are only in proportion (`scope.MOST_GROWN`).

**Nor may a question repeat a text without measure.** A row carries each key, each argument and each column of a
subquery; fifty keys that are made of one text make fifty of it, and engines fail where a row is too large (PostgreSQL
at a gigabyte, whatever memory there is). So where a question makes c texts of a row (`carried`), a text of a table has
at most max(`LEAST`, `MOST_CARRIED` / c) bytes, which engines know without reading it, and counts as NULL if it is
longer. DuckDB has no largest row: there a question that makes few is left as it is (`Dialect.free_texts`).

Both are enforced on relations as they are about to be written (`narrowed`, `Selection.longest`): what a question is
does not change.

>>> widest(10), widest(1_000), widest(1_000_000)
(6710886, 67108, 256)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from discreet.sql.catalog import Type
from discreet.sql.functions.registry import call
from discreet.sql.functions.text import SEARCHES
from discreet.sql.plan import (
    Expression,
    Features,
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
from discreet.sql.relations import columns_of
from discreet.sql.statement.dialect import Dialect

__all__ = ["LEAST", "MOST", "MOST_CARRIED", "carried", "longest_text", "narrowed", "types_of", "widest"]

MOST = 1 << 26
"""Characters that one row becomes in one column: comparing or changing them takes about a tenth of a second."""
LEAST = 256
"""Characters that a text may have in any case: no key of a table worth joining is longer."""
NOTHING: Mapping[str, int] = {}
SLOW = {**dict.fromkeys(SEARCHES, 4), "lower": 64, "upper": 64}
"""What functions count like, as so many texts, on engines that compare what is looked for at every place and look
through all pairs of letters for each character."""
MOST_CARRIED = 1 << 24
"""Bytes of all texts that one row carries: Spark with a gigabyte of memory is lost at ten times as many."""


def widest(rows: int) -> int:
    """The most characters of a text where one row becomes so many."""
    return max(LEAST, MOST // rows)


def narrowed(relation: Relation) -> Relation:
    """The relation with NULL for texts that are too long for the joins they go into."""
    match relation:
        case Scan():
            return relation
        case Filter(below, predicate):
            return Filter(narrowed(below), predicate)
        case Project(below, columns):
            return Project(narrowed(below), columns)
        case Features(below, keys, measures):
            return Features(narrowed(below), keys, measures)
        case Union(inputs):
            return Union(tuple(map(narrowed, inputs)))
        case Join(left, right, on, kind, most):
            sides = narrowed(left), narrowed(right)
            rows = prod(_limits(relation))
            if rows > 1 and kind in ("inner", "left"):
                # Also where this join matches once: what it brings is repeated as often as the rows it is joined to.
                sides = _held(sides[0], widest(rows)), _held(sides[1], widest(rows))
            return Join(*sides, on, kind, most)


def longest_text(relation: Relation, read: Iterable[Expression], dialect: Dialect) -> int | None:
    """The most bytes that a text of a table may have where these expressions are read from a relation; None for any
    number."""
    slow = NOTHING if dialect.free_texts else SLOW
    texts = carried(relation, slow) + sum(_made(expression, slow, kept=True) for expression in read)
    return None if texts <= dialect.free_texts else max(LEAST, MOST_CARRIED // texts)


def carried(relation: Relation, slow: Mapping[str, int] = NOTHING) -> int:
    """How many texts a relation makes of one row of a table; `slow` functions count as many more as is said."""
    match relation:
        case Scan():
            return 0
        case Filter(below, predicate):
            return carried(below, slow) + _made(predicate, slow)
        case Project(below, columns):
            return carried(below, slow) + sum(_made(c.expression, slow, kept=True) for c in columns)
        case Features(below, keys, measures):
            read = [key.expression for key in keys] + [m.argument for m in measures if m.argument is not None]
            return carried(below, slow) + sum(_made(expression, slow, kept=True) for expression in read)
        case Join(left, right, on):
            return carried(left, slow) + carried(right, slow) + len(on)
        case Union(inputs):
            return max(carried(part, slow) for part in inputs)


def _made(expression: Expression, slow: Mapping[str, int], kept: bool = False) -> int:
    """How many texts an expression makes of columns. A column itself counts where it is `kept`, and not where it is
    compared."""
    if isinstance(expression, Ref):
        return int(kept and expression.type == "text")
    if isinstance(expression, Literal):
        return 0
    made = sum(_made(argument, slow, expression.type == "text") for argument in expression.arguments)
    return made + slow.get(expression.function, 0)


def types_of(relation: Relation) -> dict[str, Type]:
    """The types of the columns of a relation."""
    match relation:
        case Scan(table):
            return dict(zip(columns_of(relation), (column.type for column in table.columns), strict=True))
        case Filter(below):
            return types_of(below)
        case Project(_, columns):
            return {column.name: column.expression.type for column in columns}
        case Features(_, keys, measures):
            types = {key.name: key.expression.type for key in keys}
            return types | {measure.name: measure.type for measure in measures}
        case Join(left, right, _, kind):
            return types_of(left) if kind in ("semi", "anti") else types_of(left) | types_of(right)
        case Union(inputs):
            return types_of(inputs[0])


def _limits(relation: Relation) -> list[int]:
    """How many rows one may meet in each of the joins of a relation."""
    match relation:
        case Scan():
            return []
        case Join(left, right, _, kind, most):
            own = [most] if most is not None and kind in ("inner", "left") else []
            return own + _limits(left) + ([] if kind in ("semi", "anti") else _limits(right))
        case Union(inputs):
            return max(map(_limits, inputs), key=prod)
        case _:
            return _limits(relation.input)


def _held(relation: Relation, limit: int) -> Relation:
    types = types_of(relation)
    if "text" not in types.values():
        return relation
    return Project(relation, tuple(Named(name, _short(Ref(name, kind), limit)) for name, kind in types.items()))


def _short(column: Ref, limit: int) -> Expression:
    if column.type != "text":
        return column
    return call("case", call("<=", call("length", column), Literal(limit, "integer")), column, Literal(None, "text"))

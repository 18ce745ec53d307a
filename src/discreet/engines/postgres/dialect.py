"""PostgreSQL's SQL for our expressions, which give what they give on DuckDB and never fail, whatever a row holds.

PostgreSQL fails where DuckDB gives ±∞, 0 or NULL, and it may compute what only a WHERE keeps out. So all that can fail
stands in an arm of a CASE whose condition rules it out. Texts are compared by their bytes; moments are in UTC.

>>> from discreet.sql.functions.registry import call, render
>>> from discreet.sql.plan import Literal, Ref
>>> dialect = PostgresDialect()
>>> dialect.text(render(call("<", Ref("city", "text"), Literal("Oslo", "text"))))
'("city" < (\\'Oslo\\' COLLATE "C"))'
>>> dialect.text(render(call("%", Ref("x", "real"), Literal(2, "integer"))))
Traceback (most recent call last):
    ...
discreet.core.errors.Unsupported: % of reals is refused: PostgreSQL has no exact remainder of them; ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from math import inf, nextafter
from typing import Any

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.engines.duckdb.types import text as quoted_text
from discreet.engines.postgres import arithmetic as reals
from discreet.engines.postgres import casts
from discreet.engines.postgres.arithmetic import UNLIMITED, Piece, bound, either
from discreet.engines.postgres.text import capitals, matching, small, trimmed
from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.catalog import Type
from discreet.sql.decimals import DIGITS
from discreet.sql.functions import decimal_arithmetic as units
from discreet.sql.functions.signature import WIDE, Node
from discreet.sql.statement.dialect import Dialect, quoted
from discreet.sql.statement.naming import OWNER, ROWS

__all__ = ["STORED", "PostgresDialect"]

LONGEST = 63
"""Bytes of a name; the server cuts off the rest."""
STORED = "discreet stored "
"""What the columns are called in which integers are as they are stored."""
OCTAVES = 64
ADDED, SQUARED = "1e290", "1e140"
"""Values up to this size can be added up, and their squares, without leaving the doubles."""
SCALE = f"float8 '{2.0**-64!r}'"
TYPES = {
    exp.DType.BIGINT: "BIGINT",
    exp.DType.DOUBLE: "FLOAT8",
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.TEXT: "TEXT",
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP",
    WIDE: "NUMERIC",
}
SYMBOLS: Mapping[type[Node], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
Write = Callable[[Any], Piece]


class PostgresDialect(Dialect):
    """SQL for one server, whose tables are read as `tables` says."""

    name = "postgres"
    wide = "BIGINT"
    narrow = "SMALLINT"
    double = "FLOAT8"
    strict = True
    free_texts = 0
    windows = True
    fence = " OFFSET '0'"
    """A plain 0 is a cast of one when the server asks whether it may work in parallel, and is taken for a limit."""

    def __init__(self) -> None:
        self.tables: dict[str, str] = {}

    def text(self, node: Node) -> str:
        """The expression in SQL."""
        return written(node).sql

    def identifier(self, name: str) -> str:
        """A name in quotes."""
        return _name(name)

    def byte_length(self, text: str) -> str:
        """How many bytes a text has."""
        return f"OCTET_LENGTH({text})"

    def table(self, name: str) -> str:
        """The rows of a table, in our types."""
        return f"({self.tables[name]}) AS {self.identifier(ROWS)}"

    def owner(self, unit: str) -> str:
        """A column of its own."""
        return quoted(OWNER)

    def real(self, value: float) -> str:
        """A literal double."""
        return f"(float8 '{float(value)!r}')"

    def stored(self, column: str) -> str:
        """As in the table of the server, whose statistics are of no use for a cast."""
        return self.identifier(STORED + column)

    def octave(self, value: str) -> str:
        """Looked up among the powers of two, which is exact."""
        return f"WIDTH_BUCKET({value}, {_doubles(2.0**power for power in range(1, OCTAVES))})"

    def bucket(self, caps: Caps, norm: str) -> str:
        """How many of the candidates are smaller, which is the index of the first that is not."""
        return f"WIDTH_BUCKET({norm}, {_doubles(nextafter(float(cap), inf) for cap in caps.norms)})"

    def held(self, value: str) -> str:
        """An aggregate of whole numbers as 64 bits, NULL where it does not fit."""
        return casts.held(value)

    def ordered(self, function: str, value: str, kind: Type) -> str:
        """An aggregate of numbers in their own order; variances of values beyond 10^140 are NULL."""
        if kind == "integer" and function == "SUM":
            return f"SUM({value})"
        if kind == "integer" and function == "AVG":
            return f"CAST(SUM({value}) AS FLOAT8) / COUNT({value})"
        if kind == "integer":
            value = f"CAST({value} AS FLOAT8)"
        most = ADDED if function == "SUM" else SQUARED
        inside = f"CASE WHEN {value} BETWEEN -{most} AND {most} THEN {value} END"
        large = f" ELSE {_scaled_sum(function, value)}" if function in ("SUM", "AVG") else ""
        return f"CASE WHEN COUNT({value}) = COUNT({inside}) THEN {function}({inside} ORDER BY {value}){large} END"

    def units_total(self, value: str, wide: bool) -> str:
        """The sum of units of decimals, NULL where it has more than 38 digits."""
        return f"CASE WHEN ABS(SUM({value})) < {10**DIGITS} THEN SUM({value}) END" if wide else f"SUM({value})"

    def quantile(self, value: str, rank: float) -> str:
        """The quantile of numbers, between two of them where it falls there."""
        return f"PERCENTILE_CONT({rank!r}) WITHIN GROUP (ORDER BY CAST({value} AS FLOAT8))"


def _doubles(values: Iterable[float]) -> str:
    return f"CAST('{{{','.join(map(repr, values))}}}' AS FLOAT8[])"


def _scaled_sum(function: str, value: str) -> str:
    """The sum or average of reals some of which are very large: 2^64 times that of values divided by as much.

    Added in their order, values overflow if those below 0 do together, or all of them; and beside large values, small
    ones are lost in any case.
    """
    scaled = f"CASE WHEN ABS({value}) >= 1e-270 THEN {value} * {SCALE} ELSE 0 END"
    below, total = (f"SUM({x} ORDER BY {value})" for x in (f"CASE WHEN {value} < 0 THEN {scaled} END", scaled))
    over = f"float8 '{2.0**960!r}'"
    fits = f"COALESCE({below}, 0) > -{over} AND {total} BETWEEN -{over} AND {over} AND ABS({total}) <> {over}"
    mean = f" / COUNT({value})" if function == "AVG" else ""
    return f"CASE WHEN {fits} THEN {total}{mean} / {SCALE} END"


def written(node: Node) -> Piece:
    """An expression in SQL, with what is known of its size."""
    write = WRITERS.get(type(node))
    if write is None:
        raise Unsupported(type(node).__name__.upper(), "PostgreSQL has nothing for it", "leave it out")
    return write(node)


def _sql(node: Node) -> str:
    return written(node).sql


def _same(node: Node) -> Piece:
    return written(node.this)


def _infix(symbol: str) -> Write:
    return lambda node: Piece(f"({_sql(node.this)} {symbol} {_sql(node.expression)})")


def _prefixed(name: str) -> Write:
    return lambda node: Piece(f"{name}({_sql(node.this)})")


def _name(name: str) -> str:
    """A name in quotes; one that the server would cut off ends in a digest of the whole."""
    if len(name.encode()) <= LONGEST:
        return quoted(name)
    shortened = name.encode()[: LONGEST - 20].decode(errors="ignore")
    return quoted(f"{shortened} {sha256(name.encode()).hexdigest()[:16]}")


def _column(node: exp.Column) -> Piece:
    return Piece(_name(node.name))


def _literal(node: exp.Literal) -> Piece:
    if not node.is_string:
        return Piece(str(node.this))
    return Piece(f'({_text(str(node.this))} COLLATE "C")')


@lru_cache(maxsize=1024)
def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        value = "\0"
    if "\0" in value:
        raise Unsupported("this text", "it has characters that PostgreSQL does not hold", "write it without them")
    return quoted_text(value)


def _known(node: Node) -> str | None:
    """What a literal says; a number may have a sign before it."""
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    return str(node.this) if isinstance(node, exp.Literal) else None


def _cast(node: exp.Cast) -> Piece:
    kind, value, known = TYPES[node.to.this], node.this, _known(node.this)
    if known is not None and kind == "FLOAT8":
        return reals.literal(float(known))
    if known is not None and kind != "TEXT":
        return Piece(f"{kind.lower()} {_text(known)}")
    if isinstance(value, exp.Null):
        return Piece(f"CAST(NULL AS {kind})", 0, 0)
    if node.args.get("source") == "digits":
        return _held_digits(value)
    inner = written(value)
    if node.args.get("source") == "units":
        return Piece(f"CAST({inner.sql} AS {kind})", 0, 127)
    if node.args.get("source") == "boolean" and kind in ("BIGINT", "FLOAT8"):
        choice = bound(lambda b: f"CASE WHEN {b} THEN 1 WHEN NOT {b} THEN 0 END", inner)
        return Piece(f"CAST({choice} AS {kind})", 0, 1)
    if kind == "TEXT":
        shown = casts.shown(inner) if node.args.get("source") == "real" else f"CAST({inner.sql} AS TEXT)"
        return Piece(f'({shown} COLLATE "C")')
    # All that is cast to a double without fail is a whole number.
    return Piece(f"CAST({inner.sql} AS {kind})", 0, 64)


def _held_digits(node: Node) -> Piece:
    """Arithmetic on two whole numbers of 38 digits, NULL where the result has more: the server's own know no end."""
    operator, *sides = units.sides(node)
    left, right = (f"CAST({_sql(side)} AS NUMERIC)" for side in sides)
    result = Piece(f"({left} {SYMBOLS[operator]} {right})")
    return Piece(bound(lambda x: f"CASE WHEN ABS({x}) < {10**DIGITS} THEN {x} END", result))


def _try_cast(node: exp.TryCast) -> Piece:
    inner, kind = written(node.this), TYPES[node.to.this]
    match node.args["source"]:
        case "column":
            return inner
        case "wide":
            return Piece(bound(casts.held, inner))
        case "real":
            return Piece(bound(casts.from_real, inner))
        case _:
            return Piece(casts.FROM_TEXT[kind](inner))


def _case(node: exp.Case) -> Piece:
    arms = [(_sql(arm.this), written(arm.args["true"])) for arm in node.args["ifs"]]
    default = written(node.args["default"]) if node.args.get("default") is not None else None
    values = [value for _, value in arms] + ([] if default is None else [default])
    said = " ".join(f"WHEN {condition} THEN {value.sql}" for condition, value in arms)
    last = "" if default is None else f" ELSE {default.sql}"
    return Piece(f"CASE {said}{last} END", *either(*values))


def _several(name: str) -> Write:
    def write(node: Node) -> Piece:
        values = [written(node.this), *map(written, node.expressions)]
        return Piece(f"{name}({', '.join(value.sql for value in values)})", *either(*values))

    return write


def _arithmetic(symbol: str, on_reals: Callable[[Piece, Piece], Piece]) -> Write:
    def write(node: Node) -> Piece:
        if isinstance(node.expression, exp.Interval):
            return Piece(casts.later(written(node.this), node.expression))
        left, right = written(node.this), written(node.expression)
        return on_reals(left, right) if node.args.get("real") else Piece(f"({left.sql} {symbol} {right.sql})")

    return write


def _nullif(node: exp.Nullif) -> Piece:
    value = written(node.this)
    return Piece(f"NULLIF({value.sql}, {_sql(node.expression)})", value.low, value.high)


def _is_wide(node: Node) -> bool:
    return isinstance(node, exp.Cast) and node.to.this == WIDE


def _quotient(node: exp.IntDiv) -> Piece:
    left, right = _sql(node.this), _sql(node.expression)
    return Piece(f"DIV({left}, {right})" if _is_wide(node.this) else f"({left} / {right})")


def _remainder(node: exp.Mod) -> Piece:
    if node.args.get("real"):
        remedy = "CAST both to BIGINT, or write x - n * TRUNC(x / n)"
        raise Unsupported("% of reals", "PostgreSQL has no exact remainder of them", remedy)
    return Piece(f"({_sql(node.this)} % {_sql(node.expression)})")


def _whole(name: str) -> Write:
    def write(node: Node) -> Piece:
        value = written(node.this)
        return Piece(f"{name}({value.sql})", 0, min(value.high + 1, UNLIMITED))

    return write


def _absolute(node: exp.Abs) -> Piece:
    value = written(node.this)
    return Piece(f"ABS({value.sql})", value.low, value.high)


def _power(node: exp.Pow) -> Piece:
    exponent = node.expression
    known = _known(exponent.this) if isinstance(exponent, exp.Cast) else None
    return reals.power(written(node.this), written(exponent), None if known is None else float(known))


def _between(node: exp.Between) -> Piece:
    return Piece(f"({_sql(node.this)} BETWEEN {_sql(node.args['low'])} AND {_sql(node.args['high'])})")


def _listed(node: exp.In) -> Piece:
    return Piece(f"({_sql(node.this)} IN ({', '.join(map(_sql, node.expressions))}))")


def _extract(node: exp.Extract) -> Piece:
    part = str(node.this.this)
    found = f"EXTRACT({part} FROM CAST({_sql(node.expression)} AS TIMESTAMP))"
    return Piece(f"FLOOR({found})" if part == "SECOND" else found)


def _truncated(node: exp.TimestampTrunc) -> Piece:
    return Piece(f"DATE_TRUNC('{str(node.args['unit'].this).lower()}', CAST({_sql(node.this)} AS TIMESTAMP))")


def _difference(node: exp.DateDiff) -> Piece:
    return Piece(casts.apart(written(node.expression), written(node.this), str(node.args["unit"].this)))


def _called(node: exp.Anonymous) -> Piece:
    name, arguments = str(node.this), [written(argument) for argument in node.expressions]
    special = FUNCTIONS.get(name)
    if special is not None:
        return special(*arguments)
    if name not in SHARED:
        raise Unsupported(name, "PostgreSQL has nothing for it", "leave it out")
    return Piece(f"{name}({', '.join(argument.sql for argument in arguments)})")


SHARED = {"LN", "LOG10", "LEFT", "RIGHT", "SUBSTRING", "REPLACE", "SPLIT_PART", "STARTS_WITH"}
"""Functions that give the same on both, on the arguments they get."""
FUNCTIONS: Mapping[str, Callable[..., Piece]] = {
    "LOG2": reals.logarithm2,
    "LOWER": small,
    "UPPER": capitals,
    "TRIM": lambda text: trimmed("BTRIM", text),
    "LTRIM": lambda text: trimmed("LTRIM", text),
    "RTRIM": lambda text: trimmed("RTRIM", text),
    "CONTAINS": lambda text, part: Piece(f"(STRPOS({text.sql}, {part.sql}) > 0)"),
    "ENDS_WITH": lambda text, part: Piece(bound(lambda t, p: f"(RIGHT({t}, LENGTH({p})) = {p})", text, part)),
}
WRITERS: Mapping[type[Node], Write] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node: Piece("TRUE" if node.this else "FALSE"),
    exp.Null: lambda node: Piece("NULL", 0, 0),
    exp.Cast: _cast,
    exp.TryCast: _try_cast,
    exp.Paren: _same,
    exp.Add: _arithmetic("+", reals.added),
    exp.Sub: _arithmetic("-", lambda left, right: reals.added(left, right, "-")),
    exp.Mul: _arithmetic("*", reals.multiplied),
    exp.Div: _arithmetic("/", reals.divided),
    exp.IntDiv: _quotient,
    exp.Mod: _remainder,
    exp.Neg: lambda node: Piece(f"(-{_sql(node.this)})"),
    exp.Nullif: _nullif,
    exp.Abs: _absolute,
    exp.Sign: _prefixed("SIGN"),
    exp.Round: lambda node: reals.rounded(written(node.this)),
    exp.Floor: _whole("FLOOR"),
    exp.Ceil: _whole("CEIL"),
    exp.Trunc: _whole("TRUNC"),
    exp.Sqrt: _prefixed("SQRT"),
    exp.Exp: lambda node: reals.exponential(written(node.this)),
    exp.Pow: _power,
    exp.Case: _case,
    exp.IsNan: lambda node: Piece(f"({_sql(node.this)} = float8 'NaN')"),
    exp.Least: _several("LEAST"),
    exp.Greatest: _several("GREATEST"),
    exp.Coalesce: _several("COALESCE"),
    exp.EQ: _infix("="),
    exp.NEQ: _infix("<>"),
    exp.LT: _infix("<"),
    exp.LTE: _infix("<="),
    exp.GT: _infix(">"),
    exp.GTE: _infix(">="),
    exp.And: _infix("AND"),
    exp.Or: _infix("OR"),
    exp.Not: lambda node: Piece(f"(NOT {_sql(node.this)})"),
    exp.Is: _infix("IS"),
    exp.In: _listed,
    exp.Between: _between,
    exp.RegexpLike: lambda node: matching(written(node.this), written(node.expression)),
    exp.Like: _infix("LIKE"),
    exp.Length: _prefixed("LENGTH"),
    exp.DPipe: _infix("||"),
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.DateDiff: _difference,
    exp.Anonymous: _called,
}

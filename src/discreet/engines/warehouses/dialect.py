"""SQL for warehouses that are reached through ibis: BigQuery, Snowflake and Trino.

Whatever a row holds, a statement must not fail, and an expression must give what it gives on DuckDB. So only those
expressions are written for which the documentation of the warehouse says as much; the others are refused before
anything is charged, and can be computed in a view instead. What differs between the warehouses is in one record each
(`warehouses/profiles.py`). There is one difference from DuckDB: a real that leaves the doubles is NULL at once, and
not only where its expression ends.

>>> from discreet.sql.functions.registry import call, render
>>> from discreet.sql.plan import Literal, Ref
>>> sum_of = render(call("+", Ref("n", "integer"), Literal(1, "integer")))
>>> WarehouseDialect(BIGQUERY).text(sum_of)
'SAFE_CAST((CAST(`n` AS BIGNUMERIC) + CAST(CAST(1 AS INT64) AS BIGNUMERIC)) AS INT64)'
>>> WarehouseDialect(TRINO).text(render(call("trim", Ref("city", "text"))))
Traceback (most recent call last):
    ...
discreet.core.errors.Unsupported: TRIM is refused: it is not known to give the same on Trino; compute it in a view
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.engines.case_folding import pairs
from discreet.engines.warehouses.profiles import BIGQUERY, SNOWFLAKE, TRINO, WAREHOUSES, Words
from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.catalog import Type
from discreet.sql.functions.signature import WIDE, Node
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.naming import OWNER, ROWS

__all__ = ["BIGQUERY", "SNOWFLAKE", "TRINO", "WAREHOUSES", "WarehouseDialect"]

OCTAVES = 48
"""No unit has more than 2^48 rows."""
LONGEST = 200_000
"""Characters of the longest expression."""
PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
"""Parts of moments that all of them have alike; they number weeks and their days differently."""
REMEDY = "compute it in a view"


SAFE = {"+": "SAFE_ADD", "-": "SAFE_SUBTRACT", "*": "SAFE_MULTIPLY", "/": "SAFE_DIVIDE"}


class WarehouseDialect(Dialect):
    """SQL for one warehouse, whose tables are read as `tables` says."""

    strict = False

    def __init__(self, words: Words) -> None:
        self.words = words
        self.name = words.name
        self.eager = words.eager
        self.wide = words.whole
        self.narrow = words.whole
        self.double = words.types[exp.DType.DOUBLE]
        self.tables: dict[str, str] = {}
        self._writer = _Writer(words)

    def text(self, node: Node) -> str:
        """The expression in SQL."""
        written = self._writer.sql(node)
        if len(written) > LONGEST:
            raise Unsupported("this expression", f"it is too long for {self.words.title}", "write a shorter one")
        return written

    def identifier(self, name: str) -> str:
        """A name in quotes."""
        return self.words.quoted(name)

    def byte_length(self, text: str) -> str:
        """The number of characters: warehouses have different words for bytes, and each has this one."""
        return f"LENGTH({text})"

    def table(self, name: str) -> str:
        """The rows of a table, in our types."""
        return f"({self.tables[name]}) AS {self.identifier(ROWS)}"

    def owner(self, unit: str) -> str:
        """A column of its own."""
        return self.identifier(OWNER)

    def octave(self, value: str) -> str:
        """Looked up among the powers of two, which is exact."""
        return _place((2.0**power for power in range(1, OCTAVES)), "<", value)

    def bucket(self, caps: Caps, norm: str) -> str:
        """Looked up among the candidates."""
        return _place(map(float, caps.norms), "<=", norm)

    def kept(self, once: bool) -> str:
        """The warehouse decides."""
        return ""

    def divided(self, value: str, parts: int) -> str:
        """A whole number by a power of two, rounded half up: not all shift the sign along, and doubles are exact."""
        return f"CAST(FLOOR({value} / {float(parts)!r}e0 + 0.5e0) AS INTEGER)"

    def total(self, product: str) -> str:
        """The sum of whole numbers of less than 2^31 in size."""
        return f"SUM(CAST({product} AS {self._summed}))"

    def held(self, value: str) -> str:
        """An aggregate of whole numbers as 64 bits, NULL where it does not fit."""
        return self.words.held.format(value)

    def ordered(self, function: str, value: str, kind: Type) -> str:
        """Sums and averages of whole numbers, exactly; no others."""
        if kind != "integer" or function not in ("SUM", "AVG"):
            what = f"{function} of reals for each unit" if kind != "integer" else f"{function} for each unit"
            raise Unsupported(what, f"{self.words.title} may add them up in any order", REMEDY)
        total = f"SUM(CAST({value} AS {self._summed}))"
        return total if function == "SUM" else f"CAST({total} AS {self.double}) / NULLIF(COUNT({value}), 0)"

    def units_total(self, value: str, wide: bool) -> str:
        """The sum of units of decimals that have 64 bits; of no others."""
        if wide:
            raise Unsupported("SUM of so many digits for each unit", f"{self.words.title} may fail on it", REMEDY)
        return f"SUM(CAST({value} AS {self._summed}))"

    def quantile(self, value: str, rank: float) -> str:
        """None."""
        raise Unsupported("a quantile for each unit", f"{self.words.title} may find others", REMEDY)

    @property
    def _summed(self) -> str:
        """Sums of as many numbers of 64 bits as there can be rows."""
        return "DECIMAL(38,0)" if self.words is TRINO else self.words.wide


def _place(ends: Iterable[float], relation: str, value: str) -> str:
    """The number of the first of several ends that the value is below."""
    listed = [*ends]
    arms = " ".join(f"WHEN {value} {relation} {end!r}e0 THEN {place}" for place, end in enumerate(listed))
    return f"CASE {arms} ELSE {len(listed)} END"


class _Writer:
    """Expressions in the words of one warehouse."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def sql(self, node: Node) -> str:
        """An expression in SQL."""
        write = WRITERS.get(type(node))
        if write is None:
            raise self.refused(type(node).__name__.upper())
        return write(self, node)

    def refused(self, what: str) -> Unsupported:
        """That it cannot be asked here."""
        return Unsupported(what, f"it is not known to give the same on {self.words.title}", REMEDY)

    def kind(self, kind: exp.DType) -> str:
        """A type."""
        same = {exp.DType.BIGINT: self.words.whole, exp.DType.BOOLEAN: "BOOLEAN", exp.DType.DATE: "DATE"}
        return {**self.words.types, **same, WIDE: self.words.wide}[kind]

    def literal(self, node: exp.Literal) -> str:
        """Text, or a number."""
        return self.text(str(node.this)) if node.is_string else str(node.this)

    def text(self, text: str) -> str:
        """A literal text."""
        if "\\" in text or not text.isprintable():
            raise Unsupported("this text", f"{self.words.title} may read it otherwise", "write it without backslashes")
        return "'" + text.replace("'", "\\'" if self.words is BIGQUERY else "''") + "'"

    def cast(self, node: exp.Cast) -> str:
        """A cast that cannot fail."""
        kind, value = node.to.this, node.this
        if isinstance(value, exp.Literal) and kind in (exp.DType.DATE, exp.DType.TIMESTAMPNTZ):
            return self.moment(str(value.this), kind)
        if isinstance(value, exp.Sign):
            signed = self.sql(value.this)
            return f"CASE WHEN {signed} > 0 THEN 1 WHEN {signed} < 0 THEN -1 WHEN {signed} = 0 THEN 0 END"
        if node.args.get("source") == "boolean" and kind != exp.DType.TEXT:
            said = self.sql(value)
            return f"CAST(CASE WHEN {said} THEN 1 WHEN NOT {said} THEN 0 END AS {self.kind(kind)})"
        if node.args.get("source") == "digits":
            raise self.refused("a product or a sum of so many digits")
        if node.args.get("source") == "units" and kind == WIDE and self.words is TRINO:
            return f"CAST({self.sql(value)} AS DECIMAL(38,0))"
        if kind == exp.DType.TEXT and not isinstance(value, exp.Column | exp.Null):
            raise self.refused("a number, a condition or a moment as text")
        return f"CAST({self.sql(value)} AS {self.kind(kind)})"

    def moment(self, text: str, kind: exp.DType) -> str:
        """A literal date or timestamp, whatever formats a session is set to."""
        day, _, time = text.replace("T", " ").partition(" ")
        clock, _, part = (time or "00:00:00").partition(".")
        numbers = [*map(int, day.split("-")), *map(int, clock.split(":")), int(part.ljust(6, "0"))]
        return (self.words.date if kind == exp.DType.DATE else self.words.moment).format(*numbers)

    def try_cast(self, node: exp.TryCast) -> str:
        """A cast that gives NULL where it fails."""
        inner = node.this
        match node.args["source"]:
            case "column":
                return self.sql(inner)
            case "wide":
                return self.words.held.format(self.sql(inner))
            case "real" if isinstance(inner, exp.Floor | exp.Ceil) and self.words.floored is not None:
                return self.words.floored.format(self.sql(inner))
            case "real":
                raise Unsupported(
                    "a real as a whole number", f"{self.words.title} rounds halves otherwise", "CAST FLOOR of it"
                )
            case _:
                raise self.refused("a text as another type")

    def case(self, node: exp.Case) -> str:
        """Arms in order."""
        said = " ".join(f"WHEN {self.sql(arm.this)} THEN {self.sql(arm.args['true'])}" for arm in node.args["ifs"])
        last = "" if node.args.get("default") is None else f" ELSE {self.sql(node.args['default'])}"
        return f"CASE {said}{last} END"

    def arithmetic(self, symbol: str, node: Node) -> str:
        """+, − and ×, and the quotient of reals."""
        if isinstance(node.expression, exp.Interval):
            raise self.refused("an interval")
        if isinstance(node.this, exp.Cast) and node.this.to.this == exp.DType.DATE:
            raise self.refused("a difference of days")
        left, right = self.sql(node.this), self.sql(node.expression)
        if not node.args.get("real"):
            return f"({left} {symbol} {right})"
        if self.words.added is None:
            raise self.refused(f"{symbol} of reals")
        return self.words.added.format(left, symbol, right, SAFE[symbol])

    def quotient(self, node: exp.IntDiv) -> str:
        """Division of whole numbers that cannot overflow."""
        if self.words.quotient is None or (isinstance(node.this, exp.Cast) and node.this.to.this == WIDE):
            raise self.refused("// of such numbers")
        return self.words.quotient.format(self.sql(node.this), self.sql(node.expression))

    def remainder(self, node: exp.Mod) -> str:
        """Of whole numbers."""
        if node.args.get("real"):
            raise self.refused("% of reals")
        return f"MOD({self.sql(node.this)}, {self.sql(node.expression)})"

    def extreme(self, symbol: str, node: Node) -> str:
        """The least or greatest of those that are not NULL."""

        def of_two(a: str, b: str) -> str:
            return f"CASE WHEN {b} IS NULL THEN {a} WHEN {a} {symbol} {b} THEN {a} ELSE {b} END"

        return reduce(of_two, map(self.sql, (node.this, *node.expressions)))

    def part(self, node: exp.Extract) -> str:
        """A part of a moment."""
        part = str(node.this.this)
        if part not in PARTS:
            raise self.refused(part)
        return f"EXTRACT({part} FROM CAST({self.sql(node.expression)} AS {self.kind(exp.DType.TIMESTAMPNTZ)}))"

    def truncated(self, node: exp.TimestampTrunc) -> str:
        """The beginning of a unit."""
        unit = str(node.args["unit"].this)
        if unit not in PARTS:
            raise self.refused(f"DATE_TRUNC to a {unit.lower()}")
        return self.words.truncated.format(unit, self.sql(node.this))

    def called(self, node: exp.Anonymous) -> str:
        """Functions of texts."""
        name, arguments = str(node.this), [self.sql(argument) for argument in node.expressions]
        if name in ("LOWER", "UPPER"):
            return f"TRANSLATE({arguments[0]}, {', '.join(map(self.text, pairs(name)))})"
        if name == "LEFT":
            return f"SUBSTR({arguments[0]}, 1, {arguments[1]})"
        if name == "SUBSTRING":
            return f"SUBSTR({', '.join(arguments)})"
        if name == "REPLACE":
            return f"REPLACE({', '.join(arguments)})"
        if name == "STARTS_WITH":
            return f"(SUBSTR({arguments[0]}, 1, LENGTH({arguments[1]})) = {arguments[1]})"
        if name == "CONTAINS":
            return f"({self.words.position.format(*arguments)} > 0)"
        raise self.refused(name)


def _infix(symbol: str) -> Callable[[_Writer, Any], str]:
    return lambda write, node: f"({write.sql(node.this)} {symbol} {write.sql(node.expression)})"


def _prefixed(name: str) -> Callable[[_Writer, Any], str]:
    return lambda write, node: f"{name}({write.sql(node.this)})"


def _arithmetic(symbol: str) -> Callable[[_Writer, Any], str]:
    return lambda write, node: write.arithmetic(symbol, node)


def _listed(write: _Writer, node: exp.In) -> str:
    return f"({write.sql(node.this)} IN ({', '.join(map(write.sql, node.expressions))}))"


def _between(write: _Writer, node: exp.Between) -> str:
    return f"({write.sql(node.this)} BETWEEN {write.sql(node.args['low'])} AND {write.sql(node.args['high'])})"


WRITERS: Mapping[type[Node], Callable[[_Writer, Any], str]] = {
    exp.Column: lambda write, node: write.words.quoted(node.name),
    exp.Literal: _Writer.literal,
    exp.Boolean: lambda write, node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda write, node: "NULL",
    exp.Cast: _Writer.cast,
    exp.TryCast: _Writer.try_cast,
    exp.Paren: lambda write, node: write.sql(node.this),
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.IntDiv: _Writer.quotient,
    exp.Mod: _Writer.remainder,
    exp.Neg: lambda write, node: f"(-{write.sql(node.this)})",
    exp.Nullif: lambda write, node: f"NULLIF({write.sql(node.this)}, {write.sql(node.expression)})",
    exp.Abs: _prefixed("ABS"),
    exp.Floor: _prefixed("FLOOR"),
    exp.Ceil: _prefixed("CEIL"),
    exp.Case: _Writer.case,
    exp.IsNan: lambda write, node: f"IS_NAN({write.sql(node.this)})" if write.words.reals else "FALSE",
    exp.Least: lambda write, node: write.extreme("<", node),
    exp.Greatest: lambda write, node: write.extreme(">", node),
    exp.Coalesce: lambda write, node: f"COALESCE({', '.join(map(write.sql, (node.this, *node.expressions)))})",
    exp.EQ: _infix("="),
    exp.NEQ: _infix("<>"),
    exp.LT: _infix("<"),
    exp.LTE: _infix("<="),
    exp.GT: _infix(">"),
    exp.GTE: _infix(">="),
    exp.And: _infix("AND"),
    exp.Or: _infix("OR"),
    exp.Not: lambda write, node: f"(NOT {write.sql(node.this)})",
    exp.Is: _infix("IS"),
    exp.In: _listed,
    exp.Between: _between,
    exp.Like: _infix("LIKE"),
    exp.Length: _prefixed("LENGTH"),
    exp.DPipe: _infix("||"),
    exp.Extract: _Writer.part,
    exp.TimestampTrunc: _Writer.truncated,
    exp.Anonymous: _Writer.called,
}
"""What is written, by the node; nothing else is."""

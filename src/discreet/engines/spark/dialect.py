"""Spark's SQL for our expressions, which give what they give on DuckDB and never fail, whatever a row holds.

Spark fails or not, and gives other values, by settings of its session (ANSI mode, time zone, how quotes are read): what
is written here means the same under all of them. Whole numbers that could leave 64 bits are added by functions that
give NULL there; FLOOR and its like, which are whole numbers on Spark, stay doubles. Sums are of whole numbers, in parts
that no number of rows makes too large.

>>> from discreet.sql.functions.registry import call, render
>>> from discreet.sql.plan import Literal, Ref
>>> dialect = SparkDialect()
>>> dialect.text(render(call("+", Ref("n", "integer"), Literal(1, "integer"))))
'TRY_ADD(`n`, 1L)'
>>> from discreet.sql.functions.registry import cast
>>> dialect.text(render(cast(Ref("x", "real"), "text")))
Traceback (most recent call last):
    ...
discreet.core.errors.Unsupported: a real as text is refused: Spark writes them otherwise; ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from discreet.core.errors import Unsupported
from discreet.engines.case_folding import changed
from discreet.engines.spark import dates as moments
from discreet.engines.spark import text as texts
from discreet.sql.catalog import Type
from discreet.sql.decimals import DIGITS
from discreet.sql.functions import decimal_arithmetic as units
from discreet.sql.functions.signature import WIDE, Node
from discreet.sql.statement.clauses import subquery
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.naming import ONCE, OWNER, ROWS

__all__ = ["SparkDialect", "double", "identifier"]

TYPES = {
    exp.DType.BIGINT: "BIGINT",
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.TEXT: "STRING",
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMPNTZ: moments.MOMENT,
    WIDE: f"DECIMAL({DIGITS},0)",
}
LOWEST = "(-9223372036854775808L)"
WHOLE = 2.0**52
"""From here on, doubles are whole numbers."""
HALF = 15
"""Bits of a product that are summed apart from those above: of up to 2^48 rows, neither sum leaves 64 bits."""
HALF_DIGITS = 19
HALVES = 10**HALF_DIGITS
"""Numbers of 38 digits are summed in two halves of 19."""
LONGEST = 200_000
"""Characters of the longest expression: Spark takes minutes over longer ones."""
TRIED: Mapping[type[Node], str] = {exp.Add: "TRY_ADD", exp.Sub: "TRY_SUBTRACT", exp.Mul: "TRY_MULTIPLY"}
Write = Callable[[Any], str]


class SparkDialect(Dialect):
    """SQL for one session, whose tables are read as `tables` says."""

    name = "spark"
    wide = "DECIMAL(38,0)"
    narrow = "TINYINT"
    double = "DOUBLE"
    free_texts = 0
    windows = True

    def __init__(self) -> None:
        self.tables: dict[str, str] = {}

    def text(self, node: Node) -> str:
        """The expression in SQL."""
        written = _sql(node)
        if len(written) > LONGEST:
            raise Unsupported("this expression", "it is too long for Spark", "write a shorter one")
        return written

    def identifier(self, name: str) -> str:
        """A name in quotes."""
        return identifier(name)

    def table(self, name: str) -> str:
        """The rows of a table, in our types."""
        return f"({self.tables[name]}) AS {identifier(ROWS)}"

    def owner(self, unit: str) -> str:
        """A column of its own."""
        return identifier(OWNER)

    def real(self, value: float) -> str:
        """A literal double."""
        return double(value)

    def byte_length(self, text: str) -> str:
        """How many bytes a text has."""
        return f"OCTET_LENGTH({text})"

    def log2(self, value: str) -> str:
        """A little too large rather than too small, so that it is not below the whole number that it should be."""
        return f"LN({value}) / LN(2D) + 1e-12D"

    def kept(self, once: bool) -> str:
        """Spark decides."""
        return ""

    def gathered(self, rows: str, unit: str, once: bool = True) -> str:
        """Rows sent to where the others of their unit are, once: all that is counted by unit is counted there.

        Spark computes a WITH query anew wherever it is read, unless a random number is in it; this one nobody reads.
        """
        return f"SELECT *{f', RAND(0) AS {ONCE}' if once else ''} FROM {subquery(rows)} DISTRIBUTE BY {unit}"

    def first(self, keys: Sequence[str], window: str, mark: str) -> tuple[str, str]:
        """Row numbers would need an order of their own; a single key is the least of its unit also where it is NULL."""
        listed = keys[0] if len(keys) == 1 else f"STRUCT({', '.join(keys)})"
        return f"MIN({listed}) OVER {window}", f"{listed} <=> {mark}"

    def divided(self, value: str, parts: int) -> str:
        """A whole number of less than 2^30 in size by a power of two, rounded half up."""
        return f"SHIFTRIGHT({value} + {parts // 2}, {parts.bit_length() - 1})"

    def total(self, product: str) -> str:
        """The sum of whole numbers of less than 2^31 in size."""
        high, low = f"SUM(SHIFTRIGHT({product}, {HALF}))", f"SUM(({product}) & {2**HALF - 1})"
        return f"CAST({high} AS DECIMAL(28,0)) * {2**HALF} + {low}"

    def held(self, value: str) -> str:
        """An aggregate of whole numbers as 64 bits, NULL where it does not fit."""
        return f"TRY_CAST({value} AS BIGINT)"

    def ordered(self, function: str, value: str, kind: Type) -> str:
        """An aggregate of numbers in their own order; whole numbers are added exactly."""
        whole = f"SUM(CAST({value} AS DECIMAL(20,0)))"
        if kind == "integer" and function == "SUM":
            return whole
        if kind == "integer" and function == "AVG":
            return f"CAST({whole} AS DOUBLE) / NULLIF(COUNT({value}), 0)"
        listed = f"SORT_ARRAY(COLLECT_LIST(CAST({value} AS DOUBLE)))"
        if function in ("SUM", "AVG"):
            added = f"CASE WHEN COUNT({value}) > 0 THEN AGGREGATE({listed}, 0D, (a, v) -> a + v) END"
            return added if function == "SUM" else f"{added} / NULLIF(COUNT({value}), 0)"
        mean = "(a.m + (v - a.m) / (a.n + 1D))"
        step = f"NAMED_STRUCT('n', a.n + 1D, 'm', {mean}, 's', a.s + (v - {mean}) * (v - a.m))"
        spread = f"AGGREGATE({listed}, NAMED_STRUCT('n', 0D, 'm', 0D, 's', 0D), (a, v) -> {step}, a -> a.s)"
        variance = f"CASE WHEN COUNT({value}) > 1 THEN {spread} / (COUNT({value}) - 1) END"
        return variance if function == "VAR_SAMP" else f"SQRT({variance})"

    def units_total(self, value: str, wide: bool) -> str:
        """The sum of units of decimals, NULL where it has more than 38 digits; in two parts, of which no number of rows
        makes one too large."""
        if not wide:
            return f"SUM(CAST({value} AS DECIMAL(20,0)))"
        half, whole = f"CAST('{HALVES}' AS {TYPES[WIDE]})", TYPES[WIDE]
        rest = f"CAST({value} AS {whole}) % {half}"
        inverse = f"CAST('1E-{HALF_DIGITS}' AS DECIMAL({HALF_DIGITS},{HALF_DIGITS}))"
        high = f"SUM(CAST((CAST({value} AS {whole}) - {rest}) * {inverse} AS DECIMAL(19,0)))"
        low = f"SUM(CAST({rest} AS DECIMAL(19,0)))"
        return f"TRY_ADD(TRY_MULTIPLY(CAST({high} AS {whole}), {half}), CAST({low} AS {whole}))"

    def quantile(self, value: str, rank: float) -> str:
        """The quantile of numbers, between two of them where it falls there."""
        listed = f"SORT_ARRAY(COLLECT_LIST(CAST({value} AS DOUBLE)))"
        place = f"((COUNT({value}) - 1) * {double(rank)})"
        low, high = (f"GET({listed}, CAST({shape}({place}) AS INTEGER))" for shape in ("FLOOR", "CEIL"))
        between = f"{low} * (1D - ({place} - FLOOR({place}))) + {high} * ({place} - FLOOR({place}))"
        return f"CASE WHEN FLOOR({place}) = CEIL({place}) THEN {low} ELSE {between} END"


def identifier(name: str) -> str:
    """A name in quotes; where settings of the session could replace a part of it, it is refused."""
    if "${" in name:
        raise Unsupported("this name", "Spark would replace what is in ${…}", "use another one")
    return "`" + name.replace("`", "``") + "`"


def double(value: float) -> str:
    """A literal double."""
    return f"({float(value)!r}D)" if value < 0 or math.copysign(1, value) < 0 else f"{float(value)!r}D"


def _sql(node: Node) -> str:
    """An expression in SQL."""
    write = WRITERS.get(type(node))
    if write is None:
        raise Unsupported(type(node).__name__.upper(), "Spark has nothing for it", "leave it out")
    return write(node)


def _infix(symbol: str) -> Write:
    return lambda node: f"({_sql(node.this)} {symbol} {_sql(node.expression)})"


def _prefixed(name: str) -> Write:
    return lambda node: f"{name}({_sql(node.this)})"


def _several(name: str) -> Write:
    return lambda node: f"{name}({', '.join(map(_sql, [node.this, *node.expressions]))})"


def _literal(node: exp.Literal) -> str:
    return texts.literal(str(node.this)) if node.is_string else str(node.this)


def _known(node: Node) -> str | None:
    """What a literal says; a number may have a sign before it."""
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    return str(node.this) if isinstance(node, exp.Literal) else None


def _cast(node: exp.Cast) -> str:
    kind, known = TYPES[node.to.this], _known(node.this)
    if known is not None and kind == "DOUBLE":
        return double(float(known))
    if known is not None and kind == "BIGINT":
        return f"({known}L)" if known.startswith("-") else f"{known}L"
    if known is not None and node.to.this == WIDE:
        return f"CAST('{known}' AS {kind})"
    if node.args.get("source") == "digits":
        return _held_digits(node.this)
    if known is not None and kind in ("DATE", moments.MOMENT):
        return f"{kind}'{known}'"
    if kind == "STRING" and node.args.get("source") == "real":
        raise Unsupported("a real as text", "Spark writes them otherwise", "CAST it to BIGINT first")
    if isinstance(node.this, exp.Sign):
        return _sign(_sql(node.this.this))
    return f"CAST({_sql(node.this)} AS {kind})"


def _held_digits(node: Node) -> str:
    """Arithmetic on two whole numbers of 38 digits, NULL where the result has more."""
    operator, *sides = units.sides(node)
    left, right = (f"CAST({_sql(side)} AS {TYPES[WIDE]})" for side in sides)
    return f"{TRIED[operator]}({left}, {right})"


def _is_wide(node: Node) -> bool:
    return isinstance(node, exp.Cast) and node.to.this == WIDE


def _absolute(node: exp.Abs) -> str:
    """Without a sign. Spark rounds decimals to 34 digits where it turns a sign, but not where it subtracts."""
    value = _sql(node.this)
    return f"CASE WHEN {value} < 0 THEN 0 - {value} ELSE {value} END" if _is_wide(node.this) else f"ABS({value})"


def _quotient(node: exp.IntDiv) -> str:
    """Without its fraction. DIV gives 64 bits; of more digits, what is divided is made a multiple of the divisor, which
    is a power of ten, and then multiplied by its inverse: both are exact, however few digits Spark keeps."""
    left, right = _sql(node.this), _sql(node.expression)
    if not _is_wide(node.this):
        return f"({left} DIV {right})"
    places = len(str(_known(node.expression.this))) - 1
    inverse = f"CAST('1E-{places}' AS DECIMAL({places},{places}))"
    return f"CAST(({left} - {left} % {right}) * {inverse} AS {TYPES[WIDE]})"


def _sign(value: str) -> str:
    """NaN, which is above all numbers, has the sign 0."""
    below, above = f"{value} < 0 THEN -1L", f"{value} <= CAST('Infinity' AS DOUBLE) THEN 1L"
    return f"CASE WHEN {below} WHEN {value} = 0 THEN 0L WHEN {above} WHEN {value} IS NOT NULL THEN 0L END"


def _try_cast(node: exp.TryCast) -> str:
    match node.args["source"]:
        case "column":
            return _sql(node.this)
        case "wide":
            return _fitting(node.this)
        case "real":
            # RINT rounds halves to even; 2^63 would count as in range.
            return f"TRY_CAST(RINT(NULLIF({_sql(node.this)}, {double(2.0**63)})) AS BIGINT)"
        case _:
            return f"TRY_CAST({_sql(node.this)} AS {TYPES[node.to.this]})"


def _fitting(node: Node) -> str:
    """Arithmetic of 128 bits whose result is wanted in 64: of 64 bits, NULL where that does not hold it."""
    if isinstance(node, exp.Abs):
        value = _narrow(node.this)
        return f"CASE WHEN {value} <> {LOWEST} THEN ABS({value}) END"
    left, right = _narrow(node.this), _narrow(node.expression)
    if isinstance(node, exp.IntDiv):
        return f"CASE WHEN {right} = -1L THEN TRY_SUBTRACT(0L, {left}) ELSE {left} DIV {right} END"
    if isinstance(node, exp.Mod):
        return f"({left} % {right})"
    return f"{TRIED[type(node)]}({left}, {right})"


def _narrow(node: Node) -> str:
    """What is cast to 128 bits, as it is; a divisor may be NULL for 0."""
    if isinstance(node, exp.Nullif):
        return f"NULLIF({_narrow(node.this)}, 0L)"
    if not isinstance(node, exp.Cast) or node.to.this != WIDE:
        raise Unsupported(type(node).__name__.upper(), "Spark has no such numbers", "leave it out")
    return f"{node.this.this}L" if isinstance(node.this, exp.Literal) else _sql(node.this)


def _case(node: exp.Case) -> str:
    said = " ".join(f"WHEN {_sql(arm.this)} THEN {_sql(arm.args['true'])}" for arm in node.args["ifs"])
    last = "" if node.args.get("default") is None else f" ELSE {_sql(node.args['default'])}"
    return f"CASE {said}{last} END"


def _added(symbol: str) -> Write:
    def write(node: Node) -> str:
        if isinstance(node.expression, exp.Interval):
            return moments.later(_sql(node.this), node.expression)
        left, right = _sql(node.this), _sql(node.expression)
        days = isinstance(node.this, exp.Cast) and node.this.to.this == exp.DType.DATE
        return f"DATEDIFF({left}, {right})" if days else f"({left} {symbol} {right})"

    return write


def _whole(name: str) -> Write:
    """A double without what is behind its point; on Spark, FLOOR and CEIL give whole numbers of 64 bits."""

    def write(node: Node) -> str:
        value = _sql(node.this)
        cut = f"{name}({value})" if name else f"CAST({value} AS BIGINT)"
        return f"CASE WHEN ABS({value}) < {double(WHOLE)} THEN CAST({cut} AS DOUBLE) ELSE {value} END"

    return write


def _power(node: exp.Pow) -> str:
    base, exponent = _sql(node.this), _sql(node.expression)
    plain = f"POWER({base}, {exponent})"
    if isinstance(node.expression, exp.Cast) and _known(node.expression.this) is not None:
        return plain
    # Java knows no powers of 1 and −1 to what is infinite.
    one = f"WHEN {base} = 1D AND {exponent} IS NOT NULL THEN 1D"
    return f"CASE {one} WHEN {base} = -1D AND ABS({exponent}) = CAST('Infinity' AS DOUBLE) THEN 1D ELSE {plain} END"


def _between(node: exp.Between) -> str:
    return f"({_sql(node.this)} BETWEEN {_sql(node.args['low'])} AND {_sql(node.args['high'])})"


def _like(node: exp.Like) -> str:
    pattern = node.expression
    lower = isinstance(pattern, exp.Anonymous)
    written = str((pattern.expressions[0] if lower else pattern).this)
    return texts.like(_sql(node.this), changed("LOWER", written) if lower else written)


def _logarithm2(value: str) -> str:
    """Exact for powers of two, and else a quotient."""
    log = f"(LN({value}) * {double(1 / math.log(2))})"
    return f"CASE WHEN POWER(2D, RINT({log})) = {value} THEN RINT({log}) ELSE {log} END"


def _called(node: exp.Anonymous) -> str:
    name, arguments = str(node.this), [_sql(argument) for argument in node.expressions]
    if name in FUNCTIONS:
        return FUNCTIONS[name](*arguments)
    if name not in SHARED:
        raise Unsupported(name, "Spark has nothing for it", "leave it out")
    return f"{SHARED[name]}({', '.join(arguments)})"


SHARED = {name: name for name in ("LN", "LOG10", "LEFT", "RIGHT", "SUBSTRING", "REPLACE", "SPLIT_PART", "CONTAINS")}
SHARED |= {"STARTS_WITH": "STARTSWITH", "ENDS_WITH": "ENDSWITH"}
"""Functions that give the same on both, on the arguments they get."""
FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "LOG2": _logarithm2,
    "LOWER": lambda text: texts.turned("LOWER", text),
    "UPPER": lambda text: texts.turned("UPPER", text),
    "TRIM": lambda text: texts.trimmed("BOTH", text),
    "LTRIM": lambda text: texts.trimmed("LEADING", text),
    "RTRIM": lambda text: texts.trimmed("TRAILING", text),
}
WRITERS: Mapping[type[Node], Write] = {
    exp.Column: lambda node: identifier(node.name),
    exp.Literal: _literal,
    exp.Boolean: lambda node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda node: "NULL",
    exp.Cast: _cast,
    exp.TryCast: _try_cast,
    exp.Paren: lambda node: _sql(node.this),
    exp.Add: _added("+"),
    exp.Sub: _added("-"),
    exp.Mul: _infix("*"),
    exp.Div: _infix("/"),
    exp.IntDiv: _quotient,
    exp.Mod: _infix("%"),
    exp.Neg: lambda node: f"(-{_sql(node.this)})",
    exp.Nullif: lambda node: f"NULLIF({_sql(node.this)}, {_sql(node.expression)})",
    exp.Abs: _absolute,
    exp.Round: _prefixed("ROUND"),
    exp.Floor: _whole("FLOOR"),
    exp.Ceil: _whole("CEIL"),
    exp.Trunc: _whole(""),
    exp.Sqrt: _prefixed("SQRT"),
    exp.Exp: _prefixed("EXP"),
    exp.Pow: _power,
    exp.Case: _case,
    exp.IsNan: _prefixed("ISNAN"),
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
    exp.Not: lambda node: f"(NOT {_sql(node.this)})",
    exp.Is: _infix("IS"),
    exp.In: lambda node: f"({_sql(node.this)} IN ({', '.join(map(_sql, node.expressions))}))",
    exp.Between: _between,
    exp.RegexpLike: lambda node: texts.matching(_sql(node.this), str(node.expression.this)),
    exp.Like: _like,
    exp.Length: _prefixed("LENGTH"),
    exp.DPipe: _infix("||"),
    exp.Extract: lambda node: moments.part(str(node.this.this), _sql(node.expression)),
    exp.TimestampTrunc: lambda node: moments.truncated(str(node.args["unit"].this), _sql(node.this)),
    exp.DateDiff: lambda node: moments.apart(_sql(node.expression), _sql(node.this), str(node.args["unit"].this)),
    exp.Anonymous: _called,
}

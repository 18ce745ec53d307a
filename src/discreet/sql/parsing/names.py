"""The words of SQL we know: which nodes of the parser's tree are which functions and types, and why others are refused.

>>> only(exp.maybe_parse("MIN(x, 3)", dialect="duckdb"), "this")
Traceback (most recent call last):
    ...
discreet.core.errors.Unsupported: MIN(x, 3) is refused: its part COUNT is not understood; leave it out
"""

from __future__ import annotations

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from discreet.core.errors import Unsupported
from discreet.sql.catalog import Type, nearest
from discreet.sql.functions.registry import FUNCTIONS

__all__ = [
    "BINARY",
    "COMPARISONS",
    "NAMED",
    "SEVERAL",
    "TYPES",
    "UNARY",
    "only",
    "refuse",
    "shown",
    "unknown",
    "written",
]

BINARY: dict[type[exp.Expr], str] = {
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.Pow: "power",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.DPipe: "concat",
    exp.Nullif: "nullif",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
    exp.Left: "left",
    exp.Right: "right",
}
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.ILike)
UNARY: dict[type[exp.Expr], str] = {
    exp.Not: "not",
    exp.Abs: "abs",
    exp.Sign: "sign",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Trunc: "trunc",
    exp.Sqrt: "sqrt",
    exp.Ln: "ln",
    exp.Exp: "exp",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "doy",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
SEVERAL: dict[type[exp.Expr], str] = {exp.Coalesce: "coalesce", exp.Least: "least", exp.Greatest: "greatest"}
NAMED = {
    "clamp": "clamp",
    "clip": "clamp",
    "dow": "dow",
    "weekday": "dow",
    "prefix": "starts_with",
    "suffix": "ends_with",
}
DIALECT = {"typed", "safe", "big_int", "ignore_nulls", "coalesce", "date_part_boundary", "fractions_supported"}
"""Marks the parser leaves about the dialect it read."""

TYPES: dict[exp.DType, Type] = {
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT), "integer"),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE), "real"),
    exp.DType.BOOLEAN: "boolean",
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR), "text"),
    exp.DType.DATE: "date",
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME), "timestamp"),
}
CHANGING = {"now", "today", "random", "setseed", "uuid", "gen_random_uuid", "nextval", "get_current_timestamp"}
REFUSALS: tuple[tuple[tuple[type[exp.Expr], ...], str, str], ...] = (
    (
        (exp.Window, exp.RowNumber),
        "a window looks at other people's rows",
        "aggregate with GROUP BY; divide by totals in the answer",
    ),
    (
        (exp.Rand, exp.Uuid, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.Localtimestamp),
        "its value does not follow from the row",
        "write a literal",
    ),
    (
        (exp.In, exp.Exists),
        "a subquery is a condition only in WHERE, joined by AND",
        "move it there, or JOIN the table",
    ),
    (
        (exp.Any, exp.All),
        "values are compared with a list by IN",
        "write x IN (1, 2), or x NOT IN (1, 2)",
    ),
    (
        (exp.Subquery, exp.Select),
        "a subquery that stands for a value would need a release of its own",
        "ask two questions, or JOIN",
    ),
    ((exp.AggFunc,), "an aggregate stands where a value of one row is needed", "move it to SELECT, HAVING or ORDER BY"),
    (
        (exp.Distinct,),
        "every row counts",
        "leave DISTINCT out, or SELECT DISTINCT with the unit in a subquery",
    ),
    (
        (exp.Interval,),
        "an interval is added to a date or compared to the difference of two timestamps",
        "write day + INTERVAL 3 DAY, or DATE_DIFF('day', from, to) and compare it to a number",
    ),
    ((exp.TimeToUnix,), "timestamps are not numbers here", "write DATE_DIFF('second', from, to)"),
    ((exp.Star, exp.Tuple), "one value is needed here", "name one column"),
    ((exp.Escape,), "engines differ on escapes", "use CONTAINS, STARTS_WITH or REPLACE"),
    (
        (exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace, exp.SimilarTo),
        "engines differ on regular expressions",
        "use LIKE, CONTAINS, STARTS_WITH, SPLIT_PART or SUBSTRING",
    ),
    ((exp.ToChar,), "engines differ on its formats", "write STRFTIME(x, '%Y-%m'), or DATE_TRUNC('month', x)"),
    ((exp.ConcatWs,), "its separators depend on which parts are NULL", "write a || '-' || b, or CONCAT(a, '-', b)"),
    ((exp.DateBin,), "buckets of time begin with a day, an hour or a minute", "use DATE_TRUNC"),
    ((exp.Placeholder, exp.Parameter), "a question is asked with all its values", "write the value"),
    ((exp.Collate,), "text is compared by code points", "use LOWER on both sides"),
)


def only(node: exp.Expr, *names: str) -> list[exp.Expr]:
    """The named parts of a node that are there; refuses it if it has others, or lacks one it needs."""
    if any(needed and node.args.get(name) is None for name, needed in node.arg_types.items()):
        raise refuse(node, "a part of it is missing", "write it in full")
    for name, part in node.args.items():
        if part and name not in names and name not in DIALECT:
            raise refuse(node, f"its part {name.strip('_').upper()} is not understood", "leave it out")
    return [node.args[name] for name in names if isinstance(node.args.get(name), exp.Expr)]


def refuse(node: exp.Expr, reason: str, remedy: str) -> Unsupported:
    """The error for a piece of SQL."""
    return Unsupported(shown(node), reason, remedy)


def shown(node: exp.Expr) -> str:
    """A node as its author wrote it, more or less."""
    text = written(node)
    return text if len(text) <= 60 else text[:59] + "…"


def written(node: exp.Expr) -> str:
    """A node as SQL; what DuckDB has no word for, in the words of PostgreSQL."""
    try:
        return node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError:
        return node.sql(dialect="postgres", comments=False, unsupported_level=ErrorLevel.IGNORE)


def unknown(node: exp.Expr) -> Unsupported:
    """The error for a node that nobody understands."""
    for kinds, reason, remedy in REFUSALS:
        if isinstance(node, kinds):
            return refuse(node, reason, remedy)
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in CHANGING:
        return refuse(node, "its value does not follow from the row", "write a literal")
    if name:
        known = sorted({*filter(str.isidentifier, FUNCTIONS), *NAMED, "date_part", "date_diff", "extract"})
        return refuse(node, f"{node.name} is not a function we know", nearest(name, known))
    return refuse(node, "it is not understood", "write it with arithmetic, CASE, CAST and functions of one row")

"""Random typed expressions, and a table of nasty rows to try them on."""

import datetime
import random
from fractions import Fraction
from typing import Any

import duckdb

from discreet.sql.catalog import Type
from discreet.sql.functions.dates import DIFFERENCES, FARTHEST, PARTS, TRUNCATIONS, shifted
from discreet.sql.functions.logical import CASTS
from discreet.sql.functions.registry import admit, call, cast
from discreet.sql.plan import Call, Expression, Literal, Ref

LONGS = [0, 1, -1, 2, 3, 7, 10, 12, 60, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
REALS = ["0.0", "-0.0", "1.0", "-1.0", "0.5", "2.5", "-2.5", "1e308", "-1e308", "1.7976931348623157e308", "5e-324"]
REALS += [
    "nan",
    "inf",
    "-inf",
    "0.1",
    "3.0",
    "1e-5",
    "123456789.125",
    "1e16",
    "9223372036854775808",
    "-0.49999999999999994",
]
TEXTS = [
    "",
    " ",
    "a",
    "A",
    "abc",
    "ABC",
    " pad ",
    "é",
    "É",
    "ß",
    "😀 smile",
    "日本語",
    "12",
    " 7 ",
    "-3",
    "2.5",
    "1e3",
    "nan",
    "inf",
]
TEXTS += [
    "%",
    "_",
    "a%b",
    "it's",
    'say "x"',
    "2020-02-29",
    "2021-02-29",
    "1969-12-31 23:59:59",
    "infinity",
    "null",
    "\u00a0x",
]
DATES = ["0001-01-01", "1582-10-15", "1899-12-31", "1969-12-31", "1970-01-01", "2000-02-29", "2024-12-30", "9999-12-31"]
DATES += ["infinity", "-infinity", "10000-01-01", "0044-03-15 (BC)"]
TIMES = [" 00:00:00", " 23:59:59.999999", " 12:34:56", " 01:02:03.5", " 09:00:00.12"]
KINDS: tuple[Type, ...] = ("integer", "real", "boolean", "text", "date", "timestamp")

COLUMNS: dict[str, Type] = {
    "i": "integer",
    "j": "integer",
    "small int": "integer",
    "x": "real",
    "y": "real",
    'sm"all': "real",
    "flag": "boolean",
    "s": "text",
    "Text": "text",
    "d": "date",
    "e": "date",
    "at": "timestamp",
    "until": "timestamp",
}
ENGINE = {"integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN", "text": "VARCHAR"}
ENGINE |= {"date": "DATE", "timestamp": "TIMESTAMP"}


def table(rng: random.Random, rows: int) -> tuple[duckdb.DuckDBPyConnection, list[dict[str, Any]]]:
    """A connection with the raw rows as `raw` and the admitted ones as `t`, and the latter in Python."""
    connection = duckdb.connect(config={"threads": 1})
    kinds = ", ".join(f"{_quoted(name)} {ENGINE[kind]}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE raw (place INTEGER, {kinds})")
    admitted = []
    for place in range(rows):
        cells = [_cell(rng, name, kind) for name, kind in COLUMNS.items()]
        admitted.append(dict(zip(COLUMNS, (value for _, value in cells), strict=True)))
        connection.execute(f"INSERT INTO raw VALUES ({place}, {', '.join(sql for sql, _ in cells)})")
    shown = ", ".join(f"{admit(name, kind).sql('duckdb')} AS {_quoted(name)}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE t AS SELECT place, {shown} FROM raw")
    return connection, admitted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(rng: random.Random, name: str, kind: Type) -> tuple[str, Any]:
    """A value as SQL, and what is admitted of it."""
    if rng.random() < 0.1:
        return "NULL", None
    if name == "small int":
        number = rng.randrange(-5, 21)
        return str(number), number
    if name == 'sm"all':
        real = rng.randrange(-20, 80) / 8
        return f"{real!r}::DOUBLE", real
    if kind == "integer":
        number = rng.choice(LONGS)
        return f"'{number}'::BIGINT", number
    if kind == "real":
        written = rng.choice(REALS)
        value = float(written)
        return f"'{written}'::DOUBLE", None if value != value or abs(value) == float("inf") else value + 0.0
    if kind == "boolean":
        return rng.choice([("TRUE", True), ("FALSE", False)])
    if kind == "text":
        text = rng.choice(TEXTS)
        return "'" + text.replace("'", "''") + "'", text
    day = rng.choice(DATES)
    plain = len(day) == 10 and day[0].isdigit()
    if kind == "date":
        return f"'{day}'::DATE", datetime.date.fromisoformat(day) if plain else None
    time = rng.choice(TIMES) if plain else ""
    return f"'{day}{time}'::TIMESTAMP", datetime.datetime.fromisoformat(day + time.ljust(3)) if plain else None


class Maker:
    """Random expressions of a wanted type."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.used: set[str] = set()

    def make(self, kind: Type, depth: int) -> Expression:
        if depth == 0 or self.rng.random() < 0.1:
            return self._leaf(kind)
        expression = getattr(self, "_" + kind)(depth - 1)
        if isinstance(expression, Call):
            self.used.add(expression.function)
        return expression

    def _leaf(self, kind: Type) -> Expression:
        if self.rng.random() < 0.6:
            return Ref(self.rng.choice([name for name, held in COLUMNS.items() if held == kind]), kind)
        return Literal(None, kind) if self.rng.random() < 0.1 else self._literal(kind)

    def _literal(self, kind: Type) -> Literal:
        rng = self.rng
        if kind == "integer":
            return Literal(rng.choice(LONGS), kind)
        if kind == "real":
            return Literal(Fraction(rng.choice([value for value in REALS if value[-1].isdigit()])), kind)
        if kind == "boolean":
            return Literal(rng.random() < 0.5, kind)
        if kind == "text":
            return Literal(rng.choice(TEXTS), kind)
        day = datetime.date.fromisoformat(rng.choice([day for day in DATES if len(day) == 10 and day[0].isdigit()]))
        if kind == "date":
            return Literal(day, kind)
        return Literal(datetime.datetime.combine(day, datetime.time(rng.randrange(24), 30, 1, 250_000)), kind)

    def _common(self, kind: Type, depth: int) -> Expression | None:
        """What can give any type."""
        make, rng = self.make, self.rng
        choice = rng.randrange(8)
        if choice == 0:
            return call("coalesce", *(make(kind, depth) for _ in range(rng.randrange(1, 4))))
        if choice == 1:
            return call("nullif", make(kind, depth), make(kind, depth))
        if choice == 2:
            pairs = [part for _ in range(rng.randrange(1, 3)) for part in (make("boolean", depth), make(kind, depth))]
            return call("case", *pairs, make(kind, depth))
        if choice == 3 and kind != "boolean":
            name = rng.choice(["least", "greatest"])
            return call(name, *(make(kind, depth) for _ in range(rng.randrange(1, 4))))
        if choice == 4:
            source = rng.choice([source for source in KINDS if kind in CASTS[source] and source != kind])
            value = make(source, depth)
            return cast(value, kind) if not isinstance(value, Literal) else value if value.type == kind else None
        return None

    def _integer(self, depth: int) -> Expression:
        make, rng = self.make, self.rng
        if (common := self._common("integer", depth)) is not None:
            return common
        choice = rng.randrange(10)
        if choice < 5:
            name = rng.choice(["+", "-", "*", "//", "%"])
            return call(name, make("integer", depth), make("integer", depth))
        if choice == 5:
            name = rng.choice(["negate", "abs", "sign", "round", "floor", "ceil", "trunc"])
            return call(name, make("integer", depth))
        if choice == 6:
            moment: Type = rng.choice(["date", "timestamp"])
            return call(rng.choice(list(PARTS)), make(moment, depth))
        if choice == 7:
            unit = Literal(rng.choice(list(DIFFERENCES)), "text")
            ends = make("date", depth), make("timestamp", depth)
            return rng.choice([call("days", *ends), call("date_diff", unit, *ends)])
        if choice == 8:
            low, high = sorted(rng.sample(LONGS, 2))
            return call("clamp", make("integer", depth), Literal(low, "integer"), Literal(high, "integer"))
        ends = (Literal(Fraction(-2), "real"), Literal(Fraction(21, 10), "real"))
        bucket = call("width_bucket", make("real", depth), *ends, Literal(rng.randrange(1, 9), "integer"))
        return rng.choice([call("length", make("text", depth)), call("sign", make("real", depth)), bucket])

    def _real(self, depth: int) -> Expression:
        make, rng = self.make, self.rng
        if (common := self._common("real", depth)) is not None:
            return common
        choice = rng.randrange(9)
        if choice < 4:
            name = rng.choice(["+", "-", "*", "/", "%"])
            return call(name, make("real", depth), make(rng.choice(["integer", "real"]), depth))
        if choice < 7:
            names = ["negate", "abs", "round", "floor", "ceil", "trunc", "sqrt", "ln", "log10", "log2", "exp"]
            return call(rng.choice(names), make("real", depth))
        if choice == 7:
            exponents = [Fraction(2), Fraction(3), Fraction(-1), Fraction(1, 2), Fraction(-1, 2), Fraction(0)]
            literal = Literal(rng.choice(exponents), "real")
            return call(
                "power", make("real", depth), rng.choice([literal, make("real", depth), make("integer", depth)])
            )
        low, high = sorted(rng.sample([Fraction(-1), Fraction(1, 3), Fraction(5), Fraction(10**300)], 2))
        return call("clamp", make("real", depth), Literal(low, "real"), Literal(high, "real"))

    def _boolean(self, depth: int) -> Expression:
        make, rng = self.make, self.rng
        if (common := self._common("boolean", depth)) is not None:
            return common
        kind: Type = rng.choice(KINDS)
        ordered: Type = rng.choice([kind for kind in KINDS if kind != "boolean"])
        choice = rng.randrange(9)
        if choice < 2:
            return call(rng.choice(["=", "<>"]), make(kind, depth), make(kind, depth))
        if choice < 4:
            return call(rng.choice(["<", "<=", ">", ">="]), make(ordered, depth), make(ordered, depth))
        if choice == 4:
            return call(rng.choice(["and", "or"]), *(make("boolean", depth) for _ in range(rng.randrange(2, 5))))
        if choice == 5:
            return rng.choice([call("not", make("boolean", depth)), call("is null", make(kind, depth))])
        if choice == 6:
            return call("in", *(make(kind, depth) for _ in range(rng.randrange(2, 5))))
        if choice == 7:
            return call("between", *(make(ordered, depth) for _ in range(3)))
        if rng.random() < 0.5:
            return call(
                "like", make("text", depth), Literal(rng.choice(["%", "_", "a%", "%b_", "", "%😀%", "A__"]), "text")
            )
        name = rng.choice(["starts_with", "ends_with", "contains"])
        return call(name, make("text", depth), make("text", depth))

    def _text(self, depth: int) -> Expression:
        make, rng = self.make, self.rng
        if (common := self._common("text", depth)) is not None:
            return common
        choice = rng.randrange(5)
        text = make("text", depth)
        if choice == 0:
            return call(rng.choice(["lower", "upper", "trim", "ltrim", "rtrim"]), text)
        if choice == 1:
            return call("concat", text, make("text", depth))
        place = Literal(rng.choice([1, 2, 3, 1000]), "integer")
        length = Literal(rng.choice([0, 1, 2, 5, 1_000_000]), "integer")
        if choice == 2:
            return rng.choice([call("left", text, length), call("right", text, length), call("skip", text, place)])
        if choice == 3:
            return call("substring", text, place, length)
        if choice == 4 and rng.random() < 0.5:
            by, number = Literal(rng.choice(["a", " ", "😀", "ab"]), "text"), Literal(rng.choice([1, 2, 7]), "integer")
            return call("split_part", text, by, number)
        found, put = rng.choice(["a", " ", "é", "😀", "''"]), rng.choice(["", "b", "12", "日本"])
        return call("replace", text, Literal(found, "text"), Literal(put, "text"))

    def _date(self, depth: int) -> Expression:
        return self._common("date", depth) or self._truncated("date", depth)

    def _timestamp(self, depth: int) -> Expression:
        if self.rng.random() < 0.2:
            counts = [0, 1, -1, 11, -13, 31, 59_999, -100_000]
            return shifted(self.make("timestamp", depth), self.rng.choice(counts), self.rng.choice(list(FARTHEST)))
        return self._common("timestamp", depth) or self._truncated("timestamp", depth)

    def _truncated(self, kind: Type, depth: int) -> Expression:
        return call("date_trunc", Literal(self.rng.choice(TRUNCATIONS), "text"), self.make(kind, depth))

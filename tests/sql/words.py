"""Random expressions over the columns in sight: numbers, texts, conditions, keys.

What stands between « and » is for plain DuckDB only. There an integer that overflows would be an error, a division by
zero too, and a CAST of what does not fit: here all of them are NULL.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tests.sql.worlds import CITIES, Dice, Held


class Value(NamedTuple):
    """An expression, its type, and whether it has known bounds."""

    text: str
    kind: str
    bounded: bool = False


@dataclass(frozen=True)
class Scope:
    """What FROM offers: columns, the unit as the analyst sees it, the owner as the reference does."""

    source: str
    columns: dict[str, Value]
    unit: str | None
    owner: str
    before: str = ""
    base: str | None = None
    """The name of `visits` where it is all there is, so that subqueries can refer to it."""

    def of(self, *kinds: str) -> list[Value]:
        return [column for column in self.columns.values() if column.kind in kinds]


def seen(columns: dict[str, Held], source: str = "") -> dict[str, Value]:
    """Columns of a table, under its name if there is one."""
    return {
        name: Value(f"{source}.{name}" if source else name, held.kind, held.bounds is not None)
        for name, held in columns.items()
    }


def finite(value: Value) -> str:
    """A value as a subquery or an aggregate has it: reals that are no numbers are NULL."""
    return f"«fin(»{value.text}«)»" if value.kind == "real" else value.text


class Words:
    """Writes expressions."""

    def __init__(self, dice: Dice, tame: bool) -> None:
        self.dice = dice
        self.tame = tame
        self.tags: set[str] = set()

    def bounded(self, scope: Scope, depth: int) -> Value:
        """A number with known bounds."""
        value = self.number(scope, depth)
        if value.bounded:
            return value
        low, high = self.dice.pick(("-50", "200"), ("0", "12"), ("-1.5e0", "1e6"))
        kind = value.kind if "e" not in low else "real"
        return Value(f"CLAMP({value.text}, {low}, {high})", kind, True)

    def number(self, scope: Scope, depth: int) -> Value:
        dice = self.dice
        known = [column for column in scope.of("integer", "real") if column.bounded]
        leaf = dice.pick(*(known or scope.of("integer", "real") or [Value("7", "integer", True)]))
        if depth == 0 or dice.chance(0.45):
            return leaf
        if dice.chance(0.3):
            return self._from_others(scope, depth - 1)
        first = self.number(scope, depth - 1)
        if dice.chance(0.5):
            return self._unary(first)
        return self._binary(first, self.number(scope, depth - 1), scope, depth)

    def _binary(self, a: Value, b: Value, scope: Scope, depth: int) -> Value:
        kind = "integer" if a.kind == b.kind == "integer" else "real"
        both = a.bounded and b.bounded
        return self.dice.pick(
            Value(f"«TRY(»({a.text} + {b.text})«)»", kind, both),
            Value(f"«TRY(»({a.text} - {b.text})«)»", kind, both),
            Value(f"«TRY(»({a.text} * {b.text})«)»", kind, both),
            Value(f"({a.text} / «NULLIF(»{b.text}«, 0)»)", "real"),
            Value(f"LEAST({a.text}, {b.text})", kind, both),
            Value(f"GREATEST({a.text}, {b.text}, 2)", kind, both),
            Value(f"COALESCE({a.text}, {b.text}, 0)", kind, both),
            Value(f"CASE WHEN {self.condition(scope, depth - 1)} THEN {a.text} ELSE {b.text} END", kind, both),
            Value(f"CASE {a.text} WHEN 1 THEN {b.text} WHEN 3 THEN 4 END", kind if b.kind == "integer" else "real"),
        )

    def _unary(self, a: Value) -> Value:
        whole = [
            Value(f"(«TRY(»{a.text} // 7«)»)", "integer", a.bounded),
            Value(f"(«TRY(»{a.text} % 5«)»)", "integer", a.bounded),
        ]
        return self.dice.pick(
            *(whole if a.kind == "integer" else []),
            Value(f"«TRY(»(-({a.text}))«)»", a.kind, a.bounded),
            Value(f"«TRY(»ABS({a.text})«)»", a.kind, a.bounded),
            Value(f"({a.text} / 8)", "real", a.bounded),
            Value(f"({a.text} * 2.5e0)", "real", a.bounded),
            Value(f"SQRT(ABS(CAST({a.text} AS DOUBLE)))", "real", a.bounded),
            Value(f"FLOOR({a.text} / 10)", "real", a.bounded),
            Value(f"ROUND({a.text} / 4{', 1' * self.tame})", "real", a.bounded),
            Value(f"POWER({a.text}, 2)", "real", a.bounded),
            Value(f"NULLIF({a.text}, 3)", a.kind, a.bounded),
            Value(f"«TRY_»CAST({a.text} AS BIGINT)", "integer", a.bounded),
            Value(f"CAST({a.text} AS DOUBLE)", "real", a.bounded),
            Value(f"SIGN({a.text})", "integer", True),
        )

    def _from_others(self, scope: Scope, depth: int) -> Value:
        """Numbers of dates, texts and conditions."""
        choices = [Value(f"CAST(({self.condition(scope, depth)}) AS BIGINT)", "integer", True)]
        for day in (column.text for column in scope.of("date", "timestamp")):
            self.tags.add("date part")
            choices += [
                Value(f"MONTH({day})", "integer", True),
                Value(f"EXTRACT(dow FROM {day})", "integer", True),
                Value(f"YEAR({day})", "integer"),
                Value(f"DATE_DIFF('day', DATE '2000-01-01', {day})", "integer"),
            ]
        choices += [Value(f"LENGTH({column.text})", "integer") for column in scope.of("text")]
        return self.dice.pick(*choices)

    def text(self, scope: Scope) -> str:
        dice = self.dice
        columns = [column.text for column in scope.of("text")]
        if not columns:
            return "CAST(" + self.dice.pick(*scope.columns.values()).text + " AS VARCHAR)"
        name = dice.pick(*columns)
        if dice.chance(0.4):
            return name
        self.tags.add("text function")
        return dice.pick(
            f"UPPER({name})",
            f"LOWER({name})",
            f"LEFT({name}, {dice.between(0, 2)})",
            f"SUBSTRING({name}, 2, 2)",
            f"TRIM({name})",
            f"REPLACE({name}, 'o', '0')",
            f"({name} || '!')",
            f"COALESCE({name}, 'none')",
            f"NULLIF({name}, '')",
        )

    def condition(self, scope: Scope, depth: int) -> str:
        dice = self.dice
        if depth > 0 and dice.chance(0.25):
            one, other = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
            return dice.pick(f"({one}) AND ({other})", f"({one}) OR ({other})", f"NOT ({one})")
        kind = dice.below(4)
        if kind == 0:
            return self._about_text(self.text(scope))
        if kind == 1 and (found := self._about_moments(scope)):
            return found
        if kind == 2 and (flags := scope.of("boolean")):
            flag = dice.pick(*flags).text
            return dice.pick(flag, f"{flag} IS TRUE", f"NOT {flag}", f"COALESCE({flag}, TRUE)")
        number = self.number(scope, min(depth, 1)).text
        return dice.pick(
            f"{number} > {dice.between(-3, 60)}",
            f"{number} <= {dice.between(0, 300)}.5e0",
            f"{number} <> 1",
            f"{number} BETWEEN {dice.between(-5, 10)} AND {dice.between(10, 400)}",
            f"{number} IN (1, 2, 3, {dice.below(90)})",
            f"{number} IS NOT NULL",
            f"{number} < {self.number(scope, 0).text}",
        )

    def _about_text(self, text: str) -> str:
        dice = self.dice
        return dice.pick(
            f"{text} LIKE '%{dice.pick('o', 'i', 'm', '')}%'",
            f"{text} LIKE '{dice.pick('O', 'R', '_')}%'",
            f"{text} IN ('Rome', 'a', 'x', 'Zürich')",
            f"{text} = '{dice.pick(*CITIES, 'x', '')}'",
            f"{text} <> 'Oslo'",
            f"{text} IS NULL",
            f"{text} >= 'M'",
            f"STARTS_WITH({text}, 'R')",
            f"CONTAINS({text}, 'a')",
        )

    def _about_moments(self, scope: Scope) -> str | None:
        columns = [column.text for column in scope.of("date", "timestamp")]
        if not columns:
            return None
        self.tags.add("moment")
        day = self.dice.pick(*columns)
        return self.dice.pick(
            f"{day} > DATE '1970-01-01'",
            f"{day} BETWEEN '1960-01-01' AND '1999-12-31'",
            f"YEAR({day}) < 1990",
            f"EXTRACT(month FROM {day}) IN (1, 2, 3, 12)",
            f"DATE_TRUNC('month', {day}) <> DATE '1999-01-01'",
        )

    def key(self, scope: Scope) -> Value:
        """Something to group by; some of it can be listed from what is declared."""
        dice = self.dice
        if dice.chance(0.35) and (texts := scope.of("text")):
            return dice.pick(*texts)
        kind = dice.below(6)
        if kind == 0 and (days := scope.of("date", "timestamp")):
            self.tags.add("key of dates")
            day = dice.pick(*days).text
            part = dice.pick(f"MONTH({day})", f"EXTRACT(dow FROM {day})", f"QUARTER({day})", f"YEAR({day}) // 10")
            return dice.pick(Value(part, "integer"), Value(f"DATE_TRUNC('year', {day})", "date"))
        if kind == 1:
            return Value(self.text(scope), "text")
        if kind == 2:
            return Value(f"({self.condition(scope, 1)})", "boolean")
        number = self.number(scope, 0).text
        if kind == 3:
            return Value(f"CASE WHEN {number} > 30 THEN 'high' WHEN {number} > 3 THEN 'mid' ELSE 'low' END", "text")
        if kind == 4:
            self.tags.add("bins")
            return Value(f"FLOOR({number} / {dice.pick(2, 10, 100)}) * 10", "real")
        whole = scope.of("integer", "boolean")
        return dice.pick(*whole) if whole else Value(f"{number} IS NULL", "boolean")

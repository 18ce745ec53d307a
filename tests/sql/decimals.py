"""Random expressions over decimals, and rows of the nastiest of them, for every engine."""

import random
from fractions import Fraction
from typing import Any

from discreet.core.errors import Unsupported
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals
from discreet.sql.functions.registry import call, cast, weight
from discreet.sql.plan import Call, Expression, Literal, Ref

COLUMNS: dict[str, Type] = {
    "price": Decimals.of(15, 2),
    "rate": Decimals.of(4, 4),
    "long": Decimals.of(18, 3),
    "whole": Decimals.of(25, 0),
    "wide": Decimals.of(38, 10),
    "fine": Decimals.of(38, 38),
    "n": "integer",
    "x": "real",
}
INTEGERS = [0, 1, -1, 2, 7, 10**6, 2**53 + 1, 2**63 - 1, -(2**63)]
REALS = [0.0, 0.07, -0.07, 0.05, 0.1 + 0.2, 2.5, -2.5, 0.125, 1e15, 1e30, 1e300, -1e300, 123456.785]
LITERALS = ["0.06", "0.01", "0.07", "-0.05", "1.5", "100.0", "0.125", "2.675", "12345678901234567890.5", "1" * 38]
LARGEST = 60
"""How large an expression may be: SQL repeats some of its parts."""
TARGETS = [(1, 0), (3, 2), (5, 1), (18, 4), (19, 0), (20, 10), (38, 2), (38, 12)]


def rows(rng: random.Random, many: int) -> list[dict[str, Any]]:
    """Rows with ends of each type, numbers next to 0, halves and the numbers of every day; decimals as Fractions."""
    return [{name: _cell(rng, kind) for name, kind in COLUMNS.items()} for _ in range(many)]


def _cell(rng: random.Random, kind: Type) -> Any:
    if rng.random() < 0.08:
        return None
    if not isinstance(kind, Decimals):
        return rng.choice(INTEGERS if kind == "integer" else REALS)
    most = 10**kind.precision - 1
    digit = 10 ** rng.randrange(kind.precision)
    usual = rng.randrange(-(10**4), 10**4)
    units = rng.choice([0, 1, -1, most, -most, 5 * digit, -5 * digit, 5 * digit - 1, 10 * digit, usual, usual])
    return Fraction(max(min(units, most), -most), 10**kind.scale)


class Maker:
    """Random expressions, most of them of decimals."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.used: set[str] = set()

    def any(self, depth: int) -> Expression:
        """An expression of some type."""
        while True:
            try:
                made = self.rng.choice([self.decimal, self.decimal, self.boolean, self.integer, self.text])(depth)
            except Unsupported:
                # A product with more than 38 digits behind the point.
                continue
            if isinstance(made, Call) and weight(made) <= LARGEST:
                return made

    def decimal(self, depth: int) -> Expression:
        rng = self.rng
        if depth == 0:
            columns = [Ref(name, kind) for name, kind in COLUMNS.items() if isinstance(kind, Decimals)]
            return rng.choice([*columns, self._literal(), self._literal()])
        below, choice = depth - 1, rng.randrange(12)
        if choice < 4:
            return self._called(rng.choice(["+", "-", "*"]), self.decimal(below), self._exact(below))
        if choice == 4:
            return self._called(rng.choice(["negate", "abs", "round", "floor", "ceil", "trunc"]), self.decimal(below))
        if choice == 5:
            return self._called("%", self.decimal(below), self._exact(below))
        if choice == 6:
            return self._called("case", self.boolean(below), self.decimal(below), self._exact(below))
        if choice == 7:
            name = rng.choice(["coalesce", "least", "greatest", "nullif"])
            return self._called(name, self.decimal(below), self._exact(below))
        if choice == 8:
            low, high = sorted([self._literal(), self._literal()], key=lambda literal: Fraction(literal.value))
            return self._called("clamp", self.decimal(below), low, high)
        target = Decimals.of(*rng.choice(TARGETS))
        made = cast(rng.choice([self.decimal, self.decimal, self._exact, self._real])(below), target)
        self.used.add("cast")
        return made

    def boolean(self, depth: int) -> Expression:
        rng, below = self.rng, max(depth - 1, 0)
        others = [self._exact, self._exact, self._real]
        choice = rng.randrange(4)
        if choice < 2:
            name = rng.choice(["=", "<>", "<", "<=", ">", ">="])
            return self._called(name, self.decimal(below), rng.choice(others)(below))
        if choice == 2:
            return self._called("between", rng.choice(others)(below), self.decimal(below), self._exact(below))
        return self._called("in", self.decimal(below), *(rng.choice(others)(below) for _ in range(3)))

    def integer(self, depth: int) -> Expression:
        if self.rng.random() < 0.3:
            return self._called("sign", self.decimal(depth))
        self.used.add("cast")
        return cast(self.decimal(depth), "integer")

    def text(self, depth: int) -> Expression:
        return cast(self.decimal(depth), "text")

    def _exact(self, depth: int) -> Expression:
        if self.rng.random() < 0.7:
            return self.decimal(depth)
        return self.rng.choice([Ref("n", "integer"), Literal(self.rng.choice(INTEGERS), "integer")])

    def _real(self, depth: int) -> Expression:
        """A double: a column, or a decimal as one, of which every engine knows the nearest."""
        return self.rng.choice([Ref("x", "real"), cast(Ref("price", COLUMNS["price"]), "real")])

    def _literal(self) -> Literal:
        value = Fraction(self.rng.choice(LITERALS))
        return Literal(value, Decimals.holding(value))

    def _called(self, name: str, *arguments: Expression) -> Expression:
        self.used.add(name)
        return call(name, *arguments)


def shown(value: Any, kind: Type) -> Any:
    """What an engine gives for a value: for a decimal its units."""
    return int(value * 10**kind.scale) if isinstance(kind, Decimals) and value is not None else value

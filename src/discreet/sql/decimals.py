"""Exact decimals: numbers with a fixed count of digits behind the point.

What an analyst writes as 0.06, and what a DECIMAL column holds, is a whole number of units of 10^-scale. Statements
compute with those whole numbers, on every engine: in 64 bits where the precision says that they fit, in as many digits
as `DIGITS` where it does not. So sums, products, comparisons and roundings of decimals are exact; a result that would
need more digits than `DIGITS` is NULL, alike on every engine, and never an error. Doubles come in only where somebody
asks for them: beside a DOUBLE column, in a quotient, in functions such as SQRT.

>>> price, discount = Decimals.of(15, 2), Decimals.of(4, 2)
>>> price.times(discount), price.plus(discount), price.widest(Decimals.of(6, 4))
('decimal(19,4)', 'decimal(16,2)', 'decimal(17,4)')
>>> Decimals.holding(Fraction(6, 100)), price.units(Fraction(6, 100))
('decimal(2,2)', 6)
>>> Decimals.named("DECIMAL(15, 2)").scale, Decimals.named("decimal(99,2)")
(2, None)
"""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["DIGITS", "LONG_DIGITS", "WHOLE_DIGITS", "Decimals"]

DIGITS = 38
"""Digits of the largest decimal: those of DECIMAL on DuckDB and Spark."""
LONG_DIGITS = 18
"""Any whole number of so many digits has 64 bits."""
WHOLE_DIGITS = 19
"""No whole number of 64 bits has more digits."""
_NAMED = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)", re.ASCII | re.IGNORECASE)


class Decimals(str):
    """The type of decimals with so many digits, `scale` of them behind the point; as text, `decimal(15,2)`."""

    __slots__ = ("precision", "scale")
    precision: int
    scale: int

    @classmethod
    def of(cls, precision: int, scale: int) -> Decimals:
        """The type; digits that no decimal has are left out at the front."""
        held = max(min(precision, DIGITS), scale, 1)
        made = cls(f"decimal({held},{scale})")
        made.precision, made.scale = held, scale
        return made

    @classmethod
    def named(cls, name: str) -> Decimals | None:
        """The type of that name, None if it names none."""
        found = _NAMED.fullmatch(name) if isinstance(name, str) else None
        if found is None:
            return None
        precision, scale = map(int, found.groups())
        return cls.of(precision, scale) if 1 <= precision <= DIGITS and scale <= precision else None

    @classmethod
    def holding(cls, value: Fraction) -> Decimals | None:
        """The narrowest type that holds a number exactly, None if none does."""
        scale = next((places for places in range(DIGITS + 1) if 10**places % value.denominator == 0), None)
        if scale is None:
            return None
        digits = len(str(abs(int(value * 10**scale))))
        return cls.of(max(digits, scale), scale) if digits <= DIGITS else None

    def __reduce__(self) -> tuple[object, ...]:
        return Decimals.of, (self.precision, self.scale)

    @property
    def unit(self) -> Fraction:
        """The number of which all values are whole multiples."""
        return Fraction(1, 10**self.scale)

    @property
    def most(self) -> Fraction:
        """The largest value."""
        return Fraction(10**self.precision - 1, 10**self.scale)

    @property
    def whole_digits(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale

    def holds(self, value: Fraction | int) -> bool:
        """Whether a number is one of the values."""
        return -self.most <= value <= self.most and (Fraction(value) / self.unit).denominator == 1

    def units(self, value: Fraction | int) -> int:
        """A value in units; it must be a whole number of them."""
        units = Fraction(value) / self.unit
        if units.denominator != 1:
            raise ValueError("a number with more digits behind the point than its type has")
        return units.numerator

    def widest(self, other: Decimals) -> Decimals:
        """The type in which values of both are compared."""
        scale = max(self.scale, other.scale)
        return Decimals.of(max(self.whole_digits, other.whole_digits) + scale, scale)

    def plus(self, other: Decimals) -> Decimals:
        """The type of sums and differences."""
        both = self.widest(other)
        return Decimals.of(both.precision + 1, both.scale)

    def times(self, other: Decimals) -> Decimals | None:
        """The type of products; None if they have more digits behind the point than a decimal can have."""
        scale = self.scale + other.scale
        return Decimals.of(self.precision + other.precision, scale) if scale <= DIGITS else None

    def rounded(self, scale: int) -> Decimals:
        """The type after rounding to fewer digits behind the point."""
        return Decimals.of(self.whole_digits + 1 + scale, scale) if scale < self.scale else self

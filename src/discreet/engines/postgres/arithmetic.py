"""Arithmetic of doubles on PostgreSQL, which fails where a result is too large or too small for a double.

A failure would say something about a row, so results are as in IEEE 754 instead: ±∞ and 0. A `Piece` is SQL with what
is known of the sizes of its values; where sizes leave no doubt an operator stays as it is, and otherwise a CASE looks
at them first. The test for the common sizes comes first; the others scale by powers of two, which rounds nothing, and
then decide exactly.

>>> price, three = Piece('"price"'), literal(3.0)
>>> added(three, three).sql
"(float8 '3.0' + float8 '3.0')"
>>> multiplied(price, three).sql        # doctest: +ELLIPSIS
'CASE WHEN ("price" BETWEEN ...) THEN "price" * float8 \\'3.0\\' ...
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from discreet.sql.catalog import RESERVED
from discreet.sql.statement.dialect import quoted
from discreet.sql.statement.naming import ROWS

__all__ = [
    "INFINITY",
    "LARGEST",
    "Piece",
    "added",
    "bound",
    "divided",
    "either",
    "exponential",
    "literal",
    "logarithm2",
    "multiplied",
    "power",
    "rounded",
]

LEAST, MOST, UNLIMITED = -1074, 1024, 1025
"""Powers of two between which doubles lie, and what stands for the size of infinities and NaN."""
INFINITY = "float8 'Infinity'"
USUAL = 500
"""The power of two within which sizes are common: products and quotients of two such are doubles."""
SHORT = 48
"""Characters of SQL that are rather repeated than named."""
EXPONENTS = (-745.133219101941, 709.782712893384)
"""e to these powers, and to those between, is a double other than 0."""
OVERFLOW, UNDERFLOW = 709.7827, -745.133
"""Natural logarithms of the largest and the smallest powers that are computed: logarithms are off by a little."""


@dataclass(frozen=True)
class Piece:
    """SQL; if it is a double, values other than 0 lie from 2^low to below 2^high in size."""

    sql: str
    low: int = LEAST
    high: int = UNLIMITED


def literal(value: float) -> Piece:
    """A double."""
    exponent = math.frexp(value)[1]
    return Piece(f"float8 '{float(value)!r}'", *((exponent - 1, exponent) if value else (0, 0)))


LARGEST = literal(sys.float_info.max).sql


def bound(make: Callable[..., str], *values: Piece) -> str:
    """SQL that uses each of the values any number of times; long ones are computed once, under a name.

    The name is a digest of what it stands for: in whatever scope, two things of one name are the same thing.
    """
    names = [v.sql if len(v.sql) <= SHORT else quoted(f"{RESERVED}{_digest(v.sql)}") for v in values]
    long = {name: v.sql for name, v in zip(names, values, strict=True) if len(v.sql) > SHORT}
    named = [f"{sql} AS {name}" for name, sql in long.items()]
    if not named:
        return make(*names)
    # OFFSET 0 keeps the planner from putting the expressions back in.
    return f"(SELECT {make(*names)} FROM (SELECT {', '.join(named)} OFFSET 0) AS {quoted(ROWS)})"


def _digest(sql: str) -> str:
    return sha256(sql.encode(errors="surrogatepass")).hexdigest()[:32]


def either(*values: Piece) -> tuple[int, int]:
    """The sizes of values that are one of several."""
    return min((v.low for v in values), default=LEAST), max((v.high for v in values), default=UNLIMITED)


def added(left: Piece, right: Piece, sign: str = "+") -> Piece:
    """The sum, or with `-` the difference."""
    high = max(left.high, right.high) + 1
    if high <= MOST:
        return Piece(f"({left.sql} {sign} {right.sql})", LEAST, high)
    near = _power(MOST - 2)

    def guarded(a: str, b: str) -> str:
        tests = [f"{n} BETWEEN -{near} AND {near}" for n, v in ((a, left), (b, right)) if v.high >= MOST - 1]
        return (
            f"CASE WHEN {' AND '.join(tests)} THEN {a} {sign} {b}"
            f" WHEN {_odd(a)} OR {_odd(b)} OR ABS({a}) < 1 OR ABS({b}) < 1 THEN {a} {sign} {b}"
            f" WHEN ABS({a} * 0.5 {sign} {b} * 0.5) >= {_power(MOST - 1)} THEN {_signed(f'{a} < 0')}"
            f" ELSE {a} {sign} {b} END"
        )

    return Piece(bound(guarded, left, right))


def multiplied(left: Piece, right: Piece) -> Piece:
    """The product."""
    low, high = left.low + right.low, left.high + right.high
    if max(left.high, right.high, high) < MOST and low >= LEAST:
        return Piece(f"({left.sql} * {right.sql})", low, high)

    def guarded(a: str, b: str) -> str:
        scaled = [f"(ABS({a}) * {_power(s)}) * (ABS({b}) * {_power(s)})" for s in (-512, 512)]
        return (
            f"CASE WHEN {_usual(a, b, left, right, 1)} THEN {a} * {b}"
            f" WHEN {a} = 0 OR {b} = 0 OR {_odd(a)} OR {_odd(b)} THEN {a} * {b}"
            f" WHEN ABS({a}) >= 1 AND ABS({b}) >= 1 THEN"
            f" CASE WHEN {scaled[0]} >= 1 THEN {_signed(f'({a} < 0) <> ({b} < 0)')} ELSE {a} * {b} END"
            f" WHEN ABS({a}) >= 1 OR ABS({b}) >= 1 THEN {a} * {b}"
            f" WHEN ABS({a}) < {_power(-540)} AND ABS({b}) < {_power(-540)} THEN float8 '0'"
            f" WHEN {scaled[1]} <= {_power(-51)} THEN float8 '0' ELSE {a} * {b} END"
        )

    return Piece(bound(guarded, left, right))


def divided(left: Piece, right: Piece) -> Piece:
    """The quotient by what is not 0."""
    low, high = left.low - right.high, left.high - right.low
    if max(left.high, right.high, high) < MOST and low >= LEAST:
        return Piece(f"({left.sql} / {right.sql})", low, high)

    def guarded(a: str, b: str) -> str:
        infinite = _signed(f"({a} < 0) <> ({b} < 0)")
        return (
            f"CASE WHEN {_usual(a, b, left, right, -1)} THEN {a} / {b}"
            f" WHEN {a} = 0 OR {_odd(a)} OR {_odd(b)} THEN {a} / {b}"
            f" WHEN ABS({b}) < 1 THEN CASE WHEN ABS({a}) < {_power(-60)} THEN {a} / {b}"
            f" WHEN ABS({a}) >= {_power(512)} AND ABS({b}) <= {_power(-513)} THEN {infinite}"
            f" WHEN ABS({a}) / (ABS({b}) * {_power(700)}) >= {_power(324)} THEN {infinite} ELSE {a} / {b} END"
            f" WHEN ABS({a}) >= 1 THEN {a} / {b}"
            f" WHEN ABS({b}) >= {_power(100)} AND ABS({a}) < {_power(-975)} THEN float8 '0'"
            f" WHEN (ABS({a}) * {_power(1000)}) / ABS({b}) <= {_power(-75)} THEN float8 '0' ELSE {a} / {b} END"
        )

    return Piece(bound(guarded, left, right))


def _usual(a: str, b: str, left: Piece, right: Piece, sign: int) -> str:
    """That the product, or with −1 the quotient, of the sizes is that of a double, as is mostly so.

    Where the size of one of them is known, the other has so much more room.
    """
    if _is_tame(right):
        ends = (right.low, right.high) if sign == 1 else (-right.high, -right.low)
        tests = _between(a, left, max(LEAST - ends[0], LEAST), min(MOST - 1 - ends[1], MOST - 1))
    elif _is_tame(left) and sign == 1:
        tests = _between(b, right, max(LEAST - left.low, LEAST), min(MOST - 1 - left.high, MOST - 1))
    elif _is_tame(left):
        tests = _between(b, right, max(left.high - MOST + 1, LEAST), min(left.low - LEAST, MOST - 1))
    else:
        tests = [*_between(a, left, -USUAL, USUAL), *_between(b, right, -USUAL, USUAL)]
    return " AND ".join(tests) or "TRUE"


def _is_tame(value: Piece) -> bool:
    return value.low >= -USUAL and value.high <= USUAL


def _between(name: str, value: Piece, low: int, high: int) -> list[str]:
    """That the value is 0, or lies in size between two powers of two; nothing where that is known."""
    least = [f"({name} = 0 OR ABS({name}) >= {_power(low)})"] if value.low < low else []
    most = [f"({name} BETWEEN -{_power(high)} AND {_power(high)})"] if value.high > high else []
    return most + least


def rounded(value: Piece) -> Piece:
    """To the nearest whole number, halves away from 0."""

    def made(x: str) -> str:
        return f"(TRUNC({x}) + CASE WHEN ABS({x} - TRUNC({x})) >= 0.5 THEN SIGN({x}) ELSE float8 '0' END)"

    return Piece(bound(made, value), 0, min(value.high + 1, UNLIMITED))


def exponential(value: Piece) -> Piece:
    """e to this power."""

    def made(x: str) -> str:
        return (
            f"CASE WHEN {x} BETWEEN float8 '{EXPONENTS[0]!r}' AND float8 '{EXPONENTS[1]!r}' THEN EXP({x})"
            f" WHEN {x} < 0 THEN float8 '0' WHEN {x} = float8 'NaN' THEN {x} WHEN {x} > 0 THEN {INFINITY} END"
        )

    return Piece(bound(made, value))


def logarithm2(value: Piece) -> Piece:
    """To base 2, of what is above 0: exact for powers of two, and else a quotient."""

    def made(x: str) -> str:
        log = f"(LN({x}) * float8 '{1 / math.log(2)!r}')"
        whole = f"CASE WHEN {log} < 1023 THEN POWER(float8 '2', ROUND({log})) = {x} ELSE FALSE END"
        return f"CASE WHEN {whole} THEN ROUND({log}) ELSE {log} END"

    return Piece(bound(made, value))


def power(base: Piece, exponent: Piece, fixed: float | None) -> Piece:
    """A power that is defined; `fixed` is the exponent if it is known. Results within a thousandth of a per cent of the
    largest double, and the very smallest, count as too large and too small."""
    if fixed == 0:
        return Piece(f"CASE WHEN {base.sql} IS NOT NULL THEN float8 '1' END", 0, 1)
    if fixed is not None and abs(fixed) <= 0.9:
        return Piece(f"POWER({base.sql}, {exponent.sql})")

    def made(x: str, y: str) -> str:
        # No logarithm but that of 1 is nearer to 0 than 2^-54: raised to 10^19, everything else leaves the doubles.
        size = f"LEAST(GREATEST({y}, float8 '-1e19'), float8 '1e19') * LN(ABS({x}))"
        odd = f"{x} < 0 AND {y} * 0.5 <> FLOOR({y} * 0.5)"
        return (
            f"CASE WHEN {x} IS NULL OR {y} IS NULL THEN NULL WHEN {y} = 1 THEN {x}"
            f" WHEN {x} = 0 OR {_odd(x)} OR {_odd(y)} OR ABS({y}) < 1e-200 THEN POWER({x}, {y})"
            f" WHEN {size} > {OVERFLOW} THEN {_signed(odd)} WHEN {size} < {UNDERFLOW} THEN float8 '0'"
            f" ELSE POWER({x}, {y}) END"
        )

    return Piece(bound(made, base, exponent))


def _odd(value: str) -> str:
    """NaN or infinite; NaN is larger than everything."""
    return f"ABS({value}) > {LARGEST}"


def _signed(negative: str) -> str:
    return f"CASE WHEN {negative} THEN -{INFINITY} ELSE {INFINITY} END"


def _power(exponent: int) -> str:
    return literal(2.0**exponent).sql

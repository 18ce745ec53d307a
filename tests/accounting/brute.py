"""Small mechanisms written out as probability tables, and their divergences by direct summation.

Tables are cut where what is left out is below 1e-60, so `SLACK` absorbs the cut and the width of balls.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import wraps
from typing import ParamSpec, TypeVar

from flint import arb, ctx, fmpq

SLACK = Fraction(1, 10**25)
CUT = 140.0
"""Natural logarithm of the smallest probability kept."""

Table = dict[object, arb]
P = ParamSpec("P")
R = TypeVar("R")


def precisely(function: Callable[P, R]) -> Callable[P, R]:
    """Runs the function at 256 bits."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with ctx.workprec(256):
            return function(*args, **kwargs)

    return run


def ball(value: Fraction | float | int) -> arb:
    number = Fraction(value)
    return arb(fmpq(number.numerator, number.denominator))


def _normalised(weights: dict[int, arb]) -> Table:
    whole = sum(weights.values(), arb(0))
    return {k: w / whole for k, w in weights.items()}


@precisely
def laplace(scale: Fraction, centre: int = 0, reach: int = 0) -> Table:
    """Discrete Laplace noise round `centre`, on a range that covers any other centre up to `reach` away."""
    width = math.ceil(CUT * scale) + reach
    return _normalised({k: (-ball(abs(k - centre) / Fraction(scale))).exp() for k in range(-width, width + 1)})


@precisely
def gaussian(variance: Fraction, centre: int = 0, reach: int = 0) -> Table:
    width = math.ceil(math.sqrt(2 * CUT * variance)) + reach
    return _normalised(
        {k: (-ball((k - centre) ** 2 / (2 * Fraction(variance)))).exp() for k in range(-width, width + 1)}
    )


@precisely
def response(epsilon: Fraction) -> tuple[Table, Table]:
    high = 1 / (1 + (-ball(epsilon)).exp())
    return {0: high, 1: 1 - high}, {0: 1 - high, 1: high}


@precisely
def bounded_range(epsilon: Fraction, top: Fraction) -> tuple[Table, Table]:
    """Two outputs with losses `top` and `top` − ε, for 0 < top < ε."""
    rare = ball(top).expm1() / ball(epsilon).expm1()
    p: Table = {0: 1 - rare, 1: rare}
    return p, {0: p[0] * (-ball(top)).exp(), 1: p[1] * ball(epsilon - top).exp()}


@precisely
def mixture(weighted: Iterable[tuple[Fraction | int, Table]]) -> Table:
    result: Table = {}
    for weight, table in weighted:
        for outcome, chance in table.items():
            result[outcome] = result.get(outcome, arb(0)) + ball(weight) * chance
    return result


@precisely
def product(*tables: Table) -> Table:
    result: Table = {}
    for combination in itertools.product(*(table.items() for table in tables)):
        chance = arb(1)
        for _, factor in combination:
            chance *= factor
        result[tuple(outcome for outcome, _ in combination)] = chance
    return result


@precisely
def divergence(p: Table, q: Table, order: Fraction | float) -> Fraction:
    """Rényi divergence of p from q."""
    alpha = ball(order)
    moment = sum((chance**alpha * q[outcome] ** (1 - alpha) for outcome, chance in p.items()), arb(0))
    return number(moment.log() / (alpha - 1))


@precisely
def delta(p: Table, q: Table, epsilon: Fraction | float) -> Fraction:
    """The least δ at ε for this pair, in this direction."""
    factor = ball(epsilon).exp()
    gaps = (chance - factor * q[outcome] for outcome, chance in p.items())
    return number(sum((gap for gap in gaps if gap > 0), arb(0)))


@precisely
def largest_loss(p: Table, q: Table) -> Fraction:
    """The least pure ε for this pair."""
    return max(abs(number((chance / q[outcome]).log())) for outcome, chance in p.items())


def number(value: arb) -> Fraction:
    """The middle of a ball, exactly."""
    mantissa, exponent = value.mid().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def worst(
    measure: Callable[[Table, Table, Fraction | float], Fraction], p: Table, q: Table, at: Fraction | float
) -> Fraction:
    """The larger of the two directions."""
    return max(measure(p, q, at), measure(q, p, at))

"""Numbers as people read them: no more digits than the interval supports, losses rounded to the safe side.

>>> places([105.2, 98.7]), places([0.31]), places([4.2])
(0, 2, 1)
>>> number(10806.9, 0), number(-0.0312, 2), number(3, 2)
('10,807', '−0.03', '3.00')
>>> number(2.341, 2, ROUND_CEILING), number(2.349, 2, ROUND_FLOOR)
('2.35', '2.34')
>>> shown(1974), shown(-20.0), shown(0.12345), shown("A"), shown(None)
('1974', '−20', '0.1235', 'A', '–')
>>> from discreet.core.losses import ApproxDP
>>> loss(ApproxDP("0.48817921", "1e-8")), loss(ApproxDP("0.48817921", "1e-8"), down=True)
('ε = 0.48818, δ = 1e-8', 'ε = 0.488179, δ = 1e-8')
>>> loss(ApproxDP("0.4876", "1e-8"), digits=3)
'ε = 0.488, δ = 1e-8'
>>> brief(ApproxDP(3, "1e-6"))
'(3, 1e-6)'
>>> percent("0.95"), percent(Fraction(2, 3))
('95 %', '66.6667 %')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from datetime import date
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

from discreet.core.exact import Exactable, probability
from discreet.core.losses import ApproxDP, Loss, PureDP, RenyiDP

__all__ = ["brief", "loss", "loss_record", "number", "percent", "places", "plain", "rational", "shown"]

HUGE = 1e300
"""Ends beyond this stand for no end at all."""
_GREEK = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def places(widths: Sequence[float]) -> int:
    """How many decimals leave two digits of the typical half-width, none for widths of 10 and more."""
    sound = sorted(width for width in widths if 0 < width < HUGE)
    if not sound:
        return 2
    return min(6, max(0, 1 - math.floor(math.log10(sound[len(sound) // 2]))))


def number(value: float, decimals: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with thousands separated; a true minus sign, which is as wide as a digit."""
    if math.isnan(value):
        return "–"
    if abs(value) > HUGE:
        return "∞" if value > 0 else "−∞"
    with localcontext(prec=400):
        text = f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding):,f}"
    return text.replace("-", "−" if text.strip("-0.,") else "")


@runtime_checkable
class Symbol(Protocol):
    """A value that one character stands for, as ⊥ for no answer."""

    symbol: ClassVar[str]


def percent(level: Exactable) -> str:
    """A level of confidence as people say it."""
    return f"{float(probability('level', level)) * 100:.6g} %"


def shown(value: Any) -> str:
    """A key, or a value without an interval."""
    if value is None:
        return "–"
    if isinstance(value, Symbol):
        return value.symbol
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value).replace("-", "−")
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value)).replace("-", "−")
    return number(value, 2) if abs(value) >= 100 else f"{value:.4g}".replace("-", "−")


def plain(value: Any) -> Any:
    """A value as JSON and CSV can hold it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Symbol):
        return value.symbol
    return value.isoformat() if isinstance(value, date) else value


def rational(value: Fraction, *, down: bool = False, digits: int = 6) -> str:
    """So many significant digits, up unless `down`."""
    with localcontext(prec=digits, rounding=ROUND_FLOOR if down else ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX):
        short = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
    if short.is_zero() or -5 < short.adjusted() < 7:
        return f"{short:f}"
    return f"{short:e}".replace("e+", "e")


def loss(value: Loss, *, down: bool = False, digits: int = 6) -> str:
    """A loss in Greek letters: what is spent is rounded up, what is left is rounded down."""
    if isinstance(value, RenyiDP):
        return str(value)
    return ", ".join(
        f"{_GREEK[part.name]} = {rational(getattr(value, part.name), down=down, digits=digits)}"
        for part in fields(value)
        if part.name != "delta" or getattr(value, part.name)
    )


def brief(value: Loss, *, down: bool = False) -> str:
    """A loss for a narrow column: (ε, δ), or ε alone; others with their letters."""
    if isinstance(value, ApproxDP) and value.delta:
        return f"({rational(value.epsilon, down=down)}, {rational(value.delta, down=down)})"
    return rational(value.epsilon, down=down) if isinstance(value, PureDP | ApproxDP) else loss(value, down=down)


def loss_record(value: Loss, *, down: bool = False) -> dict[str, Any]:
    """A loss for JSON: its definition and its numbers, each the text of a decimal on the safe side."""
    numbers = {
        part.name: [rational(v, down=down) for v in held] if isinstance(held, tuple) else rational(held, down=down)
        for part in fields(value)
        for held in [getattr(value, part.name)]
    }
    return {"definition": type(value).__name__, **numbers}


def floored(value: float) -> str:
    """Three figures, never above the value."""
    return rational(Fraction(value), down=True, digits=3)

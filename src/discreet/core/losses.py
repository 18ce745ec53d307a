"""How much is lost at most: the named types of guarantee.

Each holds exact rationals; each is an upper bound. Floats are read as they are written (`core/exact.py`).

>>> ApproxDP(3, 1e-6)
ApproxDP(epsilon=3, delta=1e-06)
>>> ApproxDP(3, 1e-6) == ApproxDP(3, "1e-6")
True
>>> PureDP(1) + PureDP("0.5")
PureDP(epsilon=1.5)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, at_least, exact, probability

__all__ = ["ZCDP", "ApproxDP", "Budget", "Loss", "PureDP", "RenyiDP", "zero"]


@dataclass(frozen=True, init=False, repr=False)
class PureDP:
    """ε-differential privacy."""

    epsilon: Fraction

    def __init__(self, epsilon: Exactable) -> None:
        object.__setattr__(self, "epsilon", at_least("epsilon", epsilon, 0))

    def __add__(self, other: PureDP) -> PureDP:
        return PureDP(self.epsilon + other.epsilon)

    def __repr__(self) -> str:
        return f"PureDP(epsilon={_shown(self.epsilon)})"


@dataclass(frozen=True, init=False, repr=False)
class ApproxDP:
    """(ε, δ)-differential privacy."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exactable, delta: Exactable) -> None:
        object.__setattr__(self, "epsilon", at_least("epsilon", epsilon, 0))
        object.__setattr__(self, "delta", probability("delta", delta, zero=True, one=True))

    def __add__(self, other: ApproxDP) -> ApproxDP:
        return ApproxDP(self.epsilon + other.epsilon, min(Fraction(1), self.delta + other.delta))

    def __repr__(self) -> str:
        return f"ApproxDP(epsilon={_shown(self.epsilon)}, delta={_shown(self.delta)})"


@dataclass(frozen=True, init=False, repr=False)
class ZCDP:
    """ρ-zero-concentrated differential privacy: Rényi divergence of every order α at most ρ·α."""

    rho: Fraction

    def __init__(self, rho: Exactable) -> None:
        object.__setattr__(self, "rho", at_least("rho", rho, 0))

    def __add__(self, other: ZCDP) -> ZCDP:
        return ZCDP(self.rho + other.rho)

    def __repr__(self) -> str:
        return f"ZCDP(rho={_shown(self.rho)})"


@dataclass(frozen=True, init=False, repr=False)
class RenyiDP:
    """Rényi divergence of order α at most ε, for each listed order."""

    orders: tuple[Fraction, ...]
    epsilons: tuple[Fraction, ...]

    def __init__(self, orders: tuple[Exactable, ...], epsilons: tuple[Exactable, ...]) -> None:
        alphas = tuple(exact("orders", order) for order in orders)
        if not alphas or any(alpha <= 1 for alpha in alphas) or list(alphas) != sorted(set(alphas)):
            raise InvalidArgument("orders", orders, "increasing numbers above 1", "list each order once, in order")
        if len(epsilons) != len(alphas):
            raise InvalidArgument("epsilons", epsilons, f"{len(alphas)} numbers", "give one ε for each order")
        object.__setattr__(self, "orders", alphas)
        object.__setattr__(self, "epsilons", tuple(at_least("epsilons", e, 0) for e in epsilons))

    def __add__(self, other: RenyiDP) -> RenyiDP:
        if self.orders != other.orders:
            raise InvalidArgument("orders", other.orders, f"{self.orders}", "compute both at the same orders")
        return RenyiDP(self.orders, tuple(a + b for a, b in zip(self.epsilons, other.epsilons, strict=True)))

    def __repr__(self) -> str:
        pairs = ", ".join(f"{_shown(a)}: {_shown(e)}" for a, e in zip(self.orders, self.epsilons, strict=True))
        return f"RenyiDP({{{pairs}}})"


Loss = PureDP | ApproxDP | ZCDP | RenyiDP
Budget = PureDP | ApproxDP | ZCDP
"""What an account may be given to spend."""


def zero(loss: Budget) -> Budget:
    """No loss at all, in the same definition.

    >>> zero(ApproxDP(3, "1e-6"))
    ApproxDP(epsilon=0, delta=0)
    """
    return type(loss)(*(0 for _ in fields(loss)))


def _shown(value: Fraction) -> str:
    """A short decimal that reads back as this number, or else six significant digits rounded up."""
    with localcontext(prec=9, Emin=MIN_EMIN, Emax=MAX_EMAX) as context:
        short = Decimal(value.numerator) / Decimal(value.denominator)
        if value != Fraction(short):
            context.prec, context.rounding = 6, ROUND_CEILING
            short = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{float(short):.9g}" if abs(short.adjusted()) < 300 else f"{short.normalize():g}"

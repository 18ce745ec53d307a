"""What events cost in a budget's own definition, and the Gaussian noise that a budget in ε pays for.

>>> loss_of((Pure(Fraction(1, 2)),), ApproxDP(1, "1e-6"))
ApproxDP(epsilon=0.5, delta=0)
>>> loss_of((gaussian_event(Fraction(1), Fraction(1, 10**6)),), ApproxDP(1, "1e-6")).epsilon <= 1
True
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.accounting.approximate import approximate, satisfies
from discreet.accounting.calibration import gaussian_sigma
from discreet.accounting.pure import pure
from discreet.accounting.zcdp import zcdp
from discreet.core.errors import NotAccountable
from discreet.core.events import Composed, Event, Gaussian, Pure
from discreet.core.losses import ZCDP, ApproxDP, Budget, PureDP

__all__ = ["COORDINATES", "SENSITIVITY", "gaussian_event", "loss_of", "noise_multiplier"]

SENSITIVITY = 1 << 12
"""Grid steps in a unit's movement, as events of vectors state it: the grid is then unnoticeable."""
COORDINATES = 1 << 40
"""As many numbers as a released vector can have."""
GIVEN_BACK = tuple(Fraction(tenths, 10) for tenths in (6, 4, 2))
"""Parts of what pure runs cost that may turn out not to be needed, once all is composed exactly."""
NEAR = Fraction(101, 100)
"""A pure loss this near to the best one at δ is told instead of it."""


@lru_cache(maxsize=1024)
def loss_of(events: tuple[Event, ...], budget: Budget) -> Budget:
    """What the events cost alone, in the budget's definition; without δ where none is needed to speak of."""
    together = Composed(events)
    if isinstance(budget, PureDP):
        return pure(together)
    if isinstance(budget, ZCDP):
        return zcdp(together)
    exact = approximate(together, budget.delta)
    try:
        plain = pure(together)
    except NotAccountable:
        return exact
    return ApproxDP(plain.epsilon, 0) if plain.epsilon <= exact.epsilon * NEAR else exact


@lru_cache(maxsize=1024)
def noise_multiplier(epsilon: Fraction, delta: Fraction, beside: tuple[Fraction, ...], changes: int) -> Fraction:
    """The deviation of Gaussian noise over sensitivity, so that it costs (ε, δ) together with pure runs of the ε
    `beside` it.

    That is less than the sum of what each costs alone, so some of what the runs take is given back as far as the exact
    loss allows.
    """
    steps = SENSITIVITY * changes
    for share in (*GIVEN_BACK, Fraction(0)):
        left = epsilon - sum(beside) * (1 - share)
        multiplier = gaussian_sigma(left, delta, steps**2) / steps * (1 + Fraction(1, 1 << 20))
        together = (*map(Pure, beside), _gaussian(multiplier, steps))
        if not beside or not share or satisfies(Composed(together), ApproxDP(epsilon, delta)):
            break
    return multiplier


def gaussian_event(epsilon: Fraction, delta: Fraction) -> Gaussian:
    """One Gaussian that costs (ε, δ)."""
    return _gaussian(noise_multiplier(epsilon, delta, (), 1), SENSITIVITY)


def _gaussian(multiplier: Fraction, steps: int) -> Gaussian:
    return Gaussian((multiplier * steps) ** 2, Fraction(steps**2), COORDINATES)

"""What an account has spent on questions, all composed, and the most that one more question may cost.

The filter of an account (`accounting/filters.py`) decides what fits, and tells a part that surely does. People want to
know more: what all charges cost together, by the tightest composition, and how large a question would still be let in
by every account that it is charged to. Both are found here and nowhere else, in the definition of the data set's
budget: sessions, refusals, `discreet budget` and `discreet registry` show the same figures at the same moment. How many
more questions of a kind fit is found by trying them (`Ledger.room_for`), for no figure alone tells it.

>>> from tempfile import TemporaryDirectory
>>> from discreet.core.units import User
>>> budget = ApproxDP(2, "1e-6")
>>> with TemporaryDirectory() as folder, Ledger.at(f"{folder}/books.db") as books:
...     health = books.open(("health",), budget=budget, unit=User("patient"), source="file:health.csv")
...     _ = books.charge(health, [Pure(Fraction(1, 2))], question="COUNT(*)")
...     spent(books, health, budget).epsilon, remaining(books, health, budget).epsilon >= Fraction(3, 2)
(Fraction(1, 2), True)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.accounting.budgets import COORDINATES, SENSITIVITY, gaussian_event, loss_of
from discreet.accounting.zcdp import pure_rho
from discreet.core.events import Gaussian, Pure
from discreet.core.losses import ZCDP, ApproxDP, Budget, PureDP, zero
from discreet.core.rounding import sqrt_down
from discreet.ledger import Ledger

__all__ = ["remaining", "spent"]

PARTS = 1000
"""What remains is found to this part of the budget."""


def spent(ledger: Ledger, account: tuple[str, ...], budget: Budget) -> Budget:
    """What was charged so far, all composed, in the definition of the budget."""
    events = tuple(ledger.events(account))
    if not events:
        return zero(budget)
    return loss_of(events, budget)


def remaining(ledger: Ledger, account: tuple[str, ...], budget: Budget) -> Budget:
    """The most that one more question may cost; several smaller ones may cost more together."""
    room = ledger.remaining(account)
    if isinstance(budget, PureDP | ZCDP):
        limits = {type(standing.budget) for standing in ledger.standing(account) if standing.budget is not None}
        if isinstance(room, type(budget)) and limits == {type(budget)}:
            return room
        if isinstance(budget, ZCDP):
            found = _most_pure if PureDP in limits else _most_noisy
            return ZCDP(found(ledger, account, budget))
    if isinstance(budget, PureDP):
        return PureDP(_most(budget.epsilon, Fraction(0), lambda epsilon: ledger.fits(account, Pure(epsilon))))
    surely = room.epsilon if isinstance(room, ApproxDP) else Fraction(0)
    delta = budget.delta
    most = _most(budget.epsilon, surely, lambda epsilon: ledger.fits(account, gaussian_event(epsilon, delta)))
    return ApproxDP(max(surely, most), delta)


def _most_noisy(ledger: Ledger, account: tuple[str, ...], budget: ZCDP) -> Fraction:
    """The largest ρ of Gaussian noise, as in SQL, that fits."""

    def fits(rho: Fraction) -> bool:
        return ledger.fits(account, Gaussian(SENSITIVITY**2 / (2 * rho), Fraction(SENSITIVITY**2), COORDINATES))

    return _most(budget.rho, Fraction(0), fits)


def _most_pure(ledger: Ledger, account: tuple[str, ...], budget: ZCDP) -> Fraction:
    """The ρ of the largest pure loss that fits, where a cap without a δ allows no other."""
    found = _most(budget.rho, Fraction(0), lambda rho: ledger.fits(account, Pure(sqrt_down(2 * rho))))
    return pure_rho(sqrt_down(2 * found))


def _most(whole: Fraction, surely: Fraction, fits: Callable[[Fraction], bool]) -> Fraction:
    """The largest part of the whole that fits; what is known to fit is not tried."""
    low, high = 0, PARTS
    # The middles are the same each time, and calibrations are remembered.
    while low < high:
        middle = (low + high + 1) // 2
        epsilon = whole * middle / PARTS
        low, high = (middle, high) if epsilon <= surely or fits(epsilon) else (low, middle - 1)
    return whole * low / PARTS

"""What an account has spent on questions, all composed, and the most that one more question may cost.

The filter of an account (`accounting/filters.py`) decides what fits, and tells a part that surely does. People want to
know more: what all charges cost together, by the tightest composition, and how large a question would still be let in.
Both are found here, for sessions and for the command line alike.

>>> from tempfile import TemporaryDirectory
>>> from discreet.core.events import Pure
>>> from discreet.core.units import User
>>> budget = ApproxDP(2, "1e-6")
>>> with TemporaryDirectory() as folder, Ledger.at(f"{folder}/books.db") as books:
...     health = books.open(("health",), budget=budget, unit=User("patient"), source="file:health.csv")
...     _ = books.charge(health, [Pure(Fraction(1, 2))], question="COUNT(*)")
...     spent(books, health, budget).epsilon, remaining(books, health, budget).epsilon >= Fraction(3, 2)
(Fraction(1, 2), True)
"""

from __future__ import annotations

from fractions import Fraction

from discreet.core.losses import ApproxDP, PureDP
from discreet.ledger import Ledger
from discreet.sql.planner import Budget, gaussian_event, loss_of

__all__ = ["remaining", "spent"]

PARTS = 1000
"""What remains is found to this part of the budget."""


def spent(ledger: Ledger, account: tuple[str, ...], budget: Budget) -> Budget:
    """What was charged so far, all composed, in the definition of the budget."""
    events = tuple(ledger.events(account))
    if not events:
        return PureDP(0) if isinstance(budget, PureDP) else ApproxDP(0, 0)
    return loss_of(events, budget)


def remaining(ledger: Ledger, account: tuple[str, ...], budget: Budget) -> Budget:
    """The most that one more question may cost; several smaller ones may cost more together."""
    room = ledger.remaining(account)
    if isinstance(budget, PureDP):
        return room if isinstance(room, PureDP) else PureDP(0)
    most = room.epsilon if isinstance(room, ApproxDP) else Fraction(0)
    low, high = 0, PARTS
    # What is known to fit is not tried; the middles are the same each time, and calibrations are remembered.
    while low < high:
        middle = (low + high + 1) // 2
        epsilon = budget.epsilon * middle / PARTS
        fits = epsilon <= most or ledger.fits(account, gaussian_event(epsilon, budget.delta))
        low, high = (middle, high) if fits else (low, middle - 1)
    return ApproxDP(max(most, budget.epsilon * low / PARTS), budget.delta)

"""A price: what a question will cost and how good its answer will be, known before anything is spent.

>>> from discreet.core.losses import PureDP
>>> print(Quote(Fraction(1), PureDP(1), (), "Laplace noise; one group", (Expected("n", 1.0, 1.0),), True))
costs ε = 1, within what is left
Laplace noise; one group
  n ± 1
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from discreet.core.events import Event
from discreet.core.losses import Loss
from discreet.core.numerals import loss as loss_text
from discreet.sql.planner import Expected
from discreet.sql.showing import quote_html

__all__ = ["Quote"]


@dataclass(frozen=True)
class Quote:
    """What a question will cost and how good its answer will be, known before anything is spent."""

    epsilon: Fraction
    """What to give for this price."""
    loss: Loss
    events: tuple[Event, ...]
    plan: str
    errors: tuple[Expected, ...]
    """What to expect of each column."""
    fits: bool
    """Whether the budget still allows it."""
    statement: str = field(default="", repr=False)
    """What the engine would be asked to run."""
    columns: tuple[str, ...] = field(default=(), repr=False)
    """Of synthetic rows, their columns."""
    notes: tuple[str, ...] = ()
    """What else is to be known before it is bought."""

    def __str__(self) -> str:
        room = "within what is left" if self.fits else "more than what is left"
        cost = f"costs {loss_text(self.loss)}, {room}"
        return "\n".join([cost, self.plan, *(f"  {error}" for error in self.errors), *self.notes])

    def _repr_html_(self) -> str:
        return quote_html(self.loss, self.plan, self.errors, self.fits, self.notes)

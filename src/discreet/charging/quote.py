"""A price: what a question will cost and how good its answer will be, known before anything is spent.

>>> from discreet.core.losses import PureDP
>>> print(Quote(Fraction(1), PureDP(1), (), "Laplace noise; one group", (ExpectedError("n", 1.0, 1.0),), True))
costs ε = 1, within what is left
Laplace noise; one group
  n ± 1
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.accounting.budgets import loss_of
from discreet.core.display.numbers import loss as loss_text
from discreet.core.display.text import visible
from discreet.core.events import Event
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import Budget, Loss, PureDP, RenyiDP, zero
from discreet.sql.answers.html import quote_html
from discreet.sql.statement.indentation import indented

__all__ = ["Quote"]


@dataclass(frozen=True)
class Quote:
    """What a question will cost and how good its answer will be, known before anything is spent."""

    epsilon: Fraction
    """What to give for this price; under a budget in ρ, unless it is asked for ε, that at δ = 10⁻⁶ for which noise is
    planned: `loss` is then what to give."""
    loss: Loss
    events: tuple[Event, ...]
    plan: str
    errors: tuple[ExpectedError, ...]
    """What to expect of each column."""
    fits: bool
    """Whether the budget still allows it."""
    statement: str = field(default="", repr=False)
    """What the engine would be asked to run."""
    columns: tuple[str, ...] = field(default=(), repr=False)
    """Of synthetic rows, their columns."""
    notes: tuple[str, ...] = ()
    """What else is to be known before it is bought."""
    stored: bool = False
    """Whether an answer is stored that this caller may see: then asking costs nothing, and the loss was paid before."""
    failed: bool = False
    """Whether what is stored is that the run failed: asking again costs nothing and gives that failure again."""
    covered: bool = False
    """Whether it is a step of a question whose loss, that of all steps together, was paid when that was asked."""
    dialect: str = field(default="", repr=False)
    """What sqlglot calls the SQL of the statement."""

    @property
    def indented_statement(self) -> str:
        """The statement in lines, one clause in each: the same but for white space."""
        return indented(self.statement, self.dialect)

    @property
    def pays(self) -> Loss:
        """What this caller will pay: the loss, or nothing for a stored answer or failure."""
        if not self.stored and not self.failed and not self.covered:
            return self.loss
        return PureDP(0) if isinstance(self.loss, RenyiDP) else zero(self.loss)

    @property
    def cost(self) -> str:
        """What asking costs this caller, in words."""
        price = loss_text(self.loss)
        if self.stored:
            return f"nothing: it was answered before, for {price}"
        if self.failed:
            return f"nothing: it was run before, for {price}, and failed; asking again gives that failure again"
        if self.covered:
            return f"nothing: all steps together were paid for, {price}"
        return f"{price}, {'within what is left' if self.fits else 'more than what is left: it would be refused'}"

    def settled(self, paid: tuple[Event, ...], budget: Budget, failed: bool) -> Quote:
        """The quote of what was paid for before, by these events: of an answer, or of a run that failed."""
        return replace(self, loss=loss_of(paid, budget), events=paid, stored=not failed, failed=failed)

    def __str__(self) -> str:
        lines = [f"costs {self.cost}", self.plan, *(f"  {error}" for error in self.errors), *self.notes]
        return "\n".join(visible(line, lines=True) for line in lines)

    def _repr_html_(self) -> str:
        alarm = self.failed or not (self.fits or self.stored)
        return quote_html(self.cost, self.plan, self.errors, alarm, self.notes)

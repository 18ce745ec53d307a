"""Whoever answers questions about conditions: how many people fit, or what they have together.

An aggregate is anything that takes a condition in SQL and returns a number, or raises. `OfConnection` asks a database,
`OfSession` a session of ours at a price; `Restricted` is what statistics offices long thought safe: answers about few
people (or all but few) are refused, and the others rounded.

>>> import duckdb
>>> people = duckdb.connect(":memory:")
>>> _ = people.execute("CREATE TABLE staff AS SELECT i AS id, 1000 + i AS pay FROM range(50) r(i)")
>>> pay = OfConnection(people, "SELECT SUM(pay) FROM staff WHERE {condition}")
>>> pay("id < 2")
2001.0
>>> careful = Restricted(pay, OfConnection(people, "SELECT COUNT(*) FROM staff WHERE {condition}"), least=3)
>>> careful("id < 2")
Traceback (most recent call last):
    ...
PermissionError: about too few people

`Questions` asks and counts, and goes on when an answer is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.adversary.reconstruction.answerers import PATIENCE, UNASKED, connected, reason
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural

if TYPE_CHECKING:
    from discreet.session.session import Session

__all__ = ["Aggregate", "OfConnection", "OfSession", "Questions", "Restricted"]

Aggregate = Callable[[str], float]
"""A condition in, a number out; what raises is a refusal."""


@dataclass(frozen=True)
class OfConnection:
    """A database, by a statement with `{condition}` in it; nobody to sum up is 0."""

    connection: Any
    template: str

    def __post_init__(self) -> None:
        _check(self.template)

    def __call__(self, condition: str) -> float:
        """The one number of the answer."""
        opened, ours = connected(self.connection)
        cursor = opened.cursor()
        try:
            cursor.execute(self.template.replace("{condition}", condition))
            [[value]] = cursor.fetchall()
        except Exception:
            if callable(getattr(opened, "rollback", None)) and not ours:
                _try(opened.rollback)
            raise
        finally:
            _try(cursor.close)
            if ours:
                _try(opened.close)
        return float(value or 0)


@dataclass(frozen=True)
class OfSession:
    """A session of ours: every statement costs `epsilon`, and the same statement again nothing."""

    session: Session
    template: str
    epsilon: Exactable

    def __post_init__(self) -> None:
        _check(self.template)

    def __call__(self, condition: str) -> float:
        """The one number of the answer."""
        [[value]] = self.session.sql(self.template.replace("{condition}", condition), epsilon=self.epsilon).rows
        return float(value)


@dataclass(frozen=True)
class Restricted:
    """Answers about fewer than `least` people, and about all but so few, are refused; others are rounded to `step`."""

    aggregate: Aggregate
    size: Aggregate
    least: int = 1
    step: float = 0.0

    def __call__(self, condition: str) -> float:
        """The answer as it is published."""
        people, everybody = self.size(condition), self.size("1 = 1")
        if people < self.least:
            raise PermissionError("about too few people")
        if everybody - self.least < people < everybody:
            raise PermissionError("about all but too few people")
        value = self.aggregate(condition)
        return round(value / self.step) * self.step if self.step else value


@dataclass
class Questions:
    """Asks an aggregate, counts what is answered and why the rest is not, and gives up after many refusals in a row."""

    aggregate: Aggregate
    patience: int = PATIENCE
    asked: int = 0
    answered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    _in_a_row: int = 0

    def __post_init__(self) -> None:
        natural("patience", self.patience)
        if not callable(self.aggregate):
            wanted = "a function of a condition"
            raise InvalidArgument("aggregate", self.aggregate, wanted, "use OfConnection, OfSession or one of yours")

    def __call__(self, condition: str) -> float:
        """The answer, or NaN."""
        if self._in_a_row >= self.patience:
            self.reasons[UNASKED] += 1
            return float("nan")
        self.asked += 1
        try:
            value = float(self.aggregate(condition))
        except Exception as error:
            # What databases say after the first sentence is the statement, which differs each time.
            self.reasons[reason(error).partition(" LINE ")[0]] += 1
            self._in_a_row += 1
            return float("nan")
        if not np.isfinite(value):
            self.reasons["no number"] += 1
            return float("nan")
        self.answered, self._in_a_row = self.answered + 1, 0
        return value


def _check(template: object) -> None:
    if not isinstance(template, str) or "{condition}" not in template:
        remedy = "write SELECT SUM(pay) FROM staff WHERE {condition}"
        raise InvalidArgument("template", template, "a SELECT of one number with {condition} in it", remedy)


def _try(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception:
        return

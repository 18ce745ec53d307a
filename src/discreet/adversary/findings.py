"""What the attacks on records, aggregates and membership have in common: a verdict, lines of facts, secrets kept.

A finding says in one sentence whether something gave people away, and prints no secret: what was found is in its
fields, and in `as_record(reveal=True)`.

>>> class Example(Finding):
...     verdict = "HELD: nobody stands out."
...     def lines(self):
...         return [("records", "9")]
...     def measures(self):
...         return {"records": 9}
...     def plot(self):
...         return None
>>> print(Example())
HELD: nobody stands out.
records: 9
>>> Example().alarming, judged(1, 10), judged(9, 10), judged(0, 10)
(False, 'LEAKING', 'BROKEN', 'HELD')
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from discreet.core.display.html import block, facts, note
from discreet.core.display.text import visible

__all__ = ["Finding", "judged"]

MOST = 0.5
"""From this share of people on, a release is called broken."""


def judged(exposed: float, people: float) -> str:
    """The word for so many exposed people of so many."""
    if exposed <= 0:
        return "HELD"
    return "BROKEN" if exposed >= MOST * people else "LEAKING"


class Finding(ABC):
    """What came of an attack."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """In plain words."""

    @abstractmethod
    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""

    @property
    def alarming(self) -> bool:
        """Whether people are given away."""
        return self.verdict.startswith(("BROKEN", "LEAKING"))

    def as_record(self, *, reveal: bool = False) -> dict[str, Any]:
        """For JSON; the secrets only if asked for."""
        return {"verdict": self.verdict, **self.measures(), **(self.secrets() if reveal else {})}

    @abstractmethod
    def measures(self) -> dict[str, Any]:
        """What was counted, by name."""

    @abstractmethod
    def plot(self) -> Any:
        """A picture that shows no secret."""

    def secrets(self) -> dict[str, Any]:
        """What was found out about people."""
        return {}

    def __str__(self) -> str:
        told = [self.verdict, *(f"{name}: {text}" for name, text in self.lines())]
        return "\n".join(visible(line, lines=True) for line in told)

    def _repr_html_(self) -> str:
        return block(note(self.verdict, alarm=self.alarming), facts(self.lines()))

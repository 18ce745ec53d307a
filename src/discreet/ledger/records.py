"""What the books hold, and what they hand out.

>>> first = Entry.after(Head(0, ""), {"kind": "ledger", "time": "2030-01-01T00:00:00+00:00"})
>>> first.sequence, first.text
(1, '{"kind":"ledger","previous":"","sequence":1,"time":"2030-01-01T00:00:00+00:00"}')
>>> first.hash == digest(first.text)
True
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.core.events import Event
from discreet.core.exact import natural
from discreet.core.losses import Loss
from discreet.core.units import Unit
from discreet.ledger.encoding import Path, canonical, digest
from discreet.ledger.errors import LedgerDamaged

__all__ = ["Account", "Charge", "ChargeRow", "Entry", "Fault", "Head", "ReleaseRow", "Report", "Standing", "Step"]
__all__ += ["Tally"]


@dataclass(frozen=True)
class Head:
    """The last entry of the chain. Noted elsewhere, it anchors everything before it."""

    sequence: int
    hash: str


@dataclass(frozen=True)
class Entry:
    """One line of the books: its text is canonical JSON that holds the hash of the entry before."""

    sequence: int
    text: str
    hash: str

    @classmethod
    def after(cls, head: Head, content: dict[str, Any]) -> Entry:
        """The next entry of a chain that ends in `head`."""
        sequence = head.sequence + 1
        text = canonical(content | {"sequence": sequence, "previous": head.hash})
        return cls(sequence, text, digest(text))

    @property
    def content(self) -> dict[str, Any]:
        """The text, read."""
        try:
            content = json.loads(self.text)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise LedgerDamaged(f"entry {self.sequence} cannot be read", "check the ledger")
        return content

    @property
    def head(self) -> Head:
        """The chain up to this entry."""
        return Head(self.sequence, self.hash)


@dataclass(frozen=True)
class Account:
    """An account as it stands; one without a budget of its own is measured in the definition of its data set."""

    path: Path
    budget: Loss | None
    promised: Loss | None
    """In each number the largest budget that was ever in force: what holds for all answers together."""
    unit: Unit | None
    state: str
    """The filter's sums, as canonical JSON."""
    answers: str | None = None
    """Of a data set, who may see stored answers: "study" if each study has its own, None if all share them."""


@dataclass(frozen=True)
class ChargeRow:
    """Where a charge is found: by its question, or by the request that made it."""

    sequence: int
    path: Path
    question: str
    request: str | None
    time: str


@dataclass(frozen=True)
class ReleaseRow:
    """What was released for a charge."""

    charge: int
    sequence: int
    payload: bytes = field(repr=False)


@dataclass(frozen=True)
class Tally:
    """The charges made at one account."""

    path: Path
    charges: int
    releases: int
    first: str
    last: str


@dataclass(frozen=True)
class Charge:
    """A charge that is in the books for good.

    `fresh` is False when the question had been charged before, and then nothing was paid. `payload` is the release if
    there is one already: show that, and run nothing. Without one, run the question if the charge is `own`; otherwise
    somebody else is running it now: wait, and charge again.
    """

    ledger: str
    sequence: int
    hash: str
    account: Path
    question: str
    spent: str
    """What the data set has spent with this charge, in its own definition."""
    time: str
    fresh: bool
    payload: bytes | None = field(repr=False)
    run: str = field(default="", repr=False)
    """The key of the run that the charge is for."""
    own: bool = True
    """Whether this caller is to run the question."""
    events: tuple[Event, ...] = field(default=(), repr=False)
    """What was charged, for which whoever has no outcome yet may run the question."""
    successor: str = field(default="", repr=False)
    """Under what the question would be charged again, were this run taken for dead."""


@dataclass(frozen=True)
class Step:
    """One step of a question that was charged once for all its steps."""

    parent: int
    """The entry of that charge."""
    number: int
    """The steps are numbered from 1."""

    def __post_init__(self) -> None:
        natural("parent", self.parent)
        natural("number", self.number)


@dataclass(frozen=True)
class Standing:
    """How one account stands. Without a budget of its own it is measured in the definition of its data set."""

    account: Path
    budget: Loss | None
    spent: Loss
    remaining: Loss | None
    used: Fraction
    """The part of the budget that is used up, from 0 to 1."""


@dataclass(frozen=True)
class Fault:
    """The first thing that is wrong, and the entry at which it shows (None: not in an entry)."""

    sequence: int | None
    what: str


@dataclass(frozen=True)
class Report:
    """What a check of the books found."""

    head: Head
    fault: Fault | None

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.fault is None

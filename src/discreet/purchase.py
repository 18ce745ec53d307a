"""The one way from a question to what may be seen of it: paid for, run once, stored, shown, certified.

What is to be run, and what that costs, is fixed before (`Purchase`). Then, in this order: the books are charged
durably; the question is run, unless somebody paid for it before; what came of it is stored, a failure too; what is
stored is returned, to everybody alike. A failure after the charge says nothing about the data.

>>> from tempfile import TemporaryDirectory
>>> from discreet.core.events import Pure
>>> from discreet.core.units import User
>>> from fractions import Fraction
>>> from discreet.core.losses import PureDP
>>> what = Purchase("COUNT(*)", "SELECT COUNT(*) FROM health", "noise", (Pure(Fraction(1, 2)),), PureDP("0.5"))
>>> with TemporaryDirectory() as folder, Ledger.at(f"{folder}/books.db") as books:
...     account = books.open(("health",), budget=PureDP(1), unit=User("patient"), source="file:health.csv")
...     counter = Counter(books, account, PureDP(1), User("patient"), Custody.of(books, f"{folder}/books.db"))
...     [counter.bought(what, run).payload for run in (lambda: b"about 7", lambda: b"never run")]
[b'about 7', b'about 7']
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from discreet import allowance
from discreet.certificate import digest, loss_to_json
from discreet.core.errors import AnswerFailed, BudgetExceeded, EngineUnavailable, EntropyFailure
from discreet.core.events import Event, to_json
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.units import Unit
from discreet.custody import Custody
from discreet.ledger import Ledger
from discreet.ledger.records import Charge

__all__ = ["FAILED", "Bought", "Counter", "Listener", "Purchase", "guarded"]

FAILED = b"failed"
"""What is stored when the engine could not run the statement."""
LONGEST_NOTE = 1000
"""Characters of a question that the books keep for the steward to read."""


@dataclass(frozen=True)
class Purchase:
    """What is to be run: everything about it is decided, from public facts alone."""

    identity: str
    """What is measured and where; the same again is free."""
    text: str
    """As whoever asked wrote it."""
    plan: str
    events: tuple[Event, ...]
    loss: PureDP | ApproxDP

    def seeded(self) -> Purchase:
        """The same from a test seed, which is another question: it never stands in for a private one."""
        return replace(self, identity=f"not private {self.identity}")


@dataclass(frozen=True)
class Bought:
    """What the ledger stored, and where it was charged."""

    payload: bytes
    charge: Charge


@dataclass(frozen=True)
class Counter:
    """Where an account buys."""

    ledger: Ledger
    account: tuple[str, ...]
    budget: PureDP | ApproxDP
    unit: Unit
    custody: Custody

    def bought(self, purchase: Purchase, run: Callable[[], bytes]) -> Bought:
        """What is stored of a question; `run` is called after the charge, if nothing is stored yet."""
        note = " ".join(purchase.text.split())[:LONGEST_NOTE]
        try:
            charge = self.ledger.charge(self.account, purchase.events, purchase.identity, note=note)
        except BudgetExceeded as refusal:
            room = allowance.remaining(self.ledger, self.account, self.budget)
            raise BudgetExceeded(purchase.loss, room, refusal.remedy) from None
        payload = charge.payload
        if payload is None:
            payload = self.ledger.complete(charge, run())
        if payload == FAILED:
            raise AnswerFailed()
        return Bought(payload, charge)

    def certificate(
        self, purchase: Purchase, bought: Bought, names: Iterable[str], rows: Iterable[Iterable[Any]]
    ) -> dict[str, Any]:
        """A signed statement of what was bought, and of the rows made of it."""
        charge = bought.charge
        said = {
            "data": self.account[0],
            "unit": {"kind": type(self.unit).__name__.lower(), **vars(self.unit)},
            "question": " ".join(purchase.text.split()),
            "plan": purchase.plan,
            "events": [to_json(event) for event in purchase.events],
            "loss": loss_to_json(purchase.loss),
            "ledger": {"id": self.ledger.id, "entry": charge.sequence, "hash": charge.hash, "time": charge.time},
            "answer": hashlib.sha256(bought.payload).hexdigest(),
            "rows": digest(names, rows),
        }
        self.custody.remember(self.ledger.seen)
        return self.custody.key.sign(said)


class Listener:
    """Whoever is told how much is done. What it raises is kept until `heard`: it cannot end a run that is paid for,
    which asked again would draw new noise, and be seen for free up to where it ends."""

    def __init__(self, progress: Callable[[float], None] | None) -> None:
        self._progress = progress
        self._raised: BaseException | None = None

    def __call__(self, share: float) -> None:
        if self._progress is not None and self._raised is None:
            try:
                self._progress(share)
            except BaseException as error:
                self._raised = error

    def heard(self) -> None:
        """Raises what was raised."""
        if self._raised is not None:
            raise self._raised


def guarded(run: Callable[[], bytes]) -> bytes:
    """What `run` gives; a failure is an answer too, and says nothing about the data."""
    try:
        return run()
    except (EntropyFailure, EngineUnavailable):
        raise  # nothing to do with the data: the question can be asked again
    except Exception:
        return FAILED

"""The one way from a question to what may be seen of it: paid for, run once, stored, shown, certified.

What is to be run, and what that costs, is fixed before (`Purchase`). Then, in this order: the books are charged
durably; the question is run, unless its outcome is stored already; what came of it is stored, a failure too, and with
it, in one transaction, the digest of what its certificate says; what is stored is returned, to everybody alike. A
failure after the charge says nothing about the data. A run that ends before its outcome is stored, whatever ended it,
must be paid for again (`Ledger.ask`).

Randomness for tests protects nobody: who knows the seed takes the noise away. So no lasting books are charged for it,
whoever asks and whatever for; temporary ones keep it under a name, with a note and with a mark of its own.

>>> from tempfile import TemporaryDirectory
>>> from discreet.core.events import Pure
>>> from discreet.core.units import User
>>> from fractions import Fraction
>>> from discreet.core.losses import PureDP
>>> what = Purchase("COUNT(*)", "SELECT COUNT(*) FROM health", "noise", (Pure(Fraction(1, 2)),), PureDP("0.5"))
>>> with TemporaryDirectory() as folder, Ledger.at(f"{folder}/books.db") as books:
...     account = books.open(("health",), budget=PureDP(1), unit=User("patient"), source="file:health.csv")
...     counter = Counter(books, account, PureDP(1), User("patient"), Custody.of(books, f"{folder}/books.db"))
...     [counter.charge_and_run(what, run).payload for run in (lambda: b"about 7", lambda: b"never run")]
[b'about 7', b'about 7']
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from discreet.charging import remaining as allowance
from discreet.charging.certificate import Table, digest, loss_to_json
from discreet.charging.signing_keys import Custody
from discreet.core.errors import (
    AnswerFailed,
    BudgetExceeded,
    EngineUnavailable,
    EntropyFailure,
    InvalidArgument,
)
from discreet.core.events import Event, to_json
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.units import Unit
from discreet.ledger import Ledger
from discreet.ledger.charges import LONGEST_PAYLOAD
from discreet.ledger.confirmation import claims
from discreet.ledger.encoding import step_key
from discreet.ledger.records import Charge, Step

__all__ = ["FAILED", "Bought", "Counter", "Listener", "Purchase", "outcome"]

FAILED = b"failed"
"""What is stored when the engine could not run the statement."""
STEPS = 20
"""In how many steps the progress of a run is told."""
LONGEST_NOTE = 1000
"""Characters of a question that the books keep for the steward to read."""
DELTA_REMEDY = "groups that are not listed take a part of δ in each question; declare the values of their columns"
PURE_REMEDY = "one without a δ, as of Laplace noise, takes more of what is left; ask it for less"
NOT_PRIVATE = "NOT PRIVATE (test randomness)"
"""How the books mark what was drawn from a test seed."""


@dataclass(frozen=True)
class Purchase:
    """What is to be run: everything about it is decided, from public facts alone."""

    identity: str
    """What is measured and where; the same again is free."""
    text: str
    """As whoever asked wrote it."""
    plan: str
    events: tuple[Event, ...]
    loss: PureDP | ApproxDP | ZCDP
    private: bool = True
    """Whether the noise is drawn in earnest."""
    steps: int = 0
    """For how many further releases the events pay."""
    step: Step | None = None
    """Which of those it is; the events, and the loss, are then what was charged for all of them."""

    def seeded(self) -> Purchase:
        """The same from a test seed, which is another question: it never stands in for a private one."""
        return replace(self, identity=f"not private {self.identity}", private=False)


@dataclass(frozen=True)
class Bought:
    """What the ledger stored, and where it was charged."""

    payload: bytes
    charge: Charge
    said: dict[str, Any] | None = None
    """What the books hold of its certificate, where this caller ran the question."""


@dataclass(frozen=True)
class Counter:
    """Where an account buys."""

    ledger: Ledger
    account: tuple[str, ...]
    budget: PureDP | ApproxDP | ZCDP
    unit: Unit
    custody: Custody
    lasting: bool = True
    """Whether the books outlive the session."""

    def charge_and_run(
        self, purchase: Purchase, run: Callable[[], bytes], shown: Callable[[bytes], Table] | None = None
    ) -> Bought:
        """What is stored of a question; `run` is called after the charge, if nothing is stored yet.

        `shown` makes the rows of what `run` gave; then what a certificate says of them is written into the books with
        the outcome, which a stolen key does not do.
        """
        if self.lasting and not purchase.private:
            remedy = "leave it out; tests connect without ledger=, to books that are gone with the session"
            raise InvalidArgument("test_entropy", "a test seed", "left out where books last", remedy)
        mark = "" if purchase.private else f"{NOT_PRIVATE}: "
        note = f"{mark}{' '.join(purchase.text.split())}"[:LONGEST_NOTE]
        made: dict[bytes, dict[str, Any]] = {}

        def state(charge: Charge, payload: bytes) -> str | None:
            if shown is None or payload == FAILED or not purchase.private:
                return None
            made[payload] = self._says(purchase, charge, payload, shown(payload))
            return claims(made[payload])

        try:
            if purchase.step is not None:
                charge = self.ledger.ask_step(self.account, purchase.step, lambda: outcome(run), note=note, state=state)
            else:
                asked = self.account, purchase.events, purchase.identity, lambda: outcome(run)
                charge = self.ledger.ask(*asked, note=note, state=state, steps=purchase.steps)
        except BudgetExceeded as refusal:
            room = allowance.remaining(self.ledger, self.account, self.budget)
            remedy = refusal.remedy
            if (
                isinstance(room, ApproxDP)
                and isinstance(purchase.loss, ApproxDP)
                and purchase.loss.epsilon <= room.epsilon
            ):
                # What remains is told for a question with Gaussian noise, which needs the least.
                told = f"too little of δ is left: {DELTA_REMEDY}" if purchase.loss.delta else PURE_REMEDY
                remedy = f"its ε would fit a question with Gaussian noise; {told}; {remedy}"
            raise BudgetExceeded(purchase.loss, room, remedy) from None
        found = stored_release(charge)
        return replace(found, said=made.get(found.payload))

    def stored(self, *keys: str | Step) -> Charge | None:
        """The charge with its outcome, an answer or a failure, of the first of these that has one for this account:
        questions by their identity, or steps."""
        found = (
            self.ledger.stored_step(self.account, key)
            if isinstance(key, Step)
            else self.ledger.stored(self.account, key)
            for key in keys
        )
        return next((charge for charge in found if charge is not None), None)

    def recalled(self, key: str | Step) -> Bought | None:
        """What is stored of a question, or of a step, if anything is; nothing is charged."""
        charge = self.stored(key)
        return None if charge is None else stored_release(charge)

    def certificate(self, purchase: Purchase, bought: Bought, table: Table) -> dict[str, Any]:
        """A signed statement of what was bought, and of the rows made of it."""
        said = bought.said or self._says(purchase, bought.charge, bought.payload, table)
        self.custody.remember(self.ledger.seen)
        return self.custody.key.sign(said)

    def _says(self, purchase: Purchase, charge: Charge, payload: bytes, table: Table) -> dict[str, Any]:
        """All that a certificate says."""
        said = {
            "format": 2,
            "data": self.account[0],
            "unit": {"kind": type(self.unit).__name__.lower(), **vars(self.unit)},
            "question": purchase.text,
            "canonical": hashlib.sha256(purchase.identity.encode()).hexdigest(),
            "plan": purchase.plan,
            "events": [to_json(event) for event in purchase.events],
            "loss": loss_to_json(purchase.loss),
            "ledger": {"id": self.ledger.id, "entry": charge.sequence, "hash": charge.hash, "time": charge.time},
            "answer": hashlib.sha256(payload).hexdigest(),
            "rows": digest(table.names, table.rows),
        }
        if purchase.step is None:
            return said
        parent, number = purchase.step.parent, purchase.step.number
        paid = {"entry": parent, "hash": self.ledger.hash_of(parent), "step": number}
        return said | {"format": 3, "canonical": step_key(parent, number), "parent": paid}


class Listener:
    """Passes on how much of a run is done, in steps that are the same whatever the data: `STEPS` of them, in order,
    each once, whatever a run does and whether it fails (`during`). So their number and their values tell nothing, not
    even how many rounds a method makes, or that there was nothing to run on.

    What the callback raises is kept until `heard`: it cannot end a run that is paid for.
    """

    def __init__(self, progress: Callable[[float], None] | None) -> None:
        self._progress = progress
        self._raised: BaseException | None = None
        self._passed = 0

    def __call__(self, share: float) -> None:
        while self._passed < min(int(share * STEPS), STEPS):
            self._passed += 1
            if self._progress is not None and self._raised is None:
                try:
                    self._progress(self._passed / STEPS)
                except BaseException as error:
                    self._raised = error

    def during(self, run: Callable[[], bytes]) -> bytes:
        """What `run` gives; whatever it passed on of its progress, and even if it raises, all steps are passed on."""
        try:
            payload = run()
        except Exception:
            self(1.0)
            raise
        self(1.0)
        return payload

    def heard(self) -> None:
        """Raises what the callback raised."""
        if self._raised is not None:
            raise self._raised


def outcome(run: Callable[[], bytes]) -> bytes:
    """What is stored of a run that touches data: its payload, or that it failed, which says nothing about the data.

    What has nothing to do with the data raises; the run is then over without an outcome.
    """
    try:
        payload = run()
    except (EntropyFailure, EngineUnavailable):
        raise
    except Exception:
        return FAILED
    return payload if len(payload) <= LONGEST_PAYLOAD else FAILED


def stored_release(charge: Charge) -> Bought:
    """What a charge with an outcome gives."""
    if charge.payload is None or charge.payload == FAILED:
        raise AnswerFailed()
    return Bought(charge.payload, charge)

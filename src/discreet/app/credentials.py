"""Certificates from files: whether one holds, and what it says.

Nothing but the file, and the public key if one is given, is needed: neither the data, nor the books, nor a network.
With the books it is also found whether its charge and its release are there, and whether they know the key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.app.books import protected
from discreet.certificate import Certificate, verify
from discreet.core.errors import DiscreetError
from discreet.core.numerals import loss, loss_record
from discreet.custody import public_keys
from discreet.ledger import Ledger, LedgerUnavailable

__all__ = ["Checked", "checked"]


@dataclass(frozen=True)
class Checked:
    """A certificate that holds, or the reason why it does not."""

    certificate: Certificate | None
    key: str | None
    reason: str | None

    @property
    def valid(self) -> bool:
        """Whether it holds."""
        return self.certificate is not None

    def as_record(self) -> dict[str, Any]:
        """The finding for JSON."""
        said = self.certificate
        if said is None:
            return {"valid": False, "reason": self.reason}
        return {
            "valid": True,
            "loss": loss_record(said.loss),
            "unit": said.unit,
            "events": len(said.events),
            "ledger": said.ledger,
            "key": self.key,
            "question": said.question,
        }

    def lines(self, *, known: bool) -> list[tuple[str, str]]:
        """The finding for people; `known` if the key was asked for."""
        said = self.certificate
        if said is None:
            return []
        unit, ledger = said.unit, said.ledger
        signer = f"{self.key}" + ("" if known else "\n(compare it with the key the steward published, or give --key)")
        return [
            ("valid", "the signature holds, and the events cost no more than is stated"),
            ("question", said.question),
            ("loss", loss(said.loss)),
            ("protects", protected(unit)),
            ("events", f"{len(said.events)}, from which the loss was computed again"),
            ("charged", f"entry {ledger.get('entry')} of ledger {ledger.get('id')}"),
            ("signed by", signer),
        ]


def checked(path: Path, key: str | None, books: str | None = None) -> Checked:
    """What is found out about the certificate in a file, by itself or also from the books at a place."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        wanted = None if key is None else key.strip().lower()
        said = verify(record, wanted)
        if books is not None:
            with Ledger.at(books, create=False) as ledger:
                ledger.confirm(record, keys=public_keys(ledger, books))
        return Checked(said, record["key"], None)
    except LedgerUnavailable:
        raise
    except DiscreetError as reason:
        return Checked(None, None, str(reason))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        return Checked(None, None, "this is not a certificate")

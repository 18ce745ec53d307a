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
from discreet.core.errors import DiscreetError, InvalidArgument
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
    rows: bool = False
    """Whether rows were compared too."""

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
            "rows": self.rows,
            "ledger": said.ledger,
            "key": self.key,
            "question": said.question,
        }

    def lines(self, *, known: bool) -> list[tuple[str, str]]:
        """The finding for people; `known` if the key was asked for."""
        said = self.certificate
        if said is None:
            return []
        unit, ledger, rows = said.unit, said.ledger, "these are the rows, " if self.rows else ""
        signer = f"{self.key}" + ("" if known else "\n(compare it with the key the steward published, or give --key)")
        return [
            ("valid", f"the signature holds, {rows}and the events cost no more than is stated"),
            ("question", said.question),
            ("loss", loss(said.loss)),
            ("protects", protected(unit)),
            ("events", f"{len(said.events)}, from which the loss was computed again"),
            ("charged", f"entry {ledger.get('entry')} of ledger {ledger.get('id')}"),
            ("signed by", signer),
        ]


def checked(path: Path, key: str | None, books: str | None = None, answer: Path | None = None) -> Checked:
    """What is found out about the certificate in a file: by itself, also from the books at a place, also about the rows
    in a file that `discreet query --json` wrote."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        wanted = None if key is None else key.strip().lower()
        said = verify(record, wanted, answer=None if answer is None else _rows_in(answer))
        if books is not None:
            with Ledger.at(books, create=False) as ledger:
                ledger.confirm(record, keys=public_keys(ledger, books))
        return Checked(said, record["key"], None, answer is not None)
    except LedgerUnavailable:
        raise
    except DiscreetError as reason:
        return Checked(None, None, str(reason))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        return Checked(None, None, "this is not a certificate")


def _rows_in(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"columns": [*found["columns"]], "rows": [[*row] for row in found["rows"]]}
    except (ValueError, TypeError, KeyError, RecursionError):
        bound = 'JSON with "columns" and "rows"'
        raise InvalidArgument("answer", str(path), bound, "give what discreet query --json printed") from None

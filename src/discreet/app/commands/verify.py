"""Certificates from files: whether one holds, and what it says.

Nothing but the file, and the public key if one is given, is needed: neither the data, nor the books, nor a network.
Then the signature is checked, and the loss; a key that nobody named may be anybody's, and a key that was stolen signs
what was never charged. With the books it is also found whether they know the key, and whether all that the certificate
says is what was charged, released and written there. What was not looked at is told, and the exit code shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.app.commands.books import protected
from discreet.charging.certificate import Certificate, read_record, verify
from discreet.charging.signing_keys import public_keys
from discreet.core.display.numbers import loss, loss_record
from discreet.core.errors import DiscreetError, InvalidArgument
from discreet.ledger import Ledger, LedgerUnavailable

__all__ = ["CHECKED", "UNCHECKED", "WRONG", "Checked", "checked"]


CHECKED, WRONG, UNCHECKED = 0, 1, 4
"""What the command ends with: all that a certificate says was found to be so; something is not so; nothing is wrong,
and not everything was looked at."""


@dataclass(frozen=True)
class Checked:
    """What was found out about a certificate: what is right, what was not looked at, or what is wrong."""

    certificate: Certificate | None
    key: str | None
    reason: str | None
    unchecked: tuple[str, ...] = ()
    """What was not looked at, of all that the certificate says."""
    rows: bool = False
    """Whether rows were compared too."""
    known: bool = False
    """Whether the key that signed is the one that was named, or one of the books."""

    @property
    def code(self) -> int:
        """The exit code."""
        if self.certificate is None:
            return WRONG
        return UNCHECKED if self.unchecked else CHECKED

    def as_record(self) -> dict[str, Any]:
        """The finding for JSON; `valid` is null where nothing is wrong and not everything was looked at."""
        said = self.certificate
        if said is None:
            return {"valid": False, "reason": self.reason}
        return {
            "valid": None if self.unchecked else True,
            "unchecked": list(self.unchecked),
            "loss": loss_record(said.loss),
            "unit": said.unit,
            "events": len(said.events),
            "rows": self.rows,
            "ledger": said.ledger,
            "key": self.key,
            "known": self.known,
            "question": said.question,
            "canonical": said.canonical,
        } | ({"parent": said.parent} if said.parent else {})

    def lines(self) -> list[tuple[str, str]]:
        """The finding for people."""
        said = self.certificate
        if said is None:
            return []
        unit, ledger, rows = said.unit, said.ledger, "these are the rows, " if self.rows else ""
        right = f"the signature holds, {rows}and the events cost no more than is stated"
        missing = [("not checked", "\n".join(self.unchecked))] if self.unchecked else []
        covers = [("covers", f"all steps together; this is step {said.parent['step']}")] if said.parent else []
        return [
            ("so far right" if self.unchecked else "valid", right),
            *missing,
            ("question", said.question),
            ("loss", loss(said.loss)),
            ("protects", protected(unit)),
            ("events", f"{len(said.events)}, from which the loss was computed again"),
            *covers,
            ("charged", f"entry {ledger.get('entry')} of ledger {ledger.get('id')}"),
            ("signed by", f"{self.key}" + ("" if self.known else "\n(compare it with the key the steward published)")),
        ]


def checked(path: Path, key: str | None, books: str | None = None, answer: Path | None = None) -> Checked:
    """What is found out about the certificate in a file: by itself, also from the books at a place, also about the rows
    in a file that `discreet query --json` wrote."""
    try:
        record = read_record(path.read_text(encoding="utf-8"))
        wanted = None if key is None else key.strip().lower()
        said = verify(record, wanted, answer=None if answer is None else _rows_in(answer))
        missing: list[str] = []
        if books is not None:
            with Ledger.at(books, create=False) as ledger:
                untold = ledger.confirm(record, keys=public_keys(ledger, books))
                missing += [f"{part}: the books do not tell" for part in untold]
        else:
            missing += [] if key is not None else ["whose key signed it: give --key"]
            missing += ["whether it was charged and released: give --at"]
            missing += [] if said.canonical else ["the question: its spaces were run together before it was signed"]
        known = key is not None or books is not None
        return Checked(said, record["key"], None, tuple(missing), answer is not None, known)
    except LedgerUnavailable:
        raise
    except DiscreetError as reason:
        return Checked(None, None, str(reason))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        return Checked(None, None, "this is not a certificate")


def _rows_in(path: Path) -> Any:
    try:
        found = read_record(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    except InvalidArgument:
        raise
    except (ValueError, RecursionError):
        pass
    remedy = "give what discreet query --json printed"
    raise InvalidArgument("answer", str(path), 'JSON with "columns" and "rows"', remedy)

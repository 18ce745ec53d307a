"""Holding a certificate against the books: was it charged there, for these events, and is this what was released?

>>> entry_of({"ledger": {"entry": 7}})
7
>>> entry_of({"ledger": "unknown"})
0
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.ledger.notation import digest
from discreet.ledger.store import Books

__all__ = ["confirm", "entry_of"]


def entry_of(certificate: Mapping[str, Any]) -> int:
    """The entry that a certificate names; 0 if it names none."""
    said = certificate.get("ledger")
    number = said.get("entry") if isinstance(said, Mapping) else None
    return number if isinstance(number, int) and number > 0 else 0


def confirm(books: Books, ledger: str, certificate: Mapping[str, Any], keys: Collection[str]) -> None:
    """Raises an error that names the first thing in which the certificate and the books differ."""
    number = entry_of(certificate)
    if not number or certificate["ledger"].get("id") != ledger:
        raise InvalidArgument("certificate", certificate.get("ledger"), f"of the ledger {ledger}", "ask its own ledger")
    entry, release = books.entry(number), books.release(number)
    if entry is None or entry.hash != certificate["ledger"].get("hash"):
        remedy = "it is forged, or an old copy of the books was put back: check them with this entry as the anchor"
        raise InvalidArgument("certificate", certificate["ledger"], "an entry of the books", remedy)
    content = entry.content
    if content["kind"] != "charge" or content["account"][:1] != [certificate.get("data")]:
        raise InvalidArgument("certificate", certificate.get("data"), "what was charged for", "do not trust it")
    if content["events"] != certificate.get("events"):
        raise InvalidArgument("certificate", "its events", "those that were charged", "do not trust it")
    if release is None or digest(release.payload) != certificate.get("answer"):
        raise InvalidArgument("certificate", certificate.get("answer"), "the digest of the release", "do not trust it")
    if certificate.get("key") not in keys:
        bound = "one that the books or their steward know"
        raise InvalidArgument("certificate", certificate.get("key"), bound, "it was signed by somebody else")

"""Holding a certificate against the books: was it charged there, for these events, and is this what was released?

A key that was stolen signs anything. So the books hold what certificates say: the charge holds the digest of the
canonical question and the events, its account the unit, the release the digest of the answer; and an entry of kind
`certify` the digest of all that the certificate says, which is written in one transaction with the release. (A release
whose maker was interrupted before its rows were made has none, nor have those of the first versions.) A certificate
that differs from the books in the first is wrong. One whose digest is not among the last may be another wording of the
same question, whose measured sums are in the books and whose wording and rows are not: that is told, and is not the
same as being right.

>>> entry_of({"ledger": {"entry": 7}})
7
>>> entry_of({"ledger": "unknown"})
0
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.ledger.encoding import canonical, digest, unit_to_plain
from discreet.ledger.stores.store import Books, pages

__all__ = ["claims", "confirm", "entry_of"]

UNTOLD = ("the wording of the question", "the plan", "the loss, if it is above what the events cost", "the rows")
"""What the books do not tell of a certificate that they do not hold as a whole."""
UNTOLD_OF_FORMAT_1 = ("the question", *UNTOLD[1:])
"""What they do not tell of one in the first format, which has no digest of the canonical question."""


def entry_of(certificate: Mapping[str, Any]) -> int:
    """The entry that a certificate names; 0 if it names none."""
    said = certificate.get("ledger")
    number = said.get("entry") if isinstance(said, Mapping) else None
    return number if type(number) is int and number > 0 else 0


def confirm(books: Books, ledger: str, certificate: Mapping[str, Any], keys: Collection[str]) -> tuple[str, ...]:
    """Raises an error that names the first thing in which the certificate and the books differ; returns what the books
    do not tell."""
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
    step = "parent" in content or "parent" in certificate
    paid = _paid(books, content, certificate.get("parent")) if step else content
    if paid["events"] != certificate.get("events"):
        raise InvalidArgument("certificate", "its events", "those that were charged", "do not trust it")
    if content["time"] != certificate["ledger"].get("time"):
        raise InvalidArgument("certificate", "its time", "when it was charged", "do not trust it")
    dataset = books.account(tuple(content["account"][:1]))
    if dataset is None or dataset.unit is None or _unit_of(certificate) != unit_to_plain(dataset.unit):
        raise InvalidArgument("certificate", certificate.get("unit"), "the unit of the data set", "do not trust it")
    if "canonical" in certificate and certificate["canonical"] != _question(content):
        raise InvalidArgument("certificate", certificate["canonical"], "the question charged for", "do not trust it")
    if release is None or digest(release.payload) != certificate.get("answer"):
        raise InvalidArgument("certificate", certificate.get("answer"), "the digest of the release", "do not trust it")
    if certificate.get("key") not in keys:
        bound = "one that the books or their steward know"
        raise InvalidArgument("certificate", certificate.get("key"), bound, "it was signed by somebody else")
    if "canonical" not in certificate:
        return UNTOLD_OF_FORMAT_1
    return () if _holds(books, release.sequence, number, certificate) else UNTOLD


def _paid(books: Books, content: Mapping[str, Any], parent: Any) -> Mapping[str, Any]:
    """The entry that paid for a step, which the step and its certificate both name."""
    entry = books.entry(content["parent"]) if "parent" in content else None
    known = {} if entry is None else {"entry": entry.sequence, "hash": entry.hash, "step": content["number"]}
    if entry is None or parent != known:
        raise InvalidArgument("certificate", parent, "the step that was charged", "do not trust it")
    return entry.content


def _holds(books: Books, since: int, charge: int, certificate: Mapping[str, Any]) -> bool:
    """Whether the books hold the digest of all that a certificate says."""
    begun, wanted = f'{{"charge":{charge},"kind":"certify"', claims(certificate)
    entries = (entry.content for entry in pages(books, since) if entry.text.startswith(begun))
    return any(content["statement"] == wanted for content in entries)


def claims(certificate: Mapping[str, Any]) -> str:
    """The digest of all that a certificate says, whoever signed it."""
    return digest(canonical({name: value for name, value in certificate.items() if name not in ("key", "signature")}))


def _unit_of(certificate: Mapping[str, Any]) -> dict[str, Any]:
    unit = certificate.get("unit")
    said = dict(unit) if isinstance(unit, Mapping) else {}
    return said | {"kind": str(said.get("kind", "")).capitalize()}


def _question(content: Mapping[str, Any]) -> str:
    """The digest of what was asked, whichever attempt a charge was for and wherever answers are kept."""
    return str(content.get("asked", content.get("first", content["question"])))

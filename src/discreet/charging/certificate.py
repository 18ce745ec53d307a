"""A signed statement of what a release guarantees, checkable offline by anyone.

A certificate names the data and who is protected, the question as it was written and the digest of what was asked in
canonical form, the plan, the events that were run, the loss they compose to, the place in the ledger where they were
charged, the digest of what was released and that of the rows made of it.

`verify` checks the signature and recomputes the loss from the events. That is not all there is to check, and what it
returns says so: **anybody can sign with a key of their own**, so a signature means something only by a key that is
known to be the steward's (`public`), and whoever stole that key can sign what was never charged, which only the books
tell (`Ledger.confirm`). Given an answer, it checks its rows too.

Certificates of the first format, which has no field "format", keep the question with its spaces run together, so what
it said in quotes or after a comment is not certain: they are read as before, and that is said.

>>> key = SigningKey.create()
>>> half = {"kind": "pure", "epsilon": "1/2"}
>>> said = {"data": "visits", "unit": {"kind": "user", "column": "who", "neighbours": "add_remove"}}
>>> said |= {"format": 2, "question": "SELECT COUNT(*)\\n  FROM visits", "canonical": "d"}
>>> said |= {"plan": "Laplace noise", "events": [half], "loss": half}
>>> said |= {"ledger": {"id": "a", "entry": 1, "hash": "b", "time": "2026-11-15"}, "answer": "c"}
>>> said |= {"rows": digest(["n"], [[7]])}
>>> record = key.sign(said)
>>> print(verify(record, key.public))
SELECT COUNT(*)
      FROM visits
on visits, asked on 2026-11-15
protects each user (column who), whether there or not
cost PureDP(epsilon=0.5), which follows from the 1 events that were run
not checked: whether the books hold it; the rows of an answer
>>> verify(record | {"question": "another"}, key.public)
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: ...
>>> verify(record, key.public, answer={"columns": ["n"], "rows": [[8]]})
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: ...
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from hashlib import sha256
from math import isfinite
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import NoneType
from typing import Any, Protocol, TypeGuard

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet.accounting.calibration import within
from discreet.accounting.flattening import parts
from discreet.core.display.numbers import plain
from discreet.core.display.text import visible
from discreet.core.errors import InvalidArgument
from discreet.core.events import Composed, Event, FixedSizeSampled, PoissonSampled, from_json
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP

__all__ = ["Certificate", "SigningKey", "Table", "digest", "loss_from_json", "loss_to_json", "read_record", "verify"]

_SAID = ("data", "unit", "question", "plan", "ledger", "answer", "rows")
_VALUES = (str, int, float, bool, NoneType, date, datetime)
_NUMBER = re.compile(r"[0-9]{1,4300}(?:/[0-9]{1,4300})?", re.ASCII)
"""As `loss_to_json` writes numbers; others, as one with a large exponent, take for ever to read."""
MOST_SAMPLED = 32
"""Different events that one sample may compose for a certificate to be checked: a hundred take ten seconds."""
MOST_SAMPLED_IN_ALL = 128
"""The same for all samples together: one sample of one event takes some 50 ms."""
MOST_REPEATED = 10_000
"""Events that one sample may compose, equal ones too: a million take 150 MB, and what a sample is repeated is free."""
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_FIELDS_1 = {*_SAID, "events", "loss", "key", "signature"}
_FIELDS_2 = {*_FIELDS_1, "format", "canonical"}
_FIELDS_3 = {*_FIELDS_2, "parent"}
_FIELDS = {1: _FIELDS_1, 2: _FIELDS_2, 3: _FIELDS_3}
_SAMPLES = (PoissonSampled, FixedSizeSampled)
_PARENT = {"entry": int, "hash": str, "step": int}
_CHECKS = {
    "signature": "the signature",
    "loss": "the loss, from the events that were run",
    "wording": "the question: its spaces were run together before it was signed",
    "key": "whose key signed it",
    "books": "whether the books hold it",
    "rows": "the rows of an answer",
}
"""What can be checked of a certificate."""


class Table(Protocol):
    """Rows with the names of their columns, such as an answer."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]: ...


@dataclass(frozen=True)
class Certificate:
    """What a verified certificate says."""

    data: str
    unit: dict[str, Any]
    question: str
    plan: str
    events: tuple[Event, ...]
    loss: Loss
    ledger: dict[str, Any]
    answer: str
    """The SHA-256 digest of what was released, as the ledger keeps it."""
    rows: str
    """The digest of the rows made of it, with the names of their columns."""
    canonical: str | None = None
    """The SHA-256 digest of what was asked, in canonical form, under which the books have it; None in format 1."""
    parent: dict[str, Any] | None = None
    """Of one step of a long-lived question, its number and the entry that was charged for all steps; the events and the
    loss are of all of them together. Format 3 has it."""
    checked: tuple[str, ...] = field(default=(), compare=False)
    """What was found to be right."""
    unchecked: tuple[str, ...] = field(default=(), compare=False)
    """What was not looked at: it may be right or wrong."""

    def __str__(self) -> str:
        column = f" (column {visible(self.unit['column'])})" if "column" in self.unit else ""
        other = "replaced by any other" if self.unit["neighbours"] == "replace" else "there or not"
        told = (
            f"{_indented(self.question)}\n"
            f"on {visible(self.data)}, asked on {visible(self.ledger['time'])}\n"
            f"protects each {visible(self.unit['kind'])}{column}, whether {other}\n"
            f"cost {self.loss}, which follows from the {len(self.events)} events that were run"
            + self._covers
            + (f"\nnot checked: {'; '.join(self.unchecked)}" if self.unchecked else "")
        )
        return visible(told, lines=True)

    @property
    def _covers(self) -> str:
        if self.parent is None:
            return ""
        return f"\nfor all steps together, in entry {self.parent['entry']}; this is step {self.parent['step']}"


def _indented(question: str) -> str:
    """A question with all lines but its first set in: what stands at the left margin below is the certificate's."""
    return question.replace("\n", "\n    ")


class SigningKey:
    """The steward's Ed25519 key."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private

    @classmethod
    def create(cls) -> SigningKey:
        """A new key, from the operating system's randomness."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def at(cls, path: Path) -> SigningKey:
        """The key kept in a file that only its owner may read; made on first use."""
        try:
            return cls(Ed25519PrivateKey.from_private_bytes(path.read_bytes()))
        except FileNotFoundError:
            key = cls.create()
        # Written aside and linked: the file is there whole or not at all, and whoever comes second takes the first key.
        with NamedTemporaryFile(dir=path.parent, prefix=path.name) as draft:
            draft.write(key._private.private_bytes_raw())
            draft.flush()
            os.fsync(draft.fileno())
            try:
                os.link(draft.name, path)
            except FileExistsError:
                return cls.at(path)
        return key

    @property
    def public(self) -> str:
        """The public half, in hex: what a verifier needs to know."""
        return self._private.public_key().public_bytes_raw().hex()

    def sign(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record with the key's public half and a signature over everything."""
        signed = record | {"key": self.public}
        return signed | {"signature": self._private.sign(_canonical(signed)).hex()}


def verify(
    record: dict[str, Any] | str | os.PathLike[str],
    public: str | None = None,
    *,
    answer: Table | Mapping[str, Any] | None = None,
) -> Certificate:
    """What a certificate, or the file that holds one, says: once its signature holds, and its events cost no more than
    its loss. With an answer, or the "columns" and "rows" of its JSON, its rows must be the ones that were certified.

    What it returns tells what was checked and what was not: without `public`, whoever made it may have signed it.
    """
    record = _in_file(record) if isinstance(record, str | os.PathLike) else record
    number = _format_of(record)
    if public is not None and record["key"] != public:
        raise InvalidArgument("key", record["key"], f"the expected {public}", "this was signed by somebody else")
    unsigned = {name: value for name, value in record.items() if name != "signature"}
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(record["key"]))
        if not _SIGNATURE.fullmatch(record["signature"]):
            raise ValueError
        key.verify(bytes.fromhex(record["signature"]), _canonical(unsigned))
    except (InvalidSignature, ValueError, TypeError, RecursionError):
        raise InvalidArgument("signature", record["signature"], "valid", "the certificate was changed") from None
    events, loss = _charged(record)
    if not within(Composed(events), loss):
        raise InvalidArgument("loss", loss, "what the events cost, or more", "do not trust this certificate")
    if answer is not None and _digest_of(answer) != record["rows"]:
        remedy = "these rows were changed, or have another certificate"
        raise InvalidArgument("answer", _digest_of(answer), f"{record['rows']}, as was certified", remedy)
    right = {"signature", "loss", *(["rows"] if answer is not None else []), *(["key"] if public is not None else [])}
    right |= {"wording"} if number > 1 else set()
    said = {name: record[name] for name in _SAID} | {name: record.get(name) for name in ("canonical", "parent")}
    checked = tuple(text for name, text in _CHECKS.items() if name in right and name != "wording")
    unchecked = tuple(text for name, text in _CHECKS.items() if name not in right)
    return Certificate(**said, events=events, loss=loss, checked=checked, unchecked=unchecked)


def _charged(record: dict[str, Any]) -> tuple[tuple[Event, ...], Loss]:
    """The events and the loss of a certificate."""
    try:
        events = tuple(from_json(event) for event in record["events"])
        _assert_checkable(events)
        loss = loss_from_json(record["loss"])
        said = (*(record[name] for name in ("data", "question", "plan", "answer", "rows")), record["ledger"]["time"])
        unit = record["unit"]["kind"], record["unit"]["neighbours"], record["unit"].get("column", "")
        if not all(isinstance(text, str) for text in (*said, *unit)):
            raise TypeError
        if "parent" in record and {name: type(part) for name, part in record["parent"].items()} != _PARENT:
            raise TypeError
    except InvalidArgument:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        remedy = "do not trust it: no version of discreet signs this"
        raise InvalidArgument("certificate", sorted(record), "with fields of the right kinds", remedy) from None
    return events, loss


def _assert_checkable(events: tuple[Event, ...]) -> None:
    """That accounting for the events takes seconds at most. The work grows with the different samples there are, and
    with what each of them composes. A sample of samples is the work of both multiplied, and nothing makes one."""
    sampled = [parts(leaf.event) for leaf, _ in parts(Composed(events)) if isinstance(leaf, _SAMPLES)]
    nested = any(isinstance(leaf, _SAMPLES) for inner in sampled for leaf, _ in inner)
    repeated = any(sum(count for _, count in inner) > MOST_REPEATED for inner in sampled)
    most = max(map(len, sampled), default=0)
    if nested or repeated or most > MOST_SAMPLED or sum(map(len, sampled)) > MOST_SAMPLED_IN_ALL:
        raise TypeError


def _format_of(record: Any) -> int:
    """Which format a record is in: it says so in a whole number, or in the first format not at all, and has the fields
    of that format and no others."""
    if not isinstance(record, dict) or not all(isinstance(name, str) for name in record):
        raise InvalidArgument("certificate", record, f"a record with {sorted(_FIELDS_2)}", "give it unchanged")
    number = record.get("format", 1)
    if type(number) is not int or number not in _FIELDS or ("format" in record and number == 1):
        bound = f"{max(_FIELDS)}, or left out in the first format"
        raise InvalidArgument("format", number, bound, "give it unchanged, or use a newer version of discreet")
    if set(record) != _FIELDS[number]:
        bound = f"a record with {sorted(_FIELDS[number])}"
        raise InvalidArgument("certificate", sorted(record), bound, "give it unchanged")
    return number


def digest(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """The SHA-256 digest of a table: of its names and values as JSON, dates as text."""
    columns, values = [*names], [[*row] for row in rows]
    try:
        written = _canonical({"columns": columns, "rows": values})
    except (TypeError, ValueError):
        written = _canonical({"columns": columns, "rows": [[plain(value) for value in row] for row in values]})
    return sha256(written).hexdigest()


def _digest_of(answer: Table | Mapping[str, Any]) -> str:
    if not isinstance(answer, Mapping):
        return _digest_of_table(answer)
    columns, rows = answer.get("columns"), answer.get("rows")
    # Anything else could have the digest of other rows, as a dict has that of its keys and a NaN that of NULL.
    if not _is_list_of(columns, str) or not isinstance(rows, list | tuple):
        raise _not_rows(answer)
    if not all(_is_list_of(row, *_VALUES) and len(row) == len(columns) for row in rows):
        raise _not_rows(answer)
    if not all(isfinite(value) for row in rows for value in row if type(value) is float):
        raise _not_rows(answer)
    return digest(columns, rows)


def _digest_of_table(answer: Table) -> str:
    """Of rows in Python, where cells may be dates, too; what holds other values cannot be a row of ours."""
    columns, rows = [*answer.names], [*answer.rows]
    try:
        shaped = all(isinstance(row, list | tuple) and len(row) == len(columns) for row in rows)
        nested = any(isinstance(cell, Mapping | list | tuple | set) for row in rows for cell in row)
        finite = all(isfinite(cell) for row in rows for cell in row if isinstance(cell, float))
        if not shaped or nested or not finite:
            raise TypeError
        return digest(columns, rows)
    except (TypeError, ValueError, RecursionError):
        raise _not_rows(answer) from None


def _is_list_of(value: object, *kinds: type) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple) and all(type(item) in kinds for item in value)


def _not_rows(answer: object) -> InvalidArgument:
    bound = 'of "columns", a list of texts, and "rows", lists of as many texts, finite numbers, truth values and NULLs'
    return InvalidArgument("answer", answer, bound, "give an answer, or what discreet query --json printed")


def read_record(text: str) -> Any:
    """What a text in JSON says. One that says something twice is refused: other readers would take the other one."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidArgument("record", twice, "said once each", "do not trust it: readers differ")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=once)


def _in_file(path: str | os.PathLike[str]) -> Any:
    try:
        return read_record(Path(path).read_text(encoding="utf-8"))
    except InvalidArgument:
        raise
    except (OSError, ValueError, RecursionError):
        bound = "a certificate, or the path of a file that holds one as JSON"
        raise InvalidArgument("certificate", str(path), bound, "give answer.certificate, or its file") from None


def loss_to_json(loss: Loss) -> dict[str, str]:
    """A loss as a plain record, with exact numbers."""
    match loss:
        case PureDP(epsilon):
            return {"kind": "pure", "epsilon": str(epsilon)}
        case ApproxDP(epsilon, delta):
            return {"kind": "approx", "epsilon": str(epsilon), "delta": str(delta)}
        case ZCDP(rho):
            return {"kind": "zcdp", "rho": str(rho)}
        case _:
            raise InvalidArgument("loss", loss, "PureDP, ApproxDP or ZCDP", "convert it first")


def loss_from_json(record: dict[str, str]) -> Loss:
    """The loss that `loss_to_json` wrote."""
    texts = {name: value for name, value in record.items() if name != "kind"}
    if not all(isinstance(value, str) and _NUMBER.fullmatch(value) for value in texts.values()):
        raise InvalidArgument("loss", record, "of whole numbers and fractions, as texts", "give it unchanged")
    numbers = {name: Fraction(value) for name, value in texts.items()}
    match record.get("kind"), sorted(numbers):
        case "pure", ["epsilon"]:
            return PureDP(numbers["epsilon"])
        case "approx", ["delta", "epsilon"]:
            return ApproxDP(numbers["epsilon"], numbers["delta"])
        case "zcdp", ["rho"]:
            return ZCDP(numbers["rho"])
    raise InvalidArgument("loss", record, "a record of loss_to_json", "give it unchanged")


def _canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")

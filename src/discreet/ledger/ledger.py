"""The ledger: who may still ask what, and what was answered.

>>> from fractions import Fraction
>>> from tempfile import TemporaryDirectory
>>> from discreet.core.events import Pure
>>> from discreet.core.losses import PureDP
>>> from discreet.core.units import User
>>> folder = TemporaryDirectory()
>>> books = Ledger.at(f"{folder.name}/books.db")
>>> health = books.open(("health",), budget=PureDP(1), unit=User("patient"), source="sha256:1f…")
>>> charge = books.charge(health, [Pure(Fraction(3, 4))], question="COUNT(*), ε=3/4")
>>> charge.payload is None       # nothing is stored yet: run the question once, then
True
>>> books.complete(charge, b"1234")
b'1234'
>>> books.replay(health, question="COUNT(*), ε=3/4"), books.remaining(health)
(b'1234', PureDP(epsilon=0.25))
>>> books.check().sound
True
>>> books.close(); folder.cleanup()

The law of one question. Within a data set a question, by its exact text, is **paid for once and answered once**:

1. `charge` writes the charge durably before it returns. Asked again, by anyone, it returns the same charge for free.
2. Whoever holds a charge without a payload may run the question. Several may do so at once, or again after a crash.
3. `complete` stores the first payload that arrives, and returns what is stored, to everybody. **Only what `complete` or
   `replay` or `Charge.payload` returns may be shown.** All other results are thrown away unseen.

So a charge covers exactly one answer that anybody sees, whichever process dies when. There are no refunds. A failure
that could depend on the data is an answer: complete the charge with it. To draw a fresh answer, ask a different text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from discreet.accounting.filters import Composition
from discreet.accounting.parts import as_event
from discreet.core.errors import InvalidArgument
from discreet.core.events import Composed, Event
from discreet.core.exact import Exactable
from discreet.core.losses import Loss
from discreet.core.units import Unit
from discreet.ledger.accounts import Opening, admit, amended, charges_under, filter_of, largest, lineage, room
from discreet.ledger.addresses import store_at
from discreet.ledger.attestation import confirm, entry_of
from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.notation import (
    Path,
    account_path,
    canonical,
    digest,
    events_to_plain,
    loss_to_plain,
    plain_text,
)
from discreet.ledger.records import (
    Account,
    Charge,
    ChargeRow,
    Entry,
    Head,
    ReleaseRow,
    Report,
    Standing,
)
from discreet.ledger.registry import registry
from discreet.ledger.store import NOTHING, PAGE, Books, Look, Store, pages
from discreet.ledger.verification import check
from discreet.noise.entropy import system

__all__ = ["Ledger"]

FORMAT = 1
"""The meaning of the entries. It never changes for a number that was used; a new meaning gets the next one."""
LONGEST_TEXT = 4096
LONGEST_QUESTION = 2**20
LONGEST_EVENTS = 2**20
LONGEST_PAYLOAD = 2**28


class Ledger:
    """The books of any number of data sets, their studies and analysts."""

    def __init__(self, store: Store, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._store = store
        self._clock = clock
        self._seen = Head(0, "")
        with self._reading() as books:
            first = books.entry(1)
        if first is None:
            with self._writing() as books:
                first = books.entry(1) or self._append(
                    books, {"kind": "ledger", "format": FORMAT, "id": f"{system().bits(128):032x}"}
                )
        origin = first.content
        if origin.get("kind") != "ledger" or origin.get("format") != FORMAT:
            raise LedgerDamaged(f"its entries are not of format {FORMAT}", "use the version of discreet it is from")
        self.id: str = origin["id"]

    @classmethod
    def at(cls, place: str | os.PathLike[str], *, create: bool = True, patience: float = 30.0) -> Ledger:
        """The ledger at `place`, made if there is none and `create` is set: a file, or a PostgreSQL database for an
        address such as `postgresql://host/database`.

        `patience` is how many seconds to wait for other writers.
        """
        return cls(store_at(place, create=create, patience=patience))

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._store.close()

    def open(
        self,
        account: Path,
        *,
        budget: Loss | None = None,
        unit: Unit | None = None,
        source: str | None = None,
        composition: Composition | None = None,
        delta_share: Exactable | None = None,
        order: Exactable | None = None,
    ) -> Path:
        """Opens an account, or continues one; returns the account under which the books are kept.

        A data set needs a budget, a unit, and a source: a text that identifies the data whatever it is called, such as
        a digest or an address. If the source is known already, its data set is continued, **also under another name**,
        and the name in the books is returned. Studies and analysts may have a budget.
        `composition`, `delta_share` and `order` are those of `accounting.Filter`.
        """
        if source is not None:
            plain_text("source", source, LONGEST_TEXT)
        asked = Opening(account_path(account), budget, unit, source, composition, delta_share, order)
        look = Look(path=asked.path)
        with self._reading(look) as books:
            known = asked.found(books)
        if known is not None:
            return known
        with self._writing(look) as books:
            known = asked.found(books)
            if known is not None:
                return known
            made, entry = asked.made(books)
            self._append(books, entry)
            books.put_account(made)
            if source is not None:
                books.put_source(source, made.path[0])
        return made.path

    def amend(self, account: Path, budget: Loss, *, note: str = "") -> None:
        """Changes a budget on record: to one of the same definition, all of it larger or all of it smaller, and never
        below what is spent.

        What holds for all answers together is, in each number, the largest budget that was ever in force.
        """
        path = account_path(account)
        plain_text("note", note, LONGEST_TEXT, empty=True)
        with self._writing(Look(path=path)) as books:
            accounts = lineage(books, path)
            standing = accounts[-1]
            current = filter_of(standing, accounts[0])
            state = amended(standing, current, budget, charges_under(pages(books, 0), path)).state()
            content = {
                "kind": "amend",
                "account": path,
                "budget": loss_to_plain(budget),
                "former": None if standing.budget is None else loss_to_plain(standing.budget),
                "state": state,
                "note": note,
            }
            self._append(books, content)
            promised = largest(standing.promised, budget)
            books.put_account(replace(standing, budget=budget, promised=promised, state=canonical(state)))

    def attach(self, account: Path, source: str, *, note: str = "") -> None:
        """Says on record that `source` is about the same people as the data set: it shares its budget from now on."""
        path = account_path(account)
        if len(path) > 1:
            raise InvalidArgument("account", path, "a data set", f"attach it to {path[:1]}")
        plain_text("source", source, LONGEST_TEXT)
        plain_text("note", note, LONGEST_TEXT, empty=True)
        with self._writing() as books:
            lineage(books, path)
            owner = books.owner(source)
            if owner is None:
                self._append(books, {"kind": "attach", "account": path, "source": source, "note": note})
                books.put_source(source, path[0])
            elif owner != path[0]:
                raise InvalidArgument("source", source, f"of {path[0]!r} or of none", f"it belongs to {owner!r}")

    def charge(
        self,
        account: Path,
        events: Event | Iterable[Event],
        question: str,
        *,
        request: str | None = None,
        note: str = "",
    ) -> Charge:
        """Charges the events to the account and all above it, or raises and changes nothing.

        `question` is a text that says exactly what is asked, with all parameters: it is the key of the law above, and
        only its digest is kept. `request` is the caller's own key for this call; it belongs to one question. On
        return the charge is on the disk.
        """
        path = account_path(account)
        asked = digest(plain_text("question", question, LONGEST_QUESTION))
        event = as_event(events)
        plain = events_to_plain(event.events if isinstance(event, Composed) else (event,))
        if len(canonical(plain)) > LONGEST_EVENTS:
            bound = f"written in {LONGEST_EVENTS} characters"
            raise InvalidArgument("events", f"{len(plain)} events", bound, "merge equal ones with Repeated, or split")
        plain_text("note", note, LONGEST_TEXT, empty=True)
        if request is not None:
            plain_text("request", request, LONGEST_TEXT)
        with self._writing(Look(path=path, question=asked, request=request)) as books:
            accounts = lineage(books, path)
            earlier = books.charge_for(path[0], asked)
            if earlier is not None:
                return self._again(books, earlier, plain)
            if request is not None and books.charge_with(path[0], request) is not None:
                raise InvalidArgument("request", request, "new for a new question", "make one for each question")
            filters = {each.path: filter_of(each, accounts[0]) for each in accounts}
            admit(filters, accounts[0].unit, event)
            spent = str(filters[path[:1]].spent)
            states = [filter.state() for filter in filters.values()]
            time = self._now()
            content = {"kind": "charge", "account": path, "events": plain, "question": asked, "request": request}
            entry = self._append(books, content | {"note": note, "spent": spent, "states": states, "time": time})
            books.put_charge(ChargeRow(entry.sequence, path, asked, request, time))
            books.put_states({each.path: canonical(state) for each, state in zip(accounts, states, strict=True)})
        return Charge(self.id, entry.sequence, entry.hash, path, asked, spent, time, True, None)

    def fits(self, account: Path, events: Event | Iterable[Event]) -> bool:
        """Whether `charge` would admit the events now; nothing is charged."""
        event = as_event(events)
        path = account_path(account)
        with self._reading(Look(path=path)) as books:
            accounts = lineage(books, path)
            filters = [filter_of(each, accounts[0]) for each in accounts]
        return all(filter.fits(event) for filter in filters)

    def complete(self, charge: Charge, payload: bytes) -> bytes:
        """Stores the release for the charge, unless there is one, and returns the one that is stored: only that may be
        shown. On return it is on the disk."""
        if not isinstance(payload, bytes) or len(payload) > LONGEST_PAYLOAD:
            raise InvalidArgument("payload", type(payload), f"bytes, at most {LONGEST_PAYLOAD}", "serialise it")
        with self._writing(Look(charge=charge.sequence)) as books:
            entry = books.entry(charge.sequence)
            mine = entry is not None and (charge.ledger, charge.hash) == (self.id, entry.hash)
            if entry is None or not mine or entry.content["kind"] != "charge":
                raise InvalidArgument("charge", charge, "one that this ledger made", "charge first")
            stored = books.release(charge.sequence)
            if stored is not None:
                return stored.payload
            content = {"kind": "release", "charge": charge.sequence, "size": len(payload), "payload": digest(payload)}
            made = self._append(books, content)
            books.put_release(ReleaseRow(charge.sequence, made.sequence, payload))
        return payload

    def replay(self, account: Path, question: str) -> bytes | None:
        """The release of an identical question on the same data set, for free; None if there is none."""
        path = account_path(account)
        asked = digest(plain_text("question", question, LONGEST_QUESTION))
        with self._reading(Look(path=path[:1], question=asked)) as books:
            row = books.charge_for(path[0], asked)
            stored = None if row is None else books.release(row.sequence)
        return None if stored is None else stored.payload

    def spent(self, account: Path) -> Loss:
        """What was charged at the account and below, in the definition of its budget, or else of its data set's."""
        return self.standing(account)[-1].spent

    def remaining(self, account: Path) -> Loss:
        """A loss that still fits, in the definition of the nearest budget from the account upwards.

        Budgets above that one count if they are in the same definition; `standing` shows each of them.
        """
        path = account_path(account)
        with self._reading(Look(path=path)) as books:
            return room(lineage(books, path))

    def standing(self, account: Path) -> tuple[Standing, ...]:
        """How the account and all above it stand, the data set first."""
        path = account_path(account)
        with self._reading(Look(path=path)) as books:
            accounts = lineage(books, path)
        return tuple(_standing(each, accounts[0]) for each in accounts)

    def accounts(self) -> tuple[Path, ...]:
        """All accounts, parents before children."""
        with self._reading() as books:
            return tuple(account.path for account in books.accounts())

    def sources(self) -> dict[str, str]:
        """All sources, with the data sets they belong to."""
        with self._reading() as books:
            return books.sources()

    def entries(self, since: int = 0) -> Iterator[Entry]:
        """The entries after number `since`, in order."""
        while True:
            with self._reading() as books:
                page = books.entries(since, PAGE)
            yield from page
            if len(page) < PAGE:
                return
            since = page[-1].sequence

    def events(self, account: Path) -> Iterator[Event]:
        """What was charged at the account and below, in order, to be accounted for in any other way."""
        return charges_under(self.entries(), account_path(account))

    def head(self) -> Head:
        """The last entry. Whoever notes it elsewhere can later prove that nothing up to it was changed or removed."""
        with self._reading() as books:
            return books.head()

    def check(self, anchor: Head | None = None) -> Report:
        """Reads all the books again: the chain, every account's sums from the events, every release, every table.

        `anchor` is a head noted earlier: it must be on the chain. Without one, books that were cut back as a whole to
        an earlier state look sound.
        """
        return check(self._store, anchor)

    def registry(self) -> dict[str, Any]:
        """What may be published: each data set with its unit, budget, spending and releases, as plain data."""
        with self._reading() as books:
            return registry(books, self.id, self._clock())

    @property
    def address(self) -> str:
        """Where the books are, as people are told: without user and password."""
        return self._store.address

    @property
    def seen(self) -> Head:
        """The last entry that was there when this handle looked."""
        return self._seen

    def expect(self, head: Head) -> None:
        """From now on the books must hold this entry, which somebody noted: otherwise an old copy was put back."""
        self._seen = max(self._seen, head, key=lambda one: one.sequence)
        self.head()

    def register(self, key: str) -> None:
        """Says on record that this public key, in hex, signs certificates of these books; once is enough."""
        if not isinstance(key, str) or not re.fullmatch(r"[0-9a-f]{64}", key):
            raise InvalidArgument("key", key, "64 hexadecimal digits", "give the public half of an Ed25519 key")
        if key not in self.keys():
            with self._writing() as books:
                self._append(books, {"kind": "key", "key": key})

    def keys(self) -> tuple[str, ...]:
        """The public keys that sign, in the order in which they were registered."""
        begun = '{"key":'
        found = (entry.content["key"] for entry in self.entries() if entry.text.startswith(begun))
        return tuple(dict.fromkeys(found))

    def confirm(self, certificate: Mapping[str, Any], *, keys: Iterable[str] = ()) -> None:
        """Raises unless the books hold what a certificate says, signed by a key in them or one of `keys`.

        Whether its signature holds and its events cost what it says is for `verify` to find.
        """
        known = {*self.keys(), *keys}
        with self._reading(Look(charge=entry_of(certificate))) as books:
            confirm(books, self.id, certificate, known)

    @contextmanager
    def _reading(self, look: Look = NOTHING) -> Iterator[Books]:
        seen = self._seen
        with self._store.reading(replace(look, entry=seen.sequence)) as books:
            _assert_grown(books, seen)
            head = books.head()
            yield books
        self._seen = head

    @contextmanager
    def _writing(self, look: Look = NOTHING) -> Iterator[Books]:
        seen = self._seen
        with self._store.writing(replace(look, entry=seen.sequence)) as books:
            _assert_grown(books, seen)
            _assert_open(books)
            yield books
            head = books.head()
        self._seen = head

    def _append(self, books: Books, content: dict[str, Any]) -> Entry:
        entry = Entry.after(books.head(), content if "time" in content else content | {"time": self._now()})
        books.append(entry)
        return entry

    def _now(self) -> str:
        return self._clock().astimezone(UTC).isoformat(timespec="microseconds")

    def _again(self, books: Books, row: ChargeRow, plain: list[dict[str, Any]]) -> Charge:
        entry = books.entry(row.sequence)
        if entry is None:
            raise LedgerDamaged(f"entry {row.sequence} is missing", "restore the last good copy")
        content = entry.content
        if content["events"] != plain:
            raise InvalidArgument(
                "question", row.question, "a text for these events only", "put every parameter into its text"
            )
        stored = books.release(row.sequence)
        payload = None if stored is None else stored.payload
        spent, time = content["spent"], content["time"]
        return Charge(self.id, row.sequence, entry.hash, row.path, row.question, spent, time, False, payload)


def _assert_grown(books: Books, seen: Head) -> None:
    """That the books still begin with what this process had seen of them before it looked."""
    if seen.sequence:
        entry = books.entry(seen.sequence)
        if entry is None or entry.hash != seen.hash:
            raise LedgerDamaged(
                f"entry {seen.sequence} was there before and is gone or changed, as if an old copy was put back",
                "restore the newest copy",
            )


def _assert_open(books: Books) -> None:
    """That the books were not moved elsewhere."""
    last = books.last()
    if last is not None and '"kind":"move"' in last.text and last.content.get("kind") == "move":
        raise LedgerUnavailable(f"its books were moved to {last.content.get('to')}", "use those")


def _standing(account: Account, dataset: Account) -> Standing:
    filter = filter_of(account, dataset)
    remaining = None if account.budget is None else filter.remaining
    return Standing(account.path, account.budget, filter.spent, remaining, filter.used)

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

What a charge is and when it is paid is in `charges.py`: a question is answered once, and no run is free.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from discreet.accounting.filters import Composition
from discreet.accounting.flattening import as_event
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.exact import Exactable
from discreet.core.losses import Loss
from discreet.core.units import Unit
from discreet.ledger.accounts import Opening, amended, charges_under, filter_of, largest, lineage, room
from discreet.ledger.caps import assert_within, outranked
from discreet.ledger.charges import PER_STUDY, Charges
from discreet.ledger.confirmation import claims, confirm, entry_of
from discreet.ledger.encoding import Path, account_path, canonical, loss_to_plain, plain_text, source_text
from discreet.ledger.errors import LedgerDamaged
from discreet.ledger.handle import LONGEST_TEXT, lasting_head
from discreet.ledger.records import Account, Entry, Head, Report, Standing
from discreet.ledger.registry import registry
from discreet.ledger.stores.addresses import store_at
from discreet.ledger.stores.store import PAGE, Look, Store, pages
from discreet.ledger.verification import check
from discreet.noise.entropy import system

__all__ = ["Ledger"]

FORMAT = 1
"""The meaning of the entries. It never changes for a number that was used; a new meaning gets the next one."""


class Ledger(Charges):
    """The books of any number of data sets, their studies and analysts."""

    def __init__(self, store: Store, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__(store, clock)
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
        new: bool = False,
        note: str = "",
    ) -> Path:
        """Opens an account, or continues one; returns the account under which the books are kept.

        A data set needs a budget, a unit, and a source: a text that identifies the data whatever it is called, such as
        a digest or an address. If the source is known already, its data set is continued, **also under another name**,
        and the name in the books is returned. Studies and analysts may have a budget, and so may a name over all
        studies (`notation.everywhere`). Where others have one, an account without needs `new` (`caps.py`).
        `composition`, `delta_share` and `order` are those of `accounting.Filter`.
        """
        if source is not None:
            source_text(source)
        plain_text("note", note, LONGEST_TEXT, empty=True)
        asked = Opening(account_path(account), budget, unit, source, composition, delta_share, order, new)
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
            self._append(books, entry | ({"note": note} if note else {}))
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
            assert_within(path, budget, accounts)
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

    def keep_answers(self, account: Path, *, per: Literal["dataset", "study"], note: str = "") -> None:
        """Says on record who may see stored answers: all who may ask about the data set, or each study its own.

        Per study, a question that another study asked is charged and drawn anew. What was stored before stays with the
        study that paid for it.
        """
        path = account_path(account)
        if len(path) > 1 or per not in ("dataset", "study"):
            raise InvalidArgument("per", per, "'dataset' or 'study', for a data set", "give one of the two")
        plain_text("note", note, LONGEST_TEXT, empty=True)
        answers = PER_STUDY if per == "study" else None
        with self._writing(Look(path=path)) as books:
            [dataset] = lineage(books, path)
            if dataset.answers != answers:
                self._append(books, {"kind": "answers", "account": path, "per": per, "note": note})
                books.put_account(replace(dataset, answers=answers))

    def keeps_answers(self, account: Path) -> Literal["dataset", "study"]:
        """Who may see stored answers of a data set: all who may ask, or each study its own."""
        path = account_path(account)[:1]
        with self._reading(Look(path=path)) as books:
            return "dataset" if lineage(books, path)[0].answers is None else "study"

    def attach(self, account: Path, source: str, *, note: str = "") -> None:
        """Says on record that `source` is about the same people as the data set: it shares its budget from now on."""
        path = account_path(account)
        if len(path) > 1:
            raise InvalidArgument("account", path, "a data set", f"attach it to {path[:1]}")
        source_text(source)
        plain_text("note", note, LONGEST_TEXT, empty=True)
        with self._writing() as books:
            lineage(books, path)
            owner = books.owner(source)
            if owner is None:
                self._append(books, {"kind": "attach", "account": path, "source": source, "note": note})
                books.put_source(source, path[0])
            elif owner != path[0]:
                raise InvalidArgument("source", source, f"of {path[0]!r} or of none", f"it belongs to {owner!r}")

    def fits(self, account: Path, events: Event | Iterable[Event]) -> bool:
        """Whether `charge` would admit the events now; nothing is charged."""
        event = as_event(events)
        path = account_path(account)
        with self._reading(Look(path=path)) as books:
            accounts = lineage(books, path)
            filters = [filter_of(each, accounts[0]) for each in accounts]
        return all(filter.fits(event) for filter in filters)

    def room_for(self, account: Path, events: Event | Iterable[Event], most: int) -> int:
        """How many more charges of these events would be admitted one after another, if nobody else is charged; at most
        `most`. They are tried on copies of all filters, so the number is exact."""
        event, path = as_event(events), account_path(account)
        with self._reading(Look(path=path)) as books:
            accounts = lineage(books, path)
            filters = [filter_of(each, accounts[0]) for each in accounts]
        for number in range(most):
            if not all(filter.fits(event) for filter in filters):
                return number
            for filter in filters:
                filter.charge(event)
        return most

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
        """How the account and all that limits it stand, the data set first and the account itself last."""
        path = account_path(account)
        with self._reading(Look(path=path)) as books:
            accounts = lineage(books, path)
        return tuple(_standing(each, accounts[0]) for each in accounts)

    def accounts(self) -> tuple[Path, ...]:
        """All accounts, parents before children."""
        with self._reading() as books:
            return tuple(account.path for account in books.accounts())

    def outranked(self) -> list[tuple[Path, Loss, Path, Loss]]:
        """Caps that are above one that holds anyway: the account and its cap, and the account above and its budget."""
        with self._reading() as books:
            pairs = outranked(books.accounts())
        return [(a.path, a.budget, b.path, b.budget) for a, b in pairs if a.budget is not None and b.budget is not None]

    def same_files(self, dataset: str) -> set[str]:
        """The sources in which a data set is as a whole: the first file or folder that it was in, and those that the
        steward attached with a note, as of a file that was moved."""
        found: set[str] = set()
        first = ""
        for entry in self.entries():
            content = entry.content
            if content["kind"] in ("open", "attach") and content["account"][0] == dataset and content.get("source"):
                first = first or (content["source"] if content["source"].startswith("file:") else "")
                found |= {content["source"]} if content.get("note") else set()
        return found | {first}

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

    def hash_of(self, sequence: int) -> str:
        """The hash of an entry."""
        with self._reading() as books:
            entry = books.entry(sequence)
        if entry is None:
            raise InvalidArgument("sequence", sequence, "an entry of these books", "give the number of a charge")
        return entry.hash

    def events(self, account: Path) -> Iterator[Event]:
        """What was charged at the account and below, in order, to be accounted for in any other way."""
        return charges_under(self.entries(), account_path(account))

    def head(self) -> Head:
        """The last entry; of books that were moved, the last that went with them. Whoever notes it elsewhere can later
        prove that nothing up to it was changed or removed."""
        with self._reading() as books:
            return lasting_head(books)

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

    def confirm(self, certificate: Mapping[str, Any], *, keys: Iterable[str] = ()) -> tuple[str, ...]:
        """Raises where the books say otherwise than a certificate, or know its key no more than `keys` do; returns what
        they do not tell. Whether its signature holds and its events cost what it says is for `verify` to find."""
        known = {*self.keys(), *keys}
        try:
            claims(certificate)
            look = Look(charge=entry_of(certificate))
        except (TypeError, ValueError, RecursionError, OverflowError):
            bound, remedy = "as `verify` takes it", "give it unchanged: no version of discreet signs this"
            raise InvalidArgument("certificate", sorted(map(str, certificate)), bound, remedy) from None
        with self._reading(look) as books:
            return confirm(books, self.id, certificate, known)


def _standing(account: Account, dataset: Account) -> Standing:
    filter = filter_of(account, dataset)
    remaining = None if account.budget is None else filter.remaining
    return Standing(account.path, account.budget, filter.spent, remaining, filter.used)

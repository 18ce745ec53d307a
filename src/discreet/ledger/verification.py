"""Reading the books again from the first entry, trusting nothing but the events.

`Verifier` follows the chain: each entry's hash, its link to the one before, and each account's sums, recomputed from
the events. `check` then holds every table against what the chain says. The chain is the book; the tables are its index.

An entry is sound if its sums are at least what the accountant finds now. Larger sums are safe, and come about when an
accountant has become sharper since they were written; what follows is then held against the larger ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from discreet.accounting.filters import Filter
from discreet.accounting.flattening import as_event
from discreet.core.errors import BudgetExceeded, DiscreetError, NotAccountable
from discreet.core.events import Composed, Event, Nothing
from discreet.core.exact import natural
from discreet.core.losses import Loss
from discreet.core.units import Unit
from discreet.ledger.accounts import admit, amended, charges_under, largest
from discreet.ledger.encoding import (
    Path,
    above,
    attempt_key,
    canonical,
    digest,
    events_from_plain,
    is_everywhere,
    loss_from_plain,
    shown,
    step_key,
    study_key,
    unit_from_plain,
)
from discreet.ledger.errors import LedgerDamaged
from discreet.ledger.records import Account, ChargeRow, Entry, Fault, Head, Report, Step
from discreet.ledger.stores.schema import VERSION
from discreet.ledger.stores.store import Books, Store, pages

__all__ = ["Verifier", "check", "examine"]


class _Broken(Exception):
    """What is wrong with the entry at hand."""


@dataclass
class Verifier:
    """What the books must hold after the entries read so far. It stops at the first fault."""

    head: Head = field(default_factory=lambda: Head(0, ""))
    fault: Fault | None = None
    sources: dict[str, str] = field(default_factory=dict)
    charges: dict[int, ChargeRow] = field(default_factory=dict)
    releases: dict[int, tuple[int, str]] = field(default_factory=dict)
    """For each charge, the entry of its release and the digest of the payload."""
    moved: bool = False
    settled: bool = False
    """Whether the books go on elsewhere."""
    schema: int = 1
    """The schema that the tables have at least, by what the chain says."""
    _terms: dict[Path, tuple[Loss | None, Loss | None, Unit | None]] = field(default_factory=dict)
    _filters: dict[Path, Filter] = field(default_factory=dict)
    _answers: dict[Path, str | None] = field(default_factory=dict)
    """Who may see stored answers, by data set."""
    _keys: set[tuple[str, str, str]] = field(default_factory=set)
    """The questions and requests of each data set."""
    _questions: dict[tuple[str, str], int] = field(default_factory=dict)
    """The charge of each question."""
    _steps: dict[int, int] = field(default_factory=dict)
    """How many steps a charge pays for, where it pays for any."""
    _void: set[int] = field(default_factory=set)
    """Charges of runs that ended without an outcome, and were followed by a further attempt."""

    def follow(self, books: Books) -> None:
        """Reads all entries that were added since the last time."""
        for entry in pages(books, self.head.sequence):
            self._read(entry, books)
            if self.fault is not None:
                return
        if books.head() != self.head:
            self.fault = Fault(self.head.sequence + 1, "it is missing: the books say that there are more entries")

    def accounts(self) -> list[Account]:
        """All accounts as they must stand, parents before children."""
        return [
            Account(path, *self._terms[path], canonical(filter.state()), self._answers.get(path))
            for path, filter in sorted(self._filters.items(), key=lambda item: item[0])
        ]

    def _read(self, entry: Entry, books: Books) -> None:
        try:
            content = self._linked(entry)
            _READERS[content["kind"]](self, entry.sequence, content, books)
            self.head = entry.head
        except _Broken as broken:
            self.fault = Fault(self.head.sequence + 1, str(broken))
        except (BudgetExceeded, NotAccountable) as refusal:
            self.fault = Fault(self.head.sequence + 1, f"it should have been refused: {refusal}")
        except (DiscreetError, KeyError, TypeError, ValueError, AttributeError, IndexError) as reason:
            self.fault = Fault(self.head.sequence + 1, f"it cannot be read ({reason!r})")

    def _linked(self, entry: Entry) -> dict[str, Any]:
        expected = self.head.sequence + 1
        _assert(entry.sequence == expected, "it is missing")
        _assert(digest(entry.text) == entry.hash, "its text does not have its hash")
        content = entry.content
        follows = content["sequence"] == expected and content["previous"] == self.head.hash
        _assert(follows, "it does not continue the entry before it")
        _assert((content["kind"] == "ledger") == (expected == 1), "a chain begins with its only entry 'ledger'")
        _assert(not self.settled, "books that arrived elsewhere do not go on")
        _assert(
            (content["kind"] in ("arrive", "settle")) == self.moved,
            "books that were moved go on with an arrival, there or elsewhere, no others do",
        )
        return content

    def _ledger(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """The first entry opens no account."""

    def _open(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        path, plain = tuple(content["account"]), content["budget"]
        _assert(path not in self._filters, "the account was open already")
        parent = path[:1] if is_everywhere(path) else path[:-1]
        _assert(not parent or parent in self._filters, "the account above it is not open")
        _assert(("unit" in content) == (len(path) == 1), "data sets have a unit, other accounts do not")
        budget = None if plain is None else loss_from_plain(plain)
        if is_everywhere(path):
            self._open_everywhere(path, budget, content["state"], charges_under(pages(books, 0, until=sequence), path))
            return
        filter = Filter.revive(budget or self._filters[path[:1]].budget, content["state"])
        spent = {value for group in content["state"]["sums"] for value in group}
        _assert(spent == {"0"}, "a new account has spent nothing")
        if len(path) == 1:
            self._own(content["source"], path[0])
        self._terms[path] = budget, budget, unit_from_plain(content["unit"]) if "unit" in content else None
        self._filters[path] = filter

    def _open_everywhere(self, path: Path, budget: Loss | None, state: dict[str, Any], past: Iterator[Event]) -> None:
        """A name over all studies has spent what it was charged before."""
        if budget is None:
            raise _Broken("a name over all studies has a budget")
        unlimited = Account(path, None, None, None, "")
        counted = amended(unlimited, self._filters[path[:1]], budget, past)
        self._filters[path] = _recorded(counted, budget, state)
        self._terms[path] = budget, budget, None

    def _keep_answers(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """Who may see stored answers from here on."""
        path, answers = tuple(content["account"]), {"dataset": None, "study": "study"}[content["per"]]
        _assert(len(path) == 1 and path in self._filters, "the data set is not open")
        _assert(self._answers.get(path) != answers, "it was so already")
        self._answers[path] = answers

    def _attach(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        [dataset] = content["account"]
        _assert((dataset,) in self._filters, "the data set is not open")
        self._own(content["source"], dataset)

    def _own(self, source: str, dataset: str) -> None:
        _assert(source not in self.sources, "the source belongs to a data set already")
        self.sources[source] = dataset

    def _amend(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        path, former = tuple(content["account"]), content["former"]
        old, promised, unit = self._terms[path]
        _assert((None if former is None else loss_from_plain(former)) == old, "it was another budget")
        budget, standing = loss_from_plain(content["budget"]), self._filters[path]
        account = Account(path, old, promised, unit, canonical(standing.state()))
        changed = amended(account, standing, budget, charges_under(pages(books, 0, until=sequence), path))
        if canonical(changed.state()) != canonical(content["state"]) and old is not None:
            # Earlier versions kept what one question alone had cost at the δ before.
            changed = Filter.revive(budget, standing.state())
        self._filters[path] = _recorded(changed, budget, content["state"])
        self._terms[path] = budget, largest(promised, budget), unit
        if len(path) == 1:
            for below, (own, *_) in self._terms.items():
                if below[:1] == path and own is None:
                    self._filters[below] = Filter.revive(budget, self._filters[below].state())

    def _charge(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        path = tuple(content["account"])
        row = ChargeRow(sequence, path, content["question"], content["request"], content["time"])
        if "asked" in content:
            _assert(self._answers.get(path[:1]) is not None, "answers were not kept per study")
            kept = study_key(content["asked"], path)
            _assert(content.get("first", content["question"]) == kept, "it is not charged under the key of its study")
        if "attempt" in content:
            self._follow_attempt(path[0], content["question"], content["first"], content["attempt"])
        for kind, key in (("question", row.question), ("request", row.request)):
            _assert((path[0], kind, key) not in self._keys, f"its {kind} was charged before")
            if key is not None:
                self._keys.add((path[0], kind, key))
        over = [each for each in above(path) if each in self._filters or not is_everywhere(each)]
        filters = {each: self._filters[each] for each in over}
        event = as_event(events_from_plain(content["events"]))
        if "parent" in content:
            self._follow_step(path, content, event)
        else:
            admit(filters, self._terms[path[:1]][-1], event)
        if "steps" in content:
            self._steps[sequence] = natural("steps", content["steps"])
        for (each, filter), state in zip(filters.items(), content["states"], strict=True):
            self._filters[each] = _recorded(filter, filter.budget, state)
        self.charges[sequence] = row
        self._questions[path[0], row.question] = sequence

    def _follow_step(self, path: Path, content: dict[str, Any], event: Event) -> None:
        """A step is covered by what its parent was charged, and follows the step before it."""
        step = Step(content["parent"], content["number"])
        _assert(event == Composed((Nothing(),)), "a step is charged nothing of its own")
        _assert("attempt" not in content and "steps" not in content, "a step has neither attempts nor steps")
        key = step_key(step.parent, step.number)
        _assert(content["question"] == key and "asked" not in content, "it is not charged under the key of its step")
        _assert(step.parent in self.charges, "its parent is no charge")
        _assert(self.charges[step.parent].path == path, "its parent was charged to another account")
        _assert(step.parent in self.releases, "its parent has no outcome")
        _assert(step.number <= self._steps.get(step.parent, 0), "its parent did not pay for so many steps")
        if step.number > 1:
            before = self._questions.get((path[0], step_key(step.parent, step.number - 1)))
            _assert(before in self.releases, "the step before it has no outcome")

    def _follow_attempt(self, dataset: str, question: str, first: str, attempt: int) -> None:
        """A further attempt follows one that had no outcome."""
        _assert(question == attempt_key(first, attempt), "it is not charged under the key of its attempt")
        earlier = dataset, attempt_key(first, attempt - 1)
        _assert(earlier in self._questions, "the attempt before it was not charged")
        _assert(self._questions[earlier] not in self.releases, "the attempt before it has an outcome")
        self._void.add(self._questions[earlier])

    def _release(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        charge = content["charge"]
        _assert(charge in self.charges, "it is for no charge")
        _assert(charge not in self.releases, "its charge had a release before")
        _assert(charge not in self._void, "its question was charged again before")
        self.releases[charge] = sequence, content["payload"]

    def _certify(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """The digest of what a certificate says."""
        _assert(content["charge"] in self.releases, "it is for no release")
        _assert(len(bytes.fromhex(content["statement"])) == 32, "it is no digest")

    def _key(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """A public key of somebody who signs."""
        _assert(len(bytes.fromhex(content["key"])) == 32, "it is no public key")

    def _move(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """The books go on elsewhere."""
        self.moved = True

    def _settle(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """The books arrived elsewhere."""
        _assert(len(bytes.fromhex(content["arrival"])) == 32, "it names no arrival")
        self.settled = True

    def _arrive(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """The books go on here."""
        self.moved = False

    def _schema(self, sequence: int, content: dict[str, Any], books: Books) -> None:
        """The tables were brought to the next schema."""
        old, new = content["from"], content["to"]
        _assert(isinstance(old, int) and new == old + 1, "a schema is followed by the next one")
        _assert(self.schema <= old < VERSION, "the tables had another schema")
        self.schema = new


_READERS: dict[str, Callable[[Verifier, int, dict[str, Any], Books], None]] = {
    "ledger": Verifier._ledger,
    "open": Verifier._open,
    "attach": Verifier._attach,
    "amend": Verifier._amend,
    "answers": Verifier._keep_answers,
    "charge": Verifier._charge,
    "release": Verifier._release,
    "certify": Verifier._certify,
    "key": Verifier._key,
    "move": Verifier._move,
    "settle": Verifier._settle,
    "arrive": Verifier._arrive,
    "schema": Verifier._schema,
}


def check(store: Store, anchor: Head | None = None) -> Report:
    """Reads the books of one moment as a whole; reports the first fault."""
    verifier = Verifier()
    try:
        with store.reading() as books:
            return examine(books, anchor, verifier)
    except LedgerDamaged as damage:
        return Report(verifier.head, verifier.fault or Fault(None, str(damage)))


def examine(books: Books, anchor: Head | None, verifier: Verifier) -> Report:
    """Reads the books within a transaction as a whole, with a verifier that has read nothing yet."""
    verifier.follow(books)
    fault = verifier.fault or _anchored(books, anchor) or next(_differences(verifier, books), None)
    return Report(verifier.head, fault)


def _anchored(books: Books, anchor: Head | None) -> Fault | None:
    if anchor is None or anchor.sequence == 0:
        return None
    entry = books.entry(anchor.sequence)
    if entry is None:
        return Fault(anchor.sequence, "it is gone: the books were cut back to before the anchor")
    return None if entry.head == anchor else Fault(anchor.sequence, "it is not the one of the anchor")


def _differences(verifier: Verifier, books: Books) -> Iterator[Fault]:
    """Where a table says otherwise than the chain."""
    for stored, account in zip_longest(books.accounts(), verifier.accounts()):
        if stored != account:
            path = (account or stored).path
            yield Fault(None, f"the stored account {shown(path)!r} is not what the entries add up to")
    if books.sources() != verifier.sources:
        yield Fault(None, "the stored sources are not those of the entries")
    for row, charge in zip_longest(books.charges(), verifier.charges.values()):
        if row != charge:
            yield Fault((charge or row).sequence, "the index of charges does not have it as it is")
    releases = ((row.charge, row.sequence, digest(row.payload)) for row in books.releases())
    expected = ((charge, *release) for charge, release in sorted(verifier.releases.items()))
    for found, right in zip_longest(releases, expected):
        if found != right:
            yield Fault((right or found)[1], "the stored release is not the one of the entry")
    for complaint in books.complaints():
        yield Fault(None, complaint)


def _recorded(found: Filter, budget: Loss, state: dict[str, Any]) -> Filter:
    """The filter as the entry records it, which must count at least what was found."""
    if found.state() == state:
        return found
    recorded = Filter.revive(budget, state)
    _assert(recorded.covers(found), "its sums are less than its events cost")
    return recorded


def _assert(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Broken(otherwise)

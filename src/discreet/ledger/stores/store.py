"""What a place to keep books must offer.

A `Store` gives transactions; within one, `Books` reads and writes rows. The store knows nothing of privacy: which rows
are written, and when, is decided in `ledger.py`. The law every store must keep:

* `writing` is exclusive over all threads and processes, sees all that was committed before, and is durable, down to
  the disk, before it returns. If it does not return, either all of it was committed or nothing.
* `reading` sees one moment, whatever is written meanwhile.
* Within a data set, no two charges have the same question, nor the same request; a charge has at most one release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from discreet.ledger.encoding import Path
from discreet.ledger.records import Account, ChargeRow, Entry, Head, ReleaseRow, Tally
from discreet.ledger.stores.runs import Runs

__all__ = ["NOTHING", "PAGE", "Books", "Look", "Store", "pages"]

PAGE = 500
"""Entries that are read at a time."""


@dataclass(frozen=True)
class Look:
    """What a transaction will read first. It changes no result: a store across a network fetches it all at once."""

    entry: int = 0
    path: Path = ()
    """The account, with all above it."""
    question: str | None = None
    request: str | None = None
    charge: int = 0
    """The entry of a charge, with its release."""


NOTHING = Look()


class Books(Protocol):
    """The rows, within one transaction."""

    def head(self) -> Head:
        """The last entry; sequence 0 for empty books."""

    def append(self, *entries: Entry) -> None:
        """Adds the entries and makes the last one the head."""

    def last(self) -> Entry | None:
        """The entry that the head names."""

    def entry(self, sequence: int) -> Entry | None:
        """One entry."""

    def entries(self, after: int, most: int) -> list[Entry]:
        """Up to `most` entries that follow `after`, in order."""

    def account(self, path: Path) -> Account | None:
        """One account."""

    def accounts(self) -> list[Account]:
        """All accounts, parents before children."""

    def put_account(self, account: Account) -> None:
        """Adds or replaces the account."""

    def put_states(self, states: Mapping[Path, str]) -> None:
        """Replaces the sums of accounts."""

    def owner(self, source: str) -> str | None:
        """The data set that a source belongs to."""

    def sources(self) -> dict[str, str]:
        """All sources with their data sets."""

    def put_source(self, source: str, dataset: str) -> None:
        """Adds a source."""

    def charge_for(self, dataset: str, question: str) -> ChargeRow | None:
        """The charge for this question."""

    def charge_with(self, dataset: str, request: str) -> ChargeRow | None:
        """The charge that this request made."""

    def charges(self) -> Iterator[ChargeRow]:
        """All charges, in order."""

    def put_charge(self, row: ChargeRow) -> None:
        """Adds a charge."""

    def release(self, charge: int) -> ReleaseRow | None:
        """The release for a charge."""

    def releases(self) -> Iterator[ReleaseRow]:
        """All releases, in the order of their charges."""

    def put_release(self, row: ReleaseRow) -> None:
        """Adds a release."""

    def tallies(self) -> list[Tally]:
        """The charges and releases of each account that has any."""

    def complaints(self) -> list[str]:
        """What the store finds wrong with its own structure."""


def pages(books: Books, after: int, until: int | None = None) -> Iterator[Entry]:
    """The entries that follow `after`, before number `until`, read some at a time."""
    while page := books.entries(after, PAGE):
        for entry in page:
            if until is not None and entry.sequence >= until:
                return
            yield entry
        after = page[-1].sequence


class Store(Protocol):
    """Where books are kept."""

    @property
    def address(self) -> str:
        """Where the books are, as people are told."""

    @property
    def runs(self) -> Runs:
        """Which runs of charged questions are alive."""

    def writing(self, look: Look = NOTHING) -> AbstractContextManager[Books]:
        """An exclusive, durable transaction."""

    def reading(self, look: Look = NOTHING) -> AbstractContextManager[Books]:
        """A view of one moment."""

    def close(self) -> None:
        """Lets go of files and connections."""

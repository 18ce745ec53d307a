"""A handle on the books: transactions on a chain that only grows, and that nobody put an old copy in place of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.records import Entry, Head
from discreet.ledger.stores.store import NOTHING, Books, Look, Store

LONGEST_TEXT = 4096
"""Characters of a name, a source or a note."""


class Handle:
    """The books at one place, as one process sees them."""

    id: str
    """What tells these books from all others."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._seen = Head(0, "")

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


def _assert_grown(books: Books, seen: Head) -> None:
    """That the books still begin with what this process had seen of them before it looked."""
    if seen.sequence:
        entry = books.entry(seen.sequence)
        if entry is None or entry.hash != seen.hash:
            raise LedgerDamaged(
                f"entry {seen.sequence} was there before and is gone or changed, as if an old copy was put back",
                "restore the newest copy",
            )


def lasting_head(books: Books) -> Head:
    """The last entry that these books have wherever they go: only the old ones say that they arrived elsewhere."""
    last = _last_shared(books)
    return Head(0, "") if last is None else last.head


def _last_shared(books: Books) -> Entry | None:
    last = books.last()
    if last is not None and '"kind":"settle"' in last.text and last.content.get("kind") == "settle":
        return books.entry(last.sequence - 1)
    return last


def _assert_open(books: Books) -> None:
    """That the books were not moved elsewhere."""
    last = _last_shared(books)
    if last is not None and '"kind":"move"' in last.text and last.content.get("kind") == "move":
        raise LedgerUnavailable(f"its books were moved to {last.content.get('to')}", "use those")

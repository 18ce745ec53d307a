"""Moving books from one place to another, so that they are never open in two.

>>> from tempfile import TemporaryDirectory
>>> from discreet.ledger.ledger import Ledger
>>> from discreet.ledger.stores.sqlite.store import SQLiteStore
>>> with TemporaryDirectory() as folder:
...     Ledger.at(f"{folder}/old.db").close()
...     migrate(SQLiteStore(f"{folder}/old.db"), SQLiteStore(f"{folder}/new.db")).head.sequence
3

Two copies that both admit charges would allow spending twice. So the old books are closed first, durably, by an entry
`move` that says where they go; a ledger that ends with one refuses whatever would write. Then all entries are copied
with their hashes, in one transaction, followed by an entry `arrive`; it is committed only if all of it checks. Whoever
dies in between leaves closed books and an empty place, and moves them to the same place again. Last, an entry `settle`
in the old books names the arrival: from then on they are never copied again, wherever the new ones go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from discreet.core.errors import InvalidArgument
from discreet.ledger.errors import LedgerDamaged
from discreet.ledger.records import Entry, Head, Report
from discreet.ledger.stores.store import Books, Store, pages
from discreet.ledger.verification import Verifier, check, examine

__all__ = ["migrate"]


def migrate(source: Store, target: Store, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Report:
    """Moves the books of the source to the target, which must be empty; what a check of them there found.

    From then on the source answers and charges nothing. After a failure, move to the same target again; books that
    arrived are not moved a second time.
    """
    _assert_sound(check(source))
    with target.reading() as books:
        arrived = books.head().sequence > 0
    left = _left(source, target, arrived, clock)
    if not arrived:
        with target.writing() as books:
            if books.head().sequence:
                raise _occupied(target)
            _copy(source, books)
            _append(books, {"kind": "arrive", "from": source.address}, clock)
            _assert_sound(examine(books, left, Verifier()))
    report = check(target, left)
    _assert_sound(report)
    _settle(source, target, left, clock)
    return report


def _left(source: Store, target: Store, arrived: bool, clock: Callable[[], datetime]) -> Head:
    """Closes the source, unless it is closed in favour of this target; its last entry."""
    with source.writing() as books:
        last = books.last()
        if last is None:
            raise InvalidArgument("source", source.address, "a ledger with entries", "give the one to move")
        settled = last.content["kind"] == "settle"
        move = books.entry(last.sequence - 1) if settled else last
        assert move is not None
        if move.content["kind"] == "move":
            if move.content["to"] != target.address or (settled and not arrived):
                bound = f"{move.content['to']}, where these books were moved"
                remedy = "use the books that arrived, wherever they are now" if settled else "move them from there"
                raise InvalidArgument("target", target.address, bound, remedy)
            return move.head
        if arrived:
            raise _occupied(target)
        return _append(books, {"kind": "move", "to": target.address}, clock)


def _settle(source: Store, target: Store, left: Head, clock: Callable[[], datetime]) -> None:
    """Writes into the source that its books arrived, unless it is written already."""
    with target.reading() as books:
        arrival = books.entry(left.sequence + 1)
        assert arrival is not None
    with source.writing() as books:
        if books.head() == left:
            _append(books, {"kind": "settle", "arrival": arrival.hash}, clock)


def _copy(source: Store, books: Books) -> None:
    with source.reading() as old:
        books.append(*pages(old, 0))
        for account in old.accounts():
            books.put_account(account)
        for name, dataset in old.sources().items():
            books.put_source(name, dataset)
        for charge in old.charges():
            books.put_charge(charge)
        for release in old.releases():
            books.put_release(release)


def _append(books: Books, content: dict[str, str], clock: Callable[[], datetime]) -> Head:
    time = clock().astimezone(UTC).isoformat(timespec="microseconds")
    entry = Entry.after(books.head(), content | {"time": time})
    books.append(entry)
    return entry.head


def _assert_sound(report: Report) -> None:
    if report.fault is not None:
        raise LedgerDamaged(f"a check finds in entry {report.fault.sequence}: {report.fault.what}", "restore it first")


def _occupied(target: Store) -> InvalidArgument:
    return InvalidArgument("target", target.address, "empty", "give a new file, or a database without a ledger")

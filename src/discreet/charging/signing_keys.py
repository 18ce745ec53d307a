"""The key that signs certificates, where it is kept, and what its keeper remembers of the books.

Books in a file have one key, in a file beside them. Books on a server are shared by many machines, and **each machine
has a key of its own in a file of its own**; only the public halves are in the books, each in an entry of kind `key`. So
a certificate of any machine can be checked against the books, and no private key is in the database, where every
machine, every backup and whoever runs the server could read it and sign what was never charged. A machine that was
broken into gives away its own key and no other. Whoever may add entries may register a key, which is no more than the
right to charge: a certificate also names its charge, and `Ledger.confirm` looks whether it is there.

The file of the key is the one that is named, or the one that the variable DISCREET_KEY names, or `ID.key` in the folder
of `core/folders.py`, by the id of the ledger. Beside it lies, for each server, a note of the ledger there and the last
entry that was seen, by which the machine notices, in every later session, that an old copy of the books, or other books
with a budget not yet spent, were put in their place. A steward who means it removes the note.

>>> import tempfile
>>> from discreet.ledger import Ledger
>>> with tempfile.TemporaryDirectory() as folder, Ledger.at(f"{folder}/books") as ledger:
...     custody = Custody.of(ledger, f"{folder}/books")
...     custody.path.name, len(custody.key.public), ledger.keys()
('books.key', 64, ())
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import get_ident

from discreet.charging.certificate import SigningKey
from discreet.core.errors import InvalidArgument, known_place
from discreet.core.folders import data_folder
from discreet.ledger import Head, Ledger, LedgerDamaged
from discreet.ledger.stores.addresses import is_address
from discreet.ledger.stores.sqlite.store import BESIDE

__all__ = ["VARIABLE", "Custody", "beside", "public_keys"]

VARIABLE = "DISCREET_KEY"
"""The environment variable that names the file of the key, for books on a server."""


@dataclass(frozen=True)
class Custody:
    """A key for one ledger."""

    key: SigningKey
    path: Path
    note: Path | None
    """Where the last entry that was seen is noted; None for books in a file."""
    ledger: str
    """The id of the ledger."""

    @classmethod
    def of(cls, ledger: Ledger, place: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Custody:
        """The key of this machine for the ledger at `place`, made on first use and known to the books."""
        if not is_address(place):
            own = beside(place) if path is None else _named(path)
            custody = cls(_key_at(own), own, None, ledger.id)
            if path is not None:
                ledger.register(custody.key.public)
            return custody
        own = _on_this_machine(ledger.id, path)
        key = _key_at(own)
        custody = cls(key, own, _note_of(own, ledger, path), ledger.id)
        noted = custody.recalled()
        if noted is not None:
            ledger.expect(noted.head)
        if noted is None or noted.key != key.public:
            ledger.register(key.public)
        custody.remember(ledger.head())
        return custody

    def files(self, ledger: Ledger) -> list[Path]:
        """What lies on this machine: the key, the note, and the books with what SQLite keeps beside them."""
        books = [] if is_address(ledger.address) else [Path(ledger.address + end) for end in ("", *BESIDE)]
        return [self.path, *books, *([] if self.note is None else [self.note])]

    def recalled(self) -> _Note | None:
        """What was noted at this place before; an error if it was about other books."""
        note = None if self.note is None else _Note.read(self.note)
        if note is not None and note.ledger != self.ledger:
            raise LedgerDamaged(
                f"at this address was the ledger {note.ledger}, and now there is another one, {self.ledger}",
                f"put the books back, or remove {self.note} if they were given up on purpose",
            )
        return note

    def remember(self, head: Head) -> None:
        """Notes the last entry that was seen, which later ones must follow."""
        if self.note is None:
            return
        draft = self.note.with_name(f"{self.note.name}.{os.getpid()}.{get_ident()}")
        # What cannot be noted is noted by a later session: nothing that was charged depends on it.
        with suppress(OSError):
            draft.write_text(json.dumps(vars(_Note(self.ledger, self.key.public, head.sequence, head.hash))))
            draft.replace(self.note)


@dataclass(frozen=True)
class _Note:
    """What a machine remembers of the books at an address."""

    ledger: str
    key: str
    sequence: int
    hash: str

    @classmethod
    def read(cls, path: Path) -> _Note | None:
        """The note in a file; None if there is none that can be read."""
        try:
            said = json.loads(path.read_text())
            return cls(str(said["ledger"]), str(said["key"]), int(said["sequence"]), str(said["hash"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def head(self) -> Head:
        """The last entry that was seen."""
        return Head(self.sequence, self.hash)


def beside(place: str | os.PathLike[str]) -> Path:
    """The key of books in a file."""
    path = Path(place)
    return path.with_name(f"{path.name}.key")


def public_keys(ledger: Ledger, place: str | os.PathLike[str]) -> tuple[str, ...]:
    """The public keys that sign for a ledger: the one beside a file, and those in the books."""
    own = None if is_address(place) or not beside(place).exists() else _key_at(beside(place)).public
    return tuple(dict.fromkeys([*([] if own is None else [own]), *ledger.keys()]))


def _on_this_machine(ledger: str, path: str | os.PathLike[str] | None) -> Path:
    named = path or os.environ.get(VARIABLE)
    if named:
        return _named(named)
    data = data_folder()
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as reason:
        remedy = f"name the file of the key in {VARIABLE}, or give key="
        raise InvalidArgument("key", str(data), f"a folder to keep it in ({reason.strerror})", remedy) from None
    return data / f"{ledger}.key"


def _named(path: str | os.PathLike[str]) -> Path:
    """A path that somebody gave; an address is refused, or its password would be the name of a file."""
    return Path(known_place("key", os.fspath(path))).expanduser()


def _note_of(key: Path, ledger: Ledger, path: str | os.PathLike[str] | None) -> Path:
    """Where the books at an address are noted: beside the key that was named, or under the address alone."""
    place = sha256(ledger.address.encode()).hexdigest()[:16]
    named = path or os.environ.get(VARIABLE)
    return key.with_name(f"{key.name}.{place}" if named else f"{place}.seen")


def _key_at(path: Path) -> SigningKey:
    try:
        return SigningKey.at(path)
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else "it holds something else"
        remedy = f"name another file in {VARIABLE}, or give key="
        raise InvalidArgument("key", str(path), f"a file with a signing key ({why})", remedy) from None

"""The key that signs certificates, where it is kept, and what its keeper remembers of the books.

Books in a file have one key, in a file beside them. Books on a server are shared by many machines, and **each machine
has a key of its own in a file of its own**; only the public halves are in the books, each in an entry of kind `key`. So
a certificate of any machine can be checked against the books, and no private key is in the database, where every
machine, every backup and whoever runs the server could read it and sign what was never charged. A machine that was
broken into gives away its own key and no other. Whoever may add entries may register a key, which is no more than the
right to charge: a certificate also names its charge, and `Ledger.confirm` looks whether it is there.

The file of the key is the one that is named, or the one that the variable DISCREET_KEY names, or `discreet/ID.key` in
XDG_DATA_HOME or `~/.local/share`, by the id of the ledger. Beside it lies a note of the last entry that was seen, by
which the machine notices, in every later session, that an old copy of the books was put in their place.

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
from pathlib import Path
from threading import get_ident

from discreet.certificate import SigningKey
from discreet.core.errors import InvalidArgument
from discreet.ledger import Head, Ledger
from discreet.ledger.addresses import is_address

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

    @classmethod
    def of(cls, ledger: Ledger, place: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> Custody:
        """The key of this machine for the ledger at `place`, made on first use and known to the books."""
        if not is_address(place):
            own = beside(place) if path is None else Path(path).expanduser()
            custody = cls(_key_at(own), own, None)
            if path is not None:
                ledger.register(custody.key.public)
            return custody
        own = _on_this_machine(ledger.id, path)
        key = _key_at(own)
        note = own.with_name(f"{own.name}.{ledger.id[:16]}")
        head = _noted(note, key.public)
        if head is None:
            ledger.register(key.public)
        else:
            ledger.expect(head)
        custody = cls(key, own, note)
        custody.remember(ledger.seen)
        return custody

    def remember(self, head: Head) -> None:
        """Notes the last entry that was seen, which later ones must follow."""
        if self.note is None:
            return
        draft = self.note.with_name(f"{self.note.name}.{os.getpid()}.{get_ident()}")
        # What cannot be noted is noted by a later session: nothing that was charged depends on it.
        with suppress(OSError):
            draft.write_text(json.dumps({"key": self.key.public, "sequence": head.sequence, "hash": head.hash}))
            draft.replace(self.note)


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
        return Path(named).expanduser()
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "discreet"
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as reason:
        remedy = f"name the file of the key in {VARIABLE}, or give key="
        raise InvalidArgument("key", str(data), f"a folder to keep it in ({reason.strerror})", remedy) from None
    return data / f"{ledger}.key"


def _key_at(path: Path) -> SigningKey:
    try:
        return SigningKey.at(path)
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else "it holds something else"
        remedy = f"name another file in {VARIABLE}, or give key="
        raise InvalidArgument("key", str(path), f"a file with a signing key ({why})", remedy) from None


def _noted(note: Path, public: str) -> Head | None:
    """The entry that was noted with this key; None if there is no such note."""
    try:
        said = json.loads(note.read_text())
        return Head(int(said["sequence"]), str(said["hash"])) if said["key"] == public else None
    except (OSError, ValueError, KeyError, TypeError):
        return None

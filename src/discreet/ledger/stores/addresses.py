"""Where books can be kept: in a file, or in a PostgreSQL database for many servers.

>>> is_address("postgresql://books.example/ledger"), is_address("service=books"), is_address("visits.csv.ledger")
(True, True, False)
>>> shown("postgresql://ann:secret@books.example/ledger?sslpassword=secret")
'postgresql://books.example/ledger'
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import TypeGuard

from discreet.core.display.secrets import address_kind, looks_like_login, redacted, server_of
from discreet.core.errors import InvalidArgument, known_place
from discreet.core.folders import data_folder
from discreet.ledger.encoding import account_path
from discreet.ledger.errors import LedgerMissing, LedgerUnavailable
from discreet.ledger.stores.sqlite.store import SQLiteStore
from discreet.ledger.stores.store import Store

__all__ = ["exists", "is_address", "named_after", "shown", "store_at"]

_KINDS = ("postgresql", "postgres", "words")


def is_address(place: object) -> TypeGuard[str]:
    """Whether this is the address of a server: a URL or the words of a connection, and not the path of a file.

    A file with such a name is reached by `./` and its name, or as a `pathlib.Path`.
    """
    return isinstance(place, str) and address_kind(place) in _KINDS


def shown(place: str | os.PathLike[str]) -> str:
    """The place as people are told: an address without user, password and options."""
    if not is_address(place):
        return redacted(os.fspath(place))
    if "://" not in place:
        return "the server of the ledger"
    return "postgresql://" + server_of(place)


def named_after(dataset: str) -> Path:
    """Where the books of a data set are that lies in no file: in a folder of this user, by its name alone.

    The same name is the same budget, whatever the rows are then: who has other people's rows gives another name.
    """
    [name] = account_path((dataset,))
    mark = sha256(name.encode()).hexdigest()[:12]
    path = data_folder() / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)[:60]}-{mark}.ledger"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as reason:
        bound = f"kept in {path.parent} ({reason.strerror})"
        raise InvalidArgument("dataset", dataset, bound, "give ledger=, the path of a file for the books") from None
    return path


def exists(place: str | os.PathLike[str]) -> bool:
    """Whether there are books; an error if a server cannot be asked."""
    if not is_address(place):
        return os.path.exists(place)
    try:
        store_at(place, create=False).close()
    except LedgerMissing:
        return False
    return True


def store_at(place: str | os.PathLike[str], *, create: bool = True, patience: float = 30.0) -> Store:
    """The books at this place, made if there are none and `create` is set."""
    if isinstance(place, str):
        place = known_place("ledger", place, *_KINDS)
    elif not os.path.isabs(place) and (address_kind(os.fspath(place)) or looks_like_login(os.fspath(place))):
        # As a path it has lost a slash, and it may hold a password that no message may repeat and no file be named by.
        remedy = "give an address as text, and a file with such a name by its absolute path"
        raise InvalidArgument("ledger", "an address as a path", "the path of a file", remedy)
    if not is_address(place):
        return SQLiteStore(place, create=create, patience=patience)
    try:
        from discreet.ledger.stores.postgres.store import PostgresStore
    except ImportError as reason:
        if not (reason.name or "").startswith("psycopg"):
            raise
        raise LedgerUnavailable("the driver psycopg is missing", "pip install 'discreet[postgres]'") from None
    return PostgresStore(place, create=create, patience=patience)

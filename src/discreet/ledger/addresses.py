"""Where books can be kept: in a file, or in a PostgreSQL database for many servers.

>>> is_address("postgresql://books.example/ledger"), is_address("service=books"), is_address("visits.csv.ledger")
(True, True, False)
>>> shown("postgresql://ann:secret@books.example/ledger?sslpassword=secret")
'postgresql://books.example/ledger'
"""

from __future__ import annotations

import os
import re
from typing import TypeGuard

from discreet.core.errors import InvalidArgument
from discreet.ledger.errors import LedgerMissing, LedgerUnavailable
from discreet.ledger.sqlite import SQLiteStore
from discreet.ledger.store import Store

__all__ = ["exists", "is_address", "shown", "store_at"]

_ADDRESS = re.compile(r"postgres(ql)?:|(service|host|hostaddr|port|dbname|user)\s*=")


def is_address(place: object) -> TypeGuard[str]:
    """Whether this is the address of a server: a URL or the words of a connection, and not the path of a file.

    A file with such a name is reached by `./` and its name, or as a `pathlib.Path`.
    """
    return isinstance(place, str) and _ADDRESS.match(place) is not None


def shown(place: str | os.PathLike[str]) -> str:
    """The place as people are told: an address without user, password and options."""
    if not is_address(place):
        return os.fspath(place)
    if "://" not in place:
        return "the server of the ledger"
    return "postgresql://" + re.split(r"[?#]", place.partition("://")[2].rpartition("@")[2])[0]


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
    if not isinstance(place, str) and re.match(r"postgres(ql)?:/", os.fspath(place)):
        # As a path it has lost a slash, and it may hold a password that no message may repeat.
        raise InvalidArgument("ledger", "an address as a path", "the path of a file", "give an address as text")
    if not is_address(place):
        return SQLiteStore(place, create=create, patience=patience)
    try:
        from discreet.ledger.postgres import PostgresStore
    except ImportError as reason:
        if not (reason.name or "").startswith("psycopg"):
            raise
        raise LedgerUnavailable("the driver psycopg is missing", "pip install 'discreet[postgres]'") from None
    return PostgresStore(place, create=create, patience=patience)

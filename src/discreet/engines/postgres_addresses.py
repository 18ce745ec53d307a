"""Addresses of PostgreSQL servers: told from other sources, shown without what is secret, and mended.

>>> is_address("postgresql://ann@data.example/hospital"), is_address("visits.csv")
(True, False)
>>> stripped("postgresql://ann:secret@data.example/hospital?sslmode=require")
'postgresql://data.example/hospital'
"""

from __future__ import annotations

import re

__all__ = ["is_address", "remedy_for", "stripped"]


def is_address(source: object) -> bool:
    """Whether a source is the address of a server."""
    return isinstance(source, str) and re.match(r"postgres(ql)?://", source) is not None


def stripped(address: str) -> str:
    """The address without user, password and options."""
    place = re.sub(r"^[^:]+://", "", address).rpartition("@")[2]
    return "postgresql://" + re.split(r"[?#]", place)[0]


def remedy_for(failure: str) -> str:
    """What may help; the driver gives no code here, so the words of the server have to do."""
    said = failure.lower()
    if "password" in said or "authentication" in said or "pg_hba" in said:
        return "put the right password into .pgpass or PGPASSWORD, and see to the server's pg_hba.conf"
    if "does not exist" in said:
        return "the database or the role does not exist: correct the address"
    if "translate host name" in said or "resolve" in said:
        return "the host is not known: correct the address"
    if "invalid" in said or "missing" in said:
        return "write postgresql://user@host:port/database, with %40, %3A and %2F for @, : and / in names"
    if "too many" in said or "remaining connection slots" in said:
        return "raise max_connections of the server, or try again"
    return "see whether the server runs and the address is right, and try again"

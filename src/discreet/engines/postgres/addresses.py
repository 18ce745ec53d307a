"""Addresses of PostgreSQL servers: told from other sources, shown without what is secret, and mended.

>>> is_address("postgresql://ann@data.example/hospital"), is_address("visits.csv")
(True, False)
>>> stripped("postgresql://ann:secret@data.example/hospital?sslmode=require")
'postgresql://data.example/hospital'
>>> remedy_for("server does not support SSL, but SSL was required")
"let the server's ssl, and sslmode and sslrootcert of the address, agree about encryption"
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from discreet.core.display.secrets import server_of
from discreet.core.errors import InvalidArgument

if TYPE_CHECKING:
    import psycopg

__all__ = ["address_of", "driver", "is_address", "is_ibis", "is_server", "remedy_for", "stripped"]

PLACED = ("host", "port", "user", "dbname", "application_name", "client_encoding")
"""Parameters of a connection that stand elsewhere in the address, or are ours to say."""
PATH = "SELECT setting, reset_val FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'"


def driver() -> Any:
    """The module psycopg, which is loaded when it is needed."""
    if find_spec("psycopg") is None:
        remedy = "pip install 'discreet[postgres]'"
        raise InvalidArgument(
            "source", "postgresql://…", "read with the driver psycopg, which is not installed", remedy
        )
    return import_module("psycopg")


def is_address(source: object) -> bool:
    """Whether a source is the address of a server."""
    return isinstance(source, str) and re.match(r"\s*postgres(ql)?://", source, re.I) is not None


def is_ibis(source: object) -> bool:
    """Whether a source is a connection of ibis, to whatever it is."""
    return any(f"{kind.__module__}.{kind.__name__}" == "ibis.backends.BaseBackend" for kind in type(source).__mro__)


def is_server(source: object) -> bool:
    """Whether a source is a server: its address, or a connection of ibis to it."""
    backend: Any = source
    return is_address(source) or (is_ibis(source) and backend.name == "postgres")


def address_of(source: object) -> str:
    """The address of a server that is given by it, or by a connection of ibis, options and schema included."""
    backend: Any = source
    return source if isinstance(source, str) else _made_from(backend.con)


def _made_from(connection: psycopg.Connection[Any]) -> str:
    """The address of the server that a connection is to, with its password, its options and its search_path."""
    failed = False
    try:
        with connection.transaction():
            [(path, at_first)] = connection.execute(PATH).fetchall()
    except import_module("psycopg").Error:
        failed = True
    if failed:
        raise InvalidArgument("source", "a connection", "open, in no transaction that failed", "connect to it again")
    info = connection.info
    given = {name: value for name, value in info.get_parameters().items() if name not in PLACED}
    if "," in given.get("hostaddr", ""):
        del given["hostaddr"]
    if path != at_first:
        set_later = "-c search_path=" + re.sub(r"([\\\s])", r"\\\1", path)
        given["options"] = f"{given.get('options', '')} {set_later}".strip()
    who = quote(info.user, safe="") + (f":{quote(info.password, safe='')}" if info.password else "")
    options = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
    place = f"{quote(info.host, safe='')}:{info.port}/{quote(info.dbname, safe='')}"
    return f"postgresql://{who}@{place}" + (f"?{options}" if options else "")


def stripped(address: str) -> str:
    """The address without user, password and options."""
    return "postgresql://" + server_of(address)


def remedy_for(failure: str) -> str:
    """What may help; the driver gives no code here, so the words of the server have to do."""
    said = failure.lower()
    if "password" in said or "authentication" in said or "pg_hba" in said:
        return "put the right password into .pgpass or PGPASSWORD, and see to the server's pg_hba.conf"
    if "ssl" in said or "certificate" in said:
        return "let the server's ssl, and sslmode and sslrootcert of the address, agree about encryption"
    if "does not exist" in said:
        return "the database or the role does not exist: correct the address"
    if "translate host name" in said or "resolve" in said:
        return "the host is not known: correct the address"
    if "invalid" in said or "missing" in said:
        return "write postgresql://user@host:port/database, with %40, %3A and %2F for @, : and / in names"
    if "too many" in said or "remaining connection slots" in said:
        return "raise max_connections of the server, or try again"
    return "see whether the server runs and the address is right, and try again"

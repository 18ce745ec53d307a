"""Connections to a PostgreSQL server that keeps books: what is asked of it, how long it may take, what its errors mean.

The password stays in the address, which shows itself without it; messages of the driver are shown without it too.

>>> address = Address.of("postgresql://ann:secret@books.example/ledger")
>>> address, address.hidden("no such user: ann:secret")
(Address(dbname=ledger host=books.example user=ann), 'no such user: ann:…')

A connection gives up when the server does not answer within its `limit`, also if the network is gone without a word.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import conninfo

from discreet.core.display.secrets import known_scheme
from discreet.core.errors import InvalidArgument
from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger.stores.connection_pool import busy

__all__ = ["Address", "Connection", "assert_durable", "connect", "translation"]

OLDEST = 140000
"""The first server that will do, as it numbers itself."""
GRACE = 2.0
"""Seconds beyond the patience for other writers that a server has for its answer."""
IDLE = 5.0
"""Seconds, at least, that a transaction may do nothing before the server ends it, or half the patience."""
DOUBTFUL = ("01", "57")
"""How codes of warnings and of interventions begin. A wait for a standby that is cancelled ends in success
with one of them: the commit is on this server's disk alone, and a failover would lose it."""
_SECRETS = ("password", "sslpassword")
_QUIET = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3"}

R = TypeVar("R")


class Unanswered(psycopg.OperationalError):
    """The server did not answer in time."""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for no answer longer than its limit in seconds."""

    limit = float("inf")
    used = False
    """Whether it was in a transaction before."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.prepared: dict[str, str] = {}
        """The names of statements that the server has read and planned."""
        self.named = 0
        """How many names were given."""
        self.doubts: list[str] = []
        """What the server warned of since somebody asked: a commit with a warning may be less than durable."""
        self.add_notice_handler(self._note_warning)

    def _note_warning(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING" and (notice.sqlstate or "").startswith(DOUBTFUL):
            self.doubts.append(notice.message_primary or "no reason given")

    def wait(self, gen: Any, *rest: Any, **options: Any) -> Any:
        """Runs one exchange with the server; without an answer the connection is closed."""
        try:
            return super().wait(_limited(gen, time.monotonic() + self.limit), *rest, **options)
        except Unanswered:
            self.close()
            raise


def _limited(gen: Generator[Any, Any, R], deadline: float) -> Generator[Any, Any, R]:
    """The driver's exchange, which is told every now and then that nothing came."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                gen.close()
                raise Unanswered("the server does not answer")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: R = end.value
        return result


@dataclass(frozen=True, repr=False)
class Address:
    """Where a server is and how to get in."""

    words: Mapping[str, str]

    @classmethod
    def of(cls, text: str) -> Address:
        """The address that a URL or a connection string gives; no error repeats it, for it may hold a password."""
        try:
            words = conninfo.conninfo_to_dict(known_scheme(text))
        except psycopg.Error:
            words = None
        if words is None or _holds_part_of_a_password(words):
            bound = "postgresql://user@host:port/database, or words such as service=books"
            remedy = "write %40, %3A and %2F for @, : and / in names, and keep the password in a .pgpass file"
            raise InvalidArgument("ledger", "an address", bound, remedy)
        return cls({name: str(value) for name, value in words.items() if value is not None})

    def __repr__(self) -> str:
        return f"Address({' '.join(f'{k}={v}' for k, v in sorted(self.words.items()) if k not in _SECRETS)})"

    @property
    def secret(self) -> bool:
        """Whether it holds something that nobody else may see."""
        return any(self.words.get(name) for name in _SECRETS)

    def hidden(self, message: object) -> str:
        """A message of the driver in one line, without what is secret."""
        lines = [line.strip() for line in str(message).splitlines() if line.strip()]
        text = lines[0] if lines else "no reason given"
        secrets = [self.words[name] for name in _SECRETS if self.words.get(name)]
        user = self.words.get("user", "")
        # Where a colon was encoded, user and password are one word, which the server takes for the user's name.
        secrets += [user] if ":" in user else []
        for secret in secrets:
            for form in {secret, quote(secret), quote(secret, safe="")}:
                text = text.replace(form, "…")
        return text


def _holds_part_of_a_password(words: Mapping[str, Any]) -> bool:
    """Whether the host begins with the rest of a password that has an @ in it; sockets may be called so."""
    host = str(words.get("host") or "")
    return "@" in host and not host.startswith(("/", "@"))


def connect(address: Address, schema: str, patience: float) -> Connection:
    """A connection that is ready for books: of a server new enough, which has what it commits on its disk."""
    waiting = {"connect_timeout": str(max(2, ceil(patience))), "tcp_user_timeout": str(ceil(1000 * (patience + GRACE)))}
    words: dict[str, Any] = {**_QUIET, **waiting, "application_name": "discreet ledger", **address.words}
    failure = None
    try:
        connection = Connection.connect(**words, autocommit=True, client_encoding="UTF8")
    except psycopg.Error as error:
        failure = _unreached(address, error)
    if failure is not None:
        raise failure
    connection.limit = patience + GRACE
    try:
        _prepare(connection, schema, patience)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Connection, schema: str, patience: float) -> None:
    if connection.info.server_version < OLDEST:
        found, least = connection.info.server_version // 10000, OLDEST // 10000
        raise LedgerUnavailable(f"the server is PostgreSQL {found}", f"use one of version {least} or later")
    [settings] = connection.execute(
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding')"
    ).fetchall()
    assert_durable(*settings[:2])
    if settings[2] != "UTF8":
        raise LedgerUnavailable(f"its database is in {settings[2]}", "make one with ENCODING 'UTF8' TEMPLATE template0")
    idle = max(IDLE, patience / 2)
    wanted = {
        "synchronous_commit": settings[1],
        "search_path": f'"{schema}", pg_temp',
        "lock_timeout": f"{ceil(1000 * patience)}ms",
        "idle_in_transaction_session_timeout": f"{ceil(1000 * idle)}ms",
        "idle_session_timeout": "0",
        "row_security": "off",
        "standard_conforming_strings": "on",
        "enable_seqscan": "off",
        "plan_cache_mode": "force_generic_plan",
        "bytea_output": "hex",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
    }
    each = ", ".join(["set_config(%s, %s, false)"] * len(wanted))
    connection.execute(f"SELECT {each}".encode(), [text for pair in wanted.items() for text in pair])


def assert_durable(fsync: str, synchronous_commit: str) -> None:
    """That what is committed is on the disk, by the settings of the server."""
    if fsync != "on":
        raise LedgerUnavailable("the server has fsync off and would forget charges", "set fsync = on")
    if synchronous_commit == "off":
        raise LedgerUnavailable(
            "synchronous_commit is off and charges could be forgotten",
            "set it to on in postgresql.conf, or for the role: ALTER ROLE … SET synchronous_commit = on",
        )


def _unreached(address: Address, error: psycopg.Error) -> LedgerUnavailable:
    """Why there is no connection. The driver gives no code here, so the words of the server have to do."""
    said = address.hidden(error)
    lowered = str(error).lower()
    if "password" in lowered or "authentication" in lowered or "pg_hba" in lowered:
        remedy = "put the right password into .pgpass or PGPASSWORD, and see to the server's pg_hba.conf"
    elif "does not exist" in lowered:
        remedy = "make it on the server with CREATE DATABASE or CREATE ROLE, or correct the address"
    elif "service" in lowered:
        remedy = "see to the file that PGSERVICEFILE names"
    elif "too many" in lowered or "remaining connection slots" in lowered:
        remedy = "raise max_connections of the server, or ask again"
    else:
        remedy = "see whether the server runs and the address is right, and ask again"
    return LedgerUnavailable(f"the server cannot be reached ({said})", remedy)


def translation(error: psycopg.Error, address: Address, patience: float) -> LedgerUnavailable | LedgerDamaged:
    """An error of the driver as ours."""
    said = address.hidden(error)
    state = error.sqlstate or ""
    match state[:2], state:
        case _, "55P03":
            return busy(patience)
        case _, "57014":
            remedy = "ask again, or raise statement_timeout for this role"
            return LedgerUnavailable("the server stopped waiting (statement timeout)", remedy)
        case _, "42501":
            remedy = "GRANT the role what docs/ledger.md lists, or open it once as a role that may create schemas"
            return LedgerUnavailable(f"permission was denied ({said})", remedy)
        case _, "25006":
            remedy = "give the address of the primary server, or target_session_attrs=read-write"
            return LedgerUnavailable("the server only reads", remedy)
        case "53", _:
            return LedgerUnavailable(f"the server lacks room ({said})", "make room and ask again")
        case (("08" | "57" | "25" | "40" | "58" | ""), _):
            return LedgerUnavailable(f"the connection to the server failed ({said})", "ask again")
        case _:
            return LedgerDamaged(f"PostgreSQL reports '{said}' ({state})", "check the ledger")
